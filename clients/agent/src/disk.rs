//! Room on the disk, for bytes and for files. A full one would keep the agent from everything, even from saying so on the chain: a transaction is written
//! before it is sent. So a node is paused in time, and some space is reserved and released when nothing else is left.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::config::Config;

/// Bytes reserved for the journal and the transactions that a node needs to reveal and to pause.
const KEPT: usize = 8 << 20;

/// Files that must be possible beside those that are there: each transaction and each result is one.
const FILES: u64 = 1_000;

/// The room where the agent writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Free bytes.
    pub bytes: u64,
    /// Files that can still be made; a file system may have no more although it has bytes.
    pub files: u64,
}

impl Room {
    /// Too little, in words.
    pub fn lacks(self, least: u64) -> Option<String> {
        if self.bytes < least {
            return Some(format!("{} MiB are free on the disk, and {} MiB must be", self.bytes >> 20, least >> 20));
        }
        let Self { files, .. } = self;
        (files < FILES).then(|| format!("the disk has room for {files} more files (`df -i`), and must have it for {FILES}"))
    }

    /// Enough, with a margin against flapping.
    pub fn suffices(self, least: u64) -> bool {
        self.bytes >= least.saturating_add(least / 4) && self.files >= FILES + FILES / 4
    }
}

/// The room where the agent writes: the least of its home and of the stores that are directories.
///
/// # Errors
/// If a file system does not say.
pub fn room(config: &Config) -> Result<Room> {
    #[cfg(debug_assertions)]
    if let Some(pretended) = pretended() {
        return Ok(pretended);
    }
    let places = [config.home.clone()].into_iter().chain(config.store.put.iter().filter_map(|store| directory(store)));
    let mut least = Room { bytes: u64::MAX, files: u64::MAX };
    for place in places.filter(|place| place.exists()) {
        let said = rustix::fs::statvfs(&place).with_context(|| format!("{} does not say how full it is", place.display()))?;
        least.bytes = least.bytes.min(said.f_bavail.saturating_mul(said.f_frsize));
        // Some file systems have no limit, and say that they have no files at all.
        if said.f_files > 0 {
            least.files = least.files.min(said.f_favail);
        }
    }
    Ok(least)
}

/// A store's directory, if it is one.
pub fn directory(store: &str) -> Option<PathBuf> {
    match store.split_once("://") {
        None => Some(store.into()),
        Some(("file", path)) => Some(path.into()),
        Some(_) => None,
    }
}

/// The room that tests pretend with a file, because others use the disk: bytes, then files if they are limited.
#[cfg(debug_assertions)]
fn pretended() -> Option<Room> {
    let place = std::env::var_os("MUSTER_AGENT_FREE")?;
    // A writer empties the file first: the machine's own room must not count meanwhile.
    let text = (0..1_000).find_map(|_| match fs::read_to_string(&place) {
        Ok(text) if text.is_empty() => {
            std::thread::sleep(std::time::Duration::from_millis(1));
            None
        }
        said => Some(said),
    });
    let text = text?.ok()?;
    let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
    Some(Room { bytes: numbers.next()??, files: numbers.next().unwrap_or(Some(u64::MAX))? })
}

fn kept(home: &Path) -> PathBuf {
    home.join("room")
}

/// Reserves space where there is enough, and releases it where there is none, so that the journal can still be written.
pub fn keep_some(home: &Path, free: u64, least: u64) {
    let place = kept(home);
    if free < KEPT as u64 {
        // Gone already is as good.
        let _ = fs::remove_file(place);
    } else if free >= least && fs::metadata(&place).map_or(0, |file| file.len()) < KEPT as u64 {
        // A failure is tried again later.
        let _ = File::create(place).and_then(|mut file| file.write_all(&vec![0x5a; KEPT]).and_then(|()| file.sync_all()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_room_is_kept_and_given_up_when_there_is_none() {
        let home = tempfile::tempdir().unwrap();
        let length = || fs::metadata(kept(home.path())).map(|file| file.len()).ok();
        keep_some(home.path(), 5 << 30, 1 << 30);
        assert_eq!(length(), Some(KEPT as u64));
        // Little, but some.
        keep_some(home.path(), 100 << 20, 1 << 30);
        assert_eq!(length(), Some(KEPT as u64));
        keep_some(home.path(), 100, 1 << 30);
        assert_eq!(length(), None);
        keep_some(home.path(), 100 << 20, 1 << 30);
        assert_eq!(length(), None, "not before there is enough");
    }

    #[test]
    fn both_bytes_and_files_can_be_too_few() {
        let room = |bytes, files| Room { bytes, files };
        assert_eq!(room(100 << 20, u64::MAX).lacks(100 << 20), None);
        assert_eq!(room((100 << 20) - 1, u64::MAX).lacks(100 << 20).unwrap(), "99 MiB are free on the disk, and 100 MiB must be");
        assert!(room(100 << 20, FILES - 1).lacks(100 << 20).unwrap().contains("room for 999 more files"));
        assert!(!room(1_000, FILES).suffices(800), "flaps");
        assert!(!room(999, FILES * 2).suffices(800), "flaps");
        assert!(room(1_000, FILES * 5 / 4).suffices(800));
    }

    #[test]
    fn stores_that_are_directories_count() {
        assert_eq!(directory("/srv/results"), Some("/srv/results".into()));
        assert_eq!(directory("file:///srv/results"), Some("/srv/results".into()));
        assert_eq!(directory("https://one.example"), None);
    }
}
