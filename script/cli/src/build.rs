//! Compiles the programs: every default member of the workspace that has a `cdylib` target.
//!
//! There is one way to compile, whatever `script/setup` found: cargo with the standard library built from source for
//! `wasm32-unknown-unknown`. That makes `panic=immediate-abort` possible, the largest single saving (docs/research/build.md has the
//! measurements). The features it needs are unstable, so the compiler is told to accept them whatever its channel.
//!
//! A compiled program is kept under the hash of all its inputs, so that nothing is compiled twice, also not after a change was taken back
//! or another branch was looked at. The last ones are committed in [`COMMITTED`], for a demonstration that need not wait for a compiler.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{bail, ensure, Context, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::wasm::{self, Shape};

/// How programs are compiled. `Default` is the way of programs on chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `abort` or `immediate-abort`.
    pub panic: String,
    /// `3`, `s` or `z`; without it the workspace's `contract` profile decides.
    pub opt_level: Option<String>,
    /// The same for `muster-core` alone.
    pub core_level: Option<String>,
    /// Stack in bytes; rustc's default of 1 MiB would cost a page's gas for each 64 KiB.
    pub stack: u32,
    /// Features of the target beyond those of the first WASM, as for `-C target-feature`.
    pub features: String,
    /// Further arguments to rustc.
    pub extra: Vec<String>,
    /// Passes of binaryen's `wasm-opt`, such as `-O3`; none, and it does not run.
    pub wasm_opt: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            panic: "immediate-abort".into(),
            opt_level: None,
            core_level: None,
            stack: 32 * 1024,
            features: "+bulk-memory,+sign-ext,+mutable-globals".into(),
            extra: Vec::new(),
            wasm_opt: vec!["-O3".into(), "--converge".into()],
        }
    }
}

impl Settings {
    /// Cargo's arguments for the levels that the profile does not decide.
    fn levels(&self) -> Vec<String> {
        let level = |of: &str, level: &Option<String>| {
            let level = level.as_ref()?;
            let level = level.parse::<u8>().map_or_else(|_| format!("{level:?}"), |number| number.to_string());
            Some(["--config".to_owned(), format!("profile.contract.{of}opt-level={level}")])
        };
        [level("", &self.opt_level), level("package.muster-core.", &self.core_level)].into_iter().flatten().flatten().collect()
    }

    fn rustflags(&self, root: &Path) -> Vec<String> {
        let mut flags = vec![
            "-Zunstable-options".to_string(),
            format!("-Cpanic={}", self.panic),
            format!("-Clink-arg=-zstack-size={}", self.stack),
            // rustc's default includes reference types, and with them table indices in a form that Stylus refuses.
            "-Ctarget-cpu=mvp".into(),
            format!("-Ctarget-feature={}", self.features),
            format!("--remap-path-prefix={}=.", root.display()),
        ];
        flags.extend(self.extra.iter().cloned());
        flags
    }
}

/// One compiled program.
#[derive(Clone, Debug)]
pub struct Program {
    /// The package's name without `muster-`.
    pub name: String,
    /// The finished module.
    pub wasm: Vec<u8>,
    /// The code as it lies on chain: prefix and compressed module.
    pub code: Vec<u8>,
    /// The figures that decide its start cost.
    pub shape: Shape,
}

/// `build/manifest.json`: the built programs, and their compiler.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Manifest {
    /// SHA-256 of all that the programs are made from: sources, locked dependencies, compiler, settings.
    pub inputs: String,
    /// As `rustc --version` says it.
    pub rustc: String,
    /// rustc's arguments beyond the profile's.
    pub rustflags: Vec<String>,
    /// Passes of wasm-opt.
    pub wasm_opt: Vec<String>,
    /// By program.
    pub programs: BTreeMap<String, Entry>,
}

/// One program in the manifest.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Entry {
    /// Bytes of the finished module.
    pub wasm_bytes: usize,
    /// Bytes on chain, prefix included.
    pub deployed_bytes: usize,
    /// Of the finished module.
    pub wasm_sha256: String,
    /// Gas to start it, by the platform's formulas: cached and not.
    pub start_gas: (u64, u64),
}

/// Where the project's files are: the nearest directory upwards that holds the workspace.
///
/// # Errors
/// When the current directory is not inside the project.
pub fn root() -> Result<PathBuf> {
    let here = std::env::current_dir()?;
    here.ancestors()
        .find(|dir| dir.join("Stylus.toml").exists() && dir.join("Cargo.lock").exists())
        .map(Path::to_path_buf)
        .context("not inside Muster's directory: run this from the project")
}

/// The compiler that `script/setup` chose.
#[derive(Clone, Debug)]
pub struct Toolchain {
    cargo: PathBuf,
    rustc: PathBuf,
    lld: PathBuf,
}

impl Toolchain {
    /// Reads the file that `script/setup` wrote.
    ///
    /// # Errors
    /// When setup has not run.
    pub fn load(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join(".muster/wasm")).context("the project is not set up: run script/setup first")?;
        let get = |key: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
                .map(PathBuf::from)
                .with_context(|| format!(".muster/wasm names no {key}: remove .muster and run script/setup again"))
        };
        Ok(Self { cargo: get("cargo")?, rustc: get("rustc")?, lld: get("lld")? })
    }

    /// As `rustc --version` says it.
    pub fn version(&self) -> Result<String> {
        let out = Command::new(&self.rustc)
            .arg("--version")
            .output()
            .with_context(|| format!("cannot run {}: run script/setup again", self.rustc.display()))?;
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_string())
    }

    /// Compiles all programs, or only those named. Standard error is cargo's.
    ///
    /// # Errors
    /// When the compiler fails, a named program does not exist, or Stylus would refuse the result.
    pub fn compile(&self, root: &Path, settings: &Settings, only: &[String]) -> Result<Vec<Program>> {
        let mut members = members(&self.cargo, root)?;
        ensure!(!members.is_empty(), "no default member of the workspace has a cdylib target: nothing to build");
        for name in only {
            ensure!(
                members.iter().any(|member| member.name() == name),
                "there is no program {name}; there are: {}",
                members.iter().map(Member::name).collect::<Vec<_>>().join(", ")
            );
        }
        members.retain(|member| only.is_empty() || only.iter().any(|name| member.name() == name));

        let path = std::env::join_paths(
            std::iter::once(self.lld.clone()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        )?;
        let mut cargo = Command::new(&self.cargo);
        cargo
            .current_dir(root)
            .args(["build", "--lib", "--locked", "--profile", "contract", "--target", "wasm32-unknown-unknown"])
            .args([
                "-Zbuild-std=std,panic_abort",
                "--message-format",
                "json-render-diagnostics",
                "--target-dir",
                "target/contracts",
            ])
            .args(members.iter().flat_map(|member| ["-p", &member.package]))
            .args(settings.levels())
            .env("PATH", path)
            .env("RUSTC", &self.rustc)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_ENCODED_RUSTFLAGS", settings.rustflags(root).join("\x1f"))
            // Set by an outer `cargo run`; they would make the inner one think of another toolchain.
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("RUSTC_WRAPPER")
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .stderr(Stdio::inherit());
        let out = cargo.output().with_context(|| format!("cannot run {}: run script/setup again", self.cargo.display()))?;
        if !out.status.success() {
            bail!("the contracts do not compile (see above)");
        }

        let artifacts: Vec<Artifact> =
            out.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let finish_one = |member: &Member| {
            let name = member.name().to_string();
            let file = artifacts
                .iter()
                .filter(|artifact| artifact.manifest_path == member.manifest)
                .flat_map(|artifact| &artifact.filenames)
                .find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
                .with_context(|| format!("cargo made no WASM file for {name}"))?;
            all_are_inputs(root, &file.with_extension("d"))?;
            let (wasm, code) = finish(root, file, &settings.wasm_opt).with_context(|| format!("program {name}"))?;
            let shape = Shape::of(&wasm)?;
            Ok(Program { name, wasm, code, shape })
        };
        // Optimising and compressing take a third of the whole time, and one processor.
        members.par_iter().map(finish_one).collect()
    }

    /// As the tools say their versions: all that is not in the project and has a part in the bytes.
    fn versions(&self) -> Result<String> {
        // The linker comes with this cargo.
        let cargo = Command::new(&self.cargo).arg("--version").output();
        let cargo = cargo.with_context(|| format!("cannot run {}: run script/setup again", self.cargo.display()))?;
        Ok(format!("{}\n{}", self.version()?, String::from_utf8_lossy(&cargo.stdout).trim()))
    }
}

/// The hash of all that the programs are made from.
fn inputs(root: &Path, versions: &str, settings: &Settings) -> Result<String> {
    let mut hash = Sha256::new();
    let mut add = |name: &str, content: &[u8]| {
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
        hash.update((content.len() as u64).to_le_bytes());
        hash.update(content);
    };
    add("versions", versions.as_bytes());
    add("settings", format!("{settings:?}").as_bytes());
    // The code that compiles and finishes them is a part of this executable.
    add("build.rs", include_bytes!("build.rs"));
    add("wasm.rs", include_bytes!("wasm.rs"));
    // Cargo lets the environment override a profile.
    for (name, value) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PROFILE_CONTRACT_")) {
        add(&name, value.as_bytes());
    }
    for file in input_files(root)? {
        add(&file.to_string_lossy(), &fs::read(root.join(&file)).with_context(|| format!("{}", file.display()))?);
    }
    Ok(format!("{:x}", hash.finalize()))
}

/// Files that have a part in the programs, beside those under [`SOURCES`].
const FILES: [&str; 5] = [".cargo/config.toml", "Cargo.lock", "Cargo.toml", "abi/IMuster.sol", BINARYEN];

/// The compiled programs that are committed, as they lie on chain, with their manifest.
const COMMITTED: &str = "abi/programs";

/// In the hash of committed programs for the versions of the tools, which are another machine's: the manifest names the compiler.
const COMMITTED_BY: &str = "any";

/// Names the version of `wasm-opt`.
const BINARYEN: &str = "node_modules/binaryen/package.json";

/// Where the programs' sources are.
const SOURCES: &str = "contracts";

/// The files that the programs are made from, from the root and in one order everywhere.
fn input_files(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut files: BTreeSet<_> = FILES.iter().map(PathBuf::from).filter(|file| root.join(file).exists()).collect();
    let mut directories = vec![PathBuf::from(SOURCES)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(&directory)).with_context(|| format!("{}", directory.display()))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            if !entry.file_type()?.is_dir() {
                files.insert(path);
            } else if !["tests", "target"].contains(&&*entry.file_name().to_string_lossy()) {
                directories.push(path);
            }
        }
    }
    Ok(files)
}

/// That rustc read no file of the project that does not count as an input: a program would be kept although that file changed. `listed` is
/// the file that cargo wrote beside the program, in make's syntax.
fn all_are_inputs(root: &Path, listed: &Path) -> Result<()> {
    let text = fs::read_to_string(listed).with_context(|| format!("cargo wrote no {}", listed.display()))?;
    let known = input_files(root)?;
    // A space in a name is escaped.
    let text = text.replace("\\ ", "\0");
    for file in text.lines().filter_map(|line| line.split_once(": ")).flat_map(|(_, files)| files.split(' ')) {
        let file = PathBuf::from(file.replace('\0', " "));
        // `include_str!("../x")` is listed as it was written.
        let file = file.components().fold(PathBuf::new(), |mut path, part| {
            match part {
                Component::ParentDir => _ = path.pop(),
                part => path.push(part),
            }
            path
        });
        let Ok(own) = file.strip_prefix(root) else { continue };
        ensure!(
            known.contains(own) || own.starts_with("target"),
            "{} is compiled into the programs, but script/cli/src/build.rs does not count it among their inputs",
            own.display()
        );
    }
    Ok(())
}

/// Cargo's message about each artifact that it has compiled.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    filenames: Vec<PathBuf>,
}

/// A package that is a program.
struct Member {
    package: String,
    manifest: PathBuf,
}

impl Member {
    fn name(&self) -> &str {
        self.package.strip_prefix("muster-").unwrap_or(&self.package)
    }
}

/// Packages that are programs: default members with a `cdylib` target.
fn members(cargo: &Path, root: &Path) -> Result<Vec<Member>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
        workspace_default_members: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Package {
        id: String,
        name: String,
        manifest_path: PathBuf,
        targets: Vec<Target>,
    }
    #[derive(Deserialize)]
    struct Target {
        crate_types: Vec<String>,
    }
    let out = Command::new(cargo)
        .current_dir(root)
        .args(["metadata", "--no-deps", "--locked", "--format-version", "1"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(out.status.success(), "cargo metadata failed (see above)");
    let metadata: Metadata = serde_json::from_slice(&out.stdout).context("cargo metadata wrote something unexpected")?;
    let mut members = Vec::new();
    for id in &metadata.workspace_default_members {
        let Some(package) = metadata.packages.iter().find(|package| package.id == *id) else { continue };
        let Some(target) = package.targets.iter().find(|target| target.crate_types.iter().any(|kind| kind == "cdylib")) else {
            continue;
        };
        // cargo says nothing when it leaves out `lto`.
        ensure!(
            target.crate_types.len() == 1,
            "{}: cargo optimises no `cdylib` across crates that has other types too",
            package.name
        );
        members.push(Member { package: package.name.clone(), manifest: package.manifest_path.clone() });
    }
    Ok(members)
}

/// From the compiler's output to the finished module and its code on chain. A finished module is kept under its hash, because optimising
/// and compressing take longer than an incremental compilation.
fn finish(root: &Path, compiled: &Path, passes: &[String]) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut hash = Sha256::new();
    hash.update(fs::read(compiled)?);
    hash.update(passes.join(" "));
    hash.update(fs::read(root.join(BINARYEN)).context("binaryen is not installed: run script/setup first")?);
    hash.update(include_bytes!("wasm.rs"));
    let kept = root.join("target/contracts/finished").join(format!("{:x}", hash.finalize()));
    let (wasm, code) = (kept.with_extension("wasm"), kept.with_extension("deploy"));
    if let (Ok(wasm), Ok(code)) = (fs::read(&wasm), fs::read(&code)) {
        return Ok((wasm, code));
    }
    fs::create_dir_all(kept.parent().expect("has a parent"))?;
    let module = if passes.is_empty() { fs::read(compiled)? } else { optimise(root, compiled, passes)? };
    let module = wasm::finish(&module)?;
    let compressed = wasm::compress(&module);
    fs::write(wasm, &module)?;
    fs::write(code, &compressed)?;
    Ok((module, compressed))
}

fn optimise(root: &Path, compiled: &Path, passes: &[String]) -> Result<Vec<u8>> {
    let out = compiled.with_extension("opt.wasm");
    let status = Command::new(root.join("node_modules/.bin/wasm-opt"))
        .args(["--mvp-features", "--enable-sign-ext", "--enable-bulk-memory", "--enable-mutable-globals"])
        .args(passes)
        .arg(compiled)
        .arg("-o")
        .arg(&out)
        .status()
        .context("cannot run wasm-opt: run script/setup first")?;
    ensure!(status.success(), "wasm-opt failed on {}", compiled.display());
    Ok(fs::read(out)?)
}

/// Compiles everything and writes `build/<name>.wasm`, `build/<name>.deploy` and `build/manifest.json`; and `build/router.deploy`.
/// Programs that were made from the same before are taken from there; if they are in `build/` already, no file is touched.
///
/// # Errors
/// Those of [`Toolchain::compile`], and when a program is above [`wasm::MAX_CODE`]; its files are written all the
/// same, the manifest is not.
pub fn build(root: &Path, settings: &Settings) -> Result<(Manifest, Vec<Program>)> {
    build_or_take(root, settings, false)
}

/// Like [`build`] with the default settings, but takes the committed programs where they are made from these sources: compiling takes a
/// third of a first demonstration. They count for nothing else, since nobody compiled them on this machine.
///
/// # Errors
/// Those of [`build`].
pub fn take(root: &Path) -> Result<(Manifest, Vec<Program>)> {
    build_or_take(root, &Settings::default(), true)
}

fn build_or_take(root: &Path, settings: &Settings, take: bool) -> Result<(Manifest, Vec<Program>)> {
    let toolchain = Toolchain::load(root)?;
    let made_from = inputs(root, &toolchain.versions()?, settings)?;
    let committed = if take { committed(root)? } else { None };
    let dir = root.join("build");
    let router = muster_router::code();
    let made_of = |inputs: &str, dir: &Path| read(dir).ok().filter(|(manifest, _)| manifest.inputs == inputs);
    if fs::read(dir.join("router.deploy")).is_ok_and(|code| code == router) {
        let taken = committed.as_ref().map(|(manifest, _)| manifest.inputs.as_str());
        if let Some(built) = std::iter::once(made_from.as_str()).chain(taken).find_map(|inputs| made_of(inputs, &dir)) {
            return Ok(built);
        }
    }
    let kept = root.join("target/contracts/kept").join(&made_from);
    let (manifest, programs) = if let Some(built) = made_of(&made_from, &kept).or(committed) {
        built
    } else {
        let mut programs = toolchain.compile(root, settings, &[])?;
        // As they are read.
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        (manifest(&toolchain, settings, made_from.clone(), &programs)?, programs)
    };
    write(&dir, &programs)?;
    // No WASM, but to be compared with what lies on chain like theirs.
    fs::write(dir.join("router.deploy"), router)?;
    let file = dir.join("manifest.json");
    if programs.iter().any(|program| program.code.len() > wasm::MAX_CODE) {
        let _ = fs::remove_file(file);
    } else {
        let text = serde_json::to_string_pretty(&manifest)? + "\n";
        if manifest.inputs == made_from {
            write(&kept, &programs)?;
            // Last: with it they count.
            fs::write(kept.join("manifest.json"), &text)?;
        }
        fs::write(file, text)?;
    }
    Ok((manifest, programs))
}

/// The committed programs, if they are made from these sources.
fn committed(root: &Path) -> Result<Option<(Manifest, Vec<Program>)>> {
    let from = committed_from(root)?;
    Ok(read_committed(root).ok().filter(|(manifest, _)| manifest.inputs == from))
}

/// The hash of all that committed programs are to be made from.
fn committed_from(root: &Path) -> Result<String> {
    inputs(root, COMMITTED_BY, &Settings::default())
}

fn read_committed(root: &Path) -> Result<(Manifest, Vec<Program>)> {
    read_with(&root.join(COMMITTED), |_, code| wasm::decompress(code)).context(COMMITTED)
}

/// Writes compiled programs to where they are committed.
///
/// # Errors
/// When a file cannot be written.
pub fn commit(root: &Path, manifest: &Manifest, programs: &[Program]) -> Result<()> {
    let dir = root.join(COMMITTED);
    write(&dir, programs)?;
    // The code that lies on chain has the module in it.
    for program in programs {
        fs::remove_file(dir.join(&program.name).with_extension("wasm"))?;
    }
    let manifest = Manifest { inputs: committed_from(root)?, ..manifest.clone() };
    Ok(fs::write(dir.join("manifest.json"), serde_json::to_string_pretty(&manifest)? + "\n")?)
}

/// That the committed programs are those that were compiled here; says whether it could be checked, which another compiler cannot.
///
/// # Errors
/// When they are not.
pub fn check_committed(root: &Path, manifest: &Manifest, programs: &[Program]) -> Result<bool> {
    let (other, theirs) = read_committed(root)?;
    if other.rustc != manifest.rustc {
        return Ok(false);
    }
    let same = theirs.len() == programs.len() && theirs.iter().zip(programs).all(|(a, b)| a.name == b.name && a.code == b.code);
    ensure!(
        same && other.inputs == committed_from(root)?,
        "{COMMITTED} are not the programs that these sources give: script/build --commit writes them"
    );
    Ok(true)
}

fn manifest(toolchain: &Toolchain, settings: &Settings, inputs: String, programs: &[Program]) -> Result<Manifest> {
    let entry = |program: &Program| {
        let entry = Entry {
            wasm_bytes: program.wasm.len(),
            deployed_bytes: program.code.len(),
            wasm_sha256: format!("{:x}", Sha256::digest(&program.wasm)),
            start_gas: (program.shape.start_cached(), program.shape.start_uncached()),
        };
        (program.name.clone(), entry)
    };
    Ok(Manifest {
        inputs,
        rustc: toolchain.version()?,
        rustflags: settings.rustflags(Path::new("<project>")),
        wasm_opt: settings.wasm_opt.clone(),
        programs: programs.iter().map(entry).collect(),
    })
}

/// Writes the programs' files, and takes away those of programs that are no longer.
fn write(dir: &Path, programs: &[Program]) -> Result<()> {
    fs::create_dir_all(dir)?;
    for file in fs::read_dir(dir)? {
        let file = file?.path();
        let ours = file.extension().is_some_and(|extension| extension == "wasm" || extension == "deploy");
        let known = |program: &Program| file.file_stem().is_some_and(|stem| stem == program.name.as_str());
        if ours && !programs.iter().any(known) {
            fs::remove_file(file)?;
        }
    }
    for program in programs {
        fs::write(dir.join(&program.name).with_extension("wasm"), &program.wasm)?;
        fs::write(dir.join(&program.name).with_extension("deploy"), &program.code)?;
    }
    Ok(())
}

/// Reads the files of an earlier [`build`].
///
/// # Errors
/// When there is none, or its files do not belong together.
pub fn load(root: &Path) -> Result<(Manifest, Vec<Program>)> {
    read(&root.join("build"))
}

/// Reads the files of a build.
fn read(dir: &Path) -> Result<(Manifest, Vec<Program>)> {
    read_with(dir, |name, _| fs::read(dir.join(name).with_extension("wasm")).with_context(|| format!("{name}.wasm")))
}

/// Reads the files of a build whose modules come from their name and their code on chain.
fn read_with(dir: &Path, module: impl Fn(&str, &[u8]) -> Result<Vec<u8>>) -> Result<(Manifest, Vec<Program>)> {
    let text = fs::read_to_string(dir.join("manifest.json"))
        .context("there are no compiled programs within the limit: run script/build first")?;
    let manifest: Manifest = serde_json::from_str(&text).context("manifest.json cannot be read: run script/build again")?;
    let mut programs = Vec::new();
    for (name, entry) in &manifest.programs {
        let code = fs::read(dir.join(name).with_extension("deploy")).with_context(|| format!("{name}.deploy"))?;
        let wasm = module(name, &code)?;
        ensure!(
            format!("{:x}", Sha256::digest(&wasm)) == entry.wasm_sha256 && code.len() == entry.deployed_bytes,
            "{name} and manifest.json are of different builds: run script/build again"
        );
        programs.push(Program { name: name.clone(), shape: Shape::of(&wasm)?, wasm, code });
    }
    Ok((manifest, programs))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project of one program, whose compiler says this version and whose cargo cannot compile.
    fn project(rustc: &str) -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for (file, text) in [
            ("Cargo.lock", "locked"),
            ("Cargo.toml", "[profile.contract]"),
            ("abi/IMuster.sol", "interface"),
            (BINARYEN, "1.0"),
            ("contracts/one/Cargo.toml", "[package]"),
            ("contracts/one/src/lib.rs", "source"),
            ("contracts/one/tests/it.rs", "test"),
            ("README.md", "text"),
        ] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), text).unwrap();
        }
        for (tool, text) in
            [("rustc", format!("echo rustc {rustc}")), ("cargo", "[ $1 = --version ] && echo cargo 1 || exit 1".into())]
        {
            fs::write(root.join(tool), format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(root.join(tool), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir(root.join(".muster")).unwrap();
        let (cargo, rustc) = (root.join("cargo"), root.join("rustc"));
        fs::write(root.join(".muster/wasm"), format!("cargo={}\nrustc={}\nlld=/\n", cargo.display(), rustc.display())).unwrap();
        place
    }

    /// Everything that changes a program changes the hash, and taking it back gives the old one.
    #[test]
    fn the_inputs_are_all_that_a_program_is_made_from() {
        let place = project("1");
        let root = place.path();
        let settings = Settings::default();
        let now = || inputs(root, "versions", &settings).unwrap();
        let first = now();
        for file in
            ["Cargo.lock", "Cargo.toml", "abi/IMuster.sol", BINARYEN, "contracts/one/Cargo.toml", "contracts/one/src/lib.rs"]
        {
            let before = fs::read(root.join(file)).unwrap();
            fs::write(root.join(file), "changed").unwrap();
            assert_ne!(now(), first, "{file}");
            fs::write(root.join(file), before).unwrap();
            assert_eq!(now(), first, "{file}");
        }
        for file in [".cargo/config.toml", "contracts/one/src/new.rs", "contracts/two/src/lib.rs"] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
            assert_ne!(now(), first, "{file}");
            fs::remove_file(root.join(file)).unwrap();
        }
        fs::rename(root.join("contracts/one/src/lib.rs"), root.join("contracts/one/src/other.rs")).unwrap();
        assert_ne!(now(), first, "a file with another name");
        fs::rename(root.join("contracts/one/src/other.rs"), root.join("contracts/one/src/lib.rs")).unwrap();
        for file in ["README.md", "contracts/one/tests/it.rs"] {
            fs::write(root.join(file), "changed").unwrap();
            assert_eq!(now(), first, "{file} is no part of a program");
        }
        assert_ne!(inputs(root, "other versions", &settings).unwrap(), first);
        let all: BTreeSet<_> =
            crate::measure::variants().iter().map(|(_, settings)| inputs(root, "versions", settings).unwrap()).collect();
        assert_eq!(all.len(), crate::measure::variants().len(), "each setting gives other programs");
    }

    /// The compiler of this project fails: all results come from earlier ones.
    #[test]
    fn programs_are_compiled_only_if_something_changed() {
        let place = project("1");
        let (root, settings) = (place.path(), Settings::default());
        let modified = |file: &str| fs::metadata(root.join("build").join(file)).unwrap().modified().unwrap();
        assert!(build(root, &settings).is_err(), "nothing is kept yet");

        let toolchain = Toolchain::load(root).unwrap();
        let wasm = wasm_encoder::Module::new().finish();
        let program = Program { name: "one".into(), code: vec![1], shape: Shape::of(&wasm).unwrap(), wasm };
        let hash = inputs(root, &toolchain.versions().unwrap(), &settings).unwrap();
        let kept = root.join("target/contracts/kept").join(&hash);
        let programs = std::slice::from_ref(&program);
        write(&kept, programs).unwrap();
        let manifest = manifest(&toolchain, &settings, hash, programs).unwrap();
        fs::write(kept.join("manifest.json"), serde_json::to_string(&manifest).unwrap()).unwrap();

        let (built, _) = build(root, &settings).unwrap();
        assert_eq!(built, manifest);
        assert_eq!(load(root).unwrap().0, manifest, "build/ has them");
        let before = ["manifest.json", "one.wasm", "one.deploy", "router.deploy"].map(modified);
        // Without the kept files, so that nothing can come from there.
        fs::rename(&kept, root.join("aside")).unwrap();
        build(root, &settings).unwrap();
        assert_eq!(["manifest.json", "one.wasm", "one.deploy", "router.deploy"].map(modified), before, "no file was touched");

        fs::write(root.join("contracts/one/src/lib.rs"), "changed").unwrap();
        let refused = build(root, &settings).unwrap_err();
        assert!(format!("{refused:#}").contains("cargo"), "{refused:#}");
        fs::write(root.join("contracts/one/src/lib.rs"), "source").unwrap();
        build(root, &settings).unwrap();
        fs::write(root.join("rustc"), "#!/bin/sh\necho rustc 2\n").unwrap();
        assert!(build(root, &settings).is_err(), "another compiler");
        fs::write(root.join("rustc"), "#!/bin/sh\necho rustc 1\n").unwrap();
        build(root, &settings).unwrap();
        fs::write(root.join("build/one.wasm"), "cut").unwrap();
        assert!(build(root, &settings).is_err(), "build/ is not as it was written");
        fs::rename(root.join("aside"), &kept).unwrap();
        assert_eq!(build(root, &settings).unwrap().1[0].wasm, program.wasm, "mended from what is kept");
    }

    /// The compiler of this project fails here, too.
    #[test]
    fn committed_programs_are_taken_where_they_are_asked_for_and_fit_the_sources() {
        let place = project("1");
        let (root, settings) = (place.path(), Settings::default());
        let toolchain = Toolchain::load(root).unwrap();
        let wasm = wasm_encoder::Module::new().finish();
        let program = Program { name: "one".into(), code: wasm::compress(&wasm), shape: Shape::of(&wasm).unwrap(), wasm };
        let programs = std::slice::from_ref(&program);
        let compiled = manifest(&toolchain, &settings, "compiled".into(), programs).unwrap();
        assert!(take(root).is_err(), "nothing is committed yet");
        commit(root, &compiled, programs).unwrap();
        assert!(check_committed(root, &compiled, programs).unwrap());

        assert!(build(root, &settings).is_err(), "they are not asked for");
        let (manifest, taken) = take(root).unwrap();
        assert_eq!((&manifest.programs, &taken[0].wasm, &taken[0].code), (&compiled.programs, &program.wasm, &program.code));
        assert_eq!(load(root).unwrap().0, manifest, "build/ has them");
        let modified = || fs::metadata(root.join("build/manifest.json")).unwrap().modified().unwrap();
        let before = modified();
        take(root).unwrap();
        assert_eq!(modified(), before, "no file was touched");
        assert!(build(root, &settings).is_err(), "those in build/ were not compiled here");
        // Another compiler is no reason to compile, and none to compare.
        fs::write(root.join("rustc"), "#!/bin/sh\necho rustc 2\n").unwrap();
        take(root).unwrap();
        let other = Manifest { rustc: "rustc 2".into(), ..compiled.clone() };
        assert!(!check_committed(root, &other, programs).unwrap());
        fs::write(root.join("rustc"), "#!/bin/sh\necho rustc 1\n").unwrap();

        let file = root.join(COMMITTED).join("one.deploy");
        fs::write(&file, "cut").unwrap();
        assert!(take(root).is_err() && check_committed(root, &compiled, programs).is_err(), "a file is another");
        commit(root, &compiled, programs).unwrap();
        let changed = Program { code: wasm::compress_otherwise(&program.wasm), ..program.clone() };
        assert!(check_committed(root, &compiled, &[changed]).is_err(), "other code was compiled");
        assert!(check_committed(root, &compiled, &[]).is_err(), "fewer programs were compiled");
        fs::write(root.join("contracts/one/src/lib.rs"), "changed").unwrap();
        let refused = take(root).unwrap_err();
        assert!(format!("{refused:#}").contains("cargo"), "other sources: {refused:#}");
        assert!(check_committed(root, &compiled, programs).is_err());
    }

    #[test]
    fn a_file_that_rustc_reads_is_an_input_or_the_build_fails() {
        let place = project("1");
        let root = place.path();
        let lists = |files: &[&str]| {
            let files: Vec<_> = files.iter().map(|file| root.join(file).display().to_string().replace(' ', "\\ ")).collect();
            fs::write(root.join("one.d"), format!("{}: {}\n\n", root.join("one.wasm").display(), files.join(" "))).unwrap();
            all_are_inputs(root, &root.join("one.d"))
        };
        lists(&["contracts/one/src/lib.rs", "contracts/one/src/../../../abi/IMuster.sol", "target/contracts/generated.rs"])
            .unwrap();
        fs::write(root.join("contracts/one/src/with space.rs"), "").unwrap();
        lists(&["contracts/one/src/with space.rs"]).unwrap();
        let refused = lists(&["contracts/one/src/lib.rs", "README.md"]).unwrap_err().to_string();
        assert!(refused.starts_with("README.md is compiled into the programs"), "{refused}");
    }

    /// A test that reads `build/` passes with the files of an earlier version, and fails where that never was.
    #[test]
    fn nothing_stays_of_a_program_that_is_no_longer() {
        let dir = tempfile::tempdir().unwrap();
        let program = |name: &str| Program { name: name.into(), wasm: vec![0], code: vec![1], shape: Shape::default() };
        fs::write(dir.path().join("notes.txt"), "stays").unwrap();
        write(dir.path(), &[program("old"), program("kept")]).unwrap();
        write(dir.path(), &[program("kept"), program("new")]).unwrap();
        let mut names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["kept.deploy", "kept.wasm", "new.deploy", "new.wasm", "notes.txt"]);
    }
}
