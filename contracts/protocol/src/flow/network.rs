//! A call's view of the network: the head word and the rules, read once and written once, and the call's work so far.

use crate::codec::Out;
use crate::host::{Host, Program};
use crate::store::accounts;
use crate::store::layout::{slot, HEAD, LIMITS, RULES, TERMS};
use crate::store::node::NodeHandle;
use crate::store::nodes::NodeStore;
use crate::store::ring::Ring;
use crate::store::suspended::Suspended;
use crate::Result;
use muster_core::id::NodeId;
use muster_core::record::{Head, Limits, Rules, Terms};

/// Words read by draws beyond which no excluded node is re-admitted, which may start one more task, and none queued at its creation.
const ROOM_READS: u32 = 96;
/// Words that all pre-downloads of a call together may read.
pub const SPREAD_READS: u32 = 32;
/// Reads charged for a draw that queues its task, which can write many words for the first time, in a young network above all.
pub(crate) const QUEUEING_READS: u32 = 32;

/// How much a call has done so far: by draws before its own work, or by that work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Served {
    /// So many draws, each of one node.
    Draws(u32),
    /// A draw of several nodes, or other work that costs as much: no more draws are made, and nodes that the call frees find queued tasks in later calls.
    Spent,
    /// As much as a call can do: nodes that it frees also leave, and begin in groups that they are called to, in later calls.
    Full,
}

impl Served {
    /// Encodes [`Served::Spent`] between programs: more draws than any call makes.
    const SPENT: u32 = 64;

    /// As another program says it.
    pub fn of(number: u32) -> Served {
        if number < Served::SPENT {
            Served::Draws(number)
        } else {
            Served::Spent
        }
    }

    /// As another program is told it.
    pub fn number(self) -> u32 {
        match self {
            Served::Draws(number) => number,
            Served::Spent | Served::Full => Served::SPENT,
        }
    }

    /// Whether more can be made, up to `most`.
    pub fn is_below(self, most: u32) -> bool {
        matches!(self, Served::Draws(number) if number < most)
    }

    /// Counts one more.
    pub fn count(&mut self) {
        if let Served::Draws(number) = self {
            *number += 1;
        }
    }
}

/// The state of a call: the words that are read once and written once, and of each subject its own part of the head word.
pub struct Network<'h, H: Host> {
    /// The chain.
    pub host: &'h mut H,
    /// Time of the block.
    pub now: u64,
    /// The rules, as they are now.
    pub(crate) rules: Rules,
    /// Tasks created so far.
    pub(crate) tasks: u64,
    /// Tasks queued now.
    pub(crate) queued: u32,
    pub(crate) ring: Ring,
    /// Sampled tasks whose validators wait to be drawn.
    pub(crate) validator_draws: Ring,
    pub(crate) node_store: NodeStore,
    pub(crate) suspended: Suspended,
    block: Option<u64>,
    stored: (Head, Rules),
    /// `Host::reads` when the call began.
    began: u32,
    /// How much this call has done.
    pub(crate) served: Served,
    /// Whether it has started a task in this program.
    pub(crate) started: bool,
    /// The remainder of [`SPREAD_READS`].
    pub(crate) spread: u32,
    /// The node that this call re-admitted last; 0 for none.
    pub(crate) readmitted: NodeId,
}

impl<'h, H: Host> Network<'h, H> {
    /// Reads head and rules.
    pub fn open(host: &'h mut H) -> Result<Self> {
        let began = host.reads();
        let (rules, head): (Rules, Head) = (host.get(slot(RULES)), host.get(slot(HEAD)));
        ensure!(rules.base > 0, NotInitialised);
        let now = host.now();
        Ok(Network {
            host,
            now,
            rules,
            tasks: head.tasks,
            queued: head.queued,
            ring: Ring::of_tasks(&head),
            validator_draws: Ring::of_validator_draws(&head),
            node_store: NodeStore::of(&head, &rules),
            suspended: Suspended::of(&head),
            block: None,
            stored: (head, rules),
            began,
            served: Served::Draws(0),
            started: false,
            spread: SPREAD_READS,
            readmitted: NodeId(0),
        })
    }

    /// The head word and the rules as they are now.
    pub(crate) fn words(&self) -> (Head, Rules) {
        let (mut head, mut rules) = (Head { tasks: self.tasks, queued: self.queued, ..Head::default() }, self.rules);
        self.ring.write_tasks(&mut head);
        self.validator_draws.write_validator_draws(&mut head);
        self.node_store.write(&mut head, &mut rules);
        self.suspended.write(&mut head);
        (head, rules)
    }

    /// The head word as it is now.
    pub fn head(&self) -> Head {
        self.words().0
    }

    /// Writes the head word and the rules where they changed.
    #[inline(never)]
    pub(crate) fn write(&mut self) {
        let (head, rules) = self.words();
        if head != self.stored.0 {
            self.host.put(slot(HEAD), &head);
        }
        if rules != self.stored.1 {
            self.host.put(slot(RULES), &rules);
        }
        self.stored = (head, rules);
    }

    /// Writes the head word and the rules where they changed.
    pub fn close(mut self) {
        self.write();
    }

    /// Has another program do something, see [`Host::ask`]; gives its answer.
    #[inline(never)]
    pub(crate) fn call_program(&mut self, program: Program, selector: [u8; 4], arguments: [u64; 3]) -> Option<u64> {
        self.write();
        let mut call = Out::starting(&selector, 96);
        arguments.into_iter().for_each(|argument| call.number(argument));
        let answer = self.host.ask(program, &call.0);
        let (head, rules): (Head, Rules) = (self.host.get(slot(HEAD)), self.host.get(slot(RULES)));
        (self.tasks, self.queued, self.rules) = (head.tasks, head.queued, rules);
        (self.ring, self.validator_draws) = (Ring::of_tasks(&head), Ring::of_validator_draws(&head));
        (self.node_store, self.suspended) = (NodeStore::of(&head, &rules), Suspended::of(&head));
        self.stored = (head, rules);
        answer
    }

    /// Gives another program charge of an unplaced node, or of a task; gives its answer.
    ///
    /// Reverts the whole call if that fails, which only too little gas can make it do: half done, the node would be lost.
    pub(crate) fn must_call(&mut self, program: Program, selector: [u8; 4], arguments: [u64; 3]) -> u64 {
        let answer = self.call_program(program, selector, arguments);
        assert!(answer.is_some(), "too little gas");
        answer.unwrap_or(0)
    }

    /// The rules, as they are now.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// All joined nodes together.
    pub fn node_store(&self) -> &NodeStore {
        &self.node_store
    }

    /// The ring of Pending tasks.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The ring of sampled tasks whose validators wait to be drawn.
    pub fn validator_draws(&self) -> &Ring {
        &self.validator_draws
    }

    /// Tasks queued now.
    pub fn queued(&self) -> u32 {
        self.queued
    }

    /// Counts words as read by this call that another program has read.
    pub(crate) fn begin_after(&mut self, words: u32) {
        self.began = self.began.wrapping_sub(words);
    }

    /// Words this call has read.
    pub(crate) fn reads(&self) -> u32 {
        self.host.reads().wrapping_sub(self.began)
    }

    /// Whether the draws that this call has made leave it room to re-admit a node, which may start a task.
    pub(crate) fn has_room(&self) -> bool {
        self.reads() <= ROOM_READS
    }

    /// Whether there is room to queue a task that it creates. There is none after a start, a draw of several nodes, or a re-admission, each
    /// of which may have done as much in another program.
    pub(crate) fn can_queue(&self) -> bool {
        !self.started && !self.is_spent() && self.readmitted.0 == 0 && self.has_room()
    }

    /// Whether nodes that this call frees find queued tasks in later calls.
    pub(crate) fn is_spent(&self) -> bool {
        !matches!(self.served, Served::Draws(_))
    }

    /// The L2 block in progress; asked of the chain once.
    pub fn block(&mut self) -> u64 {
        match self.block {
            Some(n) => n,
            None => *self.block.insert(self.host.block()),
        }
    }

    /// The block whose hash is to draw a task that is created, or drawn again, now.
    pub fn target(&mut self) -> u64 {
        let delay = self.rules.draw_delay as u64;
        self.block() + delay.max(1) - 1
    }

    pub(crate) fn limits(&self) -> Limits {
        self.host.get(slot(LIMITS))
    }

    /// Reads the parameters of creating, joining and leaving.
    pub fn terms(&self) -> Terms {
        self.host.get(slot(TERMS))
    }

    /// A stake in wei.
    pub fn wei(&self, stake_units: u64) -> u128 {
        accounts::wei(self.host, stake_units)
    }

    /// The node that the caller works for, as its operator or (then the second is true) as its worker.
    pub fn own_seat(&self) -> Result<(NodeHandle, bool)> {
        let caller = self.host.sender();
        let (node, works) = accounts::node_of(self.host, caller);
        ensure!(node.0 > 0, NotAnOperator(caller));
        Ok((NodeHandle::load(self.host, node), works))
    }
}
