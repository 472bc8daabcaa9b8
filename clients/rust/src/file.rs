//! Files that are whole or not there: written beside, synchronised, and renamed.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

use serde::{de::DeserializeOwned, Serialize};

use crate::Error;

fn failed(path: &Path, source: impl Into<std::io::Error>) -> Error {
    Error::File { path: path.into(), source: source.into() }
}

/// Makes a directory and those above it, readable by its owner alone.
///
/// # Errors
/// [`Error::File`] if it cannot be made.
pub fn private_directory(path: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| failed(path, error))
}

/// Writes a file so that a crash at any moment leaves the old one or the new one, and returns when it is on the disk. Only its owner
/// can read it, unless it is `open`: then the process's umask decides.
pub(crate) fn replace(path: &Path, bytes: &[u8], open: bool) -> std::io::Result<()> {
    let place = path.parent().expect("files lie in a directory");
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    if open {
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    #[cfg(not(unix))]
    let _ = open;
    let mut file = builder.prefix(".new-").tempfile_in(place)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // The name is on the disk only once the directory is.
    File::open(place)?.sync_all()
}

/// Writes a value as JSON, as [`replace`] does.
pub(crate) fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let text = serde_json::to_vec(value).map_err(|error| failed(path, error))?;
    replace(path, &text, false).map_err(|error| failed(path, error))
}

/// Reads a file of at most `most` bytes; none if there is none.
pub(crate) fn read<T: DeserializeOwned>(path: &Path, most: u64) -> Result<Option<T>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, error)),
    };
    let mut text = Vec::new();
    file.take(most + 1).read_to_end(&mut text).map_err(|error| failed(path, error))?;
    if text.len() as u64 > most {
        return Err(failed(path, std::io::Error::other(format!("longer than {most} bytes"))));
    }
    serde_json::from_slice(&text).map(Some).map_err(|error| failed(path, error))
}

/// Removes a file.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(|error| failed(path, error))
}

/// A directory that one process uses at a time, until this is dropped or the process ends in any way.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the directory, creates it if necessary, and removes half-written files of a crash.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process has it, [`Error::File`] if it cannot be used.
    pub fn take(place: &Path) -> Result<Self, Error> {
        private_directory(place)?;
        let path = place.join("lock");
        let file = File::options().create(true).append(true).open(&path).map_err(|error| failed(&path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { path: place.into() }),
            Err(TryLockError::Error(error)) => return Err(failed(&path, error)),
        }
        for entry in fs::read_dir(place).map_err(|error| failed(place, error))? {
            let entry = entry.map_err(|error| failed(place, error))?;
            if entry.file_name().to_string_lossy().starts_with(".new-") {
                remove(&entry.path())?;
            }
        }
        Ok(Self { _file: file })
    }

    /// Whether a process has the directory; creates nothing.
    #[must_use]
    pub fn is_taken(place: &Path) -> bool {
        File::open(place.join("lock")).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }
}
