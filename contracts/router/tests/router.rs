//! The router's code, run by the EVM, before small contracts in the programs' place.

use alloy_primitives::{keccak256, Address, Bytes, B256, U256};
use alloy_sol_types::{SolCall, SolError};
use muster_core::record::Ownership;
use muster_core::word::Packed;
use muster_devnode::evm::Status;
use muster_devnode::{Chain, TxRequest};
use muster_protocol::layout::{OWNERSHIP, PROGRAMS};
use muster_protocol::IMuster::*;

const ROUTER: Address = Address::repeat_byte(0x01);
const PROGRAM: Address = Address::repeat_byte(0x02);
const DEPLOYER: Address = Address::repeat_byte(0x0d);
const SELECTOR: [u8; 4] = [0xba, 0xdb, 0xad, 0xba];

/// Gives back its calldata, then its caller and the value.
const ECHO: &[u8] =
    &[0x36, 0x5f, 0x5f, 0x37, 0x33, 0x36, 0x52, 0x34, 0x36, 0x60, 0x20, 0x01, 0x52, 0x36, 0x60, 0x40, 0x01, 0x5f, 0xf3];
/// The same, by a revert.
const REVERTING: &[u8] = &[0x36, 0x5f, 0x5f, 0x37, 0x36, 0x5f, 0xfd];
/// Stores 7 in slot 99 and says nothing.
const STORING: &[u8] = &[0x60, 7, 0x60, 99, 0x55, 0];
/// An invalid instruction.
const TRAP: &[u8] = &[0xfe];

/// A router that leads [`SELECTOR`] to a program of this code.
fn chain(program: &[u8]) -> Chain {
    let chain = Chain::new(muster_devnode::chain::Config::default()).unwrap();
    chain.impersonate_all(true);
    chain.set_code(ROUTER, muster_router::code().into());
    chain.set_code(PROGRAM, Bytes::copy_from_slice(program));
    // Other bits of the word are no part of the address.
    let word = U256::from_be_slice(PROGRAM.as_slice()) | U256::MAX << 160;
    let mut key = [0; 64];
    key[..4].copy_from_slice(&SELECTOR);
    key[63] = PROGRAMS;
    chain.set_storage(ROUTER, keccak256(key).into(), word);
    chain
}

fn call(chain: &Chain, from: Address, value: u64, data: impl Into<Bytes>) -> Result<Bytes, Bytes> {
    let request = TxRequest {
        from: Some(from),
        to: Some(ROUTER.into()),
        value: Some(U256::from(value)),
        input: data.into().into(),
        ..TxRequest::default()
    };
    chain.set_balance(from, U256::MAX >> 1);
    let outcome = chain.call(&request).unwrap();
    if outcome.status == Status::Success {
        Ok(outcome.output)
    } else {
        Err(outcome.output)
    }
}

fn refusal(error: impl SolError) -> Result<Bytes, Bytes> {
    Err(error.abi_encode().into())
}

fn calldata(length: usize) -> Vec<u8> {
    let mut data = SELECTOR.to_vec();
    data.extend((4..length).map(|i| i as u8));
    data
}

#[test]
fn what_a_program_answers_comes_through_whole() {
    let (echo, reverting) = (chain(ECHO), chain(REVERTING));
    for length in [4, 5, 31, 32, 36, 68, 1_000, 20_000] {
        let data = calldata(length);
        let mut expected = data.clone();
        expected.extend(DEPLOYER.into_word());
        expected.extend(B256::from(U256::from(5)));
        assert_eq!(call(&echo, DEPLOYER, 5, data.clone()), Ok(expected.into()), "{length} bytes");
        assert_eq!(call(&reverting, DEPLOYER, 0, data.clone()), Err(data.into()), "{length} bytes");
    }
}

#[test]
fn a_program_works_on_the_routers_storage() {
    let chain = chain(STORING);
    let request =
        TxRequest { from: Some(DEPLOYER), to: Some(ROUTER.into()), input: Bytes::from(SELECTOR).into(), ..TxRequest::default() };
    chain.set_balance(DEPLOYER, U256::MAX >> 1);
    assert!(chain.send(request).unwrap().ok());
    assert_eq!(chain.state().storage(ROUTER, U256::from(99)), U256::from(7));
    assert_eq!(chain.state().storage(PROGRAM, U256::from(99)), U256::ZERO);
}

#[test]
fn what_leads_nowhere_is_refused_by_its_own_errors() {
    let echo = chain(ECHO);
    for length in 0..4 {
        let malformed = refusal(MalformedCalldata { selector: [0; 4].into() });
        assert_eq!(call(&echo, DEPLOYER, 0, calldata(4)[..length].to_vec()), malformed, "{length} bytes");
        assert_eq!(call(&echo, DEPLOYER, 1, vec![0; length]), malformed);
    }
    let unknown = [0xde, 0xad, 0xbe, 0xef];
    assert_eq!(
        call(&echo, DEPLOYER, 1, [&unknown[..], &[1; 40]].concat()),
        refusal(UnknownFunction { selector: unknown.into() })
    );
    let failed = ProgramFailed { selector: SELECTOR.into(), program: PROGRAM };
    assert_eq!(call(&chain(TRAP), DEPLOYER, 1, calldata(40)), refusal(failed));
    // Value sent to where nothing is must not stay here.
    assert_eq!(call(&chain(&[]), DEPLOYER, 1, calldata(40)), refusal(NoCode { program: PROGRAM }));
    assert_eq!(call(&chain(STORING), DEPLOYER, 1, calldata(40)), Ok(Bytes::new()), "an empty answer is one");
}

#[test]
fn only_the_deployer_installs_and_only_before_initialisation() {
    let install = |call: &[u8]| installCall { program: PROGRAM, call: Bytes::copy_from_slice(call) }.abi_encode();
    let held = |chain: &Chain, o: Ownership| {
        chain.set_storage(ROUTER, U256::from(OWNERSHIP), U256::from_be_bytes(o.pack().to_be_bytes()));
    };
    let fresh = Ownership { owner: DEPLOYER.into_array(), ..Ownership::default() };
    let echo = chain(ECHO);
    held(&echo, fresh);
    for length in [0, 1, 31, 32, 33, 5_000] {
        let inner = vec![7; length];
        let mut expected = inner.clone();
        expected.extend(DEPLOYER.into_word());
        expected.extend([0; 32]);
        assert_eq!(call(&echo, DEPLOYER, 0, install(&inner)), Ok(expected.into()), "{length} bytes");
    }
    let other = Address::repeat_byte(0xee);
    assert_eq!(call(&echo, other, 0, install(&[])), refusal(NotOwner { caller: other }));
    assert_eq!(call(&echo, DEPLOYER, 3, install(&[])), refusal(ValueNotAccepted { value: U256::from(3) }));
    // No bit of the other fields makes a difference, and each of the stake unit's does.
    held(&echo, Ownership { upgrade_delay: u32::MAX >> 8, renounced: true, ..fresh });
    assert!(call(&echo, DEPLOYER, 0, install(&[1])).is_ok());
    for bit in 0..64 {
        held(&echo, Ownership { stake_unit: 1 << bit, ..fresh });
        assert_eq!(call(&echo, DEPLOYER, 0, install(&[])), refusal(AlreadyInitialised {}));
    }

    let trap = chain(TRAP);
    held(&trap, fresh);
    let failed = ProgramFailed { selector: installCall::SELECTOR.into(), program: PROGRAM };
    assert_eq!(call(&trap, DEPLOYER, 0, install(&[1])), refusal(failed));
    let empty = chain(&[]);
    held(&empty, fresh);
    assert_eq!(call(&empty, DEPLOYER, 0, install(&[1])), refusal(NoCode { program: PROGRAM }));
}

#[test]
fn an_installation_is_read_strictly() {
    let chain = chain(ECHO);
    let o = Ownership { owner: DEPLOYER.into_array(), ..Ownership::default() };
    chain.set_storage(ROUTER, U256::from(OWNERSHIP), U256::from_be_bytes(o.pack().to_be_bytes()));
    let good = installCall { program: PROGRAM, call: vec![9; 40].into() }.abi_encode();
    let malformed = refusal(MalformedCalldata { selector: installCall::SELECTOR.into() });
    // Cut short anywhere before the last byte of the call in it; the padding of the last word need not be there.
    for end in 4..100 + 40 {
        assert_eq!(call(&chain, DEPLOYER, 0, good[..end].to_vec()), malformed, "{end} bytes");
    }
    let expected = call(&chain, DEPLOYER, 0, good.clone()).unwrap();
    assert_eq!(call(&chain, DEPLOYER, 0, good[..140].to_vec()), Ok(expected.clone()));
    for (word, value) in [
        // An address of 21 bytes.
        (0, U256::from(1) << 160),
        // Offsets and lengths beyond the data, and such as would wrap around.
        (1, U256::from(good.len())),
        (1, U256::from(1) << 32),
        (1, U256::MAX - U256::from(31)),
        (2, U256::from(good.len() - 99)),
        (2, U256::from(1) << 32),
        (2, U256::MAX),
    ] {
        let mut bent = good.clone();
        bent[4 + 32 * word..36 + 32 * word].copy_from_slice(&value.to_be_bytes::<32>());
        assert_eq!(call(&chain, DEPLOYER, 0, bent), malformed, "word {word}: {value:#x}");
    }
    // An offset elsewhere is as good.
    let moved = [&good[..36], &U256::from(0x60).to_be_bytes::<32>(), &[0xff; 32], &good[68..]].concat();
    assert_eq!(call(&chain, DEPLOYER, 0, moved), Ok(expected));
}
