//! Call traces in the shape of geth's `callTracer`.

use revm::primitives::{Address, Bytes, Log, B256, U256};

use super::{Entered, Left};

/// The instruction that opened a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// CALL, or the transaction itself.
    Call,
    /// CALLCODE.
    CallCode,
    /// DELEGATECALL.
    DelegateCall,
    /// STATICCALL.
    StaticCall,
    /// CREATE, or a transaction without recipient.
    Create,
    /// CREATE2.
    Create2,
    /// SELFDESTRUCT.
    SelfDestruct,
}

impl CallKind {
    /// The name geth prints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "CALL",
            Self::CallCode => "CALLCODE",
            Self::DelegateCall => "DELEGATECALL",
            Self::StaticCall => "STATICCALL",
            Self::Create => "CREATE",
            Self::Create2 => "CREATE2",
            Self::SelfDestruct => "SELFDESTRUCT",
        }
    }
}

/// One frame, EVM or WASM.
#[derive(Clone, Debug)]
pub struct CallFrame {
    /// How it was opened.
    pub kind: CallKind,
    /// The caller.
    pub from: Address,
    /// The callee; for a creation the new address, `None` if there is none.
    pub to: Option<Address>,
    /// Wei sent along (for a delegate call the value that its caller was sent); `None` for a static call.
    pub value: Option<U256>,
    /// Gas given to the frame (the whole limit for the outermost).
    pub gas: u64,
    /// Gas used.
    pub gas_used: u64,
    /// Calldata or init code.
    pub input: Bytes,
    /// Return data, revert data, or deployed code.
    pub output: Bytes,
    /// Why it failed, in geth's words.
    pub error: Option<String>,
    /// The text of `Error(string)` or `Panic(uint256)` revert data; where a program or precompile reverted without
    /// data, why.
    pub revert_reason: Option<String>,
    /// Whether a Stylus program ran.
    pub wasm: bool,
    /// Events this frame itself emitted: topics, data, and how many inner calls came before.
    pub logs: Vec<TraceLog>,
    /// Inner frames.
    pub calls: Vec<CallFrame>,
}

/// An event in a trace (`withLog`).
#[derive(Clone, Debug)]
pub struct TraceLog {
    /// Emitting account.
    pub address: Address,
    /// Topics.
    pub topics: Vec<B256>,
    /// Data.
    pub data: Bytes,
    /// Number of inner calls made before it.
    pub position: usize,
}

/// Collects frames while a transaction runs.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: Vec<Open>,
    done: Option<CallFrame>,
}

#[derive(Debug)]
struct Open {
    frame: CallFrame,
    /// Number of events before it.
    log_start: usize,
    /// Events of inner frames, as ranges, with the frame's position.
    inner_logs: Vec<std::ops::Range<usize>>,
}

impl Calls {
    pub(super) fn enter(&mut self, entered: Entered) {
        let frame = CallFrame {
            kind: entered.kind,
            from: entered.from,
            to: entered.to,
            value: entered.value,
            gas: entered.gas,
            gas_used: 0,
            input: entered.input,
            output: Bytes::new(),
            error: None,
            revert_reason: None,
            wasm: false,
            logs: vec![],
            calls: vec![],
        };
        self.open.push(Open { frame, log_start: entered.logs, inner_logs: vec![] });
    }

    pub(super) fn wasm(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.frame.wasm = true;
        }
    }

    pub(super) fn note(&mut self, reason: String) {
        if let Some(open) = self.open.last_mut() {
            open.frame.revert_reason = Some(reason);
        }
    }

    /// Gives the bytes of the frame's own events.
    pub(super) fn exit(&mut self, left: Left, logs: &[Log]) -> usize {
        let Some(Open { mut frame, log_start, inner_logs }) = self.open.pop() else { return 0 };
        frame.gas_used = left.gas_used;
        let mut bytes = 0;
        if left.error.is_none() {
            let mut at = log_start;
            let last = logs.len()..logs.len();
            for (position, inner) in inner_logs.iter().chain(std::iter::once(&last)).enumerate() {
                for log in logs.get(at..inner.start).unwrap_or_default() {
                    bytes += 400 + 2 * log.data.data.len();
                    frame.logs.push(TraceLog {
                        address: log.address,
                        topics: log.data.topics().to_vec(),
                        data: log.data.data.clone(),
                        position,
                    });
                }
                at = inner.end;
            }
        } else if frame.revert_reason.is_none() {
            frame.revert_reason = revert_reason(&left.output);
        }
        frame.error = left.error;
        frame.output = left.output;
        if left.created.is_some() {
            frame.to = left.created;
        }
        let end = if frame.error.is_none() { logs.len() } else { log_start };
        match self.open.last_mut() {
            Some(parent) => {
                parent.frame.calls.push(frame);
                parent.inner_logs.push(log_start..end);
            }
            None => self.done = Some(frame),
        }
        bytes
    }

    /// The outermost frame, with the transaction's own figures.
    pub(super) fn finish(self, gas_limit: u64, gas_used: u64) -> Option<CallFrame> {
        let mut frame = self.done?;
        frame.gas = gas_limit;
        frame.gas_used = gas_used;
        Some(frame)
    }
}

/// The text of `Error(string)` or `Panic(uint256)`.
fn revert_reason(data: &[u8]) -> Option<String> {
    use alloy_sol_types::{Panic, Revert, SolError};
    Revert::abi_decode(data).map(|e| e.reason).or_else(|_| Panic::abi_decode(data).map(|e| e.to_string())).ok()
}
