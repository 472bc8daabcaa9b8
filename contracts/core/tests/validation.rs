//! Every outcome of a validation group, and what holds for all of them.

use muster_core::validation::End::{Aborted, Invalidated, Refunded, Validated};
use muster_core::validation::*;

type Group = [Member<u8>; REDUNDANCY];

fn answer(answer: u8, elapsed: u64) -> Member<u8> {
    Member::Answered { answer, elapsed }
}

fn failed(elapsed: u64) -> Member<u8> {
    Member::Failed { elapsed }
}

fn judged(group: Group) -> ([End; 3], [Option<u8>; 3]) {
    let judgement = judge(&group, |a, b| a == b);
    (judgement.ends, judgement.scores)
}

#[test]
fn the_table_of_outcomes() {
    let (a, b, c) = (answer(1, 30), answer(2, 20), answer(3, 10));
    let (gone, error) = (Member::Aborted, failed(5));
    let slower = |elapsed| answer(1, elapsed);
    let none = [None; 3];
    let all_aborted = ([Aborted; 3], none);

    assert_eq!(judged([slower(30), slower(20), slower(40)]), ([Refunded, Validated, Refunded], [Some(5), Some(10), Some(2)]));
    assert_eq!(judged([a, slower(35), b]), ([Validated, Refunded, Invalidated], [Some(10), Some(5), Some(0)]));
    assert_eq!(judged([a, b, c]), all_aborted);
    assert_eq!(judged([error, a, slower(35)]), ([Invalidated, Validated, Refunded], [Some(0), Some(10), Some(5)]));
    assert_eq!(judged([a, b, error]), all_aborted);
    assert_eq!(judged([a, gone, slower(29)]), ([Refunded, Aborted, Validated], [Some(5), Some(0), Some(10)]));
    assert_eq!(judged([a, b, gone]), all_aborted);
    assert_eq!(judged([error, a, error]), ([Aborted, Invalidated, Aborted], [None, Some(0), None]));
    assert_eq!(judged([a, error, gone]), all_aborted);
    assert_eq!(judged([a, gone, gone]), all_aborted);
    for group in [[error; 3], [error, error, gone], [error, gone, gone], [gone; 3]] {
        assert_eq!(judged(group), all_aborted);
    }
}

#[test]
fn ties_go_to_the_earlier_member() {
    let group = [answer(1, 7), answer(1, 7), answer(1, 7)];
    assert_eq!(judged(group).1, [Some(10), Some(5), Some(2)]);
}

#[test]
fn agreement_need_not_be_transitive() {
    // 1 and 2 are close, 2 and 3 are close, 1 and 3 are not: nobody stands alone.
    let group = [answer(1, 3), answer(2, 2), answer(3, 1)];
    let judgement = judge(&group, |a: &u8, b: &u8| a.abs_diff(*b) <= 1);
    assert_eq!(judgement.ends, [Refunded, Refunded, Validated]);
}

/// All 7^3 groups of three answers, each fast or slow, an error or an abort, in every order.
#[test]
fn what_holds_for_every_group() {
    let kinds = [answer(1, 10), answer(1, 20), answer(2, 10), answer(2, 20), answer(3, 15), failed(12), Member::Aborted];
    for first in kinds {
        for second in kinds {
            for third in kinds {
                let group = [first, second, third];
                let (ends, scores) = judged(group);
                let count = |end: End| ends.iter().filter(|e| **e == end).count();
                let valid = count(Validated) + count(Refunded);
                assert!(count(Validated) <= 1 && valid != 1, "{group:?}");
                assert!(count(Invalidated) <= 1, "at most one is slashed: {group:?}");
                assert_eq!(count(Validated) == 0, valid == 0);
                for i in 0..3 {
                    match (group[i], ends[i]) {
                        (Member::Aborted, end) => assert_eq!(end, Aborted),
                        (Member::Failed { .. }, end) => {
                            assert!(matches!(end, Invalidated | Aborted));
                        }
                        (Member::Answered { answer, .. }, end) => {
                            let backed = (0..3)
                                .any(|j| j != i && matches!(group[j], Member::Answered { answer: other, .. } if other == answer));
                            assert_eq!(matches!(end, Validated | Refunded), backed, "{group:?}");
                        }
                    }
                    match ends[i] {
                        Validated => assert_eq!(scores[i], Some(10)),
                        Refunded => assert!(matches!(scores[i], Some(5 | 2))),
                        Invalidated => assert_eq!(scores[i], Some(0)),
                        Aborted => assert_eq!(scores[i], (valid > 0).then_some(0), "{group:?}"),
                    }
                }
                // The same judgement in any order, as long as no two are equally fast.
                let times: Vec<u64> = group
                    .iter()
                    .map(|m| match m {
                        Member::Answered { elapsed, .. } | Member::Failed { elapsed } => *elapsed,
                        Member::Aborted => 0,
                    })
                    .collect();
                if times[0] != times[1] && times[1] != times[2] && times[0] != times[2] {
                    let (ends_turned, scores_turned) = judged([third, first, second]);
                    assert_eq!(ends_turned, [ends[2], ends[0], ends[1]]);
                    assert_eq!(scores_turned, [scores[2], scores[0], scores[1]]);
                }
            }
        }
    }
}
