//! Muster deployed on an in-process devnode, and the calls the bench makes.

use alloy_primitives::{keccak256, Address, Bytes, TxKind, B256, U256};
use alloy_sol_types::{sol, SolCall, SolEvent, SolInterface};
use anyhow::{bail, ensure, Context, Result};
use muster_devnode::chain::{Clock, History};
use muster_devnode::chain::Config;
use muster_devnode::{Chain, TxRequest};
use muster_storage::IMuster;

/// One token; stakes and fees are multiples of it.
pub const TOKEN: u128 = 1_000_000_000_000_000_000;
const PROGRAMS: [&str; 5] = ["router", "nodes", "tasks", "admin", "lens"];

sol! {
    interface Arb {
        function activateProgram(address program) external payable returns (uint16 version, uint256 dataFee);
        function becomeChainOwner() external;
        function addWasmCacheManager(address manager) external;
        function cacheProgram(address program) external;
    }
}

fn precompile(n: u8) -> Address {
    Address::with_last_byte(n)
}

/// What a call cost and did.
pub struct Done {
    /// Gas charged by the receipt.
    pub gas: u64,
    /// Topics and data of its logs.
    pub logs: Vec<(Vec<B256>, Bytes)>,
}

impl Done {
    /// Events of one kind, decoded.
    pub fn events<E: SolEvent>(&self) -> Vec<E> {
        self.logs
            .iter()
            .filter_map(|(topics, data)| E::decode_raw_log_validate(topics.iter().copied(), data).ok())
            .collect()
    }
}

/// The deployment.
pub struct World {
    chain: Chain,
    /// The public address.
    pub muster: Address,
    programs: Vec<Address>,
    owner: Address,
}

impl World {
    /// Deploys the programs of `build/`.
    pub fn new() -> Result<World> {
        let chain = Chain::new(Config {
            clock: Clock::Manual(1_800_000_000),
            history: History::NONE,
            balance: U256::from(TOKEN) * U256::from(1_000_000_000_000u64),
            base_fee: 1,
            ..Config::default()
        })
        .map_err(anyhow::Error::msg)?;
        chain.impersonate_all(true);
        let owner = chain.accounts()[0];
        let mut world = World { chain, muster: Address::ZERO, programs: Vec::new(), owner };
        for name in PROGRAMS {
            let path = format!("build/{name}.deploy");
            let code = std::fs::read(&path).with_context(|| format!("{path} is missing: run script/build"))?;
            let address = world.create(&code)?;
            let activate = Arb::activateProgramCall { program: address }.abi_encode();
            world.raw(owner, precompile(0x71), TOKEN, activate)?;
            world.programs.push(address);
        }
        world.muster = world.programs[0];
        let of = |program: usize, selectors: Vec<[u8; 4]>| IMuster::Facet {
            facetAddress: world.programs[program],
            functionSelectors: selectors.into_iter().map(Into::into).collect(),
        };
        use IMuster::*;
        let programs = vec![
            of(1, vec![joinCall::SELECTOR, raiseStakeCall::SELECTOR, pauseCall::SELECTOR, resumeCall::SELECTOR, quitCall::SELECTOR,
                reportDownloadedCall::SELECTOR, reportRemovedCall::SELECTOR, purgeCall::SELECTOR, pokeCall::SELECTOR, withdrawCall::SELECTOR]),
            of(2, vec![createTaskCall::SELECTOR, cancelCall::SELECTOR, submitCall::SELECTOR, reportErrorCall::SELECTOR, expireCall::SELECTOR, dispatchCall::SELECTOR]),
            of(3, vec![setParameterCall::SELECTOR]),
            of(4, vec![overviewCall::SELECTOR]),
        ];
        let call = initialiseCall { owner, treasury: owner, granule: 1_000_000_000_000_000, minimumStake: 400 * TOKEN, programs }.abi_encode();
        let install = installCall { program: world.programs[3], call: call.into() };
        world.call(owner, 0, install)?;
        Ok(world)
    }

    fn create(&self, code: &[u8]) -> Result<Address> {
        // Copies what follows these ten bytes into memory and returns it as the code.
        let init = [&[0x61, (code.len() >> 8) as u8, code.len() as u8, 0x80, 0x60, 0x0a, 0x5f, 0x39, 0x5f, 0xf3][..], code].concat();
        let request = TxRequest { from: Some(self.owner), to: Some(TxKind::Create), gas: Some(30_000_000), input: Bytes::from(init).into(), ..TxRequest::default() };
        let mined = self.chain.send(request).context("create")?;
        ensure!(mined.ok(), "a program could not be created: {:?}", mined.outcome);
        mined.outcome.created.context("no address")
    }

    fn raw(&self, from: Address, to: Address, value: u128, data: Vec<u8>) -> Result<Done> {
        let request = TxRequest {
            from: Some(from),
            to: Some(TxKind::Call(to)),
            value: Some(U256::from(value)),
            gas: Some(30_000_000),
            gas_price: Some(1),
            input: Bytes::from(data).into(),
            ..TxRequest::default()
        };
        let mined = self.chain.send(request)?;
        if !mined.ok() {
            bail!("a call was refused: {}", explain(&mined.outcome.output));
        }
        Ok(Done {
            gas: mined.outcome.gas_used,
            logs: mined.outcome.logs.iter().map(|l| (l.topics().to_vec(), l.data.data.clone())).collect(),
        })
    }

    /// Calls Muster.
    pub fn call<C: SolCall>(&self, from: Address, value: u128, call: C) -> Result<Done> {
        self.raw(from, self.muster, value, call.abi_encode())
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

    /// Sets a parameter by name.
    pub fn set(&self, name: &str, value: u64) -> Result<()> {
        let n = muster_storage::admin::PARAMETERS.iter().position(|p| p.name == name).context("no such parameter")?;
        self.call(self.owner, 0, IMuster::setParameterCall { parameter: n as u8, value: U256::from(value) })?;
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
