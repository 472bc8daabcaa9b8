//! Pictures and tables of what was measured.

use std::error::Error;

use super::experiments::{
    AdaptiveKey, Key, Results, Strategy, ALPHAS, BLACKOUT, GREEDY, LARGE, MAX, RATED, SMALL,
};
use crate::chart::{Bars, Curves, Frame};
use crate::population::Population;
use crate::rounds::{Algorithm, Measure, Outcome, Round};
use crate::statistics::Estimate;

/// Rounds summed up to one point of a curve over time.
pub const WINDOW: usize = 10;

fn frame(title: &str, y: &str, note: String) -> Frame {
    Frame {
        title: title.into(),
        y: y.into(),
        note,
    }
}

fn names() -> Vec<String> {
    Population::ALL.map(|p| p.name().to_owned()).to_vec()
}

/// Name and text of every picture.
pub fn draw(results: &Results) -> Vec<(String, String)> {
    let mut pictures = Vec::new();
    compare(results, &mut pictures);
    targets(results, &mut pictures);
    weights(results, &mut pictures);
    over_time(results, &mut pictures);
    beyond(results, &mut pictures);
    pictures
}

type Value = fn(&Outcome) -> f64;
type OfRounds = fn(&[Round]) -> f64;

/// Figures 3, 4, 5, 11, 12.
fn compare(results: &Results, pictures: &mut Vec<(String, String)>) {
    let throughput: Value = |o| o.throughput;
    let success: Value = |o| o.success;
    let size: Value = |o| o.group_size;
    let calls: Value = |o| o.evaluations;
    let per_round = "successful tasks per round";
    let share = "share of tasks that succeed";
    let bound = Measure::Bound;
    let all = &Algorithm::PAPER[..];
    let rated = &RATED[..];
    for (name, title, y, workers, measure, algorithms, value) in [
        (
            "fig3a",
            "Figure 3a: throughput, 100 workers",
            per_round,
            SMALL,
            bound,
            all,
            throughput,
        ),
        (
            "fig3b",
            "Figure 3b: success rate, 100 workers",
            share,
            SMALL,
            bound,
            all,
            success,
        ),
        (
            "fig4",
            "Figure 4: mean group size, 100 workers",
            "workers per task",
            SMALL,
            bound,
            all,
            size,
        ),
        (
            "fig5a",
            "Figure 5a: throughput, 1,000 workers",
            per_round,
            LARGE,
            bound,
            all,
            throughput,
        ),
        (
            "fig5b",
            "Figure 5b: success rate, 1,000 workers",
            share,
            LARGE,
            bound,
            all,
            success,
        ),
        (
            "fig11a",
            "Figure 11a: calls of the LOC function, 100 workers",
            "calls per round",
            SMALL,
            bound,
            rated,
            calls,
        ),
        (
            "fig11b",
            "Figure 11b: calls of the LOC function, 1,000 workers",
            "calls per round",
            LARGE,
            bound,
            rated,
            calls,
        ),
        (
            "fig12",
            "Figure 12: throughput with the exact LOC, 100 workers",
            per_round,
            SMALL,
            Measure::Exact,
            all,
            throughput,
        ),
    ] {
        let seeds = if workers == SMALL {
            results.scale.seeds
        } else {
            results.scale.large_seeds
        };
        let series = algorithms.iter().map(|&algorithm| {
            let key = |population| Key {
                population,
                workers,
                max: MAX,
                measure,
                algorithm,
            };
            let values = Population::ALL
                .map(|p| results.estimate(key(p), value))
                .to_vec();
            (algorithm.name().to_owned(), values)
        });
        let note = format!(
            "Mean of {seeds} seeds, {} rounds each, with 95 % confidence intervals. Rmin 3, Rmax 7.",
            results.scale.rounds
        );
        let bars = Bars {
            frame: frame(title, y, note),
            groups: names(),
            series: series.collect(),
        };
        pictures.push((name.to_owned(), bars.svg()));
    }
}

/// Figures 6, 7, 8.
fn targets(results: &Results, pictures: &mut Vec<(String, String)>) {
    for (figure, weight) in ALPHAS.into_iter().enumerate() {
        for (letter, algorithm) in ["a", "b"].into_iter().zip(GREEDY) {
            let range =
                |population| results.static_range((population, Measure::Bound, algorithm), weight);
            let worst = |p| Estimate::of(&range(p).iter().map(|r| r.0).collect::<Vec<_>>());
            let best = |p| Estimate::of(&range(p).iter().map(|r| r.1).collect::<Vec<_>>());
            let adaptive = |population| {
                let (strategy, measure) = (Strategy::Adaptive, Measure::Bound);
                results.adaptive_gain(AdaptiveKey {
                    strategy,
                    population,
                    measure,
                    algorithm,
                    alpha: figure,
                })
            };
            let y = match figure {
                1 => "gain: throughput / largest possible",
                2 => "gain: success rate",
                _ => "gain (0 to 1)",
            };
            let title = format!(
                "Figure {}{letter}: {}, alpha = {weight}",
                figure + 6,
                algorithm.name()
            );
            let note = format!(
                "{} rounds. Static: best and worst of {} targets on each of {} populations; adaptive: {} runs. 95 % intervals.",
                results.scale.long_rounds,
                100 / results.scale.step + 1,
                results.scale.sweep_seeds,
                results.scale.sweep_seeds * results.scale.repeats
            );
            let bars = Bars {
                frame: frame(&title, y, note),
                groups: names(),
                series: vec![
                    (
                        "worst static target".into(),
                        Population::ALL.map(worst).to_vec(),
                    ),
                    (
                        "best static target".into(),
                        Population::ALL.map(best).to_vec(),
                    ),
                    (
                        "adaptive target".into(),
                        Population::ALL.map(adaptive).to_vec(),
                    ),
                ],
            };
            pictures.push((format!("fig{}{letter}", figure + 6), bars.svg()));
        }
    }
}

/// Figure 9.
fn weights(results: &Results, pictures: &mut Vec<(String, String)>) {
    let success: Value = |o| o.success;
    let throughput: Value = |o| o.throughput;
    for (name, title, y, value) in [
        (
            "fig9a",
            "Figure 9a: success rate, adaptive First-fit",
            "share of tasks that succeed",
            success,
        ),
        (
            "fig9b",
            "Figure 9b: throughput, adaptive First-fit",
            "successful tasks per round",
            throughput,
        ),
    ] {
        let series = Population::ALL.map(|population| {
            let points = (0..=10).map(|tenths| {
                let outcomes = &results.alphas[&(population, tenths)];
                (
                    tenths as f64 / 10.0,
                    Estimate::of(&outcomes.iter().map(value).collect::<Vec<_>>()),
                )
            });
            (population.name().to_owned(), points.collect())
        });
        let note = format!(
            "Mean of {} runs of {} rounds, with 95 % confidence bands. 100 workers.",
            results.scale.sweep_seeds * results.scale.repeats,
            results.scale.long_rounds
        );
        let curves = Curves {
            frame: frame(title, y, note),
            x: "alpha: weight of throughput in the gain".into(),
            series: series.to_vec(),
            marks: vec![],
            from_zero: true,
            log: false,
        };
        pictures.push((name.to_owned(), curves.svg()));
    }
}

/// Means over seeds of a quantity of `WINDOW` rounds at a time.
pub fn curve(outcomes: &[Outcome], value: impl Fn(&[Round]) -> f64) -> Vec<(f64, Estimate)> {
    let windows = outcomes.first().map_or(0, |o| o.per_round.len() / WINDOW);
    (0..windows)
        .map(|w| {
            let span = w * WINDOW..(w + 1) * WINDOW;
            let values: Vec<f64> = outcomes
                .iter()
                .map(|o| value(&o.per_round[span.clone()]))
                .collect();
            (((w + 1) * WINDOW) as f64, Estimate::of(&values))
        })
        .collect()
}

pub fn throughput_of(rounds: &[Round]) -> f64 {
    rounds.iter().map(|r| f64::from(r.successes)).sum::<f64>() / rounds.len() as f64
}

pub fn success_of(rounds: &[Round]) -> f64 {
    let groups: f64 = rounds.iter().map(|r| f64::from(r.groups)).sum();
    rounds.iter().map(|r| f64::from(r.successes)).sum::<f64>() / groups
}

pub fn target_of(rounds: &[Round]) -> f64 {
    rounds.iter().map(|r| r.target as f64 / 1e18).sum::<f64>() / rounds.len() as f64
}

/// Figure 10, and the success rate and target beside it.
fn over_time(results: &Results, pictures: &mut Vec<(String, String)>) {
    let note = format!(
        "Mean of {} seeds, ten rounds a point, with 95 % confidence bands. 100 workers, Tight-fit, Rmax 7.",
        results.scale.blackout_seeds
    );
    let curves: [(&str, &str, &str, OfRounds); 3] = [
        (
            "throughput",
            "Blackout: throughput",
            "successful tasks per round",
            throughput_of,
        ),
        (
            "success",
            "Blackout: success rate",
            "share of tasks that succeed",
            success_of,
        ),
        ("target", "Blackout: target", "target LOC", target_of),
    ];
    let (paper, ours) = (&results.blackout[..3], &results.blackout[3..]);
    for (name, title, y, value) in curves {
        let mut series: Vec<_> = paper
            .iter()
            .map(|(name, outcomes)| ((*name).to_owned(), curve(outcomes, value)))
            .collect();
        if name != "target" {
            series.extend(
                ours.iter()
                    .map(|(name, outcomes)| (format!("beyond: {name}"), curve(outcomes, value))),
            );
        }
        let curves = Curves {
            frame: frame(&format!("Figure 10, {title}"), y, note.clone()),
            x: "round".into(),
            series,
            marks: vec![(f64::from(BLACKOUT.after), "30 % of workers fail".into())],
            from_zero: false,
            log: false,
        };
        pictures.push((format!("fig10-{name}"), curves.svg()));
    }
}

/// What the strategies beyond the paper bring, by the best static target of the paper's own Tight-fit.
fn beyond(results: &Results, pictures: &mut Vec<(String, String)>) {
    for (index, weight) in ALPHAS.into_iter().enumerate() {
        let strategies: [(&str, Strategy, Measure, Algorithm); 5] = [
            (
                "adaptive First-fit, lower bound",
                Strategy::Adaptive,
                Measure::Bound,
                Algorithm::FirstFit,
            ),
            (
                "adaptive Tight-fit, lower bound",
                Strategy::Adaptive,
                Measure::Bound,
                Algorithm::TightFit,
            ),
            (
                "adaptive Tight-fit, exact LOC",
                Strategy::Adaptive,
                Measure::Exact,
                Algorithm::TightFit,
            ),
            (
                "predictive Tight-fit",
                Strategy::Predictive,
                Measure::Exact,
                Algorithm::TightFit,
            ),
            (
                "planned",
                Strategy::Predictive,
                Measure::Exact,
                Algorithm::Planned,
            ),
        ];
        let series = strategies.map(|(name, strategy, measure, algorithm)| {
            let gain = |population| {
                results.adaptive_gain(AdaptiveKey {
                    strategy,
                    population,
                    measure,
                    algorithm,
                    alpha: index,
                })
            };
            (name.to_owned(), Population::ALL.map(gain).to_vec())
        });
        let note = format!(
            "Mean of {} runs of {} rounds, with 95 % confidence intervals. 100 workers, Rmax 7.",
            results.scale.sweep_seeds * results.scale.repeats,
            results.scale.long_rounds
        );
        let bars = Bars {
            frame: frame(
                &format!("Beyond the paper: gain, alpha = {weight}"),
                "gain (0 to 1)",
                note,
            ),
            groups: names(),
            series: series.to_vec(),
        };
        pictures.push((format!("beyond{}", index + 1), bars.svg()));
    }
}

/// Name and text of every table, as CSV.
pub fn tables(results: &Results) -> Result<Vec<(String, String)>, Box<dyn Error + Send + Sync>> {
    let mut tables = Vec::new();
    let mut add = |name: &str,
                   head: &[&str],
                   rows: Vec<Vec<String>>|
     -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(head)?;
        for row in rows {
            writer.write_record(row)?;
        }
        tables.push((name.to_owned(), String::from_utf8(writer.into_inner()?)?));
        Ok(())
    };

    let mut rows = Vec::new();
    for (key, outcomes) in &results.fixed_target {
        for (seed, o) in outcomes.iter().enumerate() {
            rows.push(vec![
                key.population.name().into(),
                key.workers.to_string(),
                key.max.to_string(),
                key.measure.name().into(),
                key.algorithm.name().into(),
                seed.to_string(),
                format!("{:.4}", o.throughput),
                format!("{:.6}", o.success),
                format!("{:.4}", o.group_size),
                format!("{:.3}", o.evaluations),
                if key.measure == Measure::Bound && key.algorithm != Algorithm::Fixed {
                    format!("{:.6}", o.bound_error)
                } else {
                    String::new()
                },
            ]);
        }
    }
    let head = [
        "population",
        "workers",
        "rmax",
        "measure",
        "algorithm",
        "seed",
        "throughput",
        "success_rate",
        "group_size",
        "loc_calls",
        "bound_error",
    ];
    add("fixed-target", &head, rows)?;

    let mut rows = Vec::new();
    for ((population, measure, algorithm), seeds) in &results.sweep {
        for (seed, outcomes) in seeds.iter().enumerate() {
            for (i, o) in outcomes.iter().enumerate() {
                rows.push(vec![
                    population.name().into(),
                    measure.name().into(),
                    algorithm.name().into(),
                    seed.to_string(),
                    format!("{:.2}", (i as u64 * results.scale.step) as f64 / 100.0),
                    format!("{:.4}", o.throughput),
                    format!("{:.6}", o.success),
                ]);
            }
        }
    }
    let head = [
        "population",
        "measure",
        "algorithm",
        "seed",
        "target",
        "throughput",
        "success_rate",
    ];
    add("static-targets", &head, rows)?;

    let mut rows = Vec::new();
    for (key, seeds) in &results.adaptive {
        for (seed, outcomes) in seeds.iter().enumerate() {
            for (repeat, o) in outcomes.iter().enumerate() {
                rows.push(vec![
                    key.population.name().into(),
                    match key.strategy {
                        Strategy::Adaptive => "adaptive".into(),
                        Strategy::Predictive => "predictive".into(),
                    },
                    key.measure.name().into(),
                    key.algorithm.name().into(),
                    ALPHAS[key.alpha].to_string(),
                    seed.to_string(),
                    repeat.to_string(),
                    format!("{:.4}", o.throughput),
                    format!("{:.6}", o.success),
                    format!("{:.6}", o.gain(ALPHAS[key.alpha])),
                    format!("{:.4}", o.late_target),
                    o.converged
                        .filter(|_| key.strategy == Strategy::Adaptive)
                        .map_or(String::new(), |c| c.to_string()),
                ]);
            }
        }
    }
    let head = [
        "population",
        "target",
        "measure",
        "algorithm",
        "alpha",
        "seed",
        "repeat",
        "throughput",
        "success_rate",
        "gain",
        "late_target",
        "rounds_to_converge",
    ];
    add("adaptive", &head, rows)?;

    let mut rows = Vec::new();
    for ((population, tenths), outcomes) in &results.alphas {
        for (run, o) in outcomes.iter().enumerate() {
            rows.push(vec![
                population.name().into(),
                format!("{:.1}", *tenths as f64 / 10.0),
                run.to_string(),
                format!("{:.4}", o.throughput),
                format!("{:.6}", o.success),
            ]);
        }
    }
    add(
        "alpha",
        &["population", "alpha", "run", "throughput", "success_rate"],
        rows,
    )?;

    let mut rows = Vec::new();
    for (name, outcomes) in &results.blackout {
        let throughput = curve(outcomes, throughput_of);
        let success = curve(outcomes, success_of);
        let target = curve(outcomes, target_of);
        for ((t, s), g) in throughput.iter().zip(&success).zip(&target) {
            rows.push(vec![
                (*name).to_owned(),
                t.0.to_string(),
                format!("{:.4}", t.1.mean),
                format!("{:.4}", t.1.margin),
                format!("{:.6}", s.1.mean),
                format!("{:.6}", s.1.margin),
                format!("{:.4}", g.1.mean),
            ]);
        }
    }
    let head = [
        "kind",
        "until_round",
        "throughput",
        "throughput_margin",
        "success_rate",
        "success_margin",
        "target",
    ];
    add("blackout", &head, rows)?;
    Ok(tables)
}
