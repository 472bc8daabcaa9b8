//! Gas of every operation, on compiled WASM, against the size of the network.

mod world;

use alloy_primitives::Address;
use anyhow::{ensure, Context, Result};
use clap::Parser;
use comfy_table::{presets::UTF8_HORIZONTAL_ONLY, CellAlignment, Table};
use muster_storage::IMuster;
use serde::Serialize;
use std::collections::HashMap;
use world::{Done, World, TOKEN};

/// Measure gas on the embedded devnode.
#[derive(Parser)]
struct Options {
    /// Numbers of nodes, ascending.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100, 1_100, 10_000])]
    nodes: Vec<u32>,
    /// Tasks in the queue for the queue's figures.
    #[arg(long, default_value_t = 10_000)]
    queue: u32,
    /// Samples per figure.
    #[arg(long, default_value_t = 51)]
    samples: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// One measured operation.
#[derive(Serialize)]
struct Row {
    nodes: u32,
    queued: u32,
    operation: &'static str,
    cached: bool,
    least: u64,
    median: u64,
    most: u64,
}

struct Bench {
    world: World,
    creator: Address,
    joined: u32,
    operators: HashMap<u32, Address>,
    rows: Vec<Row>,
}

const MODEL: u64 = 0x1234567890;
const GPU: &str = "NVIDIA GeForce RTX 4090";

fn spec(gpu: u32, models: &[u64]) -> IMuster::TaskSpec {
    IMuster::TaskSpec { kind: 0, units: 1, vram: 8, gpu, redundancy: 0, inputDigest: [7; 32].into(), models: models.to_vec() }
}

impl Bench {
    fn join(&mut self, gpu: &str, vram: u16, models: &[u64]) -> Result<(u32, Done)> {
        let operator = self.world.account(b'n', self.joined);
        self.joined += 1;
        let done = self.world.call(operator, 400 * TOKEN, IMuster::joinCall { gpuName: gpu.into(), vram, models: models.to_vec() })?;
        let node = done.events::<IMuster::NodeJoined>().first().context("no NodeJoined")?.node;
        self.operators.insert(node, operator);
        Ok((node, done))
    }

    fn create(&self, fee: u128, spec: IMuster::TaskSpec) -> Result<Done> {
        self.world.call(self.creator, fee, IMuster::createTaskCall { spec })
    }

    fn submit(&self, node: u32, id: u64) -> Result<Done> {
        self.world.call(self.operators[&node], 0, IMuster::submitCall { id, resultDigest: [9; 32].into() })
    }

    fn row(&mut self, nodes: u32, queued: u32, operation: &'static str, cached: bool, mut gas: Vec<u64>) {
        gas.sort_unstable();
        self.rows.push(Row { nodes, queued, operation, cached, least: gas[0], median: gas[gas.len() / 2], most: gas[gas.len() - 1] });
    }

    /// Creates tasks one after another, each call dispatching the one before; every node that starts answers at once.
    fn dispatch(&mut self, nodes: u32, cached: bool, samples: u32) -> Result<()> {
        let (mut create, mut first, mut end) = (Vec::new(), Vec::new(), Vec::new());
        let mut seen = std::collections::HashSet::new();
        self.create(10 * TOKEN, spec(0, &[MODEL]))?;
        while create.len() < samples as usize {
            let done = self.create(10 * TOKEN, spec(0, &[MODEL]))?;
            let Some(started) = done.events::<IMuster::TaskStarted>().into_iter().next() else { continue };
            if seen.insert(started.node) { &mut first } else { &mut create }.push(done.gas);
            end.push(self.submit(started.node, started.id)?.gas);
            // At large N nearly every node is new to work; let the seen ones count too.
            if first.len() > samples as usize * 20 {
                break;
            }
        }
        if !create.is_empty() {
            self.row(nodes, 0, "create and dispatch one", cached, create);
        }
        if !first.is_empty() {
            self.row(nodes, 0, "create and dispatch one to a node new to work", cached, first);
        }
        self.row(nodes, 0, "end a task, nothing queued", cached, end);
        Ok(())
    }

    fn membership(&mut self, nodes: u32, cached: bool) -> Result<()> {
        let models: Vec<u64> = (1..=10).map(|i| 0x77_0000_0000 + i).collect();
        let first = self.join(GPU, 24, &models)?;
        for _ in 0..8 {
            self.join(GPU, 24, &models)?;
        }
        let (mut join, mut pause, mut resume, mut quit) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..14 {
            let (node, done) = self.join(GPU, 24, &models)?;
            join.push(done.gas);
            let operator = self.operators[&node];
            pause.push(self.world.call(operator, 0, IMuster::pauseCall {})?.gas);
            resume.push(self.world.call(operator, 0, IMuster::resumeCall {})?.gas);
            quit.push(self.world.call(operator, 0, IMuster::quitCall {})?.gas);
        }
        self.row(nodes, 0, "join, first holder of 10 models", cached, vec![first.1.gas]);
        self.row(nodes, 0, "join with 10 models others hold", cached, join);
        self.row(nodes, 0, "pause", cached, pause);
        self.row(nodes, 0, "resume", cached, resume);
        self.row(nodes, 0, "quit with 10 models", cached, quit);
        Ok(())
    }

    /// Queues tasks for one busy node's GPU; `fee` gives the i-th task's fee.
    fn queue(&mut self, nodes: u32, cached: bool, queue: u32, samples: u32, order: &'static str, fee: impl Fn(u32) -> u128) -> Result<()> {
        let snapshot = self.world.snapshot();
        let (node, done) = self.join("Lone GPU", 80, &[MODEL])?;
        let group = done.events::<IMuster::NodeJoined>()[0].group;
        self.world.set("alphaMilli", 1_000_000_000)?;
        self.create(TOKEN, spec(group, &[MODEL]))?;
        let started = self.create(fee(0), spec(group, &[MODEL]))?.events::<IMuster::TaskStarted>();
        let mut running = started.first().context("the lone node was not chosen")?.id;
        let mut insert = Vec::new();
        for i in 1..=queue + samples {
            let gas = self.create(fee(i), spec(group, &[MODEL]))?.gas;
            if i > queue {
                insert.push(gas);
            }
        }
        let (name, full) = match order {
            "ascending" => ("queue a task, new best value", "queue a task, queue full"),
            "descending" => ("queue a task, new worst value", "queue a task that is evicted itself"),
            _ => ("queue a task, equal values", "queue a task of equal value, queue full"),
        };
        self.row(nodes, queue, name, cached, insert);
        let joined = self.joined as u64;
        self.world.set("alphaMilli", (queue as u64 * 1_000 / joined).max(1))?;
        let mut evict = Vec::new();
        for i in 0..samples {
            evict.push(self.create(fee(queue + samples + 1 + i), spec(group, &[MODEL]))?.gas);
        }
        self.row(nodes, queue, full, cached, evict);
        let mut next = Vec::new();
        for _ in 0..samples {
            let done = self.submit(node, running)?;
            running = done.events::<IMuster::TaskStarted>().first().context("nothing was started from the queue")?.id;
            next.push(done.gas);
        }
        self.row(nodes, queue, "end a task and start the best queued", cached, next);
        self.world.revert(snapshot);
        self.joined -= 1;
        Ok(())
    }
}

fn main() -> Result<()> {
    let o = Options::parse();
    ensure!(o.nodes.windows(2).all(|w| w[0] < w[1]) && o.nodes.first().is_some_and(|&n| n > 0), "--nodes must ascend from at least 1");
    ensure!(o.samples > 0, "--samples must be at least 1");
    let world = World::new()?;
    let creator = world.account(b'c', 0);
    let mut b = Bench { world, creator, joined: 0, operators: HashMap::new(), rows: Vec::new() };
    let bar = indicatif::ProgressBar::new(*o.nodes.last().unwrap_or(&1) as u64)
        .with_style(indicatif::ProgressStyle::with_template("{elapsed_precise} {bar:40} {pos}/{len} nodes {msg}")?);
    for &n in &o.nodes {
        while b.joined < n {
            b.join(GPU, 24, &[MODEL])?;
            bar.set_position(b.joined as u64);
        }
        for cached in [true, false] {
            bar.set_message(if cached { "cached" } else { "uncached" });
            let (snapshot, joined) = (b.world.snapshot(), b.joined);
            if cached {
                b.world.cache()?;
            }
            let inner = b.world.snapshot();
            b.dispatch(n, cached, o.samples)?;
            b.world.revert(inner);
            let inner = b.world.snapshot();
            b.membership(n, cached)?;
            b.world.revert(inner);
            b.joined = joined;
            if Some(&n) == o.nodes.last() && o.queue > 0 {
                b.queue(n, cached, o.queue, o.samples, "ascending", |i| TOKEN + i as u128 * 1_000_000_000)?;
                b.queue(n, cached, o.queue, o.samples, "descending", |i| TOKEN * 1_000 - i as u128 * 1_000_000_000)?;
                b.queue(n, cached, o.queue, o.samples, "equal", |_| TOKEN)?;
            }
            b.world.revert(snapshot);
            b.joined = joined;
        }
    }
    bar.finish_and_clear();
    if o.json {
        println!("{}", serde_json::to_string_pretty(&b.rows)?);
        return Ok(());
    }
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY).set_header(["operation", "nodes", "queued", "programs", "min", "median", "max"]);
    b.rows.sort_by_key(|r| (r.operation, r.queued, r.nodes, !r.cached));
    for r in &b.rows {
        table.add_row([
            r.operation.to_string(),
            r.nodes.to_string(),
            r.queued.to_string(),
            if r.cached { "cached" } else { "uncached" }.into(),
            r.least.to_string(),
            r.median.to_string(),
            r.most.to_string(),
        ]);
    }
    for i in [1, 2, 4, 5, 6] {
        if let Some(c) = table.column_mut(i) {
            c.set_cell_alignment(CellAlignment::Right);
        }
    }
    println!("{table}");
    Ok(())
}
