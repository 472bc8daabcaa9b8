//! The structures below the network, each against a plain collection.

use muster_core::id::QueueId;
use muster_core::record::Pool;
use muster_model::world::Dice;
use muster_protocol::bracket::NONE;
use muster_protocol::native::Memory;
use muster_protocol::pool;
use std::collections::BTreeMap;

/// A pool's greatest and least key and their places, after every insertion and removal, while it grows over every level and
/// shrinks again.
#[test]
fn a_pool_knows_its_greatest_and_least_key() {
    for seed in 1..=40u64 {
        let (mut mem, mut d) = (Memory::new(), Dice(seed));
        mem.keep_logs = false;
        let mut there: BTreeMap<u32, u64> = BTreeMap::new();
        let mut record = Pool::default();
        let longest = [5, 17, 70, 300][seed as usize % 4];
        for step in 0..2 * longest {
            let growing = (step < longest) == (d.below(5) > 0);
            if growing || there.is_empty() {
                // Rising, falling and mixed, with many equal ones.
                let key = NONE
                    + 1
                    + match seed % 3 {
                        0 => step,
                        1 => 2 * longest - step,
                        _ => d.below(40),
                    };
                let place = pool::insert(&mut mem, QueueId(9), &mut record, key);
                assert!(there.insert(place, key).is_none(), "place {place} is taken");
            } else {
                let place = *there.keys().nth(d.below(there.len() as u64) as usize).unwrap();
                there.remove(&place);
                pool::remove(&mut mem, QueueId(9), &mut record, place);
            }
            let (greatest, least) = (there.values().max().copied(), there.values().min().copied());
            assert_eq!(
                (record.best, record.worst, record.live as usize),
                (greatest.unwrap_or(0), least.unwrap_or(0), there.len())
            );
            if let (Some(greatest), Some(least)) = (greatest, least) {
                assert_eq!(there[&pool::best_place(&mem, QueueId(9), &record)], greatest);
                assert_eq!(there[&pool::worst_place(&mem, QueueId(9), &record)], least);
            }
            for place in 0..=record.slots {
                assert_eq!(pool::key_at(&mem, QueueId(9), &record, place).max(NONE), there.get(&place).copied().unwrap_or(NONE));
            }
        }
    }
}
