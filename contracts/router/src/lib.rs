//! The one public address. Looks a call's selector up in storage and runs the program behind it by
//! delegatecall, so that storage, balance and logs are the router's own.
//!
//! It is 437 bytes of EVM code, written here, while the programs behind it are WASM. A Stylus router would start before every call (8,832
//! gas at least where nobody has cached it). It could also expire, and with it the address that holds everybody's stakes.
//!
//! | a call of | is |
//! | --- | --- |
//! | `install` | before initialisation: the call in it, run by the program it names, for the deployer alone |
//! | a selector that [`PROGRAMS`] leads to a program | answered by that program, byte by byte |
//! | any other | refused: `UnknownFunction`, or `MalformedCalldata` if it is shorter than a selector |
//!
//! The router returns a program's answer unchanged. A program that fails without a reason, by a trap or for lack of gas, is named in
//! `ProgramFailed`. Where there is no code, a delegatecall succeeds, says nothing and does nothing, but would keep the value: that is
//! `NoCode`.

use alloy_sol_types::{SolCall, SolError};
use muster_protocol::layout::{OWNERSHIP, PROGRAMS};
use muster_protocol::IMuster::*;

/// The router's own refusals of `install`.
pub const INSTALL_REFUSALS: [&str; 4] = ["AlreadyInitialised", "MalformedCalldata", "NotOwner", "ValueNotAccepted"];

/// Instructions of the EVM, as of Shanghai.
mod op {
    pub const ADD: u8 = 0x01;
    pub const SUB: u8 = 0x03;
    pub const LT: u8 = 0x10;
    pub const EQ: u8 = 0x14;
    pub const ISZERO: u8 = 0x15;
    pub const AND: u8 = 0x16;
    pub const SHL: u8 = 0x1b;
    pub const SHR: u8 = 0x1c;
    pub const KECCAK256: u8 = 0x20;
    pub const CALLER: u8 = 0x33;
    pub const CALLVALUE: u8 = 0x34;
    pub const CALLDATALOAD: u8 = 0x35;
    pub const CALLDATASIZE: u8 = 0x36;
    pub const CALLDATACOPY: u8 = 0x37;
    pub const EXTCODESIZE: u8 = 0x3b;
    pub const RETURNDATASIZE: u8 = 0x3d;
    pub const RETURNDATACOPY: u8 = 0x3e;
    pub const POP: u8 = 0x50;
    pub const MSTORE: u8 = 0x52;
    pub const SLOAD: u8 = 0x54;
    pub const JUMP: u8 = 0x56;
    pub const JUMPI: u8 = 0x57;
    pub const GAS: u8 = 0x5a;
    pub const JUMPDEST: u8 = 0x5b;
    pub const PUSH0: u8 = 0x5f;
    pub const DUP1: u8 = 0x80;
    pub const DUP2: u8 = 0x81;
    pub const DUP3: u8 = 0x82;
    pub const DUP5: u8 = 0x84;
    pub const DUP7: u8 = 0x86;
    pub const SWAP1: u8 = 0x90;
    pub const SWAP2: u8 = 0x91;
    pub const RETURN: u8 = 0xf3;
    pub const DELEGATECALL: u8 = 0xf4;
    pub const REVERT: u8 = 0xfd;
}
use op::*;

/// A place that is jumped to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Known,
    Answered,
    Succeeded,
    Reason,
    Said,
    Install,
    Fresh,
    Deployer,
    Malformed,
    Short,
    Paid,
}

/// Code as it is written.
#[derive(Default)]
struct Assembler {
    code: Vec<u8>,
    places: Vec<(Label, usize)>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn ops(&mut self, ops: &[u8]) -> &mut Self {
        self.code.extend(ops);
        self
    }

    /// Pushes a number of 1 to 32 bytes.
    fn push(&mut self, bytes: &[u8]) -> &mut Self {
        self.code.push(PUSH0 + bytes.len() as u8);
        self.ops(bytes)
    }

    /// Jumps by `jump` to a label.
    fn to(&mut self, label: Label, jump: u8) -> &mut Self {
        self.jumps.push((self.code.len() + 1, label));
        self.push(&[0, 0]).ops(&[jump])
    }

    fn at(&mut self, label: Label) -> &mut Self {
        self.places.push((label, self.code.len()));
        self.ops(&[JUMPDEST])
    }

    /// Reverts with an error whose arguments, a word each, lie on the stack, the last one on top.
    fn refuse<E: SolError>(&mut self, words: u8) -> &mut Self {
        self.push(&E::SELECTOR).push(&[224]).ops(&[SHL, PUSH0, MSTORE]);
        for word in (0..words).rev() {
            self.push(&[4 + 32 * word]).ops(&[MSTORE]);
        }
        self.push(&[4 + 32 * words]).ops(&[PUSH0, REVERT])
    }

    /// Replaces the top of the stack by its lower 20 bytes.
    fn as_address(&mut self) -> &mut Self {
        self.push(&[0xff; 20]).ops(&[AND])
    }

    /// The call's selector, as a `bytes4` of Solidity's has it.
    fn selector(&mut self) -> &mut Self {
        self.ops(&[PUSH0, CALLDATALOAD]).push(&[224]).ops(&[SHR]).push(&[224]).ops(&[SHL])
    }

    fn finish(mut self) -> Vec<u8> {
        for (from, label) in self.jumps {
            let place = self.places.iter().find(|place| place.0 == label).expect("every label is placed").1;
            self.code[from..from + 2].copy_from_slice(&(place as u16).to_be_bytes());
        }
        self.code
    }
}

/// The router's code, as it lies on chain.
#[rustfmt::skip]
pub fn code() -> Vec<u8> {
    let mut a = Assembler::default();
    // Behind each line, the stack that it leaves, the top to the right. First the part that every call runs: the program is the word of the
    // mapping PROGRAMS at the call's first four bytes, where missing bytes count as zeros.
    a.push(&[4]).ops(&[PUSH0, PUSH0, CALLDATACOPY]).push(&[PROGRAMS]).push(&[32]).ops(&[MSTORE]);
    a.push(&[64]).ops(&[PUSH0, KECCAK256, SLOAD, DUP1]).to(Label::Known, JUMPI); // program
    a.push(&[4]).ops(&[CALLDATASIZE, LT]).to(Label::Short, JUMPI);
    a.selector().push(&installCall::SELECTOR).push(&[224]).ops(&[SHL, DUP2, EQ]).to(Label::Install, JUMPI); // program, selector
    a.refuse::<UnknownFunction>(1);

    a.at(Label::Known).ops(&[CALLDATASIZE, PUSH0, PUSH0, CALLDATACOPY]);
    a.ops(&[PUSH0, PUSH0, CALLDATASIZE, PUSH0, DUP5, GAS, DELEGATECALL]);
    a.at(Label::Answered); // program, succeeded
    a.ops(&[RETURNDATASIZE, PUSH0, PUSH0, RETURNDATACOPY]).to(Label::Succeeded, JUMPI); // program
    a.ops(&[RETURNDATASIZE]).to(Label::Reason, JUMPI);
    a.selector().ops(&[SWAP1]).as_address().refuse::<ProgramFailed>(2);
    a.at(Label::Reason).ops(&[RETURNDATASIZE, PUSH0, REVERT]);
    a.at(Label::Succeeded).ops(&[RETURNDATASIZE]).to(Label::Said, JUMPI);
    a.ops(&[DUP1, EXTCODESIZE]).to(Label::Said, JUMPI);
    a.as_address().refuse::<NoCode>(1);
    a.at(Label::Said).ops(&[RETURNDATASIZE, PUSH0, RETURN]);

    // install(address program, bytes call), read as strictly as programs read their arguments.
    a.at(Label::Install).ops(&[CALLVALUE]).to(Label::Paid, JUMPI);
    a.push(&[68]).ops(&[CALLDATASIZE, LT]).to(Label::Malformed, JUMPI);
    a.push(&[4]).ops(&[CALLDATALOAD, DUP1]).push(&[160]).ops(&[SHR]).to(Label::Malformed, JUMPI); // ..., program
    a.push(&[36]).ops(&[CALLDATALOAD, DUP1]).push(&[32]).ops(&[SHR]).to(Label::Malformed, JUMPI); // ..., program, offset
    a.push(&[36]).ops(&[ADD, DUP1, CALLDATASIZE, LT]).to(Label::Malformed, JUMPI); // ..., program, start
    a.push(&[32]).ops(&[DUP2, SUB, CALLDATALOAD, DUP1]).push(&[32]).ops(&[SHR]).to(Label::Malformed, JUMPI);
    a.ops(&[DUP2, DUP2, ADD, CALLDATASIZE, LT]).to(Label::Malformed, JUMPI); // ..., program, start, length
    // The owner's word is the deployer's as long as it names no stake unit.
    a.push(&[OWNERSHIP]).ops(&[SLOAD, DUP1]).push(&[160]).ops(&[SHR]).push(&[0xff; 8]).ops(&[AND, ISZERO]).to(Label::Fresh, JUMPI);
    a.refuse::<AlreadyInitialised>(0);
    a.at(Label::Fresh).as_address().ops(&[CALLER, EQ]).to(Label::Deployer, JUMPI);
    a.ops(&[CALLER]).refuse::<NotOwner>(1);
    a.at(Label::Deployer).ops(&[DUP1, DUP3, PUSH0, CALLDATACOPY]);
    a.ops(&[PUSH0, PUSH0, DUP3, PUSH0, DUP7, GAS, DELEGATECALL, SWAP2, POP, POP]).to(Label::Answered, JUMP);

    a.at(Label::Malformed).selector().refuse::<MalformedCalldata>(1);
    a.at(Label::Short).ops(&[PUSH0]).refuse::<MalformedCalldata>(1);
    a.at(Label::Paid).ops(&[CALLVALUE]).refuse::<ValueNotAccepted>(1);
    a.finish()
}
