//! Attacks by the owner on tasks and stakes.

mod single {
    use crate::help::single::*;
    use alloy_primitives::U256;
    use muster_core::id::{NodeId, TaskId, Ticket};
    use muster_model::meter::priced;
    use muster_model::refused;
    use muster_model::world::*;

    use muster_protocol::parameters::PARAMETERS;
    use muster_protocol::{admin, IMuster};

    /// 19: The owner received slashed stakes, and a relay was trusted with every task. Here the owner has no power over
    /// stakes, fees and tasks, parameters stay in bounds, and a new treasury takes two days.
    #[test]
    fn w19_the_owner_is_no_party_to_any_task() {
        nothing_called(&["slash", "force", "seize", "upload", "relay"]);
        let mut w = world(1, 0);
        let id = w.create(5, FEE, spec(0, &[])).unwrap();
        let queued = w.create(5, FEE, spec(0, &[])).unwrap();
        let ticket = w.ticket(queued);
        refused!(w.call(OWNER, 0, |n| n.cancel(TaskId(queued), Ticket(ticket))), NotTheCreator(queued, OWNER));
        refused!(w.call(OWNER, 0, |n| n.submit(TaskId(id), [0; 32])), NotAnOperator(OWNER));
        refused!(w.send(OWNER, 0, IMuster::withdrawCall { to: OWNER.into() }), NothingToWithdraw(OWNER));
        // Terms that were frozen at creation no longer follow the parameters.
        w.set("startFeeBps", 5_000);
        w.set("limitMin", 3_600);
        w.pass(1, 121);
        w.call(who(9), 0, |n| n.expire(NodeId(1), TaskId(id))).unwrap();
        assert_eq!(w.account(9).credit, FEE / 100 * 2);
        assert!((0..PARAMETERS.len() as u8)
            .all(|number| admin::parameter(&w.mem, number).is_ok_and(|(_, least, most)| least <= most)));
        w.raw(OWNER, 0, |m| admin::propose_treasury(m, OWNER)).unwrap();
        assert_eq!(named(w.raw(OWNER, 0, admin::accept_treasury)), "TooEarly");
    }

    /// The owner could raise `groupFee` in front of a join with a new GPU name, which then paid the treasury all that its value had above
    /// `minStake`. Now operators know a higher fee as long before as any change that reaches into stakes.
    #[test]
    fn a_raised_group_fee_takes_nothing_from_a_join_that_was_sent_before() {
        let mut w = world(1, 0);
        let parameter = parameter("groupFee");
        let fee = w.group_fee("a new GPU", 24);
        let raised = U256::from(1_500 * TOKEN / u128::from(STAKE_UNIT));
        refused!(w.send(OWNER, 0, IMuster::setParameterCall { parameter, value: raised }), ParameterDelayed(parameter));
        w.send(OWNER, 0, IMuster::proposeParameterCall { parameter, value: raised }).unwrap();
        w.pass(1, u64::from(UPGRADE_DELAY) - 1);
        let at = w.mem.now + 1;
        refused!(w.send(OWNER, 0, IMuster::acceptParameterCall { parameter }), TooEarly(at));
        let join = IMuster::joinCall { gpuName: "a new GPU".into(), vram: 24, models: vec![] };
        let node = w.send(who(9), 2_004 * TOKEN, join).unwrap();
        assert_eq!(w.node(node).stake, 2_004 * TOKEN - fee);
        priced(
            "a join's value taken by a raised groupFee",
            "a join with 2,004 tokens and a new GPU name, and a fee of 1,500 proposed by the owner in front of it",
            &format!("the join pays {} tokens; the proposal can take effect {} days later", fee / TOKEN, UPGRADE_DELAY / 86_400),
        );
    }
}

mod sampled {
    use crate::help::sampled::*;
    use alloy_primitives::U256;

    use muster_model::meter::priced;
    use muster_model::refused;
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{self, *};

    /// The stake that a slashed node must have left to stay, in wei.
    const KEPT: u128 = STAKE / 16 * 15;

    /// Where `openMost` was lowered, a node with three open commitments kept three, at fees for two: the bound rose at once. Now it is that
    /// of the highest ever.
    #[test]
    fn a_lowered_number_of_open_commitments_raises_no_bound_of_fees() {
        let mut w = all_sampled(9);
        let bound = KEPT / (SLASH_TIMES * 3);
        assert_eq!(most(&mut w), bound);
        w.set("openMost", 1);
        assert_eq!(most(&mut w), bound, "that of two open ones and one more");
        w.set("openMost", 4);
        let higher = KEPT / (SLASH_TIMES * 5);
        assert_eq!(most(&mut w), higher);
        w.set("openMost", 1);
        assert_eq!(most(&mut w), higher);
        priced(
            "stakes left uncovered by lowering openMost",
            "4 open commitments before, 1 after",
            &format!("the highest fee stays {:.2} tokens, of a stake of {}", higher as f64 / TOKEN as f64, STAKE / TOKEN),
        );
    }

    /// Lowered and raised again, `minStake` left nodes that had joined in between with less than fees may take. Now the lowest ever bounds them:
    /// such a node is slashed by all that its wrong answers cost, of as many tasks as it may have open.
    #[test]
    fn a_least_stake_lowered_and_raised_leaves_no_slash_uncovered() {
        const CHEAP: u32 = 13;
        let mut w = all_sampled(12);
        let stake_units = (STAKE / u128::from(STAKE_UNIT)) as u64;
        let little = STAKE / 10;
        w.set("minStake", stake_units / 10);
        w.join(CHEAP.into(), "RTX 4090", 24, &[], little / TOKEN).unwrap();
        w.set("minStake", stake_units);
        let fee = most(&mut w);
        assert_eq!(fee, KEPT / 10 / (SLASH_TIMES * 3));
        let id = task_on(&mut w, CHEAP, fee);
        let stake = w.node(CHEAP).stake;
        let burnt = answered(&mut w, id, CHEAP, 9);
        let left = fee - fee / 50;
        priced(
            "stakes left uncovered by lowering minStake and raising it again",
            &format!(
                "a node that has joined with {} tokens, where {} were the least before and after",
                stake / TOKEN,
                STAKE / TOKEN
            ),
            &format!(
                "the highest fee is {:.3} tokens; a wrong answer burns {:.2}, of three open ones {:.1} of its {}",
                fee as f64 / TOKEN as f64,
                burnt as f64 / TOKEN as f64,
                3.0 * burnt as f64 / TOKEN as f64,
                stake / TOKEN
            ),
        );
        // All of it, to a stake unit; the node is below the least stake by now.
        assert!(burnt <= SLASH_TIMES * left && burnt + u128::from(STAKE_UNIT) > SLASH_TIMES * left, "{burnt}");
        assert!(3 * burnt <= stake);
        assert_eq!(w.node(CHEAP).status, 0, "thrown out");
        check_money(&mut w);
    }

    /// A task that is queued when `minStake` is lowered keeps its former fee. A node that joins for less could be given it, and its whole
    /// stake was less than the cost of a wrong answer. Now the change is proposed. From the proposal on fees are bound by it, and anyone
    /// can end earlier queued tasks long before it takes effect.
    #[test]
    fn what_is_queued_when_a_lower_least_stake_is_proposed_can_be_ended_before_it_counts() {
        let mut w = all_sampled(12);
        busy(&mut w, 12);
        let id = w.create(CREATOR, FEE, wanted(&[])).unwrap();
        let ticket = w.ticket(id);
        let little = STAKE / 10;
        let (number, value) = (parameter("minStake"), U256::from(little / u128::from(STAKE_UNIT)));
        refused!(w.send(OWNER, 0, setParameterCall { parameter: number, value }), ParameterDelayed(number));
        let before = most(&mut w);
        w.send(OWNER, 0, proposeParameterCall { parameter: number, value }).unwrap();
        let effective = w.mem.now + u64::from(UPGRADE_DELAY);
        refused!(w.create(CREATOR, FEE, wanted(&[])), FeeTooHigh(FEE, KEPT / 10 / (SLASH_TIMES * 3)));
        let queue_time: u64 = w.ask(parameterCall { which: parameter("queueTime") }).value.to();
        w.pass(1, queue_time + 1);
        refused!(w.send(who(DRIVER), 0, acceptParameterCall { parameter: number }), TooEarly(effective));
        w.send(who(DRIVER), 0, expireQueuedCall { id, ticket }).unwrap();
        w.pass(1, u64::from(UPGRADE_DELAY) - queue_time);
        w.send(who(DRIVER), 0, acceptParameterCall { parameter: number }).unwrap();
        w.join(13, "RTX 4090", 24, &[], little / TOKEN).unwrap();
        let after = most(&mut w);
        check_money(&mut w);
        priced(
            "a dear queued task taken by who joined for less",
            &format!("a minStake of {} tokens proposed while a task of {} tokens is queued", little / TOKEN, FEE / TOKEN),
            &format!(
                "anyone ends that task after {queue_time} s, {} s before the change; the highest fee goes from {:.2} to {:.2} tokens at the proposal",
                u64::from(UPGRADE_DELAY) - queue_time,
                before as f64 / TOKEN as f64,
                after as f64 / TOKEN as f64
            ),
        );
        assert_eq!(after, KEPT / 10 / (SLASH_TIMES * 3));
        // One that is not accepted binds, too: it may be at any time.
        let mut w = all_sampled(12);
        let value = U256::from(4);
        w.send(OWNER, 0, proposeParameterCall { parameter: parameter("openMost"), value }).unwrap();
        assert_eq!(most(&mut w), KEPT / (SLASH_TIMES * 5));
    }

    /// A new `slashTimes` applied to groups that were already open, whose fees were bound by the old one. Now each task has its own.
    #[test]
    fn what_a_wrong_answer_costs_is_what_it_cost_at_creation() {
        let mut rows = Vec::new();
        for times in [1u64, 40, 255] {
            let mut w = all_sampled(12);
            // Once when the node has not even committed, once when its group is open.
            for open in [false, true] {
                let id = created(&mut w, FEE, wanted(&[]));
                let node = runner(&mut w, id);
                if !open {
                    w.set("slashTimes", times);
                }
                commit_as(&mut w, id, node, 9);
                let group = called(&mut w, id, node);
                if open {
                    w.set("slashTimes", times);
                }
                let burnt = judged(&mut w, id, &group, 9);
                assert_eq!(burnt, SLASH_TIMES * LEFT, "{times} {open}");
                w.set("slashTimes", SLASH_TIMES as u64);
            }
            // A task created next costs the new multiple, and no more than a stake covers.
            w.set("slashTimes", times);
            let fee = FEE.min(KEPT / (u128::from(times) * 3));
            let id = created(&mut w, fee, wanted(&[]));
            let node = runner(&mut w, id);
            let (burnt, due) = (answered(&mut w, id, node, 9), u128::from(times) * (fee - fee / 50));
            assert!(burnt <= due && burnt + u128::from(STAKE_UNIT) > due, "{times}: {burnt} {due}");
            check_money(&mut w);
            rows.push(format!("{times}"));
        }
        priced(
            "slashTimes changed while a group is open",
            &format!("from {SLASH_TIMES} to {}", rows.join(", ")),
            &format!(
                "a wrong answer to a task of {} tokens burns {:.1} tokens, as before",
                FEE / TOKEN,
                (SLASH_TIMES * LEFT) as f64 / TOKEN as f64
            ),
        );
    }

    /// The owner earned the start fees of queued tasks by lowering `queueTime` and ending them at once, or more by raising `startFeeBps` before a
    /// task was created. Now both are proposed, and take effect when nothing that was queued before can be queued still.
    #[test]
    fn the_owner_earns_nothing_by_changing_what_tasks_cost() {
        let mut w = world(1, 1);
        busy(&mut w, 1);
        let queue_time: u64 = w.ask(parameterCall { which: parameter("queueTime") }).value.to();
        assert!(u64::from(UPGRADE_DELAY) > queue_time);
        let fee = 100 * TOKEN;
        let id = w.create(CREATOR, fee, spec(0, &[])).unwrap();
        let ticket = w.ticket(id);
        w.pass(10, 61);
        for (name, new) in [("queueTime", 60u64), ("startFeeBps", 5_000)] {
            let (parameter, value) = (parameter(name), U256::from(new));
            assert_eq!(named(w.send(OWNER, 0, setParameterCall { parameter, value })), "ParameterDelayed", "{name}");
            w.send(OWNER, 0, proposeParameterCall { parameter, value }).unwrap();
            assert!(w.send(OWNER, 0, acceptParameterCall { parameter }).is_err(), "{name}: not in time");
        }
        assert_eq!(named(w.send(OWNER, 0, expireQueuedCall { id, ticket })), "QueueTimeNotOver");
        let earned = w.ask(accountCall { who: OWNER.into() }).credit;
        priced(
            "queueTime and startFeeBps changed by the owner while a task is queued",
            &format!("a fee of {} tokens", fee / TOKEN),
            &format!("the owner earns {earned} wei; a change takes {UPGRADE_DELAY} s, a queued task lasts {queue_time} s"),
        );
        assert_eq!(earned, 0);
    }

    /// Reveals all answers of a group; gives the burnt amount.
    fn revealed(w: &mut World, group: &IMuster::GroupView, answers: [u8; 3]) -> u128 {
        let before = w.ask(overviewCall {}).burnt;
        for (member, answer) in group.members.iter().zip(answers) {
            reveal(w, group.id, group.group, member.node, ANSWER, value(answer)).unwrap();
        }
        w.ask(overviewCall {}).burnt - before
    }

    /// A node that joined before has no more than the least stake of then.
    #[test]
    fn a_raised_least_stake_raises_no_bound_of_fees() {
        let mut w = all_sampled(9);
        let most = 375 * TOKEN / 60;
        w.set("minStake", 800 * 1_000);
        refused!(w.create(CREATOR, most + 1, wanted(&[])), FeeTooHigh(most + 1, most));
        // Lowered, it counts at once, and for good: nodes may have joined with it.
        for least in [200, 800] {
            w.set("minStake", least * 1_000);
            refused!(w.create(CREATOR, most, wanted(&[])), FeeTooHigh(most, most / 2));
        }
    }

    /// With the same wrong answer: a slash while the group is listed, none if it was unlisted before.
    #[test]
    fn what_was_not_committed_or_formed_when_a_card_was_unlisted_slashes_nobody() {
        for (redundancy, unlisted) in [(1, false), (1, true), (2, false), (2, true)] {
            let mut w = all_sampled(10);
            let id = w.create(CREATOR, 3 * TOKEN, IMuster::TaskSpec { redundancy, ..wanted(&[]) }).unwrap();
            let first = if redundancy == 1 { Some(runner(&mut w, id)) } else { None };
            if unlisted {
                w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: false }).unwrap();
            }
            if let Some(node) = first {
                commit_as(&mut w, id, node, 1);
                called(&mut w, id, node);
            }
            let (place, _) = grouped(&mut w, id);
            let group = w.ask(groupCall { place });
            assert_eq!(group.scored, !unlisted);
            for (member, answer) in group.members.iter().zip([1, 1, 2]) {
                if member.stage == stage::RUNNING {
                    commit_as(&mut w, id, member.node, answer);
                }
            }
            // The call of its validators has cost a sampled one its start fee.
            let fee = if redundancy == 1 { 3 * TOKEN / 50 * 49 } else { TOKEN };
            assert_eq!(revealed(&mut w, &group, [1, 1, 2]), if unlisted { 0 } else { 20 * fee }, "{redundancy} {unlisted}");
        }
    }
}

mod replicated {
    use crate::help::replicated::*;
    use muster_model::validated::*;
    use muster_model::world::*;

    use muster_protocol::IMuster::*;

    /// The owner kept reserved nodes, and their stakes, for days by raising the threshold that excludes them: no draw was ever decided, and
    /// a reserved node cannot leave. Now an undecided draw lets nodes go that are excluded by then, or want to leave.
    #[test]
    fn a_raised_threshold_keeps_no_reserved_node() {
        let mut w = network(4);
        let tasks = busy(&mut w, 4);
        let id = created(&mut w, FEE, alike(0));
        idled(&mut w, tasks[3]);
        w.pass(1, 121);
        // They time out, and are eligible still.
        for &(id, node) in &tasks[..3] {
            w.send(who(DRIVER), 0, expireCall { node, id }).unwrap();
        }
        let reserved = nodes_with(&mut w, 3);
        assert!(!reserved.is_empty());
        w.set("tau", 604_800);
        w.set("exclusionPpm", 900_000);
        for &n in &reserved {
            w.send(who(n.into()), 0, quitCall {}).unwrap();
            assert!(matches!(w.node(n).status, 0 | 4), "it quits");
        }
        w.pass(1, 1);
        w.dispatch(1).unwrap();
        // Held back until later calls re-admit them, one by one, or anybody pokes them.
        for _ in 0..2 * reserved.len() {
            w.pass(1, 1);
            w.dispatch(16).unwrap();
        }
        for &n in &reserved {
            assert_eq!((w.node(n).status, w.node(n).parked), (0, 0), "it is out at the first draw");
            assert_eq!(w.account(n.into()).unbonding, 400 * TOKEN);
        }
        assert!(group_of(&mut w, id).is_none());
        check_money(&mut w);
    }
}
