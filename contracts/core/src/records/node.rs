use crate::id::GpuGroup;
use crate::weight;

packed! {
    /// A node, as draws read it.
    ///
    /// ```text
    /// | duties | parked | models | group | pos | score_count | score_sum | h_at | h  | stake | status |
    ///     8        8        8       32     24        8            16       32    64     48      8
    /// ```
    pub struct Node {
        /// [`Status`] as a number.
        status: u8 = "uint8" 8,
        /// Stake in stake units; 0 when quit.
        stake: u64 = "uint48" 48,
        /// Reliability factor at `h_at`, a wad.
        h: u64 = "uint64" 64,
        /// When `h` held, in seconds since 1970.
        h_at: u32 = "uint32" 32,
        /// Sum of the score pool.
        score_sum: u16 = "uint16" 16,
        /// Scores in the pool.
        score_count: u8 = "uint8" 8,
        /// Idle: its place in the list of its group and class. In the parking pool ([`Node::parked`]): its place there.
        /// Running a task: 1 if it is known to hold all of the task's models, else 0.
        pos: u32 = "uint24" 24,
        /// Its GPU group.
        group: GpuGroup = "uint32" 32,
        /// Entries in its model list, removed ones included.
        models: u8 = "uint8" 8,
        /// Why it is parked: one of [`Node::SET_BACK`], [`Node::WAITS`], [`Node::RESERVED`]; 0 if it is not.
        parked: u8 = "uint8" 8,
        /// Its duties to validation groups: [`Node::INACTIVE`], [`Node::HELD`], [`Node::CALLED`], and in the lower bits its open commitments.
        duties: u8 = "uint8" 8,
    }
}

impl Node {
    /// In `parked`: excluded, or held back by due draws; it is in the parking pool.
    pub const SET_BACK: u8 = 1;
    /// In `parked`: waiting in the parking pool for others, to start a queue's first task for several nodes.
    pub const WAITS: u8 = 2;
    /// In `parked`: reserved; it is in no list, and a candidate of one Pending task for several nodes only.
    pub const RESERVED: u8 = 3;

    /// In `duties`: a draw of validators met it paused, so it is not among the active nodes until it resumes.
    pub const INACTIVE: u8 = 0x20;
    /// In `duties`: it has as many open commitments as it may have, and gets no work until one is settled.
    pub const HELD: u8 = 0x40;
    /// In `duties`: called to a validation group while busy; it begins there when its task ends.
    pub const CALLED: u8 = 0x80;

    /// Its stake class, for a `base` in stake units.
    pub fn class(&self, base: u64) -> u8 {
        weight::class_of(self.stake, base)
    }

    /// Whether it is idle: any task can be given to it.
    pub fn idle(&self) -> bool {
        self.status == Status::Available as u8 && self.parked == 0
    }

    /// Whether it has a task. Its status alone does not say so: nodes that are held back on their way out, reserved, or held by open
    /// commitments have the status of a running node too.
    pub fn running(&self) -> bool {
        Status::new(self.status).running() && self.parked == 0 && !self.held()
    }

    /// Open commitments: those for which it can still be slashed.
    pub fn open(&self) -> u8 {
        self.duties & (Node::INACTIVE - 1)
    }

    /// Whether its open commitments keep it from work.
    pub fn held(&self) -> bool {
        self.duties & Node::HELD != 0
    }

    /// Whether it is not among the active nodes, although it has joined.
    pub fn inactive(&self) -> bool {
        self.duties & Node::INACTIVE != 0
    }

    /// Whether a place in a validation group waits for it.
    pub fn called(&self) -> bool {
        self.duties & Node::CALLED != 0
    }
}

/// A node's status. Kicked out and slashed nodes are [`Status::Quit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
    /// Not in the network.
    Quit = 0,
    /// Joined and without a task.
    Available = 1,
    /// Running a task.
    Busy = 2,
    /// Running a task, to be paused when it ends.
    PendingPause = 3,
    /// Running a task, to quit when it ends.
    PendingQuit = 4,
    /// Joined, takes no task.
    Paused = 5,
    /// Running a task, to be kicked out when it ends.
    PendingKickout = 6,
}

impl Status {
    /// The status with this number; numbers that stand for none read as [`Status::Quit`].
    pub fn new(n: u8) -> Status {
        match n {
            1 => Status::Available,
            2 => Status::Busy,
            3 => Status::PendingPause,
            4 => Status::PendingQuit,
            5 => Status::Paused,
            6 => Status::PendingKickout,
            _ => Status::Quit,
        }
    }

    /// Whether a node with this status has a task, or is held back after its end; see [`Node::running`].
    pub fn running(self) -> bool {
        matches!(self, Status::Busy | Status::PendingPause | Status::PendingQuit | Status::PendingKickout)
    }
}
