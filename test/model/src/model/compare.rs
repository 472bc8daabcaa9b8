//! The comparison of the model with the real thing: its balance, its views, and storage where a view does not show it.

use super::*;
use muster_core::id::{GpuGroup, ModelId, NodeId, QueueId};
use muster_protocol::admin::stores::stores_of;
use muster_protocol::admin::worker::worker_of;
use muster_protocol::store::registry;
use muster_protocol::store::sampler::Among;
use muster_protocol::Network;

impl Model {
    /// Compares everything with the real thing.
    pub fn compare<S: System>(&self, real: &mut S, full: bool) {
        assert_eq!(real.balance(), self.paid_in - self.paid_out + self.forced, "balance");
        let alone = self.nodes.values().filter_map(|n| n.task.as_ref()).filter(|task| !matches!(task.part, Part::Member(_)));
        let fees = alone.chain(&self.pending).chain(&self.queue).chain(self.teams.values().map(|team| &team.task));
        let (fees, came) = (fees.map(|task| task.fee).sum(), self.paid_in - self.paid_out);
        real.read(|net| {
            let money = properties::money(net, self.accounts.keys().copied(), fees, came);
            money.and_then(|()| properties::fees_of_books(net, fees, full)).unwrap_or_else(|what| panic!("{what}"));
            self.compare_state(net, full);
        });
    }

    fn compare_state<H: Host>(&self, net: &Network<H>, full: bool) {
        let o = net.overview();
        let joined: Vec<&Node> = self.nodes.values().filter(|n| n.status != 0).collect();
        let largest = joined.iter().map(|n| n.stake).max().unwrap_or(0);
        assert_eq!(
            (
                o.tasks,
                o.nodesIssued as usize,
                o.nodesJoined as usize,
                o.pending as usize,
                o.queued as usize,
                o.largestStake,
                o.treasuryBalance,
                o.paused,
                (o.reserve, o.burnt, o.groups as usize, o.groupPlaces)
            ),
            (
                self.tasks,
                self.nodes.len(),
                joined.len(),
                self.pending.len(),
                self.queue.len(),
                largest,
                self.treasury,
                self.paused,
                (self.reserve, self.burnt, self.teams.len(), self.places)
            )
        );
        let class = |stake: u128| (0..10).find(|&c| stake <= (400 * TOKEN) << (2 * c)).unwrap_or(9);
        let active = joined.iter().filter(|n| !n.aside);
        assert_eq!(net.rules().lowest as usize, active.map(|n| class(n.stake)).min().unwrap_or(0) as usize);
        let due = self.nodes.values().filter_map(|n| n.parked).min().unwrap_or(0);
        assert_eq!(net.head().parked_due as u64, due);

        for (&number, n) in &self.nodes {
            let v = net.node_view(NodeId(number)).unwrap();
            assert_eq!(
                (v.operator.into_array(), v.status, v.gpu, v.stake, v.scores as usize, v.joinedAt),
                (n.operator, n.status, n.group, n.stake, n.scores.len(), n.joined_at)
            );
            assert!((v.reliability as f64 / 1e18 - self.h(n)).abs() < EPS, "H of {number}: {} and {}", v.reliability, self.h(n));
            assert_eq!((v.openCommitments as u64, v.held, v.calledTo), (n.open, n.halted, n.called), "duties of {number}");
            assert_eq!(v.models.iter().copied().collect::<BTreeSet<_>>(), n.held);
            assert_eq!(v.models.len(), n.held.len());
            assert_eq!(v.inUse, n.in_use);
            let parked = match (n.parked, n.waits, n.reserved) {
                (None, None, 0) => 0,
                (Some(_), None, 0) => 1,
                (Some(_), Some(_), 0) => 2,
                (None, None, _) => 3,
                other => panic!("{number} waits in two ways: {other:?}"),
            };
            assert_eq!((v.parked, v.parkedUntil), (parked, n.parked.unwrap_or(0)), "how {number} waits");
            let mean =
                if n.scores.is_empty() { 5.0 } else { n.scores.iter().map(|&s| s as f64).sum::<f64>() / n.scores.len() as f64 };
            assert!((v.longTerm as f64 / 1e17 - mean).abs() < 1e-9);
            let (judged, right) = n.judged;
            assert_eq!((v.judged as u64, v.right as u64), n.judged, "judgements of {number}");
            assert_eq!(worker_of(&*net.host, NodeId(number)), (n.worker, self.worker(number).is_some()), "worker of {number}");
            assert!((v.rating as f64 / 1e18 - (right + 1) as f64 / (judged + 2) as f64).abs() < 1e-9, "rating of {number}");
            let view = net.running_task(NodeId(number)).unwrap();
            if let Some(t) = &n.task {
                let (status, group) = match t.part {
                    Part::Alone => (3, 0),
                    Part::Committed(_) => (4, 0),
                    Part::Calling(_) => (5, 0),
                    Part::Member(place) => (6, place),
                };
                Self::same(&view, t, status);
                assert_eq!((view.node, view.group), (number, group));
            } else {
                assert_eq!(view.status, 0, "{number} runs nothing");
            }
            let best = net.best_queued(NodeId(number)).unwrap().id;
            assert_eq!(best, self.best(n).map_or(0, |i| self.queue[i].id));
        }
        for who in self.accounts.keys() {
            let (a, v) = (&self.accounts[who], net.account_view(*who));
            assert_eq!(
                (v.credit, v.unbonding, v.release, v.node, v.kickedOut),
                (a.credit, a.unbonding, a.release, a.node, a.kicked)
            );
        }
        for (who, uris) in &self.stores {
            assert_eq!(&stores_of(&*net.host, *who), uris, "stores of {who:?}");
        }
        let pending = net.pending_tasks(0, 256).unwrap();
        for (v, t) in pending.iter().zip(self.pending.iter().take(256)) {
            Self::same(v, t, 1);
        }
        self.compare_validation(net);
        self.compare_profiles(net);
        let mut parked: Vec<u32> = net.excluded_nodes(0, 256).unwrap().1.iter().map(|n| n.0).collect();
        parked.sort_unstable();
        assert_eq!(parked, self.nodes.iter().filter(|(_, n)| n.parked.is_some()).map(|(&i, _)| i).collect::<Vec<_>>());
        let listed = |among: Among| {
            let mut all: Vec<u32> = Vec::new();
            for &g in self.groups.values() {
                for c in 0..10 {
                    for NodeId(number) in net.listed_nodes(among, GpuGroup(g), c, 0, 256).unwrap().1 {
                        let n = &self.nodes[&number];
                        assert_eq!((n.group, class(n.stake) as u8), (g, c), "{number} stands wrong among the {among:?}");
                        all.push(number);
                    }
                }
            }
            all.sort_unstable();
            all
        };
        assert_eq!(listed(Among::Idle), self.idle().map(|(&i, _)| i).collect::<Vec<_>>());
        let active = self.nodes.iter().filter(|(_, n)| n.status != 0 && !n.aside);
        assert_eq!(listed(Among::Active), active.map(|(&i, _)| i).collect::<Vec<_>>());
        for &g in self.groups.values() {
            assert_eq!(registry::listed(&*net.host, GpuGroup(g)), self.listed.contains(&g));
        }
        let queues: BTreeSet<u32> = self.queue.iter().map(Task::queue).collect();
        for queue in queues {
            let (_, tasks) = net.queued_tasks(QueueId(queue), 0, 256).unwrap();
            let mine: Vec<&Task> = self.queue.iter().filter(|t| t.queue() == queue).collect();
            assert_eq!(tasks.len(), mine.len());
            for v in &tasks {
                Self::same(v, mine.iter().find(|t| t.id == v.id).expect("queued"), 2);
            }
        }
        if full {
            for (&m, list) in &self.holders {
                if m > 0 {
                    assert_eq!(
                        net.holders_view(ModelId(m), 0, 256).unwrap(),
                        (list.len() as u32, list.iter().map(|&n| NodeId(n)).collect())
                    );
                }
            }
        }
    }

    fn compare_validation<H: Host>(&self, net: &Network<H>) {
        let calls = net.validator_draws_view(0, 256).unwrap();
        assert_eq!(calls.len(), self.calls.len(), "calls");
        for (v, call) in calls.iter().zip(&self.calls) {
            let task = self.nodes[&call.node].task.as_ref();
            match task.filter(|t| t.id == call.id && matches!(t.part, Part::Calling(_))) {
                Some(_) => assert_eq!((v.id, v.node, v.status, v.drawBlock), (call.id, call.node, 5, call.block)),
                None => assert_eq!((v.id, v.status), (0, 0), "its task is gone"),
            }
        }
        for place in 1..=self.places {
            let v = net.group_view(place);
            let Some(team) = self.teams.get(&place) else {
                assert_eq!(v.id, 0, "there is no group at {place}");
                continue;
            };
            let (task, opens) = (&team.task, team.opens(self.now));
            assert_eq!(
                (
                    v.group,
                    v.id,
                    v.creator.into_array(),
                    v.fee,
                    v.kind,
                    v.images,
                    v.estimate as u64,
                    (v.redundancy, v.sampleBps as u128),
                    v.scored
                ),
                (
                    place,
                    task.id,
                    task.creator,
                    task.fee,
                    task.kind,
                    task.images,
                    task.estimate,
                    (task.policy, task.sample_bps),
                    team.scored
                )
            );
            let closes = opens.map_or(0, |opens| opens + self.set["revealWindow"]);
            assert_eq!((v.opens, v.closes), (opens.unwrap_or(0), closes), "reveals at {place}");
            assert_eq!(v.members.len(), team.members.len().max(3), "members at {place}");
            for (i, v) in v.members.iter().enumerate() {
                let Some(m) = team.members.get(i) else {
                    assert_eq!((v.node, v.stage), (0, 0));
                    continue;
                };
                assert!(!team.members[..i].iter().any(|other| other.node == m.node), "{} twice at {place}", m.node);
                assert_eq!(
                    (v.node, v.stage, v.moment, v.elapsed as u64, v.answer),
                    (m.node, m.stage, m.moment, m.elapsed, m.answer)
                );
            }
        }
    }

    fn same(v: &IMuster::TaskView, t: &Task, status: u8) {
        let at = [0, v.drawBlock, v.ticket, v.deadline, v.deadline, v.deadline, v.deadline][status as usize];
        assert_eq!((v.status, v.drawBlock + v.ticket + v.deadline), (status, at));
        assert_eq!((v.kind, v.redundancy, v.sampleBps as u128), (t.kind, t.policy, t.sample_bps));
        assert_eq!(
            (
                v.id,
                v.creator.into_array(),
                v.fee,
                v.estimate as u64,
                v.timeLimit as u64,
                v.startFeeBps as u128,
                v.vram,
                v.gpu,
                &v.models,
                at,
                v.boosts
            ),
            (t.id, t.creator, t.fee, t.estimate, t.limit, t.bps, t.vram, t.gpu.unwrap_or(0), &t.models, t.at, t.boosts)
        );
    }
}
