//! The page's statements (docs/research/images.md), on a few images. `script/sim images` measures them on many.

use image::{Rgb, RgbImage};
use muster_core::validation::{has_images, same_images};
use muster_images::changes::Change;
use muster_images::diffusion::{Numbers, Prompt, Run, FULL};
use muster_images::forging;
use muster_images::hashing::{answer, answered, vectors, NODES};
use muster_images::scenes::Scene;
use muster_images::study::{bound, same};

/// Smaller than in the page's measurements: tests are not optimised.
const SIDE: u32 = 128;

fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn scene(number: u64) -> RgbImage {
    Scene { number, seed: 0 }.paint(SIDE)
}

#[test]
fn the_settings_give_the_hashes_that_the_page_names() {
    let page = std::fs::read_to_string(root().join("docs/research/images.md")).unwrap();
    for (name, image) in vectors() {
        let line = format!("| {name} | `{:016x}` |", answered(&image));
        assert!(page.contains(&line), "docs/research/images.md has no {line}");
    }
    let hashes = vectors().map(|(_, image)| answered(&image));
    assert_eq!(hashes[0], 1, "black is answered as an image");
    assert_eq!(hashes[1], u64::MAX);
    for image in (0..8).map(scene) {
        assert_eq!(answered(&image), NODES.raw(&image).max(1));
    }
}

#[test]
fn an_answer_has_a_word_for_each_image_and_for_nothing_else() {
    let black = RgbImage::from_pixel(SIDE, SIDE, Rgb([0; 3]));
    assert_eq!(NODES.raw(&black), 0);
    let given = answer(&[black.clone(), scene(0), black]);
    assert!(has_images(&given, 3) && !has_images(&given, 2) && !has_images(&given, 4));
    assert!(has_images(&answer(&[]), 0));
}

#[test]
fn the_same_picture_is_accepted() {
    let bound = bound(&root()).unwrap();
    let harmless = [Change::Resized(96), Change::Resized(256), Change::Jpeg(75), Change::Noise(2.0), Change::Brighter(10)];
    for number in 0..8 {
        let image = scene(number);
        for change in harmless {
            let distance = (answered(&image) ^ answered(&change.make(&image, number))).count_ones();
            assert!(distance <= u32::from(bound), "scene {number}, {}: {distance} bits", change.name());
        }
    }
}

#[test]
fn another_picture_is_refused() {
    let bound = bound(&root()).unwrap();
    let hashes: Vec<u64> = (0..16).map(|number| answered(&scene(number))).collect();
    for (i, a) in hashes.iter().enumerate() {
        assert!(hashes.iter().skip(i + 1).all(|b| !same(*a, *b, bound)), "scene {i} is like another");
    }
    // One wrong image of four is a wrong answer.
    let right = [hashes[0], hashes[1], hashes[2], hashes[3]];
    let wrong = [hashes[0], hashes[1], hashes[2], hashes[4]];
    assert!(same_images(&right, &right, 0) && !same_images(&right, &wrong, bound));
    for change in [Change::Mirrored, Change::Turned, Change::Inverted] {
        assert!(!same(hashes[0], answered(&change.make(&scene(0), 0)), bound), "{}", change.name());
    }
}

#[test]
fn fewer_steps_fewer_bits_and_missing_colours_are_not_told() {
    let bound = bound(&root()).unwrap();
    let prompt = Prompt::new(3);
    let full = answered(&prompt.draw(FULL));
    for run in [Run { steps: 10, ..FULL }, Run { numbers: Numbers::Half, ..FULL }] {
        assert!(same(full, answered(&prompt.draw(run)), bound), "{run:?}");
    }
    for run in [Run { steps: 1, ..FULL }, Run { seed: 2, ..FULL }] {
        assert!(!same(full, answered(&prompt.draw(run)), bound), "{run:?}");
    }
    assert!(same(answered(&scene(6)), answered(&Change::Grey.make(&scene(6), 0)), 0));
}

#[test]
fn a_picture_can_be_made_for_a_hash() {
    let bound = bound(&root()).unwrap();
    let wanted = answered(&scene(2));
    let forged = forging::bend(&scene(7), wanted, u32::from(bound));
    assert!(!same(wanted, answered(&scene(7)), bound));
    assert!(same(wanted, answered(&forged.image), bound), "{} bits", forged.distance);
    assert!(forged.change < 40.0, "{}", forged.change);
    assert_eq!(forging::invent(wanted, SIDE).distance, 0);
}
