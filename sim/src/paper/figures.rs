//! Pictures and tables of the measurements.

use std::error::Error;

use muster_core::reputation::Fallback;

use super::claims::Course;
use super::experiments::{beyond, blackouts, weights, SWEPT_ALPHAS};
use super::lab::Lab;
use super::series::{self, curve, OfRounds};
use super::variant::{Case, Key, Variant, ALPHAS, LARGE, SMALL, STRIKE};
use crate::chart::{Bars, Curves, Frame};
use crate::numbers::thousands;
use crate::population::{Name, Set};
use crate::rounds::{Algorithm, Measure, Outcome};
use crate::statistics::Estimate;

fn frame(title: &str, y: &str, note: String) -> Frame {
    Frame { title: title.into(), y: y.into(), note }
}

fn names() -> Vec<String> {
    Name::ALL.map(|name| name.text().to_owned()).to_vec()
}

/// Name and text of every picture: of the fitted set under the chosen reading.
pub fn draw(lab: &Lab, v: &Variant) -> Vec<(String, String)> {
    let mut pictures = Vec::new();
    compare(lab, v, &mut pictures);
    targets(lab, v, &mut pictures);
    alphas(lab, v, &mut pictures);
    over_time(lab, v, &mut pictures);
    strategies(lab, v, &mut pictures);
    pictures
}

type Value = fn(&Outcome) -> f64;

/// Figures 3, 4, 5, 11, 12.
fn compare(lab: &Lab, v: &Variant, pictures: &mut Vec<(String, String)>) {
    let throughput: Value = |o| o.throughput;
    let success: Value = |o| o.success;
    let size: Value = |o| o.group_size;
    let calls: Value = |o| o.evaluations;
    let per_round = "successful tasks per round";
    let share = "share of tasks that succeed";
    let bound = Measure::Bound;
    let rated = v.rated();
    let all: Vec<Algorithm> = std::iter::once(Algorithm::Fixed).chain(rated).collect();
    for (name, title, y, workers, measure, algorithms, value) in [
        ("fig3a", "Figure 3a: throughput, 100 workers", per_round, SMALL, bound, &all[..], throughput),
        ("fig3b", "Figure 3b: success rate, 100 workers", share, SMALL, bound, &all, success),
        ("fig4", "Figure 4: mean group size, 100 workers", "workers per task", SMALL, bound, &all, size),
        ("fig5a", "Figure 5a: throughput, 1,000 workers", per_round, LARGE, bound, &all, throughput),
        ("fig5b", "Figure 5b: success rate, 1,000 workers", share, LARGE, bound, &all, success),
        ("fig11a", "Figure 11a: calls of the LOC function, 100 workers", "calls per round", SMALL, bound, &rated, calls),
        ("fig11b", "Figure 11b: calls of the LOC function, 1,000 workers", "calls per round", LARGE, bound, &rated, calls),
        ("fig12", "Figure 12: throughput with the exact LOC, 100 workers", per_round, SMALL, Measure::Exact, &all, throughput),
    ] {
        let seeds = if workers == SMALL { v.scale.seeds } else { v.scale.large_seeds };
        let series = algorithms.iter().map(|&algorithm| {
            let of = |name| v.estimate(lab, Key::new(name, workers, measure, algorithm), value);
            (algorithm.name().to_owned(), Name::ALL.map(of).to_vec())
        });
        let note = format!(
            "Mean of {seeds} seeds, {} rounds each, with 95 % confidence intervals. Rmin 3, Rmax 7.",
            thousands(v.scale.rounds.into())
        );
        let bars = Bars { frame: frame(title, y, note), groups: names(), series: series.collect() };
        pictures.push((name.to_owned(), bars.svg()));
    }
}

/// Figures 6, 7, 8.
fn targets(lab: &Lab, v: &Variant, pictures: &mut Vec<(String, String)>) {
    for (figure, alpha) in ALPHAS.into_iter().enumerate() {
        for (letter, algorithm) in ["a", "b"].into_iter().zip(v.greedy()) {
            let case = |name| Case { name, algorithm, measure: Measure::Bound, alpha };
            let range = |name| v.ranges(lab, &case(name));
            let estimate = |values: Vec<f64>| Estimate::of(&values);
            let worst = |name| estimate(range(name).into_iter().map(|r| r.0).collect());
            let best = |name| estimate(range(name).into_iter().map(|r| r.1).collect());
            let climb = v.reading.climb.targeting(alpha);
            let adaptive = |name| estimate(v.of_case(lab, &case(name), climb, |o| o.gain(alpha)));
            let y = match figure {
                1 => "gain: throughput / largest possible",
                2 => "gain: success rate",
                _ => "gain (0 to 1)",
            };
            let title = format!("Figure {}{letter}: {}, alpha = {alpha}", figure + 6, algorithm.name());
            let note = format!(
                "{} rounds. Static: best and worst of {} targets on each of {} populations; adaptive: {} runs. 95 % intervals.",
                thousands(v.scale.long_rounds.into()),
                100 / v.scale.step + 1,
                v.scale.sweep_seeds,
                v.scale.sweep_seeds * v.scale.repeats
            );
            let bars = Bars {
                frame: frame(&title, y, note),
                groups: names(),
                series: vec![
                    ("worst static target".into(), Name::ALL.map(worst).to_vec()),
                    ("best static target".into(), Name::ALL.map(best).to_vec()),
                    ("adaptive target".into(), Name::ALL.map(adaptive).to_vec()),
                ],
            };
            pictures.push((format!("fig{}{letter}", figure + 6), bars.svg()));
        }
    }
}

/// Figure 9.
fn alphas(lab: &Lab, v: &Variant, pictures: &mut Vec<(String, String)>) {
    let success: Value = |o| o.success;
    let throughput: Value = |o| o.throughput;
    for (name, title, y, value) in [
        ("fig9a", "Figure 9a: success rate, adaptive First-fit", "share of tasks that succeed", success),
        ("fig9b", "Figure 9b: throughput, adaptive First-fit", "successful tasks per round", throughput),
    ] {
        let curves: Vec<Vec<Estimate>> = SWEPT_ALPHAS
            .iter()
            .map(|tenths| {
                weights(*tenths)
                    .iter()
                    .map(|case| {
                        let targeting = v.reading.climb.targeting(case.alpha);
                        Estimate::of(&v.of_case(lab, case, targeting, value))
                    })
                    .collect()
            })
            .collect();
        let series = Name::ALL.iter().enumerate().map(|(i, name)| {
            let points = SWEPT_ALPHAS.iter().zip(&curves);
            let points = points.map(|(tenths, at)| (f64::from(*tenths) / 10.0, at[i]));
            (name.text().to_owned(), points.collect())
        });
        let note = format!(
            "Mean of {} runs of {} rounds, with 95 % confidence bands. 100 workers.",
            v.scale.sweep_seeds * v.scale.repeats,
            thousands(v.scale.long_rounds.into())
        );
        let curves = Curves {
            frame: frame(title, y, note),
            x: "alpha: weight of throughput in the gain".into(),
            series: series.collect(),
            from_zero: true,
            ..Curves::default()
        };
        pictures.push((name.to_owned(), curves.svg()));
    }
}

/// Figure 10, and the success rate, the target and the groups beside it.
fn over_time(lab: &Lab, v: &Variant, pictures: &mut Vec<(String, String)>) {
    let note = format!(
        "Mean of {} seeds, ten rounds a point, with 95 % confidence bands. 100 workers, Tight-fit, Rmax 7.",
        v.scale.blackout_seeds
    );
    let all = blackouts(lab, v);
    let throughput: OfRounds = series::throughput;
    for (name, title, y, value, kinds) in [
        ("throughput", "throughput", "successful tasks per round", throughput, &all[..]),
        ("success", "success rate", "share of tasks that succeed", series::success, &all),
        ("target", "target", "target LOC", series::target, &all[..4]),
        ("size", "groups", "workers per task", series::size, &all[..4]),
    ] {
        let series = kinds.iter().filter(|kind| name != "target" || kind.label != "static, closest group").map(|kind| {
            let course = Course::of(lab, &kind.runs);
            (kind.label.to_owned(), curve(course.outcomes(), value))
        });
        let curves = Curves {
            frame: frame(&format!("Figure 10, blackout: {title}"), y, note.clone()),
            x: "round".into(),
            series: series.collect(),
            marks: vec![(f64::from(STRIKE), "30 % of workers fail".into())],
            ..Curves::default()
        };
        pictures.push((format!("fig10-{name}"), curves.svg()));
    }
}

/// The gains of the strategies beyond the paper.
fn strategies(lab: &Lab, v: &Variant, pictures: &mut Vec<(String, String)>) {
    for (index, alpha) in ALPHAS.into_iter().enumerate() {
        let series = beyond(v, alpha).into_iter().map(|strategy| {
            let gain = |name| {
                let case = Case { name, ..strategy.case };
                Estimate::of(&v.of_case(lab, &case, strategy.targeting, |o| o.gain(alpha)))
            };
            (strategy.label.to_owned(), Name::ALL.map(gain).to_vec())
        });
        let note = format!(
            "Mean of {} runs of {} rounds, with 95 % confidence intervals. 100 workers, Rmax 7.",
            v.scale.sweep_seeds * v.scale.repeats,
            thousands(v.scale.long_rounds.into())
        );
        let title = format!("Beyond the paper: gain, alpha = {alpha}");
        let bars = Bars { frame: frame(&title, "gain (0 to 1)", note), groups: names(), series: series.collect() };
        pictures.push((format!("beyond{}", index + 1), bars.svg()));
    }
}

type Tables = Result<Vec<(String, String)>, Box<dyn Error + Send + Sync>>;

/// Name and text of every table, as CSV.
pub fn tables(lab: &Lab, variants: &[Variant]) -> Tables {
    let mut tables = Vec::new();
    let mut add = |name: &str, head: &[&str], rows: Vec<Vec<String>>| -> Result<(), csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(head)?;
        rows.iter().try_for_each(|row| writer.write_record(row))?;
        let bytes = writer.into_inner().map_err(|e| e.into_error())?;
        tables.push((name.to_owned(), String::from_utf8_lossy(&bytes).into_owned()));
        Ok(())
    };

    let mut rows = Vec::new();
    for (set, v) in by_set(variants) {
        for name in Name::ALL {
            for workers in [SMALL, LARGE] {
                for measure in Measure::ALL {
                    if (workers, measure) == (LARGE, Measure::Exact) {
                        continue;
                    }
                    let algorithms = [
                        Algorithm::Fixed,
                        Algorithm::FirstFit,
                        Algorithm::TightFit(Fallback::Largest),
                        Algorithm::TightFit(Fallback::Closest),
                        Algorithm::RandomFit,
                    ];
                    for algorithm in algorithms {
                        for run in v.given(lab, Key::new(name, workers, measure, algorithm)) {
                            let o = lab.outcome(&run);
                            rows.push(vec![
                                set.name.into(),
                                name.text().into(),
                                workers.to_string(),
                                measure.name().into(),
                                label(algorithm),
                                (run.population_seed - v.first).to_string(),
                                format!("{:.4}", o.throughput),
                                format!("{:.6}", o.success),
                                format!("{:.4}", o.attempted),
                                format!("{:.4}", o.group_size),
                                format!("{:.3}", o.evaluations),
                                if run.compare_measures { format!("{:.6}", o.bound_error) } else { String::new() },
                            ]);
                        }
                    }
                }
            }
        }
    }
    let head = [
        "set",
        "population",
        "workers",
        "measure",
        "algorithm",
        "seed",
        "throughput",
        "success_rate",
        "attempted",
        "group_size",
        "loc_calls",
        "bound_error",
    ];
    add("fixed-target", &head, rows)?;

    let mut rows = Vec::new();
    for v in variants {
        for case in Variant::cases(&v.greedy(), Measure::Bound) {
            let ranges = v.ranges(lab, &case);
            for (runs, (worst, best)) in v.adaptive(&case).iter().zip(ranges) {
                for run in runs {
                    let o = lab.outcome(run);
                    rows.push(vec![
                        v.set.name.into(),
                        v.reading.name.into(),
                        case.name.text().into(),
                        label(case.algorithm),
                        case.alpha.to_string(),
                        (run.population_seed - v.first).to_string(),
                        run.run_seed.to_string(),
                        format!("{:.6}", o.gain(case.alpha)),
                        format!("{best:.6}"),
                        format!("{worst:.6}"),
                        format!("{:.4}", o.throughput),
                        format!("{:.6}", o.success),
                        format!("{:.4}", o.late_target),
                        o.converged.map_or(String::new(), |c| c.to_string()),
                    ]);
                }
            }
        }
    }
    let head = [
        "set",
        "reading",
        "population",
        "algorithm",
        "alpha",
        "seed",
        "repeat",
        "gain",
        "best_static_gain",
        "worst_static_gain",
        "throughput",
        "success_rate",
        "late_target",
        "rounds_to_converge",
    ];
    add("adaptive", &head, rows)?;

    let mut rows = Vec::new();
    for v in variants {
        for kind in blackouts(lab, v) {
            let course = Course::of(lab, &kind.runs);
            let of = |value| curve(course.outcomes(), value);
            let (throughput, success) = (of(series::throughput), of(series::success));
            let (target, size) = (of(series::target), of(series::size));
            for (i, (round, t)) in throughput.iter().enumerate() {
                rows.push(vec![
                    v.set.name.into(),
                    v.reading.name.into(),
                    kind.label.into(),
                    round.to_string(),
                    format!("{:.4}", t.mean),
                    format!("{:.4}", t.margin),
                    format!("{:.6}", success[i].1.mean),
                    format!("{:.6}", success[i].1.margin),
                    format!("{:.4}", size[i].1.mean),
                    format!("{:.4}", target[i].1.mean),
                ]);
            }
        }
    }
    let head = [
        "set",
        "reading",
        "kind",
        "until_round",
        "throughput",
        "throughput_margin",
        "success_rate",
        "success_margin",
        "group_size",
        "target",
    ];
    add("blackout", &head, rows)?;
    Ok(tables)
}

/// The last variant of each set.
fn by_set(variants: &[Variant]) -> Vec<(Set, &Variant)> {
    [Set::FIRST, Set::FITTED].into_iter().filter_map(|set| Some((set, variants.iter().rfind(|v| v.set == set)?))).collect()
}

/// An algorithm's name, with Tight-fit's fallback.
pub fn label(algorithm: Algorithm) -> String {
    match algorithm {
        Algorithm::TightFit(Fallback::Closest) => "Tight-fit, closest group".into(),
        Algorithm::TightFit(Fallback::Largest) => "Tight-fit, large group".into(),
        other => other.name().into(),
    }
}
