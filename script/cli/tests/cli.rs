//! `muster` as its users run it, against the embedded node and the compiled programs of `build/`.

use std::{fs, path::PathBuf, process::Command};

use ethers::{
    abi::Token,
    providers::{Http, Middleware, Provider},
    signers::LocalWallet,
    types::{Address, U256},
};
use muster_cli::{
    build,
    chain::{Account, Chain},
    contract::Muster,
    demo::books,
    deploy::{self, Config},
};
use muster_devnode::{chain::NITRO_DEV_KEY, Devnode};

const OWNER: Address = ethers::types::H160([0x0a; 20]);
const TREASURY: Address = ethers::types::H160([0x0b; 20]);

fn node() -> Devnode {
    Devnode::start(muster_devnode::Config::default()).unwrap()
}

fn wallet() -> LocalWallet {
    NITRO_DEV_KEY.parse().unwrap()
}

fn config(file: Option<PathBuf>) -> Config {
    let (manifest, programs) = build::load(&build::root().unwrap()).unwrap();
    Config {
        owner: OWNER,
        treasury: TREASURY,
        granule: 1_000_000_000_000,
        minimum_stake: 400_000_000_000_000_000_000,
        parameters: Vec::new(),
        programs,
        rustc: manifest.rustc,
        file,
        say: |_| {},
    }
}

fn muster(arguments: &[&str], environment: &[(&str, &str)]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_muster"))
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
    let provider = Provider::<Http>::try_from(node.url()).unwrap();
    let first = deploy::deploy(provider.clone(), wallet(), config(Some(file.clone()))).await.unwrap();
    let deployer = first.deployer;
    let sent = provider.get_transaction_count(deployer, None).await.unwrap();
    assert_eq!(sent, U256::from(2 * first.programs.len() + 1), "create and activate each, install once");
    for (name, program) in &first.programs {
        let code = provider.get_code(program.address, None).await.unwrap();
        assert_eq!(program.code_hash.0, ethers::utils::keccak256(&code), "{name}");
        assert!(program.activated_in.is_some(), "{name}");
    }

    // Who deploys is not who owns.
    let chain = Chain::connect(&node.url()).await.unwrap();
    let at = Muster { address: first.address };
    assert_eq!(at.call(&chain, "owner", &[]).await.unwrap(), [Token::Address(OWNER)]);
    let overview = at.call(&chain, "overview", &[]).await.unwrap().remove(0).into_tuple().unwrap();
    assert_eq!(overview[1], Token::Address(TREASURY));

    let again = deploy::deploy(provider.clone(), wallet(), config(Some(file.clone()))).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(provider.get_transaction_count(deployer, None).await.unwrap(), sent);

    // As if a run had stopped before it could write that the router is there: only that is done again, and the
    // same code needs no activation.
    let mut stopped = first.clone();
    stopped.programs.remove("router");
    fs::write(&file, serde_json::to_string(&stopped).unwrap()).unwrap();
    let third = deploy::deploy(provider.clone(), wallet(), config(Some(file.clone()))).await.unwrap();
    assert_ne!(third.address, first.address);
    assert_eq!(third.programs["router"].activated_in, None);
    assert_eq!(third.programs["tasks"], first.programs["tasks"]);
    assert_eq!(provider.get_transaction_count(deployer, None).await.unwrap(), sent + 2, "create and install");

    // A record that names code which is not what was built is not believed.
    let mut wrong = third.clone();
    wrong.programs.get_mut("lens").unwrap().address = third.programs["tasks"].address;
    fs::write(&file, serde_json::to_string(&wrong).unwrap()).unwrap();
    let fourth = deploy::deploy(provider.clone(), wallet(), config(Some(file.clone()))).await.unwrap();
    let lens = fourth.programs["lens"].address;
    assert!(lens != third.programs["tasks"].address && lens != third.programs["lens"].address);

    fs::write(&file, "{").unwrap();
    let error = deploy::deploy(provider, wallet(), config(Some(file))).await.unwrap_err();
    assert!(format!("{error:#}").contains("mend or remove it"), "{error:#}");
}

#[tokio::test]
async fn the_owner_sets_parameters_and_moves_functions_to_new_code() {
    let node = node();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("412346.json");
    let provider = Provider::<Http>::try_from(node.url()).unwrap();
    let chain = Chain::connect(&node.url()).await.unwrap();
    let owner = Account::new(&chain, wallet()).address();
    let mut config = Config { owner, parameters: vec![("drawDelay".into(), 0.into())], ..config(Some(file.clone())) };
    let first = deploy::deploy(provider.clone(), wallet(), config.clone()).await.unwrap();
    let number = muster_storage::admin::PARAMETERS.iter().position(|parameter| parameter.name == "drawDelay").unwrap();
    let at = Muster { address: first.address };
    let values = at.call(&chain, "parameter", &[Token::Uint(number.into())]).await.unwrap();
    assert_eq!(values[0], Token::Uint(0.into()));

    // Other code, the same behaviour: without wasm-opt's last byte order it is enough to compress it anew.
    let lens = config.programs.iter_mut().find(|program| program.name == "lens").unwrap();
    let mut wasm = lens.wasm.clone();
    wasm.extend([0, 2, 1, b'x']);
    lens.code = muster_cli::wasm::compress(&wasm);
    let second = deploy::deploy(provider, wallet(), config).await.unwrap();
    assert_eq!(second.address, first.address);
    assert_ne!(second.programs["lens"].address, first.programs["lens"].address);
    let selector = Token::FixedBytes(ethers::utils::id("owner()").to_vec());
    let answers = at.call(&chain, "facetAddress", &[selector]).await.unwrap();
    assert_eq!(answers, [Token::Address(second.programs["lens"].address)]);
    assert_eq!(at.call(&chain, "owner", &[]).await.unwrap(), [Token::Address(owner)]);
}

#[tokio::test]
async fn the_demonstration_accounts_for_every_task_and_every_wei() {
    let node = node();
    let dir = tempfile::tempdir().unwrap();
    let url = node.url();
    let environment = [("RPC_URL", url.as_str()), ("DEPLOYMENTS", dir.path().to_str().unwrap())];
    let out = muster(&["demo", "--json"], &environment);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).expect("exactly one JSON object");
    let count = |key: &str| report[key].as_u64().unwrap_or_else(|| panic!("{key}: {report}"));
    let wei = |key: &str| U256::from_dec_str(report[key].as_str().unwrap()).unwrap();

    assert_eq!(count("finished") + count("timed_out") + count("aborted") + count("errors_reported"), count("tasks"));
    assert_eq!(count("evicted") + count("cancelled"), count("aborted"));
    for case in
        ["dispatched", "queued", "finished", "timed_out", "evicted", "cancelled", "errors_reported", "exclusions"]
    {
        assert!(count(case) > 0, "the small inputs show no task that was {case}");
    }
    let owed = wei("stake_wei") + wei("escrow_wei") + wei("credit_wei") + wei("treasury_wei");
    assert_eq!(owed, wei("contract_balance_wei"));
    for operation in ["join", "createTask", "dispatch", "submit", "expire", "cancel", "reportError"] {
        let gas = &report["gas"][operation];
        let (min, median, max) = (gas["min"].as_u64(), gas["median"].as_u64(), gas["max"].as_u64());
        assert!(min > Some(21_000) && min <= median && median <= max, "{operation}: {gas}");
    }

    // The books come from the contract, not from the replay: another reader finds the same.
    let chain = Chain::connect(&url).await.unwrap();
    let address: Address = report["address"].as_str().unwrap().parse().unwrap();
    let read = books(&chain, &Muster { address }, 0.into()).await.unwrap();
    assert_eq!(
        (read.stake, read.credit, read.balance),
        (wei("stake_wei"), wei("credit_wei"), wei("contract_balance_wei"))
    );
}

#[test]
fn what_goes_wrong_is_said_in_words_and_nothing_is_printed_as_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("requests.csv");
    let heading = "gmt_create,predict_status,exec_time_seconds,groupId,num_images_per_prompt,num_inference_steps,\
        checkpoint_model_version_id,num_lora";
    fs::write(&file, format!("{heading}\n2024-11-15 16:57:50,LOST,22,A0,1,30,M3,1\n")).unwrap();
    let name = file.to_str().unwrap();
    let short = dir.path().join("short.csv");
    fs::write(&short, "gmt_create,predict_status\n").unwrap();
    let short = short.to_str().unwrap();
    // Port 1 needs privileges that no node has.
    let nowhere = [("RPC_URL", "http://127.0.0.1:1")];
    for (arguments, environment, words) in [
        (vec!["demo", "--requests", name], &[][..], vec![name, ":2: predict_status is \"LOST\""]),
        (vec!["demo", "--requests", short], &[], vec![short, ":1: the heading has no column exec_time_seconds"]),
        (vec!["demo", "--nodes", "missing.csv"], &[], vec!["cannot open missing.csv"]),
        (vec!["demo", "--gpus", "1000"], &[], vec!["--gpus is 1000, but the fleet has 8 GPUs"]),
        (vec!["demo", "--speed", "0"], &[], vec!["--speed is 0"]),
        (vec!["demo"], &nowhere, vec!["no node answers at http://127.0.0.1:1"]),
        (
            vec!["deploy"],
            &[("RPC_URL", "http://127.0.0.1:1"), ("PRIVATE_KEY", "0x12")],
            vec!["PRIVATE_KEY is not a private key"],
        ),
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

#[tokio::test]
async fn an_account_without_funds_is_named() {
    let node = node();
    let provider = Provider::<Http>::try_from(node.url()).unwrap();
    let poor: LocalWallet = "0x0000000000000000000000000000000000000000000000000000000000000007".parse().unwrap();
    let error = format!("{:#}", deploy::deploy(provider, poor, config(None)).await.unwrap_err());
    assert!(error.contains("has no ether on chain 412346"), "{error}");
}
