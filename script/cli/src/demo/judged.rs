//! What validation came to: what receipts tell of it, and its part of the report.

use std::collections::BTreeMap;

use anyhow::Result;
use ethers::types::U256;
use muster_core::{record::Status, validation::Verdict};
use muster_protocol::IMuster::nodeCall;
use serde::Serialize;

use super::{agenda::Action, Demo};
use crate::contract::Event;

/// What validation came to. Amounts in wei are decimal strings.
#[derive(Clone, Debug, Serialize)]
pub struct Validation {
    /// Parameters that decide it.
    pub settings: Vec<Setting>,
    /// Tasks created with redundancy 1.
    pub tasks: u64,
    /// Picked for it, but created with redundancy 0: their fee is above what the least stake covers.
    pub too_dear: u64,
    /// The same, because they are of more images than an answer has hashes for.
    pub too_many_images: u64,
    /// Tasks that their nodes committed to and that were not sampled.
    pub trusted: u64,
    /// Groups that were judged.
    pub judged: u64,
    /// Of these, where two or three answers were alike.
    pub agreed: u64,
    /// Where the first node's answer was the only one.
    pub alone: u64,
    /// Where several answers were all different.
    pub differing: u64,
    /// Where nobody answered, or a validator alone.
    pub unanswered: u64,
    /// Slashes.
    pub slashes: u64,
    /// What they took, by receipts; over all runs on the same chain it is `burnt_wei` of the report.
    pub slashed_wei: String,
    /// What it cost.
    pub cost: Cost,
    /// Nodes that were judged or cheat, the fastest first.
    pub nodes: Vec<JudgedNode>,
}

/// A parameter.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// What it is.
    pub value: u64,
    /// What it is where nobody changes it.
    pub default: u64,
}

/// What validation cost.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cost {
    /// Gas of all commitments and reveals, of `validate` and of `settle`. Validators are drawn by `dispatch`.
    pub gas: u64,
    /// What a validated task took of that, or of `expire`, beyond its first node's commitment: the median.
    pub gas_of_a_validation: u64,
    /// What was not paid out of fees: it went into the reserve.
    pub saved_wei: String,
    /// What groups were paid beyond the fees of their tasks: it came out of the reserve.
    pub drawn_wei: String,
    /// What those were paid who had validators called: it came out of the reserve too.
    pub drivers_wei: String,
}

/// A node that was judged, or cheats.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedNode {
    /// Its number.
    pub node: u64,
    /// Its GPU.
    pub gpu: String,
    /// What the trace's times were divided by, in per cent.
    pub speed_percent: u64,
    /// Whether it committed to wrong answers.
    pub cheats: bool,
    /// Times it was judged right.
    pub right: u64,
    /// Times it was judged otherwise.
    pub otherwise: u64,
    /// Its scores in the order in which they were recorded.
    pub scores: Vec<u64>,
    /// Q_long, of 10; what it is without scores where there are none.
    pub q_long: f64,
    /// What it lost.
    pub slashed_wei: String,
    /// Whether it has left the network.
    pub left: bool,
}

/// What is counted of validation.
#[derive(Default)]
pub(super) struct Judged {
    pub too_dear: u64,
    pub too_many_images: u64,
    pub tasks: u64,
    trusted: u64,
    /// By outcome.
    outcomes: [u64; 4],
    /// What went into the reserve.
    saved: U256,
    /// What groups took out of it.
    drawn: U256,
    drivers: U256,
    /// What the members were paid of the group that is being judged.
    paying: U256,
    slashes: u64,
    slashed: BTreeMap<u64, U256>,
    scores: BTreeMap<u64, Vec<u64>>,
    /// How often a node was judged right, and otherwise.
    verdicts: BTreeMap<u64, [u64; 2]>,
    /// Gas of validated tasks beyond their first node's commitment and the draw.
    gas: BTreeMap<u64, u64>,
}

/// A member of a validation group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// It runs the task, or is to begin.
    Open,
    Committed,
    Revealed,
    /// It let its deadline pass, or left.
    Out,
}

impl Demo {
    /// Takes note of an event of validation, in the receipt of a call that took so much gas.
    pub(super) fn note_validation(&mut self, event: &Event, function: &str, gas: u64) {
        let (id, node) = (event.number("id"), event.number("node"));
        let judged = &mut self.tally.judged;
        let its_own = match event.name {
            "AnswerCommitted" => function == "commit" && event.number("group") > 0,
            "AnswerRevealed" => function == "reveal" && event.number("group") > 0,
            "TaskSampled" => function == "validate",
            "MemberTimedOut" => function == "expire",
            "GroupSettled" => function == "settle",
            _ => false,
        };
        if its_own {
            *judged.gas.entry(id).or_default() += gas;
        }
        match event.name {
            "AnswerCommitted" => self.note_commitment(id, node, event.number("group"), event.number("block")),
            "AnswerRevealed" => self.note_part(id, node, Part::Revealed),
            "TaskSampled" => {
                judged.drivers += event.amount("paid");
                self.pending.insert(id);
            }
            "GroupFormed" => self.note_group(id, event.number("group") as u32, &event.numbers("nodes")),
            "MemberStarted" => {
                let Some(task) = self.tasks.get(&id) else { return };
                let (deadline, done) = (event.number("deadline"), self.clock.now + self.takes(task.request, node));
                let ours = self.nodes.contains_key(&node);
                if ours && done <= deadline {
                    self.agenda.plan(done, Action::Commit(id, node));
                } else {
                    self.agenda.plan(deadline + 1, Action::ExpireMember(id, node));
                }
            }
            "MemberTimedOut" => self.note_part(id, node, Part::Out),
            "MemberJudged" => {
                judged.paying += event.amount("paid");
                let right = event.number("verdict") == Verdict::Right as u64;
                judged.verdicts.entry(node).or_default()[usize::from(!right)] += 1;
            }
            "GroupSettled" => {
                let outcome = event.number("outcome") as usize;
                judged.outcomes[outcome.min(3)] += 1;
                let paid = std::mem::take(&mut judged.paying);
                if let Some(task) = self.tasks.get(&id) {
                    let kept = task.fee.saturating_sub(event.amount("refund") + event.amount("startFee"));
                    judged.drawn += paid.saturating_sub(kept);
                    judged.saved += kept.saturating_sub(paid);
                }
                self.note_end(id, |counts| if outcome < 2 { &mut counts.finished } else { &mut counts.undecided });
            }
            "ScoreRecorded" => judged.scores.entry(node).or_default().push(event.number("score")),
            "NodeSlashed" => {
                judged.slashes += 1;
                *judged.slashed.entry(node).or_default() +=
                    event.amount("stake") + event.amount("unbonding") + event.amount("credit");
            }
            _ => {}
        }
    }

    /// Takes note of a task's end that could have been validated and was not: what was paid of its fee, or given back.
    pub(super) fn note_trust(&mut self, id: u64, paid: U256) {
        if let Some(task) = self.tasks.get(&id).filter(|task| task.sampled && !task.ended && task.lot.is_some()) {
            self.tally.judged.trusted += 1;
            self.tally.judged.saved += task.fee.saturating_sub(paid);
        }
    }

    fn note_commitment(&mut self, id: u64, node: u64, group: u64, block: u64) {
        if group > 0 {
            return self.note_part(id, node, Part::Committed);
        }
        if let Some(task) = self.tasks.get_mut(&id) {
            task.lot = Some(block);
            self.agenda.plan(self.clock.now + 1, Action::Lot(id));
        }
    }

    fn note_group(&mut self, id: u64, place: u32, nodes: &[u64]) {
        self.pending.remove(&id);
        self.fruitless = 0;
        if let Some(task) = self.tasks.get_mut(&id) {
            task.group = Some(place);
            let part = |at| if at == 0 { Part::Committed } else { Part::Open };
            task.members = nodes.iter().enumerate().map(|(at, node)| (*node, part(at))).collect();
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
        if self.options.sampled == 0 {
            return Ok(None);
        }
        let judged = &self.tally.judged;
        let [agreed, alone, differing, unanswered] = judged.outcomes;
        let mut nodes = Vec::new();
        for (number, own) in &self.nodes {
            let [right, otherwise] = judged.verdicts.get(number).copied().unwrap_or_default();
            if right + otherwise == 0 && !own.cheats {
                continue;
            }
            let view = self.muster.ask(&self.chain, None, &nodeCall { number: *number as u32 }).await?;
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
        let gas = ["commit", "reveal", "validate", "settle"].iter().filter_map(|call| self.tally.gas.get(*call));
        let slashed = judged.slashed.values().fold(U256::zero(), |sum, wei| sum + wei);
        Ok(Some(Validation {
            settings: self.settings().await?,
            tasks: judged.tasks,
            too_dear: judged.too_dear,
            too_many_images: judged.too_many_images,
            trusted: judged.trusted,
            judged: judged.outcomes.iter().sum(),
            agreed,
            alone,
            differing,
            unanswered,
            slashes: judged.slashes,
            slashed_wei: slashed.to_string(),
            cost: Cost {
                gas: gas.flatten().sum(),
                gas_of_a_validation: super::Spread::of(judged.gas.values().copied().collect()).median,
                saved_wei: judged.saved.to_string(),
                drawn_wei: judged.drawn.to_string(),
                drivers_wei: judged.drivers.to_string(),
            },
            nodes,
        }))
    }
}
