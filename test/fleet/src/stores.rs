//! Stores that others run: a server of S3 as a process, and one that speaks like a node of IPFS; both can be away. And some of them that fail
//! in turn.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use alloy::primitives::B256;
use axum::body::{to_bytes, Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{header, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::Router;
use muster_client::{cid_of, digest_of, BLOCK};

use crate::wire::Wire;

/// Where `script/setup` puts the server of S3.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../node_modules/.bin/s3rver");

/// The server's only key, and its secret.
const KEY: &str = "S3RVER";

/// A server of S3 that knows one key, whose signatures it does not check, and that anybody may read: the package `s3rver`.
pub struct S3 {
    child: Child,
    /// Where it is.
    pub url: String,
}

impl S3 {
    /// With a bucket of this name, kept below a directory.
    pub fn start(place: &Path, bucket: &str) -> Self {
        let mut command = Command::new(PathBuf::from(SERVER));
        command.args(["--address", "127.0.0.1", "--port", "0", "--no-vhost-buckets", "--configure-bucket", bucket]);
        command.arg("--directory").arg(place).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{SERVER}: {error}: script/setup installs it"));
        let mut said = String::new();
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let address = loop {
            said.clear();
            assert!(lines.read_line(&mut said).unwrap() > 0, "{SERVER} ended");
            if let Some((_, address)) = said.trim().split_once("listening on ") {
                break address.to_string();
            }
        };
        // Its log of requests is read, or it would wait one day.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Self { child, url: format!("http://{address}") }
    }

    /// A bucket as a store for a client with the keys.
    pub fn store(&self, bucket: &str) -> String {
        signed(&self.url, bucket)
    }

    /// A bucket as others read it.
    pub fn public(&self, bucket: &str) -> String {
        format!("{}/{bucket}", self.url)
    }

    /// The keys, as variables of the environment.
    pub fn keys() -> Vec<(String, String)> {
        let keys = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
        keys.map(|name| (name.to_string(), KEY.to_string())).into()
    }
}

/// A bucket as a store for a client with the keys, by an address of its server.
fn signed(url: &str, bucket: &str) -> String {
    format!("s3://{bucket}?endpoint={url}&region=us-east-1")
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The part of Kubo's RPC API, and of a gateway, that stores use: blocks under CIDs that it computes itself. It stands in for Kubo, which no
/// registry has as a program.
#[derive(Clone, Default)]
pub struct Ipfs(Arc<Mutex<Blocks>>);

#[derive(Default)]
struct Blocks {
    blocks: HashMap<String, Vec<u8>>,
    away: bool,
    lies: bool,
    /// How often it has lied.
    lied: u32,
    slow: std::time::Duration,
}

impl Ipfs {
    /// It, and where it is.
    pub async fn start() -> (Self, String) {
        let node = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(node.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (node, url)
    }

    fn with<T>(&self, change: impl FnOnce(&mut Blocks) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether it answers.
    pub fn is_away(&self, away: bool) {
        self.with(|blocks| blocks.away = away);
    }

    /// Whether it gives other bytes than those it is asked for.
    pub fn lies(&self, lies: bool) {
        self.with(|blocks| blocks.lies = lies);
    }

    /// How often it has done that.
    pub fn lied(&self) -> u32 {
        self.with(|blocks| blocks.lied)
    }

    /// How long it takes before it answers.
    pub fn takes(&self, time: std::time::Duration) {
        self.with(|blocks| blocks.slow = time);
    }

    /// Whether it has the bytes of a digest.
    pub fn has(&self, digest: B256) -> bool {
        self.with(|blocks| blocks.blocks.contains_key(&cid_of(digest)))
    }
}

fn refused(message: &str) -> Response {
    let body = serde_json::json!({ "Message": message, "Code": 0, "Type": "error" });
    (StatusCode::INTERNAL_SERVER_ERROR, body.to_string()).into_response()
}

async fn answer(State(node): State<Ipfs>, request: Request) -> Response {
    tokio::time::sleep(node.with(|blocks| blocks.slow)).await;
    if node.with(|blocks| blocks.away) {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_string();
    let query = parts.uri.query().unwrap_or_default();
    let said = |key: &str| query.split('&').filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == key);
    let argument = said("arg").map_or("", |(_, value)| value).to_string();
    let give = |cid: &str| {
        node.with(|blocks| match blocks.blocks.get(cid) {
            Some(_) if blocks.lies => {
                blocks.lied += 1;
                Some(b"something else".to_vec())
            }
            found => found.cloned(),
        })
    };
    match (parts.method.as_str(), path.as_str()) {
        ("GET", path) => match path.strip_prefix("/ipfs/").and_then(give) {
            Some(bytes) => bytes.into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
        ("POST", "/api/v0/block/put") => {
            if said("cid-codec") != Some(("cid-codec", "raw")) || said("mhtype") != Some(("mhtype", "sha2-256")) {
                return refused("blocks here are raw, by SHA-256");
            }
            let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            let boundary = format!("\r\n--{}--", kind.split_once("boundary=").map_or("", |(_, boundary)| boundary));
            let Ok(body) = to_bytes(body, BLOCK + 4_096).await else { return refused("produced block is over 1MiB") };
            let find = |what: &[u8]| body.windows(what.len()).position(|part| part == what);
            let (Some(head), Some(end)) = (find(b"\r\n\r\n"), find(boundary.as_bytes())) else {
                return refused("no part in it");
            };
            let bytes = body[head + 4..end].to_vec();
            let (cid, length) = (cid_of(digest_of(&bytes)), bytes.len());
            node.with(|blocks| blocks.blocks.insert(cid.clone(), bytes));
            serde_json::json!({ "Key": cid, "Size": length }).to_string().into_response()
        }
        ("POST", "/api/v0/block/get") => match give(&argument) {
            Some(bytes) => Body::from(bytes).into_response(),
            None => refused("block was not found locally (offline): ipld: could not find it"),
        },
        ("POST", "/api/v0/pin/rm") => refused("not pinned or pinned indirectly"),
        ("POST", "/api/v0/block/rm") => {
            node.with(|blocks| blocks.blocks.remove(&argument));
            serde_json::json!({ "Hash": argument }).to_string().into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The bucket of [`Failing`].
const BUCKET: &str = "bytes";

/// How one of [`Failing`] fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The node of IPFS gives other bytes than those it is asked for.
    Lies,
    /// The node of IPFS answers nothing but errors.
    Away,
    /// Connections to one of the two parts of the bucket break.
    Cut(usize),
}

/// The order in which they fail.
const TURNS: [Failure; 4] = [Failure::Lies, Failure::Cut(0), Failure::Away, Failure::Cut(1)];

/// A node of IPFS, and two parts of a bucket with a way to each. One of the three fails at a time.
pub struct Failing {
    _server: S3,
    ways: [Wire; 2],
    /// The node of IPFS.
    pub ipfs: Ipfs,
    gateway: String,
    /// How many failures there have been.
    pub failures: usize,
}

impl Failing {
    /// All three, which work; the bucket's objects are kept below a directory.
    pub async fn start(place: &Path) -> Self {
        let server = S3::start(place, BUCKET);
        let ways = [Wire::start(&server.url).await, Wire::start(&server.url).await];
        let (ipfs, gateway) = Ipfs::start().await;
        Self { _server: server, ways, ipfs, gateway, failures: 0 }
    }

    /// As stores for a client with the keys, each with a path of its own in the bucket: IPFS first.
    pub fn stores(&self, path: &str) -> [String; 3] {
        let [one, other] = [0, 1].map(|part| signed(&self.ways[part].url, &format!("{BUCKET}/{part}/{path}")));
        [format!("kubo+{}", self.gateway), one, other]
    }

    /// The same with the keys in them.
    pub fn stores_with_keys(&self, path: &str) -> [String; 3] {
        let keys = format!("&access_key_id={KEY}&secret_access_key={KEY}");
        self.stores(path).map(|store| if store.starts_with("s3:") { store + &keys } else { store })
    }

    /// The same as others read them.
    pub fn published(&self, path: &str) -> [String; 3] {
        let [one, other] = [0, 1].map(|part| format!("{}/{BUCKET}/{part}/{path}", self.ways[part].url));
        [format!("ipfs+{}", self.gateway), one, other]
    }

    /// One fails, and the others work again.
    pub fn fails(&mut self, failure: Failure) {
        self.failures += 1;
        self.ipfs.lies(failure == Failure::Lies);
        self.ipfs.is_away(failure == Failure::Away);
        for (part, way) in self.ways.iter().enumerate() {
            way.is_cut(failure == Failure::Cut(part));
        }
    }

    /// The next one fails.
    pub fn turn(&mut self) {
        self.fails(TURNS[self.failures % TURNS.len()]);
    }
}

/// A server that keeps PUT objects in memory, and its address.
pub async fn http() -> String {
    let objects = Objects::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(object).with_state(objects);
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

type Objects = Arc<Mutex<HashMap<String, Bytes>>>;

async fn object(State(objects): State<Objects>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_string();
    let kept = || objects.lock().unwrap_or_else(PoisonError::into_inner);
    match parts.method.as_str() {
        "PUT" => match to_bytes(body, usize::MAX).await {
            Ok(bytes) => {
                kept().insert(path, bytes);
                StatusCode::CREATED.into_response()
            }
            Err(_) => StatusCode::BAD_REQUEST.into_response(),
        },
        "GET" => kept().get(&path).cloned().map_or(StatusCode::NOT_FOUND.into_response(), IntoResponse::into_response),
        "DELETE" => kept().remove(&path).map_or(StatusCode::NOT_FOUND, |_| StatusCode::NO_CONTENT).into_response(),
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}
