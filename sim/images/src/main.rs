//! `muster-images`: see `--help`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use image::imageops::{self, FilterType};
use image::RgbImage;
use muster_images::diffusion::{Prompt, FULL};
use muster_images::scenes::Scene;
use muster_images::study::{self, Scale, SIDE};
use muster_images::{forging, hashing, page, photos};

/// Measures the power and limits of the perceptual hashes of validated images, and writes a page about it (images.md).
///
/// Paints several hundred images, changes them, draws others out of noise, makes images for a given hash, and compares the
/// hashes. Takes some ten minutes of processor time without --quick. The same command gives the same page.
#[derive(Parser)]
#[command(name = "script/sim images", bin_name = "script/sim images", version)]
struct Arguments {
    /// Few images, in under a minute: for a look, not for conclusions
    #[arg(long)]
    quick: bool,
    /// Folder of photographs that are measured too: the samples of scikit-image, which script/sim fetches
    #[arg(long)]
    photos: PathBuf,
    /// Folder for the page; created if it is not there [default: docs for a whole page, else build/sim]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Writes a sheet of the images instead (images.png): a row of scenes, of the sampler's images, of forgeries, of photographs
    #[arg(long)]
    show: bool,
}

fn main() -> Result<()> {
    let given = Arguments::parse();
    let out = given.out.unwrap_or_else(|| PathBuf::from(if given.quick || given.show { "build/sim" } else { "docs/research" }));
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    if given.show {
        let file = out.join("images.png");
        sheet(photos::of(&given.photos)?).save(&file).with_context(|| file.display().to_string())?;
        println!("{}", file.display());
        return Ok(());
    }
    let scale = if given.quick { Scale::QUICK } else { Scale::FULL };
    // script/sim runs it from the project's root.
    let bound = study::bound(".".as_ref())?;
    let found = study::run(scale, &given.photos, bound, |what| eprintln!("images: {what}"))?;
    let file = out.join("images.md");
    fs::write(&file, page::write(&found, bound)).with_context(|| file.display().to_string())?;
    println!("{}", file.display());
    Ok(())
}

/// Images to look at, eight in a row.
fn sheet(photos: Vec<RgbImage>) -> RgbImage {
    const TILE: u32 = 200;
    let scene = |number| Scene { number, seed: 0 }.paint(SIDE);
    let forged = |number| forging::bend(&scene(number + 1), hashing::NODES.raw(&scene(number)), 0).image;
    let scenes = (0..8).map(scene).chain((0..8).map(|number| Prompt::new(number).draw(FULL)));
    let all: Vec<RgbImage> = scenes.chain((0..8).map(forged)).chain(photos).collect();
    let mut sheet = RgbImage::new(8 * TILE, TILE * all.len().div_ceil(8) as u32);
    for (i, image) in (0..).zip(&all) {
        let tile = imageops::resize(image, TILE, TILE, FilterType::Lanczos3);
        imageops::replace(&mut sheet, &tile, i64::from(i % 8 * TILE), i64::from(i / 8 * TILE));
    }
    sheet
}
