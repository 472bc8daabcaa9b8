use crate::id::{GpuGroup, Grade, ModelId, QueueId, TaskId};
use crate::record::MEMBERS;

packed! {
    /// A Pending, queued or running task: the terms frozen at its creation.
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
        /// The GPU group that it requires, and the queue it waits in. On the node of a validation group's member: the group's place.
        group: GpuGroup = "uint32" 32,
        /// [`crate::value::Kind`] as a number, plus 16 times the number of images of a Stable Diffusion task that can be validated.
        kind: u8 = "uint8" 8,
        /// Number of required models.
        models: u8 = "uint8" 8,
        /// The first required model; 0 if there is none.
        model: ModelId = "uint40" 40,
        /// Pending: the L2 block whose hash decides the draw. Queued: since when. Running: the deadline. Times are seconds since 1970.
        moment: u64 = "uint40" 40,
        /// Flags, one bit each: see the constants below.
        flags: u8 = "uint8" 8,
        /// The rest of its [`Policy`]. Sampled: the probability of validation, in ten-thousandths. Rated: the most nodes that its fee is for,
        /// plus 16 for each group that ended without a majority, and 256 for each draw that stayed undecided.
        sample_bps: u16 = "uint16" 16,
    }
}

/// Draws of a rated task that may stay undecided; after so many it is queued.
///
/// Where nodes hold many models each and stand at many VRAM sizes, three draws of nine nodes in five stay undecided, so one task in some
/// thousands is queued by chance.
pub const UNDECIDED_DRAWS: u8 = 16;

/// A task's redundancy policy, with its frozen terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Policy 0, single: one node runs the task, and any answer counts.
    Single,
    /// Policy 1, sampled: one node runs the task and commits to its answer. A lot decides whether two more validate it.
    Sampled {
        /// The probability of validation, in ten-thousandths.
        bps: u16,
    },
    /// Policy 2, replicated: three nodes run the task at once.
    Replicated,
    /// Policy 3, rated: a group of nodes chosen by their ratings runs the task.
    Rated {
        /// The most nodes that its fee is for.
        most: u8,
        /// Groups that ended without a majority.
        attempts: u8,
        /// Draws that stayed undecided, and were made again.
        undecided: u8,
    },
}

impl Policy {
    /// The policy's number in a task's specification (`redundancy`).
    pub fn number(&self) -> u8 {
        match self {
            Policy::Single => 0,
            Policy::Sampled { .. } => 1,
            Policy::Replicated => 2,
            Policy::Rated { .. } => 3,
        }
    }

    /// `flags` and `sample_bps` of an order under this policy.
    #[inline(always)]
    fn encode(self) -> (u8, u16) {
        match self {
            Policy::Single => (0, 0),
            Policy::Sampled { bps } => (Order::SAMPLED, bps),
            Policy::Replicated => (Order::SEVERAL, 0),
            Policy::Rated { most, attempts, undecided } => {
                (Order::SEVERAL, most as u16 + attempts as u16 * Order::ATTEMPT + undecided as u16 * Order::VAIN_DRAW)
            }
        }
    }
}

/// Progress of a running task, read from the order beside its node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The node runs it.
    Running,
    /// The node has committed to its answer; a lot may sample it for validation.
    Committed,
    /// The task was sampled, and its validators are being drawn.
    Calling,
    /// The node runs it as a member of the validation group at this place.
    Member {
        /// The group's place.
        place: u32,
    },
}

/// The meaning of the flags, which no other code knows. Two share the value 8, and two share 16: each is used where the other is not.
impl Order {
    /// Running: a success raises H, because the draw or the queue's scope had enough nodes.
    const BOOSTS: u8 = 1;
    /// The task has a receipt: its outcome is written into storage.
    const RECEIPT: u8 = 2;
    /// Policy 1: the node commits to its answer, and the task may be sampled for validation.
    const SAMPLED: u8 = 4;
    /// Running: the node has committed to its answer.
    const COMMITTED: u8 = 8;
    /// Of a group, and beside a member's node: its members can be slashed.
    const LIABLE: u8 = 8;
    /// Running: the task was sampled, and its validators are being drawn.
    const CALLING: u8 = 16;
    /// Pending, policy 3: the nodes are chosen, and the next draw forms their group.
    const CHOSEN: u8 = 16;
    /// The order belongs to a validation group, whose record names the nodes.
    const MEMBER: u8 = 32;
    /// Of a group, or of a Pending task whose nodes are chosen: its scope had enough nodes for scores and slashes.
    const SCORED: u8 = 64;
    /// Policies 2 and 3: the task takes several nodes at once.
    const SEVERAL: u8 = 128;
    /// In `sample_bps` of a rated task: one more group that ended without a majority.
    const ATTEMPT: u16 = 16;
    /// Likewise: one more draw that stayed undecided.
    const VAIN_DRAW: u16 = 256;

    fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    fn flagged(self, flag: u8, on: bool) -> Order {
        Order { flags: if on { self.flags | flag } else { self.flags & !flag }, ..self }
    }

    // ---------------------------------------------------------------- the frozen terms

    /// Puts an order without a policy under `policy`.
    #[inline(always)]
    pub fn under(self, policy: Policy) -> Order {
        let (flags, sample_bps) = policy.encode();
        Order { flags: self.flags | flags, sample_bps, ..self }
    }

    /// The policy. The order beside a group member's node does not hold it.
    #[inline(always)]
    pub fn policy(&self) -> Policy {
        match () {
            () if self.rated() => {
                let [undecided, low] = self.sample_bps.to_be_bytes();
                Policy::Rated { most: low & 15, attempts: low >> 4, undecided }
            }
            () if self.is(Order::SEVERAL) => Policy::Replicated,
            () if self.is(Order::SAMPLED) => Policy::Sampled { bps: self.sample_bps },
            () => Policy::Single,
        }
    }

    /// Whether the task takes several nodes at once: policies 2 and 3.
    #[inline(always)]
    pub fn several(&self) -> bool {
        self.is(Order::SEVERAL)
    }

    /// Whether the nodes are chosen by their ratings: policy 3.
    #[inline(always)]
    pub fn rated(&self) -> bool {
        self.is(Order::SEVERAL) && self.sample_bps > 0
    }

    /// Sets whether the task has a receipt.
    pub fn with_receipt(self, on: bool) -> Order {
        self.flagged(Order::RECEIPT, on)
    }

    /// Whether the task has a receipt: its outcome is written into storage.
    pub fn has_receipt(&self) -> bool {
        self.is(Order::RECEIPT)
    }

    /// Sets whether the task's nodes can be scored and slashed.
    pub fn with_scores(self, on: bool) -> Order {
        self.flagged(Order::SCORED, on)
    }

    /// Whether the task's nodes can be scored and slashed.
    pub fn scored(&self) -> bool {
        self.is(Order::SCORED)
    }

    /// The kind of task: [`crate::value::Kind`] as a number.
    pub fn sort(&self) -> u8 {
        self.kind & 15
    }

    /// The queue in which the task waits if it cannot start.
    pub fn queue(&self) -> QueueId {
        let grade = match (self.policy(), self.images()) {
            (Policy::Single | Policy::Sampled { .. }, _) => Grade::Single,
            (Policy::Rated { .. }, _) => Grade::Rated,
            (Policy::Replicated, 0) => Grade::Alike,
            (Policy::Replicated, _) => Grade::Mixed,
        };
        QueueId::new(self.group, grade)
    }

    /// Number of nodes that the fee is for; of a rated task the most in one group.
    pub fn nodes(&self) -> u32 {
        match self.policy() {
            Policy::Single | Policy::Sampled { .. } => 1,
            Policy::Replicated => MEMBERS as u32,
            Policy::Rated { most, .. } => most as u32,
        }
    }

    /// A fee's part for one node, in wei, rounded down. Values in the queue, bounds of fees and slashes use it.
    pub fn part(&self, fee: u128) -> u128 {
        match self.nodes() {
            1 => fee,
            nodes => fee / nodes as u128,
        }
    }

    /// Number of images in an answer, each with a perceptual hash; 0 for a task whose answers must be equal bit by bit.
    pub fn images(&self) -> u8 {
        self.kind >> 4
    }

    // ---------------------------------------------------------------- Pending

    /// Marks that the nodes are chosen, and whether their group is scored; the next draw forms the group.
    pub fn as_chosen(self, scored: bool) -> Order {
        self.flagged(Order::CHOSEN, true).with_scores(scored)
    }

    /// Whether a Pending task's nodes are chosen; the next draw forms their group.
    pub fn is_chosen(&self) -> bool {
        self.is(Order::CHOSEN)
    }

    /// The order for another draw, after one that stayed undecided; none if a rated task has had [`UNDECIDED_DRAWS`] of them.
    ///
    /// Those of other policies are not counted: a few draws find one node or three, also among the worst nodes that there can be.
    pub fn after_undecided(self) -> Option<Order> {
        match self.policy() {
            Policy::Rated { undecided, .. } if undecided + 1 >= UNDECIDED_DRAWS => None,
            Policy::Rated { .. } => Some(Order { sample_bps: self.sample_bps + Order::VAIN_DRAW, ..self }),
            Policy::Single | Policy::Sampled { .. } | Policy::Replicated => Some(self),
        }
    }

    /// A rated task's order for another group, after one that ended without a majority.
    pub fn after_attempt(self) -> Order {
        let sample_bps = self.sample_bps + Order::ATTEMPT;
        Order { flags: self.flags & (Order::RECEIPT | Order::SEVERAL), sample_bps, ..self }
    }

    // ---------------------------------------------------------------- beside a node

    /// Progress of the task; for the order beside a node.
    #[inline(always)]
    pub fn phase(&self) -> Phase {
        match () {
            () if self.is(Order::MEMBER) => Phase::Member { place: self.group.0 },
            () if self.is(Order::CALLING) => Phase::Calling,
            () if self.is(Order::COMMITTED) => Phase::Committed,
            () => Phase::Running,
        }
    }

    /// Whether the node must commit to its answer instead of submitting it: in a sampled task or in a group.
    pub fn commits(&self) -> bool {
        self.is(Order::SAMPLED | Order::MEMBER)
    }

    /// The order when a node starts the task: `deadline` in seconds since 1970, and whether a success raises H.
    pub fn as_started(self, deadline: u64, boosts: bool) -> Order {
        Order { moment: deadline, ..self.flagged(Order::BOOSTS, boosts) }
    }

    /// Whether a success raises H.
    pub fn boosts(&self) -> bool {
        self.is(Order::BOOSTS)
    }

    /// Marks that the node has committed to its answer.
    pub fn as_committed(self) -> Order {
        self.flagged(Order::COMMITTED, true)
    }

    /// Marks that the validators are being drawn.
    pub fn as_calling(self) -> Order {
        self.flagged(Order::CALLING, true)
    }

    /// When the task was started, in seconds since 1970.
    pub fn began(&self) -> u64 {
        self.moment.saturating_sub(self.limit as u64)
    }

    // ---------------------------------------------------------------- a validation group's

    /// The order of a validation group that is formed now, scored or not; `slash_images` is the parameter. Members chosen by their ratings
    /// are only rated.
    pub fn as_groups(self, now: u64, scored: bool, slash_images: bool) -> Order {
        let kept = Order { flags: self.flags & (Order::RECEIPT | Order::SAMPLED | Order::SEVERAL), moment: now, ..self };
        let liable = scored && !self.rated() && (self.images() == 0 || slash_images);
        kept.with_scores(scored).flagged(Order::LIABLE, liable)
    }

    /// Whether a group's members can be slashed, so that their commitments are counted.
    pub fn liable(&self) -> bool {
        self.is(Order::LIABLE)
    }

    /// A group's order as it is kept beside a member's node: its `deadline`, `limit` seconds after its start.
    pub fn as_members(self, place: u32, limit: u32, deadline: u64) -> Order {
        let flags = Order::MEMBER | self.flags & Order::LIABLE;
        Order { limit, moment: deadline, group: GpuGroup(place), flags, ..self }
    }
}
