//! In any state all nodes can leave ([`properties::leave`]). Each must do the work it was given or say that it cannot. So can any of them
//! while the others stay and act against it: silent, pausing and resuming, taking work on and not doing it, committing and not revealing.
//!
//! Nodes that had not answered before lose nothing. Those that had may be found wrong by a judgement that was under way.

use super::*;
use crate::properties::{Leaving, Paid};

/// Some nodes that leave a network.
struct Departure<'a, S> {
    model: &'a mut Model,
    real: &'a mut S,
    dice: &'a mut Dice,
    leaving: BTreeSet<u32>,
    /// Nodes that act against them.
    against: BTreeSet<u32>,
    /// Their operators, with the wei that each had, if no judgement of former answers may take any.
    operators: Vec<(Address, u128)>,
    /// Tasks and groups there were.
    tasks: u64,
}

impl Model {
    /// Has all nodes leave. Panics where one does not, or not with its money.
    pub fn everybody_leaves<S: System>(&mut self, real: &mut S) {
        self.leave_against(real, BTreeSet::new(), &mut Dice(0));
    }

    /// The same of about half of the nodes, against the others.
    pub fn half_leave<S: System>(&mut self, real: &mut S, dice: &mut Dice) {
        let against = self.nodes.keys().copied().filter(|_| dice.below(2) == 0).collect();
        self.leave_against(real, against, dice);
    }

    fn leave_against<S: System>(&mut self, real: &mut S, against: BTreeSet<u32>, dice: &mut Dice) {
        let answered = |m: &&Member| matches!(m.stage, COMMITTED | ANSWERED);
        let mut judged: BTreeSet<u32> =
            self.teams.values().flat_map(|team| team.members.iter().filter(answered)).map(|m| m.node).collect();
        let committed = |n: &Node| n.task.as_ref().is_some_and(|t| matches!(t.part, Part::Committed(_) | Part::Calling(_)));
        judged.extend(self.nodes.iter().filter(|(_, n)| committed(n)).map(|(&node, _)| node));
        let leaving: BTreeSet<u32> = self.nodes.keys().copied().filter(|node| !against.contains(node)).collect();
        // An operator may have had several nodes, one after the other.
        let mut operators: BTreeMap<Address, u128> = BTreeMap::new();
        for node in &leaving {
            let n = &self.nodes[node];
            let sure = n.status != 0 && !judged.contains(node);
            let had = operators.entry(n.operator).or_default();
            *had = (*had).max(if sure { self.money_of(n.operator) } else { 0 });
        }
        let run = self.nodes.values().filter(|n| n.task.is_some()).count();
        let tasks = (self.pending.len() + self.queue.len() + self.teams.len() + run) as u64;
        let operators = operators.into_iter().collect();
        let mut departure = Departure { model: self, real, dice, leaving, against, operators, tasks };
        if let Err(what) = properties::leave(&mut departure) {
            panic!("{what}: {:?} {:?} {:?}", self.nodes, self.teams, self.calls);
        }
    }

    /// Everything that an operator has.
    fn money_of(&self, operator: Address) -> u128 {
        let (account, node) = (&self.accounts[&operator], self.own(operator).ok());
        account.credit + account.unbonding + node.map_or(0, |node| self.nodes[&node].stake)
    }

    /// Has somebody make all calls that anybody can; gives how many.
    fn help<S: System>(&mut self, real: &mut S) -> u64 {
        let mut calls = 0;
        while let Some(call) = self.helpful() {
            calls += 1;
            self.call(real, &call);
            self.look(real);
        }
        calls
    }

    /// No more seconds than these, and so few that none of these nodes misses the time to reveal its commitment.
    fn shortened(&self, seconds: u64, nodes: &BTreeSet<u32>) -> u64 {
        let alone = |node: &u32| self.nodes[node].task.as_ref().is_some_and(|task| matches!(task.part, Part::Committed(_)));
        // A block passes with each round, and after those of `sampleDelay` it is known whether the task was sampled.
        let of_alone = nodes.iter().any(alone).then(|| self.set["sampleWindow"] / (self.set["sampleDelay"] + 3));
        let of_teams = self
            .teams
            .values()
            .filter(|team| team.members.iter().any(|member| member.stage == COMMITTED && nodes.contains(&member.node)));
        let half = self.set["revealWindow"] / 2;
        let of_teams = of_teams.map(|team| {
            let last = team.members.iter().map(|member| member.moment).max().unwrap_or(0);
            let called = team.members.iter().any(|member| member.stage == CALLED);
            half + if called { 0 } else { last.saturating_sub(self.now) }
        });
        of_teams.chain(of_alone).chain([seconds]).min().expect("seconds")
    }

    /// A call of a node that stays, and does not want others to leave.
    fn hostile(&self, node: u32, dice: &mut Dice) -> Option<Call> {
        let n = &self.nodes[&node];
        match (dice.below(4), n.task.as_ref().filter(|task| matches!(task.part, Part::Alone | Part::Member(_)))) {
            (0, _) => Some(Call::new(n.operator, pauseCall {})),
            (1, _) => Some(Call::new(n.operator, resumeCall {})),
            (2, Some(task)) => {
                let (kind, value) = answer_of(task, 4);
                let commitment = commitment(task.id, node, kind, value, salt_of(task.id, node));
                Some(Call::new(n.operator, commitCall { id: task.id, commitment }))
            }
            _ => None,
        }
    }

    /// The next call of a node that leaves, if it can make one.
    fn next_of(&self, node: u32) -> Option<Call> {
        let n = &self.nodes[&node];
        let task = n.task.as_ref().filter(|task| self.now <= task.at);
        match task.map(|task| (task, task.part)) {
            Some((task, Part::Alone)) if task.policy == 0 => {
                Some(Call::new(n.operator, reportErrorCall { id: task.id, code: 3 }))
            }
            Some((task, Part::Alone | Part::Member(_))) => {
                let (kind, value) = answer_of(task, 6);
                let commitment = commitment(task.id, node, kind, value, salt_of(task.id, node));
                Some(Call::new(n.operator, commitCall { id: task.id, commitment }))
            }
            _ if !matches!(n.status, 0 | 4) => Some(Call::new(n.operator, quitCall {})),
            _ => None,
        }
    }
}

impl<S: System> Leaving for Departure<'_, S> {
    const ROUNDS: u64 = 400;

    fn staying(&mut self) -> Vec<u32> {
        let judged: BTreeSet<u32> = self.model.teams.values().flat_map(|team| team.members.iter().map(|m| m.node)).collect();
        let stays = |node: &u32| self.model.nodes[node].status != 0 || judged.contains(node);
        self.leaving.iter().copied().filter(stays).collect()
    }

    fn now(&mut self) -> u64 {
        self.model.now
    }

    fn size(&mut self) -> (u64, u64) {
        (self.model.nodes.len() as u64, self.tasks)
    }

    fn round(&mut self, round: u64, left: u64) -> u64 {
        let (model, real) = (&mut *self.model, &mut *self.real);
        // No node quits while draws are due. Those that stay undecided are due again in the next block, so both come in one.
        let mut calls = model.help(real);
        for &node in &self.against {
            if let Some(call) = model.hostile(node, self.dice) {
                model.call(real, &call);
                model.look(real);
            }
        }
        for &node in &self.leaving {
            while let Some(call) = model.next_of(node) {
                calls += 1;
                let done = model.call(real, &call);
                model.look(real);
                if done.is_empty() {
                    break;
                }
            }
        }
        for (node, call) in model.reveals(false) {
            if self.against.contains(&node) {
                continue;
            }
            // A commitment to an answer that no task of its kind can have is refused each time, so nobody needs to call that.
            calls += u64::from(!model.call(real, &call).is_empty());
            model.look(real);
        }
        calls += model.help(real);
        // Few windows are open for long. Nobody sleeps until it is too late.
        let seconds = (15 << (round / 4).min(12)).min(left);
        real.pass(1, model.shortened(seconds, &self.leaving));
        model.look(real);
        calls
    }

    fn paid(&mut self) -> Vec<Paid> {
        let (model, real) = (&mut *self.model, &mut *self.real);
        let last = self.operators.iter().map(|(operator, _)| model.accounts[operator].release).max().unwrap_or(0);
        real.pass(1, last.saturating_sub(model.now));
        model.look(real);
        let mut all = Vec::new();
        for &(to, had) in &self.operators {
            let (owed, before) = (model.money_of(to), model.paid_out);
            if owed > 0 {
                model.call(real, &Call::new(to, withdrawCall { to: to.into() }));
            }
            all.push(Paid { to, had, owed, got: model.paid_out - before });
        }
        all
    }
}
