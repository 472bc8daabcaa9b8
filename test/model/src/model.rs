//! A plain model of the network, written apart from muster_core, beside the real thing: random
//! operations, everything compared after every one of them.
//!
//! The model foretells every event and every refusal. Only what chance decides is taken from the
//! events (which node a draw fell on, which place of a queue a task got) and checked to be allowed.

use crate::system::{Call, System};
use crate::world::*;
use alloy_primitives::keccak256;
use alloy_primitives::U256;
use alloy_sol_types::{SolCall, SolInterface};
use muster_core::id::{GpuGroup, ModelId, NodeId};
use muster_core::word::Address;
use muster_protocol::abi::IMuster::{self, IMusterCalls as C, IMusterEvents as E, *};
use muster_protocol::parameters::PARAMETERS;
use muster_protocol::sampler::Among;
use muster_protocol::{Host, Network};
use muster_scorer::recordScoresCall;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const NAMES: [&str; 3] = ["RTX 4090", "A100", "a very long name of a card, longer than one word"];
const SIZES: [u16; 4] = [8, 24, 40, 80];
const EPS: f64 = 1e-11;
/// Blocks whose hash can be had.
const HISTORY: u64 = 393_168;
/// Parameters that have to be proposed.
const DELAYED: [&str; 2] = ["unbonding", "kickoutMilli"];

// ---------------------------------------------------------------- operations

/// An operation with loose numbers; [`Model::step`] makes a call of it that fits the state.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Op {
    Join {
        who: u64,
        gpu: u64,
        vram: u64,
        models: u64,
        stake: u64,
    },
    Raise {
        who: u64,
        amount: u64,
    },
    Pause(u64),
    Resume(u64),
    Quit(u64),
    Withdraw(u64),
    Report {
        who: u64,
        models: u64,
    },
    Remove {
        who: u64,
        models: u64,
    },
    Purge {
        model: u64,
        position: u64,
    },
    Poke(u64),
    Create {
        who: u64,
        kind: u64,
        units: u64,
        vram: u64,
        gpu: u64,
        models: u64,
        fee: u64,
    },
    Cancel {
        pick: u64,
        stranger: bool,
    },
    ExpireQueued {
        pick: u64,
        by: u64,
    },
    Submit {
        pick: u64,
        by: u64,
    },
    Fault {
        pick: u64,
        by: u64,
    },
    Expire {
        pick: u64,
        by: u64,
    },
    Dispatch(u64),
    Score {
        node: u64,
        score: u64,
    },
    Parameter {
        which: u64,
        value: u64,
    },
    Accept(u64),
    Switch(bool),
    Sweep,
    /// One of a hundred names, good and bad.
    Name(u64),
    /// Ether that no function of the contract let in.
    Force(u64),
    Pass {
        blocks: u64,
        seconds: u64,
    },
}

/// A random operation for a network of so many operators.
pub fn random_op(d: &mut Dice, operators: u64) -> Op {
    let who = 1 + d.below(operators);
    let mask = d.next() & d.next() & 0x3ff;
    match d.below(106) {
        0..=7 => Op::Join { who, gpu: d.next(), vram: d.next(), models: mask, stake: d.next() },
        8..=9 => Op::Raise { who, amount: d.next() },
        10..=12 => Op::Pause(who),
        13..=16 => Op::Resume(who),
        17..=18 => Op::Quit(who),
        19..=20 => Op::Withdraw(1 + d.below(operators + 5)),
        21..=23 => Op::Report { who, models: mask },
        24..=26 => Op::Remove { who, models: mask & d.next() },
        27..=28 => Op::Purge { model: 1 + d.below(11), position: d.below(operators) },
        29..=31 => Op::Poke(d.below(operators + 2)),
        32..=51 => Op::Create {
            who: d.next(),
            kind: d.next(),
            units: d.next(),
            vram: d.next(),
            gpu: d.next(),
            models: mask & d.next() & d.next() | (d.below(3) / 2) << d.below(10),
            fee: d.next(),
        },
        52..=54 => Op::Cancel { pick: d.next(), stranger: d.below(8) == 0 },
        55..=68 => Op::Submit { pick: d.next(), by: d.below(20) },
        69..=71 => Op::Fault { pick: d.next(), by: d.below(20) },
        72..=78 => Op::Expire { pick: d.next(), by: d.next() },
        79..=82 => Op::Dispatch(d.below(18)),
        83..=86 => Op::Score { node: d.next(), score: d.next() },
        87..=88 => Op::Parameter { which: d.next(), value: d.next() },
        89 => Op::Switch(d.below(4) == 0),
        90 => Op::Sweep,
        100 => Op::Force(d.next()),
        101..=103 => Op::ExpireQueued { pick: d.next(), by: d.next() },
        104 => Op::Accept(d.next()),
        105 => Op::Name(d.below(100)),
        91 => Op::Pass { blocks: 250 + d.below(20), seconds: d.below(4_000) },
        92 => Op::Pass { blocks: HISTORY - 10 + d.below(20), seconds: d.below(4_000) },
        93 => Op::Pass { blocks: 1, seconds: d.below(200_000) },
        94..=95 => Op::Purge { model: 1 + d.below(11), position: d.below(3) },
        _ => Op::Pass { blocks: d.below(3), seconds: d.below(150) },
    }
}

fn models_of(mask: u64) -> Vec<u64> {
    (0..10).filter(|i| mask >> i & 1 != 0).map(|i| i + 1).collect()
}

// ---------------------------------------------------------------- the model

#[derive(Clone, Debug)]
struct Task {
    id: u64,
    creator: Address,
    fee: u128,
    estimate: u64,
    limit: u64,
    bps: u128,
    vram: u16,
    /// Required GPU group.
    gpu: Option<u32>,
    models: Vec<u64>,
    /// Block of the draw, ticket, or deadline.
    at: u64,
    /// Since when it is queued.
    since: u64,
    /// Whether its success can raise H.
    boosts: bool,
}

impl Task {
    /// Fee / estimate to 32 significant bits: exponent and mantissa.
    fn value(&self) -> (i32, u128) {
        let (mut n, mut d, mut e) = (self.fee, self.estimate as u128, 0);
        while n >= d << 32 {
            d <<= 1;
            e += 1;
        }
        while n < d << 31 {
            n <<= 1;
            e -= 1;
        }
        (e, n / d)
    }
    fn group(&self) -> u32 {
        self.gpu.unwrap_or(self.vram as u32)
    }
    fn fits(&self, node: &Node) -> bool {
        self.gpu.map_or(node.group & 0xffff >= self.vram as u32, |g| g == node.group)
    }
    fn start_fee(&self) -> u128 {
        self.fee * self.bps / 10_000
    }
}

#[derive(Clone, Default, Debug)]
struct Node {
    operator: Address,
    status: u8,
    stake: u128,
    h: f64,
    h_at: u64,
    scores: VecDeque<u8>,
    group: u32,
    held: BTreeSet<u64>,
    in_use: Vec<u64>,
    task: Option<Task>,
    parked: Option<u64>,
    joined_at: u64,
}

#[derive(Clone, Default, Debug)]
struct Account {
    credit: u128,
    unbonding: u128,
    release: u64,
    node: u32,
    kicked: bool,
}

/// The network as plain collections.
#[derive(Clone)]
pub struct Model {
    operators: u64,
    now: u64,
    block: u64,
    nodes: BTreeMap<u32, Node>,
    accounts: BTreeMap<Address, Account>,
    groups: BTreeMap<(String, u16), u32>,
    holders: BTreeMap<u64, Vec<u32>>,
    pending: VecDeque<Task>,
    queue: Vec<Task>,
    treasury: u128,
    tasks: u64,
    paused: bool,
    /// Models whose names were logged.
    names: BTreeSet<u64>,
    set: BTreeMap<&'static str, u64>,
    /// Proposed parameters, and when they can take effect.
    proposed: BTreeMap<&'static str, (u64, u64)>,
    paid_in: u128,
    paid_out: u128,
    forced: u128,
}

/// The call in progress: what the real thing logged, and how far the model has followed it.
struct Trace {
    events: Vec<E>,
    next: usize,
    /// Whether a task with models has started: what its pre-download read is missing to the next.
    spread: bool,
}

impl Trace {
    fn peek(&self) -> Option<&E> {
        self.events.get(self.next)
    }
    /// Whether the next event is what a task's draw can begin with.
    fn draws(&self, task: u64) -> bool {
        match self.peek() {
            Some(E::TaskStarted(e)) => e.id == task,
            Some(E::TaskRedrawn(e)) => e.id == task,
            Some(E::TaskQueued(e)) => e.id == task,
            Some(E::TaskAborted(e)) => e.reason == 2,
            _ => false,
        }
    }
    fn expect(&mut self, e: E) {
        assert_eq!(self.peek(), Some(&e), "event {}", self.next);
        self.next += 1;
    }
}

type Refused = Result<(), &'static str>;

macro_rules! need {
    ($cond:expr, $name:literal) => {
        if !$cond {
            return Err($name);
        }
    };
}

impl Model {
    /// A network just initialised, at the time and block of the next call.
    pub fn new((now, block): (u64, u64), operators: u64) -> Model {
        let set = [
            ("alphaMilli", 2_000),
            ("minPrice", 1),
            ("startFeeBps", 200),
            ("drawDelay", 1),
            ("penaltyPpm", 300_000),
            ("boostPpm", 150_000),
            ("exclusionPpm", 100_000),
            ("tau", 1_800),
            ("sdOverhead", 30),
            ("sdUnit", 20),
            ("gptOverhead", 60),
            ("gptUnit", 0),
            ("fineTuneMax", 86_400),
            ("limitMin", 60),
            ("limitMax", 7_200),
            ("grace", 0),
            ("minStake", 400_000),
            ("unbonding", 86_400),
            ("kickoutMilli", 2_000),
            ("scarce", 3),
            ("spread", 10),
            ("boostPool", 3),
            ("queueTime", 21_600),
            ("groupFee", 4_000),
        ];
        Model {
            operators,
            now,
            block,
            nodes: BTreeMap::new(),
            accounts: BTreeMap::new(),
            groups: BTreeMap::new(),
            holders: BTreeMap::new(),
            pending: VecDeque::new(),
            queue: Vec::new(),
            treasury: 0,
            tasks: 0,
            paused: false,
            names: BTreeSet::new(),
            set: set.into_iter().collect(),
            proposed: BTreeMap::new(),
            paid_in: 0,
            paid_out: 0,
            forced: 0,
        }
    }

    fn joined(&self) -> u64 {
        self.nodes.values().filter(|n| n.status != 0).count() as u64
    }
    fn h(&self, n: &Node) -> f64 {
        self.h_at(n, self.now)
    }
    fn h_at(&self, n: &Node, at: u64) -> f64 {
        1.0 - (1.0 - n.h) * (-((at - n.h_at) as f64) / self.set["tau"] as f64).exp()
    }
    fn eligible(&self, h: f64) -> bool {
        h >= self.set["exclusionPpm"] as f64 / 1e6 - EPS
    }
    fn idle(&self) -> impl Iterator<Item = (&u32, &Node)> {
        self.nodes.iter().filter(|(_, n)| n.status == 1 && n.parked.is_none())
    }
    fn credit(&mut self, who: Address, wei: u128) {
        self.accounts.entry(who).or_default().credit += wei;
    }

    /// Whether a task waits for a draw that is decided already.
    fn draws_due(&self) -> bool {
        self.pending.front().is_some_and(|t| t.at < self.block)
    }

    /// Draws due tasks until `most` are `served`; where that depends on what they cost (`thrifty`), the first at least.
    fn serve(&mut self, t: &mut Trace, by: Address, mut served: u64, most: u64, thrifty: bool) -> u64 {
        let mut waiting = self.pending.len();
        while served < most && waiting > 0 && self.pending[0].at < self.block {
            if thrifty && served > 0 && !t.draws(self.pending[0].id) {
                break;
            }
            let task = self.pending.pop_front().unwrap();
            let known = task.at + HISTORY >= self.block;
            self.draw(t, by, task, known);
            waiting -= 1;
            served += 1;
        }
        served
    }

    fn readmit(&mut self, t: &mut Trace, by: Address, thrifty: bool) -> Option<u32> {
        if self.draws_due() {
            return None;
        }
        let due = self.nodes.iter().filter_map(|(&i, n)| n.parked.map(|at| (at, i))).min();
        let (at, _) = due.filter(|(at, _)| *at <= self.now)?;
        // After dear draws there may be none; a later one that comes back all the same was poked.
        if thrifty && !matches!(t.peek(), Some(E::NodeReadmitted(r)) if self.nodes[&r.node].parked == Some(at)) {
            return None;
        }
        // Of those due first at once any may be.
        let E::NodeReadmitted(r) = t.peek().expect("a node is due").clone() else { panic!("a node is due: {:?}", t.peek()) };
        assert_eq!(self.nodes[&r.node].parked, Some(at));
        self.return_to_work(t, by, r.node);
        Some(r.node)
    }

    fn return_to_work(&mut self, t: &mut Trace, by: Address, node: u32) {
        self.nodes.get_mut(&node).unwrap().parked = None;
        t.expect(E::NodeReadmitted(IMuster::NodeReadmitted { node }));
        self.release(t, by, node, true);
    }

    /// A draw, as the real thing decided it, checked.
    fn draw(&mut self, t: &mut Trace, by: Address, mut task: Task, known: bool) {
        let idle: Vec<u32> = self.idle().filter(|(_, n)| task.fits(n)).map(|(&i, _)| i).collect();
        let redrawn = matches!(t.peek(), Some(E::TaskRedrawn(r)) if r.id == task.id);
        if !known || (redrawn && !idle.is_empty()) {
            let delay = self.set["drawDelay"].max(1);
            task.at = self.block + delay - 1;
            t.expect(E::TaskRedrawn(IMuster::TaskRedrawn { id: task.id, drawBlock: task.at }));
            self.pending.push_back(task);
        } else if idle.is_empty() {
            self.enqueue(t, task);
        } else {
            let Some(E::TaskStarted(s)) = t.peek().cloned() else { panic!("someone is idle: {:?} for {task:?}", t.peek()) };
            assert!(idle.contains(&s.node), "{s:?} is not among {idle:?}");
            let able: Vec<u32> = idle.iter().copied().filter(|i| self.eligible(self.h(&self.nodes[i]))).collect();
            assert!(able.contains(&s.node), "{s:?} is excluded");
            let local = |i: &u32| task.models.iter().any(|m| self.nodes[i].held.contains(m));
            let entries: usize = task.models.iter().filter_map(|m| self.holders.get(m)).map(Vec::len).sum();
            if entries <= 16 && able.iter().any(local) {
                assert!(local(&s.node), "{s:?} holds none of {:?}", task.models);
            }
            // Between what it certainly had and what it can have had at most. Nodes that a raised threshold excludes stand there
            // until poked; a search among many, or within what is left of a call's reads, may count too few.
            let (least, most) = if local(&s.node) {
                // Where many hold the model they are counted with the pre-download's 32 reads, of which three nearby nodes can take
                // twelve and every entry four.
                let popular = entries as u64 * 4 >= self.joined() as u64;
                let searched = entries <= if popular { 5 } else { 16 } && task.models.len() == 1 && !t.spread;
                (if searched { able.iter().filter(|i| local(i)).count() } else { 1 }, idle.iter().filter(|i| local(i)).count())
            } else {
                (idle.len(), idle.len())
            };
            let pool = self.set["boostPool"] as usize;
            assert!(s.boosts || least < pool, "{s:?}: at least {least} candidates");
            assert!(!s.boosts || most >= pool, "{s:?}: at most {most} candidates");
            self.start(t, by, task, s.node, s.boosts);
        }
    }

    fn start(&mut self, t: &mut Trace, _by: Address, mut task: Task, node: u32, boosts: bool) {
        (task.at, task.boosts) = (self.now + task.limit, boosts);
        t.spread |= !task.models.is_empty();
        t.expect(E::TaskStarted(IMuster::TaskStarted {
            id: task.id,
            node,
            creator: task.creator.into(),
            deadline: task.at,
            boosts,
        }));
        let n = self.nodes.get_mut(&node).unwrap();
        n.status = 2;
        n.in_use = task.models.clone();
        let missing: Vec<u64> = task.models.iter().copied().filter(|m| !n.held.contains(m)).collect();
        for model in missing {
            t.expect(E::DownloadRequested(IMuster::DownloadRequested { node, model, task: task.id }));
        }
        let mut asked = 0;
        for &model in &task.models {
            // Of more than 16 entries the network looks at 16, and may find none available.
            let searched = self.holders.get(&model).is_none_or(|l| l.len() <= 16);
            let available = self.idle().filter(|(_, n)| searched && n.held.contains(&model)).count() as u64;
            let scarce = available < self.set["scarce"];
            let most = if scarce { self.set["spread"].saturating_sub(available.max(asked)) } else { 0 };
            let mut seen = BTreeSet::new();
            while let Some(E::DownloadRequested(d)) = t.peek().cloned() {
                if d.model != model || d.task != task.id {
                    break;
                }
                let n = &self.nodes[&d.node];
                assert!(
                    n.status == 1 && n.parked.is_none() && self.eligible(self.h(n)) && task.fits(n) && !n.held.contains(&model),
                    "{d:?}"
                );
                assert!(seen.insert(d.node), "{d:?} twice");
                t.next += 1;
            }
            assert!(seen.len() as u64 <= most, "{} asked for {model}, at most {most}", seen.len());
            asked += seen.len() as u64;
        }
        self.nodes.get_mut(&node).unwrap().task = Some(task);
    }

    fn enqueue(&mut self, t: &mut Trace, mut task: Task) {
        let capacity = self.set["alphaMilli"] * self.joined() / 1_000;
        let rank = |t: &Task| (t.value(), std::cmp::Reverse(t.id));
        if self.queue.len() as u64 >= capacity {
            let worst = (0..self.queue.len()).min_by_key(|&i| rank(&self.queue[i]));
            match worst.filter(|&i| rank(&self.queue[i]) < rank(&task)) {
                Some(i) => {
                    let gone = self.queue.remove(i);
                    self.abort(t, &gone, 0, 2, None);
                }
                None => return self.abort(t, &task, 0, 2, None),
            }
        }
        let Some(E::TaskQueued(q)) = t.peek().cloned() else { panic!("must be queued: {:?}", t.peek()) };
        assert_eq!((q.id, (q.ticket >> 32) as u32, q.group), (task.id, task.group(), task.group()));
        assert_eq!(q.creator.into_array(), task.creator);
        assert!(self.queue.iter().all(|other| other.at != q.ticket), "place taken");
        t.next += 1;
        (task.at, task.since) = (q.ticket, self.now);
        self.queue.push(task);
    }

    /// `driver` earns the start fee; without one it is income.
    fn abort(&mut self, t: &mut Trace, task: &Task, node: u32, reason: u8, driver: Option<Address>) {
        let fee = if reason == 2 { 0 } else { task.start_fee() };
        let to = driver.filter(|_| fee > 0).unwrap_or([0; 20]);
        match driver {
            Some(driver) if fee > 0 => self.credit(driver, fee),
            _ => self.treasury += fee,
        }
        self.credit(task.creator, task.fee - fee);
        t.expect(E::TaskAborted(IMuster::TaskAborted {
            id: task.id,
            node,
            creator: task.creator.into(),
            reason,
            refund: task.fee - fee,
            startFee: fee,
            beneficiary: to.into(),
        }));
    }

    fn release(&mut self, t: &mut Trace, by: Address, node: u32, may_take: bool) {
        let due = self.draws_due();
        let n = self.nodes.get_mut(&node).unwrap();
        n.task = None;
        match n.status {
            4 | 6 if due => return self.hold(t, node),
            6 => return self.leave(t, node, true),
            4 => return self.leave(t, node, false),
            3 => {
                n.status = 5;
                return t.expect(E::NodePaused(IMuster::NodePaused { node }));
            }
            _ => n.status = 1,
        }
        let n = &self.nodes[&node];
        if !self.eligible(self.h(n)) {
            let Some(E::NodeExcluded(x)) = t.peek().cloned() else { panic!("excluded: {:?}", t.peek()) };
            assert_eq!(x.node, node);
            assert!(x.until > self.now && self.eligible(self.h_at(n, x.until)));
            assert!(self.h_at(n, x.until - 1) < self.set["exclusionPpm"] as f64 / 1e6 + EPS);
            self.nodes.get_mut(&node).unwrap().parked = Some(x.until);
            t.next += 1;
            return;
        }
        if due {
            return self.hold(t, node);
        }
        if may_take {
            if let Some(i) = self.best(n) {
                let task = self.queue.remove(i);
                // Nobody drew it.
                self.start(t, by, task, node, self.set["boostPool"] == 0);
            }
        }
    }

    /// Keeps a node out of draws that are decided already.
    fn hold(&mut self, t: &mut Trace, node: u32) {
        self.nodes.get_mut(&node).unwrap().parked = Some(self.now);
        t.expect(E::NodeExcluded(IMuster::NodeExcluded { node, until: self.now }));
    }

    /// The queued task a node takes: value, then its own group, then arrival.
    fn best(&self, n: &Node) -> Option<usize> {
        (0..self.queue.len()).filter(|&i| self.queue[i].fits(n)).max_by_key(|&i| {
            let q = &self.queue[i];
            (q.value(), q.gpu.is_some(), std::cmp::Reverse(q.id))
        })
    }

    fn leave(&mut self, t: &mut Trace, node: u32, kicked: bool) {
        let n = self.nodes.get_mut(&node).unwrap();
        let (operator, stake) = (n.operator, std::mem::take(&mut n.stake));
        n.status = 0;
        n.parked = None;
        let a = self.accounts.entry(operator).or_default();
        if a.unbonding > 0 && self.now >= a.release {
            let amount = std::mem::take(&mut a.unbonding);
            a.credit += amount;
            t.expect(E::StakeReleased(IMuster::StakeReleased { account: operator.into(), amount }));
        }
        a.unbonding += stake;
        a.release = self.now + self.set["unbonding"];
        a.kicked |= kicked;
        let release = a.release;
        if kicked {
            t.expect(E::NodeKickedOut(IMuster::NodeKickedOut { node, operator: operator.into() }));
        }
        t.expect(E::NodeQuit(IMuster::NodeQuit { node, operator: operator.into(), stake, release }));
    }

    fn own(&self, by: Address) -> Result<u32, &'static str> {
        match self.accounts.get(&by).map_or(0, |a| a.node) {
            0 => Err("NotAnOperator"),
            n => Ok(n),
        }
    }

    fn running(&self, node: u32, id: u64) -> Result<Task, &'static str> {
        self.nodes[&node].task.clone().filter(|t| t.id == id).ok_or("TaskNotRunning")
    }

    /// An operation on the real thing and its counterpart here; gives the real thing's events. Panics where they differ.
    pub fn step<S: System>(&mut self, real: &mut S, op: &Op) -> Vec<E> {
        let events = match *op {
            Op::Pass { blocks, seconds } => {
                real.pass(blocks, seconds);
                Vec::new()
            }
            Op::Force(wei) => {
                real.force(wei as u128);
                self.forced += wei as u128;
                Vec::new()
            }
            _ => self.call(real, op),
        };
        (self.now, self.block) = real.clock();
        events
    }

    fn call<S: System>(&mut self, real: &mut S, op: &Op) -> Vec<E> {
        let call = self.resolve(op);
        let out = real.call(&call);
        let events = match &out {
            Ok(done) => done.events.clone(),
            Err(refused) => refused.events.clone(),
        };
        let mut trace = Trace { events, next: 0, spread: false };
        let before = self.clone();
        let mine = self.apply(&call, &mut trace);
        match (mine, out) {
            (Ok(paid), Ok(done)) => {
                assert_eq!(trace.next, trace.events.len(), "more happened: {:?}", &trace.events[trace.next..]);
                self.paid_in += call.value;
                self.paid_out += paid;
                assert_eq!(done.paid, paid, "paid out");
                done.events
            }
            (Err(name), Err(given)) => {
                assert_eq!(given.name, name);
                *self = before;
                Vec::new()
            }
            (mine, out) => panic!("model {mine:?}, real {out:?}"),
        }
    }

    /// Makes an operation's loose numbers into a call that fits the state, so that most are accepted.
    fn resolve(&self, op: &Op) -> Call {
        let pick = |n: u64, of: usize| if of == 0 { 0 } else { (n % of as u64) as usize };
        let running: Vec<(u32, u64, Address)> =
            self.nodes.iter().filter_map(|(&i, n)| n.task.as_ref().map(|t| (i, t.id, n.operator))).collect();
        match *op {
            Op::Join { who: n, gpu, vram, models, stake } => {
                let tokens = [400, 400, 401, 1_600, 1_601, 90_000, 4_000_000, 399, 400 << 18][pick(stake, 9)];
                let (name, vram) = (NAMES[pick(gpu, 3)], SIZES[pick(vram, 4)]);
                // Now and then the price of a new name is forgotten, or paid for an old one.
                let new = self.group_fee(name, vram) > 0;
                let fee = if new != (stake >> 60 == 1) { self.set["groupFee"] as u128 * GRANULE as u128 } else { 0 };
                let call = joinCall { gpuName: name.into(), vram, models: models_of(models) };
                Call::new(who(n), call).paying(tokens * TOKEN + fee)
            }
            Op::Raise { who: n, amount } => {
                let value = [0, 1, 1_000, 40_000, 7][pick(amount, 5)] as u128 * GRANULE as u128 * 100;
                Call::new(who(n), raiseStakeCall {}).paying(value)
            }
            Op::Pause(n) => Call::new(who(n), pauseCall {}),
            Op::Resume(n) => Call::new(who(n), resumeCall {}),
            Op::Quit(n) => Call::new(who(n), quitCall {}),
            Op::Withdraw(n) => Call::new(who(n), withdrawCall { to: who(n).into() }),
            Op::Report { who: n, models } => Call::new(who(n), reportDownloadedCall { models: models_of(models) }),
            Op::Remove { who: n, models } => Call::new(who(n), reportRemovedCall { models: models_of(models) }),
            Op::Purge { model, position } => Call::new(who(50), purgeCall { model, position: position as u32 }),
            Op::Poke(node) => Call::new(who(50), pokeCall { node: node as u32 }),
            Op::Create { who: n, kind, units, vram, gpu, models, fee } => {
                let kind = if kind % 50 == 49 { 3 } else { (kind % 3) as u8 };
                let units = if kind == 2 { 1 + units % 500 } else { units % 9 };
                let groups: Vec<u32> = self.groups.values().copied().collect();
                let gpu = if gpu % 3 == 0 && !groups.is_empty() {
                    groups[pick(gpu / 3, groups.len())]
                } else if gpu % 97 == 1 {
                    0x7777
                } else {
                    0
                };
                let vram = if vram % 3 == 0 { 0 } else { SIZES[pick(vram / 3, 4)] + (vram % 2) as u16 };
                // Few distinct values, so that ties are common; now and then a huge one or too little.
                let fee = match fee % 20 {
                    0 => 10,
                    1 => 1 << 86 | (fee as u128) << 20,
                    2..=5 => TOKEN + (fee >> 8) as u128 % 3,
                    _ => (1 + (fee >> 8) as u128 % 12) * 100_000,
                };
                let spec = IMuster::TaskSpec {
                    kind,
                    units: units as u32,
                    vram,
                    gpu,
                    redundancy: 0,
                    // Now and then one that means nothing yet.
                    flags: if fee % 83 == 5 { 2 } else { (fee % 3 == 1) as u32 },
                    inputDigest: [n as u8; 32].into(),
                    models: models_of(models),
                };
                let from = who(if n % 9 == 0 { 1 + n % self.operators } else { self.operators + 1 + n % 4 });
                Call::new(from, createTaskCall { spec }).paying(fee)
            }
            Op::Cancel { pick: p, stranger } => match self.queue.get(pick(p, self.queue.len())) {
                Some(t) => Call::new(
                    if stranger { who(50) } else { t.creator },
                    cancelCall { id: t.id + (p >> 60 == 1) as u64, ticket: t.at },
                ),
                None => Call::new(who(50), cancelCall { id: p % 90, ticket: p >> 8 }),
            },
            Op::ExpireQueued { pick: p, by } => match self.queue.get(pick(p, self.queue.len())) {
                Some(t) => {
                    let from = [t.creator, who(50), who(1 + by % self.operators)][pick(by, 3)];
                    Call::new(from, expireQueuedCall { id: t.id + (p >> 60 == 1) as u64, ticket: t.at })
                }
                None => Call::new(who(50), expireQueuedCall { id: p % 90, ticket: p >> 8 }),
            },
            Op::Submit { pick: p, by } | Op::Fault { pick: p, by } => {
                let (_, id, operator) =
                    running.get(pick(p, running.len())).copied().unwrap_or((0, p % 40, who(1 + p % self.operators)));
                let from = if by == 0 { who(1 + p % self.operators) } else { operator };
                if matches!(op, Op::Submit { .. }) {
                    Call::new(from, submitCall { id, resultDigest: [id as u8; 32].into() })
                } else {
                    Call::new(from, reportErrorCall { id, code: 3 })
                }
            }
            Op::Expire { pick: p, by } => {
                let (node, id, _) = running.get(pick(p, running.len())).copied().unwrap_or(((p % 20) as u32, p % 40, [0; 20]));
                Call::new(who(1 + by % (self.operators + 4)), expireCall { node, id })
            }
            Op::Dispatch(n) => Call::new(who(50), dispatchCall { count: n as u8 }),
            Op::Score { node, score } => match self.nodes.keys().nth(pick(node, self.nodes.len())) {
                // Now and then a whole pool's worth, or nobody would ever be kicked out.
                Some(&n) => {
                    let (score, times) = ([10, 5, 2, 0, 0, 2][pick(score, 6)], if score >> 60 == 1 { 51 } else { 1 });
                    Call::new(who(50), recordScoresCall { node: n, score, times })
                }
                None => Call::new(who(50), dispatchCall { count: 1 }),
            },
            Op::Parameter { which, value } => {
                // No product of these lies on a threshold, where the model's f64 could not tell.
                let choices: [(&'static str, &[u64]); 21] = [
                    ("alphaMilli", &[0, 400, 2_000, 3_000, 9_000]),
                    ("minPrice", &[1, 1_000]),
                    ("startFeeBps", &[0, 200, 5_000]),
                    ("drawDelay", &[0, 0, 1, 2]),
                    ("penaltyPpm", &[0, 90_000, 300_000, 1_000_000]),
                    ("boostPpm", &[0, 150_000, 1_000_000]),
                    ("exclusionPpm", &[0, 100_000, 310_000, 900_000]),
                    ("tau", &[1, 60, 1_800, 1_800, 604_800]),
                    ("sdUnit", &[1, 20]),
                    ("gptUnit", &[0, 7]),
                    ("limitMin", &[1, 60]),
                    ("limitMax", &[60, 7_200]),
                    ("grace", &[0, 30]),
                    ("minStake", &[1, 400_000, 500_000]),
                    ("unbonding", &[0, 500, 86_400]),
                    ("kickoutMilli", &[0, 2_000, 4_000]),
                    ("scarce", &[0, 3, 8]),
                    ("spread", &[0, 10, 16]),
                    ("boostPool", &[0, 1, 3, 8]),
                    ("queueTime", &[60, 900, 21_600]),
                    ("groupFee", &[0, 1, 4_000]),
                ];
                let (name, values) = choices[pick(which, choices.len())];
                let (by, value) = (if value >> 60 == 1 { who(50) } else { OWNER }, U256::from(values[pick(value, values.len())]));
                if DELAYED.contains(&name) {
                    Call::new(by, proposeParameterCall { parameter: parameter(name), value })
                } else {
                    Call::new(by, setParameterCall { parameter: parameter(name), value })
                }
            }
            Op::Accept(which) => {
                Call::new(who(50), acceptParameterCall { parameter: parameter(DELAYED[pick(which, DELAYED.len())]) })
            }
            Op::Switch(on) => Call::new(OWNER, setPausedCall { on }),
            Op::Sweep => Call::new(who(50), sweepTreasuryCall {}),
            Op::Name(n) => {
                let name = match n % 20 {
                    0 => String::new(),
                    1 => "x".repeat(129),
                    2 => format!("model\n{n}"),
                    3 => format!("modèle {n}"),
                    4 => "y".repeat(128 - n as usize % 3),
                    _ => format!("org/model {n}"),
                };
                Call::new(who(50 + n % 2), nameModelCall { name })
            }
            Op::Pass { .. } | Op::Force(_) => unreachable!("no call"),
        }
    }

    /// What the call must do; gives what it pays out.
    fn apply(&mut self, call: &Call, t: &mut Trace) -> Result<u128, &'static str> {
        let by = call.from;
        if let Ok(c) = recordScoresCall::abi_decode_validate(&call.data) {
            let served = self.serve(t, by, 0, 2, true);
            self.readmit(t, by, served > 0);
            (0..c.times).for_each(|_| self.score(t, c.node, c.score));
            return Ok(0);
        }
        let asked = C::abi_decode_validate(&call.data).expect("a function of the interface");
        match &asked {
            C::dispatch(c) => {
                need!(c.count <= 16, "TooManyAtOnce");
                self.serve(t, by, 0, c.count as u64, false);
                self.readmit(t, by, false);
                return Ok(0);
            }
            C::setParameter(c) => {
                let (name, value) = (PARAMETERS[c.parameter as usize].name, c.value.to());
                need!(by == OWNER, "NotOwner");
                need!(name != "drawDelay" || value >= self.set[name] || self.pending.is_empty(), "TasksPending");
                self.set_parameter(t, name, value);
                return Ok(0);
            }
            C::proposeParameter(c) => {
                need!(by == OWNER, "NotOwner");
                let at = self.now + UPGRADE_DELAY as u64;
                self.proposed.insert(PARAMETERS[c.parameter as usize].name, (c.value.to(), at));
                t.expect(E::ParameterProposed(IMuster::ParameterProposed {
                    parameter: c.parameter,
                    value: c.value,
                    effective: at,
                }));
                return Ok(0);
            }
            C::acceptParameter(c) => {
                let name = PARAMETERS[c.parameter as usize].name;
                let (value, at) = *self.proposed.get(name).ok_or("NotProposed")?;
                need!(self.now >= at, "TooEarly");
                self.proposed.remove(name);
                self.set_parameter(t, name, value);
                return Ok(0);
            }
            C::setPaused(c) => {
                self.paused = c.on;
                t.expect(E::PausedChanged(IMuster::PausedChanged { on: c.on }));
                return Ok(0);
            }
            C::expireQueued(c) => {
                let i = self.queue.iter().position(|q| q.id == c.id && q.at == c.ticket).ok_or("TaskNotQueued")?;
                need!(self.now > self.queue[i].since + self.set["queueTime"], "QueueTimeNotOver");
                let task = self.queue.remove(i);
                self.abort(t, &task, 0, 3, Some(by).filter(|&by| by != task.creator));
                return Ok(0);
            }
            C::withdraw(_) => {
                let now = self.now;
                let a = self.accounts.entry(by).or_default();
                let stake = if now >= a.release { std::mem::take(&mut a.unbonding) } else { 0 };
                let credit = std::mem::take(&mut a.credit);
                let paid = credit + stake;
                need!(paid > 0, "NothingToWithdraw");
                t.expect(E::Withdrawn(IMuster::Withdrawn { account: by.into(), to: by.into(), credit, stake }));
                return Ok(paid);
            }
            C::nameModel(c) => {
                let printable = c.name.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
                need!((1..=128).contains(&c.name.len()) && printable, "BadModelName");
                let hash = keccak256(c.name.as_bytes());
                let model = hash[..5].iter().fold(0, |id: u64, &b| id << 8 | b as u64);
                need!(self.names.insert(model), "ModelHasName");
                t.expect(E::ModelNamed(IMuster::ModelNamed { model, name: c.name.clone() }));
                return Ok(0);
            }
            C::sweepTreasury(_) => {
                let amount = std::mem::take(&mut self.treasury);
                need!(amount > 0, "NothingToWithdraw");
                t.expect(E::TreasurySwept(IMuster::TreasurySwept { treasury: TREASURY.into(), amount }));
                return Ok(amount);
            }
            _ => {}
        }
        let served = self.serve(t, by, 0, 2, true);
        let back = self.readmit(t, by, served > 0);
        let unsettled = match &asked {
            C::join(_) => !self.paused,
            C::poke(c) => self.nodes.contains_key(&c.node) && back != Some(c.node),
            C::raiseStake(_) | C::pause(_) | C::resume(_) | C::quit(_) => true,
            C::reportDownloaded(_) | C::reportRemoved(_) | C::purge(_) => true,
            _ => false,
        };
        if unsettled {
            self.serve(t, by, served, 8, true);
        }
        need!(!(unsettled && self.draws_due()), "DrawsDue");
        match &asked {
            C::join(c) => self.join(t, call, c)?,
            C::raiseStake(_) => {
                let node = self.own(by)?;
                need!(matches!(self.nodes[&node].status, 1 | 2 | 3 | 5), "WrongStatus");
                need!(call.value > 0, "StakeTooLow");
                need!(self.nodes[&node].stake + call.value <= (400 << 18) * TOKEN, "StakeTooHigh");
                let n = self.nodes.get_mut(&node).unwrap();
                n.stake += call.value;
                t.expect(E::StakeRaised(IMuster::StakeRaised { node, added: call.value, stake: n.stake }));
            }
            C::pause(_) => {
                let node = self.own(by)?;
                let n = self.nodes.get_mut(&node).unwrap();
                match n.status {
                    1 => {
                        (n.status, n.parked) = (5, None);
                        t.expect(E::NodePaused(IMuster::NodePaused { node }));
                    }
                    2 => {
                        n.status = 3;
                        t.expect(E::NodePausing(IMuster::NodePausing { node }));
                    }
                    _ => return Err("WrongStatus"),
                }
            }
            C::resume(_) => {
                let node = self.own(by)?;
                need!(self.nodes[&node].status == 5, "WrongStatus");
                t.expect(E::NodeResumed(IMuster::NodeResumed { node }));
                self.release(t, by, node, true);
            }
            C::quit(_) => {
                let node = self.own(by)?;
                match self.nodes[&node].status {
                    1 | 5 => self.leave(t, node, false),
                    2 => {
                        self.nodes.get_mut(&node).unwrap().status = 4;
                        t.expect(E::NodeQuitting(IMuster::NodeQuitting { node }));
                    }
                    _ => return Err("WrongStatus"),
                }
            }
            C::reportDownloaded(c) => {
                let node = self.own(by)?;
                need!(self.nodes[&node].status != 0, "WrongStatus");
                for &model in &c.models {
                    need!(self.nodes.get_mut(&node).unwrap().held.insert(model), "ModelHeld");
                    self.enter(node, model);
                    t.expect(E::ModelAdded(IMuster::ModelAdded { node, model }));
                }
            }
            C::reportRemoved(c) => {
                let node = self.own(by)?;
                need!(self.nodes[&node].status != 0, "WrongStatus");
                for &model in &c.models {
                    need!(self.nodes.get_mut(&node).unwrap().held.remove(&model), "ModelNotHeld");
                    t.expect(E::ModelRemoved(IMuster::ModelRemoved { node, model }));
                }
            }
            C::purge(c) => {
                let (model, position) = (c.model, c.position as usize);
                let list = self.holders.entry(model).or_default();
                need!(position < list.len(), "HolderNotStale");
                let node = list[position];
                let n = self.nodes.get_mut(&node).unwrap();
                need!(n.status == 0 || !n.held.contains(&model), "HolderNotStale");
                list.swap_remove(position);
                n.held.remove(&model);
                t.expect(E::HolderPurged(IMuster::HolderPurged { node, model }));
            }
            C::poke(c) if back == Some(c.node) => {}
            C::poke(c) => {
                let n = self.nodes.get(&c.node).ok_or("NodeUnknown")?;
                need!(n.status == 1, "WrongStatus");
                let able = self.eligible(self.h(n));
                if n.parked.is_some() {
                    need!(able, "NothingToPoke");
                    self.return_to_work(t, by, c.node);
                } else {
                    need!(!able || self.best(n).is_some(), "NothingToPoke");
                    self.release(t, by, c.node, able);
                }
            }
            C::createTask(c) => self.create(t, call, &c.spec)?,
            C::cancel(c) => {
                let i = self.queue.iter().position(|q| q.id == c.id && q.at == c.ticket).ok_or("TaskNotQueued")?;
                need!(self.queue[i].creator == by, "NotTheCreator");
                let task = self.queue.remove(i);
                self.abort(t, &task, 0, 1, None);
            }
            C::submit(c) => {
                let node = self.own(by)?;
                let task = self.running(node, c.id)?;
                need!(self.now <= task.at, "DeadlinePassed");
                if task.boosts && 2 * (self.now - self.nodes[&node].h_at) >= task.estimate {
                    let h = (self.h(&self.nodes[&node]) + self.set["boostPpm"] as f64 / 1e6).min(1.0);
                    self.put_h(node, h);
                }
                self.credit(by, task.fee);
                t.expect(E::TaskSucceeded(IMuster::TaskSucceeded {
                    id: c.id,
                    node,
                    creator: task.creator.into(),
                    resultDigest: c.resultDigest,
                    paid: task.fee,
                }));
                self.release(t, by, node, true);
            }
            C::reportError(c) => {
                let node = self.own(by)?;
                let task = self.running(node, c.id)?;
                need!(self.now <= task.at, "DeadlinePassed");
                self.credit(task.creator, task.fee);
                t.expect(E::TaskErrorReported(IMuster::TaskErrorReported {
                    id: c.id,
                    node,
                    creator: task.creator.into(),
                    code: c.code,
                    refund: task.fee,
                }));
                self.release(t, by, node, false);
            }
            C::expire(c) => {
                need!(self.nodes.contains_key(&c.node), "NodeUnknown");
                let task = self.running(c.node, c.id)?;
                need!(self.now > task.at, "DeadlineNotPassed");
                let h = self.h(&self.nodes[&c.node]) * self.set["penaltyPpm"] as f64 / 1e6;
                self.put_h(c.node, h);
                let own = self.accounts.get(&by).is_some_and(|a| a.node == c.node);
                self.abort(t, &task, c.node, 0, Some(by).filter(|_| !own));
                self.release(t, by, c.node, true);
            }
            _ => unreachable!("done above"),
        }
        Ok(0)
    }

    fn set_parameter(&mut self, t: &mut Trace, name: &'static str, value: u64) {
        let before = self.set.insert(name, value).unwrap();
        t.expect(E::ParameterChanged(IMuster::ParameterChanged {
            parameter: parameter(name),
            before: alloy_primitives::U256::from(before),
            value: alloy_primitives::U256::from(value),
        }));
    }

    /// What joining with a GPU costs beside the stake, in wei.
    fn group_fee(&self, name: &str, vram: u16) -> u128 {
        if self.groups.contains_key(&(name.to_string(), vram)) {
            0
        } else {
            self.set["groupFee"] as u128 * GRANULE as u128
        }
    }

    fn put_h(&mut self, node: u32, h: f64) {
        let now = self.now;
        let n = self.nodes.get_mut(&node).unwrap();
        (n.h, n.h_at) = (h, now);
    }

    fn enter(&mut self, node: u32, model: u64) {
        let list = self.holders.entry(model).or_default();
        if !list.contains(&node) {
            list.push(node);
        }
    }

    fn join(&mut self, t: &mut Trace, call: &Call, asked: &joinCall) -> Refused {
        let joinCall { gpuName: name, vram, models } = asked;
        let vram = *vram;
        need!(!self.paused, "PausedByOwner");
        let issued = self.nodes.len() as u32;
        let a = self.accounts.entry(call.from).or_default();
        need!(!a.kicked, "KickedOut");
        let fee = self.group_fee(name, vram);
        need!(call.value <= (400 << 18) * TOKEN + fee, "StakeTooHigh");
        need!(call.value >= self.set["minStake"] as u128 * GRANULE as u128 + fee, "StakeTooLow");
        let stake = call.value - fee;
        let a = self.accounts.entry(call.from).or_default();
        if a.node == 0 {
            a.node = issued + 1;
        }
        let node = a.node;
        need!(self.nodes.get(&node).is_none_or(|n| n.status == 0), "WrongStatus");
        let same = self.groups.keys().filter(|k| k.1 == vram).count() as u32;
        let key = (name.to_string(), vram);
        let group = match self.groups.get(&key) {
            Some(&g) => g,
            None => {
                let group = (same + 1) << 16 | vram as u32;
                self.groups.insert(key, group);
                self.treasury += fee;
                t.expect(E::GpuGroupCreated(IMuster::GpuGroupCreated { group, name: name.into(), vram, fee }));
                group
            }
        };
        t.expect(E::NodeJoined(IMuster::NodeJoined { node, operator: call.from.into(), group, stake, models: models.to_vec() }));
        for &m in models {
            self.enter(node, m);
        }
        let old = self.nodes.remove(&node).unwrap_or_default();
        self.nodes.insert(
            node,
            Node {
                operator: call.from,
                status: 1,
                stake,
                in_use: Vec::new(),
                h: 1.0,
                h_at: self.now,
                group,
                held: models.iter().copied().collect(),
                joined_at: self.now,
                task: None,
                parked: None,
                ..old
            },
        );
        self.release(t, call.from, node, true);
        Ok(())
    }

    fn create(&mut self, t: &mut Trace, call: &Call, spec: &IMuster::TaskSpec) -> Refused {
        need!(!self.paused, "PausedByOwner");
        need!(self.joined() > 0, "NoNodes");
        let s = &self.set;
        let estimate = match spec.kind {
            0 | 1 => {
                need!(spec.units >= 1 && spec.units <= 1_000, "BadUnits");
                let (over, unit) = if spec.kind == 0 { (s["sdOverhead"], s["sdUnit"]) } else { (s["gptOverhead"], s["gptUnit"]) };
                over + unit * spec.units as u64
            }
            2 => {
                need!(spec.units >= 1 && spec.units as u64 <= s["fineTuneMax"], "BadUnits");
                spec.units as u64
            }
            _ => return Err("BadKind"),
        };
        let estimate = estimate.max(s["limitMin"].div_ceil(2));
        need!(spec.flags < 2, "FlagsUnsupported");
        need!(spec.gpu == 0 || self.groups.values().any(|&g| g == spec.gpu), "GpuUnknown");
        let could = |n: &Node| n.status != 0 && if spec.gpu == 0 { n.group as u16 >= spec.vram } else { n.group == spec.gpu };
        need!(self.nodes.values().any(could), "NobodyCanRun");
        need!(call.value > 0 && call.value >= estimate as u128 * s["minPrice"] as u128, "FeeTooLow");
        self.tasks += 1;
        let limit = (2 * estimate).min(s["limitMax"].max(s["limitMin"])).max(s["limitMin"]) + s["grace"];
        let now = s["drawDelay"] == 0;
        let draw_block = if now { self.block - 1 } else { self.block + s["drawDelay"] - 1 };
        let task = Task {
            id: self.tasks,
            creator: call.from,
            fee: call.value,
            estimate,
            limit,
            bps: s["startFeeBps"] as u128,
            vram: if spec.gpu == 0 { spec.vram } else { spec.gpu as u16 },
            gpu: (spec.gpu != 0).then_some(spec.gpu),
            models: spec.models.clone(),
            at: draw_block,
            since: 0,
            boosts: false,
        };
        t.expect(E::TaskCreated(IMuster::TaskCreated {
            id: task.id,
            creator: call.from.into(),
            fee: task.fee,
            estimate: estimate as u32,
            timeLimit: limit as u32,
            startFeeBps: task.bps as u16,
            drawBlock: draw_block,
            spec: spec.clone(),
        }));
        if now {
            self.draw(t, call.from, task, true);
        } else {
            self.pending.push_back(task);
        }
        Ok(())
    }

    fn score(&mut self, t: &mut Trace, node: u32, score: u8) {
        t.expect(E::ScoreRecorded(IMuster::ScoreRecorded { node, score }));
        let least = self.set["kickoutMilli"] as f64 / 1e3;
        let n = self.nodes.get_mut(&node).unwrap();
        n.scores.push_back(score);
        if n.scores.len() > 50 {
            n.scores.pop_front();
        }
        let mean = n.scores.iter().map(|&s| s as f64).sum::<f64>() / n.scores.len() as f64;
        if n.scores.len() == 50 && mean < least - 1e-9 {
            match n.status {
                2 | 3 | 4 | 6 => n.status = 6,
                1 | 5 => self.leave(t, node, true),
                _ => {}
            }
        }
    }

    // ------------------------------------------------------------ comparing

    /// Compares everything with the real thing.
    pub fn compare<S: System>(&self, real: &mut S, full: bool) {
        assert_eq!(real.balance(), self.paid_in - self.paid_out + self.forced, "balance");
        real.read(|net| self.compare_state(net, full));
    }

    fn compare_state<H: Host>(&self, net: &Network<H>, full: bool) {
        let o = net.overview();
        let joined: Vec<&Node> = self.nodes.values().filter(|n| n.status != 0).collect();
        let largest = joined.iter().map(|n| n.stake).max().unwrap_or(0);
        assert_eq!(
            (
                o.tasks,
                o.nodesIssued as usize,
                o.nodesJoined as usize,
                o.pending as usize,
                o.queued as usize,
                o.largestStake,
                o.treasuryBalance,
                o.paused
            ),
            (
                self.tasks,
                self.nodes.len(),
                joined.len(),
                self.pending.len(),
                self.queue.len(),
                largest,
                self.treasury,
                self.paused
            )
        );
        let class = |stake: u128| (0..10).find(|&c| stake <= (400 * TOKEN) << (2 * c)).unwrap_or(9);
        assert_eq!(net.rules().lowest as usize, joined.iter().map(|n| class(n.stake)).min().unwrap_or(0) as usize);
        let due = self.nodes.values().filter_map(|n| n.parked).min().unwrap_or(0);
        assert_eq!(net.head().parked_due as u64, due);

        let mut money = self.treasury;
        for (&number, n) in &self.nodes {
            let v = net.node_view(NodeId(number)).unwrap();
            assert_eq!(
                (v.operator.into_array(), v.status, v.gpu, v.stake, v.scores as usize, v.joinedAt),
                (n.operator, n.status, n.group, n.stake, n.scores.len(), n.joined_at)
            );
            assert!((v.reliability as f64 / 1e18 - self.h(n)).abs() < EPS, "H of {number}: {} and {}", v.reliability, self.h(n));
            assert_eq!(v.models.iter().copied().collect::<BTreeSet<_>>(), n.held);
            assert_eq!(v.models.len(), n.held.len());
            assert_eq!(v.inUse, n.in_use);
            let mean =
                if n.scores.is_empty() { 5.0 } else { n.scores.iter().map(|&s| s as f64).sum::<f64>() / n.scores.len() as f64 };
            assert!((v.longTerm as f64 / 1e17 - mean).abs() < 1e-9);
            money += n.stake;
            if let Some(t) = &n.task {
                self.same(&net.running_task(NodeId(number)).unwrap(), t, 3);
                money += t.fee;
            }
            let best = net.best_queued(NodeId(number)).unwrap().id;
            assert_eq!(best, self.best(n).map_or(0, |i| self.queue[i].id));
        }
        for who in self.accounts.keys() {
            let (a, v) = (&self.accounts[who], net.account_view(*who));
            assert_eq!(
                (v.credit, v.unbonding, v.release, v.node, v.kickedOut),
                (a.credit, a.unbonding, a.release, a.node, a.kicked)
            );
            money += a.credit + a.unbonding;
        }
        let pending = net.pending_tasks(0, 256).unwrap();
        for (v, t) in pending.iter().zip(self.pending.iter().take(256)) {
            self.same(v, t, 1);
        }
        money += self.pending.iter().chain(&self.queue).map(|t| t.fee).sum::<u128>();
        assert_eq!(money, self.paid_in - self.paid_out, "money");
        let mut parked: Vec<u32> = net.excluded_nodes(0, 256).unwrap().1.iter().map(|n| n.0).collect();
        parked.sort();
        assert_eq!(parked, self.nodes.iter().filter(|(_, n)| n.parked.is_some()).map(|(&i, _)| i).collect::<Vec<_>>());
        let mut idle: Vec<u32> = Vec::new();
        for &g in self.groups.values() {
            for c in 0..10 {
                for NodeId(number) in net.listed_nodes(Among::Idle, GpuGroup(g), c, 0, 256).unwrap().1 {
                    let n = &self.nodes[&number];
                    assert_eq!((n.group, class(n.stake) as u8), (g, c), "{number} stands wrong");
                    idle.push(number);
                }
            }
        }
        idle.sort();
        assert_eq!(idle, self.idle().map(|(&i, _)| i).collect::<Vec<_>>());
        let groups: BTreeSet<u32> = self.queue.iter().map(Task::group).collect();
        for group in groups {
            let (_, tasks) = net.queued_tasks(GpuGroup(group), 0, 256).unwrap();
            let mine: Vec<&Task> = self.queue.iter().filter(|t| t.group() == group).collect();
            assert_eq!(tasks.len(), mine.len());
            for v in &tasks {
                self.same(v, mine.iter().find(|t| t.id == v.id).expect("queued"), 2);
            }
        }
        if full {
            for (&m, list) in &self.holders {
                if m > 0 {
                    assert_eq!(
                        net.holders_view(ModelId(m), 0, 256).unwrap(),
                        (list.len() as u32, list.iter().map(|&n| NodeId(n)).collect())
                    );
                }
            }
        }
    }

    fn same(&self, v: &IMuster::TaskView, t: &Task, status: u8) {
        let at = [0, v.drawBlock, v.ticket, v.deadline][status as usize];
        assert_eq!((v.status, v.drawBlock + v.ticket + v.deadline), (status, at));
        assert_eq!(
            (
                v.id,
                v.creator.into_array(),
                v.fee,
                v.estimate as u64,
                v.timeLimit as u64,
                v.startFeeBps as u128,
                v.vram,
                v.gpu,
                &v.models,
                at,
                v.boosts
            ),
            (t.id, t.creator, t.fee, t.estimate, t.limit, t.bps, t.vram, t.gpu.unwrap_or(0), &t.models, t.at, t.boosts)
        );
    }
}
