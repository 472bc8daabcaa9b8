use crate::word::Address;

packed! {
    /// The creator of a task, and the fee.
    ///
    /// ```text
    /// | slash_times | fee | creator |
    ///       8         88     160
    /// ```
    pub struct Escrow {
        /// The application.
        creator: Address = "address" 160,
        /// The escrowed fee, in wei, less any start fee that was spent.
        fee: u128 = "uint88" 88,
        /// Parameter `slashTimes` at the task's creation, in fees; 0 for a task that slashes nobody.
        slash_times: u8 = "uint8" 8,
    }
}
