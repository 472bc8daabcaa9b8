//! A freed node's call while tasks of all grades are queued for it: a single one starts, or the node waits for others, or three are
//! reserved for a draw.

use crate::measure::{spec, Bench, MODEL};
use crate::world::TOKEN;
use anyhow::{ensure, Result};
use muster_protocol::IMuster::*;

/// The GPU of the three nodes that tasks are queued for, with more VRAM than all others.
const TRIO: (&str, u16) = ("Trio GPU", 96);

impl Bench {
    /// Lets three nodes of one listed GPU group join, and each start a task; gives the group and the tasks.
    pub(crate) fn trio(&mut self) -> Result<(u32, Vec<TaskStarted>)> {
        self.world.set("alphaMilli", 1_000_000_000)?;
        let mut group = 0;
        for _ in 0..3 {
            group = self.join(TRIO.0, TRIO.1, &[MODEL], 400)?.0.group;
        }
        self.world.owner_calls(listGpuGroupCall { group, listed: true })?;
        let running = (0..3).map(|_| Ok(self.run(TOKEN, TaskSpec { gpu: group, ..spec(&[MODEL]) })?.0));
        Ok((group, running.collect::<Result<_>>()?))
    }

    /// Queues so many tasks for the three, half for their GPU group and half for any: of all grades in turn, or single ones.
    pub(crate) fn fill(&mut self, group: u32, queue: u32, graded: bool, step: impl Fn(u32)) -> Result<()> {
        for i in 0..queue {
            let gpu = if i % 2 == 0 { 0 } else { group };
            let (kind, redundancy) = [(0, 0), (0, 2), (1, 2)][i as usize % 3];
            let redundancy = if graded { redundancy } else { 0 };
            // Worth more to each of three than a single one.
            let fee = TOKEN * (1 + 3 * u128::from(redundancy > 0)) - u128::from(i);
            self.create(fee, TaskSpec { kind, redundancy, gpu, vram: TRIO.1, ..spec(&[MODEL]) })?;
            step(i);
        }
        while self.world.view(overviewCall {})?.pending > 0 {
            self.dispatch(16)?;
        }
        Ok(())
    }

    /// The cost of a freed node's call with this many tasks queued, of all grades or single ones only.
    pub fn graded(&mut self, queue: u32, samples: usize, step: impl Fn(u32)) -> Result<()> {
        self.values = "";
        for graded in [false, true] {
            self.aside(|b| {
                let (group, running) = b.trio()?;
                b.beside(|b| b.fill(group, queue, graded, &step))?;
                b.queued = queue;
                b.both(|b| {
                    for _ in 0..samples.min(9) {
                        if graded {
                            b.reserve(&running)?;
                        }
                        let snapshot = b.world.snapshot();
                        b.create(5 * TOKEN, TaskSpec { gpu: group, ..spec(&[MODEL]) })?;
                        b.dispatch(1)?;
                        let name = if graded { STARTS } else { STARTS_AMONG_SINGLE };
                        let (node, id) = (running[0].node, running[0].id);
                        let done = b.first(name, |b| b.submit(node, id))?;
                        ensure!(done.started().is_some(), "no queued task was started");
                        b.keep(name, done);
                        b.world.revert(snapshot);
                        // Another time, another hash.
                        b.blocks(1)?;
                    }
                    Ok(())
                })
            })?;
        }
        Ok(())
    }

    /// Frees the three, one after the other, and goes back.
    fn reserve(&mut self, running: &[TaskStarted]) -> Result<()> {
        let snapshot = self.world.snapshot();
        for (i, task) in running.iter().enumerate() {
            let free = |b: &mut Bench| b.submit(task.node, task.id);
            match i {
                0 => self.take(WAITS, free)?,
                1 => drop(free(self)?),
                _ => self.take(RESERVES, free)?,
            }
        }
        ensure!(self.world.view(overviewCall {})?.pending == 1, "three were not reserved");
        self.world.revert(snapshot);
        Ok(())
    }
}

/// The rows with tasks of all grades queued.
pub const GRADED: [&str; 3] = [STARTS, WAITS, RESERVES];
const STARTS: &str = "submit with all grades queued: a single task starts";
const WAITS: &str = "submit with all grades queued: waits for others";
const RESERVES: &str = "submit with all grades queued: three are reserved";
/// The row they are held against: the same task starts on the same node, as many single ones being queued in the same way.
pub const STARTS_AMONG_SINGLE: &str = "submit with single tasks queued: one starts";
