use crate::id::{QueueId, TaskId};

packed! {
    /// The assignment that a node has been singled out for.
    ///
    /// ```text
    /// |  -  | vain | task | until | queue | group |
    ///   88     32     40     32      32      32
    /// ```
    pub struct Assignment {
        /// The place of the validation group in which it begins when its task ends, if it was called while it was busy.
        group: u32 = "uint32" 32,
        /// While it waits for others: the queue whose first task it waits with.
        queue: QueueId = "uint32" 32,
        /// Until when.
        until: u32 = "uint32" 32,
        /// While it is reserved: the Pending task that it is reserved for.
        task: TaskId = "uint40" 40,
        /// When it was last let go by a draw that it was reserved for, since its last group; 0 if it was not.
        vain: u32 = "uint32" 32,
    }
}
