use crate::word::Address;

packed! {
    /// A proposed owner, or a proposed treasury and when it can take effect.
    ///
    /// ```text
    /// | -  | at | account |
    ///   56   40     160
    /// ```
    pub struct Proposal {
        /// The proposed account; 0 for none.
        account: Address = "address" 160,
        /// Earliest time it can take effect, in seconds since 1970.
        at: u64 = "uint40" 40,
    }
}
