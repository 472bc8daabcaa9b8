//! Keys: out of an encrypted file (Web3 Secret Storage) or of the environment, never off a command line.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use alloy::primitives::Address;
use alloy::signers::local::{LocalSigner, PrivateKeySigner};
use zeroize::{Zeroize, Zeroizing};

use crate::{file, Error};

/// A password that is forgotten when it is dropped.
pub type Password = Zeroizing<String>;

/// The first line of a file that only its owner can read.
pub fn password_from(path: &Path) -> Result<Password, Error> {
    let failed = |source| Error::File { path: path.into(), source };
    let file = File::open(path).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if file.metadata().map_err(failed)?.is_file() && file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
            return Err(Error::Key(format!("{} can be read by others than its owner: chmod 600 it", path.display())));
        }
    }
    let mut text = Zeroizing::new(String::new());
    file.take(4096).read_to_string(&mut text).map_err(failed)?;
    Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_string()))
}

/// A key out of an encrypted file.
pub fn from_keystore(path: &Path, password: &Password) -> Result<PrivateKeySigner, Error> {
    File::open(path).map_err(|error| Error::Key(format!("{}: {error}", path.display())))?;
    LocalSigner::decrypt_keystore(path, password.as_bytes()).map_err(|_| {
        Error::Key(format!("{} cannot be opened: it is no key file, or the password is not its own", path.display()))
    })
}

/// A key out of an environment variable, in hexadecimal.
pub fn from_environment(variable: &str) -> Result<Option<PrivateKeySigner>, Error> {
    let Ok(mut text) = std::env::var(variable) else { return Ok(None) };
    if text.is_empty() {
        return Ok(None);
    }
    let key = text.trim().parse().map_err(|_| Error::Key(format!("{variable} is no private key: 32 bytes in hexadecimal")));
    text.zeroize();
    key.map(Some)
}

/// Makes a new key and writes it, encrypted, to `name`, which must not be there.
pub fn create(directory: &Path, name: &str, password: &Password) -> Result<(Address, PathBuf), Error> {
    store(directory, name, password, &PrivateKeySigner::random())
}

/// Writes a key, encrypted, to `name`, which must not be there.
pub fn store(directory: &Path, name: &str, password: &Password, key: &PrivateKeySigner) -> Result<(Address, PathBuf), Error> {
    let path = directory.join(name);
    if name.is_empty() || Path::new(name).file_name() != Some(name.as_ref()) {
        return Err(Error::Key(format!("{name:?} is no name of a file")));
    }
    if path.exists() {
        return Err(Error::Key(format!("{} is there already", path.display())));
    }
    file::private_directory(directory)?;
    let failed = |source| Error::File { path: path.clone(), source };
    // Encrypted beside, with nobody's rights but the owner's, then given its name.
    let beside = tempfile::Builder::new().prefix(".new-").tempdir_in(directory).map_err(failed)?;
    let mut secret = key.to_bytes();
    let written = LocalSigner::encrypt_keystore(beside.path(), &mut rand::rngs::OsRng, secret, password.as_bytes(), Some("key"));
    secret.zeroize();
    written.map_err(|error| Error::Key(format!("the key cannot be written: {error}")))?;
    let made = beside.path().join("key");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&made, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    }
    File::open(&made).and_then(|file| file.sync_all()).map_err(failed)?;
    fs::hard_link(&made, &path).map_err(failed)?;
    File::open(directory).and_then(|file| file.sync_all()).map_err(failed)?;
    Ok((key.address(), path))
}

/// The names of the encrypted files of a directory.
pub fn list(directory: &Path) -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::File { path: directory.into(), source }),
    };
    let mut found = Vec::new();
    for entry in entries.flatten().filter(|entry| entry.path().is_file()) {
        let read = file::read::<serde_json::Value>(&entry.path(), 1 << 16);
        if let Ok(Some(value)) = read {
            if value.get("crypto").or_else(|| value.get("Crypto")).is_some() {
                found.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}
