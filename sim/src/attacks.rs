//! The results of attacks on validation: the adversary's search over many lives, single prices, and the page about them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use muster_core::validation::payment;
use muster_model::search::book::{Cause, Tally};
use muster_model::search::harm::Harm;
use muster_model::search::hold::{self, Held, Hold};
use muster_model::search::hunt::{hunt, Best, Budget, Found as Hunted, Per, LEADERS};
use muster_model::search::price::{fifty_tens, lone_sender, share, Fifty, Lone, Required, Share};
use muster_model::search::rules::Rule;
use muster_model::search::{season, Strategy, ALONE, DEVIATES, LIVES};
use rayon::prelude::*;

use crate::numbers::{fixed, thousands};

/// Rates of sampling, in ten-thousandths, at which a share of the nodes is priced.
const RATES: [u64; 2] = [1_000, 3_000];
/// Shares of the nodes, in hundredths.
const SHARES: [u32; 6] = [1, 5, 10, 20, 33, 50];
/// Shares of one-sender blocks, in hundredths.
const ALONE_IN: [u64; 8] = [0, 1, 5, 10, 25, 50, 75, 90];
/// Seconds for which each plan to hold a node is played.
const HOLDING: u64 = 2 * 3_600;
/// The default slash for a wrong answer, in fees.
const SLASH: f64 = 20.0;
/// Fifty tens: nodes, the adversary's, policy, and the holders of a required model.
const TENS: [(u64, u32, u8, Required); 8] = [
    (20, 1, 2, Required::Nothing),
    (20, 4, 2, Required::Nothing),
    (20, 1, 2, Required::Alone),
    (20, 4, 2, Required::Private),
    (20, 1, 1, Required::Nothing),
    (100, 1, 2, Required::Nothing),
    (100, 20, 2, Required::Nothing),
    (100, 20, 2, Required::Private),
];

/// How much to do, and where to put it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Lives in all, a multiple of those of a season.
    pub lives: u64,
    /// Answers of a lone sender behind each price; half as many groups, and answers that are judged.
    pub answers: u64,
    /// How long each hunt is for the best plans.
    pub hunt: Budget,
    /// Another seed gives other networks, plans and luck.
    pub seed: u64,
    /// The page goes here.
    pub out: PathBuf,
}

/// The findings.
struct Found {
    strategies: BTreeMap<Strategy, Tally>,
    today: Hunted,
    /// After one kind of harm alone.
    alone: BTreeMap<Harm, Hunted>,
    old: Vec<Hunted>,
    /// How a node was held, by the rule of old and today's, and what it does undisturbed.
    holds: [(Hold, Held); 2],
    undisturbed: Held,
    lone: Vec<Lone>,
    shares: Vec<Vec<Share>>,
    tens: Vec<Fifty>,
}

/// Searches, measures and writes the page.
///
/// # Errors
/// A file that can't be written. A forbidden event stops it, with its season and life.
pub fn run(options: &Options) -> Result<(), Box<dyn Error + Send + Sync>> {
    fs::create_dir_all(&options.out).map_err(|e| format!("can't create {}: {e}", options.out.display()))?;
    let start = Instant::now();
    let first = options.seed << 24;
    let seasons: Vec<u64> = (0..options.lives.div_ceil(LIVES)).map(|n| first + n).collect();
    let bar = bar("lives", options.lives);
    let played: Vec<_> = seasons
        .par_iter()
        .map(|seed| {
            let found = season(*seed, LIVES);
            bar.inc(LIVES);
            found
        })
        .collect();
    bar.finish_and_clear();
    let mut strategies: BTreeMap<Strategy, Tally> = BTreeMap::new();
    for (strategy, tally) in played.into_iter().flatten() {
        strategies.entry(strategy).or_default().add(&tally);
    }
    eprintln!("{} lives in {:.0} s", options.lives, start.elapsed().as_secs_f64());
    let harms: BTreeSet<Harm> = Rule::ALL.into_iter().map(Rule::harm).collect();
    let mut wanted = vec![Harm::ALL.to_vec()];
    wanted.extend(harms.iter().map(|harm| vec![*harm]));
    let found: Vec<Hunted> = wanted.par_iter().map(|harms| hunt(first, None, harms, &options.hunt, &[])).collect();
    let known = |harm: Harm| {
        let best = found.iter().flat_map(|found| &found.best).filter(move |((of, _), _)| *of == harm);
        best.map(|(_, best)| best.plan.clone()).collect::<Vec<_>>()
    };
    // An old rule's plan is looked for as today's is, after its own harm alone, from the best known plans on.
    let old = Rule::ALL.par_iter().map(|rule| hunt(first, Some(*rule), &[rule.harm()], &options.hunt, &known(rule.harm())));
    let old = old.collect();
    let mut found = found.into_iter();
    let today = found.next().unwrap_or_default();
    let alone = harms.into_iter().zip(found).collect();
    let (forgets, remembers) = rayon::join(
        || hold::search(first, options.hunt.plans, true, HOLDING),
        || hold::search(first, options.hunt.plans, false, HOLDING),
    );
    let undisturbed = hold::hold(None, false, HOLDING);
    eprintln!("The hunts ended after {:.0} s.", start.elapsed().as_secs_f64());
    let (answers, groups) = (options.answers, options.answers / 2);
    let lone = ALONE_IN.par_iter().map(|alone| lone_sender(first, *alone, answers, groups)).collect();
    let shares = RATES.par_iter().map(|rate| SHARES.par_iter().map(|own| share(first, *own, *rate, groups, groups)).collect());
    let shares = shares.collect();
    let tens = TENS.par_iter().map(|(nodes, own, policy, model)| fifty_tens(first, *nodes, *own, *policy, *model)).collect();
    let holds = [forgets, remembers];
    let text = page(&Found { strategies, today, alone, old, holds, undisturbed, lone, shares, tens }, options);
    let path = options.out.join("attacks.md");
    fs::write(&path, &text).map_err(|e| format!("can't write {}: {e}", path.display()))?;
    eprintln!("All of it took {:.0} s.", start.elapsed().as_secs_f64());
    // A reader may stop early.
    let _ = std::io::stdout().write_all(format!("{text}\n{}\n", path.display()).as_bytes());
    Ok(())
}

fn bar(what: &str, length: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    let style = ProgressStyle::with_template("{msg:10} {wide_bar} {pos}/{len} {elapsed:>5}, {eta:>5} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// Wei in tokens.
fn tokens(wei: i128) -> f64 {
    wei as f64 / 1e18
}

fn shown(wei: i128) -> String {
    fixed(tokens(wei), 1)
}

fn percent(part: u64, of: u64, decimals: usize) -> String {
    format!("{} %", fixed(100.0 * part as f64 / of.max(1) as f64, decimals))
}

fn page(found: &Found, options: &Options) -> String {
    let mut sum = Tally::default();
    found.strategies.values().for_each(|tally| sum.add(tally));
    let mut page = HEAD.to_owned();
    let _ = write!(
        page,
        "\n`script/sim attacks` wrote it (seed {}): {} lives, {} groups, {} calls. The same seed gives the same page.\n{WHAT}\n",
        options.seed,
        thousands(sum.lives),
        thousands(sum.groups),
        thousands(sum.checked)
    );
    let _ = write!(
        page,
        "An honest node deviates once in {} answers: {} did. In all, {} nodes were slashed while idle, {} while busy, {} about to pause, {} about to leave, {} while paused and {} \
         after they had left.\n{SEARCH}",
        thousands(DEVIATES),
        thousands(sum.deviations),
        thousands(sum.states[1]),
        thousands(sum.states[2]),
        thousands(sum.states[3]),
        thousands(sum.states[4] + sum.states[6]),
        thousands(sum.states[5]),
        thousands(sum.states[0]),
    );
    for (strategy, tally) in &found.strategies {
        row(&mut page, strategy.words(), tally);
    }
    row(&mut page, "**all**", &sum);
    let of = |strategy: Strategy| found.strategies.get(&strategy).cloned().unwrap_or_default();
    let (ambiguous, choose, alone) = (of(Strategy::Ambiguous), of(Strategy::Choose), of(Strategy::Grind));
    let slashed = |cause| sum.slashed.get(&cause).copied().unwrap_or_default();
    let _ = write!(
        page,
        "\nNone of the {} slashes of honest nodes was by a minority. In {} two of the group were the adversary's, {} were of nodes that had deviated, and {} by tasks that have two right \
         answers. Such tasks burn {} tokens of honest nodes for each that the adversary pays, mostly for work that was done. The search played out {} calls between a hash and its draw, and {} of them were worth more \
         to the adversary than none. Where it chose when to validate, {} of the nodes that could be drawn were its own on average, and {} of all that had joined; of all strategies together {} and {}. Alone in {} \
         of the blocks it had two of the group in {} of {} groups.\n",
        thousands(sum.slashed.values().sum()),
        thousands(slashed(Cause::Majority)),
        thousands(slashed(Cause::Deviated)),
        thousands(slashed(Cause::Ambiguous)),
        fixed(ratio(ambiguous.burnt(Cause::Ambiguous), ambiguous.spent), 2),
        thousands(sum.looked),
        thousands(sum.moved),
        percent(choose.share, choose.shares * 1_000_000, 1),
        percent(choose.usual, choose.shares * 1_000_000, 1),
        percent(sum.share, sum.shares * 1_000_000, 1),
        percent(sum.usual, sum.shares * 1_000_000, 1),
        percent((ALONE * 1e3) as u64, 1_000, 0),
        thousands(alone.majorities),
        thousands(alone.groups),
    );
    best(&mut page, &found.today, &options.hunt);
    of_old(&mut page, found);
    held(&mut page, found, &options.hunt);
    lone(&mut page, &found.lone);
    shares(&mut page, &found.shares);
    tens(&mut page, &found.tens);
    page
}

fn ratio(part: u128, of: u128) -> f64 {
    part as f64 / of as f64
}

fn row(page: &mut String, name: &str, tally: &Tally) {
    let burnt = tally.burnt(Cause::Majority) + tally.burnt(Cause::Ambiguous);
    let per = if tally.spent > 0 { fixed(ratio(burnt, tally.spent), 3) } else { "-".into() };
    let cells = [
        name.to_owned(),
        thousands(tally.lives),
        thousands(tally.groups),
        thousands(tally.majorities),
        thousands(tally.calls),
        shown(tally.spent as i128),
        shown(tally.earned),
        shown(burnt as i128),
        per,
        shown(tally.withheld as i128),
        shown(tally.reserve),
        thousands(tally.fooled),
    ];
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

/// A rate of harm, or none.
fn rate(found: &Hunted, harm: Harm, per: Per) -> String {
    match found.rate(harm, per) {
        Some(f64::INFINITY) if per == Per::Gas => "without a call".into(),
        // Fees of a few wei.
        Some(rate) if per == Per::Fee && rate >= 1e6 => "for gas alone".into(),
        Some(rate) if rate >= 100.0 => thousands(rate as u64),
        Some(rate) => fixed(rate, if rate < 1.0 { 3 } else { 1 }),
        None => "none".into(),
    }
}

fn best(page: &mut String, found: &Hunted, budget: &Budget) {
    let _ = write!(
        page,
        "\n## The best plans\n\nHere the adversary owns a third of the nodes, or two fifths. For each kind of harm {} plans are played, {} lives each: in the first half by chance, then the best so far crossed with others. The {} best by token and by gas are then \
         played for {} lives each in networks in which they were not chosen, and the best of these is shown. Spending is counted in tokens where the harm is, else in parts. A part is the offer for one node's work on one task. It may be the least fee: \
         then the plan costs gas. Gas is that of the adversary's calls: storage, logs and start. *For gas alone*: the fees are less than a \
         millionth of it. *None*: no plan did any harm, or none beyond chance (three deviations, of the reserve).\n{BEST}",
        thousands(budget.plans),
        budget.seasons.0 * budget.lives,
        LEADERS,
        budget.seasons.1 * budget.lives,
    );
    for harm in Harm::ALL {
        let shown = |best: &Best| best.plan.words();
        let plan =
            |per| found.best.get(&(harm, per)).filter(|_| found.rate(harm, per).is_some()).map_or_else(|| "-".into(), shown);
        let cells =
            [harm.words().into(), rate(found, harm, Per::Fee), plan(Per::Fee), rate(found, harm, Per::Gas), plan(Per::Gas)];
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
}

fn of_old(page: &mut String, found: &Found) {
    page.push_str(OLD);
    for (rule, then) in Rule::ALL.iter().zip(&found.old) {
        let harm = rule.harm();
        let today = |per| {
            let both = [&found.today, &found.alone[&harm]];
            both.into_iter()
                .max_by(|a, b| a.rate(harm, per).partial_cmp(&b.rate(harm, per)).unwrap_or(Ordering::Equal))
                .unwrap_or(&found.today)
        };
        let by = [Per::Fee, Per::Gas].into_iter().find(|per| then.rate(harm, *per).is_some());
        let plan = by.and_then(|per| then.best.get(&(harm, per))).map_or_else(|| "-".into(), |best| best.plan.words());
        let cells = [
            rule.words().into(),
            harm.words().into(),
            plan,
            rate(then, harm, Per::Fee),
            rate(today(Per::Fee), harm, Per::Fee),
            rate(then, harm, Per::Gas),
            rate(today(Per::Gas), harm, Per::Gas),
        ];
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
    let errors = |rule: Rule| {
        let at = Rule::ALL.iter().position(|other| *other == rule).unwrap_or_default();
        (found.old[at].sum.blamed, found.old[at].sum.strangers)
    };
    let ((scores, strangers), (ratings, others)) = (errors(Rule::ErrorsScore), errors(Rule::OpenRates));
    let _ = write!(
        page,
        "\nScores of 0 and wrong ratings that honest nodes got for an error, or for an answer that no majority contradicted: {} in today's hunts. With the first rule put back they are {}, of which {} in tasks of honest \
         applications, whose model the nodes lacked. With the fifth they are {} and {}.\n",
        thousands(found.today.sum.blamed + found.alone.values().map(|found| found.sum.blamed).sum::<u64>()),
        thousands(scores),
        thousands(strangers),
        thousands(ratings),
        thousands(others),
    );
}

/// A node that is held, found by a search of its own.
fn held(page: &mut String, found: &Found, budget: &Budget) {
    let tasks = found.undisturbed.done;
    let _ = write!(
        page,
        "\n## A node that is held\n\nA small search of its own: one node works for others, whose tasks always wait. The adversary has one to three nodes of another GPU, and a task for three that takes that node too. \
         It pauses its own before the draw, so that the reservation comes to nothing. Of {} plans by chance, each played for {} hours, the one that keeps the node from most work is shown. Undisturbed, the node does {} tasks. \
         The cost is gas; the adversary's task costs its start fee once, when it is cancelled.\n{HELD}",
        thousands(budget.plans),
        HOLDING / 3_600,
        thousands(tasks),
    );
    for (rule, (plan, held)) in ["forgotten, as once", "counted, as today"].iter().zip(&found.holds) {
        let hours = held.hours(&found.undisturbed);
        let cells = [
            (*rule).into(),
            plan.words(),
            thousands(held.done),
            percent((held.lost(&found.undisturbed).max(0.0) * 1e6) as u64, 1_000_000, 1),
            thousands(held.calls),
            fixed(hours, 2),
            fixed(hours / (held.gas.max(1) as f64 / 1e6), 3),
        ];
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
}

fn lone(page: &mut String, found: &[Lone]) {
    page.push_str(LONE);
    let rate = 0.1;
    for (alone, lone) in ALONE_IN.iter().zip(found) {
        let q = *alone as f64 / 100.0;
        let left = rate * (1.0 - q);
        let two = hypergeometric(20, 2, 2) + hypergeometric(20, 2, 3);
        let _ = writeln!(
            page,
            "| {alone} % | {} | {} | {} | {} | {} |",
            percent((left * 1e6) as u64, 1_000_000, 1),
            percent(lone.sampled, lone.answers, 1),
            fixed((1.0 - left) / left, 1),
            percent(((q + (1.0 - q) * two) * 1e6) as u64, 1_000_000, 1),
            percent(lone.majorities, lone.groups, 1),
        );
    }
    let limit = 1.0 - 1.0 / (rate * (SLASH + 1.0));
    let _ = write!(
        page,
        "\nA slash of {SLASH} fees deters senders without a validator of their own up to {} of such blocks.\n",
        percent((limit * 1e3) as u64, 1_000, 0)
    );
}

/// The chance that exactly `hit` of three drawn out of `nodes` are among `own`.
fn hypergeometric(nodes: u64, own: u64, hit: u64) -> f64 {
    let choose = |n: u64, k: u64| (0..k).fold(1.0, |c, i| c * n.saturating_sub(i) as f64 / (i + 1) as f64);
    choose(own, hit) * choose(nodes - own, 3 - hit) / choose(nodes, 3)
}

fn shares(page: &mut String, found: &[Vec<Share>]) {
    page.push_str(MAJORITY);
    for (i, own) in SHARES.iter().enumerate() {
        let f = f64::from(*own) / 100.0;
        let backed = 1.0 - (1.0 - f) * (1.0 - f);
        let mut cells = vec![
            format!("{own} %"),
            fixed(f / (1.0 - f), 2),
            format!("{} %", fixed(300.0 * f * f * (1.0 - f), 2)),
            percent(found[0][i].twos, found[0][i].groups, 2),
            format!("{} %", fixed(100.0 * f * f * f, 2)),
            percent(found[0][i].threes, found[0][i].groups, 2),
            format!("{} %", fixed(100.0 * backed, 1)),
        ];
        for (rate, shares) in RATES.iter().zip(found) {
            let (r, share) = (*rate as f64 / 1e4, &shares[i]);
            cells.push(fixed((1.0 - r + r * backed) / (r * (1.0 - backed)), 1));
            cells.push(fixed(tokens(share.earned as i128) / tokens(share.fee as i128) / share.slashes.max(1) as f64, 1));
        }
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
    let limit = |r: f64| {
        // (1 - r + r p) = s r (1 - p).
        let p = (SLASH * r - 1.0 + r) / (r + SLASH * r);
        1.0 - (1.0 - p).sqrt()
    };
    let single = payment(10_000, RATES[0] as u16);
    let _ = write!(
        page,
        "\nBy the formula a slash of {SLASH} fees deters up to f = {} at r = {}, and {} at r = {}. It is on the safe side: a node is paid {} % of a fee at r = {}, not all of it. Where it is backed, it and the \
         validators that back it share three such payments. So they break even sooner, measured by the income of all of them.\n",
        percent((limit(0.1) * 1e3) as u64, 1_000, 0),
        0.1,
        percent((limit(0.3) * 1e3) as u64, 1_000, 0),
        0.3,
        fixed(single as f64 / 100.0, 1),
        0.1,
    );
}

fn tens(page: &mut String, found: &[Fifty]) {
    page.push_str(TEN);
    for ((nodes, own, policy, model), fifty) in TENS.iter().zip(found) {
        let model = match model {
            Required::Nothing => "none",
            Required::Alone => "the node alone holds",
            Required::Private => "only the adversary's can have",
        };
        let _ = writeln!(
            page,
            "| {nodes} | {own} | {policy} | {model} | {} | {} | {} | {} | {} |",
            thousands(fifty.tasks),
            thousands(fifty.groups),
            fixed(fifty.parts as f64 / 100.0, 0),
            fixed(fifty.seconds as f64 / 3_600.0, 1),
            fixed(fifty.weight as f64 / 1e3, 2)
        );
    }
}

const HEAD: &str = "\
# Attacks on validation

[All pages](../README.md)

[Security of validation](../security-validation.md#validation) has the defence against each of them, and the risk that remains. This page has the figures.
";

const WHAT: &str = "
## The search

An adversary owns an application, an address without a node, and between one node and two fifths of a network of 10 to 29. Half of the networks have 13 nodes at most. In each *life* it plays one of the strategies below, or two
at once, until a validation group has been judged and everything has ended. Some twenty lives share a network with its stakes, scores and reserve. Chance decides the policy, kind of task, fee, rate of
sampling, slashes of images and delay of draws, and how soon honest passers-by make the calls they can. All calls are calldata for the contract's dispatch tables.

Honest nodes answer rightly, some of them slowly or too late, and pause now and then. One in six lacks the model that all others hold, and reports an error for a task that requires it. All honest nodes do so for a task
that requires a model which only the adversary has. Now and then the owner changes the least stake. Changes of `slashTimes`, `openMost` and `startFeeBps` are proposed, and take effect while commitments are open. After every call:

- each wei that came in is in one place: stakes, returned stakes, credit, fees, reserve, burnt and income; and the fees that storage holds are those of the logs;
- it costs 1,000,000 gas at most, for storage, logs and its start, unless its caller chose how much it does;
- no call that an honest party is entitled to is refused. Only due draws, a full ring of tasks and a full ring of calls may ask for `dispatch` first; after it the call must go through;
- no honest node is slashed by a minority of its group, unless the node deviated itself, or its creator made a task with two right answers;
- every slash takes the amount owed, to the stake unit, from stake, returned stake or credit. `test/model/tests/search.rs` tries with an `unbonding` of 0 that no stake leaves while a commitment is open.

After every 20 blocks all honest nodes leave, on a copy, against the adversary: within two days, and with all that they are owed. Such slashes aside, that is no less than they had. Random operations check [the same properties](proof.md#properties).
";

const SEARCH: &str = "
Amounts are in tokens; the least stake is 400. The columns:

- *two of three*: groups in which the adversary has a majority;
- *spent*: its slashes, the part of its fees that others kept (most of it for honest work), and GPU names;
- *earned*: its accounts' other income, most of it for honest work too;
- *burnt*: slashes of honest nodes that had not deviated;
- *withheld*: pay that honest nodes missed for right answers revealed in a group.

| strategy | lives | groups | two of three | its calls | spent | earned | burnt of honest nodes | burnt per token spent | withheld | change of the reserve | false answers accepted |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const BEST: &str = "
| harm | per token or part spent | by | per million gas | by |
| --- | ---: | --- | ---: | --- |
";

const OLD: &str = "
## Rules of old

Each of these rules was in force once. With one of them put back in the simulation, the same search finds its cost. It looks for that harm alone, and begins with the best plans that are known against today's rules. Today's figures are the most that any hunt found. The plan is the best by token or part, or by gas if none is found by those.

| rule | harm | found | per token or part then | today | per million gas then | today |
| --- | --- | --- | ---: | ---: | ---: | ---: |
";

const HELD: &str = "
| a reservation in vain is | plan | tasks done | work lost | its calls | hours lost | hours lost per million gas |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
";

const LONE: &str = "
## The lone sender

The only sender of the deciding block can vary their transactions until its hash suits them. That block comes `sampleDelay` after their commitment, or is that of a draw. Being alone in the blocks
between does not help them, and a longer delay does not stop them. If q is the share of blocks with one sender, r (1 - q) of their answers are sampled; here r is 0.1. They break even at (1 - r (1 - q)) / (r (1 - q)) fees.
The last columns: groups of three in which the sender's two of twenty nodes are a majority, if the sender may be alone in the block that draws them.

| one-sender blocks | sampled, by formula | measured | breaks even at, fees | two of three, by formula | measured |
| ---: | ---: | ---: | ---: | ---: | ---: |
";

const MAJORITY: &str = "
## What a share of the nodes gets

f is the share of the weight in a task's scope at the adversary's moment. For groups it counts the nodes that are idle when three are drawn. For a node's answer it counts those that could be drawn to validate it. With
equal stakes it takes f / (1 - f) times the others' stakes, which are returned. Two of three decide which answer is right, share the pot, and burn the third's slash. Three can give any answer. A first node that lies
is backed with the probability p' = 1 - (1 - f)^2, and breaks even at a slash of (1 - r + r p') / (r (1 - p')) fees. Measured on a hundred equal nodes (drawn without replacement) and, for the first node, a hundred others.

| f | stakes, of the others' | two of three, 3 f^2 (1 - f) | measured | three, f^3 | measured | backed, p' | breaks even at r = 0.1, fees | measured | at r = 0.3 | measured |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const TEN: &str = "
## Fifty tens

The table prices filling one node's pool with fifty scores of 10. The tasks are the adversary's own and their answers known, so the node commits at once. The price is the part of the fees that other nodes and the reserve keep. It is in
parts: a part is the offer for one node's work on one task, and may be the least fee. Hours are those of one task after the other. The weight is that beside a node of the same stake without scores.

| nodes | the adversary's | policy | required model | tasks | groups | price, parts | hours | weight |
| ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |
";
