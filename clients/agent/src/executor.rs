//! The program that runs tasks: a child process that gets them as lines of JSON (`executor.schema.json`). It runs in a process group
//! of its own, which is killed at the deadline, and when the agent is gone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::{anyhow, bail, ensure, Context, Result};
use muster_client::Why;
use rustix::process::{kill_process_group, waitid, Pid, Signal, WaitId, WaitIdOptions};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{oneshot, Mutex, MutexGuard, Notify};
use tokio::task::JoinHandle;
use tokio::time::{timeout, timeout_at, Instant};

use crate::said::{hear, Fault, Ready, Said};
use crate::stream::Show;
use crate::{apart, config, gpu, hub, say};

/// The longest logged line of its standard error, in bytes, and how many are logged for each task.
const NOISE: usize = 2_048;
/// See `NOISE`.
const NOISY: u32 = 200;
/// How often its card is checked while it runs.
const LOOK: Duration = Duration::from_secs(5);
/// How often the length of its result and its process are, and the longest result unless another is set.
const MEASURE: Duration = Duration::from_secs(1);
/// See `MEASURE`.
pub const LONGEST: u64 = 1 << 30;
/// The longest text of a reason.
const REASON: usize = 4_096;
/// Leads an executor's process group, and kills all of it when the other end of its standard input closes.
/// After the agent is killed nothing else would, and an executor need not watch its own standard input.
const GUARD: &str = "read -r _; kill -KILL 0";
/// The variables of the agent's environment that an executor gets.
const PASSED: [&str; 8] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "USER", "SSL_CERT_FILE"];
/// More of them, by prefix.
const PASSED_FAMILIES: [&str; 9] = ["LC_", "CUDA_", "NVIDIA_", "HF_", "XDG_", "PYTHON", "TORCH", "ORT_", "OMP_"];
/// Parts of the names of those that hold a secret, as `HF_TOKEN` and `NVIDIA_API_KEY` do: an executor reads inputs of strangers.
const SECRET: [&str; 4] = ["TOKEN", "KEY", "SECRET", "PASSWORD"];

/// Whether an executor gets a variable of the agent's environment.
fn passes(name: &str) -> bool {
    let needed = PASSED.contains(&name) || PASSED_FAMILIES.iter().any(|family| name.starts_with(family));
    needed && !SECRET.iter().any(|part| name.contains(part))
}

/// A task's request to an executor.
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

/// The most tasks at a time that an executor may claim.
const AT_ONCE: usize = 256;

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// The output file holds the result.
    Done,
    /// There is none.
    Failed(Fault, String),
}

/// An executor, and the tasks that wait for it: the one with the next deadline comes first, of all nodes that share it.
/// It runs as many at a time as it claims. A task whose answer is compared with others' runs alone, unless the golden tasks have
/// shown that its answers do not depend on that.
pub struct Card {
    executor: Mutex<Executor>,
    queue: std::sync::Mutex<Queue>,
    changed: Notify,
    /// Whether it is stopped after each task.
    once: bool,
}

#[derive(Default)]
struct Queue {
    /// The waiting tasks, by deadline and arrival, and whether each needs the executor alone.
    waiting: BTreeMap<(u64, u64), bool>,
    arrivals: u64,
    /// The number of running tasks.
    having: usize,
    /// Whether the running task needs it alone.
    alone: bool,
    /// Whether it has had several at once since it last had none.
    beside: bool,
    /// The ids of the running tasks. Several nodes of one group can share the executor, and it tells tasks apart by their ids.
    ids: HashSet<String>,
    /// The most it takes at a time; 0 before it has said.
    at_once: usize,
    /// Whether its answers are the same with several tasks at a time.
    alike: bool,
}

/// A place in the queue, until it is dropped.
struct Place<'a>(&'a Card, (u64, u64));

/// The use of an executor, until it is dropped.
struct Turn<'a>(&'a Card, String);

/// The executor of a card that no other node uses.
pub struct Locked<'a> {
    executor: MutexGuard<'a, Executor>,
    turn: Turn<'a>,
}

/// The result of one attempt.
enum Attempt {
    Ran(Ran),
    /// The executor ended, by itself or killed at another task's deadline, while it had others, too.
    Lost(String),
}

impl Card {
    /// One without waiting tasks.
    pub fn new(executor: Executor) -> Self {
        let once = executor.settings.once;
        Self { executor: Mutex::new(executor), queue: std::sync::Mutex::default(), changed: Notify::new(), once }
    }

    /// The executor as soon as it is free, before all waiting tasks.
    pub async fn lock(&self) -> Locked<'_> {
        let turn = self.turn(0, true, "").await;
        Locked { executor: self.executor.lock().await, turn }
    }

    /// Kills the executor if nobody waits for any of its results.
    pub async fn stop_idle(&self) {
        self.executor.lock().await.stop_idle();
    }

    /// Runs a task, and kills the executor with all its processes if it is not done in time. Returns nothing if it was not free before.
    /// `compared` says that others' answers must be equal; `show` takes pieces of the result, if anybody may see them. A task that ran
    /// beside others when the executor ended runs once more, alone, since another may have ended it.
    pub async fn run(&self, run: &Run, until: Instant, compared: bool, show: Option<&Arc<Show>>) -> Option<Ran> {
        let alone = compared && !self.queue().alike;
        match self.attempt(run, until, alone, show).await? {
            Attempt::Ran(ran) => Some(ran),
            Attempt::Lost(reason) => {
                say!("task {} was run beside others when {reason}: it is run again, alone", run.id);
                show.inspect(|show| show.again());
                // The first attempt may have begun a result, and this one is told that there is none.
                if let Err(error) = clear(&run.output) {
                    return Some(Ran::Failed(Fault::Node, format!("the result that it had begun cannot be removed: {error}")));
                }
                match self.attempt(run, until, true, show).await? {
                    Attempt::Ran(ran) => Some(ran),
                    Attempt::Lost(reason) => Some(Ran::Failed(Fault::Node, reason)),
                }
            }
        }
    }

    async fn attempt(&self, run: &Run, until: Instant, alone: bool, show: Option<&Arc<Show>>) -> Option<Attempt> {
        let turn = timeout_at(until, self.turn(run.deadline, alone, &run.id)).await.ok()?;
        let mut start = None;
        let attempt = async {
            let asked = {
                let mut executor = self.executor.lock().await;
                let asked = executor.ask(run, show).await?;
                self.queue().at_once = executor.at_once();
                asked
            };
            self.changed.notify_waiters();
            start = Some(asked.start);
            asked.answer().await
        };
        let ran = match timeout_at(until, attempt).await {
            Ok(Ok(ran)) => ran,
            Ok(Err(error)) => {
                // The executor is unusable. Another task may have started a new one meanwhile.
                self.stop_start(start).await;
                let reason = format!("{error:#}");
                if self.queue().beside {
                    return Some(Attempt::Lost(reason));
                }
                Ran::Failed(Fault::Node, reason)
            }
            Err(_) => {
                self.stop_start(start).await;
                Ran::Failed(Fault::Time, "it was not done in time".into())
            }
        };
        if self.once {
            self.executor.lock().await.stop();
        }
        drop(turn);
        Some(Attempt::Ran(ran))
    }

    /// Stops the start of the executor that a task was given to. Does not wait for somebody who starts it anew, for as long as its model
    /// loads: that start has ended already.
    async fn stop_start(&self, start: Option<u64>) {
        if start.is_none() {
            return;
        }
        if let Ok(mut executor) = timeout(Duration::from_secs(1), self.executor.lock()).await {
            executor.stop_start(start);
        }
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The use of the executor, once it takes one more, has no task of this id, and no task with an earlier deadline waits.
    async fn turn(&self, deadline: u64, alone: bool, id: &str) -> Turn<'_> {
        let place = {
            let mut queue = self.queue();
            queue.arrivals += 1;
            let place = (deadline, queue.arrivals);
            queue.waiting.insert(place, alone);
            Place(self, place)
        };
        loop {
            let changed = self.changed.notified();
            {
                let mut queue = self.queue();
                let free = if alone { queue.having == 0 } else { !queue.alone && queue.having < queue.at_once.max(1) };
                let free = free && !queue.ids.contains(id);
                if free && queue.waiting.first_key_value().is_some_and(|(first, _)| *first == place.1) {
                    queue.having += 1;
                    queue.alone = alone;
                    queue.beside |= queue.having > 1;
                    queue.ids.insert(id.into());
                    return Turn(self, id.into());
                }
            }
            changed.await;
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.queue().waiting.remove(&self.1);
        self.0.changed.notify_waiters();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.having -= 1;
        queue.alone = false;
        queue.beside &= queue.having > 0;
        queue.ids.remove(&self.1);
        drop(queue);
        self.0.changed.notify_waiters();
    }
}

impl Locked<'_> {
    /// Whether its answers were found not to depend on the number of its tasks.
    pub fn set_alike(&mut self, alike: bool) {
        self.turn.0.queue().alike = alike;
    }
}

impl Deref for Locked<'_> {
    type Target = Executor;
    fn deref(&self) -> &Executor {
        &self.executor
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Executor {
        &mut self.executor
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.turn.0.queue().at_once = self.executor.at_once();
    }
}

/// An executor, running or to be started.
pub struct Executor {
    node: String,
    settings: config::Executor,
    /// The visible GPU, by its UUID.
    gpu: Option<String>,
    /// The longest result, in bytes.
    longest: u64,
    /// Its starts so far.
    starts: u64,
    /// The tasks given to it so far.
    given: u64,
    running: Option<Running>,
}

struct Running {
    child: Child,
    /// [`GUARD`]; it reads until its standard input is closed.
    guard: Child,
    group: Option<Pid>,
    stdin: ChildStdin,
    /// Whether a line was begun and not ended, because its writer was cancelled.
    writing: bool,
    ready: Ready,
    asked: Arc<std::sync::Mutex<Pending>>,
    noise: Arc<std::sync::atomic::AtomicU32>,
    /// The last line of its standard error, and the task that reads them.
    last: Arc<std::sync::Mutex<String>>,
    log: JoinHandle<()>,
    /// The folder shared with it, if it is kept apart.
    exchange: Option<PathBuf>,
    /// Whether it must be ended where signals do not reach it: by dropping its guard's input.
    ends: bool,
}

/// The tasks of a running executor.
#[derive(Default)]
struct Pending {
    /// The receivers of the answers.
    waited_for: HashMap<String, oneshot::Sender<Said>>,
    /// Where pieces are shown, for those tasks that are streamed.
    shows: HashMap<String, Arc<Show>>,
    /// Tasks whose answers nobody waits for any more.
    abandoned: HashSet<String>,
    /// The reason why it says nothing more.
    ended: Option<String>,
}

/// A task given to an executor.
pub struct Asked {
    run: Run,
    /// The task with the paths inside, if it is kept apart.
    told: Option<Run>,
    longest: u64,
    /// The number of its start.
    start: u64,
    answer: oneshot::Receiver<Said>,
    asked: Arc<std::sync::Mutex<Pending>>,
}

impl Executor {
    /// One that is started when it is needed.
    pub fn new(node: &str, settings: &config::Executor) -> Self {
        let (node, settings) = (node.into(), settings.clone());
        Self { node, settings, gpu: None, longest: LONGEST, starts: 0, given: 0, running: None }
    }

    /// The same with the longest result, in bytes: it is killed when one is longer, before that fills the agent's disk.
    #[must_use]
    pub fn at_most(mut self, longest: u64) -> Self {
        self.longest = longest;
        self
    }

    /// Sets the GPU visible from its next start on, by its UUID; all, without one.
    pub fn see(&mut self, gpu: Option<String>) {
        self.gpu = gpu;
    }

    /// Starts it, unless it runs already, and returns its description of itself.
    pub async fn start(&mut self) -> Result<Ready> {
        if let Some(running) = &mut self.running {
            let said = running.pending();
            // Unneeded work would delay the next task.
            let wasted = said.waited_for.is_empty() && !said.abandoned.is_empty();
            let lost = said.ended.is_some() || running.writing;
            drop(said);
            if !wasted && !lost && running.child.try_wait()?.is_none() {
                return Ok(running.ready.clone());
            }
        }
        self.stop();
        let within = Duration::from_secs(self.settings.ready_within);
        let (mut running, mut stdout) = self.spawn().with_context(|| format!("cannot start {}", self.settings.command[0]))?;
        let process = running.child.id().and_then(|id| Pid::from_raw(id as i32));
        let said = timeout(within, next(process, &mut stdout)).await;
        let ready = match said {
            Ok(Ok(Said::Ready(ready))) => ready,
            Ok(Ok(_)) => bail!("the executor answers before it is ready"),
            Ok(Err(error)) => {
                // Standard error has said why.
                let _ = timeout(Duration::from_secs(1), &mut running.log).await;
                let last = running.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let why = if last.is_empty() { "it said nothing".into() } else { last };
                return Err(error.context(format!("the executor ended before it was ready: {why}")));
            }
            Err(_) => bail!("the executor was not ready within {} s", within.as_secs()),
        };
        say!("{}: executor {} {} is ready for {:?}; {}", self.node, ready.name, ready.version, ready.kinds, ready.stack);
        running.ready = ready.clone();
        tokio::spawn(listen(self.node.clone(), process, stdout, running.asked.clone(), self.gpu.clone()));
        self.starts += 1;
        self.running = Some(running);
        Ok(ready)
    }

    fn spawn(&self) -> Result<(Running, BufReader<ChildStdout>)> {
        let apart = apart::is_apart(&self.settings);
        let exchange = apart.then(|| apart::exchange(&self.settings, &self.node)).transpose()?;
        let name = format!("muster-{}-{}-{}", self.node, std::process::id(), self.starts + 1);
        let apart::Start { command: line, prefix, end } =
            apart::start(&self.settings, &name, self.gpu.as_deref(), exchange.as_deref().unwrap_or(Path::new("/")));
        if self.settings.user.is_some() && end.is_none() && self.starts == 0 {
            say!(
                "{}: no cgroup can be made for the executor's processes: one that ends its guard may outlive its task",
                self.node
            );
        }
        // The guard first, so that at no moment the executor would outlive the agent.
        let watch = end.as_ref().map_or(GUARD.to_string(), |end| format!("read -r _; {end}; kill -KILL 0"));
        let mut guard = Command::new(prefix.first().map_or("/bin/sh", String::as_str));
        guard.args(prefix.iter().skip(1));
        if !prefix.is_empty() {
            guard.arg("/bin/sh");
        }
        guard.args(["-c", &watch]).process_group(0);
        guard.env_clear().envs(std::env::vars().filter(|(name, _)| name == "PATH" || name == "HOME" || name.starts_with("XDG_")));
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let guard = guard.spawn().context("/bin/sh, which watches it, does not start")?;
        let group = guard.id().and_then(|id| Pid::from_raw(id as i32)).context("/bin/sh, which watches it, has ended")?;
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).process_group(group.as_raw_nonzero().get()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Only variables that programs need to run; the agent's own environment holds keys.
        command.env_clear();
        command.envs(std::env::vars().filter(|(name, _)| passes(name)));
        if let Some(gpu) = &self.gpu {
            command.env("CUDA_VISIBLE_DEVICES", gpu);
        }
        // Another user cannot enter the agent's directory.
        if let (Some(user), Some(place)) = (&self.settings.user, &exchange) {
            command.env("HOME", place).env("USER", user);
        }
        command.envs(&self.settings.environment);
        if let Some(place) = &self.settings.directory {
            command.current_dir(place);
        }
        let mut child = command.spawn()?;
        let stdin = child.stdin.take().context("no standard input")?;
        let stdout = BufReader::new(child.stdout.take().context("no standard output")?);
        let stderr = BufReader::new(child.stderr.take().context("no standard error")?);
        let noise = Arc::new(std::sync::atomic::AtomicU32::new(NOISY));
        let last = Arc::<std::sync::Mutex<String>>::default();
        let log = tokio::spawn(log(self.node.clone(), stderr, noise.clone(), last.clone()));
        let ready = Ready {
            name: String::new(),
            version: String::new(),
            kinds: Vec::new(),
            stack: String::new(),
            at_once: 1,
            streams: false,
        };
        let asked = Arc::default();
        // Signals from here do not reach another user's processes or a container's; the guard's do.
        let ends = !prefix.is_empty() || end.is_some();
        let running =
            Running { child, guard, group: Some(group), stdin, writing: false, ready, asked, noise, last, log, exchange, ends };
        Ok((running, stdout))
    }

    /// The number of tasks it takes at a time, by its own word; one, if it is started for each.
    pub fn at_once(&self) -> usize {
        let said = self.running.as_ref().map_or(1, |running| running.ready.at_once);
        if self.settings.once {
            1
        } else {
            said.clamp(1, AT_ONCE)
        }
    }

    /// Runs a task when it has no other, and kills it with all its processes if the task is not done in time.
    pub async fn run(&mut self, run: &Run, within: Duration) -> Ran {
        let attempt = async { self.ask(run, None).await?.answer().await };
        let ran = match timeout(within, attempt).await {
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

    /// Gives it a task. The answer arrives asynchronously, and before it the pieces to show, if it sends any.
    pub async fn ask(&mut self, run: &Run, show: Option<&Arc<Show>>) -> Result<Asked> {
        self.start().await?;
        self.given += 1;
        let (start, longest) = (self.starts, self.longest);
        let running = self.running.as_mut().context("it is running")?;
        running.noise.store(NOISY, std::sync::atomic::Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        if !running.ready.kinds.contains(&run.kind) {
            let reason = format!("the executor runs no tasks of kind {}", run.kind);
            let _ = sender.send(Said::Failed { id: run.id.clone(), fault: Fault::World, reason });
            return Ok(Asked { run: run.clone(), told: None, longest, start, answer, asked: Arc::default() });
        }
        if let Some(home) = self.settings.environment.get("HF_HOME") {
            hub::used(Path::new(home), &run.models);
        }
        let told = running.exchange.as_ref().map(|place| pass(run, place)).transpose()?;
        let mut line = serde_json::json!({ "run": told.as_ref().unwrap_or(run) });
        // An executor without this capability may refuse the unknown field.
        match show {
            Some(show) if running.ready.streams => {
                line["run"]["stream"] = true.into();
                running.pending().shows.insert(run.id.clone(), show.clone());
            }
            Some(show) => show.stop(Why::Whole),
            None => {}
        }
        let line = line.to_string() + "\n";
        running.pending().waited_for.insert(run.id.clone(), sender);
        let asked = Asked { run: run.clone(), told, longest, start, answer, asked: running.asked.clone() };
        running.writing = true;
        running.stdin.write_all(line.as_bytes()).await?;
        running.stdin.flush().await?;
        running.writing = false;
        Ok(asked)
    }

    /// The number of its start, and of the tasks given so far, while it runs. As long as these stay the same, it is the same process
    /// and had no other task.
    pub fn history(&mut self) -> Option<(u64, u64)> {
        let running = self.running.as_mut()?;
        let lost = running.pending().ended.is_some() || running.writing || !matches!(running.child.try_wait(), Ok(None));
        (!lost).then_some((self.starts, self.given))
    }

    /// Kills it if nobody waits for any of its results.
    fn stop_idle(&mut self) {
        let idle = |said: &Pending| said.waited_for.is_empty() && !said.abandoned.is_empty();
        if self.running.as_ref().is_some_and(|running| idle(&running.pending())) {
            self.stop();
        }
    }

    /// Kills it, if this start of it still runs.
    fn stop_start(&mut self, start: Option<u64>) {
        if start == Some(self.starts) {
            self.stop();
        }
    }

    /// Kills it, with all its processes.
    pub fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.kill();
            if let Some(place) = running.exchange.take() {
                // Folders of another user remain until the folder of temporary files is emptied.
                let _ = std::fs::remove_dir_all(place);
            }
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
        self.pending().ended.get_or_insert_with(|| "the executor was ended".into());
        if self.ends {
            drop(self.guard.stdin.take());
        } else if let Some(group) = self.group.take() {
            // Gone already is as good.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.start_kill();
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked {
    /// The result. If this is dropped before, nobody waits for the task any more.
    ///
    /// # Errors
    /// If the executor is unusable: it has ended, or broken the protocol, or its result is too long.
    pub async fn answer(mut self) -> Result<Ran> {
        let output = self.told.as_ref().unwrap_or(&self.run).output.clone();
        let said = tokio::select! {
            said = &mut self.answer => said,
            length = outgrows(&output, self.longest) => {
                // It would fill the disk, on which the agent writes what it reveals.
                clear(&output).context("the result cannot be removed")?;
                bail!("the result grew to {length} bytes, above the {} of `longest`", self.longest);
            }
        };
        match said {
            Ok(Said::Done { .. }) => {
                if let Some(told) = &self.told {
                    take(&told.output, &self.run.output, self.longest).context("the result cannot be taken")?;
                }
                let result = std::fs::symlink_metadata(&self.run.output).ok();
                if let Some(what) = result.as_ref().and_then(no_file) {
                    bail!("the executor is done, and its result is {what}, not a file");
                }
                ensure!(result.is_some_and(|file| file.len() > 0), "the executor is done, and there is no result");
                Ok(Ran::Done)
            }
            Ok(Said::Failed { fault, reason, .. }) => Ok(Ran::Failed(fault, plain(&reason).chars().take(REASON).collect())),
            Ok(Said::Ready(_) | Said::Piece { .. }) => bail!("the executor says again that it is ready"),
            Err(_) => {
                let pending = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
                Err(anyhow!(pending.ended.clone().unwrap_or_else(|| "the executor was ended".into())))
            }
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut pending = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        pending.shows.remove(&self.run.id);
        if pending.waited_for.remove(&self.run.id).is_some() {
            pending.abandoned.insert(self.run.id.clone());
        }
        for file in self.told.iter().flat_map(|told| [&told.input, &told.output]) {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Waits until a file is longer than this, and returns its length.
async fn outgrows(file: &Path, longest: u64) -> u64 {
    loop {
        tokio::time::sleep(MEASURE).await;
        let length = std::fs::symlink_metadata(file).map_or(0, |file| file.len());
        if length > longest {
            return length;
        }
    }
}

/// Copies a task's input into the folder shared with an executor that is kept apart. It may write there, and put a link to one of the
/// agent's files in the input's place at any moment. So only a new file is written to, and its name is not used again.
fn pass(run: &Run, place: &Path) -> Result<Run> {
    use rustix::fs::{fchmod, fchown, open, Gid, Mode, OFlags};
    let id: String = run.id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_').collect();
    let (input, output) = (place.join(format!("{id}.input")), place.join(format!("{id}.output")));
    let copy = || {
        clear(&output)?;
        clear(&input)?;
        let mut from = std::fs::File::open(&run.input)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut to = std::fs::File::from(open(&input, flags, Mode::RUSR | Mode::WUSR)?);
        std::io::copy(&mut from, &mut to)?;
        // Readable by its user's group.
        fchown(&to, None, Some(Gid::from_raw(std::fs::metadata(place)?.gid())))?;
        fchmod(&to, Mode::RUSR | Mode::WUSR | Mode::RGRP)?;
        Ok::<_, std::io::Error>(())
    };
    copy().context("the input cannot be passed on")?;
    Ok(Run { input, output, ..run.clone() })
}

/// The name of a thing in a file's place that is none.
fn no_file(there: &std::fs::Metadata) -> Option<&'static str> {
    let what = there.file_type();
    match () {
        () if what.is_file() => None,
        () if what.is_dir() => Some("a directory"),
        () if what.is_symlink() => Some("a link"),
        () => Some("a pipe, a socket or a device"),
    }
}

/// Opens a result: only a plain file, never a link that could lead to the agent's files, nor a pipe, which could keep the agent waiting.
/// A file of holes takes no room there, and would here, so its length is bounded. The executor may still write to it.
fn open_result(output: &Path, longest: u64) -> Result<std::io::Take<std::fs::File>> {
    use rustix::fs::{open, Mode, OFlags};
    use std::io::Read;
    if let Some(what) = no_file(&std::fs::symlink_metadata(output)?) {
        bail!("it is {what}, not a file");
    }
    let file = open(output, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    let file = std::fs::File::from(file);
    let there = file.metadata()?;
    ensure!(there.is_file(), "it is no file");
    ensure!(there.len() <= longest, "it has {} bytes, above the {longest} of `longest`", there.len());
    Ok(file.take(longest))
}

/// A result's bytes, up to so many.
///
/// # Errors
/// If it is no plain file, is longer, or cannot be read.
pub fn read_result(output: &Path, longest: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut open_result(output, longest)?, &mut bytes)?;
    Ok(bytes)
}

/// Takes a result written by another user.
fn take(from: &Path, to: &Path, longest: u64) -> Result<()> {
    std::io::copy(&mut open_result(from, longest)?, &mut std::fs::File::create(to)?)?;
    Ok(())
}

/// A text of the executor's as one line: inputs of strangers may stand in it, and could write lines of the log.
fn plain(text: &str) -> String {
    text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Waits until a card is lost, and returns the reason; for ever, where no library can be asked.
async fn lost(gpu: Option<&str>) -> String {
    let Some(gpu) = gpu else { return std::future::pending().await };
    loop {
        tokio::time::sleep(LOOK).await;
        if let Some(why) = gpu::lost(gpu).await {
            return why;
        }
    }
}

/// The next line of an executor. An output that stays open says nothing of its process, since another that it began may have it, too.
async fn next(process: Option<Pid>, stdout: &mut BufReader<ChildStdout>) -> Result<Said> {
    tokio::select! {
        said = hear(stdout) => said,
        () = exited(process) => Err(anyhow!("the executor has ended, and a process that it began keeps its output open")),
    }
}

/// Waits until a child has exited, and a moment longer, for its last lines to be read. Leaves it for others to wait for.
async fn exited(process: Option<Pid>) {
    let Some(process) = process else { return std::future::pending().await };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // An error says that it was waited for already.
    while let Ok(None) = waitid(WaitId::Pid(process), options) {
        tokio::time::sleep(MEASURE).await;
    }
    tokio::time::sleep(MEASURE).await;
}

/// Passes answers on, until the executor ends or breaks the protocol, or its card is lost. With a lost card it may hang for ever, and
/// an error reported in time costs only the fee.
async fn listen(
    node: String,
    process: Option<Pid>,
    mut stdout: BufReader<ChildStdout>,
    asked: Arc<std::sync::Mutex<Pending>>,
    gpu: Option<String>,
) {
    loop {
        let said = tokio::select! {
            said = next(process, &mut stdout) => said,
            why = lost(gpu.as_deref()) => Err(anyhow!("the GPU is lost: {why}")),
        };
        let mut pending = asked.lock().unwrap_or_else(PoisonError::into_inner);
        let why = match said {
            Ok(Said::Piece { id, text }) if pending.waited_for.contains_key(&id) || pending.abandoned.contains(&id) => {
                let show = pending.shows.get(&id).cloned();
                drop(pending);
                show.inspect(|show| show.push(&text));
                continue;
            }
            Ok(Said::Piece { id, .. }) => format!("the executor says a piece of {id}, which it does not have"),
            Ok(said) => {
                let id = match &said {
                    Said::Ready(_) | Said::Piece { .. } => None,
                    Said::Done { id } | Said::Failed { id, .. } => Some(id),
                };
                match id {
                    Some(id) if pending.abandoned.remove(id) => continue,
                    Some(id) => match pending.waited_for.remove(id) {
                        Some(waiting) => {
                            // A cancelled receiver does not need it.
                            let _ = waiting.send(said);
                            continue;
                        }
                        None => {
                            let mut others: Vec<_> = pending.waited_for.keys().map(String::as_str).collect();
                            others.sort_unstable();
                            let not = if others.is_empty() {
                                "which it does not have".into()
                            } else {
                                format!("not {}", others.join(" or "))
                            };
                            format!("the executor answers {id}, {not}")
                        }
                    },
                    None => "the executor says again that it is ready".into(),
                }
            }
            Err(error) => format!("{error:#}"),
        };
        // No task fails by it, so nothing else says why the next one waits for a new start.
        if pending.ended.is_none() && pending.waited_for.is_empty() {
            say!("{node}: {}: it is started anew for its next task", plain(&why));
        }
        pending.ended.get_or_insert(why);
        pending.waited_for.clear();
        pending.shows.clear();
        return;
    }
}

/// Passes standard error on to the log, within limits.
async fn log<R: tokio::io::AsyncRead + Unpin>(
    node: String,
    mut from: BufReader<R>,
    left: Arc<std::sync::atomic::AtomicU32>,
    last: Arc<std::sync::Mutex<String>>,
) {
    use std::sync::atomic::Ordering::Relaxed;
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut from).take(NOISE as u64).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if let Some(text) = Some(plain(String::from_utf8_lossy(&line).trim())).filter(|text| !text.is_empty()) {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
        match left.load(Relaxed) {
            0 => {}
            1 => {
                left.store(0, Relaxed);
                say!("{node}: executor: ... and more, which is not shown until its next task");
            }
            more => {
                left.store(more - 1, Relaxed);
                say!("{node}: executor: {}", plain(&String::from_utf8_lossy(&line)));
            }
        }
    }
}

/// Removes a task's result: a file, or anything else that its executor made. A directory would be in every later task's way.
pub fn clear(output: &Path) -> std::io::Result<()> {
    let removed = match std::fs::symlink_metadata(output) {
        Ok(there) if there.is_dir() => std::fs::remove_dir_all(output),
        _ => std::fs::remove_file(output),
    };
    removed.or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// A file's absolute path, of a directory that may be given relatively.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn executor(script: &str) -> Executor {
        let settings = toml::from_str(&format!("command = [\"sh\", \"-c\", '''{script}''']\nready_within = 5")).unwrap();
        Executor::new("test", &settings)
    }

    #[test]
    fn an_executor_gets_no_variable_that_holds_a_secret() {
        for name in ["PATH", "HF_HOME", "HF_HUB_OFFLINE", "CUDA_VISIBLE_DEVICES", "PYTHONPATH", "LC_ALL"] {
            assert!(passes(name), "{name}");
        }
        for name in ["HF_TOKEN", "HF_TOKEN_PATH", "NVIDIA_API_KEY", "GPU_KEY", "PRIVATE_KEY", "MUSTER_WEBHOOK", "XDG_SECRET"] {
            assert!(!passes(name), "{name}");
        }
    }

    fn run(place: &Path) -> Run {
        let (input, output) = (place.join("input"), place.join("output"));
        Run { id: "17".into(), kind: "gpt".into(), units: 1, models: vec![], input, output, deadline: 0 }
    }

    /// Another task has the executor started anew, which takes as long as its model loads.
    #[tokio::test]
    async fn a_task_whose_executor_is_being_started_ends_in_its_time() {
        let settings = toml::from_str("command = [\"sh\", \"-c\", \"sleep 1000\"]\nready_within = 900").unwrap();
        let card = Arc::new(Card::new(Executor::new("test", &settings)));
        card.queue().at_once = 2;
        let place = tempfile::tempdir().unwrap();
        let (first, second) = (run(place.path()), Run { id: "18".into(), ..run(place.path()) });
        std::fs::write(&first.input, "").unwrap();
        let starts = card.clone();
        let starting =
            tokio::spawn(async move { starts.run(&first, Instant::now() + Duration::from_mins(15), false, None).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        let begun = Instant::now();
        let ran = card.run(&second, begun + Duration::from_secs(1), false, None).await;
        assert_eq!(ran, Some(Ran::Failed(Fault::Time, "it was not done in time".into())));
        assert!(begun.elapsed() < Duration::from_mins(2), "{:?}", begun.elapsed());
        starting.abort();
    }

    /// Only root becomes another user without more configuration; `games` is a user of every Debian, with a group of its name.
    #[tokio::test]
    async fn another_user_reads_its_input_writes_its_result_and_cannot_read_what_is_the_agents() {
        let there = std::fs::read_to_string("/etc/passwd").is_ok_and(|users| users.contains("\ngames:"));
        if !rustix::process::getuid().is_root() || !there {
            return;
        }
        let (place, exchange) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = place.path().join("key");
        std::fs::write(&key, "secret").unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let script = format!(
            r#"{READY} while read l; do id=$(echo "$l" | sed "s/.*\"id\":\"//; s/\".*//"); o=$(echo "$l" | sed "s/.*\"output\":\"//; s/\".*//");
            i=$(echo "$l" | sed "s/.*\"input\":\"//; s/\".*//"); (id -un; cat "$i"; cat {} 2>&1 || echo none; grep CapEff /proc/self/status) > "$o";
            echo "{{\"done\":{{\"id\":\"$id\"}}}}"; done"#,
            key.display()
        );
        let text = format!(
            "command = [\"sh\", \"-c\", '''{script}''']\nready_within = 20\nuser = \"games\"\nexchange = \"{}\"",
            exchange.path().display()
        );
        let mut executor = Executor::new("test", &toml::from_str(&text).unwrap());
        let run = run(place.path());
        std::fs::write(&run.input, "hello\n").unwrap();
        // As stores write it.
        std::fs::set_permissions(&run.input, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(executor.run(&run, Duration::from_secs(30)).await, Ran::Done);
        let said = std::fs::read_to_string(&run.output).unwrap();
        assert!(said.starts_with("games\nhello\n") && said.contains("Permission denied") && said.contains("none\n"), "{said}");
        assert!(said.contains("CapEff:\t0000000000000000"), "{said}");
        // The guard ends it, because the agent's signals would not reach it.
        let group = executor.running.as_ref().unwrap().group.unwrap();
        executor.stop();
        let begun = Instant::now();
        while rustix::process::test_kill_process_group(group).is_ok() && begun.elapsed() < Duration::from_mins(1) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(rustix::process::test_kill_process_group(group).is_err(), "it is still there");
        // A link in place of a result is not followed.
        std::os::unix::fs::symlink(&key, place.path().join("link")).unwrap();
        assert!(take(&place.path().join("link"), &run.output, LONGEST).is_err());
    }

    /// It ends all that it may, and has a process in a session of its own.
    #[tokio::test]
    async fn an_executor_that_ends_its_guard_is_ended_with_all_its_processes() {
        let there = std::fs::read_to_string("/etc/passwd").is_ok_and(|users| users.contains("\ngames:"));
        if !rustix::process::getuid().is_root() || !there {
            println!("skipped: only root becomes another user");
            return;
        }
        let (place, exchange) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let script = format!(
            r#"{READY} while read l; do o=$(echo "$l" | sed "s/.*\"output\":\"//; s/\".*//"); id=$(echo "$l" | sed "s/.*\"id\":\"//; s/\".*//");
            trap "" TERM HUP; kill -KILL $(ps -o pgid= $$) 2>/dev/null; setsid sh -c 'echo $$ > '"$o.pid"'; exec sleep 1000' & sleep 1; cat "$o.pid" > "$o";
            echo "{{\"done\":{{\"id\":\"$id\"}}}}"; done"#
        );
        let text = format!(
            "command = [\"sh\", \"-c\", '''{script}''']\nready_within = 20\nuser = \"games\"\nexchange = \"{}\"",
            exchange.path().display()
        );
        let mut executor = Executor::new("cell", &toml::from_str(&text).unwrap());
        let run = run(place.path());
        std::fs::write(&run.input, "hello\n").unwrap();
        assert_eq!(executor.run(&run, Duration::from_mins(1)).await, Ran::Done);
        let process = std::fs::read_to_string(&run.output).unwrap().trim().to_string();
        let of = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
        if !of("cgroup").contains("/muster-cell-") {
            println!("skipped: no cgroup can be made here");
            return;
        }
        // One that nobody has asked for its end is still listed.
        let is_there = || !of("stat").is_empty() && !of("stat").contains(") Z ");
        assert!(is_there());
        executor.stop();
        let begun = Instant::now();
        while is_there() && begun.elapsed() < Duration::from_mins(1) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(!is_there(), "{}", of("stat"));
    }

    /// The executor's part is a thread here: it puts a link to a key in the input's place while the agent writes there.
    #[test]
    fn a_link_in_an_inputs_place_leads_the_agent_to_none_of_its_files() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let (place, exchange) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = place.path().join("key");
        std::fs::write(&key, "secret").unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let run = run(place.path());
        // Long enough to be met while it is copied.
        std::fs::write(&run.input, vec![b'x'; 64 << 20]).unwrap();
        let (there, over) = (exchange.path().join("17.input"), AtomicBool::new(false));
        let is =
            |what: fn(&std::fs::FileType) -> bool| std::fs::symlink_metadata(&there).is_ok_and(|file| what(&file.file_type()));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if is(std::fs::FileType::is_file) && std::fs::remove_file(&there).is_ok() {
                        let _ = std::os::unix::fs::symlink(&key, &there);
                    }
                }
            });
            // On a loaded machine the thread may come too late for one.
            let came = (0..1_000).any(|_| {
                let _ = pass(&run, exchange.path());
                is(std::fs::FileType::is_symlink)
            });
            over.store(true, Ordering::Relaxed);
            assert!(came, "the thread came too late each time");
        });
        assert_eq!(std::fs::metadata(&key).unwrap().mode() & 0o777, 0o600, "others can read the key");
        assert_eq!(std::fs::read_to_string(&key).unwrap(), "secret");
        // A directory there is in no later task's way.
        std::fs::remove_file(&there).unwrap();
        std::fs::create_dir_all(there.join("more")).unwrap();
        std::fs::write(&run.input, "hello").unwrap();
        let told = pass(&run, exchange.path()).unwrap();
        assert_eq!(std::fs::read_to_string(told.input).unwrap(), "hello");
    }

    #[tokio::test]
    async fn what_an_executor_says_before_it_ends_is_why_it_did_not_start() {
        let mut executor = executor("echo the card is too small >&2; exit 1");
        let error = format!("{:#}", executor.start().await.unwrap_err());
        assert!(error.contains("ended before it was ready: the card is too small"), "{error}");
    }

    const READY: &str = r#"echo "{\"ready\":{\"name\":\"x\",\"version\":\"1\",\"kinds\":[\"gpt\"]}}";"#;

    #[tokio::test]
    async fn of_tasks_that_wait_the_one_that_is_due_next_comes_first() {
        let card = Arc::new(Card::new(executor("true")));
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let busy = card.turn(5, false, "").await;
        let mut tasks = tokio::task::JoinSet::new();
        for (deadline, alone) in [(30, false), (10, true), (20, false)] {
            let (card, order) = (card.clone(), order.clone());
            tasks.spawn(async move {
                let turn = card.turn(deadline, alone, "").await;
                order.lock().unwrap().push(deadline);
                drop(turn);
            });
        }
        // A cancelled task holds up no other.
        assert!(timeout(Duration::from_millis(20), card.turn(7, false, "")).await.is_err());
        while card.queue().waiting.len() < 3 {
            tokio::task::yield_now().await;
        }
        drop(busy);
        while tasks.join_next().await.is_some() {}
        assert_eq!(*order.lock().unwrap(), [10, 20, 30]);
    }

    /// An executor that takes three tasks at a time, and handles each by the rest of `case "$input" in`; `$1` is its id, `$2` its output.
    fn several(place: &Path, cases: &str) -> Arc<Card> {
        let at_once = READY.replace(r#"[\"gpt\"]"#, r#"[\"gpt\"],\"at_once\":3"#);
        let script = format!(
            r#"{at_once}
            field() {{ echo "$line" | sed "s/.*\"$1\":\"//; s/\".*//"; }}
            begin() {{ echo "+$1" >> {0}/log; }}
            done_() {{ echo "-$1" >> {0}/log; echo "$1" > "$2"; echo "{{\"done\":{{\"id\":\"$1\"}}}}"; }}
            while read -r line; do
                set -- "$(field id)" "$(field output)" "$(field input)"
                begin "$1"
                case "$(cat "$3")" in {cases} esac
            done"#,
            place.display()
        );
        Arc::new(Card::new(executor(&script)))
    }

    /// A task with an input; the log names it by this id.
    async fn given(card: &Arc<Card>, place: &Path, id: &str, input: &str, deadline: u64, compared: bool) -> Option<Ran> {
        let run = Run {
            id: id.into(),
            input: place.join(format!("{id}.in")),
            output: place.join(format!("{id}.out")),
            deadline,
            ..run(place)
        };
        std::fs::write(&run.input, input).unwrap();
        card.run(&run, Instant::now() + Duration::from_secs(30), compared, None).await
    }

    #[tokio::test]
    async fn one_that_takes_several_has_them_at_once_and_those_that_are_compared_alone() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        // It answers the last one first when it has three, or each at once.
        let card = several(
            place,
            r#"three) all="$1 $2 ${all}"; count=$((count + 1)); [ "$count" = 3 ] && { set -- $all; count=0 all=; while [ $# -gt 0 ]; do done_ "$1" "$2"; shift 2; done; } ;;
               *) done_ "$1" "$2" ;;"#,
        );
        // Its limit is known once it has started.
        assert_eq!(given(&card, place, "first", "", 1, false).await, Some(Ran::Done));
        let (one, two, three) = tokio::join!(
            given(&card, place, "a", "three", 1, false),
            given(&card, place, "b", "three", 2, false),
            given(&card, place, "c", "three", 3, false),
        );
        assert_eq!([one, two, three], [Some(Ran::Done), Some(Ran::Done), Some(Ran::Done)]);
        let log = || std::fs::read_to_string(place.join("log")).unwrap().split_whitespace().map(String::from).collect::<Vec<_>>();
        assert_eq!(log()[2..5], ["+a", "+b", "+c"]);
        assert_eq!(log()[5..8], ["-c", "-b", "-a"], "answers come in any order");
        // Of two compared tasks the second begins after the first has ended, in either order of arrival.
        let (one, two) = tokio::join!(given(&card, place, "d", "", 1, true), given(&card, place, "e", "", 2, true));
        assert_eq!([one, two], [Some(Ran::Done), Some(Ran::Done)]);
        assert_eq!(log()[8..12], ["+d", "-d", "+e", "-e"]);
        // Unless the executor's answers were found not to depend on it.
        card.lock().await.set_alike(true);
        let (one, two, three) = tokio::join!(
            given(&card, place, "f", "three", 1, true),
            given(&card, place, "g", "three", 2, true),
            given(&card, place, "h", "three", 3, true),
        );
        assert_eq!([one, two, three], [Some(Ran::Done), Some(Ran::Done), Some(Ran::Done)]);
        // Nodes that share it can be of one group: the same task comes twice, and one waits for the other.
        let (one, two) = tokio::join!(given(&card, place, "i", "", 1, true), given(&card, place, "i", "", 1, true));
        assert_eq!([one, two], [Some(Ran::Done), Some(Ran::Done)]);
        assert_eq!(log()[log().len() - 4..], ["+i", "-i", "+i", "-i"]);
        assert_eq!(card.lock().await.starts, 1);
    }

    #[tokio::test]
    async fn who_was_beside_one_that_ended_the_executor_is_run_again() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let card = several(
            place,
            &format!(
                r#"slow) [ ! -e "$2" ] || exit; echo begun > "$2"; [ "$(grep -c +slow {0}/log)" = 1 ] || done_ "$1" "$2" ;;
                   end) while ! grep -q +slow {0}/log; do sleep 0.05; done; kill -KILL 0 ;; *) done_ "$1" "$2" ;;"#,
                place.display()
            ),
        );
        assert_eq!(given(&card, place, "first", "", 1, false).await, Some(Ran::Done));
        let (slow, end) =
            tokio::join!(given(&card, place, "slow", "slow", 1, false), given(&card, place, "end", "end", 2, false));
        assert_eq!(slow, Some(Ran::Done));
        assert!(matches!(&end, Some(Ran::Failed(Fault::Node, why)) if why.contains("has ended")), "{end:?}");
        let log = std::fs::read_to_string(place.join("log")).unwrap();
        assert_eq!(log.matches("+slow").count(), 2, "{log}");
        assert_eq!(log.matches("+end").count(), 2, "it was not known which of them had ended it: {log}");
        // A task that ends it without another beside it is run once.
        let _ = std::fs::remove_file(place.join("single.out"));
        assert!(matches!(given(&card, place, "single", "end", 3, false).await, Some(Ran::Failed(Fault::Node, _))));
        let log = std::fs::read_to_string(place.join("log")).unwrap();
        assert_eq!(log.matches("+single").count(), 1, "{log}");
    }

    #[tokio::test]
    async fn what_nobody_waits_for_holds_up_nobody() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let card = several(place, r#"never) ;; *) done_ "$1" "$2" ;;"#);
        assert_eq!(given(&card, place, "first", "", 1, false).await, Some(Ran::Done));
        let begun = async |id: &str| {
            while !std::fs::read_to_string(place.join("log")).unwrap().contains(&format!("+{id}")) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            ran = given(&card, place, "lost", "never", 1, false) => panic!("{ran:?}"),
            () = begun("lost") => {}
        }
        // A new process, because the first would be busy with unneeded work.
        assert_eq!(given(&card, place, "next", "", 1, false).await, Some(Ran::Done));
        assert_eq!(card.lock().await.starts, 2);
        // Beside needed work it goes on.
        let beside = async {
            begun("again").await;
            given(&card, place, "beside", "", 2, false).await
        };
        tokio::select! {
            ran = given(&card, place, "again", "never", 1, false) => panic!("{ran:?}"),
            ran = beside => assert_eq!(ran, Some(Ran::Done)),
        }
        assert_eq!(card.executor.lock().await.starts, 2);
        card.stop_idle().await;
        assert!(card.lock().await.running.is_none(), "and is killed when nothing else is there");
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
    async fn a_result_that_grows_and_grows_ends_it_and_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let run = run(place.path());
        let grows =
            format!("{READY} read l; while true; do head -c 100000 /dev/zero >> {}; sleep 0.02; done", run.output.display());
        let mut executor = executor(&grows).at_most(1 << 20);
        match executor.run(&run, Duration::from_mins(1)).await {
            Ran::Failed(Fault::Node, reason) => assert!(reason.contains("above the 1048576 of `longest`"), "{reason}"),
            other => panic!("{other:?}"),
        }
        assert!(executor.running.is_none());
        // It may have begun another before it was killed.
        assert!(std::fs::metadata(&run.output).map_or(0, |file| file.len()) < 1 << 20);
    }

    #[test]
    fn a_result_that_is_too_long_is_not_taken() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        let file = std::fs::File::create(&from).unwrap();
        // Of holes: it takes no room.
        file.set_len(1 << 40).unwrap();
        let error = take(&from, &to, 1 << 20).unwrap_err();
        assert!(error.to_string().contains("it has 1099511627776 bytes") && !to.exists(), "{error}");
        file.set_len(1 << 20).unwrap();
        take(&from, &to, 1 << 20).unwrap();
        assert_eq!(std::fs::metadata(&to).unwrap().len(), 1 << 20);
    }

    #[tokio::test]
    async fn it_has_ended_also_while_a_process_that_it_began_keeps_its_output_open() {
        let place = tempfile::tempdir().unwrap();
        for script in [format!("{READY} read l; sleep 600 & exit 3"), "sleep 600 & exit 1".into()] {
            let mut executor = executor(&script);
            executor.settings.ready_within = 300;
            match executor.run(&run(place.path()), Duration::from_mins(5)).await {
                Ran::Failed(Fault::Node, reason) => assert!(reason.contains("keeps its output open"), "{reason}"),
                other => panic!("{other:?}"),
            }
        }
        let last = format!(
            r#"{READY} read l; echo r > {}/output; echo "{{\"done\":{{\"id\":\"17\"}}}}"; sleep 600 & exit"#,
            place.path().display()
        );
        assert_eq!(executor(&last).run(&run(place.path()), Duration::from_mins(5)).await, Ran::Done);
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
        let ran = executor(&says.replace("task", "bound")).run(&run(place.path()), Duration::from_secs(5)).await;
        assert_eq!(ran, Ran::Failed(Fault::Bound, "no prompt".into()));
        let other = Run { kind: "images".into(), ..run(place.path()) };
        assert!(matches!(executor(&says).run(&other, Duration::from_secs(5)).await, Ran::Failed(Fault::World, _)));
        for fault in ["world", "time"] {
            let claims = says.replace("task", fault);
            match executor(&claims).run(&run(place.path()), Duration::from_secs(5)).await {
                Ran::Failed(Fault::Node, reason) => assert!(reason.contains("not in the schema"), "{reason}"),
                other => panic!("{other:?}"),
            }
        }
        // A reason is one line of the log, whatever input it repeats.
        let forged = r#"{"failed":{"id":"17","fault":"task","reason":"no\r\nERROR gpu0: the key is gone\u001b[2J\n"}}"#;
        std::fs::write(place.path().join("line"), format!("{forged}\n")).unwrap();
        let forges = format!("{READY} read l; cat {}/line", place.path().display());
        let ran = executor(&forges).run(&run(place.path()), Duration::from_secs(5)).await;
        assert_eq!(ran, Ran::Failed(Fault::Task, "no  ERROR gpu0: the key is gone [2J".into()));
    }

    #[tokio::test]
    async fn a_result_is_a_plain_file() {
        let place = tempfile::tempdir().unwrap();
        let (output, secret) = (place.path().join("output"), place.path().join("secret"));
        std::fs::write(&secret, "secret").unwrap();
        for (makes, what) in [
            (format!("ln -s {} {{}}", secret.display()), "a link"),
            ("ln -s /dev/zero {}".into(), "a link"),
            ("mkfifo {}".into(), "a pipe, a socket or a device"),
            ("mkdir {}".into(), "a directory"),
        ] {
            clear(&output).unwrap();
            let makes = makes.replace("{}", &output.display().to_string());
            let script = format!(r#"{READY} read l; {makes}; echo "{{\"done\":{{\"id\":\"17\"}}}}"; read l"#);
            match executor(&script).run(&run(place.path()), Duration::from_secs(5)).await {
                Ran::Failed(Fault::Node, reason) => {
                    assert!(reason.contains(&format!("its result is {what}, not a file")), "{reason}");
                }
                other => panic!("{makes}: {other:?}"),
            }
            let error = read_result(&output, LONGEST).unwrap_err().to_string();
            assert_eq!(error, format!("it is {what}, not a file"));
        }
        // One of holes is not read into memory.
        clear(&output).unwrap();
        std::fs::File::create(&output).unwrap().set_len(1 << 40).unwrap();
        assert!(read_result(&output, 1 << 20).unwrap_err().to_string().contains("above the 1048576 of `longest`"));
    }
}
