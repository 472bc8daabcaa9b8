use crate::id::NodeId;

/// Most nodes that wait for a task or are reserved for it.
pub const RESERVED_MOST: usize = 9;

packed! {
    /// Nodes that wait for the first task of a queue, or are reserved for a Pending task. Some may have left since: the nodes' own
    /// records decide.
    ///
    /// ```text
    /// | -  | n8 | n7 | n6 | n5 | n4 | n3 | used | n2 | n1 | n0 |
    ///   32   24   24   24   24   24   24    8     24   24   24
    /// ```
    pub struct Reserved {
        /// The first; 0 for none.
        n0: NodeId = "uint24" 24,
        /// The second; 0 for none, as below.
        n1: NodeId = "uint24" 24,
        /// The third.
        n2: NodeId = "uint24" 24,
        /// Always 1 once written, so that the word never falls back to zero.
        used: u8 = "uint8" 8,
        /// The fourth.
        n3: NodeId = "uint24" 24,
        /// The fifth.
        n4: NodeId = "uint24" 24,
        /// The sixth.
        n5: NodeId = "uint24" 24,
        /// The seventh.
        n6: NodeId = "uint24" 24,
        /// The eighth.
        n7: NodeId = "uint24" 24,
        /// The ninth.
        n8: NodeId = "uint24" 24,
    }
}

impl Reserved {
    /// A word of these nodes, at most [`RESERVED_MOST`].
    pub fn of(nodes: &[NodeId]) -> Reserved {
        let n: [NodeId; RESERVED_MOST] = core::array::from_fn(|i| nodes.get(i).copied().unwrap_or_default());
        let [n0, n1, n2, n3, n4, n5, n6, n7, n8] = n;
        Reserved { n0, n1, n2, used: 1, n3, n4, n5, n6, n7, n8 }
    }

    /// All nine places; 0 where a place is empty.
    pub fn all(&self) -> [NodeId; RESERVED_MOST] {
        [self.n0, self.n1, self.n2, self.n3, self.n4, self.n5, self.n6, self.n7, self.n8]
    }
}
