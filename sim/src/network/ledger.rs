//! The contract as its users see it: calls by accounts, at a time, in a block.

use alloy_primitives::U256;
use muster_core::record::{Head, Limits, Node, Operator, Order, Ownership, Rules};
use muster_core::word::{Address, Word};
use muster_protocol::admin::{self, Genesis};
use muster_protocol::draw::Seat;
use muster_protocol::host::offset;
use muster_protocol::layout::{entry, slot, HEAD, LIMITS, OWNERSHIP, PENDING, RULES};
use muster_protocol::parameters::{number_of, PARAMETERS};
use muster_protocol::{Host, IMuster, Network, Refusal};

use super::host::{Arena, Event};
use super::policy::Policy;

/// Wei in a granule of stake.
pub const GRANULE: u64 = 1_000_000_000_000_000;
/// The least stake, in granules: 400 tokens.
pub const LEAST_STAKE: u64 = 400_000;
/// Second at which a simulation begins.
pub const BEGINNING: u64 = 1_800_000_000;
/// Tasks drawn by one `dispatch`.
const DRAWS: u8 = 16;

/// Who calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Party {
    /// Owner and treasury.
    Owner,
    /// Whoever lets tasks expire and be drawn.
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

/// A state-changing call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    Join { gpu: String, vram: u16, models: Vec<u64> },
    Pause,
    Resume,
    Quit,
    RaiseStake,
    ReportDownloaded(Vec<u64>),
    ReportRemoved(Vec<u64>),
    Poke(u32),
    Withdraw,
    Create(IMuster::TaskSpec),
    Cancel { task: u64, ticket: u64 },
    Submit { task: u64 },
    ReportError { task: u64 },
    Expire { node: u32, task: u64 },
    Dispatch(u8),
}

/// The same contract elsewhere, to which every call goes first.
pub trait Mirror {
    /// Makes the call at `now`; gives the block it was made in, and its time. Sets the hashes that the simulator's
    /// contract is to see.
    fn call(&mut self, host: &mut Arena, now: u64, by: Party, value: u128, call: &Call) -> (u64, u64);
    /// Compares what became of it.
    fn compare(&mut self, host: &mut Arena, call: &Call, outcome: &Result<(), Refusal>);
}

/// The simulated contract.
pub struct Ledger {
    pub host: Arena,
    /// Who chooses nodes.
    pub policy: Policy,
    mirror: Option<Box<dyn Mirror>>,
}

impl Ledger {
    /// A contract with the given parameters, by name; the others have their defaults.
    ///
    /// # Errors
    /// A parameter that does not exist, or is out of its bounds, in words.
    pub fn new(mut host: Arena, policy: Policy, parameters: &[(&str, u64)]) -> Result<Self, String> {
        host.now = BEGINNING;
        host.block = 1;
        let owner = Party::Owner.address();
        let genesis = Genesis {
            owner,
            treasury: owner,
            granule: GRANULE,
            minimum_stake: u128::from(LEAST_STAKE) * u128::from(GRANULE),
            upgrade_delay: admin::UPGRADE_DELAY_MAX,
        };
        host.sender = owner;
        host.put(slot(OWNERSHIP), &Ownership { owner, ..Ownership::default() });
        admin::initialise(&mut host, &genesis, &[]).map_err(|refusal| format!("{refusal:?}"))?;
        for (name, value) in parameters {
            let number = number_of(name).ok_or_else(|| format!("there is no parameter {name}"))?;
            let (_, least, most) = admin::parameter(&host, number).map_err(|refusal| format!("{refusal:?}"))?;
            let out_of_bounds = |_| format!("{name} can't be {value}; it can be from {least} to {most}");
            if PARAMETERS[usize::from(number)].delayed() {
                host.now = BEGINNING - u64::from(genesis.upgrade_delay);
                admin::propose_parameter(&mut host, number, Word::from(*value)).map_err(out_of_bounds)?;
                host.now = BEGINNING;
                admin::accept_parameter(&mut host, number).map_err(out_of_bounds)?;
            } else {
                admin::set_parameter(&mut host, number, Word::from(*value)).map_err(out_of_bounds)?;
            }
        }
        if !policy.is_contract() && host.get::<Rules>(slot(RULES)).draw_delay == 0 {
            return Err("drawDelay can't be 0 where not the contract chooses: it would draw at once".into());
        }
        host.events.clear();
        Ok(Self { host, policy, mirror: None })
    }

    /// A contract that stands in `host` already and whose calls go to a mirror first.
    pub fn mirrored(host: Arena, mirror: Box<dyn Mirror>) -> Self {
        Self { host, policy: Policy::Contract, mirror: Some(mirror) }
    }

    /// Time and block from now on.
    pub fn set_time(&mut self, now: u64, block: u64) {
        self.host.now = now;
        if self.mirror.is_none() {
            self.host.block = block;
        }
    }

    /// Makes a call. What it brought about is in the host's events; a refused one leaves no trace.
    ///
    /// # Errors
    /// Why it was refused.
    pub fn call(&mut self, by: Party, value: u128, call: &Call) -> Result<(), Refusal> {
        if let Some(mirror) = &mut self.mirror {
            let now = self.host.now;
            (self.host.block, self.host.now) = mirror.call(&mut self.host, now, by, value, call);
        }
        self.host.sender = by.address();
        self.host.value = Word([value as u64, (value >> 64) as u64, 0, 0]);
        let policy = &mut self.policy;
        let outcome = self.host.call(|host| {
            let mut net = match call {
                // One says itself how many it serves, the other serves nothing.
                Call::Dispatch(_) | Call::Withdraw => Network::open(host)?,
                _ if !policy.is_contract() => {
                    let mut net = Network::open(host)?;
                    policy.serve(&mut net);
                    net.readmit(muster_protocol::network::READMITTED_PER_CALL);
                    net
                }
                _ => Network::open_and_serve(host)?,
            };
            match call {
                Call::Join { gpu, vram, models } => {
                    net.join(gpu.as_bytes(), *vram, models.clone())?;
                }
                Call::Pause => net.pause()?,
                Call::Resume => net.resume()?,
                Call::Quit => net.quit()?,
                Call::RaiseStake => net.raise_stake()?,
                Call::ReportDownloaded(models) => net.report_downloaded(models.clone())?,
                Call::ReportRemoved(models) => net.report_removed(models.clone())?,
                Call::Poke(node) => net.poke(*node)?,
                Call::Withdraw => {
                    net.take_owed(by.address())?;
                }
                Call::Create(spec) => {
                    net.create_task(spec.clone())?;
                }
                Call::Cancel { task, ticket } => net.cancel(*task, *ticket)?,
                Call::Submit { task } => net.submit(*task, digest(*task))?,
                Call::ReportError { task } => net.report_error(*task, 1)?,
                Call::Expire { node, task } => net.expire(*node, *task)?,
                Call::Dispatch(count) if policy.is_contract() => {
                    net.dispatch(*count)?;
                }
                Call::Dispatch(_) => policy.serve(&mut net),
            }
            net.close();
            Ok(())
        });
        if let Some(mirror) = &mut self.mirror {
            mirror.compare(&mut self.host, call, &outcome);
        }
        outcome
    }

    /// Records a node's task score, as validating its group would.
    pub fn record_score(&mut self, node: u32, score: u8) {
        let Ok(mut net) = Network::open(&mut self.host) else { return };
        net.record_score(node, score);
        net.close();
    }

    /// Draws every Pending task whose block has come.
    pub fn dispatch(&mut self) {
        if self.mirror.is_some() && self.pending() && !self.due() {
            // Elsewhere blocks come with calls only.
            let _ = self.call(Party::Keeper, 0, &Call::Dispatch(DRAWS));
        }
        while self.due() {
            if self.call(Party::Keeper, 0, &Call::Dispatch(DRAWS)).is_err() {
                return;
            }
        }
    }

    /// Whether a Pending task can be drawn.
    pub fn due(&self) -> bool {
        let head: Head = self.host.get(slot(HEAD));
        if head.pending_head == head.pending_tail {
            return false;
        }
        let place = entry(&self.host, PENDING, head.pending_head.into());
        // With a mirror each call has a block of its own, after the one seen last.
        self.host.get::<Order>(offset(place, 1)).at < self.host.block + u64::from(self.mirror.is_some())
    }

    /// Whether any task is Pending.
    pub fn pending(&self) -> bool {
        let head: Head = self.host.get(slot(HEAD));
        head.pending_head != head.pending_tail
    }

    /// The head word.
    pub fn head(&self) -> Head {
        self.host.get(slot(HEAD))
    }

    /// A node's record.
    pub fn node(&self, number: u32) -> Node {
        Seat::load(&self.host, number).node
    }

    /// The number of the operator who runs a node; none for an account that is no operator's.
    pub fn operator(&self, number: u32) -> Option<u32> {
        let seat = Seat::load(&self.host, number);
        let record: Operator = self.host.get(offset(seat.slot, muster_protocol::layout::node::OPERATOR));
        let number = u32::from_be_bytes(record.account[16..].try_into().ok()?);
        (Party::Operator(number).address() == record.account).then_some(number)
    }

    /// The GPU group that nodes of a name and VRAM size make up.
    pub fn gpu_group(&self, name: &str, vram: u16) -> Option<u32> {
        muster_protocol::registry::gpu_group(&self.host, name.as_bytes(), vram)
    }

    /// What joining with a GPU costs beside the stake, in granules.
    pub fn group_fee(&self, name: &str, vram: u16) -> u64 {
        let limits: Limits = self.host.get(slot(LIMITS));
        if self.gpu_group(name, vram).is_some() {
            0
        } else {
            limits.group_fee
        }
    }

    /// Takes the events since the last time.
    pub fn take_events(&mut self, into: &mut Vec<Event>) {
        into.clear();
        std::mem::swap(into, &mut self.host.events);
    }
}

/// The digest a node hands in.
pub fn digest(task: u64) -> [u8; 32] {
    U256::from(task).to_be_bytes()
}
