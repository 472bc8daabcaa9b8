//! A Solidity contract as the application: compiled by forge, run beside the programs on the same node.

use std::process::Command;

use ethers::abi::{Abi, Token};
use ethers::providers::Middleware;
use ethers::types::{Address, Bytes, U256};
use muster_tests::chain::{interface, Outgoing, Reverted};
use muster_tests::*;

/// Compiles `test/solidity`; gives the application's interface and initcode.
fn compile() -> (Abi, Vec<u8>) {
    let root = root();
    let forge = root.join("node_modules/.bin/forge");
    let out = Command::new(&forge)
        .arg("build")
        .current_dir(&root)
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}; script/setup installs it", forge.display()));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let artefact = std::fs::read_to_string(root.join("target/forge/out/Application.sol/Application.json")).unwrap();
    let artefact: serde_json::Value = serde_json::from_str(&artefact).unwrap();
    let code: Bytes = artefact["bytecode"]["object"].as_str().unwrap().parse().unwrap();
    (serde_json::from_value(artefact["abi"].clone()).unwrap(), code.to_vec())
}

#[tokio::test]
async fn a_solidity_application_creates_and_follows_tasks() {
    let mut w = World::new(&[("drawDelay", 0)]).await;
    let (abi, code) = compile();
    let constructor = abi.constructor.as_ref().unwrap();
    let data: Bytes = constructor.encode_input(code, &[Token::Address(w.muster.address)]).unwrap().into();
    let receipt = w.boss.send(&w.chain, Outgoing { data, ..Default::default() }).await.unwrap();
    let app = receipt.contract_address.unwrap();
    w.actors.push(app);
    let input = |function: &str, arguments: &[Token]| -> Bytes {
        abi.function(function).unwrap().encode_input(arguments).unwrap().into()
    };
    async fn send(w: &mut World, to: Address, data: Bytes, value: U256) -> Vec<Event> {
        let what = Outgoing { to: Some(to), data, value, gas: Some(6_000_000) };
        let receipt = w.boss.send(&w.chain, what).await.unwrap_or_else(|error| panic!("{error:#}"));
        w.decode(&receipt)
    }
    // The first value of an answer.
    async fn ask(w: &World, to: Address, data: Bytes) -> U256 {
        U256::from_big_endian(&w.chain.call(None, to, U256::zero(), data).await.unwrap()[..32])
    }

    let (mut operator, node) = w.join(LEAST, "NVIDIA H100", 80, &[31]).await;
    let quote = ask(&w, app, input("quote", &[n(0), n(2)])).await;
    assert_eq!(quote, 70.into());
    let task = |vram: u16| input("request", &[n(0), n(2), n(vram), list(&[31]), Token::FixedBytes(vec![5; 32])]);
    let events = send(&mut w, app, task(80), quote * 10).await;
    assert_eq!(one(&events, "TaskCreated").values["creator"], Token::Address(app));
    assert_eq!(one(&events, "TaskStarted").number("node"), node.into());
    let first = ask(&w, app, input("lastTask", &[])).await;
    // Statuses of `locate`, by the node and the ticket that the events say; states of `outcome`, which needs neither.
    let status = |id: U256, node: U256, ticket: U256| input("where", &[n(id), n(node), n(ticket)]);
    let state = |id: U256| input("state", &[n(id)]);
    let (zero, node) = (U256::zero(), U256::from(node));
    assert_eq!(ask(&w, app, status(first, node, zero)).await, 3.into());
    assert_eq!(ask(&w, app, status(first, zero, zero)).await, zero);
    assert_eq!(ask(&w, app, state(first)).await, 1.into());

    let events = send(&mut w, app, task(80), quote * 5).await;
    assert_eq!(*names(&events).last().unwrap(), "TaskQueued");
    let second = ask(&w, app, input("lastTask", &[])).await;
    let ticket = U256::from(one(&events, "TaskQueued").number("ticket"));
    assert_eq!(ask(&w, app, status(second, zero, ticket)).await, 2.into());

    // A refusal of ours reaches Solidity unchanged.
    let (boss, wrong) = (w.boss.address(), input("giveUp", &[n(second), n(ticket + 1)]));
    let wrong = w.chain.call(Some(boss), app, zero, wrong).await.unwrap_err();
    let wrong = wrong.downcast_ref::<Reverted>().unwrap();
    let reason = interface().error("TaskNotQueued").unwrap().signature();
    assert_eq!(wrong.data[..4], abi.error("Refused").unwrap().signature()[..4]);
    assert_eq!(wrong.data[4..8], reason[..4]);

    let events = send(&mut w, app, input("giveUp", &[n(second), n(ticket)]), zero).await;
    assert_eq!(one(&events, "TaskAborted").number("refund"), 343);
    assert_eq!(ask(&w, app, state(second)).await, 5.into());
    let events = w.send(&mut operator, "submit", &[n(first), Token::FixedBytes(vec![6; 32])], 0).await;
    assert_eq!(one(&events, "TaskSucceeded").number("paid"), 700);
    assert_eq!(ask(&w, app, state(first)).await, 2.into());
    assert_eq!(ask(&w, app, status(first, node, zero)).await, zero);

    // The receipts settle the application's own books.
    for id in [first, second] {
        send(&mut w, app, input("settle", &[n(id)]), zero).await;
    }
    assert_eq!(ask(&w, app, input("results", &[n(first)])).await, U256::from([6; 32]));
    assert_eq!(ask(&w, app, input("owed", &[Token::Address(boss)])).await, 343.into());
    let events = send(&mut w, app, input("collect", &[]), zero).await;
    assert_eq!(one(&events, "Withdrawn").number("credit"), 343);
    assert_eq!(w.chain.provider.get_balance(app, None).await.unwrap(), 343.into());
    send(&mut w, app, input("claim", &[]), zero).await;
    assert_eq!(w.chain.provider.get_balance(app, None).await.unwrap(), zero);
    w.conserved().await;
}
