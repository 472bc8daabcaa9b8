packed! {
    /// Parameters that dispatching needs; `muster_protocol::parameters` says what each is, and in what unit.
    ///
    /// ```text
    /// | -  | tau | exclusion_ppm | boost_ppm | penalty_ppm | spread | scarce |
    ///   48    24         24            24           24         8        8
    /// | boost_pool | draw_delay | start_fee_bps | alpha_milli | base |
    ///       8            8              16             32        32
    /// ```
    pub struct Rules {
        /// Base of the stake classes, in granules: the minimum stake at initialisation. Never changes.
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
    }
}
