//! The command line as people and scripts use it, against the compiled programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use alloy::primitives::{Address, B256, U256};
use alloy::signers::local::PrivateKeySigner;
use alloy::sol_types::SolCall;
use muster_client::{
    digest_of, observe, pause, seal_result, show_amount, Account, Bounds, Endpoints, IMuster, Muster, Private, Request, Sender,
    Sending, Settings, Stores,
};
use muster_fleet::wire::{before, Wire};
use muster_fleet::world::{stranger, World, LEAST, STAKE_UNIT, UPGRADE_DELAY};
use serde_json::Value;
use tokio::sync::Notify;

const DIGEST: &str = "0x0707070707070707070707070707070707070707070707070707070707070707";

/// A contract, and people with a home directory each.
struct Site {
    world: World,
    url: String,
    homes: tempfile::TempDir,
}

/// Somebody with a key.
struct Person {
    key: B256,
    home: PathBuf,
    url: String,
    muster: String,
}

impl Site {
    async fn new(parameters: &[(&str, u64)]) -> Site {
        let world = World::new(parameters).await;
        let url = world.chain.url.clone();
        Site { world, url, homes: tempfile::tempdir().unwrap() }
    }

    fn is(&self, key: B256) -> Person {
        let home = self.homes.path().join(key.to_string());
        Person { key, home, url: self.url.clone(), muster: format!("{:?}", self.world.muster.address()) }
    }

    /// Somebody with this many wei beside their gas.
    async fn person(&mut self, wei: u64) -> Person {
        let key = self.world.actor(wei).await;
        self.is(key.to_bytes())
    }

    async fn operator(&mut self) -> Person {
        let fee = self.world.name_fee("NVIDIA RTX 4090", 24).await;
        let operator = self.person(LEAST + fee).await;
        operator.done(&["node", "join", "--gpu", "NVIDIA RTX 4090", "--plain", "--vram", "24", "--model", "sdxl"]);
        operator
    }
}

impl Person {
    fn address(&self) -> Address {
        PrivateKeySigner::from_bytes(&self.key).unwrap().address()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        command.args(arguments).env_clear().stdin(Stdio::null());
        command.envs([("MUSTER_HOME", self.home.to_str().unwrap()), ("ETH_RPC_URL", &self.url), ("MUSTER", &self.muster)]);
        command.env("PRIVATE_KEY", self.key.to_string());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        // In every case.
        for text in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(text).to_lowercase();
            assert!(!text.contains(&self.key.to_string()[2..]), "the key is shown: {text}");
        }
        output
    }

    /// Runs a command that must succeed; its JSON.
    fn done(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        let last = text.lines().last().unwrap_or_else(|| panic!("{arguments:?} says nothing"));
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {last}"))
    }

    /// Runs a command that must fail with a code; its JSON.
    fn fails(&self, code: i32, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    }

    /// Runs it without JSON.
    fn says(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A node's program: answers a task.
    async fn answers(&self, id: u64) {
        let call = IMuster::submitCall { id, resultDigest: B256::repeat_byte(9) };
        self.account().await.call(call, U256::ZERO).await.unwrap();
    }

    /// Pauses as an agent does for these reasons.
    async fn pauses_because(&self, reasons: &[&str]) {
        let reasons: Vec<_> = reasons.iter().map(|reason| (*reason).to_string()).collect();
        self.account().await.send_once(&format!("{reasons:?}"), pause::calldata(&reasons), U256::ZERO).await.unwrap();
    }

    async fn account(&self) -> Account {
        let endpoints = Endpoints::new(&[&self.url], Settings::default()).unwrap();
        let muster = Muster::connect(endpoints.clone(), self.muster.parse().unwrap()).await.unwrap();
        let signer = PrivateKeySigner::from_bytes(&self.key).unwrap();
        let sender = Sender::open(endpoints, signer, &self.home.join("transactions"), Sending::default()).await.unwrap();
        Account::new(muster, sender)
    }
}

/// The id of the task that a call created.
fn created(report: &Value) -> u64 {
    let event = report["events"].as_array().unwrap().iter().find(|event| event["event"] == "TaskCreated").unwrap();
    event["values"]["id"].as_str().unwrap().parse().unwrap()
}

fn wei(value: &Value) -> u128 {
    value.as_str().unwrap_or_else(|| panic!("{value} is no amount")).parse().unwrap()
}

/// Creates a task and has it drawn.
fn task(by: &Person, fee: &str) -> u64 {
    let id = created(&by.done(&["task", "create", "--input-digest", DIGEST, "--receipt", "--fee", fee]));
    for _ in 0..20 {
        by.done(&["keeper", "--once"]);
        if by.done(&["task", "show", &id.to_string()])["status"] != 1 {
            return id;
        }
    }
    panic!("task {id} stays Pending")
}

#[tokio::test]
async fn an_operators_first_hour() {
    let mut site = Site::new(&[]).await;
    let fee = site.world.name_fee("NVIDIA RTX 4090", 24).await;
    let operator = site.person(LEAST + fee).await;
    let application = site.person(1_000_000).await;
    let join = ["node", "join", "--gpu", "NVIDIA RTX 4090", "--plain", "--vram", "24", "--model", "sdxl"];
    assert_eq!(operator.fails(1, &["node", "status"])["exitCode"], 1);

    // A dry run prints the cost, and neither sends nor writes anything.
    let dry = operator.done(&[&join[..], &["--dry-run"]].concat());
    assert_eq!((&dry["dryRun"], wei(&dry["value"])), (&Value::Bool(true), u128::from(LEAST + fee)));
    assert!(!operator.home.join("transactions").exists());
    assert_eq!(operator.done(&["network"])["nodesJoined"], 0);
    operator.done(&join);
    let status = operator.done(&["node", "status"]);
    assert_eq!(
        (&status["status"], &status["gpu"], wei(&status["stake"])),
        (&Value::from("Available"), &Value::from("NVIDIA RTX 4090"), u128::from(LEAST))
    );
    assert!(operator.says(&["node", "status"]).contains("Available"));
    // Again is refused, by name and before anything is paid.
    assert_eq!(operator.fails(3, &join)["refusal"], "WrongStatus");

    operator.done(&["node", "models", "--add", "llama", "--add", "0x7"]);
    operator.done(&["node", "models", "--remove", "0x7"]);
    assert_eq!(operator.done(&["node", "models"])["models"].as_array().unwrap().len(), 2);
    operator.done(&["node", "pause"]);
    let why = operator.done(&["node", "why"]);
    assert!(why["missing"].as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains("paused")), "{why}");
    operator.done(&["node", "resume"]);

    let id = task(&application, "70_000 wei");
    let running = application.done(&["task", "show", &id.to_string()]);
    assert_eq!((&running["state"], &running["node"]), (&Value::from("running"), &Value::from(1)));
    application.fails(1, &["task", "result", &id.to_string()]);
    operator.answers(id).await;
    assert_eq!(application.done(&["task", "result", &id.to_string()])["resultDigest"], B256::repeat_byte(9).to_string());
    assert!(application.says(&["task", "watch", &id.to_string()]).contains("TaskSucceeded"));

    let why = operator.done(&["node", "why"]);
    assert_eq!((&why["drawn"], &why["actual"], &why["share"]), (&Value::from(1), &Value::from(1), &Value::from(1.0)));
    assert_eq!(why["interval"], serde_json::json!([1, 1]));
    assert_eq!(wei(&operator.done(&["node", "status"])["credit"]), 70_000);
    operator.done(&["node", "withdraw"]);
    assert_eq!(wei(&operator.done(&["node", "status"])["credit"]), 0);

    let earnings = operator.done(&["node", "earnings"]);
    assert_eq!((wei(&earnings["paid"]), wei(&earnings["slashed"])), (70_000, 0));
    let csv = operator.says(&["node", "earnings", "--csv"]);
    let line: Vec<_> = csv.lines().find(|line| line.starts_with(&format!("{id},"))).unwrap().split(',').collect();
    assert_eq!((line[2], line[3]), ("success", "70000"));
    // Its gas is that of its own transaction for the task, and no other.
    let gas: u128 = line[7].parse().unwrap();
    assert!(gas > 0 && gas < wei(&earnings["gas"]), "{csv}");
    operator.done(&["node", "quit"]);
    assert_eq!(operator.done(&["node", "status"])["status"], "Quit");
}

#[tokio::test]
async fn a_worker_answers_for_the_operator() {
    let mut site = Site::new(&[]).await;
    let operator = site.operator().await;
    let (worker, application) = (site.person(0).await, site.person(1_000_000).await);
    let address = worker.address().to_string();
    assert_eq!(worker.fails(3, &["node", "worker", "accept", "1"])["refusal"], "NotNamed");
    operator.done(&["node", "worker", "set", &address]);
    assert_eq!(operator.done(&["node", "status"])["works"], false);
    assert!(operator.says(&["node", "status"]).contains("has not accepted"));
    worker.done(&["node", "worker", "accept", "1"]);
    let status = operator.done(&["node", "status"]);
    assert_eq!((&status["worker"], &status["works"]), (&serde_json::json!(worker.address()), &Value::Bool(true)));
    // The worker pays for its answers, whatever the operator has.
    let poor = |who: &Person| {
        let missing = operator.done(&["node", "why"])["missing"].to_string();
        missing.contains("too little for the gas") && missing.contains(&who.address().to_string())
    };
    if let Some(node) = &site.world.node {
        let (chain, plenty) = (node.chain(), U256::from(10u64.pow(18)));
        chain.set_balance(operator.address(), U256::ZERO);
        assert!(!poor(&operator) && !poor(&worker));
        chain.set_balance(operator.address(), plenty);
        chain.set_balance(worker.address(), U256::ZERO);
        assert!(poor(&worker) && !poor(&operator));
        chain.set_balance(worker.address(), plenty);
    }
    // The worker's account stands for the node, too.
    assert_eq!(worker.done(&["node", "status"])["operator"], status["operator"]);

    let id = task(&application, "70_000 wei");
    worker.answers(id).await;
    assert_eq!(wei(&operator.done(&["node", "status"])["credit"]), 70_000);
    assert_eq!(worker.fails(3, &["node", "withdraw"])["refusal"], "NothingToWithdraw");
    assert_eq!(worker.fails(3, &["node", "quit"])["refusal"], "NotTheOperator");
    // Its gas is the node's.
    let csv = operator.says(&["node", "earnings", "--csv"]);
    let line: Vec<_> = csv.lines().find(|line| line.starts_with(&format!("{id},"))).unwrap().split(',').collect();
    assert!(line[2] == "success" && line[7].parse::<u128>().unwrap() > 0, "{csv}");

    let error = operator.fails(3, &["node", "worker", "leave"]);
    assert!(error["refusal"] == "HasNode" && error["error"].as_str().unwrap().contains("muster node quit"), "{error}");
    worker.done(&["node", "worker", "leave"]);
    assert_eq!(worker.fails(1, &["node", "status"])["exitCode"], 1);
    // Where the operator's own key answers, the node stays; otherwise nobody would answer for it.
    operator.done(&["node", "worker", "set", &address]);
    operator.done(&["node", "worker", "remove", "--stay"]);
    assert_eq!(operator.done(&["node", "status"])["status"], "Available");
    operator.done(&["node", "worker", "set", &address]);
    operator.done(&["node", "worker", "remove"]);
    assert_eq!(operator.done(&["node", "status"])["status"], "Paused");
    assert_eq!(worker.fails(3, &["node", "worker", "accept", "1"])["refusal"], "NotNamed");
    // Nothing is sent where there is none: the node would be paused for nothing.
    operator.done(&["node", "resume"]);
    let none = operator.fails(1, &["node", "worker", "remove"]);
    assert_eq!(none["error"], "node 1 has no worker: it is left as it is");
    assert_eq!(operator.done(&["node", "status"])["status"], "Available");
    // A paused node stays paused, and a node with a task will be from its end on.
    operator.done(&["node", "pause"]);
    operator.done(&["node", "worker", "set", &address]);
    operator.done(&["node", "worker", "remove"]);
    operator.done(&["node", "resume"]);
    operator.done(&["node", "worker", "set", &address]);
    let id = task(&application, "70_000 wei");
    operator.done(&["node", "worker", "remove"]);
    assert_eq!(operator.done(&["node", "status"])["status"], "PendingPause");
    operator.answers(id).await;
    assert_eq!(operator.done(&["node", "status"])["status"], "Paused");
}

/// The gas costs of accounts, from all transactions of the contract since its beginning.
async fn replayed(site: &Site, from: &[Address]) -> u128 {
    let endpoints = Endpoints::new(&[&site.url], Settings::default()).unwrap();
    let muster = site.world.muster.address();
    let address = |value: &Value| value.as_str().map(|text| text.parse::<Address>().unwrap());
    let number = |value: &Value| u128::from_str_radix(&value.as_str().unwrap()[2..], 16).unwrap();
    let mut sum = 0;
    for block in 0..=endpoints.head().await.unwrap().number {
        let block: Value = endpoints.ask("eth_getBlockByNumber", serde_json::json!([format!("{block:#x}"), true])).await.unwrap();
        for sent in block["transactions"].as_array().unwrap() {
            if address(&sent["to"]) != Some(muster) || !from.contains(&address(&sent["from"]).unwrap()) {
                continue;
            }
            let receipt: Value = endpoints.ask("eth_getTransactionReceipt", serde_json::json!([sent["hash"]])).await.unwrap();
            sum += number(&receipt["gasUsed"]) * number(&receipt["effectiveGasPrice"]);
        }
    }
    sum
}

#[tokio::test]
async fn earnings_are_what_all_transactions_say() {
    let mut site = Site::new(&[]).await;
    let fee = site.world.name_fee("NVIDIA RTX 4090", 24).await;
    let operator = site.operator().await;
    let (worker, other, application) = (site.person(0).await, site.person(2 * LEAST).await, site.person(10_000_000).await);
    let both = [operator.address(), worker.address()];
    operator.done(&["node", "worker", "set", &worker.address().to_string()]);
    worker.done(&["node", "worker", "accept", "1"]);
    let id = task(&application, "70_000 wei");
    worker.answers(id).await;
    // Draws of another's tasks, for another's node: their events do not name this one.
    worker.done(&["node", "pause"]);
    other.done(&["node", "join", "--gpu", "NVIDIA RTX 4090", "--plain", "--vram", "24", "--model", "sdxl"]);
    for _ in 0..3 {
        let id = created(&application.done(&["task", "create", "--input-digest", DIGEST, "--fee", "70000"]));
        for _ in 0..20 {
            if application.done(&["task", "show", &id.to_string()])["status"] != 1 {
                break;
            }
            operator.account().await.call(IMuster::dispatchCall { count: 1 }, U256::ZERO).await.unwrap();
        }
        other.answers(id).await;
    }
    // Reverted calls cost gas, too; calls of other contracts are not the node's costs.
    for (to, input) in
        [(operator.muster.parse().unwrap(), IMuster::raiseStakeCall {}.abi_encode()), (application.address(), Vec::new())]
    {
        let account = operator.account().await;
        let request = Request { to: to.into(), input: input.into(), gas: Some(1_000_000), ..Request::default() };
        let nonce = account.sender().submit(request).await.unwrap();
        assert_eq!(account.sender().wait(nonce).await.unwrap().status(), to == application.address());
    }
    operator.done(&["node", "withdraw"]);
    let error = operator.fails(3, &["node", "worker", "leave"]);
    assert!(error["refusal"] == "HasNode" && error["error"].as_str().unwrap().contains("muster node quit"), "{error}");
    worker.done(&["node", "worker", "leave"]);

    let earnings = operator.done(&["node", "earnings"]);
    assert_eq!(wei(&earnings["gas"]), replayed(&site, &both).await, "{earnings}");
    assert_eq!(
        (wei(&earnings["names"]), wei(&earnings["paid"]), &earnings["missing"]),
        (u128::from(fee), 70_000, &Value::from(0))
    );
    let lines: u128 = earnings["tasks"].as_array().unwrap().iter().map(|line| wei(&line["gas"])).sum();
    assert_eq!(lines, wei(&earnings["gas"]));
    // Of less than an hour all is as it is, and to the wei.
    let costly = ["--watts", "500", "--kwh", "0.001 ether"];
    let priced = || operator.done(&[&["node", "earnings"][..], &costly].concat());
    let young = priced();
    let part = |priced: &Value, name: &str| priced["hour"][name].as_str().unwrap().parse::<i128>().unwrap();
    assert_eq!(part(&young, "earned"), 70_000);
    assert_eq!(part(&young, "gas"), wei(&earnings["gas"]) as i128);
    assert!(operator.says(&["node", "earnings"]).contains("\n  so far      "));
    // Later all is divided by the same hours, with the machine's power.
    if !site.world.travels("earnings of more than an hour") {
        return;
    }
    site.world.travel(7_200);
    let priced = priced();
    assert_eq!(part(&priced, "power"), 500_000_000_000_000);
    let hours = 70_000.0 / part(&priced, "earned") as f64;
    let near = |one: f64, other: f64| (one - other).abs() <= 1e-3 * one.abs().max(other.abs()).max(1e3);
    assert!(hours >= 2.0 && near(part(&priced, "gas") as f64 * hours, wei(&earnings["gas"]) as f64), "{priced}");
    assert!(near(part(&priced, "slashedAndNames") as f64 * hours, fee as f64), "{priced}");
    let [earned, gas, lost, power] = ["earned", "gas", "slashedAndNames", "power"].map(|name| part(&priced, name));
    assert_eq!(part(&priced, "profit"), earned - gas - lost - power);
    let why = operator.done(&[&["node", "why"][..], &costly].concat());
    assert_eq!(why["hour"]["power"], "500000000000000");
    let said = operator.says(&[&["node", "earnings"][..], &costly].concat());
    assert!(said.contains("\n  an hour     ") && said.contains("0.0005 ether power: -"), "{said}");
    // Counted once: the other node's are its own.
    let others = other.done(&["node", "earnings"]);
    assert_eq!(wei(&others["gas"]), replayed(&site, &[other.address()]).await);
    assert_eq!(wei(&others["names"]), 0);
}

#[tokio::test]
async fn why_says_that_a_group_is_not_listed_and_that_the_least_stake_was_raised() {
    let mut site = Site::new(&[]).await;
    if !site.world.travels("why_says_that_a_group_is_not_listed_and_that_the_least_stake_was_raised") {
        return;
    }
    let (operator, owner) = (site.operator().await, site.is(site.world.key.to_bytes()));
    let why = || (operator.done(&["node", "why"]), operator.says(&["node", "why"]));
    let (json, text) = why();
    assert_eq!((&json["listed"], &json["leastStake"]), (&Value::Bool(false), &Value::from(LEAST.to_string())));
    assert!(text.contains("is not listed") && !text.contains("raise-stake"), "{text}");
    let group = operator.done(&["node", "status"])["gpuGroup"].to_string();
    owner.done(&["admin", "list-gpu", &group]);
    owner.done(&["admin", "set", "minStake", &(LEAST / STAKE_UNIT + 1).to_string()]);
    site.world.travel(UPGRADE_DELAY.into());
    owner.done(&["admin", "accept", "minStake"]);
    let (json, text) = why();
    assert_eq!((&json["listed"], &json["leastStake"]), (&Value::Bool(true), &Value::from((LEAST + STAKE_UNIT).to_string())));
    assert!(!text.contains("is not listed") && text.contains("muster node raise-stake 0.00"), "{text}");
    // Of the least stake at first: a raise puts nobody out.
    let kept = (LEAST / STAKE_UNIT * 15).div_ceil(16) * STAKE_UNIT;
    assert!(text.contains(&format!("a slash that leaves less than {} puts it out", show_amount(U256::from(kept)))), "{text}");
}

#[tokio::test]
async fn why_says_whose_a_pause_is_and_what_ends_it() {
    let mut site = Site::new(&[]).await;
    let operator = site.operator().await;
    let application = site.person(1_000_000).await;
    let why = || operator.done(&["node", "why"])["missing"].as_array().unwrap()[0].as_str().unwrap().to_string();
    operator.done(&["node", "pause"]);
    assert!(why().contains("muster node resume"), "{}", why());
    operator.done(&["node", "resume"]);
    // Paused as by an agent: advice that it would undo is not given.
    operator.pauses_because(&["self-test", "disk"]).await;
    let said = why();
    assert!(said.contains("its agent has paused it") && !said.contains("muster node resume"), "{said}");
    assert!(said.contains("self-test: its golden tasks") && said.contains("disk: its disk is nearly full"), "{said}");
    operator.done(&["node", "resume"]);
    // And of one that was busy, whose pause came in another's call.
    let id = task(&application, "70_000 wei");
    operator.pauses_because(&["judged"]).await;
    operator.answers(id).await;
    assert!(why().contains("judged: it was judged"), "{}", why());
    operator.done(&["node", "resume"]);
    operator.done(&["node", "pause"]);
    assert!(why().contains("will be when its task ends: muster node resume"), "{}", why());
}

/// A reason that came after the pause is on no chain: the agent's metrics have it, here as an agent serves them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_asks_the_nodes_agent() {
    let mut site = Site::new(&[]).await;
    let operator = site.operator().await;
    let named = [
        "info",
        "ready",
        "looked_timestamp_seconds",
        "paused_by_agent",
        "failures_in_a_row",
        "balance_wei",
        "balance_needed_wei",
    ];
    let metrics = std::sync::Arc::new(observe::Metrics::new("muster_agent", &named.map(|name| (name, false, "Something"))));
    let node = [("node", "gpu0")];
    for (name, value) in
        [("ready", 0.0), ("looked_timestamp_seconds", observe::now() as f64), ("balance_wei", 1e15), ("balance_needed_wei", 2e15)]
    {
        metrics.set(name, &node, value);
    }
    metrics.set("paused_by_agent", &[node[0], ("why", "judged")], 1.0);
    let minute = std::time::Duration::from_mins(1);
    let at = observe::serve("127.0.0.1:0".parse().unwrap(), metrics.clone(), "ready", minute).await.unwrap().to_string();
    let failed = operator.fails(1, &["node", "why", "--metrics", &at]);
    assert!(failed["error"].as_str().unwrap().contains("is no muster-agent's"), "{failed}");
    metrics.set("info", &[("chain", "1"), ("contract", operator.muster.as_str()), ("version", "0")], 1.0);
    let told = operator.done(&["node", "why", "--metrics", &format!("http://{at}/metrics")])["agent"]["gpu0"].to_string();
    assert!(told.contains("it pauses the node, judged: it was judged to have answered wrong"), "{told}");
    assert!(told.contains("its key has 0.001") && told.contains("may take 0.002"), "{told}");
    let said = operator.says(&["node", "why", "--metrics", &at]);
    assert!(said.contains("its agent says of gpu0:\n  - it pauses the node, judged"), "{said}");
    metrics.replace("paused_by_agent", &node, []);
    metrics.set("balance_wei", &node, 1e18);
    let told = operator.done(&["node", "why", "--metrics", &at])["agent"].to_string();
    assert!(told.contains("it is not ready, and has no reason to pause"), "{told}");
    metrics.set("ready", &node, 1.0);
    metrics.set("failures_in_a_row", &node, 1.0);
    metrics.set("looked_timestamp_seconds", &node, observe::now() as f64 - 1_000.0);
    let told = operator.done(&["node", "why", "--metrics", &at])["agent"].to_string();
    assert!(told.contains("has not looked at the chain for 10") && told.contains("1 tasks in a row"), "{told}");
    let failed = operator.fails(1, &["node", "why", "--metrics", "127.0.0.1:1"]);
    assert!(failed["error"].as_str().unwrap().contains("no agent answers at http://127.0.0.1:1/metrics"), "{failed}");

    // With the agent gone, its journal is still there.
    let state = site.homes.path().join("state");
    let why = ["node", "why", "--state", state.to_str().unwrap()];
    let failed = operator.fails(1, &why);
    assert!(failed["error"].as_str().unwrap().contains("`home` of the agent's configuration"), "{failed}");
    fs::create_dir(&state).unwrap();
    let journal = rusqlite::Connection::open(state.join("journal.sqlite")).unwrap();
    journal.execute_batch(include_str!("../../agent/src/journal.sql")).unwrap();
    let whose = format!("412346 {}", operator.muster);
    journal.execute("INSERT INTO fact VALUES ('contract', ?)", [whose]).unwrap();
    journal.execute("INSERT INTO pause VALUES (1, 'balance')", []).unwrap();
    drop(journal);
    let told = operator.done(&why)["journal"].to_string();
    assert!(told.contains("it pauses the node, balance: its key has too little ether"), "{told}");
    let said = operator.says(&why);
    assert!(said.contains("its agent's journal says:\n  - it pauses the node, balance"), "{said}");
}

#[tokio::test]
async fn a_name_that_the_agent_would_not_answer_under_is_not_paid_for() {
    let mut site = Site::new(&[]).await;
    let fee = site.world.name_fee("NVIDIA RTX 4090+1a2b3c4d", 24).await;
    let operator = site.person(LEAST + fee).await;
    for name in ["NVIDIA RTX 4090", "NVIDIA RTX 4090+1a2b3c4", "NVIDIA RTX 4090+1a2b3c4x"] {
        let refused = operator.fails(1, &["node", "join", "--gpu", name, "--vram", "24"]);
        assert!(refused["error"].as_str().unwrap().contains("muster-agent doctor"), "{refused}");
    }
    assert_eq!(operator.done(&["network"])["nodesJoined"], 0);
    operator.done(&["node", "join", "--gpu", "NVIDIA RTX 4090+1a2b3c4d", "--vram", "24"]);
    assert_eq!(operator.done(&["node", "status"])["gpu"], "NVIDIA RTX 4090+1a2b3c4d");
}

#[tokio::test]
async fn exit_codes_tell_scripts_what_happened() {
    let mut site = Site::new(&[]).await;
    let person = site.person(1_000_000).await;
    assert_eq!(person.run(&["node", "fly"]).status.code(), Some(2));
    let unknown = person.fails(2, &["node", "fly"]);
    assert!(unknown["error"].as_str().unwrap().starts_with("unrecognized subcommand 'fly'"), "{unknown}");
    assert_eq!(person.run(&["node", "raise-stake", "5 finney"]).status.code(), Some(2));
    for (name, value) in [("ETH_RPC_URL", ""), ("ETH_RPC_URL", "localhost"), ("MUSTER", ""), ("MUSTER", "there")] {
        let output = person.command(&["network"]).env(name, value).env_remove("RPC_URL").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}={value}: {output:?}");
    }
    // A mistyped address.
    let (wrong, right) = ("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
    let commands: [&[&str]; 10] = [
        &["network", "--muster", wrong],
        &["node", "withdraw", "--to", wrong],
        &["node", "worker", "set", wrong],
        &["node", "status", "--operator", wrong],
        &["stores", "show", wrong],
        &["watch", "--by", wrong],
        &["admin", "transfer-ownership", wrong],
        &["admin", "propose-treasury", wrong],
        &["admin", "propose-programs", wrong, "withdraw"],
        &["admin", "propose-programs", right, "--of", wrong],
    ];
    for arguments in commands {
        let refused = person.fails(2, arguments);
        assert!(refused["error"].as_str().unwrap().contains("its checksum is wrong"), "{arguments:?}: {refused}");
    }
    for written in [right, &right.to_lowercase(), &right.to_uppercase().replacen("0X", "0x", 1)] {
        assert_eq!(person.done(&["stores", "show", written])["account"].as_str().unwrap().to_lowercase(), right.to_lowercase());
    }
    let refused = person.fails(3, &["task", "create", "--input-digest", DIGEST]);
    assert_eq!(refused["refusal"], "NoNodes");
    // A provider's access key is in the URL.
    let secret = "http://user:s3cret@127.0.0.1:1/s3cret?key=s3cret";
    let output = person.command(&["network"]).env("ETH_RPC_URL", secret).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).to_string();
    assert_eq!(output.status.code(), Some(4));
    assert!(text.contains("127.0.0.1:1") && !text.contains("s3cret"), "{text}");
    let help = person.command(&["--help"]).env("ETH_RPC_URL", secret).output().unwrap();
    assert!(!String::from_utf8_lossy(&help.stdout).contains("s3cret"));
    let output = person.command(&["network", "--chain", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let output = person.command(&["node", "pause"]).env_remove("PRIVATE_KEY").output().unwrap();
    assert_eq!(output.status.code(), Some(6));
    let output = person.command(&["node", "pause"]).env("PRIVATE_KEY", "s3cret").output().unwrap();
    assert_eq!(output.status.code(), Some(6));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("s3cret"));
    let nowhere = person.command(&["network"]).env("MUSTER", format!("{:?}", Address::repeat_byte(1))).output().unwrap();
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("there is no contract"));
    assert!(person.says(&["completions", "bash"]).contains("raise-stake"));
    assert!(person.says(&["stores", "show", &Address::repeat_byte(7).to_string()]).contains("publishes no store"));
    assert!(person.says(&["account", "list"]).starts_with("no keys: "));

    // A key file that is not there is not a wrong password.
    let missing = person.command(&["account", "show", "--account", "nobody"]).output().unwrap();
    let text = String::from_utf8_lossy(&missing.stderr).to_string();
    assert_eq!(missing.status.code(), Some(6));
    assert!(text.contains("nobody: No such file") && !text.contains("password"), "{text}");
    // Nor is a missing password file another failure than a missing key.
    let file = person.home.join("key");
    fs::create_dir_all(&person.home).unwrap();
    fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    let missing = person.command(&["account", "show", "--keystore", file, "--password-file", "nowhere"]).output().unwrap();
    let text = String::from_utf8_lossy(&missing.stderr).to_string();
    assert_eq!(missing.status.code(), Some(6), "{text}");
    assert_eq!(text.matches("No such file").count(), 1, "{text}");
    assert!(text.contains("the password's file nowhere"), "{text}");

    // A task that ends without a result.
    let operator = site.operator().await;
    let first = task(&person, "60000");
    let second = task(&person, "60000");
    let shown = person.done(&["task", "show", &second.to_string()]);
    assert_eq!(shown["status"], 2, "{first} runs, so {second} is queued");
    let none = person.fails(1, &["task", "cancel", "99"]);
    assert!(none["error"].as_str().unwrap().contains("nothing is known of task 99"), "{none}");
    let early = person.fails(1, &["watch", "--from", "1000000"]);
    assert!(early["error"].as_str().unwrap().contains("has not come yet"), "{early}");
    let faulty = person.command(&["network"]).env("ETH_RPC_URL", format!("{},http://127.0.0.1:1", person.url)).output().unwrap();
    assert!(String::from_utf8_lossy(&faulty.stdout).contains("not asked  http://127.0.0.1:1"), "{faulty:?}");
    person.done(&["task", "cancel", &second.to_string()]);
    person.fails(7, &["task", "result", &second.to_string()]);
    person.fails(7, &["task", "watch", &second.to_string()]);
    operator.answers(first).await;
}

#[tokio::test]
async fn a_task_that_is_followed_says_each_event_once() {
    let mut site = Site::new(&[]).await;
    let operator = site.operator().await;
    let person = site.person(10_000_000).await;
    let mut create = person
        .command(&["task", "create", "--input-digest", DIGEST, "--fee", "70000", "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(create.stdout.take().unwrap())).map(Result::unwrap);
    let mut said: Vec<String> = Vec::new();
    while !said.last().is_some_and(|line| line.contains("TaskStarted")) {
        said.push(lines.next().expect("it ends before the task began"));
    }
    operator.answers(1).await;
    said.extend(lines);
    assert!(create.wait().unwrap().success());
    for event in ["TaskCreated", "TaskStarted", "TaskSucceeded"] {
        assert_eq!(said.iter().filter(|line| line.contains(event)).count(), 1, "{event}: {said:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_followed_although_the_node_of_the_chain_is_away_for_a_while() {
    let mut site = Site::new(&[]).await;
    let operator = site.operator().await;
    let mut person = site.person(10_000_000).await;
    let wire = Wire::start(&person.url).await;
    person.url.clone_from(&wire.url);
    let id = task(&person, "70000").to_string();
    let mut watch = person
        .command(&["task", "watch", &id, "--only", "--wait", "60"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(watch.stdout.take().unwrap())).map(Result::unwrap);
    while !lines.next().expect("it ends before the task began").contains("TaskStarted") {}
    wire.is_cut(true);
    let mut said = std::io::BufRead::lines(std::io::BufReader::new(watch.stderr.take().unwrap())).map(Result::unwrap);
    assert!(said.any(|line| line.contains("no node answers") && line.contains("asked again for 60 s")), "it does not notice");
    operator.answers(id.parse().unwrap()).await;
    wire.is_cut(false);
    assert!(lines.any(|line| line.contains("TaskSucceeded")));
    assert!(watch.wait().unwrap().success());
    // Not without end, and not where none has ever answered.
    wire.is_cut(true);
    person.fails(4, &["task", "watch", &id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_a_node_does_not_know_yet_is_not_given_up_and_so_not_paid_twice() {
    let mut site = Site::new(&[]).await;
    let operator = site.operator().await;
    let mut person = site.person(10_000_000).await;
    let old = format!("{:#x}", person.done(&["network"])["block"].as_u64().unwrap());
    // From the first question about events on it is behind for a while.
    let begun = Arc::new(OnceLock::new());
    let change = move |mut asked: Value| {
        let (begun, old) = (begun.clone(), old.clone());
        async move {
            let method = asked["method"].as_str().unwrap().to_string();
            if method == "eth_getLogs" {
                begun.get_or_init(Instant::now);
            }
            if begun.get().is_some_and(|begun| begun.elapsed() < Duration::from_secs(2)) {
                if method == "eth_getLogs" {
                    return Err(serde_json::json!({ "jsonrpc": "2.0", "id": asked["id"], "result": [] }));
                } else if method == "eth_call" {
                    asked["params"][1] = old.into();
                }
            }
            Ok(asked)
        }
    };
    person.url = before(&person.url, change).await;
    let mut follow = person
        .command(&["task", "create", "--input-digest", DIGEST, "--fee", "70000", "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(follow.stdout.take().unwrap())).map(Result::unwrap);
    while !lines.next().expect("it ends before the task began").contains("TaskStarted") {}
    operator.answers(1).await;
    assert!(lines.any(|line| line.contains("TaskSucceeded")));
    assert!(follow.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_a_reorganisation_made_anothers_is_not_followed() {
    let mut site = Site::new(&[]).await;
    site.operator().await;
    let (mut person, other) = (site.person(10_000_000).await, site.person(10_000_000).await);
    let rpc = async |method: &str, params: Value| -> Value { site.world.muster.endpoints().ask(method, params).await.unwrap() };
    let snapshot = rpc("evm_snapshot", serde_json::json!([])).await;
    // The first question about events waits until the chain was reorganised.
    let (asks, over) = (Arc::new(Notify::new()), tokio::sync::watch::channel(false).0);
    let (asked_for, done) = (asks.clone(), over.subscribe());
    let change = move |asked: Value| {
        let (asks, mut done) = (asked_for.clone(), done.clone());
        async move {
            if asked["method"] == "eth_getLogs" {
                asks.notify_one();
                done.wait_for(|over| *over).await.unwrap();
            }
            Ok(asked)
        }
    };
    person.url = before(&person.url, change).await;
    let follow = person
        .command(&["task", "create", "--input-digest", DIGEST, "--fee", "70000", "--follow"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    tokio::time::timeout(Duration::from_mins(5), asks.notified()).await.expect("it does not follow");
    assert_eq!(rpc("evm_revert", serde_json::json!([snapshot])).await, true);
    assert_eq!(task(&other, "80000"), 1);
    over.send_replace(true);
    let output = follow.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("a reorganisation of the chain made task 1 another one"), "{said}");
}

#[tokio::test]
async fn what_is_watched_is_json_and_ends_with_its_reader() {
    let mut site = Site::new(&[]).await;
    let _operator = site.operator().await;
    let person = site.person(10_000_000).await;
    let from = person.done(&["network"])["block"].to_string();
    let create = ["task", "create", "--kind", "images", "--model", "sdxl", "--input-digest", DIGEST, "--fee", "70000"];
    let id = created(&person.done(&create));
    // By the name that it had before, too.
    person.done(&[&["task", "create", "--kind", "sd"], &create[4..]].concat());
    let mut watch =
        person.command(&["watch", "--json", "--from", &from]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(watch.stdout.take().unwrap()));
    let event = lines
        .by_ref()
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
        .find(|event| event["event"] == "TaskCreated");
    let values = &event.unwrap()["values"];
    assert_eq!(values["id"], id.to_string());
    let spec = &values["spec"];
    assert_eq!(
        (&spec["kind"], &spec["units"], &spec["inputDigest"]),
        (&Value::from(0), &Value::from(1), &Value::from(DIGEST)),
        "{values}"
    );
    assert_eq!(spec["models"], serde_json::json!([muster_client::abi::model_id("sdxl").to_string()]));
    // As behind `| head`.
    drop(lines);
    let begun = std::time::Instant::now();
    while watch.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < std::time::Duration::from_mins(2), "it goes on although nobody reads");
        person.done(&["task", "create", "--input-digest", OTHER, "--fee", "70000"]);
    }
    let output = watch.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !text.contains("panicked"), "{text}");
    assert!(!text.contains("Broken pipe"), "{text}");
}

/// A site whose chain makes blocks by hand alone, until this is dropped.
struct Still<'a>(&'a Site);

impl<'a> Still<'a> {
    fn new(site: &'a Site) -> Self {
        site.world.node.unwrap().chain().set_automine(false);
        Self(site)
    }

    fn mine(&self) {
        self.0.world.node.unwrap().chain().mine(1, 0).unwrap();
    }
}

impl Drop for Still<'_> {
    fn drop(&mut self) {
        self.0.world.node.unwrap().chain().set_automine(true);
    }
}

const OTHER: &str = "0x0808080808080808080808080808080808080808080808080808080808080808";

#[tokio::test]
async fn what_was_mined_unseen_is_not_paid_again() {
    let mut site = Site::new(&[]).await;
    // Nobody here makes another's node produce blocks.
    if site.world.node.is_none() {
        return;
    }
    let operator = site.operator().await;
    let person = site.person(10_000_000).await;
    let owner = site.is(site.world.key.to_bytes());
    let tasks = || person.done(&["network"])["tasks"].as_str().unwrap().parse::<u64>().unwrap();
    let create = ["task", "create", "--input-digest", DIGEST, "--fee", "70000"];
    let hasty = |arguments: &[&str]| {
        let still = Still::new(&site);
        person.fails(5, &[arguments, &["--wait", "1"]].concat());
        still.mine();
    };
    hasty(&create);
    assert_eq!(tasks(), 1);
    // Another command of the account learns that it was mined.
    person.done(&["task", "create", "--input-digest", OTHER, "--fee", "70000"]);
    let report = person.done(&create);
    assert_eq!((created(&report), &report["earlier"], tasks()), (1, &Value::Bool(true), 2));
    // After the report, the same command creates new tasks.
    let report = person.done(&create);
    assert_eq!((created(&report), &report["earlier"], tasks()), (3, &Value::Bool(false), 3));

    // The computed least fee is no part of the request.
    let least = ["task", "create", "--input-digest", DIGEST];
    hasty(&least);
    owner.done(&["admin", "set", "minPrice", "2"]);
    let report = person.done(&least);
    assert_eq!((created(&report), &report["earlier"], tasks()), (4, &Value::Bool(true), 4));

    // Nor is stake raised twice.
    let raise = ["node", "raise-stake", "1_000_000"];
    {
        let still = Still::new(&site);
        operator.fails(5, &[&raise[..], &["--wait", "1"]].concat());
        still.mine();
    }
    // Also after a run to which another seemed to have used the number, since no node had the receipt.
    for file in files(&operator.home.join("transactions")) {
        let text = fs::read_to_string(&file).unwrap();
        fs::write(file, text.replace("\"fate\":\"open\"", "\"fate\":\"displaced\"")).unwrap();
    }
    operator.done(&["node", "models", "--add", "llama"]);
    for raised in 1..=2 {
        operator.done(&raise);
        assert_eq!(wei(&operator.done(&["node", "status"])["stake"]), u128::from(LEAST) + raised * 1_000_000);
    }
}

#[tokio::test]
async fn of_many_tasks_none_is_paid_again_because_the_last_were_late() {
    let mut site = Site::new(&[]).await;
    // Nobody here makes another's node produce blocks.
    if site.world.node.is_none() {
        return;
    }
    site.operator().await;
    let (person, keeper) = (site.person(10_000_000).await, site.person(0).await);
    let tasks = || person.done(&["network"])["tasks"].as_str().unwrap().parse::<u64>().unwrap();
    // The first two calls have the same content.
    let inputs: Vec<PathBuf> = [0, 1].map(|input| site.homes.path().join(format!("input{input}"))).into();
    inputs.iter().for_each(|input| fs::write(input, input.to_str().unwrap()).unwrap());
    let given = std::iter::repeat_n(&inputs[0], 32).chain([&inputs[1]]);
    let given = given.flat_map(|input| ["--input", input.to_str().unwrap()]);
    let create: Vec<_> = ["task", "create", "--fee", "70000"].into_iter().chain(given).collect();
    for (mined, of) in [16, 32, 33].into_iter().enumerate() {
        let still = Still::new(&site);
        // Mined calls are reported, and only the next one is sent.
        let output = person.run(&[&create[..], &["--wait", "1", "--json"]].concat());
        assert_eq!(output.status.code(), Some(5));
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), mined + 1);
        still.mine();
        drop(still);
        assert_eq!(tasks(), of);
        // Draws that are due would come before the next call.
        let mut draws = 0;
        while keeper.done(&["network"])["pending"] != 0 {
            assert!(draws < 20, "they stay Pending");
            keeper.done(&["keeper", "--once"]);
            draws += 1;
        }
    }
    assert_eq!(person.done(&create)["earlier"], true);
    assert_eq!(tasks(), 33);
    assert_eq!(person.done(&create)["earlier"], false);
    assert_eq!(tasks(), 66);
}

#[tokio::test]
async fn keys_are_kept_encrypted() {
    let mut site = Site::new(&[]).await;
    let person = site.person(1_000_000).await;
    let password = site.homes.path().join("password");
    fs::write(&password, "s3cret pass\n").unwrap();
    let file = ["--password-file", password.to_str().unwrap()];
    let with = |arguments: &[&str]| person.command(&[arguments, &file[..], &["--json"]].concat()).output().unwrap();
    // A password that others can read is refused.
    allow(&password, 0o644);
    assert_eq!(with(&["account", "import", "mine"]).status.code(), Some(6));
    // But for a credential as systemd hands it over.
    allow(&password, 0o440);
    let given = |folder: &Path| {
        let arguments = [&["account", "import", "given", "--json"], &file[..]].concat();
        person.command(&arguments).env("CREDENTIALS_DIRECTORY", folder).output().unwrap().status.code()
    };
    assert_eq!(given(&person.home), Some(6));
    assert_eq!(given(site.homes.path()), Some(0));
    allow(&password, 0o444);
    assert_eq!(given(site.homes.path()), Some(6));
    allow(&password, 0o600);
    assert!(with(&["account", "import", "mine"]).status.success());
    assert_eq!(with(&["account", "import", "mine"]).status.code(), Some(6), "a key is not written over");
    fs::write(&password, "\ns3cret pass\n").unwrap();
    assert_eq!(with(&["account", "new", "open"]).status.code(), Some(6), "an empty password");
    fs::write(&password, "s3cret pass\n").unwrap();
    assert!(with(&["account", "new", "other"]).status.success());
    assert!(!with(&["account", "new", "../other"]).status.success());
    let names: Value = serde_json::from_slice(&with(&["account", "list"]).stdout).unwrap();
    assert_eq!(names, serde_json::json!(["given", "mine", "other"]));
    // As geth makes them.
    let kept: Value = serde_json::from_slice(&fs::read(person.home.join("keystore/mine")).unwrap()).unwrap();
    assert_eq!(kept["crypto"]["kdfparams"]["n"], 1 << 18);
    // By the file alone.
    let shown = person
        .command(&[&["account", "show", "--account", "mine", "--json"], &file[..]].concat())
        .env_remove("PRIVATE_KEY")
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["address"], format!("{:#x}", person.address()));
    // A flag goes before the environment; two flags are one too many.
    let kept = person.home.join("keystore/other");
    let other = [&["account", "show", "--keystore", kept.to_str().unwrap(), "--json"], &file[..]].concat();
    let out = person.command(&other).env("ETH_KEYSTORE_ACCOUNT", "mine").output().unwrap();
    let told: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(told["address"].is_string() && told["address"] != shown["address"], "{told}");
    let out = person.command(&[&other[..], &["--account", "mine"]].concat()).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    fs::write(&password, "another\n").unwrap();
    let wrong = with(&["account", "show", "--account", "mine"]);
    assert_eq!(wrong.status.code(), Some(6));
    // Neither secret is in any file of the home directory.
    fs::write(&password, "").unwrap();
    for path in files(site.homes.path()) {
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).to_lowercase();
        assert!(!text.contains(&person.key.to_string()[2..]) && !text.contains("s3cret"), "{}", path.display());
    }
}

fn allow(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn files(place: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[tokio::test]
async fn a_keeper_ends_what_others_left_and_earns_the_start_fees() {
    let mut site = Site::new(&[]).await;
    if !site.world.travels("a_keeper_ends_what_others_left_and_earns_the_start_fees") {
        return;
    }
    let operator = site.operator().await;
    let application = site.person(1_000_000).await;
    let keeper = site.person(0).await;
    let running = task(&application, "100000");
    let queued = task(&application, "50000");
    // Nothing is due.
    assert_eq!(keeper.done(&["keeper", "--once"])["calls"], 0);
    site.world.travel(6 * 3_600 + 10);
    let due = keeper.says(&["keeper", "--once", "--dry-run"]);
    assert_eq!(
        keeper.done(&["keeper", "--once", "--keep", "1000000000ether"])["calls"],
        0,
        "with less than that it pays for nothing"
    );
    assert!(due.contains(&format!("task {running} of node 1 expired")), "{due}");
    let book = keeper.done(&["keeper", "--once"]);
    // 2 % of each remaining fee; a task that has just gone to the freed node is not late yet.
    let account = site.world.muster.read(IMuster::accountCall { who: keeper.address() }).await.unwrap();
    assert_eq!(account.credit, wei(&book["earned"]));
    assert!(wei(&book["earned"]) >= 2_000, "{book}");
    assert!(wei(&book["gas"]) > 0);
    let shown = application.done(&["task", "show", &running.to_string()]);
    assert!(shown["state"].as_str().unwrap().contains("timed out"), "{shown}");
    let shown = application.done(&["task", "show", &queued.to_string()]);
    assert_ne!(shown["status"], 2, "{shown}");
    let why = operator.done(&["node", "why"]);
    assert!(why["missing"].as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains("H is")), "{why}");
    let csv = operator.says(&["node", "earnings", "--csv"]);
    assert!(csv.lines().any(|line| line.starts_with(&format!("{running},")) && line.contains(",timeout,0,98000,")), "{csv}");
    // A keeper for profit skips calls that earn less than their gas.
    assert_eq!(keeper.done(&["keeper", "--once", "--only-profit"])["calls"], 0);
}

#[tokio::test]
async fn a_keeper_takes_out_holders_that_hold_a_model_no_longer() {
    let mut site = Site::new(&[]).await;
    let (left, holder, keeper) = (site.operator().await, site.operator().await, site.person(0).await);
    for operator in [&left, &holder] {
        operator.done(&["node", "models", "--add", "llama"]);
    }
    left.done(&["node", "quit"]);
    holder.done(&["node", "models", "--remove", "llama"]);
    let number = holder.done(&["node", "status"])["node"].as_u64().unwrap() as u32;
    let holders = async |model: &str| {
        let call = IMuster::holdersCall { model: muster_client::abi::model_id(model), from: 0, count: 9 };
        site.world.muster.read(call).await.unwrap().numbers
    };
    assert_eq!((holders("sdxl").await.len(), holders("llama").await.len()), (2, 2));
    let both = ["keeper", "--once", "--purge", "sdxl", "--purge", "llama"];
    let due = keeper.says(&[&both[..], &["--dry-run"]].concat());
    assert_eq!(due.matches(" purged").count(), 3, "{due}");
    assert_eq!(keeper.done(&["keeper", "--once"])["calls"], 0, "none is asked for");
    assert_eq!(keeper.done(&both)["calls"], 3);
    assert_eq!((holders("sdxl").await, holders("llama").await), (vec![number], vec![]));
    assert_eq!(keeper.done(&both)["calls"], 0);
}

#[tokio::test]
async fn an_owner_rules_and_a_watcher_sees_it() {
    let site = Site::new(&[]).await;
    let owner = site.is(site.world.key.to_bytes());
    let from = owner.done(&["network"])["block"].as_u64().unwrap() + 1;
    owner.done(&["admin", "set", "limitMin", "90"]);
    owner.done(&["admin", "set", "unbonding", "3600"]);
    owner.fails(3, &["admin", "accept", "unbonding"]);
    owner.fails(3, &["admin", "set", "limitMin", "9999"]);
    owner.fails(1, &["admin", "set", "nonsense", "1"]);
    let parameters = owner.done(&["admin", "parameters"]);
    let row = |name: &str| parameters.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    assert_eq!(row("limitMin")["value"], "90");
    assert_eq!(row("unbonding")["proposed"]["value"], "3600");
    owner.done(&["admin", "stop"]);
    assert_eq!(owner.done(&["network"])["paused"], true);
    owner.done(&["admin", "start"]);

    let mut watch = owner.command(&["watch", "--json", "--from", &from.to_string()]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(watch.stdout.take().unwrap()));
    let seen: Vec<Value> = lines.take(4).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    watch.kill().unwrap();
    watch.wait().unwrap();
    let names: Vec<_> = seen.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["ParameterChanged", "ParameterProposed", "PausedChanged", "PausedChanged"]);
    assert_eq!(seen[0]["values"]["value"], "90");
    // Programs live for a year on the embedded node: none needs a renewal.
    let programs = owner.done(&["keepalive", "--within", "1"]);
    assert_eq!(programs.as_array().unwrap().len(), site.world.deployment.behind().count());
    assert!(programs
        .as_array()
        .unwrap()
        .iter()
        .all(|row| row["secondsLeft"].as_u64().unwrap() > 300 * 86_400 && row["done"] == ""));
}

/// The task of node 1, of this number or a later one: a node's record keeps its last task.
async fn given(account: &Account, first: u64) -> u64 {
    loop {
        let view = account.muster().read(IMuster::nodeCall { number: 1 }).await.unwrap();
        if view.task >= first {
            return view.task;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_goes_in_and_a_picture_comes_out() {
    let mut site = Site::new(&[]).await;
    let operator = site.operator().await;
    let person = site.person(1_000_000).await;
    let at = |name: &str| site.homes.path().join(name).to_str().unwrap().to_string();
    let (prompt, picture, store, liar) = (at("prompt.json"), at("picture.png"), at("store"), at("liar"));
    fs::write(&prompt, "{\"prompt\":\"a muster\"}").unwrap();

    // Nothing is paid if no store takes the input.
    let task = ["--kind", "sd", "--input", &prompt, "--fee", "70000", "--receipt"];
    let before = person.done(&["account", "show"])["balance"].clone();
    let nowhere = format!("{prompt}/below");
    let refused = person.fails(1, &[&["task", "create", "--store", &nowhere], &task[..]].concat());
    assert!(refused["error"].as_str().unwrap().contains("nothing was paid: no store takes the input"), "{refused}");
    // Nor if the result has no place.
    for (out, why) in [(format!("{picture}/below"), "there is no directory"), (at(""), "is a directory")] {
        let refused = person.fails(1, &[&["task", "run", "--out", &out, "--store", &store], &task[..]].concat());
        let said = refused["error"].as_str().unwrap();
        assert!(said.contains("nothing was paid: ") && said.contains(why), "{refused}");
    }
    assert_eq!(person.done(&["account", "show"])["balance"], before);

    // The node's program: finds the input by its digest, and puts a result beside it.
    let result = b"\x89PNG, or so".to_vec();
    let (stores, digest) = (Stores::open(&[&store], Bounds::default()).unwrap(), digest_of(&fs::read(&prompt).unwrap()));
    let node = {
        let (account, stores, result) = (operator.account().await, stores.clone(), result.clone());
        tokio::spawn(async move {
            let id = given(&account, 1).await;
            assert!(stores.get(digest).await.unwrap().bytes.starts_with(b"{\"prompt\""));
            let (result_digest, _) = stores.put(&result).await.unwrap();
            account.call(IMuster::submitCall { id, resultDigest: result_digest }, U256::ZERO).await.unwrap();
            id
        })
    };
    let report = person.done(&[&["task", "run", "--out", &picture, "--store", &store], &task[..]].concat());
    let id = node.await.unwrap();
    assert_eq!((report["id"].as_str(), report["bytes"].as_u64()), (Some(&*id.to_string()), Some(result.len() as u64)));
    assert_eq!(fs::read(&picture).unwrap(), result);

    // Later, and by other stores, of which one lies.
    let found = digest_of(&result);
    fs::create_dir(&liar).unwrap();
    fs::write(format!("{liar}/{}", &found.to_string()[2..]), b"something else").unwrap();
    fs::remove_file(&picture).unwrap();
    let id = id.to_string();
    let fetch = ["task", "result", &id, "--out", &picture, "--store", &liar];
    let report = person.done(&[&fetch[..], &["--store", &store]].concat());
    assert_eq!(fs::read(&picture).unwrap(), result);
    assert!(report["attempts"][0].as_str().unwrap().contains("corrupt"), "{report}");
    // Gone from where the node says that it is: the error is in words, not codes.
    fs::remove_file(&picture).unwrap();
    let lost = person.fails(1, &fetch);
    let said = lost["error"].as_str().unwrap();
    assert!(
        said.contains("ask the node's operator") && said.contains("was answered by node 1") && said.contains("corrupt"),
        "{said}"
    );
    assert!(!std::path::Path::new(&picture).exists());
    assert_eq!(person.says(&["task", "result", &id]).trim(), found.to_string());
}

/// A text that is read while its node makes it, and one that is not the node's answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_printed_while_it_is_made_and_the_chain_says_whether_it_is_the_answer() {
    let mut site = Site::new(&[]).await;
    let operator = site.operator().await;
    let person = site.person(1_000_000).await;
    let at = |name: &str| site.homes.path().join(name).to_str().unwrap().to_string();
    let (prompt, answer, store) = (at("prompt.txt"), at("answer.json"), at("store"));
    fs::write(&prompt, "a prompt").unwrap();
    let result = r#"{"model":"m","answers":[{"text":"Once \u001bupon a time","tokens":4,"end":"stop"}]}"#;
    // As a node's agent serves it, up to the middle of the text.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    operator.done(&["stores", "set", &format!("stream+http://{}/stream", listener.local_addr().unwrap())]);
    let (first, _) = result.split_at(48);
    let piece = serde_json::json!({ "from": 0, "text": first, "after": digest_of(first.as_bytes()) });
    let said = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: piece\ndata: {piece}\n\n");
    let (reads, read) = tokio::sync::watch::channel(0);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(tokio::io::AsyncReadExt::read_u8(&mut stream).await.unwrap());
            }
            tokio::io::AsyncWriteExt::write_all(&mut stream, said.as_bytes()).await.unwrap();
            reads.send_modify(|count| *count += 1);
            // It is left open.
            std::mem::forget(stream);
        }
    });
    let run = ["task", "run", "--stream", "--kind", "gpt", "--out", &answer, "--store", &store, "--input", &prompt, "--inside"];
    let run = [&run[..], &["--fee", "70000", "--receipt"]].concat();
    for (turn, given_result) in [(1, result), (2, "another")] {
        let node = {
            let (account, place, mut read) = (operator.account().await, store.clone(), read.clone());
            tokio::spawn(async move {
                let id = given(&account, turn).await;
                // It answers when somebody has begun to read.
                read.wait_for(|count| *count >= turn).await.unwrap();
                let stores = Stores::open(&[&place], Bounds::default()).unwrap();
                let (digest, _) = stores.put(given_result.as_bytes()).await.unwrap();
                account.call(IMuster::submitCall { id, resultDigest: digest }, U256::ZERO).await.unwrap();
            })
        };
        if turn == 1 {
            let said = person.says(&run);
            assert!(said.contains("Once \u{fffd}upon a time\n"), "{said:?}");
            assert_eq!(fs::read_to_string(&answer).unwrap(), result);
            fs::remove_file(&answer).unwrap();
        } else {
            let failed = person.fails(1, &run);
            let said = failed["error"].as_str().unwrap();
            assert!(said.contains("the node's answer differs from its stream") && said.contains("task result"), "{said}");
            assert!(!std::path::Path::new(&answer).exists());
        }
        node.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_prompt_is_read_by_the_node_alone_and_its_picture_by_who_asked() {
    let mut site = Site::new(&[]).await;
    let operator = site.operator().await;
    let person = site.person(1_000_000).await;
    let at = |name: &str| site.homes.path().join(name).to_str().unwrap().to_string();
    let (prompt, picture, store) = (at("prompt.json"), at("picture.png"), at("store"));
    fs::write(&prompt, "a secret prompt").unwrap();
    let run =
        ["task", "run", "--out", &picture, "--store", &store, "--input", &prompt, "--fee", "70000", "--private", "--receipt"];
    // Nobody could read it.
    let refused = person.fails(1, &run);
    assert!(
        refused["error"].as_str().unwrap().contains("nothing was paid: 1 nodes that could be drawn publish no key"),
        "{refused}"
    );
    assert!(!std::path::Path::new(&store).exists());

    let key = Private::of(&PrivateKeySigner::from_bytes(&operator.key).unwrap());
    operator.done(&["stores", "set", &key.entry()]);
    let result = b"\x89PNG, or so".to_vec();
    let node = {
        let (account, place, result) = (operator.account().await, store.clone(), result.clone());
        tokio::spawn(async move {
            let id = given(&account, 1).await;
            let [sealed] = &*fs::read_dir(&place).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>() else {
                panic!("one input")
            };
            let opened = key.open_input(&fs::read(sealed).unwrap()).unwrap();
            assert_eq!(opened.input, b"a secret prompt");
            let (digest, stores) = (digest_of(&result), Stores::open(&[&place], Bounds::default()).unwrap());
            stores.put_private(digest, &seal_result(&result, &opened.reply.unwrap()).unwrap()).await.unwrap();
            account.call(IMuster::submitCall { id, resultDigest: digest }, U256::ZERO).await.unwrap();
            id
        })
    };
    person.done(&run);
    assert_eq!(fs::read(&picture).unwrap(), result);
    let id = node.await.unwrap().to_string();
    let fetch = ["task", "result", &id, "--out", &picture, "--store", &store];
    let lost = person.fails(1, &fetch);
    assert!(lost["error"].as_str().unwrap().contains("corrupt"), "{lost}");
    person.done(&[&fetch[..], &["--private"]].concat());
}

#[tokio::test]
async fn an_owner_proposes_withdraws_and_hands_calls_over() {
    let site = Site::new(&[]).await;
    let owner = site.is(site.world.key.to_bytes());
    let other = Address::repeat_byte(7).to_string();
    let program = site.world.deployment.programs["lens"].address.to_string();
    owner.done(&["admin", "propose-programs", &program, "withdraw", "0x01020304"]);
    owner.done(&["admin", "set", "unbonding", "3600"]);
    owner.done(&["admin", "propose-treasury", &other]);
    owner.done(&["admin", "transfer-ownership", &other]);
    // One that was never activated.
    if site.world.node.is_some() {
        let idle = Address::repeat_byte(0x71).to_string();
        let set = serde_json::json!([&idle, "0xeff0000000"]);
        let _: Value = site.world.muster.endpoints().ask("anvil_setCode", set).await.unwrap();
        for what in ["propose-programs", "accept-programs"] {
            let said = owner.fails(1, &["admin", what, &idle, "withdraw"]);
            assert!(said["error"].as_str().unwrap().contains("does not run: "), "{said}");
        }
    }
    let rows = || {
        let found = owner.done(&["admin", "proposals"]);
        let row = |row: &Value| ["kind", "what", "to"].map(|name| row[name].as_str().unwrap().to_string());
        found.as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    let wanted = [
        ["parameter", "unbonding", "3600"],
        ["treasury", "treasury", &other],
        ["ownership", "owner", &other],
        ["programs", "withdraw(address) 0x01020304", &program],
    ];
    assert_eq!(rows(), wanted);
    let early = owner.fails(3, &["admin", "accept-programs", &program, "withdraw(address)", "0x01020304"]);
    assert_eq!(early["refusal"], "TooEarly");
    owner.done(&["admin", "withdraw-programs", &program, "withdraw", "0x01020304"]);
    owner.done(&["admin", "propose-treasury", &Address::ZERO.to_string()]);
    owner.done(&["admin", "transfer-ownership", &Address::ZERO.to_string()]);
    owner.done(&["admin", "withdraw-parameter", "unbonding"]);
    assert_eq!(rows(), [["parameter", "unbonding", "86400"]]);
    let none = owner.fails(1, &["admin", "withdraw-parameter", "minStake"]);
    assert!(none["error"].as_str().unwrap().contains("no change of minStake is proposed"), "{none}");
    owner.fails(1, &["admin", "renounce-upgrades"]);

    // For another sender, without a key and without sending anything.
    let without = |arguments: &[&str]| {
        let output = owner.command(arguments).env_remove("PRIVATE_KEY").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (data, said) = without(&["admin", "--calldata", "stop"]);
    assert_eq!(data.trim(), alloy::primitives::Bytes::from(IMuster::setPausedCall { on: true }.abi_encode()).to_string());
    assert!(said.contains(&owner.address().to_string()), "{said}");
    assert_eq!(owner.done(&["network"])["paused"], false);
    // A present refusal is printed as a warning.
    let (_, said) = without(&["admin", "--calldata", "accept", "unbonding"]);
    assert!(said.contains("refused: TooEarly"), "{said}");
    let file = site.homes.path().join("batch.json");
    without(&["admin", "--safe", file.to_str().unwrap(), "set", "limitMin", "90"]);
    without(&["admin", "list-gpu", "65536", "--safe", file.to_str().unwrap()]);
    let batch: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let calls = batch["transactions"].as_array().unwrap();
    let set = IMuster::setParameterCall { parameter: 5, value: U256::ZERO }.abi_encode();
    assert_eq!((calls.len(), &calls[0]["to"]), (2, &serde_json::json!(site.world.muster.address())));
    assert_eq!(calls[0]["data"].as_str().unwrap()[..10], alloy::primitives::Bytes::from(set).to_string()[..10]);
    assert_eq!(batch["meta"]["createdFromSafeAddress"], serde_json::json!(owner.address()));
}

#[tokio::test]
async fn an_exporter_tells_what_owners_watch_also_when_programs_have_expired() {
    let mut site = Site::new(&[]).await;
    if !site.world.travels("an_exporter_tells_what_owners_watch_also_when_programs_have_expired") {
        return;
    }
    let owner = site.is(site.world.key.to_bytes());
    site.operator().await;
    let application = site.person(1_000_000).await;
    task(&application, "100000");
    task(&application, "50000");
    owner.done(&["admin", "propose-treasury", &Address::repeat_byte(7).to_string()]);
    site.world.travel(100);
    let text = owner.says(&["exporter", "--once"]);
    let has = |text: &str, line: &str| text.lines().any(|found| found.starts_with(line));
    for line in [
        "muster_tasks_queued 1.0",
        "muster_queue_oldest_seconds 100.0",
        "muster_nodes_joined 1.0",
        "muster_draws_due 0.0",
        "muster_reserve_wei ",
        "muster_proposal_effective_timestamp_seconds{kind=\"treasury\"",
        "muster_part_up{part=\"proposals\"} 1.0",
    ] {
        assert!(has(&text, line), "{line}: {text}");
    }
    let up = |text: &str, value: &str| {
        text.lines().filter(|line| line.starts_with("muster_program_up{") && line.ends_with(value)).count()
    };
    let programs = site.world.deployment.behind().count();
    assert_eq!(up(&text, " 1.0"), programs, "{text}");

    // One endpoint is of another chain, and one is away; the third has two names, and is believed.
    let stranger = stranger();
    let (other, own) = (stranger.url(), site.url.replace("127.0.0.1", "localhost"));
    let urls = [site.url.as_str(), &own, &other, "http://127.0.0.1:1"].join(",");
    let text = owner.says(&["exporter", "--once", "--rpc-url", &urls]);
    for (url, metric, value) in [
        (own.as_str(), "up", "1.0"),
        (&own, "contradicts", "0.0"),
        (&other, "up", "0.0"),
        (&other, "contradicts", "1.0"),
        ("http://127.0.0.1:1", "up", "0.0"),
        ("http://127.0.0.1:1", "contradicts", "0.0"),
    ] {
        let line = format!("muster_endpoint_{metric}{{endpoint=\"{}\"}} {value}", url.trim_end_matches('/'));
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    // An address in use is reported, with the flag to change it.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    for command in ["exporter", "keeper"] {
        let failed = owner.fails(1, &[command, "--listen", &at]);
        let said = failed["error"].as_str().unwrap();
        assert!(said.starts_with(&format!("cannot serve metrics at {at} (`--listen`): Address already in use")), "{said}");
    }

    // Too early is no trouble; in a dry run, due is.
    let rows = owner.done(&["--dry-run", "keepalive", "--within", "365"]);
    assert!(rows.as_array().unwrap().iter().all(|row| row["done"].as_str().unwrap().contains("cannot be renewed yet, 0 days")));
    site.world.travel(200 * 86_400);
    let file = site.homes.path().join("keepalive.prom");
    let failed = owner.fails(1, &["--dry-run", "keepalive", "--metrics", file.to_str().unwrap()]);
    let said = failed["error"].as_str().unwrap();
    assert_eq!(said.matches("to be renewed for").count(), programs, "{said}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(has(&text, &format!("muster_keepalive_trouble {programs}.0")), "{text}");

    // The program that lists the programs has expired with the others.
    site.world.travel(166 * 86_400);
    let text = owner.says(&["exporter", "--once"]);
    assert_eq!(up(&text, " 0.0"), programs, "{text}");
    assert!(has(&text, "muster_part_up{part=\"network\"} 0.0") && has(&text, "muster_part_up{part=\"programs\"} 1.0"), "{text}");
    let failed = owner.fails(1, &["keepalive", "--metrics", file.to_str().unwrap()]);
    let said = failed["error"].as_str().unwrap();
    assert_eq!(said.matches("it has expired, 366 days after it was activated").count(), programs, "{said}");
    let text = fs::read_to_string(file).unwrap();
    assert!(has(&text, &format!("muster_keepalive_trouble {programs}.0")), "{text}");
}

#[tokio::test]
async fn a_keeper_that_goes_on_serves_metrics_and_logs_in_json() {
    let mut site = Site::new(&[]).await;
    site.operator().await;
    let (keeper, application) = (site.person(0).await, site.person(1_000_000).await);
    let command = ["keeper", "--every", "1", "--listen", "127.0.0.1:0", "--log-json"];
    let mut running = keeper.command(&command).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = std::io::BufRead::lines(std::io::BufReader::new(running.stderr.take().unwrap()));
    let line: Value = serde_json::from_str(&log.next().unwrap().unwrap()).unwrap();
    assert_eq!(line["level"], "INFO");
    let said = line["message"].as_str().unwrap();
    let at = said.strip_prefix("metrics at http://").and_then(|rest| rest.strip_suffix("/metrics")).unwrap();
    application.done(&["task", "create", "--input-digest", DIGEST, "--fee", "70000"]);
    let metric = |name: &str| {
        let mut stream = std::net::TcpStream::connect(at).unwrap();
        let asked = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        std::io::Write::write_all(&mut stream, asked.as_bytes()).unwrap();
        let text = std::io::read_to_string(stream).unwrap();
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok())
    };
    let begun = std::time::Instant::now();
    while metric("muster_keeper_calls_total").unwrap() < 1.0 {
        assert!(begun.elapsed() < std::time::Duration::from_mins(2), "it draws nothing");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert!(metric("muster_keeper_gas_wei_total").unwrap() > 0.0 && metric("muster_keeper_balance_wei").unwrap() > 0.0);
    // It outlives a program that is missing, as after a bad upgrade.
    if site.world.node.is_some() {
        let slot = [B256::right_padding_from(&IMuster::pendingTasksCall::SELECTOR), B256::with_last_byte(9)].concat();
        let (endpoints, router, slot) =
            (site.world.muster.endpoints(), site.world.muster.address(), alloy::primitives::keccak256(slot));
        let former = endpoints.word(router, slot).await.unwrap();
        let lead = async |to: B256| {
            let _: Value = endpoints.ask("anvil_setStorageAt", serde_json::json!([router, slot, to])).await.unwrap();
        };
        lead(B256::ZERO).await;
        let warned = log.map(Result::unwrap).find(|line| line.contains("UnknownFunction"));
        assert!(warned.is_some_and(|line| line.contains("WARN")), "it has ended");
        lead(former).await;
        let looked = metric("muster_keeper_looked_timestamp_seconds").unwrap();
        while metric("muster_keeper_looked_timestamp_seconds").is_none_or(|now| now <= looked) {
            assert!(begun.elapsed() < std::time::Duration::from_mins(4), "it looks no more");
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    }
    running.kill().unwrap();
    running.wait().unwrap();
}

#[tokio::test]
async fn a_signer_elsewhere_signs_for_an_operator() {
    let site = Site::new(&[]).await;
    // The embedded node signs for its accounts, as geth does.
    if site.world.node.is_none() {
        return;
    }
    let nobody = site.is(B256::repeat_byte(1));
    let endpoints = Endpoints::new(&[&site.url], Settings::default()).unwrap();
    let accounts: Vec<Address> = endpoints.ask("eth_accounts", serde_json::json!([])).await.unwrap();
    let account = *accounts.last().unwrap();
    let with = |place: &str, arguments: &[&str]| {
        let output = nobody.command(&[arguments, &["--json"]].concat()).env("MUSTER_SIGNER", place).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).to_string();
        (output.status.code(), serde_json::from_str::<Value>(said.lines().last().unwrap()).unwrap())
    };
    let place = format!("{}#{account}", site.url);
    let (code, shown) = with(&place, &["account", "show"]);
    assert_eq!((code, &shown["address"]), (Some(0), &serde_json::json!(account)));
    let join = ["node", "join", "--gpu", "NVIDIA RTX 4090", "--plain", "--vram", "24"];
    assert_eq!(with(&place, &join).0, Some(0));
    assert_eq!(with(&place, &["node", "status"]).1["operator"], serde_json::json!(account));
    // With several accounts, one must be chosen, and one that exists.
    let (code, said) = with(&site.url, &["node", "pause"]);
    assert_eq!(code, Some(6), "{said}");
    assert_eq!(with(&format!("{}#{}", site.url, Address::repeat_byte(1)), &["node", "pause"]).0, Some(6));
    // A feature missing from this build is named.
    let (code, said) = with("aws:key", &["account", "show"]);
    assert!(cfg!(feature = "aws") || code == Some(6) && said["error"].as_str().unwrap().contains("the feature `aws`"), "{said}");
    let wrong = nobody.command(&["account", "show"]).env("MUSTER_SIGNER", "elsewhere").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}
