//! The contract in rounds, by the calls that nodes and applications send.
//!
//! Only its answers and its logs are known.

use alloy_primitives::B256;
use alloy_sol_types::SolEvent;
use muster_core::wad::WAD;
use muster_protocol::native::Memory;
use muster_protocol::store::accounts;
pub use muster_protocol::IMuster::Profile;
use muster_protocol::IMuster::{
    commitCall, createTaskCall, dispatchCall, joinCall, nodeCall, revealCall, setProfileCall, GroupChosen, GroupFormed,
    GroupSettled, MemberJudged, TaskSpec,
};

use crate::network::ledger::{Ledger, Party, BEGINNING, LEAST_STAKE, STAKE_UNIT};
use crate::network::policy::Policy;

/// Wei in a token.
pub const TOKEN: u128 = 1_000_000_000_000_000_000;
/// A task's offer for each possible node, in wei.
pub const FEE: u128 = TOKEN;
/// VRAM of every node, in GiB.
const VRAM: u16 = 24;
/// Seconds of a round.
const ROUND: u64 = 60;

/// An answer to a task: a text's digest, or the hash of an image.
pub type Answer = [u8; 32];

/// The scope of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// A text that the nodes of a GPU group write alike.
    Text(u32),
    /// An image, by any node.
    Image,
    /// An image, by nodes of a GPU group.
    ImageOf(u32),
}

/// A group that was formed.
#[derive(Clone, Debug)]
pub struct Group {
    pub task: u64,
    pub place: u32,
    /// Node numbers.
    pub members: Vec<u32>,
    /// Whether its judgement changes ratings.
    pub scored: bool,
    /// Its target, a wad.
    pub target: u64,
}

/// A group's results.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The majority's answer; none without one.
    pub answer: Option<Answer>,
    /// Each member's pay, in wei, in the order of the members.
    pub paid: Vec<u128>,
    /// The start fee that was kept of the creator's fee, in wei.
    pub start_fee: u128,
}

/// Calls by kind, for their gas.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Calls {
    pub created: u64,
    pub formed: u64,
    pub commits: u64,
    /// All but those that end a group.
    pub reveals: u64,
    pub settled: u64,
}

impl Calls {
    /// Both together.
    #[must_use]
    pub const fn add(self, other: Self) -> Self {
        Self {
            created: self.created + other.created,
            formed: self.formed + other.formed,
            commits: self.commits + other.commits,
            reveals: self.reveals + other.reveals,
            settled: self.settled + other.settled,
        }
    }

    /// Those since `earlier`.
    #[must_use]
    pub const fn less(self, earlier: Self) -> Self {
        Self {
            created: self.created - earlier.created,
            formed: self.formed - earlier.formed,
            commits: self.commits - earlier.commits,
            reveals: self.reveals - earlier.reveals,
            settled: self.settled - earlier.settled,
        }
    }
}

/// A network of nodes that are idle between rounds.
pub struct Field {
    ledger: Ledger,
    /// Nodes that joined; their numbers are 1 to this, those of their operators too.
    nodes: u32,
    pub calls: Calls,
    scratch: Vec<crate::network::events::Event>,
}

impl Field {
    /// A network without nodes, whose luck follows from a seed.
    ///
    /// # Panics
    /// Never: the parameters are the defaults.
    pub fn new(seed: u64) -> Self {
        let ledger = Ledger::new(Memory::quick(seed), Policy::Contract, &[]).expect("the defaults are within their bounds");
        Self { ledger, nodes: 0, calls: Calls::default(), scratch: Vec::new() }
    }

    /// Lets a node join with the least stake; returns its number, its GPU group, and the fee for a new GPU's name, in wei.
    ///
    /// # Panics
    /// If the contract refuses, which it has no reason to; so do all calls here.
    pub fn join(&mut self, gpu: &str) -> (u32, u32, u128) {
        let fee = u128::from(self.ledger.group_fee(gpu, VRAM)) * u128::from(STAKE_UNIT);
        let stake = u128::from(LEAST_STAKE) * u128::from(STAKE_UNIT);
        let operator = Party::Operator(self.nodes + 1);
        let join = joinCall { gpuName: gpu.into(), vram: VRAM, models: vec![] };
        let node = self.ledger.call(operator, stake + fee, &join).expect("joins");
        self.nodes += 1;
        assert_eq!(node, self.nodes, "each operator has one node");
        (node, self.ledger.gpu_group(gpu, VRAM).expect("joined with").0, fee)
    }

    /// Says that the nodes of a GPU group answer alike.
    pub fn list(&mut self, group: u32) {
        self.ledger.list(muster_core::id::GpuGroup(group));
    }

    /// Sets an application's profile.
    ///
    /// # Panics
    /// If the contract refuses.
    pub fn set_profile(&mut self, application: u32, profile: Profile) {
        self.ledger.call(Party::Application(application), 0, &setProfileCall { profile }).expect("within its bounds");
    }

    /// A node's rating, a wad, by the contract's view.
    ///
    /// # Panics
    /// If the contract refuses.
    pub fn rating(&mut self, number: u32) -> u64 {
        self.ledger.call(Party::Keeper, 0, &nodeCall { number }).expect("a view").rating
    }

    /// Wei that a node's operator, or an application, can withdraw.
    pub fn credit(&self, party: Party) -> u128 {
        accounts::account(&self.ledger.host, party.address()).credit
    }

    /// Creates a task and, one block later, has it drawn: the group that it is given to. None was left waiting before.
    ///
    /// # Panics
    /// If the contract refuses, or finds no group: fewer than `most` nodes are idle.
    pub fn form(&mut self, application: u32, scope: Scope, most: u8) -> Group {
        let (kind, gpu) = match scope {
            Scope::Text(group) => (1, group),
            Scope::Image => (0, 0),
            Scope::ImageOf(group) => (0, group),
        };
        let spec = TaskSpec { kind, units: 1, vram: 0, gpu, redundancy: 3, flags: 0, inputDigest: B256::ZERO, models: vec![] };
        let fee = FEE * u128::from(most);
        let task = self.ledger.call(Party::Application(application), fee, &createTaskCall { spec }).expect("created");
        self.calls.created += 1;
        // A draw that stays undecided is made again, by another hash.
        for _ in 0..100 {
            self.pass(0);
            let _ = self.ledger.call(Party::Keeper, 0, &dispatchCall { count: 1 }).expect("draws");
            if let Some(group) = self.formed() {
                assert_eq!(group.task, task, "one is Pending at a time");
                self.calls.formed += 1;
                return group;
            }
        }
        panic!("task {task} found no group");
    }

    /// The group that the last call formed.
    fn formed(&self) -> Option<Group> {
        let logs = &self.ledger.host.logs;
        let formed = logs.iter().find(|log| log.topics[0] == GroupFormed::SIGNATURE_HASH)?;
        let chosen = logs.iter().find(|log| log.topics[0] == GroupChosen::SIGNATURE_HASH)?;
        let formed = GroupFormed::decode_raw_log(&formed.topics, &formed.data).ok()?;
        let chosen = GroupChosen::decode_raw_log(&chosen.topics, &chosen.data).ok()?;
        assert_eq!(usize::from(chosen.size), formed.nodes.len());
        let (task, place) = (formed.id, formed.group);
        Some(Group { task, place, members: formed.nodes, scored: formed.scored, target: chosen.target })
    }

    /// Lets a group's members commit, each to the answer it is given.
    ///
    /// # Panics
    /// If the contract refuses.
    pub fn commit(&mut self, group: &Group, answers: &[Answer]) {
        for (node, answer) in group.members.iter().zip(answers) {
            let commitment = self.ledger.commitment(group.task, *node, 0, answer, &[0; 32]);
            self.ledger.call(Party::Operator(*node), 0, &commitCall { id: group.task, commitment }).expect("commits");
            self.calls.commits += 1;
        }
    }

    /// Reveals a group's commitments; the last of these calls has it judged.
    ///
    /// # Panics
    /// If the contract refuses, or does not judge it.
    pub fn reveal(&mut self, group: &Group, answers: &[Answer]) -> Settled {
        for (node, answer) in group.members.iter().zip(answers) {
            let (value, salt) = ((*answer).into(), B256::ZERO);
            let reveal = revealCall { id: group.task, group: group.place, node: *node, kind: 0, value, salt };
            self.ledger.call(Party::Keeper, 0, &reveal).expect("reveals");
            self.calls.reveals += 1;
        }
        (self.calls.reveals, self.calls.settled) = (self.calls.reveals - 1, self.calls.settled + 1);
        let mut settled = None;
        let mut paid = Vec::new();
        for log in &self.ledger.host.logs {
            if log.topics[0] == MemberJudged::SIGNATURE_HASH {
                paid.push(MemberJudged::decode_raw_log(&log.topics, &log.data).expect("as declared").paid);
            } else if log.topics[0] == GroupSettled::SIGNATURE_HASH {
                settled = GroupSettled::decode_raw_log(&log.topics, &log.data).ok();
            }
        }
        let settled = settled.expect("judged by the last reveal");
        assert_eq!(paid.len(), group.members.len());
        let answer = (settled.outcome == 0).then_some(settled.answer.0);
        Settled { answer, paid, start_fee: settled.startFee }
    }

    /// Lets a block pass, and these seconds.
    pub fn pass(&mut self, seconds: u64) {
        let (now, block) = (self.ledger.host.now, self.ledger.host.block);
        self.ledger.set_time(now + seconds, block + 1);
    }

    /// Ends a round.
    pub fn end_round(&mut self) {
        self.pass(ROUND);
        self.ledger.take_events(&mut self.scratch);
    }

    /// Seconds since the network began.
    pub fn age(&self) -> u64 {
        self.ledger.host.now - BEGINNING
    }

    /// Nodes that joined.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }
}

/// The right answer to every task.
pub const RIGHT: Answer = answer(0xffff_ffff);

/// The answer of these bits, as a text's digest and as the hash of an image alike.
pub const fn answer(bits: u64) -> Answer {
    let (bits, mut answer) = (bits.to_be_bytes(), [0; 32]);
    answer.split_at_mut(bits.len()).0.copy_from_slice(&bits);
    answer
}

/// The profile of an application that sets nothing but this.
pub fn profile(algorithm: u8, targeting: u8, target: u64, alpha: u64) -> Profile {
    Profile { algorithm, least: 3, most: 7, reschedules: 0, targeting, target: target.min(WAD), alpha, period: 300 }
}
