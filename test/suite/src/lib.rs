//! The compiled programs by ethers-rs: a Muster of its own for each test, as [`muster_fleet::world`] deploys it.

pub mod chain;
pub mod live;

use std::collections::BTreeMap;

use anyhow::Context;
use ethers::abi::{RawLog, Token};
use ethers::providers::Middleware;
use ethers::types::{Address, Bytes, TransactionReceipt, H256, U256};
use muster_devnode::Devnode;
pub use muster_fleet::world::{root, LEAST, STAKE_UNIT, UPGRADE_DELAY};

use crate::chain::{account, interface, Account, Chain, Muster, Reverted};

/// More gas than any transaction of the suite needs.
const GAS: u64 = 6_000_000;

/// A decoded event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Its values, by name.
    pub values: BTreeMap<String, Token>,
}

impl Event {
    /// A number; panics if there is none of the name.
    pub fn number(&self, name: &str) -> u128 {
        match &self.values[name] {
            Token::Uint(number) => number.as_u128(),
            other => panic!("{name} of {} is {other}", self.name),
        }
    }
}

/// A refusal, decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The error's name.
    pub name: String,
    /// Its values in declared order.
    pub values: Vec<Token>,
}

/// A chain with a Muster on it.
pub struct World {
    /// The same for the project's own library, and the deployment.
    pub base: muster_fleet::world::World,
    /// The node.
    pub chain: Chain,
    /// The contract.
    pub muster: Muster,
    /// Owner, treasury and payer.
    pub boss: Account,
    /// The embedded node; none with RPC_URL.
    pub node: Option<&'static Devnode>,
    /// Everybody that may have something in the contract.
    pub actors: Vec<Address>,
    /// Everything that was emitted.
    pub events: Vec<Event>,
}

/// An unsigned number as an argument.
pub fn n(value: impl Into<U256>) -> Token {
    Token::Uint(value.into())
}

/// A list of numbers as an argument.
pub fn list(values: &[u64]) -> Token {
    Token::Array(values.iter().map(|&v| n(v)).collect())
}

/// A task's specification.
#[derive(Clone, Debug)]
pub struct Spec {
    /// As in the interface.
    pub kind: u8,
    /// As in the interface.
    pub units: u32,
    /// As in the interface.
    pub vram: u16,
    /// As in the interface.
    pub gpu: u32,
    /// As in the interface.
    pub redundancy: u8,
    /// As in the interface.
    pub flags: u32,
    /// As in the interface.
    pub models: Vec<u64>,
}

impl Default for Spec {
    /// One image on any node: estimated at 50 seconds, with a time limit of 100.
    fn default() -> Self {
        Self { kind: 0, units: 1, vram: 0, gpu: 0, redundancy: 0, flags: 0, models: Vec::new() }
    }
}

impl Spec {
    /// As an argument.
    pub fn token(&self) -> Token {
        Token::Tuple(vec![
            n(self.kind),
            n(self.units),
            n(self.vram),
            n(self.gpu),
            n(self.redundancy),
            n(self.flags),
            Token::FixedBytes(vec![7; 32]),
            list(&self.models),
        ])
    }
}

impl World {
    /// A fresh deployment, with parameters that differ from the defaults as `name=value`.
    pub async fn new(parameters: &[(&str, u64)]) -> Self {
        let base = muster_fleet::world::World::new(parameters).await;
        let chain = Chain::connect(&base.chain.url).await.expect("a node");
        let boss = Account::new(&chain, &base.key.to_bytes()[..]).expect("a key");
        let muster = Muster { address: account(base.muster.address()) };
        let (node, actors) = (base.node, vec![boss.address()]);
        Self { base, chain, muster, boss, node, actors, events: Vec::new() }
    }

    /// Whether time can be moved; says so if not.
    pub fn travels(&self, test: &str) -> bool {
        self.base.travels(test)
    }

    /// A new account with a little ether and `stake` more.
    pub async fn actor(&mut self, stake: u64) -> Account {
        let key = self.base.actor(stake).await;
        let account = Account::new(&self.chain, &key.to_bytes()[..]).expect("a key");
        self.actors.push(account.address());
        account
    }

    /// Where a program is that was deployed.
    pub fn program(&self, name: &str) -> Address {
        account(self.base.deployment.programs[name].address)
    }

    /// Sends a transaction that must succeed; gives its events.
    pub async fn send(&mut self, by: &mut Account, function: &str, arguments: &[Token], value: u128) -> Vec<Event> {
        let value = U256::from(value);
        let receipt = self
            .muster
            .send(&self.chain, by, function, arguments, value, Some(GAS))
            .await
            .with_context(|| format!("{function} {arguments:?}"))
            .unwrap_or_else(|error| panic!("{error:#}"));
        self.decode(&receipt)
    }

    /// The same by the owner.
    pub async fn rule(&mut self, function: &str, arguments: &[Token]) -> Vec<Event> {
        let receipt = self
            .muster
            .send(&self.chain, &mut self.boss, function, arguments, U256::zero(), Some(GAS))
            .await
            .unwrap_or_else(|error| panic!("{function}: {error:#}"));
        self.decode(&receipt)
    }

    /// Every log of a receipt as an event of the interface; panics at one that is none.
    pub fn decode(&mut self, receipt: &TransactionReceipt) -> Vec<Event> {
        let own = receipt.logs.iter().filter(|log| log.address == self.muster.address);
        let events: Vec<_> = own
            .map(|log| {
                let event = interface()
                    .events()
                    .find(|event| event.signature() == log.topics[0])
                    .unwrap_or_else(|| panic!("a log that is no event of the interface: {log:?}"));
                let raw = RawLog { topics: log.topics.clone(), data: log.data.to_vec() };
                let values = event.parse_log(raw).unwrap_or_else(|error| panic!("{}: {error}", event.name));
                let values = values.params.into_iter().map(|value| (value.name, value.value)).collect();
                Event { name: event.name.clone(), values }
            })
            .collect();
        self.events.extend(events.iter().cloned());
        events
    }

    /// Makes a call that must be refused; gives the error.
    pub async fn refused(&self, by: Address, function: &str, arguments: &[Token], value: impl Into<U256>) -> Refused {
        let data = self.muster.encode(function, arguments).unwrap();
        self.refused_raw(by, data, value.into()).await
    }

    /// The same with calldata as it is.
    pub async fn refused_raw(&self, by: Address, data: Bytes, value: U256) -> Refused {
        let answer = self.chain.call(Some(by), self.muster.address, value, data.clone()).await;
        let error = answer.err().unwrap_or_else(|| panic!("{data} was not refused"));
        let reverted = error.downcast_ref::<Reverted>().unwrap_or_else(|| panic!("{error:#}"));
        let selector = reverted.data.get(..4).unwrap_or_else(|| panic!("{data}: refused without a reason"));
        let error = interface().errors().find(|error| error.signature()[..4] == *selector);
        let error = error.unwrap_or_else(|| panic!("{} is no error of the interface", reverted.data));
        Refused { name: error.name.clone(), values: error.decode(&reverted.data[4..]).expect("its values") }
    }

    /// Reads.
    pub async fn view(&self, function: &str, arguments: &[Token]) -> Vec<Token> {
        self.muster.call(&self.chain, function, arguments).await.unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// A field of a struct that a view returns, by name.
    pub async fn field(&self, function: &str, arguments: &[Token], field: &str) -> U256 {
        let value = self.token(function, arguments, field).await;
        match value {
            Token::Uint(number) => number,
            Token::Bool(yes) => u8::from(yes).into(),
            other => panic!("{field} of {function} is {other}"),
        }
    }

    /// The same for any type.
    pub async fn token(&self, function: &str, arguments: &[Token], field: &str) -> Token {
        let json: serde_json::Value = serde_json::from_str(include_str!("../../../abi/IMuster.json")).unwrap();
        let entry = json.as_array().unwrap().iter().find(|e| e["name"] == function && e["type"] == "function").unwrap();
        let parts = entry["outputs"][0]["components"].as_array().unwrap();
        let at = parts.iter().position(|part| part["name"] == field).unwrap_or_else(|| panic!("no {field}"));
        self.view(function, arguments).await.remove(0).into_tuple().unwrap().remove(at)
    }

    /// The cost of joining with a GPU beside the stake, in wei.
    pub async fn group_fee(&self, gpu: &str, vram: u16) -> u64 {
        let group = self.muster.call(&self.chain, "gpuGroup", &[Token::String(gpu.into()), n(vram)]).await;
        let parameter = muster_protocol::parameters::number_of("groupFee").unwrap();
        let stake_units = self.view("parameter", &[n(parameter)]).await.remove(0).into_uint().unwrap().as_u64();
        if group.is_ok() {
            0
        } else {
            stake_units * self.base.deployment.stake_unit
        }
    }

    /// Joins a new node, and pays for its GPU's name where that is new; gives its account and number.
    pub async fn join(&mut self, stake: u64, gpu: &str, vram: u16, models: &[u64]) -> (Account, u64) {
        let value = stake + self.group_fee(gpu, vram).await;
        let mut account = self.actor(value).await;
        let arguments = [Token::String(gpu.into()), n(vram), list(models)];
        let events = self.send(&mut account, "join", &arguments, value.into()).await;
        let number = one(&events, "NodeJoined").number("node") as u64;
        (account, number)
    }

    /// Creates a task and has it drawn until it is placed; gives its id and the events, repeated draws left out.
    pub async fn create(&mut self, by: &mut Account, spec: &Spec, fee: u128) -> (u64, Vec<Event>) {
        let mut events = self.send(by, "createTask", &[spec.token()], fee).await;
        let id = one(&events, "TaskCreated").number("id") as u64;
        // A draw among nodes of low merit may stay undecided and be made again, from another block's hash.
        for _ in 0..200 {
            events.extend(self.rule("dispatch", &[n(16)]).await);
            let settled = |event: &Event| {
                matches!(event.name.as_str(), "TaskStarted" | "TaskQueued" | "TaskAborted") && event.number("id") == id.into()
            };
            if events.iter().any(settled) {
                events.retain(|event| event.name != "TaskRedrawn");
                return (id, events);
            }
        }
        panic!("task {id} was neither started nor queued: {:?}", names(&events))
    }

    /// Moves time, and mines a block there.
    pub fn travel(&self, seconds: u64) {
        self.base.travel(seconds);
    }

    /// Time of the next block, on the embedded node.
    pub fn now(&self) -> u64 {
        self.node.expect("only tests that may travel do").chain().next_timestamp()
    }

    /// A storage word of the contract.
    pub async fn word(&self, slot: U256) -> [u8; 32] {
        let mut bytes = [0; 32];
        slot.to_big_endian(&mut bytes);
        self.chain.provider.get_storage_at(self.muster.address, H256(bytes), None).await.unwrap().0
    }

    /// Checks that everything in the contract belongs to somebody: stakes, unbonding stakes, escrow, credit and
    /// treasury make up its balance. Escrow is taken from the logs, the rest from the views.
    pub async fn conserved(&self) {
        let mut sum = self.field("overview", &[], "treasuryBalance").await;
        for who in &self.actors {
            let who = [Token::Address(*who)];
            sum += self.field("account", &who, "credit").await + self.field("account", &who, "unbonding").await;
        }
        let issued = self.field("overview", &[], "nodesIssued").await.as_u64();
        for node in 1..=issued {
            sum += self.field("node", &[n(node)], "stake").await;
        }
        let mut escrow = 0i128;
        let mut fees = BTreeMap::new();
        for event in &self.events {
            escrow += match event.name.as_str() {
                "TaskCreated" => {
                    fees.insert(event.number("id"), event.number("fee"));
                    event.number("fee") as i128
                }
                "TaskSucceeded" => -(event.number("paid") as i128),
                // The part that is not refunded is the treasury's.
                "TaskErrorReported" => -(fees[&event.number("id")] as i128),
                "TaskAborted" => -((event.number("refund") + event.number("startFee")) as i128),
                _ => 0,
            };
        }
        assert!(escrow >= 0, "more was paid out of escrow than went in");
        let balance = self.chain.provider.get_balance(self.muster.address, None).await.unwrap();
        assert_eq!(sum + U256::from(escrow as u128), balance, "stakes, unbonding, escrow, credit, treasury");
    }
}

/// The only event of a name.
pub fn one<'a>(events: &'a [Event], name: &str) -> &'a Event {
    let found: Vec<_> = events.iter().filter(|event| event.name == name).collect();
    assert_eq!(found.len(), 1, "{name} among {:?}", names(events));
    found[0]
}

/// The events' names in order.
pub fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}
