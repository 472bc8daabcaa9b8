//! The functions a program imports from `vm_hooks`.
//!
//! Each takes its ink first, then does its work; a failure (no ink left, an address outside memory, a write in a
//! static call) ends the program.

mod calls;
mod imports;
mod storage;
mod values;

use std::fmt;

use revm::interpreter::SharedMemory;
use revm::primitives::{Address, Bytes, B256, U256};
use wasmi::errors::HostError;
use wasmi::{Caller, Global, Memory, Val};

use super::pricing::{self as price, MemoryModel};
use crate::exec::Exec;
use crate::trace::Watch;

pub(crate) use self::imports::{linker, signature};
pub(crate) use self::storage::StorageCache;

/// The module programs import from.
pub(crate) const MODULE: &str = "vm_hooks";

/// Why a program was stopped from the host's side.
#[derive(Debug)]
pub(crate) enum Escape {
    OutOfInk,
    /// Ended by `exit_early`.
    Exit(u32),
    /// Anything else: the frame reverts without data and keeps its gas.
    Failure(String),
}

impl fmt::Display for Escape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfInk => write!(f, "out of ink"),
            Self::Exit(status) => write!(f, "exit early: {status}"),
            Self::Failure(reason) => write!(f, "{reason}"),
        }
    }
}

impl HostError for Escape {}

/// The world of a running program.
pub(crate) struct Host {
    /// The transaction, taken out while a frame below runs.
    pub exec: Option<Box<Exec>>,
    /// revm's memory, handed on to EVM frames below.
    pub memory_context: SharedMemory,
    pub depth: usize,
    pub read_only: bool,
    pub acting: Address,
    pub caller: Address,
    pub value: U256,
    pub reentrant: bool,
    pub ink_price: u64,
    pub model: MemoryModel,
    pub page_limit: u16,
    pub args: Bytes,
    pub outs: Vec<u8>,
    pub return_data: Bytes,
    pub last_code: Option<(Address, Bytes)>,
    pub cache: StorageCache,
    /// Gas to give back at the end of the transaction, as a sum over this frame and those below it.
    pub refund: i64,
    pub globals: Option<Handles>,
    /// The detail that the trace wants.
    pub watch: Watch,
    /// Ink before the host function that runs.
    pub ink_before: u64,
    /// Its arguments and results, for a trace that wants them.
    pub told: (Vec<u8>, Vec<u8>),
}

/// The instance's memory and meter.
#[derive(Clone, Copy)]
pub(crate) struct Handles {
    pub memory: Memory,
    pub ink_left: Global,
    pub ink_status: Global,
}

/// One call into the host.
struct Hook<'a, 'b>(&'a mut Caller<'b, Host>);

type Fallible<T> = Result<T, Escape>;

fn failure<T>(reason: impl Into<String>) -> Fallible<T> {
    Err(Escape::Failure(reason.into()))
}

impl Hook<'_, '_> {
    fn host(&mut self) -> &mut Host {
        self.0.data_mut()
    }

    fn exec(&mut self) -> &mut Exec {
        self.0.data_mut().exec.as_mut().expect("the transaction is only away while another frame runs")
    }

    fn handles(&self) -> Handles {
        self.0.data().globals.expect("set before the program starts")
    }

    fn ink(&mut self) -> Fallible<u64> {
        let handles = self.handles();
        if handles.ink_status.get(&*self.0).i32() != Some(0) {
            return self.out_of_ink();
        }
        Ok(handles.ink_left.get(&*self.0).i64().unwrap_or_default() as u64)
    }

    fn set_ink(&mut self, ink: u64) {
        let handles = self.handles();
        let _ = handles.ink_left.set(&mut *self.0, Val::I64(ink as i64));
    }

    fn out_of_ink<T>(&mut self) -> Fallible<T> {
        let handles = self.handles();
        let _ = handles.ink_left.set(&mut *self.0, Val::I64(0));
        let _ = handles.ink_status.set(&mut *self.0, Val::I32(1));
        Err(Escape::OutOfInk)
    }

    /// Before a host function.
    fn begin(&mut self) {
        if self.0.data().watch != Watch::No {
            let ink = self.ink().unwrap_or_default();
            let host = self.host();
            host.ink_before = ink;
            host.told = Default::default();
        }
    }

    /// Notes arguments and results of the host function that runs.
    fn tell(&mut self, args: &[&[u8]], outs: &[&[u8]]) {
        if self.0.data().watch == Watch::All {
            self.host().told = (args.concat(), outs.concat());
        }
    }

    /// After a host function that succeeded or ended the program with a status of its own. For a profile any end is
    /// one, since its ink is gone.
    fn end<T>(&mut self, name: &'static str, result: &Fallible<T>) {
        let watch = self.0.data().watch;
        let done = matches!(result, Ok(_) | Err(Escape::Exit(_)));
        if watch == Watch::Ink || watch == Watch::All && done {
            let handles = self.handles();
            let ink = handles.ink_left.get(&*self.0).i64().unwrap_or_default() as u64;
            let host = self.host();
            let (before, (args, outs)) = (host.ink_before, std::mem::take(&mut host.told));
            if let Some(tracer) = host.exec.as_mut().and_then(|exec| exec.tracer.as_mut()) {
                tracer.hostio(name, (before, ink), args, outs);
            }
        }
    }

    fn buy_ink(&mut self, ink: u64) -> Fallible<()> {
        let left = self.ink()?;
        if left < ink {
            return self.out_of_ink();
        }
        self.set_ink(left - ink);
        Ok(())
    }

    fn buy_gas(&mut self, gas: u64) -> Fallible<()> {
        let price = self.host().ink_price;
        self.buy_ink(gas.saturating_mul(price))
    }

    fn require_gas(&mut self, gas: u64) -> Fallible<()> {
        let price = self.host().ink_price;
        if self.ink()? < gas.saturating_mul(price) {
            return self.out_of_ink();
        }
        Ok(())
    }

    fn gas_left(&mut self) -> Fallible<u64> {
        let price = self.host().ink_price;
        Ok(self.ink()? / price)
    }

    fn read(&mut self, ptr: u32, len: u32) -> Fallible<Vec<u8>> {
        let start = ptr as usize;
        let memory = self.handles().memory;
        match memory.data(&*self.0).get(start..start + len as usize) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => failure(format!("failed to access memory: {len} bytes at {ptr}")),
        }
    }

    fn read_fixed<const N: usize>(&mut self, ptr: u32) -> Fallible<[u8; N]> {
        let start = ptr as usize;
        let memory = self.handles().memory;
        let mut out = [0; N];
        match memory.data(&*self.0).get(start..start + N) {
            Some(bytes) => {
                out.copy_from_slice(bytes);
                Ok(out)
            }
            None => failure(format!("failed to access memory: {N} bytes at {ptr}")),
        }
    }

    fn read_word(&mut self, ptr: u32) -> Fallible<B256> {
        self.read_fixed(ptr).map(B256::new)
    }

    fn read_u256(&mut self, ptr: u32) -> Fallible<U256> {
        Ok(U256::from_be_bytes(self.read_fixed::<32>(ptr)?))
    }

    fn read_address(&mut self, ptr: u32) -> Fallible<Address> {
        self.read_fixed(ptr).map(Address::new)
    }

    fn write(&mut self, ptr: u32, bytes: &[u8]) -> Fallible<()> {
        let start = ptr as usize;
        let memory = self.handles().memory;
        match memory.data_mut(&mut *self.0).get_mut(start..start + bytes.len()) {
            Some(target) => {
                target.copy_from_slice(bytes);
                Ok(())
            }
            None => failure(format!("failed to access memory: {} bytes at {ptr}", bytes.len())),
        }
    }

    fn write_u256(&mut self, ptr: u32, value: U256) -> Fallible<()> {
        self.write(ptr, &value.to_be_bytes::<32>())
    }

    fn journal(&mut self) -> &mut revm::context::Journal<crate::state::State> {
        &mut self.exec().ctx.journaled_state
    }

    // Frame

    fn read_args(&mut self, dest: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO)?;
        let args = self.host().args.clone();
        self.buy_ink(price::write_ink(args.len() as u32))?;
        self.write(dest, &args)?;
        self.tell(&[], &[&args]);
        Ok(())
    }

    fn write_result(&mut self, ptr: u32, len: u32) -> Fallible<()> {
        self.buy_ink(price::HOSTIO)?;
        self.buy_ink(price::read_ink(len))?;
        self.buy_ink(price::read_ink(len))?;
        let result = self.read(ptr, len)?;
        self.tell(&[&result], &[]);
        self.host().outs = result;
        Ok(())
    }

    fn pay_for_memory_grow(&mut self, pages: u32) -> Fallible<()> {
        if pages > u32::from(u16::MAX) && self.exec().config.arbos >= 59 {
            return self.out_of_ink();
        }
        let pages = pages as u16;
        self.tell(&[&pages.to_be_bytes()], &[]);
        if pages == 0 {
            return self.buy_ink(price::HOSTIO);
        }
        let (model, limit) = (self.host().model, self.host().page_limit);
        let exec = self.exec();
        let (open, ever) = exec.add_pages(pages);
        let gas = if exec.over_page_limit(limit) { u64::MAX } else { model.gas(pages, open, ever) };
        self.buy_gas(gas)
    }
}

impl Exec {
    /// Opens pages; returns how many were open and the most there had been.
    pub(crate) fn add_pages(&mut self, pages: u16) -> (u16, u16) {
        let before = (self.pages_open, self.pages_ever);
        self.pages_open = self.pages_open.saturating_add(pages);
        self.pages_ever = self.pages_ever.max(self.pages_open);
        before
    }

    /// Whether all open programs together have more pages than the chain allows.
    pub(crate) fn over_page_limit(&self, limit: u16) -> bool {
        self.config.arbos >= 59 && limit > 0 && self.pages_open > limit
    }
}
