//! Single calls, to see the causes of their gas: `docs/generated/figures/gas-points.csv`, and the pictures of it.

use muster_sim::chart::{Frame, Scatter};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Where the points are kept.
pub const POINTS: &str = "docs/generated/figures/gas-points.csv";
const HEAD: &str = "call,adversary,models,queued,nodes,gas";

/// A call, and the conditions that it met.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Met {
    /// The function.
    pub call: String,
    /// Whether an adversary had prepared the network.
    pub adversary: bool,
    /// Most models of a task that it created, started or ended.
    pub models: u32,
    /// Tasks queued before it, two digits of the number.
    pub queued: u32,
    /// Nodes joined, two digits of the number.
    pub nodes: u32,
}

/// The most expensive of the calls that met the same.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Points(BTreeMap<Met, u64>);

/// The first two digits of a number, zeros behind them.
fn two_digits(n: u32) -> u32 {
    let power = 10u32.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(1));
    n / power * power
}

impl Points {
    /// Notes a call.
    pub fn note(&mut self, met: Met, gas: u64) {
        let met = Met { queued: two_digits(met.queued), nodes: two_digits(met.nodes), ..met };
        let dearest = self.0.entry(met).or_default();
        *dearest = gas.max(*dearest);
    }

    /// Takes in others.
    pub fn add(&mut self, others: Points) {
        others.0.into_iter().for_each(|(met, gas)| self.note(met, gas));
    }

    /// As a table.
    pub fn csv(&self) -> String {
        let mut out = format!("{HEAD}\n");
        for (Met { call, adversary, models, queued, nodes }, gas) in &self.0 {
            let _ = writeln!(out, "{call},{},{models},{queued},{nodes},{gas}", u8::from(*adversary));
        }
        out
    }

    /// Those of a table; none if it is not one.
    pub fn read(table: &str) -> Option<Points> {
        let mut lines = table.lines();
        let mut points = Points::default();
        (lines.next()? == HEAD).then_some(())?;
        for line in lines {
            let [call, adversary, models, queued, nodes, gas] = line.split(',').collect::<Vec<_>>()[..] else { return None };
            let met = Met {
                call: call.into(),
                adversary: adversary == "1",
                models: models.parse().ok()?,
                queued: queued.parse().ok()?,
                nodes: nodes.parse().ok()?,
            };
            points.note(met, gas.parse().ok()?);
        }
        Some(points)
    }

    /// How many, and their highest gas.
    pub fn extent(&self) -> (usize, u64) {
        (self.0.len(), self.0.values().copied().max().unwrap_or(0))
    }

    /// Gas against models, queued tasks and nodes, by name.
    pub fn pictures(&self) -> [(&'static str, String); 3] {
        let paint = |what: &str, log: bool, value: fn(&Met) -> f64| {
            let of = |call: &str, adversary: bool| -> Vec<(f64, f64)> {
                let is = |met: &&Met| met.adversary == adversary && (call.is_empty() || met.call == call);
                self.0.iter().filter(|(met, _)| is(met)).map(|(met, gas)| (value(met), *gas as f64 / 1e3)).collect()
            };
            let series = [("createTask", false), ("dispatch", false), ("submit", false), ("", true)];
            let name = |call: &str| if call.is_empty() { "where an adversary was".to_owned() } else { call.to_owned() };
            Scatter {
                frame: Frame {
                    title: format!("Gas of single calls against {what}"),
                    y: "thousands of gas, programs not cached".into(),
                    note: "The dearest of the calls that met the same models, queue and nodes; dispatch of one task.".into(),
                },
                x: if log { format!("{what} (logarithmic)") } else { what.into() },
                series: series.map(|(call, adversary)| (name(call), of(call, adversary))).to_vec(),
                log,
            }
            .svg()
        };
        [
            ("gas-by-models", paint("models of the task", false, |met| met.models.into())),
            ("gas-by-queue", paint("tasks queued, and one", true, |met| f64::from(met.queued) + 1.0)),
            ("gas-by-nodes", paint("nodes", true, |met| met.nodes.max(1).into())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dearest_call_stays_and_can_be_read_again() {
        let met = |queued| Met { call: "submit".into(), adversary: true, models: 3, queued, nodes: 12_345 };
        let mut points = Points::default();
        for (queued, gas) in [(9_876, 5), (9_801, 7), (9_899, 6), (9, 1), (0, 2)] {
            points.note(met(queued), gas);
        }
        assert_eq!(points.csv(), format!("{HEAD}\nsubmit,1,3,0,12000,2\nsubmit,1,3,9,12000,1\nsubmit,1,3,9800,12000,7\n"));
        assert_eq!(Points::read(&points.csv()), Some(points.clone()));
        assert_eq!(points.extent(), (3, 7));
        assert_eq!(Points::read("call,gas\n"), None);
        assert_eq!(Points::read(&format!("{HEAD}\nsubmit,1,3\n")), None);
    }
}
