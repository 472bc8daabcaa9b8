//! The participants and their tasks: made up, or read from traces. `docs/research/simulator-engine.md` describes both.

use std::collections::HashMap;

use muster_core::wad::{neg_ln_wad, WAD};
use muster_protocol::flow::create::{REPLICATED, SAMPLED};

use super::ledger::LEAST_STAKE;
use crate::random::Random;
use crate::trace::{Gpu, Outcome, Request};

/// Steps of time in a second: an L2 block's time.
pub const TICKS: u64 = 4;
/// Price per estimated second before the spread, in wei.
const PRICE: u128 = 1_000_000_000_000;
/// Base models; the k-th is asked for 1/k as often as the first.
const BASE_MODELS: usize = 40;
/// Applications.
const APPLICATIONS: usize = 50;
/// LoRA models of each.
const LORAS: usize = 10;
/// How many times as fast a LoRA is downloaded as a base model.
const LORA_FASTER: u64 = 10;
/// Seconds of work of a made-up task on a node of speed 1, on average: 0.6 of its estimate.
const MEAN_WORK: f64 = 44.64;
/// The part of it that can be validated: all but images that are too many.
const MEAN_WORK_OF_GROUPS: f64 = 35.52;

/// GPU models of a made-up fleet: name, GiB, speed in thousandths, share in per cent.
const GPUS: [(&str, u16, u32, usize); 6] = [
    ("RTX 3060", 12, 600, 25),
    ("RTX 4060 Ti", 16, 750, 25),
    ("RTX 3090", 24, 1_000, 22),
    ("RTX 4090", 24, 1_600, 18),
    ("RTX A6000", 48, 1_200, 7),
    ("A100", 80, 2_000, 3),
];

/// How a node behaves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Answers, except for 3 tasks in 1,000 that it never answers and 1 in 2,000 that it reports as impossible.
    Steady,
    /// Like steady, but 0.6 times as fast as its GPU should be.
    Slow,
    /// Like steady, but gone for half an hour every four hours, on average, without saying so.
    Flaky,
    /// Stops answering for good without leaving.
    Dead,
    /// Never answers half of its tasks.
    Broken,
    /// Answers at once, and wrongly.
    Cheat,
    /// Answers one in four of its own tasks at once and wrongly. In a group, where it knows of the comparison, it works honestly.
    Sly,
    /// Answers at once and wrongly, and never reveals its commitment in a group.
    Withholding,
    /// One of many nodes over which somebody splits one sum; works like a steady one.
    Sybil,
}

impl Kind {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 9] =
        [Self::Steady, Self::Slow, Self::Flaky, Self::Dead, Self::Broken, Self::Cheat, Self::Sly, Self::Withholding, Self::Sybil];

    /// As tables show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Slow => "slow",
            Self::Flaky => "flaky",
            Self::Dead => "dead",
            Self::Broken => "broken",
            Self::Cheat => "cheat",
            Self::Sly => "sly",
            Self::Withholding => "withholding",
            Self::Sybil => "Sybil",
        }
    }

    /// Whether a network is better off without it.
    pub fn bad(self) -> bool {
        matches!(self, Self::Dead | Self::Broken) || self.cheats()
    }

    /// Whether it answers wrongly, always or at times.
    pub fn cheats(self) -> bool {
        matches!(self, Self::Cheat | Self::Sly | Self::Withholding)
    }

    /// Of a thousand tasks of its own, how many it answers at once and wrongly.
    pub fn wrong(self) -> usize {
        match self {
            Self::Cheat | Self::Withholding => 1_000,
            Self::Sly => 250,
            _ => 0,
        }
    }
}

/// A node. Times are in ticks.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    pub kind: Kind,
    pub gpu: String,
    pub vram: u16,
    /// In stake units.
    pub stake: u64,
    /// Thousandths of the nominal speed.
    pub speed: u32,
    /// Of a million tasks, how many it never answers.
    pub silent: u32,
    /// Of a million tasks, how many it reports as impossible.
    pub errors: u32,
    /// Mean seconds between outages and their mean length.
    pub outages: Option<(u64, u64)>,
    /// When it stops answering for good.
    pub dies: Option<u64>,
    /// Time to download a base model.
    pub download: u64,
    pub models: Vec<u64>,
    pub joins: u64,
    pub leaves: Option<u64>,
    pub rejoins: Option<u64>,
    /// When it takes a break that it announces, and until when.
    pub pause: Option<(u64, u64)>,
    /// When it raises its stake by a tenth.
    pub raises: Option<u64>,
}

/// A task. `work` is its time on a node of speed 1, in ticks.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    pub at: u64,
    pub application: u32,
    pub kind: u8,
    pub units: u32,
    pub vram: u16,
    /// A GPU that it requires by name, and its VRAM.
    pub gpu: Option<(String, u16)>,
    pub models: Vec<u64>,
    /// Share of its least price, in thousandths.
    pub generosity: u32,
    pub work: u64,
    /// How it ends, where a trace says so.
    pub fate: Option<Outcome>,
    /// The policy that is asked for.
    pub redundancy: u8,
}

/// The policy of a task: `grouped` of a thousand tasks are replicated, and `sampled` of a thousand others are sampled.
fn redundancy(random: &mut Random, grouped: u32, sampled: u32) -> u8 {
    let mut lot = |share: u32| random.below(1_000) < share as usize;
    match (lot(grouped), lot(sampled)) {
        (true, _) => REPLICATED,
        (false, true) => SAMPLED,
        _ => 0,
    }
}

/// The properties of a made-up workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub nodes: u32,
    pub tasks: u64,
    /// The requested work, as a share of the capacity of all nodes but Sybils, in thousandths.
    pub load: u32,
    /// Of a thousand tasks, how many are created under policy 2, as far as the contract takes them.
    pub grouped: u32,
    /// Of a thousand of the others, how many are created under policy 1, as far as the contract takes them.
    pub sampled: u32,
    /// Whether a task counts once in `load`, also where three nodes do it: so that the same tasks come under every policy.
    pub counted_once: bool,
    /// GPT tasks require one of two GPU models, as sampled ones must.
    pub named: bool,
    /// How many times as high fees are.
    pub price: u32,
    /// Of a thousand nodes, how many are slow, flaky, dead, broken, cheats, sly and withholding; the others are steady.
    pub mix: [usize; 7],
    /// Whether there are exact numbers of each, the first nodes being slow and so on; otherwise chance decides.
    pub even: bool,
    /// Mean seconds between a flaky node's outages, and their mean length.
    pub outages: (u64, u64),
    /// A sum of stake in stake units and over how many nodes it is split.
    pub attack: Option<(u64, u32)>,
    /// Of a thousand tasks, how many are cancelled if they are still queued after a while.
    pub cancels: u32,
    /// Of a million tasks, how many a node reports as impossible.
    pub errors: u32,
    /// Nodes come, go, pause, raise their stakes and die while the network works.
    pub churn: bool,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            nodes: 200,
            tasks: 50_000,
            load: 700,
            grouped: 100,
            sampled: 0,
            counted_once: false,
            named: false,
            price: 1,
            mix: [70, 150, 30, 20, 30, 0, 0],
            even: false,
            outages: (14_400, 1_800),
            attack: None,
            cancels: 10,
            errors: 500,
            churn: true,
        }
    }
}

impl Profile {
    /// Seconds over which the tasks come.
    pub fn span(&self, nodes: &[NodeSpec]) -> f64 {
        self.tasks as f64 * self.gap(nodes) / 1e6
    }

    /// Microseconds between two tasks.
    fn gap(&self, nodes: &[NodeSpec]) -> f64 {
        let honest = nodes.iter().filter(|node| node.kind != Kind::Sybil);
        let speed: f64 = honest.map(|node| f64::from(node.speed)).sum::<f64>() / 1_000.0;
        let others = if self.counted_once { 0.0 } else { 2.0 * f64::from(self.grouped) / 1_000.0 };
        (MEAN_WORK + others * MEAN_WORK_OF_GROUPS) * 1e6 / (speed * f64::from(self.load) / 1_000.0).max(1e-9)
    }
}

/// A number drawn from an exponential distribution: core's logarithm, so the same on every machine.
pub fn exponential(random: &mut Random, mean: u64) -> u64 {
    let u = 1 + random.below(WAD as usize) as u64;
    let x = neg_ln_wad(u).unwrap_or(0);
    (x * u128::from(mean) / u128::from(WAD)) as u64
}

/// Draws 0..n, k with a weight of 1 / (k + 1).
#[derive(Debug)]
struct Zipf(Vec<usize>);

impl Zipf {
    fn new(n: usize) -> Self {
        let mut sum = 0;
        Self(
            (1..=n)
                .map(|k| {
                    sum += 1_000_000_000 / k;
                    sum
                })
                .collect(),
        )
    }

    fn draw(&self, random: &mut Random) -> usize {
        let all = self.0[self.0.len() - 1];
        let u = random.below(all);
        self.0.partition_point(|above| *above <= u)
    }
}

/// The part of all demand for base models that is for one of them: its beginning and end on a scale of `points`.
pub fn model_span(model: u64, points: u64) -> (u64, u64) {
    let Zipf(sums) = Zipf::new(BASE_MODELS);
    let at = (model.max(1) as usize - 1).min(BASE_MODELS - 1);
    let all = sums[BASE_MODELS - 1];
    let point = |sum: usize| (sum as u128 * u128::from(points) / all as u128) as u64;
    (if at == 0 { 0 } else { point(sums[at - 1]) }, point(sums[at]))
}

fn percent(random: &mut Random, share: usize) -> bool {
    random.below(100) < share
}

/// A made-up fleet.
pub fn fleet(profile: &Profile, seed: u64) -> Vec<NodeSpec> {
    let zipf = Zipf::new(BASE_MODELS);
    let mut nodes: Vec<NodeSpec> = (0..profile.nodes).map(|i| node(profile, seed, i, &zipf)).collect();
    if let Some((sum, count)) = profile.attack {
        let attackers = (0..count).map(|i| NodeSpec {
            kind: Kind::Sybil,
            stake: sum / u64::from(count.max(1)),
            outages: None,
            dies: None,
            ..node(&Profile { mix: [0; 7], churn: false, ..profile.clone() }, seed, profile.nodes + i, &zipf)
        });
        nodes.extend(attackers);
    }
    if profile.churn {
        let span = (profile.span(&nodes) * TICKS as f64) as u64;
        for (i, node) in nodes.iter_mut().enumerate() {
            come_and_go(node, span.max(1), &mut Random::named(&[seed, 2, i as u64]));
        }
    }
    nodes
}

fn node(profile: &Profile, seed: u64, number: u32, zipf: &Zipf) -> NodeSpec {
    let random = &mut Random::named(&[seed, 1, number.into()]);
    let mut u = random.below(100);
    let (gpu, vram, speed, _) = GPUS
        .into_iter()
        .find(|(.., share)| match u.checked_sub(*share) {
            Some(rest) => {
                u = rest;
                false
            }
            None => true,
        })
        .unwrap_or(GPUS[0]);
    let drawn = random.below(1_000);
    let mut u = if profile.even { number as usize * 1_000 / profile.nodes as usize } else { drawn };
    let others = [Kind::Slow, Kind::Flaky, Kind::Dead, Kind::Broken, Kind::Cheat, Kind::Sly, Kind::Withholding];
    let kind = others.into_iter().zip(profile.mix).find(|(_, share)| match u.checked_sub(*share) {
        Some(rest) => {
            u = rest;
            false
        }
        None => true,
    });
    let kind = kind.map_or(Kind::Steady, |(kind, _)| kind);
    let own = 900 + random.below(201) as u32;
    let speed = speed * own / 1_000 * if kind == Kind::Slow { 600 } else { 1_000 } / 1_000;
    let mut models = Vec::new();
    for _ in 0..4 + random.below(8) {
        let model = 1 + zipf.draw(random) as u64;
        if !models.contains(&model) {
            models.push(model);
        }
    }
    NodeSpec {
        kind,
        gpu: gpu.into(),
        vram,
        // P(stake > x least stakes) = 1 / x, up to 100.
        stake: LEAST_STAKE * 1_000 / (10 + random.below(991) as u64),
        speed,
        silent: if kind == Kind::Broken { 500_000 } else { 3_000 },
        errors: profile.errors,
        outages: (kind == Kind::Flaky).then_some(profile.outages),
        dies: (kind == Kind::Dead).then_some(0),
        download: (10 + random.below(31) as u64) * TICKS,
        models,
        joins: 0,
        leaves: None,
        rejoins: None,
        pause: None,
        raises: None,
    }
}

/// One in ten joins late, one in twenty leaves, half of these come back, one in ten takes a break, one in ten raises its
/// stake; the dead die in the first quarter.
fn come_and_go(node: &mut NodeSpec, span: u64, random: &mut Random) {
    let mut within = |from: u64, to: u64| {
        let (from, to) = (span * from / 100, span * to / 100);
        from + random.below((to - from).max(1) as usize) as u64
    };
    let (late, leave, back) = (within(0, 80), within(20, 90), within(1, 10));
    let (pause, pause_for, raise, dies) = (within(10, 90), within(1, 5), within(10, 90), within(0, 25));
    if percent(random, 10) {
        node.joins = late;
    }
    if percent(random, 5) {
        node.leaves = Some(leave.max(node.joins + 1));
        node.rejoins = percent(random, 50).then_some(leave.max(node.joins + 1) + back);
    } else if percent(random, 10) {
        node.pause = Some((pause.max(node.joins + 1), pause.max(node.joins + 1) + pause_for));
    }
    if percent(random, 10) {
        node.raises = Some(raise.max(node.joins + 1));
    }
    if node.kind == Kind::Dead {
        node.dies = Some(node.joins + dies);
    }
}

/// Tasks in order of time.
#[derive(Debug)]
pub enum Source {
    MadeUp { profile: Profile, gap: u64, seed: u64, next: u64, clock: u64, zipf: ZipfOf },
    Traced { requests: Vec<TaskSpec>, next: usize },
}

/// The popularity of base models.
#[derive(Debug)]
pub struct ZipfOf(Zipf);

impl Source {
    /// Made-up tasks for a fleet.
    pub fn made_up(profile: &Profile, nodes: &[NodeSpec], seed: u64) -> Self {
        // Nanoseconds, so that the gaps of large networks are not rounded away.
        let gap = (profile.gap(nodes) * 1_000.0) as u64;
        let zipf = ZipfOf(Zipf::new(BASE_MODELS));
        Self::MadeUp { profile: profile.clone(), gap, seed, next: 0, clock: 0, zipf }
    }

    /// Tasks of a trace, arriving `speed` times as fast. The seed decides their fees, and which of them are under policies 2 and 1: these are
    /// the shares in thousandths.
    pub fn traced(requests: &[Request], speed: f64, (grouped, sampled): (u32, u32), seed: u64) -> Self {
        let mut names = HashMap::new();
        let mut applications = HashMap::new();
        let requests = requests.iter().enumerate().map(|(i, request)| {
            let random = &mut Random::named(&[seed, 3, i as u64]);
            let count = applications.len() as u32;
            let application = *applications.entry(&request.application).or_insert(count);
            let models = request.models.iter().map(|name| {
                let count = names.len() as u64;
                *names.entry(name).or_insert(count + 1)
            });
            TaskSpec {
                at: (request.at as f64 / speed * TICKS as f64) as u64,
                application,
                kind: 0,
                units: request.units.clamp(1, 1_000),
                vram: request.vram,
                gpu: None,
                models: models.collect(),
                generosity: 500 + random.below(2_001) as u32,
                work: request.seconds * TICKS,
                fate: Some(request.outcome),
                redundancy: redundancy(random, grouped, sampled),
            }
        });
        Self::Traced { requests: requests.collect(), next: 0 }
    }

    /// Tasks that are known already, in order of time.
    pub fn given(tasks: Vec<TaskSpec>) -> Self {
        Self::Traced { requests: tasks, next: 0 }
    }

    /// How many there are in all.
    pub fn len(&self) -> u64 {
        match self {
            Self::MadeUp { profile, .. } => profile.tasks,
            Self::Traced { requests, .. } => requests.len() as u64,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Iterator for Source {
    type Item = TaskSpec;

    fn next(&mut self) -> Option<TaskSpec> {
        match self {
            Self::Traced { requests, next } => {
                *next += 1;
                requests.get(*next - 1).cloned()
            }
            Self::MadeUp { profile, gap, seed, next, clock, zipf } => {
                if *next == profile.tasks {
                    return None;
                }
                let random = &mut Random::named(&[*seed, 3, *next]);
                *next += 1;
                *clock += exponential(random, *gap);
                let application = random.below(APPLICATIONS) as u32;
                let gpt = percent(random, 20);
                let units = match random.below(20) {
                    _ if gpt => 1,
                    0..=9 => 1,
                    10..=14 => 2,
                    15..=17 => 4,
                    _ => 8,
                };
                let estimate = if gpt { 60 } else { 30 + 20 * u64::from(units) };
                let vram = match random.below(10) {
                    0..=5 => 8,
                    6..=8 => 16,
                    _ => 24,
                };
                let gpu = GPUS[2 + random.below(2)];
                let mut models = vec![1 + zipf.0.draw(random) as u64];
                if percent(random, 15) {
                    let lora = random.below(LORAS);
                    models.push((BASE_MODELS + application as usize * LORAS + lora + 1) as u64);
                }
                Some(TaskSpec {
                    at: *clock / (1_000_000_000 / TICKS),
                    application,
                    kind: gpt.into(),
                    units,
                    vram,
                    gpu: (random.below(50) == 0 || gpt && profile.named).then(|| (gpu.0.to_string(), gpu.1)),
                    models,
                    generosity: (500 + random.below(2_001) as u32) * profile.price,
                    // 0.6 of the estimate, give or take a third.
                    work: estimate * TICKS * (400 + random.below(401) as u64) / 1_000,
                    fate: (random.below(1_000) < profile.cancels as usize).then_some(Outcome::Cancelled),
                    redundancy: redundancy(random, profile.grouped, profile.sampled),
                })
            }
        }
    }
}

/// One node for each GPU of a trace: steady, of speed 1, always there, with 1 to 10 times the least stake.
pub fn fleet_of(gpus: &[Gpu], seed: u64) -> Vec<NodeSpec> {
    let zipf = Zipf::new(20);
    let nodes = gpus.iter().enumerate().map(|(i, gpu)| {
        let random = &mut Random::named(&[seed, 1, i as u64]);
        let mut models = Vec::new();
        for _ in 0..=random.below(6) {
            let model = 1 + zipf.draw(random) as u64;
            if !models.contains(&model) {
                models.push(model);
            }
        }
        NodeSpec {
            kind: Kind::Steady,
            gpu: gpu.name.clone(),
            vram: gpu.vram,
            stake: LEAST_STAKE * (10 + random.below(91) as u64) / 10,
            speed: 1_000,
            silent: 0,
            errors: 0,
            outages: None,
            dies: None,
            // A trace's times include downloads.
            download: 0,
            models,
            joins: 0,
            leaves: None,
            rejoins: None,
            pause: None,
            raises: None,
        }
    });
    nodes.collect()
}

/// Time a node takes to download a model.
pub fn download_time(node: &NodeSpec, model: u64) -> u64 {
    if model > BASE_MODELS as u64 {
        node.download / LORA_FASTER
    } else {
        node.download
    }
}

/// A fee in wei for an estimate in seconds.
pub fn fee(estimate: u32, generosity: u32) -> u128 {
    PRICE * u128::from(estimate) * u128::from(generosity) / 1_000
}
