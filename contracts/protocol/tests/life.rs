//! Every public function and every refusal, one scene each.

use muster_core::id::{GpuGroup, ModelId, NodeId, QueueId, TaskId, Ticket};
use muster_core::record::{Escrow, Head, Rules};
use muster_core::wad::WAD;
use muster_core::word::Word;
use muster_model::meter::{metered_alone, Meter};
use muster_model::refused;
use muster_model::world::*;
use muster_protocol::abi::IMuster::{IMusterErrors, IMusterEvents as E, *};
use muster_protocol::admin::{self, Genesis};
use muster_protocol::flow::create::FEE_END;
use muster_protocol::flow::draw::{Candidates, Draw, Rng};
use muster_protocol::host::{offset, HISTORY};
use muster_protocol::layout::{node_slot, selector_key, slot, HEAD, SELECTORS, SELECTOR_PLACES};
use muster_protocol::native::Memory;
use muster_protocol::parameters::PARAMETERS;
use muster_protocol::store::accounts;
use muster_protocol::store::node::NodeHandle;
use muster_protocol::store::nodes::NodeStore;
use muster_protocol::store::sampler::Among;
use muster_protocol::store::task::Task;
use muster_protocol::{Host, IMuster, Network};

const FEE: u128 = TOKEN;

/// A world that draws at once, with nodes of one GPU.
fn world(nodes: u64) -> World {
    let mut w = World::new();
    w.set("drawDelay", 0);
    for n in 1..=nodes {
        assert_eq!(w.join(n, "RTX 4090", 24, &[], 400).unwrap(), n as u32);
    }
    w.events();
    w
}

fn submit(w: &mut World, n: u64, id: u64) -> muster_protocol::Result<()> {
    w.call(who(n), 0, |net| net.submit(TaskId(id), [9; 32]))
}

/// A parameter, and its bounds.
fn numbers(w: &mut World, which: u8) -> [u64; 3] {
    let p = w.ask(parameterCall { which });
    [p.value, p.least, p.most].map(|v| v.to())
}

fn error(w: &mut World, n: u64, id: u64) -> muster_protocol::Result<()> {
    w.call(who(n), 0, |net| net.report_error(TaskId(id), 3))
}

fn expire(w: &mut World, by: u64, node: u32, id: u64) -> muster_protocol::Result<()> {
    w.call(who(by), 0, |net| net.expire(NodeId(node), TaskId(id)))
}

fn status(w: &mut World, node: u32) -> u8 {
    w.node(node).status
}

fn close(a: u64, b: f64) {
    assert!((a as f64 / 1e18 - b).abs() < 1e-12, "{a} is not {b}");
}

/// A node that joins with no more models than one word holds opens the words of its first task. They mean nothing until then, and that task
/// costs no more than any other. A node that lists more leaves them to the caller that has that task drawn.
#[test]
fn who_joins_opens_the_words_of_a_first_task() {
    for (models, opens) in [(0, true), (6, true), (7, false)] {
        let mut w = World::new();
        w.set("drawDelay", 1);
        w.join(1, "RTX 4090", 24, &(1..=models).collect::<Vec<_>>(), 400).unwrap();
        let node = w.node(1);
        assert_eq!((node.task, node.deadline, node.status), (0, 0, 1), "{models} models");
        assert!(node.inUse.is_empty() && w.ask(runningTaskCall { number: 1 }).id == 0, "{models} models");
        let mut drawn = |fee| {
            let id = w.create(100, fee, spec(8, &[])).unwrap();
            w.pass(1, 0);
            let (gas, out) = metered_alone(&mut w, who(7), 0, |net| net.dispatch(1));
            assert_eq!(out, "accepted");
            submit(&mut w, 1, id).unwrap();
            gas
        };
        let (first, second) = (drawn(FEE), drawn(2 * FEE));
        assert_eq!(first - second, if opens { 0 } else { 2 * 17_100 }, "{models} models");
    }
}

#[test]
fn nothing_works_before_initialisation_and_it_happens_once() {
    let mut mem = Memory::created_by(OWNER);
    assert!(matches!(Network::open(&mut mem).err().unwrap().decode(), IMusterErrors::NotInitialised(_)));
    mem.codeless = vec![who(7)];
    let mut w = World::on(mem);
    refused!(w.raw(OWNER, 0, |m| admin::set_paused(m, true)), NotInitialised);
    refused!(w.raw(OWNER, 0, admin::accept_treasury), NotInitialised);
    refused!(w.send(OWNER, 0, sweepTreasuryCall {}), NotInitialised);
    refused!(w.raw(OWNER, 0, |m| admin::upgrades(m)), NotInitialised);
    let first = genesis();
    let day = 86_400;
    for bad in [
        Genesis { stake_unit: 999, ..first },
        Genesis { minimum_stake: 0, ..first },
        Genesis { minimum_stake: 400 * TOKEN + 1, ..first },
        Genesis { stake_unit: 1_000, ..first },
        // 2^18 times it is as large as all money.
        Genesis { stake_unit: 1 << 50, minimum_stake: 1 << 70, ..first },
        Genesis { upgrade_delay: 2 * day - 1, ..first },
        Genesis { upgrade_delay: 180 * day + 1, ..first },
    ] {
        refused!(w.raw(OWNER, 0, |m| admin::initialise(m, &bad, &[])), BadInitialisation);
    }
    refused!(w.raw(OWNER, 0, |m| admin::initialise(m, &Genesis { owner: [0; 20], ..first }, &[])), ZeroAddress);
    refused!(w.raw(OWNER, 0, |m| admin::initialise(m, &Genesis { treasury: [0; 20], ..first }, &[])), ZeroAddress);
    let program = |a: [u8; 20]| IMuster::Facet { facetAddress: a.into(), functionSelectors: vec![[1, 2, 3, 4].into()] };
    refused!(w.raw(OWNER, 0, |m| admin::initialise(m, &first, &[program(who(7))])), NoCode(who(7)));
    // Only the account that the router was created for; with init code that names nobody, nobody.
    refused!(w.raw(who(1), 0, |m| admin::initialise(m, &first, &[])), NotOwner(who(1)));
    let mut orphan = World::on(Memory::new());
    refused!(orphan.raw(OWNER, 0, |m| admin::initialise(m, &first, &[])), NotOwner(OWNER));
    assert!(w.mem.logs.is_empty());
    w.raw(OWNER, 0, |m| admin::initialise(m, &Genesis { owner: who(3), ..first }, &[program(who(8))])).unwrap();
    refused!(w.raw(OWNER, 0, |m| admin::initialise(m, &first, &[])), AlreadyInitialised);
    assert_eq!(admin::program_of(&w.mem, [1, 2, 3, 4]), who(8));
    assert_eq!(w.view(|n| n.overview()).owner.into_array(), who(3), "the deployer need not stay the owner");
    let mut w = World::new();
    let o = w.view(|n| n.overview());
    assert_eq!((o.owner.into_array(), o.treasury.into_array(), o.stakeUnit, o.paused), (OWNER, TREASURY, STAKE_UNIT, false));
}

#[test]
fn joining_needs_a_stake_a_gpu_and_sane_models() {
    let mut w = World::new();
    // A new GPU name costs a hundredth of the minimum stake beside the stake.
    let fee = 4 * TOKEN;
    refused!(w.join(1, "A", 24, &[], 399), StakeTooLow(word(403 * TOKEN), word(404 * TOKEN)));
    refused!(w.call(who(1), 1, |n| n.join(b"A", 24, ids(vec![]))), StakeNotWhole(word(1), STAKE_UNIT));
    refused!(w.call(who(1), fee, |n| n.join(b"A", 24, ids(vec![]))), StakeTooLow(word(fee), word(404 * TOKEN)));
    refused!(w.call(who(1), TOKEN, |n| n.join(b"A", 24, ids(vec![]))), StakeTooLow(word(TOKEN), word(404 * TOKEN)));
    let most = (400 * TOKEN) << 18;
    refused!(w.join(1, "A", 24, &[], (400 << 18) + 1), StakeTooHigh(word(most + fee + TOKEN), word(most + fee)));
    refused!(
        w.call(who(1), 404 * TOKEN + 1, |n| n.join(b"A", 24, ids(vec![]))),
        StakeNotWhole(word(404 * TOKEN + 1), STAKE_UNIT)
    );
    refused!(w.join(1, "", 24, &[], 400), BadGpuName(0usize, 64usize));
    refused!(w.join(1, &"x".repeat(65), 24, &[], 400), BadGpuName(65usize, 64usize));
    refused!(w.join(1, "A\n", 24, &[], 400), BadGpuName(2usize, 64usize));
    refused!(w.join(1, "A", 0, &[], 400), BadVram(0u16, 960u16));
    refused!(w.join(1, "A", 961, &[], 400), BadVram(961u16, 960u16));
    refused!(w.join(1, "A", 24, &[5, 6, 5], 400), DuplicateModel(5u64));
    refused!(w.join(1, "A", 24, &[0], 400), BadModel(0u64));
    refused!(w.join(1, "A", 24, &[1 << 40], 400), BadModel(1u64 << 40));
    let many: Vec<u64> = (1..=11).collect();
    refused!(w.join(1, "A", 24, &many, 400), TooManyModels(11usize, 10usize));
    // Initialisation, the parameters, and the programs that answer from then on.
    assert_eq!((w.paid_in, w.events().len()), (0, 1 + PARAMETERS.len() + 1));

    let name = "x".repeat(64);
    assert_eq!(w.join(1, &name, 24, &many[..10], 400).unwrap(), 1);
    refused!(w.join(1, &name, 24, &[], 400), WrongStatus(1u32, 1u8));
    assert_eq!(w.join(2, "B", 24, &[], 400 << 18).unwrap(), 2);
    let v = w.node(1);
    assert_eq!((v.status, v.vram, v.gpu, v.stake, v.reliability, v.longTerm), (1, 24, 1 << 16 | 24, 400 * TOKEN, WAD, WAD / 2));
    assert_eq!(v.models, many[..10]);
    assert_eq!(w.node(2).gpu, 2 << 16 | 24);
    assert_eq!(w.view(|n| n.overview()).largestStake, most);
    match &w.events()[..] {
        [E::GpuGroupCreated(g), E::NodeJoined(j), E::GpuGroupCreated(_), E::NodeJoined(_)] => {
            assert_eq!((g.group, &g.name, g.vram, g.fee), (1 << 16 | 24, &name, 24, fee));
            assert_eq!(
                (j.node, j.operator.into_array(), j.group, j.stake, &j.models[..]),
                (1, who(1), 1 << 16 | 24, 400 * TOKEN, &many[..10])
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(muster_protocol::store::registry::gpu_name(&w.mem, GpuGroup::of(1, 24)), name);
    assert_eq!(muster_protocol::store::registry::gpu_name(&w.mem, GpuGroup::of(2, 24)), "B");
    assert_eq!(muster_protocol::store::registry::gpu_name(&w.mem, GpuGroup(9)), "");
}

#[test]
fn the_largest_stake_and_lowest_class_follow_every_change() {
    let mut w = World::new();
    let stakes =
        [400u128, 5_000, 77_000, 401, 1_600, 77_001, 400, 300_000, 6_400, 401, 402, 403, 404, 405, 406, 407, 408, 4_000_000];
    for (i, &s) in stakes.iter().enumerate() {
        w.join(i as u64 + 1, "A", 24, &[], s).unwrap();
        let largest = stakes[..=i].iter().max().unwrap() * TOKEN;
        assert_eq!(w.view(|n| n.overview()).largestStake, largest);
        assert_eq!(w.view(|n| n.rules().lowest), 0);
    }
    for i in (0..stakes.len()).rev() {
        w.call(who(i as u64 + 1), 0, |n| n.quit()).unwrap();
        let largest = stakes[..i].iter().max().copied().unwrap_or(0) * TOKEN;
        assert_eq!(w.view(|n| n.overview()).largestStake, largest);
    }
    w.join(3, "A", 24, &[], 1_601).unwrap();
    assert_eq!(w.view(|n| (n.rules().lowest, n.overview().largestStake)), (2, 1_601 * TOKEN));
}

#[test]
fn raising_a_stake_moves_the_node_between_classes() {
    let mut w = world(9);
    refused!(w.call(who(99), TOKEN, |n| n.raise_stake()), NotAnOperator(who(99)));
    refused!(w.call(who(1), 0, |n| n.raise_stake()), StakeTooLow(word(0), STAKE_UNIT));
    refused!(w.call(who(1), 1, |n| n.raise_stake()), StakeNotWhole(word(1), STAKE_UNIT));
    let most = (400 * TOKEN) << 18;
    refused!(w.call(who(1), most, |n| n.raise_stake()), StakeTooHigh(word(most + 400 * TOKEN), word(most)));
    w.call(who(1), 1_200 * TOKEN + STAKE_UNIT as u128, |n| n.raise_stake()).unwrap();
    assert_eq!(w.node(1).stake, 1_600 * TOKEN + STAKE_UNIT as u128);
    assert_eq!(w.view(|n| n.overview()).largestStake, 1_600 * TOKEN + STAKE_UNIT as u128);
    assert_eq!(w.view(|n| raw(n.listed_nodes(Among::Idle, GpuGroup::of(1, 24), 2, 0, 9))), (1, vec![1]));
    assert_eq!(w.view(|n| raw(n.listed_nodes(Among::Idle, GpuGroup::of(1, 24), 0, 0, 9))).0, 8);
    assert!(matches!(&w.events()[..], [E::StakeRaised(e)] if e.node == 1 && e.stake == 1_600 * TOKEN + STAKE_UNIT as u128));
    w.call(who(1), 0, |n| n.quit()).unwrap();
    refused!(w.call(who(1), TOKEN, |n| n.raise_stake()), WrongStatus(1u32, 0u8));
}

#[test]
fn pausing_and_quitting_wait_for_the_task() {
    let mut w = world(1);
    refused!(w.call(who(1), 0, |n| n.resume()), WrongStatus(1u32, 1u8));
    refused!(w.call(who(8), 0, |n| n.pause()), NotAnOperator(who(8)));
    w.call(who(1), 0, |n| n.pause()).unwrap();
    refused!(w.call(who(1), 0, |n| n.pause()), WrongStatus(1u32, 5u8));
    assert_eq!(w.create(5, FEE, spec(0, &[])).unwrap(), 1);
    assert_eq!(status(&mut w, 1), 5);
    w.call(who(1), 0, |n| n.resume()).unwrap();
    assert_eq!(status(&mut w, 1), 2, "a resumed node takes the queued task");
    w.call(who(1), 0, |n| n.pause()).unwrap();
    assert_eq!(status(&mut w, 1), 3);
    for again in [|n: &mut Network<_>| n.pause(), |n: &mut Network<_>| n.resume(), |n: &mut Network<_>| n.quit()] {
        refused!(w.call(who(1), 0, again), WrongStatus(1u32, 3u8));
    }
    submit(&mut w, 1, 1).unwrap();
    assert_eq!(status(&mut w, 1), 5);
    w.call(who(1), 0, |n| n.resume()).unwrap();
    assert_eq!(w.create(5, FEE, spec(0, &[])).unwrap(), 2);
    w.call(who(1), 0, |n| n.quit()).unwrap();
    assert_eq!(status(&mut w, 1), 4);
    refused!(w.call(who(1), 0, |n| n.quit()), WrongStatus(1u32, 4u8));
    error(&mut w, 1, 2).unwrap();
    assert_eq!(status(&mut w, 1), 0);
    refused!(w.call(who(1), 0, |n| n.quit()), WrongStatus(1u32, 0u8));
    assert_eq!(w.view(|n| n.overview()).nodesJoined, 0);
    w.call(who(1), 0, |n| n.join(b"A", 1, ids(vec![]))).expect_err("no stake");
    assert_eq!(w.join(1, "A", 1, &[], 400).unwrap(), 1, "the number stays");
    w.call(who(1), 0, |n| n.pause()).unwrap();
    w.call(who(1), 0, |n| n.quit()).unwrap();
    assert_eq!(status(&mut w, 1), 0);
}

#[test]
fn who_joins_or_timed_out_takes_the_best_queued_task_that_it_can_run() {
    let mut w = world(1);
    w.set("alphaMilli", 100_000);
    w.create(5, FEE, spec(0, &[])).unwrap();
    let [low, high, middle] = [1_000, 3_000, 2_000].map(|fee| w.create(5, fee, spec(24, &[])).unwrap());
    w.join(2, "small", 16, &[], 400).unwrap();
    assert_eq!((status(&mut w, 2), w.view(|n| n.overview()).queued), (1, 3), "it can run none of them");
    w.events();
    w.join(3, "RTX 4090", 24, &[], 400).unwrap();
    assert!(matches!(&w.events()[..], [E::NodeJoined(_), E::TaskStarted(s)] if (s.id, s.node, s.boosts) == (high, 3, false)));
    w.pass(1, 121);
    expire(&mut w, 6, 3, high).unwrap();
    assert!(matches!(&w.events()[..], [E::TaskAborted(t), E::TaskStarted(s)] if (t.id, s.id, s.node) == (high, middle, 3)));
    assert_eq!((w.node(3).task, w.view(|n| n.overview()).queued), (middle, 1));
    assert_eq!(w.view(|n| n.best_queued(NodeId(1))).unwrap().id, low);
}

#[test]
fn a_stake_comes_back_after_unbonding_and_only_once() {
    let mut w = world(1);
    refused!(w.withdraw(1), NothingToWithdraw(who(1)));
    w.call(who(1), 0, |n| n.quit()).unwrap();
    let a = w.account(1);
    assert_eq!((a.unbonding, a.release, a.credit), (400 * TOKEN, w.mem.now + 86_400, 0));
    w.pass(1, 86_399);
    refused!(w.withdraw(1), NothingToWithdraw(who(1)));
    refused!(w.send(who(1), 0, withdrawCall { to: [0; 20].into() }), ZeroAddress);
    w.pass(1, 1);
    w.events();
    assert_eq!(w.withdraw(1).unwrap(), 400 * TOKEN);
    assert!(matches!(&w.events()[..], [E::Withdrawn(e)] if e.stake == 400 * TOKEN && e.credit == 0));
    refused!(w.withdraw(1), NothingToWithdraw(who(1)));
    // A second quit adds to the waiting stake and starts the period anew.
    w.join(1, "A", 24, &[], 500).unwrap();
    w.call(who(1), 0, |n| n.quit()).unwrap();
    w.pass(1, 50_000);
    w.join(1, "A", 24, &[], 600).unwrap();
    w.call(who(1), 0, |n| n.quit()).unwrap();
    w.pass(1, 50_000);
    refused!(w.withdraw(1), NothingToWithdraw(who(1)));
    w.pass(1, 36_400);
    assert_eq!(w.withdraw(1).unwrap(), 1_100 * TOKEN);
    // Stake that has waited long enough does not wait again.
    w.join(1, "A", 24, &[], 500).unwrap();
    w.call(who(1), 0, |n| n.quit()).unwrap();
    w.pass(1, 86_400);
    w.join(1, "A", 24, &[], 600).unwrap();
    w.events();
    w.call(who(1), 0, |n| n.quit()).unwrap();
    assert!(
        matches!(&w.events()[..], [E::StakeReleased(r), E::NodeQuit(q)] if r.amount == 500 * TOKEN && r.account.into_array() == who(1) && q.stake == 600 * TOKEN)
    );
    assert_eq!(w.withdraw(1).unwrap(), 500 * TOKEN);
    assert_eq!((w.account(1).unbonding, w.account(1).release), (600 * TOKEN, w.mem.now + 86_400));
    w.pass(1, 86_400);
    assert_eq!(w.withdraw(1).unwrap(), 600 * TOKEN);
    let names = w.view(|n| n.overview()).treasuryBalance;
    assert_eq!((w.paid_in, names), (w.mem.paid + names, 2 * 4 * TOKEN));
}

#[test]
fn no_stake_is_taken_that_could_not_be_returned() {
    // A fine stake unit, as deployments have it: three of the largest stakes fill the 48 bits of unbonding stake.
    let mut w = World::on(Memory::created_by(OWNER));
    let stake_unit = 1_000_000_000_000u64;
    w.raw(OWNER, 0, |m| admin::initialise(m, &Genesis { stake_unit, ..genesis() }, &[])).unwrap();
    w.set("groupFee", 0);
    for _ in 0..2 {
        w.join(1, "A", 24, &[], 400 << 18).unwrap();
        w.call(who(1), 0, |n| n.quit()).unwrap();
    }
    let most = ((1u128 << 48) - 1) * stake_unit as u128 - 2 * ((400 << 18) * TOKEN);
    refused!(w.join(1, "A", 24, &[], 400 << 18), StakeTooHigh(word((400 << 18) * TOKEN), word(most)));
    w.join(1, "A", 24, &[], 400).unwrap();
    refused!(
        w.call(who(1), (400 << 18) * TOKEN - 400 * TOKEN, |n| n.raise_stake()),
        StakeTooHigh(word((400 << 18) * TOKEN), word(most))
    );
    w.call(who(1), 0, |n| n.quit()).unwrap();
    w.pass(1, 86_400);
    assert_eq!(w.withdraw(1).unwrap(), w.paid_in);
}

#[test]
fn a_task_runs_at_once_with_no_delay_and_in_the_next_block_with_one() {
    let mut w = world(3);
    let id = w.create(5, FEE, spec(24, &[])).unwrap();
    match &w.events()[..] {
        [E::TaskCreated(c), E::TaskStarted(s)] => {
            assert_eq!(
                (c.id, c.creator.into_array(), c.fee, c.estimate, c.timeLimit, c.startFeeBps, c.drawBlock),
                (1, who(5), FEE, 60, 120, 200, 999)
            );
            // Its H can rise no more.
            assert_eq!((s.id, s.deadline, s.boosts), (1, 1_700_000_120, false));
            assert_eq!(status(&mut w, s.node), 2);
            let t = w.view(|n| n.running_task(NodeId(s.node))).unwrap();
            assert_eq!((t.id, t.fee, t.deadline), (1, FEE, s.deadline));
        }
        other => panic!("{other:?}"),
    }
    let runs = w.view(|n| n.node_views(0, 9)).unwrap().into_iter().find(|v| v.status == 2).unwrap().node;
    let idle = (1..=3).find(|&n| n != runs).unwrap();
    assert_eq!(w.view(|n| n.running_task(NodeId(idle))).unwrap().status, 0);
    refused!(submit(&mut w, idle as u64, id), TaskNotRunning(id, idle));
    refused!(submit(&mut w, 77, id), NotAnOperator(who(77)));
    refused!(submit(&mut w, runs as u64, id + 1), TaskNotRunning(id + 1, runs));
    submit(&mut w, runs as u64, id).unwrap();
    assert_eq!(w.account(runs as u64).credit, FEE);
    refused!(submit(&mut w, runs as u64, id), TaskNotRunning(id, runs));
    assert!(matches!(&w.events()[..], [E::TaskSucceeded(e)] if e.resultDigest.0 == [9; 32] && e.paid == FEE && e.node == runs));

    w.set("drawDelay", 1);
    w.create(5, FEE, spec(24, &[])).unwrap();
    let pending = w.view(|n| n.pending_tasks(0, 9)).unwrap();
    assert_eq!((pending.len(), pending[0].id, pending[0].drawBlock), (1, 2, w.mem.block));
    assert_eq!(w.dispatch(16).unwrap(), 0, "the block is not over");
    refused!(w.call(who(5), 0, |n| n.cancel(TaskId(2), Ticket(0))), TaskNotQueued(2u64, 0u64));
    refused!(w.dispatch(17), TooManyAtOnce(17u8, 16u8));
    w.pass(1, 1);
    assert_eq!(w.dispatch(16).unwrap(), 1);
    assert_eq!(w.view(|n| n.overview()).pending, 0);
    assert!((1..=3).any(|n| w.node(n).status == 2 && w.node(n).task == 2));
}

/// A world whose draws wait for a block: three busy nodes of one GPU group, and an idle one of another.
fn three_busy() -> (World, IMuster::TaskSpec, IMuster::TaskSpec) {
    let mut w = World::new();
    for n in 1..=3 {
        w.join(n, "A", 24, &[], 400).unwrap();
    }
    w.join(4, "B", 48, &[], 400).unwrap();
    let on = |group: GpuGroup| IMuster::TaskSpec { gpu: group.0, ..spec(0, &[]) };
    let (busy, idle) = (on(GpuGroup::of(1, 24)), on(GpuGroup::of(1, 48)));
    for _ in 1..=3 {
        w.create(5, FEE, busy.clone()).unwrap();
    }
    w.drain();
    w.events();
    assert!((1..=3).all(|n| w.node(n).status == 2));
    (w, busy, idle)
}

/// A task that finds nobody idle needs no draw: the call that creates it queues or evicts it.
#[test]
fn what_nobody_idle_could_run_is_queued_at_its_creation() {
    let (mut w, busy, _) = three_busy();
    w.set("alphaMilli", 250);
    w.events();
    let id = w.create(5, FEE, busy.clone()).unwrap();
    match &w.events()[..] {
        [E::TaskCreated(created), E::TaskQueued(queued)] => {
            assert_eq!((created.id, created.drawBlock, queued.id, queued.group), (id, 0, id, busy.gpu));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((w.view(|n| n.overview()).pending, w.view(|n| n.queued())), (0, 1));

    // The queue is full: a task that is worth no more is aborted, with all of its fee returned.
    let none_better = w.create(6, FEE, busy.clone()).unwrap();
    match &w.events()[..] {
        [E::TaskCreated(_), E::TaskAborted(gone)] => assert_eq!((gone.id, gone.reason, gone.refund), (none_better, 2, FEE)),
        other => panic!("{other:?}"),
    }
    assert_eq!(w.account(6).credit, FEE);
    let better = w.create(7, 2 * FEE, busy.clone()).unwrap();
    match &w.events()[..] {
        [E::TaskCreated(_), E::TaskAborted(gone), E::TaskQueued(queued)] => assert_eq!((gone.id, queued.id), (id, better)),
        other => panic!("{other:?}"),
    }
    let running = w.node(1).task;
    submit(&mut w, 1, running).unwrap();
    assert_eq!(w.node(1).task, better);
}

/// A call that joins a node starts a queued task on it only if it has made no draw, each of which can start one, too.
#[test]
fn a_node_that_joins_beside_draws_looks_for_work_in_the_next_call() {
    for draws in [false, true] {
        let (mut w, busy, idle) = three_busy();
        let queued = w.create(5, FEE, busy).unwrap();
        if draws {
            w.create(5, FEE, idle).unwrap();
        }
        w.pass(1, 1);
        w.join(6, "A", 24, &[], 400).unwrap();
        assert_eq!(w.node(4).task > 0, draws);
        let joined = w.node(5);
        assert_eq!((joined.task, joined.parked, joined.parkedUntil), if draws { (0, 1, w.mem.now) } else { (queued, 0, 0) });
        w.call(who(9), 0, |_| Ok(())).unwrap();
        assert_eq!((w.node(5).task, w.node(5).parked), (queued, 0));
    }
    // Nothing is queued, so nothing could begin.
    let (mut w, _, idle) = three_busy();
    w.create(5, FEE, idle).unwrap();
    w.pass(1, 1);
    w.join(6, "A", 24, &[], 400).unwrap();
    assert_eq!((w.node(4).status, w.node(5).status, w.node(5).parked), (2, 1, 0));
}

/// A task for several nodes is queued as well, in the queue of its grade, and its nodes are drawn once enough of them are free.
#[test]
fn what_takes_several_is_queued_at_its_creation_while_nobody_is_idle() {
    let (mut w, busy, idle) = three_busy();
    w.events();
    let three = IMuster::TaskSpec { kind: 0, redundancy: 2, ..busy };
    let id = w.create(5, 3 * FEE, three.clone()).unwrap();
    match &w.events()[..] {
        [E::TaskCreated(created), E::TaskQueued(queued)] => {
            assert_eq!((created.id, created.drawBlock, queued.id, queued.group), (id, 0, id, three.gpu));
        }
        other => panic!("{other:?}"),
    }
    // One of the nodes that it asks for is idle: fewer than it takes, which the draw is to find out.
    let any = IMuster::TaskSpec { gpu: 0, vram: 24, ..three };
    w.create(5, 3 * FEE, any).unwrap();
    assert_eq!((w.view(|n| n.overview()).pending, w.view(|n| n.queued())), (1, 1));
    // A task that no three nodes could ever run is refused before.
    refused!(
        w.create(5, 3 * FEE, IMuster::TaskSpec { kind: 0, redundancy: 2, ..idle }),
        NobodyCanRun(48u16, GpuGroup::of(1, 48).0)
    );
    for node in 1..=3 {
        let running = w.node(node).task;
        submit(&mut w, node.into(), running).unwrap();
    }
    w.drain();
    assert!(w.events().iter().any(|e| matches!(e, E::GroupFormed(formed) if formed.id == id && formed.nodes.len() == 3)));
}

/// All others wait for their draws: tasks that an idle node could run, those created together, and those of a contract. So do tasks whose
/// call has read too much before, started another, drawn several nodes or re-admitted one.
#[test]
fn what_has_to_wait_for_a_draw_is_not_queued_at_its_creation() {
    let (mut w, busy, idle) = three_busy();
    let pending = |w: &mut World| w.view(|n| n.overview()).pending;
    w.create(5, FEE, idle.clone()).unwrap();
    w.create(5, FEE, spec(0, &[])).unwrap();
    assert_eq!(pending(&mut w), 2);
    batch(&mut w, 5, std::slice::from_ref(&busy), &[FEE], true).unwrap();
    assert_eq!(pending(&mut w), 3);
    // A call has read head, rules, terms and the GPU group's idle nodes by then.
    for (more, waits) in [(96 - 4, 3), (96 - 3, 4)] {
        let create = |m: &mut Memory| {
            let mut net = Network::open(m)?;
            (0..more).for_each(|i| _ = net.host.load(Word::from(i)));
            let id = net.create_task(busy.clone())?;
            net.close();
            Ok(id)
        };
        w.raw(who(5), FEE, create).unwrap();
        assert_eq!(pending(&mut w), waits, "{more} words");
    }
    // Created by a contract, which could look at the outcome and revert.
    w.mem.by_contract = true;
    w.create(5, FEE, busy.clone()).unwrap();
    assert_eq!(pending(&mut w), 5);
    let three = IMuster::TaskSpec { kind: 0, redundancy: 2, ..busy.clone() };
    w.create(5, 3 * FEE, three.clone()).unwrap();
    assert_eq!(pending(&mut w), 6);
    w.mem.by_contract = false;
    w.create(5, FEE, busy).unwrap();
    w.create(5, 3 * FEE, three).unwrap();
    assert_eq!(pending(&mut w), 6);
    // It has started one.
    let (mut w, _, idle) = three_busy();
    w.create(5, FEE, idle.clone()).unwrap();
    w.pass(1, 1);
    w.create(5, FEE, idle.clone()).unwrap();
    assert_eq!((w.node(4).status, pending(&mut w)), (2, 1));
    w.pass(1, 1);
    w.create(5, FEE, idle).unwrap();
    assert_eq!((pending(&mut w), w.view(|n| n.queued())), (0, 2), "it has queued one before");
    // Has drawn several nodes.
    let (mut w, busy, idle) = three_busy();
    w.create(5, 3 * FEE, IMuster::TaskSpec { kind: 0, redundancy: 2, gpu: 0, vram: 24, ..idle }).unwrap();
    w.pass(1, 1);
    w.create(5, FEE, busy).unwrap();
    assert_eq!((pending(&mut w), w.view(|n| n.queued())), (1, 1), "the one for three is queued");
    // Has re-admitted a node, which a higher threshold excludes again.
    let (mut w, busy, _) = three_busy();
    w.set("exclusionPpm", 600_000);
    let task = w.node(1).task;
    w.pass(1, 3_600);
    w.send(who(60), 0, expireCall { node: 1, id: task }).unwrap();
    let due = w.node(1).parkedUntil;
    w.set("exclusionPpm", 900_000);
    w.pass(1, due - w.mem.now);
    w.events();
    w.create(5, FEE, busy).unwrap();
    assert!(matches!(w.events()[..], [E::NodeReadmitted(_), E::NodeExcluded(_), E::TaskCreated(_)]));
    assert_eq!(pending(&mut w), 1);
}

/// A full ring keeps out only tasks that would wait in it.
#[test]
fn a_full_ring_keeps_nothing_from_the_queue() {
    let (mut w, busy, idle) = three_busy();
    for _ in 0..4_095 {
        w.create(5, FEE, idle.clone()).unwrap();
    }
    refused!(w.create(5, FEE, idle.clone()), TooManyPending(4_095u32));
    w.create(5, FEE, busy).unwrap();
    assert_eq!((w.view(|n| n.overview()).pending, w.view(|n| n.queued())), (4_095, 1));
}

/// The grace is added to a time limit, the least price multiplies an estimate, and a fee of a batch takes more than 64 bits.
#[test]
fn terms_make_the_limit_and_the_least_fee() {
    let mut w = world(3);
    let created = |w: &mut World| {
        w.create(5, FEE, spec(0, &[])).unwrap();
        w.events()
            .into_iter()
            .find_map(|e| if let E::TaskCreated(c) = e { Some((c.timeLimit, c.estimate)) } else { None })
            .unwrap()
    };
    let (limit, estimate) = created(&mut w);
    w.set("grace", 5);
    assert_eq!(created(&mut w), (limit + 5, estimate));
    w.set("minPrice", 7);
    let least = 7 * u128::from(estimate);
    refused!(w.create(5, least - 1, spec(0, &[])), FeeTooLow(word(least - 1), least));
    w.set("drawDelay", 1);
    batch(&mut w, 5, &[spec(0, &[])], &[20 * TOKEN], true).unwrap();
    assert_eq!(w.ask(pendingTasksCall { from: 0, count: 1 })[0].fee, 20 * TOKEN);
}

/// Creates tasks in one call.
fn batch(w: &mut World, n: u64, specs: &[IMuster::TaskSpec], fees: &[u128], atomic: bool) -> muster_protocol::Result<Vec<u64>> {
    let (specs, fees) = (specs.to_vec(), fees.to_vec());
    w.send(who(n), fees.iter().sum(), createTasksCall { specs, fees, atomic })
}

#[test]
fn a_batch_is_created_whole_or_without_what_is_refused() {
    let mut w = world(3);
    w.set("drawDelay", 1);
    w.events();
    let (good, unknown) = (spec(24, &[]), spec(961, &[]));
    let mixed = [good.clone(), unknown.clone(), spec(24, &[7]), good.clone()];
    let fees = [FEE, FEE + 1, FEE + 2, 1];

    let whole = batch(&mut w, 5, &mixed, &fees, true);
    match whole.unwrap_err().decode() {
        IMusterErrors::RefusedInBatch(e) => {
            assert_eq!((e.place.to::<u64>(), name_of(&e.reason)), (1, "BadVram".into()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((w.view(|n| n.overview()).pending, w.account(5).credit, w.events().len()), (0, 0, 0), "nothing is left of it");

    assert_eq!(batch(&mut w, 5, &mixed, &fees, false).unwrap(), [1, 0, 2, 0]);
    let block = w.mem.block;
    match &w.events()[..] {
        [E::TaskCreated(one), E::TaskRefused(bad), E::TaskCreated(two), E::TaskRefused(cheap)] => {
            assert_eq!((one.id, one.fee, one.drawBlock, one.spec.clone()), (1, FEE, block, good.clone()));
            assert_eq!((two.id, two.fee, two.drawBlock, &two.spec.models[..]), (2, FEE + 2, block, &[7][..]));
            assert_eq!(
                (bad.creator.into_array(), bad.place, bad.fee, name_of(&bad.reason)),
                (who(5), 1, FEE + 1, "BadVram".into())
            );
            assert_eq!((cheap.place, cheap.fee, name_of(&cheap.reason)), (3, 1, "FeeTooLow".into()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(w.account(5).credit, FEE + 2, "the fees of those that were left out");
    assert_eq!(w.withdraw(5).unwrap(), FEE + 2);

    // An error in the call itself refuses it, whatever it does about tasks.
    let ask = |w: &mut World, value: u128, tasks: usize, fees: &[u128]| {
        w.send(who(5), value, createTasksCall { specs: vec![good.clone(); tasks], fees: fees.to_vec(), atomic: false })
    };
    refused!(ask(&mut w, 2, 17, &[1; 17]), TooManyAtOnce(17usize, 16usize));
    refused!(ask(&mut w, FEE, 2, &[FEE]), BadBatch(2usize, 1usize, FEE));
    refused!(ask(&mut w, FEE, 1, &[FEE, 0]), BadBatch(1usize, 2usize, FEE));
    refused!(ask(&mut w, FEE, 1, &[FEE + 1]), BadBatch(1usize, 1usize, FEE));
    refused!(ask(&mut w, 1 << 87, 1, &[1 << 87]), BadBatch(1usize, 1usize, 1u128 << 87));
    refused!(ask(&mut w, 0, 2, &[u128::MAX, 1]), BadBatch(2usize, 2usize, 0u128));
    assert_eq!(ask(&mut w, 0, 0, &[]).unwrap(), [0u64; 0]);
    w.send(OWNER, 0, setPausedCall { on: true }).unwrap();
    refused!(ask(&mut w, FEE, 1, &[FEE]), PausedByOwner);
    w.send(OWNER, 0, setPausedCall { on: false }).unwrap();
    refused!(
        World::new().send(who(5), FEE, createTasksCall { specs: vec![good.clone()], fees: vec![FEE], atomic: true }),
        NoNodes
    );
}

#[test]
fn a_batch_draws_nothing_of_its_own_and_waits_for_what_is_dear() {
    let mut w = world(40);
    let three = vec![spec(24, &[]); 3];
    // At any delay: a single task would be drawn at once.
    assert_eq!(batch(&mut w, 5, &three, &[FEE; 3], true).unwrap(), [1, 2, 3]);
    assert_eq!((w.view(|n| n.overview()).pending, w.dispatch(16).unwrap()), (3, 0));
    w.set("drawDelay", 1);
    // It makes cheap due draws itself, before its own.
    w.pass(1, 1);
    assert_eq!(batch(&mut w, 5, &three, &[FEE; 3], true).unwrap(), [4, 5, 6]);
    assert_eq!(w.view(|n| n.overview()).pending, 3);
    assert!((1..=3).all(|id| (1..=40).any(|n| w.node(n).task == id)), "the first three run");
    // But it makes no expensive ones, and no more than eight.
    w.pass(1, 1);
    assert_eq!(w.dispatch(16).unwrap(), 3);
    w.create(5, FEE, spec(24, &[901, 902])).unwrap();
    w.pass(1, 1);
    refused!(batch(&mut w, 5, &three, &[FEE; 3], false), DrawsDue(1u32));
    assert_eq!(w.dispatch(16).unwrap(), 1);
    assert_eq!(batch(&mut w, 5, &vec![spec(24, &[]); 16], &[FEE; 16], false).unwrap(), (8..24).collect::<Vec<_>>());
    w.pass(1, 1);
    refused!(batch(&mut w, 5, &three[..1], &[FEE], false), DrawsDue(8u32));
    assert_eq!(w.dispatch(16).unwrap(), 16, "the refused call's draws came to nothing");
    // A task for several that has a receipt, one that needs more nodes than there are, one for images.
    let some = [
        IMuster::TaskSpec { kind: 0, units: 1, redundancy: 2, flags: 1, ..spec(24, &[]) },
        IMuster::TaskSpec { redundancy: 2, ..spec(24, &[]) },
        IMuster::TaskSpec { kind: 0, units: 2, redundancy: 3, ..spec(0, &[1, 2, 3]) },
    ];
    let ids = batch(&mut w, 5, &some, &[TOKEN; 3], false).unwrap();
    assert_eq!(ids, [24, 0, 25], "no group is listed where answers are alike");
    assert_eq!(w.ask(outcomeCall { id: 24 }).state, 1, "its receipt is open");
}

#[test]
fn every_call_serves_two_pending_tasks_and_only_an_aged_out_hash_is_drawn_again() {
    let mut w = world(9);
    w.set("drawDelay", 1);
    for _ in 0..7 {
        w.create(5, FEE, spec(0, &[])).unwrap();
    }
    w.pass(1, 0);
    w.call(who(5), FEE, |n| n.create_task(spec(0, &[]))).unwrap();
    assert_eq!(w.view(|n| n.overview()).pending, 6);
    // The history contract knows what the precompile has forgotten.
    w.pass(HISTORY - 1, 0);
    assert_eq!(w.dispatch(1).unwrap(), 1);
    assert_eq!(w.view(|n| n.overview()).pending, 5, "the last block of {HISTORY} is still known");
    w.pass(2, 0);
    w.events();
    assert_eq!(w.dispatch(16).unwrap(), 5);
    assert_eq!(w.view(|n| n.overview()).pending, 5, "all hashes have aged out");
    let at = w.mem.block;
    assert!(w.events().iter().all(|e| matches!(e, E::TaskRedrawn(r) if r.drawBlock == at)));
    w.pass(256, 0);
    assert_eq!(w.dispatch(16).unwrap(), 5);
    assert_eq!(w.view(|n| n.overview()).pending, 0);
}

/// A bound on the reads that a call which needs settled draws makes for others. It makes up to eight draws, fewer where they are expensive,
/// whether its own program makes them or asks the one of tasks.
#[test]
fn a_call_that_needs_settled_draws_makes_up_to_eight() {
    for (tasks, asks) in [(8, false), (9, false), (8, true), (9, true)] {
        let mut w = world(20);
        w.set("drawDelay", 1);
        for _ in 0..tasks {
            w.create(5, FEE, spec(0, &[])).unwrap();
        }
        w.pass(1, 0);
        let paused = if asks { w.send(who(1), 0, pauseCall {}).map(drop) } else { w.call(who(1), 0, |n| n.pause()) };
        if tasks == 8 {
            assert_eq!((paused.is_ok(), w.view(|n| n.overview()).pending), (true, 0));
        } else {
            refused!(paused, DrawsDue(1u32));
        }
    }
}

/// A call that has made a draw makes another if it will hardly read more than 208 words in all. A draw of a single node counts for 24
/// words, or for 96 with several models; one of several nodes counts for all of them. A call that has read 96 words at most makes the first
/// draw whatever it counts for, and one that has read more, or does as much itself, only by the same rule.
#[test]
fn what_a_draw_is_taken_to_read_decides_whether_another_is_made() {
    let three = IMuster::TaskSpec { kind: 0, redundancy: 2, ..spec(0, &[]) };
    for (wanted, words) in [(spec(0, &[]), Some(24)), (spec(0, &[77]), Some(24)), (spec(0, &[77, 78]), Some(96)), (three, None)] {
        let mut w = world(6);
        w.set("drawDelay", 1);
        w.create(5, FEE, wanted).unwrap();
        w.pass(1, 0);
        let served = |served: u32, read: u32| {
            let mut mem = w.mem.clone();
            Network::open(&mut mem).unwrap().serve_for(served + 1, served, read)
        };
        let looking = {
            let mut mem = w.mem.clone();
            let began = mem.reads();
            assert!(Network::open(&mut mem).unwrap().draws_due());
            mem.reads() - began
        };
        assert!(served(0, 96 - looking) > 0);
        match words {
            Some(words) => {
                let most = 208 - words - looking;
                assert_eq!((served(0, most), served(0, most + 1)), (1, 0), "{words} words");
                assert_eq!((served(1, most), served(1, most + 1)), (2, 1), "{words} words");
            }
            None => assert_eq!((served(0, 97 - looking), served(1, 0)), (0, 1)),
        }
    }
}

/// The tasks that a batch creates leave fewer reads for draws that others wait for.
#[test]
fn a_large_batch_makes_fewer_draws_than_a_small_one() {
    let mut w = world(20);
    w.set("drawDelay", 1);
    for _ in 0..6 {
        w.create(5, FEE, spec(0, &[])).unwrap();
    }
    w.pass(1, 0);
    let mem = w.mem.clone();
    for (tasks, made) in [(1, true), (2, true), (16, false)] {
        w.mem = mem.clone();
        let created = batch(&mut w, 5, &vec![spec(24, &[]); tasks], &vec![FEE; tasks], true);
        assert_eq!(created.is_ok(), made, "{tasks} tasks");
        assert_eq!(w.view(|n| n.overview()).pending, if made { tasks as u32 } else { 6 });
    }
}

/// Without the network's own choice: tests can take the first Pending task, once its block has come.
#[test]
fn a_due_task_can_be_taken_off_the_ring() {
    let mut w = world(2);
    w.set("drawDelay", 1);
    w.create(5, FEE, spec(0, &[])).unwrap();
    assert_eq!(Network::open(&mut w.mem).unwrap().take_due(), None, "its hash is not known yet");
    w.pass(1, 0);
    w.mem.sender = who(5);
    let mut net = Network::open(&mut w.mem).unwrap();
    let task = net.take_due().unwrap();
    assert_eq!((task.order.id, task.escrow.fee, net.ring().len()), (TaskId(1), FEE, 0));
    assert_eq!(net.take_due(), None);
}

/// A node that is freed while tasks are queued that it cannot run is idle.
#[test]
fn who_resumes_beside_tasks_for_others_is_idle() {
    let mut w = World::new();
    w.set("drawDelay", 0);
    w.set("alphaMilli", 100_000);
    let (a, b) = (GpuGroup::of(1, 24), GpuGroup::of(1, 48));
    w.join(1, "A", 24, &[], 400).unwrap();
    w.join(2, "B", 48, &[], 400).unwrap();
    let on = |group: GpuGroup| IMuster::TaskSpec { gpu: group.0, ..spec(0, &[]) };
    w.send(who(2), 0, pauseCall {}).unwrap();
    let first = w.create(5, FEE, on(a)).unwrap();
    for queued in 1..=3 {
        w.create(5, FEE, on(a)).unwrap();
        assert_eq!(w.view(|n| n.queued()), queued);
    }
    w.send(who(2), 0, resumeCall {}).unwrap();
    assert_eq!((status(&mut w, 1), w.node(1).task, status(&mut w, 2), w.view(|n| n.queued())), (2, first, 1, 3));
    let other = w.create(5, FEE, on(b)).unwrap();
    assert_eq!((status(&mut w, 2), w.node(2).task), (2, other));
}

/// The blocks of the tasks in the ring never fall: a shorter delay waits until it is empty.
#[test]
fn the_delay_is_lowered_only_while_no_task_is_pending() {
    let mut w = world(3);
    w.set("drawDelay", 64);
    w.create(5, FEE, spec(0, &[])).unwrap();
    let lower = |w: &mut World, to: u64| w.raw(OWNER, 0, |m| admin::set_parameter(m, parameter("drawDelay"), Word::from(to)));
    refused!(lower(&mut w, 63), TasksPending(1u32));
    lower(&mut w, 64).unwrap();
    w.pass(64, 0);
    w.dispatch(1).unwrap();
    lower(&mut w, 1).unwrap();
    w.create(5, FEE, spec(0, &[])).unwrap();
    lower(&mut w, 9).unwrap();
}

#[test]
fn the_ring_of_pending_tasks_has_an_end() {
    let mut w = world(1);
    w.set("drawDelay", 1);
    for _ in 0..4_095 {
        w.create(5, FEE, spec(0, &[])).unwrap();
    }
    refused!(w.create(5, FEE, spec(0, &[])), TooManyPending(4_095u32));
    w.pass(1, 0);
    w.create(5, FEE, spec(0, &[])).unwrap();
    let pages = w.view(|n| n.pending_tasks(4_000, 256)).unwrap();
    assert_eq!((pages.len(), pages[0].id, pages.last().unwrap().id), (94, 4_003, 4_096));
}

#[test]
fn creating_a_task_refuses_what_it_cannot_run() {
    let mut w = World::new();
    refused!(w.create(5, FEE, spec(0, &[])), NoNodes);
    w.join(1, "A", 24, &[], 400).unwrap();
    let with = |f: &dyn Fn(&mut IMuster::TaskSpec)| {
        let mut s = spec(0, &[]);
        f(&mut s);
        s
    };
    refused!(w.create(5, FEE, with(&|s| s.kind = 3)), BadKind(3u8));
    refused!(w.create(5, FEE, with(&|s| s.units = 0)), BadUnits(0u32, 1_000u32));
    refused!(w.create(5, FEE, with(&|s| s.units = 1_001)), BadUnits(1_001u32, 1_000u32));
    // No task is taken that no time limit leaves time for.
    refused!(w.create(5, FEE, with(&|s| (s.kind, s.units) = (2, 86_401))), BadUnits(86_401u32, 7_200u32));
    refused!(w.create(5, FEE, with(&|s| s.redundancy = 4)), RedundancyUnsupported(4u8));
    refused!(w.create(5, FEE, with(&|s| s.redundancy = 255)), RedundancyUnsupported(255u8));
    refused!(w.create(5, FEE, with(&|s| s.vram = 961)), BadVram(961u16, 960u16));
    refused!(w.create(5, FEE, with(&|s| s.vram = 25)), NobodyCanRun(25u16, 0u32));
    refused!(w.create(5, FEE, with(&|s| s.vram = 960)), NobodyCanRun(960u16, 0u32));
    refused!(w.create(5, FEE, with(&|s| s.gpu = 25)), GpuUnknown(25u32));
    // The number of any GPU of a size is no group to require.
    refused!(w.create(5, FEE, with(&|s| s.gpu = 24)), GpuUnknown(24u32));
    refused!(w.create(5, FEE, with(&|s| s.gpu = 2 << 16 | 24)), GpuUnknown(2u32 << 16 | 24));
    refused!(w.create(5, FEE, with(&|s| s.gpu = 0xffff)), GpuUnknown(0xffffu32));
    refused!(w.create(5, FEE, spec(0, &[1, 2, 1])), DuplicateModel(1u64));
    refused!(w.create(5, FEE, spec(0, &[0])), BadModel(0u64));
    refused!(w.create(5, FEE, spec(0, &[1, 2, 3, 4, 5, 6, 7, 8, 9])), TooManyModels(9usize, 8usize));
    refused!(w.create(5, 59, spec(0, &[])), FeeTooLow(word(59), 60u64));
    refused!(w.create(5, 1 << 87, spec(0, &[])), FeeTooHigh(word(1 << 87), (1u128 << 87) - 1));
    w.set("minPrice", 0);
    refused!(w.create(5, 0, spec(0, &[])), FeeTooLow(word(0), 1u64));
    w.create(5, 1, spec(0, &[])).unwrap();
    w.create(5, (1 << 87) - 1, with(&|s| s.gpu = 1 << 16 | 24)).unwrap();
    for (kind, units, estimated, limit) in [
        (0, 1, 50, 100),
        (0, 3, 90, 180),
        (1, 1, 60, 120),
        (1, 9, 60, 120),
        (2, 10, 30, 60),
        (2, 31, 31, 62),
        (2, 7_200, 7_200, 7_200),
    ] {
        let e = w.ask(estimateCall { kind, units });
        assert_eq!((e.estimated, e.timeLimit), (estimated, limit));
    }
    // Units that no time limit leaves time for are refused, for every kind, and the error says the most that fits.
    for (kind, most) in [(0, 358), (1, 1_000), (2, 7_200)] {
        assert!(w.ask(estimateCall { kind, units: most }).estimated <= 7_200);
        refused!(w.send([0; 20], 0, estimateCall { kind, units: most + 1 }), BadUnits(most + 1, most));
        refused!(w.create(5, FEE, with(&|s| (s.kind, s.units) = (kind, most + 1))), BadUnits(most + 1, most));
    }
    // Nor is a task that is longer than the longest time limit with any units, also where a unit takes no time.
    w.set("limitMax", 60);
    assert_eq!(w.ask(estimateCall { kind: 1, units: 1_000 }).timeLimit, 60);
    w.set("gptOverhead", 61);
    refused!(w.send([0; 20], 0, estimateCall { kind: 1, units: 1 }), BadUnits(1u32, 0u32));
    refused!(w.create(5, FEE, with(&|s| s.kind = 1)), BadUnits(1u32, 0u32));
    w.set("gptOverhead", 60);
    w.set("limitMax", 7_200);
    w.set("grace", 600);
    assert_eq!(w.ask(estimateCall { kind: 1, units: 1 }).timeLimit, 720);
    w.set("limitMin", 301);
    let e = w.ask(estimateCall { kind: 1, units: 1 });
    assert_eq!((e.estimated, e.timeLimit, e.leastFee), (151, 902, 1));
}

/// Nobody joined could run it: refused at creation, for every size and group that anyone ever joined with.
#[test]
fn a_task_that_no_joined_node_could_run_is_refused() {
    let mut w = World::new();
    let runs = |w: &mut World, vram: u16, gpu: u32| {
        let wanted = IMuster::TaskSpec { gpu, ..spec(vram, &[]) };
        match w.call(who(99), FEE, |n| n.order_for(&wanted).map(drop)) {
            Ok(()) => true,
            Err(e) => {
                assert_eq!(e, refusal!(NobodyCanRun(if gpu == 0 { vram } else { gpu as u16 }, gpu)));
                false
            }
        }
    };
    let sizes = [8u16, 255, 256, 511, 512, 700, 959, 960, 24];
    for (i, &vram) in sizes.iter().enumerate() {
        for (j, gpu) in ["A", "B"].into_iter().enumerate() {
            w.join(1 + 2 * i as u64 + j as u64, gpu, vram, &[], 400).unwrap();
        }
    }
    // They leave in an order that meets every word and the edges between them; both nodes of a size must go.
    for gone in [7usize, 3, 6, 0, 5, 4, 2, 1, 8] {
        let largest = w.view(|n| n.head().max_vram);
        let a = sizes[gone] as u32;
        w.call(who(1 + 2 * gone as u64), 0, |n| n.quit()).unwrap();
        assert_eq!(w.view(|n| n.head().max_vram), largest, "one of its size is left");
        assert!(runs(&mut w, 0, 2 << 16 | a));
        w.call(who(2 + 2 * gone as u64), 0, |n| n.quit()).unwrap();
        assert!(!runs(&mut w, 0, 2 << 16 | a));
        let left = (0..sizes.len()).filter(|&i| w.node(1 + 2 * i as u32).status == 1).map(|i| sizes[i]).max();
        assert_eq!(w.view(|n| n.head().max_vram), left.unwrap_or(0));
        for v in sizes {
            let able = left.is_some_and(|l| l >= v);
            assert!(w.view(|n| n.overview()).nodesJoined == 0 || runs(&mut w, v, 0) == able, "{v} with {left:?}");
        }
    }
    w.join(1, "A", 80, &[], 400).unwrap();
    assert!(runs(&mut w, 80, 0) && !runs(&mut w, 81, 0));
}

/// Without a start fee nobody gets one.
#[test]
fn who_ends_a_queued_task_for_nothing_is_no_beneficiary() {
    let mut w = world(1);
    w.set("startFeeBps", 0);
    w.create(5, FEE, spec(0, &[])).unwrap();
    let id = w.create(5, 1_000, spec(0, &[])).unwrap();
    let ticket = w.ticket(id);
    w.pass(1, 21_601);
    w.events();
    w.send(who(6), 0, expireQueuedCall { id, ticket }).unwrap();
    assert!(
        matches!(&w.events()[..], [E::TaskAborted(a)] if (a.reason, a.refund, a.startFee, a.beneficiary.into_array()) == (3, 1_000, 0, [0; 20]))
    );
    assert_eq!((w.account(5).credit, w.account(6).credit), (1_000, 0));
}

/// Anyone can end a queued task once it has waited too long, and is paid for it.
#[test]
fn a_task_queued_for_too_long_can_be_ended_by_anyone() {
    let mut w = world(1);
    w.create(5, FEE, spec(0, &[])).unwrap();
    let id = w.create(5, 1_000, spec(0, &[])).unwrap();
    let ticket = w.ticket(id);
    let end = |w: &mut World, n: u64| {
        w.raw(who(n), 0, |m| {
            let mut net = Network::open(m)?;
            net.expire_queued(TaskId(id), Ticket(ticket))?;
            net.close();
            Ok(())
        })
    };
    let until = w.mem.now + 21_600;
    w.pass(1, 21_600);
    refused!(end(&mut w, 6), QueueTimeNotOver(id, until));
    refused!(w.call(who(6), 0, |net| net.expire_queued(TaskId(id), Ticket(ticket + 1))), TaskNotQueued(id, ticket + 1));
    refused!(w.call(who(6), 0, |net| net.expire_queued(TaskId(id + 1), Ticket(ticket))), TaskNotQueued(id + 1, ticket));
    w.pass(1, 1);
    w.events();
    w.mem
        .call(|m| -> Result<(), ()> {
            // Undone: the creator does not earn by it.
            (m.sender, m.value) = (who(5), word(0));
            let mut net = Network::open_and_serve(m).unwrap();
            net.expire_queued(TaskId(id), Ticket(ticket)).unwrap();
            assert_eq!((accounts::income(net.host), accounts::account(net.host, who(5)).credit), (4 * TOKEN + 20, 980));
            Err(())
        })
        .unwrap_err();
    end(&mut w, 6).unwrap();
    assert!(
        matches!(&w.events()[..], [E::TaskAborted(a)] if (a.reason, a.refund, a.startFee, a.beneficiary.into_array()) == (3, 980, 20, who(6)))
    );
    assert_eq!((w.account(5).credit, w.account(6).credit, w.view(|n| n.overview()).queued), (980, 20, 0));
    refused!(end(&mut w, 6), TaskNotQueued(id, ticket));
}

#[test]
fn timeouts_lower_h_and_successes_raise_it() {
    let mut w = world(1);
    w.set("boostPool", 1);
    let id = w.create(5, 1_000, spec(0, &[])).unwrap();
    refused!(expire(&mut w, 6, 0, id), NodeUnknown(0u32));
    refused!(expire(&mut w, 6, 2, id), NodeUnknown(2u32));
    w.pass(1, 120);
    let deadline = w.mem.now;
    refused!(expire(&mut w, 6, 1, id), DeadlineNotPassed(id, deadline));
    // At the deadline itself it is still in time; undone.
    w.mem
        .call(|m| -> Result<(), ()> {
            (m.sender, m.value) = (who(1), word(0));
            Network::open_and_serve(m).unwrap().submit(TaskId(id), [9; 32]).unwrap();
            Err(())
        })
        .unwrap_err();
    w.pass(1, 1);
    refused!(submit(&mut w, 1, id), DeadlinePassed(id, deadline));
    refused!(error(&mut w, 1, id), DeadlinePassed(id, deadline));
    w.events();
    w.mem
        .call(|m| -> Result<(), ()> {
            // Undone: the node that let it time out earns nothing by it.
            (m.sender, m.value) = (who(1), word(0));
            let mut net = Network::open_and_serve(m).unwrap();
            net.expire(NodeId(1), TaskId(id)).unwrap();
            assert_eq!((accounts::income(net.host), accounts::account(net.host, who(1)).credit), (4 * TOKEN + 20, 0));
            net.close();
            Err(())
        })
        .unwrap_err();
    expire(&mut w, 6, 1, id).unwrap();
    match &w.events()[..] {
        [E::TaskAborted(a)] => {
            assert_eq!(
                (a.id, a.creator.into_array(), a.reason, a.refund, a.startFee, a.beneficiary.into_array()),
                (1, who(5), 0, 980, 20, who(6))
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((w.account(5).credit, w.account(6).credit), (980, 20));
    assert_eq!(w.node(1).reliability, 300_000_000_000_000_000);
    refused!(expire(&mut w, 6, 1, id), TaskNotRunning(id, 1u32));
    w.pass(1, 600);
    close(w.node(1).reliability, 1.0 - 0.7 * (-1.0f64 / 3.0).exp());
    let id = w.create(5, 1_000, spec(0, &[])).unwrap();
    submit(&mut w, 1, id).unwrap();
    close(w.node(1).reliability, 1.0 - 0.7 * (-1.0f64 / 3.0).exp() + 0.15);
    // An error changes nothing but time's work.
    w.pass(1, 300);
    let before = w.node(1).reliability;
    let id = w.create(5, 1_000, spec(0, &[])).unwrap();
    error(&mut w, 1, id).unwrap();
    assert_eq!(w.node(1).reliability, before);
    // It rests as long as the task would have taken.
    w.pass(1, 60);
    for _ in 0..4 {
        let id = w.create(5, 1_000, spec(0, &[])).unwrap();
        w.pass(1, 30);
        submit(&mut w, 1, id).unwrap();
    }
    assert_eq!(w.node(1).reliability, WAD);
}

/// A success raises H only if the draw had candidates enough, and only half an estimate after H was last set.
#[test]
fn a_success_raises_h_only_after_a_real_draw_and_some_time() {
    // Lets node 1 time out once in a world where it can be steered to, and gives H after a success.
    let after = |prepare: &dyn Fn(&mut World), wanted: IMuster::TaskSpec, wait: u64| {
        let mut w = world(6);
        w.call(who(1), 0, |n| n.report_downloaded(ids(vec![7]))).unwrap();
        let id = w.create(5, 1_000, spec(0, &[7])).unwrap();
        assert_eq!(w.node(1).task, id);
        w.pass(1, 121);
        expire(&mut w, 6, 1, id).unwrap();
        prepare(&mut w);
        let start = loop {
            let id = w.create(5, 1_000, wanted.clone()).unwrap();
            if w.node(1).task == id {
                break w.mem.now;
            }
            // Another node was chosen: it ends its task, and the draw is made again.
            for n in 2..=w.view(|n| n.overview()).nodesIssued {
                if status(&mut w, n) == 2 {
                    let (id, operator) = (w.node(n).task, w.node(n).operator.into_array());
                    w.call(operator, 0, |net| net.submit(TaskId(id), [9; 32])).unwrap();
                }
            }
            w.pass(1, 0);
        };
        let boosts = w.view(|n| n.running_task(NodeId(1))).unwrap().boosts;
        w.pass(1, wait);
        let (h, id) = (w.node(1).reliability, w.node(1).task);
        submit(&mut w, 1, id).unwrap();
        let raised = w.node(1).reliability != h;
        assert_eq!(start, w.mem.now - wait);
        (boosts, raised)
    };
    let nothing = |_: &mut World| ();
    let hold = |nodes: u64| {
        move |w: &mut World| (2..=nodes).for_each(|n| w.call(who(n), 0, |net| net.report_downloaded(ids(vec![7]))).unwrap())
    };
    let pause = |from: u64| move |w: &mut World| (from..=6).for_each(|n| w.call(who(n), 0, |net| net.pause()).unwrap());
    // A model that nobody else holds, or one other; a third makes a draw of it.
    assert_eq!(after(&nothing, spec(0, &[7]), 60), (false, false));
    assert_eq!(after(&hold(2), spec(0, &[7]), 60), (false, false));
    assert_eq!(after(&hold(3), spec(0, &[7]), 60), (true, true));
    // No model: all idle nodes count, in one group or over several.
    assert_eq!(after(&nothing, spec(0, &[]), 60), (true, true));
    assert_eq!(after(&pause(3), spec(0, &[]), 60), (false, false));
    assert_eq!(after(&pause(4), spec(0, &[]), 60), (true, true));
    let other = |n: usize| {
        move |w: &mut World| {
            pause(2)(w);
            for i in 0..n {
                w.join(50 + i as u64, ["x", "y", "z"][i], [24, 25, 960][i], &[], 400).unwrap();
            }
        }
    };
    assert_eq!(after(&other(1), spec(24, &[]), 60), (false, false));
    assert_eq!(after(&other(2), spec(24, &[]), 60), (true, true));
    assert_eq!(after(&other(2), IMuster::TaskSpec { gpu: 1 << 16 | 24, ..spec(0, &[]) }, 60), (false, false));
    // Too soon after H was last set: half of 60 s.
    assert_eq!(after(&nothing, spec(0, &[]), 29), (true, false));
    assert_eq!(after(&nothing, spec(0, &[]), 30), (true, true));
    // A node that was given its task by the queue was not drawn.
    let mut w = world(1);
    w.set("boostPool", 1);
    lower(&mut w, WAD / 2);
    let (first, second) = (w.create(5, 1_000, spec(0, &[])).unwrap(), w.create(5, 1_000, spec(0, &[])).unwrap());
    assert!(w.view(|n| n.running_task(NodeId(1))).unwrap().boosts);
    submit(&mut w, 1, first).unwrap();
    assert_eq!(w.node(1).task, second);
    assert!(!w.view(|n| n.running_task(NodeId(1))).unwrap().boosts);
}

/// A queued task raises H only if it waited for half its estimate, so that all nodes that became free meanwhile left it. In addition,
/// `boostPool` nodes must be active in its scope, busy or not.
#[test]
fn a_queued_task_raises_h_if_it_has_waited_where_others_could_have_taken_it() {
    // Gives whether the task that node 1 takes from the queue raises H, and whether it did: others of its GPU, and of another.
    let after = |pool: u64, (same, other): (u64, u64), wanted: IMuster::TaskSpec, waits: u64, works: u64| {
        let mut w = world(1);
        w.set("boostPool", pool);
        for n in 0..same + other {
            w.join(10 + n, if n < same { "RTX 4090" } else { "other" }, 24, &[], 400).unwrap();
        }
        // Everybody is busy: then a task is queued at once.
        let mut own = 0;
        for _ in 0..=same + other {
            let id = w.create(5, 1_000, spec(0, &[])).unwrap();
            own = if w.node(1).task == id { id } else { own };
        }
        lower(&mut w, WAD / 2);
        let id = w.create(5, 1_000, wanted).unwrap();
        assert_eq!(w.view(|n| n.overview()).queued, 1);
        w.pass(1, waits);
        submit(&mut w, 1, own).unwrap();
        assert_eq!(w.node(1).task, id);
        let boosts = w.view(|n| n.running_task(NodeId(1))).unwrap().boosts;
        w.pass(1, works);
        let before = w.node(1).reliability;
        submit(&mut w, 1, id).unwrap();
        let now = w.node(1).reliability;
        assert!(now == before || now == before + 15 * WAD / 100);
        (boosts, now > before)
    };
    let (any, own) = (spec(0, &[]), IMuster::TaskSpec { gpu: 1 << 16 | 24, ..spec(0, &[]) });
    // Half of 60 s in the queue, and half of them since H was last set.
    assert_eq!(after(3, (2, 0), any.clone(), 29, 40), (false, false));
    assert_eq!(after(3, (2, 0), any.clone(), 30, 40), (true, true));
    assert_eq!(after(3, (2, 0), any.clone(), 30, 0), (true, true));
    // Two others that are active in its scope.
    assert_eq!(after(3, (1, 0), any.clone(), 60, 40), (false, false));
    assert_eq!(after(3, (1, 1), any.clone(), 60, 40), (true, true));
    assert_eq!(after(3, (1, 1), own.clone(), 60, 40), (false, false));
    assert_eq!(after(3, (2, 0), own, 60, 40), (true, true));
    // As the QoS document has it: every one, but for the time since H was last set.
    assert_eq!(after(0, (0, 0), any.clone(), 0, 30), (true, true));
    assert_eq!(after(0, (0, 0), any, 0, 29), (true, false));
}

/// A fine-tuning task of `seconds`: its time limit is clamped to at least `limitMin`.
fn short() -> IMuster::TaskSpec {
    IMuster::TaskSpec { kind: 2, units: 1, ..spec(0, &[]) }
}

/// Lets node 1 time out until it is excluded.
fn exclude(w: &mut World) {
    w.set("limitMin", 1);
    for _ in 0..2 {
        let id = w.create(5, 1_000, short()).unwrap();
        w.pass(1, 3);
        expire(w, 6, 1, id).unwrap();
    }
    assert!(w.node(1).excluded && w.node(1).status == 1);
}

/// A number has 24 bits, and a place beside it can say that there is none.
#[test]
fn the_last_number_is_given_out_once() {
    const LAST: u32 = 16_777_214;
    let mut mem = Memory::default();
    let mut node_store = NodeStore::of(&Head { issued: LAST - 1, joined: 7, ..Head::default() }, &Rules::default());
    assert_eq!(node_store.issue(&mut mem).unwrap(), NodeId(LAST));
    refused!(node_store.issue(&mut mem), NetworkFull(7u32));
}

/// A place that a node has left is nobody's.
#[test]
fn who_comes_back_leaves_the_list_of_the_excluded() {
    let mut w = world(2);
    w.set("limitMin", 1);
    while !(1..=2).all(|node| w.node(node).excluded) {
        let id = w.create(5, 1_000, short()).unwrap();
        let node = (1..=2).find(|&node| w.node(node).task == id && status(&mut w, node) == 2).unwrap();
        w.pass(1, 3);
        expire(&mut w, 6, node, id).unwrap();
    }
    let listed = |w: &mut World| w.view(|n| raw(n.excluded_nodes(0, 9)));
    let until = |w: &mut World| [1, 2].map(|node| w.node(node).parkedUntil);
    assert_eq!(listed(&mut w), (2, vec![1, 2]));
    let (first, last) = {
        let [a, b] = until(&mut w);
        (a.min(b), a.max(b))
    };
    assert!(first > w.mem.now && last > first);
    w.pass(1, first - w.mem.now);
    let back = if until(&mut w)[0] == first { 1 } else { 2 };
    w.call(who(7), 0, |n| n.poke(NodeId(back))).unwrap();
    assert_eq!(listed(&mut w), (2, vec![3 - back]), "one of two places is free");
}

#[test]
fn an_excluded_node_is_parked_gets_nothing_and_comes_back() {
    let mut w = world(1);
    exclude(&mut w);
    let until = match w.events().pop() {
        Some(E::NodeExcluded(e)) => e.until,
        other => panic!("{other:?}"),
    };
    let h = w.node(1).reliability as f64 / 1e18;
    let seconds = (1_800.0 * ((1.0 - h) / 0.9).ln()).ceil() as u64;
    assert_eq!(until, w.mem.now + seconds);
    assert_eq!(w.view(|n| raw(n.excluded_nodes(0, 9))), (1, vec![1]));
    assert_eq!(w.node(1).parkedUntil, until);
    assert_eq!(w.view(|n| raw(n.listed_nodes(Among::Idle, GpuGroup::of(1, 24), 0, 0, 9))).0, 0);
    let id = w.create(5, FEE, spec(0, &[])).unwrap();
    assert_eq!(w.view(|n| n.overview()).queued, 1, "the excluded node is not asked");
    refused!(w.call(who(7), 0, |n| n.poke(NodeId(1))), NothingToPoke(1u32));
    w.pass(1, seconds - 1);
    refused!(w.call(who(7), 0, |n| n.poke(NodeId(1))), NothingToPoke(1u32));
    w.pass(1, 1);
    w.events();
    // Any call re-admits it, and it takes a queued task.
    refused!(w.call(who(77), 0, |n| n.pause()), NotAnOperator(who(77)));
    assert_eq!(status(&mut w, 1), 1, "a refused call leaves nothing behind");
    assert_eq!(w.withdraw(5).unwrap(), 1_960);
    assert_eq!(status(&mut w, 1), 1, "but a withdrawal, which nothing can keep from paying");
    w.events();
    w.create(5, FEE, spec(0, &[])).unwrap();
    assert!(matches!(&w.events()[..], [E::NodeReadmitted(r), E::TaskStarted(s), ..] if r.node == 1 && s.id == id));
    assert_eq!(w.view(|n| n.head().parked_due), 0);
    refused!(w.call(who(7), 0, |n| n.poke(NodeId(1))), WrongStatus(1u32, 2u8));
    refused!(w.call(who(7), 0, |n| n.poke(NodeId(3))), NodeUnknown(3u32));
}

#[test]
fn poking_the_node_that_is_first_in_line_to_return_is_no_error() {
    let mut w = world(1);
    exclude(&mut w);
    w.pass(1, 200);
    w.events();
    w.call(who(7), 0, |n| n.poke(NodeId(1))).unwrap();
    assert!(matches!(&w.events()[..], [E::NodeReadmitted(r)] if r.node == 1));
    assert_eq!(w.view(|n| raw(n.listed_nodes(Among::Idle, GpuGroup::of(1, 24), 0, 0, 9))).1, [1]);
    refused!(w.call(who(7), 0, |n| n.poke(NodeId(1))), NothingToPoke(1u32));
}

#[test]
fn poke_readmits_offers_work_and_takes_out_who_fell_below_a_raised_threshold() {
    let mut w = world(1);
    exclude(&mut w);
    w.set("exclusionPpm", 50_000);
    w.call(who(7), 0, |n| n.poke(NodeId(1))).unwrap();
    assert_eq!(w.view(|n| raw(n.listed_nodes(Among::Idle, GpuGroup::of(1, 24), 0, 0, 9))).1, [1]);
    w.set("exclusionPpm", 500_000);
    w.call(who(7), 0, |n| n.poke(NodeId(1))).unwrap();
    assert_eq!(w.view(|n| raw(n.excluded_nodes(0, 9))).1, [1]);
    w.set("exclusionPpm", 100);
    w.call(who(7), 0, |n| n.poke(NodeId(1))).unwrap();
    refused!(w.call(who(7), 0, |n| n.poke(NodeId(1))), NothingToPoke(1u32));
    // After an error the node rests, or, where it has had the time, stays idle beside a queue; a poke offers it the task.
    let first = w.create(5, FEE, spec(0, &[])).unwrap();
    while status(&mut w, 1) == 1 {
        // A draw among nodes of low merit may stay undecided.
        w.pass(1, 0);
        w.dispatch(1).unwrap();
    }
    let second = w.create(5, FEE, spec(0, &[])).unwrap();
    w.pass(1, 59);
    let mem = w.mem.clone();
    error(&mut w, 1, first).unwrap();
    assert_eq!((status(&mut w, 1), w.node(1).parked, w.node(1).parkedUntil), (1, 1, w.mem.now + 1));
    w.pass(0, 1);
    w.call(who(7), 0, |n| n.poke(NodeId(1))).unwrap();
    assert_eq!(w.node(1).task, second, "rested, it looks for work like all who return");
    w.mem = mem;
    w.pass(0, 1);
    error(&mut w, 1, first).unwrap();
    assert_eq!((status(&mut w, 1), w.node(1).parked), (1, 0));
    assert_eq!((status(&mut w, 1), w.view(|n| n.best_queued(NodeId(1))).unwrap().id), (1, second));
    w.call(who(7), 0, |n| n.poke(NodeId(1))).unwrap();
    assert_eq!((status(&mut w, 1), w.node(1).task, w.view(|n| n.best_queued(NodeId(1))).unwrap().id), (2, second, 0));
}

#[test]
fn pausing_quitting_or_raising_a_parked_node_unparks_it() {
    let mut w = world(1);
    exclude(&mut w);
    w.call(who(1), 2_000 * TOKEN, |n| n.raise_stake()).unwrap();
    assert_eq!(w.view(|n| raw(n.excluded_nodes(0, 9))).1, [1]);
    w.call(who(1), 0, |n| n.pause()).unwrap();
    assert_eq!((w.view(|n| raw(n.excluded_nodes(0, 9))).1.len(), w.view(|n| n.head().parked_due)), (0, 0));
    w.call(who(1), 0, |n| n.resume()).unwrap();
    assert_eq!(w.view(|n| raw(n.excluded_nodes(0, 9))).1, [1], "H did not change");
    w.call(who(1), 0, |n| n.quit()).unwrap();
    assert_eq!(w.view(|n| n.head().parked_due), 0);
    w.join(1, "A", 24, &[], 400).unwrap();
    assert_eq!(w.node(1).reliability, WAD, "joining resets H");
    assert_eq!(w.view(|n| raw(n.listed_nodes(Among::Idle, GpuGroup::of(1, 24), 0, 0, 9))).0, 0);
    assert_eq!(w.view(|n| raw(n.listed_nodes(Among::Idle, GpuGroup::of(2, 24), 0, 0, 9))).1, [1]);
}

fn starts(w: &mut World) -> Vec<u64> {
    w.events().into_iter().filter_map(|e| if let E::TaskStarted(s) = e { Some(s.id) } else { None }).collect()
}

#[test]
fn the_queue_serves_value_then_arrival_and_only_what_fits() {
    let mut w = world(1);
    w.set("alphaMilli", 100_000);
    w.join(2, "A100", 80, &[], 400).unwrap();
    w.call(who(2), 0, |n| n.pause()).unwrap();
    w.create(5, FEE, spec(0, &[])).unwrap();
    let a = w.create(5, 2_000, spec(8, &[])).unwrap();
    let b = w.create(5, 3_000, spec(24, &[])).unwrap();
    let too_big = w.create(5, 9_000, spec(25, &[])).unwrap();
    let c = w.create(5, 3_000, spec(0, &[])).unwrap();
    let own = w.create(5, 3_000, IMuster::TaskSpec { gpu: 1 << 16 | 24, ..spec(0, &[]) }).unwrap();
    // 10 a second for 50 s against 15 for 70 s: the longer one is worth more.
    let d = w.create(5, 3_500, IMuster::TaskSpec { kind: 0, units: 2, ..spec(0, &[]) }).unwrap();
    w.events();
    let mut order = Vec::new();
    let mut running = 1;
    loop {
        submit(&mut w, 1, running).unwrap();
        match starts(&mut w)[..] {
            [id] => order.push(id),
            _ => break,
        }
        running = order[order.len() - 1];
    }
    assert_eq!(order, [own, b, c, d, a]);
    w.call(who(2), 0, |n| n.resume()).unwrap();
    assert_eq!(starts(&mut w), [too_big]);
}

#[test]
fn a_full_queue_lets_the_lowest_go_the_newest_among_equals() {
    let mut w = world(1);
    w.create(5, FEE, spec(0, &[])).unwrap();
    let a = w.create(5, 1_000, spec(0, &[])).unwrap();
    let b = w.create(6, 1_000, spec(8, &[])).unwrap();
    assert_eq!(w.view(|n| n.overview()).queueCapacity, 2);
    w.events();
    let aborted = |w: &mut World| -> Vec<(u64, u8, u128, u128)> {
        w.events()
            .into_iter()
            .filter_map(|e| if let E::TaskAborted(a) = e { Some((a.id, a.reason, a.refund, a.startFee)) } else { None })
            .collect()
    };
    let c = w.create(7, 1_000, spec(9, &[])).unwrap();
    assert_eq!(aborted(&mut w), [(c, 2, 1_000, 0)], "an equal newcomer goes");
    assert_eq!(w.account(7).credit, 1_000);
    let d = w.create(7, 1_001, spec(9, &[])).unwrap();
    assert_eq!(aborted(&mut w), [(b, 2, 1_000, 0)], "the newest of the equal lowest goes");
    w.create(7, 2_000, spec(9, &[])).unwrap();
    assert_eq!(aborted(&mut w), [(a, 2, 1_000, 0)]);
    w.create(7, 2_000, spec(7, &[])).unwrap();
    assert_eq!(aborted(&mut w), [(d, 2, 1_001, 0)]);
    w.set("alphaMilli", 0);
    let e = w.create(7, 9_000, spec(7, &[])).unwrap();
    let gone = aborted(&mut w);
    assert_eq!(gone.len(), 1);
    assert_ne!(gone[0].0, e, "at most one goes, and never a better one");
    // Everything out again: nothing is left of the queue.
    submit(&mut w, 1, 1).unwrap();
    for _ in 0..2 {
        let id = w.node(1).task;
        submit(&mut w, 1, id).unwrap();
    }
    assert_eq!((w.view(|n| n.overview()).queued, status(&mut w, 1)), (0, 1));
}

#[test]
fn only_the_creator_cancels_and_pays_the_start_fee() {
    let mut w = world(1);
    w.create(5, FEE, spec(0, &[])).unwrap();
    let id = w.create(5, 1_000, spec(24, &[])).unwrap();
    let ticket = w.ticket(id);
    refused!(w.call(who(6), 0, |n| n.cancel(TaskId(id), Ticket(ticket))), NotTheCreator(id, who(6)));
    refused!(w.call(who(5), 0, |n| n.cancel(TaskId(id), Ticket(ticket + 1))), TaskNotQueued(id, ticket + 1));
    refused!(w.call(who(5), 0, |n| n.cancel(TaskId(id + 1), Ticket(ticket))), TaskNotQueued(id + 1, ticket));
    refused!(w.call(who(5), 0, |n| n.cancel(TaskId(id), Ticket(u64::MAX))), TaskNotQueued(id, u64::MAX));
    w.set("startFeeBps", 5_000);
    w.call(who(5), 0, |n| n.cancel(TaskId(id), Ticket(ticket))).unwrap();
    assert_eq!(w.account(5).credit, 980, "the start fee was frozen at creation");
    assert_eq!(w.view(|n| n.overview()).treasuryBalance, 4 * TOKEN + 20);
    refused!(w.call(who(5), 0, |n| n.cancel(TaskId(id), Ticket(ticket))), TaskNotQueued(id, ticket));
    let paid = w.mem.paid;
    w.send(who(9), 0, sweepTreasuryCall {}).unwrap();
    assert_eq!(w.mem.paid - paid, 4 * TOKEN + 20);
    refused!(w.send(who(9), 0, sweepTreasuryCall {}), NothingToWithdraw(TREASURY));
}

#[test]
fn kickout_needs_a_full_pool_and_is_for_good() {
    let mut w = world(3);
    let score = |w: &mut World, n: u32, s: u8| {
        w.call(who(9), 0, |net| {
            net.record_score(NodeId(n), s);
            Ok(())
        })
        .unwrap();
    };
    for i in 0..50 {
        score(&mut w, 1, 2);
        score(&mut w, 2, if i == 0 { 1 } else { 2 });
    }
    assert_eq!((status(&mut w, 1), w.node(1).longTerm, w.node(1).scores), (1, WAD / 5, 50));
    assert_eq!(status(&mut w, 2), 0, "99 of 500 is below 2.0");
    assert!(w.account(2).kickedOut && w.account(2).unbonding == 400 * TOKEN);
    refused!(w.join(2, "A", 24, &[], 400), KickedOut(who(2)));
    let log = w.events();
    assert!(log.iter().any(|e| matches!(e, E::NodeKickedOut(k) if k.node == 2 && k.operator.into_array() == who(2))));
    // While busy it waits for the task's end; the task still counts.
    w.call(who(3), 0, |n| n.pause()).unwrap();
    let id = w.create(5, FEE, spec(0, &[])).unwrap();
    score(&mut w, 1, 0);
    assert_eq!(status(&mut w, 1), 6);
    refused!(w.call(who(1), 0, |n| n.quit()), WrongStatus(1u32, 6u8));
    refused!(w.call(who(1), TOKEN, |n| n.raise_stake()), WrongStatus(1u32, 6u8));
    submit(&mut w, 1, id).unwrap();
    assert_eq!((status(&mut w, 1), w.account(1).credit, w.account(1).kickedOut), (0, FEE, true));
    // Of one that has left, nothing is left to end.
    score(&mut w, 1, 0);
    assert_eq!(status(&mut w, 1), 0);
    // A paused node goes at once; the pool survives quitting and joining again.
    for _ in 0..49 {
        score(&mut w, 3, 0);
    }
    w.call(who(3), 0, |n| n.quit()).unwrap();
    w.join(3, "A", 24, &[], 400).unwrap();
    w.call(who(3), 0, |n| n.pause()).unwrap();
    assert_eq!(status(&mut w, 3), 5);
    score(&mut w, 3, 10);
    assert_eq!(status(&mut w, 3), 0);
}

#[test]
fn the_pool_forgets_the_oldest_score() {
    let mut w = world(1);
    let mut kept = std::collections::VecDeque::new();
    for i in 0..173u32 {
        let s = [10, 5, 2, 10][(i * 7 % 4) as usize];
        w.call(who(9), 0, |net| {
            net.record_score(NodeId(1), s);
            Ok(())
        })
        .unwrap();
        kept.push_back(s as f64);
        if kept.len() > 50 {
            kept.pop_front();
        }
        close(w.node(1).longTerm, kept.iter().sum::<f64>() / kept.len() as f64 / 10.0);
    }
}

#[test]
fn models_are_reported_removed_and_purged() {
    let mut w = World::new();
    for n in 1..=20 {
        w.join(n, "A", 24, &[7, 8], 400).unwrap();
    }
    let report = |w: &mut World, n: u64, m: &[u64]| w.call(who(n), 0, |net| net.report_downloaded(ids(m.to_vec())));
    let remove = |w: &mut World, n: u64, m: &[u64]| w.call(who(n), 0, |net| net.report_removed(ids(m.to_vec())));
    refused!(report(&mut w, 99, &[1]), NotAnOperator(who(99)));
    refused!(report(&mut w, 1, &[7]), ModelHeld(7u64));
    refused!(report(&mut w, 1, &[9, 9]), DuplicateModel(9u64));
    refused!(remove(&mut w, 1, &[9]), ModelNotHeld(9u64));
    refused!(report(&mut w, 1, &(100..111).collect::<Vec<_>>()), TooManyModels(11usize, 10usize));
    report(&mut w, 2, &(100..110).collect::<Vec<_>>()).unwrap();
    report(&mut w, 2, &(110..120).collect::<Vec<_>>()).unwrap();
    report(&mut w, 2, &(120..124).collect::<Vec<_>>()).unwrap();
    refused!(report(&mut w, 2, &(200..207).collect::<Vec<_>>()), TooManyModels(33u32, 32u32));
    remove(&mut w, 2, &(100..124).collect::<Vec<_>>()).unwrap();
    report(&mut w, 1, &[9, 10]).unwrap();
    remove(&mut w, 1, &[7]).unwrap();
    assert_eq!(w.node(1).models, [8, 9, 10]);
    refused!(remove(&mut w, 1, &[7]), ModelNotHeld(7u64));
    assert_eq!(w.view(|n| raw(n.holders_view(ModelId(7), 0, 99))).0, 20, "the entry stays, stale");
    refused!(w.view(|n| n.holders_view(ModelId(0), 0, 9)), BadModel(0u64));
    let at = |w: &mut World, model: u64, node: u32| {
        w.view(|n| raw(n.holders_view(ModelId(model), 0, 99))).1.iter().position(|&n| n == node).unwrap() as u32
    };
    let purge = |w: &mut World, model: u64, position: u32| w.call(who(50), 0, |n| n.purge(ModelId(model), position));
    refused!(purge(&mut w, 7, 1), HolderNotStale(7u64, 1u32));
    refused!(purge(&mut w, 7, 20), HolderNotStale(7u64, 20u32));
    refused!(purge(&mut w, 0, 0), BadModel(0u64));
    let place = at(&mut w, 7, 1);
    purge(&mut w, 7, place).unwrap();
    w.call(who(13), 0, |n| n.quit()).unwrap();
    let place = at(&mut w, 7, 13);
    purge(&mut w, 7, place).unwrap();
    let mut left = w.view(|n| raw(n.holders_view(ModelId(7), 0, 99))).1;
    left.sort_unstable();
    assert_eq!(left, (2..=20).filter(|&n| n != 13).collect::<Vec<u32>>());
    // Joining again with a model that is still entered does not enter it twice.
    w.join(13, "A", 24, &[8, 7], 400).unwrap();
    for model in [7, 8] {
        assert_eq!(w.view(|n| raw(n.holders_view(ModelId(model), 0, 99))).1.iter().filter(|&&n| n == 13).count(), 1);
    }
    // All leave and are purged, from the front, and the array is empty.
    for n in 1..=20 {
        w.call(who(n), 0, |n| n.quit()).unwrap();
    }
    for model in [7, 8] {
        for left in (0..w.view(|n| raw(n.holders_view(ModelId(model), 0, 99))).0).rev() {
            purge(&mut w, model, 0).unwrap();
            assert_eq!(w.view(|n| raw(n.holders_view(ModelId(model), 0, 99))).0, left);
        }
    }
    refused!(purge(&mut w, 8, 0), HolderNotStale(8u64, 0u32));
    refused!(report(&mut w, 1, &[55]), WrongStatus(1u32, 0u8));
}

/// A model that a node no longer holds keeps its place in the node's list, over all times that it joins, until somebody purges it.
#[test]
fn a_node_that_has_had_32_models_takes_no_other_until_one_is_purged() {
    let mut w = World::new();
    w.set("unbonding", 0);
    for first in [1, 9, 17, 25] {
        let models: Vec<u64> = (first..first + 8).collect();
        w.join(1, "A", 24, &models, 400).unwrap();
        assert_eq!(w.node(1).models, models);
        w.send(who(1), 0, quitCall {}).unwrap();
    }
    refused!(w.join(1, "A", 24, &[33], 400), TooManyModels(33u32, 32u32));
    w.join(1, "A", 24, &[1], 400).unwrap();
    refused!(w.send(who(1), 0, reportDownloadedCall { models: vec![33] }), TooManyModels(33u32, 32u32));
    w.send(who(2), 0, purgeCall { model: 2, position: 0 }).unwrap();
    w.send(who(1), 0, reportDownloadedCall { models: vec![33] }).unwrap();
    assert_eq!(w.node(1).models.len(), 2);
}

#[test]
fn a_scarce_model_is_asked_for_and_a_missing_one_of_the_node_that_runs() {
    let mut w = world(30);
    w.create(5, FEE, spec(0, &[77])).unwrap();
    let mut asked: Vec<u32> =
        w.events().into_iter().filter_map(|e| if let E::DownloadRequested(d) = e { Some(d.node) } else { None }).collect();
    let runs = (1..=30).find(|&n| w.node(n).status == 2).unwrap();
    assert_eq!(asked[0], runs, "the node that runs it");
    let others = asked.split_off(1);
    assert!(others.len() >= 5 && others.len() <= 10 && !others.contains(&runs), "{others:?}");
    for &n in &others[..3] {
        w.call(who(n as u64), 0, |net| net.report_downloaded(ids(vec![77]))).unwrap();
    }
    w.call(who(runs as u64), 0, |net| net.report_downloaded(ids(vec![77]))).unwrap();
    submit(&mut w, runs as u64, 1).unwrap();
    w.events();
    w.create(5, FEE, spec(0, &[77])).unwrap();
    assert!(!w.events().iter().any(|e| matches!(e, E::DownloadRequested(_))), "three available holders are left");
    let second = (1..=30).find(|&n| w.node(n).status == 2).unwrap();
    assert!(second == runs || others[..3].contains(&second), "only holders were candidates");
    w.create(5, FEE, spec(0, &[77])).unwrap();
    let asked = w.events().iter().filter(|e| matches!(e, E::DownloadRequested(_))).count();
    assert!((1..=8).contains(&asked), "2 holders: up to 8 more, got {asked}");
    assert_eq!(w.node(second).inUse, [77]);
}

/// A node that holds a scarce model already counts towards the number that are to hold it.
#[test]
fn a_pre_download_asks_only_as_many_as_are_missing() {
    let mut w = world(30);
    w.set("spread", 3);
    for n in 1..=3 {
        w.call(who(n), 0, |net| net.report_downloaded(ids(vec![77]))).unwrap();
    }
    w.events();
    w.create(5, FEE, spec(0, &[77])).unwrap();
    let asked = w.events().iter().filter(|e| matches!(e, E::DownloadRequested(_))).count();
    assert_eq!(asked, 1, "two of three holders are still available");
}

/// Over all models of a task together as many nodes are asked as are to hold each.
#[test]
fn a_pre_download_of_several_models_asks_no_more_nodes_than_of_one() {
    let mut w = world(30);
    w.set("spread", 3);
    w.create(5, FEE, spec(0, &[77, 78])).unwrap();
    let asked: Vec<(u32, u64)> =
        w.events().iter().filter_map(|e| if let E::DownloadRequested(d) = e { Some((d.node, d.model)) } else { None }).collect();
    let runs = (1..=30).find(|&n| w.node(n).status == 2).unwrap();
    assert_eq!(asked[..2], [(runs, 77), (runs, 78)]);
    assert!(asked.len() == 5 && asked[2..].iter().all(|&(node, model)| node != runs && model == 77), "{asked:?}");
}

/// A node that was drawn because it holds one of several models, all common, is asked for those that it lacks.
#[test]
fn a_node_is_asked_for_those_of_several_common_models_that_it_lacks() {
    let mut w = World::new();
    w.set("drawDelay", 0);
    for n in 1..=12 {
        w.join(n, "RTX 4090", 24, &[70 + n % 2], 400).unwrap();
    }
    for _ in 0..4 {
        w.events();
        let id = w.create(5, FEE, spec(0, &[70, 71])).unwrap();
        let asked: Vec<(u32, u64)> = w
            .events()
            .iter()
            .filter_map(|e| if let E::DownloadRequested(d) = e { Some((d.node, d.model)) } else { None })
            .collect();
        let runs = (1..=12).find(|&n| w.node(n).task == id).unwrap();
        assert_eq!(asked.iter().filter(|ask| ask.0 == runs).collect::<Vec<_>>(), [&(runs, 71 - u64::from(runs) % 2)]);
    }
}

/// The nodes that a world would ask to download models, and which, for a task that it draws this many blocks later; without the node that
/// runs it.
fn asked_for(w: &World, wanted: &IMuster::TaskSpec, later: u64) -> Vec<(u32, u64)> {
    let mut w = World::on(w.mem.clone());
    w.pass(later, 0);
    w.events();
    w.create(5, FEE, wanted.clone()).unwrap();
    // Undecided, it is drawn again.
    w.drain();
    let events = w.events();
    let runs = events.iter().find_map(|e| if let E::TaskStarted(t) = e { Some(t.node) } else { None }).expect("it starts");
    let asked = events.iter().filter_map(|e| if let E::DownloadRequested(d) = e { Some((d.node, d.model)) } else { None });
    asked.filter(|&(node, _)| node != runs).collect()
}

/// The words that creating a task reads while this many available holders are enough.
fn read_for(w: &World, wanted: &IMuster::TaskSpec, scarce: u64) -> u32 {
    let mut w = World::on(w.mem.clone());
    w.set("scarce", scarce);
    let began = w.mem.reads();
    w.create(5, FEE, wanted.clone()).unwrap();
    w.mem.reads() - began
}

/// A world whose tasks raise no H, with so many nodes of one GPU that hold these models, and so many of another that hold none.
fn holders(number: u64, models: &[u64], others: u64) -> World {
    let mut w = World::new();
    w.set("drawDelay", 0);
    w.set("boostPool", 0);
    for n in 1..=number {
        w.join(n, "holder", 24, models, 400).unwrap();
    }
    for n in number + 1..=number + others {
        w.join(n, "other", 24, &[], 400).unwrap();
    }
    w
}

/// Gives every node this H, as of now.
fn lower(w: &mut World, h: u64) {
    for n in 1..=w.view(|n| n.overview()).nodesIssued {
        let mut handle = NodeHandle::load(&w.mem, NodeId(n));
        (handle.node.h, handle.node.h_at) = (h, w.mem.now as u32);
        handle.put(&mut w.mem);
    }
}

/// Whether a success of a task that such a world draws so many blocks later raises H, which is a little below 1.
fn boosts(w: &World, wanted: &IMuster::TaskSpec, later: u64) -> bool {
    let mut w = World::on(w.mem.clone());
    w.pass(later, 0);
    lower(&mut w, WAD - 1);
    w.events();
    w.create(5, FEE, wanted.clone()).unwrap();
    w.drain();
    w.events().iter().find_map(|e| if let E::TaskStarted(t) = e { Some(t.boosts) } else { None }).expect("it starts")
}

/// Has nodes step aside.
fn aside(w: &mut World, nodes: impl Iterator<Item = u64>) {
    for n in nodes {
        w.send(who(n), 0, pauseCall {}).unwrap();
    }
}

/// Has nodes step aside and return: their models are no longer noted beside their numbers.
fn back(w: &mut World, nodes: impl Iterator<Item = u64> + Clone) {
    aside(w, nodes.clone());
    for n in nodes {
        w.send(who(n), 0, resumeCall {}).unwrap();
    }
}

/// Where most holders are busy, the few idle ones are found beside the drawn node, whatever place a model has in their lists.
#[test]
fn idle_holders_are_found_beside_the_node_that_was_drawn() {
    let mut w = holders(100, &[1, 2, 3, 4, 5, 6, 7, 8], 6);
    aside(&mut w, 6..=100);
    back(&mut w, 1..=5);
    for models in [&[1][..], &[8], &[7, 8], &[1, 8]] {
        for later in 0..8 {
            let asked = asked_for(&w, &spec(0, models), later);
            assert!(asked.is_empty(), "{models:?}: {asked:?}");
        }
    }
    w.set("boostPool", 3);
    for models in [&[1][..], &[8], &[7, 8], &[1, 8]] {
        assert!((0..8).all(|later| boosts(&w, &spec(0, models), later)), "{models:?}");
    }
}

/// A node whose model is noted costs no word; one whose first word of models says so costs one. No node is looked at once there are enough.
#[test]
fn counting_available_holders_reads_no_more_than_it_takes() {
    let mut w = holders(12, &[7], 6);
    assert_eq!(read_for(&w, &spec(0, &[7]), 3), read_for(&w, &spec(0, &[7]), 0));
    back(&mut w, 1..=12);
    for scarce in 1..=2 {
        // And once more the word of the list that the draw has read.
        assert_eq!(read_for(&w, &spec(0, &[7]), scarce), read_for(&w, &spec(0, &[7]), 0) + 1 + scarce as u32);
    }
    // For a rare model, two words for each node that is entered: a record and the word of its models, but one for the drawn node.
    let w = holders(12, &[7], 60);
    let more: Vec<u32> =
        (1..=4).map(|scarce| read_for(&w, &spec(0, &[7]), scarce + 1) - read_for(&w, &spec(0, &[7]), scarce)).collect();
    assert!(more.iter().all(|&words| words == 2 || words == 3) && more.iter().sum::<u32>() <= 9, "{more:?}");
}

/// A node that is still entered as a holder, but no longer holds the model, is not available.
#[test]
fn stale_holders_do_not_make_a_model_common() {
    let mut w = holders(4, &[7], 40);
    assert!(asked_for(&w, &spec(0, &[7]), 0).is_empty(), "three others hold it");
    for n in 2..=4 {
        w.send(who(n), 0, reportRemovedCall { models: vec![7] }).unwrap();
    }
    let mut few = World::on(w.mem.clone());
    few.send(who(2), 0, reportDownloadedCall { models: vec![7] }).unwrap();
    assert!(asked_for(&w, &spec(0, &[7]), 0).len() >= 5);
    assert!(asked_for(&few, &spec(0, &[7]), 0).len() >= 5);
}

/// A pre-download reads no more than its words: two for each node that is entered as a holder or tried. Where many are entered, it first
/// reads two, and more for each of three that stand beside the drawn node and may be among them. Where few are entered, it does not.
#[test]
fn a_pre_download_asks_as_many_as_its_words_allow() {
    let most = |w: &World| (0..30).map(|later| asked_for(w, &spec(0, &[7]), later).len()).max().unwrap();
    // Four of a hundred: eight words for the entered nodes, and twelve tries.
    let mut w = holders(4, &[7], 96);
    w.set("spread", 16);
    aside(&mut w, 1..=4);
    assert_eq!(most(&w), 12);
    // The same beside a common model, of which those beside are known to hold it.
    let mut w = holders(30, &[7], 70);
    w.set("boostPool", 3);
    w.set("spread", 16);
    for n in 31..=34 {
        w.send(who(n), 0, reportDownloadedCall { models: vec![8] }).unwrap();
    }
    aside(&mut w, 31..=34);
    let counts = (0..30).map(|later| asked_for(&w, &spec(0, &[7, 8]), later).len());
    assert!((9..=12).contains(&counts.max().unwrap()));
    // Ten of forty: none for the neighbours, which are not entered; twenty for the entered ones, and six tries.
    let mut w = holders(10, &[7], 30);
    w.set("spread", 16);
    aside(&mut w, 1..=10);
    assert_eq!(most(&w), 6);
    // Forty of 150, in more words than are read: six words for three beside, and two for each different one of sixteen picks; they leave two tries
    // at most.
    let mut w = holders(40, &[7], 110);
    w.set("spread", 16);
    aside(&mut w, 1..=40);
    assert_eq!(most(&w), 2);
}

/// A try that is rejected by weight counts like any other: where nearly all weigh little, few are asked.
#[test]
fn rejected_tries_of_a_pre_download_count() {
    let mut w = holders(0, &[], 40);
    for n in 1..=40 {
        // Below the score that kicks a node out.
        let (score, times) = if n == 1 { (10, 50) } else { (0, 9) };
        for _ in 0..times {
            w.call(who(1), 0, |net| {
                net.record_score(NodeId(n), score);
                Ok(())
            })
            .unwrap();
        }
    }
    let counts: Vec<usize> = (0..40).map(|later| asked_for(&w, &spec(0, &[7]), later).len()).collect();
    // Sixteen tries, of which one in five or six is accepted.
    assert!((40..200).contains(&counts.iter().sum::<usize>()), "{counts:?}");
}

/// A success raises H where three could have run the task: only the holders count that it could have gone to, wherever they stand.
#[test]
fn a_draw_is_real_only_where_others_could_have_run_the_task() {
    let mut w = World::new();
    w.set("drawDelay", 0);
    w.join(1, "A", 24, &[7], 400).unwrap();
    w.join(2, "B", 48, &[7], 400).unwrap();
    w.join(3, "C", 48, &[7], 400).unwrap();
    assert!(boosts(&w, &spec(0, &[7]), 0), "three could");
    assert!(!boosts(&w, &spec(48, &[7]), 0), "two could");
    for group in [GpuGroup::of(1, 24), GpuGroup::of(1, 48), GpuGroup::of(2, 48)] {
        let wanted = IMuster::TaskSpec { gpu: group.0, ..spec(0, &[7]) };
        assert!(!boosts(&w, &wanted, 0), "one could");
        let name = ["A", "B", "C"][usize::from(group.vram() > 24) + usize::from(group.gpu() > 1)];
        let mut more = World::on(w.mem.clone());
        for n in 4..=5 {
            more.join(n, name, group.vram(), &[7], 400).unwrap();
        }
        assert!(boosts(&more, &wanted, 0), "three could, of one GPU");
    }
}

/// The start of a task where every node has this H, the words that it reads, and the network after it.
fn started_at(w: &World, h: u64, models: &[u64]) -> (TaskStarted, u32, World) {
    let mut w = World::on(w.mem.clone());
    lower(&mut w, h);
    w.events();
    let began = w.mem.reads();
    w.create(5, FEE, spec(0, models)).unwrap();
    let reads = w.mem.reads() - began;
    let E::TaskStarted(started) = w.events().remove(1) else { panic!("it starts") };
    (started, reads, w)
}

/// Where H is 1 a success changes nothing: then no other candidates are looked for, and the event does not promise anything.
#[test]
fn candidates_are_not_counted_for_a_node_whose_h_can_rise_no_more() {
    let mut w = holders(12, &[7], 6);
    w.set("boostPool", 8);
    back(&mut w, 1..=12);
    let start = |h: u64, models: &[u64]| {
        let (started, reads, mut w) = started_at(&w, h, models);
        submit(&mut w, started.node.into(), started.id).unwrap();
        (started.boosts, reads, w.node(started.node).reliability)
    };
    for models in [&[7][..], &[]] {
        let ((rises, counted, after), (full, read, still)) = (start(WAD - 1, models), start(WAD, models));
        assert!(rises && !full, "{models:?}");
        // Without models the node's own group has as many.
        assert!(read < counted || models.is_empty(), "{models:?}: {read} words, {counted} where H can rise");
        // The same block: half of the estimate has not passed.
        assert_eq!((after, still), (WAD - 1, WAD));
    }
}

/// Nor are nodes of other GPU groups, which stand in words of their own.
#[test]
fn other_gpu_groups_are_not_counted_for_a_node_whose_h_can_rise_no_more() {
    let mut w = World::new();
    w.set("drawDelay", 0);
    w.set("boostPool", 8);
    for n in 1..=12 {
        w.join(n, &format!("GPU {n}"), 24, &[], 400).unwrap();
    }
    let ((rises, counted, _), (full, read, _)) = (started_at(&w, WAD - 1, &[]), started_at(&w, WAD, &[]));
    assert!(rises.boosts && !full.boosts);
    assert!(read + 8 < counted, "{read} words, {counted} where H can rise");
}

/// Where the lists of holders take few words, the draw rejects a node that is not on them without a look at its record.
#[test]
fn who_is_on_no_list_of_holders_is_rejected_unread() {
    let mut w = holders(20, &[7], 40);
    let mut meter = Meter::new(&mut w.mem);
    let net = Network::open(&mut meter).unwrap();
    let (order, models, _) = net.order_for(&spec(0, &[7])).unwrap();
    let task = Task { escrow: Escrow::default(), order, models };
    let drawn = |seed: u8| match net.draw(&task, &mut Rng::new(net.host, [seed; 32], TaskId(1))) {
        Draw::Node(handle, Candidates::Holders) => Some(handle.id),
        other => {
            assert!(matches!(other, Draw::Undecided), "{other:?}");
            None
        }
    };
    let drawn: Vec<NodeId> = (0..40).filter_map(drawn).collect();
    assert!(drawn.len() > 20 && drawn.iter().all(|node| node.0 <= 20), "{drawn:?}");
    let others: Vec<u32> = (21..=60).filter(|&n| meter.has_touched(node_slot(&meter, NodeId(n)))).collect();
    assert!(others.is_empty(), "{others:?} were read");
}

/// However many nodes there are, no more tasks are queued than a pool's places, which are 24 bits, can number.
#[test]
fn no_network_queues_more_than_there_are_places() {
    let mut w = world(1);
    w.set("alphaMilli", 100_000);
    for (joined, capacity) in [(1, 100), (167_772, 16_777_200), (167_773, 16_777_214), (0xff_ffff, 16_777_214)] {
        let head: Head = w.mem.get(slot(HEAD));
        w.mem.put(slot(HEAD), &Head { joined, ..head });
        assert_eq!(w.view(|net| net.queue_capacity()), capacity);
    }
}

/// However much a least stake covers, a task's fee stays below the largest credit.
#[test]
fn no_stake_covers_a_fee_beyond_the_end_of_fees() {
    let mut w = world(1);
    w.view(|net| {
        assert_eq!(net.most_at_stake(3).0, 3 * net.most_at_stake(1).0);
        assert_eq!(net.most_at_stake(u32::MAX).0, FEE_END - 1);
    });
}

#[test]
fn parameters_keep_their_bounds() {
    let (mut w, mut fresh) = (World::new(), World::new());
    refused!(w.raw(who(1), 0, |m| admin::set_parameter(m, 0, Word::from(1))), NotOwner(who(1)));
    let count = PARAMETERS.len() as u8;
    refused!(w.raw(OWNER, 0, |m| admin::set_parameter(m, count, Word::from(1))), ParameterUnknown(count));
    refused!(w.send(who(1), 0, parameterCall { which: count }), ParameterUnknown(count));
    w.events();
    for i in 0..count {
        let [value, least, most] = numbers(&mut w, i);
        assert!(least <= value && value <= most, "default of {}", PARAMETERS[i as usize].name);
        if least > 0 {
            refused!(
                w.raw(OWNER, 0, |m| admin::set_parameter(m, i, Word::from(least - 1))),
                ParameterOutOfBounds(i, least - 1, least, most)
            );
        }
        if most < u64::MAX {
            refused!(
                w.raw(OWNER, 0, |m| admin::set_parameter(m, i, Word::from(most + 1))),
                ParameterOutOfBounds(i, most + 1, least, most)
            );
            refused!(
                w.raw(OWNER, 0, |m| admin::propose_parameter(m, i, Word::from(most + 1))),
                ParameterOutOfBounds(i, most + 1, least, most)
            );
        }
        let huge = Word([value, 0, 0, 1]);
        refused!(w.raw(OWNER, 0, |m| admin::set_parameter(m, i, huge)), ParameterOutOfBounds(i, huge, least, most));
        for v in [least, most, value] {
            w.set(PARAMETERS[i as usize].name, v);
            assert_eq!(numbers(&mut w, i)[0], v);
            // No parameter runs over into another.
            for j in (0..count).filter(|&j| j != i) {
                assert_eq!(numbers(&mut w, j), numbers(&mut fresh, j));
            }
        }
        let changes = w.events().iter().filter(|e| matches!(e, E::ParameterChanged(_))).count();
        assert_eq!(changes, 3);
    }
    assert_eq!(numbers(&mut w, parameter("minStake"))[2], 400_000 << 18);
    for name in ["unbonding", "queueTime"] {
        assert_eq!(numbers(&mut w, parameter(name))[2], UPGRADE_DELAY as u64 - 86_400, "{name}");
    }
}

/// Changes that affect stakes are proposed, and take effect no sooner than nodes that disagree can have left.
#[test]
fn parameters_that_reach_into_stakes_have_to_be_proposed() {
    let mut w = World::new();
    let delayed: Vec<&str> = PARAMETERS.iter().filter(|p| p.delayed()).map(|p| p.name).collect();
    let validation = ["sampleWindow", "revealWindow", "openMost", "slashTimes", "scorePool", "hammingMost", "slashImages"];
    // And the possible cost of an existing task to its creator, and of a join that was sent before to its operator.
    assert_eq!(
        delayed,
        [&["startFeeBps", "minStake", "unbonding", "kickoutMilli", "queueTime", "groupFee"], &validation[..]].concat()
    );
    let (number, plain) = (parameter("kickoutMilli"), parameter("tau"));
    refused!(w.raw(OWNER, 0, |m| admin::set_parameter(m, number, Word::from(9_000))), ParameterDelayed(number));
    refused!(w.raw(OWNER, 0, |m| admin::propose_parameter(m, plain, Word::from(9))), ParameterNotDelayed(plain));
    refused!(w.raw(who(1), 0, |m| admin::propose_parameter(m, number, Word::from(9_000))), NotOwner(who(1)));
    refused!(w.raw(who(1), 0, |m| admin::accept_parameter(m, number)), NotProposed);
    refused!(w.raw(who(1), 0, |m| admin::accept_parameter(m, 200)), ParameterUnknown(200u8));
    refused!(w.send(who(1), 0, proposedParameterCall { which: 200 }), ParameterUnknown(200u8));
    w.raw(OWNER, 0, |m| admin::propose_parameter(m, number, Word::from(8_000))).unwrap();
    w.pass(1, 1_000);
    w.raw(OWNER, 0, |m| admin::propose_parameter(m, number, Word::from(9_000))).unwrap();
    let at = w.mem.now + UPGRADE_DELAY as u64;
    let proposed = w.ask(proposedParameterCall { which: number });
    assert_eq!((proposed.value.to(), proposed.effective), (9_000u64, at));
    w.pass(1, UPGRADE_DELAY as u64 - 1);
    refused!(w.raw(who(1), 0, |m| admin::accept_parameter(m, number)), TooEarly(at));
    w.pass(1, 1);
    w.raw(who(1), 0, |m| admin::accept_parameter(m, number)).unwrap();
    assert_eq!(numbers(&mut w, number)[0], 9_000);
    refused!(w.raw(who(1), 0, |m| admin::accept_parameter(m, number)), NotProposed);
}

#[test]
fn ownership_and_treasury_change_in_two_steps() {
    let mut w = World::new();
    refused!(w.raw(who(1), 0, |m| admin::transfer_ownership(m, who(1))), NotOwner(who(1)));
    refused!(w.raw(who(1), 0, admin::accept_ownership), NotPendingOwner(who(1)));
    w.raw(OWNER, 0, |m| admin::transfer_ownership(m, who(1))).unwrap();
    refused!(w.raw(who(2), 0, admin::accept_ownership), NotPendingOwner(who(2)));
    w.raw(who(1), 0, admin::accept_ownership).unwrap();
    refused!(w.raw(who(1), 0, admin::accept_ownership), NotPendingOwner(who(1)));
    refused!(w.raw(OWNER, 0, |m| admin::propose_treasury(m, who(3))), NotOwner(OWNER));
    refused!(w.raw(who(9), 0, admin::accept_treasury), NotProposed);
    w.raw(who(1), 0, |m| admin::propose_treasury(m, who(3))).unwrap();
    let at = w.mem.now + 2 * 86_400;
    w.pass(1, 2 * 86_400 - 1);
    refused!(w.raw(who(9), 0, admin::accept_treasury), TooEarly(at));
    w.pass(1, 1);
    w.raw(who(9), 0, admin::accept_treasury).unwrap();
    assert_eq!(w.view(|n| n.overview()).treasury.into_array(), who(3));
    w.raw(who(1), 0, |m| admin::propose_treasury(m, who(4))).unwrap();
    w.raw(who(1), 0, |m| admin::propose_treasury(m, [0; 20])).unwrap();
    w.pass(1, 9 * 86_400);
    refused!(w.raw(who(9), 0, admin::accept_treasury), NotProposed);
}

#[test]
fn the_pause_switch_stops_tasks_and_joins_and_nothing_else() {
    let mut w = world(2);
    let id = w.create(5, FEE, spec(0, &[])).unwrap();
    refused!(w.raw(who(1), 0, |m| admin::set_paused(m, true)), NotOwner(who(1)));
    w.raw(OWNER, 0, |m| admin::set_paused(m, true)).unwrap();
    refused!(w.create(5, FEE, spec(0, &[])), PausedByOwner);
    refused!(w.join(3, "A", 24, &[], 400), PausedByOwner);
    let runs = (1..=2).find(|&n| status(&mut w, n) == 2).unwrap() as u64;
    submit(&mut w, runs, id).unwrap();
    assert_eq!(w.withdraw(runs).unwrap(), FEE);
    w.call(who(1), TOKEN, |n| n.raise_stake()).unwrap();
    w.call(who(1), 0, |n| n.quit()).unwrap();
    w.pass(1, 86_400);
    assert_eq!(w.withdraw(1).unwrap(), 401 * TOKEN);
    w.raw(OWNER, 0, |m| admin::set_paused(m, false)).unwrap();
    w.join(3, "A", 24, &[], 400).unwrap();
}

#[test]
fn programs_answer_selectors_and_leave_the_list_whole() {
    let mut w = World::new();
    let list = |n: u32| -> Vec<alloy_primitives::FixedBytes<4>> { (0..n).map(|i| (i * 77 + 1).to_be_bytes().into()).collect() };
    w.mem.codeless = vec![who(7)];
    let propose = |w: &mut World, by: [u8; 20], program: [u8; 20], s: &[alloy_primitives::FixedBytes<4>]| {
        w.raw(by, 0, |m| admin::propose_programs(m, program, s))
    };
    let accept = |w: &mut World, program: [u8; 20], s: &[alloy_primitives::FixedBytes<4>]| {
        w.raw(who(9), 0, |m| admin::accept_programs(m, program, s))
    };
    refused!(propose(&mut w, who(1), who(2), &list(1)), NotOwner(who(1)));
    refused!(propose(&mut w, OWNER, who(2), &list(65)), TooManyAtOnce(65usize, 64u8));
    refused!(propose(&mut w, OWNER, who(7), &list(1)), NoCode(who(7)));
    refused!(accept(&mut w, who(2), &list(64)), NotProposed);
    refused!(accept(&mut w, who(2), &list(65)), TooManyAtOnce(65usize, 64u8));
    for (program, s) in
        [(who(2), &list(64)[..]), (who(3), &list(20)[3..]), ([0; 20], &list(9)), (who(4), &list(2)), (who(5), &list(3))]
    {
        propose(&mut w, OWNER, program, s).unwrap();
    }
    let at = w.mem.now + UPGRADE_DELAY as u64;
    assert_eq!(admin::proposed_programs(&w.mem, who(2), &list(64)), at);
    assert_eq!(admin::proposed_programs(&w.mem, who(2), &list(63)), 0, "it is what was proposed or nothing");
    w.pass(1, UPGRADE_DELAY as u64 - 1);
    refused!(accept(&mut w, who(2), &list(64)), TooEarly(at));
    w.pass(1, 1);
    refused!(accept(&mut w, who(3), &list(64)), NotProposed);
    accept(&mut w, who(2), &list(64)).unwrap();
    refused!(accept(&mut w, who(2), &list(64)), NotProposed);
    accept(&mut w, who(3), &list(20)[3..]).unwrap();
    accept(&mut w, [0; 20], &list(9)).unwrap();
    refused!(w.raw(who(1), 0, |m| admin::withdraw_programs(m, who(4), &list(2))), NotOwner(who(1)));
    w.raw(OWNER, 0, |m| admin::withdraw_programs(m, who(4), &list(2))).unwrap();
    refused!(w.raw(OWNER, 0, |m| admin::withdraw_programs(m, who(4), &list(2))), NotProposed);
    refused!(accept(&mut w, who(4), &list(2)), NotProposed);
    w.mem.codeless = vec![who(5)];
    refused!(accept(&mut w, who(5), &list(3)), NoCode(who(5)));
    w.mem.codeless.clear();
    // Given up for good: neither the proposal nor a new one takes effect.
    refused!(w.raw(who(1), 0, admin::renounce_upgrades), NotOwner(who(1)));
    assert_eq!(admin::upgrades(&w.mem).unwrap(), (UPGRADE_DELAY, false));
    w.raw(OWNER, 0, admin::renounce_upgrades).unwrap();
    assert_eq!(admin::upgrades(&w.mem).unwrap(), (UPGRADE_DELAY, true));
    refused!(accept(&mut w, who(5), &list(3)), UpgradesRenounced);
    refused!(propose(&mut w, OWNER, who(5), &list(3)), UpgradesRenounced);
    refused!(w.raw(OWNER, 0, admin::renounce_upgrades), UpgradesRenounced);
    let mut left: Vec<[u8; 4]> = admin::selectors(&w.mem);
    left.sort_unstable();
    assert_eq!(left, list(64)[9..].iter().map(|s| s.0).collect::<Vec<_>>());
    for (i, s) in list(64).iter().enumerate() {
        let expected = if i < 9 {
            [0; 20]
        } else if i < 20 {
            who(3)
        } else {
            who(2)
        };
        assert_eq!(admin::program_of(&w.mem, s.0), expected);
    }
    let facets = muster_protocol::view::lens::facets(&w.mem);
    assert_eq!(facets.iter().map(|f| f.functionSelectors.len()).sum::<usize>(), 1 + 55);
}

/// A reader of the storage finds a `bytes4[]` there, with nothing behind its end, as after Solidity's `pop`, and each selector's place.
#[test]
fn selectors_lie_as_solidity_packs_them() {
    let mut w = World::new();
    let selector = |n: u32| (0x0101_0100 + n).to_be_bytes();
    let mut listed: Vec<u32> = Vec::new();
    let changes = [(who(2), 0..20), (who(3), 18..20), ([0; 20], 3..4), ([0; 20], 19..20), ([0; 20], 17..18), (who(2), 30..31)];
    for (program, numbers) in changes {
        let list: Vec<_> = numbers.clone().map(|n| selector(n).into()).collect();
        w.raw(OWNER, 0, |m| admin::propose_programs(m, program, &list)).unwrap();
        w.pass(1, UPGRADE_DELAY as u64);
        w.raw(OWNER, 0, |m| admin::accept_programs(m, program, &list)).unwrap();
        for n in numbers {
            match listed.iter().position(|&there| there == n) {
                Some(gap) if program == [0; 20] => _ = listed.swap_remove(gap),
                Some(_) => {}
                None => listed.push(n),
            }
        }
        let first = Word::from_be_bytes(w.mem.keccak(&slot(SELECTORS).to_be_bytes()));
        let at = |i: usize| w.mem.load(offset(first, i as u64 / 8)).lane32(i as u32 % 8).to_be_bytes();
        assert_eq!(w.mem.load(slot(SELECTORS)), Word::from(listed.len() as u64));
        for i in 0..32 {
            assert_eq!(at(i), listed.get(i).map_or([0; 4], |&n| selector(n)), "{i} of {listed:?}");
        }
        for n in 0..32 {
            let place = w.mem.load(w.mem.mapping(SELECTOR_PLACES, selector_key(selector(n))));
            let expected = listed.iter().position(|&there| there == n).map_or(0, |i| 1 + i as u64);
            assert_eq!(place, Word::from(expected), "the place of {n} in {listed:?}");
        }
    }
}

#[test]
fn lens_pages_end_where_the_list_ends() {
    let mut w = world(70);
    assert_eq!(w.view(|n| n.node_views(0, 64)).unwrap().len(), 64);
    assert_eq!(
        w.view(|n| n.node_views(65, 64)).unwrap().iter().map(|v| v.node).collect::<Vec<_>>(),
        (65..=70).collect::<Vec<_>>()
    );
    assert_eq!(w.view(|n| n.node_views(71, 5)).unwrap().len(), 0);
    assert_eq!(w.view(|n| n.node_views(u32::MAX, 64)).unwrap().len(), 0);
    assert_eq!(w.view(|n| raw(n.listed_nodes(Among::Idle, GpuGroup::of(1, 24), 0, 60, 100))), (70, (61..=70).collect()));
    assert_eq!(w.view(|n| raw(n.listed_nodes(Among::Idle, GpuGroup::of(1, 24), 10, 0, 100))), (0, vec![]));
    assert_eq!(w.view(|n| raw(n.listed_nodes(Among::Idle, GpuGroup::of(1, 24), 255, u32::MAX, 256))), (0, vec![]));
    refused!(w.view(|n| n.node_view(NodeId(0))), NodeUnknown(0u32));
    refused!(w.view(|n| n.node_view(NodeId(71))), NodeUnknown(71u32));
    assert_eq!(w.view(|n| n.queued_tasks(QueueId(u32::MAX), 0, 9)).unwrap(), (0, vec![]));
    assert_eq!(w.view(|n| raw(n.excluded_nodes(5, 256))), (0, vec![]));
    let v = w.view(|n| n.weight_of(NodeId(1), &spec(24, &[]))).unwrap();
    assert_eq!((v.eligible, v.staking, v.reliability, v.qos, v.locality), (true, WAD, WAD, WAD / 2, WAD));
    close(v.weight, 1.0 * 0.5 / 1.5);
    refused!(w.view(|n| n.weight_of(NodeId(1), &spec(25, &[]))), NobodyCanRun(25u16, 0u32));
    refused!(w.view(|n| n.weight_of(NodeId(71), &spec(24, &[]))), NodeUnknown(71u32));
    w.join(71, "larger", 48, &[], 400).unwrap();
    assert!(!w.view(|n| n.weight_of(NodeId(1), &spec(25, &[]))).unwrap().eligible);
}

// ---------------------------------------------------------------- workers

/// The account that works for node 1 in these scenes.
const WORKER: u64 = 90;

/// A world in which the worker of node 1 has accepted.
fn employed(nodes: u64) -> World {
    let mut w = world(nodes);
    w.send(who(1), 0, setWorkerCall { worker: who(WORKER).into() }).unwrap();
    w.send(who(WORKER), 0, acceptWorkCall { node: 1 }).unwrap();
    w.events();
    w
}

fn worker_of(w: &mut World, number: u32) -> ([u8; 20], bool) {
    let said = w.ask(workerOfCall { number });
    (said.worker.into_array(), said.works)
}

#[test]
fn a_worker_works_once_both_agreed() {
    let mut w = world(2);
    assert_eq!(worker_of(&mut w, 1), ([0; 20], false));
    w.send(who(1), 0, setWorkerCall { worker: who(WORKER).into() }).unwrap();
    assert_eq!(w.events(), [E::WorkerNamed(WorkerNamed { node: 1, worker: who(WORKER).into() })]);
    assert_eq!((worker_of(&mut w, 1), w.ask(nodeOfCall { who: who(WORKER).into() })), ((who(WORKER), false), 0));
    refused!(w.send(who(WORKER), 0, pauseCall {}), NotAnOperator(who(WORKER)));
    w.send(who(WORKER), 0, acceptWorkCall { node: 1 }).unwrap();
    assert_eq!(w.events(), [E::WorkAccepted(WorkAccepted { node: 1, worker: who(WORKER).into() })]);
    assert_eq!((worker_of(&mut w, 1), w.ask(nodeOfCall { who: who(WORKER).into() })), ((who(WORKER), true), 1));
    // It works for no second node, and joins none.
    w.send(who(2), 0, setWorkerCall { worker: who(WORKER).into() }).unwrap();
    refused!(w.send(who(WORKER), 0, acceptWorkCall { node: 2 }), HasNode(who(WORKER), NodeId(1)));
    refused!(w.join(WORKER, "RTX 4090", 24, &[], 400), HasNode(who(WORKER), NodeId(1)));
    // An account that was not named cannot accept, nor one that has a node.
    refused!(w.send(who(91), 0, acceptWorkCall { node: 1 }), NotNamed(NodeId(1), who(91)));
    refused!(w.send(who(2), 0, acceptWorkCall { node: 1 }), HasNode(who(2), NodeId(2)));
    refused!(w.send(who(91), 0, acceptWorkCall { node: 3 }), NotNamed(NodeId(3), who(91)));
    refused!(w.send(who(91), 0, setWorkerCall { worker: who(1).into() }), NotAnOperator(who(91)));
    refused!(w.send(who(91), 0, leaveWorkCall {}), NotAnOperator(who(91)));
    refused!(w.send(who(2), 0, leaveWorkCall {}), HasNode(who(2), NodeId(2)));
    assert_eq!(worker_of(&mut w, 3), ([0; 20], false), "of no node");
    // Naming replaces an earlier name; here the account is accepted again, from the second node.
    w.send(who(1), 0, setWorkerCall { worker: [0; 20].into() }).unwrap();
    assert_eq!(worker_of(&mut w, 1), ([0; 20], false));
    refused!(w.send(who(WORKER), 0, pauseCall {}), NotAnOperator(who(WORKER)));
    w.send(who(WORKER), 0, acceptWorkCall { node: 2 }).unwrap();
    // The first node's operator has no say in that.
    w.send(who(1), 0, setWorkerCall { worker: who(WORKER).into() }).unwrap();
    w.send(who(1), 0, setWorkerCall { worker: who(92).into() }).unwrap();
    assert_eq!(worker_of(&mut w, 2), (who(WORKER), true));
    // It leaves by itself, and can have a node of its own then.
    w.send(who(WORKER), 0, leaveWorkCall {}).unwrap();
    assert_eq!(worker_of(&mut w, 2), ([0; 20], false));
    refused!(w.send(who(WORKER), 0, acceptWorkCall { node: 2 }), NotNamed(NodeId(2), who(WORKER)));
    assert_eq!(w.join(WORKER, "RTX 4090", 24, &[], 400).unwrap(), 3);
}

#[test]
fn a_worker_earns_for_its_operator() {
    let mut w = employed(1);
    let id = w.create(50, FEE, spec(0, &[])).unwrap();
    submit(&mut w, WORKER, id).unwrap();
    assert_eq!((w.account(1).credit, w.account(WORKER).credit), (FEE, 0));
    let id = w.create(50, FEE, spec(0, &[])).unwrap();
    w.pass(1, 60);
    error(&mut w, WORKER, id).unwrap();
    w.send(who(WORKER), 0, reportDownloadedCall { models: vec![7] }).unwrap();
    w.send(who(WORKER), 0, reportRemovedCall { models: vec![7] }).unwrap();
    w.send(who(WORKER), 0, pauseCall {}).unwrap();
    assert_eq!(status(&mut w, 1), 5);
    w.send(who(WORKER), 0, resumeCall {}).unwrap();
    // Beside its operator, which may do all of it as before.
    let id = w.create(50, FEE, spec(0, &[])).unwrap();
    submit(&mut w, 1, id).unwrap();
    assert_eq!((w.account(1).credit, w.account(WORKER).credit), (2 * FEE, 0));
}

/// The thief of a worker's key has no way to the operator's money, and the operator ends the work in one call.
#[test]
fn a_stolen_worker_key_takes_nothing() {
    let mut w = employed(1);
    let id = w.create(50, FEE, spec(0, &[])).unwrap();
    submit(&mut w, WORKER, id).unwrap();
    let thief = who(WORKER);
    refused!(w.send(thief, TOKEN, raiseStakeCall {}), NotTheOperator(NodeId(1), thief));
    refused!(w.send(thief, 0, quitCall {}), NotTheOperator(NodeId(1), thief));
    refused!(w.send(thief, 0, setWorkerCall { worker: who(93).into() }), NotTheOperator(NodeId(1), thief));
    refused!(w.send(thief, 0, withdrawCall { to: thief.into() }), NothingToWithdraw(thief));
    // Nor does it earn by a deadline that it let pass itself.
    let late = w.create(50, FEE, spec(0, &[])).unwrap();
    w.pass(1, 7_300);
    w.send(thief, 0, expireCall { node: 1, id: late }).unwrap();
    assert_eq!(w.account(WORKER).credit, 0);
    w.send(who(1), 0, quitCall {}).unwrap();
    w.pass(1, 86_400);
    refused!(w.send(thief, 0, withdrawCall { to: thief.into() }), NothingToWithdraw(thief));
    w.send(who(1), 0, setWorkerCall { worker: [0; 20].into() }).unwrap();
    refused!(w.send(thief, 0, resumeCall {}), NotAnOperator(thief));
    assert_eq!(w.withdraw(1).unwrap(), 400 * TOKEN + FEE);
}
