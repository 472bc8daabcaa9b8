//! Validation: its winners and losers, and the consequences for its parameters.

use std::fmt::Write;

use muster_protocol::parameters::{Amount, PARAMETERS};

use super::{show, signed, title, Table};
use crate::network::study::validation::{at, dear, full, honest, Other, DEAR, KICKOUT, KINDS, MIX, OPEN, RATE, RATES, WINDOW};
use crate::network::study::{Findings, Results, Scale};
use crate::network::workload::Kind;
use crate::numbers::{self, fixed, number, thousands};
use crate::statistics::Estimate;

/// A rate as tables show it.
fn percent(rate: u64) -> String {
    format!("{} %", rate as f64 / 100.0)
}

/// A parameter's default.
fn default(parameter: &str) -> u64 {
    match PARAMETERS.iter().find(|known| known.name == parameter).map(|known| known.setting.default) {
        Some(Amount::Fixed(value)) => value,
        other => panic!("{parameter} has no default that is the same in every network: {other:?}"),
    }
}

/// A measure's id for a kind.
pub(super) fn id(measure: &str, kind: Kind) -> String {
    format!("{measure}-{}", kind.name())
}

pub(super) fn cheats() -> impl Iterator<Item = Kind> {
    KINDS.into_iter().filter(|kind| kind.cheats())
}

/// A value that can be negative, with its interval.
pub(super) fn either(e: Estimate) -> String {
    let decimals = usize::from(e.mean.abs() < 1_000.0);
    format!("{} ± {}", fixed(e.mean, decimals), fixed(e.margin, decimals))
}

/// Arrangements as columns, measures as rows.
pub(super) fn compare(results: &Results, columns: &[(String, String)], ids: &[&str]) -> String {
    let headings: Vec<String> =
        std::iter::once(String::new()).chain(columns.iter().map(|(heading, _)| heading.clone())).collect();
    let mut table = Table::new(&headings);
    for id in ids {
        // Shares of a few nodes: the interval of a logarithm would reach beyond all of them.
        let shown = match *id {
            id if id.starts_with("gone") || id == "pots" || id == "rank" => bounded,
            id if id.starts_with("hour-") => either,
            _ => show,
        };
        let mut cells = vec![title(id).to_string()];
        cells.extend(columns.iter().map(|(_, name)| shown(results.get(name, id))));
        table.row(&cells);
    }
    table.0
}

/// A value that has bounds, with its interval.
fn bounded(e: Estimate) -> String {
    if e.margin == 0.0 {
        return number(e.mean);
    }
    numbers::estimate(e, if e.mean.abs() < 10.0 { 2 } else { 1 })
}

pub(super) fn write(page: &mut String, found: &Findings, scale: &Scale) {
    let of = Of { found };
    introduction(page, scale);
    of.incomes(page);
    of.survival(page);
    of.reserve(page);
    of.scores(page);
    of.costs(page);
    of.parameters(page);
}

fn introduction(page: &mut String, scale: &Scale) {
    let share = |kind: usize| MIX[kind] as f64 / 10.0;
    let _ = write!(
        page,
        "\n## Validation\n\n\
         Tasks under policy 1 ([validation.md](../validation.md)): nodes commit, reveal and are called to validate, and the contract decides \
         all of it. {} nodes and {} tasks in each run, load 0.5; nobody joins late or leaves. All tasks are of policy 1, but for those of \
         more \
         than four images; GPT tasks name one of two GPU models. `slashImages` is 1, all else by default. {:.0} % of the nodes are slow, {:.0} % flaky, \
         and {:.0} % each are of three dishonest kinds:\n\n\
         - *cheats*: every answer is wrong and takes a second;\n\
         - *sly*: it answers so in one of four of its own tasks, and works honestly at tasks that it is called to validate;\n\
         - *withholding*: like a cheat, but in a group it never reveals its answer.\n\n\
         Wrong answers are never alike. A keeper calls validators and has groups judged as soon as that is possible. \
         \"Policy 0\" are the same tasks on a single node, any answer paid.\n",
        thousands(u64::from(scale.nodes / 2)),
        thousands(scale.validation_tasks),
        share(0),
        share(1),
        share(4),
    );
}

struct Of<'a> {
    found: &'a Findings,
}

impl Of<'_> {
    fn get(&self, name: &str, id: &str) -> Estimate {
        self.found.results.get(name, id)
    }

    /// By how much a cheat's income is above a steady node's, with the interval that holds for all kinds and rates together.
    fn gain(&self, rate: u64, kind: Kind) -> Estimate {
        let comparisons = RATES.len() * cheats().count();
        self.found.results.above(&at(Some(rate)), &id("hour", kind), "hour-steady").among(comparisons)
    }

    fn incomes(&self, page: &mut String) {
        page.push_str(
            "\n### What nodes earn\n\nFees less what was slashed, in millionths of a token, by the hour that a GPU was in the network:\n\n\
             ![Income by sampling rate](figures/network-incomes.svg)\n\n",
        );
        let headings: Vec<String> = ["", "policy 0"]
            .map(String::from)
            .into_iter()
            .chain(RATES.map(|rate| format!("sampled {}", percent(rate))))
            .collect();
        let names: Vec<String> = std::iter::once(at(None)).chain(RATES.map(|rate| at(Some(rate)))).collect();
        let mut table = Table::new(&headings);
        for kind in KINDS {
            let mut cells = vec![kind.name().to_string()];
            cells.extend(names.iter().map(|name| either(self.get(name, &id("hour", kind)))));
            table.row(&cells);
        }
        for (measure, title) in [("wrong", "wrong answers among the successful (%)"), ("burnt", "burnt (mean fees)")] {
            let mut cells = vec![title.to_string()];
            cells.extend(names.iter().map(|name| show(self.get(name, measure))));
            table.row(&cells);
        }
        page.push_str(&table.0);
        page.push_str("\nA cheat's income less a steady node's, seed by seed:\n\n");
        let mut table = Table::new(
            &std::iter::once(String::new()).chain(RATES.map(|rate| format!("sampled {}", percent(rate)))).collect::<Vec<_>>(),
        );
        for kind in cheats() {
            let mut cells = vec![kind.name().to_string()];
            cells.extend(RATES.map(|rate| either(self.gain(rate, kind))));
            table.row(&cells);
        }
        page.push_str(&table.0);
    }

    fn survival(&self, page: &mut String) {
        let _ = write!(
            page,
            "\n### How long a cheat survives\n\nA slash is {} fees, and a fee is next to nothing beside the least stake. So slashes take a cheat's income, \
             and its scores take it out of the network, as soon as its pool of 50 is full. *High fees* are {} times as high; the highest is seven tenths of the \
             highest that a validated task may have.\n\n",
            default("slashTimes"),
            thousands(DEAR.into())
        );
        let mut columns: Vec<(String, String)> =
            RATES.iter().skip(1).map(|&rate| (format!("sampled {}", percent(rate)), at(Some(rate)))).collect();
        columns.push((format!("{}, high fees", percent(RATE)), dear()));
        page.push_str(&compare(
            &self.found.results,
            &columns,
            &[
                "hours-cheat",
                "hours-sly",
                "hours-withholding",
                "starts-cheat",
                "starts-sly",
                "starts-withholding",
                "slashes-cheat",
                "slashes-sly",
                "slashes-withholding",
                "gone-cheat",
                "gone-sly",
                "gone-withholding",
                "gone-steady",
                "gone-slow",
                "gone-flaky",
                "slashes-steady",
                "slashes-slow",
                "slashes-flaky",
            ],
        ));
        page.push_str("\nHours of those that are never taken out end with the run. ");
        let slashed = |kind: &Kind| columns.iter().any(|(_, name)| self.get(name, &id("slashes", *kind)).mean > 0.0);
        page.push_str(if KINDS.iter().filter(|kind| !kind.cheats()).any(slashed) {
            "Some honest nodes were slashed, too.\n"
        } else {
            "No honest node was ever slashed.\n"
        });
    }

    fn reserve(&self, page: &mut String) {
        page.push_str("\n### The reserve\n\n![The reserve over a run](figures/network-reserve.svg)\n\n");
        let columns: Vec<(String, String)> =
            RATES.iter().skip(1).map(|&rate| (format!("sampled {}", percent(rate)), at(Some(rate)))).collect();
        page.push_str(&compare(
            &self.found.results,
            &columns,
            &["reserve1", "reserve5", "reserve10", "pots", "drivers", "validated", "scored", "undecided"],
        ));
    }

    fn scores(&self, page: &mut String) {
        page.push_str(
            "\n### Q_long and speed\n\nSpearman's rank correlation at the end of a run, over honest nodes with at least ten scores; 1 would be the same order.\n\n",
        );
        let columns: Vec<(String, String)> =
            RATES.iter().skip(1).map(|&rate| (format!("sampled {}", percent(rate)), at(Some(rate)))).collect();
        page.push_str(&compare(&self.found.results, &columns, &["rank", "scores-steady"]));
    }

    fn costs(&self, page: &mut String) {
        page.push_str("\n### What it costs a network in which nobody cheats\n\nHalf as many tasks:\n\n");
        let mut columns = vec![("policy 0".to_string(), honest(None))];
        columns.extend(RATES.map(|rate| (format!("sampled {}", percent(rate)), honest(Some(rate)))));
        page.push_str(&compare(
            &self.found.results,
            &columns,
            &[
                "throughput",
                "wait50",
                "wait95",
                "wait99",
                "done50",
                "done95",
                "failed",
                "away",
                "local",
                "held-steady",
                "gone-slow",
                "hour-steady",
            ],
        ));
        page.push_str("\nWhere there is more work than nodes can do (load 1.2):\n\n");
        let mut columns = vec![("policy 0".to_string(), full(None))];
        columns.extend(RATES.map(|rate| (format!("sampled {}", percent(rate)), full(Some(rate)))));
        page.push_str(&compare(&self.found.results, &columns, &["throughput", "away", "held-steady"]));
        page.push_str("\nLoad 0.5 as a difference to policy 0, seed by seed:\n\n");
        let compared = ["throughput", "wait95", "done50", "done95", "failed"];
        let headings: Vec<String> = std::iter::once("").chain(compared.map(title)).map(String::from).collect();
        let mut table = Table::new(&headings);
        for rate in RATES {
            let mut cells = vec![format!("sampled {}", percent(rate))];
            cells.extend(compared.map(|measure| signed(self.cost(rate, measure))));
            table.row(&cells);
        }
        page.push_str(&table.0);
    }

    /// The cost of a rate where nobody cheats, with an interval that holds for all comparisons together.
    fn cost(&self, rate: u64, measure: &str) -> Estimate {
        self.found.results.difference(&honest(Some(rate)), &honest(None), measure).among(5 * RATES.len())
    }

    fn parameters(&self, page: &mut String) {
        page.push_str("\n### Other parameters\n\nWith cheats, as above:\n");
        let mut table = |rate: u64, others: &[Other], ids: &[&str]| {
            let mut columns = vec![(format!("sampled {}, by default", percent(rate)), at(Some(rate)))];
            columns.extend(others.iter().map(|o| (format!("`{}` {}", o.parameter, thousands(o.value)), o.name())));
            let _ = write!(page, "\n{}", compare(&self.found.results, &columns, ids));
        };
        let out: Vec<String> = KINDS.iter().map(|kind| id("gone", *kind)).collect();
        let mut ids: Vec<&str> = out.iter().map(String::as_str).collect();
        ids.extend(["hours-cheat", "hours-sly"]);
        table(KICKOUT.rate, &[KICKOUT], &ids);
        ids.extend(["held-steady", "throughput", "wait95", "wait99", "done95"]);
        table(RATE, &[WINDOW, OPEN], &ids);
    }

    // ------------------------------------------------------------ conclusions

    /// The difference that another value makes, with the interval that holds for all that are looked at.
    fn change(&self, other: &Other, measure: &str) -> Estimate {
        let comparisons = 2 + cheats().count();
        self.found.results.difference(&other.name(), &at(Some(other.rate)), measure).among(comparisons)
    }

    fn rate(&self, page: &mut String) {
        let pays: Vec<&str> = cheats().filter(|kind| self.gain(0, *kind).low() > 0.0).map(Kind::name).collect();
        let enough =
            RATES.into_iter().filter(|rate| *rate > 0).find(|rate| cheats().all(|kind| self.gain(*rate, kind).high() < 0.0));
        let before = match pays.len() {
            0 => "Without validation no way of cheating pays, as far as these runs can show.".to_string(),
            _ => format!(
                "Without validation ({} % of the answers then are wrong) cheating pays: {}.",
                show(self.get(&at(Some(0)), "wrong")),
                pays.join(", ")
            ),
        };
        let said = match enough {
            Some(rate) => {
                let earn: Vec<String> = cheats()
                    .map(|kind| format!("{} {}", kind.name(), either(self.get(&at(Some(rate)), &id("hour", kind)))))
                    .collect();
                let usual = if rate == RATE { ", the default," } else { "" };
                format!(
                    "- **Sampling {}{usual} makes every way of cheating pay less than honest work**; it is the lowest rate tried at which that is clear \
                     (`sampleBps` {rate}). By the hour a steady node then earns {}, in millionths of a token; {}. {before}",
                    percent(rate),
                    either(self.get(&at(Some(rate)), "hour-steady")),
                    earn.join(", "),
                )
            }
            None => {
                format!("- **At no rate that was tried does every way of cheating clearly pay less than honest work.** {before}")
            }
        };
        let _ = writeln!(page, "{said}");
    }

    fn kickout(&self, page: &mut String) {
        let gone = |name: &str, kind: Kind| self.get(name, &id("gone", kind));
        let shares = |kinds: &[Kind], name: &str| -> String {
            let shares = kinds.iter().map(|kind| format!("{} {} %", kind.name(), bounded(gone(name, *kind))));
            shares.collect::<Vec<_>>().join(", ")
        };
        let bad: Vec<Kind> = cheats().collect();
        let hit = |name: &str| -> Vec<Kind> {
            KINDS.into_iter().filter(|kind| !kind.cheats() && gone(name, *kind).mean > 0.0).collect()
        };
        let others = |name: &str| match hit(name) {
            none if none.is_empty() => "nobody else".to_string(),
            some => format!("of the others {}", shares(&some, name)),
        };
        let (usual, dense, milder) = (at(Some(RATE)), at(Some(KICKOUT.rate)), KICKOUT.name());
        let all = bad.iter().filter(|kind| gone(&usual, **kind).mean > 99.5).count();
        let verdict = match all {
            0 => "Kickout takes out no kind of cheats for sure".to_string(),
            n if n == bad.len() => "Kickout takes out every cheat".to_string(),
            n => format!("Kickout takes out {n} of {} kinds of cheats", bad.len()),
        };
        let hurt = hit(&dense);
        let saved = hurt.iter().all(|kind| gone(&milder, *kind).mean < gone(&dense, *kind).mean / 2.0);
        let loses = bad.iter().any(|kind| self.change(&KICKOUT, &id("gone", *kind)).high() < 0.0);
        let with =
            format!("With `{}` {} it is {}, and {}", KICKOUT.parameter, KICKOUT.value, shares(&bad, &milder), others(&milder));
        let advice = match (hurt.is_empty(), saved, loses) {
            (true, ..) => "The default limit needs no change.".to_string(),
            (_, true, false) => format!("{with}: recommended where more than {} is sampled.", percent(RATE)),
            (_, true, true) => format!("{with}: fewer honest nodes, and fewer cheats."),
            _ => format!("{with}: no remedy."),
        };
        let _ = writeln!(
            page,
            "- **{verdict}.** In these runs it took out, at {}: {}, and {}. At {}: {}, and {}. {advice}",
            percent(RATE),
            shares(&bad, &usual),
            others(&usual),
            percent(KICKOUT.rate),
            shares(&bad, &dense),
            others(&dense),
        );
    }

    fn time(&self, page: &mut String) {
        let (less, wait, done) = (self.cost(RATE, "throughput"), self.cost(RATE, "wait95"), self.cost(RATE, "done50"));
        let most = self.get(&full(None), "throughput");
        let capacity = self.found.results.difference(&full(Some(RATE)), &full(None), "throughput");
        let share = 100.0 / most.mean.max(1e-9);
        let capacity = Estimate { mean: capacity.mean * share, margin: capacity.margin * share, ..capacity };
        let throughput = match () {
            () if less.high() < 0.0 => "costs throughput",
            () if less.low() > 0.0 => "raises throughput",
            () => "costs no throughput that these runs can show",
        };
        let _ = writeln!(
            page,
            "- **At load 0.5 sampling {} {throughput}** ({} tasks per hour of {}). The 95th percentile of waiting changes by {} s. A result takes {} s longer in \
             the median, from creation to success. The network's greatest throughput changes by {} %. All of this is without cheats.",
            percent(RATE),
            signed(less),
            show(self.get(&honest(None), "throughput")),
            signed(wait),
            signed(done),
            signed(capacity),
        );
    }

    fn window(&self, page: &mut String) {
        let held = self.get(&at(Some(RATE)), "held-steady");
        let said = |other: &Other| {
            let change = self.change(other, "held-steady");
            let what = format!("`{}` {} changes that by {} points", other.parameter, thousands(other.value), signed(change));
            (change.high() < 0.0, what)
        };
        let ((shorter, of_window), (more, of_open)) = (said(&WINDOW), said(&OPEN));
        let highest = |open: u64| format!("1 / {}", default("slashTimes") * (open + 1));
        let advice = match (shorter, more) {
            (true, _) => format!("Recommended: `{}` {}, the shortest that the contract takes.", WINDOW.parameter, WINDOW.value),
            (false, true) => format!(
                "Recommended: `{}` {}, where the highest fee may fall from {} to {} of 15/16 of the least stake. Cheats then last {} h instead of {} h.",
                OPEN.parameter,
                OPEN.value,
                highest(default(OPEN.parameter)),
                highest(OPEN.value),
                show(self.get(&OPEN.name(), "hours-cheat")),
                show(self.get(&at(Some(RATE)), "hours-cheat")),
            ),
            (false, false) => "Neither is worth a change.".to_string(),
        };
        let _ = writeln!(
            page,
            "- **Open commitments hold honest nodes up**, above all where others withhold, because a group is open until they have revealed or its \
             window ends. With as many that withhold as here, steady nodes get no work for {} % of their time; without cheats, for {} %. {of_window}, \
             {of_open}. {advice}",
            show(held),
            show(self.get(&honest(Some(RATE)), "held-steady")),
        );
    }

    fn money(&self, page: &mut String) {
        let name = at(Some(RATE));
        let grows = self.found.results.above(&name, "reserve10", "reserve1");
        let trend = match () {
            () if grows.low() > 0.0 => "grows",
            () if grows.high() < 0.0 => "shrinks",
            () => "neither grows nor shrinks clearly",
        };
        let _ = writeln!(
            page,
            "- **The reserve {trend}**: at {} it holds {} mean fees after a tenth of a run and {} at its end, and groups were paid {} % of what they were due. Burnt are {} mean fees.",
            percent(RATE),
            show(self.get(&name, "reserve1")),
            show(self.get(&name, "reserve10")),
            bounded(self.get(&name, "pots")),
            show(self.get(&name, "burnt")),
        );
    }

    fn order(&self, page: &mut String) {
        let rank = self.get(&at(Some(RATE)), "rank");
        let verdict = match () {
            () if rank.low() > 0.7 => "Q_long orders nodes much as their speed does",
            () if rank.low() > 0.0 => "Q_long follows speed, loosely",
            () => "Q_long does not tell fast nodes from slow ones",
        };
        let _ = writeln!(page, "- **{verdict}**: rank correlation {} at {}.", bounded(rank), percent(RATE));
    }
}

/// The conclusions.
pub(super) fn summary(page: &mut String, found: &Findings) {
    let of = Of { found };
    of.rate(page);
    of.kickout(page);
    of.time(page);
    of.window(page);
    of.money(page);
    of.order(page);
}
