use crate::id::{ModelId, NodeId};

packed! {
    /// Eight nodes of a list, and which of them are known to hold a model: one that was looked for among them before, or that a node
    /// held for the task that it has ended. Only idle nodes are known to; a node that says that it has removed a model is not known any more.
    ///
    /// ```text
    /// | -  | held | model | n7 | n6 | n5 | n4 | n3 | n2 | n1 | n0 |
    ///   16    8       40    24   24   24   24   24   24   24   24
    /// ```
    pub struct Listed {
        /// The first node.
        n0: NodeId = "uint24" 24,
        /// The second.
        n1: NodeId = "uint24" 24,
        /// The third.
        n2: NodeId = "uint24" 24,
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
        /// The model; 0 if none was looked for.
        model: ModelId = "uint40" 40,
        /// Bit i: node i is known to hold it.
        held: u8 = "uint8" 8,
    }
}
