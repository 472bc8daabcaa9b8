use crate::id::{GpuGroup, ModelId, TaskId};

packed! {
    /// A Pending, queued or running task: everything that was frozen at its creation.
    ///
    /// ```text
    /// | -  | flags | moment | model | models | kind | group | start_fee_bps | limit | estimate | id |
    ///   16     8       40      40      8        8      32          16          24       24       40
    /// ```
    pub struct Order {
        /// Task id.
        id: TaskId = "uint40" 40,
        /// Estimated time in seconds.
        estimate: u32 = "uint24" 24,
        /// Seconds from start to deadline, grace included.
        limit: u32 = "uint24" 24,
        /// Start fee in ten-thousandths of the fee.
        start_fee_bps: u16 = "uint16" 16,
        /// The GPUs it may go to, and the queue it waits in.
        group: GpuGroup = "uint32" 32,
        /// [`crate::value::Kind`] as a number.
        kind: u8 = "uint8" 8,
        /// Required models.
        models: u8 = "uint8" 8,
        /// The first required model; 0 if there is none.
        model: ModelId = "uint40" 40,
        /// Pending: the L2 block whose hash decides the draw. Queued: since when. Running: the deadline.
        moment: u64 = "uint40" 40,
        /// Of [`Order::BOOSTS`] and [`Order::RECEIPT`] those that hold.
        flags: u8 = "uint8" 8,
    }
}

impl Order {
    /// Running: its draw had candidates enough for its success to raise H.
    pub const BOOSTS: u8 = 1;
    /// What becomes of it is written into storage.
    pub const RECEIPT: u8 = 2;

    /// Whether its success raises H.
    pub fn boosts(&self) -> bool {
        self.flags & Order::BOOSTS != 0
    }
}
