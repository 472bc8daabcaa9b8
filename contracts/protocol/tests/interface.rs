//! Calls of contracts and explorers to the interface, beyond those that the network itself needs.

use alloy_sol_types::SolCall;
use muster_core::id::{NodeId, QueueId, Ticket};
use muster_core::word::Word;
use muster_model::refused;
use muster_model::world::*;
use muster_protocol::layout::{entry, RECEIPTS, STORES};
use muster_protocol::native::{Memory, HERE};
use muster_protocol::programs::answer;
use muster_protocol::IMuster::{IMusterEvents as E, *};
use muster_protocol::{host::offset, Host};

const FEE: u128 = 1_000_000;

fn flagged(flags: u32) -> TaskSpec {
    TaskSpec { flags, ..spec(0, &[]) }
}

/// A world with this many nodes whose tasks are drawn in the next block.
fn world(nodes: u64) -> World {
    muster_model::world::world(nodes, 1)
}

fn draw(w: &mut World) {
    w.pass(1, 1);
    w.dispatch(16).unwrap();
}

/// The node that runs a task.
fn runner(w: &mut World, id: u64) -> u32 {
    (1..=9).find(|&number| w.ask(runningTaskCall { number }).id == id).expect("it runs")
}

#[test]
fn a_receipt_tells_every_end_and_is_there_only_where_asked_for() {
    let mut w = world(3);
    refused!(w.create(5, FEE, flagged(2)), FlagsUnsupported(2u32));
    refused!(w.create(5, FEE, flagged(u32::MAX)), FlagsUnsupported(u32::MAX));
    let plain = w.create(5, FEE, flagged(0)).unwrap();
    let ids: Vec<u64> = (0..3).map(|_| w.create(5, FEE, flagged(1)).unwrap()).collect();
    let open = Outcome { state: 1, node: 0, code: 0, ended: 0, refund: 0, resultDigest: [0; 32].into() };
    let none = Outcome { state: 0, ..open.clone() };
    assert_eq!(w.ask(outcomeCall { id: plain }), none);
    assert_eq!(w.ask(outcomeCall { id: 99 }), none);
    assert!(ids.iter().all(|&id| w.ask(outcomeCall { id }) == open));
    draw(&mut w);
    // Three run, the fourth is queued. Not one more word has been written for a receipt.
    let queued = *ids.last().unwrap();
    assert!(ids.iter().all(|&id| w.ask(outcomeCall { id }) == open));
    let ends = w.mem.now + 7;
    w.pass(1, 7);
    let [a, b] = [ids[0], ids[1]].map(|id| (id, runner(&mut w, id)));
    w.send(who(a.1 as u64), 0, submitCall { id: a.0, resultDigest: [9; 32].into() }).unwrap();
    assert_eq!(
        w.ask(outcomeCall { id: a.0 }),
        Outcome { state: 2, node: a.1, ended: ends, resultDigest: [9; 32].into(), ..open.clone() }
    );
    w.send(who(b.1 as u64), 0, reportErrorCall { id: b.0, code: 77 }).unwrap();
    assert_eq!(
        w.ask(outcomeCall { id: b.0 }),
        Outcome { state: 3, node: b.1, ended: ends, code: 77, refund: FEE / 100 * 98, ..open.clone() }
    );
    // The first of them took the queued task; it times out.
    let slow = runner(&mut w, queued);
    w.pass(1, 121);
    w.send(who(50), 0, expireCall { node: slow, id: queued }).unwrap();
    assert_eq!(
        w.ask(outcomeCall { id: queued }),
        Outcome { state: 4, node: slow, ended: w.mem.now, refund: FEE / 100 * 98, ..open.clone() }
    );
}

#[test]
fn a_receipt_tells_the_ends_of_queued_tasks() {
    let mut w = world(1);
    w.set("alphaMilli", 2_000);
    w.create(5, FEE, flagged(0)).unwrap();
    let ids: Vec<u64> = (0..3).map(|i| w.create(5, FEE + i, flagged(1)).unwrap()).collect();
    draw(&mut w);
    draw(&mut w);
    // Two places: the first, of the least value, had to go.
    let ended = w.mem.now;
    let outcome = |w: &mut World, id: u64| w.ask(outcomeCall { id });
    let end = |state, ended, refund| Outcome { state, node: 0, code: 0, ended, refund, resultDigest: [0; 32].into() };
    let gone = outcome(&mut w, ids[0]);
    assert_eq!(gone, end(6, gone.ended, FEE));
    assert!(gone.ended > 0 && gone.ended <= ended);
    let ticket = w.ticket(ids[1]);
    w.send(who(5), 0, cancelCall { id: ids[1], ticket }).unwrap();
    assert_eq!(outcome(&mut w, ids[1]), end(5, w.mem.now, FEE + 1 - FEE / 50));
    let ticket = w.ticket(ids[2]);
    w.pass(1, 30_000);
    w.send(who(6), 0, expireQueuedCall { id: ids[2], ticket }).unwrap();
    assert_eq!(outcome(&mut w, ids[2]), end(7, w.mem.now, FEE + 2 - FEE / 50));
}

/// The call that ends the task changes words of the receipt and initialises none; creators that did not ask for one pay nothing for it.
#[test]
fn a_receipts_words_are_made_by_who_wants_them() {
    let touched = |w: &World, id: u64| {
        let at = entry(&w.mem, RECEIPTS, id);
        [at, offset(at, 1)].map(|slot| !w.mem.load(slot).is_zero())
    };
    let mut w = world(1);
    let id = w.create(5, FEE, flagged(1)).unwrap();
    assert_eq!(touched(&w, id), [true, true]);
    let plain = w.create(5, FEE, flagged(0)).unwrap();
    draw(&mut w);
    w.send(who(1), 0, submitCall { id, resultDigest: [0; 32].into() }).unwrap();
    assert_eq!(w.ask(outcomeCall { id }).resultDigest, [0; 32], "an empty digest is a digest too");
    assert_eq!(touched(&w, plain), [false, false]);
}

#[test]
fn a_task_is_located_wherever_it_is() {
    let mut w = world(1);
    let none = w.ask(locateCall { id: 1, nodeHint: 0, ticketHint: 0 });
    assert_eq!((none.id, none.status), (0, 0));
    let at = |w: &mut World, id: u64, node: u32, ticket: u64| w.ask(locateCall { id, nodeHint: node, ticketHint: ticket });
    let ids: Vec<u64> = (0..9).map(|i| w.create(5, FEE + i, flagged(i as u32 & 1)).unwrap()).collect();
    for (i, &id) in ids.iter().enumerate() {
        let v = at(&mut w, id, 0, 0);
        assert_eq!((v.id, v.status, v.drawBlock, v.flags), (id, 1, w.mem.block, i as u32 & 1));
    }
    // Hashes that are gone: the first is last now, and is found all the same.
    w.pass(muster_protocol::host::HISTORY + 10, 1);
    w.dispatch(4).unwrap();
    let waiting: Vec<u64> = w.ask(pendingTasksCall { from: 0, count: 256 }).iter().map(|t| t.id).collect();
    assert_eq!(waiting, [5, 6, 7, 8, 9, 1, 2, 3, 4]);
    for &id in &ids {
        assert_eq!(at(&mut w, id, 1, 1 << 32).id, id);
    }
    w.dispatch(16).unwrap();
    w.pass(1, 1);
    w.dispatch(16).unwrap();
    let running = w.ask(runningTaskCall { number: 1 });
    assert_eq!((running.status, running.node, running.deadline), (3, 1, w.mem.now + 120));
    assert_eq!(at(&mut w, running.id, 1, 0), running);
    assert_eq!(at(&mut w, running.id, 0, 0).status, 0, "not without its node");
    let (total, queues) = {
        let q = w.ask(queuesCall { from: 0, count: 9 });
        (q.total, q._1)
    };
    assert_eq!((total, queues.len(), queues[0].queue, queues[0].queued), (1, 1, 0, 2));
    let best = w.ask(bestQueuedCall { number: 1 });
    assert_eq!((best.status, best.queuedAt, best.queueKey), (2, w.mem.now, queues[0].best));
    assert_eq!(at(&mut w, best.id, 0, best.ticket), best);
    assert_eq!(at(&mut w, best.id, 0, best.ticket + 1).status, 0, "not under another ticket");
    // The better of the two is served first.
    let other = w.ask(queuedTasksCall { queue: 0, from: 0, count: 9 })._1.into_iter().find(|t| t.id != best.id).unwrap();
    let before = |w: &mut World, ticket: u64| w.ask(queuedBeforeCall { ticket, from: 0, count: 256 }).before;
    assert_eq!((before(&mut w, best.ticket), before(&mut w, other.ticket), before(&mut w, u64::MAX)), (0, 1, 0));
    let free = Ticket::new(QueueId(0), 77);
    assert_eq!(before(&mut w, free.0), 0, "nothing waits there");
}

#[test]
fn a_task_tells_how_its_answer_is_checked() {
    const CARD: u32 = 1 << 16 | 24;
    let mut w = world(40);
    w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: true }).unwrap();
    w.set("sampleBps", 3_000);
    for redundancy in 0..=3 {
        w.create(5, FEE, TaskSpec { redundancy, gpu: CARD, ..spec(0, &[]) }).unwrap();
    }
    let told = |t: &TaskView| (t.redundancy, t.sampleBps);
    let policies = [(0, 0), (1, 3_000), (2, 0), (3, 0)];
    assert_eq!(w.ask(pendingTasksCall { from: 0, count: 9 }).iter().map(told).collect::<Vec<_>>(), policies);
    for _ in 0..4 {
        draw(&mut w);
    }
    for (id, policy) in (1..).zip(policies) {
        let task = (1..=40).map(|number| w.ask(runningTaskCall { number })).find(|task| task.id == id).expect("it runs");
        assert_eq!(told(&task), policy);
        let group = w.ask(groupCall { place: task.group });
        assert_eq!(task.group > 0, id > 2);
        assert!(task.group == 0 || (group.redundancy, group.sampleBps) == policy, "{group:?}");
    }
}

/// Pending, queued, running, and in a group: one word for up to six, and a second one.
#[test]
fn a_task_names_its_models_wherever_it_is() {
    for n in 0..=8 {
        let models: Vec<u64> = (1..=n).collect();
        let mut w = world(1);
        let ids = [(); 2].map(|()| w.create(5, FEE, spec(0, &models)).unwrap());
        assert!(w.ask(pendingTasksCall { from: 0, count: 9 }).iter().all(|t| t.models == models), "{n} Pending");
        draw(&mut w);
        assert_eq!(w.ask(runningTaskCall { number: 1 }).models, models, "running");
        let ticket = w.ticket(ids[1]);
        assert_eq!(w.ask(locateCall { id: ids[1], nodeHint: 0, ticketHint: ticket }).models, models, "queued");
        w.send(who(1), 0, submitCall { id: ids[0], resultDigest: [9; 32].into() }).unwrap();
        let task = w.ask(runningTaskCall { number: 1 });
        assert_eq!((task.id, &task.models), (ids[1], &models), "from the queue");
        assert_eq!(w.node(1).inUse, models);

        let mut w = world(3);
        w.send(OWNER, 0, listGpuGroupCall { group: 1 << 16 | 24, listed: true }).unwrap();
        w.create(5, FEE, TaskSpec { redundancy: 2, ..spec(0, &models) }).unwrap();
        draw(&mut w);
        for number in 1..=3 {
            let task = w.ask(runningTaskCall { number });
            assert_eq!((task.status, &task.models), (6, &models), "in a group");
        }
    }
}

#[test]
fn a_page_too_long_is_refused() {
    let mut w = world(1);
    let long = 257u32;
    macro_rules! long {
        ($($call:expr),*) => {$(refused!(w.send(who(1), 0, $call), PageTooLong(long, 256u32));)*};
    }
    long!(
        idleNodesCall { group: 1 << 16 | 24, class: 0, from: 0, count: long },
        holdersCall { model: 1, from: 0, count: long },
        excludedNodesCall { from: 0, count: long },
        pendingTasksCall { from: 0, count: long },
        queuesCall { from: 0, count: long },
        queuedTasksCall { queue: 0, from: 0, count: long },
        queuedBeforeCall { ticket: 0, from: 0, count: long }
    );
    refused!(w.send(who(1), 0, nodesCall { from: 1, count: 65 }), PageTooLong(65u32, 64u32));
    assert_eq!(w.ask(nodesCall { from: 0, count: 64 }).len(), 1);
}

#[test]
fn a_node_says_until_when_it_waits() {
    let mut w = world(1);
    w.set("drawDelay", 0);
    w.set("penaltyPpm", 200_000);
    let v = w.node(1);
    assert_eq!((v.parked, v.parkedUntil), (0, 0));
    for _ in 0..2 {
        let id = w.create(5, FEE, spec(0, &[])).unwrap();
        w.pass(1, 121);
        w.send(who(50), 0, expireCall { node: 1, id }).unwrap();
    }
    let v = w.node(1);
    assert!(v.excluded && v.parked == 1 && v.parkedUntil > w.mem.now && v.parkedUntil < w.mem.now + 191, "{v:?}");
    assert!(w.events().iter().any(|e| matches!(e, E::NodeExcluded(x) if x.until == v.parkedUntil)));
    w.pass(1, v.parkedUntil - w.mem.now);
    w.send(who(50), 0, pokeCall { node: 1 }).unwrap();
    let v = w.node(1);
    assert_eq!((v.excluded, v.parked, v.parkedUntil), (false, 0, 0));
    assert_eq!(w.view(|n| n.node_view(NodeId(1))).unwrap(), v);
}

#[test]
fn what_is_offered_can_be_read() {
    let mut w = World::new();
    assert_eq!(w.ask(pendingOwnerCall {}), [0; 20]);
    w.send(OWNER, 0, transferOwnershipCall { newOwner: who(3).into() }).unwrap();
    assert_eq!(w.ask(pendingOwnerCall {}), who(3));
    let none = w.ask(pendingTreasuryCall {});
    assert_eq!((none.treasury.into_array(), none.effective), ([0; 20], 0));
    w.send(OWNER, 0, proposeTreasuryCall { treasury: who(4).into() }).unwrap();
    let next = w.ask(pendingTreasuryCall {});
    assert_eq!((next.treasury.into_array(), next.effective), (who(4), w.mem.now + 2 * 86_400));
    refused!(w.send(who(1), 0, gpuGroupCall { name: "A".into(), vram: 24 }), GpuNameUnknown(&b"A"[..], 24u16));
}

#[test]
fn the_diamond_tells_of_itself_from_its_installation_on() {
    let mut mem = Memory::created_by(OWNER);
    let facet = |n: u8, list: &[[u8; 4]]| Facet {
        facetAddress: [n; 20].into(),
        functionSelectors: list.iter().map(|&s| s.into()).collect(),
    };
    let programs = [facet(1, &[[1; 4], [2; 4]]), facet(2, &[[3; 4]])];
    mem.call(|m| muster_protocol::admin::initialise(m, &genesis(), &programs)).unwrap();
    let mut w = World { mem, ..World::new() };
    let cuts = |w: &mut World| -> Vec<FacetCut> {
        w.events().into_iter().filter_map(|e| if let E::DiamondCut(d) = e { Some(d.cuts) } else { None }).flatten().collect()
    };
    let cut = |n: u8, action: u8, list: &[[u8; 4]]| {
        let Facet { facetAddress, functionSelectors } = facet(n, list);
        FacetCut { facetAddress, action, functionSelectors }
    };
    let own = FacetCut { facetAddress: HERE.into(), ..cut(0, 0, &[install_selector()]) };
    assert_eq!(cuts(&mut w), [own, cut(1, 0, &[[1; 4], [2; 4]]), cut(2, 0, &[[3; 4]])]);
    // One more, one of another program's, one not known: added and replaced, each told for itself.
    let change = facet(2, &[[2; 4], [4; 4]]);
    let (program, selectors) = (change.facetAddress, change.functionSelectors);
    w.send(OWNER, 0, proposeProgramsCall { program, selectors: selectors.clone() }).unwrap();
    w.pass(1, UPGRADE_DELAY as u64);
    w.send(who(9), 0, acceptProgramsCall { program, selectors }).unwrap();
    assert_eq!(cuts(&mut w), [cut(2, 0, &[[4; 4]]), cut(2, 1, &[[2; 4]])]);
    let (program, selectors) = ([0; 20].into(), vec![[1; 4].into(), [9; 4].into()]);
    w.send(OWNER, 0, proposeProgramsCall { program, selectors: selectors.clone() }).unwrap();
    w.pass(1, UPGRADE_DELAY as u64);
    w.send(who(9), 0, acceptProgramsCall { program, selectors }).unwrap();
    assert_eq!(cuts(&mut w), [cut(0, 2, &[[1; 4]])], "what nothing answered is not removed");
    let mut facets = w.ask(facetsCall {});
    facets.iter_mut().for_each(|f| f.functionSelectors.sort());
    let own = Facet { facetAddress: HERE.into(), functionSelectors: vec![install_selector().into()] };
    assert_eq!(facets, [own, facet(2, &[[2; 4], [3; 4], [4; 4]])]);
    assert_eq!(w.ask(facetAddressCall { selector: install_selector().into() }), HERE);
    assert_eq!(w.ask(facetAddressesCall {}), [HERE, [2; 20]]);
}

fn install_selector() -> [u8; 4] {
    <installCall as alloy_sol_types::SolCall>::SELECTOR
}

#[test]
fn the_interface_knows_its_own_id() {
    let mut w = World::new();
    let id = <IMusterCalls as alloy_sol_types::SolInterface>::selectors()
        .fold([0u8; 4], |id, s| std::array::from_fn(|i| id[i] ^ s[i]));
    for (known, id) in
        [(true, id), (true, [0x01, 0xff, 0xc9, 0xa7]), (true, [0x48, 0xe2, 0xb0, 0x93]), (false, [0xff; 4]), (false, [0; 4])]
    {
        assert_eq!(w.ask(supportsInterfaceCall { interfaceId: id.into() }), known);
    }
}

#[test]
fn an_account_says_where_its_bytes_are() {
    let mut w = World::new();
    let set = |w: &mut World, by: u64, uris: &str| w.send(who(by), 0, setStoresCall { uris: uris.into() });
    let of = |w: &mut World, n: u64| w.ask(storesOfCall { account: who(n).into() });
    assert_eq!(of(&mut w, 50), "");
    // One in a word, the longest that fits one, one that does not, the longest of all; and back to none.
    let long = format!("https://a.example/{} s3://bucket/results", "p".repeat(218));
    assert_eq!(long.len(), 256);
    for uris in ["https://results.example/of/one", &"x".repeat(31), &"x".repeat(32), &long, &"y".repeat(33), "z", &long, ""] {
        set(&mut w, 50, uris).unwrap();
        assert!(matches!(&w.events()[..], [.., E::StoresSet(s)] if s.account == who(50) && s.uris == uris));
        assert_eq!(of(&mut w, 50), uris);
        // As Solidity leaves it: in the slot the length, behind its hash the rest, and nothing of a longer one before.
        let slot = w.raw(OWNER, 0, |m| Ok(m.mapping(STORES, Word::from(who(50))))).unwrap();
        let first = Word::from_be_bytes(alloy_primitives::keccak256(slot.to_be_bytes()).0);
        let behind: Vec<bool> = w.raw(OWNER, 0, |m| Ok((0..9).map(|i| !m.load(offset(first, i)).is_zero()).collect())).unwrap();
        let words = if uris.len() < 32 { 0 } else { uris.len().div_ceil(32) };
        assert_eq!(behind, (0..9).map(|i| i < words).collect::<Vec<_>>(), "{uris}");
        let head = w.raw(OWNER, 0, |m| Ok(m.load(slot))).unwrap();
        assert_eq!(head.0[0] & 0xff, if words == 0 { uris.len() as u64 * 2 } else { (uris.len() as u64 * 2 + 1) & 0xff });
    }
    refused!(set(&mut w, 50, &"x".repeat(257)), StoresTooLong(257usize, 256usize));
    for (uris, at) in [(" a", 0), ("a ", 1), ("a  b", 2), ("a\nb", 1), ("a\tb", 1), ("aé", 1), ("a b\u{7f}", 3), (" ", 0)] {
        refused!(set(&mut w, 50, uris), BadStores(at as usize));
    }
    // Bytes that are no UTF-8, as no library would send them.
    let mut data = setStoresCall { uris: "abcd".into() }.abi_encode();
    data[4 + 64 + 2] = 0xff;
    let said = w.raw(who(50), 0, |m| answer(m, &data));
    assert_eq!(said, Err(refusal!(BadStores(2usize))));
    // A length beyond the data, and one that no memory holds.
    for length in [33u8, 0xff] {
        let mut data = setStoresCall { uris: "abcd".into() }.abi_encode();
        data[4 + 32 + 31] = length;
        data[4 + 32 + 28] = length & 0x80;
        assert_eq!(w.raw(who(50), 0, |m| answer(m, &data)), Err(refusal!(MalformedCalldata(setStoresCall::SELECTOR))));
    }
    assert_eq!(of(&mut w, 50), "");
}

/// A worker's key is on the machine that has the results: it speaks for its node, and an entry of its own stays as it was.
#[test]
fn a_worker_says_where_its_nodes_bytes_are() {
    let mut w = World::new();
    w.join(1, "RTX 4090", 24, &[], 400).unwrap();
    let set = |w: &mut World, by: u64, uris: &str| w.send(who(by), 0, setStoresCall { uris: uris.into() });
    let of = |w: &mut World, n: u64| w.ask(storesOfCall { account: who(n).into() });
    set(&mut w, 90, "https://own.example").unwrap();
    w.send(who(1), 0, setWorkerCall { worker: who(90).into() }).unwrap();
    set(&mut w, 90, "https://named.only").unwrap();
    assert_eq!((of(&mut w, 1), of(&mut w, 90)), (String::new(), "https://named.only".into()));
    w.send(who(90), 0, acceptWorkCall { node: 1 }).unwrap();
    set(&mut w, 90, "https://node.example").unwrap();
    assert!(matches!(&w.events()[..], [.., E::StoresSet(s)] if s.account == who(1)));
    assert_eq!((of(&mut w, 1), of(&mut w, 90)), ("https://node.example".into(), "https://named.only".into()));
    // The operator has the last word, before and after it left.
    set(&mut w, 1, "").unwrap();
    assert_eq!(of(&mut w, 1), "");
    w.send(who(90), 0, leaveWorkCall {}).unwrap();
    set(&mut w, 90, "").unwrap();
    set(&mut w, 1, "s3://b").unwrap();
    assert_eq!((of(&mut w, 1), of(&mut w, 90)), ("s3://b".into(), String::new()));
}

#[test]
fn a_models_name_is_logged_once() {
    let mut w = World::new();
    let name = |w: &mut World, by: u64, name: &str| w.send(who(by), 0, nameModelCall { name: name.into() });
    // keccak256("stabilityai/sdxl-turbo") begins with the id.
    let id = name(&mut w, 1, "stabilityai/sdxl-turbo").unwrap();
    let hash = alloy_primitives::keccak256("stabilityai/sdxl-turbo");
    assert_eq!(id.to_be_bytes()[3..], hash[..5]);
    assert!(matches!(&w.events()[..], [.., E::ModelNamed(m)] if m.model == id && m.name == "stabilityai/sdxl-turbo"));
    refused!(name(&mut w, 2, "stabilityai/sdxl-turbo"), ModelHasName(id));
    let long = "m".repeat(129);
    refused!(name(&mut w, 1, &long), BadModelName(129usize, 128usize));
    refused!(name(&mut w, 1, ""), BadModelName(0usize, 128usize));
    refused!(name(&mut w, 1, "a\tb"), BadModelName(3usize, 128usize));
    name(&mut w, 1, &long[..128]).unwrap();
}
