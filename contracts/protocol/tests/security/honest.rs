//! Nobody attacks: some nodes fail or are late, networks are young, large or full.

mod single {
    use crate::help::single::*;
    use muster_core::id::{NodeId, TaskId, Ticket};
    use muster_core::record::CALL_MODELS;
    use muster_model::proof;
    use muster_model::world::*;
    use muster_protocol::host::Host;

    /// 8: The fee of a task that was aborted in the queue, or evicted from it, was not given back. Here every way in which
    /// a task ends unrun gives the fee back, less the start fee where that is due.
    #[test]
    fn w08_every_end_refunds() {
        let mut w = world(1, 0);
        w.create(4, FEE, spec(0, &[])).unwrap();
        let cancelled = w.create(5, FEE, spec(0, &[])).unwrap();
        w.create(6, FEE, spec(0, &[])).unwrap();
        w.create(7, FEE, spec(0, &[])).unwrap();
        assert_eq!(w.account(7).credit, FEE, "evicted: all of it");
        let ticket = w.ticket(cancelled);
        w.call(who(5), 0, |n| n.cancel(TaskId(cancelled), Ticket(ticket))).unwrap();
        assert_eq!(w.account(5).credit, FEE / 100 * 98);
        w.call(who(1), 0, |n| n.report_error(TaskId(1), 0)).unwrap();
        assert_eq!(w.account(4).credit, FEE / 100 * 98, "error: less the start fee");
        w.pass(1, 60);
        w.call(who(9), 0, |n| n.poke(NodeId(1))).unwrap();
        w.pass(1, 121);
        w.call(who(9), 0, |n| n.expire(NodeId(1), TaskId(3))).unwrap();
        assert_eq!((w.account(6).credit, w.account(9).credit), (FEE / 100 * 98, FEE / 100 * 2));
        let treasury = w.view(|n| n.overview()).treasuryBalance;
        assert_eq!(treasury + [4, 5, 6, 7, 9].map(|n| w.account(n).credit).iter().sum::<u128>() + 400 * TOKEN, w.paid_in);
    }

    /// 12: Loops over nodes, groups, tasks and models grew until ending a task no longer fitted a block. Here storage
    /// accesses do not grow with nodes, models, groups or queue, nor with what others declare.
    #[test]
    fn w12_no_call_costs_more_in_a_large_network() {
        let cost = |nodes: u64, sizes: u64, queued: u64, declared: u64| -> [u64; 3] {
            let mut w = World::new();
            w.set("drawDelay", 0);
            w.set("alphaMilli", 1_000_000);
            let all: Vec<u64> = (1..=declared).collect();
            for n in 1..=nodes {
                let vram = 24 + (n % sizes) as u16;
                let (now, later) = all.split_at(all.len().min(CALL_MODELS));
                w.join(n, &format!("card {}", n % 7), vram, now, 400 + n as u128 % 900).unwrap();
                for models in later.chunks(CALL_MODELS) {
                    w.call(who(n), 0, |net| net.report_downloaded(ids(models.to_vec()))).unwrap();
                }
            }
            // One that could run the tasks queued below, but takes none.
            w.join(nodes + 1, "large", 908, &[], 400).unwrap();
            w.call(who(nodes + 1), 0, |n| n.pause()).unwrap();
            let count = |w: &mut World, f: &mut dyn FnMut(&mut World)| {
                let before = u64::from(w.mem.reads());
                f(w);
                let after = u64::from(w.mem.reads());
                after - before
            };
            let mut most = [0; 3];
            for _ in 0..20 {
                w.pass(1, 1);
                let creating = count(&mut w, &mut |w| {
                    w.create(nodes + 5, FEE, spec(24, &[1])).unwrap();
                });
                most[0] = most[0].max(creating);
            }
            for i in 0..queued {
                w.create(nodes + 5, FEE + i as u128, spec(900 + (i % 9) as u16, &[])).unwrap();
            }
            for _ in 0..5 {
                let creating = count(&mut w, &mut |w| {
                    w.create(nodes + 5, FEE, spec(901, &[])).unwrap();
                });
                most[1] = most[1].max(creating);
            }
            let busy: Vec<u32> = (1..=nodes as u32).filter(|&n| w.node(n).status == 2).collect();
            for n in busy {
                let id = w.node(n).task;
                most[2] = most[2].max(count(&mut w, &mut |w| submit(w, n as u64, id)));
            }
            most
        };
        let (small, large) = (cost(40, 1, 3, 4), cost(3_000, 256, 2_000, 32));
        for (call, small, large) in [
            ("createTask, drawn at once", small[0], large[0]),
            ("createTask, queued", small[1], large[1]),
            ("submit", small[2], large[2]),
        ] {
            proof("words", &[("call", &call), ("small", &small), ("large", &large)]);
        }
        for (s, l) in small.iter().zip(large) {
            assert!(l <= 400 && l <= 3 * s + 60, "{small:?} {large:?}");
        }
    }

    /// 18: A subtraction of blocks underflowed on a young chain. Here nothing underflows, from the very first block and
    /// second on.
    #[test]
    fn w18_a_young_chain_works() {
        for delay in [0, 1, 64] {
            let mut w = World::new();
            w.set("drawDelay", delay);
            (w.mem.block, w.mem.now) = (0, 1);
            w.join(1, "A", 24, &[], 400).unwrap();
            let id = w.create(5, FEE, spec(0, &[])).unwrap();
            for _ in 0..=70 {
                w.pass(1, 0);
                w.dispatch(4).unwrap();
            }
            assert_eq!((w.node(1).task, w.node(1).status), (id, 2), "delay {delay}");
            submit(&mut w, 1, id);
        }
    }
}

mod errors {
    use crate::help::errors::*;
    use alloy_primitives::B256;
    use muster_core::validation::payment;
    use muster_model::meter::priced;
    use muster_model::validated::*;
    use muster_model::world::*;

    use muster_protocol::IMuster::{IMusterEvents as E, *};

    /// The rest of a sampled task's fee once its validators were called.
    const LEFT: u128 = FEE - START_FEE;

    /// Nobody attacks, and some first nodes cannot run their task. The reserve had a leak, and 44 and 63 of 301 groups were paid short. Now
    /// a group whose first has failed takes nothing out of the reserve, and all others find their pay.
    #[test]
    fn honest_errors_leave_the_reserve_to_those_who_answer() {
        const TASKS: u32 = 800;
        const FUND: i128 = 60 * FEE as i128;
        let mut rows = Vec::new();
        for per_mille in [0u64, 50, 100] {
            let mut w = network(20);
            fund(&mut w, 60);
            let mut dice = Dice(5);
            let (mut groups, mut short, mut failed, mut worst) = (0, 0, 0, 0);
            for _ in 0..TASKS {
                let id = created(&mut w, FEE, sampled(&[]));
                let node = runner(&mut w, id);
                let (kind, what) = if dice.below(1_000) < per_mille { (ERROR, B256::ZERO) } else { (ANSWER, value(1)) };
                commit(&mut w, id, node, kind, what).unwrap();
                w.pass(3, 1);
                if reveal(&mut w, id, 0, node, kind, what).is_err() {
                    groups += 1;
                    let (place, members) = called(&mut w, id, node, node.into());
                    let before = owed(&mut w, 1..=20);
                    judged(&mut w, id, place, &members, |n| if n == node { (kind, what) } else { (ANSWER, value(1)) });
                    let paid = owed(&mut w, 1..=20) - before;
                    if kind == ERROR {
                        failed += 1;
                        assert_eq!(paid, LEFT, "two share what is left of the fee");
                    } else {
                        short += u32::from(paid < 3 * payment(LEFT, 1_000));
                    }
                }
                worst = worst.min(reserve(&mut w) - FUND);
                w.pass(5, 10);
                w.mem.logs.clear();
            }
            check_money(&mut w);
            let change = reserve(&mut w) - FUND;
            // A fee's standard deviation of 0.49 for each task: four of them.
            let bound = (4.0 * 0.49 * f64::from(TASKS).sqrt()) as i128 * FEE as i128;
            assert!(change > -bound, "{per_mille}: {change}");
            assert_eq!(short, 0, "{per_mille}: of {groups}");
            assert!(groups > 50 && (failed > 0) == (per_mille > 0), "{groups} groups, {failed} failed");
            rows.push(format!("{failed} of {groups}"));
        }
        let share = LEFT as f64 / 2.0 / payment(LEFT, 1_000) as f64;
        priced(
            "groups paid short by honest nodes' errors",
            &format!("0, 5 and 10 % of first nodes fail, {TASKS} tasks each; their groups: {}", rows.join(", ")),
            &format!("none whose first answered; the two others of one that failed get {share:.2} of a payment each"),
        );
    }

    /// Nobody attacks: half of the nodes hold a model that an application wants, the others cannot load it and say so. All of these were kicked out
    /// for good, after 1,788 tasks for three.
    #[test]
    fn honest_nodes_without_a_model_stay_in_the_network() {
        for policy in [1u8, 2] {
            let mut w = world(0, 1);
            for n in 1..=20u64 {
                w.join(n, "RTX 4090", 24, if n <= 10 { &[42] } else { &[] }, 400).unwrap();
            }
            w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: true }).unwrap();
            if policy == 1 {
                w.set("sampleBps", 10_000);
            }
            let says = |n: u32| if n <= 10 { (ANSWER, value(1)) } else { (ERROR, B256::ZERO) };
            let mut failed = 0;
            for _ in 0..150 {
                let wanted = if policy == 1 { sampled(&[42]) } else { for_three(&[42]) };
                let id = w.create(CREATOR, FEE, wanted).unwrap();
                let (place, members) = if policy == 1 {
                    let node = runner(&mut w, id);
                    assert!(node <= 10, "holders are preferred");
                    commit(&mut w, id, node, ANSWER, value(1)).unwrap();
                    w.pass(3, 1);
                    called(&mut w, id, node, node.into())
                } else {
                    grouped(&mut w, id)
                };
                failed += members.iter().filter(|&&n| n > 10).count();
                w.events();
                judged(&mut w, id, place, &members, says);
                for event in w.events() {
                    match event {
                        E::ScoreRecorded(s) => assert!(s.node <= 10 && s.score > 0),
                        E::MemberJudged(m) if m.node > 10 => assert_eq!((m.verdict, m.paid), (4, 0)),
                        E::NodeKickedOut(_) | E::NodeSlashed(_) => panic!("{event:?}"),
                        _ => {}
                    }
                }
                w.pass(1, 1);
                w.dispatch(0).unwrap();
            }
            assert!(failed > 20, "{failed}");
            assert!((11..=20).all(|n| (w.node(n).status, w.node(n).scores) == (1, 0)));
            check_money(&mut w);
        }
    }
}

mod replicated {
    use crate::help::replicated::*;
    use muster_model::meter::{metered, priced, MOST_GAS};
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{IMusterEvents as E, *};

    /// Three reserved nodes of the only listed card among idle ones of other cards. A draw that met none of them queued the task, and the
    /// three called it up again in the same call: nobody ever saw it queued, and its creator could not cancel it. Now the three need not be
    /// met: the first draw starts it.
    #[test]
    fn a_task_does_not_go_round_because_its_reserved_nodes_are_not_met() {
        let (mut draws, mut dear) = (Vec::new(), 0);
        for others in [60u64, 250, 1000] {
            let mut all = 0;
            for seed in 0..10u64 {
                let mut w = network(3);
                let tasks = busy(&mut w, 3);
                for n in 0..others {
                    w.join(100 + n, "cheap", 24, &[], 400).unwrap();
                }
                w.pass(1 + seed * 5000, 0);
                let id = created(&mut w, FEE, alike(0));
                assert_eq!(w.ask(overviewCall {}).queued, 1);
                for &t in &tasks {
                    submit(&mut w, t);
                }
                assert_eq!(nodes_with(&mut w, 3).len(), 3);
                w.events();
                while group_of(&mut w, id).is_none() {
                    w.pass(1, 0);
                    let (gas, _) = metered(&mut w, who(999), 0, |_| Ok(()));
                    dear = dear.max(gas);
                    all += 1;
                    assert!(!w.events().iter().any(|e| matches!(e, E::TaskQueued(_))), "it stays where it is");
                }
            }
            draws.push(f64::from(all) / 10.0);
        }
        priced(
            "three reserved nodes not met",
            "60, 250 and 1,000 idle nodes of other cards",
            &format!("{draws:?} draws, each {dear} gas at most"),
        );
        assert_eq!(draws, [1.0; 3]);
        assert!(dear < MOST_GAS);
    }
}

mod rated {
    use crate::help::rated::*;
    use muster_core::id::TaskId;
    use muster_model::meter::{metered, priced, MOST_GAS};
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{self, IMusterEvents as E, *};

    /// A judgement frees a node that has a queued task drawn, and gives its own task to another group: two places in the ring, of which only
    /// one may be free. Were the second taken for granted, the ring would take itself for empty, and every Pending task and its fee be lost.
    #[test]
    fn a_judgement_does_not_overrun_the_ring() {
        let mut w = network(9);
        w.set("holdTime", 0);
        set_profile(&mut w, CREATOR, of_size(3));
        let id = created_by(&mut w, CREATOR, FEE, rated());
        let (place, members) = group_of(&mut w, id).expect("formed");
        for (&n, says) in members[..2].iter().zip(1..) {
            commit(&mut w, id, n, ANSWER, value(says)).unwrap();
        }
        set_profile(&mut w, ATTACKER, of_size(9));
        let queued = created_by(&mut w, ATTACKER, FEE, rated());
        assert!(w.ticket(queued) > 0, "eight are idle, and it takes nine");
        // The third lets its deadline pass: the judgement frees it.
        w.pass(1, 10_000);
        reveal(&mut w, id, place, members[0], ANSWER, value(1)).unwrap();
        let single = IMuster::TaskSpec { redundancy: 0, ..rated() };
        for _ in 0..4_094 {
            w.create(ATTACKER, TOKEN, single.clone()).unwrap();
        }
        assert_eq!(w.ask(overviewCall {}).pending, 4_094, "one place is free");
        check_money(&mut w);
        reveal(&mut w, id, place, members[1], ANSWER, value(2)).unwrap();
        let pending = w.ask(overviewCall {}).pending;
        priced(
            "Pending tasks lost by a judgement",
            "a ring with one place free, a queued task that lacks one node, a group without a majority",
            &format!("{pending} of 4,095 tasks are Pending still"),
        );
        assert_eq!(pending, 4_095);
        check_money(&mut w);
    }

    /// The cost of judging a group of nine whose members, all late, are free again by it. The first three of them each begin a queued task,
    /// of eight `models` or of none.
    fn judgement_of_nine(models: bool) -> u64 {
        let mut w = world(0, 1);
        w.set("groupFee", 0);
        for n in 1..=9 {
            hoard(&mut w, n, "card", 24);
        }
        let card = w.node(1).gpu;
        w.send(OWNER, 0, listGpuGroupCall { group: card, listed: true }).unwrap();
        set_profile(&mut w, CREATOR, of_size(9));
        // So that no word is written for the first time that a network in use has written before.
        let before = created_by(&mut w, CREATOR, FEE, IMuster::TaskSpec { gpu: card, models: six(80_000), ..rated() });
        let (place, members) = group_of(&mut w, before).expect("formed");
        play(&mut w, before, place, &members, |_| value(1));
        let id = created_by(&mut w, CREATOR, FEE, IMuster::TaskSpec { gpu: card, flags: 1, ..rated() });
        let (place, members) = group_of(&mut w, id).expect("formed");
        for m in 0..9 {
            let models = if models { wanted(90_000 + m * 10) } else { Vec::new() };
            created_by(&mut w, CREATOR, TOKEN, IMuster::TaskSpec { gpu: card, models, ..spec(0, &[]) });
        }
        assert_eq!(w.ask(overviewCall {}).queued, 9);
        w.pass(1, 90_000);
        w.events();
        let (gas, out) = metered(&mut w, who(999), 0, |net| net.settle(TaskId(id), place));
        assert_eq!(out, "accepted");
        assert!(w.events().iter().any(|e| matches!(e, E::GroupSettled(_))));
        let began = members.iter().filter(|&&n| task_of(&mut w, n) != id && task_of(&mut w, n) > 0).count();
        println!("models {models}: {gas} gas");
        assert_eq!(began, 3);
        check_money(&mut w);
        gas
    }

    /// A judgement frees up to nine members that were late. Three find queued work in the same call, of somebody that only has the group
    /// judged, and the others in later ones.
    #[test]
    fn a_judgement_of_nine_stays_below_the_most_that_a_call_may_cost() {
        let (plain, dear) = (judgement_of_nine(false), judgement_of_nine(true));
        priced(
            "a judgement of nine made dear by queued work",
            "nine queued tasks, without models or of eight each, for nine members that it frees, who hold 32 others",
            &format!("{plain} and {dear} gas for storage, logs and start"),
        );
        assert!(dear < MOST_GAS, "{plain} {dear}");
    }

    /// Forty equal nodes at eight VRAM sizes, each of which holds 32 models that others lack: their lists cost so many reads that most draws
    /// of nine stay undecided. A task is queued by chance where sixteen in a row do.
    #[test]
    fn draws_of_nine_that_stay_undecided_where_nodes_hold_many_models() {
        let (tasks, mut undecided) = (100u32, 0u32);
        for seed in 0..10 {
            let mut w = scattered(40);
            w.pass(seed * 1_000 + 1, 0);
            set_profile(&mut w, CREATOR, of_size(9));
            for k in 0..u64::from(tasks) / 10 {
                let wanted = IMuster::TaskSpec { models: six(80_000 + k), ..rated_image(0, 1) };
                let id = w.create(CREATOR, FEE, wanted).unwrap();
                w.events();
                w.drain();
                undecided += w.events().iter().filter(|e| matches!(e, E::TaskRedrawn(_))).count() as u32;
                let (place, members) = group_of(&mut w, id).expect("formed");
                play(&mut w, id, place, &members, |_| picture(5));
                w.pass(1, 1);
            }
        }
        let share = f64::from(undecided) / f64::from(undecided + tasks);
        priced(
            "draws of nine that stay undecided without an attacker",
            "forty nodes at eight VRAM sizes that hold 32 models each; tasks for nine that require six others",
            &format!("{:.0} % of the draws, so one task in {:.0} is queued by chance", share * 100.0, share.powi(16).recip()),
        );
        assert!((0.5..0.7).contains(&share), "{share}");
    }
}
