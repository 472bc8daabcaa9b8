//! `muster-dev` as its users run it, against the embedded node and the compiled programs of `build/`.

use std::{fs, path::PathBuf, process::Command};

use alloy::{
    primitives::{keccak256, Address, Bytes, FixedBytes, B256, U256},
    rpc::types::TransactionReceipt,
    signers::local::PrivateKeySigner,
    sol_types::SolCall,
};
use muster_cli::{
    build,
    chain::Chain,
    demo::books,
    deploy::{self, Config},
    estimate::{estimate, Estimate},
    router::{bound_initcode, initcode},
};
use muster_client::{Account, IMuster, Muster, Reason, Refusal, Request, Sender};
use muster_devnode::{
    chain::{Clock, NITRO_DEV_KEY},
    Devnode,
};
use muster_protocol::parameters::number_of;
use tempfile::TempDir;

const OWNER: Address = Address::repeat_byte(0x0a);
const TREASURY: Address = Address::repeat_byte(0x0b);

fn node() -> Devnode {
    Devnode::start(muster_devnode::Config::default()).unwrap()
}

fn wallet() -> PrivateKeySigner {
    NITRO_DEV_KEY.parse().unwrap()
}

/// A word with this number.
fn word(number: u64) -> B256 {
    U256::from(number).into()
}

/// The contract on a chain.
fn contract(chain: &Chain, address: Address) -> Muster {
    Muster::at(chain.endpoints.clone(), address)
}

/// Creates a contract.
async fn create(chain: &Chain, account: &Sender, initcode: Bytes) -> TransactionReceipt {
    chain.send(account, Request { input: initcode, ..Request::default() }).await.unwrap()
}

fn config(file: Option<PathBuf>) -> Config {
    let (manifest, programs) = build::load(&build::root().unwrap()).unwrap();
    Config {
        owner: OWNER,
        treasury: TREASURY,
        stake_unit: 1_000_000_000_000,
        minimum_stake: 400_000_000_000_000_000_000,
        upgrade_delay: 604_800,
        minimum_price: None,
        parameters: Vec::new(),
        programs,
        rustc: manifest.rustc,
        file,
        safe: None,
        say: |_| {},
    }
}

fn muster(arguments: &[&str], environment: &[(&str, &str)]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_muster-dev"))
        .args(arguments)
        .env_remove("RPC_URL")
        .env_remove("PRIVATE_KEY")
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

#[tokio::test]
async fn deploying_again_sends_nothing_and_mends_what_is_missing() {
    let node = node();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("412346.json");
    let chain = Chain::connect(&node.url()).await.unwrap();
    let deploy = async || {
        let account = chain.account(wallet()).await?;
        deploy::on(&chain, &account, &config(Some(file.clone()))).await
    };
    let first = deploy().await.unwrap();
    let sent = async || chain.endpoints.count(wallet().address()).await.unwrap();
    let all = 2 * first.programs.len() as u64;
    assert_eq!(sent().await, all, "create and activate each program, create and install the router");
    for (name, program) in &first.programs {
        let code = chain.endpoints.code(program.address).await.unwrap();
        assert_eq!(program.code_hash, keccak256(&code), "{name}");
        assert_eq!(program.activated_in.is_some(), name != "router", "{name}");
    }

    // The deployer is not the owner.
    let at = contract(&chain, first.address);
    assert_eq!((first.deployer, at.read(IMuster::ownerCall {}).await.unwrap()), (wallet().address(), OWNER));
    assert_eq!(at.read(IMuster::overviewCall {}).await.unwrap().treasury, TREASURY);

    assert_eq!(deploy().await.unwrap(), first);
    assert_eq!(sent().await, all);

    // As if a run had stopped before it could write that the router is there: only that is done again.
    let mut stopped = first.clone();
    stopped.programs.remove("router");
    fs::write(&file, serde_json::to_string(&stopped).unwrap()).unwrap();
    let third = deploy().await.unwrap();
    assert_ne!(third.address, first.address);
    assert_eq!(third.programs["tasks"], first.programs["tasks"]);
    assert_eq!(sent().await, all + 2, "create and install");

    // A record that names other code than the built one is not believed; nor is a router that then leads to programs which the record does
    // not know.
    let mut wrong = third.clone();
    wrong.programs.get_mut("lens").unwrap().address = third.programs["tasks"].address;
    fs::write(&file, serde_json::to_string(&wrong).unwrap()).unwrap();
    let error = deploy().await.unwrap_err();
    let lens = third.programs["lens"].address;
    assert!(format!("{error:#}").contains(&format!("to {lens:?}, which this deployment's record does not know")), "{error:#}");

    fs::write(&file, "{").unwrap();
    let error = deploy().await.unwrap_err();
    assert!(format!("{error:#}").contains("mend or remove it"), "{error:#}");
}

/// A chain with a deployment, whose router can be replaced.
struct Site {
    _node: Devnode,
    _dir: TempDir,
    file: PathBuf,
    chain: Chain,
    account: Sender,
}

impl Site {
    async fn new() -> Self {
        let node = node();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("412346.json");
        let chain = Chain::connect(&node.url()).await.unwrap();
        let account = chain.account(wallet()).await.unwrap();
        deploy::on(&chain, &account, &config(Some(file.clone()))).await.unwrap();
        Self { _node: node, _dir: dir, file, chain, account }
    }

    /// Puts a router created by `initcode` into the record, as one that is not installed yet.
    async fn replace(&mut self, initcode: Bytes) -> Muster {
        let mut record = deploy::read(&self.file).unwrap().unwrap();
        let created = create(&self.chain, &self.account, initcode).await;
        let router = record.programs.get_mut("router").unwrap();
        router.address = created.contract_address.unwrap();
        router.created_in = created.transaction_hash;
        record.address = router.address;
        record.installed_in = None;
        // As if the settings were others when it was created.
        record.minimum_stake = "1".into();
        fs::write(&self.file, serde_json::to_string(&record).unwrap()).unwrap();
        contract(&self.chain, record.address)
    }

    async fn deploy(&mut self) -> anyhow::Result<deploy::Deployment> {
        deploy::on(&self.chain, &self.account, &config(Some(self.file.clone()))).await
    }
}

#[tokio::test]
async fn only_the_account_that_created_a_router_can_install_it() {
    let mut site = Site::new().await;
    let deployer = site.account.address();
    let muster = site.replace(bound_initcode(&muster_router::code(), deployer)).await;
    let holder = site.chain.endpoints.word(muster.address(), word(4)).await.unwrap();
    assert_eq!(holder, deployer.into_word(), "the deployer, and stake unit 0");

    // An attacker would have their own program write where everybody's money is. Here push1 1, push1 0, sstore.
    let evil = create(&site.chain, &site.account, initcode(&[0x60, 1, 0x60, 0, 0x55])).await.contract_address.unwrap();
    let install = IMuster::installCall { program: evil, call: Bytes::new() };
    let error = muster.try_as(Address::repeat_byte(0xee), install, U256::ZERO).await.err().unwrap();
    assert!(matches!(error.refusal(), Some(Refusal::Known(Reason::NotOwner(_)))), "{error}");

    let mut record = site.deploy().await.unwrap();
    assert_eq!(record.address, muster.address());
    assert_eq!(record.minimum_stake, config(None).minimum_stake.to_string());
    assert_eq!(muster.read(IMuster::ownerCall {}).await.unwrap(), OWNER);

    // As if the run had stopped before it could write that: how the router was created is looked at once more.
    record.installed_in = None;
    let keep = |record: &deploy::Deployment| fs::write(&site.file, serde_json::to_string(record).unwrap()).unwrap();
    keep(&record);
    let config = || config(Some(site.file.clone()));
    assert_eq!(deploy::on(&site.chain, &site.account, &config()).await.unwrap(), record);
    let other = record.programs["lens"].created_in;
    record.programs.get_mut("router").unwrap().created_in = other;
    keep(&record);
    let error = format!("{:#}", deploy::on(&site.chain, &site.account, &config()).await.unwrap_err());
    assert!(error.contains("cannot be trusted") && error.contains(&format!("{other:?} did not create it")), "{error}");
}

#[tokio::test]
async fn a_router_that_may_have_been_touched_is_not_installed() {
    let mut site = Site::new().await;
    let deployer = site.account.address();
    // push1 1, push1 99, sstore: a word in a slot that nobody would look at.
    let mut planted = [&[0x60, 1, 0x60, 99, 0x55][..], &bound_initcode(&muster_router::code(), deployer)].concat();
    // Its return data begins five bytes further on.
    planted[5 + 24 + 35] += 5;
    for (initcode, words) in [
        (initcode(&muster_router::code()), &["did not create it bound to", "slot 4 is 0x000"][..]),
        (bound_initcode(&muster_router::code(), OWNER), &["did not create it bound to", "slot 4 is 0x000"]),
        (planted.into(), &["did not create it bound to"]),
    ] {
        site.replace(initcode).await;
        let error = format!("{:#}", site.deploy().await.unwrap_err());
        for part in words.iter().chain(&["remove the entry \"router\" from"]) {
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    // The right transaction, and words that were not there right after it.
    for (slot, value) in [(4, word(1)), (0, B256::repeat_byte(1)), (10, word(1))] {
        let muster = site.replace(bound_initcode(&muster_router::code(), deployer)).await;
        let set = (muster.address(), word(slot), value);
        let _: serde_json::Value = site.chain.endpoints.ask("anvil_setStorageAt", set).await.unwrap();
        let error = format!("{:#}", site.deploy().await.unwrap_err());
        assert!(error.contains(&format!("slot {slot} is {value:?}")), "{error}");
    }
}

#[tokio::test]
async fn a_router_that_was_told_something_else_is_refused() {
    let node = node();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("412346.json");
    let chain = Chain::connect(&node.url()).await.unwrap();
    let account = chain.account(wallet()).await.unwrap();
    let first = deploy::on(&chain, &account, &config(Some(file.clone()))).await.unwrap();
    let kept = || config(Some(file.clone()));
    let other = Address::repeat_byte(0xcc);
    for (config, words) in [
        (Config { owner: other, ..kept() }, format!("its owner is {OWNER:?}, not {other:?}")),
        (Config { treasury: other, ..kept() }, format!("its treasury is {TREASURY:?}, not {other:?}")),
        (Config { stake_unit: 2_000_000_000_000, ..kept() }, "its stake unit is 1000000000000 wei, not 2000000000000 wei".into()),
        (
            Config { minimum_stake: 1_000_000_000_000, ..kept() },
            "its minimum stake is 400000000000000000000 wei, not 1000000000000 wei".into(),
        ),
        (Config { upgrade_delay: 172_800, ..kept() }, "its upgrade delay is 604800 s, not 172800 s".into()),
    ] {
        let mut config = config;
        changed(&mut config, "lens");
        let sent = chain.endpoints.count(account.address()).await.unwrap();
        let error = format!("{:#}", deploy::on(&chain, &account, &config).await.unwrap_err());
        assert!(error.contains(&words), "{error}");
        assert_eq!(chain.endpoints.count(account.address()).await.unwrap(), sent, "no program is paid for");
    }

    // A function that leads where this deployment never let one lead, and one that can be called but is not listed.
    let set = async |slot: B256, value: B256| {
        let _: serde_json::Value = chain.endpoints.ask("anvil_setStorageAt", (first.address, slot, value)).await.unwrap();
    };
    let place = |selector: &[u8]| keccak256([selector, &[0; 28], &[0; 31], &[9]].concat());
    let (owner, lens) = (place(&IMuster::ownerCall::SELECTOR), first.programs["lens"].address);
    set(owner, other.into_word()).await;
    let error = format!("{:#}", deploy::on(&chain, &account, &kept()).await.unwrap_err());
    assert!(error.contains(&format!("leads owner to {other:?}, which this deployment's record does not know")), "{error}");
    set(owner, lens.into_word()).await;
    let length = U256::from_be_bytes(chain.endpoints.word(first.address, word(10)).await.unwrap().0);
    set(word(10), (length - U256::ONE).into()).await;
    let error = format!("{:#}", deploy::on(&chain, &account, &kept()).await.unwrap_err());
    assert!(error.contains("is not what its facets() says") && error.contains(", not nothing"), "{error}");
}

/// An account without ether.
fn poor(key: u8) -> PrivateKeySigner {
    PrivateKeySigner::from_bytes(&B256::repeat_byte(key)).unwrap()
}

/// Deploys with an account that has exactly the balance that the estimate demands, and compares its spending, and the cost of each
/// transaction.
async fn comes_true(chain: &Chain, wallet: PrivateKeySigner, config: &Config, estimate: &Estimate) -> deploy::Deployment {
    let account = chain.account(wallet).await.unwrap();
    let payer = account.address();
    let rich = Request { to: payer.into(), value: estimate.needed(), ..Request::default() };
    chain.send(&chain.account(crate::wallet()).await.unwrap(), rich).await.unwrap();
    let state = async || (chain.endpoints.balance(payer).await.unwrap(), chain.endpoints.count(payer).await.unwrap());
    let before = state().await;
    let deployed = deploy::on(chain, &account, config).await.unwrap();
    let after = state().await;
    let steps = estimate.steps.iter().filter(|step| step.cost.is_some()).count() as u64;
    assert_eq!(after.1 - before.1, steps, "{estimate}");
    let (spent, (_, _, total)) = (before.0 - after.0, estimate.total());
    let near = |is: U256, said: U256, percent: u64| is.abs_diff(said) * U256::from(100) <= said * U256::from(percent);
    // The refund of a cleared word is in no node's estimate.
    assert!(near(spent, total, if spent < total { 6 } else { 2 }), "{spent} spent, {total} estimated: {estimate}");
    for (name, program) in &deployed.programs {
        for (what, transaction) in [("create", Some(program.created_in)), ("activate", program.activated_in)] {
            let said = estimate.steps.iter().find(|step| step.what == format!("{what} {name}")).and_then(|step| step.cost);
            let (Some(said), Some(transaction)) = (said, transaction) else { continue };
            let receipt = chain.receipt(transaction).await.unwrap().unwrap();
            let (used, gas) = (receipt.gas_used, said.gas.unwrap());
            assert!(near(U256::from(used), U256::from(gas), 2), "{what} {name}: {used} used, {gas} estimated");
        }
    }
    deployed
}

#[tokio::test]
async fn the_dry_run_says_what_deploying_costs() {
    let node = node();
    let dir = tempfile::tempdir().unwrap();
    let config = config(Some(dir.path().join("412346.json")));
    let chain = Chain::connect(&node.url()).await.unwrap();
    let wallet = poor(9);
    let payer = wallet.address();

    // Fresh, and by an account without ether: every step, and the missing parts.
    let fresh = estimate(&chain, payer, &config).await.unwrap();
    let count = config.programs.len();
    assert_eq!(fresh.steps.len(), 2 * count + 2);
    assert!(fresh.steps.iter().all(|step| step.cost.is_some_and(|cost| cost.gas.is_some())), "{fresh}");
    assert_eq!(fresh.missing.len(), 1, "{:?}", fresh.missing);
    assert!(fresh.missing[0].contains(&format!("account {payer:?} has 0.0")), "{:?}", fresh.missing);
    assert_eq!(chain.endpoints.count(payer).await.unwrap(), 0);
    assert_eq!(chain.endpoints.head().await.unwrap().number, 0, "nothing was sent by anybody");

    // Half: a program that is created and not activated, and a record of it.
    let lens = config.programs.iter().find(|program| program.name == "lens").unwrap();
    let boss = chain.account(crate::wallet()).await.unwrap();
    let created = create(&chain, &boss, initcode(&lens.code)).await;
    let address = created.contract_address.unwrap();
    let record = serde_json::json!({
        "chain_id": chain.id, "address": Address::ZERO, "deployer": payer, "owner": OWNER, "treasury": TREASURY,
        "stake_unit": config.stake_unit, "minimum_stake": config.minimum_stake.to_string(), "installed_in": null, "rustc": "", "commit": null,
        "programs": { "lens": {
            "address": address, "code_hash": keccak256(&lens.code), "created_in": created.transaction_hash, "activated_in": null,
        } },
    });
    fs::write(config.file.as_ref().unwrap(), record.to_string()).unwrap();
    let half = estimate(&chain, payer, &config).await.unwrap();
    let step = |estimate: &Estimate, what: &str| estimate.steps.iter().find(|step| step.what == what).unwrap().clone();
    assert_eq!(step(&half, "create lens").cost, None);
    assert!(step(&half, "create lens").note.contains(&format!("{address:?}")));
    assert!(step(&half, "activate lens").cost.is_some());
    let deployed = comes_true(&chain, wallet.clone(), &config, &half).await;
    assert_eq!(deployed.address, half.address, "where it would be, it is");

    // Whole: nothing is left to send.
    let whole = estimate(&chain, payer, &config).await.unwrap();
    assert!(whole.steps.iter().all(|step| step.cost.is_none()) && whole.missing.is_empty(), "{whole}");
    assert_eq!((whole.needed(), whole.total().0), (U256::ZERO, 0));
    assert!(whole.to_string().contains(&format!("Nothing is left to send: Muster is at {:?}", deployed.address)));
    assert!(whole.renewals.iter().all(|renewal| renewal.fee.is_some_and(|fee| !fee.is_zero())), "{whole}");

    // A renewal costs its estimate, once it is possible.
    node.chain().increase_time(200 * 86_400).unwrap();
    node.chain().mine(1, 0).unwrap();
    let later = estimate(&chain, payer, &config).await.unwrap();
    let mut before = U256::ZERO;
    for renewal in &later.renewals {
        let hash = deployed.programs[&renewal.name].code_hash;
        let paid = muster_cli::arbwasm::keep_alive(&chain, &boss, &renewal.name, hash).await.unwrap();
        let (gas, fee) = (paid.receipt.gas_used, renewal.fee.unwrap());
        assert!(gas <= renewal.gas && gas * 100 > renewal.gas * 85, "{}: {gas} gas, {} estimated", renewal.name, renewal.gas);
        // Those before it have raised the price, which falls only with time.
        let percent = |of: U256, percent: u64| of * U256::from(percent) / U256::from(100);
        let most = percent(muster_cli::arbwasm::raised(fee, before), 101);
        assert!(paid.data_fee >= percent(fee, 99) && paid.data_fee <= most, "{}: {} of {most}", renewal.name, paid.data_fee);
        before += fee;
    }

    // Another router of the same code: its programs are active already.
    let anew = Config { file: None, ..config.clone() };
    let second = estimate(&chain, payer, &anew).await.unwrap();
    assert!(second.steps.iter().all(|step| step.cost.is_some() != step.what.starts_with("activate")), "{second}");
    comes_true(&chain, wallet, &anew, &second).await;
}

#[tokio::test]
async fn the_dry_run_is_a_command() {
    let mut settings = muster_devnode::Config::default();
    settings.chain.chain_id = 421_614;
    let node = Devnode::start(settings).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let url = node.url();
    let places = [("RPC_URL", url.as_str()), ("DEPLOYMENTS", dir.path().to_str().unwrap())];
    let from = format!("{:?}", poor(9).address());
    let out = muster(&["deploy", "--dry-run", "--from", &from], &places);
    let (table, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.status.code(), Some(1));
    for part in ["nothing is sent", "activate tasks", "initialise", "a year more of", "missing: MIN_PRICE is not set"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    // Each is said once.
    assert!(table.matches("MIN_PRICE is not set").count() == 1 && table.contains("send it"), "{table}");
    assert_eq!(errors, "muster-dev: it cannot be deployed so: see what is missing above\n");
    let out = muster(&["deploy", "--dry-run", "--json", "--from", &from], &places);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(errors.contains("MIN_PRICE is not set") && errors.contains("send it"), "{errors}");

    // Behind `| head` nobody reads on.
    let mut unread = Command::new(env!("CARGO_BIN_EXE_muster-dev"));
    unread.args(["deploy", "--dry-run", "--from", &from]).envs(places).env_remove("PRIVATE_KEY");
    let mut unread = unread.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(unread.stdout.take());
    let unread = unread.wait_with_output().unwrap();
    assert!(unread.status.success() && unread.stderr.is_empty(), "{}", String::from_utf8_lossy(&unread.stderr));

    let priced = [&places[..], &[("MIN_PRICE", "5"), ("PRIVATE_KEY", NITRO_DEV_KEY)]].concat();
    let out = muster(&["deploy", "--dry-run", "--json"], &priced);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let said: serde_json::Value = serde_json::from_slice(&out.stdout).expect("exactly one JSON object");
    let last = said["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["step"], &last["to_do"], &last["estimated_by"]),
        (&"setParameter minPrice".into(), &true.into(), &"computed".into())
    );
    assert_eq!(said["missing"], serde_json::json!([]));
    let chain = Chain::connect(&url).await.unwrap();
    assert_eq!(chain.endpoints.head().await.unwrap().number, 0);
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "nothing is recorded");

    // The parameter among the estimates that come true.
    let wallet = poor(9);
    let config = Config { owner: wallet.address(), minimum_price: Some(U256::from(5)), ..config(None) };
    let foreseen = estimate(&chain, wallet.address(), &config).await.unwrap();
    comes_true(&chain, wallet, &config, &foreseen).await;
    // With --json the record is one object as well.
    let out = muster(&["deploy", "--json"], &priced);
    let record: deploy::Deployment = serde_json::from_slice(&out.stdout).expect("exactly one JSON object");
    assert_eq!(record.chain_id, 421_614);
    // Beside a release's programs, the commit of the folder is another project's.
    let sources = build::root().unwrap();
    let out = muster(&["deploy", "--json"], &[&priced[..], &[(deploy::RELEASED, sources.to_str().unwrap())]].concat());
    let record: deploy::Deployment = serde_json::from_slice(&out.stdout).expect("exactly one JSON object");
    assert_eq!(record.commit, None);
    // The keys of the demonstration are known to everybody.
    let out = muster(&["demo"], &priced);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(1) && errors.contains("chain 421614 is no development chain"), "{errors}");
}

#[tokio::test]
async fn a_network_of_value_is_not_deployed_without_a_price() {
    let mut settings = muster_devnode::Config::default();
    settings.chain.chain_id = 421_614;
    let node = Devnode::start(settings).unwrap();
    let chain = Chain::connect(&node.url()).await.unwrap();
    let account = chain.account(wallet()).await.unwrap();
    let error = format!("{:#}", deploy::on(&chain, &account, &config(None)).await.unwrap_err());
    assert!(error.contains("MIN_PRICE is not set") && error.contains("chain 421614"), "{error}");
    assert_eq!(chain.endpoints.count(account.address()).await.unwrap(), 0);

    let price = U256::from(5_000_000_000_000u64);
    let own = Config { owner: account.address(), minimum_price: Some(price), ..config(None) };
    let twice = Config { parameters: vec![("minPrice".into(), U256::from(7))], ..own.clone() };
    let error = format!("{:#}", deploy::on(&chain, &account, &twice).await.unwrap_err());
    assert!(error.contains("say it once"), "{error}");
    let deployed = deploy::on(&chain, &account, &own).await.unwrap();
    let number = number_of("minPrice").unwrap();
    assert_eq!(contract(&chain, deployed.address).parameter(number).await.unwrap(), price);
}

/// Where hashes are soon forgotten, a draw can be waited out, and a sampled answer too.
#[tokio::test]
async fn a_chain_that_forgets_its_hashes_is_refused_before_anything_is_sent() {
    for (arbos, forgets) in [(39, true), (40, false)] {
        let mut settings = muster_devnode::Config::default();
        settings.chain.arbos_version = arbos;
        let node = Devnode::start(settings).unwrap();
        let chain = Chain::connect(&node.url()).await.unwrap();
        let account = chain.account(wallet()).await.unwrap();
        let missing = estimate(&chain, account.address(), &config(None)).await.unwrap().missing;
        let told = |fault: &String| fault.contains("keeps the hashes of 256 blocks only");
        assert_eq!(missing.iter().any(told), forgets, "{missing:?}");
        if forgets {
            let error = format!("{:#}", deploy::on(&chain, &account, &config(None)).await.unwrap_err());
            assert!(told(&error), "{error}");
            assert_eq!(chain.endpoints.count(account.address()).await.unwrap(), 0);
        }
    }
}

/// By the dry run, and by a run that is to deploy, which sends nothing.
#[tokio::test]
async fn settings_that_the_contract_would_refuse_are_named_before_anything_is_sent() {
    let node = node();
    let dir = tempfile::tempdir().unwrap();
    let url = node.url();
    let chain = Chain::connect(&url).await.unwrap();
    let account = chain.account(wallet()).await.unwrap();
    for (name, value, fault) in [
        ("UPGRADE_DELAY", "5", "UPGRADE_DELAY is 5 seconds, and must be from 172800 to 15552000 seconds"),
        ("MIN_STAKE", "0.0000000000001", "MIN_STAKE is 0.0000000000001 ether, and must be a whole multiple of STAKE_UNIT"),
        ("STAKE_UNIT", "999", "STAKE_UNIT is 999 wei, and must be 1000 wei at least"),
        ("TREASURY", "0x0000000000000000000000000000000000000000", "TREASURY is 0x0000000000000000000000000000000000000000"),
        ("PARAMETERS", "sampleBps=10001", "the parameter sampleBps is to be 10001, and must be from 0 to 10000"),
    ] {
        let places = [("RPC_URL", url.as_str()), ("DEPLOYMENTS", dir.path().to_str().unwrap()), ("PRIVATE_KEY", NITRO_DEV_KEY)];
        let environment = [&places[..], &[(name, value)]].concat();
        let out = muster(&["deploy", "--dry-run"], &environment);
        let shown = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.code() == Some(1) && shown.contains(&format!("missing: {fault}")), "{name}: {shown}");
        let out = muster(&["deploy"], &environment);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(1) && errors.contains(fault), "{name}: {errors}");
        assert_eq!(chain.endpoints.count(account.address()).await.unwrap(), 0, "{name}");
    }
}

#[tokio::test]
async fn the_owner_sets_parameters_and_moves_functions_to_new_code() {
    let node = node();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("412346.json");
    let chain = Chain::connect(&node.url()).await.unwrap();
    let own = poor(5);
    let owner = own.address();
    // The first at once, the other after the delay.
    let parameters = vec![("drawDelay".into(), U256::ZERO), ("unbonding".into(), U256::from(600))];
    let mut config = Config { owner, parameters, ..config(Some(file.clone())) };
    let foreseen = estimate(&chain, owner, &config).await.unwrap();
    let first = comes_true(&chain, own.clone(), &config, &foreseen).await;
    let at = contract(&chain, first.address);
    let parameter = async |name: &str| at.parameter(number_of(name).unwrap()).await.unwrap();
    assert_eq!((parameter("drawDelay").await, parameter("unbonding").await), (U256::ZERO, U256::from(86_400)));

    // Other code, the same behaviour: without wasm-opt's last byte order it is enough to compress it anew.
    let lens = config.programs.iter_mut().find(|program| program.name == "lens").unwrap();
    let mut wasm = lens.wasm.clone();
    wasm.extend([0, 2, 1, b'x']);
    lens.code = muster_cli::wasm::compress(&wasm);
    let selector = FixedBytes(IMuster::ownerCall::SELECTOR);
    let leads = async || at.read(IMuster::facetAddressCall { selector }).await.unwrap();
    let old = first.programs["lens"].address;
    // Proposed by the first run, waited for by the second, carried out by the third: by anyone, it need not be the owner.
    let foreseen = estimate(&chain, owner, &config).await.unwrap();
    let second = comes_true(&chain, own.clone(), &config, &foreseen).await;
    assert_eq!(second.address, first.address);
    assert_ne!(second.programs["lens"].address, first.programs["lens"].address);
    assert_eq!(second.former, [first.programs["lens"].address].into());
    assert_eq!(leads().await, old);
    let sent = chain.endpoints.count(owner).await.unwrap();
    let waiting = estimate(&chain, owner, &config).await.unwrap();
    assert!(waiting.steps.iter().all(|step| step.cost.is_none()) && waiting.to_string().contains("proposed"), "{waiting}");
    assert_eq!(deploy::on(&chain, &chain.account(own).await.unwrap(), &config).await.unwrap(), second);
    assert_eq!(chain.endpoints.count(owner).await.unwrap(), sent, "nothing is proposed twice");
    assert_eq!(leads().await, old);
    node.chain().increase_time(config.upgrade_delay.into()).unwrap();
    node.chain().mine(1, 0).unwrap();
    let anyone = poor(7);
    let foreseen = estimate(&chain, anyone.address(), &config).await.unwrap();
    assert_eq!(comes_true(&chain, anyone, &config, &foreseen).await, second);
    assert_eq!(leads().await, second.programs["lens"].address);
    assert_eq!(parameter("unbonding").await, U256::from(600));
    assert_eq!(at.read(IMuster::ownerCall {}).await.unwrap(), owner);
}

#[tokio::test]
async fn parameters_are_set_once_and_are_the_owners_afterwards() {
    static SAID: std::sync::Mutex<String> = std::sync::Mutex::new(String::new());
    let node = node();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("412346.json");
    let chain = Chain::connect(&node.url()).await.unwrap();
    let account = chain.account(wallet()).await.unwrap();
    let owner = account.address();
    let parameters = vec![("minPrice".to_string(), U256::from(5))];
    let say = |line: &str| SAID.lock().unwrap().push_str(line);
    let config = Config { owner, parameters, say, ..config(Some(file.clone())) };
    let first = deploy::on(&chain, &account, &config).await.unwrap();
    assert!(first.unset.is_empty());
    let at = contract(&chain, first.address);
    let parameter = number_of("minPrice").unwrap();
    let price = async || at.parameter(parameter).await.unwrap();
    assert_eq!(price().await, U256::from(5));

    let owners = Account::new(at.clone(), chain.account(wallet()).await.unwrap());
    owners.call(IMuster::setParameterCall { parameter, value: U256::from(7) }, U256::ZERO).await.unwrap();
    let later = "minPrice is 7, .env has 5: muster admin set minPrice 5";
    let foreseen = estimate(&chain, owner, &config).await.unwrap();
    assert!(foreseen.steps.iter().all(|step| step.cost.is_none()) && foreseen.to_string().contains(later), "{foreseen}");
    let account = chain.account(wallet()).await.unwrap();
    assert_eq!(deploy::on(&chain, &account, &config).await.unwrap(), first);
    assert_eq!(price().await, U256::from(7));
    let said = SAID.lock().unwrap().clone();
    assert!(said.contains(later), "{said}");

    // As if the first run had stopped right after the initialisation.
    let stopped = deploy::Deployment { unset: ["minPrice".to_string()].into(), ..first.clone() };
    fs::write(&file, serde_json::to_string(&stopped).unwrap()).unwrap();
    let foreseen = estimate(&chain, owner, &config).await.unwrap();
    assert_eq!(foreseen.steps.iter().filter(|step| step.cost.is_some()).count(), 1, "{foreseen}");
    assert_eq!(deploy::on(&chain, &account, &config).await.unwrap(), first);
    assert_eq!((price().await, deploy::read(&file).unwrap()), (U256::from(5), Some(first)));
}

/// Other code, the same behaviour: with one more custom section.
fn changed(config: &mut Config, name: &str) {
    let program = config.programs.iter_mut().find(|program| program.name == name).unwrap();
    let mut wasm = program.wasm.clone();
    wasm.extend([0, 2, 1, b'x']);
    program.code = muster_cli::wasm::compress(&wasm);
}

#[tokio::test]
async fn a_program_whose_day_has_come_waits_for_the_others() {
    static SAID: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    let node = node();
    let dir = tempfile::tempdir().unwrap();
    let chain = Chain::connect(&node.url()).await.unwrap();
    let account = chain.account(wallet()).await.unwrap();
    let owner = account.address();
    let say = |line: &str| SAID.lock().unwrap().push(line.to_string());
    let mut config = Config { owner, say, ..config(Some(dir.path().join("412346.json"))) };
    let at = contract(&chain, deploy::on(&chain, &account, &config).await.unwrap().address);
    let selectors = [IMuster::ownerCall::SELECTOR, IMuster::createTasksCall::SELECTOR];
    let leads = async || {
        let mut programs = Vec::new();
        for selector in selectors.map(FixedBytes) {
            programs.push(at.read(IMuster::facetAddressCall { selector }).await.unwrap());
        }
        programs
    };
    let sent = async || chain.endpoints.count(owner).await.unwrap();
    let later = |seconds: u64| {
        node.chain().increase_time(seconds).unwrap();
        node.chain().mine(1, 0).unwrap();
    };
    let delay = u64::from(config.upgrade_delay);
    let before = leads().await;
    changed(&mut config, "lens");
    deploy::on(&chain, &account, &config).await.unwrap();

    // The first is due when the second is proposed.
    later(delay);
    changed(&mut config, "batches");
    let foreseen = estimate(&chain, owner, &config).await.unwrap().to_string();
    assert!(foreseen.contains("once the others are proposed, too"), "{foreseen}");
    let count = sent().await;
    let second = deploy::on(&chain, &account, &config).await.unwrap();
    assert_eq!(sent().await, count + 3, "create, activate and propose");
    let both_wait = || {
        let said = SAID.lock().unwrap();
        let last: Vec<_> = said.iter().rev().filter(|line| line.contains("will lead")).take(2).collect();
        last.len() == 2 && last.iter().all(|line| line.contains("once this is run again after 2"))
    };
    assert_eq!((leads().await, both_wait()), (before.clone(), true));
    let foreseen = estimate(&chain, owner, &config).await.unwrap().to_string();
    assert!(foreseen.contains("once this is run again after 2"), "{foreseen}");
    deploy::on(&chain, &account, &config).await.unwrap();
    assert_eq!((sent().await, leads().await, both_wait()), (count + 3, before, true), "nothing is sent");

    later(delay);
    deploy::on(&chain, &account, &config).await.unwrap();
    assert_eq!(leads().await, ["lens", "batches"].map(|name| second.programs[name].address));
    assert_eq!(sent().await, count + 5, "both are accepted");
}

#[tokio::test]
async fn what_was_proposed_and_not_withdrawn_is_told() {
    let node = node();
    let dir = tempfile::tempdir().unwrap();
    let (url, place) = (node.url(), dir.path().to_str().unwrap().to_string());
    let deploy = || {
        let own = [("RPC_URL", url.as_str()), ("PRIVATE_KEY", NITRO_DEV_KEY), ("DEPLOYMENTS", &place), ("MIN_PRICE", "1")];
        let out = muster(&["deploy"], &own);
        let said = [out.stdout, out.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert!(out.status.success(), "{said}");
        said
    };
    assert!(!deploy().contains("withdraw-programs"));
    let record: serde_json::Value = serde_json::from_str(&fs::read_to_string(dir.path().join("412346.json")).unwrap()).unwrap();
    let of = |name: &str| record["programs"][name]["address"].as_str().unwrap().parse::<Address>().unwrap();
    let chain = Chain::connect(&url).await.unwrap();
    let at = contract(&chain, record["address"].as_str().unwrap().parse().unwrap());
    let owner = Account::new(at.clone(), chain.account(wallet()).await.unwrap());
    // An upgrade that another one replaced.
    let (program, selectors) = (of("lens"), vec![FixedBytes(IMuster::withdrawCall::SELECTOR)]);
    owner.call(IMuster::proposeProgramsCall { program, selectors: selectors.clone() }, U256::ZERO).await.unwrap();
    let said = deploy();
    assert!(said.contains(&format!("muster admin withdraw-programs {program:?} 0x51cff8d9")), "{said}");
    owner.call(IMuster::withdrawProgramsCall { program, selectors }, U256::ZERO).await.unwrap();
    assert!(!deploy().contains("withdraw-programs"));
}

#[tokio::test]
async fn programs_of_functions_that_this_version_does_not_know_are_found() {
    let node = node();
    let chain = Chain::connect(&node.url()).await.unwrap();
    let account = chain.account(wallet()).await.unwrap();
    let config = Config { owner: account.address(), ..config(None) };
    let deployed = deploy::on(&chain, &account, &config).await.unwrap();
    let at = contract(&chain, deployed.address);
    let mut programs: std::collections::BTreeSet<Address> = deployed.behind().map(|(_, program)| program.address).collect();
    assert_eq!(at.programs().await.unwrap(), programs);

    let program = create(&chain, &account, initcode(&[0])).await.contract_address.unwrap();
    let selectors = vec![FixedBytes([1, 2, 3, 4])];
    let owner = Account::new(at.clone(), chain.account(wallet()).await.unwrap());
    owner.call(IMuster::proposeProgramsCall { program, selectors: selectors.clone() }, U256::ZERO).await.unwrap();
    node.chain().increase_time(config.upgrade_delay.into()).unwrap();
    node.chain().mine(1, 0).unwrap();
    owner.call(IMuster::acceptProgramsCall { program, selectors }, U256::ZERO).await.unwrap();
    programs.insert(program);
    assert_eq!(at.programs().await.unwrap(), programs);
}

#[tokio::test]
async fn what_only_an_owner_elsewhere_may_send_goes_into_a_file_for_their_safe() {
    let node = node();
    let dir = tempfile::tempdir().unwrap();
    let chain = Chain::connect(&node.url()).await.unwrap();
    let account = chain.account(wallet()).await.unwrap();
    let file = |name: &str| Some(dir.path().join(name));
    let parameters = vec![("drawDelay".into(), U256::ZERO), ("unbonding".into(), U256::from(600))];
    let mut config = Config { parameters, safe: file("first.json"), ..config(file("412346.json")) };
    let at = deploy::on(&chain, &account, &config).await.unwrap().address;
    // As the Safe's owner would send them.
    let _: serde_json::Value = chain.endpoints.ask("anvil_impersonateAccount", [OWNER]).await.unwrap();
    let _: serde_json::Value = chain.endpoints.ask("anvil_setBalance", (OWNER, "0xde0b6b3a7640000")).await.unwrap();
    let send = async |name: &str| {
        let text = fs::read_to_string(file(name).unwrap()).unwrap();
        let batch: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(batch["meta"]["createdFromSafeAddress"], serde_json::json!(OWNER));
        let calls = batch["transactions"].as_array().unwrap().clone();
        for call in &calls {
            assert_eq!(call["to"].as_str().unwrap().parse::<Address>().unwrap(), at);
            let sent = serde_json::json!([{ "from": OWNER, "to": call["to"], "data": call["data"] }]);
            let hash: B256 = chain.endpoints.ask("eth_sendTransaction", sent).await.unwrap();
            assert!(chain.receipt(hash).await.unwrap().unwrap().status(), "{call}");
        }
        calls.len()
    };
    let muster = contract(&chain, at);
    let parameter = async |name: &str| muster.parameter(number_of(name).unwrap()).await.unwrap();
    assert_ne!(parameter("drawDelay").await, U256::ZERO);
    assert_eq!(send("first.json").await, 2);
    assert_eq!((parameter("drawDelay").await, parameter("unbonding").await), (U256::ZERO, U256::from(86_400)));

    // Other code, and no transaction again that was sent.
    let lens = config.programs.iter_mut().find(|program| program.name == "lens").unwrap();
    let mut wasm = lens.wasm.clone();
    wasm.extend([0, 2, 1, b'x']);
    lens.code = muster_cli::wasm::compress(&wasm);
    config.safe = file("second.json");
    let lens = deploy::on(&chain, &account, &config).await.unwrap().programs["lens"].address;
    assert_eq!(send("second.json").await, 1);
    node.chain().increase_time(config.upgrade_delay.into()).unwrap();
    node.chain().mine(1, 0).unwrap();
    config.safe = file("third.json");
    deploy::on(&chain, &account, &config).await.unwrap();
    assert!(!file("third.json").unwrap().exists(), "anybody may carry out what was proposed");
    let selector = FixedBytes(IMuster::ownerCall::SELECTOR);
    assert_eq!(muster.read(IMuster::facetAddressCall { selector }).await.unwrap(), lens);
    assert_eq!(parameter("unbonding").await, U256::from(600));
}

#[tokio::test]
async fn programs_are_kept_alive_with_a_record_or_without() {
    let node = node();
    let dir = tempfile::tempdir().unwrap();
    let url = node.url();
    let environment = [("RPC_URL", url.as_str()), ("PRIVATE_KEY", NITRO_DEV_KEY), ("DEPLOYMENTS", dir.path().to_str().unwrap())];
    let run = |arguments: &[&str]| {
        let out = muster(&[&["keepalive"], arguments].concat(), &environment);
        let said = [out.stdout, out.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (out.status.success(), said)
    };
    let (ok, said) = run(&[]);
    assert!(!ok && said.contains("name the router with --router"), "{said}");

    let chain = Chain::connect(&url).await.unwrap();
    let account = chain.account(wallet()).await.unwrap();
    let file = dir.path().join("412346.json");
    let deployed = deploy::on(&chain, &account, &config(Some(file))).await.unwrap();
    let (ok, said) = run(&["--dry-run"]);
    assert!(ok && said.contains("(364 days)"), "{said}");

    node.chain().increase_time(200 * 86_400).unwrap();
    node.chain().mine(1, 0).unwrap();
    let (ok, said) = run(&["--dry-run"]);
    let count = deployed.behind().count();
    assert!(!ok && said.contains(&format!("{count} of {count} programs need somebody's attention")), "{said}");
    assert_eq!(said.matches("to be renewed").count(), count, "{said}");
    // The router's programs are found without the record, by somebody with another account.
    fs::remove_dir_all(dir.path()).unwrap();
    let (ok, said) = run(&["--router", &format!("{:?}", deployed.address)]);
    assert!(ok && said.matches(": renewed, ").count() == count, "{said}");
    assert!(deployed.behind().all(|(_, program)| said.contains(&format!("{:?}", program.address))), "{said}");
    let (ok, said) = run(&["--dry-run", "--router", &format!("{:?}", deployed.address)]);
    assert!(ok && said.contains("(364 days)"), "{said}");
}

#[tokio::test]
async fn the_demonstration_accounts_for_every_task_and_every_wei() {
    // With the time its blocks' hashes are the same in every run.
    let mut settings = muster_devnode::Config::default();
    settings.chain.clock = Clock::Manual(1_700_000_000);
    let node = Devnode::start(settings).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let url = node.url();
    let environment = [("RPC_URL", url.as_str()), ("DEPLOYMENTS", dir.path().to_str().unwrap())];
    // So many that the cheat is met, and so few that the one request that fails with an error is a single task's.
    let out = muster(&["demo", "--json", "--sampled", "25", "--groups", "20"], &environment);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).expect("exactly one JSON object");
    let count = |key: &str| report[key].as_u64().unwrap_or_else(|| panic!("{key}: {report}"));
    let wei = |key: &str| report[key].as_str().unwrap().parse::<U256>().unwrap();

    let ended = ["finished", "timed_out", "aborted", "errors_reported", "undecided"].map(count);
    assert_eq!(ended.iter().sum::<u64>(), count("tasks"));
    assert_eq!(["turned_away", "evicted", "cancelled", "outlived", "orphaned"].map(count).iter().sum::<u64>(), count("aborted"));
    assert_eq!(["dispatched", "queued", "turned_away"].map(count).iter().sum::<u64>(), count("tasks"));
    for case in
        ["dispatched", "queued", "turned_away", "finished", "timed_out", "evicted", "cancelled", "errors_reported", "exclusions"]
    {
        assert!(count(case) > 0, "the small inputs show no task that was {case}");
    }
    let parts = ["stake_wei", "escrow_wei", "credit_wei", "treasury_wei", "reserve_wei", "burnt_wei"].map(wei);
    assert_eq!(parts.iter().sum::<U256>(), wei("contract_balance_wei"));
    for operation in
        ["join", "createTask", "dispatch", "submit", "expire", "cancel", "reportError", "commit", "reveal", "validate"]
    {
        let gas = &report["gas"][operation];
        let (min, median, max) = (gas["min"].as_u64(), gas["median"].as_u64(), gas["max"].as_u64());
        assert!(min > Some(21_000) && min <= median && median <= max, "{operation}: {gas}");
    }

    // Validation: the cheat alone is slashed, by all that is burnt, and the reserve paid only money that had been left in it.
    let validation = &report["validation"];
    let policies = validation["policies"].as_array().unwrap();
    let of = |policy: usize, key: &str| policies[policy][key].as_u64().unwrap_or_else(|| panic!("{key}: {validation}"));
    let all = |key: &str| (0..3).map(|policy| of(policy, key)).sum::<u64>();
    assert_eq!((all("tasks"), all("finished")), (count("tasks"), count("finished")));
    assert_eq!((policies.len(), of(0, "judged"), of(0, "trusted"), of(2, "trusted")), (3, 0, 0, 0));
    for policy in [1, 2] {
        let outcomes = ["agreed", "alone", "differing", "unanswered"].map(|key| of(policy, key));
        assert_eq!(outcomes.iter().sum::<u64>(), of(policy, "judged"));
        let (judged, agreed) = (of(policy, "judged"), of(policy, "agreed"));
        assert!(judged > 0 && agreed > 0 && of(policy, "scored") <= judged, "policy {policy}: {validation}");
        assert!(of(policy, "judged") + of(policy, "trusted") <= of(policy, "tasks"));
        assert!(of(policy, "gas_of_a_judged_task") > of(0, "gas_of_a_task"));
    }
    // Which of them it is that a hash samples, or gives to the cheat, changes with every change of gas: some of both together.
    assert!(all("judged") > 8 && all("agreed") > 4 && all("slashes") > 0, "{validation}");
    // Only tasks for three at once can be so: kept for each other, never wrong, and all fees for the right nodes.
    assert!(of(1, "trusted") > 0 && of(2, "kept") > 0 && of(1, "kept") == 0 && of(2, "wrong") == 0);
    let nodes = validation["nodes"].as_array().unwrap();
    let scores =
        |node: &serde_json::Value| node["scores"].as_array().unwrap().iter().map(|s| s.as_u64().unwrap()).collect::<Vec<_>>();
    let amount = |of: &serde_json::Value, key: &str| of[key].as_str().unwrap().parse::<U256>().unwrap();
    assert_eq!(nodes.iter().filter(|node| node["cheats"] == true).count(), 1);
    for node in nodes {
        let (cheats, scores, slashed) = (node["cheats"] == true, scores(node), amount(node, "slashed_wei"));
        assert!(!cheats || scores.iter().all(|score| *score == 0) && !scores.is_empty(), "{node}");
        assert_eq!(cheats, !slashed.is_zero(), "{node}");
        let mean = if scores.is_empty() { 5.0 } else { scores.iter().sum::<u64>() as f64 / scores.len() as f64 };
        assert!((node["q_long"].as_f64().unwrap() - mean).abs() < 1e-9, "{node}");
    }
    let sum = |key: &str| policies.iter().map(|policy| amount(policy, key)).sum::<U256>();
    assert_eq!(wei("burnt_wei"), sum("burnt_wei"));
    assert_eq!(nodes.iter().map(|node| amount(node, "slashed_wei")).sum::<U256>(), sum("burnt_wei"));
    assert!(!wei("burnt_wei").is_zero() && validation["rank_correlation"].as_f64().is_some());
    // The account that calls validators is paid out of the fee of the task.
    assert_eq!(wei("reserve_wei"), sum("saved_wei") - sum("drawn_wei"));
    for other in [0, 2] {
        let moved = ["saved_wei", "drawn_wei", "drivers_wei"].map(|key| amount(&policies[other], key));
        assert_eq!(moved, [U256::ZERO; 3], "only policy 1 has to do with the reserve");
    }
    assert!(amount(&policies[2], "paid_to_cheats_wei").is_zero() && !amount(&policies[2], "paid_wei").is_zero());

    // The books come from the contract, not from the replay: another reader finds the same.
    let chain = Chain::connect(&url).await.unwrap();
    let address: Address = report["address"].as_str().unwrap().parse().unwrap();
    let read = books(&contract(&chain, address), 0).await.unwrap();
    assert_eq!((read.stake, read.credit, read.balance), (wei("stake_wei"), wei("credit_wei"), wei("contract_balance_wei")));
    assert_eq!((read.reserve, read.burnt, read.owed()), (wei("reserve_wei"), wei("burnt_wei"), read.balance));
}

#[test]
fn a_task_above_what_the_contract_takes_is_named_by_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("requests.csv");
    let heading = "gmt_create;predict_status;exec_time_seconds;groupId;num_images_per_prompt;num_inference_steps;\
        checkpoint_model_version_id;num_lora";
    let row = |images| format!("2024-11-15 16:57:50;SUCCEED;22;A0;{images};30;M3;1\n");
    fs::write(&file, format!("{heading}\n{}{}", row(1), row(1_000))).unwrap();
    let node = node();
    let environment = [("RPC_URL", node.url()), ("DEPLOYMENTS", dir.path().to_str().unwrap().into())];
    let environment = [0, 1].map(|at: usize| (environment[at].0, environment[at].1.as_str()));
    let out = muster(&["demo", "--requests", file.to_str().unwrap()], &environment);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{errors}");
    assert!(errors.contains("line 3 asks for 1000 units") && errors.contains("BadUnits { units: 1000, most: "), "{errors}");
}

#[test]
fn a_fleet_of_ones_own_runs_what_it_can() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = dir.path().join("nodes.csv");
    // As a spreadsheet writes it: a byte order mark, the other line ends, an empty line, and two names of one card.
    let list = "\u{feff}Host,GPU Model,Count\r\na,\"NVIDIA GeForce RTX 4060\",3\r\n\r\nb,rtx4060,2\r\nc,RTX 3060,1\r\n";
    fs::write(&nodes, list).unwrap();
    let node = node();
    let environment = [("RPC_URL", node.url()), ("DEPLOYMENTS", dir.path().to_str().unwrap().into())];
    let environment = [0, 1].map(|at: usize| (environment[at].0, environment[at].1.as_str()));
    let arguments = ["demo", "--json", "--nodes", nodes.to_str().unwrap(), "--limit", "60", "--sampled", "0", "--groups", "0"];
    let out = muster(&arguments, &environment);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{errors}");
    assert!(errors.contains("RTX 3060 is taken to have 12 GiB, though it also comes with 8"), "{errors}");
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let count = |key: &str| report[key].as_u64().unwrap();
    // Tasks for 16 GiB are nothing for cards of 8 and 12.
    assert!(count("refused") > 0 && count("finished") > 0, "{report}");
    assert_eq!(count("refused") + count("tasks"), 60);
    assert_eq!(count("nodes"), 6);
    // Nothing that can be validated, nothing said of it, and no parameter changed.
    assert!(report["validation"].is_null() && report["gas"]["commit"].is_null() && !errors.contains("sampleBps"), "{report}");
    // Two names were new: each cost a hundredth of the least stake.
    let treasury: u128 = report["treasury_wei"].as_str().unwrap().parse().unwrap();
    assert!((8_000_000_000_000_000_000..9_000_000_000_000_000_000).contains(&treasury), "{treasury}");
}

#[test]
fn what_goes_wrong_is_said_in_words_and_nothing_is_printed_as_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("requests.csv");
    let heading = "gmt_create,predict_status,exec_time_seconds,groupId,num_images_per_prompt,num_inference_steps,\
        checkpoint_model_version_id,num_lora";
    fs::write(&file, format!("{heading}\n2024-11-15 16:57:50,LOST,22,A0,1,30,M3,1\n")).unwrap();
    let name = file.to_str().unwrap();
    let long = dir.path().join("long.csv");
    let row = |year| format!("{year}-11-15 16:57:50,SUCCEED,22,A0,1,30,M3,1\n");
    fs::write(&long, format!("{heading}\n{}{}", row(2024), row(2034))).unwrap();
    let long = long.to_str().unwrap();
    let short = dir.path().join("short.csv");
    fs::write(&short, "gmt_create,predict_status\n").unwrap();
    let short = short.to_str().unwrap();
    // Port 1 needs privileges that no node has.
    let nowhere = [("RPC_URL", "http://127.0.0.1:1")];
    for (arguments, environment, words) in [
        (vec!["demo", "--requests", name], &[][..], vec![name, ":2: predict_status is \"LOST\""]),
        (vec!["demo", "--requests", short], &[], vec![short, ":1: the heading has no column exec_time_seconds"]),
        (
            vec!["demo", "--requests", long],
            &[],
            vec![long, "at --speed 1 its requests come over 3652 days; 350 days is the most"],
        ),
        (vec!["demo", "--nodes", "missing.csv"], &[], vec!["cannot open missing.csv"]),
        (vec!["demo", "--gpus", "1000"], &[], vec!["--gpus is 1000, but the fleet has 8 GPUs"]),
        (vec!["demo", "--speed", "0"], &[], vec!["--speed is 0"]),
        (vec!["demo", "--cheats", "9"], &[], vec!["--cheats is 9, but there are 8 nodes"]),
        (
            vec!["demo", "--sampled", "60", "--groups", "50"],
            &[],
            vec!["--sampled is 60 and --groups 50; together they can be at most 100"],
        ),
        (vec!["demo"], &nowhere, vec!["no node answers at http://127.0.0.1:1"]),
        (vec!["deploy"], &[("RPC_URL", "http://127.0.0.1:1"), ("PRIVATE_KEY", "0x12")], vec!["PRIVATE_KEY is not a private key"]),
        (vec!["deploy"], &[("RPC_URL", "http://127.0.0.1:1"), ("PRIVATE_KEY", NITRO_DEV_KEY)], vec!["no node answers"]),
    ] {
        let out = muster(&arguments, environment);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(out.stdout.is_empty(), "{arguments:?}");
        for part in words {
            assert!(errors.contains(part), "{arguments:?}: {errors}");
        }
    }
}

#[test]
fn without_settings_deploying_says_which_are_missing_and_a_key_that_is_not_there_is_no_wrong_password() {
    // A project without `.env`, whatever this one has.
    let project = tempfile::tempdir().unwrap();
    for file in ["Stylus.toml", "Cargo.lock"] {
        fs::write(project.path().join(file), "").unwrap();
    }
    let password = project.path().join("password");
    fs::write(&password, "a password").unwrap();
    fs::set_permissions(&password, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let deploy = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster-dev"));
        for name in ["RPC_URL", "PRIVATE_KEY", "ETH_KEYSTORE", "ETH_PASSWORD", "MUSTER_SIGNER", deploy::RELEASED] {
            command.env_remove(name);
        }
        let out =
            command.arg("deploy").args(more).current_dir(project.path()).stdin(std::process::Stdio::null()).output().unwrap();
        assert_eq!(out.status.code(), Some(1));
        assert!(out.stdout.is_empty(), "{}", String::from_utf8_lossy(&out.stdout));
        String::from_utf8_lossy(&out.stderr).to_string()
    };
    let said = deploy(&[]);
    assert!(said.contains("RPC_URL is not set") && said.contains(".env.example"), "{said}");
    // So does the script, and builds nothing before.
    fs::create_dir(project.path().join("script")).unwrap();
    for file in ["deploy", "env"] {
        fs::copy(build::root().unwrap().join("script").join(file), project.path().join("script").join(file)).unwrap();
    }
    let out = Command::new("bash").arg(project.path().join("script/deploy")).env_remove("RPC_URL").output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    let message = "deploy: there is no .env, and RPC_URL is not set: cp .env.example .env, and fill it in";
    assert!(out.status.code() == Some(1) && said.trim_end().ends_with(message), "{said}");
    // With half of them; nobody must answer for that.
    fs::write(project.path().join(".env"), "RPC_URL=http://127.0.0.1:1\nPRIVATE_KEY=\n").unwrap();
    let said = deploy(&[]);
    assert!(said.contains("PRIVATE_KEY is not set") && said.contains(".env.example"), "{said}");
    for more in [&["--keystore", "nobody"][..], &["--keystore", "nobody", "--password-file", "password"]] {
        let said = deploy(more);
        assert!(said.contains("the key's file nobody: No such file") && !said.contains("password"), "{said}");
    }
    let said = deploy(&["--keystore", "Stylus.toml", "--password-file", "nowhere"]);
    assert!(said.contains("the password's file nowhere: No such file"), "{said}");
    // Nothing is done by half of the settings, and no secret is shown.
    for line in ["PARAMETERS=alphaMilli=3000, drawDelay=0", "0x3000 0x3000"] {
        fs::write(project.path().join(".env"), format!("OWNER=\n{line}\nRPC_URL=http://127.0.0.1:1\n")).unwrap();
        let said = deploy(&[]);
        assert!(said.contains(".env:2 cannot be read") && !said.contains("3000"), "{said}");
    }
}

#[test]
fn keys_in_the_endpoints_url_are_not_shown() {
    let node = node();
    let key = format!("{}", B256::repeat_byte(7));
    let dir = tempfile::tempdir().unwrap();
    for (url, words) in [
        (node.url().replace("http://", "http://s3cret:s3cret@"), format!("chain 412346 at {}/...", node.url())),
        ("http://127.0.0.1:1/v2/s3cret?key=s3cret".into(), "no node answers at http://127.0.0.1:1/... (".into()),
        ("127.0.0.1/s3cret".into(), "RPC_URL is not a URL".into()),
    ] {
        let environment = [("RPC_URL", url.as_str()), ("PRIVATE_KEY", &key), ("DEPLOYMENTS", dir.path().to_str().unwrap())];
        let out = muster(&["deploy"], &environment);
        let said = [out.stdout, out.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(said.contains(&words) && !said.contains("s3cret"), "{said}");
    }
}

#[tokio::test]
async fn an_account_without_funds_is_named() {
    let node = node();
    let chain = Chain::connect(&node.url()).await.unwrap();
    let account = chain.account(poor(7)).await.unwrap();
    let error = format!("{:#}", deploy::on(&chain, &account, &config(None)).await.unwrap_err());
    assert!(error.contains("has no ether on chain 412346"), "{error}");
}
