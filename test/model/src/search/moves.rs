//! The adversary's moves besides answering.

use super::agents::{Game, Job, Sent};
use super::arena::{CARD, COMMON_MODEL, CREATOR, HELPER};
use super::parties::{Nature, Side};
use super::plan::OFFERS;
use crate::world::{spec, who, TOKEN};
use alloy_primitives::B256;
use alloy_sol_types::SolCall;
use muster_core::wad::WAD;
use muster_protocol::abi::IMuster::*;
use muster_protocol::IMuster;

/// Calls that a meddler looks at in a turn.
const LOOKS: u64 = 6;
/// The model that only the adversary's nodes hold.
pub const PRIVATE_MODEL: u64 = 0xdead;
/// Nodes of a rated group of honest applications.
pub const CLIENTS_GROUP: u8 = 3;
/// VRAM of its own GPU name.
pub const PRIVATE_VRAM: u16 = 48;

/// A node's answer to a task, by both their numbers.
type Answering = ((u64, u32), Job);

impl Game {
    /// The adversary's turn.
    pub fn plot(&mut self) {
        let plan = self.plan.clone();
        if plan.meddles && self.a.draws_due() {
            self.meddle();
        }
        if self.flood > 0 && self.a.dice.below(6) == 0 {
            self.flood_ring(20);
        }
        if plan.tries {
            self.try_something();
        }
        self.work(Side::Adversary);
        if plan.drives {
            self.driven(Side::Adversary);
        }
    }

    /// Draws are due: looks for a call that is worth more to the adversary than none, and makes it.
    fn meddle(&mut self) {
        let drive = (who(HELPER), 0, dispatchCall { count: 16 }.abi_encode());
        let base = self.a.foresee(std::slice::from_ref(&drive)).unwrap_or_default();
        for _ in 0..LOOKS {
            let Some((sent, at)) = self.some_move() else { continue };
            self.a.book.life.looked += 1;
            let Some(worth) = self.a.foresee(&[sent.clone(), drive.clone()]) else { continue };
            if worth > base {
                self.a.book.life.moved += 1;
                match at {
                    Some((at, job)) => self.answer(Side::Adversary, &self.plan.clone(), at, sent, job),
                    None => drop(self.a.call_data(sent.0, sent.1, &sent.2)),
                }
                let _ = self.a.call(who(HELPER), 0, dispatchCall { count: 16 });
                return;
            }
        }
    }

    /// A call that the adversary could make now; with the answer that it is, if it is one.
    fn some_move(&mut self) -> Option<(Sent, Option<Answering>)> {
        let own = self.a.nodes(Side::Adversary);
        let node = own[self.a.dice.below(own.len() as u64) as usize];
        let from = self.a.operator(node);
        let helper = who(HELPER);
        let view = self.a.running(node);
        let some = |a: &mut super::arena::Arena, n: usize| a.dice.below(n as u64) as usize;
        let data = match self.a.dice.below(12) {
            0 => pauseCall {}.abi_encode(),
            1 => resumeCall {}.abi_encode(),
            2 => quitCall {}.abi_encode(),
            3 => return Some(((from, TOKEN, raiseStakeCall {}.abi_encode()), None)),
            4 => reportDownloadedCall { models: vec![2] }.abi_encode(),
            5 => reportRemovedCall { models: vec![1] }.abi_encode(),
            6 | 7 if matches!(view.status, 3 | 6) => {
                let plan = super::plan::Plan { pace: super::plan::Pace::Instant, ..self.plan.clone() };
                self.jobs.remove(&(view.id, node));
                let (sent, job) = self.prepare(Side::Adversary, &plan, node, &view)?;
                return Some((sent, Some(((view.id, node), job))));
            }
            6 => formGroupCall {}.abi_encode(),
            7 => dispatchCall { count: 1 }.abi_encode(),
            8 => {
                let issued = self.a.people.len();
                pokeCall { node: 1 + some(&mut self.a, issued) as u32 }.abi_encode()
            }
            9 => {
                let groups = self.a.groups();
                let group = groups.get(some(&mut self.a, groups.len().max(1)))?;
                settleCall { id: group.id, group: group.group }.abi_encode()
            }
            10 => {
                let value = 60 + self.a.dice.below(1_000) as u128;
                self.a.book.next = Nature::Plain;
                return Some(((who(CREATOR), value, createTaskCall { spec: spec(24, &[]) }.abi_encode()), None));
            }
            _ => {
                let issued = self.a.people.len();
                let node = 1 + some(&mut self.a, issued) as u32;
                let id = self.a.w.mem.now;
                let id = self.a.w.view(|net| net.running_task(muster_core::id::NodeId(node))).map_or(id, |v| v.id);
                return Some(((helper, 0, expireCall { node, id }.abi_encode()), None));
            }
        };
        Some(((from, 0, data), None))
    }

    /// A call that it may not be entitled to; an accepted one must leave the books right.
    fn try_something(&mut self) {
        let helper = who(HELPER);
        let people = self.a.people.len() as u64;
        let node = 1 + self.a.dice.below(people) as u32;
        let id = {
            let tasks = &self.a.book.tasks;
            let mut open: Vec<u64> = tasks.keys().copied().collect();
            open.sort_unstable();
            if open.is_empty() {
                return;
            }
            open[self.a.dice.below(open.len() as u64) as usize]
        };
        let groups = self.a.groups();
        let place = groups.iter().find(|g| g.id == id).map_or(0, |g| g.group);
        let own = self.a.nodes(Side::Adversary);
        let node_of_own = own[self.a.dice.below(own.len() as u64) as usize];
        let from = self.a.operator(node_of_own);
        let value = B256::repeat_byte(3);
        let data = match self.a.dice.below(12) {
            0 => revealCall { id, group: place, node, kind: 0, value, salt: value }.abi_encode(),
            1 => settleCall { id, group: place }.abi_encode(),
            2 => validateCall { id, node }.abi_encode(),
            3 => expireCall { node, id }.abi_encode(),
            4 => withdrawCall { to: from.into() }.abi_encode(),
            5 => commitCall { id, commitment: value }.abi_encode(),
            6 => submitCall { id, resultDigest: value }.abi_encode(),
            7 => cancelCall { id, ticket: self.a.dice.below(64) }.abi_encode(),
            8 => expireQueuedCall { id, ticket: self.a.dice.below(64) }.abi_encode(),
            9 => reportErrorCall { id, code: 1 }.abi_encode(),
            10 => purgeCall { model: 1, position: self.a.dice.below(20) as u32 }.abi_encode(),
            _ => return drop(self.a.call(helper, 0, withdrawCall { to: helper.into() })),
        };
        let _ = self.a.call_data(from, 0, &data);
    }

    /// Creates dust tasks until so many are there, or the ring is full.
    pub fn flood_ring(&mut self, most: u64) {
        self.a.book.next = Nature::Plain;
        for _ in 0..most.min(self.flood) {
            self.flood -= 1;
            let task = IMuster::TaskSpec { redundancy: [0, 2][usize::from(self.a.dice.below(8) == 0)], ..spec(24, &[]) };
            let value = if task.redundancy == 0 { 60 } else { 180 };
            if self.a.call(who(CREATOR), value, createTaskCall { spec: task }).is_err() {
                return;
            }
        }
    }

    /// Fills the queue with tasks that only a paused node of the adversary's could run.
    pub fn hold_queue(&mut self) {
        self.privately(1);
        let gpu = self.a.seat(self.private[0]).node.group.0;
        let capacity = self.a.w.view(|net| net.queue_capacity());
        self.a.book.next = Nature::Plain;
        for _ in 0..capacity {
            let task = IMuster::TaskSpec { gpu, ..spec(0, &[]) };
            let _ = self.a.call(who(CREATOR), 10 * TOKEN, createTaskCall { spec: task });
        }
    }

    /// Sees to it that so many nodes with the adversary's own GPU name have joined; they pause.
    pub fn privately(&mut self, nodes: usize) {
        while self.private.len() < nodes {
            let node = self.a.join(Side::Adversary, "own card", PRIVATE_VRAM, &[PRIVATE_MODEL], 400);
            self.private.push(node);
            let from = self.a.operator(node);
            let _ = self.a.call(from, 0, pauseCall {});
        }
    }

    /// Its private nodes resume, or pause again.
    pub fn show_private(&mut self, on: bool) {
        for node in self.private.clone() {
            let from = self.a.operator(node);
            let _ = if on { self.a.call(from, 0, resumeCall {}).map(drop) } else { self.a.call(from, 0, pauseCall {}).map(drop) };
        }
    }

    /// The adversary's tasks of a round are created, by one call if its plan says so. Where so many nodes are not there as its rated groups
    /// take, it does with three.
    pub fn create_own(&mut self, tasks: Vec<(IMuster::TaskSpec, u128)>) {
        self.a.book.next = self.plan.nature;
        if self.plan.batch {
            // None is created while draws are due.
            let _ = self.a.call(who(HELPER), 0, dispatchCall { count: 16 });
            let (specs, fees): (Vec<_>, Vec<_>) = tasks.iter().cloned().unzip();
            let value = fees.iter().sum();
            if self.a.call(who(CREATOR), value, createTasksCall { specs, fees, atomic: true }).is_ok() {
                return;
            }
        }
        for (spec, fee) in tasks {
            if self.a.call(who(CREATOR), fee, createTaskCall { spec }).is_err() && self.plan.policy == 3 {
                self.plan.policy = 2;
            }
        }
    }

    /// An application says how its rated groups are chosen: by chance, or the best rated first.
    pub fn set_profile(&mut self, application: u64, (most, reschedules): (u8, u8)) {
        let profile = Profile {
            algorithm: self.a.dice.below(2) as u8,
            least: 3,
            most,
            reschedules,
            targeting: 2,
            target: WAD / 2,
            alpha: WAD / 2,
            period: 300,
        };
        let _ = self.a.call(who(HELPER), 0, dispatchCall { count: 16 });
        let _ = self.a.call(who(application), 0, setProfileCall { profile });
    }

    /// A task as the plan has it, and its fee.
    pub fn wanted(&mut self, images: bool, policy: u8, own: bool) -> (IMuster::TaskSpec, u128) {
        let part = if own { self.plan.offer } else { OFFERS[1 + self.a.dice.below(3) as usize] };
        let nodes = match policy {
            2 => 3,
            3 if own => u32::from(self.plan.rated.0),
            3 => CLIENTS_GROUP.into(),
            _ => 1,
        };
        let fee = (u128::from(nodes) * part).min(self.a.most_fee(policy, nodes));
        let mut task = IMuster::TaskSpec { redundancy: policy, ..spec(0, &[]) };
        if images {
            task.kind = 0;
        } else if matches!(policy, 1 | 3) || self.a.dice.below(2) == 0 {
            task.gpu = CARD;
        } else {
            task.vram = 24;
        }
        if own && self.plan.name && images {
            task.vram = 0;
            task.gpu = self.a.seat(self.private[0]).node.group.0;
        }
        if own && self.plan.model {
            task.models = vec![PRIVATE_MODEL];
        } else if self.a.dice.below(4) == 0 {
            task.models = vec![COMMON_MODEL];
        }
        (task, fee)
    }
}
