//! The targets' program. Compiled as ever it plays the inputs in `corpus/`, one after the other: a short way to everything that fuzzing has
//! reached. `script/fuzz` compiles it instrumented, and links libFuzzer, which then chooses the inputs.
#![allow(unexpected_cfgs)]
#![cfg_attr(fuzzing, no_main)]

use muster_fuzz::TARGETS;

/// The functions that libFuzzer calls. The target is the one that `FUZZ_TARGET` names.
#[cfg(fuzzing)]
mod under_libfuzzer {
    use super::TARGETS;
    use muster_fuzz::Target;
    use std::sync::OnceLock;

    fn target() -> &'static Target {
        static TARGET: OnceLock<&Target> = OnceLock::new();
        TARGET.get_or_init(|| {
            // libFuzzer keeps the input of a process that ends; a panic, also on another thread, must end it.
            let shows = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                shows(panic);
                std::process::abort();
            }));
            let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
            TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| panic!("no target {name:?}"))
        })
    }

    // The name is libFuzzer's, and nothing else has it.
    #[allow(unsafe_code)]
    #[no_mangle]
    extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, length: usize) -> i32 {
        // SAFETY: libFuzzer hands over that many bytes, which stay as they are until this returns.
        let data = if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, length) } };
        (target().run)(data);
        0
    }
}

#[cfg(not(fuzzing))]
fn main() {
    let corpora = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in TARGETS {
        let begun = std::time::Instant::now();
        let mut files: Vec<_> =
            corpora.join(target.name).read_dir().expect("a corpus").map(|file| file.expect("a file").path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{} has a corpus", target.name);
        let mut bytes = 0;
        for file in &files {
            let data = std::fs::read(file).expect("a file");
            bytes += data.len();
            let passed = std::panic::catch_unwind(|| (target.run)(&data)).is_ok();
            assert!(passed, "to see what fails: script/fuzz {} {}", target.name, file.display());
        }
        let (inputs, took) = (files.len(), begun.elapsed().as_secs_f64());
        println!("{}: {inputs} inputs, {bytes} bytes, {took:.1} s", target.name);
    }
}
