//! Worker populations: the probabilities with which workers answer correctly and in time.
//!
//! The paper names six; the table with their parameters is not part of its text. Two sets of parameters are kept:
//! - [`Set::FITTED`], chosen by [`crate::paper::fit`] to agree with those sentences of the text that constrain it, and with
//!   nothing else.
//! - [`Set::FIRST`], chosen before it by two figures alone: heavy-high has the mean 0.721 with which random groups of seven
//!   succeed in 90 % of tasks, normal-high the mean 0.8 with which they do in 96.7 %. The others are round numbers.

use crate::random::Random;

/// The paper's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    Uniform,
    NormalHigh,
    NormalLow,
    HeavyHigh,
    HeavyLow,
    Bimodal,
}

impl Name {
    pub const ALL: [Self; 6] = [Self::Uniform, Self::NormalHigh, Self::NormalLow, Self::HeavyHigh, Self::HeavyLow, Self::Bimodal];

    pub const fn text(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::NormalHigh => "normal-high",
            Self::NormalLow => "normal-low",
            Self::HeavyHigh => "heavy-high",
            Self::HeavyLow => "heavy-low",
            Self::Bimodal => "bimodal",
        }
    }
}

/// A distribution of probabilities. Integers, so that it can be part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Population {
    Uniform,
    /// Mean and deviation in thousandths; values outside 0 to 1 are drawn again.
    Normal {
        mean: u16,
        deviation: u16,
    },
    /// Half normal around one mean, half around the other, in thousandths.
    Bimodal {
        low: u16,
        high: u16,
        deviation: u16,
    },
    Pareto(Pareto),
}

/// A Pareto variable X, of whose values above one there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pareto {
    /// Eight divided by the shape: eighths of powers need nothing but square roots, which are the same on every machine.
    pub inverse_shape: u8,
    /// The share of X above one, in ten thousandths. For shape 1 this is also its scale, the smallest value.
    pub above: u16,
    /// Whether the probability is 1 - X.
    pub mirrored: bool,
    /// Whether a value above one becomes one; otherwise it is drawn again.
    pub clipped: bool,
}

/// Six populations, one for each name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set {
    pub name: &'static str,
    populations: [Population; 6],
}

impl Set {
    pub const FIRST: Self = Self {
        name: "first",
        populations: [
            Population::Uniform,
            Population::normal(800, 100),
            Population::normal(300, 100),
            Population::pareto(1135, true),
            Population::pareto(1135, false),
            Population::TWO_HUMPS,
        ],
    };

    pub const FITTED: Self = Self {
        name: "fitted",
        populations: [
            Population::Uniform,
            Population::normal(900, 100),
            Population::normal(400, 200),
            Population::pareto(1135, true),
            Population::pareto(2000, false),
            Population::TWO_HUMPS,
        ],
    };

    pub const fn of(&self, name: Name) -> Population {
        self.populations[name as usize]
    }

    /// With another population of one name.
    pub const fn with(mut self, name: Name, population: Population) -> Self {
        self.populations[name as usize] = population;
        self
    }
}

impl Population {
    const TWO_HUMPS: Self = Self::Bimodal { low: 200, high: 800, deviation: 100 };

    pub const fn normal(mean: u16, deviation: u16) -> Self {
        Self::Normal { mean, deviation }
    }

    /// Of shape 1, without the values above one.
    pub const fn pareto(scale: u16, mirrored: bool) -> Self {
        Self::Pareto(Pareto { inverse_shape: 8, above: scale, mirrored, clipped: false })
    }

    /// In words.
    pub fn describe(self) -> String {
        let thousandths = |x: u16| f64::from(x) / 1e3;
        match self {
            Self::Uniform => "uniform between 0 and 1".into(),
            Self::Normal { mean, deviation } => {
                format!("normal, mean {}, deviation {}, within 0 and 1", thousandths(mean), thousandths(deviation))
            }
            Self::Bimodal { low, high, deviation } => format!(
                "half normal around {}, half around {}, deviation {}, within 0 and 1",
                thousandths(high),
                thousandths(low),
                thousandths(deviation)
            ),
            Self::Pareto(pareto) => format!(
                "{}, X Pareto of shape {} and scale {}, {} 1",
                if pareto.mirrored { "1 - X" } else { "X" },
                crate::numbers::number(8.0 / f64::from(pareto.inverse_shape)),
                crate::numbers::number(pareto.scale()),
                if pareto.clipped { "clipped at" } else { "within 0 and" }
            ),
        }
    }

    /// The name of the random streams of workers drawn from it.
    pub fn stream(self) -> u64 {
        let pack = |kind: u64, parts: [u16; 3]| parts.into_iter().fold(kind, |sum, part| sum << 16 | u64::from(part));
        match self {
            Self::Uniform => 0,
            Self::Normal { mean, deviation } => pack(1, [mean, deviation, 0]),
            Self::Bimodal { low, high, deviation } => pack(2, [low, high, deviation]),
            Self::Pareto(p) => {
                let form = u16::from(p.mirrored) + 2 * u16::from(p.clipped);
                pack(3, [p.inverse_shape.into(), p.above, form])
            }
        }
    }

    /// Draws one worker's probability of a correct answer.
    pub fn draw(self, random: &mut Random) -> f64 {
        match self {
            Self::Uniform => random.unit(),
            Self::Normal { mean, deviation } => normal(random, mean, deviation),
            Self::Bimodal { low, high, deviation } => {
                let mean = if random.below(2) == 0 { high } else { low };
                normal(random, mean, deviation)
            }
            Self::Pareto(pareto) => {
                let x = pareto.quantile(random.unit());
                if pareto.mirrored {
                    1.0 - x
                } else {
                    x
                }
            }
        }
    }
}

impl Pareto {
    fn tail(self) -> f64 {
        f64::from(self.above) / 1e4
    }

    /// The smallest value of X.
    pub fn scale(self) -> f64 {
        eighths(self.tail(), self.inverse_shape)
    }

    /// The value below which the share `u` of X lies. The share above x is (scale / x)^shape.
    fn quantile(self, u: f64) -> f64 {
        let tail = self.tail();
        let above = if self.clipped { 1.0 - u } else { 1.0 - u * (1.0 - tail) };
        eighths((tail / above).min(1.0), self.inverse_shape)
    }

    /// The mean of X, by the midpoint rule.
    pub fn mean(self) -> f64 {
        const STEPS: u32 = 20_000;
        let at = |i: u32| self.quantile((f64::from(i) + 0.5) / f64::from(STEPS));
        (0..STEPS).map(at).sum::<f64>() / f64::from(STEPS)
    }

    /// The one of this form whose mean is closest to `mean`.
    pub fn with_mean(self, mean: f64) -> Self {
        let (mut low, mut high) = (1, 9_999);
        while high - low > 1 {
            let above = (low + high) / 2;
            if (Self { above, ..self }).mean() < mean {
                low = above;
            } else {
                high = above;
            }
        }
        Self { above: low, ..self }
    }
}

/// x^(n / 8).
fn eighths(x: f64, n: u8) -> f64 {
    let mut power = (0..n / 8).fold(1.0, |product, _| product * x);
    let mut root = x;
    for bit in [4, 2, 1] {
        root = root.sqrt();
        if n & bit != 0 {
            power *= root;
        }
    }
    power
}

/// Drawn again when outside 0 to 1.
fn normal(random: &mut Random, mean: u16, deviation: u16) -> f64 {
    loop {
        let p = random.normal(f64::from(mean) / 1e3, f64::from(deviation) / 1e3);
        if (0.0..=1.0).contains(&p) {
            return p;
        }
    }
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
        let mut random = Random::named(&[1, population.stream()]);
        (0..DRAWS).map(|_| population.draw(&mut random)).collect()
    }

    fn mean(sample: &[f64]) -> f64 {
        sample.iter().sum::<f64>() / sample.len() as f64
    }

    fn pareto(inverse_shape: u8, above: u16, clipped: bool) -> Pareto {
        Pareto { inverse_shape, above, mirrored: false, clipped }
    }

    #[test]
    fn every_draw_is_a_probability() {
        for name in Name::ALL {
            for set in [Set::FIRST, Set::FITTED] {
                let sample = sample(set.of(name));
                assert!(sample.iter().all(|p| (0.0..=1.0).contains(p)), "{}", name.text());
            }
        }
    }

    /// Means from the distributions' formulas; that of a Pareto variable of shape 1 and scale b without values above one is
    /// ln(1 / b) b / (1 - b).
    #[test]
    fn means_are_what_the_formulas_say() {
        let heavy = |b: f64| (1.0 / b).ln() * b / (1.0 - b);
        for (population, want) in [
            (Population::Uniform, 0.5),
            (Population::normal(300, 50), 0.3),
            (Population::pareto(1135, true), 1.0 - heavy(0.1135)),
            (Population::pareto(2000, false), heavy(0.2)),
            (Population::TWO_HUMPS, 0.5),
        ] {
            let got = mean(&sample(population));
            assert!((got - want).abs() < 0.003, "{population:?}: {got} instead of {want}");
        }
    }

    /// Clipped, the mean of shape 1 is b (1 + ln(1 / b)); of shape 2, with a scale of b^2, it is 2 b - b^2.
    #[test]
    fn pareto_variables_have_their_mean_and_scale() {
        let b = 0.16f64;
        for (form, want) in [(pareto(8, 1600, true), b * (1.0 + (1.0 / b).ln())), (pareto(4, 256, true), 2.0 * b - b * b)] {
            assert!((form.mean() - want).abs() < 1e-3, "{form:?}: {}", form.mean());
            assert!((form.scale() - b).abs() < 1e-9, "{}", form.scale());
        }
        for inverse_shape in [16, 12, 8, 3, 2] {
            for clipped in [false, true] {
                let form = pareto(inverse_shape, 0, clipped).with_mean(0.4);
                assert!((form.mean() - 0.4).abs() < 3e-3, "{form:?}: {}", form.mean());
                let drawn = mean(&sample(Population::Pareto(form)));
                assert!((drawn - 0.4).abs() < 5e-3, "{form:?}: {drawn}");
            }
        }
    }

    #[test]
    fn powers_of_eighths() {
        for n in 0..=24 {
            let want = 0.3f64.powf(f64::from(n) / 8.0);
            assert!((eighths(0.3, n) - want).abs() < 1e-12, "{n}");
        }
    }

    #[test]
    fn deviations_are_what_was_asked_for() {
        let sample = sample(Population::normal(500, 100));
        let mean = mean(&sample);
        let variance = sample.iter().map(|p| (p - mean) * (p - mean)).sum::<f64>() / (DRAWS - 1) as f64;
        assert!((variance.sqrt() - 0.1).abs() < 0.002);
    }

    #[test]
    fn streams_have_names_of_their_own() {
        let mut all = vec![Population::Uniform, Population::TWO_HUMPS];
        all.extend([100, 200].map(|d| Population::normal(400, d)));
        all.extend([true, false].map(|mirrored| Population::pareto(2000, mirrored)));
        all.push(Population::Pareto(pareto(8, 2000, true)));
        let streams: std::collections::BTreeSet<u64> = all.iter().map(|p| p.stream()).collect();
        assert_eq!(streams.len(), all.len());
    }

    /// The text's figure: seven random members of heavy-high succeed in 90 % of tasks.
    #[test]
    fn seven_random_members_of_heavy_high_succeed_nine_times_in_ten() {
        let Population::Pareto(heavy) = Set::FITTED.of(Name::HeavyHigh) else {
            panic!("heavy-high is a Pareto distribution");
        };
        let p = ((1.0 - heavy.mean()) * 1e18) as u64;
        let success = muster_core::reputation::likelihood(&[p; 7]).unwrap() as f64 / 1e18;
        assert!((success - 0.9).abs() < 0.0005, "{success}");
    }
}
