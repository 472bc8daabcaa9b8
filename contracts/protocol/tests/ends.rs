//! Random calls on networks whose parameters lie at the ends of their bounds and change all the time, until everybody leaves. No call
//! panics, every view answers, and all money belongs to somebody. Every task ends, and every node can leave with its stake.
//!
//! `SEEDS=2500 script/test -p muster-protocol --test ends` plays more networks.

use alloy_primitives::{B256, U256};
use muster_core::record::Head;
use muster_model::refused;
use muster_model::validated::*;
use muster_model::world::*;
use muster_protocol::host::Host;
use muster_protocol::layout::{slot, HEAD};
use muster_protocol::parameters::PARAMETERS;
use muster_protocol::store::registry;
use muster_protocol::IMuster::{self, *};
use std::collections::BTreeMap;

/// Accounts that join, from 1.
const OPERATORS: u64 = 14;
/// Accounts that create tasks, from [`CREATOR`].
const CREATORS: u64 = 4;
/// Calls on each network.
const CALLS: usize = 1_500;

/// How often each call was done or refused, by its name.
type Tally = BTreeMap<String, u64>;

/// An answer by its number, to a task of one image or to another.
fn answer(image: bool, number: u8) -> B256 {
    let mut bytes = value(number).0;
    bytes[8..].fill(if image { 0 } else { number });
    bytes.into()
}

/// The commitment to an error.
fn error() -> B256 {
    B256::with_last_byte(7)
}

/// One of these.
fn one<T: Copy>(dice: &mut Dice, of: &[T]) -> T {
    of[dice.below(of.len() as u64) as usize]
}

fn issued(w: &mut World) -> u32 {
    w.ask(overviewCall {}).nodesIssued
}

fn running(w: &mut World, number: u32) -> TaskView {
    w.ask(runningTaskCall { number })
}

/// A node whose running task has one of these statuses, if there is one; else any.
fn node_with(w: &mut World, dice: &mut Dice, statuses: &[u8]) -> u32 {
    let all: Vec<u32> = (1..=issued(w)).collect();
    let fit: Vec<u32> = all.iter().copied().filter(|&n| statuses.contains(&running(w, n).status)).collect();
    one(dice, if fit.is_empty() { &all } else { &fit })
}

fn groups(w: &mut World) -> Vec<GroupView> {
    w.ask(groupsCall { from: 1, count: 256 })._1
}

fn queued(w: &mut World) -> Vec<TaskView> {
    let queues = w.ask(queuesCall { from: 0, count: 256 })._1;
    queues.iter().flat_map(|q| w.ask(queuedTasksCall { queue: q.queue, from: 0, count: 256 })._1).collect()
}

/// Asks every view that depends on parameters or on the state.
fn look(w: &mut World) {
    for number in 1..=issued(w) {
        w.ask(bestQueuedCall { number });
        let _ = w.send([0; 20], 0, weightOfCall { number, spec: spec(0, &[1]) });
    }
    w.ask(nodesCall { from: 0, count: 64 });
    w.ask(pendingTasksCall { from: 0, count: 256 });
    w.ask(validatorDrawsCall { from: 0, count: 256 });
    w.ask(excludedNodesCall { from: 0, count: 256 });
    w.ask(idleNodesCall { group: CARD, class: 0, from: 0, count: 256 });
    w.ask(activeNodesCall { group: CARD, class: 9, from: 0, count: 256 });
    for task in queued(w) {
        w.ask(queuedBeforeCall { ticket: task.ticket, from: 0, count: 256 });
    }
    for id in 1..=w.ask(overviewCall {}).tasks {
        w.ask(locateCall { id, nodeHint: 1, ticketHint: 0 });
        w.ask(outcomeCall { id });
    }
    for kind in 0..3 {
        let _ = w.send([0; 20], 0, estimateCall { kind, units: 1 });
    }
    for which in 0..PARAMETERS.len() as u8 {
        w.ask(proposedParameterCall { which });
    }
    for n in CREATOR..CREATOR + CREATORS {
        w.ask(profileCall { application: who(n).into() });
    }
}

/// Sets a parameter to its least, its most, its default or a number between, if that is allowed now.
fn change(w: &mut World, dice: &mut Dice, parameter: u8) {
    let bounds = w.ask(parameterCall { which: parameter });
    let default: u64 = World::new().ask(parameterCall { which: parameter }).value.to();
    let (least, most): (u64, u64) = (bounds.least.to(), bounds.most.to());
    let between = least + (u128::from(dice.bits()) % (u128::from(most - least) + 1)) as u64;
    let value = U256::from(one(dice, &[least, least, least, most, most, most, default, between]));
    if PARAMETERS[parameter as usize].delayed() {
        let now = w.mem.now;
        w.mem.now -= u64::from(UPGRADE_DELAY);
        w.send(OWNER, 0, proposeParameterCall { parameter, value }).expect("within bounds");
        w.mem.now = now;
        w.send(OWNER, 0, acceptParameterCall { parameter }).expect("in time");
    } else {
        let _ = w.send(OWNER, 0, setParameterCall { parameter, value });
    }
}

/// Joins with a stake that is enough, of one of a few sizes.
fn join(w: &mut World, dice: &mut Dice, n: u64) -> muster_protocol::Result<()> {
    let least: u64 = w.ask(parameterCall { which: parameter("minStake") }).value.to();
    let tokens = one(dice, &[400, 401, 800, 1_600, 100_000, 400 << 18]).max(u128::from(least).div_ceil(1_000));
    let (gpu, vram) = one(dice, &[("RTX 4090", 24), ("RTX 4090", 24), ("H100", 80), ("A", 960)]);
    let models: Vec<u64> = (1..=dice.below(5)).collect();
    w.join(n, gpu, vram, &models, tokens).map(drop)
}

/// Creates a task of any kind and policy, for little, for a token, for the least or for nearly the most.
fn create(w: &mut World, dice: &mut Dice, n: u64) -> muster_protocol::Result<()> {
    let (kind, units) = (dice.below(3) as u8, one(dice, &[1, 1, 4, 60, 7_200]));
    let (redundancy, nodes) = one(dice, &[(0, 1), (1, 1), (2, 3), (3, 9)]);
    let (gpu, flags) = (one(dice, &[0, CARD]), dice.below(2) as u32);
    let models: Vec<u64> = (1..=dice.below(4)).collect();
    let spec = IMuster::TaskSpec { kind, units, gpu, redundancy, flags, ..spec(one(dice, &[0, 0, 24, 80]), &models) };
    let price: u64 = w.ask(parameterCall { which: parameter("minPrice") }).value.to();
    let estimated = w.send([0; 20], 0, estimateCall { kind, units }).map_or(1, |e| e.estimated);
    let least = (u128::from(price) * u128::from(estimated) * nodes).max(1);
    w.create(n, one(dice, &[1_000_000, TOKEN, least, (1 << 86) + 3]), spec).map(drop)
}

/// Answers a running task: submits, reports an error, or commits to either.
fn finish(w: &mut World, dice: &mut Dice) -> muster_protocol::Result<()> {
    let node = node_with(w, dice, &[3, 6]);
    let (task, by) = (running(w, node), w.node(node).operator.into_array());
    let (id, said) = (task.id, answer(task.kind == 0, 1 + dice.below(3) as u8));
    match (task.redundancy, dice.below(6)) {
        (0, 0) => w.send(by, 0, reportErrorCall { id, code: 3 }).map(drop),
        (0, _) => w.send(by, 0, submitCall { id, resultDigest: said }).map(drop),
        (_, 0) => {
            let commitment = commitment(id, node, ERROR, error(), salt(id, node));
            w.send(by, 0, commitCall { id, commitment }).map(drop)
        }
        _ => w.send(by, 0, commitCall { id, commitment: commitment(id, node, ANSWER, said, salt(id, node)) }).map(drop),
    }
}

/// Reveals what a node has committed to, if one has: all that it could have been is tried.
fn open(w: &mut World, dice: &mut Dice) -> muster_protocol::Result<()> {
    let committed =
        |g: &GroupView| g.members.iter().filter(|m| m.stage == stage::COMMITTED).map(|m| (g.id, g.group, m.node)).collect();
    let mut all: Vec<(u64, u32, u32)> = groups(w).iter().flat_map(|g| -> Vec<_> { committed(g) }).collect();
    all.extend((1..=issued(w)).map(|n| (running(w, n), n)).filter(|(task, _)| task.status == 4).map(|(task, n)| (task.id, 0, n)));
    if all.is_empty() {
        return Ok(());
    }
    let (id, place, node) = one(dice, &all);
    let mut last = reveal(w, id, place, node, ERROR, error());
    for said in (1..4).flat_map(|number| [answer(false, number), answer(true, number)]) {
        if last.is_err() {
            last = reveal(w, id, place, node, ANSWER, said);
        }
    }
    last
}

/// A random call.
fn act(w: &mut World, dice: &mut Dice, fixed: &[&str]) -> (&'static str, muster_protocol::Result<()>) {
    let (n, creator) = (1 + dice.below(OPERATORS), CREATOR + dice.below(CREATORS));
    let any = node_with(w, dice, &[]);
    match dice.below(40) {
        0..3 => ("join", join(w, dice, n)),
        3 => ("raise a stake", w.send(who(n), 400 * TOKEN, raiseStakeCall {}).map(drop)),
        4 => ("pause", w.send(who(n), 0, pauseCall {}).map(drop)),
        5 | 6 => ("resume", w.send(who(n), 0, resumeCall {}).map(drop)),
        7 if dice.below(3) == 0 => ("quit", w.send(who(n), 0, quitCall {}).map(drop)),
        7 | 8 => ("poke", w.send(who(DRIVER), 0, pokeCall { node: any }).map(drop)),
        9..16 => ("create", create(w, dice, creator)),
        16..18 => ("dispatch", w.dispatch(16).map(drop)),
        18..24 => ("answer", finish(w, dice)),
        24..30 => ("reveal", open(w, dice)),
        30 => {
            let id = running(w, any).id;
            ("expire", w.send(who(DRIVER), 0, expireCall { node: any, id }).map(drop))
        }
        31 => {
            let node = node_with(w, dice, &[4]);
            let id = running(w, node).id;
            ("validate", w.send(who(DRIVER), 0, validateCall { node, id }).map(drop))
        }
        32 => {
            let all: Vec<(u64, u32)> = groups(w).iter().map(|g| (g.id, g.group)).collect();
            let (id, group) = if all.is_empty() { (1, 1) } else { one(dice, &all) };
            ("settle", w.send(who(DRIVER), 0, settleCall { id, group }).map(drop))
        }
        33 => ("form a group", w.send(who(DRIVER), 0, formGroupCall {}).map(drop)),
        34 => ("withdraw", w.withdraw(creator).and(w.withdraw(n)).map(drop)),
        35 => {
            let parameter = dice.below(PARAMETERS.len() as u64) as u8;
            if !fixed.contains(&PARAMETERS[parameter as usize].name) {
                change(w, dice, parameter);
            }
            ("change a parameter", Ok(()))
        }
        36 => ("add a model", w.send(who(n), 0, reportDownloadedCall { models: vec![1 + dice.below(40)] }).map(drop)),
        37 => ("remove a model", w.send(who(n), 0, reportRemovedCall { models: vec![1 + dice.below(5)] }).map(drop)),
        38 => {
            let (algorithm, most, targeting) = (dice.below(4) as u8, 3 + dice.below(7) as u8, dice.below(3) as u8);
            let profile = Profile { algorithm, most, reschedules: dice.below(9) as u8, targeting, ..USUAL };
            ("set a profile", w.send(who(creator), 0, setProfileCall { profile }).map(drop))
        }
        _ => {
            let (model, position) = (1 + dice.below(5), dice.below(4) as u32);
            ("purge", w.send(who(DRIVER), 0, purgeCall { model, position }).map(drop))
        }
    }
}

/// Drives everything to its end; every node leaves, and every account is paid all that it is owed.
fn leave(w: &mut World) {
    w.send(OWNER, 0, setPausedCall { on: true }).expect("the owner stops the network");
    for _ in 0..4_000 {
        let o = w.ask(overviewCall {});
        let calls = w.ask(validatorDrawsCall { from: 0, count: 256 }).len();
        if (o.nodesJoined, o.pending, o.queued, o.groups, calls) == (0, 0, 0, 0, 0) {
            w.pass(1, 3_000_000);
            for n in (1..=OPERATORS).chain(CREATOR..CREATOR + CREATORS).chain([DRIVER]) {
                let _ = w.withdraw(n);
                let account = w.account(n);
                assert_eq!((account.credit, account.unbonding), (0, 0), "of account {n} something is left");
            }
            return check_money(w);
        }
        w.pass(70, 1_900);
        let _ = w.dispatch(16);
        let _ = w.send(who(DRIVER), 0, formGroupCall {});
        for node in 1..=o.nodesIssued {
            let (id, by) = (running(w, node).id, w.node(node).operator.into_array());
            let _ = w.send(who(DRIVER), 0, expireCall { node, id });
            let _ = w.send(who(DRIVER), 0, validateCall { node, id });
            let _ = w.send(who(DRIVER), 0, pokeCall { node });
            let _ = w.send(by, 0, quitCall {});
        }
        for group in groups(w) {
            let _ = w.send(who(DRIVER), 0, settleCall { id: group.id, group: group.group });
        }
        for task in queued(w) {
            let _ = w.send(who(DRIVER), 0, expireQueuedCall { id: task.id, ticket: task.ticket });
        }
    }
    let stuck: Vec<u32> = (1..=issued(w)).filter(|&node| w.node(node).status != 0).collect();
    panic!("nodes {stuck:?}, or tasks, are there still");
}

/// Plays a network that begins at this time.
fn play(seed: u64, begin: u64, tally: &mut Tally) {
    let (mut w, mut dice) = (World::new(), Dice(seed));
    w.mem.keep_logs = false;
    w.mem.now = begin;
    for n in 1..=12 {
        w.join(n, "RTX 4090", 24, &[1], 400).expect("joins");
    }
    w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: true }).expect("there is such a group");
    // At their ends these let no task be created, so only one network of three changes them.
    let fixed: &[&str] = if seed.is_multiple_of(3) { &[] } else { &["minPrice", "minStake"] };
    for parameter in 0..PARAMETERS.len() as u8 {
        if !fixed.contains(&PARAMETERS[parameter as usize].name) && dice.below(3) == 0 {
            change(&mut w, &mut dice, parameter);
        }
    }
    for call in 0..CALLS {
        let (name, result) = act(&mut w, &mut dice, fixed);
        let what = result.map_or_else(|refusal| name_of(&refusal.into_bytes()), |()| "done".into());
        *tally.entry(format!("{name}: {what}")).or_default() += 1;
        if call.is_multiple_of(64) {
            look(&mut w);
            check_money(&mut w);
        }
        match dice.below(60) {
            0..20 => {}
            20..45 => w.pass(1 + dice.below(3), dice.below(2)),
            45..58 => w.pass(70, 3),
            58 => w.pass(200, 200 + dice.below(4_000)),
            _ => w.pass(40, dice.below(200)),
        }
    }
    leave(&mut w);
}

/// Plays networks, and asserts that each of these calls was made, and did something, often enough.
fn play_all(first: u64, begin: u64) {
    let seeds: u64 = std::env::var("SEEDS").map_or(40, |n| n.parse().expect("a number"));
    let mut tally = Tally::new();
    for seed in first..first + seeds {
        println!("network {seed}");
        play(seed, begin, &mut tally);
    }
    for name in ["join", "quit", "create", "answer", "reveal", "expire", "validate", "settle", "withdraw"] {
        assert!(tally.get(&format!("{name}: done")) >= Some(&seeds), "{name} hardly happened: {tally:?}");
    }
    println!("{tally:?}");
}

#[test]
fn everybody_leaves_whatever_the_parameters_are() {
    play_all(0, 1_700_000_000);
}

/// Times that draws and groups compare have 32 bits, which end on 7 February 2106.
#[test]
fn everybody_leaves_beyond_the_last_second_of_32_bits() {
    play_all(1_000_000, u64::from(u32::MAX) - 5_000);
}

/// As `docs/parameters.md` says of that second: a group can be judged as soon as it is formed, and a timeout excludes nobody.
#[test]
fn beyond_the_last_second_of_32_bits_groups_wait_for_nobody() {
    let end = u64::from(u32::MAX) + 1;
    let mut w = network(9);
    w.mem.now = end - 50;
    let id = created(&mut w, TOKEN, IMuster::TaskSpec { gpu: CARD, ..alike(0) });
    let (group, members) = group_of(&mut w, id).expect("formed");
    w.send(who(DRIVER), 0, settleCall { id, group }).expect("nobody is waited for");
    assert_eq!(w.account(CREATOR).credit, TOKEN - TOKEN / 50, "refunded but for the start fee");
    assert!(members.iter().all(|&n| w.node(n).reliability == 3 * 10u64.pow(17)));
    w.mem.now = end + 50;
    let (id, node) = busy(&mut w, 1)[0];
    w.pass(1, 121);
    w.send(who(DRIVER), 0, expireCall { node, id }).expect("its deadline has passed");
    assert_eq!(w.node(node).reliability, 10u64.pow(18));
    check_money(&mut w);
}

/// Numbers that are never given again have an end: of nodes and of GPU names it is a refusal, of tasks it begins anew.
#[test]
fn the_last_numbers_are_refused_or_begin_again() {
    const LAST_NODE: u32 = 16_777_214;
    const LAST_NAME: u32 = 65_534;
    let mut w = network(3);
    for name in 2..LAST_NAME {
        w.raw(OWNER, 0, |m| registry::create_gpu_group(m, format!("card {name}").as_bytes(), 24)).expect("there is room");
    }
    let last = w.join(4, "the last", 24, &[], 400).unwrap();
    assert_eq!(w.node(last).gpu, LAST_NAME << 16 | 24);
    refused!(w.join(5, "one more", 24, &[], 400), TooManyGpuModels(24u16));
    w.join(5, "RTX 4090", 24, &[], 400).expect("a name that is known");

    let mut full = World::on(w.mem.clone());
    let head: Head = full.mem.get(slot(HEAD));
    full.mem.put(slot(HEAD), &Head { issued: LAST_NODE, ..head });
    refused!(full.join(6, "RTX 4090", 24, &[], 400), NetworkFull(5u32));
    full.send(who(1), 0, quitCall {}).unwrap();
    assert_eq!(full.join(1, "RTX 4090", 24, &[], 400).unwrap(), 1);

    w.mem.put(slot(HEAD), &Head { tasks: (1 << 40) - 2, ..head });
    let ids: Vec<u64> = (0..3).map(|_| w.create(CREATOR, TOKEN, spec(0, &[])).unwrap()).collect();
    w.drain();
    assert_eq!(ids, [(1 << 40) - 1, 1 << 40, 1]);
    assert_eq!((1..=5).filter(|&n| [0, 1, (1 << 40) - 1].contains(&task_of(&mut w, n)) && w.node(n).status == 2).count(), 3);
    check_money(&mut w);
}
