//! Answers and changes of ArbOS's precompiles, and their gas.

mod support;

use alloy_primitives::{Address, B256, U256};
use alloy_sol_types::{sol, SolCall, SolError};
use muster_devnode::evm::{Config, Evm, Status, BATCH_POSTER};
use muster_devnode::genesis::{CACHE_MANAGER, DEV_ACCOUNT};
use support::actor::{evm_actor, through, ACTOR};
use support::cases::{self, start_gas};
use support::chain::{becomeChainOwnerCall, ok, Chain, ALICE, ARB_DEBUG, ARB_OWNER, ARB_SYS, ARB_WASM, ARB_WASM_CACHE, BASE_FEE};
use support::word;

sol! {
    function arbBlockNumber() external view returns (uint256);
    function arbBlockHash(uint256 arbBlockNum) external view returns (bytes32);
    function arbChainID() external view returns (uint256);
    function arbOSVersion() external view returns (uint256);
    function isTopLevelCall() external view returns (bool);
    function myCallersAddressWithoutAliasing() external view returns (address);
    function mapL1SenderContractAddressToL2Alias(address sender, address unused) external pure returns (address);
    error InvalidBlockNumber(uint256 requested, uint256 current);

    function stylusVersion() external view returns (uint16);
    function inkPrice() external view returns (uint32);
    function maxStackDepth() external view returns (uint32);
    function freePages() external view returns (uint16);
    function pageGas() external view returns (uint16);
    function pageRamp() external view returns (uint64);
    function pageLimit() external view returns (uint16);
    function minInitGas() external view returns (uint64, uint64);
    function initCostScalar() external view returns (uint64);
    function expiryDays() external view returns (uint16);
    function keepaliveDays() external view returns (uint16);
    function blockCacheSize() external view returns (uint16);
    function activationGas() external view returns (uint64);
    function codehashVersion(bytes32 codehash) external view returns (uint16);
    function codehashAsmSize(bytes32 codehash) external view returns (uint32);
    function programVersion(address program) external view returns (uint16);
    function programInitGas(address program) external view returns (uint64, uint64);
    function programMemoryFootprint(address program) external view returns (uint16);
    function programTimeLeft(address program) external view returns (uint64);

    function isCacheManager(address manager) external view returns (bool);
    function allCacheManagers() external view returns (address[]);
    function codehashIsCached(bytes32 codehash) external view returns (bool);

    function getBalance(address account) external view returns (uint256);
    function getCode(address account) external view returns (bytes);

    function getPricesInWei() external view returns (uint256, uint256, uint256, uint256, uint256, uint256);
    function getPricesInArbGas() external view returns (uint256, uint256, uint256);
    function getGasAccountingParams() external view returns (uint256, uint256, uint256);
    function getMaxTxGasLimit() external view returns (uint256);
    function getMinimumGasPrice() external view returns (uint256);
    function getL1BaseFeeEstimate() external view returns (uint256);
    function getCurrentTxL1GasFees() external view returns (uint256);

    function isChainOwner(address addr) external view returns (bool);
    function getAllChainOwners() external view returns (address[]);
    function getNetworkFeeAccount() external view returns (address);
    function getInfraFeeAccount() external view returns (address);
    function getBrotliCompressionLevel() external view returns (uint64);
    function getScheduledUpgrade() external view returns (uint64, uint64);
    function isCalldataPriceIncreaseEnabled() external view returns (bool);
    function getMaxStylusContractFragments() external view returns (uint8);

    function scheduleArbOSUpgrade(uint64 newVersion, uint64 timestamp) external;
    function setL1PricePerUnit(uint256 pricePerUnit) external;
    function setInkPrice(uint32 price) external;
    function setCalldataPriceIncrease(bool enable) external;
}

const ARB_INFO: Address = Address::with_last_byte(0x65);
const ARB_OWNER_PUBLIC: Address = Address::with_last_byte(0x6b);
const ARB_GAS_INFO: Address = Address::with_last_byte(0x6c);

/// ArbOS reads a word of its storage.
const READ: u64 = 800;
/// ArbOS reads Stylus's parameters, which count as warm.
const PARAMS: u64 = 100;
/// ArbOS looks an account's code hash up.
const CODE_HASH: u64 = 2600;

fn address(address: Address) -> B256 {
    B256::left_padding_from(address.as_slice())
}

/// Asks, and compares words and gas: a transaction, its calldata, 800 for opening ArbOS, 3 for each word of arguments
/// and results, and `gas` of the method.
#[track_caller]
fn tells(chain: &mut Chain, precompile: Address, call: impl SolCall, words: &[B256], gas: u64) {
    let data = call.abi_encode();
    let calldata: u64 = data.iter().map(|byte| if *byte == 0 { 4 } else { 16 }).sum();
    let copied = 3 * ((data.len() as u64 - 4).div_ceil(32) + words.len() as u64);
    let outcome = chain.send(precompile, data);
    assert_eq!(outcome.status, Status::Success, "{outcome:?}");
    assert_eq!(outcome.output.as_ref(), words.concat());
    assert_eq!(outcome.gas_used, 21_000 + calldata + READ + copied + gas);
}

const PROGRAM: &str = r#"(module (memory (export "memory") 3 3)
    (func (export "user_entrypoint") (param i32) (result i32) i32.const 0))"#;

#[test]
fn arb_wasm_tells_the_rules_and_the_programs() {
    let mut chain = Chain::new();
    let c = &mut chain;
    tells(c, ARB_WASM, stylusVersionCall {}, &[word(3)], PARAMS);
    tells(c, ARB_WASM, inkPriceCall {}, &[word(10_000)], PARAMS);
    tells(c, ARB_WASM, maxStackDepthCall {}, &[word(22_000)], PARAMS);
    tells(c, ARB_WASM, freePagesCall {}, &[word(2)], PARAMS);
    tells(c, ARB_WASM, pageGasCall {}, &[word(1000)], PARAMS);
    tells(c, ARB_WASM, pageRampCall {}, &[word(620_674_314)], PARAMS);
    tells(c, ARB_WASM, pageLimitCall {}, &[word(128)], PARAMS);
    tells(c, ARB_WASM, minInitGasCall {}, &[word(8832), word(352)], PARAMS);
    tells(c, ARB_WASM, initCostScalarCall {}, &[word(100)], PARAMS);
    tells(c, ARB_WASM, expiryDaysCall {}, &[word(365)], PARAMS);
    tells(c, ARB_WASM, keepaliveDaysCall {}, &[word(31)], PARAMS);
    tells(c, ARB_WASM, blockCacheSizeCall {}, &[word(32)], PARAMS);
    tells(c, ARB_WASM, activationGasCall {}, &[word(0)], READ);

    let wasm = wat::parse_str(PROGRAM).unwrap();
    let program = c.program(PROGRAM);
    let codehash = c.state.code_hash(program);
    // 512,000 and 996 a function, 22 for its two types, 6.2628 a byte, in whole KiB.
    let size = (512_000 + 996 + 22 + wasm.len() as u64 * 62_628 / 10_000).div_ceil(1024) * 1024;
    tells(c, ARB_WASM, codehashVersionCall { codehash }, &[word(3)], PARAMS + READ);
    tells(c, ARB_WASM, codehashAsmSizeCall { codehash }, &[word(size)], PARAMS + READ);
    tells(c, ARB_WASM, programVersionCall { program }, &[word(3)], CODE_HASH + PARAMS + READ);
    tells(c, ARB_WASM, programMemoryFootprintCall { program }, &[word(3)], CODE_HASH + PARAMS + READ);
    // Pages are no part of it: the third one is 1,000.
    let (uncached, cached) = start_gas(&wasm);
    let start = [word(uncached - 1000), word(cached - 1000)];
    tells(c, ARB_WASM, programInitGasCall { program }, &start, CODE_HASH + PARAMS + READ);
    // Activation is known to the hour since 16 January 2015, 6 o'clock.
    let activated = c.time - 1 - 5;
    let left = 365 * 86_400 - (c.time - (activated - (activated - 1_421_388_000) % 3600));
    tells(c, ARB_WASM, programTimeLeftCall { program }, &[word(left)], CODE_HASH + PARAMS + READ);

    // As of ArbOS 51 there was Stylus version 2, and no price of activation.
    let mut old = Chain::of_version(51);
    tells(&mut old, ARB_WASM, stylusVersionCall {}, &[word(2)], PARAMS);
    assert!(matches!(old.send(ARB_WASM, activationGasCall {}.abi_encode()).status, Status::Halt(_)));
    // The stack was deeper before ArbOS 50.
    tells(&mut Chain::of_version(40), ARB_WASM, maxStackDepthCall {}, &[word(4 * 65_536)], PARAMS);
}

#[test]
fn arb_wasm_cache_and_arb_info() {
    let mut chain = Chain::new();
    let program = chain.program(PROGRAM);
    let codehash = chain.state.code_hash(program);
    let c = &mut chain;
    let manager = [word(32), word(1), address(CACHE_MANAGER)];
    tells(c, ARB_WASM_CACHE, isCacheManagerCall { manager: CACHE_MANAGER }, &[word(1)], READ);
    tells(c, ARB_WASM_CACHE, isCacheManagerCall { manager: ALICE }, &[word(0)], READ);
    tells(c, ARB_WASM_CACHE, allCacheManagersCall {}, &manager, 2 * READ);
    tells(c, ARB_WASM_CACHE, codehashIsCachedCall { codehash }, &[word(0)], READ);
    c.cache(program);
    tells(c, ARB_WASM_CACHE, codehashIsCachedCall { codehash }, &[word(1)], READ);

    let other = cases::OTHER;
    cases::prepare(&mut c.state);
    let mut code = [0; 32];
    code[..4].copy_from_slice(&cases::EVM_CODE);
    tells(c, ARB_INFO, getBalanceCall { account: other }, &[word(5)], 700);
    tells(c, ARB_INFO, getCodeCall { account: other }, &[word(32), word(4), code.into()], 2100 + 3);
}

#[test]
fn arb_gas_info_tells_prices() {
    let mut chain = Chain::new();
    let c = &mut chain;
    let base = BASE_FEE as u64;
    let prices = |l1: u64| [word(l1 * 16 * 140), word(l1 * 16), word(base * 20_000), word(base), word(0), word(base)];
    tells(c, ARB_GAS_INFO, getPricesInWeiCall {}, &prices(0), 2 * READ);
    tells(c, ARB_GAS_INFO, getPricesInArbGasCall {}, &[word(0), word(0), word(20_000)], READ);
    let limits = [word(7_000_000), word(32_000_000), word(32_000_000)];
    tells(c, ARB_GAS_INFO, getGasAccountingParamsCall {}, &limits, 2 * READ);
    tells(c, ARB_GAS_INFO, getMaxTxGasLimitCall {}, &[word(32_000_000)], READ);
    tells(c, ARB_GAS_INFO, getMinimumGasPriceCall {}, &[word(base)], READ);
    tells(c, ARB_GAS_INFO, getL1BaseFeeEstimateCall {}, &[word(0)], READ);
    tells(c, ARB_GAS_INFO, getCurrentTxL1GasFeesCall {}, &[word(0)], 0);
    // A price of L1 data that an owner has set is told, though nobody is charged it.
    own(c);
    done(c, setL1PricePerUnitCall { pricePerUnit: U256::from(1_000_000_000) });
    tells(c, ARB_GAS_INFO, getPricesInWeiCall {}, &prices(1_000_000_000), 2 * READ);
    let in_gas = [word(1_000_000_000 * 16 * 140 / base), word(1_000_000_000 * 16 / base), word(20_000)];
    tells(c, ARB_GAS_INFO, getPricesInArbGasCall {}, &in_gas, READ);
}

#[test]
fn arb_owner_public_tells_what_cargo_stylus_asks() {
    let mut chain = Chain::new();
    let c = &mut chain;
    let fees = address(alloy_primitives::address!("a4b000000000000000000000000000000000fee5"));
    tells(c, ARB_OWNER_PUBLIC, isChainOwnerCall { addr: DEV_ACCOUNT }, &[word(1)], READ);
    tells(c, ARB_OWNER_PUBLIC, isChainOwnerCall { addr: ALICE }, &[word(0)], READ);
    let owners = [word(32), word(1), address(DEV_ACCOUNT)];
    tells(c, ARB_OWNER_PUBLIC, getAllChainOwnersCall {}, &owners, 2 * READ);
    tells(c, ARB_OWNER_PUBLIC, getNetworkFeeAccountCall {}, &[fees], READ);
    tells(c, ARB_OWNER_PUBLIC, getInfraFeeAccountCall {}, &[fees], READ);
    tells(c, ARB_OWNER_PUBLIC, getBrotliCompressionLevelCall {}, &[word(1)], READ);
    tells(c, ARB_OWNER_PUBLIC, isCalldataPriceIncreaseEnabledCall {}, &[word(0)], READ);
    tells(c, ARB_OWNER_PUBLIC, getMaxStylusContractFragmentsCall {}, &[word(4)], PARAMS);
    tells(c, ARB_OWNER_PUBLIC, getScheduledUpgradeCall {}, &[word(0), word(0)], 2 * READ);
    own(c);
    done(c, scheduleArbOSUpgradeCall { newVersion: 70, timestamp: 9 });
    tells(c, ARB_OWNER_PUBLIC, getScheduledUpgradeCall {}, &[word(70), word(9)], 2 * READ);
    let owners = [word(32), word(2), address(DEV_ACCOUNT), address(ALICE)];
    tells(c, ARB_OWNER_PUBLIC, getAllChainOwnersCall {}, &owners, 3 * READ);
}

#[test]
fn only_owners_rule_and_the_price_of_ink_follows() {
    let mut chain = Chain::new();
    let denied = chain.send(ARB_OWNER, setInkPriceCall { price: 100 }.abi_encode());
    assert_eq!(denied.status, Status::Halt("unauthorized caller to access-controlled method".into()));
    let spin = r#"(module (memory (export "memory") 1 1)
        (func (export "user_entrypoint") (param i32) (result i32) (local i32)
            (loop (br_if 0 (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 10000)))) i32.const 0))"#;
    let program = chain.program(spin);
    let mut ink = |price: u64| {
        own(&mut chain);
        done(&mut chain, setInkPriceCall { price: price as u32 });
        let outcome = chain.send(program, vec![]);
        let frame = &outcome.stylus[0];
        assert_eq!(frame.ink_start, (32_000_000 - 21_000 - frame.start_gas) * price);
        assert_eq!(outcome.gas_used, 21_000 + frame.start_gas + (frame.ink_start - frame.ink_end).div_ceil(price));
        frame.ink_start - frame.ink_end
    };
    assert_eq!(ink(100), ink(40_000));
}

fn own(chain: &mut Chain) {
    let outcome = chain.send(ARB_DEBUG, becomeChainOwnerCall {}.abi_encode());
    assert_eq!(outcome.status, Status::Success);
}

fn done(chain: &mut Chain, call: impl SolCall) {
    let outcome = chain.send(ARB_OWNER, call.abi_encode());
    assert_eq!(outcome.status, Status::Success, "{outcome:?}");
}

mod table {
    alloy_sol_types::sol! {
        function addressExists(address addr) external view returns (bool);
        function compress(address addr) external view returns (bytes);
        function decompress(bytes buf, uint256 offset) external view returns (address, uint256);
        function lookup(address addr) external view returns (uint256);
        function lookupIndex(uint256 index) external view returns (address);
        function register(address addr) external returns (uint256);
        function size() external view returns (uint256);
    }
}

mod l1 {
    alloy_sol_types::sol! {
        function sendMerkleTreeState() external view returns (uint256, bytes32, bytes32[]);
        function getLifetime() external view returns (uint256);
        function getTimeout(bytes32 ticketId) external view returns (uint256);
        function getCurrentRedeemer() external view returns (address);
        function redeem(bytes32 ticketId) external returns (bytes32);
        function getPreferredAggregator(address addr) external view returns (address, bool);
        function getDefaultAggregator() external view returns (address);
        function getBatchPosters() external view returns (address[]);
        function getFeeCollector(address batchPoster) external view returns (address);
        function getTxBaseFee(address aggregator) external view returns (uint256);
        error NoTicketWithID();
    }
}

#[test]
fn arb_address_table_gives_short_names() {
    use table::*;
    const TABLE: Address = Address::with_last_byte(0x66);
    let mut chain = Chain::new();
    let ask = |chain: &mut Chain, call: &[u8]| chain.send(TABLE, call.to_vec());
    let (a, b) = (Address::repeat_byte(0xaa), Address::repeat_byte(0xbb));
    for (address, index) in [(a, 0u64), (b, 1), (a, 0)] {
        let outcome = ask(&mut chain, &registerCall { addr: address }.abi_encode());
        assert_eq!(outcome.output[..], word(index)[..]);
    }
    assert_eq!(ask(&mut chain, &sizeCall {}.abi_encode()).output[..], word(2)[..]);
    assert_eq!(ask(&mut chain, &lookupCall { addr: b }.abi_encode()).output[..], word(1)[..]);
    assert_eq!(ask(&mut chain, &lookupIndexCall { index: U256::from(1) }.abi_encode()).output[..], address(b)[..]);
    assert_eq!(ask(&mut chain, &addressExistsCall { addr: a }.abi_encode()).output[..], word(1)[..]);
    assert_eq!(ask(&mut chain, &lookupCall { addr: ALICE }.abi_encode()).status, Status::Revert);
    assert_eq!(ask(&mut chain, &lookupIndexCall { index: U256::from(2) }.abi_encode()).status, Status::Revert);
    assert_eq!(ask(&mut chain, &lookupIndexCall { index: U256::MAX }.abi_encode()).status, Status::Revert);
    // One byte for a known address, 21 for an unknown one; and back.
    for (who, length) in [(a, 1), (b, 1), (ALICE, 21)] {
        let packed = ask(&mut chain, &compressCall { addr: who }.abi_encode()).output;
        let packed = compressCall::abi_decode_returns(&packed).unwrap();
        assert_eq!(packed.len(), length);
        let buf = [&[7; 3][..], &packed, &[9]].concat().into();
        let plain = ask(&mut chain, &decompressCall { buf, offset: U256::from(3) }.abi_encode()).output;
        let plain = decompressCall::abi_decode_returns(&plain).unwrap();
        assert_eq!((plain._0, plain._1), (who, U256::from(length)));
    }
    for (buf, offset) in [(vec![], 0u64), (vec![], 1), (vec![0x95], 0), (vec![5], 0), (vec![0xc0], 0)] {
        let outcome = ask(&mut chain, &decompressCall { buf: buf.into(), offset: U256::from(offset) }.abi_encode());
        assert_eq!(outcome.status, Status::Revert);
    }
}

#[test]
fn what_belongs_to_l1_says_that_there_is_none() {
    use l1::*;
    let mut chain = Chain::new();
    let (retryable, aggregator) = (Address::with_last_byte(0x6e), Address::with_last_byte(0x6d));
    let ask = |chain: &mut Chain, to: Address, call: Vec<u8>| chain.send(to, call);
    assert_eq!(ask(&mut chain, retryable, getLifetimeCall {}.abi_encode()).output[..], word(604_800)[..]);
    assert_eq!(ask(&mut chain, retryable, getCurrentRedeemerCall {}.abi_encode()).output[..], word(0)[..]);
    for call in [getTimeoutCall { ticketId: word(1) }.abi_encode(), redeemCall { ticketId: word(1) }.abi_encode()] {
        let outcome = ask(&mut chain, retryable, call);
        assert_eq!((outcome.status, outcome.output.as_ref()), (Status::Revert, NoTicketWithID {}.abi_encode().as_slice()));
    }
    let poster = address(BATCH_POSTER);
    assert_eq!(ask(&mut chain, aggregator, getDefaultAggregatorCall {}.abi_encode()).output[..], poster[..]);
    let preferred = ask(&mut chain, aggregator, getPreferredAggregatorCall { addr: ALICE }.abi_encode()).output;
    assert_eq!(preferred[..], [poster, word(1)].concat());
    let posters = ask(&mut chain, aggregator, getBatchPostersCall {}.abi_encode()).output;
    assert_eq!(getBatchPostersCall::abi_decode_returns(&posters).unwrap(), [BATCH_POSTER]);
    let collector = ask(&mut chain, aggregator, getFeeCollectorCall { batchPoster: BATCH_POSTER }.abi_encode());
    assert_eq!(collector.output[..], poster[..]);
    let nobody = ask(&mut chain, aggregator, getFeeCollectorCall { batchPoster: ALICE }.abi_encode());
    assert_eq!(nobody.status, Status::Revert);
    assert_eq!(ask(&mut chain, aggregator, getTxBaseFeeCall { aggregator: ALICE }.abi_encode()).output[..], word(0)[..]);
    // Only address zero may ask, which no transaction comes from.
    let sys = Address::with_last_byte(0x64);
    assert_eq!(ask(&mut chain, sys, sendMerkleTreeStateCall {}.abi_encode()).status, Status::Revert);
    let hashes = chain.hashes.clone();
    let mut tx = chain.tx(Some(sys), sendMerkleTreeStateCall {}.abi_encode());
    (tx.caller, tx.is_call, tx.gas_price, tx.nonce) = (Address::ZERO, true, 0, None);
    let state = chain.evm.call(&chain.state, &chain.block(&hashes), &tx).unwrap().output;
    let state = sendMerkleTreeStateCall::abi_decode_returns(&state).unwrap();
    assert_eq!((state._0, state._1, state._2.len()), (U256::ZERO, B256::ZERO, 0));
}

#[test]
fn arb_sys_knows_the_chain() {
    let mut chain = Chain::new();
    let a = chain.program(ACTOR);
    for _ in 0..300 {
        chain.mine();
    }
    let number = chain.number;
    let outcome = ok(chain.send(ARB_SYS, arbBlockNumberCall {}.abi_encode()));
    assert_eq!(U256::from_be_slice(&outcome.output), U256::from(number));
    // 21,000, calldata of 4 non-zero bytes, ArbOS opened, no argument words, one result word.
    assert_eq!(outcome.gas_used, 21_000 + 64 + 800 + 3);
    // Through a program, as contracts use it.
    let ask = |chain: &mut Chain, n: u64| {
        chain.send(a, through(2, ARB_SYS, 0, &arbBlockHashCall { arbBlockNum: U256::from(n) }.abi_encode()))
    };
    let number = chain.number;
    let known = ok(ask(&mut chain, number - 1));
    assert_eq!(known.output.as_ref(), chain.hashes[number as usize - 1].1.as_slice());
    let number = chain.number;
    let oldest = ok(ask(&mut chain, number - 256));
    assert_eq!(oldest.output.as_ref(), chain.hashes[number as usize - 256].1.as_slice());
    for asked in [chain.number, chain.number - 256] {
        // By the time it runs the second is 257 blocks old.
        let unknown = ask(&mut chain, asked);
        let error = InvalidBlockNumber::abi_decode(&unknown.output);
        if asked == chain.number - 1 {
            assert_eq!(error.unwrap().requested, U256::from(asked));
        } else {
            assert!(error.is_ok(), "{unknown:?}");
        }
    }
    let id = ok(chain.send(ARB_SYS, arbChainIDCall {}.abi_encode()));
    assert_eq!(U256::from_be_slice(&id.output), U256::from(412_346));
    let version = ok(chain.send(ARB_SYS, arbOSVersionCall {}.abi_encode()));
    assert_eq!(U256::from_be_slice(&version.output), U256::from(55 + 61));
    let top = ok(chain.send(a, through(0, ARB_SYS, 0, &isTopLevelCallCall {}.abi_encode())));
    assert_eq!(U256::from_be_slice(&top.output), U256::from(1));
    let evm = chain.deploy(&evm_actor());
    let below = ok(chain.send(evm, through(0, a, 0, &through(0, ARB_SYS, 0, &isTopLevelCallCall {}.abi_encode()))));
    assert_eq!(U256::from_be_slice(&below.output), U256::ZERO);
    let caller = ok(chain.send(a, through(0, ARB_SYS, 0, &myCallersAddressWithoutAliasingCall {}.abi_encode())));
    assert_eq!(Address::from_slice(&caller.output[12..]), ALICE);
    let alias = ok(chain
        .send(ARB_SYS, mapL1SenderContractAddressToL2AliasCall { sender: Address::ZERO, unused: Address::ZERO }.abi_encode()));
    assert_eq!(Address::from_slice(&alias.output[12..]), alloy_primitives::address!("1111000000000000000000000000000000001111"));
    // A missing method says so and takes all gas, as any unknown method does.
    let missing = chain.send(ARB_SYS, vec![1, 2, 3, 4]);
    assert_eq!(missing.status, Status::Halt("ArbSys has no method 0x01020304 on this node".into()));
}

#[test]
fn precompiles_look_at_accounts_without_warming_them() {
    let mut chain = Chain::new();
    let whom = Address::repeat_byte(0x77);
    // Asks ArbInfo for the balance, then for it by BALANCE, and returns the gas between two GAS: SWAP1 3, BALANCE,
    // POP 2, GAS 2.
    let code = [
        &[0x63, 0xf8, 0xb2, 0xcb, 0x4f, 0x60, 0xe0, 0x1b, 0x5f, 0x52, 0x73][..],
        whom.as_slice(),
        &[0x60, 4, 0x52, 0x5f, 0x5f, 0x60, 0x24, 0x5f, 0x60, 0x65, 0x5a, 0xfa, 0x50, 0x73],
        whom.as_slice(),
        &[0x5a, 0x90, 0x31, 0x50, 0x5a, 0x90, 0x03, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3],
    ]
    .concat();
    let contract = chain.deploy(&code);
    let outcome = ok(chain.send(contract, vec![]));
    assert_eq!(U256::from_be_slice(&outcome.output), U256::from(2600 + 3 + 2 + 2));
}

#[test]
fn calldata_has_a_floor_once_an_owner_has_set_it() {
    let mut chain = Chain::new();
    let nobody = Address::repeat_byte(0x77);
    // 1,000 bytes that are not zero and 10 that are, at 16 and 4 gas; at the floor at 40 and 10.
    let data = [vec![1; 1000], vec![0; 10]].concat();
    assert_eq!(ok(chain.send(nobody, data.clone())).gas_used, 21_000 + 16_040);
    ok(chain.send(ARB_DEBUG, becomeChainOwnerCall {}.abi_encode()));
    ok(chain.send(ARB_OWNER, setCalldataPriceIncreaseCall { enable: true }.abi_encode()));
    let told = ok(chain.send(ARB_OWNER_PUBLIC, isCalldataPriceIncreaseEnabledCall {}.abi_encode())).output;
    assert_eq!(U256::from_be_slice(&told), U256::from(1));
    assert_eq!(ok(chain.send(nobody, data.clone())).gas_used, 21_000 + 40_100);
    let mut tx = chain.tx(Some(nobody), data);
    tx.gas_limit = 61_099;
    let hashes = chain.hashes.clone();
    let block = chain.block(&hashes);
    let error = chain.evm.transact(&mut chain.state, &block, &tx).unwrap_err();
    assert_eq!(error.to_string(), "insufficient gas for floor data gas cost: have 61099, want 61100");
}

#[test]
fn blobs_and_debug_precompiles_are_absent_where_they_must_be() {
    let mut chain = Chain::new();
    let code = chain.deploy(&[0x4a]);
    assert!(matches!(chain.send(code, vec![]).status, Status::Halt(_)));
    chain.evm = Evm::new(Config { debug: false, ..Config::default() }).unwrap();
    let refused = chain.send(ARB_DEBUG, becomeChainOwnerCall {}.abi_encode());
    assert_eq!(refused.status, Status::Halt("debug precompiles are disabled".into()));
    assert!(Evm::new(Config { arbos: 31, ..Config::default() }).is_err());
    assert!(Evm::new(Config { arbos: 62, ..Config::default() }).is_err());
}

/// An owner lists them without gas, in a transaction too.
#[test]
fn there_are_no_more_owners_than_can_be_listed_without_gas() {
    alloy_sol_types::sol! {
        function addChainOwner(address owner) external;
    }
    let mut chain = Chain::new();
    own(&mut chain);
    let statuses: Vec<Status> = (0x1000u16..0x1000 + 300)
        .map(|n| {
            let owner = Address::left_padding_from(&n.to_be_bytes());
            chain.send(ARB_OWNER, addChainOwnerCall { owner }.abi_encode()).status
        })
        .collect();
    assert_eq!((&statuses[0], &statuses[299]), (&Status::Success, &Status::Revert));
    let listed = ok(chain.send(ARB_OWNER, getAllChainOwnersCall {}.abi_encode())).output;
    assert_eq!(getAllChainOwnersCall::abi_decode_returns(&listed).unwrap().len(), 256);
}
