//! Groups chosen by their members' ratings, natively. docs/reputation.md quotes these tests.

use alloy_primitives::{keccak256, B256};
use muster_core::adaptive::{best_target, HillClimber, Settings, Tally};
use muster_core::id::NodeId;
use muster_core::record::{Members, Profile as Kept, Scores, TargetSearch};
use muster_core::reputation::{likelihood, Algorithm, Exact, Record, Rule};
use muster_core::wad::WAD;
use muster_core::word::Word;
use muster_model::meter::{metered_alone, MOST_GAS};
use muster_model::refused;
use muster_model::validated::{self, *};
use muster_model::world::*;
use muster_protocol::host::{offset, Host};
use muster_protocol::layout::{self, entry, node, node_slot, profile, profile_slot};
use muster_protocol::store::node::NodeHandle;
use muster_protocol::IMuster::{self, IMusterEvents as E, *};

const FEE: u128 = 15 * TOKEN;

/// Equal nodes of one listed GPU group, three of which are enough for ratings.
fn network(nodes: u64) -> World {
    let mut w = validated::network(nodes);
    w.set("scorePool", 3);
    w.events();
    w
}

/// More models than one word holds: a node that lists so many when it joins has no words opened for its first task.
const MANY: [u64; 7] = [1, 2, 3, 4, 5, 6, 7];

/// The same network of nodes that list so many.
fn unopened(nodes: u64) -> World {
    let mut w = world(0, 1);
    for n in 1..=nodes {
        w.join(n, "RTX 4090", 24, &MANY, 400).unwrap();
    }
    w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: true }).unwrap();
    w.set("scorePool", 3);
    w.events();
    w
}

fn set(w: &mut World, profile: Profile) {
    set_profile(w, CREATOR, profile);
}

/// Writes the judgements of a node: those in which it was right, and all.
fn rate(w: &mut World, number: u32, right: u8, judged: u8) {
    let at = offset(node_slot(&w.mem, NodeId(number)), node::SCORES);
    let scores: Scores = w.mem.get(at);
    w.mem.put(at, &Scores { right, judged, ..scores });
}

fn chosen(w: &mut World) -> Option<GroupChosen> {
    w.events().into_iter().rev().find_map(|e| if let E::GroupChosen(c) = e { Some(c) } else { None })
}

/// Lets every member answer, in turn, one of these.
fn run(w: &mut World, id: u64, place: u32, members: &[u32], answers: &[u8]) {
    let turn = |n: u32| members.iter().position(|&m| m == n).expect("a member");
    play(w, id, place, members, |n| value(answers[turn(n)]));
}

fn verdicts(parts: &[(u32, u8, u128)]) -> Vec<u8> {
    parts.iter().map(|(_, verdict, _)| *verdict).collect()
}

#[test]
fn a_majority_is_paid_alike_and_all_are_rated() {
    let mut w = network(9);
    set(&mut w, Profile { target: WAD, targeting: 2, most: 5, ..USUAL });
    let id = created(&mut w, FEE, rated());
    let (place, members) = group_of(&mut w, id).expect("formed");
    let told = chosen(&mut w).expect("told");
    assert_eq!((told.id, told.group, told.algorithm, told.size, told.target), (id, place, 1, 5, WAD));
    assert_eq!(told.likelihood, likelihood(&[WAD / 2; 5]).unwrap());
    let view = w.ask(groupCall { place });
    assert_eq!((view.redundancy, view.sampleBps, view.scored, view.members.len()), (3, 0, true, 5));
    let before: Vec<u128> = members.iter().map(|&n| w.account(n.into()).credit).collect();
    run(&mut w, id, place, &members, &[1, 2, 1, 3, 1]);
    assert_eq!(group_of(&mut w, id), None);
    for (i, &n) in members.iter().enumerate() {
        let right = [0, 2, 4].contains(&i);
        let (v, paid) = (w.node(n), w.account(n.into()).credit - before[i]);
        assert_eq!(paid, if right { FEE / 3 } else { 0 });
        assert_eq!(
            (v.right, v.judged, v.scores, v.stake),
            (right.into(), 1, 0, 400 * TOKEN),
            "rated, not scored and not slashed"
        );
        assert_eq!(v.rating, Record::new(right.into(), 1).unwrap().rating());
    }
    let (parts, settled) = judgement(&mut w);
    assert_eq!(verdicts(&parts), [1, 2, 1, 2, 1], "right and wrong");
    assert_eq!((settled.outcome, settled.answer, settled.refund, settled.startFee), (0, value(1), 0, 0));
    check_money(&mut w);
}

#[test]
fn an_indivisible_fee_leaves_its_remainder_to_the_last() {
    let mut w = network(9);
    set(&mut w, Profile { target: 0, targeting: 2, ..USUAL });
    let id = w.create(CREATOR, FEE + 2, rated()).unwrap();
    w.pass(1, 0);
    w.dispatch(1).unwrap();
    let (place, members) = group_of(&mut w, id).unwrap();
    assert_eq!(members.len(), 3, "the target is met at once");
    run(&mut w, id, place, &members, &[1, 1, 1]);
    let paid: Vec<u128> = members.iter().map(|&n| w.account(n.into()).credit).collect();
    assert_eq!(paid, [FEE / 3, FEE / 3, FEE / 3 + 2]);
    assert_eq!(paid.iter().sum::<u128>(), FEE + 2);
    check_money(&mut w);
}

/// Without a majority nobody is rated or paid, and another group gets the task, as often as the profile says; then the fee goes back. Each
/// such group costs the task a start fee of its remaining fee.
#[test]
fn without_a_majority_another_group_gets_the_task() {
    let mut w = network(9);
    set(&mut w, Profile { target: WAD, targeting: 2, most: 5, reschedules: 1, ..USUAL });
    let id = created(&mut w, FEE, IMuster::TaskSpec { flags: 1, ..rated() });
    let (place, members) = group_of(&mut w, id).unwrap();
    let (start_fee, income) = (FEE / 50, w.ask(overviewCall {}).treasuryBalance);
    w.events();
    run(&mut w, id, place, &members, &[1, 1, 2, 2, 3]);
    let events = w.events();
    assert!(events.iter().any(|e| matches!(e, E::GroupSettled(s) if (s.outcome, s.refund, s.startFee) == (4, 0, start_fee))));
    assert!(events.iter().any(|e| matches!(e, E::TaskRedrawn(r) if r.id == id)));
    let unrated = |w: &mut World, members: &[u32]| members.iter().all(|&n| (w.node(n).right, w.node(n).judged) == (0, 0));
    assert!(unrated(&mut w, &members));
    check_money(&mut w);
    w.pass(1, 0);
    w.dispatch(1).unwrap();
    let (place, members) = group_of(&mut w, id).expect("another group");
    let left = FEE - start_fee;
    assert_eq!(w.ask(groupCall { place }).fee, left);
    let credit = w.account(CREATOR).credit;
    run(&mut w, id, place, &members, &[1, 2, 3, 4, 5]);
    let (_, settled) = judgement(&mut w);
    assert_eq!((settled.outcome, settled.refund, settled.startFee), (2, left - left / 50, left / 50));
    assert_eq!(w.account(CREATOR).credit - credit, left - left / 50);
    assert_eq!(w.ask(overviewCall {}).treasuryBalance - income, start_fee + left / 50);
    assert!(unrated(&mut w, &members));
    assert_eq!(w.ask(outcomeCall { id }).state, 9);
    check_money(&mut w);
}

#[test]
fn who_is_late_or_withholds_is_not_right_and_nobody_waits_for_it() {
    let mut w = network(9);
    set(&mut w, Profile { target: WAD, targeting: 2, most: 9, ..USUAL });
    let id = created(&mut w, FEE, rated());
    let (place, members) = group_of(&mut w, id).unwrap();
    assert_eq!(members.len(), 9);
    for &n in &members[..7] {
        commit(&mut w, id, n, ANSWER, value(1)).unwrap();
    }
    refused!(reveal(&mut w, id, place, members[0], ANSWER, value(1)), NotOpen(id, place));
    w.pass(1, 121);
    for &n in &members[..5] {
        reveal(&mut w, id, place, n, ANSWER, value(1)).unwrap();
    }
    refused!(w.send(who(DRIVER), 0, settleCall { id, group: place }), RevealsOpen(id, w.mem.now - 1 + 7_200));
    w.pass(1, 7_201);
    w.send(who(DRIVER), 0, settleCall { id, group: place }).unwrap();
    assert_eq!(verdicts(&judgement(&mut w).0), [1, 1, 1, 1, 1, 3, 3, 5, 5], "right, withheld, timed out");
    for (i, &n) in members.iter().enumerate() {
        let v = w.node(n);
        assert_eq!((v.right, v.judged, v.stake, v.openCommitments), (u8::from(i < 5), 1, 400 * TOKEN, 0));
        assert_eq!(v.reliability < WAD / 2, i >= 5, "H of an answer that is withheld, and of a deadline that passed");
    }
    check_money(&mut w);
}

/// Two answers that nobody's majority holds differ; of one, or none, nobody can say so. Each costs the creator the start fee.
#[test]
fn a_single_answer_is_no_difference() {
    for (answers, outcome) in [(0, 3), (1, 3), (2, 2)] {
        let mut w = network(9);
        set(&mut w, Profile { target: WAD, targeting: 2, most: 3, reschedules: 0, ..USUAL });
        let id = created(&mut w, FEE, rated());
        let (place, members) = group_of(&mut w, id).unwrap();
        assert_eq!(members.len(), 3);
        let says = |i: usize| if i < answers { (ANSWER, value(1 + i as u8)) } else { (ERROR, B256::ZERO) };
        for (i, &n) in members.iter().enumerate() {
            commit(&mut w, id, n, says(i).0, says(i).1).unwrap();
        }
        w.events();
        for (i, &n) in members.iter().enumerate() {
            reveal(&mut w, id, place, n, says(i).0, says(i).1).unwrap();
        }
        let (_, settled) = judgement(&mut w);
        assert_eq!((settled.outcome, settled.startFee, settled.refund), (outcome, FEE / 50, FEE - FEE / 50), "{answers} answers");
        check_money(&mut w);
    }
}

/// A right answer raises H, as it does in groups that are scored; a wrong one does not.
#[test]
fn who_is_right_is_relied_on_more() {
    let mut w = network(9);
    set(&mut w, Profile { target: WAD, targeting: 2, most: 3, ..USUAL });
    let id = created(&mut w, FEE, rated());
    let (place, members) = group_of(&mut w, id).unwrap();
    for &n in &members {
        let mut handle = NodeHandle::load(&w.mem, NodeId(n));
        (handle.node.h, handle.node.h_at) = (3 * WAD / 10, w.mem.now as u32);
        handle.put(&mut w.mem);
    }
    // Half of the task's estimate, and more.
    w.pass(1, 40);
    let before = w.node(members[0]).reliability;
    run(&mut w, id, place, &members, &[1, 2, 1]);
    let raised = before + 15 * WAD / 100;
    assert_eq!(members.iter().map(|&n| w.node(n).reliability).collect::<Vec<_>>(), [raised, before, raised]);
}

/// The chain's choice from a pool of all nodes equals the choice of the paper's algorithm from a plain slice. Compares sizes, ratings and
/// likelihoods of 10,000 random pools, whose members are often tied with others.
#[test]
fn ten_thousand_pools_are_treated_like_plain_slices() {
    let mut dice = Dice(14);
    let mut groups = [[0u32; 10]; 4];
    for nodes in 3..=32u64 {
        let mut w = network(nodes);
        let (mem, paid) = (w.mem.clone(), w.paid_in);
        for _ in 0..334 {
            w.mem = mem.clone();
            w.paid_in = paid;
            w.mem.block += dice.below(1 << 30);
            let most = 3 + dice.below(7.min(nodes - 2)) as u8;
            let least = 3 + dice.below(u64::from(most) - 2) as u8;
            let (algorithm, target) = (dice.below(4) as u8, dice.below(WAD + 1));
            set(&mut w, Profile { algorithm, least, most, targeting: 2, target, ..USUAL });
            let mut ratings = Vec::new();
            for n in 1..=nodes as u32 {
                let judged = dice.below(64) as u8;
                let right = dice.below(u64::from(judged) + 1) as u8;
                rate(&mut w, n, right, judged);
                ratings.push(Record::new(right.into(), judged.into()).unwrap().rating());
            }
            let id = created(&mut w, FEE, rated());
            let (_, members) = group_of(&mut w, id).expect("formed");
            let told = chosen(&mut w).expect("told");
            let got: Vec<u64> = members.iter().map(|&n| ratings[n as usize - 1]).collect();
            assert_eq!((told.algorithm, told.size as usize, told.target), (algorithm, members.len(), target));
            assert_eq!(Some(told.likelihood), likelihood(&got));
            groups[algorithm as usize][members.len()] += 1;
            let mut sorted = ratings.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let rule = Rule::new(least.into(), most.into(), target).unwrap();
            match Algorithm::new(algorithm).unwrap() {
                Algorithm::Fixed => assert_eq!(members.len(), usize::from(most)),
                Algorithm::RandomFit => {
                    // The first prefix, from Rmin on, that reaches the target.
                    let reached = (usize::from(least)..).take_while(|&n| n < members.len());
                    assert!(reached.map(|n| likelihood(&got[..n]).unwrap()).all(|l| l < target));
                    assert!(told.likelihood >= target || members.len() == usize::from(most));
                }
                by_rating => {
                    let formed = by_rating.form::<_, Exact>(&mut sorted, &rule, |_| unreachable!("nothing random")).unwrap();
                    assert_eq!((got, Some(told.likelihood)), (sorted[..formed.size].to_vec(), formed.likelihood));
                }
            }
            let mut different = members;
            different.sort_unstable();
            different.dedup();
            assert_eq!(different.len(), told.size as usize);
        }
    }
    println!("groups by algorithm and size: {groups:?}");
    assert!(groups.iter().all(|sizes| sizes.iter().sum::<u32>() > 2_000));
    assert!(groups[1..].iter().all(|sizes| sizes[3] > 0 && sizes[4..].iter().sum::<u32>() > 100));
}

/// Random choices are uniform: with Fixed-size every node is as often in a group as any other, whatever its rating, and equal ratings are
/// taken in every order.
#[test]
fn who_is_taken_at_random_is_taken_uniformly() {
    for (algorithm, equal) in [(0u8, false), (3, false), (1, true), (2, true)] {
        let mut w = network(8);
        set(&mut w, Profile { algorithm, least: 3, most: 3, targeting: 2, target: 0, ..USUAL });
        for n in 1..=8 {
            rate(&mut w, n, if equal { 5 } else { n as u8 }, 10);
        }
        let mem = w.mem.clone();
        let (mut counts, draws) = ([0u32; 8], 4_000u32);
        for i in 0..draws {
            w.mem = mem.clone();
            w.mem.block += 1 + u64::from(i) * 3;
            let id = created(&mut w, FEE, rated());
            for n in group_of(&mut w, id).unwrap().1 {
                counts[n as usize - 1] += 1;
            }
        }
        let expected = f64::from(draws) * 3.0 / 8.0;
        // Of three of eight without replacement each count varies 5/7 as much as if it were drawn by itself.
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum::<f64>() * 8.0 / 5.0 * 7.0 / 8.0;
        println!("algorithm {algorithm}: {counts:?}, chi-square {chi:.1} of 7 degrees");
        assert!(chi < 24.3, "{counts:?}");
    }
}

/// Among more than 32 the pool is drawn by weight: a group's members are different, and so many are looked at that the best rated of a
/// large network are not always taken.
#[test]
fn a_large_network_is_represented_by_a_pool() {
    let mut w = network(200);
    set(&mut w, Profile { algorithm: 1, least: 9, most: 9, targeting: 2, target: WAD, ..USUAL });
    for n in 1..=200 {
        rate(&mut w, n, if n <= 9 { 60 } else { 30 }, 60);
    }
    let mem = w.mem.clone();
    let (mut best, mut formed) = (0, 0);
    for i in 0..300u64 {
        w.mem = mem.clone();
        w.mem.block += 1 + i * 3;
        let id = created(&mut w, FEE, rated());
        let Some((_, members)) = group_of(&mut w, id) else { continue };
        formed += 1;
        best += members.iter().filter(|&&n| n <= 9).count();
    }
    let share = best as f64 / formed as f64 / 9.0;
    println!("{formed} of 300 formed; a best node is in a pool with probability {share:.3}");
    assert!(formed >= 290, "{formed}");
    // A pool holds the nodes that its tries and reads accept, at most 32 of 200.
    assert!((0.05..=0.17).contains(&share), "{share}");
}

#[test]
fn the_target_is_set_anew_after_a_period() {
    let mut w = network(12);
    let predictive = Profile { algorithm: 2, least: 3, most: 7, targeting: 0, target: WAD / 2, ..USUAL };
    let mut ratings = Vec::new();
    for n in 1..=12u8 {
        rate(&mut w, n.into(), 4 * n, 60);
        ratings.push(Record::new((4 * n).into(), 60).unwrap().rating());
    }
    ratings.sort_unstable_by(|a, b| b.cmp(a));
    for targeting in 0..3 {
        set(&mut w, Profile { targeting, ..predictive });
        let at = offset(profile_slot(&w.mem, who(CREATOR)), profile::TARGET_SEARCH);
        let climb: TargetSearch = w.mem.get(at);
        // One group short of a period.
        w.mem.put(at, &TargetSearch { groups: 299, successes: 150, members: 1_200, ..climb });
        for settled in [299u32, 300] {
            let before = w.ask(profileCall { application: who(CREATOR).into() });
            assert_eq!(before.groups, if targeting == 2 { 299 } else { settled });
            let id = created(&mut w, FEE, rated());
            let (place, members) = group_of(&mut w, id).expect("formed");
            let told = chosen(&mut w).unwrap();
            let after = w.ask(profileCall { application: who(CREATOR).into() });
            let expected = match (targeting, settled) {
                (0, 300) => {
                    let rule = Algorithm::TightFit;
                    let mut scratch = ratings.clone();
                    let form = |free: &mut [u64], r: &Rule| rule.form::<_, Exact>(free, r, |_| unreachable!("nothing random"));
                    best_target::<_, Exact>(WAD / 2, (3, 7), &ratings, &mut scratch, form)
                }
                (1, 300) => {
                    let mut climber = HillClimber::new(Settings { initial: WAD / 2, ..Settings::new(WAD / 2) });
                    let (successes, members) = (before.successes.into(), u64::from(before.members));
                    climber.step(Tally { successes, groups: 300, capacity: members / 3 });
                    // The next period's gain is compared with this one's.
                    assert_eq!(w.mem.get::<TargetSearch>(at), climber.state());
                    climber.target()
                }
                _ => WAD / 2,
            };
            assert_eq!((told.target, after._0.target), (expected, expected), "{targeting} after {settled}");
            assert_eq!(after.groups, if expected == WAD / 2 { before.groups } else { 0 });
            run(&mut w, id, place, &members, &[1; 9][..members.len()]);
            for n in 1..=12u8 {
                rate(&mut w, n.into(), 4 * n, 60);
            }
        }
        check_money(&mut w);
    }
    let kept: Kept = w.mem.get(profile_slot(&w.mem, who(CREATOR)));
    assert_eq!(kept.targeting, 2);
}

/// The first target that is computed stands for itself, also where a profile is set again; the others are joined to those before.
#[test]
fn a_predictive_target_is_joined_to_those_before() {
    let mut w = network(12);
    let predictive = Profile { algorithm: 2, least: 3, most: 7, targeting: 0, target: WAD / 2, ..USUAL };
    let at = offset(profile_slot(&w.mem, who(CREATOR)), profile::TARGET_SEARCH);
    for again in 0..2 {
        set(&mut w, predictive.clone());
        let mut mean = WAD / 2;
        for before in 0..5u8 {
            // Other ratings every time, so that the best target differs.
            let mut ratings = Vec::new();
            for n in 1..=12u8 {
                let right = (n * (2 + (before * 3 + again) % 5)).min(60);
                rate(&mut w, n.into(), right, 60);
                ratings.push(Record::new(right.into(), 60).unwrap().rating());
            }
            ratings.sort_unstable_by(|a, b| b.cmp(a));
            let mut scratch = ratings.clone();
            let form =
                |free: &mut [u64], r: &Rule| Algorithm::TightFit.form::<_, Exact>(free, r, |_| unreachable!("nothing random"));
            let best = best_target::<_, Exact>(WAD / 2, (3, 7), &ratings, &mut scratch, form);
            mean = match before {
                0 => best,
                1 => (mean + best) / 2,
                _ => (2 * mean + best) / 3,
            };
            let climb: TargetSearch = w.mem.get(at);
            assert_eq!(climb.tried, before);
            w.mem.put(at, &TargetSearch { groups: 300, successes: 150, members: 1_200, ..climb });
            let id = created(&mut w, FEE, rated());
            let (place, members) = group_of(&mut w, id).expect("formed");
            let told = chosen(&mut w).unwrap();
            let after = w.ask(profileCall { application: who(CREATOR).into() });
            assert_eq!((told.target, after._0.target), (mean, mean), "{before}");
            run(&mut w, id, place, &members, &[1; 9][..members.len()]);
        }
    }
}

/// A group that is chosen by ratings has its scarce models spread as well, formed by the draw that chose it or by a later one.
#[test]
fn a_rated_group_has_its_scarce_models_spread() {
    for nodes in [20, 60] {
        let mut w = network(nodes);
        let id = created(&mut w, FEE, IMuster::TaskSpec { models: vec![77], ..rated() });
        w.drain();
        let (_, members) = group_of(&mut w, id).expect("formed");
        let events = w.events();
        let at = events.iter().position(|e| matches!(e, E::GroupChosen(c) if c.group > 0)).unwrap();
        let asked = |events: &[E]| -> Vec<u32> {
            events.iter().filter_map(|e| if let E::DownloadRequested(d) = e { Some(d.node) } else { None }).collect()
        };
        assert_eq!(asked(&events[..at]), members, "{nodes}");
        let others = asked(&events[at..]);
        assert!((5..=10).contains(&others.len()) && others.iter().all(|n| !members.contains(n)), "{nodes}: {others:?}");
    }
}

#[test]
fn a_profile_has_bounds_and_is_not_changed_while_draws_are_due() {
    let mut w = network(9);
    let application = who(CREATOR).into();
    assert_eq!(w.ask(profileCall { application })._0, USUAL);
    for bad in [
        Profile { algorithm: 4, ..USUAL },
        Profile { least: 2, ..USUAL },
        Profile { least: 6, most: 5, ..USUAL },
        Profile { most: 10, ..USUAL },
        Profile { reschedules: 9, ..USUAL },
        Profile { targeting: 3, ..USUAL },
        Profile { target: WAD + 1, ..USUAL },
        Profile { alpha: WAD + 1, ..USUAL },
        Profile { period: 299, ..USUAL },
        Profile { period: 1_000_001, ..USUAL },
    ] {
        refused!(w.send(who(CREATOR), 0, setProfileCall { profile: bad }), BadProfile);
    }
    let extreme =
        Profile { algorithm: 3, least: 9, most: 9, reschedules: 8, targeting: 2, target: WAD, alpha: 0, period: 1_000_000 };
    set(&mut w, extreme.clone());
    assert!(w.events().iter().any(|e| matches!(e, E::ProfileSet(p) if p.profile == extreme && p.application == application)));
    assert_eq!(w.ask(profileCall { application })._0, extreme);
    for _ in 0..20 {
        w.create(CREATOR, FEE, IMuster::TaskSpec { redundancy: 2, ..rated() }).unwrap();
    }
    w.pass(1, 0);
    let refusal = w.send(who(CREATOR), 0, setProfileCall { profile: USUAL });
    assert_eq!(named(refusal), "DrawsDue", "what is drawn by a known hash is drawn by the old profile");
    w.dispatch(16).unwrap();
    w.dispatch(16).unwrap();
    set(&mut w, USUAL);
}

/// A task's fee is for as many nodes as its creator's profile had at its creation, and its group is no larger, whatever the profile says
/// later.
#[test]
fn a_larger_profile_gets_no_more_nodes_for_an_old_fee() {
    let mut w = network(9);
    set(&mut w, Profile { target: WAD, targeting: 2, most: 4, ..USUAL });
    let least = w.ask(estimateCall { kind: 1, units: 1 }).leastFee * 4;
    refused!(w.create(CREATOR, least - 1, rated()), FeeTooLow(muster_core::word::Word::from(least as u64 - 1), least));
    let id = w.create(CREATOR, least, rated()).unwrap();
    set(&mut w, Profile { target: WAD, targeting: 2, least: 7, most: 9, ..USUAL });
    w.pass(1, 0);
    w.dispatch(1).unwrap();
    assert_eq!(group_of(&mut w, id).unwrap().1.len(), 4);
}

#[test]
fn what_too_few_nodes_could_run_is_refused_and_what_too_few_can_is_queued() {
    let mut w = network(6);
    refused!(w.create(CREATOR, FEE, rated()), NobodyCanRun(24u16, CARD));
    refused!(w.create(CREATOR, FEE, IMuster::TaskSpec { gpu: 0, vram: 8, ..rated() }), GpuNotListed(8u32));
    for n in 7..=9 {
        w.join(n, "RTX 4090", 24, &[], 400).unwrap();
    }
    // Seven of nine are left idle, then six.
    let mut busy = busy(&mut w, 3);
    let id = created(&mut w, FEE, rated());
    assert_eq!((group_of(&mut w, id), w.ask(overviewCall {}).queued), (None, 1));
    let ticket = w.ticket(id);
    let view = w.ask(locateCall { id, nodeHint: 0, ticketHint: ticket });
    assert_eq!((view.status, view.redundancy, view.sampleBps), (2, 3, 0));
    check_money(&mut w);
    // The next node that is free makes seven: it is called up, and drawn by a later hash with the idle ones.
    let (done, node) = busy.pop().unwrap();
    submit(&mut w, (done, node));
    assert_eq!((w.node(node).parked, w.ask(overviewCall {}).queued), (3, 0));
    w.pass(1, 0);
    w.dispatch(1).unwrap();
    assert!(group_of(&mut w, id).is_some());
    assert_eq!(w.node(node).parked & 2, 0, "it is in the group, or is let go");
    check_money(&mut w);
}

/// Nodes that are freed one by one wait for each other, as many as the task takes.
#[test]
fn nodes_that_are_freed_one_by_one_wait_for_each_other() {
    let mut w = network(9);
    set(&mut w, Profile { target: WAD, targeting: 2, least: 9, most: 9, ..USUAL });
    let busy = busy(&mut w, 9);
    let id = created(&mut w, FEE, rated());
    assert_eq!(w.ask(overviewCall {}).queued, 1);
    for (i, &(done, node)) in busy.iter().enumerate() {
        w.pass(1, 5);
        submit(&mut w, (done, node));
        assert_eq!(w.node(node).parked, if i < 8 { 2 } else { 3 }, "node {i} waits");
    }
    assert_eq!(w.ask(overviewCall {}).queued, 0);
    w.pass(1, 0);
    w.dispatch(1).unwrap();
    let (place, members) = group_of(&mut w, id).expect("formed of those that waited");
    assert_eq!(members.len(), 9);
    run(&mut w, id, place, &members, &[1; 9]);
    assert!((1..=9).all(|n| w.node(n).right == 1));
    check_money(&mut w);
}

/// Those that are kept for a task count among the 32 of its pool: with nine of them and 31 idle ones it is drawn, and does not always
/// hold the best of all.
#[test]
fn a_pool_counts_those_that_are_kept_for_its_task() {
    let mut w = network(9);
    set(&mut w, Profile { target: WAD, targeting: 2, least: 9, most: 9, ..USUAL });
    let mut busy = busy(&mut w, 9);
    let id = created(&mut w, FEE, rated());
    let last = busy.pop().unwrap();
    busy.into_iter().for_each(|task| submit(&mut w, task));
    let (mem, paid, mut formed, mut best) = (w.mem.clone(), w.paid_in, 0, 0);
    for i in 0..16 {
        (w.mem, w.paid_in) = (mem.clone(), paid);
        w.mem.block += i;
        submit(&mut w, last);
        assert!((1..=9).all(|n| w.node(n).parked == 3), "kept for it");
        for n in 10..=40 {
            w.join(n, "RTX 4090", 24, &[], 400).unwrap();
            rate(&mut w, n as u32, if n <= 18 { 60 } else { 30 }, 60);
        }
        w.pass(1, 0);
        w.dispatch(5).unwrap();
        let Some((_, mut members)) = group_of(&mut w, id) else { continue };
        members.sort_unstable();
        formed += 1;
        best += u32::from(members == (10..=18).collect::<Vec<u32>>());
    }
    assert!(formed >= 12 && best <= 4, "{best} of {formed}");
}

/// A node that can neither begin nor wait with the best task for several begins with the best one for nodes chosen by ratings.
#[test]
fn a_freed_node_that_finds_no_mates_for_the_best_task_goes_to_a_rated_one() {
    let mut w = network(3);
    w.set("holdTime", 0);
    for n in 4..=9 {
        w.join(n, "A100", 80, &[], 400).unwrap();
    }
    let single = || IMuster::TaskSpec { gpu: CARD, ..spec(0, &[]) };
    let busy: Vec<u64> = (0..3).map(|_| created(&mut w, TOKEN, single())).collect();
    let first = created(&mut w, 12 * TOKEN, IMuster::TaskSpec { gpu: CARD, ..image(0) });
    let second = created(&mut w, 7 * TOKEN, IMuster::TaskSpec { redundancy: 3, ..image(0) });
    assert_eq!(w.ask(overviewCall {}).queued, 2);
    let node = (1..=3).find(|&n| task_of(&mut w, n) == busy[0]).unwrap();
    submit(&mut w, (busy[0], node));
    assert_eq!((w.node(node).parked, w.ask(overviewCall {}).queued), (3, 1));
    w.pass(1, 0);
    w.dispatch(1).unwrap();
    assert!(group_of(&mut w, second).is_some() && group_of(&mut w, first).is_none());
    check_money(&mut w);
}

/// Both counts are halved at 64 judgements, and live through leaving and coming back.
#[test]
fn a_rating_outlives_an_exit_and_forgets() {
    let mut w = network(9);
    rate(&mut w, 1, 40, 63);
    let rated = |w: &mut World, right: bool| {
        w.raw([0; 20], 0, |m| {
            let handle = NodeHandle::load(m, NodeId(1));
            handle.rate(m, right);
            Ok(())
        })
        .unwrap();
        (w.node(1).right, w.node(1).judged)
    };
    assert_eq!(rated(&mut w, true), (20, 32));
    assert_eq!(rated(&mut w, false), (20, 33));
    w.send(who(1), 0, quitCall {}).unwrap();
    w.join(1, "RTX 4090", 24, &[], 400).unwrap();
    assert_eq!((w.node(1).right, w.node(1).judged), (20, 33));
}

/// The members of a group, and their revealed values, stand in the words that the layout has for them.
#[test]
fn members_and_answers_stand_where_the_layout_says() {
    let mut w = network(9);
    set(&mut w, Profile { algorithm: 0, least: 3, most: 7, ..USUAL });
    let id = created(&mut w, FEE, rated());
    let (place, members) = group_of(&mut w, id).expect("formed");
    assert_eq!(members.len(), 7);
    let at = entry(&w.mem, layout::GROUPS, place.into());
    let words = [layout::group::MEMBERS, layout::group::MORE_MEMBERS, layout::group::MORE_MEMBERS + 1];
    let there = words.map(|word| w.mem.get::<Members>(offset(at, word)).all().map(|m| m.node.0)).concat();
    assert_eq!((&there[..7], &there[7..]), (&members[..], &[0; 2][..]));
    for &n in &members {
        commit(&mut w, id, n, ANSWER, value(n as u8)).unwrap();
    }
    // The last is not revealed: otherwise the group would be judged.
    for &n in &members[..6] {
        reveal(&mut w, id, place, n, ANSWER, value(n as u8)).unwrap();
    }
    for (i, &n) in members[..6].iter().enumerate() {
        let word = if i < 3 { layout::group::ANSWERS } else { layout::group::MORE_ANSWERS - 3 } + i as u64;
        assert_eq!(w.mem.load(offset(at, word)).to_be_bytes(), value(n as u8).0);
    }
}

/// Where choosing nodes and forming their group in one draw would be too expensive, further draws do it in parts. Nodes are let go that
/// were kept in vain, words are initialised, and the group is formed of the nodes that were chosen first. The draw is due all the while.
#[test]
fn a_dear_group_is_formed_in_parts() {
    let mut w = network(9);
    w.set("drawDelay", 1);
    set(&mut w, Profile { target: WAD, targeting: 2, least: 9, most: 9, ..USUAL });
    let busy = busy(&mut w, 9);
    let id = created(&mut w, FEE, IMuster::TaskSpec { models: (90_000..90_006).collect(), ..rated() });
    busy.into_iter().for_each(|task| submit(&mut w, task));
    assert!((1..=9).all(|n| w.node(n).parked == 3), "kept for it");
    for n in 10..=32 {
        w.join(n, "RTX 4090", 24, &MANY, 400).unwrap();
        rate(&mut w, n as u32, if n <= 18 { 60 } else { 30 }, 60);
    }
    w.pass(1, 0);
    let parts = |w: &mut World| {
        let (gas, out) = metered_alone(w, who(DRIVER), 0, |net| net.dispatch(1));
        assert_eq!(out, "accepted");
        assert!(gas < MOST_GAS - 100_000, "{gas}");
        let parked = (1..=9).map(|n| w.node(n).parked).max().unwrap();
        (w.ask(overviewCall {}).pending, parked, w.node(10).inUse.len())
    };
    w.events();
    assert_eq!(parts(&mut w), (1, 3, 0), "they are chosen");
    let told = chosen(&mut w).expect("told");
    assert_eq!((told.group, told.size, told.algorithm), (0, 9, 1));
    assert!(group_of(&mut w, id).is_none());
    assert_eq!(parts(&mut w), (1, 1, 0), "nine are let go");
    for _ in 0..2 {
        assert_eq!(parts(&mut w), (1, 1, 0), "words are written, which say nothing");
    }
    assert_eq!((w.node(10).task, w.node(10).status), (0, 1));
    // Calls that must have the draws made cannot go on, and nodes whose task ends are held back.
    refused!(w.join(50, "RTX 4090", 24, &[], 400), DrawsDue(1u32));
    assert_eq!(parts(&mut w), (0, 1, 6), "the group is formed");
    let again = chosen(&mut w).expect("told");
    let (place, mut members) = group_of(&mut w, id).expect("formed");
    assert_eq!((again.group, again.target, again.likelihood), (place, told.target, told.likelihood));
    members.sort_unstable();
    assert_eq!(members, (10..=18).collect::<Vec<_>>(), "the best rated");
    run(&mut w, id, place, &members, &[1; 9]);
    check_money(&mut w);
}

/// Nine nodes, which are rated best, in so many GPU groups, and so many others in one of these.
fn best_nine(groups: u64, others: u64) -> World {
    let mut w = world(0, 1);
    set(&mut w, Profile { target: WAD, targeting: 2, least: 9, most: 9, ..USUAL });
    for n in 1..=9 + others {
        w.join(n, &format!("GPU {}", if n <= 9 { n % groups } else { 0 }), 24, &[], 400).unwrap();
        rate(&mut w, n as u32, if n <= 9 { 40 } else { 20 }, 40);
    }
    w
}

/// Has a task be created that the best nine run, with so many models, and the first draw be made for it; gives its number.
fn first_drawn(w: &mut World, models: u64) -> u64 {
    let spec = IMuster::TaskSpec { models: (90_000..90_000 + models).collect(), redundancy: 3, ..image(24) };
    let id = w.create(CREATOR, FEE, spec).unwrap();
    w.pass(1, 0);
    w.events();
    w.dispatch(1).unwrap();
    id
}

/// The same until there is a group; gives also whether one draw makes it.
fn made_at_once(w: &mut World, models: u64) -> (u64, bool) {
    let id = first_drawn(w, models);
    let told = chosen(w).expect("told");
    w.drain();
    let mut members = group_of(w, id).expect("formed").1;
    members.sort_unstable();
    assert_eq!(members, (1..=9).collect::<Vec<_>>());
    (id, told.group > 0)
}

/// Has the best nine run a task to its end; gives the place of their group.
fn run_one(w: &mut World, models: u64) -> u32 {
    let (id, _) = made_at_once(w, models);
    let (place, members) = group_of(w, id).expect("formed");
    play(w, id, place, &members, |_| B256::right_padding_from(&[1; 8]));
    place
}

/// The cost of members also counts the GPU groups that they leave and the models that they are asked for. Both together are too much for
/// one draw; either alone is not.
#[test]
fn many_gpu_groups_and_models_are_dear_together() {
    let at_once = |groups, models| {
        let mut w = best_nine(groups, 14);
        run_one(&mut w, models);
        made_at_once(&mut w, models).1
    };
    assert!(!at_once(9, 6), "nine GPU groups, six models");
    assert!(at_once(1, 6), "six models");
    assert!(at_once(9, 0), "nine GPU groups");
}

/// Others are asked for a group's scarce models by the draw that forms it, unless that is nearly as expensive as a draw may be. Asking is
/// assumed to take 120,000 gas, as much as three words of each of 19 others.
#[test]
fn others_are_asked_where_the_draw_has_room() {
    // Whether one draw makes the group, and how many requests go to nodes outside it.
    let formed = |others, models| {
        let mut w = best_nine(7, others);
        run_one(&mut w, models);
        first_drawn(&mut w, models);
        let events = w.events();
        let requests = events.iter().filter(|e| matches!(e, E::DownloadRequested(d) if d.node > 9)).count();
        (events.iter().any(|e| matches!(e, E::GroupChosen(c) if c.group > 0)), requests)
    };
    // With four models all are made at once; with five, which take 9 * 2,000 gas more, none is left to ask.
    let four: Vec<_> = (1..23).map(|others| formed(others, 4)).collect();
    let five: Vec<_> = (1..23).map(|others| formed(others, 5)).collect();
    let asking = four.iter().take_while(|(_, requests)| *requests > 0).count();
    let at_once = five.iter().take_while(|(at_once, _)| *at_once).count();
    println!("four models: {four:?}\nfive models: {five:?}");
    assert!(asking > 0 && four.iter().all(|(at_once, _)| *at_once));
    assert!(four[asking..].iter().chain(&five).all(|(_, requests)| *requests == 0));
    assert_eq!(at_once - asking, (120_000 - 9 * 2_000) / (3 * 2_100));
}

/// A single model stands in a word that every task has. Two stand in another: the first time it is written by all nine and their group.
#[test]
fn a_single_model_takes_no_word_of_its_own() {
    for models in [1, 2] {
        let mut w = best_nine(8, 18);
        run_one(&mut w, 1);
        assert_eq!(made_at_once(&mut w, models).1, models == 1, "{models} models");
    }
}

/// A group of nine at a place that was never used writes six words for the first time: its fee, its order, its models, and three of members.
/// Each costs 17,100 gas more than one in use; another node in the pool is three words read of 2,100.
#[test]
fn words_of_a_new_place_are_counted() {
    let at_once = |others, anew| {
        let mut w = best_nine(7, others);
        let place = run_one(&mut w, 5);
        if anew {
            let at = entry(&w.mem, layout::GROUPS, place.into());
            (0..layout::group::MORE_ANSWERS).for_each(|word| w.mem.store(offset(at, word), Word::ZERO));
        }
        made_at_once(&mut w, 5).1
    };
    let most = |anew| (0..23).take_while(|&others| at_once(others, anew)).count();
    let (used, anew) = (most(false), most(true));
    println!("made at once beside fewer than {used} others, at a new place beside fewer than {anew}");
    assert!(used < 23 && anew > 0);
    let fewer = 6 * 17_100 / (3 * 2_100);
    assert!((fewer..=fewer + 1).contains(&(used - anew)), "{used} and {anew}");
}

/// A target that is computed anew takes a part of one draw's cost: a group that can just be formed at once cannot be with it.
#[test]
fn a_new_target_is_counted() {
    let at_once = |(groups, models, others): (u64, u64, u64), period_ends: bool| {
        let mut w = best_nine(groups, others);
        run_one(&mut w, models);
        set(&mut w, Profile { target: WAD, targeting: 1, least: 9, most: 9, ..USUAL });
        let at = offset(profile_slot(&w.mem, who(CREATOR)), profile::TARGET_SEARCH);
        let groups = if period_ends { 300 } else { 299 };
        w.mem.put(at, &TargetSearch { groups, successes: 150, members: 9 * groups, ..TargetSearch::START });
        made_at_once(&mut w, models).1
    };
    let most = (0..23).take_while(|&others| at_once((7, 5, others), false)).count() as u64;
    assert!((4..23).contains(&most), "{most}");
    // Three others fewer are as many words as setting a target reads, and more.
    assert_eq!([false, true].map(|ends| at_once((7, 5, most - 4), ends)), [true, false]);
    assert_eq!([false, true].map(|ends| at_once((1, 1, 0), ends)), [true; 2]);
}

/// Between the parts of an expensive draw, none of its conditions can change: such a call makes the next part first, or is refused.
#[test]
fn what_was_chosen_stays_chosen() {
    for attempt in 0..4 {
        let mut w = unopened(12);
        set(&mut w, Profile { target: WAD, targeting: 2, least: 9, most: 9, ..USUAL });
        let id = w.create(CREATOR, FEE, IMuster::TaskSpec { models: (90_000..90_006).collect(), ..rated() }).unwrap();
        w.pass(1, 0);
        w.dispatch(1).unwrap();
        let told = chosen(&mut w).expect("told");
        assert_eq!(told.group, 0, "chosen");
        let call = |w: &mut World| match attempt {
            0 => w.send(who(1), 0, quitCall {}).map(drop),
            1 => w.send(who(1), 0, pauseCall {}).map(drop),
            2 => w.send(who(1), TOKEN, raiseStakeCall {}).map(drop),
            _ => w.send(who(CREATOR), 0, setProfileCall { profile: Profile { algorithm: 0, ..USUAL } }).map(drop),
        };
        // Three parts are left, of which a call makes one, if any: if it is refused then, that is undone, too.
        for _ in 0..2 {
            refused!(call(&mut w), DrawsDue(1u32));
            w.dispatch(1).unwrap();
            assert!(group_of(&mut w, id).is_none());
        }
        if attempt == 2 {
            refused!(call(&mut w), DrawsDue(1u32));
            w.dispatch(1).unwrap();
        }
        call(&mut w).unwrap();
        assert!(group_of(&mut w, id).is_some(), "the call has had it formed");
        let again = chosen(&mut w).expect("told");
        assert_eq!((again.algorithm, again.size, again.target, again.likelihood), (1, told.size, told.target, told.likelihood));
        check_money(&mut w);
    }
}

/// Whether a group is scored hangs on how many there were to choose among, and not on how many draws it took.
#[test]
fn a_group_made_in_parts_is_scored_like_one_made_at_once() {
    for models in [0u64, 8] {
        let mut w = network(8);
        w.set("scorePool", 9);
        set(&mut w, Profile { least: 3, most: 6, targeting: 2, target: WAD / 2, ..USUAL });
        let busy = busy(&mut w, 8);
        let id = created(&mut w, FEE, IMuster::TaskSpec { models: (90_000..90_000 + models).collect(), ..rated() });
        busy.into_iter().for_each(|task| submit(&mut w, task));
        let kept = (1..=8).filter(|&n| w.node(n).parked == 3).count();
        for n in 9..=14 {
            w.join(n, "RTX 4090", 24, &[], 400).unwrap();
            rate(&mut w, n as u32, 60, 60);
        }
        let at = offset(profile_slot(&w.mem, who(CREATOR)), profile::TARGET_SEARCH);
        w.mem.put(at, &TargetSearch { groups: 300, successes: 150, members: 900, ..TargetSearch::START });
        w.pass(1, 0);
        let mut parts = 0;
        while group_of(&mut w, id).is_none() {
            w.dispatch(1).unwrap();
            parts += 1;
        }
        let (place, _) = group_of(&mut w, id).unwrap();
        println!("{models} models: {parts} parts, {kept} kept");
        assert!(kept > 2 && w.ask(groupCall { place }).scored, "{models} models: {parts} parts, {kept} kept");
        check_money(&mut w);
    }
}

/// A group that is formed for a task again, in parts again, is scored if there are enough candidates then, whatever its first one was.
#[test]
fn a_group_of_a_task_drawn_again_is_not_scored_like_its_first() {
    let mut w = best_nine(9, 14);
    w.set("scorePool", 23);
    let (id, at_once) = made_at_once(&mut w, 6);
    let (place, members) = group_of(&mut w, id).expect("formed");
    assert!(!at_once && w.ask(groupCall { place }).scored);
    play(&mut w, id, place, &members, |n| B256::right_padding_from(&keccak256([n as u8])[..8]));
    w.send(who(23), 0, quitCall {}).unwrap();
    w.events();
    w.pass(1, 0);
    w.dispatch(1).unwrap();
    assert_eq!(chosen(&mut w).expect("told").group, 0, "chosen");
    w.drain();
    let (place, _) = group_of(&mut w, id).expect("formed again");
    assert!(!w.ask(groupCall { place }).scored);
}

/// A task for more than six nodes requires at most six models.
#[test]
fn tasks_for_many_nodes_require_few_models() {
    let mut w = network(9);
    for (most, models, taken) in [(6, 8, true), (7, 6, true), (7, 7, false), (9, 8, false)] {
        set(&mut w, Profile { least: 3, most, ..USUAL });
        let spec = IMuster::TaskSpec { models: (1..=models).collect(), ..rated() };
        let tried = w.create(CREATOR, FEE, spec);
        if taken {
            tried.unwrap();
        } else {
            refused!(tried, TooManyModels(models as u32, 6u32));
        }
        w.drain();
    }
}
