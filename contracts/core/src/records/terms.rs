packed! {
    /// Parameters that creating tasks and joining need.
    ///
    /// ```text
    /// | paused | min_price | min_stake | grace | limit_max | limit_min |
    ///     8          64          48        16        16          16
    /// | fine_tune_max | gpt_unit | gpt_overhead | sd_unit | sd_overhead |
    ///         24           16           16           16          16
    /// ```
    pub struct Terms {
        /// Stable Diffusion: seconds a task takes before the first image.
        sd_overhead: u16 = "uint16" 16,
        /// Stable Diffusion: seconds per image.
        sd_unit: u16 = "uint16" 16,
        /// GPT: seconds a task takes.
        gpt_overhead: u16 = "uint16" 16,
        /// GPT: seconds per unit.
        gpt_unit: u16 = "uint16" 16,
        /// Most seconds a creator may state for fine-tuning.
        fine_tune_max: u32 = "uint24" 24,
        /// Shortest time limit of a running task, in seconds.
        limit_min: u16 = "uint16" 16,
        /// Longest time limit of a running task, in seconds.
        limit_max: u16 = "uint16" 16,
        /// Seconds added to every time limit, for outages of the sequencer.
        grace: u16 = "uint16" 16,
        /// Minimum stake, in granules.
        min_stake: u64 = "uint48" 48,
        /// Least price of an estimated second, in wei.
        min_price: u64 = "uint64" 64,
        /// Whether new tasks and joins are stopped.
        paused: bool = "bool" 8,
    }
}
