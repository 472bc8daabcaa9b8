//! One storage word and the macro that packs a record into it.
//!
//! Fields lie as Solidity packs a struct: in declared order from the least significant bit up, each
//! a whole number of bytes, none crossing the word.

/// An account address, 20 bytes, most significant first.
pub type Address = [u8; 20];

/// A 256-bit storage word as four limbs, least significant first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash)]
pub struct Word(pub [u64; 4]);

impl Word {
    /// The word of a slot nobody has written.
    pub const ZERO: Word = Word([0; 4]);

    /// Whether every bit is clear.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.0[0] | self.0[1] | self.0[2] | self.0[3] == 0
    }

    /// The number it is, if that is below 2^128.
    #[inline]
    pub fn to_u128(&self) -> Option<u128> {
        (self.0[2] | self.0[3] == 0).then(|| self.0[0] as u128 | (self.0[1] as u128) << 64)
    }

    /// The word as 32 big-endian bytes, as a storage slot is read from outside.
    #[inline(never)]
    pub fn to_be_bytes(&self) -> [u8; 32] {
        let mut out = [0; 32];
        for (i, limb) in self.0.iter().rev().enumerate() {
            out[i * 8..i * 8 + 8].copy_from_slice(&limb.to_be_bytes());
        }
        out
    }

    /// The inverse of [`Word::to_be_bytes`].
    #[inline(never)]
    pub fn from_be_bytes(bytes: [u8; 32]) -> Word {
        let limb = |i: usize| {
            let mut b = [0; 8];
            b.copy_from_slice(&bytes[i * 8..i * 8 + 8]);
            u64::from_be_bytes(b)
        };
        Word([limb(3), limb(2), limb(1), limb(0)])
    }

    /// `width` bits from bit `at`; `width` at most 64, `at + width` at most 256.
    #[inline(always)]
    pub fn bits(&self, at: u32, width: u32) -> u64 {
        let (limb, shift) = ((at / 64) as usize, at % 64);
        let mut v = self.0[limb] >> shift;
        if shift + width > 64 {
            v |= self.0[limb + 1] << (64 - shift);
        }
        if width < 64 {
            v &= (1 << width) - 1;
        }
        v
    }

    /// Writes the low `width` bits of `v` at bit `at`, leaving the others; same limits as [`Word::bits`].
    #[inline(always)]
    pub fn set_bits(&mut self, at: u32, width: u32, v: u64) {
        let (limb, shift) = ((at / 64) as usize, at % 64);
        let mask = if width < 64 { (1 << width) - 1 } else { u64::MAX };
        let v = v & mask;
        self.0[limb] = self.0[limb] & !(mask << shift) | v << shift;
        if shift + width > 64 {
            let up = 64 - shift;
            self.0[limb + 1] = self.0[limb + 1] & !(mask >> up) | v >> up;
        }
    }

    /// Lane `i` of a `uint32[8]` held in one word.
    #[inline(always)]
    pub fn lane32(&self, i: u32) -> u32 {
        self.bits(i * 32, 32) as u32
    }

    /// Sets lane `i` of a `uint32[8]`.
    #[inline(always)]
    pub fn set_lane32(&mut self, i: u32, v: u32) {
        self.set_bits(i * 32, 32, v as u64);
    }
}

impl From<u64> for Word {
    fn from(v: u64) -> Word {
        Word([v, 0, 0, 0])
    }
}

impl From<Address> for Word {
    fn from(a: Address) -> Word {
        let mut bytes = [0; 32];
        bytes[12..].copy_from_slice(&a);
        Word::from_be_bytes(bytes)
    }
}

/// A value that can be a field of a packed record.
pub trait Field: Sized {
    /// Reads `width` bits at bit `at`.
    fn read(w: &Word, at: u32, width: u32) -> Self;
    /// Writes `width` bits at bit `at`; a value that does not fit is cut, so callers check before.
    fn write(&self, w: &mut Word, at: u32, width: u32);
}

macro_rules! small_field {
    ($($t:ty)*) => {$(
        impl Field for $t {
            #[inline(always)]
            fn read(w: &Word, at: u32, width: u32) -> Self { w.bits(at, width) as $t }
            #[inline(always)]
            fn write(&self, w: &mut Word, at: u32, width: u32) { w.set_bits(at, width, *self as u64) }
        }
    )*};
}
small_field!(u8 u16 u32 u64);

impl Field for bool {
    #[inline(always)]
    fn read(w: &Word, at: u32, width: u32) -> Self {
        w.bits(at, width) != 0
    }
    #[inline(always)]
    fn write(&self, w: &mut Word, at: u32, width: u32) {
        w.set_bits(at, width, *self as u64);
    }
}

impl Field for u128 {
    #[inline(always)]
    fn read(w: &Word, at: u32, width: u32) -> Self {
        w.bits(at, 64) as u128 | (w.bits(at + 64, width - 64) as u128) << 64
    }
    #[inline(always)]
    fn write(&self, w: &mut Word, at: u32, width: u32) {
        w.set_bits(at, 64, *self as u64);
        w.set_bits(at + 64, width - 64, (*self >> 64) as u64);
    }
}

impl Field for Address {
    // Out of line: written out at every record with an address, it would be a twentieth of a program.
    #[inline(never)]
    fn read(w: &Word, at: u32, _width: u32) -> Self {
        // Byte by byte: WASM has no instruction that turns a number round.
        let limbs = [w.bits(at + 128, 32), w.bits(at + 64, 64), w.bits(at, 64)];
        core::array::from_fn(|i| (limbs[(i + 4) / 8] >> (56 - (i + 4) % 8 * 8)) as u8)
    }
    #[inline(never)]
    fn write(&self, w: &mut Word, at: u32, _width: u32) {
        let limb = |b: &[u8]| b.iter().fold(0, |v: u64, &x| v << 8 | x as u64);
        w.set_bits(at + 128, 32, limb(&self[..4]));
        w.set_bits(at + 64, 64, limb(&self[4..12]));
        w.set_bits(at, 64, limb(&self[12..]));
    }
}

/// Name, width in bits and Solidity type of every field, in order from the low bits up.
pub type Fields = &'static [(&'static str, u32, &'static str)];

/// Where a field lies: its lowest bit and its width. For constants; it stops the compilation where there is no such field.
pub const fn place(fields: Fields, name: &str) -> (u32, u32) {
    let (mut i, mut at) = (0, 0);
    loop {
        let (field, width, _) = fields[i];
        if same(field.as_bytes(), name.as_bytes()) {
            return (at, width);
        }
        at += width;
        i += 1;
    }
}

/// Whether two texts are the same, in a constant.
const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// A record that is exactly one storage word.
pub trait Packed: Sized {
    /// Its fields.
    const FIELDS: Fields;
    /// Reads the record out of its word.
    fn unpack(w: Word) -> Self;
    /// The word to store.
    fn pack(&self) -> Word;
}

/// An address alone in its word.
impl Packed for Address {
    const FIELDS: Fields = &[("", 160, "address")];
    fn unpack(w: Word) -> Self {
        Field::read(&w, 0, 160)
    }
    fn pack(&self) -> Word {
        Word::from(*self)
    }
}

/// Declares a record of one word: `field: Type = "solidity type" bits`.
#[macro_export]
macro_rules! packed {
    ($(#[$doc:meta])* pub struct $name:ident {
        $($(#[$fdoc:meta])* $field:ident: $ty:ty = $sol:literal $bits:literal),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }

        const _: () = {
            #[allow(non_camel_case_types)]
            enum Nth { $($field),* }
            const WIDTHS: &[u32] = &[$($bits),*];
            const fn at(n: usize) -> u32 {
                let (mut i, mut sum) = (0, 0);
                while i < n {
                    sum += WIDTHS[i];
                    i += 1;
                }
                sum
            }
            assert!(at(WIDTHS.len()) <= 256, "the record is wider than a word");
            impl $crate::word::Packed for $name {
                const FIELDS: $crate::word::Fields =
                    &[$((stringify!($field), $bits, $sol)),*];
                #[inline(never)]
                fn unpack(w: $crate::word::Word) -> Self {
                    Self { $($field: <$ty as $crate::word::Field>::read(
                        &w, const { at(Nth::$field as usize) }, $bits)),* }
                }
                #[inline(never)]
                fn pack(&self) -> $crate::word::Word {
                    let mut w = $crate::word::Word::ZERO;
                    $($crate::word::Field::write(
                        &self.$field, &mut w, const { at(Nth::$field as usize) }, $bits);)*
                    w
                }
            }
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    packed! {
        /// Fields of every kind, some across limbs.
        pub struct Sample {
            a: u8 = "uint8" 8,
            b: u64 = "uint48" 48,
            c: u128 = "uint96" 96,
            d: u64 = "uint64" 64,
            e: u64 = "uint40" 40,
        }
    }

    packed! {
        /// An address not at a limb's edge.
        pub struct Owned { n: u32 = "uint32" 32, who: Address = "address" 160, on: bool = "bool" 8 }
    }

    #[test]
    fn fields_come_back_and_do_not_touch_each_other() {
        let s = Sample { a: 0xab, b: (1 << 48) - 2, c: (1 << 96) - 3, d: u64::MAX - 4, e: (1 << 40) - 5 };
        assert_eq!(Sample::unpack(s.pack()), s);
        let only_c = Sample { c: (1 << 96) - 1, ..Default::default() };
        assert_eq!(Sample::unpack(only_c.pack()), only_c);
        let mut who = [0; 20];
        (0..20).for_each(|i| who[i] = i as u8 * 11 + 1);
        let o = Owned { n: 7, who, on: true };
        assert_eq!(Owned::unpack(o.pack()), o);
    }

    #[test]
    fn fields_lie_one_after_the_other() {
        assert_eq!(place(Sample::FIELDS, "a"), (0, 8));
        assert_eq!(place(Sample::FIELDS, "e"), (216, 40));
        assert_eq!(place(Owned::FIELDS, "on"), (192, 8));
        let mut w = Word::ZERO;
        let (at, width) = const { place(Sample::FIELDS, "d") };
        w.set_bits(at, width, 7);
        assert_eq!(Sample::unpack(w), Sample { d: 7, ..Default::default() });
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn a_field_that_is_not_there_lies_nowhere() {
        place(Sample::FIELDS, "ab");
    }

    #[test]
    fn bytes_lie_as_solidity_packs_them() {
        let o = Owned { n: 0x01020304, who: [0x99; 20], on: true };
        let b = o.pack().to_be_bytes();
        assert_eq!(&b[28..], &[1, 2, 3, 4]);
        assert_eq!(&b[8..28], &[0x99; 20]);
        assert_eq!(&b[..8], &[0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(Word::from_be_bytes(b), o.pack());
    }
}
