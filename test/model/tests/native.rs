//! The code of the contracts against the reference model, in memory.

use alloy_sol_types::SolCall;
use muster_core::word::Word;
use muster_model::drive::{
    drive, drive_drawn_pools, drive_fresh, drive_native, drive_rating, drive_settling, drive_validating, operations, play, shrink,
};
use muster_model::model::{validating, Model, Op};
use muster_model::proof;
use muster_model::system::{Call, Done, Logged, Refused, System};
use muster_model::world::{Dice, World};
use muster_protocol::layout::{slot, INCOME};
use muster_protocol::native::Memory;
use muster_protocol::store::accounts;
use muster_protocol::IMuster::{cancelCall, pauseCall, IMusterEvents as E};
use muster_protocol::{programs, Host, Network};
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, SystemTime};

#[test]
fn a_hundred_thousand_operations_agree_with_the_model() {
    drive_native(1..51, 2_400, 14, 50);
}

#[test]
fn many_short_lives_agree_with_the_model() {
    drive_native(1_000..1_300, 200, 14, 1);
}

/// More holders of a model than a search looks at, taller trees, longer queues.
#[test]
fn a_wider_network_agrees_with_the_model() {
    drive_native(2_000..2_014, 4_000, 90, 3);
}

/// Tasks whose answers are committed to, sampled, and judged: 40,000 operations, or as many as `OPERATIONS` says, as in
/// `OPERATIONS=200000 script/test -p muster-model --test native validated -- --show-output`.
#[test]
fn validated_tasks_agree_with_the_model() {
    let operations = std::env::var("OPERATIONS").map_or(40_000, |n| n.parse().expect("a number"));
    drive_validating(&World::new, 3_000..3_000 + operations / 800, 800, 24, 3);
}

/// Groups chosen by ratings: 40,000 operations, or as many as `OPERATIONS` says, as in
/// `OPERATIONS=200000 script/test -p muster-model --test native rated -- --show-output`.
#[test]
fn rated_tasks_agree_with_the_model() {
    let operations = std::env::var("OPERATIONS").map_or(40_000, |n| n.parse().expect("a number"));
    drive_rating(&World::new, 4_000..4_000 + operations / 800, 800, 24, 3);
}

/// More nodes are idle than a pool holds.
#[test]
fn drawn_pools_agree_with_the_model() {
    drive_drawn_pools(&World::new, 4_300..4_306, 600, 64, 3);
}

/// Enough groups of one application that its target is set anew: in 48,000 operations once or twice, more often in as many as
/// `OPERATIONS` says.
#[test]
fn targets_agree_with_the_model() {
    let operations: usize = std::env::var("OPERATIONS").map_or(48_000, |n| n.parse().expect("a number"));
    drive_settling(&World::new, 4_500..4_506, operations / 6, 12, 1);
}

/// A group chosen by ratings is not judged while its task, if there is no majority, could not become Pending.
#[test]
fn a_rated_group_waits_for_its_judgement_while_no_other_can_be_pending() {
    let create = |policy| Op::Create { who: 1, kind: 0, units: 17, vram: 0, gpu: 0, models: 0, fee: 19, policy };
    // The specifications of Op::Create for a task for three, and for a rated group.
    let (three, rated) = (create(2), create(7));
    let pass = Op::Pass { blocks: 1, seconds: 1 };
    let reveal = Op::Reveal { pick: 0, by: 1, how: 63 };
    let join = |who| Op::Join { who, gpu: 0, vram: 1, models: 0, stake: 0 };
    let mut ops: Vec<Op> = (1..=3).map(join).collect();
    ops.push(Op::Profile { who: 1, sizes: 127 << 16, targeting: 0, target: 0 });
    ops.extend([rated, pass.clone(), Op::Dispatch(16)]);
    ops.extend(std::iter::repeat_n(Op::Commit { pick: 0, by: 1, answer: 0 }, 3));
    ops.extend([reveal.clone(), reveal.clone()]);
    // Somebody is idle, else they would be queued at their creation.
    ops.push(join(4));
    ops.extend(std::iter::repeat_n(three, 4_095));
    ops.extend([reveal, Op::Settle { pick: 0, by: 1 }]);
    let full = ops.len();
    ops.extend([pass, Op::Rest]);

    let mut world = World::new();
    let mut model = Model::new(System::clock(&world), 3);
    let mut settled = Vec::new();
    for (i, op) in ops.iter().enumerate() {
        let seen = model.step(&mut world, op);
        settled.extend(seen.into_iter().filter(|(e, _)| matches!(e, E::GroupSettled(g) if g.id == 1)));
        model.compare(&mut world, i + 1 == ops.len());
        if i + 1 == full {
            assert_eq!(model.notes.get("rated: judgement put off"), Some(&1));
            assert_eq!(model.refused.get("TooManyPending"), Some(&1));
            assert!(settled.is_empty());
        }
    }
    assert!(matches!(&settled[..], [(E::GroupSettled(g), _)] if g.outcome == 0), "{settled:?}");
}

/// Nodes of so low an H that draws of nine find too few of them: after sixteen such draws the task is queued.
#[test]
fn a_rated_task_is_queued_when_sixteen_draws_found_too_few() {
    const NODES: u64 = 40;
    let create = |policy, models| Op::Create { who: 1, kind: 0, units: 17, vram: 0, gpu: 0, models, fee: 19, policy };
    let pass = |seconds| Op::Pass { blocks: 1, seconds };
    let mut ops = vec![Op::Set("tau", 604_800), Op::Set("penaltyPpm", 20_000), Op::Set("exclusionPpm", 0)];
    ops.extend((1..=NODES).map(|who| Op::Join { who, gpu: 0, vram: 1, models: 0, stake: 2 }));
    ops.extend(std::iter::repeat_n(create(4, 0), NODES as usize));
    ops.extend((0..NODES).flat_map(|_| [pass(1), Op::Dispatch(16)]));
    ops.push(pass(90_000));
    ops.extend(std::iter::repeat_n(Op::Expire { pick: 0, by: 1 }, NODES as usize));
    ops.extend([Op::Profile { who: 1, sizes: 127 << 16 | 7 << 5, targeting: 0, target: 0 }, create(7, 0x3f)]);
    ops.extend((0..17).flat_map(|_| [pass(1), Op::Dispatch(1)]));

    let mut world = World::new();
    let mut model = Model::new(System::clock(&world), NODES);
    let mut seen = Vec::new();
    for (i, op) in ops.iter().enumerate() {
        seen.extend(model.step(&mut world, op).into_iter().map(|(event, _)| event));
        model.compare(&mut world, i + 1 == ops.len());
    }
    assert_eq!(model.notes.get("rated: undecided too often"), Some(&1), "{:?}", model.notes);
    let last = seen.iter().rev().find(|e| matches!(e, E::TaskRedrawn(_) | E::TaskQueued(_)));
    assert!(matches!(last, Some(E::TaskQueued(_))), "{last:?}");
    let again = |e: &&E| matches!(e, E::TaskRedrawn(r) if r.id == NODES + 1);
    assert_eq!(seen.iter().filter(again).count(), 15);
}

/// A task requires eight models at most.
#[test]
fn a_task_of_nine_models_is_refused() {
    for policy in [0, 2, 4] {
        let create = |models| Op::Create { who: 1, kind: 0, units: 17, vram: 0, gpu: 0, models, fee: 19, policy };
        let ops = [Op::Join { who: 1, gpu: 0, vram: 1, models: 0, stake: 0 }, create(0x1ff), create(0xff)];
        let tally = play(&mut World::new(), &ops, 1, &Cell::new(0));
        assert_eq!(tally.get("refused: TooManyModels"), Some(&1));
    }
}

/// A queued task that takes three nodes cannot become Pending while as many are as can be: nodes that become available leave it.
#[test]
fn tasks_for_three_stay_queued_while_no_other_can_be_pending() {
    let create = |policy, fee| Op::Create { who: 1, kind: 0, units: 17, vram: 0, gpu: 0, models: 0, fee, policy };
    // The specifications of Op::Create for a single task, and for one that takes three.
    let (single, three) = (create(4, 19), create(2, 2));
    let pass = Op::Pass { blocks: 1, seconds: 1 };
    let submit = Op::Submit { pick: 0, by: 1 };
    // One stays idle, otherwise the task for three would be queued at its creation.
    let mut ops: Vec<Op> = (1..=4).map(|who| Op::Join { who, gpu: 0, vram: 1, models: 0, stake: 0 }).collect();
    ops.extend([single.clone(), single.clone(), single, pass.clone(), Op::Dispatch(16)]);
    ops.extend([three.clone(), pass.clone(), Op::Dispatch(16)]);
    let queued = ops.len();
    ops.extend(std::iter::repeat_n(three, 4_096));
    let full = ops.len();
    ops.extend([submit.clone(), submit.clone(), submit, pass, Op::Dispatch(16), Op::Dispatch(16)]);

    let mut world = World::new();
    let mut model = Model::new(System::clock(&world), 3);
    let mut seen = Vec::new();
    for (i, op) in ops.iter().enumerate() {
        seen.extend(model.step(&mut world, op));
        model.compare(&mut world, i + 1 == ops.len());
        if i + 1 == queued {
            assert!(matches!(seen.last(), Some((E::TaskQueued(_), _))), "{seen:?}");
            seen.clear();
        }
        if i + 1 == full {
            assert_eq!(model.refused.get("TooManyPending"), Some(&1));
        }
    }
    assert_eq!(model.notes.get("no room for the best"), Some(&3));
    assert_eq!(model.notes.get("idle beside a queued task that cannot be Pending"), Some(&1));
    assert!(!seen.iter().any(|(e, _)| matches!(e, E::NodeWaits(_) | E::TaskRedrawn(_))), "nobody waits for it");
}

/// Nodes that are idle beside a queued task that they could run, because none of them looked when it became so: a poke has the poked node
/// look.
#[test]
fn what_idle_nodes_could_run_begins_by_a_poke() {
    let create = |policy, kind| Op::Create { who: 1, kind, units: 17, vram: 0, gpu: 0, models: 0, fee: 2, policy };
    let (single, alike) = (create(4, 0), create(2, 1));
    let join = |who, gpu| Op::Join { who, gpu, vram: 1, models: 0, stake: 0 };
    let drawn = [Op::Pass { blocks: 1, seconds: 1 }, Op::Dispatch(16)];
    let error = Op::Fault { pick: 0, by: 1 };
    // A node that has reported an error after a minute, and need not rest, and a task queued meanwhile. It is poked, or an account that
    // ends open tasks pokes it.
    let mut one = vec![join(1, 0), single.clone()];
    one.extend(drawn.clone());
    one.push(single.clone());
    one.extend(drawn.clone());
    one.extend([Op::Pass { blocks: 1, seconds: 60 }, error]);
    let after = "idle beside a queued task after an error";
    // Three busy nodes of a listed GPU group, a task for three, and three idle ones of another group, which is listed then.
    let mut three: Vec<Op> = (1..=3).map(|who| join(who, 0)).collect();
    three.push(Op::List { group: 0, on: true });
    three.extend([single.clone(), single.clone(), single]);
    three.extend(drawn.clone());
    three.push(alike);
    three.extend(drawn.clone());
    three.extend((4..=6).map(|who| join(who, 1)));
    three.push(Op::List { group: 0, on: true });
    let listed = "idle beside a queued task when listed";
    for (ops, why, begins) in [(one, after, "TaskStarted"), (three, listed, "TaskRedrawn")] {
        for end in [Op::Poke(1), Op::Rest] {
            let mut world = World::new();
            let mut model = Model::new(System::clock(&world), 6);
            let mut seen = Vec::new();
            for op in ops.iter().chain([&end]) {
                seen = model.step(&mut world, op);
                model.compare(&mut world, true);
            }
            assert_eq!(model.notes.get(why), Some(&1));
            assert!(seen.iter().any(|(e, _)| format!("{e:?}").starts_with(begins)), "{end:?}: {seen:?}");
            // Of the three listed ones' task the busy nodes learn first, when theirs time out.
            let rested = model.notes.contains_key("rested by a poke");
            assert_eq!(rested, matches!(end, Op::Rest) && why == after);
        }
    }
}

/// A world whose calls, or ether forced into it, are handled otherwise.
struct Wrapped {
    world: World,
    call: fn(&mut World, &Call) -> Result<Done, Refused>,
    force: fn(&mut World, u128),
}

impl System for Wrapped {
    type Host = Memory;
    fn clock(&self) -> (u64, u64) {
        System::clock(&self.world)
    }
    fn pass(&mut self, blocks: u64, seconds: u64) {
        self.world.pass(blocks, seconds);
    }
    fn call(&mut self, call: &Call) -> Result<Done, Refused> {
        (self.call)(&mut self.world, call)
    }
    fn record(&mut self, node: u32, score: u8, times: u8) -> Option<Result<Done, Refused>> {
        self.world.record(node, score, times)
    }
    fn force(&mut self, wei: u128) {
        (self.force)(&mut self.world, wei);
    }
    fn balance(&mut self) -> u128 {
        self.world.balance()
    }
    fn answer<C: SolCall>(&mut self, call: C) -> C::Return {
        self.world.answer(call)
    }
    fn read<T>(&mut self, f: impl FnOnce(&Network<Memory>) -> T) -> T {
        self.world.read(f)
    }
    fn birth(&mut self) -> Vec<Logged> {
        self.world.birth()
    }
}

fn sound() -> Wrapped {
    Wrapped { world: World::new(), call: System::call, force: System::force }
}

/// The account that cancels a task is credited a wei too many.
fn generous() -> Wrapped {
    fn call(world: &mut World, call: &Call) -> Result<Done, Refused> {
        let done = System::call(world, call)?;
        if call.is::<cancelCall>() {
            accounts::credit(&mut world.mem, call.from, 1);
        }
        Ok(done)
    }
    Wrapped { call, ..sound() }
}

/// The event of a pause gets lost.
fn silent() -> Wrapped {
    fn call(world: &mut World, call: &Call) -> Result<Done, Refused> {
        let mut done = System::call(world, call)?;
        if call.is::<pauseCall>() {
            done.events.clear();
        }
        Ok(done)
    }
    Wrapped { call, ..sound() }
}

/// A forced wei is taken for income.
fn gullible() -> Wrapped {
    fn force(world: &mut World, wei: u128) {
        System::force(world, wei);
        let income = accounts::income(&world.mem) + wei;
        world.mem.store(slot(INCOME), Word([income as u64, (income >> 64) as u64, 0, 0]));
    }
    Wrapped { force, ..sound() }
}

/// Calls in memory are metered, which changes nothing: the words that they read are counted as without a meter, since draws depend on that
/// number, and they leave the same storage.
#[test]
fn a_call_does_the_same_with_a_meter_and_without() {
    fn call(world: &mut World, call: &Call) -> Result<Done, Refused> {
        let mut plain = world.clone();
        let before = [plain.mem.reads(), world.mem.reads()];
        let answer = plain.raw(call.from, call.value, |m| programs::answer(m, &call.data));
        let done = System::call(world, call);
        assert_eq!(answer.is_ok(), done.is_ok(), "{call:?}");
        let read = [&plain, world].map(|w| w.mem.reads());
        assert_eq!(read[0].wrapping_sub(before[0]), read[1].wrapping_sub(before[1]), "{call:?}");
        let words = [&plain, world].map(|w| w.mem.words().collect::<HashMap<_, _>>());
        assert!(words[0] == words[1], "{call:?}");
        done
    }
    let ops = validating(&mut Dice(3), 400, 24);
    play(&mut Wrapped { call, ..sound() }, &ops, 24, &Cell::new(0));
}

/// Each fault is found, and of 2,000 operations only those remain that show it.
#[test]
fn a_fault_is_found_and_shown_in_few_operations() {
    type Fresh = fn() -> Wrapped;
    let faults: [(&str, Fresh, usize); 3] = [("generous", generous, 8), ("silent", silent, 2), ("gullible", gullible, 2)];
    for (fault, fresh, most) in faults {
        let ops = operations(1, 2_000, 14);
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let found = catch_unwind(AssertUnwindSafe(|| play(&mut fresh(), &ops, 14, &Cell::new(0)))).is_err();
        std::panic::set_hook(hook);
        assert!(found, "{fault}");
        let short = shrink(play, &fresh, ops, 14, Duration::from_mins(1));
        println!("{fault}: {short:?}");
        proof("fault", &[("fault", &fault), ("of", &2_000), ("left", &short.len())]);
        assert!(short.len() <= most, "{fault} is shown by {} operations: {short:?}", short.len());
        let again = catch_unwind(AssertUnwindSafe(|| play(&mut fresh(), &short, 14, &Cell::new(0))));
        assert!(again.is_err(), "the short run shows it too");
    }
}

/// Seeds that the model, or the contracts, once failed at; each with its failure.
#[test]
fn seeds_that_failed_agree_with_the_model() {
    // A task that nobody idle could run, created after a draw that tells nothing: it is Pending, not queued at once.
    for seed in [910_020, 3_094] {
        drive_validating(&World::new, seed..seed + 1, 800, 24, 0);
    }
    // An idle node that a raised threshold keeps out counts for whether a rated group is scored.
    drive_rating(&World::new, 920_035..920_036, 800, 24, 0);
    // A sampled task is not scored where five have joined and three of them are active.
    drive_validating(&World::new, 3_219..3_220, 800, 24, 0);
    // A timeout costs nothing while `penaltyPpm` is a million, and leaves an H below 1 where it was.
    drive_validating(&World::new, 3_333..3_334, 800, 24, 0);
    // Three tasks are given to nine groups each, which takes more than 200 times all windows.
    drive_rating(&World::new, 4_603..4_604, 800, 24, 0);
    // Draws of validators stay undecided as often as they can: the group that is formed then is progress, though none is settled.
    drive_validating(&World::new, 1_795_745_771_668_421..1_795_745_771_668_422, 800, 24, 0);
    // Nodes that leave have committed to answers that can never be revealed, and nobody calls in vain until their time is over.
    for seed in [1_795_747_885_647_690, 1_795_746_885_648_928] {
        drive_rating(&World::new, seed..seed + 1, 800, 24, 0);
    }
    // Half of the nodes leave against the others, and the last group can be settled between two looks at it.
    drive_validating(&World::new, 1_795_979_414_730_305..1_795_979_414_730_306, 800, 24, 0);
    // Joining made five draws, created a GPU group, and began a queued task, for more than a million gas.
    drive(&World::new, 1_795_979_323_382_057..1_795_979_323_382_058, 2_400, 14, 0);
    // A task chosen by ratings is left behind a better one, which by the end of the call could run, but is left behind a third.
    drive_rating(&World::new, 1_795_764_510_075_776..1_795_764_510_075_777, 800, 24, 0);
    // Two draws that only initialise words come before one that forms a group.
    for seed in [1_795_761_770_922_865, 1_795_762_770_920_957] {
        drive_drawn_pools(&World::new, seed..seed + 1, 600, 64, 0);
    }
    // A judgement that makes draws frees a node, and puts it out of the network: it waits, still joined, and a reader of the logs must know.
    drive_validating(&World::new, 1_796_048_458_639_501..1_796_048_458_639_502, 800, 24, 0);
    // A raised threshold keeps all idle nodes out: draws stay undecided, and are due again before somebody can quit in the next block.
    drive(&World::new, 1_795_702_355_266_077..1_795_702_355_266_078, 4_000, 90, 0);
}

/// Seeds that nobody has run, from the clock, or from `SEED` on: 8,000 operations of each stream, or as many as `OPERATIONS` says, of the
/// stream that `STREAM` names or of all. `script/fresh` runs millions. A seed that fails is printed, with the operations that it was cut
/// down to. Add it to those above.
#[test]
fn fresh_seeds_agree_with_the_model() {
    let number = |name: &str| std::env::var(name).ok().map(|n| n.parse::<u64>().expect("a number"));
    let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros() as u64;
    let stream = std::env::var("STREAM").ok();
    let wanted = |name: &str| stream.as_ref().is_none_or(|stream| stream == name);
    drive_fresh(&World::new, number("SEED").unwrap_or_else(clock), number("OPERATIONS").unwrap_or(8_000) as usize, &wanted);
}
