//! A transaction's view of the network: the head word and the rules, read once and written once,
//! and what every state-changing call serves before its own work.

use crate::abi::{emit, IMuster::*};
use crate::codec::Out;
use crate::draw::{Draw, Rng};
use crate::host::{Host, Program, Task};
use crate::layout::{slot, HEAD, RULES};
use crate::nodes::Next;
use crate::parking::Parking;
use crate::programs::{beginDutyCall, formNextCall, formRatedCall, placeFreedCall, queueFirstCall, serveCall, takeQueuedCall};
use crate::ring::Ring;
use crate::roster::Roster;
use crate::Result;
use alloy_sol_types::SolCall;
use muster_core::id::NodeId;
use muster_core::record::{Head, Order, Rules};
use muster_core::word::Word;

/// Pending tasks that any state-changing call draws before its own work.
pub const SERVED_PER_CALL: u32 = 2;
/// Pending tasks that a call draws which needs all due draws made.
pub const SETTLED_PER_CALL: u32 = 8;
/// Excluded nodes whose time has come that any state-changing call re-admits.
pub const READMITTED_PER_CALL: u32 = 1;

/// Words (`Host::reads`) that a call reads for draws which are not its own purpose: another is made only if it will hardly go beyond.
pub const SERVING_READS: u32 = 208;
/// What a draw is taken to read, and the start it leads to, without models or with one: some 20 where nothing is unusual.
const DRAW_READS: u32 = 24;
/// The same with several models, whose holders have to be looked at one by one.
const DRAW_READS_SEVERAL: u32 = 96;
/// What stands for the draws that a call has made once it has made one of several nodes: that is dear enough to be its last.
const SPENT: u32 = 64;
/// Words read by draws beyond which no excluded node is re-admitted, which may start one more task, and none queued at its creation.
const ROOM_READS: u32 = 96;
/// What stands for a task that a call creates beside others, of the words that it could read for draws.
const CREATION_READS: u32 = 8;
/// Gas that no call goes beyond, whatever others have left to be done; those that choose how much they do, `dispatch` and `createTasks`,
/// apart. Calls that make others' draws, or free a node that may then find work of any kind, demand it. docs/gas.md has the measurements.
pub const CALL_GAS: u64 = 1_000_000;
/// What a commitment, or the reveal of a task that was not sampled, demands: it makes no draw, and frees one node at most.
pub const FREEING_GAS: u64 = 300_000;
/// What the reveal in a group demands: the last one judges, and three nodes may find work.
pub const JUDGING_GAS: u64 = 600_000;
/// What a call demands that queues a task, ends a queued one, or calls validators.
pub const QUEUEING_GAS: u64 = 200_000;
/// What `dispatch` demands for each draw after the first, which are seldom dear; it stops before one that could be.
pub const MORE_DRAW_GAS: u64 = 100_000;

/// Words that all pre-downloads of a call together may read.
pub const SPREAD_READS: u32 = 32;

/// The state of a call: what is read once and written once, and of each subject its own part of the head word.
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
    pub(crate) calls: Ring,
    pub(crate) roster: Roster,
    pub(crate) parking: Parking,
    block: Option<u64>,
    stored: (Head, Rules),
    /// `Host::reads` when the call began.
    began: u32,
    /// Draws made by this call.
    served: u32,
    /// Whether it has started a task in this program.
    pub(crate) started: bool,
    /// What is left of [`SPREAD_READS`].
    pub(crate) spread: u32,
    /// The node that this call re-admitted last; 0 for none.
    pub(crate) readmitted: NodeId,
}

/// A draw whose hash is known: where it waits, and its order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    /// A Pending task's.
    Task(Word, Order),
    /// The draw of a sampled task's validators.
    Call(Word, Order),
}

impl Due {
    /// Whether it is one of those that are never dear: of one node, and at most one model.
    fn is_cheap(&self) -> bool {
        matches!(self, Due::Task(_, order) if !order.several() && order.models <= 1)
    }
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
            calls: Ring::of_calls(&head),
            roster: Roster::of(&head, &rules),
            parking: Parking::of(&head),
            block: None,
            stored: (head, rules),
            began,
            served: 0,
            started: false,
            spread: SPREAD_READS,
            readmitted: NodeId(0),
        })
    }

    /// Opens the network for a state-changing call and serves what is due: two tasks, fewer if the first was dear, and one
    /// excluded node.
    pub fn open_and_serve(host: &'h mut H) -> Result<Self> {
        let mut net = Network::open(host)?;
        net.serve_up_to(SERVED_PER_CALL);
        if net.has_room() {
            net.readmit(READMITTED_PER_CALL);
        }
        Ok(net)
    }

    /// The head word and the rules as they are now.
    fn words(&self) -> (Head, Rules) {
        let (mut head, mut rules) = (Head { tasks: self.tasks, queued: self.queued, ..Head::default() }, self.rules);
        self.ring.write_tasks(&mut head);
        self.calls.write_calls(&mut head);
        self.roster.write(&mut head, &mut rules);
        self.parking.write(&mut head);
        (head, rules)
    }

    /// The head word as it is now.
    pub fn head(&self) -> Head {
        self.words().0
    }

    /// Writes the head word and the rules where they changed.
    #[inline(never)]
    fn write(&mut self) {
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
    fn ask(&mut self, program: Program, selector: [u8; 4], arguments: [u64; 3]) -> Option<u64> {
        self.write();
        let mut call = Out::starting(&selector, 96);
        arguments.into_iter().for_each(|argument| call.number(argument));
        let answer = self.host.ask(program, &call.0);
        let (head, rules): (Head, Rules) = (self.host.get(slot(HEAD)), self.host.get(slot(RULES)));
        (self.tasks, self.queued, self.rules) = (head.tasks, head.queued, rules);
        (self.ring, self.calls) = (Ring::of_tasks(&head), Ring::of_calls(&head));
        (self.roster, self.parking) = (Roster::of(&head, &rules), Parking::of(&head));
        self.stored = (head, rules);
        answer
    }

    /// Lets a node, whose record is written and which stands nowhere, begin in the validation group that it was called to.
    pub(crate) fn begin_duty(&mut self, node: NodeId) {
        if self.host.is(Program::Calls) {
            self.begin(node);
        } else {
            self.entrust(Program::Calls, beginDutyCall::SELECTOR, [node.0 as u64, 0, 0]);
        }
    }

    /// Starts the best queued task on a node whose record is written and which stands nowhere; gives whether there was one, else nothing
    /// has changed.
    pub(crate) fn take_queued(&mut self, node: NodeId) -> bool {
        if self.host.starts_tasks() {
            self.start_queued(node)
        } else {
            self.entrust(Program::Work, takeQueuedCall::SELECTOR, [node.0 as u64, 0, 0]) >> 32 != 0
        }
    }

    /// Finds queued work for a node whose record is written and which stands nowhere, while tasks are queued that take three nodes;
    /// gives whether there was any, else nothing has changed.
    pub(crate) fn place_freed(&mut self, node: NodeId, next: Next) -> bool {
        if self.host.is(Program::Work) {
            self.find_work(node, next == Next::WorkOrWait)
        } else {
            let arguments = [node.0 as u64, (next == Next::WorkOrWait) as u64, 0];
            self.entrust(Program::Work, placeFreedCall::SELECTOR, arguments) >> 32 != 0
        }
    }

    /// Gives another program charge of a node that stands nowhere, or of a task; gives its answer.
    ///
    /// Reverts the whole call if that fails, which only too little gas can make it do: half done, the node would be lost.
    pub(crate) fn entrust(&mut self, program: Program, selector: [u8; 4], arguments: [u64; 3]) -> u64 {
        let answer = self.ask(program, selector, arguments);
        assert!(answer.is_some(), "too little gas");
        answer.unwrap_or(0)
    }

    /// The rules, as they are now.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// All joined nodes together.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The ring of Pending tasks.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The ring of sampled tasks whose validators wait to be drawn.
    pub fn calls(&self) -> &Ring {
        &self.calls
    }

    /// Tasks queued now.
    pub fn queued(&self) -> u32 {
        self.queued
    }

    /// Words this call has read.
    fn reads(&self) -> u32 {
        self.host.reads().wrapping_sub(self.began)
    }

    /// Whether the draws that this call has made leave it room to re-admit a node, which may start a task.
    fn has_room(&self) -> bool {
        self.reads() <= ROOM_READS
    }

    /// Whether there is room to queue a task that it creates: not after a start, a draw of several nodes, or who was re-admitted, which
    /// may have done as much in another program.
    pub(crate) fn can_queue(&self) -> bool {
        !self.started && !self.is_spent() && self.readmitted.0 == 0 && self.has_room()
    }

    /// Whether this call has made a draw of several nodes before its own work.
    pub(crate) fn is_spent(&self) -> bool {
        self.served >= SPENT
    }

    /// Lets whoever is freed from here on find work in later calls.
    pub(crate) fn spend(&mut self) {
        self.served = SPENT;
    }

    /// The L2 block in progress; asked of the chain once.
    pub fn block(&mut self) -> u64 {
        match self.block {
            Some(n) => n,
            None => *self.block.insert(self.host.block()),
        }
    }

    // ---------------------------------------------------------------- what is due

    /// Makes due draws until the call has made `most`, or the next could read more than [`SERVING_READS`]; the first always.
    #[inline(never)]
    fn serve_up_to(&mut self, most: u32) {
        if !self.host.starts_tasks() {
            if self.served >= most || self.next_due().is_none() {
                return;
            }
            let read = self.reads();
            let answer = self.ask(Program::Work, serveCall::SELECTOR, [most.into(), self.served.into(), read.into()]);
            // If it took more gas than there is, whoever needs the draws made will say so.
            self.served = answer.map_or(most, |answer| (answer >> 32) as u32);
            return;
        }
        while self.served < most {
            let Some(next) = self.next_due() else { return };
            let (reads, last) = match next {
                Due::Task(_, order) if order.several() => (SERVING_READS, true),
                Due::Task(_, order) if order.models > 1 => (DRAW_READS_SEVERAL, false),
                Due::Task(..) => (DRAW_READS, false),
                Due::Call(..) => (SERVING_READS, true),
            };
            // Who needs all made, and has not served before, does much beside, and is refused while one is due that is dear enough alone.
            if last && most > SERVED_PER_CALL {
                return;
            }
            if self.served > 0 && self.reads() + reads > SERVING_READS {
                return;
            }
            if !self.serve_next(next) {
                return;
            }
            if last {
                self.served = SPENT;
            }
        }
    }

    /// Does what another program asks: makes draws, as one that has made `served` and read so many words goes on; gives how many it
    /// has made then.
    pub fn serve_for(&mut self, most: u32, served: u32, read: u32) -> u32 {
        self.served = served;
        self.began = self.began.wrapping_sub(read);
        self.serve_up_to(most);
        self.served
    }

    /// Whether draws wait that are decided by a hash which is known already.
    ///
    /// While they do, nothing may change who their candidates are or what those weigh: whoever could
    /// would know what he chooses. So calls that would are refused ([`Network::settled`]), nodes whose
    /// task ends are held back, and no excluded node is re-admitted, until the draws are made.
    pub fn draws_due(&mut self) -> bool {
        self.next_due().is_some()
    }

    /// Whether validators wait to be drawn by a hash which is known already.
    pub(crate) fn call_due(&mut self) -> bool {
        self.first_due(self.calls).is_some()
    }

    /// The next draw whose hash is known: of the first Pending task and the first call the one whose block is earlier, the task's
    /// of equal ones.
    pub(crate) fn next_due(&mut self) -> Option<Due> {
        let task = self.first_due(self.ring).map(|(slot, order)| Due::Task(slot, order));
        let call = self.first_due(self.calls).map(|(slot, order)| Due::Call(slot, order));
        match (&task, &call) {
            (Some(Due::Task(_, task)), Some(Due::Call(_, called))) if called.moment < task.moment => call,
            (None, _) => call,
            _ => task,
        }
    }

    #[inline(never)]
    fn first_due(&mut self, ring: Ring) -> Option<(Word, Order)> {
        if ring.is_empty() {
            return None;
        }
        let first = ring.first(self.host);
        (first.1.moment < self.block()).then_some(first)
    }

    /// Makes the draws that are due, at most [`SETTLED_PER_CALL`] in all; refuses if some are left.
    #[inline(never)]
    pub fn settled(&mut self) -> Result<()> {
        self.serve_up_to(SETTLED_PER_CALL);
        ensure!(!self.draws_due(), DrawsDue(self.ring.len() + self.calls.len()));
        Ok(())
    }

    /// Makes cheap draws that are due, of one node and at most one model, for a call that creates so many tasks; refuses if some are left.
    #[inline(never)]
    pub(crate) fn settle_cheaply(&mut self, tasks: u32) -> Result<()> {
        if self.next_due().is_some_and(|due| due.is_cheap()) {
            // What it creates leaves the less for draws.
            self.began = self.began.wrapping_sub(tasks * CREATION_READS);
            self.serve_up_to(SETTLED_PER_CALL);
        }
        ensure!(!self.draws_due(), DrawsDue(self.ring.len() + self.calls.len()));
        Ok(())
    }

    /// The block whose hash is to draw a task that is created, or drawn again, now.
    pub fn target(&mut self) -> u64 {
        let delay = self.rules.draw_delay as u64;
        self.block() + delay.max(1) - 1
    }

    /// Makes up to `most` draws whose block has come; gives how many.
    ///
    /// First come, first drawn. One that stays undecided, or whose block's hash is no longer known,
    /// gets a new block and goes to the end; one of nodes chosen by their ratings can take two.
    pub fn serve(&mut self, most: u32) -> u32 {
        let mut served = 0;
        while served < most {
            let Some(next) = self.next_due() else { break };
            let bound = if next.is_cheap() { FREEING_GAS } else { CALL_GAS };
            // The first is what the caller has brought the gas for.
            if served > 0 && self.host.gas() < bound {
                break;
            }
            if !self.serve_next(next) {
                break;
            }
            served += 1;
        }
        served
    }

    /// Makes the next draw; false if it takes more gas than there is.
    #[inline(never)]
    fn serve_next(&mut self, next: Due) -> bool {
        self.served += 1;
        let first = match next {
            Due::Task(slot, order) if !order.several() => (slot, order),
            Due::Task(_, order) => return self.serve_several(order.rated()),
            Due::Call(..) => return self.serve_several(false),
        };
        let task = self.ring.take(self.host, first);
        self.draw_by(&task, task.order.moment);
        true
    }

    /// Makes the next draw, which is of several nodes, `rated` ones or not; false if it takes more gas than there is.
    fn serve_several(&mut self, rated: bool) -> bool {
        if rated && self.host.is(Program::Reputation) {
            self.form_next_rated();
            return true;
        }
        if !rated && self.host.is(Program::Calls) {
            self.form_next();
            return true;
        }
        let (program, selector) =
            if rated { (Program::Reputation, formRatedCall::SELECTOR) } else { (Program::Calls, formNextCall::SELECTOR) };
        self.ask(program, selector, [0; 3]).is_some()
    }

    /// Queues the first Pending task, for which there are no nodes.
    pub fn queue_first(&mut self) {
        if self.host.starts_tasks() {
            let first = self.ring.first(self.host);
            let task = self.ring.take(self.host, first);
            self.enqueue(&task);
        } else {
            self.entrust(Program::Work, queueFirstCall::SELECTOR, [0; 3]);
        }
    }

    /// Takes the first Pending task off the ring if its block has come: for whoever compares other ways of choosing with the
    /// contract's. What is chosen goes to [`Network::place`].
    pub fn take_due(&mut self) -> Option<Task> {
        let first = self.first_due(self.ring)?;
        Some(self.ring.take(self.host, first))
    }

    /// Gives a task a new block and puts it at the end of the ring.
    #[inline(never)]
    pub(crate) fn redraw(&mut self, task: &Task) {
        let block = self.target();
        self.ring.push(self.host, task, block);
        emit::<TaskRedrawn>(self.host, (task.order.id,), (block,));
    }

    /// Draws a task by the hash of a block and starts or queues it; where the draw stays undecided, or the hash is not known any more, it
    /// gets a new block.
    #[inline(never)]
    pub(crate) fn draw_by(&mut self, task: &Task, block: u64) {
        let drawn = self.host.block_hash(block).is_some_and(|hash| {
            let mut rng = Rng::new(self.host, hash, task.order.id);
            let draw = self.draw(task, &mut rng);
            self.place(task, draw, Some(&mut rng))
        });
        if !drawn {
            self.redraw(task);
        }
    }

    /// Starts a task on the node that was drawn, or queues it where there is none; false if the draw stayed undecided.
    #[inline(always)]
    pub fn place(&mut self, task: &Task, draw: Draw, rng: Option<&mut Rng>) -> bool {
        match draw {
            Draw::Node(seat, candidates) => {
                let left = self.leave_sampler(&seat);
                self.start(task, seat, candidates, left, rng);
            }
            Draw::Nobody => self.enqueue(task),
            Draw::Undecided => return false,
        }
        true
    }
}
