//! The public interface as Rust types, generated from `abi/IMuster.sol` so that the two cannot drift.
#![allow(missing_docs, clippy::too_many_arguments)]

use crate::codec::{Out, Topics, Values};
use crate::host::Host;
use alloc::vec::Vec;
use alloy_sol_types::{SolError, SolEvent};

alloy_sol_types::sol!(
    #[sol(all_derives)]
    "../../abi/IMuster.sol"
);

/// The interface's source, which the programs are checked against.
pub const SOURCE: &str = include_str!("../../../../abi/IMuster.sol");

/// Why a call was refused: one of the interface's errors, encoded.
///
/// Encoded at once, so that a program carries only the errors it can give.
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal(Vec<u8>);

impl Refusal {
    /// An error of the interface with its arguments, in declared order and of the declared types.
    #[inline(always)]
    pub fn of<E: SolError>(arguments: impl Values<E::Parameters<'static>>) -> Refusal {
        fn encode<S, V: Values<S>>(selector: [u8; 4], arguments: V) -> Refusal {
            let mut out = Out::starting(&selector, V::HEADS);
            arguments.put_all(&mut out);
            Refusal(out.0)
        }
        encode(E::SELECTOR, arguments)
    }

    /// The encoding: selector and arguments.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The error as data, for tests and tools.
    #[cfg(any(test, feature = "native"))]
    pub fn decode(&self) -> IMuster::IMusterErrors {
        use alloy_sol_types::SolInterface;
        IMuster::IMusterErrors::abi_decode_validate(&self.0).expect("encoded as it is declared")
    }
}

#[cfg(any(test, feature = "native"))]
impl core::fmt::Debug for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(&self.decode(), f)
    }
}

/// The result of a public function.
pub type Result<T> = core::result::Result<T, Refusal>;

/// Emits an event of the interface: its indexed values, and the rest, each in declared order and of the declared types.
#[inline(always)]
pub fn emit<E: SolEvent>(host: &mut impl Host, indexed: impl Topics<E::TopicList>, data: impl Values<E::DataTuple<'static>>) {
    fn encode<H: Host, T, I: Topics<T>, D, V: Values<D>>(host: &mut H, event: [u8; 32], indexed: I, data: V) {
        let mut out = Out::starting(&event, (I::COUNT - 1) * 32 + V::HEADS);
        indexed.put_topics(&mut out);
        data.put_all(&mut out);
        host.log(I::COUNT, &out.0);
    }
    encode(host, E::SIGNATURE_HASH.0, indexed, data);
}

/// A [`Refusal`] from an error's name and its arguments: `refusal!(DeadlinePassed(id, order.at))`.
#[macro_export]
macro_rules! refusal {
    ($name:ident) => { $crate::Refusal::of::<$crate::IMuster::$name>(()) };
    ($name:ident($($arg:expr),*)) => { $crate::Refusal::of::<$crate::IMuster::$name>(($($arg,)*)) };
}

/// Leaves the function with a [`Refusal`] unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($cond:expr, $name:ident $($args:tt)*) => {
        if !$cond { return Err($crate::refusal!($name $($args)*)); }
    };
}
