//! Models from Hugging Face, or from a server with the same interface: by commit, resumed after an interruption, and compared with the
//! hub's digests. The folder keeps within its limit: the least recently used models go first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{bail, ensure, Context, Result};
use muster_client::alloy::hex;
use muster_client::{Error, Lock};
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Client, StatusCode};
use ring::digest::{Context as Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use serde::Deserialize;
use tokio::time::{sleep, timeout};

use crate::say;

/// How often a file's download is resumed without progress.
const TRIES: u32 = 5;
/// How often a download that waits for another looks whether that has ended.
const WAIT: Duration = Duration::from_millis(500);
/// The rest after a try with progress, doubled with each one without.
const REST: Duration = Duration::from_millis(500);
/// The longest list of files that is read, in bytes.
const LIST: usize = 16 << 20;
/// The longest path of a file in a repository, in bytes, and the most files.
const PATH: usize = 512;
/// See `PATH`.
const FILES: usize = 10_000;
/// Marks a folder that this agent has fetched; its time is when the model was used last.
const USED: &str = "muster-used";
/// The kinds of files that executors read. Others could run code when loaded.
const READ: [&str; 5] = ["safetensors", "json", "txt", "model", "jinja"];
/// A model's weights in one file, which loaders prefer, and the list of those in several.
const WHOLE: &str = "model.safetensors";
/// See `WHOLE`.
const INDEX: &str = "model.safetensors.index.json";

/// The source and the folder of models.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hub {
    /// The folder that executors have as `HF_HOME`.
    pub cache: PathBuf,
    /// The most bytes that all models there may take.
    pub most: u64,
    /// The hub's URL.
    #[serde(default = "face")]
    pub url: String,
    /// The environment variable that holds a token, for models with restricted access.
    pub token_env: Option<String>,
    /// The commits of models whose names lack them (`owner/name@commit`).
    #[serde(default)]
    pub revisions: BTreeMap<String, String>,
}

fn face() -> String {
    "https://huggingface.co".into()
}

/// A repository at a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// As in `owner/name`.
    pub repository: String,
    /// Forty hexadecimal digits.
    pub commit: String,
}

#[derive(Deserialize)]
struct Listed {
    sha: String,
    siblings: Vec<Sibling>,
}

/// A file, as the hub lists it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<Large>,
}

/// The file of each tensor.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Large {
    sha256: String,
    size: u64,
}

impl Sibling {
    fn size(&self) -> Result<u64> {
        let size = self.lfs.as_ref().map(|large| large.size).or(self.size);
        size.with_context(|| format!("the hub does not say how long {} is", self.rfilename))
    }
}

impl Hub {
    /// The repository and commit of a model's name.
    ///
    /// # Errors
    /// If it is no name of a repository, or no commit is known for it: a branch can hold other weights tomorrow.
    pub fn named(&self, name: &str) -> Result<Named> {
        let (repository, commit) = match name.split_once('@') {
            Some((repository, commit)) => (repository, Some(commit.to_string())),
            None => (name, self.revisions.get(name).cloned()),
        };
        let fits = |part: &str| {
            let letters = part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
            !part.is_empty() && letters && !part.starts_with('.') && !part.contains("--")
        };
        let parts: Vec<&str> = repository.split('/').collect();
        ensure!(parts.len() == 2 && parts.iter().all(|part| fits(part)), "{name:?} is no name like owner/name of the hub");
        let commit = commit
            .with_context(|| format!("no commit is known for {name}: write {name}@COMMIT, or set it in [hub.revisions]"))?;
        ensure!(
            commit.len() == 40 && commit.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')),
            "{commit:?} is no commit of 40 digits"
        );
        Ok(Named { repository: repository.into(), commit })
    }

    fn home(&self, repository: &str) -> PathBuf {
        self.cache.join("hub").join(format!("models--{}", repository.replace('/', "--")))
    }

    /// The folder of a model's files once they are there.
    pub fn place(&self, named: &Named) -> PathBuf {
        self.home(&named.repository).join("snapshots").join(&named.commit)
    }

    /// Fetches a model within a time, unless it is there. Returns the names of models removed to make room; never those of `keep`.
    ///
    /// # Errors
    /// If the hub lacks it or sends something else, it takes too long, other downloads before it included, or there is no room.
    pub async fn fetch(&self, name: &str, keep: &BTreeSet<String>, least_free: u64, within: Duration) -> Result<Vec<String>> {
        let there = self.place(&self.named(name)?).is_dir();
        let fetched = async {
            let _turn = if there { None } else { Some(self.turn().await?) };
            self.download(name, keep, least_free).await
        };
        let late = || format!("{name} was not downloaded within {} s", within.as_secs());
        timeout(within, fetched).await.with_context(late)?
    }

    /// Waits for the folder: one download at a time, since nodes of this agent, and `muster-agent fetch` beside it, share files and room.
    async fn turn(&self) -> Result<Lock> {
        let folder = self.folder();
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        loop {
            match Lock::take(&folder) {
                Err(Error::InUse { .. }) => sleep(WAIT).await,
                taken => return Ok(taken?),
            }
        }
    }

    async fn download(&self, name: &str, keep: &BTreeSet<String>, least_free: u64) -> Result<Vec<String>> {
        let named = self.named(name)?;
        let (home, place) = (self.home(&named.repository), self.place(&named));
        if place.is_dir() {
            touch(&home)?;
            return Ok(Vec::new());
        }
        let client = muster_client::fetcher()?;
        let files = self.list(&client, &named).await?;
        let incoming = home.join("incoming").join(&named.commit);
        fs::create_dir_all(&incoming).with_context(|| format!("{} cannot be made", incoming.display()))?;
        // From now on it is marked as fetched by the agent, and can be removed.
        touch(&home)?;
        let mut missing = 0;
        for file in &files {
            let here = length(&incoming.join(&file.rfilename)).max(length(&part(&incoming, file)));
            missing = file.size()?.saturating_sub(here).saturating_add(missing);
        }
        let gone = self.make_room(&named, missing, keep, least_free)?;
        say!("models: {name}: {} files, {} MiB to fetch", files.len(), missing >> 20);
        for file in &files {
            let to = incoming.join(&file.rfilename);
            if length(&to) != file.size()? {
                self.file(&client, &named, file, &incoming).await.with_context(|| format!("{name}: {}", file.rfilename))?;
            }
        }
        let shots = place.parent().context("it has a parent")?;
        fs::create_dir_all(shots)?;
        fs::rename(&incoming, &place)?;
        File::open(shots)?.sync_all()?;
        let _ = fs::remove_dir(home.join("incoming"));
        touch(&home)?;
        Ok(gone)
    }

    fn request(&self, client: &Client, url: &str) -> reqwest::RequestBuilder {
        let request = client.get(url);
        match self.token_env.as_ref().and_then(|name| std::env::var(name).ok()) {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// The files to fetch.
    async fn list(&self, client: &Client, named: &Named) -> Result<Vec<Sibling>> {
        let (base, Named { repository, commit }) = (self.url.trim_end_matches('/'), named);
        let text = self.text(client, &format!("{base}/api/models/{repository}/revision/{commit}?blobs=true"), named).await?;
        let listed: Listed = serde_json::from_slice(&text).context("the hub lists no files")?;
        ensure!(listed.sha == *commit, "the hub answers for commit {}, not {commit}", listed.sha);
        ensure!(listed.siblings.len() <= FILES, "more than {FILES} files");
        let has = |name: &str| listed.siblings.iter().any(|file| file.rfilename == name);
        let shards: Option<BTreeSet<String>> = if has(INDEX) && !has(WHOLE) {
            let text = self.text(client, &format!("{base}/{repository}/resolve/{commit}/{INDEX}"), named).await?;
            let index: Index = serde_json::from_slice(&text).with_context(|| format!("{INDEX} lists no weights"))?;
            Some(index.weight_map.into_values().collect())
        } else {
            None
        };
        let files = chosen(&listed.siblings, shards.as_ref())?;
        ensure!(
            files.iter().any(|file| file.rfilename.ends_with(".safetensors")),
            "{repository} has no weights as safetensors, and other files can run code when they are loaded"
        );
        Ok(files)
    }

    /// A text of the hub's about a repository.
    async fn text(&self, client: &Client, url: &str, Named { repository, commit }: &Named) -> Result<Vec<u8>> {
        let mut answer =
            self.request(client, url).send().await.map_err(reqwest::Error::without_url).context("the hub is away")?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                bail!("the hub does not give {repository} to everybody: accept its terms there, and have a token in the variable that `token_env` names")
            }
            StatusCode::NOT_FOUND => bail!("the hub has no {repository} at {commit}"),
            status => bail!("the hub answers {status}"),
        }
        let mut text = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
            ensure!(text.len() + chunk.len() <= LIST, "the hub's list is longer than {LIST} bytes");
            text.extend_from_slice(&chunk);
        }
        Ok(text)
    }

    /// Downloads one file, resuming where it was interrupted.
    async fn file(&self, client: &Client, named: &Named, file: &Sibling, incoming: &Path) -> Result<()> {
        let (to, part, size) = (incoming.join(&file.rfilename), part(incoming, file), file.size()?);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        let (base, Named { repository, commit }) = (self.url.trim_end_matches('/'), named);
        let url = format!("{base}/{repository}/resolve/{commit}/{}", escaped(&file.rfilename));
        let mut tries = 0;
        loop {
            let begun = length(&part);
            let Err(error) = self.more(client, &url, &part, size).await else { break };
            // Tries that make progress do not count.
            tries = if length(&part) > begun { 0 } else { tries + 1 };
            if tries >= TRIES {
                return Err(error);
            }
            say!("models: {}: {error:#}; it is taken up again", file.rfilename);
            sleep(REST * (1 << tries)).await;
        }
        let (checked, path) = (file.clone(), part.clone());
        let right = tokio::task::spawn_blocking(move || is_right(&checked, &path)).await??;
        if !right {
            fs::remove_file(&part)?;
            bail!("its bytes do not have the digest that the hub's list states; it is fetched again next time");
        }
        fs::rename(&part, &to)?;
        Ok(())
    }

    /// Downloads the missing part of a file.
    async fn more(&self, client: &Client, url: &str, part: &Path, size: u64) -> Result<()> {
        let mut have = length(part);
        if have > size {
            fs::remove_file(part)?;
            have = 0;
        }
        if have == size && part.exists() {
            return Ok(());
        }
        let mut request = self.request(client, url);
        if have > 0 {
            request = request.header(RANGE, format!("bytes={have}-"));
        }
        let mut answer = request.send().await.map_err(reqwest::Error::without_url).context("the hub is away")?;
        let resumed = answer.status() == StatusCode::PARTIAL_CONTENT;
        ensure!(resumed || answer.status() == StatusCode::OK, "the hub answers {}", answer.status());
        if resumed {
            let range = answer.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok()).unwrap_or_default();
            ensure!(
                range.starts_with(&format!("bytes {have}-")),
                "the hub sends another part than the one that is missing: {range:?}"
            );
        }
        // A server without ranges sends it from the beginning.
        let mut to = OpenOptions::new().create(true).append(resumed).write(true).truncate(!resumed).open(part)?;
        let mut have = if resumed { have } else { 0 };
        while let Some(chunk) = answer.chunk().await.map_err(reqwest::Error::without_url).context("it was broken off")? {
            have += chunk.len() as u64;
            ensure!(have <= size, "the hub sends more than the {size} bytes that its list says");
            to.write_all(&chunk).context("it cannot be written")?;
        }
        to.sync_all()?;
        ensure!(have == size, "it ended after {have} of {size} bytes");
        Ok(())
    }

    /// Removes the least recently used models until this many more bytes fit, and before them other commits of models that stay. Only
    /// models that this agent has fetched.
    fn make_room(&self, own: &Named, bytes: u64, keep: &BTreeSet<String>, least_free: u64) -> Result<Vec<String>> {
        let models = self.models()?;
        let mut taken: u64 = models.iter().map(|model| model.bytes).sum();
        let mut free = disk_free(&self.cache)?;
        let needs = |taken: u64, free: u64| taken.saturating_add(bytes) > self.most || free < bytes.saturating_add(least_free);
        let stays = |model: &Kept| {
            model.repository == own.repository || keep.iter().any(|name| name.split('@').next() == Some(&model.repository))
        };
        // A name without a known commit could mean any.
        let kept: Vec<_> = keep.iter().map(|name| self.named(name)).chain([Ok(own.clone())]).collect();
        let is_kept = |commit: &str| kept.iter().any(|named| named.as_ref().map_or(true, |named| named.commit == commit));
        for model in models.iter().filter(|model| stays(model)) {
            for (commit, place) in self.commits(&model.repository)? {
                if needs(taken, free) && !is_kept(&commit) {
                    let bytes = bytes_in(&place)?;
                    say!("models: {} goes, {} MiB, to make room", place.display(), bytes >> 20);
                    fs::remove_dir_all(place)?;
                    (taken, free) = (taken - bytes, free + bytes);
                }
            }
        }
        let mut gone = Vec::new();
        for model in models.into_iter().filter(|model| !stays(model)) {
            if !needs(taken, free) {
                break;
            }
            say!("models: {} goes, {} MiB, to make room", model.repository, model.bytes >> 20);
            fs::remove_dir_all(self.home(&model.repository))?;
            (taken, free) = (taken - model.bytes, free + model.bytes);
            gone.push(model.repository);
        }
        ensure!(
            !needs(taken, free),
            "{} MiB more do not fit: models may take {} MiB (`most`) and take {} MiB, {} MiB are free, of which {} MiB stay free, and all \
             other models are configured",
            bytes >> 20,
            self.most >> 20,
            taken >> 20,
            free >> 20,
            least_free >> 20
        );
        Ok(gone)
    }

    /// The commits of a model that are there, whole or in part, and their folders.
    fn commits(&self, repository: &str) -> Result<Vec<(String, PathBuf)>> {
        let mut found = Vec::new();
        for folder in ["snapshots", "incoming"].map(|folder| self.home(repository).join(folder)) {
            if folder.is_dir() {
                for entry in fs::read_dir(folder)? {
                    let entry = entry?;
                    found.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
                }
            }
        }
        Ok(found)
    }

    /// The folder of the models.
    pub fn folder(&self) -> PathBuf {
        self.cache.join("hub")
    }

    /// The models that this agent has fetched, the least recently used first.
    pub fn models(&self) -> Result<Vec<Kept>> {
        let folder = self.folder();
        if !folder.is_dir() {
            fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(name) = name.strip_prefix("models--") else { continue };
            let Ok(used) = fs::metadata(path.join(USED)).and_then(|mark| mark.modified()) else { continue };
            found.push(Kept { repository: name.replacen("--", "/", 1), bytes: bytes_in(&path)?, used });
        }
        found.sort_by_key(|model| model.used);
        Ok(found)
    }
}

/// A model that is there.
#[derive(Clone, Debug)]
pub struct Kept {
    /// As in `owner/name`.
    pub repository: String,
    /// Its size.
    pub bytes: u64,
    used: SystemTime,
}

/// Notes that a task used models, if the executor's `HF_HOME` is this folder.
pub fn used(home: &Path, models: &[String]) {
    for model in models {
        let name = model.split('@').next().unwrap_or_default().replace('/', "--");
        let place = home.join("hub").join(format!("models--{name}"));
        if place.join(USED).is_file() {
            // A failure only changes which one is removed next.
            let _ = touch(&place);
        }
    }
}

fn touch(home: &Path) -> Result<()> {
    fs::create_dir_all(home)?;
    let mark = File::create(home.join(USED)).with_context(|| format!("{} cannot be written", home.display()))?;
    Ok(mark.set_modified(SystemTime::now())?)
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

fn part(incoming: &Path, file: &Sibling) -> PathBuf {
    incoming.join(format!("{}.part", file.rfilename))
}

fn bytes_in(place: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            bytes += bytes_in(&entry.path())?;
        } else if kind.is_file() {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

fn disk_free(place: &Path) -> Result<u64> {
    let said = rustix::fs::statvfs(place).with_context(|| format!("{} does not say how full it is", place.display()))?;
    Ok(said.f_bavail.saturating_mul(said.f_frsize))
}

/// Whether a path stays below its folder, and cannot be another file's.
fn stays(path: &str) -> bool {
    let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    plain && !path.is_empty() && path.len() <= PATH && !path.contains('\\') && !path.chars().any(char::is_control)
}

/// The files of a repository that executors read: the parts of a pipeline, of several number types the narrowest, and of a model in shards
/// those of its index.
fn chosen(all: &[Sibling], shards: Option<&BTreeSet<String>>) -> Result<Vec<Sibling>> {
    if let Some(odd) = all.iter().find(|file| !stays(&file.rfilename)) {
        bail!("the hub lists a file {:?}", odd.rfilename);
    }
    let is_pipeline = all.iter().any(|file| file.rfilename == "model_index.json");
    let has_narrow = all.iter().any(|file| file.rfilename.ends_with(".fp16.safetensors"));
    let reads = |file: &&Sibling| {
        let name = file.rfilename.as_str();
        let weights = name.ends_with(".safetensors");
        let known = Path::new(name).extension().and_then(|end| end.to_str()).is_some_and(|end| READ.contains(&end));
        // Single-file copies of a pipeline, and files in the makers' own format.
        let copy = weights
            && ((is_pipeline && !name.contains('/'))
                || name.starts_with("original/")
                || name.starts_with("consolidated")
                || (!is_pipeline && shards.is_some_and(|shards| !shards.contains(name)))
                || (is_pipeline && has_narrow && !name.contains(".fp16.")));
        known && !copy
    };
    Ok(all.iter().filter(reads).cloned().collect())
}

/// A path as a URL has it.
fn escaped(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Whether a file matches the hub's list: SHA-256 for large files, git's digest for others.
fn is_right(file: &Sibling, path: &Path) -> Result<bool> {
    let (mut digest, expected) = match (&file.lfs, &file.blob_id) {
        (Some(large), _) => (Digest::new(&SHA256), large.sha256.clone()),
        (None, Some(blob)) => {
            let mut digest = Digest::new(&SHA1_FOR_LEGACY_USE_ONLY);
            digest.update(format!("blob {}\0", length(path)).as_bytes());
            (digest, blob.clone())
        }
        (None, None) => bail!("the hub states no digest of it"),
    };
    let (mut from, mut bytes) = (File::open(path)?, vec![0; 1 << 20]);
    loop {
        match from.read(&mut bytes)? {
            0 => break,
            read => digest.update(&bytes[..read]),
        }
    }
    Ok(hex::encode(digest.finish().as_ref()) == expected)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::{Arc, Mutex};

    use axum::body::Bytes;
    use axum::extract::{Path as At, State};
    use axum::http::{HeaderMap, StatusCode};
    use axum::response::IntoResponse;
    use axum::routing::get;
    use axum::Router;

    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    const HOUR: Duration = Duration::from_hours(1);

    /// A hub with the parts of Hugging Face's interface that are used: a list with digests, files with ranges. `cuts` end the next answers early.
    #[derive(Default)]
    struct Served {
        files: Vec<(&'static str, Vec<u8>, bool)>,
        cuts: Vec<usize>,
        asked: usize,
        ranges: Vec<String>,
        wrong: bool,
    }

    type Shared = Arc<Mutex<Served>>;

    fn sha(algorithm: &'static ring::digest::Algorithm, parts: &[&[u8]]) -> String {
        let mut digest = Digest::new(algorithm);
        parts.iter().for_each(|part| digest.update(part));
        hex::encode(digest.finish().as_ref())
    }

    async fn list(State(served): State<Shared>, At((_, name, commit)): At<(String, String, String)>) -> impl IntoResponse {
        if name == "gone" || commit != COMMIT {
            return (StatusCode::NOT_FOUND, String::new());
        }
        let files: Vec<_> = served
            .lock()
            .unwrap()
            .files
            .iter()
            .map(|(name, bytes, large)| {
                let git = sha(&SHA1_FOR_LEGACY_USE_ONLY, &[format!("blob {}\0", bytes.len()).as_bytes(), bytes]);
                let lfs = large
                    .then(|| serde_json::json!({ "sha256": sha(&SHA256, &[bytes]), "size": bytes.len(), "pointerSize": 134 }));
                serde_json::json!({ "rfilename": name, "size": bytes.len(), "blobId": git, "lfs": lfs })
            })
            .collect();
        (StatusCode::OK, serde_json::json!({ "id": name, "sha": commit, "siblings": files }).to_string())
    }

    async fn file(
        State(served): State<Shared>,
        At((_, _, _, path)): At<(String, String, String, String)>,
        head: HeaderMap,
    ) -> impl IntoResponse {
        let mut served = served.lock().unwrap();
        let bytes = served.files.iter().find(|(name, ..)| *name == path).map(|(_, bytes, _)| bytes.clone()).unwrap();
        let from: usize = head.get(RANGE).map_or(0, |range| {
            let range = range.to_str().unwrap().to_string();
            served.ranges.push(range.clone());
            range.strip_prefix("bytes=").unwrap().trim_end_matches('-').parse().unwrap()
        });
        let mut rest = bytes[from..].to_vec();
        if served.wrong {
            rest[0] ^= 1;
        }
        served.asked += 1;
        if !served.cuts.is_empty() {
            rest.truncate(served.cuts.remove(0));
        }
        let status = if from > 0 { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
        (status, [(CONTENT_RANGE, format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len()))], Bytes::from(rest))
    }

    async fn serve(served: Shared) -> SocketAddr {
        let app = Router::new()
            .route("/api/models/{owner}/{name}/revision/{commit}", get(list))
            .route("/{owner}/{name}/resolve/{commit}/{*path}", get(file))
            .with_state(served);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        at
    }

    fn hub(at: SocketAddr, cache: &Path, most: u64) -> Hub {
        Hub { cache: cache.into(), most, url: format!("http://{at}/"), token_env: None, revisions: BTreeMap::new() }
    }

    fn weights() -> Vec<u8> {
        (0..300_000u32).map(|n| (n * 7 % 251) as u8).collect()
    }

    fn model() -> Vec<(&'static str, Vec<u8>, bool)> {
        vec![
            ("config.json", b"{}".to_vec(), false),
            ("model.safetensors", weights(), true),
            ("pytorch_model.bin", b"pickle".to_vec(), true),
            ("modeling.py", b"code".to_vec(), false),
            ("original/model.safetensors", b"copy".to_vec(), true),
        ]
    }

    #[tokio::test]
    async fn a_model_is_fetched_resumed_and_checked() {
        let (place, served) = (tempfile::tempdir().unwrap(), Shared::default());
        served.lock().unwrap().files = model();
        let hub = hub(serve(served.clone()).await, place.path(), 1 << 30);
        let name = format!("us/small@{COMMIT}");
        // Interrupted once, by a server that announces less than the list says: the download resumes.
        let broken = hub.place(&hub.named(&name).unwrap());
        let part = place.path().join(format!("hub/models--us--small/incoming/{COMMIT}/model.safetensors.part"));
        fs::create_dir_all(part.parent().unwrap()).unwrap();
        fs::write(&part, &weights()[..100_000]).unwrap();
        assert!(hub.fetch(&name, &BTreeSet::new(), 0, HOUR).await.unwrap().is_empty());
        assert_eq!(served.lock().unwrap().ranges, ["bytes=100000-"]);
        let mut there: Vec<_> =
            fs::read_dir(&broken).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        there.sort();
        assert_eq!(there, ["config.json", "model.safetensors"], "no code, no pickle, no copy");
        assert_eq!(fs::read(broken.join("model.safetensors")).unwrap(), weights());
        // Already there: no request is made.
        served.lock().unwrap().files.clear();
        hub.fetch(&name, &BTreeSet::new(), 0, HOUR).await.unwrap();
        for (wrong, why) in [
            ("us/small", "no commit is known"),
            ("us/small@main", "no commit of 40 digits"),
            ("small@0", "no name like"),
            ("../x@0", "no name like"),
            ("a/b/c@0", "no name like"),
        ] {
            let error = hub.fetch(wrong, &BTreeSet::new(), 0, HOUR).await.unwrap_err().to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
        let error = hub.fetch(&format!("us/gone@{COMMIT}"), &BTreeSet::new(), 0, HOUR).await.unwrap_err().to_string();
        assert!(error.contains("the hub has no us/gone"), "{error}");
    }

    #[tokio::test]
    async fn of_a_model_in_shards_only_those_of_its_index_are_fetched() {
        let (place, served) = (tempfile::tempdir().unwrap(), Shared::default());
        let index =
            br#"{"metadata":{},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}"#;
        let files = [
            ("config.json", b"{}".to_vec(), false),
            (INDEX, index.to_vec(), false),
            ("model-00001-of-00002.safetensors", weights(), true),
            ("model-00002-of-00002.safetensors", weights(), true),
            ("consolidated.safetensors", weights(), true),
            ("adapter/other.safetensors", weights(), true),
        ];
        served.lock().unwrap().files = files.to_vec();
        let hub = hub(serve(served.clone()).await, place.path(), 1 << 30);
        let fetched = async |name: &str| {
            let name = format!("us/{name}@{COMMIT}");
            hub.fetch(&name, &BTreeSet::new(), 0, HOUR).await.unwrap();
            let there = fs::read_dir(hub.place(&hub.named(&name).unwrap())).unwrap();
            there.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<BTreeSet<_>>()
        };
        assert_eq!(fetched("shards").await, files[..4].iter().map(|(name, ..)| (*name).to_string()).collect::<BTreeSet<_>>());
        // Loaders prefer a single file, so the index says nothing then; a copy in the makers' format is left out all the same.
        served.lock().unwrap().files = vec![(WHOLE, weights(), true), files[1].clone(), files[4].clone()];
        assert_eq!(fetched("whole").await, BTreeSet::from([WHOLE.to_string(), INDEX.to_string()]));
        served.lock().unwrap().files = vec![(INDEX, b"{}".to_vec(), false), files[2].clone()];
        let error = hub.fetch(&format!("us/odd@{COMMIT}"), &BTreeSet::new(), 0, HOUR).await.unwrap_err();
        assert!(error.to_string().contains("lists no weights"), "{error:#}");
    }

    #[tokio::test]
    async fn what_ends_early_is_taken_up_and_what_is_wrong_is_not_kept() {
        let (place, served) = (tempfile::tempdir().unwrap(), Shared::default());
        served.lock().unwrap().files = vec![("model.safetensors", weights(), true)];
        served.lock().unwrap().cuts = vec![123_456];
        let hub = hub(serve(served.clone()).await, place.path(), 1 << 30);
        hub.fetch(&format!("us/small@{COMMIT}"), &BTreeSet::new(), 0, HOUR).await.unwrap();
        assert_eq!(served.lock().unwrap().ranges, ["bytes=123456-"]);
        served.lock().unwrap().wrong = true;
        let other = format!("us/other@{COMMIT}");
        let error = format!("{:#}", hub.fetch(&other, &BTreeSet::new(), 0, HOUR).await.unwrap_err());
        assert!(error.contains("do not have the digest that the hub's list states"), "{error}");
        assert!(!hub.place(&hub.named(&other).unwrap()).exists());
        served.lock().unwrap().wrong = false;
        hub.fetch(&other, &BTreeSet::new(), 0, HOUR).await.unwrap();
        // A list that leads out of the folder, and a repository without safe weights.
        served.lock().unwrap().files = vec![("../../x.safetensors", weights(), true)];
        let error = hub.fetch(&format!("us/odd@{COMMIT}"), &BTreeSet::new(), 0, HOUR).await.unwrap_err().to_string();
        assert!(error.contains("the hub lists a file"), "{error}");
        served.lock().unwrap().files = vec![("pytorch_model.bin", weights(), true)];
        let error = hub.fetch(&format!("us/odd@{COMMIT}"), &BTreeSet::new(), 0, HOUR).await.unwrap_err().to_string();
        assert!(error.contains("no weights as safetensors"), "{error}");
    }

    #[tokio::test]
    async fn the_folder_is_bounded_and_the_least_lately_used_goes_first() {
        let (place, served) = (tempfile::tempdir().unwrap(), Shared::default());
        served.lock().unwrap().files = vec![("model.safetensors", weights(), true)];
        // Two fit, and not three.
        let hub = hub(serve(served.clone()).await, place.path(), 700_000);
        let fetch = async |name: &str, keep: &[&str]| {
            hub.fetch(&format!("us/{name}@{COMMIT}"), &keep.iter().map(|name| format!("us/{name}")).collect(), 0, HOUR).await
        };
        let age = |name: &str, seconds| {
            let mark = File::open(place.path().join(format!("hub/models--us--{name}/{USED}"))).unwrap();
            mark.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        };
        let others = place.path().join("hub/models--them--big");
        fs::create_dir_all(&others).unwrap();
        fs::write(others.join("model.safetensors"), weights()).unwrap();
        fetch("a", &[]).await.unwrap();
        fetch("b", &[]).await.unwrap();
        age("a", 100);
        age("b", 50);
        // A task uses the older one.
        used(place.path(), &["us/a".into(), "us/nothing".into()]);
        assert_eq!(fetch("c", &[]).await.unwrap(), ["us/b"]);
        assert_eq!(hub.models().unwrap().iter().map(|model| model.repository.as_str()).collect::<Vec<_>>(), ["us/a", "us/c"]);
        let error = fetch("d", &["a", "c"]).await.unwrap_err().to_string();
        assert!(error.contains("do not fit"), "{error}");
        assert_eq!(fetch("d", &["a"]).await.unwrap(), ["us/c"]);
        assert!(others.exists(), "what others have put there is theirs");
        let error = hub.fetch(&format!("us/e@{COMMIT}"), &BTreeSet::new(), u64::MAX / 2, HOUR).await.unwrap_err().to_string();
        assert!(error.contains("stay free"), "{error}");
    }

    /// Two nodes with a card each, say.
    #[tokio::test]
    async fn a_model_that_two_ask_for_is_fetched_once() {
        let (place, served) = (tempfile::tempdir().unwrap(), Shared::default());
        served.lock().unwrap().files = vec![("model.safetensors", weights(), true)];
        let hub = hub(serve(served.clone()).await, place.path(), 1 << 30);
        let name = format!("us/small@{COMMIT}");
        let (one, other) = (hub.clone(), hub.clone());
        let nothing = BTreeSet::new();
        let both = tokio::join!(one.fetch(&name, &nothing, 0, HOUR), other.fetch(&name, &nothing, 0, HOUR));
        assert!(both.0.is_ok() && both.1.is_ok(), "{both:?}");
        assert_eq!(served.lock().unwrap().asked, 1);
        // A task waits for another's download as long as it may last; a model that is there is not waited for.
        let _turn = hub.turn().await.unwrap();
        assert!(hub.fetch(&name, &nothing, 0, HOUR).await.unwrap().is_empty());
        let late = hub.fetch(&format!("us/other@{COMMIT}"), &nothing, 0, Duration::from_millis(50)).await.unwrap_err();
        assert!(late.to_string().contains("was not downloaded within"), "{late:#}");
    }

    /// Weights that are published anew must not fill the folder with all that were before.
    #[tokio::test]
    async fn a_former_commit_goes_before_other_models() {
        let (place, served) = (tempfile::tempdir().unwrap(), Shared::default());
        served.lock().unwrap().files = vec![("model.safetensors", weights(), true)];
        let hub = hub(serve(served.clone()).await, place.path(), 1_000_000);
        let (old, begun) = ("f".repeat(40), "e".repeat(40));
        let home = place.path().join("hub/models--us--a");
        for folder in [home.join("snapshots").join(&old), home.join("incoming").join(&begun)] {
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("model.safetensors"), weights()).unwrap();
        }
        touch(&home).unwrap();
        let name = |name: &str| format!("us/{name}@{COMMIT}");
        let keep = BTreeSet::from([name("a"), name("b")]);
        assert!(hub.fetch(&name("b"), &keep, 0, HOUR).await.unwrap().is_empty());
        assert_eq!(hub.commits("us/a").unwrap().len(), 2, "there is room");
        assert!(hub.fetch(&name("a"), &keep, 0, HOUR).await.unwrap().is_empty());
        let there = hub.commits("us/a").unwrap();
        assert!(there.iter().any(|(commit, _)| commit == COMMIT) && there.len() == 2, "{there:?}");
        assert!(hub.place(&hub.named(&name("b")).unwrap()).exists());
    }

    /// A line that breaks often must not keep a large model from ever being whole.
    #[tokio::test]
    async fn only_tries_without_progress_are_counted() {
        let (place, served) = (tempfile::tempdir().unwrap(), Shared::default());
        served.lock().unwrap().files = vec![("model.safetensors", weights(), true)];
        served.lock().unwrap().cuts = [[1_000; TRIES as usize].as_slice(), &[0]].concat();
        let hub = hub(serve(served.clone()).await, place.path(), 1 << 30);
        hub.fetch(&format!("us/small@{COMMIT}"), &BTreeSet::new(), 0, HOUR).await.unwrap();
        served.lock().unwrap().cuts = vec![0; TRIES as usize];
        let error = hub.fetch(&format!("us/other@{COMMIT}"), &BTreeSet::new(), 0, HOUR).await.unwrap_err();
        assert!(format!("{error:#}").contains("it ended after 0 of"), "{error:#}");
    }
}
