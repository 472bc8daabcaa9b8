//! Scores and kickout through compiled WASM, by a program that only tests put behind the router.

use std::collections::BTreeSet;

use alloy_primitives::U256;
use alloy_sol_types::{SolCall, SolEvent, SolInterface};
use ethers::abi::Token;
use muster_cli::contract::{interface, Muster};
use muster_model::system::{Call, Done, System};
use muster_model::world::{parameter, spec, who, OWNER, TOKEN};
use muster_protocol::abi::IMuster::{self, IMusterEvents as E, *};
use muster_tests::live::{recordScoresCall, Live, Site};
use muster_tests::*;

const FEE: u128 = TOKEN;

fn call(live: &mut Live, from: u64, value: u128, call: impl SolCall) -> Done {
    let call = Call::new(who(from), call).paying(value);
    live.call(&call).unwrap_or_else(|error| panic!("{call:?}: {error:?}"))
}

fn refused(live: &mut Live, from: u64, value: u128, call: impl SolCall) -> String {
    live.call(&Call::new(who(from), call).paying(value)).expect_err("must be refused").name
}

fn joining(gpu: &str, vram: u16) -> joinCall {
    joinCall { gpuName: gpu.into(), vram, models: vec![] }
}

fn join(live: &mut Live, n: u64) -> u32 {
    let value = 400 * TOKEN + live.group_fee("RTX 4090", 24);
    let done = call(live, n, value, joining("RTX 4090", 24));
    done.events.iter().find_map(|e| if let E::NodeJoined(j) = e { Some(j.node) } else { None }).expect("joined")
}

fn score(live: &mut Live, node: u32, score: u8, times: u8) -> Done {
    call(live, 9, 0, recordScoresCall { node, score, times })
}

fn node(live: &Live, number: u32) -> IMuster::NodeView {
    live.view(IMuster::nodeCall { number })
}

fn names(done: &Done) -> Vec<String> {
    done.events.iter().map(|e| format!("{e:?}").split('(').next().unwrap().to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_pool_below_the_threshold_kicks_out_for_good() {
    let Some(site) = Site::new().await else {
        return println!("a_full_pool_below_the_threshold_kicks_out_for_good: skipped, because RPC_URL names a node");
    };
    let mut live = site.fresh();
    live.call(&Call::new(OWNER, setParameterCall { parameter: parameter("drawDelay"), value: U256::ZERO })).unwrap();
    assert_eq!(parameter("drawDelay"), 3);

    // Q_long is the mean of the last fifty; QoS is Q_long / 10 x H.
    let n = join(&mut live, 1);
    assert_eq!(node(&live, n).longTerm, 500_000_000_000_000_000);
    for (given, mean) in [(10, 10.0), (5, 7.5), (2, 17.0 / 3.0), (0, 4.25)] {
        let done = score(&mut live, n, given, 1);
        assert_eq!(names(&done), ["ScoreRecorded"]);
        let view = node(&live, n);
        assert!((view.longTerm as f64 / 1e17 - mean).abs() < 1e-9);
        let weight = live.view(IMuster::weightOfCall { number: n, spec: spec(0, &[]) });
        assert!((weight.qos as f64 / 1e17 - mean).abs() < 1e-9, "H is 1");
    }
    assert_eq!(node(&live, n).scores, 4);

    // 49 of the worst do nothing; the fiftieth does. A mean of exactly 2.0 is not below 2.0.
    let n = join(&mut live, 2);
    score(&mut live, n, 2, 50);
    score(&mut live, n, 10, 50);
    score(&mut live, n, 0, 40);
    assert_eq!((node(&live, n).status, node(&live, n).scores), (1, 50), "100 over 50 scores");
    let done = score(&mut live, n, 0, 1);
    assert_eq!(names(&done), ["ScoreRecorded", "NodeKickedOut", "NodeQuit"], "the oldest score has left the pool");
    assert!(matches!(&done.events[1], E::NodeKickedOut(k) if k.node == n && k.operator.into_array() == who(2)));
    let release = System::clock(&live).0 + 86_400;
    assert!(matches!(&done.events[2], E::NodeQuit(q) if q.stake == 400 * TOKEN && q.release == release));

    let n = join(&mut live, 3);
    score(&mut live, n, 0, 49);
    assert_eq!((node(&live, n).status, node(&live, n).longTerm), (1, 0));
    score(&mut live, n, 0, 1);
    assert_eq!(node(&live, n).status, 0);

    // For good, and the stake comes back after unbonding all the same.
    for _ in 0..2 {
        assert_eq!(refused(&mut live, 2, 400 * TOKEN, joining("Another", 8)), "KickedOut");
        assert_eq!(refused(&mut live, 3, 400 * TOKEN, joining("RTX 4090", 24)), "KickedOut");
        live.pass(1, 40_000);
    }
    assert_eq!(refused(&mut live, 2, 0, withdrawCall { to: who(2).into() }), "NothingToWithdraw");
    live.pass(1, 6_400);
    assert_eq!(call(&mut live, 2, 0, withdrawCall { to: who(2).into() }).paid, 400 * TOKEN);
    assert_eq!(call(&mut live, 3, 0, withdrawCall { to: who(3).into() }).paid, 400 * TOKEN);
    assert_eq!(refused(&mut live, 2, 400 * TOKEN, joining("RTX 4090", 24)), "KickedOut");
    assert!(live.view(IMuster::accountCall { who: who(2).into() }).kickedOut);

    // While busy it waits for the task's end, whatever else was asked of the node; the task is paid.
    call(&mut live, 1, 0, quitCall {});
    let asked = [(4, None), (5, Some(IMusterCalls::pause(pauseCall {}))), (6, Some(IMusterCalls::quit(quitCall {})))];
    for (operator, asked) in asked {
        let n = join(&mut live, operator);
        let mut done = call(&mut live, 50, FEE, createTaskCall { spec: spec(0, &[]) });
        while !names(&done).contains(&"TaskStarted".to_string()) {
            done = call(&mut live, 50, 0, dispatchCall { count: 1 });
        }
        let id = node(&live, n).task;
        if let Some(asked) = asked {
            live.call(&Call { from: who(operator), value: 0, data: asked.abi_encode() }).unwrap();
        }
        assert_eq!(names(&score(&mut live, n, 1, 49)), ["ScoreRecorded"; 49]);
        assert_eq!(names(&score(&mut live, n, 1, 1)), ["ScoreRecorded"]);
        assert_eq!(node(&live, n).status, 6, "PendingKickout");
        assert_eq!(refused(&mut live, operator, 0, quitCall {}), "WrongStatus");
        let done = call(&mut live, operator, 0, submitCall { id, resultDigest: [9; 32].into() });
        assert_eq!(names(&done), ["TaskSucceeded", "NodeKickedOut", "NodeQuit"]);
        assert_eq!(call(&mut live, operator, 0, withdrawCall { to: who(operator).into() }).paid, FEE, "the stake unbonds");
        assert_eq!(refused(&mut live, operator, 400 * TOKEN, joining("RTX 4090", 24)), "KickedOut");
    }
    // Paused: at once.
    let n = join(&mut live, 7);
    call(&mut live, 7, 0, pauseCall {});
    let done = score(&mut live, n, 0, 50);
    assert_eq!(names(&done)[49..], ["ScoreRecorded", "NodeKickedOut", "NodeQuit"]);
    live.inspect();
}

/// A deployment answers what the interface declares and nothing else, and nobody can have a score recorded but by a judgement.
#[tokio::test]
async fn no_deployed_selector_records_scores() {
    let mut w = World::new(&[]).await;
    let facets = w.view("facets", &[]).await.remove(0).into_array().unwrap();
    let mut answered = BTreeSet::new();
    for facet in facets {
        let [_, Token::Array(selectors)] = &facet.into_tuple().unwrap()[..] else { panic!() };
        for selector in selectors {
            let Token::FixedBytes(selector) = selector else { panic!() };
            answered.insert(<[u8; 4]>::try_from(&selector[..]).unwrap());
        }
    }
    let declared = interface().functions().filter(|f| f.name != "initialise");
    assert_eq!(answered, declared.map(|f| f.short_signature()).collect());
    assert!(!answered.contains(&recordScoresCall::SELECTOR));
    let data = recordScoresCall { node: 1, score: 0, times: 1 }.abi_encode();
    let programs = w.deployment.programs.clone();
    assert_eq!(programs.keys().collect::<Vec<_>>(), ["admin", "calls", "groups", "lens", "nodes", "router", "tasks"]);
    for address in programs.values().map(|p| p.address) {
        w.muster = Muster { address };
        let refused = w.refused_raw(w.boss.address(), data.clone().into(), 0.into()).await;
        assert_eq!(refused.name, "UnknownFunction", "{address:?}");
    }
    // The topic of the event that tells of every score is in the program that judges, and in no other.
    let holds = |file: &str| {
        let wasm = std::fs::read(root().join("build").join(file)).unwrap();
        wasm.windows(32).any(|bytes| bytes == IMuster::ScoreRecorded::SIGNATURE_HASH.0)
    };
    assert!(holds("tests/scorer.wasm"));
    for program in programs.keys() {
        assert_eq!(holds(&format!("{program}.wasm")), program == "groups", "{program}");
    }
}
