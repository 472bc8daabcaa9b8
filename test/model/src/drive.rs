//! Runs of random operations. Everything is compared after every operation; a run that fails is cut
//! down to a short one before it is shown. Seeds are fixed.

use crate::explorer::Explorer;
use crate::model::{random_op, rating, settling, validating, Model, Op};
use crate::proof;
use crate::system::System;
use crate::world::{Dice, World};
use muster_protocol::abi::{IMuster::IMusterEvents as E, SOURCE};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant};

/// Steps between two comparisons of everything that takes long to compare.
const FULL: usize = 16;

/// Operations between two times that everybody leaves, or half of the nodes against the others, in turn and on a copy; `LEAVING` says
/// another number.
const LEAVING: usize = 100;

/// The names of such times in a tally.
const LEFT: [&str; 2] = ["everybody left", "half left against the others"];

/// The first letters of the names of refusals in a tally.
const REFUSED: &str = "refused: ";

/// How often each thing happened, so that a run that exercises nothing is noticed.
pub type Tally = BTreeMap<String, u64>;

/// Makes the operations of a seed: so many, for so many operators.
type Operations = fn(u64, usize, u64) -> Vec<Op>;

/// Operations of a network where few tasks are validated.
pub fn operations(seed: u64, length: usize, operators: u64) -> Vec<Op> {
    let mut dice = Dice(seed);
    (0..length).map(|_| random_op(&mut dice, operators)).collect()
}

/// Runs operations on a new system; panics at the first difference. `at` is the operation in hand.
pub fn play<S: System>(real: &mut S, ops: &[Op], operators: u64, at: &Cell<usize>) -> Tally {
    tally(played(real, ops, operators, at))
}

/// The same; then half of the nodes leave, and then all: for a system that cannot be copied, and so is not left before.
pub fn play_out<S: System>(real: &mut S, ops: &[Op], operators: u64, at: &Cell<usize>) -> Tally {
    let (mut model, mut seen) = played(real, ops, operators, at);
    if real.copy().is_none() {
        model.half_leave(real, &mut Dice(1));
        model.everybody_leaves(real);
        for name in LEFT {
            *seen.entry(name.into()).or_default() += 1;
        }
    }
    tally((model, seen))
}

/// Adds to a tally the things that the model noted, and the refusals.
fn tally((model, mut seen): (Model, Tally)) -> Tally {
    seen.extend(model.notes.into_iter().map(|(what, times)| (what.to_string(), times)));
    seen.extend(model.refused.into_iter().map(|(what, times)| (format!("{REFUSED}{what}"), times)));
    seen
}

fn played<S: System>(real: &mut S, ops: &[Op], operators: u64, at: &Cell<usize>) -> (Model, Tally) {
    let mut model = Model::new(real.clock(), operators);
    let mut explorer = Explorer::default();
    for (event, time) in real.birth() {
        explorer.read(&event, time);
    }
    let mut tally = Tally::new();
    let leaving = std::env::var("LEAVING").map_or(LEAVING, |n| n.parse().expect("a number"));
    for (i, op) in ops.iter().enumerate() {
        at.set(i);
        let last = i + 1 == ops.len();
        let full = i % FULL == 0 || last;
        let logged = model.step(real, op);
        model.compare(real, full);
        for (event, time) in logged {
            explorer.read(&event, time);
            let name = match &event {
                E::TaskAborted(a) => format!("TaskAborted{}", a.reason),
                other => format!("{other:?}").split('(').next().unwrap_or("").to_string(),
            };
            *tally.entry(name).or_default() += 1;
        }
        if matches!(op, Op::Force(_)) {
            *tally.entry("ether forced in".into()).or_default() += 1;
        }
        if full {
            real.read(|net| explorer.compare(net));
            real.inspect();
        }
        for (half, name) in LEFT.into_iter().enumerate() {
            // Both at the end: a run that is cut down ends where it failed.
            if !last && (i + 1) % (2 * leaving) != half * leaving {
                continue;
            }
            let Some(mut copy) = real.copy() else { continue };
            let mut model = model.clone();
            if half == 1 {
                // The same nodes in each try to cut the run down.
                model.half_leave(&mut copy, &mut Dice(1));
            } else {
                model.everybody_leaves(&mut copy);
            }
            *tally.entry(name.into()).or_default() += 1;
        }
    }
    (model, tally)
}

/// [`play`] or [`play_out`].
type Play<S> = fn(&mut S, &[Op], u64, &Cell<usize>) -> Tally;

/// Plays; where the run fails, gives the number of the operation it failed at.
fn fails<S: System>(play: Play<S>, real: &mut S, ops: &[Op], operators: u64) -> Option<usize> {
    let at = Cell::new(0);
    catch_unwind(AssertUnwindSafe(|| play(real, ops, operators, &at))).is_err().then(|| at.get())
}

/// Leaves out ever smaller stretches as long as the run still fails, for as long as `patience` lasts.
pub fn shrink<S: System>(play: Play<S>, fresh: &dyn Fn() -> S, mut ops: Vec<Op>, operators: u64, patience: Duration) -> Vec<Op> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let end = Instant::now() + patience;
    let cut = |ops: &mut Vec<Op>, at: usize| ops.truncate(at + 1);
    if let Some(at) = fails(play, &mut fresh(), &ops, operators) {
        cut(&mut ops, at);
    }
    let mut size = ops.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < ops.len() && Instant::now() < end {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + size).min(ops.len()));
            match fails(play, &mut fresh(), &fewer, operators) {
                Some(failed) => {
                    cut(&mut fewer, failed);
                    ops = fewer;
                }
                None => at += size,
            }
        }
        size /= 2;
    }
    std::panic::set_hook(hook);
    ops
}

/// Drives `length` operations for each seed, each on a new system. Every event must happen at least `least` times over all of them, and
/// ether must be forced in as often.
pub fn drive<S: System>(fresh: &dyn Fn() -> S, seeds: Range<u64>, length: usize, operators: u64, least: u64) {
    drive_some(fresh, seeds, length, operators, least);
}

fn drive_some<S: System>(fresh: &dyn Fn() -> S, seeds: Range<u64>, length: usize, operators: u64, least: u64) -> Tally {
    let seen = drive_all("driven", fresh, seeds, length, operators, operations);
    let is_plain = |name: &&str| !VALIDATED_NODES.contains(name) && !BY_REASON.contains(name);
    let events = events_of("nodes").chain(events_of("tasks")).filter(is_plain);
    demand(&seen, events.chain(PLAIN), least);
    seen
}

/// Asserts that each of these happened at least so often.
fn demand(seen: &Tally, names: impl IntoIterator<Item = &'static str>, least: u64) {
    for name in names {
        assert!(seen.get(name).copied().unwrap_or(0) >= least, "{name} hardly happened: {seen:?}");
    }
}

/// Drives one run of each seed, and prints the tally under a name for the page on proofs.
fn drive_all<S: System>(
    name: &str,
    fresh: &dyn Fn() -> S,
    seeds: Range<u64>,
    length: usize,
    operators: u64,
    operations: Operations,
) -> Tally {
    let mut seen = Tally::new();
    let mut driven = 0;
    for seed in seeds.clone() {
        let ops = operations(seed, length, operators);
        match catch_unwind(AssertUnwindSafe(|| play_out(&mut fresh(), &ops, operators, &Cell::new(0)))) {
            Ok(tally) => tally.into_iter().for_each(|(name, n)| *seen.entry(name).or_default() += n),
            Err(_) => {
                let short = shrink(play_out, fresh, ops, operators, Duration::from_mins(2));
                println!("seed {seed} fails with {} operations: {short:#?}", short.len());
                play_out(&mut fresh(), &short, operators, &Cell::new(0));
                panic!("seed {seed} fails, but what it was cut down to does not");
            }
        }
        driven += length;
    }
    let shown = |refused: bool| {
        let names = seen.iter().filter(|(name, _)| name.starts_with(REFUSED) == refused);
        names.map(|(name, times)| format!("{name} {times}")).collect::<Vec<_>>().join(", ")
    };
    println!("{}", shown(true));
    let range = format!("{} to {}", seeds.start, seeds.end - 1);
    proof(
        name,
        &[("operations", &driven), ("seeds", &range), ("each", &length), ("operators", &operators), ("happened", &shown(false))],
    );
    seen
}

/// The events that `abi/IMuster.sol` declares under a heading. The runs demand them, so only those are named here that happen in another
/// network than their heading says.
pub fn events_of(subject: &str) -> impl Iterator<Item = &'static str> {
    let heading = format!("-- events of {subject}\n");
    let (_, from) = SOURCE.split_once(&heading).expect("a heading of the interface");
    let to = from.find("    // --").expect("another heading");
    let events: Vec<_> = from[..to].lines().filter_map(|line| line.trim().strip_prefix("event ")?.split('(').next()).collect();
    assert!(!events.is_empty(), "no events of {subject}");
    events.into_iter()
}

/// Events of nodes that take a validation.
pub const VALIDATED_NODES: [&str; 4] = ["NodeKickedOut", "NodeSetAside", "NodeWaits", "ScoreRecorded"];

/// Counted by its reason.
const BY_REASON: [&str; 1] = ["TaskAborted"];

/// Events of validation that happen only where groups are chosen by ratings.
const NOT_VALIDATED: [&str; 3] = ["GroupChosen", "NodeRated", "ProfileSet"];

/// Further events of a network where few tasks are validated.
const PLAIN: [&str; 13] = [
    "a batch created",
    "a batch drew",
    "refused: RefusedInBatch",
    "rests after an error",
    "TaskAborted0",
    "TaskAborted1",
    "TaskAborted2",
    "TaskAborted3",
    "ParameterProposed",
    "ParameterChanged",
    "PausedChanged",
    "TreasurySwept",
    "ether forced in",
];

/// The same in memory, where scores are recorded too without a judgement.
pub fn drive_native(seeds: Range<u64>, length: usize, operators: u64, least: u64) {
    let seen = drive_some(&World::new, seeds, length, operators, least);
    demand(&seen, ["ScoreRecorded", "NodeKickedOut"], least);
}

/// Further events of a network where most tasks are validated.
const VALIDATED: [&str; 94] = [
    "a group's models asked for",
    "a queued task that raises H",
    "raised in a group that is not scored",
    "H fell for a withheld answer",
    "NodeKickedOut",
    "TaskAborted4",
    "revealed alone",
    "revealed alone and paid in full",
    "unrevealed",
    "validate paid",
    "validate paid the reserve",
    "rests after an error",
    "no rest after an error",
    "freed by an error revealed",
    "freed by another's error",
    "freed by its own answer",
    "freed by another's answer",
    "a failed member's part unshared",
    "reserved in vain too lately",
    "group of three",
    "group of two",
    "group of one",
    "call undecided",
    "call too old",
    "busy node called",
    "called node began",
    "held",
    "NodeSetAside",
    "NodeWaits",
    "three drawn",
    "three undecided",
    "three too old",
    "three not there",
    "three reserved undrawn",
    "one reserved",
    "two reserved",
    "three reserved",
    "another task than the best",
    "a node waits",
    "waited in vain",
    "idle beside a queued task after an error",
    "a waiting node left",
    "waiting node called",
    "a reserved node drawn",
    "a reserved node not drawn",
    "a reserved node returned",
    "expelled while reserved",
    "one of three alone",
    "member expired",
    "member late at the judgement",
    "judgement put off",
    "settled",
    "settled late",
    "scored",
    "not scored",
    "agreed 3",
    "agreed 2",
    "agreed 2 against 1",
    "alone",
    "a validator alone",
    "differing",
    "unanswered",
    "slashed for a wrong answer",
    "slashed for withholding",
    "slashed stake",
    "slashed credit",
    "slashed after it left",
    "expelled",
    "expelled from a task",
    "kicked out by a judgement",
    "refused: BadAnswerKind",
    "refused: BadImages",
    "refused: BadUnits",
    "refused: CommitFirst",
    "refused: DeadlineNotPassed",
    "refused: DeadlinePassed",
    "refused: DrawsDue",
    "refused: FeeTooHigh",
    "refused: GpuNotListed",
    "refused: GpuUnknown",
    "refused: GroupUnknown",
    "refused: HashUnknown",
    "refused: KickedOut",
    "refused: NodeUnknown",
    "refused: NotAMember",
    "refused: NotAnOperator",
    "refused: NotCommitted",
    "refused: NotOpen",
    "refused: NotSampled",
    "refused: NotWhatWasCommitted",
    "refused: NothingToCommit",
    "refused: RevealsOpen",
    "refused: Sampled",
    "refused: TaskNotRunning",
];

/// Events that come there now and then.
const SELDOM: [&str; 19] = [
    "a waiting node paused",
    "a waiting node poked",
    "an idle node poked and reserved",
    "a reserved node drawn on its way out",
    "a reserved node paused at last",
    "a reserved node left at last",
    "reserved node called",
    "agreed in a chain",
    "nothing added where the first did not answer",
    "settled without one called",
    "call without a task",
    "expelled from a group",
    "expelled while called",
    "expelled from a group after its deadline",
    "slashed returned stake",
    "refused: NotOwner",
    "refused: RedundancyUnsupported",
    "refused: StakeLocked",
    "refused: TasksPending",
];

/// Operations of a network in which most tasks are validated. There must be at least `least` of each outcome and of each of its
/// consequences; `most` of them, a long list, are enough for seldom ones too.
pub fn drive_validating<S: System>(fresh: &dyn Fn() -> S, seeds: Range<u64>, length: usize, operators: u64, least: u64) {
    let seen = drive_all("driven", fresh, seeds.clone(), length, operators, validated);
    let events = events_of("validation").filter(|name| !NOT_VALIDATED.contains(name));
    demand(&seen, events.chain(VALIDATED), least);
    if (seeds.end - seeds.start) * length as u64 >= 200_000 {
        demand(&seen, SELDOM, 1);
    }
}

/// Events of a network where most tasks are given to groups that are chosen by ratings.
const RATED: [&str; 45] = [
    "a group's models asked for",
    "raised in a group that is not scored",
    "GroupChosen",
    "GroupFormed",
    "GroupSettled",
    "MemberJudged",
    "MemberTimedOut",
    "NodeRated",
    "NodeWaits",
    "ProfileSet",
    "rated: first-fit",
    "rated: tight-fit",
    "rated: fixed-size",
    "rated: random-fit",
    "rated: target reached",
    "rated: target missed",
    "rated: least group",
    "rated: group between",
    "rated: largest group",
    "rated: paid for fewer than the profile says now",
    "rated: too few there",
    "rated: too old",
    "rated: an idle node that H keeps out",
    "rated: scored",
    "rated: not scored",
    "rated: majority",
    "rated: majority against others",
    "rated: agreed without a majority",
    "rated: given to another group",
    "rated: no majority",
    "rated: unanswered",
    "rated: a node waits",
    "rated: a third node waits",
    "rated: one reserved",
    "rated: two or three reserved",
    "rated: more than three reserved",
    "rated: a reserved node chosen",
    "rated: a reserved node not chosen",
    "rated: a reserved node returned",
    "too soon to wait again",
    "waited in vain",
    "refused: BadProfile",
    "refused: FeeTooHigh",
    "refused: GpuNotListed",
    "refused: NobodyCanRun",
];

/// Events that come there now and then.
const RATED_SELDOM: [&str; 3] = ["rated: agreed in a chain", "rated: another than the best", "rated: one alone"];

/// Operations of a network in which groups are chosen by ratings; else as [`drive_validating`].
pub fn drive_rating<S: System>(fresh: &dyn Fn() -> S, seeds: Range<u64>, length: usize, operators: u64, least: u64) {
    let seen = drive_all("driven", fresh, seeds.clone(), length, operators, rated);
    demand(&seen, RATED, least);
    if (seeds.end - seeds.start) * length as u64 >= 200_000 {
        demand(&seen, RATED_SELDOM, 1);
    }
}

/// Events where more nodes are idle than a pool holds.
const DRAWN: [&str; 7] = [
    "rated: drawn pool",
    "rated: chosen by one draw and formed by another",
    "rated: words written for the first time",
    "rated: first-fit",
    "rated: tight-fit",
    "rated: fixed-size",
    "rated: random-fit",
];

/// The same of a network of so many that pools are drawn, where every fourth task or so requires many models.
pub fn drive_drawn_pools<S: System>(fresh: &dyn Fn() -> S, seeds: Range<u64>, length: usize, operators: u64, least: u64) {
    let seen = drive_all("driven", fresh, seeds, length, operators, drawn);
    demand(&seen, DRAWN, least);
}

/// Events where so many groups are settled that targets are computed anew.
const SETTLED: [&str; 4] =
    ["rated: adaptive target set", "rated: predictive target set", "rated: predicted target checked", "rated: a rating halved"];

/// Operations of quiet networks with one application each, so many that targets are set.
pub fn drive_settling<S: System>(fresh: &dyn Fn() -> S, seeds: Range<u64>, length: usize, operators: u64, least: u64) {
    let seen = drive_all("driven", fresh, seeds, length, operators, settled);
    demand(&seen, SETTLED, least);
}

fn validated(seed: u64, length: usize, operators: u64) -> Vec<Op> {
    validating(&mut Dice(seed), length, operators)
}

fn rated(seed: u64, length: usize, operators: u64) -> Vec<Op> {
    rating(&mut Dice(seed), length, operators)
}

/// As [`rated`], but every fourth task requires so many models that large groups are expensive.
fn drawn(seed: u64, length: usize, operators: u64) -> Vec<Op> {
    let mut ops = rated(seed, length, operators);
    for op in ops.iter_mut().step_by(4) {
        if let Op::Create { models, .. } = op {
            *models = 0xff;
        }
    }
    ops
}

fn settled(seed: u64, length: usize, operators: u64) -> Vec<Op> {
    settling(&mut Dice(seed), length, operators)
}

/// The networks that operations are made for: name, operations of a seed, operators.
const STREAMS: [(&str, Operations, usize, u64); 6] = [
    ("plain", operations, 2_400, 14),
    ("wide", operations, 4_000, 90),
    ("validated", validated, 800, 24),
    ("rated", rated, 800, 24),
    ("drawn", drawn, 600, 64),
    ("settled", settled, 8_000, 12),
];

/// Drives about so many operations of each stream that `wanted` takes, of seeds from `first` on. No event is demanded.
pub fn drive_fresh<S: System>(fresh: &dyn Fn() -> S, first: u64, least: usize, wanted: &dyn Fn(&str) -> bool) {
    for (name, operations, length, operators) in STREAMS.into_iter().filter(|(name, ..)| wanted(name)) {
        println!("{name}: seeds from {first} on");
        let (seeds, begun) = (least.div_ceil(length) as u64, Instant::now());
        drive_all("fresh", fresh, first..first + seeds, length, operators, operations);
        let (driven, seconds) = (seeds * length as u64, begun.elapsed().as_secs());
        // script/fresh reads this line, as it is.
        proof("stream", &[("stream", &name), ("operations", &driven), ("seeds", &seeds), ("seconds", &seconds)]);
    }
}
