//! Where the gas of a transaction went.

use std::collections::BTreeMap;

use revm::bytecode::opcode::{self, OpCode};
use revm::primitives::{Address, B256};
use serde::{Deserialize, Serialize};

use super::steps::Now;
use super::{CallKind, Entered, Left};

/// How often something happened, and its total cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// How often.
    pub count: u64,
    /// Ink in a program's frame, gas in that of EVM code.
    pub amount: u64,
}

/// The cost of a storage word in a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordUse {
    /// Reads.
    pub reads: Spent,
    /// Writes: those into a program's cache, and passing them on to the chain's state.
    pub writes: Spent,
}

/// One frame: its own cost, and the frames below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileFrame {
    /// How it was opened, as geth's `callTracer` says it.
    #[serde(rename = "type")]
    pub kind: String,
    /// The account whose code ran.
    pub to: Option<Address>,
    /// The account whose storage it works on.
    #[serde(default)]
    pub account: Option<Address>,
    /// First four bytes of the calldata, where there are as many.
    pub selector: Option<alloy_primitives::FixedBytes<4>>,
    /// Whether a Stylus program ran.
    pub wasm: bool,
    /// Gas used, inner frames included.
    pub gas_used: u64,
    /// Gas for memory pages that the program begins with.
    pub pages: u64,
    /// Gas for the program's start.
    pub start: u64,
    /// Ink per gas; 0 where no program ran.
    pub ink_price: u64,
    /// Host functions: ink without that of the frames they opened.
    pub hostios: BTreeMap<String, Spent>,
    /// EVM instructions: gas without that of the frames they opened.
    pub ops: BTreeMap<String, Spent>,
    /// The part of the above that went into each storage word of the account.
    #[serde(default)]
    pub words: BTreeMap<B256, WordUse>,
    /// Inner frames.
    pub calls: Vec<ProfileFrame>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ProfileFrame {
    /// Ink of a program's own instructions: all that nothing else explains. Rounding of ink to gas is in it.
    pub fn wasm_ink(&self) -> u64 {
        let below: u64 = self.calls.iter().map(|c| c.gas_used).sum();
        let hostios: u64 = self.hostios.values().map(|s| s.amount).sum();
        let own = self.gas_used.saturating_sub(self.pages + self.start + below);
        own.saturating_mul(self.ink_price).saturating_sub(hostios)
    }

    /// Gas that a frame of EVM code or a precompile took without an instruction that explains it: a precompile's work, the code deposit of
    /// a creation, and the gas that a failure takes.
    pub fn other_gas(&self) -> u64 {
        let below: u64 = self.calls.iter().map(|c| c.gas_used).sum();
        let ops: u64 = self.ops.values().map(|s| s.amount).sum();
        self.gas_used.saturating_sub(below + ops)
    }
}

/// A transaction's gas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// The gas of the receipt.
    pub gas_used: u64,
    /// The cost of the transaction before anything runs.
    pub intrinsic: Intrinsic,
    /// Given back for cleared storage, at most a fifth.
    pub refund: u64,
    /// The addition of the floor on calldata (EIP-7623).
    pub floor: u64,
    /// The outermost frame.
    pub frame: ProfileFrame,
}

/// The cost of a transaction before anything runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intrinsic {
    /// 21,000.
    pub base: u64,
    /// 4 for each zero byte, 16 for each other.
    pub calldata: u64,
    /// Creating a contract, its init code, access list and authorizations.
    pub other: u64,
}

/// Figures of a transaction that has ended.
pub(crate) struct Totals {
    pub gas_limit: u64,
    pub gas_used: u64,
    pub refund: u64,
    pub floor: u64,
    pub intrinsic: Intrinsic,
}

/// Adds up while a transaction runs.
#[derive(Debug, Default)]
pub(crate) struct Profiler {
    /// With the number of inner frames that a host call has accounted for.
    open: Vec<(ProfileFrame, usize)>,
    /// The word that the EVM instruction about to run reads or writes.
    word: Option<B256>,
    done: Option<ProfileFrame>,
}

impl Profiler {
    pub(super) fn enter(&mut self, entered: &Entered) {
        let frame = ProfileFrame {
            kind: entered.kind.name().into(),
            to: entered.to,
            account: match entered.kind {
                CallKind::DelegateCall | CallKind::CallCode => Some(entered.from),
                _ => entered.to,
            },
            selector: match entered.kind {
                CallKind::Create | CallKind::Create2 => None,
                _ => entered.input.get(..4).map(alloy_primitives::FixedBytes::from_slice),
            },
            ..ProfileFrame::default()
        };
        self.open.push((frame, 0));
    }

    pub(super) fn exit(&mut self, left: &Left) {
        let Some((mut frame, _)) = self.open.pop() else { return };
        frame.gas_used = left.gas_used;
        frame.error.clone_from(&left.error);
        if left.created.is_some() {
            (frame.to, frame.account) = (left.created, left.created);
        }
        match self.open.last_mut() {
            Some((parent, _)) => parent.calls.push(frame),
            None => self.done = Some(frame),
        }
    }

    pub(super) fn wasm(&mut self) {
        if let Some((frame, _)) = self.open.last_mut() {
            frame.wasm = true;
        }
    }

    pub(super) fn program_start(&mut self, pages: u64, start: u64, ink_price: u64) {
        if let Some((frame, _)) = self.open.last_mut() {
            (frame.pages, frame.start, frame.ink_price) = (pages, start, ink_price);
        }
    }

    pub(super) fn hostio(&mut self, name: &str, ink: u64) {
        let Some((frame, counted)) = self.open.last_mut() else { return };
        // A frame that ended within this very call counts for itself.
        let below = if frame.calls.len() > *counted { frame.calls.last().map_or(0, |c| c.gas_used) } else { 0 };
        *counted = frame.calls.len();
        let own = ink.saturating_sub(below.saturating_mul(frame.ink_price));
        add(&mut frame.hostios, name, own);
    }

    /// The cost of reading or writing a word, in the unit of the frame.
    pub(super) fn word(&mut self, slot: B256, write: bool, amount: u64) {
        let Some((frame, _)) = self.open.last_mut() else { return };
        let word = frame.words.entry(slot).or_default();
        let spent = if write { &mut word.writes } else { &mut word.reads };
        spent.count += 1;
        spent.amount += amount;
    }

    pub(super) fn step(&mut self, now: &Now<'_>) {
        let touches = matches!(now.op, opcode::SLOAD | opcode::SSTORE);
        self.word = now.stack.last().filter(|_| touches).map(|slot| B256::from(*slot));
    }

    pub(super) fn op(&mut self, op: u8, gas: u64) {
        if let Some(slot) = self.word.take() {
            self.word(slot, op == opcode::SSTORE, gas);
        }
        if let Some((frame, _)) = self.open.last_mut() {
            add(&mut frame.ops, OpCode::name_by_op(op), gas);
        }
    }

    pub(super) fn returned(&mut self, op: u8, gas: u64) {
        if let Some((frame, _)) = self.open.last_mut() {
            let below = frame.calls.last().map_or(0, |c| c.gas_used);
            add(&mut frame.ops, OpCode::name_by_op(op), gas.saturating_sub(below));
        }
    }

    pub(super) fn finish(self, totals: Totals) -> Option<Profile> {
        Some(Profile {
            gas_used: totals.gas_used,
            intrinsic: totals.intrinsic,
            refund: totals.refund,
            floor: totals.floor,
            frame: self.done?,
        })
    }
}

fn add(sums: &mut BTreeMap<String, Spent>, name: &str, amount: u64) {
    let spent = match sums.get_mut(name) {
        Some(spent) => spent,
        None => sums.entry(name.to_owned()).or_default(),
    };
    spent.count += 1;
    spent.amount += amount;
}
