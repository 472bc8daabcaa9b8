//! The steps of a program's WASM between the compiler and the chain: checked against Stylus's rules, stripped, measured and compressed.

use anyhow::{bail, ensure, Context, Result};
use wasm_encoder::reencode::{Reencode, RoundtripReencoder};
use wasmparser::{ExternalKind, Parser, Payload, TypeRef, Validator, WasmFeatures};

/// First bytes of a Stylus program's code on chain: marker, version, and 0 for "brotli without a dictionary".
pub const PREFIX: [u8; 4] = [0xef, 0xf0, 0x00, 0x00];

/// Largest code of an account, prefix included (EIP-170).
pub const MAX_CODE: usize = 24_576;

/// Largest WASM a program may unpack to, in bytes, from ArbOS 60 on; before it was half as much.
pub const MAX_WASM: usize = 256 * 1024;

/// Window of the compression, as a power of two.
const BROTLI_WINDOW: i32 = 22;

/// A module written anew without custom sections and with every integer as short as it goes, refused with a
/// reason if a node would refuse to activate it.
///
/// # Errors
/// Names the first feature, section, import or export that Stylus does not accept.
pub fn finish(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut module = wasm_encoder::Module::new();
    RoundtripReencoder
        .parse_core_module(&mut module, Parser::new(0), &without_extras(wasm)?)
        .context("the compiler's output is not a readable WASM module")?;
    let out = module.finish();
    check(&out)?;
    ensure!(out.len() <= MAX_WASM, "{} bytes of WASM; the limit is {MAX_WASM}", out.len());
    Ok(out)
}

/// The code that goes on chain: the prefix and the module under brotli at its highest quality.
pub fn compress(wasm: &[u8]) -> Vec<u8> {
    compressed(wasm, BROTLI_WINDOW)
}

/// Other bytes that unpack to the same module, about as many: the chain's answer about an inactive program is an answer about these.
pub(crate) fn compress_otherwise(wasm: &[u8]) -> Vec<u8> {
    compressed(wasm, BROTLI_WINDOW - 1)
}

fn compressed(wasm: &[u8], lgwin: i32) -> Vec<u8> {
    let params = brotli::enc::BrotliEncoderParams { quality: 11, lgwin, size_hint: wasm.len(), ..Default::default() };
    let mut out = PREFIX.to_vec();
    brotli::BrotliCompress(&mut &*wasm, &mut out, &params).expect("writing to memory does not fail");
    out
}

/// The module in the code that lies on chain.
///
/// # Errors
/// When it is none that [`compress`] wrote.
pub fn decompress(code: &[u8]) -> Result<Vec<u8>> {
    let packed = code.strip_prefix(PREFIX.as_slice()).context("not a program's code: another prefix")?;
    let mut wasm = Vec::new();
    brotli::BrotliDecompress(&mut &*packed, &mut wasm).context("not a program's code: it cannot be unpacked")?;
    Ok(wasm)
}

/// Leaves out custom sections, and the DataCount section, which only `memory.init` and `data.drop` need:
/// [`check`] refuses both.
fn without_extras(wasm: &[u8]) -> Result<Vec<u8>> {
    const DATA_COUNT: u8 = 12;
    let mut module = wasm_encoder::Module::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload.context("the compiler's output is not a readable WASM module")?;
        if let Some((id, range)) = payload.as_section() {
            if id != 0 && id != DATA_COUNT {
                module.section(&wasm_encoder::RawSection { id, data: &wasm[range] });
            }
        }
    }
    Ok(module.finish())
}

fn check(wasm: &[u8]) -> Result<()> {
    // Sign extension and mutable globals are accepted whole, of bulk memory only copy and fill. Floats pass a
    // node's parser, but fail at activation.
    let features = WasmFeatures::MUTABLE_GLOBAL | WasmFeatures::SIGN_EXTENSION | WasmFeatures::BULK_MEMORY;
    Validator::new_with_features(features).validate_all(wasm).context("not accepted by Stylus")?;

    let (mut entrypoint, mut memory, mut pays) = (false, false, false);
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::StartSection { .. } => bail!("a start function is not accepted by Stylus"),
            Payload::ImportSection(imports) => {
                for import in imports {
                    let import = import?;
                    ensure!(
                        import.module == "vm_hooks" && matches!(import.ty, TypeRef::Func(_)),
                        "imports {}.{}: only functions of vm_hooks can be imported",
                        import.module,
                        import.name
                    );
                    pays |= import.name == "pay_for_memory_grow";
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    entrypoint |= export.name == "user_entrypoint" && export.kind == ExternalKind::Func;
                    memory |= export.name == "memory" && export.kind == ExternalKind::Memory;
                    ensure!(!export.name.starts_with("stylus"), "exports {}, a reserved name", export.name);
                }
            }
            Payload::CodeSectionEntry(body) => {
                for operator in body.get_operators_reader()? {
                    use wasmparser::Operator::*;
                    if let operator @ (MemoryInit { .. }
                    | DataDrop { .. }
                    | TableInit { .. }
                    | ElemDrop { .. }
                    | TableCopy { .. }) = operator?
                    {
                        bail!("contains {operator:?}; of bulk memory Stylus accepts memory.copy and memory.fill only");
                    }
                }
            }
            _ => {}
        }
    }
    ensure!(entrypoint, "exports no user_entrypoint: is there an #[entrypoint]?");
    ensure!(memory, "exports no memory");
    ensure!(pays, "does not import pay_for_memory_grow: was the contract linked without #[entrypoint]?");
    Ok(())
}

/// The figures that decide a program's start cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Functions defined, imports not counted.
    pub functions: u64,
    /// Parameters and results of all those functions.
    pub types: u64,
    /// Globals, the four of a node's instrumentation included.
    pub globals: u64,
    /// Bytes of data and element segments, the heads that say where each goes included.
    pub data: u64,
    /// Memory at the start, in pages of 64 KiB.
    pub pages: u64,
    /// Length of the module in bytes.
    pub length: u64,
}

impl Shape {
    /// Reads the figures out of a module.
    pub fn of(wasm: &[u8]) -> Result<Self> {
        const INSTRUMENTATION: u64 = 4;
        let mut shape = Self { length: wasm.len() as u64, globals: INSTRUMENTATION, ..Self::default() };
        let mut types = Vec::new();
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::TypeSection(section) => {
                    for ty in section.into_iter_err_on_gc_types() {
                        let ty = ty?;
                        types.push((ty.params().len() + ty.results().len()) as u64);
                    }
                }
                Payload::FunctionSection(section) => {
                    for index in section {
                        shape.functions += 1;
                        shape.types += types.get(index? as usize).copied().unwrap_or(0);
                    }
                }
                Payload::GlobalSection(section) => shape.globals += u64::from(section.count()),
                Payload::MemorySection(section) => {
                    for memory in section {
                        shape.pages = memory?.initial;
                    }
                }
                Payload::DataSection(section) => {
                    for data in section {
                        let range = data?.range;
                        shape.data += (range.end - range.start) as u64;
                    }
                }
                Payload::ElementSection(section) => {
                    for element in section {
                        let range = element?.range;
                        shape.data += (range.end - range.start) as u64;
                    }
                }
                _ => {}
            }
        }
        Ok(shape)
    }

    /// Gas to start the program in a transaction's first frame when the node has it in its cache, by the rules
    /// of Stylus version 3, without its memory. Each term is rounded down by itself, as a node does.
    pub fn start_cached(&self) -> u64 {
        352 + self.functions * 13_420 / 100_000
            + self.types * 89 / 100_000
            + self.length * 122 / 100_000
            + self.globals * 1_628 / 1_000
            + self.data * 75_244 / 100_000
            + self.pages * 5
    }

    /// The same when the node must load it first.
    pub fn start_uncached(&self) -> u64 {
        self.start_cached() + 8_832 + self.functions * 8_252 / 1_000 + self.types * 1_059 / 1_000 + self.length * 1_286 / 10_000
    }

    /// Gas for the memory a program starts with, as a transaction's first frame: two pages are free.
    pub fn memory(&self) -> u64 {
        1_000 * self.pages.saturating_sub(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasm_encoder::*;

    /// A module as small as Stylus accepts it, with `body` as its entrypoint's body.
    fn module(body: &[Instruction], change: impl Fn(&mut Parts)) -> Vec<u8> {
        let mut parts = Parts::default();
        change(&mut parts);
        let mut types = TypeSection::new();
        types.ty().function([ValType::I32], []);
        types.ty().function([ValType::I32], [ValType::I32]);
        types.ty().function([], []);
        let mut imports = ImportSection::new();
        imports.import("vm_hooks", parts.import, EntityType::Function(0));
        let mut functions = FunctionSection::new();
        functions.function(1).function(2);
        let mut memories = MemorySection::new();
        memories.memory(MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None });
        let mut exports = ExportSection::new();
        exports.export("memory", ExportKind::Memory, 0).export(parts.export, ExportKind::Func, 1);
        let mut code = CodeSection::new();
        let mut entry = Function::new([]);
        body.iter().for_each(|instruction| {
            entry.instruction(instruction);
        });
        entry.instruction(&Instruction::I32Const(0)).instruction(&Instruction::End);
        let mut other = Function::new([]);
        other.instruction(&Instruction::End);
        code.function(&entry).function(&other);
        let mut data = DataSection::new();
        data.active(0, &ConstExpr::i32_const(0), *b"muster");
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions).section(&memories).section(&exports);
        if parts.start {
            module.section(&StartSection { function_index: 2 });
        }
        if parts.data_count {
            module.section(&DataCountSection { count: 1 });
        }
        module.section(&code).section(&data).section(&CustomSection { name: "name".into(), data: (&[0; 100]).into() });
        module.finish()
    }

    struct Parts {
        import: &'static str,
        export: &'static str,
        start: bool,
        data_count: bool,
    }

    impl Default for Parts {
        fn default() -> Self {
            Self { import: "pay_for_memory_grow", export: "user_entrypoint", start: false, data_count: false }
        }
    }

    #[test]
    fn custom_sections_and_the_data_count_are_left_out() {
        let plain = finish(&module(&[], |_| {})).unwrap();
        assert_eq!(plain, finish(&module(&[], |parts| parts.data_count = true)).unwrap());
        assert!(plain.len() + 100 < module(&[], |_| {}).len(), "the custom section alone has more than 100 bytes");
        assert!(Parser::new(0).parse_all(&plain).all(|p| !matches!(p.unwrap(), Payload::CustomSection(_))));
        let shape = Shape::of(&plain).unwrap();
        let expected = Shape { functions: 2, types: 2, globals: 4, data: 11, pages: 1, length: plain.len() as u64 };
        assert_eq!(
            shape, expected,
            "one parameter and one result in all, four globals of the instrumentation, six bytes of data with a head of \
             five: its kind, the three of i32.const 0 and end, its length"
        );
    }

    #[test]
    fn what_stylus_refuses_is_refused_here() {
        use Instruction::*;
        let copy = [I32Const(0), I32Const(0), I32Const(0), MemoryCopy { src_mem: 0, dst_mem: 0 }];
        finish(&module(&copy, |_| {})).unwrap();
        let init = [I32Const(0), I32Const(0), I32Const(0), MemoryInit { mem: 0, data_index: 0 }];
        let saturating = [F32Const(1.0.into()), I32TruncSatF32S, Drop];
        let vector = [V128Const(0), Drop];
        for (wasm, words) in [
            (module(&init, |parts| parts.data_count = true), "not accepted by Stylus"),
            (module(&[F64Const(1.0.into()), Drop], |_| {}), "not accepted by Stylus"),
            (module(&saturating, |_| {}), "not accepted by Stylus"),
            (module(&vector, |_| {}), "not accepted by Stylus"),
            (module(&[RefNull(HeapType::FUNC), Drop], |_| {}), "not accepted by Stylus"),
            (module(&[], |parts| parts.start = true), "start function"),
            (module(&[], |parts| parts.export = "main"), "user_entrypoint"),
            (module(&[], |parts| parts.export = "stylus_main"), "reserved"),
            (module(&[], |parts| parts.import = "read_args"), "pay_for_memory_grow"),
            (b"not WASM".to_vec(), "not a readable WASM module"),
        ] {
            let error = format!("{:#}", finish(&wasm).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn the_code_on_chain_unpacks_to_the_module() {
        let wasm = finish(&module(&[], |_| {})).unwrap();
        let code = compress(&wasm);
        assert_eq!(code[..4], PREFIX);
        assert_eq!(decompress(&code).unwrap(), wasm);
        let other = compress_otherwise(&wasm);
        assert_ne!(other, code);
        assert_eq!(decompress(&other).unwrap(), wasm);
        for no in [&code[..3], &code[1..], &code[..code.len() - 1]] {
            assert!(decompress(no).is_err());
        }
    }

    #[test]
    fn start_costs_are_rounded_term_by_term() {
        // Worked by hand: 26.84, 0.534, 73.2, 22.792, 4514.64 and 85; not cached also 1650.4, 635.4 and 7716.
        let shape = Shape { functions: 200, types: 600, globals: 14, data: 6_000, pages: 17, length: 60_000 };
        assert_eq!(shape.start_cached(), 352 + 26 + 73 + 22 + 4_514 + 85);
        assert_eq!(shape.start_uncached(), 352 + 26 + 73 + 22 + 4_514 + 85 + 8_832 + 1_650 + 635 + 7_716);
        assert_eq!(shape.memory(), 15_000);
    }
}
