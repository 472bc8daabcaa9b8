//! Refusals of activation, and their reasons; expiry, keep-alive and caching.

mod support;

use alloy_primitives::{Address, U256};
use alloy_sol_types::{sol, SolCall, SolError, SolEvent};
use muster_devnode::evm::{Outcome, Status};
use support::cases::start_gas;
use support::chain::{
    activateProgramCall, becomeChainOwnerCall, init_code, ok, Chain, ALICE, ARB_DEBUG, ARB_OWNER, ARB_WASM, ARB_WASM_CACHE,
    BASE_FEE,
};

sol! {
    function codehashKeepalive(bytes32 codehash) external payable;
    function programTimeLeft(address program) external view returns (uint64 secs);
    function programVersion(address program) external view returns (uint16 version);
    function programInitGas(address program) external view returns (uint64 gas, uint64 gasWhenCached);
    function programMemoryFootprint(address program) external view returns (uint16 footprint);
    function codehashAsmSize(bytes32 codehash) external view returns (uint32 size);
    function stylusVersion() external view returns (uint16 version);
    function codehashIsCached(bytes32 codehash) external view returns (bool);
    function evictCodehash(bytes32 codehash) external;
    function cacheProgram(address addr) external;
    function setWasmActivationGas(uint64 gas) external;
    error ProgramNotWasm();
    error ProgramNotActivated();
    error ProgramExpired(uint64 ageInSeconds);
    error ProgramUpToDate();
    error ProgramKeepaliveTooSoon(uint64 ageInSeconds);
    error ProgramInsufficientValue(uint256 have, uint256 want);
    event ProgramActivated(bytes32 indexed codehash, bytes32 moduleHash, address program, uint256 dataFee, uint16 version);
    event ProgramLifetimeExtended(bytes32 indexed codehash, uint256 dataFee);
    event UpdateProgramCache(address indexed manager, bytes32 indexed codehash, bool cached);
}

const ENTRY: &str = r#"(func (export "user_entrypoint") (param i32) (result i32) i32.const 0)"#;
const MEMORY: &str = r#"(memory (export "memory") 1 1)"#;

/// Activates a module and returns why it was refused.
fn refusal(chain: &mut Chain, wasm: &[u8]) -> String {
    let program = chain.deploy_wasm(wasm);
    let outcome = chain.activate(program);
    match outcome.status {
        Status::Halt(reason) => {
            assert_eq!(outcome.gas_used, 32_000_000, "a refused activation takes all gas");
            reason.strip_prefix("program activation failed: ").expect(&reason).to_owned()
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(wat: &str, why: &str) {
    let wasm = wat::parse_str(wat).expect("valid text");
    let reason = refusal(&mut Chain::new(), &wasm);
    assert!(reason.contains(why), "refused because: {reason}");
}

fn module(fields: &str) -> String {
    format!("(module {fields} {MEMORY} {ENTRY})")
}

#[test]
fn language_features_beyond_the_allowed_ones() {
    refused(&module("(func (drop (f32.add (f32.const 1) (f32.const 2))))"), "floating point");
    refused(&module("(func (drop (i32.trunc_f64_s (f64.const 1))))"), "floating point");
    refused(&module("(func (drop (i64.trunc_sat_f32_u (f32.const 1))))"), "floating point");
    refused(&module("(func (result i32 i32) i32.const 1 i32.const 2)"), "multi-value");
    refused(&module("(func (drop (ref.null func)))"), "reference types");
    refused(&module("(table 1 externref)"), "reference types");
    refused(&module("(func (drop (i8x16.splat (i32.const 0))))"), "SIMD");
    refused(&module("(func $f (return_call $f))"), "tail calls");
    refused(&module("(func (drop (i32.atomic.load (i32.const 0))))"), "threads");
    refused(&module("(func $f) (start $f)"), "start functions");
    refused(
        &module("(table 1 funcref) (elem $e func) (func (table.init $e (i32.const 0) (i32.const 0) (i32.const 0)))"),
        "not supported",
    );
    refused(&module("(data $d \"x\") (func (memory.init $d (i32.const 0) (i32.const 0) (i32.const 0)))"), "data count");
    refused(&module("(tag $t)"), "exceptions");
    refused(&module("(global i32 (i32.add (i32.const 1) (i32.const 2)))"), "constant expression");
    refused(&format!("(module (memory 1) {MEMORY} {ENTRY})"), "multi");
    refused(&format!("(module (memory (export \"memory\") i64 1 1) {ENTRY})"), "memory64");
}

#[test]
fn entrypoint_memory_and_imports() {
    refused(&format!("(module {MEMORY})"), "missing export with name user_entrypoint");
    refused(
        &format!("(module {MEMORY} (func (export \"user_entrypoint\") (result i32) i32.const 0))"),
        "wrong type for user_entrypoint",
    );
    refused(&format!("(module {MEMORY} (global (export \"user_entrypoint\") i32 (i32.const 0)))"), "must be a function");
    refused(&format!("(module {ENTRY})"), "missing memory");
    refused(&format!("(module (memory 1 1) {ENTRY})"), "missing memory");
    refused(&format!("(module (memory (export \"memory\") 1) {ENTRY})"), "missing import pay_for_memory_grow");
    refused(&format!("(module (memory (export \"memory\") 129 129) {ENTRY})"), "exceeds bound 128");
    refused(&format!("(module (import \"vm_hooks\" \"nothing\" (func)) {MEMORY} {ENTRY})"), "No such import nothing in vm_hooks");
    refused(
        &format!("(module (import \"env\" \"read_args\" (func (param i32))) {MEMORY} {ENTRY})"),
        "No such import read_args in env",
    );
    refused(&format!("(module (import \"vm_hooks\" \"read_args\" (func)) {MEMORY} {ENTRY})"), "different function signature");
    refused(&format!("(module (import \"vm_hooks\" \"memory\" (memory 1)) {ENTRY})"), "unsupported import kind");
    refused(&module("(func (export \"stylus_x\"))"), "reserved symbol");
    refused(&module("(func (export \"user__stylus\"))"), "reserved symbol");
    refused(
        &format!(
            "(module (import \"vm_hooks\" \"read_args\" (func (param i32))) (func (export \"x__read_args\")) {MEMORY} {ENTRY})"
        ),
        "exports an import with the same name",
    );
}

#[test]
fn limits() {
    let many = |n: usize, item: &str| (0..n).map(|i| item.replace('#', &i.to_string())).collect::<String>();
    refused(&module(&many(4096, "(func)")), "too many wasm functions: 4097 > 4096");
    refused(&module(&format!("(func (local {}))", "i32 ".repeat(349))), "too many wasm locals: 349 > 348");
    refused(&module(&many(1020, "(func (export \"e#\"))")), "too many wasm exports");
    refused(&module("(table 4097 funcref)"), "too many wasm table entries: 4097 > 4096");
    refused(&module(&many(129, "(data (i32.const 0) \"x\")")), "too many wasm datas: 129 > 128");
    refused(&module(&many(32_765, "(global i32 (i32.const 0))")), "too many wasm globals: 32769 > 32768");
    refused(&module(&format!("(func {})", "(drop (i32.const 1))".repeat(32_800))), "too many wasm opcodes in func body");
    refused(&module(&format!("(func (export \"{}\"))", "x".repeat(513))), "wasm name too long");
    refused(&format!("(module ${} {MEMORY} {ENTRY})", "x".repeat(513)), "module name too long");
    refused(&module(&format!("(func {} {})", "i32.const 1 ".repeat(4100), "drop ".repeat(4100))), "too many values on the stack");
    refused(&module("(data (i32.const 65535) \"xy\")"), "Out-of-bounds data");
    refused(&module("(table 1 funcref) (elem (i32.const 1) $f) (func $f)"), "Out of bounds element");
}

#[test]
fn limits_that_are_just_kept() {
    let mut chain = Chain::new();
    for fields in [
        "(func)".repeat(4095),
        format!("(func (local {}))", "i32 ".repeat(348)),
        "(table 4096 funcref)".into(),
        "(data (i32.const 65534) \"xy\")".into(),
        // Floats may be moved about, only not computed with.
        "(func (drop (f32.load (i32.const 0))) (drop (f64.const 1)))".into(),
    ] {
        chain.program(&module(&fields));
    }
    chain.program(&format!(
        "(module (import \"vm_hooks\" \"pay_for_memory_grow\" (func (param i32))) (memory (export \"memory\") 128) {ENTRY})"
    ));
}

#[test]
fn garbage_is_refused_in_words() {
    let mut chain = Chain::new();
    assert!(refusal(&mut chain, b"\0asm\x01\0\0\0").contains("missing memory"));
    assert!(refusal(&mut chain, b"not wasm").contains("failed to validate"));
    assert!(refusal(&mut chain, &[]).contains("failed to validate"));
    let good = wat::parse_str(module("")).unwrap();
    for cut in 9..good.len() {
        assert!(!refusal(&mut chain, &good[..cut]).is_empty());
    }

    // Code that isn't brotli, or isn't a program, reverts and keeps the gas.
    for code in [&b"\xef\xf0\x00\x00garbage"[..], b"\xef\xf0\x00\x01abc", b"\xef\xf0\x00\x07abc", b"\xef\xf0\x01abc", b"\x60\x00"]
    {
        let program = chain.deploy(code);
        let outcome = chain.activate(program);
        assert_eq!(outcome.status, Status::Revert, "{outcome:?}");
        assert!(outcome.gas_used < 2_000_000);
    }
    let nobody = chain.activate(Address::repeat_byte(3));
    assert_eq!(nobody.output.as_ref(), ProgramNotWasm {}.abi_encode());
}

#[test]
fn too_large_after_decompression() {
    let mut chain = Chain::new();
    let mut wasm = wat::parse_str(module("")).unwrap();
    // A custom section of zeros beyond 256 KiB.
    let size = 256 * 1024 + 1;
    wasm.push(0);
    let mut leb = size + 2;
    while leb >= 0x80 {
        wasm.push((leb & 0x7f) as u8 | 0x80);
        leb >>= 7;
    }
    wasm.push(leb as u8);
    wasm.extend([1, b'x']);
    wasm.extend(vec![0; size]);
    let program = chain.deploy_wasm(&wasm);
    assert_eq!(chain.activate(program).status, Status::Revert);
}

fn number(outcome: &Outcome) -> u64 {
    U256::from_be_slice(&outcome.output[..32]).to()
}

#[test]
fn activation_is_paid_recorded_and_done_once() {
    let mut chain = Chain::new();
    let wasm = wat::parse_str(module("")).unwrap();
    let program = chain.deploy_wasm(&wasm);
    let hash = chain.state.code_hash(program);

    let unactivated = chain.send(program, vec![]);
    assert_eq!(unactivated.status, Status::Halt("error ProgramNotActivated()".into()));
    assert_eq!(unactivated.gas_used, 32_000_000);
    let view = chain.send(ARB_WASM, programVersionCall { program }.abi_encode());
    assert_eq!(view.output.as_ref(), ProgramNotActivated {}.abi_encode());

    // Without value nothing is bought: the error names the price.
    let poor = chain.send(ARB_WASM, activateProgramCall { program }.abi_encode());
    let error = ProgramInsufficientValue::abi_decode(&poor.output).expect("its own error");
    assert_eq!(error.have, U256::ZERO);

    let before = chain.state.balance(ALICE);
    let activated = ok(chain.activate(program));
    let event =
        ProgramActivated::decode_raw_log(activated.logs[0].data.topics().iter().copied(), &activated.logs[0].data.data).unwrap();
    assert_eq!((event.codehash, event.program, event.version), (hash, program, 3));
    // 82,928,201 wei a byte: e^0 in bips, for demand is small; the estimate is 512,000 + 996 + 22 (11,416 x 2 / 1000)
    // + 6.2628 a byte of WASM.
    let asm = 512_000 + 996 + 22 + wasm.len() as u64 * 62_628 / 10_000;
    let exponent = 10_000 * asm / 21_360_419;
    let price = 82_928_201 * (10_000 + exponent + exponent * exponent / 20_000) / 10_000;
    let fee: u64 = event.dataFee.to();
    assert!(fee.abs_diff(price * asm) <= price * asm / 10_000, "{fee} and {}", price * asm);
    assert!(error.want.to::<u64>().abs_diff(fee) < fee / 100);
    // The rest of the ether came back.
    let spent = before - chain.state.balance(ALICE);
    assert_eq!(spent, event.dataFee + U256::from(activated.gas_used) * U256::from(BASE_FEE));

    // 21,000, calldata (4 + 20 non-zero bytes x 16 + 12 zeros x 4), open 800, argument 3, activation gas read 800 + 1,659,168.
    // Then parameters 100, program 800, work, module hash 20,000, pricer 44,000, program 20,000, fee account 800. Then event 375 x 3 + 8 x
    // 128, and result 6.
    let ops = activation_ops();
    let us = [wasm.len() as u64 * 31_733 / 100_000, 17_263 / 100_000, 0, 0, 2217, ops * 535 / 1000];
    let work: u64 = us.iter().map(|us| us * 28).sum();
    let calldata: u64 = activateProgramCall { program }.abi_encode().iter().map(|b| if *b == 0 { 4 } else { 16 }).sum();
    assert_eq!(
        activated.gas_used,
        21_000 + calldata + 800 + 3 + 800 + 1_659_168 + 100 + 800 + work + 20_000 + 44_000 + 20_000 + 800 + 1125 + 1024 + 6
    );

    ok(chain.send(program, vec![]));
    let again = chain.activate(program);
    assert_eq!(again.output.as_ref(), ProgramUpToDate {}.abi_encode());
    // A second account with the same code needs no activation.
    let twin = chain.deploy_wasm(&wasm);
    ok(chain.send(twin, vec![]));

    assert_eq!(number(&ok(chain.send(ARB_WASM, programVersionCall { program }.abi_encode()))), 3);
    assert_eq!(number(&ok(chain.send(ARB_WASM, stylusVersionCall {}.abi_encode()))), 3);
    assert_eq!(number(&ok(chain.send(ARB_WASM, programMemoryFootprintCall { program }.abi_encode()))), 1);
    let size = number(&ok(chain.send(ARB_WASM, codehashAsmSizeCall { codehash: hash }.abi_encode())));
    assert_eq!(size, asm.div_ceil(1024) * 1024);
    let init = ok(chain.send(ARB_WASM, programInitGasCall { program }.abi_encode()));
    let (uncached, cached) = start_gas(&wasm);
    assert_eq!(U256::from_be_slice(&init.output[..32]), U256::from(uncached));
    assert_eq!(U256::from_be_slice(&init.output[32..]), U256::from(cached));
}

/// Instructions of `(func (param i32) (result i32) i32.const 0)` once instrumented: `const`, `end`; 12 for the one
/// block; 12 at the function's entry, 4 at its return, the return itself.
fn activation_ops() -> u64 {
    2 + 12 + 12 + 4 + 1
}

#[test]
fn programs_expire_and_are_kept_alive() {
    const DAY: u64 = 86_400;
    let mut chain = Chain::new();
    let program = chain.program(&module(""));
    let hash = chain.state.code_hash(program);
    let start = chain.time;
    let keepalive = |chain: &mut Chain| {
        let mut tx = chain.tx(Some(ARB_WASM), codehashKeepaliveCall { codehash: hash }.abi_encode());
        tx.value = U256::from(10).pow(U256::from(18));
        chain.run(&tx)
    };

    assert!(ProgramKeepaliveTooSoon::abi_decode(&keepalive(&mut chain).output).is_ok());
    chain.time = start + 31 * DAY + 3600;
    let left = number(&ok(chain.send(ARB_WASM, programTimeLeftCall { program }.abi_encode())));
    assert!(left > 333 * DAY && left <= 334 * DAY, "{left}");
    let extended = ok(keepalive(&mut chain));
    assert_eq!(extended.logs[0].data.topics()[0], ProgramLifetimeExtended::SIGNATURE_HASH);
    let left = number(&ok(chain.send(ARB_WASM, programTimeLeftCall { program }.abi_encode())));
    assert!(left > 364 * DAY, "{left}");

    // The program outlives its first year, not the second.
    chain.time = start + 366 * DAY;
    ok(chain.send(program, vec![]));
    chain.time = start + 31 * DAY + 3600 + 366 * DAY;
    let expired = chain.send(program, vec![]);
    assert!(matches!(&expired.status, Status::Halt(reason) if reason.starts_with("error ProgramExpired(")), "{expired:?}");
    let view = chain.send(ARB_WASM, programTimeLeftCall { program }.abi_encode());
    assert!(ProgramExpired::abi_decode(&view.output).is_ok());
    assert!(ProgramExpired::abi_decode(&keepalive(&mut chain).output).is_ok());
    ok(chain.activate(program));
    ok(chain.send(program, vec![]));
}

#[test]
fn caching_makes_the_start_cheap() {
    let mut chain = Chain::new();
    let program = chain.program(&module(""));
    let hash = chain.state.code_hash(program);
    let uncached = ok(chain.send(program, vec![]));
    assert!(!uncached.stylus[0].cached);

    // Only chain owners and cache managers may.
    let denied = chain.send(ARB_WASM_CACHE, cacheProgramCall { addr: program }.abi_encode());
    assert_eq!((denied.status, denied.gas_used), (Status::Revert, 32_000_000));

    chain.cache(program);
    let cached = ok(chain.send(program, vec![]));
    assert!(cached.stylus[0].cached);
    let init = uncached.gas_used - cached.gas_used;
    let wasm = wat::parse_str(module("")).unwrap();
    let (full, small) = start_gas(&wasm);
    assert_eq!(init, full - small);
    assert_eq!(number(&ok(chain.send(ARB_WASM_CACHE, codehashIsCachedCall { codehash: hash }.abi_encode()))), 1);

    let evicted = ok(chain.send(ARB_WASM_CACHE, evictCodehashCall { codehash: hash }.abi_encode()));
    assert_eq!(evicted.logs[0].data.topics()[0], UpdateProgramCache::SIGNATURE_HASH);
    assert_eq!(ok(chain.send(program, vec![])).gas_used, uncached.gas_used);
}

#[test]
fn a_block_remembers_its_programs() {
    let mut chain = Chain::new();
    let program = chain.program(&module(""));
    let run = |chain: &mut Chain| {
        let tx = chain.tx(Some(program), vec![]);
        ok(chain.run(&tx)).stylus[0].cached
    };
    assert!(!run(&mut chain));
    assert!(run(&mut chain));
    chain.mine();
    assert!(!run(&mut chain));

    // Before ArbOS 60 it didn't.
    let mut chain = Chain::of_version(51);
    let program = chain.program(&module(""));
    let run = |chain: &mut Chain| {
        let tx = chain.tx(Some(program), vec![]);
        ok(chain.run(&tx)).stylus[0].cached
    };
    assert!(!run(&mut chain));
    assert!(!run(&mut chain));
}

#[test]
fn earlier_versions_have_their_own_rules() {
    // Multi-value passed until Stylus version 3.
    let fields = "(func (result i32 i32) i32.const 1 i32.const 2)";
    Chain::of_version(51).program(&module(fields));
    // 128 KiB until ArbOS 60: 150 KiB of data in a page range that fits.
    let big = format!("(module (memory (export \"memory\") 3 3) (data (i32.const 0) \"{}\") {ENTRY})", "\\01".repeat(150 * 1024));
    let wasm = wat::parse_str(&big).unwrap();
    let mut old = Chain::of_version(51);
    let program = old.deploy_wasm(&wasm);
    assert_eq!(old.activate(program).status, Status::Revert);
    let mut new = Chain::of_version(60);
    let program = new.deploy_wasm(&wasm);
    // 150 KiB of data is more than 65,535 gas for each start, which can't be recorded.
    assert!(matches!(new.activate(program).status, Status::Halt(reason) if reason.contains("cached cost too high")));
}

#[test]
fn owners_can_pause_activation() {
    let mut chain = Chain::new();
    ok(chain.send(ARB_DEBUG, becomeChainOwnerCall {}.abi_encode()));
    let set = ok(chain.send(ARB_OWNER, setWasmActivationGasCall { gas: u64::MAX }.abi_encode()));
    assert_eq!(
        set.gas_used,
        21_000
            + setWasmActivationGasCall { gas: u64::MAX }.abi_encode().iter().map(|b| if *b == 0 { 4 } else { 16 }).sum::<u64>()
    );
    let program = chain.deploy_wasm(&wat::parse_str(module("")).unwrap());
    let paused = chain.activate(program);
    assert_eq!((paused.status, paused.gas_used), (Status::Revert, 32_000_000));
}

#[test]
fn a_program_in_pieces() {
    let mut chain = Chain::new();
    let wasm =
        wat::parse_str(module("(func (export \"more\") (param i64 i64) (drop (i64.mul (local.get 0) (local.get 1))))")).unwrap();
    let compressed = muster_devnode::stylus::deployed_code(&wasm)[4..].to_vec();
    let (first, second) = compressed.split_at(compressed.len() / 2);
    let piece = |chain: &mut Chain, data: &[u8]| {
        let mut code = vec![0xef, 0xf0, 0x01];
        code.extend(data);
        chain.deploy(&code)
    };
    let pieces = [piece(&mut chain, first), piece(&mut chain, second)];
    let root = |chain: &mut Chain, len: u32, pieces: &[Address]| {
        let mut code = vec![0xef, 0xf0, 0x02, 0x00];
        code.extend(len.to_be_bytes());
        pieces.iter().for_each(|piece| code.extend(piece.as_slice()));
        chain.deploy(&code)
    };
    let len = wasm.len() as u32;
    let program = root(&mut chain, len, &pieces);
    let in_pieces = ok(chain.activate(program));
    ok(chain.send(program, vec![]));
    let whole = chain.deploy_wasm(&wasm);
    let at_once = ok(chain.activate(whole));
    // Two cold accounts and one word of code each, and an address that needs as much calldata.
    let zeros = |a: Address| a.iter().filter(|b| **b == 0).count() as u64;
    let calldata = 12 * (zeros(whole) as i64 - zeros(program) as i64);
    let words: u64 = [first, second].iter().map(|p| (p.len() as u64 + 3).div_ceil(32)).sum();
    assert_eq!(in_pieces.gas_used as i64 - at_once.gas_used as i64, 2 * 2600 + 3 * words as i64 + calldata);

    for (len, pieces) in [
        (len + 1, &pieces[..]),
        (len - 1, &pieces[..]),
        (256 * 1024 + 1, &pieces[..]),
        (len, &[]),
        (len, &[pieces[0], whole][..]),
        (len, &[pieces[0]; 5][..]),
    ] {
        let program = root(&mut chain, len, pieces);
        assert_eq!(chain.activate(program).status, Status::Revert);
    }
    assert_eq!(chain.activate(pieces[0]).status, Status::Revert);
    // Before ArbOS 60 neither can be deployed.
    let mut old = Chain::of_version(51);
    let tx = old.tx(None, init_code(&[0xef, 0xf0, 0x01, 1, 2]));
    assert!(matches!(old.run(&tx).status, Status::Halt(_)));
}
