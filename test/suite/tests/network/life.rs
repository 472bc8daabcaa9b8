//! Nodes and tasks from their beginning to their end.

use ethers::abi::Token;
use ethers::providers::Middleware;
use ethers::types::Address;
use muster_tests::*;

use crate::{near, recovered, WAD};

const GPU: &str = "NVIDIA RTX 4090";

#[tokio::test]
async fn a_stake_comes_back_whole_after_unbonding() {
    let mut w = World::new(&[]).await;
    if !w.travels("a_stake_comes_back_whole_after_unbonding") {
        return;
    }
    let (mut a, node) = w.join(2 * LEAST, GPU, 24, &[11, 12]).await;
    assert_eq!(w.token("node", &[n(node)], "operator").await, Token::Address(a.address()));
    assert_eq!(w.field("node", &[n(node)], "status").await, 1.into());
    assert_eq!(w.field("node", &[n(node)], "stake").await, (2 * LEAST).into());
    assert_eq!(w.field("node", &[n(node)], "longTerm").await, (WAD / 2).into());
    assert_eq!(w.token("node", &[n(node)], "models").await, list(&[11, 12]));
    w.send(&mut a, "raiseStake", &[], 5 * u128::from(STAKE_UNIT)).await;
    let whole = 2 * LEAST + 5 * STAKE_UNIT;
    assert_eq!(w.field("overview", &[], "largestStake").await, whole.into());

    let quit = w.send(&mut a, "quit", &[], 0).await;
    let release = w.now() + 86_400;
    assert_eq!(one(&quit, "NodeQuit").number("stake"), whole.into());
    assert_eq!(one(&quit, "NodeQuit").number("release"), release.into());
    assert_eq!(w.field("overview", &[], "largestStake").await, 0.into());
    assert_eq!(w.field("overview", &[], "nodesJoined").await, 0.into());
    w.conserved().await;

    let to = Address::random();
    let early = w.refused(a.address(), "withdraw", &[Token::Address(to)], 0).await;
    assert_eq!(early.name, "NothingToWithdraw");
    w.travel(86_399);
    assert_eq!(w.refused(a.address(), "withdraw", &[Token::Address(to)], 0).await.name, "NothingToWithdraw");
    w.travel(1);
    let paid = w.send(&mut a, "withdraw", &[Token::Address(to)], 0).await;
    assert_eq!(one(&paid, "Withdrawn").number("stake"), whole.into());
    assert_eq!(w.chain.provider.get_balance(to, None).await.unwrap(), whole.into());
    let names = w.field("overview", &[], "treasuryBalance").await;
    assert_eq!(names, (LEAST / 100).into(), "what the GPU's name cost");
    assert_eq!(w.chain.provider.get_balance(w.muster.address, None).await.unwrap(), names);

    // The number stays with the operator.
    let value = u128::from(LEAST + w.group_fee("Another", 16).await);
    let again = w.send(&mut a, "join", &[Token::String("Another".into()), n(16u16), list(&[])], value).await;
    assert_eq!(one(&again, "NodeJoined").number("node"), node.into());
    assert_eq!(w.token("node", &[n(node)], "models").await, list(&[]));
    w.conserved().await;
}

#[tokio::test]
async fn only_eligible_nodes_are_chosen() {
    let mut w = World::new(&[("drawDelay", 0)]).await;
    let (mut small, s) = w.join(100 * LEAST, "Small", 16, &[]).await;
    let (_, m) = w.join(LEAST, "Middle", 24, &[]).await;
    let (mut large, l) = w.join(LEAST, "Large", 80, &[]).await;
    let mut app = w.actor(0).await;

    // VRAM: only one has enough; busy, it gets no second task.
    let (first, events) = w.create(&mut app, &Spec { vram: 25, ..Spec::default() }, 1_000).await;
    assert_eq!(one(&events, "TaskStarted").number("node"), l.into());
    let (second, events) = w.create(&mut app, &Spec { vram: 25, ..Spec::default() }, 1_000).await;
    assert_eq!(names(&events), ["TaskCreated", "TaskQueued"]);

    // Required GPU: the exact group, although others have more VRAM or stake; busy, it is not replaced by them.
    let group = w.view("gpuGroup", &[Token::String("Middle".into()), n(24u16)]).await.remove(0).into_uint().unwrap();
    let required = Spec { gpu: group.as_u32(), ..Spec::default() };
    let (_, events) = w.create(&mut app, &required, 1_000).await;
    assert_eq!(one(&events, "TaskStarted").number("node"), m.into());
    let (_, events) = w.create(&mut app, &required, 1_000).await;
    assert_eq!(names(&events), ["TaskCreated", "TaskQueued"]);

    // Paused: not chosen; it takes a task that it can run on resuming, and only that.
    w.send(&mut small, "pause", &[], 0).await;
    let (third, events) = w.create(&mut app, &Spec::default(), 900).await;
    assert_eq!(names(&events), ["TaskCreated", "TaskQueued"]);
    let events = w.send(&mut small, "resume", &[], 0).await;
    assert_eq!(one(&events, "TaskStarted").number("id"), third.into());
    assert_eq!(one(&events, "TaskStarted").number("node"), s.into());

    // A freed node takes the queued task that waits for it.
    let events = w.send(&mut large, "submit", &[n(first), Token::FixedBytes(vec![1; 32])], 0).await;
    assert_eq!(one(&events, "TaskSucceeded").number("paid"), 1_000);
    assert_eq!(one(&events, "TaskStarted").number("id"), second.into());
    assert_eq!(w.field("account", &[Token::Address(large.address())], "credit").await, 1_000.into());

    // Pausing and quitting while busy wait for the task's end.
    let events = w.send(&mut large, "pause", &[], 0).await;
    assert_eq!(names(&events), ["NodePausing"]);
    let events = w.send(&mut large, "submit", &[n(second), Token::FixedBytes(vec![1; 32])], 0).await;
    assert_eq!(names(&events), ["TaskSucceeded", "NodePaused"]);
    let events = w.send(&mut small, "quit", &[], 0).await;
    assert_eq!(names(&events), ["NodeQuitting"]);
    let events = w.send(&mut small, "submit", &[n(third), Token::FixedBytes(vec![1; 32])], 0).await;
    assert_eq!(names(&events), ["TaskSucceeded", "NodeQuit"]);
    w.conserved().await;
}

#[tokio::test]
async fn a_delayed_draw_waits_for_a_later_block() {
    let mut w = World::new(&[]).await;
    let (mut node, number) = w.join(LEAST, GPU, 24, &[]).await;
    let mut app = w.actor(0).await;
    let created = w.send(&mut app, "createTask", &[Spec::default().token()], 5_000).await;
    assert_eq!(names(&created), ["TaskCreated"], "drawn in a later transaction");
    assert_eq!(w.field("overview", &[], "pending").await, 1.into());
    let pending = w.view("pendingTasks", &[n(0), n(9)]).await.remove(0).into_array().unwrap();
    assert_eq!(pending.len(), 1);
    let id = one(&created, "TaskCreated").number("id");
    let ticket = u64::from(1u8) << 32;
    assert_eq!(w.refused(app.address(), "cancel", &[n(id), n(ticket)], 0).await.name, "TaskNotQueued");

    // Anyone's next transaction serves it, before its own work.
    let events = w.send(&mut node, "raiseStake", &[], STAKE_UNIT.into()).await;
    assert_eq!(names(&events), ["TaskStarted", "StakeRaised"]);
    assert_eq!(one(&events, "TaskStarted").number("id"), id);
    assert_eq!(w.field("runningTask", &[n(number)], "fee").await, 5_000.into());
    w.conserved().await;
}

#[tokio::test]
async fn a_hash_that_the_precompile_has_forgotten_is_still_known() {
    let mut w = World::new(&[]).await;
    if !w.travels("a_hash_that_the_precompile_has_forgotten_is_still_known") {
        return;
    }
    w.join(LEAST, GPU, 24, &[]).await;
    let mut app = w.actor(0).await;
    w.send(&mut app, "createTask", &[Spec::default().token()], 5_000).await;
    // It knows 256 blocks; the history contract more than a thousand times as many.
    w.node.unwrap().chain().mine(300, 0).unwrap();
    assert_eq!(names(&w.rule("dispatch", &[n(1)]).await), ["TaskStarted"]);
    w.conserved().await;
}

#[tokio::test]
async fn reliability_falls_recovers_excludes_and_returns() {
    let mut w = World::new(&[("drawDelay", 0), ("boostPool", 0)]).await;
    if !w.travels("reliability_falls_recovers_excludes_and_returns") {
        return;
    }
    let (mut a, node) = w.join(LEAST, GPU, 24, &[]).await;
    let mut app = w.actor(0).await;
    let mut helper = w.actor(0).await;
    let (mut h, mut at) = (WAD, w.now());
    let until = loop {
        let (id, events) = w.create(&mut app, &Spec::default(), 10_000).await;
        let deadline = one(&events, "TaskStarted").number("deadline");
        assert_eq!(deadline, (w.now() + 100).into());
        // At the deadline itself an answer still counts, and nobody can expire it.
        w.travel(100);
        assert_eq!(w.refused(helper.address(), "expire", &[n(node), n(id)], 0).await.name, "DeadlineNotPassed");
        w.travel(1);
        let late = w.refused(a.address(), "submit", &[n(id), Token::FixedBytes(vec![1; 32])], 0).await;
        assert_eq!(late.name, "DeadlinePassed");
        let before = w.field("account", &[Token::Address(helper.address())], "credit").await;
        let events = w.send(&mut helper, "expire", &[n(node), n(id)], 0).await;
        let aborted = one(&events, "TaskAborted");
        assert_eq!((aborted.number("reason"), aborted.number("refund"), aborted.number("startFee")), (0, 9_800, 200));
        let after = w.field("account", &[Token::Address(helper.address())], "credit").await;
        assert_eq!(after - before, 200.into());
        // First recovery to now, then the penalty.
        h = (u128::from(recovered(h, w.now() - at, 1_800)) * 3 / 10) as u64;
        at = w.now();
        near(w.field("node", &[n(node)], "reliability").await, h, 3);
        if let Some(excluded) = events.iter().find(|event| event.name == "NodeExcluded") {
            break excluded.number("until") as u64;
        }
        assert!(h >= WAD / 10);
    };
    assert!(h < WAD / 10);
    assert!(recovered(h, until - at, 1_800) >= WAD / 10 && recovered(h, until - at - 1, 1_800) < WAD / 10);
    assert_eq!(w.field("node", &[n(node)], "excluded").await, 1.into());

    let (id, events) = w.create(&mut app, &Spec::default(), 10_000).await;
    assert_eq!(names(&events), ["TaskCreated", "TaskQueued"], "an excluded node is never chosen, even alone");
    w.travel(until - w.now() - 1);
    assert_eq!(w.refused(helper.address(), "poke", &[n(node)], 0).await.name, "NothingToPoke");
    w.travel(1);
    let events = w.send(&mut app, "createTask", &[Spec::default().token()], 10_000).await;
    assert_eq!(names(&events)[..2], ["NodeReadmitted", "TaskStarted"], "any call re-admits it, and it takes what waits");
    assert_eq!(one(&events, "TaskStarted").number("id"), id.into());

    h = recovered(h, w.now() - at, 1_800);
    at = w.now();
    near(w.field("node", &[n(node)], "reliability").await, h, 4);
    w.travel(60);
    w.send(&mut a, "submit", &[n(id), Token::FixedBytes(vec![1; 32])], 0).await;
    h = recovered(h, w.now() - at, 1_800) + WAD * 15 / 100;
    at = w.now();
    near(w.field("node", &[n(node)], "reliability").await, h, 6);
    w.travel(3_600);
    near(w.field("node", &[n(node)], "reliability").await, recovered(h, w.now() - at, 1_800), 8);
    w.conserved().await;
}

#[tokio::test]
async fn the_queue_serves_the_best_and_evicts_the_lowest() {
    let mut w = World::new(&[("drawDelay", 0), ("alphaMilli", 3_000)]).await;
    let (mut a, node) = w.join(LEAST, GPU, 24, &[]).await;
    let mut app = w.actor(0).await;
    let digest = Token::FixedBytes(vec![1; 32]);
    let (running, _) = w.create(&mut app, &Spec::default(), 100_000).await;
    let mut queued = Vec::new();
    for fee in [20_000, 40_000, 40_000] {
        let (id, events) = w.create(&mut app, &Spec::default(), fee).await;
        queued.push((id, one(&events, "TaskQueued").number("ticket")));
    }
    assert_eq!(w.field("overview", &[], "queueCapacity").await, 3.into());

    // Full: the newcomer is the lowest; of equal values the newest goes; else the lowest queued goes.
    let (_, events) = w.create(&mut app, &Spec::default(), 10_000).await;
    assert_eq!(names(&events), ["TaskCreated", "TaskAborted"]);
    assert_eq!(one(&events, "TaskAborted").number("reason"), 2);
    assert_eq!(one(&events, "TaskAborted").number("refund"), 10_000);
    let (_, events) = w.create(&mut app, &Spec::default(), 20_000).await;
    assert_eq!(names(&events), ["TaskCreated", "TaskAborted"]);
    // A value is a fee per second: 60,000 for 150 s is no more than 20,000 for 50 s.
    let (_, events) = w.create(&mut app, &Spec { units: 6, ..Spec::default() }, 60_000).await;
    assert_eq!(names(&events), ["TaskCreated", "TaskAborted"]);
    let (best, events) = w.create(&mut app, &Spec::default(), 50_000).await;
    assert_eq!(one(&events, "TaskAborted").number("id"), queued[0].0.into());
    assert_eq!(one(&events, "TaskAborted").number("refund"), 20_000);
    assert_eq!(one(&events, "TaskQueued").number("id"), best.into());
    let owed = w.field("account", &[Token::Address(app.address())], "credit").await;
    assert_eq!(owed, (10_000 + 20_000 + 60_000 + 20_000).into());

    // Cancelling costs the start fee, which is the treasury's; only the creator can.
    let (id, ticket) = queued[2];
    let stranger = w.refused(a.address(), "cancel", &[n(id), n(ticket)], 0).await;
    assert_eq!(stranger.name, "NotTheCreator");
    let (third, events) = {
        let events = w.send(&mut a, "submit", &[n(running), digest.clone()], 0).await;
        (one(&events, "TaskStarted").number("id"), events)
    };
    assert_eq!(third, best.into(), "{:?}", names(&events));
    let (last, events) = w.create(&mut app, &Spec::default(), 40_000).await;
    let last_ticket = one(&events, "TaskQueued").number("ticket");
    let events = w.send(&mut app, "cancel", &[n(last), n(last_ticket)], 0).await;
    let aborted = one(&events, "TaskAborted");
    assert_eq!((aborted.number("reason"), aborted.number("refund"), aborted.number("startFee")), (1, 39_200, 800));
    assert_eq!(w.field("overview", &[], "treasuryBalance").await, (LEAST / 100 + 800).into());

    // Equal values in the order in which they came.
    for (expected, _) in &queued[1..] {
        let best = w.field("bestQueued", &[n(node)], "id").await;
        let current = w.field("node", &[n(node)], "task").await;
        let events = w.send(&mut a, "submit", &[n(current), digest.clone()], 0).await;
        assert_eq!(one(&events, "TaskStarted").number("id"), (*expected).into());
        assert_eq!(best, (*expected).into());
    }
    w.conserved().await;
}

#[tokio::test]
async fn a_reported_error_costs_the_start_fee_and_hands_out_nothing() {
    let mut w = World::new(&[("drawDelay", 0)]).await;
    if !w.travels("a_reported_error_costs_the_start_fee_and_hands_out_nothing") {
        return;
    }
    let (mut a, node) = w.join(LEAST, GPU, 24, &[]).await;
    let mut app = w.actor(0).await;
    let (first, _) = w.create(&mut app, &Spec::default(), 7_000).await;
    let (second, _) = w.create(&mut app, &Spec::default(), 7_000).await;
    let events = w.send(&mut a, "reportError", &[n(first), n(42)], 0).await;
    assert_eq!(names(&events), ["TaskErrorReported", "NodeExcluded"]);
    assert_eq!((events[0].number("code"), events[0].number("refund")), (42, 7_000 - 140));
    assert_eq!(w.field("node", &[n(node)], "status").await, 1.into());
    assert_eq!(w.field("node", &[n(node)], "reliability").await, WAD.into());
    // It rests for the time that the task would have taken.
    assert_eq!(w.refused(app.address(), "poke", &[n(node)], 0).await.name, "NothingToPoke");
    w.travel(50);
    let events = w.send(&mut app, "poke", &[n(node)], 0).await;
    assert_eq!(one(&events, "TaskStarted").number("id"), second.into());
    w.conserved().await;
}

#[tokio::test]
async fn holders_come_first_and_scarce_models_are_asked_for() {
    let mut w = World::new(&[("drawDelay", 0)]).await;
    let (mut holder, h) = w.join(LEAST, GPU, 24, &[77]).await;
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(w.join(50 * LEAST, GPU, 24, &[78]).await.1);
    }
    let mut app = w.actor(0).await;
    let spec = Spec { models: vec![77], ..Spec::default() };
    let (id, events) = w.create(&mut app, &spec, 9_000).await;
    assert_eq!(one(&events, "TaskStarted").number("node"), h.into(), "the only holder, however small its stake");
    let asked: Vec<_> = events.iter().filter(|event| event.name == "DownloadRequested").collect();
    assert!(!asked.is_empty());
    for (i, event) in asked.iter().enumerate() {
        assert_eq!((event.number("model"), event.number("task")), (77, id.into()));
        assert!(others.contains(&(event.number("node") as u64)), "{event:?}");
        assert!(asked[..i].iter().all(|e| e.number("node") != event.number("node")), "asked once");
    }
    // The holder is busy: any node takes the next, and is asked for the model.
    let (_, events) = w.create(&mut app, &spec, 9_000).await;
    let started = one(&events, "TaskStarted").number("node");
    assert!(others.contains(&(started as u64)));
    assert!(events.iter().any(|e| e.name == "DownloadRequested" && e.number("node") == started));
    w.send(&mut holder, "submit", &[n(id), Token::FixedBytes(vec![1; 32])], 0).await;
    assert_eq!(w.token("node", &[n(h)], "inUse").await, list(&[77]));
    w.conserved().await;
}
