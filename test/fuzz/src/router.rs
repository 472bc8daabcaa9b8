//! Bytes as calls of the router's code, run by the EVM before small contracts in the programs' place, and compared with the answers that
//! its page gives.

use crate::bytes::Bytes;
use crate::calls::put_word;
use alloy_primitives::{keccak256, Address, B256, U256};
use alloy_sol_types::{SolCall, SolError};
use muster_core::record::Ownership;
use muster_core::word::Packed;
use muster_devnode::evm::{BlockCtx, Config, Evm, Status, TxCtx, BATCH_POSTER};
use muster_devnode::state::State;
use muster_protocol::layout::{OWNERSHIP, PROGRAMS};
use muster_protocol::IMuster::*;

const ROUTER: Address = Address::repeat_byte(0x01);
const PROGRAM: Address = Address::repeat_byte(0x02);
const DEPLOYER: Address = Address::repeat_byte(0x0d);
const OTHER: Address = Address::repeat_byte(0x0e);
/// Selectors that lead to the program; the second also where half of it is missing.
const KNOWN: [[u8; 4]; 2] = [[0xba, 0xdb, 0xad, 0xba], [0xca, 0xfe, 0, 0]];

/// The behaviour of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Echo,
    Revert,
    Nothing,
    Trap,
    Missing,
}

const ALL: [Does; 5] = [Does::Echo, Does::Revert, Does::Nothing, Does::Trap, Does::Missing];

impl Does {
    fn code(self) -> &'static [u8] {
        match self {
            // Its calldata, then its caller and the value.
            Does::Echo => &[
                0x36, 0x5f, 0x5f, 0x37, 0x33, 0x36, 0x52, 0x34, 0x36, 0x60, 0x20, 0x01, 0x52, 0x36, 0x60, 0x40, 0x01, 0x5f, 0xf3,
            ],
            // Its calldata.
            Does::Revert => &[0x36, 0x5f, 0x5f, 0x37, 0x36, 0x5f, 0xfd],
            Does::Nothing => &[0],
            Does::Trap => &[0xfe],
            Does::Missing => &[],
        }
    }
}

/// A router before programs, initialised or not.
fn state(evm: &Evm, does: Does, fresh: bool) -> State {
    let mut state = evm.genesis(&[(DEPLOYER, U256::MAX >> 1), (OTHER, U256::MAX >> 1)]);
    state.set_code(ROUTER, muster_router::code().into());
    state.set_code(PROGRAM, does.code().into());
    for selector in KNOWN {
        let mut key = [0; 64];
        key[..4].copy_from_slice(&selector);
        key[63] = PROGRAMS;
        // Other bits of the word are no part of the address.
        state.set_storage(ROUTER, keccak256(key).into(), U256::from_be_slice(PROGRAM.as_slice()) | U256::MAX << 160);
    }
    let owner = Ownership { owner: DEPLOYER.into_array(), stake_unit: u64::from(!fresh), ..Ownership::default() };
    state.set_storage(ROUTER, U256::from(OWNERSHIP), U256::from_be_bytes(owner.pack().to_be_bytes()));
    state
}

struct Call<'a> {
    does: Does,
    fresh: bool,
    caller: Address,
    value: U256,
    data: &'a [u8],
}

impl Call<'_> {
    /// The router's answer for a program's answer to this.
    fn answer(&self, selector: [u8; 4], program: Address, call: &[u8]) -> Result<Vec<u8>, Vec<u8>> {
        let failed = Err(ProgramFailed { selector: selector.into(), program }.abi_encode());
        match if program == PROGRAM { self.does } else { Does::Missing } {
            Does::Echo => Ok([call, self.caller.into_word().as_slice(), &self.value.to_be_bytes::<32>()].concat()),
            Does::Revert if call.is_empty() => failed,
            Does::Revert => Err(call.to_vec()),
            Does::Nothing => Ok(Vec::new()),
            Does::Trap => failed,
            Does::Missing => Err(NoCode { program }.abi_encode()),
        }
    }

    /// The expected answer; none where that is another program's matter.
    fn expected(&self) -> Option<Result<Vec<u8>, Vec<u8>>> {
        let word = |at: usize| {
            let mut word = [0; 32];
            let there = self.data.get(at..).unwrap_or_default();
            let length = there.len().min(32);
            word[..length].copy_from_slice(&there[..length]);
            U256::from_be_bytes(word)
        };
        let selector: [u8; 4] = word(0).to_be_bytes::<32>()[..4].try_into().expect("four bytes");
        if KNOWN.contains(&selector) {
            return Some(self.answer(selector, PROGRAM, self.data));
        }
        let malformed = Some(Err(MalformedCalldata { selector: selector.into() }.abi_encode()));
        if self.data.len() < 4 {
            return Some(Err(MalformedCalldata { selector: [0; 4].into() }.abi_encode()));
        }
        if selector != installCall::SELECTOR {
            return Some(Err(UnknownFunction { selector: selector.into() }.abi_encode()));
        }
        if !self.value.is_zero() {
            return Some(Err(ValueNotAccepted { value: self.value }.abi_encode()));
        }
        let end = U256::from(self.data.len());
        let (program, offset): (U256, U256) = (word(4), word(36));
        if self.data.len() < 68
            || !(program >> 160usize).is_zero()
            || offset > U256::from(u32::MAX)
            || offset + U256::from(36) > end
        {
            return malformed;
        }
        let start = offset.to::<usize>() + 36;
        let length = word(start - 32);
        if length > U256::from(u32::MAX) || length + U256::from(start) > end {
            return malformed;
        }
        if !self.fresh {
            return Some(Err(AlreadyInitialised {}.abi_encode()));
        }
        if self.caller != DEPLOYER {
            return Some(Err(NotOwner { caller: self.caller }.abi_encode()));
        }
        let program = Address::from_word(B256::from(program));
        // Precompiles, and the router itself.
        let others = program.as_slice()[..18].iter().all(|byte| *byte == 0) || program == ROUTER;
        (!others).then(|| self.answer(selector, program, &self.data[start..start + length.to::<usize>()]))
    }
}

/// Panics where the router answers otherwise.
pub fn run(data: &[u8]) {
    thread_local!(static EVM: (Evm, Vec<State>) = {
        let evm = Evm::new(Config::default()).expect("a known version");
        let states = ALL.iter().flat_map(|does| [true, false].map(|fresh| state(&evm, *does, fresh))).collect();
        (evm, states)
    });
    let mut b = Bytes(data);
    let (does, fresh) = (b.below(5) as usize, b.below(8) > 0);
    let caller = if b.below(4) == 1 { OTHER } else { DEPLOYER };
    let value = U256::from([0, 0, 1, u64::MAX][b.below(4) as usize]);
    let mut data = match b.below(4) {
        0 => KNOWN[b.below(2) as usize][..b.below(5) as usize].to_vec(),
        1 => KNOWN[0].to_vec(),
        2 => installCall::SELECTOR.to_vec(),
        _ => b.take(4).to_vec(),
    };
    let seen = [PROGRAM.into_word(), ROUTER.into_word(), OTHER.into_word()];
    while !b.is_empty() && put_word(&mut b, &mut data, &seen) {}
    let call = Call { does: ALL[does], fresh, caller, value, data: &data };
    let Some(expected) = call.expected() else { return };
    EVM.with(|(evm, states)| {
        let block = BlockCtx {
            l2_number: 1,
            l1_number: 1_000,
            timestamp: 1_790_000_000,
            gas_limit: 1 << 50,
            coinbase: BATCH_POSTER,
            ..BlockCtx::default()
        };
        let tx = TxCtx {
            caller,
            to: Some(ROUTER),
            value,
            data: data.clone().into(),
            gas_limit: 30_000_000,
            is_call: true,
            ..TxCtx::default()
        };
        let outcome = evm.call(&states[2 * does + usize::from(!fresh)], &block, &tx).expect("a valid call");
        let given = if outcome.status == Status::Success { Ok(outcome.output.to_vec()) } else { Err(outcome.output.to_vec()) };
        assert_eq!(given, expected);
    });
}
