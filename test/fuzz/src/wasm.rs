//! Bytes as programs: deployed as they are, or compressed as WASM is, activated, and run where they can be.

use crate::bytes::Bytes;
use alloy_primitives::{Address, B256, U256};
use alloy_sol_types::{sol, SolCall};
use muster_devnode::evm::{BlockCtx, Config, Evm, Outcome, Status, TraceRequest, TxCtx, BATCH_POSTER};
use muster_devnode::state::State;
use muster_devnode::stylus::deployed_code;
use muster_devnode::trace::StepOptions;

sol! {
    function activateProgram(address program) external payable returns (uint16 version, uint256 dataFee);
}

const ALICE: Address = Address::repeat_byte(0xa1);
const PROGRAM: Address = Address::repeat_byte(0x55);
const ARB_WASM: Address = Address::with_last_byte(0x71);
const BASE_FEE: u128 = 100_000_000;
/// Gas of a run.
const GAS: u64 = 1_000_000;

const TRACES: [TraceRequest; 6] = [
    TraceRequest::Nothing,
    TraceRequest::Calls,
    TraceRequest::Steps(StepOptions { stack: true, memory: true, storage: true, return_data: true, limit: 0 }),
    TraceRequest::Hostios,
    TraceRequest::Accessed,
    TraceRequest::Profile,
];

fn transact(evm: &Evm, state: &mut State, tx: &TxCtx) -> Outcome {
    let block = BlockCtx {
        l2_number: 1,
        l1_number: 1_000,
        timestamp: 1_790_000_000,
        base_fee: BASE_FEE,
        gas_limit: 1 << 50,
        coinbase: BATCH_POSTER,
        prevrandao: B256::with_last_byte(1),
        recent_hashes: &[],
        moved_precompiles: &[],
    };
    let outcome = evm.transact(state, &block, tx).expect("a valid transaction");
    assert!((21_000..=tx.gas_limit).contains(&outcome.gas_used), "{outcome:?}");
    outcome
}

/// Panics where a program does more than be refused or run, or runs otherwise when it is traced.
pub fn run(data: &[u8]) {
    thread_local!(static EVM: (Evm, State) = {
        let evm = Evm::new(Config::default()).expect("a known version");
        let state = evm.genesis(&[(ALICE, U256::from(10).pow(U256::from(24)))]);
        (evm, state)
    });
    EVM.with(|(evm, start)| {
        let mut b = Bytes(data);
        let (how, arguments) = (b.byte(), b.byte());
        let mut state = start.clone();
        let code = if how & 1 == 1 { b.0.to_vec() } else { deployed_code(b.0) };
        state.set_code(PROGRAM, code.into());
        let tx = |to, data: Vec<u8>, gas_limit, nonce| TxCtx {
            caller: ALICE,
            to: Some(to),
            data: data.into(),
            gas_limit,
            gas_price: BASE_FEE,
            nonce: Some(nonce),
            ..TxCtx::default()
        };
        let mut activates = tx(ARB_WASM, activateProgramCall { program: PROGRAM }.abi_encode(), 32_000_000, 0);
        activates.value = U256::from(10).pow(U256::from(18));
        if transact(evm, &mut state, &activates).status != Status::Success {
            return;
        }
        let mut runs = tx(PROGRAM, vec![arguments; usize::from(arguments & 0x3f)], GAS, 1);
        let plain = transact(evm, &mut state.clone(), &runs);
        runs.trace = TRACES[usize::from(how >> 1) % TRACES.len()];
        let traced = transact(evm, &mut state, &runs);
        assert_eq!((plain.status, plain.output, plain.gas_used), (traced.status, traced.output, traced.gas_used));
        assert_eq!((plain.logs, plain.stylus), (traced.logs, traced.stylus));
    });
}
