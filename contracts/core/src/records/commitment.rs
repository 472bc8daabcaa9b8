packed! {
    /// A node's commitment to its answer, for a task that may be sampled for validation.
    ///
    /// ```text
    /// | block | elapsed | hash_high | hash_low |
    ///    40       24        64          128
    /// ```
    pub struct Commitment {
        /// The commitment's bytes 8 to 23, as a number.
        hash_low: u128 = "uint128" 128,
        /// The commitment's bytes 0 to 7, as a number.
        hash_high: u64 = "uint64" 64,
        /// Seconds from the task's start to the commitment.
        elapsed: u32 = "uint24" 24,
        /// The L2 block whose hash decides whether the task is sampled.
        block: u64 = "uint40" 40,
    }
}

impl Commitment {
    /// Keeps a commitment's first 24 bytes. Finding two openings of them takes some 2^96 hashes.
    pub fn of(hash: [u8; 32], elapsed: u32, block: u64) -> Commitment {
        let [high, mid, low, _] = hash.as_chunks::<8>().0 else { return Commitment::default() };
        let number = |bytes: &[u8; 8]| u64::from_be_bytes(*bytes);
        Commitment { hash_high: number(high), hash_low: (number(mid) as u128) << 64 | number(low) as u128, elapsed, block }
    }

    /// The 24 kept bytes, followed by zeros.
    pub fn hash(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.hash_high.to_be_bytes());
        bytes[8..24].copy_from_slice(&self.hash_low.to_be_bytes());
        bytes
    }

    /// Whether `hash` begins with the 24 kept bytes.
    pub fn opens(&self, hash: [u8; 32]) -> bool {
        *self == Commitment::of(hash, self.elapsed, self.block)
    }
}
