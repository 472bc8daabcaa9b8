//! One story in which every event of the interface happens and decodes.

use std::collections::BTreeSet;

use ethers::abi::Token;
use ethers::providers::Middleware;
use ethers::types::{Address, H256};
use muster_model::drive::{events_of, VALIDATED_NODES};
use muster_tests::chain::interface;
use muster_tests::*;

/// Events of validation that take none: the owner lists a GPU group, and an application says how its groups are chosen.
const UNVALIDATED: [&str; 2] = ["GpuGroupListed", "ProfileSet"];

/// Events that this story leaves out: they take validations, of which the tests of groups and of the model tell through the same
/// programs.
fn out_of_reach() -> impl Iterator<Item = &'static str> {
    events_of("validation").filter(|event| !UNVALIDATED.contains(event)).chain(VALIDATED_NODES)
}

#[tokio::test]
async fn every_event_is_seen_and_decodes() {
    let mut w = World::new(&[]).await;
    if !w.travels("every_event_is_seen_and_decodes") {
        return;
    }
    let digest = Token::FixedBytes(vec![9; 32]);
    let installed = H256(w.base.deployment.installed_in.unwrap().0);
    let receipt = w.chain.provider.get_transaction_receipt(installed).await.unwrap().unwrap();
    let events = w.decode(&receipt);
    assert_eq!(one(&events, "Initialised").number("minimumStake"), LEAST.into());
    let count = |name: &str| events.iter().filter(|event| event.name == name).count();
    let Token::Array(cuts) = &one(&events, "DiamondCut").values["cuts"] else { panic!("a list") };
    let told = cuts.iter().map(|cut| match &cut.clone().into_tuple().unwrap()[..] {
        [_, _, Token::Array(selectors)] => selectors.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(told.sum::<usize>(), interface().functions().count() - 1, "every function but one has a program");
    assert_eq!(count("ParameterChanged"), muster_protocol::parameters::PARAMETERS.len());

    let (mut a, node) = w.join(LEAST, "NVIDIA A100", 80, &[1, 2]).await;
    let (mut b, _) = w.join(LEAST, "NVIDIA A100", 80, &[]).await;
    let mut app = w.actor(0).await;
    w.send(&mut a, "raiseStake", &[], STAKE_UNIT.into()).await;
    w.send(&mut a, "reportDownloaded", &[list(&[3])], 0).await;
    w.send(&mut a, "reportRemoved", &[list(&[2])], 0).await;
    w.send(&mut app, "purge", &[n(2), n(0)], 0).await;
    w.send(&mut b, "pause", &[], 0).await;
    w.send(&mut app, "nameModel", &[Token::String("a model".into())], 0).await;
    w.send(&mut a, "setWorker", &[Token::Address(app.address())], 0).await;
    w.send(&mut app, "acceptWork", &[n(node)], 0).await;
    w.send(&mut app, "leaveWork", &[], 0).await;
    w.send(&mut app, "setStores", &[Token::String("https://a.example/inputs".into())], 0).await;

    let profile = [1, 3, 9, 2, 0, 0, 0, 300].map(n);
    w.send(&mut app, "setProfile", &[Token::Tuple(profile.to_vec())], 0).await;
    w.send(&mut app, "createTask", &[Spec { models: vec![1, 4], ..Spec::default() }.token()], 10_000).await;
    w.rule("dispatch", &[n(1)]).await;
    let wrong = Spec { kind: 3, ..Spec::default() }.token();
    w.send(&mut app, "createTasks", &[Token::Array(vec![wrong]), list(&[7]), Token::Bool(false)], 7).await;
    assert_eq!(one(&w.events, "TaskRefused").number("fee"), 7u32.into());
    w.send(&mut a, "pause", &[], 0).await;
    w.send(&mut a, "submit", &[n(1), digest.clone()], 0).await;
    let paid = one(&w.events, "TaskSucceeded");
    assert_eq!(paid.values["resultDigest"], digest);
    w.send(&mut a, "resume", &[], 0).await;

    let (id, _) = w.create(&mut app, &Spec::default(), 10_000).await;
    w.send(&mut a, "reportError", &[n(id), n(3)], 0).await;
    while !w.events.iter().any(|event| event.name == "NodeExcluded") {
        let (id, _) = w.create(&mut app, &Spec::default(), 10_000).await;
        w.travel(101);
        w.send(&mut app, "expire", &[n(node), n(id)], 0).await;
    }
    let (id, events) = w.create(&mut app, &Spec::default(), 10_000).await;
    let ticket = one(&events, "TaskQueued").number("ticket");
    w.send(&mut app, "cancel", &[n(id), n(ticket)], 0).await;
    w.travel(200);
    w.send(&mut app, "poke", &[n(node)], 0).await;
    // A draw of a node whose H is low stays undecided now and then. Answers alone would raise H until none does.
    for answers in [true, false].into_iter().cycle() {
        let (id, _) = w.create(&mut app, &Spec::default(), 10_000).await;
        if answers {
            w.send(&mut a, "submit", &[n(id), digest.clone()], 0).await;
        } else {
            w.travel(101);
            let events = w.send(&mut app, "expire", &[n(node), n(id)], 0).await;
            if events.iter().any(|event| event.name == "NodeExcluded") {
                w.travel(200);
                w.send(&mut app, "poke", &[n(node)], 0).await;
            }
        }
        if w.events.iter().any(|event| event.name == "TaskRedrawn") {
            break;
        }
    }
    let (id, _) = w.create(&mut app, &Spec::default(), 10_000).await;
    w.send(&mut a, "quit", &[], 0).await;
    w.send(&mut a, "submit", &[n(id), digest], 0).await;
    let to = [Token::Address(a.address())];
    w.send(&mut a, "withdraw", &to, 0).await;
    // Stake that has waited long enough does not wait again.
    let gpu = [Token::String("NVIDIA A100".into()), n(80), list(&[])];
    w.travel(86_400);
    w.send(&mut a, "join", &gpu, LEAST.into()).await;
    w.send(&mut a, "quit", &[], 0).await;

    w.rule("setParameter", &[n(4), n(300)]).await;
    w.rule("listGpuGroup", &[n(1 << 16 | 80), Token::Bool(true)]).await;
    let selectors = Token::Array(vec![Token::FixedBytes(vec![0xde, 0xad, 0xbe, 0xef])]);
    w.rule("proposePrograms", &[Token::Address(Address::zero()), selectors]).await;
    w.rule("proposeParameter", &[n(17), n(1_000)]).await;
    w.travel(UPGRADE_DELAY.into());
    w.send(&mut app, "acceptParameter", &[n(17)], 0).await;
    w.rule("renounceUpgrades", &[]).await;
    w.rule("setPaused", &[Token::Bool(true)]).await;
    w.rule("sweepTreasury", &[]).await;
    w.rule("proposeTreasury", &[Token::Address(app.address())]).await;
    w.travel(172_800);
    w.send(&mut app, "acceptTreasury", &[], 0).await;
    w.rule("transferOwnership", &[Token::Address(app.address())]).await;
    w.send(&mut app, "acceptOwnership", &[], 0).await;
    assert_eq!(w.view("owner", &[]).await, [Token::Address(app.address())]);
    w.conserved().await;

    let mut seen: BTreeSet<&str> = w.events.iter().map(|event| event.name.as_str()).collect();
    for event in out_of_reach() {
        assert!(seen.insert(event), "{event} was emitted, so it takes no validation");
    }
    let declared: BTreeSet<&str> = interface().events().map(|event| event.name.as_str()).collect();
    assert_eq!(seen, declared);
}
