//! Images out of noise, step by step, by a model whose exact answer is known: no neural network, and no Stable Diffusion.
//!
//! A prompt is a mixture of a few images (the same scene by several seeds), each with texture around it whose strength falls with its
//! fineness. For such a mixture a formula gives the best guess at the image behind a noisy one. The sampler is the one that
//! networks are used with (the probability flow, with the noise levels of Stable Diffusion). So "fewer steps", "another solver"
//! and "numbers of 16 bits" mean exactly the same as there. Only the model differs: a network's guesses are
//! rougher, and change more from one step to the next.

use image::{imageops, GrayImage, Luma, RgbImage};

use crate::random::Random;
use crate::scenes::Scene;

/// Pixels a side.
pub const SIDE: usize = 128;
/// Images in a mixture.
const VARIANTS: u64 = 8;
/// Noise levels of Stable Diffusion 1 and 2, where black and white are -1 and 1.
const NOISE: (f64, f64) = (14.6, 0.03);
/// Deviation of the texture, of a pixel.
const TEXTURE: f64 = 0.15;

/// How a step is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Solver {
    /// One guess a step (DDIM is this).
    Euler,
    /// Two guesses a step.
    Heun,
}

/// The numbers between two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// 24 significant bits.
    Single,
    /// 11 significant bits, as of half precision.
    Half,
    /// 8 significant bits, as of bfloat16.
    Brain,
}

impl Numbers {
    /// The nearest number with this many significant bits; exponents are not bounded.
    fn round(self, value: f32) -> f32 {
        let dropped = match self {
            Self::Single => return value,
            Self::Half => 13,
            Self::Brain => 16,
        };
        let bits = value.to_bits().wrapping_add(1 << (dropped - 1));
        f32::from_bits(bits & !((1 << dropped) - 1))
    }
}

/// A run of the sampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Of the noise that it begins with.
    pub seed: u64,
    /// Steps.
    pub steps: usize,
    /// How each is made.
    pub solver: Solver,
    /// The values that are rounded after each step.
    pub numbers: Numbers,
}

/// The run of a usual task: 50 steps.
pub const FULL: Run = Run { seed: 1, steps: 50, solver: Solver::Euler, numbers: Numbers::Single };

/// A prompt.
pub struct Prompt {
    number: u64,
    means: Vec<Vec<f32>>,
    /// Of each coefficient, around the mean.
    variance: Vec<f32>,
    cosines: Vec<f32>,
}

impl Prompt {
    /// The prompt for a scene.
    pub fn new(number: u64) -> Self {
        let cosines = cosines();
        let means = (0..VARIANTS)
            .map(|seed| {
                let grey = imageops::grayscale(&Scene { number, seed: 1_000 + seed }.paint(SIDE as u32));
                let pixels: Vec<f32> = grey.pixels().map(|pixel| f32::from(pixel.0[0]) / 127.5 - 1.0).collect();
                transform(&cosines, &pixels, true)
            })
            .collect();
        let falls = |i: usize| 1.0 / (1.0 + ((i / SIDE).pow(2) + (i % SIDE).pow(2)) as f64 / 16.0);
        let sum: f64 = (0..SIDE * SIDE).map(falls).sum();
        let all = TEXTURE * TEXTURE * (SIDE * SIDE) as f64;
        let variance = (0..SIDE * SIDE).map(|i| (all * falls(i) / sum) as f32).collect();
        Self { number, means, variance, cosines }
    }

    /// The image that a run ends with.
    pub fn draw(&self, run: Run) -> RgbImage {
        let mut random = Random::named(&[4, self.number, run.seed]);
        let level = |step: usize| {
            // Karras' spacing, with the exponent 7 of the paper.
            let (high, low) = (libm::pow(NOISE.0, 1.0 / 7.0), libm::pow(NOISE.1, 1.0 / 7.0));
            let share = step as f64 / (run.steps.max(2) - 1) as f64;
            libm::pow(high + share * (low - high), 7.0) as f32
        };
        let mut now: Vec<f32> = (0..SIDE * SIDE).map(|_| random.normal(0.0, NOISE.0) as f32).collect();
        for step in 0..run.steps {
            let noise = level(step);
            let next = if step + 1 < run.steps { level(step + 1) } else { 0.0 };
            let slope: Vec<f32> = self.slope(&now, noise, run.numbers);
            let mut then: Vec<f32> = now.iter().zip(&slope).map(|(x, d)| x + d * (next - noise)).collect();
            if run.solver == Solver::Heun && next > 0.0 {
                let second = self.slope(&then, next, run.numbers);
                for (i, x) in then.iter_mut().enumerate() {
                    *x = now[i] + 0.5 * (slope[i] + second[i]) * (next - noise);
                }
            }
            now = then.into_iter().map(|x| run.numbers.round(x)).collect();
        }
        let pixels = transform(&self.cosines, &now, false);
        let grey = GrayImage::from_fn(SIDE as u32, SIDE as u32, |x, y| {
            let value = pixels[y as usize * SIDE + x as usize];
            Luma([((value + 1.0) * 127.5).clamp(0.0, 255.0).round() as u8])
        });
        image::DynamicImage::ImageLuma8(grey).into_rgb8()
    }

    /// The direction of the image as noise falls: away from the best guess at the image behind it.
    fn slope(&self, now: &[f32], noise: f32, numbers: Numbers) -> Vec<f32> {
        let square = noise * noise;
        let distances: Vec<f64> = self
            .means
            .iter()
            .map(|mean| {
                let terms = now.iter().zip(mean).zip(&self.variance);
                -0.5 * terms.map(|((x, m), v)| f64::from((x - m) * (x - m) / (v + square))).sum::<f64>()
            })
            .collect();
        let most = distances.iter().copied().fold(f64::MIN, f64::max);
        let likely: Vec<f64> = distances.iter().map(|distance| libm::exp(distance - most)).collect();
        let all: f64 = likely.iter().sum();
        (0..now.len())
            .map(|i| {
                let shrink = self.variance[i] / (self.variance[i] + square);
                let mean: f32 = self.means.iter().zip(&likely).map(|(mean, p)| (p / all) as f32 * mean[i]).sum();
                let guess = numbers.round(mean + shrink * (now[i] - mean));
                (now[i] - guess) / noise
            })
            .collect()
    }
}

/// The matrix of the orthonormal cosine transform, a row for each frequency.
fn cosines() -> Vec<f32> {
    let n = SIDE as f64;
    let entry = |k: usize, i: usize| {
        let scale = if k == 0 { 1.0 / n } else { 2.0 / n };
        scale.sqrt() * libm::cos(std::f64::consts::PI * k as f64 * (2 * i + 1) as f64 / (2.0 * n))
    };
    (0..SIDE * SIDE).map(|at| entry(at / SIDE, at % SIDE) as f32).collect()
}

/// The cosine transform in two dimensions, or its inverse.
fn transform(cosines: &[f32], values: &[f32], forward: bool) -> Vec<f32> {
    let of = |k: usize, i: usize| if forward { cosines[k * SIDE + i] } else { cosines[i * SIDE + k] };
    // Each pass transforms the rows and turns rows into columns.
    let pass = |values: &[f32]| -> Vec<f32> {
        let mut turned = vec![0.0; SIDE * SIDE];
        for (row, line) in values.chunks(SIDE).enumerate() {
            for k in 0..SIDE {
                turned[k * SIDE + row] = line.iter().enumerate().map(|(i, value)| of(k, i) * value).sum();
            }
        }
        turned
    };
    pass(&pass(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_undone_by_its_inverse() {
        let cosines = cosines();
        let mut random = Random::named(&[5]);
        let values: Vec<f32> = (0..SIDE * SIDE).map(|_| random.unit() as f32).collect();
        let back = transform(&cosines, &transform(&cosines, &values, true), false);
        let worst = values.iter().zip(&back).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-4, "{worst}");
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest() {
        assert_eq!(Numbers::Half.round(1.0 + 1.0 / 1024.0), 1.0 + 1.0 / 1024.0);
        assert_eq!(Numbers::Half.round(1.0 + 0.6 / 1024.0), 1.0 + 1.0 / 1024.0);
        assert_eq!(Numbers::Brain.round(-1.0 - 0.4 / 128.0), -1.0);
        assert_eq!(Numbers::Single.round(0.1), 0.1);
    }
}
