use crate::reputation::Record;
use crate::word::Word;

packed! {
    /// A node's last 50 task scores, four bits each, the place of the oldest, and the two counts of its rating.
    ///
    /// ```text
    /// | -  | judged | right | next | last | high | mid | low |
    ///   32     8        8      8      8      64     64    64
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
        /// Judgements in the rating that found the node right.
        right: u8 = "uint8" 8,
        /// All judgements in the rating: below [`Scores::JUDGED_MOST`].
        judged: u8 = "uint8" 8,
    }
}

impl Scores {
    /// Judgements at which both counts of a rating are halved.
    pub const JUDGED_MOST: u8 = 64;

    /// Counts a judgement for the rating. At [`Scores::JUDGED_MOST`] both counts are halved, rounded down, so judgements of some hundred
    /// ago hardly count. The paper counts all alike, though it speaks of workers that change.
    pub fn note(&mut self, right: bool) {
        (self.right, self.judged) = (self.right + right as u8, self.judged + 1);
        if self.judged >= Scores::JUDGED_MOST {
            (self.right, self.judged) = (self.right / 2, self.judged / 2);
        }
    }

    /// Right judgements of all judgements; [`Record::rating`] computes the rating.
    pub fn record(&self) -> Record {
        Record::new(self.right as u32, self.judged as u32).unwrap_or_default()
    }

    /// Puts `score` in the place of the oldest and returns the former score there (0 while the pool fills).
    pub fn push(&mut self, score: u8) -> u8 {
        let i = self.next as u32;
        let mut w = Word([self.low, self.mid, self.high, self.last as u64]);
        let old = w.bits(i * 4, 4) as u8;
        w.set_bits(i * 4, 4, score as u64);
        let [low, mid, high, last] = w.0;
        let next = if i + 1 == crate::qos::POOL as u32 { 0 } else { i as u8 + 1 };
        *self = Scores { low, mid, high, last: last as u8, next, ..*self };
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wad::WAD;

    #[test]
    fn the_score_pool_keeps_the_last_fifty() {
        let mut s = Scores::default();
        let scores: [u8; 123] = core::array::from_fn(|i| [10, 5, 2, 0][i * 7 % 4]);
        for (i, &x) in scores.iter().enumerate() {
            let old = s.push(x);
            assert_eq!(old, if i < 50 { 0 } else { scores[i - 50] });
        }
        assert_eq!((s.right, s.judged), (0, 0));
    }

    #[test]
    fn a_rating_counts_the_last_judgements_most() {
        let mut s = Scores::default();
        assert_eq!(s.record().rating(), WAD / 2);
        for n in 1..64 {
            s.note(n % 3 == 0);
            assert_eq!(s.record(), Record::new(n / 3, n).unwrap());
        }
        s.note(true);
        assert_eq!(s.record(), Record::new(11, 32).unwrap());
        for _ in 0..1_000 {
            s.note(true);
            assert!(s.judged < Scores::JUDGED_MOST && s.right <= s.judged);
        }
        assert!(s.record().rating() > WAD / 20 * 19, "what was long ago is forgotten");
        for _ in 0..32 {
            s.note(false);
        }
        assert!(s.record().rating() < WAD / 10 * 6, "half a window of failures shows");
        let before = s;
        s.push(10);
        assert_eq!((s.right, s.judged), (before.right, before.judged));
    }
}
