//! Tasks under policies 1 and 2: nodes' commitments and reveals, and drivers' calls. The contract makes the decisions.
//!
//! Right answers to a task are alike: images but for a few bits of their hashes, as from one GPU to another. Wrong ones never are.
//! A keeper has validators called, lets deadlines expire and groups be judged as soon as that is possible.

use std::collections::hash_map::Entry;

use muster_core::record::MEMBERS;
use muster_core::validation::{payment, Pot};
use muster_protocol::flow::create::{IMAGES_MAX, REPLICATED, SAMPLED};
use muster_protocol::id::GpuGroup;
use muster_protocol::IMuster::{commitCall, expireCall, revealCall, settleCall, validateCall, IMusterErrors as Error};

use super::check::{Check, Part, Stage};
use super::{takes, Due, Engine, State};
use crate::network::ledger::{Party, BEGINNING};
use crate::network::workload::{Kind, TaskSpec, TICKS};
use crate::random::Random;
use crate::trace::Outcome;

/// Kinds of commitments.
const ANSWER: u8 = 0;
const ERROR: u8 = 1;
/// Bits in which a right hash of an image differs from the exact one at most.
const NOISE: usize = 3;
/// Ticks after which a node that was gone tries again.
const AGAIN: u64 = 60 * TICKS;

impl Engine {
    /// Whether the contract accepts a task under the requested policy: by the fee of each node, images and GPU.
    pub(super) fn can_be_validated(&self, spec: &TaskSpec, gpu: Option<GpuGroup>, fee: u128) -> bool {
        let comparable = if spec.kind == 0 { spec.units <= IMAGES_MAX } else { spec.redundancy != SAMPLED || gpu.is_some() };
        fee <= self.most_at_stake && comparable
    }

    /// The owner says of every GPU that its nodes answer alike.
    pub(super) fn list(&mut self, i: u32) {
        let spec = &self.actors[i as usize].spec;
        if let Some(group) = self.ledger.gpu_group(&spec.gpu, spec.vram) {
            self.ledger.list(group);
        }
    }

    fn luck(&self, purpose: u64, id: u32, i: u32) -> Random {
        Random::named(&[self.seed, purpose, id.into(), i.into()])
    }

    /// Whether a node answers a task of its own at once and wrongly.
    pub(super) fn answers_wrongly(&self, id: u32, i: u32) -> bool {
        let wrong = self.actors[i as usize].spec.kind.wrong();
        wrong > 0 && self.luck(7, id, i).below(1_000) < wrong
    }

    /// The opening of a node's commitment: kind, value, salt.
    fn opening(&self, id: u32, part: &Part) -> (u8, [u8; 32], [u8; 32]) {
        let salt = self.luck(8, id, part.node).bits();
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&salt.to_be_bytes());
        if part.error {
            let mut value = [0; 32];
            value[31] = 1;
            return (ERROR, value, bytes);
        }
        // Where answers must be equal the four parts are those of one digest.
        let images = self.rows[id as usize - 1].images;
        let parts = if images == 0 { 4 } else { images.into() };
        let (mut right, mut own) = (self.luck(9, id, u32::MAX), self.luck(9, id, part.node));
        let mut value = [0; 32];
        for place in value.chunks_mut(8).take(parts) {
            let mut hash = if part.wrong { own.bits() } else { right.bits() };
            if images > 0 && !part.wrong {
                for _ in 0..own.below(NOISE + 1) {
                    hash ^= 1 << own.below(64);
                }
            }
            // A hash of zero stands for no image.
            place.copy_from_slice(&hash.max(1).to_be_bytes());
        }
        (ANSWER, value, bytes)
    }

    /// The part of the node that runs a task.
    fn first(&self, id: u32, error: bool) -> Part {
        let row = &self.rows[id as usize - 1];
        Part {
            node: row.node,
            started: row.started.into(),
            expires: row.expires.into(),
            stage: Stage::Committed,
            error,
            wrong: row.wrong,
        }
    }

    fn commitment(&self, id: u32, part: &Part) -> commitCall {
        let (kind, value, salt) = self.opening(id, part);
        let node = self.actors[part.node as usize].number;
        commitCall { id: id.into(), commitment: self.ledger.commitment(id.into(), node, kind, &value, &salt) }
    }

    fn revealing(&self, id: u32, group: u32, part: &Part) -> revealCall {
        let (kind, value, salt) = self.opening(id, part);
        let node = self.actors[part.node as usize].number;
        revealCall { id: id.into(), group, node, kind, value: value.into(), salt: salt.into() }
    }

    // ------------------------------------------------------------ a task on its own

    /// The node of a task commits to its answer, or to an error.
    pub(super) fn commit(&mut self, id: u32, error: bool) -> bool {
        let part = self.first(id, error);
        let check = Check {
            parts: vec![part],
            group: 0,
            called: false,
            committed: self.tick,
            expires: false,
            opened: false,
            spent: 0,
            paid: 0,
        };
        self.checks.insert(id, check);
        let commit = self.commitment(id, &part);
        let done = self.operate(part.node, &commit);
        if !done {
            self.checks.remove(&id);
        }
        done
    }

    pub(super) fn committed(&mut self, id: u32, node: u32, group: u32, block: u64) {
        let tick = self.tick;
        if group == 0 {
            self.rows[id as usize - 1].state = State::Committed;
            let wait = (block + 1).saturating_sub(self.ledger.host.block).clamp(1, 4 * TICKS);
            return self.due(tick + wait, Due::Lot(id));
        }
        let i = self.of_number[node as usize];
        if let Some(part) = self.part(id, i) {
            part.stage = Stage::Committed;
            let busy = tick - part.started;
            self.actor(i).report.busy += busy;
            self.check_held(i);
            self.go_on(id);
        }
    }

    /// Once the lot is drawn, the node reveals if it is there, or an account that wants the start fee has validators called.
    pub(super) fn lot(&mut self, id: u32) {
        let tick = self.tick;
        if self.rows[id as usize - 1].state != State::Committed {
            return;
        }
        let Some(check) = self.checks.get(&id).filter(|check| !check.called) else { return };
        let part = check.parts[0];
        let reveal = self.revealing(id, 0, &part);
        match self.ledger.probe(Party::Operator(part.node), &reveal).map_err(|refusal| refusal.decode()) {
            Ok(()) if !self.actors[part.node as usize].silent => {
                if self.operate(part.node, &reveal) && part.error {
                    self.look_for_work(part.node);
                }
            }
            Ok(()) => {
                self.due(tick + AGAIN, Due::Lot(id));
                if let Some(check) = self.checks.get_mut(&id).filter(|check| !check.expires) {
                    check.expires = true;
                    let due = check.committed + (u64::from(self.ledger.limits().sample_window) + 2) * TICKS;
                    self.due(due, Due::Expire(id));
                }
            }
            Err(Error::Sampled(_)) => {
                let node = self.actors[part.node as usize].number;
                if !self.call(Party::Keeper, 0, &validateCall { id: id.into(), node }) {
                    self.due(tick + TICKS, Due::Lot(id));
                }
            }
            Err(_) => {
                // Its block has not come.
                self.ledger.pass();
                self.absorb();
                self.due(tick + TICKS, Due::Lot(id));
            }
        }
    }

    // ------------------------------------------------------------ a group

    fn part(&mut self, id: u32, i: u32) -> Option<&mut Part> {
        self.checks.get_mut(&id)?.parts.iter_mut().find(|part| part.node == i)
    }

    pub(super) fn formed(&mut self, id: u32, group: u32, nodes: [u32; MEMBERS]) {
        let tick = self.tick;
        let row = &mut self.rows[id as usize - 1];
        (row.state, row.ticket) = (State::Grouped, 0);
        self.report.validated += 1;
        let members = nodes.iter().filter(|node| **node > 0).map(|node| Part {
            node: self.of_number[*node as usize],
            started: tick,
            expires: 0,
            stage: Stage::Open,
            error: false,
            wrong: false,
        });
        if row.redundancy == REPLICATED {
            self.report.waits.push(tick as u32 - row.created);
            let parts = members.collect();
            let check = Check { parts, group, called: true, committed: tick, expires: true, opened: false, spent: 0, paid: 0 };
            self.checks.insert(id, check);
            return;
        }
        let validators: Vec<Part> = members.skip(1).collect();
        let Entry::Occupied(mut entry) = self.checks.entry(id) else { return };
        let check = entry.get_mut();
        check.group = group;
        check.parts.extend(validators);
        let Part { node: first, started, .. } = check.parts[0];
        // It is free from here on, if the contract does not hold it.
        self.actor(first).report.busy += tick - started;
        self.check_held(first);
        self.go_on(id);
    }

    pub(super) fn member_started(&mut self, id: u32, node: u32, deadline: u64, missing: &[u64]) {
        let (tick, i) = (self.tick, self.of_number[node as usize]);
        self.let_go(i);
        let mut luck = self.luck(10, id, i);
        let row = &self.rows[id as usize - 1];
        let (fate, replicated) = (row.fate, row.redundancy == REPLICATED);
        let work = u64::from(row.work) * (950 + luck.below(101) as u64) / 1_000;
        let (silent, report) = (luck.below(1_000_000) as u32, luck.below(1_000_000) as u32);
        let actor = &self.actors[i as usize];
        // It knows that it is checked.
        let wrong = matches!(actor.spec.kind, Kind::Cheat | Kind::Withholding);
        // Of a task's own nodes a trace says how it ends.
        let (silent, error) = match fate.filter(|_| replicated) {
            Some(Outcome::Answers) => (false, false),
            Some(Outcome::Silent) => (true, false),
            Some(Outcome::Reports) => (false, true),
            Some(Outcome::Cancelled) | None => (silent < actor.spec.silent, report < actor.spec.errors),
        };
        let error = error && !wrong;
        let work = match () {
            () if wrong => TICKS,
            () if error => takes(&actor.spec, work, missing) / 4 + 1,
            () => takes(&actor.spec, work, missing),
        };
        let expires = (deadline + 1 - BEGINNING) * TICKS;
        let late = !wrong && (actor.silent || silent) || tick + work.max(1) >= expires;
        let Some(check) = self.checks.get_mut(&id) else { return };
        let Some(place) = check.parts.iter().position(|part| part.node == i) else { return };
        check.parts[place] = Part { node: i, started: tick, expires, stage: Stage::Open, error, wrong };
        let report = &mut self.actors[i as usize].report;
        if replicated {
            report.started += 1;
            self.report.started += 1;
            self.report.local += u64::from(missing.is_empty());
        } else {
            report.validations += 1;
            self.report.validations += 1;
        }
        if late {
            self.due(expires, Due::ExpireMember(id, place));
        } else {
            self.due(tick + work.max(1), Due::Member(id, place));
        }
    }

    fn set_stage(&mut self, id: u32, place: usize, stage: Stage) {
        if let Some(check) = self.checks.get_mut(&id) {
            check.parts[place].stage = stage;
        }
    }

    fn open_part(&self, id: u32, place: usize, stage: Stage) -> Option<(u32, Part)> {
        let check = self.checks.get(&id)?;
        check.parts.get(place).filter(|part| part.stage == stage).map(|part| (check.group, *part))
    }

    /// A member commits, unless it went down since it began.
    pub(super) fn member_done(&mut self, id: u32, place: usize) {
        let Some((_, part)) = self.open_part(id, place, Stage::Open) else { return };
        let actor = &self.actors[part.node as usize];
        let down = actor.silent || actor.last_down >= part.started && actor.last_down > 0;
        let commit = self.commitment(id, &part);
        if down || !self.operate(part.node, &commit) {
            self.due(part.expires, Due::ExpireMember(id, place));
        }
    }

    pub(super) fn expire_member(&mut self, id: u32, place: usize) {
        if let Some((_, part)) = self.open_part(id, place, Stage::Open) {
            let node = self.actors[part.node as usize].number;
            self.call(Party::Keeper, 0, &expireCall { node, id: id.into() });
        }
    }

    pub(super) fn member_out(&mut self, id: u32, node: u32) {
        let (tick, i) = (self.tick, self.of_number[node as usize]);
        let Some(part) = self.part(id, i) else { return };
        part.stage = Stage::Out;
        if part.expires > 0 {
            let took = tick - part.started;
            let report = &mut self.actor(i).report;
            report.busy += took;
            report.wasted += took;
            report.timed_out += 1;
        }
        self.go_on(id);
    }

    /// Plans the reveals of a group that nobody runs any more, and its judgement.
    fn go_on(&mut self, id: u32) {
        let tick = self.tick;
        let Some(check) = self.checks.get_mut(&id) else { return };
        if check.opened || check.parts.iter().any(|part| part.stage == Stage::Open) {
            return;
        }
        check.opened = true;
        let places: Vec<usize> = (0..check.parts.len()).filter(|i| check.parts[*i].stage == Stage::Committed).collect();
        for place in places {
            self.due(tick + 1, Due::Reveal(id, place));
        }
        // The last reveal judges; this is for missing reveals, and for delays by due draws.
        self.due(tick + 2, Due::Settle(id));
    }

    pub(super) fn reveal(&mut self, id: u32, place: usize) {
        let Some((group, part)) = self.open_part(id, place, Stage::Committed) else { return };
        let actor = &self.actors[part.node as usize];
        if actor.spec.kind == Kind::Withholding && part.wrong {
            return;
        }
        if actor.silent {
            return self.due(self.tick + AGAIN, Due::Reveal(id, place));
        }
        let reveal = self.revealing(id, group, &part);
        // The last reveal judges.
        self.set_stage(id, place, Stage::Revealed);
        if !self.operate(part.node, &reveal) {
            self.set_stage(id, place, Stage::Committed);
            return self.due(self.tick + AGAIN, Due::Reveal(id, place));
        }
        let Some(check) = self.checks.get(&id) else { return };
        let all = check.parts.iter().all(|part| part.stage != Stage::Committed);
        // It may have closed commitments, also others'.
        let members: Vec<u32> = check.parts.iter().map(|part| part.node).collect();
        members.into_iter().for_each(|member| self.check_held(member));
        if all {
            self.due(self.tick + 1, Due::Settle(id));
        }
    }

    pub(super) fn settle(&mut self, id: u32) {
        let Some(check) = self.checks.get(&id) else { return };
        let settle = settleCall { id: id.into(), group: check.group };
        match self.ledger.probe(Party::Keeper, &settle).map_err(|refusal| refusal.decode()) {
            Err(Error::RevealsOpen(open)) => {
                let closes = (open.closes + 1 - BEGINNING) * TICKS;
                self.due(closes.max(self.tick + 1), Due::Settle(id));
            }
            _ => {
                if !self.call(Party::Keeper, 0, &settle) {
                    self.due(self.tick + TICKS, Due::Settle(id));
                }
            }
        }
    }

    // ------------------------------------------------------------ judgements

    pub(super) fn judged(&mut self, id: u32, node: u32, paid: u128) {
        let i = self.of_number[node as usize];
        let own = self.rows[id as usize - 1].redundancy == REPLICATED;
        let report = &mut self.actor(i).report;
        report.income += paid;
        report.succeeded += u64::from(own && paid > 0);
        if let Some(check) = self.checks.get_mut(&id) {
            check.paid += paid;
        }
        // A slash takes it out of the network, or it is free again.
        self.check_held(i);
    }

    pub(super) fn settled(&mut self, id: u32, outcome: u8) {
        let row = &self.rows[id as usize - 1];
        let first_wrong = row.wrong;
        let (fee, sampled) = (row.fee, row.redundancy == SAMPLED);
        if let Some(check) = self.checks.get(&id) {
            if outcome == 0 && sampled {
                self.report.pots += check.paid;
                let revealed = |part: &Part, error| part.error == error && part.stage == Stage::Revealed;
                let failed = check.parts.iter().filter(|part| revealed(part, true)).count();
                let answered = revealed(&check.parts[0], false);
                let left = u128::from(fee) - check.spent;
                let single = payment(left, self.ledger.limits().sample_bps);
                let pot = Pot::of_payments(left, single, check.parts.len(), failed, answered);
                self.report.pots_due += pot.fee + pot.reserve;
            }
        }
        match outcome {
            0 | 1 => {
                // No two wrong answers are alike, so an answer of two is right.
                self.succeed(id, outcome == 1 && first_wrong);
                self.end(id, State::Succeeded);
            }
            _ => {
                self.report.undecided += 1;
                self.end(id, State::Undecided);
            }
        }
    }

    /// Notes whether open commitments keep a node from work.
    fn check_held(&mut self, i: u32) {
        let held = self.ledger.node(self.actors[i as usize].number).held();
        let tick = self.tick;
        let actor = self.actor(i);
        if held {
            actor.held_at.get_or_insert(tick);
        } else if let Some(from) = actor.held_at.take() {
            actor.report.held += tick - from;
        }
    }

    /// A node that has left is not held.
    pub(super) fn released(&mut self, node: u32) {
        let i = self.of_number[node as usize];
        self.check_held(i);
    }
}
