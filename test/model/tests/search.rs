//! A short search by the adversary of `muster_model::search`, and its single prices; `script/sim attacks` makes the long one.

use muster_core::validation::payment;
use muster_model::search::book::{Cause, Tally};
use muster_model::search::harm::Harm;
use muster_model::search::hold;
use muster_model::search::hunt::{hunt, Budget, Per};
use muster_model::search::price::{fifty_tens, lone_sender, share, Required};
use muster_model::search::rules::Rule;
use muster_model::search::{season, season_of, season_under, Strategy, LIVES};
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
            // The rest has a price now: that of the same plan is compared.
            Harm::Time => {
                let plan = &today.best[&(harm, per)].plan;
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
