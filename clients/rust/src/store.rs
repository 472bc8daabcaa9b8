//! Where bytes are: stores by URL, none of which is believed.
//!
//! Objects lie under 64 hexadecimal digits: an input or a plain result under its SHA-256, a sealed result under the name that its
//! salt gives. docs/applications.md has the format.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alloy::hex;
use alloy::primitives::B256;
use reqwest::{redirect, Client, StatusCode};
use url::Url;

use crate::seal::{digest_of, Seal};
use crate::Error;
use crate::{file, http};

/// What lies in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// Bytes under their SHA-256.
    Plain(B256),
    /// A sealed result, see [`Seal::name`].
    Sealed(B256),
}

impl Object {
    /// Its name: 64 hexadecimal digits in lower case.
    pub fn name(&self) -> String {
        let (Object::Plain(name) | Object::Sealed(name)) = self;
        hex::encode(name)
    }
}

/// How much is read and written, and how long that may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most bytes of an object.
    pub bytes: usize,
    /// For one object in one store.
    pub timeout: Duration,
}

impl Default for Bounds {
    /// 256 MiB in two minutes.
    fn default() -> Self {
        Self { bytes: 1 << 28, timeout: Duration::from_mins(2) }
    }
}

/// Why a store did not give an object, or did not take one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The store answers, and has no such object.
    #[error("missing")]
    Missing,
    /// The store does not answer, or not with an object; another time it may.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// What it has is something else than what was asked for.
    #[error("corrupt: {0}")]
    Corrupt(String),
    /// Longer than what is read or written.
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// It is only read from, or refuses what is written.
    #[error("takes nothing: {0}")]
    ReadOnly(String),
}

/// What one of several stores said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The store, without what may be secret in its URL.
    pub store: String,
    /// Why it was not the one.
    pub trouble: Trouble,
}

/// No store gave the object, or none took it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", .object.name(), if .attempts.is_empty() { "there is no store".into() } else { said(.attempts) })]
pub struct Lost {
    /// Which.
    pub object: Object,
    /// What each store said, in their order.
    pub attempts: Vec<Attempt>,
}

fn said(attempts: &[Attempt]) -> String {
    attempts.iter().map(|attempt| format!("{}: {}", attempt.store, attempt.trouble)).collect::<Vec<_>>().join("; ")
}

impl Lost {
    /// Whether the same may succeed in a while: a store was out of reach.
    pub fn passes(&self) -> bool {
        self.attempts.iter().any(|attempt| matches!(attempt.trouble, Trouble::Unreachable(_)))
    }
}

/// An object, and who gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its bytes, which are what was asked for.
    pub bytes: Vec<u8>,
    /// The store.
    pub store: String,
    /// What those before it said.
    pub attempts: Vec<Attempt>,
}

enum Kind {
    Directory(PathBuf),
    Http(Url, Client),
    /// A gateway's URL.
    Ipfs(Url, Client),
    #[cfg(feature = "s3")]
    S3(crate::bucket::Bucket),
}

/// A store.
pub struct Store {
    name: String,
    kind: Kind,
    bounds: Bounds,
}

impl Store {
    /// The store at a URL, or a directory by its path:
    ///
    /// | | |
    /// | --- | --- |
    /// | `/a/path`, `file:///a/path` | a directory, made when something is put there |
    /// | `https://host/path`, `http://...` | objects below it, by GET and PUT; a query, such as a signature, goes along with each |
    /// | `ipfs+https://gateway`, `ipfs+http://...` | a gateway: plain objects by their CIDs, to read |
    /// | `s3://bucket/path` | with the feature `s3`: a bucket, its keys and endpoint out of the usual `AWS_...` variables |
    pub fn open(text: &str, bounds: Bounds) -> Result<Self, Error> {
        let text = text.trim();
        if let Some(gateway) = text.strip_prefix("ipfs+") {
            let url = http::parse(gateway, &["http", "https"])?;
            return Ok(Self { name: format!("ipfs+{}", http::redacted(&url)), kind: Kind::Ipfs(url, client(bounds)?), bounds });
        }
        let Some((scheme, _)) = text.split_once("://") else { return Self::directory(Path::new(text), bounds) };
        match scheme {
            "file" => {
                let url = Url::parse(text).map_err(|error| Error::Url(error.to_string()))?;
                let path = url.to_file_path().map_err(|()| Error::Url("a file's URL is file:///path".into()))?;
                Self::directory(&path, bounds)
            }
            #[cfg(feature = "s3")]
            "s3" => {
                let url = Url::parse(text).map_err(|error| Error::Url(error.to_string()))?;
                let bucket = crate::bucket::Bucket::open(&url, client(bounds)?)?;
                Ok(Self { name: http::redacted(&url), kind: Kind::S3(bucket), bounds })
            }
            #[cfg(not(feature = "s3"))]
            "s3" => Err(Error::Url("s3 needs the feature `s3`".into())),
            _ => {
                let url = http::parse(text, &["http", "https"])?;
                Ok(Self { name: http::redacted(&url), kind: Kind::Http(url, client(bounds)?), bounds })
            }
        }
    }

    fn directory(path: &Path, bounds: Bounds) -> Result<Self, Error> {
        if path.as_os_str().is_empty() {
            return Err(Error::Url("a store has a URL or a path".into()));
        }
        Ok(Self { name: path.display().to_string(), kind: Kind::Directory(path.into()), bounds })
    }

    /// For messages: without a URL's path, user and query.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether something can be put there.
    pub fn takes(&self) -> bool {
        !matches!(self.kind, Kind::Ipfs(..))
    }

    /// What the store has under the object's name, whatever that is.
    async fn get(&self, object: Object) -> Result<Vec<u8>, Trouble> {
        let most = self.bounds.bytes;
        match &self.kind {
            Kind::Directory(path) => {
                let path = path.join(object.name());
                apart(move || read(&path, most)).await
            }
            Kind::Http(url, client) => download(client, below(url, &object.name()), most).await,
            Kind::Ipfs(url, client) => {
                // The name of a sealed result is not the digest of what lies there, so it has no CID that anybody could tell.
                let Object::Plain(digest) = object else { return Err(Trouble::Missing) };
                let mut url = below(url, &format!("ipfs/{}", cid_of(digest)));
                url.set_query(Some("format=raw"));
                download(client, url, most).await
            }
            #[cfg(feature = "s3")]
            Kind::S3(bucket) => within(self.bounds.timeout, bucket.get(&object.name(), most)).await,
        }
    }

    /// Puts bytes there, whole or not at all. What lies there already under the name is replaced.
    async fn put(&self, object: Object, bytes: &[u8]) -> Result<(), Trouble> {
        if bytes.len() > self.bounds.bytes {
            return Err(Trouble::TooLong(self.bounds.bytes));
        }
        match &self.kind {
            Kind::Directory(path) => {
                let (path, name, bytes) = (path.clone(), object.name(), bytes.to_vec());
                apart(move || write(&path, &name, &bytes).map_err(|error| Trouble::Unreachable(error.to_string()))).await
            }
            Kind::Http(url, client) => upload(client, below(url, &object.name()), bytes).await,
            Kind::Ipfs(..) => Err(Trouble::ReadOnly("a gateway".into())),
            #[cfg(feature = "s3")]
            Kind::S3(bucket) => within(self.bounds.timeout, bucket.put(&object.name(), bytes)).await,
        }
    }
}

/// Several stores, asked one after the other.
#[derive(Default)]
pub struct Stores(Vec<Store>);

impl Stores {
    /// Stores by their URLs, see [`Store::open`], in the order in which they are asked.
    pub fn open<S: AsRef<str>>(urls: &[S], bounds: Bounds) -> Result<Self, Error> {
        urls.iter().map(|url| Store::open(url.as_ref(), bounds)).collect::<Result<_, _>>().map(Self)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(Store::name)
    }

    /// The bytes with this digest, from the first store that has them.
    pub async fn get(&self, digest: B256) -> Result<Found, Lost> {
        let check = |bytes: Vec<u8>| match digest_of(&bytes) {
            found if found == digest => Ok(bytes),
            found => Err(Trouble::Corrupt(format!("its digest is {found}"))),
        };
        self.find(Object::Plain(digest), check).await
    }

    /// A sealed result, opened, from the first store in which it is the one that the salt names.
    pub async fn open_sealed(&self, seal: &Seal) -> Result<Found, Lost> {
        let open = |bytes| seal.open(bytes).map_err(|error| Trouble::Corrupt(error.to_string()));
        self.find(Object::Sealed(seal.name()), open).await
    }

    async fn find(&self, object: Object, check: impl Fn(Vec<u8>) -> Result<Vec<u8>, Trouble>) -> Result<Found, Lost> {
        let mut attempts = Vec::new();
        for store in &self.0 {
            match store.get(object).await.and_then(&check) {
                Ok(bytes) => return Ok(Found { bytes, store: store.name.clone(), attempts }),
                Err(trouble) => attempts.push(Attempt { store: store.name.clone(), trouble }),
            }
        }
        Err(Lost { object, attempts })
    }

    /// Keeps bytes under their digest in every store that takes them. Returns the digest, and what the others said.
    ///
    /// # Errors
    /// If no store has taken them.
    pub async fn put(&self, bytes: &[u8]) -> Result<(B256, Vec<Attempt>), Lost> {
        let digest = digest_of(bytes);
        Ok((digest, self.spread(Object::Plain(digest), bytes).await?))
    }

    /// Keeps what [`Seal::seal`] made, like [`Stores::put`].
    pub async fn put_sealed(&self, seal: &Seal, object: &[u8]) -> Result<Vec<Attempt>, Lost> {
        self.spread(Object::Sealed(seal.name()), object).await
    }

    async fn spread(&self, object: Object, bytes: &[u8]) -> Result<Vec<Attempt>, Lost> {
        let (mut attempts, mut taken) = (Vec::new(), false);
        for store in self.0.iter().filter(|store| store.takes()) {
            match store.put(object, bytes).await {
                Ok(()) => taken = true,
                Err(trouble) => attempts.push(Attempt { store: store.name.clone(), trouble }),
            }
        }
        if taken {
            Ok(attempts)
        } else {
            Err(Lost { object, attempts })
        }
    }
}

/// The IPFS CID (version 1, raw, base 32) of the bytes with this digest.
pub fn cid_of(digest: B256) -> String {
    // Version 1, the codec of raw bytes, the hash function SHA-256 with 32 bytes.
    let bytes = [&[0x01, 0x55, 0x12, 0x20][..], &digest[..]].concat();
    let (mut text, mut bits, mut held) = (String::from("b"), 0, 0u32);
    let digit = |value: u32| char::from(b"abcdefghijklmnopqrstuvwxyz234567"[value as usize & 31]);
    for byte in bytes {
        held = held << 8 | u32::from(byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(digit(held >> bits));
        }
        held &= 31;
    }
    text.push(digit(held << (5 - bits)));
    text
}

// ---------------------------------------------------------------- directories

/// Runs what waits for the disk where that holds up nobody.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, Trouble> + Send + 'static) -> Result<T, Trouble> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Trouble::Unreachable(error.to_string())))
}

fn read(path: &Path, most: usize) -> Result<Vec<u8>, Trouble> {
    let failed = |error: std::io::Error| Trouble::Unreachable(error.to_string());
    let kind = match fs::metadata(path) {
        Ok(metadata) => metadata,
        // The directory is made by the first object that is put there.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(Trouble::Missing),
        Err(error) => return Err(failed(error)),
    };
    // Opening a pipe would wait for its other end.
    if !kind.is_file() {
        return Err(Trouble::Corrupt("no file".into()));
    }
    let mut bytes = Vec::new();
    fs::File::open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() > most {
        Err(Trouble::TooLong(most))
    } else {
        Ok(bytes)
    }
}

/// Others read it, if the process's mask lets them: a web server, say.
fn write(place: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(place)?;
    file::replace(&place.join(name), bytes, true)
}

// ---------------------------------------------------------------- HTTP

fn client(bounds: Bounds) -> Result<Client, Error> {
    let builder = Client::builder().timeout(bounds.timeout).redirect(redirect::Policy::limited(5));
    #[cfg(feature = "tls")]
    let builder = builder.tls_backend_preconfigured(http::tls()?);
    builder.build().map_err(|error| Error::Url(error.without_url().to_string()))
}

fn below(url: &Url, name: &str) -> Url {
    let mut url = url.clone();
    let path = format!("{}/{name}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}

async fn download(client: &Client, url: Url, most: usize) -> Result<Vec<u8>, Trouble> {
    let mut answer = client.get(url).send().await.map_err(broken)?;
    match answer.status() {
        StatusCode::NOT_FOUND | StatusCode::GONE => return Err(Trouble::Missing),
        StatusCode::OK => {}
        other => return Err(Trouble::Unreachable(format!("HTTP {}", other.as_u16()))),
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(broken)? {
        if bytes.len() + chunk.len() > most {
            return Err(Trouble::TooLong(most));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

async fn upload(client: &Client, url: Url, bytes: &[u8]) -> Result<(), Trouble> {
    let status = client.put(url).body(bytes.to_vec()).send().await.map_err(broken)?.status();
    match status {
        _ if status.is_success() => Ok(()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
            Err(Trouble::ReadOnly(format!("HTTP {}", status.as_u16())))
        }
        _ => Err(Trouble::Unreachable(format!("HTTP {}", status.as_u16()))),
    }
}

fn broken(error: reqwest::Error) -> Trouble {
    Trouble::Unreachable(http::reason(error))
}

#[cfg(feature = "s3")]
async fn within<T>(timeout: Duration, work: impl std::future::Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
    let slow = |_| Err(Trouble::Unreachable(format!("no answer within {timeout:?}")));
    tokio::time::timeout(timeout, work).await.unwrap_or_else(slow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cids_are_those_of_the_other_package() {
        let digest = digest_of(b"hello world");
        assert_eq!(cid_of(digest), "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e");
    }

    #[test]
    fn stores_are_named_without_their_secrets() {
        let named = |text| Store::open(text, Bounds::default()).map(|store| store.name().to_string());
        assert_eq!(named("https://me:s3cret@host/s3cret?sig=s3cret").unwrap(), "https://host/...");
        assert_eq!(named("ipfs+http://127.0.0.1:8080").unwrap(), "ipfs+http://127.0.0.1:8080");
        assert_eq!(named("file:///a/b%20c").unwrap(), "/a/b c");
        assert_eq!(named("a/b").unwrap(), "a/b");
        for text in ["", "ftp://host", "file://host/s3cret", "https:///", "ipfs+/s3cret", "gopher://s3cret@host"] {
            let error = named(text).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn names_go_below_a_path_and_before_a_query() {
        let at = |text| below(&Url::parse(text).unwrap(), "00ff").to_string();
        assert_eq!(at("https://host"), "https://host/00ff");
        assert_eq!(at("https://host/a/b/"), "https://host/a/b/00ff");
        assert_eq!(at("https://host/a?sig=1"), "https://host/a/00ff?sig=1");
    }
}
