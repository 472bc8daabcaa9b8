//! Contracts that are there from the first block on, where tools expect them.

mod support;

use alloy_primitives::{address, b256, keccak256, Address, B256, U256};
use alloy_sol_types::{sol, Revert, SolCall, SolError};
use muster_devnode::evm::Status;
use muster_devnode::genesis::{CACHE_MANAGER, CREATE2_FACTORY, HISTORY_STORAGE, MULTICALL3, STYLUS_DEPLOYER};
use support::actor::{stored, with_word, ACTOR};
use support::chain::{init_code, ok, Chain, ALICE};
use support::program::wasm;

sol! {
    struct Call3 {
        address target;
        bool allowFailure;
        bytes callData;
    }
    struct Result {
        bool success;
        bytes returnData;
    }
    function aggregate3(Call3[] calls) external payable returns (Result[] returnData);
    function getEthBalance(address addr) external view returns (uint256 balance);
    function deploy(bytes bytecode, bytes initData, uint256 initValue, bytes32 salt) external payable returns (address);
    function placeBid(address program) external payable;
    function isPaused() external view returns (bool);
    error ContractInitializationError(address newContract, bytes data);
}

#[test]
fn factory_and_deployer_are_where_tools_expect_them() {
    let mut chain = Chain::new();
    let mut data = B256::repeat_byte(5).to_vec();
    let init = init_code(&[0x60, 0x01]);
    data.extend(&init);
    let outcome = ok(chain.send(CREATE2_FACTORY, data));
    let address = Address::from_slice(&outcome.output);
    assert_eq!(address, CREATE2_FACTORY.create2(B256::repeat_byte(5), keccak256(&init)));
    assert_eq!(chain.state.code(address).as_ref(), [0x60, 0x01]);

    let code = muster_devnode::stylus::deployed_code(&wasm(ACTOR));
    let deploy = |chain: &mut Chain, init_data: Vec<u8>, salt: u8| {
        let call = deployCall {
            bytecode: init_code(&code).into(),
            initData: init_data.into(),
            initValue: U256::ZERO,
            salt: B256::repeat_byte(salt),
        };
        let mut tx = chain.tx(Some(STYLUS_DEPLOYER), call.abi_encode());
        tx.value = U256::from(10).pow(U256::from(17));
        chain.run(&tx)
    };
    let balance = chain.state.balance(ALICE);
    let outcome = ok(deploy(&mut chain, with_word(4, 3), 0));
    let program = Address::from_slice(&outcome.output[12..]);
    assert_eq!(stored(&chain, program), 3);
    assert_eq!(outcome.logs.len(), 2, "activated and deployed");
    assert!(balance - chain.state.balance(ALICE) < U256::from(10).pow(U256::from(16)), "the rest came back");
    // The same code again needs no activation; a failing initialisation undoes it all.
    let outcome = ok(deploy(&mut chain, vec![], 1));
    assert_eq!(outcome.logs.len(), 1);
    let failed = deploy(&mut chain, with_word(10, 3), 2);
    assert_eq!(failed.status, Status::Revert);
    assert!(ContractInitializationError::abi_decode(&failed.output).unwrap().data.is_empty());
    // The constructor's error reaches the deploying account, with the address that would have been.
    let failed = deploy(&mut chain, with_word(11, 7), 2);
    let error = ContractInitializationError::abi_decode(&failed.output).unwrap();
    assert_eq!(error.data.as_ref(), B256::repeat_byte(7).as_slice());
    let salt = keccak256([B256::repeat_byte(2).as_slice(), &with_word(11, 7)].concat());
    assert_eq!(error.newContract, STYLUS_DEPLOYER.create2(salt, keccak256(init_code(&code))));
    // Tools know the code by its length.
    assert_eq!(chain.state.code(STYLUS_DEPLOYER).len(), 2_269);

    // The cache manager takes any bid.
    ok(chain.send(CACHE_MANAGER, placeBidCall { program }.abi_encode()));
    assert!(ok(chain.send(program, vec![5])).stylus[0].cached);
    let paused = ok(chain.send(CACHE_MANAGER, isPausedCall {}.abi_encode()));
    assert_eq!(U256::from_be_slice(&paused.output), U256::ZERO);
}

#[test]
fn hashes_of_l2_blocks_lie_in_the_history_contract() {
    let mut chain = Chain::new();
    for _ in 0..300 {
        chain.mine();
    }
    let ask = |chain: &mut Chain, number: u64| chain.send(HISTORY_STORAGE, U256::from(number).to_be_bytes::<32>().to_vec());
    let number = chain.number;
    let known = ok(ask(&mut chain, number - 1));
    assert_eq!(known.output.as_ref(), chain.hashes[number as usize - 1].1.as_slice());
    let number = chain.number;
    for _ in 0..300 {
        chain.mine();
    }
    // Older than the blocks of ArbSys.
    let known = ok(ask(&mut chain, number - 1));
    assert_eq!(known.output.as_ref(), chain.hashes[number as usize - 1].1.as_slice());
    let number = chain.number;
    assert_eq!(ask(&mut chain, number).status, Status::Revert);
}

#[test]
fn multicall3_is_the_one_of_every_chain() {
    let mut chain = Chain::new();
    assert_eq!(MULTICALL3, address!("ca11bde05977b3631167028862be2a173976ca11"));
    // The hash that EXTCODEHASH gives of it on Ethereum, Arbitrum and the others.
    let hash = b256!("d5c15df687b16f2ff992fc8d767b4216323184a2bbc6ee2f9c398c318e770891");
    assert_eq!(keccak256(chain.state.code(MULTICALL3)), hash);

    let program = chain.program(ACTOR);
    let call = |target: Address, may_fail: bool, data: Vec<u8>| Call3 { target, allowFailure: may_fail, callData: data.into() };
    let aggregate = |calls: Vec<Call3>| aggregate3Call { calls }.abi_encode();
    // A program stores, fails after storing, reads what it holds; and the contract itself is asked, between them.
    let outcome = ok(chain.send(
        MULTICALL3,
        aggregate(vec![
            call(program, false, with_word(4, 3)),
            call(program, true, with_word(11, 7)),
            call(MULTICALL3, false, getEthBalanceCall { addr: ALICE }.abi_encode()),
            call(program, true, with_word(10, 9)),
            call(program, false, vec![5]),
        ]),
    ));
    let results = aggregate3Call::abi_decode_returns(&outcome.output).unwrap();
    let told: Vec<_> = results.iter().map(|result| (result.success, result.returnData.as_ref())).collect();
    let [stores, reverts, asks, traps, reads] = told[..] else { panic!("{told:?}") };
    assert_eq!((stores, traps), ((true, &[][..]), (false, &[][..])));
    assert_eq!(reverts, (false, B256::repeat_byte(7).as_slice()));
    assert!(asks.0 && U256::from_be_slice(asks.1) > U256::from(10).pow(U256::from(23)));
    assert_eq!(reads, (true, B256::repeat_byte(3).as_slice()));

    // A failure that is not allowed undoes all of it.
    let failed =
        chain.send(MULTICALL3, aggregate(vec![call(program, false, with_word(4, 5)), call(program, false, with_word(11, 7))]));
    assert_eq!((failed.status, stored(&chain, program)), (Status::Revert, 3));
    let Revert { reason } = Revert::abi_decode(&failed.output).unwrap();
    assert_eq!(reason, "Multicall3: call failed");
}
