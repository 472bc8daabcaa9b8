//! Storage of bytes by URL; no store is trusted.
//!
//! Objects lie under 64 hexadecimal digits: an input or a plain result under its SHA-256, a sealed result under the name derived
//! from its salt. docs/stores.md has the conventions.

use std::fs;
use std::future::Future;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use alloy::hex;
use alloy::primitives::bytes::Bytes;
use alloy::primitives::B256;
use cid::multihash::Multihash;
use cid::Cid;
use futures_util::stream::{self, FuturesUnordered, StreamExt};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, CONTENT_TYPE};
use reqwest::{dns, redirect, Client, Method, Response, StatusCode};
use ring::digest::{Context, SHA256};
use tempfile::NamedTempFile;
use tokio::time::{timeout, timeout_at, Instant};
use url::{Host, Url};

use crate::seal::{digest_of, Seal};
use crate::trouble::{Pieces, Trouble};
use crate::Error;
use crate::{file, http};

/// An object in a store.
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

/// Limits of size and time.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most bytes of an object.
    pub bytes: usize,
    /// The time for one object in one store.
    pub timeout: Duration,
}

impl Default for Bounds {
    /// 256 MiB in two minutes.
    fn default() -> Self {
        Self { bytes: 1 << 28, timeout: Duration::from_mins(2) }
    }
}

/// The failure of one of several stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The store, without secrets of its URL.
    pub store: String,
    /// The reason.
    pub trouble: Trouble,
}

/// No store returned the object, or none accepted it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", .object.name(), if .attempts.is_empty() { "there is no store".into() } else { said(.attempts) })]
pub struct Lost {
    /// The object.
    pub object: Object,
    /// Each store's failure, in their order.
    pub attempts: Vec<Attempt>,
}

fn said(attempts: &[Attempt]) -> String {
    attempts.iter().map(|attempt| format!("{}: {}", attempt.store, attempt.trouble)).collect::<Vec<_>>().join("; ")
}

impl Lost {
    /// Whether a retry may succeed later: a store was out of reach.
    pub fn passes(&self) -> bool {
        self.attempts.iter().any(|attempt| matches!(attempt.trouble, Trouble::Unreachable(_)))
    }
}

/// An object that is now in a file, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The store.
    pub store: String,
    /// Failures of other stores before.
    pub attempts: Vec<Attempt>,
}

/// An object, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its bytes, checked.
    pub bytes: Vec<u8>,
    /// The store.
    pub store: String,
    /// Failures of other stores before.
    pub attempts: Vec<Attempt>,
}

/// The purpose of a signed URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading an object.
    Get,
    /// Writing it.
    Put,
    /// Removing it.
    Delete,
}

type Signer = Box<dyn Fn(Access, &str) -> Option<Url> + Send + Sync>;

enum Kind {
    Directory(PathBuf),
    Http(Url, Client),
    /// Each object has a URL of its own.
    Signed(Signer, Client),
    /// A gateway's URL.
    Ipfs(Url, Client),
    Kubo(Kubo),
    #[cfg(feature = "s3")]
    Bucket(crate::bucket::Bucket),
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
    /// | `kubo+http://127.0.0.1:5001` | a Kubo node by its RPC API: plain objects as blocks of at most [`BLOCK`] bytes; `?pin=NAME` has its remote pinning service of that name keep them, too |
    /// | `s3://bucket/path`, `gs://...`, `az://...` | with the feature `s3`: a bucket, its keys out of the usual variables (`AWS_...`, `GOOGLE_...`, `AZURE_...`); settings that are no secrets may be its query, as `?endpoint=http://host:9000&region=eu-west-1` |
    pub fn open(text: &str, bounds: Bounds) -> Result<Self, Error> {
        Self::open_with(text, &[], bounds)
    }

    /// As `open`, with headers for each request, such as an authorisation; buckets sign theirs themselves and take none.
    pub fn open_with(text: &str, headers: &[(String, String)], bounds: Bounds) -> Result<Self, Error> {
        let text = text.trim();
        if let Some(gateway) = text.strip_prefix("ipfs+") {
            let url = http::parse(gateway, &["http", "https"])?;
            let name = format!("ipfs+{}", http::redacted(&url));
            return Ok(Self { name, kind: Kind::Ipfs(url, client(bounds, headers)?), bounds });
        }
        if let Some(node) = text.strip_prefix("kubo+") {
            let url = http::parse(node, &["http", "https"])?;
            let name = format!("kubo+{}", http::redacted(&url));
            return Ok(Self { name, kind: Kind::Kubo(Kubo::new(url, client(bounds, headers)?, bounds)), bounds });
        }
        let Some((scheme, _)) = text.split_once("://") else { return Self::directory(Path::new(text), bounds) };
        match scheme {
            "file" => {
                let url = Url::parse(text).map_err(|error| Error::Url(error.to_string()))?;
                let path = url.to_file_path().map_err(|()| Error::Url("a file's URL is file:///path".into()))?;
                Self::directory(&path, bounds)
            }
            #[cfg(feature = "s3")]
            "s3" | "gs" | "az" => {
                let url = Url::parse(text).map_err(|error| Error::Url(error.to_string()))?;
                let bucket = crate::bucket::Bucket::open(&url, client(bounds, &[])?)?;
                Ok(Self { name: http::redacted(&url), kind: Kind::Bucket(bucket), bounds })
            }
            #[cfg(not(feature = "s3"))]
            "s3" | "gs" | "az" => Err(Error::Url("buckets need the feature `s3`".into())),
            _ => {
                let url = http::parse(text, &["http", "https"])?;
                Ok(Self { name: http::redacted(&url), kind: Kind::Http(url, client(bounds, headers)?), bounds })
            }
        }
    }

    /// A store in which each object has a URL of its own, such as a signed one. The function gets the purpose and the object's name,
    /// and returns `None` where there is no such URL.
    pub fn signed(
        name: &str,
        headers: &[(String, String)],
        bounds: Bounds,
        url: impl Fn(Access, &str) -> Option<Url> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Ok(Self { name: name.into(), kind: Kind::Signed(Box::new(url), client(bounds, headers)?), bounds })
    }

    /// A store named by somebody else, for reading: over HTTP or from a gateway, without our credentials. `None` for other kinds,
    /// or in a private network unless `inside`.
    fn published(text: &str, bounds: Bounds, inside: bool) -> Option<Self> {
        let (gateway, plain) = match text.strip_prefix("ipfs+") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let url = http::parse(plain, &["http", "https"]).ok()?;
        let client = reader(&url, Client::builder().timeout(bounds.timeout), inside)?;
        let name = format!("{}{}", if gateway { "ipfs+" } else { "" }, http::redacted(&url));
        Some(Self { name, kind: if gateway { Kind::Ipfs(url, client) } else { Kind::Http(url, client) }, bounds })
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

    /// The store's bytes under the object's name, unchecked.
    async fn get(&self, object: Object) -> Result<Pieces, Trouble> {
        let name = object.name();
        match &self.kind {
            Kind::Directory(path) => {
                let path = path.join(name);
                apart(move || read(&path)).await
            }
            Kind::Http(url, client) => download(client.get(below(url, &name))).await,
            Kind::Signed(sign, client) => match sign(Access::Get, &name) {
                Some(url) => download(client.get(url)).await,
                None => Err(Trouble::Missing),
            },
            Kind::Ipfs(url, client) => {
                // A sealed result's name is not the digest of its bytes, so its CID is unknown.
                let Object::Plain(digest) = object else { return Err(Trouble::Missing) };
                let mut url = below(url, &format!("ipfs/{}", cid_of(digest)));
                url.set_query(Some("format=raw"));
                download(client.get(url)).await
            }
            Kind::Kubo(kubo) => match object {
                Object::Plain(digest) => kubo.get(digest).await,
                Object::Sealed(_) => Err(Trouble::Missing),
            },
            #[cfg(feature = "s3")]
            Kind::Bucket(bucket) => bucket.get(&name).await,
        }
    }

    /// Stores bytes, whole or not at all. Replaces an existing object of the name.
    async fn put(&self, object: Object, bytes: Bytes) -> Result<(), Trouble> {
        if bytes.len() > self.bounds.bytes {
            return Err(Trouble::TooLong(self.bounds.bytes));
        }
        let name = object.name();
        match &self.kind {
            Kind::Directory(path) => {
                let path = path.clone();
                apart(move || write(&path, &name, &bytes).map_err(|error| Trouble::Unreachable(error.to_string()))).await
            }
            Kind::Http(url, client) => accepted(client.put(below(url, &name)).body(bytes)).await,
            Kind::Signed(sign, client) => match sign(Access::Put, &name) {
                Some(url) => accepted(client.put(url).body(bytes)).await,
                None => Err(Trouble::ReadOnly("no URL is signed for it".into())),
            },
            Kind::Ipfs(..) => Err(Trouble::ReadOnly("a gateway".into())),
            Kind::Kubo(kubo) => match object {
                Object::Plain(digest) => kubo.put(digest, &bytes).await,
                Object::Sealed(_) => Err(Trouble::ReadOnly("a sealed result has no CID that the chain could tell".into())),
            },
            #[cfg(feature = "s3")]
            Kind::Bucket(bucket) => within(self.bounds.timeout, bucket.put(&name, bytes)).await,
        }
    }

    /// Removes an object; succeeds if there is none.
    async fn remove(&self, object: Object) -> Result<(), Trouble> {
        let name = object.name();
        let removed = match &self.kind {
            Kind::Directory(path) => {
                let path = path.join(name);
                apart(move || fs::remove_file(path).map_err(absent)).await
            }
            Kind::Http(url, client) => accepted(client.delete(below(url, &name))).await,
            Kind::Signed(sign, client) => match sign(Access::Delete, &name) {
                Some(url) => accepted(client.delete(url)).await,
                None => Err(Trouble::ReadOnly("no URL is signed for it".into())),
            },
            Kind::Ipfs(..) => Ok(()),
            Kind::Kubo(kubo) => match object {
                Object::Plain(digest) => kubo.remove(digest).await,
                Object::Sealed(_) => Ok(()),
            },
            #[cfg(feature = "s3")]
            Kind::Bucket(bucket) => within(self.bounds.timeout, bucket.remove(&name)).await,
        };
        removed.or_else(|trouble| if trouble == Trouble::Missing { Ok(()) } else { Err(trouble) })
    }

    /// An object's bytes, checked as they arrive: within the limits of size and time, and, if `named`, of the right digest.
    async fn fetch(&self, object: Object, mut into: Sink, named: bool) -> Result<Sink, Trouble> {
        let most = self.bounds.bytes;
        within(self.bounds.timeout, async {
            let (mut pieces, mut length, mut hash) = (self.get(object).await?, 0, Context::new(&SHA256));
            while let Some(piece) = pieces.next().await {
                let piece = piece?;
                length += piece.len();
                if length > most {
                    return Err(Trouble::TooLong(most));
                }
                hash.update(&piece);
                into.write(&piece)?;
            }
            let found = B256::from_slice(hash.finish().as_ref());
            match object {
                Object::Plain(digest) if named && digest != found => Err(Trouble::Corrupt(format!("its digest is {found}"))),
                _ => Ok(into),
            }
        })
        .await
    }
}

/// The destination of arriving bytes.
enum Sink {
    Memory(Vec<u8>),
    File(NamedTempFile),
}

impl Sink {
    fn write(&mut self, piece: &[u8]) -> Result<(), Trouble> {
        match self {
            Self::Memory(bytes) => bytes.extend_from_slice(piece),
            Self::File(file) => file.write_all(piece).map_err(|error| Trouble::Unwritten(error.to_string()))?,
        }
        Ok(())
    }
}

/// Several stores. They are asked side by side: the first at once, each next one when one before it fails or takes longer than a second.
#[derive(Clone, Default)]
pub struct Stores {
    all: Vec<Arc<Store>>,
    /// The time given to the other stores after one has accepted an object; `None` for their own limits.
    grace: Option<Duration>,
}

/// The most stores asked at a time.
const AT_ONCE: usize = 4;
/// After this time without an answer, the next store is asked too.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most stores of an account's list that are tried.
const PUBLISHED: usize = 8;

impl Stores {
    /// Stores by their URLs, see [`Store::open`], in the order in which they are asked.
    pub fn open<S: AsRef<str>>(urls: &[S], bounds: Bounds) -> Result<Self, Error> {
        urls.iter().map(|url| Store::open(url.as_ref(), bounds)).collect::<Result<Vec<_>, _>>().map(Self::from)
    }

    /// The stores that an account publishes (`storesOf`), for reading: those over HTTP and gateways of IPFS, without headers or keys of ours.
    /// Other entries are ignored. An entry could name a machine of the reader's own network, so those are left
    /// out unless they are allowed as `inside`.
    pub fn published(text: &str, bounds: Bounds, inside: bool) -> Self {
        let entries = text.split(' ').filter(|entry| !entry.is_empty()).take(PUBLISHED);
        entries.filter_map(|entry| Store::published(entry, bounds, inside)).collect::<Vec<_>>().into()
    }

    /// These stores, followed by others.
    #[must_use]
    pub fn then(&self, others: &Self) -> Self {
        Self { all: self.all.iter().chain(&others.all).cloned().collect(), grace: self.grace }
    }

    /// Limits how long puts wait for slower stores once one has the object; they go on in the background. Otherwise a put ends when every
    /// store has answered or run out of time.
    #[must_use]
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { grace: Some(grace), ..self }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|store| store.name())
    }

    /// The bytes of this digest, from the first store that returns them.
    pub async fn get(&self, digest: B256) -> Result<Found, Lost> {
        self.find(Object::Plain(digest), |store, object| Box::pin(in_memory(store, object, true))).await.map(Found::from)
    }

    /// As `get`, into a file, which appears once its bytes are checked; they are never all in memory.
    pub async fn get_to(&self, digest: B256, path: &Path) -> Result<Kept, Lost> {
        let path = path.to_path_buf();
        self.find(Object::Plain(digest), move |store, object| {
            let path = path.clone();
            Box::pin(async move {
                let unwritten = |error: std::io::Error| Trouble::Unwritten(error.to_string());
                let place = path.parent().filter(|place| !place.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let beside = NamedTempFile::with_prefix_in(".new-", place).map_err(unwritten)?;
                let Sink::File(file) = store.fetch(object, Sink::File(beside), true).await? else { unreachable!("it is a file") };
                file.persist(&path).map(drop).map_err(|error| unwritten(error.error))
            })
        })
        .await
        .map(|(store, (), attempts)| Kept { store, attempts })
    }

    /// A sealed result, opened, from the first store that returns the one that the salt names.
    pub async fn open_sealed(&self, seal: &Seal) -> Result<Found, Lost> {
        let seal = Arc::new(seal.clone());
        self.find(Object::Sealed(seal.name()), move |store, object| {
            let seal = seal.clone();
            Box::pin(async move {
                let bytes = in_memory(store, object, true).await?;
                seal.open(bytes).map_err(|error| Trouble::Corrupt(error.to_string()))
            })
        })
        .await
        .map(Found::from)
    }

    /// A result that may be sealed to a creator, opened with their key: the plain one of a digest, or the one named by a salt.
    #[cfg(feature = "private")]
    pub async fn open_private(&self, of: PrivateResult, own: &Arc<crate::Private>) -> Result<Found, Lost> {
        let object = match &of {
            PrivateResult::Plain(digest) => Object::Plain(*digest),
            PrivateResult::Sealed(seal) => Object::Sealed(seal.name()),
        };
        let (of, own) = (Arc::new(of), own.clone());
        self.find(object, move |store, object| {
            let (of, own) = (of.clone(), own.clone());
            Box::pin(async move {
                let corrupt = |error: &dyn std::fmt::Display| Trouble::Corrupt(error.to_string());
                let mut bytes = in_memory(store, object, false).await?;
                if let PrivateResult::Sealed(seal) = &*of {
                    bytes = seal.open_unnamed(bytes).map_err(|error| corrupt(&error))?;
                }
                let right = |bytes: &[u8]| match &*of {
                    PrivateResult::Plain(digest) => digest_of(bytes) == *digest,
                    PrivateResult::Sealed(seal) => seal.names(bytes).is_ok(),
                };
                if !right(&bytes) && bytes.starts_with(crate::SEALED) {
                    bytes = own.open_result(&bytes).map_err(|error| corrupt(&error))?;
                }
                right(&bytes).then_some(bytes).ok_or_else(|| corrupt(&"it is not what was answered"))
            })
        })
        .await
        .map(Found::from)
    }

    async fn find<T: Send>(&self, object: Object, look: impl Fn(Arc<Store>, Object) -> Looking<T>) -> Result<Looked<T>, Lost> {
        let (mut waiting, mut running) = (self.all.iter().enumerate(), FuturesUnordered::new());
        let mut attempts = Vec::new();
        let said = |mut attempts: Vec<(usize, Attempt)>| {
            attempts.sort_by_key(|(place, _)| *place);
            attempts.into_iter().map(|(_, attempt)| attempt).collect::<Vec<_>>()
        };
        loop {
            if running.len() < AT_ONCE {
                if let Some((place, store)) = waiting.next() {
                    let looking = look(store.clone(), object);
                    running.push(async move { (place, store, looking.await) });
                }
            }
            let more = running.len() < AT_ONCE && waiting.len() > 0;
            let next = if more { timeout(PATIENCE, running.next()).await } else { Ok(running.next().await) };
            match next {
                // No answer yet: ask the next one beside them.
                Err(_) => {}
                Ok(None) => return Err(Lost { object, attempts: said(attempts) }),
                Ok(Some((_, store, Ok(found)))) => return Ok((store.name.clone(), found, said(attempts))),
                Ok(Some((place, store, Err(trouble)))) => {
                    attempts.push((place, Attempt { store: store.name.clone(), trouble }));
                }
            }
        }
    }

    /// Puts bytes under their digest into every store that accepts them. Returns the digest, and the failures of the others.
    ///
    /// # Errors
    /// If no store has accepted them.
    pub async fn put(&self, bytes: &[u8]) -> Result<(B256, Vec<Attempt>), Lost> {
        let digest = digest_of(bytes);
        Ok((digest, self.spread(Object::Plain(digest), bytes).await?))
    }

    /// Puts a result under its digest, or its bytes sealed to the creator under the same name, like [`Stores::put`]. IPFS takes only plain ones.
    #[cfg(feature = "private")]
    pub async fn put_private(&self, digest: B256, sealed: &[u8]) -> Result<Vec<Attempt>, Lost> {
        self.spread(Object::Plain(digest), sealed).await
    }

    /// Puts an object of [`Seal::seal`], like [`Stores::put`].
    pub async fn put_sealed(&self, seal: &Seal, object: &[u8]) -> Result<Vec<Attempt>, Lost> {
        self.spread(Object::Sealed(seal.name()), object).await
    }

    async fn spread(&self, object: Object, bytes: &[u8]) -> Result<Vec<Attempt>, Lost> {
        // Shared by all stores.
        let bytes = Bytes::copy_from_slice(bytes);
        let takers: Vec<_> = self.all.iter().filter(|store| store.takes()).collect();
        let mut running = FuturesUnordered::new();
        for (place, store) in takers.iter().enumerate() {
            let (store, bytes) = (Arc::clone(store), bytes.clone());
            // Spawned, because a store goes on after the wait for it ends.
            let putting = tokio::spawn(async move { store.put(object, bytes).await });
            running
                .push(async move { (place, putting.await.unwrap_or_else(|error| Err(Trouble::Unreachable(error.to_string())))) });
        }
        let mut puts = vec![Err(Trouble::Unreachable("still at it when others had it".into())); takers.len()];
        let mut until = None;
        loop {
            let next = match until {
                None => running.next().await,
                Some(until) => timeout_at(until, running.next()).await.unwrap_or_default(),
            };
            let Some((place, put)) = next else { break };
            if put.is_ok() {
                until = until.or_else(|| Some(Instant::now() + self.grace?));
            }
            puts[place] = put;
        }
        let taken = puts.iter().any(Result::is_ok);
        let attempts = attempts(&takers, puts);
        if taken {
            Ok(attempts)
        } else {
            Err(Lost { object, attempts })
        }
    }

    /// Removes an object from all of them. Returns the failures.
    pub async fn remove(&self, object: Object) -> Vec<Attempt> {
        self.remove_all(&[object]).await.pop().unwrap_or_default()
    }

    /// Removes objects from all of them. A store that cannot be reached for three in a row is not asked for the rest, so that it delays no
    /// other. Returns the failures of each object.
    pub async fn remove_all(&self, objects: &[Object]) -> Vec<Vec<Attempt>> {
        let takers: Vec<_> = self.all.iter().filter(|store| store.takes()).collect();
        let removals = takers.iter().map(|store| async move {
            let (mut removed, mut away) = (Vec::with_capacity(objects.len()), 0);
            for object in objects {
                let one = match removed.last() {
                    Some(last) if away == 3 => Result::clone(last),
                    _ => store.remove(*object).await,
                };
                away = if matches!(one, Err(Trouble::Unreachable(_))) { 3.min(away + 1) } else { 0 };
                removed.push(one);
            }
            removed
        });
        let removed = futures_util::future::join_all(removals).await;
        (0..objects.len()).map(|i| attempts(&takers, removed.iter().map(|of_store| of_store[i].clone()).collect())).collect()
    }
}

/// The result to look for.
#[cfg(feature = "private")]
pub enum PrivateResult {
    /// By its digest.
    Plain(B256),
    /// By the salt of the commitment to it.
    Sealed(Box<Seal>),
}

type Looking<T> = Pin<Box<dyn Future<Output = Result<T, Trouble>> + Send>>;
/// The source, the object, and failures before.
type Looked<T> = (String, T, Vec<Attempt>);

impl From<Vec<Store>> for Stores {
    fn from(stores: Vec<Store>) -> Self {
        Self { all: stores.into_iter().map(Arc::new).collect(), grace: None }
    }
}

impl From<Looked<Vec<u8>>> for Found {
    fn from((store, bytes, attempts): Looked<Vec<u8>>) -> Self {
        Self { bytes, store, attempts }
    }
}

async fn in_memory(store: Arc<Store>, object: Object, named: bool) -> Result<Vec<u8>, Trouble> {
    match store.fetch(object, Sink::Memory(Vec::new()), named).await? {
        Sink::Memory(bytes) => Ok(bytes),
        Sink::File(_) => unreachable!("it is in memory"),
    }
}

fn attempts(stores: &[&Arc<Store>], became: Vec<Result<(), Trouble>>) -> Vec<Attempt> {
    let failed = stores.iter().zip(became).filter_map(|(store, became)| Some((store, became.err()?)));
    failed.map(|(store, trouble)| Attempt { store: store.name.clone(), trouble }).collect()
}

/// The code of raw bytes in a CID, and of SHA-256 in a multihash.
const RAW: u64 = 0x55;
const SHA2_256: u64 = 0x12;

/// The IPFS CID (version 1, raw, base 32) of the bytes with this digest.
pub fn cid_of(digest: B256) -> String {
    let hash = Multihash::<64>::wrap(SHA2_256, &digest[..]).expect("32 bytes fit into 64");
    Cid::new_v1(RAW, hash).to_string()
}

// ---------------------------------------------------------------- Kubo

/// The most bytes of an object on IPFS: one block, whose CID is that of its digest. IPFS nodes do not exchange longer blocks.
pub const BLOCK: usize = 1 << 20;

/// A Kubo node, by its RPC API.
struct Kubo {
    url: Url,
    client: Client,
    /// The remote pinning service that must pin each object.
    pin: Option<String>,
    bounds: Bounds,
}

impl Kubo {
    fn new(mut url: Url, client: Client, bounds: Bounds) -> Self {
        let pin = url.query_pairs().find(|(key, _)| key == "pin").map(|(_, service)| service.into_owned());
        url.set_query(None);
        Self { url, client, pin, bounds }
    }

    async fn ask(&self, call: &str, query: &[(&str, &str)], body: Option<(String, Bytes)>) -> Result<Response, Trouble> {
        let mut url = below(&self.url, &format!("api/v0/{call}"));
        url.query_pairs_mut().extend_pairs(query);
        let mut request = self.client.request(Method::POST, url);
        if let Some((kind, body)) = body {
            request = request.header(CONTENT_TYPE, kind).body(body);
        }
        let answer = request.send().await.map_err(broken)?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let mut text = String::new();
        let mut pieces = pieces(answer);
        while let Some(Ok(piece)) = pieces.next().await {
            text += &String::from_utf8_lossy(&piece);
            if text.len() > 4_096 {
                break;
            }
        }
        let said = serde_json::from_str::<serde_json::Value>(&text).ok();
        let said = said.as_ref().and_then(|said| said["Message"].as_str()).unwrap_or_default();
        if ["not found", "could not find", "not pinned"].iter().any(|absent| said.contains(absent)) {
            return Err(Trouble::Missing);
        }
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED => {
                Trouble::ReadOnly(format!("HTTP {}", status.as_u16()))
            }
            _ => Trouble::Unreachable(format!("HTTP {}: {said}", status.as_u16())),
        })
    }

    async fn get(&self, digest: B256) -> Result<Pieces, Trouble> {
        let patience = format!("{}s", self.bounds.timeout.as_secs().max(1));
        self.ask("block/get", &[("arg", &cid_of(digest)), ("timeout", &patience)], None).await.map(pieces)
    }

    async fn put(&self, digest: B256, bytes: &[u8]) -> Result<(), Trouble> {
        if bytes.len() > BLOCK {
            return Err(Trouble::TooLong(BLOCK));
        }
        let boundary = format!("muster-{:032x}", rand::random::<u128>());
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"data\"; filename=\"data\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        let body = [head.as_bytes(), bytes, format!("\r\n--{boundary}--\r\n").as_bytes()].concat();
        let query = [("cid-codec", "raw"), ("mhtype", "sha2-256"), ("pin", "true")];
        let kind = format!("multipart/form-data; boundary={boundary}");
        let answer = self.ask("block/put", &query, Some((kind, body.into()))).await?;
        let cid = cid_of(digest);
        let text = answer.text().await.map_err(broken)?;
        if !text.contains(&cid) {
            return Err(Trouble::Corrupt("it stored something else".into()));
        }
        if let Some(service) = &self.pin {
            self.ask("pin/remote/add", &[("arg", &cid), ("service", service), ("background", "true")], None).await?;
        }
        Ok(())
    }

    async fn remove(&self, digest: B256) -> Result<(), Trouble> {
        let cid = cid_of(digest);
        if let Some(service) = &self.pin {
            self.ask("pin/remote/rm", &[("cid", &cid), ("service", service), ("force", "true")], None).await?;
        }
        match self.ask("pin/rm", &[("arg", &cid)], None).await {
            Ok(_) | Err(Trouble::Missing) => {}
            Err(trouble) => return Err(trouble),
        }
        self.ask("block/rm", &[("arg", &cid), ("force", "true")], None).await.map(drop)
    }
}

// ---------------------------------------------------------------- directories

/// Runs disk operations on threads of their own, so that they block nobody.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, Trouble> + Send + 'static) -> Result<T, Trouble> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Trouble::Unreachable(error.to_string())))
}

fn absent(error: std::io::Error) -> Trouble {
    match error.kind() {
        // The first put creates the directory.
        std::io::ErrorKind::NotFound => Trouble::Missing,
        _ => Trouble::Unreachable(error.to_string()),
    }
}

/// The bytes of a file read at a time.
const PIECE: usize = 1 << 18;

fn read(path: &Path) -> Result<Pieces, Trouble> {
    // Opening a pipe would wait for its other end.
    if !fs::metadata(path).map_err(absent)?.is_file() {
        return Err(Trouble::Corrupt("no file".into()));
    }
    let file = fs::File::open(path).map_err(absent)?;
    Ok(Box::pin(stream::try_unfold(file, |file| {
        apart(move || {
            let mut piece = Vec::new();
            (&file).take(PIECE as u64).read_to_end(&mut piece).map_err(absent)?;
            Ok((!piece.is_empty()).then(|| (Bytes::from(piece), file)))
        })
    })))
}

/// Readable by others, if the umask allows it: for a web server, say.
fn write(place: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(place)?;
    file::replace(&place.join(name), bytes, true)
}

// ---------------------------------------------------------------- HTTP

fn client(bounds: Bounds, headers: &[(String, String)]) -> Result<Client, Error> {
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        let unusable = |what: &str| Error::Url(format!("{name:?} is no header: {what}"));
        let mut value = HeaderValue::from_str(value).map_err(|_| unusable("its value"))?;
        value.set_sensitive(true);
        all.append(HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable("its name"))?, value);
    }
    built(Client::builder().timeout(bounds.timeout).redirect(redirect::Policy::limited(5)).default_headers(all))
}

fn built(builder: reqwest::ClientBuilder) -> Result<Client, Error> {
    #[cfg(feature = "tls")]
    let builder = builder.tls_backend_preconfigured(http::tls()?);
    builder.build().map_err(|error| Error::Url(error.without_url().to_string()))
}

/// An HTTP client for a URL of somebody else's choice: `None` for private addresses, unless `inside`.
pub(crate) fn reader(url: &Url, builder: reqwest::ClientBuilder, inside: bool) -> Option<Client> {
    let address = match url.host()? {
        Host::Ipv4(address) => Some(IpAddr::from(address)),
        Host::Ipv6(address) => Some(IpAddr::from(address)),
        Host::Domain(_) => None,
    };
    if !inside && address.is_some_and(|address| !is_public(address)) {
        return None;
    }
    // Names may also resolve to private addresses, and redirections may lead there.
    let builder = if inside {
        builder.redirect(redirect::Policy::limited(5))
    } else {
        // A proxy would resolve names by itself.
        builder.redirect(redirect::Policy::none()).dns_resolver(Arc::new(Outside)).no_proxy()
    };
    built(builder).ok()
}

/// Whether an address is on the public Internet, as far as known here: not in a private network, and not of this machine.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            let shared = a == 100 && b & 0xc0 == 64 || [a, b, c] == [192, 0, 0] || a == 198 && b & 0xfe == 18 || a >= 240;
            let inside = address.is_loopback() || address.is_private() || address.is_link_local() || address.is_unspecified();
            !(inside || shared || a == 0 || address.is_broadcast() || address.is_multicast())
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_public(mapped.into()),
            None => {
                // Translators' addresses (RFC 6052, RFC 8215) end in one of IPv4.
                if let [0x64, 0xff9b, local, .., high, low] = address.segments() {
                    let [a, b] = high.to_be_bytes();
                    let [c, d] = low.to_be_bytes();
                    return local == 0 && is_public(Ipv4Addr::new(a, b, c, d).into());
                }
                let inside = address.is_unique_local() || address.is_unicast_link_local();
                !(inside || address.is_loopback() || address.is_unspecified() || address.is_multicast())
            }
        },
    }
}

/// Resolves names, without private addresses.
struct Outside;

impl dns::Resolve for Outside {
    fn resolve(&self, name: dns::Name) -> dns::Resolving {
        let host = name.as_str().to_string();
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((host, 0)).await?.filter(|address| is_public(address.ip())).collect();
            if found.is_empty() {
                return Err("its name leads to no address of the Internet".into());
            }
            Ok(Box::new(found.into_iter()) as dns::Addrs)
        })
    }
}

pub(crate) fn below(url: &Url, name: &str) -> Url {
    let mut url = url.clone();
    let path = format!("{}/{name}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}

async fn download(request: reqwest::RequestBuilder) -> Result<Pieces, Trouble> {
    let answer = request.send().await.map_err(broken)?;
    match answer.status() {
        StatusCode::NOT_FOUND | StatusCode::GONE => Err(Trouble::Missing),
        StatusCode::OK => Ok(pieces(answer)),
        other => Err(Trouble::Unreachable(format!("HTTP {}", other.as_u16()))),
    }
}

fn pieces(answer: Response) -> Pieces {
    Box::pin(stream::try_unfold(answer, |mut answer| async move {
        Ok(answer.chunk().await.map_err(broken)?.map(|piece| (piece, answer)))
    }))
}

/// Sends a request that changes an object.
async fn accepted(request: reqwest::RequestBuilder) -> Result<(), Trouble> {
    let status = request.send().await.map_err(broken)?.status();
    match status {
        _ if status.is_success() => Ok(()),
        StatusCode::NOT_FOUND | StatusCode::GONE => Err(Trouble::Missing),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
            Err(Trouble::ReadOnly(format!("HTTP {}", status.as_u16())))
        }
        _ => Err(Trouble::Unreachable(format!("HTTP {}", status.as_u16()))),
    }
}

fn broken(error: reqwest::Error) -> Trouble {
    Trouble::Unreachable(http::reason(error))
}

async fn within<T>(patience: Duration, work: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
    let slow = |_| Err(Trouble::Unreachable(format!("no answer within {patience:?}")));
    timeout(patience, work).await.unwrap_or_else(slow)
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
    fn strangers_names_lead_nowhere_private() {
        let public = |text: &str| is_public(text.parse().unwrap());
        for inside in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "::",
            "fd00::1",
            "fe80::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::808:808",
        ] {
            assert!(!public(inside), "{inside}");
        }
        for outside in
            ["8.8.8.8", "100.128.0.1", "198.20.0.1", "192.0.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
        {
            assert!(public(outside), "{outside}");
        }
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
