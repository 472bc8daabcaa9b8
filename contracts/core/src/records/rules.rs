packed! {
    /// What dispatching needs and few calls change: parameters, and the best score there ever was.
    ///
    /// ```text
    /// | -  | best | tau | exclusion_ppm | boost_ppm | penalty_ppm | spread | scarce |
    ///   40    8      24        24            24           24         8        8
    /// | boost_pool | draw_delay | start_fee_bps | alpha_milli | base |
    ///       8            8              16             32        32
    /// ```
    pub struct Rules {
        /// Base of the stake classes, in granules: the minimum stake at initialisation. Never changes.
        base: u64 = "uint32" 32,
        /// Queue capacity per joined node, in thousandths.
        alpha_milli: u32 = "uint32" 32,
        /// Start fee in ten-thousandths of the fee.
        start_fee_bps: u16 = "uint16" 16,
        /// Blocks between creation and draw; 0 draws at creation.
        draw_delay: u8 = "uint8" 8,
        /// Eligible candidates that a draw needs for the task's success to raise H.
        boost_pool: u8 = "uint8" 8,
        /// Fewer available holders of a model than this start a pre-download.
        scarce: u8 = "uint8" 8,
        /// Holders a pre-download aims at.
        spread: u8 = "uint8" 8,
        /// Factor on H at a timeout, in millionths.
        penalty_ppm: u32 = "uint24" 24,
        /// Added to H at a success, in millionths.
        boost_ppm: u32 = "uint24" 24,
        /// H below this excludes, in millionths.
        exclusion_ppm: u32 = "uint24" 24,
        /// Time constant of H's recovery, in seconds.
        tau: u32 = "uint24" 24,
        /// What no node's Q_long / Q_max ever was above, in 200ths; below 100 it stands for 100, as without scores. No parameter.
        best: u8 = "uint8" 8,
    }
}
