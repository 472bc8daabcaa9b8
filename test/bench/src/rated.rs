//! Groups chosen by their members' ratings.

use crate::answer::{commitment, revealing};
use crate::dearest::Dearest;
use crate::measure::{spec, Bench, GPU, MODEL, VRAM};
use crate::world::{Done, TOKEN};
use anyhow::{ensure, Context, Result};
use muster_core::record::CALL_MODELS;
use muster_protocol::IMuster::*;

/// Sizes of the network that are measured: the group's algorithm, most members, and target in hundredths.
pub const POOLS: [(u32, Wanted); 2] = [
    (8, Wanted { algorithm: 1, most: 7, target: 30, size: 3, form: "form a group of 3 by First-fit from a pool of 8" }),
    (32, Wanted { algorithm: 2, most: 9, target: 100, size: 9, form: "form a group of 9 by Tight-fit from a pool of 32" }),
];

/// An application's groups.
#[derive(Clone, Copy)]
pub struct Wanted {
    algorithm: u8,
    most: u8,
    target: u64,
    size: usize,
    form: &'static str,
}

impl Bench {
    /// Groups of the pool of all nodes, which have done all of it before: their draw, also with a target that is set anew, the reveals, and
    /// the judgement.
    pub fn rated(&mut self, wanted: &Wanted, samples: usize) -> Result<()> {
        let &Wanted { algorithm, most, size, form, .. } = wanted;
        let hundredth = 10_000_000_000_000_000;
        let (target, alpha) = (wanted.target * hundredth, 50 * hundredth);
        let profile = Profile { algorithm, least: 3, most, reschedules: 2, targeting: 2, target, alpha, period: 300 };
        let gpu = self.world.view(gpuGroupCall { name: GPU.into(), vram: VRAM })?;
        self.world.owner_calls(listGpuGroupCall { group: gpu, listed: true })?;
        let (fee, task) = (u128::from(most) * TOKEN, TaskSpec { kind: 1, gpu, redundancy: 3, ..spec(&[MODEL]) });
        for round in 0..=samples {
            self.world.call(self.creator, 0, setProfileCall { profile: profile.clone() })?;
            let group = self.group(form, fee, &task)?;
            ensure!(group.nodes.len() == size, "{} members", group.nodes.len());
            for &node in &group.nodes {
                let commitment = commitment(group.id, node, 1);
                self.take(&format!("commit, one of {size}: released"), |b| {
                    b.operator(node, commitCall { id: group.id, commitment })
                })?;
            }
            for (i, &node) in group.nodes.iter().enumerate() {
                let last = if i + 1 < size { "not the last".to_string() } else { format!("the last: {size} judged") };
                let reveal = revealing(group.id, group.group, node, 1);
                self.take(&format!("reveal in a group chosen by ratings, {last}"), |b| b.operator(node, reveal))?;
            }
            if round == 0 {
                // It has worn the words in; those of nodes that were not in it are as any task leaves them.
                self.world.use_up(self.nodes);
                self.taken.clear();
                continue;
            }
            for (targeting, what) in [(0, "predictive"), (1, "adaptive")] {
                let snapshot = self.world.snapshot();
                self.world.call(self.creator, 0, setProfileCall { profile: Profile { targeting, ..profile.clone() } })?;
                self.world.end_period(self.creator);
                self.world.rate(self.nodes);
                self.group(&format!("{form}, its {what} target set anew"), fee, &task)?;
                self.world.revert(snapshot);
            }
        }
        Ok(())
    }

    /// Creates a task and draws its group, in a call that counts.
    fn group(&mut self, operation: &str, fee: u128, task: &TaskSpec) -> Result<GroupFormed> {
        self.create(fee, task.clone())?;
        let mut formed = None;
        self.take(operation, |b| {
            let done = b.dispatch(1)?;
            formed = done.events::<GroupFormed>().pop();
            Ok(done)
        })?;
        formed.context("no group was formed")
    }
}

/// Models that a node of a stranger's holds.
const HOARD: u64 = 32;

/// Where strangers' nodes stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stand {
    /// Twenty-four that hold many models at eight sizes of VRAM, and 106 at sizes of their own.
    ManySizes,
    /// Nine that hold many models, each at a size of its own and far from the others', of which 33 GPU names are known.
    NineAlone,
}

/// The cost of others' calls while a stranger's group of nine is due to be chosen by ratings and formed. Its nodes have had tasks or not;
/// its models are held by nobody; a target is computed anew. Each call of others is made before each part of the draw, of so many hashes;
/// calls that are refused while it is due are tried.
pub(crate) fn strangers_group(stand: Stand, worn: bool, hashes: u64, d: &mut Dearest) -> Result<()> {
    let mut b = Bench::new()?;
    b.world.leave_chain();
    let mut own = 0;
    for _ in 0..6 {
        own = b.join("Innocent", 8, &[], 400)?.0.group;
    }
    let running: Vec<TaskStarted> =
        (0..4).map(|_| Ok(b.run(TOKEN, TaskSpec { gpu: own, ..spec(&[]) })?.0)).collect::<Result<_>>()?;
    let mut idle = (1..=6).filter(|node| running.iter().all(|task| task.node != *node));
    let (idle, paused) = (idle.next().context("an idle node")?, idle.next().context("another")?);
    b.operator(paused, pauseCall {})?;
    let (hoards, sizes, names) = if stand == Stand::ManySizes { (24, 8, 0) } else { (9, 9, 33) };
    for n in 0..hoards {
        let vram = 900 - (n % sizes) as u16 * 31;
        for name in 0..names {
            let node = b.join(&format!("name {name}"), vram, &[], 400)?.0.node;
            b.operator(node, quitCall {})?;
        }
        let own: Vec<u64> = (1..=HOARD).map(|k| (n + 1) << 20 | k).collect();
        let (first, others) = own.split_at(CALL_MODELS);
        let node = b.join("Hoard", vram, first, 400)?.0.node;
        for models in others.chunks(CALL_MODELS) {
            b.operator(node, reportDownloadedCall { models: models.to_vec() })?;
        }
    }
    for n in 0..if stand == Stand::ManySizes { 106 } else { 0 } {
        // More models than stand in a word: else joining would open words for their first task.
        b.join("Apart", 901 - (n + 1) * 7 % 880, &[1, 2, 3, 4, 5, 6, 7], 400)?;
    }
    b.world.return_to_chain()?;
    let all = b.world.view(overviewCall {})?.nodesIssued;
    b.world.rate(all);
    if worn {
        b.world.use_up(all);
    }
    let wad = 1_000_000_000_000_000_000;
    let profile =
        Profile { algorithm: 2, least: 3, most: 9, reschedules: 0, targeting: 0, target: wad, alpha: wad / 2, period: 300 };
    let profiles = [profile.clone(), Profile { targeting: 2, ..profile.clone() }, Profile { least: 9, targeting: 1, ..profile }];
    for profile in &profiles {
        for models in [0, 1, 3, 6] {
            for hash in 0..hashes {
                let fresh = b.world.snapshot();
                let models: Vec<u64> = (1..=models).map(|k| 1 << 39 | k).collect();
                b.world.call(b.creator, 0, setProfileCall { profile: profile.clone() })?;
                b.world.end_period(b.creator);
                b.world.blocks(hash)?;
                b.create(9 * TOKEN, TaskSpec { redundancy: 3, vram: 9, ..spec(&models) })?;
                b.world.blocks(1)?;
                for part in 0.. {
                    ensure!(part < 64, "no group was formed");
                    others(&mut b, (&running, idle, paused), d)?;
                    let done = b.dispatch(1)?;
                    d.see("dispatch one", &done);
                    if !done.events::<GroupFormed>().is_empty() {
                        break;
                    }
                    if !done.events::<TaskRedrawn>().is_empty() {
                        b.world.blocks(1)?;
                    }
                }
                b.world.revert(fresh);
            }
        }
    }
    Ok(())
}

/// The calls of others, each undone again.
fn others(b: &mut Bench, (running, idle, paused): (&[TaskStarted], u32, u32), d: &mut Dearest) -> Result<()> {
    let large: Vec<u64> = (1..=8).map(|k| 1 << 38 | k).collect();
    let (stranger, joined) = (b.world.account(b'o', 0), b.joined);
    let task = TaskSpec { flags: 1, ..spec(&large) };
    let (one, other) = (&running[0], &running[1]);
    let mut see = |what: &str, call: &dyn Fn(&mut Bench) -> Result<Done>| {
        let before = b.world.snapshot();
        let done = match call(b) {
            // A caller that is refused because draws are due makes one.
            Err(refused) if format!("{refused:#}").contains("DrawsDue") => b.dispatch(1),
            done => done,
        };
        d.see(what, &done.with_context(|| what.to_string())?);
        b.world.revert(before);
        b.joined = joined;
        Ok::<_, anyhow::Error>(())
    };
    see("submit", &|b| b.submit(one.node, one.id))?;
    see("report an error", &|b| b.operator(one.node, reportErrorCall { id: one.id, code: 1 }))?;
    see("expire", &|b| {
        b.world.pass(101)?;
        b.world.call(stranger, 0, expireCall { node: other.node, id: other.id })
    })?;
    see("create a task of 8 models", &|b| b.world.call(stranger, TOKEN, createTaskCall { spec: task.clone() }))?;
    see("resume", &|b| b.operator(paused, resumeCall {}))?;
    see("pause", &|b| b.operator(idle, pauseCall {}))?;
    see("quit", &|b| b.operator(idle, quitCall {}))?;
    see("raise a stake", &|b| b.world.call(b.operators[&idle], TOKEN, raiseStakeCall {}))?;
    see("join", &|b| Ok(b.join("Innocent", 8, &large, 400)?.1))
}
