//! Inputs readable only by the nodes that may run them, and results readable only by the creator: by age, <https://age-encryption.org>.
//! docs/stores.md has the format.

use std::io::{self, BufRead, Read, Write};
use std::str::FromStr;

use age::x25519::{Identity, Recipient};
use alloy::primitives::Address;
use alloy::signers::local::PrivateKeySigner;
use bech32::{Bech32, Hrp};
use serde::{Deserialize, Serialize};

use crate::seal::{derive, Seed};

/// The prefix of sealed inputs and results.
pub const SEALED: &[u8] = b"muster sealed 1\n";
/// The prefix of the entry by which an account publishes its key beside its stores.
const ENTRY: &str = "age:";

/// The longest header, in bytes: more than 10,000 keys.
const HEADER: usize = 1 << 20;

/// The reason why sealed bytes cannot be opened, or bytes cannot be sealed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateError {
    /// It is sealed to other keys.
    #[error("it is sealed to others")]
    Others,
    /// It was changed or cut, or has a format unknown to this version.
    #[error("it is sealed, and broken: {0}")]
    Broken(String),
    /// That is no key to seal to.
    #[error("{0:?} is no key of age's")]
    Key(String),
    /// There is no recipient.
    #[error("there is nobody to seal it to")]
    Nobody,
}

/// An account's key for data sealed to it, derived from the account's own.
pub struct Private(Identity);

/// The header of an input, inside its seal.
#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<String>,
}

/// An input that was sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its bytes.
    pub input: Vec<u8>,
    /// The key to seal the result to, if any.
    pub reply: Option<String>,
}

impl Private {
    /// That of an account whose key is here.
    pub fn of(key: &PrivateKeySigner) -> Self {
        Self::derived(&key.to_bytes()[..], &[b"muster age 1"])
    }

    /// The key of a node, by the seed of its agent and its operator: the account's own key may be out of any program's reach.
    pub fn of_seed(seed: &Seed, operator: Address) -> Self {
        Self::derived(seed.bytes(), &[b"muster age 2", operator.as_slice()])
    }

    fn derived(secret: &[u8], info: &[&[u8]]) -> Self {
        let secret = derive::<32>(secret, info);
        let text = bech32::encode_upper::<Bech32>(Hrp::parse_unchecked("age-secret-key-"), &secret[..]);
        Self(Identity::from_str(&text.expect("32 bytes are encoded")).expect("any 32 bytes are a key"))
    }

    /// The public key that others seal to.
    pub fn recipient(&self) -> String {
        self.0.to_public().to_string()
    }

    /// The entry with which an account publishes it.
    pub fn entry(&self) -> String {
        format!("{ENTRY}{}", self.recipient())
    }

    fn open(&self, sealed: &[u8]) -> Result<Vec<u8>, PrivateError> {
        let broken = |error: &dyn std::fmt::Display| PrivateError::Broken(error.to_string());
        let file = sealed.strip_prefix(SEALED).ok_or_else(|| broken(&"it does not begin as such"))?;
        let opening = age::Decryptor::new_buffered(Headed::of(file)?).map_err(|error| broken(&error))?;
        let own: &dyn age::Identity = &self.0;
        let mut reader = match opening.decrypt(std::iter::once(own)) {
            Ok(reader) => reader,
            Err(age::DecryptError::NoMatchingKeys) => return Err(PrivateError::Others),
            Err(error) => return Err(broken(&error)),
        };
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(|error| broken(&error))?;
        Ok(bytes)
    }

    /// Opens an input that begins with [`SEALED`].
    pub fn open_input(&self, sealed: &[u8]) -> Result<Opened, PrivateError> {
        let mut bytes = self.open(sealed)?;
        let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| PrivateError::Broken("no head".into()))?;
        let head: Head = serde_json::from_slice(&bytes[..end]).map_err(|error| PrivateError::Broken(error.to_string()))?;
        bytes.drain(..=end);
        Ok(Opened { input: bytes, reply: head.reply })
    }

    /// Opens a result that begins with [`SEALED`].
    pub fn open_result(&self, sealed: &[u8]) -> Result<Vec<u8>, PrivateError> {
        self.open(sealed)
    }
}

/// A file of age's, whose header is read at once. age parses a header from its beginning again for each line that it reads, and byte by byte
/// for a line without an end: a stranger's few megabytes would take hours.
struct Headed<'a> {
    header: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Headed<'a> {
    fn of(file: &'a [u8]) -> Result<Self, PrivateError> {
        let head = &file[..file.len().min(HEADER)];
        let last = head.windows(4).position(|four| four == b"\n---").map(|at| at + 1);
        let end = last.and_then(|last| Some(last + head[last..].iter().position(|byte| *byte == b'\n')? + 1));
        let end = end.ok_or_else(|| PrivateError::Broken(format!("no end of its header in {HEADER} bytes")))?;
        let (header, rest) = file.split_at(end);
        Ok(Self { header, rest })
    }
}

impl Read for Headed<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.rest.read(into)
    }
}

impl BufRead for Headed<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.rest)
    }

    fn consume(&mut self, read: usize) {
        self.rest.consume(read);
    }

    fn read_until(&mut self, _: u8, into: &mut Vec<u8>) -> io::Result<usize> {
        let header = std::mem::take(&mut self.header);
        into.extend_from_slice(header);
        Ok(header.len())
    }
}

/// The key that an account publishes among its stores (`storesOf`).
pub fn published_key(stores: &str) -> Option<&str> {
    stores.split(' ').find_map(|entry| entry.strip_prefix(ENTRY))
}

fn seal(to: &[&str], parts: &[&[u8]]) -> Result<Vec<u8>, PrivateError> {
    let read = |key: &&str| Recipient::from_str(key).map_err(|_| PrivateError::Key((*key).into()));
    let keys: Vec<Recipient> = to.iter().map(read).collect::<Result<_, _>>()?;
    let keys = keys.iter().map(|key| key as &dyn age::Recipient);
    let sealing = age::Encryptor::with_recipients(keys).map_err(|_| PrivateError::Nobody)?;
    let mut sealed = SEALED.to_vec();
    let written = (|| {
        let mut writer = sealing.wrap_output(&mut sealed)?;
        parts.iter().try_for_each(|part| writer.write_all(part))?;
        writer.finish()
    })();
    written.expect("writing to memory succeeds");
    Ok(sealed)
}

/// Seals an input to the keys of the nodes that may run it; they seal the result to `reply`.
pub fn seal_input(input: &[u8], to: &[&str], reply: Option<&str>) -> Result<Vec<u8>, PrivateError> {
    let head = serde_json::to_vec(&Head { reply: reply.map(Into::into) }).expect("a head is JSON");
    seal(to, &[&head, b"\n", input])
}

/// Seals a result to the account that asked for it.
pub fn seal_result(result: &[u8], to: &str) -> Result<Vec<u8>, PrivateError> {
    seal(&[to], &[result])
}
