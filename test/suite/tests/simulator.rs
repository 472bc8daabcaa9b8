//! The same truth: one workload and one sequence of entropy, through the simulator and through the compiled programs on
//! the devnode.
//!
//! The simulator's engine decides the acts of nodes and applications. Each of its calls goes first to the devnode, as a transaction in a
//! block of its own, and then, with that block's number, time and predecessors' hashes, to the contract inside the simulator. After every
//! call the outcome, every log and every written word are compared bit by bit: assignments, H, queue, credit. From time to time the whole
//! storage and the answers of the compiled views are compared, too.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::{SolCall, SolInterface};
use muster_cli::chain::{wallet, Chain};
use muster_cli::{build, deploy};
use muster_core::id::{NodeId, QueueId};
use muster_core::word::Word;
use muster_devnode::chain::{Clock, Mined, NITRO_DEV_KEY};
use muster_devnode::{Config, Devnode, TxRequest};
use muster_protocol::flow::create::REPLICATED;
use muster_protocol::native::{Hashes, Memory};
use muster_protocol::parameters::number_of;
use muster_protocol::store::node::NodeHandle;
use muster_protocol::IMuster::{self, *};
use muster_protocol::{programs, Host, Network, Refusal};
use muster_sim::network::engine::Engine;
use muster_sim::network::ledger::{submit, Ledger, Mirror, Party, BEGINNING, LEAST_STAKE, STAKE_UNIT};
use muster_sim::network::workload::{fleet, Profile, Source};
use muster_tests::root;

/// More gas than any call needs.
const GAS: u64 = 8_000_000;
/// Calls between two comparisons of everything.
const PERIOD: u64 = 250;
/// Calls between two stretches of empty blocks, after which draws are due.
const STRETCH: u64 = 60;
/// Blocks between a task's creation and its draw.
const DELAY: u64 = 60;
/// Parameters that can only be proposed.
const LATER: [(&str, u64); 3] = [("scorePool", 5), ("slashImages", 1), ("revealWindow", 3_600)];

/// Counts of the comparisons.
#[derive(Default)]
struct Tally {
    calls: u64,
    /// Refusals by their errors' names.
    refused: BTreeMap<String, u64>,
    words: u64,
    whole: u64,
    deposits: U256,
    withdrawn: U256,
    /// Logs by their events' names.
    events: BTreeMap<&'static str, u64>,
    /// Queues seen.
    queues: Vec<u32>,
    /// Tasks that take three nodes.
    replicated: BTreeSet<u64>,
}

impl Tally {
    fn of(&self, event: &str) -> u64 {
        self.events.get(event).copied().unwrap_or_default()
    }

    /// All whose names begin so.
    fn all(&self, beginning: &str) -> u64 {
        self.events.iter().filter(|(event, _)| event.starts_with(beginning)).map(|(_, count)| count).sum()
    }
}

/// The contract on the devnode.
struct Twin {
    chain: muster_devnode::Chain,
    muster: Address,
    mined: Option<Mined>,
    tally: Rc<RefCell<Tally>>,
}

fn word(value: U256) -> Word {
    Word(value.into_limbs())
}

impl Twin {
    /// Asserts that a view answers the same here and there.
    fn same(&self, host: &mut Memory, view: impl SolCall) {
        let data = view.abi_encode();
        let request =
            TxRequest { to: Some(TxKind::Call(self.muster)), input: Bytes::from(data.clone()).into(), ..TxRequest::default() };
        let there = self.chain.call(&request).expect("a view").output;
        let here = programs::answer(host, &data).unwrap_or_else(Refusal::into_bytes);
        assert_eq!(here[..], there[..], "{:?}", IMusterCalls::abi_decode(&data));
    }

    /// Compares all words, and the compiled views with the same functions here.
    fn compare_all(&self, host: &mut Memory) {
        let state = self.chain.state();
        let there: BTreeMap<U256, U256> = state.storage_iter(self.muster).filter(|(_, v)| !v.is_zero()).collect();
        let here: BTreeMap<U256, U256> =
            host.words().map(|(slot, w)| (U256::from_limbs(slot.0), U256::from_limbs(w.0))).collect();
        assert_eq!(here, there, "all words");

        host.value = muster_core::word::Word::ZERO;
        let issued = Network::open(host).unwrap().head().issued;
        for from in (1..=issued).step_by(64) {
            // H among them, recovered to now.
            self.same(host, nodesCall { from, count: 64 });
        }
        for number in 1..=issued {
            self.same(host, bestQueuedCall { number });
        }
        let queues = self.tally.borrow().queues.clone();
        for queue in queues {
            self.same(host, queuedTasksCall { queue, from: 0, count: 256 });
        }
        for number in 1..=issued {
            self.same(host, runningTaskCall { number });
        }
        self.same(host, excludedNodesCall { from: 0, count: 256 });
        self.same(host, groupsCall { from: 1, count: 256 });
        self.same(host, validatorDrawsCall { from: 0, count: 256 });
        self.same(host, overviewCall {});
        self.tally.borrow_mut().whole += 1;
    }
}

impl Mirror for Twin {
    fn call(&mut self, host: &mut Memory, now: u64, by: Party, value: u128, calldata: &[u8]) -> (u64, u64) {
        let from = Address::from(by.address());
        let head = self.chain.head().header.timestamp;
        self.chain.set_next_timestamp(now.max(head)).unwrap();
        // With nine due, a call that makes eight and may not come between finds one left.
        let waiting = Network::open(host).unwrap().ring().len();
        if self.tally.borrow().calls.is_multiple_of(STRETCH) || waiting > 8 {
            self.chain.mine(DELAY, 0).unwrap();
        }
        let Hashes::Given(hashes) = &mut host.hashes else { panic!("the simulator makes its own hashes up") };
        let last = self.chain.head().header.number;
        for number in (0..=last).rev() {
            if hashes.contains_key(&number) {
                break;
            }
            hashes.insert(number, self.chain.block(number.into()).expect("blocks are kept").hash.0);
        }
        let request = TxRequest {
            from: Some(from),
            to: Some(TxKind::Call(self.muster)),
            value: Some(U256::from(value)),
            input: Bytes::copy_from_slice(calldata).into(),
            gas: Some(GAS),
            ..TxRequest::default()
        };
        if self.chain.state().balance(from) < U256::from(value) + U256::from(10).pow(U256::from(18)) {
            self.chain.set_balance(from, U256::from(10).pow(U256::from(30)));
        }
        let mined = self.chain.send(request).expect("the devnode takes it");
        let header = &mined.block.header;
        let (number, time) = (header.number, header.timestamp);
        if mined.ok() {
            self.tally.borrow_mut().deposits += U256::from(value);
        }
        self.mined = Some(mined);
        (number, time)
    }

    fn compare(&mut self, host: &mut Memory, calldata: &[u8], outcome: &Result<Vec<u8>, Refusal>) {
        let call = IMusterCalls::abi_decode_validate(calldata).expect("a function of the interface");
        let mined = self.mined.take().expect("it was called before");
        match outcome {
            Ok(answer) => {
                assert!(mined.ok(), "only the chain refuses {call:?}: {}", mined.outcome.output);
                assert_eq!(answer[..], mined.outcome.output[..], "{call:?}");
            }
            Err(refusal) => {
                assert!(!mined.ok(), "only the simulator refuses {call:?}: {refusal:?}");
                assert_eq!(refusal.clone().into_bytes(), mined.outcome.output.to_vec(), "{call:?}");
                let why = format!("{refusal:?}");
                let name = why.split(['(', ' ']).next().unwrap_or_default();
                *self.tally.borrow_mut().refused.entry(name.into()).or_default() += 1;
            }
        }
        let here = &host.logs;
        let there: Vec<_> = mined.outcome.logs.iter().filter(|log| log.address == self.muster).collect();
        assert_eq!(here.len(), there.len(), "logs of {call:?}");
        for (a, b) in here.iter().zip(&there) {
            assert_eq!(a.topics, b.data.topics(), "{call:?}");
            assert_eq!(a.data, b.data.data.to_vec(), "{call:?}");
            use alloy_sol_types::SolEventInterface;
            let event = IMuster::IMusterEvents::decode_raw_log(&a.topics, &a.data).expect("an event of the interface");
            let mut tally = self.tally.borrow_mut();
            let name = match event {
                IMuster::IMusterEvents::TaskAborted(aborted) => [
                    "TaskAborted: timeout",
                    "TaskAborted: cancelled",
                    "TaskAborted: evicted",
                    "TaskAborted: waited",
                    "TaskAborted: slashed",
                ][aborted.reason as usize],
                IMuster::IMusterEvents::TaskQueued(queued) => {
                    let queue = (queued.ticket >> 32) as u32;
                    if !tally.queues.contains(&queue) {
                        tally.queues.push(queue);
                    }
                    ["TaskQueued: single", "TaskQueued: mixed", "TaskQueued: alike"][usize::from(QueueId(queue).grade())]
                }
                IMuster::IMusterEvents::Withdrawn(paid) => {
                    tally.withdrawn += U256::from(paid.credit) + U256::from(paid.stake);
                    "Withdrawn"
                }
                IMuster::IMusterEvents::TaskCreated(created) => {
                    if created.spec.redundancy == REPLICATED {
                        tally.replicated.insert(created.id);
                    }
                    ["TaskCreated: single", "TaskCreated: sampled", "TaskCreated: replicated"][created.spec.redundancy as usize]
                }
                IMuster::IMusterEvents::TaskRedrawn(_) => "TaskRedrawn",
                IMuster::IMusterEvents::NodeWaits(waits) if waits.until > 0 => "NodeWaits: for others",
                IMuster::IMusterEvents::NodeWaits(_) => "NodeWaits: reserved",
                IMuster::IMusterEvents::TaskStarted(_) => "TaskStarted",
                IMuster::IMusterEvents::TaskSucceeded(_) => "TaskSucceeded",
                IMuster::IMusterEvents::TaskErrorReported(_) => "TaskErrorReported",
                IMuster::IMusterEvents::NodeExcluded(_) => "NodeExcluded",
                IMuster::IMusterEvents::NodeReadmitted(_) => "NodeReadmitted",
                IMuster::IMusterEvents::NodeJoined(_) => "NodeJoined",
                IMuster::IMusterEvents::NodePaused(_) => "NodePaused",
                IMuster::IMusterEvents::NodeResumed(_) => "NodeResumed",
                IMuster::IMusterEvents::NodeQuit(_) => "NodeQuit",
                IMuster::IMusterEvents::StakeRaised(_) => "StakeRaised",
                IMuster::IMusterEvents::DownloadRequested(_) => "DownloadRequested",
                IMuster::IMusterEvents::ModelAdded(_) => "ModelAdded",
                IMuster::IMusterEvents::ModelRemoved(_) => "ModelRemoved",
                IMuster::IMusterEvents::AnswerCommitted(e) if e.group == 0 => "AnswerCommitted: first",
                IMuster::IMusterEvents::AnswerCommitted(_) => "AnswerCommitted: in a group",
                IMuster::IMusterEvents::AnswerRevealed(e) if e.group == 0 => "AnswerRevealed: not sampled",
                IMuster::IMusterEvents::AnswerRevealed(_) => "AnswerRevealed: in a group",
                IMuster::IMusterEvents::TaskSampled(_) => "TaskSampled",
                IMuster::IMusterEvents::GroupFormed(e) if !tally.replicated.contains(&e.id) => "GroupFormed: around a first",
                IMuster::IMusterEvents::GroupFormed(e) if e.scored => "GroupFormed: of three, scored",
                IMuster::IMusterEvents::GroupFormed(_) => "GroupFormed: of three, not scored",
                IMuster::IMusterEvents::MemberCalled(_) => "MemberCalled",
                IMuster::IMusterEvents::MemberStarted(e) if tally.replicated.contains(&e.id) => "MemberStarted: of three",
                IMuster::IMusterEvents::MemberStarted(_) => "MemberStarted: validator",
                IMuster::IMusterEvents::MemberTimedOut(_) => "MemberTimedOut",
                IMuster::IMusterEvents::MemberJudged(_) => "MemberJudged",
                IMuster::IMusterEvents::GroupSettled(e) => match (tally.replicated.contains(&e.id), e.outcome) {
                    (false, 0) => "GroupSettled: agreed",
                    (false, 1) => "GroupSettled: alone",
                    (false, 2) => "GroupSettled: differing",
                    (false, _) => "GroupSettled: unanswered",
                    (true, 0) => "GroupSettled: three, agreed",
                    (true, 2) => "GroupSettled: three, differing",
                    (true, _) => "GroupSettled: three, unanswered",
                },
                IMuster::IMusterEvents::NodeSlashed(_) => "NodeSlashed",
                IMuster::IMusterEvents::ScoreRecorded(_) => "ScoreRecorded",
                IMuster::IMusterEvents::GpuGroupListed(_) => "GpuGroupListed",
                _ => "others",
            };
            *tally.events.entry(name).or_default() += 1;
        }
        let state = self.chain.state();
        let written: Vec<Word> = host.written().collect();
        for slot in &written {
            let there = word(state.storage(self.muster, U256::from_limbs(slot.0)));
            assert_eq!(host.load(*slot), there, "slot {slot:?} after {call:?}");
        }
        let calls = {
            let mut tally = self.tally.borrow_mut();
            tally.words += written.len() as u64;
            tally.calls += 1;
            tally.calls
        };
        if calls % PERIOD == 0 {
            self.compare_all(host);
        }
    }
}

fn withdraw(to: Party) -> withdrawCall {
    withdrawCall { to: to.address().into() }
}

/// Calls that nobody has asked for, most of them to be refused.
fn meddle(ledger: &mut Ledger, round: u64, nodes: u32) {
    let issued = ledger.head().issued.max(1);
    let node = 1 + (round / 7) as u32 % issued;
    let id = NodeHandle::load(&ledger.host, NodeId(node)).order(&ledger.host).id.0;
    let group = 1 + (round / 7) as u32 % 3;
    let reveal = |group| revealCall { id, group, node, kind: 0, value: [7; 32].into(), salt: [7; 32].into() };
    let _ = match round % 7 {
        0 => ledger.call(Party::Keeper, 0, &pokeCall { node }).is_ok(),
        1 => ledger.call(Party::Keeper, 0, &expireCall { node, id }).is_ok(),
        2 => ledger.call(Party::Keeper, 0, &cancelCall { id, ticket: u64::from(node) << 32 }).is_ok(),
        3 => ledger.call(Party::Keeper, 0, &validateCall { id, node }).is_ok(),
        4 => ledger.call(Party::Keeper, 0, &settleCall { id, group }).is_ok(),
        5 => ledger.call(Party::Keeper, 0, &reveal(if round.is_multiple_of(2) { 0 } else { group })).is_ok(),
        _ => ledger.call(Party::Operator(node % nodes), 0, &submit(id + 1)).is_ok(),
    };
}

/// Sends from an account that is no node's and no application's; panics if it is refused.
fn send(chain: &muster_devnode::Chain, muster: Address, from: Address, call: &impl SolCall) {
    chain.set_balance(from, U256::from(10).pow(U256::from(30)));
    let input = Bytes::from(call.abi_encode());
    let request = TxRequest {
        from: Some(from),
        to: Some(TxKind::Call(muster)),
        input: input.into(),
        gas: Some(GAS),
        ..TxRequest::default()
    };
    let mined = chain.send(request).expect("the devnode takes it");
    assert!(mined.ok(), "{}", mined.outcome.output);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_simulator_and_the_chain_do_the_same() {
    if std::env::var("RPC_URL").is_ok_and(|url| !url.is_empty()) {
        println!("the_simulator_and_the_chain_do_the_same: skipped, because it sets the time of every block");
        return;
    }
    let mut config = Config::default();
    // Parameters that reach into stakes need a week before they take effect.
    const WEEK: u32 = 7 * 86_400;
    config.chain.clock = Clock::Manual(BEGINNING - u64::from(WEEK) - 3_600);
    let node = Devnode::start(config).expect("the embedded node starts");
    let rpc = Chain::connect(&node.url()).await.unwrap();
    let boss = rpc.account(wallet(NITRO_DEV_KEY).unwrap()).await.unwrap();
    let (manifest, programs) = build::load(&root()).expect("script/build has run");
    let own = boss.address();
    let config = deploy::Config {
        owner: own,
        treasury: own,
        stake_unit: STAKE_UNIT,
        minimum_stake: u128::from(LEAST_STAKE) * u128::from(STAKE_UNIT),
        upgrade_delay: WEEK,
        minimum_price: None,
        // A short queue, so that it overflows, and few downloads, so that most calls are about tasks; more validation than by default.
        parameters: [("alphaMilli", 400u64), ("drawDelay", DELAY), ("scarce", 2), ("spread", 3), ("sampleBps", 3_000)]
            .into_iter()
            .chain(LATER)
            .map(|(name, value)| (name.to_string(), U256::from(value)))
            .collect(),
        programs,
        rustc: manifest.rustc,
        file: None,
        safe: None,
        say: |_| {},
    };
    let deployment = deploy::on(&rpc, &boss, &config).await.expect("it deploys");
    let muster = deployment.address;
    let chain = node.chain().clone();
    chain.set_next_timestamp(BEGINNING - 60).unwrap();
    let owner = Address::from(Party::Owner.address());
    for (name, _) in LATER {
        send(&chain, muster, owner, &acceptParameterCall { parameter: number_of(name).unwrap() });
    }
    // The contract's owner in the simulator lists GPU groups.
    send(&chain, muster, own, &transferOwnershipCall { newOwner: owner });
    send(&chain, muster, owner, &acceptOwnershipCall {});

    // Both begin with the same words.
    let mut host = Memory::like_a_chain();
    for (slot, value) in chain.state().storage_iter(muster) {
        host.store(word(slot), word(value));
    }
    host.now = BEGINNING;
    let tally = Rc::new(RefCell::new(Tally::default()));
    let twin = Twin { chain: chain.clone(), muster, mined: None, tally: tally.clone() };
    let ledger = Ledger::mirrored(host, Box::new(twin));

    let profile = Profile {
        nodes: 30,
        tasks: 1_200,
        load: 500,
        grouped: 250,
        sampled: 500,
        counted_once: false,
        named: true,
        price: 1,
        mix: [70, 150, 70, 200, 70, 70, 70],
        even: true,
        outages: (3_000, 1_500),
        attack: None,
        cancels: 150,
        errors: 20_000,
        churn: true,
    };
    let seed = 1;
    let nodes = fleet(&profile, seed);
    let count = nodes.len() as u32;
    let source = Source::made_up(&profile, &nodes, seed);
    let mut engine = Engine::new(ledger, nodes, source, seed, None);
    let mut steps = 0;
    while engine.step() {
        steps += 1;
        if steps % 7 == 0 {
            meddle(engine.ledger(), steps / 7, count);
        }
        if Network::open(&mut engine.ledger().host).unwrap().ring().len() > 8 {
            // Refused, because it finds a draw due after the eight that it makes.
            let _ = engine.ledger().call(Party::Operator(steps as u32 % count), 0, &reportDownloadedCall { models: vec![1] });
        }
    }
    let (report, mut ledger) = engine.finish();
    assert_eq!(report.open, 0, "every task has ended");

    // Everything owed is paid, to the wei: remaining nodes leave first.
    let now = ledger.host.now;
    for i in 0..count {
        let _ = ledger.call(Party::Operator(i), 0, &quitCall {});
    }
    ledger.set_time(now + 86_401, 0);
    for i in 0..count {
        let _ = ledger.call(Party::Operator(i), 0, &withdraw(Party::Operator(i)));
    }
    for i in 0..50 {
        let _ = ledger.call(Party::Application(i), 0, &withdraw(Party::Application(i)));
    }
    ledger.call(Party::Keeper, 0, &withdraw(Party::Keeper)).expect("start fees of what it let expire");

    use muster_protocol::store::accounts;
    let kept = [accounts::income(&ledger.host), accounts::reserve(&ledger.host), accounts::burnt(&ledger.host)];
    let tally = tally.borrow();
    let balance = chain.state().balance(muster);
    assert_eq!(tally.deposits - tally.withdrawn, balance, "what came in and was not paid out");
    assert_eq!(balance, U256::from(kept.iter().sum::<u128>()), "only the treasury's, the reserve and what is burnt are left");
    assert!(kept.iter().all(|part| *part > 0), "{kept:?}");

    println!(
        "{} calls; {} words compared after them, everything {} times; refused: {:?}; logs: {:?}",
        tally.calls, tally.words, tally.whole, tally.refused, tally.events
    );
    // Every task is accounted for, exactly: created tasks have ended in one way, and so have those that started on one node or on three.
    let (of, all) = (|event| tally.of(event), |beginning| tally.all(beginning));
    let queued = ["TaskAborted: cancelled", "TaskAborted: evicted", "TaskAborted: waited"].map(of).iter().sum::<u64>();
    let started =
        ["TaskSucceeded", "TaskErrorReported", "TaskAborted: timeout", "TaskAborted: slashed"].map(of).iter().sum::<u64>();
    let three = all("GroupSettled: three");
    assert_eq!(all("TaskCreated"), report.asked);
    assert_eq!(all("TaskCreated"), started + all("GroupSettled") + queued);
    assert_eq!(of("TaskStarted"), started + all("GroupSettled") - three);
    assert_eq!((all("GroupFormed: of three"), of("MemberStarted: of three")), (three, 3 * three));
    assert_eq!(all("GroupFormed"), all("GroupSettled"));
    // And enough of everything: half of the hundreds, a third of the tens that came when this was written, and one of rarer things. The
    // same programs give the same run; but a block's hash holds its calls' cost, so luck is another whenever the contract costs another
    // gas.
    for (event, least) in [
        ("AnswerCommitted: first", 157),
        ("AnswerCommitted: in a group", 281),
        ("AnswerRevealed: in a group", 320),
        ("AnswerRevealed: not sampled", 114),
        ("DownloadRequested", 488),
        ("GpuGroupListed", 1),
        ("GroupFormed: around a first", 28),
        ("GroupFormed: of three, not scored", 64),
        ("GroupFormed: of three, scored", 7),
        ("GroupSettled: agreed", 25),
        ("GroupSettled: alone", 1),
        ("GroupSettled: differing", 1),
        ("GroupSettled: three, agreed", 63),
        ("GroupSettled: three, differing", 6),
        ("GroupSettled: three, unanswered", 1),
        ("MemberCalled", 73),
        ("MemberJudged", 351),
        ("MemberStarted: of three", 226),
        ("MemberStarted: validator", 82),
        ("MemberTimedOut", 18),
        ("ModelAdded", 415),
        ("ModelRemoved", 328),
        ("NodeExcluded", 77),
        ("NodeJoined", 10),
        ("NodePaused", 1),
        ("NodeQuit", 10),
        ("NodeReadmitted", 103),
        ("NodeResumed", 1),
        ("NodeSlashed", 9),
        ("NodeWaits: for others", 142),
        ("NodeWaits: reserved", 207),
        ("ScoreRecorded", 139),
        ("StakeRaised", 1),
        ("TaskAborted: cancelled", 12),
        ("TaskAborted: evicted", 122),
        ("TaskAborted: timeout", 12),
        ("TaskErrorReported", 1),
        ("TaskQueued: alike", 18),
        ("TaskQueued: mixed", 122),
        ("TaskQueued: single", 302),
        ("TaskRedrawn", 182),
        ("TaskSampled", 28),
        ("TaskStarted", 383),
        ("TaskSucceeded", 319),
    ] {
        let count = of(event);
        assert!(count >= least, "the workload is to have at least {least} {event}, not {count}");
    }
    assert!(tally.refused.get("DrawsDue").is_some_and(|count| *count >= 5), "the workload is to have more draws due");
    for error in ["NothingToPoke", "DeadlineNotPassed", "TaskNotQueued", "TaskNotRunning", "NotCommitted", "GroupUnknown"] {
        assert!(tally.refused.contains_key(error), "the workload is to have a call refused with {error}");
    }
    assert!(tally.whole > 5);
}
