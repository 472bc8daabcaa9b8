//! A plain model of the network, written apart from muster_core, beside the real thing: random
//! operations, everything compared after every one of them.
//!
//! The model foretells every event and every refusal. Only what chance decides is taken from the
//! events (which node a draw fell on, which place of a queue a task got) and checked to be allowed.

use crate::properties::{self, Progress};
use crate::system::{self, Call, Done, Logged, System};
use crate::world::stage::*;
use crate::world::*;
use alloy_primitives::{keccak256, FixedBytes, B256, U256};
use alloy_sol_types::{SolCall, SolInterface};
use muster_core::id::TaskId;
use muster_core::word::Address;
use muster_protocol::abi::IMuster::{self, IMusterCalls as C, IMusterEvents as E, *};
use muster_protocol::flow::draw::Rng;
use muster_protocol::parameters::PARAMETERS;
use muster_protocol::Host;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

mod compare;
pub mod leaving;
mod left;

const NAMES: [&str; 3] = ["RTX 4090", "A100", "a very long name of a card, longer than one word"];
const SIZES: [u16; 4] = [8, 24, 40, 80];
const EPS: f64 = 1e-11;
/// Blocks whose hash can be had.
const HISTORY: u64 = 393_168;
/// GPU groups of which a draw of three that answer alike misses none.
const LOOKED_THROUGH: usize = 6;
/// Parameters that must be proposed.
const DELAYED: [&str; 13] = [
    "startFeeBps",
    "queueTime",
    "minStake",
    "unbonding",
    "kickoutMilli",
    "sampleWindow",
    "revealWindow",
    "openMost",
    "slashTimes",
    "scorePool",
    "hammingMost",
    "slashImages",
    "groupFee",
];
/// Accounts that work for others' nodes: eight.
pub const WORKERS: std::ops::Range<u64> = 100_000..100_008;
/// Every fee is below this many wei.
const FEE_END: u128 = 1 << 87;

/// The least stake at the initialisation, in stake units.
const FIRST_LEAST: u64 = 400_000;

/// The stake that a slashed node must have left to stay, in wei, where joining takes so many stake units: 15/16 of that, rounded up.
fn kept_at_least(least: u64) -> u128 {
    (15 * least as u128).div_ceil(16) * STAKE_UNIT as u128
}
/// Draws of a task's validators that may stay undecided.
const CALL_DRAWS: u64 = 8;
/// Draws of a task's nodes by ratings that may stay undecided.
const RATED_DRAWS: u64 = 16;
/// Groups that a task chosen by ratings can be given to after its first, at most.
pub(crate) const RESCHEDULES: u64 = 8;
/// Tasks that can be Pending at once.
const PENDING: usize = 4_095;
/// Calls that can wait at once.
const CALLS: usize = 255;

// ---------------------------------------------------------------- operations

/// An operation with loose numbers; [`Model::step`] makes a call of it that fits the state.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Op {
    Join {
        who: u64,
        gpu: u64,
        vram: u64,
        models: u64,
        stake: u64,
    },
    Raise {
        who: u64,
        amount: u64,
    },
    Pause(u64),
    Resume(u64),
    Quit(u64),
    /// Of workers: an operator names an account, which accepts or leaves.
    Work {
        who: u64,
        how: u64,
    },
    /// Where somebody's bytes can be had.
    Stores {
        who: u64,
        how: u64,
    },
    Withdraw(u64),
    Report {
        who: u64,
        models: u64,
    },
    Remove {
        who: u64,
        models: u64,
    },
    Purge {
        model: u64,
        position: u64,
    },
    Poke(u64),
    Create {
        who: u64,
        kind: u64,
        units: u64,
        vram: u64,
        gpu: u64,
        models: u64,
        fee: u64,
        /// Its redundancy policy.
        policy: u64,
    },
    /// Some tasks in one call.
    Batch {
        seed: u64,
        how: u64,
    },
    Cancel {
        pick: u64,
        stranger: bool,
    },
    ExpireQueued {
        pick: u64,
        by: u64,
    },
    Submit {
        pick: u64,
        by: u64,
    },
    Fault {
        pick: u64,
        by: u64,
    },
    Expire {
        pick: u64,
        by: u64,
    },
    Dispatch(u64),
    Commit {
        pick: u64,
        by: u64,
        answer: u64,
    },
    Reveal {
        pick: u64,
        by: u64,
        how: u64,
    },
    Validate {
        pick: u64,
        by: u64,
    },
    Form,
    Settle {
        pick: u64,
        by: u64,
    },
    /// Says how an application's groups are chosen.
    Profile {
        who: u64,
        sizes: u64,
        targeting: u64,
        target: u64,
    },
    /// Says of a GPU group whether its nodes answer alike.
    List {
        group: u64,
        on: bool,
    },
    Score {
        node: u64,
        score: u64,
    },
    Parameter {
        which: u64,
        value: u64,
    },
    /// A parameter by its name, set or proposed by the owner.
    Set(&'static str, u64),
    Accept(u64),
    Switch(bool),
    Sweep,
    /// One of a hundred names, good and bad.
    Name(u64),
    /// Ether that no function of the contract let in.
    Force(u64),
    /// Lets time pass and ends validated tasks, until there are none.
    Rest,
    Pass {
        blocks: u64,
        seconds: u64,
    },
}

/// A random operation for a network of so many operators.
pub fn random_op(d: &mut Dice, operators: u64) -> Op {
    let who = 1 + d.below(operators);
    let mask = d.bits() & d.bits() & 0x3ff;
    match d.below(127) {
        123..=126 => Op::Batch { seed: d.bits(), how: d.bits() },
        118..=122 => Op::Work { who, how: d.bits() },
        106..=113 => random_validation(d),
        114 => Op::List { group: d.bits(), on: d.below(5) > 0 },
        115 => Op::Pass { blocks: 1 + d.below(3), seconds: d.below(30) },
        116 => Op::Parameter { which: d.bits(), value: d.bits() },
        117 => random_profile(d),
        0..=7 => Op::Join { who, gpu: d.bits(), vram: d.bits(), models: mask, stake: d.bits() },
        8..=9 => Op::Raise { who, amount: d.bits() },
        10..=12 => Op::Pause(who),
        13..=16 => Op::Resume(who),
        17..=18 => Op::Quit(who),
        19..=20 => Op::Withdraw(1 + d.below(operators + 5)),
        21..=23 => Op::Report { who, models: mask },
        24..=26 => Op::Remove { who, models: mask & d.bits() },
        27..=28 => Op::Purge { model: 1 + d.below(11), position: d.below(operators) },
        29..=31 => Op::Poke(d.below(operators + 2)),
        32..=51 => Op::Create {
            who: d.bits(),
            kind: d.bits(),
            units: d.bits(),
            vram: d.bits(),
            gpu: d.bits(),
            models: mask & d.bits() & d.bits() | (d.below(3) / 2) << d.below(10),
            fee: d.bits(),
            policy: d.bits(),
        },
        52..=54 => Op::Cancel { pick: d.bits(), stranger: d.below(8) == 0 },
        55..=68 => Op::Submit { pick: d.bits(), by: d.below(20) },
        69..=71 => Op::Fault { pick: d.bits(), by: d.below(20) },
        72..=78 => Op::Expire { pick: d.bits(), by: d.bits() },
        79..=82 => Op::Dispatch(d.below(18)),
        83..=86 => Op::Score { node: d.bits(), score: d.bits() },
        87..=88 => Op::Parameter { which: d.bits(), value: d.bits() },
        89 => Op::Switch(d.below(4) == 0),
        90 => Op::Sweep,
        100 => Op::Force(d.bits()),
        101..=103 => Op::ExpireQueued { pick: d.bits(), by: d.bits() },
        104 => Op::Accept(d.bits()),
        105 => Op::Name(d.below(100)),
        99 => Op::Stores { who, how: d.bits() },
        91 => Op::Pass { blocks: 250 + d.below(20), seconds: d.below(4_000) },
        92 => Op::Pass { blocks: HISTORY - 10 + d.below(20), seconds: d.below(4_000) },
        93 => Op::Pass { blocks: 1, seconds: d.below(200_000) },
        94..=95 => Op::Purge { model: 1 + d.below(11), position: d.below(3) },
        _ => Op::Pass { blocks: d.below(3), seconds: d.below(150) },
    }
}

/// A random operation of the life of a task whose answers are checked.
fn random_validation(d: &mut Dice) -> Op {
    match d.below(20) {
        0..=6 => Op::Commit { pick: d.bits(), by: d.below(20), answer: d.bits() },
        7..=13 => Op::Reveal { pick: d.bits(), by: d.bits(), how: d.bits() },
        14..=17 => Op::Validate { pick: d.bits(), by: d.bits() },
        18 => Op::Form,
        _ => Op::Settle { pick: d.bits(), by: d.bits() },
    }
}

/// A random way for one of the applications to have groups chosen.
fn random_profile(d: &mut Dice) -> Op {
    Op::Profile { who: d.bits(), sizes: d.bits(), targeting: d.bits(), target: d.bits() }
}

/// Operations of a network in which most tasks are validated, some by being sampled, others by taking three nodes at once. The first make
/// groups likely, and then comes a mix in which groups are formed.
pub fn validating(d: &mut Dice, length: usize, operators: u64) -> Vec<Op> {
    let mut ops = vec![
        Op::Set("scorePool", [3, 3, 3, 5][d.below(4) as usize]),
        Op::Set("openMost", [1, 2, 2, 3, 8][d.below(5) as usize]),
        Op::Set("slashTimes", [1, 20, 20, 100][d.below(4) as usize]),
        Op::Set("slashImages", d.below(2)),
        Op::Set("unbonding", [500, 86_400][d.below(2) as usize]),
        Op::Set("hammingMost", [0, 6, 6, 8][d.below(4) as usize]),
        Op::Set("sampleBps", [2_000, 5_000, 10_000][d.below(3) as usize]),
        Op::Set("holdTime", [0, 10, 60, 60, 255][d.below(5) as usize]),
        Op::Set("drawDelay", [0, 1, 1, 1, 2][d.below(5) as usize]),
        Op::Pass { blocks: 1, seconds: 172_800 },
    ];
    ops.extend((0..DELAYED.len() as u64).map(Op::Accept));
    // In eighths, how many tasks take three nodes at once, and how many take one.
    let (three, single) = ([0, 4, 7, 7][d.below(4) as usize], d.below(4) / 2);
    // A few of one kind, so that there is somebody to agree with; in half of the networks there are others too.
    let mixed = d.below(2);
    ops.extend((1..=operators.min(8)).map(|who| join_like(who, mixed, d)));
    ops.extend((0..=2 * mixed).map(|i| Op::List { group: 16 * i, on: true }));
    while ops.len() + 1 < length {
        ops.push(match d.below(41) {
            0..=2 => random_op(d, operators),
            3..=9 => create(d, mixed, |d| match d.below(8) {
                n if n < three => 2,
                n if n < three + single => 4,
                _ => 0,
            }),
            10..=29 => random_validation(d),
            30..=34 => Op::Pass { blocks: 1 + d.below(3), seconds: d.below(20) },
            35..=36 => Op::Dispatch(4),
            37 => join_like(1 + d.below(operators), mixed, d),
            which @ 38..=39 => upheaval(which == 39, d, operators),
            _ => Op::Expire { pick: d.bits(), by: d.bits() },
        });
    }
    ops.push(Op::Rest);
    ops
}

/// A task of few models, for nodes of any VRAM or, in a `mixed` network, of some.
fn create(d: &mut Dice, mixed: u64, policy: impl FnOnce(&mut Dice) -> u64) -> Op {
    Op::Create {
        who: d.bits(),
        kind: d.bits(),
        units: d.bits(),
        vram: mixed * d.bits(),
        gpu: d.bits(),
        models: d.bits() & d.bits() & d.bits() & d.bits() & 0x3ff,
        fee: d.bits(),
        policy: policy(d),
    }
}

/// Operations of a network in which most tasks are given to groups that are chosen by their members' ratings.
pub fn rating(d: &mut Dice, length: usize, operators: u64) -> Vec<Op> {
    let mut ops = vec![
        Op::Set("scorePool", [3, 3, 4, 6][d.below(4) as usize]),
        Op::Set("openMost", [2, 3, 8, 8][d.below(4) as usize]),
        Op::Set("slashTimes", [1, 20][d.below(2) as usize]),
        Op::Set("penaltyPpm", [300_000, 1_000_000][d.below(2) as usize]),
        Op::Set("hammingMost", [0, 6, 6, 8][d.below(4) as usize]),
        Op::Set("sampleBps", [2_000, 10_000][d.below(2) as usize]),
        Op::Set("alphaMilli", [400, 2_000, 2_000][d.below(3) as usize]),
        Op::Set("holdTime", [0, 10, 60, 60, 255][d.below(5) as usize]),
        Op::Set("drawDelay", [0, 1, 1, 1, 2][d.below(5) as usize]),
        Op::Pass { blocks: 1, seconds: 172_800 },
    ];
    ops.extend((0..DELAYED.len() as u64).map(Op::Accept));
    let mixed = d.below(3) / 2;
    // More than a pool holds only where there are many more.
    let at_first = if operators > 48 { operators } else { operators.min(4 + d.below(12)) };
    ops.extend((1..=at_first).map(|who| join_like(who, mixed, d)));
    ops.extend((0..=2 * mixed).map(|i| Op::List { group: 16 * i, on: true }));
    ops.extend((0..4).map(|who| Op::Profile { who, sizes: d.bits(), targeting: d.bits(), target: d.bits() }));
    // In eighths, how many tasks take one node or three; and in how great a hurry operators are.
    let (others, hurry) = (d.below(4), 5 + d.below(20));
    while ops.len() + 1 < length {
        ops.push(match d.below(64) {
            0..=2 => random_op(d, operators),
            3..=7 => create(d, mixed, |d| if d.below(8) < others { [2, 4, 0][d.below(3) as usize] } else { 7 }),
            8..=25 => Op::Commit { pick: d.bits(), by: d.below(40), answer: d.bits() },
            26..=49 => Op::Reveal { pick: d.bits(), by: d.bits(), how: d.bits() },
            50..=51 => random_validation(d),
            52..=54 => Op::Pass { blocks: 1 + d.below(3), seconds: d.below(hurry) },
            55..=56 => Op::Dispatch(4),
            57 => join_like(1 + d.below(operators), mixed, d),
            58 if others < 2 => random_profile(d),
            // Idle ones of a low H are in no pool then.
            58 => Op::Set("exclusionPpm", [100_000, 900_000][d.below(2) as usize]),
            59 => upheaval(d.below(2) == 0, d, operators),
            60 => Op::Settle { pick: d.bits(), by: d.bits() },
            61 => Op::Resume(1 + d.below(operators)),
            _ => Op::Expire { pick: d.bits(), by: d.bits() },
        });
    }
    ops.push(Op::Rest);
    ops
}

/// Operations of a quiet network in which one application has group after group chosen, so that its target is set anew now and then.
pub fn settling(d: &mut Dice, length: usize, operators: u64) -> Vec<Op> {
    let mut ops = vec![Op::Set("scorePool", 3), Op::Set("openMost", 8), Op::Set("penaltyPpm", 1_000_000)];
    ops.extend([Op::Pass { blocks: 1, seconds: 172_800 }, Op::Accept(0), Op::Accept(0)]);
    ops.extend((1..=operators).map(|who| join_like(who, 0, d)));
    // First-fit and Tight-fit mostly, of 3 to 9 nodes; predictive or adaptive.
    let algorithm = [1, 1, 2, 2, 2, 3, 0][d.below(7) as usize];
    let sizes = algorithm << 3 | d.below(8) << 5 | 0xff << 16;
    let targeting = (d.bits() & !0xfff) | [0, 0, 2][d.below(3) as usize];
    ops.push(Op::Profile { who: 0, sizes, targeting, target: d.bits() });
    while ops.len() + 1 < length {
        ops.extend((0..=d.below(2)).map(|_| Op::Create {
            who: 4,
            kind: 0,
            units: 16 + d.bits(),
            vram: 0,
            gpu: 0,
            models: 0,
            fee: 19,
            policy: 7,
        }));
        ops.extend([Op::Pass { blocks: 2, seconds: 1 + d.below(9) }, Op::Dispatch(4)]);
        ops.extend((0..4 + d.below(4)).map(|_| Op::Commit { pick: d.below(1 << 20), by: 1, answer: d.bits() }));
        ops.push(Op::Pass { blocks: 1, seconds: [1, 1, 1, 20_000][d.below(4) as usize] });
        ops.extend((0..4 + d.below(4)).map(|_| Op::Reveal { pick: d.below(1 << 20), by: 1, how: 63 }));
        ops.extend((0..d.below(3)).map(|_| Op::Settle { pick: d.below(1 << 20), by: 1 }));
    }
    ops.truncate(length - 1);
    ops.push(Op::Rest);
    ops
}

/// Joins with a GPU that most have; where not, with any of a few others.
fn join_like(who: u64, mixed: u64, d: &mut Dice) -> Op {
    let (gpu, vram) = [(0, 1), (0, 1), (0, 1), (1, 1), (0, 2)][(mixed * d.below(5)) as usize];
    Op::Join { who, gpu, vram, models: d.bits() & d.bits() & 0x3ff, stake: d.below(5) }
}

/// Operations beside the life of tasks in a network in which most are validated: those that happen to some node, or less `often` those that
/// change the course of others.
fn upheaval(often: bool, d: &mut Dice, operators: u64) -> Op {
    if often {
        match d.below(14) {
            12..=13 => Op::Work { who: 1 + d.below(operators), how: d.bits() },
            0 => Op::Pause(1 + d.below(operators)),
            1..=2 => Op::Resume(1 + d.below(operators)),
            3 => Op::Quit(1 + d.below(operators)),
            5 => Op::List { group: d.bits(), on: d.below(3) > 0 },
            // An operator whose stake was returned.
            6 => Op::Withdraw(4 * d.below(operators)),
            4 | 7 => Op::Fault { pick: d.bits(), by: 1 },
            _ => Op::Poke(d.below(4 * operators)),
        }
    } else {
        match d.below(10) {
            0 => Op::Pass { blocks: 1 + d.below(3), seconds: d.below(8_000) },
            1 => Op::Pass { blocks: 2, seconds: 60 + d.below(90) },
            2 => Op::Pause(1 + d.below(operators)),
            3 => Op::Resume(1 + d.below(operators)),
            4 => Op::Quit(1 + d.below(operators)),
            5 => Op::Withdraw(1 + d.below(operators + 5)),
            // The number that holds a node changes while some are held.
            6 => Op::Set("openMost", 1 + d.below(3)),
            7 => Op::Pass { blocks: 1, seconds: 172_800 },
            8 => Op::Accept(d.bits()),
            // As many 2s as a pool holds: the next score of 0 kicks it out.
            _ => Op::Score { node: d.bits(), score: (1 << 60) + 4 },
        }
    }
}

/// Operators' answers, as [`answer_of`] has them: mostly right.
const VARIANTS: [u64; 16] = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 0, 4, 4, 5, 6, 7];

fn models_of(mask: u64) -> Vec<u64> {
    (0..10).filter(|i| mask >> i & 1 != 0).map(|i| i + 1).collect()
}

// ---------------------------------------------------------------- the model

/// The choice of a group.
#[derive(Clone, Debug)]
struct Choice {
    /// The candidates.
    pool: Vec<u32>,
    /// Whether those were all there were.
    everybody: bool,
    /// Nodes that were reserved in vain, and let go since.
    gone: Vec<u32>,
    /// Whether the group is scored.
    scored: bool,
    /// The application's profile then, with the target that was chosen for.
    profile: Profile,
}

#[derive(Clone, Debug)]
struct Task {
    id: u64,
    creator: Address,
    fee: u128,
    estimate: u64,
    limit: u64,
    bps: u128,
    vram: u16,
    /// Required GPU group.
    gpu: Option<u32>,
    models: Vec<u64>,
    /// Block of the draw, ticket, or deadline.
    at: u64,
    /// Since when it is queued.
    since: u64,
    /// Whether its success can raise H.
    boosts: bool,
    kind: u8,
    /// Images of an answer; 0 where answers must be equal.
    images: u8,
    /// Its redundancy policy: 0 to 3.
    policy: u8,
    /// Nodes that its fee is for.
    nodes: u64,
    /// Groups it was given to after one without a majority.
    regrouped: u64,
    /// Draws of nodes by ratings that stayed undecided.
    undecided: u64,
    /// The probability in ten-thousandths with which it is validated.
    sample_bps: u128,
    /// Of one that can be sampled: whether its scope had nodes enough for scores at its creation, and its answer could be compared at its
    /// commitment.
    scored: bool,
    /// The slash of a wrong or withheld answer, in parts of its fee.
    slash_times: u128,
    /// When its node started it.
    began: u64,
    /// Nodes that wait for its draw, of a Pending task that takes several.
    reserved: Vec<u32>,
    /// Of a Pending task whose nodes are chosen, and whose group another draw forms.
    chosen: Option<Choice>,
    part: Part,
}

/// The state of a node's task.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Part {
    /// It runs it, alone.
    Alone,
    /// It has committed to its answer.
    Committed(Commitment),
    /// It was sampled, and its validators are being drawn.
    Calling(Commitment),
    /// It runs it in the validation group at a place.
    Member(u32),
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Commitment {
    kept: FixedBytes<24>,
    /// When it was made.
    at: u64,
    elapsed: u64,
    /// The block whose hash decides.
    block: u64,
    /// The lot drawn from that, once it could be.
    lot: Option<u64>,
}

/// A draw of validators that waits.
#[derive(Clone, Debug)]
struct Waiting {
    id: u64,
    node: u32,
    block: u64,
    tries: u64,
}

/// A validation group.
#[derive(Clone, Debug)]
struct Team {
    task: Task,
    scored: bool,
    /// Whether images slashed when it was formed.
    slash_images: bool,
    members: Vec<Member>,
}

/// One of its members; stages as in `IMuster.MemberView`.
#[derive(Clone, Debug)]
struct Member {
    node: u32,
    stage: u8,
    moment: u64,
    elapsed: u64,
    /// The value it committed to or revealed.
    answer: B256,
}

impl Team {
    /// Whether a member can be slashed for its commitment: only then it is an open commitment.
    fn liable(&self) -> bool {
        self.scored && self.task.policy != 3 && (self.task.images == 0 || self.slash_images)
    }

    /// The nodes whose commitments are open: those that can still be slashed, as far as equal words say so.
    fn open(&self) -> Vec<u32> {
        let takes_part = |m: &&Member| m.stage == COMMITTED || m.stage == ANSWERED;
        let all = self.members.iter().filter(takes_part).count() == 3;
        let alone =
            |m: &Member| self.members.iter().filter(|other| other.stage == ANSWERED && other.answer == m.answer).count() == 1;
        let open = |m: &&Member| m.stage == COMMITTED || m.stage == ANSWERED && all && alone(m);
        self.members.iter().filter(|_| self.liable()).filter(open).map(|m| m.node).collect()
    }

    /// Since when its answers can be revealed.
    fn opens(&self, now: u64) -> Option<u64> {
        let waits = |m: &Member| m.stage == CALLED || m.stage == RUNNING && now <= m.moment;
        if self.members.iter().any(waits) {
            return None;
        }
        // Not before it was formed.
        self.members.iter().map(|m| m.moment).max().map(|last| last.max(self.task.at))
    }
    fn all_revealed(&self) -> bool {
        self.members.iter().all(|m| m.stage != COMMITTED)
    }
    /// Whether two answers are the same.
    fn same(&self, a: B256, b: B256, hamming: u64) -> bool {
        if self.task.images == 0 {
            return a == b;
        }
        (0..4).all(|image| {
            let bits = (0..8).map(|i| (a[8 * image + i] ^ b[8 * image + i]).count_ones() as u64).sum::<u64>();
            bits <= hamming
        })
    }
    /// Members that answered the same as another, the fastest first.
    fn right(&self, hamming: u64) -> Vec<usize> {
        let answered: Vec<usize> = (0..self.members.len()).filter(|&i| self.members[i].stage == ANSWERED).collect();
        let agrees = |i: usize| {
            let with = |j: usize| i != j && self.same(self.members[i].answer, self.members[j].answer, hamming);
            answered.iter().any(|&j| with(j))
        };
        let mut right: Vec<usize> = answered.iter().copied().filter(|&i| agrees(i)).collect();
        right.sort_by_key(|&i| (self.members[i].elapsed, self.members[i].moment, i));
        right
    }
}

/// The part of a commitment that is kept.
fn kept_of(commitment: B256) -> FixedBytes<24> {
    FixedBytes::from_slice(&commitment[..24])
}

/// The answers of these worlds' operators: the right answer, others, an error, and a value that is no answer at all.
fn answer_of(task: &Task, variant: u64) -> (u8, B256) {
    let word = |tag: u64| keccak256([task.id, tag].map(u64::to_be_bytes).concat());
    if variant == 6 {
        return (1, B256::with_last_byte(3 + (task.id % 250) as u8));
    }
    if task.images == 0 {
        return match variant {
            4 | 5 => (0, word(variant)),
            7 => (0, B256::ZERO),
            _ => (0, word(0)),
        };
    }
    let mut value = word(if matches!(variant, 4 | 5) { variant } else { 0 });
    // A hash is never 0; where there is no image it is.
    (0..4).for_each(|image| value[8 * image] |= 1);
    match variant {
        2 => value[1] ^= 0b111,
        3 => value[2] ^= 0b1111_1000,
        _ => {}
    }
    let images = if variant == 7 { 5 - task.images } else { task.images };
    value[8 * images.min(4) as usize..].fill(0);
    (0, value)
}

/// The salt of a node's commitment.
fn salt_of(id: u64, node: u32) -> B256 {
    keccak256([id, node as u64].map(u64::to_be_bytes).concat())
}

/// Reveals a node's commitment, of the answers that nodes give here.
fn opening(node: u32, task: &Task, group: u32, kept: FixedBytes<24>) -> revealCall {
    let salt = salt_of(task.id, node);
    let of = (0..8).map(|v| answer_of(task, v)).find(|&(k, v)| kept_of(commitment(task.id, node, k, v, salt)) == kept);
    let (kind, value) = of.unwrap_or((0, B256::ZERO));
    revealCall { id: task.id, group, node, kind, value, salt }
}

impl Task {
    /// Its pay for one node's work.
    fn share(&self) -> u128 {
        self.fee / self.nodes as u128
    }
    /// That by the estimate to 32 significant bits: exponent and mantissa.
    fn value(&self) -> (i32, u128) {
        let (mut n, mut d, mut e) = (self.share(), self.estimate as u128, 0);
        while n >= d << 32 {
            d <<= 1;
            e += 1;
        }
        while n < d << 31 {
            n <<= 1;
            e -= 1;
        }
        (e, n / d)
    }
    fn group(&self) -> u32 {
        self.gpu.unwrap_or(self.vram as u32)
    }
    fn fits(&self, node: &Node) -> bool {
        self.gpu.map_or(node.group & 0xffff >= self.vram as u32, |g| g == node.group)
    }
    /// Whether it takes three nodes of one GPU group, whichever.
    fn any_equal(&self) -> bool {
        self.policy == 2 && self.kind > 0 && self.gpu.is_none()
    }
    /// Of a queue: 0 of those that take one node, 1 of three that answer images, 2 of three that answer alike, 3 of a group chosen by
    /// ratings.
    fn grade(&self) -> u32 {
        match self.policy {
            2 => 1 + (self.kind > 0) as u32,
            3 => 3,
            _ => 0,
        }
    }
    /// The number of the queue it belongs into.
    fn queue(&self) -> u32 {
        self.group() + 4_096 * self.grade()
    }
    /// The pay of the node that ran it alone.
    fn payment(&self) -> u128 {
        self.fee * 10_000 / (10_000 + 2 * self.sample_bps)
    }
    fn start_fee(&self) -> u128 {
        self.fee * self.bps / 10_000
    }
}

#[derive(Clone, Default, Debug)]
struct Node {
    operator: Address,
    status: u8,
    stake: u128,
    h: f64,
    h_at: u64,
    scores: VecDeque<u8>,
    /// Judgements that its rating counts, and those of them that held it right.
    judged: (u64, u64),
    group: u32,
    held: BTreeSet<u64>,
    in_use: Vec<u64>,
    task: Option<Task>,
    /// Until when it waits apart, and whether it rests then after an error.
    parked: Option<u64>,
    rests: bool,
    /// The queue for a task of which it waits so.
    waits: Option<u32>,
    /// Until when it last waited so, or was to; 0 if it got to work from being reserved since.
    waited: u64,
    /// When it was last reserved in vain; 0 likewise.
    vain: u64,
    /// The Pending task that it is reserved for; 0 for none.
    reserved: u64,
    joined_at: u64,
    /// Commitments that are not settled, and whether they keep it from work.
    open: u64,
    halted: bool,
    /// The place of the group that it was called to; 0 for none.
    called: u32,
    /// Whether it is paused, and a draw of validators has met it since: then it is not among the active ones.
    aside: bool,
    /// The account that its operator named as its worker; zero for none.
    worker: Address,
}

#[derive(Clone, Default, Debug)]
struct Account {
    credit: u128,
    unbonding: u128,
    release: u64,
    node: u32,
    kicked: bool,
    /// Whether it works for the node of another.
    works: bool,
}

/// Why nobody saw a queued task that idle nodes could run.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Why {
    Error,
    Unrested,
    Listed,
    Missed,
    Full,
    Behind,
    KeptOut,
    Undecided,
}

/// The tasks that were queued beside idle nodes after the call before.
#[derive(Clone, Default, Debug)]
struct Left {
    idle: BTreeSet<u32>,
    waiting: BTreeSet<u32>,
    queued: BTreeSet<u64>,
    tasks: BTreeMap<u64, Why>,
}

/// The network as plain collections.
#[derive(Clone)]
pub struct Model {
    operators: u64,
    now: u64,
    block: u64,
    nodes: BTreeMap<u32, Node>,
    accounts: BTreeMap<Address, Account>,
    /// The applications that have set a profile or had a group chosen.
    applications: BTreeMap<Address, rated::Application>,
    groups: BTreeMap<(String, u16), u32>,
    holders: BTreeMap<u64, Vec<u32>>,
    pending: VecDeque<Task>,
    queue: Vec<Task>,
    /// The nodes that wait for tasks of a queue, first come.
    waiting: BTreeMap<u32, Vec<u32>>,
    calls: VecDeque<Waiting>,
    teams: BTreeMap<u32, Team>,
    /// Places of groups there are.
    places: u32,
    /// GPU groups whose nodes answer alike.
    listed: BTreeSet<u32>,
    reserve: u128,
    burnt: u128,
    treasury: u128,
    tasks: u64,
    paused: bool,
    /// Models whose names were logged.
    names: BTreeSet<u64>,
    /// Where accounts' bytes can be had.
    stores: BTreeMap<Address, String>,
    set: BTreeMap<&'static str, u64>,
    /// Proposed parameters, and when they can take effect.
    proposed: BTreeMap<&'static str, (u64, u64)>,
    /// The lowest `minStake` and the highest `openMost` that there ever were, or that were proposed.
    bounds: (u64, u64),
    /// The tasks that are queued beside idle nodes that could run them.
    left: Left,
    paid_in: u128,
    paid_out: u128,
    forced: u128,
    /// How often each thing came about that no event is named after.
    pub notes: BTreeMap<&'static str, u64>,
    /// How often each refusal came.
    pub refused: BTreeMap<&'static str, u64>,
}

/// The call in progress: the real thing's log, and how far the model has followed it.
struct Trace {
    events: Vec<E>,
    next: usize,
    /// Whether a task with models has started: the words that its pre-download read are missing to the next.
    spread: bool,
    /// Calls taken off their ring of which no event tells, because their task is gone.
    silent: u64,
    /// Whether the call has drawn several nodes before its own work.
    spent: bool,
    /// Whether it has judged three members of a group, or made draws before it judges: all others that it frees wait for a later call.
    full: bool,
    /// Whether it itself writes so much that it may make no draw at all.
    laden: bool,
}

impl Trace {
    fn peek(&self) -> Option<&E> {
        self.events.get(self.next)
    }
    /// Whether a task's draw can begin with the next event.
    fn draws(&self, task: &Task) -> bool {
        match self.peek() {
            Some(E::TaskStarted(e)) => e.id == task.id,
            Some(E::TaskRedrawn(e)) => e.id == task.id,
            Some(E::TaskQueued(e)) => e.id == task.id,
            Some(E::GroupFormed(e)) => e.id == task.id,
            Some(E::GroupChosen(e)) => e.id == task.id,
            // Nodes that were reserved for it in vain are let go before its group is formed.
            Some(E::NodeExcluded(e)) => task.chosen.is_some() && task.reserved.contains(&e.node),
            Some(E::TaskAborted(e)) => e.reason == 2,
            _ => false,
        }
    }
    /// Whether the draw of a task's validators begins with the next event.
    fn calls(&self, task: u64) -> bool {
        match self.peek() {
            Some(E::GroupFormed(e)) => e.id == task,
            Some(E::TaskRedrawn(e)) => e.id == task,
            Some(E::NodeSetAside(_)) => true,
            _ => false,
        }
    }
    fn expect(&mut self, e: E) {
        assert_eq!(self.peek(), Some(&e), "event {}", self.next);
        self.next += 1;
    }
}

/// The steps that a node may take when it becomes available.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum May {
    /// Nothing until this time.
    Rest(u64),
    /// Take a queued task.
    Take,
    /// That, or wait for two others.
    Wait,
}

/// The count that a judgement goes into.
#[derive(Clone, Copy)]
enum Counts {
    Nothing,
    Score(u8),
    /// For the rating alone: whether it was right.
    Rating(bool),
}

type Refused = Result<(), &'static str>;

macro_rules! need {
    ($cond:expr, $name:literal) => {
        if !$cond {
            return Err($name);
        }
    };
}

mod rated;

/// The counts of a rating after another judgement: at 64 the older half is forgotten.
pub(crate) fn rated((judged, right): (u64, u64), now: bool) -> (u64, u64) {
    let (judged, right) = (judged + 1, right + now as u64);
    if judged == 64 {
        (32, right / 2)
    } else {
        (judged, right)
    }
}

impl Model {
    /// A network just initialised, at the time and block of the next call.
    pub fn new((now, block): (u64, u64), operators: u64) -> Model {
        let set = [
            ("alphaMilli", 2_000),
            ("minPrice", 1),
            ("startFeeBps", 200),
            ("drawDelay", 1),
            ("penaltyPpm", 300_000),
            ("boostPpm", 150_000),
            ("exclusionPpm", 100_000),
            ("tau", 1_800),
            ("sdOverhead", 30),
            ("sdUnit", 20),
            ("gptOverhead", 60),
            ("gptUnit", 0),
            ("fineTuneMax", 86_400),
            ("limitMin", 60),
            ("limitMax", 7_200),
            ("grace", 0),
            ("minStake", FIRST_LEAST),
            ("unbonding", 86_400),
            ("kickoutMilli", 2_000),
            ("scarce", 3),
            ("spread", 10),
            ("boostPool", 3),
            ("queueTime", 21_600),
            ("groupFee", 4_000),
            ("sampleBps", 1_000),
            ("sampleDelay", 2),
            ("sampleWindow", 600),
            ("revealWindow", 7_200),
            ("openMost", 2),
            ("slashTimes", 20),
            ("scorePool", 9),
            ("downloadTime", 600),
            ("hammingMost", 8),
            ("slashImages", 0),
            ("holdTime", 60),
        ];
        Model {
            operators,
            now,
            block,
            nodes: BTreeMap::new(),
            accounts: BTreeMap::new(),
            applications: BTreeMap::new(),
            groups: BTreeMap::new(),
            holders: BTreeMap::new(),
            pending: VecDeque::new(),
            queue: Vec::new(),
            waiting: BTreeMap::new(),
            calls: VecDeque::new(),
            teams: BTreeMap::new(),
            places: 0,
            listed: BTreeSet::new(),
            reserve: 0,
            burnt: 0,
            treasury: 0,
            tasks: 0,
            paused: false,
            names: BTreeSet::new(),
            stores: BTreeMap::new(),
            set: set.into_iter().collect(),
            proposed: BTreeMap::new(),
            bounds: (400_000, 2),
            left: Left::default(),
            paid_in: 0,
            paid_out: 0,
            forced: 0,
            notes: BTreeMap::new(),
            refused: BTreeMap::new(),
        }
    }

    fn note(&mut self, what: &'static str) {
        *self.notes.entry(what).or_default() += 1;
    }

    fn joined(&self) -> u64 {
        self.nodes.values().filter(|n| n.status != 0).count() as u64
    }
    fn h(&self, n: &Node) -> f64 {
        self.h_at(n, self.now)
    }
    /// Whether a node's H can rise; as is `said`, where its distance from 1 is too small to tell.
    fn rises(&self, node: u32, said: bool) -> bool {
        let n = &self.nodes[&node];
        n.h < 1.0 && (said || self.h(n) < 1.0 - EPS)
    }

    fn h_at(&self, n: &Node, at: u64) -> f64 {
        1.0 - (1.0 - n.h) * (-((at - n.h_at) as f64) / self.set["tau"] as f64).exp()
    }
    fn eligible(&self, h: f64) -> bool {
        h >= self.set["exclusionPpm"] as f64 / 1e6 - EPS
    }
    fn idle(&self) -> impl Iterator<Item = (&u32, &Node)> {
        self.nodes.iter().filter(|(_, n)| n.status == 1 && n.parked.is_none())
    }
    fn credit(&mut self, who: Address, wei: u128) {
        self.accounts.entry(who).or_default().credit += wei;
    }

    /// Whether a draw waits that is decided already.
    fn draws_due(&self) -> bool {
        self.pending.front().is_some_and(|t| t.at < self.block) || self.call_due()
    }

    /// Whether a draw of validators is one.
    fn call_due(&self) -> bool {
        self.calls.front().is_some_and(|c| c.block < self.block)
    }

    /// Whether the next draw is one of validators: the earlier block first, of equal ones the Pending task's.
    fn call_is_next(&self) -> bool {
        let task = self.pending.front().filter(|t| t.at < self.block).map(|t| t.at);
        self.calls.front().is_some_and(|c| c.block < task.unwrap_or(self.block))
    }

    /// The task of the first call that waits, if its node still runs it.
    fn first_called(&self) -> Option<&Task> {
        let call = self.calls.front()?;
        let task = self.nodes[&call.node].task.as_ref();
        task.filter(|t| t.id == call.id && matches!(t.part, Part::Calling(_)))
    }

    /// Makes due draws until `most` are `served`; where that depends on their cost (`thrifty`), the first at least.
    fn serve(&mut self, t: &mut Trace, by: Address, mut served: u64, most: u64, thrifty: bool) -> u64 {
        let mut waiting = self.pending.len() + self.calls.len();
        // Draws of which no event may tell: before a chosen group is formed they only initialise words, 24 at most and 18 at a time.
        let mut untold = 0;
        while served < most && waiting > 0 && self.draws_due() {
            let must = !thrifty && served + untold < most || served == 0 && !t.laden;
            let before = self.pending.front().is_some_and(|task| task.chosen.is_some());
            // A call that needs all made is refused while one of several nodes is due.
            if thrifty && most > 2 && (self.call_is_next() || self.pending[0].policy > 1) {
                break;
            }
            if self.call_is_next() {
                let visible = match self.first_called() {
                    Some(task) => t.calls(task.id),
                    None => t.silent > 0,
                };
                if !must && !visible {
                    break;
                }
                self.form(t, by);
                t.spent |= thrifty;
            } else {
                if !must && !t.draws(&self.pending[0]) {
                    break;
                }
                let task = self.pending.pop_front().unwrap();
                let (known, task_policy) = (task.at + HISTORY >= self.block, task.policy);
                match task_policy {
                    2 => self.draw_three(t, task, known),
                    3 => self.draw_rated(t, task, known),
                    _ => self.draw(t, by, task, known),
                }
                if task_policy > 1 {
                    t.spent |= thrifty;
                }
            }
            let chosen = self.pending.front().is_some_and(|task| task.chosen.is_some());
            waiting -= usize::from(!chosen);
            untold += if before && !chosen { 2 } else { 0 };
            served += 1;
        }
        served
    }

    fn readmit(&mut self, t: &mut Trace, by: Address, thrifty: bool) -> Option<u32> {
        if self.draws_due() {
            return None;
        }
        let due = self.nodes.iter().filter_map(|(&i, n)| n.parked.map(|at| (at, i))).min();
        let (at, _) = due.filter(|(at, _)| *at <= self.now)?;
        // After expensive draws there may be none; a later one that comes back all the same was poked.
        if thrifty && !matches!(t.peek(), Some(E::NodeReadmitted(r)) if self.nodes[&r.node].parked == Some(at)) {
            return None;
        }
        // Of those due first at once any may be.
        let E::NodeReadmitted(r) = t.peek().expect("a node is due").clone() else { panic!("a node is due: {:?}", t.peek()) };
        assert_eq!(self.nodes[&r.node].parked, Some(at));
        self.return_to_work(t, by, r.node);
        Some(r.node)
    }

    fn return_to_work(&mut self, t: &mut Trace, by: Address, node: u32) {
        let waited = self.stop_waiting(node);
        let n = self.nodes.get_mut(&node).unwrap();
        (n.parked, n.rests) = (None, false);
        t.expect(E::NodeReadmitted(IMuster::NodeReadmitted { node }));
        if waited {
            self.note("waited in vain");
        }
        self.release(t, by, node, if waited { May::Take } else { May::Wait });
    }

    /// Takes a node off the list of those that wait for a queue; gives whether it was on one.
    fn stop_waiting(&mut self, node: u32) -> bool {
        let Some(queue) = self.nodes.get_mut(&node).unwrap().waits.take() else { return false };
        self.waiting.get_mut(&queue).expect("it waits there").retain(|&other| other != node);
        true
    }

    /// A draw, as the real thing decided it, checked.
    fn draw(&mut self, t: &mut Trace, by: Address, task: Task, known: bool) {
        let idle: Vec<u32> = self.idle().filter(|(_, n)| task.fits(n)).map(|(&i, _)| i).collect();
        let redrawn = matches!(t.peek(), Some(E::TaskRedrawn(r)) if r.id == task.id);
        if !known || (redrawn && !idle.is_empty()) {
            self.put_off(t, task);
        } else if idle.is_empty() {
            self.enqueue(t, task);
        } else {
            let Some(E::TaskStarted(s)) = t.peek().cloned() else { panic!("someone is idle: {:?} for {task:?}", t.peek()) };
            assert!(idle.contains(&s.node), "{s:?} is not among {idle:?}");
            let able: Vec<u32> = idle.iter().copied().filter(|i| self.eligible(self.h(&self.nodes[i]))).collect();
            assert!(able.contains(&s.node), "{s:?} is excluded");
            let local = |i: &u32| task.models.iter().any(|m| self.nodes[i].held.contains(m));
            let entries: usize = task.models.iter().filter_map(|m| self.holders.get(m)).map(Vec::len).sum();
            // One whose H is 0, where none is too low, weighs nothing and is never drawn.
            if entries <= 16 && able.iter().any(|i| local(i) && self.h(&self.nodes[i]) > EPS) {
                assert!(local(&s.node), "{s:?} holds none of {:?}", task.models);
            }
            // Between its certain number and the highest possible one. Nodes that a raised threshold excludes stand there until poked; a
            // search among many, or within the rest of a call's reads, may count too few.
            let (least, most) = if local(&s.node) {
                // Where many hold the model they are counted with the pre-download's 32 reads, of which three nearby nodes can take
                // twelve and every entry four.
                let popular = entries as u64 * 4 >= self.joined();
                let searched = entries <= if popular { 5 } else { 16 } && task.models.len() == 1 && !t.spread;
                // Of more than 16 entries the search may miss all idle ones, and then any node is drawn, a holder by chance too.
                let there = |i: &&u32| entries > 16 || local(i);
                (if searched { able.iter().filter(|i| local(i)).count() } else { 1 }, idle.iter().filter(there).count())
            } else {
                (idle.len(), idle.len())
            };
            let pool = self.set["boostPool"] as usize;
            let rises = self.rises(s.node, s.boosts);
            assert!(s.boosts || least < pool || !rises, "{s:?}: at least {least} candidates");
            assert!(!s.boosts || most >= pool && rises, "{s:?}: at most {most} candidates");
            self.start(t, by, task, s.node, s.boosts);
        }
    }

    /// Puts a task at the end of those that are Pending, to be drawn from a later block.
    fn put_off(&mut self, t: &mut Trace, mut task: Task) {
        task.at = self.block + self.set["drawDelay"].max(1) - 1;
        t.expect(E::TaskRedrawn(IMuster::TaskRedrawn { id: task.id, drawBlock: task.at }));
        self.pending.push_back(task);
    }

    /// Whether a reserved node is kept for another draw.
    fn kept_reserved(&self, node: u32) -> bool {
        let n = &self.nodes[&node];
        self.eligible(self.h(n)) && n.status == 2 && n.called == 0
    }

    /// Whether a task that takes three nodes can go to a node.
    fn takes(&self, task: &Task, node: &Node) -> bool {
        task.fits(node) && (!task.any_equal() || self.listed.contains(&node.group))
    }

    /// The draw of a task that takes three nodes, as the real thing decided it, checked.
    fn draw_three(&mut self, t: &mut Trace, mut task: Task, known: bool) {
        let idle: Vec<u32> = self.idle().filter(|(_, n)| self.takes(&task, n)).map(|(&i, _)| i).collect();
        let reserved = std::mem::take(&mut task.reserved);
        // A node that H excludes by now is none.
        let stays = |n: &Node| self.takes(&task, n) && self.eligible(self.h(n));
        let there = reserved.iter().copied().filter(|i| stays(&self.nodes[i]));
        let candidates: BTreeSet<u32> = idle.iter().copied().chain(there).collect();
        let of = |group: u32| candidates.iter().filter(|i| self.nodes[i].group == group).count();
        let groups: BTreeSet<u32> = candidates.iter().map(|i| self.nodes[i].group).collect();
        // With three alike; or of all, where they need not be.
        let enough = if task.any_equal() { groups.iter().any(|&g| of(g) >= 3) } else { candidates.len() >= 3 };
        let met = reserved.iter().any(|node| candidates.contains(node) && of(self.nodes[node].group) >= 3);
        // Those of a GPU group that is not listed any more are no candidates.
        let nobody_else = !self.idle().any(|(_, n)| task.fits(n));
        if known && nobody_else && reserved.len() == 3 && reserved.iter().all(|node| !candidates.contains(node)) {
            self.note("three reserved of an unlisted group");
        }
        let these = known && nobody_else && reserved.len() == 3 && reserved.iter().all(|node| candidates.contains(node));
        match t.peek().cloned() {
            Some(E::GroupFormed(formed)) if formed.id == task.id => {
                let nodes = formed.nodes.clone();
                if these {
                    assert_eq!(nodes, reserved, "the three that are reserved");
                    self.note("three reserved undrawn");
                } else {
                    assert!(known && enough, "{formed:?} of {candidates:?}");
                    self.note("three drawn");
                }
                assert_eq!(nodes.len(), 3, "{formed:?}");
                for (i, node) in nodes.iter().enumerate() {
                    let n = &self.nodes[node];
                    assert!(candidates.contains(node) && !nodes[..i].contains(node), "{node} of {candidates:?}: {formed:?}");
                    assert!(these || self.eligible(self.h(n)), "{node} is excluded: {formed:?}");
                    assert!(task.kind == 0 || n.group == self.nodes[&nodes[0]].group, "they are not alike: {formed:?}");
                }
                self.form_three(t, task.clone(), &formed, &candidates);
                let (chosen, others): (Vec<u32>, Vec<u32>) = reserved.iter().partition(|node| nodes.contains(node));
                if !chosen.is_empty() && !these {
                    self.note("a reserved node drawn");
                }
                self.give_back(t, &others, "a reserved node not drawn");
                self.pre_download_for_group(t, &task);
            }
            Some(E::TaskRedrawn(redrawn)) if redrawn.id == task.id => {
                assert!(!known || enough && !these, "{redrawn:?} of {candidates:?}, reserved {reserved:?}");
                self.note(if known { "three undecided" } else { "three too old" });
                // A node that H excludes, that is on its way out or called to a group is not kept for the next one; one whose GPU group is no
                // longer listed is.
                let kept = |node: &u32| self.kept_reserved(*node);
                let (reserved, others): (Vec<u32>, Vec<u32>) = reserved.into_iter().partition(kept);
                self.put_off(t, Task { reserved, ..task });
                self.give_back(t, &others, "a reserved node let go undecided");
            }
            event => {
                // Where three must be alike a draw looks through a bounded number of GPU groups, unless some are reserved for it.
                let missed = task.any_equal() && !met && self.groups.len() > LOOKED_THROUGH;
                assert!(known && !these && (!enough || missed), "{event:?} of {candidates:?}, reserved {reserved:?}");
                self.note(if enough { "three alike not met" } else { "three not there" });
                self.enqueue(t, task);
                self.give_back(t, &reserved, "a reserved node returned");
            }
        }
    }

    /// Forms the group of a task that takes three nodes.
    fn form_three(&mut self, t: &mut Trace, task: Task, formed: &GroupFormed, candidates: &BTreeSet<u32>) {
        let first = self.nodes[&formed.nodes[0]].group;
        let there = candidates.iter().filter(|node| task.kind == 0 || self.nodes[node].group == first).count() as u64;
        let scored = there >= self.set["scorePool"] && self.alike(&task, first);
        self.form_at_once(t, task, formed, scored);
    }

    /// Forms a group of nodes that all start at once.
    fn form_at_once(&mut self, t: &mut Trace, task: Task, formed: &GroupFormed, scored: bool) {
        self.take_place(formed.group);
        t.expect(E::GroupFormed(IMuster::GroupFormed { creator: task.creator.into(), id: task.id, scored, ..formed.clone() }));
        let member = |&node: &u32| Member { node, stage: RUNNING, moment: 0, elapsed: 0, answer: B256::ZERO };
        let members = formed.nodes.iter().map(member).collect();
        let slash_images = self.set["slashImages"] == 1;
        self.teams.insert(formed.group, Team { task: Task { at: self.now, ..task }, scored, slash_images, members });
        for &node in &formed.nodes {
            let n = self.nodes.get_mut(&node).unwrap();
            if std::mem::take(&mut n.reserved) > 0 {
                (n.waited, n.vain) = (0, 0);
            }
            let (leaves, called) = (n.status > 2, n.called > 0);
            if leaves {
                self.note("a reserved node drawn on its way out");
            }
            if called {
                self.note("a reserved node drawn that is called");
            }
            self.start_member(t, node, formed.group);
        }
    }

    /// Lets nodes go that were reserved for a draw: they are held back until a later call.
    fn give_back(&mut self, t: &mut Trace, nodes: &[u32], how: &'static str) {
        // Where others begin without it, it was not in vain.
        let begun = ["a reserved node not drawn", "rated: a reserved node not chosen", "rated: reserved nodes let go before"];
        let now = if begun.contains(&how) { 0 } else { self.now };
        for &node in nodes {
            let n = self.nodes.get_mut(&node).unwrap();
            (n.reserved, n.vain) = (0, n.vain.max(now));
            // One that is called stays what it is, so that it cannot leave before it has begun there.
            if n.status == 2 && n.called == 0 {
                n.status = 1;
            }
            let (status, called) = (n.status, n.called);
            self.note(match status {
                _ if called > 0 => "a reserved node let go that is called",
                3 => "a reserved node paused at last",
                4 | 6 => "a reserved node left at last",
                _ => how,
            });
            self.hold(t, node);
        }
    }

    fn start(&mut self, t: &mut Trace, _by: Address, mut task: Task, node: u32, boosts: bool) {
        (task.at, task.boosts, task.began) = (self.now + task.limit, boosts, self.now);
        t.expect(E::TaskStarted(IMuster::TaskStarted {
            id: task.id,
            node,
            creator: task.creator.into(),
            deadline: task.at,
            boosts,
        }));
        let n = self.nodes.get_mut(&node).unwrap();
        n.status = 2;
        n.in_use.clone_from(&task.models);
        let missing: Vec<u64> = task.models.iter().copied().filter(|m| !n.held.contains(m)).collect();
        for model in missing {
            t.expect(E::DownloadRequested(IMuster::DownloadRequested { node, model, task: task.id }));
        }
        self.pre_download(t, &task);
        self.nodes.get_mut(&node).unwrap().task = Some(task);
    }

    /// Checks the nodes that a task which has begun asks for scarce models; gives how many.
    fn pre_download(&mut self, t: &mut Trace, task: &Task) -> u64 {
        t.spread |= !task.models.is_empty();
        let mut asked = 0;
        for &model in &task.models {
            // Of more than 16 entries the network looks at 16, and may find none available.
            let searched = self.holders.get(&model).is_none_or(|l| l.len() <= 16);
            let available = self.idle().filter(|(_, n)| searched && n.held.contains(&model)).count() as u64;
            let scarce = available < self.set["scarce"];
            let most = if scarce { self.set["spread"].saturating_sub(available.max(asked)) } else { 0 };
            let mut seen = BTreeSet::new();
            while let Some(E::DownloadRequested(d)) = t.peek().cloned() {
                if d.model != model || d.task != task.id {
                    break;
                }
                let n = &self.nodes[&d.node];
                assert!(
                    n.status == 1 && n.parked.is_none() && self.eligible(self.h(n)) && task.fits(n) && !n.held.contains(&model),
                    "{d:?}"
                );
                assert!(seen.insert(d.node), "{d:?} twice");
                t.next += 1;
            }
            assert!(seen.len() as u64 <= most, "{} asked for {model}, at most {most}", seen.len());
            asked += seen.len() as u64;
        }
        asked
    }

    /// The same for a group, which may have none of it where its draw was expensive.
    fn pre_download_for_group(&mut self, t: &mut Trace, task: &Task) {
        if self.pre_download(t, task) > 0 {
            self.note("a group's models asked for");
        }
    }

    fn enqueue(&mut self, t: &mut Trace, mut task: Task) {
        let capacity = self.set["alphaMilli"] * self.joined() / 1_000;
        let rank = |t: &Task| (t.value(), Reverse(t.id));
        if self.queue.len() as u64 >= capacity {
            let worst = (0..self.queue.len()).min_by_key(|&i| rank(&self.queue[i]));
            match worst.filter(|&i| rank(&self.queue[i]) < rank(&task)) {
                Some(i) => {
                    let gone = self.queue.remove(i);
                    self.abort(t, &gone, 0, 2, None);
                }
                None => return self.abort(t, &task, 0, 2, None),
            }
        }
        let Some(E::TaskQueued(q)) = t.peek().cloned() else { panic!("must be queued: {:?}", t.peek()) };
        assert_eq!((q.id, (q.ticket >> 32) as u32, q.group), (task.id, task.queue(), task.group()));
        assert_eq!(q.creator.into_array(), task.creator);
        assert!(self.queue.iter().all(|other| other.at != q.ticket), "place taken");
        t.next += 1;
        (task.at, task.since) = (q.ticket, self.now);
        self.queue.push(task);
    }

    /// `driver` earns the start fee; without one it is income.
    fn abort(&mut self, t: &mut Trace, task: &Task, node: u32, reason: u8, driver: Option<Address>) {
        let saved = match task.part {
            Part::Committed(_) if reason == 0 && task.scored => (task.fee - task.payment()).min(task.fee - task.start_fee()),
            _ => 0,
        };
        self.reserve += saved;
        let fee = if matches!(reason, 2 | 4) { 0 } else { task.start_fee() };
        let to = driver.filter(|_| fee > 0).unwrap_or([0; 20]);
        match driver {
            Some(driver) if fee > 0 => self.credit(driver, fee),
            _ => self.treasury += fee,
        }
        let refund = task.fee - fee - saved;
        self.credit(task.creator, refund);
        t.expect(E::TaskAborted(IMuster::TaskAborted {
            id: task.id,
            node,
            creator: task.creator.into(),
            reason,
            refund,
            startFee: fee,
            beneficiary: to.into(),
        }));
    }

    fn release(&mut self, t: &mut Trace, by: Address, node: u32, may: May) {
        let (due, call_due) = (self.draws_due(), self.call_due());
        let n = self.nodes.get_mut(&node).unwrap();
        n.task = None;
        if n.called > 0 {
            if call_due || t.full {
                self.note(if call_due { "called and held back for a due call" } else { "called and held back by a full call" });
                return self.hold(t, node);
            }
            return self.begin(t, node);
        }
        let rest = if let May::Rest(until) = may { Some(until).filter(|&until| until > self.now) } else { None };
        match (n.status, rest) {
            (4 | 6, _) if due || t.full => {
                self.note(if due { "leaves after due draws" } else { "leaves after a full call" });
                return self.hold(t, node);
            }
            (6, _) => return self.leave(t, node, true),
            (4, _) => return self.leave(t, node, false),
            (3, Some(until)) => {
                self.note("rests before it pauses");
                return self.take_rest(t, node, until);
            }
            (3, None) => {
                n.status = 5;
                return t.expect(E::NodePaused(IMuster::NodePaused { node }));
            }
            _ => n.status = 1,
        }
        let n = &self.nodes[&node];
        if !self.eligible(self.h(n)) {
            let Some(E::NodeExcluded(x)) = t.peek().cloned() else { panic!("excluded: {:?}", t.peek()) };
            assert_eq!(x.node, node);
            assert!(x.until > self.now && self.eligible(self.h_at(n, x.until)));
            assert!(self.h_at(n, x.until - 1) < self.set["exclusionPpm"] as f64 / 1e6 + EPS);
            self.nodes.get_mut(&node).unwrap().parked = Some(x.until);
            t.next += 1;
            return;
        }
        match may {
            May::Rest(until) if until > self.now => self.take_rest(t, node, until),
            _ if due => self.hold(t, node),
            _ if t.spent && !self.queue.is_empty() => {
                self.note("held back by a dear draw");
                self.hold(t, node);
            }
            May::Rest(_) => self.note("no rest after an error"),
            _ => self.place(t, by, node, may),
        }
    }

    /// Takes a node's rest after an error.
    fn take_rest(&mut self, t: &mut Trace, node: u32, until: u64) {
        let n = self.nodes.get_mut(&node).unwrap();
        (n.parked, n.rests) = (Some(until), true);
        self.note("rests after an error");
        t.expect(E::NodeExcluded(IMuster::NodeExcluded { node, until }));
    }

    /// Whether it is long enough ago that a node was reserved in vain, and that it waited in vain: it does either a tenth of its time at most.
    fn rested(&self, n: &Node) -> (bool, bool) {
        let ready = n.vain == 0 || self.now >= n.vain + 9 * 60;
        (ready, ready && (n.waited == 0 || self.now >= n.waited + 9 * self.set["holdTime"]))
    }

    /// Gives a node that has become available a queued task, lets it wait for others, or leaves it idle.
    fn place(&mut self, t: &mut Trace, by: Address, node: u32, may: May) {
        let n = &self.nodes[&node].clone();
        let (single, three, rated) = (self.best_single(n), self.best_three(n, |_| true), self.best_rated(n));
        let better = |model: &Model, i: usize| model.dearer(single, Some(i)) == Some(i);
        let best = self.dearer(three, rated).filter(|&i| better(self, i));
        if self.pending.len() == PENDING && best.is_some() {
            // It could not become Pending.
            self.note("no room for the best");
            return self.take_single(t, by, node, single);
        }
        let Some(i) = best else { return self.take_single(t, by, node, single) };
        let (task, group) = (&self.queue[i], n.group);
        let (id, queue, alike, others, of_three) =
            (task.id, task.queue(), task.any_equal(), task.nodes as usize - 1, task.policy == 2);
        let listed = self.waiting.get(&queue).cloned().unwrap_or_default();
        let waiting: Vec<u32> = listed.iter().copied().filter(|w| !alike || self.nodes[w].group == group).collect();
        let idle = self.idle().filter(|&(&i, n)| i != node && if alike { n.group == group } else { task.fits(n) }).count();
        let (ready, rested) = self.rested(n);
        if waiting.len() + idle >= others && !ready && waiting.len() < others {
            self.note("reserved in vain too lately");
        }
        if waiting.len() >= others || ready && waiting.len() + idle >= others {
            let them: Vec<u32> = waiting.into_iter().chain([node]).collect();
            self.note(match them.len() {
                n @ 1..=3 if of_three => ["one reserved", "two reserved", "three reserved"][n - 1],
                1 => "rated: one reserved",
                2 | 3 => "rated: two or three reserved",
                _ => "rated: more than three reserved",
            });
            return self.reserve(t, i, &them);
        }
        let hold = self.set["holdTime"];
        if may == May::Wait && hold > 0 && rested {
            self.note(match waiting.len() {
                _ if of_three => "a node waits",
                0 | 1 => "rated: a node waits",
                _ => "rated: a third node waits",
            });
            let until = self.now + hold;
            self.waiting.entry(queue).or_default().push(node);
            let n = self.nodes.get_mut(&node).unwrap();
            (n.parked, n.waits, n.waited) = (Some(until), Some(queue), until);
            return t.expect(E::NodeWaits(IMuster::NodeWaits { node, id, until }));
        }
        // Those for which enough others are idle now.
        let enough = |task: &Task| {
            let there = |n: &Node| if task.policy == 2 && task.kind > 0 { n.group == group } else { task.fits(n) };
            self.idle().filter(|&(&i, n)| i != node && there(n)).count() as u64 + 1 >= task.nodes
        };
        let rated = rated.filter(|&r| enough(&self.queue[r]));
        let other = self.dearer(self.best_three(n, enough), rated).filter(|&i| ready && better(self, i));
        if may == May::Wait && hold > 0 {
            self.note("too soon to wait again");
        }
        match other {
            Some(i) => {
                self.note(if self.queue[i].policy == 2 { "another task than the best" } else { "rated: another than the best" });
                if of_three {
                    self.note("one reserved");
                }
                self.reserve(t, i, &[node]);
            }
            None => self.take_single(t, by, node, single),
        }
    }

    /// Starts a queued task on the node that has become available.
    fn take_single(&mut self, t: &mut Trace, by: Address, node: u32, single: Option<usize>) {
        if let Some(i) = single {
            let task = self.queue.remove(i);
            // Nobody drew it; but nodes that became free while it waited left it.
            let said = matches!(t.peek(), Some(E::TaskStarted(s)) if s.boosts);
            let (pool, waited) = (self.set["boostPool"], 2 * (self.now - task.since) >= task.estimate);
            let boosts = (pool == 0 || waited && self.active(&task) >= pool) && self.rises(node, said);
            if boosts && pool > 0 {
                self.note("a queued task that raises H");
            }
            self.start(t, by, task, node, boosts);
        }
    }

    /// Makes a queued task that takes several nodes Pending again, with nodes that nobody else gets until its draw.
    fn reserve(&mut self, t: &mut Trace, i: usize, nodes: &[u32]) {
        let mut task = self.queue.remove(i);
        task.reserved = nodes.to_vec();
        let id = task.id;
        self.put_off(t, task);
        for &node in nodes {
            self.stop_waiting(node);
            let n = self.nodes.get_mut(&node).unwrap();
            (n.status, n.parked, n.reserved) = (2, None, id);
            t.expect(E::NodeWaits(IMuster::NodeWaits { node, id, until: 0 }));
        }
    }

    /// Keeps a node out of draws that are decided already.
    fn hold(&mut self, t: &mut Trace, node: u32) {
        self.nodes.get_mut(&node).unwrap().parked = Some(self.now);
        t.expect(E::NodeExcluded(IMuster::NodeExcluded { node, until: self.now }));
    }

    /// The best queued task of those that take one node: value, then its own group, then arrival.
    fn best_single(&self, n: &Node) -> Option<usize> {
        (0..self.queue.len()).filter(|&i| self.queue[i].policy < 2 && self.queue[i].fits(n)).max_by_key(|&i| {
            let q = &self.queue[i];
            (q.value(), q.gpu.is_some(), Reverse(q.id))
        })
    }

    /// The best of those that take three and that `can` be taken: value, then images, then its own group, then arrival.
    fn best_three(&self, n: &Node, can: impl Fn(&Task) -> bool) -> Option<usize> {
        let there = |&i: &usize| self.queue[i].policy == 2 && self.takes(&self.queue[i], n) && can(&self.queue[i]);
        (0..self.queue.len()).filter(there).max_by_key(|&i| {
            let q = &self.queue[i];
            (q.value(), Reverse(q.grade()), q.gpu.is_some(), Reverse(q.id))
        })
    }

    /// The queued task that is worth most to a node.
    fn best(&self, n: &Node) -> Option<usize> {
        let other = self.dearer(self.best_single(n), self.best_three(n, |_| true));
        self.dearer(other, self.best_rated(n))
    }

    /// Of two queued tasks the one that is worth more; the first of equal ones.
    fn dearer(&self, a: Option<usize>, b: Option<usize>) -> Option<usize> {
        let value = |i: usize| self.queue[i].value();
        b.filter(|&b| a.is_none_or(|a| value(b) > value(a))).or(a)
    }

    fn leave(&mut self, t: &mut Trace, node: u32, kicked: bool) {
        if self.stop_waiting(node) {
            self.note("a waiting node left");
        }
        let n = self.nodes.get_mut(&node).unwrap();
        let (operator, stake) = (n.operator, std::mem::take(&mut n.stake));
        n.status = 0;
        (n.parked, n.rests, n.aside) = (None, false, false);
        let open = n.open;
        let a = self.accounts.entry(operator).or_default();
        if a.unbonding > 0 && self.now >= a.release && open == 0 {
            let amount = std::mem::take(&mut a.unbonding);
            a.credit += amount;
            t.expect(E::StakeReleased(IMuster::StakeReleased { account: operator.into(), amount }));
        }
        a.unbonding += stake;
        a.release = self.now + self.set["unbonding"];
        a.kicked |= kicked;
        let release = a.release;
        if kicked {
            t.expect(E::NodeKickedOut(IMuster::NodeKickedOut { node, operator: operator.into() }));
        }
        t.expect(E::NodeQuit(IMuster::NodeQuit { node, operator: operator.into(), stake, release }));
    }

    fn own(&self, by: Address) -> Result<u32, &'static str> {
        match self.accounts.get(&by).map_or(0, |a| a.node) {
            0 => Err("NotAnOperator"),
            n => Ok(n),
        }
    }

    /// The node that an account is the operator of.
    fn owned(&self, by: Address) -> Result<u32, &'static str> {
        let node = self.own(by)?;
        need!(!self.accounts[&by].works, "NotTheOperator");
        Ok(node)
    }

    /// The worker of a node.
    fn worker(&self, node: u32) -> Option<Address> {
        let named = self.nodes.get(&node)?.worker;
        self.accounts.get(&named).is_some_and(|a| a.works && a.node == node).then_some(named)
    }

    /// The account that acts for an operator's node: now and then its worker.
    fn hand(&self, operator: Address, choice: u64) -> Address {
        self.own(operator).ok().and_then(|node| self.worker(node)).filter(|_| !choice.is_multiple_of(4)).unwrap_or(operator)
    }

    /// Names a node's worker, and ends the work of the one before.
    fn name_worker(&mut self, t: &mut Trace, node: u32, worker: Address) {
        if let Some(former) = self.worker(node) {
            let a = self.accounts.get_mut(&former).unwrap();
            (a.node, a.works) = (0, false);
        }
        self.nodes.get_mut(&node).unwrap().worker = worker;
        t.expect(E::WorkerNamed(IMuster::WorkerNamed { node, worker: worker.into() }));
    }

    /// A call about workers: `how` chooses which, and mostly one that fits.
    fn about_work(&self, operator: Address, how: u64) -> Call {
        let pick = |of: &[(u32, Address)]| of.get((how >> 8) as usize % of.len().max(1)).copied();
        let somebody = who(WORKERS.start + (how >> 4 & 7));
        match how & 15 {
            0..=3 => Call::new(operator, setWorkerCall { worker: somebody.into() }),
            4..=10 => {
                let named = self.nodes.iter().filter(|(_, n)| n.worker != [0; 20]).map(|(&i, n)| (i, n.worker));
                let (node, by) = pick(&named.collect::<Vec<_>>()).unwrap_or((how as u32 >> 8 & 15, somebody));
                Call::new(if how & 15 == 10 { somebody } else { by }, acceptWorkCall { node })
            }
            kind => {
                let bound = self.nodes.keys().filter_map(|&i| Some((i, self.worker(i)?)));
                let (_, by) = pick(&bound.collect::<Vec<_>>()).unwrap_or((0, operator));
                match kind {
                    11..=12 => Call::new(by, leaveWorkCall {}),
                    13 => Call::new(by, setWorkerCall { worker: somebody.into() }),
                    14 => Call::new(by, quitCall {}),
                    // The operator's own, another operator's, nobody.
                    _ => Call::new(operator, setWorkerCall { worker: [by, operator, [0; 20]][(how >> 8) as usize % 3].into() }),
                }
            }
        }
    }

    fn running(&self, node: u32, id: u64) -> Result<Task, &'static str> {
        self.nodes[&node].task.clone().filter(|t| t.id == id).ok_or("TaskNotRunning")
    }

    /// An operation on the real thing and its counterpart here; gives the real thing's events. Panics where they differ.
    pub fn step<S: System>(&mut self, real: &mut S, op: &Op) -> Vec<Logged> {
        let logged = match *op {
            Op::Pass { blocks, seconds } => {
                real.pass(blocks, seconds);
                Vec::new()
            }
            Op::Force(wei) => {
                real.force(wei as u128);
                self.forced += wei as u128;
                Vec::new()
            }
            Op::Rest => self.rest(real),
            Op::Score { node, score } => self.record_some(real, node, score),
            _ => self.call(real, &self.resolve(op)),
        };
        self.look(real);
        logged
    }

    /// Looks at the time, and at the hashes of the blocks that have come.
    fn look<S: System>(&mut self, real: &mut S) {
        (self.now, self.block) = real.clock();
        self.draw_lots(real);
    }

    /// Ends all validated tasks, by calls that anyone could send, and pokes idle nodes until none could run a queued task. Panics if time
    /// and those calls neither form nor settle one of the groups that are left.
    fn rest<S: System>(&mut self, real: &mut S) -> Vec<Logged> {
        let mut logged = Vec::new();
        // Draws can stay undecided so often.
        let mut progress = Progress::within(RATED_DRAWS, self.steps_left());
        while !self.teams.is_empty() || !self.calls.is_empty() || self.idle_for_something(false).is_some() {
            // Longer than any window.
            real.pass(4, 70_000);
            self.look(real);
            while let Some(call) = self.helpful() {
                let events = self.call(real, &call);
                if call.is::<pokeCall>() {
                    assert!(!events.is_empty(), "{call:?} comes to nothing");
                    self.note("rested by a poke");
                }
                logged.extend(events);
                self.look(real);
            }
            if let Err(what) = progress.round(self.steps_left()) {
                panic!("{what}: {:?} {:?} {:?}", self.teams, self.calls, self.left);
            }
        }
        self.note("everything ended");
        logged
    }

    /// The most groups that can still be formed or settled: of the tasks which are not over, for each node or group that they can be given to.
    fn steps_left(&self) -> u64 {
        let running = self.nodes.values().filter_map(|n| n.task.as_ref()).chain(self.teams.values().map(|team| &team.task));
        let tasks: BTreeMap<u64, u64> = running.chain(&self.pending).chain(&self.queue).map(|t| (t.id, t.regrouped)).collect();
        2 * tasks.values().map(|regrouped| 1 + RESCHEDULES - regrouped).sum::<u64>() - self.teams.len() as u64
    }

    /// Commitments that can be revealed, or all of them: node, task, place of the group or 0, and the committed value.
    fn to_reveal(&self, early: bool) -> Vec<(u32, &Task, u32, FixedBytes<24>)> {
        let alone = self.nodes.iter().filter_map(move |(&node, n)| match n.task.as_ref().map(|t| (t, t.part)) {
            Some((t, Part::Committed(c))) if early || self.lot(t, &c) == Some(false) => Some((node, t, 0, c.kept)),
            Some((t, Part::Calling(c))) if early => Some((node, t, 0, c.kept)),
            _ => None,
        });
        let grouped = self.teams.iter().flat_map(move |(&place, team)| {
            let member = move |m: &Member| (m.node, &team.task, place, kept_of(m.answer));
            let ready = team.opens(self.now).is_some();
            team.members.iter().filter(move |m| m.stage == COMMITTED && ready || early).map(member)
        });
        alone.chain(grouped).collect()
    }

    /// The calls that reveal them, each with its node.
    fn reveals(&self, early: bool) -> Vec<(u32, Call)> {
        let call = |(node, task, place, kept)| (node, Call::new(who(50), opening(node, task, place, kept)));
        self.to_reveal(early).into_iter().map(call).collect()
    }

    /// A call that ends something which is over, or makes a draw that is due.
    fn helpful(&self) -> Option<Call> {
        let by = who(50);
        // It also re-admits nodes that draws held back.
        if self.draws_due() || self.nodes.values().any(|n| n.parked.is_some_and(|at| at <= self.now)) {
            return Some(Call::new(by, dispatchCall { count: 16 }));
        }
        let over = |team: &Team| team.opens(self.now).is_some_and(|opens| self.now > opens + self.set["revealWindow"]);
        if let Some((&group, team)) = self.teams.iter().find(|(_, team)| over(team)) {
            return Some(Call::new(by, settleCall { id: team.task.id, group }));
        }
        let over = self.nodes.iter().find_map(|(&node, n)| {
            let task = n.task.as_ref()?;
            let id = task.id;
            let ended = match task.part {
                Part::Calling(_) => false,
                Part::Committed(c) if self.lot(task, &c) == Some(true) => return Some(Call::new(by, validateCall { id, node })),
                Part::Committed(c) => {
                    c.block + self.set["sampleDelay"] < self.block && self.now > c.at + self.set["sampleWindow"]
                }
                _ => self.now > task.at,
            };
            ended.then(|| Call::new(by, expireCall { node, id }))
        });
        over.or_else(|| self.idle_for_something(true).map(|node| Call::new(by, pokeCall { node })))
    }

    /// Draws the lots of all commitments whose block's hash has come to be known.
    fn draw_lots<S: System>(&mut self, real: &mut S) {
        let block = self.block;
        for task in self.nodes.values_mut().filter_map(|n| n.task.as_mut()) {
            if let Part::Committed(c) = &mut task.part {
                if c.lot.is_none() && c.block < block && c.block + HISTORY >= block {
                    let (at, id) = (c.block, TaskId(task.id));
                    c.lot = real.read(|net| {
                        let hash = net.host.block_hash(at).expect("known");
                        Some(Rng::new(&*net.host, hash, id).below(&*net.host, 10_000))
                    });
                }
            }
        }
    }

    /// Whether a committed task was sampled; none where the hash that says so cannot be had.
    fn lot(&self, task: &Task, c: &Commitment) -> Option<bool> {
        let known = c.block < self.block && c.block + HISTORY >= self.block;
        known.then(|| c.lot.expect("drawn as soon as it was known") < task.sample_bps as u64)
    }

    fn call<S: System>(&mut self, real: &mut S, call: &Call) -> Vec<Logged> {
        let out = real.call(call);
        if let Some(gas) = real.gas() {
            self.note("calls metered");
            properties::gas(&call.data, gas).unwrap_or_else(|what| panic!("{what}"));
        }
        self.follow(real, call.value, out, |model, trace| model.apply(call, trace))
    }

    /// Records scores of some node, where that can be done without a judgement.
    fn record_some<S: System>(&mut self, real: &mut S, node: u64, score: u64) -> Vec<Logged> {
        let Some(&node) = self.nodes.keys().nth((node % self.nodes.len().max(1) as u64) as usize) else { return Vec::new() };
        // No judgement is made before the draws that are due.
        if self.draws_due() {
            return Vec::new();
        }
        // Now and then a whole pool's worth, or nobody would ever be kicked out.
        let (score, times) = ([10, 5, 2, 0, 0, 2][(score % 6) as usize], if score >> 60 == 1 { 51 } else { 1 });
        let Some(out) = real.record(node, score, times) else { return Vec::new() };
        self.follow(real, 0, out, |model, t| {
            model.readmit(t, who(50), false);
            (0..times).for_each(|_| model.score(t, node, score));
            Ok(0)
        })
    }

    /// Follows the real thing's call, and compares; `mine` gives the sum paid out. Gives the events.
    fn follow<S: System>(
        &mut self,
        real: &mut S,
        value: u128,
        out: Result<Done, system::Refused>,
        mine: impl FnOnce(&mut Model, &mut Trace) -> Result<u128, &'static str>,
    ) -> Vec<Logged> {
        let now = self.now;
        let (events, silent) = match &out {
            Ok(done) => (done.events.clone(), self.silent(real, &done.events)),
            // Those that are refused because draws are left made none that tells nothing last.
            Err(refused) => (refused.events.clone(), if refused.name == "DrawsDue" { 0 } else { CALLS as u64 }),
        };
        let mut trace = Trace { events, next: 0, spread: false, silent, spent: false, full: false, laden: false };
        // A refused call leaves the model as it was. Accepted ones need no copy to go back to.
        let before = out.is_err().then(|| self.clone());
        match (mine(self, &mut trace), out) {
            (Ok(paid), Ok(done)) => {
                assert_eq!(trace.next, trace.events.len(), "more happened: {:?}", &trace.events[trace.next..]);
                self.paid_in += value;
                self.paid_out += paid;
                assert_eq!(done.paid, paid, "paid out");
                self.check_left(&done.events);
                done.events.into_iter().map(|event| (event, now)).collect()
            }
            (Err(name), Err(given)) => {
                assert_eq!(given.name, name);
                *self = before.expect("a copy");
                *self.refused.entry(name).or_default() += 1;
                Vec::new()
            }
            (mine, out) => panic!("model {mine:?}, real {out:?}"),
        }
    }

    /// How many calls an accepted call took off their ring of which no event tells: the difference of their numbers.
    fn silent<S: System>(&self, real: &mut S, events: &[E]) -> u64 {
        let left = real.read(|net| net.validator_draws().len()) as i64;
        let told: i64 = events
            .iter()
            .map(|e| match e {
                E::TaskSampled(_) => 1,
                E::GroupFormed(g) if self.calls.iter().any(|call| call.id == g.id) => -1,
                _ => 0,
            })
            .sum();
        (self.calls.len() as i64 + told - left).try_into().expect("none appears from nowhere")
    }

    /// Makes an operation's loose numbers into a call that fits the state, so that most are accepted.
    fn resolve(&self, op: &Op) -> Call {
        let pick = |n: u64, of: usize| if of == 0 { 0 } else { (n % of as u64) as usize };
        let running: Vec<(u32, u64, Address)> =
            self.nodes.iter().filter_map(|(&i, n)| n.task.as_ref().map(|t| (i, t.id, n.operator))).collect();
        match *op {
            Op::Join { who: n, gpu, vram, models, stake } => {
                let tokens = [400, 400, 401, 1_600, 1_601, 90_000, 4_000_000, 399, 400 << 18][pick(stake, 9)];
                let (name, vram) = (NAMES[pick(gpu, 3)], SIZES[pick(vram, 4)]);
                // Now and then the price of a new name is forgotten, or paid for an old one.
                let new = self.group_fee(name, vram) > 0;
                let fee = if new == (stake >> 60 == 1) { 0 } else { self.set["groupFee"] as u128 * STAKE_UNIT as u128 };
                // Now and then an operator comes back that has left.
                let left = |n: &&Node| n.status == 0 && self.accounts[&n.operator].unbonding > 0;
                let back: Vec<Address> = self.nodes.values().filter(left).map(|n| n.operator).collect();
                let from = back.get(pick(models >> 4, back.len())).copied().filter(|_| stake >> 62 == 1).unwrap_or(who(n));
                // Now and then a worker, which has no node of its own.
                let from = if models >> 61 == 1 { self.hand(from, 1) } else { from };
                let call = joinCall { gpuName: name.into(), vram, models: models_of(models) };
                Call::new(from, call).paying(tokens * TOKEN + fee)
            }
            Op::Raise { who: n, amount } => {
                let value = [0, 1, 1_000, 40_000, 7][pick(amount, 5)] as u128 * STAKE_UNIT as u128 * 100;
                Call::new(who(n), raiseStakeCall {}).paying(value)
            }
            // Now and then somebody whose node is to begin elsewhere.
            Op::Pause(n) => Call::new(self.hand(self.called(n).unwrap_or(who(n)), n), pauseCall {}),
            Op::Resume(n) => Call::new(self.hand(who(n), n), resumeCall {}),
            Op::Work { who: n, how } => self.about_work(who(n), how),
            Op::Stores { who: n, how } => {
                let by =
                    if how.is_multiple_of(4) { who(self.operators + 1 + (how >> 2 & 3)) } else { self.hand(who(n), how >> 2) };
                let uris = match how >> 8 & 15 {
                    0 => String::new(),
                    1 => " ".into(),
                    2 => "https://a.example  s3://b".into(),
                    3 => "https://a.example ".into(),
                    4 => "https://ä.example".into(),
                    5 => "x".repeat(257),
                    6..=9 => "x".repeat((how >> 16) as usize % 257),
                    10 => {
                        format!("{} ipfs://{}", "y".repeat(30 + (how >> 16) as usize % 3), "z".repeat((how >> 24) as usize % 200))
                    }
                    _ => "https://results.example/of/one".into(),
                };
                Call::new(by, setStoresCall { uris })
            }
            Op::Quit(n) => Call::new(self.called(n).unwrap_or(who(n)), quitCall {}),
            Op::Withdraw(n) => {
                // Now and then somebody whose stake was returned.
                let returned = self.accounts.iter().filter(|(_, a)| n % 4 == 0 && a.unbonding > 0);
                let returned: Vec<Address> = returned.map(|(&who, _)| who).collect();
                let from = returned.get(pick(n / 4, returned.len())).copied().unwrap_or(who(n));
                Call::new(from, withdrawCall { to: from.into() })
            }
            Op::Report { who: n, models } => Call::new(self.hand(who(n), n), reportDownloadedCall { models: models_of(models) }),
            Op::Remove { who: n, models } => Call::new(self.hand(who(n), n), reportRemovedCall { models: models_of(models) }),
            Op::Purge { model, position } => Call::new(who(50), purgeCall { model, position: position as u32 }),
            Op::Poke(node) => {
                // Mostly one that it may do something to.
                let some: Vec<u32> = match node % 4 {
                    0 => self.waiting.values().flatten().copied().collect(),
                    1 | 2 => self.idle().map(|(&i, _)| i).collect(),
                    _ => Vec::new(),
                };
                let node = some.get(pick(node / 4, some.len())).copied().unwrap_or(node as u32);
                Call::new(who(50), pokeCall { node })
            }
            Op::Create { who: n, kind, units, vram, gpu, models, fee, policy } => {
                let kind = if kind % 50 == 49 { 3 } else { (kind % 3) as u8 };
                let from = if n % 9 == 0 { who(1 + n % self.operators) } else { self.application_of(n) };
                let policy_of = [1, 1, 2, 2, 0, 0, 0, 3][(policy % 8) as usize];
                let nodes = match policy_of {
                    2 => 3,
                    3 => self.application(from).most() as u128,
                    _ => 1,
                };
                let checked = policy_of > 0;
                let units = match kind {
                    2 => 1 + units % 500,
                    // Now and then more images than can be validated.
                    0 if checked && units % 16 > 0 => 1 + units / 16 % 4,
                    _ => units % 9,
                };
                let groups: Vec<u32> = self.groups.values().copied().collect();
                let listed: Vec<u32> = self.listed.iter().copied().collect();
                // Any will do for three that are alike.
                let gpu = if policy_of == 2 && gpu % 16 < 7 {
                    0
                } else if checked && kind > 0 && gpu % 7 > 0 && !listed.is_empty() {
                    listed[pick(gpu / 7, listed.len())]
                } else if gpu % 3 == 0 && !groups.is_empty() {
                    groups[pick(gpu / 3, groups.len())]
                } else if gpu % 97 == 1 {
                    0x7777
                } else {
                    0
                };
                let vram = if vram % 3 == 0 { 0 } else { SIZES[pick(vram / 3, 4)] + (vram % 2) as u16 };
                // Few distinct values, so that ties are common; now and then a huge one or too little.
                let fee = match fee % 20 {
                    0 => 10,
                    1 => 1 << 86 | (fee as u128) << 20,
                    2..=5 => TOKEN + (fee >> 8) as u128 % 3,
                    // As much as the least stake covers, and a little more.
                    6..=11 if checked => nodes * self.most_at_stake() + ((fee >> 8) % 32 == 0) as u128,
                    12..=15 if checked => nodes * self.most_at_stake() / (1 + (fee >> 8) as u128 % 4),
                    _ => nodes * (1 + (fee >> 8) as u128 % 12) * 100_000,
                };
                let spec = IMuster::TaskSpec {
                    kind,
                    units: units as u32,
                    vram,
                    gpu,
                    // Now and then one that there is not.
                    redundancy: if policy % 97 == 96 { 4 } else { policy_of },
                    // Now and then one that means nothing yet.
                    flags: if fee % 83 == 5 { 2 } else { (fee % 3 == 1) as u32 },
                    inputDigest: [n as u8; 32].into(),
                    models: models_of(models),
                };
                Call::new(from, createTaskCall { spec }).paying(fee)
            }
            Op::Batch { seed, how } => {
                let mut d = Dice(seed);
                // Mostly few; now and then as many as there can be, and one more.
                let tasks = if how % 32 == 0 { 16 + how / 32 % 2 } else { how / 32 % 6 };
                let made: Vec<(u128, IMuster::TaskSpec)> = (0..tasks)
                    .map(|_| {
                        let one = self.resolve(&create(&mut d, 1, |d| if how >> 16 & 1 > 0 { 4 } else { d.bits() }));
                        (one.value, createTaskCall::abi_decode(&one.data).expect("a task").spec)
                    })
                    .collect();
                let mut fees: Vec<u128> = made.iter().map(|(fee, _)| *fee).collect();
                let specs = made.into_iter().map(|(_, spec)| spec).collect();
                let value: u128 = fees.iter().sum();
                // Now and then one fee too few or too many, one that there cannot be, or another sum.
                let value = match how >> 8 & 63 {
                    0 => {
                        fees.pop();
                        value
                    }
                    1 => {
                        fees.push(0);
                        value
                    }
                    2 => {
                        fees.first_mut().into_iter().for_each(|fee| *fee = FEE_END);
                        fees.iter().sum()
                    }
                    3 => value + 1,
                    _ => value,
                };
                let from = self.application_of(how >> 24);
                Call::new(from, createTasksCall { specs, fees, atomic: how >> 14 & 1 > 0 }).paying(value)
            }
            Op::Profile { who: n, sizes, targeting, target } => {
                let least = 3 + (sizes % 8).saturating_sub(3) as u8;
                let profile = Profile {
                    algorithm: (sizes >> 3 & 3) as u8,
                    least,
                    most: least + [0, 1, 2, 2, 3, 4, 6, 6][(sizes >> 5 & 7) as usize].min(9 - least),
                    reschedules: [0, 1, 1, 2, 2, 3, 8, 8][(sizes >> 8 & 7) as usize],
                    targeting: [0, 0, 1, 1, 1, 2, 2, 2][(targeting & 7) as usize],
                    target: target % (1_000_000_000_000_000_000 + 1),
                    alpha: targeting % (1_000_000_000_000_000_000 + 1),
                    period: 300 + (targeting >> 8 & 15) as u32,
                };
                // Now and then a number out of its bounds.
                let profile = match sizes >> 16 & 127 {
                    0 => Profile { algorithm: 4, ..profile },
                    1 => Profile { least: 2, ..profile },
                    2 => Profile { most: least - 1, ..profile },
                    3 => Profile { most: 10, ..profile },
                    4 => Profile { reschedules: 9, ..profile },
                    5 => Profile { targeting: 3, ..profile },
                    6 => Profile { target: 1_000_000_000_000_000_001, ..profile },
                    7 => Profile { alpha: 1_000_000_000_000_000_001, ..profile },
                    8 => Profile { period: 299, ..profile },
                    _ => profile,
                };
                Call::new(self.application_of(n), setProfileCall { profile })
            }
            Op::Cancel { pick: p, stranger } => match self.queue.get(pick(p, self.queue.len())) {
                Some(t) => Call::new(
                    if stranger { who(50) } else { t.creator },
                    cancelCall { id: t.id + (p >> 60 == 1) as u64, ticket: t.at },
                ),
                None => Call::new(who(50), cancelCall { id: p % 90, ticket: p >> 8 }),
            },
            Op::ExpireQueued { pick: p, by } => match self.queue.get(pick(p, self.queue.len())) {
                Some(t) => {
                    let from = [t.creator, who(50), who(1 + by % self.operators)][pick(by, 3)];
                    Call::new(from, expireQueuedCall { id: t.id + (p >> 60 == 1) as u64, ticket: t.at })
                }
                None => Call::new(who(50), expireQueuedCall { id: p % 90, ticket: p >> 8 }),
            },
            Op::Submit { pick: p, by } | Op::Fault { pick: p, by } => {
                let (_, id, operator) =
                    running.get(pick(p, running.len())).copied().unwrap_or((0, p % 40, who(1 + p % self.operators)));
                let from = if by == 0 { who(1 + p % self.operators) } else { self.hand(operator, p >> 16) };
                if matches!(op, Op::Submit { .. }) {
                    Call::new(from, submitCall { id, resultDigest: [id as u8; 32].into() })
                } else {
                    Call::new(from, reportErrorCall { id, code: 3 })
                }
            }
            Op::Expire { pick: p, by } => {
                let (node, id, _) = running.get(pick(p, running.len())).copied().unwrap_or(((p % 20) as u32, p % 40, [0; 20]));
                Call::new(who(1 + by % (self.operators + 4)), expireCall { node, id })
            }
            Op::Commit { pick: p, by, answer } => {
                let runs: Vec<(u32, &Task)> = self
                    .nodes
                    .iter()
                    .filter_map(|(&i, n)| n.task.as_ref().map(|t| (i, t)))
                    .filter(|(_, t)| p >> 59 == 1 || t.policy > 0 && matches!(t.part, Part::Alone | Part::Member(_)))
                    .collect();
                let Some(&(node, task)) = runs.get(pick(p, runs.len())) else {
                    let call = commitCall { id: p % 40, commitment: [answer as u8; 32].into() };
                    return Call::new(who(1 + p % self.operators), call);
                };
                let (kind, value) = answer_of(task, VARIANTS[pick(answer, VARIANTS.len())]);
                let mut commitment = commitment(task.id, node, kind, value, salt_of(task.id, node));
                // Nobody looks at the last bytes.
                commitment[24..].fill(answer as u8);
                let from = if by == 0 { who(1 + p % self.operators) } else { self.hand(self.nodes[&node].operator, p >> 16) };
                Call::new(from, commitCall { id: task.id, commitment })
            }
            Op::Reveal { pick: p, by, how } => {
                // Mostly one that can be revealed.
                let all = self.to_reveal(p >> 60 == 1);
                let from = who(1 + by % (self.operators + 4));
                let Some(&(node, task, place, kept)) = all.get(pick(p, all.len())) else {
                    let (kind, value, salt) = ((how % 3) as u8, B256::repeat_byte(how as u8), B256::ZERO);
                    let (id, group, node) = (how % 40, (how >> 8 & 1) as u32, (p % 20) as u32);
                    return Call::new(from, revealCall { id, group, node, kind, value, salt });
                };
                let right = opening(node, task, place, kept);
                let kind = right.kind;
                let wrong = match how % 64 {
                    0 => revealCall { salt: B256::ZERO, ..right },
                    1 => revealCall { value: B256::with_last_byte(9), ..right },
                    2 => revealCall { kind: 1 - kind, value: B256::with_last_byte(9), ..right },
                    3 => revealCall { kind: 2, ..right },
                    4 => revealCall { kind: 1, value: B256::repeat_byte(1), ..right },
                    5 => revealCall { group: place + 1, ..right },
                    6 => revealCall { id: task.id + 1, ..right },
                    7 => revealCall { node: node % 9 + 1, ..right },
                    8 => revealCall { group: 0, ..right },
                    9 => revealCall { node: 99, ..right },
                    _ => right,
                };
                Call::new(from, wrong)
            }
            Op::Validate { pick: p, by } => {
                let lots = |t: &Task| match t.part {
                    Part::Committed(c) => self.lot(t, &c) == Some(true) || p >> 61 == 1,
                    _ => p >> 60 == 1,
                };
                let all: Vec<(u32, u64, Address)> = self
                    .nodes
                    .iter()
                    .filter_map(|(&node, n)| n.task.as_ref().filter(|t| lots(t)).map(|t| (node, t.id, n.operator)))
                    .collect();
                let (node, id, own) = all.get(pick(p, all.len())).copied().unwrap_or(((p % 20) as u32, by % 40, who(50)));
                Call::new(if by % 3 == 0 { own } else { who(1 + by % (self.operators + 4)) }, validateCall { id, node })
            }
            Op::Form => Call::new(who(50), formGroupCall {}),
            Op::Settle { pick: p, by } => {
                let open = |place: u32, team: &Team| match team.opens(self.now) {
                    Some(opens) => team.all_revealed() || self.now > opens + self.set["revealWindow"] || p >> 61 == 1,
                    None => !self.lingering(place).is_empty() || p >> 60 == 1,
                };
                let open = self.teams.iter().filter(|(&place, team)| open(place, team));
                let all: Vec<(u64, u32)> = open.map(|(&place, team)| (team.task.id, place)).collect();
                let (id, group) = all.get(pick(p, all.len())).copied().unwrap_or((p % 40, by as u32 % 4));
                Call::new(who(1 + by % (self.operators + 4)), settleCall { id: id + (p >> 59 == 1) as u64, group })
            }
            Op::List { group, on } => {
                // If there is one, that of nodes which are reserved.
                let reserved: Vec<u32> = self.nodes.values().filter(|n| n.reserved > 0 && !on).map(|n| n.group).collect();
                let groups = if reserved.is_empty() { self.groups.values().copied().collect() } else { reserved };
                let known = groups.get(pick(group / 16, groups.len())).copied().filter(|_| group % 16 != 1);
                let from = if group % 16 == 2 { who(50) } else { OWNER };
                Call::new(from, listGpuGroupCall { group: known.unwrap_or(0x7777), listed: on })
            }
            Op::Set(name, value) => {
                let (parameter, value) = (parameter(name), U256::from(value));
                if DELAYED.contains(&name) {
                    Call::new(OWNER, proposeParameterCall { parameter, value })
                } else {
                    Call::new(OWNER, setParameterCall { parameter, value })
                }
            }
            Op::Dispatch(n) => Call::new(who(50), dispatchCall { count: n as u8 }),
            Op::Parameter { which, value } => {
                // No product of these lies on a threshold, where the model's f64 could not tell.
                let choices: [(&'static str, &[u64]); 34] = [
                    ("alphaMilli", &[0, 400, 2_000, 3_000, 9_000]),
                    ("minPrice", &[1, 1_000]),
                    ("startFeeBps", &[0, 200, 5_000]),
                    ("drawDelay", &[0, 0, 1, 2]),
                    ("penaltyPpm", &[0, 90_000, 300_000, 1_000_000]),
                    ("boostPpm", &[0, 150_000, 1_000_000]),
                    ("exclusionPpm", &[0, 100_000, 310_000, 900_000]),
                    ("tau", &[1, 60, 1_800, 1_800, 604_800]),
                    ("sdUnit", &[1, 20]),
                    ("gptUnit", &[0, 7]),
                    ("limitMin", &[1, 60]),
                    ("limitMax", &[60, 7_200]),
                    ("grace", &[0, 30]),
                    ("minStake", &[1, 400_000, 500_000]),
                    ("unbonding", &[0, 500, 86_400]),
                    ("unbonding", &[0, 500]),
                    ("gptOverhead", &[1, 60, 60, 3_600]),
                    ("kickoutMilli", &[0, 2_000, 4_000]),
                    ("scarce", &[0, 3, 8]),
                    ("spread", &[0, 10, 16]),
                    ("boostPool", &[0, 1, 3, 8]),
                    ("queueTime", &[60, 900, 21_600]),
                    ("groupFee", &[0, 1, 4_000]),
                    ("sampleBps", &[0, 1_000, 5_000, 10_000, 10_000]),
                    ("sampleDelay", &[2, 2, 3]),
                    ("sampleWindow", &[60, 600, 65_535]),
                    ("revealWindow", &[3_600, 7_200]),
                    ("openMost", &[1, 2, 3, 8]),
                    ("slashTimes", &[0, 1, 20, 255]),
                    ("scorePool", &[3, 3, 5, 9]),
                    ("downloadTime", &[0, 600]),
                    ("hammingMost", &[0, 6, 8, 64]),
                    ("slashImages", &[0, 1]),
                    ("holdTime", &[0, 1, 60, 255]),
                ];
                let (name, values) = choices[pick(which, choices.len())];
                let (by, value) = (if value >> 60 == 1 { who(50) } else { OWNER }, U256::from(values[pick(value, values.len())]));
                if DELAYED.contains(&name) {
                    Call::new(by, proposeParameterCall { parameter: parameter(name), value })
                } else {
                    Call::new(by, setParameterCall { parameter: parameter(name), value })
                }
            }
            Op::Accept(which) => {
                // Mostly one that can take effect.
                let due = |name: &&&str| self.proposed.get(**name).is_some_and(|(_, at)| *at <= self.now || which >> 61 == 1);
                let due: Vec<&str> = DELAYED.iter().filter(due).copied().collect();
                let name = due.get(pick(which, due.len())).copied().unwrap_or(DELAYED[pick(which, DELAYED.len())]);
                Call::new(who(50), acceptParameterCall { parameter: parameter(name) })
            }
            Op::Switch(on) => Call::new(OWNER, setPausedCall { on }),
            Op::Sweep => Call::new(who(50), sweepTreasuryCall {}),
            Op::Name(n) => {
                let name = match n % 20 {
                    0 => String::new(),
                    1 => "x".repeat(129),
                    2 => format!("model\n{n}"),
                    3 => format!("modèle {n}"),
                    4 => "y".repeat(128 - n as usize % 3),
                    _ => format!("org/model {n}"),
                };
                Call::new(who(50 + n % 2), nameModelCall { name })
            }
            Op::Pass { .. } | Op::Force(_) | Op::Rest | Op::Score { .. } => unreachable!("no call"),
        }
    }

    /// One of four that have tasks.
    fn application_of(&self, n: u64) -> Address {
        who(self.operators + 1 + n % 4)
    }

    /// The operator of a node that is called to a group, for one number of four; one that was held back before it could begin first.
    fn called(&self, n: u64) -> Option<Address> {
        let called = self.nodes.values().filter(|node| n.is_multiple_of(4) && node.called > 0);
        called.max_by_key(|node| node.parked.is_some()).map(|node| node.operator)
    }

    /// The effect that the call must have; gives the sum it pays out.
    fn apply(&mut self, call: &Call, t: &mut Trace) -> Result<u128, &'static str> {
        let by = call.from;
        let asked = C::abi_decode_validate(&call.data).expect("a function of the interface");
        match &asked {
            C::dispatch(c) => {
                need!(c.count <= 16, "TooManyAtOnce");
                self.serve(t, by, 0, c.count as u64, false);
                self.readmit(t, by, false);
                return Ok(0);
            }
            C::setParameter(c) => {
                let (name, value) = (PARAMETERS[c.parameter as usize].name, c.value.to());
                need!(by == OWNER, "NotOwner");
                let idle = self.pending.is_empty() && self.calls.is_empty();
                need!(!matches!(name, "drawDelay" | "sampleDelay") || value >= self.set[name] || idle, "TasksPending");
                self.set_parameter(t, name, value);
                return Ok(0);
            }
            C::proposeParameter(c) => {
                need!(by == OWNER, "NotOwner");
                let at = self.now + UPGRADE_DELAY as u64;
                let (name, value) = (PARAMETERS[c.parameter as usize].name, c.value.to());
                self.proposed.insert(name, (value, at));
                self.bound_fees(name, value);
                t.expect(E::ParameterProposed(IMuster::ParameterProposed {
                    parameter: c.parameter,
                    value: c.value,
                    effective: at,
                }));
                return Ok(0);
            }
            C::acceptParameter(c) => {
                let name = PARAMETERS[c.parameter as usize].name;
                let (value, at) = *self.proposed.get(name).ok_or("NotProposed")?;
                need!(self.now >= at, "TooEarly");
                self.proposed.remove(name);
                self.set_parameter(t, name, value);
                return Ok(0);
            }
            C::setPaused(c) => {
                self.paused = c.on;
                t.expect(E::PausedChanged(IMuster::PausedChanged { on: c.on }));
                return Ok(0);
            }
            C::cancel(c) => {
                let i = self.queue.iter().position(|q| q.id == c.id && q.at == c.ticket).ok_or("TaskNotQueued")?;
                need!(self.queue[i].creator == by, "NotTheCreator");
                let task = self.queue.remove(i);
                self.abort(t, &task, 0, 1, None);
                return Ok(0);
            }
            C::expireQueued(c) => {
                let i = self.queue.iter().position(|q| q.id == c.id && q.at == c.ticket).ok_or("TaskNotQueued")?;
                need!(self.now > self.queue[i].since + self.set["queueTime"], "QueueTimeNotOver");
                let task = self.queue.remove(i);
                self.abort(t, &task, 0, 3, Some(by).filter(|&by| by != task.creator));
                return Ok(0);
            }
            C::withdraw(_) => {
                let now = self.now;
                let open = self.own(by).map_or(0, |node| self.nodes[&node].open);
                let a = self.accounts.entry(by).or_default();
                let credit = std::mem::take(&mut a.credit);
                let over = a.unbonding > 0 && now >= a.release;
                need!(!over || open == 0 || credit > 0, "StakeLocked");
                let stake = if over && open == 0 { std::mem::take(&mut a.unbonding) } else { 0 };
                let paid = credit + stake;
                need!(paid > 0, "NothingToWithdraw");
                t.expect(E::Withdrawn(IMuster::Withdrawn { account: by.into(), to: by.into(), credit, stake }));
                return Ok(paid);
            }
            C::listGpuGroup(c) => {
                need!(by == OWNER, "NotOwner");
                need!(self.groups.values().any(|&g| g == c.group), "GpuUnknown");
                if c.listed {
                    self.listed.insert(c.group);
                } else {
                    self.listed.remove(&c.group);
                }
                t.expect(E::GpuGroupListed(IMuster::GpuGroupListed { group: c.group, listed: c.listed }));
                return Ok(0);
            }
            C::createTasks(c) => return self.create_all(t, call, c).map(|()| 0),
            // Calls of validation take due draws as they are, and serve nothing.
            C::commit(c) => return self.commit(t, by, c).map(|()| 0),
            C::reveal(c) => return self.reveal(t, by, c).map(|()| 0),
            C::validate(c) => return self.validate(t, by, c).map(|()| 0),
            C::formGroup(_) => {
                if self.call_is_next() {
                    self.form(t, by);
                }
                return Ok(0);
            }
            C::settle(c) => return self.settle(t, by, c).map(|()| 0),
            C::nameModel(c) => {
                let printable = c.name.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
                need!((1..=128).contains(&c.name.len()) && printable, "BadModelName");
                let hash = keccak256(c.name.as_bytes());
                let model = hash[..5].iter().fold(0, |id: u64, &b| id << 8 | b as u64);
                need!(self.names.insert(model), "ModelHasName");
                t.expect(E::ModelNamed(IMuster::ModelNamed { model, name: c.name.clone() }));
                return Ok(0);
            }
            C::setStores(c) => {
                need!(c.uris.len() <= 256, "StoresTooLong");
                let plain = |uri: &str| !uri.is_empty() && uri.bytes().all(|b| (0x21..=0x7e).contains(&b));
                need!(c.uris.is_empty() || c.uris.split(' ').all(plain), "BadStores");
                let account = self.accounts.get(&by).filter(|a| a.works).map_or(by, |a| self.nodes[&a.node].operator);
                self.stores.insert(account, c.uris.clone());
                t.expect(E::StoresSet(IMuster::StoresSet { account: account.into(), uris: c.uris.clone() }));
                return Ok(0);
            }
            C::setWorker(c) => {
                let node = self.owned(by)?;
                self.name_worker(t, node, c.worker.into_array());
                return Ok(0);
            }
            C::acceptWork(c) => {
                need!(self.own(by).is_err(), "HasNode");
                need!(self.nodes.get(&c.node).is_some_and(|n| n.worker == by), "NotNamed");
                let a = self.accounts.entry(by).or_default();
                (a.node, a.works) = (c.node, true);
                t.expect(E::WorkAccepted(IMuster::WorkAccepted { node: c.node, worker: by.into() }));
                return Ok(0);
            }
            C::leaveWork(_) => {
                let node = self.own(by)?;
                need!(self.accounts[&by].works, "HasNode");
                self.name_worker(t, node, [0; 20]);
                return Ok(0);
            }
            C::sweepTreasury(_) => {
                let amount = std::mem::take(&mut self.treasury);
                need!(amount > 0, "NothingToWithdraw");
                t.expect(E::TreasurySwept(IMuster::TreasurySwept { treasury: TREASURY.into(), amount }));
                return Ok(amount);
            }
            _ => {}
        }
        let (mut served, mut back) = (0, None);
        // Three write much themselves, and make only the draws that they need made.
        if !matches!(asked, C::join(_) | C::raiseStake(_) | C::reportDownloaded(_)) {
            served = self.serve(t, by, 0, 2, true);
            back = self.readmit(t, by, served > 0);
        }
        let unsettled = match &asked {
            C::join(_) => !self.paused,
            C::poke(c) => self.nodes.contains_key(&c.node) && back != Some(c.node),
            C::raiseStake(_) | C::pause(_) | C::resume(_) | C::quit(_) => true,
            C::reportDownloaded(_) | C::reportRemoved(_) | C::purge(_) | C::setProfile(_) => true,
            _ => false,
        };
        // The call's own work counts as words read. With more than 96, of which its first reads are a few, it may leave the first draw.
        let written = match &asked {
            C::join(c) => {
                let known = self.groups.contains_key(&(c.gpuName.clone(), c.vram));
                30 + if known { 0 } else { 70 } + 9 * c.models.len()
            }
            C::reportDownloaded(c) => 9 * c.models.len(),
            _ => 0,
        };
        t.laden = written > 80;
        if unsettled {
            served = self.serve(t, by, served, 8, true);
        }
        need!(!(unsettled && self.draws_due()), "DrawsDue");
        match &asked {
            C::join(c) => {
                t.spent |= served > 0;
                self.join(t, call, c)?;
            }
            C::raiseStake(_) => {
                let node = self.owned(by)?;
                need!(matches!(self.nodes[&node].status, 1 | 2 | 3 | 5), "WrongStatus");
                need!(call.value > 0, "StakeTooLow");
                need!(self.nodes[&node].stake + call.value <= (400 << 18) * TOKEN, "StakeTooHigh");
                let n = self.nodes.get_mut(&node).unwrap();
                n.stake += call.value;
                t.expect(E::StakeRaised(IMuster::StakeRaised { node, added: call.value, stake: n.stake }));
            }
            C::pause(_) => {
                let (node, now) = (self.own(by)?, self.now);
                let n = self.nodes.get_mut(&node).unwrap();
                match n.status {
                    // It rests to the end, and pauses then.
                    1 if n.rests && n.parked.is_some_and(|until| until > now) => {
                        n.status = 3;
                        t.expect(E::NodePausing(IMuster::NodePausing { node }));
                        self.note("a resting node pauses");
                    }
                    1 => {
                        (n.status, n.parked, n.rests) = (5, None, false);
                        t.expect(E::NodePaused(IMuster::NodePaused { node }));
                        if self.stop_waiting(node) {
                            self.note("a waiting node paused");
                        }
                    }
                    2 => {
                        n.status = 3;
                        t.expect(E::NodePausing(IMuster::NodePausing { node }));
                    }
                    _ => return Err("WrongStatus"),
                }
            }
            C::resume(_) => {
                let node = self.own(by)?;
                need!(self.nodes[&node].status == 5, "WrongStatus");
                self.nodes.get_mut(&node).unwrap().aside = false;
                t.expect(E::NodeResumed(IMuster::NodeResumed { node }));
                self.release(t, by, node, May::Wait);
            }
            C::quit(_) => {
                let node = self.owned(by)?;
                match self.nodes[&node].status {
                    1 | 5 => self.leave(t, node, false),
                    2 => {
                        self.nodes.get_mut(&node).unwrap().status = 4;
                        t.expect(E::NodeQuitting(IMuster::NodeQuitting { node }));
                    }
                    _ => return Err("WrongStatus"),
                }
            }
            C::reportDownloaded(c) => {
                let node = self.own(by)?;
                need!(self.nodes[&node].status != 0, "WrongStatus");
                for &model in &c.models {
                    need!(self.nodes.get_mut(&node).unwrap().held.insert(model), "ModelHeld");
                    self.enter(node, model);
                    t.expect(E::ModelAdded(IMuster::ModelAdded { node, model }));
                }
            }
            C::reportRemoved(c) => {
                let node = self.own(by)?;
                need!(self.nodes[&node].status != 0, "WrongStatus");
                for &model in &c.models {
                    need!(self.nodes.get_mut(&node).unwrap().held.remove(&model), "ModelNotHeld");
                    t.expect(E::ModelRemoved(IMuster::ModelRemoved { node, model }));
                }
            }
            C::purge(c) => {
                let (model, position) = (c.model, c.position as usize);
                let list = self.holders.entry(model).or_default();
                need!(position < list.len(), "HolderNotStale");
                let node = list[position];
                let n = self.nodes.get_mut(&node).unwrap();
                need!(n.status == 0 || !n.held.contains(&model), "HolderNotStale");
                list.swap_remove(position);
                n.held.remove(&model);
                t.expect(E::HolderPurged(IMuster::HolderPurged { node, model }));
            }
            C::poke(c) if back == Some(c.node) || t.spent && self.nodes.contains_key(&c.node) => {}
            C::poke(c) => {
                let n = self.nodes.get(&c.node).ok_or("NodeUnknown")?;
                need!(n.status == 1, "WrongStatus");
                let able = self.eligible(self.h(n));
                if let Some(until) = n.parked {
                    let waits = n.waits.is_some();
                    let over = |queue| until <= self.now || !self.queue.iter().any(|task| task.queue() == queue);
                    let rests = n.rests && until > self.now;
                    need!(able && n.waits.is_none_or(over) && !rests, "NothingToPoke");
                    if waits {
                        self.note("a waiting node poked");
                    }
                    self.return_to_work(t, by, c.node);
                } else {
                    self.release(t, by, c.node, May::Take);
                    let n = &self.nodes[&c.node];
                    need!(n.status != 1 || n.parked.is_some(), "NothingToPoke");
                    if n.reserved > 0 {
                        self.note("an idle node poked and reserved");
                    }
                }
            }
            C::setProfile(c) => self.set_profile(t, by, &c.profile)?,
            C::createTask(c) => self.create(t, call, &c.spec, false)?,
            C::submit(c) => {
                let node = self.own(by)?;
                let task = self.running(node, c.id)?;
                need!(task.policy == 0, "CommitFirst");
                need!(self.now <= task.at, "DeadlinePassed");
                self.succeed(t, by, node, &task, c.resultDigest, task.fee);
            }
            C::reportError(c) => {
                let node = self.own(by)?;
                let task = self.running(node, c.id)?;
                need!(task.policy == 0, "CommitFirst");
                need!(self.now <= task.at, "DeadlinePassed");
                self.fail(t, by, node, &task, c.code);
            }
            C::expire(c) => {
                need!(self.nodes.contains_key(&c.node), "NodeUnknown");
                let task = self.running(c.node, c.id)?;
                match task.part {
                    Part::Calling(_) => return Err("Sampled"),
                    Part::Committed(commitment) => {
                        need!(self.now > commitment.at + self.set["sampleWindow"], "DeadlineNotPassed");
                        need!(commitment.block + self.set["sampleDelay"] < self.block, "HashUnknown");
                        need!(self.lot(&task, &commitment) != Some(true), "Sampled");
                        self.note("unrevealed");
                    }
                    _ => need!(self.now > task.at, "DeadlineNotPassed"),
                }
                self.penalise(c.node);
                if let Part::Member(place) = task.part {
                    self.drop_out(t, place, c.node, TIMED_OUT, task.at);
                    self.note("member expired");
                } else {
                    let own = self.accounts.get(&by).is_some_and(|a| a.node == c.node);
                    self.abort(t, &task, c.node, 0, Some(by).filter(|_| !own));
                }
                self.release(t, by, c.node, May::Wait);
            }
            _ => unreachable!("done above"),
        }
        Ok(0)
    }

    fn succeed(&mut self, t: &mut Trace, by: Address, node: u32, task: &Task, digest: B256, paid: u128) {
        if task.boosts {
            self.boost(node, task.estimate);
        }
        self.credit(self.nodes[&node].operator, paid);
        t.expect(E::TaskSucceeded(IMuster::TaskSucceeded {
            id: task.id,
            node,
            creator: task.creator.into(),
            resultDigest: digest,
            paid,
        }));
        self.release(t, by, node, May::Wait);
    }

    fn fail(&mut self, t: &mut Trace, by: Address, node: u32, task: &Task, code: u8) {
        let refund = task.fee - task.start_fee();
        self.treasury += task.start_fee();
        self.credit(task.creator, refund);
        t.expect(E::TaskErrorReported(IMuster::TaskErrorReported {
            id: task.id,
            node,
            creator: task.creator.into(),
            code,
            refund,
        }));
        // For as long as the task would have taken it, up to a minute.
        self.release(t, by, node, May::Rest(task.began + task.estimate.min(60)));
    }

    // ------------------------------------------------------------ validation

    /// The most that a sampled task can pay: the sum that the least stake ever covers, with as many commitments open as there ever could
    /// be.
    fn most_at_stake(&self) -> u128 {
        let (least, most) = self.bounds;
        let times = self.set["slashTimes"] as u128 * (most as u128 + 1);
        (kept_at_least(least) / times.max(1)).min(FEE_END - 1)
    }

    /// The stake that a slashed node must have left to stay: 15/16 of the least stake, but of the first one where it was raised beyond that.
    fn kept_by_slashed(&self) -> u128 {
        kept_at_least(self.set["minStake"].min(FIRST_LEAST))
    }

    /// Active nodes of those that a task can go to.
    fn active(&self, task: &Task) -> u64 {
        self.nodes.values().filter(|n| n.status != 0 && !n.aside && task.fits(n)).count() as u64
    }

    /// Whether nodes of this GPU group answer a task alike, as far as that matters.
    fn alike(&mut self, task: &Task, group: u32) -> bool {
        let alike = task.kind == 0 || self.listed.contains(&group);
        if !alike {
            self.note("not scored for being unlisted");
        }
        alike
    }

    /// Whether enough nodes for scores have joined that a task can go to, and two thirds as many are active. Only GPU groups with an active
    /// node count.
    fn scores(&mut self, task: &Task) -> bool {
        let pool = self.set["scorePool"];
        let joined = |n: &&Node| n.status != 0 && task.fits(n);
        let met: BTreeSet<u32> = self.nodes.values().filter(joined).filter(|n| !n.aside).map(|n| n.group).collect();
        let enough = self.nodes.values().filter(joined).filter(|n| met.contains(&n.group)).count() as u64 >= pool;
        let scored = enough && self.active(task) >= pool - pool / 3;
        if enough && !scored {
            self.note("not scored for too few active nodes");
        }
        scored
    }

    /// Takes as much as this out of the reserve, in which the last wei stays.
    fn take_from_reserve(&mut self, wei: u128) -> u128 {
        let taken = wei.min(self.reserve.saturating_sub(1));
        self.reserve -= taken;
        taken
    }

    fn commit(&mut self, t: &mut Trace, by: Address, c: &commitCall) -> Refused {
        let node = self.own(by)?;
        let mut task = self.running(node, c.id)?;
        need!(task.policy > 0 && matches!(task.part, Part::Alone | Part::Member(_)), "NothingToCommit");
        need!(self.now <= task.at, "DeadlinePassed");
        let kept = kept_of(c.commitment);
        let (now, elapsed) = (self.now, self.now - task.began);
        let mut told = IMuster::AnswerCommitted { id: c.id, node, group: 0, commitment: kept, block: 0 };
        if let Part::Member(place) = task.part {
            told.group = place;
            t.expect(E::AnswerCommitted(told));
            let mut answer = B256::ZERO;
            answer[..24].copy_from_slice(&kept[..]);
            *self.member(place, node) = Member { node, stage: COMMITTED, moment: now, elapsed, answer };
            self.count_open(t, by, node, place);
        } else {
            told.block = self.block + self.set["sampleDelay"];
            task.scored = task.scored && self.alike(&task, task.group());
            task.part = Part::Committed(Commitment { kept, at: now, elapsed, block: told.block, lot: None });
            t.expect(E::AnswerCommitted(told));
            self.nodes.get_mut(&node).unwrap().task = Some(task);
        }
        Ok(())
    }

    fn member(&mut self, place: u32, node: u32) -> &mut Member {
        let team = self.teams.get_mut(&place).expect("there is a group");
        team.members.iter_mut().find(|m| m.node == node).expect("a member of it")
    }

    /// A node has committed in a group, and is free to work on, unless it has too many open commitments.
    fn count_open(&mut self, t: &mut Trace, by: Address, node: u32, place: u32) {
        let (most, liable) = (self.set["openMost"], self.teams[&place].liable());
        if !liable {
            let others = self.nodes[&node].open > 0;
            self.note(if others { "no liability for a commitment beside another" } else { "no liability for a commitment" });
        }
        let n = self.nodes.get_mut(&node).unwrap();
        n.open += u64::from(liable);
        if n.open < most || n.called > 0 {
            return self.release(t, by, node, May::Wait);
        }
        (n.halted, n.task) = (true, None);
        self.note("held");
    }

    fn reveal(&mut self, t: &mut Trace, by: Address, c: &revealCall) -> Refused {
        let code_fits = c.value[..31].iter().all(|&b| b == 0);
        need!(c.kind == 0 || c.kind == 1 && code_fits, "BadAnswerKind");
        let hash = kept_of(commitment(c.id, c.node, c.kind, c.value, c.salt));
        if c.group == 0 {
            self.reveal_alone(t, by, c, hash)
        } else {
            self.reveal_member(t, by, c, hash)
        }
    }

    /// Whether an answer has a hash for each image and no other.
    fn well_formed(task: &Task, c: &revealCall) -> bool {
        let there = |image: usize| c.value[8 * image..][..8] != [0; 8];
        c.kind == 1 || task.images == 0 || (0..4).all(|image| there(image) == (image < task.images as usize))
    }

    fn reveal_alone(&mut self, t: &mut Trace, by: Address, c: &revealCall, hash: FixedBytes<24>) -> Refused {
        need!(self.nodes.contains_key(&c.node), "NodeUnknown");
        let task = self.running(c.node, c.id)?;
        let commitment = match task.part {
            Part::Committed(commitment) => commitment,
            Part::Calling(_) => return Err("Sampled"),
            _ => return Err("NotCommitted"),
        };
        need!(commitment.kept == hash, "NotWhatWasCommitted");
        need!(Self::well_formed(&task, c), "BadImages");
        need!(!self.lot(&task, &commitment).ok_or("HashUnknown")?, "Sampled");
        Self::tell_reveal(t, c);
        if c.kind == 1 {
            self.fail(t, by, c.node, &task, c.value[31]);
            return Ok(());
        }
        let paid = if task.scored { task.payment() } else { task.fee };
        self.reserve += task.fee - paid;
        self.note(if paid < task.fee { "revealed alone" } else { "revealed alone and paid in full" });
        self.succeed(t, by, c.node, &task, c.value, paid);
        Ok(())
    }

    fn tell_reveal(t: &mut Trace, c: &revealCall) {
        t.expect(E::AnswerRevealed(IMuster::AnswerRevealed {
            id: c.id,
            node: c.node,
            group: c.group,
            kind: c.kind,
            value: c.value,
            salt: c.salt,
        }));
    }

    fn team(&self, id: u64, place: u32) -> Result<&Team, &'static str> {
        self.teams.get(&place).filter(|team| team.task.id == id).ok_or("GroupUnknown")
    }

    fn reveal_member(&mut self, t: &mut Trace, by: Address, c: &revealCall, hash: FixedBytes<24>) -> Refused {
        let team = self.team(c.id, c.group)?;
        let member = team.members.iter().find(|m| m.node == c.node).ok_or("NotAMember")?;
        need!(member.stage == COMMITTED, "NotCommitted");
        need!(team.opens(self.now).is_some(), "NotOpen");
        need!(member.answer[..24] == hash[..], "NotWhatWasCommitted");
        need!(Self::well_formed(&team.task, c), "BadImages");
        Self::tell_reveal(t, c);
        let before = self.teams[&c.group].open();
        let member = self.member(c.group, c.node);
        member.stage = if c.kind == 0 { ANSWERED } else { FAILED };
        member.answer = c.value;
        // Those that nothing can be slashed for any more.
        let after = self.teams[&c.group].open();
        for node in before.into_iter().filter(|node| !after.contains(node)) {
            let n = self.nodes.get_mut(&node).unwrap();
            n.open -= 1;
            let note = match (c.kind, node == c.node) {
                (1, true) => "freed by an error revealed",
                (1, false) => "freed by another's error",
                (_, true) => "freed by its own answer",
                (_, false) => "freed by another's answer",
            };
            if std::mem::take(&mut n.halted) {
                self.note(note);
                self.release(t, by, node, May::Wait);
            }
        }
        if self.teams[&c.group].all_revealed() {
            if self.draws_due() {
                self.note("judgement put off");
            } else if self.teams[&c.group].task.policy == 3 && self.pending.len() == PENDING {
                self.note("rated: judgement put off");
            } else {
                self.judge(t, by, c.group);
            }
        }
        Ok(())
    }

    fn validate(&mut self, t: &mut Trace, by: Address, c: &validateCall) -> Refused {
        need!(self.nodes.contains_key(&c.node), "NodeUnknown");
        let mut task = self.running(c.node, c.id)?;
        let commitment = match task.part {
            Part::Committed(commitment) => commitment,
            Part::Calling(_) => return Err("Sampled"),
            _ => return Err("NotCommitted"),
        };
        need!(self.lot(&task, &commitment).ok_or("HashUnknown")?, "NotSampled");
        need!(self.calls.len() < CALLS, "TooManyValidatorDraws");
        let block = self.block + self.set["sampleDelay"];
        self.calls.push_back(Waiting { id: c.id, node: c.node, block, tries: 0 });
        let own = self.accounts.get(&by).is_some_and(|a| a.node == c.node);
        let paid = task.start_fee();
        task.fee -= paid;
        if own {
            self.reserve += paid;
            self.note("validate paid the reserve");
        } else {
            self.credit(by, paid);
            self.note("validate paid");
        }
        t.expect(E::TaskSampled(IMuster::TaskSampled {
            id: c.id,
            node: c.node,
            creator: task.creator.into(),
            drawBlock: block,
            beneficiary: if own { [0; 20].into() } else { by.into() },
            paid,
        }));
        task.part = Part::Calling(commitment);
        self.nodes.get_mut(&c.node).unwrap().task = Some(task);
        Ok(())
    }

    /// The draw of the validators of the first call that waits, as the real thing decided it, checked.
    fn form(&mut self, t: &mut Trace, by: Address) {
        let task = self.first_called().cloned();
        let mut call = self.calls.pop_front().unwrap();
        let Some(task) = task else {
            t.silent = t.silent.saturating_sub(1);
            return self.note("call without a task");
        };
        let Part::Calling(commitment) = task.part else { unreachable!("it is called") };
        let (known, there) = (call.block + HISTORY >= self.block, self.active(&task));
        let scored = task.scored;
        if known {
            self.set_aside(t, &task);
        }
        let redrawn = !known || matches!(t.peek(), Some(E::TaskRedrawn(_)));
        if redrawn {
            if known {
                call.tries += 1;
                assert!(there >= 3 && call.tries < CALL_DRAWS, "enough was drawn for {call:?}, of {there}");
            }
            self.note(if known { "call undecided" } else { "call too old" });
            call.block = self.block + self.set["sampleDelay"];
            t.expect(E::TaskRedrawn(IMuster::TaskRedrawn { id: call.id, drawBlock: call.block }));
            return self.calls.push_back(call);
        }
        let Some(E::GroupFormed(formed)) = t.peek().cloned() else { panic!("a group forms: {:?}", t.peek()) };
        assert!(formed.nodes.len() == 3 || formed.nodes.len() < 3 && (there < 3 || call.tries + 1 == CALL_DRAWS), "{formed:?}");
        assert_eq!(formed.nodes[0], call.node);
        for (i, peer) in formed.nodes.iter().enumerate().skip(1) {
            let n = &self.nodes[peer];
            let can = matches!(n.status, 1 | 2)
                && n.called == 0
                && !n.halted
                && n.open < self.set["openMost"]
                && task.fits(n)
                && self.eligible(self.h(n));
            assert!(can && !formed.nodes[..i].contains(peer), "{peer} cannot be called: {formed:?}");
        }
        self.take_place(formed.group);
        t.expect(E::GroupFormed(IMuster::GroupFormed { creator: task.creator.into(), id: task.id, scored, ..formed.clone() }));
        self.note(match formed.nodes.len() {
            3 => "group of three",
            2 => "group of two",
            _ => "group of one",
        });
        let mut answer = B256::ZERO;
        answer[..24].copy_from_slice(&commitment.kept[..]);
        let first = Member { node: call.node, stage: COMMITTED, moment: commitment.at, elapsed: commitment.elapsed, answer };
        let others = formed.nodes.iter().skip(1);
        let members = others.map(|&node| Member { node, stage: CALLED, moment: 0, elapsed: 0, answer: B256::ZERO });
        let members = std::iter::once(first).chain(members).collect();
        let slash_images = self.set["slashImages"] == 1;
        let task = Task { at: self.now, boosts: false, ..task };
        self.teams.insert(formed.group, Team { task, scored, slash_images, members });
        for &peer in &formed.nodes[1..] {
            if self.nodes[&peer].status == 1 {
                if self.stop_waiting(peer) {
                    self.note("waiting node called");
                }
                let n = self.nodes.get_mut(&peer).unwrap();
                let rests = std::mem::take(&mut n.rests);
                n.parked = None;
                if rests {
                    self.note("resting node called");
                }
                self.start_member(t, peer, formed.group);
            } else {
                let n = self.nodes.get_mut(&peer).unwrap();
                n.called = formed.group;
                let reserved = n.reserved > 0;
                t.expect(E::MemberCalled(IMuster::MemberCalled { id: call.id, node: peer, group: formed.group }));
                self.note(if reserved { "reserved node called" } else { "busy node called" });
            }
        }
        self.count_open(t, by, call.node, formed.group);
    }

    /// Takes the place of a new group, one that there is if one of them is free.
    fn take_place(&mut self, place: u32) {
        let free = (1..=self.places).any(|place| !self.teams.contains_key(&place));
        assert!(!self.teams.contains_key(&place) && (1..=self.places + !free as u32).contains(&place), "place {place}");
        self.places = self.places.max(place);
    }

    /// The paused nodes that a draw of validators met are not among the active ones from then on.
    fn set_aside(&mut self, t: &mut Trace, task: &Task) {
        let mut met = 0;
        while let Some(E::NodeSetAside(e)) = t.peek().cloned() {
            let n = self.nodes.get_mut(&e.node).expect("it joined");
            assert!(n.status == 5 && !n.aside && task.fits(n), "{e:?}");
            (n.aside, met) = (true, met + 1);
            t.next += 1;
        }
        assert!(met <= 4, "{met} paused nodes were met");
    }

    /// Lets a node begin in a group.
    fn start_member(&mut self, t: &mut Trace, node: u32, place: u32) {
        let task = self.teams[&place].task.clone();
        let n = self.nodes.get_mut(&node).unwrap();
        let missing: Vec<u64> = task.models.iter().copied().filter(|m| !n.held.contains(m)).collect();
        let more = if missing.is_empty() { 0 } else { self.set["downloadTime"] };
        let deadline = self.now + task.limit + more;
        if n.status == 1 {
            n.status = 2;
        }
        n.in_use.clone_from(&task.models);
        let id = task.id;
        n.task = Some(Task { at: deadline, began: self.now, part: Part::Member(place), ..task });
        let member = self.member(place, node);
        (member.stage, member.moment) = (RUNNING, deadline);
        t.expect(E::MemberStarted(IMuster::MemberStarted { id, node, group: place, deadline }));
        for model in missing {
            t.expect(E::DownloadRequested(IMuster::DownloadRequested { node, model, task: id }));
        }
    }

    /// Lets a node begin in the group that it was called to.
    fn begin(&mut self, t: &mut Trace, node: u32) {
        let place = std::mem::take(&mut self.nodes.get_mut(&node).unwrap().called);
        self.note("called node began");
        self.start_member(t, node, place);
    }

    /// A member of a group will not answer.
    fn drop_out(&mut self, t: &mut Trace, place: u32, node: u32, stage: u8, moment: u64) {
        let member = self.member(place, node);
        (member.stage, member.moment, member.elapsed) = (stage, moment, 0);
        let id = self.teams[&place].task.id;
        t.expect(E::MemberTimedOut(IMuster::MemberTimedOut { id, node, group: place }));
    }

    fn settle(&mut self, t: &mut Trace, by: Address, c: &settleCall) -> Refused {
        let (mut dropped, mut served) = (false, 0);
        let team = self.team(c.id, c.group)?;
        t.laden = team.liable() && !team.all_revealed();
        if self.team(c.id, c.group)?.opens(self.now).is_none() {
            served = self.serve(t, by, 0, 8, true);
            need!(!self.draws_due(), "DrawsDue");
            for node in self.lingering(c.group) {
                self.nodes.get_mut(&node).unwrap().called = 0;
                self.drop_out(t, c.group, node, GONE, self.now);
                self.note("settled without one called");
                dropped = true;
            }
        }
        let team = self.team(c.id, c.group)?;
        let opens = team.opens(self.now).ok_or("NotOpen")?;
        if dropped && !team.all_revealed() {
            return Ok(());
        }
        let late = self.now > opens + self.set["revealWindow"];
        need!(team.all_revealed() || late, "RevealsOpen");
        served = self.serve(t, by, served, 8, true);
        need!(!self.draws_due(), "DrawsDue");
        need!(self.teams[&c.group].task.policy < 3 || self.pending.len() < PENDING, "TooManyPending");
        self.note(if late { "settled late" } else { "settled" });
        (t.spent, t.full) = (t.spent || served > 0, served > 0);
        self.judge(t, by, c.group);
        Ok(())
    }

    /// Members called to a group that could have begun: nobody has called the validators of their own sampled tasks, though that is due.
    fn lingering(&self, place: u32) -> Vec<u32> {
        let window = self.set["sampleWindow"];
        let committed = |task: &Task| matches!(task.part, Part::Committed(c) if self.now > c.at + window);
        let lingers = |m: &&Member| m.stage == CALLED && self.nodes[&m.node].task.as_ref().is_some_and(committed);
        self.teams[&place].members.iter().filter(lingers).map(|m| m.node).collect()
    }

    /// The sum of the failed members' parts of a shared fee: nobody gets it.
    fn unshared(team: &Team, fee: u128) -> u128 {
        let failed = team.members.iter().filter(|m| m.stage == FAILED).count() as u128;
        fee / team.members.len() as u128 * failed
    }

    /// Judges a group: its right members, and everyone's pay, score and loss.
    fn judge(&mut self, t: &mut Trace, by: Address, place: u32) {
        if self.teams[&place].task.policy == 3 {
            return self.judge_rated(t, by, place);
        }
        let team = self.teams.remove(&place).expect("there is a group");
        let (task, fee) = (&team.task, team.task.fee);
        let right = team.right(self.set["hammingMost"]);
        let answers: Vec<usize> = (0..team.members.len()).filter(|&i| team.members[i].stage == ANSWERED).collect();
        let mut paid = vec![0; team.members.len()];
        let (mut refund, mut start_fee, mut answer) = (0, 0, B256::ZERO);
        let outcome = match (&right[..], &answers[..]) {
            ([fastest, ..], _) => {
                answer = team.members[*fastest].answer;
                let failed = team.members.iter().filter(|m| m.stage == FAILED).count();
                let pot = if team.scored && task.policy == 1 {
                    // A payment for each member that did not report an error; the reserve adds nothing where the first has not answered.
                    let whole = (team.members.len() - failed) as u128 * task.payment();
                    self.reserve += fee.saturating_sub(whole);
                    let answered = team.members[0].stage == ANSWERED;
                    if !answered && whole > fee {
                        self.note("nothing added where the first did not answer");
                    }
                    let missing = if answered { whole.saturating_sub(fee) } else { 0 };
                    whole.min(fee) + self.take_from_reserve(missing)
                } else {
                    let unshared = Self::unshared(&team, fee);
                    self.reserve += unshared;
                    fee - unshared
                };
                if failed > 0 {
                    self.note("a failed member's part unshared");
                }
                let shares = [10, 5, 2];
                let all: u128 = shares[..right.len()].iter().sum();
                for (&i, share) in right.iter().zip(shares) {
                    paid[i] = pot * share / all;
                }
                paid[*right.iter().max().unwrap()] += pot - paid.iter().sum::<u128>();
                self.note(match (right.len(), answers.len()) {
                    (3, _) => "agreed 3",
                    (2, 3) => "agreed 2 against 1",
                    _ => "agreed 2",
                });
                if right.len() == 3 && task.images > 0 {
                    let equal =
                        |a: usize, b: usize| team.same(team.members[a].answer, team.members[b].answer, self.set["hammingMost"]);
                    if !(equal(0, 1) && equal(0, 2) && equal(1, 2)) {
                        self.note("agreed in a chain");
                    }
                }
                0
            }
            ([], [0]) if task.policy == 1 => {
                answer = team.members[0].answer;
                paid[0] = if team.scored { task.payment() } else { fee };
                self.reserve += fee - paid[0];
                self.note("alone");
                1
            }
            ([], [_, _, ..]) => {
                self.note("differing");
                2
            }
            ([], _) => {
                self.note(match (answers.is_empty(), task.policy) {
                    (true, _) => "unanswered",
                    (_, 1) => "a validator alone",
                    _ => "one of three alone",
                });
                3
            }
        };
        if outcome > 1 {
            // A sampled task has paid it to the account that had its validators called.
            start_fee = if task.policy == 1 { 0 } else { task.start_fee() };
            refund = fee - start_fee;
        }
        self.note(if team.scored { "scored" } else { "not scored" });
        let open = team.open();
        for (i, member) in team.members.iter().enumerate() {
            let verdict = match member.stage {
                ANSWERED if right.contains(&i) => 1,
                ANSWERED if outcome == 0 => 2,
                ANSWERED => 6,
                COMMITTED => 3,
                FAILED => 4,
                _ => 5,
            };
            t.expect(E::MemberJudged(IMuster::MemberJudged {
                id: task.id,
                node: member.node,
                group: place,
                verdict,
                paid: paid[i],
            }));
            self.credit(self.nodes[&member.node].operator, paid[i]);
            let rank = right.iter().position(|&r| r == i);
            let counts = match rank {
                _ if !team.scored || outcome > 0 => Counts::Nothing,
                Some(rank) => Counts::Score([10, 5, 2][rank]),
                // An error is no answer.
                None if member.stage == FAILED => Counts::Nothing,
                None => Counts::Score(0),
            };
            let slash = if team.liable() && matches!(verdict, 2 | 3) { task.slash_times * task.share() } else { 0 };
            if slash > 0 {
                self.note(if verdict == 2 { "slashed for a wrong answer" } else { "slashed for withholding" });
            }
            let raises = verdict == 1 && (team.scored || right.len() as u64 >= self.set["boostPool"]);
            if raises && !team.scored {
                self.note("raised in a group that is not scored");
            }
            if self.conclude(t, place, task, member, (counts, raises), (slash, open.contains(&member.node))) {
                self.release(t, by, member.node, May::Wait);
            }
        }
        // No slash takes money that is only returned here.
        self.settled(t, task, place, (outcome, answer), (start_fee, refund));
    }

    /// Returns the rest of a judged task's fee, and tells its group's outcome.
    fn settled(
        &mut self,
        t: &mut Trace,
        task: &Task,
        group: u32,
        (outcome, answer): (u8, B256),
        (start_fee, refund): (u128, u128),
    ) {
        self.treasury += start_fee;
        self.credit(task.creator, refund);
        t.expect(E::GroupSettled(IMuster::GroupSettled {
            id: task.id,
            group,
            creator: task.creator.into(),
            outcome,
            answer,
            refund,
            startFee: start_fee,
            reserve: self.reserve,
        }));
    }

    /// Applies a judgement to a member's node; gives whether it is free for work.
    fn conclude(
        &mut self,
        t: &mut Trace,
        place: u32,
        task: &Task,
        member: &Member,
        (counts, raises): (Counts, bool),
        (slash, open): (u128, bool),
    ) -> bool {
        let node = member.node;
        let mut free = false;
        if member.stage == RUNNING {
            // It has let its deadline pass, and nobody has said so.
            self.penalise(node);
            t.expect(E::MemberTimedOut(IMuster::MemberTimedOut { id: task.id, node, group: place }));
            self.nodes.get_mut(&node).unwrap().task = None;
            self.note("member late at the judgement");
            free = true;
        }
        if member.stage == COMMITTED {
            // As bad as no answer.
            self.penalise(node);
            self.note("H fell for a withheld answer");
        }
        if raises {
            self.boost(node, task.estimate);
        }
        let out = match counts {
            Counts::Score(score) => self.record(t, node, score),
            Counts::Rating(right) => {
                self.rate(t, node, right);
                false
            }
            Counts::Nothing => false,
        };
        if open {
            let n = self.nodes.get_mut(&node).unwrap();
            n.open -= 1;
            free |= std::mem::take(&mut n.halted);
        }
        if slash > 0 {
            self.slash(t, node, task.id, slash);
            let n = &self.nodes[&node];
            if n.status != 0 && n.stake < self.kept_by_slashed() {
                self.expel(t, node);
                return false;
            }
        }
        let n = self.nodes.get_mut(&node).unwrap();
        match n.status {
            1 | 5 if out => {
                self.note("kicked out by a judgement");
                self.leave(t, node, true);
                return false;
            }
            2..=4 if out => {
                n.status = 6;
                self.note("kicked out by a judgement");
            }
            _ => {}
        }
        let n = &self.nodes[&node];
        let idle = n.status == 1 && n.parked.is_none() && n.waits.is_none() && n.reserved == 0;
        if member.stage == COMMITTED && idle && !self.eligible(self.h(n)) {
            self.note("idle and excluded for a withheld answer");
            return true;
        }
        free
    }

    /// Burns so much of a node's stake, in whole stake units, then of the stake returned to its operator, and of the operator's credit.
    fn slash(&mut self, t: &mut Trace, node: u32, id: u64, wei: u128) {
        let kept = self.kept_by_slashed();
        let stake_unit = STAKE_UNIT as u128;
        let n = self.nodes.get_mut(&node).unwrap();
        let stake = (wei / stake_unit * stake_unit).min(n.stake);
        n.stake -= stake;
        let (operator, gone) = (n.operator, n.status == 0);
        let a = self.accounts.get_mut(&operator).expect("it joined");
        let unbonding = ((wei - stake) / stake_unit * stake_unit).min(a.unbonding);
        a.unbonding -= unbonding;
        let credit = (wei - stake - unbonding).min(a.credit);
        a.credit -= credit;
        let bars = gone && !a.kicked && a.unbonding < kept;
        a.kicked |= bars;
        self.burnt += stake + unbonding + credit;
        t.expect(E::NodeSlashed(IMuster::NodeSlashed { node, operator: operator.into(), id, stake, unbonding, credit }));
        if bars {
            self.note("barred after it left");
            t.expect(E::NodeKickedOut(IMuster::NodeKickedOut { node, operator: operator.into() }));
        }
        for (what, took) in [("slashed stake", stake), ("slashed returned stake", unbonding), ("slashed credit", credit)] {
            if took > 0 {
                self.note(what);
            }
        }
        if gone {
            self.note("slashed after it left");
        }
    }

    /// Throws a node out of the network whose stake is too low now.
    fn expel(&mut self, t: &mut Trace, node: u32) {
        self.note("expelled");
        let n = self.nodes.get_mut(&node).unwrap();
        let (called, task) = (std::mem::take(&mut n.called), n.task.take());
        if called > 0 {
            self.drop_out(t, called, node, GONE, self.now);
            self.note("expelled while called");
        }
        match task {
            Some(Task { part: Part::Member(place), at: deadline, .. }) => {
                // Its deadline may be over, and reveals open.
                self.drop_out(t, place, node, GONE, self.now.min(deadline));
                self.note(if self.now > deadline { "expelled from a group after its deadline" } else { "expelled from a group" });
            }
            Some(task) => {
                self.abort(t, &task, node, 4, None);
                self.note("expelled from a task");
            }
            None => {}
        }
        let n = self.nodes.get_mut(&node).unwrap();
        n.halted = false;
        let reserved = std::mem::take(&mut n.reserved);
        if let Some(task) = self.pending.iter_mut().find(|task| task.id == reserved) {
            task.reserved.retain(|&other| other != node);
            self.note("expelled while reserved");
        }
        self.leave(t, node, true);
    }

    fn penalise(&mut self, node: u32) {
        let h = self.h(&self.nodes[&node]) * self.set["penaltyPpm"] as f64 / 1e6;
        self.put_h(node, h.min(self.most_h(node)));
    }

    /// H of a node that is raised by nothing: 1, or where it was below 1, below it by less than a float tells.
    fn most_h(&self, node: u32) -> f64 {
        if self.nodes[&node].h < 1.0 {
            1.0 - f64::EPSILON
        } else {
            1.0
        }
    }

    /// Raises H for a success, but not twice within half of the task's estimate.
    fn boost(&mut self, node: u32, estimate: u64) {
        if 2 * (self.now - self.nodes[&node].h_at) >= estimate {
            let more = self.set["boostPpm"] as f64 / 1e6;
            let most = if more > 0.0 { 1.0 } else { self.most_h(node) };
            let h = (self.h(&self.nodes[&node]) + more).min(most);
            self.put_h(node, h);
        }
    }

    /// Fees stay within the former values of a parameter, and within proposed ones from their proposal on.
    fn bound_fees(&mut self, name: &str, value: u64) {
        let (least, most) = self.bounds;
        match name {
            "minStake" => self.bounds = (least.min(value), most),
            "openMost" => self.bounds = (least, most.max(value)),
            _ => {}
        }
    }

    fn set_parameter(&mut self, t: &mut Trace, name: &'static str, value: u64) {
        let before = self.set.insert(name, value).unwrap();
        self.bound_fees(name, value);
        t.expect(E::ParameterChanged(IMuster::ParameterChanged {
            parameter: parameter(name),
            before: alloy_primitives::U256::from(before),
            value: alloy_primitives::U256::from(value),
        }));
    }

    /// The cost of joining with a GPU beside the stake, in wei.
    fn group_fee(&self, name: &str, vram: u16) -> u128 {
        if self.groups.contains_key(&(name.to_string(), vram)) {
            0
        } else {
            self.set["groupFee"] as u128 * STAKE_UNIT as u128
        }
    }

    fn put_h(&mut self, node: u32, h: f64) {
        let now = self.now;
        let n = self.nodes.get_mut(&node).unwrap();
        (n.h, n.h_at) = (h, now);
    }

    fn enter(&mut self, node: u32, model: u64) {
        let list = self.holders.entry(model).or_default();
        if !list.contains(&node) {
            list.push(node);
        }
    }

    fn join(&mut self, t: &mut Trace, call: &Call, asked: &joinCall) -> Refused {
        let joinCall { gpuName: name, vram, models } = asked;
        let vram = *vram;
        need!(!self.paused, "PausedByOwner");
        let issued = self.nodes.len() as u32;
        let a = self.accounts.entry(call.from).or_default();
        need!(!a.kicked, "KickedOut");
        need!(!a.works, "HasNode");
        let fee = self.group_fee(name, vram);
        need!(call.value <= (400 << 18) * TOKEN + fee, "StakeTooHigh");
        need!(call.value >= self.set["minStake"] as u128 * STAKE_UNIT as u128 + fee, "StakeTooLow");
        let stake = call.value - fee;
        let a = self.accounts.entry(call.from).or_default();
        if a.node == 0 {
            a.node = issued + 1;
        }
        let node = a.node;
        need!(self.nodes.get(&node).is_none_or(|n| n.status == 0), "WrongStatus");
        let same = self.groups.keys().filter(|k| k.1 == vram).count() as u32;
        let key = (name.clone(), vram);
        let group = match self.groups.get(&key) {
            Some(&g) => g,
            None => {
                let group = (same + 1) << 16 | vram as u32;
                self.groups.insert(key, group);
                self.treasury += fee;
                t.expect(E::GpuGroupCreated(IMuster::GpuGroupCreated { group, name: name.into(), vram, fee }));
                group
            }
        };
        t.expect(E::NodeJoined(IMuster::NodeJoined { node, operator: call.from.into(), group, stake, models: models.clone() }));
        for &m in models {
            self.enter(node, m);
        }
        let old = self.nodes.remove(&node).unwrap_or_default();
        self.nodes.insert(
            node,
            Node {
                operator: call.from,
                status: 1,
                stake,
                in_use: Vec::new(),
                h: 1.0,
                h_at: self.now,
                group,
                held: models.iter().copied().collect(),
                joined_at: self.now,
                task: None,
                parked: None,
                rests: false,
                waits: None,
                reserved: 0,
                ..old
            },
        );
        self.release(t, call.from, node, May::Wait);
        Ok(())
    }

    /// Tasks in one call: they wait for their draws, and none is created while there are draws that are due and not cheap.
    fn create_all(&mut self, t: &mut Trace, call: &Call, c: &createTasksCall) -> Refused {
        need!(c.specs.len() <= 16, "TooManyAtOnce");
        let covered = c.fees.iter().all(|&fee| fee < FEE_END) && c.fees.iter().sum::<u128>() == call.value;
        need!(c.fees.len() == c.specs.len() && covered, "BadBatch");
        need!(!self.paused, "PausedByOwner");
        need!(self.joined() > 0, "NoNodes");
        if self.draws_due() && !self.call_is_next() && self.pending[0].policy < 2 && self.pending[0].models.len() < 2 {
            self.serve(t, call.from, 0, 8, true);
            self.note("a batch drew");
        }
        need!(!self.draws_due(), "DrawsDue");
        for (place, (spec, &fee)) in c.specs.iter().zip(&c.fees).enumerate() {
            let Err(reason) = self.create(t, &Call { value: fee, ..call.clone() }, spec, true) else { continue };
            need!(!c.atomic, "RefusedInBatch");
            let Some(E::TaskRefused(e)) = t.peek().cloned() else { panic!("{reason}, but {:?}", t.peek()) };
            assert_eq!((e.creator.into_array(), e.place as usize, e.fee), (call.from, place, fee));
            assert_eq!(name_of(&e.reason), reason);
            t.next += 1;
            self.credit(call.from, fee);
        }
        if c.specs.len() > 1 {
            self.note("a batch created");
        }
        Ok(())
    }

    fn create(&mut self, t: &mut Trace, call: &Call, spec: &IMuster::TaskSpec, batch: bool) -> Refused {
        need!(!self.paused, "PausedByOwner");
        need!(self.joined() > 0, "NoNodes");
        let s = &self.set;
        let (over, unit, most) = match spec.kind {
            0 => (s["sdOverhead"], s["sdUnit"], 1_000),
            1 => (s["gptOverhead"], s["gptUnit"], 1_000),
            2 => (0, 1, s["fineTuneMax"]),
            _ => return Err("BadKind"),
        };
        let units = spec.units as u64;
        // No task that the longest time limit would end before its estimate.
        need!((1..=most).contains(&units) && over + unit * units <= s["limitMax"], "BadUnits");
        let estimate = (over + unit * units).max(s["limitMin"].div_ceil(2));
        need!(spec.redundancy < 4, "RedundancyUnsupported");
        need!(spec.flags < 2, "FlagsUnsupported");
        need!(spec.models.len() <= 8, "TooManyModels");
        need!(spec.gpu == 0 || self.groups.values().any(|&g| g == spec.gpu), "GpuUnknown");
        let could = |n: &Node| n.status != 0 && if spec.gpu == 0 { n.group as u16 >= spec.vram } else { n.group == spec.gpu };
        need!(self.nodes.values().any(could), "NobodyCanRun");
        let (policy, equal) = (spec.redundancy, spec.kind > 0);
        if policy > 0 && !equal {
            need!(spec.units <= 4, "BadUnits");
        } else if matches!(policy, 1 | 3) || policy == 2 && spec.gpu > 0 {
            need!(self.listed.contains(&spec.gpu), "GpuNotListed");
        }
        let nodes = match policy {
            2 => 3,
            3 => self.application(call.from).most(),
            _ => 1,
        };
        need!(policy < 3 || nodes <= 6 || spec.models.len() <= 6, "TooManyModels");
        let most = match policy {
            0 => u128::MAX,
            _ => (nodes as u128 * self.most_at_stake()).min(FEE_END - 1),
        };
        need!(call.value <= most, "FeeTooHigh");
        need!(call.value > 0 && call.value >= nodes as u128 * estimate as u128 * s["minPrice"] as u128, "FeeTooLow");
        // One that nobody idle could run is queued at once; only where the call has done something before can there be no room for it.
        let told = matches!(t.peek(), Some(E::TaskCreated(e)) if e.drawBlock == 0);
        let nobody = !batch && !self.idle().any(|(_, n)| could(n));
        assert!(nobody || !told, "queued beside idle nodes");
        let dear = |e: &E| matches!(e, E::TaskStarted(_) | E::NodeReadmitted(_));
        assert!(!told || !t.spent && !t.events[..t.next].iter().any(dear), "queued beside what is dear");
        // A call without events may have been expensive too: a call of validators whose task is gone, or words written for the first time.
        let at_end = nobody && (told || !t.spent && t.next + t.silent as usize == 0);
        need!(at_end || self.pending.len() < PENDING, "TooManyPending");
        need!(policy < 2 || self.so_many_there(spec, nodes), "NobodyCanRun");
        self.tasks += 1;
        let limit = (2 * estimate).min(s["limitMax"].max(s["limitMin"])).max(s["limitMin"]) + s["grace"];
        // Due draws are made first.
        let (due, at_once) = (self.draws_due(), s["drawDelay"] == 0 && !batch);
        let now = at_once && policy < 2 && !due;
        let draw_block = match (at_end, now) {
            (true, _) => 0,
            (_, true) => self.block - 1,
            _ => self.block + s["drawDelay"].max(1) - 1,
        };
        let mut task = Task {
            id: self.tasks,
            creator: call.from,
            fee: call.value,
            estimate,
            limit,
            bps: s["startFeeBps"] as u128,
            vram: if spec.gpu == 0 { spec.vram } else { spec.gpu as u16 },
            gpu: (spec.gpu != 0).then_some(spec.gpu),
            models: spec.models.clone(),
            at: draw_block,
            since: 0,
            boosts: false,
            kind: spec.kind,
            images: if policy > 0 && !equal { spec.units as u8 } else { 0 },
            policy,
            nodes,
            regrouped: 0,
            undecided: 0,
            sample_bps: if policy == 1 { s["sampleBps"] as u128 } else { 0 },
            scored: false,
            slash_times: if matches!(policy, 1 | 2) { s["slashTimes"] as u128 } else { 0 },
            began: 0,
            reserved: Vec::new(),
            chosen: None,
            part: Part::Alone,
        };
        task.scored = policy == 1 && self.scores(&task);
        t.expect(E::TaskCreated(IMuster::TaskCreated {
            id: task.id,
            creator: call.from.into(),
            fee: task.fee,
            estimate: estimate as u32,
            timeLimit: limit as u32,
            startFeeBps: task.bps as u16,
            drawBlock: draw_block,
            spec: spec.clone(),
        }));
        if nobody && !at_end {
            self.note("no room to queue at creation");
        }
        if at_once && due && policy < 2 && !at_end {
            self.note("Pending behind those that are due");
        }
        if at_end {
            self.note("queued at creation");
            self.enqueue(t, task);
        } else if now {
            self.draw(t, call.from, task, true);
        } else {
            self.pending.push_back(task);
        }
        Ok(())
    }

    /// Whether there are so many joined nodes that a task for several could ever go to.
    fn so_many_there(&self, spec: &IMuster::TaskSpec, nodes: u64) -> bool {
        let there = |can: &dyn Fn(&Node) -> bool| self.nodes.values().filter(|n| n.status != 0 && can(n)).count() as u64 >= nodes;
        if spec.gpu > 0 {
            there(&|n| !n.aside && n.group == spec.gpu)
        } else if spec.kind == 0 {
            there(&|n| !n.aside && n.group as u16 >= spec.vram)
        } else {
            self.listed.iter().any(|&group| group as u16 >= spec.vram && there(&|n| n.group == group))
        }
    }

    fn score(&mut self, t: &mut Trace, node: u32, score: u8) {
        if self.record(t, node, score) {
            match self.nodes[&node].status {
                2 | 3 | 4 | 6 => self.nodes.get_mut(&node).unwrap().status = 6,
                1 | 5 => self.leave(t, node, true),
                _ => {}
            }
        }
    }

    /// Enters a score; gives whether the node is to be kicked out for it.
    fn record(&mut self, t: &mut Trace, node: u32, score: u8) -> bool {
        t.expect(E::ScoreRecorded(IMuster::ScoreRecorded { node, score }));
        let least = self.set["kickoutMilli"] as f64 / 1e3;
        let n = self.nodes.get_mut(&node).unwrap();
        n.judged = rated(n.judged, score > 0);
        n.scores.push_back(score);
        if n.scores.len() > 50 {
            n.scores.pop_front();
        }
        let mean = n.scores.iter().map(|&s| s as f64).sum::<f64>() / n.scores.len() as f64;
        n.scores.len() == 50 && mean < least - 1e-9
    }
}

/// The meaning of every event to a reader of nothing but logs, [`crate::explorer::Explorer`]. It sees nothing of the model.
mod told {
    use super::rated;
    use crate::explorer::{Application, Explorer, Member, Task, Team, NO_RECEIPT};
    use crate::world::stage::*;
    use alloy_primitives::B256;
    use muster_protocol::abi::IMuster::{IMusterEvents as E, Outcome};
    use muster_protocol::parameters::PARAMETERS;

    impl Explorer {
        /// Reads the next event, logged in a block of time `now`.
        pub fn read(&mut self, e: &E, now: u64) {
            match e {
                E::Initialised(i) => {
                    self.owner = i.owner.into_array();
                    self.treasury = (i.treasury.into_array(), 0);
                    (self.stake_unit, self.base) = (i.stakeUnit, i.minimumStake);
                    self.upgrades = (i.upgradeDelay, false);
                }
                E::ParameterChanged(p) => {
                    let before = self.parameters.insert(p.parameter, p.value.to());
                    assert_eq!(before.unwrap_or(0), p.before.to::<u64>(), "the value before");
                    // Only proposed values change, where proposals are demanded.
                    if PARAMETERS[p.parameter as usize].delayed() && before.is_some() {
                        let (value, at) = self.next_parameters.remove(&p.parameter).expect("proposed");
                        assert!(value == p.value.to::<u64>() && at <= now);
                    }
                }
                E::ParameterProposed(p) => {
                    self.next_parameters.insert(p.parameter, (p.value.to(), p.effective));
                }
                E::ProgramsProposed(p) => {
                    let change = (p.program.into_array(), p.selectors.clone());
                    if p.effective == 0 {
                        self.next_programs.remove(&change)
                    } else {
                        self.next_programs.insert(change, p.effective)
                    };
                }
                E::UpgradesRenouncedForGood(_) => self.upgrades.1 = true,
                E::PausedChanged(p) => self.paused = p.on,
                E::OwnershipTransferStarted(o) => self.next_owner = o.newOwner.into_array(),
                E::OwnershipTransferred(o) => (self.owner, self.next_owner) = (o.newOwner.into_array(), [0; 20]),
                E::TreasuryProposed(t) => self.next_treasury = (t.treasury.into_array(), t.effective),
                E::TreasuryChanged(t) => {
                    self.treasury.0 = t.treasury.into_array();
                    self.next_treasury = ([0; 20], 0);
                }
                E::TreasurySwept(s) => self.treasury.1 -= s.amount,
                E::DiamondCut(d) => {
                    assert!(d.init.is_zero() && d.initCalldata.is_empty(), "nothing is run");
                    for cut in &d.cuts {
                        for selector in &cut.functionSelectors {
                            let before = match cut.action {
                                2 => self.programs.remove(&selector.0),
                                _ => self.programs.insert(selector.0, cut.facetAddress.into_array()),
                            };
                            assert_eq!(before.is_none(), cut.action == 0, "added exactly if nothing answered it");
                            assert_eq!(cut.facetAddress.is_zero(), cut.action == 2, "removed exactly if nothing answers it");
                        }
                    }
                }
                E::ModelNamed(m) => {
                    assert!(self.names.insert(m.model, m.name.clone()).is_none(), "once for each id");
                }
                E::GpuGroupCreated(g) => {
                    self.groups.insert(g.group, (g.name.clone(), g.vram));
                    self.treasury.1 += g.fee;
                }
                E::NodeJoined(j) => {
                    let n = self.nodes.entry(j.node).or_default();
                    (n.operator, n.status, n.stake, n.group) = (j.operator.into_array(), 1, j.stake, j.group);
                    (n.h, n.h_at, n.joined_at) = (1.0, now, now);
                    n.held.clear();
                    n.in_use.clear();
                    j.models.iter().for_each(|&m| self.enter(j.node, m));
                    self.account(j.operator).node = j.node;
                }
                E::StakeRaised(s) => self.node(s.node).stake = s.stake,
                E::NodePausing(p) => self.node(p.node).status = 3,
                E::NodePaused(p) => {
                    let n = self.node(p.node);
                    (n.status, n.parked, n.waits) = (5, None, false);
                }
                E::NodeResumed(p) => {
                    let n = self.node(p.node);
                    (n.status, n.aside) = (1, false);
                }
                E::WorkerNamed(w) => {
                    let former = std::mem::replace(&mut self.node(w.node).worker, (w.worker.into_array(), false));
                    if former.1 {
                        self.account(former.0).node = 0;
                    }
                }
                E::WorkAccepted(w) => {
                    self.node(w.node).worker.1 = true;
                    self.account(w.worker).node = w.node;
                }
                E::StoresSet(s) => {
                    self.stores.insert(s.account.into_array(), s.uris.clone());
                }
                E::NodeSetAside(p) => self.node(p.node).aside = true,
                E::NodeQuitting(p) => self.node(p.node).status = 4,
                E::NodeQuit(q) => {
                    let n = self.node(q.node);
                    (n.status, n.stake) = (0, 0);
                    (n.parked, n.waits, n.reserved) = (None, false, 0);
                    (n.runs, n.halted, n.called, n.aside) = (false, false, 0, false);
                    let a = self.account(q.operator);
                    a.unbonding += q.stake;
                    a.release = q.release;
                }
                E::NodeKickedOut(k) => self.account(k.operator).kicked = true,
                E::NodeExcluded(x) => {
                    let n = self.node(x.node);
                    n.parked = Some(x.until);
                    // One that was reserved and is let go.
                    if std::mem::take(&mut n.reserved) > 0 && n.status == 2 && n.called == 0 {
                        n.status = 1;
                    }
                }
                E::NodeWaits(w) => {
                    let n = self.node(w.node);
                    assert_eq!(n.waits, n.parked.is_some(), "it was free, or waited already");
                    if w.until > 0 {
                        assert_eq!(n.status, 1, "it is free");
                        (n.parked, n.waits) = (Some(w.until), true);
                    } else {
                        (n.status, n.parked, n.waits, n.reserved) = (2, None, false, w.id);
                        assert_eq!(self.pending.back(), Some(&w.id), "it is Pending again");
                    }
                }
                E::NodeReadmitted(x) => {
                    let n = self.node(x.node);
                    assert_eq!(n.reserved, 0, "it is let go before");
                    (n.parked, n.waits) = (None, false);
                }
                E::NodeRated(r) => {
                    let n = self.node(r.node);
                    n.judged = rated(n.judged, r.right);
                }
                E::GroupChosen(g) => {
                    let app = self.applications.entry(g.creator.into_array()).or_default();
                    let due = app.groups >= app.profile.period && app.profile.targeting < 2;
                    if due {
                        (app.groups, app.successes, app.members) = (0, 0, 0);
                    }
                    assert!(due || g.target == app.profile.target, "the target changes once a period");
                    app.profile.target = g.target;
                }
                E::ProfileSet(p) => {
                    let app = Application { profile: p.profile.clone(), ..Application::default() };
                    self.applications.insert(p.application.into_array(), app);
                }
                E::ScoreRecorded(s) => {
                    let least = self.parameter("kickoutMilli");
                    let n = self.node(s.node);
                    n.scores.push(s.score);
                    n.judged = rated(n.judged, s.score > 0);
                    let pool = &n.scores[n.scores.len().saturating_sub(50)..];
                    let sum: u64 = pool.iter().map(|&s| s as u64).sum();
                    // One that has nothing to end, and no draws before it, leaves at once, as events of its own tell.
                    if pool.len() == 50 && sum * 1_000 < least * 50 && n.status != 0 {
                        n.status = 6;
                    }
                }
                E::ModelAdded(m) => self.enter(m.node, m.model),
                E::ModelRemoved(m) => {
                    self.node(m.node).held.remove(&m.model);
                }
                E::HolderPurged(m) => {
                    self.node(m.node).held.remove(&m.model);
                    let list = self.holders.get_mut(&m.model).expect("someone held it");
                    let at = list.iter().position(|&n| n == m.node).expect("entered");
                    list.swap_remove(at);
                }
                E::DownloadRequested(_) => {}
                E::StakeReleased(r) => {
                    let a = self.account(r.account);
                    a.credit += r.amount;
                    a.unbonding -= r.amount;
                }
                E::Withdrawn(w) => {
                    let a = self.account(w.account);
                    a.credit -= w.credit;
                    a.unbonding -= w.stake;
                }
                E::TaskRefused(r) => self.account(r.creator).credit += r.fee,
                E::TaskCreated(c) => {
                    self.created = c.id;
                    let committed = (B256::ZERO, 0);
                    let nodes = match c.spec.redundancy {
                        2 => 3,
                        3 => self.applications.entry(c.creator.into_array()).or_default().profile.most,
                        _ => 1,
                    };
                    let task = Task {
                        created: c.clone(),
                        nodes,
                        at: c.drawBlock,
                        since: 0,
                        node: 0,
                        boosts: false,
                        status: 1,
                        began: 0,
                        committed,
                    };
                    self.tasks.insert(c.id, task);
                    self.pending.push_back(c.id);
                    if c.spec.flags == 1 {
                        self.outcomes.insert(c.id, Outcome { state: 1, ..NO_RECEIPT });
                    }
                }
                E::TaskRedrawn(r) => {
                    let task = self.tasks.get_mut(&r.id).expect("created");
                    task.at = r.drawBlock;
                    if self.queued.remove(&r.id) {
                        assert!(task.created.spec.redundancy >= 2, "others leave the queue to start or to end");
                    }
                    let ring = if task.status == 5 { &mut self.calls } else { &mut self.pending };
                    ring.retain(|&p| p != r.id);
                    ring.push_back(r.id);
                }
                E::TaskQueued(q) => {
                    self.pending.retain(|&p| p != q.id);
                    self.queued.insert(q.id);
                    let task = self.tasks.get_mut(&q.id).expect("created");
                    (task.at, task.since) = (q.ticket, now);
                    assert_eq!((q.creator, q.group), (task.created.creator, task.group()));
                    let queue = task.queue();
                    if !self.queues.contains(&queue) {
                        self.queues.push(queue);
                    }
                }
                E::TaskStarted(s) => {
                    self.pending.retain(|&p| p != s.id);
                    self.queued.remove(&s.id);
                    let task = self.tasks.get_mut(&s.id).expect("created");
                    assert_eq!(s.creator, task.created.creator);
                    (task.at, task.node, task.boosts) = (s.deadline, s.node, s.boosts);
                    (task.status, task.began) = (3, now);
                    let models = task.created.spec.models.clone();
                    let n = self.node(s.node);
                    (n.status, n.task, n.in_use, n.runs) = (2, (s.id, s.deadline), models, true);
                }
                E::TaskSucceeded(s) => {
                    let task = &self.tasks[&s.id];
                    assert_eq!((s.creator, s.node), (task.created.creator, task.node));
                    // For a task that could have been sampled, the unpaid part is saved; for all others nothing is left.
                    self.reserve += task.created.fee - s.paid;
                    assert!(task.created.spec.redundancy == 1 || s.paid == task.created.fee);
                    if task.boosts {
                        self.boost(s.node, now, task.created.estimate);
                    }
                    let operator = self.nodes[&s.node].operator;
                    self.account(operator).credit += s.paid;
                    self.end(s.id);
                    self.conclude(
                        s.id,
                        Outcome { state: 2, node: s.node, ended: now, resultDigest: s.resultDigest, ..NO_RECEIPT },
                    );
                }
                E::TaskErrorReported(x) => {
                    let task = self.end(x.id);
                    assert_eq!((x.creator, x.node), (task.created.creator, task.node));
                    self.account(task.created.creator).credit += x.refund;
                    self.treasury.1 += task.created.fee - x.refund;
                    let end = Outcome { state: 3, node: x.node, ended: now, code: x.code, refund: x.refund, ..NO_RECEIPT };
                    self.conclude(x.id, end);
                }
                E::TaskAborted(a) => {
                    let task = self.end(a.id);
                    assert_eq!((a.creator, a.node), (task.created.creator, task.node));
                    self.conclude(
                        a.id,
                        Outcome { state: 4 + a.reason, node: a.node, ended: now, refund: a.refund, ..NO_RECEIPT },
                    );
                    self.account(a.creator).credit += a.refund;
                    self.reserve += task.created.fee - a.refund - a.startFee;
                    if a.reason == 0 {
                        self.penalise(task.node, now);
                    }
                    if a.beneficiary.is_zero() {
                        self.treasury.1 += a.startFee;
                    } else {
                        self.account(a.beneficiary).credit += a.startFee;
                    }
                }
                E::AnswerCommitted(c) => {
                    let mut kept = B256::ZERO;
                    kept[..24].copy_from_slice(&c.commitment[..]);
                    if c.group == 0 {
                        let task = self.tasks.get_mut(&c.id).expect("created");
                        assert_eq!((task.node, c.block > 0), (c.node, true));
                        (task.status, task.committed) = (4, (kept, now));
                    } else {
                        let m = self.member(c.group, c.node);
                        (m.stage, m.moment, m.elapsed, m.answer) = (COMMITTED, now, now - m.began, kept);
                        self.count_open(c.node, c.group);
                    }
                }
                E::AnswerRevealed(r) => {
                    if r.group > 0 {
                        let before = self.at_risk(r.group);
                        let m = self.member(r.group, r.node);
                        (m.stage, m.answer) = (if r.kind == 0 { ANSWERED } else { FAILED }, r.value);
                        let after = self.at_risk(r.group);
                        before.into_iter().filter(|node| !after.contains(node)).for_each(|node| self.count_closed(node));
                    }
                }
                E::TaskSampled(s) => {
                    let task = self.tasks.get_mut(&s.id).expect("created");
                    assert_eq!((s.node, s.creator), (task.node, task.created.creator));
                    // Its deadline stays beside its node.
                    (task.status, task.at) = (5, s.drawBlock);
                    task.created.fee -= s.paid;
                    self.calls.push_back(s.id);
                    if s.beneficiary.is_zero() {
                        self.reserve += s.paid;
                    } else {
                        self.account(s.beneficiary).credit += s.paid;
                    }
                }
                E::GroupFormed(g) => {
                    self.calls.retain(|&c| c != g.id);
                    self.pending.retain(|&p| p != g.id);
                    let task = self.tasks.get_mut(&g.id).expect("created");
                    assert_eq!(g.creator, task.created.creator);
                    let mut members: Vec<Member> =
                        g.nodes.iter().map(|&node| Member { node, stage: CALLED, ..Member::default() }).collect();
                    let sampled = task.created.spec.redundancy == 1;
                    if sampled {
                        let first = &mut members[0];
                        assert_eq!((first.node, task.status), (task.node, 5));
                        let (answer, moment) = task.committed;
                        (first.stage, first.moment, first.elapsed, first.answer) =
                            (COMMITTED, moment, moment - task.began, answer);
                    }
                    (task.status, task.node, task.boosts) = (6, 0, false);
                    let spec = &task.created.spec;
                    let slashes = spec.redundancy != 3 && (spec.kind > 0 || self.parameter("slashImages") == 1);
                    let team = Team { id: g.id, formed: now, scored: g.scored, liable: g.scored && slashes, members };
                    assert!(self.teams.insert(g.group, team).is_none(), "the place was free");
                    self.places = self.places.max(g.group);
                    if sampled {
                        self.count_open(g.nodes[0], g.group);
                    }
                }
                E::MemberCalled(m) => self.node(m.node).called = m.group,
                E::MemberStarted(m) => {
                    let member = self.member(m.group, m.node);
                    (member.stage, member.moment, member.began) = (RUNNING, m.deadline, now);
                    let models = self.tasks[&m.id].created.spec.models.clone();
                    let n = self.node(m.node);
                    if n.status == 1 {
                        n.status = 2;
                    }
                    // One that waits apart is taken from there.
                    (n.parked, n.waits, n.reserved) = (None, false, 0);
                    if n.called == m.group {
                        n.called = 0;
                    }
                    (n.task, n.in_use, n.runs) = ((m.id, m.deadline), models, true);
                }
                E::MemberTimedOut(m) => {
                    // Right after a slash it is thrown out of the network, whatever it did. The group goes on without one that has not begun,
                    // which still runs its own task. Otherwise its deadline was over.
                    let slashed = self.slashed == Some(m.node);
                    let member = self.member(m.group, m.node);
                    assert!(matches!(member.stage, CALLED | RUNNING));
                    if member.stage == CALLED && !slashed {
                        (member.stage, member.moment) = (GONE, now);
                        self.node(m.node).called = 0;
                    } else if slashed {
                        let late = member.stage == RUNNING && member.moment < now;
                        member.moment = if late { member.moment } else { now };
                        member.stage = GONE;
                        self.free(m.node);
                    } else {
                        member.stage = TIMED_OUT;
                        self.penalise(m.node, now);
                        self.free(m.node);
                    }
                }
                E::MemberJudged(j) => {
                    let id = self.teams[&j.group].id;
                    let (scored, estimate) = (self.teams[&j.group].scored, self.tasks[&id].created.estimate);
                    let open = self.at_risk(j.group).contains(&j.node);
                    let member = self.member(j.group, j.node);
                    member.right = j.verdict == 1;
                    assert_eq!(member.stage > FAILED || member.stage == RUNNING, j.verdict == 5);
                    let operator = self.nodes[&j.node].operator;
                    self.account(operator).credit += j.paid;
                    if j.verdict == 1 && scored {
                        self.boost(j.node, now, estimate);
                    }
                    if j.verdict == 3 {
                        self.penalise(j.node, now);
                    }
                    if open {
                        self.count_closed(j.node);
                    }
                }
                E::GroupSettled(g) => {
                    let team = self.teams.remove(&g.group).expect("it was formed");
                    let right: Vec<u32> = team.members.iter().filter(|m| m.right).map(|m| m.node).collect();
                    if !team.scored && right.len() as u64 >= self.parameter("boostPool") {
                        // Only now is it known how many agreed.
                        let estimate = self.tasks[&g.id].created.estimate;
                        right.iter().for_each(|&node| self.boost(node, now, estimate));
                    }
                    let rated = self.tasks[&g.id].created.spec.redundancy == 3;
                    let app = self.applications.entry(g.creator.into_array()).or_default();
                    if rated && app.profile.targeting < 2 {
                        app.groups += 1;
                        app.successes += (g.outcome == 0) as u32;
                        app.members += team.members.len() as u32;
                    }
                    if g.outcome == 4 {
                        // It is Pending again, as an event before told.
                        let task = self.tasks.get_mut(&g.id).expect("created");
                        assert_eq!((g.creator, team.id, g.reserve), (task.created.creator, g.id, self.reserve));
                        task.status = 1;
                        task.created.fee -= g.startFee;
                        self.treasury.1 += g.startFee;
                    } else {
                        let task = self.end(g.id);
                        assert_eq!((g.creator, team.id), (task.created.creator, g.id));
                        self.reserve = g.reserve;
                        self.account(g.creator).credit += g.refund;
                        self.treasury.1 += g.startFee;
                        let mut right = team.members.iter().filter(|m| m.right);
                        let right = if rated {
                            right.find(|m| m.answer == g.answer)
                        } else {
                            right.min_by_key(|m| (m.elapsed, m.moment))
                        };
                        let end = match (g.outcome, right) {
                            (0, Some(m)) => Outcome { state: 2, node: m.node, resultDigest: g.answer, ..NO_RECEIPT },
                            (1, _) => Outcome { state: 2, node: team.members[0].node, resultDigest: g.answer, ..NO_RECEIPT },
                            _ => Outcome { state: 9, refund: g.refund, ..NO_RECEIPT },
                        };
                        self.conclude(g.id, Outcome { ended: now, ..end });
                    }
                }
                E::NodeSlashed(s) => {
                    self.node(s.node).stake -= s.stake;
                    let a = self.account(s.operator);
                    a.unbonding -= s.unbonding;
                    a.credit -= s.credit;
                    self.burnt += s.stake + s.unbonding + s.credit;
                }
                E::GpuGroupListed(g) => {
                    if g.listed {
                        self.listed.insert(g.group);
                    } else {
                        self.listed.remove(&g.group);
                    }
                }
            }
            self.slashed = match e {
                E::NodeSlashed(s) => Some(s.node),
                E::MemberTimedOut(m) => self.slashed.filter(|&node| node == m.node),
                _ => None,
            };
        }
    }
}
