packed! {
    /// Idle (or active) nodes of a GPU group by stake class. The same layout counts the GPU groups with active nodes of each class.
    ///
    /// ```text
    /// | used | c9 | c8 | c7 | c6 | c5 | c4 | c3 | c2 | c1 | c0 |
    ///    16    24   24   24   24   24   24   24   24   24   24
    /// ```
    pub struct Classes {
        /// Nodes in class 0.
        c0: u32 = "uint24" 24,
        /// Nodes in class 1.
        c1: u32 = "uint24" 24,
        /// Nodes in class 2.
        c2: u32 = "uint24" 24,
        /// Nodes in class 3.
        c3: u32 = "uint24" 24,
        /// Nodes in class 4.
        c4: u32 = "uint24" 24,
        /// Nodes in class 5.
        c5: u32 = "uint24" 24,
        /// Nodes in class 6.
        c6: u32 = "uint24" 24,
        /// Nodes in class 7.
        c7: u32 = "uint24" 24,
        /// Nodes in class 8.
        c8: u32 = "uint24" 24,
        /// Nodes in class 9.
        c9: u32 = "uint24" 24,
        /// 1 once written, so that the word never falls back to zero. Of idle nodes, 2 more once all have left the group, and 256 times
        /// the bound that stands for them in `branches`; of active nodes, 1 + the joined ones that are not among them.
        used: u16 = "uint16" 16,
    }
}
