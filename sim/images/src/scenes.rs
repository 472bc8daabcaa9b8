//! Images with structure: scenes painted from numbers, at any resolution.
//!
//! A scene has a number, which decides its kind and its composition, and a seed, which moves its things a little
//! and decides all texture. Two seeds of a scene correspond to two seeds of a model that knows the prompt well.

use image::{Rgb, RgbImage};

use crate::random::Random;

/// The contents of a scene; scenes take turns by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ridges under a sky.
    Landscape,
    /// Houses with lit windows.
    City,
    /// Spheres on a table.
    StillLife,
    /// A head before a background.
    Portrait,
    /// Veins, as of marble.
    Marble,
    /// Lines of writing.
    Page,
    /// Discs and stripes, half transparent.
    Abstract,
    /// A room with a window.
    Room,
}

/// All kinds.
pub const KINDS: [Kind; 8] =
    [Kind::Landscape, Kind::City, Kind::StillLife, Kind::Portrait, Kind::Marble, Kind::Page, Kind::Abstract, Kind::Room];

type Colour = [f32; 3];
/// The colour at a place, both coordinates from 0 to 1.
type Painter = Box<dyn Fn(f32, f32) -> Colour + Send + Sync>;

/// A scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Decides kind and composition.
    pub number: u64,
    /// Decides texture, and where exactly things are.
    pub seed: u64,
}

impl Scene {
    /// Its kind.
    pub fn kind(self) -> Kind {
        KINDS[(self.number % KINDS.len() as u64) as usize]
    }

    /// Paints it, square, with this many pixels a side, each the mean of four places.
    pub fn paint(self, side: u32) -> RgbImage {
        let mut hand = Hand {
            composition: Random::named(&[1, self.number]),
            seed: Random::named(&[2, self.number, self.seed]),
            noise: Random::named(&[3, self.number, self.seed]).bits(),
        };
        let painter = match self.kind() {
            Kind::Landscape => landscape(&mut hand),
            Kind::City => city(&mut hand),
            Kind::StillLife => still_life(&mut hand),
            Kind::Portrait => portrait(&mut hand),
            Kind::Marble => marble(&mut hand),
            Kind::Page => page(&mut hand),
            Kind::Abstract => painting(&mut hand),
            Kind::Room => room(&mut hand),
        };
        RgbImage::from_fn(side, side, |x, y| {
            let mut sum = [0.0; 3];
            for (dx, dy) in [(0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75)] {
                let colour = painter((x as f32 + dx) / side as f32, (y as f32 + dy) / side as f32);
                (0..3).for_each(|i| sum[i] += colour[i]);
            }
            Rgb(sum.map(|value| (value * (255.0 / 4.0)).clamp(0.0, 255.0).round() as u8))
        })
    }
}

/// The source of a scene's numbers.
struct Hand {
    composition: Random,
    seed: Random,
    noise: u64,
}

impl Hand {
    /// Of the composition, moved by the seed by up to a twentieth of the range.
    fn between(&mut self, low: f32, high: f32) -> f32 {
        let (fixed, moved) = (self.composition.unit() as f32, self.seed.unit() as f32 - 0.5);
        low + (high - low) * (fixed + 0.1 * moved).clamp(0.0, 1.0)
    }

    /// Of the composition alone.
    fn count(&mut self, low: usize, high: usize) -> usize {
        low + self.composition.below(high - low + 1)
    }

    fn colour(&mut self) -> Colour {
        [self.between(0.05, 0.95), self.between(0.05, 0.95), self.between(0.05, 0.95)]
    }

    /// A texture of its own.
    fn texture(&mut self) -> u64 {
        self.noise = self.noise.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.noise
    }
}

fn mix(a: Colour, b: Colour, share: f32) -> Colour {
    std::array::from_fn(|i| a[i] + (b[i] - a[i]) * share.clamp(0.0, 1.0))
}

fn lit(colour: Colour, light: f32) -> Colour {
    colour.map(|value| value * light)
}

/// From 0 to 1 between two edges.
fn step(low: f32, high: f32, value: f32) -> f32 {
    let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
    share * share * (3.0 - 2.0 * share)
}

fn lattice(texture: u64, x: i32, y: i32) -> f32 {
    let mut z = texture ^ (u64::from(x as u32) << 32 | u64::from(y as u32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    ((z ^ (z >> 32)) >> 40) as f32 / (1u32 << 24) as f32
}

/// Smooth noise from 0 to 1 with cells of size 1.
fn noise(texture: u64, x: f32, y: f32) -> f32 {
    let (left, top) = (x.floor(), y.floor());
    let (across, down) = (step(0.0, 1.0, x - left), step(0.0, 1.0, y - top));
    let at = |dx, dy| lattice(texture, left as i32 + dx, top as i32 + dy);
    let upper = at(0, 0) + (at(1, 0) - at(0, 0)) * across;
    let lower = at(0, 1) + (at(1, 1) - at(0, 1)) * across;
    upper + (lower - upper) * down
}

/// Noise of several sizes, each half as large and half as strong as the one before; from 0 to 1.
fn cloud(texture: u64, x: f32, y: f32, octaves: u32) -> f32 {
    let (mut sum, mut size, mut strength) = (0.0, 1.0, 0.5);
    for octave in 0..octaves {
        sum += strength * noise(texture.wrapping_add(u64::from(octave) << 20), x * size, y * size);
        (size, strength) = (2.0 * size, 0.5 * strength);
    }
    sum
}

fn landscape(hand: &mut Hand) -> Painter {
    let (zenith, horizon, ground) = (hand.colour(), hand.colour(), hand.colour());
    let sun = (hand.between(0.1, 0.9), hand.between(0.05, 0.4), hand.between(0.03, 0.1));
    let (sky, grass) = (hand.texture(), hand.texture());
    let ridges: Vec<_> = (0..hand.count(2, 4))
        .map(|i| {
            let base = 0.35 + 0.12 * i as f32 + hand.between(-0.05, 0.05);
            (base, hand.between(0.05, 0.3), hand.between(1.5, 5.0), hand.texture(), lit(hand.colour(), 1.0 - 0.2 * i as f32))
        })
        .collect();
    Box::new(move |x, y| {
        let (dx, dy) = (x - sun.0, y - sun.1);
        let haze = cloud(sky, 4.0 * x, 7.0 * y, 4);
        let mut colour = mix(mix(zenith, horizon, 1.6 * y), [1.0; 3], step(0.45, 0.85, haze));
        colour = mix([1.0, 0.95, 0.8], colour, step(sun.2, 1.4 * sun.2, libm::sqrtf(dx * dx + dy * dy)));
        for &(base, height, width, texture, of) in &ridges {
            let ridge = base - height * (cloud(texture, width * x, 0.5, 5) - 0.5);
            if y > ridge {
                let grain = cloud(texture ^ 1, 30.0 * x, 30.0 * y, 3);
                colour = mix(lit(of, 0.6 + 0.8 * grain), horizon, 0.3 * step(0.25, 0.0, y - ridge));
            }
        }
        if y > 0.82 {
            colour = lit(ground, 0.4 + 1.1 * cloud(grass, 60.0 * x, 25.0 * y, 4));
        }
        colour
    })
}

fn city(hand: &mut Hand) -> Painter {
    let (above, below, lamp) = (hand.colour(), hand.colour(), [1.0, 0.9, 0.6]);
    let sky = hand.texture();
    let mut houses = Vec::new();
    for row in 0..2 {
        let mut left = -0.05;
        while left < 1.0 {
            let width = hand.between(0.06, 0.2);
            let height = hand.between(0.15, 0.75) - 0.15 * row as f32;
            houses.push((left, left + width, 1.0 - height, lit(hand.colour(), 0.5), hand.between(0.2, 0.8), hand.texture()));
            left += width + hand.between(0.0, 0.04);
        }
    }
    Box::new(move |x, y| {
        let mut colour = mix(mix(above, below, y), [0.9; 3], 0.6 * step(0.4, 0.8, cloud(sky, 3.0 * x, 6.0 * y, 4)));
        for &(left, right, top, wall, share, texture) in &houses {
            if x > left && x < right && y > top {
                let (across, down) = ((x - left) * 40.0, (y - top) * 30.0);
                let glass = across.fract() > 0.3 && across.fract() < 0.8 && down.fract() > 0.3 && down.fract() < 0.75;
                let on = lattice(texture, across as i32, down as i32) < share;
                colour = match (glass, on) {
                    (true, true) => lamp,
                    (true, false) => lit(wall, 0.4),
                    (false, _) => lit(wall, 0.8 + 0.4 * noise(texture, 90.0 * x, 90.0 * y)),
                };
            }
        }
        colour
    })
}

fn still_life(hand: &mut Hand) -> Painter {
    let (wall, table) = (hand.colour(), hand.colour());
    let (edge, light) = (hand.between(0.4, 0.65), (hand.between(-0.7, 0.7), hand.between(-0.8, -0.3)));
    let (plaster, wood) = (hand.texture(), hand.texture());
    let spheres: Vec<_> = (0..hand.count(2, 6))
        .map(|_| {
            let radius = hand.between(0.06, 0.2);
            ((hand.between(0.1, 0.9), edge + hand.between(0.0, 0.35)), radius, hand.colour(), hand.texture())
        })
        .collect();
    Box::new(move |x, y| {
        let mut colour = if y < edge {
            lit(wall, 0.7 + 0.4 * cloud(plaster, 5.0 * x, 5.0 * y, 5) + 0.3 * light.0 * (x - 0.5))
        } else {
            lit(table, 0.6 + 0.6 * cloud(wood, 3.0 * x, 40.0 * y, 4))
        };
        for &((cx, cy), radius, _, _) in &spheres {
            let (dx, dy) = ((x - cx + light.0 * radius) / 1.2, (y - cy - 0.9 * radius) * 3.0);
            if y > edge {
                colour = lit(colour, 0.35 + 0.65 * step(0.5 * radius, 1.3 * radius, libm::sqrtf(dx * dx + dy * dy)));
            }
        }
        for &((cx, cy), radius, of, texture) in &spheres {
            let (dx, dy) = ((x - cx) / radius, (y - cy) / radius);
            let out = 1.0 - dx * dx - dy * dy;
            if out > 0.0 {
                let z = libm::sqrtf(out);
                let shade = (dx * light.0 + dy * light.1 + 0.6 * z).max(0.0);
                let skin = 0.8 + 0.4 * cloud(texture, 8.0 * dx, 8.0 * dy, 3);
                let shine = step(0.93, 1.0, shade / 1.1);
                colour = mix(lit(of, skin * (0.2 + 0.9 * shade)), [1.0; 3], shine);
            }
        }
        colour
    })
}

fn portrait(hand: &mut Hand) -> Painter {
    let (behind, skin, hair, coat) = (hand.colour(), hand.colour(), lit(hand.colour(), 0.5), hand.colour());
    let (cx, cy) = (hand.between(0.35, 0.65), hand.between(0.35, 0.5));
    let (wide, high) = (hand.between(0.12, 0.2), hand.between(0.17, 0.27));
    let (side, gaze) = (hand.between(-0.8, 0.8), hand.between(-0.2, 0.2));
    let (blur, grain, strands) = (hand.texture(), hand.texture(), hand.texture());
    Box::new(move |x, y| {
        let mut colour = lit(behind, 0.4 + 1.1 * cloud(blur, 3.0 * x, 3.0 * y, 3));
        let (u, v) = ((x - cx) / wide, (y - cy) / high);
        if libm::sqrtf(u * u / 7.0 + (v - 2.6) * (v - 2.6)) < 1.2 {
            colour = lit(coat, 0.5 + 0.7 * cloud(strands ^ 1, 12.0 * x, 12.0 * y, 4));
        }
        if u * u / 1.6 + (v + 0.15) * (v + 0.15) / 1.5 < 1.0 {
            colour = lit(hair, 0.5 + cloud(strands, 60.0 * x, 8.0 * y, 3));
        }
        let round = u * u + v * v;
        if round < 1.0 && v > -0.7 + 0.2 * u * u {
            colour =
                lit(skin, (0.65 + 0.45 * side * u + 0.2 * (1.0 - round)) * (0.9 + 0.2 * cloud(grain, 40.0 * x, 40.0 * y, 3)));
            for eye in [-0.4, 0.4] {
                let (a, b) = ((u - eye - 0.1 * gaze) / 0.2, (v + 0.1) / 0.09);
                if a * a + b * b < 1.0 {
                    colour = if (a - gaze) * (a - gaze) + b * b < 0.4 { [0.05; 3] } else { [0.95; 3] };
                }
            }
            let mouth = (v - 0.5 - 0.15 * u * u) / 0.05;
            if mouth * mouth + (u / 0.4) * (u / 0.4) < 1.0 {
                colour = [0.6, 0.15, 0.2];
            }
        }
        colour
    })
}

fn marble(hand: &mut Hand) -> Painter {
    let (light, dark) = (hand.colour(), hand.colour());
    let (across, down, bands) = (hand.between(-1.0, 1.0), hand.between(-1.0, 1.0), hand.between(1.0, 8.0));
    let (size, warp) = (hand.between(1.0, 4.0), hand.between(0.3, 2.0));
    let texture = hand.texture();
    Box::new(move |x, y| {
        let turbulence = cloud(texture, size * x, size * y, 6);
        let phase = bands * (across * x + down * y) + 3.0 * warp * turbulence;
        let wave = (phase - phase.floor() - 0.5).abs() * 2.0;
        mix(dark, light, 0.8 * wave + 0.3 * cloud(texture ^ 1, 50.0 * x, 50.0 * y, 2))
    })
}

fn page(hand: &mut Hand) -> Painter {
    let (paper, ink) = (lit(hand.colour(), 0.3).map(|value| value + 0.68), lit(hand.colour(), 0.25));
    let (margin, lines) = (hand.between(0.06, 0.14), hand.between(18.0, 42.0));
    let figure = (hand.between(0.1, 0.6), hand.between(0.15, 0.6), hand.between(0.2, 0.4), hand.between(0.15, 0.3));
    let (tint, words, drawing) = (hand.colour(), hand.texture(), hand.texture());
    Box::new(move |x, y| {
        let (u, v) = ((x - figure.0) / figure.2, (y - figure.1) / figure.3);
        if (0.0..1.0).contains(&u) && (0.0..1.0).contains(&v) {
            return mix(tint, ink, cloud(drawing, 4.0 * u, 4.0 * v, 5));
        }
        if x < margin || x > 1.0 - margin || y < margin || y > 1.0 - margin {
            return paper;
        }
        let (line, letter) = (y * lines, x * lines * 1.8);
        let row = line as i32;
        // A paragraph ends with a short line, a heading is one.
        let end = if lattice(words, row, -1) < 0.2 { 0.3 + 0.5 * lattice(words, row, -2) } else { 1.0 - margin };
        let gap = lattice(words ^ 1, letter as i32, row) < 0.17;
        let (s, t) = (letter.fract() * 4.0, line.fract() * 6.0);
        let stroke = (1.0..5.0).contains(&t) && lattice(words ^ 2, letter as i32 * 4 + s as i32, row * 6 + t as i32) < 0.55;
        if x < end && !gap && s < 3.2 && stroke {
            ink
        } else {
            paper
        }
    })
}

fn painting(hand: &mut Hand) -> Painter {
    let (ground, texture) = (hand.colour(), hand.texture());
    let things: Vec<_> = (0..hand.count(4, 14))
        .map(|_| {
            let place = (hand.between(0.0, 1.0), hand.between(0.0, 1.0));
            let stripe = hand.composition.unit() < 0.4;
            (
                stripe,
                place,
                hand.between(0.03, 0.3),
                (hand.between(-1.0, 1.0), hand.between(-1.0, 1.0)),
                hand.colour(),
                hand.between(0.4, 1.0),
            )
        })
        .collect();
    Box::new(move |x, y| {
        let mut colour = lit(ground, 0.8 + 0.4 * cloud(texture, 6.0 * x, 6.0 * y, 5));
        for &(stripe, (cx, cy), size, (a, b), of, strength) in &things {
            let (dx, dy) = (x - cx, y - cy);
            let length = libm::sqrtf(a * a + b * b).max(0.1);
            let far = if stripe { (dx * a + dy * b).abs() / length * 3.0 } else { libm::sqrtf(dx * dx + dy * dy) };
            colour = mix(colour, of, strength * step(size, 0.97 * size, far));
        }
        colour
    })
}

fn room(hand: &mut Hand) -> Painter {
    let (walls, floor, sky) = (hand.colour(), hand.colour(), hand.colour());
    let (vx, vy) = (hand.between(0.35, 0.65), hand.between(0.35, 0.6));
    let (deep, tiles) = (hand.between(0.3, 0.6), hand.between(4.0, 10.0));
    let window = (hand.between(-0.7, 0.1), hand.between(-0.7, -0.1), hand.between(0.3, 0.7), hand.between(0.3, 0.7));
    let texture = hand.texture();
    let boxes: Vec<_> = (0..hand.count(1, 4))
        .map(|_| {
            (hand.between(0.0, 0.8), hand.between(0.55, 0.8), hand.between(0.1, 0.3), hand.between(0.1, 0.25), hand.colour())
        })
        .collect();
    Box::new(move |x, y| {
        // From the vanishing point, 1 at the picture's edge.
        let u = if x < vx { (x - vx) / vx } else { (x - vx) / (1.0 - vx) };
        let v = if y < vy { (y - vy) / vy } else { (y - vy) / (1.0 - vy) };
        let out = u.abs().max(v.abs());
        let dim = 0.5 + 0.5 * out;
        let mut colour = if out < deep {
            let (a, b) = (u / deep, v / deep);
            if a > window.0 && a < window.0 + window.2 && b > window.1 && b < window.1 + window.3 {
                mix(sky, [1.0; 3], 0.4 + 0.4 * cloud(texture ^ 1, 12.0 * a, 12.0 * b, 4))
            } else {
                lit(walls, 0.75)
            }
        } else if v.abs() < u.abs() {
            lit(walls, dim * 0.9)
        } else if v > 0.0 {
            let square = ((tiles * u / v.max(0.05)).floor() + (tiles * deep / v.max(0.05)).floor()) as i32;
            lit(floor, dim * if square.rem_euclid(2) == 0 { 1.1 } else { 0.6 })
        } else {
            lit(walls, dim * 1.2)
        };
        for &(left, top, wide, high, of) in &boxes {
            if x > left && x < left + wide && y > top && y < top + high {
                colour = lit(of, if y < top + 0.2 * high { 1.2 } else { 0.7 });
            }
        }
        lit(colour, 0.85 + 0.3 * cloud(texture, 25.0 * x, 25.0 * y, 4))
    })
}
