//! Attacks by one node, or by its operator with it alone.

mod single {
    use crate::help::single::*;
    use muster_core::id::{NodeId, TaskId};
    use muster_core::word::Word;
    use muster_model::refused;
    use muster_model::world::*;
    use muster_protocol::admin;
    use muster_protocol::host::Host;
    use muster_protocol::IMuster::{self, IMusterEvents as E};

    /// A node whose task ends while draws are due is held back, whatever it was about to do, and is back at work (or
    /// gone) as soon as the next calls have made the draws.
    #[test]
    fn a_node_freed_while_draws_are_due_is_held_back_until_they_are_made() {
        for leaving in [false, true] {
            let mut w = world(8, 1);
            let first: Vec<u64> = (0..3).map(|_| w.create(50, FEE, spec(0, &[])).unwrap()).collect();
            w.drain();
            let busy = (1..=8u32).find(|&n| w.node(n).task == first[0] && w.node(n).status == 2).unwrap();
            if leaving {
                w.call(who(busy as u64), 0, |n| n.quit()).unwrap();
            }
            for _ in 0..4 {
                w.create(50, FEE, spec(0, &[])).unwrap();
            }
            w.pass(1, 0);
            submit(&mut w, busy as u64, first[0]);
            assert_eq!(w.node(busy).status, if leaving { 4 } else { 1 });
            let again = w.call(who(busy as u64), 0, |n| n.submit(TaskId(first[0]), [1; 32]));
            assert_eq!(named(again), "TaskNotRunning", "what has ended cannot be ended again");
            let at_work = |w: &mut World| w.view(|n| n.weight_of(NodeId(busy), &spec(0, &[])).unwrap().eligible);
            assert!(!at_work(&mut w));
            w.dispatch(16).unwrap();
            assert_eq!(w.node(busy).status, u8::from(!leaving));
            assert_eq!(at_work(&mut w), !leaving);
        }
    }

    /// 6: A group with an aborted member could never be validated, so its other members waited and went unpaid. Here a task
    /// has one node and ends by itself, and a group is judged without members whose deadline has passed.
    #[test]
    fn w06_a_task_never_waits_for_another_member() {
        let mut w = world(3, 0);
        let ids: Vec<u64> = (0..3).map(|_| w.create(5, FEE, spec(0, &[])).unwrap()).collect();
        w.pass(1, 121);
        let node = |w: &mut World, id| (1..=3u32).find(|&n| w.node(n).task == id).unwrap();
        let (late, others) = (node(&mut w, ids[0]), [node(&mut w, ids[1]), node(&mut w, ids[2])]);
        w.call(who(9), 0, |n| n.expire(NodeId(late), TaskId(ids[0]))).unwrap();
        for (n, id) in others.into_iter().zip(&ids[1..]) {
            w.call(who(9), 0, |net| net.expire(NodeId(n), TaskId(*id))).unwrap();
        }
        assert_eq!(w.account(5).credit + w.account(9).credit, 3 * FEE);
    }

    /// 16: A queued task got the first free nodes in the order of their places, which could be chosen by pausing and
    /// resuming. Here after any pausing and resuming every equal node comes equally often.
    #[test]
    fn w16_places_in_lists_do_not_matter() {
        let mut w = world(9, 0);
        for n in [3, 1, 9, 3, 3] {
            w.call(who(n), 0, |n| n.pause()).unwrap();
            w.call(who(n), 0, |n| n.resume()).unwrap();
        }
        let mut seen = [0f64; 10];
        let mut draws = 0.0;
        for i in 0..20_000u64 {
            let hash = w.mem.keccak(&i.to_be_bytes());
            if let Some(n) = foretell(&mut w, hash, i, &spec(0, &[])) {
                seen[n as usize] += 1.0;
                draws += 1.0;
            }
        }
        let chi: f64 = seen[1..].iter().map(|o| (o - draws / 9.0).powi(2) / (draws / 9.0)).sum();
        assert!(chi < 26.12, "chi-square {chi} at 8 degrees");
    }

    /// 20: A node that was kicked out got its stake back and could join again at once with a clean record. Here a node
    /// that was kicked out does not come back, and quitting in time does not clear a bad record.
    #[test]
    fn w20_a_bad_record_cannot_be_shed() {
        let mut w = world(2, 0);
        let score = |w: &mut World, times: u32| {
            w.call(who(9), 0, |net| {
                (0..times).for_each(|_| net.record_score(NodeId(1), 0));
                Ok(())
            })
            .unwrap();
        };
        score(&mut w, 49);
        w.call(who(1), 0, |n| n.quit()).unwrap();
        w.join(1, "B", 24, &[], 400).unwrap();
        assert_eq!((w.node(1).scores, w.node(1).longTerm), (49, 0));
        score(&mut w, 1);
        assert_eq!(w.node(1).status, 0);
        for _ in 0..3 {
            refused!(w.join(1, "A", 24, &[], 400), KickedOut(who(1)));
            w.pass(1, 1_000_000);
        }
        assert_eq!(w.withdraw(1).unwrap(), 800 * TOKEN, "the stake comes back all the same");
    }

    /// 21: Nodes declared GPU, VRAM and models that nobody checked. Here a node with a false declaration fails the
    /// tasks that it gets by it, and is soon left out.
    #[test]
    fn w21_a_false_declaration_costs_its_author() {
        let mut w = World::new();
        w.set("drawDelay", 0);
        w.set("limitMin", 1);
        w.join(1, "claims to be large", 960, &[1, 2, 3], 400).unwrap();
        for _ in 0..2 {
            let id = w.create(5, FEE, IMuster::TaskSpec { kind: 2, ..spec(900, &[1]) }).unwrap();
            while w.node(1).status == 1 {
                w.pass(1, 0);
                w.dispatch(1).unwrap();
            }
            w.pass(1, 3);
            w.call(who(9), 0, |n| n.expire(NodeId(1), TaskId(id))).unwrap();
        }
        assert!(w.node(1).excluded);
        assert_eq!(w.account(1).credit, 0);
        w.join(2, "large", 960, &[1], 400).unwrap();
        let id = w.create(5, FEE, spec(900, &[1])).unwrap();
        assert_eq!(w.node(2).task, id);
        assert!(w.events().iter().any(|e| matches!(e, E::NodeExcluded(x) if x.node == 1)));
    }

    /// Where the delay was lowered, tasks behind the ring's head had known hashes, which a pause could move. Now it waits until the ring is empty.
    #[test]
    fn no_draw_is_known_before_its_turn() {
        let mut w = world(8, 64);
        w.create(50, FEE, spec(0, &[])).unwrap();
        refused!(w.raw(OWNER, 0, |m| admin::set_parameter(m, parameter("drawDelay"), Word::from(1))), TasksPending(1u32));
    }

    /// Idle nodes with long lists of models, entered for model 7 in the last word, which they have dropped.
    fn hollow(nodes: u64) -> World {
        let mut w = world(0, 1);
        w.mem.keep_logs = false;
        for n in 1..=nodes {
            forgetful(&mut w, n, "RTX 4090", 24, n * 100, 7);
        }
        w
    }

    /// Nodes whose long lists match only in their last word make the tries among them give up sooner.
    #[test]
    fn long_model_lists_do_not_make_a_draw_dearer_without_end() {
        let mut w = hollow(40);
        let most = (0..50u64)
            .map(|i| {
                let hash = w.mem.keccak(&i.to_be_bytes());
                let before = w.mem.reads();
                foretell(&mut w, hash, i, &spec(0, &[7]));
                let after = w.mem.reads();
                after - before
            })
            .max()
            .unwrap();
        assert!(most < 270, "{most}");
    }

    /// A node that comes back may start a task, so it does not come back in a call that has made an expensive draw, but in the next.
    #[test]
    fn nobody_is_re_admitted_by_a_call_that_has_made_a_dear_draw() {
        for models in [&[][..], &[7]] {
            let mut w = hollow(40);
            w.join(41, "other", 24, &[], 400).unwrap();
            let gpu = w.node(41).gpu;
            let own = w.create(60, FEE, IMuster::TaskSpec { gpu, ..spec(0, &[]) }).unwrap();
            w.drain();
            for models in [&[][..], &[], &[], models] {
                w.create(60, FEE, spec(0, models)).unwrap();
            }
            w.pass(1, 0);
            // Its own call makes two of the draws; it is held back until the others are made.
            w.call(who(41), 0, |net| net.submit(TaskId(own), [0; 32])).unwrap();
            assert_eq!((w.view(|n| n.overview()).pending, w.node(41).parked), (2, 1));
            w.call(who(9), 0, |_| Ok(())).unwrap();
            assert_eq!((w.view(|n| n.overview()).pending, w.node(41).parked), (0, models.len() as u8), "{models:?}");
            w.call(who(9), 0, |_| Ok(())).unwrap();
            assert_eq!(w.node(41).parked, 0);
        }
    }

    /// Two operators and their start fees: one that let a task time out earns nothing by expiring it, nor one that queued a task by ending
    /// it.
    #[test]
    fn nobody_earns_by_what_he_failed_to_do() {
        let mut w = world(1, 0);
        let id = w.create(5, FEE, spec(0, &[])).unwrap();
        let before = w.view(|n| n.overview()).treasuryBalance;
        w.pass(1, 121);
        w.call(who(1), 0, |n| n.expire(NodeId(1), TaskId(id))).unwrap();
        assert_eq!((w.account(1).credit, w.view(|n| n.overview()).treasuryBalance - before), (0, FEE / 50));
    }
}

mod errors {
    use crate::help::errors::*;
    use alloy_primitives::B256;
    use muster_model::meter::priced;
    use muster_model::refused;
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{self, IMusterEvents as E, *};
    use std::collections::BTreeMap;

    /// A node that reports an error at once is idle while all others are busy, and was given every new task. Now it rests, and no call
    /// shortens that. In a busy network it takes one task each minute, which costs its creator the start fee, and the node its earnings of
    /// that time.
    #[test]
    fn who_reports_errors_at_once_takes_one_task_a_minute() {
        const MINUTES: u64 = 20;
        let mut w = network(10);
        let lazy = 10u32;
        // All others are busy for hours, and others' tasks come in every ten seconds.
        let long = IMuster::TaskSpec { kind: 2, units: 7_200, ..spec(0, &[]) };
        for _ in 0..10 {
            let id = created(&mut w, 100 * TOKEN, long.clone());
            if runner(&mut w, id) == lazy {
                w.send(who(lazy.into()), 0, submitCall { id, resultDigest: value(1) }).unwrap();
            }
        }
        while w.node(lazy).status == 2 || (1..10).any(|n| w.node(n).status != 2) {
            let id = task_of(&mut w, lazy);
            if id > 0 {
                w.send(who(lazy.into()), 0, submitCall { id, resultDigest: value(1) }).unwrap();
            }
            if (1..10).any(|n| w.node(n).status != 2) {
                created(&mut w, 100 * TOKEN, long.clone());
            }
        }
        let (earned, income) = (w.account(lazy.into()).credit, w.ask(overviewCall {}).treasuryBalance);
        let (mut created_ones, mut taken) = (0u32, 0u32);
        let start = w.mem.now;
        w.events();
        while w.mem.now < start + MINUTES * 60 {
            w.create(CREATOR, TOKEN, spec(0, &[])).unwrap();
            created_ones += 1;
            w.pass(5, 5);
            w.dispatch(16).unwrap();
            let id = task_of(&mut w, lazy);
            if id > 0 {
                taken += 1;
                let view = w.ask(runningTaskCall { number: lazy });
                let until = view.deadline - u64::from(view.timeLimit) + 60;
                // Neither a poke nor a pause shortens it, before the error or after it.
                let (before, after) = (taken % 4 == 1, taken % 4 == 3);
                if before {
                    w.send(who(lazy.into()), 0, pauseCall {}).unwrap();
                }
                w.send(who(lazy.into()), 0, reportErrorCall { id, code: 1 }).unwrap();
                let view = w.node(lazy);
                assert_eq!((view.status, view.parked, view.parkedUntil), (if before { 3 } else { 1 }, 1, until));
                if !before {
                    refused!(w.send(who(DRIVER), 0, pokeCall { node: lazy }), NothingToPoke(lazy));
                }
                if after {
                    w.send(who(lazy.into()), 0, pauseCall {}).unwrap();
                }
                if before || after {
                    refused!(w.send(who(lazy.into()), 0, resumeCall {}), WrongStatus(lazy, 3u8));
                }
            }
            if w.node(lazy).status == 5 {
                w.send(who(lazy.into()), 0, resumeCall {}).unwrap();
            }
            w.pass(5, 5);
            w.dispatch(16).unwrap();
        }
        let cost = w.ask(overviewCall {}).treasuryBalance - income;
        assert_eq!(cost, u128::from(taken) * TOKEN / 50, "queued ones that were pushed out have their whole fee back");
        assert_eq!(w.account(lazy.into()).credit, earned, "and earns nothing");
        assert!(u64::from(taken) <= MINUTES + 1 && u64::from(taken) >= MINUTES / 2, "{taken}");
        check_money(&mut w);
        priced(
            "a node that reports errors instead of working",
            &format!(
                "all others busy for {MINUTES} minutes, {created_ones} new tasks, all of which were its where it did not rest"
            ),
            &format!(
                "{taken} tasks, {:.2} a minute, that cost their creators {} of the fee each; it earns nothing",
                f64::from(taken) / MINUTES as f64,
                percent((cost / u128::from(taken)) as i128, TOKEN)
            ),
        );
    }

    /// How it goes for an hour where one node of twelve commits to an error at once in each of its groups, and all others work for 40 s: a task
    /// comes so often. Gives the groups that it was in, those of the others on average, and all.
    fn beside_hidden_errors(policy: u8, every: u64) -> (u32, f64, u32) {
        const LAZY: u32 = 12;
        const WORK: u64 = 40;
        let mut w = network(LAZY.into());
        set_profile(&mut w, CREATOR, Profile { least: 3, most: 3, algorithm: 0, ..USUAL });
        let (start, mut begun) = (w.mem.now, BTreeMap::new());
        let (mut groups, mut judged, mut settled, mut income) = ([0u32; LAZY as usize + 1], 0u32, 0u32, 0u128);
        let mut next = start;
        while w.mem.now < start + 3_600 {
            let waiting = |w: &mut World| w.ask(overviewCall {}).queued + w.ask(overviewCall {}).pending;
            while next <= w.mem.now && waiting(&mut w) < 4 {
                w.create(CREATOR, 3 * TOKEN, IMuster::TaskSpec { redundancy: policy, ..for_three(&[]) }).unwrap();
                next += every;
            }
            w.pass(2, 5);
            w.dispatch(16).unwrap();
            for group in w.ask(groupsCall { from: 1, count: 256 })._1.into_iter().filter(|group| group.id > 0) {
                let id = group.id;
                let members: Vec<_> = group.members.iter().filter(|member| member.node > 0).collect();
                assert_eq!(members.len(), 3);
                let mut open = 0;
                for member in &members {
                    let since = *begun.entry((id, member.node)).or_insert(w.mem.now);
                    match member.stage {
                        stage::RUNNING if member.node == LAZY => commit(&mut w, id, LAZY, ERROR, B256::ZERO).unwrap(),
                        stage::RUNNING if w.mem.now >= since + WORK => commit(&mut w, id, member.node, ANSWER, value(1)).unwrap(),
                        stage::COMMITTED => {}
                        _ => open += 1,
                    }
                }
                let committed = members.iter().all(|member| member.stage == stage::COMMITTED);
                for member in members.iter().filter(|_| open == 0 && committed) {
                    let (kind, what) = if member.node == LAZY { (ERROR, B256::ZERO) } else { (ANSWER, value(1)) };
                    reveal(&mut w, id, group.group, member.node, kind, what).unwrap();
                }
            }
            for event in w.events() {
                match event {
                    E::MemberJudged(m) => {
                        groups[m.node as usize] += 1;
                        judged += 1;
                        assert_eq!((m.node == LAZY, m.verdict), if m.node == LAZY { (true, 4) } else { (false, 1) });
                        assert_eq!(m.paid > 0, m.node != LAZY);
                        income += m.paid;
                    }
                    E::GroupSettled(g) => {
                        settled += 1;
                        assert_eq!((g.outcome, g.refund), (0, 0), "two agree");
                    }
                    E::ScoreRecorded(s) => assert!(s.node != LAZY),
                    E::NodeRated(r) => assert!(r.node != LAZY && r.right),
                    _ => {}
                }
            }
        }
        assert_eq!(judged, 3 * settled);
        assert_eq!(w.account(LAZY.into()).credit, 0, "it earns nothing");
        // Of each group that it was in a third of the fee goes to the reserve.
        let spoilt = u128::from(groups[LAZY as usize]) * TOKEN;
        assert_eq!((w.ask(overviewCall {}).reserve, income), (spoilt, 3 * TOKEN * u128::from(settled) - spoilt));
        check_money(&mut w);
        let others = groups[1..LAZY as usize].iter().sum::<u32>();
        (groups[LAZY as usize], f64::from(others) / f64::from(LAZY - 1), settled)
    }

    /// A member of a group hides its error like an answer until all have committed, so the contract cannot have it rest. Where tasks always
    /// wait, a node that commits to errors at once is in more groups than working nodes. It earns nothing. The creator has the answer of the
    /// two others, and pays the third part of the fee all the same.
    #[test]
    fn who_hides_errors_in_groups_is_in_more_of_them_where_tasks_wait_and_earns_nothing() {
        let mut told = Vec::new();
        for (policy, every) in [(2, 0), (2, 30), (3, 0), (3, 30)] {
            let (its, others, all) = beside_hidden_errors(policy, every);
            let traffic = if every == 0 { "tasks always wait".into() } else { format!("a task each {every} s") };
            println!("policy {policy}, {traffic}: {its} of {all} groups, others {others:.1}");
            told.push(format!("policy {policy}, {traffic}: in {its} of {all} groups, others in {others:.1} on average"));
            assert!(all > 50, "{all}");
            // Where others are idle, its share is a draw's.
            let most = if every == 0 { 4.0 } else { 1.25 };
            let least = if every == 0 { 2.0 } else { 0.75 };
            assert!((least..most).contains(&(f64::from(its) / others)), "{its} {others}");
            assert!(its < all, "{its} of {all}");
        }
        priced(
            "a member of groups that hides errors instead of working",
            "one node of twelve for an hour, beside others that work for 40 s",
            &format!("it earns nothing, and a third of each fee goes to the reserve; {}", told.join("; ")),
        );
    }
}

mod sampled {
    use crate::help::sampled::*;
    use alloy_primitives::B256;

    use muster_core::id::TaskId;
    use muster_model::meter::{metered_alone, priced, MOST_GAS};
    use muster_model::refused;
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{self, IMusterEvents as E, *};

    /// A called node that sat on a sampled task of its own kept the group shut for as long as nobody had that validated: 20 hours, and its
    /// members held. Now the group does without it as soon as its own task waits for nothing but a call of its validators.
    #[test]
    fn a_called_node_that_sits_on_its_own_task_keeps_a_group_shut_for_a_sample_window_at_most() {
        const SITTER: u32 = 12;
        const PRIVATE: u64 = 777;
        let mut w = network(11);
        w.join(SITTER.into(), "RTX 4090", 24, &[PRIVATE], 400).unwrap();
        w.set("sampleBps", 10_000);
        let window: u64 = w.ask(parameterCall { which: parameter("sampleWindow") }).value.to();
        let least = w.ask(estimateCall { kind: 1, units: 1 }).leastFee;
        let own = created_by(&mut w, ATTACKER, least, wanted(&[PRIVATE]));
        assert_eq!(task_of(&mut w, SITTER), own, "who holds the model is preferred");
        commit(&mut w, own, SITTER, ERROR, B256::ZERO).unwrap();
        let since = w.mem.now;
        // Others' tasks until it is called to one.
        let waiting = |w: &mut World| loop {
            let id = created(w, FEE, wanted(&[]));
            let node = runner(w, id);
            commit_as(w, id, node, 1);
            let (place, members) = called(w, id, node);
            for &n in members[1..].iter().filter(|&&n| n != SITTER) {
                commit_as(w, id, n, 1);
            }
            if members.contains(&SITTER) {
                return (id, place, members);
            }
            for &n in &members {
                reveal(w, id, place, n, ANSWER, value(1)).unwrap();
            }
        };
        let (id, place, members) = waiting(&mut w);
        let formed = w.mem.now;
        refused!(reveal(&mut w, id, place, members[0], ANSWER, value(1)), NotOpen(id, place));
        // To the second.
        w.pass(1, since + window - w.mem.now);
        refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), NotOpen(id, place));
        w.pass(1, 1);
        // Not if its validators have been called: it begins as soon as they are drawn.
        let mem = w.mem.clone();
        w.send(who(DRIVER), 0, validateCall { id: own, node: SITTER }).unwrap();
        refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), NotOpen(id, place));
        w.mem = mem;
        w.events();
        w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
        assert!(group_of(&mut w, id).is_some(), "the others have not revealed yet");
        assert_eq!(w.ask(groupCall { place }).opens, w.mem.now, "their time begins now");
        let shut = w.mem.now - formed;
        for &n in members.iter().filter(|&&n| n != SITTER) {
            reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
        }
        let told: Vec<(u8, u128)> = w
            .events()
            .iter()
            .filter_map(|e| if let E::MemberJudged(m) = e { (m.node == SITTER).then_some((m.verdict, m.paid)) } else { None })
            .collect();
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].1, w.node(SITTER).scores), (0, 1));
        // Called again, it keeps nobody waiting.
        let (id, place, members) = waiting(&mut w);
        let formed = w.mem.now;
        w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
        let again = w.mem.now - formed;
        for &n in members.iter().filter(|&&n| n != SITTER) {
            reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
        }
        assert_eq!((w.node(SITTER).scores, again), (2, 0));
        // Its own task goes on as ever, and it does not run the task that it was called to.
        w.pass(1, 1);
        w.send(who(DRIVER), 0, validateCall { id: own, node: SITTER }).unwrap();
        for _ in 0..20 {
            w.pass(3, 1);
            w.dispatch(16).unwrap();
        }
        assert_eq!((task_of(&mut w, SITTER), group_of(&mut w, own).is_some()), (0, true));
        check_money(&mut w);
        priced(
            "a group kept shut by a called node that sits on its own sampled task",
            "its own task at the least fee, which nobody has validated",
            &format!(
                "{shut} s, at most the {window} s from its own commitment, and {again} s each time after; a score of 0 for each"
            ),
        );
        assert!(shut <= window);
    }

    /// Somebody settles a group whose three members have withheld. Each of them is slashed out of the network while it runs a task of eight
    /// models of its own, which is refunded, beside draws that are due: of tasks of so many models each.
    fn three_slashed_out_beside(due: &[u64], seed: u64) -> (u64, String) {
        let mut w = world(0, 1);
        w.set("groupFee", 0);
        w.set("slashImages", 1);
        w.set("sampleBps", 10_000);
        w.pass(seed * 7, 0);
        // Each has a GPU group of its own.
        for n in 1..=40u64 {
            w.join(n, &format!("card{n}"), (1 + (n - 1) * 24) as u16, &[], 400).unwrap();
        }
        let id = created(&mut w, FEE, IMuster::TaskSpec { kind: 0, redundancy: 1, flags: 1, ..spec(0, &[]) });
        let node = runner(&mut w, id);
        commit(&mut w, id, node, ANSWER, picture(7)).unwrap();
        let (place, members) = called(&mut w, id, node);
        assert_eq!(members.len(), 3);
        for &n in &members[1..] {
            commit(&mut w, id, n, ANSWER, picture(7)).unwrap();
        }
        for (i, &n) in (0u64..).zip(&members) {
            let gpu = w.node(n).gpu;
            let models = (1..=8).map(|m| 3_000 + i * 10 + m).collect();
            let own = created_by(&mut w, 160 + i, TOKEN, IMuster::TaskSpec { gpu, models, flags: 1, ..spec(0, &[]) });
            assert_eq!(task_of(&mut w, n), own);
        }
        // A draw of such a task looks through sixteen lists for each model.
        for (n, model) in (1_000..).zip((5_001..=5_008).flat_map(|model| [model; 16])) {
            forgetful(&mut w, n, "old card", 1, 5_000_000 + n * 100, model);
        }
        w.pass(100, 90_000);
        w.dispatch(16).unwrap();
        for (by, &models) in (170..).zip(due) {
            let models: Vec<u64> = (5_001..=5_000 + models).collect();
            w.create(by, TOKEN, IMuster::TaskSpec { flags: 1, ..spec(0, &models) }).unwrap();
        }
        w.pass(1, 0);
        let (gas, out) = metered_alone(&mut w, who(199), 0, |net| net.settle(TaskId(id), place));
        if out == "accepted" {
            assert_eq!(members.iter().filter(|&&n| w.node(n).status == 0).count(), 3);
            check_money(&mut w);
        }
        (gas, out)
    }

    #[test]
    fn three_slashed_out_at_once_stay_below_the_most_that_a_call_may_cost() {
        let (mut worst, mut played) = (0, 0);
        // It makes cheap draws, and none of several models.
        let due: [(&[u64], &str); 7] = [
            (&[], "accepted"),
            (&[1], "accepted"),
            (&[0; 4], "accepted"),
            (&[1, 1], "DrawsDue"),
            (&[8], "DrawsDue"),
            (&[1, 8], "DrawsDue"),
            (&[8, 8], "DrawsDue"),
        ];
        for ((due, expected), seed) in due.into_iter().flat_map(|case| (0..4).map(move |seed| (case, seed))) {
            let (gas, out) = three_slashed_out_beside(due, seed);
            assert_eq!(out, expected, "{due:?}");
            (worst, played) = (gas.max(worst), played + 1);
        }
        priced(
            "three slashed out at once",
            &format!("up to four draws due, three running tasks of eight models refunded; {played} networks of 41 GPU groups"),
            &format!("{worst} gas for storage, logs and start"),
        );
        assert!(worst < MOST_GAS - 100_000, "{worst}");
    }

    /// A node that is called while busy can see the group's task, and its time counts from the end of its own task.
    #[test]
    fn the_time_of_a_called_node_counts_from_its_own_start() {
        let mut w = all_sampled(3);
        let id = created(&mut w, TOKEN, wanted(&[]));
        let first = runner(&mut w, id);
        let own = created(&mut w, TOKEN, spec(0, &[]));
        let busy = runner(&mut w, own);
        commit_as(&mut w, id, first, 1);
        let (place, _) = called(&mut w, id, first);
        let group = w.ask(groupCall { place });
        let stage_of = |group: &IMuster::GroupView, n: u32| group.members.iter().find(|m| m.node == n).map(|m| m.stage);
        assert_eq!(stage_of(&group, busy), Some(stage::CALLED));
        w.pass(1, 50);
        w.send(who(busy.into()), 0, submitCall { id: own, resultDigest: B256::ZERO }).unwrap();
        w.pass(1, 2);
        commit_as(&mut w, id, busy, 1);
        let group = w.ask(groupCall { place });
        assert_eq!(group.members.iter().find(|m| m.node == busy).map(|m| m.elapsed), Some(2));
    }
}

mod replicated {
    use crate::help::replicated::*;
    use muster_model::meter::priced;
    use muster_model::refused;
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{self, *};

    /// Two groups of which `late` alone has not revealed after two hours: their tasks, places and other members, of which the second has
    /// answered `third`. Gives also when the reveals of the last one close.
    fn late(w: &mut World, late: u32, third: u8, fee: u128) -> (Vec<(u64, u32, [u32; 2])>, u64) {
        let mut groups = Vec::new();
        while groups.len() < 2 {
            let id = created(w, fee, alike(0));
            let (place, members) = group_of(w, id).expect("formed");
            let others: Vec<u32> = members.iter().copied().filter(|&n| n != late).collect();
            let answer = |n: u32| value(if members.contains(&late) && n == others[1] { third } else { 1 });
            members.iter().for_each(|&n| commit(w, id, n, ANSWER, answer(n)).unwrap());
            others.iter().for_each(|&n| reveal(w, id, place, n, ANSWER, answer(n)).unwrap());
            if members.contains(&late) {
                groups.push((id, place, [others[0], others[1]]));
            }
        }
        let closes = w.mem.now + 7_200;
        w.pass(1, 7_200);
        (groups, closes)
    }

    /// Two equal answers cannot be outvoted, so their commitments are closed when they are revealed. A member that reveals in the last second
    /// is right and paid all the same, but keeps only its own two open.
    #[test]
    fn who_reveals_at_the_last_moment_keeps_only_itself_from_work() {
        let mut w = network(12);
        let dust = 3 * w.ask(estimateCall { kind: 1, units: 1 }).leastFee;
        let (groups, closes) = late(&mut w, 1, 1, dust);
        let kept = |w: &mut World| (2..=12).map(|n| u32::from(w.node(n).openCommitments)).sum::<u32>();
        assert_eq!((kept(&mut w), w.node(1).openCommitments, w.node(1).held), (0, 2, true));
        for (id, place, _) in groups {
            refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), RevealsOpen(id, closes));
            w.events();
            reveal(&mut w, id, place, 1, ANSWER, value(1)).unwrap();
            let (members, told) = judgement(&mut w);
            assert!(members.iter().all(|&(_, verdict, paid)| verdict == 1 && paid > 0) && told.refund == 0, "{members:?}");
        }
        assert_eq!((kept(&mut w), w.node(1).openCommitments, w.ask(overviewCall {}).burnt), (0, 0, 0));
        check_money(&mut w);
    }

    /// Two nodes of an adversary's, of which one answers wrongly and the other does not reveal in time, keep the third's commitment open for the
    /// window. The price: the other must reveal the third's answer at last, or is slashed; so the first is slashed, or both are.
    #[test]
    fn two_of_three_keep_the_third_for_a_slash_in_each_group() {
        let mut w = network(12);
        let (groups, _) = late(&mut w, 1, 2, FEE);
        for (id, place, [third, own]) in groups {
            assert!(w.node(third).openCommitments > 0 && w.node(own).openCommitments > 0);
            w.events();
            reveal(&mut w, id, place, 1, ANSWER, value(1)).unwrap();
            let (members, _) = judgement(&mut w);
            let verdict = |n: u32| members.iter().find(|member| member.0 == n).map(|member| member.1);
            assert_eq!([1, third, own].map(verdict), [Some(1), Some(1), Some(2)]);
        }
        assert!((2..=12).all(|n| w.node(n).openCommitments == 0));
        assert_eq!(w.ask(overviewCall {}).burnt, 2 * 20 * (FEE / 3));
        priced(
            "keeping a third member's commitment open for two hours",
            "two of three members are the adversary's: one answers otherwise, one reveals at the last moment",
            "6.7 fees burnt for each group",
        );
        check_money(&mut w);
    }

    /// A node that waits for a task whose nodes must answer alike can leave, and come back with another listed GPU. Two of its former group
    /// found it still waiting, for the same queue, and all three were given the task.
    #[test]
    fn who_comes_back_with_another_gpu_does_not_wait_with_its_former_group() {
        let mut w = network(4);
        w.join(5, "another card", 48, &[], 2_000).unwrap();
        let another = w.node(5).gpu;
        w.send(OWNER, 0, listGpuGroupCall { group: another, listed: true }).unwrap();
        w.send(who(5), 0, pauseCall {}).unwrap();
        let long = IMuster::TaskSpec { kind: 2, units: 1_800, ..spec(0, &[]) };
        for _ in 0..4 {
            w.create(90, TOKEN, long.clone()).unwrap();
            w.drain();
        }
        let id = created(&mut w, FEE, alike(0));
        let running = |w: &mut World, n: u32| (task_of(w, n), n);
        let first = running(&mut w, 1);
        submit(&mut w, first);
        assert_eq!(w.node(1).parked, 2, "it waits for two others");
        w.send(who(1), 0, quitCall {}).unwrap();
        // It may wait again once it has not for nine times as long.
        w.pass(1, 700);
        w.join(1, "another card", 48, &[], 2_000).unwrap();
        assert_eq!((w.node(1).parked, w.node(1).gpu), (2, another));
        for n in [2, 3] {
            let next = running(&mut w, n);
            submit(&mut w, next);
            assert_eq!(
                (w.node(n).parked, w.ask(overviewCall {}).pending),
                (2, 0),
                "{n} waits, without who is of another group now"
            );
        }
        let last = running(&mut w, 4);
        submit(&mut w, last);
        w.drain();
        let (_, mut members) = group_of(&mut w, id).expect("formed");
        members.sort_unstable();
        assert_eq!(members, [2, 3, 4]);
        check_money(&mut w);
    }
}

mod rated {
    use crate::help::rated::*;
    use muster_model::meter::priced;
    use muster_model::refused;
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{self, *};

    /// How often a task is drawn until its group is formed, of at most `most` draws, in a network of these stakes.
    fn draws_until_formed(w: &mut World, spec: &IMuster::TaskSpec, most: u32) -> Option<u32> {
        let id = w.create(CREATOR, FEE, spec.clone()).unwrap();
        for draws in 1..=most {
            w.pass(1, 0);
            w.dispatch(1).unwrap();
            if group_of(w, id).is_some() {
                return Some(draws);
            }
        }
        None
    }

    /// Where more than 32 are idle, different nodes are drawn by weight in a bounded number of tries, and a draw that finds fewer than
    /// `most` is made again. A few great stakes took nearly all tries, and kept such a task Pending for good. Now no try falls on a chosen
    /// node.
    #[test]
    fn great_stakes_do_not_keep_a_rated_task_pending() {
        for (whales, tokens) in [(0u64, 400u128), (3, 400 << 12), (1, 400 << 18), (3, 400 << 18)] {
            let mut w = network(40);
            for n in 0..whales {
                w.join(100 + n, "RTX 4090", 24, &[], tokens).unwrap();
            }
            let mem = w.mem.clone();
            for (most, spec) in [(7u8, rated()), (9, rated()), (9, rated_image(0, 8))] {
                let mut draws = 0;
                for seed in 0..20 {
                    w.mem = mem.clone();
                    w.mem.block += seed * 1_000;
                    set_profile(&mut w, CREATOR, Profile { most, ..USUAL });
                    draws += draws_until_formed(&mut w, &spec, 100).expect("it is formed");
                }
                assert!(draws < 30, "{whales} of {tokens}, {most}: {draws} draws of 20 tasks");
            }
        }
    }

    /// A task keeps its number when it goes to another group: members of the second have read the answers that the first revealed, and may
    /// repeat them without having worked. A commitment itself cannot be taken over: it names its node.
    #[test]
    fn the_second_group_can_copy_what_the_first_revealed() {
        let mut w = network(12);
        set_profile(&mut w, CREATOR, of_size(5));
        let id = created_by(&mut w, CREATOR, FEE, rated());
        let (place, first) = group_of(&mut w, id).expect("formed");
        // Two that collude, and three honest ones of which one is too late: no majority.
        for &n in &first[..4] {
            commit(&mut w, id, n, ANSWER, value(if first[..2].contains(&n) { 66 } else { 1 })).unwrap();
        }
        w.pass(1, 200);
        for &n in &first[..4] {
            reveal(&mut w, id, place, n, ANSWER, value(if first[..2].contains(&n) { 66 } else { 1 })).unwrap();
        }
        if group_of(&mut w, id).is_some() {
            w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
        }
        assert_eq!(settled(&mut w).outcome, 4);
        w.pass(1, 0);
        w.dispatch(1).unwrap();
        let (place, second) = group_of(&mut w, id).expect("formed again");
        // Nobody else's commitment can be opened, the node's own of before can.
        let (again, fresh): (Vec<u32>, Vec<u32>) = second.iter().partition(|n| first[..4].contains(n));
        let copied = commitment(id, first[0], ANSWER, value(66), salt(id, first[0]));
        w.send(who(fresh[0].into()), 0, commitCall { id, commitment: copied }).unwrap();
        for &n in fresh[1..].iter().chain(&again) {
            commit(&mut w, id, n, ANSWER, value(66)).unwrap();
        }
        let opened = w.send(
            who(DRIVER),
            0,
            revealCall { id, group: place, node: fresh[0], kind: ANSWER, value: value(66), salt: salt(id, first[0]) },
        );
        refused!(opened, NotWhatWasCommitted(id, fresh[0]));
        for &n in fresh[1..].iter().chain(&again) {
            reveal(&mut w, id, place, n, ANSWER, value(66)).unwrap();
        }
        w.pass(1, 7_201);
        w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
        let s = settled(&mut w);
        assert_eq!((s.outcome, s.answer), (0, value(66)));
        check_money(&mut w);
        priced(
            "a false answer of the first group that the second copies",
            "two colluding nodes in a first group without a majority, and a second group whose members copy rather than work",
            "the false answer is paid; a copied commitment cannot be opened",
        );
    }

    /// The member that reveals last has read the others' answers: without its own there is no majority, nobody is paid, and the task begins
    /// again.
    #[test]
    fn who_withholds_undoes_a_majority_by_one() {
        let mut w = network(12);
        set_profile(&mut w, CREATOR, of_size(3));
        let id = created_by(&mut w, CREATOR, FEE, rated());
        let (place, members) = group_of(&mut w, id).expect("formed");
        for (&n, says) in members.iter().zip([1, 1, 2]) {
            commit(&mut w, id, n, ANSWER, value(says)).unwrap();
        }
        reveal(&mut w, id, place, members[0], ANSWER, value(1)).unwrap();
        reveal(&mut w, id, place, members[2], ANSWER, value(2)).unwrap();
        refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), RevealsOpen(id, w.mem.now + 7_200));
        w.pass(1, 7_201);
        let before = w.account(members[0].into()).credit;
        w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
        let s = settled(&mut w);
        assert_eq!((s.outcome, s.startFee), (4, FEE / 50));
        assert_eq!(w.account(members[0].into()).credit, before);
        // It agreed with a member that did not reveal: nobody knows, and only the member that withholds is rated.
        let rated: Vec<(u8, u8)> = members.iter().map(|&n| (w.node(n).right, w.node(n).judged)).collect();
        assert_eq!(rated, [(0, 0), (0, 1), (0, 0)]);
        assert_eq!(w.node(members[1]).stake, 400 * TOKEN, "no slash");
        check_money(&mut w);
        priced(
            "a majority undone by who withholds",
            "one member of a majority by one: its own pay and one judgement of its rating",
            "two hours, the others' pay and a start fee of the creator's; up to `reschedules` times if it is drawn again",
        );
    }

    /// Each group of nine in which one node withholds is open for two hours. The commitments of the other eight counted, so that two such
    /// groups kept them from all work, and others' validators could only be the attacker's. That took the least fees, for nobody is slashed
    /// in such a group. Now commitments count where there is a slash, and nowhere else.
    #[test]
    fn who_withholds_in_a_rated_group_keeps_nobody_from_work() {
        let mut w = network(12);
        set_profile(&mut w, ATTACKER, of_size(9));
        // Twice as many as open commitments that hold a node.
        let (groups, mut spent) = (4, 0);
        for _ in 0..groups {
            let fee = 9 * w.ask(estimateCall { kind: 1, units: 1 }).leastFee;
            spent += fee;
            let id = created_by(&mut w, ATTACKER, fee, rated());
            let (place, members) = group_of(&mut w, id).expect("formed");
            for &n in &members {
                commit(&mut w, id, n, ANSWER, value(1)).unwrap();
                assert_eq!((w.node(n).status, w.node(n).openCommitments, w.node(n).held), (1, 0, false), "{n} works on");
            }
            for &n in &members[1..] {
                reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
            }
            refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), RevealsOpen(id, w.mem.now + 7_200));
        }
        let open = w.ask(groupsCall { from: 0, count: 99 })._1;
        assert_eq!(open.len(), groups, "all of them wait for who withholds");
        let held = (1..=12).filter(|&n| w.node(n).held).count();
        priced(
            "nodes kept from work by withholding",
            &format!("{groups} groups of nine at the least fee, {spent} wei in all, one member of each does not reveal"),
            &format!("{held} of 12 nodes held"),
        );
        assert_eq!(held, 0);
        // Nor does it lock their stakes, for which nothing can be taken.
        let operator = u64::from(open[0].members[1].node);
        w.send(who(operator), 0, quitCall {}).unwrap();
        w.pass(1, 86_401);
        w.send(who(operator), 0, withdrawCall { to: who(operator).into() }).unwrap();
        assert_eq!(w.account(operator).unbonding, 0);
        for group in open {
            w.send(who(DRIVER), 0, settleCall { id: group.id, group: group.group }).unwrap();
        }
        check_money(&mut w);
    }
}
