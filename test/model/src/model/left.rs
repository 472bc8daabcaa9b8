//! Tasks that may be queued beside idle nodes that could run them: after every call, by the plain data of queued tasks and idle nodes.
//!
//! A node that becomes available looks for queued work and takes, or calls up, the best there is (docs/queue.md, "Grades"). So a queued
//! task that idle nodes could run is one that no node saw when it became available: it could not be run until
//!
//! - a node reported an error of a task that has had its time, for that one is idle without a look at the queue,
//! - a node was reserved in vain too lately, for that one calls up no task for several,
//! - the owner listed the GPU group of three idle nodes,
//! - its draw met none of the listed groups that have three idle nodes,
//! - no other task could be Pending,
//! - one that was worth more lacked nodes, both chosen by ratings,
//! - idle nodes could be given it again that H kept out of its draw, where the owner had raised the threshold, or
//! - so many draws of its nodes by ratings had found too few of them.
//!
//! It stays so until another node becomes available that could be one of those, or anyone pokes an idle one. Nodes that wait for others are
//! not idle: the model foretells the end of their wait, which is `holdTime` at most.

use super::{Left, Model, Task, Why, E, PENDING, RATED_DRAWS};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

impl Model {
    /// Of these nodes those that could run a task now, alone or as one of several.
    fn could_run(&self, task: &Task, nodes: &BTreeSet<u32>) -> BTreeSet<u32> {
        let able: BTreeSet<u32> = nodes.iter().copied().filter(|n| self.takes(task, &self.nodes[n])).collect();
        if task.policy < 2 {
            return able;
        }
        let equal = task.policy == 2 && task.kind != 0;
        let beside = |n: &u32| able.iter().filter(|m| !equal || self.nodes[m].group == self.nodes[n].group).count() as u64;
        able.iter().copied().filter(|n| beside(n) >= task.nodes).collect()
    }

    /// Whether one that is worth more lacks nodes, or is left behind such a one, all chosen by ratings: a node looks at the best only.
    fn behind(&self, task: &Task, idle: &BTreeSet<u32>) -> bool {
        let able = self.could_run(task, idle);
        if task.policy != 3 || able.is_empty() {
            return false;
        }
        let better = |other: &&Task| other.policy == 3 && other.id != task.id && other.value() >= task.value();
        let mut better: Vec<&Task> = self.queue.iter().filter(better).collect();
        better.sort_by_key(|other| Reverse(other.value()));
        let mut left: Vec<&Task> = Vec::new();
        let meets =
            |able: &BTreeSet<u32>, left: &[&Task]| able.iter().any(|n| left.iter().any(|other| other.fits(&self.nodes[n])));
        for other in better {
            let able = self.could_run(other, idle);
            if able.is_empty() || meets(&able, &left) {
                left.push(other);
            }
        }
        meets(&able, &left)
    }

    fn idle_now(&self) -> BTreeSet<u32> {
        self.idle().map(|(&n, _)| n).collect()
    }

    /// An idle node that could run a queued task, alone or with others; `now`, not only after some time.
    pub(super) fn idle_for_something(&self, now: bool) -> Option<u32> {
        let idle = self.idle_now();
        let before = |task: &&Task| !self.behind(task, &idle);
        let first = |task: &Task| {
            let can = |n: &u32| !now || task.policy < 2 || self.rested(&self.nodes[n]).0;
            self.could_run(task, &idle).into_iter().find(can)
        };
        self.queue.iter().filter(before).find_map(first)
    }

    /// Panics if idle nodes could run a queued task after a call with these events that one of them had seen, or did before.
    pub(super) fn check_left(&mut self, events: &[E]) {
        let idle = self.idle_now();
        let erred = |n: &u32| events.iter().any(|e| matches!(e, E::TaskErrorReported(e) if e.node == *n));
        let looked: BTreeSet<u32> = idle.iter().copied().filter(|n| !erred(n)).collect();
        let listed = events.iter().any(|e| matches!(e, E::GpuGroupListed(e) if e.listed));
        let called_up = events.iter().any(|e| matches!(e, E::TaskRedrawn(e) if self.left.queued.contains(&e.id)));
        let full = self.pending.len() == PENDING;
        let mut tasks = BTreeMap::new();
        for task in &self.queue {
            if self.could_run(task, &idle).is_empty() {
                continue;
            }
            let was = |n: &u32| self.left.idle.contains(n) || self.left.waiting.contains(n);
            let unrested = |n: &u32| task.policy > 1 && !was(n) && !self.rested(&self.nodes[n]).0;
            let looked: BTreeSet<u32> = looked.iter().copied().filter(|n| !unrested(n)).collect();
            let able = self.could_run(task, &looked);
            let before = self.left.queued.contains(&task.id);
            let saw = able.iter().find(|n| !self.left.idle.contains(n));
            // The better one may have been given its nodes, or a node that erred, after one of them looked.
            let behind = [&idle, &looked].iter().any(|idle| self.behind(task, idle)) || task.policy == 3 && called_up;
            assert!(
                full || behind || !before || saw.is_none(),
                "{saw:?} became available, and left {task:?} that {able:?} could run after {events:#?}"
            );
            let why = match self.left.tasks.get(&task.id) {
                _ if able.is_empty() && idle.iter().any(erred) => Why::Error,
                _ if able.is_empty() => Why::Unrested,
                Some(&why) if before => why,
                _ if full => Why::Full,
                _ if behind => Why::Behind,
                _ if task.policy == 3 && able.iter().any(|n| !self.eligible(self.h(&self.nodes[n]))) => Why::KeptOut,
                _ if before && listed => Why::Listed,
                _ if !before && task.any_equal() => Why::Missed,
                _ if !before && task.undecided + 1 == RATED_DRAWS => Why::Undecided,
                _ => panic!("{able:?} could run {task:?}, and are idle after {events:#?}"),
            };
            tasks.insert(task.id, why);
        }
        let new: Vec<Why> = tasks.iter().filter(|(id, why)| self.left.tasks.get(id) != Some(why)).map(|(_, &why)| why).collect();
        for why in new {
            self.note(match why {
                Why::Error => "idle beside a queued task after an error",
                Why::Unrested => "idle beside a queued task soon after a reservation in vain",
                Why::Listed => "idle beside a queued task when listed",
                Why::Missed => "idle beside a queued task whose draw missed them",
                Why::Full => "idle beside a queued task that cannot be Pending",
                Why::Behind => "idle behind a task that takes more",
                Why::KeptOut => "idle beside a queued task whose draw left them out",
                Why::Undecided => "idle beside a queued task whose draws found too few",
            });
        }
        let waiting = self.waiting.values().flatten().copied().collect();
        self.left = Left { idle, waiting, queued: self.queue.iter().map(|t| t.id).collect(), tasks };
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Node, Part};
    use super::*;
    use std::panic::{catch_unwind, AssertUnwindSafe};

    fn network(nodes: u32) -> Model {
        let mut model = Model::new((0, 1), 3);
        let node = Node { status: 1, group: 1 << 16 | 24, h: 1.0, ..Node::default() };
        model.nodes = (1..=nodes).map(|n| (n, node.clone())).collect();
        model
    }

    fn task(kind: u8, policy: u8) -> Task {
        Task {
            id: 7,
            creator: [1; 20],
            fee: 1,
            nodes: [1, 1, 3, 5][policy as usize],
            regrouped: 0,
            estimate: 60,
            limit: 120,
            bps: 0,
            vram: 0,
            gpu: None,
            models: Vec::new(),
            at: 0,
            since: 0,
            boosts: false,
            kind,
            images: 0,
            policy,
            sample_bps: 0,
            undecided: 0,
            scored: false,
            slash_times: 0,
            began: 0,
            reserved: Vec::new(),
            chosen: None,
            part: Part::Alone,
        }
    }

    /// Whether so many nodes that were idle, and one more that is now, may be idle beside a task that was queued.
    fn may_be(nodes: u32, more: u32, task: Task, listed: bool) -> bool {
        let mut model = network(nodes);
        model.queue.push(task);
        if listed {
            model.listed.insert(1 << 16 | 24);
        }
        let idle = model.idle_now();
        model.left = Left { idle, queued: BTreeSet::from([7]), ..Left::default() };
        model.nodes = network(nodes + more).nodes;
        catch_unwind(AssertUnwindSafe(|| model.check_left(&[]))).is_ok()
    }

    #[test]
    fn who_became_available_and_left_what_could_begin_is_found() {
        assert!(!may_be(0, 1, task(1, 0), false), "a single task");
        assert!(!may_be(2, 1, task(0, 2), false), "images by three");
        assert!(!may_be(2, 1, task(1, 2), true), "equal answers by three");
        assert!(!may_be(4, 1, task(1, 3), false), "chosen by ratings");
        assert!(may_be(1, 1, task(0, 2), false), "two are not enough");
        assert!(may_be(3, 1, task(1, 3), false), "four are not, where the fee is for five");
        assert!(may_be(2, 1, task(1, 2), false), "of a group that is not listed");
        assert!(!may_be(3, 0, task(0, 2), false), "who has been idle for longer, without a reason");
    }
}
