use crate::id::NodeId;

packed! {
    /// A draw of validators that waits.
    ///
    /// ```text
    /// |  -  | tries | node |
    ///   224     8      24
    /// ```
    pub struct ValidatorDraw {
        /// The node whose task was sampled.
        node: NodeId = "uint24" 24,
        /// Draws made so far that stayed undecided.
        tries: u8 = "uint8" 8,
    }
}
