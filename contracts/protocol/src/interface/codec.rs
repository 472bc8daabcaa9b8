//! The ABI's encoding, written and read word by word, and checked against the interface's types when compiled.
//!
//! [`Value`] and [`Read`] connect a Rust type to a Solidity type of `alloy-sol-types`. The values of a call, an error or an event are a
//! tuple of such types, so a wrong type, a missing argument or one too many does not compile. Numbers may be narrower here than in the
//! interface, never wider.
//!
//! Numbers, addresses and words are written and read by a few functions out of line, which all programs' calls share.

use crate::abi::{IMuster, Refusal, Result};
use alloc::string::String;
use alloc::vec::Vec;
use alloy_primitives::{Address as Account, FixedBytes};
use alloy_sol_types::sol_data;
use muster_core::id::{GpuGroup, ModelId, NodeId, QueueId, TaskId, Ticket};
use muster_core::word::{Address, Word};

/// Bytes of a word.
const WORD: usize = 32;

// ---------------------------------------------------------------- writing

/// The encoding so far.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Out(pub Vec<u8>);

impl Out {
    /// An encoding that begins with these bytes, with room for so many after them.
    #[inline(never)]
    pub fn starting(with: &[u8], room: usize) -> Out {
        let mut out = Vec::with_capacity(with.len() + room);
        out.extend_from_slice(with);
        Out(out)
    }

    /// Appends a number.
    #[inline(never)]
    pub fn number(&mut self, v: u64) {
        self.0.extend_from_slice(&[0; 24]);
        self.0.extend_from_slice(&v.to_be_bytes());
    }

    /// Appends a number.
    #[inline(never)]
    pub fn wide(&mut self, v: u128) {
        self.0.extend_from_slice(&[0; 16]);
        self.0.extend_from_slice(&v.to_be_bytes());
    }

    /// Appends an address.
    #[inline(never)]
    pub fn address(&mut self, v: &Address) {
        self.0.extend_from_slice(&[0; 12]);
        self.0.extend_from_slice(v);
    }

    /// Appends bytes as they stand.
    #[inline(never)]
    pub fn bytes(&mut self, v: &[u8]) {
        self.0.extend_from_slice(v);
    }

    /// Appends bytes, and zeros up to the word's end.
    #[inline(never)]
    fn padded(&mut self, v: &[u8]) {
        self.bytes(v);
        let full = self.0.len() + (WORD - v.len() % WORD) % WORD;
        self.0.resize(full, 0);
    }
}

/// A value as the Solidity type `S`.
pub trait Value<S>: Sized {
    /// Bytes in the head: 32 where the content stands behind it.
    const HEAD: usize = WORD;
    /// Whether the content stands behind the head.
    const DYNAMIC: bool = false;
    /// Appends the content.
    fn put(self, out: &mut Out);
}

/// Values as a tuple of Solidity types.
pub trait Values<S> {
    /// Bytes of all heads.
    const HEADS: usize;
    /// Whether some content stands behind the heads.
    const ANY_DYNAMIC: bool;
    /// Appends heads, then the contents behind them.
    fn put_all(self, out: &mut Out);
}

/// Values as an event's topics but the first.
pub trait Topics<S> {
    /// How many.
    const COUNT: usize;
    /// Appends them.
    fn put_topics(self, out: &mut Out);
}

/// The result of a function: nothing, one value, or a tuple of them.
pub trait Answer<S> {
    /// Appends it.
    fn put_answer(self, out: &mut Out);
}

/// Tuples of each length up to the longest list.
macro_rules! tuples {
    ($($n:tt $S:ident $T:ident,)*) => { tuples!(() $($n $S $T,)*); };
    (($($n:tt $S:ident $T:ident,)*) $next:tt $NextS:ident $NextT:ident, $($rest:tt)*) => {
        tuples!(@one $($n $S $T,)*);
        tuples!(($($n $S $T,)* $next $NextS $NextT,) $($rest)*);
    };
    (($($n:tt $S:ident $T:ident,)*)) => { tuples!(@one $($n $S $T,)*); };
    (@one $($n:tt $S:ident $T:ident,)*) => {
        impl<$($S, $T: Value<$S>),*> Values<($($S,)*)> for ($($T,)*) {
            const HEADS: usize = 0 $(+ $T::HEAD)*;
            const ANY_DYNAMIC: bool = false $(|| $T::DYNAMIC)*;
            #[inline(always)]
            #[allow(unused_mut, unused_variables)]
            fn put_all(self, out: &mut Out) {
                let mut behind = Out::default();
                $(if $T::DYNAMIC {
                    out.number((Self::HEADS + behind.0.len()) as u64);
                    self.$n.put(&mut behind);
                } else {
                    self.$n.put(out);
                })*
                if Self::ANY_DYNAMIC {
                    out.bytes(&behind.0);
                }
            }
        }
        impl<$($S, $T: Value<$S>),*> Topics<(sol_data::FixedBytes<32>, $($S,)*)> for ($($T,)*) {
            const COUNT: usize = 1 $(+ { let _ = stringify!($n); 1 })*;
            #[inline(always)]
            #[allow(unused_variables)]
            fn put_topics(self, out: &mut Out) {
                $(const { assert!(!$T::DYNAMIC) };
                self.$n.put(out);)*
            }
        }
    };
}
tuples! {
    0 S0 T0, 1 S1 T1, 2 S2 T2, 3 S3 T3, 4 S4 T4, 5 S5 T5, 6 S6 T6, 7 S7 T7, 8 S8 T8, 9 S9 T9, 10 S10 T10, 11 S11 T11, 12 S12 T12,
    13 S13 T13, 14 S14 T14, 15 S15 T15, 16 S16 T16, 17 S17 T17, 18 S18 T18, 19 S19 T19, 20 S20 T20, 21 S21 T21, 22 S22 T22,
}

impl Answer<()> for () {
    #[inline(always)]
    fn put_answer(self, _: &mut Out) {}
}
impl<S, T: Value<S>> Answer<(S,)> for T {
    #[inline(always)]
    fn put_answer(self, out: &mut Out) {
        (self,).put_all(out);
    }
}
impl<S0, S1, T0: Value<S0>, T1: Value<S1>> Answer<(S0, S1)> for (T0, T1) {
    #[inline(always)]
    fn put_answer(self, out: &mut Out) {
        self.put_all(out);
    }
}
impl<S0, S1, S2, T0: Value<S0>, T1: Value<S1>, T2: Value<S2>> Answer<(S0, S1, S2)> for (T0, T1, T2) {
    #[inline(always)]
    fn put_answer(self, out: &mut Out) {
        self.put_all(out);
    }
}
impl<S0, S1, S2, S3, T0: Value<S0>, T1: Value<S1>, T2: Value<S2>, T3: Value<S3>> Answer<(S0, S1, S2, S3)> for (T0, T1, T2, T3) {
    #[inline(always)]
    fn put_answer(self, out: &mut Out) {
        self.put_all(out);
    }
}

macro_rules! numbers {
    ($($t:ty = $put:ident as $wide:ty: $($bits:literal)*;)*) => {$($(impl Value<sol_data::Uint<$bits>> for $t {
        #[inline(always)]
        fn put(self, out: &mut Out) {
            out.$put(self as $wide);
        }
    })*)*};
}
numbers! {
    u8 = number as u64: 8 16 32 64 128 256;
    u16 = number as u64: 16 32 64 128 256;
    u32 = number as u64: 32 64 128 256;
    u64 = number as u64: 64 128 256;
    usize = number as u64: 64 128 256;
    u128 = wide as u128: 128 256;
}

macro_rules! ids {
    ($($t:ty = $number:ty as $bits:literal;)*) => {$(
        impl Value<sol_data::Uint<$bits>> for $t {
            #[inline(always)]
            fn put(self, out: &mut Out) {
                Value::<sol_data::Uint<$bits>>::put(self.0, out);
            }
        }
        impl<'a> Read<'a, sol_data::Uint<$bits>> for $t {
            #[inline(always)]
            fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
                Ok(Self(<$number as Read<'a, sol_data::Uint<$bits>>>::read(c, at)?))
            }
        }
    )*};
}
ids! {
    NodeId = u32 as 32;
    TaskId = u64 as 64;
    ModelId = u64 as 64;
    GpuGroup = u32 as 32;
    QueueId = u32 as 32;
    Ticket = u64 as 64;
}

impl Value<sol_data::Uint<256>> for Word {
    #[inline(always)]
    fn put(self, out: &mut Out) {
        out.bytes(&self.to_be_bytes());
    }
}
impl Value<sol_data::Bool> for bool {
    #[inline(always)]
    fn put(self, out: &mut Out) {
        out.number(self as u64);
    }
}
impl Value<sol_data::Address> for Address {
    #[inline(always)]
    fn put(self, out: &mut Out) {
        out.address(&self);
    }
}
impl Value<sol_data::Address> for Account {
    #[inline(always)]
    fn put(self, out: &mut Out) {
        out.address(&self.0 .0);
    }
}
impl<const N: usize> Value<sol_data::FixedBytes<N>> for [u8; N] {
    #[inline(always)]
    fn put(self, out: &mut Out) {
        out.padded(&self);
    }
}
impl<const N: usize> Value<sol_data::FixedBytes<N>> for FixedBytes<N> {
    #[inline(always)]
    fn put(self, out: &mut Out) {
        self.0.put(out);
    }
}
impl Value<sol_data::String> for &[u8] {
    const DYNAMIC: bool = true;
    #[inline(always)]
    fn put(self, out: &mut Out) {
        out.number(self.len() as u64);
        out.padded(self);
    }
}
impl Value<sol_data::Bytes> for &[u8] {
    const DYNAMIC: bool = true;
    #[inline(always)]
    fn put(self, out: &mut Out) {
        Value::<sol_data::String>::put(self, out);
    }
}
impl Value<sol_data::String> for String {
    const DYNAMIC: bool = true;
    #[inline(always)]
    fn put(self, out: &mut Out) {
        Value::<sol_data::String>::put(self.as_bytes(), out);
    }
}
impl<S, T: Value<S>> Value<sol_data::Array<S>> for Vec<T> {
    const DYNAMIC: bool = true;
    fn put(self, out: &mut Out) {
        let heads = self.len() * T::HEAD;
        out.number(self.len() as u64);
        let mut behind = Out::default();
        for item in self {
            if T::DYNAMIC {
                out.number((heads + behind.0.len()) as u64);
                item.put(&mut behind);
            } else {
                item.put(out);
            }
        }
        if T::DYNAMIC {
            out.bytes(&behind.0);
        }
    }
}
impl<S, T: Value<S> + Copy> Value<sol_data::Array<S>> for &[T] {
    const DYNAMIC: bool = true;
    fn put(self, out: &mut Out) {
        const { assert!(!T::DYNAMIC) };
        out.number(self.len() as u64);
        self.iter().for_each(|item| item.put(out));
    }
}

/// The Solidity type that a field of a struct has, from its Rust type.
pub trait Plain {
    /// As the interface's own decoder has it.
    type Sol;
}
macro_rules! plain {
    ($($t:ty => $sol:ty),* $(,)?) => {$(impl Plain for $t { type Sol = $sol; })*};
}
plain! {
    u8 => sol_data::Uint<8>, u16 => sol_data::Uint<16>, u32 => sol_data::Uint<32>, u64 => sol_data::Uint<64>,
    u128 => sol_data::Uint<128>, bool => sol_data::Bool, Account => sol_data::Address,
    FixedBytes<32> => sol_data::FixedBytes<32>, Vec<u64> => sol_data::Array<sol_data::Uint<64>>,
    Vec<FixedBytes<4>> => sol_data::Array<sol_data::FixedBytes<4>>,
    Vec<IMuster::MemberView> => sol_data::Array<IMuster::MemberView>,
}

/// Structs of the interface, written as the tuples of their fields. The conversion, and with it the order of the fields, is the interface's
/// own, so only the types must be repeated here.
macro_rules! structs {
    ($($(#[$read:ident])? $name:ident $fields:tt;)*) => {$(
        structs!(@put $name $fields);
        $(structs!(@$read $name $fields);)?
    )*};
    (@put $name:ident($($field:ty),*)) => {
        impl Value<IMuster::$name> for IMuster::$name {
            const HEAD: usize = if <Self as Value<IMuster::$name>>::DYNAMIC {
                WORD
            } else {
                <($($field,)*) as Values<($(<$field as Plain>::Sol,)*)>>::HEADS
            };
            const DYNAMIC: bool = <($($field,)*) as Values<($(<$field as Plain>::Sol,)*)>>::ANY_DYNAMIC;
            #[inline(never)]
            fn put(self, out: &mut Out) {
                let fields: ($($field,)*) = self.into();
                Values::<($(<$field as Plain>::Sol,)*)>::put_all(fields, out);
            }
        }
    };
    // One that calls take; a list is among its fields.
    (@read $name:ident($($field:ty),*)) => {
        impl<'a> Read<'a, IMuster::$name> for IMuster::$name {
            #[inline(never)]
            fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
                let fields: ($($field,)*) = Reads::<'a, ($(<$field as Plain>::Sol,)*)>::read_all(c.behind(at)?)?;
                Ok(fields.into())
            }
        }
    };
    // One that calls take, of a word for each field.
    (@flat $name:ident($($field:ty),*)) => {
        impl<'a> Read<'a, IMuster::$name> for IMuster::$name {
            const WORDS: usize = [$(stringify!($field)),*].len();
            #[inline(never)]
            fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
                let fields: ($($field,)*) = Reads::<'a, ($(<$field as Plain>::Sol,)*)>::read_all(c.after(at))?;
                Ok(fields.into())
            }
        }
    };
}

structs! {
    #[read] TaskSpec(u8, u32, u16, u32, u8, u32, FixedBytes<32>, Vec<u64>);
    #[flat] Profile(u8, u8, u8, u8, u8, u64, u64, u32);
    #[read] Facet(Account, Vec<FixedBytes<4>>);
    NodeView(u32, Account, u8, u32, u16, u128, u64, u64, u8, bool, u8, u64, u64, u64, u64, Vec<u64>, Vec<u64>, u8, bool, u32, u8, u8, u64);
    WeightView(bool, u64, u64, u64, u64, u64);
    TaskView(u64, u8, Account, u128, u8, u32, u32, u16, u16, u32, u32, Vec<u64>, u64, u64, u64, u64, u32, u64, bool, u8, u16, u32);
    MemberView(u32, u8, u64, u32, FixedBytes<32>);
    GroupView(u32, u64, Account, u128, u8, u8, u32, u8, u16, bool, u64, u64, Vec<IMuster::MemberView>);
    Outcome(u8, u32, u8, u64, u128, FixedBytes<32>);
    QueueView(u32, u32, u32, u64, u64);
    FacetCut(Account, u8, Vec<FixedBytes<4>>);
    AccountView(u128, u128, u64, u32, bool);
    Overview(Account, Account, u128, u128, u128, u32, u32, u64, bool, u64, u32, u32, u32, u32, u32, u128);
}

// ---------------------------------------------------------------- reading

/// A call: its selector, and its arguments or a part of them that offsets count from.
#[derive(Clone, Copy, Debug)]
pub struct Calldata<'a> {
    /// Which function.
    pub selector: [u8; 4],
    data: &'a [u8],
}

impl<'a> Calldata<'a> {
    /// Splits calldata.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        match bytes.split_first_chunk::<4>() {
            Some((&selector, data)) => Ok(Calldata { selector, data }),
            None => Err(Refusal::of::<IMuster::MalformedCalldata>(([0; 4],))),
        }
    }

    /// The arguments as the tuple `S` of Solidity types. Bytes after them are not looked at.
    pub fn arguments<S, T: Reads<'a, S>>(self) -> Result<T> {
        T::read_all(self)
    }

    #[cold]
    #[inline(never)]
    fn malformed(self) -> Refusal {
        Refusal::of::<IMuster::MalformedCalldata>((self.selector,))
    }

    /// Refuses data that has not this many words.
    #[inline(never)]
    fn holds(self, words: usize) -> Result<()> {
        if self.data.len() / WORD < words {
            return Err(self.malformed());
        }
        Ok(())
    }

    /// The word at `at`; zero beyond the data, whose length was checked before.
    #[inline(never)]
    fn word(self, at: usize) -> Word {
        self.data.get(at * WORD..).and_then(|b| b.first_chunk()).map_or(Word::ZERO, |b| Word::from_be_bytes(*b))
    }

    /// The number at `at`, which must be below 2^`bits`.
    #[inline(never)]
    fn number(self, at: usize, bits: u32) -> Result<u64> {
        let [v, rest @ ..] = self.word(at).0;
        if rest != [0; 3] || (bits < 64 && v >> bits != 0) {
            return Err(self.malformed());
        }
        Ok(v)
    }

    #[inline(never)]
    fn address(self, at: usize) -> Result<Address> {
        let word = self.word(at);
        if word.0[3] != 0 || word.0[2] >> 32 != 0 {
            return Err(self.malformed());
        }
        Ok(muster_core::word::Field::read(&word, 0, 160))
    }

    /// The data from word `at` on.
    fn after(self, at: usize) -> Self {
        Calldata { data: self.data.get(at * WORD..).unwrap_or_default(), ..self }
    }

    /// The content behind the head at `at`.
    #[inline(never)]
    fn behind(self, at: usize) -> Result<Self> {
        let from = self.number(at, 32)? as usize;
        Ok(Calldata { data: self.data.get(from..).unwrap_or_default(), ..self })
    }

    /// The length of the list or text behind the head at `at`, and the data after it.
    #[inline(never)]
    fn list(self, at: usize) -> Result<(usize, Self)> {
        let behind = self.behind(at)?;
        behind.holds(1)?;
        let len = behind.number(0, 32)? as usize;
        Ok((len, Calldata { data: &behind.data[WORD..], ..self }))
    }
}

/// A value read as the Solidity type `S`.
pub trait Read<'a, S>: Sized {
    /// Words in the head.
    const WORDS: usize = 1;
    /// The value whose head starts at word `at`.
    fn read(c: Calldata<'a>, at: usize) -> Result<Self>;
}

/// Values read as a tuple of Solidity types.
pub trait Reads<'a, S>: Sized {
    /// Reads heads from the start.
    fn read_all(c: Calldata<'a>) -> Result<Self>;
}

macro_rules! reads {
    ($($n:tt $S:ident $T:ident),*) => {
        impl<'a, $($S, $T: Read<'a, $S>),*> Reads<'a, ($($S,)*)> for ($($T,)*) {
            #[inline(always)]
            #[allow(unused_mut, unused_variables, unused_assignments, clippy::unused_unit)]
            fn read_all(c: Calldata<'a>) -> Result<Self> {
                if 0 $(+ $T::WORDS)* > 0 {
                    c.holds(0 $(+ $T::WORDS)*)?;
                }
                let mut at = 0;
                Ok(($({
                    let here = at;
                    at += $T::WORDS;
                    $T::read(c, here)?
                },)*))
            }
        }
    };
}
reads!();
reads!(0 S0 T0);
reads!(0 S0 T0, 1 S1 T1);
reads!(0 S0 T0, 1 S1 T1, 2 S2 T2);
reads!(0 S0 T0, 1 S1 T1, 2 S2 T2, 3 S3 T3);
reads!(0 S0 T0, 1 S1 T1, 2 S2 T2, 3 S3 T3, 4 S4 T4);
reads!(0 S0 T0, 1 S1 T1, 2 S2 T2, 3 S3 T3, 4 S4 T4, 5 S5 T5);
reads!(0 S0 T0, 1 S1 T1, 2 S2 T2, 3 S3 T3, 4 S4 T4, 5 S5 T5, 6 S6 T6);
reads!(0 S0 T0, 1 S1 T1, 2 S2 T2, 3 S3 T3, 4 S4 T4, 5 S5 T5, 6 S6 T6, 7 S7 T7);

macro_rules! read_numbers {
    ($($t:ty = $bits:literal)*) => {$(impl<'a> Read<'a, sol_data::Uint<$bits>> for $t {
        #[inline(always)]
        fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
            Ok(c.number(at, $bits)? as $t)
        }
    })*};
}
read_numbers!(u8 = 8 u16 = 16 u32 = 32 u64 = 64);

impl<'a> Read<'a, sol_data::Uint<128>> for u128 {
    fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
        c.word(at).to_u128().ok_or_else(|| c.malformed())
    }
}
impl<'a> Read<'a, sol_data::Uint<256>> for Word {
    #[inline(always)]
    fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
        Ok(c.word(at))
    }
}
impl<'a> Read<'a, sol_data::Bool> for bool {
    #[inline(always)]
    fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
        Ok(c.number(at, 1)? != 0)
    }
}
impl<'a> Read<'a, sol_data::Address> for Address {
    #[inline(always)]
    fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
        c.address(at)
    }
}
impl<'a> Read<'a, sol_data::Address> for Account {
    #[inline(always)]
    fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
        Ok(c.address(at)?.into())
    }
}
impl<'a> Read<'a, sol_data::FixedBytes<32>> for [u8; 32] {
    #[inline(always)]
    fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
        Ok(c.word(at).to_be_bytes())
    }
}
impl<'a> Read<'a, sol_data::FixedBytes<4>> for [u8; 4] {
    #[inline(never)]
    fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
        let Word([a, b, d, v]) = c.word(at);
        if a | b | d | v << 32 != 0 {
            return Err(c.malformed());
        }
        Ok(((v >> 32) as u32).to_be_bytes())
    }
}
impl<'a, const N: usize> Read<'a, sol_data::FixedBytes<N>> for FixedBytes<N>
where
    [u8; N]: Read<'a, sol_data::FixedBytes<N>>,
{
    #[inline(always)]
    fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
        Ok(FixedBytes(<[u8; N]>::read(c, at)?))
    }
}
macro_rules! read_bytes {
    ($($sol:ident)*) => {$(impl<'a> Read<'a, sol_data::$sol> for &'a [u8] {
        #[inline(never)]
        fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
            let (len, behind) = c.list(at)?;
            behind.data.get(..len).ok_or_else(|| c.malformed())
        }
    })*};
}
read_bytes!(String Bytes);
impl<'a, S, T: Read<'a, S>> Read<'a, sol_data::Array<S>> for Vec<T> {
    #[inline(never)]
    fn read(c: Calldata<'a>, at: usize) -> Result<Self> {
        let (len, items) = c.list(at)?;
        items.holds(len.saturating_mul(T::WORDS))?;
        let mut list = Vec::with_capacity(len);
        for i in 0..len {
            list.push(T::read(items, i * T::WORDS)?);
        }
        Ok(list)
    }
}
