//! What is fuzzed by coverage: each target takes any bytes, and panics where something is wrong.
//!
//! `script/fuzz` compiles the project's own crates instrumented and has libFuzzer choose the inputs (`tests/fuzz.rs`, `rustc`); as a
//! test, the same program plays what lies in `corpus/`.
//!
//! | module | targets | what is wrong |
//! | --- | --- | --- |
//! | [`calls`] | `calldata` | calls of every function on a small network: a panic, an error that the interface does not know of the function, money that is nobody's, a view that writes, an encoding that is not the interface's |
//! | [`operations`] | `operations` | operations on the contract and on the model: any difference, after each |
//! | [`router`] | `router` | calls of the router before programs of every kind: an answer that its page does not say |
//! | [`tables`] | `traces` | CSV files of requests and machines: a panic, values outside of their bounds, machines that are read otherwise a second time |
//! | [`wasm`] | `wasm` | programs on the node: a panic, a program that neither is refused nor runs, or that runs otherwise when traced |

pub mod bytes;
pub mod calls;
pub mod operations;
pub mod router;
pub mod tables;
pub mod wasm;

/// Something that is fuzzed.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder in `corpus/`.
    pub name: &'static str,
    /// Tries an input.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "calldata", run: calls::run },
    Target { name: "operations", run: operations::run },
    Target { name: "router", run: router::run },
    Target { name: "traces", run: tables::run },
    Target { name: "wasm", run: wasm::run },
];
