//! Muster deployed on an in-process devnode, and calls that are measured.

use crate::beside::{Beside, Logs};
use crate::breakdown::{Layout, Parts};
use crate::points::Met;
use alloy_primitives::{keccak256, Address, Bytes, TxKind, U256};
use alloy_sol_types::{sol, SolCall, SolEvent, SolInterface};
use anyhow::{anyhow, bail, ensure, Context, Result};
use muster_core::record::{Head, Profile, Scores, TargetSearch};
use muster_core::word::Packed;
use muster_core::word::Word;
use muster_devnode::chain::{Clock, Config, History};
use muster_devnode::evm::Status;
use muster_devnode::{Chain, TxRequest};
use muster_protocol::flow::gas::CALL_GAS;
use muster_protocol::layout::{node, profile, HEAD, NODES, PROFILES};
use muster_protocol::native::solidity_slot;
use muster_protocol::programs::PROGRAMS;
use muster_protocol::IMuster;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};

/// One token; stakes and fees are multiples of it.
pub const TOKEN: u128 = 1_000_000_000_000_000_000;
/// The program that initialises it.
const ADMIN: &str = "admin";

sol! {
    /// Precompiles that activate programs and keep them cached.
    interface Arb {
        function activateProgram(address program) external payable returns (uint16 version, uint256 dataFee);
        function becomeChainOwner() external;
        function addWasmCacheManager(address manager) external;
        function cacheProgram(address program) external;
    }
}

/// The address of a precompile.
pub fn precompile(n: u8) -> Address {
    Address::with_last_byte(n)
}

/// The cost and the effects of a call.
pub struct Done {
    gas: Option<u64>,
    /// The least that any contract would pay for the same change, if it was asked for (see [`World::floor_on`]).
    pub floor: Option<u64>,
    /// The parts of its gas, in a world that traces calls.
    pub parts: Option<Parts>,
    /// The call and its conditions, if its gas is pictured.
    pub met: Option<Met>,
    logs: Logs,
}

impl Done {
    /// Gas charged by the receipt of a call on the chain.
    pub fn gas(&self) -> u64 {
        self.gas.expect("what is measured is sent to the chain")
    }

    /// The cost of one of `parts` that some calls did together, rounded up; without logs.
    pub fn part_of(calls: &[Done], parts: u64) -> Done {
        let sum = |gas: &dyn Fn(&Done) -> Option<u64>| calls.iter().map(gas).sum::<Option<u64>>().map(|sum| sum.div_ceil(parts));
        Done { gas: sum(&|d| d.gas), floor: sum(&|d| d.floor), parts: None, met: None, logs: Logs(Vec::new()) }
    }

    /// Events of one kind, decoded.
    pub fn events<E: SolEvent>(&self) -> Vec<E> {
        let Logs(logs) = &self.logs;
        logs.iter()
            .filter(|(topics, _)| topics.first() == Some(&E::SIGNATURE_HASH))
            .filter_map(|(topics, data)| E::decode_raw_log_validate(topics.iter().copied(), data).ok())
            .collect()
    }

    /// The task that was started first, and its node.
    pub fn started(&self) -> Option<IMuster::TaskStarted> {
        self.events().into_iter().next()
    }
}

/// The deployment.
pub struct World {
    chain: Chain,
    muster: Address,
    programs: Vec<Address>,
    owner: Address,
    floor: Cell<bool>,
    /// The names of words, where every call is taken apart.
    layout: Option<Layout>,
    /// How many models the tasks require that were created on the chain.
    models: RefCell<HashMap<u64, u32>>,
    /// Where calls go instead of to the chain.
    beside: RefCell<Option<Beside>>,
}

/// The gas limit of calls that are not Muster's, or that choose themselves how much they do.
const MOST_GAS: u64 = 30_000_000;

/// The gas limit that a call is sent with: hardly more than the least at which it is not refused, as an estimate finds it. So every
/// measured call also shows that the gas it demands at its start suffices.
fn least_limit(data: &[u8]) -> u64 {
    use IMuster::{dispatchCall, revealCall, settleCall};
    let Some(selector) = data.first_chunk::<4>() else { return MOST_GAS };
    let demanded = match *selector {
        // A caller that asks for many draws chooses how much gas it brings for them.
        dispatchCall::SELECTOR if dispatchCall::abi_decode(data).is_ok_and(|call| call.count != 1) => 0,
        revealCall::SELECTOR if revealCall::abi_decode(data).is_ok_and(|call| call.group > 0) => CALL_GAS,
        settleCall::SELECTOR => CALL_GAS,
        selector => PROGRAMS.iter().flat_map(|(_, all)| *all).find(|f| f.selector == selector).map_or(0, |f| f.floor),
    };
    if demanded == 0 {
        return MOST_GAS;
    }
    let calldata: u64 = data.iter().map(|&byte| if byte == 0 { 4 } else { 16 }).sum();
    // The router hands on all but a 64th, and it and the program's start take some.
    21_000 + calldata + demanded * 64 / 63 + 30_000
}

impl World {
    /// Deploys the programs of `build/`.
    pub fn new() -> Result<World> {
        Self::with(History::NONE)
    }

    /// The same, with the parts of each call's gas.
    pub fn traced() -> Result<World> {
        // A call is traced on the state before it.
        let mut world = Self::with(History { blocks: 4, states: 4 })?;
        world.layout = Some(Layout::read()?);
        Ok(world)
    }

    fn with(history: History) -> Result<World> {
        let chain = Chain::new(Config {
            clock: Clock::Manual(1_800_000_000),
            history,
            balance: U256::from(TOKEN) * U256::from(1_000_000_000_000u64),
            base_fee: 1,
            ..Config::default()
        })
        .map_err(anyhow::Error::msg)?;
        chain.impersonate_all(true);
        let owner = chain.accounts()[0];
        let mut world = World {
            chain,
            muster: Address::ZERO,
            programs: Vec::new(),
            owner,
            floor: Cell::new(false),
            layout: None,
            models: RefCell::default(),
            beside: RefCell::new(None),
        };
        for (name, _) in PROGRAMS {
            let path = format!("build/{name}.deploy");
            let code = std::fs::read(&path).with_context(|| format!("{path} is missing: run script/build"))?;
            let address = world.create(&code, false)?;
            let activate = Arb::activateProgramCall { program: address }.abi_encode();
            world.raw(owner, precompile(0x71), TOKEN, activate)?;
            world.programs.push(address);
        }
        world.muster = world.create(&muster_router::code(), true)?;
        let behind = PROGRAMS.iter().zip(&world.programs);
        let (_, &admin) = behind.clone().find(|((name, _), _)| *name == ADMIN).context("no program initialises")?;
        let programs = behind.map(|((_, functions), &program)| IMuster::Facet {
            facetAddress: program,
            functionSelectors: functions
                .iter()
                .map(|f| f.selector)
                .filter(|s| *s != IMuster::initialiseCall::SELECTOR)
                .map(Into::into)
                .collect(),
        });
        let call = IMuster::initialiseCall {
            owner,
            treasury: owner,
            stakeUnit: 1_000_000_000_000_000,
            minimumStake: 400 * TOKEN,
            upgradeDelay: 604_800,
            programs: programs.collect(),
        }
        .abi_encode();
        let install = IMuster::installCall { program: admin, call: call.into() };
        world.call(owner, 0, install)?;
        Ok(world)
    }

    fn create(&self, code: &[u8], router: bool) -> Result<Address> {
        // The router first stores the account that may install it, in slot 4.
        let bound = if router { [&[0x73][..], self.owner.as_slice(), &[0x60, 4, 0x55]].concat() } else { Vec::new() };
        // Copies the code behind it into memory and returns it as the code.
        let copy =
            [0x61, (code.len() >> 8) as u8, code.len() as u8, 0x80, 0x60, bound.len() as u8 + 0x0a, 0x5f, 0x39, 0x5f, 0xf3];
        let init = [&bound[..], &copy, code].concat();
        let request = TxRequest {
            from: Some(self.owner),
            to: Some(TxKind::Create),
            gas: Some(MOST_GAS),
            input: Bytes::from(init).into(),
            ..TxRequest::default()
        };
        let mined = self.chain.send(request).context("create")?;
        ensure!(mined.ok(), "a program could not be created: {:?}", mined.outcome);
        mined.outcome.created.context("no address")
    }

    fn request(from: Address, to: Address, value: u128, data: Vec<u8>) -> TxRequest {
        TxRequest {
            from: Some(from),
            to: Some(TxKind::Call(to)),
            value: Some(U256::from(value)),
            gas: Some(least_limit(&data)),
            gas_price: Some(1),
            input: Bytes::from(data).into(),
            ..TxRequest::default()
        }
    }

    fn raw(&self, from: Address, to: Address, value: u128, data: Vec<u8>) -> Result<Done> {
        let before = self.floor.get().then(|| (self.chain.state(), data.clone()));
        let head = self.chain.state().storage(self.muster, U256::from(HEAD));
        let calldata = data.clone();
        let mined = self.chain.send(Self::request(from, to, value, data))?;
        if !mined.ok() {
            bail!("a call was refused: {}", explain(&mined.outcome.output));
        }
        let logs: Vec<_> = mined.outcome.logs.iter().map(|l| (l.topics().to_vec(), l.data.data.clone())).collect();
        let floor = before.map(|(state, data)| {
            let after = self.chain.state();
            let calldata: u64 = data.iter().map(|&b| if b == 0 { 4 } else { 16 }).sum();
            let events: u64 = logs.iter().map(|(topics, data)| 375 * (1 + topics.len() as u64) + 8 * data.len() as u64).sum();
            let words: u64 = after
                .storage_iter(self.muster)
                .map(|(slot, value)| match state.storage(self.muster, slot) {
                    old if old == value => 0,
                    old if old.is_zero() => 22_100,
                    _ => 5_000,
                })
                .sum();
            21_000 + calldata + words + events
        });
        let traced = self.layout.as_ref().filter(|_| to == self.muster);
        let parts = traced.map(|layout| Parts::of(&self.chain, mined.hash, layout)).transpose()?;
        let mut done = Done { gas: Some(mined.outcome.gas_used), floor, parts, met: None, logs: Logs(logs) };
        if to == self.muster {
            done.met = self.met(&calldata, &done, &Head::unpack(Word(head.into_limbs())));
        }
        Ok(done)
    }

    /// The call and its conditions, of those that are pictured; none where a task was not created on the chain.
    fn met(&self, calldata: &[u8], done: &Done, head: &Head) -> Option<Met> {
        use IMuster::*;
        let call = match *calldata.first_chunk::<4>()? {
            createTaskCall::SELECTOR => "createTask",
            dispatchCall::SELECTOR if dispatchCall::abi_decode(calldata).ok()?.count == 1 => "dispatch",
            submitCall::SELECTOR => "submit",
            _ => return None,
        };
        let mut known = self.models.borrow_mut();
        if call == "createTask" {
            let spec = createTaskCall::abi_decode(calldata).ok()?.spec;
            known.extend(done.events::<TaskCreated>().iter().map(|task| (task.id, spec.models.len() as u32)));
        }
        let ids = done.events::<TaskCreated>().into_iter().map(|task| task.id);
        let ids = ids.chain(done.events::<TaskStarted>().into_iter().map(|task| task.id));
        let ids = ids.chain(done.events::<TaskSucceeded>().into_iter().map(|task| task.id));
        let models: Option<Vec<u32>> = ids.map(|id| known.get(&id).copied()).collect();
        let models = models?.into_iter().max()?;
        Some(Met { call: call.into(), adversary: false, models, queued: head.queued, nodes: head.joined })
    }

    /// Whether calls work out their floor: 21,000, calldata, the words of Muster's storage that end up different (5,000 each; 22,100 one
    /// that was zero), and events. Words that are only read, and any computing, are free in it.
    pub fn floor_on(&self, on: bool) {
        self.floor.set(on);
    }

    /// Calls Muster, in a block of its own.
    pub fn call<C: SolCall>(&self, from: Address, value: u128, call: C) -> Result<Done> {
        match self.beside.borrow_mut().as_mut() {
            Some(beside) => Ok(Done { gas: None, floor: None, parts: None, met: None, logs: beside.call(from, value, call)? }),
            None => self.raw(from, self.muster, value, call.abi_encode()),
        }
    }

    /// Lets so many blocks pass in which nothing happens.
    pub fn blocks(&self, n: u64) -> Result<()> {
        self.chain.mine(n, 0).map_err(|e| anyhow!("{e:?}"))
    }

    /// Reads.
    pub fn view<C: SolCall>(&self, call: C) -> Result<C::Return> {
        if let Some(beside) = self.beside.borrow_mut().as_mut() {
            return beside.view(call);
        }
        // As part of the next block, like the transaction that may follow.
        let request = Self::request(self.owner, self.muster, 0, call.abi_encode());
        let outcome = self.chain.call_pending(&request)?;
        ensure!(outcome.status == Status::Success, "a call was refused: {}", explain(&outcome.output));
        Ok(C::abi_decode_returns(&outcome.output)?)
    }

    // ------------------------------------------------------------ beside the chain

    /// From now on calls go to a copy of Muster's storage in memory.
    pub fn leave_chain(&self) {
        let words = self.chain.state();
        let words = words.storage_iter(self.muster).map(|(slot, value)| (Word(slot.into_limbs()), Word(value.into_limbs())));
        let beside = Beside::new(words, self.chain.next_timestamp(), self.chain.head().header.number + 1);
        self.beside.replace(Some(beside));
    }

    /// Writes the changes of the copy to the chain; calls go to the chain again. Nothing may wait for a block: the chain has not come so
    /// far.
    pub fn return_to_chain(&self) -> Result<()> {
        let Some(beside) = self.beside.take() else { return Ok(()) };
        for (slot, word) in beside.written() {
            self.chain.set_storage(self.muster, U256::from_limbs(slot.0), U256::from_limbs(word.0));
        }
        let balance = self.chain.state().balance(self.muster) + U256::from(beside.paid_in);
        self.chain.set_balance(self.muster, balance);
        ensure!(self.view(IMuster::overviewCall {})?.pending == 0, "tasks were left Pending beside the chain");
        Ok(())
    }

    /// All words of Muster's storage that are not zero.
    pub fn words(&self) -> BTreeMap<U256, U256> {
        self.chain.state().storage_iter(self.muster).collect()
    }

    /// The n-th account of a kind, funded.
    pub fn account(&self, kind: u8, n: u32) -> Address {
        let mut seed = [kind; 5];
        seed[1..].copy_from_slice(&n.to_be_bytes());
        let address = Address::from_slice(&keccak256(seed)[12..]);
        self.chain.set_balance(address, U256::from(TOKEN) * U256::from(10_000_000_000u64));
        address
    }

    /// Puts all programs into the cache, as a cache manager would.
    pub fn cache(&self) -> Result<()> {
        let _ = self.raw(self.owner, precompile(0xff), 0, Arb::becomeChainOwnerCall {}.abi_encode())?;
        self.raw(self.owner, precompile(0x70), 0, Arb::addWasmCacheManagerCall { manager: self.owner }.abi_encode())?;
        for &program in &self.programs {
            self.raw(self.owner, precompile(0x72), 0, Arb::cacheProgramCall { program }.abi_encode())?;
        }
        Ok(())
    }

    /// The owner calls Muster.
    pub fn owner_calls<C: SolCall>(&self, call: C) -> Result<Done> {
        self.call(self.owner, 0, call)
    }

    /// Sets a parameter by name.
    pub fn set(&self, name: &str, value: u64) -> Result<()> {
        let n = muster_protocol::parameters::number_of(name).context("no such parameter")?;
        self.call(self.owner, 0, IMuster::setParameterCall { parameter: n, value: U256::from(value) })?;
        Ok(())
    }

    /// Gives all nodes up to `last` different ratings, that of the first the lowest.
    pub fn rate(&self, last: u32) {
        for number in 1..=last {
            let at = U256::from_limbs(solidity_slot(NODES, Word::from(number as u64)).0) + U256::from(node::SCORES);
            let scores = Scores { judged: 60, right: (60 * number / last) as u8, ..Scores::default() };
            self.chain.set_storage(self.muster, at, U256::from_limbs(scores.pack().0));
        }
    }

    /// Writes the words of an ended task of eight models to the nodes up to this one: words that are not zero.
    pub fn use_up(&self, last: u32) {
        for number in 1..=last {
            let at = U256::from_limbs(solidity_slot(NODES, Word::from(number as u64)).0);
            for word in [node::ESCROW, node::ORDER, node::IN_USE, node::IN_USE + 1, node::ASSIGNMENT] {
                let slot = at + U256::from(word);
                if self.chain.state().storage(self.muster, slot).is_zero() {
                    self.chain.set_storage(self.muster, slot, U256::from(1) << 240);
                }
            }
        }
    }

    /// Writes that an application's groups have come to the end of a period: every third without a majority.
    pub fn end_period(&self, application: Address) {
        let slot = U256::from_limbs(solidity_slot(PROFILES, Word::from(application.into_array())).0);
        let slot = slot + U256::from(profile::TARGET_SEARCH);
        let (groups, per) = (Profile::PERIOD_LEAST, 5);
        let climb = TargetSearch { groups, successes: groups / 3 * 2, members: groups * per, ..TargetSearch::START };
        self.chain.set_storage(self.muster, slot, U256::from_limbs(climb.pack().0));
    }

    /// Lets time pass.
    pub fn pass(&self, seconds: u64) -> Result<()> {
        if let Some(beside) = self.beside.borrow_mut().as_mut() {
            beside.pass(seconds);
        }
        self.chain.increase_time(seconds).map_err(|e| anyhow!("{e:?}"))?;
        Ok(())
    }

    /// Remembers the state.
    pub fn snapshot(&self) -> u64 {
        self.chain.snapshot()
    }

    /// Goes back to a remembered state.
    pub fn revert(&self, id: u64) {
        assert!(self.chain.revert(id), "the snapshot was taken before");
    }
}

/// An error in words.
fn explain(data: &[u8]) -> String {
    match IMuster::IMusterErrors::abi_decode_validate(data) {
        Ok(e) => format!("{e:?}"),
        Err(_) => format!("{:?}", Bytes::copy_from_slice(data)),
    }
}
