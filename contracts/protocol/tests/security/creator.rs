//! Attacks by creators of tasks, without nodes of their own.

mod single {
    use crate::help::single::*;
    use muster_core::id::{QueueId, TaskId, Ticket};
    use muster_model::meter::{metered, metered_alone, priced, MOST_GAS};
    use muster_model::refused;
    use muster_model::world::*;
    use muster_protocol::flow::draw::Rng;
    use muster_protocol::host::Host;
    use muster_protocol::IMuster::{self, estimateCall, runningTaskCall};
    use muster_protocol::Network;
    use std::collections::BTreeSet;

    /// 1: The draw was seeded with a block's number and the creator's own words, so creators could grind it to get a node. Here
    /// the seed is a block's hash and the contract's own task id: nothing the creator writes into a task moves it.
    #[test]
    fn w01_the_creator_has_nothing_to_grind() {
        let mut w = world(20, 1);
        let hash = [5; 32];
        let node = foretell(&mut w, hash, 9, &spec(0, &[]));
        for i in 0..50u8 {
            let other = IMuster::TaskSpec { inputDigest: [i; 32].into(), units: 1 + i as u32, ..spec(0, &[]) };
            assert_eq!(foretell(&mut w, hash, 9, &other), node);
        }
        let by_hash: BTreeSet<_> = (0..100).filter_map(|i| foretell(&mut w, [i; 32], 9, &spec(0, &[]))).collect();
        let by_id: BTreeSet<_> = (0..100).filter_map(|i| foretell(&mut w, hash, i, &spec(0, &[]))).collect();
        assert!(by_hash.len() >= 15 && by_id.len() >= 15, "hash and id both count");
    }

    /// 3: Creators could grind their commitment until the task was not sampled for validation, which saved them two tasks.
    /// Here the creator commits to nothing: the node does, and the hash of a block at least two later samples; and a policy that is not
    /// there is refused. The fast caller, below, tries the draw itself.
    #[test]
    fn w03_no_commitment_decides_anything() {
        nothing_called(&["vrf", "disclose", "sample"]);
        let mut w = world(1, 1);
        for policy in 4..=255 {
            refused!(w.create(5, FEE, IMuster::TaskSpec { redundancy: policy, ..spec(0, &[]) }), RedundancyUnsupported(policy));
        }
        // Block and task decide, whatever the node commits to.
        w.send(OWNER, 0, IMuster::listGpuGroupCall { group: 1 << 16 | 24, listed: true }).unwrap();
        w.set("sampleBps", 5_000);
        let mut sampled = 0;
        for salt in 0..40 {
            let id = w.create(5, FEE, IMuster::TaskSpec { redundancy: 1, gpu: 1 << 16 | 24, ..spec(0, &[]) }).unwrap();
            w.pass(1, 0);
            w.dispatch(1).unwrap();
            w.send(who(1), 0, IMuster::commitCall { id, commitment: [salt; 32].into() }).unwrap();
            w.pass(5, 601);
            let hash = w.mem.block_hash(w.mem.block - 3).unwrap();
            let lot = w.view(|net| Rng::new(net.host, hash, TaskId(id)).below(net.host, 10_000)) < 5_000;
            assert_eq!(w.send(who(9), 0, IMuster::validateCall { id, node: 1 }).is_ok(), lot);
            if lot {
                // Nobody is there to validate it.
                sampled += 1;
                w.pass(3, 0);
                w.dispatch(1).unwrap();
                w.pass(1, 7_201);
                w.send(who(9), 0, IMuster::settleCall { id, group: 1 }).unwrap();
            } else {
                w.send(who(9), 0, IMuster::expireCall { node: 1, id }).unwrap();
            }
            w.pass(1, 90_000);
        }
        assert!((8..32).contains(&sampled), "{sampled} of 40");
    }

    /// 4: A task could be created over an existing one, and its fee was stuck. Here ids are the contract's and count up.
    #[test]
    fn w04_no_task_overwrites_another() {
        let mut w = world(1, 0);
        w.set("alphaMilli", 100_000);
        let ids: Vec<u64> = (0..30).map(|i| w.create(5 + i % 3, FEE + i as u128, spec(0, &[])).unwrap()).collect();
        assert_eq!(ids, (1..=30).collect::<Vec<_>>());
        let (_, tasks) = w.view(|n| n.queued_tasks(QueueId(0), 0, 99)).unwrap();
        assert_eq!(tasks.len(), 29);
        assert!(tasks.iter().all(|t| t.fee == FEE + t.id as u128 - 1 && t.creator.into_array() == who(5 + (t.id - 1) % 3)));
    }

    /// 5: The creator and one node, named twice, could have the honest third node slashed. Here members are
    /// drawn by a hash and are never the same, and nobody names them; only two equal answers slash.
    #[test]
    fn w05_nobody_can_have_an_honest_node_slashed() {
        nothing_called(&["slash"]);
        let mut w = world(2, 0);
        let id = w.create(5, FEE, spec(0, &[])).unwrap();
        let ran = (1..=2u32).find(|&n| w.node(n).status == 2).unwrap();
        w.call(who(ran as u64), 0, |n| n.report_error(TaskId(id), 1)).unwrap();
        assert!((1..=2).all(|n| w.node(n).stake == 400 * TOKEN && w.node(n).status == 1));
    }

    /// 9: A full queue refused every new task, or let a nearly free one evict a good one. Here a full queue takes a better
    /// task and turns a worse one away, refunded, without failing.
    #[test]
    fn w09_a_full_queue_neither_reverts_nor_can_be_flushed_cheaply() {
        let mut w = world(1, 0);
        w.create(5, FEE, spec(0, &[])).unwrap();
        let good: Vec<u64> = (0..2).map(|_| w.create(5, FEE, spec(0, &[])).unwrap()).collect();
        for _ in 0..50 {
            w.create(6, 60, spec(0, &[])).unwrap();
        }
        assert_eq!(w.account(6).credit, 3_000);
        assert_eq!(w.view(|n| n.queued_tasks(QueueId(0), 0, 9)).unwrap().1.iter().map(|t| t.id).collect::<Vec<_>>(), good);
        let better = w.create(6, FEE + FEE / 1_000_000, spec(0, &[])).unwrap();
        assert!(w.view(|n| n.queued_tasks(QueueId(0), 0, 9)).unwrap().1.iter().any(|t| t.id == better));
    }

    /// 10: The creator stated a task's size, so a small lie bought priority, and 0 divided by zero. Here the estimate is
    /// the contract's; the one that a creator states (fine-tuning) buys no more time than it says.
    #[test]
    fn w10_a_stated_size_gives_priority_only_with_its_deadline() {
        let mut w = world(1, 0);
        refused!(w.create(5, FEE, IMuster::TaskSpec { kind: 2, units: 0, ..spec(0, &[]) }), BadUnits(0u32, 7_200u32));
        for (kind, a, b) in [(0, 1, 9), (2, 100, 3_000)] {
            let (a, b) = (w.ask(estimateCall { kind, units: a }), w.ask(estimateCall { kind, units: b }));
            assert!(a.estimated < b.estimated && a.timeLimit < b.timeLimit && a.leastFee < b.leastFee);
            assert_eq!((a.timeLimit, b.timeLimit), (2 * a.estimated, 2 * b.estimated));
        }
        refused!(w.create(5, 0, spec(0, &[])), FeeTooLow(word(0), 60u64));
    }

    /// 11: The best-paid task blocked all others when the freed node could not run it. Here a task that a node cannot run
    /// stands in no node's way, however much it pays.
    #[test]
    fn w11_nothing_blocks_the_task_behind_it() {
        let mut w = world(1, 0);
        w.set("alphaMilli", 100_000);
        // Somebody could run them, but takes no tasks now.
        w.join(2, "large", 60, &[], 400).unwrap();
        w.call(who(2), 0, |n| n.pause()).unwrap();
        w.create(5, FEE, spec(0, &[])).unwrap();
        for vram in 25..60 {
            w.create(5, 1_000 * FEE, spec(vram, &[])).unwrap();
        }
        let fits = w.create(5, 60, spec(24, &[77])).unwrap();
        submit(&mut w, 1, 1);
        assert_eq!(w.node(1).task, fits);
    }

    /// 14: Fees were sent while state changed, so a recipient that refused them blocked the end of a task. Here every end
    /// only adds credit, which its owner fetches.
    #[test]
    fn w14_no_recipient_can_block_an_end() {
        let mut w = world(1, 0);
        let id = w.create(5, FEE, spec(0, &[])).unwrap();
        submit(&mut w, 1, id);
        assert_eq!((w.mem.paid, w.account(1).credit), (0, FEE));
        assert_eq!(w.withdraw(1).unwrap(), FEE);
        refused!(w.withdraw(1), NothingToWithdraw(who(1)));
    }

    /// Tasks that nobody can run held the whole queue for nothing, for 30 days, for 2 %. Now they are refused. An attacker that holds a
    /// queue with tasks that somebody could run, but does not, pays the start fee every six hours; the callers that end them earn it.
    #[test]
    fn holding_the_queue_costs_its_start_fees_every_six_hours() {
        let mut w = world(10, 1);
        refused!(w.create(66, FEE, spec(960, &[])), NobodyCanRun(960u16, 0u32));
        // The attacker's own node, the only one of its size, joined and paused: a deposit, nothing more.
        w.join(60, "own", 960, &[], 400).unwrap();
        w.call(who(60), 0, |n| n.pause()).unwrap();
        for _ in 0..10 {
            w.create(50, FEE, spec(0, &[])).unwrap();
        }
        w.drain();
        let capacity = w.view(|n| n.overview()).queueCapacity;
        let mut paid = 0;
        let hours = 30 * 24;
        let (mut lost_before, mut ids) = (0, Vec::new());
        for hour in 0..hours {
            if hour % 6 == 0 {
                // Anyone empties the queue and earns the start fees; the attacker fills it again.
                for id in std::mem::take(&mut ids) {
                    let ticket = w.ticket(id);
                    w.call(who(77), 0, |n| n.expire_queued(TaskId(id), Ticket(ticket))).unwrap();
                }
                lost_before = w.account(77).credit;
                for _ in 0..capacity {
                    ids.push(w.create(66, FEE, spec(960, &[])).unwrap());
                    paid += FEE;
                }
                w.drain();
                assert_eq!(w.view(|n| n.overview()).queued, capacity);
            }
            w.pass(1, 3_601);
        }
        for id in ids {
            let ticket = w.ticket(id);
            w.call(who(77), 0, |n| n.expire_queued(TaskId(id), Ticket(ticket))).unwrap();
        }
        let earned = w.account(77).credit;
        assert!(earned > lost_before);
        assert_eq!((w.account(66).credit, earned), (paid / 100 * 98, paid / 100 * 2));
        // In hundredths of a fee that the queue's places are held at.
        let each = earned * 10_000 / FEE / hours as u128 / capacity as u128;
        let held = format!("{capacity} places for {hours} hours, with tasks of one's own paused node");
        priced("the queue held", &held, &format!("{:.2} % of a fee for each place and hour", each as f64 / 100.0));
        assert_eq!(each, 33, "2 % of a fee every six hours");
        // And it displaces only tasks that are worth less: a creator that pays more gets in.
        for _ in 0..capacity {
            w.create(66, FEE, spec(960, &[])).unwrap();
        }
        w.drain();
        let better = w.create(50, FEE + FEE / 100, spec(0, &[])).unwrap();
        w.drain();
        assert!(w.view(|n| n.queued_tasks(QueueId(0), 0, 9)).unwrap().1.iter().any(|t| t.id == better));
    }

    /// Nor does it cost a fee if the attacker's own node runs the tasks before anybody may end them: a creator that pays more gets in, and so
    /// may the attacker again.
    #[test]
    fn holding_the_queue_with_tasks_that_ones_own_node_runs_costs_gas_alone() {
        let mut w = world(10, 1);
        let own = w.join(60, "own", 960, &[], 400).unwrap();
        w.call(who(60), 0, |n| n.pause()).unwrap();
        for _ in 0..10 {
            w.create(50, FEE, spec(0, &[])).unwrap();
        }
        w.drain();
        let (capacity, before) = (w.view(|n| n.overview()).queueCapacity, w.account(50).credit);
        for _ in 0..capacity {
            w.create(50, FEE, spec(0, &[])).unwrap();
        }
        let (fee, least) = (FEE / 2 + FEE / 1_000, IMuster::TaskSpec { kind: 2, units: 1, vram: 960, ..spec(0, &[]) });
        let mut gas = 0;
        for _ in 0..capacity {
            let (cost, created) = metered(&mut w, who(60), fee, |n| n.create_task(least.clone()));
            assert_eq!(created, "accepted");
            gas += cost;
        }
        assert_eq!((w.account(50).credit - before, w.view(|n| n.queued())), (FEE * u128::from(capacity), capacity));
        w.pass(1, 6 * 3_600 - 600);
        assert_eq!(w.view(|n| n.queued()), capacity);
        w.call(who(60), 0, |n| n.resume()).unwrap();
        for _ in 0..capacity {
            let id = w.ask(runningTaskCall { number: own }).id;
            let (cost, submitted) = metered(&mut w, who(60), 0, |n| n.submit(TaskId(id), [1; 32]));
            assert_eq!(submitted, "accepted");
            gas += cost;
        }
        assert_eq!(
            (w.account(60).credit, w.view(|n| n.queued())),
            (fee * u128::from(capacity), 0),
            "it has all of its fees back"
        );
        priced(
            "the queue held",
            &format!("{capacity} places for almost six hours, with tasks that one's own node then runs"),
            &format!("{} gas for each place, and no fee", gas / u64::from(capacity)),
        );
    }

    /// A full queue is pushed out by tasks that are worth more, which are cancelled as soon as only they are left. The cheapest such task
    /// has the least estimate. It costs its start fee, of little more than half the fee that it outbids, and gas for two calls; the creator
    /// that is pushed out gets the whole fee back. A contract's task is drawn a block later, so no money lent for one transaction can do
    /// it.
    #[test]
    fn emptying_the_queue_costs_a_hundredth_of_the_fees_that_it_pushes_out() {
        const MORE: u128 = FEE / 1_000;
        let mut w = world(10, 1);
        for _ in 0..10 {
            w.create(50, FEE, spec(0, &[])).unwrap();
        }
        w.drain();
        let capacity = w.view(|n| n.overview()).queueCapacity;
        // The words of the queue are cheapest where others have used them.
        let fill = |w: &mut World, creator| -> Vec<u64> {
            (0..capacity).map(|_| w.create(creator, FEE, spec(0, &[])).unwrap()).collect()
        };
        for id in fill(&mut w, 50) {
            let ticket = w.ticket(id);
            w.call(who(50), 0, |n| n.cancel(TaskId(id), Ticket(ticket))).unwrap();
        }
        let before = w.account(50).credit;
        fill(&mut w, 50);
        let (fee, second) = (FEE / 2 + MORE, IMuster::TaskSpec { kind: 2, units: 1, ..spec(0, &[]) });
        let (mut gas, mut ids) = (0, Vec::new());
        for _ in 0..capacity {
            let (cost, created) = metered(&mut w, who(66), fee, |n| n.create_task(second.clone()));
            assert_eq!(created, "accepted");
            gas += cost;
            ids.push(w.view(|n| n.overview()).tasks);
        }
        let back = w.account(50).credit - before;
        assert_eq!((back, w.view(|n| n.queued())), (FEE * u128::from(capacity), capacity), "all of them are pushed out");
        for &id in &ids {
            let ticket = w.ticket(id);
            let (cost, cancelled) = metered_alone(&mut w, who(66), 0, |n| n.cancel(TaskId(id), Ticket(ticket)));
            assert_eq!(cancelled, "accepted");
            gas += cost;
        }
        assert_eq!(w.view(|n| n.queued()), 0);
        let lost = fee - w.account(66).credit / u128::from(capacity);
        let each = lost * 10_000 / FEE;
        let comes_to = format!("{}.{:02} % of a fee and {} gas for each", each / 100, each % 100, gas / u64::from(capacity));
        priced("the queue emptied", &format!("{capacity} queued tasks pushed out, the better ones cancelled"), &comes_to);
        assert_eq!(each, 100, "2 % of half a fee, and a thousandth");
    }

    /// One stated second of fine-tuning was worth sixty of a GPT task. Now no task counts for less than half the shortest time limit.
    #[test]
    fn a_stated_second_buys_no_rank() {
        let mut w = world(1, 0);
        w.set("alphaMilli", 100_000);
        w.create(5, FEE, spec(0, &[])).unwrap();
        let honest = w.create(5, FEE, spec(0, &[])).unwrap();
        let second = IMuster::TaskSpec { kind: 2, units: 1, ..spec(0, &[]) };
        let half = w.ask(estimateCall { kind: 2, units: 1 });
        assert_eq!((half.estimated, half.timeLimit), (30, 60));
        // The same price per second that the node is held for at most, and not a wei less.
        w.create(6, FEE / 2 - 1, second.clone()).unwrap();
        w.call(who(1), 0, |n| n.submit(TaskId(1), [0; 32])).unwrap();
        assert_eq!(w.node(1).task, honest);
        let mut w = world(1, 0);
        w.create(5, FEE, spec(0, &[])).unwrap();
        w.create(5, FEE, spec(0, &[])).unwrap();
        let sly = w.create(6, FEE / 2 + FEE / 1_000, second).unwrap();
        w.call(who(1), 0, |n| n.submit(TaskId(1), [0; 32])).unwrap();
        assert_eq!(w.node(1).task, sly, "more per second is more");
    }

    /// Two dust tasks a block refused every exit. Now a call that needs settled draws makes eight of them itself, fewer where they are
    /// expensive. Refusing it takes nine tasks in every block, or six that need several models each; four hold one exit in three. Of those
    /// for several nodes two are enough.
    #[test]
    fn keeping_somebody_from_quitting_takes_many_tasks_in_every_block() {
        let held = |per_block: usize, models: &[u64]| -> (u64, u64) {
            let mut w = world(60, 1);
            w.set("alphaMilli", 1_000_000);
            for n in 1..=60 {
                w.call(who(n), 0, |net| net.report_downloaded(ids(vec![901, 902]))).unwrap();
            }
            let (mut refused, mut gas) = (0, 0);
            for round in 0..40u64 {
                for _ in 0..per_block {
                    gas += metered(&mut w, who(66), 60, |n| n.create_task(spec(0, models))).0;
                }
                w.pass(1, 1);
                let victim = 1 + round % 60;
                let (cost, left) = metered(&mut w, who(victim), 0, |n| n.quit());
                assert!(cost < MOST_GAS, "{cost}");
                refused += (left == "DrawsDue") as u64;
                if left == "accepted" {
                    w.pass(1, 86_400);
                    w.drain();
                    let _ = w.join(victim, "RTX 4090", 24, &[901, 902], 400);
                }
                // Each node that runs a task ends it, so that nodes are idle.
                for n in 1..=60u32 {
                    let v = w.node(n);
                    if matches!(v.status, 2..=4) {
                        let _ = w.call(who(n as u64), 0, |net| net.submit(TaskId(v.task), [0; 32]));
                    }
                }
                w.drain();
            }
            (refused, gas / 40)
        };
        for (models, free, more) in [(&[][..], 8, [9, 12]), (&[901, 902][..], 2, [4, 6])] {
            // Now and then a draw is expensive because many tries are rejected.
            assert!(held(free, models).0 <= 1, "{free} tasks of {} models a block hold nobody", models.len());
            for per_block in more {
                let (refused, gas) = held(per_block, models);
                let flood = format!("{per_block} tasks of {} models in every block", models.len());
                priced("quitting refused", &flood, &format!("{refused} of 40 blocks, {gas} gas a block"));
                assert!(gas > 300_000, "{gas}");
                assert!(refused < 20 || gas > 450_000, "most blocks, {refused} of 40, for {gas} gas each");
            }
        }
        // A draw of several nodes is a call's last, so two such tasks are enough. A `dispatch` before the call lets it in.
        let mut w = world(60, 1);
        let (mut refused, mut gas) = (0, 0);
        for _ in 0..40 {
            w.pass(1, 1);
            let mut w = w.clone();
            for _ in 0..2 {
                let three = IMuster::TaskSpec { kind: 0, redundancy: 2, ..spec(0, &[]) };
                let (cost, created) = metered(&mut w, who(66), 180, |n| n.create_task(three));
                assert_eq!(created, "accepted");
                gas += cost;
            }
            w.pass(1, 1);
            refused += u64::from(metered(&mut w, who(1), 0, |n| n.quit()).1 == "DrawsDue");
            w.dispatch(16).unwrap();
            let free = (1..=60).find(|&n| w.node(n).status == 1).unwrap();
            assert_eq!(metered(&mut w, who(free.into()), 0, |n| n.quit()).1, "accepted");
        }
        assert_eq!(refused, 40);
        priced(
            "quitting refused",
            "2 tasks of three nodes in every block",
            &format!("{refused} of 40 blocks, {} gas a block", gas / 40),
        );
    }

    /// Tasks in one call are cheaper to create than one by one, and cost as much to draw. So that they do not pile up for others, none are
    /// created while draws are due that the call does not make itself. A flood is at most what fits one block, and single tasks get in at
    /// any time.
    #[test]
    fn a_flood_of_batches_ends_with_its_block() {
        // The gas of a block of an Arbitrum chain.
        const BLOCK_GAS: u64 = 32_000_000;
        let flood = |made: usize, models: &[u64]| -> [u64; 3] {
            let mut w = world(60, 1);
            for n in 1..=60 {
                w.call(who(n), 0, |net| net.report_downloaded(ids(vec![901, 902]))).unwrap();
            }
            let wave = |w: &mut World| {
                let (mut spent, mut tasks) = (0, 0);
                while spent < BLOCK_GAS {
                    // By `createTask` only those would wait that somebody idle could run; all others are queued at once.
                    let (specs, fees) = (vec![spec(0, models); made], vec![60; made]);
                    let gas = metered_alone(w, who(66), made as u128 * 60, |n| n.create_tasks(specs, &fees, true));
                    assert_eq!(gas.1, "accepted");
                    (spent, tasks) = (spent + gas.0, tasks + made as u64);
                }
                (spent, tasks)
            };
            // The ring's words are cheapest where others have used them.
            wave(&mut w);
            w.drain();
            wave(&mut w);
            w.drain();
            let (spent, tasks) = wave(&mut w);
            w.pass(1, 1);
            // No second wave: eight cheap draws are not enough, and those of several models it does not make at all.
            let specs = vec![spec(0, models); 16];
            let (gas, refused) = metered_alone(&mut w, who(66), 16 * 60, |n| n.create_tasks(specs, &[60; 16], true));
            assert_eq!(refused, "DrawsDue");
            assert!(gas < MOST_GAS, "{gas}");
            // A single task is created all the same, at the usual cost of a call that makes two draws.
            let (gas, created) = metered(&mut w, who(50), FEE, |n| n.create_task(spec(0, &[])));
            assert_eq!(created, "accepted");
            assert!(gas < MOST_GAS, "{gas}");
            // A creator that wants it to start soon makes the draws before it.
            let mut drawing = 0;
            while w.view(|n| n.overview()).pending > 1 {
                drawing += metered_alone(&mut w, who(77), 0, |n| n.dispatch(16)).0;
                w.pass(1, 0);
            }
            [tasks, spent / tasks, drawing / tasks]
        };
        for models in [&[][..], &[901, 902][..]] {
            let ([alone, dear, one], [tasks, cheap, each]) = (flood(1, models), flood(16, models));
            assert!(tasks < 4_095, "the ring is not filled by a block: {tasks}");
            let with = format!("{tasks} tasks of {} models by batches in one block, {cheap} gas each", models.len());
            let comes_to = format!("{each} gas to draw each, where one to a call {alone} tasks take {dear} and {one}");
            priced("a flood of tasks", &with, &comes_to);
            // In hundredths: gas to draw for each gas to create.
            assert!(each * 100 / cheap < 250, "{each} for {cheap}");
        }
    }

    /// A task of two models, created in every block, is a draw that no batch makes: each one sent by itself is refused. A `dispatch` before
    /// it, in the same block, lets it in, and single tasks need not even that. The attacker must create it by a batch of its own: while no
    /// node is idle, `createTask` queues it at once, and it holds up nobody.
    #[test]
    fn batches_are_held_up_only_until_somebody_draws() {
        let mut w = world(60, 1);
        for n in 1..=60 {
            w.call(who(n), 0, |net| net.report_downloaded(ids(vec![901, 902]))).unwrap();
        }
        let batch =
            |w: &mut World| metered_alone(w, who(50), 16 * FEE, |n| n.create_tasks(vec![spec(0, &[]); 16], &[FEE; 16], true));
        let (mut costs, mut refused, mut drawing, mut through) = (0, 0, 0, 0);
        for block in 0..40 {
            let single = vec![spec(0, &[901, 902])];
            let (gas, created) = metered_alone(&mut w, who(66), 60, |n| n.create_tasks(single, &[60], true));
            assert_eq!(created, "accepted");
            costs += gas;
            w.pass(1, 1);
            let (gas, what) = batch(&mut w);
            assert_eq!(what, "DrawsDue");
            refused += gas;
            if block % 2 > 0 {
                assert_eq!(metered(&mut w, who(51), FEE, |n| n.create_task(spec(0, &[]))).1, "accepted");
            } else {
                drawing += metered_alone(&mut w, who(50), 0, |n| n.dispatch(2)).0;
                let (_, what) = batch(&mut w);
                through += u64::from(what == "accepted");
            }
            // Their own draws are no part of it.
            w.pass(1, 1);
            w.drain();
        }
        assert_eq!(through, 20);
        let comes_to = format!(
            "{} gas for each batch refused, or {} for a dispatch before it, with which all are taken",
            refused / 40,
            drawing / 20
        );
        priced("batches held up", &format!("{} gas and a fee a block", costs / 40), &comes_to);
        // The attacker pays in every block. A creator that is held up pays once a batch, less than twice that.
        assert!(drawing / 20 < costs / 40 * 2, "{drawing} {costs}");
    }

    /// Tasks that others hold and queue made an innocent call cost millions: it drew a task of eight models, re-admitted a node and started
    /// two more. Now one budget of reads bounds the work of a call beside its own purpose.
    #[test]
    fn no_call_pays_millions_for_what_others_did() {
        for (sets, per) in [(1u64, 8), (1, 16), (3, 16)] {
            let mut w = World::new();
            w.mem.keep_logs = false;
            w.set("alphaMilli", 100_000);
            let honest = 40u64;
            for n in 1..=honest {
                w.join(n, "RTX 4090", 24, &[], 400).unwrap();
            }
            for _ in 0..honest {
                w.create(50_000, FEE, spec(24, &[])).unwrap();
                w.drain();
            }
            // The attacker's nodes.
            let mut n = 1_000u64;
            for set in 0..sets {
                for i in 0..8u64 {
                    for _ in 0..per {
                        forgetful(&mut w, n, "old card", 8, 5_000_000 + n * 100, 1 + set * 8 + i);
                        n += 1;
                    }
                }
            }
            let set = |s: u64| -> Vec<u64> { (1..=8).map(|i| s % sets * 8 + i).collect() };
            // Two expensive tasks queued, for nodes with 24 GiB, and one Pending for those with 8.
            w.create(66, 2 * FEE, spec(24, &set(1))).unwrap();
            w.create(66, 2 * FEE, spec(24, &set(2))).unwrap();
            w.drain();
            assert_eq!(w.view(|n| n.overview()).queued, 2);
            // A node is held back, because draws were due when its task ended.
            for _ in 0..3 {
                w.create(66, FEE, spec(8, &[])).unwrap();
            }
            w.pass(1, 0);
            let held = w.node(2).task;
            w.call(who(2), 0, |net| net.submit(TaskId(held), [0; 32])).unwrap();
            w.raw(who(9), 0, |m| {
                let mut net = Network::open(m)?;
                net.serve(16);
                net.close();
                Ok(())
            })
            .unwrap();
            w.raw(who(66), FEE, |m| {
                let mut net = Network::open(m)?;
                net.create_task(spec(8, &set(0)))?;
                net.close();
                Ok(())
            })
            .unwrap();
            w.pass(1, 0);
            let victim = w.node(1).task;
            let (gas, done) = metered(&mut w, who(1), 0, |n| n.submit(TaskId(victim), [0; 32]));
            assert_eq!(done, "accepted");
            let left = w.view(|n| n.overview());
            let nodes = sets * 8 * per;
            assert!(left.pending == 0 && left.queued < 2, "it served the others");
            priced(
                "an innocent submit made expensive",
                &format!("{nodes} nodes that held the models and dropped them"),
                &format!("{gas} gas for storage, logs and start"),
            );
            assert!(gas < MOST_GAS, "{gas} with {nodes} hostile nodes");
        }
    }
}

mod errors {
    use crate::help::errors::*;
    use alloy_primitives::B256;
    use muster_model::meter::priced;
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{self, *};

    /// Tasks that nobody can run, whose first never reveals, kept ten honest nodes held for three days. Now a revealed error holds nobody.
    #[test]
    fn tasks_that_nobody_can_run_hold_no_honest_node() {
        const HOURS: u64 = 6;
        let mut w = beside(10, 5);
        w.set("sampleBps", 10_000);
        let (mut paid, mut tasks, mut groups) = (0u128, 0u32, 0u32);
        let mut open: Vec<(u64, u32, u64)> = Vec::new();
        let (mut held, mut samples) = (0usize, 0usize);
        let start = w.mem.now;
        while w.mem.now < start + HOURS * 3_600 {
            let now = w.mem.now;
            open.retain(|&(id, place, closes)| now <= closes || w.send(who(DRIVER), 0, settleCall { id, group: place }).is_err());
            w.dispatch(0).unwrap();
            samples += 10;
            held += (1..=10).filter(|&n| w.node(n).held).count();
            let free = (11..=15).any(|n| w.node(n).status == 1 && w.node(n).parked == 0);
            if !free {
                w.pass(4, 30);
                continue;
            }
            let id = w.create(ATTACKER, 60, sampled(&[PRIVATE])).unwrap();
            tasks += 1;
            paid += 60;
            let node = runner(&mut w, id);
            if node <= 10 {
                commit(&mut w, id, node, ERROR, B256::ZERO).unwrap();
                w.pass(3, 1);
                let (place, members) = called(&mut w, id, node, ATTACKER);
                judged(&mut w, id, place, &members, |_| (ERROR, B256::ZERO));
                continue;
            }
            commit(&mut w, id, node, ERROR, B256::ZERO).unwrap();
            w.pass(3, 1);
            groups += 1;
            let (place, members) = called(&mut w, id, node, ATTACKER);
            judged(&mut w, id, place, &members[1..], |_| (ERROR, B256::ZERO));
            open.push((id, place, w.mem.now + 7_200));
            w.mem.logs.clear();
        }
        check_money(&mut w);
        let lost = paid - owed(&mut w, (11..=15).chain([ATTACKER]));
        assert!(groups >= 20, "{groups}");
        priced(
            "honest nodes held by tasks that nobody can run",
            &format!("five of 15 nodes, {HOURS} hours, {tasks} tasks at the least fee whose first does not reveal"),
            &format!(
                "{held} of {samples} times that an honest node was looked at it was held; {} of the fees lost",
                percent(lost as i128, paid)
            ),
        );
        assert_eq!(held, 0);
    }

    /// Holding a node by an input that nobody can fetch cost gas alone: the fee came back whole. Now the start fee is the price, under
    /// every policy, and each further try costs another.
    #[test]
    fn time_that_came_to_nothing_costs_the_start_fee_under_every_policy() {
        let mut rows = Vec::new();
        for policy in 0..=3u8 {
            let mut w = network(12);
            let fee = FEE;
            set_profile(&mut w, ATTACKER, Profile { least: 3, most: 3, reschedules: 0, ..USUAL });
            let income = w.ask(overviewCall {}).treasuryBalance + w.ask(overviewCall {}).reserve;
            let wanted = IMuster::TaskSpec { gpu: CARD, redundancy: policy, ..spec(0, &[]) };
            let id = created_by(&mut w, ATTACKER, fee, wanted);
            match policy {
                0 => {
                    let node = runner(&mut w, id);
                    w.pass(10, 30);
                    w.send(who(node.into()), 0, reportErrorCall { id, code: 1 }).unwrap();
                }
                1 => {
                    let node = runner(&mut w, id);
                    w.pass(10, 30);
                    commit(&mut w, id, node, ERROR, B256::ZERO).unwrap();
                    w.pass(3, 1);
                    if reveal(&mut w, id, 0, node, ERROR, B256::ZERO).is_err() {
                        let (place, members) = called(&mut w, id, node, node.into());
                        judged(&mut w, id, place, &members, |_| (ERROR, B256::ZERO));
                    }
                }
                _ => {
                    let (place, members) = grouped(&mut w, id);
                    w.pass(10, 30);
                    judged(&mut w, id, place, &members, |_| (ERROR, B256::ZERO));
                }
            }
            let overview = w.ask(overviewCall {});
            assert_eq!(w.account(ATTACKER).credit, fee - fee / 50, "policy {policy}");
            assert_eq!(overview.treasuryBalance + overview.reserve - income, fee / 50);
            check_money(&mut w);
            rows.push(percent((fee - w.account(ATTACKER).credit) as i128, fee));
        }
        priced(
            "nodes' time for an input that nobody can fetch",
            "one task under policy 0, 1, 2 and 3",
            &format!("{} of the fee", rows.join(", ")),
        );
    }
}

mod replicated {
    use crate::help::replicated::*;
    use muster_core::id::TaskId;
    use muster_model::meter::{metered, metered_alone, priced, MOST_GAS};
    use muster_model::refused;
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{self, IMusterEvents as E, *};

    /// A `gpu` with strange bits in its VRAM was another name of the list of all active nodes. For the least fee, such a task started on a
    /// busy node, and the fee of that node's own task was lost. Now there is no such GPU, for tasks, for the owner's list, or to look at.
    #[test]
    fn a_gpu_number_with_strange_bits_is_no_other_name() {
        let mut w = network(3);
        let tasks = busy(&mut w, 3);
        for bits in [0x8000, 0x4000, 0x2000, 0x1000, 0x0400, 0xf000, 0xffe0] {
            for odd in [CARD | bits, CARD & !0xffff | bits] {
                for redundancy in 0..=2 {
                    let task = IMuster::TaskSpec { gpu: odd, redundancy, ..spec(0, &[]) };
                    refused!(w.create(CREATOR, FEE, task), GpuUnknown(odd));
                }
                for listed in [true, false] {
                    refused!(w.send(OWNER, 0, listGpuGroupCall { group: odd, listed }), GpuUnknown(odd));
                }
                for class in 0..10 {
                    assert_eq!(w.ask(idleNodesCall { group: odd, class, from: 0, count: 256 }).total, 0);
                    assert_eq!(w.ask(activeNodesCall { group: odd, class, from: 0, count: 256 }).total, 0);
                }
            }
        }
        let there: u32 = (0..10).map(|class| w.ask(activeNodesCall { group: CARD, class, from: 0, count: 256 }).total).sum();
        assert_eq!(there, 3, "the card itself has them");
        w.pass(1, 0);
        w.dispatch(16).unwrap();
        for (task, node) in tasks {
            assert_eq!(task_of(&mut w, node), task);
        }
        check_money(&mut w);
    }

    /// A varied network: 240 idle nodes of 120 cards of different VRAM, and a listed card of twelve, each with a list of 32 models of its own.
    /// Gives it and the first of those.
    fn varied(seed: u64) -> (World, u32) {
        let mut w = world(0, 1);
        w.set("groupFee", 0);
        for n in 1..=240u64 {
            w.join(n, "other", (1 + (n - 1) / 2 * 7) as u16, &[], 400).unwrap();
        }
        for n in 241..=252u64 {
            let list: Vec<u64> = (1..=32).map(|m| n * 100 + m).collect();
            holder(&mut w, n, "card", 900, &list);
        }
        let card = w.node(241).gpu;
        w.send(OWNER, 0, listGpuGroupCall { group: card, listed: true }).unwrap();
        w.pass(seed + 1, 0);
        w.events();
        (w, 241)
    }

    /// The cost of having a group judged, maybe where a draw of three is due, and what comes of the call. Its three members are held, since
    /// images that are only alike keep their commitments open. One is slashed, and each begins a queued task of eight models.
    fn settled(seed: u64, beside_a_draw: bool) -> Option<(u64, String)> {
        let (mut w, _) = varied(5000 + seed);
        w.set("openMost", 1);
        w.set("slashImages", 1);
        for n in 253..=264 {
            w.join(n, "third", 800, &[], 1600).unwrap();
        }
        let gpu = w.node(253).gpu;
        let judged = created(&mut w, FEE, IMuster::TaskSpec { gpu, ..image(0) });
        let (place, members) = group_of(&mut w, judged)?;
        let image_of = |n: u32| if n == members[1] { picture(5) } else { picture(7) };
        for &n in &members {
            let hash = commitment(judged, n, 0, image_of(n), salt(judged, n));
            w.send(who(n.into()), 0, commitCall { id: judged, commitment: hash }).unwrap();
            assert!(w.node(n).held);
        }
        for &n in &members[1..] {
            let call = revealCall { id: judged, group: place, node: n, kind: 0, value: image_of(n), salt: salt(judged, n) };
            w.send(who(DRIVER), 0, call).unwrap();
            assert!(w.node(n).held);
        }
        for _ in 0..9 {
            created(&mut w, TOKEN, IMuster::TaskSpec { gpu, ..spec(0, &[]) });
        }
        for m in 0..3 {
            let models: Vec<u64> = (1..=8).map(|i| 3000 + m * 10 + i).collect();
            created(&mut w, TOKEN, IMuster::TaskSpec { gpu, models, ..spec(0, &[]) });
        }
        assert_eq!(w.ask(overviewCall {}).queued, 3);
        w.pass(1, 90_000);
        w.dispatch(16).unwrap();
        if beside_a_draw {
            w.create(CREATOR, FEE, IMuster::TaskSpec { models: (2001..=2008).collect(), ..alike(0) }).unwrap();
        }
        w.pass(1, 0);
        let found = metered_alone(&mut w, who(999), 0, |net| net.settle(TaskId(judged), place));
        if found.1 == "accepted" {
            assert!(members.iter().all(|&n| task_of(&mut w, n) > judged && !w.node(n).held), "each begins a task");
            assert!(w.ask(overviewCall {}).burnt > 0);
        }
        w.events();
        Some(found)
    }

    /// An operator's call that only ended its own task made the due draw of three and started them. Then it started three queued tasks on
    /// reserved nodes that were not drawn: 1.33 million gas. Now one budget bounds all tries of a draw, and nodes that are not drawn come
    /// back in later calls: 910,000 gas at most, of storage, logs and start (docs/generated/proof.md).
    #[test]
    fn an_innocent_submit_pays_for_one_draw_of_three_and_no_more() {
        let mine: Vec<u64> = (2001..=2008).collect();
        let (mut dear, mut formed) = ([0; 3], 0);
        for seed in 0..30u64 {
            for (kind, worst) in dear.iter_mut().enumerate() {
                let (mut w, first) = varied(seed * 3 + kind as u64);
                let card = w.node(first).gpu;
                let gpu = w.node(1).gpu;
                // An innocent operator runs a task; queued tasks for its card, or the listed one, need eight models.
                let own = created(&mut w, TOKEN, IMuster::TaskSpec { gpu, flags: 1, ..spec(0, &[]) });
                let runner = (1..=2).find(|&i| task_of(&mut w, i) == own).unwrap();
                let queued = |gpu: u32, m: u64| {
                    let models: Vec<u64> = (1..=8).map(|i| 3000 + m * 10 + i).collect();
                    IMuster::TaskSpec { gpu, models, ..spec(0, &[]) }
                };
                let wanted = IMuster::TaskSpec { models: mine.clone(), ..alike(0) };
                let id = if kind == 0 {
                    for m in 0..2 {
                        created(&mut w, TOKEN, queued(gpu, m));
                    }
                    w.create(CREATOR, FEE, wanted).unwrap()
                } else {
                    let mut tasks = Vec::new();
                    for _ in 0..12 {
                        let id = created(&mut w, TOKEN, IMuster::TaskSpec { gpu: card, ..spec(0, &[]) });
                        tasks.push((id, (first..first + 12).find(|&i| task_of(&mut w, i) == id).unwrap()));
                    }
                    let id = created(&mut w, FEE, wanted);
                    for m in 0..3 {
                        created(&mut w, TOKEN, queued(card, m));
                    }
                    for &task in &tasks[..3] {
                        submit(&mut w, task);
                    }
                    assert_eq!(nodes_with(&mut w, 3).len(), 3);
                    tasks[3..].iter().for_each(|&task| idled(&mut w, task));
                    id
                };
                w.pass(1, 0);
                let call = TaskId(own);
                let (gas, out) = match kind {
                    2 => metered(&mut w, who(999), 0, |_| Ok(())),
                    _ => metered(&mut w, who(runner.into()), 0, |net| net.submit(call, [1; 32])),
                };
                assert_eq!(out, "accepted");
                formed += u32::from(group_of(&mut w, id).is_some());
                *worst = gas.max(*worst);
                // Nor is the rest too much for later callers.
                for n in 0..6 {
                    let (gas, _) = metered(&mut w, who(990 + n), 0, |_| Ok(()));
                    *worst = gas.max(*worst);
                }
            }
        }
        assert!(formed > 30, "{formed} of 90 were formed");
        let [two, three, none] = dear;
        println!("{two} with idle ones, {three} with three reserved, {none} of that the draw and what follows");
        priced(
            "an innocent submit made expensive by a draw of three",
            "eight models, nodes that hold 32 others, three reserved ones",
            &format!("{} gas for storage, logs and start", two.max(three)),
        );
        assert!(dear.iter().all(|&gas| gas < MOST_GAS), "{dear:?}");
    }

    /// A caller that had a group judged made the due draw of three before, and started a queued task on each of the three members that the
    /// group held: 1.29 million gas. Now it makes no draw of several nodes.
    #[test]
    fn an_innocent_settle_pays_for_no_draw_of_three() {
        let all = |beside_a_draw| (0..30).filter_map(|seed| settled(seed, beside_a_draw)).collect::<Vec<_>>();
        let (alone, beside) = (all(false), all(true));
        assert!(
            alone.len() > 10 && alone.iter().all(|(_, out)| out == "accepted") && beside.iter().all(|(_, out)| out == "DrawsDue")
        );
        let worst = alone.into_iter().chain(beside).map(|(gas, _)| gas).max().unwrap();
        priced(
            "an innocent settle made expensive",
            "three held members, of which one is slashed; each begins a queued task of eight models",
            &format!("{worst} gas for storage, logs and start"),
        );
        assert!(worst < MOST_GAS, "{worst}");
    }

    /// Each call that has a draw of three to make is spent on it: nodes that it frees or re-admits are held back. Holding up a freed node
    /// takes as many such draws due in a block as there are calls in it, the attacker's own included: one call more brings the node back.
    /// The attacker must create them by a contract: while no node is idle, a task that it signs itself is queued at once and holds up
    /// nobody.
    #[test]
    fn who_holds_a_freed_node_up_pays_a_task_for_three_for_every_call_of_anyone() {
        const ATTACKER: u64 = 70;
        let mut w = network(20);
        w.set("holdTime", 0);
        let tasks = busy(&mut w, 20);
        let wanted = created(&mut w, TOKEN, spec(0, &[]));
        let fee = w.ask(estimateCall { kind: 1, units: 1 }).leastFee * 3;
        let mut his = Vec::new();
        let mut due = |w: &mut World, draws: usize| {
            w.mem.by_contract = true;
            for _ in 0..draws {
                his.push(w.create(ATTACKER, fee, alike(0)).unwrap());
            }
            w.mem.by_contract = false;
        };
        // One for the call of the node, two for the attacker's own.
        due(&mut w, 3);
        w.pass(1, 0);
        let (_, node) = tasks[0];
        submit(&mut w, tasks[0]);
        due(&mut w, 2);
        for _ in 0..8 {
            assert_eq!(
                (w.node(node).parked, w.ask(pendingTasksCall { from: 0, count: 9 }).len()),
                (1, 2),
                "every call was spent"
            );
            w.pass(1, 0);
            due(&mut w, 2);
        }
        assert_eq!(w.node(node).parked, 1);
        // A call that the attacker has not paid for.
        submit(&mut w, tasks[1]);
        assert_eq!(task_of(&mut w, node), wanted);
        check_money(&mut w);

        // The attacker's cost, if nobody runs its tasks: gas, and the start fee of each.
        w.pass(1, 0);
        w.dispatch(16).unwrap();
        let before = w.ask(overviewCall {}).treasuryBalance;
        for &id in &his {
            let ticket = w.ticket(id);
            w.send(who(ATTACKER), 0, cancelCall { id, ticket }).unwrap();
        }
        assert_eq!(w.ask(overviewCall {}).treasuryBalance - before, fee / 50 * his.len() as u128);
        check_money(&mut w);
        priced(
            "holding a freed node up",
            "as many draws of three due in every block as there are calls in it",
            "gas and the start fee of a task for three for every call of anyone",
        );
    }

    /// With a draw delay of 0, the creator of a single task took a candidate away, at once, from draws of three that were due and whose
    /// hash was known. Now the single task stands behind them.
    #[test]
    fn with_no_delay_a_single_task_does_not_go_before_draws_that_are_due() {
        let mut w = network(30);
        w.set("drawDelay", 0);
        let ids: Vec<u64> = (0..4).map(|_| w.create(CREATOR, FEE, alike(0)).unwrap()).collect();
        w.pass(1, 0);
        w.events();
        let single = w.create(70, TOKEN, spec(0, &[])).unwrap();
        assert!(group_of(&mut w, ids[3]).is_none(), "draws are due after what the call could make");
        assert!(!w.events().iter().any(|e| matches!(e, E::TaskStarted(t) if t.id == single)));
        let pending = w.ask(pendingTasksCall { from: 0, count: 256 });
        assert_eq!(pending.last().map(|t| t.id), Some(single));
        w.drain();
        let order: Vec<u64> = w
            .events()
            .iter()
            .filter_map(|e| match e {
                E::GroupFormed(g) => Some(g.id),
                E::TaskStarted(t) => Some(t.id),
                _ => None,
            })
            .collect();
        assert_eq!(order.last(), Some(&single));
        // Where none is due, it starts at once.
        let next = w.create(70, TOKEN, spec(0, &[])).unwrap();
        assert!(w.events().iter().any(|e| matches!(e, E::TaskStarted(t) if t.id == next)));
    }
}

mod rated {
    use crate::help::rated::*;
    use alloy_primitives::B256;
    use muster_core::id::{ModelId, NodeId, TaskId};
    use muster_core::record::{Escrow, Order, TargetSearch, TASK_MODELS};
    use muster_model::meter::{metered, metered_alone, priced, MOST_GAS};
    use muster_model::refused;
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::host::{offset, Host};
    use muster_protocol::layout::{profile, profile_slot};
    use muster_protocol::store::node::NodeHandle;
    use muster_protocol::store::task::{ModelSet, Task};
    use muster_protocol::IMuster::{self, IMusterEvents as E, *};

    /// While the ring is full, no group is judged that might need a place in it. Nothing is lost, and the first draw lets it go on.
    #[test]
    fn a_full_ring_delays_a_judgement_and_no_more() {
        let mut w = network(9);
        w.set("drawDelay", 2);
        set_profile(&mut w, CREATOR, of_size(3));
        let id = w.create(CREATOR, FEE, rated()).unwrap();
        w.pass(2, 0);
        w.dispatch(1).unwrap();
        let (place, members) = group_of(&mut w, id).expect("formed");
        for &n in &members {
            commit(&mut w, id, n, ANSWER, value(1)).unwrap();
        }
        let single = IMuster::TaskSpec { redundancy: 0, ..rated() };
        let least = w.ask(estimateCall { kind: 1, units: 1 }).leastFee;
        for _ in 0..4_095 {
            w.create(ATTACKER, least, single.clone()).unwrap();
        }
        for &n in &members {
            reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
        }
        refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), TooManyPending(4_095u32));
        check_money(&mut w);
        w.drain();
        w.events();
        w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
        assert_eq!(settled(&mut w).outcome, 0);
        check_money(&mut w);
        priced(
            "judgements of rated groups delayed by a full ring",
            "4,095 tasks created within one draw delay, at the least fee each",
            "until they are drawn; nothing is lost",
        );
    }

    /// A task that nobody can run, for its input is shown to nobody. Honest nodes report an error, which counts for no rating where there
    /// is no majority. Otherwise a few tasks, whose fees come back whole, would ruin everybody's.
    #[test]
    fn tasks_that_cannot_be_run_leave_ratings_alone() {
        let mut w = network(12);
        (1..=12).for_each(|n| rate(&mut w, n));
        let ratings = |w: &mut World| (1..=12).map(|n| w.node(n).rating).collect::<Vec<_>>();
        let before = ratings(&mut w);
        set_profile(&mut w, ATTACKER, Profile { reschedules: 8, algorithm: 0, ..of_size(9) });
        let (tasks, mut groups) = (3, 0);
        for _ in 0..tasks {
            let id = created_by(&mut w, ATTACKER, FEE, rated());
            while let Some((place, members)) = group_of(&mut w, id) {
                groups += 1;
                for &n in &members {
                    commit(&mut w, id, n, ERROR, B256::ZERO).unwrap();
                }
                for &n in &members {
                    reveal(&mut w, id, place, n, ERROR, B256::ZERO).unwrap();
                }
                w.pass(1, 1);
                w.dispatch(16).unwrap();
            }
            let s = settled(&mut w);
            assert_eq!((s.outcome, s.refund), (3, left_after(9)));
        }
        assert_eq!((groups, ratings(&mut w)), (9 * tasks, before));
        check_money(&mut w);
    }

    /// Nine answers of nine honest nodes make no majority where none is right, and their reader pays only start fees: 450 tokens of work
    /// for one, where only the last group cost any. Now each does.
    #[test]
    fn work_without_a_right_answer_costs_a_start_fee_for_each_group() {
        let mut w = seasoned(12);
        set_profile(&mut w, ATTACKER, Profile { reschedules: 8, algorithm: 0, ..of_size(9) });
        let before = w.ask(overviewCall {}).treasuryBalance;
        let (groups, cost) = without_right_answer(&mut w, |_| false, 1);
        assert_eq!(w.ask(overviewCall {}).treasuryBalance - before, cost, "to protocol income");
        check_money(&mut w);
        let worth = u128::from(groups) * FEE;
        priced(
            "work of honest nodes for an application whose tasks have no right answer",
            "a task of nine, 8 reschedules, an application of no node",
            &format!("{groups} groups, {:.1} tokens of unpaid work for each that it pays", worth as f64 / cost as f64),
        );
        // Fifty for each of the first group, and a little more of the others, whose start fees are parts of the remaining fee.
        assert_eq!((groups, cost), (9, FEE - left_after(9)));
        assert!(worth > 50 * cost && worth < 55 * cost, "{worth} {cost}");
    }

    /// The best rated task of a scope goes first also where it lacks nodes: cheaper ones that are queued wait behind it. One node that is paused
    /// makes nine of eight.
    #[test]
    fn a_task_that_lacks_one_node_keeps_cheaper_ones_queued() {
        let mut waited = Vec::new();
        let mut cost = 0;
        for attacked in [false, true] {
            let mut w = network(9);
            set_profile(&mut w, CREATOR, of_size(3));
            set_profile(&mut w, ATTACKER, of_size(9));
            let mut tasks = busy(&mut w, 8);
            let idle = (1..=9).find(|&n| w.node(n).status == 1).unwrap();
            w.send(who(idle.into()), 0, pauseCall {}).unwrap();
            if attacked {
                // A hundredth more for each node.
                let id = created_by(&mut w, ATTACKER, 9 * (TOKEN + TOKEN / 100), rated());
                assert!(w.ticket(id) > 0);
            }
            let id = created_by(&mut w, CREATOR, 3 * TOKEN, rated());
            assert!(w.ticket(id) > 0);
            let start = w.mem.now;
            let single = IMuster::TaskSpec { redundancy: 0, ..rated() };
            while group_of(&mut w, id).is_none() && w.mem.now < start + 21_600 {
                // There is other work, and each node does its own in a minute.
                while w.ask(overviewCall {}).queued + w.ask(overviewCall {}).pending < 8 {
                    w.create(90, TOKEN / 10, single.clone()).unwrap();
                }
                for (task, node) in &mut tasks {
                    w.pass(1, 8);
                    let view = w.ask(runningTaskCall { number: *node });
                    if view.status == 3 && view.id != id {
                        *task = view.id;
                        w.send(who(u64::from(*node)), 0, submitCall { id: *task, resultDigest: value(1) }).unwrap();
                    }
                    w.dispatch(16).unwrap();
                }
            }
            waited.push(w.mem.now - start);
            if attacked {
                let before = w.ask(overviewCall {}).treasuryBalance;
                let all = w.ask(queuesCall { from: 0, count: 256 })._1;
                for q in all {
                    for t in w.ask(queuedTasksCall { queue: q.queue, from: 0, count: 256 })._1 {
                        let ticket = w.ticket(t.id);
                        let _ = w.send(who(ATTACKER), 0, cancelCall { id: t.id, ticket });
                    }
                }
                cost = w.ask(overviewCall {}).treasuryBalance - before;
            }
            check_money(&mut w);
        }
        println!("{waited:?}");
        priced(
            "a cheaper rated task kept queued by one that lacks a node",
            &format!(
                "a paused node, and the start fee of one task of nine, {:.2} tokens, in six hours",
                cost as f64 / TOKEN as f64
            ),
            &format!("{} s instead of {} s", waited[1], waited[0]),
        );
        assert!(waited[0] < 600 && waited[1] >= 21_600, "{waited:?}");
    }

    /// A profile can change between creation, draw and judgement. The group is never larger than its fee was for, and members that have
    /// worked are paid as ever. The creator's profile at the judgement says how often the task begins again.
    #[test]
    fn a_profile_changed_at_any_time_costs_only_who_changed_it() {
        for (first, second, reschedules) in [(9, 3, 0), (3, 9, 8), (5, 4, 1)] {
            let mut w = network(12);
            set_profile(&mut w, CREATOR, Profile { reschedules: 8 - reschedules, ..of_size(first) });
            let id = w.create(CREATOR, FEE, rated()).unwrap();
            set_profile(&mut w, CREATOR, Profile { reschedules: 8 - reschedules, ..of_size(second) });
            w.pass(1, 0);
            w.dispatch(1).unwrap();
            let (place, members) = group_of(&mut w, id).expect("formed");
            assert_eq!(members.len(), usize::from(first.min(second)));
            for &n in &members {
                commit(&mut w, id, n, ANSWER, value(n as u8)).unwrap();
            }
            let (&last, others) = members.split_last().unwrap();
            for &n in others {
                reveal(&mut w, id, place, n, ANSWER, value(n as u8)).unwrap();
            }
            // The creator knows by now that there is no majority.
            set_profile(&mut w, CREATOR, Profile { reschedules, targeting: 0, ..of_size(9) });
            reveal(&mut w, id, place, last, ANSWER, value(last as u8)).unwrap();
            let s = settled(&mut w);
            assert_eq!((s.outcome, s.startFee), (if reschedules == 0 { 2 } else { 4 }, FEE / 50));
            check_money(&mut w);
        }
    }

    /// A call that only ends its operator's own task makes the due draw of nine, or a part of it. The draw meets nodes of many GPU groups,
    /// models that nobody has, a target to be computed anew, and words never written before. The next caller, whoever it is, makes the
    /// expensive rest.
    #[test]
    fn an_innocent_submit_pays_for_one_part_of_a_draw_of_nine_and_no_more() {
        // The cost of each call that made a part, until the group was formed.
        let play_out = |hoarders: u64, others: u64, seed: u64, worn: bool| {
            let mut w = scattered(hoarders);
            for n in 0..others {
                w.join(hoarders + 1 + n, "other", (901 - (n + 1) * 7 % 900) as u16, &[], 400).unwrap();
            }
            w.pass(seed * 1_000 + 1, 0);
            set_profile(&mut w, CREATOR, Profile { algorithm: 0, ..of_size(9) });
            if worn {
                // The words of groups, by groups; those of nodes, as the last task of each would have left them.
                for _ in 0..12 {
                    let id = w.create(CREATOR, FEE, IMuster::TaskSpec { models: six(80_000), ..rated_image(0, 1) }).unwrap();
                    w.drain();
                    let (place, members) = group_of(&mut w, id).expect("formed");
                    play(&mut w, id, place, &members, |_| picture(5));
                    w.pass(1, 1);
                }
            }
            let own: Vec<u64> =
                (0..6).map(|_| created_by(&mut w, 90, TOKEN, IMuster::TaskSpec { flags: 1, ..spec(0, &[]) })).collect();
            w.drain();
            let issued = w.ask(overviewCall {}).nodesIssued;
            let runners: Vec<u32> = own.iter().map(|&id| (1..=issued).find(|&n| task_of(&mut w, n) == id).unwrap()).collect();
            if worn {
                for n in (1..=issued).filter(|n| !runners.contains(n)) {
                    let handle = NodeHandle::load(&w.mem, NodeId(n));
                    let (mut ids, mut order) = ([ModelId(0); TASK_MODELS], handle.order(&w.mem));
                    ids.iter_mut().zip(wanted(80_000)).for_each(|(id, model)| *id = ModelId(model));
                    let models = ModelSet { ids, len: TASK_MODELS as u8 };
                    if !handle.node.running() {
                        order = Order { id: TaskId(1), models: models.len, model: ids[0], ..order };
                        let escrow = Escrow { creator: who(CREATOR), fee: 1, ..Escrow::default() };
                        handle.assign(&mut w.mem, &Task { escrow, order, models });
                        handle.set_order(&mut w.mem, &order);
                    }
                }
            }
            // A period ends with it.
            set_profile(&mut w, CREATOR, Profile { targeting: 1, ..of_size(9) });
            let at = offset(profile_slot(&w.mem, who(CREATOR)), profile::TARGET_SEARCH);
            w.mem.put(at, &TargetSearch { groups: 300, successes: 150, members: 2_700, ..TargetSearch::START });
            w.events();
            w.create(CREATOR, FEE, IMuster::TaskSpec { models: six(90_000), flags: 1, ..rated_image(0, 1) }).unwrap();
            w.pass(1, 0);
            let (mut parts, mut formed) = (Vec::new(), false);
            for (id, runner) in own.into_iter().zip(runners) {
                let due = w.ask(overviewCall {}).pending > 0 && !formed;
                let (gas, out) = metered(&mut w, who(runner.into()), 0, |net| net.submit(TaskId(id), [1; 32]));
                assert_eq!(out, "accepted");
                if due {
                    parts.push(gas);
                }
                formed |= w.events().iter().any(|event| matches!(event, E::GroupFormed(_)));
            }
            check_money(&mut w);
            (parts, formed)
        };
        let dearest = |worn: bool, seeds: u64| {
            let (mut dear, mut formed) = ([0; 6], [0; 6]);
            for (hoarders, others) in [(38, 0), (40, 0), (24, 12), (16, 20), (12, 120)] {
                for seed in 0..seeds {
                    let (parts, there) = play_out(hoarders, others, seed, worn);
                    formed[parts.len() - 1] += u32::from(there);
                    dear.iter_mut().zip(parts).for_each(|(dear, gas)| *dear = gas.max(*dear));
                }
            }
            (dear, formed)
        };
        let ((dear, formed), (dear_new, formed_new)) = (dearest(true, 30), dearest(false, 30));
        println!("{dear:?} {formed:?} {dear_new:?} {formed_new:?}");
        priced(
            "an innocent submit made expensive by a draw of nine",
            "a pool of up to 32 nodes of many GPU groups that hold 32 models, six others wanted",
            &format!(
                "{} gas for storage, logs and start, or {} where none of them ever had a task",
                dear.iter().max().unwrap(),
                dear_new.iter().max().unwrap()
            ),
        );
        assert!(formed[1..].iter().sum::<u32>() > 10 && formed_new[2..].iter().sum::<u32>() > 10, "{formed:?} {formed_new:?}");
        // The programs' computation is not in it: 160,000 for a target, in the first part, and less for the rest.
        assert!(dear.iter().chain(&dear_new).all(|&gas| gas < MOST_GAS - 100_000), "{dear:?} {dear_new:?}");
    }

    /// A group that is expensive to form is not formed by the call of a node that wants to leave, which is refused then. A call to join is
    /// refused too while any draw by ratings is due. A `dispatch` before it, in the same block, makes the way free.
    #[test]
    fn dear_groups_keep_somebody_from_quitting_only_until_somebody_draws() {
        let mut w = network(60);
        set_profile(&mut w, ATTACKER, of_size(9));
        let spec = |block: u64| IMuster::TaskSpec { models: six(90_000 + block * 10), ..rated_image(0, 1) };
        let (blocks, mut costs, mut refused, mut drawing) = (5, 0, 0, 0);
        for block in 0..blocks {
            let (gas, created) = metered(&mut w, who(ATTACKER), FEE, |net| net.create_task(spec(block)));
            assert_eq!(created, "accepted");
            costs += gas;
            w.pass(1, 0);
            let leaver = (1..=60).find(|&n| w.node(n).status == 1).expect("one that is idle");
            let (gas, left) = metered(&mut w, who(leaver.into()), 0, |net| net.quit());
            assert_eq!(left, "DrawsDue");
            refused += gas;
            refused!(w.join(100 + block, "RTX 4090", 24, &[], 400), DrawsDue(1u32));
            let (gas, drawn) = metered_alone(&mut w, who(DRIVER), 0, |net| net.dispatch(16));
            assert_eq!(drawn, "accepted");
            drawing += gas;
            assert_eq!(metered(&mut w, who(leaver.into()), 0, |net| net.quit()).1, "accepted");
            w.join(100 + block, "RTX 4090", 24, &[], 400).unwrap();
            check_money(&mut w);
        }
        priced(
            "somebody kept from quitting by dear groups",
            &format!("{} gas and the fee for nine nodes a block while nine are idle that never had a task", costs / blocks),
            &format!(
                "{} gas for each quit refused or {} for a dispatch before it in the same block with which it is taken",
                refused / blocks,
                drawing / blocks
            ),
        );
        // The caller that draws pays at most this many times the creator's cost, and the nine that have work then are paid for it.
        assert!(drawing < 16 * costs, "{drawing} {costs}");
    }
}
