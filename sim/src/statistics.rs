//! Means with 95 % confidence intervals.

use muster_core::wad::{exp_neg_wad, WAD};

/// A sample's mean and the half-width of its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    pub mean: f64,
    /// Zero if there is only one value, which tells nothing about its spread.
    pub margin: f64,
    pub count: usize,
}

impl Estimate {
    pub fn of(values: &[f64]) -> Self {
        let count = values.len();
        if count == 0 {
            return Self::default();
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        if count == 1 {
            return Self { mean, margin: 0.0, count };
        }
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (count - 1) as f64;
        let margin = student(count - 1, TAIL) * (variance / count as f64).sqrt();
        Self { mean, margin, count }
    }

    pub fn low(&self) -> f64 {
        self.mean - self.margin
    }

    pub fn high(&self) -> f64 {
        self.mean + self.margin
    }

    /// With the interval that holds in all of this many comparisons together, in 95 of 100 cases (Bonferroni).
    pub fn among(self, comparisons: usize) -> Self {
        if self.count < 2 {
            return self;
        }
        let degrees = self.count - 1;
        let tail = TAIL / comparisons.max(1) as f64;
        let wider = student(degrees, tail) / student(degrees, TAIL);
        Self { margin: self.margin * wider, ..self }
    }

    /// The ends of the interval of a quantity that cannot be negative. Where the symmetric interval comes near zero or below
    /// it, that of the logarithm (delta method) counts too: each end is the one that lies further out above zero.
    pub fn positive(&self) -> (f64, f64) {
        let (low, high) = (self.low(), self.high());
        if self.mean <= 0.0 || self.margin < self.mean / 2.0 {
            return (low, high);
        }
        let factor = exp(self.margin / self.mean);
        let least = self.mean / factor;
        (if low > 0.0 { low.min(least) } else { least }, high.max(self.mean * factor))
    }
}

/// e^x for 0 <= x <= 41, core's, because those of machines differ in the last digit.
fn exp(x: f64) -> f64 {
    let x = (x.min(41.0) * WAD as f64) as u128;
    WAD as f64 / exp_neg_wad(x) as f64
}

/// The probability above a 95 % interval.
const TAIL: f64 = 0.025;

/// The value above which Student's t lies with probability `tail`, found by bisection.
fn student(degrees: usize, tail: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while above(high, degrees) > tail {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if above(middle, degrees) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The probability that Student's t is above `t` >= 0: Abramowitz and Stegun 26.7.3 and 26.7.4.
fn above(t: f64, degrees: usize) -> f64 {
    let n = degrees as f64;
    let cosine = (n / (n + t * t)).sqrt();
    let sine = t / (n + t * t).sqrt();
    // Terms grow by cos^2 (k - 1) / k, for k = 3, 5, ... or 2, 4, ... below the degrees.
    let series = |first: f64, from: usize| {
        let mut term = first;
        let mut sum = first;
        for k in (from..degrees).step_by(2) {
            term *= cosine * cosine * (k - 1) as f64 / k as f64;
            sum += term;
        }
        sum
    };
    let within = if degrees.is_multiple_of(2) {
        sine * series(1.0, 2)
    } else {
        let rest = if degrees > 1 { sine * series(cosine, 3) } else { 0.0 };
        2.0 / std::f64::consts::PI * (arctangent(t / n.sqrt()) + rest)
    };
    (1.0 - within) / 2.0
}

/// The angle is halved until its series converges at once; the square root is the same on every machine.
fn arctangent(mut x: f64) -> f64 {
    const HALVINGS: i32 = 6;
    for _ in 0..HALVINGS {
        x /= 1.0 + (1.0 + x * x).sqrt();
    }
    let mut sum = 0.0;
    for k in (0..10).rev() {
        sum = 1.0 / f64::from(2 * k + 1) - x * x * sum;
    }
    x * sum * 64.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn by_hand() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(estimate.mean, 2.5);
        // Deviation sqrt(5/3), divided by 2, times 3.182.
        assert!((estimate.margin - 3.182_446_305 * (5.0f64 / 3.0).sqrt() / 2.0).abs() < 1e-9);
        assert_eq!(Estimate::of(&[7.0]), Estimate { mean: 7.0, margin: 0.0, count: 1 });
        assert_eq!(Estimate::of(&[]).count, 0);
    }

    /// Against published tables of the t distribution.
    #[test]
    fn quantiles_of_student() {
        for (degrees, tail, want) in [
            (1, 0.025, 12.706),
            (2, 0.025, 4.303),
            (5, 0.025, 2.571),
            (7, 0.025, 2.365),
            (30, 0.025, 2.042),
            (120, 0.025, 1.980),
            (1, 0.005, 63.657),
            (4, 0.005, 4.604),
            (7, 0.0005, 5.408),
            (19, 0.005, 2.861),
            (100, 0.0005, 3.390),
        ] {
            let got = student(degrees, tail);
            assert!((got - want).abs() < 6e-4, "{degrees}, {tail}: {got}");
        }
    }

    #[test]
    fn more_comparisons_need_wider_intervals() {
        let one = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(one.among(1), one);
        // 0.025 / 5 with 4 degrees of freedom: 4.604 instead of 2.776.
        let five = one.among(5);
        assert!((five.margin / one.margin - 4.604 / 2.776).abs() < 1e-3);
        assert_eq!(five.mean, one.mean);
    }

    /// Rare events, counted in eight runs: the interval stays above zero, and holds the true mean at least as often as the
    /// symmetric one.
    #[test]
    fn intervals_of_counts_stay_above_zero() {
        let mut random = Random::named(&[3]);
        for rate in [0.3, 1.0, 4.0] {
            let (mut covered, mut symmetric, mut trials) = (0, 0, 0);
            while trials < 4000 {
                let sample: Vec<f64> =
                    (0..8).map(|_| (0..1000).filter(|_| random.unit() < rate / 1000.0).count() as f64).collect();
                let estimate = Estimate::of(&sample);
                if estimate.mean == 0.0 {
                    continue;
                }
                let (low, high) = estimate.positive();
                assert!(low > 0.0 && high >= low);
                trials += 1;
                covered += usize::from(low <= rate && rate <= high);
                symmetric += usize::from(estimate.low() <= rate && rate <= estimate.high());
            }
            let share = |n: usize| n as f64 / trials as f64;
            assert!(share(covered) > 0.93, "{rate}: {}", share(covered));
            assert!(share(covered) > share(symmetric) - 0.01, "{rate}");
        }
    }

    /// The interval must hold the true mean in about 95 of 100 cases.
    #[test]
    fn intervals_cover_what_they_claim() {
        let mut random = Random::named(&[2]);
        for size in [2, 3, 10, 50] {
            let trials = 4000;
            let covered = (0..trials)
                .filter(|_| {
                    let sample: Vec<f64> = (0..size).map(|_| random.normal(5.0, 2.0)).collect();
                    let estimate = Estimate::of(&sample);
                    estimate.low() <= 5.0 && 5.0 <= estimate.high()
                })
                .count();
            let share = covered as f64 / f64::from(trials);
            assert!((share - 0.95).abs() < 0.015, "{size} values: {share}");
        }
    }
}
