//! Pictures as SVG: grouped bars and curves, each with its confidence interval, and clouds of points.
//!
//! Written by hand, because the same figures must give the same bytes on every machine.

use std::fmt::Write;

use muster_core::wad::{neg_ln_wad, WAD};

use crate::numbers::number;
use crate::statistics::Estimate;

/// Distinguishable with colour blindness (Okabe and Ito's palette).
const COLOURS: [&str; 7] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#444444"];

const WIDTH: f64 = 760.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 20.0;
/// The largest average width of a letter of 12 units.
const LETTER: f64 = 6.6;
/// Between the baselines of two labels.
const LABEL_ROW: f64 = 14.0;
const PLOT_HEIGHT: f64 = 280.0;
const LEGEND_ROW: f64 = 20.0;

/// The common parts of both kinds of picture.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    pub title: String,
    /// The quantity on the axis, with its unit.
    pub y: String,
    /// The meaning of the intervals.
    pub note: String,
}

/// Groups of bars; one bar per series in each group.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    pub frame: Frame,
    pub groups: Vec<String>,
    pub series: Vec<(String, Vec<Estimate>)>,
}

/// Curves over a common axis.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    pub frame: Frame,
    pub x: String,
    pub series: Vec<(String, Vec<(f64, Estimate)>)>,
    /// Vertical lines with their names.
    pub marks: Vec<(f64, String)>,
    /// Whether the vertical axis starts at zero.
    pub from_zero: bool,
    /// Whether the common axis is logarithmic; its values are then at least 1.
    pub log: bool,
    /// Whether the vertical axis is logarithmic; its values are then at least 1, and it does not start at zero.
    pub log_y: bool,
    /// Whether values are marked, which tells few of them from a curve.
    pub dots: bool,
}

/// Points; the vertical axis starts at zero.
#[derive(Clone, Debug, Default)]
pub struct Scatter {
    pub frame: Frame,
    pub x: String,
    pub series: Vec<(String, Vec<(f64, f64)>)>,
    /// Whether the common axis is logarithmic; its values are then at least 1.
    pub log: bool,
}

impl Bars {
    pub fn svg(&self) -> String {
        let highest = largest(self.series.iter().flat_map(|(_, values)| values).map(|v| v.high()));
        let names = self.series.iter().map(|(name, _)| name.as_str());
        let mut canvas = Canvas::new(&self.frame, names, (0.0, highest), RIGHT, false);
        let slot = canvas.plot_width() / self.groups.len().max(1) as f64;
        let bar = slot * 0.82 / self.series.len().max(1) as f64;
        for (g, name) in self.groups.iter().enumerate() {
            let left = LEFT + slot * (g as f64 + 0.09);
            for (s, (_, values)) in self.series.iter().enumerate() {
                let Some(value) = values.get(g) else { continue };
                let x = left + bar * s as f64;
                canvas.bar(x, bar * 0.92, value, colour(s));
            }
            canvas.text(LEFT + slot * (g as f64 + 0.5), canvas.bottom() + 18.0, "middle", 12, name);
        }
        canvas.finish("")
    }
}

impl Curves {
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|(_, points)| points);
        let highest = largest(points().map(|(_, v)| v.high()));
        let lowest = if self.from_zero { 0.0 } else { -largest(points().map(|(_, v)| -v.low())) };
        // Names stand at the ends of their lines, where it is plain which is whose.
        let longest = self.series.iter().map(|(name, _)| name.chars().count());
        let right = RIGHT + LETTER * longest.max().unwrap_or(0) as f64;
        let mut canvas = Canvas::new(&self.frame, std::iter::empty(), (lowest, highest), right, self.log_y);
        let scale = |x: f64| if self.log { logarithm(x) } else { x };
        let last = largest(points().map(|(x, _)| *x));
        let first = -largest(points().map(|(x, _)| -*x));
        let (left, right) = (scale(first), scale(last));
        let span = if right > left { right - left } else { 1.0 };
        let width = canvas.plot_width();
        let at = |x: f64| LEFT + (scale(x) - left) / span * width;
        for tick in if self.log { powers(left, right) } else { ticks(first, last, 8) } {
            canvas.text(at(tick), canvas.bottom() + 18.0, "middle", 12, &number(tick));
            canvas.line((at(tick), canvas.bottom()), (at(tick), canvas.bottom() + 5.0), "#444444", "");
        }
        for (x, name) in &self.marks {
            canvas.line((at(*x), canvas.top), (at(*x), canvas.bottom()), "#777777", "4 3");
            canvas.text(at(*x) + 5.0, canvas.top + 13.0, "start", 11, name);
        }
        for (s, (_, points)) in self.series.iter().enumerate() {
            canvas.band(points.iter().map(|(x, v)| (at(*x), v)).collect(), colour(s), self.dots);
        }
        let ends = self.series.iter().enumerate().filter_map(|(s, (name, points))| {
            let (x, value) = points.last()?;
            Some((at(*x), canvas.y(value.mean), name.as_str(), colour(s)))
        });
        let ends = ends.collect();
        canvas.labels(ends);
        canvas.finish(&self.x)
    }
}

impl Scatter {
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|(_, points)| points);
        let names = self.series.iter().map(|(name, _)| name.as_str());
        let mut canvas = Canvas::new(&self.frame, names, (0.0, largest(points().map(|point| point.1))), RIGHT, false);
        let scale = |x: f64| if self.log { logarithm(x) } else { x };
        let (first, last) = (-largest(points().map(|point| -point.0)), largest(points().map(|point| point.0)));
        let (left, right) = (scale(first), scale(last));
        let span = if right > left { right - left } else { 1.0 };
        // So much beside the outermost points, that none is cut.
        let (air, width) = (8.0, canvas.plot_width() - 16.0);
        let at = |x: f64| LEFT + air + (scale(x) - left) / span * width;
        for tick in if self.log { powers(left, right) } else { ticks(first, last, 8) } {
            canvas.text(at(tick), canvas.bottom() + 18.0, "middle", 12, &number(tick));
            canvas.line((at(tick), canvas.bottom()), (at(tick), canvas.bottom() + 5.0), "#444444", "");
        }
        for (s, (_, points)) in self.series.iter().enumerate() {
            for (x, y) in points {
                let (x, y) = (at(*x), canvas.y(*y));
                let _ = write!(
                    canvas.svg,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{}\" fill-opacity=\"0.6\"/>",
                    colour(s)
                );
            }
        }
        canvas.finish(&self.x)
    }
}

fn colour(series: usize) -> &'static str {
    COLOURS[series % COLOURS.len()]
}

/// The natural logarithm, core's, because those of machines differ in the last digit.
fn logarithm(x: f64) -> f64 {
    let inverse = (WAD as f64 / x.max(1.0)) as u64;
    neg_ln_wad(inverse).map_or(0.0, |wad| wad as f64 / WAD as f64)
}

fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::NEG_INFINITY, f64::max)
}

/// Powers of ten whose logarithms lie between both ends.
fn powers(low: f64, high: f64) -> Vec<f64> {
    [1.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].into_iter().filter(|x| (low..=high).contains(&logarithm(*x))).collect()
}

/// Round numbers between both ends, about `count` of them.
fn ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let span = high - low;
    if !span.is_finite() || span <= 0.0 {
        return vec![];
    }
    let rough = span / count as f64;
    // Steps 1, 2, 5 times a power of ten, found without a logarithm.
    let mut power = 1.0;
    while power > rough {
        power /= 10.0;
    }
    while power * 10.0 <= rough {
        power *= 10.0;
    }
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough).unwrap_or(power);
    let from = (low / step - 1e-9).ceil() as i64;
    let to = (high / step + 1e-9).floor() as i64;
    (from..=to).map(|i| i as f64 * step).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

struct Canvas {
    svg: String,
    top: f64,
    /// Ends of the vertical axis; logarithms where it is logarithmic.
    low: f64,
    high: f64,
    log: bool,
    right: f64,
    note: String,
}

/// The places of labels for lines that end at these heights, in ascending order: as near as possible, a row apart, and none beyond `top`
/// and `bottom` if they fit between.
fn spread(heights: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places = heights.to_vec();
    // Those that overlap move apart around their common middle, a little at a time.
    for _ in 0..500 {
        for i in 1..places.len() {
            let overlap = LABEL_ROW - (places[i] - places[i - 1]);
            if overlap > 0.0 {
                places[i - 1] -= overlap / 2.0;
                places[i] += overlap / 2.0;
            }
        }
        if let Some(first) = places.first_mut() {
            *first = first.max(top);
        }
        if let Some(last) = places.last_mut() {
            *last = last.min(bottom);
        }
    }
    places
}

impl Canvas {
    fn new<'a>(frame: &Frame, names: impl Iterator<Item = &'a str>, (low, high): (f64, f64), right: f64, log: bool) -> Self {
        let (low, high) = if log { (logarithm(low), logarithm(high)) } else { (low, high) };
        // Some air above the highest value; an empty or flat picture still gets an axis.
        let high = if high.is_finite() && high > low { high } else { low + 1.0 };
        let margin = (high - low) * 0.05;
        let low = if low == 0.0 { 0.0 } else { low - margin };
        let mut canvas = Self { svg: String::new(), top: 0.0, low, high: high + margin, log, right, note: frame.note.clone() };
        canvas.text(LEFT, 24.0, "start", 15, &frame.title);
        let (mut x, mut y) = (LEFT, 46.0);
        for (s, name) in names.enumerate() {
            // Seven units a letter is a little more than the font needs.
            let width = 30.0 + 7.0 * name.chars().count() as f64;
            if x + width > WIDTH - right && x > LEFT {
                (x, y) = (LEFT, y + LEGEND_ROW);
            }
            let _ = write!(
                canvas.svg,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{}\"/>",
                y - 10.0,
                colour(s)
            );
            canvas.text(x + 17.0, y, "start", 12, name);
            x += width;
        }
        canvas.top = if x > LEFT || y > 46.0 { y + 16.0 } else { 40.0 };
        let marks = if log { powers(canvas.low, canvas.high) } else { ticks(canvas.low, canvas.high, 6) };
        for tick in marks {
            let at = canvas.y(tick);
            canvas.line((LEFT, at), (WIDTH - right, at), "#dddddd", "");
            canvas.text(LEFT - 8.0, at + 4.0, "end", 12, &number(tick));
        }
        let middle = canvas.top + PLOT_HEIGHT / 2.0;
        let _ = write!(
            canvas.svg,
            "<text x=\"18\" y=\"{middle:.1}\" text-anchor=\"middle\" font-size=\"12\" transform=\"rotate(-90 18 {middle:.1})\">{}</text>",
            escape(&frame.y)
        );
        canvas
    }

    fn plot_width(&self) -> f64 {
        WIDTH - LEFT - self.right
    }

    fn bottom(&self) -> f64 {
        self.top + PLOT_HEIGHT
    }

    fn y(&self, value: f64) -> f64 {
        let value = if self.log { logarithm(value) } else { value };
        self.bottom() - (value - self.low) / (self.high - self.low) * PLOT_HEIGHT
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, size: u32, text: &str) {
        let _ = write!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{}</text>",
            escape(text)
        );
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, dashes: &str) {
        let _ = write!(
            self.svg,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-dasharray=\"{dashes}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    fn bar(&mut self, x: f64, width: f64, value: &Estimate, colour: &str) {
        let top = self.y(value.mean);
        let _ = write!(
            self.svg,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
            (self.bottom() - top).max(0.0)
        );
        let middle = x + width / 2.0;
        let (low, high) = (self.y(value.low().max(self.low)), self.y(value.high()));
        self.line((middle, low), (middle, high), "#222222", "");
        let cap = (width / 4.0).min(4.0);
        self.line((middle - cap, low), (middle + cap, low), "#222222", "");
        self.line((middle - cap, high), (middle + cap, high), "#222222", "");
    }

    /// Names at the ends of their lines: where one ends, how high, its name and colour. A thin line leads to those that were
    /// moved to avoid an overlap.
    fn labels(&mut self, mut ends: Vec<(f64, f64, &str, &str)>) {
        ends.sort_by(|a, b| a.1.total_cmp(&b.1));
        let heights: Vec<f64> = ends.iter().map(|end| end.1).collect();
        for ((x, height, name, colour), place) in ends.iter().zip(spread(&heights, self.top, self.bottom())) {
            self.line((*x, *height), (x + 8.0, place), colour, "");
            let _ = write!(
                self.svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\" fill=\"{colour}\">{}</text>",
                x + 11.0,
                place + 4.0,
                escape(name)
            );
        }
    }

    /// A curve in the middle of its interval.
    fn band(&mut self, points: Vec<(f64, &Estimate)>, colour: &str, dots: bool) {
        if points.iter().any(|(_, v)| v.margin > 0.0) {
            let there = points.iter().map(|(x, v)| format!("{x:.1},{:.1}", self.y(v.high())));
            let back = points.iter().rev().map(|(x, v)| format!("{x:.1},{:.1}", self.y(v.low()).min(self.bottom())));
            let outline: Vec<String> = there.chain(back).collect();
            let _ = write!(self.svg, "<polygon points=\"{}\" fill=\"{colour}\" fill-opacity=\"0.2\"/>", outline.join(" "));
        }
        let middle: Vec<String> = points.iter().map(|(x, v)| format!("{x:.1},{:.1}", self.y(v.mean))).collect();
        let _ = write!(
            self.svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"/>",
            middle.join(" ")
        );
        for (x, v) in points.iter().filter(|_| dots) {
            let _ = write!(self.svg, "<circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", self.y(v.mean));
        }
    }

    fn finish(mut self, x_label: &str) -> String {
        let bottom = self.bottom();
        self.line((LEFT, bottom), (WIDTH - self.right, bottom), "#444444", "");
        self.line((LEFT, self.top), (LEFT, bottom), "#444444", "");
        let mut end = bottom + 26.0;
        if !x_label.is_empty() {
            end += 14.0;
            self.text(LEFT + self.plot_width() / 2.0, end, "middle", 12, x_label);
        }
        if !self.note.is_empty() {
            end += 18.0;
            let note = std::mem::take(&mut self.note);
            self.text(LEFT, end, "start", 11, &note);
        }
        let height = end + 12.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"#222222\"><rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>{}</svg>\n",
            self.svg
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.0, 10.0, 5), vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(0.0, 0.5, 6), vec![0.0, 0.1, 0.2, 0.30000000000000004, 0.4, 0.5]);
        assert_eq!(ticks(3.0, 3.0, 6), Vec::<f64>::new());
        assert_eq!(ticks(0.0, f64::NAN, 6), Vec::<f64>::new());
        for (low, high) in [(0.0, 23.7), (-3.0, 1000.0), (0.812, 0.993), (0.0, 4e-5)] {
            let ticks = ticks(low, high, 6);
            assert!((2..=9).contains(&ticks.len()), "{ticks:?}");
            assert!(ticks.iter().all(|t| *t >= low - 1e-9 && *t <= high + 1e-9));
        }
    }

    #[test]
    fn labels_keep_apart() {
        assert_eq!(spread(&[10.0, 50.0], 0.0, 100.0), [10.0, 50.0]);
        let places = spread(&[5.0, 5.0], 5.0, 100.0);
        assert!(places[0] == 5.0 && (places[1] - 19.0).abs() < 0.1, "{places:?}");
        let places = spread(&[20.0, 20.0, 21.0, 99.0, 100.0], 0.0, 100.0);
        assert!(places.windows(2).all(|p| p[1] - p[0] > LABEL_ROW - 0.1), "{places:?}");
        assert!(places[4] <= 100.0 && (places[1] - 20.3).abs() < 0.5, "{places:?}");
    }

    #[test]
    fn bars_are_as_high_as_their_values() {
        let value = |mean| Estimate { mean, margin: 0.0, count: 3 };
        let bars = Bars {
            frame: Frame { title: "a < b".into(), y: "y".into(), note: "n".into() },
            groups: vec!["g".into()],
            series: vec![("one".into(), vec![value(1.0)]), ("two".into(), vec![value(2.0)])],
        };
        let svg = bars.svg();
        assert!(svg.contains("a &lt; b"));
        let heights: Vec<f64> = svg
            .split("<rect ")
            .skip(4)
            .map(|rect| rect.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        // The background and two squares of the legend come first.
        assert_eq!(heights.len(), 2);
        assert!((heights[1] / heights[0] - 2.0).abs() < 0.01, "{heights:?}");
    }

    #[test]
    fn points_are_where_their_values_are() {
        let scatter = Scatter {
            series: vec![("one".into(), vec![(1.0, 0.0), (10.0, 50.0)]), ("two".into(), vec![(100.0, 100.0)])],
            log: true,
            ..Scatter::default()
        };
        let svg = scatter.svg();
        let of = |what: &str| -> Vec<f64> {
            svg.split(what).skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
        };
        let (x, y) = (of("cx=\""), of("cy=\""));
        assert!(x.len() == 3 && (x[0] - 2.0 * x[1] + x[2]).abs() < 0.11, "equal factors are equal steps: {x:?}");
        assert!((y[0] - 2.0 * y[1] + y[2]).abs() < 0.11 && y[0] > y[2], "{y:?}");
    }

    #[test]
    fn both_axes_can_be_logarithmic() {
        let curves = Curves {
            series: vec![(
                "one".into(),
                [1.0, 10.0, 100.0].map(|x| (x, Estimate { mean: 50.0 * x, margin: 0.0, count: 1 })).to_vec(),
            )],
            log: true,
            log_y: true,
            dots: true,
            ..Curves::default()
        };
        let svg = curves.svg();
        assert!(!svg.contains("<polygon"), "no band around what has no interval");
        let heights: Vec<f64> = svg.split("cy=\"").skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect();
        assert_eq!(heights.len(), 3);
        assert!((heights[0] - 2.0 * heights[1] + heights[2]).abs() < 0.11, "equal factors are equal steps: {heights:?}");
        for tick in [">1<", ">10<", ">100<", ">1,000<"] {
            assert!(svg.contains(tick), "{tick}");
        }
    }
}
