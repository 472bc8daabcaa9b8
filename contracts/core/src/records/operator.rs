use crate::word::Address;

packed! {
    /// Who runs a node.
    ///
    /// ```text
    /// | -  | joined_at | account |
    ///   56       40        160
    /// ```
    pub struct Operator {
        /// The account that joined it.
        account: Address = "address" 160,
        /// When it last joined.
        joined_at: u64 = "uint40" 40,
    }
}
