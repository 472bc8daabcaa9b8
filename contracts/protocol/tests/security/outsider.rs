//! Attacks by anybody, with calls alone.

mod single {
    use crate::help::single::*;
    use alloy_sol_types::SolInterface;
    use muster_core::id::{NodeId, TaskId, Ticket};
    use muster_model::meter::priced;
    use muster_model::world::*;
    use muster_model::{proof, refused};
    use muster_protocol::host::Host;
    use muster_protocol::native::Memory;
    use muster_protocol::{admin, IMuster, Network, Refusal};
    use std::collections::BTreeMap;

    /// Calls that could come between the hash and the draws. Node 7 is busy, node 8 paused.
    const MEDDLING: [&str; 11] =
        ["create", "pause", "quit", "resume", "raise stake", "join", "report", "remove", "submit", "report error", "poke"];

    /// Where due tasks fall if somebody meddles first: played, then undone. Gives the refusal of the meddling too.
    fn fall(w: &mut World, meddling: Option<&str>, running: u64, ids: &[u64]) -> (Vec<Option<u32>>, Option<Vec<u8>>) {
        let mut out = (Vec::new(), None);
        let undone: Result<(), ()> = w.mem.call(|m| {
            let played: Result<(), Refusal> = m.call(|m| {
                let Some(what) = meddling else { return Ok(()) };
                let by = match what {
                    "submit" | "report error" => 7,
                    "resume" => 8,
                    "join" => 70,
                    "create" => 50,
                    _ => 2,
                };
                (m.sender, m.value) = (
                    who(by),
                    word(match what {
                        "join" => 90_000 * TOKEN,
                        "raise stake" => TOKEN,
                        "create" => FEE,
                        _ => 0,
                    }),
                );
                let mut net = Network::open_and_serve(m)?;
                match what {
                    "create" => net.create_task(spec(0, &[])).map(drop),
                    "pause" => net.pause(),
                    "quit" => net.quit(),
                    "resume" => net.resume(),
                    "raise stake" => net.raise_stake(),
                    "join" => net.join(b"RTX 4090", 24, muster_model::world::ids(vec![1])).map(drop),
                    "report" => net.report_downloaded(muster_model::world::ids(vec![99])),
                    "remove" => net.report_removed(muster_model::world::ids(vec![1])),
                    "submit" => net.submit(TaskId(running), [1; 32]),
                    "report error" => net.report_error(TaskId(running), 1),
                    _ => net.poke(NodeId(2)),
                }?;
                net.close();
                Ok(())
            });
            out.1 = played.err().map(Refusal::into_bytes);
            let mut net = Network::open(m).unwrap();
            net.dispatch(16).unwrap();
            let runs = |id: u64, n: u32| net.node_view(NodeId(n)).is_ok_and(|v| v.task == id && matches!(v.status, 2..=4));
            out.0 = ids.iter().map(|&id| (1..=9).find(|&n| runs(id, n))).collect();
            net.close();
            Err(())
        });
        assert!(undone.is_err());
        out
    }

    /// With drawDelay 1 and more due tasks than any call serves, the first caller in a block knows the hash of those that it leaves. No
    /// call moves them: it is refused, or the nodes that it frees wait until the tasks are drawn.
    #[test]
    fn a_backlog_of_due_tasks_buys_its_first_caller_nothing() {
        let mut w = world(8, 1);
        w.mem.keep_logs = false;
        w.call(who(8), 0, |n| n.pause()).unwrap();
        w.call(who(2), 0, |n| n.report_downloaded(ids(vec![1]))).unwrap();
        let (mut refused, mut tried) = (BTreeMap::new(), BTreeMap::new());
        for _ in 0..300 {
            // Node 7 gets its task by standing alone.
            for n in 1..7 {
                w.call(who(n), 0, |n| n.pause()).unwrap();
            }
            let running = w.create(50, FEE, spec(0, &[])).unwrap();
            while w.node(7).status != 2 {
                w.pass(1, 0);
                w.dispatch(1).unwrap();
            }
            for n in 1..7 {
                w.call(who(n), 0, |n| n.resume()).unwrap();
            }
            w.pass(1, 0);
            let ids: Vec<u64> = (0..11).map(|_| w.create(50, FEE, spec(0, &[])).unwrap()).collect();
            w.pass(1, 0);
            let (plain, _) = fall(&mut w, None, running, &ids);
            for what in MEDDLING {
                let (fell, refusal) = fall(&mut w, Some(what), running, &ids);
                // A task that no idle node was left for is queued; a node that is freed later may take it from there.
                for (fell, plain) in fell.iter().zip(&plain) {
                    assert!(
                        fell == plain || plain.is_none() && matches!(fell, Some(7..=9)),
                        "{what} moved a draw: {fell:?} for {plain:?}"
                    );
                }
                *tried.entry(what).or_insert(0) += 1;
                if let Some(bytes) = refusal {
                    let due = IMuster::IMusterErrors::abi_decode_validate(&bytes).unwrap();
                    assert!(matches!(due, IMuster::IMusterErrors::DrawsDue(ref d) if d.pending == 3), "{what}: {due:?}");
                    *refused.entry(what).or_insert(0) += 1;
                }
            }
            loop {
                w.dispatch(16).unwrap();
                w.pass(1, 0);
                let busy: Vec<u32> = (1..=7u32).filter(|&n| w.node(n).status == 2).collect();
                if busy.is_empty() && w.view(|n| n.overview()).pending == 0 {
                    break;
                }
                for n in busy {
                    let id = w.node(n).task;
                    submit(&mut w, n as u64, id);
                }
            }
        }
        // Refused every time; the others went through every time and moved nothing.
        for what in MEDDLING {
            let refusals: u32 = refused.get(what).copied().unwrap_or(0);
            proof("backlog", &[("call", &what), ("tried", &tried[what]), ("refused", &refusals)]);
        }
        let changes_candidates = ["pause", "quit", "resume", "raise stake", "join", "report", "remove", "poke"];
        assert_eq!(refused, changes_candidates.into_iter().map(|what| (what, 300)).collect());
    }

    /// 2: The random generator was a contract of its own with public functions, which anyone could call to move its state
    /// before a draw. Here there is no generator with a state: a draw depends on its hash and id alone.
    #[test]
    fn w02_randomness_has_no_state_and_no_selector() {
        nothing_called(&["rand", "seed", "choice", "nonce"]);
        let mut w = world(20, 1);
        let before = foretell(&mut w, [3; 32], 4, &spec(0, &[]));
        for _ in 0..20 {
            foretell(&mut w, [8; 32], 5, &spec(0, &[]));
            let _ = w.call(who(99), 0, |n| n.poke(NodeId(1)));
            w.pass(1, 0);
        }
        assert_eq!(foretell(&mut w, [3; 32], 4, &spec(0, &[])), before);
    }

    /// 7: The order of the arguments decided the ranks, so the caller chose who earned most. Here no function takes a rank
    /// or a score from its caller.
    #[test]
    fn w07_no_caller_decides_a_rank() {
        nothing_called(&["score", "rank", "qos", "record"]);
    }

    /// 13: The check of a task's state before an abort let every state pass. Here a task ends once, and only as its state
    /// allows.
    #[test]
    fn w13_an_ended_task_cannot_be_ended_again() {
        let mut w = world(1, 0);
        let id = w.create(5, FEE, spec(0, &[])).unwrap();
        refused!(w.call(who(5), 0, |n| n.expire(NodeId(1), TaskId(id))), DeadlineNotPassed(id, 1_700_000_120u64));
        submit(&mut w, 1, id);
        w.pass(1, 10_000);
        refused!(w.call(who(5), 0, |n| n.expire(NodeId(1), TaskId(id))), TaskNotRunning(id, 1u32));
        refused!(w.call(who(1), 0, |n| n.submit(TaskId(id), [0; 32])), TaskNotRunning(id, 1u32));
        refused!(w.call(who(1), 0, |n| n.report_error(TaskId(id), 0)), TaskNotRunning(id, 1u32));
        refused!(w.call(who(5), 0, |n| n.cancel(TaskId(id), Ticket(0))), TaskNotQueued(id, 0u64));
        assert_eq!((w.account(1).credit, w.account(5).credit), (FEE, 0));
    }

    /// 15: Anyone could call the function that gives an available node its next task. Here calls that anyone may
    /// make do nothing that was not due.
    #[test]
    fn w15_poke_by_anyone_starts_nothing_twice() {
        nothing_called(&["callback"]);
        let mut w = world(1, 0);
        refused!(w.call(who(77), 0, |n| n.poke(NodeId(1))), NothingToPoke(1u32));
        w.create(5, FEE, spec(0, &[])).unwrap();
        w.create(5, FEE, spec(0, &[])).unwrap();
        refused!(w.call(who(77), 0, |n| n.poke(NodeId(1))), WrongStatus(1u32, 2u8));
        assert_eq!((w.node(1).task, w.view(|n| n.overview()).queued), (1, 1));
    }

    /// A hash that had aged out was a free second draw. Now it is known for 393,168 blocks, and every call until then makes the draw.
    #[test]
    fn a_bad_hash_is_not_waited_out() {
        let mut w = world(8, 1);
        let mut won = 0;
        for _ in 0..200 {
            let id = w.create(50, FEE, spec(0, &[])).unwrap();
            let at = w.view(|n| n.pending_tasks(0, 1)).unwrap()[0].drawBlock;
            w.pass(1, 0);
            let hash = w.mem.block_hash(at).unwrap();
            let node = foretell(&mut w, hash, id, &spec(0, &[])).unwrap();
            // The creator dislikes it, and lets 257 blocks and more go by.
            w.pass(100_000, 1);
            w.dispatch(1).unwrap();
            assert_eq!((w.node(node).task, w.node(node).status), (id, 2));
            won += (node == 1) as u32;
            w.call(who(node as u64), 0, |n| n.submit(TaskId(id), [0; 32])).unwrap();
        }
        priced("a bad hash waited out", "100,000 blocks for each of 200 tasks", &format!("{won} won where 25 are fair"));
        assert!((5..=50).contains(&won), "{won} of 200, an eighth is 25");
    }

    /// Code in storage before initialisation could take a stake later. Now only the account that the init code named can call anything
    /// before.
    #[test]
    fn nobody_else_installs_or_initialises() {
        let mut w = World::on(Memory::created_by(OWNER));
        refused!(w.raw(who(66), 0, |m| admin::only_deployer(m)), NotOwner(who(66)));
        refused!(w.raw(who(66), 0, |m| admin::initialise(m, &genesis(), &[])), NotOwner(who(66)));
        w.raw(OWNER, 0, |m| admin::only_deployer(m)).unwrap();
        w.raw(OWNER, 0, |m| admin::initialise(m, &genesis(), &[])).unwrap();
        refused!(w.raw(OWNER, 0, |m| admin::only_deployer(m)), AlreadyInitialised);
    }
}

mod replicated {

    use alloy_primitives::B256;
    use muster_core::id::{GpuGroup, NodeId};
    use muster_core::record::{Order, Queue, Size};
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::host::{offset, Host};
    use muster_protocol::layout::{entry, slot, GPU_COUNTS, QUEUE};
    use muster_protocol::store::node::NodeHandle;
    use muster_protocol::store::registry;
    use muster_protocol::IMuster::{self, *};
    use muster_protocol::{Network, Result};
    use std::collections::{BTreeMap, HashMap};

    /// Every joined node stands where its record says, and nowhere else.
    fn check_places(w: &mut World, log: &[String]) {
        let issued = w.ask(overviewCall {}).nodesIssued;
        let tail = || log[log.len().saturating_sub(25)..].join("\n");
        let mut idle = HashMap::<u32, u32>::new();
        let mut groups: Vec<u32> = (1..=issued).map(|n| w.node(n).gpu).collect();
        groups.sort_unstable();
        groups.dedup();
        for &group in &groups {
            for class in 0..10 {
                for n in w.ask(idleNodesCall { group, class, from: 0, count: 256 }).numbers {
                    *idle.entry(n).or_default() += 1;
                    assert_eq!(w.node(n).gpu, group);
                }
            }
        }
        let mut parked = HashMap::<u32, u32>::new();
        for n in w.ask(excludedNodesCall { from: 0, count: 256 }).numbers {
            *parked.entry(n).or_default() += 1;
        }
        let pending: Vec<u64> = w.ask(pendingTasksCall { from: 0, count: 256 }).iter().map(|t| t.id).collect();
        for n in 1..=issued {
            let v = w.node(n);
            let node = NodeHandle::load(&w.mem, NodeId(n)).node;
            let want_idle = u32::from(v.status == 1 && v.parked == 0);
            assert_eq!(idle.get(&n).copied().unwrap_or(0), want_idle, "node {n} idle: {v:?}\n{}", tail());
            let want_parked = u32::from(v.parked == 1 || v.parked == 2);
            assert_eq!(parked.get(&n).copied().unwrap_or(0), want_parked, "node {n} parked: {v:?}\n{}", tail());
            if v.parked == 3 {
                let task = NodeHandle::load(&w.mem, NodeId(n)).assignment(&w.mem).task.0;
                assert!(pending.contains(&task), "node {n} is reserved for {task}, pending {pending:?}\n{}", tail());
                assert!(matches!(v.status, 2 | 3 | 4 | 6));
                let net = Network::open(&mut w.mem).unwrap();
                let ring = *net.ring();
                let at =
                    (0..ring.len()).find(|&i| net.host.get::<Order>(offset(ring.slot(net.host, i), 1)).id.0 == task).unwrap();
                let all = ring.reserved(net.host, ring.slot(net.host, at)).all();
                assert_eq!(all.iter().filter(|&&x| x == NodeId(n)).count(), 1, "node {n} not on its list\n{}", tail());
            }
            if v.parked == 2 {
                assert_eq!(v.status, 1);
            }
            if node.running() {
                assert_ne!(w.ask(runningTaskCall { number: n }).status, 0, "node {n} {v:?}\n{}", tail());
            }
        }
        let live = w.ask(groupsCall { from: 1, count: 256 })._1;
        let mut open = HashMap::<u32, u8>::new();
        let mut called = HashMap::<u32, u32>::new();
        for g in &live {
            let mut members: Vec<u32> = g.members.iter().filter(|m| m.stage > 0).map(|m| m.node).collect();
            members.sort_unstable();
            members.dedup();
            assert_eq!(members.len(), g.members.iter().filter(|m| m.stage > 0).count());
            for m in &g.members {
                match m.stage {
                    1 => assert!(called.insert(m.node, g.group).is_none()),
                    2 => {
                        let view = w.ask(runningTaskCall { number: m.node });
                        assert_eq!((view.id, view.group), (g.id, g.group), "{g:?}\n{}", tail());
                    }
                    _ => {}
                }
            }
            // Those who have not revealed, and an answer as long as two others can outvote it.
            let within: Vec<_> = g.members.iter().filter(|m| matches!(m.stage, 3 | 4)).collect();
            for m in within.iter().filter(|_| g.scored && g.redundancy < 3 && g.images == 0) {
                let backed = within.iter().any(|other| other.node != m.node && other.stage == 4 && other.answer == m.answer);
                if m.stage == 3 || within.len() == 3 && !backed {
                    *open.entry(m.node).or_default() += 1;
                }
            }
        }
        for n in 1..=issued {
            let v = w.node(n);
            assert_eq!(v.openCommitments, open.get(&n).copied().unwrap_or(0), "{v:?}\n{}", tail());
            assert_eq!(v.calledTo, called.get(&n).copied().unwrap_or(0), "{v:?}\n{}", tail());
            if v.held {
                assert!(v.openCommitments > 0 && v.parked == 0);
            }
        }
        let q: Queue = w.mem.get(slot(QUEUE));
        let queues = w.ask(queuesCall { from: 0, count: 256 })._1;
        let graded: u32 = queues.iter().filter(|q| (q.queue >> 12) & 15 > 0).map(|q| q.queued).sum();
        let all: u32 = queues.iter().map(|q| q.queued).sum();
        assert_eq!((q.graded, w.ask(overviewCall {}).queued), (graded, all), "{}", tail());
        // Trios.
        for &group in &groups {
            let vram = (group & 0xffff) as u16;
            let trios = groups
                .iter()
                .filter(|&&g| (g & 0xffff) as u16 == vram)
                .filter(|&&g| registry::listed(&w.mem, GpuGroup(g)) && registry::joined(&w.mem, GpuGroup(g)) >= Some(3))
                .count() as u32;
            let size: Size = w.mem.get(entry(&w.mem, GPU_COUNTS, vram.into()));
            assert_eq!(size.trios, trios, "{}", tail());
        }
    }

    /// No call loses or makes a wei, each node stands in one place, all tasks can end and all nodes can leave. Makes 15,000 random calls,
    /// or as many as `OPERATIONS` says, as in `OPERATIONS=500000 script/test -p muster-protocol --test security search -- --show-output`.
    #[test]
    fn search() {
        let operations: u64 = std::env::var("OPERATIONS").map_or(15_000, |n| n.parse().expect("a number"));
        let mut counts = BTreeMap::<String, (u32, u32)>::new();
        let mut seen = BTreeMap::<String, u32>::new();
        for seed in 0..operations.div_ceil(300) {
            let mut d = Dice(seed * 7919 + 1);
            let mut log: Vec<String> = vec![format!("seed {seed}")];
            let mut w = world(0, d.below(3));
            w.set("scorePool", 3);
            w.set("sampleBps", [1_000, 10_000][(seed & 1) as usize]);
            let cards = [("a", 24u16), ("b", 24), ("c", 48)];
            let people = 8 + d.below(5);
            for n in 1..=people {
                let (name, vram) = cards[d.below(3) as usize];
                w.join(n, name, vram, &[], 400 + 400 * u128::from(d.below(4))).unwrap();
            }
            for g in [CARD, 2 << 16 | 24, 1 << 16 | 48] {
                let _ = w.send(OWNER, 0, listGpuGroupCall { group: g, listed: true });
            }
            w.set("alphaMilli", [0, 300, 1000, 2000][d.below(4) as usize]);
            for _ in 0..300 {
                let node = 1 + d.below(people) as u32;
                let op = d.below(34);
                // Some worlds keep their nodes at work.
                let op = if seed % 3 > 0 && matches!(op, 18 | 19 | 22) && d.below(3) > 0 {
                    [20, 26, 14][d.below(3) as usize]
                } else {
                    op
                };
                let (name, result): (&str, Result<()>) = match op {
                    0..=6 => {
                        let policy = [0u8, 1, 1, 2, 2][d.below(5) as usize];
                        let kind = d.below(2) as u8;
                        let gpu = if d.below(3) == 0 { [CARD, 2 << 16 | 24, 1 << 16 | 48][d.below(3) as usize] } else { 0 };
                        let vram = [0, 24, 25, 48][d.below(4) as usize];
                        let models: Vec<u64> = (1..=d.below(3)).collect();
                        let s = IMuster::TaskSpec {
                            redundancy: policy,
                            kind,
                            gpu,
                            vram,
                            flags: d.below(2) as u32,
                            ..spec(0, &models)
                        };
                        let fee = TOKEN / 10 * u128::from(1 + d.below(40));
                        ("create", w.create(50 + d.below(3), fee, s).map(drop))
                    }
                    7..=13 => {
                        let view = w.ask(runningTaskCall { number: node });
                        let group = view.group;
                        match view.status {
                            0 => ("none", Ok(())),
                            _ if view.redundancy == 0 && group == 0 => {
                                if d.below(4) == 0 {
                                    ("error", w.send(who(node.into()), 0, reportErrorCall { id: view.id, code: 1 }).map(drop))
                                } else {
                                    (
                                        "submit",
                                        w.send(who(node.into()), 0, submitCall { id: view.id, resultDigest: value(1) }).map(drop),
                                    )
                                }
                            }
                            _ => {
                                let v = if d.below(5) == 0 { 2 } else { 1 };
                                let v = if view.kind == 0 {
                                    let mut b = [0; 32];
                                    b[..8].fill(if v == 2 { 0xf0 } else { 1 });
                                    B256::from(b)
                                } else {
                                    value(v)
                                };
                                ("commit", commit(&mut w, view.id, node, ANSWER, v))
                            }
                        }
                    }
                    14..=16 => {
                        // Reveals everything that can be revealed in groups, or alone.
                        let groups = w.ask(groupsCall { from: 1, count: 64 })._1;
                        let mut out = ("reveal none", Ok(()));
                        for g in groups {
                            for m in &g.members {
                                if m.stage == 3 && d.below(8) > 0 {
                                    let im = |x: u8| {
                                        let mut b = [0; 32];
                                        b[..8].fill(x);
                                        B256::from(b)
                                    };
                                    for v in [value(1), value(2), im(1), im(0xf0)] {
                                        let r = reveal(&mut w, g.id, g.group, m.node, ANSWER, v);
                                        if r.is_ok() {
                                            out = ("reveal", Ok(()));
                                        }
                                    }
                                }
                            }
                        }
                        for n in 1..=people as u32 {
                            let view = w.ask(runningTaskCall { number: n });
                            if view.status == 4 && w.send(who(9), 0, validateCall { id: view.id, node: n }).is_ok() {
                                out = ("validate", Ok(()));
                            }
                        }
                        let view = w.ask(runningTaskCall { number: node });
                        if view.status == 4 {
                            let r = if w.send(who(9), 0, validateCall { id: view.id, node }).is_ok() {
                                ("validate", Ok(()))
                            } else {
                                ("reveal alone", reveal(&mut w, view.id, 0, node, ANSWER, value(1)))
                            };
                            out = r;
                        }
                        out
                    }
                    17 => {
                        let groups = w.ask(groupsCall { from: 1, count: 64 })._1;
                        let mut out = ("settle none", Ok(()));
                        for g in groups {
                            if w.send(who(9), 0, settleCall { id: g.id, group: g.group }).is_ok() {
                                out = ("settle", Ok(()));
                            }
                        }
                        out
                    }
                    18 | 19 => ("pause", w.send(who(node.into()), 0, pauseCall {}).map(drop)),
                    20 | 21 => ("resume", w.send(who(node.into()), 0, resumeCall {}).map(drop)),
                    22 => ("quit", w.send(who(node.into()), 0, quitCall {}).map(drop)),
                    23 | 24 => {
                        let (name, vram) = cards[d.below(3) as usize];
                        ("join", w.join(node.into(), name, vram, &[], 400 + 400 * u128::from(d.below(4))).map(drop))
                    }
                    25 => {
                        let view = w.ask(runningTaskCall { number: node });
                        ("expire", w.send(who(60), 0, expireCall { node, id: view.id }).map(drop))
                    }
                    26 => ("poke", w.send(who(60), 0, pokeCall { node }).map(drop)),
                    27 => {
                        let g = [CARD, 2 << 16 | 24, 1 << 16 | 48][d.below(3) as usize];
                        ("list", w.send(OWNER, 0, listGpuGroupCall { group: g, listed: d.below(3) > 0 }).map(drop))
                    }
                    28 => {
                        let (p, v) = [
                            ("holdTime", [0, 1, 60, 255]),
                            ("exclusionPpm", [0, 100_000, 500_000, 900_000]),
                            ("alphaMilli", [0, 200, 1000, 3000]),
                            ("openMost", [1, 2, 3, 8]),
                            ("tau", [1, 1800, 1800, 20000]),
                        ][d.below(5) as usize];
                        let v = v[d.below(4) as usize];
                        w.set(p, v);
                        ("set", Ok(()))
                    }
                    29 => {
                        w.pass(if d.below(40) == 0 { 400_000 } else { 1 }, [1, 30, 61, 130, 8000, 25_000][d.below(6) as usize]);
                        ("pass", Ok(()))
                    }
                    30 => ("dispatch", w.dispatch(d.below(5) as u8).map(drop)),
                    31 => {
                        let queues = w.ask(queuesCall { from: 0, count: 64 })._1;
                        let mut out = ("cancel none", Ok(()));
                        for q in queues {
                            for t in w.ask(queuedTasksCall { queue: q.queue, from: 0, count: 64 })._1 {
                                if d.below(4) == 0 {
                                    w.mem.sender = t.creator.into_array();
                                    out = (
                                        "cancel",
                                        w.send(t.creator.into_array(), 0, cancelCall { id: t.id, ticket: t.ticket }).map(drop),
                                    );
                                }
                            }
                        }
                        out
                    }
                    32 => ("form", w.send(who(60), 0, formGroupCall {}).map(drop)),
                    _ => ("raise", w.send(who(node.into()), 400 * TOKEN, raiseStakeCall {}).map(drop)),
                };
                let ok = result.is_ok();
                let entry = counts.entry(name.into()).or_default();
                if ok {
                    entry.0 += 1;
                } else {
                    entry.1 += 1;
                }
                log.push(format!("{name} {node} {}", if ok { "ok".into() } else { named(result) }));
                for e in w.events() {
                    let text = format!("{e:?}");
                    *seen.entry(text.split('(').next().unwrap().into()).or_default() += 1;
                    log.push(format!("      {}", &text[..text.len().min(220)]));
                }
                if d.below(2) == 0 {
                    w.pass(1, d.below(8));
                }
                check_money(&mut w);
                check_places(&mut w, &log);
            }
            // All can end: time passes, anyone able to ends a task, everybody quits.
            w.set("exclusionPpm", 100_000);
            w.set("tau", 1800);
            for _ in 0..60 {
                w.pass(1, 25_000);
                w.dispatch(16).unwrap();
                for n in 1..=people as u32 {
                    let view = w.ask(runningTaskCall { number: n });
                    if view.status > 0 {
                        let _ = w.send(who(60), 0, expireCall { node: n, id: view.id });
                        let _ = w.send(who(60), 0, validateCall { id: view.id, node: n });
                    }
                    let _ = w.send(who(n.into()), 0, quitCall {});
                }
                for g in w.ask(groupsCall { from: 1, count: 64 })._1 {
                    let _ = w.send(who(9), 0, settleCall { id: g.id, group: g.group });
                }
                for q in w.ask(queuesCall { from: 0, count: 64 })._1 {
                    for t in w.ask(queuedTasksCall { queue: q.queue, from: 0, count: 64 })._1 {
                        let _ = w.send(who(60), 0, expireQueuedCall { id: t.id, ticket: t.ticket });
                    }
                }
                check_money(&mut w);
                check_places(&mut w, &log);
                w.events();
            }
            let o = w.ask(overviewCall {});
            assert_eq!(
                (o.nodesJoined, o.pending, o.queued, o.groups),
                (0, 0, 0, 0),
                "seed {seed}: {:?}",
                (1..=people as u32).map(|n| w.node(n)).filter(|v| v.status > 0).collect::<Vec<_>>()
            );
        }
        println!("{counts:?}\n{seen:?}");
    }
}
