packed! {
    /// The results of an application's groups since its target was last set, and the state of an adaptive target's climb
    /// ([`crate::adaptive::HillClimber`]).
    ///
    /// ```text
    /// | - | members | groups | successes | upwards | tried | stationary | phase | at |  gain  |
    ///   8     32        24        24          8        8         16          8     64      64
    /// ```
    pub struct TargetSearch {
        /// Climbing: the gain to exceed. At rest: the smoothed gain. A wad.
        gain: u64 = "uint64" 64,
        /// The best target so far, a wad.
        at: u64 = "uint64" 64,
        /// 0 before the first period, 1 climbing, 2 at rest.
        phase: u8 = "uint8" 8,
        /// Periods without a rise.
        stationary: u16 = "uint16" 16,
        /// Adaptive: targets tried around the best one since it became the best. Predictive: how often the target was set, up to 255.
        tried: u8 = "uint8" 8,
        /// Whether it climbs upwards.
        upwards: bool = "bool" 8,
        /// Groups that reached a majority.
        successes: u32 = "uint24" 24,
        /// Groups settled.
        groups: u32 = "uint24" 24,
        /// Members of the settled groups.
        members: u32 = "uint32" 32,
    }
}

impl TargetSearch {
    /// Before anything is settled.
    pub const START: TargetSearch =
        TargetSearch { gain: 0, at: 0, phase: 0, stationary: 0, tried: 0, upwards: true, successes: 0, groups: 0, members: 0 };

    /// Counts a settled group.
    pub fn count(&mut self, succeeded: bool, members: u32) {
        // A period that nobody ends does not overflow.
        if self.groups < (1 << 24) - 1 {
            self.successes += succeeded as u32;
            self.groups += 1;
            self.members += members;
        }
    }
}
