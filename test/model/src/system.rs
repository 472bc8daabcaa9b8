//! What operations are tried on: the code of the contracts in memory, or the compiled programs on a chain.

use crate::world::{named, parameter, World};
use alloy_primitives::IntoLogData;
use alloy_sol_types::SolEventInterface;
use muster_core::word::{Address, Word};
use muster_protocol::abi::IMuster::{self, IMusterEvents};
use muster_protocol::native::Memory;
use muster_protocol::{admin, Host, Network};

/// A call with its arguments.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who calls.
    pub from: Address,
    /// Wei sent along.
    pub value: u128,
    /// What is called.
    pub what: What,
}

/// A function and its arguments, in the interface's order.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum What {
    Join(&'static str, u16, Vec<u64>),
    Raise,
    Pause,
    Resume,
    Quit,
    /// To the caller himself.
    Withdraw,
    Report(Vec<u64>),
    Remove(Vec<u64>),
    Purge(u64, u32),
    Poke(u32),
    Create(IMuster::TaskSpec),
    Cancel(u64, u64),
    ExpireQueued(u64, u64),
    /// With 32 times the id's lowest byte as the digest.
    Submit(u64),
    /// With code 3.
    Fault(u64),
    Expire(u32, u64),
    Dispatch(u8),
    /// Node, score, and how many times over: what only tests can call.
    Score(u32, u8, u8),
    Parameter(&'static str, u64),
    Propose(&'static str, u64),
    Accept(&'static str),
    Switch(bool),
    Sweep,
}

/// What an accepted call did.
#[derive(Clone, Debug)]
pub struct Done {
    /// Wei it sent away.
    pub paid: u128,
    /// Its events.
    pub events: Vec<IMusterEvents>,
}

/// What a refused call gave.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The error's name.
    pub name: String,
    /// What it had logged until then, which came to nothing; the model needs it to follow what chance had decided.
    pub events: Vec<IMusterEvents>,
}

/// An event, and the time of its block.
pub type Logged = (IMusterEvents, u64);

/// A Muster that has just been initialised, with the owner, the treasury and the stakes of [`crate::world`].
pub trait System {
    /// What its storage is read through.
    type Host: Host;
    /// Time and number of the block that the next call will be in.
    fn clock(&self) -> (u64, u64);
    /// Lets blocks and seconds pass.
    fn pass(&mut self, blocks: u64, seconds: u64);
    /// Makes a call.
    fn call(&mut self, call: &Call) -> Result<Done, Refused>;
    /// Gives ether to the contract's address in a way that no contract can refuse.
    fn force(&mut self, wei: u128);
    /// Wei at the contract's address.
    fn balance(&mut self) -> u128;
    /// Reads storage.
    fn read<T>(&mut self, f: impl FnOnce(&Network<Self::Host>) -> T) -> T;
    /// What was logged before the first operation.
    fn birth(&mut self) -> Vec<Logged>;
    /// Checks of its own after an operation.
    fn inspect(&mut self) {}
}

/// An event, checked to be encoded as the ABI demands.
pub fn decode(topics: &[alloy_primitives::B256], data: &[u8]) -> IMusterEvents {
    let event = IMusterEvents::decode_raw_log(topics, data).expect("one of the interface's events");
    let again = event.to_log_data();
    assert_eq!((again.topics(), &again.data[..]), (topics, data), "encoded as the ABI demands");
    event
}

impl System for World {
    type Host = Memory;

    fn clock(&self) -> (u64, u64) {
        (self.mem.now, self.mem.block)
    }

    fn pass(&mut self, blocks: u64, seconds: u64) {
        World::pass(self, blocks, seconds);
    }

    fn call(&mut self, call: &Call) -> Result<Done, Refused> {
        let from = self.mem.logs.len();
        let mut logs = Vec::new();
        let out = self.raw(call.from, call.value, |m| {
            let out = run(m, &call.what);
            logs = m.logs[from..].to_vec();
            out
        });
        let events = logs.iter().map(|l| decode(&l.topics, &l.data)).collect();
        match out {
            Ok(paid) => {
                self.paid_out += paid;
                Ok(Done { paid, events })
            }
            Err(e) => Err(Refused { name: named::<()>(Err(e)), events }),
        }
    }

    fn force(&mut self, wei: u128) {
        self.forced += wei;
    }

    fn balance(&mut self) -> u128 {
        self.paid_in - self.paid_out + self.forced
    }

    fn read<T>(&mut self, f: impl FnOnce(&Network<Memory>) -> T) -> T {
        self.view(f)
    }

    fn birth(&mut self) -> Vec<Logged> {
        let now = self.mem.now;
        self.mem.logs.iter().map(|l| (decode(&l.topics, &l.data), now)).collect()
    }
}

/// The call, as the programs run it; gives what it pays out.
pub fn run<H: Host>(m: &mut H, what: &What) -> muster_protocol::Result<u128> {
    match what {
        What::Parameter(name, v) => return admin::set_parameter(m, parameter(name), Word::from(*v)).map(|_| 0),
        What::Propose(name, v) => return admin::propose_parameter(m, parameter(name), Word::from(*v)).map(|_| 0),
        What::Accept(name) => return admin::accept_parameter(m, parameter(name)).map(|_| 0),
        What::Switch(on) => return admin::set_paused(m, *on).map(|_| 0),
        What::Sweep => return admin::take_treasury(m).map(|(_, wei)| wei),
        _ => {}
    }
    let sender = m.sender();
    let mut net = if matches!(what, What::Dispatch(_) | What::Withdraw | What::ExpireQueued(..)) {
        Network::open(m)?
    } else {
        Network::open_and_serve(m)?
    };
    let mut paid = 0;
    match what.clone() {
        What::Join(name, vram, models) => net.join(name.as_bytes(), vram, models).map(|_| ())?,
        What::Raise => net.raise_stake()?,
        What::Pause => net.pause()?,
        What::Resume => net.resume()?,
        What::Quit => net.quit()?,
        What::Withdraw => paid = net.take_owed(sender)?,
        What::Report(models) => net.report_downloaded(models)?,
        What::Remove(models) => net.report_removed(models)?,
        What::Purge(model, position) => net.purge(model, position)?,
        What::Poke(node) => net.poke(node)?,
        What::Create(spec) => net.create_task(spec).map(|_| ())?,
        What::Cancel(id, ticket) => net.cancel(id, ticket)?,
        What::ExpireQueued(id, ticket) => net.expire_queued(id, ticket)?,
        What::Submit(id) => net.submit(id, [id as u8; 32])?,
        What::Fault(id) => net.report_error(id, 3)?,
        What::Expire(node, id) => net.expire(node, id)?,
        What::Dispatch(n) => net.dispatch(n).map(|_| ())?,
        What::Score(node, score, times) => (0..times).for_each(|_| net.record_score(node, score)),
        What::Parameter(..) | What::Propose(..) | What::Accept(_) | What::Switch(_) | What::Sweep => {}
    }
    net.close();
    Ok(paid)
}
