//! Executors in a container that podman runs: their reach, and that none outlives its agent. Says so where podman cannot run containers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// An executor that tries forbidden actions, and reports those that succeed.
const TRIES: &str = r#"
import json, os, socket, sys
def tries(what, act):
    try:
        act()
    except OSError:
        return []
    return [what]
def loaded():
    status = open("/proc/self/status").read()
    return [] if "CapEff:\t0000000000000000" in status else ["has capabilities"]
key, hang = sys.argv[1], sys.argv[2] == "hang"
print(json.dumps({"ready": {"name": "x", "version": "1", "kinds": ["gpt"]}}), flush=True)
for line in sys.stdin:
    task = json.loads(line)["run"]
    while hang:
        open(task["output"], "w").close()
        input()
    could = tries("reads the key", lambda: open(key).read())
    could += tries("writes beside its exchange", lambda: open(sys.argv[3] + "/written", "w"))
    could += tries("writes over its program", lambda: open(sys.argv[0], "a"))
    # Nobody need answer: where there is a network, the datagram leaves.
    could += tries("reaches a network", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 9)))
    could += loaded()
    could += ["sees other processes"] if len([name for name in os.listdir("/proc") if name.isdigit()]) > 8 else []
    open(task["output"], "w").write(open(task["input"]).read())
    if could:
        print(json.dumps({"failed": {"id": task["id"], "fault": "node", "reason": ", ".join(could)}}), flush=True)
    else:
        print(json.dumps({"done": {"id": task["id"]}}), flush=True)
"#;

/// A podman with images of its own, and an image without a file: programs are this machine's, read-only. `None` where podman cannot run.
fn podman(place: &Path) -> Option<()> {
    let tries = [("runc", "4096"), ("crun", "4096")];
    for (runtime, limit) in tries {
        let settings = format!(
            "[containers]\ndefault_ulimits = [\"nofile={limit}:{limit}\", \"nproc={limit}:{limit}\"]\n[engine]\nruntime = \"{runtime}\"\n"
        );
        fs::write(place.join("containers.conf"), settings).unwrap();
        let script = format!(
            "#!/bin/sh\nexport CONTAINERS_CONF={0}/containers.conf\n\
             exec \"$(PATH=/usr/local/bin:/usr/bin:/bin command -v podman)\" --root {0}/images --runroot {0}/running --storage-driver vfs \"$@\"\n",
            place.display()
        );
        let file = place.join("podman");
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let tar = format!(
            "cd {0} && mkdir -p root/usr root/etc root/proc root/sys root/dev root/tmp && \
             for one in bin lib lib64; do ln -sfn usr/$one root/$one; done && tar -C root -c . | ./podman import - muster-test:1 && \
             ./podman run --rm --init --network none --memory 512m --mount type=bind,source=/usr,target=/usr,readonly muster-test:1 true",
            place.display()
        );
        let tried = Command::new("sh").args(["-c", &tar]).output().unwrap();
        if tried.status.success() {
            return Some(());
        }
        println!("{runtime}: {}", String::from_utf8_lossy(&tried.stderr));
    }
    println!("skipped: no podman runs containers here");
    None
}

fn doctor(place: &Path, container: &str, how: &str) -> Command {
    fs::create_dir_all(place.join("golden")).unwrap();
    fs::write(place.join("golden/one.json"), r#"{"kind":"gpt","input":"golden"}"#).unwrap();
    fs::write(place.join("key"), "a key").unwrap();
    fs::write(place.join("program/tries.py"), TRIES).unwrap();
    let config = format!(
        "home = \"{0}/home\"\nrpc = [\"http://127.0.0.1:1\"]\nmuster = \"0x4d75737465720000000000000000000000000000\"\n[store]\nget = [\"{0}\"]\n\
         put = [\"{0}\"]\n[[node]]\nname = \"gpu\"\nkey_env = \"K\"\ngpu_name = \"x\"\nvram = 1\n[node.executor]\n\
         command = [\"/usr/bin/python3\", \"{0}/program/tries.py\", \"{0}/key\", \"{how}\", \"{1}\"]\ngolden = \"{0}/golden\"\nexchange = \"{0}/exchange\"\n{container}\n",
        place.display(),
        env!("CARGO_TARGET_TMPDIR")
    );
    fs::write(place.join("agent.toml"), config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster-agent"));
    command.args(["doctor", "--config"]).arg(place.join("agent.toml")).stdin(Stdio::null());
    command
}

fn said(mut command: Command) -> String {
    let ended = command.output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr))
}

#[test]
fn in_a_container_an_executor_reaches_nothing_and_none_is_left_behind() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path();
    fs::create_dir(path.join("program")).unwrap();
    if podman(path).is_none() {
        return;
    }
    let container = format!(
        "container = {{ runtime = \"{0}/podman\", image = \"localhost/muster-test:1\", memory = \"512m\", read = [\"/usr\", \"{0}/program\"] }}",
        path.display()
    );
    // Without a container the same program can do all of it, so its report from inside a container means something.
    let found = said(doctor(path, "", "try"));
    assert!(found.contains("reads the key, writes beside its exchange, writes over its program"), "{found}");
    let found = said(doctor(path, &container, "try"));
    assert!(found.contains("ok     golden tasks"), "{found}");

    // An agent that is killed leaves no container.
    let listed = || {
        let listed = Command::new(path.join("podman")).args(["ps", "--quiet", "--all"]).output().unwrap();
        String::from_utf8_lossy(&listed.stdout).lines().count()
    };
    let until = |count: usize| {
        let begun = Instant::now();
        while listed() != count {
            assert!(begun.elapsed() < Duration::from_mins(5), "{} containers", listed());
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    // The runtime takes a container away a moment after its process.
    until(0);
    let mut running = doctor(path, &container, "hang").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(1);
    running.kill().unwrap();
    running.wait().unwrap();
    until(0);
}
