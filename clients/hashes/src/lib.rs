//! The perceptual hashes that nodes answer image tasks with: docs/research/images.md has the settings, and their power and limits.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::io::Cursor;

use image::{ColorType, DynamicImage, ImageDecoder, ImageReader, Limits, Rgb, RgbImage};
use image_hasher::{BitOrder, FilterType, HashAlg, HasherConfig};

/// The most images of a task that can be validated.
pub const IMAGES: usize = 4;
/// The widest and highest image that is read, in pixels.
const SIDE: u32 = 8_192;
/// The most memory that reading an image takes, in bytes.
const MEMORY: u64 = 1 << 29;

/// The reason why a result has no hashes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HashError {
    /// Not as many PNG files, one after the other, as the task has images.
    #[error("the result holds {found} PNG files, not {expected}{}", if *.rest { ", and something else" } else { "" })]
    Count {
        /// How many images the task has.
        expected: usize,
        /// Whole files at the beginning.
        found: usize,
        /// Whether there is something after them.
        rest: bool,
    },
    /// A file that cannot be read.
    #[error("image {number}: {why}")]
    Unreadable {
        /// Its number, from 1 on.
        number: usize,
        /// The reason.
        why: String,
    },
}

/// The hash of an image in a node's answer. On chain 0 means no image, so a hash of 0 becomes 1, which is one bit
/// from it.
pub fn answered(image: &RgbImage) -> u64 {
    let config = HasherConfig::with_bytes_type::<[u8; 8]>().hash_size(8, 8).resize_filter(FilterType::Lanczos3);
    let hash = config.bit_order(BitOrder::LsbFirst).hash_alg(HashAlg::Gradient).to_hasher().hash_image(image);
    u64::from_be_bytes(hash.as_bytes().try_into().expect("8 bytes")).max(1)
}

/// An answer: the hashes of at most four images, 0 where there is none.
///
/// # Panics
/// With more than [`IMAGES`].
pub fn answer(images: &[RgbImage]) -> [u64; IMAGES] {
    assert!(images.len() <= IMAGES, "an answer has at most four images");
    std::array::from_fn(|i| images.get(i).map_or(0, answered))
}

/// The hashes of a result: PNG files of 8 bits a channel, red, green and blue, one after the other; 0 where there is none.
///
/// # Errors
/// If it does not hold `count` such files and nothing else, or `count` is above [`IMAGES`].
pub fn of_result(result: &[u8], count: usize) -> Result<[u64; IMAGES], HashError> {
    let (files, rest) = split(result);
    if files.len() != count || rest || count > IMAGES {
        return Err(HashError::Count { expected: count, found: files.len(), rest });
    }
    let numbered = files.into_iter().zip(1..);
    let images = numbered.map(|(file, number)| read(file).map_err(|why| HashError::Unreadable { number, why }));
    Ok(answer(&images.collect::<Result<Vec<_>, _>>()?))
}

/// The PNG files of a result, each of which marks its own end, and whether anything follows them.
pub fn split(mut result: &[u8]) -> (Vec<&[u8]>, bool) {
    let mut files = Vec::new();
    while let Some(length) = png(result) {
        let (file, rest) = result.split_at(length);
        files.push(file);
        result = rest;
    }
    (files, !result.is_empty())
}

/// The length of the PNG file at the beginning.
fn png(bytes: &[u8]) -> Option<usize> {
    let mut at = bytes.starts_with(b"\x89PNG\r\n\x1a\n").then_some(8)?;
    loop {
        let length = u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize;
        let last = bytes.get(at + 4..at + 8)? == b"IEND";
        // Length, name, data, checksum.
        at = at.checked_add(length)?.checked_add(12).filter(|end| *end <= bytes.len())?;
        if last {
            return Some(at);
        }
    }
}

fn read(file: &[u8]) -> Result<RgbImage, String> {
    let mut limits = Limits::default();
    limits.max_image_width = Some(SIDE);
    limits.max_image_height = Some(SIDE);
    limits.max_alloc = Some(MEMORY);
    let mut reader = ImageReader::with_format(Cursor::new(file), image::ImageFormat::Png);
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(|error| error.to_string())?;
    // Other formats would need a conversion, and there is more than one.
    if decoder.color_type() != ColorType::Rgb8 {
        return Err(format!("it is {:?}, not Rgb8: red, green and blue of 8 bits", decoder.color_type()));
    }
    DynamicImage::from_decoder(decoder).map(|image| image.into_rgb8()).map_err(|error| error.to_string())
}

/// Images by formulas, to compare an implementation with: red, green and blue by x and y, 512 pixels a side.
pub fn vectors() -> [(&'static str, RgbImage); 5] {
    let image = |level: fn(u32, u32) -> [u32; 3]| RgbImage::from_fn(512, 512, |x, y| Rgb(level(x, y).map(|level| level as u8)));
    [
        ("0, 0, 0", image(|_, _| [0; 3])),
        ("x / 2, x / 2, x / 2", image(|x, _| [x / 2; 3])),
        ("x / 2, y / 2, (x xor y) / 2", image(|x, y| [x / 2, y / 2, (x ^ y) / 2])),
        (
            "(x * y / 512) mod 256, (x * x / 300) mod 256, 255 - y / 2",
            image(|x, y| [x * y / 512 % 256, x * x / 300 % 256, 255 - y / 2]),
        ),
        ("255 where (x / 60 + y / 85) is odd, else 0, in all three", image(|x, y| [(x / 60 + y / 85) % 2 * 255; 3])),
    ]
}

#[cfg(test)]
mod tests {
    use image::codecs::jpeg::JpegEncoder;
    use image::imageops::{resize, FilterType};
    use image::{GrayImage, ImageFormat, Luma, RgbaImage};

    use super::*;

    fn file(image: impl Into<DynamicImage>) -> Vec<u8> {
        let mut bytes = Vec::new();
        image.into().write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).unwrap();
        bytes
    }

    fn scenes() -> Vec<RgbImage> {
        vectors().into_iter().skip(2).map(|(_, image)| image).collect()
    }

    #[test]
    fn hashes_are_those_that_the_page_says() {
        let page = include_str!("../../../docs/research/images.md");
        for (name, image) in vectors() {
            let line = format!("| {name} | `{:016x}` |", answered(&image));
            assert!(page.contains(&line), "{line}");
        }
    }

    #[test]
    fn a_result_of_several_images_is_one_file_after_another() {
        let images = scenes();
        let result: Vec<u8> = images.iter().flat_map(|image| file(image.clone())).collect();
        let hashes: Vec<_> = images.iter().map(answered).chain([0]).collect();
        assert_eq!(of_result(&result, 3).unwrap()[..], hashes[..]);
        assert_eq!(of_result(&file(images[0].clone()), 1).unwrap(), [hashes[0], 0, 0, 0]);
        assert_eq!(of_result(&[], 0).unwrap(), [0; 4]);
    }

    #[test]
    fn what_is_not_as_many_images_is_refused() {
        let one = file(scenes()[0].clone());
        let count = |bytes: &[u8], expected| match of_result(bytes, expected) {
            Err(HashError::Count { found, rest, .. }) => (found, rest),
            other => panic!("{other:?}"),
        };
        assert_eq!(count(&one, 2), (1, false));
        assert_eq!(count(&[&one[..], b"more"].concat(), 1), (1, true));
        assert_eq!(count(&one.repeat(5), 5), (5, false));
        for at in 0..one.len() {
            assert_eq!(count(&one[..at], 1), (0, at > 0), "cut at {at}");
        }
        let mut huge = one.clone();
        huge[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(count(&huge, 1), (0, true));
    }

    #[test]
    fn other_colours_and_broken_files_are_refused() {
        let why = |bytes: &[u8]| of_result(bytes, 1).unwrap_err().to_string();
        assert!(why(&file(GrayImage::from_pixel(8, 8, Luma([9])))).contains("L8, not Rgb8"));
        assert!(why(&file(RgbaImage::new(8, 8))).contains("Rgba8, not Rgb8"));
        let mut broken = file(scenes()[0].clone());
        let middle = broken.len() / 2;
        broken[middle] ^= 1;
        assert!(why(&broken).starts_with("image 1: "), "{}", why(&broken));
        // A header that claims a size above the limit.
        let mut wide = file(RgbImage::new(SIDE + 1, 1));
        assert!(why(&wide).starts_with("image 1: "));
        wide = file(RgbImage::new(SIDE, 1));
        assert!(of_result(&wide, 1).is_ok());
    }

    #[test]
    fn the_same_picture_is_near_and_another_far() {
        let images = scenes();
        for (i, image) in images.iter().enumerate() {
            let hash = answered(image);
            let mut jpeg = Vec::new();
            JpegEncoder::new_with_quality(&mut jpeg, 75).encode_image(image).unwrap();
            let again = image::load_from_memory(&jpeg).unwrap().into_rgb8();
            let smaller = resize(image, 256, 256, FilterType::Lanczos3);
            for near in [answered(&again), answered(&smaller)] {
                assert!((hash ^ near).count_ones() <= 8, "{hash:016x} {near:016x}");
            }
            for other in &images[..i] {
                assert!((hash ^ answered(other)).count_ones() > 8);
            }
        }
    }
}
