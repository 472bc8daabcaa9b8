use crate::record::MEMBERS_MOST;
use crate::reputation::Algorithm;
use crate::word::Word;

packed! {
    /// An application's profile: how the groups of its tasks of policy 3 are chosen.
    ///
    /// ```text
    /// | -  | period | alpha | target | targeting | reschedules | most | least | algorithm |
    ///   56     32      64      64         8            8          8      8         8
    /// ```
    pub struct Profile {
        /// [`Algorithm`] as a number.
        algorithm: u8 = "uint8" 8,
        /// Rmin, in nodes; 0 if the application has set nothing.
        least: u8 = "uint8" 8,
        /// Rmax, in nodes.
        most: u8 = "uint8" 8,
        /// Most further groups that a task is given to after groups without a majority.
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
    /// Set anew every period: the target with the largest expected gain in the present pool ([`crate::adaptive::best_target`]),
    /// averaged with the former targets ([`crate::adaptive::mean_target`]).
    Predictive = 0,
    /// One step of [`crate::adaptive::HillClimber`] every period.
    Adaptive = 1,
    /// The target stays as given.
    Given = 2,
}

impl Profile {
    /// The profile of an application that has set nothing. By rounding, the likelihood of an odd group of newcomers is just below one
    /// half. The target lies below that, so newcomers form the smallest groups.
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

    /// This profile, or the default where nothing was set.
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
