//! When a claim holds: rules that need no run, each tested by hand.

use super::fit::Range;
use crate::statistics::Estimate;

/// How a claim fares against our figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    Partly,
    Differs,
}

impl Verdict {
    pub const ALL: [Self; 3] = [Self::Holds, Self::Partly, Self::Differs];

    pub const fn text(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Partly => "in part",
            Self::Differs => "differs",
        }
    }

    pub fn of(good: usize, all: usize) -> Self {
        match good {
            _ if good == all => Self::Holds,
            0 => Self::Differs,
            _ => Self::Partly,
        }
    }

    pub fn if_holds(holds: bool) -> Self {
        if holds {
            Self::Holds
        } else {
            Self::Differs
        }
    }

    fn if_partly(holds: bool) -> Self {
        if holds {
            Self::Holds
        } else {
            Self::Partly
        }
    }
}

/// Estimates beside a range. One whose interval holds an end of it is neither within nor outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    pub within: usize,
    pub outside: usize,
    pub all: usize,
}

impl Split {
    pub fn of(range: Range, estimates: &[Estimate]) -> Self {
        let within = |e: &&Estimate| range.0 <= e.low() && e.high() <= range.1;
        let outside = |e: &&Estimate| !range.meets(**e);
        Self {
            within: estimates.iter().filter(within).count(),
            outside: estimates.iter().filter(outside).count(),
            all: estimates.len(),
        }
    }

    pub fn verdict(self) -> Verdict {
        if self.outside == self.all {
            Verdict::Differs
        } else {
            Verdict::if_partly(self.within == self.all)
        }
    }
}

/// How near to an end of a range is there, as a share of that end.
const NEAR: f64 = 0.1;

/// The ends of a range that the least and the largest of some estimates come near to. The claim "by 25 to 250 percent" means that both were seen.
pub fn ends_reached(range: Range, estimates: &[Estimate]) -> (bool, bool) {
    let by_mean = |a: &&Estimate, b: &&Estimate| a.mean.total_cmp(&b.mean);
    let near =
        |end: f64, estimate: Option<&Estimate>| estimate.is_some_and(|e| Range(end * (1.0 - NEAR), end * (1.0 + NEAR)).meets(*e));
    (near(range.0, estimates.iter().min_by(by_mean)), near(range.1, estimates.iter().max_by(by_mean)))
}

/// "The only one is there": in part if it is, beside others.
pub fn only(there: bool, elsewhere: usize) -> Verdict {
    if there {
        Verdict::if_partly(elsewhere == 0)
    } else {
        Verdict::Differs
    }
}

/// "More likely than elsewhere": in part if only more likely than on average.
pub fn likelier(here: f64, elsewhere: &[f64]) -> Verdict {
    let mean = elsewhere.iter().sum::<f64>() / elsewhere.len().max(1) as f64;
    match here {
        _ if here > 0.0 && elsewhere.iter().all(|other| here > *other) => Verdict::Holds,
        _ if here > mean => Verdict::Partly,
        _ => Verdict::Differs,
    }
}

/// "Very large groups": half a member from the largest there may be; in part if they have only grown.
pub fn very_large(members: Estimate, grown: Estimate, most: usize) -> Verdict {
    if members.low() >= most as f64 - 0.5 {
        Verdict::Holds
    } else if grown.low() > 0.0 {
        Verdict::Partly
    } else {
        Verdict::Differs
    }
}

/// "Immediately starts by reducing": by the number of runs that do so at once; in part if the mean is clearly reduced a little later.
pub fn at_once(runs: usize, all: usize, later: Estimate) -> Verdict {
    if runs * 10 >= all * 9 {
        Verdict::Holds
    } else if later.high() < 0.0 {
        Verdict::Partly
    } else {
        Verdict::Differs
    }
}

/// The runs that notice a change, of all, and how long they take to converge again.
#[derive(Clone, Copy, Debug)]
pub struct Noticed {
    pub runs: usize,
    pub all: usize,
    pub rounds: Estimate,
}

/// The time depends on the magnitude if it clearly differs between the least and the greatest at which two runs or more notice the
/// change. It does so in part if at some magnitude most runs do not notice it, because there is then no time to speak of.
pub fn depends(magnitudes: &[Noticed]) -> Verdict {
    let told: Vec<Estimate> = magnitudes.iter().filter(|m| m.runs >= 2).map(|m| m.rounds).collect();
    let apart = match told[..] {
        [first, .., last] => {
            let difference = apart(first, last);
            difference.low() > 0.0 || difference.high() < 0.0
        }
        _ => false,
    };
    if apart {
        Verdict::if_partly(magnitudes.iter().all(|m| m.runs * 2 >= m.all))
    } else {
        Verdict::Differs
    }
}

/// The difference of two means measured on different workers.
pub fn apart(from: Estimate, to: Estimate) -> Estimate {
    Estimate {
        mean: to.mean - from.mean,
        margin: (from.margin * from.margin + to.margin * to.margin).sqrt(),
        count: to.count.min(from.count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, margin: f64) -> Estimate {
        Estimate { mean, margin, count: 6 }
    }

    #[test]
    fn verdicts_count_what_is_good() {
        assert_eq!(Verdict::of(6, 6), Verdict::Holds);
        assert_eq!(Verdict::of(1, 6), Verdict::Partly);
        assert_eq!(Verdict::of(0, 6), Verdict::Differs);
    }

    #[test]
    fn an_interval_that_reaches_into_a_range_is_not_within_it() {
        let range = Range(-0.05, 0.05);
        let (inside, straddling, outside) = (estimate(0.01, 0.03), estimate(-0.06, 0.07), estimate(-0.08, 0.02));
        let of = |estimates: &[Estimate]| {
            let split = Split::of(range, estimates);
            (split.within, split.outside, split.verdict())
        };
        assert_eq!(of(&[inside, inside]), (2, 0, Verdict::Holds));
        assert_eq!(of(&[inside, straddling]), (1, 0, Verdict::Partly));
        assert_eq!(of(&[straddling, straddling]), (0, 0, Verdict::Partly));
        assert_eq!(of(&[inside, outside]), (1, 1, Verdict::Partly));
        assert_eq!(of(&[outside, outside]), (0, 2, Verdict::Differs));
    }

    #[test]
    fn a_range_that_is_named_has_been_seen_up_to_its_ends() {
        let range = Range(0.25, 2.5);
        let gains = |low, high| [estimate(1.0, 0.1), estimate(low, 0.01), estimate(high, 0.05)];
        // 0.9 and 1.1 times the ends: 0.225 to 0.275, 2.25 to 2.75.
        assert_eq!(ends_reached(range, &gains(0.28, 2.3)), (true, true));
        assert_eq!(ends_reached(range, &gains(0.29, 2.3)), (false, true));
        assert_eq!(ends_reached(range, &gains(0.26, 1.6)), (true, false));
        assert_eq!(ends_reached(range, &gains(0.2, 3.0)), (false, false));
        assert_eq!(ends_reached(range, &[]), (false, false));
    }

    #[test]
    fn what_is_said_to_be_the_only_one_has_to_be_there() {
        assert_eq!(only(true, 0), Verdict::Holds);
        assert_eq!(only(true, 2), Verdict::Partly);
        assert_eq!(only(false, 0), Verdict::Differs);
        assert_eq!(only(false, 2), Verdict::Differs);
    }

    #[test]
    fn likelier_than_everywhere_else_or_than_on_average() {
        assert_eq!(likelier(0.3, &[0.2, 0.0]), Verdict::Holds);
        assert_eq!(likelier(0.2, &[0.2, 0.0]), Verdict::Partly);
        assert_eq!(likelier(0.1, &[0.2, 0.0]), Verdict::Differs);
        // Nobody is ever stuck.
        assert_eq!(likelier(0.0, &[0.0, 0.0]), Verdict::Differs);
    }

    #[test]
    fn groups_are_very_large_near_the_largest_there_may_be() {
        let (grown, same) = (estimate(0.5, 0.1), estimate(0.1, 0.2));
        assert_eq!(very_large(estimate(6.6, 0.1), grown, 7), Verdict::Holds);
        assert_eq!(very_large(estimate(6.6, 0.2), grown, 7), Verdict::Partly);
        assert_eq!(very_large(estimate(5.9, 0.1), grown, 7), Verdict::Partly);
        assert_eq!(very_large(estimate(5.9, 0.1), same, 7), Verdict::Differs);
    }

    #[test]
    fn immediately_is_nine_runs_of_ten() {
        let (lower, same) = (estimate(-0.04, 0.02), estimate(-0.01, 0.02));
        assert_eq!(at_once(36, 40, same), Verdict::Holds);
        assert_eq!(at_once(35, 40, lower), Verdict::Partly);
        assert_eq!(at_once(35, 40, same), Verdict::Differs);
    }

    #[test]
    fn who_does_not_notice_a_change_has_no_time_to_converge() {
        let noticed = |runs, mean, margin| Noticed { runs, all: 10, rounds: Estimate { mean, margin, count: runs } };
        // 100 +- 30 and 200 +- 40 are 100 +- 50 apart.
        assert_eq!(depends(&[noticed(9, 100.0, 30.0), noticed(10, 200.0, 40.0)]), Verdict::Holds);
        assert_eq!(depends(&[noticed(0, 0.0, 0.0), noticed(9, 100.0, 30.0), noticed(10, 200.0, 40.0)]), Verdict::Partly);
        assert_eq!(depends(&[noticed(9, 100.0, 60.0), noticed(10, 200.0, 80.0)]), Verdict::Differs);
        // None at 10 %, one at 30 %: the time of the runs at 60 % cannot be compared.
        assert_eq!(depends(&[noticed(0, 0.0, 0.0), noticed(1, 10.0, 0.0), noticed(10, 200.0, 40.0)]), Verdict::Differs);
        assert_eq!(depends(&[]), Verdict::Differs);
    }
}
