use crate::id::NodeId;

packed! {
    /// The outcome of a task with a receipt; the next word holds the digest of its result. Both are written at creation, so the account
    /// that ends the task pays for no new word.
    ///
    /// ```text
    /// | -  | refund | code | ended | node | state |
    ///   80     96      8      40      24      8
    /// ```
    pub struct Receipt {
        /// One of this record's constants; 0 without a receipt.
        state: u8 = "uint8" 8,
        /// The node that ran it; 0 if it never started or has not ended.
        node: NodeId = "uint24" 24,
        /// When it ended, in seconds since 1970; 0 before.
        ended: u64 = "uint40" 40,
        /// The code of a reported error.
        code: u8 = "uint8" 8,
        /// The refund to its creator, in wei.
        refund: u128 = "uint96" 96,
    }
}

impl Receipt {
    /// Not ended.
    pub const OPEN: u8 = 1;
    /// Succeeded.
    pub const SUCCEEDED: u8 = 2;
    /// The node reported an error.
    pub const ERROR: u8 = 3;
    /// Aborted; the reason is added to this number.
    pub const ABORTED: u8 = 4;
    /// Validated, and no two answers were the same.
    pub const UNDECIDED: u8 = 9;
}
