//! Checks a program's WASM and rewrites it so that it meters itself.
//!
//! Nitro charges for WASM by instrumenting the module, not by asking the engine. The same is done here, so the
//! ink a program costs doesn't depend on the engine that runs it. Four passes, applied function by function in
//! this order, each seeing what the one before it wrote:
//!
//! 1. **ink meter**: each basic block begins by paying the sum of its instructions plus [`BLOCK_HEADER_INK`];
//! 2. **dynamic meter**: `memory.copy` and `memory.fill` pay [`BULK_BYTE_INK`] a byte;
//! 3. **depth checker**: each call pays for the words its frame needs at most, and gives them back;
//! 4. **heap bound**: `memory.grow` first calls `pay_for_memory_grow`.
//!
//! Four globals are appended for it: ink left, ink status (1 = out of ink), a scratch word, stack words left
//! (0 = out of stack).

use std::collections::HashMap;

use wasm_encoder::reencode::{Reencode, RoundtripReencoder};
use wasm_encoder::{ConstExpr, ExportKind, ExportSection, GlobalSection, RawSection, SectionId};
use wasmparser::{
    BinaryReader, BlockType, Chunk, DataKind, ElementItems, ElementKind, ExternalKind, FuncType, Name, NameSectionReader,
    Operator, Parser, Payload, RefType, TypeRef, ValType, Validator, WasmFeatures,
};

use super::hooks;
use super::pricing::opcode_ink;

/// Ink for checking the meter at the start of each basic block.
pub const BLOCK_HEADER_INK: u64 = 2450;
/// Ink per byte of `memory.copy` and `memory.fill`.
pub const BULK_BYTE_INK: u64 = 100;
/// Pages a program's memory may begin with: 8 MiB.
pub const HEAP_BOUND: u64 = 128;
/// Words one frame may need.
pub const MAX_FRAME_WORDS: u32 = 10 * 1024;
/// Values a function may have on its stack at once.
pub const MAX_FRAME_VALUES: u32 = 4096;

/// Name of the exported global that holds the ink left.
pub(crate) const INK_LEFT: &str = "stylus_ink_left";
/// Name of the exported global that is 1 once ink has run out.
pub(crate) const INK_STATUS: &str = "stylus_ink_status";
/// Name of the exported global that holds the stack words left.
pub(crate) const STACK_LEFT: &str = "stylus_stack_left";
const SCRATCH: &str = "stylus_scratch_global";
/// The export that is called.
pub(crate) const ENTRY_POINT: &str = "user_entrypoint";

/// Rules of the chain that decide which modules are accepted.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Stylus version the program is activated for: 1 to 3.
    pub stylus_version: u16,
    /// ArbOS version, or 0 when a program that is already active is compiled again.
    pub arbos: u64,
    /// Pages that may still be opened.
    pub page_limit: u16,
    /// Whether the `console` imports of development chains exist.
    pub debug: bool,
}

/// The figures of a program that activation finds. The costs of starting it follow from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Gas a start costs, on top of the minimum, when the program isn't cached.
    pub init_gas: u16,
    /// Gas every start costs, on top of the minimum.
    pub cached_init_gas: u16,
    /// Estimated size of the machine code in bytes; the data fee follows from it.
    pub asm_estimate: u32,
    /// Pages its memory begins with.
    pub footprint: u16,
    /// Microseconds activation is priced at, one entry per separately rounded charge.
    pub activation_us: [u64; 6],
}

/// A program ready for the engine.
#[derive(Clone, Debug)]
pub struct Metered {
    /// The instrumented module.
    pub wasm: Vec<u8>,
    /// Its figures.
    pub figures: Figures,
}

struct Function<'a> {
    locals: Vec<(u32, ValType)>,
    local_count: u64,
    ops: Vec<Operator<'a>>,
}

/// A module as far as the checks and the rewriting need it.
#[derive(Default)]
struct Module<'a> {
    types: Vec<FuncType>,
    /// Module, name, type index.
    imports: Vec<(&'a str, &'a str, u32)>,
    functions: Vec<u32>,
    table_sizes: Vec<u64>,
    memories: Vec<(u64, Option<u64>)>,
    globals: u64,
    exports: HashMap<&'a str, (ExternalKind, u32)>,
    start: bool,
    codes: Vec<Function<'a>>,
    data_count: usize,
    data_bytes: u64,
    data_range: u64,
    element_count: usize,
    element_range: u64,
    /// Sections that stay as they are.
    raw: HashMap<u8, &'a [u8]>,
    global_section: GlobalSection,
    module_name_len: usize,
}

macro_rules! ensure {
    ($cond:expr, $($msg:tt)*) => {
        if !$cond {
            return Err(format!($($msg)*));
        }
    };
}

fn parse_error(e: impl std::fmt::Display) -> String {
    format!("failed to parse wasm: {e}")
}

/// Checks a program and instruments it.
///
/// # Errors
/// Why it may not be activated, in words.
pub fn meter(wasm: &[u8], rules: Rules) -> Result<Metered, String> {
    let mut module = parse(wasm, rules.stylus_version)?;
    check_names(&module)?;

    let first_global = module.globals as u32;
    let globals = Globals { ink: first_global, status: first_global + 1, scratch: first_global + 2, stack: first_global + 3 };
    for name in [INK_LEFT, INK_STATUS, SCRATCH, STACK_LEFT] {
        ensure!(!module.exports.contains_key(name), "wasm already contains {name}");
    }
    module.globals += 4;

    let (min, max) = memory(&module)?;
    ensure!(min <= HEAP_BOUND, "memory size {min} exceeds bound {HEAP_BOUND}");
    let pay_func = match max {
        Some(max) if max < min => return Err(format!("max memory size {max} is less than min {min}")),
        Some(max) if max == min => None,
        _ => {
            let index = module
                .imports
                .iter()
                .position(|(m, n, _)| *m == hooks::MODULE && *n == "pay_for_memory_grow")
                .ok_or("missing import pay_for_memory_grow")?;
            let ty = &module.types[module.imports[index].2 as usize];
            ensure!(
                ty.params() == [ValType::I32] && ty.results().is_empty(),
                "wrong type for pay_for_memory_grow: {}",
                signature(ty)
            );
            Some(index as u32)
        }
    };

    let mut codes = std::mem::take(&mut module.codes);
    for (index, code) in codes.iter_mut().enumerate() {
        let ops = std::mem::take(&mut code.ops);
        let ops = meter_blocks(ops, &module.types, globals);
        let ops = meter_bulk(ops, globals)?;
        let ops = check_depth(ops, &module, code.local_count, index, globals.stack)?;
        code.ops = match pay_func {
            Some(pay) => pay_for_growth(ops, pay, globals.scratch),
            None => ops,
        };
    }
    module.codes = codes;

    let footprint = min as u16;
    check_entry_point(&module)?;
    let figures = figures(&module, wasm.len() as u64, footprint, rules.stylus_version)?;
    check_limits(&module, rules)?;
    check_links(&module, wasm, rules.debug)?;
    Ok(Metered { wasm: encode(&module, globals)?, figures })
}

fn features(stylus_version: u16) -> WasmFeatures {
    let mut features = WasmFeatures::FLOATS
        | WasmFeatures::GC_TYPES
        | WasmFeatures::MUTABLE_GLOBAL
        | WasmFeatures::SATURATING_FLOAT_TO_INT
        | WasmFeatures::SIGN_EXTENSION
        | WasmFeatures::BULK_MEMORY;
    // Results that are several values can't be proven; programs activated before version 3 may still have them.
    features.set(WasmFeatures::MULTI_VALUE, stylus_version < 3);
    features
}

fn parse(wasm: &[u8], stylus_version: u16) -> Result<Module<'_>, String> {
    Validator::new_with_features(features(stylus_version))
        .validate_all(wasm)
        .map_err(|e| format!("failed to validate wasm: {e}"))?;

    let mut module = Module::default();
    let mut reencoder = RoundtripReencoder;
    let mut parser = Parser::new(0);
    let mut rest = wasm;
    let mut offset = 0;
    loop {
        let (consumed, payload) = match parser.parse(rest, true).map_err(parse_error)? {
            Chunk::Parsed { consumed, payload } => (consumed, payload),
            Chunk::NeedMoreData(_) => return Err(parse_error("unexpected end of file")),
        };
        match payload {
            Payload::Version { num, .. } => {
                ensure!(num == 1, "wasm format version not supported {num}");
            }
            Payload::TypeSection(section) => {
                module.raw.insert(SectionId::Type as u8, &wasm[section.range()]);
                for ty in section.into_iter_err_on_gc_types() {
                    module.types.push(ty.map_err(parse_error)?);
                }
            }
            Payload::ImportSection(section) => {
                module.raw.insert(SectionId::Import as u8, &wasm[section.range()]);
                for import in section {
                    let import = import.map_err(parse_error)?;
                    let TypeRef::Func(ty) = import.ty else {
                        return Err(format!("unsupported import kind: {}.{} is not a function", import.module, import.name));
                    };
                    module.imports.push((import.module, import.name, ty));
                }
            }
            Payload::FunctionSection(section) => {
                module.raw.insert(SectionId::Function as u8, &wasm[section.range()]);
                for ty in section {
                    module.functions.push(ty.map_err(parse_error)?);
                }
            }
            Payload::TableSection(section) => {
                module.raw.insert(SectionId::Table as u8, &wasm[section.range()]);
                for table in section {
                    let ty = table.map_err(parse_error)?.ty;
                    ensure!(ty.element_type == RefType::FUNCREF, "unsupported table type {}", ty.element_type);
                    module.table_sizes.push(ty.initial);
                }
            }
            Payload::MemorySection(section) => {
                module.raw.insert(SectionId::Memory as u8, &wasm[section.range()]);
                for memory in section {
                    let memory = memory.map_err(parse_error)?;
                    module.memories.push((memory.initial, memory.maximum));
                }
            }
            Payload::GlobalSection(section) => {
                for global in section {
                    let global = global.map_err(parse_error)?;
                    let mut init = global.init_expr.get_operators_reader();
                    let first = init.read().map_err(parse_error)?;
                    let last = init.read().map_err(parse_error)?;
                    ensure!(
                        matches!(last, Operator::End)
                            && init.eof()
                            && matches!(
                                first,
                                Operator::I32Const { .. }
                                    | Operator::I64Const { .. }
                                    | Operator::F32Const { .. }
                                    | Operator::F64Const { .. }
                            ),
                        "Non-constant global initializer"
                    );
                    reencoder.parse_global(&mut module.global_section, global).map_err(parse_error)?;
                    module.globals += 1;
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export.map_err(parse_error)?;
                    module.exports.insert(export.name, (export.kind, export.index));
                }
            }
            Payload::StartSection { .. } => module.start = true,
            Payload::ElementSection(section) => {
                module.raw.insert(SectionId::Element as u8, &wasm[section.range()]);
                for element in section {
                    let element = element.map_err(parse_error)?;
                    module.element_count += 1;
                    module.element_range += element.range.len() as u64;
                }
            }
            Payload::DataSection(section) => {
                module.raw.insert(SectionId::Data as u8, &wasm[section.range()]);
                for data in section {
                    let data = data.map_err(parse_error)?;
                    module.data_count += 1;
                    module.data_bytes += data.data.len() as u64;
                    module.data_range += data.range.len() as u64;
                }
            }
            Payload::CodeSectionStart { .. } => {}
            Payload::CodeSectionEntry(body) => {
                let mut function = Function { locals: vec![], local_count: 0, ops: vec![] };
                for local in body.get_locals_reader().map_err(parse_error)? {
                    let (count, ty) = local.map_err(parse_error)?;
                    function.local_count += u64::from(count);
                    function.locals.push((count, ty));
                }
                let mut ops = body.get_operators_reader().map_err(parse_error)?;
                while !ops.eof() {
                    function.ops.push(ops.read().map_err(parse_error)?);
                }
                module.codes.push(function);
            }
            Payload::CustomSection(section) => {
                if section.name() == "name" {
                    let reader = BinaryReader::new(section.data(), section.data_offset());
                    for name in NameSectionReader::new(reader) {
                        match name.map_err(parse_error)? {
                            Name::Module { name, .. } => module.module_name_len = name.len(),
                            Name::Function(names) => {
                                for name in names {
                                    name.map_err(parse_error)?;
                                }
                            }
                            _ => {}
                        }
                    }
                }
            }
            Payload::End(_) => break,
            Payload::DataCountSection { .. } => return Err("unsupported section type: data count".into()),
            other => return Err(format!("unsupported section type {other:?}")),
        }
        rest = &rest[consumed..];
        offset += consumed;
        debug_assert!(offset <= wasm.len());
    }
    Ok(module)
}

fn check_names(module: &Module) -> Result<(), String> {
    let mut seen = HashMap::new();
    for (m, name, ty) in &module.imports {
        if let Some(prior) = seen.insert((m, name), ty) {
            ensure!(prior == ty, "inconsistent imports for {m} {name}");
        }
    }
    // Linking joins module and name by two underscores, so only the part after the last pair counts.
    let exports: Vec<&str> = module.exports.keys().filter_map(|name| name.rsplit("__").next()).collect();
    for (_, name, _) in &module.imports {
        ensure!(!exports.contains(name), "binary exports an import with the same name {name}");
    }
    if let Some(name) = exports.iter().find(|name| name.starts_with("stylus")) {
        return Err(format!("binary exports reserved symbol {name}"));
    }
    if let Some((_, name, _)) = module.imports.iter().find(|(_, name, _)| name.starts_with("stylus")) {
        return Err(format!("binary imports reserved symbol {name}"));
    }
    // Development nodes would let it pass; the networks don't.
    ensure!(!module.start, "start functions not allowed");
    Ok(())
}

fn memory(module: &Module) -> Result<(u64, Option<u64>), String> {
    ensure!(!module.memories.is_empty(), "missing memory export with name memory");
    ensure!(module.memories.len() == 1, "only one memory is allowed");
    ensure!(module.exports.get("memory") == Some(&(ExternalKind::Memory, 0)), "missing memory with export name memory");
    Ok(module.memories[0])
}

fn function_type<'m>(module: &'m Module, index: u32) -> Option<&'m FuncType> {
    let imports = module.imports.len();
    let ty = match module.imports.get(index as usize) {
        Some((_, _, ty)) => *ty,
        None => *module.functions.get(index as usize - imports)?,
    };
    module.types.get(ty as usize)
}

fn signature(ty: &FuncType) -> String {
    let list = |types: &[ValType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    format!("({}) -> ({})", list(ty.params()), list(ty.results()))
}

fn check_entry_point(module: &Module) -> Result<(), String> {
    let Some((kind, index)) = module.exports.get(ENTRY_POINT) else {
        return Err(format!("missing export with name {ENTRY_POINT}"));
    };
    ensure!(*kind == ExternalKind::Func, "export {ENTRY_POINT} must be a function but is a {kind:?}");
    let ty = function_type(module, *index).ok_or("missing type for user_entrypoint")?;
    ensure!(ty.params() == [ValType::I32] && ty.results() == [ValType::I32], "wrong type for {ENTRY_POINT}: {}", signature(ty));
    Ok(())
}

fn figures(module: &Module, wasm_len: u64, footprint: u16, stylus_version: u16) -> Result<Figures, String> {
    let funcs = module.codes.len() as u64;
    let data_len = module.data_range + module.element_range;
    let type_len: u64 = module
        .functions
        .iter()
        .map(|ty| &module.types[*ty as usize])
        .map(|ty| (ty.params().len() + ty.results().len()) as u64)
        .sum();

    let asm_estimate = 512_000 + funcs * 996_829 / 1000 + type_len * 11_416 / 1000 + wasm_len * 62_628 / 10_000;
    let cached = funcs * 13_420 / 100_000
        + type_len * 89 / 100_000
        + wasm_len * 122 / 100_000
        + module.globals * 1628 / 1000
        + data_len * 75_244 / 100_000
        + u64::from(footprint) * 5;
    // In version 1 the cached cost is part of the full one instead of coming on top.
    let init =
        if stylus_version == 1 { cached } else { 0 } + funcs * 8252 / 1000 + type_len * 1059 / 1000 + wasm_len * 1286 / 10_000;

    let operators: u64 = module.codes.iter().map(|c| c.ops.len() as u64).sum();
    Ok(Figures {
        init_gas: init.try_into().map_err(|_| "init cost too high")?,
        cached_init_gas: cached.try_into().map_err(|_| "cached cost too high")?,
        asm_estimate: asm_estimate.try_into().map_err(|_| "asm estimate too large")?,
        footprint,
        activation_us: [
            wasm_len * 31_733 / 100_000,
            module.functions.len() as u64 * 17_263 / 100_000,
            module.data_bytes * 17_376 / 100_000,
            module.element_range * 17_376 / 100_000,
            module.memories[0].0 * 2217,
            operators * 535 / 1000,
        ],
    })
}

fn check_limits(module: &Module, rules: Rules) -> Result<(), String> {
    let pages = module.memories[0].0;
    ensure!(pages <= u64::from(rules.page_limit), "memory exceeds limit: {pages} > {}", rules.page_limit);
    let limit = |limit: u64, count: u64, name: &str| {
        ensure!(count <= limit, "too many wasm {name}: {count} > {limit}");
        Ok(())
    };
    limit(128, module.data_count as u64, "datas")?;
    limit(128, module.element_count as u64, "elements")?;
    // The four globals of the instrumentation are exported too.
    limit(1024, module.exports.len() as u64 + 4, "exports")?;
    limit(4096, module.codes.len() as u64, "functions")?;
    limit(32_768, module.globals, "globals")?;
    for code in &module.codes {
        limit(348, code.local_count, "locals")?;
        limit(65_536, code.ops.len() as u64, "opcodes in func body")?;
    }
    if rules.arbos >= 32 {
        limit(513, module.imports.len() as u64, "imports")?;
    }
    limit(4096, module.table_sizes.iter().fold(0, |a, b| a.saturating_add(*b)), "table entries")?;
    limit(4096, module.element_range, "element entries")?;
    if let Some(name) = module.exports.keys().find(|name| name.len() > 512) {
        return Err(format!("wasm name too long: {} > 512", name.len()));
    }
    ensure!(module.module_name_len <= 512, "wasm module name too long: {} > 512", module.module_name_len);
    Ok(())
}

/// The errors of building the module: imports that don't exist, floats, segments out of bounds.
fn check_links(module: &Module, wasm: &[u8], debug: bool) -> Result<(), String> {
    for (m, name, ty) in &module.imports {
        let ty = &module.types[*ty as usize];
        let Some(expected) = hooks::signature(m, name, debug) else {
            return Err(format!("No such import {name} in {m} for user"));
        };
        ensure!(
            expected.0 == ty.params() && expected.1 == ty.results(),
            "Import {name} for user has different function signature than export: expected {} in {m} but have {}",
            signature(&FuncType::new(expected.0.iter().copied(), expected.1.iter().copied())),
            signature(ty)
        );
    }
    for (index, code) in module.codes.iter().enumerate() {
        if let Some(op) = code.ops.iter().find(|op| is_float_arithmetic(op)) {
            return Err(format!("No implementation for floating point operation {op:?} in func {index}"));
        }
    }
    let memory_bytes = module.memories[0].0 * 65_536;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.map_err(parse_error)? {
            Payload::DataSection(section) => {
                for data in section {
                    let data = data.map_err(parse_error)?;
                    let DataKind::Active { offset_expr, .. } = data.kind else { continue };
                    let offset = constant_offset(offset_expr)?;
                    ensure!(
                        offset + data.data.len() as u64 <= memory_bytes,
                        "Out-of-bounds data memory init with offset {offset} and size {}",
                        data.data.len()
                    );
                }
            }
            Payload::ElementSection(section) => {
                for element in section {
                    let element = element.map_err(parse_error)?;
                    let ElementKind::Active { table_index, offset_expr } = element.kind else { continue };
                    let offset = constant_offset(offset_expr)?;
                    let ElementItems::Functions(items) = element.items else {
                        return Err("Non-constant element initializers are not supported".into());
                    };
                    let table = table_index.unwrap_or_default() as usize;
                    let size = *module.table_sizes.get(table).ok_or("Element segment for non-existent table")?;
                    ensure!(
                        offset + u64::from(items.count()) <= size,
                        "Out of bounds element segment at offset {offset} and length {} for table of length {size}",
                        items.count()
                    );
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn constant_offset(expr: wasmparser::ConstExpr) -> Result<u64, String> {
    let mut ops = expr.get_operators_reader();
    match (ops.read().map_err(parse_error)?, ops.read().map_err(parse_error)?, ops.eof()) {
        (Operator::I32Const { value }, Operator::End, true) => Ok(u64::from(value as u32)),
        (op, ..) => Err(format!("Non-constant segment offset expression {op:?}")),
    }
}

#[rustfmt::skip]
fn is_float_arithmetic(op: &Operator) -> bool {
    use Operator::*;
    matches!(
        op,
        F32Eq | F32Ne | F32Lt | F32Gt | F32Le | F32Ge | F64Eq | F64Ne | F64Lt | F64Gt | F64Le | F64Ge
        | F32Abs | F32Neg | F32Ceil | F32Floor | F32Trunc | F32Nearest | F32Sqrt
        | F32Add | F32Sub | F32Mul | F32Div | F32Min | F32Max | F32Copysign
        | F64Abs | F64Neg | F64Ceil | F64Floor | F64Trunc | F64Nearest | F64Sqrt
        | F64Add | F64Sub | F64Mul | F64Div | F64Min | F64Max | F64Copysign
        | I32TruncF32S | I32TruncF32U | I32TruncF64S | I32TruncF64U
        | I64TruncF32S | I64TruncF32U | I64TruncF64S | I64TruncF64U
        | I32TruncSatF32S | I32TruncSatF32U | I32TruncSatF64S | I32TruncSatF64U
        | I64TruncSatF32S | I64TruncSatF32U | I64TruncSatF64S | I64TruncSatF64U
        | F32ConvertI32S | F32ConvertI32U | F32ConvertI64S | F32ConvertI64U
        | F64ConvertI32S | F64ConvertI32U | F64ConvertI64S | F64ConvertI64U
        | F32DemoteF64 | F64PromoteF32
    )
}

#[derive(Clone, Copy)]
struct Globals {
    ink: u32,
    status: u32,
    scratch: u32,
    stack: u32,
}

/// Whether control may leave the straight line after this instruction. A `loop` ends a block because its own
/// label comes right after it.
fn ends_basic_block(op: &Operator) -> bool {
    use Operator::*;
    matches!(
        op,
        End | Else
            | Return
            | Loop { .. }
            | Br { .. }
            | BrTable { .. }
            | BrIf { .. }
            | If { .. }
            | Call { .. }
            | CallIndirect { .. }
    )
}

fn get<'a>(global_index: u32) -> Operator<'a> {
    Operator::GlobalGet { global_index }
}

fn set<'a>(global_index: u32) -> Operator<'a> {
    Operator::GlobalSet { global_index }
}

/// Pass 1: pays for a basic block before it runs.
fn meter_blocks<'a>(ops: Vec<Operator<'a>>, types: &[FuncType], globals: Globals) -> Vec<Operator<'a>> {
    use Operator::*;
    let mut out = Vec::with_capacity(ops.len() * 3);
    let mut block: Vec<Operator<'a>> = vec![];
    let mut ink = 0u64;
    for op in ops {
        let end = ends_basic_block(&op);
        ink = ink.saturating_add(opcode_ink(&op, types));
        block.push(op);
        if end {
            let cost = ink.saturating_add(BLOCK_HEADER_INK) as i64;
            out.extend([
                get(globals.ink),
                I64Const { value: cost },
                I64LtU,
                If { blockty: BlockType::Empty },
                I32Const { value: 1 },
                set(globals.status),
                Unreachable,
                End,
                get(globals.ink),
                I64Const { value: cost },
                I64Sub,
                set(globals.ink),
            ]);
            out.append(&mut block);
            ink = 0;
        }
    }
    out
}

/// Pass 2: pays for the bytes of bulk memory instructions.
fn meter_bulk(ops: Vec<Operator<'_>>, globals: Globals) -> Result<Vec<Operator<'_>>, String> {
    use Operator::*;
    let mut out = Vec::with_capacity(ops.len());
    for op in ops {
        match op {
            MemoryCopy { .. } | MemoryFill { .. } => out.extend([
                // The length is on top of the stack; length * price can't overflow 64 bits.
                set(globals.scratch),
                get(globals.ink),
                get(globals.ink),
                get(globals.scratch),
                I64ExtendI32U,
                I64Const { value: BULK_BYTE_INK as i64 },
                I64Mul,
                I64Sub,
                set(globals.ink),
                get(globals.ink),
                I64LtU,
                If { blockty: BlockType::Empty },
                I32Const { value: 1 },
                set(globals.status),
                Unreachable,
                End,
                get(globals.scratch),
            ]),
            MemoryInit { .. }
            | DataDrop { .. }
            | ElemDrop { .. }
            | TableInit { .. }
            | TableCopy { .. }
            | TableFill { .. }
            | TableGet { .. }
            | TableSet { .. }
            | TableGrow { .. }
            | TableSize { .. } => return Err(format!("opcode not supported: {op:?}")),
            _ => {}
        }
        out.push(op);
    }
    Ok(out)
}

/// Pass 3: takes the frame's words at entry and gives them back at each return.
fn check_depth<'a>(
    mut ops: Vec<Operator<'a>>,
    module: &Module,
    locals: u64,
    index: usize,
    stack: u32,
) -> Result<Vec<Operator<'a>>, String> {
    use Operator::*;
    let values = worst_case_values(&ops, module)?;
    ensure!(values <= MAX_FRAME_VALUES, "too many values on the stack at once in func {index}: {values} > {MAX_FRAME_VALUES}");
    let size = u64::from(values) + locals + 4;
    ensure!(size <= u64::from(MAX_FRAME_WORDS), "frame too large: {size} > {MAX_FRAME_WORDS}-word limit");
    let value = size as i32;

    let mut out = Vec::with_capacity(ops.len() + 32);
    out.extend([
        get(stack),
        I32Const { value },
        I32LeU,
        If { blockty: BlockType::Empty },
        I32Const { value: 0 },
        set(stack),
        Unreachable,
        End,
        get(stack),
        I32Const { value },
        I32Sub,
        set(stack),
    ]);
    // Falling off the end becomes a return, so that there is one way out to instrument.
    let last = ops.pop().ok_or("empty function body")?;
    ops.push(Return);
    ops.push(last);
    for op in ops {
        if matches!(op, Return) {
            out.extend([get(stack), I32Const { value }, I32Add, set(stack)]);
        }
        out.push(op);
    }
    Ok(out)
}

/// The most values a function may have on its stack. They are counted in a straight line through the instructions, so a branch doesn't
/// lower the count; results of blocks are set aside when the block is entered.
fn worst_case_values(ops: &[Operator], module: &Module) -> Result<u32, String> {
    use Operator::*;
    let mut worst = 0u32;
    let mut stack = 0u32;
    let mut scopes = vec![0u32];
    macro_rules! push {
        ($n:expr) => {{
            stack += $n;
            worst = worst.max(stack);
        }};
    }
    macro_rules! pop {
        ($n:expr) => {
            stack = stack.saturating_sub($n)
        };
    }
    macro_rules! apply {
        ($ty:expr) => {{
            let ty = $ty;
            push!(ty.results().len() as u32);
            pop!(ty.params().len() as u32);
        }};
    }
    macro_rules! block {
        ($ty:expr) => {
            match $ty {
                BlockType::Empty => {}
                BlockType::Type(_) => push!(1),
                BlockType::FuncType(id) => {
                    apply!(module.types.get(*id as usize).ok_or("missing type of a block")?)
                }
            }
        };
    }
    for op in ops {
        match op {
            Block { blockty } | Loop { blockty } => {
                block!(blockty);
                scopes.push(stack);
            }
            If { blockty } => {
                pop!(1);
                block!(blockty);
                scopes.push(stack);
            }
            Else => stack = *scopes.last().ok_or("malformed if-else scope")?,
            End => stack = scopes.pop().ok_or("malformed scoping detected at end of block")?,
            Call { function_index } => {
                apply!(function_type(module, *function_index).ok_or("missing type of a function")?);
            }
            CallIndirect { type_index, .. } => {
                apply!(module.types.get(*type_index as usize).ok_or("missing type of a call")?);
                pop!(1);
            }
            MemoryFill { .. } | MemoryCopy { .. } => pop!(3),
            op => match values(op) {
                Some(n @ 1..) => push!(n as u32),
                Some(n) => pop!(n.unsigned_abs()),
                None => return Err(format!("opcode not supported: {op:?}")),
            },
        }
    }
    Ok(worst)
}

/// By how many values an instruction grows or shrinks the stack.
#[rustfmt::skip]
fn values(op: &Operator) -> Option<i32> {
    use Operator::*;
    Some(match op {
        Nop | Unreachable | Br { .. } | Return | LocalTee { .. } | MemoryGrow { .. }
        | I32Eqz | I64Eqz | I32Clz | I32Ctz | I32Popcnt | I64Clz | I64Ctz | I64Popcnt
        | I32Load { .. } | I64Load { .. } | F32Load { .. } | F64Load { .. }
        | I32Load8S { .. } | I32Load8U { .. } | I32Load16S { .. } | I32Load16U { .. }
        | I64Load8S { .. } | I64Load8U { .. } | I64Load16S { .. } | I64Load16U { .. }
        | I64Load32S { .. } | I64Load32U { .. }
        | I32WrapI64 | I64ExtendI32S | I64ExtendI32U
        | I32Extend8S | I32Extend16S | I64Extend8S | I64Extend16S | I64Extend32S
        | F32Abs | F32Neg | F32Ceil | F32Floor | F32Trunc | F32Nearest | F32Sqrt
        | F64Abs | F64Neg | F64Ceil | F64Floor | F64Trunc | F64Nearest | F64Sqrt
        | I32TruncF32S | I32TruncF32U | I32TruncF64S | I32TruncF64U
        | I64TruncF32S | I64TruncF32U | I64TruncF64S | I64TruncF64U
        | F32ConvertI32S | F32ConvertI32U | F32ConvertI64S | F32ConvertI64U | F32DemoteF64
        | F64ConvertI32S | F64ConvertI32U | F64ConvertI64S | F64ConvertI64U | F64PromoteF32
        | I32ReinterpretF32 | I64ReinterpretF64 | F32ReinterpretI32 | F64ReinterpretI64
        | I32TruncSatF32S | I32TruncSatF32U | I32TruncSatF64S | I32TruncSatF64U
        | I64TruncSatF32S | I64TruncSatF32U | I64TruncSatF64S | I64TruncSatF64U => 0,

        LocalGet { .. } | GlobalGet { .. } | MemorySize { .. }
        | I32Const { .. } | I64Const { .. } | F32Const { .. } | F64Const { .. } => 1,

        Drop | BrIf { .. } | BrTable { .. } | LocalSet { .. } | GlobalSet { .. }
        | I32Eq | I32Ne | I32LtS | I32LtU | I32GtS | I32GtU | I32LeS | I32LeU | I32GeS | I32GeU
        | I64Eq | I64Ne | I64LtS | I64LtU | I64GtS | I64GtU | I64LeS | I64LeU | I64GeS | I64GeU
        | F32Eq | F32Ne | F32Lt | F32Gt | F32Le | F32Ge
        | F64Eq | F64Ne | F64Lt | F64Gt | F64Le | F64Ge
        | I32Add | I32Sub | I32Mul | I32DivS | I32DivU | I32RemS | I32RemU
        | I64Add | I64Sub | I64Mul | I64DivS | I64DivU | I64RemS | I64RemU
        | I32And | I32Or | I32Xor | I32Shl | I32ShrS | I32ShrU | I32Rotl | I32Rotr
        | I64And | I64Or | I64Xor | I64Shl | I64ShrS | I64ShrU | I64Rotl | I64Rotr
        | F32Add | F32Sub | F32Mul | F32Div | F32Min | F32Max | F32Copysign
        | F64Add | F64Sub | F64Mul | F64Div | F64Min | F64Max | F64Copysign => -1,

        Select | I32Store { .. } | I64Store { .. } | F32Store { .. } | F64Store { .. }
        | I32Store8 { .. } | I32Store16 { .. }
        | I64Store8 { .. } | I64Store16 { .. } | I64Store32 { .. } => -2,

        _ => return None,
    })
}

/// Pass 4: pays for pages before they are asked for.
fn pay_for_growth(ops: Vec<Operator<'_>>, pay: u32, scratch: u32) -> Vec<Operator<'_>> {
    let mut out = Vec::with_capacity(ops.len() + 8);
    for op in ops {
        if let Operator::MemoryGrow { .. } = op {
            out.extend([set(scratch), get(scratch), get(scratch), Operator::Call { function_index: pay }]);
        }
        out.push(op);
    }
    out
}

fn encode(module: &Module, globals: Globals) -> Result<Vec<u8>, String> {
    let mut reencoder = RoundtripReencoder;
    let mut out = wasm_encoder::Module::new();
    let raw = |id: SectionId, out: &mut wasm_encoder::Module| {
        if let Some(data) = module.raw.get(&(id as u8)) {
            out.section(&RawSection { id: id as u8, data });
        }
    };
    for id in [SectionId::Type, SectionId::Import, SectionId::Function, SectionId::Table, SectionId::Memory] {
        raw(id, &mut out);
    }

    let mut section = module.global_section.clone();
    let mut variable = |ty, init: ConstExpr| {
        section.global(wasm_encoder::GlobalType { val_type: ty, mutable: true, shared: false }, &init);
    };
    variable(wasm_encoder::ValType::I64, ConstExpr::i64_const(0));
    for _ in 0..3 {
        variable(wasm_encoder::ValType::I32, ConstExpr::i32_const(0));
    }
    out.section(&section);

    let mut exports = ExportSection::new();
    exports.export("memory", ExportKind::Memory, 0);
    exports.export(ENTRY_POINT, ExportKind::Func, module.exports[ENTRY_POINT].1);
    exports.export(INK_LEFT, ExportKind::Global, globals.ink);
    exports.export(INK_STATUS, ExportKind::Global, globals.status);
    exports.export(STACK_LEFT, ExportKind::Global, globals.stack);
    out.section(&exports);

    raw(SectionId::Element, &mut out);
    let mut code = wasm_encoder::CodeSection::new();
    for function in &module.codes {
        let mut locals = vec![];
        for (count, ty) in &function.locals {
            locals.push((*count, reencoder.val_type(*ty).map_err(parse_error)?));
        }
        let mut body = wasm_encoder::Function::new(locals);
        for op in &function.ops {
            body.instruction(&reencoder.instruction(op.clone()).map_err(parse_error)?);
        }
        code.function(&body);
    }
    out.section(&code);
    raw(SectionId::Data, &mut out);
    Ok(out.finish())
}
