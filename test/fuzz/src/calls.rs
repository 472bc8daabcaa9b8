//! Bytes as calls, one after the other, of a network in which there is something of everything.
//!
//! A call is a function's place in the list of all, its caller, its value, how much later it comes, and the words of its arguments, each of
//! a byte or more (see `put_word`). So mutations change one argument and leave the others where they are.

use crate::bytes::Bytes;
use alloy_primitives::{B256, U256};
use alloy_sol_types::SolInterface;
use muster_core::word::Address;
use muster_model::properties;
use muster_model::validated::{alike, busy, commit, created, network, rated, submit, value, ANSWER, CARD, CREATOR};
use muster_model::world::{commitment, decode, name_of, spec, who, World, OWNER, TOKEN, TREASURY};
use muster_protocol::abi::{IMuster::*, SOURCE};
use muster_protocol::dispatch::{declared, Function, Mutability};
use muster_protocol::native::HERE;
use muster_protocol::programs::{self, PROGRAMS};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Most calls of an input.
const MOST: usize = 24;
/// Most bytes of a call's data.
const LONGEST: usize = 4_096;
/// People by number; the first are the nodes' operators.
const PEOPLE: u64 = 12;
/// Wei that come with a call.
const VALUES: [u128; 12] = [0, 0, 0, 0, 1, TOKEN / 1_000, TOKEN, 3 * TOKEN, 400 * TOKEN, 401 * TOKEN, 1 << 87, u128::MAX >> 30];
/// Seconds between two calls.
const SECONDS: [u64; 8] = [0, 0, 1, 30, 120, 4_000, 86_400, 200_000];
/// Ends a call's words.
const END: u8 = 0xff;

/// All functions.
fn functions() -> &'static [Function] {
    static ALL: OnceLock<Vec<Function>> = OnceLock::new();
    ALL.get_or_init(|| PROGRAMS.iter().flat_map(|(_, functions)| functions.iter().copied()).collect())
}

/// By error, which functions give it; none where it is the router's.
fn refusals() -> &'static BTreeMap<String, BTreeSet<String>> {
    static ALL: OnceLock<BTreeMap<String, BTreeSet<String>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let list: serde_json::Value = serde_json::from_str(include_str!("../../../abi/refusals.json")).expect("JSON");
        let text = |value: &serde_json::Value| value.as_str().expect("a name").to_string();
        let by = |row: &serde_json::Value| row["by"].as_array().map(|by| by.iter().map(text).collect()).unwrap_or_default();
        list.as_array().expect("a list").iter().map(|row| (text(&row["name"]), by(row))).collect()
    })
}

/// A network in which there is something of everything. Nodes run single tasks, one has committed, and there are a group of three, a rated
/// one, queued and Pending tasks, an ended one, a paused node, and proposals of the owner's.
fn prepared() -> World {
    let mut w = network(9);
    w.set("slashTimes", 20);
    w.send(OWNER, 0, nameModelCall { name: "sdxl".into() }).expect("a name");
    let model = w.send(OWNER, 0, nameModelCall { name: "llama".into() }).expect("a name");
    w.send(who(1), 0, reportDownloadedCall { models: vec![model] }).expect("a model");
    w.send(who(2), 0, setWorkerCall { worker: who(10).into() }).expect("a worker");
    w.send(who(3), 0, setStoresCall { uris: "https://a.example/x ipfs+https://b.example".into() }).expect("stores");
    let singles = busy(&mut w, 2);
    submit(&mut w, singles[0]);
    let checked = created(&mut w, 3 * TOKEN, muster_protocol::IMuster::TaskSpec { redundancy: 1, gpu: CARD, ..spec(0, &[]) });
    if let Some(node) = (1..=9).find(|&n| w.ask(runningTaskCall { number: n }).id == checked) {
        commit(&mut w, checked, node, ANSWER, value(1)).expect("a commitment");
    }
    created(&mut w, 3 * TOKEN, alike(0));
    created(&mut w, 9 * TOKEN, rated());
    for _ in 0..4 {
        created(&mut w, TOKEN, spec(0, &[model]));
    }
    w.send(who(9), 0, pauseCall {}).ok();
    w.create(CREATOR, TOKEN, spec(0, &[])).expect("a Pending task");
    w.send(OWNER, 0, proposeParameterCall { parameter: 0, value: U256::from(1) }).ok();
    w.send(OWNER, 0, proposeTreasuryCall { treasury: TREASURY.into() }).expect("a proposal");
    w.send(OWNER, 0, transferOwnershipCall { newOwner: who(11).into() }).expect("a proposal");
    w.mem.refusing.extend([HERE, who(12)]);
    w
}

fn from(b: &mut Bytes) -> Address {
    match b.byte() {
        0 => OWNER,
        1 => who(CREATOR),
        2 => TREASURY,
        n => who(u64::from(n) % PEOPLE + 1),
    }
}

/// The next word of a call's data; none at its end.
pub(crate) fn put_word(b: &mut Bytes, data: &mut Vec<u8>, seen: &[B256]) -> bool {
    let word = match b.byte() {
        END => return false,
        small @ ..=0x7f => U256::from(small).into(),
        0x80 => U256::from(b.number()).into(),
        0x81 => {
            let taken = b.take(32);
            let mut word = [0; 32];
            word[..taken.len()].copy_from_slice(taken);
            word.into()
        }
        0x82 => alloy_primitives::Address::from(from(b)).into_word(),
        0x83 if !seen.is_empty() => seen[b.byte() as usize % seen.len()],
        0x84 => B256::repeat_byte(0xff),
        // Text, or bytes of a selector: at the front of a word.
        0x85 => {
            let length = b.below(33) as usize;
            let taken = b.take(length);
            let mut word = [0; 32];
            word[..taken.len()].copy_from_slice(taken);
            word.into()
        }
        0x86 => commitment(b.number() & 0xff, b.byte().into(), b.byte() & 1, value(b.byte()), value(b.byte())),
        0x87 => value(b.byte()),
        0x88 => U256::from(CARD).into(),
        0x89 => U256::from(TOKEN).into(),
        0x8a => {
            data.truncate(data.len().saturating_sub(b.byte().into()));
            return true;
        }
        0x8b => B256::with_last_byte(b.byte()),
        // A stretch as it stands.
        0x8c => {
            let length = b.byte().into();
            data.extend(b.take(length));
            return true;
        }
        other => B256::repeat_byte(other),
    };
    data.extend(word);
    data.len() < LONGEST
}

/// Money that came in and did not go out belongs to somebody, or to something.
fn check_money(w: &mut World) {
    let people = (0..=PEOPLE + 1).chain([CREATOR, 60, 999]).map(who).chain([OWNER, TREASURY, HERE]);
    let came = w.paid_in - w.mem.paid;
    w.view(|net| properties::money(net, people, properties::fees_held(net), came))
        .expect("what is somebody's, and what is there");
}

/// Makes a call, and checks its outcome.
fn call(w: &mut World, caller: Address, wei: u128, data: &[u8]) {
    let function = data.first_chunk().and_then(|selector| functions().iter().find(|f| f.selector == *selector));
    let ours = IMusterCalls::abi_decode_validate(data).ok().map(|call| call.abi_encode());
    let canonical = ours.as_deref() == Some(data);
    let before = w.clone();
    let known = w.mem.logs.len();
    let out = w.raw(caller, wei, |m| programs::answer(m, data));
    for log in &w.mem.logs[known..] {
        decode(&log.topics, &log.data);
    }
    match out {
        Err(refusal) => {
            let bytes = refusal.into_bytes();
            let error = IMusterErrors::abi_decode_validate(&bytes).expect("an error of the interface");
            assert_eq!(error.abi_encode(), bytes, "encoded as the ABI demands");
            let name = name_of(&bytes);
            let by = refusals().get(&name).expect("an error that abi/refusals.json has");
            match function {
                Some(f) => assert!(by.contains(f.name()), "{} gives {name}, which abi/refusals.json says of {by:?}", f.name()),
                None => assert!(["UnknownFunction", "MalformedCalldata"].contains(&name.as_str()), "{name} of no function"),
            }
            assert!(
                !(canonical && function.is_some() && name == "MalformedCalldata"),
                "{} takes its own",
                function.unwrap().name()
            );
        }
        Ok(answer) => {
            let function = function.expect("nothing else is answered");
            if declared(SOURCE, function.signature) == Some(Mutability::View) {
                assert_eq!(w.mem.written().next(), None, "{} only reads", function.name());
            }
            if !canonical {
                // Read in another way, it is the same call.
                let Ok(read) = IMusterCalls::abi_decode(data) else { panic!("{} takes what is no call", function.name()) };
                let mut other = before;
                let again = other.raw(caller, wei, |m| programs::answer(m, &read.abi_encode()));
                assert!(again.as_deref() == Ok(&answer[..]), "{}: {read:?} gives something else", function.name());
                assert!(other.mem.logs == w.mem.logs, "{}: {read:?} does something else", function.name());
            }
        }
    }
    if w.mem.written().next().is_some() || wei > 0 {
        check_money(w);
    }
}

/// Makes the calls that bytes say; panics where something is wrong.
pub fn run(data: &[u8]) {
    thread_local!(static START: World = prepared());
    let mut w = START.with(World::clone);
    let mut seen: Vec<B256> = Vec::new();
    let mut b = Bytes(data);
    for _ in 0..MOST {
        if b.is_empty() {
            break;
        }
        let which = b.byte() as usize;
        let mut data = match functions().get(which) {
            Some(function) => function.selector.to_vec(),
            None => b.take(4).to_vec(),
        };
        let caller = from(&mut b);
        let wei = b.of(&VALUES);
        let pass = b.byte();
        w.pass((pass & 3).into(), SECONDS[(pass as usize >> 2) % SECONDS.len()]);
        while !b.is_empty() && put_word(&mut b, &mut data, &seen) {}
        w.mem.logs.clear();
        call(&mut w, caller, wei, &data);
        for log in &w.mem.logs {
            seen.extend(log.topics.iter().skip(1).copied());
            seen.extend(log.data.chunks_exact(32).map(B256::from_slice));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_sol_types::SolCall;
    use muster_model::samples::samples;
    use muster_model::validated::{salt, USUAL};

    /// A call in the form that [`run`] reads: its caller as `from` has it, and one of the values.
    fn written(person: u8, wei: u128, calldata: &[u8]) -> Vec<u8> {
        let (selector, arguments) = calldata.split_at(4);
        let place = functions().iter().position(|f| f.selector == *selector).expect("a function");
        let wei = VALUES.iter().rposition(|v| *v == wei).expect("one of the values");
        let mut out = vec![place as u8, person, wei as u8, 1];
        for word in arguments.chunks_exact(32) {
            let number = U256::from_be_slice(word);
            if number < U256::from(0x80) {
                out.push(number.to());
            } else if number == U256::from(TOKEN) {
                out.push(0x89);
            } else if number == U256::from(CARD) {
                out.push(0x88);
            } else if word == value(word[0]).as_slice() {
                out.extend([0x87, word[0]]);
            } else if number <= U256::from(u64::MAX) {
                out.push(0x80);
                out.extend(number.to::<u64>().to_le_bytes());
            } else {
                out.push(0x81);
                out.extend(word);
            }
        }
        out.push(END);
        out
    }

    /// A call of each function, by several callers; and calls with arguments for the network in which a run begins.
    fn calls() -> Vec<(u8, u128, Vec<u8>)> {
        fn of(person: u8, wei: u128, call: impl SolCall) -> (u8, u128, Vec<u8>) {
            (person, wei, call.abi_encode())
        }
        const CREATES: u8 = 1;
        // As `from` has who(1).
        let node = |n: u8| n + 11;
        let (owner, stranger) = (0, node(12));
        let mut all = Vec::new();
        for sample in samples() {
            let wei: &[u128] = match declared(SOURCE, sample.signature) {
                Some(Mutability::Payable) => &[3 * TOKEN, 401 * TOKEN],
                _ => &[0],
            };
            let people: &[u8] = match declared(SOURCE, sample.signature) {
                Some(Mutability::View) => &[stranger],
                _ => &[owner, CREATES, node(1), stranger],
            };
            all.extend(
                people
                    .iter()
                    .flat_map(|&person| wei.iter().map(move |&wei| (person, wei)))
                    .map(|(person, wei)| (person, wei, sample.data.clone())),
            );
        }
        let batch = createTasksCall { specs: vec![spec(0, &[]), alike(24)], fees: vec![TOKEN, 2 * TOKEN], atomic: true };
        all.extend([
            of(node(10), 401 * TOKEN, joinCall { gpuName: "RTX 4090".into(), vram: 24, models: vec![3, 4] }),
            of(node(1), TOKEN, raiseStakeCall {}),
            of(node(9), 0, resumeCall {}),
            of(node(9), 0, quitCall {}),
            of(node(1), 0, setWorkerCall { worker: who(11).into() }),
            of(node(10), 0, acceptWorkCall { node: 2 }),
            of(node(10), 0, leaveWorkCall {}),
            of(node(2), 0, reportDownloadedCall { models: vec![1, 2] }),
            of(CREATES, 3 * TOKEN, createTaskCall { spec: rated() }),
            of(CREATES, TOKEN, createTaskCall { spec: spec(24, &[1, 2]) }),
            of(CREATES, 3 * TOKEN, batch),
            of(CREATES, 0, cancelCall { id: 6, ticket: 1 }),
            of(stranger, 0, expireQueuedCall { id: 6, ticket: 1 }),
            of(stranger, 0, expireCall { node: 1, id: 2 }),
            of(stranger, 0, dispatchCall { count: 16 }),
            of(node(1), 0, commitCall { id: 4, commitment: commitment(4, 1, 0, value(1), value(2)) }),
            of(stranger, 0, revealCall { id: 3, group: 0, node: 1, kind: 0, value: value(1), salt: salt(3, 1) }),
            of(CREATES, 0, validateCall { id: 3, node: 1 }),
            of(CREATES, 0, setProfileCall { profile: USUAL }),
            of(stranger, 0, settleCall { id: 4, group: 1 }),
            of(owner, 0, listGpuGroupCall { group: CARD, listed: false }),
            of(owner, 0, proposeParameterCall { parameter: 0, value: U256::from(2) }),
            of(owner, 0, acceptParameterCall { parameter: 0 }),
            of(node(11), 0, acceptOwnershipCall {}),
            of(stranger, 0, locateCall { id: 6, nodeHint: 1, ticketHint: 1 }),
            of(stranger, 0, queuedTasksCall { queue: 1, from: 0, count: 16 }),
            of(stranger, 0, supportsInterfaceCall { interfaceId: programs::INTERFACE_ID.into() }),
        ]);
        all
    }

    /// Each is read as it was written, and nothing is wrong with it. With `FUZZ_SEEDS`, they are written into that folder.
    #[test]
    fn every_function_can_be_called() {
        let mut called = BTreeSet::new();
        for (i, (person, wei, data)) in calls().into_iter().enumerate() {
            let bytes = written(person, wei, &data);
            let (mut b, mut read) = (Bytes(&bytes[4..]), data[..4].to_vec());
            while put_word(&mut b, &mut read, &[]) {}
            assert_eq!(read, data);
            run(&bytes);
            let name = functions()[bytes[0] as usize].name();
            if let Ok(folder) = std::env::var("FUZZ_SEEDS") {
                std::fs::write(format!("{folder}/{name}-{i}"), &bytes).expect("a folder");
            }
            called.insert(name);
        }
        let all: BTreeSet<_> = functions().iter().map(Function::name).collect();
        assert_eq!(all.difference(&called).collect::<Vec<_>>(), Vec::<&&str>::new());
    }
}
