use crate::word::Address;

packed! {
    /// The operator of a node.
    ///
    /// ```text
    /// | -  | place | joined_at | account |
    ///   32    24         40        160
    /// ```
    pub struct Operator {
        /// The account that joined it.
        account: Address = "address" 160,
        /// When it last joined.
        joined_at: u64 = "uint40" 40,
        /// Place among the active nodes of its group and class.
        place: u32 = "uint24" 24,
    }
}
