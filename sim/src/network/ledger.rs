//! The contract as its users see it: calls by accounts, at a time, in a block.

use alloy_primitives::{B256, U256};
use alloy_sol_types::SolCall;
use muster_core::qos;
use muster_core::record::{Head, Limits, Node, Rules};
use muster_core::word::{Address, Word};
use muster_protocol::id::{GpuGroup, NodeId};
use muster_protocol::layout::{slot, HEAD, LIMITS, RULES};
use muster_protocol::native::Memory;
use muster_protocol::parameters::{number_of, PARAMETERS};
use muster_protocol::store::node::NodeHandle;
use muster_protocol::store::ring::Ring;
use muster_protocol::IMuster::*;
use muster_protocol::{admin, programs, Host, Network, Refusal};

use super::events::Event;
use super::policy::Policy;

/// Wei in a stake unit of stake.
pub const STAKE_UNIT: u64 = 1_000_000_000_000_000;
/// The least stake, in stake units: 400 tokens.
pub const LEAST_STAKE: u64 = 400_000;
/// Second at which a simulation begins.
pub const BEGINNING: u64 = 1_800_000_000;
/// Tasks drawn by one `dispatch`.
const DRAWS: u8 = 16;

/// The sender of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Party {
    /// Owner and treasury.
    Owner,
    /// The account that lets tasks expire and be drawn.
    Keeper,
    Application(u32),
    Operator(u32),
}

impl Party {
    /// The account of a party.
    pub fn address(self) -> Address {
        let (kind, number) = match self {
            Self::Owner => (1u8, 0),
            Self::Keeper => (2, 0),
            Self::Application(n) => (3, n),
            Self::Operator(n) => (4, n),
        };
        let mut address = [0; 20];
        address[0] = 0xa0 | kind;
        address[16..].copy_from_slice(&number.to_be_bytes());
        address
    }
}

/// The same contract elsewhere, to which every call goes first.
pub trait Mirror {
    /// Makes the call at `now`; returns its block and the block's time. Sets the hashes that the simulator's contract must see.
    fn call(&mut self, host: &mut Memory, now: u64, by: Party, value: u128, calldata: &[u8]) -> (u64, u64);
    /// Compares the results of a call: the answer or the refusal, the host's words, and the logs in it, which are the call's.
    fn compare(&mut self, host: &mut Memory, calldata: &[u8], outcome: &Result<Vec<u8>, Refusal>);
}

/// The simulated contract.
pub struct Ledger {
    /// Its storage; the logs in it are the last call's.
    pub host: Memory,
    /// The policy that chooses nodes.
    pub policy: Policy,
    /// Wei that calls have brought in.
    pub deposits: u128,
    events: Vec<Event>,
    mirror: Option<Box<dyn Mirror>>,
}

impl Ledger {
    /// A contract with the given parameters, by name; the others have their defaults.
    ///
    /// # Errors
    /// A parameter that does not exist, or is out of its bounds, in words.
    pub fn new(host: Memory, policy: Policy, parameters: &[(&str, u64)]) -> Result<Self, String> {
        let mut ledger = Self { host, policy: Policy::Contract, deposits: 0, events: Vec::new(), mirror: None };
        let owner = Party::Owner;
        ledger.host.create(owner.address());
        ledger.set_time(BEGINNING, 1);
        let said = |refusal: Refusal| format!("{refusal:?}");
        let initialise = initialiseCall {
            owner: owner.address().into(),
            treasury: owner.address().into(),
            stakeUnit: STAKE_UNIT,
            minimumStake: u128::from(LEAST_STAKE) * u128::from(STAKE_UNIT),
            upgradeDelay: admin::UPGRADE_DELAY_MAX,
            programs: vec![],
        };
        ledger.call(owner, 0, &initialise).map_err(said)?;
        for (name, value) in parameters {
            let parameter = number_of(name).ok_or_else(|| format!("there is no parameter {name}"))?;
            let value = U256::from(*value);
            let bounds = ledger.call(owner, 0, &parameterCall { which: parameter }).map_err(said)?;
            let out_of_bounds = |_| format!("{name} can't be {value}; it can be from {} to {}", bounds.least, bounds.most);
            if PARAMETERS[usize::from(parameter)].delayed() {
                ledger.set_time(BEGINNING - u64::from(admin::UPGRADE_DELAY_MAX), 1);
                ledger.call(owner, 0, &proposeParameterCall { parameter, value }).map_err(out_of_bounds)?;
                ledger.set_time(BEGINNING, 1);
                ledger.call(owner, 0, &acceptParameterCall { parameter }).map_err(out_of_bounds)?;
            } else {
                ledger.call(owner, 0, &setParameterCall { parameter, value }).map_err(out_of_bounds)?;
            }
        }
        if !policy.is_contract() && ledger.host.get::<Rules>(slot(RULES)).draw_delay == 0 {
            return Err("drawDelay can't be 0 where not the contract chooses: it would draw at once".into());
        }
        ledger.policy = policy;
        Ok(ledger)
    }

    /// A contract that stands in `host` already and whose calls go to a mirror first.
    pub fn mirrored(host: Memory, mirror: Box<dyn Mirror>) -> Self {
        Self { host, policy: Policy::Contract, deposits: 0, events: Vec::new(), mirror: Some(mirror) }
    }

    /// Time and block from now on.
    pub fn set_time(&mut self, now: u64, block: u64) {
        self.host.now = now;
        if self.mirror.is_none() {
            self.host.block = block;
        }
    }

    /// Makes a call, and returns its answer. Its effects are among the events; a refused one leaves no trace.
    ///
    /// # Errors
    /// The refusal.
    pub fn call<C: SolCall>(&mut self, by: Party, value: u128, call: &C) -> Result<C::Return, Refusal> {
        let answer = self.send(by, value, &call.abi_encode())?;
        Ok(C::abi_decode_returns(&answer).expect("encoded as it is declared"))
    }

    fn send(&mut self, by: Party, value: u128, calldata: &[u8]) -> Result<Vec<u8>, Refusal> {
        self.host.logs.clear();
        if let Some(mirror) = &mut self.mirror {
            let now = self.host.now;
            (self.host.block, self.host.now) = mirror.call(&mut self.host, now, by, value, calldata);
        }
        self.host.sender = by.address();
        self.host.value = Word([value as u64, (value >> 64) as u64, 0, 0]);
        let policy = &mut self.policy;
        let outcome = self.host.call(|host| {
            policy.serve(host)?;
            programs::answer(host, calldata)
        });
        if outcome.is_ok() {
            self.deposits += value;
        }
        if let Some(mirror) = &mut self.mirror {
            mirror.compare(&mut self.host, calldata, &outcome);
        }
        self.note();
        outcome
    }

    /// The result of a call in the next block, without changing anything.
    ///
    /// # Errors
    /// The refusal.
    pub fn probe(&mut self, by: Party, call: &impl SolCall) -> Result<(), Refusal> {
        let next = u64::from(self.mirror.is_some());
        let logs = std::mem::take(&mut self.host.logs);
        self.host.block += next;
        self.host.sender = by.address();
        self.host.value = Word::ZERO;
        let calldata = call.abi_encode();
        // Ends as a refusal in any case, so that all of it is undone.
        let outcome = self.host.call(|host| Err::<(), _>(programs::answer(host, &calldata).map(drop)));
        self.host.block -= next;
        self.host.logs = logs;
        outcome.expect_err("it always is")
    }

    /// Lets a block pass where blocks come with calls only.
    pub fn pass(&mut self) {
        if self.mirror.is_some() {
            let _ = self.call(Party::Keeper, 0, &dispatchCall { count: DRAWS });
        }
    }

    /// Records the logs.
    fn note(&mut self) {
        self.events.extend(self.host.logs.iter().filter_map(Event::of));
    }

    /// Records a node's task score, as the judgement of a group would.
    pub fn record_score(&mut self, node: u32, score: u8) {
        self.host.logs.clear();
        let Ok(mut net) = Network::open(&mut self.host) else { return };
        net.record_score(NodeId(node), score);
        net.close();
        self.note();
    }

    /// Makes every draw whose block has come.
    pub fn dispatch(&mut self) {
        let draws = dispatchCall { count: DRAWS };
        if self.mirror.is_some() && self.pending() && !self.due() {
            // Elsewhere blocks come with calls only.
            let _ = self.call(Party::Keeper, 0, &draws);
        }
        while self.due() {
            if self.policy.is_contract() {
                if self.call(Party::Keeper, 0, &draws).is_err() {
                    return;
                }
            } else {
                self.host.logs.clear();
                if self.policy.serve(&mut self.host).is_err() {
                    return;
                }
                self.note();
                // Only draws of validators can still be due, which the contract makes.
                if self.due() && self.call(Party::Keeper, 0, &draws).is_err() {
                    return;
                }
            }
        }
    }

    /// Whether a draw can be made.
    pub fn due(&mut self) -> bool {
        // With a mirror each call has a block of its own, after the one seen last.
        let next = u64::from(self.mirror.is_some());
        self.host.block += next;
        let due = Network::open(&mut self.host).is_ok_and(|mut net| net.draws_due());
        self.host.block -= next;
        due
    }

    /// Whether any draw waits: of a Pending task, or of a sampled one's validators.
    pub fn pending(&self) -> bool {
        let head = self.head();
        !Ring::of_tasks(&head).is_empty() || !Ring::of_validator_draws(&head).is_empty()
    }

    /// The head word.
    pub fn head(&self) -> Head {
        self.host.get(slot(HEAD))
    }

    /// Until when a node that is kept for a task waits for others; 0 where it is reserved for a draw, none where it is not kept.
    pub fn waits(&self, number: u32) -> Option<u64> {
        let handle = NodeHandle::load(&self.host, NodeId(number));
        match handle.node.parked {
            Node::WAITS => Some(handle.assignment(&self.host).until.into()),
            Node::RESERVED => Some(0),
            _ => None,
        }
    }

    /// A node's record.
    pub fn node(&self, number: u32) -> Node {
        NodeHandle::load(&self.host, NodeId(number)).node
    }

    /// H of a node now, a wad.
    pub fn reliability(&self, number: u32) -> u64 {
        let node = self.node(number);
        let tau = self.host.get::<Rules>(slot(RULES)).tau;
        qos::recover(node.h, self.host.now.saturating_sub(node.h_at.into()), tau)
    }

    /// The number of an operator's node; 0 if they never joined.
    pub fn number_of(&self, operator: u32) -> u32 {
        muster_protocol::store::accounts::account(&self.host, Party::Operator(operator).address()).node.0
    }

    /// The number of a node's operator; `None` for an account that is not an operator's.
    pub fn operator(&self, number: u32) -> Option<u32> {
        let handle = NodeHandle::load(&self.host, NodeId(number));
        let record = handle.operator(&self.host);
        let number = u32::from_be_bytes(record.account[16..].try_into().ok()?);
        (Party::Operator(number).address() == record.account).then_some(number)
    }

    /// The GPU group that nodes of a name and VRAM size make up.
    pub fn gpu_group(&self, name: &str, vram: u16) -> Option<GpuGroup> {
        muster_protocol::store::registry::gpu_group(&self.host, name.as_bytes(), vram)
    }

    /// A node's commitment, by this host's substitute for keccak256: see `IMuster.commit`.
    pub fn commitment(&self, id: u64, node: u32, kind: u8, value: &[u8; 32], salt: &[u8; 32]) -> B256 {
        let mut bytes = [0; 160];
        bytes[24..32].copy_from_slice(&id.to_be_bytes());
        bytes[60..64].copy_from_slice(&node.to_be_bytes());
        bytes[95] = kind;
        bytes[96..128].copy_from_slice(value);
        bytes[128..].copy_from_slice(salt);
        self.host.keccak(&bytes).into()
    }

    /// Says that the nodes of a GPU group answer alike, unless it was said before.
    pub fn list(&mut self, group: GpuGroup) {
        if !muster_protocol::store::registry::listed(&self.host, group) {
            let _ = self.call(Party::Owner, 0, &listGpuGroupCall { group: group.0, listed: true });
        }
    }

    /// The highest fee, in wei, for each node of a task that can be validated: a slashed node's stake covers it.
    pub fn most_at_stake(&mut self) -> u128 {
        Network::open(&mut self.host).map_or(0, |net| net.most_at_stake(1).0)
    }

    /// The limits as they are.
    pub fn limits(&self) -> Limits {
        self.host.get(slot(LIMITS))
    }

    /// The cost of joining with a GPU beside the stake, in stake units.
    pub fn group_fee(&self, name: &str, vram: u16) -> u64 {
        if self.gpu_group(name, vram).is_some() {
            0
        } else {
            self.limits().group_fee
        }
    }

    /// Takes the events since the last time.
    pub fn take_events(&mut self, into: &mut Vec<Event>) {
        into.clear();
        std::mem::swap(into, &mut self.events);
    }
}

/// The call by which a node hands in a task's result.
pub fn submit(task: u64) -> submitCall {
    submitCall { id: task, resultDigest: U256::from(task).into() }
}
