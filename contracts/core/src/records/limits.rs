packed! {
    /// Parameters that only rare calls need; `muster_protocol::parameters` says what each is, and in what unit.
    ///
    /// ```text
    /// |  -  | group_fee | queue_time | kickout_milli | unbonding |
    ///   128       48          32             16            32
    /// ```
    pub struct Limits {
        /// Parameter `unbonding`.
        unbonding: u32 = "uint32" 32,
        /// Parameter `kickoutMilli`.
        kickout_milli: u16 = "uint16" 16,
        /// Parameter `queueTime`.
        queue_time: u32 = "uint32" 32,
        /// Parameter `groupFee`.
        group_fee: u64 = "uint48" 48,
    }
}
