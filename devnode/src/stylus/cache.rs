//! Compiled modules.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use revm::primitives::B256;
use wasmi::{Config, Engine, Linker, Module};

use super::hooks::{self, Host};

/// Bytes of stack that a program may use. The depth checker stops it earlier, at 22,000 words (262,144 before ArbOS 50) of 8 bytes.
const STACK: usize = 16 * 1024 * 1024;

/// Modules kept. One that was dropped is compiled again when it is called.
const CAPACITY: usize = 512;

/// Compiled modules by code hash and Stylus version.
pub(crate) struct ModuleCache {
    linker: Linker<Host>,
    modules: Mutex<Modules>,
}

#[derive(Default)]
struct Modules {
    by_code: HashMap<(B256, u16), Module>,
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
    /// The engine's error.
    pub(crate) fn new(debug: bool) -> Result<Self, String> {
        let mut config = Config::default();
        config.set_max_stack_height(STACK).set_max_recursion_depth(STACK / size_of::<u64>());
        let engine = Engine::new(&config);
        let linker = hooks::linker(&engine, debug).map_err(|e| format!("no host functions: {e}"))?;
        Ok(Self { linker, modules: Mutex::default() })
    }

    /// The linker with everything that a module may import.
    pub(crate) fn linker(&self) -> &Linker<Host> {
        &self.linker
    }

    pub(crate) fn get(&self, code_hash: B256, version: u16) -> Option<Module> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).by_code.get(&(code_hash, version)).cloned()
    }

    /// Compiles an instrumented module.
    ///
    /// # Errors
    /// The engine's error.
    pub(crate) fn insert(&self, code_hash: B256, version: u16, wasm: &[u8]) -> Result<Module, String> {
        let ready = Module::new(self.linker.engine(), wasm).map_err(|e| format!("{e:#}"))?;
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
