//! Cards by a substitute for NVIDIA's library, which reports the contents of a file (`nvml.c`).

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use muster_client::{fetcher, Event, IMuster};
use muster_fleet::site::{gpt, Site, GPU};
use serde_json::{json, Value};

const ONE: &str = "GPU-11111111-1111-1111-1111-111111111111|NVIDIA H100 80GB HBM3|81559|1024|41|73|0\n";
const TWO: &str = "GPU-22222222-2222-2222-2222-222222222222|NVIDIA L4|23034|0|35|0|0\n";
const PART: &str = "GPU-33333333-3333-3333-3333-333333333333|NVIDIA A100-SXM4-40GB|40960|0|30|0|1\n";

/// Builds the library into a folder, with these cards.
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

/// Whether it succeeded, and its output.
fn ended(mut command: Command) -> (bool, String) {
    let ended = command.output().unwrap();
    (ended.status.success(), format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr)))
}

/// An endpoint before another, which gives the events of at most so many blocks at once.
async fn capped(to: &str, most: u64) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (client, to) = (fetcher().unwrap(), to.to_string());
    let answer = move |body: String| {
        let (client, to) = (client.clone(), to.clone());
        async move {
            let asked: Value = serde_json::from_str(&body).unwrap();
            let block = |name: &str| {
                let number = asked["params"][0][name].as_str().unwrap();
                u64::from_str_radix(number.trim_start_matches("0x"), 16).unwrap()
            };
            if asked["method"] == "eth_getLogs" && block("toBlock") - block("fromBlock") >= most {
                let error = json!({ "code": -32000, "message": "query exceeds the range" });
                return json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }).to_string();
            }
            let answer = client.post(to).header("content-type", "application/json").body(body).send().await;
            answer.unwrap().text().await.unwrap()
        }
    };
    let app = axum::Router::new().route("/", axum::routing::post(answer));
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    url
}

/// Changes the cards atomically.
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
    // An existing file is not overwritten.
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
    assert!(!done && said.contains("no NVIDIA library") && said.matches("cannot open").count() == 1, "{said}");
}

#[test]
fn an_executor_whose_card_falls_off_the_bus_is_given_up_at_once() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path();
    library(path, &format!("{ONE}{TWO}"));
    fs::create_dir(path.join("golden")).unwrap();
    fs::write(path.join("golden/one.json"), r#"{"kind":"gpt","input":"golden"}"#).unwrap();
    // It reports the card that it may see, begins the task, and hangs, as executors do whose card is gone.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_that_falls_off_the_bus_takes_its_node_out_before_its_task_times_out() {
    const UUID: &str = "GPU-44444444-4444-4444-4444-444444444444";
    const MODEL: &str = "Qwen/Qwen2.5-0.5B-Instruct";
    let mut site = Site::new(&[]).await;
    let mut card = site.agent("gpu0").await;
    let place = site.place.path().to_owned();
    let whole = format!("{UUID}|{GPU}|24576|1024|41|73|0\n");
    library(&place, &whole);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    drop(taken);
    card.more = format!("listen = \"{at}\"");
    card.node_more = format!("gpu = \"{UUID}\"\nmodels = [\"{MODEL}\"]");
    card.environment = [("LD_LIBRARY_PATH", place.clone()), ("NVML_CARDS", place.join("cards"))]
        .map(|(name, path)| (name.into(), path.display().to_string()))
        .into();
    card.configure(&site);
    let _running = card.start(None);
    let metric = |name: &str, labels: &str| {
        let mut stream = std::net::TcpStream::connect(at).ok()?;
        std::io::Write::write_all(&mut stream, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
        let text = std::io::read_to_string(stream).ok()?;
        let line = format!("muster_agent_{name}{{node=\"gpu0\"{labels}}} ");
        text.lines().find_map(|found| found.strip_prefix(&line)?.parse::<f64>().ok())
    };
    site.until("it is ready", async || (metric("ready", "") == Some(1.0)).then_some(())).await;
    for (name, value) in [
        ("gpu_temperature_celsius", 41.0),
        ("gpu_busy_ratio", 0.73),
        ("gpu_memory_used_bytes", f64::from(1u32 << 30)),
        ("gpu_memory_bytes", 24.0 * f64::from(1u32 << 30)),
        ("gpu_lost", 0.0),
    ] {
        assert_eq!(metric(name, ""), Some(value), "{name}");
    }
    let (number, application) = (site.node_of(card.key).await, site.account(1_000_000).await);
    let status = async || site.view(number).await.status;
    let spec = || IMuster::TaskSpec { models: vec![muster_client::abi::model_id(MODEL)], ..gpt(0) };
    let succeeds = async |id: u64| {
        site.event("an answer", |event| matches!(event, Event::TaskSucceeded(e) if e.id == id).then_some(())).await;
    };
    let id = site.task(&application, spec(), "while it is there", 70_000).await;
    succeeds(id).await;

    // Its executor hangs, as those do whose card is gone.
    card.behave("hangs");
    let id = site.task(&application, spec(), "when it goes", 70_000).await;
    site.until("it runs", async || (card.runs() == 2).then_some(())).await;
    let deadline = site.view(number).await.deadline;
    say(&place, "");
    let code = site
        .event("an error", |event| match event {
            Event::TaskErrorReported(e) if e.id == id => Some(e.code),
            _ => None,
        })
        .await;
    let reported = site.muster.endpoints().head().await.unwrap().timestamp;
    assert_eq!(code, 2);
    assert!(reported + 30 < deadline, "at {reported} of {deadline}: {}", card.log());
    let paused = async || {
        // The error brings a rest, and the pause waits for its end.
        site.world.travel(10);
        (status().await == 5).then_some(())
    };
    site.until("it is paused", paused).await;
    assert!(metric("gpu_lost", "") == Some(1.0) && metric("paused_by_agent", ",why=\"gpu\"") == Some(1.0), "{}", card.log());
    let view = site.view(number).await;
    assert_eq!(view.reliability, 1_000_000_000_000_000_000, "nothing timed out");
    assert!(card.log().contains("the GPU is lost"), "{}", card.log());

    // It is back, and so is the node.
    card.behave("answers");
    say(&place, &whole);
    site.until("it is back", async || (status().await == 1).then_some(())).await;
    let id = site.task(&application, spec(), "when it is back", 70_000).await;
    succeeds(id).await;

    // The driver hangs, and everything that asks it: the agent goes on, and takes the node out.
    let hangs = place.join("cards.hangs");
    fs::write(&hangs, "").unwrap();
    site.until("it is paused again", async || (status().await == 5).then_some(())).await;
    assert!(metric("gpu_lost", "") == Some(1.0) && metric("paused_by_agent", ",why=\"gpu\"") == Some(1.0), "{}", card.log());
    assert!(card.log().contains("the GPU is lost: NVIDIA's library does not answer"), "{}", card.log());
    fs::remove_file(&hangs).unwrap();
    site.until("it is back again", async || (status().await == 1).then_some(())).await;

    // A newcomer is told the earnings of others with a card like this, and the names of their nodes; also by an endpoint that gives the events
    // of few blocks at once. An endpoint without events still tells the names.
    let config = place.join("agent.toml");
    let muster = site.muster.address().to_string();
    let head = site.muster.endpoints().head().await.unwrap().number;
    assert!(head > 30, "{head} blocks");
    for most in [u64::MAX, 7, 0] {
        let _ = fs::remove_file(&config);
        let url = capped(&site.url, most).await;
        let asked = ["init", "--rpc", &url, "--muster", &muster];
        let (done, said) = tokio::task::block_in_place(|| ended(agent(&place, &asked)));
        assert!(done && !said.contains("note   network"), "{said}");
        assert_eq!(said.contains("note   events: the node says: query exceeds the range"), most == 0, "{said}");
        let text = fs::read_to_string(&config).unwrap();
        for part in ["chain = 412346\n", &format!("# 1 node is called \"{GPU}+")] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // Its models are what others earn with, as far as that is known.
        assert_eq!(text.contains(&format!("models = [\"{MODEL}\"]")), most > 0, "{text}");
        let earned = format!(
            "# {MODEL} (transformers): 1 GB to fetch, for 4 GiB and more, earned 0.00000000000014 ether with 2 tasks lately"
        );
        assert_eq!(text.contains(&earned), most > 0, "{text}");
    }
}
