//! Groups chosen by their members' ratings.

use crate::measure::{spec, Bench, GPU, MODEL, VRAM};
use crate::validation::{commitment, revealing};
use crate::world::TOKEN;
use anyhow::{ensure, Context, Result};
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
                // It has worn the words in.
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
