//! `muster-latency`: the waits of a task, and of a card, which `script/bench latency` runs.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use clap::Parser;
use muster_fleet::latency::{draws_table, tables, Conditions, Measured, Scene};
use muster_fleet::site;

/// Agents with executors that sleep, on a chain that makes blocks by the clock. Measures how long a task takes from being asked for to
/// being seen, and how much of the time cards work while tasks wait
#[derive(Parser)]
#[command(name = "script/bench latency", max_term_width = 120)]
struct Options {
    /// Milliseconds between two blocks
    #[arg(long, value_delimiter = ',', default_value = "250,1000")]
    blocks: Vec<u64>,
    /// Milliseconds to the endpoint, each way
    #[arg(long, value_delimiter = ',', default_value = "0,25,100")]
    delays: Vec<u64>,
    /// How agents hear of blocks: ws or http
    #[arg(long, value_delimiter = ',', default_value = "ws", value_parser = ["ws", "http"])]
    by: Vec<String>,
    /// Policies with a full queue: 0 one node, 1 one that may be sampled, 2 three at once
    #[arg(long, value_delimiter = ',', default_value = "0,1,2", value_parser = clap::value_parser!(u8).range(..=2))]
    policies: Vec<u8>,
    /// Nodes that share a card
    #[arg(long, value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u64).range(1..=8))]
    nodes: Vec<u64>,
    /// Seconds that a task takes, with a full queue
    #[arg(long, value_delimiter = ',', default_value = "0.5,2,10")]
    times: Vec<f64>,
    /// Single tasks, each of a tenth of a second, by each client; 0 for none
    #[arg(long, default_value_t = 20)]
    singles: usize,
    /// Tasks of each node, with a full queue
    #[arg(long, default_value_t = 12)]
    tasks: usize,
    /// Tasks whose application draws nothing, in each of four networks of six nodes: who draws; 0 for none
    #[arg(long, default_value_t = 0)]
    draws: usize,
    /// Lines for the head of the agents' configuration
    #[arg(long, default_value = "")]
    lines: String,
    /// Write the tables into docs/research/latency.md
    #[arg(long)]
    write: bool,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(o: Options) -> Result<()> {
    ensure!(site::binary().is_file(), "there is no {}: script/bench builds it", site::binary().display());
    ensure!(std::env::var_os("RPC_URL").is_none(), "RPC_URL is set: this is measured on a node of the command's own");
    let mut all = Vec::new();
    for &block in &o.blocks {
        for &delay in &o.delays {
            for (by, &nodes) in o.by.iter().flat_map(|by| o.nodes.iter().map(move |nodes| (by, nodes))) {
                let conditions = Conditions { block, delay, push: by == "ws", nodes: nodes as usize };
                eprintln!("bench: a block every {block} ms, {delay} ms to the endpoint, by {by}, {nodes} nodes a card");
                all.push((conditions, measure(&o, conditions).await?));
                println!("{}", tables(&all[all.len() - 1..]));
            }
        }
    }
    let text = tables(&all);
    if all.len() > 1 {
        println!("{text}");
    }
    if o.write && !text.is_empty() {
        write("docs/research/latency.md", "<!-- script/bench latency --write -->\n", &text)?;
    }
    if o.draws > 0 {
        let text = draws(&o).await?;
        println!("{text}");
        if o.write {
            write("docs/research/latency.md", "<!-- script/bench latency --draws 20 --write -->\n", &text)?;
        }
    }
    Ok(())
}

/// The callers that draw, where a task comes now and then and where they come one after the other.
async fn draws(o: &Options) -> Result<String> {
    let mut all = Vec::new();
    let conditions = Conditions { block: o.blocks[0], delay: o.delays[0], push: o.by[0] == "ws", nodes: 1 };
    for (policies, every) in [(&[0][..], 4.0), (&[0, 1, 2], 4.0), (&[0], 0.3), (&[0, 1, 2], 0.6)] {
        let scene = Scene::new(conditions, 6, &o.lines, 1_000).await?;
        let names: Vec<_> = policies.iter().map(u8::to_string).collect();
        let network = format!(
            "{}, a task every {every} s",
            if names.len() > 1 { format!("policies {}", names.join(", ")) } else { format!("policy {}", names[0]) }
        );
        eprintln!("bench: who draws: {network}");
        all.push((network, scene.draws(policies, 0.5, Duration::from_secs_f64(every), o.draws).await?));
    }
    Ok(draws_table(&all))
}

async fn measure(o: &Options, conditions: Conditions) -> Result<Measured> {
    let mut measured = Measured::default();
    let mut busy = async |scene: &Scene, policy: u8| -> Result<()> {
        for &time in &o.times {
            eprintln!("bench: policy {policy}, tasks of {time} s");
            // Long ones tell as much when there are fewer of them.
            let each = if time >= 5.0 { o.tasks.div_ceil(3) } else { o.tasks };
            measured.busy.insert((policy, (time * 1_000.0) as u64), scene.busy(policy, time, each).await?);
        }
        Ok(())
    };
    let (mut singles, mut idle) = (Vec::new(), 0.0);
    if o.singles > 0 || o.policies.contains(&0) {
        let scene = Scene::new(conditions, 1, &o.lines, 0).await?;
        if o.singles > 0 {
            eprintln!("bench: {} tasks by the command line", o.singles);
            singles.push(("CLI", scene.by_command_line(o.singles, 0.1).await?));
            eprintln!("bench: {} tasks by the package", o.singles);
            singles.push(("TypeScript", scene.by_package(o.singles, 0.1).await?));
        }
        idle = scene.idle(Duration::from_secs(20)).await;
        if o.policies.contains(&0) {
            busy(&scene, 0).await?;
        }
    }
    for policy in o.policies.iter().copied().filter(|policy| *policy > 0) {
        // As often sampled as by default.
        let scene = Scene::new(conditions, 3, &o.lines, 1_000).await?;
        busy(&scene, policy).await?;
    }
    measured.singles.extend(singles);
    measured.idle = idle;
    Ok(measured)
}

/// Where a table of the page ends.
const END: &str = "<!-- end -->";

/// Puts the tables where the page has them.
fn write(path: &str, mark: &str, tables: &str) -> Result<()> {
    let page = std::fs::read_to_string(path).context(path.to_string())?;
    let (head, rest) = page.split_once(mark).with_context(|| format!("{path} has no place for the tables"))?;
    let (_, tail) = rest.split_once(END).with_context(|| format!("{path} has no end of the tables"))?;
    std::fs::write(path, format!("{head}{mark}\n{tables}\n{END}{tail}"))?;
    println!("written: {path}");
    Ok(())
}
