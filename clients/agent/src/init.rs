//! `muster-agent init`: finds this machine's cards, and writes a configuration with a node for each.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use alloy::primitives::{Address, U256};
use anyhow::{ensure, Context, Result};
use muster_client::observe::print;
use muster_client::{abi, show_amount, Endpoints, Error, Event, IMuster, Muster, Settings};
use serde_json::json;

use crate::gpu::{self, Found};

/// Blocks over which models' earnings are summed: a day of an Arbitrum chain with four a second.
const BLOCKS: u64 = 345_600;
/// Blocks of one question, at most.
const SPAN: u64 = 10_000;
/// Nodes of one question, and the most that are looked at.
const NODES: u32 = 50;
/// See `NODES`.
const NODES_MOST: u32 = 2_000;

/// Facts about a model before it is fetched: its name, its executor, GB to fetch, and GiB of memory with the executor's usual arguments.
/// Written from memory, and not compared with the hub's pages; `fetch` uses the hub's own list.
const MODELS: [(&str, &str, f32, u16); 7] = [
    ("Qwen/Qwen2.5-0.5B-Instruct", "transformers", 1.0, 4),
    ("stable-diffusion-v1-5/stable-diffusion-v1-5", "diffusers", 2.8, 6),
    ("stabilityai/sdxl-turbo", "diffusers", 7.0, 12),
    ("Qwen/Qwen2.5-7B-Instruct", "transformers", 15.3, 20),
    ("Qwen/Qwen2.5-14B-Instruct", "transformers", 29.6, 36),
    ("black-forest-labs/FLUX.1-schnell", "diffusers", 34.0, 40),
    ("Qwen/Qwen2.5-32B-Instruct", "transformers", 65.6, 80),
];

/// The command's options.
#[derive(Clone, Debug, clap::Args)]
pub struct Asked {
    /// Nodes of the chain, the most trusted first
    #[arg(long, env = "ETH_RPC_URL", value_delimiter = ',', hide_env_values = true)]
    rpc: Vec<String>,
    /// The contract
    #[arg(long, env = "MUSTER")]
    muster: Option<Address>,
    /// Where the agent keeps its journal
    #[arg(long, default_value = "/var/lib/muster-agent")]
    home: PathBuf,
    /// Where models are kept
    #[arg(long, default_value = "/var/cache/muster-agent")]
    cache: PathBuf,
    /// Where inputs are looked for: URLs or directories
    #[arg(long, default_value = "https://inputs.example")]
    get: Vec<String>,
    /// Where results go: URLs or directories
    #[arg(long, default_value = "/srv/results")]
    put: Vec<String>,
    /// The folder of the executors
    #[arg(long, default_value = "/opt/muster/executors")]
    executors: PathBuf,
    /// The Python that has torch, as `prepare.sh --torch` prints it
    #[arg(long, default_value = "/opt/muster/executors-torch/venv/bin/python")]
    python: PathBuf,
    /// The users that executors run as: this name with the card's number behind it, so that none reaches another's results
    #[arg(long, default_value = "muster-executor")]
    user: String,
}

/// Information from the network.
#[derive(Default)]
struct Told {
    chain: Option<u64>,
    /// The earnings of models by id: the sum, and the number of tasks.
    earned: BTreeMap<u64, (U256, u64)>,
    /// The number of nodes by name.
    names: BTreeMap<String, u32>,
}

/// Writes the configuration, and prints the next steps. Does not touch an existing file.
pub async fn run(path: &Path, asked: &Asked) -> Result<()> {
    let cards = gpu::answered(gpu::all).await?;
    ensure!(!cards.is_empty(), "NVIDIA's library knows no card");
    let told = match (&asked.rpc[..], asked.muster) {
        ([], _) | (_, None) => Told::default(),
        (rpc, Some(muster)) => match ask(rpc, muster).await {
            Ok(told) => told,
            Err(error) => {
                print(format_args!("note   network: {error:#}: its information is left out"));
                Told::default()
            }
        },
    };
    let free = free(&asked.cache);
    let text = written(asked, &cards, &told, free);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o640)
        .open(path)
        .with_context(|| format!("{} cannot be written anew: remove it, or name another by --config", path.display()))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    for (at, Found { gpu, divided }) in cards.iter().enumerate() {
        let uuid = gpu.uuid.as_deref().unwrap_or_default();
        let left = if *divided { ": divided (MIG), left out" } else { "" };
        print(format_args!("gpu{at}   {} of {} GiB, {uuid}{left}", gpu.name, gpu.vram));
    }
    print(format_args!("wrote  {}", path.display()));
    print("next   keys by `muster account new`, a commit for each model in [hub.revisions], `muster-agent fetch MODEL`,");
    print(format_args!(
        "       then `muster-agent doctor --config {}`, which tries the golden tasks on each card",
        path.display()
    ));
    Ok(())
}

/// Free bytes at the models' folder, which may not exist yet.
fn free(cache: &Path) -> Option<u64> {
    let there = cache.ancestors().find(|place| place.is_dir())?;
    let said = rustix::fs::statvfs(there).ok()?;
    Some(said.f_bavail.saturating_mul(said.f_frsize))
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    let mut all = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => all.extend(['\\', c]),
            c if c.is_control() => write!(all, "\\u{:04x}", c as u32).expect("a text takes it"),
            c => all.push(c),
        }
    }
    all + "\""
}

fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}

fn path(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// Models that fit a card and the folder's limit: those with the highest earnings first, then the largest.
fn suggested(vram: u16, most: u64, told: &Told) -> Vec<&'static (&'static str, &'static str, f32, u16)> {
    let mut fit: Vec<_> = MODELS.iter().filter(|(_, _, gb, least)| *least <= vram && *gb <= most as f32 / 1e9).collect();
    let earned = |name: &str| told.earned.get(&abi::model_id(name)).map_or(U256::ZERO, |(sum, _)| *sum);
    fit.sort_by(|a, b| earned(b.0).cmp(&earned(a.0)).then(b.3.cmp(&a.3)));
    fit
}

fn written(asked: &Asked, cards: &[Found], told: &Told, free: Option<u64>) -> String {
    let mut text =
        String::from("# Written by `muster-agent init`. clients/agent/deploy/muster-agent.toml has every setting.\n\n");
    let mut line = |said: std::fmt::Arguments<'_>| writeln!(text, "{said}").expect("a text takes it");
    let rpc = if asked.rpc.is_empty() { vec!["https://one.example/key".to_string()] } else { asked.rpc.clone() };
    line(format_args!("home = {}", path(&asked.home)));
    line(format_args!("rpc = {}", list(&rpc)));
    line(format_args!("muster = \"{}\"", asked.muster.unwrap_or_default()));
    if let Some(chain) = told.chain {
        line(format_args!("chain = {chain}"));
    }
    line(format_args!("listen = \"127.0.0.1:9464\"\n\n[store]\nget = {}\nput = {}\n", list(&asked.get), list(&asked.put)));
    // Leaves some for other files.
    let most = free.unwrap_or(200_000_000_000) / 5 * 4;
    line(format_args!("[hub]\ncache = {}", path(&asked.cache)));
    line(format_args!("most = {most:<22} # bytes, of {} GB that are free there", free.unwrap_or_default() / 1_000_000_000));
    line(format_args!("[hub.revisions]\n# \"owner/name\" = \"the commit, 40 digits\"\n"));
    for (at, Found { gpu, divided }) in cards.iter().enumerate() {
        let (name, vram) = (&gpu.name, gpu.vram);
        line(format_args!("# {name}, {vram} GiB"));
        if *divided {
            line(format_args!("# It is divided (MIG): write a node for each part, with `gpu`, `gpu_name` and `vram`.\n"));
            continue;
        }
        for (other, count) in told.names.iter().filter(|(other, _)| other.split('+').next() == Some(name)) {
            let are = if *count == 1 { "node is" } else { "nodes are" };
            line(format_args!("# {count} {are} called {}", quoted(other)));
        }
        let fit = suggested(vram, most, told);
        for (model, executor, gb, least) in &fit {
            let earned = told.earned.get(&abi::model_id(model));
            let earned =
                earned.map_or(String::new(), |(sum, tasks)| format!(", earned {} with {tasks} tasks lately", show_amount(*sum)));
            line(format_args!("# {model} ({executor}): {gb} GB to fetch, for {least} GiB and more{earned}"));
        }
        let (model, executor) = fit.first().map_or(("owner/name", "transformers"), |(model, executor, ..)| (*model, *executor));
        line(format_args!("[[node]]\nname = \"gpu{at}\"\nkeystore = \"/etc/muster-agent/gpu{at}\""));
        line(format_args!("password_file = \"/etc/muster-agent/gpu{at}.password\""));
        line(format_args!("gpu = {}", quoted(gpu.uuid.as_deref().unwrap_or_default())));
        line(format_args!("models = [{}]\n\n[node.executor]", quoted(model)));
        let program = asked.executors.join(executor).join("executor.py");
        line(format_args!("command = [{}, \"-B\", {}, \"--model\", {}]", path(&asked.python), path(&program), quoted(model)));
        line(format_args!("golden = {}", path(&asked.executors.join(executor).join("golden"))));
        line(format_args!("user = {}                # it cannot read the agent's keys", quoted(&format!("{}{at}", asked.user))));
        line(format_args!("environment = {{ HF_HOME = {} }}\n", path(&asked.cache)));
    }
    text
}

/// Reads from the network: its chain, the nodes' names, and the models' earnings.
async fn ask(rpc: &[String], address: Address) -> Result<Told> {
    let endpoints = Endpoints::new(rpc, Settings::default())?;
    let chain = endpoints.chain().await?;
    let head = endpoints.head().await?.number;
    let muster = Muster::connect(endpoints, address).await?;
    let mut told = Told { chain: Some(chain), ..Told::default() };
    let mut groups = BTreeMap::<u32, u32>::new();
    for from in (1..NODES_MOST).step_by(NODES as usize) {
        let nodes = muster.read(IMuster::nodesCall { from, count: NODES }).await?;
        let some = nodes.len();
        nodes.iter().filter(|node| node.status != 0).for_each(|node| *groups.entry(node.gpu).or_default() += 1);
        if some < NODES as usize {
            break;
        }
    }
    for (group, count) in groups {
        *told.names.entry(muster.read(IMuster::gpuNameCall { group }).await?).or_default() += count;
    }
    // Events name a task's models at its creation, its pay at its end.
    let mut models = BTreeMap::<u64, Vec<u64>>::new();
    let (filter, earned) = (json!({ "address": address }), &mut told.earned);
    let read = muster.endpoints().past(filter, head.saturating_sub(BLOCKS)..=head, SPAN, |logs| {
        for log in logs {
            let (id, paid) = match abi::event(&log.inner) {
                Some(Event::TaskCreated(created)) => {
                    models.insert(created.id, created.spec.models.clone());
                    continue;
                }
                Some(Event::TaskSucceeded(ended)) => (ended.id, ended.paid),
                Some(Event::MemberJudged(judged)) => (judged.id, judged.paid),
                _ => continue,
            };
            for model in models.get(&id).into_iter().flatten() {
                let (sum, tasks) = earned.entry(*model).or_default();
                *sum += U256::from(paid);
                *tasks += 1;
            }
        }
        Ok::<_, Error>(())
    });
    // The names are told without it.
    if let Err(error) = read.await {
        told.earned.clear();
        print(format_args!("note   events: {error}: what models earned is left out"));
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::config::Config;
    use crate::gpu::Gpu;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        asked: Asked,
    }

    fn card(name: &str, vram: u16, divided: bool) -> Found {
        Found { gpu: Gpu { name: name.into(), vram, uuid: Some(format!("GPU-{vram}")) }, divided }
    }

    #[test]
    fn what_it_writes_is_a_configuration_with_a_node_for_each_card() {
        let asked =
            Line::parse_from(["init", "--rpc", "http://127.0.0.1:1", "--muster", "0x4d75737465720000000000000000000000000000"])
                .asked;
        let cards = [card("NVIDIA H100 80GB HBM3", 80, false), card("NVIDIA \"L4\"", 24, false), card("NVIDIA A100", 40, true)];
        let mut told = Told { chain: Some(7), ..Told::default() };
        told.earned.insert(abi::model_id("stabilityai/sdxl-turbo"), (U256::from(3_000_000_000_000_000_000u64), 12));
        told.names.insert("NVIDIA H100 80GB HBM3+1a2b3c4d".into(), 3);
        let text = written(&asked, &cards, &told, Some(50_000_000_000));
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("agent.toml");
        std::fs::write(&file, &text).unwrap();
        let config = Config::read(&file).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
        let uuids: Vec<_> = config.nodes.iter().map(|node| node.gpu.as_deref().unwrap()).collect();
        assert_eq!(uuids, ["GPU-80", "GPU-24"]);
        assert_eq!((config.chain, config.hub.unwrap().most), (Some(7), 40_000_000_000));
        // The one with the highest earnings, though larger ones fit; without earnings, the largest that `most` has room for.
        assert!(config.nodes.iter().all(|node| node.models == ["stabilityai/sdxl-turbo"]));
        let users: Vec<_> = config.nodes.iter().map(|node| node.executor.user.as_deref().unwrap()).collect();
        assert_eq!(users, ["muster-executor0", "muster-executor1"]);
        assert!(text.contains("# 3 nodes are called \"NVIDIA H100 80GB HBM3+1a2b3c4d\"\n"), "{text}");
        assert!(text.contains("earned 3 ether with 12 tasks lately"), "{text}");
        assert!(text.contains("# NVIDIA A100, 40 GiB\n# It is divided (MIG)"), "{text}");
        assert!(!text.contains("Qwen/Qwen2.5-32B-Instruct"), "the disk has no room for it: {text}");
        // It fits the free disk, and not `most`.
        let text = written(&asked, &cards, &told, Some(70_000_000_000));
        assert!(!text.contains("Qwen/Qwen2.5-32B-Instruct"), "{text}");
        assert_eq!(suggested(80, u64::MAX, &Told::default())[0].0, "Qwen/Qwen2.5-32B-Instruct");
        assert_eq!(suggested(2, u64::MAX, &Told::default()).len(), 0);
    }
}
