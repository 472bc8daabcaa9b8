//! A node's life: it repeats the actions that the contract's state and the journal require. Events only wake it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use alloy::sol_types::SolCall;
use anyhow::Result;
use futures_util::future::{FutureExt, OptionFuture};
use muster_client::{pause, Head, IMuster};
use muster_core::record::CALL_MODELS;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::answers::{is_for_now, is_too_expensive, passes, stamp, Answers, Called, Given, What};
use crate::clock::Clock;
use crate::drive::{self, Drive};
use crate::gpu::Gpu;
use crate::heed::Heed;
use crate::journal::{Job, Stage};
use crate::metrics::OfNode;
use crate::pauses::{Watchdog, DISK, DRAIN, FAILURES, GPU, JUDGED, SELF_TEST};
use crate::said::Fault;
use crate::setup::{self, Examined, Ready};
use crate::shared::Shared;
use crate::work::{self, Failure, Work, Worked};
use crate::{die, models, say};

/// Failures in a row after which a node without golden tasks is paused; golden tasks would show whose fault a failure was.
const FAILURES_MOST: u32 = 2;
/// How long the chain must show that the key no longer works for the node: a node of the chain may be behind.
const DISMISSED: Duration = Duration::from_secs(20);
/// How long it must show a pause that is somebody else's: just after the agent's own one has ended, a node of the chain may show that.
const OTHERS: Duration = Duration::from_secs(20);
/// How long it must show that the node is not joined.
const LEFT: Duration = Duration::from_secs(20);
/// How often groups are searched for commitments that the journal lacks.
const SEARCH: Duration = Duration::from_secs(30);
/// The shortest rest between two looks.
const SHORTEST: Duration = Duration::from_millis(50);
/// How often earlier transactions are checked while nothing changes.
const AFTER: Duration = Duration::from_secs(3);
/// How often the balance is, and after how many blocks of so many calls it may be too low.
const WEIGHING: Duration = Duration::from_secs(15);
const CALLS: u32 = 4;
/// After this time without the chain a node does not count as ready.
const BLIND: Duration = Duration::from_mins(1);
/// How long the loop waits for how a new task was created; the task's own work waits for longer.
const CREATION: Duration = Duration::from_secs(5);
/// The rest between two looks while the machine's clock may be wrong.
const DOUBT: Duration = Duration::from_millis(500);
/// The longest rest after failed looks.
const REST: Duration = Duration::from_mins(1);

type Test = JoinHandle<Result<Examined>>;

/// The reason why a node's work has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The agent was asked to end.
    Asked,
    /// The operator has ended the key's work for the node, or the key has left it.
    Dismissed,
}

/// A node at work.
pub struct Node {
    shared: Arc<Shared>,
    ready: Ready,
    /// Rung when something of its own has ended, and by events that concern it.
    bell: Arc<Notify>,
    news: Arc<Notify>,
    working: Option<(u64, u64, JoinHandle<Result<Worked>>)>,
    downloading: Option<JoinHandle<()>>,
    testing: Option<Test>,
    /// The time of the next self-test.
    test_at: Option<Instant>,
    /// The GPU, once the self-test has found it.
    gpu: Option<Gpu>,
    /// Whether the self-test has been made.
    tested: bool,
    /// Whether there are golden tasks, which show whose fault a failure was.
    golden: bool,
    /// Since when the node is paused by somebody else, and whether the log says so.
    others_pause: Option<(Instant, bool)>,
    /// Whether the node is known to be judged, and a self-test was begun since.
    judged: bool,
    /// Since when the key no longer works for the node.
    dismissed: Option<Instant>,
    /// Since when the node is not joined, and whether that was told.
    left: Option<(Instant, bool)>,
    failures: u32,
    drive: Drive,
    /// Calls for the members that its groups wait for.
    frees: Drive,
    watchdog: Watchdog,
    searched: Option<Instant>,
    /// When the commitment to this task, which the journal lacks, is searched for again.
    sought: Option<(u64, Instant)>,
    draining: bool,
    clock: Clock,
    /// The node's task, by number and deadline, and how many seconds before the deadline an error is reported.
    lead: Option<(u64, u64, u64)>,
    /// That time.
    due: Option<Instant>,
    /// When its transactions were last checked.
    ticked: Option<Instant>,
    /// When its balance is to be checked again, and against how many jobs it was.
    weigh_at: Option<(Instant, usize)>,
    /// When it last asked for work in a way that others would not do for it.
    poked: Option<Instant>,
    /// The block after which something can be done.
    awaits: Option<u64>,
    /// Whether it had no task at the last look, and nothing has happened since.
    free: bool,
    /// The models that it held at the last look.
    held: Vec<u64>,
    /// Whether a task waits that it would refuse.
    heed: Heed,
    /// The end of the last rest that the log names.
    rests: u64,
    /// The open jobs at the last look.
    jobs: Vec<Job>,
}

/// Whether a task's deadline has passed, so that no answer counts any more.
fn late(task: &IMuster::TaskView, head: &Head) -> bool {
    matches!(task.status, 3 | 6) && task.deadline < head.timestamp
}

impl Node {
    /// A new node, which begins with its self-test.
    pub fn new(shared: Arc<Shared>, ready: Ready) -> Result<Self> {
        let answers = &ready.answers;
        for why in [DRAIN, FAILURES] {
            answers.end(why)?;
        }
        if ready.settings.terms.is_empty() {
            answers.end(pause::PRICE)?;
        }
        let (bell, news) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        shared.watch(answers.number, &news);
        shared.is_of(answers.number, ready.group);
        if !ready.settings.terms.is_empty() {
            shared.watch_created(&news);
        }
        let golden = ready.settings.golden().is_some();
        Ok(Self {
            shared,
            ready,
            bell,
            news,
            working: None,
            downloading: None,
            testing: None,
            test_at: Some(Instant::now()),
            gpu: None,
            tested: false,
            golden,
            others_pause: None,
            judged: false,
            dismissed: None,
            left: None,
            failures: 0,
            drive: Drive::default(),
            frees: Drive::default(),
            watchdog: Watchdog::default(),
            searched: None,
            sought: None,
            draining: false,
            clock: Clock::default(),
            lead: None,
            due: None,
            ticked: None,
            weigh_at: None,
            poked: None,
            awaits: None,
            free: false,
            held: Vec::new(),
            heed: Heed::default(),
            rests: 0,
            jobs: Vec::new(),
        })
    }

    fn answers(&self) -> &Answers {
        &self.ready.answers
    }

    fn name(&self) -> &str {
        &self.ready.settings.name
    }

    fn number(&self) -> u32 {
        self.ready.answers.number
    }

    /// Works until the agent is asked to end and nothing is left that could be lost.
    pub async fn run(mut self) -> End {
        let mut draining = self.shared.draining.clone();
        let mut rest = Duration::from_secs(1);
        loop {
            if *draining.borrow() && !self.draining {
                self.draining = true;
                say!("{}: ending: finishes the running task, reveals open answers", self.name());
                if let Err(error) = self.answers().shared.journal.pause(self.number(), DRAIN) {
                    tracing::error!("{}: {error:#}", self.name());
                }
            }
            let pause = match self.step().await {
                Ok(Some(end)) => return end,
                Ok(None) => {
                    OfNode(&self.shared.metrics, self.name()).looked();
                    rest = Duration::from_secs(1);
                    let every = self.shared.config.look_every();
                    // Actions that are refused repeatedly are not tried all the time.
                    [self.drive.rest(), self.frees.rest()]
                        .into_iter()
                        .flatten()
                        .min()
                        .map_or(every, |due| due.clamp(SHORTEST, every))
                }
                Err(error) => {
                    self.is_blind(&error);
                    if is_too_expensive(&error) {
                        self.shared.alert(self.name(), "gas", &format!("{error:#}"));
                    } else if passes(&error) {
                        tracing::warn!("{}: {error:#}", self.name());
                    } else {
                        self.shared.alert(self.name(), "error", &format!("{error:#}"));
                        if let Err(error) = self.reveal_anyway().await {
                            tracing::warn!("{}: {error:#}", self.name());
                        }
                    }
                    rest = self.rest_after(rest);
                    rest
                }
            };
            let awaits = self.awaits.take();
            let endpoints = self.shared.chain.muster.endpoints().clone();
            let now = Instant::now();
            let pause = self.due.filter(|due| *due > now).map_or(pause, |due| pause.min(due - now));
            let woken = tokio::select! {
                () = self.bell.notified() => true,
                () = self.news.notified() => true,
                () = tokio::time::sleep(pause) => false,
                () = endpoints.reach(awaits.unwrap_or_default()), if awaits.is_some() => true,
                _ = draining.changed(), if !self.draining => true,
            };
            self.free &= !woken;
        }
    }

    /// Notes that the node cannot take tasks: the contract refuses it, because its programs have expired, or it has not seen the chain
    /// for a while.
    fn is_blind(&self, error: &anyhow::Error) {
        let metrics = OfNode(&self.shared.metrics, self.name());
        if !passes(error) || metrics.last_looked().is_none_or(|ago| ago > BLIND) {
            metrics.set("ready", 0.0);
        }
    }

    /// How long to rest after another failed look: briefly while a reveal is owed, since the time for it goes on.
    fn rest_after(&self, last: Duration) -> Duration {
        let jobs = self.shared.journal.open_jobs(self.number()).unwrap_or_default();
        let owes = jobs.iter().any(Job::may_owe_reveal);
        (last * 2).min(if owes { self.shared.config.look_every() } else { REST })
    }

    /// Reveals what is open after a look that failed, as all do on a disk that takes no more.
    async fn reveal_anyway(&self) -> Result<()> {
        let number = self.number();
        let mut jobs = self.shared.journal.open_jobs(number).unwrap_or_else(|_| self.jobs.clone());
        jobs.retain(Job::may_owe_reveal);
        if jobs.is_empty() {
            return Ok(());
        }
        let muster = &self.shared.chain.muster;
        let head = muster.endpoints().recent_head().await?;
        let running = muster.read(IMuster::runningTaskCall { number }).await?;
        let running = Some(running).filter(|task| task.id > 0);
        self.reveal_all(jobs, &head, running.as_ref()).await;
        Ok(())
    }

    /// Reveals what can be revealed of these jobs.
    async fn reveal_all(&self, jobs: Vec<Job>, head: &Head, running: Option<&IMuster::TaskView>) {
        for mut job in jobs {
            if let Err(error) = self.answers().reveal(&mut job, head, self.clock.now(), running).await {
                tracing::warn!("{}: task {}: {error:#}", self.name(), job.task);
            }
        }
    }

    /// Looks once, and acts; returns the reason to end, if there is one.
    async fn step(&mut self) -> Result<Option<End>> {
        let (shared, number) = (self.shared.clone(), self.number());
        let muster = &shared.chain.muster;
        // First: on a full disk nothing else works.
        self.answers().measure_disk()?;
        let finished = self.finished().await?;
        self.test().await?;
        if finished {
            self.answer_at_once().await?;
        }
        if self.ticked.is_none_or(|ticked| ticked.elapsed() >= AFTER) {
            let sender = self.answers().account.sender();
            sender.tick().await?;
            for text in sender.take_alerts().await {
                self.shared.alert(self.name(), "nonce", &text);
            }
            self.ticked = Some(Instant::now());
        }
        // This look is after all events that were announced until now.
        let _ = self.news.notified().now_or_never();
        // Concurrently: each question takes a round trip.
        let running = IMuster::runningTaskCall { number };
        let (head, view, task) = tokio::join!(
            muster.endpoints().recent_head(),
            muster.read(IMuster::nodeCall { number }),
            OptionFuture::from((!self.free).then(|| muster.read(running.clone()))),
        );
        let (head, view) = (head?, view?);
        self.clock.see(&head);
        self.free = !matches!(view.status, 2 | 3 | 4 | 6);
        let running = match (self.free, task) {
            (true, _) => None,
            (false, Some(task)) => Some(task?),
            (false, None) => Some(muster.read(running).await?),
        }
        .filter(|task| task.id > 0);
        self.held.clone_from(&view.models);
        if !self.works(&view).await? {
            return self.dismissed(&head, running.as_ref()).await;
        }
        self.see_place(&view).await?;
        let mut jobs = self.reconcile(&head, &view, running.as_ref()).await?;
        // Any fee is paid for a reveal. It must not wait for an answer whose gas costs more than the configuration allows.
        jobs.sort_by_key(|job| !job.owes_reveal());
        // Freeing a called member can be refused for long, so it has a time of its own.
        let (mut wanted, mut frees) = (None, None);
        OfNode(&shared.metrics, self.name()).set("reveal_deadline_timestamp_seconds", 0.0);
        for job in &mut jobs {
            match job.stage {
                Stage::Taken | Stage::Ran => {
                    let own = running.as_ref().is_some_and(|task| (task.id, task.deadline) == (job.task, job.deadline));
                    self.begin(job, own)?;
                }
                Stage::Stored | Stage::Sent => self.answers().answer(job).await?,
                _ => match self.answers().reveal(job, &head, self.clock.now(), running.as_ref()).await? {
                    what @ Some(What::Free(..)) => frees = what,
                    what => wanted = what.or(wanted),
                },
            }
            if job.stage == Stage::Over {
                work::forget(&shared.config.work(&self.ready.settings), job);
            }
        }
        jobs.retain(|job| job.stage != Stage::Over);
        self.jobs.clone_from(&jobs);
        shared.watch_tasks(number, jobs.iter().map(|job| job.task).collect());
        self.report_models(&view).await?;
        if let Some(gpu) = &self.gpu {
            self.watchdog.look(&self.ready.answers, gpu).await?;
        }
        self.is_judged(view.status)?;
        self.tell_rest(&view, head.timestamp);
        let ready = self.tested && view.status != 0 && shared.journal.pauses(number)?.is_empty() && view.status != 5;
        let open = jobs.len();
        if self.weigh_at.is_none_or(|(at, jobs)| at <= Instant::now() || jobs < open) {
            let more = self.answers().weigh(&head, &jobs).await?;
            // It sends fewer calls in a block.
            let enough = muster.endpoints().pulse().block_time().saturating_mul(more / CALLS);
            self.weigh_at = Some((Instant::now() + enough.min(WEIGHING), open));
        }
        self.heed.look(&self.ready.answers, &self.ready.settings.terms, &view).await?;
        let others = self.answers().pause_or_resume(view.status, self.tested).await?;
        match self.others_pause {
            None if others => self.others_pause = Some((Instant::now(), false)),
            Some((since, false)) if others && since.elapsed() >= OTHERS => {
                self.others_pause = Some((since, true));
                self.answers().tell_other_pause().await;
            }
            Some(_) if view.status != 5 => self.others_pause = None,
            _ => {}
        }
        if let Some(task) = running.as_ref().filter(|task| late(task, &head) && jobs.iter().all(|job| job.task != task.id)) {
            wanted = wanted.or(Some(What::Expire(number, task.id)));
        }
        wanted = wanted.or_else(|| drive::for_the_resting(self.clock.now(), &view));
        let mut nodes = 1;
        if wanted.is_none() && !self.draining {
            (wanted, nodes) = drive::for_the_idle(self.answers(), muster, &head, self.clock.now(), &view).await?;
        }
        let within = |what: Option<What>| {
            let (block, most) = (muster.endpoints().pulse().block_time(), Duration::from_secs(shared.config.drive_within));
            what.map_or(Duration::ZERO..Duration::ZERO, |what| {
                drive::leaves(what, block, nodes, view.parked == drive::RESERVED, most)
            })
        };
        let (wanted_within, frees_within) = (within(wanted), within(frees));
        // Nobody else does it, so it is done at the first look; if it is useless, not at every one.
        let at_once = |poked: Instant| poked.elapsed() >= muster.endpoints().pulse().block_time() * 4;
        let poke = wanted.filter(|what| matches!(what, What::Poke(_)) && self.poked.is_none_or(at_once));
        if poke.is_some() {
            self.poked = Some(Instant::now());
        }
        let due = [poke.or_else(|| self.drive.consider(wanted, wanted_within)), self.frees.consider(frees, frees_within)];
        for what in due.into_iter().flatten() {
            drive::carry_out(self.answers(), what).await?;
        }
        let told = self.answers().take_told();
        self.awaits = told.awaits;
        if let Some(given) = told.given {
            self.take(given).await?;
        }
        if told.apart {
            self.bell.notify_one();
        }
        self.tell(&view, running.as_ref(), &jobs, ready)?;
        let safe = jobs.iter().all(|job| job.stage == Stage::Revealed);
        Ok((self.draining && safe && running.is_none() && matches!(view.status, 0 | 5)).then_some(End::Asked))
    }

    /// Sends a new result, and begins the task that its receipt gives the node: neither needs another question.
    async fn answer_at_once(&mut self) -> Result<()> {
        if self.dismissed.is_some() {
            return Ok(());
        }
        for mut job in self.shared.journal.open_jobs(self.number())? {
            if job.stage == Stage::Stored {
                self.answers().answer(&mut job).await?;
                if job.stage == Stage::Over {
                    work::forget(&self.shared.config.work(&self.ready.settings), &job);
                }
            }
        }
        match self.answers().take_told().given {
            Some(given) => self.take(given).await,
            None => Ok(()),
        }
    }

    /// Takes a task that a receipt gives to the node. If more information is needed, the next look finds it.
    async fn take(&mut self, Given { task, deadline, place }: Given) -> Result<()> {
        let (shared, number) = (self.shared.clone(), self.number());
        if self.working.is_some() || shared.journal.job(number, task, deadline)?.is_some() {
            return Ok(());
        }
        // A long search must not keep reveals waiting.
        let created = tokio::time::timeout(CREATION, shared.created(task)).await;
        let Ok(Ok(IMuster::TaskCreated { spec, .. })) = created else { return Ok(()) };
        let job = Job::new(number, task, deadline, spec.redundancy, place);
        say!("{}: task {task} taken, until {deadline}", self.name());
        shared.journal.put(&job)?;
        die::at("journalled");
        self.begin(&job, true)
    }

    /// Tells when the node is not joined any more. Where it joined anew, as another group's, its golden tasks must give that name before it
    /// answers.
    async fn see_place(&mut self, view: &IMuster::NodeView) -> Result<()> {
        let (number, name) = (self.number(), self.name().to_string());
        if view.status == 0 {
            let (since, told) = *self.left.get_or_insert((Instant::now(), false));
            if !told && since.elapsed() >= LEFT {
                self.left = Some((since, true));
                let text = format!("node {number} is not joined any more: it gets no task until `muster node join`");
                self.shared.alert(&name, "left", &text);
            }
            return Ok(());
        }
        self.left = None;
        if view.gpu == self.ready.group {
            return Ok(());
        }
        let registered = self.shared.chain.muster.read(IMuster::gpuNameCall { group: view.gpu }).await?;
        say!("{name}: node {number} has joined anew, as {registered:?} with {} GiB: its self-test is made again", view.vram);
        (self.ready.group, self.ready.registered, self.ready.vram) = (view.gpu, registered, view.vram);
        self.shared.is_of(number, view.gpu);
        (self.tested, self.test_at) = (false, Some(Instant::now()));
        Ok(())
    }

    /// Whether the key may act for the node.
    async fn works(&mut self, view: &IMuster::NodeView) -> Result<bool> {
        let own = self.answers().account.address();
        if view.operator == own {
            return Ok(true);
        }
        let hand = self.shared.chain.muster.read(IMuster::workerOfCall { number: self.number() }).await?;
        let works = hand.worker == own && hand.works;
        if works {
            self.dismissed = None;
        }
        Ok(works)
    }

    /// The remaining work of a key that no longer works for the node. It reveals its commitments, which nobody else could,
    /// and begins nothing.
    async fn dismissed(&mut self, head: &Head, running: Option<&IMuster::TaskView>) -> Result<Option<End>> {
        let (shared, number) = (self.shared.clone(), self.number());
        if self.dismissed.is_none() {
            self.dismissed = Some(Instant::now());
            let own = self.answers().account.address();
            let text = format!("{own} works for node {number} no more: it takes no task, and ends when nothing is open");
            shared.alert(self.name(), "dismissed", &text);
        }
        self.tell_apart();
        let believed = self.dismissed.is_some_and(|since| since.elapsed() >= DISMISSED);
        if believed {
            self.abandon();
        }
        let mut jobs = shared.journal.open_jobs(number)?;
        for job in &mut jobs {
            match job.stage {
                Stage::Taken | Stage::Ran | Stage::Stored if believed => self.answers().over(job, "dismissed")?,
                Stage::Taken | Stage::Ran | Stage::Stored => {}
                // It may have been mined before.
                Stage::Sent => self.answers().answer(job).await?,
                _ => drop(self.answers().reveal(job, head, self.clock.now(), running).await?),
            }
            if job.stage == Stage::Over {
                work::forget(&shared.config.work(&self.ready.settings), job);
            }
        }
        jobs.retain(|job| job.stage < Stage::Revealed);
        shared.watch_tasks(number, jobs.iter().map(|job| job.task).collect());
        Ok((believed && jobs.is_empty()).then_some(End::Dismissed))
    }

    /// Reacts to a judgement: begins a self-test after it, and notes when the node is paused, because from then on the operator
    /// resumes it.
    fn is_judged(&mut self, status: u8) -> Result<()> {
        let judged = self.shared.journal.pauses(self.number())?.iter().any(|why| why == JUDGED);
        if judged && !self.judged {
            self.test_at = Some(Instant::now());
        }
        if judged && status == 5 {
            self.shared.journal.stands(self.number())?;
        }
        self.judged = judged;
        Ok(())
    }

    /// Updates the journal's jobs to match the contract's state, and returns the open ones.
    async fn reconcile(
        &mut self,
        head: &Head,
        view: &IMuster::NodeView,
        running: Option<&IMuster::TaskView>,
    ) -> Result<Vec<Job>> {
        let (shared, number) = (self.shared.clone(), self.number());
        let journal = &shared.journal;
        // A job that ended here and runs there comes from a node that is behind, and so lacks later changes.
        let mut behind = false;
        if let Some(task) = running {
            let known = journal.job(number, task.id, task.deadline)?;
            // Given up because a node was behind, and running all the same.
            let given_up = |job: &Job| job.is_given_up() && job.stage == Stage::Over;
            let goes_on = matches!(task.status, 4 | 5) || matches!(task.status, 3 | 6) && !late(task, head);
            // Likewise one that is answered, and still to be answered there.
            let answered = matches!(task.status, 3 | 6);
            behind = known.as_ref().is_some_and(|job| match job.stage {
                Stage::Over => !given_up(job),
                stage => stage >= Stage::Committed && answered,
            });
            if known.as_ref().is_none_or(|job| given_up(job) && goes_on) {
                shared.check_created(task.id, task.creator);
                let mut job = Job::new(number, task.id, task.deadline, task.redundancy, task.group);
                if matches!(task.status, 4 | 5) {
                    if self.sought.is_none_or(|(id, at)| id != task.id || at <= Instant::now()) {
                        let begun = Instant::now();
                        self.rescue(&mut job, head, running).await?;
                        // A long search that found nothing leaves the node time for the rest.
                        self.sought = Some((task.id, Instant::now() + begun.elapsed()));
                    }
                } else {
                    say!("{}: task {} taken, until {}", self.name(), task.id, task.deadline);
                    journal.put(&job)?;
                }
                die::at("journalled");
            }
        }
        let mut jobs = journal.open_jobs(number)?;
        let is_running = |job: &Job| running.is_some_and(|task| (task.id, task.deadline) == (job.task, job.deadline));
        for job in jobs.iter_mut().filter(|job| job.stage < Stage::Sent && !is_running(job)) {
            if running.is_some() && !behind {
                self.answers().over(job, "lost")?;
            } else {
                self.answers().gone(job, "lost")?;
            }
            if job.stage == Stage::Over {
                if self.working.as_ref().is_some_and(|(task, deadline, _)| (*task, *deadline) == (job.task, job.deadline)) {
                    self.abandon();
                }
                work::forget(&shared.config.work(&self.ready.settings), job);
            }
        }
        jobs.iter().filter(|job| is_running(job)).for_each(|job| self.answers().seen(job));
        jobs.retain(|job| job.stage != Stage::Over);
        let known = jobs.iter().filter(|job| job.place > 0 && job.stage >= Stage::Committed).count();
        // Once regardless of the chain's count: it omits commitments that cannot be slashed, and a new journal may lack these.
        let (first, due) = (self.searched.is_none(), self.searched.is_none_or(|searched| searched.elapsed() >= SEARCH));
        if first || usize::from(view.openCommitments) > known && due {
            self.searched = Some(Instant::now());
            for (place, group) in shared.chain.groups_of(number).await? {
                let member = group.members.iter().find(|member| member.node == number && member.stage == 3);
                let Some(member) = member.filter(|_| !jobs.iter().any(|job| job.task == group.id)) else { continue };
                let mut job = Job::new(number, group.id, member.moment, group.redundancy, place);
                self.rescue(&mut job, head, running).await?;
            }
            self.searched = Some(Instant::now());
            jobs = journal.open_jobs(number)?;
        }
        Ok(jobs)
    }

    /// Adopts this key's commitment from another machine, or from before the journal was lost.
    async fn rescue(&self, job: &mut Job, head: &Head, running: Option<&IMuster::TaskView>) -> Result<()> {
        // The search can take minutes, and known answers may be due.
        let mut known = self.shared.journal.open_jobs(self.number())?;
        known.retain(Job::owes_reveal);
        self.reveal_all(known, head, running).await;
        let place = job.place;
        match self.shared.chain.committed(&self.answers().secrets, job.task, self.number(), job.deadline).await? {
            Some(committed) => {
                self.answers().adopt(job, committed)?;
                job.place = place;
                self.shared.journal.put(job)
            }
            None => {
                let text = format!("the commitment to task {} is not known here: it cannot be revealed", job.task);
                self.shared.alert(self.name(), "rescue", &text);
                Ok(())
            }
        }
    }

    /// Begins to work on a task, unless it has begun. Reports an error if the self-test failed, because the answers would not be
    /// those that the node's name promises, or if it takes longer than the task may. Only for the node's `own` present task.
    fn begin(&mut self, job: &Job, own: bool) -> Result<()> {
        if self.working.is_some() || !own {
            return Ok(());
        }
        if self.clock.doubted().is_some_and(|shown| shown < job.deadline) {
            self.due = Some(Instant::now() + DOUBT);
            return Ok(());
        }
        let left = job.deadline.saturating_sub(self.clock.now());
        // Long tasks use the configured lead; short ones must keep time to run.
        let lead = match self.lead {
            Some((task, deadline, lead)) if (task, deadline) == (job.task, job.deadline) => lead,
            _ => self.ready.settings.lead.min(left / 10),
        };
        self.lead = Some((job.task, job.deadline, lead));
        let until = Instant::now() + Duration::from_secs(left.saturating_sub(lead));
        self.due = Some(until);
        // A result that is there already needs no executor.
        if !self.tested && job.stage == Stage::Taken && left > lead {
            return Ok(());
        }
        let mut reasons = self.shared.journal.pauses(self.number())?.into_iter();
        let unfit = reasons.find(|why| [SELF_TEST, GPU, DISK, JUDGED].contains(&why.as_str()));
        let idle = match unfit {
            Some(why) => Some(Failure(Fault::Node, work::CODE_NODE, format!("the node is unfit: {why}"))),
            None if left <= lead => Some(work::late("the executor was not ready")),
            None => None,
        };
        let work = Work {
            shared: self.shared.clone(),
            node: self.ready.settings.clone(),
            number: self.number(),
            secrets: self.answers().secrets.clone(),
            private: self.ready.private.clone(),
            executor: self.ready.executor.clone(),
            job: job.clone(),
            idle,
            held: self.held.clone(),
            until,
            last: until + Duration::from_secs(lead) / 2,
        };
        let bell = self.bell.clone();
        let running = tokio::spawn(async move {
            let worked = work.run().await;
            bell.notify_one();
            worked
        });
        self.working = Some((job.task, job.deadline, running));
        Ok(())
    }

    /// Ends the work on a task that is no longer the node's.
    fn abandon(&mut self) {
        if let Some((_, _, running)) = self.working.take() {
            running.abort();
            let executor = self.ready.executor.clone();
            tokio::spawn(async move {
                // Once the work has released it.
                let _ = running.await;
                executor.stop_idle().await;
            });
        }
    }

    /// Handles the result of finished work; returns whether there was any.
    async fn finished(&mut self) -> Result<bool> {
        if !self.working.as_ref().is_some_and(|(_, _, running)| running.is_finished()) {
            return Ok(false);
        }
        let Some((task, _, running)) = self.working.take() else { return Ok(false) };
        let worked = match running.await {
            Ok(worked) => worked?,
            Err(error) => anyhow::bail!("the work on task {task} broke off: {error}"),
        };
        match worked.failed {
            // The next task would fail likewise: the node takes none before its state is known.
            Some((Fault::Time, why)) if self.testing.is_some() => {
                self.answers().begin(SELF_TEST, &format!("task {task} failed during the self-test: {why}"))?;
            }
            // One task cannot show whose fault it is: an input may end the executor of any node. Golden tasks can, and run before the
            // next task. Only they pause a node that has some; otherwise the sender of such inputs could.
            Some((Fault::Node | Fault::Time, why)) => {
                self.failures += 1;
                // A self-test under way answers the same question.
                if self.testing.is_none() {
                    self.test_at = Some(Instant::now());
                }
                let text = format!("task {task} failed ({} in a row): {why}", self.failures);
                if self.failures >= FAILURES_MOST && !self.golden {
                    self.test_at = Some(Instant::now() + self.retest_after());
                    self.answers().begin(FAILURES, &text)?;
                } else {
                    self.shared.alert(self.name(), "failure", &text);
                }
            }
            Some((Fault::Task | Fault::Bound | Fault::World, _)) => {}
            None => self.failures = 0,
        }
        Ok(true)
    }

    fn retest_after(&self) -> Duration {
        Duration::from_secs(self.ready.settings.retest_after)
    }

    /// Begins the self-test when it is due, and handles its result.
    async fn test(&mut self) -> Result<()> {
        let due = self.test_at.is_some_and(|at| at <= Instant::now());
        if self.testing.is_none() && self.working.is_none() && due {
            self.test_at = None;
            let (shared, settings, executor) = (self.shared.clone(), self.ready.settings.clone(), self.ready.executor.clone());
            let bell = self.bell.clone();
            self.testing = Some(tokio::spawn(async move {
                let examined = setup::examine(&shared, &settings, &executor, false).await;
                bell.notify_one();
                examined
            }));
        }
        let Some(testing) = self.testing.take_if(|testing| testing.is_finished()) else { return Ok(()) };
        self.tested = true;
        let (registered, vram) = (&self.ready.registered, self.ready.vram);
        let wrong = match testing.await {
            Ok(Ok(Examined { gpu, name, golden })) => {
                let right = name == *registered && gpu.vram == vram;
                let found = format!("{name:?} with {} GiB", gpu.vram);
                self.gpu = Some(gpu);
                self.golden = golden;
                if right {
                    say!("{}: the self-test passed", self.ready.answers.name);
                    return self.passed();
                }
                format!("the node is registered as {registered:?} with {vram} GiB, and is {found} now")
            }
            Ok(Err(error)) => format!("the self-test failed: {error:#}"),
            Err(error) => format!("the self-test broke off: {error}"),
        };
        self.test_at = Some(Instant::now() + self.retest_after());
        self.ready.answers.begin(SELF_TEST, &wrong)
    }

    /// Ends the reasons to pause that a passed self-test refutes.
    fn passed(&mut self) -> Result<()> {
        let answers = &self.ready.answers;
        answers.end(SELF_TEST)?;
        // Another one is due if something has happened since this one began.
        if self.test_at.is_none() {
            if answers.shared.journal.unpause(answers.number, FAILURES)? {
                say!("{}: the executor starts: it is tried again", answers.name);
                self.failures = 0;
            }
            if self.golden && !answers.shared.journal.slashed(answers.number)? {
                answers.end(JUDGED)?;
            }
        }
        Ok(())
    }

    /// Downloads requested models, and reports those that are there.
    async fn report_models(&mut self, view: &IMuster::NodeView) -> Result<()> {
        let (shared, number) = (self.shared.clone(), self.number());
        let journal = &shared.journal;
        for model in journal.downloads(number, false)?.into_iter().chain(journal.downloads(number, true)?) {
            if view.models.contains(&model) {
                journal.forget_download(number, model)?;
            }
        }
        if self.downloading.as_ref().is_none_or(JoinHandle::is_finished) {
            // A running task has the machine to itself.
            if let Some(model) = journal.downloads(number, false)?.first().copied().filter(|_| self.working.is_none()) {
                let (shared, settings) = (shared.clone(), self.ready.settings.clone());
                self.downloading = Some(tokio::spawn(async move {
                    let within = Duration::from_secs(settings.download_within);
                    if let Err(error) = models::download(&shared, &settings, number, model, within).await {
                        tracing::warn!("{}: {error:#}", settings.name);
                        // Requests are optional; a task that needs the model tries again.
                        let _ = shared.journal.forget_download(number, model);
                    }
                }));
            }
        }
        let gone: Vec<u64> = models::gone(&shared, &view.models)?.into_iter().take(CALL_MODELS).collect();
        if !gone.is_empty() && view.status != 0 && !self.answers().waits_for_one("models").await {
            let call = IMuster::reportRemovedCall { models: gone.clone() };
            match self.answers().call(&format!("models gone {}", stamp()), call.abi_encode()).await? {
                Called::Done(_) => say!("{}: {} models reported as gone", self.name(), gone.len()),
                Called::Refused(refusal) => say!("{}: models not reported as gone: {refusal}", self.name()),
            }
        }
        let there = journal.downloads(number, true)?;
        if there.is_empty() || view.status == 0 || self.answers().waits_for_one("models").await {
            return Ok(());
        }
        let models: Vec<u64> = there.into_iter().take(CALL_MODELS).collect();
        let call = IMuster::reportDownloadedCall { models: models.clone() };
        match self.answers().call(&format!("models {}", stamp()), call.abi_encode()).await? {
            Called::Done(_) => say!("{}: {} models reported", self.name(), models.len()),
            // Then the next look reports them.
            Called::Refused(refusal) if refusal.name() == Some("TooManyModels") && self.make_places(view, &models).await? => {
                return Ok(())
            }
            Called::Refused(refusal) => {
                say!("{}: models not reported: {refusal}", self.name());
                if is_for_now(&refusal) {
                    return Ok(());
                }
            }
        }
        models.iter().try_for_each(|model| journal.forget_download(number, *model))
    }

    /// Takes the node out of the holders of models that it held once, because each keeps a place of its list, and says whether that made
    /// any place for these.
    async fn make_places(&mut self, view: &IMuster::NodeView, wanted: &[u64]) -> Result<bool> {
        let (shared, number, mut made) = (self.shared.clone(), self.number(), 0);
        for model in shared.names.keys().filter(|model| !view.models.contains(model) && !wanted.contains(model)) {
            if made == wanted.len() {
                break;
            }
            let Some(position) = models::entry(&shared, *model, number).await? else { continue };
            let call = IMuster::purgeCall { model: *model, position };
            match self.answers().call(&format!("purge {}", stamp()), call.abi_encode()).await? {
                Called::Done(_) => made += 1,
                Called::Refused(refusal) => say!("{}: {} keeps its place: {refusal}", self.name(), shared.model(*model)),
            }
        }
        if made > 0 {
            say!("{}: {made} places made among its models, by purging those that are gone", self.name());
        }
        Ok(made > 0)
    }

    /// Logs each rest once: the node gets no task meanwhile.
    fn tell_rest(&mut self, view: &IMuster::NodeView, now: u64) {
        let until = view.parkedUntil;
        if view.parked != drive::APART || until <= now || until == self.rests {
            return;
        }
        self.rests = until;
        let why = if view.excluded { "its reliability is too low" } else { "it has reported an error" };
        say!("{}: rests for {} s, until {until}: {why}", self.name(), until - now);
    }

    /// Reports a node that is another key's: it takes no tasks.
    fn tell_apart(&self) {
        let metrics = OfNode(&self.shared.metrics, self.name());
        metrics.set("ready", 0.0);
        metrics.set_all("paused_by_agent", "why", []);
    }

    /// Updates the node's metrics.
    fn tell(&self, view: &IMuster::NodeView, running: Option<&IMuster::TaskView>, jobs: &[Job], ready: bool) -> Result<()> {
        let metrics = OfNode(&self.shared.metrics, self.name());
        metrics.set("ready", f64::from(u8::from(ready && !self.draining)));
        metrics.set("node_status", view.status.into());
        metrics.set("node_excluded", f64::from(u8::from(view.excluded)));
        metrics.set("node_reliability", view.reliability as f64 / 1e18);
        metrics.set("node_stake_wei", view.stake as f64);
        metrics.set("failures_in_a_row", self.failures.into());
        let answering = running.filter(|task| matches!(task.status, 3 | 6)).map_or(0, |task| task.deadline);
        metrics.set("answer_deadline_timestamp_seconds", answering as f64);
        metrics.set("reveals_open", jobs.iter().filter(|job| job.owes_reveal()).count() as f64);
        let stages: BTreeSet<&str> = jobs.iter().map(|job| job.stage.name()).collect();
        let count = |stage: &str| jobs.iter().filter(|job| job.stage.name() == stage).count() as f64;
        metrics.set_all("jobs_open", "stage", stages.into_iter().map(|stage| (stage.to_string(), count(stage))));
        let outcomes = self.shared.journal.outcomes(self.number())?;
        metrics.set("earned_wei", outcomes.iter().map(|(_, _, paid)| *paid).sum::<u128>() as f64);
        metrics.set_all("tasks", "outcome", outcomes.into_iter().map(|(outcome, count, _)| (outcome, count as f64)));
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.abandon();
    }
}
