packed! {
    /// The task queue as a whole.
    ///
    /// ```text
    /// |  -  | grown | rated | graded | worst | groups |
    ///   112     8      24      24      64      24
    /// ```
    pub struct Queue {
        /// Queue groups ever used.
        groups: u32 = "uint24" 24,
        /// `!key` of the worst queued task of all groups, 0 or 1 if there is none.
        worst: u64 = "uint64" 64,
        /// Queued tasks that take several nodes.
        graded: u32 = "uint24" 24,
        /// Of these, the tasks of policy 3.
        rated: u32 = "uint24" 24,
        /// Levels beyond three of each grade's tree over VRAM sizes: two bits for a grade, grade 0 lowest. A tree grows when tasks ask for
        /// 4^3 GiB or more.
        grown: u8 = "uint8" 8,
    }
}
