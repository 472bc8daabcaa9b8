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
        /// What holds of it, a bit each: see its functions.
        flags: u8 = "uint8" 8,
        /// What else its [`Policy`] says. Sampled: the probability of its validation, in ten-thousandths. Of a task whose group is chosen by
        /// ratings: the most nodes that its fee is for, and 16 for each group that it was given to in vain.
        sample_bps: u16 = "uint16" 16,
    }
}

/// How a task is made sure of, with what was frozen of it: its redundancy policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// One node runs it, and what it answers counts.
    Single,
    /// One node runs it and commits to its answer, which is then validated with this probability, in ten-thousandths.
    Sampled {
        /// The probability.
        bps: u16,
    },
    /// Three nodes run it at once.
    Replicated,
    /// Nodes run it at once that are chosen by their ratings.
    Rated {
        /// The most nodes that its fee is for.
        most: u8,
        /// Groups that it was given to in vain.
        attempts: u8,
    },
}

impl Policy {
    /// Its number in a task's specification.
    pub fn number(&self) -> u8 {
        match self {
            Policy::Single => 0,
            Policy::Sampled { .. } => 1,
            Policy::Replicated => 2,
            Policy::Rated { .. } => 3,
        }
    }

    /// Flags and `sample_bps` of an order under it.
    #[inline(always)]
    fn encode(self) -> (u8, u16) {
        match self {
            Policy::Single => (0, 0),
            Policy::Sampled { bps } => (Order::SAMPLED, bps),
            Policy::Replicated => (Order::SEVERAL, 0),
            Policy::Rated { most, attempts } => (Order::SEVERAL, most as u16 + attempts as u16 * Order::ATTEMPT),
        }
    }
}

/// How far the task is whose order stands beside its node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The node runs it.
    Running,
    /// The node has committed to its answer, which a lot may sample for validation.
    Committed,
    /// It was sampled, and its validators are being drawn.
    Calling,
    /// The node runs it as a member of the validation group at this place.
    Member {
        /// The group's place.
        place: u32,
    },
}

/// Which bits mean what, and when: nobody else knows.
impl Order {
    /// Running: its draw had candidates enough for its success to raise H.
    const BOOSTS: u8 = 1;
    /// What becomes of it is written into storage.
    const RECEIPT: u8 = 2;
    /// Its node commits to its answer, which may then be sampled for validation: policy 1.
    const SAMPLED: u8 = 4;
    /// Running: its node has committed to its answer.
    const COMMITTED: u8 = 8;
    /// Running: it was sampled, and its validators are being drawn.
    const CALLING: u8 = 16;
    /// Pending: its nodes are chosen by their ratings, and the next draw forms their group.
    const CHOSEN: u8 = 16;
    /// It is a validation group's, which says who runs it.
    const MEMBER: u8 = 32;
    /// A validation group's, or of a Pending task whose nodes are chosen: its scope had nodes enough for scores and slashes. On the node of
    /// a member: those can fall on it.
    const SCORED: u8 = 64;
    /// It takes several nodes at once: policies 2 and 3.
    const SEVERAL: u8 = 128;
    /// In `sample_bps` of a rated task: one more group that it was given to in vain.
    const ATTEMPT: u16 = 16;

    fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    fn flagged(self, flag: u8, on: bool) -> Order {
        Order { flags: if on { self.flags | flag } else { self.flags & !flag }, ..self }
    }

    // ---------------------------------------------------------------- what was frozen

    /// The same under a policy, of an order that is under none.
    #[inline(always)]
    pub fn under(self, policy: Policy) -> Order {
        let (flags, sample_bps) = policy.encode();
        Order { flags: self.flags | flags, sample_bps, ..self }
    }

    /// Its policy; on a member's node it is not known.
    #[inline(always)]
    pub fn policy(&self) -> Policy {
        match () {
            () if self.rated() => Policy::Rated { most: self.sample_bps as u8 & 15, attempts: (self.sample_bps >> 4) as u8 },
            () if self.is(Order::SEVERAL) => Policy::Replicated,
            () if self.is(Order::SAMPLED) => Policy::Sampled { bps: self.sample_bps },
            () => Policy::Single,
        }
    }

    /// Whether it takes several nodes at once.
    #[inline(always)]
    pub fn several(&self) -> bool {
        self.is(Order::SEVERAL)
    }

    /// Whether its nodes are chosen by their ratings.
    #[inline(always)]
    pub fn rated(&self) -> bool {
        self.is(Order::SEVERAL) && self.sample_bps > 0
    }

    /// The same with a receipt, or without.
    pub fn with_receipt(self, on: bool) -> Order {
        self.flagged(Order::RECEIPT, on)
    }

    /// Whether what becomes of it is written into storage.
    pub fn has_receipt(&self) -> bool {
        self.is(Order::RECEIPT)
    }

    /// The same with scores and slashes, or without.
    pub fn with_scores(self, on: bool) -> Order {
        self.flagged(Order::SCORED, on)
    }

    /// Whether scores and slashes can fall on who runs it.
    pub fn scored(&self) -> bool {
        self.is(Order::SCORED)
    }

    /// What kind of task it is: [`crate::value::Kind`] as a number.
    pub fn sort(&self) -> u8 {
        self.kind & 15
    }

    /// The queue it would wait in.
    pub fn queue(&self) -> QueueId {
        let grade = match (self.policy(), self.images()) {
            (Policy::Single | Policy::Sampled { .. }, _) => Grade::Single,
            (Policy::Rated { .. }, _) => Grade::Rated,
            (Policy::Replicated, 0) => Grade::Alike,
            (Policy::Replicated, _) => Grade::Mixed,
        };
        QueueId::new(self.group, grade)
    }

    /// Nodes that its fee is for: the most that a rated one is given to at once.
    pub fn nodes(&self) -> u32 {
        match self.policy() {
            Policy::Single | Policy::Sampled { .. } => 1,
            Policy::Replicated => MEMBERS as u32,
            Policy::Rated { most, .. } => most as u32,
        }
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

    // ---------------------------------------------------------------- Pending

    /// The same as its nodes are chosen, scored or not: the next draw forms their group.
    pub fn as_chosen(self, scored: bool) -> Order {
        self.flagged(Order::CHOSEN, true).with_scores(scored)
    }

    /// Whether its nodes are chosen, and the next draw forms their group; of a Pending task.
    pub fn is_chosen(&self) -> bool {
        self.is(Order::CHOSEN)
    }

    /// The same for another group, after one in vain; of a rated task.
    pub fn after_attempt(self) -> Order {
        let sample_bps = self.sample_bps + Order::ATTEMPT;
        Order { flags: self.flags & (Order::RECEIPT | Order::SEVERAL), sample_bps, ..self }
    }

    // ---------------------------------------------------------------- beside a node

    /// How far the task is that the node runs beside which this stands.
    #[inline(always)]
    pub fn phase(&self) -> Phase {
        match () {
            () if self.is(Order::MEMBER) => Phase::Member { place: self.group.0 },
            () if self.is(Order::CALLING) => Phase::Calling,
            () if self.is(Order::COMMITTED) => Phase::Committed,
            () => Phase::Running,
        }
    }

    /// Whether it ends by a commitment and not by an answer: a sampled task, or a group's.
    pub fn commits(&self) -> bool {
        self.is(Order::SAMPLED | Order::MEMBER)
    }

    /// The same as a node starts it that has until `deadline`, its success raising H or not.
    pub fn as_started(self, deadline: u64, boosts: bool) -> Order {
        Order { moment: deadline, ..self.flagged(Order::BOOSTS, boosts) }
    }

    /// Whether its success raises H.
    pub fn boosts(&self) -> bool {
        self.is(Order::BOOSTS)
    }

    /// The same as its node has committed to its answer.
    pub fn as_committed(self) -> Order {
        self.flagged(Order::COMMITTED, true)
    }

    /// The same as its validators are being drawn.
    pub fn as_calling(self) -> Order {
        self.flagged(Order::CALLING, true)
    }

    /// When it was started.
    pub fn began(&self) -> u64 {
        self.moment.saturating_sub(self.limit as u64)
    }

    // ---------------------------------------------------------------- a validation group's

    /// The same as a validation group has it that is formed now, scored or not.
    pub fn as_groups(self, now: u64, scored: bool) -> Order {
        let kept = Order { flags: self.flags & (Order::RECEIPT | Order::SAMPLED | Order::SEVERAL), moment: now, ..self };
        kept.with_scores(scored)
    }

    /// Of a group's: whether its members can be scored and slashed. Those chosen by their ratings are only rated.
    pub fn liable(&self) -> bool {
        self.scored() && !self.rated()
    }

    /// Of a group's: the same as it stands beside a member that has until `deadline`, `limit` seconds after its start.
    pub fn as_members(self, place: u32, limit: u32, deadline: u64) -> Order {
        let flags = if self.liable() { Order::MEMBER | Order::SCORED } else { Order::MEMBER };
        Order { limit, moment: deadline, group: GpuGroup(place), flags, ..self }
    }
}
