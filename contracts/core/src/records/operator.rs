use crate::word::Address;

packed! {
    /// The operator of a node.
    ///
    /// ```text
    /// | -  | place | joined_at | account |
    ///   32    24         40        160
    /// ```
    pub struct Operator {
        /// The account that joined the node.
        account: Address = "address" 160,
        /// When the node last joined, in seconds since 1970.
        joined_at: u64 = "uint40" 40,
        /// The node's place among the active nodes of its group and class.
        place: u32 = "uint24" 24,
    }
}
