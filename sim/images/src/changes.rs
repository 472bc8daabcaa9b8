//! Harmless changes of an image on its way, and deliberate edits.

use image::codecs::jpeg::JpegEncoder;
use image::imageops::{self, FilterType};
use image::{Rgb, RgbImage};

use crate::random::Random;

/// A change of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Another resolution, pixels a side.
    Resized(u32),
    /// Another resolution by simple averages, pixels a side.
    Averaged(u32),
    /// JPEG at a quality from 1 to 100.
    Jpeg(u8),
    /// Noise in every channel of every pixel, by its deviation in levels of 256.
    Noise(f64),
    /// A power of the brightness.
    Gamma(f64),
    /// Levels added.
    Brighter(i16),
    /// No colour.
    Grey,
    /// Red for blue.
    Swapped,
    /// The middle alone, by how many percent of each side are cut off.
    Cropped(u32),
    /// Left for right.
    Mirrored,
    /// Turned by a quarter.
    Turned,
    /// Moved to the right, by percent of its width; the edge is repeated.
    Moved(u32),
    /// A disc of another colour somewhere, by its diameter in percent of the width.
    Covered(u32),
    /// Every level reversed.
    Inverted,
}

impl Change {
    /// As the page calls it.
    pub fn name(self) -> String {
        match self {
            Self::Resized(side) => format!("resized to {side}"),
            Self::Averaged(side) => format!("resized to {side} by averages"),
            Self::Jpeg(quality) => format!("JPEG, quality {quality}"),
            Self::Noise(deviation) => format!("noise, deviation {deviation} of 256 levels"),
            Self::Gamma(power) => format!("gamma {power}"),
            Self::Brighter(levels) => format!("{levels:+} levels"),
            Self::Grey => "without its colours".into(),
            Self::Swapped => "red and blue exchanged".into(),
            Self::Cropped(percent) => format!("cut by {percent} % at each side"),
            Self::Mirrored => "mirrored".into(),
            Self::Turned => "turned by a quarter".into(),
            Self::Moved(percent) => format!("moved by {percent} %"),
            Self::Covered(percent) => format!("a disc over it, {percent} % wide"),
            Self::Inverted => "inverted".into(),
        }
    }

    /// Makes the change; `number` is the seed of its randomness.
    ///
    /// # Panics
    /// Where JPEG cannot be encoded, which memory can.
    pub fn make(self, image: &RgbImage, number: u64) -> RgbImage {
        let (width, height) = image.dimensions();
        let mut random = Random::named(&[6, number]);
        let each = |change: &mut dyn FnMut(u8) -> f64| {
            let mut out = image.clone();
            out.iter_mut().for_each(|level| *level = change(*level).clamp(0.0, 255.0).round() as u8);
            out
        };
        match self {
            Self::Resized(side) => imageops::resize(image, side, side, FilterType::Lanczos3),
            Self::Averaged(side) => imageops::thumbnail(image, side, side),
            Self::Jpeg(quality) => {
                let mut bytes = Vec::new();
                JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(image).expect("memory takes a JPEG");
                image::load_from_memory(&bytes).expect("it was just encoded").into_rgb8()
            }
            Self::Noise(deviation) => each(&mut |level| random.normal(f64::from(level), deviation)),
            Self::Gamma(power) => {
                let table: Vec<f64> = (0..256).map(|level| 255.0 * libm::pow(f64::from(level) / 255.0, power)).collect();
                each(&mut |level| table[level as usize])
            }
            Self::Brighter(levels) => each(&mut |level| f64::from(i16::from(level) + levels)),
            Self::Inverted => each(&mut |level| f64::from(255 - level)),
            Self::Grey => image::DynamicImage::ImageLuma8(imageops::grayscale(image)).into_rgb8(),
            Self::Swapped => RgbImage::from_fn(width, height, |x, y| {
                let [r, g, b] = image.get_pixel(x, y).0;
                Rgb([b, g, r])
            }),
            Self::Cropped(percent) => {
                let (dx, dy) = (width * percent / 100, height * percent / 100);
                imageops::crop_imm(image, dx, dy, width - 2 * dx, height - 2 * dy).to_image()
            }
            Self::Mirrored => imageops::flip_horizontal(image),
            Self::Turned => imageops::rotate90(image),
            Self::Moved(percent) => {
                let by = width * percent / 100;
                RgbImage::from_fn(width, height, |x, y| *image.get_pixel(x.saturating_sub(by), y))
            }
            Self::Covered(percent) => {
                let radius = f64::from(width * percent) / 200.0;
                let (cx, cy) = (random.unit() * f64::from(width), random.unit() * f64::from(height));
                let colour = Rgb([random.bits() as u8, random.bits() as u8, random.bits() as u8]);
                RgbImage::from_fn(width, height, |x, y| {
                    let (dx, dy) = (f64::from(x) - cx, f64::from(y) - cy);
                    if dx * dx + dy * dy < radius * radius {
                        colour
                    } else {
                        *image.get_pixel(x, y)
                    }
                })
            }
        }
    }
}
