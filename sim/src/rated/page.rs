//! The findings, in words, tables and pictures.

use std::fmt::Write as _;

use muster_core::reputation::Algorithm;

use super::farm::{self, Conduct, Price};
use super::field::FEE;
use super::study::{Farmed, Found, Servers, Targets, ALGORITHMS, BEFORE, FARMERS, GREEDY, HALVES, NODES};
use super::Options;
use crate::chart::{Bars, Frame};
use crate::numbers::{estimate, fixed, signed, thousands};
use crate::population::Name;
use crate::statistics::Estimate;

/// Measured gas.
const GAS: &str = include_str!("../../../test/bench/gas.snap");

/// The gas of an operation among this many nodes, not cached: the most in the snapshot.
fn gas(operation: &str, nodes: u32) -> u64 {
    let row = format!("{operation}, {nodes} nodes, 0 queued, not cached: ");
    let of = |line: &str| line.strip_prefix(&row)?.split(' ').next_back()?.parse().ok();
    GAS.lines().find_map(of).unwrap_or_else(|| panic!("the snapshot has no row {operation}"))
}

/// The gas of a judgement of a farmed node.
pub fn judgement(price: &Price) -> u64 {
    gas_of(price) / price.judgements.max(1)
}

fn gas_of(price: &Price) -> u64 {
    let (calls, nine) = (&price.calls, |operation| gas(operation, 32));
    calls.created * gas("create a task, nothing pending", 100)
        + calls.formed * nine("form a group of 9 by Tight-fit from a pool of 32")
        + calls.commits * nine("commit, one of 9: released")
        + calls.reveals * nine("reveal in a group chosen by ratings, not the last")
        + calls.settled * nine("reveal in a group chosen by ratings, the last: 9 judged")
}

const fn title(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Fixed => "Fixed",
        Algorithm::FirstFit => "First-fit",
        Algorithm::TightFit => "Tight-fit",
        Algorithm::RandomFit => "Random-fit",
    }
}

fn of<T>(values: &[T], value: impl Fn(&T) -> f64) -> Estimate {
    Estimate::of(&values.iter().map(value).collect::<Vec<_>>())
}

/// How much larger each of the first is than its counterpart, in percent.
fn over<A, B>(a: &[A], b: &[B], of_a: impl Fn(&A) -> f64, of_b: impl Fn(&B) -> f64) -> Estimate {
    Estimate::of(&a.iter().zip(b).map(|(a, b)| 100.0 * (of_a(a) / of_b(b) - 1.0)).collect::<Vec<_>>())
}

fn servers(found: &Found, name: Name, algorithm: Algorithm) -> &Servers {
    let this = found.servers.iter().find(|(n, a, _)| (*n, *a) == (name, algorithm));
    &this.expect("every case was played").2
}

/// Name and text of every picture.
pub fn figures(found: &Found) -> Vec<(String, String)> {
    let note = format!(
        "The contract, {NODES} nodes. Mean of {} seeds, {} rounds each, with 95 % confidence intervals. Rmin 3, Rmax 7.",
        found.scale.seeds, found.scale.rounds
    );
    let bars = |title: &str, y: &str, value: fn(&super::game::Outcome) -> f64| {
        let series = ALGORITHMS.map(|algorithm| {
            let values = Name::ALL.map(|name| of(&servers(found, name, algorithm).contract, value));
            (self::title(algorithm).to_owned(), values.to_vec())
        });
        let frame = Frame { title: title.into(), y: y.into(), note: note.clone() };
        Bars { frame, groups: Name::ALL.map(|name| name.text().to_owned()).to_vec(), series: series.to_vec() }.svg()
    };
    vec![
        ("throughput".into(), bars("Figure 3a on the contract: throughput", "successful tasks per round", |o| o.throughput)),
        ("size".into(), bars("Figure 4 on the contract: mean group size", "nodes per task", |o| o.size)),
    ]
}

/// The page.
pub fn write(found: &Found, options: &Options) -> String {
    let scale = &found.scale;
    let quick = if scale.quick { " --quick" } else { "" };
    let mut page = HEAD.to_owned();
    let _ = write!(
        page,
        "\n```\nscript/sim reputation{quick}\n```\n\nwrote it (seed {}). {NODES} nodes of equal stake and one GPU group, every parameter at \
         its default. A round is the paper's: tasks are created and drawn one after the other while at least as many nodes are idle as a \
         task's fee is for (7), then all commit, then all reveal. Right answers agree, wrong ones do not; nobody is late. A task whose group \
         has no \
         majority is refunded (`reschedules` 0): a new one takes its place, as there is always more work.\n",
        options.seed
    );
    summary(&mut page, found);
    compared(&mut page, found);
    targets(&mut page, found);
    farmed(&mut page, found);
    page
}

/// The gain by a computed target over that of the best given one, less one, in percent.
fn short(computed: &[f64], targets: &Targets) -> Estimate {
    over(computed, &targets.gains, |gain| *gain, |gain| *gain)
}

/// How many come within this many percent, and how many clearly do not: by the whole of their interval.
fn within<'a>(targets: impl IntoIterator<Item = &'a Targets>, percent: f64, gains: Gains) -> (usize, usize) {
    let estimates: Vec<Estimate> = targets.into_iter().map(|t| short(gains(t), t)).collect();
    let count = |of: &dyn Fn(&Estimate) -> bool| estimates.iter().filter(|e| of(e)).count();
    (count(&|e| e.mean >= -percent), count(&|e| e.mean + e.margin < -percent))
}

type Gains = fn(&Targets) -> &[f64];
const PREDICTIVE: Gains = |t| &t.predictive.0;
const OUTSIDE: Gains = |t| &t.outside.0;

fn summary(page: &mut String, found: &Found) {
    let all = found.targets.len();
    let distance = |t: &Targets| short(PREDICTIVE(t), t).mean;
    let furthest = found.targets.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let furthest = furthest.map_or_else(String::new, |t| {
        format!(
            "{} {} at alpha {}: {} %",
            title(t.algorithm),
            t.name.text(),
            t.halves as f64 / 2.0,
            signed(short(PREDICTIVE(t), t), 1)
        )
    });
    let range = |f: fn(&Servers) -> Estimate| {
        let mut values: Vec<f64> = found.servers.iter().map(|(_, _, s)| f(s).mean).collect();
        values.sort_by(f64::total_cmp);
        format!("{} % to {} %", fixed(values[0], 1), fixed(values[values.len() - 1], 1))
    };
    let throughput = range(|s| over(&s.contract, &s.exact, |a| a.throughput, |b| b.throughput));
    let success = range(|s| over(&s.contract, &s.exact, |a| a.success, |b| b.success));
    let price = &found.own;
    let (near, beyond) = within(&found.targets, 2.0, PREDICTIVE);
    let _ = write!(
        page,
        "\n## What to take from it\n\n\
         - Against the paper's central server with the exact likelihood, on the same workers, the contract's throughput differs by {throughput}, its success rate by {success} (24 cases).\n\
         - The predictive target comes within 2 % of the best given one in {near} of {all} cases. It is clearly further from it, by the whole of its interval, in {beyond}; within 5 % it comes in {}. The furthest is {furthest}. Computed by the same code from the ratings of all nodes it is within 2 % in {}.\n\
         - Farming ratings costs {} tokens of fees and {} tokens of start fees: the fees come back. The real costs are gas, about {} for each judgement, and the name of a GPU, {} tokens.\n",
        within(&found.targets, 5.0, PREDICTIVE).0,
        within(&found.targets, 2.0, OUTSIDE).0,
        tokens(price.fees),
        tokens(price.start_fees),
        thousands(judgement(price)),
        tokens(price.name),
    );
}

fn tokens(wei: u128) -> String {
    fixed(wei as f64 / 1e18, 2)
}

fn compared(page: &mut String, found: &Found) {
    page.push_str(COMPARED);
    let _ = writeln!(
        page,
        "{} seeds of {} rounds; ± is a 95 % confidence interval over them.\n\n![Throughput on the contract](figures/reputation-throughput.svg)\n\n![Group size on the contract](figures/reputation-size.svg)\n",
        found.scale.seeds, found.scale.rounds
    );
    page.push_str("| population | algorithm | throughput: contract | paper (bound) | exact | contract over exact, % | success: contract | paper (bound) | exact | members: contract | exact | without a group | not scored, % |\n");
    page.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (name, algorithm, s) in &found.servers {
        let cells = [
            name.text().to_owned(),
            title(*algorithm).to_owned(),
            estimate(of(&s.contract, |o| o.throughput), 2),
            estimate(of(&s.paper, |o| o.throughput), 2),
            estimate(of(&s.exact, |o| o.throughput), 2),
            signed(over(&s.contract, &s.exact, |a| a.throughput, |b| b.throughput), 1),
            estimate(of(&s.contract, |o| o.success), 3),
            estimate(of(&s.paper, |o| o.success), 3),
            estimate(of(&s.exact, |o| o.success), 3),
            fixed(of(&s.contract, |o| o.size).mean, 2),
            fixed(of(&s.exact, |o| o.group_size).mean, 2),
            fixed(of(&s.contract, |o| o.left).mean, 2),
            fixed(100.0 * of(&s.contract, |o| o.unscored).mean, 1),
        ];
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
}

fn targets(page: &mut String, found: &Found) {
    let scale = &found.scale;
    let tried: Vec<String> = scale.targets.iter().map(|t| crate::numbers::number(*t as f64 / 1e3)).collect();
    let _ = write!(
        page,
        "\n## The predictive target\n\nGain of the second half of {} rounds, mean over {} populations of each kind, with 95 % confidence intervals. The best given target is the best of {} in such runs. All are compared in other runs, so that it is not ahead by its luck. \
         The contract computes its target once in 300 settled groups, from the pool of the draw that is next, and joins it to those before (`mean_target`). *All ratings* is a given target that the application computes as often, by the same code \
         (`best_target`), from the ratings of all nodes, as `node` shows them, and uses as it is. It counts no group of the last nodes, fewer than 7, of which the contract forms none. Of a pool's 32 that would leave out too many.\n\n\
         | population | algorithm | alpha | best given target | its gain | predictive, % of it less 100 | its mean target | all ratings, % of it less 100 | its mean target |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        scale.target_rounds,
        scale.target_seeds,
        tried.join(", "),
    );
    for t in &found.targets {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            t.name.text(),
            title(t.algorithm),
            t.halves as f64 / 2.0,
            t.best as f64 / 1e3,
            fixed(t.gains.iter().sum::<f64>() / t.gains.len() as f64, 3),
            signed(short(PREDICTIVE(t), t), 1),
            fixed(t.predictive.1, 2),
            signed(short(OUTSIDE(t), t), 1),
            fixed(t.outside.1, 2),
        );
    }
    page.push_str(
        "\n| within 2 % | predictive | clearly not | all ratings | clearly not | of |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for algorithm in GREEDY {
        for halves in HALVES {
            let of: Vec<&Targets> = found.targets.iter().filter(|t| (t.algorithm, t.halves) == (algorithm, halves)).collect();
            let count = |gains| {
                let (near, beyond) = within(of.iter().copied(), 2.0, gains);
                format!("{near} | {beyond}")
            };
            let _ = writeln!(
                page,
                "| {}, alpha {} | {} | {} | {} |",
                title(algorithm),
                halves as f64 / 2.0,
                count(PREDICTIVE),
                count(OUTSIDE),
                of.len()
            );
        }
    }
}

fn farmed(page: &mut String, found: &Found) {
    let scale = &found.scale;
    page.push_str(FARMING);
    page.push_str("\n| farmed tasks go to | tasks | judgements as right | fees lost, tokens | of these start fees | GPU's name, tokens | gas | fees lost for a judgement | gas for a judgement | seconds |\n");
    page.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (name, price) in [("its own nodes alone", &found.own), ("whomever is drawn", &found.among)] {
        let each = price.judgements.max(1);
        let cells = [
            name.to_owned(),
            thousands(price.tasks),
            thousands(price.judgements),
            tokens(price.fees),
            tokens(price.start_fees),
            tokens(price.name),
            thousands(gas_of(price)),
            fixed(price.fees as f64 / 1e18 / each as f64, 3),
            thousands(judgement(price)),
            thousands(price.seconds),
        ];
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
    let _ = write!(
        page,
        "\nA farmed task offers {} tokens for nine nodes. Gas as measured (test/bench/gas.snap, not cached), the forming of a group as by Tight-fit from a pool of 32.\
         \n\n### What it does to others\n\nHeavy-high, {} honest nodes and {FARMERS} of the farmer; the others' target is predictive, alpha 0.5. {} rounds without the farmer's nodes, then {} with \
         them; {} lives each. *Fed*: farmed tasks before the {} rounds, and in each of them.\n\n\
         | algorithm of others | the farmer's nodes | fed | right | no majority | wrong majority | right answers in a round | earned by the farmer in a round, tokens | its rating, before and after | of the honest |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        tokens(FEE * 9),
        NODES - FARMERS,
        scale.life_rounds.0,
        scale.life_rounds.1,
        scale.lives,
        scale.life_rounds.1,
    );
    for Farmed { algorithm, conduct, fed, lives } in &found.farmed {
        let conduct = match conduct {
            Conduct::Absent => "not there",
            Conduct::Alone => "wrong, each by itself",
            Conduct::Agreed => "wrong, agreed",
        };
        let share = |value: fn(&farm::Outcome) -> f64| estimate(of(lives, value), 3);
        let mean = |value: fn(&farm::Outcome) -> f64| fixed(of(lives, value).mean, 2);
        let farmer = if lives.iter().any(|l| l.ratings.0 > 0.0) {
            format!("{}, {}", mean(|o| o.ratings.0), mean(|o| o.ratings.1))
        } else {
            "-".into()
        };
        let cells = [
            title(*algorithm).to_owned(),
            conduct.to_owned(),
            format!("{}, {}", fed.0, fed.1),
            share(|o| o.right),
            share(|o| o.undecided),
            share(|o| o.wrong),
            estimate(of(lives, |o| o.throughput), 2),
            mean(|o| o.earned),
            farmer,
            format!("{}, {}", mean(|o| o.honest.0), mean(|o| o.honest.1)),
        ];
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
    let _ = writeln!(page, "{}", LEFT_OUT.replace("{before}", &BEFORE.to_string()));
}

const HEAD: &str = "# Groups chosen by ratings, simulated on the contract

[All pages](../README.md)

<!-- Generated by `script/sim reputation`; changes belong into sim/src/rated. -->

The results of [redundancy 3](../reputation.md) on the populations of [the paper](simulator-paper.md): the contract's own code, natively, by the calls that applications and nodes send: `setProfile`, `createTask`, `dispatch`, `commit`, `reveal`.
";

const COMPARED: &str = "
## Against the paper's central server: figures 3 and 4

The workers (fitted populations) are the same, and so is the target: the success rate that Fixed reaches on them. The central server looks \
at all workers and forms groups until fewer than 3 are left. The contract looks at no more than 32 idle nodes, drawn by weight where there \
are more. It draws no \
group with fewer than 7 idle, halves counts at 64 judgements, and rates nobody where fewer than `scorePool` (9) nodes are idle. *Paper* uses the lower bound (2), *exact* the exact likelihood, as the contract does.

";

const FARMING: &str = "
## Farmed ratings

An application creates tasks to which its own nodes know the answer. Its nodes join with a GPU of a name that nobody else has, and its tasks are images for that GPU group. They are compared there, listed or not, and count for ratings where `scorePool` nodes are idle. \
Their fee is shared by its own nodes. The same nodes are drawn for tasks that name no GPU. For comparison, the same among all nodes: honest \
ones are drawn as well and share the fee.
";

const LEFT_OUT: &str = "
*{before} farmed tasks* before, each to nine of ten nodes. Left out: deadlines that pass, stakes that differ, tasks that queue, and the time for which the farmer's stakes are locked (the least stake of each node).";
