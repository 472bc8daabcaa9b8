//! Nobody is stuck: in any state all nodes can leave, with their money, by a bounded number of calls and in a bounded time. Each must do
//! the work it was given or say that it cannot.
//!
//! Nodes that had not answered before lose nothing. Those that had may be found wrong by a judgement that was under way.

use super::*;

/// Times that everybody acts.
const ROUNDS: u64 = 44;
/// Seconds until the last node is gone and the last group judged: twice the longest window that can be set, since ever longer times pass between
/// two rounds. Stakes follow after `unbonding`.
const SECONDS: u64 = 131_070;
/// Calls of each node for itself, and of accounts that poke it.
const CALLS_EACH: u64 = 8;
/// Calls for each task and each group: a group of nine commits, reveals, is drawn and settled.
const CALLS_OF_TASK: u64 = 20;

impl Model {
    /// Has all nodes leave. Panics where one does not, or not with its money.
    pub fn everybody_leaves<S: System>(&mut self, real: &mut S) {
        let theirs = |model: &Model, operator: &Address| {
            let (account, node) = (&model.accounts[operator], model.own(*operator).ok());
            account.credit + account.unbonding + node.map_or(0, |node| model.nodes[&node].stake)
        };
        let answered = |m: &&Member| matches!(m.stage, COMMITTED | ANSWERED);
        let mut judged: BTreeSet<u32> =
            self.teams.values().flat_map(|team| team.members.iter().filter(answered)).map(|m| m.node).collect();
        let committed = |n: &Node| n.task.as_ref().is_some_and(|t| matches!(t.part, Part::Committed(_) | Part::Calling(_)));
        judged.extend(self.nodes.iter().filter(|(_, n)| committed(n)).map(|(&node, _)| node));
        let owed: Vec<(Address, u128)> = self
            .nodes
            .iter()
            .filter(|(node, n)| n.status != 0 && !judged.contains(node))
            .map(|(_, n)| (n.operator, theirs(self, &n.operator)))
            .collect();
        let everybody: Vec<Address> = self.nodes.values().map(|n| n.operator).collect();

        let (begun, mut rounds, mut calls) = (self.now, 0, 0);
        let tasks =
            self.pending.len() + self.queue.len() + self.teams.len() + self.nodes.values().filter(|n| n.task.is_some()).count();
        while self.nodes.values().any(|n| n.status != 0) || !self.teams.is_empty() {
            assert!(rounds < ROUNDS, "cannot leave: {:?} {:?} {:?}", self.nodes, self.teams, self.calls);
            // No node quits while draws are due. Those that stay undecided are due again in the next block, so both come in one.
            calls += self.help(real);
            for node in self.nodes.keys().copied().collect::<Vec<_>>() {
                while let Some(call) = self.next_of(node) {
                    calls += 1;
                    let done = self.call(real, &call);
                    self.look(real);
                    if done.is_empty() {
                        break;
                    }
                }
            }
            for call in self.reveals(false) {
                // A commitment to an answer that no task of its kind can have is refused each time, so nobody needs to call that.
                calls += u64::from(!self.call(real, &call).is_empty());
                self.look(real);
            }
            calls += self.help(real);
            // Few windows are open for long.
            real.pass(1, 15 << (rounds / 4));
            self.look(real);
            rounds += 1;
        }
        assert!(self.now - begun <= SECONDS, "the last leaves after {} s", self.now - begun);
        let most = CALLS_EACH * everybody.len() as u64 + CALLS_OF_TASK * tasks as u64;
        assert!(calls <= most, "{calls} calls of {most}");

        let last = self.accounts.values().map(|account| account.release).max().unwrap_or(0);
        real.pass(1, last.saturating_sub(self.now));
        self.look(real);
        for operator in everybody {
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
