//! EVM instructions one by one, as geth's struct logger records them.

use std::collections::BTreeMap;

use revm::bytecode::opcode;
use revm::primitives::{Bytes, U256};

/// The parts of a step to record beside counter, instruction and gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepOptions {
    /// The stack.
    pub stack: bool,
    /// Memory.
    pub memory: bool,
    /// The slots that the frame has read or written so far, where an instruction reads or writes one.
    pub storage: bool,
    /// The return data of the last inner frame.
    pub return_data: bool,
    /// Most steps; 0 for all.
    pub limit: usize,
}

impl Default for StepOptions {
    fn default() -> Self {
        Self { stack: true, memory: false, storage: true, return_data: false, limit: 0 }
    }
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Step {
    /// Program counter.
    pub pc: usize,
    /// Which.
    pub op: u8,
    /// Gas left before it.
    pub gas: u64,
    /// Its cost, gas for a frame it opened included.
    pub cost: u64,
    /// 1 for the outermost frame.
    pub depth: usize,
    /// Gas to be given back so far, without that of the frame's callers.
    pub refund: u64,
    /// Why it failed.
    pub error: Option<String>,
    /// Bottom first.
    pub stack: Option<Vec<U256>>,
    /// Whole.
    pub memory: Option<Vec<u8>>,
    /// Slots of the frame's account.
    pub storage: Option<Vec<(U256, U256)>>,
    /// The return data of the last inner frame.
    pub return_data: Option<Bytes>,
}

/// The machine before an instruction.
pub(crate) struct Now<'a> {
    pub pc: usize,
    pub op: u8,
    pub gas: u64,
    pub refund: u64,
    pub depth: usize,
    pub stack: &'a [U256],
    pub memory: &'a dyn Fn() -> Vec<u8>,
    pub memory_len: usize,
    pub return_data: &'a Bytes,
}

/// The machine after an instruction.
pub(crate) struct Ended<'a> {
    pub op: u8,
    pub cost: u64,
    /// Whether a frame must run before the next instruction.
    pub opens: bool,
    pub stack: &'a [U256],
    pub error: Option<String>,
}

/// Collects them while a transaction runs.
#[derive(Debug)]
pub(crate) struct Steps {
    options: StepOptions,
    steps: Vec<Step>,
    /// Slots seen by each open frame.
    slots: Vec<BTreeMap<U256, U256>>,
    /// Whether the last instruction was recorded.
    recorded: bool,
}

impl Steps {
    pub(super) fn new(options: StepOptions) -> Self {
        Self { options, steps: vec![], slots: vec![], recorded: false }
    }

    pub(super) fn enter(&mut self) {
        self.slots.push(BTreeMap::new());
    }

    pub(super) fn exit(&mut self) {
        self.slots.pop();
    }

    /// Gives the bytes it takes.
    pub(super) fn step(&mut self, now: &Now<'_>) -> usize {
        self.recorded = self.options.limit == 0 || self.steps.len() < self.options.limit;
        if !self.recorded {
            return 0;
        }
        let stack = self.options.stack.then(|| now.stack.to_vec());
        let mut bytes = 120 + stack.as_ref().map_or(0, |s| 40 * s.len());
        // A written value is known before, a read one only after.
        let touches = matches!(now.op, opcode::SLOAD | opcode::SSTORE) && self.options.storage;
        if touches && now.op == opcode::SSTORE {
            if let ([.., value, key], Some(slots)) = (now.stack, self.slots.last_mut()) {
                slots.insert(*key, *value);
            }
        }
        let storage = touches.then(|| {
            let slots = self.slots.last().into_iter().flatten().map(|(k, v)| (*k, *v)).collect::<Vec<_>>();
            bytes += 140 * (slots.len() + 1);
            slots
        });
        if self.options.memory {
            bytes += 3 * now.memory_len;
        }
        if self.options.return_data {
            bytes += 2 * now.return_data.len();
        }
        // Memory is copied only if there is room for it.
        let memory = (self.options.memory && bytes <= super::MAX_TRACE).then(|| (now.memory)());
        self.steps.push(Step {
            pc: now.pc,
            op: now.op,
            gas: now.gas,
            cost: 0,
            depth: now.depth,
            refund: now.refund,
            error: None,
            stack,
            memory,
            storage,
            return_data: self.options.return_data.then(|| now.return_data.clone()),
        });
        bytes
    }

    pub(super) fn stepped(&mut self, ended: Ended<'_>) {
        if !self.recorded {
            return;
        }
        let Some(step) = self.steps.last_mut() else { return };
        step.cost = ended.cost;
        step.error = ended.error;
        if ended.op == opcode::SLOAD && step.error.is_none() && step.storage.is_some() {
            let key = step.stack.as_ref().and_then(|stack| stack.last().copied());
            if let (Some(key), Some(value), Some(slots)) = (key, ended.stack.last(), self.slots.last_mut()) {
                slots.insert(key, *value);
                step.storage = Some(slots.iter().map(|(k, v)| (*k, *v)).collect());
            }
        }
    }

    pub(super) fn finish(self) -> Vec<Step> {
        self.steps
    }
}
