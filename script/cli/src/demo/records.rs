//! Records of nodes and tasks, and counts.

use std::collections::{BTreeMap, HashMap};

use alloy::primitives::U256;
use muster_protocol::flow::create::REPLICATED;
use serde::{Serialize, Serializer};

/// Policies that there are.
pub const POLICIES: usize = REPLICATED as usize + 1;

/// A node of ours that has joined.
pub struct Node {
    /// Its operator's place among ours.
    pub place: usize,
    pub gpu: String,
    /// The divisor of the trace's times where it runs a task that can be validated, in per cent.
    pub speed: u64,
    /// Whether it commits to wrong answers, at once.
    pub cheats: bool,
    /// As it was after joining.
    pub weight: f64,
}

/// A task that was created by this run.
pub struct Task {
    pub request: usize,
    pub creator: usize,
    pub created: u64,
    /// Of its place in the queue.
    pub ticket: Option<u64>,
    /// Whether it ever was in the queue.
    pub queued: bool,
    pub node: Option<u64>,
    pub ended: bool,
    pub fee: U256,
    /// The policy that it was created under.
    pub redundancy: u8,
    /// When anybody may end it, if it is still queued.
    pub outlives: u64,
    /// Whether a right answer to it was judged.
    pub answered: bool,
    /// The block whose hash decides whether it is, once its node has committed.
    pub lot: Option<u64>,
    /// The place of its group.
    pub group: Option<u32>,
    /// The group's members by their nodes.
    pub members: BTreeMap<u64, Part>,
    /// Whether the reveals of its group have begun.
    pub opened: bool,
}

impl Task {
    pub fn new(request: usize, creator: usize, created: u64, fee: U256, redundancy: u8) -> Self {
        Self {
            request,
            creator,
            created,
            ticket: None,
            queued: false,
            node: None,
            ended: false,
            fee,
            redundancy,
            outlives: 0,
            answered: false,
            lot: None,
            group: None,
            members: BTreeMap::new(),
            opened: false,
        }
    }

    /// Whether a node is to commit to its answer.
    pub fn runs_on(&self, node: u64) -> bool {
        match self.members.get(&node) {
            Some(part) => *part == Part::Open,
            None => self.node == Some(node) && self.lot.is_none(),
        }
    }
}

/// Everything that is counted.
#[derive(Default)]
pub struct Tally {
    pub counts: Counts,
    /// By operation.
    pub gas: BTreeMap<String, Vec<u64>>,
    /// Seconds from creation to start.
    pub waits: Vec<u64>,
    /// The same of the tasks that had been queued.
    pub queue_waits: Vec<u64>,
    /// Tasks started by node.
    pub started: HashMap<u64, u64>,
    /// The outcome of validation.
    pub judged: Judged,
}

#[derive(Default)]
pub struct Counts {
    pub refused: u64,
    pub dispatched: u64,
    pub queued: u64,
    pub finished: u64,
    /// Evicted at once, without having been queued.
    pub turned_away: u64,
    pub timed_out: u64,
    pub evicted: u64,
    pub cancelled: u64,
    pub outlived: u64,
    pub errors: u64,
    /// Refunded because their node was slashed out of the network.
    pub orphaned: u64,
    /// Three nodes had it, and no two answers were alike.
    pub undecided: u64,
    pub exclusions: u64,
    pub kicked_out: u64,
}

/// The outcome of the tasks under a policy, counted and reported. Amounts in wei are decimal strings in the report.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OfPolicy {
    /// Which: 0, 1 or 2.
    pub policy: u8,
    /// Tasks created under it.
    pub tasks: u64,
    /// Picked for it, but created under policy 0: their fee is above the highest of validated tasks.
    pub too_dear: u64,
    /// The same, because they are of more images than an answer has hashes for.
    pub too_many_images: u64,
    /// The same, because fewer than three nodes could run them.
    pub too_few_nodes: u64,
    /// Ended with an answer.
    pub finished: u64,
    /// Of these, those whose answer is a cheat's.
    pub wrong: u64,
    /// Seconds from creation to start.
    #[serde(rename = "waiting_seconds", serialize_with = "spread")]
    pub waits: Vec<u64>,
    /// Seconds from creation to the end, of those with an answer.
    #[serde(rename = "finishing_seconds", serialize_with = "spread")]
    pub spans: Vec<u64>,
    /// Times that a node was kept, to wait for others or for the draw of three.
    pub kept: u64,
    /// Tasks that their nodes committed to and that were not sampled.
    pub trusted: u64,
    /// Groups that were judged.
    pub judged: u64,
    /// Of these, those that were scored.
    pub scored: u64,
    /// Where two or three answers were alike.
    pub agreed: u64,
    /// Where the first node's answer was the only one.
    pub alone: u64,
    /// Where several answers were all different.
    pub differing: u64,
    /// Where nobody answered, or another alone.
    pub unanswered: u64,
    /// Slashes.
    pub slashes: u64,
    /// The sum that they took and that is burnt, by receipts; over all policies and runs on the same chain it is `burnt_wei` of the report.
    #[serde(rename = "burnt_wei", serialize_with = "decimal")]
    pub burnt: U256,
    /// The pay of nodes.
    #[serde(rename = "paid_wei", serialize_with = "decimal")]
    pub paid: U256,
    /// Of that, cheats.
    #[serde(rename = "paid_to_cheats_wei", serialize_with = "decimal")]
    pub paid_to_cheats: U256,
    /// The part of fees that was not paid out: it went into the reserve.
    #[serde(rename = "saved_wei", serialize_with = "decimal")]
    pub saved: U256,
    /// The pay of groups beyond the fees of their tasks: it came out of the reserve.
    #[serde(rename = "drawn_wei", serialize_with = "decimal")]
    pub drawn: U256,
    /// The pay for calling validators: it came out of these tasks' fees.
    #[serde(rename = "drivers_wei", serialize_with = "decimal")]
    pub drivers: U256,
    /// Gas of all calls about a task from its creation to its end, but for draws, which serve several: the median.
    pub gas_of_a_task: u64,
    /// The same of those that a group had.
    pub gas_of_a_judged_task: u64,
}

impl OfPolicy {
    /// Counts a judgement, by its outcome.
    pub fn count_judged(&mut self, outcome: usize) {
        self.judged += 1;
        *[&mut self.agreed, &mut self.alone, &mut self.differing, &mut self.unanswered][outcome] += 1;
    }
}

fn spread<S: Serializer>(values: &[u64], to: S) -> Result<S::Ok, S::Error> {
    Spread::of(values.to_vec()).serialize(to)
}

fn decimal<S: Serializer>(wei: &U256, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(wei)
}

/// The counts of validation.
#[derive(Default)]
pub struct Judged {
    /// By policy.
    pub policies: [OfPolicy; POLICIES],
    /// The pay of the members of the group that is being judged.
    pub paying: U256,
    pub slashed: BTreeMap<u64, U256>,
    pub scores: BTreeMap<u64, Vec<u64>>,
    /// How often a node was judged right, and otherwise.
    pub verdicts: BTreeMap<u64, [u64; 2]>,
    /// Gas of the calls about a task.
    pub gas: BTreeMap<u64, u64>,
}

/// A member of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It runs the task, or is to begin.
    Open,
    Committed,
    Revealed,
    /// It let its deadline pass, or left.
    Out,
}

/// Of a number of values.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// The middle one, the lower of two.
    pub median: u64,
    /// 95 % are not above it.
    pub p95: u64,
    /// The greatest.
    pub max: u64,
}

impl Spread {
    /// Of these; zeros if there are none.
    pub fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let Some((&min, &max)) = values.first().zip(values.last()) else { return Self::default() };
        let at = |share: usize| values[((values.len() * share).div_ceil(100)).saturating_sub(1)];
        Self { count: values.len() as u64, min, median: at(50), p95: at(95), max }
    }
}
