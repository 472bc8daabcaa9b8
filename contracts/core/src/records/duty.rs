packed! {
    /// Where a node begins that was called to a validation group while it was busy.
    ///
    /// ```text
    /// |  -  | group |
    ///   224     32
    /// ```
    pub struct Duty {
        /// The group's place.
        group: u32 = "uint32" 32,
    }
}
