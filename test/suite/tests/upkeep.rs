//! The lives of the programs: their ends, their extensions, and the place of everybody's money meanwhile.

use std::collections::BTreeMap;
use std::fs;

use ethers::abi::{self, Token};
use ethers::providers::Middleware;
use ethers::types::{Address, Bytes, H256};
use ethers::utils::{id, keccak256};
use muster_cli::arbwasm::{self, Rules, Status};
use muster_cli::build;
use muster_cli::keepalive::{self, Row};
use muster_client::alloy::primitives::{self, utils::format_ether, U256};
use muster_client::alloy::signers::local::PrivateKeySigner;
use muster_client::Sender;
use muster_tests::chain::{Account, Outgoing};
use muster_tests::*;

const DAY: u64 = 86_400;
const HOUR: u64 = 3_600;

/// The page with the cost of keeping programs alive, and the place in it.
const PAGE: &str = "docs/deploying.md";
const MARKS: [&str; 2] = ["<!-- costs: written by the test upkeep -->\n", "<!-- /costs -->\n"];

fn programs(w: &World) -> BTreeMap<primitives::Address, String> {
    w.base.deployment.behind().map(|(name, program)| (program.address, name.clone())).collect()
}

async fn keep(w: &World, by: Option<&Sender>, within: u64) -> Vec<Row> {
    keepalive::run(&w.base.chain, by, &programs(w), within, |_| {}).await.unwrap()
}

/// The same account as the one that the tools send with.
async fn tool(w: &World, account: &Account) -> Sender {
    let key = PrivateKeySigner::from_slice(&account.wallet.signer().to_bytes()).unwrap();
    w.base.chain.account(key).await.unwrap()
}

/// The development account owns the embedded chain.
async fn chain_owner(w: &mut World, signature: &str, value: u64) {
    let owner = Address::from_low_u64_be(0x70);
    let data: Bytes = [&id(signature)[..], &abi::encode(&[n(value)])].concat().into();
    w.boss.send(&w.chain, Outgoing { to: Some(owner), data, ..Default::default() }).await.unwrap();
}

fn active(row: &Row) -> u64 {
    match row.status {
        Status::Active { left } => left,
        other => panic!("{} is {other:?}: {}", row.name, row.done),
    }
}

#[tokio::test]
async fn the_build_says_what_a_start_costs_on_chain() {
    let w = World::new(&[]).await;
    let (manifest, _) = build::load(&root()).unwrap();
    for (name, program) in w.base.deployment.behind() {
        let charged = arbwasm::start_gas(&w.base.chain, program.address).await.unwrap();
        assert_eq!(manifest.programs[name].start_gas, charged, "{name}: cached and not");
    }
}

#[tokio::test]
async fn programs_expire_and_come_back_and_the_money_stays() {
    let mut w = World::new(&[]).await;
    if !w.travels("programs_expire_and_come_back_and_the_money_stays") {
        return;
    }
    // Money of every kind: a stake, a stake being unbonded, an operator's pay, a fee in escrow.
    let (mut worker, node) = w.join(3 * LEAST, "NVIDIA A100", 80, &[]).await;
    let (mut leaver, _) = w.join(2 * LEAST, "NVIDIA A100", 80, &[]).await;
    w.send(&mut leaver, "quit", &[], 0).await;
    let mut app = w.actor(0).await;
    let (paid, _) = w.create(&mut app, &Spec::default(), 70_000).await;
    w.send(&mut worker, "submit", &[n(paid), Token::FixedBytes(vec![1; 32])], 0).await;
    let (open, _) = w.create(&mut app, &Spec::default(), 50_000).await;
    let held = w.chain.provider.get_balance(w.muster.address, None).await.unwrap();
    // The cost of naming a new GPU is the protocol's.
    let income = w.field("overview", &[], "treasuryBalance").await;
    assert_eq!(held, income + 5 * LEAST + 120_000);
    w.conserved().await;

    // Young programs can be kept alive by nobody.
    let mut anyone = w.actor(0).await;
    let tool = tool(&w, &anyone).await;
    let rules = Rules::of(&w.base.chain).await.unwrap();
    assert_eq!((rules.expiry, rules.keepalive, rules.paused()), (365 * DAY, 31 * DAY, false));
    let rows = keep(&w, Some(&tool), 365).await;
    assert!(rows.iter().all(|row| !row.needs_attention && row.done.starts_with("can be renewed in 31 days")));
    let code_hash = w.base.deployment.programs["nodes"].code_hash;
    let error = arbwasm::keep_alive(&w.base.chain, &tool, "nodes", code_hash).await.unwrap_err();
    assert!(format!("{error:#}").contains("cannot keep nodes alive yet"), "{error:#}");

    // Old enough, anybody can, and a pause of activations does not matter. Before that nothing was due.
    w.travel(32 * DAY);
    assert!(keep(&w, Some(&tool), 180).await.iter().all(|row| row.done == "-"));
    chain_owner(&mut w, "setWasmActivationGas(uint64)", 1 << 40).await;
    assert!(Rules::of(&w.base.chain).await.unwrap().paused());
    let seen = keep(&w, None, 365).await;
    assert!(seen.iter().all(|row| row.needs_attention && row.done == "to be renewed"), "a look changes nothing");
    let mut costs = Vec::new();
    for (name, program) in w.base.deployment.behind() {
        let paid = arbwasm::keep_alive(&w.base.chain, &tool, name, program.code_hash).await.unwrap();
        costs.push((name.clone(), paid, None));
    }
    for row in keep(&w, Some(&tool), 180).await {
        assert!(active(&row) > 365 * DAY - HOUR && row.done == "-", "{row:?}");
    }

    // Nobody does, for more than a year: nothing works any more, nothing is lost, and where activations are paused
    // nobody can change that.
    w.travel(366 * DAY);
    let rows = keep(&w, Some(&tool), 180).await;
    let stuck = |row: &Row| matches!(row.status, Status::Expired { .. }) && row.needs_attention;
    assert!(rows.iter().all(|row| stuck(row) && row.done.contains("activations are paused here")), "{rows:?}");
    let error = w.muster.call(&w.chain, "overview", &[]).await.unwrap_err();
    assert!(format!("{error:#}").contains("overview"), "{error:#}");
    // The router does not expire, and says which program does not run.
    let refused = w.refused(leaver.address(), "withdraw", &[Token::Address(leaver.address())], 0).await;
    assert_eq!(refused.name, "ProgramFailed");
    assert_eq!(refused.values[1], Token::Address(w.program("admin")));
    assert_eq!(w.chain.provider.get_balance(w.muster.address, None).await.unwrap(), held);

    // Once they are not, anybody can bring the programs back, and everybody has their own money.
    chain_owner(&mut w, "setWasmActivationGas(uint64)", 0).await;
    for (name, _, again) in &mut costs {
        let paid = arbwasm::activate(&w.base.chain, &tool, name, w.base.deployment.programs[name].address).await.unwrap();
        *again = Some(paid);
    }
    assert!(keep(&w, None, 180).await.iter().all(|row| !row.needs_attention));
    assert_eq!(w.field("account", &[Token::Address(worker.address())], "credit").await, 70_000.into());
    w.conserved().await;
    let to = Address::random();
    w.send(&mut leaver, "withdraw", &[Token::Address(to)], 0).await;
    assert_eq!(w.chain.provider.get_balance(to, None).await.unwrap(), (2 * LEAST).into());
    // The deadline passed while nothing worked; any account that says so ends the task.
    w.send(&mut anyone, "expire", &[n(node), n(open)], 0).await;
    w.send(&mut worker, "quit", &[], 0).await;
    w.travel(DAY);
    let to = Address::random();
    w.send(&mut worker, "withdraw", &[Token::Address(to)], 0).await;
    assert_eq!(w.chain.provider.get_balance(to, None).await.unwrap(), (3 * LEAST + 70_000).into());
    w.conserved().await;

    let mut table = String::from("| program | kept alive: gas | data fee, ether | activated again: gas | data fee, ether |\n");
    table.push_str("| --- | ---: | ---: | ---: | ---: |\n");
    for (name, kept, again) in costs {
        let again = again.unwrap();
        let gas = |paid: &arbwasm::Paid| paid.receipt.gas_used.div_ceil(10_000) * 10_000;
        // Rounded up, so that a small change of a program is none of this page.
        let fee = |paid: &arbwasm::Paid| {
            let unit = U256::from(10_000_000_000_000u64);
            format_ether(paid.data_fee.div_ceil(unit) * unit).trim_end_matches('0').to_string()
        };
        table.push_str(&format!("| {name} | {} | {} | {} | {} |\n", gas(&kept), fee(&kept), gas(&again), fee(&again)));
    }
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let (before, rest) = page.split_once(MARKS[0]).unwrap();
    let (found, after) = rest.split_once(MARKS[1]).unwrap();
    if std::env::var_os("WRITE").is_some() {
        fs::write(root().join(PAGE), [before, MARKS[0], &table, MARKS[1], after].concat()).unwrap();
    } else {
        assert_eq!(found, table, "{PAGE} says something else: WRITE=1 script/test -p muster-tests --test upkeep writes it");
    }
}

#[tokio::test]
async fn a_new_stylus_version_ends_programs_until_they_are_activated_for_it() {
    let mut w = World::new(&[]).await;
    if !w.travels("a_new_stylus_version_ends_programs_until_they_are_activated_for_it") {
        return;
    }
    let (mut worker, _) = w.join(LEAST, "NVIDIA A100", 80, &[]).await;
    let anyone = w.actor(0).await;
    let tool = tool(&w, &anyone).await;
    // Where ArbOS keeps the rules of programs, whose first two bytes are the version: the first word of the space [8][0]. They go back
    // afterwards, because other tests are on the same chain.
    let state: Address = "0xa4b05fffffffffffffffffffffffffffffffffff".parse().unwrap();
    let space = keccak256([&keccak256([8])[..], &[0]].concat());
    let mut at = H256(keccak256([&space[..], &[0; 31]].concat()));
    at.0[31] = 0;
    let word = w.chain.provider.get_storage_at(state, at, None).await.unwrap();
    assert_eq!(word.0[..2], [0, 3], "the version that the programs were activated for");
    for version in [2, 3] {
        let mut other = word;
        other.0[1] = version;
        let _: serde_json::Value = w.chain.request("anvil_setStorageAt", (state, at, other)).await.unwrap();
        let rows = keep(&w, None, 180).await;
        let outdated = Status::Outdated { version: (5 - version).into() };
        assert!(rows.iter().all(|row| row.status == outdated && row.needs_attention), "{rows:?}");
        assert!(w.muster.call(&w.chain, "overview", &[]).await.is_err());
        let rows = keep(&w, Some(&tool), 180).await;
        assert!(rows.iter().all(|row| row.done.starts_with("activated again for") && active(row) > 364 * DAY), "{rows:?}");
        assert_eq!(w.field("overview", &[], "nodesJoined").await, 1.into());
    }
    w.send(&mut worker, "quit", &[], 0).await;
    w.conserved().await;
}
