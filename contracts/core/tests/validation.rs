//! Every outcome of a validation group, and the properties of all of them.

use muster_core::record::MEMBERS;
use muster_core::validation::Verdict::{Failed, Open, Right, TimedOut, Withheld, Wrong};
use muster_core::validation::*;

type Group = [Member<u8>; MEMBERS];

fn answer(answer: u8, elapsed: u32) -> Member<u8> {
    Member::Answered { answer, elapsed, at: 1_000 + elapsed }
}

fn judged(group: Group) -> Judgement {
    judge(&group, |a, b| a == b)
}

#[test]
fn the_table_of_outcomes() {
    let (a, b, c) = (answer(1, 30), answer(2, 20), answer(3, 10));
    let same = |elapsed| answer(1, elapsed);
    let (error, kept, late, nobody) = (Member::Failed, Member::Withheld, Member::TimedOut, Member::None);
    let check =
        |group: Group, outcome, verdicts, scores| assert_eq!(judged(group), Judgement { outcome, verdicts, scores }, "{group:?}");
    let none = [None; 3];

    check([same(30), same(20), same(40)], Outcome::Agreed(1), [Right; 3], [Some(5), Some(10), Some(2)]);
    check([a, same(35), b], Outcome::Agreed(0), [Right, Right, Wrong], [Some(10), Some(5), Some(0)]);
    check([error, a, same(35)], Outcome::Agreed(1), [Failed, Right, Right], [None, Some(10), Some(5)]);
    check([a, kept, same(29)], Outcome::Agreed(2), [Right, Withheld, Right], [Some(5), Some(0), Some(10)]);
    check([late, a, same(29)], Outcome::Agreed(2), [TimedOut, Right, Right], [Some(0), Some(5), Some(10)]);
    check([a, same(29), nobody], Outcome::Agreed(1), [Right, Right, Verdict::None], [Some(5), Some(10), None]);
    check([a, b, c], Outcome::Differing, [Open; 3], none);
    check([a, error, b], Outcome::Differing, [Open, Failed, Open], none);
    check([a, kept, b], Outcome::Differing, [Open, Withheld, Open], none);
    check([late, b, error], Outcome::Alone(1), [TimedOut, Open, Failed], none);
    check([a, error, error], Outcome::Alone(0), [Open, Failed, Failed], none);
    check([a, nobody, nobody], Outcome::Alone(0), [Open, Verdict::None, Verdict::None], none);
    for silent in [[error; 3], [error, kept, late], [late; 3], [kept; 3], [error, nobody, nobody]] {
        let judgement = judged(silent);
        assert_eq!((judgement.outcome, judgement.scores), (Outcome::Unanswered, none));
    }
}

#[test]
fn ties_go_to_the_earlier_commitment_and_then_to_the_earlier_member() {
    let at = |elapsed, at| Member::Answered { answer: 1, elapsed, at };
    assert_eq!(judged([at(7, 50), at(7, 50), at(7, 49)]).scores, [Some(5), Some(2), Some(10)]);
    assert_eq!(judged([at(7, 50), at(7, 50), at(7, 50)]).scores, [Some(10), Some(5), Some(2)]);
}

#[test]
fn agreement_need_not_be_transitive() {
    // 1 and 2 are close, 2 and 3 are close, 1 and 3 are not: nobody stands alone.
    let group = [answer(1, 3), answer(2, 2), answer(3, 1)];
    let judgement = judge(&group, |a: &u8, b: &u8| a.abs_diff(*b) <= 1);
    assert_eq!(judgement.verdicts, [Right; 3]);
    assert_eq!(judgement.outcome, Outcome::Agreed(2));
}

/// All 9^3 groups: three answers, each fast or slow, and everything that is no answer, in every order.
#[test]
fn what_holds_for_every_group() {
    let quiet = [Member::Failed, Member::Withheld, Member::TimedOut, Member::None];
    let kinds: Vec<Member<u8>> =
        [answer(1, 10), answer(1, 20), answer(2, 10), answer(2, 20), answer(3, 15)].into_iter().chain(quiet).collect();
    let mut groups = 0;
    for &first in &kinds {
        for &second in &kinds {
            for &third in &kinds {
                groups += 1;
                let group = [first, second, third];
                let Judgement { outcome, verdicts, scores } = judged(group);
                let count = |verdict| verdicts.iter().filter(|v| **v == verdict).count();
                assert!(count(Right) != 1 && count(Wrong) <= 1, "no minority makes anybody wrong: {group:?}");
                assert_eq!(count(Right) > 0, matches!(outcome, Outcome::Agreed(_)));
                assert!(count(Wrong) == 0 || count(Open) == 0);
                let pot = 1_000_003;
                let shares = shares(pot, &scores);
                assert_eq!(shares.iter().sum::<u128>(), if count(Right) > 0 { pot } else { 0 }, "{group:?}");
                for i in 0..3 {
                    let backed =
                        |a: u8| (0..3).any(|j| j != i && matches!(group[j], Member::Answered { answer, .. } if answer == a));
                    let expected = match group[i] {
                        Member::None => Verdict::None,
                        Member::Failed => Failed,
                        Member::Withheld => Withheld,
                        Member::TimedOut => TimedOut,
                        Member::Answered { answer, .. } if backed(answer) => Right,
                        Member::Answered { .. } if count(Right) > 0 => Wrong,
                        Member::Answered { .. } => Open,
                    };
                    assert_eq!(verdicts[i], expected, "{group:?}");
                    let counts = !matches!(verdicts[i], Verdict::None | Failed);
                    assert_eq!(scores[i].is_some(), count(Right) > 0 && counts, "{group:?}");
                    assert_eq!(scores[i].is_some_and(|score| score > 0), verdicts[i] == Right);
                    assert_eq!(shares[i] > 0, verdicts[i] == Right);
                }
                if let Outcome::Agreed(fastest) = outcome {
                    assert_eq!(scores[fastest], Some(10));
                }
                // The same judgement in any order, as long as no two are equally fast.
                let time = |m: Member<u8>| match m {
                    Member::Answered { elapsed, .. } => elapsed,
                    _ => 0,
                };
                let distinct = |a, b| time(a) != time(b) || time(a) == 0;
                if distinct(first, second) && distinct(second, third) && distinct(first, third) {
                    let turned = judged([third, first, second]);
                    assert_eq!(turned.verdicts, [verdicts[2], verdicts[0], verdicts[1]]);
                    assert_eq!(turned.scores, [scores[2], scores[0], scores[1]]);
                }
            }
        }
    }
    assert_eq!(groups, 729);
}

/// All 7^3 groups of which some may not have revealed, and whatever these then do.
#[test]
fn a_member_is_at_risk_as_long_as_it_can_be_slashed() {
    let revealed = [answer(1, 10), answer(2, 10), answer(3, 10), answer(4, 10), Member::Failed];
    let kinds: Vec<Member<u8>> =
        revealed[..3].iter().chain(&revealed[4..]).copied().chain([Member::Withheld, Member::TimedOut, Member::None]).collect();
    let ends = |member: Member<u8>| match member {
        Member::Withheld => revealed.into_iter().chain([member]).collect(),
        other => vec![other],
    };
    let (mut groups, mut safe) = (0, 0);
    for &a in &kinds {
        for &b in &kinds {
            for &c in &kinds {
                let group = [a, b, c];
                let slashed = |same: fn(&u8, &u8) -> bool| {
                    let mut slashed = [false; MEMBERS];
                    for a in ends(a) {
                        for b in ends(b) {
                            for c in ends(c) {
                                let verdicts = judge(&[a, b, c], same).verdicts;
                                (0..MEMBERS).for_each(|i| slashed[i] |= matches!(verdicts[i], Wrong | Withheld));
                            }
                        }
                    }
                    slashed
                };
                let (risk, alike, close) = (at_risk(&group), slashed(|a, b| a == b), slashed(|a, b| a.abs_diff(*b) <= 1));
                for i in 0..MEMBERS {
                    assert!(risk[i] || !alike[i] && !close[i], "{group:?}");
                    // Where all have revealed, the group is judged.
                    assert!(!risk[i] || alike[i] || !group.contains(&Member::Withheld), "{group:?}");
                    safe += u32::from(!risk[i] && matches!(group[i], Member::Answered { .. }));
                }
                groups += 1;
            }
        }
    }
    // An answer is at risk beside 9 of 49 pairs: of the two other answers, and of those not revealed.
    assert_eq!((groups, safe), (343, 3 * 3 * (49 - 9)));
}

/// A failed member's part is not shared out, and the reserve only adds to a first node's answer.
#[test]
fn a_pot_leaves_out_who_failed() {
    assert_eq!(Pot::of_fee(100, 3, 0), Pot { fee: 100, reserve: 0 });
    assert_eq!(Pot::of_fee(100, 3, 1), Pot { fee: 67, reserve: 0 });
    assert_eq!(Pot::of_fee(100, 9, 4), Pot { fee: 56, reserve: 0 });
    // At a tenth one of three payments is 10 of a fee of 12.
    assert_eq!(Pot::of_payments(12, 10, 3, 0, true), Pot { fee: 12, reserve: 18 });
    assert_eq!(Pot::of_payments(12, 10, 3, 1, true), Pot { fee: 12, reserve: 8 });
    assert_eq!(Pot::of_payments(12, 10, 3, 1, false), Pot { fee: 12, reserve: 0 });
    // Where nearly all is sampled, a fee can be more than its members' payments.
    assert_eq!(Pot::of_payments(12, 4, 3, 1, true), Pot { fee: 8, reserve: 0 });
}

#[test]
fn a_pot_is_shared_by_scores_to_the_last_wei() {
    assert_eq!(shares(17, &[Some(10), Some(5), Some(2)]), [10, 5, 2]);
    assert_eq!(shares(100, &[Some(5), Some(0), Some(10)]), [33, 0, 67]);
    assert_eq!(shares(1, &[Some(10), Some(5), Some(2)]), [0, 0, 1]);
    assert_eq!(shares(5, &[Some(0), None, None]), [0; 3]);
    let most = (1 << 100) - 1;
    assert_eq!(shares(most, &[Some(2), Some(10), Some(5)]).iter().sum::<u128>(), most);
}

/// The cost of sampling and the rest of the fees balance: in expectation nobody pays for validation but by the lower payment.
#[test]
fn payments_balance() {
    let fee = 1_000_000_000_000_000_000u128;
    for bps in [0u16, 1, 500, 1_000, 2_500, 10_000] {
        let paid = payment(fee, bps);
        let r = f64::from(bps) / 1e4;
        let (left, spent) = ((1.0 - r) * (fee - paid) as f64, r * (3.0 * paid as f64 - fee as f64));
        assert!((left - spent).abs() < 1e4, "at {bps}: {left} left, {spent} spent");
    }
    assert_eq!(payment(fee, 0), fee);
    assert_eq!(payment(12, 1_000), 10);
    assert_eq!(payment(13, 1_000), 10);
}

#[test]
fn images_agree_within_so_many_bits_each() {
    let a: Images = [0xff00, 1, 0, 0];
    assert!(same_images(&a, &[0xff00 ^ 0xff, 1, 0, 0], 8));
    assert!(!same_images(&a, &[0xff00 ^ 0x1ff, 1, 0, 0], 8));
    assert!(!same_images(&a, &[0xff00, 1 << 63 | 0xff << 8, 0, 0], 8));
    assert!(same_images(&a, &a, 0));
    assert!(has_images(&a, 2) && !has_images(&a, 1) && !has_images(&a, 3));
    assert!(has_images(&[0; 4], 0) && !has_images(&[0, 1, 0, 0], 2));
}
