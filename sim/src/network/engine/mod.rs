//! The clock: the actions of nodes and applications, call by call, and their results.
//!
//! | module | contents |
//! | --- | --- |
//! | [`validation`] | nodes' and drivers' actions for tasks under policies 1 and 2 |

mod check;
mod validation;

use std::collections::HashMap;

use alloy_sol_types::SolCall;
use indicatif::ProgressBar;
use muster_core::qos;
use muster_core::record::{Status, MEMBERS};
use muster_core::wad::WAD;
use muster_protocol::flow::create::{REPLICATED, SAMPLED};
use muster_protocol::store::accounts;
use muster_protocol::IMuster::{self, *};

use super::agenda::Agenda;
use super::events::Event;
use super::ledger::{submit, Ledger, Party, BEGINNING, STAKE_UNIT};
use super::report::{NodeReport, Report};
use super::workload::{download_time, exponential, fee, NodeSpec, Source, TaskSpec, TICKS};
use crate::random::Random;
use crate::trace::Outcome;
use check::Check;

/// Models a node keeps.
const DISK: usize = 12;
/// Entries of a node's model list, removed ones included.
const LIST: usize = 32;
/// Ticks after the last arrival when still open tasks are abandoned, beside the time that a task may be queued.
const PATIENCE: u64 = 6 * 3_600 * TICKS;
/// H, a wad, from which on a node counts as recovered.
const RECOVERED: u64 = WAD / 10 * 9;
/// Creations between two updates of the progress bar.
const STRIDE: u64 = 1_024;

/// The planned events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    /// Pending tasks are drawn: before anything else in its tick.
    Draw,
    Join(u32),
    Leave(u32),
    Pause(u32),
    Resume(u32),
    Down(u32),
    Up(u32),
    Die(u32),
    Raise(u32),
    Downloaded(u32, u64),
    Poke(u32),
    Arrive,
    /// A node is done with a task.
    Answer(u32),
    /// A node gives a task up.
    GiveUp(u32),
    Expire(u32),
    Cancel(u32),
    /// Somebody ends a task that was queued for too long.
    Outlive(u32),
    /// Whether a task is validated can be known.
    Lot(u32),
    /// A member of a task's group, by its place there, is done.
    Member(u32, usize),
    ExpireMember(u32, usize),
    Reveal(u32, usize),
    Settle(u32),
}

/// How a task stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Waiting,
    Running,
    /// Its node has committed to its answer and waits for the lot.
    Committed,
    /// A group has it.
    Grouped,
    Succeeded,
    Undecided,
    Reported,
    TimedOut,
    Dropped,
}

/// A task.
#[derive(Clone, Debug)]
struct Row {
    created: u32,
    /// Start, later the time from start to end.
    started: u32,
    /// First tick at which it can be expired.
    expires: u32,
    node: u32,
    work: u32,
    /// Decides whether it is answered, and whether it can be.
    luck: (u32, u32),
    ticket: u64,
    /// First tick at which it can be ended, if it is still queued.
    outlives: u64,
    application: u32,
    state: State,
    fate: Option<Outcome>,
    /// In wei.
    fee: u64,
    /// Under which it was created.
    redundancy: u8,
    /// Whether the node that runs it answers wrongly.
    wrong: bool,
    /// Images of an answer that can be validated; 0 where answers must be equal.
    images: u8,
}

#[derive(Debug)]
struct Actor {
    spec: NodeSpec,
    /// Its number in the contract; 0 before it joins.
    number: u32,
    silent: bool,
    last_down: u64,
    random: Random,
    held: Vec<u64>,
    listed: Vec<u64>,
    coming: Vec<u64>,
    excluded_at: Option<u64>,
    /// When a timeout lowered its H, as long as that has not recovered.
    lowered_at: Option<u64>,
    /// Since when it is kept for a task that takes three.
    kept_at: Option<u64>,
    /// Since when its open commitments keep it from work.
    held_at: Option<u64>,
    report: NodeReport,
}

/// The models that a node must download for a task, by the events that follow its start.
fn missing(after: &[Event], task: u64, node: u32) -> Vec<u64> {
    let asked = after.iter().map_while(|e| match e {
        Event::Download { node: n, model, task: t } if *t == task => Some((*n == node).then_some(*model)),
        _ => None,
    });
    asked.flatten().collect()
}

/// The ticks that a node takes for a task of this much work, including its downloads.
fn takes(spec: &NodeSpec, work: u64, missing: &[u64]) -> u64 {
    work * 1_000 / u64::from(spec.speed.max(1)) + missing.iter().map(|model| download_time(spec, *model)).sum::<u64>()
}

/// A simulation in progress.
pub struct Engine {
    ledger: Ledger,
    source: Source,
    next: Option<TaskSpec>,
    agenda: Agenda<Due>,
    tick: u64,
    drawing: bool,
    actors: Vec<Actor>,
    /// The node of a number.
    of_number: Vec<u32>,
    /// Rows by task id - 1.
    rows: Vec<Row>,
    /// Tasks whose nodes have committed or are three, by id. Never iterated over.
    checks: HashMap<u32, Check>,
    /// The highest fee for each node of a task that can be validated.
    most_at_stake: u128,
    open: u64,
    arrivals: u64,
    last_arrival: u64,
    /// The last arrival, start or end of a task, except ends without a start.
    active: u64,
    /// Ticks that a task may be queued.
    queue_time: u64,
    events: Vec<Event>,
    report: Report,
    bar: ProgressBar,
    seed: u64,
}

impl Engine {
    /// A network of these nodes, and its tasks.
    pub fn new(mut ledger: Ledger, nodes: Vec<NodeSpec>, source: Source, seed: u64, bar: Option<ProgressBar>) -> Self {
        let mut engine = Self {
            most_at_stake: ledger.most_at_stake(),
            queue_time: u64::from(ledger.limits().queue_time) * TICKS,
            checks: HashMap::new(),
            ledger,
            next: None,
            agenda: Agenda::default(),
            tick: 0,
            drawing: false,
            actors: Vec::new(),
            of_number: vec![0],
            rows: Vec::with_capacity(source.len() as usize),
            source,
            open: 0,
            arrivals: 0,
            last_arrival: 0,
            active: 0,
            events: Vec::new(),
            report: Report::default(),
            bar: bar.unwrap_or_else(ProgressBar::hidden),
            seed,
        };
        for (i, spec) in nodes.into_iter().enumerate() {
            engine.enter(i as u32, spec);
        }
        engine.fetch();
        engine
    }

    fn enter(&mut self, i: u32, spec: NodeSpec) {
        let mut random = Random::named(&[self.seed, 5, i.into()]);
        self.due(spec.joins, Due::Join(i));
        if let Some(at) = spec.leaves {
            self.due(at, Due::Leave(i));
        }
        if let Some(at) = spec.rejoins {
            self.due(at, Due::Join(i));
        }
        if let Some((from, to)) = spec.pause {
            self.due(from, Due::Pause(i));
            self.due(to, Due::Resume(i));
        }
        if let Some(at) = spec.dies {
            self.due(at, Due::Die(i));
        }
        if let Some(at) = spec.raises {
            self.due(at, Due::Raise(i));
        }
        if let Some((up, _)) = spec.outages {
            let first = spec.joins + exponential(&mut random, up * TICKS);
            self.due(first, Due::Down(i));
        }
        self.actors.push(Actor {
            number: 0,
            silent: false,
            last_down: 0,
            random,
            held: spec.models.clone(),
            listed: Vec::new(),
            coming: Vec::new(),
            excluded_at: None,
            lowered_at: None,
            kept_at: None,
            held_at: None,
            report: NodeReport::of(&spec),
            spec,
        });
    }

    fn fetch(&mut self) {
        self.next = self.source.next();
        if let Some(spec) = &self.next {
            let at = spec.at.max(self.tick);
            self.due(at, Due::Arrive);
        }
    }

    fn due(&mut self, tick: u64, what: Due) {
        self.agenda.plan(tick, what);
    }

    /// Runs until all tasks have ended, or nothing can end the rest.
    pub fn run(mut self) -> (Report, Ledger) {
        while self.step() {}
        self.finish()
    }

    /// Runs the next planned event; false if none that matters is left.
    pub fn step(&mut self) -> bool {
        if self.next.is_none() && (self.open == 0 || self.tick > self.last_arrival + self.queue_time + PATIENCE) {
            return false;
        }
        let Some((tick, what)) = self.agenda.pop() else { return false };
        if tick > self.tick {
            self.tick = tick;
        }
        self.ledger.set_time(BEGINNING + self.tick / TICKS, 1_000 + self.tick);
        self.perform(what);
        true
    }

    /// The contract. The engine notes the effects of other calls at its own next call.
    pub fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    fn perform(&mut self, what: Due) {
        match what {
            Due::Draw => {
                self.drawing = false;
                self.ledger.dispatch();
                self.absorb();
            }
            Due::Join(i) => self.join(i),
            Due::Leave(i) => {
                if self.present(i) {
                    self.operate(i, &quitCall {});
                }
            }
            Due::Pause(i) => {
                if matches!(self.status(i), Status::Available | Status::Busy) && !self.actor(i).silent {
                    self.operate(i, &pauseCall {});
                }
            }
            Due::Resume(i) => match self.status(i) {
                Status::Paused => {
                    self.operate(i, &resumeCall {});
                }
                Status::PendingPause => self.due(self.tick + 10 * TICKS, Due::Resume(i)),
                _ => {}
            },
            Due::Down(i) => {
                let tick = self.tick;
                let actor = self.actor(i);
                actor.silent = true;
                actor.last_down = tick;
                if let Some((_, down)) = actor.spec.outages {
                    let length = 1 + exponential(&mut actor.random, down * TICKS);
                    self.due(tick + length, Due::Up(i));
                }
            }
            Due::Up(i) => {
                let tick = self.tick;
                let actor = self.actor(i);
                actor.silent = false;
                if let Some((up, _)) = actor.spec.outages {
                    let length = 1 + exponential(&mut actor.random, up * TICKS);
                    self.due(tick + length, Due::Down(i));
                }
            }
            Due::Die(i) => {
                let tick = self.tick;
                let actor = self.actor(i);
                actor.silent = true;
                actor.last_down = tick;
            }
            Due::Raise(i) => {
                if self.present(i) {
                    let added = u128::from(self.actors[i as usize].spec.stake / 10);
                    self.call(Party::Operator(i), added * u128::from(STAKE_UNIT), &raiseStakeCall {});
                }
            }
            Due::Downloaded(i, model) => self.downloaded(i, model),
            Due::Poke(i) => self.poke(i),
            Due::Arrive => self.arrive(),
            Due::Answer(id) => self.answer(id),
            Due::GiveUp(id) => self.give_up(id),
            Due::Expire(id) => {
                let row = &self.rows[id as usize - 1];
                if matches!(row.state, State::Running | State::Committed) {
                    let node = self.actors[row.node as usize].number;
                    self.call(Party::Keeper, 0, &expireCall { node, id: id.into() });
                }
            }
            Due::Cancel(id) => {
                let row = &self.rows[id as usize - 1];
                if row.state == State::Waiting && row.ticket > 0 {
                    let (by, ticket) = (Party::Application(row.application), row.ticket);
                    self.call(by, 0, &cancelCall { id: id.into(), ticket });
                }
            }
            Due::Outlive(id) => {
                let row = &self.rows[id as usize - 1];
                if row.state == State::Waiting && row.ticket > 0 && row.outlives <= self.tick {
                    let ticket = row.ticket;
                    self.call(Party::Keeper, 0, &expireQueuedCall { id: id.into(), ticket });
                }
            }
            Due::Lot(id) => self.lot(id),
            Due::Member(id, i) => self.member_done(id, i),
            Due::ExpireMember(id, i) => self.expire_member(id, i),
            Due::Reveal(id, i) => self.reveal(id, i),
            Due::Settle(id) => self.settle(id),
        }
    }

    // ------------------------------------------------------------ calls

    /// Makes a call and handles its effects; one that must wait for draws is repeated after them.
    fn call(&mut self, by: Party, value: u128, call: &impl SolCall) -> bool {
        let mut outcome = self.ledger.call(by, value, call);
        if outcome.is_err() && self.ledger.due() {
            self.ledger.dispatch();
            outcome = self.ledger.call(by, value, call);
        }
        if let Err(refusal) = &outcome {
            let why = format!("{refusal:?}");
            let name = why.split(['(', ' ']).next().unwrap_or_default();
            *self.report.refusals.entry(name.into()).or_default() += 1;
        }
        self.absorb();
        outcome.is_ok()
    }

    fn operate(&mut self, i: u32, call: &impl SolCall) -> bool {
        self.call(Party::Operator(i), 0, call)
    }

    fn actor(&mut self, i: u32) -> &mut Actor {
        &mut self.actors[i as usize]
    }

    fn status(&self, i: u32) -> Status {
        match self.actors[i as usize].number {
            0 => Status::Quit,
            number => Status::new(self.ledger.node(number).status),
        }
    }

    fn present(&self, i: u32) -> bool {
        let here = matches!(self.status(i), Status::Available | Status::Busy | Status::Paused);
        here && !self.actors[i as usize].silent
    }

    // ------------------------------------------------------------ nodes

    fn join(&mut self, i: u32) {
        if self.status(i) != Status::Quit || self.actors[i as usize].report.kicked {
            return;
        }
        let actor = &self.actors[i as usize];
        let stake = actor.spec.stake + self.ledger.group_fee(&actor.spec.gpu, actor.spec.vram);
        let value = u128::from(stake) * u128::from(STAKE_UNIT);
        let (gpu, vram, models) = (actor.spec.gpu.clone(), actor.spec.vram, actor.held.clone());
        let call = joinCall { gpuName: gpu, vram, models };
        if self.call(Party::Operator(i), value, &call) {
            self.list(i);
            let actor = &mut self.actors[i as usize];
            for model in &actor.held {
                if !actor.listed.contains(model) {
                    actor.listed.push(*model);
                }
            }
        }
    }

    fn downloaded(&mut self, i: u32, model: u64) {
        let actor = self.actor(i);
        actor.coming.retain(|m| *m != model);
        let fits = actor.listed.contains(&model) || actor.listed.len() < LIST;
        if actor.silent || actor.held.contains(&model) || !fits || self.status(i) == Status::Quit {
            return;
        }
        let actor = self.actor(i);
        if actor.held.len() >= DISK {
            let oldest = actor.held[0];
            if !self.operate(i, &reportRemovedCall { models: vec![oldest] }) {
                return;
            }
            self.actor(i).held.remove(0);
        }
        if self.operate(i, &reportDownloadedCall { models: vec![model] }) {
            let actor = self.actor(i);
            actor.held.push(model);
            if !actor.listed.contains(&model) {
                actor.listed.push(model);
            }
        }
    }

    /// Anyone returns an excluded node to work once its time has come, or lets an idle one take queued tasks.
    fn poke(&mut self, i: u32) {
        let number = self.actors[i as usize].number;
        if number == 0 {
            return;
        }
        match self.ledger.waits(number) {
            // The draw it waits for, or its own end, is planned.
            Some(until) if until == 0 || until > self.ledger.host.now => return,
            _ => {}
        }
        let node = self.ledger.node(number);
        let idle = Status::new(node.status) == Status::Available;
        if node.parked != 0 || idle && self.ledger.head().queued > 0 {
            self.call(Party::Keeper, 0, &pokeCall { node: number });
            if self.ledger.node(number).parked != 0 {
                self.due(self.tick + TICKS, Due::Poke(i));
            }
        }
    }

    // ------------------------------------------------------------ tasks

    fn arrive(&mut self) {
        let Some(spec) = self.next.take() else { return };
        self.last_arrival = self.tick;
        self.active = self.tick;
        self.arrivals += 1;
        if self.arrivals.is_multiple_of(STRIDE) {
            self.bar.inc(STRIDE);
        }
        let (arrivals, all) = (self.arrivals, self.source.len());
        if arrivals * 10 / all > (arrivals - 1) * 10 / all {
            self.report.reserve.push(accounts::reserve(&self.ledger.host));
        }
        if let (Some(id), Some(Outcome::Cancelled)) = (self.create(&spec), spec.fate) {
            self.due(self.tick + spec.work, Due::Cancel(id));
        }
        self.fetch();
    }

    /// Creates a task; returns its id.
    fn create(&mut self, spec: &TaskSpec) -> Option<u32> {
        let gpu = match &spec.gpu {
            // Nobody with this GPU ever joined: any with its VRAM will do.
            Some((name, vram)) => self.ledger.gpu_group(name, *vram),
            None => None,
        };
        let estimate = if spec.kind == 1 { 60 } else { 30 + 20 * spec.units };
        let fee = fee(estimate, spec.generosity);
        let redundancy = if self.can_be_validated(spec, gpu, fee) { spec.redundancy } else { 0 };
        // Each of three gets the fee of a single node.
        let fee = fee * if redundancy == REPLICATED { MEMBERS as u128 } else { 1 };
        let asked = IMuster::TaskSpec {
            kind: spec.kind,
            units: spec.units,
            vram: if gpu.is_some() { 0 } else { spec.vram },
            gpu: gpu.map_or(0, |group| group.0),
            redundancy,
            flags: 0,
            inputDigest: [7; 32].into(),
            models: spec.models.clone(),
        };
        let random = &mut Random::named(&[self.seed, 4, self.arrivals]);
        let row = Row {
            created: self.tick as u32,
            started: 0,
            expires: 0,
            node: 0,
            work: (spec.work * (950 + random.below(101) as u64) / 1_000) as u32,
            luck: (random.below(1_000_000) as u32, random.below(1_000_000) as u32),
            ticket: 0,
            outlives: 0,
            application: spec.application,
            state: State::Waiting,
            fate: spec.fate,
            fee: u64::try_from(fee).unwrap_or(u64::MAX),
            redundancy,
            wrong: false,
            images: if redundancy > 0 && spec.kind == 0 { spec.units as u8 } else { 0 },
        };
        // Draws that a call makes first may start earlier tasks, so the row is there before its events come.
        self.rows.push(row);
        self.open += 1;
        let id = self.rows.len() as u32;
        if !self.call(Party::Application(spec.application), fee, &createTaskCall { spec: asked }) {
            self.rows.pop();
            self.open -= 1;
            self.report.refused += 1;
            return None;
        }
        self.report.asked += 1;
        self.report.sampled += u64::from(redundancy == SAMPLED);
        self.report.replicated += u64::from(redundancy == REPLICATED);
        self.report.fees += fee;
        Some(id)
    }

    fn answer(&mut self, id: u32) {
        let row = &self.rows[id as usize - 1];
        if row.state != State::Running {
            return;
        }
        let (i, started) = (row.node, row.started);
        let actor = &self.actors[i as usize];
        if actor.silent || actor.last_down >= u64::from(started) && actor.last_down > 0 {
            // It went down in between; the task is lost.
            let expires = row.expires.into();
            self.due(expires, Due::Expire(id));
        } else if !if row.redundancy > 0 { self.commit(id, false) } else { self.operate(i, &submit(id.into())) } {
            let expires = self.rows[id as usize - 1].expires.into();
            self.due(expires, Due::Expire(id));
        }
    }

    fn give_up(&mut self, id: u32) {
        let row = &self.rows[id as usize - 1];
        if row.state != State::Running {
            return;
        }
        let (i, sampled) = (row.node, row.redundancy > 0);
        let silent = self.actors[i as usize].silent;
        let report = reportErrorCall { id: id.into(), code: 1 };
        if silent || !if sampled { self.commit(id, true) } else { self.operate(i, &report) } {
            let expires = self.rows[id as usize - 1].expires.into();
            self.due(expires, Due::Expire(id));
        } else if !sampled {
            self.look_for_work(i);
        }
    }

    /// A node that has reported an error looks for no work by itself; once it has rested it is poked anyway.
    pub(super) fn look_for_work(&mut self, i: u32) {
        if self.ledger.node(self.actors[i as usize].number).parked == 0 {
            self.due(self.tick + 1, Due::Poke(i));
        }
    }

    // ------------------------------------------------------------ effects of calls

    fn absorb(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        self.ledger.take_events(&mut events);
        for at in 0..events.len() {
            self.take_in(&events, at);
        }
        self.events = events;
        if !self.drawing && self.ledger.pending() {
            self.drawing = true;
            self.agenda.plan_first(self.tick + 1, Due::Draw);
        }
    }

    fn take_in(&mut self, events: &[Event], at: usize) {
        let tick = self.tick;
        match events[at] {
            Event::Redrawn { task } => {
                let row = self.row(task);
                let (waits, queued) = (row.state == State::Waiting, std::mem::take(&mut row.ticket) > 0);
                // A task drawn from the queue was not drawn before.
                self.report.redrawn += u64::from(waits && !queued);
            }
            Event::Queued { task, ticket } => {
                let outlives = tick + self.queue_time + 2 * TICKS;
                let row = self.row(task);
                (row.ticket, row.outlives) = (ticket, outlives);
                self.report.queued += 1;
                self.due(outlives, Due::Outlive(task as u32));
            }
            Event::Started { task, node, deadline } => {
                let missing = missing(&events[at + 1..], task, node);
                self.start(task as u32, node, deadline, &missing);
            }
            Event::Download { node, model, .. } => {
                let i = self.of_number[node as usize];
                let actor = self.actor(i);
                if !actor.coming.contains(&model) && !actor.held.contains(&model) {
                    actor.coming.push(model);
                    let time: u64 = actor.coming.iter().map(|m| download_time(&actor.spec, *m)).sum();
                    self.due(tick + time.max(1), Due::Downloaded(i, model));
                }
            }
            Event::Succeeded { task, node, paid } => {
                self.watch(node);
                let i = self.of_number[node as usize];
                let report = &mut self.actor(i).report;
                report.income += paid;
                report.succeeded += 1;
                let wrong = self.row(task).wrong;
                self.succeed(task as u32, wrong);
                self.end(task as u32, State::Succeeded);
            }
            Event::ErrorReported { task, .. } => {
                self.report.reported += 1;
                self.end(task as u32, State::Reported);
            }
            Event::Aborted { task, reason, .. } => {
                let count = match reason {
                    0 => &mut self.report.timed_out,
                    1 => &mut self.report.cancelled,
                    4 => &mut self.report.orphaned,
                    _ => &mut self.report.evicted,
                };
                *count += 1;
                let state = if reason == 0 { State::TimedOut } else { State::Dropped };
                self.end(task as u32, state);
            }
            Event::Excluded { node, until } => {
                let i = self.of_number[node as usize];
                self.let_go(i);
                // A node held back until now waits only for due draws; and one that has just reported an error rests.
                let rests = at > 0 && matches!(events[at - 1], Event::ErrorReported { .. });
                if until > self.ledger.host.now && !rests {
                    self.actor(i).excluded_at = Some(tick);
                }
                let back = (until.max(BEGINNING) - BEGINNING) * TICKS;
                self.due(back.max(tick + 1), Due::Poke(i));
            }
            Event::Readmitted { node } => self.returned(node),
            Event::Waits { node, until } => {
                let i = self.of_number[node as usize];
                self.actor(i).kept_at.get_or_insert(tick);
                if until > 0 {
                    self.due(((until - BEGINNING) * TICKS).max(tick + 1), Due::Poke(i));
                }
            }
            Event::Joined { node } => {
                let Some(i) = self.operator_of(node) else { return };
                if self.of_number.len() <= node as usize {
                    self.of_number.resize(node as usize + 1, 0);
                }
                self.of_number[node as usize] = i;
                self.actor(i).number = node;
                self.actor(i).report.joined = Some(tick);
                self.report.joins += 1;
            }
            Event::Quit { node } => {
                self.returned(node);
                let i = self.of_number[node as usize];
                let report = &mut self.actor(i).report;
                report.present += tick - report.joined.take().unwrap_or(tick);
                self.report.quits += 1;
                self.released(node);
            }
            Event::KickedOut { node } => {
                let i = self.of_number[node as usize];
                self.actor(i).report.kicked = true;
            }
            Event::Paused { .. } => self.report.pauses += 1,
            Event::Committed { task, node, group, block } => self.committed(task as u32, node, group, block),
            Event::Sampled { task, paid } => {
                self.report.drivers += paid;
                if let Some(check) = self.checks.get_mut(&(task as u32)) {
                    (check.called, check.spent) = (true, paid);
                }
            }
            Event::Formed { task, group, nodes, scored } => {
                self.report.scored += u64::from(scored);
                self.formed(task as u32, group, nodes);
            }
            Event::MemberStarted { task, node, deadline } => {
                let missing = missing(&events[at + 1..], task, node);
                self.member_started(task as u32, node, deadline, &missing);
            }
            Event::MemberTimedOut { task, node } => {
                self.lower(self.of_number[node as usize]);
                self.member_out(task as u32, node);
            }
            Event::Judged { task, node, paid } => {
                self.watch(node);
                self.judged(task as u32, node, paid);
            }
            Event::Settled { task, outcome } => self.settled(task as u32, outcome),
            Event::Slashed { node, wei } => {
                let i = self.of_number[node as usize];
                let actor = self.actor(i);
                actor.report.slashed = true;
                actor.report.slashes += 1;
                actor.report.lost += wei;
            }
            Event::Scored { node, score } => {
                let i = self.of_number[node as usize];
                self.actor(i).report.scores.push(score);
            }
        }
    }

    /// The operator who has just got this number, from the word beside the node's record.
    fn operator_of(&self, node: u32) -> Option<u32> {
        let i = self.ledger.operator(node)?;
        ((i as usize) < self.actors.len()).then_some(i)
    }

    fn row(&mut self, task: u64) -> &mut Row {
        &mut self.rows[task as usize - 1]
    }

    fn returned(&mut self, node: u32) {
        let tick = self.tick;
        let i = self.of_number[node as usize];
        self.let_go(i);
        if let Some(from) = self.actor(i).excluded_at.take() {
            self.actor(i).report.excluded += tick - from;
            if tick > from {
                self.actor(i).report.exclusions += 1;
                self.report.exclusions.push((tick - from) as u32);
            }
        }
    }

    /// A node is no longer kept for a task that takes three.
    fn let_go(&mut self, i: u32) {
        let tick = self.tick;
        let actor = self.actor(i);
        if let Some(from) = actor.kept_at.take() {
            actor.report.kept += tick - from;
        }
    }

    /// Notes a timeout that lowered a node's H.
    fn lower(&mut self, i: u32) {
        let tick = self.tick;
        self.actor(i).lowered_at = Some(tick);
        self.report.lowered += 1;
    }

    /// Notes a node whose H has recovered.
    fn watch(&mut self, node: u32) {
        let i = self.of_number[node as usize];
        let Some(from) = self.actor(i).lowered_at else { return };
        if self.ledger.reliability(node) >= RECOVERED {
            self.actor(i).lowered_at = None;
            self.report.recoveries.push((self.tick - from) as u32);
        }
    }

    fn start(&mut self, id: u32, node: u32, deadline: u64, missing: &[u64]) {
        self.watch(node);
        let tick = self.tick;
        let i = self.of_number[node as usize];
        let wrong = self.answers_wrongly(id, i);
        let actor = &mut self.actors[i as usize];
        let spec = &actor.spec;
        let row = &mut self.rows[id as usize - 1];
        row.wrong = wrong;
        let expires = (deadline + 1 - BEGINNING) * TICKS;
        (row.state, row.node, row.started, row.expires) = (State::Running, i, tick as u32, expires as u32);
        let work = if wrong { TICKS } else { takes(spec, row.work.into(), missing) };
        let ends = tick + work.max(1);
        let (silent, report) = match row.fate {
            _ if wrong => (false, false),
            Some(Outcome::Answers) => (false, false),
            Some(Outcome::Silent) => (true, false),
            Some(Outcome::Reports) => (false, true),
            Some(Outcome::Cancelled) | None => (row.luck.0 < spec.silent, row.luck.1 < spec.errors),
        };
        let due = if actor.silent || silent || ends >= expires {
            (expires, Due::Expire(id))
        } else if report {
            (tick + work / 4 + 1, Due::GiveUp(id))
        } else {
            (ends, Due::Answer(id))
        };
        actor.report.started += 1;
        self.report.started += 1;
        self.report.local += u64::from(missing.is_empty());
        self.report.waits.push(tick as u32 - row.created);
        self.due(due.0, due.1);
    }

    /// Counts a success.
    fn succeed(&mut self, id: u32, wrong: bool) {
        let own = self.rows[id as usize - 1].redundancy > 0;
        self.report.succeeded += 1;
        self.report.wrong += u64::from(wrong);
        self.report.trusted += u64::from(own);
        self.report.slipped += u64::from(own && wrong);
    }

    fn end(&mut self, id: u32, state: State) {
        let tick = self.tick as u32;
        let row = &mut self.rows[id as usize - 1];
        let ran = matches!(row.state, State::Running | State::Committed);
        if row.state != State::Waiting {
            self.active = self.tick;
        }
        row.state = state;
        self.open -= 1;
        if state == State::Succeeded {
            self.report.spans.push(tick - row.created);
        }
        if row.redundancy > 0 {
            self.checks.remove(&id);
        }
        if ran {
            row.started = tick - row.started;
            let (i, took) = (row.node, u64::from(row.started));
            let report = &mut self.actors[i as usize].report;
            report.busy += took;
            if state == State::TimedOut {
                report.timed_out += 1;
                report.wasted += took;
                self.lower(i);
            }
        }
    }

    /// The results so far, and the contract.
    pub fn finish(mut self) -> (Report, Ledger) {
        // Waiting afterwards is no lost income.
        let tick = self.active;
        self.bar.inc(self.arrivals % STRIDE);
        for actor in &mut self.actors {
            let report = &mut actor.report;
            let since = |from: Option<u64>| from.map_or(0, |from| tick.saturating_sub(from));
            report.present += since(report.joined.take());
            report.excluded = (report.excluded + since(actor.excluded_at.take())).min(report.present);
            report.kept = (report.kept + since(actor.kept_at.take())).min(report.present);
            report.held = (report.held + since(actor.held_at.take())).min(report.present);
            if actor.number > 0 {
                let node = self.ledger.node(actor.number);
                report.long_term = qos::long_term(node.score_sum, node.score_count);
                report.gone = report.kicked;
            }
        }
        let mut report = self.report;
        report.open = self.open;
        report.span = self.last_arrival;
        report.waits.sort_unstable();
        report.spans.sort_unstable();
        report.burnt = accounts::burnt(&self.ledger.host);
        report.exclusions.sort_unstable();
        report.recoveries.sort_unstable();
        report.nodes = self.actors.into_iter().map(|actor| actor.report).collect();
        (report, self.ledger)
    }
}
