packed! {
    /// A priority pool: the queue of one group, or the excluded nodes.
    ///
    /// ```text
    /// | -  | used | index | free | slots | live | worst | best |
    ///   24    8       24     24      24     24      64     64
    /// ```
    pub struct Pool {
        /// Greatest key; 0 when empty.
        best: u64 = "uint64" 64,
        /// Least key; 0 when empty.
        worst: u64 = "uint64" 64,
        /// Number of entries.
        live: u32 = "uint24" 24,
        /// Most places in use at once since the pool was last empty.
        slots: u32 = "uint24" 24,
        /// 1 + the free place that is used next; 0 if none of those below `slots` is free.
        free: u32 = "uint24" 24,
        /// 1 + the pool's place among all queue groups; 0 for a pool never used.
        index: u32 = "uint24" 24,
        /// Always 1 once written, so that the word never falls back to zero.
        used: u8 = "uint8" 8,
    }
}
