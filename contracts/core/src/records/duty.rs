use crate::id::{QueueId, TaskId};

packed! {
    /// What a node has been singled out for.
    ///
    /// ```text
    /// |  -  | task | until | queue | group |
    ///   120    40     32      32      32
    /// ```
    pub struct Duty {
        /// The place of the validation group in which it begins when its task ends, if it was called while it was busy.
        group: u32 = "uint32" 32,
        /// While it waits for others: the queue whose first task it waits with.
        queue: QueueId = "uint32" 32,
        /// Until when.
        until: u32 = "uint32" 32,
        /// While it is reserved: the Pending task that it is reserved for.
        task: TaskId = "uint40" 40,
    }
}
