//! Stylus: WASM programs beside EVM code.
//!
//! | module | contents |
//! | --- | --- |
//! | [`transform`] | checks a module and rewrites it so that it meters itself |
//! | [`pricing`] | ink per instruction and host function, memory pages |
//! | `activate` | from deployed code to a module and its figures |
//! | `cache` | compiled modules |
//! | `hooks` | the `vm_hooks` a program imports |
//! | `run` | one run of a program: start cost, outcome |
//! | `recent` | programs a block has run |

pub(crate) mod activate;
pub(crate) mod cache;
pub(crate) mod hooks;
pub mod pricing;
pub(crate) mod recent;
pub(crate) mod run;
pub mod transform;

pub use activate::deployed_code;

/// Begins the code of a program that is deployed in one piece; a dictionary byte follows.
pub const CLASSIC_PREFIX: [u8; 3] = [0xef, 0xf0, 0x00];
/// Begins a piece of a program.
pub const FRAGMENT_PREFIX: [u8; 3] = [0xef, 0xf0, 0x01];
/// Begins the list of a program's pieces; dictionary byte, length and addresses follow.
pub const ROOT_PREFIX: [u8; 3] = [0xef, 0xf0, 0x02];

/// Whether code runs as a program.
pub(crate) fn is_program(code: &[u8], arbos: u64) -> bool {
    code.len() > 3 && (code.starts_with(&CLASSIC_PREFIX) || arbos >= 60 && code.starts_with(&ROOT_PREFIX))
}

/// Whether code may be deployed although it begins with 0xEF.
pub(crate) fn is_component(code: &[u8], arbos: u64) -> bool {
    is_program(code, arbos) || arbos >= 60 && code.len() > 3 && code.starts_with(&FRAGMENT_PREFIX)
}
