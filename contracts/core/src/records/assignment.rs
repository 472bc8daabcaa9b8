use crate::id::{QueueId, TaskId};

packed! {
    /// The work that a node is called, waiting or reserved for.
    ///
    /// ```text
    /// |  -  | vain | task | until | queue | group |
    ///   88     32     40     32      32      32
    /// ```
    pub struct Assignment {
        /// Place of the validation group that called the node while it was busy. The node begins there when its task ends.
        group: u32 = "uint32" 32,
        /// While the node waits for others: the queue whose first task it waits for.
        queue: QueueId = "uint32" 32,
        /// When that wait ends, in seconds since 1970.
        until: u32 = "uint32" 32,
        /// While the node is reserved: the Pending task that it is reserved for.
        task: TaskId = "uint40" 40,
        /// When the node was last reserved for a task that did not begin then, since its last group; 0 if that never happened.
        vain: u32 = "uint32" 32,
    }
}
