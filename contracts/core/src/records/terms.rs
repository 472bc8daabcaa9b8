packed! {
    /// Parameters that creating tasks and joining need; `muster_protocol::parameters` explains each, with its unit.
    ///
    /// ```text
    /// | paused | min_price | min_stake | grace | limit_max | limit_min |
    ///     8          64          48        16        16          16
    /// | fine_tune_max | gpt_unit | gpt_overhead | sd_unit | sd_overhead |
    ///         24           16           16           16          16
    /// ```
    pub struct Terms {
        /// Parameter `sdOverhead`.
        sd_overhead: u16 = "uint16" 16,
        /// Parameter `sdUnit`.
        sd_unit: u16 = "uint16" 16,
        /// Parameter `gptOverhead`.
        gpt_overhead: u16 = "uint16" 16,
        /// Parameter `gptUnit`.
        gpt_unit: u16 = "uint16" 16,
        /// Parameter `fineTuneMax`.
        fine_tune_max: u32 = "uint24" 24,
        /// Parameter `limitMin`.
        limit_min: u16 = "uint16" 16,
        /// Parameter `limitMax`.
        limit_max: u16 = "uint16" 16,
        /// Parameter `grace`.
        grace: u16 = "uint16" 16,
        /// Parameter `minStake`.
        min_stake: u64 = "uint48" 48,
        /// Parameter `minPrice`.
        min_price: u64 = "uint64" 64,
        /// Whether new tasks and joins are stopped.
        paused: bool = "bool" 8,
    }
}
