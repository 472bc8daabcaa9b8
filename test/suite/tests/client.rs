//! The Rust client against the compiled programs: typed calls, refusals and events, on a node that answers as nodes do.

use std::time::{Duration, Instant};

use muster_client::alloy::primitives::{B256, U256};
use muster_client::alloy::providers::Provider;
use muster_client::alloy::signers::local::PrivateKeySigner;
use muster_client::{
    Account, Batch, Endpoints, Event, Events, IMuster, Muster, Reading, Reason, Refusal, Sender, Sending, Settings,
};
use muster_tests::{n, World, LEAST, STAKE_UNIT};

/// A contract and accounts that call it by the client.
struct Site {
    world: World,
    muster: Muster,
    place: tempfile::TempDir,
    start: u64,
}

impl Site {
    async fn new(parameters: &[(&str, u64)]) -> Site {
        let world = World::new(parameters).await;
        let endpoints = Endpoints::new(&[&world.base.chain.url], Settings::default()).unwrap();
        let muster = Muster::connect(endpoints, world.base.muster.address()).await.unwrap();
        let start = muster.endpoints().head().await.unwrap().number + 1;
        Site { world, muster, place: tempfile::tempdir().unwrap(), start }
    }

    /// An account with so many wei beside its gas.
    async fn account(&mut self, wei: u64) -> Account {
        let key = self.world.actor(wei).await.wallet.signer().to_bytes();
        let signer = PrivateKeySigner::from_slice(&key).unwrap();
        let sending = Sending { look_every: Duration::from_millis(20), ..Sending::default() };
        let sender = Sender::open(self.muster.endpoints().clone(), signer, self.place.path(), sending).await.unwrap();
        Account::new(self.muster.clone(), sender)
    }

    async fn join(&mut self) -> (Account, u32) {
        let fee = self.world.group_fee("NVIDIA RTX 4090", 24).await;
        let account = self.account(LEAST + fee).await;
        let call = IMuster::joinCall { gpuName: "NVIDIA RTX 4090".into(), vram: 24, models: vec![7] };
        let done = account.call(call, U256::from(LEAST + fee)).await.unwrap();
        let joined = done.events.iter().find_map(|event| match event {
            Event::NodeJoined(joined) => Some(joined.node),
            _ => None,
        });
        (account, joined.unwrap())
    }
}

fn spec() -> IMuster::TaskSpec {
    IMuster::TaskSpec {
        kind: 0,
        units: 1,
        vram: 0,
        gpu: 0,
        redundancy: 0,
        flags: 1,
        inputDigest: B256::repeat_byte(7),
        models: vec![],
    }
}

#[tokio::test]
async fn a_task_from_its_creation_to_its_fee() {
    let mut site = Site::new(&[]).await;
    let (operator, node) = site.join().await;
    let application = site.account(90_000).await;

    // A refusal comes before anything is paid, with its values.
    let paid = U256::from(1);
    let error =
        application.call(IMuster::createTaskCall { spec: IMuster::TaskSpec { vram: 80, ..spec() } }, paid).await.unwrap_err();
    assert_eq!(error.refusal(), Some(&Refusal::Known(Reason::NobodyCanRun(IMuster::NobodyCanRun { vram: 80, gpu: 0 }))));

    let done = application.call(IMuster::createTaskCall { spec: spec() }, U256::from(70_000)).await.unwrap();
    let Some(Event::TaskCreated(created)) = done.events.iter().find(|event| matches!(event, Event::TaskCreated(_))) else {
        panic!()
    };
    assert_eq!((created.creator, created.fee, &created.spec), (application.address(), 70_000, &spec()));
    let started = loop {
        let done = application.call(IMuster::dispatchCall { count: 1 }, U256::ZERO).await.unwrap();
        if let Some(Event::TaskStarted(started)) = done.events.into_iter().find(|event| matches!(event, Event::TaskStarted(_))) {
            break started;
        }
    };
    assert_eq!((started.id, started.node), (created.id, node));
    let answer = IMuster::submitCall { id: created.id, resultDigest: B256::repeat_byte(9) };
    operator.call_once(&format!("answer {}", created.id), answer.clone(), U256::ZERO).await.unwrap();
    // The same under its name is not sent again; without one it is refused.
    let again = operator.call_once(&format!("answer {}", created.id), answer.clone(), U256::ZERO).await.unwrap();
    assert!(matches!(again.events[..], [Event::TaskSucceeded(_), ..]), "{:?}", again.events);
    let refused = operator.call(answer, U256::ZERO).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(Refusal::Known(Reason::TaskNotRunning(_)))), "{refused}");

    let outcome = site.muster.read(IMuster::outcomeCall { id: created.id }).await.unwrap();
    assert_eq!((outcome.state, outcome.node, outcome.resultDigest), (2, node, B256::repeat_byte(9)));
    assert_eq!(site.muster.read(IMuster::accountCall { who: operator.address() }).await.unwrap().credit, 70_000);
    // Alloy's provider asks the same nodes.
    let held = site.muster.provider().get_balance(site.muster.address()).await.unwrap();
    assert!(held >= U256::from(LEAST + 70_000));
    let nodes = site.muster.endpoints();
    assert_eq!(nodes.balance(site.muster.address()).await.unwrap(), held);
    assert!(nodes.code(operator.address()).await.unwrap().is_empty());
    assert!(!nodes.code(site.muster.address()).await.unwrap().is_empty());
    let sent = nodes.count(operator.address()).await.unwrap();
    operator.call(IMuster::withdrawCall { to: operator.address() }, U256::ZERO).await.unwrap();
    assert_eq!(nodes.count(operator.address()).await.unwrap(), sent + 1);
    assert_eq!(site.muster.provider().get_balance(site.muster.address()).await.unwrap(), held - U256::from(70_000));
}

/// Nothing happens on the chain until the deadline is over, so its newest block is from before.
#[tokio::test]
async fn what_only_time_makes_possible_is_sent_on_a_quiet_chain() {
    let mut site = Site::new(&[]).await;
    if !site.world.travels("what_only_time_makes_possible_is_sent_on_a_quiet_chain") {
        return;
    }
    let (_, node) = site.join().await;
    let application = site.account(70_000).await;
    application.call(IMuster::createTaskCall { spec: spec() }, U256::from(70_000)).await.unwrap();
    let started = loop {
        let done = application.call(IMuster::dispatchCall { count: 1 }, U256::ZERO).await.unwrap();
        if let Some(Event::TaskStarted(started)) = done.events.into_iter().find(|event| matches!(event, Event::TaskStarted(_))) {
            break started;
        }
    };
    let expire = IMuster::expireCall { node, id: started.id };
    let refused = application.call(expire.clone(), U256::ZERO).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(Refusal::Known(Reason::DeadlineNotPassed(_)))), "{refused}");
    let chain = site.world.node.unwrap().chain();
    chain.increase_time(started.deadline + 1 - chain.head().header.timestamp).unwrap();
    site.muster.try_as(application.address(), expire.clone(), U256::ZERO).await.unwrap();
    assert!(site.muster.gas(application.address(), &expire, U256::ZERO).await.unwrap() > 21_000);
    let done = application.call(expire, U256::ZERO).await.unwrap();
    assert!(done.events.iter().any(|event| matches!(event, Event::TaskAborted(_))), "{:?}", done.events);
}

#[tokio::test]
async fn tasks_are_created_together_and_what_is_refused_is_told() {
    let mut site = Site::new(&[]).await;
    let (_, _) = site.join().await;
    let application = site.account(1_000_000).await;
    let good = (spec(), 50_000);
    let (_, alone) = application.create_tasks(std::slice::from_ref(&good), false).await.unwrap();
    assert_eq!(alone, [Ok(1)]);
    let bad = (IMuster::TaskSpec { vram: 80, ..spec() }, 60_000);
    let nobody = Refusal::Known(Reason::NobodyCanRun(IMuster::NobodyCanRun { vram: 80, gpu: 0 }));
    let some = [good.clone(), bad, (spec(), 70_000)];
    let (done, became) = application.create_tasks(&some, false).await.unwrap();
    assert_eq!(became, [Ok(2), Err(nobody), Ok(3)]);
    assert!(done.cost() > U256::ZERO);
    let credit = site.muster.read(IMuster::accountCall { who: application.address() }).await.unwrap().credit;
    assert_eq!(credit, 60_000);
    let error = application.create_tasks(&some, true).await.unwrap_err();
    let said = error.refusal().map(ToString::to_string);
    assert_eq!(said.as_deref(), Some("RefusedInBatch { place: 1, reason: NobodyCanRun { vram: 80, gpu: 0 } }"));
    let error = application.create_tasks(&vec![good; 17], true).await.unwrap_err();
    assert!(matches!(error.refusal(), Some(Refusal::Known(Reason::TooManyAtOnce(_)))), "{error}");
}

#[tokio::test]
async fn draws_that_stand_in_the_way_are_made_first() {
    let mut site = Site::new(&[("drawDelay", 64)]).await;
    if !site.world.travels("draws_that_stand_in_the_way_are_made_first") {
        return;
    }
    let (operator, _) = site.join().await;
    let application = site.account(1_000_000).await;
    for _ in 0..12 {
        application.call(IMuster::createTaskCall { spec: spec() }, U256::from(50_000)).await.unwrap();
    }
    // All are due at once, and a call makes eight at most.
    site.world.node.unwrap().chain().mine(64, 0).unwrap();
    let refused = site.muster.try_as(operator.address(), IMuster::pauseCall {}, U256::ZERO).await.err().unwrap();
    assert!(matches!(refused.refusal(), Some(Refusal::Known(Reason::DrawsDue(_)))), "{refused}");
    let done = operator.call(IMuster::pauseCall {}, U256::ZERO).await.unwrap();
    assert!(done.events.iter().any(|event| matches!(event, Event::NodePaused(_) | Event::NodePausing(_))), "{:?}", done.events);
    assert_eq!(site.muster.read(IMuster::overviewCall {}).await.unwrap().pending, 0);
}

#[tokio::test]
async fn events_come_once_and_a_word_over_websocket_wakes_their_reader() {
    let mut site = Site::new(&[]).await;
    let (operator, node) = site.join().await;
    let wake = vec![site.muster.endpoints().standing()[0].node.replace("http://", "ws://")];
    // Without a word it would look again after ten minutes.
    let reading = Reading { wake, every: Duration::from_mins(10), ..Reading::default() };
    let place = site.place.path().join("events");
    let open =
        || Events::open(site.muster.endpoints().clone(), site.muster.address(), site.start, place.clone(), reading.clone());
    let mut events = open().await.unwrap();
    let mut told = Vec::new();
    let first = events.next().await.unwrap();
    events.accept(&first).unwrap();
    let Batch::Events { events: joined, .. } = &first else { panic!("{first:?}") };
    told.extend(joined.iter().map(|logged| logged.event.clone().unwrap()));
    assert!(told.iter().any(|event| matches!(event, Event::NodeJoined(joined) if joined.node == node)));

    // One that is told nothing until something happens.
    let waiting = tokio::spawn(async move {
        let begun = Instant::now();
        let batch = events.next().await.unwrap();
        (events, batch, begun.elapsed())
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    operator.call(IMuster::pauseCall {}, U256::ZERO).await.unwrap();
    let (mut events, batch, waited) = waiting.await.unwrap();
    assert!(waited < Duration::from_mins(1), "it took {waited:?}");
    let Batch::Events { events: paused, .. } = &batch else { panic!("{batch:?}") };
    assert_eq!(
        paused.iter().map(|logged| logged.event.clone().unwrap()).collect::<Vec<_>>(),
        [Event::NodePaused(IMuster::NodePaused { node })]
    );
    // It ends before it says that it has dealt with them: they come again, and then no more.
    drop(events);
    events = open().await.unwrap();
    let again = events.poll().await.unwrap().unwrap();
    assert_eq!(again.cursor(), batch.cursor());
    events.accept(&again).unwrap();
    drop(events);
    assert!(open().await.unwrap().poll().await.unwrap().is_none());
}

#[tokio::test]
async fn every_view_is_read() {
    let mut site = Site::new(&[]).await;
    let (operator, node) = site.join().await;
    let muster = &site.muster;
    let overview = muster.read(IMuster::overviewCall {}).await.unwrap();
    assert_eq!((overview.nodesJoined, overview.stakeUnit), (1, STAKE_UNIT));
    let view = muster.read(IMuster::nodeCall { number: node }).await.unwrap();
    assert_eq!((view.operator, view.stake, view.status, &view.models[..]), (operator.address(), u128::from(LEAST), 1, &[7][..]));
    assert_eq!(muster.read(IMuster::nodesCall { from: 1, count: 64 }).await.unwrap(), std::slice::from_ref(&view));
    let weight = muster.read(IMuster::weightOfCall { number: node, spec: spec() }).await.unwrap();
    assert!(weight.eligible && weight.weight > 0);
    assert_eq!(muster.read(IMuster::gpuNameCall { group: view.gpu }).await.unwrap(), "NVIDIA RTX 4090");
    let estimate = muster.read(IMuster::estimateCall { kind: 0, units: 1 }).await.unwrap();
    assert_eq!((estimate.estimated, estimate.timeLimit), (50, 100));
    assert_eq!(muster.read(IMuster::facetAddressesCall {}).await.unwrap().len(), site.world.base.deployment.programs.len());
    assert!(muster.read(IMuster::queuesCall { from: 0, count: 256 }).await.unwrap()._1.is_empty());
    let long = muster.read(IMuster::nodesCall { from: 1, count: 65 }).await.unwrap_err();
    assert_eq!(long.refusal(), Some(&Refusal::Known(Reason::PageTooLong(IMuster::PageTooLong { count: 65, most: 64 }))));
    assert_eq!(
        site.world.view("nodeOf", &[ethers::abi::Token::Address(operator.address().0 .0.into())]).await,
        [n(u64::from(node))]
    );
}
