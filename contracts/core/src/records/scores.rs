use crate::word::Word;

packed! {
    /// The last 50 task scores, four bits each, and the place of the oldest.
    ///
    /// ```text
    /// | -  | next | last | high | mid | low |
    ///   48    8      8      64     64    64
    /// ```
    pub struct Scores {
        /// Scores 0..15, four bits each.
        low: u64 = "uint64" 64,
        /// Scores 16..31.
        mid: u64 = "uint64" 64,
        /// Scores 32..47.
        high: u64 = "uint64" 64,
        /// Scores 48 and 49.
        last: u8 = "uint8" 8,
        /// Where the next score goes.
        next: u8 = "uint8" 8,
    }
}

impl Scores {
    /// Puts `score` in the place of the oldest and returns what was there (0 while the pool fills).
    pub fn push(&mut self, score: u8) -> u8 {
        let i = self.next as u32;
        let mut w = Word([self.low, self.mid, self.high, self.last as u64]);
        let old = w.bits(i * 4, 4) as u8;
        w.set_bits(i * 4, 4, score as u64);
        let [low, mid, high, last] = w.0;
        *self = Scores { low, mid, high, last: last as u8, next: if i + 1 == crate::qos::POOL as u32 { 0 } else { i as u8 + 1 } };
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_pool_keeps_the_last_fifty() {
        let mut s = Scores::default();
        let scores: [u8; 123] = core::array::from_fn(|i| [10, 5, 2, 0][i * 7 % 4]);
        for (i, &x) in scores.iter().enumerate() {
            let old = s.push(x);
            assert_eq!(old, if i < 50 { 0 } else { scores[i - 50] });
        }
    }
}
