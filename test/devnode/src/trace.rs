//! Call traces in the shape of geth's `callTracer`.

use revm::primitives::{Address, Bytes, U256};

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
    /// Wei sent along; `None` for delegate and static calls, whose value is not moved.
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
    /// The text of `Error(string)` or `Panic(uint256)` revert data.
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
    pub topics: Vec<revm::primitives::B256>,
    /// Data.
    pub data: Bytes,
    /// Number of inner calls made before it.
    pub position: usize,
}
