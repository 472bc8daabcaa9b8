//! Nobody is stuck: in any state all nodes can leave, with their money, by a bounded number of calls and in a bounded time. Each must do
//! the work it was given or say that it cannot. So can any of them while the others stay and act against it: silent, pausing and resuming,
//! taking work on and not doing it, committing and not revealing.
//!
//! Nodes that had not answered before lose nothing. Those that had may be found wrong by a judgement that was under way.

use super::*;

/// Times that everybody acts, until the last node is gone and the last group judged.
const ROUNDS: u64 = 400;
/// Seconds until then: twice the longest window that can be set. Stakes follow after `unbonding`.
const SECONDS: u64 = 131_070;
/// Calls of each node for itself, and of accounts that poke it.
const CALLS_EACH: u64 = 8;
/// Calls for each task and each group: a group of nine commits, reveals, is drawn and settled.
const CALLS_OF_TASK: u64 = 20;

impl Model {
    /// Has all nodes leave. Panics where one does not, or not with its money.
    pub fn everybody_leaves<S: System>(&mut self, real: &mut S) {
        self.leave_against(real, &BTreeSet::new(), &mut Dice(0));
    }

    /// The same of about half of the nodes, against the others.
    pub fn half_leave<S: System>(&mut self, real: &mut S, dice: &mut Dice) {
        let against = self.nodes.keys().copied().filter(|_| dice.below(2) == 0).collect();
        self.leave_against(real, &against, dice);
    }

    fn leave_against<S: System>(&mut self, real: &mut S, against: &BTreeSet<u32>, dice: &mut Dice) {
        let theirs = |model: &Model, operator: &Address| {
            let (account, node) = (&model.accounts[operator], model.own(*operator).ok());
            account.credit + account.unbonding + node.map_or(0, |node| model.nodes[&node].stake)
        };
        let answered = |m: &&Member| matches!(m.stage, COMMITTED | ANSWERED);
        let mut judged: BTreeSet<u32> =
            self.teams.values().flat_map(|team| team.members.iter().filter(answered)).map(|m| m.node).collect();
        let committed = |n: &Node| n.task.as_ref().is_some_and(|t| matches!(t.part, Part::Committed(_) | Part::Calling(_)));
        judged.extend(self.nodes.iter().filter(|(_, n)| committed(n)).map(|(&node, _)| node));
        let leaving: BTreeSet<u32> = self.nodes.keys().copied().filter(|node| !against.contains(node)).collect();
        let owed: Vec<(Address, u128)> = leaving
            .iter()
            .map(|node| (node, &self.nodes[node]))
            .filter(|(node, n)| n.status != 0 && !judged.contains(node))
            .map(|(_, n)| (n.operator, theirs(self, &n.operator)))
            .collect();
        let operators: Vec<Address> = leaving.iter().map(|node| self.nodes[node].operator).collect();

        let (begun, mut rounds, mut calls) = (self.now, 0, 0);
        let tasks =
            self.pending.len() + self.queue.len() + self.teams.len() + self.nodes.values().filter(|n| n.task.is_some()).count();
        while leaving.iter().any(|node| self.nodes[node].status != 0)
            || self.teams.values().any(|team| team.members.iter().any(|m| leaving.contains(&m.node)))
        {
            let in_time = rounds < ROUNDS && self.now - begun <= SECONDS;
            assert!(in_time, "cannot leave: {:?} {:?} {:?}", self.nodes, self.teams, self.calls);
            // No node quits while draws are due. Those that stay undecided are due again in the next block, so both come in one.
            calls += self.help(real);
            for &node in against {
                if let Some(call) = self.hostile(node, dice) {
                    self.call(real, &call);
                    self.look(real);
                }
            }
            for &node in &leaving {
                while let Some(call) = self.next_of(node) {
                    calls += 1;
                    let done = self.call(real, &call);
                    self.look(real);
                    if done.is_empty() {
                        break;
                    }
                }
            }
            for (node, call) in self.reveals(false) {
                if against.contains(&node) {
                    continue;
                }
                // A commitment to an answer that no task of its kind can have is refused each time, so nobody needs to call that.
                calls += u64::from(!self.call(real, &call).is_empty());
                self.look(real);
            }
            calls += self.help(real);
            // Few windows are open for long. Nobody sleeps until it is too late.
            let seconds = (15 << (rounds / 4).min(12)).min(SECONDS.saturating_sub(self.now - begun));
            real.pass(1, self.shortened(seconds, &leaving));
            self.look(real);
            rounds += 1;
        }
        let most = CALLS_EACH * self.nodes.len() as u64 + CALLS_OF_TASK * tasks as u64;
        assert!(calls <= most, "{calls} calls of {most}");

        let last = operators.iter().map(|operator| self.accounts[operator].release).max().unwrap_or(0);
        real.pass(1, last.saturating_sub(self.now));
        self.look(real);
        for operator in operators {
            let (had, paid) = (theirs(self, &operator), self.paid_out);
            if had > 0 {
                self.call(real, &Call::new(operator, withdrawCall { to: operator.into() }));
                assert_eq!(self.paid_out - paid, had, "what {operator:?} is paid");
            }
            let owed = owed.iter().find(|(other, _)| *other == operator).map_or(0, |(_, owed)| *owed);
            assert!(had >= owed, "{operator:?} had {owed}, and leaves with {had}");
        }
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
