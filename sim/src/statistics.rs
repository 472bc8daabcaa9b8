//! Means with 95 % confidence intervals.

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
            return Self {
                mean,
                margin: 0.0,
                count,
            };
        }
        let variance =
            values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (count - 1) as f64;
        let margin = student(count - 1) * (variance / count as f64).sqrt();
        Self {
            mean,
            margin,
            count,
        }
    }

    pub fn low(&self) -> f64 {
        self.mean - self.margin
    }

    pub fn high(&self) -> f64 {
        self.mean + self.margin
    }
}

/// The 97.5 % quantile of Student's t. Between table entries the larger, hence cautious, value is taken.
fn student(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    match degrees {
        0 => f64::INFINITY,
        1..=30 => TABLE[degrees - 1],
        31..=60 => 2.042,
        61..=120 => 2.000,
        _ => 1.980,
    }
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
        assert!((estimate.margin - 3.182 * (5.0f64 / 3.0).sqrt() / 2.0).abs() < 1e-12);
        assert_eq!(
            Estimate::of(&[7.0]),
            Estimate {
                mean: 7.0,
                margin: 0.0,
                count: 1
            }
        );
        assert_eq!(Estimate::of(&[]).count, 0);
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
