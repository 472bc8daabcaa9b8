//! Puts the programs on a chain: creates, activates and wires them, skipping any that are there already.
//!
//! The record of a deployment is kept in `deployments/<chain id>.json`, written after every step, and believed only as far as the chain
//! confirms it. A program counts as created if the code at its address has the hash of the built code.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use alloy::{
    primitives::{
        address, keccak256,
        utils::{format_ether, parse_ether},
        Address, Bytes, FixedBytes, B256, U256,
    },
    sol_types::SolCall,
};
use anyhow::{anyhow, bail, ensure, Context, Result};
use muster_client::{safe, IMuster, Request, Sender};
use muster_protocol::parameters::{self, PARAMETERS};
use serde::{Deserialize, Serialize};

use crate::{
    arbwasm::{self, Status},
    build::{self, Manifest, Program},
    chain::{called, date, Chain, Payer},
    environment::{number, variable},
    parameters::in_words,
    router::{self, bound_initcode, initcode, Router, Step, AGAIN},
    settings,
};

/// How long other proposals are searched for.
const SEARCH: Duration = Duration::from_mins(1);

/// The contract that users call: no program, but code of the EVM.
pub const ROUTER: &str = "router";
/// The program that holds `initialise`.
pub(crate) const ADMIN: &str = "admin";
/// The variable by which a released `muster-dev` finds the programs released with it.
pub const RELEASED: &str = "MUSTER_PROGRAMS";
/// Keeps the hashes of a chain's last 393,168 blocks (EIP-2935), from ArbOS 40 on.
const HISTORY_STORAGE: Address = address!("0000f90827f1c53a10cb7a02335b175320002935");
/// Chains on which nothing is worth anything: a node of nitro's, of anvil's or hardhat's, of geth's.
pub(crate) const DEVELOPMENT_CHAINS: [u64; 3] = [412_346, 31_337, 1_337];

/// The command's flags.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Send nothing: show what each step would cost, and fail if something is missing
    #[arg(long)]
    pub dry_run: bool,
    /// With --dry-run, who would pay, if that is not the account of PRIVATE_KEY
    #[arg(long, value_name = "ADDRESS", requires = "dry_run")]
    pub from: Option<Address>,
    /// Put the owner's own transactions into this file for the transaction builder of a Safe, after those in it
    #[arg(long, value_name = "FILE")]
    pub safe: Option<PathBuf>,
    /// The payer.
    #[command(flatten)]
    pub payer: Payer,
    /// Print exactly one JSON object on standard output: the estimate, or the record of what is deployed
    #[arg(long)]
    pub json: bool,
}

/// The contents and settings of a deployment.
#[derive(Clone)]
pub struct Config {
    /// Will own the contract; not necessarily the deployer.
    pub owner: Address,
    /// Receives protocol income.
    pub treasury: Address,
    /// Stakes are whole multiples of this many wei.
    pub stake_unit: u64,
    /// In wei.
    pub minimum_stake: u128,
    /// Seconds from a proposal of other programs to its effect.
    pub upgrade_delay: u32,
    /// Least price of an estimated second, in wei. Only development chains do without.
    pub minimum_price: Option<U256>,
    /// Parameters that are to differ from their defaults, by name.
    pub parameters: Vec<(String, U256)>,
    /// The compiled programs behind the router.
    pub programs: Vec<Program>,
    /// The compiler of the programs, for the record.
    pub rustc: String,
    /// The file for the record; without it nothing is kept, and everything is deployed anew.
    pub file: Option<PathBuf>,
    /// Takes the owner's transactions, where somebody else deploys: a file for the transaction builder of a Safe.
    pub safe: Option<PathBuf>,
    /// Told each step.
    pub say: fn(&str),
}

impl Config {
    /// Reads OWNER, TREASURY, MIN_STAKE, STAKE_UNIT, UPGRADE_DELAY, MIN_PRICE and PARAMETERS from the environment, and
    /// the [`programs`]. Owner and treasury default to `account`.
    ///
    /// # Errors
    /// When a variable cannot be read, or nothing is built.
    pub fn from_environment(root: &Path, account: Address) -> Result<Self> {
        let (manifest, programs) = programs(root)?;
        let address = |name: &str| match variable(name) {
            Some(text) => text.parse().map_err(|_| anyhow!("{name} is {text}, which is not an address")),
            None => Ok(account),
        };
        let minimum_stake = match variable("MIN_STAKE") {
            Some(text) => parse_ether(&text)
                .ok()
                .and_then(|wei| u128::try_from(wei).ok())
                .with_context(|| format!("MIN_STAKE is {text}, which is not an amount of ether"))?,
            None => 400_000_000_000_000_000_000,
        };
        let stake_unit = number("STAKE_UNIT", "wei")?.unwrap_or(1_000_000_000_000);
        let upgrade_delay = number("UPGRADE_DELAY", "seconds")?.unwrap_or(7 * 86_400);
        let parameters = match variable("PARAMETERS") {
            Some(text) => parameters(&text)?,
            None => Vec::new(),
        };
        Ok(Self {
            owner: address("OWNER")?,
            treasury: address("TREASURY")?,
            stake_unit,
            minimum_stake,
            upgrade_delay,
            minimum_price: number::<u64>("MIN_PRICE", "wei")?.map(U256::from),
            parameters,
            programs,
            rustc: manifest.rustc,
            file: None,
            safe: None,
            say: |_| {},
        })
    }

    pub(crate) fn terms(&self) -> router::Terms {
        router::Terms {
            owner: self.owner,
            treasury: self.treasury,
            stake_unit: self.stake_unit,
            minimum_stake: self.minimum_stake,
            upgrade_delay: self.upgrade_delay,
        }
    }

    /// Puts the owner's transaction into the file for it, if there is to be one.
    fn hand_over(&self, chain: &Chain, owner: Address, to: Address, call: &Bytes, what: &str) -> Result<()> {
        if let Some(file) = &self.safe {
            let count = safe::add(file, chain.id, owner, to, call, what)?;
            (self.say)(&format!("{what}: transaction {count} of {}", file.display()));
        }
        Ok(())
    }

    /// The parameters to set on a chain, the least price among them.
    pub(crate) fn parameters_on(&self, chain_id: u64) -> Result<Vec<(String, U256)>> {
        let mut parameters = self.parameters.clone();
        let named = parameters.iter().find(|(name, _)| name == MIN_PRICE).map(|(_, value)| *value);
        match (self.minimum_price, named) {
            (Some(price), Some(named)) => {
                ensure!(price == named, "MIN_PRICE is {price}, and PARAMETERS sets {MIN_PRICE} to {named}: say it once");
            }
            (Some(price), None) => parameters.push((MIN_PRICE.into(), price)),
            (None, Some(_)) => {}
            (None, None) => {
                let default = in_words(PARAMETERS[usize::from(number_of(MIN_PRICE)?)].setting.default);
                ensure!(
                    DEVELOPMENT_CHAINS.contains(&chain_id),
                    "MIN_PRICE is not set: give the least pay of an estimated second of work on chain {chain_id}, in wei. \
                     The contract begins with {default}, for which anybody fills the queue with tasks worth nothing \
                     (.env.example says how to find a price)"
                );
            }
        }
        Ok(parameters)
    }
}

/// The parameter that MIN_PRICE sets.
const MIN_PRICE: &str = "minPrice";

/// The file for the record of a chain's deployment: in `deployments/`, or in the directory that DEPLOYMENTS names.
pub fn record(root: &Path, chain_id: u64) -> PathBuf {
    let dir = variable("DEPLOYMENTS").map_or_else(|| root.join("deployments"), PathBuf::from);
    dir.join(format!("{chain_id}.json"))
}

/// The compiled programs: those of a release, where MUSTER_PROGRAMS names the folder it keeps `build/` in, else the project's own.
///
/// # Errors
/// When there are none, or its files do not belong together.
pub fn programs(root: &Path) -> Result<(Manifest, Vec<Program>)> {
    build::load(&variable(RELEASED).map_or_else(|| root.to_owned(), PathBuf::from))
}

/// Reads `name=value,name=value`.
fn parameters(text: &str) -> Result<Vec<(String, U256)>> {
    text.split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) =
                pair.split_once('=').with_context(|| format!("PARAMETERS holds {pair:?}; it should be name=value"))?;
            number_of(name)?;
            let value = U256::from_str_radix(value, 10)
                .map_err(|_| anyhow!("PARAMETERS sets {name} to {value:?}, which is not a whole number"))?;
            Ok((name.to_string(), value))
        })
        .collect()
}

/// A parameter's number by its name.
pub(crate) fn number_of(name: &str) -> Result<u8> {
    parameters::number_of(name).with_context(|| {
        let names: Vec<_> = PARAMETERS.iter().map(|parameter| parameter.name).collect();
        format!("there is no parameter {name}; there are: {}", names.join(", "))
    })
}

/// The deployment on a chain.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Deployment {
    /// The chain.
    pub chain_id: u64,
    /// The one public address.
    pub address: Address,
    /// The deployer.
    pub deployer: Address,
    /// As it was set at first.
    pub owner: Address,
    /// As it was set at first.
    pub treasury: Address,
    /// In wei.
    pub stake_unit: u64,
    /// In wei, in decimal: it can be larger than the numbers that JSON's readers take.
    pub minimum_stake: String,
    /// In seconds. A record from before there was one has none.
    #[serde(default)]
    pub upgrade_delay: u32,
    /// By name, the router included.
    pub programs: BTreeMap<String, Deployed>,
    /// Programs that were replaced, which the router leads to until the change takes effect.
    #[serde(default)]
    pub former: BTreeSet<Address>,
    /// The transaction that initialised it, as far as it is known.
    pub installed_in: Option<B256>,
    /// Parameters that are still to be set once, as after a run that was interrupted. All others are the owner's.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unset: BTreeSet<String>,
    /// The compiler of the programs.
    pub rustc: String,
    /// The commit they were built from, with a `+` if files had been changed since.
    pub commit: Option<String>,
}

impl Deployment {
    /// The programs behind the router, by name.
    pub fn behind(&self) -> impl Iterator<Item = (&String, &Deployed)> {
        self.programs.iter().filter(|(name, _)| *name != ROUTER)
    }
}

/// One program on chain, or the router.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Deployed {
    /// Where it is.
    pub address: Address,
    /// Keccak-256 of the code there.
    pub code_hash: B256,
    /// The transaction that created it.
    pub created_in: B256,
    /// The transaction that activated it; none if a program with the same code was active already, and of the router.
    pub activated_in: Option<B256>,
}

/// Deploys everything that is missing, and returns the deployment.
///
/// # Errors
/// Says which step failed, and why. The steps done until then are in [`Config::file`], and another run continues from there.
pub async fn on(chain: &Chain, account: &Sender, config: &Config) -> Result<Deployment> {
    let say = config.say;
    let balance = chain.endpoints.balance(account.address()).await?;
    say(&format!(
        "chain {} at {}, account {:?} with {} ether",
        chain.id,
        chain.place(),
        account.address(),
        format_ether(balance)
    ));
    ensure!(
        !balance.is_zero(),
        "account {:?} has no ether on chain {}: send it some, then run this again",
        account.address(),
        chain.id
    );
    complete(config)?;
    let parameters = config.parameters_on(chain.id)?;
    let faults = settings::faults(&config.terms(), &parameters);
    ensure!(faults.is_empty(), "nothing is sent, since the contract would refuse it: {}", faults.join("; "));
    if let Some(fault) = forgetful(chain).await? {
        bail!("nothing is sent: {fault}");
    }
    let mut deployment = known(config, chain.id)?.unwrap_or_else(|| Deployment {
        chain_id: chain.id,
        address: Address::ZERO,
        deployer: account.address(),
        owner: config.owner,
        treasury: config.treasury,
        stake_unit: config.stake_unit,
        minimum_stake: config.minimum_stake.to_string(),
        upgrade_delay: config.upgrade_delay,
        programs: BTreeMap::new(),
        former: BTreeSet::new(),
        installed_in: None,
        unset: BTreeSet::new(),
        rustc: String::new(),
        commit: None,
    });
    deployment.rustc = config.rustc.clone();
    deployment.commit = commit();

    // Before programs are paid for that such a router would not get.
    if let Some(router) = deployment.programs.get(ROUTER) {
        let code = muster_router::code();
        let same = router.address == deployment.address && is_there(chain, &code, router).await?;
        let router = Router { chain, address: deployment.address };
        if same && router.initialised().await? {
            router.told(&config.terms()).await?;
        }
    }
    for program in &config.programs {
        let Program { name, code, .. } = program;
        let mut deployed = create(chain, account, name, code, initcode(code), &mut deployment, &say).await?;
        keep(config, &deployment)?;
        let activated = activate(chain, account, name, deployed.address, &say).await?;
        deployed.activated_in = activated.or(deployed.activated_in);
        deployment.programs.insert(name.clone(), deployed);
        keep(config, &deployment)?;
    }
    let code = muster_router::code();
    let router = create(chain, account, ROUTER, &code, bound_initcode(&code, account.address()), &mut deployment, &say).await?;
    if deployment.address != router.address {
        if deployment.installed_in.take().is_some() {
            say("the router is a new one: an earlier one keeps its contents, under its own address");
        }
        deployment.address = router.address;
        deployment.deployer = account.address();
    }
    keep(config, &deployment)?;

    wire(chain, account, config, &mut deployment, &parameters).await?;
    keep(config, &deployment)?;
    set_parameters(chain, account, config, &mut deployment, &parameters).await?;
    say(&expiry(chain, &deployment).await?);
    say(&format!("Muster is at {:?} on chain {}", deployment.address, chain.id));
    Ok(deployment)
}

/// Why a chain does not suit that knows the hashes of its last 256 blocks alone.
pub(crate) async fn forgetful(chain: &Chain) -> Result<Option<String>> {
    let known = !chain.endpoints.code(HISTORY_STORAGE).await?.is_empty();
    Ok((!known).then(|| {
        format!(
            "chain {} keeps the hashes of 256 blocks only, which are a minute or so: after that a draw is made anew, and a sampled answer \
             is not checked. Its owner must upgrade it to ArbOS 40 or later first",
            chain.id
        )
    }))
}

/// Refuses programs among which that is missing which is called by its name.
pub(crate) fn complete(config: &Config) -> Result<()> {
    let there = |name: &str| config.programs.iter().any(|program| program.name == name);
    ensure!(
        there(ADMIN) && !there(ROUTER),
        "build/ holds no program {ADMIN}, or a router of an earlier version: run script/build again"
    );
    Ok(())
}

/// The record of a chain from earlier runs.
pub(crate) fn known(config: &Config, chain_id: u64) -> Result<Option<Deployment>> {
    Ok(match &config.file {
        Some(file) => read(file)?.filter(|known| known.chain_id == chain_id),
        None => None,
    })
}

/// Initialises the router, or checks that its terms are those of the configuration. Lets its selectors lead to the present programs.
async fn wire(
    chain: &Chain,
    account: &Sender,
    config: &Config,
    deployment: &mut Deployment,
    parameters: &[(String, U256)],
) -> Result<()> {
    let say = config.say;
    let router = Router { chain, address: deployment.address };
    let terms = config.terms();
    let wanted = router::routes(deployment.behind().map(|(name, program)| (name.as_str(), program.address)))?;
    let created_in = deployment.programs[ROUTER].created_in;
    let code = muster_router::code();
    let hint =
        || format!("to create another router, remove the entry \"{ROUTER}\" from {} and run this again", file_name(config));
    if router.initialised().await? {
        // Another run may have stopped right after it; so may somebody else have done it.
        if deployment.installed_in.is_none() {
            router.bound(deployment.deployer, created_in, &code).await.with_context(hint)?;
        }
        router.told(&terms).await?;
        let own = deployment.programs.values().map(|program| program.address);
        let known: BTreeSet<Address> = own.chain(deployment.former.iter().copied()).collect();
        let owners = |owner, call: &Bytes, what: &str| config.hand_over(chain, owner, router.address, call, what);
        router.upgrade(account, &wanted, &known, &say, &owners).await?;
        let own = router.changes(&wanted, &known).await?;
        let told = tokio::time::timeout(SEARCH, tell_others(&router, &own, created_in, &say)).await;
        // Nodes may give the events of few blocks at a time, or of no old ones.
        let why =
            told.map_or_else(|_| Some("that takes too long".to_string()), |told| told.err().map(|error| format!("{error:#}")));
        if let Some(why) = why {
            say(&format!("router: not all proposals were searched for: {why}. muster admin proposals lists them"));
        }
        return Ok(());
    }

    router.untouched(account.address(), created_in, &code).await.with_context(hint)?;
    // Written before: a run that stops right after the initialisation must leave word of them.
    deployment.unset = names(parameters);
    keep(config, deployment)?;
    let receipt = router.install(account, deployment.programs[ADMIN].address, &terms, &wanted).await?;
    deployment.installed_in = Some(receipt.transaction_hash);
    // An earlier run that ended before this may have been told others.
    deployment.owner = config.owner;
    deployment.treasury = config.treasury;
    deployment.stake_unit = config.stake_unit;
    deployment.minimum_stake = config.minimum_stake.to_string();
    deployment.upgrade_delay = config.upgrade_delay;
    router.told(&terms).await?;
    router.leads(&wanted).await?;
    say(&format!("router: initialised, {} functions, owner {:?}, {} gas", wanted.len(), config.owner, receipt.gas_used));
    Ok(())
}

/// Says which other proposals are open, as those of an earlier run that was replaced.
async fn tell_others(router: &Router<'_>, own: &[router::Change], created_in: B256, say: &dyn Fn(&str)) -> Result<()> {
    let created = router.chain.receipt(created_in).await?.and_then(|receipt| receipt.block_number);
    for ((program, selectors), at) in router.others_proposed(created.unwrap_or_default(), own).await? {
        let listed: Vec<_> = selectors.iter().map(|selector| FixedBytes(*selector).to_string()).collect();
        say(&format!(
            "router: that {} functions lead to {program:?} is proposed too, and anybody may put it into effect after {}, also over later \
             changes. Unless that is meant: muster admin withdraw-programs {program:?} {}",
            selectors.len(),
            date(at),
            listed.join(" ")
        ));
    }
    Ok(())
}

/// Has the next run set the parameters once more, whatever the owner has set since.
pub(crate) fn set_again(config: &Config, chain_id: u64) -> Result<()> {
    if let Some(mut deployment) = known(config, chain_id)? {
        deployment.unset = names(&config.parameters_on(chain_id)?);
        keep(config, &deployment)?;
    }
    Ok(())
}

fn names(parameters: &[(String, U256)]) -> BTreeSet<String> {
    parameters.iter().map(|(name, _)| name.clone()).collect()
}

/// That a parameter is no longer as at first, and how to set it so again: it may be the owner's later decision.
pub(crate) fn set_later(name: &str, now: U256, value: U256) -> String {
    format!("{name} is {now}, .env has {value}: muster admin set {name} {value}")
}

/// Sets the parameters that are still to be set, and accepts those that the owner has proposed.
async fn set_parameters(
    chain: &Chain,
    account: &Sender,
    config: &Config,
    deployment: &mut Deployment,
    parameters: &[(String, U256)],
) -> Result<()> {
    let say = config.say;
    let router = Router { chain, address: deployment.address };
    let muster = router.muster();
    deployment.unset = deployment.unset.intersection(&names(parameters)).cloned().collect();
    for (name, value) in parameters {
        let (parameter, value) = (number_of(name)?, *value);
        let now = muster.parameter(parameter).await.map_err(called::<IMuster::parameterCall>)?;
        if now == value {
            say(&format!("{name} is {value}"));
            deployment.unset.remove(name);
            continue;
        }
        let owner = router.owner().await?;
        let delayed = PARAMETERS[usize::from(parameter)].delayed();
        let proposed = delayed && router.proposed_parameter(parameter).await?.is_some_and(|(next, _)| next == value);
        if !proposed && !deployment.unset.contains(name) {
            say(&set_later(name, now, value));
            continue;
        }
        let set = IMuster::setParameterCall { parameter, value };
        let step = if delayed {
            let propose = IMuster::proposeParameterCall { parameter, value };
            router.change(account, proposed, &propose, IMuster::acceptParameterCall { parameter }).await
        } else if owner == account.address() {
            chain.tell(account, &muster, &set, U256::ZERO, None).await.map(|_| Step::Done)
        } else {
            Ok(Step::Owners(set.abi_encode().into()))
        };
        let step = step.with_context(|| format!("cannot set {name} to {value}"))?;
        if let Step::Owners(call) = &step {
            config.hand_over(chain, owner, deployment.address, call, &format!("{name} to {value}"))?;
        } else {
            deployment.unset.remove(name);
            keep(config, deployment)?;
        }
        say(&match step {
            Step::Done => format!("{name} set to {value}"),
            Step::Waits(at) => format!("{name} will be {value} {AGAIN} {}", date(at)),
            Step::Owners(call) => {
                format!("{name}: the owner {owner:?} must send to {:?}, to set it to {value}: {call}", deployment.address)
            }
        });
    }
    keep(config, deployment)
}

/// When the programs expire, as a sentence.
async fn expiry(chain: &Chain, deployment: &Deployment) -> Result<String> {
    let mut least = u64::MAX;
    for (_, program) in deployment.behind() {
        if let Status::Active { left } = Status::of(chain, program.address).await? {
            least = least.min(left);
        }
    }
    let rules = arbwasm::Rules::of(chain).await?;
    Ok(format!(
        "the programs expire on {}, unless script/keepalive renews them, which anyone may do {} days after an activation",
        date(chain.now().await?.saturating_add(least)),
        rules.keepalive / 86_400
    ))
}

/// The record in [`Config::file`] of an earlier run, if there was one.
pub fn read(file: &Path) -> Result<Option<Deployment>> {
    match fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .with_context(|| format!("no earlier run wrote {}: mend or remove it", file.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

fn keep(config: &Config, deployment: &Deployment) -> Result<()> {
    let Some(file) = &config.file else { return Ok(()) };
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir)?;
    }
    // Whole or not at all, even if this process is stopped meanwhile.
    let draft = file.with_extension("part");
    fs::write(&draft, serde_json::to_string_pretty(deployment)? + "\n")
        .and_then(|()| fs::rename(&draft, file))
        .with_context(|| format!("cannot write {}", file.display()))
}

fn file_name(config: &Config) -> String {
    config.file.as_ref().map_or("its record".into(), |file| file.display().to_string())
}

/// The commit of the programs; that of a release is not known here, where the folder may be another project's.
fn commit() -> Option<String> {
    if variable(RELEASED).is_some() {
        return None;
    }
    let git = |arguments: &[&str]| {
        let out = std::process::Command::new("git").args(arguments).output().ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_string())
    };
    let head = git(&["rev-parse", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { head } else { head + "+" })
}

/// Whether the recorded program, or router, is on the chain, and has this code.
pub(crate) async fn is_there(chain: &Chain, code: &[u8], known: &Deployed) -> Result<bool> {
    Ok(*chain.endpoints.code(known.address).await? == code)
}

/// Creates a program, or the router, unless the chain confirms its record; notes it, and returns the record.
async fn create(
    chain: &Chain,
    account: &Sender,
    name: &str,
    code: &[u8],
    initcode: Bytes,
    deployment: &mut Deployment,
    say: &dyn Fn(&str),
) -> Result<Deployed> {
    let code_hash = keccak256(code);
    let known = deployment.programs.get(name).cloned();
    if let Some(known) = &known {
        let found = chain.endpoints.code(known.address).await?;
        if *found == code {
            say(&format!("{name}: is at {:?}", known.address));
            let deployed = Deployed { code_hash, ..known.clone() };
            deployment.programs.insert(name.to_string(), deployed.clone());
            return Ok(deployed);
        }
        let differs = if found.is_empty() { "nothing is at" } else { "another code than the built one is at" };
        say(&format!("{name}: {differs} {:?}, where the record has it", known.address));
    }
    let creation = Request { input: initcode, ..Request::default() };
    let receipt = chain.send(account, creation).await.with_context(|| format!("cannot create {name}"))?;
    let address = receipt.contract_address.with_context(|| format!("the node names no address for {name}"))?;
    say(&format!("{name}: created at {address:?}, {} bytes, {} gas", code.len(), receipt.gas_used));
    if let Some(replaced) = known.map(|known| known.address).filter(|known| *known != address) {
        deployment.former.insert(replaced);
    }
    let deployed = Deployed { address, code_hash, created_in: receipt.transaction_hash, activated_in: None };
    deployment.programs.insert(name.to_string(), deployed.clone());
    Ok(deployed)
}

/// Activates a program unless it is active, which all programs with the same code are together.
async fn activate(chain: &Chain, account: &Sender, name: &str, address: Address, say: &dyn Fn(&str)) -> Result<Option<B256>> {
    if matches!(Status::of(chain, address).await?, Status::Active { .. }) {
        say(&format!("{name}: is active"));
        return Ok(None);
    }
    let paid = arbwasm::activate(chain, account, name, address).await?;
    say(&format!("{name}: activated, {paid}"));
    Ok(Some(paid.receipt.transaction_hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_by_name() {
        let read = parameters(" drawDelay=0, alphaMilli=3000,").unwrap();
        assert_eq!(read, [("drawDelay".to_string(), U256::ZERO), ("alphaMilli".to_string(), U256::from(3_000))]);
        for (text, words) in
            [("drawDelay", "name=value"), ("delay=1", "there is no parameter delay"), ("tau=fast", "not a whole number")]
        {
            let error = format!("{:#}", parameters(text).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }
}
