//! Targets of fuzzing by coverage: each takes any bytes, and panics where something is wrong.
//!
//! `script/fuzz` compiles the project's own crates instrumented and has libFuzzer choose the inputs (`tests/fuzz.rs`, `rustc`). As a test,
//! the same program plays the inputs in `corpus/`.
//!
//! | module | targets | failures |
//! | --- | --- | --- |
//! | [`calls`] | `calldata` | calls of every function on a small network: a panic, an error that the interface does not know of the function, money that is nobody's, a view that writes, an encoding that is not the interface's |
//! | [`lines`] | `lines` | lines of an executor: a panic, a line that is read as another |
//! | [`operations`] | `operations` | operations on the contract and on the model: any difference, after each |
//! | [`programs`] | `programs` | the same operations on the compiled programs, on the node: any difference from the model, or from the same code compiled for this machine |
//! | [`router`] | `router` | calls of the router before programs of every kind: an answer that its page does not say |
//! | [`rpc`] | `rpc` | requests to the local node: a panic, no answer, an answer that is none |
//! | [`settings`] | `settings` | the agent's configuration: a panic, something taken that cannot work |
//! | [`stores`] | `stores` | data that stores, accounts and contracts send to the Rust library: a panic, bytes of another digest, a bent
//! object that opens |
//! | [`tables`] | `traces` | CSV files of requests and machines: a panic, values outside of their bounds, machines that are read otherwise a second time |
//! | [`wasm`] | `wasm` | programs on the node: a panic, a program that neither is refused nor runs, or that runs otherwise when traced |

pub mod bytes;
pub mod calls;
#[cfg(not(test))]
pub mod lines;
pub mod operations;
pub mod programs;
pub mod router;
pub mod rpc;
#[cfg(not(test))]
pub mod settings;
pub mod stores;
pub mod tables;
pub mod wasm;

// The agent is a program, not a library: these are files of its own, which has their tests.
#[cfg(not(test))]
#[allow(dead_code)]
#[path = "../../../clients/agent/src/config.rs"]
mod config;
#[cfg(not(test))]
#[allow(dead_code)]
#[path = "../../../clients/agent/src/hub.rs"]
mod hub;
#[cfg(not(test))]
#[path = "../../../clients/agent/src/log.rs"]
mod log;
#[cfg(not(test))]
#[allow(dead_code)]
#[path = "../../../clients/agent/src/said.rs"]
mod said;
#[cfg(not(test))]
#[allow(dead_code)]
#[path = "../../../clients/agent/src/terms.rs"]
mod terms;

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
    #[cfg(not(test))]
    Target { name: "lines", run: lines::run },
    Target { name: "operations", run: operations::run },
    Target { name: "programs", run: programs::run },
    Target { name: "router", run: router::run },
    Target { name: "rpc", run: rpc::run },
    #[cfg(not(test))]
    Target { name: "settings", run: settings::run },
    Target { name: "stores", run: stores::run },
    Target { name: "traces", run: tables::run },
    Target { name: "wasm", run: wasm::run },
];
