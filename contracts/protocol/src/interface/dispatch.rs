//! The dispatch table: calldata in, return data out, on any host.
//!
//! A program is a table, written with [`program!`]: its functions with their arguments and results, whether they take value, and their
//! bodies. Decoder, `match`, refusal of value, encoder and list of selectors come from the table. The table is checked against the
//! interface when compiled: types by [`crate::codec`], payability by [`declared`].

use crate::host::Host;
use crate::Result;

/// The effect of a function of the interface on the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutability {
    /// Changes it and takes value.
    Payable,
    /// Changes it.
    NonPayable,
    /// Reads.
    View,
}

/// A function that a program answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function {
    /// Name and argument types.
    pub signature: &'static str,
    /// The first four bytes of the signature's keccak256.
    pub selector: [u8; 4],
    /// Gas that it demands at its start; 0 for none.
    pub floor: u64,
}

impl Function {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.signature.split('(').next().unwrap_or_default()
    }
}

/// Refuses value.
#[inline(never)]
pub fn no_value<H: Host>(host: &H) -> Result<()> {
    let value = host.value();
    ensure!(value.is_zero(), ValueNotAccepted(value));
    Ok(())
}

/// Whether `needle` stands in `bytes` at `at`.
const fn stands(bytes: &[u8], at: usize, needle: &[u8]) -> bool {
    let mut i = 0;
    while i < needle.len() {
        if at + i >= bytes.len() || bytes[at + i] != needle[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// The mutability that a Solidity source declares for the function with this signature; none if it has no such function.
pub const fn declared(source: &str, signature: &str) -> Option<Mutability> {
    let (text, signature) = (source.as_bytes(), signature.as_bytes());
    let mut name = 0;
    while signature[name] != b'(' {
        name += 1;
    }
    let (name, _) = signature.split_at(name + 1);
    let mut at = 0;
    while at + 9 < text.len() {
        if text[at] == b'f' && stands(text, at, b"function ") && stands(text, at + 9, name) {
            while text[at] != b')' {
                at += 1;
            }
            while text[at] != b';' {
                if stands(text, at, b" payable") {
                    return Some(Mutability::Payable);
                }
                if stands(text, at, b" view") {
                    return Some(Mutability::View);
                }
                at += 1;
            }
            return Some(Mutability::NonPayable);
        }
        at += 1;
    }
    None
}

/// Writes a program as a table: `program! { source; name { mode(state, gas) { rows } } }`.
///
/// The calls of these rows demand the gas at their start ([`demand_gas`]), if that is more than the call's own work. A row is
/// `functionCall(argument: Type, ...) -> Result { body }`, with `#[payable]` before it where it takes value. `functionCall` is the type
/// that `sol!` made of the function, and the body returns a [`Result`]. The mode says what the body works on:
///
/// | mode | the state is |
/// | --- | --- |
/// | `serving` | the [`Network`](crate::Network), after due draws have been served; its head is written at the end |
/// | `acting` | the network as it is; its head is written at the end |
/// | `reading` | the network; nothing is written |
/// | `alone` | the host |
/// | `looking` | the host, to read |
#[macro_export]
macro_rules! program {
    ($source:expr; $(
        $(#[$doc:meta])*
        $program:ident $functions:ident {
            $($mode:ident $state:tt {
                $($(#[$payable:ident])? $call:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $body:block)*
            })*
        }
    )*) => {$(
        $(#[$doc])*
        pub fn $program<H: $crate::Host>(host: &mut H, calldata: &[u8]) -> $crate::Result<alloc::vec::Vec<u8>> {
            let call = $crate::codec::Calldata::new(calldata)?;
            // Compared as numbers: byte by byte, a program would be hundreds of bytes larger.
            let selector = u32::from_be_bytes(call.selector);
            const PAYABLE: &[u32] = &[$($($($crate::program!(@payable $payable $call),)?)*)*];
            if !PAYABLE.contains(&selector) {
                $crate::dispatch::no_value(host)?;
            }
            let mut out = $crate::codec::Out::default();
            $(if [$($crate::program!(@selector $call)),*].contains(&selector) {
                $crate::program!(@demand host $state);
                $crate::program!(@$mode host $state);
                match selector {
                    $(one if one == const { $crate::program!(@selector $call) } => {
                        let ($($argument,)*): ($($type,)*) =
                            call.arguments::<<$call as alloy_sol_types::SolCall>::Parameters<'static>, _>()?;
                        let answer: $crate::Result<$crate::program!(@result $($result)?)> = $body;
                        $crate::codec::Answer::<<$call as alloy_sol_types::SolCall>::ReturnTuple<'static>>
                            ::put_answer(answer?, &mut out);
                    })*
                    _ => {}
                }
                $crate::program!(@end $mode $state);
                return Ok(out.0);
            })*
            Err($crate::refusal!(UnknownFunction(call.selector)))
        }

        /// The functions that it answers.
        pub const $functions: &[$crate::dispatch::Function] = &[$($($crate::dispatch::Function {
            signature: <$call as alloy_sol_types::SolCall>::SIGNATURE,
            selector: <$call as alloy_sol_types::SolCall>::SELECTOR,
            floor: $crate::program!(@floor $state),
        }),*),*];

        // Apart from the table, which is worked out again wherever it is used.
        const _: () = {$($({
            let there = $crate::dispatch::declared($source, <$call as alloy_sol_types::SolCall>::SIGNATURE);
            let here = $crate::program!(@mutability $mode $($payable)?);
            assert!(matches!(there, Some(there) if there as u8 == here as u8), "not as the interface declares it");
        })*)*};
    )*};
    (@payable payable $call:ident) => { $crate::program!(@selector $call) };
    (@selector $call:ident) => { u32::from_be_bytes(<$call as alloy_sol_types::SolCall>::SELECTOR) };
    (@mutability reading) => { $crate::dispatch::Mutability::View };
    (@mutability looking) => { $crate::dispatch::Mutability::View };
    (@mutability $mode:ident) => { $crate::dispatch::Mutability::NonPayable };
    (@mutability $mode:ident payable) => { $crate::dispatch::Mutability::Payable };
    (@floor ($state:ident)) => { 0 };
    (@floor ($state:ident, $floor:expr)) => { $floor };
    (@demand $host:ident ($state:ident)) => {};
    (@demand $host:ident ($state:ident, $floor:expr)) => { $crate::flow::gas::demand_gas($host, $floor)?; };
    (@result) => { () };
    (@result $result:ty) => { $result };
    (@serving $host:ident ($state:ident $(, $floor:expr)?)) => { let mut $state = $crate::Network::open_and_serve($host)?; };
    (@acting $host:ident ($state:ident $(, $floor:expr)?)) => { let mut $state = $crate::Network::open($host)?; };
    (@reading $host:ident ($state:ident $(, $floor:expr)?)) => { let $state = $crate::Network::open($host)?; };
    (@alone $host:ident ($state:ident $(, $floor:expr)?)) => { let $state = $host; };
    (@looking $host:ident ($state:ident $(, $floor:expr)?)) => { let $state = &*$host; };
    (@end serving ($state:ident $(, $floor:expr)?)) => { $state.close() };
    (@end acting ($state:ident $(, $floor:expr)?)) => { $state.close() };
    (@end $mode:ident $state:tt) => {};
}
