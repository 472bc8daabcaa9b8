//! The page about the measurements.

use std::fmt::Write;

use crate::diffusion::{FULL, SIDE};
use crate::hashing::{vectors, NODES};
use crate::study::{settings, Findings, Forgeries, Pairs, BOUNDS};

/// A share in percent, as it is: none and all are said only where it is exactly that.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        0.0 => "0".into(),
        100.0 => "100".into(),
        _ if percent < 0.05 => "< 0.1".into(),
        _ if percent > 99.9 => "> 99.9".into(),
        _ => format!("{percent:.1}"),
    }
}

fn of<'a>(all: impl IntoIterator<Item = &'a Pairs>, name: &str) -> &'a Pairs {
    all.into_iter().find(|pairs| pairs.name == name).unwrap_or_else(|| panic!("nothing is called {name}"))
}

fn heading(cells: &[&str]) -> String {
    format!("| {} |\n| --- |{}\n", cells.join(" | "), " ---: |".repeat(cells.len() - 1))
}

fn row(cells: impl IntoIterator<Item = String>) -> String {
    format!("| {} |\n", cells.into_iter().collect::<Vec<_>>().join(" | "))
}

/// The page; `bound` is the contract's default.
pub fn write(found: &Findings, bound: u8) -> String {
    let page = Page { found, bound };
    [
        page.introduction(),
        page.verdict(),
        Page::settings(),
        page.harmless(),
        page.different(),
        page.edits(),
        page.steps(),
        page.flat(),
        page.forged(),
        page.others(),
    ]
    .join("\n")
}

struct Page<'a> {
    found: &'a Findings,
    bound: u8,
}

impl Page<'_> {
    fn introduction(&self) -> String {
        let scale = self.found.scale;
        format!(
            "# Perceptual hashes\n\n[All pages](../README.md)\n\n\
<!-- Written by `script/sim images`; changes belong into sim/images/src/page.rs. -->\n\n\
Answers of Stable Diffusion tasks under [validation](../validation.md) are perceptual hashes: 64 bits for each of at most four images. Two answers are equal if every hash differs in at most \
`hammingMost` bits, {} by default. This page says which hash nodes use, and gives measurements of it. `script/sim images` made them on {} painted scenes of eight kinds (some of them by several seeds), \
the images that a sampler drew for {} prompts, and {} photographs (the samples of scikit-image 0.25.2). `script/sim images --show` writes a sheet of them to look at. \
The images are our own: nothing here was drawn by Stable Diffusion, for which there was no GPU.\n",
            self.bound,
            scale.scenes,
            scale.prompts,
            crate::photos::NAMES.len()
        )
    }

    fn accepted(&self, pairs: &Pairs) -> String {
        percent(pairs.accepted(0, self.bound))
    }

    fn refused(&self, pairs: &Pairs) -> String {
        percent(1.0 - pairs.accepted(0, self.bound))
    }

    fn verdict(&self) -> String {
        let Findings { harmless, edits, different, steps, bent, invented, faint, .. } = self.found;
        let bound = self.bound;
        let edit = |name: &str| self.accepted(of(edits.iter().map(|(scenes, _)| scenes), name));
        let worst = harmless
            .iter()
            .map(|(scenes, _)| scenes)
            .min_by(|a, b| a.accepted(0, bound).total_cmp(&b.accepted(0, bound)))
            .expect("there are changes");
        let closest = |name: &str| of(different, name).distances()[0];
        let step = |name: &str| self.accepted(of(steps, name));
        let mut page = String::from("## The verdict\n\nIt tells\n\n");
        let _ = write!(
            page,
            "- **another picture from the right one.** Of {} pairs of different scenes and {} of different photographs {} % and {} % were taken for the same; the closest differed in {} and {} bits.\n\
- **the right picture after harmless changes**, nearly always. Other resolutions, JPEG, noise, other brightness: at worst ({}) {} % of the \
scenes were refused.\n\
- **the picture turned, mirrored or inverted**: {}, {} and {} % were accepted.\n\n",
            of(different, "two scenes").count(),
            of(different, "two photographs").count(),
            self.accepted(of(different, "two scenes")),
            self.accepted(of(different, "two photographs")),
            closest("two scenes"),
            closest("two photographs"),
            worst.name,
            self.refused(worst),
            edit("turned by a quarter"),
            edit("mirrored"),
            edit("inverted"),
        );
        let _ = write!(
            page,
            "It cannot tell\n\n\
- **fewer steps.** With our sampler {} % of the images of 10 steps and {} % of those of 5 passed as images of {}. This finds neither nodes that save steps nor nodes that compute in fewer bits.\n\
- **a smaller picture**: a scene painted at 256 pixels a side instead of 512 was accepted in {} % of cases.\n\
- **colours** ({} % accepted without any), **and small things**: a disc over a tenth of the width, anywhere, was accepted in {} % of cases, one over a fifth in {} %.\n\
- **a picture with one composition from another**, always. With all texture new, and all things moved by at most a twentieth of their range, {} % were accepted; of portraits and rooms, where the composition is nearly all there is, {} %.\n\
- **a forged picture.** Anyone with the hash can bend any picture to it, in at most {} tries: {} of {} were accepted, with a change of {:.0} of 256 levels in the median. Of pictures of nothing, {} of {} had it exactly. So an equal hash does not prove that a node's bytes show the picture.\n\
- **flat pictures from each other.**\n\n",
            step("10 steps"),
            step("5 steps"),
            FULL.steps,
            self.accepted(of(harmless.iter().map(|(scenes, _)| scenes), "painted at 256 instead")),
            edit("without its colours"),
            edit("a disc over it, 10 % wide"),
            edit("a disc over it, 20 % wide"),
            self.accepted(of(different, "one composition, two seeds")),
            self.accepted(of(different, "the same, portraits and rooms")),
            bent.rounds,
            bent.reached,
            bent.count,
            bent.change,
            invented.reached,
            invented.count,
        );
        let _ = write!(
            page,
            "So validation makes sure that a node had a picture composed like the right one when it committed, and did not guess. It ensures neither how that picture was made, nor its quality, nor that it is delivered. \
It follows:\n\n\
- Slashing for images stays off (`slashImages` 0) until a network has measured its own cards and models: above all how far the images of honest nodes with different cards are apart. Rounding to half precision after every step moved {} % of ours by more than {bound} bits; the effect of \
cards, drivers and a network's own roughness must be measured with them.\n\
- {bound} bits are a fair default. {}.\n\
- An application hashes the delivered images by the same settings and compares; quality is judged by looking. A commitment hides the hash until all have committed, so other members cannot forge it. A node that reveals can still deliver something else.\n\
- Images of hardly any contrast are not worth validating: below {} of 256 levels honest nodes begin to differ.\n",
            percent(1.0 - of(steps, "50 steps in half precision").accepted(0, bound)),
            self.trade(),
            self.least_contrast(faint),
        );
        page
    }

    /// The rates of wrong refusals and acceptances at the least bound, the default and the greatest.
    fn trade(&self) -> String {
        let Findings { harmless, different, .. } = self.found;
        let seeds = of(different, "one composition, two seeds");
        let at = [BOUNDS[0], self.bound, BOUNDS[BOUNDS.len() - 1]].map(|bound| {
            let worst = harmless.iter().map(|(scenes, _)| 1.0 - scenes.accepted(0, bound)).fold(0.0, f64::max);
            format!("at {bound}, {} % at worst and {} %", percent(worst), percent(seeds.accepted(0, bound)))
        });
        format!("Harmless changes refused, and other seeds of one composition accepted: {}", at.join("; "))
    }

    /// The least contrast at which all images were accepted in spite of noise, and at all greater ones.
    fn least_contrast(&self, faint: &[Pairs]) -> String {
        let fine = faint.iter().take_while(|pairs| pairs.accepted(0, self.bound) == 1.0).last();
        fine.map_or_else(|| "all".into(), |pairs| pairs.name.trim_end_matches(" levels").to_string())
    }

    fn settings() -> String {
        let mut page = String::from(
            "## The settings\n\nEvery node of a network must use the same settings. The reference is `answered` in `clients/hashes/src/lib.rs`.\n\n\
| | |\n| --- | --- |\n\
| what is hashed | the image as the model gives it: 8 bits a channel, red, green and blue, no transparency, no colour profile, at the requested size, before any lossy format |\n",
        );
        let _ = write!(
            page,
            "| crate | `image_hasher` 3.1.1 with `image` 0.25.10, without `fast_image_resize` |\n\
| algorithm | `HashAlg::{:?}`: the image in grey, (2126 red + 7152 green + 722 blue) / 10000 rounded down, is resized to nine brightnesses in each of eight rows; a bit for each two neighbours, set if the right one is brighter |\n\
| size, filter | 8 by 8 bits, `FilterType::Lanczos3` |\n\
| preprocessing | none: neither `preproc_dct` nor `preproc_diff_gauss` |\n\
| order of bits | `BitOrder::LsbFirst`; the first of the eight bytes is the most significant |\n\
| a hash of 0 | is answered as 1: on chain 0 is no image, and an answer with too few is refused (`BadImages`) |\n\
| the answer | the first image's hash in the first eight bytes, and so on; zeros for images that were not asked for |\n\n\
To compare an implementation with, images of 512 by 512 pixels, x from the left and y from the top, rounded down:\n\n",
            NODES.algorithm
        );
        page += "| red, green, blue | answered as |\n| --- | --- |\n";
        for (name, image) in vectors() {
            page += &row([name.to_string(), format!("`{:016x}`", crate::hashing::answered(&image))]);
        }
        page
    }

    fn table(&self, first: &str, pairs: &[(Pairs, Pairs)], refused: bool) -> String {
        let what = if refused { "refused" } else { "accepted" };
        let mut titles = vec![first.to_string(), "median".into(), "95 % within".into(), "most".into()];
        titles.extend(BOUNDS.iter().map(|bound| format!("{what} at {bound}, %")));
        titles.push(format!("four images, at {}, %", self.bound));
        titles.push(format!("photographs: most, {what} at {}, %", self.bound));
        let mut page = heading(&titles.iter().map(String::as_str).collect::<Vec<_>>());
        for (scenes, photos) in pairs {
            let mut cells = Self::spread(scenes);
            cells.extend(Self::shares(scenes, refused));
            let of_four = scenes.of_four(self.bound);
            cells.push(percent(if refused { 1.0 - of_four } else { of_four }));
            cells.push(photos.distances().last().map_or_else(String::new, |most| {
                let accepted = photos.accepted(0, self.bound);
                format!("{most}, {}", percent(if refused { 1.0 - accepted } else { accepted }))
            }));
            page += &row(cells);
        }
        page
    }

    fn spread(pairs: &Pairs) -> Vec<String> {
        let distances = pairs.distances();
        let at = |share: f64| distances[((distances.len() - 1) as f64 * share).ceil() as usize].to_string();
        vec![pairs.name.clone(), at(0.5), at(0.95), at(1.0)]
    }

    fn shares(pairs: &Pairs, refused: bool) -> impl Iterator<Item = String> + '_ {
        BOUNDS.iter().map(move |&bound| {
            let accepted = pairs.accepted(0, bound);
            percent(if refused { 1.0 - accepted } else { accepted })
        })
    }

    fn harmless(&self) -> String {
        format!(
            "## The same picture\n\nEvery refusal here is wrong. Distances are in bits. A task of four images is refused if one is: four scenes in a row are such a task.\n\n{}",
            self.table("what became of it", &self.found.harmless, true)
        )
    }

    fn different(&self) -> String {
        let mut titles = vec!["pairs of".to_string(), "pairs".into(), "least".into(), "5 % within".into(), "median".into()];
        titles.extend(BOUNDS.iter().map(|bound| format!("accepted at {bound}, %")));
        let mut page = format!(
            "## Another picture\n\nEvery acceptance here is wrong.\n\n{}",
            heading(&titles.iter().map(String::as_str).collect::<Vec<_>>())
        );
        for pairs in &self.found.different {
            let distances = pairs.distances();
            let at = |share: f64| distances[((distances.len() - 1) as f64 * share) as usize].to_string();
            let mut cells = vec![pairs.name.clone(), pairs.count().to_string(), at(0.0), at(0.05), at(0.5)];
            cells.extend(Self::shares(pairs, false));
            page += &row(cells);
        }
        let of_chance: f64 = (0..=u32::from(self.bound)).map(|bits| choose(64, bits) / 2f64.powi(64)).sum();
        let (_, all, by_kind) =
            *self.found.guesses.iter().find(|(bound, ..)| *bound == self.bound).expect("the default is a bound");
        let _ = write!(
            page,
            "\nTwo random hashes would be accepted in {of_chance:.1e} of cases; hashes of pictures are not random, but the table shows how far that matters. The best answer without a picture is the one hash that fits most of one half of the scenes. It was accepted \
for {} % of the other half. One such hash for each kind of scene, as readers of the prompt could choose it, was accepted for {} %.\n",
            percent(all),
            percent(by_kind),
        );
        page
    }

    fn edits(&self) -> String {
        format!(
            "## The picture changed\n\nThe application decides whether such a picture is still right; most would say no.\n\n{}",
            self.table("what was made of it", &self.found.edits, false)
        )
    }

    fn steps(&self) -> String {
        let mut titles = vec!["instead".to_string(), "median".into(), "95 % within".into(), "most".into()];
        titles.extend(BOUNDS.iter().map(|bound| format!("accepted at {bound}, %")));
        let mut page = format!(
            "## Fewer steps\n\nImages drawn out of noise by {} steps (Euler, which is DDIM), beside others of the same prompt from the same noise. The sampler and its noise levels (14.6 to 0.03) are those of Stable Diffusion. The model is not. A prompt is a mixture of eight \
variants of a scene with texture around them, {SIDE} pixels a side and grey. A formula instead of a network guesses the picture behind the \
noise. So this shows only the effect of the steps themselves. Only a measurement with a network can show how much more its images of few \
steps differ. Images of one seed at different sizes are different pictures there, and do not occur here.\n\n{}",
            FULL.steps,
            heading(&titles.iter().map(String::as_str).collect::<Vec<_>>())
        );
        for pairs in &self.found.steps {
            page += &row(Self::spread(pairs).into_iter().chain(Self::shares(pairs, false)));
        }
        page
    }

    fn flat(&self) -> String {
        let mut page = String::from(
            "## Flat pictures\n\nA bit is set only where a brightness is above its left neighbour's. So pictures of one colour have the hash 0, and so have pictures that only darken to the right:\n\n| picture | hash |\n| --- | --- |\n",
        );
        for (name, hashes) in &self.found.flat {
            page += &row([name.clone(), format!("`{:016x}`", hashes[0])]);
        }
        let _ = write!(
            page,
            "\nAll of the first four are answered as 1, and equal. Pipelines that replace filtered pictures by a black one therefore give \
             the answer of every other black picture. Of {} scenes and photographs {} had the hash 0.\n\n\
An honest node's picture differs from another's by little. Here the scenes are brought down to a few levels of contrast around grey, twice, with noise of a deviation of one level:\n\n",
            self.found.images, self.found.zeros[0],
        );
        let mut titles = vec!["contrast".to_string(), "median".into(), "95 % within".into(), "most".into()];
        titles.extend(BOUNDS.iter().map(|bound| format!("refused at {bound}, %")));
        page += &heading(&titles.iter().map(String::as_str).collect::<Vec<_>>());
        for pairs in &self.found.faint {
            page += &row(Self::spread(pairs).into_iter().chain(Self::shares(pairs, true)));
        }
        page
    }

    fn forged(&self) -> String {
        let line = |name: &str, forgeries: &Forgeries| {
            row([
                name.to_string(),
                format!("{} of {}", forgeries.reached, forgeries.count),
                format!("{:.1}", forgeries.change),
                forgeries.rounds.to_string(),
            ])
        };
        format!(
            "## Forged pictures\n\nA smooth pattern is added to a picture, and made stronger where a bit is wrong, until the hash fits (`bend` in `sim/images/src/forging.rs`). Made of grey it is a picture of nothing; made of another scene, that scene remains, a little shaded.\n\n{}{}{}\n\
A try is one hash: milliseconds. It was tried on the nodes' settings alone; nobody looked for settings that would withstand it. The \
commitment keeps a node from copying; the hash does not.\n",
            heading(&["made", "succeeded", "change in levels of 256 (root mean square), median", "tries, at most"]),
            line("of grey, the very hash", &self.found.invented),
            line(&format!("of another scene, within {} bits", self.bound), &self.found.bent),
        )
    }

    fn others(&self) -> String {
        let Findings { harmless, edits, different, steps, faint, .. } = self.found;
        let scenes = || harmless.iter().chain(edits).map(|(scenes, _)| scenes);
        // Pairs that should be accepted, then others.
        let right = [
            ("painted at 256", of(scenes(), "painted at 256 instead")),
            ("JPEG 20", of(scenes(), "JPEG, quality 20")),
            ("noise 10", of(scenes(), "noise, deviation 10 of 256 levels")),
            ("gamma 1.25", of(scenes(), "gamma 1.25")),
            ("4 levels of contrast", of(faint, "4 levels")),
            ("one colour", of(faint, "0 levels")),
        ];
        let wrong = [
            ("two scenes of one kind", of(different, "two scenes of one kind")),
            ("two photographs", of(different, "two photographs")),
            ("two seeds", of(different, "one composition, two seeds")),
            ("mirrored", of(scenes(), "mirrored")),
            ("inverted", of(scenes(), "inverted")),
            ("2 steps", of(steps, "2 steps")),
        ];
        let titles = |prefix: &'static str| move |(name, _): &(&str, &Pairs)| format!("{prefix}: {name}, %");
        let mut all = vec!["settings".to_string()];
        all.extend(right.iter().map(titles("refused")));
        all.extend(wrong.iter().map(titles("accepted")));
        let mut page = format!(
            "## Other settings of the crate\n\nAll with 8 by 8 bits and Lanczos3, at {} bits. Wrong refusals first, then wrong acceptances.\n\n{}",
            self.bound,
            heading(&all.iter().map(String::as_str).collect::<Vec<_>>())
        );
        for (i, setting) in settings().iter().enumerate() {
            let mut cells = vec![setting.name.to_string()];
            cells.extend(right.iter().map(|(_, pairs)| percent(1.0 - pairs.accepted(i, self.bound))));
            cells.extend(wrong.iter().map(|(_, pairs)| percent(pairs.accepted(i, self.bound))));
            page += &row(cells);
        }
        page += "\nThose on cosine coefficients compare numbers that are nearly 0 where a picture has little contrast, so their bits are \
        noise there, most of all in pictures of one colour. Those that compare with a mean or a median leave more in common to pictures of \
        one kind. \
`VertGradient` is the nodes' setting on its side.\n\n";
        let errors =
            |i: usize, pairs: &[(&str, &Pairs)]| pairs.iter().map(|(_, pairs)| pairs.accepted(i, self.bound)).sum::<f64>();
        let steady = |&i: &usize| right.iter().all(|(_, pairs)| pairs.accepted(i, self.bound) > 0.95);
        let best = (0..settings().len()).filter(steady).min_by(|&a, &b| errors(a, &wrong).total_cmp(&errors(b, &wrong)));
        if let Some(best) = best {
            let _ = writeln!(page, "Of those that refuse less than 5 % in every row of the first half of the table, `{}` accepts least in the second half.", settings()[best].name);
        }
        page
    }
}

fn choose(n: u32, k: u32) -> f64 {
    (0..k).map(|i| f64::from(n - i) / f64::from(i + 1)).product()
}
