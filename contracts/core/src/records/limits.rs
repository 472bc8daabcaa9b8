packed! {
    /// Parameters that only rare calls need; `muster_protocol::parameters` explains each, with its unit.
    ///
    /// ```text
    /// | - | least_stake_ever | hold_time | slash_images | hamming_most | score_pool | open_most | sample_delay | slash_times |
    ///   8          32              8            8              8             8            8            8              8
    /// | sample_bps | download_time | reveal_window | sample_window | group_fee | queue_time | kickout_milli |
    ///       16             16              16              16            48          32             16
    /// ```
    pub struct Limits {
        /// Parameter `kickoutMilli`.
        kickout_milli: u16 = "uint16" 16,
        /// Parameter `queueTime`.
        queue_time: u32 = "uint32" 32,
        /// Parameter `groupFee`.
        group_fee: u64 = "uint48" 48,
        /// Parameter `sampleWindow`.
        sample_window: u16 = "uint16" 16,
        /// Parameter `revealWindow`.
        reveal_window: u16 = "uint16" 16,
        /// Parameter `downloadTime`.
        download_time: u16 = "uint16" 16,
        /// Parameter `sampleBps`.
        sample_bps: u16 = "uint16" 16,
        /// Parameter `slashTimes`.
        slash_times: u8 = "uint8" 8,
        /// Parameter `sampleDelay`.
        sample_delay: u8 = "uint8" 8,
        /// Parameter `openMost`.
        open_most: u8 = "uint8" 8,
        /// Parameter `scorePool`.
        score_pool: u8 = "uint8" 8,
        /// Parameter `hammingMost`.
        hamming_most: u8 = "uint8" 8,
        /// Parameter `slashImages`.
        slash_images: u8 = "uint8" 8,
        /// Parameter `holdTime`.
        hold_time: u8 = "uint8" 8,
        /// Not a parameter: the lowest value that `minStake` ever had, in stake units, and at most its value at initialisation.
        least_stake_ever: u32 = "uint32" 32,
    }
}
