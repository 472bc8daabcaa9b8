//! The structures below the network, each against a plain collection.

use muster_core::id::{GpuGroup, Grade, ModelId, NodeId, QueueId, TaskId, Ticket};
use muster_core::record::{Escrow, Head, Listed, Models, Order, Policy, Pool, Queue as QueueRecord, ValidatorDraw};
use muster_core::word::Word;
use muster_model::validated::task_of;
use muster_model::world::{spec, who, Dice, World, TOKEN};
use muster_protocol::flow::draw::Rng;
use muster_protocol::flow::serve::SERVING_READS;
use muster_protocol::host::offset;
use muster_protocol::layout::{self, entry, slot};
use muster_protocol::native::Memory;
use muster_protocol::store::node::NodeHandle;
use muster_protocol::store::registry::{self, Held, Holders};
use muster_protocol::store::ring::{Ring, RING, VALIDATOR_DRAWS};
use muster_protocol::store::sampler::{self, Among, Counts, Field, Neighbours, Scope};
use muster_protocol::store::task::{ModelSet, Task};
use muster_protocol::store::tournament::{height, TournamentTree, LEAST, NONE};
use muster_protocol::store::{pool, queue};
use muster_protocol::IMuster::{
    gpuGroupCall, overviewCall, pauseCall, quitCall, reportDownloadedCall, reportRemovedCall, resumeCall, submitCall,
};
use muster_protocol::{Host, Network};
use std::collections::{BTreeMap, BTreeSet};

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
                let key = LEAST
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
                assert_eq!(pool::key_at(&mem, QueueId(9), &record, place), there.get(&place).copied().unwrap_or(NONE));
            }
        }
    }
}

/// Every number below the total of a field falls on a node as often as its class says, or on nobody. The tree's bounds do not change the
/// proportions in which nodes are drawn, idle ones or active ones. A search one after the other finds the same nodes. All of this holds
/// while lists fill and empty, over GPU models of more than a word and sizes of both levels.
#[test]
fn every_number_of_a_field_falls_on_nodes_in_proportion() {
    let names: Vec<(u16, u32)> = (0..40).map(|gpu| (24, gpu)).chain([(8, 0), (80, 0), (80, 1), (960, 0)]).collect();
    let (mut rounded, mut kept) = (0, 0);
    for (seed, among) in (1..=6u64).map(|seed| (seed, Among::Idle)).chain((7..=8).map(|seed| (seed, Among::Active))) {
        let (mut mem, mut d) = (Memory::new(), Dice(seed));
        mem.keep_logs = false;
        let mut there: BTreeMap<(GpuGroup, u8), Vec<NodeId>> = BTreeMap::new();
        for &(vram, gpu) in &names {
            sampler::add_group(&mut mem, vram.into(), gpu);
        }
        for step in 0..600u32 {
            let (vram, gpu) = names[d.below(names.len() as u64) as usize];
            let (group, class) = (GpuGroup::of(gpu as u16 + 1, vram), d.below(3) as u8);
            let list = there.entry((group, class)).or_default();
            if d.below(600) > u64::from(step) || list.is_empty() {
                let place = sampler::insert(&mut mem, among, group, class, NodeId(step + 1));
                assert_eq!(place as usize, list.len());
                list.push(NodeId(step + 1));
            } else {
                let place = d.below(list.len() as u64) as usize;
                let (moved, left) = sampler::remove(&mut mem, among, group, class, place as u32);
                list.swap_remove(place);
                assert_eq!((moved, left as usize), (list.get(place).copied(), list.len()));
            }
            if step % 7 > 0 {
                continue;
            }
            for scope in [0, 8, 9, 24, 25, 80, 81, 960].map(Scope::Vram).into_iter().chain([Scope::Group(group)]) {
                let field = Field::new(&mem, among, scope);
                let mut hits: BTreeMap<NodeId, u64> = BTreeMap::new();
                for spot in (0..field.total()).filter_map(|u| field.pick(&mem, u)) {
                    assert_eq!(there[&(spot.group, spot.class)][spot.place as usize], spot.node);
                    *hits.entry(spot.node).or_default() += 1;
                }
                let inside = |group: &GpuGroup| match scope {
                    Scope::Vram(vram) => u32::from(group.vram()) >= vram,
                    Scope::Group(own) => *group == own,
                };
                let expected: BTreeMap<NodeId, u64> = there
                    .iter()
                    .filter(|((group, _), _)| inside(group))
                    .flat_map(|(&(_, class), nodes)| nodes.iter().map(move |&node| (node, 1 << class)))
                    .collect();
                assert_eq!(hits, expected, "seed {seed}, step {step}, {scope:?}");
                let sum: u64 = expected.values().sum();
                assert_eq!(field.total() == 0, sum == 0);
                let everybody = field.everybody(&mem, expected.len() as u32, u32::MAX).expect("as many as there are");
                assert_eq!(everybody.len(), expected.len());
                assert_eq!(everybody.into_iter().collect::<BTreeSet<_>>(), expected.keys().copied().collect());
                // All, or as many as are asked for: no group is looked at for more than seven words.
                let began = mem.reads();
                assert_eq!(field.count(&mem, u32::MAX) as usize, expected.len());
                let groups: BTreeSet<GpuGroup> = there
                    .iter()
                    .filter(|((group, _), nodes)| inside(group) && !nodes.is_empty())
                    .map(|((group, _), _)| *group)
                    .collect();
                assert!(mem.reads() - began <= 7 * groups.len() as u32);
                assert!(expected.is_empty() || field.count(&mem, 1) >= 1);
                if among == Among::Idle {
                    // Twice in the lists' words, an eighth in each above them.
                    assert!(field.total() <= sum * 3, "{} for {sum}", field.total());
                    rounded += u32::from(field.total() > sum);
                    kept += u32::from(field.total() > sum + sum / 2);
                }
            }
            for nodes in [1, 2, 5, 20].into_iter().filter(|_| among == Among::Idle) {
                let mut sizes: Vec<u16> =
                    there.iter().flat_map(|((group, _), nodes)| nodes.iter().map(move |_| group.vram())).collect();
                sizes.sort_unstable();
                assert_eq!(
                    sampler::vram_of_idle(&mem, nodes as u32),
                    sizes.iter().nth_back(nodes - 1).copied(),
                    "{nodes} at step {step}"
                );
            }
        }
    }
    assert!(rounded > 500 && kept > 50, "{rounded} {kept}");
}

/// Where no node is idle, no word is read below the one that says so: the node with the largest VRAM is found in a few words.
#[test]
fn empty_sizes_are_not_looked_into() {
    let mut mem = Memory::new();
    for vram in [8, 24, 80, 960] {
        sampler::add_group(&mut mem, vram, 0);
    }
    let (small, large) = (GpuGroup::of(1, 8), GpuGroup::of(1, 960));
    sampler::insert(&mut mem, Among::Idle, small, 0, NodeId(1));
    sampler::insert(&mut mem, Among::Idle, large, 0, NodeId(2));
    // The root; two words of sizes, each with a tree of one word and one group in it.
    for (nodes, vram, words) in [(1, Some(960), 4), (2, Some(8), 7), (3, None, 7)] {
        let began = mem.reads();
        assert_eq!(sampler::vram_of_idle(&mem, nodes), vram);
        assert_eq!(mem.reads() - began, words);
    }
    // The words at its top are those of the field.
    let field = Field::new(&mem, Among::Idle, Scope::Vram(0));
    for (most, found, words) in [(1, 1, 2), (2, 2, 5), (3, 2, 5)] {
        let began = mem.reads();
        assert_eq!(field.count(&mem, most), found);
        assert_eq!(mem.reads() - began, words);
    }
}

/// A tree over the GPU models of a size keeps all its nodes when it grows a level, at 32 and at 962.
#[test]
fn a_tree_that_grows_loses_nobody() {
    for among in [Among::Idle, Among::Active] {
        let mut mem = Memory::new();
        for gpu in 0..1_000u32 {
            sampler::add_group(&mut mem, 24, gpu);
            sampler::insert(&mut mem, among, GpuGroup::of(gpu as u16 + 1, 24), 0, NodeId(gpu + 1));
            if [30, 31, 32, 960, 961, 962, 999].contains(&gpu) {
                let field = Field::new(&mem, among, Scope::Vram(24));
                let found: BTreeSet<NodeId> =
                    (0..field.total()).filter_map(|u| field.pick(&mem, u)).map(|spot| spot.node).collect();
                assert_eq!(found, (1..=gpu + 1).map(NodeId).collect());
                assert_eq!(field.count(&mem, u32::MAX), gpu + 1);
            }
        }
    }
}

/// A node that is drawn comes with the model that it is known to hold, and with none if it is not known to hold one.
#[test]
fn who_is_drawn_comes_with_what_it_is_known_to_hold() {
    let (mut mem, group) = (Memory::new(), GpuGroup::of(1, 24));
    sampler::add_group(&mut mem, 24, 0);
    for n in 1..=19 {
        sampler::insert(&mut mem, Among::Idle, group, 1, NodeId(n));
    }
    let models = [(0, 7), (8, 9), (16, 7)];
    let known = |place: u32| place.is_multiple_of(3);
    for (first, model) in models {
        let mut there = Neighbours::load(&mem, group, 1, first, 19);
        (0..there.count()).filter(|i| known(first + i)).for_each(|i| there.note(i, ModelId(model)));
        there.store(&mut mem);
    }
    for scope in [Scope::Vram(8), Scope::Group(group)] {
        let field = Field::new(&mem, Among::Idle, scope);
        let spots: Vec<_> = (0..field.total()).filter_map(|u| field.pick(&mem, u)).collect();
        assert_eq!(spots.len(), 38);
        for spot in spots {
            let model = models[spot.place as usize / 8].1;
            assert_eq!(spot.holds, ModelId(if known(spot.place) { model } else { 0 }), "place {}", spot.place);
            assert_eq!((spot.node, spot.count, spot.peers), (NodeId(spot.place + 1), 19, 19));
        }
    }
}

/// Of a GPU group all joined nodes count, also those that are not among the active ones for now; nobody ever had a GPU that was not added.
#[test]
fn joined_nodes_count_wherever_they_are() {
    let (mut mem, group) = (Memory::new(), GpuGroup::of(1, 24));
    let joined = |mem: &Memory| Counts::load(mem, Among::Active, group).joined();
    assert_eq!(joined(&mem), None);
    sampler::add_group(&mut mem, 24, 0);
    assert_eq!(joined(&mem), Some(0));
    for n in 1..=5 {
        sampler::insert(&mut mem, Among::Active, group, n as u8 % 3, NodeId(n));
        assert_eq!(joined(&mem), Some(n));
    }
    // Two stand aside, and one of them returns.
    for place in [1, 0] {
        sampler::remove(&mut mem, Among::Active, group, 1, place);
        assert_eq!(joined(&mem), Some(4));
        assert!(sampler::count_absent(&mut mem, group, true));
        assert_eq!(joined(&mem), Some(5));
    }
    assert!(sampler::count_absent(&mut mem, group, false));
    sampler::insert(&mut mem, Among::Active, group, 1, NodeId(1));
    assert_eq!(joined(&mem), Some(5));
    assert!(sampler::count_absent(&mut mem, group, false));
    assert_eq!(joined(&mem), Some(4));
    // As many as the word has room for.
    let absent = |mem: &Memory| mem.load(entry(mem, layout::CLASSES, u64::from(group.0) | 1 << 32)).bits(240, 16);
    for n in absent(&mem)..0xffff {
        assert!(sampler::count_absent(&mut mem, group, true), "{n}");
    }
    assert!(!sampler::count_absent(&mut mem, group, true));
    assert_eq!((absent(&mem), joined(&mem)), (0xffff, Some(0xffff - 1 + 4)));
}

/// Eight places of a list share a word: a node at one of them stands beside the others of its word, and no others.
#[test]
fn those_beside_a_place_are_those_of_its_word() {
    let (mut mem, group) = (Memory::new(), GpuGroup::of(1, 24));
    sampler::add_group(&mut mem, 24, 0);
    for n in 1..=19 {
        assert_eq!(sampler::insert(&mut mem, Among::Idle, group, 2, NodeId(n)), n - 1);
    }
    for place in 0..24 {
        let there = Neighbours::load(&mem, group, 2, place, 19);
        let beside: Vec<u32> = (0..there.count()).map(|i| there.node(i).0).collect();
        let first = place / 8 * 8 + 1;
        assert_eq!(beside, (first..=19.min(first + 7)).collect::<Vec<_>>(), "place {place}");
    }
    assert_eq!(Neighbours::load(&mem, group, 2, 24, 19).count(), 0);
}

/// The heads of the queues for any GPU, asked for up to every size, and the lowest key of all, while tasks of ever larger sizes come,
/// take the places of others, and go.
#[test]
fn queues_of_every_size_know_their_best_and_their_worst() {
    let mut replaced = 0;
    for seed in 1..=12u64 {
        let (mut mem, mut d) = (Memory::new(), Dice(seed));
        mem.keep_logs = false;
        let mut there: BTreeMap<u64, (Ticket, u16)> = BTreeMap::new();
        let mut largest = 0;
        for step in 0..400u64 {
            // From sizes of the first word to the largest there can be, by and by.
            let vram = d.below([4, 17, 64, 65, 256, 961][(step / 67) as usize % 6]) as u16;
            let escrow = Escrow { fee: step.into(), ..Escrow::default() };
            let task = Task { escrow, ..queued(step + 1, GpuGroup::any(vram), Grade::Single) };
            let key = (d.below(50) + 1) << 32 | step;
            let worst = there.first_key_value().map(|(&key, &(ticket, _))| (key, ticket));
            assert_eq!(queue::worst(&mem), worst.map(|(key, _)| key));
            match d.below(8) {
                0 | 1 if !there.is_empty() => {
                    let (&key, &(ticket, _)) = there.iter().nth(d.below(there.len() as u64) as usize).unwrap();
                    assert_eq!(queue::remove(&mut mem, ticket).escrow.fee, u128::from(key as u32));
                    there.remove(&key);
                }
                2 | 3 if !there.is_empty() => {
                    let (lowest, ticket) = worst.unwrap();
                    let (former, place) = queue::replace_worst(&mut mem, &task, key);
                    assert_eq!(former.escrow.fee, u128::from(lowest as u32));
                    replaced += u32::from(place == ticket);
                    there.remove(&lowest);
                    there.insert(key, (place, vram));
                }
                _ => {
                    there.insert(key, (queue::insert(&mut mem, &task, key), vram));
                }
            }
            for (&key, &(ticket, _)) in &there {
                assert_eq!(queue::task_at(&mem, ticket).unwrap().escrow.fee, u128::from(key as u32));
            }
            for up_to in [0, 1, 3, 4, 15, 16, 63, 64, 80, 255, 256, 700, 960] {
                let best = there.iter().rev().find(|(_, &(_, vram))| vram <= up_to).map(|(_, &(ticket, _))| ticket);
                assert_eq!(
                    queue::best_of_sizes(&mem, Grade::Single, up_to).map(|b| b.ticket(&mem)),
                    best,
                    "seed {seed}, {up_to}"
                );
            }
            largest = vram.max(largest);
        }
        assert!(largest >= 256);
    }
    assert!(replaced > 20, "{replaced}");
}

/// A tree has as many levels as its places need, and no more.
#[test]
fn trees_are_no_higher_than_their_places() {
    let heights = [(0, 0), (1, 0), (2, 1), (4, 1), (5, 2), (16, 2), (17, 3), (64, 3), (65, 4), (256, 4), (257, 5), (1024, 5)];
    for (places, levels) in heights {
        assert_eq!(height(places), levels, "{places} places");
    }
}

fn queued(n: u64, group: GpuGroup, grade: Grade) -> Task {
    let (kind, policy) = match grade {
        Grade::Single => (1, Policy::Single),
        Grade::Mixed => (1 << 4, Policy::Replicated),
        Grade::Alike => (1, Policy::Replicated),
        Grade::Rated => (1, Policy::Rated { most: 5, attempts: 0, undecided: 0 }),
    };
    let order = Order { id: TaskId(n), group, kind, ..Order::default() }.under(policy);
    assert_eq!(order.queue(), QueueId::new(group, grade));
    Task { order, escrow: Escrow::default(), models: ModelSet::default() }
}

/// Without bias also where every fourth word would give one: three quarters of all numbers.
#[test]
fn a_large_range_is_drawn_from_without_bias() {
    let mem = Memory::new();
    let mut rng = Rng::new(&mem, [3; 32], TaskId(1));
    let (mut thirds, n) = ([0; 3], 3 << 62);
    for _ in 0..3_000 {
        let u = rng.below(&mem, n);
        assert!(u < n);
        thirds[(u % 3) as usize] += 1;
    }
    assert!(thirds.iter().all(|count| (870..1_130).contains(count)), "{thirds:?}");
}

/// In every grade, also where the first task asks for more than the tree over the sizes has places for; tasks for several nodes are
/// counted.
#[test]
fn every_grade_finds_its_sizes_and_is_counted() {
    for grade in [Grade::Single, Grade::Mixed, Grade::Alike, Grade::Rated] {
        for first in [0, 3, 63, 64, 255, 256, 960] {
            let mut mem = Memory::new();
            let sizes = [first, 3, 64];
            let tickets: Vec<Ticket> = (1..)
                .zip(sizes)
                .map(|(n, vram)| queue::insert(&mut mem, &queued(n, GpuGroup::any(vram), grade), (9 - n) << 32 | n))
                .collect();
            for up_to in [0, 3, 63, 64, 255, 256, 960] {
                let found = queue::best_of_sizes(&mem, grade, up_to).map(|best| best.ticket(&mem));
                let expected = sizes.iter().position(|&vram| vram <= up_to).map(|i| tickets[i]);
                assert_eq!(found, expected, "{grade:?}, {first}, up to {up_to}");
            }
            for left in (0..=3).rev() {
                let record: QueueRecord = mem.get(slot(layout::QUEUE));
                let (several, rated) = (grade != Grade::Single, grade == Grade::Rated);
                assert_eq!((record.graded, record.rated), (left * u32::from(several), left * u32::from(rated)));
                assert_eq!(queue::graded(&mem), several && left > 0);
                if left > 0 {
                    queue::remove(&mut mem, tickets[left as usize - 1]);
                }
            }
        }
    }
    // Three levels of a small network, and the record that says so.
    let mut mem = Memory::new();
    queue::insert(&mut mem, &queued(1, GpuGroup::any(0), Grade::Single), 1 << 32);
    let before = mem.reads();
    assert!(queue::best_of_sizes(&mem, Grade::Single, 0).is_some());
    assert_eq!(mem.reads() - before, 4);
}

/// Of the head of its GPU group's queue and that of those for any GPU a node begins with the one of the higher value, and with its
/// group's if they are equal.
#[test]
fn a_node_begins_with_the_better_of_two_queues() {
    let own = GpuGroup::of(1, 24);
    for (group, any) in [(0, 0), (0, 5), (5, 0), (5, 4), (5, 5), (5, 6)] {
        let mut mem = Memory::new();
        let mut put = |n: u64, scope, value: u64| {
            (value > 0).then(|| queue::insert(&mut mem, &queued(n, scope, Grade::Single), value << 40 | n))
        };
        let (first, second) = (put(1, own, group), put(2, GpuGroup::any(8), any));
        let expected = if any > group { second } else { first };
        assert_eq!(queue::best_single(&mem, own).map(|best| best.ticket(&mem)), expected, "{group} and {any}");
    }
}

/// A node that is noted as holding a model, beside its number in the list of idle nodes, holds it.
#[test]
fn who_is_known_to_hold_a_model_holds_it() {
    let (mut known, mut forgotten) = (0, 0);
    for seed in 1..=8u64 {
        let (mut w, mut d) = (World::new(), Dice(seed));
        w.set("drawDelay", 0);
        w.join(1, "A100", 80, &[1], 400).unwrap();
        let group = w.ask(gpuGroupCall { name: "A100".into(), vram: 80 });
        for _ in 0..900 {
            let (n, some) = (d.below(14) + 1, d.below(7) + 1);
            let models: Vec<u64> = (1..=3).filter(|m| some >> (m - 1) & 1 > 0).collect();
            // Most are refused now and then: only the words afterwards matter.
            match d.below(9) {
                0 => drop(w.join(n, "A100", 80, &models, 400)),
                1 => drop(w.send(who(n), 0, reportRemovedCall { models })),
                2 => drop(w.send(who(n), 0, reportDownloadedCall { models })),
                3 => drop(w.send(who(n), 0, quitCall {})),
                4 => drop(w.send(who(n), 0, pauseCall {})),
                5 => drop(w.send(who(n), 0, resumeCall {})),
                6 | 7 => drop(w.create(0, TOKEN, spec(0, &models))),
                _ => {
                    w.pass(1, 5);
                    for node in 1..=w.ask(overviewCall {}).nodesIssued {
                        let id = task_of(&mut w, node);
                        if id > 0 && d.below(2) > 0 {
                            let operator = w.node(node).operator;
                            drop(w.send(operator.into(), 0, submitCall { id, resultDigest: [1; 32].into() }));
                        }
                    }
                }
            }
            for class in 0..10 {
                let count = Counts::load(&w.mem, Among::Idle, GpuGroup(group)).get(class);
                for place in (0..count).step_by(8) {
                    let there = Neighbours::load(&w.mem, GpuGroup(group), class, place, count);
                    // The others' note there, by the layout.
                    let key = u64::from(group) << 32 | u64::from(class) << 24 | u64::from(place / 8);
                    let Listed { n0, n1, n2, n3, n4, n5, n6, n7, model, held } = w.mem.get(entry(&w.mem, layout::MEMBERS, key));
                    assert_eq!(model, there.model());
                    for (i, node) in (0..there.count()).zip([n0, n1, n2, n3, n4, n5, n6, n7]) {
                        assert_eq!((node, held >> i & 1 != 0), (there.node(i), there.knows(i, model)));
                    }
                    for i in 0..there.count() {
                        let handle = NodeHandle::load(&w.mem, there.node(i));
                        let holds = Held::load(&w.mem, handle.slot, handle.node.models).holds(there.model());
                        assert!(holds || !there.knows(i, there.model()), "seed {seed}, node {:?}", handle.id);
                        known += u32::from(there.knows(i, there.model()));
                        forgotten += u32::from(holds && !there.knows(i, there.model()));
                    }
                }
            }
        }
    }
    assert!(known > 1_000 && forgotten > 1_000, "{known} {forgotten}");
}

/// A node that joins idle is noted with the model that was looked for among its neighbours, and where none was, with the first that it
/// names.
#[test]
fn who_joins_is_known_by_his_neighbours_model_or_else_by_his_first() {
    let mut w = World::new();
    for (n, models) in [(1, &[4, 5][..]), (2, &[6, 4]), (3, &[6])] {
        w.join(n, "A100", 80, models, 400).unwrap();
    }
    let group = GpuGroup(w.ask(gpuGroupCall { name: "A100".into(), vram: 80 }));
    let there = Neighbours::load(&w.mem, group, 0, 0, 3);
    assert_eq!((there.count(), there.model().0), (3, 4));
    assert_eq!([0, 1, 2].map(|i| (there.node(i).0, there.knows(i, there.model()))), [(1, true), (2, true), (3, false)]);
    // Nobody is known beyond them.
    let Listed { held, .. } = w.mem.get(entry(&w.mem, layout::MEMBERS, u64::from(group.0) << 32));
    assert_eq!(held, 0b11);
}

/// A node that has ended a task is noted as holding its model, if it held that when it started, and has not removed it meanwhile. The last
/// of a list is still noted in the place that another has left.
#[test]
fn who_is_freed_is_known_by_the_model_of_its_task() {
    let mut w = World::new();
    w.set("drawDelay", 0);
    for n in 1..=4 {
        w.join(n, "A100", 80, &[4, 5], 400).unwrap();
    }
    let group = GpuGroup(w.ask(gpuGroupCall { name: "A100".into(), vram: 80 }));
    let known = |w: &World| -> Vec<u32> {
        let count = Counts::load(&w.mem, Among::Idle, group).get(0);
        let there = Neighbours::load(&w.mem, group, 0, 0, count);
        let mut known: Vec<u32> = (0..there.count()).filter(|&i| there.knows(i, ModelId(4))).map(|i| there.node(i).0).collect();
        known.sort_unstable();
        known
    };
    assert_eq!(known(&w), [1, 2, 3, 4]);
    let run = |w: &mut World, wanted: u64, removed: &[u64]| {
        let before = known(w);
        let id = w.create(0, TOKEN, spec(0, &[wanted])).unwrap();
        let node = (1..=4).find(|&n| task_of(w, n) == id).expect("drawn at once");
        let others: Vec<u32> = before.into_iter().filter(|&n| n != node).collect();
        assert_eq!(known(w), others, "whoever moves into its place is still known");
        if !removed.is_empty() {
            w.send(who(node.into()), 0, reportRemovedCall { models: removed.to_vec() }).unwrap();
        }
        w.send(who(node.into()), 0, submitCall { id, resultDigest: [1; 32].into() }).unwrap();
        assert_eq!(w.node(node).status, 1);
        node
    };
    for _ in 0..8 {
        run(&mut w, 4, &[]);
        assert_eq!(known(&w), [1, 2, 3, 4]);
    }
    let removes = run(&mut w, 4, &[4, 5]);
    let lacks = run(&mut w, 9, &[]);
    let left: Vec<u32> = (1..=4).filter(|&n| n != removes && n != lacks).collect();
    assert_eq!(known(&w), left);
}

/// A roll of several models' holders names all entered nodes, whatever words they fill, as long as those are not too many, and no model is
/// everybody's.
#[test]
fn a_roll_names_everybody_who_is_entered() {
    let mut mem = Memory::new();
    let (mut first, mut second) = (Holders::load(&mem, ModelId(1)), Holders::load(&mem, ModelId(2)));
    let mut all = BTreeSet::new();
    for n in 1..=40 {
        first.push(&mut mem, NodeId(n));
        all.insert(n);
        if n % 3 == 0 {
            second.push(&mut mem, NodeId(100 + n));
            all.insert(100 + n);
        }
        // The last one to seven stand in the first word.
        let words = (first.len() - 1) / 7 + second.len().saturating_sub(1) / 7;
        let lists = [1, 2].map(|model| Holders::load(&mem, ModelId(model)));
        let began = mem.reads();
        let roll = registry::roll(&mem, &lists, 100);
        assert_eq!(roll.is_some(), words <= 4, "{words} words");
        if let Some(roll) = roll {
            assert_eq!(mem.reads() - began, words);
            assert_eq!((roll.len(), roll.iter().map(|node| node.0).collect::<BTreeSet<_>>()), (all.len(), all.clone()));
        }
        // Three quarters of the joined nodes.
        let most = first.len() * 4 / 3;
        assert!(
            registry::roll(&mem, &lists[..1], most).is_none()
                && (words > 4 || registry::roll(&mem, &lists[..1], most + 1).is_some())
        );
    }
    while !first.is_empty() {
        let gone = first.get(&mem, 0);
        first.swap_remove(&mut mem, 0);
        all.remove(&gone.0);
        let lists = [1, 2].map(|model| Holders::load(&mem, ModelId(model)));
        if let Some(roll) = registry::roll(&mem, &lists, 100) {
            assert_eq!(roll.iter().map(|node| node.0).collect::<BTreeSet<_>>(), all);
        } else {
            assert!(first.len() > 20);
        }
    }
}

/// The places that were freed are given again, each once, before the pool grows.
#[test]
fn a_pool_gives_its_free_places_again() {
    let (mut mem, mut record) = (Memory::new(), Pool::default());
    let put = |mem: &mut Memory, record: &mut Pool| pool::insert(mem, QueueId(9), record, LEAST);
    let all: BTreeSet<u32> = (0..40).map(|_| put(&mut mem, &mut record)).collect();
    assert_eq!(all, (0..40).collect());
    for round in [39, 8, 17] {
        for place in 0..round {
            pool::remove(&mut mem, QueueId(9), &mut record, place);
        }
        // Each names the one that was freed before it.
        for place in 0..round {
            let word = TournamentTree::best(9).word(&mem, 0, place);
            assert_eq!(word.0[(place & 3) as usize], NONE + u64::from(place));
        }
        assert_eq!(record.free, round);
        let again: BTreeSet<u32> = (0..round).map(|_| put(&mut mem, &mut record)).collect();
        assert_eq!(again, (0..round).collect());
        assert_eq!((record.slots, record.live, record.free), (40, 40, 0));
    }
    for place in 0..40 {
        pool::remove(&mut mem, QueueId(9), &mut record, place);
    }
    // Empty it begins anew, in a word that is not zero.
    assert_eq!((record.slots, record.used), (0, 1));
    pool::store(&mut mem, QueueId(9), &Pool::default());
    assert_eq!(pool::load(&mem, QueueId(9)).used, 1);
}

/// Tasks and calls for validators, each in its own words, over the end of the ring and at its beginning.
#[test]
fn a_ring_goes_over_its_end() {
    for (size, map) in [(RING, layout::PENDING), (VALIDATOR_DRAWS, layout::VALIDATOR_DRAWS)] {
        let mut mem = Memory::new();
        let (first, tasks) = (size - 2, size == RING);
        let mut ring = if tasks {
            Ring::of_tasks(&Head { pending_head: first, pending_tail: first, ..Head::default() })
        } else {
            Ring::of_validator_draws(&Head {
                validator_draws_head: first as u8,
                validator_draws_tail: first as u8,
                ..Head::default()
            })
        };
        let order = |n: u32| Order { id: TaskId(n as u64), ..Order::default() };
        assert!(ring.is_empty());
        for n in 1..=5 {
            if tasks {
                ring.push(&mut mem, &Task { escrow: Escrow::default(), order: order(n), models: ModelSet::default() }, 7);
            } else {
                ring.push_validator_draw(&mut mem, &ValidatorDraw { node: NodeId(n), tries: 0 }, &order(n), 7);
            }
            assert_eq!((ring.len(), ring.is_empty(), ring.is_full()), (n, false, false));
        }
        let mut head = Head::default();
        ring.write_tasks(&mut head);
        assert_eq!((head.pending_head, head.pending_tail), (first, 3));
        for n in 1..=5 {
            let (slot, found) = ring.first(&mem);
            assert_eq!(slot, entry(&mem, map, (first as u64 + n as u64 - 1) % size as u64));
            assert_eq!((found.id, found.moment), (TaskId(n as u64), 7));
            if tasks {
                assert_eq!(ring.take(&mem, (slot, found)).order.id, TaskId(n as u64));
            } else {
                assert_eq!(ring.take_validator_draw(&mem, slot).node, NodeId(n));
            }
            assert_eq!((ring.len(), ring.is_empty()), (5 - n, n == 5));
        }
        // Emptied, it begins again at its first words.
        assert_eq!(ring.slot(&mem, 0), entry(&mem, map, 0));
    }
}

/// Names are kept as Solidity keeps strings: in one word up to 31 bytes, beyond it in words of their own.
#[test]
fn names_of_every_length_are_read_as_they_were_given() {
    let mut mem = Memory::new();
    for (n, length) in [0, 1, 31, 32, 33, 63, 64].into_iter().enumerate() {
        let name: Vec<u8> = (0..length).map(|i| b'a' + (i % 26) as u8).collect();
        assert_eq!((registry::gpu_group(&mem, &name, 24), registry::gpu_count(&mem, 24)), (None, n as u32));
        let group = registry::create_gpu_group(&mut mem, &name, 24).unwrap();
        assert_eq!(registry::gpu_group(&mem, &name, 24), Some(group));
        assert_eq!(registry::gpu_name(&mem, group).as_bytes(), name);
        let word = mem.load(entry(&mem, layout::GPU_NAMES, group.0 as u64));
        assert_eq!(word.0[0] & 0xff, 2 * length + u64::from(length > 31), "{length} bytes");
    }
    assert_eq!(registry::gpu_count(&mem, 25), 0);
}

/// The holders of a model against a vector, in as many words as they take.
#[test]
fn holders_stand_where_they_were_put() {
    for seed in 1..=20u64 {
        let (mut mem, mut d) = (Memory::new(), Dice(seed));
        let (one, other) = (ModelId(7), ModelId(8));
        Holders::load(&mem, other).push(&mut mem, NodeId(99));
        let mut there: Vec<NodeId> = Vec::new();
        assert!(Holders::load(&mem, one).is_empty());
        for step in 0..160u32 {
            let mut holders = Holders::load(&mem, one);
            if there.is_empty() || (step < 80) == (d.below(5) > 0) {
                holders.push(&mut mem, NodeId(step + 1));
                there.push(NodeId(step + 1));
            } else {
                let position = d.below(there.len() as u64) as u32;
                holders.swap_remove(&mut mem, position);
                there.swap_remove(position as usize);
            }
            // The words at hand are the stored ones.
            for holders in [holders, Holders::load(&mem, one)] {
                assert_eq!((holders.len() as usize, holders.is_empty()), (there.len(), there.is_empty()));
                let found: Vec<NodeId> = (0..holders.len()).map(|i| holders.get(&mem, i)).collect();
                assert_eq!(found, there);
            }
        }
        assert_eq!(Holders::load(&mem, other).get(&mem, 0), NodeId(99));
    }
}

/// The entries of a node's list that are not stale count, up to its length.
#[test]
fn a_node_holds_what_its_list_says() {
    let (mut mem, slot) = (Memory::new(), Word::from(1 << 40));
    for w in 0..2 {
        let [m0, m1, m2, m3, m4, m5] = core::array::from_fn(|i| ModelId(w * 6 + i as u64 + 1));
        // The second of each word is stale.
        let models = Models { m0, m1, m2, m3, m4, m5, flags: 2, used: 1 };
        mem.put(offset(slot, layout::node::MODELS + w), &models);
    }
    for entries in 0..=12u8 {
        for model in 1..=12u8 {
            let held = registry::count_held(&mem, slot, entries, &ModelSet::one(ModelId(model.into())));
            assert_eq!(held, u32::from(model <= entries && model % 6 != 2), "model {model} of {entries}");
        }
    }
}

/// All nodes in a field are found if they are at most so many, in as many reads as say where they stand. More of them are given up after no
/// more words than show that there are so many sizes.
#[test]
fn everybody_is_found_or_given_up_at_the_first_too_many() {
    let mut found = 0;
    for seed in 1..=30u64 {
        let (mut mem, mut d) = (Memory::new(), Dice(seed));
        mem.keep_logs = false;
        // One node at each of some sizes: of all words, of few, of one.
        let (words, dense) = ([31, 8, 2][seed as usize % 3], 2 + d.below(10));
        let sizes: Vec<u32> = (0..words * 31).filter(|_| d.below(dense) == 0).collect();
        for &size in &sizes {
            sampler::add_group(&mut mem, size, 0);
            sampler::insert(&mut mem, Among::Idle, GpuGroup::of(1, size as u16), 0, NodeId(size + 1));
        }
        for from in [0, 5, 31, 40, 61, 62, 900, 960] {
            let there: Vec<u32> = sizes.iter().copied().filter(|&size| size >= from).collect();
            let field = Field::new(&mem, Among::Idle, Scope::Vram(from));
            for most in [1, 2, 9, 23, 32, there.len() as u32, there.len() as u32 + 1] {
                // The first word is read with the field.
                let in_word = |word: u32| there.iter().filter(|&&size| size / 31 == word).count() as u32;
                let (mut counted, mut read) = (in_word(from / 31), 0);
                for here in (from / 31 + 1..31).map(in_word).filter(|&here| here > 0) {
                    if counted > most {
                        break;
                    }
                    (counted, read) = (counted + here, read + 1);
                }
                let began = mem.reads();
                let all = field.everybody(&mem, most, u32::MAX);
                let reads = mem.reads() - began;
                if there.len() as u32 > most {
                    assert_eq!((all, reads), (None, read), "more than {most} from {from}");
                } else {
                    // A word of models, counts and a list for each, and the words above them again.
                    let nodes: Vec<NodeId> = there.iter().map(|size| NodeId(size + 1)).collect();
                    assert_eq!((all, reads), (Some(nodes), 2 * read + 3 * there.len() as u32), "{most} from {from}");
                    found += 1;
                }
            }
        }
    }
    assert!(found > 500, "{found}");
}

/// Those that are chosen for a task are noted with it, however few, in their order; the rest of its order stays.
#[test]
fn a_ring_keeps_who_is_chosen_for_its_first_task() {
    for size in 3..=9u32 {
        let mut mem = Memory::new();
        let mut ring = Ring::of_tasks(&Head::default());
        let order = Order { id: TaskId(5), flags: 1, limit: 7, ..Order::default() };
        ring.push(&mut mem, &Task { escrow: Escrow::default(), order, models: ModelSet::default() }, 7);
        let (slot, order) = ring.first(&mem);
        let nodes: Vec<NodeId> = (0..size).map(|i| NodeId(100 - i)).collect();
        ring.choose(&mut mem, slot, &order.as_chosen(false), &nodes);
        assert_eq!((ring.chosen(&mem, slot), ring.len()), (nodes, 1));
        let now = ring.first(&mem).1;
        assert!(now.is_chosen() && !order.is_chosen());
        assert_eq!(now, order.as_chosen(false));
    }
}

/// A call that has served and read before makes another draw only while all its estimated words stay within those of a call. The estimate
/// is 24 for a task of one model or none, 96 for several.
#[test]
fn a_draw_is_left_to_later_calls_where_it_could_read_too_much() {
    for (models, words) in [(0, 24), (1, 24), (2, 96), (3, 96)] {
        let mut w = World::new();
        w.set("scorePool", 3);
        for n in 1..=4 {
            w.join(n, "RTX 4090", 24, &[], 400).unwrap();
        }
        w.create(7, TOKEN, spec(0, &(70..70 + models).collect::<Vec<_>>())).unwrap();
        w.pass(1, 0);
        let mem = w.mem.clone();
        let mut serve = |read: u32| {
            w.mem = mem.clone();
            let out = w.raw(who(9), 0, |m| {
                let before = m.reads();
                let served = Network::open(m)?.serve_for(8, 1, read);
                Ok((served, m.reads() - before))
            });
            out.unwrap()
        };
        let (served, own) = serve(SERVING_READS);
        assert_eq!(served, 1, "none");
        for read in 0..=SERVING_READS {
            assert_eq!(
                serve(read).0,
                if read + own + words <= SERVING_READS { 2 } else { 1 },
                "{models} models after {read} and {own}"
            );
        }
    }
}
