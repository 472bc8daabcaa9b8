//! JSON-RPC 2.0 over HTTP and WebSocket, both on one port.
//!
//! | module | contents |
//! | --- | --- |
//! | here | the envelope: one request or a batch, and its workers |
//! | `server` | HTTP |
//! | `socket` | WebSocket and subscriptions |
//! | `eth`, `debug`, `dev` | the methods |
//! | `past` | blocks from before a copy of another chain began |
//! | `filters` | filters that are polled |
//! | [`types`] | types on the wire where Arbitrum differs from Ethereum |
//! | [`error`] | go-ethereum's codes and words |
//!
//! The envelope is read here and not by a JSON-RPC framework, because frameworks answer with their own codes and
//! words, and clients compare those with go-ethereum's.

mod debug;
mod dev;
pub mod error;
mod eth;
mod failure;
mod filters;
mod params;
mod past;
mod server;
mod socket;
pub mod types;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::value::{to_raw_value, RawValue};
use tokio::sync::Semaphore;

use crate::chain::Chain;
use crate::fork;
use error::RpcError;
use params::Params;
pub(crate) use server::serve;

/// Largest request body and WebSocket message, in bytes: go-ethereum's limit.
pub const MAX_BODY: usize = 5 * 1024 * 1024;
/// Most requests in one batch: go-ethereum's limit.
pub const MAX_BATCH: usize = 1_000;
/// Bytes of results after which the rest of a batch is refused: go-ethereum's limit.
pub const MAX_BATCH_ANSWER: usize = 25_000_000;
/// How long the node waits for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The head of a request, and the next request on a connection that is kept.
    pub head: Duration,
    /// The body that the head has announced.
    pub body: Duration,
    /// The transactions before one whose nonce is ahead of its account. A client that sends several at once over several
    /// connections cannot know in which order they arrive.
    pub nonce: Duration,
}

impl Default for Patience {
    /// go-ethereum's figures for head and body.
    fn default() -> Self {
        Self { head: Duration::from_mins(2), body: Duration::from_secs(30), nonce: Duration::from_secs(1) }
    }
}

/// The context that every request needs.
#[derive(Clone)]
pub(crate) struct Context {
    pub chain: Chain,
    pub filters: Arc<filters::Filters>,
    /// The answer of `web3_clientVersion`.
    pub version: Arc<str>,
    pub patience: Patience,
    workers: Arc<Workers>,
}

/// Threads for methods. Each method runs on a thread of its own. Its kind decides how many run at a time, so that a short read finds a
/// thread, and a processor, however many long ones wait.
struct Workers {
    heavy: Arc<Semaphore>,
    writers: Arc<Semaphore>,
}

impl Context {
    pub(crate) fn new(chain: Chain, version: &str, patience: Patience) -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            chain,
            filters: Arc::default(),
            version: version.into(),
            patience,
            workers: Arc::new(Workers {
                heavy: Arc::new(Semaphore::new(processors)),
                // They run one after the other anyway.
                writers: Arc::new(Semaphore::new(2)),
            }),
        }
    }

    /// The queue a method stands in; `None` for one that is short.
    fn queue(&self, method: &str) -> Option<&Arc<Semaphore>> {
        match method {
            "eth_call"
            | "eth_estimateGas"
            | "eth_fillTransaction"
            | "eth_createAccessList"
            | "eth_simulateV1"
            | "eth_getLogs"
            | "eth_getProof"
            | "eth_getFilterLogs" => Some(&self.workers.heavy),
            "eth_sendRawTransaction" | "eth_sendRawTransactionSync" | "eth_sendTransaction" | "eth_signTransaction" => {
                Some(&self.workers.writers)
            }
            other if other.starts_with("debug_") || other.starts_with("muster_") => Some(&self.workers.heavy),
            other if ["evm_", "anvil_", "hardhat_"].iter().any(|dev| other.starts_with(dev)) => Some(&self.workers.writers),
            _ => None,
        }
    }
}

/// A request as it stands in the body; nothing is checked yet.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// `id: null` is an id and wants an answer; only a request without the field is a notification.
fn even_null<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

/// An answer.
#[derive(Serialize)]
struct Answer<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

fn encode(id: Option<&RawValue>, result: Result<Box<RawValue>, RpcError>) -> String {
    let (result, error) = match result {
        Ok(result) => (Some(result), None),
        Err(error) => (None, Some(error)),
    };
    // Strings and raw JSON always serialise.
    serde_json::to_string(&Answer { jsonrpc: "2.0", id, result, error }).unwrap_or_default()
}

/// Answers a body: one request or a batch. `None` if there is nothing to say (notifications only). `subscriptions` are
/// those of a WebSocket.
async fn answer(context: &Context, body: &[u8], mut subscriptions: Option<&mut socket::Subscriptions>) -> Option<String> {
    let Ok(body) = std::str::from_utf8(body) else {
        return Some(encode(None, Err(RpcError::parse())));
    };
    if !body.trim_start().starts_with('[') {
        return match socket::answer(body, subscriptions) {
            Some(answer) => Some(answer),
            None => single(context, body).await,
        };
    }
    let requests: Vec<&RawValue> = match serde_json::from_str(body) {
        Ok(requests) => requests,
        Err(_) => return Some(encode(None, Err(RpcError::parse()))),
    };
    if requests.is_empty() {
        return Some(encode(None, Err(RpcError::invalid_request("empty batch"))));
    }
    if requests.len() > MAX_BATCH {
        // Under the id of the first call: the protocol has no error for a batch as a whole.
        let id = requests.iter().find_map(|request| read(request.get()).ok()?.0);
        return Some(format!("[{}]", encode(id, Err(RpcError::invalid_request("batch too large")))));
    }
    let mut answers = Vec::with_capacity(requests.len());
    let mut bytes = 0;
    for request in requests {
        let answer = if bytes > MAX_BATCH_ANSWER {
            let id = read(request.get()).map_or_else(|(id, _)| id, |(id, _, _)| id);
            id.map(|id| encode(Some(id), Err(RpcError::new(-32003, "response too large"))))
        } else {
            match socket::answer(request.get(), subscriptions.as_deref_mut()) {
                Some(answer) => Some(answer),
                None => single(context, request.get()).await,
            }
        };
        bytes += answer.as_ref().map_or(0, String::len);
        answers.extend(answer);
    }
    (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
}

/// Answers one request.
async fn single(context: &Context, request: &str) -> Option<String> {
    let (id, method, params) = match read(request) {
        Ok(parts) => parts,
        Err((id, error)) => return Some(encode(id, Err(error))),
    };
    let result = run(context, &method, params).await;
    id.map(|id| encode(Some(id), result))
}

type Parts<'a> = (Option<&'a RawValue>, Cow<'a, str>, Option<&'a RawValue>);

/// Checks the envelope. The error comes with the id to answer under.
fn read(request: &str) -> Result<Parts<'_>, (Option<&RawValue>, RpcError)> {
    let invalid = |e: serde_json::Error| {
        // A well-formed document of the wrong shape is an invalid request.
        let error = match e.classify() {
            serde_json::error::Category::Data => RpcError::invalid_request("invalid request"),
            _ => RpcError::parse(),
        };
        (None, error)
    };
    // serde would also read the fields from an array.
    if !request.trim_start().starts_with('{') {
        serde_json::from_str::<serde::de::IgnoredAny>(request).map_err(invalid)?;
        return Err((None, RpcError::invalid_request("invalid request")));
    }
    let envelope: Envelope = serde_json::from_str(request).map_err(|e| {
        // A field of the wrong type is no reason to answer under another id.
        #[derive(Deserialize)]
        struct Id<'a> {
            #[serde(borrow, default)]
            id: Option<&'a RawValue>,
        }
        let id = serde_json::from_str::<Id>(request).ok().and_then(|it| it.id);
        (id.filter(|id| !id.get().starts_with(['{', '['])), invalid(e).1)
    })?;
    let id = envelope.id;
    if id.is_some_and(|id| id.get().starts_with(['{', '['])) {
        return Err((None, RpcError::invalid_request("invalid request")));
    }
    match (envelope.jsonrpc.as_deref(), envelope.method) {
        (Some("2.0"), Some(method)) => Ok((id, method, envelope.params)),
        _ => Err((id, RpcError::invalid_request("invalid request"))),
    }
}

/// Runs a method. Work on the chain goes to a thread of its own: a long call must not stop other connections, and
/// a panic must not stop the node.
async fn run(context: &Context, method: &str, params: Option<&RawValue>) -> Result<Box<RawValue>, RpcError> {
    let params = Params::parse(params)?;
    let deadline = Instant::now() + context.patience.nonce;
    let waits = matches!(method, "eth_sendRawTransaction" | "eth_sendRawTransactionSync" | "eth_sendTransaction");
    let mut blocks = waits.then(|| context.chain.subscribe());
    loop {
        let outcome = {
            let (copy, method, params) = (context.clone(), method.to_owned(), params.clone());
            let turn = match context.queue(&method) {
                // Nobody closes it.
                Some(queue) => Arc::clone(queue).acquire_owned().await.ok(),
                None => None,
            };
            let work = tokio::task::spawn_blocking(move || {
                // The work goes on when its client hangs up, so it keeps its place until it ends.
                let _turn = turn;
                dispatch(&copy, &method, params)
            });
            work.await.map_err(|_| RpcError::internal("method handler crashed"))?
        };
        match outcome {
            Err(failure::Failure::NonceTooHigh(_)) if waits && Instant::now() < deadline => {
                let left = deadline.saturating_duration_since(Instant::now());
                if let Some(blocks) = &mut blocks {
                    // The transaction is tried again after any of them.
                    let _ = tokio::time::timeout(left, blocks.recv()).await;
                }
            }
            Err(failure) => return Err(failure.into()),
            Ok(result) => return Ok(result),
        }
    }
}

/// Runs a method. On a copy of another chain, it also runs those that only that chain can answer, and fails if that chain did not answer in
/// time.
fn dispatch(context: &Context, method: &str, params: Params) -> Result<Box<RawValue>, failure::Failure> {
    if context.chain.fork().is_none() {
        return eth::dispatch(context, method, params);
    }
    let run = || past::answer(&context.chain, method, &params).unwrap_or_else(|| eth::dispatch(context, method, params.clone()));
    fork::checked(run).unwrap_or_else(|reason| Err(RpcError::refused(reason).into()))
}

fn raw<T: Serialize>(value: &T) -> Result<Box<RawValue>, RpcError> {
    to_raw_value(value).map_err(RpcError::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_hangs_up_keeps_its_place_until_its_work_ends() {
        let context = Context::new(Chain::new(crate::chain::Config::default()).unwrap(), "test", Patience::default());
        let heavy = Arc::clone(&context.workers.heavy);
        let all = heavy.available_permits();
        // jumpdest, push0, jump: until all gas is gone.
        let to = "0x7700000000000000000000000000000000000077";
        let params = format!(r#"[{{"to":"{to}"}},"latest",{{"{to}":{{"code":"0x5b5f56"}}}}]"#);
        let params = RawValue::from_string(params).unwrap();
        let hung_up = tokio::time::timeout(Duration::ZERO, run(&context, "eth_call", Some(&*params))).await;
        assert!(hung_up.is_err());
        assert_eq!(heavy.available_permits(), all - 1);
        let freed = tokio::time::timeout(Duration::from_mins(1), heavy.acquire_many(u32::try_from(all).unwrap())).await;
        assert!(freed.is_ok());
    }
}
