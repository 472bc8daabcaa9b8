packed! {
    /// Parameters that only rare calls need.
    ///
    /// ```text
    /// |  -  | group_fee | queue_time | kickout_milli | unbonding |
    ///   128       48          32             16            32
    /// ```
    pub struct Limits {
        /// Seconds before a returned stake can be withdrawn.
        unbonding: u32 = "uint32" 32,
        /// Q_long below this, in thousandths, kicks out.
        kickout_milli: u16 = "uint16" 16,
        /// Seconds a task may stay queued before anyone can end it.
        queue_time: u32 = "uint32" 32,
        /// Price of a new GPU name, in granules.
        group_fee: u64 = "uint48" 48,
    }
}
