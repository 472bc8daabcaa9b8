//! The compiled programs as something that operations are tried on: transactions straight into the embedded node's
//! chain, and beside each of them the same code compiled for this machine, run on the same storage.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use alloy_primitives::{Address as Account, Bytes, TxKind, U256};
use alloy_rpc_types_eth::{BlockId, Filter};
use alloy_sol_types::{SolCall, SolInterface};
use muster_core::word::{Address, Word};
use muster_devnode::chain::Mined;
use muster_devnode::evm::Status;
use muster_devnode::state::State;
use muster_devnode::{Chain, Devnode, TxRequest};
use muster_model::system::{Call, Done, Logged, Refused, System};
use muster_model::world::decode;
use muster_model::world::{parameter, who, OWNER, STAKE_UNIT, TOKEN, TREASURY, UPGRADE_DELAY};
use muster_protocol::host::{Program, HISTORY};
use muster_protocol::native::{solidity_slot, Log};
use muster_protocol::parameters::PARAMETERS;
use muster_protocol::IMuster::{self, IMusterEvents as E, *};
use muster_protocol::{programs, Host, Network};

use muster_fleet::world::{embedded, remote, World};

/// The callers' own ether, in wei, apart from a test's gift.
const WEALTH: u128 = 1 << 120;

/// A deployment, and its chain's state right after. It has a node of its own, since the hashes of blocks decide draws, and on a shared node they hang on which test came first.
pub struct Site {
    _world: World,
    chain: Chain,
    muster: Account,
    snapshot: Cell<u64>,
}

impl Site {
    /// Deploys; none if RPC_URL names a node, which would be sent thousands of transactions.
    pub async fn new() -> Option<Site> {
        if remote().is_some() {
            return None;
        }
        // Runs until the tests end, as the shared one does.
        let node: &'static Devnode = Box::leak(Box::new(embedded()));
        let hands = Some((OWNER.into(), TREASURY.into()));
        let world = World::on(Some(node), (STAKE_UNIT, 400 * TOKEN), hands, &[]).await;
        let chain = node.chain().clone();
        let muster = world.muster.address();
        let snapshot = Cell::new(chain.snapshot());
        Some(Site { _world: world, chain, muster, snapshot })
    }

    /// The deployment as it was at first.
    pub fn fresh(&self) -> Live {
        assert!(self.chain.revert(self.snapshot.get()));
        self.snapshot.set(self.chain.snapshot());
        let chain = self.chain.clone();
        let mut live = Live { chain, muster: self.muster, mirror: HashMap::new(), rich: BTreeSet::new(), calls: 0 };
        live.mirror = live.storage();
        live
    }
}

/// A state of a deployment to come back to.
pub struct Mark {
    snapshot: u64,
    mirror: HashMap<U256, U256>,
    rich: BTreeSet<Address>,
}

/// The deployment in use.
pub struct Live {
    chain: Chain,
    muster: Account,
    /// The storage as the native code has changed it.
    mirror: HashMap<U256, U256>,
    rich: BTreeSet<Address>,
    /// Calls made.
    pub calls: u64,
}

impl Live {
    /// Sends a transaction from anyone, with the ether that it takes.
    pub fn send(&mut self, from: Address, value: u128, data: Vec<u8>) -> Mined {
        if self.rich.insert(from) {
            self.chain.set_balance(from.into(), U256::from(WEALTH));
        }
        let request = TxRequest {
            from: Some(from.into()),
            to: Some(TxKind::Call(self.muster)),
            value: Some(U256::from(value)),
            input: Bytes::from(data).into(),
            ..TxRequest::default()
        };
        self.chain.send(request).expect("the node takes it")
    }

    /// Has somebody make a call that must be accepted.
    pub fn done(&mut self, from: Address, value: u128, call: impl SolCall) -> Done {
        let call = Call::new(from, call).paying(value);
        self.call(&call).unwrap_or_else(|error| panic!("{call:?}: {error:?}"))
    }

    /// Has somebody make a call that must be refused; gives the error's name.
    pub fn refused(&mut self, from: Address, value: u128, call: impl SolCall) -> String {
        self.call(&Call::new(from, call).paying(value)).expect_err("must be refused").name
    }

    /// Joins with 400 tokens and an RTX 4090 of 24 GiB; gives the node's number.
    pub fn join(&mut self, n: u64) -> u32 {
        let value = 400 * TOKEN + self.group_fee("RTX 4090", 24);
        self.done(who(n), value, joinCall { gpuName: "RTX 4090".into(), vram: 24, models: vec![] });
        self.view(nodeOfCall { who: who(n).into() })
    }

    /// Creates a task and has it drawn until it starts: its id, the place of its group (0: it has none) and its nodes.
    pub fn started(&mut self, fee: u128, spec: IMuster::TaskSpec) -> (u64, u32, Vec<u32>) {
        let mut done = self.done(who(50), fee, createTaskCall { spec });
        let id = self.view(overviewCall {}).tasks;
        let of = |event: &E| match event {
            E::TaskStarted(t) if t.id == id => Some((id, 0, vec![t.node])),
            E::GroupFormed(g) if g.id == id => Some((id, g.group, g.nodes.clone())),
            _ => None,
        };
        loop {
            match done.events.iter().find_map(of) {
                Some(started) => return started,
                None => done = self.done(who(50), 0, dispatchCall { count: 1 }),
            }
        }
    }

    /// Changes a parameter, or proposes that and waits until it can take effect.
    pub fn set(&mut self, name: &str, value: u64) {
        let (which, value) = (parameter(name), U256::from(value));
        if PARAMETERS[which as usize].delayed() {
            self.done(OWNER, 0, proposeParameterCall { parameter: which, value });
            self.pass(1, UPGRADE_DELAY.into());
            self.done(OWNER, 0, acceptParameterCall { parameter: which });
        } else {
            self.done(OWNER, 0, setParameterCall { parameter: which, value });
        }
    }

    /// The state as it is, to come back to.
    pub fn mark(&self) -> Mark {
        Mark { snapshot: self.chain.snapshot(), mirror: self.mirror.clone(), rich: self.rich.clone() }
    }

    /// Goes back to a state, which can be done again.
    pub fn back(&mut self, mark: &mut Mark) {
        assert!(self.chain.revert(mark.snapshot));
        mark.snapshot = self.chain.snapshot();
        (self.mirror, self.rich) = (mark.mirror.clone(), mark.rich.clone());
    }

    /// Calls without a transaction, in the next block, where [`System::clock`] is: the answer, or the refusal.
    pub fn ask(&self, from: Address, value: u128, data: Vec<u8>) -> Result<Bytes, Bytes> {
        self.chain.set_balance(from.into(), U256::from(WEALTH));
        let request = TxRequest {
            from: Some(from.into()),
            to: Some(TxKind::Call(self.muster)),
            value: Some(U256::from(value)),
            input: Bytes::from(data).into(),
            ..TxRequest::default()
        };
        let outcome = self.chain.call_pending(&request).expect("the node runs it");
        match outcome.status {
            Status::Success => Ok(outcome.output),
            _ => Err(outcome.output),
        }
    }

    /// Calls a view.
    pub fn view<C: SolCall>(&self, call: C) -> C::Return {
        let answer = self.ask([1; 20], 0, call.abi_encode()).unwrap_or_else(|error| panic!("{error}"));
        C::abi_decode_returns(&answer).expect("what the interface says")
    }

    /// The cost of joining with a GPU beside the stake, in wei.
    pub fn group_fee(&self, gpu: &str, vram: u16) -> u128 {
        let known = self.ask([1; 20], 0, gpuGroupCall { name: gpu.into(), vram }.abi_encode()).is_ok();
        let fee: u128 = self.view(parameterCall { which: parameter("groupFee") }).value.to();
        if known {
            0
        } else {
            fee * STAKE_UNIT as u128
        }
    }

    /// All words of the contract's storage.
    pub fn storage(&self) -> HashMap<U256, U256> {
        self.chain.state().storage_iter(self.muster).collect()
    }

    fn overlay(&self) -> Overlay {
        Overlay {
            state: self.chain.state(),
            chain: self.chain.clone(),
            muster: self.muster,
            writes: HashMap::new(),
            logs: Vec::new(),
            sender: [0; 20],
            value: 0,
            now: self.chain.next_timestamp(),
            reads: Cell::new(0),
            program: Program::Any,
            paid: 0,
            block: self.chain.head().header.number + 1,
        }
    }

    /// Every log so far, as `eth_getLogs` gives it, with the time of its block.
    pub fn all_logs(&self) -> Vec<Logged> {
        let logs = self.chain.logs(&Filter::new().from_block(0u64).address(self.muster)).expect("all blocks are kept");
        let time = |number: Option<u64>| self.chain.block(BlockId::number(number.unwrap())).expect("kept").header.timestamp;
        logs.iter().map(|l| (decode(l.topics(), &l.data().data), time(l.block_number))).collect()
    }
}

impl System for Live {
    type Host = Overlay;

    fn clock(&self) -> (u64, u64) {
        (self.chain.next_timestamp(), self.chain.head().header.number + 1)
    }

    /// Not as many blocks as it takes for a hash to be forgotten: that would take longer than all else.
    fn pass(&mut self, blocks: u64, seconds: u64) {
        let blocks = blocks.min(300);
        self.chain.increase_time(seconds).expect("within range");
        self.chain.mine(blocks, 0).expect("not many");
    }

    /// Runs the native code on a copy of the storage, then the transaction. Both must give the same: storage, logs, and
    /// where the call is refused, the same bytes.
    fn call(&mut self, call: &Call) -> Result<Done, Refused> {
        self.calls += 1;
        let mut twin = Overlay { sender: call.from, value: call.value, ..self.overlay() };
        let native = programs::answer(&mut twin, &call.data);
        let (had, caller_had) =
            (self.balance(), self.rich.contains(&call.from).then(|| self.chain.state().balance(call.from.into())));
        let treasury_had = self.chain.state().balance(TREASURY.into());
        let mined = self.send(call.from, call.value, call.data.clone());
        let state = self.chain.state();
        let has = self.balance();
        let events = twin.logs.iter().map(|l| decode(&l.topics, &l.data)).collect();
        let cost = U256::from(mined.outcome.gas_used) * U256::from(self.chain.config().base_fee);
        let caller_had = caller_had.unwrap_or(U256::from(WEALTH));
        match native {
            Ok(said) => {
                assert!(mined.ok(), "accepted natively, refused by the programs: {:?}", mined.outcome);
                assert_eq!(mined.outcome.output[..], said[..], "answered");
                let logs = mined.outcome.logs.iter().map(|l| Log { topics: l.topics().to_vec(), data: l.data.data.to_vec() });
                let logs: Vec<_> = logs.collect();
                assert_eq!(logs, twin.logs, "logs");
                for (slot, word) in twin.writes {
                    assert_eq!(state.storage(self.muster, slot), word, "slot {slot:#x}");
                    self.mirror.insert(slot, word);
                }
                let paid = had + call.value - has;
                assert_eq!(paid, twin.paid, "sent away");
                let (caller, treasury) = if call.is::<sweepTreasuryCall>() { (0, paid) } else { (paid, 0) };
                assert_eq!(state.balance(call.from.into()) + cost + U256::from(call.value), caller_had + U256::from(caller));
                assert_eq!(state.balance(TREASURY.into()), treasury_had + U256::from(treasury));
                Ok(Done { paid, events })
            }
            Err(refusal) => {
                assert_eq!(mined.outcome.output[..], refusal.clone().into_bytes()[..], "refused");
                assert!(!mined.ok() && mined.outcome.logs.is_empty());
                assert_eq!(has, had, "a refused call keeps nothing");
                assert_eq!(state.balance(call.from.into()) + cost, caller_had);
                let name = format!("{:?}", refusal.decode()).split('(').next().unwrap_or("").to_string();
                Err(Refused { name, events })
            }
        }
    }

    /// Half of the time by a contract that destroys itself in the contract's favour, else as a block's coinbase would be paid.
    fn force(&mut self, wei: u128) {
        let had = self.balance();
        if wei.is_multiple_of(2) {
            let code = [&[0x73][..], self.muster.as_slice(), &[0xff]].concat();
            if self.rich.insert(OWNER) {
                self.chain.set_balance(OWNER.into(), U256::from(WEALTH));
            }
            let request = TxRequest {
                from: Some(OWNER.into()),
                to: Some(TxKind::Create),
                value: Some(U256::from(wei)),
                input: Bytes::from(code).into(),
                ..TxRequest::default()
            };
            assert!(self.chain.send(request).expect("the node takes it").ok());
        } else {
            self.chain.set_balance(self.muster, U256::from(had + wei));
        }
        assert_eq!(self.balance(), had + wei);
    }

    fn balance(&mut self) -> u128 {
        self.chain.state().balance(self.muster).to()
    }

    fn answer<C: SolCall>(&mut self, call: C) -> C::Return {
        self.view(call)
    }

    fn read<T>(&mut self, f: impl FnOnce(&Network<Overlay>) -> T) -> T {
        f(&Network::open(&mut self.overlay()).expect("initialised"))
    }

    fn birth(&mut self) -> Vec<Logged> {
        self.all_logs()
    }

    /// All of storage equals the native code's, and the compiled views answer as the native ones.
    fn inspect(&mut self) {
        let there = self.storage();
        self.mirror.retain(|_, word| !word.is_zero());
        assert!(there == self.mirror, "storage holds {} words, natively {}", there.len(), self.mirror.len());

        let mut overlay = self.overlay();
        let mut same = |data: Vec<u8>| {
            let said = self.ask([1; 20], 0, data.clone()).map_err(|refusal| refusal.to_vec());
            let native = programs::answer(&mut overlay, &data).map_err(|refusal| refusal.into_bytes());
            assert_eq!(said.map(|answer| answer.to_vec()), native, "{:?}", IMusterCalls::abi_decode(&data));
        };
        same(overviewCall {}.abi_encode());
        same(nodesCall { from: 1, count: 64 }.abi_encode());
        same(pendingTasksCall { from: 0, count: 256 }.abi_encode());
        same(excludedNodesCall { from: 0, count: 256 }.abi_encode());
        for group in [0, 24, 40, 1 << 16 | 24, 1 << 16 | 40] {
            same(queuedTasksCall { queue: group, from: 0, count: 256 }.abi_encode());
            same(idleNodesCall { group, class: 0, from: 0, count: 256 }.abi_encode());
            same(gpuNameCall { group }.abi_encode());
            same(gpuGroupsCall { vram: group as u16 }.abi_encode());
            same(gpuGroupCall { name: "RTX 4090".into(), vram: group as u16 }.abi_encode());
        }
        for model in 1..4 {
            same(holdersCall { model, from: 0, count: 256 }.abi_encode());
        }
        if let Some(who) = self.rich.iter().nth(self.calls as usize % self.rich.len().max(1)) {
            same(accountCall { who: (*who).into() }.abi_encode());
            same(nodeOfCall { who: (*who).into() }.abi_encode());
        }
        let spec = IMuster::TaskSpec { kind: 1, units: 1, models: vec![1, 2, 3], ..IMuster::TaskSpec::default() };
        for number in 1..=3 {
            same(nodeCall { number }.abi_encode());
            same(weightOfCall { number, spec: spec.clone() }.abi_encode());
            same(bestQueuedCall { number }.abi_encode());
            same(runningTaskCall { number }.abi_encode());
        }
        let which = (self.calls % 30) as u8;
        same(parameterCall { which }.abi_encode());
        same(proposedParameterCall { which }.abi_encode());
        same(estimateCall { kind: which % 4, units: 1 + which as u32 }.abi_encode());
        same(facetsCall {}.abi_encode());
    }
}

/// The contract's storage with changes on top that no chain sees.
pub struct Overlay {
    state: State,
    chain: Chain,
    muster: Account,
    writes: HashMap<U256, U256>,
    logs: Vec<Log>,
    paid: u128,
    sender: Address,
    value: u128,
    now: u64,
    block: u64,
    reads: Cell<u32>,
    program: Program,
}

impl Host for Overlay {
    fn load(&self, slot: Word) -> Word {
        self.reads.set(self.reads.get() + 1);
        let slot = U256::from_limbs(slot.0);
        let word = self.writes.get(&slot).copied();
        Word(word.unwrap_or_else(|| self.state.storage(self.muster, slot)).into_limbs())
    }
    fn store(&mut self, slot: Word, word: Word) {
        self.writes.insert(U256::from_limbs(slot.0), U256::from_limbs(word.0));
    }
    fn mapping(&self, map: u8, key: Word) -> Word {
        solidity_slot(map, key)
    }
    fn keccak(&self, bytes: &[u8]) -> [u8; 32] {
        alloy_primitives::keccak256(bytes).0
    }
    fn sender(&self) -> Address {
        self.sender
    }
    fn here(&self) -> Address {
        self.muster.into_array()
    }
    fn value(&self) -> Word {
        Word([self.value as u64, (self.value >> 64) as u64, 0, 0])
    }
    fn now(&self) -> u64 {
        self.now
    }
    fn block(&self) -> u64 {
        self.block
    }
    fn block_hash(&self, number: u64) -> Option<[u8; 32]> {
        let known = number < self.block && number + HISTORY >= self.block;
        known.then(|| self.chain.block(BlockId::number(number)).expect("kept").hash.0)
    }
    fn log(&mut self, topics: usize, bytes: &[u8]) {
        self.logs.push(Log::new(topics, bytes));
    }
    fn pay(&mut self, _: Address, wei: u128) -> bool {
        self.paid += wei;
        true
    }
    fn reads(&self) -> u32 {
        self.reads.get()
    }
    fn charge(&self, words: u32) {
        self.reads.set(self.reads.get() + words);
    }
    fn has_code(&self, at: Address) -> bool {
        !self.state.code(at.into()).is_empty()
    }
    fn signed(&self) -> bool {
        !self.has_code(self.sender())
    }
    fn program(&self) -> Program {
        self.program
    }
    fn enter(&mut self, program: Program) -> Program {
        std::mem::replace(&mut self.program, program)
    }
    fn ask(&mut self, program: Program, call: &[u8]) -> Option<u64> {
        self.reads.set(self.reads.get() + 1);
        let asking = self.enter(program);
        let answer = muster_protocol::among::any(self, call);
        self.enter(asking);
        answer.ok().map(|out| Word::from_be_bytes(out.try_into().expect("a number")).0[0])
    }
}

/// An error's name from its encoding.
pub fn error_name(data: &[u8]) -> Option<String> {
    let error = IMusterErrors::abi_decode_validate(data).ok()?;
    Some(format!("{error:?}").split('(').next().unwrap_or("").to_string())
}
