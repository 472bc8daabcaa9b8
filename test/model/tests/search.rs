//! A short search by the adversary of `muster_model::search`, and its single prices; `script/sim attacks` makes the long one.

use alloy_primitives::{B256, U256};
use muster_core::validation::payment;
use muster_model::proof;
use muster_model::search::book::{Cause, Tally};
use muster_model::search::harm::Harm;
use muster_model::search::hold;
use muster_model::search::hunt::{hunt, Budget, Per};
use muster_model::search::price::{fifty_tens, lone_sender, share, Required};
use muster_model::search::rules::Rule;
use muster_model::search::{season, season_of, season_under, Strategy, LIVES};
use muster_model::validated::*;
use muster_model::world::*;
use muster_protocol::IMuster::{IMusterEvents as E, *};
use std::collections::BTreeMap;

/// Seasons, of which a long search has a thousand.
const SEASONS: u64 = 20;

/// Every invariant is checked after every call, and a life that does not end, or a call that is refused, stops it. Here: that the search
/// fulfils its purpose.
#[test]
fn four_hundred_lives() {
    let mut all: BTreeMap<Strategy, Tally> = BTreeMap::new();
    for seed in 2 * SEASONS..3 * SEASONS {
        for (strategy, tally) in season(seed, LIVES) {
            all.entry(strategy).or_default().add(&tally);
        }
    }
    let mut sum = Tally::default();
    for strategy in Strategy::ALL {
        let tally = all.get(strategy).unwrap_or_else(|| panic!("{strategy:?} was not played"));
        assert!(tally.lives > 0 && tally.groups + tally.alone >= tally.lives, "{strategy:?}");
        sum.add(tally);
    }
    assert_eq!(sum.lives, SEASONS * LIVES);
    proof("searched", &[("lives", &sum.lives), ("calls", &sum.checked), ("departures", &sum.departures)]);
    assert!(sum.departures >= 1_000, "{sum:?}");
    assert!(sum.majorities > 0 && sum.spent > 0 && sum.fooled > 0 && sum.withheld > 0 && sum.looked > 0, "{sum:?}");
    assert!(sum.burnt(Cause::Majority) > 0 && sum.burnt(Cause::Ambiguous) > 0, "{sum:?}");
    // Idle, busy, leaving, paused, gone.
    assert!([1, 2, 4, 5, 0].iter().all(|status| sum.states[*status] > 0), "{:?}", sum.states);
    let honest = &all[&Strategy::Nothing];
    assert_eq!((honest.spent, honest.fooled, honest.burnt(Cause::Majority)), (0, 0, 0), "the adversary is honest there");
}

/// Where returned stake need not wait, an open commitment alone keeps it, and in all these lives does.
#[test]
fn no_stake_leaves_while_a_commitment_is_open() {
    let seasons = (100..108).map(|seed| season_under(seed, LIVES, &[("unbonding", 0)]));
    let locked: u64 = seasons.flat_map(|found| found.into_values().map(|tally| tally.locked)).sum();
    assert!(locked > 0, "it was tried");
}

/// A season comes out the same each time, and another differs.
#[test]
fn a_season_follows_from_its_seed() {
    let spent = |seed| season(seed, 3).values().map(|tally| (tally.spent, tally.checked)).collect::<Vec<_>>();
    assert_eq!(spent(5), spent(5));
    assert_ne!(spent(5), spent(6));
}

/// A sender that is alone in the block that decides is not sampled, and has the group that it wants; otherwise chance decides.
#[test]
fn a_lone_sender_escapes_in_his_blocks_and_in_no_others() {
    let none = lone_sender(1, 0, 1_000, 200);
    let all = lone_sender(1, 100, 1_000, 200);
    // A tenth, and two or three of three when two of twenty are the adversary's: 54 of 3,420.
    assert!((70..=130).contains(&none.sampled) && none.majorities <= 12, "{none:?}");
    assert_eq!((all.sampled, all.majorities), (0, 200), "{all:?}");
}

/// With a fifth of the others, a first node backed by its own validators breaks even where the page's formula says, or before.
#[test]
fn a_share_of_the_nodes_breaks_even_below_the_formula() {
    let found = share(1, 20, 3_000, 400, 1_500);
    let (r, f) = (0.3, 0.2f64);
    let backed = 1.0 - (1.0 - f).powi(2);
    let formula = (1.0 - r + r * backed) / (r * (1.0 - backed));
    let measured = found.earned as f64 / found.fee as f64 / found.slashes as f64;
    assert!(measured < formula, "{measured} {formula}");
    // Together they get three payments where they are backed.
    let single = payment(found.fee, 3_000) as f64 / found.fee as f64;
    let exact = single * (1.0 - r + 3.0 * r * backed) / (r * (1.0 - backed));
    assert!((measured / exact - 1.0).abs() < 0.15, "{measured} {exact}");
    assert_eq!(found.slashes, found.sampled - found.backed);
    // Without replacement, of a hundred: a little less than 3 f^2 (1 - f).
    assert!((20..=60).contains(&found.twos), "{found:?}");
}

#[test]
fn fifty_tens_raise_a_weight_by_half() {
    let found = fifty_tens(1, 20, 1, 2, Required::Nothing);
    assert_eq!(found.weight, 1_500);
    assert!(found.tasks >= 50 && found.parts > 100 * 50, "{found:?}");
    // Of tasks that others cannot answer, whose errors are not shared out.
    let found = fifty_tens(1, 20, 4, 2, Required::Private);
    assert_eq!(found.weight, 1_500);
    assert!(found.tasks >= 50 && found.parts >= 100 * 50, "{found:?}");
}

/// A node is reserved with the adversary's, which pause before the draw. Where such reservations are forgotten, as once, a search by chance
/// finds a plan that holds the node for good, for calls alone. Today the best of the same plans takes a tenth of its time.
#[test]
fn the_search_finds_how_a_node_was_held_for_good() {
    const SECONDS: u64 = 2 * 3_600;
    let undisturbed = hold::hold(None, false, SECONDS);
    let found = |forgets| hold::search(7, 60, forgets, SECONDS);
    let ((then, held), (now, left)) = (found(true), found(false));
    let told = |plan, held: &hold::Held| {
        let lost = 100.0 * held.lost(&undisturbed);
        println!("{} of {} tasks in two hours, {lost:.0} % lost by {plan:?}: {held:?}", held.done, undisturbed.done);
    };
    told(then, &held);
    told(now, &left);
    assert!(held.lost(&undisturbed) > 0.9 && held.hours(&undisturbed) > 1.8, "{held:?}");
    assert!(left.hours(&undisturbed) < 0.12 * 2.0, "{left:?}");
}

/// Short hunts; those of `script/sim attacks` are longer.
const BUDGET: Budget = Budget { plans: 160, seasons: (6, 30), lives: 3 };
/// Of their plans and networks.
const SEED: u64 = 1_000;

/// With each old rule put back, a short search finds its cost. With today's rules it finds no such thing, or less for the same price.
#[test]
fn the_search_finds_what_the_rules_of_old_cost() {
    let harms = [Harm::Reserve, Harm::Blame, Harm::Slashes, Harm::Time, Harm::Work];
    let (today, then) = std::thread::scope(|scope| {
        let today = scope.spawn(|| hunt(SEED, None, &harms, &BUDGET, &[]));
        let then = Rule::ALL.map(|rule| scope.spawn(move || hunt(SEED, Some(rule), &[rule.harm()], &BUDGET, &[])));
        (today.join().expect("played"), then.map(|then| then.join().expect("played")))
    });
    for (rule, then) in Rule::ALL.into_iter().zip(&then) {
        let harm = rule.harm();
        let per = if matches!(harm, Harm::Time | Harm::Work) { Per::Fee } else { Per::Gas };
        let (found, left) = (then.rate(harm, per), today.rate(harm, per));
        let what =
            format!("{rule:?}: {found:?} by {:?}, {left:?} by {:?}", then.best.get(&(harm, per)), today.best.get(&(harm, per)));
        let found = found.unwrap_or_else(|| panic!("nothing is found: {what}"));
        println!("{rule:?}: {found} then, {left:?} today: {}", then.best[&(harm, per)].plan.words());
        match harm {
            // A plan that cost nothing then has a price now.
            Harm::Time => {
                let plan = &then.best[&(harm, per)].plan;
                let parts = |old| {
                    let mut sum = Tally::default();
                    (0..BUDGET.seasons.1).for_each(|n| sum.add(&season_of(plan, n, BUDGET.lives, old)));
                    sum.parts as f64 / harm.of(&sum)
                };
                assert!(2.0 * parts(Some(rule)) < parts(None), "{} {} {what}", parts(Some(rule)), parts(None));
            }
            // The groups before the last are paid for now.
            Harm::Work => assert!(found > 2.0 * left.expect("some work is unpaid"), "{what}"),
            _ => assert!(left.is_none(), "{what}"),
        }
    }
    // Nor is anybody blamed for an error by tasks of honest applications, as nodes were that lack a model.
    let blamed = Rule::ALL.iter().zip(&then).find(|(rule, _)| **rule == Rule::ErrorsScore).map(|(_, then)| then.sum.strangers);
    assert!(blamed > Some(0), "{blamed:?}");
    assert_eq!((today.sum.blamed, today.sum.spared), (0, 0));
}

/// A replicated task for this fee, with the place and the members of its group.
fn grouped(w: &mut World, fee: u128) -> (u64, u32, Vec<u32>) {
    w.pass(4, 60);
    let id = created(w, fee, TaskSpec { gpu: CARD, ..alike(0) });
    loop {
        match group_of(w, id) {
            Some((place, members)) => return (id, place, members),
            None => w.drain(),
        }
    }
}

/// Plays replicated tasks for this fee until a group is not scored, or for so many groups. Gives the groups that were scored, and the nodes
/// that left for good.
fn expelled(w: &mut World, fee: u128, most: u32, says: impl Fn(u32, &[u32]) -> u8) -> (u32, Vec<u32>) {
    let (mut groups, mut out) = (0, Vec::new());
    while groups < most {
        let (id, place, members) = grouped(w, fee);
        if !w.ask(groupCall { place }).scored {
            break;
        }
        w.events();
        play(w, id, place, &members, |n| value(says(n, &members)));
        groups += 1;
        out.extend(w.events().into_iter().filter_map(|e| if let E::NodeKickedOut(one) = e { Some(one.node) } else { None }));
    }
    (groups, out)
}

/// The least fee of a replicated task by which a wrong answer loses a stake unit.
const DUST: u128 = 3 * STAKE_UNIT as u128 / 20;

/// Slashes take a node with the least stake out once it has lost a sixteenth of that: for dust nobody goes, and below a stake unit nothing
/// happens. Prints the price of one that goes.
#[test]
fn dust_takes_no_honest_node_out() {
    let own = |n: u32| n > 18;
    let against = |n: u32, members: &[u32]| {
        let two = members.iter().filter(|&&n| own(n)).count() == 2;
        1 + u8::from(two && own(n))
    };
    let kept = |w: &mut World| (1..=20).filter(|&n| !own(n)).map(|n| w.node(n).stake).min().expect("eighteen");
    let mut w = network(20);
    let (groups, out) = expelled(&mut w, DUST, 300, against);
    let least = kept(&mut w);
    println!("two nodes of twenty, {groups} groups for {DUST} wei each: {} out, the least stake left is {least} wei", out.len());
    assert!(groups == 300 && out.is_empty(), "{groups} {out:?}");
    assert!((400 * TOKEN - 20 * u128::from(STAKE_UNIT)..400 * TOKEN).contains(&least), "{least}");
    check_money(&mut w);

    // By one slash only for a fee of which it takes more than a sixteenth.
    let enough = 3 * 25 * TOKEN / 20;
    for (fee, goes) in [(enough, 0), (enough + DUST, 1)] {
        let (_, out) = expelled(&mut network(20), fee, 1, |n, members| 1 + u8::from(n == members[0]));
        assert_eq!(out.len(), goes, "{fee}");
    }
    println!("one slash takes a node out for {:.2} tokens a group", (enough + DUST) as f64 / TOKEN as f64);

    // Nor where the least stake was raised, and nobody has followed.
    let mut w = network(20);
    w.set("minStake", 800_000);
    let (groups, out) = expelled(&mut w, DUST, 300, against);
    assert!(groups == 300 && out.is_empty(), "{groups} {out:?}");

    // But who joined with less, while that was enough, and does not follow when the first least stake is asked again.
    let mut w = network(20);
    w.set("minStake", 40_000);
    for n in 21..=40 {
        w.join(n, "RTX 4090", 24, &[], 40).expect("enough");
    }
    w.set("minStake", 400_000);
    let (groups, out) = expelled(&mut w, DUST, 60, |n, members| 1 + u8::from(n == members[0]));
    println!("joined with 40 tokens, which were enough then: {} of 20 out after {groups} groups", out.len());
    assert!(!out.is_empty() && out.iter().all(|&n| n > 20), "{groups} {out:?}");
    check_money(&mut w);

    let mut w = network(20);
    let (groups, out) = expelled(&mut w, DUST, 300, |n, _| 1 + (n % 2) as u8);
    println!("no node, two right answers, {groups} groups for {DUST} wei each: {} of 20 out", out.len());
    assert!(out.is_empty(), "{groups} {out:?}");

    let mut w = network(12);
    let (_, out) = expelled(&mut w, 180, 1, |n, members| u8::from(n == members[0]));
    assert!(out.is_empty() && (1..=12).all(|n| w.node(n).stake == 400 * TOKEN && !w.account(n.into()).kickedOut));
}

/// How it goes until an honest node of twenty is out, in groups of somebody's tasks at this fee. `says` gives a member's answer, 0 an error,
/// from the number of the somebody's own nodes in its group. The result: the groups, those with an honest node judged wrong, what the somebody
/// paid in all, and what was burnt.
fn until_out(fee: u128, own: u32, says: impl Fn(u32, usize) -> u8) -> (u32, u32, u128, u128) {
    let mut w = network(20);
    let is_own = |n: u32| n > 20 - own;
    let purse = |w: &mut World| w.account(CREATOR).credit + (21 - own..=20).map(|n| w.account(n.into()).credit).sum::<u128>();
    let (before, mut groups, mut against) = (purse(&mut w), 0u32, 0);
    loop {
        let (id, place, members) = grouped(&mut w, fee);
        assert!(w.ask(groupCall { place }).scored);
        let ours = members.iter().filter(|&&n| is_own(n)).count();
        let opening = |n: u32| match says(n, ours) {
            0 => (ERROR, B256::ZERO),
            says => (ANSWER, value(says)),
        };
        w.events();
        members.iter().for_each(|&n| commit(&mut w, id, n, opening(n).0, opening(n).1).unwrap());
        members.iter().for_each(|&n| reveal(&mut w, id, place, n, opening(n).0, opening(n).1).unwrap());
        groups += 1;
        let events = w.events();
        against += u32::from(events.iter().any(|e| matches!(e, E::MemberJudged(one) if one.verdict == 2 && !is_own(one.node))));
        if events.iter().any(|e| matches!(e, E::NodeKickedOut(one) if !is_own(one.node))) {
            check_money(&mut w);
            let paid = before + u128::from(groups) * fee - purse(&mut w);
            return (groups, against, paid, w.ask(overviewCall {}).burnt);
        }
    }
}

/// Answers where the input is there for groups of which two are own nodes, who give a false one.
fn for_two(own: u32) -> impl Fn(u32, usize) -> u8 {
    move |n, ours| if ours == 2 { 1 + u8::from(n > 20 - own) } else { 0 }
}

/// An input that its creator serves to groups of which two are its own nodes: all others commit to errors, and cost the start fee.
#[test]
fn an_input_for_chosen_groups_makes_two_of_three_cost_start_fees() {
    for own in [2, 4, 7] {
        let fee = 3 * TOKEN;
        let (groups, against, paid, burnt) = until_out(fee, own, for_two(own));
        let ratio = burnt as f64 / paid as f64;
        println!(
            "{own} of twenty, fees of 3 tokens: {against} of {groups} groups, {ratio:.1} tokens burnt for each that it paid"
        );
        // Each other group costs the start fee of a fiftieth.
        assert_eq!((burnt, paid), (u128::from(against) * 20 * TOKEN, u128::from(groups - against) * fee / 50));
    }
}

/// Scores do not depend on the fee: a node whose pool is full of zeros is kicked out. Its stake comes back.
#[test]
fn fifty_scores_of_nothing_take_an_honest_node_out_for_dust() {
    // An input on which one card answers otherwise than all others.
    let (groups, against, paid, _) = until_out(DUST, 0, |n, _| 1 + u8::from(n == 5));
    assert_eq!((against, paid), (50, u128::from(groups) * DUST));
    println!("an input on which one of twenty differs: {groups} groups, {against} with it");

    // Two of three, and the input for them alone.
    for own in [4, 7] {
        let (groups, against, paid, _) = until_out(DUST, own, for_two(own));
        println!("{own} of twenty: {groups} groups, the input for {against}, {:.1} fees paid", paid as f64 / DUST as f64);
        assert!(against >= 50 && paid < u128::from(groups) * DUST / 40, "{against} {paid}");
    }
}

/// The owner lists GPU groups at once. Where a group's nodes differ, that reaches into stakes.
#[test]
fn a_group_listed_at_once_has_its_nodes_slashed_in_the_same_minute() {
    let mut w = world(20, 1);
    let wanted = TaskSpec { gpu: CARD, ..alike(0) };
    assert_eq!(named(w.create(CREATOR, TOKEN, wanted)), "GpuNotListed");
    let began = w.mem.now;
    w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: true }).unwrap();
    let (groups, out) = expelled(&mut w, 18 * TOKEN, 1, |n, members| if n == members[0] { 2 } else { 1 });
    assert_eq!((groups, out.len()), (1, 1));
    assert!(w.mem.now - began <= 60, "{}", w.mem.now - began);
    assert_eq!(w.ask(overviewCall {}).burnt, 120 * TOKEN);
}

/// Parameters that the owner sets at once reach into nobody's stake. But a node that misses one deadline of two seconds can be without work
/// for 16 days.
#[test]
fn parameters_set_at_once_can_set_a_node_apart_for_weeks() {
    let mut w = world(10, 1);
    let set =
        [("limitMin", 1), ("limitMax", 60), ("gptOverhead", 1), ("penaltyPpm", 0), ("tau", 604_800), ("exclusionPpm", 900_000)];
    set.iter().for_each(|(name, value)| w.set(name, *value));
    assert_eq!(w.ask(estimateCall { kind: 1, units: 1_000 }).timeLimit, 2);
    let (id, node) = busy(&mut w, 1)[0];
    w.pass(12, 3);
    w.send(who(DRIVER), 0, expireCall { node, id }).unwrap();
    let hours = (w.node(node).parkedUntil - w.mem.now) / 3_600;
    assert_eq!(hours, 386);
    w.send(who(node.into()), 0, quitCall {}).unwrap();

    // One that pauses and reports an error only rests before it is paused.
    let mut w = world(10, 1);
    let (id, node) = busy(&mut w, 1)[0];
    let wait = w.node(node).deadline + 1 - w.mem.now;
    w.pass(1, wait);
    w.send(who(DRIVER), 0, expireCall { node, id }).unwrap();
    let (id, _) = busy(&mut w, 10).into_iter().find(|(_, other)| *other == node).unwrap();
    w.set("tau", 604_800);
    w.set("exclusionPpm", 900_000);
    w.send(who(node.into()), 0, pauseCall {}).unwrap();
    w.send(who(node.into()), 0, reportErrorCall { id, code: 1 }).unwrap();
    let view = w.node(node);
    assert!((view.status, view.parked) == (3, 1) && view.parkedUntil <= w.mem.now + 60, "{}", view.parkedUntil - w.mem.now);
    w.pass(1, 60);
    w.dispatch(1).unwrap();
    assert_eq!(w.node(node).status, 5);
    w.send(who(node.into()), 0, quitCall {}).unwrap();
}

/// A sampled task of somebody's whose node has committed to its answer.
fn answered_by(w: &mut World, creator: u64) -> (u64, u32) {
    let id = created_by(w, creator, TOKEN, TaskSpec { gpu: CARD, redundancy: 1, ..spec(0, &[]) });
    w.drain();
    let node = (1..=12).find(|&n| task_of(w, n) == id).expect("started");
    commit(w, id, node, ANSWER, value(1)).unwrap();
    w.pass(3, 1);
    (id, node)
}

/// Has its validators called, and lets the hash of their draw become known.
fn due(w: &mut World, (id, node): (u64, u32)) {
    w.send(who(DRIVER), 0, validateCall { id, node }).unwrap();
    w.pass(3, 1);
}

/// The group of a task, once its due draw is made.
fn formed(w: &mut World, id: u64) -> Option<(u32, Vec<u32>)> {
    w.send(who(DRIVER), 0, formGroupCall {}).unwrap();
    group_of(w, id)
}

/// The reveal of an error, which draws nothing, makes its node callable again, also for draws whose hash is known. A settlement that drops
/// a node from the group which waits for it would do so, too: it is refused while draws are due.
#[test]
fn an_error_makes_a_node_callable_in_a_known_draw() {
    let (mut errors, mut dropped) = (0, 0);
    for seed in 0..150 {
        let mut w = network(12);
        w.set("sampleBps", 10_000);
        w.set("openMost", 1);
        w.pass(seed * 7 + 1, 1);
        let id = created(&mut w, TOKEN, alike(0));
        w.drain();
        let (place, members) = group_of(&mut w, id).expect("formed");
        let held = members[0];
        commit(&mut w, id, held, ERROR, value(0)).unwrap();
        members[1..].iter().for_each(|&n| commit(&mut w, id, n, ANSWER, value(1)).unwrap());
        let task = answered_by(&mut w, 71);
        due(&mut w, task);
        let before = formed(&mut w.clone(), task.0).expect("formed").1;
        reveal(&mut w, id, place, held, ERROR, value(0)).unwrap();
        let after = formed(&mut w, task.0).expect("formed").1;
        assert!(!before.contains(&held), "it is held");
        errors += u32::from(after.contains(&held));
    }
    for seed in 0..400 {
        let mut w = network(12);
        w.set("sampleBps", 10_000);
        w.pass(seed * 7 + 1, 1);
        // A node sits on its own task, and another's group waits for it.
        let (_, sits) = answered_by(&mut w, 71);
        let (id, first) = answered_by(&mut w, 72);
        due(&mut w, (id, first));
        let (place, members) = formed(&mut w, id).expect("formed");
        if w.node(sits).calledTo != place {
            continue;
        }
        members.iter().filter(|&&n| n != sits && n != first).for_each(|&n| commit(&mut w, id, n, ANSWER, value(1)).unwrap());
        w.pass(3, 601);
        let task = answered_by(&mut w, 73);
        due(&mut w, task);
        let settle = settleCall { id, group: place };
        assert_eq!(named(w.send(who(DRIVER), 0, settle.clone())), "DrawsDue");
        assert!(w.node(sits).calledTo == place && !formed(&mut w, task.0).expect("formed").1.contains(&sits), "it is called");
        w.send(who(DRIVER), 0, settle).unwrap();
        assert_eq!(w.node(sits).calledTo, 0);
        dropped += 1;
    }
    println!("after an error {errors} of 150 known draws find its node; after a settlement none of {dropped}");
    assert!(errors > 10 && dropped > 0, "{errors} {dropped}");
}

/// Anybody can accept a proposed parameter, also when a hash is known and its draw is not made yet: once for each proposal.
#[test]
fn an_acceptance_can_come_between_a_hash_and_its_draw() {
    let mut w = network(12);
    let parameter = parameter("scorePool");
    w.send(OWNER, 0, proposeParameterCall { parameter, value: U256::from(24) }).unwrap();
    w.pass(1, u64::from(UPGRADE_DELAY) + 1);
    let id = w.create(CREATOR, TOKEN, alike(0)).unwrap();
    w.pass(1, 0);
    let drawn = |mut w: World| {
        w.dispatch(16).unwrap();
        let (place, members) = group_of(&mut w, id).expect("formed");
        (members, w.ask(groupCall { place }).scored)
    };
    let before = drawn(w.clone());
    w.send(who(DRIVER), 0, acceptParameterCall { parameter }).unwrap();
    let after = drawn(w);
    assert_eq!((before.0, before.1, after.1), (after.0, true, false));
}
