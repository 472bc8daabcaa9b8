//! The choice follows the weights: chi-square at 0.1 % on draws with seeds fixed beforehand.
//!
//! Expected probabilities are worked out here in f64 from the formulas of the source documents, not with
//! muster_core. Every test is run against perturbed weights too, and must fail on them.

use alloy_primitives::keccak256;
use alloy_sol_types::SolValue;
use muster_core::id::{NodeId, TaskId};
use muster_core::qos::highest_qos;
use muster_core::record::{Node, Order};
use muster_core::weight::class_bound;
use muster_model::meter::Meter;
use muster_model::proof;
use muster_model::world::*;
use muster_protocol::flow::draw::{Candidates, Draw, Members, Rng};
use muster_protocol::layout::node_slot;
use muster_protocol::store::node::NodeHandle;
use muster_protocol::store::sampler::{Among, Field, Scope};
use muster_protocol::store::task::{ModelSet, Task};
use muster_protocol::IMuster::{joinCall, overviewCall, purgeCall, quitCall, reportDownloadedCall, weightOfCall};
use muster_protocol::{Host, Network};
use std::collections::{BTreeMap, BTreeSet};

/// The value a chi-square of `df` degrees of freedom exceeds once in a thousand (Wilson-Hilferty;
/// within 0.3 % of the tables from 5 degrees on).
fn limit(df: usize) -> f64 {
    let d = df as f64;
    let c = 2.0 / (9.0 * d);
    d * (1.0 - c + 3.090_232 * c.sqrt()).powi(3)
}

/// Sum of (observed - expected)^2 / expected, and the cells; nodes that should come fewer than five
/// times are put together.
fn chi_square(seen: &BTreeMap<u32, u64>, expected: &BTreeMap<u32, f64>) -> (f64, usize) {
    let draws: u64 = seen.values().sum();
    let sum: f64 = expected.values().sum();
    assert!(seen.keys().all(|n| expected.get(n).is_some_and(|&p| p > 0.0)), "a node without weight was drawn");
    let (mut chi, mut cells, mut rest) = (0.0, 0, (0.0, 0.0));
    for (n, w) in expected {
        let (e, o) = (w / sum * draws as f64, seen.get(n).copied().unwrap_or(0) as f64);
        if e < 5.0 {
            rest = (rest.0 + e, rest.1 + o);
        } else {
            chi += (o - e) * (o - e) / e;
            cells += 1;
        }
    }
    if rest.0 >= 5.0 {
        chi += (rest.1 - rest.0) * (rest.1 - rest.0) / rest.0;
        cells += 1;
    }
    (chi, cells - 1)
}

/// Passes with the true weights, and must not with those of every other node (by rank, so that both
/// halves weigh about the same) 5 % off.
fn judge(name: &str, seen: &BTreeMap<u32, u64>, expected: &BTreeMap<u32, f64>) {
    let draws: u64 = seen.values().sum();
    let (chi, df) = chi_square(seen, expected);
    let mut rank: Vec<_> = expected.iter().map(|(&n, &w)| (n, w)).collect();
    rank.sort_by(|a, b| b.1.total_cmp(&a.1));
    let biased: BTreeMap<u32, f64> =
        rank.iter().enumerate().map(|(i, &(n, w))| (n, if i % 2 == 0 { w * 1.05 } else { w })).collect();
    let (off, _) = chi_square(seen, &biased);
    let (shown, biased) = (format!("{chi:.1}"), format!("{off:.1}"));
    proof(
        "choice",
        &[
            ("state", &name),
            ("draws", &draws),
            ("chi-square", &shown),
            ("degrees", &df),
            ("limit", &format!("{:.1}", limit(df))),
            ("biased", &biased),
        ],
    );
    assert!(chi < limit(df), "{name}: {chi} at {df}");
    assert!(off > limit(df), "{name}: a bias of 5 % goes unseen: {off} at {df}");
}

/// A node as the test knows it, in plain numbers.
#[derive(Clone)]
struct Peer {
    tokens: f64,
    /// H at a time.
    h: f64,
    at: u64,
    scores: Vec<f64>,
    models: BTreeSet<u64>,
    used: BTreeSet<u64>,
    vram: u16,
    gpu: String,
}

impl Peer {
    /// W by the QoS and the dispatch document.
    fn weight(&self, now: u64, largest: f64, models: &[u64]) -> f64 {
        let h = 1.0 - (1.0 - self.h) * (-((now - self.at) as f64) / 1_800.0).exp();
        if h < 0.1 {
            return 0.0;
        }
        let mean = if self.scores.is_empty() { 5.0 } else { self.scores.iter().sum::<f64>() / self.scores.len() as f64 };
        let qos = (mean / 10.0).max(0.1) * h;
        let s = (self.tokens / largest).sqrt();
        let count = |set: &BTreeSet<u64>| models.iter().filter(|m| set.contains(m)).count() as f64;
        let m = if models.is_empty() {
            1.0
        } else {
            1.0 + 0.7 * count(&self.models) / models.len() as f64 + 0.3 * count(&self.used) / models.len() as f64
        };
        m * s * qos / (s + qos)
    }
}

struct Fleet {
    w: World,
    peers: BTreeMap<u32, Peer>,
    busy: BTreeSet<u32>,
}

impl Fleet {
    fn new() -> Fleet {
        let mut w = World::new();
        w.mem.keep_logs = false;
        w.set("drawDelay", 0);
        // Every success raises H, the queue's too, by which nodes are steered to here.
        w.set("boostPool", 0);
        Fleet { w, peers: BTreeMap::new(), busy: BTreeSet::new() }
    }

    fn join(&mut self, gpu: &str, vram: u16, tokens: u128, models: &[u64]) -> u32 {
        let n = self.w.join(self.peers.len() as u64 + 1, gpu, vram, models, tokens).unwrap();
        let peer = Peer {
            tokens: tokens as f64,
            h: 1.0,
            at: self.w.mem.now,
            scores: vec![],
            models: models.iter().copied().collect(),
            used: BTreeSet::new(),
            vram,
            gpu: gpu.into(),
        };
        self.peers.insert(n, peer);
        n
    }

    fn scores(&mut self, n: u32, scores: &[u8]) {
        for &s in scores {
            self.w
                .call(who(1), 0, |net| {
                    net.record_score(NodeId(n), s);
                    Ok(())
                })
                .unwrap();
            self.peers.get_mut(&n).unwrap().scores.push(s as f64);
        }
    }

    /// Skewed stakes, mixed GPUs, scores, and H through real timeouts at different times.
    fn mixed(nodes: u64, seed: u64, models: impl Fn(u64, &mut Dice) -> Vec<u64>) -> Fleet {
        let mut f = Fleet::new();
        let mut d = Dice(seed);
        for i in 0..nodes {
            // 400 to 4,000,000, log-uniform, with both ends present.
            let tokens = match i {
                0 => 400,
                1 => 4_000_000,
                _ => (400.0 * 10_000f64.powf(d.unit())) as u128,
            };
            let vram = [8, 16, 24, 24, 48, 80][d.below(6) as usize];
            let held = models(i, &mut d);
            let gpu = format!("card {}", d.below(3));
            let n = f.join(&gpu, vram, tokens, &held);
            let scores: Vec<u8> = (0..d.below(12)).map(|_| [10, 5, 2, 0][d.below(4) as usize]).collect();
            f.scores(n, &scores);
        }
        f
    }

    /// Makes a node run a task that times out, or succeed.
    fn work(&mut self, n: u32, fail: bool, models: &[u64]) {
        self.start(n, models);
        if fail {
            self.w.pass(1, 121);
            let id = self.w.node(n).task;
            self.w.call(who(0), 0, |net| net.expire(NodeId(n), TaskId(id))).unwrap();
            let h = self.h(n) * 0.3;
            self.set_h(n, h);
        } else {
            self.finish(n);
        }
        self.busy.remove(&n);
    }

    fn h(&self, n: u32) -> f64 {
        let p = &self.peers[&n];
        1.0 - (1.0 - p.h) * (-((self.w.mem.now - p.at) as f64) / 1_800.0).exp()
    }

    fn set_h(&mut self, n: u32, h: f64) {
        let now = self.w.mem.now;
        let p = self.peers.get_mut(&n).unwrap();
        (p.h, p.at) = (h, now);
    }

    /// Gives a node a task by keeping it queued until this node resumes: the node is paused first.
    fn start(&mut self, n: u32, models: &[u64]) {
        let p = &self.peers[&n];
        let group = muster_protocol::store::registry::gpu_group(&self.w.mem, p.gpu.as_bytes(), p.vram).unwrap();
        let others: Vec<u32> = self
            .peers
            .iter()
            .filter(|(&i, q)| i != n && q.gpu == p.gpu && q.vram == p.vram && !self.busy.contains(&i))
            .map(|(&i, _)| i)
            .collect();
        // The others of its group stand aside, so that the task waits for this node alone.
        let aside: Vec<u32> = others.into_iter().filter(|&i| self.w.node(i).status == 1).collect();
        for &i in aside.iter().chain([&n]) {
            self.w.call(who(i as u64), 0, |net| net.pause()).unwrap();
        }
        self.w.set("alphaMilli", 100_000);
        let wanted = muster_protocol::IMuster::TaskSpec { gpu: group.0, ..spec(0, models) };
        self.w.create(5_000, TOKEN, wanted).unwrap();
        for &i in [n].iter().chain(&aside) {
            self.w.call(who(i as u64), 0, |net| net.resume()).unwrap();
        }
        assert_eq!(self.w.node(n).status, 2);
        self.peers.get_mut(&n).unwrap().used = models.iter().copied().collect();
        self.busy.insert(n);
    }

    fn finish(&mut self, n: u32) {
        let id = self.w.node(n).task;
        self.w.call(who(n as u64), 0, |net| net.submit(TaskId(id), [0; 32])).unwrap();
        // Half the estimate of 60 s after H was last set, at the earliest.
        if self.w.mem.now - self.peers[&n].at >= 30 {
            let h = (self.h(n) + 0.15).min(1.0);
            self.set_h(n, h);
        }
        self.busy.remove(&n);
    }

    /// Draws again and again from the state as it is, and counts. Undecided draws are made again
    /// from another hash, as the network does.
    fn draws(&mut self, wanted: &muster_protocol::IMuster::TaskSpec, count: u64, salt: u64) -> (BTreeMap<u32, u64>, u64) {
        let net = Network::open(&mut self.w.mem).unwrap();
        let (order, models, _): (_, ModelSet, _) = net.order_for(wanted).unwrap();
        let mut task = Task { order, models, ..Task::default() };
        let mut seen = BTreeMap::new();
        let (mut undecided, mut decided, mut i) = (0, 0, 0u64);
        while decided < count {
            i += 1;
            task.order.id = TaskId(i & ((1 << 40) - 1));
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&salt.to_be_bytes());
            bytes[8..].copy_from_slice(&(i / 16).to_be_bytes());
            let hash = net.host.keccak(&bytes);
            let mut rng = Rng::new(net.host, hash, task.order.id);
            match net.draw(&task, &mut rng) {
                Draw::Node(handle, _) => {
                    *seen.entry(handle.id.0).or_default() += 1;
                    decided += 1;
                }
                Draw::Undecided => undecided += 1,
                Draw::Nobody => panic!("there are nodes"),
            }
        }
        (seen, undecided)
    }

    /// The weights of all nodes that may be drawn.
    fn expected(&self, wanted: &muster_protocol::IMuster::TaskSpec, gpu: Option<(&str, u16)>) -> BTreeMap<u32, f64> {
        let now = self.w.mem.now;
        let largest = self.peers.values().map(|p| p.tokens).fold(0.0, f64::max);
        let able: Vec<(u32, &Peer, f64)> = self
            .peers
            .iter()
            .filter(|(n, p)| {
                !self.busy.contains(n) && gpu.map_or(p.vram >= wanted.vram, |(name, v)| p.gpu == name && p.vram == v)
            })
            .map(|(&n, p)| (n, p, p.weight(now, largest, &wanted.models)))
            .filter(|x| x.2 > 0.0)
            .collect();
        let local = |p: &Peer| wanted.models.iter().any(|m| p.models.contains(m));
        let any = able.iter().any(|x| local(x.1));
        able.into_iter().filter(|x| !any || local(x.1)).map(|(n, _, w)| (n, w)).collect()
    }

    fn check(&mut self, name: &str, wanted: &muster_protocol::IMuster::TaskSpec, gpu: Option<(&str, u16)>, count: u64) {
        let (seen, undecided) = self.draws(wanted, count, count ^ name.len() as u64);
        let expected = self.expected(wanted, gpu);
        println!("{name}: {:.2} % undecided", undecided as f64 / (undecided + count) as f64 * 100.0);
        judge(name, &seen, &expected);
    }
}

#[test]
fn skewed_stakes_scores_and_reliability() {
    let mut f = Fleet::mixed(60, 11, |_, _| vec![]);
    f.check("stakes and scores", &spec(0, &[]), None, 200_000);
    for n in [3, 7, 8, 20, 33, 41] {
        f.work(n, true, &[]);
    }
    f.work(7, true, &[]);
    for n in [5, 7, 20] {
        f.work(n, false, &[]);
    }
    f.check("mixed H", &spec(0, &[]), None, 200_000);
    f.w.pass(1, 900);
    f.check("mixed H, later, 24 GiB", &spec(24, &[]), None, 200_000);
}

/// Below three quarters of 2^64, multiplying and cutting off alone would give every third number twice as often.
#[test]
fn random_numbers_below_a_large_number_are_without_bias() {
    let mem = muster_protocol::native::Memory::new();
    let mut rng = Rng::new(&mem, [3; 32], TaskId(1));
    let mut thirds = [0u32; 3];
    for _ in 0..9_000 {
        thirds[(rng.below(&mem, 3 << 62) % 3) as usize] += 1;
    }
    assert!(thirds.iter().all(|n| (2_850..=3_150).contains(n)), "{thirds:?}");
}

/// Where all stakes are equal the draw's bound follows from the best long-term score there is: half of the nodes have full
/// scores, and come out 1.5 times as often.
#[test]
fn equal_stakes_and_unequal_scores() {
    let mut f = Fleet::new();
    for _ in 0..10 {
        f.join("card", 24, 400, &[]);
    }
    for n in 1..=5 {
        f.scores(n, &[10; 50]);
    }
    f.check("equal stakes, half with full scores", &spec(0, &[]), None, 200_000);
}

/// A holder that a try met and rejected by weight leaves the draw undecided. If it were taken for "none seen", the draw would search among
/// 16 of the 40, which favours the light ones.
#[test]
fn a_holder_rejected_by_weight_is_a_holder_seen() {
    let mut f = Fleet::new();
    for _ in 0..40 {
        f.join("card", 24, 400, &[5]);
    }
    f.scores(1, &[10; 50]);
    for n in 2..=40 {
        f.scores(n, &[0; 10]);
        // As after timeouts: just above exclusion.
        let slot = node_slot(&f.w.mem, NodeId(n));
        let node: Node = f.w.mem.get(slot);
        f.w.mem.put(slot, &Node { h: 110_000_000_000_000_000, h_at: f.w.mem.now as u32, ..node });
        f.set_h(n, 0.11);
    }
    f.check("one good holder among 40", &spec(0, &[5]), None, 200_000);
}

#[test]
fn nodes_that_go_busy_and_come_back() {
    let mut f = Fleet::mixed(40, 12, |_, _| vec![]);
    let mut d = Dice(99);
    for round in 0..4u64 {
        for _ in 0..12 {
            let n = 1 + d.below(40) as u32;
            if f.busy.contains(&n) {
                f.finish(n);
            } else if f.w.node(n).status == 1 && !f.w.node(n).excluded {
                f.start(n, &[]);
            }
            f.w.pass(1, 1);
        }
        f.check(&format!("round {round}, {} busy", f.busy.len()), &spec(8, &[]), None, 200_000);
    }
    // The largest stake leaves: everyone's S changes.
    if f.busy.contains(&2) {
        f.finish(2);
    }
    f.w.call(who(2), 0, |n| n.quit()).unwrap();
    f.peers.remove(&2);
    f.check("without the whale", &spec(0, &[]), None, 200_000);
}

#[test]
fn small_sets_of_holders() {
    let mut f = Fleet::mixed(50, 13, |i, _| match i % 10 {
        0 => vec![1, 2, 3],
        1 => vec![2],
        2 => vec![3, 4],
        _ => vec![],
    });
    for n in [1, 2, 11] {
        f.work(n, false, &[2, 3]);
    }
    f.check("one rare model", &spec(0, &[4]), None, 200_000);
    f.check("a rare and a missing one", &spec(0, &[1, 9]), None, 200_000);
    f.check("none holds it", &spec(0, &[9]), None, 200_000);
    let mut busy = Fleet::mixed(50, 14, |i, _| if i < 12 { vec![1 + i % 2] } else { vec![] });
    for n in [1, 4, 6] {
        busy.start(n, &[1]);
    }
    busy.check("some holders busy", &spec(0, &[1, 2]), None, 200_000);
}

#[test]
fn popular_models() {
    let mut f = Fleet::mixed(80, 15, |_, d| {
        let mut held = vec![1, 2];
        if d.below(2) == 0 {
            held.push(3);
        }
        held
    });
    for n in [1, 5, 9, 13] {
        f.work(n, false, &[1]);
    }
    f.check("held by all", &spec(0, &[1]), None, 200_000);
    f.check("two of three held by all", &spec(0, &[1, 2, 3]), None, 200_000);
}

#[test]
fn required_gpus_and_sizes_up_to_the_largest() {
    let mut f = Fleet::new();
    let mut d = Dice(16);
    for i in 0..256u64 {
        let vram = if i == 255 { 960 } else { 1 + i as u16 * 3 };
        f.join("card", vram, 400 + d.below(3_000) as u128, &[]);
    }
    f.check("256 sizes, all", &spec(0, &[]), None, 200_000);
    f.check("256 sizes, from 500", &spec(500, &[]), None, 200_000);
    f.check("256 sizes, from 727", &spec(727, &[]), None, 200_000);
    let (seen, _) = f.draws(&spec(960, &[]), 100, 1);
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [256]);
    let mut g = Fleet::mixed(60, 17, |_, _| vec![]);
    let (name, vram) = (g.peers[&4].gpu.clone(), g.peers[&4].vram);
    for _ in 0..6 {
        g.join(&name, vram, 400 + d.below(40_000) as u128, &[]);
    }
    let group = muster_protocol::store::registry::gpu_group(&g.w.mem, name.as_bytes(), vram).unwrap();
    let wanted = muster_protocol::IMuster::TaskSpec { gpu: group.0, ..spec(960, &[]) };
    g.check("a required GPU", &wanted, Some((&name, vram)), 200_000);
}

#[test]
fn more_gpu_models_of_one_size_than_one_and_two_levels_hold() {
    let mut f = Fleet::new();
    let mut d = Dice(18);
    for (i, name) in (0..1_000).map(|i| format!("card {i}")).enumerate() {
        f.join(&name, 24, 400 + d.below(2_000) as u128, &[]);
        let at = i as u32 + 1;
        // The tree grows a level at 32 and at 962.
        if [31, 32, 33, 961, 962, 963].contains(&at) {
            let (seen, _) = f.draws(&spec(24, &[]), 40 * at as u64, at as u64);
            assert!(seen.len() as u32 > at * 98 / 100, "{} of {at} reached", seen.len());
        }
    }
    f.check("1,000 GPU models of one size", &spec(24, &[]), None, 400_000);
    // All but a few leave; the tree's sums follow.
    for n in (1..=1_000u32).filter(|n| n % 50 != 0) {
        f.w.call(who(n as u64), 0, |net| net.quit()).unwrap();
        f.peers.remove(&n);
    }
    f.check("20 of them left", &spec(0, &[]), None, 200_000);
    for n in (50..=1_000u32).step_by(50) {
        f.w.call(who(n as u64), 0, |net| net.quit()).unwrap();
    }
    f.w.join(5_000, "card 7", 24, &[], 400).unwrap();
    f.w.call(who(5_000), 0, |n| n.quit()).unwrap();
    let net = Network::open(&mut f.w.mem).unwrap();
    let (order, models, _) = net.order_for(&spec(0, &[])).unwrap();
    let task = Task { order, models, ..Task::default() };
    let mut rng = Rng::new(net.host, [1; 32], TaskId(1));
    assert!(matches!(net.draw(&task, &mut rng), Draw::Nobody), "an empty tree is exactly empty");
}

/// Where many hold a model and few of them are idle, a draw may meet none of those. Measures how often it goes to a node without the model
/// although a holder is idle.
#[test]
fn how_often_an_idle_holder_is_missed_in_a_busy_network() {
    const NODES: u64 = 1_000;
    for holders in [20, 100, 300, 700] {
        for percent in [1, 10, 50] {
            let mut w = World::new();
            w.mem.keep_logs = false;
            for n in 1..=NODES {
                w.join(n, "RTX 4090", 24, if n <= holders { &[7] } else { &[] }, 400).unwrap();
            }
            let idle = (holders * percent / 100).max(1);
            for n in idle + 1..=holders {
                w.call(who(n), 0, |net| net.pause()).unwrap();
            }
            let net = Network::open(&mut w.mem).unwrap();
            let (order, models, _) = net.order_for(&spec(0, &[7])).unwrap();
            let (mut missed, mut decided) = (0u32, 0u32);
            for i in 1..=10_000u64 {
                let task = Task { order: Order { id: TaskId(i), ..order }, models, ..Task::default() };
                let mut rng = Rng::new(net.host, net.host.keccak(&i.to_be_bytes()), TaskId(i));
                if let Draw::Node(handle, _) = net.draw(&task, &mut rng) {
                    decided += 1;
                    missed += (handle.id.0 as u64 > holders) as u32;
                }
            }
            let share = missed as f64 / decided as f64;
            proof(
                "busy",
                &[
                    ("holders", &holders),
                    ("idle", &idle),
                    ("others idle", &(NODES - holders)),
                    ("missed", &format!("{:.1} %", share * 100.0)),
                ],
            );
            if percent == 50 {
                assert!(share < 0.01, "{holders} holders, {idle} idle: {share}");
            }
        }
    }
}

/// Nodes that have left stay entered as holders until somebody purges them. The more there are, the more draws miss the idle holders;
/// prints the shares that `docs/dispatching.md` names.
#[test]
fn who_has_left_hides_idle_holders_until_somebody_purges() {
    const MODEL: u64 = 7;
    const HOLDERS: u32 = 20;
    const DRAWS: u64 = 1_000;
    let wanted = spec(0, &[MODEL]);
    let missed = |w: &mut World| {
        let node = |w: &mut World, draw: u64| {
            (0..)
                .find_map(|again: u64| foretell(w, keccak256((draw, again).abi_encode()).0, draw, &wanted))
                .expect("somebody is idle")
        };
        (1..=DRAWS).filter(|&draw| node(w, draw) > HOLDERS).count() as f64 / DRAWS as f64
    };
    let mut rows = Vec::new();
    for (nodes, gone) in [(400, 100), (400, 200), (400, 2_000), (4_000, 100), (4_000, 900), (4_000, 3_000)] {
        let mut w = world(0, 1);
        w.mem.keep_logs = false;
        for n in 1..=nodes + gone {
            let holds: &[u64] = if n <= HOLDERS.into() || n > nodes { &[MODEL] } else { &[] };
            w.join(n, "RTX 4090", 24, holds, 400).unwrap();
        }
        for n in nodes + 1..=nodes + gone {
            w.send(who(n), 0, quitCall {}).unwrap();
        }
        let before = missed(&mut w);
        // From the end: the last entry takes the place of one that is purged.
        for position in (HOLDERS..HOLDERS + gone as u32).rev() {
            w.send(who(1), 0, purgeCall { model: MODEL, position }).unwrap();
        }
        let after = missed(&mut w);
        println!("{nodes} nodes, {HOLDERS} of them hold it, {gone} that did have left: {before:.3} miss, once purged {after:.3}");
        assert!(before > 0.02 && after == 0.0, "{before} {after}");
        rows.push(before);
    }
    assert!(rows[..3].is_sorted() && rows[3..].is_sorted(), "{rows:?}");
}

/// Where `minStake` is far below its first value, little stakes fill the lists: most tries fall on them and are rejected. Prints what
/// `docs/parameters.md` says.
#[test]
fn stakes_far_below_the_first_minimum_leave_draws_undecided() {
    const NODES: u64 = 100;
    const DRAWS: u64 = 1_000;
    let mut rows = Vec::new();
    for (part, many) in [(1, 1_000), (100, 1_000), (100, 10_000), (10_000, 1_000), (10_000, 10_000), (400_000, 10_000)] {
        let mut w = world(0, 1);
        w.mem.keep_logs = false;
        w.set("minStake", 400_000 / part);
        for n in 1..=NODES {
            w.join(n, "RTX 4090", 24, &[], 400).unwrap();
        }
        for n in NODES + 1..=NODES + many {
            let call = joinCall { gpuName: "RTX 4090".into(), vram: 24, models: vec![] };
            w.send(who(n), 400 * TOKEN / u128::from(part), call).unwrap();
        }
        let undecided =
            (1..=DRAWS).filter(|&draw| foretell(&mut w, keccak256(draw.abi_encode()).0, draw, &spec(0, &[])).is_none());
        let share = undecided.count() as f64 / DRAWS as f64;
        println!("{many} stakes of 1/{part} of the first minimum beside {NODES} of it: {share:.3} of draws undecided");
        rows.push(share);
    }
    assert!(rows[..3].iter().all(|&share| share < 0.1) && rows[3..].iter().all(|&share| share > 0.2), "{rows:?}");
}

/// With more than 16 entries the holders cannot all be looked at. Where at least a quarter of the network holds a model, the draw is by
/// rejection, and stays exact but for the few cases in which no try falls on a holder. Where fewer do, 16 random ones are looked at, which
/// favours light nodes. Half the sum of all differences (the total variation distance) measures by how much.
#[test]
fn what_a_search_that_is_not_exhaustive_costs_in_exactness() {
    // Chance alone gives about 0.01 at 100,000 draws.
    for (name, nodes, one_in, most) in [
        ("half hold it", 160, 2, 0.02),
        ("a third", 160, 3, 0.02),
        ("a quarter", 160, 4, 0.02),
        ("27 of 160", 160, 6, 0.04),
        ("40 of 400", 400, 10, 0.15),
    ] {
        let mut f = Fleet::mixed(nodes, 19, |i, _| if i % one_in == 0 { vec![5] } else { vec![] });
        let wanted = spec(0, &[5]);
        let (seen, undecided) = f.draws(&wanted, 100_000, one_in);
        let expected = f.expected(&wanted, None);
        let sum: f64 = expected.values().sum();
        let away: f64 =
            expected.iter().map(|(n, w)| (w / sum - seen.get(n).copied().unwrap_or(0) as f64 / 1e5).abs()).sum::<f64>() / 2.0;
        let again = undecided as f64 / (1e5 + undecided as f64) * 100.0;
        proof(
            "search",
            &[
                ("holders", &name),
                ("draws", &100_000),
                ("distance", &format!("{away:.4}")),
                ("limit", &most),
                ("again", &format!("{again:.2} %")),
            ],
        );
        assert!(seen.keys().all(|n| expected.contains_key(n)), "only holders while holders are idle");
        assert!(away < most, "{name}: {away}");
    }
}

/// Where all nodes have a large stake the bounds follow the lowest of them, so that hardly a draw is made again.
#[test]
fn tries_are_not_lost_where_all_stakes_are_large() {
    let mut w = World::new();
    w.set("drawDelay", 1);
    for n in 1..=8 {
        w.join(n, "RTX 4090", 24, &[], 25_600).unwrap();
    }
    w.events();
    let mem = w.mem.clone();
    for i in 0..100 {
        w.mem = mem.clone();
        w.mem.block += i;
        w.create(0, TOKEN, spec(0, &[])).unwrap();
        w.pass(1, 0);
        w.dispatch(1).unwrap();
        assert_eq!(w.ask(overviewCall {}).pending, 0, "drawn at once");
    }
}

/// The outcome for a task in a world where chance gives these numbers.
fn loaded<T>(
    w: &mut World,
    wanted: &muster_protocol::IMuster::TaskSpec,
    luck: Vec<u64>,
    f: impl FnOnce(&Network<Meter>, &Task, &mut Rng) -> T,
) -> T {
    let (order, models, _) = w.view(|net| net.order_for(wanted)).unwrap();
    let mut rng = Rng::new(&w.mem, [0; 32], TaskId(1));
    let mut mem = w.mem.clone();
    let mut host = Meter::loaded(&mut mem, luck);
    f(&Network::open(&mut host).unwrap(), &Task { order, models, ..Task::default() }, &mut rng)
}

/// The first of a field, at a height near 0; at the greatest there can be, which no weight is above; at three quarters of it.
const ACCEPTED: [u64; 3] = [1, 1 << 40, 0];
const REJECTED: [u64; 3] = [1, u64::MAX, 0];
const HIGH: [u64; 3] = [1, 3 << 62, 0];

/// Whether a draw finds somebody after so many tries of this kind, if the next would be accepted.
fn found_after(w: &mut World, models: &[u64], tries: usize, which: &[u64]) -> bool {
    let luck = [which.repeat(tries), ACCEPTED.to_vec()].concat();
    loaded(w, &spec(0, models), luck, |net, task, rng| matches!(net.draw(task, rng), Draw::Node(..)))
}

/// Of holders that are all looked at, one model's after the other's, the draw takes the first whose weight is above the rest of the random
/// number.
#[test]
fn a_choice_among_few_holders_falls_on_the_weight_it_is_within() {
    for several in [false, true] {
        let mut w = World::new();
        for n in 1..=20 {
            let model = if several && n > 2 { 6 } else { 5 };
            w.join(n, "card", 24, if n <= 4 { std::slice::from_ref(&model) } else { &[] }, 400).unwrap();
        }
        let wanted = spec(0, if several { &[5, 6] } else { &[5] });
        // Just below, and exactly at, one, two and three of four equal weights.
        for quarter in 1..4 {
            for (number, expected) in [((quarter << 62) - 1, quarter), ((quarter << 62) + 1, quarter + 1)] {
                let chosen = loaded(&mut w, &wanted, vec![number], |net, task, rng| match net.draw(task, rng) {
                    Draw::Node(handle, _) => handle.id.0,
                    _ => panic!("there are holders"),
                });
                assert_eq!(u64::from(chosen), expected, "{number:x}");
            }
        }
    }
}

/// A try is accepted at exactly the heights below the node's weight: uniform below the bound of its class, to the last unit. It is the same
/// for draws of one node and of several, and where a model could have weighed.
#[test]
fn a_try_is_accepted_at_the_heights_below_the_weight() {
    let mut w = World::new();
    for (n, stake) in [(1, 400), (2, 6_400), (3, 400)] {
        w.join(n, "card", 24, &[], stake).unwrap();
    }
    let (base, largest, best) = w.view(|net| (net.rules().base, net.node_store().max_stake(), net.rules().best));
    // Three lists' numbers: the two nodes of class 0, then the four of the one of class 2.
    let sum = w.view(|net| Field::new(net.host, Among::Idle, Scope::Vram(0)).total());
    let pick = |node: usize| (([0u128, 2, 1][node - 1] << 64).div_ceil(sum.into()) + 1) as u64;
    let all: Vec<u64> = [1, 2, 3].into_iter().flat_map(|node| [pick(node), 1 << 40, 0]).collect();
    for (models, most) in [(&[][..], 1), (&[9], 2)] {
        let bound = most * class_bound(base, largest, 0, highest_qos(best)) + 1;
        let one = spec(0, models);
        let image = muster_protocol::IMuster::TaskSpec { kind: 0, redundancy: 2, ..one.clone() };
        for (node, class) in [(1, 0), (2, 2)] {
            let weight = w.ask(weightOfCall { number: node, spec: one.clone() }).weight;
            let (mut accepted, mut rejected) = (0, 0);
            for about in 0..8 {
                let high = ((weight >> class) + 4).saturating_sub(about).min(bound - 1);
                // A number that gives this height, with different bits below.
                let number = (((u128::from(high) << 64) + (1 << 63)) / u128::from(bound)) as u64;
                assert_eq!((u128::from(number) * u128::from(bound)) >> 64, u128::from(high));
                for low in 0..8 {
                    let below = (high << class | low & ((1 << class) - 1)) < weight;
                    let luck = vec![pick(node as usize), number, low];
                    let drawn = loaded(&mut w, &one, luck.clone(), |net, task, rng| match net.draw(task, rng) {
                        Draw::Node(handle, _) => Some(handle.id.0),
                        _ => None,
                    });
                    assert_eq!(drawn == Some(node), below, "node {node}: {high}, {low} of {weight}");
                    // Else the third is the first of them, and it comes after.
                    let later = [&all[6..], &all[..6]].concat();
                    let several =
                        loaded(&mut w, &image, [luck, later].concat(), |net, task, rng| net.draw_members(task, &[], rng));
                    let Members::Nodes(nodes) = several else { panic!("all are accepted in the end") };
                    assert_eq!(nodes[0] == NodeId(node), below, "node {node}: {high}, {low} of {weight}");
                    accepted += u32::from(below);
                    rejected += u32::from(!below);
                }
            }
            assert!(accepted >= 8 && rejected >= 8, "{accepted} {rejected}");
        }
    }
}

#[test]
fn a_draw_ends_after_ten_tries_or_sixteen_where_many_hold_the_model() {
    let mut w = World::new();
    w.join(1, "card", 24, &[5], 400).unwrap();
    for (models, most) in [(&[][..], 10), (&[9], 10), (&[5], 16)] {
        assert!(found_after(&mut w, models, most - 1, &REJECTED), "{models:?}");
        assert!(!found_after(&mut w, models, most, &REJECTED), "{models:?}");
    }
}

/// Of two nodes in a group one is left, and the group's bound stands: half of all picks fall on nobody.
#[test]
fn picks_that_fall_on_nobody_are_no_tries_but_end_a_draw_as_well() {
    const NOBODY: [u64; 1] = [1 << 63];
    let mut w = World::new();
    w.join(1, "card", 24, &[], 400).unwrap();
    w.join(2, "card", 24, &[], 400).unwrap();
    w.call(who(2), 0, |net| net.pause()).unwrap();
    assert!(found_after(&mut w, &[], 31, &NOBODY));
    assert!(!found_after(&mut w, &[], 32, &NOBODY));
    assert!(!found_after(&mut w, &[], 40, &NOBODY));
}

/// A tried node may have a long list of models. Beyond its first word all tries together read 24 words, and no try is made after that. A
/// task that needs no model has none read.
#[test]
fn long_lists_of_models_end_a_draw() {
    for (held, tries) in [(24, 8), (12, 10), (6, 10), (30, 6)] {
        let mut w = World::new();
        w.join(1, "card", 24, &[], 400).unwrap();
        for models in (100..100 + held).collect::<Vec<u64>>().chunks(6) {
            w.send(who(1), 0, reportDownloadedCall { models: models.to_vec() }).unwrap();
        }
        // Not rejected before their models are known: as holders they would be accepted.
        assert!(found_after(&mut w, &[9], tries - 1, &HIGH), "{held} models");
        assert!(!found_after(&mut w, &[9], tries, &HIGH), "{held} models");
        assert!(found_after(&mut w, &[], 9, &REJECTED));
    }
}

/// A holder that has been excluded since it was listed as idle is no candidate.
#[test]
fn an_excluded_holder_is_not_counted_among_the_candidates() {
    let mut w = World::new();
    for n in 1..=20 {
        w.join(n, "card", 24, if n <= 3 { &[5] } else { &[] }, 400).unwrap();
    }
    for (excluded, there) in [(0, 3), (1, 2), (2, 1)] {
        if excluded > 0 {
            let slot = node_slot(&w.mem, NodeId(excluded));
            let node: Node = w.mem.get(slot);
            w.mem.put(slot, &Node { h: 90_000_000_000_000_000, h_at: w.mem.now as u32, ..node });
        }
        let candidates = loaded(&mut w, &spec(0, &[5]), Vec::new(), |net, task, rng| match net.draw(task, rng) {
            Draw::Node(handle, candidates) => {
                assert!(handle.id.0 > excluded && handle.id.0 <= 3);
                candidates
            }
            _ => panic!("there are holders"),
        });
        assert_eq!(candidates, Candidates::AtLeast(there));
    }
}

/// Where three of a listed GPU were met and rejected by weight the draw is made again; where none was there is nobody.
#[test]
fn three_that_were_met_and_rejected_are_not_nobody() {
    let mut w = World::new();
    for n in 1..=3 {
        w.join(n, "card", 24, &[], 400).unwrap();
    }
    let wanted = muster_protocol::IMuster::TaskSpec { redundancy: 2, ..spec(0, &[]) };
    let drawn = |w: &mut World| loaded(w, &wanted, Vec::new(), |net, task, rng| net.draw_members(task, &[], rng));
    assert_eq!(drawn(&mut w), Members::Nobody);
    w.send(OWNER, 0, muster_protocol::IMuster::listGpuGroupCall { group: 1 << 16 | 24, listed: true }).unwrap();
    assert_eq!(drawn(&mut w), Members::Undecided);
}

/// The three that wait for a task get it where no other node is idle, whatever chance says. They do not where answers must be alike and
/// their GPU is no longer listed.
#[test]
fn three_that_are_reserved_need_no_chance_where_nobody_is_idle() {
    let mut w = World::new();
    for n in 1..=3 {
        w.join(n, "card", 24, &[], 400).unwrap();
        w.call(who(n), 0, |net| net.pause()).unwrap();
    }
    let three = muster_protocol::IMuster::TaskSpec { redundancy: 2, ..spec(0, &[]) };
    let image = muster_protocol::IMuster::TaskSpec { kind: 0, ..three.clone() };
    for listed in [false, true] {
        w.send(OWNER, 0, muster_protocol::IMuster::listGpuGroupCall { group: 1 << 16 | 24, listed }).unwrap();
        for (wanted, alike) in [(&three, true), (&image, false)] {
            let expected = if alike && !listed { Members::Nobody } else { Members::Nodes([1, 2, 3].map(NodeId).to_vec()) };
            for (a, b) in [(0, 0), (1 << 62, 1 << 61), (u64::MAX, 0), (1 << 63, 1 << 40)] {
                let drawn = loaded(&mut w, wanted, [a, b].repeat(300), |net, task, rng| {
                    let reserved = [1, 2, 3].map(|n| NodeHandle::load(net.host, NodeId(n)));
                    net.draw_members(task, &reserved, rng)
                });
                assert_eq!(drawn, expected, "alike {alike}, listed {listed}");
            }
        }
    }
}

/// A draw of several nodes makes no other try once the tries have read more than 192 words. One reads four here: the tree's word of a size,
/// the counts of a group, the word of its list, a node.
#[test]
fn a_draw_of_several_nodes_ends_by_the_words_it_has_read() {
    let mut w = World::new();
    for n in 1..=3 {
        w.join(n, "card", 24, &[], 400).unwrap();
    }
    let image = muster_protocol::IMuster::TaskSpec { kind: 0, redundancy: 2, ..spec(0, &[]) };
    // Each of three equal ones, at a height near 0.
    let third = u64::MAX / 3;
    let chosen = [[1, 1 << 40, 0], [third + 2, 1 << 40, 0], [2 * third + 3, 1 << 40, 0]].concat();
    for (rejected, decided) in [(0, true), (46, true), (47, false)] {
        let luck = [REJECTED.repeat(rejected), chosen.clone()].concat();
        let drawn = loaded(&mut w, &image, luck, |net, task, rng| net.draw_members(task, &[], rng));
        let expected = if decided { Members::Nodes([1, 2, 3].map(NodeId).to_vec()) } else { Members::Undecided };
        assert_eq!(drawn, expected, "after {rejected}");
    }
}
