//! The systems that operations run on: the code of the contracts in memory, or the compiled programs on a chain.

use crate::meter;
use crate::world::{decode, named, who, World};
use alloy_sol_types::SolCall;
use muster_core::id::NodeId;
use muster_core::word::Address;
use muster_protocol::abi::IMuster::IMusterEvents;
use muster_protocol::host::Program;
use muster_protocol::native::Memory;
use muster_protocol::{Host, Network, Result as Given};

/// A call as it is sent.
#[derive(Clone, Debug)]
pub struct Call {
    /// The caller.
    pub from: Address,
    /// Wei sent along.
    pub value: u128,
    /// Selector and arguments.
    pub data: Vec<u8>,
}

impl Call {
    /// A call without value.
    pub fn new(from: Address, call: impl SolCall) -> Call {
        Call { from, value: 0, data: call.abi_encode() }
    }

    /// The same with value.
    pub fn paying(self, value: u128) -> Call {
        Call { value, ..self }
    }

    /// Whether it is a call of this function.
    pub fn is<C: SolCall>(&self) -> bool {
        self.data.starts_with(&C::SELECTOR)
    }
}

/// The effects of an accepted call.
#[derive(Clone, Debug)]
pub struct Done {
    /// Wei it sent away.
    pub paid: u128,
    /// Its events.
    pub events: Vec<IMusterEvents>,
}

/// The result of a refused call.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The error's name.
    pub name: String,
    /// Its logs until then, which were undone; the model needs them to follow the decisions of chance.
    pub events: Vec<IMusterEvents>,
}

/// An event, and the time of its block.
pub type Logged = (IMusterEvents, u64);

/// A Muster that has just been initialised, with the owner, the treasury and the stakes of [`crate::world`].
pub trait System {
    /// The host that its storage is read through.
    type Host: Host;
    /// Time and number of the block that the next call will be in.
    fn clock(&self) -> (u64, u64);
    /// Lets blocks and seconds pass.
    fn pass(&mut self, blocks: u64, seconds: u64);
    /// Makes a call.
    fn call(&mut self, call: &Call) -> Result<Done, Refused>;
    /// Records a score for a node so many times, as judgements do; none where nothing but a judgement can.
    fn record(&mut self, _node: u32, _score: u8, _times: u8) -> Option<Result<Done, Refused>> {
        None
    }
    /// Gives ether to the contract's address in a way that no contract can refuse.
    fn force(&mut self, wei: u128);
    /// Wei at the contract's address.
    fn balance(&mut self) -> u128;
    /// The answer of a view that refuses nothing here.
    fn answer<C: SolCall>(&mut self, call: C) -> C::Return;
    /// Reads storage.
    fn read<T>(&mut self, f: impl FnOnce(&Network<Self::Host>) -> T) -> T;
    /// The logs before the first operation.
    fn birth(&mut self) -> Vec<Logged>;
    /// Checks of its own after an operation.
    fn inspect(&mut self) {}
    /// The gas of the last call, whether it was refused or not: of storage, logs and its start; none where it is not counted.
    fn gas(&self) -> Option<u64> {
        None
    }
    /// A copy, on which possible calls are tried; none where it cannot be copied.
    fn copy(&self) -> Option<World> {
        None
    }
}

impl World {
    /// Does something as in a call; gives the outcome.
    fn told(&mut self, from: Address, value: u128, f: impl FnOnce(&mut Memory) -> Given<()>) -> Result<Done, Refused> {
        let (known, paid) = (self.mem.logs.len(), self.mem.paid);
        let mut logs = Vec::new();
        let out = self.raw(from, value, |m| {
            let out = f(m);
            logs = m.logs[known..].to_vec();
            out
        });
        let events = logs.iter().map(|l| decode(&l.topics, &l.data)).collect();
        match out {
            Ok(()) => Ok(Done { paid: self.mem.paid - paid, events }),
            Err(e) => Err(Refused { name: named::<()>(Err(e)), events }),
        }
    }
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
        let mut gas = 0;
        let out = self.told(call.from, call.value, |m| meter::answer(m, &call.data, &mut gas).map(drop));
        self.gas = gas;
        out
    }

    fn record(&mut self, node: u32, score: u8, times: u8) -> Option<Result<Done, Refused>> {
        Some(self.told(who(50), 0, |m| {
            // The program that judges does none of those things itself.
            let before = m.enter(Program::Groups);
            let mut net = Network::open_and_serve(m)?;
            (0..times).for_each(|_| net.record_score(NodeId(node), score));
            net.close();
            m.enter(before);
            Ok(())
        }))
    }

    fn force(&mut self, wei: u128) {
        self.forced += wei;
    }

    fn balance(&mut self) -> u128 {
        self.paid_in - self.mem.paid + self.forced
    }

    fn answer<C: SolCall>(&mut self, call: C) -> C::Return {
        self.ask(call)
    }

    fn read<T>(&mut self, f: impl FnOnce(&Network<Memory>) -> T) -> T {
        self.view(f)
    }

    fn birth(&mut self) -> Vec<Logged> {
        let now = self.mem.now;
        self.mem.logs.iter().map(|l| (decode(&l.topics, &l.data), now)).collect()
    }

    fn gas(&self) -> Option<u64> {
        Some(self.gas)
    }

    fn copy(&self) -> Option<World> {
        let mut copy = self.clone();
        copy.mem.logs.clear();
        Some(copy)
    }
}
