//! The network, its people and its blocks; and the invariants after every call.

use super::book::Book;
use super::parties::{Nature, Side};
use super::rules::Rule;
use crate::meter;
use crate::properties::{self, Holds};
use crate::world::decode;
use crate::world::{named, parameter, who, word, Dice, World, OWNER, STAKE_UNIT, TOKEN, UPGRADE_DELAY};
use alloy_primitives::{keccak256, B256, U256};
use alloy_sol_types::{SolCall, SolValue};
use muster_core::id::{GpuGroup, NodeId};
use muster_core::record::{Node, Status};
use muster_core::word::Address;
use muster_protocol::abi::IMuster::*;
use muster_protocol::flow::draw::Rng;
use muster_protocol::host::Host;
use muster_protocol::layout::{slot, RESERVE};
use muster_protocol::native::Hashes;
use muster_protocol::store::accounts;
use muster_protocol::store::groups::places;
use muster_protocol::store::node::NodeHandle;
use muster_protocol::{programs, IMuster, Network, Result};
use std::collections::{HashMap, HashSet};

/// Operators begin here; a person's number is also the order in which they came.
const OPERATORS: u64 = 100;
/// An honest application.
pub const CLIENT: u64 = 1;
/// The adversary's application.
pub const CREATOR: u64 = 2;
/// An honest passer-by.
pub const DRIVER: u64 = 3;
/// An address of the adversary's without a node.
pub const HELPER: u64 = 4;

/// The model that all of the adversary's nodes hold, and most others.
pub const COMMON_MODEL: u64 = 1;
/// The listed GPU group of all nodes but the adversary's private ones.
pub const CARD: u32 = 1 << 16 | 24;
/// The owner's proposals in a season, one value of each.
const PROPOSED: [(&str, [u64; 3]); 3] = [("slashTimes", [10, 15, 20]), ("openMost", [1, 2, 3]), ("startFeeBps", [100, 200, 500])];
/// Hashes that a lone sender tries.
const TRIES: u32 = 32;

/// Somebody with money in the network.
#[derive(Clone, Debug)]
pub struct Person {
    /// Their number.
    pub number: u64,
    /// Their side.
    pub side: Side,
    /// Their node; 0 for none.
    pub node: u32,
    /// Wei paid out to them less wei paid in.
    pub flow: i128,
}

/// Where the money is.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The adversary's: stakes, returned stakes, credit, and its withdrawals less its payments.
    pub adversary: i128,
    /// The reserve that pays for validations.
    pub reserve: u128,
}

/// A season's network.
#[derive(Clone)]
pub struct Arena {
    /// The contracts.
    pub w: World,
    /// Chance.
    pub dice: Dice,
    /// The book of everybody's money.
    pub book: Book,
    /// Everybody.
    pub people: Vec<Person>,
    by_address: HashMap<Address, usize>,
    /// The nature of each task, and its creator's side.
    pub natures: HashMap<u64, (Nature, Side)>,
    /// Tasks that require the model of everybody.
    pub common: HashSet<u64>,
    /// Honest nodes that lack that model.
    pub lacking: HashSet<u32>,
    /// An old rule that is put back, to see its use.
    pub old: Option<Rule>,
    /// The place that a failure names.
    pub place: String,
    /// Calls of honest operators that were accepted.
    pub of_nodes: u64,
    calls: u64,
}

impl Arena {
    /// A network with so many honest nodes and others of the adversary's, of one listed card.
    pub fn new(seed: u64, honest: u64, own: u64, settings: &[(&str, u64)]) -> Arena {
        let mut w = World::new();
        w.mem.hashes = Hashes::Given(HashMap::new());
        for &(name, value) in settings {
            w.set(name, value);
        }
        let mut arena = Arena {
            w,
            dice: Dice(seed),
            book: Book { stake_unit: STAKE_UNIT.into(), ..Book::default() },
            people: Vec::new(),
            by_address: HashMap::new(),
            natures: HashMap::new(),
            common: HashSet::new(),
            lacking: HashSet::new(),
            old: None,
            place: format!("seed {seed}"),
            of_nodes: 0,
            calls: 0,
        };
        arena.read_parameters();
        arena.propose();
        for (number, side) in
            [(CLIENT, Side::Honest), (CREATOR, Side::Adversary), (DRIVER, Side::Honest), (HELPER, Side::Adversary)]
        {
            arena.meet(number, side);
        }
        arena.w.events();
        // So that place in the lists says nothing of the side.
        let mut sides: Vec<Side> = (0..honest + own).map(|i| if i < honest { Side::Honest } else { Side::Adversary }).collect();
        for i in (1..sides.len()).rev() {
            let j = arena.dice.below(i as u64 + 1) as usize;
            sides.swap(i, j);
        }
        for side in sides {
            arena.enter(side);
        }
        arena.w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: true }).expect("the owner may");
        arena.w.events();
        arena
    }

    /// Gives the reserve so much, as a long time of honest tasks would have.
    pub fn fund(&mut self, wei: u128) {
        let there = accounts::reserve(&self.w.mem);
        self.w.mem.store(slot(RESERVE), word(there + wei));
        self.w.paid_in += wei;
    }

    fn read_parameters(&mut self) {
        let mut value = |name| self.w.ask(parameterCall { which: parameter(name) }).value.to::<u64>();
        (self.book.slash_times, self.book.sample_bps) = (value("slashTimes").into(), value("sampleBps") as u16);
    }

    /// The owner proposes values that can be accepted at any moment later, under open commitments too.
    fn propose(&mut self) {
        for (name, values) in PROPOSED {
            let value = U256::from(values[self.dice.below(3) as usize]);
            self.w.send(OWNER, 0, proposeParameterCall { parameter: parameter(name), value }).expect("within bounds");
        }
        self.w.pass(1, UPGRADE_DELAY.into());
    }

    /// The owner changes a parameter, or somebody accepts a proposed one.
    pub fn change_something(&mut self) {
        let which = self.dice.below(PROPOSED.len() as u64 + 1) as usize;
        let data = match PROPOSED.get(which) {
            Some((name, _)) => acceptParameterCall { parameter: parameter(name) }.abi_encode(),
            None => {
                let value = U256::from(self.dice.below(2) * 100 + 300) * U256::from(TOKEN / u128::from(STAKE_UNIT));
                let _ = self.call_data(OWNER, 0, &proposeParameterCall { parameter: parameter("minStake"), value }.abi_encode());
                acceptParameterCall { parameter: parameter("minStake") }.abi_encode()
            }
        };
        // An accepted proposal is refused.
        let _ = self.call_data(OWNER, 0, &data);
    }

    /// The highest fee of a task for so many nodes.
    pub fn most_fee(&mut self, policy: u8, nodes: u32) -> u128 {
        self.w.view(|net| if policy > 0 { net.most_at_stake(nodes).0 } else { u128::MAX })
    }

    /// Somebody joins with the card that all have. Of honest nodes one in six lacks the model that the others hold.
    pub fn enter(&mut self, side: Side) {
        let tokens = self.stake();
        let lacks = side == Side::Honest && self.dice.below(6) == 0;
        let node = self.join(side, "RTX 4090", 24, if lacks { &[] } else { &[COMMON_MODEL] }, tokens);
        if lacks {
            self.lacking.insert(node);
        }
    }

    /// A stake in tokens.
    pub fn stake(&mut self) -> u128 {
        [400, 400, 800, 1_600][self.dice.below(4) as usize]
    }

    fn meet(&mut self, number: u64, side: Side) -> usize {
        self.by_address.insert(who(number), self.people.len());
        self.book.people.insert(who(number), side);
        self.people.push(Person { number, side, node: 0, flow: 0 });
        self.people.len() - 1
    }

    /// A new operator joins with a node; gives its number.
    pub fn join(&mut self, side: Side, gpu: &str, vram: u16, models: &[u64], tokens: u128) -> u32 {
        let person = self.meet(OPERATORS + self.people.len() as u64, side);
        let from = who(self.people[person].number);
        let value = tokens * TOKEN + self.w.group_fee(gpu, vram);
        let node = self.must(from, value, joinCall { gpuName: gpu.into(), vram, models: models.to_vec() });
        self.people[person].node = node;
        node
    }

    /// A node's operator.
    pub fn operator(&self, node: u32) -> Address {
        let person = self.people.iter().find(|p| p.node == node).expect("a node of somebody's");
        who(person.number)
    }

    /// Nodes ever issued of a side.
    pub fn nodes(&self, side: Side) -> Vec<u32> {
        self.people.iter().filter(|p| p.side == side && p.node > 0).map(|p| p.node).collect()
    }

    // ------------------------------------------------------------ calls

    /// Stops with the violation.
    pub fn fail(&self, what: &str) -> ! {
        panic!("{}: {what}", self.place)
    }

    /// A call. The books are checked after any outcome.
    pub fn call<C: SolCall>(&mut self, from: Address, value: u128, call: C) -> Result<C::Return> {
        let answer = self.call_data(from, value, &call.abi_encode())?;
        Ok(C::abi_decode_returns_validate(&answer).expect("encoded as it is declared"))
    }

    /// The same by its calldata.
    pub fn call_data(&mut self, from: Address, value: u128, data: &[u8]) -> Result<Vec<u8>> {
        let paid = self.w.mem.paid;
        let open = self.open_of(from);
        if data.starts_with(&revealCall::SELECTOR) || data.starts_with(&settleCall::SELECTOR) {
            let status = |n: u32| (n, NodeHandle::load(&self.w.mem, NodeId(n)).node.status);
            self.book.before = self.people.iter().filter(|p| p.node > 0).map(|p| status(p.node)).collect();
        }
        let person = self.by_address.get(&from).copied();
        let own = person.is_some_and(|person| self.people[person].side == Side::Adversary);
        let (mut gas, reserve) = (0, accounts::reserve(&self.w.mem));
        let out = self.w.raw(from, value, |m| meter::answer(m, data, &mut gas));
        self.must_hold(properties::gas(data, gas));
        self.book.life.gas += if own { gas } else { 0 };
        if out.is_ok() {
            if let Some(person) = person {
                let person = &mut self.people[person];
                person.flow += (self.w.mem.paid - paid) as i128 - value as i128;
                self.book.life.calls += u64::from(own);
                self.of_nodes += u64::from(!own && person.node > 0);
            }
        }
        if let (Err(refused), true) = (&out, data.starts_with(&withdrawCall::SELECTOR)) {
            self.book.life.locked += u64::from(named::<()>(Err(refused.clone())) == "StakeLocked");
        }
        let mut events = self.w.events();
        if let Some(old) = self.old {
            let more = self.put_back(old, &events);
            events.extend(more);
        }
        if events.iter().any(|event| matches!(event, IMusterEvents::TaskCreated(_))) {
            let all = [Side::Honest, Side::Adversary].map(|side| self.nodes(side)).concat();
            self.book.joined = all.into_iter().filter(|node| self.is_public(*node)).count();
        }
        let flow = accounts::reserve(&self.w.mem) as i128 - reserve as i128;
        self.book.flowed(&events, flow);
        for event in events {
            if let Err(what) = self.book.read(from, &event) {
                self.fail(&what);
            }
            if matches!(event, IMusterEvents::ParameterChanged(_)) {
                self.read_parameters();
            }
            if let IMusterEvents::TaskCreated(e) = &event {
                self.natures.insert(e.id, (self.book.next, self.book.people[&e.creator.into_array()]));
                if e.spec.models.contains(&COMMON_MODEL) {
                    self.common.insert(e.id);
                }
            }
            if matches!(&event, IMusterEvents::Withdrawn(e) if e.stake > 0 && open > 0) {
                self.fail("a stake left while a commitment was open");
            }
        }
        self.check();
        out
    }

    /// Open commitments of an operator's node.
    fn open_of(&mut self, from: Address) -> u8 {
        let node = self.by_address.get(&from).map_or(0, |person| self.people[*person].node);
        if node == 0 {
            0
        } else {
            self.seat(node).node.open()
        }
    }

    /// A call that an honest party is entitled to. The caller clears away the temporary obstacles that the pages name.
    pub fn must<C: SolCall + Clone>(&mut self, from: Address, value: u128, call: C) -> C::Return {
        for _ in 0..600 {
            let refused = match self.call(from, value, call.clone()) {
                Ok(done) => return done,
                Err(refused) => named::<()>(Err(refused)),
            };
            match refused.as_str() {
                "DrawsDue" | "TooManyValidatorDraws" => {
                    self.must_drive();
                }
                // Its ring is full: makes the due draws, and the next block's.
                "TooManyPending" => {
                    self.next_block(1, None);
                    self.must_drive();
                }
                _ => self.fail(&format!("{} of an honest party is refused: {refused}", C::SIGNATURE)),
            }
        }
        self.fail(&format!("{} of an honest party is blocked", C::SIGNATURE))
    }

    fn must_drive(&mut self) {
        if let Err(refused) = self.call(who(DRIVER), 0, dispatchCall { count: 16 }) {
            let refused = named::<()>(Err(refused));
            self.fail(&format!("dispatch is refused: {refused}"));
        }
    }

    // ------------------------------------------------------------ money

    /// Every wei that came in is in one place.
    fn check(&mut self) {
        self.calls += 1;
        self.book.life.checked += 1;
        let (came, fees) = (self.w.paid_in - self.w.mem.paid, self.book.escrow);
        let all = self.calls.is_multiple_of(64);
        let people = self.by_address.keys().copied();
        let holds = self.w.view(|net| {
            properties::money(net, people, fees, came)?;
            properties::fees_of_books(net, fees, all)
        });
        self.must_hold(holds);
    }

    /// Stops where a property does not hold.
    pub fn must_hold(&self, holds: Holds) {
        if let Err(what) = holds {
            self.fail(&what);
        }
    }

    /// Where the money is.
    pub fn standing(&mut self) -> Standing {
        let mut standing = Standing::default();
        for person in &self.people {
            if person.side == Side::Adversary {
                standing.adversary += self.owned(person) as i128 + person.flow;
            }
        }
        standing.reserve = accounts::reserve(&self.w.mem);
        standing
    }

    /// Everything that somebody has in the network, in wei.
    pub fn owned(&self, person: &Person) -> u128 {
        let account = accounts::account(&self.w.mem, who(person.number));
        let stake = if person.node > 0 { NodeHandle::load(&self.w.mem, NodeId(person.node)).node.stake } else { 0 };
        account.credit + accounts::wei(&self.w.mem, account.unbonding + stake)
    }

    // ------------------------------------------------------------ looking

    /// A node's record.
    pub fn seat(&mut self, node: u32) -> NodeHandle {
        NodeHandle::load(&self.w.mem, NodeId(node))
    }

    /// The running task of a node.
    pub fn running(&mut self, node: u32) -> IMuster::TaskView {
        self.w.view(|net| net.running_task(NodeId(node))).expect("a node")
    }

    /// All groups.
    pub fn groups(&mut self) -> Vec<IMuster::GroupView> {
        self.w.view(|net| {
            let issued = places(net.host).issued;
            (1..=issued).map(|place| net.group_view(place)).filter(|group| group.id > 0).collect()
        })
    }

    /// Whether a node's committed answer is sampled; none while nobody can know.
    pub fn lot(&mut self, node: u32) -> Option<bool> {
        let seat = self.seat(node);
        let order = seat.order(&self.w.mem);
        let hash = self.w.mem.block_hash(seat.commitment(&self.w.mem).block)?;
        Some(Rng::new(&self.w.mem, hash, order.id).below(&self.w.mem, 10_000) < u64::from(order.sample_bps))
    }

    /// Whether a draw's hash is known.
    pub fn draws_due(&mut self) -> bool {
        Network::open(&mut self.w.mem).expect("initialised").draws_due()
    }

    /// Whether nothing waits, runs or is open.
    pub fn is_quiet(&mut self) -> bool {
        let net = Network::open(&mut self.w.mem).expect("initialised");
        let host = &*net.host;
        let runs = |n: u32| {
            let node: Node = NodeHandle::load(host, NodeId(n)).node;
            node.running() || node.parked == Node::RESERVED
        };
        net.ring().is_empty()
            && net.validator_draws().is_empty()
            && net.queued() == 0
            && places(host).live == 0
            && !(1..=net.overview().nodesIssued).any(runs)
    }

    /// Whether a node has joined with the card that all have.
    pub fn is_public(&mut self, node: u32) -> bool {
        let node = self.seat(node).node;
        node.status != Status::Quit as u8 && node.group == GpuGroup(CARD)
    }

    /// Whether a node could be drawn as a validator.
    pub fn could_validate(&mut self, node: u32, open_most: u8) -> bool {
        let node = self.seat(node).node;
        matches!(Status::new(node.status), Status::Available | Status::Busy)
            && !node.called()
            && !node.held()
            && node.open() < open_most
            && node.group == GpuGroup(CARD)
    }

    // ------------------------------------------------------------ blocks

    fn set_hash(&mut self, block: u64, hash: B256) {
        if let Hashes::Given(hashes) = &mut self.w.mem.hashes {
            hashes.insert(block, hash.0);
        }
    }

    fn some_hash(&mut self) -> B256 {
        keccak256((self.dice.bits(), self.dice.bits()).abi_encode())
    }

    /// Ends the block. Where the adversary is alone in it, it tries calls that it could send, and keeps the hash whose draws are worth most
    /// to it.
    pub fn next_block(&mut self, seconds: u64, alone: Option<&[u32]>) {
        let block = self.w.mem.block;
        let hash = self.some_hash();
        self.set_hash(block, hash);
        self.w.pass(1, seconds);
        let Some(liars) = alone else { return };
        let mut best = (self.luck(liars), hash);
        for _ in 0..TRIES {
            let hash = self.some_hash();
            self.set_hash(block, hash);
            best = best.max((self.luck(liars), hash));
        }
        self.set_hash(block, best.1);
    }

    /// The worth of the known hashes to the adversary: answers of these nodes that are spared, and members of groups.
    fn luck(&mut self, liars: &[u32]) -> u64 {
        let spared =
            liars.iter().filter(|node| self.running(**node).status == 4 && self.lot(**node) == Some(false)).count() as u64;
        let drive = (who(HELPER), 0, dispatchCall { count: 16 }.abi_encode());
        let drawn = if self.draws_due() { self.foresee(&[drive]).unwrap_or_default() } else { 0 };
        4 * spared + drawn
    }

    /// The groups that these calls would lead to, and their worth to the adversary; none if one of them is refused. Nothing changes.
    pub fn foresee(&mut self, calls: &[(Address, u128, Vec<u8>)]) -> Option<u64> {
        let logs = self.w.mem.logs.len();
        let (mut worth, book) = (None, &self.book);
        let _ = self.w.mem.call(|m| {
            for (from, value, data) in calls {
                m.sender = *from;
                m.value = word(*value);
                programs::answer(m, data).map_err(drop)?;
            }
            let formed = m.logs[logs..].iter().filter_map(|log| match decode(&log.topics, &log.data) {
                IMusterEvents::GroupFormed(e) => Some(match book.own(&e.nodes) {
                    // A third to rob, no third, and one that may copy.
                    2 => 3,
                    3 => 2,
                    own => own as u64 / 2,
                }),
                _ => None,
            });
            worth = Some(formed.sum());
            Err::<(), ()>(())
        });
        worth
    }

    /// The task of an order's id, as its creator made it.
    pub fn nature(&self, id: u64) -> Nature {
        self.natures.get(&id).map_or(Nature::Plain, |task| task.0)
    }

    /// Whether a node cannot answer a task and says so.
    pub fn lacks(&self, id: u64, node: u32) -> bool {
        let honest = self.book.side(node) == Side::Honest;
        honest && (self.nature(id) == Nature::Lacking || self.common.contains(&id) && self.lacking.contains(&node))
    }

    /// Counts the time in which the adversary's tasks hold honest nodes that cannot answer them, or keep them waiting for nothing.
    pub fn note_time(&mut self, seconds: u64) {
        for node in self.nodes(Side::Honest) {
            let seat = self.seat(node);
            let id = seat.order(&self.w.mem).id.0;
            let theirs = self.natures.get(&id) == Some(&(Nature::Lacking, Side::Adversary));
            let there = seat.node.running() || seat.node.parked == Node::SET_BACK && seat.node.status != Status::Quit as u8;
            if theirs && there {
                self.book.life.held += seconds;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "came in")]
    fn a_wei_from_nowhere_is_noticed() {
        let mut arena = Arena::new(1, 9, 1, &[]);
        arena.must(who(DRIVER), 0, dispatchCall { count: 1 });
        arena.w.mem.store(slot(RESERVE), word(1));
        arena.must(who(DRIVER), 0, dispatchCall { count: 1 });
    }

    #[test]
    #[should_panic(expected = "of an honest party is refused: NotAnOperator")]
    fn a_refusal_is_noticed() {
        Arena::new(1, 9, 1, &[]).must(who(DRIVER), 0, pauseCall {});
    }
}
