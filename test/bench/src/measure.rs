//! Every operation, at a size of the network and of the queue.

use crate::page::thousands;
use crate::world::{Done, World, TOKEN};
use alloy_primitives::{keccak256, Address, B256};
use alloy_sol_types::SolValue;
use anyhow::{ensure, Context, Result};
use muster_core::record::CALL_MODELS;
use muster_protocol::IMuster::{self, *};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The model that every node of the ordinary network holds.
pub const MODEL: u64 = 0x1234567890;
/// The GPU of the ordinary network.
pub const GPU: &str = "NVIDIA GeForce RTX 4090";
/// VRAM of the ordinary network's nodes, in GiB.
pub const VRAM: u16 = 24;

/// Gas of one operation in one setting.
#[derive(Clone, Serialize, Deserialize, PartialEq, Eq, Debug)]
pub struct Row {
    /// What was done, and in which state.
    pub operation: String,
    /// In which order of values tasks were queued; empty if none were.
    pub values: String,
    /// Nodes joined.
    pub nodes: u32,
    /// Tasks queued.
    pub queued: u32,
    /// Whether the programs were in the chain's cache.
    pub cached: bool,
    /// Calls measured.
    pub samples: usize,
    /// Least gas.
    pub least: u64,
    /// Median gas.
    pub median: u64,
    /// Most gas.
    pub most: u64,
    /// Of the first call measured: what any contract would pay at least ([`World::floor_on`]), and its gas.
    pub floor: Option<(u64, u64)>,
}

/// A network under measurement.
pub struct Bench {
    /// Where it lives.
    pub world: World,
    /// Who creates tasks.
    pub creator: Address,
    /// Nodes ever joined.
    pub joined: u32,
    /// Nodes joined now, for the rows.
    pub nodes: u32,
    /// Tasks queued now, for the rows.
    pub queued: u32,
    operators: HashMap<u32, Address>,
    cached: bool,
    values: &'static str,
    taken: BTreeMap<String, Vec<Done>>,
    /// What was measured.
    pub rows: Vec<Row>,
}

/// A task for any node with 8 GiB: one image.
pub fn spec(models: &[u64]) -> TaskSpec {
    TaskSpec { kind: 0, units: 1, vram: 8, gpu: 0, redundancy: 0, flags: 0, inputDigest: [7; 32].into(), models: models.to_vec() }
}

/// What a node commits to that answers so.
fn commitment(id: u64, node: u32, answer: u8) -> B256 {
    keccak256((id, node, 0u16, B256::repeat_byte(answer), B256::repeat_byte(7)).abi_encode_params())
}

/// The reveal of it.
fn revealing(id: u64, group: u32, node: u32, answer: u8) -> revealCall {
    revealCall { id, group, node, kind: 0, value: B256::repeat_byte(answer), salt: B256::repeat_byte(7) }
}

impl Bench {
    /// An empty network.
    pub fn new() -> Result<Bench> {
        let world = World::new()?;
        let creator = world.account(b'c', 0);
        Ok(Bench {
            world,
            creator,
            joined: 0,
            nodes: 0,
            queued: 0,
            operators: HashMap::new(),
            cached: false,
            values: "",
            taken: BTreeMap::new(),
            rows: Vec::new(),
        })
    }

    // ------------------------------------------------------------ calls

    /// A new operator joins.
    pub fn join(&mut self, gpu: &str, vram: u16, models: &[u64], tokens: u128) -> Result<(NodeJoined, Done)> {
        let operator = self.world.account(b'n', self.joined);
        // A name that is new costs a hundredth of the minimum stake.
        let fee = if self.world.known(gpu, vram)? { 0 } else { 4 * TOKEN };
        let done =
            self.world.call(operator, tokens * TOKEN + fee, joinCall { gpuName: gpu.into(), vram, models: models.to_vec() })?;
        let node = done.events::<NodeJoined>().into_iter().next().context("no NodeJoined")?;
        self.joined += 1;
        self.operators.insert(node.node, operator);
        Ok((node, done))
    }

    /// Creates a task.
    pub fn create(&self, fee: u128, spec: TaskSpec) -> Result<Done> {
        self.world.call(self.creator, fee, createTaskCall { spec })
    }

    /// Draws pending tasks.
    pub fn dispatch(&self, count: u8) -> Result<Done> {
        self.world.call(self.creator, 0, dispatchCall { count })
    }

    /// A node's operator calls.
    pub fn operator<C: alloy_sol_types::SolCall>(&self, node: u32, call: C) -> Result<Done> {
        self.world.call(self.operators[&node], 0, call)
    }

    /// A node answers.
    pub fn submit(&self, node: u32, id: u64) -> Result<Done> {
        self.operator(node, submitCall { id, resultDigest: [9; 32].into() })
    }

    /// Creates a task and draws it, again until it is decided; gives the call that started it.
    pub fn run(&self, fee: u128, spec: TaskSpec) -> Result<(TaskStarted, Done)> {
        let done = self.create(fee, spec)?;
        match done.started() {
            Some(started) => Ok((started, done)),
            None => self.started(),
        }
    }

    // ------------------------------------------------------------ rows

    /// Makes a call that counts; the first of its operation has its floor worked out.
    pub fn take(&mut self, operation: &str, call: impl FnOnce(&mut Bench) -> Result<Done>) -> Result<()> {
        let done = self.first(operation, call)?;
        self.keep(operation, done);
        Ok(())
    }

    fn first(&mut self, operation: &str, call: impl FnOnce(&mut Bench) -> Result<Done>) -> Result<Done> {
        let first = !self.taken.contains_key(operation);
        self.world.floor_on(first);
        let done = call(self);
        self.world.floor_on(false);
        done
    }

    /// Counts a call.
    pub fn keep(&mut self, operation: &str, done: Done) {
        self.taken.entry(operation.into()).or_default().push(done);
    }

    /// Turns what was counted since the last time into rows.
    pub fn settle(&mut self) {
        for (operation, calls) in std::mem::take(&mut self.taken) {
            let mut gas: Vec<u64> = calls.iter().map(|d| d.gas).collect();
            gas.sort_unstable();
            self.rows.push(Row {
                operation,
                values: self.values.into(),
                nodes: self.nodes,
                queued: self.queued,
                cached: self.cached,
                samples: gas.len(),
                least: gas[0],
                median: gas[gas.len() / 2],
                most: gas[gas.len() - 1],
                floor: calls[0].floor.map(|f| (f, calls[0].gas)),
            });
        }
    }

    /// Does something twice from the same state, with the programs cached and not, and goes back.
    pub fn both(&mut self, mut f: impl FnMut(&mut Bench) -> Result<()>) -> Result<()> {
        for cached in [true, false] {
            self.aside(|b| {
                b.cached = cached;
                if cached {
                    b.world.cache()?;
                }
                f(b)
            })?;
        }
        Ok(())
    }

    /// Does something and goes back to the state before.
    pub fn aside(&mut self, f: impl FnOnce(&mut Bench) -> Result<()>) -> Result<()> {
        let (snapshot, joined, nodes, queued) = (self.world.snapshot(), self.joined, self.nodes, self.queued);
        f(self)?;
        self.settle();
        self.world.revert(snapshot);
        (self.joined, self.nodes, self.queued) = (joined, nodes, queued);
        Ok(())
    }

    // ------------------------------------------------------------ the ordinary network

    /// Lets ordinary nodes join until there are `n`.
    pub fn grow(&mut self, n: u32, step: impl Fn(u32)) -> Result<()> {
        while self.joined < n {
            self.join(GPU, VRAM, &[MODEL], 400)?;
            step(self.joined);
        }
        self.nodes = n;
        Ok(())
    }

    /// All operations with nothing queued.
    pub fn plain(&mut self, samples: usize) -> Result<()> {
        self.both(|b| {
            b.aside(|b| b.tasks(samples, true))?;
            b.aside(|b| b.tasks(samples, false))?;
            b.aside(|b| b.membership(samples))?;
            b.aside(|b| b.receipts(samples))?;
            b.aside(|b| b.validation(samples))?;
            b.aside(|b| b.replicated(samples))
        })
    }

    /// Tasks that find a node at once. With `fresh` nodes never had a task; else all have.
    fn tasks(&mut self, samples: usize, fresh: bool) -> Result<()> {
        let (first, _) = self.run(TOKEN, spec(&[MODEL]))?;
        self.submit(first.node, first.id)?;
        if !fresh {
            self.world.wear(first.node, 1..=self.nodes);
        }
        let mut worked = HashSet::from([first.node]);
        let mut taken = 0;
        for _ in 0..samples * 20 {
            if taken == samples {
                break;
            }
            // The call that creates one task and draws another is made and taken back: what follows needs nothing pending.
            let snapshot = self.world.snapshot();
            if fresh {
                self.create(TOKEN, spec(&[MODEL]))?;
            } else {
                self.take("create a task, nothing pending", |b| b.create(TOKEN, spec(&[MODEL])))?;
            }
            let name = if fresh { "create a task and dispatch one, a node's first" } else { "create a task and dispatch one" };
            let done = self.first(name, |b| b.create(TOKEN, spec(&[MODEL])))?;
            match done.started() {
                Some(s) if !fresh || !worked.contains(&s.node) => {
                    self.keep(name, done);
                    taken += 1;
                }
                _ => {}
            }
            self.world.revert(snapshot);
            let (started, done) = self.run(TOKEN, spec(&[MODEL]))?;
            worked.insert(started.node);
            if fresh {
                self.submit(started.node, started.id)?;
                if worked.len() as u32 == self.nodes {
                    break;
                }
                continue;
            }
            self.keep("dispatch one", done);
            self.take("submit, nothing queued", |b| b.submit(started.node, started.id))?;
            if taken % 4 == 0 {
                let (s, _) = self.run(TOKEN, spec(&[MODEL]))?;
                self.take("report an error", |b| b.operator(s.node, reportErrorCall { id: s.id, code: 3 }))?;
            }
        }
        if !fresh {
            for _ in 0..3.min(self.nodes) {
                let (s, _) = self.run(TOKEN, spec(&[MODEL]))?;
                self.world.pass(101)?;
                self.take("expire", |b| b.world.call(b.creator, 0, expireCall { node: s.node, id: s.id }))?;
            }
        }
        Ok(())
    }

    /// Tasks that ask for a receipt, as the rows without: the nodes had tasks before.
    fn receipts(&mut self, samples: usize) -> Result<()> {
        let wanted = TaskSpec { flags: 1, ..spec(&[MODEL]) };
        let (first, _) = self.run(TOKEN, wanted.clone())?;
        self.submit(first.node, first.id)?;
        self.world.wear(first.node, 1..=self.nodes);
        for _ in 0..samples.div_ceil(2) {
            self.take("create a task with a receipt, nothing pending", |b| b.create(TOKEN, wanted.clone()))?;
            let (started, _) = self.started()?;
            self.take("submit, with a receipt, nothing queued", |b| b.submit(started.node, started.id))?;
        }
        Ok(())
    }

    /// Draws until a task starts.
    fn started(&self) -> Result<(TaskStarted, Done)> {
        for _ in 0..1_000 {
            let done = self.dispatch(1)?;
            if let Some(started) = done.started() {
                return Ok((started, done));
            }
        }
        anyhow::bail!("a task was not started")
    }

    /// Tasks that can be validated, on nodes that have done all of it before: without being sampled, and sampled, with three right
    /// answers or one that is wrong.
    fn validation(&mut self, samples: usize) -> Result<()> {
        if self.nodes < 12 {
            return Ok(());
        }
        let gpu = self.world.view(gpuGroupCall { name: GPU.into(), vram: VRAM })?;
        self.world.owner_calls(listGpuGroupCall { group: gpu, listed: true })?;
        let wanted = TaskSpec { kind: 1, gpu, redundancy: 1, ..spec(&[MODEL]) };
        let (worn, _) = self.run(TOKEN, spec(&[MODEL]))?;
        self.submit(worn.node, worn.id)?;
        self.world.wear(worn.node, 1..=self.nodes);
        for round in 0..=samples {
            self.world.set("sampleBps", 1)?;
            let (alone, _) = self.run(TOKEN, wanted.clone())?;
            let at = |id: u64, node: u32, answer: u8| commitCall { id, commitment: commitment(id, node, answer) };
            self.take("commit, a task that may be sampled", |b| b.operator(alone.node, at(alone.id, alone.node, 1)))?;
            if round == 0 {
                self.world.wear_validated(alone.node, 1..=self.nodes);
            }
            self.blocks(3)?;
            self.take("reveal, not sampled: paid and released", |b| {
                b.operator(alone.node, revealing(alone.id, 0, alone.node, 1))
            })?;
            for wrong in [false, true] {
                self.world.set("sampleBps", 10_000)?;
                let (first, _) = self.run(TOKEN, wanted.clone())?;
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
                for node in [a, b] {
                    self.take("reveal in a group, not the last", |x| {
                        x.operator(node, revealing(first.id, group.group, node, said(node)))
                    })?;
                }
                let last = if wrong {
                    "reveal in a group, the last: three judged, one slashed"
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
    fn replicated(&mut self, samples: usize) -> Result<()> {
        if self.nodes < 12 {
            return Ok(());
        }
        let gpu = self.world.view(gpuGroupCall { name: GPU.into(), vram: VRAM })?;
        self.world.owner_calls(listGpuGroupCall { group: gpu, listed: true })?;
        let (worn, _) = self.run(TOKEN, spec(&[MODEL]))?;
        self.submit(worn.node, worn.id)?;
        self.world.wear(worn.node, 1..=self.nodes);
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

    /// A freed node's call with tasks of all grades queued for it, half of them for its GPU group and half for any: a single one starts,
    /// or the node waits for others, or three are reserved.
    pub fn graded(&mut self, queue: u32, samples: usize, step: impl Fn(u32)) -> Result<()> {
        self.values = "";
        self.aside(|b| {
            b.world.set("alphaMilli", 1_000_000_000)?;
            let (gpu, vram) = ("Trio GPU", 96);
            let trio: Vec<NodeJoined> = (0..3).map(|_| Ok(b.join(gpu, vram, &[MODEL], 400)?.0)).collect::<Result<_>>()?;
            let group = trio[0].group;
            b.world.owner_calls(listGpuGroupCall { group, listed: true })?;
            let single = TaskSpec { gpu: group, ..spec(&[MODEL]) };
            let mut running = Vec::new();
            for _ in &trio {
                running.push(b.run(TOKEN, single.clone())?.0);
            }
            for i in 0..queue.max(1) {
                let any = if i % 2 == 0 { 0 } else { group };
                let (kind, redundancy) = [(0, 0), (0, 2), (1, 2)][i as usize % 3];
                // Worth more to each of three than a single one.
                let fee = TOKEN * (1 + 3 * u128::from(redundancy > 0)) - u128::from(i);
                b.create(fee, TaskSpec { kind, redundancy, gpu: any, vram, ..spec(&[MODEL]) })?;
                step(i);
            }
            while b.world.view(overviewCall {})?.pending > 0 {
                b.dispatch(16)?;
            }
            b.queued = queue;
            b.both(|b| {
                for _ in 0..samples.min(9) {
                    let snapshot = b.world.snapshot();
                    for (i, task) in running.iter().enumerate() {
                        let name = [
                            "submit with all grades queued: waits for others",
                            "",
                            "submit with all grades queued: three are reserved",
                        ][i];
                        if name.is_empty() {
                            b.submit(task.node, task.id)?;
                        } else {
                            b.take(name, |b| b.submit(task.node, task.id))?;
                        }
                    }
                    ensure!(b.world.view(overviewCall {})?.pending == 1, "three were not reserved");
                    b.world.revert(snapshot);
                    let snapshot = b.world.snapshot();
                    b.create(5 * TOKEN, single.clone())?;
                    b.dispatch(1)?;
                    b.take("submit with all grades queued: a single task starts", |b| b.submit(running[0].node, running[0].id))?;
                    b.world.revert(snapshot);
                    // Another time, another hash.
                    b.blocks(1)?;
                }
                Ok(())
            })
        })
    }

    /// Lets so many blocks pass.
    fn blocks(&self, n: u32) -> Result<()> {
        (0..n).try_for_each(|_| self.dispatch(0).map(drop))
    }

    fn membership(&mut self, samples: usize) -> Result<()> {
        let models: Vec<u64> = (1..=10).map(|i| 0x77_0000_0000 + i).collect();
        for set in 1..=8 {
            let new: Vec<u64> = (1..=10).map(|i| 0x77_0000_0000 * set / 8 + i).collect();
            self.take("join, first holder of 10 models", |b| Ok(b.join(GPU, VRAM, &new, 400)?.1))?;
        }
        for _ in 0..8 {
            self.join(GPU, VRAM, &models, 400)?;
        }
        for i in 0..samples.div_ceil(2) {
            let name = "join with 10 models that others hold";
            let done = self.first(name, |b| Ok(b.join(GPU, VRAM, &models, 400)?.1))?;
            let node = done.events::<NodeJoined>().first().context("no NodeJoined")?.node;
            self.keep(name, done);
            let operator = self.operators[&node];
            self.take("pause", |b| b.operator(node, pauseCall {}))?;
            self.take("resume", |b| b.operator(node, resumeCall {}))?;
            self.take("raise a stake", |b| b.world.call(operator, TOKEN, raiseStakeCall {}))?;
            self.take("report a model downloaded", |b| b.operator(node, reportDownloadedCall { models: vec![MODEL] }))?;
            self.take("report a model removed", |b| b.operator(node, reportRemovedCall { models: vec![MODEL] }))?;
            self.take("quit with 10 models", |b| b.operator(node, quitCall {}))?;
            if i % 4 == 0 {
                self.world.pass(86_400)?;
                self.take("withdraw", |b| b.operator(node, withdrawCall { to: operator }))?;
            }
        }
        Ok(())
    }

    // ------------------------------------------------------------ a queue

    /// The queue's operations on `queue` queued tasks of one busy node's GPU group, `fee` giving the i-th task's fee.
    pub fn queue(
        &mut self,
        queue: u32,
        samples: usize,
        values: &'static str,
        fee: impl Fn(u32) -> u128,
        step: impl Fn(u32),
    ) -> Result<()> {
        self.values = values;
        self.aside(|b| {
            b.world.set("alphaMilli", 1_000_000_000)?;
            let (lone, _) = b.join("Lone GPU", 80, &[MODEL], 400)?;
            let spec = TaskSpec { gpu: lone.group, ..spec(&[MODEL]) };
            let (first, _) = b.run(TOKEN, spec.clone())?;
            for i in 0..=queue {
                b.create(fee(i), spec.clone())?;
                step(i);
            }
            b.queued = queue;
            b.both(|b| {
                b.aside(|b| {
                    for i in 0..samples as u32 {
                        // It queues the task before it, which stands in the order as this one does.
                        b.take("create a task and queue one", |b| b.create(fee(queue + 1 + i), spec.clone()))?;
                    }
                    Ok(())
                })?;
                b.aside(|b| {
                    let capacity = (queue.max(1) as u64 * 1_000).div_ceil(b.nodes as u64 + 1);
                    b.world.set("alphaMilli", capacity.max(1))?;
                    for i in 0..samples as u32 {
                        b.take("create a task and queue one, queue full", |b| b.create(fee(queue + 1 + i), spec.clone()))?;
                    }
                    Ok(())
                })?;
                if queue > 0 {
                    b.aside(|b| {
                        b.dispatch(1)?;
                        let mut id = first.id;
                        for _ in 0..samples.min(queue as usize) {
                            let done = b.first("submit, and start the best queued", |b| b.submit(lone.node, id))?;
                            id = done.started().context("nothing was started from the queue")?.id;
                            b.keep("submit, and start the best queued", done);
                        }
                        Ok(())
                    })?;
                    b.aside(|b| {
                        b.dispatch(1)?;
                        for i in 0..samples as u32 {
                            b.create(fee(queue + 1 + i), spec.clone())?;
                            let done = b.dispatch(1)?;
                            let queued = done.events::<TaskQueued>();
                            let queued = queued.first().context("not queued")?;
                            b.take("cancel", |b| {
                                b.world.call(b.creator, 0, cancelCall { id: queued.id, ticket: queued.ticket })
                            })?;
                        }
                        Ok(())
                    })?;
                }
                Ok(())
            })
        })
    }
}

// ---------------------------------------------------------------- adversaries

/// What was done to a network to make its calls dear, and what the dearest then cost.
#[derive(Clone, Serialize, Deserialize, PartialEq, Eq, Debug)]
pub struct Attack {
    /// What it is.
    pub name: String,
    /// Calls made after, or while, it was set up.
    pub calls: usize,
    /// The dearest.
    pub operation: String,
    /// Its gas, programs not cached.
    pub most: u64,
    /// Median gas of creating a task and dispatching one, if one was.
    pub dispatch: Option<u64>,
}

/// Counts the calls of an attack.
#[derive(Default)]
struct Dearest {
    calls: usize,
    most: u64,
    operation: String,
    dispatched: Vec<u64>,
}

impl Dearest {
    fn see(&mut self, operation: &str, done: &Done) {
        self.calls += 1;
        if done.gas > self.most {
            (self.most, self.operation) = (done.gas, operation.into());
        }
    }

    fn attack(mut self, name: String) -> Attack {
        self.dispatched.sort_unstable();
        let dispatch = self.dispatched.get(self.dispatched.len() / 2).copied();
        Attack { name, calls: self.calls, operation: self.operation, most: self.most, dispatch }
    }
}

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
                d.dispatched.push(done.gas);
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
                let (joined, done) = self.join(GPU, VRAM, &models(i as u64), 400)?;
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

    /// Draws all but one of the pending tasks, as those must who want to join or leave.
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
            // Everybody has a task now; what is left over waits in the queue, or is aborted with it.
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
            let (joined, _) = b.join(GPU, VRAM, &own[..12], 400)?;
            for models in [&own[12..24], &own[24..]] {
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
        Ok(out)
    }

    fn view(&self, node: u32) -> Result<IMuster::NodeView> {
        self.world.view(nodeCall { number: node })
    }
}
