//! The cost that an adversary can add to a call.

use crate::dearest::{Attack, Dearest};
use crate::measure::{spec, Bench, GPU, MODEL, VRAM};
use crate::rated::{self, Stand};
use crate::world::TOKEN;
use alloy_primitives::Address;
use anyhow::{ensure, Result};
use muster_core::record::CALL_MODELS;
use muster_protocol::IMuster::{self, *};
use muster_sim::numbers::thousands;

impl Bench {
    /// Creates tasks, lets nodes answer, fail and time out, join, pause, resume and quit, and counts every call.
    fn exercise(
        &mut self,
        d: &mut Dearest,
        rounds: usize,
        models: impl Fn(u64) -> Vec<u64>,
        task: impl Fn(usize) -> TaskSpec,
    ) -> Result<()> {
        self.create(TOKEN, task(0))?;
        let mut running: Vec<TaskStarted> = Vec::new();
        for i in 1..=rounds {
            let done = self.create(TOKEN, task(i))?;
            d.see("create a task, serving one", &done);
            if done.started().is_some() {
                d.dispatched.push(done.gas());
            }
            running.extend(done.events::<TaskStarted>());
            if i % 3 == 0 {
                let Some(s) = running.pop() else { continue };
                let (name, done) = match i % 9 {
                    0 => ("report an error, serving one", self.operator(s.node, reportErrorCall { id: s.id, code: 1 })?),
                    3 => {
                        self.world.pass(101)?;
                        ("expire, serving one", self.world.call(self.creator, 0, expireCall { node: s.node, id: s.id })?)
                    }
                    _ => ("submit, serving one", self.submit(s.node, s.id)?),
                };
                d.see(name, &done);
                running.extend(done.events::<TaskStarted>());
                if i % 9 == 3 {
                    // The others' time is up too, but for those that were started just now.
                    self.world.pass(101)?;
                    for s in std::mem::take(&mut running) {
                        let done = self.world.call(self.creator, 0, expireCall { node: s.node, id: s.id })?;
                        d.see("expire, serving one", &done);
                        running.extend(done.events::<TaskStarted>());
                    }
                }
            }
            if i % 7 == 0 {
                self.thin_out(&mut running)?;
                let models = models(i as u64);
                let (joined, done) = loop {
                    match self.join(GPU, VRAM, &models, 400) {
                        // With many models it makes no expensive draw. One that stays undecided is due again in the next block.
                        Err(refused) if refused.to_string().contains("DrawsDue") => {
                            running.extend(self.dispatch(16)?.events::<TaskStarted>());
                        }
                        joined => break joined?,
                    }
                };
                d.see("join, serving one", &done);
                running.extend(done.events::<TaskStarted>());
                let idle = !running.iter().any(|s| s.node == joined.node);
                if idle {
                    self.create(TOKEN, task(i))?;
                    self.thin_out(&mut running)?;
                    let done = self.operator(joined.node, pauseCall {})?;
                    running.extend(done.events::<TaskStarted>());
                    d.see("pause, serving one", &done);
                    if !running.iter().any(|s| s.node == joined.node) {
                        self.thin_out(&mut running)?;
                        d.see("resume", &self.operator(joined.node, resumeCall {})?);
                        let done = self.operator(joined.node, quitCall {})?;
                        running.extend(done.events::<TaskStarted>());
                        d.see("quit", &done);
                    }
                }
            }
        }
        Ok(())
    }

    /// Draws all but one of the pending tasks, as accounts must that want to join or leave.
    fn thin_out(&self, running: &mut Vec<TaskStarted>) -> Result<()> {
        while self.world.view(overviewCall {})?.pending > 1 {
            running.extend(self.dispatch(1)?.events::<TaskStarted>());
        }
        Ok(())
    }

    /// A new operator joins with as many models as one call can declare, and declares the others afterwards.
    fn join_with_many(&mut self, d: &mut Dearest, held: &[u64]) -> Result<()> {
        let (now, later) = held.split_at(held.len().min(CALL_MODELS));
        let (joined, done) = self.join(GPU, VRAM, now, 400)?;
        d.see("join with as many models as a call takes", &done);
        for models in later.chunks(CALL_MODELS) {
            let done = self.operator(joined.node, reportDownloadedCall { models: models.to_vec() })?;
            d.see("report as many downloaded as a call takes", &done);
        }
        Ok(())
    }

    /// All adversarial runs; `scale` divides their sizes.
    pub fn attacks(scale: u32, step: impl Fn(&str)) -> Result<Vec<Attack>> {
        let mut out = Vec::new();
        let many = 10_000 / scale;
        let rounds = (200 / scale.min(4)) as usize;

        let name = "256 distinct VRAM sizes".to_string();
        step(&name);
        let (mut b, mut d) = (Bench::new()?, Dearest::default());
        for i in 0..256 {
            d.see("join", &b.join(GPU, 1 + i, &[MODEL], 400)?.1);
        }
        b.exercise(&mut d, rounds, |_| vec![MODEL], |i| TaskSpec { vram: (i * 37 % 256) as u16, ..spec(&[MODEL]) })?;
        out.push(d.attack(name));

        let name = format!("{} GPU names of one VRAM size", thousands(many as u64));
        step(&name);
        let (mut b, mut d) = (Bench::new()?, Dearest::default());
        for i in 0..many {
            d.see("join, a new GPU name of 64 bytes", &b.join(&format!("{i:064}"), VRAM, &[MODEL], 400)?.1);
        }
        b.exercise(&mut d, rounds, |_| vec![MODEL], |_| spec(&[MODEL]))?;
        out.push(d.attack(name));

        let name = format!("{} models, 32 a node, one holder each", thousands(many as u64));
        step(&name);
        let (mut b, mut d) = (Bench::new()?, Dearest::default());
        let each: Vec<u64> = (1..=many as u64).collect();
        for held in each.chunks(32) {
            b.join_with_many(&mut d, held)?;
        }
        b.exercise(
            &mut d,
            rounds,
            |i| (0..CALL_MODELS as u64).map(|k| 1 << 32 | i << 8 | k).collect(),
            |i| {
                spec(
                    &(0..8)
                        .map(|k| 1 + (i as u64 * 8 + k) * 97 % many as u64)
                        .collect::<std::collections::BTreeSet<_>>()
                        .into_iter()
                        .collect::<Vec<_>>(),
                )
            },
        )?;
        out.push(d.attack(name));

        let nodes = 1_000 / scale;
        let name = format!("{} nodes that declare the same 32 models, tasks that need 8", thousands(nodes as u64));
        step(&name);
        let (mut b, mut d) = (Bench::new()?, Dearest::default());
        for _ in 0..nodes {
            b.join_with_many(&mut d, &each[..32])?;
        }
        b.exercise(&mut d, rounds, |_| each[..CALL_MODELS].to_vec(), |_| spec(&each[24..32]))?;
        out.push(d.attack(name));

        let name = format!("{} queued tasks of equal value", thousands(many as u64));
        step(&name);
        let (mut b, mut d) = (Bench::new()?, Dearest::default());
        b.grow(10, |_| ())?;
        b.world.set("alphaMilli", 1_000_000_000)?;
        let mut running = Vec::new();
        for _ in 0..many {
            let done = b.create(TOKEN, spec(&[MODEL]))?;
            running.extend(done.events::<TaskStarted>());
            d.see("create a task, queueing one", &done);
        }
        for _ in 0..rounds {
            let Some(s) = running.pop() else { break };
            let done = b.submit(s.node, s.id)?;
            running.extend(done.events::<TaskStarted>());
            d.see("submit, and start the best queued", &done);
            let (_, done) = b.join(GPU, VRAM, &[MODEL], 400)?;
            running.extend(done.events::<TaskStarted>());
            d.see("join, and start the best queued", &done);
        }
        out.push(d.attack(name));

        let nodes = 200 / scale.min(4);
        let name = format!("all of {nodes} nodes excluded but one");
        step(&name);
        let (mut b, mut d) = (Bench::new()?, Dearest::default());
        b.grow(nodes, |_| ())?;
        b.world.set("tau", 604_800)?;
        let (spared, _) = b.join("Spared", 80, &[MODEL], 400)?;
        for _ in 0..3 {
            let mut running: Vec<TaskStarted> = Vec::new();
            let task = TaskSpec { gpu: 1 << 16 | VRAM as u32, ..spec(&[MODEL]) };
            while b.create(TOKEN, task.clone())?.events::<TaskQueued>().is_empty() {}
            // Every node has a task now; the other tasks wait in the queue, or are aborted with it.
            for node in 1..=nodes {
                let v = b.view(node)?;
                if v.status == 2 {
                    running.push(TaskStarted { id: v.task, node, creator: Address::ZERO, deadline: v.deadline, boosts: false });
                }
            }
            b.world.pass(101)?;
            for s in running {
                d.see("expire", &b.world.call(b.creator, 0, expireCall { node: s.node, id: s.id })?);
            }
        }
        let excluded = (1..=nodes).map(|n| b.view(n)).filter(|v| v.as_ref().is_ok_and(|v| v.excluded)).count();
        ensure!(excluded as u32 == nodes, "only {excluded} of {nodes} nodes are excluded");
        for _ in 0..rounds {
            let (s, done) = b.run(TOKEN, spec(&[MODEL]))?;
            ensure!(s.node == spared.node, "an excluded node was chosen");
            d.see("dispatch one", &done);
            d.see("submit", &b.submit(s.node, s.id)?);
        }
        out.push(d.attack(name));

        let hostile = 384 / scale;
        let name =
            format!("{hostile} idle nodes that held models of tasks of 8 and dropped them, one such task Pending, two queued");
        step(&name);
        let (mut b, mut d) = (Bench::new()?, Dearest::default());
        b.world.set("alphaMilli", 100_000)?;
        let (honest, large) = (40, 24);
        let mut running = Vec::new();
        for _ in 0..honest {
            b.join("Honest", large, &[], 400)?;
            running.push(b.run(TOKEN, TaskSpec { vram: large, ..spec(&[]) })?.0);
        }
        for i in 0..hostile as u64 {
            // The model stands in the last of six words.
            let own: Vec<u64> = (1..32).map(|k| 1 << 33 | i << 8 | k).chain([1 + i % 24]).collect();
            let (joined, _) = b.join(GPU, VRAM, &own[..CALL_MODELS], 400)?;
            for models in own[CALL_MODELS..].chunks(CALL_MODELS) {
                b.operator(joined.node, reportDownloadedCall { models: models.to_vec() })?;
            }
            b.operator(joined.node, reportRemovedCall { models: vec![1 + i % 24] })?;
        }
        for i in 0..rounds.min(honest as usize) as u64 {
            let set = |s: u64| -> Vec<u64> { (1..=8).map(|k| s % 3 * 8 + k).collect() };
            for s in [i, i + 1] {
                b.create(2 * TOKEN, TaskSpec { vram: large, ..spec(&set(s)) })?;
            }
            d.see("create a task of 8 models", &b.create(TOKEN, spec(&set(i + 2)))?);
            let s = running.swap_remove(0);
            let done = b.submit(s.node, s.id)?;
            d.see("an innocent submit", &done);
            running.extend(done.events::<TaskStarted>().into_iter().filter(|s| s.node <= honest));
        }
        out.push(d.attack(name));

        let nodes = 1_000 / scale;
        let name = format!("one node with 10,000 times the stake of {} others", thousands(nodes as u64));
        step(&name);
        let (mut b, mut d) = (Bench::new()?, Dearest::default());
        b.grow(nodes, |_| ())?;
        d.see("join", &b.join(GPU, VRAM, &[MODEL], 4_000_000)?.1);
        b.exercise(&mut d, rounds, |_| vec![MODEL], |_| spec(&[MODEL]))?;
        out.push(d.attack(name));

        for (stand, where_to) in [
            (Stand::ManySizes, "among nodes at 114 sizes of VRAM"),
            (Stand::NineAlone, "of nine nodes at sizes of VRAM of 34 GPU names each"),
        ] {
            for worn in [false, true] {
                let had = if worn { "have had" } else { "never had" };
                let name = format!("a group of nine due, chosen by ratings {where_to} that {had} tasks");
                step(&name);
                let mut d = Dearest::default();
                rated::strangers_group(stand, worn, if scale > 1 { 2 } else { 12 }, &mut d)?;
                out.push(d.attack(name));
            }
        }
        Ok(out)
    }

    fn view(&self, node: u32) -> Result<IMuster::NodeView> {
        self.world.view(nodeCall { number: node })
    }
}
