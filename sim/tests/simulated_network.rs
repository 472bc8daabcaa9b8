//! The network: it chooses by its rule, keeps its books, and writes the same for any number of threads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use alloy_primitives::keccak256;
use muster_core::record::Status;
use muster_protocol::native::Memory;
use muster_protocol::store::accounts;
use muster_protocol::IMuster::{self, createTaskCall, joinCall, weightOfCall};
use muster_sim::network::engine::Engine;
use muster_sim::network::events::Event;
use muster_sim::network::ledger::{submit, Ledger, Party, BEGINNING, LEAST_STAKE, STAKE_UNIT};
use muster_sim::network::policy::{Merit, Policy};
use muster_sim::network::report::{quantile, Report};
use muster_sim::network::study::{Grid, Scale};
use muster_sim::network::workload::{fleet, Kind, Profile, Source, TaskSpec, TICKS};
use muster_sim::network::{run, Options};

const TINY: Scale = Scale {
    quick: true,
    seeds: 2,
    nodes: 30,
    tasks: 300,
    grid_seeds: 2,
    grid_tasks: 200,
    grid: Grid { penalty: &[300_000], boost: &[150_000], threshold: &[100_000, 500_000], tau: &[1_800, 3_600] },
    long_tasks: 600,
    validation_tasks: 400,
    sybil_seeds: 2,
    sybil_nodes: 20,
    sybil_tasks: 100,
    splits: &[1, 10],
};

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let list = |folder: &Path| fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
    let all = list(folder).into_iter().chain(list(&folder.join("figures"))).filter(|path| path.is_file());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    all.map(|path| (name(&path), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn writes_page_pictures_and_table_whatever_the_threads() {
    let with = |threads: usize| {
        let out = folder(&format!("network-{threads}"));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&Options { scale: TINY, seed: 7, out: out.clone() })).unwrap();
        files(&out)
    };
    let (one, three) = (with(1), with(3));
    assert_eq!(one, three);
    let page = &one["simulator-network.md"];
    let links: Vec<&str> = page.split("](figures/").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    assert!(links.len() > 5);
    for link in &links {
        assert!(one.contains_key(*link), "{link} is shown but not drawn");
    }
    for (name, text) in &one {
        assert!(!text.contains("NaN") && !text.contains("inf"), "{name} holds no number");
        let picture = name.rsplit_once('.').is_some_and(|(_, extension)| extension == "svg");
        assert!(!picture || links.contains(&name.as_str()), "{name} is drawn but not shown");
    }
    let mut reader = csv::Reader::from_reader(one["network.csv"].as_bytes());
    assert!(reader.records().collect::<Result<Vec<_>, _>>().expect("rows of equal length").len() > 40);
}

fn simulate(profile: &Profile, policy: Policy, parameters: &[(&str, u64)], seed: u64) -> Report {
    let nodes = fleet(profile, seed);
    let source = Source::made_up(profile, &nodes, seed);
    let ledger = Ledger::new(Memory::quick(seed), policy, parameters).unwrap();
    Engine::new(ledger, nodes, source, seed, None).run().0
}

#[test]
fn every_task_ends_once_and_the_counts_agree() {
    for (load, policy) in [(500, Policy::Contract), (1_200, Policy::Contract), (1_200, Policy::exact(Merit::Uniform, 3))] {
        let profile = Profile { nodes: 40, tasks: 3_000, load, cancels: 100, ..Profile::default() };
        let r = simulate(&profile, policy, &[("alphaMilli", 500)], 3);
        assert_eq!(r.open, 0);
        assert_eq!(r.asked, 3_000);
        let ends = [r.succeeded, r.undecided, r.timed_out, r.reported, r.cancelled, r.evicted, r.orphaned];
        assert_eq!(ends.iter().sum::<u64>(), r.asked);
        assert_eq!(r.nodes.iter().map(|n| n.started).sum::<u64>(), r.started);
        assert!(r.nodes.iter().all(|n| n.started >= n.succeeded + n.timed_out && n.busy >= n.wasted));
        assert!(r.nodes.iter().all(|n| n.excluded <= n.present));
        assert!(r.succeeded > 1_000 && r.timed_out > 10 && r.replicated > 200 && r.validated > 50, "{r:?}");
        assert!(r.waits.len() as u64 >= r.succeeded + r.undecided + r.timed_out + r.reported);
        // The longest possible exclusion under the default rule, and a second until somebody returns the node to work.
        assert!(r.exclusion(1.0) <= 192.0, "{}", r.exclusion(1.0));
        if load == 1_200 {
            assert!(r.evicted > 0 && r.cancelled > 0);
        }
    }
}

/// Everything that the contract owes or keeps.
fn owed(ledger: &Ledger, nodes: u32, applications: u32) -> u128 {
    let host = &ledger.host;
    let operators = (0..nodes).map(Party::Operator);
    let parties = operators.chain((0..applications).map(Party::Application)).chain([Party::Owner, Party::Keeper]);
    let accounts = parties.map(|party| {
        let account = accounts::account(host, party.address());
        account.credit + accounts::wei(host, account.unbonding)
    });
    let stakes = (1..=ledger.head().issued).map(|number| ledger.node(number)).filter(|node| node.status != Status::Quit as u8);
    let stakes: u128 = stakes.map(|node| accounts::wei(host, node.stake)).sum();
    accounts.sum::<u128>() + stakes + accounts::income(host) + accounts::reserve(host) + accounts::burnt(host)
}

/// Under full load, where hardly a task is drawn, H comes back by work in a third of the time that the clock takes.
#[test]
fn a_busy_node_recovers_by_its_work() {
    let profile = Profile { nodes: 60, tasks: 6_000, load: 1_500, grouped: 500, ..Profile::default() };
    // From 0.3 to 0.9.
    let clock = 1_800.0 * (0.7_f64 / 0.1).ln();
    let r = simulate(&profile, Policy::Contract, &[], 3);
    let half = quantile(&r.recoveries, 0.5) / TICKS as f64;
    println!("{} timeouts that lowered H, {} recoveries, half of them within {half:.0} s", r.lowered, r.recoveries.len());
    assert!(r.recoveries.len() >= 10 && half < clock / 2.0, "{half}");
}

#[test]
fn validated_tasks_are_judged_by_the_contract_and_no_wei_is_lost() {
    // Policies 2 and 1 as shares of 1,000, and the load of single tasks.
    for (choice, grouped, sampled, load, seed) in [
        (None, 0, 900, 400, 3),
        (Some(Merit::Uniform), 0, 900, 400, 7),
        (None, 1_000, 0, 200, 3),
        (Some(Merit::Uniform), 300, 900, 400, 4),
        (None, 500, 900, 700, 5),
    ] {
        let mix = [100, 100, 50, 50, 100, 100, 100];
        let base =
            Profile { nodes: 40, tasks: 4_000, load, grouped, sampled, counted_once: true, named: true, ..Profile::default() };
        let profile = Profile { mix, even: true, errors: 20_000, ..base };
        let nodes = fleet(&profile, seed);
        let source = Source::made_up(&profile, &nodes, seed);
        let policy = choice.map_or(Policy::Contract, |merit| Policy::exact(merit, seed));
        let parameters = [("sampleBps", 3_000), ("slashImages", 1), ("scorePool", 5)];
        let ledger = Ledger::new(Memory::quick(seed), policy, &parameters).unwrap();
        let (r, ledger) = Engine::new(ledger, nodes, source, seed, None).run();

        assert_eq!(r.open, 0);
        let ends = [r.succeeded, r.undecided, r.timed_out, r.reported, r.cancelled, r.evicted, r.orphaned];
        assert_eq!(ends.iter().sum::<u64>(), r.asked);
        assert_eq!((ledger.deposits, r.open), (owed(&ledger, 40, 50), 0));
        assert!(r.undecided > 0 && r.wrong > 0 && r.slipped <= r.wrong, "{r:?}");
        if grouped == 0 {
            // Some three in ten of those that came to a commitment.
            assert!(r.sampled > 3_000 && r.validated > 500 && r.validations > r.validated, "{r:?}");
            assert!(r.reported > 10 && r.wrong > 50 && r.drivers > 0, "{r:?}");
            assert!(r.pots > r.pots_due / 2 && r.pots <= r.pots_due);
        } else {
            assert!(r.replicated > u64::from(grouped) * 3 && r.validated > r.replicated / 3, "{r:?}");
            assert!(r.nodes.iter().any(|n| n.kept > 0), "nodes wait for others");
        }
        if sampled == 0 {
            // Nobody but the three members judges, and two wrong answers are never alike.
            assert_eq!((r.sampled, r.validations, r.slipped, r.drivers, r.pots), (0, 0, 0, 0, 0));
            assert!(r.waits.len() as u64 >= r.validated && r.started > 3 * r.validated);
        }
        assert_eq!(r.nodes.iter().map(|n| n.lost).sum::<u128>(), r.burnt);
        for (i, n) in r.nodes.iter().enumerate() {
            // The logs match the contract's state.
            let pool = &n.scores[n.scores.len().saturating_sub(50)..];
            let node = ledger.node(ledger.number_of(i as u32));
            assert_eq!(u16::from(node.score_count), pool.len() as u16);
            assert_eq!(node.score_sum, pool.iter().map(|score| u16::from(*score)).sum::<u16>());
            assert_eq!(n.slashed, n.slashes > 0);
            assert!(n.held <= n.present && n.kept <= n.present && n.busy >= n.wasted);
            // Of groups that were drawn among few idle nodes nobody is scored or slashed.
            let scored = grouped == 0 || !n.scores.is_empty();
            // A node that answers at all is right sometimes; one that never is has nothing but zeros.
            match n.kind {
                Kind::Cheat | Kind::Withholding => {
                    assert!(n.scores.iter().all(|score| *score == 0) && (n.slashes > 0 || !scored), "{n:?}");
                }
                Kind::Steady | Kind::Slow => assert_eq!(n.slashes, 0, "{n:?}"),
                // It works honestly at known comparisons.
                Kind::Sly => {
                    assert!(n.scores.iter().any(|score| *score > 0), "{n:?}");
                    assert!(grouped > 0 && sampled > 0 || (n.slashes > 0) == (sampled > 0), "{choice:?}, seed {seed}: {n:?}");
                }
                _ => {}
            }
        }
        let cheats = || r.nodes.iter().filter(|n| matches!(n.kind, Kind::Cheat));
        assert!(cheats().any(|n| n.slashes > 0) && cheats().all(|n| n.slashes == 0 || n.wage() < 0.0));
        assert!(grouped > 0 || cheats().any(|n| n.gone) && cheats().all(|n| n.slashes > 0));
        assert!(r.rank_correlation() > 0.5, "{}", r.rank_correlation());
    }
}

#[test]
fn the_same_tasks_come_under_every_policy() {
    let usual = Profile { nodes: 30, tasks: 400, load: 200, grouped: 0, counted_once: true, named: true, ..Profile::default() };
    let nodes = fleet(&usual, 6);
    let come = |profile: Profile| -> Vec<(String, u8)> {
        let of = |task: TaskSpec| (format!("{:?}", TaskSpec { redundancy: 0, ..task.clone() }), task.redundancy);
        Source::made_up(&profile, &nodes, 6).map(of).collect()
    };
    let single = come(usual.clone());
    for (profile, redundancy) in
        [(Profile { sampled: 1_000, ..usual.clone() }, 1), (Profile { grouped: 1_000, ..usual.clone() }, 2)]
    {
        let same: Vec<_> = single.iter().map(|(task, _)| (task.clone(), redundancy)).collect();
        assert_eq!(come(profile), same);
    }
    // Unless three nodes count as three times the work: then they come more slowly.
    let last = |profile: &Profile| Source::made_up(profile, &nodes, 6).last().unwrap().at;
    let counted = Profile { grouped: 1_000, counted_once: false, ..usual.clone() };
    assert!(last(&counted) > 2 * last(&usual), "{} against {}", last(&counted), last(&usual));
}

#[test]
fn what_cannot_be_validated_runs_on_a_single_node() {
    // At most a 64th of the least stake may be a fee: with fees 200,000 times as high, few are below.
    let profile = Profile { nodes: 30, tasks: 500, grouped: 0, sampled: 1_000, price: 200_000, ..Profile::default() };
    let run = |profile: &Profile| simulate(profile, Policy::Contract, &[], 2);
    let (dear, cheap) = (run(&profile), run(&Profile { price: 1, ..profile.clone() }));
    assert_eq!((dear.refusals.get("FeeTooHigh"), cheap.refusals.get("BadUnits")), (None, None));
    assert!(dear.sampled > 0 && dear.sampled < cheap.sampled / 2, "{} of {}", dear.sampled, cheap.sampled);
    // Four of five tasks are for images, nine of ten of these for at most four; of the others few name a GPU.
    assert!((320..400).contains(&cheap.sampled), "{}", cheap.sampled);
    let named = run(&Profile { named: true, price: 1, ..profile });
    assert!((430..500).contains(&named.sampled), "{}", named.sampled);
    for report in [&dear, &cheap, &named] {
        assert_eq!((report.asked, report.refused, report.refusals.get("GpuNotListed")), (500, 0, None));
    }
}

#[test]
fn the_same_seed_gives_the_same_and_another_something_else() {
    let profile = Profile { nodes: 30, tasks: 800, ..Profile::default() };
    let show = |seed| format!("{:?}", simulate(&profile, Policy::Contract, &[], seed));
    assert_eq!(show(5), show(5));
    assert_ne!(show(5), show(6));
}

#[test]
fn without_h_nobody_is_excluded_and_cheats_are_slashed() {
    let profile = Profile { nodes: 40, tasks: 6_000, mix: [0, 0, 200, 100, 200, 0, 0], grouped: 300, ..Profile::default() };
    let off = [&muster_sim::network::study::WITHOUT_H[..], &[("slashImages", 1)]].concat();
    let off = simulate(&profile, Policy::Contract, &off, 4);
    assert!(off.exclusions.is_empty() && off.nodes.iter().all(|n| n.excluded == 0));
    let on = simulate(&profile, Policy::Contract, &[("slashImages", 1)], 4);
    assert!(!on.exclusions.is_empty());
    // Of nodes' starts, alone or with two others.
    let late = |r: &Report| r.nodes.iter().map(|n| n.timed_out).sum::<u64>() as f64 / r.started as f64;
    assert!(late(&on) < late(&off), "{} against {}", late(&on), late(&off));
    let cheats = || on.nodes.iter().filter(|n| n.kind == Kind::Cheat);
    assert!(cheats().count() > 2 && cheats().all(|n| n.slashed));
}

/// Draws repeatedly among the same idle nodes; returns how often each was chosen, and its weight.
fn draws(policy: Policy, count: u64) -> (Vec<u64>, Vec<u64>) {
    let mut ledger = Ledger::new(Memory::quick(11), policy, &[("scarce", 0)]).unwrap();
    const NODES: u32 = 24;
    for i in 0..NODES {
        let stake = u128::from(LEAST_STAKE) * u128::from(1 + i % 7 * (i % 7) * 3) * u128::from(STAKE_UNIT);
        let (gpu, vram) = (["A", "B", "C"][i as usize % 3], 16 + 8 * (i % 3) as u16);
        let stake = stake + u128::from(ledger.group_fee(gpu, vram)) * u128::from(STAKE_UNIT);
        let call = joinCall { gpuName: gpu.into(), vram, models: vec![] };
        ledger.call(Party::Operator(i), stake, &call).unwrap();
        for _ in 0..i % 5 {
            ledger.record_score(i + 1, [10, 5, 2][i as usize % 3]);
        }
    }
    let spec = IMuster::TaskSpec {
        kind: 0,
        units: 1,
        vram: 0,
        gpu: 0,
        redundancy: 0,
        flags: 0,
        inputDigest: [0; 32].into(),
        models: vec![],
    };
    let mut chosen = vec![0; NODES as usize];
    let mut events = Vec::new();
    let mut block = 1;
    for task in 1..=count {
        block += 1;
        ledger.set_time(BEGINNING + task, block);
        ledger.call(Party::Application(0), 1_000_000, &createTaskCall { spec: spec.clone() }).unwrap();
        let node = loop {
            block += 1;
            ledger.set_time(BEGINNING + task, block);
            ledger.dispatch();
            ledger.take_events(&mut events);
            let started = events.iter().find_map(|e| match e {
                Event::Started { node, .. } => Some(*node),
                _ => None,
            });
            if let Some(node) = started {
                break node;
            }
        };
        chosen[node as usize - 1] += 1;
        ledger.call(Party::Operator(node - 1), 0, &submit(task)).unwrap();
    }
    let mut weight = |number| ledger.call(Party::Keeper, 0, &weightOfCall { number, spec: spec.clone() }).unwrap().weight;
    let weights = (1..=NODES).map(&mut weight).collect();
    (chosen, weights)
}

fn chi_square(counts: &[u64], weights: &[u64]) -> f64 {
    let all: u64 = counts.iter().sum();
    let sum: f64 = weights.iter().map(|&w| w as f64).sum();
    let terms = counts.iter().zip(weights).map(|(&n, &w)| {
        let expected = all as f64 * w as f64 / sum;
        (n as f64 - expected) * (n as f64 - expected) / expected
    });
    terms.sum()
}

/// The 0.9999 quantile of chi-square with 23 degrees of freedom.
const LIMIT: f64 = 57.1;

#[test]
fn the_contract_and_the_exact_choice_follow_the_same_weights() {
    let (contract, weights) = draws(Policy::Contract, 12_000);
    let (exact, same) = draws(Policy::exact(Merit::Weight, 5), 12_000);
    assert_eq!(weights, same);
    assert!(chi_square(&contract, &weights) < LIMIT, "{contract:?}");
    assert!(chi_square(&exact, &weights) < LIMIT, "{exact:?}");
    let (uniform, _) = draws(Policy::exact(Merit::Uniform, 5), 12_000);
    assert!(chi_square(&uniform, &[1; 24]) < LIMIT, "{uniform:?}");
    // The test tells them apart.
    assert!(chi_square(&contract, &[1; 24]) > 2.0 * LIMIT);
    assert!(chi_square(&uniform, &weights) > 2.0 * LIMIT);
}

fn command(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_muster-sim")).arg("network").args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

fn data(name: &str) -> String {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../script/demo-data")).join(name).to_str().unwrap().to_owned()
}

#[test]
fn traces_are_replayed() {
    let (requests, nodes) = (data("requests.csv"), data("nodes.csv"));
    let out = folder("network-trace");
    let (ok, text) = command(&["--requests", &requests, "--nodes", &nodes, "--out", out.to_str().unwrap()]);
    assert!(ok && text.contains("tasks asked for") && text.contains("waiting time, 99th percentile"), "{text}");
    assert!(fs::read_to_string(out.join("network-nodes.csv")).unwrap().lines().count() > 5);
}

#[test]
fn wrong_traces_are_refused_with_file_line_and_reason() {
    let (requests, nodes) = (data("requests.csv"), data("nodes.csv"));
    let bad = folder("network-bad");
    fs::create_dir_all(&bad).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = bad.join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let heading = "gmt_create,predict_status,exec_time_seconds,groupId,num_images_per_prompt,num_inference_steps,\
                   checkpoint_model_version_id,num_lora";
    let good = "2024-11-15 16:57:50,SUCCEED,32,G0,1,30,M1,0";
    for (text, reason) in [
        (String::new(), ": it is empty".to_string()),
        (format!("{heading}\n"), ": there are no rows in it".into()),
        (format!("{}\n{good}\n", heading.replace("num_lora", "loras")), ":1: the heading has no column num_lora".into()),
        (
            format!("{heading}\n{good}\n{}\n", good.replace(",32,", ",NaN,")),
            ":3: exec_time_seconds is NaN; it can be from 0 to 1000000".into(),
        ),
        (
            format!("{heading}\n{}\n", good.replace(",30,", ",-30,")),
            ":2: num_inference_steps is -30; it can be from 1 to 10000".into(),
        ),
        (format!("{heading}\n{}\n", good.replace(",30,", ",1e99,")), ":2: num_inference_steps is 1e99;".into()),
        (format!("{heading}\n{}\n", good.replace("SUCCEED", "PERHAPS")), ":2: predict_status is \"PERHAPS\"".into()),
        (format!("{heading}\n{good}\n{good},1\n"), ":3: 9 fields; the heading has 8".into()),
        (format!("{heading}\n{}\n", good.replace("11-15", "13-15")), ":2: gmt_create is \"2024-13-15 16:57:50\"".into()),
        (format!("{heading}\n{good}\n{}\n", good.replace("2024", "2099")), ": at --speed 1 its requests come over".into()),
    ] {
        let wrong = file("requests.csv", text.as_bytes());
        let (ok, text) = command(&["--requests", &wrong, "--nodes", &nodes]);
        assert!(!ok && text.contains(&format!("error: {wrong}{reason}")), "{reason}: {text}");
    }
    for (bytes, reason) in [
        (&b""[..], ": it is empty"),
        (b"sn,gpu,model\n", ": there are no rows in it"),
        (b"sn,count\na,2\n", ":1: the heading has no column model"),
        (b"sn,gpu,model\na,2,T5\nb,1,T5\n", ": 3 GPUs are left out, because the VRAM of these is not known: T5 (3)"),
        (
            b"sn,gpu,model\na,2,A100 60GB\n",
            ": 2 GPUs are left out, because the VRAM of these is not known: A100 60GB says 60 GiB, but that card comes with 40 or 80 (2)",
        ),
        (b"sn,gpu,model\na,1000000,T4\n", ":2: gpu is 1000000; it can be from 1 to 64"),
        (b"sn,gpu,model\na,two,T4\n", ":2: gpu is \"two\", which is not a number"),
        (b"sn,gpu,model\na,2,\xff\n", ":2: not UTF-8"),
    ] {
        let wrong = file("nodes.csv", bytes);
        let (ok, text) = command(&["--requests", &requests, "--nodes", &wrong]);
        assert!(!ok && text.contains(&format!("error: {wrong}{reason}")), "{reason}: {text}");
    }
    let (ok, text) = command(&["--requests", "/nowhere.csv", "--nodes", &nodes]);
    assert!(!ok && text.contains("error: /nowhere.csv: "), "{text}");
    let (ok, text) = command(&["--requests", &requests, "--nodes", &nodes, "--gpus", "100000"]);
    assert!(!ok && text.contains("--gpus is 100000;"), "{text}");
}

#[test]
fn wrong_options_are_refused_with_a_reason() {
    let made_up = ["--tasks", "10", "--fleet", "5"];
    for (more, reason) in [
        (&["--set", "tau=0"][..], "tau can't be 0; it can be from 1 to 604800"),
        (&["--set", "nothing=1"], "there is no parameter nothing"),
        (&["--set", "tau"], "it should be like tau=600"),
        (&["--set", "tau=-1"], "\"-1\" is not a whole number"),
        (&["--choice", "uniform", "--set", "drawDelay=0"], "drawDelay can't be 0"),
        (&["--choice", "best"], "invalid value 'best'"),
        (&["--load", "-1"], "--load is -1; it can be from 0 to 100"),
        (&["--load", "0"], "--load is 0"),
        (&["--load", "NaN"], "--load is NaN; it can be from 0 to 100"),
        (&["--groups", "2"], "--groups is 2; it can be from 0 to 1"),
        (&["--sampled", "-0.1"], "--sampled is -0.1; it can be from 0 to 1"),
        (&["--seed", "4294967296"], "4294967296 is not in 0..4294967296"),
        (&["--threads", "1000000"], "it can be from 0 to 1024"),
        (&["--quick"], "--quick"),
        (&["--speed", "2"], "--requests"),
        (&["--nonsense"], "unexpected argument '--nonsense'"),
    ] {
        let (ok, text) = command(&[&made_up[..], more].concat());
        assert!(!ok && text.contains("error: ") && text.contains(reason), "{more:?}: {text}");
    }
    for (arguments, reason) in [
        (&["--tasks", "10"][..], "--fleet"),
        (&["--fleet", "10"], "--tasks"),
        (&["--tasks", "0", "--fleet", "5"], "0 is not in 1..=20000000"),
        (&["--tasks", "99999999999", "--fleet", "5"], "99999999999 is not in 1..=20000000"),
        (&["--tasks", "10", "--fleet", "99999999"], "99999999 is not in 1..=1000000"),
        (&["--tasks", "20000000", "--fleet", "1", "--load", "0.001"], "at --load 0.001 so few nodes would have so many tasks"),
        (&["--requests", "requests.csv"], "--nodes"),
        (&["--requests", "requests.csv", "--nodes", "nodes.csv", "--limit", "0"], "--limit"),
    ] {
        let (ok, text) = command(arguments);
        assert!(!ok && text.contains("error: ") && text.contains(reason), "{arguments:?}: {text}");
    }
    let (ok, help) = command(&["--help"]);
    assert!(ok && help.contains("--requests") && help.contains("--set"), "{help}");
}

#[test]
fn extreme_workloads_end() {
    for arguments in [
        &["--tasks", "1", "--fleet", "1"][..],
        &["--tasks", "300", "--fleet", "1", "--load", "100"],
        &["--tasks", "2", "--fleet", "3", "--load", "0.001", "--groups", "1"],
        &["--tasks", "300", "--fleet", "9", "--sampled", "1", "--set", "sampleBps=10000", "--set", "scorePool=3"],
        &["--tasks", "300", "--fleet", "2", "--sampled", "1", "--groups", "0", "--set", "sampleBps=10000"],
        &["--tasks", "300", "--fleet", "3", "--groups", "1", "--set", "holdTime=0", "--set", "slashTimes=0"],
        &["--tasks", "300", "--fleet", "9", "--groups", "1", "--load", "20", "--set", "holdTime=255", "--set", "openMost=1"],
        &["--tasks", "300", "--fleet", "9", "--set", "minPrice=18446744073709551615"],
        &["--tasks", "300", "--fleet", "9", "--set", "alphaMilli=0", "--set", "drawDelay=64", "--set", "limitMax=65535"],
        &["--tasks", "300", "--fleet", "9", "--set", "drawDelay=0", "--without-h", "--set", "limitMin=3600"],
    ] {
        let out = folder("network-extreme");
        let (ok, text) = command(&[arguments, &["--out", out.to_str().unwrap()]].concat());
        assert!(ok && text.contains("tasks asked for"), "{arguments:?}: {text}");
    }
}

/// The digest of a small run's output at its last check. Another machine, or any change that is not meant to change
/// results, must write the same.
const DIGEST: &str = "0xd6816f47b53c1a8bce09d9d75923f44f6194007e29a04d24ad3566bd781fd386";

#[test]
fn a_small_run_writes_the_same_everywhere() {
    let out = folder("network-small");
    let (ok, text) = command(&["--tasks", "2000", "--fleet", "50", "--seed", "9", "--out", out.to_str().unwrap()]);
    assert!(ok, "{text}");
    let written: Vec<u8> =
        ["network.csv", "network-nodes.csv"].iter().flat_map(|name| fs::read(out.join(name)).unwrap()).collect();
    assert_eq!(keccak256(written).to_string(), DIGEST);
}
