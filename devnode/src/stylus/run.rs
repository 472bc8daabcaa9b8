//! One run of a program.

use std::sync::Arc;

use revm::interpreter::{CallInputs, CallScheme, Gas, InstructionResult, InterpreterResult, SharedMemory};
use revm::primitives::{Bytes, B256};
use wasmi::{Module, Store, TrapCode, Val};

use super::activate::{self, Source};
use super::cache::ModuleCache;
use super::hooks::{Escape, Handles, Host, StorageCache};
use super::pricing::MemoryModel;
use super::transform::{self, Rules, ENTRY_POINT, INK_LEFT, INK_STATUS, STACK_LEFT};
use crate::arbos::{Params, Program, Slot};
use crate::exec::{finish, Exec};
use crate::trace::Watch;
use crate::transaction::StylusFrame;

/// How a program ended.
enum End {
    Returned { status: u32, outs: Vec<u8> },
    OutOfInk,
    OutOfStack,
    Failure(String),
}

impl Exec {
    /// The chain's rules for programs.
    pub(crate) fn params(&mut self) -> Params {
        let mut params = Params::unpack(self.arbos_load(Slot::Params.key()));
        if self.config.arbos < 40 {
            // Not stored yet.
            params.max_wasm_size = Params::of_version(self.config.arbos).max_wasm_size;
        }
        params
    }

    /// The record of a program, active or not.
    pub(crate) fn program(&mut self, code_hash: B256) -> Program {
        Program::unpack(self.arbos_load(Slot::Program(code_hash).key()))
    }

    /// A program's decompressed WASM, without charging for reading it.
    pub(crate) fn wasm(&mut self, code: &[u8], max: u32) -> Result<Vec<u8>, String> {
        match activate::source(code)? {
            Source::Classic(data) => activate::decompress(&data, max),
            Source::Root { decompressed, fragments } => {
                let mut data = vec![];
                for address in fragments {
                    let (_, code) = self.peek_code(address);
                    data.extend_from_slice(activate::fragment(code.original_byte_slice())?);
                }
                activate::decompress(&data, decompressed)
            }
        }
    }
}

/// Runs the program at `inputs.bytecode_address`, on behalf of `inputs.target_address`.
pub(crate) fn run(
    modules: &ModuleCache,
    mut exec: Box<Exec>,
    depth: usize,
    memory: SharedMemory,
    inputs: &CallInputs,
    (code_hash, code): (B256, Bytes),
) -> (Box<Exec>, InterpreterResult) {
    let limit = inputs.gas_limit;
    let mut gas = Gas::new(limit);
    if let Some(tracer) = &mut exec.tracer {
        tracer.wasm();
    }
    let params = exec.params();
    let program = exec.program(code_hash);
    if let Err(inactive) = program.check_active(&params, exec.block.timestamp) {
        exec.reason = Some(inactive.to_string());
        return (exec, finish(InstructionResult::PrecompileError, gas));
    }

    // The cost of the start.
    let model = MemoryModel { free_pages: params.free_pages, page_gas: params.page_gas };
    let open = exec.pages_open;
    let page_gas = model.gas(program.footprint, open, exec.pages_ever);
    let mut start_gas = page_gas;
    let mut recent = false;
    if exec.config.arbos >= 60 {
        let list = Arc::make_mut(&mut exec.ctx.journaled_state.database.recent);
        recent = list.insert(code_hash, params.block_cache_size);
    }
    let cached = program.cached || recent;
    if cached || program.version > 1 {
        start_gas = start_gas.saturating_add(program.cached_gas(&params));
    }
    if !cached {
        start_gas = start_gas.saturating_add(program.init_gas(&params));
    }
    if exec.config.arbos >= 59 && params.page_limit > 0 && open.saturating_add(program.footprint) > params.page_limit {
        start_gas = u64::MAX;
    }
    if start_gas > limit {
        return (exec, finish(InstructionResult::OutOfGas, gas));
    }
    let module = match compiled(modules, &mut exec, code_hash, &code, &program, &params) {
        Ok(module) => module,
        Err(error) => {
            exec.reason = Some(format!("program can't be compiled: {error}"));
            return (exec, finish(InstructionResult::PrecompileError, gas));
        }
    };
    exec.add_pages(program.footprint);

    let ink_price = u64::from(params.ink_price.max(1));
    let ink_start = (limit - start_gas).saturating_mul(ink_price);
    let mut watch = Watch::No;
    if let Some(tracer) = &mut exec.tracer {
        tracer.program_start(page_gas, start_gas - page_gas, ink_price);
        watch = tracer.watch();
    }
    let host = Host {
        memory_context: memory,
        depth,
        read_only: inputs.is_static,
        acting: inputs.target_address,
        caller: inputs.caller,
        value: inputs.call_value(),
        reentrant: exec.acting.get(&inputs.target_address).is_some_and(|open| *open > 1),
        ink_price,
        model,
        page_limit: params.page_limit,
        args: inputs.input.bytes(&exec.ctx),
        outs: vec![],
        return_data: Bytes::new(),
        last_code: None,
        cache: StorageCache::default(),
        refund: 0,
        globals: None,
        watch,
        ink_before: 0,
        told: Default::default(),
        exec: Some(exec),
    };
    let (host, end, ink_end) = execute(modules, &module, host, ink_start, params.max_stack_depth);
    let mut exec = host.exec.expect("every host function gives the transaction back");
    exec.pages_open = open;

    let failure = match &end {
        End::Returned { .. } => None,
        End::OutOfInk => Some("out of ink".to_owned()),
        End::OutOfStack => Some("out of stack".to_owned()),
        End::Failure(reason) => Some(reason.clone()),
    };
    if let (End::Failure(reason), Some(tracer)) = (&end, &mut exec.tracer) {
        tracer.note(reason.clone());
    }
    let program = inputs.bytecode_address;
    exec.stylus.push(StylusFrame { program, start_gas, cached, ink_start, ink_end, failure });

    let (kind, output) = match end {
        End::Returned { status: 0, outs } => (InstructionResult::Return, outs),
        End::Returned { outs, .. } => (InstructionResult::Revert, outs),
        End::Failure(_) => (InstructionResult::Revert, vec![]),
        End::OutOfInk => (InstructionResult::OutOfGas, vec![]),
        // geth's word for it is the call depth, and it takes all gas.
        End::OutOfStack => {
            exec.reason = Some("max call depth exceeded".into());
            (InstructionResult::PrecompileError, vec![])
        }
    };
    let mut left = ink_end / ink_price;
    if !output.is_empty() {
        // Return data costs at least as much as EVM memory of its size.
        let words = (output.len() as u64).div_ceil(32);
        let evm_cost = 3 * words + words * words / 512;
        if limit < evm_cost {
            return (exec, finish(InstructionResult::OutOfGas, gas));
        }
        left = left.min(limit - evm_cost);
    }
    gas.set_remaining(left);
    gas.record_refund(host.refund);
    debug_assert!(inputs.scheme != CallScheme::StaticCall || inputs.is_static);
    (exec, InterpreterResult { result: kind, output: output.into(), gas })
}

fn compiled(
    modules: &ModuleCache,
    exec: &mut Exec,
    code_hash: B256,
    code: &[u8],
    program: &Program,
    params: &Params,
) -> Result<Module, String> {
    if let Some(module) = modules.get(code_hash, program.version) {
        return Ok(module);
    }
    let wasm = exec.wasm(code, params.max_wasm_size)?;
    let rules = Rules { stylus_version: program.version, arbos: 0, page_limit: params.page_limit, debug: exec.config.debug };
    let metered = transform::meter(&wasm, rules)?;
    modules.insert(code_hash, program.version, &metered.wasm)
}

fn execute(modules: &ModuleCache, module: &Module, host: Host, ink: u64, stack: u32) -> (Host, End, u64) {
    let args_len = host.args.len() as u32;
    let mut store = Store::new(modules.linker().engine(), host);
    let instance = match modules.linker().instantiate_and_start(&mut store, module) {
        Ok(instance) => instance,
        Err(error) => return (store.into_data(), End::Failure(format!("{error:#}")), ink),
    };
    let global = |store: &mut Store<Host>, name| instance.get_global(&*store, name).expect("exported by the transform");
    let ink_left = global(&mut store, INK_LEFT);
    let ink_status = global(&mut store, INK_STATUS);
    let stack_left = global(&mut store, STACK_LEFT);
    let memory = instance.get_memory(&store, "memory").expect("exported by the transform");
    store.data_mut().globals = Some(Handles { memory, ink_left, ink_status });
    let set = ink_left.set(&mut store, Val::I64(ink as i64)).and(stack_left.set(&mut store, Val::I32(stack as i32)));
    debug_assert!(set.is_ok());
    let main = instance.get_typed_func::<u32, u32>(&store, ENTRY_POINT).expect("checked by the transform");

    tell(store.data_mut(), ENTRY_POINT, ink, args_len.to_be_bytes().to_vec(), vec![]);
    let result = main.call(&mut store, args_len);
    let ink_left = ink_left.get(&store).i64().unwrap_or_default() as u64;
    let exhausted = ink_status.get(&store).i32() != Some(0);
    let stack_left = stack_left.get(&store).i32();
    let returned = |store: &mut Store<Host>, status| End::Returned { status, outs: std::mem::take(&mut store.data_mut().outs) };
    let end = match result {
        Ok(status) => returned(&mut store, status),
        Err(_) if stack_left == Some(0) => End::OutOfStack,
        Err(error) if error.as_trap_code() == Some(TrapCode::StackOverflow) => End::OutOfStack,
        Err(_) if exhausted => End::OutOfInk,
        Err(error) => match error.downcast_ref::<Escape>() {
            Some(Escape::Exit(status)) => returned(&mut store, *status),
            Some(Escape::OutOfInk) => End::OutOfInk,
            Some(Escape::Failure(reason)) => End::Failure(reason.clone()),
            None => End::Failure(error.to_string()),
        },
    };
    let ink_left = match end {
        End::OutOfInk | End::OutOfStack => 0,
        _ if exhausted => 0,
        _ => ink_left,
    };
    let mut host = store.into_data();
    if let End::Returned { status, .. } = &end {
        tell(&mut host, "user_returned", ink_left, vec![], status.to_be_bytes().to_vec());
    }
    (host, end, ink_left)
}

/// Tells a trace of host calls where the program begins and ends.
fn tell(host: &mut Host, name: &'static str, ink: u64, args: Vec<u8>, outs: Vec<u8>) {
    if host.watch == Watch::All {
        if let Some(tracer) = host.exec.as_mut().and_then(|exec| exec.tracer.as_mut()) {
            tracer.hostio(name, (ink, ink), args, outs);
        }
    }
}
