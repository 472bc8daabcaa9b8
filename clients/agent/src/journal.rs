//! The agent's durable state in SQLite: its jobs and their stages, synchronised to the disk before every step that
//! cannot be undone.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy::primitives::{Address, B256};
use anyhow::{ensure, Context, Result};
use muster_client::pause::JUDGED;
use muster_client::{Cursor, Object};
use rusqlite::{params, Connection, OpenFlags, OptionalExtension, Row};

/// A job's stage. Some stages are written before their step, others after it, as each says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The node has the task; it may be running.
    Taken,
    /// It has run: answer, salt and the result's file are settled and stay.
    Ran,
    /// The result is in at least one store.
    Stored,
    /// The answer, or the commitment to it, may have been sent.
    Sent,
    /// The commitment is on the chain.
    Committed,
    /// The reveal may have been sent.
    Revealing,
    /// The answer is revealed on the chain; its group is not judged yet.
    Revealed,
    /// The job has ended.
    Over,
}

const STAGES: [(Stage, &str); 8] = [
    (Stage::Taken, "taken"),
    (Stage::Ran, "ran"),
    (Stage::Stored, "stored"),
    (Stage::Sent, "sent"),
    (Stage::Committed, "committed"),
    (Stage::Revealing, "revealing"),
    (Stage::Revealed, "revealed"),
    (Stage::Over, "over"),
];

impl Stage {
    /// As stored in the database.
    pub fn name(self) -> &'static str {
        STAGES.iter().find(|(stage, _)| *stage == self).map_or("", |(_, name)| name)
    }

    fn of(name: &str) -> Option<Self> {
        STAGES.iter().find(|(_, other)| *other == name).map(|(stage, _)| *stage)
    }
}

/// A node's work on a task. The same task may come to a node again, in another group: the deadline tells them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The node's number.
    pub node: u32,
    /// The task's id.
    pub task: u64,
    /// Seconds since 1970 until which the answer, or the commitment to it, counts.
    pub deadline: u64,
    /// Its stage.
    pub stage: Stage,
    /// The task's policy: 0 for an answer that is not committed to.
    pub redundancy: u8,
    /// The place of its validation group; 0 while none is known.
    pub place: u32,
    /// The block whose hash decides whether it is sampled; 0 if none does.
    pub lot: u64,
    /// Once it has run: 0 for an answer, 1 for an error.
    pub kind: u8,
    /// Once it has run: the answer, or the error's code.
    pub value: B256,
    /// Once it has run, if the answer is committed to.
    pub salt: B256,
    /// The result's file name in the work directory; none for an error.
    pub result: Option<String>,
    /// The outcome in a word, once it has ended or was judged.
    pub outcome: Option<String>,
    /// Wei earned.
    pub paid: u128,
}

impl Job {
    /// Whether its stake may be at risk until its answer is revealed: its commitment may be on the chain already.
    pub fn may_owe_reveal(&self) -> bool {
        self.redundancy > 0 && (Stage::Sent..Stage::Revealed).contains(&self.stage)
    }

    /// A new job.
    pub fn new(node: u32, task: u64, deadline: u64, redundancy: u8, place: u32) -> Self {
        let (value, salt) = (B256::ZERO, B256::ZERO);
        let stage = Stage::Taken;
        Self {
            node,
            task,
            deadline,
            stage,
            redundancy,
            place,
            lot: 0,
            kind: 0,
            value,
            salt,
            result: None,
            outcome: None,
            paid: 0,
        }
    }

    /// A name for one of its transactions, which is sent once under that name.
    pub fn call(&self, what: &str) -> String {
        format!("{what} {} {} {}", self.node, self.task, self.deadline)
    }

    /// Whether its answer is on the chain and not revealed yet.
    pub fn owes_reveal(&self) -> bool {
        matches!(self.stage, Stage::Committed | Stage::Revealing)
    }

    /// Whether it was given up because no node of the chain showed it, and no event has told its outcome since.
    pub fn is_given_up(&self) -> bool {
        matches!(self.outcome.as_deref(), Some("lost" | "overtaken"))
    }

    fn read(row: &Row) -> rusqlite::Result<Self> {
        let stage: String = row.get("stage")?;
        let paid: String = row.get("paid")?;
        let word = |name: &str| row.get::<_, [u8; 32]>(name).map(B256::from);
        Ok(Self {
            node: row.get("node")?,
            task: row.get::<_, i64>("task")? as u64,
            deadline: row.get::<_, i64>("deadline")? as u64,
            stage: Stage::of(&stage).ok_or(rusqlite::Error::InvalidQuery)?,
            redundancy: row.get("redundancy")?,
            place: row.get("place")?,
            lot: row.get::<_, i64>("lot")? as u64,
            kind: row.get("kind")?,
            value: word("value")?,
            salt: word("salt")?,
            result: row.get("result")?,
            outcome: row.get("outcome")?,
            paid: paid.parse().map_err(|_| rusqlite::Error::InvalidQuery)?,
        })
    }
}

const SCHEMA: &str = include_str!("journal.sql");
/// The version of that schema, its `user_version`.
const VERSION: u32 = 1;

/// The ended jobs that are kept for each node.
const KEPT: u32 = 10_000;

/// Creates a database readable by its owner alone, wherever it lies: it contains salts before they are revealed. SQLite gives
/// the files beside it the same permissions.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?;
    #[cfg(unix)]
    for suffix in ["", "-wal", "-shm"] {
        let file = path.with_file_name(format!("{}{suffix}", path.file_name().unwrap_or_default().display()));
        match fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The database.
pub struct Journal {
    db: Mutex<Connection>,
    /// The reason for a new database in place of an old one, and the old one's path.
    pub aside: Option<String>,
}

/// The database's file in a directory.
fn path(place: &Path) -> PathBuf {
    place.join("journal.sqlite")
}

/// Damage inside a database, if any.
fn damage(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let said: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((said != "ok").then_some(said))
}

/// The version of a database's schema, if it is newer than this agent.
fn newer(connection: &Connection) -> rusqlite::Result<Option<u32>> {
    let version: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok((version > VERSION).then_some(version))
}

/// A reason why an agent cannot use a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It is damaged, as this says.
    Damaged(String),
    /// A newer agent has written it, in this version.
    Newer(u32),
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damaged(said) => write!(f, "is damaged: {said}"),
            Self::Newer(version) => write!(f, "is a newer agent's: its version is {version}, and this agent knows {VERSION}"),
        }
    }
}

/// Whether an error means that the file is damaged, not that the disk is full or the file unreadable.
fn is_damage(error: &anyhow::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    error
        .downcast_ref::<rusqlite::Error>()
        .and_then(rusqlite::Error::sqlite_error_code)
        .is_some_and(|code| matches!(code, DatabaseCorrupt | NotADatabase))
}

/// Checks the database in a directory, if there is one, and returns its flaw; writes nothing.
pub fn look(place: &Path) -> Result<Option<Flaw>> {
    let path = path(place);
    if !path.exists() {
        return Ok(None);
    }
    let look = || -> Result<Option<Flaw>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags)?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        let damaged = damage(&connection)?.map(Flaw::Damaged);
        Ok(match damaged {
            None => newer(&connection)?.map(Flaw::Newer),
            damaged => damaged,
        })
    };
    match look() {
        Err(error) if is_damage(&error) => Ok(Some(Flaw::Damaged(error.to_string()))),
        looked => looked.with_context(|| path.display().to_string()),
    }
}

/// Renames a database, with the files beside it.
fn set_aside(path: &Path, name: &str) -> Result<PathBuf> {
    let file = path.file_name().unwrap_or_default().display().to_string();
    let target = path.with_file_name(format!("{file}.{name}"));
    // The database itself last: as long as it is there, it is found damaged again.
    for suffix in ["-wal", "-shm", ""] {
        match fs::rename(path.with_file_name(format!("{file}{suffix}")), target.with_file_name(format!("{file}.{name}{suffix}")))
        {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).context(target.display().to_string())
            }
            _ => {}
        }
    }
    Ok(target)
}

impl Journal {
    /// Opens the database in a directory, for one contract on one chain, and refuses that of another. Sets aside one that is damaged, or a
    /// newer agent's, or of a chain that began anew, as its first block shows: the chain then has the open jobs, and the key opens their
    /// commitments.
    pub fn open(place: &Path, chain: u64, contract: Address, genesis: Option<B256>) -> Result<Self> {
        let path = path(place);
        let open = || -> Result<Self> {
            make_private(&path)?;
            let connection = Connection::open(&path)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            // Every transaction is on the disk when it ends.
            connection.pragma_update(None, "synchronous", "FULL")?;
            connection.busy_timeout(std::time::Duration::from_secs(5))?;
            if let Some(said) = damage(&connection)? {
                let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
                return Err(rusqlite::Error::SqliteFailure(code, Some(said)).into());
            }
            connection.execute_batch(SCHEMA)?;
            Ok(Self { db: Mutex::new(connection), aside: None })
        };
        let stamp = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
        // Not refused: who goes back to an older agent must still reveal.
        let newer = match look(place) {
            Ok(Some(flaw @ Flaw::Newer(_))) => Some((flaw, set_aside(&path, &format!("newer-{stamp}"))?)),
            _ => None,
        };
        let mut journal = match open() {
            Err(error) if is_damage(&error) => {
                let kept = set_aside(&path, &format!("damaged-{stamp}"))?;
                let aside = format!(
                    "the journal was damaged ({error:#}) and lies in {} now: open jobs are resumed from the chain",
                    kept.display()
                );
                Self { aside: Some(aside), ..open().with_context(|| path.display().to_string())? }
            }
            opened => opened.with_context(|| path.display().to_string())?,
        };
        if let Some((flaw, kept)) = newer {
            let aside = format!("the journal {flaw}; it lies in {} now: open jobs are resumed from the chain", kept.display());
            journal.aside = Some(aside);
        }
        let whose = format!("{chain} {contract:#x}");
        let known = journal.fact("contract")?;
        ensure!(known.as_ref().is_none_or(|known| *known == whose), "{} is another contract's: {known:?}", path.display());
        if let Some(genesis) = genesis.map(|genesis| genesis.to_string()) {
            if journal.fact("genesis")?.is_some_and(|known| known != genesis) {
                drop(journal);
                let kept = set_aside(&path, &format!("of-another-chain-{stamp}"))?;
                let aside = format!(
                    "the journal is of another chain {chain}, which began anew since, and lies in {} now",
                    kept.display()
                );
                journal = Self { aside: Some(aside), ..open().with_context(|| path.display().to_string())? };
            }
            journal.set_fact("genesis", &genesis)?;
        }
        journal.set_fact("contract", &whose)?;
        Ok(journal)
    }

    fn db(&self) -> MutexGuard<'_, Connection> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the stores have a result, and for how many days from `now` on they must keep it; without days, for ever.
    pub fn keep(&self, object: Object, days: f64, now: u64) -> Result<()> {
        if days > 0.0 {
            let seconds = (days * 86_400.0) as i64;
            self.db().execute(
                "INSERT INTO kept VALUES (?, ?, ? + ?) ON CONFLICT DO UPDATE SET until = excluded.until",
                params![object.name(), matches!(object, Object::Sealed(_)), now as i64, seconds],
            )?;
        }
        Ok(())
    }

    /// Results whose days are over `now`.
    pub fn outdated(&self, now: u64) -> Result<Vec<Object>> {
        let db = self.db();
        let mut query = db.prepare("SELECT name, sealed FROM kept WHERE until <= ?")?;
        let rows = query.query_map([now as i64], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?)))?;
        let mut objects = Vec::new();
        for row in rows {
            let (name, sealed) = row?;
            let name = name.parse().with_context(|| format!("{name} is no object's name"))?;
            objects.push(if sealed { Object::Sealed(name) } else { Object::Plain(name) });
        }
        Ok(objects)
    }

    /// Forgets a result.
    pub fn removed(&self, object: Object) -> Result<()> {
        self.db().execute("DELETE FROM kept WHERE name = ?", [object.name()])?;
        Ok(())
    }

    /// The value stored under a name.
    pub fn fact(&self, name: &str) -> Result<Option<String>> {
        let found = self.db().query_row("SELECT value FROM fact WHERE name = ?", [name], |row| row.get(0));
        Ok(found.optional()?)
    }

    /// Stores a value under a name.
    pub fn set_fact(&self, name: &str, value: &str) -> Result<()> {
        self.db().execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", [name, value])?;
        Ok(())
    }

    /// Writes a job's present state; when this returns, it is on the disk.
    pub fn put(&self, job: &Job) -> Result<()> {
        self.db().execute(
            "INSERT INTO job (node, task, deadline, stage, redundancy, place, lot, kind, value, salt, result, outcome, paid)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
             ON CONFLICT (node, task, deadline) DO UPDATE SET stage = ?4, redundancy = ?5,
             place = CASE ?6 WHEN 0 THEN place ELSE ?6 END, lot = ?7, kind = ?8, value = ?9, salt = ?10, result = ?11,
             outcome = coalesce(outcome, ?12),
             changed = unixepoch()",
            params![
                job.node,
                job.task as i64,
                job.deadline as i64,
                job.stage.name(),
                job.redundancy,
                job.place,
                job.lot as i64,
                job.kind,
                job.value.0,
                job.salt.0,
                job.result,
                job.outcome,
                job.paid.to_string(),
            ],
        )?;
        Ok(())
    }

    /// The job with these identifiers.
    pub fn job(&self, node: u32, task: u64, deadline: u64) -> Result<Option<Job>> {
        let found = self.db().query_row(
            "SELECT * FROM job WHERE node = ? AND task = ? AND deadline = ?",
            params![node, task as i64, deadline as i64],
            Job::read,
        );
        Ok(found.optional()?)
    }

    /// A node's newest job for a task.
    pub fn latest(&self, node: u32, task: u64) -> Result<Option<Job>> {
        let found = self.db().query_row(
            "SELECT * FROM job WHERE node = ? AND task = ? ORDER BY deadline DESC LIMIT 1",
            params![node, task as i64],
            Job::read,
        );
        Ok(found.optional()?)
    }

    /// A node's jobs that have not ended, the oldest first.
    pub fn open_jobs(&self, node: u32) -> Result<Vec<Job>> {
        let db = self.db();
        let mut query = db.prepare_cached("SELECT * FROM job WHERE node = ? AND stage <> 'over' ORDER BY deadline")?;
        let jobs = query.query_map([node], Job::read)?;
        Ok(jobs.collect::<Result<_, _>>()?)
    }

    /// The number of a node's jobs by outcome, and the wei earned with each.
    pub fn outcomes(&self, node: u32) -> Result<Vec<(String, u64, u128)>> {
        let db = self.db();
        let mut query = db.prepare_cached("SELECT outcome, paid FROM job WHERE node = ? AND outcome IS NOT NULL")?;
        let rows = query.query_map([node], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        let mut sums = std::collections::BTreeMap::<String, (u64, u128)>::new();
        for row in rows {
            let (outcome, paid) = row?;
            let sum = sums.entry(outcome).or_default();
            *sum = (sum.0 + 1, sum.1 + paid.parse::<u128>().unwrap_or_default());
        }
        Ok(sums.into_iter().map(|(outcome, (count, paid))| (outcome, count, paid)).collect())
    }

    /// Forgets the oldest of a node's ended jobs.
    pub fn trim(&self, node: u32) -> Result<()> {
        self.db().execute(
            "DELETE FROM job WHERE node = ?1 AND stage = 'over' AND deadline <
             (SELECT deadline FROM job WHERE node = ?1 AND stage = 'over' ORDER BY deadline DESC LIMIT 1 OFFSET ?2)",
            params![node, KEPT - 1],
        )?;
        Ok(())
    }

    /// The agent's reasons for a node's pause.
    pub fn pauses(&self, node: u32) -> Result<Vec<String>> {
        let db = self.db();
        let mut query = db.prepare_cached("SELECT why FROM pause WHERE node = ? ORDER BY why")?;
        let reasons = query.query_map([node], |row| row.get(0))?;
        Ok(reasons.collect::<Result<_, _>>()?)
    }

    /// Adds a reason to pause a node; returns whether it is new.
    pub fn pause(&self, node: u32, why: &str) -> Result<bool> {
        Ok(self.db().execute("INSERT OR IGNORE INTO pause VALUES (?, ?)", params![node, why])? > 0)
    }

    /// Removes a reason; returns whether it was there.
    pub fn unpause(&self, node: u32, why: &str) -> Result<bool> {
        Ok(self.db().execute("DELETE FROM pause WHERE node = ? AND why = ?", params![node, why])? > 0)
    }

    /// Whether a node was slashed for an answer, and its operator has not resumed it since.
    pub fn slashed(&self, node: u32) -> Result<bool> {
        Ok(self.fact(&slashed(node))?.is_some())
    }

    /// Notes that a node was slashed, according to the chain.
    pub fn set_slashed(&self, node: u32) -> Result<()> {
        self.set_fact(&slashed(node), "some task")
    }

    /// Notes that a judged node is paused: from now on, its operator resumes it, if anybody does.
    pub fn stands(&self, node: u32) -> Result<()> {
        self.set_fact(&stands(node), "yes")
    }

    /// A node's models that must be downloaded, or, if `done`, that are downloaded and not reported yet.
    pub fn downloads(&self, node: u32, done: bool) -> Result<Vec<u64>> {
        let db = self.db();
        let mut query = db.prepare_cached("SELECT model FROM download WHERE node = ? AND done = ?")?;
        let models = query.query_map(params![node, done], |row| row.get::<_, i64>(0).map(|id| id as u64))?;
        Ok(models.collect::<Result<_, _>>()?)
    }

    /// Notes that a model is there and must be reported.
    pub fn downloaded(&self, node: u32, model: u64) -> Result<()> {
        self.db().execute("INSERT OR REPLACE INTO download VALUES (?, ?, 1)", params![node, model as i64])?;
        Ok(())
    }

    /// Forgets a model's download.
    pub fn forget_download(&self, node: u32, model: u64) -> Result<()> {
        self.db().execute("DELETE FROM download WHERE node = ? AND model = ?", params![node, model as i64])?;
        Ok(())
    }

    /// The cursor of the events.
    pub fn cursor(&self) -> Result<Option<Cursor>> {
        self.fact("cursor")?.map(|text| serde_json::from_str(&text).context("the journal's cursor")).transpose()
    }

    /// Writes news of events and their cursor in one transaction.
    pub fn learn(&self, cursor: &Cursor, news: &[News]) -> Result<()> {
        let mut db = self.db();
        let all = db.transaction()?;
        for one in news {
            match one {
                News::Group { node, task, place } => all.execute(
                    "UPDATE job SET place = ?3 WHERE node = ?1 AND task = ?2 AND place = 0 AND stage IN ('sent', 'committed')",
                    params![node, *task as i64, place],
                )?,
                News::Outcome { node, task, outcome, paid } => all.execute(
                    "UPDATE job SET outcome = ?3, paid = ?4 WHERE node = ?1 AND task = ?2 AND deadline =
                     (SELECT max(deadline) FROM job WHERE node = ?1 AND task = ?2)",
                    params![node, *task as i64, outcome, paid.to_string()],
                )?,
                News::Download { node, model } => {
                    all.execute("INSERT OR IGNORE INTO download VALUES (?, ?, 0)", params![node, *model as i64])?
                }
                News::Judged { node } => all.execute("INSERT OR IGNORE INTO pause VALUES (?, ?)", params![node, JUDGED])?,
                News::Slashed { node, task } => {
                    all.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", params![slashed(*node), task.to_string()])?
                }
                // The agent resumes nothing while it has a reason to pause. So this was its operator, with knowledge of the reason.
                News::Resumed { node } => {
                    if all.execute("DELETE FROM fact WHERE name = ?", [stands(*node)])? > 0 {
                        all.execute("DELETE FROM pause WHERE node = ? AND why = ?", params![node, JUDGED])?;
                        all.execute("DELETE FROM fact WHERE name = ?", [slashed(*node)])?;
                    }
                    0
                }
            };
        }
        let text = serde_json::to_string(cursor)?;
        all.execute("INSERT OR REPLACE INTO fact VALUES ('cursor', ?)", [text])?;
        Ok(all.commit()?)
    }
}

/// The name of the fact that a node was slashed for a task.
fn slashed(node: u32) -> String {
    format!("slashed {node}")
}

/// The name of the fact that a judged node was seen paused.
fn stands(node: u32) -> String {
    format!("stands {node}")
}

/// News of a node from events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It is in a validation group.
    Group { node: u32, task: u64, place: u32 },
    /// A task's outcome for it, and wei earned.
    Outcome { node: u32, task: u64, outcome: String, paid: u128 },
    /// It is asked to download a model.
    Download { node: u32, model: u64 },
    /// A group has judged its answer wrong, or it withheld the answer.
    Judged { node: u32 },
    /// It was slashed for that.
    Slashed { node: u32, task: u64 },
    /// It takes tasks again.
    Resumed { node: u32 },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_there_when_it_is_opened_again() {
        let place = tempfile::tempdir().unwrap();
        let contract = Address::repeat_byte(7);
        let mut job = Job::new(3, u64::MAX - 1, 99, 1, 0);
        {
            let journal = Journal::open(place.path(), 1, contract, None).unwrap();
            journal.put(&job).unwrap();
            job.stage = Stage::Committed;
            (job.value, job.salt, job.result) = (B256::repeat_byte(1), B256::repeat_byte(2), Some("17".into()));
            journal.put(&job).unwrap();
            journal.pause(3, "gpu").unwrap();
            assert!(!journal.pause(3, "gpu").unwrap());
        }
        let journal = Journal::open(place.path(), 1, contract, None).unwrap();
        assert_eq!(journal.open_jobs(3).unwrap(), [job.clone()]);
        assert_eq!(journal.job(3, job.task, 99).unwrap(), Some(job.clone()));
        assert_eq!(journal.pauses(3).unwrap(), ["gpu"]);
        assert!(Journal::open(place.path(), 2, contract, None).is_err());
        // Events add their news, together with the cursor.
        let cursor = Cursor::new(1, contract, 5);
        let outcome = News::Outcome { node: 3, task: job.task, outcome: "right".into(), paid: 12 };
        journal.learn(&cursor, &[News::Group { node: 3, task: job.task, place: 4 }, outcome]).unwrap();
        assert_eq!(journal.cursor().unwrap(), Some(cursor));
        let learnt = journal.job(3, job.task, 99).unwrap().unwrap();
        assert_eq!((learnt.place, learnt.paid, learnt.outcome.as_deref()), (4, 12, Some("right")));
        assert_eq!(journal.outcomes(3).unwrap(), [("right".to_string(), 1, 12)]);
        job.stage = Stage::Over;
        journal.put(&job).unwrap();
        assert!(journal.open_jobs(3).unwrap().is_empty());
        assert_eq!(journal.outcomes(3).unwrap().len(), 1, "an outcome that is known stays");
    }

    #[test]
    fn a_result_is_kept_as_long_as_it_is_to_be_and_is_removed_once() {
        let place = tempfile::tempdir().unwrap();
        let journal = Journal::open(place.path(), 1, Address::ZERO, None).unwrap();
        let plain = |byte| Object::Plain(B256::repeat_byte(byte));
        let (over, week, for_good) = (Object::Sealed(B256::repeat_byte(1)), plain(2), plain(3));
        journal.keep(over, 1.0, 0).unwrap();
        journal.keep(week, 7.0, 0).unwrap();
        journal.keep(for_good, 0.0, 0).unwrap();
        let after = |days: u64| journal.outdated(days * 86_400).unwrap();
        assert_eq!((after(0), after(1)), (vec![], vec![over]));
        journal.removed(over).unwrap();
        assert_eq!((after(1), after(7)), (vec![], vec![week]));
        // A result stored again is kept anew.
        journal.keep(week, 7.0, 86_400).unwrap();
        assert_eq!((after(7), after(8)), (vec![], vec![week]));
    }

    #[test]
    fn one_that_is_damaged_or_of_another_chain_is_set_aside() {
        let place = tempfile::tempdir().unwrap();
        let open = |genesis: u8| Journal::open(place.path(), 1, Address::ZERO, Some(B256::repeat_byte(genesis))).unwrap();
        let job = Job::new(1, 2, 3, 0, 0);
        {
            let journal = open(7);
            assert_eq!(journal.aside, None);
            (0..2_000).for_each(|task| journal.put(&Job { task, ..job.clone() }).unwrap());
        }
        assert_eq!(look(place.path()).unwrap(), None);
        assert_eq!(open(7).open_jobs(1).unwrap().len(), 2_000);
        // The chain began anew.
        let journal = open(8);
        assert!(journal.aside.as_ref().is_some_and(|why| why.contains("of another chain")), "{:?}", journal.aside);
        assert!(journal.open_jobs(1).unwrap().is_empty());
        (0..2_000).for_each(|task| journal.put(&Job { task, ..job.clone() }).unwrap());
        drop(journal);
        // First its inner pages, then its head.
        for damaged in [8_192..60_000, 0..100] {
            let file = path(place.path());
            let mut bytes = fs::read(&file).unwrap();
            assert!(bytes.len() > damaged.end, "{}", bytes.len());
            bytes[damaged].fill(0xa5);
            fs::write(&file, bytes).unwrap();
            assert!(look(place.path()).unwrap().is_some());
            let journal = open(8);
            assert!(journal.aside.as_ref().is_some_and(|why| why.contains("damaged")), "{:?}", journal.aside);
            assert!(journal.open_jobs(1).unwrap().is_empty());
            (0..2_000).for_each(|task| journal.put(&Job { task, ..job.clone() }).unwrap());
        }
        let kept =
            fs::read_dir(place.path()).unwrap().flatten().filter(|file| file.file_name().to_string_lossy().contains("sqlite."));
        assert_eq!(kept.count(), 3);
        // An unreadable database is left alone.
        drop(open(8));
        let other = tempfile::tempdir().unwrap();
        fs::create_dir(path(other.path())).unwrap();
        assert!(Journal::open(other.path(), 1, Address::ZERO, None).is_err() && path(other.path()).is_dir());
    }

    #[test]
    fn one_of_a_newer_agent_is_set_aside_and_one_of_an_older_agent_goes_on() {
        let place = tempfile::tempdir().unwrap();
        let open = || Journal::open(place.path(), 1, Address::ZERO, None).unwrap();
        let job = Job { stage: Stage::Committed, ..Job::new(1, 2, 3, 1, 0) };
        // The first agents kept no list of results.
        let journal = open();
        journal.put(&job).unwrap();
        journal.db().execute_batch("DROP TABLE kept").unwrap();
        drop(journal);
        assert_eq!(look(place.path()).unwrap(), None);
        let journal = open();
        assert_eq!((&journal.aside, journal.open_jobs(1).unwrap()), (&None, vec![job.clone()]));
        journal.keep(Object::Plain(B256::ZERO), 1.0, 0).unwrap();
        // One with a stage that this agent does not know.
        let change = "ALTER TABLE pause ADD COLUMN since INTEGER; UPDATE job SET stage = 'doubted'; PRAGMA user_version = 2";
        journal.db().execute_batch(change).unwrap();
        drop(journal);
        assert_eq!(look(place.path()).unwrap(), Some(Flaw::Newer(2)));
        let journal = open();
        assert!(journal.aside.as_ref().is_some_and(|why| why.contains("its version is 2")), "{:?}", journal.aside);
        assert!(journal.open_jobs(1).unwrap().is_empty() && journal.pause(1, "gpu").unwrap());
        drop(journal);
        let names = fs::read_dir(place.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.filter(|name| name.starts_with("journal.sqlite.newer-")).count(), 1);
        assert_eq!((look(place.path()).unwrap(), open().aside), (None, None));
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_reads_it_whatever_the_directory_lets() {
        use std::os::unix::fs::PermissionsExt;

        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let modes = || -> Vec<(String, u32)> {
            let mode = |entry: fs::DirEntry| entry.metadata().unwrap().permissions().mode() & 0o777;
            let files = fs::read_dir(place.path()).unwrap().map(Result::unwrap);
            let mut files: Vec<_> = files.map(|entry| (entry.file_name().into_string().unwrap(), mode(entry))).collect();
            files.sort();
            files
        };
        let private = ["journal.sqlite", "journal.sqlite-shm", "journal.sqlite-wal"].map(|name| (name.to_string(), 0o600));
        let journal = Journal::open(place.path(), 1, Address::ZERO, None).unwrap();
        journal.put(&Job::new(1, 1, 1, 1, 0)).unwrap();
        assert_eq!(modes(), private);
        // Left by an agent that was less careful, and was killed.
        for (name, _) in &private {
            fs::set_permissions(place.path().join(name), PermissionsExt::from_mode(0o644)).unwrap();
        }
        let again = Journal::open(place.path(), 1, Address::ZERO, None).unwrap();
        assert_eq!(modes(), private);
        drop((journal, again));
    }

    #[test]
    fn the_jobs_that_are_kept_are_bounded() {
        let place = tempfile::tempdir().unwrap();
        let journal = Journal::open(place.path(), 1, Address::ZERO, None).unwrap();
        journal.db().execute_batch("PRAGMA synchronous = OFF").unwrap();
        for task in 0..u64::from(KEPT) + 5 {
            journal.put(&Job { stage: Stage::Over, ..Job::new(1, task, task, 0, 0) }).unwrap();
        }
        journal.put(&Job::new(1, 0, 1, 0, 0)).unwrap();
        journal.trim(1).unwrap();
        let count: u32 = journal.db().query_row("SELECT count(*) FROM job", [], |row| row.get(0)).unwrap();
        assert_eq!(count, KEPT + 1);
        assert_eq!(journal.open_jobs(1).unwrap().len(), 1);
    }
}
