use crate::id::{ModelId, NodeId};

packed! {
    /// Eight nodes of a list, and which of them are known to hold one model. That model was looked for among them before, or was used by
    /// a node's last task. Only idle nodes are marked; a node that reports the model removed loses its mark.
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
        /// The model; 0 if there is none yet.
        model: ModelId = "uint40" 40,
        /// Bit i: node i is known to hold it.
        held: u8 = "uint8" 8,
    }
}
