//! `muster`: what the shells under `script/` run.

use std::path::Path;

use anyhow::{anyhow, bail, ensure, Context, Result};
use clap::{Parser, Subcommand};
use comfy_table::{presets::UTF8_HORIZONTAL_ONLY, CellAlignment, Table, TableComponent};
use ethers::signers::LocalWallet;
use muster_cli::{
    build::{self, Settings},
    chain::{Account, Chain},
    demo, deploy, keepalive, measure, pages, proof, wasm,
};

#[derive(Parser)]
#[command(name = "muster", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile every program to build/, print the sizes, fail above the limit
    Build {
        /// Print build/manifest.json instead of the table
        #[arg(long)]
        json: bool,
        /// Also compile the programs that only tests deploy, to build/tests/
        #[arg(long)]
        tests: bool,
    },
    /// Deploy, activate and wire the programs in build/ on RPC_URL, skipping what is there (settings: .env.example)
    Deploy,
    /// Show when the programs on RPC_URL's chain expire, renew those that will soon, and activate again those that have;
    /// anybody may, PRIVATE_KEY pays
    Keepalive(keepalive::Options),
    /// Let a fleet join, replay requests as tasks, and show what the contract made of them
    Demo(demo::Options),
    /// Write docs/refusals.md, the table of errors, docs/storage.md, where what lies, and what shows the parameters:
    /// the table of docs/parameters.md, abi/parameters.json and abi/parameters.ts (script/abi runs it)
    Pages {
        /// Change nothing, and fail if a file differs
        #[arg(long)]
        check: bool,
    },
    /// Run the tests whose figures docs/proof.md shows, and write it (takes minutes; script/proof runs it)
    Proof,
    /// Compile the programs with every setting tried and print what each would cost, as Markdown (takes minutes)
    Measure {
        /// Only these programs
        programs: Vec<String>,
        /// Only settings whose description contains this, such as "opt-level"
        #[arg(long, default_value = "")]
        change: String,
    },
}

#[tokio::main]
async fn main() {
    if let Err(error) = run(Arguments::parse().command).await {
        eprintln!("muster: {error:#}");
        std::process::exit(1);
    }
}

async fn run(command: Command) -> Result<()> {
    match command {
        Command::Build { json, tests } => {
            let root = build::root()?;
            let (manifest, programs) = build::build(&root, &Settings::default())?;
            if tests {
                build::build_for_tests(&root, &Settings::default())?;
            }
            if json {
                println!("{}", serde_json::to_string_pretty(&manifest)?);
            } else {
                println!("{}", sizes(&programs));
                println!("compiled by {}", manifest.rustc);
            }
            let over: Vec<_> = programs
                .iter()
                .filter(|program| program.code.len() > wasm::MAX_CODE)
                .map(|program| program.name.as_str())
                .collect();
            if !over.is_empty() {
                bail!("above the limit of {} bytes: {}", wasm::MAX_CODE, over.join(", "));
            }
        }
        Command::Deploy => {
            let root = build::root()?;
            let (chain, mut account) = connect(&root).await?;
            let mut config = deploy::Config::from_environment(&root, account.address())?;
            config.file = Some(deploy::record(&root, chain.id));
            config.say = |line| println!("deploy: {line}");
            deploy::on(&chain, &mut account, &config).await?;
        }
        Command::Keepalive(options) => {
            let root = build::root()?;
            let (chain, mut account) = match options.dry_run {
                true => (Chain::connect(&url(&root)?).await?, None),
                false => connect(&root).await.map(|(chain, account)| (chain, Some(account)))?,
            };
            let programs = keepalive::programs(&chain, &root, &options).await?;
            let say = |line: &str| println!("keepalive: {line}");
            let rows = keepalive::run(&chain, account.as_mut(), &programs, options.within, say).await?;
            let now = chain.now().await?;
            let mut shown = table(6, &["program", "address", "state", "start gas cached / not", "expires", "done"]);
            shown.add_rows(rows.iter().map(|row| row.cells(now)));
            println!("{shown}");
            let left = rows.iter().filter(|row| row.needs_attention).count();
            ensure!(left == 0, "{left} of {} programs need somebody's attention (docs/keepalive.md)", rows.len());
        }
        Command::Demo(options) => {
            let report = demo::run(&build::root()?, &options).await?;
            if options.json {
                println!("{}", serde_json::to_string_pretty(&report)?);
            } else {
                print_report(&report);
            }
        }
        Command::Pages { check } => pages::run(&build::root()?, check)?,
        Command::Proof => proof::run(&build::root()?)?,
        Command::Measure { programs, change } => {
            let (rustc, rows) = measure::measure(&build::root()?, &programs, &change, |change| eprintln!("measuring: {change}"))?;
            println!("{rustc}\n");
            println!("| change | program | WASM bytes | deployed bytes | functions | data bytes | pages | start gas cached | not cached |");
            println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
            for row in rows {
                match row.programs {
                    Err(error) => println!("| {} | {error:#} | | | | | | | |", row.change),
                    Ok(programs) => {
                        for build::Program { name, wasm, code, shape } in programs {
                            println!(
                                "| {} | {name} | {} | {} | {} | {} | {} | {} | {} |",
                                row.change,
                                wasm.len(),
                                code.len(),
                                shape.functions,
                                shape.data,
                                shape.pages,
                                shape.start_cached() + shape.memory(),
                                shape.start_uncached() + shape.memory(),
                            );
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// The node that RPC_URL names, in the environment or in `.env`.
fn url(root: &Path) -> Result<String> {
    let _ = dotenvy::from_path(root.join(".env"));
    deploy::variable("RPC_URL")
        .context("RPC_URL is not set: name a node in the environment or in .env (.env.example documents it)")
}

/// Its chain, and the account of PRIVATE_KEY there.
async fn connect(root: &Path) -> Result<(Chain, Account)> {
    let url = url(root)?;
    let wallet: LocalWallet = deploy::variable("PRIVATE_KEY")
        .context("PRIVATE_KEY is not set: put the key of who pays in the environment or in .env (.env.example documents it)")?
        .parse()
        .map_err(|_| anyhow!("PRIVATE_KEY is not a private key of 32 bytes in hexadecimal"))?;
    let chain = Chain::connect(&url).await?;
    let account = Account::new(&chain, wallet);
    Ok((chain, account))
}

fn print_report(report: &demo::Report) {
    let show = |table: Table| println!("{table}\n");
    let share = |count: u64| format!("{:.1} %", 100.0 * count as f64 / report.tasks.max(1) as f64);
    let mut tasks = table(1, &["tasks", "number", "share"]);
    for (what, count) in [
        ("created", report.tasks),
        ("dispatched at once", report.dispatched),
        ("queued", report.queued),
        ("finished", report.finished),
        ("timed out", report.timed_out),
        ("error reported by the node", report.errors_reported),
        ("aborted: evicted from the queue", report.evicted),
        ("aborted: cancelled by the creator", report.cancelled),
        ("aborted: queued for too long", report.outlived),
        ("refused, because no node could run them", report.refused),
    ] {
        tasks.add_row([what, &count.to_string(), &share(count)]);
    }
    show(tasks);

    let wait = &report.waiting_seconds;
    println!(
        "{} nodes, {} seconds on chain. From creation to start: median {} s, 95 % within {} s, at most {} s;",
        report.nodes, report.simulated_seconds, wait.median, wait.p95, wait.max
    );
    let wait = &report.queue_seconds;
    println!(
        "of the {} that came out of the queue: median {} s, 95 % within {} s, at most {} s.",
        wait.count, wait.median, wait.p95, wait.max
    );
    println!("Nodes fell below the threshold of H {} times; {} were kicked out.\n", report.exclusions, report.kicked_out);

    let mut nodes = table(2, &["node", "GPU", "tasks", "share of work", "share of weight"]);
    for node in &report.top_nodes {
        nodes.add_row([
            node.node.to_string(),
            node.gpu.clone(),
            node.tasks.to_string(),
            format!("{:.1} %", node.work_percent),
            format!("{:.1} %", node.weight_percent),
        ]);
    }
    show(nodes);

    let mut gas = table(1, &["gas of", "times", "min", "median", "max"]);
    for (operation, spread) in &report.gas {
        gas.add_row([
            operation.clone(),
            spread.count.to_string(),
            spread.min.to_string(),
            spread.median.to_string(),
            spread.max.to_string(),
        ]);
    }
    show(gas);

    let mut money = table(1, &["wei", "amount"]);
    for (what, amount) in [
        ("stakes", &report.stake_wei),
        ("escrow", &report.escrow_wei),
        ("credit", &report.credit_wei),
        ("treasury", &report.treasury_wei),
        ("the contract's balance", &report.contract_balance_wei),
    ] {
        money.add_row([what, amount]);
    }
    show(money);
    println!("Muster is at {:?}.", report.address);
}

/// A table whose columns from `numbers` on hold numbers.
fn table(numbers: usize, heading: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY).set_header(heading);
    for component in [TableComponent::HorizontalLines, TableComponent::MiddleIntersections] {
        table.remove_style(component);
    }
    for column in table.column_iter_mut().skip(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn sizes(programs: &[build::Program]) -> Table {
    let share = format!("share of {}", wasm::MAX_CODE);
    let mut table = table(1, &["program", "WASM bytes", "bytes as deployed", &share, "start gas cached / not"]);
    for program in programs {
        table.add_row([
            program.name.clone(),
            program.wasm.len().to_string(),
            program.code.len().to_string(),
            format!("{:.1} %", 100.0 * program.code.len() as f64 / wasm::MAX_CODE as f64),
            format!(
                "{} / {}",
                program.shape.start_cached() + program.shape.memory(),
                program.shape.start_uncached() + program.shape.memory()
            ),
        ]);
    }
    table
}
