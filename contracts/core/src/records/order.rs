packed! {
    /// A Pending, queued or running task: everything that was frozen at its creation.
    ///
    /// ```text
    /// | - | boosts | at | model | models | kind | gpu | vram | start_fee_bps | limit | estimate | id |
    ///   8     8      40     40      8       8      24    16          16          24       24      40
    /// ```
    pub struct Order {
        /// Task id, from 1.
        id: u64 = "uint40" 40,
        /// Estimated time in seconds.
        estimate: u32 = "uint24" 24,
        /// Seconds from start to deadline, grace included.
        limit: u32 = "uint24" 24,
        /// Start fee in ten-thousandths of the fee.
        start_fee_bps: u16 = "uint16" 16,
        /// Least VRAM in GiB, or with `gpu` the exact VRAM.
        vram: u16 = "uint16" 16,
        /// 0 for any GPU, else 1 + the required GPU model's number among those of its VRAM size.
        gpu: u32 = "uint24" 24,
        /// [`crate::value::Kind`] as a number.
        kind: u8 = "uint8" 8,
        /// Required models.
        models: u8 = "uint8" 8,
        /// The first required model; 0 if there is none.
        model: u64 = "uint40" 40,
        /// Pending: the L2 block whose hash decides the draw. Queued: since when. Running: the deadline.
        at: u64 = "uint40" 40,
        /// Running: whether its draw had candidates enough for its success to raise H.
        boosts: bool = "bool" 8,
    }
}
