//! `muster`: a Muster from the command line. `docs/operators.md` begins with it.

mod admin;
mod agent;
mod commands;
mod earnings;
mod exporter;
mod follow;
mod history;
mod keepalive;
mod keeper;
mod node;
mod options;
mod parameters;
mod proposals;
mod session;
mod spent;
mod state;
mod stores;
mod stream;
mod task;
mod watch;
mod why;

use std::process::ExitCode;

use alloy::primitives::U256;
use alloy::sol_types::SolCall;
use anyhow::Result;
use clap::{error::ErrorKind, parser::ValueSource, CommandFactory, FromArgMatches};
use muster_client::observe::{self, print};
use muster_client::{key, show_amount, Error, IMuster};
use serde_json::json;

use commands::{Account, Cli, Command, Node};
use follow::Ended;
use options::Options;
use session::{endpoints, password, wallet, Payments, Report, Session, Usage, KEY};

/// Says why a command line is none, as every other failure is said; or prints the help that was asked for.
fn misused(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        let text = error.to_string();
        print(json!({ "error": text.trim().trim_start_matches("error: "), "refusal": null, "exitCode": 2 }));
        return ExitCode::from(2);
    }
    error.exit()
}

/// The command line, with one key: a flag goes before the environment's variables.
fn parse() -> Result<Cli, clap::Error> {
    let matches = Cli::command().try_get_matches()?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    let by = |source| ["account", "keystore", "signer"].map(|name| matches.value_source(name) == Some(source));
    let (flags, variables) = (by(ValueSource::CommandLine), by(ValueSource::EnvVariable));
    let named = if flags.contains(&true) { flags } else { variables };
    if named.iter().filter(|named| **named).count() > 1 {
        let text = "of --account, --keystore, --signer and their variables only one can name the key";
        return Err(Cli::command().error(ErrorKind::ArgumentConflict, text));
    }
    let Options { account, keystore, signer, .. } = &mut cli.options;
    *account = account.take().filter(|_| named[0]);
    *keystore = keystore.take().filter(|_| named[1]);
    *signer = signer.take().filter(|_| named[2]);
    Ok(cli)
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => return misused(&error),
    };
    let json = cli.options.json;
    if let Err(error) = observe::log(cli.options.log_json, &cli.options.log) {
        eprintln!("muster: {error}");
        return ExitCode::from(2);
    }
    match Box::pin(run(cli)).await {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(report)) => {
            print(if json { report.json.to_string() } else { report.text });
            ExitCode::SUCCESS
        }
        Err(error) => {
            let code = exit_code(&error);
            let refusal = error.downcast_ref::<Error>().and_then(Error::refusal);
            if json {
                let name = refusal.and_then(|refusal| refusal.name());
                print(json!({ "error": format!("{error:#}"), "refusal": name, "exitCode": code }));
            } else {
                eprintln!("muster: {error:#}");
                if let Some(notice) = refusal.and_then(|refusal| refusal.notice()) {
                    eprintln!("  {notice}");
                }
            }
            ExitCode::from(code)
        }
    }
}

/// As documented in the help.
fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<Ended>() {
        return 7;
    }
    if error.is::<Usage>() {
        return 2;
    }
    match error.downcast_ref::<Error>() {
        Some(Error::Url(_)) => 2,
        Some(Error::Refused(_) | Error::Undone { .. }) => 3,
        Some(Error::Unreachable(_) | Error::Disagreement(_) | Error::WrongChain { .. }) => 4,
        Some(Error::NotMined { .. } | Error::FeeCeiling { .. }) => 5,
        Some(Error::Key(_)) => 6,
        _ => 1,
    }
}

async fn run(cli: Cli) -> Result<Option<Report>> {
    let options = &cli.options;
    match cli.command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "muster", &mut script);
            print(String::from_utf8_lossy(&script).trim_end());
            return Ok(None);
        }
        Command::Account(command) => return account(options, &command).await.map(Some),
        _ => {}
    }
    let session = &Session::open(options).await?;
    let none = U256::ZERO;
    Ok(Some(match cli.command {
        Command::Node(node) => match node {
            Node::Join(join) => join.run(session).await?,
            Node::Status(which) => node::show(session, &which).await?,
            Node::Why(why) => why.run(session).await?,
            Node::Pause => session.call(IMuster::pauseCall {}, none, "paused").await?,
            Node::Resume => session.call(IMuster::resumeCall {}, none, "resumed").await?,
            Node::RaiseStake { amount } => {
                let call = IMuster::raiseStakeCall {};
                let asked = [&call.abi_encode()[..], &amount.to_be_bytes::<32>()].concat();
                let mut payments = Payments::open(session, asked).await?;
                session.say(&payments.call(call, amount, |amount| format!("stake raised by {}", show_amount(amount))).await?);
                payments.told().await?;
                return Ok(None);
            }
            Node::Worker(worker) => worker.run(session).await?,
            Node::Models(models) => models.run(session).await?,
            Node::Quit => session.call(IMuster::quitCall {}, none, "left").await?,
            Node::Withdraw { to } => {
                let to = match to {
                    Some(to) => to,
                    None => session.address().await?,
                };
                session.call(IMuster::withdrawCall { to }, none, &format!("paid out to {to}")).await?
            }
            Node::Earnings(earnings) => earnings.run(session).await?,
        },
        Command::Task(task) => return task.run(session).await,
        Command::Stores(command) => command.run(session).await?,
        Command::Network => watch::network(session).await?,
        Command::Watch(watch) => return watch.run(session).await.map(|()| None),
        Command::Keeper(keeper) => return keeper.run(session).await,
        Command::Keepalive(keepalive) => keepalive.run(session).await?,
        Command::Admin(admin) => admin.run(session).await?,
        Command::Exporter(exporter) => return exporter.run(session).await,
        Command::Account(_) | Command::Completions { .. } => return Ok(None),
    }))
}

async fn account(options: &Options, command: &Account) -> Result<Report> {
    let place = options.home().join("keystore");
    match command {
        Account::New { name } => {
            let (address, path) = key::create(&place, name, &password(options, true)?)?;
            Ok(made(address, &path))
        }
        Account::Import { name } => {
            let key =
                key::from_environment(KEY)?.ok_or_else(|| Error::Key(format!("{KEY} in the environment is to hold the key")))?;
            let (address, path) = key::store(&place, name, &password(options, true)?, &key)?;
            Ok(made(address, &path))
        }
        Account::List => {
            let names = key::list(&place)?;
            let text = if names.is_empty() { "no keys: muster account new NAME makes one".into() } else { names.join("\n") };
            Ok(Report { json: json!(names), text })
        }
        Account::Show => {
            let endpoints = endpoints(options)?;
            let address = wallet(options, &endpoints).await?.address();
            let balance = endpoints.balance(address).await?;
            let text = format!("{address} has {}", show_amount(balance));
            Ok(Report { json: json!({ "address": address, "balance": balance.to_string() }), text })
        }
    }
}

fn made(address: alloy::primitives::Address, path: &std::path::Path) -> Report {
    Report { json: json!({ "address": address, "file": path }), text: format!("{address} in {}", path.display()) }
}
