packed! {
    /// The GPU models of one VRAM size.
    ///
    /// ```text
    /// |  -  | trios | manned | models |
    ///   160    32      32       32
    /// ```
    pub struct Size {
        /// How many there ever were.
        models: u32 = "uint32" 32,
        /// Those with a joined node now.
        manned: u32 = "uint32" 32,
        /// Those that are listed and have three joined nodes now.
        trios: u32 = "uint32" 32,
    }
}
