packed! {
    /// The task queue as a whole.
    ///
    /// ```text
    /// |  -  | graded | worst | groups |
    ///   144     24      64      24
    /// ```
    pub struct Queue {
        /// Queue groups ever used.
        groups: u32 = "uint24" 24,
        /// `!key` of the worst queued task of all groups, 0 or 1 if there is none.
        worst: u64 = "uint64" 64,
        /// Queued tasks that take three nodes.
        graded: u32 = "uint24" 24,
    }
}
