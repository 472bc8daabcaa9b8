//! Small programs and the ink they must cost, added up by hand from the price lists.
//!
//! Prices in ink. A basic block: 2,450 and its instructions; `const`, `end`, `nop` 1; `drop` 9; `call` 3,800. A host
//! function: 8,400, 5,040 per pointer, 59,673 if it asks the EVM; writing n bytes into the program 5,040 + 30 (n - 32),
//! reading them 16,381 + 55 (n - 32). Gas of the EVM is 10,000 ink.

use alloy_primitives::{address, Address, B256, U256};

use super::program::IMPORTS;

/// One gas.
pub const GAS: u64 = 10_000;
/// Header of a basic block.
pub const BLOCK: u64 = 2450;
/// The instruction `call`.
pub const CALL: u64 = 3800;
const HOSTIO: u64 = 8400;
const PTR: u64 = 5040;
const API: u64 = 59_673;

/// A block that puts `n` constants down and calls a host function.
const fn call(n: u64) -> u64 {
    BLOCK + n + CALL
}

/// The last block of every program here: `i32.const 0`, `end`.
const END: u64 = BLOCK + 2;
/// The same after dropping a result.
const DROP_END: u64 = END + 9;

const fn write(n: u64) -> u64 {
    5040 + if n > 32 { 30 * (n - 32) } else { 0 }
}

const fn read(n: u64) -> u64 {
    16_381 + if n > 32 { 55 * (n - 32) } else { 0 }
}

/// An account with balance 5 and the code [`EVM_CODE`].
pub const OTHER: Address = address!("00000000000000000000000000000000000c0de5");
/// An account that doesn't exist.
pub const NOBODY: Address = address!("00000000000000000000000000000000000b0d1e");
/// An account whose code is INVALID, which takes all gas.
pub const BURNER: Address = address!("000000000000000000000000000000000000fefe");
/// Returns 64 bytes of zeros: `PUSH1 64, PUSH0, RETURN`, 3 + 2 + 0 gas and 6 for two words of memory.
pub const EVM_CODE: [u8; 4] = [0x60, 0x40, 0x5f, 0xf3];
/// Gas of [`EVM_CODE`].
pub const EVM_GAS: u64 = 3 + 2 + 6;

/// How a case must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Status 0.
    Success,
    /// Another status: reverts with the data it wrote, keeping the gas that is left.
    Revert,
    /// Reverts without data, keeping the gas that is left.
    Failure,
    /// Takes all gas.
    Burnt,
}

pub struct Case {
    pub name: &'static str,
    /// Module fields after the imports: `$name` is any host function.
    pub body: &'static str,
    pub calldata: usize,
    pub value: u64,
    /// Slot 0 is in the access list.
    pub warm: bool,
    /// Called through [`STATIC_CALLER`].
    pub is_static: bool,
    /// Gas left for the program once it has begun; plenty if nothing is said.
    pub gas: Option<u64>,
    /// The least gas the call costs, start included.
    pub floor: u64,
    /// Terms of the sum.
    pub ink: Vec<(&'static str, u64)>,
    pub end: End,
}

impl Case {
    fn new(name: &'static str, body: &'static str, ink: Vec<(&'static str, u64)>) -> Self {
        Self { name, body, calldata: 0, value: 0, warm: false, is_static: false, gas: None, floor: 0, ink, end: End::Success }
    }

    fn fails(mut self) -> Self {
        self.end = End::Failure;
        self
    }

    fn burns(mut self) -> Self {
        self.end = End::Burnt;
        self
    }

    fn reverts(mut self) -> Self {
        self.end = End::Revert;
        self
    }

    fn in_a_static_call(mut self) -> Self {
        self.is_static = true;
        self
    }

    fn with_gas(mut self, gas: u64) -> Self {
        self.gas = Some(gas);
        self
    }

    pub fn total(&self) -> u64 {
        self.ink.iter().map(|(_, ink)| ink).sum()
    }

    pub fn wat(&self) -> String {
        let memory = if self.body.contains("(memory (export") { "" } else { r#"(memory (export "memory") 1 1)"# };
        format!("(module {IMPORTS} {memory} {DATA} {})", self.body)
    }
}

/// Calls the program at the address in its middle with all gas, statically; reverts if that fails.
const STATIC_CALLER: ([u8; 5], [u8; 10]) =
    ([0x5f, 0x5f, 0x5f, 0x5f, 0x73], [0x5a, 0xfa, 0x60, 0x21, 0x57, 0x5f, 0x5f, 0xfd, 0x5b, 0x00]);
/// Its cost: 4 PUSH0, PUSH20, GAS, STATICCALL of a cold account, PUSH1, JUMPI, and JUMPDEST, STOP or PUSH0, PUSH0, REVERT.
const fn static_caller_gas(success: bool) -> u64 {
    4 * 2 + 3 + 2 + 2600 + 3 + 10 + if success { 1 } else { 4 }
}

/// Address [`OTHER`] at 1024, [`NOBODY`] at 1056, the numbers 7 at 1088 and 3 at 1120 as 256-bit words. ArbosTest's address at 1184 and the
/// selector of `burnArbGas(uint256)` after it. The address of SHA-256 at 1248, [`BURNER`] at 1280. Init code that returns one byte at 1312,
/// and one that reverts with 32 at 1316.
const DATA: &str = r#"
    (data (i32.const 1024) "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\0c\0d\e5")
    (data (i32.const 1056) "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\0b\0d\1e")
    (data (i32.const 1119) "\07")
    (data (i32.const 1151) "\03")
    (data (i32.const 1203) "\69\bb\34\80\f9")
    (data (i32.const 1267) "\02")
    (data (i32.const 1298) "\fe\fe")
    (data (i32.const 1312) "\60\01\5f\f3\60\20\5f\fd")
"#;

macro_rules! main {
    ($($text:literal)*) => {
        concat!(r#"(func (export "user_entrypoint") (param i32) (result i32) "#, $($text, " ",)* ")")
    };
}

/// Sets up the state that a program finds.
pub fn prepare(state: &mut muster_devnode::state::State) {
    state.set_balance(OTHER, U256::from(5));
    state.set_code(OTHER, EVM_CODE.to_vec().into());
    state.set_code(BURNER, vec![0xfe].into());
}

#[rustfmt::skip]
pub fn cases() -> Vec<Case> {
    let mut all = vec![
        Case::new("nothing", main!("i32.const 0"), vec![("block of const, end", END)]),

        // Frame
        Case { calldata: 40, ..Case::new("read_args, 40 bytes",
            main!("(call $read_args (i32.const 0)) i32.const 0"),
            vec![("block", call(1)), ("hostio", HOSTIO), ("write 40", write(40)), ("end", END)]) },
        Case::new("write_result, 100 bytes",
            main!("(call $write_result (i32.const 0) (i32.const 100)) i32.const 0"),
            vec![("block", call(2)), ("hostio", HOSTIO), ("read 100, twice", 2 * read(100)), ("end", END)]),
        Case::new("exit_early",
            main!("(call $exit_early (i32.const 0)) i32.const 1"),
            vec![("block; the call is free and the rest doesn't run", call(1))]),
        Case::new("pay_for_memory_grow, 0 pages",
            main!("(call $pay_for_memory_grow (i32.const 0)) i32.const 0"),
            vec![("block", call(1)), ("hostio", HOSTIO), ("end", END)]),
        Case::new("memory.grow by 3 pages from 1",
            concat!(r#"(memory (export "memory") 1)"#, main!("(drop (memory.grow (i32.const 3))) i32.const 0")),
            vec![("block of const, memory.grow 8,050, drop, const, end", BLOCK + 1 + 8050 + 9 + 2),
                 ("2 pages beyond the free ones", 2000 * GAS)]),
        Case::new("memory.grow by 20 pages from 1",
            concat!(r#"(memory (export "memory") 1)"#, main!("(drop (memory.grow (i32.const 20))) i32.const 0")),
            vec![("block", BLOCK + 1 + 8050 + 9 + 2), ("19 pages", 19_000 * GAS), ("ramp 17 - 1", 16 * GAS)]),

        // Storage
        Case::new("storage_load, cold",
            main!("(call $load (i32.const 0) (i32.const 64)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 2 pointers", HOSTIO + 2 * PTR), ("cold slot", 2100 * GAS),
                 ("EVM API, whole gas", 5 * GAS), ("end", END)]),
        Case { warm: true, ..Case::new("storage_load, warm",
            main!("(call $load (i32.const 0) (i32.const 64)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 2 pointers", HOSTIO + 2 * PTR), ("warm slot", 100 * GAS),
                 ("EVM API, whole gas", 5 * GAS), ("end", END)]) },
        Case::new("storage_load, again in the frame",
            main!("(call $load (i32.const 0) (i32.const 64)) (call $load (i32.const 0) (i32.const 64)) i32.const 0"),
            vec![("blocks", 2 * call(2)), ("hostio, 2 pointers", 2 * (HOSTIO + 2 * PTR)),
                 ("one cold slot", 2105 * GAS), ("end", END)]),
        Case::new("storage_cache, never flushed",
            main!("(call $cache (i32.const 0) (i32.const 1088)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 2 pointers", HOSTIO + 2 * PTR), ("end", END)]),
        Case::new("storage_cache and flush, new slot",
            main!("(call $cache (i32.const 0) (i32.const 1088)) (call $flush (i32.const 0)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 2 pointers", HOSTIO + 2 * PTR),
                 ("block", call(1)), ("hostio, EVM API", HOSTIO + API), ("cold, from zero", 22_100 * GAS), ("end", END)]),
        Case::new("load, store the same, flush",
            main!("(call $load (i32.const 0) (i32.const 64)) (call $cache (i32.const 0) (i32.const 64))"
                  "(call $flush (i32.const 1)) i32.const 0"),
            vec![("load", call(2) + HOSTIO + 2 * PTR + 2105 * GAS), ("cache", call(2) + HOSTIO + 2 * PTR),
                 ("flush, nothing to write", call(1) + HOSTIO + API), ("end", END)]),
        Case::new("10 writes to the cache",
            main!("(local i32) (loop (call $cache (i32.const 0) (i32.const 1088))"
                  "(br_if 0 (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 10)))) i32.const 0"),
            vec![("block of loop", BLOCK + 1), ("10 calls", 10 * (call(2) + HOSTIO + 2 * PTR)),
                 ("10 x get 75, const, add 70, tee 75, const, lt 170, br_if 765", 10 * (BLOCK + 75 + 1 + 70 + 75 + 1 + 170 + 765)),
                 ("9th and 10th", 2 * 7 * GAS), ("end of loop", BLOCK + 1), ("end", END)]),
        Case::new("130 reads of the cache",
            main!("(local i32) (loop (call $load (i32.const 0) (i32.const 64))"
                  "(br_if 0 (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 130)))) i32.const 0"),
            vec![("block of loop", BLOCK + 1), ("130 calls", 130 * (call(2) + HOSTIO + 2 * PTR)),
                 ("130 x the loop's condition", 130 * (BLOCK + 75 + 1 + 70 + 75 + 1 + 170 + 765)),
                 ("one cold slot", 2105 * GAS), ("33rd to 128th", 96 * 2 * GAS), ("129th, 130th", 2 * 10 * GAS),
                 ("end of loop", BLOCK + 1), ("end", END)]),
        Case::new("transient_load",
            main!("(call $tload (i32.const 0) (i32.const 64)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 2 pointers, API", HOSTIO + 2 * PTR + API), ("TLOAD", 100 * GAS), ("end", END)]),
        Case::new("transient_store",
            main!("(call $tstore (i32.const 0) (i32.const 1088)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 2 pointers, API", HOSTIO + 2 * PTR + API), ("TSTORE", 100 * GAS), ("end", END)]),

        // Calls
        Case::new("call_contract, EVM code",
            main!("(drop (call $call_contract (i32.const 1024) (i32.const 0) (i32.const 36) (i32.const 0) (i64.const -1) (i32.const 512))) i32.const 0"),
            vec![("block", call(6)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 36, twice", 2 * read(36)),
                 ("cold account", 2600 * GAS), ("callee", EVM_GAS * GAS), ("end", DROP_END)]),
        Case::new("call_contract, no gas for the callee",
            main!("(drop (call $call_contract (i32.const 1024) (i32.const 0) (i32.const 0) (i32.const 0) (i64.const 10) (i32.const 512))) i32.const 0"),
            vec![("block", call(6)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 0, twice", 2 * read(0)),
                 ("cold account", 2600 * GAS), ("the callee's 10 gas", 10 * GAS), ("end", DROP_END)]),
        Case { value: 7, ..Case::new("call_contract, value to nobody",
            main!("(drop (call $call_contract (i32.const 1056) (i32.const 0) (i32.const 0) (i32.const 1088) (i64.const 0) (i32.const 512))) i32.const 0"),
            vec![("block", call(6)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 0, twice", 2 * read(0)),
                 ("cold account", 2600 * GAS), ("value", 9000 * GAS), ("new account", 25_000 * GAS), ("end", DROP_END)]) },
        Case { value: 7, ..Case::new("call_contract, value to a contract: the stipend pays for it",
            main!("(drop (call $call_contract (i32.const 1024) (i32.const 0) (i32.const 0) (i32.const 1088) (i64.const 0) (i32.const 512))) i32.const 0"),
            vec![("block", call(6)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 0, twice", 2 * read(0)),
                 ("cold account", 2600 * GAS), ("value", 9000 * GAS), ("callee, charged although the stipend covers it", EVM_GAS * GAS),
                 ("end", DROP_END)]) },
        Case::new("call_contract, more value than there is",
            main!("(drop (call $call_contract (i32.const 1024) (i32.const 0) (i32.const 0) (i32.const 1088) (i64.const 0) (i32.const 512))) i32.const 0"),
            vec![("block", call(6)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 0, twice", 2 * read(0)),
                 ("cold account", 2600 * GAS), ("value", 9000 * GAS), ("end", DROP_END)]),
        Case::new("delegate_call_contract",
            main!("(drop (call $delegate (i32.const 1024) (i32.const 0) (i32.const 0) (i64.const -1) (i32.const 512))) i32.const 0"),
            vec![("block", call(5)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 0, twice", 2 * read(0)),
                 ("cold account", 2600 * GAS), ("callee", EVM_GAS * GAS), ("end", DROP_END)]),
        Case::new("static_call_contract, twice",
            main!("(drop (call $static (i32.const 1024) (i32.const 0) (i32.const 0) (i64.const -1) (i32.const 512)))"
                  "(drop (call $static (i32.const 1024) (i32.const 0) (i32.const 0) (i64.const -1) (i32.const 512))) i32.const 0"),
            vec![("block", call(5)), ("block, with a drop", call(5) + 9), ("hostio, 3 pointers, API", 2 * (HOSTIO + 3 * PTR + API)),
                 ("read 0, four times", 4 * read(0)), ("cold, then warm account", 2700 * GAS), ("callee", 2 * EVM_GAS * GAS), ("end", DROP_END)]),
        Case::new("return_data_size and read_return_data after a call, 50 of 64 bytes",
            main!("(drop (call $static (i32.const 1024) (i32.const 0) (i32.const 0) (i64.const -1) (i32.const 512)))"
                  "(drop (call $return_data_size)) (drop (call $read_return_data (i32.const 0) (i32.const 14) (i32.const 99))) i32.const 0"),
            vec![("call", call(5) + HOSTIO + 3 * PTR + API + 2 * read(0) + (2600 + EVM_GAS) * GAS),
                 ("return_data_size", call(0) + 9 + HOSTIO), ("read_return_data", call(3) + 9 + HOSTIO + API), ("write 50", write(50)),
                 ("end", DROP_END)]),
        Case::new("create1, no code",
            main!("(call $create1 (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 512) (i32.const 600)) i32.const 0"),
            vec![("block", call(5)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 0, twice", 2 * read(0)),
                 ("CREATE", 32_000 * GAS), ("end", END)]),
        Case::new("create2, 33 bytes that stop at once",
            main!("(call $create2 (i32.const 0) (i32.const 33) (i32.const 0) (i32.const 0) (i32.const 512) (i32.const 600)) i32.const 0"),
            vec![("block", call(6)), ("hostio, 4 pointers, API", HOSTIO + 4 * PTR + API), ("read 33, twice", 2 * read(33)),
                 ("CREATE2", 32_000 * GAS), ("hash of 2 words", 12 * GAS), ("end", END)]),

        Case::new("create1, one byte of code",
            main!("(call $create1 (i32.const 1312) (i32.const 4) (i32.const 0) (i32.const 512) (i32.const 600)) i32.const 0"),
            vec![("block", call(5)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 4, twice", 2 * read(4)),
                 ("CREATE", 32_000 * GAS), ("init code: PUSH1 3, PUSH0 2, one word of memory 3", 8 * GAS),
                 ("one byte kept", 200 * GAS), ("end", END)]),
        Case::new("create1 that reverts with 32 bytes, read afterwards",
            main!("(call $create1 (i32.const 1316) (i32.const 4) (i32.const 0) (i32.const 512) (i32.const 600))"
                  "(drop (call $read_return_data (i32.const 0) (i32.const 0) (i32.load (i32.const 600)))) i32.const 0"),
            vec![("block", call(5)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 4, twice", 2 * read(4)),
                 ("CREATE", 32_000 * GAS), ("init code", 8 * GAS),
                 ("block, with a load 670", call(3) + 670), ("hostio, API", HOSTIO + API), ("write 32", write(32)), ("end", DROP_END)]),
        Case::new("create1 with more value than there is",
            main!("(call $create1 (i32.const 1312) (i32.const 4) (i32.const 1088) (i32.const 512) (i32.const 600)) i32.const 0"),
            vec![("block", call(5)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 4, twice", 2 * read(4)),
                 ("CREATE", 32_000 * GAS), ("end", END)]),
        Case::new("call_contract, SHA-256 of nothing",
            main!("(drop (call $call_contract (i32.const 1248) (i32.const 0) (i32.const 0) (i32.const 0) (i64.const -1) (i32.const 512))) i32.const 0"),
            vec![("block", call(6)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 0, twice", 2 * read(0)),
                 ("warm account", 100 * GAS), ("SHA-256", 60 * GAS), ("end", DROP_END)]),
        // 1,000,000,000 ink less 122,211 are 99,987 whole gas; 2,600 for the account; 63/64 of 97,387 are 95,865.
        Case::new("call_contract that takes all gas: a 64th is kept",
            main!("(drop (call $call_contract (i32.const 1280) (i32.const 0) (i32.const 0) (i32.const 0) (i64.const -1) (i32.const 512))) i32.const 0"),
            vec![("block", call(6)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 0, twice", 2 * read(0)),
                 ("cold account", 2600 * GAS), ("63/64 of the rest", 95_865 * GAS), ("end", DROP_END)]).with_gas(100_000),

        // In a static call
        Case::new("static: transient_load, account_balance",
            main!("(call $tload (i32.const 0) (i32.const 64)) (call $account_balance (i32.const 1024) (i32.const 0)) i32.const 0"),
            vec![("blocks", 2 * call(2)), ("hostio, 2 pointers, API, twice", 2 * (HOSTIO + 2 * PTR + API)),
                 ("TLOAD, cold account", 2700 * GAS), ("end", END)]).in_a_static_call(),
        Case::new("static: call_contract with value fails and costs nothing",
            main!("(drop (call $call_contract (i32.const 1024) (i32.const 0) (i32.const 0) (i32.const 1088) (i64.const -1) (i32.const 512))) i32.const 0"),
            vec![("block", call(6)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 0, twice", 2 * read(0)),
                 ("end", DROP_END)]).in_a_static_call(),
        Case::new("static: storage_flush of a change",
            main!("(call $cache (i32.const 0) (i32.const 1088)) (call $flush (i32.const 0)) i32.const 0"),
            vec![("cache", call(2) + HOSTIO + 2 * PTR), ("flush", call(1) + HOSTIO + API)]).fails().in_a_static_call(),
        Case::new("static: storage_flush of nothing",
            main!("(call $load (i32.const 0) (i32.const 64)) (call $flush (i32.const 0)) i32.const 0"),
            vec![("load", call(2) + HOSTIO + 2 * PTR + 2105 * GAS), ("flush", call(1) + HOSTIO + API), ("end", END)]).in_a_static_call(),
        Case::new("static: transient_store",
            main!("(call $tstore (i32.const 0) (i32.const 1088)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 2 pointers, API", HOSTIO + 2 * PTR + API), ("TSTORE", 100 * GAS)]).fails().in_a_static_call(),
        Case::new("static: emit_log",
            main!("(call $emit_log (i32.const 0) (i32.const 10) (i32.const 0)) i32.const 0"),
            vec![("block", call(3)), ("hostio, API", HOSTIO + API), ("read 10", read(10)), ("LOG0", (375 + 80) * GAS)]).fails().in_a_static_call(),
        Case::new("static: create1",
            main!("(call $create1 (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 512) (i32.const 600)) i32.const 0"),
            vec![("block", call(5)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 0, twice", 2 * read(0))]).fails().in_a_static_call(),
        Case::new("static: delegate_call_contract stays static",
            main!("(drop (call $delegate (i32.const 1024) (i32.const 0) (i32.const 0) (i64.const -1) (i32.const 512))) i32.const 0"),
            vec![("block", call(5)), ("hostio, 3 pointers, API", HOSTIO + 3 * PTR + API), ("read 0, twice", 2 * read(0)),
                 ("cold account", 2600 * GAS), ("callee", EVM_GAS * GAS), ("end", DROP_END)]).in_a_static_call(),

        // Logs
        Case::new("emit_log, 2 topics, 10 bytes",
            main!("(call $emit_log (i32.const 0) (i32.const 74) (i32.const 2)) i32.const 0"),
            vec![("block", call(3)), ("hostio, API", HOSTIO + API), ("read 74", read(74)), ("LOG2", (375 * 3 + 8 * 10) * GAS), ("end", END)]),

        // Accounts
        Case::new("account_balance, cold",
            main!("(call $account_balance (i32.const 1024) (i32.const 0)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 2 pointers, API", HOSTIO + 2 * PTR + API), ("cold account", 2600 * GAS), ("end", END)]),
        Case::new("account_codehash, its own: warm",
            main!("(call $contract_address (i32.const 0)) (call $account_codehash (i32.const 0) (i32.const 32)) i32.const 0"),
            vec![("contract_address", call(1) + HOSTIO + PTR), ("block", call(2)), ("hostio, 2 pointers, API", HOSTIO + 2 * PTR + API),
                 ("warm account", 100 * GAS), ("end", END)]),
        Case::new("account_code, 4 bytes, cold",
            main!("(drop (call $account_code (i32.const 1024) (i32.const 0) (i32.const 100) (i32.const 0))) i32.const 0"),
            vec![("block", call(4)), ("hostio, API", HOSTIO + API), ("code of a cold account", 3300 * GAS), ("write 4", write(4)), ("end", DROP_END)]),
        Case::new("account_code_size, twice: the frame remembers the last code",
            main!("(drop (call $account_code_size (i32.const 1024))) (drop (call $account_code_size (i32.const 1024))) i32.const 0"),
            vec![("blocks", 2 * call(1) + 9), ("hostio, API", 2 * (HOSTIO + API)), ("code of a cold account, once", 3300 * GAS), ("end", DROP_END)]),
        Case::new("account_code_size of nobody, twice: nothing to remember",
            main!("(drop (call $account_code_size (i32.const 1056))) (drop (call $account_code_size (i32.const 1056))) i32.const 0"),
            vec![("blocks", 2 * call(1) + 9), ("hostio, API", 2 * (HOSTIO + API)), ("cold, then warm", (3300 + 800) * GAS), ("end", DROP_END)]),

        // Arithmetic
        Case::new("math_div", main!("(call $math_div (i32.const 1088) (i32.const 1120)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 3 pointers, division", HOSTIO + 3 * PTR + 20_000), ("end", END)]),
        Case::new("math_mod", main!("(call $math_mod (i32.const 1088) (i32.const 1120)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 3 pointers, division", HOSTIO + 3 * PTR + 20_000), ("end", END)]),
        Case::new("math_pow, exponent 3", main!("(call $math_pow (i32.const 1088) (i32.const 1120)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 3 pointers", HOSTIO + 3 * PTR), ("1 byte of exponent counts twice", 3000 + 2 * 17_500), ("end", END)]),
        Case::new("math_pow, exponent 0", main!("(call $math_pow (i32.const 1088) (i32.const 0)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 3 pointers", HOSTIO + 3 * PTR), ("no byte of exponent counts once", 3000 + 17_500), ("end", END)]),
        Case::new("math_add_mod", main!("(call $math_add_mod (i32.const 1088) (i32.const 1120) (i32.const 1120)) i32.const 0"),
            vec![("block", call(3)), ("hostio, 4 pointers", HOSTIO + 4 * PTR + 21_000), ("end", END)]),
        Case::new("math_mul_mod", main!("(call $math_mul_mod (i32.const 1088) (i32.const 1120) (i32.const 1120)) i32.const 0"),
            vec![("block", call(3)), ("hostio, 4 pointers", HOSTIO + 4 * PTR + 24_100), ("end", END)]),
        Case::new("native_keccak256, 64 bytes", main!("(call $keccak (i32.const 0) (i32.const 64) (i32.const 96)) i32.const 0"),
            vec![("block", call(3)), ("2 words", 121_800), ("end", END)]),
        Case::new("native_keccak256, 100 bytes", main!("(call $keccak (i32.const 0) (i32.const 100) (i32.const 128)) i32.const 0"),
            vec![("block", call(3)), ("4 words", 121_800 + 2 * 21_000), ("end", END)]),

        // Instructions
        Case::new("arithmetic on i32",
            main!("(drop (i32.add (i32.mul (i32.const 3) (i32.const 5)) (i32.div_u (i32.popcnt (i32.const 9)) (i32.clz (i32.const 1))))) i32.const 0"),
            vec![("block: 4 const, mul 160, popcnt 2,650, clz 210, div 1,120, add 70, drop, const, end",
                  BLOCK + 4 + 160 + 2650 + 210 + 1120 + 70 + 9 + 2)]),
        Case::new("arithmetic on i64",
            main!("(drop (i64.xor (i64.mul (i64.const 3) (i64.const 5)) (i64.rem_u (i64.popcnt (i64.const 9)) (i64.extend_i32_u (i32.ctz (i32.const 1073741824)))))) i32.const 0"),
            vec![("block: 4 const, mul 160, popcnt 6,000, ctz 210, extend 100, rem 1,270, xor 100, drop, const, end",
                  BLOCK + 4 + 160 + 6000 + 210 + 100 + 1270 + 100 + 9 + 2)]),
        Case::new("comparisons, select, sign extension",
            main!("(drop (select (i32.const 1) (i32.extend8_s (i32.const 200)) (i64.gt_s (i64.const 1) (i64.const 2)))) (drop (i32.eqz (i32.wrap_i64 (i64.const 5)))) i32.const 0"),
            vec![("block: 4 const, extend8 100, gt 225, select 1,250, drop, const, wrap 100, eqz 170, drop, const, end",
                  BLOCK + 4 + 100 + 225 + 1250 + 9 + 1 + 100 + 170 + 9 + 2)]),
        Case::new("memory: loads, stores, size",
            main!("(i32.store (i32.const 0) (i32.const 1)) (i64.store8 (i32.const 0) (i64.const 1)) (drop (i32.load16_u (i32.const 0))) (drop (i64.load (i32.const 0))) (drop (memory.size)) i32.const 0"),
            vec![("block: 6 const, store 825, store 950, load 670, load 680, size 3,000, 3 drop, const, end",
                  BLOCK + 6 + 825 + 950 + 670 + 680 + 3000 + 27 + 2)]),
        Case::new("memory.copy of 100 bytes, memory.fill of 50",
            main!("(memory.copy (i32.const 0) (i32.const 200) (i32.const 100)) (memory.fill (i32.const 0) (i32.const 7) (i32.const 50)) i32.const 0"),
            vec![("block: 6 const, copy 950, fill 950, const, end", BLOCK + 6 + 1900 + 2), ("150 bytes", 150 * 100)]),
        Case::new("locals and globals",
            concat!("(global $g (mut i64) (i64.const 1))",
                    main!("(local i64) (local.set 1 (global.get $g)) (global.set $g (local.tee 1 (local.get 1))) i32.const 0")),
            vec![("block: global.get 225, set 210, get 75, tee 75, global.set 575, const, end", BLOCK + 225 + 210 + 75 + 75 + 575 + 2)]),
        Case::new("if and else",
            main!("(if (result i32) (i32.const 1) (then (i32.const 5)) (else (i32.const 6))) drop i32.const 0"),
            vec![("block: const, if 765", BLOCK + 766), ("block: const, else", BLOCK + 2), ("block: drop, const, end", DROP_END)]),
        Case::new("br_table with 3 targets and a default",
            main!("(block (block (block (br_table 0 1 2 0 (i32.const 1))))) i32.const 0"),
            vec![("block: 3 block, const, br_table 2,400 + 3 x 325", BLOCK + 3 + 1 + 2400 + 975),
                 ("end of the outermost block", BLOCK + 1), ("end", END)]),
        Case::new("call and return of a function of its own",
            concat!("(func $f (param i32 i32) (result i32) (return (i32.const 1)))", main!("(drop (call $f (i32.const 1) (i32.const 2))) i32.const 0")),
            vec![("block: 2 const, call", call(2)), ("block: const, return", BLOCK + 2), ("end", DROP_END)]),
        Case::new("call_indirect with 2 parameters",
            concat!("(type $t (func (param i32 i32))) (table 1 funcref) (elem (i32.const 0) $f) (func $f (type $t))",
                    main!("(call_indirect (type $t) (i32.const 1) (i32.const 2) (i32.const 0)) i32.const 0")),
            vec![("block: 3 const, call_indirect 13,610 + 2 x 650", BLOCK + 3 + 13_610 + 1300), ("block: end", BLOCK + 1), ("end", END)]),
        Case::new("loop of a million turns",
            main!("(local i32) (loop (br_if 0 (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 1000000)))) i32.const 0"),
            vec![("block of loop", BLOCK + 1), ("a million conditions", 1_000_000 * (BLOCK + 75 + 1 + 70 + 75 + 1 + 170 + 765)),
                 ("end of loop", BLOCK + 1), ("end", END)]),

        // Failures
        Case::new("unreachable", main!("unreachable"),
            vec![("block: unreachable, end", BLOCK + 2)]).fails(),
        Case::new("load outside memory", main!("(i32.load (i32.const -1))"),
            vec![("block: const, load, end", BLOCK + 1 + 670 + 1)]).fails(),
        Case::new("division by zero", main!("(i32.div_u (i32.const 1) (i32.const 0))"),
            vec![("block: 2 const, div, end", BLOCK + 2 + 1120 + 1)]).fails(),
        Case::new("pointer outside memory", main!("(call $write_result (i32.const 65536) (i32.const 1)) i32.const 0"),
            vec![("block", call(2)), ("hostio", HOSTIO), ("read 1, twice", 2 * read(1))]).fails(),
        Case::new("five topics", main!("(call $emit_log (i32.const 0) (i32.const 160) (i32.const 5)) i32.const 0"),
            vec![("block", call(3)), ("hostio, API", HOSTIO + API)]).fails(),
        Case::new("topics longer than the data", main!("(call $emit_log (i32.const 0) (i32.const 63) (i32.const 2)) i32.const 0"),
            vec![("block", call(3)), ("hostio, API", HOSTIO + API)]).fails(),
        Case::new("signed division that overflows", main!("(i32.div_s (i32.const -2147483648) (i32.const -1))"),
            vec![("block: 2 const, div, end", BLOCK + 2 + 1120 + 1)]).fails(),
        Case::new("call_indirect of an empty entry",
            concat!("(type $t (func)) (table 1 funcref)", main!("(call_indirect (type $t) (i32.const 0)) i32.const 0")),
            vec![("block: const, call_indirect", BLOCK + 1 + 13_610)]).fails(),
        Case::new("call_indirect of another type",
            concat!("(type $t (func (param i32))) (table 1 funcref) (elem (i32.const 0) $f) (func $f)",
                    main!("(call_indirect (type $t) (i32.const 1) (i32.const 0)) i32.const 0")),
            vec![("block: 2 const, call_indirect 13,610 + 650", BLOCK + 2 + 14_260)]).fails(),
        Case::new("call_indirect beyond the table",
            concat!("(type $t (func)) (table 1 funcref)", main!("(call_indirect (type $t) (i32.const 1)) i32.const 0")),
            vec![("block: const, call_indirect", BLOCK + 1 + 13_610)]).fails(),
        Case::new("memory.copy that leaves memory is paid for first",
            main!("(memory.copy (i32.const 0) (i32.const 65530) (i32.const 7)) i32.const 0"),
            vec![("block: 3 const, copy 950, const, end", BLOCK + 3 + 950 + 2), ("7 bytes", 700)]).fails(),
        Case::new("native_keccak256 of memory that isn't there",
            main!("(call $keccak (i32.const 65530) (i32.const 7) (i32.const 0)) i32.const 0"),
            vec![("block", call(3)), ("one word", 121_800)]).fails(),
        Case::new("storage_load to memory that isn't there",
            main!("(call $load (i32.const 0) (i32.const 65505)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 2 pointers", HOSTIO + 2 * PTR), ("cold slot, EVM API", 2105 * GAS)]).fails(),
        Case::new("status 1 with 32 bytes", main!("(call $write_result (i32.const 0) (i32.const 32)) i32.const 1"),
            vec![("block", call(2)), ("hostio", HOSTIO), ("read 32, twice", 2 * read(32)), ("end", END)]).reverts(),
        Case::new("exit_early with status 7, after a result",
            main!("(call $write_result (i32.const 0) (i32.const 32)) (call $exit_early (i32.const 7)) i32.const 0"),
            vec![("block", call(2)), ("hostio", HOSTIO), ("read 32, twice", 2 * read(32)), ("block", call(1))]).reverts(),
        // 1,875 words: 3 x 1,875 + 1,875^2 / 512 = 12,491 gas, start included.
        Case { floor: 12_491, ..Case::new("60,000 bytes of result cost what EVM memory does",
            main!("(call $write_result (i32.const 0) (i32.const 60000)) i32.const 0"),
            vec![("block", call(2)), ("hostio", HOSTIO), ("read 60,000, twice", 2 * read(60_000)), ("end", END)]) },
        Case::new("memory.grow beyond the maximum is paid for and fails",
            concat!(r#"(memory (export "memory") 1 3)"#, main!("(drop (memory.grow (i32.const 5))) i32.const 0")),
            vec![("block", BLOCK + 1 + 8050 + 9 + 2), ("4 pages beyond the free ones", 4000 * GAS), ("ramp 2 - 1", GAS)]),
        // 24,732 ink before the check for 2,115 gas: 2,118 suffice, 2,117 don't.
        Case::new("storage_load with 2,118 gas", main!("(call $load (i32.const 0) (i32.const 64)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 2 pointers", HOSTIO + 2 * PTR), ("cold slot, EVM API", 2105 * GAS), ("end", END)]).with_gas(2118),
        Case { warm: true, ..Case::new("storage_load with 2,117 gas, although the slot is warm",
            main!("(call $load (i32.const 0) (i32.const 64)) i32.const 0"), vec![]).burns().with_gas(2117) },
        // The same 24,732, and 2,310 gas to be left.
        Case::new("storage_cache with 2,313 gas", main!("(call $cache (i32.const 0) (i32.const 1088)) i32.const 0"),
            vec![("block", call(2)), ("hostio, 2 pointers", HOSTIO + 2 * PTR), ("end", END)]).with_gas(2313),
        Case::new("storage_cache with 2,312 gas", main!("(call $cache (i32.const 0) (i32.const 1088)) i32.const 0"),
            vec![]).burns().with_gas(2312),
        // 24,732 and 74,324 ink before the write: 22,111 gas leave 22,101, one for the end; 22,109 leave 22,099.
        Case::new("storage_flush with just enough gas", main!("(call $cache (i32.const 0) (i32.const 1088)) (call $flush (i32.const 0)) i32.const 0"),
            vec![("cache", call(2) + HOSTIO + 2 * PTR), ("flush", call(1) + HOSTIO + API), ("cold, from zero", 22_100 * GAS), ("end", END)])
            .with_gas(22_111),
        Case::new("storage_flush with one gas too little", main!("(call $cache (i32.const 0) (i32.const 1088)) (call $flush (i32.const 0)) i32.const 0"),
            vec![]).burns().with_gas(22_109),
        Case::new("account_balance of a warm account with less than 2,600 gas",
            main!("(call $contract_address (i32.const 0)) (call $account_balance (i32.const 0) (i32.const 32)) i32.const 0"),
            vec![]).burns().with_gas(2600),
        Case::new("pay_for_memory_grow, 65,536 pages", main!("(call $pay_for_memory_grow (i32.const 65536)) i32.const 0"), vec![]).burns(),
        Case::new("memory.fill longer than ink lasts", main!("(memory.fill (i32.const 0) (i32.const 0) (i32.const -1)) i32.const 0"), vec![]).burns(),
        Case::new("out of ink", main!("(loop (br 0)) i32.const 0"), vec![]).burns(),
        Case::new("out of stack", concat!("(func $f (call $f))", main!("(call $f) i32.const 0")), vec![]).burns(),
        Case::new("more than 128 pages",
            concat!(r#"(memory (export "memory") 1)"#, main!("(drop (memory.grow (i32.const 128))) i32.const 0")), vec![]).burns(),
    ];
    // Ink of single host functions as Nitro's own tests record it (system_tests/program_ink_test.go), without the
    // blocks around the call.
    for (name, body, before, figure, after) in [
        ("write_result, nothing", main!("(call $write_result (i32.const 0) (i32.const 0)) i32.const 0"), call(2), 41_162, END),
        ("storage_load, cold", main!("(call $load (i32.const 0) (i32.const 64)) i32.const 0"), call(2), 21_068_480, END),
        ("storage_flush_cache, a new slot", main!("(call $cache (i32.const 0) (i32.const 1088)) (call $flush (i32.const 0)) i32.const 0"),
         call(2) + 18_480 + call(1), 221_068_073, END),
        ("pay_for_memory_grow, 100 pages beside 1", main!("(call $pay_for_memory_grow (i32.const 100)) i32.const 0"), call(1), 9_320_660_000, END),
        ("emit_log, no topics, no data", main!("(call $emit_log (i32.const 0) (i32.const 0) (i32.const 0)) i32.const 0"), call(3), 3_834_454, END),
        ("emit_log, no topics, 100 bytes", main!("(call $emit_log (i32.const 0) (i32.const 100) (i32.const 0)) i32.const 0"), call(3), 11_838_194, END),
        ("emit_log, 4 topics, 100 bytes", main!("(call $emit_log (i32.const 0) (i32.const 228) (i32.const 4)) i32.const 0"), call(3), 26_845_234, END),
        ("account_balance, cold", main!("(call $account_balance (i32.const 1024) (i32.const 0)) i32.const 0"), call(2), 26_078_153, END),
        ("account_code_size, cold", main!("(drop (call $account_code_size (i32.const 1024))) i32.const 0"), call(1), 33_068_073, DROP_END),
        ("math_div", main!("(call $math_div (i32.const 1088) (i32.const 1120)) i32.const 0"), call(2), 43_520, END),
        ("math_pow, exponent of 1 byte", main!("(call $math_pow (i32.const 1088) (i32.const 1120)) i32.const 0"), call(2), 61_520, END),
        ("math_pow, exponent of 2 bytes", main!("(call $math_pow (i32.const 1088) (i32.const 1121)) i32.const 0"), call(2), 79_020, END),
        ("math_pow, exponent of 32 bytes", main!("(call $math_pow (i32.const 1088) (i32.const 1151)) i32.const 0"), call(2), 604_020, END),
        ("math_add_mod", main!("(call $math_add_mod (i32.const 1088) (i32.const 1120) (i32.const 1120)) i32.const 0"), call(3), 49_560, END),
        ("math_mul_mod", main!("(call $math_mul_mod (i32.const 1088) (i32.const 1120) (i32.const 1120)) i32.const 0"), call(3), 52_660, END),
        ("native_keccak256, 10 bytes", main!("(call $keccak (i32.const 0) (i32.const 10) (i32.const 96)) i32.const 0"), call(3), 121_800, END),
        ("native_keccak256, 1,000 bytes", main!("(call $keccak (i32.const 0) (i32.const 1000) (i32.const 96)) i32.const 0"), call(3), 751_800, END),
        // A precompile that burns nothing: 36 bytes of calldata, 100 gas for a warm account, 3 for a word of arguments.
        ("call_contract, burnArbGas(0)", main!("(drop (call $call_contract (i32.const 1184) (i32.const 1204) (i32.const 36) (i32.const 0) (i64.const -1) (i32.const 512))) i32.const 0"),
         call(6), 1_146_395, DROP_END),
        ("delegate_call_contract, burnArbGas(0)", main!("(drop (call $delegate (i32.const 1184) (i32.const 1204) (i32.const 36) (i64.const -1) (i32.const 512))) i32.const 0"),
         call(5), 1_146_395, DROP_END),
    ] {
        all.push(Case::new(name, body, vec![("around it", before + after), ("Nitro's own figure", figure)]));
    }
    for (name, body) in [
        ("block_basefee", main!("(call $block_basefee (i32.const 0)) i32.const 0")),
        ("block_coinbase", main!("(call $block_coinbase (i32.const 0)) i32.const 0")),
        ("contract_address", main!("(call $contract_address (i32.const 0)) i32.const 0")),
        ("msg_sender", main!("(call $msg_sender (i32.const 0)) i32.const 0")),
        ("msg_value", main!("(call $msg_value (i32.const 0)) i32.const 0")),
        ("tx_gas_price", main!("(call $tx_gas_price (i32.const 0)) i32.const 0")),
        ("tx_origin", main!("(call $tx_origin (i32.const 0)) i32.const 0")),
    ] {
        all.push(Case::new(name, body, vec![("block", call(1)), ("hostio, pointer", HOSTIO + PTR), ("end", END)]));
    }
    for (name, body) in [
        ("block_gas_limit", main!("(drop (call $block_gas_limit)) i32.const 0")),
        ("block_number", main!("(drop (call $block_number)) i32.const 0")),
        ("block_timestamp", main!("(drop (call $block_timestamp)) i32.const 0")),
        ("chainid", main!("(drop (call $chainid)) i32.const 0")),
        ("evm_gas_left", main!("(drop (call $evm_gas_left)) i32.const 0")),
        ("evm_ink_left", main!("(drop (call $evm_ink_left)) i32.const 0")),
        ("msg_reentrant", main!("(drop (call $msg_reentrant)) i32.const 0")),
        ("tx_ink_price", main!("(drop (call $tx_ink_price)) i32.const 0")),
        ("return_data_size", main!("(drop (call $return_data_size)) i32.const 0")),
    ] {
        all.push(Case::new(name, body, vec![("block", call(0)), ("hostio", HOSTIO), ("end", DROP_END)]));
    }
    all.push(Case::new("read_return_data, none",
        main!("(drop (call $read_return_data (i32.const 0) (i32.const 0) (i32.const 32))) i32.const 0"),
        vec![("block", call(3)), ("hostio, API", HOSTIO + API), ("write 0", write(0)), ("end", DROP_END)]));
    all
}

/// The cost of a program before its first instruction, from its own figures: (uncached, cached).
pub fn start_gas(wasm: &[u8]) -> (u64, u64) {
    use wasmparser::{Parser, Payload};
    let (mut funcs, mut type_words, mut globals, mut segments, mut pages) = (0u64, 0u64, 4u64, 0u64, 0u64);
    let mut types = vec![];
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.expect("valid") {
            Payload::TypeSection(s) => {
                for ty in s.into_iter_err_on_gc_types() {
                    let ty = ty.expect("valid");
                    types.push((ty.params().len() + ty.results().len()) as u64);
                }
            }
            Payload::FunctionSection(s) => {
                for ty in s {
                    funcs += 1;
                    type_words += types[ty.expect("valid") as usize];
                }
            }
            Payload::GlobalSection(s) => globals += u64::from(s.count()),
            Payload::DataSection(s) => segments += s.into_iter().map(|d| d.expect("valid").range.len() as u64).sum::<u64>(),
            Payload::ElementSection(s) => segments += s.into_iter().map(|e| e.expect("valid").range.len() as u64).sum::<u64>(),
            Payload::MemorySection(s) => pages = s.into_iter().next().expect("one").expect("valid").initial,
            _ => {}
        }
    }
    let len = wasm.len() as u64;
    let cached = 352
        + funcs * 13_420 / 100_000
        + type_words * 89 / 100_000
        + len * 122 / 100_000
        + globals * 1628 / 1000
        + segments * 75_244 / 100_000
        + pages * 5;
    let init = 8832 + funcs * 8252 / 1000 + type_words * 1059 / 1000 + len * 1286 / 10_000;
    let memory = 1000 * pages.saturating_sub(2);
    (memory + cached + init, memory + cached)
}

/// One row of the table.
pub struct Row {
    pub name: &'static str,
    pub terms: String,
    pub end: End,
    pub ink: (u64, u64),
    pub gas: (u64, u64),
    pub gas_cached: (u64, u64),
    pub ended: End,
}

/// Runs a case uncached and cached.
pub fn run(case: &Case) -> Row {
    use super::chain::{Chain, BASE_FEE};
    use muster_devnode::evm::Status;
    let wasm = wat::parse_str(case.wat()).unwrap_or_else(|e| panic!("{}: {e}", case.name));
    let mut chain = Chain::new();
    prepare(&mut chain.state);
    let program = chain.deploy_wasm(&wasm);
    let activated = chain.activate(program);
    assert_eq!(activated.status, Status::Success, "{}: {activated:?}", case.name);
    let called = if case.is_static {
        chain.deploy(&[&STATIC_CALLER.0[..], program.as_slice(), &STATIC_CALLER.1].concat())
    } else {
        program
    };

    let (uncached, cached) = start_gas(&wasm);
    let mut intrinsic = 21_000 + 16 * case.calldata as u64 + if case.warm { 2400 + 1900 } else { 0 };
    if case.is_static {
        intrinsic += static_caller_gas(case.end == End::Success);
    }
    let limit = |start: u64| case.gas.map_or(PLENTY, |gas| intrinsic + start + gas);
    let expected = |start: u64| match case.end {
        End::Burnt => limit(start),
        _ => intrinsic + (start + case.total().div_ceil(GAS)).max(case.floor),
    };

    let mut tx = chain.tx(Some(called), vec![0xff; case.calldata]);
    tx.value = U256::from(case.value);
    tx.gas_limit = limit(uncached);
    tx.gas_price = BASE_FEE;
    if case.warm {
        tx.access_list = vec![(program, vec![B256::ZERO])];
    }
    let before = chain.state.clone();
    let first = chain.run(&tx);
    let frame = first.stylus.last().expect("a program ran").clone();
    let ended = match &first.status {
        Status::Success => End::Success,
        Status::Revert if frame.failure.is_none() => End::Revert,
        Status::Revert => End::Failure,
        Status::Halt(_) => End::Burnt,
    };
    if case.end != End::Success {
        let data = first.output.is_empty() || case.end == End::Revert;
        assert!(data && first.logs.is_empty(), "{}: {first:?}", case.name);
    }
    chain.state = before;
    chain.cache(program);
    tx.nonce = None;
    tx.gas_limit = limit(cached);
    let second = chain.run(&tx);
    Row {
        name: case.name,
        terms: case.ink.iter().map(|(what, ink)| format!("{what} {ink}")).collect::<Vec<_>>().join(" + "),
        end: case.end,
        ink: (if case.end == End::Burnt { frame.ink_start } else { case.total() }, frame.ink_start - frame.ink_end),
        gas: (expected(uncached), first.gas_used + first.gas_refunded),
        gas_cached: (expected(cached), second.gas_used + second.gas_refunded),
        ended,
    }
}

/// Gas limit of a case that doesn't say.
const PLENTY: u64 = 20_000_000;

impl Row {
    pub fn is_right(&self) -> bool {
        let same = |(expected, got): (u64, u64)| expected == got;
        same(self.ink) && same(self.gas) && same(self.gas_cached) && self.end == self.ended
    }
}

const HEAD: &str = "\
# Conformance of the development node

[All pages](../README.md)

Made by `script/bench conformance`; `devnode/tests/conformance.rs` checks every figure, and that this page is what the
command prints.

Each row is a program of a few instructions (`devnode/tests/support/cases.rs`). Its expected cost is a sum made by
hand from the price lists of public sources (Nitro's release branch of ArbOS 60, read for facts), not by the code that
meters it. Ink is what the program itself uses, 10,000 ink are one gas. Gas is what the receipt shows before refunds:
21,000, calldata, the program's start and its ink, rounded up. The start is a sum
over the file, each term rounded down:

- Uncached only: 8,832 + 8.252 per function + 1.059 per parameter and result + 0.1286 per byte.
- Always: 352 + 0.1342 per function + 0.00089 per parameter and result + 0.00122 per byte + 1.628 per global (4 more than in
  the file) + 0.75244 per byte of data and element segments + 5 per page.
- 1,000 per page beyond two.

L1 data costs nothing on this node.

Rows that say \"Nitro's own figure\" compare with what Nitro's own tests record for a single host function
(`system_tests/program_ink_test.go` of the release branch, run there on Nitro itself).

A program that fails keeps the gas that is left. One that runs out of ink or stack loses all it was given: 20,000,000, or
the row's figure beside the gas used before its first instruction. Programs of \"static\" rows are called by an EVM
contract, which adds 2,627 gas, or 2,630 if they fail.

| program | ends | ink expected | ink got | gas expected | gas got | cached: expected | cached: got | how |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |
";

/// The page `docs/generated/conformance.md`.
pub fn page(rows: &[Row]) -> String {
    let mut page = HEAD.to_owned();
    for row in rows {
        let ends = match row.ended {
            End::Success => "success",
            End::Revert => "revert",
            End::Failure => "failure",
            End::Burnt => "all gas",
        };
        let how = if row.terms.is_empty() { "all there is" } else { &row.terms };
        page += &format!(
            "| {} | {ends} | {} | {} | {} | {} | {} | {} | {how} |\n",
            row.name, row.ink.0, row.ink.1, row.gas.0, row.gas.1, row.gas_cached.0, row.gas_cached.1
        );
    }
    page
}
