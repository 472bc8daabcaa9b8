//! Recordings made while a transaction runs.
//!
//! | module | contents |
//! | --- | --- |
//! | [`calls`] | frames, as geth's `callTracer` |
//! | [`steps`] | EVM instructions, as geth's struct logger |
//! | [`hostios`] | host calls of Stylus programs, as Nitro's `stylusTracer` |
//! | [`profile`] | where the gas went |
//!
//! A recording that grows beyond [`MAX_TRACE`] is thrown away, and the trace is [`Trace::TooLarge`]: a call may use
//! 50,000,000 gas, and a step costs as little as 1.

pub mod calls;
pub mod hostios;
pub mod profile;
pub mod steps;

use revm::primitives::{Address, Bytes, Log, B256, U256};

pub use calls::{CallFrame, CallKind, TraceLog};
pub use hostios::Hostio;
pub use profile::{Intrinsic, Profile, ProfileFrame, Spent, WordUse};
pub use steps::{Step, StepOptions};

/// Most bytes that one trace may take, about as JSON.
pub const MAX_TRACE: usize = 50_000_000;

/// The recording to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceRequest {
    /// Nothing.
    #[default]
    Nothing,
    /// [`Trace::Calls`].
    Calls,
    /// [`Trace::Steps`].
    Steps(StepOptions),
    /// [`Trace::Hostios`].
    Hostios,
    /// [`Trace::Accessed`].
    Accessed,
    /// [`Trace::Profile`].
    Profile,
}

/// The recording.
#[derive(Clone, Debug, Default)]
pub enum Trace {
    /// Nothing was asked for.
    #[default]
    Nothing,
    /// Frames, the outermost of which holds the others.
    Calls(Box<CallFrame>),
    /// EVM instructions in their order.
    Steps(Vec<Step>),
    /// Host functions that programs called, and frames opened by EVM code.
    Hostios(Vec<Hostio>),
    /// The accounts and slots that the transaction touched.
    Accessed(Vec<Accessed>),
    /// Where the gas went.
    Profile(Box<Profile>),
    /// It would be larger than [`MAX_TRACE`].
    TooLarge,
}

/// An account a transaction touched, and its slots, undone or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accessed {
    /// Which.
    pub address: Address,
    /// In ascending order.
    pub slots: Vec<B256>,
    /// Whether it would be left out of an access list, since it is warm anyway: sender, recipient, precompiles, and
    /// contracts that the transaction itself made, as long as no slot of theirs was touched.
    pub warm: bool,
}

/// A frame that opens.
pub(crate) struct Entered {
    pub kind: CallKind,
    pub from: Address,
    pub to: Option<Address>,
    pub value: Option<U256>,
    pub gas: u64,
    pub input: Bytes,
    /// Number of events before it.
    pub logs: usize,
}

/// A frame that ends.
pub(crate) struct Left {
    pub gas_used: u64,
    pub output: Bytes,
    pub error: Option<String>,
    pub created: Option<Address>,
}

/// Records while a transaction runs.
#[derive(Debug)]
pub(crate) struct Tracer {
    kind: Kind,
    /// Bytes that may still be recorded.
    room: usize,
}

#[derive(Debug)]
enum Kind {
    Calls(calls::Calls),
    Steps(steps::Steps),
    Hostios(hostios::Hostios),
    Profile(profile::Profiler),
    /// There was no room.
    Full,
}

/// How much of its host calls a program must tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Nothing.
    #[default]
    No,
    /// Their ink.
    Ink,
    /// Arguments and results too.
    All,
}

impl Tracer {
    /// `None` if nothing must be recorded while the transaction runs.
    pub(crate) fn new(request: TraceRequest) -> Option<Self> {
        let kind = match request {
            TraceRequest::Nothing | TraceRequest::Accessed => return None,
            TraceRequest::Calls => Kind::Calls(calls::Calls::default()),
            TraceRequest::Steps(options) => Kind::Steps(steps::Steps::new(options)),
            TraceRequest::Hostios => Kind::Hostios(hostios::Hostios::default()),
            TraceRequest::Profile => Kind::Profile(profile::Profiler::default()),
        };
        Some(Self { kind, room: MAX_TRACE })
    }

    /// Whether EVM code must be run one instruction after the other.
    pub(crate) fn wants_steps(&self) -> bool {
        matches!(self.kind, Kind::Steps(_) | Kind::Profile(_))
    }

    pub(crate) fn watch(&self) -> Watch {
        match self.kind {
            Kind::Hostios(_) => Watch::All,
            Kind::Profile(_) => Watch::Ink,
            _ => Watch::No,
        }
    }

    /// Whether so many bytes may be recorded.
    fn take(&mut self, bytes: usize) -> bool {
        match self.room.checked_sub(bytes) {
            Some(room) => self.room = room,
            None => self.kind = Kind::Full,
        }
        !matches!(self.kind, Kind::Full)
    }

    pub(crate) fn enter(&mut self, entered: Entered) {
        let input = if matches!(self.kind, Kind::Calls(_)) { 2 * entered.input.len() } else { 0 };
        if !self.take(300 + input) {
            return;
        }
        match &mut self.kind {
            Kind::Calls(calls) => calls.enter(entered),
            Kind::Steps(steps) => steps.enter(),
            Kind::Hostios(hostios) => hostios.enter(&entered),
            Kind::Profile(profiler) => profiler.enter(&entered),
            Kind::Full => {}
        }
    }

    /// The open frame runs a program.
    pub(crate) fn wasm(&mut self) {
        match &mut self.kind {
            Kind::Calls(calls) => calls.wasm(),
            Kind::Profile(profiler) => profiler.wasm(),
            _ => {}
        }
    }

    /// The payment of the open frame before its program's first instruction: for memory pages, and for the start.
    pub(crate) fn program_start(&mut self, pages: u64, start: u64, ink_price: u64) {
        if let Kind::Profile(profiler) = &mut self.kind {
            profiler.program_start(pages, start, ink_price);
        }
    }

    /// Says why the open frame is about to revert without data.
    pub(crate) fn note(&mut self, reason: String) {
        if let Kind::Calls(calls) = &mut self.kind {
            calls.note(reason);
        }
    }

    pub(crate) fn exit(&mut self, left: Left, logs: &[Log]) {
        let bytes = match &mut self.kind {
            Kind::Calls(calls) => {
                let output = 2 * left.output.len();
                output + calls.exit(left, logs)
            }
            Kind::Steps(steps) => {
                steps.exit();
                0
            }
            Kind::Hostios(hostios) => {
                hostios.exit();
                0
            }
            Kind::Profile(profiler) => {
                profiler.exit(&left);
                0
            }
            Kind::Full => 0,
        };
        self.take(bytes);
    }

    /// A host function has done its work.
    pub(crate) fn hostio(&mut self, name: &'static str, ink: (u64, u64), args: Vec<u8>, outs: Vec<u8>) {
        match &mut self.kind {
            Kind::Hostios(hostios) => {
                let bytes = 150 + 2 * (args.len() + outs.len());
                hostios.hostio(name, ink, args, outs);
                self.take(bytes);
            }
            Kind::Profile(profiler) => profiler.hostio(name, ink.0.saturating_sub(ink.1)),
            _ => {}
        }
    }

    /// A program's read or write of a storage word took so much ink.
    pub(crate) fn word(&mut self, slot: B256, write: bool, ink: u64) {
        if let Kind::Profile(profiler) = &mut self.kind {
            profiler.word(slot, write, ink);
        }
    }

    /// An instruction is about to run.
    pub(crate) fn step(&mut self, now: &steps::Now<'_>) {
        let bytes = match &mut self.kind {
            Kind::Steps(steps) => steps.step(now),
            Kind::Profile(profiler) => {
                profiler.step(now);
                0
            }
            _ => 0,
        };
        self.take(bytes);
    }

    /// The instruction has run; the frame that it may have opened has not.
    pub(crate) fn stepped(&mut self, ended: steps::Ended<'_>) {
        match &mut self.kind {
            Kind::Steps(steps) => steps.stepped(ended),
            Kind::Profile(profiler) if !ended.opens => profiler.op(ended.op, ended.cost),
            _ => {}
        }
    }

    /// The frame that an instruction opened has ended, which cost so much in all.
    pub(crate) fn returned(&mut self, op: u8, cost: u64) {
        if let Kind::Profile(profiler) = &mut self.kind {
            profiler.returned(op, cost);
        }
    }

    pub(crate) fn finish(self, totals: profile::Totals) -> Trace {
        match self.kind {
            Kind::Calls(calls) => {
                calls.finish(totals.gas_limit, totals.gas_used).map_or(Trace::Nothing, |f| Trace::Calls(Box::new(f)))
            }
            Kind::Steps(steps) => Trace::Steps(steps.finish()),
            Kind::Hostios(hostios) => Trace::Hostios(hostios.finish()),
            Kind::Profile(profiler) => profiler.finish(totals).map_or(Trace::Nothing, |p| Trace::Profile(Box::new(p))),
            Kind::Full => Trace::TooLarge,
        }
    }
}
