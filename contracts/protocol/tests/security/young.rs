//! A young network, in which most words are written for the first time: due draws that queue their tasks cost most there.

mod single {
    use muster_model::meter::{priced, MOST_GAS};
    use muster_model::system::{Call, System};
    use muster_model::world::*;
    use muster_protocol::IMuster::{self, *};
    use std::collections::{BTreeMap, BTreeSet};

    /// A fee that covers three nodes.
    const FEE: u128 = 360;
    /// Networks that are tried, unless `NETWORKS` says how many.
    const NETWORKS: u64 = 400;
    /// A name of as many bytes as are allowed.
    const LONG_NAME: &str = "a card whose name is as long as names of cards are allowed to be";

    /// Up to so many models, of some that others hold or want as well.
    fn models(dice: &mut Dice, most: u64) -> Vec<u64> {
        let count = dice.below(most + 1);
        let some: BTreeSet<u64> = (1..=count).map(|i| i + 100 * dice.below(2)).collect();
        some.into_iter().collect()
    }

    /// A network of a few cards, some of them busy, and up to ten tasks whose draws are due. Most of the nodes that were idle at their creation
    /// have paused since.
    fn network(dice: &mut Dice) -> (World, u64) {
        let mut w = World::new();
        let (nodes, sizes) = (2 + dice.below(9), 1 + dice.below(9));
        for n in 1..=nodes {
            let held = if dice.below(2) == 0 { Vec::new() } else { models(dice, 8) };
            w.join(n, &format!("card {}", dice.below(nodes)), 8 * (1 + dice.below(sizes)) as u16, &held, 400).unwrap();
        }
        let wanted = |w: &mut World, dice: &mut Dice, own: bool| {
            let models = if dice.below(2) == 0 { Vec::new() } else { models(dice, 8) };
            let (gpu, vram) =
                if own { (w.node(1 + dice.below(nodes) as u32).gpu, 0) } else { (0, 8 * dice.below(sizes + 1) as u16) };
            IMuster::TaskSpec { gpu, vram, models, ..spec(0, &[]) }
        };
        for _ in 0..dice.below(6) {
            let task = wanted(&mut w, dice, true);
            // It may be that nobody can run it.
            let _ = w.create(50, FEE, task);
            w.pass(1, 1);
            w.dispatch(16).unwrap();
        }
        for _ in 0..dice.below(10) {
            let own = dice.below(3) > 0;
            let task = IMuster::TaskSpec { redundancy: 2 * u8::from(dice.below(8) == 0), ..wanted(&mut w, dice, own) };
            let _ = w.create(50, FEE, task);
        }
        for n in 1..=nodes {
            if dice.below(3) > 0 {
                let _ = w.send(who(n), 0, pauseCall {});
            }
        }
        w.pass(1, dice.below(3) * 80);
        (w, nodes)
    }

    /// Each kind of call that makes others' draws first, by whoever can make it; with its name.
    fn calls(w: &mut World, nodes: u64, dice: &mut Dice) -> Vec<(&'static str, Call)> {
        let profile = Profile { algorithm: 1, least: 3, most: 9, reschedules: 2, targeting: 0, target: 0, alpha: 0, period: 300 };
        let join = |name: &str, vram, models| Call::new(who(60), joinCall { gpuName: name.into(), vram, models });
        let mut calls = vec![
            ("join", join("card 0", 8, models(dice, 10)).paying(400 * TOKEN)),
            ("join", join(LONG_NAME, 8 * (1 + dice.below(9)) as u16, (1_001..=1_010).collect()).paying(404 * TOKEN)),
            ("setProfile", Call::new(who(51), setProfileCall { profile })),
        ];
        for redundancy in [0, 2] {
            let gpu = w.node(1 + dice.below(nodes) as u32).gpu;
            let spec = IMuster::TaskSpec { gpu, models: models(dice, 8), redundancy, ..spec(0, &[]) };
            calls.push(("createTask", Call::new(who(52), createTaskCall { spec }).paying(FEE)));
        }
        for n in 1..=nodes {
            let (by, id) = (who(n), w.node(n as u32).task);
            calls.extend([
                ("quit", Call::new(by, quitCall {})),
                ("pause", Call::new(by, pauseCall {})),
                ("resume", Call::new(by, resumeCall {})),
                ("raiseStake", Call::new(by, raiseStakeCall {}).paying(400 * TOKEN)),
                ("reportDownloaded", Call::new(by, reportDownloadedCall { models: (1_001..=1_010).collect() })),
                ("reportRemoved", Call::new(by, reportRemovedCall { models: models(dice, 10) })),
                ("submit", Call::new(by, submitCall { id, resultDigest: [3; 32].into() })),
                ("reportError", Call::new(by, reportErrorCall { id, code: 3 })),
                ("expire", Call::new(who(53), expireCall { node: n as u32, id })),
            ]);
        }
        calls
    }

    /// Eight draws that queued their tasks beside a join with a new card and ten models took 1.69 million gas, and beside most other calls
    /// more than a million. Now what a draw writes counts, and what the call itself writes: fewer draws are made beside it, and it is refused
    /// while more are due.
    #[test]
    fn no_call_makes_more_draws_than_a_million_gas_pays_for() {
        let mut most: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let networks = std::env::var("NETWORKS").map_or(NETWORKS, |n| n.parse().expect("a number"));
        for seed in 0..networks {
            let mut dice = Dice(seed);
            let (mut w, nodes) = network(&mut dice);
            for (name, call) in calls(&mut w, nodes, &mut dice) {
                let (gas, accepted) = most.entry(name).or_default();
                let mut copy = w.clone();
                *accepted += u64::from(System::call(&mut copy, &call).is_ok());
                *gas = copy.gas.max(*gas);
            }
        }
        println!("{most:?}");
        assert!(most.values().all(|(_, accepted)| *accepted >= 20), "{most:?}");
        let told: Vec<String> = most.iter().map(|(name, (gas, _))| format!("{name} {gas}")).collect();
        priced(
            "innocent calls made expensive by draws in a young network",
            "up to ten due tasks, nodes that pause before the draws",
            &told.join("; "),
        );
        assert!(most.values().all(|(gas, _)| *gas < MOST_GAS - 100_000), "{most:?}");
    }

    /// How many due tasks, in every block, keep somebody from joining or quitting in a transaction of its own: the least number. They start,
    /// they are queued because the only node that could run them has paused, or each is for several nodes. A `dispatch` before the call, in
    /// the same block, lets it in.
    fn least_that_hold_up(kind: &str, call: &Call) -> u64 {
        let held_up = |tasks: u64| {
            let mut w = World::new();
            for n in 1..=12 {
                w.join(n, "card", 24, &[], 400).unwrap();
            }
            let own = w.join(13, "card of the adversary's", 80, &[], 400).unwrap();
            let (gpu, common) = (w.node(own).gpu, w.node(1).gpu);
            w.send(OWNER, 0, listGpuGroupCall { group: common, listed: true }).unwrap();
            for _ in 0..tasks {
                let task = match kind {
                    "queued" => IMuster::TaskSpec { gpu, ..spec(0, &[]) },
                    "of three nodes" => IMuster::TaskSpec { gpu: common, redundancy: 2, ..spec(0, &[]) },
                    _ => spec(24, &[]),
                };
                w.create(50, FEE, task).unwrap();
            }
            w.send(who(13), 0, pauseCall {}).unwrap();
            w.pass(1, 0);
            let refused = System::call(&mut w, call).is_err_and(|refused| refused.name == "DrawsDue");
            if refused {
                w.dispatch(16).unwrap();
                System::call(&mut w, call).unwrap();
            }
            refused
        };
        (1..=9).find(|&tasks| held_up(tasks)).expect("held up by nine")
    }

    #[test]
    fn joining_and_quitting_are_held_up_only_until_somebody_draws() {
        let join = |models: u64| {
            let join = joinCall { gpuName: "card".into(), vram: 24, models: (1..=models).collect() };
            Call::new(who(60), join).paying(400 * TOKEN)
        };
        let calls = [("quit", Call::new(who(12), quitCall {})), ("join", join(0)), ("join with ten models", join(10))];
        let kinds = ["started", "queued", "of three nodes"];
        let found = calls.map(|(name, call)| (name, kinds.map(|kind| least_that_hold_up(kind, &call))));
        let told = found
            .each_ref()
            .map(|(name, [start, queue, three])| format!("{name}: {start}, {queue} that are queued, or {three} of three nodes"));
        priced(
            "keeping somebody from joining or quitting by due draws",
            "tasks in every block, with fees of their own; those that are queued also need a node that pauses and resumes",
            &format!("{}; `dispatch` in the same block lets it in", told.join("; ")),
        );
        assert!(found.iter().all(|(_, [start, queue, three])| *start >= 3 && *queue >= 2 && *three >= 1), "{found:?}");
    }

    /// A report of ten models writes more than one of a single model, and makes fewer draws before.
    #[test]
    fn a_long_report_makes_fewer_draws() {
        let report = |models: u64| Call::new(who(12), reportDownloadedCall { models: (1..=models).collect() });
        let [one, ten] = [1, 10].map(|models| least_that_hold_up("queued", &report(models)));
        println!("held up by {one} due tasks, and with ten models by {ten}");
        assert!(ten + 2 <= one && ten > 3, "{one} and {ten}");
    }
}
