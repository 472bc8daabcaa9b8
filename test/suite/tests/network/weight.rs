//! Selection follows the weights, draw by draw, through the compiled programs.

use std::collections::BTreeSet;

use alloy_primitives::{B256, U256};
use alloy_sol_types::{SolCall, SolEvent};
use muster_devnode::chain::Mined;
use muster_model::proof;
use muster_model::system::System;
use muster_model::validated::ANSWER;
use muster_model::world::{commitment, parameter, spec, who, Dice, OWNER, TOKEN};
use muster_protocol::IMuster::{self, *};
use muster_tests::live::{Live, Site};

/// Draws.
const DRAWS: usize = 5_000;
/// Groups that are judged before.
const GROUPS: usize = 32;
/// Nodes.
const NODES: usize = 24;
/// The creator of the tasks.
const APP: u64 = 900;
/// Draws that a task is given. One in ten stays undecided, so this many in a row mean that the network stands still.
const TRIES: usize = 50;

/// A node as the test knows it, in plain numbers.
#[derive(Clone)]
struct Peer {
    tokens: f64,
    h: f64,
    at: u64,
    scores: Vec<f64>,
    models: BTreeSet<u64>,
    used: BTreeSet<u64>,
    vram: u16,
    gpu: u32,
    task: Option<u64>,
}

/// A rule of selection: the stated one, or one with a mistake.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    Stated,
    IgnoresStakes,
    IgnoresReliability,
    IgnoresScores,
    IgnoresModels,
}

impl Peer {
    fn reliability(&self, now: u64) -> f64 {
        1.0 - (1.0 - self.h) * (-((now - self.at) as f64) / 1_800.0).exp()
    }

    /// W by the QoS and the dispatch document.
    fn weight(&self, now: u64, largest: f64, wanted: &[u64], rule: Rule) -> f64 {
        let mut h = self.reliability(now);
        if h < 0.1 {
            return 0.0;
        }
        if rule == Rule::IgnoresReliability {
            h = 1.0;
        }
        let plain = self.scores.is_empty() || rule == Rule::IgnoresScores;
        let mean = if plain { 5.0 } else { self.scores.iter().sum::<f64>() / self.scores.len() as f64 };
        let q = (mean / 10.0).max(0.1) * h;
        let s = if rule == Rule::IgnoresStakes { 1.0 } else { (self.tokens / largest).sqrt() };
        let share = |set: &BTreeSet<u64>| wanted.iter().filter(|m| set.contains(m)).count() as f64 / wanted.len().max(1) as f64;
        let m = if rule == Rule::IgnoresModels { 1.0 } else { 1.0 + 0.7 * share(&self.models) + 0.3 * share(&self.used) };
        m * s * q / (s + q)
    }
}

/// Sums over draws whose probabilities differ: how often each node came, how often it should have, and the covariance.
struct Tally {
    rule: Rule,
    /// Only draws for tasks with models count.
    models: bool,
    seen: Vec<f64>,
    expected: Vec<f64>,
    covariance: Vec<Vec<f64>>,
}

impl Tally {
    fn new((rule, models): (Rule, bool)) -> Self {
        Self { rule, models, seen: vec![0.0; NODES], expected: vec![0.0; NODES], covariance: vec![vec![0.0; NODES]; NODES] }
    }

    fn add(&mut self, p: &[f64], chosen: usize) {
        self.seen[chosen] += 1.0;
        for i in 0..NODES {
            self.expected[i] += p[i];
            self.covariance[i][i] += p[i];
            for j in 0..NODES {
                self.covariance[i][j] -= p[i] * p[j];
            }
        }
    }

    /// d' V^-1 d over all nodes but one, d the differences and V their covariance: chi-square with as many degrees as nodes
    /// are left. Nodes that should come fewer than five times are put together.
    fn chi_square(&self) -> (f64, usize) {
        let rare: Vec<usize> = (0..NODES).filter(|&i| self.expected[i] < 5.0).collect();
        let mut cells: Vec<Vec<usize>> = (0..NODES).filter(|i| !rare.contains(i)).map(|i| vec![i]).collect();
        let rest: f64 = rare.iter().map(|&i| self.expected[i]).sum();
        if rest >= 5.0 {
            cells.push(rare);
        }
        // The differences of all cells add up to nothing, so one follows from the others.
        cells.remove(0);
        let k = cells.len();
        let sum = |cell: &[usize], f: &dyn Fn(usize) -> f64| cell.iter().map(|&i| f(i)).sum::<f64>();
        let d: Vec<f64> = cells.iter().map(|c| sum(c, &|i| self.seen[i] - self.expected[i])).collect();
        let mut rows: Vec<Vec<f64>> = cells
            .iter()
            .zip(&d)
            .map(|(a, d)| cells.iter().map(|b| sum(a, &|i| sum(b, &|j| self.covariance[i][j]))).chain([*d]).collect())
            .collect();
        for i in 0..k {
            let best = (i..k).max_by(|&a, &b| rows[a][i].abs().total_cmp(&rows[b][i].abs())).unwrap();
            rows.swap(i, best);
            let pivot = rows[i].clone();
            for (_, row) in rows.iter_mut().enumerate().filter(|(r, _)| *r != i) {
                let factor = row[i] / pivot[i];
                row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
            }
        }
        let statistic: f64 = (0..k).map(|i| d[i] * rows[i][k] / rows[i][i]).sum();
        assert!(statistic.is_finite(), "the covariance is singular");
        (statistic, k)
    }
}

/// The value a chi-square of `df` degrees of freedom exceeds once in a thousand (Wilson-Hilferty).
fn limit(df: usize) -> f64 {
    let d = df as f64;
    let c = 2.0 / (9.0 * d);
    d * (1.0 - c + 3.090_232 * c.sqrt()).powi(3)
}

struct Fleet {
    live: Live,
    peers: Vec<Peer>,
}

impl Fleet {
    fn send<C: SolCall>(&mut self, from: [u8; 20], value: u128, call: C) -> Mined {
        let mined = self.live.send(from, value, call.abi_encode());
        assert!(mined.ok(), "{}: {}", C::SIGNATURE, mined.outcome.output);
        mined
    }

    fn set(&mut self, name: &str, value: u64) {
        self.send(OWNER, 0, setParameterCall { parameter: parameter(name), value: U256::from(value) });
    }

    fn now(&self) -> u64 {
        System::clock(&self.live).0
    }

    /// Creates a task and draws it until it is placed: its id and the node's index.
    fn draw(&mut self, wanted: &IMuster::TaskSpec) -> (u64, usize) {
        let mut mined = self.send(who(APP), TOKEN, createTaskCall { spec: wanted.clone() });
        for _ in 0..TRIES {
            let found = mined.outcome.logs.iter().find_map(|log| TaskStarted::decode_log(log).ok());
            if let Some(started) = found {
                let i = started.node as usize - 1;
                self.peers[i].used = wanted.models.iter().copied().collect();
                self.peers[i].task = Some(started.id);
                return (started.id, i);
            }
            mined = self.send(who(APP), 0, dispatchCall { count: 1 });
        }
        panic!("{TRIES} draws did not place {wanted:?}");
    }

    /// Ends a node's task by an answer, which leaves H as it is here: an error report would have the node rest.
    fn free(&mut self, i: usize) {
        let id = self.peers[i].task.take().expect("busy");
        self.send(who(i as u64 + 1), 0, submitCall { id, resultDigest: [9; 32].into() });
    }

    /// Has three nodes run a task and be judged; the first to answer is given 10, the second 5, the third 2. Each has a speed of its own.
    fn judge(&mut self) {
        let image = IMuster::TaskSpec { kind: 0, redundancy: 2, ..spec(0, &[]) };
        let mut mined = self.send(who(APP), TOKEN, createTaskCall { spec: image });
        let mut formed = None;
        for _ in 0..TRIES {
            formed = mined.outcome.logs.iter().find_map(|log| GroupFormed::decode_log(log).ok());
            if formed.is_some() {
                break;
            }
            mined = self.send(who(APP), 0, dispatchCall { count: 1 });
        }
        let formed = formed.expect("a group");
        assert!(formed.scored);
        let mut nodes = formed.nodes.clone();
        nodes.sort_unstable_by_key(|n| n * 7 % NODES as u32);
        let mut value = B256::ZERO;
        value[..8].fill(1);
        for &n in &nodes {
            self.live.pass(1, 1);
            self.send(who(n.into()), 0, commitCall { id: formed.id, commitment: commitment(formed.id, n, ANSWER, value, value) });
        }
        for &node in &nodes {
            let reveal = revealCall { id: formed.id, group: formed.group, node, kind: ANSWER, value, salt: value };
            self.send(who(APP), 0, reveal);
        }
        for (&n, score) in nodes.iter().zip([10.0, 5.0, 2.0]) {
            let p = &mut self.peers[n as usize - 1];
            p.scores.push(score);
            p.used.clear();
        }
    }

    /// Lets some nodes miss their deadlines.
    fn fail(&mut self, count: usize) {
        let failed: Vec<(u64, usize)> = (0..count).map(|_| self.draw(&spec(0, &[]))).collect();
        self.live.pass(1, 121);
        for (id, i) in failed {
            self.send(who(APP), 0, expireCall { node: i as u32 + 1, id });
            let now = self.now();
            let p = &mut self.peers[i];
            (p.h, p.at, p.task) = (p.reliability(now) * 0.3, now, None);
        }
    }

    fn probabilities(&self, wanted: &IMuster::TaskSpec, rule: Rule) -> Vec<f64> {
        let (now, largest) = (self.now(), self.peers.iter().map(|p| p.tokens).fold(0.0, f64::max));
        let fits = |p: &Peer| if wanted.gpu == 0 { p.vram >= wanted.vram } else { p.gpu == wanted.gpu };
        let weigh = |p: &Peer| if p.task.is_none() && fits(p) { p.weight(now, largest, &wanted.models, rule) } else { 0.0 };
        let mut w: Vec<f64> = self.peers.iter().map(weigh).collect();
        let local: Vec<bool> = self.peers.iter().map(|p| wanted.models.iter().any(|m| p.models.contains(m))).collect();
        if (0..NODES).any(|i| local[i] && w[i] > 0.0) {
            (0..NODES).filter(|&i| !local[i]).for_each(|i| w[i] = 0.0);
        }
        let sum: f64 = w.iter().sum();
        w.iter().map(|x| x / sum).collect()
    }
}

/// 5,000 draws among nodes with stakes from 400 to 4,000,000, mixed H, scores and models, that go busy and come back, for
/// tasks with and without models, VRAM and a required GPU. Every probability is worked out here. A chi-square at 0.1 %; the
/// same draws must fail it under each of four rules with a mistake. Seeds are fixed, and so are all hashes.
#[tokio::test(flavor = "multi_thread")]
async fn selection_follows_weight() {
    let Some(site) = Site::new().await else {
        return println!(
            "selection_follows_weight: skipped, because RPC_URL names a node that would be sent 10,000 transactions"
        );
    };
    let mut f = Fleet { live: site.fresh(), peers: Vec::new() };
    f.set("drawDelay", 0);
    f.set("boostPpm", 0);
    let mut dice = Dice(2_026);
    for i in 0..NODES {
        let tokens = match i {
            0 => 400,
            1 => 4_000_000,
            _ => (400.0 * 10_000f64.powf(dice.unit())) as u128,
        };
        let vram = [24u16, 48, 80][i % 3];
        // A quarter holds all models. 1 and 2 have so few holders that all are looked at; of 3 and all of them there are many.
        let models: Vec<u64> = (1..9).filter(|m| i % 4 == 1 || (*m == 1 && i % 6 == 0) || (*m == 3 && i % 6 != 5)).collect();
        let value = tokens * TOKEN + f.live.group_fee("card", vram);
        let mined = f.send(who(i as u64 + 1), value, joinCall { gpuName: "card".into(), vram, models: models.clone() });
        let joined = mined.outcome.logs.iter().find_map(|log| NodeJoined::decode_log(log).ok()).expect("joined");
        f.peers.push(Peer {
            tokens: tokens as f64,
            h: 1.0,
            at: f.now(),
            scores: Vec::new(),
            models: models.into_iter().collect(),
            used: BTreeSet::new(),
            vram,
            gpu: joined.group,
            task: None,
        });
    }
    // A few have no score, others up to as many as the likeliest are drawn.
    for _ in 0..GROUPS {
        f.judge();
    }
    let scored = |f: &Fleet, n: usize| f.peers.iter().filter(|p| p.scores.len() >= n).count();
    assert!(scored(&f, 1) < NODES && scored(&f, 2) > NODES / 2, "{:?}", f.peers.iter().map(|p| &p.scores).collect::<Vec<_>>());
    f.fail(9);
    f.live.pass(1, 600);
    f.fail(7);
    f.live.pass(1, 400);
    let hs: Vec<f64> = f.peers.iter().map(|p| p.reliability(f.now())).collect();
    assert!(hs.iter().any(|h| *h < 0.6) && hs.contains(&1.0), "{hs:?}");
    // From here on no task misses its deadline.
    f.set("grace", 7_200);

    let mistakes = [
        (Rule::IgnoresStakes, false),
        (Rule::IgnoresReliability, false),
        (Rule::IgnoresScores, false),
        (Rule::IgnoresModels, true),
    ];
    let mut tallies: Vec<Tally> =
        [(Rule::Stated, false), (Rule::Stated, true)].into_iter().chain(mistakes).map(Tally::new).collect();
    let gpu = f.peers[2].gpu;
    let required = IMuster::TaskSpec { gpu, ..spec(0, &[]) };
    let all = spec(0, &[1, 2, 3, 4, 5, 6, 7, 8]);
    let kinds = [spec(0, &[]), spec(0, &[1, 2]), spec(40, &[]), all.clone(), required, all];
    for n in 0..DRAWS {
        let wanted = &kinds[dice.below(kinds.len() as u64) as usize];
        let shares: Vec<Vec<f64>> = tallies.iter().map(|t| f.probabilities(wanted, t.rule)).collect();
        let (_, i) = f.draw(wanted);
        let counts = |t: &Tally| !t.models || !wanted.models.is_empty();
        tallies.iter_mut().zip(&shares).filter(|(t, _)| counts(t)).for_each(|(t, p)| t.add(p, i));
        assert!(shares[0][i] > 0.0, "node {} had no weight", i + 1);
        // Some stay busy for a while: up to six at once, so that every task finds an idle node.
        let busy: Vec<usize> = (0..NODES).filter(|&i| f.peers[i].task.is_some()).collect();
        if busy.len() > 6 || dice.below(4) > 0 {
            f.free(i);
        }
        if dice.below(3) == 0 {
            let other = busy[dice.below(busy.len() as u64) as usize];
            if f.peers[other].task.is_some() {
                f.free(other);
            }
        }
        if n % 100 == 99 {
            f.live.pass(1, 7);
        }
    }
    for t in &tallies {
        let (chi, df) = t.chi_square();
        let draws: f64 = t.seen.iter().sum();
        let (tasks, shown, limit_shown) =
            (if t.models { "those with models" } else { "all" }, format!("{chi:.1}"), format!("{:.1}", limit(df)));
        let rule = format!("{:?}", t.rule);
        proof(
            "choice",
            &[
                ("rule", &rule),
                ("tasks", &tasks),
                ("draws", &draws),
                ("chi-square", &shown),
                ("degrees", &df),
                ("limit", &limit_shown),
            ],
        );
        assert_eq!(chi < limit(df), t.rule == Rule::Stated, "{:?}", t.rule);
    }
    // The lens gives the same weights.
    let largest = f.peers.iter().map(|p| p.tokens).fold(0.0, f64::max);
    for i in 0..NODES {
        let view = f.live.view(weightOfCall { number: i as u32 + 1, spec: kinds[1].clone() });
        let w = f.peers[i].weight(f.now(), largest, &kinds[1].models, Rule::Stated);
        let fit = f.peers[i].task.is_none();
        assert_eq!(view.eligible, fit);
        assert!(!fit || (view.weight as f64 / 1e18 - w).abs() < 1e-6, "{} and {w}", view.weight);
    }
}
