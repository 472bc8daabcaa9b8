//! Stylus programs: activation, keeping alive, caching, and ArbOS's records of them.

use revm::context::JournalTr;
use revm::primitives::{Address, B256, U256};
use revm::state::Bytecode;

use super::abi::{ArbWasm, ArbWasmCache};
use super::{missing, uint, uints, value, words, Call, Done, Fail, ARB_WASM, ARB_WASM_CACHE, COPY, NETWORK_FEE_ACCOUNT, READ};
use crate::arbos::{hours_since_start, DataPricer, Inactive, Params, Set, Slot};
use crate::exec::MAX_CODE_SIZE;
use crate::stylus::activate::{self, Source};
use crate::stylus::transform::Rules;

impl From<Inactive> for Fail {
    fn from(inactive: Inactive) -> Self {
        match inactive {
            Inactive::NotActivated => ArbWasm::ProgramNotActivated {}.into(),
            Inactive::NeedsUpgrade { version, current } => {
                ArbWasm::ProgramNeedsUpgrade { version, stylusVersion: current }.into()
            }
            Inactive::Expired { age } => ArbWasm::ProgramExpired { ageInSeconds: age }.into(),
        }
    }
}

pub(super) fn arb_wasm(c: &mut Call<'_>) -> Done {
    methods! { c,
        ArbWasm::activateProgramCall, Payable, 30 => |args| activate_program(c, args.program);
        ArbWasm::codehashKeepaliveCall, Payable, 30 => |args| keepalive(c, args.codehash);
        ArbWasm::stylusVersionCall, View, 30 => |_| uint(c.params()?.version);
        ArbWasm::inkPriceCall, View, 30 => |_| uint(c.params()?.ink_price);
        ArbWasm::maxStackDepthCall, View, 30 => |_| uint(c.params()?.max_stack_depth);
        ArbWasm::freePagesCall, View, 30 => |_| uint(c.params()?.free_pages);
        ArbWasm::pageGasCall, View, 30 => |_| uint(c.params()?.page_gas);
        ArbWasm::pageRampCall, View, 30 => |_| { c.params()?; uint(620_674_314u64) };
        ArbWasm::pageLimitCall, View, 30 => |_| uint(c.params()?.page_limit);
        ArbWasm::minInitGasCall, View, 30 => |_| {
            let params = c.params()?;
            uints([
                U256::from(u64::from(params.min_init_gas) * 128),
                U256::from(u64::from(params.min_cached_init_gas) * 32),
            ])
        };
        ArbWasm::initCostScalarCall, View, 30 => |_| uint(u64::from(c.params()?.init_cost_scalar) * 2);
        ArbWasm::expiryDaysCall, View, 30 => |_| uint(c.params()?.expiry_days);
        ArbWasm::keepaliveDaysCall, View, 30 => |_| uint(c.params()?.keepalive_days);
        ArbWasm::blockCacheSizeCall, View, 30 => |_| uint(c.params()?.block_cache_size);
        ArbWasm::activationGasCall, View, 59 => |_| value(c.load(Slot::ActivationGas)?);
        ArbWasm::codehashVersionCall, View, 30 => |args| uint(c.active(args.codehash)?.0.version);
        ArbWasm::codehashAsmSizeCall, View, 30 => |args| uint(c.active(args.codehash)?.0.asm_size());
        ArbWasm::programVersionCall, View, 30 => |args| {
            let hash = c.code_hash(args.program)?;
            uint(c.active(hash)?.0.version)
        };
        ArbWasm::programInitGasCall, View, 30 => |args| {
            let hash = c.code_hash(args.program)?;
            let (program, params) = c.active(hash)?;
            let cached = program.cached_gas(&params);
            let init = program.init_gas(&params) + if params.version > 1 { cached } else { 0 };
            uints([U256::from(init), U256::from(cached)])
        };
        ArbWasm::programMemoryFootprintCall, View, 30 => |args| {
            let hash = c.code_hash(args.program)?;
            uint(c.active(hash)?.0.footprint)
        };
        ArbWasm::programTimeLeftCall, View, 30 => |args| {
            let hash = c.code_hash(args.program)?;
            let (program, params) = c.active(hash)?;
            uint(params.expiry_seconds().saturating_sub(program.age(c.time())))
        };
    };
    missing(c, ARB_WASM)
}

/// Reads a program's WASM for activation, charging for pieces that lie elsewhere.
fn read_wasm(c: &mut Call<'_>, program: Address, params: &Params) -> Result<Vec<u8>, Fail> {
    let code = c.exec.peek_code(program).1.original_bytes();
    let arbos = c.exec.config.arbos;
    if code.is_empty() || arbos >= 60 && !crate::stylus::is_component(&code, arbos) {
        return Err(ArbWasm::ProgramNotWasm {}.into());
    }
    if arbos < 60 && !crate::stylus::is_program(&code, arbos) {
        return Err(Fail::Revert("specified bytecode is not a Stylus program".into()));
    }
    match activate::source(&code).map_err(Fail::Revert)? {
        Source::Classic(data) => activate::decompress(&data, params.max_wasm_size).map_err(Fail::Revert),
        Source::Root { decompressed, fragments } => {
            if decompressed > params.max_wasm_size {
                return Err(Fail::Revert(format!(
                    "invalid wasm: decompressedLength {decompressed} is greater than MaxWasmSize {}",
                    params.max_wasm_size
                )));
            }
            if fragments.len() > usize::from(params.max_fragment_count) {
                return Err(Fail::Revert(format!("invalid wasm: fragment count exceeds limit of {}", params.max_fragment_count)));
            }
            if fragments.is_empty() {
                return Err(Fail::Revert("invalid wasm: fragment count cannot be zero".into()));
            }
            let mut data = vec![];
            for address in fragments {
                let Ok(account) = c.exec.ctx.journaled_state.load_account_with_code(address);
                let access = if account.is_cold { 2600 } else { 100 };
                let code = account.data.info.code.as_ref().map(Bytecode::original_bytes).unwrap_or_default();
                if c.left < access + COPY * words(MAX_CODE_SIZE) {
                    c.left = 0;
                    return Err(Fail::Burnt);
                }
                c.burn(access + COPY * words(code.len()))?;
                data.extend_from_slice(activate::fragment(&code).map_err(Fail::Revert)?);
            }
            let wasm = activate::decompress(&data, decompressed).map_err(Fail::Revert)?;
            if wasm.len() != decompressed as usize {
                return Err(Fail::Revert(format!(
                    "invalid wasm: decompressed length {} does not match expected length {decompressed}",
                    wasm.len()
                )));
            }
            Ok(wasm)
        }
    }
}

/// Gas charged at the start of each activation.
const ACTIVATION_GAS: u64 = 1_659_168;

fn activate_program(c: &mut Call<'_>, address: Address) -> Done {
    if c.exec.config.arbos >= 59 {
        let gas = c.load(Slot::ActivationGas)?.saturating_to();
        c.burn(gas)?;
    }
    c.burn(ACTIVATION_GAS)?;
    let code_hash = c.free_code_hash(address);
    let params = c.params()?;
    c.burn(READ)?;
    let known = c.exec.program(code_hash);
    let expired = known.activated_at == 0 || known.age(c.time()) > params.expiry_seconds();
    if known.version == params.version && !expired {
        return Err(ArbWasm::ProgramUpToDate {}.into());
    }
    let wasm = read_wasm(c, address, &params)?;

    let rules = Rules {
        stylus_version: params.version,
        arbos: c.exec.config.arbos,
        page_limit: params.page_limit.saturating_sub(c.exec.pages_open),
        debug: c.exec.config.debug,
    };
    let refused = |reason: String| Fail::Halt(format!("program activation failed: {reason}"));
    let activated = activate::activate(&wasm, rules, &mut c.left).map_err(refused)?;
    let metered = &activated.metered;
    c.exec.callees.keep(code_hash, params.version, &metered.wasm).map_err(refused)?;

    // From here on a failure takes all gas as well.
    let all = |_| Fail::Burnt;
    if known.cached {
        c.burn(READ).map_err(all)?;
    }
    c.store(Slot::ModuleHash(code_hash), activated.module_hash.into()).map_err(all)?;
    let time = c.time();
    let data_fee = charge_data(c, metered.figures.asm_estimate)?;
    let program = crate::arbos::Program {
        version: params.version,
        init_cost: metered.figures.init_gas,
        cached_cost: metered.figures.cached_init_gas,
        footprint: metered.figures.footprint,
        activated_at: hours_since_start(time),
        asm_estimate_kb: metered.figures.asm_estimate.div_ceil(1024),
        cached: known.cached,
    };
    c.store(Slot::Program(code_hash), program.pack())?;
    pay_data_fee(c, data_fee)?;
    c.emit(&ArbWasm::ProgramActivated {
        codehash: code_hash,
        moduleHash: activated.module_hash,
        program: address,
        dataFee: data_fee,
        version: params.version,
    })?;
    uints([U256::from(params.version), data_fee])
}

/// Takes machine code into the data pricer; returns its price in wei.
fn charge_data(c: &mut Call<'_>, bytes: u32) -> Result<U256, Fail> {
    // Five words read and two written.
    c.burn(5 * READ)?;
    let mut pricer = DataPricer::load(|slot| c.exec.arbos_load(slot.key()));
    let time = c.time();
    let fee = pricer.charge(bytes, time);
    c.burn(if pricer.demand == 0 { 5000 } else { 20_000 })?;
    c.burn(20_000)?;
    for (slot, value) in pricer.fields() {
        c.exec.arbos_store(slot.key(), value);
    }
    Ok(U256::from(fee))
}

fn pay_data_fee(c: &mut Call<'_>, fee: U256) -> Result<(), Fail> {
    let have = c.inputs.call_value();
    if have < fee {
        return Err(ArbWasm::ProgramInsufficientValue { have, want: fee }.into());
    }
    c.burn(READ)?;
    c.transfer(ARB_WASM, NETWORK_FEE_ACCOUNT, fee)?;
    c.transfer(ARB_WASM, c.inputs.caller, have - fee)
}

fn keepalive(c: &mut Call<'_>, code_hash: B256) -> Done {
    let (mut program, params) = c.active(code_hash)?;
    let age = program.age(c.time());
    if age < params.keepalive_seconds() {
        return Err(ArbWasm::ProgramKeepaliveTooSoon { ageInSeconds: age }.into());
    }
    let fee = charge_data(c, program.asm_size())?;
    program.activated_at = hours_since_start(c.time());
    c.store(Slot::Program(code_hash), program.pack())?;
    pay_data_fee(c, fee)?;
    c.emit(&ArbWasm::ProgramLifetimeExtended { codehash: code_hash, dataFee: fee })?;
    Ok(vec![])
}

pub(super) fn arb_wasm_cache(c: &mut Call<'_>) -> Done {
    methods! { c,
        ArbWasmCache::isCacheManagerCall, View, 30 => |args| value(c.is_member(Set::CacheManagers, args.manager)?);
        ArbWasmCache::allCacheManagersCall, View, 30 => |_| value(c.members(Set::CacheManagers)?);
        ArbWasmCache::cacheProgramCall, Write, 31 => |args| {
            let hash = c.code_hash(args.addr)?;
            set_cached(c, hash, true)
        };
        ArbWasmCache::evictCodehashCall, Write, 30 => |args| set_cached(c, args.codehash, false);
        ArbWasmCache::codehashIsCachedCall, View, 30 => |args| {
            c.burn(READ)?;
            value(c.exec.program(args.codehash).cached)
        };
    };
    missing(c, ARB_WASM_CACHE)
}

fn set_cached(c: &mut Call<'_>, code_hash: B256, cached: bool) -> Done {
    let caller = c.inputs.caller;
    if !c.is_member(Set::CacheManagers, caller)? && !c.is_member(Set::ChainOwners, caller)? {
        return Err(Fail::Burnt);
    }
    let params = c.params()?;
    c.burn(READ)?;
    let mut program = c.exec.program(code_hash);
    if cached && program.version != params.version {
        return Err(ArbWasm::ProgramNeedsUpgrade { version: program.version, stylusVersion: params.version }.into());
    }
    let age = program.age(c.time());
    if cached && age > params.expiry_seconds() {
        return Err(ArbWasm::ProgramExpired { ageInSeconds: age }.into());
    }
    if program.cached == cached {
        return Ok(vec![]);
    }
    c.emit(&ArbWasmCache::UpdateProgramCache { manager: caller, codehash: code_hash, cached })?;
    c.burn(program.init_cost.into())?;
    c.burn(READ)?;
    program.cached = cached;
    c.store(Slot::Program(code_hash), program.pack())?;
    Ok(vec![])
}
