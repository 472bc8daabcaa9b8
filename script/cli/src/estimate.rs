//! `muster-dev deploy --dry-run`: the transactions of a deployment and their cost, step by step, before anything is sent.
//!
//! Every figure is the node's where it can give one. A program that is not there yet cannot be activated, so [`Probe`] has the node create
//! and activate it in a call that is no transaction, and gives the gas of it. The router's calls cannot be tried before it runs: their cost
//! is computed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use alloy::{
    primitives::{address, utils::format_ether, Address, Bytes, U256},
    sol_types::SolCall,
};
use anyhow::{Context, Result};
use muster_client::{Error, IMuster, Refusal, Request};
use muster_protocol::parameters::PARAMETERS;
use serde_json::{json, Value};

use crate::{
    arbwasm::{self, ArbWasm, Fee, Rules, Status},
    build::Program,
    chain::{called, date, Chain},
    deploy::{self, number_of, Config, Deployment, ADMIN, ROUTER},
    router::{self, bound_initcode, initcode, Progress, Router},
    settings,
    table::table,
};

alloy::sol! {
    function gasEstimateL1Component(address to, bool creation, bytes data) external view returns (uint64 gas, uint256, uint256);
    function allCacheManagers() external view returns (address[] managers);
    function getMinBid(address program) external view returns (uint192 bid);
}

/// Nitro's NodeInterface, which gives the part of a transaction's gas that pays for its data on L1.
const NODE_INTERFACE: Address = address!("00000000000000000000000000000000000000c8");
/// ArbWasmCache, which lists the cache managers.
const ARB_WASM_CACHE: Address = address!("0000000000000000000000000000000000000072");
/// Gas that every transaction costs, and a creation beside it.
const TRANSACTION: u64 = 21_000;
const CREATION: u64 = 32_000;
/// Gas for a byte of an account's code, and for a word of the code that creates it.
const CODE_BYTE: u64 = 200;
const INITCODE_WORD: u64 = 2;
/// Gas for a new word of storage, for a changed one, for reading one, and for looking at an account; each for the first time in its
/// transaction.
const NEW_WORD: u64 = 22_100;
const CHANGED_WORD: u64 = 5_000;
const READ_WORD: u64 = 2_100;
const LOOK: u64 = 2_600;
/// The computation of an initialisation beside its words of storage, for a function of the interface and in all: measured, as the test
/// `the_dry_run_says_what_deploying_costs` checks.
const COMPUTED_EACH: u64 = 560;
const COMPUTED: u64 = 60_000;
/// Words of storage that an initialisation fills beside those of the functions: treasury, rules, terms, limits and the queue's.
const WORDS_AT_FIRST: u64 = 6;
/// The computation of a call of the owner's beside its words of storage.
const COMPUTED_BY_OWNER: u64 = 3_000;
/// Gas of a renewal: docs/deploying.md has a test's measurement.
const RENEWAL: u64 = 90_000;

/// The transactions of a deployment and their cost.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The chain.
    pub chain_id: u64,
    /// The payer.
    pub payer: Address,
    /// The payer's balance, in wei.
    pub balance: U256,
    /// Where the contract is or would be.
    pub address: Address,
    /// The price of one gas now, in wei, and the most that a transaction would offer.
    pub price: (U256, U256),
    /// In the order in which they would be sent; those that are done already among them.
    pub steps: Vec<Step>,
    /// The cost of keeping each program alive for another year.
    pub renewals: Vec<Renewal>,
    /// A sentence about places in the cache.
    pub cache: String,
    /// The obstacles to carrying it out.
    pub missing: Vec<String>,
    /// The chain's rules for programs.
    pub rules: Rules,
    /// The chain's time.
    pub now: u64,
}

/// One transaction, or the reason why none is needed.
#[derive(Clone, Debug)]
pub struct Step {
    /// The step's name.
    pub what: String,
    /// Bytes of code, of a creation.
    pub bytes: Option<usize>,
    /// None if nothing must be sent.
    pub cost: Option<Cost>,
    /// A remark on it.
    pub note: String,
}

/// The cost of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// All gas; none if neither the node nor this can say.
    pub gas: Option<u64>,
    /// The part of it that pays for data on L1.
    pub l1: u64,
    /// Beside gas, in wei.
    pub fee: U256,
    /// Whether the gas is the node's figure.
    pub by_node: bool,
}

impl Cost {
    fn of_node(gas: u64, l1: u64) -> Self {
        Self { gas: Some(gas), l1, fee: U256::ZERO, by_node: true }
    }

    fn computed(gas: u64, l1: u64) -> Self {
        Self { gas: Some(gas + l1), l1, fee: U256::ZERO, by_node: false }
    }

    /// In wei, at a price.
    fn wei(&self, price: U256) -> U256 {
        price * U256::from(self.gas.unwrap_or_default()) + self.fee
    }

    /// The balance that an account must have for it, its fee being `fee` by then: its limit is a fifth above its gas, and more of the fee
    /// is sent than is kept.
    fn demanded(&self, most: U256, fee: U256) -> U256 {
        let gas = self.gas.unwrap_or_default();
        most * U256::from(gas + gas / 5) + arbwasm::with_margin(fee)
    }
}

/// The cost of a year more of a program's life.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// The program.
    pub name: String,
    /// When it expires; of one that is not active yet, if it were activated now.
    pub expires: u64,
    /// Gas.
    pub gas: u64,
    /// In wei, at the present price of machine code; none if the node does not say.
    pub fee: Option<U256>,
}

/// Looks at the chain, and sends nothing.
///
/// # Errors
/// The node's, and when the chain differs from the record. Other missing parts are named in the estimate.
pub async fn estimate(chain: &Chain, payer: Address, config: &Config) -> Result<Estimate> {
    deploy::complete(config)?;
    let balance = chain.endpoints.balance(payer).await?;
    let nonce = chain.endpoints.count(payer).await?;
    let price = chain.gas_price().await?;
    let known = deploy::known(config, chain.id)?;
    let mut found = Estimate {
        chain_id: chain.id,
        payer,
        balance,
        address: Address::ZERO,
        price: (price, price * U256::from(2)),
        steps: Vec::new(),
        renewals: Vec::new(),
        cache: cache(chain, known.as_ref()).await,
        missing: Vec::new(),
        rules: Rules::of(chain).await?,
        now: chain.now().await?,
    };
    let mut planned = Planned { chain, payer, config, known: known.as_ref(), nonce, at: BTreeMap::new(), active: true };
    for program in &config.programs {
        planned.program(program, &mut found).await.with_context(|| program.name.clone())?;
    }
    let code = muster_router::code();
    planned.creation(ROUTER, &code, bound_initcode(&code, payer), &mut found).await?;
    found.address = planned.at[ROUTER];
    planned.wire(&mut found).await?;
    let parameters = config.parameters_on(chain.id).unwrap_or_else(|_| config.parameters.clone());
    found.missing.extend(settings::faults(&config.terms(), &parameters));
    found.missing.extend(deploy::forgetful(chain).await?);
    if found.rules.paused() && found.steps.iter().any(|step| step.what.starts_with(ACTIVATE) && step.cost.is_some()) {
        found.missing.push(arbwasm::paused(chain.id));
    }
    let unknown: Vec<_> = found.steps.iter().filter(|step| step.cost.is_some_and(|cost| cost.gas.is_none())).collect();
    if !unknown.is_empty() {
        let names: Vec<_> = unknown.iter().map(|step| step.what.as_str()).collect();
        found.missing.push(format!("the cost of these is not known: {}", names.join(", ")));
    }
    let needed = found.needed();
    if needed > balance {
        found.missing.push(format!(
            "account {payer:?} has {} ether and needs {}: send it {} at least",
            format_ether(balance),
            format_ether(needed),
            format_ether(needed - balance)
        ));
    }
    Ok(found)
}

impl Estimate {
    /// All gas, all data fees in wei, and both in wei at the present price.
    pub fn total(&self) -> (u64, U256, U256) {
        let costs = || self.steps.iter().filter_map(|step| step.cost);
        let gas = costs().filter_map(|cost| cost.gas).sum();
        let fees = costs().fold(U256::ZERO, |sum, cost| sum + cost.fee);
        (gas, fees, self.price.0 * U256::from(gas) + fees)
    }

    /// The balance that the payer must have at first: before each transaction a node demands its highest possible cost.
    pub fn needed(&self) -> U256 {
        let (mut spent, mut needed, mut before) = (U256::ZERO, U256::ZERO, U256::ZERO);
        for cost in self.steps.iter().filter_map(|step| step.cost) {
            let fee = arbwasm::raised(cost.fee, before);
            needed = needed.max(spent + cost.demanded(self.price.1, fee));
            spent += self.price.0 * U256::from(cost.gas.unwrap_or_default()) + fee;
            before += cost.fee;
        }
        needed
    }

    /// The same for programs: amounts are wei, as decimal strings.
    pub fn json(&self) -> Value {
        let wei = |amount: U256| amount.to_string();
        let steps = self.steps.iter().map(|step| {
            json!({
                "step": step.what,
                "bytes": step.bytes,
                "to_do": step.cost.is_some(),
                "gas": step.cost.and_then(|cost| cost.gas),
                "gas_for_l1": step.cost.map(|cost| cost.l1),
                "estimated_by": step.cost.map(|cost| if cost.by_node { "node" } else { "computed" }),
                "data_fee_wei": step.cost.map(|cost| wei(cost.fee)),
                "wei": step.cost.map(|cost| wei(cost.wei(self.price.0))),
                "note": step.note,
            })
        });
        let renewals = self.renewals.iter().map(|renewal| {
            json!({ "program": renewal.name, "expires": renewal.expires, "gas": renewal.gas, "data_fee_wei": renewal.fee.map(wei) })
        });
        let (gas, fees, all) = self.total();
        json!({
            "chain_id": self.chain_id,
            "payer": self.payer,
            "balance_wei": wei(self.balance),
            "address": self.address,
            "gas_price_wei": wei(self.price.0),
            "steps": steps.collect::<Vec<_>>(),
            "total": { "gas": gas, "data_fee_wei": wei(fees), "wei": wei(all) },
            "needed_wei": wei(self.needed()),
            "renewals": renewals.collect::<Vec<_>>(),
            "cache": self.cache,
            "missing": self.missing,
        })
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "chain {}, paid by {:?}; nothing is sent", self.chain_id, self.payer)?;
        let done = self.steps.iter().all(|step| step.cost.is_none());
        writeln!(f, "Muster {} at {:?}\n", if done { "is" } else { "will be" }, self.address)?;
        let mut shown = table(1, &["step", "bytes", "gas", "of it for L1", "says", "data fee, ether", "ether", ""]);
        for step in &self.steps {
            let bytes = step.bytes.map_or_else(String::new, |bytes| bytes.to_string());
            let [gas, l1, says, fee, all] = match step.cost {
                None => ["-", "", "", "", "0"].map(String::from),
                Some(cost) => [
                    cost.gas.map_or_else(|| "?".into(), |gas| gas.to_string()),
                    cost.l1.to_string(),
                    if cost.by_node { "node" } else { "computed" }.to_string(),
                    if cost.fee.is_zero() { String::new() } else { ether(cost.fee) },
                    ether(cost.wei(self.price.0)),
                ],
            };
            shown.add_row([step.what.clone(), bytes, gas, l1, says, fee, all, step.note.clone()]);
        }
        let (gas, fees, all) = self.total();
        shown.add_row(["together", "", &gas.to_string(), "", "", &ether(fees), &ether(all), ""]);
        if let Some(column) = shown.column_mut(7) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
        writeln!(f, "{shown}")?;
        let mut shown = table(1, &["a year more of", "gas", "data fee, ether", "ether", "due before"]);
        let mut sum = (0, U256::ZERO);
        for renewal in &self.renewals {
            let fee = renewal.fee.unwrap_or_default();
            sum = (sum.0 + renewal.gas, sum.1 + fee);
            let said = renewal.fee.map_or_else(|| "?".into(), ether);
            let all = ether(self.price.0 * U256::from(renewal.gas) + fee);
            shown.add_row([renewal.name.clone(), renewal.gas.to_string(), said, all, date(renewal.expires)]);
        }
        let all = ether(self.price.0 * U256::from(sum.0) + sum.1);
        shown.add_row(["together", &sum.0.to_string(), &ether(sum.1), &all, ""]);
        writeln!(f, "{shown}\n")?;
        writeln!(
            f,
            "A gas is {} wei now, as the node says, and is reckoned at that; transactions offer twice as much at most.",
            self.price.0
        )?;
        writeln!(
            f,
            "The data fee pays for the machine code that nodes keep, by its size as the chain estimates it, each at the price of now. It rises\n\
             with each activation, so that later ones of these cost more, and falls with time. A fifth more is sent, and ArbWasm returns\n\
             what it does not take."
        )?;
        writeln!(
            f,
            "Gas by the node is its estimate, an activation's the gas of a call that left nothing behind. Computed is the gas of calls that\n\
             the router cannot try before it runs. Renewals are gas as docs/deploying.md has it, and data fees at the price of now; they are\n\
             possible {} days after an activation, by script/keepalive. Figures are estimates: a node charges what it then takes.",
            self.rules.keepalive / 86_400
        )?;
        writeln!(f, "{}.", self.cache)?;
        let needed = self.needed();
        if done {
            write!(f, "Nothing is left to send: Muster is at {:?}.", self.address)?;
        } else {
            write!(
                f,
                "The account has {} ether. It must have {} at first, of which it spends about {}.",
                format_ether(self.balance),
                ether(needed),
                ether(self.total().2)
            )?;
        }
        for missing in &self.missing {
            write!(f, "\nmissing: {missing}")?;
        }
        Ok(())
    }
}

const CREATE: &str = "create";
const ACTIVATE: &str = "activate";

/// The state while the steps are gone through.
struct Planned<'a> {
    chain: &'a Chain,
    payer: Address,
    config: &'a Config,
    known: Option<&'a Deployment>,
    /// Of the payer's next transaction.
    nonce: u64,
    /// Where each program is or will be.
    at: BTreeMap<String, Address>,
    /// Whether all programs so far run already.
    active: bool,
}

impl Planned<'_> {
    /// Creation of a program, or of the router.
    async fn creation(&mut self, name: &str, code: &[u8], initcode: Bytes, found: &mut Estimate) -> Result<()> {
        let Self { chain, payer, .. } = *self;
        let there = match self.known.and_then(|known| known.programs.get(name)) {
            Some(known) if deploy::is_there(chain, code, known).await? => Some(known.address),
            _ => None,
        };
        let (what, bytes) = (format!("{CREATE} {name}"), Some(code.len()));
        let address = match there {
            Some(address) => {
                found.steps.push(Step { what, bytes, cost: None, note: format!("is at {address:?}") });
                address
            }
            None => {
                let creation = Request { input: initcode, ..Request::default() };
                let cost = match estimated(chain, payer, &creation).await {
                    Some(cost) => cost,
                    None => {
                        let words = u64::from(name == ROUTER) * NEW_WORD;
                        let gas = creation_gas(&creation.input, code.len()) + words;
                        Cost::computed(gas, on_l1(chain, &creation).await)
                    }
                };
                found.steps.push(Step { what, bytes, cost: Some(cost), note: String::new() });
                let address = payer.create(self.nonce);
                self.nonce += 1;
                address
            }
        };
        self.at.insert(name.to_string(), address);
        Ok(())
    }

    /// Creation and activation of a program.
    async fn program(&mut self, program: &Program, found: &mut Estimate) -> Result<()> {
        self.creation(&program.name, &program.code, initcode(&program.code), found).await?;
        let Self { chain, payer, .. } = *self;
        let what = format!("{ACTIVATE} {}", program.name);
        let probe = Probe { chain, payer, code: &program.code };
        if let Ok(Status::Active { left }) = arbwasm::status(probe.ask::<ArbWasm::programTimeLeftCall>().await?.answer()) {
            let expires = found.now.saturating_add(left);
            found.steps.push(Step { what, bytes: None, cost: None, note: format!("is active until {}", date(expires)) });
            // Bytes that unpack to the same module cost the same.
            let fee = Probe { code: &crate::wasm::compress_otherwise(&program.wasm), ..probe }.activation().await?;
            found.renewals.push(renewal(chain, program, expires, fee.map(|(fee, _)| fee)).await);
            return Ok(());
        }
        self.active = false;
        self.nonce += 1;
        let activation = probe.activation().await?;
        let request = arbwasm::activation(self.at[&program.name]);
        let l1 = on_l1(chain, &request).await;
        let cost = match activation {
            Some((fee, gas)) => {
                Cost { fee, by_node: true, ..Cost::computed(gas + TRANSACTION + calldata_gas(&request.input), l1) }
            }
            None => Cost { gas: None, l1, fee: U256::ZERO, by_node: false },
        };
        found.steps.push(Step { what, bytes: None, cost: Some(cost), note: String::new() });
        let expires = found.now.saturating_add(found.rules.expiry);
        found.renewals.push(renewal(chain, program, expires, activation.map(|(fee, _)| fee)).await);
        Ok(())
    }

    /// The transactions to the router: its initialisation, or changes of its programs; and parameters.
    async fn wire(&mut self, found: &mut Estimate) -> Result<()> {
        let Self { chain, payer, config, .. } = *self;
        let router = Router { chain, address: found.address };
        let programs = self.at.iter().filter(|(name, _)| *name != ROUTER);
        let wanted = router::routes(programs.map(|(name, at)| (name.as_str(), *at)))?;
        let created = found.steps.iter().all(|step| step.what != format!("{CREATE} {ROUTER}") || step.cost.is_none());
        let installed = created && router.initialised().await?;
        let what = "initialise".to_string();
        if installed {
            router.told(&config.terms()).await?;
            found.steps.push(Step { what, bytes: None, cost: None, note: format!("owner {:?}", router.owner().await?) });
            self.changes(&router, &wanted, found).await?;
        } else {
            let install = router::installing(self.at[ADMIN], &config.terms(), &wanted);
            let request = router.muster().request(&install, U256::ZERO);
            let tried = if created && self.active { estimated(chain, payer, &request).await } else { None };
            let cost = match tried {
                Some(cost) => cost,
                None => Cost::computed(self.initialisation_gas(&request.input, &wanted), on_l1(chain, &request).await),
            };
            let note = format!("{} functions", wanted.len());
            found.steps.push(Step { what, bytes: None, cost: Some(cost), note });
        }
        match config.parameters_on(chain.id) {
            Ok(parameters) => self.parameters(&router, installed, &parameters, found).await,
            Err(error) => {
                found.missing.push(format!("{error:#}"));
                Ok(())
            }
        }
    }

    /// Gas to start a program behind the router.
    fn start(&self, behind: &str) -> u64 {
        let program = self.config.programs.iter().find(|program| program.name == behind);
        program.map_or(0, |program| program.shape.start_uncached() + program.shape.memory()) + LOOK
    }

    fn initialisation_gas(&self, data: &Bytes, wanted: &router::Routes) -> u64 {
        let functions = wanted.len() as u64;
        let programs = self.at.len() as u64 - 1;
        // Of each function: which program answers it, its place in the list, and its part of the list, eight to a word.
        let words = WORDS_AT_FIRST + 2 * functions + functions.div_ceil(8) + 1;
        TRANSACTION
            + calldata_gas(data)
            + self.start(ADMIN)
            + CHANGED_WORD
            + words * NEW_WORD
            + programs * LOOK
            + functions * COMPUTED_EACH
            + COMPUTED
    }

    /// Gas of a call of the owner's that fills or changes one word behind the router.
    fn owner_gas(&self, data: &Bytes, word: u64) -> u64 {
        TRANSACTION + calldata_gas(data) + self.start(ADMIN) + 3 * READ_WORD + word + COMPUTED_BY_OWNER
    }

    /// Proposals of other programs, or the calls that put them into effect.
    async fn changes(&self, router: &Router<'_>, wanted: &router::Routes, found: &mut Estimate) -> Result<()> {
        let Self { payer, known, .. } = *self;
        let own = known.iter().flat_map(|known| known.programs.values()).map(|program| program.address);
        let former = known.iter().flat_map(|known| known.former.iter().copied());
        let all: BTreeSet<Address> = own.chain(former).chain(self.at.values().copied()).collect();
        let owner = router.owner().await?;
        let changes = router.progress(payer, router.changes(wanted, &all).await?).await?;
        let due = changes.iter().all(|(_, progress)| *progress == Progress::Due);
        for ((program, selectors), progress) in &changes {
            let (count, program) = (selectors.len(), *program);
            let selectors = router::words(selectors);
            let (function, data, note) = match progress.waits(&changes) {
                Some(_) if due => {
                    let accept = IMuster::acceptProgramsCall { program, selectors };
                    ("acceptPrograms", accept.abi_encode(), format!("to {program:?}"))
                }
                Some(once) => {
                    let (what, note) = (format!("acceptPrograms, {count} functions"), format!("to {program:?} {once}"));
                    found.steps.push(Step { what, bytes: None, cost: None, note });
                    continue;
                }
                None => {
                    let delay = self.config.upgrade_delay;
                    let propose = IMuster::proposeProgramsCall { program, selectors };
                    ("proposePrograms", propose.abi_encode(), format!("to {program:?}; a run {delay} s later carries it out"))
                }
            };
            let what = format!("{function}, {count} functions");
            let missing = *progress == Progress::Missing;
            let word = if missing { NEW_WORD } else { count as u64 * CHANGED_WORD };
            let owner = (missing && owner != payer).then_some(owner);
            self.call(Call { what, data: data.into(), word, owner, note }, found).await;
        }
        Ok(())
    }

    /// Values that are to be set or proposed.
    async fn parameters(
        &self,
        router: &Router<'_>,
        installed: bool,
        parameters: &[(String, U256)],
        found: &mut Estimate,
    ) -> Result<()> {
        let Self { payer, config, .. } = *self;
        let owner = if installed { router.owner().await? } else { config.owner };
        for (name, value) in parameters {
            let (parameter, value) = (number_of(name)?, *value);
            let delayed = PARAMETERS[usize::from(parameter)].delayed();
            if installed {
                let now = router.muster().parameter(parameter).await.map_err(called::<IMuster::parameterCall>)?;
                if now == value {
                    found.steps.push(Step { what: name.clone(), bytes: None, cost: None, note: format!("is {value}") });
                    continue;
                }
                if delayed {
                    let next = router.proposed_parameter(parameter).await?;
                    if let Some(at) = next.filter(|(next, _)| *next == value).map(|(_, at)| at) {
                        let (what, note) = (name.clone(), format!("{value} is proposed; from {} on a run sets it", date(at)));
                        if at > found.now {
                            found.steps.push(Step { what, bytes: None, cost: None, note });
                        } else {
                            let data = IMuster::acceptParameterCall { parameter }.abi_encode().into();
                            let what = format!("acceptParameter {name}");
                            let (word, note) = (2 * CHANGED_WORD, value.to_string());
                            self.call(Call { what, data, word, owner: None, note }, found).await;
                        }
                        continue;
                    }
                }
                if !self.known.is_some_and(|known| known.unset.contains(name)) {
                    let note = deploy::set_later(name, now, value);
                    found.steps.push(Step { what: name.clone(), bytes: None, cost: None, note });
                    continue;
                }
            }
            let (function, data, word) = if delayed {
                ("proposeParameter", IMuster::proposeParameterCall { parameter, value }.abi_encode(), NEW_WORD)
            } else {
                ("setParameter", IMuster::setParameterCall { parameter, value }.abi_encode(), CHANGED_WORD)
            };
            let note = if delayed { format!("{value}; a later run carries it out") } else { value.to_string() };
            let what = format!("{function} {name}");
            let owner = (owner != payer).then_some(owner);
            self.call(Call { what, data: data.into(), word, owner, note }, found).await;
        }
        Ok(())
    }

    /// A call once the router runs.
    async fn call(&self, call: Call, found: &mut Estimate) {
        let Call { what, data, word, owner, note } = call;
        let (mut cost, mut note) = (None, note);
        if let Some(owner) = owner {
            note = format!("the owner's to send, {owner:?}, who also pays; {note}");
        } else {
            let request = Request { to: found.address.into(), input: data, ..Request::default() };
            let tried = if self.active { estimated(self.chain, self.payer, &request).await } else { None };
            let l1 = on_l1(self.chain, &request).await;
            cost = Some(tried.unwrap_or_else(|| Cost::computed(self.owner_gas(&request.input, word), l1)));
        }
        found.steps.push(Step { what, bytes: None, cost, note });
    }
}

/// A call of the router's.
struct Call {
    what: String,
    data: Bytes,
    /// Gas of the words that it writes.
    word: u64,
    /// The account that must send it, if the payer cannot.
    owner: Option<Address>,
    note: String,
}

async fn renewal(chain: &Chain, program: &Program, expires: u64, fee: Option<U256>) -> Renewal {
    let call = Request { to: arbwasm::ARB_WASM.into(), input: vec![0xff; 36].into(), ..Request::default() };
    Renewal { name: program.name.clone(), expires, gas: RENEWAL + on_l1(chain, &call).await, fee }
}

/// The node's own estimate; none if it refuses to give one.
async fn estimated(chain: &Chain, from: Address, request: &Request) -> Option<Cost> {
    let gas = chain.endpoints.gas(from, request).await.ok()?;
    Some(Cost::of_node(gas, on_l1(chain, request).await))
}

/// Gas that pays for a transaction's data on L1; nothing where the node does not say.
async fn on_l1(chain: &Chain, request: &Request) -> u64 {
    let (to, creation) = (request.to.into_to().unwrap_or_default(), request.to.is_create());
    let call = gasEstimateL1ComponentCall { to, creation, data: request.input.clone() };
    ask(chain, NODE_INTERFACE, &call).await.map_or(0, |answer| answer.gas)
}

/// The answer of some contract of the chain's; none if there is no such contract, or it refuses.
async fn ask<C: SolCall>(chain: &Chain, to: Address, call: &C) -> Option<C::Return> {
    let request = Request { to: to.into(), input: call.abi_encode().into(), ..Request::default() };
    C::abi_decode_returns(&chain.endpoints.call(None, &request).await.ok()?).ok()
}

/// A sentence about places in the cache.
async fn cache(chain: &Chain, known: Option<&Deployment>) -> String {
    const NONE: &str = "script/deploy bids for no place in the cache, and needs none";
    let managers = ask(chain, ARB_WASM_CACHE, &allCacheManagersCall {}).await.unwrap_or_default();
    let Some(manager) = managers.into_iter().next() else {
        return format!("{NONE}; the chain has no cache manager");
    };
    let mut most = None;
    for (_, program) in known.iter().flat_map(|known| known.behind()) {
        let bid = ask(chain, manager, &getMinBidCall { program: program.address }).await;
        most = most.max(bid.map(U256::from));
    }
    let bids = most.map_or_else(
        || "names its least bid once programs are active".to_string(),
        |most| format!("takes a bid of {} ether now for any of them", ether(most)),
    );
    format!("{NONE}; the chain's manager, {manager:?}, {bids}")
}

/// In ether, to a hundred-millionth, rounded up.
fn ether(wei: U256) -> String {
    let unit = U256::from(10_000_000_000u64);
    let text = format_ether(wei.div_ceil(unit) * unit);
    text[..text.len() - 10].to_string()
}

fn calldata_gas(data: &Bytes) -> u64 {
    data.iter().map(|byte| if *byte == 0 { 4 } else { 16 }).sum()
}

fn creation_gas(initcode: &Bytes, code: usize) -> u64 {
    TRANSACTION
        + CREATION
        + calldata_gas(initcode)
        + INITCODE_WORD * (initcode.len() as u64).div_ceil(32)
        + CODE_BYTE * code as u64
        // Copying it into memory, and the memory.
        + 6 * (code as u64).div_ceil(32)
}

/// Has a node create a program and call ArbWasm about it, in a call that leaves nothing behind. The code creates the program, calls, and
/// returns whether that succeeded, how much gas it took, and the answer. It works from any account, also from one without ether.
#[derive(Clone, Copy)]
struct Probe<'a> {
    chain: &'a Chain,
    payer: Address,
    code: &'a [u8],
}

/// The outcome of a [`Probe`].
struct Probed {
    succeeded: bool,
    gas: u64,
    data: Bytes,
}

impl Probed {
    fn answer(self) -> Result<Bytes, Error> {
        if self.succeeded {
            Ok(self.data)
        } else {
            Err(Error::Refused(Box::new(Refusal::decode(&self.data))))
        }
    }
}

impl Probe<'_> {
    /// A method of ArbWasm's that takes a program's address.
    async fn ask<C: SolCall>(&self) -> Result<Probed> {
        let request = Request { input: probing(&initcode(self.code), C::SELECTOR), ..Request::default() };
        let answer = self.chain.endpoints.call(Some(self.payer), &request).await?;
        let word = |at: usize| answer.get(at * 32..at * 32 + 32).map(U256::from_be_slice);
        let (succeeded, gas) = word(0).zip(word(1)).context("the node does not run code that is to create a program")?;
        Ok(Probed { succeeded: !succeeded.is_zero(), gas: gas.saturating_to(), data: answer.slice(64..) })
    }

    /// The data fee of an activation, and its gas; none if the node refuses to activate it.
    async fn activation(&self) -> Result<Option<(U256, u64)>> {
        // Without value: ArbWasm then demands the fee, and it has done all the work before.
        let probed = self.ask::<ArbWasm::activateProgramCall>().await?;
        let gas = probed.gas + arbwasm::AFTER_FEE;
        Ok(match arbwasm::fee(probed.answer()) {
            Ok(Fee::Demanded(fee)) => Some((fee, gas)),
            Ok(Fee::Nothing) => Some((U256::ZERO, gas)),
            Err(_) => None,
        })
    }
}

/// The code of a [`Probe`].
fn probing(initcode: &Bytes, selector: [u8; 4]) -> Bytes {
    const CODECOPY: u8 = 0x39;
    const CREATE: u8 = 0xf0;
    const HEAD: usize = 70;
    let three = |number: usize| [(number >> 16) as u8, (number >> 8) as u8, number as u8];
    let length = three(initcode.len());
    let mut code = Vec::new();
    // codecopy(0, HEAD, length); create(0, 0, length)
    code.extend([0x62, length[0], length[1], length[2], 0x60, HEAD as u8, 0x60, 0, CODECOPY]);
    code.extend([0x62, length[0], length[1], length[2], 0x60, 0, 0x60, 0, CREATE]);
    // mstore(0, selector << 224); mstore(4, the created address)
    code.push(0x63);
    code.extend(selector);
    code.extend([0x60, 0xe0, 0x1b, 0x60, 0, 0x52, 0x60, 4, 0x52]);
    // gas; call(gas, ArbWasm, 0, 0, 36, 0, 0); gas
    code.extend([0x5a, 0x60, 0, 0x60, 0, 0x60, 0x24, 0x60, 0, 0x60, 0, 0x60, 0x71, 0x5a, 0xf1, 0x5a]);
    // mstore(0, succeeded); mstore(32, gas before - gas after)
    code.extend([0x90, 0x60, 0, 0x52, 0x90, 0x03, 0x60, 0x20, 0x52]);
    // returndatacopy(64, 0, size); return(0, 64 + size)
    code.extend([0x3d, 0x60, 0, 0x60, 0x40, 0x3e, 0x3d, 0x60, 0x40, 0x01, 0x60, 0, 0xf3]);
    debug_assert_eq!(code.len(), HEAD);
    code.extend(initcode.iter());
    code.into()
}
