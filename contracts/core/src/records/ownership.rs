use crate::word::Address;

packed! {
    /// The owner, and the settings fixed at initialisation.
    ///
    /// ```text
    /// | renounced | upgrade_delay | stake_unit | owner |
    ///       8             24           64      160
    /// ```
    pub struct Ownership {
        /// Before initialisation the deployer, the only account that may install. Then the account that may set parameters and propose
        /// programs.
        owner: Address = "address" 160,
        /// Wei in a stake unit; not 0 once initialised.
        stake_unit: u64 = "uint64" 64,
        /// Seconds between a proposal and its effect, for programs and for parameters that affect stakes.
        upgrade_delay: u32 = "uint24" 24,
        /// Whether changes of programs have ended for good.
        renounced: bool = "bool" 8,
    }
}
