//! Bytes as operations, tried on the contract and on the model, which are compared after each.

use crate::bytes::Bytes;
use muster_model::drive::play;
use muster_model::model::{rating, validating, Op};
use muster_model::world::{Dice, World};
use std::cell::Cell;

/// Most operations of an input.
const MOST: usize = 192;

/// Operators of a network.
pub(crate) const OPERATORS: u64 = 14;

/// The operations that bytes say, after the preparation of one of three networks: an empty one, one in which tasks are validated, one in
/// which groups are chosen by ratings. Their values are of the ranges that the random operations have.
pub fn operations(data: &[u8]) -> Vec<Op> {
    let mut b = Bytes(data);
    let prepared = b.byte();
    let seed = &mut Dice(u64::from(b.byte()));
    let mut ops = match prepared % 3 {
        0 => Vec::new(),
        1 => validating(seed, 0, OPERATORS),
        _ => rating(seed, 0, OPERATORS),
    };
    // That ends everything.
    ops.pop();
    while !b.is_empty() && ops.len() < MOST {
        ops.push(operation(&mut b));
    }
    ops
}

fn operation(b: &mut Bytes) -> Op {
    let kind = b.byte();
    match kind % 48 {
        0..=2 => Op::Join { who: someone(b), gpu: b.bits(), vram: b.bits(), models: mask(b), stake: b.bits() },
        3 => Op::Raise { who: someone(b), amount: b.bits() },
        4 => Op::Pause(someone(b)),
        5 => Op::Resume(someone(b)),
        6 => Op::Quit(someone(b)),
        7 => Op::Work { who: someone(b), how: b.bits() },
        8 => Op::Stores { who: someone(b), how: b.bits() },
        9 => Op::Withdraw(1 + b.below(OPERATORS + 5)),
        10 => Op::Report { who: someone(b), models: mask(b) },
        11 => Op::Remove { who: someone(b), models: mask(b) },
        12 => Op::Purge { model: 1 + b.below(11), position: b.below(OPERATORS) },
        13 => Op::Poke(b.below(OPERATORS + 2)),
        14..=20 => Op::Create {
            who: b.bits(),
            kind: b.bits(),
            units: b.bits(),
            vram: b.bits(),
            gpu: b.bits(),
            // A task of more than eight is refused.
            models: [0xff, 0x3f0, 0x30f, 0x3ff][b.below(4) as usize] & mask(b),
            fee: b.bits(),
            policy: b.bits(),
        },
        21 => Op::Batch { seed: b.bits(), how: b.bits() },
        22 => Op::Cancel { pick: b.bits(), stranger: b.below(8) == 1 },
        23 => Op::ExpireQueued { pick: b.bits(), by: b.bits() },
        24 => Op::Submit { pick: b.bits(), by: b.below(20) },
        25 => Op::Fault { pick: b.bits(), by: b.below(20) },
        26 => Op::Expire { pick: b.bits(), by: b.bits() },
        27..=28 => Op::Dispatch(b.below(18)),
        29..=31 => Op::Commit { pick: b.bits(), by: b.below(40), answer: b.bits() },
        32..=34 => Op::Reveal { pick: b.bits(), by: b.bits(), how: b.bits() },
        35 => Op::Validate { pick: b.bits(), by: b.bits() },
        36 => Op::Form,
        37 => Op::Settle { pick: b.bits(), by: b.bits() },
        38 => Op::Profile { who: b.bits(), sizes: b.bits(), targeting: b.bits(), target: b.bits() },
        39 => Op::List { group: b.bits(), on: b.below(4) > 0 },
        40 => Op::Score { node: b.bits(), score: b.bits() },
        41 => Op::Parameter { which: b.bits(), value: b.bits() },
        42 => Op::Accept(b.bits()),
        43 => match b.below(8) {
            0 => Op::Switch(b.below(4) == 0),
            1 => Op::Sweep,
            2 => Op::Name(b.below(100)),
            3 => Op::Force(b.bits()),
            _ => Op::Rest,
        },
        44 => Op::Pass { blocks: b.bits() % 300, seconds: b.bits() % 200_000 },
        _ => Op::Pass { blocks: b.below(4), seconds: b.below(150) },
    }
}

fn someone(b: &mut Bytes) -> u64 {
    1 + b.below(OPERATORS)
}

fn mask(b: &mut Bytes) -> u64 {
    b.bits() & 0x3ff
}

/// Panics at the first difference.
pub fn run(data: &[u8]) {
    let ops = operations(data);
    if std::env::var_os("FUZZ_SHOW").is_some() {
        println!("{ops:#?}");
    }
    play(&mut World::new(), &ops, OPERATORS, &Cell::new(0));
}
