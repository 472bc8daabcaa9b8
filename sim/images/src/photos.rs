//! Photographs of a folder.

use std::{fs, path::Path};

use anyhow::{ensure, Context, Result};
use image::{imageops, RgbImage};

/// The photographs used: those among the samples of scikit-image, of which it has two of one scene.
pub const NAMES: [&str; 17] = [
    "astronaut.png",
    "brick.png",
    "camera.png",
    "cell.png",
    "chelsea.png",
    "coffee.png",
    "coins.png",
    "grass.png",
    "gravel.png",
    "hubble_deep_field.jpg",
    "ihc.png",
    "moon.png",
    "motorcycle_left.png",
    "page.png",
    "retina.jpg",
    "rocket.jpg",
    "text.png",
];

/// The photographs of a folder, cut to the square in their middle and brought to 512 pixels a side, as images are that nodes make.
///
/// # Errors
/// When one cannot be read.
pub fn of(folder: &Path) -> Result<Vec<RgbImage>> {
    ensure!(folder.is_dir(), "{} is not a folder", folder.display());
    NAMES
        .iter()
        .map(|name| {
            let file = folder.join(name);
            let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
            let image = image::load_from_memory(&bytes).with_context(|| file.display().to_string())?.into_rgb8();
            let side = image.width().min(image.height());
            let (left, top) = ((image.width() - side) / 2, (image.height() - side) / 2);
            let square = imageops::crop_imm(&image, left, top, side, side).to_image();
            Ok(imageops::resize(&square, 512, 512, imageops::FilterType::Lanczos3))
        })
        .collect()
}
