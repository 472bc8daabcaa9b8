//! Images made for a given hash with knowledge of the [settings](crate::hashing::NODES): no search, only arithmetic.

use image::imageops::{self, FilterType};
use image::{Rgb, RgbImage};

use crate::hashing::NODES;

/// Brightnesses that the hash compares: nine in a row, eight rows.
const CELLS: (usize, usize) = (9, 8);
/// The most rounds.
const ROUNDS: u32 = 200;

/// A forged image.
#[derive(Clone, Debug)]
pub struct Forged {
    /// The image.
    pub image: RgbImage,
    /// Bits in which its hash differs from the wanted one.
    pub distance: u32,
    /// Its difference from the original: the root of the mean square, in levels of 256.
    pub change: f64,
    /// Hashes computed.
    pub rounds: u32,
}

/// Bends an image until its hash differs from the wanted one in at most `most` bits: adds a smooth pattern, made stronger where a
/// bit is wrong.
pub fn bend(image: &RgbImage, wanted: u64, most: u32) -> Forged {
    let (width, height) = image.dimensions();
    let mut pattern = [[0.0f32; CELLS.0]; CELLS.1];
    let mut now = image.clone();
    let mut best: Option<Forged> = None;
    for rounds in 1..=ROUNDS {
        let distance = (NODES.raw(&now) ^ wanted).count_ones();
        if best.as_ref().is_none_or(|best| distance < best.distance) {
            best = Some(Forged { image: now.clone(), distance, change: change(image, &now), rounds });
        }
        if distance <= most {
            break;
        }
        let small = imageops::resize(&imageops::grayscale(&now), CELLS.0 as u32, CELLS.1 as u32, FilterType::Lanczos3);
        for (row, line) in pattern.iter_mut().enumerate() {
            for column in 0..CELLS.0 - 1 {
                let at = |column: usize| f32::from(small.get_pixel(column as u32, row as u32).0[0]);
                let rise = at(column + 1) - at(column);
                // The first bit is the lowest of the first byte, which is the highest of the number.
                let is_set = wanted >> (56 - 8 * row + column) & 1 == 1;
                // Equal ones give no bit; one more than needed, for rounding.
                let short = if is_set { 2.0 - rise } else { rise + 1.0 };
                if short > 0.0 {
                    let by = if is_set { short } else { -short } * 0.5;
                    line[column] -= by;
                    line[column + 1] += by;
                }
            }
        }
        now = RgbImage::from_fn(width, height, |x, y| {
            let by = smooth(&pattern, (x as f32 + 0.5) / width as f32, (y as f32 + 0.5) / height as f32);
            Rgb(image.get_pixel(x, y).0.map(|level| (f32::from(level) + by).clamp(0.0, 255.0).round() as u8))
        });
    }
    best.expect("there was a round")
}

/// A picture of nothing with the wanted hash, or as near as it comes.
pub fn invent(wanted: u64, side: u32) -> Forged {
    bend(&RgbImage::from_pixel(side, side, Rgb([128; 3])), wanted, 0)
}

/// The pattern at a place, between its cells linearly.
fn smooth(pattern: &[[f32; CELLS.0]; CELLS.1], x: f32, y: f32) -> f32 {
    let place = |at: f32, cells: usize| {
        let at = (at * cells as f32 - 0.5).clamp(0.0, (cells - 1) as f32);
        let first = (at as usize).min(cells - 2);
        (first, at - first as f32)
    };
    let ((column, across), (row, down)) = (place(x, CELLS.0), place(y, CELLS.1));
    let of = |row: usize| pattern[row][column] * (1.0 - across) + pattern[row][column + 1] * across;
    of(row) * (1.0 - down) + of(row + 1) * down
}

fn change(a: &RgbImage, b: &RgbImage) -> f64 {
    let sum: f64 = a.iter().zip(b.iter()).map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum();
    (sum / a.len() as f64).sqrt()
}
