//! Every operation, at a size of the network and of the queue.

use crate::answer::{commitment, revealing};
use crate::breakdown::Parts;
use crate::points::Points;
use crate::world::{Done, World, TOKEN};
use alloy_primitives::Address;
use anyhow::{ensure, Context, Result};
use muster_protocol::flow::create::BATCH_MAX;
use muster_protocol::flow::serve::DISPATCH_MAX;
use muster_protocol::IMuster::*;
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
    /// The operation, and the state of the network.
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
    /// Of the first call measured: the least that any contract would pay ([`World::floor_on`]), and its gas.
    pub floor: Option<(u64, u64)>,
}

/// A network under measurement.
pub struct Bench {
    /// Where it lives.
    pub world: World,
    /// The creator of tasks.
    pub creator: Address,
    /// Nodes ever joined.
    pub joined: u32,
    /// Nodes joined now, for the rows.
    pub nodes: u32,
    /// Tasks queued now, for the rows.
    pub queued: u32,
    pub(crate) operators: HashMap<u32, Address>,
    cached: bool,
    pub(crate) values: &'static str,
    pub(crate) taken: BTreeMap<String, Vec<Done>>,
    /// The measurements.
    pub rows: Vec<Row>,
    /// For each row the parts of its median's gas, where calls are traced.
    pub parts: Vec<Option<Parts>>,
    /// The calls that are pictured, programs not cached.
    pub points: Points,
}

/// In this many rounds of tasks of three nodes each node has had a score, whichever are left out in some.
const ROUNDS: usize = 32;
/// A node that no other must replace, as it stands last in its lists, but whose stake no other has: the largest of all must be found anew.
const QUIT_ALONE: &str = "quit with 10 models, the newest node, alone with the largest stake";
/// A task without models: the first of a node that listed more models than stand in a word when it joined.
const FIRST_OF_MANY: &str = "create a task and dispatch one, the first of a node that listed 10 models";

/// A task for any node with 8 GiB: one image.
pub fn spec(models: &[u64]) -> TaskSpec {
    TaskSpec { kind: 0, units: 1, vram: 8, gpu: 0, redundancy: 0, flags: 0, inputDigest: [7; 32].into(), models: models.to_vec() }
}

impl Bench {
    /// An empty network.
    pub fn new() -> Result<Bench> {
        Ok(Self::of(World::new()?))
    }

    /// An empty network whose calls are traced.
    pub fn traced() -> Result<Bench> {
        Ok(Self::of(World::traced()?))
    }

    fn of(world: World) -> Bench {
        let creator = world.account(b'c', 0);
        Bench {
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
            parts: Vec::new(),
            points: Points::default(),
        }
    }

    // ------------------------------------------------------------ calls

    /// A new operator joins.
    pub fn join(&mut self, gpu: &str, vram: u16, models: &[u64], tokens: u128) -> Result<(NodeJoined, Done)> {
        let operator = self.world.account(b'n', self.joined);
        // A name that is new costs a hundredth of the minimum stake.
        let known = self.world.view(gpuGroupCall { name: gpu.into(), vram }).is_ok();
        let fee = if known { 0 } else { 4 * TOKEN };
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

    pub(crate) fn first(&mut self, operation: &str, call: impl FnOnce(&mut Bench) -> Result<Done>) -> Result<Done> {
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

    /// Turns the counts since the last time into rows.
    pub fn settle(&mut self) {
        for (operation, mut calls) in std::mem::take(&mut self.taken) {
            let floor = calls[0].floor.map(|f| (f, calls[0].gas()));
            calls.sort_by_key(Done::gas);
            let middle = calls.len() / 2;
            for done in calls.iter().filter(|_| !self.cached) {
                done.met.iter().for_each(|met| self.points.note(met.clone(), done.gas()));
            }
            self.rows.push(Row {
                operation,
                values: self.values.into(),
                nodes: self.nodes,
                queued: self.queued,
                cached: self.cached,
                samples: calls.len(),
                least: calls[0].gas(),
                median: calls[middle].gas(),
                most: calls[calls.len() - 1].gas(),
                floor,
            });
            self.parts.push(calls.swap_remove(middle).parts);
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

    // ------------------------------------------------------------ beside the chain

    /// Does something beside the chain ([`crate::beside`]), where it takes a fraction of the time.
    pub fn beside(&mut self, f: impl FnOnce(&mut Bench) -> Result<()>) -> Result<()> {
        self.world.leave_chain();
        f(self)?;
        self.world.return_to_chain()
    }

    /// Fails unless nodes that join, tasks that are drawn and answered, and tasks that are queued leave every word beside the chain as they do
    /// by transactions. Of each draw one node can be chosen: the two know different hashes.
    pub fn check_beside(&mut self) -> Result<()> {
        self.aside(|b| {
            let mut left = Vec::new();
            let (group, _) = b.trio()?;
            let make = |b: &mut Bench| {
                (0..10).try_for_each(|_| b.join(GPU, VRAM, &[MODEL], 400).map(drop))?;
                for n in 0..4 {
                    let gpu = b.join(&format!("alone {n}"), VRAM, &[MODEL], 400)?.0.group;
                    let (task, _) = b.run(TOKEN, TaskSpec { gpu, ..spec(&[MODEL]) })?;
                    b.submit(task.node, task.id)?;
                }
                b.fill(group, 40, true, |_| ())
            };
            for beside in [false, true] {
                b.aside(|b| {
                    if beside {
                        b.beside(make)?;
                    } else {
                        make(b)?;
                    }
                    left.push(b.world.words());
                    Ok(())
                })?;
            }
            ensure!(left[0] == left[1], "what is made beside the chain is not what transactions make");
            Ok(())
        })
    }

    // ------------------------------------------------------------ the ordinary network

    /// Lets ordinary nodes join until there are `n`.
    pub fn grow(&mut self, n: u32, step: impl Fn(u32)) -> Result<()> {
        self.beside(|b| {
            while b.joined < n {
                b.join(GPU, VRAM, &[MODEL], 400)?;
                step(b.joined);
            }
            Ok(())
        })?;
        self.nodes = n;
        Ok(())
    }

    /// All operations with nothing queued.
    pub fn plain(&mut self, samples: usize) -> Result<()> {
        self.both(|b| b.aside(|b| b.tasks(samples, true)))?;
        self.aside(|b| {
            b.beside(Bench::work)?;
            b.both(|b| {
                b.aside(|b| b.tasks(samples, false))?;
                b.aside(|b| b.batches(samples))?;
                b.aside(|b| b.membership(samples))?;
                b.aside(|b| b.receipts(samples))
            })?;
            if b.nodes < 12 {
                return Ok(());
            }
            b.beside(Bench::be_judged)?;
            b.both(|b| {
                b.aside(|b| b.validation(samples))?;
                b.aside(|b| b.replicated(samples))
            })
        })
    }

    /// Gives every node a task of this kind, all of them at once.
    fn occupy(&mut self, task: &TaskSpec) -> Result<Vec<TaskStarted>> {
        let started: Vec<_> = (0..self.nodes).map(|_| Ok(self.run(TOKEN, task.clone())?.0)).collect::<Result<_>>()?;
        let had: HashSet<u32> = started.iter().map(|task| task.node).collect();
        ensure!(had.len() as u32 == self.nodes, "{} of {} nodes have a task", had.len(), self.nodes);
        Ok(started)
    }

    /// Lets every node have a task and answer it, and then as many one by one as chance gives them. So words stand as work leaves them,
    /// without the cost of their first use, and the notes on idle nodes are those that draws make.
    fn work(&mut self) -> Result<()> {
        for task in self.occupy(&spec(&[MODEL]))? {
            self.submit(task.node, task.id)?;
        }
        self.traffic()
    }

    /// Two tasks for each node, one after the other, for whichever is drawn.
    fn traffic(&mut self) -> Result<()> {
        for _ in 0..2 * self.nodes {
            let (task, _) = self.run(TOKEN, spec(&[MODEL]))?;
            self.submit(task.node, task.id)?;
        }
        Ok(())
    }

    /// Lets every node commit to an answer, and then work in threes until each has a score.
    fn be_judged(&mut self) -> Result<()> {
        let gpu = self.world.view(gpuGroupCall { name: GPU.into(), vram: VRAM })?;
        self.world.owner_calls(listGpuGroupCall { group: gpu, listed: true })?;
        self.world.set("sampleBps", 1)?;
        let committed = self.occupy(&TaskSpec { kind: 1, gpu, redundancy: 1, ..spec(&[MODEL]) })?;
        for task in &committed {
            self.operator(task.node, commitCall { id: task.id, commitment: commitment(task.id, task.node, 1) })?;
        }
        self.blocks(3)?;
        let mut sampled = Vec::new();
        for task in committed {
            match self.operator(task.node, revealing(task.id, 0, task.node, 1)) {
                Ok(_) => {}
                Err(refused) if refused.to_string().contains("Sampled") => sampled.push(task),
                Err(other) => return Err(other),
            }
        }
        for task in sampled {
            let group = self.sampled(task.id, task.node)?;
            self.answer(&group)?;
        }
        let mut unscored: HashSet<u32> = (1..=self.nodes).collect();
        let wanted = TaskSpec { kind: 1, redundancy: 2, ..spec(&[MODEL]) };
        for _ in 0..ROUNDS {
            if unscored.is_empty() {
                return self.traffic();
            }
            // All that there are nodes for, so that chance decides which are left out.
            let mut groups = Vec::new();
            for _ in 0..self.nodes / 3 {
                groups.append(&mut self.create(3 * TOKEN, wanted.clone())?.events::<GroupFormed>());
            }
            while self.world.view(overviewCall {})?.pending > 0 {
                groups.append(&mut self.dispatch(1)?.events::<GroupFormed>());
            }
            for group in groups {
                for scored in self.answer(&group)?.events::<ScoreRecorded>() {
                    unscored.remove(&scored.node);
                }
            }
        }
        anyhow::bail!("{} nodes have no score after {ROUNDS} rounds", unscored.len())
    }

    /// Tasks that find a node at once. With `fresh` nodes never had a task; else all have.
    fn tasks(&mut self, samples: usize, fresh: bool) -> Result<()> {
        let (first, _) = self.run(TOKEN, spec(&[MODEL]))?;
        self.submit(first.node, first.id)?;
        let mut worked = HashSet::from([first.node]);
        let mut taken = 0;
        for _ in 0..samples * 20 {
            if taken == samples {
                break;
            }
            // The call that creates one task and draws another is made and reverted: the next steps need nothing pending.
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
                let snapshot = self.world.snapshot();
                let worker = self.world.account(b'w', 0);
                self.take("name a worker", |b| b.operator(s.node, setWorkerCall { worker }))?;
                self.take("accept to work for a node", |b| b.world.call(worker, 0, acceptWorkCall { node: s.node }))?;
                let answer = submitCall { id: s.id, resultDigest: [9; 32].into() };
                self.take("submit by a worker, nothing queued", |b| b.world.call(worker, 0, answer.clone()))?;
                self.world.revert(snapshot);
                let hundred = "s".repeat(100);
                for (operation, uris) in [
                    ("say where bytes are, a URI of 31 bytes", "https://bytes.example/of/this/1".into()),
                    ("say where bytes are, two URIs of 100 bytes", format!("{hundred} {hundred}")),
                ] {
                    let snapshot = self.world.snapshot();
                    self.take(operation, |b| b.operator(s.node, setStoresCall { uris }))?;
                    self.world.revert(snapshot);
                }
                // Taken back, for the node would rest now.
                let snapshot = self.world.snapshot();
                self.take("report an error", |b| b.operator(s.node, reportErrorCall { id: s.id, code: 3 }))?;
                self.world.revert(snapshot);
                self.submit(s.node, s.id)?;
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

    /// Tasks created by sixteen and drawn by sixteen, where there are nodes enough; the ring's words and the nodes' were used before.
    fn batches(&mut self, samples: usize) -> Result<()> {
        if self.nodes < 4 * BATCH_MAX as u32 {
            return Ok(());
        }
        self.wear(spec(&[MODEL]))?;
        // The first uses words of the ring that nobody had used.
        self.batch()?;
        for _ in 0..samples.div_ceil(4) {
            let name = "create and dispatch by sixteen, a task";
            self.world.floor_on(!self.taken.contains_key(name));
            let calls = self.batch()?;
            self.keep("create by sixteen, a task", Done::part_of(&calls[..1], BATCH_MAX as u64));
            self.keep(name, Done::part_of(&calls, BATCH_MAX as u64));
        }
        Ok(())
    }

    /// Has a task made and answered: the words that the ring used before are now another task's.
    fn wear(&self, task: TaskSpec) -> Result<()> {
        let (first, _) = self.run(TOKEN, task)?;
        self.submit(first.node, first.id)?;
        Ok(())
    }

    /// Creates sixteen tasks in one call, draws them, and lets them be answered; gives the calls but the answers.
    fn batch(&mut self) -> Result<Vec<Done>> {
        let batch = createTasksCall { specs: vec![spec(&[MODEL]); BATCH_MAX], fees: vec![TOKEN; BATCH_MAX], atomic: true };
        let mut calls = vec![self.world.call(self.creator, BATCH_MAX as u128 * TOKEN, batch)?];
        // One that stays undecided is drawn again.
        while self.world.view(overviewCall {})?.pending > 0 {
            calls.push(self.dispatch(DISPATCH_MAX)?);
        }
        self.world.floor_on(false);
        for started in calls.iter().flat_map(Done::events::<TaskStarted>) {
            self.submit(started.node, started.id)?;
        }
        Ok(calls)
    }

    /// Tasks that ask for a receipt, as the rows without: the nodes had tasks before.
    fn receipts(&mut self, samples: usize) -> Result<()> {
        let wanted = TaskSpec { flags: 1, ..spec(&[MODEL]) };
        self.wear(wanted.clone())?;
        for _ in 0..samples.div_ceil(2) {
            self.take("create a task with a receipt, nothing pending", |b| b.create(TOKEN, wanted.clone()))?;
            let (started, _) = self.started()?;
            self.take("submit, with a receipt, nothing queued", |b| b.submit(started.node, started.id))?;
        }
        Ok(())
    }

    /// Draws until a task starts.
    pub(crate) fn started(&self) -> Result<(TaskStarted, Done)> {
        for _ in 0..1_000 {
            let done = self.dispatch(1)?;
            if let Some(started) = done.started() {
                return Ok((started, done));
            }
        }
        anyhow::bail!("a task was not started")
    }

    fn membership(&mut self, samples: usize) -> Result<()> {
        let models: Vec<u64> = (1..=10).map(|i| 0x77_0000_0000 + i).collect();
        for set in 1..=8 {
            let new: Vec<u64> = (1..=10).map(|i| 0x77_0000_0000 * set / 8 + i).collect();
            self.take("join, first holder of 10 models", |b| Ok(b.join(GPU, VRAM, &new, 400)?.1))?;
        }
        let mut among = 0;
        for i in 0..8 {
            let (new, _) = self.join(GPU, VRAM, &models, 400)?;
            // Stands beside others in the stakes' tree, and before others in its lists.
            if i == 3 {
                among = new.node;
            }
        }
        for i in 0..samples.div_ceil(4) {
            let snapshot = self.world.snapshot();
            let (other, _) = self.run(TOKEN, spec(&[MODEL]))?;
            self.submit(other.node, other.id)?;
            let (new, _) = self.join(&format!("Lister {i}"), VRAM, &models, 400)?;
            self.create(TOKEN, TaskSpec { gpu: new.group, ..spec(&[]) })?;
            self.take(FIRST_OF_MANY, |b| b.create(TOKEN, spec(&[MODEL])))?;
            self.world.revert(snapshot);
        }
        for i in 0..samples.div_ceil(2) {
            let name = "join with 10 models that others hold";
            let done = self.first(name, |b| Ok(b.join(GPU, VRAM, &models, 400)?.1))?;
            let node = done.events::<NodeJoined>().first().context("no NodeJoined")?.node;
            self.keep(name, done);
            let operator = self.operators[&node];
            self.take("pause", |b| b.operator(node, pauseCall {}))?;
            self.take("resume", |b| b.operator(node, resumeCall {}))?;
            let snapshot = self.world.snapshot();
            self.take("quit with 10 models", |b| b.operator(among, quitCall {}))?;
            self.world.revert(snapshot);
            self.take("raise a stake", |b| b.world.call(operator, TOKEN, raiseStakeCall {}))?;
            self.take("report a model downloaded", |b| b.operator(node, reportDownloadedCall { models: vec![MODEL] }))?;
            self.take("report a model removed", |b| b.operator(node, reportRemovedCall { models: vec![MODEL] }))?;
            self.take(QUIT_ALONE, |b| b.operator(node, quitCall {}))?;
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
            for i in 0..queue {
                b.create(fee(i), spec.clone())?;
                step(i);
            }
            b.queued = queue;
            b.both(|b| {
                b.aside(|b| {
                    for i in 0..samples as u32 {
                        b.take("create a task and queue one", |b| b.create(fee(queue + i), spec.clone()))?;
                    }
                    Ok(())
                })?;
                b.aside(|b| {
                    let capacity = (queue.max(1) as u64 * 1_000).div_ceil(b.nodes as u64 + 1);
                    b.world.set("alphaMilli", capacity.max(1))?;
                    for i in 0..samples as u32 {
                        b.take("create a task and queue one, queue full", |b| b.create(fee(queue + i), spec.clone()))?;
                    }
                    Ok(())
                })?;
                if queue > 0 {
                    b.aside(|b| {
                        let mut id = first.id;
                        // As many as in the snapshot: the median depends on it, and is held against one of an earlier snapshot.
                        for _ in 0..samples.min(9).min(queue as usize) {
                            let done = b.first("submit, and start the best queued", |b| b.submit(lone.node, id))?;
                            id = done.started().context("nothing was started from the queue")?.id;
                            b.keep("submit, and start the best queued", done);
                        }
                        Ok(())
                    })?;
                    b.aside(|b| {
                        for i in 0..samples as u32 {
                            let done = b.create(fee(queue + i), spec.clone())?;
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
