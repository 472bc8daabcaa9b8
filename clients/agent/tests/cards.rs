//! Cards, as NVIDIA's library tells of them: a library of the tests' in its place, which says what a file says (`nvml.c`).

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const ONE: &str = "GPU-11111111-1111-1111-1111-111111111111|NVIDIA H100 80GB HBM3|81559|1024|41|73|0\n";
const TWO: &str = "GPU-22222222-2222-2222-2222-222222222222|NVIDIA L4|23034|0|35|0|0\n";
const PART: &str = "GPU-33333333-3333-3333-3333-333333333333|NVIDIA A100-SXM4-40GB|40960|0|30|0|1\n";

/// Builds the library into a folder, and has it tell of cards.
fn library(place: &Path, cards: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvml.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"])
        .arg(place.join("libnvidia-ml.so.1"))
        .arg(source)
        .status();
    assert!(built.unwrap().success());
    fs::write(place.join("cards"), cards).unwrap();
}

/// One of the agent's commands beside the library.
fn agent(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster-agent"));
    command.args(arguments).arg("--config").arg(place.join("agent.toml")).env_clear().env("PATH", std::env::var("PATH").unwrap());
    command.env("LD_LIBRARY_PATH", place).env("NVML_CARDS", place.join("cards"));
    command
}

/// Whether it ended well, and what it said.
fn ended(mut command: Command) -> (bool, String) {
    let ended = command.output().unwrap();
    (ended.status.success(), format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr)))
}

/// A change of the cards that nobody sees half of.
fn say(place: &Path, cards: &str) {
    fs::write(place.join("next"), cards).unwrap();
    fs::rename(place.join("next"), place.join("cards")).unwrap();
}

#[test]
fn init_writes_a_node_for_each_card_and_doctor_finds_them() {
    let place = tempfile::tempdir().unwrap();
    library(place.path(), &format!("{ONE}{PART}{TWO}"));
    let config = place.path().join("agent.toml");
    let run = |arguments: &[&str]| ended(agent(place.path(), arguments));
    let folder = |name: &str| place.path().join(name).display().to_string();
    let (home, store) = (folder("home"), folder("store"));
    fs::create_dir(&store).unwrap();
    let asked =
        ["init", "--rpc", "http://127.0.0.1:1", "--home", &home, "--cache", &folder("cache"), "--get", &store, "--put", &store];
    let (done, said) = run(&asked);
    assert!(done, "{said}");
    for part in [
        "gpu0   NVIDIA H100 80GB HBM3 of 80 GiB",
        "gpu1   NVIDIA A100-SXM4-40GB of 40 GiB",
        "divided (MIG), left out",
        "gpu2   NVIDIA L4 of 23 GiB",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let text = fs::read_to_string(&config).unwrap();
    assert_eq!(text.matches("[[node]]").count(), 2, "{text}");
    // What is there is not written over.
    let (done, said) = run(&asked);
    assert!(!done && said.contains("cannot be written anew"), "{said}");
    let (done, said) = run(&["doctor"]);
    assert!(!done, "{said}");
    assert!(said.contains("ok     configuration: 2 nodes"), "{said}");
    assert!(
        said.contains("ok     GPU: NVIDIA H100 80GB HBM3 of 80 GiB") && said.contains("ok     GPU: NVIDIA L4 of 23 GiB"),
        "{said}"
    );
    assert!(said.contains("WRONG  model: no commit is known for"), "{said}");
    // Without the library it says so.
    fs::remove_file(place.path().join("libnvidia-ml.so.1")).unwrap();
    fs::remove_file(&config).unwrap();
    let (done, said) = run(&asked);
    assert!(!done && said.contains("no NVIDIA library"), "{said}");
}

#[test]
fn an_executor_whose_card_falls_off_the_bus_is_given_up_at_once() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path();
    library(path, &format!("{ONE}{TWO}"));
    fs::create_dir(path.join("golden")).unwrap();
    fs::write(path.join("golden/one.json"), r#"{"kind":"gpt","input":"golden"}"#).unwrap();
    // It says which card it may see, begins the task, and hangs, as those do whose card is gone.
    let script = format!(
        r#"echo "{{\"ready\":{{\"name\":\"x\",\"version\":\"1\",\"kinds\":[\"gpt\"]}}}}"; read l; echo $CUDA_VISIBLE_DEVICES >{0}/begun; sleep 1000"#,
        path.display()
    );
    let config = format!(
        "home = \"{0}/home\"\nrpc = [\"http://127.0.0.1:1\"]\nmuster = \"0x4d75737465720000000000000000000000000000\"\n[store]\nget = [\"{0}\"]\n\
         put = [\"{0}\"]\n[[node]]\nname = \"gpu1\"\nkey_env = \"K\"\ngpu = \"1\"\n[node.executor]\ncommand = [\"sh\", \"-c\", '''{script}''']\n\
         golden = \"{0}/golden\"\ngolden_within = 900\n",
        path.display()
    );
    fs::write(path.join("agent.toml"), config).unwrap();
    let doctor = agent(path, &["doctor"]);
    let doctor = std::thread::spawn(move || ended(doctor));
    let begun = Instant::now();
    while !fs::read_to_string(path.join("begun")).is_ok_and(|seen| seen.ends_with('\n')) {
        assert!(begun.elapsed() < Duration::from_mins(5), "it has not begun");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(fs::read_to_string(path.join("begun")).unwrap().trim(), "GPU-22222222-2222-2222-2222-222222222222");
    say(path, ONE);
    let (done, said) = doctor.join().unwrap();
    assert!(!done, "{said}");
    assert!(said.contains("the GPU is lost: GPU GPU-22222222-2222-2222-2222-222222222222 is gone"), "{said}");
    assert!(begun.elapsed() < Duration::from_mins(15), "nobody had to wait for the task's time");
}
