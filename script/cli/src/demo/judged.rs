//! The outcome of validation: receipts, policy by policy, and its part of the report.

use alloy::primitives::U256;
use anyhow::Result;
use muster_client::{
    Event,
    IMuster::{nodeCall, GroupSettled},
};
use muster_core::{record::Status, validation::Verdict};
use muster_protocol::flow::create::{REPLICATED, SAMPLED};
use muster_trace::{figures::rank_correlation, Outcome};
use serde::Serialize;

use super::{
    agenda::Action,
    records::{OfPolicy, Part, Spread, Task},
    state::Demo,
};

/// The outcome of validation. Amounts in wei are decimal strings.
#[derive(Clone, Debug, Serialize)]
pub struct Validation {
    /// Parameters that decide it.
    pub settings: Vec<Setting>,
    /// The outcome of the tasks under policies 0, 1 and 2.
    pub policies: Vec<OfPolicy>,
    /// How well Q_long at the end follows speed: the rank correlation, 1 if both order alike, over honest nodes with scores; none if there
    /// are fewer than three.
    pub rank_correlation: Option<f64>,
    /// Nodes that were judged or cheat, the fastest first.
    pub nodes: Vec<JudgedNode>,
}

/// A parameter.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: u64,
    /// Its value where nobody changes it.
    pub default: u64,
}

/// A node that was judged, or cheats.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedNode {
    /// Its number.
    pub node: u64,
    /// Its GPU.
    pub gpu: String,
    /// The divisor of the trace's times, in per cent.
    pub speed_percent: u64,
    /// Whether it committed to wrong answers.
    pub cheats: bool,
    /// Times it was judged right.
    pub right: u64,
    /// Times it was judged otherwise.
    pub otherwise: u64,
    /// Its scores in the order in which they were recorded.
    pub scores: Vec<u64>,
    /// Q_long, of 10; its value without scores where there are none.
    pub q_long: f64,
    /// The sum of its slashes.
    pub slashed_wei: String,
    /// Whether it has left the network.
    pub left: bool,
}

/// The task that a call was about, if this event tells it.
fn task_of(function: &str, event: &Event) -> Option<u64> {
    let (functions, id): (&[&str], u64) = match event {
        Event::TaskCreated(e) => (&["createTask"], e.id),
        Event::TaskSucceeded(e) => (&["submit", "reveal"], e.id),
        Event::TaskErrorReported(e) => (&["reportError", "reveal"], e.id),
        Event::AnswerCommitted(e) => (&["commit"], e.id),
        Event::AnswerRevealed(e) if e.group > 0 => (&["reveal"], e.id),
        Event::TaskSampled(e) => (&["validate"], e.id),
        Event::MemberTimedOut(e) => (&["expire"], e.id),
        Event::TaskAborted(e) => match e.reason {
            0 => (&["expire"], e.id),
            1 => (&["cancel"], e.id),
            3 => (&["expireQueued"], e.id),
            _ => return None,
        },
        Event::GroupSettled(e) => (&["settle"], e.id),
        _ => return None,
    };
    functions.contains(&function).then_some(id)
}

impl Demo {
    /// The counts of the policy of a task that this run created.
    fn counted(&mut self, id: u64) -> Option<&mut OfPolicy> {
        let redundancy = self.tasks.get(&id)?.redundancy;
        self.tally.judged.policies.get_mut(usize::from(redundancy))
    }

    /// Whether a node of ours cheats.
    fn cheats(&self, node: u64) -> bool {
        self.nodes.get(&node).is_some_and(|node| node.cheats)
    }

    /// Takes note of an event of validation, in the receipt of a call that took so much gas.
    pub(super) fn note_validation(&mut self, event: &Event, function: &str, gas: u64) {
        if let Some(id) = task_of(function, event) {
            *self.tally.judged.gas.entry(id).or_default() += gas;
        }
        match event {
            Event::TaskSucceeded(e) => self.note_payment(e.id, e.node.into(), U256::from(e.paid), true),
            Event::AnswerCommitted(e) => self.note_commitment(e.id, e.node.into(), e.group, e.block),
            Event::AnswerRevealed(e) => self.note_part(e.id, e.node.into(), Part::Revealed),
            Event::TaskSampled(e) => {
                let paid = U256::from(e.paid);
                if let Some(task) = self.tasks.get_mut(&e.id) {
                    task.fee -= paid;
                }
                if let Some(counted) = self.counted(e.id) {
                    // Its own node earns nothing by it: then the reserve does.
                    *if e.beneficiary.is_zero() { &mut counted.saved } else { &mut counted.drivers } += paid;
                }
                self.pending.insert(e.id);
            }
            Event::NodeWaits(e) => {
                if let Some(counted) = self.counted(e.id) {
                    counted.kept += 1;
                }
                if e.until > 0 {
                    self.agenda.plan(e.until, Action::Poke(e.node.into()));
                }
            }
            Event::GroupFormed(e) => self.note_group(e.id, e.group, &e.nodes, e.scored),
            Event::MemberStarted(e) => self.note_member(e.id, e.node.into(), e.deadline),
            Event::MemberTimedOut(e) => self.note_part(e.id, e.node.into(), Part::Out),
            Event::MemberJudged(e) => {
                let (node, paid) = (u64::from(e.node), U256::from(e.paid));
                let right = e.verdict == Verdict::Right as u8;
                let judged = &mut self.tally.judged;
                judged.paying += paid;
                judged.verdicts.entry(node).or_default()[usize::from(!right)] += 1;
                // A task's answer counts once, whichever of its group is paid first.
                let counts = !paid.is_zero() && !self.tasks.get(&e.id).is_some_and(|task| task.answered);
                if let Some(task) = self.tasks.get_mut(&e.id).filter(|_| counts) {
                    task.answered = true;
                }
                self.note_payment(e.id, node, paid, counts);
            }
            Event::GroupSettled(e) => self.note_judgement(e),
            Event::ScoreRecorded(e) => self.tally.judged.scores.entry(e.node.into()).or_default().push(e.score.into()),
            Event::NodeSlashed(e) => {
                let lost = U256::from(e.stake) + U256::from(e.unbonding) + U256::from(e.credit);
                if let Some(counted) = self.counted(e.id) {
                    counted.slashes += 1;
                    counted.burnt += lost;
                }
                *self.tally.judged.slashed.entry(e.node.into()).or_default() += lost;
            }
            _ => {}
        }
    }

    /// Takes note of a payment to a node, maybe for the answer that the task has.
    fn note_payment(&mut self, id: u64, node: u64, paid: U256, answers: bool) {
        let cheats = self.cheats(node);
        let Some(counted) = self.counted(id) else { return };
        counted.paid += paid;
        if cheats {
            counted.paid_to_cheats += paid;
            counted.wrong += u64::from(answers);
        }
    }

    /// A member of a group begins. Of a task's own nodes the trace says whether they answer; a cheat always does.
    fn note_member(&mut self, id: u64, node: u64, deadline: u64) {
        let Some(task) = self.tasks.get(&id) else { return };
        let (request, replicated) = (task.request, task.redundancy == REPLICATED);
        let done = self.clock.now + self.takes(request, node);
        let silent = replicated && self.requests[request].outcome == Outcome::Silent && !self.cheats(node);
        if replicated {
            *self.tally.started.entry(node).or_default() += 1;
        }
        if self.nodes.contains_key(&node) && !silent && done <= deadline {
            self.agenda.plan(done, Action::Commit(id, node));
        } else {
            self.agenda.plan(deadline + 1, Action::ExpireMember(id, node));
        }
    }

    fn note_judgement(&mut self, event: &GroupSettled) {
        let id = event.id;
        let outcome = usize::from(event.outcome).min(3);
        let paid = std::mem::take(&mut self.tally.judged.paying);
        let fee = self.tasks.get(&id).map_or(U256::ZERO, |task| task.fee);
        let kept = fee.saturating_sub(U256::from(event.refund) + U256::from(event.startFee));
        if let Some(counted) = self.counted(id) {
            counted.count_judged(outcome);
            counted.drawn += paid.saturating_sub(kept);
            counted.saved += kept.saturating_sub(paid);
        }
        self.note_end(id, |counts| if outcome < 2 { &mut counts.finished } else { &mut counts.undecided });
    }

    /// Takes note of the end of a task that could have been validated and was not: the part of its fee that was paid, or given back.
    pub(super) fn note_trust(&mut self, id: u64, paid: U256) {
        let sampled = |task: &&Task| task.redundancy == SAMPLED && !task.ended && task.lot.is_some();
        let Some(fee) = self.tasks.get(&id).filter(sampled).map(|task| task.fee) else { return };
        let counted = &mut self.tally.judged.policies[usize::from(SAMPLED)];
        counted.trusted += 1;
        counted.saved += fee.saturating_sub(paid);
    }

    fn note_commitment(&mut self, id: u64, node: u64, group: u32, block: u64) {
        if group > 0 {
            return self.note_part(id, node, Part::Committed);
        }
        if let Some(task) = self.tasks.get_mut(&id) {
            task.lot = Some(block);
            self.agenda.plan(self.clock.now + 1, Action::Lot(id));
        }
    }

    fn note_group(&mut self, id: u64, place: u32, nodes: &[u32], scored: bool) {
        self.pending.remove(&id);
        self.fruitless = 0;
        if let Some(task) = self.tasks.get_mut(&id) {
            task.group = Some(place);
            let sampled = task.redundancy == SAMPLED;
            let part = |at| if at == 0 && sampled { Part::Committed } else { Part::Open };
            task.members = nodes.iter().enumerate().map(|(at, node)| (u64::from(*node), part(at))).collect();
            if !sampled {
                self.note_begin(id);
            }
        }
        if let Some(counted) = self.counted(id) {
            counted.scored += u64::from(scored);
        }
        self.go_on(id);
    }

    fn note_part(&mut self, id: u64, node: u64, part: Part) {
        if let Some(member) = self.tasks.get_mut(&id).and_then(|task| task.members.get_mut(&node)) {
            *member = part;
            self.go_on(id);
        }
    }

    /// Plans the reveals of a group that nobody runs any more, and its judgement once all have revealed.
    fn go_on(&mut self, id: u64) {
        let now = self.clock.now;
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let parts = || task.members.values();
        if parts().any(|part| *part == Part::Open) {
            return;
        }
        if !task.opened {
            task.opened = true;
            for (node, _) in task.members.iter().filter(|(_, part)| **part == Part::Committed) {
                self.agenda.plan(now + 1, Action::Reveal(id, *node));
            }
            // For those that never reveal.
            self.agenda.plan(now + 2, Action::Settle(id));
        } else if parts().all(|part| *part != Part::Committed) {
            self.agenda.plan(now + 1, Action::Settle(id));
        }
    }

    /// Its part of the report; none where no task can be validated.
    pub(super) async fn validation(&self) -> Result<Option<Validation>> {
        if !self.options.validates() {
            return Ok(None);
        }
        let judged = &self.tally.judged;
        let mut nodes = Vec::new();
        for (number, own) in &self.nodes {
            let [right, otherwise] = judged.verdicts.get(number).copied().unwrap_or_default();
            if right + otherwise == 0 && !own.cheats {
                continue;
            }
            let view = self.ask(nodeCall { number: *number as u32 }).await?;
            nodes.push(JudgedNode {
                node: *number,
                gpu: own.gpu.clone(),
                speed_percent: own.speed,
                cheats: own.cheats,
                right,
                otherwise,
                scores: judged.scores.get(number).cloned().unwrap_or_default(),
                q_long: view.longTerm as f64 / 1e17,
                slashed_wei: judged.slashed.get(number).copied().unwrap_or_default().to_string(),
                left: view.status == Status::Quit as u8,
            });
        }
        nodes.sort_by_key(|node| (node.cheats, std::cmp::Reverse(node.speed_percent), node.node));
        let honest = nodes.iter().filter(|node| !node.cheats && !node.scores.is_empty());
        let pairs: Vec<(f64, f64)> = honest.map(|node| (node.q_long, node.speed_percent as f64)).collect();
        Ok(Some(Validation {
            settings: self.settings().await?,
            policies: (0..=REPLICATED).map(|policy| self.of_policy(policy)).collect(),
            rank_correlation: (pairs.len() > 2).then(|| rank_correlation(&pairs)),
            nodes,
        }))
    }

    fn of_policy(&self, policy: u8) -> OfPolicy {
        let counted = &self.tally.judged.policies[usize::from(policy)];
        let median = |judged: bool| {
            let tasks = self.tasks.iter().filter(|(_, task)| task.redundancy == policy && (task.group.is_some() || !judged));
            let gas = tasks.filter_map(|(id, _)| self.tally.judged.gas.get(id).copied());
            Spread::of(gas.collect()).median
        };
        OfPolicy { policy, gas_of_a_task: median(false), gas_of_a_judged_task: median(true), ..counted.clone() }
    }
}
