//! Compiled modules.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use revm::primitives::B256;
use wasmtime::{Config, Engine, InstancePre, Linker, Module, OptLevel, RegallocAlgorithm};

use super::hooks::{self, Host};

/// Native stack one program may use. The depth checker stops it earlier, at 22,000 words (262,144 before ArbOS 50) of 8 bytes and the
/// compiler's addition to a frame.
fn wasm_stack(arbos: u64) -> usize {
    if arbos >= 50 {
        2 * 1024 * 1024
    } else {
        12 * 1024 * 1024
    }
}

/// Whether programs are compiled quickly rather than well. A node that is itself compiled for development is started anew by every test,
/// and runs a program for less time than the compiler takes. A program's gas is the same.
const QUICKLY: bool = cfg!(debug_assertions);

/// A module ready to be instantiated.
type Ready = Arc<InstancePre<Host>>;

/// Modules kept. One that was dropped is compiled again when it is called.
const CAPACITY: usize = 512;

/// Compiled modules by code hash and Stylus version.
pub(crate) struct ModuleCache {
    engine: Engine,
    stack: usize,
    linker: Linker<Host>,
    modules: Mutex<Modules>,
}

#[derive(Default)]
struct Modules {
    by_code: HashMap<(B256, u16), Ready>,
    /// Oldest first.
    order: VecDeque<(B256, u16)>,
}

impl fmt::Debug for ModuleCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModuleCache").finish_non_exhaustive()
    }
}

impl ModuleCache {
    /// # Errors
    /// The engine doesn't support this machine.
    pub(crate) fn new(debug: bool, arbos: u64) -> Result<Self, String> {
        let stack = wasm_stack(arbos);
        let mut config = Config::new();
        config
            .max_wasm_stack(stack)
            .async_stack_size(stack)
            .cranelift_opt_level(if QUICKLY { OptLevel::None } else { OptLevel::Speed })
            .cranelift_regalloc_algorithm(if QUICKLY { RegallocAlgorithm::SinglePass } else { RegallocAlgorithm::Backtracking })
            .wasm_backtrace_max_frames(None)
            .native_unwind_info(false);
        let engine = Engine::new(&config).map_err(|e| format!("no WASM engine: {e}"))?;
        let linker = hooks::linker(&engine, debug).map_err(|e| format!("no host functions: {e}"))?;
        Ok(Self { engine, stack, linker, modules: Mutex::default() })
    }

    /// Native stack a frame may need, the host's share included.
    pub(crate) fn frame_stack(&self) -> usize {
        self.stack + 512 * 1024
    }

    pub(crate) fn get(&self, code_hash: B256, version: u16) -> Option<Ready> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).by_code.get(&(code_hash, version)).cloned()
    }

    /// Compiles an instrumented module.
    ///
    /// # Errors
    /// The engine's error.
    pub(crate) fn insert(&self, code_hash: B256, version: u16, wasm: &[u8]) -> Result<Ready, String> {
        let module = Module::from_binary(&self.engine, wasm).map_err(|e| format!("{e:#}"))?;
        let ready = Arc::new(self.linker.instantiate_pre(&module).map_err(|e| format!("{e:#}"))?);
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if modules.by_code.insert((code_hash, version), ready.clone()).is_none() {
            modules.order.push_back((code_hash, version));
        }
        if modules.order.len() > CAPACITY {
            if let Some(oldest) = modules.order.pop_front() {
                modules.by_code.remove(&oldest);
            }
        }
        Ok(ready)
    }
}
