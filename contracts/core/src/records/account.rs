use crate::id::NodeId;

packed! {
    /// An account: what Muster owes it, and its node.
    ///
    /// ```text
    /// | - | kicked | node | release | unbonding | credit |
    ///   8     8       24       40         48       128
    /// ```
    pub struct Account {
        /// Can be withdrawn now, in wei.
        credit: u128 = "uint128" 128,
        /// Returned stake waiting for `release`, in granules.
        unbonding: u64 = "uint48" 48,
        /// When `unbonding` can be withdrawn.
        release: u64 = "uint40" 40,
        /// Number of the account's node; 0 if it never joined.
        node: NodeId = "uint24" 24,
        /// Whether the account's node was kicked out; it can never join again.
        kicked: bool = "bool" 8,
    }
}
