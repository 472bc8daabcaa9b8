//! Calldata that no function declares: every such call gives a typed error and changes nothing.

use alloy_primitives::Bytes;
use ethers::abi::{Function, ParamType, StateMutability, Token};
use muster_model::system::{Call, System};
use muster_model::world::{spec, who, Dice, TOKEN};
use muster_protocol::IMuster::{createTaskCall, joinCall};
use muster_tests::chain::interface;
use muster_tests::live::{error_name, Live, Site};

/// Random calls of each kind.
const RANDOM: usize = 3_000;

fn sample(kind: &ParamType) -> Token {
    match kind {
        ParamType::Address => Token::Address([0x11; 20].into()),
        ParamType::Bool => Token::Bool(true),
        ParamType::Uint(_) => Token::Uint(1.into()),
        ParamType::FixedBytes(n) => Token::FixedBytes(vec![0x11; *n]),
        ParamType::String => Token::String("thirty-two characters and a few".repeat(2)),
        ParamType::Bytes => Token::Bytes(vec![7; 40]),
        ParamType::Array(inner) => Token::Array(vec![sample(inner); 2]),
        ParamType::Tuple(parts) => Token::Tuple(parts.iter().map(sample).collect()),
        other => panic!("not in this interface: {other}"),
    }
}

/// The contents of a word of well-formed calldata.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Word {
    /// A value that fills so many bytes at the word's end.
    Low(usize),
    /// A value that fills so many bytes at the word's beginning.
    High(usize),
    Bool,
    Offset,
    Length,
}

fn number(data: &[u8], at: usize) -> usize {
    u64::from_be_bytes(data[at + 24..at + 32].try_into().unwrap()) as usize
}

/// The places of the words of arguments whose heads begin at `base`.
fn walk(kinds: &[ParamType], data: &[u8], base: usize, out: &mut Vec<(usize, Word)>) {
    let mut next = base;
    for kind in kinds {
        let at = next;
        next += 32;
        // A struct without a list stands where it is.
        if let ParamType::Tuple(parts) = kind {
            if !kind.is_dynamic() {
                walk(parts, data, at, out);
                next = at + parts.len() * 32;
                continue;
            }
        }
        let word = match kind {
            ParamType::Address => Word::Low(20),
            ParamType::Uint(bits) => Word::Low(bits / 8),
            ParamType::FixedBytes(n) => Word::High(*n),
            ParamType::Bool => Word::Bool,
            _ => Word::Offset,
        };
        out.push((at, word));
        if word != Word::Offset {
            continue;
        }
        let tail = base + number(data, at);
        match kind {
            ParamType::Tuple(parts) => walk(parts, data, tail, out),
            ParamType::Array(inner) => {
                out.push((tail, Word::Length));
                walk(&vec![(**inner).clone(); number(data, tail)], data, tail + 32, out);
            }
            _ => out.push((tail, Word::Length)),
        }
    }
}

fn functions() -> Vec<&'static Function> {
    // The router answers no `initialise`.
    interface().functions().filter(|f| f.name != "initialise").collect()
}

fn well_formed(function: &Function) -> Vec<u8> {
    let arguments: Vec<Token> = function.inputs.iter().map(|input| sample(&input.kind)).collect();
    function.encode_input(&arguments).unwrap()
}

fn malformed(selector: [u8; 4]) -> Vec<u8> {
    let id = ethers::utils::id("MalformedCalldata(bytes4)");
    [&id[..], &selector, &[0; 28]].concat()
}

/// A network with something in it, so that calls get far.
fn peopled(site: &Site) -> Live {
    let mut live = site.fresh();
    for n in 1..=3 {
        let call = joinCall { gpuName: "RTX 4090".into(), vram: 24, models: vec![1, 10 + n] };
        let value = 400 * TOKEN + live.group_fee("RTX 4090", 24);
        live.call(&Call::new(who(n), call).paying(value)).unwrap();
    }
    live.call(&Call::new(who(9), createTaskCall { spec: spec(8, &[1]) }).paying(TOKEN)).unwrap();
    live
}

/// Accepted, or refused with one of the interface's errors that is no sign of a trap.
#[track_caller]
fn typed(answer: Result<Bytes, Bytes>, data: &[u8]) -> Option<String> {
    let reason = answer.err()?;
    let name = error_name(&reason).unwrap_or_else(|| panic!("{} is refused with {reason}", Bytes::copy_from_slice(data)));
    assert_ne!(name, "ProgramFailed", "{}", Bytes::copy_from_slice(data));
    Some(name)
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_calls_are_refused_by_type() {
    let Some(site) = Site::new().await else {
        return println!("malformed_calls_are_refused_by_type: skipped, because RPC_URL names a node");
    };
    let live = peopled(&site);
    let (before, mut tried) = (live.storage(), 0);
    for length in 0..4 {
        let data = vec![0xab; length];
        assert_eq!(live.ask(who(1), 0, data).unwrap_err()[..], malformed([0; 4]));
    }
    for function in functions() {
        let (name, selector, good) = (&function.name, function.short_signature(), well_formed(function));
        let kinds: Vec<ParamType> = function.inputs.iter().map(|input| input.kind.clone()).collect();
        let mut words = Vec::new();
        walk(&kinds, &good[4..], 0, &mut words);
        let mut wrong = |data: Vec<u8>, what: &str| {
            tried += 1;
            let answer = live.ask(who(1), 0, data.clone());
            let shown = Bytes::from(data);
            let reason = answer.err().unwrap_or_else(|| panic!("{name}, {what}: accepted {shown}"));
            assert_eq!(reason[..], malformed(selector), "{name}, {what}: {:?} for {shown}", error_name(&reason));
        };
        for end in (4..good.len()).step_by(32) {
            wrong(good[..end].to_vec(), "cut at a word");
            wrong(good[..(end + 31).min(good.len() - 32)].to_vec(), "cut inside a word");
        }
        for &(at, word) in &words {
            let put = |bytes: [u8; 32]| [&good[..4 + at], &bytes, &good[36 + at..]].concat();
            let old: [u8; 32] = good[4 + at..36 + at].try_into().unwrap();
            let mut dirty = old;
            match word {
                Word::Low(32) | Word::High(32) => {}
                Word::Low(n) => {
                    dirty[31 - n] = 1;
                    wrong(put(dirty), "a byte above the value");
                    dirty = old;
                    dirty[0] = 0x80;
                    wrong(put(dirty), "the highest bit");
                }
                Word::High(n) => {
                    dirty[n] = 1;
                    wrong(put(dirty), "a byte below the value");
                }
                Word::Bool => {
                    dirty[31] = 2;
                    wrong(put(dirty), "a bool of 2");
                }
                Word::Offset | Word::Length => {
                    for n in [u64::MAX, u32::MAX as u64, 1 << 32, (1 << 32) + number(&good, 4 + at) as u64, good.len() as u64 * 3]
                    {
                        dirty = [0; 32];
                        dirty[24..].copy_from_slice(&n.to_be_bytes());
                        wrong(put(dirty), &format!("{word:?} {n}"));
                        dirty[0] = 0xff;
                        wrong(put(dirty), &format!("{word:?} beyond 64 bits"));
                    }
                }
            }
        }
        // Bytes behind the arguments are not looked at, as in Solidity.
        let longer = [&good[..], &[0xee; 45]].concat();
        assert_eq!(live.ask(who(1), 0, good.clone()), live.ask(who(1), 0, longer), "{name} with something behind");
        if function.state_mutability != StateMutability::Payable {
            let reason = live.ask(who(1), 1, good.clone()).expect_err("takes no value");
            assert_eq!(error_name(&reason).as_deref(), Some("ValueNotAccepted"), "{name} with value");
        }
    }
    println!("{tried} malformed calls of {} functions", functions().len());
    assert_eq!(live.storage(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn random_calldata_never_traps_and_never_gives_an_empty_reason() {
    let Some(site) = Site::new().await else {
        return println!("random_calldata_never_traps_and_never_gives_an_empty_reason: skipped, because RPC_URL names a node");
    };
    let mut live = peopled(&site);
    let mut dice = Dice(77);
    let all = functions();
    let mut names = std::collections::BTreeMap::new();
    let random = |dice: &mut Dice, function: &Function| {
        let mut data = well_formed(function);
        if dice.below(3) == 0 {
            data.truncate(4);
            data.extend((0..dice.below(400)).map(|_| dice.bits() as u8));
        } else {
            // A few bytes, small ones so that offsets and lengths stay within reach.
            for _ in 0..=dice.below(6) {
                if data.len() > 4 {
                    let at = 4 + dice.below(data.len() as u64 - 4) as usize;
                    data[at] = if dice.below(2) == 0 { dice.below(70) as u8 } else { dice.bits() as u8 };
                }
            }
        }
        data
    };
    for i in 0..RANDOM {
        let data = random(&mut dice, all[i % all.len()]);
        let value = if dice.below(4) == 0 { dice.bits() as u128 } else { 0 };
        let from = who(1 + dice.below(5));
        let name = typed(live.ask(from, value, data.clone()), &data).unwrap_or_else(|| "accepted".into());
        *names.entry(name).or_insert(0u32) += 1;
        let data: Vec<u8> = (0..dice.below(200)).map(|_| dice.bits() as u8).collect();
        let name = typed(live.ask(from, 0, data.clone()), &data);
        let expected = if data.len() < 4 { "MalformedCalldata" } else { "UnknownFunction" };
        assert_eq!(name.as_deref(), Some(expected));
    }
    println!("{names:?}");
    assert!(names.len() > 10, "hardly anything happened: {names:?}");

    // As transactions: refused ones leave storage and balance as they were.
    let mut refused = 0;
    for i in 0..150 {
        let data = random(&mut dice, all[i % all.len()]);
        let (storage, balance) = (live.storage(), live.balance());
        let mined = live.send(who(1 + dice.below(5)), dice.below(2) as u128 * 1_000, data.clone());
        if !mined.ok() {
            typed(Err(mined.outcome.output), &data);
            assert!(live.storage() == storage && live.balance() == balance && mined.outcome.logs.is_empty());
            refused += 1;
        }
    }
    assert!(refused > 50, "{refused}");
}
