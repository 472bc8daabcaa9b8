//! The same tasks on one node, on one that may be checked, and on three at once: benefits and costs of each.

use std::fmt::Write;

use super::validation::{cheats, compare, either, id};
use super::{show, signed, title, Table};
use crate::network::study::policies::{Way, LOADS};
use crate::network::study::validation::KINDS;
use crate::network::study::{Findings, Scale};
use crate::network::workload::Kind;
use crate::numbers::thousands;
use crate::statistics::Estimate;

/// The measures compared with single tasks.
const COMPARED: [&str; 7] = ["throughput", "right", "wait50", "wait95", "done50", "failed", "aborted"];

/// A load as tables show it.
fn shown(load: u32) -> String {
    format!("{}", f64::from(load) / 1e3)
}

/// Words with commas, and "and" before the last.
fn listed(words: &[String]) -> String {
    match words {
        [] => "none".into(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The kinds that answer wrongly under a policy: sly nodes work honestly if they know of a comparison.
fn cheating(way: Way) -> impl Iterator<Item = Kind> {
    cheats().filter(move |kind| way != Way::Replicated || *kind != Kind::Sly)
}

struct Of<'a> {
    found: &'a Findings,
}

impl Of<'_> {
    fn get(&self, way: Way, load: u32, id: &str) -> Estimate {
        self.found.results.get(&way.at(load), id)
    }

    /// By how much a policy differs from single tasks, with the interval that holds for all that is compared.
    fn difference(&self, way: Way, load: u32, id: &str) -> Estimate {
        let comparisons = COMPARED.len() * LOADS.len() * (Way::ALL.len() - 1);
        self.found.results.difference(&way.at(load), &Way::Single.at(load), id).among(comparisons)
    }

    /// By how much a cheat's income is above a steady node's, with the interval that holds for all kinds, policies and loads together.
    fn gain(&self, way: Way, load: u32, kind: Kind) -> Estimate {
        let comparisons = LOADS.len() * Way::ALL.map(|way| cheating(way).count()).iter().sum::<usize>();
        self.found.results.above(&way.at(load), &id("hour", kind), "hour-steady").among(comparisons)
    }

    /// Whether every way of cheating clearly pays less than honest work, at every load.
    fn deters(&self, way: Way) -> bool {
        LOADS.iter().all(|load| cheating(way).all(|kind| self.gain(way, *load, kind).high() < 0.0))
    }

    /// Whether as much is done as on single nodes, as far as can be told, and no more aborted.
    fn bears(&self, way: Way, load: u32) -> bool {
        self.difference(way, load, "throughput").high() >= 0.0 && self.difference(way, load, "aborted").low() <= 0.0
    }

    fn tables(&self, page: &mut String) {
        let incomes: Vec<String> = KINDS.iter().map(|kind| id("hour", *kind)).collect();
        let out: Vec<String> = KINDS.iter().map(|kind| id("gone", *kind)).collect();
        let mut ids = vec![
            "throughput",
            "right",
            "wait50",
            "wait95",
            "wait99",
            "done50",
            "done95",
            "failed",
            "timeouts",
            "validated",
            "scored",
            "undecided",
            "wrong",
            "aborted",
            "away",
            "spent",
            "local",
            "held-steady",
            "kept-steady",
            "burnt",
        ];
        ids.extend(incomes.iter().map(String::as_str));
        ids.extend(out.iter().map(String::as_str));
        ids.push("rank");
        for load in LOADS {
            let columns = Way::ALL.map(|way| (way.name(), way.at(load)));
            let _ = write!(page, "\nLoad {}:\n\n{}", shown(load), compare(&self.found.results, &columns, &ids));
            let mut row = Table(String::new());
            let checked = [Way::Sampled, Way::Replicated].map(|way| show(self.get(way, load, "slipped")));
            row.row(&[title("slipped").to_string(), "-".into(), checked[0].clone(), checked[1].clone()]);
            page.push_str(&row.0);
        }
        page.push_str("\nAs a difference to single tasks, seed by seed:\n\n");
        let headings: Vec<String> = std::iter::once("").chain(COMPARED.map(title)).map(String::from).collect();
        let mut table = Table::new(&headings);
        for load in LOADS {
            for way in Way::ALL.into_iter().skip(1) {
                let mut cells = vec![format!("load {}, {}", shown(load), way.name())];
                cells.extend(COMPARED.map(|measure| signed(self.difference(way, load, measure))));
                table.row(&cells);
            }
        }
        page.push_str(&table.0);
    }

    // ------------------------------------------------------------ conclusions

    fn answers(&self, page: &mut String) {
        let least = |measure: &str, load: u32| {
            let by = |way: &Way| self.get(*way, load, measure).mean;
            let best = Way::ALL.into_iter().min_by(|a, b| by(a).total_cmp(&by(b))).unwrap_or(Way::Single);
            let clear = |other: &Way| {
                let less = self.found.results.difference(&best.at(load), &other.at(load), measure);
                *other == best || less.among(2 * LOADS.len() * Way::ALL.len()).high() < 0.0
            };
            let surely = if Way::ALL.iter().all(clear) { "" } else { ", though not clearly" };
            format!("{} at load {}{surely}", best.name(), shown(load))
        };
        let fewest = |measure: &str| LOADS.map(|load| least(measure, load)).join("; ");
        let values = |measure: &str, load: u32| {
            let values = Way::ALL.map(|way| format!("{} {}", way.name(), show(self.get(way, load, measure))));
            format!("At load {}: {}.", shown(load), values.join(", "))
        };
        let all = |measure: &str| LOADS.map(|load| values(measure, load)).join(" ");
        let slipped = |load: u32| {
            let of = |way: Way| show(self.get(way, load, "slipped"));
            format!(
                "At load {}: {} % with sampling, {} % with three at once.",
                shown(load),
                of(Way::Sampled),
                of(Way::Replicated)
            )
        };
        let _ = writeln!(
            page,
            "- **Fewest wrong answers: {}. Least GPU time for a right one: {}.**\n  - Wrong answers among the successful (%). {}\n  \
             - Seconds of all nodes together for a right answer. {}\n  - Wrong answers of policies 1 and 2 alone. {}",
            fewest("wrong"),
            fewest("spent"),
            all("wrong"),
            all("spent"),
            LOADS.map(slipped).join(" "),
        );
    }

    fn work(&self, page: &mut String) {
        let verdicts = LOADS.map(|load| {
            let less = self.difference(Way::Replicated, load, "throughput");
            let what = match () {
                () if less.high() < 0.0 => "costs throughput",
                () if less.low() > 0.0 => "raises throughput",
                () => "costs no throughput that these runs can show",
            };
            format!("at load {} {} {what}", shown(load), Way::Replicated.name())
        });
        let figures = LOADS.map(|load| {
            let said = |way: Way| {
                format!(
                    "{}: {} tasks per hour, {} s at the 95th percentile of waiting, {} points aborted",
                    way.name(),
                    signed(self.difference(way, load, "throughput")),
                    signed(self.difference(way, load, "wait95")),
                    signed(self.difference(way, load, "aborted")),
                )
            };
            format!(
                "At load {}, single tasks make {} per hour. Against them:\n    - {}\n    - {}",
                shown(load),
                show(self.get(Way::Single, load, "throughput")),
                said(Way::Sampled),
                said(Way::Replicated),
            )
        });
        let verdicts = listed(&verdicts);
        let (first, rest) = verdicts.split_at(1);
        let scored = LOADS.map(|load| format!("{} % at load {}", show(self.get(Way::Replicated, load, "scored")), shown(load)));
        let _ = writeln!(
            page,
            "- **{}{rest}.** Groups of three at once are drawn among idle nodes. Scored are {}. In the others a wrong \
             answer is not paid, and nothing else happens.\n  - {}",
            first.to_uppercase(),
            listed(&scored),
            figures.join("\n  - "),
        );
    }

    fn incomes(&self, page: &mut String) {
        let load = LOADS[0];
        let names = |deter: bool| -> Vec<String> {
            Way::ALL.into_iter().filter(|way| self.deters(*way) == deter).map(Way::name).collect()
        };
        let (deter, others) = (names(true), names(false));
        let pays = |way: Way| -> Vec<String> {
            let kinds = cheating(way).filter(|kind| LOADS.iter().any(|load| self.gain(way, *load, *kind).low() > 0.0));
            kinds.map(|kind| kind.name().to_string()).collect()
        };
        let paying: Vec<String> = Way::ALL
            .into_iter()
            .filter(|way| !pays(*way).is_empty())
            .map(|way| format!("{} ({})", way.name(), pays(way).join(", ")))
            .collect();
        let verdict = match (deter.is_empty(), others.is_empty()) {
            (true, _) => "Under no policy does every way of cheating clearly pay less than honest work at both loads".to_string(),
            (_, true) => "Under every policy each way of cheating clearly pays less than honest work, at both loads".to_string(),
            _ => format!(
                "Every way of cheating clearly pays less than honest work, at both loads, with {}; with {} it does not",
                listed(&deter),
                listed(&others)
            ),
        };
        let pays = if paying.is_empty() {
            "At neither load does any clearly pay more than work.".to_string()
        } else {
            format!("At one load at least some clearly pay more: {}.", listed(&paying))
        };
        let sly = format!("With {} sly nodes work honestly, and are not counted among the cheats.", Way::Replicated.name());
        let earned = Way::ALL.map(|way| {
            let kinds = KINDS.map(|kind| format!("{} {}", kind.name(), either(self.get(way, load, &id("hour", kind)))));
            format!("{}: {}", way.name(), kinds.join(", "))
        });
        let _ = writeln!(
            page,
            "- **{verdict}.** {pays} {sly} Earned by the hour, at load {}, in millionths of a token:\n  - {}",
            shown(load),
            earned.join("\n  - "),
        );
    }

    fn advice(&self, page: &mut String) {
        let bears = |way: Way, yes: bool| -> Vec<String> {
            LOADS.into_iter().filter(|load| self.bears(way, *load) == yes).map(shown).collect()
        };
        let worst = |way: Way, among: &dyn Fn(u32) -> bool| {
            let slipped = |load| self.get(way, load, "slipped").mean;
            LOADS.into_iter().filter(|load| among(*load)).map(slipped).fold(0.0, f64::max)
        };
        let may_pass = |slipped: f64, none: &str| {
            if slipped > 0.0 {
                format!("where one wrong answer in {:.0} may pass", 100.0 / slipped)
            } else {
                none.to_string()
            }
        };
        let sampled = may_pass(worst(Way::Sampled, &|_| true), "where none of its answers was wrong here");
        let three =
            may_pass(worst(Way::Replicated, &|load| self.bears(Way::Replicated, load)), "where every answer must be right");
        let room = match (bears(Way::Replicated, true), bears(Way::Replicated, false)) {
            (some, none) if none.is_empty() => format!("at every load tried ({})", listed(&some)),
            (none, all) if none.is_empty() => format!("at the price of work left undone at every load tried ({})", listed(&all)),
            (some, others) => {
                format!("up to a load of {} in single tasks; at {} work is left undone", listed(&some), listed(&others))
            }
        };
        let said = match (self.deters(Way::Sampled), self.deters(Way::Replicated)) {
            (true, true) => format!("policy 1 {sampled}; policy 2 {three}, {room}"),
            (true, false) => {
                format!("policy 1, {sampled}; under policy 2 some way of cheating does not clearly pay less than work")
            }
            (false, true) => format!("policy 2, {room}; under policy 1 some way of cheating does not clearly pay less than work"),
            (false, false) => "neither policy 1 nor policy 2 where nodes cheat as here, without another change".into(),
        };
        let _ = writeln!(page, "- **Recommended: {said}.**");
    }
}

pub(super) fn write(page: &mut String, found: &Findings, scale: &Scale) {
    let _ = write!(
        page,
        "\n## Policies side by side\n\n\
         The same tasks, coming at the same times, on the same nodes: each on one node (policy 0), on one that may be checked (policy 1), and on three at \
         once (policy 2). {} nodes and {} tasks in each run; kinds of nodes and the GPUs of GPT tasks as under [Validation](#validation). `slashImages` is 1, all else by default. Tasks \
         of more than four images run on one node, whatever is asked for. A task for three pays three times the fee, so that each of the three gets what one \
         would. Load is that of single tasks; three nodes at once are three times the work.\n\n![Wrong answers by policy](figures/network-policies.svg)\n",
        thousands(u64::from(scale.nodes / 2)),
        thousands(scale.validation_tasks),
    );
    Of { found }.tables(page);
    page.push_str(
        "\n\"Aborted\" are tasks that were driven out of the queue, cancelled there, or lost with a node that was slashed out. Sly nodes \
         work honestly at tasks whose answers they know to be compared: all of policy 2.\n",
    );
}

/// The conclusions.
pub(super) fn summary(page: &mut String, found: &Findings) {
    let of = Of { found };
    of.answers(page);
    of.work(page);
    of.incomes(page);
    of.advice(page);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_as_people_write_them() {
        let words = |n: usize| listed(&["a", "b", "c"].map(String::from)[..n]);
        assert_eq!([0, 1, 2, 3].map(words), ["none", "a", "a and b", "a, b and c"]);
    }
}
