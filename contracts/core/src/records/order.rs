use crate::id::{GpuGroup, Grade, ModelId, QueueId, TaskId};
use crate::record::MEMBERS;

packed! {
    /// A Pending, queued or running task: everything that was frozen at its creation.
    ///
    /// ```text
    /// | sample_bps | flags | moment | model | models | kind | group | start_fee_bps | limit | estimate | id |
    ///       16         8       40      40      8        8      32          16          24       24       40
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
        /// The GPUs it may go to, and the queue it waits in. On the node of a validation group's member: the group's place.
        group: GpuGroup = "uint32" 32,
        /// [`crate::value::Kind`] as a number; 16 times the images of a Stable Diffusion task that can be validated are added.
        kind: u8 = "uint8" 8,
        /// Required models.
        models: u8 = "uint8" 8,
        /// The first required model; 0 if there is none.
        model: ModelId = "uint40" 40,
        /// Pending: the L2 block whose hash decides the draw. Queued: since when. Running: the deadline.
        moment: u64 = "uint40" 40,
        /// Those of this record's constants that hold.
        flags: u8 = "uint8" 8,
        /// Sampled: the probability of its validation, in ten-thousandths. Of a task whose group is chosen by ratings: the most nodes
        /// that its fee is for, and 16 for each group that it was given to in vain.
        sample_bps: u16 = "uint16" 16,
    }
}

impl Order {
    /// Running: its draw had candidates enough for its success to raise H.
    pub const BOOSTS: u8 = 1;
    /// What becomes of it is written into storage.
    pub const RECEIPT: u8 = 2;
    /// Its node commits to its answer, which may then be sampled for validation: policy 1.
    pub const SAMPLED: u8 = 4;
    /// Running: its node has committed to its answer.
    pub const COMMITTED: u8 = 8;
    /// Running: it was sampled, and its validators are being drawn.
    pub const CALLING: u8 = 16;
    /// Pending: its nodes are chosen by their ratings, and the next draw forms their group.
    pub const CHOSEN: u8 = 16;
    /// It is a validation group's, which says who runs it.
    pub const MEMBER: u8 = 32;
    /// A validation group's, or of a Pending task whose nodes are chosen: its scope had nodes enough for scores and slashes. On the node of
    /// a member: those can fall on it.
    pub const SCORED: u8 = 64;
    /// It takes several nodes at once: policies 2 and 3.
    pub const REPLICATED: u8 = 128;

    /// Whether some of these flags are set.
    pub fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// What kind of task it is: [`crate::value::Kind`] as a number.
    pub fn sort(&self) -> u8 {
        self.kind & 15
    }

    /// The queue it would wait in.
    pub fn queue(&self) -> QueueId {
        let grade = match (self.is(Order::REPLICATED), self.images()) {
            (false, _) => Grade::Single,
            _ if self.rated() => Grade::Rated,
            (true, 0) => Grade::Alike,
            (true, _) => Grade::Mixed,
        };
        QueueId::new(self.group, grade)
    }

    /// Whether its nodes are chosen by their ratings: policy 3.
    pub fn rated(&self) -> bool {
        self.is(Order::REPLICATED) && self.sample_bps > 0
    }

    /// Of a validation group's order: [`Order::SCORED`] if its members can be scored and slashed. Those chosen by their ratings are only
    /// rated.
    pub fn liability(&self) -> u8 {
        if self.rated() {
            0
        } else {
            self.flags & Order::SCORED
        }
    }

    /// Nodes that its fee is for: the most that a rated one is given to at once.
    pub fn nodes(&self) -> u32 {
        match self.is(Order::REPLICATED) {
            true if self.sample_bps > 0 => self.sample_bps as u32 & 15,
            true => MEMBERS as u32,
            false => 1,
        }
    }

    /// Groups that a rated task was given to in vain.
    pub fn attempts(&self) -> u8 {
        (self.sample_bps >> 4) as u8
    }

    /// A fee's part for one node, which values in the queue, bounds and slashes go by. Rounded down.
    pub fn part(&self, fee: u128) -> u128 {
        match self.nodes() {
            1 => fee,
            nodes => fee / nodes as u128,
        }
    }

    /// Images that an answer has, each with a perceptual hash; 0 for a task whose answers have to be equal.
    pub fn images(&self) -> u8 {
        self.kind >> 4
    }
}
