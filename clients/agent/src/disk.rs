//! Room on the disk. A full one would keep the agent from everything, even from saying so on the chain: a transaction is written
//! before it is sent. So a node is paused in time, and some space is reserved and released when nothing else is left.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::config::Config;

/// Bytes reserved for the journal and the transactions that a node needs to reveal and to pause.
const KEPT: usize = 8 << 20;

/// The free bytes where the agent writes: the least of its home and those of the stores that are directories.
///
/// # Errors
/// If a file system does not say.
pub fn free(config: &Config) -> Result<u64> {
    #[cfg(debug_assertions)]
    if let Some(pretended) = pretended() {
        return Ok(pretended);
    }
    let places = [config.home.clone()].into_iter().chain(config.store.put.iter().filter_map(|store| directory(store)));
    let mut least = u64::MAX;
    for place in places.filter(|place| place.exists()) {
        let said = rustix::fs::statvfs(&place).with_context(|| format!("{} does not say how full it is", place.display()))?;
        least = least.min(said.f_bavail.saturating_mul(said.f_frsize));
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

/// The free space that tests pretend with a file, because others use the disk.
#[cfg(debug_assertions)]
fn pretended() -> Option<u64> {
    fs::read_to_string(std::env::var_os("MUSTER_AGENT_FREE")?).ok()?.trim().parse().ok()
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
    fn stores_that_are_directories_count() {
        assert_eq!(directory("/srv/results"), Some("/srv/results".into()));
        assert_eq!(directory("file:///srv/results"), Some("/srv/results".into()));
        assert_eq!(directory("https://one.example"), None);
    }
}
