//! Random ratings, for tests of this crate and of the simulator.

use muster_core::wad::WAD;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

pub fn below(rng: &mut ChaCha8Rng, end: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(end)) >> 64) as u64
}

/// A rating between 0 and 1, both ends and their neighbourhoods included more often than chance would.
pub fn rating(rng: &mut ChaCha8Rng) -> u64 {
    match rng.next_u32() % 10 {
        0 => [0, 1, WAD / 2, WAD - 1, WAD][rng.next_u32() as usize % 5],
        1 => below(rng, 1 << 30),
        2 => WAD - below(rng, 1 << 30),
        _ => below(rng, WAD + 1),
    }
}

pub fn ratings(rng: &mut ChaCha8Rng, size: usize) -> Vec<u64> {
    (0..size).map(|_| rating(rng)).collect()
}
