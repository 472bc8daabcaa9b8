packed! {
    /// Values that dispatching needs and few calls change: parameters (`muster_protocol::parameters` explains each), the best score there
    /// ever was, and the lowest stake class.
    ///
    /// ```text
    /// | open_most_ever | lowest | best | unbonding | tau | exclusion_ppm | boost_ppm | penalty_ppm | spread | scarce |
    ///          8           8       8        24        24        24            24           24         8        8
    /// | boost_pool | draw_delay | start_fee_bps | alpha_milli | base |
    ///       8            8              16             32        32
    /// ```
    pub struct Rules {
        /// Base of the stake classes, in stake units: the minimum stake at initialisation. Never changes.
        base: u64 = "uint32" 32,
        /// Parameter `alphaMilli`.
        alpha_milli: u32 = "uint32" 32,
        /// Parameter `startFeeBps`.
        start_fee_bps: u16 = "uint16" 16,
        /// Parameter `drawDelay`.
        draw_delay: u8 = "uint8" 8,
        /// Parameter `boostPool`.
        boost_pool: u8 = "uint8" 8,
        /// Parameter `scarce`.
        scarce: u8 = "uint8" 8,
        /// Parameter `spread`.
        spread: u8 = "uint8" 8,
        /// Parameter `penaltyPpm`.
        penalty_ppm: u32 = "uint24" 24,
        /// Parameter `boostPpm`.
        boost_ppm: u32 = "uint24" 24,
        /// Parameter `exclusionPpm`.
        exclusion_ppm: u32 = "uint24" 24,
        /// Parameter `tau`.
        tau: u32 = "uint24" 24,
        /// Parameter `unbonding`.
        unbonding: u32 = "uint24" 24,
        /// Not a parameter: an upper bound of every node's Q_long / Q_max so far, in 200ths. Values below 100 mean 100, as without scores.
        best: u8 = "uint8" 8,
        /// Not a parameter: the lowest stake class that has an active node.
        lowest: u8 = "uint8" 8,
        /// Not a parameter: the highest value that `openMost` ever had.
        open_most_ever: u8 = "uint8" 8,
    }
}
