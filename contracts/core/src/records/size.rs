packed! {
    /// The GPU models of one VRAM size.
    ///
    /// ```text
    /// |  -  | trios | manned | models |
    ///   160    32      32       32
    /// ```
    pub struct Size {
        /// GPU models that ever joined with this size.
        models: u32 = "uint32" 32,
        /// Of these, the models with a joined node now.
        manned: u32 = "uint32" 32,
        /// Of these, the listed models with three joined nodes now.
        trios: u32 = "uint32" 32,
    }
}
