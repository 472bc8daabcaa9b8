//! The state of a node's agent in `home` of its configuration: readable when the agent is gone; nothing is changed.

use std::path::{Path, PathBuf};

use alloy::primitives::Address;
use anyhow::{ensure, Context, Result};
use muster_client::pause;
use rusqlite::{Connection, OpenFlags};

/// The most wrong answers that are listed, the newest.
const WRONG: usize = 3;

/// Opens the journal to read. Without a log beside it, it has no writer, and reading creates no files, so a read-only folder or disk
/// works too.
fn open(file: &Path) -> Result<Connection> {
    let log = file.with_file_name("journal.sqlite-wal").exists();
    let path = std::path::absolute(file)?.display().to_string().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let address = format!("file:{path}?mode=ro{}", if log { "" } else { "&immutable=1" });
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(address, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}

/// The path of an answer's result, for any name of the node in the agent.
fn result(state: &Path, name: &str) -> Option<PathBuf> {
    let nodes = std::fs::read_dir(state.join("work")).ok()?.flatten();
    nodes.map(|node| node.path().join("results").join(name)).find(|file| file.is_file())
}

/// The agent's state of a contract's node, in words.
pub fn told(state: &Path, muster: Address, node: u32) -> Result<Vec<String>> {
    let file = state.join("journal.sqlite");
    ensure!(file.exists(), "there is no {}: the folder is `home` of the agent's configuration", file.display());
    read(state, &file, muster, node)
        .with_context(|| format!("{} cannot be read: `muster-agent doctor` looks at it, too", file.display()))
}

fn read(state: &Path, file: &Path, muster: Address, node: u32) -> Result<Vec<String>> {
    let journal = open(file)?;
    let version: u32 = journal.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    ensure!(version == 1, "it is of version {version}, and this command knows 1");
    let whose: String = journal.query_row("SELECT value FROM fact WHERE name = 'contract'", [], |row| row.get(0))?;
    let contract = whose.split(' ').nth(1).unwrap_or_default();
    ensure!(contract.parse() == Ok(muster), "it is of the contract {contract}, not of {muster}");
    let mut lines = Vec::new();
    let mut reasons = journal.prepare("SELECT why FROM pause WHERE node = ? ORDER BY why")?;
    for why in reasons.query_map([node], |row| row.get::<_, String>(0))? {
        let why = why?;
        lines.push(format!("it pauses the node, {why}: {}", pause::explain(&why)));
    }
    let mut wrong =
        journal.prepare("SELECT task, result FROM job WHERE node = ? AND outcome = 'wrong' ORDER BY deadline DESC LIMIT ?")?;
    for row in wrong.query_map((node, WRONG), |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?)))? {
        let (task, name) = row?;
        let kept = name.and_then(|name| result(state, &name)).map(|file| format!(": its result is kept in {}", file.display()));
        lines.push(format!("task {task} was judged wrong{}", kept.unwrap_or_default()));
    }
    let mut open =
        journal.prepare("SELECT task, stage, deadline FROM job WHERE node = ? AND stage <> 'over' ORDER BY deadline")?;
    let rows = open.query_map([node], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?)))?;
    for row in rows {
        let (task, stage, deadline) = row?;
        let owes = match stage.as_str() {
            "committed" | "revealing" => ", and must be revealed: start the agent, here or with a copy of the seed".into(),
            "revealed" => ", and its group is not judged yet".into(),
            _ => format!(", due at {deadline} s since 1970"),
        };
        lines.push(format!("task {task} is {stage}{owes}"));
    }
    if lines.is_empty() {
        lines.push("it has no reason to pause, and nothing is open".into());
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: u32 = 7;

    /// A journal with the agent's own schema.
    fn journal(place: &Path) -> Connection {
        let journal = Connection::open(place.join("journal.sqlite")).unwrap();
        journal.pragma_update(None, "journal_mode", "WAL").unwrap();
        journal.execute_batch(include_str!("../../agent/src/journal.sql")).unwrap();
        let whose = format!("412346 {:#x}", Address::ZERO);
        journal.execute("INSERT INTO fact VALUES ('contract', ?)", [whose]).unwrap();
        journal
    }

    fn job(journal: &Connection, task: i64, stage: &str, result: Option<&str>, outcome: Option<&str>) {
        let row = (NODE, task, 1_790_000_000 + task, stage, [0u8; 32], result, outcome);
        let sql =
            "INSERT INTO job (node, task, deadline, stage, redundancy, place, lot, kind, value, salt, result, outcome, paid)
                   VALUES (?1, ?2, ?3, ?4, 1, 0, 0, 0, ?5, ?5, ?6, ?7, '0')";
        journal.execute(sql, row).unwrap();
    }

    #[test]
    fn what_the_agent_wrote_is_said_while_it_runs_and_when_it_is_gone() {
        let place = tempfile::tempdir().unwrap();
        // Characters with another meaning in a URI.
        let place = place.path().join("state #1?");
        std::fs::create_dir(&place).unwrap();
        let running = journal(&place);
        let said = || told(&place, Address::ZERO, NODE).unwrap();
        assert_eq!(said(), ["it has no reason to pause, and nothing is open"]);
        running.execute("INSERT INTO pause VALUES (?, 'disk'), (?, 'judged'), (8, 'gpu')", [NODE, NODE]).unwrap();
        job(&running, 1, "over", Some("1-5"), Some("wrong"));
        job(&running, 2, "committed", None, None);
        job(&running, 3, "taken", None, None);
        job(&running, 4, "over", None, Some("success"));
        let results = place.join("work/gpu0/results");
        std::fs::create_dir_all(&results).unwrap();
        std::fs::write(results.join("1-5"), "an answer").unwrap();
        let lines = said();
        assert_eq!(lines.len(), 5, "{lines:?}");
        assert!(lines[0].contains("disk: its disk is nearly full") && lines[1].contains("judged: it was judged"), "{lines:?}");
        assert_eq!(lines[2], format!("task 1 was judged wrong: its result is kept in {}", results.join("1-5").display()));
        assert!(lines[3].starts_with("task 2 is committed, and must be revealed"), "{lines:?}");
        assert_eq!(lines[4], "task 3 is taken, due at 1790000003 s since 1970");
        // No process runs any more, and the disk is read-only: it still works.
        drop(running);
        assert!(!place.join("journal.sqlite-wal").exists());
        let before: Vec<_> = std::fs::read_dir(&place).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(said(), lines);
        let after: Vec<_> = std::fs::read_dir(&place).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(before, after, "nothing is written");
    }

    #[test]
    fn what_is_no_journal_of_the_contract_is_named() {
        let place = tempfile::tempdir().unwrap();
        let said = |muster| format!("{:#}", told(place.path(), muster, NODE).unwrap_err());
        assert!(said(Address::ZERO).contains("`home` of the agent's configuration"), "{}", said(Address::ZERO));
        assert!(!place.path().join("journal.sqlite").exists(), "none is made");
        let kept = journal(place.path());
        let other = said(Address::repeat_byte(1));
        assert!(other.contains("it is of the contract 0x0000") && other.contains("not of 0x0101"), "{other}");
        kept.pragma_update(None, "user_version", 2).unwrap();
        assert!(said(Address::ZERO).contains("it is of version 2"), "{}", said(Address::ZERO));
        drop(kept);
        std::fs::write(place.path().join("journal.sqlite"), vec![0xa5; 8_192]).unwrap();
        assert!(said(Address::ZERO).contains("`muster-agent doctor` looks at it"), "{}", said(Address::ZERO));
    }
}
