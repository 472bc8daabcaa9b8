//! Validation: sampled tasks, and those that take three nodes at once.

use crate::answer::{commitment, revealing};
use crate::measure::{spec, Bench, GPU, MODEL, VRAM};
use crate::world::{Done, TOKEN};
use anyhow::{ensure, Context, Result};
use muster_protocol::IMuster::*;

const COMMIT: &str = "commit, a task that may be sampled";
const REVEAL: &str = "reveal, not sampled: paid and released";

impl Bench {
    /// Tasks that can be validated, on nodes that have done all of it before: without being sampled, and sampled, with three right
    /// answers or one that is wrong.
    pub(crate) fn validation(&mut self, samples: usize) -> Result<()> {
        if self.nodes < 12 {
            return Ok(());
        }
        let gpu = self.world.view(gpuGroupCall { name: GPU.into(), vram: VRAM })?;
        self.world.owner_calls(listGpuGroupCall { group: gpu, listed: true })?;
        let wanted = TaskSpec { kind: 1, gpu, redundancy: 1, ..spec(&[MODEL]) };
        for round in 0..=samples {
            self.world.set("sampleBps", 1)?;
            let (alone, _) = self.run(TOKEN, wanted.clone())?;
            let at = |id: u64, node: u32, answer: u8| commitCall { id, commitment: commitment(id, node, answer) };
            // One commitment in ten thousand is sampled all the same: then once more, from other hashes.
            let [committed, revealed] = loop {
                let before = self.world.snapshot();
                let committed = self.first(COMMIT, |b| b.operator(alone.node, at(alone.id, alone.node, 1)))?;
                self.blocks(3)?;
                match self.first(REVEAL, |b| b.operator(alone.node, revealing(alone.id, 0, alone.node, 1))) {
                    Ok(revealed) => break [committed, revealed],
                    Err(refused) if refused.to_string().contains("Sampled") => self.world.revert(before),
                    Err(other) => return Err(other),
                }
                self.world.blocks(1)?;
            };
            self.keep(COMMIT, committed);
            self.keep(REVEAL, revealed);
            for wrong in [false, true] {
                self.world.set("sampleBps", 10_000)?;
                // A slash of twenty such fees puts a node out.
                let fee = TOKEN * if wrong { 2 } else { 1 };
                let (first, _) = self.run(fee, wanted.clone())?;
                self.operator(first.node, at(first.id, first.node, 1))?;
                self.blocks(3)?;
                let validate = validateCall { id: first.id, node: first.node };
                self.take("validate, a sampled task", |b| b.operator(first.node, validate))?;
                self.blocks(3)?;
                let name = "form a group: two validators drawn";
                let formed = self.first(name, |b| b.operator(first.node, formGroupCall {}))?;
                let mut group = formed.events::<GroupFormed>().pop();
                if group.is_some() {
                    self.keep(name, formed);
                }
                while group.is_none() {
                    self.blocks(3)?;
                    group = self.operator(first.node, formGroupCall {})?.events::<GroupFormed>().pop();
                }
                let group = group.context("no group")?;
                let [a, b, c] = group.nodes[..] else { anyhow::bail!("not three members") };
                let said = |node: u32| if wrong && node == c { 2 } else { 1 };
                for node in [b, c] {
                    self.take("commit, a member: released", |x| x.operator(node, at(first.id, node, said(node))))?;
                }
                for (node, name) in [(a, "reveal in a group, the first"), (b, "reveal in a group, the second of two equal")] {
                    self.take(name, |x| x.operator(node, revealing(first.id, group.group, node, said(node))))?;
                }
                let last = if wrong {
                    "reveal in a group, the last: three judged, one slashed out"
                } else {
                    "reveal in a group, the last: three judged"
                };
                self.take(last, |x| x.operator(c, revealing(first.id, group.group, c, said(c))))?;
            }
            if round == 0 {
                // It has worn the words in: the reserve, a place, a commitment.
                self.taken.clear();
            }
        }
        Ok(())
    }

    /// Tasks that take three nodes at once, on nodes that have done all of it before.
    pub(crate) fn replicated(&mut self, samples: usize) -> Result<()> {
        if self.nodes < 12 {
            return Ok(());
        }
        let gpu = self.world.view(gpuGroupCall { name: GPU.into(), vram: VRAM })?;
        self.world.owner_calls(listGpuGroupCall { group: gpu, listed: true })?;
        let wanted = TaskSpec { kind: 1, redundancy: 2, ..spec(&[MODEL]) };
        for round in 0..=samples {
            let before = self.create(3 * TOKEN, wanted.clone())?;
            ensure!(before.events::<GroupFormed>().is_empty(), "something was Pending");
            let name = "create a replicated task and dispatch one";
            let done = self.first(name, |b| b.create(3 * TOKEN, wanted.clone()))?;
            let mut groups = done.events::<GroupFormed>();
            if !groups.is_empty() {
                self.keep(name, done);
            }
            while groups.len() < 2 {
                groups.append(&mut self.dispatch(2)?.events::<GroupFormed>());
            }
            for group in groups {
                for &node in &group.nodes {
                    self.operator(node, commitCall { id: group.id, commitment: commitment(group.id, node, 1) })?;
                }
                for (i, &node) in group.nodes.iter().enumerate() {
                    let last = "reveal in a replicated task's group, the last: three judged";
                    let reveal = revealing(group.id, group.group, node, 1);
                    if i < 2 {
                        self.operator(node, reveal)?;
                    } else {
                        self.take(last, |b| b.operator(node, reveal))?;
                    }
                }
            }
            if round == 0 {
                // It has worn the words in.
                self.taken.clear();
            }
        }
        Ok(())
    }

    /// Has a sampled task validated, and two draw beside its node.
    pub(crate) fn sampled(&self, id: u64, node: u32) -> Result<GroupFormed> {
        self.operator(node, validateCall { id, node })?;
        loop {
            self.blocks(3)?;
            if let Some(group) = self.operator(node, formGroupCall {})?.events::<GroupFormed>().pop() {
                return Ok(group);
            }
        }
    }

    /// Lets the members of a group commit to one answer, those that have not, and reveal it; gives the call in which they were judged.
    pub(crate) fn answer(&self, group: &GroupFormed) -> Result<Done> {
        let mut last = None;
        for &node in &group.nodes {
            match self.operator(node, commitCall { id: group.id, commitment: commitment(group.id, node, 1) }) {
                Ok(_) => {}
                // The node that was sampled has, before it was.
                Err(_) if node == group.nodes[0] => {}
                Err(other) => return Err(other),
            }
        }
        for &node in &group.nodes {
            last = Some(self.operator(node, revealing(group.id, group.group, node, 1))?);
        }
        last.context("a group without members")
    }

    /// Lets so many blocks pass.
    pub(crate) fn blocks(&self, n: u32) -> Result<()> {
        (0..n).try_for_each(|_| self.dispatch(0).map(drop))
    }
}
