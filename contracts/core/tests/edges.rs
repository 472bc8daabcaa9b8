//! The edges of the small formulas: changes by `script/mutants` that no other test noticed.

use muster_core::id::{GpuGroup, Grade, NodeId, QueueId, TaskId};
use muster_core::qos::*;
use muster_core::record::*;
use muster_core::value::*;
use muster_core::wad::WAD;
use muster_core::weight::*;
use muster_core::word::{Address, Field, Packed, Word};
use muster_core::{bound, weight};

#[test]
fn words_are_numbers_lanes_and_accounts() {
    for limb in 0..4 {
        let mut word = Word::ZERO;
        assert!(word.is_zero());
        word.0[limb] = 1;
        assert!(!word.is_zero(), "limb {limb} counts");
        assert_eq!(word.to_u128(), [Some(1), Some(1 << 64), None, None][limb]);
    }
    // Limbs that are equal do not cancel out.
    for equal in [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1], [1, 1, 1, 1]] {
        assert!(!Word(equal).is_zero(), "{equal:?}");
    }
    assert_eq!(Word([0, 0, 1, 1]).to_u128(), None);
    assert_eq!(Word([5, 7, 0, 0]).to_u128(), Some(7 << 64 | 5));
    assert_eq!(Word::from(9).0, [9, 0, 0, 0]);

    let mut lanes = Word::ZERO;
    for lane in 0..8 {
        lanes.set_lane32(lane, 0xffff_0000 + lane);
    }
    for lane in 0..8 {
        assert_eq!(lanes.lane32(lane), 0xffff_0000 + lane);
    }
    lanes.set_lane32(3, 1);
    let left: Vec<u32> = (0..8).map(|lane| lanes.lane32(lane)).collect();
    assert_eq!(left[3], 1);
    assert_eq!((left[2], left[4]), (0xffff_0002, 0xffff_0004), "the others stay");

    let account: Address = core::array::from_fn(|i| i as u8 + 1);
    let word = Word::from(account);
    assert_eq!((word.to_be_bytes()[..12].to_vec(), word.to_be_bytes()[12..].to_vec()), (vec![0; 12], account.to_vec()));
    assert_eq!((account.pack(), Address::unpack(word)), (word, account));
    assert_eq!(Address::FIELDS, [("", 160, "address")]);
}

#[test]
fn bits_are_read_and_written_wherever_they_lie() {
    // Every place and width that fits, in a word of ones and in an empty one.
    for at in 0..256 {
        for width in (1..=64).filter(|width| at + width <= 256) {
            let most = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            let mut word = Word::ZERO;
            word.set_bits(at, width, u64::MAX);
            assert_eq!(word.bits(at, width), most);
            let ones: u32 = word.0.iter().map(|limb| limb.count_ones()).sum();
            assert_eq!(ones, width, "{width} at {at}: no bit beside them");
            let mut word = Word([u64::MAX; 4]);
            assert_eq!(word.bits(at, width), most);
            word.set_bits(at, width, 0);
            assert_eq!(word.bits(at, width), 0);
            let ones: u32 = word.0.iter().map(|limb| limb.count_ones()).sum();
            assert_eq!(ones, 256 - width, "{width} at {at}: no bit beside them");
        }
    }
}

#[test]
fn long_numbers_leave_what_is_beside_them() {
    let mut word = Word([u64::MAX; 4]);
    0u128.write(&mut word, 32, 96);
    assert_eq!(word.0, [0xffff_ffff, 0, u64::MAX, u64::MAX]);
    ((1u128 << 96) - 1).write(&mut word, 32, 96);
    assert_eq!(word.0, [u64::MAX; 4]);
    assert_eq!(u128::read(&word, 32, 96), (1 << 96) - 1);
}

#[test]
fn a_bound_beyond_the_largest_is_the_largest() {
    assert_eq!((bound::value(255), bound::MAX), (bound::MAX, 15 << 30));
    for beyond in [bound::MAX, bound::MAX + 1, 16 << 30, 1 << 40, 1 << 60] {
        assert_eq!(bound::ceil(beyond), 255, "{beyond}");
    }
    assert_eq!(bound::ceil(14 << 30), 254);
}

#[test]
fn kinds_have_their_numbers() {
    let kinds = [Some(Kind::StableDiffusion), Some(Kind::Gpt), Some(Kind::FineTune), None, None];
    assert_eq!([0, 1, 2, 3, 255].map(Kind::new), kinds);
}

#[test]
fn a_key_is_a_value_and_an_arrival() {
    // Fee 3 in 2 s is 1.5, whose mantissa after the leading one is a half; its exponent counts the bits of 1.5 x 2^31.
    assert_eq!(value_of_key(key(3, 2, TaskId(7))), 32 << 31 | 1 << 30);
    assert_eq!(key(3, 2, TaskId(7)) & ((1 << 26) - 1), (1 << 26) - 1 - 7);
    assert_eq!(value_of_key(key(6, 4, TaskId(7))), value_of_key(key(3, 2, TaskId(9))), "arrival is no part of the value");
    assert_eq!(key(3, 2, TaskId((1 << 26) + 7)), key(3, 2, TaskId(7)), "and is counted modulo 2^26");
    // A third of a wei a second has fewer than 32 bits, which count from the top all the same.
    let third = (1u64 << 31) / 3;
    assert_eq!(value_of_key(key(1, 3, TaskId(7))), 30 << 31 | (third << 2 & 0x7fff_ffff));
    // Less than one wei, or second, counts as one.
    assert_eq!(key(0, 5, TaskId(1)), key(1, 5, TaskId(1)));
    assert_eq!(key(5, 0, TaskId(1)), key(5, 1, TaskId(1)));
    assert_eq!(time_limit(5, 70, 60), 70, "a longest limit below the shortest is none");
    assert_eq!(time_limit(u32::MAX, 60, u16::MAX), u16::MAX);
}

#[test]
fn weights_at_their_edges() {
    let base = 400;
    assert_eq!(stake_limit(base), 400 << 18);
    assert_eq!(class_of(stake_limit(base) + 1, base), CLASSES - 1, "there is none above");
    assert_eq!(class_of(stake_limit(base) / 4 + 1, base), CLASSES - 1);
    assert_eq!(class_of(stake_limit(base) / 4, base), CLASSES - 2);
    assert_eq!(staking_score(0, 0), WAD);
    assert_eq!(staking_score(5, 4), WAD);
    assert_eq!(
        [(0, true), (0, false), (3, true), (3, false)].map(|(total, local)| largest_boost(total, local)),
        [WAD, WAD, 2 * WAD, WAD / 10 * 13]
    );
    // A candidate can have at most the largest boost.
    assert_eq!((locality_boost(8, 8, 8), locality_boost(0, 8, 8)), (largest_boost(8, true), largest_boost(8, false)));
    // Numbers without a bit in common are no zeros.
    assert_eq!(harmonic(1 << 59, 1 << 58), (1 << 59) / 3);
    assert_eq!((harmonic(0, WAD), harmonic(WAD, 0), harmonic(0, 0)), (0, 0, 0));
    // S is a half in class 3 of a network whose largest stake is 4^4 times the base.
    assert_eq!(weight::class_bound(base, base << 8, 3, WAD), WAD / 3 + 3);
    assert_eq!(weight::class_bound(base, base, 0, WAD), WAD / 2 + 3);
}

#[test]
fn quality_of_service_at_its_edges() {
    assert_eq!(ppm(1), 1_000_000_000_000);
    assert_eq!(recover(5, 10, 0), WAD, "tau 0 is at once");
    assert_eq!(recover(WAD + 5, 0, 1_800), WAD, "never above one");
    assert_eq!(recover(WAD - 1, 0, 1_800), WAD - 1);
    // The highest threshold there can be, tau x ln 10; and one that is never reached, where the search ends.
    assert_eq!(exclusion_seconds(0, 900_000, 1_800), 4_145);
    assert_eq!(exclusion_seconds(0, 1_000_000, 1_800), 42 * 1_800 + 1);
    assert_eq!([(0, 0), (17, 3), (500, 50), (499, 50)].map(|(sum, count)| long_term_200ths(sum, count)), [0, 114, 200, 200]);
    assert_eq!((qos(WAD / 20, WAD), qos(WAD / 2, WAD / 2)), (WAD / 10, WAD / 4));
    assert_eq!((kicked_out(0, 0, 0), kicked_out(0, 50, 0), kicked_out(0, 50, 1)), (false, false, true));
    assert_eq!(share_bps(9_999, 5_000), 4_999);
    assert_eq!(share_bps(29_999, 3_333), 9_998);
}

#[test]
fn what_a_node_is_and_owes() {
    let node = |status: Status, parked: u8, duties: u8| Node { status: status as u8, parked, duties, ..Node::default() };
    let stati = (0..8).map(Status::new);
    let running = [false, false, true, true, true, false, true, false];
    assert_eq!(stati.map(Status::running).collect::<Vec<_>>(), running);
    for (n, running) in running.into_iter().enumerate() {
        let status = Status::new(n as u8);
        for parked in [0, Node::SET_BACK, Node::WAITS, Node::RESERVED] {
            for open in [0, 1, 3, 31] {
                for flags in (0..8u8).map(|flags| flags << 5) {
                    let node = node(status, parked, flags | open);
                    let owes = (node.open(), node.inactive(), node.held(), node.called());
                    assert_eq!(owes, (open, flags & 32 > 0, flags & 64 > 0, flags & 128 > 0));
                    assert_eq!(node.idle(), status == Status::Available && parked == 0);
                    assert_eq!(node.running(), running && parked == 0 && flags & 64 == 0);
                }
            }
        }
    }
    let staked = |stake| Node { stake, ..Node::default() }.class(400);
    assert_eq!([400, 401, 1_600, 1_601, 400 << 18].map(staked), [400, 401, 1_600, 1_601, 400 << 18].map(|s| class_of(s, 400)));
    assert!(staked(400 << 18) > 1);
}

#[test]
fn what_an_order_says() {
    let group = GpuGroup::of(3, 24);
    let order = |flags, sample_bps, kind| Order { flags, sample_bps, kind, group, ..Order::default() };
    // The bits are those that abi/MusterStorage.sol declares.
    let (alike, mixed) = (order(128, 0, 2), order(128 | 2, 0, 4 << 4));
    let (single, sampled) = (order(2, 0, 1 << 4 | 1), order(4, 500, 1 << 4));
    let (rated, again) = (order(128, 7, 2), order(128, 3 << 8 | 2 << 4 | 5, 1 << 4));
    let all = [single, sampled, alike, mixed, rated, again];
    let policies = [
        Policy::Single,
        Policy::Sampled { bps: 500 },
        Policy::Replicated,
        Policy::Replicated,
        Policy::Rated { most: 7, attempts: 0, undecided: 0 },
        Policy::Rated { most: 5, attempts: 2, undecided: 3 },
    ];
    assert_eq!(all.map(|o| o.policy()), policies);
    assert_eq!(policies.map(|policy| policy.number()), [0, 1, 2, 2, 3, 3]);
    for (o, policy) in all.into_iter().zip(policies) {
        let plain = Order { flags: o.flags & 2, sample_bps: 0, ..o };
        assert_eq!(plain.under(policy), o);
    }
    let grades = [Grade::Single, Grade::Single, Grade::Alike, Grade::Mixed, Grade::Rated, Grade::Rated];
    assert_eq!(all.map(|o| o.queue()), grades.map(|grade| QueueId::new(group, grade)));
    assert_eq!(all.map(|o| o.rated()), [false, false, false, false, true, true]);
    assert_eq!(all.map(|o| o.nodes()), [1, 1, 3, 3, 7, 5]);
    assert_eq!(all.map(|o| o.several()), [false, false, true, true, true, true]);
    assert_eq!(all.map(|o| o.has_receipt()), [true, false, false, true, false, false]);
    assert_eq!(all.map(|o| o.commits()), [false, true, false, false, false, false]);
    assert_eq!(rated.after_attempt().after_attempt().policy(), Policy::Rated { most: 7, attempts: 2, undecided: 0 });
    // After sixteen undecided draws of a rated task there is no other. Nothing else is counted.
    let last = (3..15).fold(again, |order, _| order.after_undecided().expect("another"));
    assert_eq!(last.policy(), Policy::Rated { most: 5, attempts: 2, undecided: 15 });
    assert_eq!(last.after_attempt().policy(), Policy::Rated { most: 5, attempts: 3, undecided: 15 });
    assert_eq!(last.after_undecided(), None);
    assert_eq!([single, sampled, alike, mixed].map(|o| o.after_undecided()), [single, sampled, alike, mixed].map(Some));
    assert_eq!(all.map(|o| (o.sort(), o.images())), [(1, 1), (0, 1), (2, 0), (0, 4), (2, 0), (0, 1)]);
    assert_eq!(all.map(|o| o.part(104)), [104, 104, 34, 34, 14, 20]);
}

/// Each step of a task's way changes the bits that abi/MusterStorage.sol declares for it, and no others.
#[test]
fn an_order_on_its_way() {
    let created = Order { group: GpuGroup::of(3, 24), limit: 60, ..Order::default() }.with_receipt(true);
    let sampled = created.under(Policy::Sampled { bps: 500 }).with_scores(true);
    assert_eq!((sampled.flags, sampled.sample_bps), (2 | 4 | 64, 500));
    let started = sampled.as_started(1_060, true);
    assert_eq!((started.flags, started.moment, started.began()), (1 | 2 | 4 | 64, 1_060, 1_000));
    assert_eq!(sampled.as_started(1_060, false).flags, sampled.flags);
    let committed = started.as_committed();
    let calling = committed.as_calling();
    assert_eq!((committed.flags, calling.flags), (1 | 2 | 4 | 8 | 64, 1 | 2 | 4 | 8 | 16 | 64));
    assert_eq!(committed.with_scores(false).flags, 1 | 2 | 4 | 8);
    let grouped = calling.as_groups(2_000, true, false);
    assert_eq!((grouped.flags, grouped.sample_bps, grouped.moment), (2 | 4 | 8 | 64, 500, 2_000));
    let member = grouped.as_members(9, 90, 2_090);
    assert_eq!((member.flags, member.group, member.limit, member.moment), (8 | 32, GpuGroup(9), 90, 2_090));
    let phases = [Phase::Running, Phase::Committed, Phase::Calling, Phase::Member { place: 9 }];
    assert_eq!([started, committed, calling, member].map(|o| o.phase()), phases);
    assert_eq!([started, committed, calling, member].map(|o| o.commits()), [true; 4]);
    assert_eq!([started, committed, calling, grouped].map(|o| o.boosts()), [true, true, true, false]);

    let rated = created.under(Policy::Rated { most: 7, attempts: 0, undecided: 0 });
    let chosen = rated.as_chosen(true);
    assert_eq!((chosen.flags, chosen.is_chosen(), rated.is_chosen()), (2 | 16 | 64 | 128, true, false));
    assert_eq!(rated.as_chosen(false).flags, 2 | 16 | 128);
    let grouped = chosen.as_groups(2_000, chosen.scored(), true);
    assert_eq!((grouped.flags, grouped.scored(), grouped.liable()), (2 | 64 | 128, true, false));
    assert!(!grouped.as_groups(0, false, true).scored());
    assert_eq!(grouped.as_members(9, 60, 2_060).flags, 32);
    let again = grouped.after_attempt();
    assert_eq!((again.flags, again.sample_bps), (2 | 128, 16 + 7));
    let replicated = created.under(Policy::Replicated);
    let pictures = Order { kind: 2 << 4, ..replicated };
    for (order, scored, slash_images, flags) in [
        (replicated, true, false, 2 | 8 | 64 | 128),
        (replicated, false, true, 2 | 128),
        (pictures, true, false, 2 | 64 | 128),
        (pictures, true, true, 2 | 8 | 64 | 128),
    ] {
        let grouped = order.as_groups(2_000, scored, slash_images);
        assert_eq!(
            (grouped.flags, grouped.liable(), grouped.as_members(9, 60, 2_060).liable()),
            (flags, flags & 8 > 0, flags & 8 > 0)
        );
    }
}

#[test]
fn a_profile_is_within_its_bounds() {
    let default = Profile::DEFAULT;
    assert!(default.valid());
    assert_eq!((default.least, default.most, default.reschedules, default.period), (3, 7, 2, 300));
    assert_eq!((default.target, default.alpha), (490_000_000_000_000_000, 500_000_000_000_000_000));
    assert_eq!(Profile::default().or_default(), default);
    let own = Profile { least: 4, ..default };
    assert_eq!(own.or_default(), own);
    assert_eq!([Profile::default(), own, Profile { most: 1, ..own }].map(|p| Profile::most_of(&p.pack())), [7, 7, 1]);
    let most = MEMBERS_MOST as u8;
    let within = [
        Profile { algorithm: 3, ..own },
        Profile { least: 7, ..own },
        Profile { most, ..own },
        Profile { most: 4, ..own },
        Profile { reschedules: Profile::RESCHEDULES_MOST, ..own },
        Profile { targeting: 2, ..own },
        Profile { target: WAD, ..own },
        Profile { alpha: WAD, ..own },
        Profile { period: Profile::PERIOD_MOST, ..own },
    ];
    assert!(within.iter().all(Profile::valid));
    let beyond = [
        Profile { algorithm: 4, ..own },
        Profile { least: 2, ..own },
        Profile { least: 8, ..own },
        Profile { most: most + 1, ..own },
        Profile { reschedules: Profile::RESCHEDULES_MOST + 1, ..own },
        Profile { targeting: 3, ..own },
        Profile { target: WAD + 1, ..own },
        Profile { alpha: WAD + 1, ..own },
        Profile { period: Profile::PERIOD_MOST + 1, ..own },
        Profile { period: Profile::PERIOD_LEAST - 1, ..own },
    ];
    for profile in beyond {
        assert!(!profile.valid(), "{profile:?}");
    }
}

#[test]
fn a_commitment_is_kept_but_for_its_end() {
    let hash: [u8; 32] = core::array::from_fn(|i| i as u8 + 200);
    let kept = Commitment::of(hash, 77, 1_000);
    assert_eq!((kept.elapsed, kept.block), (77, 1_000));
    assert_eq!((&kept.hash()[..24], &kept.hash()[24..]), (&hash[..24], &[0; 8][..]));
    assert!(kept.opens(hash) && kept.opens(kept.hash()));
    for byte in 0..24 {
        let mut other = hash;
        other[byte] ^= 1;
        assert!(!kept.opens(other), "byte {byte}");
    }
}

#[test]
fn settled_groups_are_counted_as_far_as_the_record_goes() {
    let mut climb = TargetSearch::START;
    for (succeeded, members) in [(true, 3), (false, 7), (true, 5)] {
        climb.count(succeeded, members);
    }
    assert_eq!((climb.successes, climb.groups, climb.members), (2, 3, 15));
    let most = (1 << 24) - 1;
    let mut full = TargetSearch { successes: most - 1, groups: most - 1, members: 9, ..climb };
    for _ in 0..2 {
        full.count(true, 3);
        assert_eq!((full.successes, full.groups, full.members), (most, most, 12));
    }
    assert_eq!(TargetSearch::unpack(full.pack()), full);
}

#[test]
fn a_group_takes_a_free_place_or_a_new_one() {
    let places = |issued, free| Places { issued, free, live: 0 }.next();
    assert_eq!((places(0, 0), places(4, 0)), (1, 5));
    assert_eq!((places(4, 1), places(4, 3)), (1, 3));
}

#[test]
fn words_once_written_are_never_zero_again() {
    assert!(!Members::vacant(0).pack().is_zero());
    assert!(!Reserved::of(&[]).pack().is_zero());
    let nodes: Vec<NodeId> = (1..=RESERVED_MOST as u32).map(|n| NodeId(n * 1_000_003)).collect();
    for count in 0..=RESERVED_MOST {
        let reserved = Reserved::unpack(Reserved::of(&nodes[..count]).pack());
        let all = reserved.all();
        assert_eq!(all[..count], nodes[..count]);
        assert!(all[count..].iter().all(|&n| n == NodeId(0)));
    }
}
