//! The dispatch tables: the calls that they accept, their answers, and that no malformed call gets through them.

use alloy_primitives::U256;
use alloy_sol_types::{sol_data, SolCall, SolInterface, SolType};
use muster_model::samples::{samples, wanted, Sample};
use muster_model::world::*;
use muster_protocol::abi::SOURCE;
use muster_protocol::codec::{Calldata, Out, Value};
use muster_protocol::dispatch::{declared, Mutability};
use muster_protocol::native::Memory;
use muster_protocol::programs::{answer, PROGRAMS};
use muster_protocol::IMuster::*;
use muster_protocol::Result;
use muster_protocol::{among, inner};
use std::collections::BTreeMap;

/// Random calls of each function.
const RANDOM: u64 = 1_000;
/// The calls that the router answers itself.
const ROUTERS: [u8; 4] = installCall::SELECTOR;

/// A world with running, queued and Pending tasks, an excluded node, and everything proposed that can be.
fn peopled() -> World {
    let mut w = World::new();
    w.set("exclusionPpm", 500_000);
    for n in 1..=4 {
        w.join(n, "RTX 4090", 24, &[1 + n % 3, 4], 400 * n as u128).unwrap();
    }
    for i in 0..7 {
        let models: &[u64] = if i % 2 == 0 { &[1, 2, 3] } else { &[] };
        w.create(50, TOKEN + i, spec(16, models)).unwrap();
        w.pass(1, 0);
        w.dispatch(16).unwrap();
    }
    let late = w.node(1);
    w.pass(1, 121);
    w.send(who(60), 0, expireCall { node: 1, id: late.task }).unwrap();
    w.create(50, TOKEN, wanted()).unwrap();
    // Nobody is idle: by itself it would be queued at once.
    w.send(who(50), TOKEN, createTasksCall { specs: vec![spec(8, &[3])], fees: vec![TOKEN], atomic: true }).unwrap();
    let selectors = vec![[1, 2, 3, 4].into(), submitCall::SELECTOR.into()];
    let facet = (who(71), vec![pauseCall::SELECTOR.into(), resumeCall::SELECTOR.into()]);
    w.raw(OWNER, 0, |m| muster_protocol::admin::propose_programs(m, facet.0, &facet.1)).unwrap();
    w.pass(0, UPGRADE_DELAY as u64);
    w.raw(OWNER, 0, |m| muster_protocol::admin::accept_programs(m, facet.0, &facet.1)).unwrap();
    w.send(OWNER, 0, proposeProgramsCall { program: who(70).into(), selectors }).unwrap();
    w.send(OWNER, 0, proposeParameterCall { parameter: parameter("unbonding"), value: U256::from(7_000) }).unwrap();
    w.send(OWNER, 0, proposeTreasuryCall { treasury: who(4).into() }).unwrap();
    w.send(OWNER, 0, transferOwnershipCall { newOwner: who(3).into() }).unwrap();
    let o = w.ask(overviewCall {});
    assert!(o.queued > 0 && o.pending > 0, "{o:?}");
    assert_eq!(w.ask(excludedNodesCall { from: 0, count: 9 }).numbers, [1]);
    w.mem.keep_logs = false;
    w
}

/// The answer that a call would give; none of its effects stay.
fn tried(w: &mut World, from: [u8; 20], value: u128, data: &[u8]) -> Result<Vec<u8>> {
    let mut said = None;
    let undone = w.raw(from, value, |m| {
        said = Some(answer(m, data));
        Err::<(), _>(refusal!(PausedByOwner))
    });
    assert!(undone.is_err());
    said.expect("answered")
}

#[track_caller]
fn malformed(w: &mut World, data: &[u8], what: &str) {
    let selector: [u8; 4] = data[..4].try_into().unwrap();
    let said = tried(w, who(1), 0, data).expect_err(what);
    assert_eq!(said, refusal!(MalformedCalldata(selector)), "{what}: {}", alloy_primitives::hex::encode(data));
}

#[test]
fn every_function_is_in_one_table() {
    let mut answered: BTreeMap<[u8; 4], &str> = BTreeMap::new();
    for (program, functions) in PROGRAMS {
        for function in functions {
            let hash = alloy_primitives::keccak256(function.signature);
            assert_eq!(hash[..4], function.selector, "{}", function.signature);
            assert!(function.signature.starts_with(&format!("{}(", function.name())), "{}", function.name());
            let other = answered.insert(function.selector, program);
            assert_eq!(other, None, "{} is in {program} and elsewhere", function.signature);
        }
    }
    let mut interface: Vec<[u8; 4]> = IMusterCalls::selectors().filter(|s| *s != ROUTERS).collect();
    interface.sort_unstable();
    assert_eq!(answered.into_keys().collect::<Vec<_>>(), interface);
    // And the samples are of every function too.
    let mut here: Vec<[u8; 4]> = samples().iter().map(|s| s.data[..4].try_into().unwrap()).collect();
    here.sort_unstable();
    assert_eq!(here, interface);
}

#[test]
fn the_source_tells_what_is_payable_and_what_reads() {
    let source = "
        function ab(uint8 x) external payable returns (uint8);
        function a(uint8 x) external;
        function b() external view returns (address payable);
        function c(address payable to) external;";
    for (signature, expected) in [
        ("a(uint8)", Some(Mutability::NonPayable)),
        ("ab(uint8)", Some(Mutability::Payable)),
        ("b()", Some(Mutability::View)),
        ("c(address)", Some(Mutability::NonPayable)),
        ("d()", None),
    ] {
        assert_eq!(declared(source, signature), expected, "{signature}");
    }
    let payable: Vec<&str> = IMusterCalls::SIGNATURES
        .iter()
        .copied()
        .filter(|signature| declared(SOURCE, signature) == Some(Mutability::Payable))
        .map(|signature| signature.split('(').next().unwrap())
        .collect();
    assert_eq!(payable.len(), 4, "{payable:?}");
    assert!(["join", "raiseStake", "createTask", "createTasks"].iter().all(|name| payable.contains(name)), "{payable:?}");
}

#[test]
fn value_is_refused_by_all_but_the_payable_four() {
    let mut w = peopled();
    for s in samples() {
        let payable = declared(SOURCE, s.signature) == Some(Mutability::Payable);
        for data in [&s.data[..], &s.data[..4]] {
            let said = tried(&mut w, who(1), 5, data);
            let refused = said == Err(refusal!(ValueNotAccepted(word(5))));
            assert_eq!(refused, !payable, "{}: {said:?}", s.signature);
        }
    }
    // Nobody answers it, so nobody says that it takes none.
    assert_eq!(tried(&mut w, who(1), 5, &[1, 2, 3, 4]), Err(refusal!(UnknownFunction([1, 2, 3, 4]))));
}

#[test]
fn what_no_table_has_is_unknown_and_less_than_a_selector_malformed() {
    let mut w = peopled();
    for length in 0..4 {
        assert_eq!(tried(&mut w, who(1), 0, &vec![7; length]), Err(refusal!(MalformedCalldata([0; 4]))));
    }
    for data in [&[7; 4][..], &[7; 100], &ROUTERS] {
        let selector: [u8; 4] = data[..4].try_into().unwrap();
        assert_eq!(tried(&mut w, who(1), 0, data), Err(refusal!(UnknownFunction(selector))));
    }
}

/// Calls between programs stand beside a program's own functions, and behind no selector of the router.
#[test]
fn a_program_answers_its_own_functions_and_what_others_ask_of_it() {
    type Run = fn(&mut Memory, &[u8]) -> Result<Vec<u8>>;
    let node = 2;
    let programs: [(&str, Run, Vec<Vec<u8>>); 4] = [
        ("nodes", among::nodes, vec![inner::departCall { node, kicked: 0 }.abi_encode()]),
        (
            "work",
            among::work,
            vec![
                inner::serveCall { most: 1, served: 0, read: 0 }.abi_encode(),
                inner::takeQueuedCall { node }.abi_encode(),
                inner::placeFreedCall { node, wait: 0 }.abi_encode(),
                inner::queueFirstCall {}.abi_encode(),
            ],
        ),
        ("draws", among::draws, vec![inner::formNextCall {}.abi_encode()]),
        ("reputation", among::reputation, vec![inner::formRatedCall {}.abi_encode()]),
    ];
    let mut w = peopled();
    let mut tried_by = |run: Run, data: &[u8]| {
        let mut said = None;
        let undone = w.raw(who(1), 0, |m| {
            said = Some(run(m, data));
            Err::<(), _>(refusal!(PausedByOwner))
        });
        assert!(undone.is_err());
        said.expect("answered")
    };
    for (name, run, asked) in programs {
        let own = PROGRAMS.iter().find(|(program, _)| *program == name).unwrap().1;
        for s in samples() {
            let selector: [u8; 4] = s.data[..4].try_into().unwrap();
            let expected = if own.iter().any(|f| f.selector == selector) {
                tried_by(answer, &s.data)
            } else {
                Err(refusal!(UnknownFunction(selector)))
            };
            assert_eq!(tried_by(run, &s.data), expected, "{name}, {}", s.signature);
        }
        for data in asked {
            let selector: [u8; 4] = data[..4].try_into().unwrap();
            // A number, of which the words read so far are a part.
            assert_eq!(tried_by(run, &data).map(|said| said.len()), Ok(32), "{name}");
            assert_eq!(tried_by(among::any, &data).map(|said| said.len()), Ok(32), "{name}");
            assert_eq!(tried_by(answer, &data), Err(refusal!(UnknownFunction(selector))));
        }
    }
}

/// The interface's own codec reads each answer, and writes the same.
#[test]
fn answers_are_as_the_interface_encodes_them() {
    let mut w = peopled();
    let mut whole = 0;
    for s in samples() {
        let reads = declared(SOURCE, s.signature) == Some(Mutability::View);
        for from in [OWNER, who(1), who(2), who(3), who(9), who(50)] {
            for value in [0, 804 * TOKEN] {
                match tried(&mut w, from, value, &s.data) {
                    Ok(answer) => {
                        assert_eq!((s.again)(&answer), answer, "{}", s.signature);
                        whole += 1;
                    }
                    Err(refusal) => {
                        refusal.decode();
                        assert!(!reads || value > 0, "{} refuses: {refusal:?}", s.signature);
                    }
                }
            }
        }
    }
    assert!(whole > 200, "{whole}");
}

/// Structs and lists of structs at lengths that matter.
#[test]
fn values_are_written_as_the_interface_encodes_them() {
    let written = |put: &dyn Fn(&mut Out)| {
        let mut out = Out::default();
        put(&mut out);
        out.0
    };
    for n in 0..4u64 {
        let models: Vec<u64> = (1..=n).collect();
        let node =
            NodeView { node: 7, operator: who(1).into(), models: models.clone(), inUse: models.clone(), ..NodeView::default() };
        let list = vec![node; n as usize];
        let ours = written(&|out| muster_protocol::codec::Answer::put_answer(list.clone(), out) as ());
        assert_eq!(ours, nodesCall::abi_encode_returns(&list));
    }
    for length in [0, 1, 31, 32, 33, 64] {
        let text = "x".repeat(length);
        let ours = written(&|out| {
            out.number(32);
            Value::<alloy_sol_types::sol_data::String>::put(text.clone(), out);
        });
        assert_eq!(ours, gpuNameCall::abi_encode_returns(&text));
    }
}

// ---------------------------------------------------------------- malformed calls

/// The contents of a word of well-formed arguments.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    /// A number of so many bits.
    Bits(usize),
    /// So many bytes at the word's beginning.
    Bytes(usize),
    Offset,
    Length,
}

/// The types of a list, such as `string,(uint8,uint64[])[],bool`.
fn types(list: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found.extend((!list.is_empty()).then_some(&list[from..]));
    found
}

fn number(data: &[u8], at: usize) -> usize {
    u64::from_be_bytes(data[at + 24..at + 32].try_into().unwrap()) as usize
}

/// The places of the words of arguments whose heads begin at `base`.
fn walk(kinds: &[&str], data: &[u8], base: usize, out: &mut Vec<(usize, Kind)>) {
    let mut next = base;
    for kind in kinds {
        let at = next;
        next += 32;
        if let Some(bits) = kind.strip_prefix("uint").filter(|bits| !bits.ends_with(']')) {
            out.push((at, Kind::Bits(bits.parse().unwrap())));
        } else if *kind == "bool" {
            out.push((at, Kind::Bits(1)));
        } else if *kind == "address" {
            out.push((at, Kind::Bits(160)));
        } else if let Some(bytes) = kind.strip_prefix("bytes").and_then(|bytes| bytes.parse().ok()) {
            out.push((at, Kind::Bytes(bytes)));
        } else if let Some(parts) =
            kind.strip_prefix('(').and_then(|parts| parts.strip_suffix(')')).filter(|parts| !parts.contains('['))
        {
            // A struct without a list stands where it is.
            let parts = types(parts);
            walk(&parts, data, at, out);
            next = at + parts.len() * 32;
        } else {
            out.push((at, Kind::Offset));
            let tail = base + number(data, at);
            if let Some(inner) = kind.strip_suffix("[]") {
                out.push((tail, Kind::Length));
                walk(&vec![inner; number(data, tail)], data, tail + 32, out);
            } else if let Some(parts) = kind.strip_prefix('(') {
                walk(&types(parts.strip_suffix(')').unwrap()), data, tail, out);
            } else {
                out.push((tail, Kind::Length));
            }
        }
    }
}

fn words_of(s: &Sample) -> Vec<(usize, Kind)> {
    let list = s.signature.split_once('(').unwrap().1.strip_suffix(')').unwrap();
    let mut words = Vec::new();
    walk(&types(list), &s.data[4..], 0, &mut words);
    words
}

#[test]
fn what_is_not_well_formed_is_refused_by_type() {
    let mut w = peopled();
    let mut tries = 0;
    for s in samples() {
        let good = &s.data;
        let mut wrong = |data: Vec<u8>, what: &str| {
            tries += 1;
            malformed(&mut w, &data, &format!("{}, {what}", s.signature));
        };
        // Without its last word something is always missing.
        for end in 4..good.len().saturating_sub(31) {
            wrong(good[..end].to_vec(), "cut");
        }
        for (at, kind) in words_of(&s) {
            let put = |bytes: [u8; 32]| [&good[..4 + at], &bytes, &good[36 + at..]].concat();
            let old: [u8; 32] = good[4 + at..36 + at].try_into().unwrap();
            let with = |byte: usize, bits: u8| {
                let mut dirty = old;
                dirty[byte] |= bits;
                put(dirty)
            };
            match kind {
                Kind::Bits(256) | Kind::Bytes(32) => {}
                Kind::Bits(bits) => {
                    wrong(with(31 - bits / 8, 1 << (bits % 8)), "the bit above");
                    wrong(with(0, 0x80), "the highest bit");
                }
                Kind::Bytes(bytes) => {
                    wrong(with(bytes, 0x80), "the bit below");
                    for byte in bytes..32 {
                        wrong(with(byte, 1), "a bit behind");
                    }
                    // The same in two parts of the word.
                    for (one, other) in [(bytes, 8), (8, 16), (16, 24)] {
                        let mut dirty = old;
                        dirty[one] |= 1;
                        dirty[other] |= 1;
                        wrong(put(dirty), "a bit twice");
                    }
                }
                Kind::Offset | Kind::Length => {
                    let there = number(good, 4 + at) as u64;
                    let end = good.len() as u64;
                    for n in [end, 3 * end, u64::from(u32::MAX), 1 << 32, (1 << 32) + there, u64::MAX - 31, u64::MAX] {
                        let mut far = [0; 32];
                        far[24..].copy_from_slice(&n.to_be_bytes());
                        wrong(put(far), &format!("{kind:?} {n}"));
                    }
                    for byte in [0, 15, 23] {
                        wrong(with(byte, 1), &format!("{kind:?} beyond 64 bits"));
                    }
                }
            }
        }
    }
    assert!(tries > 3_000, "{tries}");
}

/// Behind other arguments, and in a list, of which the interface has none yet.
#[test]
fn a_struct_of_words_is_read_wherever_it_stands() {
    type Types = (sol_data::Uint<64>, Profile, sol_data::Array<Profile>);
    let profile = |n: u8| Profile {
        algorithm: n,
        least: n + 1,
        most: n + 2,
        reschedules: n + 3,
        targeting: n + 4,
        target: n as u64 + 5,
        alpha: n as u64 + 6,
        period: n as u32 + 7,
    };
    let arguments = (7, profile(10), vec![profile(20), profile(30), profile(40)]);
    let data = [&[1, 2, 3, 4][..], &Types::abi_encode_params(&arguments)].concat();
    type Read = (u64, Profile, Vec<Profile>);
    let read: Read = Calldata::new(&data).unwrap().arguments::<Types, _>().unwrap();
    assert_eq!(read, arguments);
    let cut = Calldata::new(&data[..data.len() - 1]).unwrap().arguments::<Types, Read>();
    assert_eq!(cut.unwrap_err(), refusal!(MalformedCalldata([1, 2, 3, 4])));
}

#[test]
fn what_follows_the_arguments_is_not_looked_at() {
    let mut w = peopled();
    for s in samples() {
        for more in [1, 31, 32, 45] {
            let longer = [&s.data[..], &vec![0xee; more]].concat();
            for from in [OWNER, who(1)] {
                assert_eq!(tried(&mut w, from, 0, &longer), tried(&mut w, from, 0, &s.data), "{}", s.signature);
            }
        }
    }
}

/// A call with something in it changed.
fn mutated(d: &mut Dice, s: &Sample, words: &[(usize, Kind)]) -> Vec<u8> {
    let mut data = s.data.clone();
    for _ in 0..=d.below(3) {
        let within = data.len() as u64 - 4;
        if within < 32 {
            break;
        }
        let at = 4 + match d.below(3) {
            0 => d.below(within / 32) as usize * 32,
            _ => words[d.below(words.len() as u64) as usize].0.min(within as usize - 32),
        };
        match d.below(8) {
            0 => data.truncate(4 + d.below(within) as usize),
            1 => data[at + d.below(32) as usize] = d.bits() as u8,
            2 => data[at + 31] = d.bits() as u8,
            3 => data[at + d.below(32) as usize] ^= 1 << d.below(8),
            // Numbers that are often wrong, and often right.
            _ => {
                let n = match d.below(6) {
                    0 => d.below(12),
                    1 => d.below(within / 32 + 2) * 32,
                    2 => d.below(within + 40),
                    3 => u64::MAX >> d.below(64),
                    4 => 1 << d.below(64),
                    _ => d.bits(),
                };
                data[at..at + 24].fill(0);
                data[at + 24..at + 32].copy_from_slice(&n.to_be_bytes());
            }
        }
    }
    if d.below(8) == 0 {
        data.extend((0..d.below(70)).map(|_| d.bits() as u8));
    }
    data
}

/// Every call is answered, or refused by type, and means what the interface's own decoder reads from it.
#[test]
fn random_calls_mean_what_the_interface_reads_from_them() {
    let (mut w, mut d) = (peopled(), Dice(4));
    let people = [OWNER, who(1), who(2), who(3), who(9), who(50)];
    let (mut calls, mut accepted, mut bad) = (0u64, 0u64, 0u64);
    for s in samples() {
        let words = words_of(&s);
        let selector: [u8; 4] = s.data[..4].try_into().unwrap();
        for _ in 0..RANDOM {
            let data = mutated(&mut d, &s, &words);
            let from = people[d.below(people.len() as u64) as usize];
            let value = if d.below(3) == 0 { 804 * TOKEN } else { 0 };
            let said = tried(&mut w, from, value, &data);
            calls += 1;
            if said == Err(refusal!(MalformedCalldata(selector))) {
                bad += 1;
                // A call encoded exactly as the ABI demands is never refused for its form.
                let read = IMusterCalls::abi_decode_validate(&data);
                let strict = read.ok().filter(|call| call.abi_encode() == data);
                assert!(strict.is_none(), "{strict:?}");
                continue;
            }
            let strange = said == Err(refusal!(ValueNotAccepted(word(value))));
            if !strange {
                let read = IMusterCalls::abi_decode(&data).unwrap_or_else(|e| panic!("{}: {e}", s.signature));
                let plain = tried(&mut w, from, value, &read.abi_encode());
                // That decoder mends bytes that are no UTF-8.
                assert!(said == plain || format!("{read:?}").contains('\u{fffd}'), "{read:?}: {said:?}, {plain:?}");
            }
            match said {
                Ok(answer) => {
                    accepted += 1;
                    assert_eq!((s.again)(&answer), answer, "{}", s.signature);
                }
                Err(refusal) => drop(refusal.decode()),
            }
        }
    }
    assert!(bad > calls / 10 && accepted > calls / 20, "{bad} malformed and {accepted} accepted of {calls}");
    println!("{calls} calls, {bad} malformed, {accepted} accepted");
}
