use crate::id::NodeId;

packed! {
    /// Nodes that wait with the first task of a queue, or that are reserved for a Pending task. Some may have gone since: their
    /// own records say what holds.
    ///
    /// ```text
    /// |  -  | used | n2 | n1 | n0 |
    ///   176     8    24   24   24
    /// ```
    pub struct Reserved {
        /// The first; 0 for none.
        n0: NodeId = "uint24" 24,
        /// The second; 0 for none.
        n1: NodeId = "uint24" 24,
        /// The third; 0 for none, as always where nodes wait.
        n2: NodeId = "uint24" 24,
        /// Always 1 once written, so that the word never falls back to zero.
        used: u8 = "uint8" 8,
    }
}

impl Reserved {
    /// These, at most three.
    pub fn of(nodes: &[NodeId]) -> Reserved {
        let node = |i: usize| nodes.get(i).copied().unwrap_or_default();
        Reserved { n0: node(0), n1: node(1), n2: node(2), used: 1 }
    }

    /// All of them; 0 where there is none.
    pub fn all(&self) -> [NodeId; 3] {
        [self.n0, self.n1, self.n2]
    }
}
