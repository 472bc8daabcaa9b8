//! The public interface as Rust types, generated from `abi/IMuster.sol` so that the two cannot drift.
#![allow(missing_docs, clippy::too_many_arguments)]

use alloc::vec::Vec;
use muster_core::word::{Address, Word};

alloy_sol_types::sol!(
    #[sol(all_derives)]
    "../../abi/IMuster.sol"
);

/// A static argument of an error or an event: one word of its encoding.
pub trait Argument {
    /// The word as the ABI encodes it.
    fn word(self) -> Word;
}

macro_rules! numbers {
    ($($t:ty)*) => {$(impl Argument for $t {
        #[inline]
        fn word(self) -> Word { Word::from(self as u64) }
    })*};
}
numbers!(u8 u16 u32 u64 usize bool);

impl Argument for u128 {
    #[inline]
    fn word(self) -> Word {
        Word([self as u64, (self >> 64) as u64, 0, 0])
    }
}
impl Argument for Word {
    #[inline]
    fn word(self) -> Word {
        self
    }
}
impl Argument for Address {
    #[inline]
    fn word(self) -> Word {
        Word::from(self)
    }
}
impl Argument for [u8; 32] {
    #[inline]
    fn word(self) -> Word {
        Word::from_be_bytes(self)
    }
}
impl Argument for [u8; 4] {
    #[inline]
    fn word(self) -> Word {
        crate::layout::selector_key(self)
    }
}

/// Arguments in a signature such as `Name(uint64,address)`, none of them a tuple.
pub const fn arity(signature: &str) -> usize {
    let bytes = signature.as_bytes();
    let (mut i, mut commas) = (0, 0);
    while i < bytes.len() {
        commas += (bytes[i] == b',') as usize;
        i += 1;
    }
    if bytes[bytes.len() - 2] == b'(' {
        0
    } else {
        commas + 1
    }
}

/// Why a call was refused: one of the interface's errors, encoded.
///
/// Encoded at once and word by word, so that a program carries only the errors it can give.
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal(Vec<u8>);

impl Refusal {
    /// Encodes an error; [`refusal!`] checks the number of its arguments.
    #[inline(never)]
    #[cold]
    pub fn new(selector: [u8; 4], words: &[Word]) -> Refusal {
        let mut bytes = Vec::with_capacity(4 + words.len() * 32);
        bytes.extend_from_slice(&selector);
        words.iter().for_each(|w| bytes.extend_from_slice(&w.to_be_bytes()));
        Refusal(bytes)
    }

    /// The encoding: selector and arguments.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The error as data, for tests and tools.
    #[cfg(any(test, feature = "native"))]
    pub fn decode(&self) -> IMuster::IMusterErrors {
        use alloy_sol_types::SolInterface;
        IMuster::IMusterErrors::abi_decode_validate(&self.0).expect("every refusal! fits its declaration")
    }
}

#[cfg(any(test, feature = "native"))]
impl core::fmt::Debug for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(&self.decode(), f)
    }
}

/// What a public function gives.
pub type Result<T> = core::result::Result<T, Refusal>;

/// Builds a [`Refusal`] from an error's name and its arguments in declared order.
#[macro_export]
macro_rules! refusal {
    ($name:ident) => { $crate::refusal!($name()) };
    ($name:ident($($arg:expr),*)) => {{
        type E = $crate::abi::IMuster::$name;
        let words = [$($crate::abi::Argument::word($arg)),*];
        const GIVEN: usize = <[&str]>::len(&[$(stringify!($arg)),*]);
        const { assert!($crate::abi::arity(<E as alloy_sol_types::SolError>::SIGNATURE) == GIVEN) };
        $crate::abi::Refusal::new(<E as alloy_sol_types::SolError>::SELECTOR, &words)
    }};
}

/// Leaves the function with a [`Refusal`] unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($cond:expr, $name:ident $($args:tt)*) => {
        if !$cond { return Err($crate::refusal!($name $($args)*)); }
    };
}

/// Emits an event of static arguments: `emit!(host, Name[indexed](others))`, each list in declared order.
#[macro_export]
macro_rules! emit {
    ($host:expr, $name:ident[$($topic:expr),*]($($data:expr),*)) => {{
        type E = $crate::abi::IMuster::$name;
        const TOPICS: usize = <[&str]>::len(&[$(stringify!($topic)),*]);
        const DATA: usize = <[&str]>::len(&[$(stringify!($data)),*]);
        const {
            assert!(<<E as alloy_sol_types::SolEvent>::TopicList as alloy_sol_types::TopicList>::COUNT == TOPICS + 1);
            assert!($crate::abi::arity(<E as alloy_sol_types::SolEvent>::SIGNATURE) == TOPICS + DATA);
        };
        let topics = [
            $crate::abi::Argument::word(<E as alloy_sol_types::SolEvent>::SIGNATURE_HASH.0),
            $($crate::abi::Argument::word($topic)),*
        ];
        let data: [muster_core::word::Word; DATA] = [$($crate::abi::Argument::word($data)),*];
        $crate::host::log_words($host, &topics, &data);
    }};
}
