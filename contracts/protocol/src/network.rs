//! A transaction's view of the network: the head word and the rules, read once and written once,
//! and what every state-changing call serves before its own work.

use crate::abi::{emit, IMuster::*};
use crate::draw::{Draw, Rng};
use crate::host::{offset, Host, ModelSet, Task};
use crate::layout::{entry, slot, HEAD, PENDING, RULES};
use crate::Result;
use muster_core::record::{Head, Order, Rules};
use muster_core::word::{Packed, Word};

/// Pending tasks there can be at once.
pub const RING: u16 = 4_096;
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
/// Words read by draws beyond which no excluded node is re-admitted: it may start one more task.
const READMITTING_READS: u32 = 96;
/// Words that all pre-downloads of a call together may read.
pub const SPREAD_READS: u32 = 32;

/// Tasks waiting for their draw.
pub fn pending(head: &Head) -> u32 {
    ((RING + head.pending_tail - head.pending_head) % RING) as u32
}

/// The state of a call.
pub struct Network<'h, H: Host> {
    /// The chain.
    pub host: &'h mut H,
    /// The head word; written by [`Network::close`].
    pub head: Head,
    /// The rules, as they are now.
    pub rules: Rules,
    /// Time of the block.
    pub now: u64,
    block: Option<u64>,
    stored: Head,
    /// `Host::reads` when the call began.
    began: u32,
    /// Pending tasks drawn by this call.
    served: u32,
    /// Nodes in the list that a node was last taken out of, which is to start a task.
    pub(crate) left: u32,
    /// What is left of [`SPREAD_READS`].
    pub(crate) spread: u32,
    /// The node that this call re-admitted last; 0 for none.
    pub(crate) readmitted: u32,
}

impl<'h, H: Host> Network<'h, H> {
    /// Reads head and rules.
    pub fn open(host: &'h mut H) -> Result<Self> {
        let began = host.reads();
        let rules: Rules = host.get(slot(RULES));
        ensure!(rules.base > 0, NotInitialised);
        let head: Head = host.get(slot(HEAD));
        let now = host.now();
        Ok(Network {
            host,
            head,
            rules,
            now,
            block: None,
            stored: head,
            began,
            served: 0,
            left: 0,
            spread: SPREAD_READS,
            readmitted: 0,
        })
    }

    /// Opens the network for a state-changing call and serves what is due: two tasks, fewer if the first was dear, and one
    /// excluded node.
    pub fn open_and_serve(host: &'h mut H) -> Result<Self> {
        let mut net = Network::open(host)?;
        net.serve_up_to(SERVED_PER_CALL);
        if net.reads() <= READMITTING_READS {
            net.readmit(READMITTED_PER_CALL);
        }
        Ok(net)
    }

    /// Words this call has read.
    fn reads(&self) -> u32 {
        self.host.reads().wrapping_sub(self.began)
    }

    /// Draws due tasks until the call has drawn `most`, or the next could read more than [`SERVING_READS`]; the first always.
    #[inline(never)]
    fn serve_up_to(&mut self, most: u32) {
        while self.served < most {
            let Some((place, order)) = self.next_due() else { return };
            let next = if order.models > 1 { DRAW_READS_SEVERAL } else { DRAW_READS };
            if self.served > 0 && self.reads() + next > SERVING_READS {
                return;
            }
            self.serve_next(place, order);
        }
    }

    /// Whether tasks wait whose draw is decided by a hash that is known already.
    ///
    /// While they do, nothing may change who their candidates are or what those weigh: whoever could
    /// would know what he chooses. So calls that would are refused ([`Network::settled`]), nodes whose
    /// task ends are held back, and no excluded node is re-admitted, until the draws are made.
    pub fn draws_due(&mut self) -> bool {
        self.next_due().is_some()
    }

    /// Slot and order of the next Pending task, if its hash is known.
    fn next_due(&mut self) -> Option<(Word, Order)> {
        if self.pending() == 0 {
            return None;
        }
        let place = entry(self.host, PENDING, self.head.pending_head as u64);
        let order: Order = self.host.get(offset(place, 1));
        (order.at < self.block()).then_some((place, order))
    }

    /// Makes the draws that are due, at most [`SETTLED_PER_CALL`] in all; refuses if some are left.
    #[inline(never)]
    pub fn settled(&mut self) -> Result<()> {
        self.serve_up_to(SETTLED_PER_CALL);
        ensure!(!self.draws_due(), DrawsDue(self.pending()));
        Ok(())
    }

    /// Writes the head word if it changed.
    pub fn close(self) {
        if self.head != self.stored {
            self.host.store(slot(HEAD), self.head.pack());
        }
    }

    /// The L2 block in progress; asked of the chain once.
    pub fn block(&mut self) -> u64 {
        match self.block {
            Some(n) => n,
            None => *self.block.insert(self.host.block()),
        }
    }

    /// Tasks waiting for their draw.
    pub fn pending(&self) -> u32 {
        pending(&self.head)
    }

    /// Whether the ring of Pending tasks has no place left.
    pub fn ring_full(&self) -> bool {
        self.pending() as u16 == RING - 1
    }

    /// Puts a task at the end of the ring, to be drawn by the hash of block `at`.
    pub fn push_pending(&mut self, mut task: Task, at: u64) {
        task.order.at = at;
        let place = entry(self.host, PENDING, self.head.pending_tail as u64);
        task.store(self.host, place);
        self.head.pending_tail = (self.head.pending_tail + 1) % RING;
    }

    /// The block whose hash is to draw a task that is created, or drawn again, now.
    pub fn target(&mut self) -> u64 {
        let delay = self.rules.draw_delay as u64;
        self.block() + delay.max(1) - 1
    }

    /// Draws up to `most` Pending tasks whose block has come; gives how many were served.
    ///
    /// First come, first drawn. One that stays undecided, or whose block's hash is no longer known,
    /// gets a new block and goes to the end.
    pub fn serve(&mut self, most: u32) -> u32 {
        let most = most.min(self.pending());
        let mut served = 0;
        while served < most {
            let Some((place, order)) = self.next_due() else { break };
            self.serve_next(place, order);
            served += 1;
        }
        served
    }

    /// Takes the first Pending task off the ring if its block has come.
    ///
    /// This is all that the contract's own draws have beside the choice of a node: who wants to compare other choices with
    /// it takes tasks here, and starts or queues each.
    pub fn take_due(&mut self) -> Option<Task> {
        let (place, order) = self.next_due()?;
        Some(self.take(place, order))
    }

    /// Takes the first Pending task, whose order has been read, off the ring.
    #[inline(always)]
    fn take(&mut self, place: Word, order: Order) -> Task {
        let task = Task { ticket: self.host.get(place), order, models: ModelSet::load(self.host, &order, offset(place, 2)) };
        self.head.pending_head = (self.head.pending_head + 1) % RING;
        if self.head.pending_head == self.head.pending_tail {
            // Starting again at 0 reuses words that are not zero.
            self.head.pending_head = 0;
            self.head.pending_tail = 0;
        }
        task
    }

    /// Draws the next Pending task, whose block has come and whose order has been read.
    #[inline(never)]
    fn serve_next(&mut self, place: Word, order: Order) {
        let task = self.take(place, order);
        self.served += 1;
        let drawn = match self.host.block_hash(task.order.at) {
            Some(hash) => self.draw_and_place(&task, hash),
            None => false,
        };
        if !drawn {
            self.redraw(task);
        }
    }

    /// Gives a task a new block and puts it at the end of the ring.
    pub fn redraw(&mut self, task: Task) {
        let at = self.target();
        self.push_pending(task, at);
        emit::<TaskRedrawn>(self.host, (task.order.id,), (at,));
    }

    /// Draws a task with the given entropy and starts or queues it; false if the draw stayed undecided.
    pub fn draw_and_place(&mut self, task: &Task, hash: [u8; 32]) -> bool {
        let mut rng = Rng::new(self.host, hash, task.order.id);
        match self.draw(task, &mut rng) {
            Draw::Node(seat, candidates) => {
                let seat = self.leave_sampler(seat);
                self.start(task, seat, candidates, Some(&mut rng));
            }
            Draw::Nobody => self.enqueue(task),
            Draw::Undecided => return false,
        }
        true
    }
}
