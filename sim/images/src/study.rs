//! The measurements: distances between the hashes of images that should count as the same, and of others.

use std::path::Path;

use anyhow::{Context, Result};
use image::{Rgb, RgbImage};
use muster_core::validation::same_images;
use rayon::prelude::*;

use crate::changes::Change;
use crate::diffusion::{Numbers, Prompt, Run, Solver, FULL};
use crate::forging;
use crate::hashing::{Settings, NODES, OTHERS};
use crate::photos;
use crate::scenes::{Kind, Scene, KINDS};

/// Distances at which two hashes could count as the same, that of the contract's default among them.
pub const BOUNDS: [u8; 5] = [4, 6, 8, 10, 12];
/// Pixels a side of an image, unless said otherwise.
pub const SIDE: u32 = 512;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Scenes.
    pub scenes: u64,
    /// Prompts of the sampler.
    pub prompts: u64,
    /// Forgeries.
    pub forgeries: usize,
}

impl Scale {
    /// Of the page.
    pub const FULL: Self = Self { scenes: 240, prompts: 64, forgeries: 64 };
    /// For a look.
    pub const QUICK: Self = Self { scenes: 32, prompts: 8, forgeries: 8 };
}

/// Every setting; that of nodes first.
pub fn settings() -> Vec<Settings> {
    std::iter::once(NODES).chain(OTHERS).collect()
}

/// Whether the contract takes two hashes for the same image.
pub fn same(a: u64, b: u64, bound: u8) -> bool {
    same_images(&[a, 0, 0, 0], &[b, 0, 0, 0], bound)
}

/// Pairs of images of one sort, and the hashes of both.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// Their name.
    pub name: String,
    /// By setting, in the order of [`settings`].
    pub hashes: Vec<Vec<(u64, u64)>>,
}

impl Pairs {
    fn new(name: impl Into<String>, all: Vec<Vec<(u64, u64)>>) -> Self {
        let hashes = (0..settings().len()).map(|i| all.iter().map(|pair| pair[i]).collect()).collect();
        Self { name: name.into(), hashes }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.hashes[0].len()
    }

    /// The share that the contract takes for the same image.
    pub fn accepted(&self, setting: usize, bound: u8) -> f64 {
        let pairs = &self.hashes[setting];
        pairs.iter().filter(|(a, b)| same(*a, *b, bound)).count() as f64 / pairs.len() as f64
    }

    /// The distances under the nodes' setting, in their order.
    pub fn distances(&self) -> Vec<u32> {
        let mut distances: Vec<u32> = self.hashes[0].iter().map(|(a, b)| (a ^ b).count_ones()).collect();
        distances.sort_unstable();
        distances
    }

    /// The share of tasks of four images, each four pairs in a row, whose answers the contract takes for the same.
    pub fn of_four(&self, bound: u8) -> f64 {
        let tasks: Vec<_> = self.hashes[0].chunks_exact(4).collect();
        let equal = |task: &&&[(u64, u64)]| {
            let answer = |first: bool| std::array::from_fn(|i| if first { task[i].0 } else { task[i].1 });
            same_images(&answer(true), &answer(false), bound)
        };
        tasks.iter().filter(equal).count() as f64 / tasks.len() as f64
    }
}

/// Forgeries of one sort.
#[derive(Clone, Debug)]
pub struct Forgeries {
    /// How many reached the distance they were made for.
    pub reached: usize,
    /// How many there are.
    pub count: usize,
    /// Median of how much the image was changed, in levels of 256.
    pub change: f64,
    /// Most hashes computed for one that reached it.
    pub rounds: u32,
}

/// The results.
#[derive(Clone, Debug)]
pub struct Findings {
    /// How much was measured.
    pub scale: Scale,
    /// Scenes with a harmless change of each; the same for photographs.
    pub harmless: Vec<(Pairs, Pairs)>,
    /// Scenes with a deliberate edit of each; the same for photographs.
    pub edits: Vec<(Pairs, Pairs)>,
    /// Two scenes.
    pub different: Vec<Pairs>,
    /// A run of the sampler and another of the same prompt.
    pub steps: Vec<Pairs>,
    /// An image of little contrast twice, each with noise of its own.
    pub faint: Vec<Pairs>,
    /// Images of one colour: the colour, and their hash by setting.
    pub flat: Vec<(String, Vec<u64>)>,
    /// Images with structure whose hash is 0, by setting.
    pub zeros: Vec<usize>,
    /// Images with structure.
    pub images: usize,
    /// The share of images that the best single answer is accepted for, by bound: one for all, and one for each kind.
    pub guesses: Vec<(u8, f64, f64)>,
    /// Images invented for a hash, at distance 0.
    pub invented: Forgeries,
    /// Scenes bent to another one's hash, to the distance that the contract's default accepts.
    pub bent: Forgeries,
}

const HARMLESS: [Change; 15] = [
    Change::Resized(1024),
    Change::Resized(768),
    Change::Resized(256),
    Change::Resized(128),
    Change::Averaged(256),
    Change::Jpeg(90),
    Change::Jpeg(75),
    Change::Jpeg(50),
    Change::Jpeg(20),
    Change::Noise(2.0),
    Change::Noise(5.0),
    Change::Noise(10.0),
    Change::Gamma(0.8),
    Change::Gamma(1.25),
    Change::Brighter(20),
];

const EDITS: [Change; 12] = [
    Change::Grey,
    Change::Swapped,
    Change::Covered(10),
    Change::Covered(20),
    Change::Covered(30),
    Change::Cropped(1),
    Change::Cropped(3),
    Change::Cropped(5),
    Change::Moved(2),
    Change::Mirrored,
    Change::Turned,
    Change::Inverted,
];

fn hashes(image: &RgbImage) -> Vec<u64> {
    settings().iter().map(|setting| setting.raw(image)).collect()
}

fn zip(a: &[u64], b: &[u64]) -> Vec<(u64, u64)> {
    a.iter().copied().zip(b.iter().copied()).collect()
}

/// The contract's default for the most bits in which two equal images differ.
///
/// # Errors
/// When `abi/parameters.json` does not say.
pub fn bound(root: &Path) -> Result<u8> {
    let file = root.join("abi/parameters.json");
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let parameters: Vec<serde_json::Value> = serde_json::from_str(&text)?;
    let found = parameters.iter().find(|parameter| parameter["name"] == "hammingMost").context("there is no hammingMost")?;
    Ok(found["default"].as_str().context("its default is no number")?.parse()?)
}

/// Measures everything; `bound` is the contract's.
///
/// # Errors
/// When a photograph cannot be read.
pub fn run(scale: Scale, folder: &Path, bound: u8, say: impl Fn(&str)) -> Result<Findings> {
    say("painting scenes");
    let numbers: Vec<u64> = (0..scale.scenes).collect();
    let scenes: Vec<RgbImage> = numbers.par_iter().map(|&number| Scene { number, seed: 0 }.paint(SIDE)).collect();
    let photos = photos::of(folder)?;
    let (of_scenes, of_photos): (Vec<_>, Vec<_>) =
        (scenes.par_iter().map(hashes).collect(), photos.par_iter().map(hashes).collect());
    let changed = |changes: &[Change]| -> Vec<(Pairs, Pairs)> {
        let pairs = |change: Change, images: &[RgbImage], before: &[Vec<u64>]| {
            let all = (0..images.len()).into_par_iter().map(|i| zip(&before[i], &hashes(&change.make(&images[i], i as u64))));
            Pairs::new(change.name(), all.collect())
        };
        let of = |&change: &Change| (pairs(change, &scenes, &of_scenes), pairs(change, &photos, &of_photos));
        changes.iter().map(of).collect()
    };
    say("changing them");
    let (mut harmless, edits) = (changed(&HARMLESS), changed(&EDITS));
    for side in [768, 256] {
        let native = numbers
            .par_iter()
            .zip(&of_scenes)
            .map(|(&number, before)| zip(before, &hashes(&Scene { number, seed: 0 }.paint(side))));
        // A photograph was taken once.
        let none = Pairs::new("", Vec::new());
        harmless.insert(0, (Pairs::new(format!("painted at {side} instead"), native.collect()), none));
    }

    let mut structured = of_scenes.clone();
    structured.extend(of_photos.iter().cloned());
    let zeros = (0..settings().len()).map(|i| structured.iter().filter(|hashes| hashes[i] == 0).count()).collect();
    say("drawing");
    let steps = steps(scale.prompts);
    say("forging");
    let (invented, bent) = forge(&scenes, &of_scenes, scale.forgeries, bound);
    Ok(Findings {
        scale,
        harmless,
        edits,
        different: different(&numbers, &of_scenes, &of_photos),
        steps,
        faint: faint(&scenes),
        flat: flat(),
        zeros,
        images: structured.len(),
        guesses: BOUNDS.iter().map(|&bound| guess(&of_scenes, bound)).collect(),
        invented,
        bent,
    })
}

fn different(numbers: &[u64], scenes: &[Vec<u64>], photos: &[Vec<u64>]) -> Vec<Pairs> {
    let kind = |i: usize| Scene { number: numbers[i], seed: 0 }.kind();
    let among = |name: &str, all: &[Vec<u64>], which: &dyn Fn(usize, usize) -> bool| {
        let pairs = (0..all.len()).flat_map(|i| (i + 1..all.len()).map(move |j| (i, j)));
        Pairs::new(name, pairs.filter(|&(i, j)| which(i, j)).map(|(i, j)| zip(&all[i], &all[j])).collect())
    };
    let again: Vec<_> = numbers
        .par_iter()
        .zip(scenes)
        .map(|(&number, before)| zip(before, &hashes(&Scene { number, seed: 1 }.paint(SIDE))))
        .collect();
    let by_kind =
        |wanted: fn(Kind) -> bool| again.iter().enumerate().filter(move |(i, _)| wanted(kind(*i))).map(|(_, p)| p.clone());
    let fixed = |kind| matches!(kind, Kind::Portrait | Kind::Room);
    vec![
        among("two scenes", scenes, &|_, _| true),
        among("two scenes of one kind", scenes, &|i, j| kind(i) == kind(j)),
        among("two photographs", photos, &|_, _| true),
        Pairs::new("one composition, two seeds", again.clone()),
        Pairs::new("the same, portraits and rooms", by_kind(fixed).collect()),
    ]
}

fn steps(prompts: u64) -> Vec<Pairs> {
    let run = |name: &str, run: Run| (name.to_string(), run);
    let runs: Vec<(String, Run)> = [40, 30, 25, 20, 15, 10, 5, 3, 2, 1]
        .map(|steps| run(&format!("{steps} {}", if steps == 1 { "step" } else { "steps" }), Run { steps, ..FULL }))
        .into_iter()
        .chain([
            run("25 steps of another solver (Heun)", Run { steps: 25, solver: Solver::Heun, ..FULL }),
            run("50 steps in half precision", Run { numbers: Numbers::Half, ..FULL }),
            run("50 steps in bfloat16", Run { numbers: Numbers::Brain, ..FULL }),
            run("50 steps from another seed", Run { seed: 2, ..FULL }),
        ])
        .collect();
    // By prompt, then by run.
    let drawn: Vec<Vec<Vec<(u64, u64)>>> = (0..prompts)
        .into_par_iter()
        .map(|number| {
            let prompt = Prompt::new(number);
            let full = hashes(&prompt.draw(FULL));
            runs.iter().map(|(_, run)| zip(&full, &hashes(&prompt.draw(*run)))).collect()
        })
        .collect();
    let of = |i: usize| drawn.iter().map(|of_prompt| of_prompt[i].clone()).collect();
    runs.iter().enumerate().map(|(i, (name, _))| Pairs::new(name.clone(), of(i))).collect()
}

/// Reduces the contrast to a few levels around grey, then adds noise of one level, twice.
fn faint(scenes: &[RgbImage]) -> Vec<Pairs> {
    [64, 32, 16, 8, 4, 2, 0]
        .map(|levels: u8| {
            let all = scenes.par_iter().enumerate().map(|(i, scene)| {
                let mut dull = scene.clone();
                dull.iter_mut().for_each(|level| *level = 128 - levels / 2 + (u32::from(*level) * u32::from(levels) / 255) as u8);
                let noisy = |copy| hashes(&Change::Noise(1.0).make(&dull, 2 * i as u64 + copy));
                zip(&noisy(0), &noisy(1))
            });
            Pairs::new(format!("{levels} levels"), all.collect())
        })
        .into()
}

fn flat() -> Vec<(String, Vec<u64>)> {
    let plain = |name: &str, colour| (name.to_string(), hashes(&RgbImage::from_pixel(SIDE, SIDE, Rgb(colour))));
    let ramp = |name: &str, level: fn(u32, u32) -> u32| {
        (name.to_string(), hashes(&RgbImage::from_fn(SIDE, SIDE, |x, y| Rgb([(level(x, y) / 2) as u8; 3]))))
    };
    vec![
        plain("black", [0; 3]),
        plain("white", [255; 3]),
        plain("grey", [128; 3]),
        plain("red", [255, 0, 0]),
        ramp("brighter to the right", |x, _| x),
        ramp("brighter to the left", |x, _| SIDE - 1 - x),
        ramp("brighter downwards", |_, y| y),
    ]
}

/// The share of one half of the scenes that the best single hash of the other half is accepted for: one for all, and the mean of
/// one for each kind.
fn guess(scenes: &[Vec<u64>], bound: u8) -> (u8, f64, f64) {
    let of: Vec<u64> = scenes.iter().map(|hashes| hashes[0]).collect();
    let best = |known: &[u64], asked: &[u64]| {
        let hits = |guess: u64, among: &[u64]| among.iter().filter(|hash| same(guess, **hash, bound)).count();
        let guess = known.iter().copied().max_by_key(|&guess| hits(guess, known)).expect("there are scenes");
        hits(guess, asked) as f64 / asked.len() as f64
    };
    let half = |which: usize, kind: Option<usize>| -> Vec<u64> {
        let is = |i: usize| i / KINDS.len() % 2 == which && kind.is_none_or(|kind| i % KINDS.len() == kind);
        of.iter().enumerate().filter(|(i, _)| is(*i)).map(|(_, hash)| *hash).collect()
    };
    let by_kind = (0..KINDS.len()).map(|kind| best(&half(0, Some(kind)), &half(1, Some(kind)))).sum::<f64>();
    (bound, best(&half(0, None), &half(1, None)), by_kind / KINDS.len() as f64)
}

fn forge(scenes: &[RgbImage], of: &[Vec<u64>], count: usize, bound: u8) -> (Forgeries, Forgeries) {
    let sum = |all: Vec<forging::Forged>, most: u32| {
        let reached: Vec<_> = all.iter().filter(|forged| forged.distance <= most).collect();
        let mut changes: Vec<f64> = reached.iter().map(|forged| forged.change).collect();
        changes.sort_unstable_by(f64::total_cmp);
        Forgeries {
            reached: reached.len(),
            count: all.len(),
            change: changes.get(changes.len() / 2).copied().unwrap_or(f64::NAN),
            rounds: reached.iter().map(|forged| forged.rounds).max().unwrap_or(0),
        }
    };
    let count = count.min(scenes.len());
    let invented = (0..count).into_par_iter().map(|i| forging::invent(of[i][0], SIDE)).collect();
    let bent = (0..count).into_par_iter().map(|i| {
        let other = (i + scenes.len() / 2 + 1) % scenes.len();
        forging::bend(&scenes[other], of[i][0], u32::from(bound))
    });
    (sum(invented, 0), sum(bent.collect(), u32::from(bound)))
}
