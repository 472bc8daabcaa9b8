use crate::record::MEMBERS_MOST;
use crate::reputation::Algorithm;
use crate::word::Word;

packed! {
    /// How the groups of an application's tasks are chosen whose nodes are chosen by their ratings.
    ///
    /// ```text
    /// | -  | period | alpha | target | targeting | reschedules | most | least | algorithm |
    ///   56     32      64      64         8            8          8      8         8
    /// ```
    pub struct Profile {
        /// [`Algorithm`] as a number.
        algorithm: u8 = "uint8" 8,
        /// Rmin; 0 if the application has set nothing.
        least: u8 = "uint8" 8,
        /// Rmax.
        most: u8 = "uint8" 8,
        /// How often at most a task is given to another group after one without a majority.
        reschedules: u8 = "uint8" 8,
        /// Where the target comes from: [`Targeting`] as a number.
        targeting: u8 = "uint8" 8,
        /// The target likelihood of correctness now, a wad.
        target: u64 = "uint64" 64,
        /// Weight of throughput in the gain, a wad.
        alpha: u64 = "uint64" 64,
        /// Settled groups after which the target is set anew.
        period: u32 = "uint32" 32,
    }
}

/// Where an application's target comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Targeting {
    /// Every period the one with the largest expected gain in the pool at hand, [`crate::adaptive::best_target`], in the mean with
    /// the former: [`crate::adaptive::mean_target`].
    Predictive = 0,
    /// One step of [`crate::adaptive::HillClimber`] every period.
    Adaptive = 1,
    /// It stays as it was given.
    Given = 2,
}

impl Profile {
    /// What holds for an application that has set nothing. By rounding, an odd group of newcomers is right with a likelihood just below
    /// one half; the target is below it, so that they form the smallest groups.
    pub const DEFAULT: Profile = Profile {
        algorithm: Algorithm::FirstFit as u8,
        least: 3,
        most: 7,
        reschedules: 2,
        targeting: Targeting::Predictive as u8,
        target: crate::wad::WAD / 100 * 49,
        alpha: crate::wad::WAD / 2,
        period: Profile::PERIOD_LEAST,
    };
    /// Shortest period, in settled groups.
    pub const PERIOD_LEAST: u32 = 300;
    /// Longest period, in settled groups.
    pub const PERIOD_MOST: u32 = 1_000_000;
    /// Most groups without a majority after which a task can be given to another.
    pub const RESCHEDULES_MOST: u8 = 8;

    /// Rmax of a record's word, or the default's where nothing was set.
    pub fn most_of(word: &Word) -> u8 {
        match word.bits(16, 8) {
            0 => Profile::DEFAULT.most,
            most => most as u8,
        }
    }

    /// Itself, or the default where nothing was set.
    pub fn or_default(self) -> Profile {
        if self.least == 0 {
            Profile::DEFAULT
        } else {
            self
        }
    }

    /// Whether its numbers are within their bounds.
    pub fn valid(&self) -> bool {
        let wad = |x: u64| x <= crate::wad::WAD;
        Algorithm::new(self.algorithm).is_some()
            && 3 <= self.least
            && self.least <= self.most
            && self.most as usize <= MEMBERS_MOST
            && self.reschedules <= Profile::RESCHEDULES_MOST
            && self.targeting <= Targeting::Given as u8
            && wad(self.target)
            && wad(self.alpha)
            && (Profile::PERIOD_LEAST..=Profile::PERIOD_MOST).contains(&self.period)
    }
}
