//! A chain of one block after the other for the tests of the execution half.

use alloy_primitives::{keccak256, Address, Bytes, B256, U256};
use alloy_sol_types::{sol, SolCall};
use muster_devnode::evm::{BlockCtx, Config, Evm, Outcome, Status, TxCtx, BATCH_POSTER};
use muster_devnode::state::State;
use muster_devnode::stylus::deployed_code;

use super::program::wasm;

pub const ARB_WASM: Address = Address::with_last_byte(0x71);
pub const ARB_WASM_CACHE: Address = Address::with_last_byte(0x72);
pub const ARB_OWNER: Address = Address::with_last_byte(0x70);
pub const ARB_DEBUG: Address = Address::with_last_byte(0xff);
pub const ARB_SYS: Address = Address::with_last_byte(0x64);
/// Sends the transactions.
pub const ALICE: Address = Address::repeat_byte(0xa1);
pub const BASE_FEE: u128 = 100_000_000;

sol! {
    function activateProgram(address program) external payable returns (uint16 version, uint256 dataFee);
    function becomeChainOwner() external;
    function cacheProgram(address addr) external;
}

pub struct Chain {
    pub evm: Evm,
    pub state: State,
    pub number: u64,
    pub l1_number: u64,
    pub time: u64,
    pub hashes: Vec<(u64, B256)>,
}

impl Chain {
    pub fn new() -> Self {
        Self::of_version(61)
    }

    pub fn of_version(arbos: u64) -> Self {
        let evm = Evm::new(Config { arbos, ..Config::default() }).expect("a known version");
        let state = evm.genesis(&[(ALICE, U256::from(10).pow(U256::from(24)))]);
        let mut chain = Self { evm, state, number: 1, l1_number: 1000, time: 1_790_000_000, hashes: vec![] };
        chain.hashes.push((0, keccak256(0u64.to_be_bytes())));
        chain
    }

    /// Ends the block.
    pub fn mine(&mut self) {
        self.hashes.push((self.number, keccak256(self.number.to_be_bytes())));
        self.number += 1;
        self.time += 1;
    }

    pub fn tx(&self, to: Option<Address>, data: impl Into<Bytes>) -> TxCtx {
        TxCtx {
            caller: ALICE,
            to,
            data: data.into(),
            gas_limit: 32_000_000,
            gas_price: BASE_FEE,
            nonce: Some(self.state.nonce(ALICE)),
            ..TxCtx::default()
        }
    }

    /// The current block. The hashes come from outside, so that the state can change meanwhile.
    pub fn block<'h>(&self, recent_hashes: &'h [(u64, B256)]) -> BlockCtx<'h> {
        BlockCtx {
            l2_number: self.number,
            l1_number: self.l1_number,
            timestamp: self.time,
            base_fee: BASE_FEE,
            gas_limit: 1 << 50,
            coinbase: BATCH_POSTER,
            prevrandao: B256::with_last_byte(1),
            recent_hashes,
            moved_precompiles: &[],
        }
    }

    /// Runs a transaction in the current block.
    pub fn run(&mut self, tx: &TxCtx) -> Outcome {
        let hashes = self.hashes.clone();
        let block = self.block(&hashes);
        self.evm.transact(&mut self.state, &block, tx).expect("a valid transaction")
    }

    /// Runs a transaction in a block of its own.
    pub fn send(&mut self, to: Address, data: impl Into<Bytes>) -> Outcome {
        let tx = self.tx(Some(to), data);
        let outcome = self.run(&tx);
        self.mine();
        outcome
    }

    /// Deploys code as it is to be.
    pub fn deploy(&mut self, code: &[u8]) -> Address {
        let tx = self.tx(None, init_code(code));
        let outcome = self.run(&tx);
        self.mine();
        assert_eq!(outcome.status, Status::Success, "deploying");
        outcome.created.expect("an address")
    }

    pub fn deploy_wasm(&mut self, wasm: &[u8]) -> Address {
        self.deploy(&deployed_code(wasm))
    }

    /// Activates with one ether for the data fee.
    pub fn activate(&mut self, program: Address) -> Outcome {
        let mut tx = self.tx(Some(ARB_WASM), activateProgramCall { program }.abi_encode());
        tx.value = U256::from(10).pow(U256::from(18));
        let outcome = self.run(&tx);
        self.mine();
        outcome
    }

    /// Deploys and activates a program.
    pub fn program(&mut self, wat: &str) -> Address {
        let wasm = wasm(wat);
        let address = self.deploy_wasm(&wasm);
        let outcome = self.activate(address);
        assert_eq!(outcome.status, Status::Success, "activating: {outcome:?}");
        address
    }

    /// Caches a program through ArbWasmCache, as a chain owner.
    pub fn cache(&mut self, program: Address) {
        let outcome = self.send(ARB_DEBUG, becomeChainOwnerCall {}.abi_encode());
        assert_eq!(outcome.status, Status::Success);
        let outcome = self.send(ARB_WASM_CACHE, cacheProgramCall { addr: program }.abi_encode());
        assert_eq!(outcome.status, Status::Success);
    }
}

/// The outcome of a transaction that must succeed.
#[track_caller]
pub fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.status, Status::Success, "{outcome:?}");
    outcome
}

/// Init code that returns the code after it.
pub fn init_code(code: &[u8]) -> Vec<u8> {
    let len = u16::try_from(code.len()).expect("short code").to_be_bytes();
    // PUSH2 len, DUP1, PUSH1 11, PUSH0, CODECOPY, PUSH0, RETURN
    let mut init = vec![0x61, len[0], len[1], 0x80, 0x60, 0x0a, 0x5f, 0x39, 0x5f, 0xf3];
    init.extend_from_slice(code);
    init
}
