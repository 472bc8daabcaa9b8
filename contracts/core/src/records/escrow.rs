use crate::word::Address;

packed! {
    /// Who pays for a task, and how much.
    ///
    /// ```text
    /// | fee | creator |
    ///    96     160
    /// ```
    pub struct Escrow {
        /// The application.
        creator: Address = "address" 160,
        /// The escrowed fee, in wei.
        fee: u128 = "uint96" 96,
    }
}
