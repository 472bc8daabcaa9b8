//! A world in memory that plays calls as the programs do, keeps the books of money in and out, and decodes logs and refusals by the
//! interface's own decoders.

use alloy_primitives::{keccak256, IntoLogData, B256, U256};
use alloy_sol_types::{sol_data, SolCall, SolEventInterface, SolInterface, SolType};
use muster_core::id::{ModelId, NodeId, QueueId, TaskId};
use muster_core::word::{Address, Word};
use muster_protocol::abi::IMuster::*;
use muster_protocol::admin::Genesis;
use muster_protocol::flow::draw::{Draw, Rng};
use muster_protocol::native::Memory;
use muster_protocol::parameters::{number_of, PARAMETERS};
use muster_protocol::store::task::Task;
use muster_protocol::{programs, IMuster, Network, Result};

pub use muster_protocol::refusal;

/// One token.
pub const TOKEN: u128 = 1_000_000_000_000_000_000;
/// Wei in a stake unit of the worlds here.
pub const STAKE_UNIT: u64 = 1_000_000_000_000_000;
/// Seconds before a proposed program or parameter takes effect in every world.
pub const UPGRADE_DELAY: u32 = 172_800;
/// The owner of every world.
pub const OWNER: Address = [0xaa; 20];
/// The treasury of every world.
pub const TREASURY: Address = [0xbb; 20];

/// The settings that every world is initialised with.
pub fn genesis() -> Genesis {
    Genesis { owner: OWNER, treasury: TREASURY, stake_unit: STAKE_UNIT, minimum_stake: 400 * TOKEN, upgrade_delay: UPGRADE_DELAY }
}

/// The call that initialises.
pub fn initialise(genesis: &Genesis, programs: &[IMuster::Facet]) -> initialiseCall {
    initialiseCall {
        owner: genesis.owner.into(),
        treasury: genesis.treasury.into(),
        stakeUnit: genesis.stake_unit,
        minimumStake: genesis.minimum_stake,
        upgradeDelay: genesis.upgrade_delay,
        programs: programs.to_vec(),
    }
}

/// The number of a parameter.
pub fn parameter(name: &str) -> u8 {
    number_of(name).expect("a parameter's name")
}

/// A person by number.
pub fn who(n: u64) -> Address {
    let mut a = [0x11; 20];
    a[12..].copy_from_slice(&n.to_be_bytes());
    a
}

/// Models by their numbers.
pub fn ids(models: Vec<u64>) -> Vec<ModelId> {
    models.into_iter().map(ModelId).collect()
}

/// A page of nodes, by their numbers.
pub fn raw(page: Result<(u32, Vec<NodeId>)>) -> (u32, Vec<u32>) {
    let (total, nodes) = page.expect("a page");
    (total, nodes.into_iter().map(|node| node.0).collect())
}

/// Wei as a word.
pub fn word(wei: u128) -> Word {
    Word([wei as u64, (wei >> 64) as u64, 0, 0])
}

/// A task's specification: GPT, any GPU with `vram`.
pub fn spec(vram: u16, models: &[u64]) -> IMuster::TaskSpec {
    IMuster::TaskSpec {
        kind: 1,
        units: 1,
        vram,
        gpu: 0,
        redundancy: 0,
        flags: 0,
        inputDigest: [7; 32].into(),
        models: models.to_vec(),
    }
}

/// Stages of a member of a group, as in `IMuster.MemberView`.
pub mod stage {
    /// Called to the group, and still busy elsewhere.
    pub const CALLED: u8 = 1;
    /// Runs the group's task.
    pub const RUNNING: u8 = 2;
    /// Has committed, and not revealed.
    pub const COMMITTED: u8 = 3;
    /// Has revealed an answer.
    pub const ANSWERED: u8 = 4;
    /// Has revealed an error.
    pub const FAILED: u8 = 5;
    /// Let its deadline pass.
    pub const TIMED_OUT: u8 = 6;
    /// Was thrown out of the network.
    pub const GONE: u8 = 7;
}

/// The commitment of a node for a task: to an answer (`kind` 0) or an error (1), under a salt.
pub fn commitment(id: u64, node: u32, kind: u8, value: B256, salt: B256) -> B256 {
    type Encoded =
        (sol_data::Uint<64>, sol_data::Uint<32>, sol_data::Uint<8>, sol_data::FixedBytes<32>, sol_data::FixedBytes<32>);
    keccak256(Encoded::abi_encode_params(&(id, node, kind, value, salt)))
}

/// SplitMix64: a small generator apart from the one under test.
#[derive(Clone)]
pub struct Dice(pub u64);

impl Dice {
    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.bits() as u128 * n as u128) >> 64) as u64
    }
    /// Uniform in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Storage, and the money that went in and out of it.
#[derive(Clone)]
pub struct World {
    /// The host.
    pub mem: Memory,
    /// Wei that came in by accepted calls.
    pub paid_in: u128,
    /// Wei that came in past every function.
    pub forced: u128,
    /// Gas of the last call that was metered.
    pub gas: u64,
}

impl World {
    /// An initialised world: minimum stake 400 tokens, stake units of a thousandth of a token.
    pub fn new() -> World {
        let mut world = World::on(Memory::created_by(OWNER));
        world.send(OWNER, 0, initialise(&genesis(), &[])).expect("initialises");
        world
    }

    /// A world on a storage.
    pub fn on(mem: Memory) -> World {
        World { mem, paid_in: 0, forced: 0, gas: 0 }
    }

    /// Calls a function as the router does; gives its answer.
    pub fn send<C: SolCall>(&mut self, from: Address, value: u128, call: C) -> Result<C::Return> {
        let answer = self.raw(from, value, |m| programs::answer(m, &call.abi_encode()))?;
        Ok(C::abi_decode_returns_validate(&answer).expect("encoded as it is declared"))
    }

    /// Asks a view that refuses nothing here.
    pub fn ask<C: SolCall>(&mut self, call: C) -> C::Return {
        self.send([0; 20], 0, call).expect("answers")
    }

    /// Something on the network as in a call: due draws are served first, the head is written last.
    pub fn call<T>(&mut self, from: Address, value: u128, f: impl FnOnce(&mut Network<Memory>) -> Result<T>) -> Result<T> {
        self.raw(from, value, |m| {
            let mut net = Network::open_and_serve(m)?;
            let out = f(&mut net)?;
            net.close();
            Ok(out)
        })
    }

    /// Something on the host as in a call.
    pub fn raw<T>(&mut self, from: Address, value: u128, f: impl FnOnce(&mut Memory) -> Result<T>) -> Result<T> {
        self.mem.sender = from;
        self.mem.value = word(value);
        let out = self.mem.call(f)?;
        self.paid_in += value;
        Ok(out)
    }

    /// Reads.
    pub fn view<T>(&mut self, f: impl FnOnce(&Network<Memory>) -> T) -> T {
        let net = Network::open(&mut self.mem).expect("initialised");
        f(&net)
    }

    /// The cost of joining with a GPU beside the stake, in wei.
    pub fn group_fee(&mut self, gpu: &str, vram: u16) -> u128 {
        let known = self.send([0; 20], 0, gpuGroupCall { name: gpu.into(), vram }).is_ok();
        let fee: u128 = self.ask(parameterCall { which: parameter("groupFee") }).value.to();
        if known {
            0
        } else {
            fee * STAKE_UNIT as u128
        }
    }

    /// Joins with a stake in tokens, and pays for the GPU's name where it is new.
    pub fn join(&mut self, n: u64, gpu: &str, vram: u16, models: &[u64], tokens: u128) -> Result<u32> {
        let fee = self.group_fee(gpu, vram);
        self.send(who(n), tokens * TOKEN + fee, joinCall { gpuName: gpu.into(), vram, models: models.to_vec() })
    }

    /// Creates a task.
    pub fn create(&mut self, n: u64, fee: u128, spec: IMuster::TaskSpec) -> Result<u64> {
        self.send(who(n), fee, createTaskCall { spec })
    }

    /// Draws up to `n` Pending tasks.
    pub fn dispatch(&mut self, n: u8) -> Result<u8> {
        self.send(who(999), 0, dispatchCall { count: n })
    }

    /// Draws until no task is Pending.
    pub fn drain(&mut self) {
        while self.ask(overviewCall {}).pending > 0 {
            self.pass(1, 0);
            self.dispatch(16).unwrap();
        }
    }

    /// Pays out a person's credit, and gives how much.
    pub fn withdraw(&mut self, n: u64) -> Result<u128> {
        let paid = self.mem.paid;
        self.send(who(n), 0, withdrawCall { to: who(n).into() })?;
        Ok(self.mem.paid - paid)
    }

    /// Changes a parameter; one that must be proposed, as if it had been in time.
    pub fn set(&mut self, name: &str, value: u64) {
        let (parameter, value) = (parameter(name), U256::from(value));
        if !PARAMETERS[parameter as usize].delayed() {
            self.send(OWNER, 0, setParameterCall { parameter, value }).expect("within bounds");
            return;
        }
        let now = self.mem.now;
        self.mem.now -= UPGRADE_DELAY as u64;
        self.send(OWNER, 0, proposeParameterCall { parameter, value }).expect("within bounds");
        self.mem.now = now;
        self.send(OWNER, 0, acceptParameterCall { parameter }).expect("in time");
    }

    /// Lets blocks and seconds pass.
    pub fn pass(&mut self, blocks: u64, seconds: u64) {
        self.mem.block += blocks;
        self.mem.now += seconds;
    }

    /// A node's view.
    pub fn node(&mut self, number: u32) -> IMuster::NodeView {
        self.ask(nodeCall { number })
    }

    /// A person's account.
    pub fn account(&mut self, n: u64) -> IMuster::AccountView {
        self.ask(accountCall { who: who(n).into() })
    }

    /// Everything logged since the last call of this.
    pub fn events(&mut self) -> Vec<IMusterEvents> {
        std::mem::take(&mut self.mem.logs).iter().map(|l| decode(&l.topics, &l.data)).collect()
    }

    /// The latest ticket of a task.
    pub fn ticket(&mut self, id: u64) -> u64 {
        let net = Network::open(&mut self.mem).expect("initialised");
        for queue in net.queues(0, 256).expect("a page").1 {
            if let Some(t) = net.queued_tasks(QueueId(queue.queue), 0, 256).unwrap().1.into_iter().find(|t| t.id == id) {
                return t.ticket;
            }
        }
        panic!("task {id} is not queued")
    }
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

/// A world with nodes of one GPU and this delay of draws.
pub fn world(nodes: u64, delay: u64) -> World {
    let mut w = World::new();
    w.set("drawDelay", delay);
    for n in 1..=nodes {
        w.join(n, "RTX 4090", 24, &[], 400).unwrap();
    }
    w.events();
    w
}

/// Which node a hash would give a task, by the public code that decides it.
pub fn foretell(w: &mut World, hash: [u8; 32], id: u64, wanted: &IMuster::TaskSpec) -> Option<u32> {
    let net = Network::open(&mut w.mem).unwrap();
    let (order, models, _) = net.order_for(wanted).unwrap();
    let task = Task { order, models, ..Task::default() };
    let mut rng = Rng::new(net.host, hash, TaskId(id));
    match net.draw(&task, &mut rng) {
        Draw::Node(seat, _) => Some(seat.id.0),
        _ => None,
    }
}

/// Asserts that a call was refused with exactly this error and these values.
#[macro_export]
macro_rules! refused {
    ($call:expr, $($error:tt)*) => {
        assert_eq!($call.map(drop).expect_err("must be refused"), $crate::world::refusal!($($error)*))
    };
}

/// Unwraps a refusal's type for tests that need not name its values.
pub fn named<T>(r: Result<T>) -> String {
    r.map_or_else(|e| name_of(&e.into_bytes()), |_| "accepted".into())
}

/// The name of an error as it is encoded.
pub fn name_of(error: &[u8]) -> String {
    let error = IMuster::IMusterErrors::abi_decode_validate(error).expect("an error of the interface");
    format!("{error:?}").split('(').next().unwrap_or_default().into()
}

/// An event, checked to be encoded as the ABI demands.
pub fn decode(topics: &[alloy_primitives::B256], data: &[u8]) -> IMusterEvents {
    let event = IMusterEvents::decode_raw_log(topics, data).expect("one of the interface's events");
    let again = event.to_log_data();
    assert_eq!((again.topics(), &again.data[..]), (topics, data), "encoded as the ABI demands");
    event
}
