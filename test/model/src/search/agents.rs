//! The acts of nodes, honest ones and the adversary's, and of drivers.

use super::arena::{Arena, DRIVER, HELPER};
use super::parties::{false_answer, Nature, Side};
use super::plan::{Answer, Away, Leave, Pace, Plan, Reveal, HONEST};
use super::DEVIATES;
use crate::world::{commitment, ids, stage, who, TOKEN};
use alloy_primitives::{keccak256, B256};
use alloy_sol_types::{SolCall, SolValue};
use muster_core::record::Status;
use muster_core::word::Address;
use muster_protocol::abi::IMuster::*;
use muster_protocol::IMuster;
use std::collections::{HashMap, HashSet};

/// Seconds after its commitment for which an answer that is not validated can wait.
const SAMPLE_WINDOW: u64 = 600;
/// Blocks after its commitment whose last decides whether an answer is sampled.
const SAMPLE_DELAY: u64 = 2;
/// Open commitments with which a node is not drawn as a validator.
const OPEN_MOST: u8 = 2;
/// Longest stretch in which nothing happens.
const LONGEST: u64 = 3_600;
/// A call: its sender, its value, and its data.
pub type Sent = (Address, u128, Vec<u8>);

/// A node's work on a task.
#[derive(Clone, Debug)]
pub struct Job {
    /// When it is done.
    pub done: u64,
    /// When its answer was committed to.
    pub committed: u64,
    kind: u8,
    value: B256,
    /// Another's opening is tried at the reveal.
    copied: bool,
}

/// A life in progress.
#[derive(Clone)]
pub struct Game {
    /// The network.
    pub a: Arena,
    /// How the adversary plays.
    pub plan: Plan,
    /// The job of each task and node.
    pub jobs: HashMap<(u64, u32), Job>,
    /// The adversary's dust tasks that bind others' nodes.
    pub binding: HashSet<u64>,
    /// The chance that an honest passer-by drives a task that can be driven.
    pub drive: f64,
    /// The adversary's nodes with a GPU name of its own.
    pub private: Vec<u32>,
    /// Tasks that the ring is still to be flooded with.
    pub flood: u64,
    /// Honest nodes that have paused.
    pub resting: Vec<u32>,
    /// How often the adversary's other nodes can still be away in this life.
    pub left: u8,
    /// Turns so far.
    pub turns: u64,
}

fn salt(id: u64, node: u32) -> B256 {
    keccak256((id, node, "salt").abi_encode())
}

/// A word as one image: its first eight bytes.
fn as_image(mut word: B256) -> B256 {
    word[0] |= 1;
    word[8..].fill(0);
    word
}

/// The answer of a node that works as it should.
fn right_answer(nature: Nature, id: u64, node: u32, side: Side, images: bool) -> B256 {
    let word = match nature {
        Nature::Plain | Nature::Lacking => keccak256((id, "right").abi_encode()),
        Nature::NoRight => keccak256((id, node).abi_encode()),
        // The adversary knows both, and gives one of them.
        Nature::Ambiguous => {
            let coin = if side == Side::Honest { keccak256((id, node, "card").abi_encode())[0] as u64 & 1 } else { 0 };
            keccak256((id, coin).abi_encode())
        }
    };
    if !images {
        return word;
    }
    let mut image = as_image(word);
    // Images of equal cards differ a little.
    let noise = keccak256((id, node, "noise").abi_encode());
    for i in 0..3 {
        image[1 + i] ^= 1 << (noise[i] % 8);
    }
    image
}

impl Game {
    fn plan_of(&self, side: Side) -> Plan {
        if side == Side::Honest {
            HONEST
        } else {
            self.plan.clone()
        }
    }

    // ------------------------------------------------------------ nodes

    /// Every node of a side does its work.
    pub fn work(&mut self, side: Side) {
        let plan = self.plan_of(side);
        for node in self.a.nodes(side) {
            let view = self.a.running(node);
            match view.status {
                3 | 6 => {
                    if let Some((call, job)) = self.prepare(side, &plan, node, &view) {
                        self.answer(side, &plan, (view.id, node), call, job);
                    }
                }
                4 => self.after_the_lot(side, &plan, node, &view),
                _ => {}
            }
        }
        self.reveal_in_groups(side, &plan);
    }

    /// A node's answer to its running task, if it is time for it.
    pub fn prepare(&mut self, side: Side, plan: &Plan, node: u32, view: &IMuster::TaskView) -> Option<(Sent, Job)> {
        let (id, now) = (view.id, self.a.w.mem.now);
        if !self.jobs.contains_key(&(id, node)) {
            let pace = if self.binding.contains(&id) && id % 2 == 0 { Pace::Never } else { plan.pace };
            let done = match pace {
                Pace::Instant => now,
                // Some are slow, and some of those too slow.
                Pace::Normal if self.a.dice.below(40) == 0 => now + 60 + self.a.dice.below(90),
                Pace::Normal => now + 3 + self.a.dice.below(40),
                Pace::Last => view.deadline,
                Pace::Never => u64::MAX,
            };
            let job = Job { done, committed: 0, kind: 0, value: B256::ZERO, copied: false };
            self.jobs.insert((id, node), job);
        }
        let job = self.jobs[&(id, node)].clone();
        if now < job.done || now > view.deadline {
            return None;
        }
        let from = self.a.operator(node);
        let right = right_answer(self.a.nature(id), id, node, side, view.kind == 0);
        let lacks = self.a.lacks(id, node);
        if view.redundancy == 0 {
            if lacks || side == Side::Adversary && plan.answer == Answer::Error {
                return Some(((from, 0, reportErrorCall { id, code: 7 }.abi_encode()), job));
            }
            return Some(((from, 0, submitCall { id, resultDigest: right }.abi_encode()), job));
        }
        let mut job = Job { committed: now, ..job };
        let mut copied = None;
        (job.kind, job.value) = if lacks {
            (1, B256::with_last_byte(7))
        } else if side == Side::Honest {
            let slip = self.a.dice.below(DEVIATES) == 0;
            if slip {
                self.a.book.deviated.insert((id, node));
                self.a.book.life.deviations += 1;
            }
            let wrong = keccak256((id, node, "slip").abi_encode());
            (0, if slip { [wrong, as_image(wrong)][usize::from(view.kind == 0)] } else { right })
        } else {
            let members = self.a.book.tasks.get(&id).map_or(&[][..], |entry| &entry.members);
            let own = self.a.book.own(members);
            let together = own >= 2 && 2 * own > members.len();
            let first = view.status == 3;
            match plan.answer {
                Answer::Right => (0, right),
                Answer::False => (0, false_answer(id)),
                Answer::FalseTogether => (0, if together || first { false_answer(id) } else { right }),
                Answer::Error => (1, B256::with_last_byte(7)),
                Answer::ErrorTogether if together => (1, B256::with_last_byte(7)),
                Answer::ErrorFirst if first => (1, B256::with_last_byte(7)),
                Answer::ErrorTogether | Answer::ErrorFirst => (0, right),
                Answer::Copy => {
                    copied = self.committed_beside(view.group, node);
                    (0, right)
                }
            }
        };
        job.copied = copied.is_some();
        let hash = copied.unwrap_or_else(|| commitment(id, node, job.kind, job.value, salt(id, node)));
        Some(((from, 0, commitCall { id, commitment: hash }.abi_encode()), job))
    }

    /// A commitment of another member of a group.
    fn committed_beside(&mut self, place: u32, node: u32) -> Option<B256> {
        let groups = self.a.groups();
        let group = groups.iter().find(|g| g.group == place)?;
        group.members.iter().find(|m| m.node != node && m.stage == stage::COMMITTED).map(|m| m.answer)
    }

    /// Sends a node's answer.
    pub fn answer(&mut self, side: Side, plan: &Plan, at: (u64, u32), (from, value, data): Sent, job: Job) {
        let away = side == Side::Adversary && data.starts_with(&commitCall::SELECTOR);
        let gone = if away { self.go_away(plan.away, at.1) } else { Vec::new() };
        let done = self.a.call_data(from, value, &data);
        self.come_back(plan.away, gone);
        if let (Err(refused), Side::Honest) = (&done, side) {
            let refused = crate::world::named::<()>(Err(refused.clone()));
            self.a.fail(&format!("an honest answer in time is refused: {refused}"));
        }
        if done.is_ok() {
            self.jobs.insert(at, job);
            if side == Side::Adversary {
                self.leave(plan.leave, at.1);
            }
        }
    }

    /// The adversary's idle nodes leave before another of its nodes commits.
    fn go_away(&mut self, away: Away, but: u32) -> Vec<u32> {
        if away == Away::Stay || self.left == 0 {
            return Vec::new();
        }
        self.left -= 1;
        let mut gone = Vec::new();
        for node in self.a.nodes(Side::Adversary) {
            if node != but && self.a.is_public(node) && self.a.seat(node).node.status == Status::Available as u8 {
                let from = self.a.operator(node);
                let leave = if away == Away::Quit { quitCall {}.abi_encode() } else { pauseCall {}.abi_encode() };
                gone.extend(self.a.call_data(from, 0, &leave).is_ok().then_some(node));
            }
        }
        gone
    }

    /// They come back: paused ones resume, others join with new addresses.
    fn come_back(&mut self, away: Away, gone: Vec<u32>) {
        for node in gone {
            if away == Away::Quit {
                self.a.enter(Side::Adversary);
            } else {
                let from = self.a.operator(node);
                let _ = self.a.call(from, 0, resumeCall {});
            }
        }
    }

    /// The act of a node of the adversary's after committing.
    fn leave(&mut self, leave: Leave, node: u32) {
        let from = self.a.operator(node);
        let leave = match leave {
            Leave::Any => [Leave::Stay, Leave::Pause, Leave::Quit][self.a.dice.below(3) as usize],
            other => other,
        };
        match leave {
            Leave::Stay | Leave::Any => {}
            Leave::Pause => drop(self.a.call(from, 0, pauseCall {})),
            Leave::Quit | Leave::Rejoin => {
                let _ = self.a.call(from, 0, quitCall {});
                let _ = self.a.call(from, 0, withdrawCall { to: from.into() });
                if leave == Leave::Rejoin {
                    let join =
                        joinCall { gpuName: "RTX 4090".into(), vram: 24, models: ids(vec![1]).iter().map(|m| m.0).collect() };
                    let _ = self.a.call(from, 400 * TOKEN, join);
                }
            }
        }
    }

    /// A node's answer to a sampled task, once its lot is drawn.
    fn after_the_lot(&mut self, side: Side, plan: &Plan, node: u32, view: &IMuster::TaskView) {
        let Some(sampled) = self.a.lot(node) else { return };
        let (id, now) = (view.id, self.a.w.mem.now);
        let Some(job) = self.jobs.get(&(id, node)).cloned() else { return };
        let from = self.a.operator(node);
        let reveal = revealCall { id, group: 0, node, kind: job.kind, value: job.value, salt: salt(id, node) };
        match (side, sampled) {
            (Side::Honest, false) => drop(self.a.must(from, 0, reveal)),
            // The driver earns by it; if nobody drives it, the node does itself.
            (Side::Honest, true) if now > job.committed + 60 => drop(self.a.must(from, 0, validateCall { id, node })),
            (Side::Honest, true) => {}
            (Side::Adversary, false) => {
                let late = now + 1 >= job.committed + SAMPLE_WINDOW;
                if plan.reveal == Reveal::Open || plan.reveal == Reveal::Last && late {
                    let _ = self.a.call(from, 0, reveal);
                }
            }
            (Side::Adversary, true) => {
                let few = !plan.waits || self.share(node) >= 500_000;
                if few || now > job.committed + SAMPLE_WINDOW {
                    self.noted_share(node);
                    let _ = self.a.call(who(HELPER), 0, validateCall { id, node });
                }
            }
        }
    }

    /// The adversary's share of the nodes that could be drawn as this node's validators, in millionths.
    fn share(&mut self, first: u32) -> u64 {
        let mut could = |side| {
            let nodes = self.a.nodes(side);
            nodes.iter().filter(|n| **n != first && self.a.could_validate(**n, OPEN_MOST)).count() as u64
        };
        let (own, others) = (could(Side::Adversary), could(Side::Honest));
        own * 1_000_000 / (own + others).max(1)
    }

    fn noted_share(&mut self, first: u32) {
        if self.a.book.side(first) == Side::Adversary {
            self.a.book.life.share += self.share(first);
            let joined = |game: &mut Game, side| {
                let nodes = game.a.nodes(side);
                nodes.iter().filter(|n| **n != first && game.a.is_public(**n)).count() as u64
            };
            let (own, others) = (joined(self, Side::Adversary), joined(self, Side::Honest));
            self.a.book.life.usual += own * 1_000_000 / (own + others).max(1);
            self.a.book.life.shares += 1;
        }
    }

    /// Reveals open commitments in groups.
    fn reveal_in_groups(&mut self, side: Side, plan: &Plan) {
        for group in self.a.groups() {
            if group.opens == 0 {
                continue;
            }
            for member in group.members.iter().filter(|m| m.stage == stage::COMMITTED) {
                let (id, node, now) = (group.id, member.node, self.a.w.mem.now);
                if self.a.book.side(node) != side {
                    continue;
                }
                let Some(job) = self.jobs.get(&(id, node)).cloned() else { continue };
                let from = self.a.operator(node);
                let reveal = revealCall { id, group: group.group, node, kind: job.kind, value: job.value, salt: salt(id, node) };
                if side == Side::Honest {
                    self.a.must(from, 0, reveal);
                    continue;
                }
                let bound = self.binding.contains(&id);
                if !bound && (plan.reveal == Reveal::Open || plan.reveal == Reveal::Last && now + 1 >= group.closes) {
                    if job.copied {
                        // With the other's opening, once it is known.
                        if let Some(other) = group.members.iter().find(|m| m.stage == stage::ANSWERED) {
                            let value = other.answer;
                            let _ = self.a.call(from, 0, revealCall { value, salt: salt(id, other.node), ..reveal.clone() });
                        }
                    }
                    let _ = self.a.call(from, 0, reveal);
                }
            }
        }
    }

    // ------------------------------------------------------------ driving

    /// A passer-by calls all that anybody may call.
    pub fn driven(&mut self, side: Side) {
        let (from, now) = (who(if side == Side::Honest { DRIVER } else { HELPER }), self.a.w.mem.now);
        self.sent(side, from, dispatchCall { count: 16 });
        let issued = self.a.people.iter().map(|p| p.node).max().unwrap_or(0);
        for node in 1..=issued {
            let view = self.a.running(node);
            let id = view.id;
            match view.status {
                3 | 6 if now > view.deadline => self.sent(side, from, expireCall { node, id }),
                4 => match self.a.lot(node) {
                    Some(true) => {
                        self.noted_share(node);
                        self.sent(side, from, validateCall { id, node });
                    }
                    Some(false) => {
                        let seat = self.a.seat(node);
                        let order = seat.order(&self.a.w.mem);
                        let elapsed = u64::from(seat.commitment(&self.a.w.mem).elapsed);
                        let due = order.moment - u64::from(order.limit) + elapsed + SAMPLE_WINDOW;
                        // However long blocks take, the lot was known for some of them.
                        let known = seat.commitment(&self.a.w.mem).block + SAMPLE_DELAY;
                        if now > due && known < self.a.w.mem.block {
                            self.sent(side, from, expireCall { node, id });
                        }
                    }
                    None => {}
                },
                _ => {}
            }
        }
        for group in self.a.groups() {
            let revealed = group.members.iter().all(|m| m.stage != stage::COMMITTED);
            if group.opens > 0 && (revealed || now > group.closes) {
                self.sent(side, from, settleCall { id: group.id, group: group.group });
            }
        }
        for task in self.queued() {
            if now > task.queuedAt + 21_600 {
                self.sent(side, from, expireQueuedCall { id: task.id, ticket: task.ticket });
            }
        }
    }

    /// A driver's call: an honest one's must be accepted.
    fn sent<C: SolCall + Clone>(&mut self, side: Side, from: Address, call: C) {
        if side == Side::Honest {
            self.a.must(from, 0, call);
        } else {
            let _ = self.a.call(from, 0, call);
        }
    }

    /// All queued tasks.
    pub fn queued(&mut self) -> Vec<IMuster::TaskView> {
        self.a.w.view(|net| {
            let mut found = Vec::new();
            if net.queued() > 0 {
                for queue in net.queues(0, 256).expect("a page").1 {
                    let id = muster_core::id::QueueId(queue.queue);
                    let page = net.queued_tasks(id, 0, queue.places.min(256)).expect("a page").1;
                    found.extend(page.into_iter().filter(|t| t.id > 0));
                }
            }
            found
        })
    }

    /// Honest nodes pause and resume as they like.
    pub fn rest(&mut self) {
        if let Some(&node) = self.resting.first() {
            let status = self.a.seat(node).node.status;
            if status == Status::Paused as u8 && self.a.dice.below(8) == 0 {
                let from = self.a.operator(node);
                self.a.must(from, 0, resumeCall {});
                self.resting.remove(0);
            }
        } else if self.a.dice.below(60) == 0 {
            let honest = self.a.nodes(Side::Honest);
            let node = honest[self.a.dice.below(honest.len() as u64) as usize];
            let from = self.a.operator(node);
            // Due draws are made first, and can give it a task.
            self.a.must(from, 0, dispatchCall { count: 16 });
            if matches!(self.a.seat(node).node.status, 1 | 2) {
                self.a.must(from, 0, pauseCall {});
                self.resting.push(node);
            }
        }
    }

    // ------------------------------------------------------------ time

    /// When something can happen next.
    pub fn next_time(&mut self) -> u64 {
        let now = self.a.w.mem.now;
        let mut next = now + LONGEST;
        let mut at = |time: u64| {
            if time > now {
                next = next.min(time);
            }
        };
        let waits = self.a.w.view(|net| !net.ring().is_empty() || !net.validator_draws().is_empty());
        if waits {
            at(now + 1);
        }
        let issued = self.a.people.iter().map(|p| p.node).max().unwrap_or(0);
        for node in 1..=issued {
            let view = self.a.running(node);
            let job = self.jobs.get(&(view.id, node));
            match view.status {
                3 | 6 => {
                    // A node that has just begun plans first.
                    at(job.map_or(now + 1, |job| job.done));
                    at(view.deadline + 1);
                }
                4 if self.a.lot(node) == Some(false) => {
                    let committed = job.map_or(now, |job| job.committed);
                    at(committed + SAMPLE_WINDOW - 1);
                    at(committed + SAMPLE_WINDOW + 1);
                }
                4 | 5 => at(now + 1),
                _ => {}
            }
        }
        for group in self.a.groups() {
            if group.opens > 0 {
                let honest = |m: &IMuster::MemberView| m.stage == stage::COMMITTED && self.a.book.side(m.node) == Side::Honest;
                if group.members.iter().any(honest) || group.members.iter().all(|m| m.stage != stage::COMMITTED) {
                    at(now + 1);
                }
                at(group.closes - 1);
                at(group.closes + 1);
            }
        }
        for task in self.queued() {
            at(task.queuedAt + 21_601);
            at(now + 60);
        }
        next
    }
}
