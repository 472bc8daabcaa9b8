//! How a node hashes an image.

use image::{Rgb, RgbImage};
use image_hasher::{BitOrder, FilterType, HashAlg, Hasher, HasherConfig};

/// Settings of `image_hasher` that give 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// As the page calls them.
    pub name: &'static str,
    /// What becomes a bit.
    pub algorithm: HashAlg,
    /// Whether cosine coefficients are compared instead of brightnesses.
    pub dct: bool,
}

/// What nodes use.
pub const NODES: Settings = Settings { name: "Gradient", algorithm: HashAlg::Gradient, dct: false };

/// What they were compared with.
pub const OTHERS: [Settings; 6] = [
    Settings { name: "VertGradient", algorithm: HashAlg::VertGradient, dct: false },
    Settings { name: "Gradient, DCT", algorithm: HashAlg::Gradient, dct: true },
    Settings { name: "Mean", algorithm: HashAlg::Mean, dct: false },
    Settings { name: "Median", algorithm: HashAlg::Median, dct: false },
    Settings { name: "Median, DCT", algorithm: HashAlg::Median, dct: true },
    Settings { name: "Blockhash", algorithm: HashAlg::Blockhash, dct: false },
];

impl Settings {
    /// The hasher: 8 by 8 bits, reduced by Lanczos3, the first bit the lowest of the first byte.
    pub fn hasher(&self) -> Hasher<[u8; 8]> {
        let config = HasherConfig::with_bytes_type::<[u8; 8]>()
            .hash_size(8, 8)
            .resize_filter(FilterType::Lanczos3)
            .bit_order(BitOrder::LsbFirst)
            .hash_alg(self.algorithm);
        if self.dct { config.preproc_dct() } else { config }.to_hasher()
    }

    /// The hash of an image as `image_hasher` gives it, its first byte the most significant. It can be 0.
    pub fn raw(&self, image: &RgbImage) -> u64 {
        let hash = self.hasher().hash_image(image);
        u64::from_be_bytes(hash.as_bytes().try_into().expect("8 bytes"))
    }
}

/// The hash of an image as a node answers with it. On chain 0 is no image, so a hash of 0 is answered as 1, which is one bit
/// from it.
pub fn answered(image: &RgbImage) -> u64 {
    NODES.raw(image).max(1)
}

/// An answer: the hashes of at most four images, 0 where there is none.
///
/// # Panics
/// With more than four images.
pub fn answer(images: &[RgbImage]) -> [u64; 4] {
    assert!(images.len() <= 4, "an answer has at most four images");
    std::array::from_fn(|i| images.get(i).map_or(0, answered))
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
