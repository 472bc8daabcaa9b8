//! Puts the programs on a chain: creates, activates and wires them, skipping whatever is there already.
//!
//! What has been done is kept in `deployments/<chain id>.json`, written after every step, and believed only as far
//! as the chain confirms it: a program counts as created if the code at its address has the hash of what was built.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, bail, ensure, Context, Result};
use ethers::{
    abi::{self, ParamType, Token},
    providers::{Http, Middleware, Provider},
    signers::LocalWallet,
    types::{Address, Bytes, H256, U256},
    utils::{format_ether, id, keccak256},
};
use muster_storage::admin::PARAMETERS;
use serde::{Deserialize, Serialize};

use crate::{
    build::{self, Program},
    chain::{Account, Chain, Outgoing, Reverted},
    contract::{interface, Muster},
};

/// The precompile that activates programs.
const ARB_WASM: Address = ethers::types::H160([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x71]);
/// Activation gas above this means that the chain's owner has paused activations: no transaction may use as much.
const PAUSED_ABOVE: u64 = 30_000_000;
/// Percent added to the data fee, which may rise before the transaction is included; ArbWasm returns the rest.
const FEE_MARGIN: u64 = 20;

/// The program that users call.
const ROUTER: &str = "router";
/// The program that holds `initialise`.
const ADMIN: &str = "admin";
/// Most selectors in one `setProgram`.
const SELECTORS_AT_ONCE: usize = 64;

/// What is to be deployed, and how.
#[derive(Clone)]
pub struct Config {
    /// Will own the contract; not necessarily who deploys it.
    pub owner: Address,
    /// Receives protocol income.
    pub treasury: Address,
    /// Stakes are whole multiples of this many wei.
    pub granule: u64,
    /// In wei.
    pub minimum_stake: u128,
    /// Parameters that are to differ from their defaults, by name.
    pub parameters: Vec<(String, U256)>,
    /// The compiled programs.
    pub programs: Vec<Program>,
    /// The compiler of the programs, for the record.
    pub rustc: String,
    /// Where to keep what has been done; without it nothing is kept, and everything is deployed anew.
    pub file: Option<PathBuf>,
    /// Told what is being done.
    pub say: fn(&str),
}

impl Config {
    /// Reads OWNER, TREASURY, MIN_STAKE, STAKE_GRANULE and PARAMETERS from the environment, and the programs from
    /// `build/`. Owner and treasury default to `account`.
    ///
    /// # Errors
    /// When a variable cannot be read, or nothing is built.
    pub fn from_environment(root: &Path, account: Address) -> Result<Self> {
        let (manifest, programs) = build::load(root)?;
        let address = |name: &str| match variable(name) {
            Some(text) => text.parse().map_err(|_| anyhow!("{name} is {text}, which is not an address")),
            None => Ok(account),
        };
        let minimum_stake = match variable("MIN_STAKE") {
            Some(text) => ethers::utils::parse_ether(&text)
                .ok()
                .and_then(|wei| u128::try_from(wei).ok())
                .with_context(|| format!("MIN_STAKE is {text}, which is not an amount of ether"))?,
            None => 400_000_000_000_000_000_000,
        };
        let granule = match variable("STAKE_GRANULE") {
            Some(text) => text.parse().map_err(|_| anyhow!("STAKE_GRANULE is {text}, which is not a number of wei"))?,
            None => 1_000_000_000_000,
        };
        let parameters = match variable("PARAMETERS") {
            Some(text) => parameters(&text)?,
            None => Vec::new(),
        };
        Ok(Self {
            owner: address("OWNER")?,
            treasury: address("TREASURY")?,
            granule,
            minimum_stake,
            parameters,
            programs,
            rustc: manifest.rustc,
            file: None,
            say: |_| {},
        })
    }
}

/// Where the record of what is deployed on a chain is kept: `deployments/`, or the directory that DEPLOYMENTS names.
pub fn record(root: &Path, chain_id: u64) -> PathBuf {
    let dir = variable("DEPLOYMENTS").map_or_else(|| root.join("deployments"), PathBuf::from);
    dir.join(format!("{chain_id}.json"))
}

/// A variable that is set to something.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|text| text.trim().to_string()).filter(|text| !text.is_empty())
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
            let value = U256::from_dec_str(value)
                .map_err(|_| anyhow!("PARAMETERS sets {name} to {value:?}, which is not a whole number"))?;
            Ok((name.to_string(), value))
        })
        .collect()
}

fn number_of(name: &str) -> Result<u8> {
    let at = PARAMETERS.iter().position(|parameter| parameter.name == name).with_context(|| {
        let names: Vec<_> = PARAMETERS.iter().map(|parameter| parameter.name).collect();
        format!("there is no parameter {name}; there are: {}", names.join(", "))
    })?;
    Ok(at as u8)
}

/// What is on a chain.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Deployment {
    /// The chain.
    pub chain_id: u64,
    /// The one public address.
    pub address: Address,
    /// Who deployed it.
    pub deployer: Address,
    /// As it was set at first.
    pub owner: Address,
    /// As it was set at first.
    pub treasury: Address,
    /// In wei.
    pub granule: u64,
    /// In wei, in decimal: it can be larger than what JSON's readers take.
    pub minimum_stake: String,
    /// By name, the router included.
    pub programs: BTreeMap<String, Deployed>,
    /// The transaction that initialised it; none as long as it is not usable.
    pub installed_in: Option<H256>,
    /// The compiler of the programs.
    pub rustc: String,
    /// The commit they were built from, with a `+` if files had been changed since.
    pub commit: Option<String>,
}

/// One program on chain.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Deployed {
    /// Where it is.
    pub address: Address,
    /// Keccak-256 of the code there.
    pub code_hash: H256,
    /// The transaction that created it.
    pub created_in: H256,
    /// The transaction that activated it; none if a program with the same code was active already.
    pub activated_in: Option<H256>,
}

/// Deploys whatever is missing, and returns what is there then.
///
/// # Errors
/// Says which step failed, and why. What had been done until then is in [`Config::file`], and another run goes on
/// from there.
pub async fn deploy(provider: Provider<Http>, signer: LocalWallet, config: Config) -> Result<Deployment> {
    let url = provider.url().to_string();
    let chain = Chain::with(provider, &url).await?;
    let mut account = Account::new(&chain, signer);
    on(&chain, &mut account, &config).await
}

/// The same on a chain that is connected already.
pub async fn on(chain: &Chain, account: &mut Account, config: &Config) -> Result<Deployment> {
    let say = config.say;
    let balance = chain.provider.get_balance(account.address(), None).await.map_err(|error| chain.trouble(&error))?;
    say(&format!(
        "chain {} at {}, account {:?} with {} ether",
        chain.id,
        chain.url,
        account.address(),
        format_ether(balance)
    ));
    ensure!(
        !balance.is_zero(),
        "account {:?} has no ether on chain {}: send it some, then run this again",
        account.address(),
        chain.id
    );
    for name in [ROUTER, ADMIN] {
        ensure!(
            config.programs.iter().any(|program| program.name == name),
            "build/ holds no program {name}: run script/build again"
        );
    }

    let known = match &config.file {
        Some(file) => read(file)?.filter(|known| known.chain_id == chain.id),
        None => None,
    };
    let mut deployment = known.unwrap_or_else(|| Deployment {
        chain_id: chain.id,
        address: Address::zero(),
        deployer: account.address(),
        owner: config.owner,
        treasury: config.treasury,
        granule: config.granule,
        minimum_stake: config.minimum_stake.to_string(),
        programs: BTreeMap::new(),
        installed_in: None,
        rustc: String::new(),
        commit: None,
    });
    deployment.rustc = config.rustc.clone();
    deployment.commit = commit();

    for program in &config.programs {
        let known = deployment.programs.get(&program.name);
        let mut deployed = create(chain, account, program, known, &say).await?;
        if program.name == ROUTER && deployment.address != deployed.address {
            if deployment.installed_in.take().is_some() {
                say("the router is a new one: what an earlier one holds stays there, under its own address");
            }
            deployment.address = deployed.address;
            deployment.owner = config.owner;
            deployment.treasury = config.treasury;
            deployment.granule = config.granule;
            deployment.minimum_stake = config.minimum_stake.to_string();
        }
        deployment.programs.insert(program.name.clone(), deployed.clone());
        keep(config, &deployment)?;
        let activated = activate(chain, account, &program.name, deployed.address, &say).await?;
        deployed.activated_in = activated.or(deployed.activated_in);
        deployment.programs.insert(program.name.clone(), deployed);
        keep(config, &deployment)?;
    }

    wire(chain, account, config, &mut deployment).await?;
    keep(config, &deployment)?;
    set_parameters(chain, account, config, &deployment).await?;
    say(&format!("Muster is at {:?} on chain {}", deployment.address, chain.id));
    Ok(deployment)
}

/// Initialises the router, or lets its selectors lead to the programs that are there now.
async fn wire(chain: &Chain, account: &mut Account, config: &Config, deployment: &mut Deployment) -> Result<()> {
    let say = config.say;
    let muster = Muster { address: deployment.address };
    let mut wanted: BTreeMap<[u8; 4], Address> = BTreeMap::new();
    for (name, program) in deployment.programs.iter().filter(|(name, _)| *name != ROUTER) {
        for selector in answered(chain, program.address).await? {
            if let Some(other) = wanted.insert(selector, program.address) {
                bail!("both {other:?} and {:?} ({name}) answer {}", program.address, Bytes::from(selector));
            }
        }
    }
    for function in interface().functions().filter(|function| !ONLY_AT_FIRST.contains(&function.name.as_str())) {
        ensure!(wanted.contains_key(&function.short_signature()), "no program answers {}", function.signature());
    }

    let there = match muster.call(chain, "facets", &[]).await {
        Ok(values) => Some(facets(&values)?),
        Err(_) => None,
    };
    let Some(there) = there else {
        let programs: Vec<Token> = deployment
            .programs
            .values()
            .filter_map(|program| {
                let selectors = selectors_of(&wanted, program.address);
                (!selectors.is_empty())
                    .then(|| Token::Tuple(vec![Token::Address(program.address), Token::Array(selectors)]))
            })
            .collect();
        let initialise = muster.encode(
            "initialise",
            &[
                Token::Address(config.owner),
                Token::Address(config.treasury),
                Token::Uint(config.granule.into()),
                Token::Uint(config.minimum_stake.into()),
                Token::Array(programs),
            ],
        )?;
        let receipt = muster
            .send(
                chain,
                account,
                "install",
                &[Token::Address(deployment.programs[ADMIN].address), Token::Bytes(initialise.to_vec())],
                U256::zero(),
                None,
            )
            .await
            .context("cannot initialise the router")?;
        deployment.installed_in = Some(receipt.transaction_hash);
        // Anyone could have been faster between the router's creation and here.
        let owner = muster.call(chain, "owner", &[]).await?.remove(0).into_address();
        ensure!(
            owner == Some(config.owner),
            "someone else has initialised the router at {:?}: remove {} and run this again",
            muster.address,
            file_name(config)
        );
        say(&format!(
            "router: initialised, {} functions, owner {:?}, {} gas",
            wanted.len(),
            config.owner,
            receipt.gas_used.unwrap_or_default()
        ));
        return Ok(());
    };

    let mut changes: BTreeMap<Address, Vec<Token>> = BTreeMap::new();
    for (selector, program) in wanted.iter().filter(|(selector, program)| there.get(*selector) != Some(program)) {
        changes.entry(*program).or_default().push(Token::FixedBytes(selector.to_vec()));
    }
    for selector in there.keys().filter(|selector| !wanted.contains_key(*selector)) {
        changes.entry(Address::zero()).or_default().push(Token::FixedBytes(selector.to_vec()));
    }
    if changes.is_empty() {
        say(&format!("router: {} functions lead where they should", wanted.len()));
        return Ok(());
    }
    let owner = muster.call(chain, "owner", &[]).await?.remove(0).into_address().unwrap_or_default();
    for (program, selectors) in changes {
        for selectors in selectors.chunks(SELECTORS_AT_ONCE) {
            let arguments = [Token::Address(program), Token::Array(selectors.to_vec())];
            if owner == account.address() {
                muster
                    .send(chain, account, "setProgram", &arguments, U256::zero(), None)
                    .await
                    .context("cannot change the router's programs")?;
                say(&format!("router: {} functions now lead to {program:?}", selectors.len()));
            } else {
                say(&format!(
                    "router: its owner {owner:?} has to send to {:?}, to let {} functions lead to {program:?}: {}",
                    muster.address,
                    selectors.len(),
                    muster.encode("setProgram", &arguments)?
                ));
            }
        }
    }
    Ok(())
}

/// Functions that the router refuses once it is initialised.
const ONLY_AT_FIRST: [&str; 2] = ["install", "initialise"];

/// The selectors that the program at `address` answers. It is asked directly: with no arguments it refuses what it
/// knows in one way or another, and what it does not know with `UnknownFunction`.
async fn answered(chain: &Chain, address: Address) -> Result<Vec<[u8; 4]>> {
    let unknown = id("UnknownFunction(bytes4)");
    let mut found = Vec::new();
    for function in interface().functions().filter(|function| !ONLY_AT_FIRST.contains(&function.name.as_str())) {
        let selector = function.short_signature();
        match chain.call(None, address, U256::zero(), selector.to_vec()).await {
            Ok(_) => found.push(selector),
            Err(error) => match error.downcast_ref::<Reverted>() {
                Some(reverted) if reverted.data.get(..4) == Some(&unknown) => {}
                Some(_) => found.push(selector),
                None => return Err(error),
            },
        }
    }
    Ok(found)
}

fn selectors_of(wanted: &BTreeMap<[u8; 4], Address>, program: Address) -> Vec<Token> {
    wanted.iter().filter(|(_, at)| **at == program).map(|(selector, _)| Token::FixedBytes(selector.to_vec())).collect()
}

/// What `facets()` returns, the other way round.
fn facets(values: &[Token]) -> Result<BTreeMap<[u8; 4], Address>> {
    let mut map = BTreeMap::new();
    let list = values.first().and_then(|value| value.clone().into_array()).context("facets() returned no list")?;
    for facet in list {
        let Some([program, selectors]) = facet.into_tuple().and_then(|parts| <[Token; 2]>::try_from(parts).ok()) else {
            bail!("facets() returned something else than programs and selectors");
        };
        let program = program.into_address().unwrap_or_default();
        for selector in selectors.into_array().unwrap_or_default() {
            let selector = selector.into_fixed_bytes().unwrap_or_default();
            map.insert(
                selector.try_into().map_err(|_| anyhow!("facets() returned a selector that has not four bytes"))?,
                program,
            );
        }
    }
    Ok(map)
}

async fn set_parameters(chain: &Chain, account: &mut Account, config: &Config, deployment: &Deployment) -> Result<()> {
    let muster = Muster { address: deployment.address };
    for (name, value) in &config.parameters {
        let number = Token::Uint(number_of(name)?.into());
        let now = muster.call(chain, "parameter", std::slice::from_ref(&number)).await?.remove(0).into_uint();
        if now == Some(*value) {
            (config.say)(&format!("{name} is {value}"));
            continue;
        }
        let owner = muster.call(chain, "owner", &[]).await?.remove(0).into_address().unwrap_or_default();
        ensure!(
            owner == account.address(),
            "only the owner {owner:?} can set {name} to {value}; this account is {:?}",
            account.address()
        );
        muster
            .send(chain, account, "setParameter", &[number, Token::Uint(*value)], U256::zero(), None)
            .await
            .with_context(|| format!("cannot set {name} to {value}"))?;
        (config.say)(&format!("{name} set to {value}"));
    }
    Ok(())
}

/// What [`Config::file`] of an earlier run says, if there was one.
pub fn read(file: &Path) -> Result<Option<Deployment>> {
    match fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .with_context(|| format!("{} is not what an earlier run wrote: mend or remove it", file.display())),
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
    config.file.as_ref().map_or("what was kept of it".into(), |file| file.display().to_string())
}

fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let out = std::process::Command::new("git").args(arguments).output().ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_string())
    };
    let head = git(&["rev-parse", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { head } else { head + "+" })
}

/// The code that, run by a creating transaction, returns `code`: 42 bytes of EVM instructions and a zero byte for
/// their version, in the layout that Stylus tools expect to find.
pub fn initcode(code: &[u8]) -> Bytes {
    const PRELUDE: u8 = 43;
    let mut out = vec![0x7f];
    let mut length = [0; 32];
    U256::from(code.len()).to_big_endian(&mut length);
    out.extend(length);
    // dup1, push1 PRELUDE, push1 0, codecopy, push1 0, return
    out.extend([0x80, 0x60, PRELUDE, 0x60, 0, 0x39, 0x60, 0, 0xf3, 0]);
    debug_assert_eq!(out.len(), PRELUDE as usize);
    out.extend(code);
    out.into()
}

/// Calldata of a precompile's method with one static argument or none.
fn calldata(signature: &str, arguments: &[Token]) -> Bytes {
    [&id(signature)[..], &abi::encode(arguments)].concat().into()
}

/// Creates a program and returns what is known of it, or takes `known` if the chain confirms it.
async fn create(
    chain: &Chain,
    account: &mut Account,
    program: &Program,
    known: Option<&Deployed>,
    say: &dyn Fn(&str),
) -> Result<Deployed> {
    let code_hash = H256(keccak256(&program.code));
    if let Some(known) = known {
        let there = chain.provider.get_code(known.address, None).await.map_err(|error| chain.trouble(&error))?;
        if keccak256(&there) == code_hash.0 {
            say(&format!("{}: is at {:?}", program.name, known.address));
            return Ok(Deployed { code_hash, ..known.clone() });
        }
        say(&format!("{}: what is at {:?} is not what was built", program.name, known.address));
    }
    let receipt = account
        .send(chain, Outgoing { data: initcode(&program.code), ..Default::default() })
        .await
        .with_context(|| format!("cannot create {}", program.name))?;
    let address =
        receipt.contract_address.with_context(|| format!("the node names no address for {}", program.name))?;
    say(&format!(
        "{}: created at {address:?}, {} bytes, {} gas",
        program.name,
        program.code.len(),
        receipt.gas_used.unwrap_or_default()
    ));
    Ok(Deployed { address, code_hash, created_in: receipt.transaction_hash, activated_in: None })
}

/// Creates and activates one program beside a deployment; what it answers is up to the router's owner.
///
/// # Errors
/// As for [`deploy`].
pub async fn single(chain: &Chain, account: &mut Account, name: &str, code: &[u8]) -> Result<Address> {
    let receipt = account
        .send(chain, Outgoing { data: initcode(code), ..Default::default() })
        .await
        .with_context(|| format!("cannot create {name}"))?;
    let address = receipt.contract_address.with_context(|| format!("the node names no address for {name}"))?;
    activate(chain, account, name, address, &|_| {}).await?;
    Ok(address)
}

/// Activates a program unless it is active, which all programs with the same code are together.
async fn activate(
    chain: &Chain,
    account: &mut Account,
    name: &str,
    address: Address,
    say: &dyn Fn(&str),
) -> Result<Option<H256>> {
    let number = |data: Bytes| U256::from_big_endian(data.get(..32).unwrap_or_default());
    let current = chain
        .call(None, ARB_WASM, U256::zero(), calldata("stylusVersion()", &[]))
        .await
        .map(number)
        .map_err(|error| anyhow!("chain {} has no Stylus (ArbWasm does not answer: {error:#})", chain.id))?;
    ensure!(!current.is_zero(), "chain {} has no Stylus: there is nothing at ArbWasm's address", chain.id);
    let program = calldata("programVersion(address)", &[Token::Address(address)]);
    if chain.call(None, ARB_WASM, U256::zero(), program).await.is_ok_and(|version| number(version) == current) {
        say(&format!("{name}: is active"));
        return Ok(None);
    }

    // Not every chain has it; where it is missing nothing is paused.
    let extra = chain
        .call(None, ARB_WASM, U256::zero(), calldata("activationGas()", &[]))
        .await
        .map(number)
        .unwrap_or_default();
    ensure!(extra <= PAUSED_ABOVE.into(), "{}", paused(chain.id));

    // Asked with all the account has, because the call fails below the fee.
    let balance = chain.provider.get_balance(account.address(), None).await.map_err(|error| chain.trouble(&error))?;
    let data = calldata("activateProgram(address)", &[Token::Address(address)]);
    let spare = balance / 2;
    let answer = chain
        .call(Some(account.address()), ARB_WASM, spare, data.clone())
        .await
        .map_err(|error| refused(chain, name, spare, error))?;
    let fee = abi::decode(&[ParamType::Uint(16), ParamType::Uint(256)], &answer)
        .ok()
        .and_then(|values| values[1].clone().into_uint())
        .with_context(|| format!("ArbWasm's answer on the data fee of {name} cannot be read: {answer}"))?;
    let value = fee + fee * FEE_MARGIN / 100;
    let receipt = account
        .send(chain, Outgoing { to: Some(ARB_WASM), value, data, gas: None })
        .await
        .map_err(|error| refused(chain, name, value, error))?;
    say(&format!(
        "{name}: activated, {} gas and {} ether of data fee (sent {}, the rest came back)",
        receipt.gas_used.unwrap_or_default(),
        format_ether(fee),
        format_ether(value)
    ));
    Ok(Some(receipt.transaction_hash))
}

fn paused(chain_id: u64) -> String {
    format!(
        "activations are paused on chain {chain_id}. On Arbitrum One and Nova new Stylus programs have been refused since \
         2 October 2026; Arbitrum Sepolia and chains of one's own accept them"
    )
}

/// Why an activation failed, by ArbWasm's errors.
fn refused(chain: &Chain, name: &str, value: U256, error: anyhow::Error) -> anyhow::Error {
    let Some(reverted) = error.downcast_ref::<Reverted>() else {
        return error.context(format!("cannot activate {name}"));
    };
    let is = |signature: &str| reverted.data.get(..4).is_some_and(|selector| *selector == id(signature));
    if is("ProgramInsufficientValue(uint256,uint256)") {
        let want = U256::from_big_endian(reverted.data.get(36..68).unwrap_or_default());
        anyhow!(
            "activating {name} costs {} ether of data fee; the account can spare {}",
            format_ether(want),
            format_ether(value)
        )
    } else if reverted.data.is_empty() && matches!(chain.id, 42161 | 42170) {
        anyhow!(paused(chain.id))
    } else {
        error.context(format!("ArbWasm refuses to activate {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initcode_copies_what_follows_it() {
        let code = initcode(&[0xef, 0xf0, 0, 0, 1]);
        let (prelude, rest) = code.split_at(43);
        assert_eq!(rest, [0xef, 0xf0, 0, 0, 1]);
        assert_eq!(
            (prelude[0], prelude[32], &prelude[33..]),
            (0x7f, 5, &[0x80, 0x60, 43, 0x60, 0, 0x39, 0x60, 0, 0xf3, 0][..])
        );
    }

    #[test]
    fn parameters_are_read_by_name() {
        let read = parameters(" drawDelay=0, alphaMilli=3000,").unwrap();
        assert_eq!(read, [("drawDelay".to_string(), 0.into()), ("alphaMilli".to_string(), 3_000.into())]);
        for (text, words) in [
            ("drawDelay", "name=value"),
            ("delay=1", "there is no parameter delay"),
            ("tau=fast", "not a whole number"),
        ] {
            let error = format!("{:#}", parameters(text).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }
}
