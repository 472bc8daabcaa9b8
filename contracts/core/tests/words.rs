//! Every record and its word are one to one, for all values, shown without a solver.
//!
//! Reading and writing a field are made of shifts, masks and bitwise ors alone ([`muster_core::word::Word::bits`] and `set_bits`). Each is
//! therefore linear: its result for a word is the bitwise or of its results for the word's single bits. So three checks on single bits and
//! pairs of bits hold for all words:
//!
//! 1. a record's word has no bit outside its fields, and each bit within them comes back (`pack(unpack(bit)) == bit`);
//! 2. no two bits meet (`pack(unpack(a | b)) == a | b`), so no field touches another;
//! 3. no field reads a bit outside it.
//!
//! A `bool` of eight bits holds 0 and 1 only: of its bits the lowest comes back, and the others read as true. Random words check the linearity
//! that the argument rests on.

use muster_core::record::*;
use muster_core::word::{Packed, Word};
use rand_chacha::{
    rand_core::{RngCore, SeedableRng},
    ChaCha8Rng,
};

fn bit(i: u32) -> Word {
    let mut word = Word::ZERO;
    word.set_bits(i, 1, 1);
    word
}

fn or(a: Word, b: Word) -> Word {
    let mut out = Word::ZERO;
    for at in (0..256).step_by(64) {
        out.set_bits(at, 64, a.bits(at, 64) | b.bits(at, 64));
    }
    out
}

/// The part of a word that comes back: every bit of a field, and of a `bool` whether there is any.
fn kept<T: Packed>(word: Word) -> Word {
    let (mut out, mut at) = (Word::ZERO, 0);
    for &(_, width, kind) in T::FIELDS {
        for i in (0..width).step_by(64) {
            let bits = word.bits(at + i, 64.min(width - i));
            out.set_bits(at + i, 64.min(width - i), if kind == "bool" { (bits != 0) as u64 } else { bits });
        }
        at += width;
    }
    out
}

fn check<T: Packed>() -> u32 {
    let through = |word: Word| T::unpack(word).pack();
    assert!(through(Word::ZERO).is_zero());
    for i in 0..256 {
        assert!(through(bit(i)) == kept::<T>(bit(i)), "bit {i}");
        for j in 0..i {
            let both = or(bit(i), bit(j));
            assert!(through(both) == kept::<T>(both), "bits {i} and {j}");
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(256);
    for _ in 0..10_000 {
        let mut word = Word::ZERO;
        (0..4).for_each(|limb| word.set_bits(64 * limb, 64, rng.next_u64()));
        assert!(through(word) == kept::<T>(word), "a random word");
    }
    1
}

macro_rules! all {
    ($($record:ident)*) => { 0 $(+ check::<$record>())* };
}

#[test]
fn every_record_and_its_word_are_one_to_one() {
    let checked = all!(Account Assignment Classes Commitment Escrow Head Limits Listed Members Models NextParameter Node Operator Order Ownership
        Places Pool Profile Proposal Queue Receipt Reserved Rules Scores Size TargetSearch Terms ValidatorDraw);
    assert_eq!(checked as usize, RECORDS.len(), "a record is not checked");
}
