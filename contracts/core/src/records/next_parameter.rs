packed! {
    /// A proposed value of a parameter.
    ///
    /// ```text
    /// |  -  | at | value |
    ///   152   40     64
    /// ```
    pub struct NextParameter {
        /// The proposed value, in the parameter's unit.
        value: u64 = "uint64" 64,
        /// Earliest time it can take effect, in seconds since 1970; 0 where nothing is proposed.
        at: u64 = "uint40" 40,
    }
}
