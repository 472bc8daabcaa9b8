//! The slot of each variable: the numbers of `abi/MusterStorage.sol`.

use crate::host::Host;
use muster_core::id::NodeId;
use muster_core::word::{Address, Word};

/// [`muster_core::record::Head`].
pub const HEAD: u8 = 0;
/// [`muster_core::record::Rules`].
pub const RULES: u8 = 1;
/// [`muster_core::record::Terms`].
pub const TERMS: u8 = 2;
/// The account that protocol income goes to.
pub const TREASURY: u8 = 3;
/// [`muster_core::record::Ownership`].
pub const OWNERSHIP: u8 = 4;
/// [`muster_core::record::Proposal`] of an owner.
pub const NEXT_OWNER: u8 = 5;
/// [`muster_core::record::Proposal`] of a treasury.
pub const NEXT_TREASURY: u8 = 6;
/// [`muster_core::record::Queue`].
pub const QUEUE: u8 = 7;
/// [`muster_core::record::Classes`]: GPU groups with active nodes, by those nodes' stake class.
pub const GROUPS_BY_CLASS: u8 = 8;
/// `mapping(bytes4 => address)`: which program answers a selector.
pub const PROGRAMS: u8 = 9;
/// `bytes4[]`: the selectors answered.
pub const SELECTORS: u8 = 10;
/// `mapping(bytes4 => uint256)`: 1 + a selector's place in the list.
pub const SELECTOR_PLACES: u8 = 11;
/// `mapping(address => Account)`.
pub const ACCOUNTS: u8 = 12;
/// `mapping(uint256 => NodeRecord)`, see [`node`].
pub const NODES: u8 = 13;
/// `mapping(uint256 => bytes32)`: the sampler's tree, 31 bounds and a mark in a word.
pub const BRANCHES: u8 = 14;
/// `mapping(uint256 => Classes)`: idle nodes of a GPU group by stake class.
pub const CLASSES: u8 = 15;
/// `mapping(uint256 => Listed)`: idle nodes, eight to a word.
pub const MEMBERS: u8 = 16;
/// `mapping(bytes32 => uint256)`: 1 + the number of a GPU model among those of its VRAM size.
pub const GPU_NUMBERS: u8 = 17;
/// `mapping(uint256 => string)`: the name of a GPU group.
pub const GPU_NAMES: u8 = 18;
/// `mapping(uint256 => Size)`: GPU models per VRAM size.
pub const GPU_COUNTS: u8 = 19;
/// `mapping(uint256 => uint32[8])`: holders of a model.
pub const HOLDERS: u8 = 20;
/// `mapping(uint256 => PendingRecord)`: the ring of Pending tasks, see [`PENDING_RESERVED`].
pub const PENDING: u8 = 21;
/// `mapping(uint256 => TaskRecord)`: queued tasks by group and place.
pub const ENTRIES: u8 = 22;
/// `mapping(uint256 => Pool)`: queues, and the nodes that wait apart.
pub const POOLS: u8 = 23;
/// `mapping(uint256 => uint64[4])`: words of all trees.
pub const TOURNAMENT_TREES: u8 = 24;
/// `mapping(address => ProfileRecord)`: how an application's groups are chosen by ratings, see [`profile`].
pub const PROFILES: u8 = 25;
/// `mapping(uint256 => uint32[8])`: queues in order of first use.
pub const QUEUE_GROUPS: u8 = 26;
/// [`muster_core::record::Limits`].
pub const LIMITS: u8 = 27;
/// `uint256`: protocol income not yet taken, in wei.
pub const INCOME: u8 = 28;
/// `mapping(uint256 => ValidatorDrawRecord)`: the ring of sampled tasks whose validators wait to be drawn.
pub const VALIDATOR_DRAWS: u8 = 29;
/// `mapping(uint256 => uint256)`: VRAM sizes with a joined node, a bit each, 256 to a word.
pub const SIZES_JOINED: u8 = 30;
/// `mapping(bytes32 => uint256)`: when a proposed change of programs can take effect.
pub const NEXT_PROGRAMS: u8 = 31;
/// `mapping(uint256 => NextParameter)`: proposed values of parameters that reach into stakes.
pub const NEXT_PARAMETERS: u8 = 32;

/// `mapping(uint256 => ReceiptRecord)`: a [`muster_core::record::Receipt`], and behind it the result's digest.
pub const RECEIPTS: u8 = 33;
/// `mapping(uint256 => uint256)`: 1 for a model whose name was logged.
pub const MODEL_NAMED: u8 = 34;
/// `mapping(uint256 => uint256)`: 1 for a GPU group whose nodes answer bit by bit alike.
pub const GPU_LISTED: u8 = 35;
/// `mapping(uint256 => GroupRecord)`: validation groups by place, see [`group`].
pub const GROUPS: u8 = 36;
/// [`muster_core::record::Places`]: the places of validation groups.
pub const GROUP_PLACES: u8 = 37;
/// `uint256`: the reserve that pays for validations beside the fees, in wei.
pub const RESERVE: u8 = 38;
/// `uint256`: the sum of all slashes, in wei.
pub const BURNT: u8 = 39;
/// `mapping(uint256 => Reserved)`: nodes that wait for others, by queue.
pub const WAITING: u8 = 40;
/// `mapping(uint256 => uint256)`: VRAM sizes with a listed GPU group of three joined nodes, a bit each, 256 to a word.
pub const SIZES_OF_TRIOS: u8 = 41;
/// `mapping(address => string)`: the URIs at which an account's bytes can be read.
pub const STORES: u8 = 42;

/// In the record of a Pending task, behind the task: [`muster_core::record::Reserved`].
pub const PENDING_RESERVED: u64 = 4;
/// Behind it, of a task whose nodes are chosen ([`muster_core::record::Order::is_chosen`]): those, likewise.
pub const PENDING_CHOSEN: u64 = 5;

/// Words of a node's record, from its slot on.
pub mod node {
    /// [`muster_core::record::Node`].
    pub const NODE: u64 = 0;
    /// [`muster_core::record::Operator`].
    pub const OPERATOR: u64 = 1;
    /// [`muster_core::record::Escrow`] of the running (or last) task; without meaning before the first.
    pub const ESCROW: u64 = 2;
    /// [`muster_core::record::Order`] of the running (or last) task; without meaning before the first.
    pub const ORDER: u64 = 3;
    /// Two words: the models of the running (or last) task if it needs more than one. They are in use on the node.
    pub const IN_USE: u64 = 4;
    /// [`muster_core::record::Scores`].
    pub const SCORES: u64 = 6;
    /// Six words of [`muster_core::record::Models`]: models held.
    pub const MODELS: u64 = 7;
    /// [`muster_core::record::Commitment`] to the answer of the running (or an earlier) task.
    pub const COMMITMENT: u64 = 13;
    /// [`muster_core::record::Assignment`].
    pub const ASSIGNMENT: u64 = 14;
    /// The account that its operator named as its worker.
    pub const WORKER: u64 = 15;
}

/// Words of a validation group's record, from its slot on.
pub mod group {
    /// [`muster_core::record::Escrow`].
    pub const ESCROW: u64 = 0;
    /// [`muster_core::record::Order`].
    pub const ORDER: u64 = 1;
    /// Two words: the task's models, if it requires more than one.
    pub const MODELS: u64 = 2;
    /// [`muster_core::record::Members`].
    pub const MEMBERS: u64 = 4;
    /// A word for each of these members: the first 24 bytes of its commitment, then its revealed value.
    pub const ANSWERS: u64 = 5;
    /// Two words of [`muster_core::record::Members`], of a group that has more of them.
    pub const MORE_MEMBERS: u64 = 8;
    /// A word for each of these members, like [`ANSWERS`].
    pub const MORE_ANSWERS: u64 = 10;
}

/// Words of an application's profile, from its slot on.
pub mod profile {
    /// [`muster_core::record::Profile`].
    pub const PROFILE: u64 = 0;
    /// [`muster_core::record::TargetSearch`].
    pub const TARGET_SEARCH: u64 = 1;
}

/// The slot of a plain variable.
#[inline]
pub fn slot(n: u8) -> Word {
    Word::from(n as u64)
}

/// The slot of a mapping's entry with a number as its key.
#[inline]
pub fn entry<H: Host>(host: &H, map: u8, key: u64) -> Word {
    host.mapping(map, Word::from(key))
}

/// The slot of a node's record.
#[inline]
pub fn node_slot<H: Host>(host: &H, id: NodeId) -> Word {
    entry(host, NODES, id.0 as u64)
}

/// The slot of an account.
#[inline]
pub fn account_slot<H: Host>(host: &H, who: Address) -> Word {
    host.mapping(ACCOUNTS, Word::from(who))
}

/// The slot of an application's profile.
#[inline]
pub fn profile_slot<H: Host>(host: &H, who: Address) -> Word {
    host.mapping(PROFILES, Word::from(who))
}

/// The key of a `bytes4` mapping: left-aligned, as Solidity pads fixed bytes.
#[inline]
pub fn selector_key(selector: [u8; 4]) -> Word {
    Word([0, 0, 0, (u32::from_be_bytes(selector) as u64) << 32])
}
