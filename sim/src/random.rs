//! Random numbers that are the same on every machine.

use rand_pcg::rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A stream of random numbers, fully determined by its name.
#[derive(Debug)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// The stream with this name; different names give unrelated streams.
    pub fn named(name: &[u64]) -> Self {
        // One round of SplitMix64's finaliser per part keeps neighbouring names apart.
        let seed = name.iter().fold(0x9e37_79b9_7f4a_7c15u64, |state, part| {
            let mut z = (state ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`, uniform except for 2^-64 times `end`.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }

    /// Moves `count` elements to the front, each choice and order as likely as any other.
    pub fn bring<T>(&mut self, some: &mut [T], count: usize) {
        for i in 0..count {
            let j = i + self.below(some.len() - i);
            some.swap(i, j);
        }
    }

    /// A number from 0 to below 1, a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A normally distributed number, as the sum of twelve uniform ones: exact in mean and variance, the same on every
    /// machine (no logarithm, no cosine), and never more than six deviations off.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| self.unit()).sum();
        mean + deviation * (sum - 6.0)
    }
}
