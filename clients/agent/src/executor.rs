//! The program that runs tasks: a child process that is told them in lines of JSON (`executor.schema.json`), in a process group
//! of its own, which is killed when time is up, and when the agent is gone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::PoisonError;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use rustix::process::{kill_process_group, Pid, Signal};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio::time::timeout;

use crate::config;
use crate::say;

/// The longest line that an executor may say, in bytes.
const LINE: u64 = 1 << 20;
/// The longest line of its standard error that is logged, in bytes, and how many of them are for each task.
const NOISE: usize = 2_048;
/// See there.
const NOISY: u32 = 200;
/// The longest text of a reason.
const REASON: usize = 4_096;
/// Leads an executor's process group, and ends the whole of it when nobody holds the other end of its standard input any more:
/// when the agent is killed, nothing else does, and an executor need not look at its own standard input meanwhile.
const GUARD: &str = "read -r _; kill -KILL 0";
/// What an executor finds in its environment of the agent's own.
const PASSED: [&str; 8] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "USER", "SSL_CERT_FILE"];
/// The same, by how the names begin.
const PASSED_FAMILIES: [&str; 9] = ["LC_", "CUDA_", "NVIDIA_", "HF_", "XDG_", "PYTHON", "TORCH", "ORT_", "OMP_"];

/// What a task asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub id: String,
    pub kind: String,
    pub units: u32,
    pub models: Vec<String>,
    pub input: PathBuf,
    pub output: PathBuf,
    pub deadline: u64,
}

/// The name of a task's kind.
pub fn kind(number: u8) -> &'static str {
    ["images", "gpt", "fine_tuning"].get(number as usize).unwrap_or(&"unknown")
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Ready(Ready),
    Done { id: String },
    Failed { id: String, fault: Fault, reason: String },
}

/// What an executor says of itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Ready {
    pub name: String,
    pub version: String,
    pub kinds: Vec<String>,
    #[serde(default)]
    pub stack: String,
}

/// Whose fault it is that there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// No node could run it.
    Task,
    /// This node could not.
    Node,
    /// This node did not in time.
    Time,
    /// Nobody's here: what the task asks for, or what has to come from outside, is not there, or not in time. The agent finds
    /// that out; no executor says it.
    #[serde(skip)]
    World,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// The output file holds the result.
    Done,
    /// There is none.
    Failed(Fault, String),
}

/// An executor, and the tasks that wait for it: of several nodes that share it, the one whose deadline is next comes first.
pub struct Card {
    executor: Mutex<Executor>,
    /// By deadline and node.
    waiting: std::sync::Mutex<BTreeSet<(u64, u32)>>,
    changed: Notify,
}

/// A place among those that wait, until it is dropped.
struct Place<'a>(&'a Card, (u64, u32));

impl Card {
    /// One with nobody who waits.
    pub fn new(executor: Executor) -> Self {
        Self { executor: Mutex::new(executor), waiting: std::sync::Mutex::default(), changed: Notify::new() }
    }

    /// The executor, when nobody uses it: for what is no task.
    pub async fn lock(&self) -> MutexGuard<'_, Executor> {
        self.executor.lock().await
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, BTreeSet<(u64, u32)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The executor, when no task that is due earlier waits for it.
    pub async fn turn(&self, deadline: u64, node: u32) -> MutexGuard<'_, Executor> {
        self.waiting().insert((deadline, node));
        let place = Place(self, (deadline, node));
        let is_first = || self.waiting().first() == Some(&place.1);
        loop {
            let changed = self.changed.notified();
            if is_first() {
                let executor = self.executor.lock().await;
                // One that is due earlier may have come meanwhile, and waits for the lock behind this one.
                if is_first() {
                    return executor;
                }
            } else {
                changed.await;
            }
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.waiting().remove(&self.1);
        self.0.changed.notify_waiters();
    }
}

/// An executor, running or to be started.
pub struct Executor {
    node: String,
    settings: config::Executor,
    /// The GPU it may see, by its UUID.
    gpu: Option<String>,
    /// Whether it has a task whose answer nobody has waited for: the next answer would be that one's.
    busy: bool,
    running: Option<Running>,
}

struct Running {
    child: Child,
    /// [`GUARD`]; it reads until this is dropped.
    _guard: Child,
    group: Option<Pid>,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    ready: Ready,
    noise: std::sync::Arc<std::sync::atomic::AtomicU32>,
}

impl Executor {
    /// One that is started when it is needed.
    pub fn new(node: &str, settings: &config::Executor) -> Self {
        Self { node: node.into(), settings: settings.clone(), gpu: None, busy: false, running: None }
    }

    /// Which GPU it may see from its next start on, by its UUID; all, without one.
    pub fn see(&mut self, gpu: Option<String>) {
        self.gpu = gpu;
    }

    /// Starts it, unless it runs already, and says what it said of itself.
    pub async fn start(&mut self) -> Result<Ready> {
        if let Some(running) = &mut self.running {
            if running.child.try_wait()?.is_none() {
                return Ok(running.ready.clone());
            }
        }
        self.stop();
        let within = Duration::from_secs(self.settings.ready_within);
        let mut running = self.spawn().with_context(|| format!("cannot start {}", self.settings.command[0]))?;
        let said = timeout(within, running.hear()).await;
        let ready = match said {
            Ok(Ok(Said::Ready(ready))) => ready,
            Ok(Ok(_)) => bail!("the executor answers before it is ready"),
            Ok(Err(error)) => return Err(error.context("the executor ended before it was ready")),
            Err(_) => bail!("the executor was not ready within {} s", within.as_secs()),
        };
        say!("{}: executor {} {} is ready for {:?}; {}", self.node, ready.name, ready.version, ready.kinds, ready.stack);
        running.ready = ready.clone();
        self.running = Some(running);
        Ok(ready)
    }

    fn spawn(&self) -> Result<Running> {
        // First, so that there is no moment in which nobody would end the executor.
        let mut guard = Command::new("/bin/sh");
        guard.args(["-c", GUARD]).env_clear().process_group(0).kill_on_drop(true);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let guard = guard.spawn().context("/bin/sh, which watches it, does not start")?;
        let group = guard.id().and_then(|id| Pid::from_raw(id as i32)).context("/bin/sh, which watches it, has ended")?;
        let mut command = Command::new(&self.settings.command[0]);
        command.args(&self.settings.command[1..]).process_group(group.as_raw_nonzero().get()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Nothing of the agent's own, which holds keys, but what programs need to run.
        command.env_clear();
        let passed = |name: &str| PASSED.contains(&name) || PASSED_FAMILIES.iter().any(|family| name.starts_with(family));
        command.envs(std::env::vars().filter(|(name, _)| passed(name)));
        if let Some(gpu) = &self.gpu {
            command.env("CUDA_VISIBLE_DEVICES", gpu);
        }
        command.envs(&self.settings.environment);
        if let Some(place) = &self.settings.directory {
            command.current_dir(place);
        }
        let mut child = command.spawn()?;
        let stdin = child.stdin.take().context("no standard input")?;
        let stdout = BufReader::new(child.stdout.take().context("no standard output")?);
        let stderr = BufReader::new(child.stderr.take().context("no standard error")?);
        let noise = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(NOISY));
        tokio::spawn(log(self.node.clone(), stderr, noise.clone()));
        let ready = Ready { name: String::new(), version: String::new(), kinds: Vec::new(), stack: String::new() };
        Ok(Running { child, _guard: guard, group: Some(group), stdin, stdout, ready, noise })
    }

    /// Runs a task, and kills the executor with all that it has started if it is not done in time.
    pub async fn run(&mut self, run: &Run, within: Duration) -> Ran {
        if std::mem::replace(&mut self.busy, true) {
            self.stop();
        }
        let ran = timeout(within, self.attempt(run)).await;
        self.busy = false;
        let ran = match ran {
            Ok(Ok(ran)) => ran,
            Ok(Err(error)) => {
                self.stop();
                Ran::Failed(Fault::Node, format!("{error:#}"))
            }
            Err(_) => {
                self.stop();
                Ran::Failed(Fault::Time, format!("it was not done within {} s", within.as_secs()))
            }
        };
        if self.settings.once {
            self.stop();
        }
        ran
    }

    async fn attempt(&mut self, run: &Run) -> Result<Ran> {
        let ready = self.start().await?;
        if !ready.kinds.contains(&run.kind) {
            return Ok(Ran::Failed(Fault::World, format!("the executor runs no tasks of kind {}", run.kind)));
        }
        let running = self.running.as_mut().context("it is running")?;
        running.noise.store(NOISY, std::sync::atomic::Ordering::Relaxed);
        let line = serde_json::to_string(&serde_json::json!({ "run": run }))? + "\n";
        running.stdin.write_all(line.as_bytes()).await?;
        running.stdin.flush().await?;
        match running.hear().await? {
            Said::Done { id } => {
                ensure!(id == run.id, "the executor answers {id}, not {}", run.id);
                let length = std::fs::metadata(&run.output).map(|file| file.len());
                ensure!(length.is_ok_and(|length| length > 0), "the executor is done, and there is no result");
                Ok(Ran::Done)
            }
            Said::Failed { id, fault, reason } => {
                ensure!(id == run.id, "the executor answers {id}, not {}", run.id);
                Ok(Ran::Failed(fault, reason.chars().take(REASON).collect()))
            }
            Said::Ready(_) => bail!("the executor says again that it is ready"),
        }
    }

    /// Kills it if it computes what nobody waits for any more.
    pub fn stop_idle(&mut self) {
        if self.busy {
            self.stop();
        }
    }

    /// Kills it, with all that it has started.
    pub fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.kill();
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Running {
    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // Gone already is as good.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.start_kill();
    }

    async fn hear(&mut self) -> Result<Said> {
        let mut line = Vec::new();
        let read = (&mut self.stdout).take(LINE).read_until(b'\n', &mut line).await?;
        ensure!(read > 0, "the executor has ended");
        ensure!(line.ends_with(b"\n"), "the executor says a line of more than {LINE} bytes");
        let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).trim_end().to_string();
        serde_json::from_slice(&line).with_context(|| format!("the executor says what is not in the schema: {shown}"))
    }
}

/// Passes standard error on, as much of it as is bearable.
async fn log<R: tokio::io::AsyncRead + Unpin>(
    node: String,
    mut from: BufReader<R>,
    left: std::sync::Arc<std::sync::atomic::AtomicU32>,
) {
    use std::sync::atomic::Ordering::Relaxed;
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut from).take(NOISE as u64).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        match left.load(Relaxed) {
            0 => {}
            1 => {
                left.store(0, Relaxed);
                say!("{node}: executor: ... and more, which is not shown until its next task");
            }
            more => {
                left.store(more - 1, Relaxed);
                say!("{node}: executor: {}", String::from_utf8_lossy(&line).trim_end());
            }
        }
    }
}

/// A file's absolute path, of a directory that may be given relatively.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn executor(script: &str) -> Executor {
        let settings = toml::from_str(&format!("command = [\"sh\", \"-c\", '''{script}''']\nready_within = 5")).unwrap();
        Executor::new("test", &settings)
    }

    fn run(place: &Path) -> Run {
        let (input, output) = (place.join("input"), place.join("output"));
        Run { id: "17".into(), kind: "gpt".into(), units: 1, models: vec![], input, output, deadline: 0 }
    }

    const READY: &str = r#"echo "{\"ready\":{\"name\":\"x\",\"version\":\"1\",\"kinds\":[\"gpt\"]}}";"#;

    #[tokio::test]
    async fn of_tasks_that_wait_the_one_that_is_due_next_comes_first() {
        let card = std::sync::Arc::new(Card::new(executor("true")));
        let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let busy = card.turn(5, 1).await;
        let mut tasks = tokio::task::JoinSet::new();
        for (deadline, node) in [(30, 2), (10, 3), (20, 4)] {
            let (card, order) = (card.clone(), order.clone());
            tasks.spawn(async move {
                let turn = card.turn(deadline, node).await;
                order.lock().unwrap().push(deadline);
                drop(turn);
            });
        }
        // One that gives up holds up nobody.
        assert!(timeout(Duration::from_millis(20), card.turn(7, 5)).await.is_err());
        while card.waiting().len() < 3 {
            tokio::task::yield_now().await;
        }
        drop(busy);
        while tasks.join_next().await.is_some() {}
        assert_eq!(*order.lock().unwrap(), [10, 20, 30]);
    }

    #[tokio::test]
    async fn a_warm_one_runs_one_task_after_the_other() {
        let place = tempfile::tempdir().unwrap();
        let output = place.path().join("output");
        let mut executor = executor(&format!(
            r#"{READY} while read line; do echo $$ >> {}; echo "{{\"done\":{{\"id\":\"17\"}}}}"; done"#,
            output.display()
        ));
        for _ in 0..2 {
            assert_eq!(executor.run(&run(place.path()), Duration::from_secs(5)).await, Ran::Done);
        }
        let text = std::fs::read_to_string(output).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], lines[1], "one process");
    }

    #[tokio::test]
    async fn at_the_deadline_its_whole_group_is_killed() {
        let place = tempfile::tempdir().unwrap();
        let note = place.path().join("alive");
        let mut executor =
            executor(&format!("{READY} read line; (while true; do echo alive >> {0}; sleep 0.05; done) & wait", note.display()));
        let begun = Instant::now();
        let ran = executor.run(&run(place.path()), Duration::from_millis(700)).await;
        assert!(matches!(ran, Ran::Failed(Fault::Time, _)), "{ran:?}");
        assert!(begun.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(300)).await;
        let length = || std::fs::metadata(&note).map_or(0, |file| file.len());
        let before = length();
        assert!(before > 0, "the grandchild was there");
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert_eq!(length(), before, "and is no more");
    }

    #[tokio::test]
    async fn what_it_does_wrong_is_the_nodes_fault() {
        let place = tempfile::tempdir().unwrap();
        for (script, why) in [
            (format!(r#"{READY} read l; echo "{{\"done\":{{\"id\":\"17\"}}}}""#), "no result"),
            (
                format!(r#"{READY} read l; echo r > {}/output; echo "{{\"done\":{{\"id\":\"18\"}}}}""#, place.path().display()),
                "answers 18",
            ),
            (format!("{READY} read l; echo nonsense"), "not in the schema"),
            (format!("{READY} read l; exit 3"), "has ended"),
            ("exit 1".into(), "before it was ready"),
        ] {
            let _ = std::fs::remove_file(place.path().join("output"));
            match executor(&script).run(&run(place.path()), Duration::from_secs(5)).await {
                Ran::Failed(Fault::Node, reason) => assert!(reason.contains(why), "{reason}"),
                other => panic!("{other:?}"),
            }
        }
        let says =
            format!(r#"{READY} read l; echo "{{\"failed\":{{\"id\":\"17\",\"fault\":\"task\",\"reason\":\"no prompt\"}}}}""#);
        let ran = executor(&says).run(&run(place.path()), Duration::from_secs(5)).await;
        assert_eq!(ran, Ran::Failed(Fault::Task, "no prompt".into()));
        let other = Run { kind: "images".into(), ..run(place.path()) };
        assert!(matches!(executor(&says).run(&other, Duration::from_secs(5)).await, Ran::Failed(Fault::World, _)));
        let claims = says.replace("task", "world");
        match executor(&claims).run(&run(place.path()), Duration::from_secs(5)).await {
            Ran::Failed(Fault::Node, reason) => assert!(reason.contains("not in the schema"), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
}
