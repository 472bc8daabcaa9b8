//! All figures as a table, and the pictures, which are painted from it.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{attack, choices, contract, share, without_h};
use crate::chart::{Bars, Curves, Frame};
use crate::network::policy::Merit;
use crate::network::study::policies::{self, Way};
use crate::network::study::{merit_name, validation, Findings, Rule, Scale, DEFENCES, LOADS, MEASURES};
use crate::numbers::thousands;
use crate::statistics::Estimate;

fn frame(title: &str, y: &str, seeds: u64) -> Frame {
    Frame {
        title: title.into(),
        y: y.into(),
        note: format!("Bands and whiskers: 95 % confidence intervals over {seeds} seeds (Student's t)."),
    }
}

/// All pictures, by name, painted from the table alone.
pub fn figures(of: &Written, scale: &Scale) -> Vec<(&'static str, String)> {
    let mut out = vec![
        ("waiting", by_load(of, scale, "Waiting time by load", "95th percentile of waiting time (s)", "wait95")),
        ("h", by_load(of, scale, "Failed tasks with and without H", "tasks that were started and failed (%)", "failed")),
    ];
    for (name, heading, measure, ends) in [
        ("stake", "Income by stake", "stake", ["lowest stakes", "highest stakes"]),
        ("speed", "Income by speed", "speed", ["slowest", "fastest"]),
    ] {
        out.push((name, by_fifth(of, scale, heading, measure, ends)));
    }
    for (name, heading, y, id) in [
        ("threshold-failed", "What a higher threshold prevents", "tasks that were started and failed (%)", "failed"),
        ("threshold-cost", "What a higher threshold costs", "time that steady nodes are excluded (%)", "out-steady"),
    ] {
        out.push((name, by_threshold(of, scale, heading, y, id)));
    }
    out.push(("sybil", by_split(of, scale)));
    out.push(("reserve", reserve(of, scale)));
    out.push(("policies", by_policy(of, scale)));
    out.push(("incomes", incomes(of, scale)));
    out
}

fn by_load(of: &Written, scale: &Scale, title: &str, y: &str, id: &str) -> String {
    let line = |name: &dyn Fn(u32) -> String| -> Vec<(f64, Estimate)> {
        LOADS.iter().map(|&load| (f64::from(load) / 10.0, of.get(&name(load), id))).collect()
    };
    let curves = Curves {
        frame: frame(title, y, scale.seeds),
        x: "work asked for, of what all nodes could do (%)".into(),
        series: vec![("with H".into(), line(&contract)), ("without H".into(), line(&without_h))],
        from_zero: true,
        ..Curves::default()
    };
    curves.svg()
}

fn by_fifth(of: &Written, scale: &Scale, heading: &str, measure: &str, ends: [&str; 2]) -> String {
    let series = choices()
        .into_iter()
        .filter(|(heading, _)| heading != merit_name(Some(Merit::Weight)))
        .map(|(heading, name)| (heading, (1..=5).map(|fifth| of.get(&name, &format!("{measure}{fifth}"))).collect()))
        .collect();
    let groups = [ends[0], "second fifth", "third fifth", "fourth fifth", ends[1]].map(String::from).to_vec();
    Bars { frame: frame(heading, "income per hour, mean of all = 1", scale.seeds), groups, series }.svg()
}

fn by_threshold(of: &Written, scale: &Scale, heading: &str, y: &str, id: &str) -> String {
    let series = scale.grid.tau.iter().map(|&tau| {
        let points = scale.grid.threshold.iter().map(|&threshold| {
            let rule = Rule { threshold, tau, ..Rule::DEFAULT };
            (share(threshold), of.get(&rule.name("slice"), id))
        });
        (format!("tau {} s", thousands(tau)), points.collect())
    });
    let curves = Curves {
        frame: frame(heading, y, scale.seeds),
        x: "H below which a node is excluded (penalty x0.3, boost +0.15)".into(),
        series: series.collect(),
        from_zero: true,
        ..Curves::default()
    };
    curves.svg()
}

fn by_split(of: &Written, scale: &Scale) -> String {
    let series = DEFENCES.iter().map(|merit| {
        let points = scale.splits.iter().map(|&n| (f64::from(n), of.get(&attack(*merit, n), "share-sybil")));
        (merit_name(*merit).to_string(), points.collect())
    });
    let curves = Curves {
        frame: frame("One sum of stake, split over many nodes", "starts that the attacker's nodes get (%)", scale.sybil_seeds),
        x: "nodes the sum is split over".into(),
        series: series.collect(),
        from_zero: true,
        log: true,
        ..Curves::default()
    };
    curves.svg()
}

fn reserve(of: &Written, scale: &Scale) -> String {
    let series = validation::RATES.iter().filter(|rate| **rate > 0).map(|&rate| {
        let name = validation::at(Some(rate));
        let points = (1..=10).map(|tenth| (f64::from(tenth) * 10.0, of.get(&name, &format!("reserve{tenth}"))));
        (format!("sampled {} %", rate as f64 / 100.0), points.collect())
    });
    let curves = Curves {
        frame: frame("What validations can be paid from beside the fees", "reserve (mean fees)", scale.seeds),
        x: "tasks created (%)".into(),
        series: series.collect(),
        from_zero: true,
        ..Curves::default()
    };
    curves.svg()
}

fn by_policy(of: &Written, scale: &Scale) -> String {
    let values = |way: Way| policies::LOADS.iter().map(|load| of.get(&way.at(*load), "wrong")).collect();
    let series = Way::ALL.map(|way| (way.name(), values(way))).to_vec();
    let groups = policies::LOADS.iter().map(|load| format!("load {}", f64::from(*load) / 1e3)).collect();
    Bars { frame: frame("Wrong answers by policy", "wrong answers among the successful (%)", scale.seeds), groups, series }.svg()
}

fn incomes(of: &Written, scale: &Scale) -> String {
    let series = validation::KINDS.iter().map(|kind| {
        let id = format!("hour-{}", kind.name());
        let points = validation::RATES.iter().map(|&rate| (rate as f64 / 100.0, of.get(&validation::at(Some(rate)), &id)));
        (kind.name().to_string(), points.collect())
    });
    let curves = Curves {
        frame: frame("What nodes earn less what they lose", "income per hour (1e-6 token)", scale.seeds),
        x: "answers that are checked (%)".into(),
        series: series.collect(),
        dots: true,
        ..Curves::default()
    };
    curves.svg()
}

/// Every measure of every arrangement, with half the width of its interval.
pub fn csv(found: &Findings) -> String {
    let mut out = String::from("arrangement,seeds");
    for m in MEASURES {
        let _ = write!(out, ",{0},{0}-margin95", m.id);
    }
    out.push('\n');
    for (name, rows) in &found.results.rows {
        let _ = write!(out, "\"{name}\",{}", rows.len());
        for m in MEASURES {
            let e = found.results.get(name, m.id);
            let _ = write!(out, ",{:.4},{:.4}", e.mean, e.margin);
        }
        out.push('\n');
    }
    out
}

/// The contents of a table of [`csv`], by arrangement and measure.
#[derive(Debug, Default)]
pub struct Written(BTreeMap<(String, String), Estimate>);

impl Written {
    /// Reads a table of [`csv`].
    ///
    /// # Errors
    /// If it is no such table.
    pub fn read(table: &str) -> Result<Self, String> {
        let mut reader = csv::Reader::from_reader(table.as_bytes());
        let heads = reader.headers().map_err(|e| e.to_string())?.clone();
        let mut read = BTreeMap::new();
        for row in reader.records() {
            let row = row.map_err(|e| e.to_string())?;
            let number = |i: usize| -> Result<f64, String> {
                row[i].parse().map_err(|_| format!("{}, {}: {:?} is not a number", &row[0], &heads[i], &row[i]))
            };
            for i in (2..row.len().saturating_sub(1)).step_by(2) {
                let estimate = Estimate { mean: number(i)?, margin: number(i + 1)?, count: number(1)? as usize };
                read.insert((row[0].to_owned(), heads[i].to_owned()), estimate);
            }
        }
        Ok(Self(read))
    }

    /// A measure of an arrangement.
    pub fn get(&self, name: &str, id: &str) -> Estimate {
        self.0.get(&(name.to_owned(), id.to_owned())).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::page::contract;

    /// The committed pictures are those of the committed table.
    #[test]
    fn pictures_belong_to_the_table() {
        let folder = format!("{}/../docs/research/figures", env!("CARGO_MANIFEST_DIR"));
        let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
        let table = Written::read(&read("network.csv")).unwrap();
        assert!(table.get(&contract(500), "failed").count > 1);
        for (name, svg) in figures(&table, &Scale::FULL) {
            assert!(svg == read(&format!("network-{name}.svg")), "{name}: run script/sim network --repaint");
        }
        assert!(Written::read("arrangement,seeds,a,a-margin95\nx,2,one,0").is_err());
    }
}
