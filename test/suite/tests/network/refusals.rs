//! Every refusal of the interface: a call that provokes it, and its values.

use std::collections::BTreeSet;

use ethers::abi::Token;
use ethers::types::{Address, Bytes, U256};
use muster_cli::router::initcode;
use muster_tests::chain::{interface, Muster, Outgoing};
use muster_tests::*;

use crate::WAD;

/// Errors that no call over JSON-RPC can provoke here, and why.
const OUT_OF_REACH: [(&str, &str); 13] = [
    ("GasTooLow", "needs a gas limit: see the tests of gas"),
    ("KickedOut", "needs a judgement: see the tests of scores and of groups"),
    ("HashUnknown", "hangs on the block: see the tests of groups"),
    ("Sampled", "needs a lot: see the tests of groups"),
    ("NotAMember", "needs a group: see the tests of groups"),
    ("NotOpen", "needs a group: see the tests of groups"),
    ("RevealsOpen", "needs a group: see the tests of groups"),
    ("BadImages", "needs an answer that was committed to: see the tests of groups"),
    ("StakeLocked", "needs a group: see the tests of groups"),
    ("TooManyValidatorDraws", "takes 255 sampled tasks at once"),
    ("TooManyGpuModels", "takes 65,534 joins with different GPU names"),
    ("NetworkFull", "takes 2^24 nodes"),
    ("TooManyPending", "takes 4,095 tasks within 64 blocks"),
];

fn address(account: Address) -> Token {
    Token::Address(account)
}

fn text(text: &str) -> Token {
    Token::String(text.into())
}

fn big(value: u128) -> U256 {
    value.into()
}

#[tokio::test]
async fn every_error_has_a_call_that_provokes_it() {
    let mut w = World::new(&[("drawDelay", 0), ("minPrice", 3)]).await;
    if !w.travels("every_error_has_a_call_that_provokes_it") {
        return;
    }
    let boss = w.boss.address();
    let (mut app, mut worker) = (w.actor(0).await, w.actor(0).await);
    let outsider = app.address();
    let digest = Token::FixedBytes(vec![1; 32]);
    let mut seen = BTreeSet::new();
    // The source of `docs/generated/refusals.md`.
    let raised = muster_cli::refusals::raised(&root()).unwrap();
    macro_rules! check {
        ($by:expr, $function:literal, [$($argument:expr),*], $value:expr => $error:literal[$($wanted:expr),*]) => {{
            let got = w.refused($by, $function, &[$($argument),*], $value).await;
            let wanted: Vec<Token> = vec![$($wanted),*];
            assert_eq!((got.name.as_str(), got.values), ($error, wanted), "{}", $function);
            assert!(raised[$error].contains($function), "docs/generated/refusals.md does not say that {} can give {}", $function, $error);
            seen.insert($error);
        }};
    }
    macro_rules! check_raw {
        ($data:expr, $value:expr => $error:literal[$($wanted:expr),*]) => {{
            let got = w.refused_raw(outsider, Bytes::from($data), U256::from($value)).await;
            let wanted: Vec<Token> = vec![$($wanted),*];
            assert_eq!((got.name.as_str(), got.values), ($error, wanted));
            seen.insert($error);
        }};
    }
    let selector = |name: &str| Token::FixedBytes(interface().function(name).unwrap().short_signature().to_vec());
    let spec = |change: fn(&mut Spec)| {
        let mut spec = Spec::default();
        change(&mut spec);
        spec.token()
    };

    // The router and the programs behind it.
    check_raw!(vec![0xde, 0xad, 0xbe, 0xef], 0 => "UnknownFunction"[Token::FixedBytes(vec![0xde, 0xad, 0xbe, 0xef])]);
    check_raw!(vec![], 1 => "MalformedCalldata"[Token::FixedBytes(vec![0; 4])]);
    check_raw!(vec![1, 2], 0 => "MalformedCalldata"[Token::FixedBytes(vec![0; 4])]);
    let Token::FixedBytes(join) = selector("join") else { unreachable!() };
    check_raw!(join, 0 => "MalformedCalldata"[selector("join")]);
    // A program that stops at once: an invalid instruction.
    let broken = w.boss.send(&w.chain, Outgoing { data: initcode(&[0xfe]).0.into(), ..Default::default() }).await.unwrap();
    let broken = broken.contract_address.unwrap();
    let odd = Token::FixedBytes(vec![0xba, 0xdb, 0xad, 0xba]);
    // An address where nothing was ever created.
    let change = |program: Address| [address(program), Token::Array(vec![odd.clone()])];
    let nowhere = Address::repeat_byte(0x77);
    check!(boss, "proposePrograms", [address(nowhere), Token::Array(vec![odd.clone()])], 0 => "NoCode"[address(nowhere)]);
    check!(outsider, "acceptPrograms", [address(broken), Token::Array(vec![odd.clone()])], 0 => "NotProposed"[]);
    w.rule("proposePrograms", &change(broken)).await;
    let effective = w.now() + u64::from(UPGRADE_DELAY);
    let [program, selectors] = change(broken);
    check!(outsider, "acceptPrograms", [program, selectors], 0 => "TooEarly"[n(effective)]);
    w.travel(UPGRADE_DELAY.into());
    w.send(&mut app, "acceptPrograms", &change(broken), 0).await;
    check_raw!(vec![0xba, 0xdb, 0xad, 0xba], 0 => "ProgramFailed"[odd.clone(), address(broken)]);
    check!(outsider, "pause", [], 5 => "ValueNotAccepted"[n(5)]);

    // Programs called directly see an empty storage of their own.
    let router = w.muster;
    let program = |name: &str| Muster { address: w.program(name) };
    let (nodes, admin) = (program("nodes"), program("admin"));
    w.muster = nodes;
    check!(outsider, "pause", [], 0 => "NotInitialised"[]);
    w.muster = admin;
    let bad = [address(boss), address(boss), n(1), n(1), n(1), Token::Array(vec![])];
    // Nobody created it to be initialised.
    check!(outsider, "initialise", [bad[0].clone(), bad[1].clone(), n(1), n(1), n(1), bad[5].clone()], 0 => "NotOwner"[address(outsider)]);
    w.muster = router;
    // A router of the boss' own, not yet initialised.
    let data = muster_cli::router::bound_initcode(&muster_router::code(), w.base.boss.address()).0.into();
    let fresh = w.boss.send(&w.chain, Outgoing { data, ..Default::default() }).await.unwrap().contract_address.unwrap();
    let used = std::mem::replace(&mut w.muster, Muster { address: fresh });
    let initialise = Token::Bytes(w.muster.encode("initialise", &bad).unwrap().to_vec());
    let admin = w.program("admin");
    check!(outsider, "install", [address(admin), initialise.clone()], 0 => "NotOwner"[address(outsider)]);
    // The installed program's refusal comes through.
    let bad = w.refused(boss, "install", &[address(admin), initialise.clone()], 0).await;
    assert_eq!(bad.name, "BadInitialisation");
    seen.insert("BadInitialisation");
    let none = w.refused(boss, "install", &[address(nowhere), initialise], 0).await;
    assert_eq!((none.name.as_str(), none.values), ("NoCode", vec![address(nowhere)]));
    w.muster = used;
    check!(outsider, "install", [address(broken), Token::Bytes(vec![])], 0 => "AlreadyInitialised"[]);

    // Administration.
    check!(outsider, "setPaused", [Token::Bool(true)], 0 => "NotOwner"[address(outsider)]);
    check!(outsider, "acceptOwnership", [], 0 => "NotPendingOwner"[address(outsider)]);
    check!(outsider, "withdraw", [address(Address::zero())], 0 => "ZeroAddress"[]);
    check!(boss, "setParameter", [n(200), n(1)], 0 => "ParameterUnknown"[n(200)]);
    check!(boss, "setParameter", [n(3), n(65)], 0 => "ParameterOutOfBounds"[n(3), n(65), n(0), n(64)]);
    check!(boss, "setParameter", [n(17), n(1)], 0 => "ParameterDelayed"[n(17)]);
    check!(boss, "proposeParameter", [n(3), n(1)], 0 => "ParameterNotDelayed"[n(3)]);
    check!(outsider, "acceptTreasury", [], 0 => "NotProposed"[]);
    w.rule("proposeTreasury", &[address(outsider)]).await;
    let effective = w.now() + 172_800;
    w.travel(172_799);
    check!(outsider, "acceptTreasury", [], 0 => "TooEarly"[n(effective)]);
    check!(outsider, "withdraw", [address(outsider)], 0 => "NothingToWithdraw"[address(outsider)]);
    check!(boss, "proposePrograms", [address(broken), Token::Array(vec![selector("join"); 65])], 0 => "TooManyAtOnce"[n(65), n(64)]);
    w.rule("renounceUpgrades", &[]).await;
    check!(boss, "renounceUpgrades", [], 0 => "UpgradesRenounced"[]);

    // Tasks, with nobody there and with wrong terms.
    let fee = 1_000;
    check!(outsider, "createTask", [Spec::default().token()], fee => "NoNodes"[]);
    let gpu = || text("NVIDIA L40");
    let (mut a, node) = w.join(LEAST, "NVIDIA L40", 48, &[5]).await;
    let operator = a.address();
    check!(outsider, "createTask", [spec(|s| s.kind = 3)], fee => "BadKind"[n(3)]);
    check!(outsider, "createTask", [spec(|s| s.units = 0)], fee => "BadUnits"[n(0), n(358)]);
    check!(outsider, "createTask", [spec(|s| s.units = 1_001)], fee => "BadUnits"[n(1_001), n(358)]);
    check!(outsider, "createTask", [spec(|s| s.gpu = 2 << 16 | 48)], fee => "GpuUnknown"[n(2 << 16 | 48)]);
    check!(outsider, "createTask", [spec(|s| s.vram = 49)], fee => "NobodyCanRun"[n(49), n(0)]);
    check!(outsider, "createTask", [spec(|s| s.redundancy = 4)], fee => "RedundancyUnsupported"[n(4)]);
    let profile = [1, 3, 10, 2, 0, 0, 0, 300].map(n);
    check!(outsider, "setProfile", [Token::Tuple(profile.to_vec())], 0 => "BadProfile"[]);
    check!(outsider, "createTask", [spec(|s| (s.kind, s.redundancy) = (1, 1))], fee => "GpuNotListed"[n(Spec::default().vram)]);
    check!(outsider, "createTask", [spec(|s| s.flags = 2)], fee => "FlagsUnsupported"[n(2)]);
    check!(outsider, "gpuGroup", [text("unheard of"), n(48)], 0 => "GpuNameUnknown"[text("unheard of"), n(48)]);
    check!(outsider, "nodes", [n(1), n(65)], 0 => "PageTooLong"[n(65), n(64)]);
    check!(outsider, "nameModel", [text("")], 0 => "BadModelName"[n(0), n(128)]);
    let model = u64::from_be_bytes([&[0; 3][..], &ethers::utils::keccak256("named")[..5]].concat().try_into().unwrap());
    w.send(&mut a, "nameModel", &[text("named")], 0).await;
    check!(outsider, "nameModel", [text("named")], 0 => "ModelHasName"[n(model)]);
    check!(outsider, "setStores", [text("s3://a s3://b ")], 0 => "BadStores"[n(13)]);
    check!(outsider, "setStores", [text(&"x".repeat(257))], 0 => "StoresTooLong"[n(257), n(256)]);
    check!(outsider, "createTask", [spec(|s| s.vram = 961)], fee => "BadVram"[n(961), n(960)]);
    check!(outsider, "createTask", [Spec::default().token()], 149 => "FeeTooLow"[n(149), n(150)]);
    check!(outsider, "createTask", [spec(|s| s.models = (1..10).collect())], fee => "TooManyModels"[n(9), n(8)]);
    check!(outsider, "createTask", [spec(|s| s.models = vec![3, 1 << 40])], fee => "BadModel"[n(1u64 << 40)]);
    check!(outsider, "createTask", [spec(|s| s.models = vec![3, 4, 3])], fee => "DuplicateModel"[n(3)]);
    let batch = |fees: &[u64]| [Token::Array(vec![spec(|s| s.kind = 3)]), list(fees), Token::Bool(true)];
    let [specs, fees, whole] = batch(&[]);
    check!(outsider, "createTasks", [specs, fees, whole], fee => "BadBatch"[n(1), n(0), n(fee)]);
    let reason = [&ethers::utils::id("BadKind(uint8)")[..], &ethers::abi::encode(&[n(3)])].concat();
    let [specs, fees, whole] = batch(&[1_000]);
    check!(outsider, "createTasks", [specs, fees, whole], fee => "RefusedInBatch"[n(0), Token::Bytes(reason)]);
    let rich = Address::random();
    let wealth = format!("{:#x}", U256::one() << 100);
    let _: serde_json::Value = w.chain.request("anvil_setBalance", (rich, wealth)).await.unwrap();
    let most = (U256::one() << 87) - 1;
    check!(rich, "createTask", [Spec::default().token()], most + 1 => "FeeTooHigh"[n(most + 1), n(most)]);

    // Nodes.
    check!(outsider, "resume", [], 0 => "NotAnOperator"[address(outsider)]);
    check!(operator, "resume", [], 0 => "WrongStatus"[n(node), n(1)]);
    check!(outsider, "acceptWork", [n(node)], 0 => "NotNamed"[n(node), address(outsider)]);
    check!(operator, "acceptWork", [n(node)], 0 => "HasNode"[address(operator), n(node)]);
    w.send(&mut a, "setWorker", &[address(worker.address())], 0).await;
    w.send(&mut worker, "acceptWork", &[n(node)], 0).await;
    check!(worker.address(), "quit", [], 0 => "NotTheOperator"[n(node), address(worker.address())]);
    check!(operator, "join", [gpu(), n(48), list(&[])], LEAST => "WrongStatus"[n(node), n(1)]);
    check!(outsider, "join", [gpu(), n(48), list(&[])], LEAST - STAKE_UNIT => "StakeTooLow"[n(LEAST - STAKE_UNIT), n(LEAST)]);
    check!(outsider, "join", [gpu(), n(48), list(&[])], LEAST + 1 => "StakeNotWhole"[n(LEAST + 1), n(STAKE_UNIT)]);
    let limit = big(u128::from(LEAST) << 18);
    let over = limit + U256::from(STAKE_UNIT);
    check!(rich, "join", [gpu(), n(48), list(&[])], over => "StakeTooHigh"[n(over), n(limit)]);
    check!(outsider, "join", [text(""), n(48), list(&[])], LEAST => "BadGpuName"[n(0), n(64)]);
    check!(outsider, "join", [text("gr\u{fc}n"), n(48), list(&[])], LEAST => "BadGpuName"[n(5), n(64)]);
    check!(outsider, "join", [text(&"x".repeat(65)), n(48), list(&[])], LEAST => "BadGpuName"[n(65), n(64)]);
    check!(outsider, "join", [gpu(), n(0), list(&[])], LEAST => "BadVram"[n(0), n(960)]);
    let many: Vec<u64> = (1..14).collect();
    check!(outsider, "join", [gpu(), n(48), list(&many)], LEAST => "TooManyModels"[n(13), n(10)]);
    check!(operator, "reportDownloaded", [list(&[5])], 0 => "ModelHeld"[n(5)]);
    check!(operator, "reportRemoved", [list(&[6])], 0 => "ModelNotHeld"[n(6)]);
    check!(operator, "reportRemoved", [list(&[0])], 0 => "BadModel"[n(0)]);
    check!(outsider, "purge", [n(5), n(0)], 0 => "HolderNotStale"[n(5), n(0)]);
    check!(outsider, "poke", [n(node)], 0 => "NothingToPoke"[n(node)]);
    check!(outsider, "poke", [n(99)], 0 => "NodeUnknown"[n(99)]);
    check!(outsider, "expire", [n(0), n(1)], 0 => "NodeUnknown"[n(0)]);
    check!(outsider, "dispatch", [n(17)], 0 => "TooManyAtOnce"[n(17), n(16)]);

    // A task that can be validated.
    w.rule("setParameter", &[n(24), n(0)]).await;
    let (id, _) = w.create(&mut app, &Spec { redundancy: 1, ..Spec::default() }, fee).await;
    let reveal = |kind: u64| [n(id), n(0), n(node), n(kind), digest.clone(), digest.clone()];
    let [task, place, of, kind, value, salt] = reveal(0);
    check!(operator, "submit", [n(id), digest.clone()], 0 => "CommitFirst"[n(id)]);
    check!(outsider, "reveal", [task, place, of, kind, value, salt], 0 => "NotCommitted"[n(id), n(node)]);
    let [task, place, of, kind, value, salt] = reveal(2);
    check!(outsider, "reveal", [task, place, of, kind, value, salt], 0 => "BadAnswerKind"[n(2), digest.clone()]);
    w.send(&mut a, "commit", &[n(id), digest.clone()], 0).await;
    check!(operator, "commit", [n(id), digest.clone()], 0 => "NothingToCommit"[n(id), n(node)]);
    let [task, place, of, kind, value, salt] = reveal(0);
    check!(outsider, "reveal", [task, place, of, kind, value, salt], 0 => "NotWhatWasCommitted"[n(id), n(node)]);
    check!(outsider, "settle", [n(id), n(1)], 0 => "GroupUnknown"[n(id), n(1)]);
    w.node.unwrap().chain().mine(4, 0).unwrap();
    check!(outsider, "validate", [n(id), n(node)], 0 => "NotSampled"[n(id)]);
    w.travel(601);
    w.send(&mut app, "expire", &[n(node), n(id)], 0).await;
    w.send(&mut app, "withdraw", &[address(outsider)], 0).await;
    w.travel(20_000);

    // A task on its way.
    check!(operator, "submit", [n(1), digest.clone()], 0 => "TaskNotRunning"[n(1), n(node)]);
    let (first, events) = w.create(&mut app, &Spec::default(), fee).await;
    let deadline = one(&events, "TaskStarted").number("deadline");
    check!(outsider, "expire", [n(node), n(first)], 0 => "DeadlineNotPassed"[n(first), n(deadline)]);
    let (second, events) = w.create(&mut app, &Spec::default(), fee).await;
    let ticket = one(&events, "TaskQueued").number("ticket");
    check!(operator, "cancel", [n(second), n(ticket)], 0 => "NotTheCreator"[n(second), address(operator)]);
    check!(outsider, "cancel", [n(second), n(ticket + 1)], 0 => "TaskNotQueued"[n(second), n(ticket + 1)]);
    check!(outsider, "cancel", [n(first), n(ticket)], 0 => "TaskNotQueued"[n(first), n(ticket)]);
    let parking = u64::from(u32::MAX) << 32;
    check!(outsider, "cancel", [n(first), n(parking)], 0 => "TaskNotQueued"[n(first), n(parking)]);
    let until = w.now() + 21_600;
    check!(outsider, "expireQueued", [n(second), n(ticket)], 0 => "QueueTimeNotOver"[n(second), n(until)]);
    w.travel(101);
    check!(operator, "submit", [n(first), digest.clone()], 0 => "DeadlinePassed"[n(first), n(deadline)]);
    check!(operator, "reportError", [n(first), n(1)], 0 => "DeadlinePassed"[n(first), n(deadline)]);
    w.send(&mut app, "expire", &[n(node), n(first)], 0).await;

    // Money that cannot be delivered stays owed.
    let owed = w.field("account", &[address(outsider)], "credit").await;
    assert_eq!(owed, fee.into());
    check!(outsider, "withdraw", [address(broken)], 0 => "TransferFailed"[address(broken), n(owed)]);
    assert_eq!(w.field("account", &[address(outsider)], "credit").await, owed);

    // Six of eleven due draws are left when a call has made five that queue their tasks.
    w.rule("setParameter", &[n(3), n(20)]).await;
    // Nobody is idle: only those of a call that creates several wait for their draws.
    let eleven = [Token::Array(vec![Spec::default().token(); 11]), Token::Array(vec![n(fee); 11]), Token::Bool(true)];
    w.send(&mut app, "createTasks", &eleven, 11 * fee).await;
    check!(boss, "setParameter", [n(3), n(1)], 0 => "TasksPending"[n(11)]);
    w.node.unwrap().chain().mine(40, 0).unwrap();
    check!(operator, "raiseStake", [], STAKE_UNIT => "DrawsDue"[n(6)]);
    w.rule("dispatch", &[n(16)]).await;

    // The pause switch stops new tasks and nodes, never exits.
    w.rule("setPaused", &[Token::Bool(true)]).await;
    check!(outsider, "createTask", [Spec::default().token()], fee => "PausedByOwner"[]);
    check!(outsider, "join", [gpu(), n(48), list(&[])], LEAST => "PausedByOwner"[]);
    let running = w.field("node", &[n(node)], "task").await;
    w.send(&mut a, "submit", &[n(running), digest], 0).await;
    w.send(&mut a, "quit", &[], 0).await;
    w.send(&mut app, "withdraw", &[address(outsider)], 0).await;
    assert!(w.field("node", &[n(node)], "reliability").await <= WAD.into());
    w.conserved().await;

    for (error, reason) in OUT_OF_REACH {
        assert!(!seen.contains(error), "{error} can be provoked after all, so it is not true that it {reason}");
        seen.insert(error);
    }
    let declared: BTreeSet<&str> = interface().errors().map(|error| error.name.as_str()).collect();
    assert_eq!(seen, declared);
}
