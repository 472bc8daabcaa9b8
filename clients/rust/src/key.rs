//! Keys: from an encrypted file (Web3 Secret Storage) or the environment, never from a command line.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use aes::cipher::{KeyIvInit, StreamCipher};
use alloy::hex;
use alloy::primitives::{keccak256, Address};
use alloy::signers::local::{LocalSigner, PrivateKeySigner};
use rand::rngs::OsRng;
use rand::RngCore;
use serde_json::json;
use zeroize::{Zeroize, Zeroizing};

use crate::{file, Error};

/// A password that is forgotten when it is dropped.
pub type Password = Zeroizing<String>;

/// The first line of a file that only its owner can read.
pub fn password_from(path: &Path) -> Result<Password, Error> {
    let failed = |source| Error::File { path: path.into(), source };
    let file = File::open(path).map_err(|error| Error::Key(format!("the password's file {}: {error}", path.display())))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let metadata = file.metadata().map_err(failed)?;
        // systemd gives credentials to a service by an access list, which shows as its group's permission.
        let given = std::env::var_os("CREDENTIALS_DIRECTORY").is_some_and(|folder| path.starts_with(folder));
        if metadata.is_file() && metadata.permissions().mode() & if given { 0o037 } else { 0o077 } != 0 {
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
    // Encrypted in another file, readable by its owner alone, then renamed.
    let beside = tempfile::Builder::new().prefix(".new-").tempdir_in(directory).map_err(failed)?;
    let made = beside.path().join("key");
    fs::write(&made, encrypted(key, password)).map_err(failed)?;
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

/// The logarithm of scrypt's cost, as geth sets it: about 256 MiB, and a second of a processor. eth-keystore's default is 32 times less.
const COST: u8 = 18;

/// A key as Web3 Secret Storage, version 3, with the parameters and the address that geth writes.
fn encrypted(key: &PrivateKeySigner, password: &Password) -> String {
    let (mut salt, mut iv, mut id) = ([0; 32], [0; 16], [0; 16]);
    for random in [&mut salt[..], &mut iv, &mut id] {
        OsRng.fill_bytes(random);
    }
    let mut derived = Zeroizing::new([0; 32]);
    let parameters = scrypt::Params::new(COST, 8, 1).expect("geth's parameters are valid");
    scrypt::scrypt(password.as_bytes(), &salt, &parameters, &mut derived[..]).expect("32 bytes can be derived");
    let mut secret = key.to_bytes().0;
    ctr::Ctr128BE::<aes::Aes128>::new(derived[..16].into(), (&iv).into()).apply_keystream(&mut secret);
    let mac = keccak256([&derived[16..], &secret].concat());
    // A UUID of version 4.
    (id[6], id[8]) = (id[6] & 0x0f | 0x40, id[8] & 0x3f | 0x80);
    let parts = [&id[..4], &id[4..6], &id[6..8], &id[8..10], &id[10..]].map(hex::encode);
    let file = json!({
        "address": hex::encode(key.address()), "id": parts.join("-"), "version": 3,
        "crypto": {
            "cipher": "aes-128-ctr", "cipherparams": { "iv": hex::encode(iv) }, "ciphertext": hex::encode(secret), "mac": hex::encode(mac),
            "kdf": "scrypt", "kdfparams": { "dklen": 32, "n": 1u32 << COST, "p": 1, "r": 8, "salt": hex::encode(salt) },
        },
    });
    file.to_string()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_with_geths_parameters_and_read_by_others() {
        let (place, password) = (tempfile::tempdir().unwrap(), Password::new("a pass word".into()));
        let key = PrivateKeySigner::random();
        let (address, path) = store(place.path(), "one", &password, &key).unwrap();
        let file: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!((&file["crypto"]["kdfparams"]["n"], &file["crypto"]["kdfparams"]["r"]), (&262_144.into(), &8.into()));
        assert_eq!(file["address"], hex::encode(address));
        // eth-keystore's own code reads it.
        assert_eq!(from_keystore(&path, &password).unwrap(), key);
        assert!(from_keystore(&path, &Password::new("another".into())).is_err());
        assert_eq!(list(place.path()).unwrap(), ["one"]);
    }
}
