//! The settings of nodes, which `muster-hashes` has, and others to compare them with.

use image::RgbImage;
use image_hasher::{BitOrder, FilterType, HashAlg, Hasher, HasherConfig};

pub use muster_hashes::{answer, answered, vectors};

/// Settings of `image_hasher` that give 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// As the page calls them.
    pub name: &'static str,
    /// The algorithm that turns pixels into bits.
    pub algorithm: HashAlg,
    /// Whether cosine coefficients are compared instead of brightnesses.
    pub dct: bool,
}

/// The nodes' settings.
pub const NODES: Settings = Settings { name: "Gradient", algorithm: HashAlg::Gradient, dct: false };

/// Other settings, for comparison.
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
