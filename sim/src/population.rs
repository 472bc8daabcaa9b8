//! Six worker populations: with what probability a worker answers correctly and in time.
//!
//! The paper names them; the table with their parameters is not part of its text. These parameters are our choice, made
//! before any result was seen:
//! - heavy-high: the text says that groups of seven drawn at random succeed in 90 % of tasks. Random members succeed with
//!   the population's mean, so the mean must be 0.721. One minus a Pareto variable of shape 1 that is cut off at 1 has it
//!   for a scale of 0.1135. Heavy-low is its mirror image.
//! - normal-high: the text says 96 % before the blackout, where groups aim at what seven random members reach: 0.8 gives
//!   96.7 %.
//! - the others are round numbers: normal-low around 0.3, bimodal half around 0.8, half around 0.2.

use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Population {
    Uniform,
    NormalHigh,
    NormalLow,
    HeavyHigh,
    HeavyLow,
    Bimodal,
}

const PARETO_SCALE: f64 = 0.1135;
const DEVIATION: f64 = 0.1;

impl Population {
    pub const ALL: [Self; 6] = [
        Self::Uniform,
        Self::NormalHigh,
        Self::NormalLow,
        Self::HeavyHigh,
        Self::HeavyLow,
        Self::Bimodal,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::NormalHigh => "normal-high",
            Self::NormalLow => "normal-low",
            Self::HeavyHigh => "heavy-high",
            Self::HeavyLow => "heavy-low",
            Self::Bimodal => "bimodal",
        }
    }

    /// Its distribution, in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Uniform => "uniform between 0 and 1",
            Self::NormalHigh => "normal, mean 0.8, deviation 0.1, within 0 and 1",
            Self::NormalLow => "normal, mean 0.3, deviation 0.1, within 0 and 1",
            Self::HeavyHigh => "1 - X, X Pareto of shape 1 and scale 0.1135, cut off at 1",
            Self::HeavyLow => "X, Pareto of shape 1 and scale 0.1135, cut off at 1",
            Self::Bimodal => {
                "half normal around 0.8, half around 0.2, deviation 0.1, within 0 and 1"
            }
        }
    }

    /// Draws one worker's probability of a correct answer.
    pub fn draw(self, random: &mut Random) -> f64 {
        match self {
            Self::Uniform => random.unit(),
            Self::NormalHigh => normal(random, 0.8),
            Self::NormalLow => normal(random, 0.3),
            Self::HeavyHigh => 1.0 - pareto(random),
            Self::HeavyLow => pareto(random),
            Self::Bimodal => {
                let mean = if random.below(2) == 0 { 0.8 } else { 0.2 };
                normal(random, mean)
            }
        }
    }
}

/// Drawn again when outside 0 to 1.
fn normal(random: &mut Random, mean: f64) -> f64 {
    loop {
        let p = random.normal(mean, DEVIATION);
        if (0.0..=1.0).contains(&p) {
            return p;
        }
    }
}

/// By inversion: the share of a shape-1 Pareto variable above x is scale / x; cutting off at 1 rescales that.
fn pareto(random: &mut Random) -> f64 {
    PARETO_SCALE / (1.0 - random.unit() * (1.0 - PARETO_SCALE))
}

/// A probability scaled by 2^64, to be compared with a random number; one, which has no place, becomes 1 - 2^-64.
pub fn threshold(p: f64) -> u64 {
    (p * 18_446_744_073_709_551_616.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn sample(population: Population) -> Vec<f64> {
        let mut random = Random::named(&[1, population as u64]);
        (0..DRAWS).map(|_| population.draw(&mut random)).collect()
    }

    fn mean(sample: &[f64]) -> f64 {
        sample.iter().sum::<f64>() / sample.len() as f64
    }

    #[test]
    fn every_draw_is_a_probability() {
        for population in Population::ALL {
            assert!(
                sample(population).iter().all(|p| (0.0..=1.0).contains(p)),
                "{}",
                population.name()
            );
        }
    }

    /// Means from the distributions' formulas; the cut-off Pareto's is ln(1 / b) b / (1 - b).
    #[test]
    fn means_are_what_the_formulas_say() {
        let heavy = (1.0 / PARETO_SCALE).ln() * PARETO_SCALE / (1.0 - PARETO_SCALE);
        for (population, want) in [
            (Population::Uniform, 0.5),
            (Population::NormalLow, 0.3),
            (Population::HeavyHigh, 1.0 - heavy),
            (Population::HeavyLow, heavy),
            (Population::Bimodal, 0.5),
        ] {
            let got = mean(&sample(population));
            assert!(
                (got - want).abs() < 0.003,
                "{}: {got} instead of {want}",
                population.name()
            );
        }
    }

    #[test]
    fn deviations_are_what_the_formulas_say() {
        let sample = sample(Population::NormalLow);
        let mean = mean(&sample);
        let variance =
            sample.iter().map(|p| (p - mean) * (p - mean)).sum::<f64>() / (DRAWS - 1) as f64;
        assert!((variance.sqrt() - DEVIATION).abs() < 0.002);
    }

    /// The one figure the text gives: seven random members of heavy-high succeed in 90 % of tasks.
    #[test]
    fn seven_random_members_of_heavy_high_succeed_nine_times_in_ten() {
        let heavy = (1.0 / PARETO_SCALE).ln() * PARETO_SCALE / (1.0 - PARETO_SCALE);
        let p = ((1.0 - heavy) * 1e18) as u64;
        let success = muster_core::reputation::likelihood(&[p; 7]).unwrap() as f64 / 1e18;
        assert!((success - 0.9).abs() < 0.0005, "{success}");
    }
}
