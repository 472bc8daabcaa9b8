//! `muster-dev`: the commands behind the shells under `script/`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context, Result};
use clap::{Parser, Subcommand};
use comfy_table::Table;
use muster_cli::{
    build::{self, Program, Settings},
    chain::{Chain, Payer},
    demo, deploy, environment, estimate, keepalive, measure, mutants, pages, proof,
    table::table,
    wasm,
};
use muster_client::{observe::print, Sender};

#[derive(Parser)]
#[command(name = "muster-dev", version, about)]
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
        /// Change one setting, as `measure` calls it, to see what calls then cost (docs/research/build.md); script/deploy builds without
        #[arg(long, value_name = "CHANGE")]
        with: Option<String>,
        /// Take the committed programs where they are made from these sources, instead of compiling
        #[arg(long, conflicts_with = "with")]
        take: bool,
        /// Write the committed programs, abi/programs
        #[arg(long, conflicts_with_all = ["with", "take"])]
        commit: bool,
        /// Fail if the committed programs are others
        #[arg(long, conflicts_with_all = ["with", "take", "commit"])]
        check: bool,
    },
    /// Deploy, activate and wire the programs in build/ on RPC_URL, skipping what is there (settings: .env.example)
    Deploy(deploy::Options),
    /// Show when the programs on RPC_URL's chain expire, renew those that will soon, and activate again those that have;
    /// anybody may, PRIVATE_KEY pays
    Keepalive(keepalive::Options),
    /// Let a fleet join, replay requests as tasks, and show their fates
    Demo(demo::Options),
    /// Write docs/generated/refusals.md, the table of errors, docs/generated/storage.md, the storage layout, and the parameters in the
    /// table of docs/parameters.md, abi/parameters.json and abi/parameters.ts (script/abi runs it)
    Pages {
        /// Change nothing, and fail if a file differs
        #[arg(long)]
        check: bool,
    },
    /// Run the tests whose figures docs/generated/proof.md shows, and write it (takes minutes; script/proof runs it)
    Proof {
        /// A folder with what llvm-cov exports of each test executable
        coverage: PathBuf,
    },
    /// Write the section on mutants of docs/generated/proof.md anew, from test/mutants.jsonl (script/mutants --page runs it)
    Mutants,
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
        eprintln!("muster-dev: {error:#}");
        std::process::exit(1);
    }
}

async fn run(command: Command) -> Result<()> {
    // A release has no sources: .env and deployments/ are where it is called.
    let root = match build::root() {
        Err(_) if environment::variable(deploy::RELEASED).is_some() => std::env::current_dir()?,
        root => root?,
    };
    match command {
        Command::Build { json, with, take, commit, check } => {
            let settings = with.as_deref().map_or_else(|| Ok(Settings::default()), measure::variant)?;
            let (manifest, programs) = if take { build::take(&root)? } else { build::build(&root, &settings)? };
            show(&manifest, &programs, json)?;
            if commit {
                build::commit(&root, &manifest, &programs)?;
            }
            if check && !build::check_committed(&root, &manifest, &programs)? {
                eprintln!("muster-dev: abi/programs are another compiler's, and are not compared");
            }
            Ok(())
        }
        Command::Deploy(options) => deploy(&root, &options).await,
        Command::Keepalive(options) => keepalive(&root, &options).await,
        Command::Demo(options) => {
            let report = demo::run(&root, &options).await?;
            if options.json {
                print(serde_json::to_string_pretty(&report)?);
            } else {
                report.print();
            }
            Ok(())
        }
        Command::Pages { check } => pages::run(&root, check),
        Command::Proof { coverage } => proof::run(&root, &coverage),
        Command::Mutants => mutants::rewrite(&root),
        Command::Measure { programs, change } => measure(&root, &programs, &change),
    }
}

fn show(manifest: &build::Manifest, programs: &[Program], json: bool) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(manifest)?);
    } else {
        println!("{}", sizes(programs));
        println!("compiled by {}", manifest.rustc);
    }
    let over: Vec<_> =
        programs.iter().filter(|program| program.code.len() > wasm::MAX_CODE).map(|program| program.name.as_str()).collect();
    ensure!(over.is_empty(), "above the limit of {} bytes: {}", wasm::MAX_CODE, over.join(", "));
    Ok(())
}

/// Says how far it is: it goes on although nobody may read any more, as behind `| head`.
fn tell(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

async fn deploy(root: &Path, options: &deploy::Options) -> Result<()> {
    let (chain, payer, account) = match options.from {
        Some(payer) => (Chain::connect(&url(root)?).await?, payer, None),
        None => connect(root, &options.payer).await.map(|(chain, account)| (chain, account.address(), Some(account)))?,
    };
    let mut config = deploy::Config::from_environment(root, payer)?;
    config.file = Some(deploy::record(root, chain.id));
    config.safe.clone_from(&options.safe);
    config.say = if options.json { |line| eprintln!("deploy: {line}") } else { |line| tell(&format!("deploy: {line}")) };
    let account = match account {
        Some(account) if !options.dry_run => account,
        _ => {
            let estimate = estimate::estimate(&chain, payer, &config).await?;
            if options.json {
                print(serde_json::to_string_pretty(&estimate.json())?);
            } else {
                print(&estimate);
            }
            let missing = if options.json { estimate.missing.join("; ") } else { "see what is missing above".into() };
            ensure!(estimate.missing.is_empty(), "it cannot be deployed so: {missing}");
            return Ok(());
        }
    };
    let deployment = deploy::on(&chain, &account, &config).await?;
    if options.json {
        print(serde_json::to_string_pretty(&deployment)?);
    }
    Ok(())
}

async fn keepalive(root: &Path, options: &keepalive::Options) -> Result<()> {
    let (chain, account) = if options.dry_run {
        (Chain::connect(&url(root)?).await?, None)
    } else {
        connect(root, &options.payer).await.map(|(chain, account)| (chain, Some(account)))?
    };
    let programs = keepalive::programs(&chain, root, options).await?;
    let say = |line: &str| tell(&format!("keepalive: {line}"));
    let rows = keepalive::run(&chain, account.as_ref(), &programs, options.within, say).await?;
    let now = chain.now().await?;
    let mut shown = table(6, &["program", "address", "state", "start gas cached / not", "expires", "done"]);
    shown.add_rows(rows.iter().map(|row| row.cells(now)));
    print(&shown);
    let left = rows.iter().filter(|row| row.needs_attention).count();
    ensure!(left == 0, "{left} of {} programs need somebody's attention (docs/deploying.md)", rows.len());
    Ok(())
}

fn measure(root: &Path, programs: &[String], change: &str) -> Result<()> {
    let (rustc, rows) = measure::measure(root, programs, change, |change| eprintln!("measuring: {change}"))?;
    println!("{rustc}\n");
    println!(
        "| change | program | WASM bytes | deployed bytes | functions | data bytes | pages | start gas cached | not cached |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for row in rows {
        let programs = match row.programs {
            Err(error) => {
                println!("| {} | {error:#} | | | | | | | |", row.change);
                continue;
            }
            Ok(programs) => programs,
        };
        for Program { name, wasm, code, shape } in programs {
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
    Ok(())
}

/// The node that RPC_URL names, in the environment or in `.env`.
fn url(root: &Path) -> Result<String> {
    let file = root.join(".env");
    match dotenvy::from_path(&file) {
        // Those after it are not read. It may hold a key, so only its number is said.
        Err(dotenvy::Error::LineParse(line, _)) => {
            let text = std::fs::read_to_string(&file)?;
            let number = text.lines().take_while(|other| !other.contains(&line)).count() + 1;
            bail!("{}:{number} cannot be read: a value with spaces or quotes in it stands in quotes", file.display());
        }
        Err(error) if !error.not_found() => bail!("{}: {error}", file.display()),
        _ => {}
    }
    environment::variable("RPC_URL")
        .context("RPC_URL is not set: name a node in the environment or in .env (.env.example documents it)")
}

/// Its chain, and the payer's account there.
async fn connect(root: &Path, payer: &Payer) -> Result<(Chain, Sender)> {
    let url = url(root)?;
    let (chain, wallet) = payer.connect(&url).await?;
    let account = chain.account(wallet).await?;
    Ok((chain, account))
}

fn sizes(programs: &[Program]) -> Table {
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
