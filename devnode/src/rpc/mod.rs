//! JSON-RPC 2.0 over HTTP and WebSocket, both on one port.
//!
//! | module | what it holds |
//! | --- | --- |
//! | here | transport: bodies, batches, the envelope, subscriptions |
//! | [`eth`] | the methods |
//! | [`types`] | what goes over the wire where Arbitrum differs from Ethereum |
//! | [`error`] | go-ethereum's codes and words |
//!
//! The envelope is read here and not by a JSON-RPC framework, because frameworks answer with their own codes and
//! words, and clients compare those with go-ethereum's.

pub mod error;
mod eth;
mod params;
pub mod types;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_primitives::U128;
use alloy_rpc_types_eth::Filter;
use axum::body::{to_bytes, Body};
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{header, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use axum::Router;
use serde::{Deserialize, Serialize};
use serde_json::value::{to_raw_value, RawValue};
use tokio::sync::{broadcast, mpsc};
use tower_http::cors::CorsLayer;

use crate::chain::{Chain, MinedBlock};
use error::RpcError;
use params::Params;

/// Largest request body and WebSocket message, in bytes: go-ethereum's limit.
pub const MAX_BODY: usize = 5 * 1024 * 1024;
/// Most requests in one batch: go-ethereum's limit.
pub const MAX_BATCH: usize = 1_000;
/// How long a transaction whose nonce is ahead of its account waits for the ones before it. A client that sends
/// several at once over several connections cannot know in which order they arrive.
pub const NONCE_PATIENCE: Duration = Duration::from_secs(1);

/// What every request needs.
#[derive(Clone)]
pub(crate) struct Context {
    pub chain: Chain,
    pub filters: Arc<eth::Filters>,
}

/// Serves until it is dropped.
pub(crate) async fn serve(listener: tokio::net::TcpListener, chain: Chain) -> std::io::Result<()> {
    let context = Context { chain, filters: Arc::default() };
    let app = Router::new().fallback(entry).layer(CorsLayer::permissive()).with_state(context);
    // Small answers on a kept connection: waiting to fill a segment would cost 40 ms each.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, app).await
}

/// One HTTP request, or the beginning of a WebSocket.
async fn entry(State(context): State<Context>, request: Request) -> Response {
    if request.headers().contains_key(header::UPGRADE) {
        let (mut parts, _) = request.into_parts();
        return match WebSocketUpgrade::from_request_parts(&mut parts, &context).await {
            Ok(upgrade) => upgrade
                .max_message_size(MAX_BODY)
                .max_frame_size(MAX_BODY)
                .on_upgrade(move |socket| websocket(socket, context)),
            Err(rejection) => rejection.into_response(),
        };
    }
    match *request.method() {
        Method::POST => {}
        // Health checks.
        Method::GET | Method::HEAD => return StatusCode::OK.into_response(),
        _ => return (StatusCode::METHOD_NOT_ALLOWED, "method not allowed").into_response(),
    }
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.parse::<u64>().ok());
    if let Some(length) = announced.filter(|n| *n > MAX_BODY as u64) {
        return too_large(&format!("content length too large ({length}>{MAX_BODY})"));
    }
    let json = request.headers().get(header::CONTENT_TYPE).is_none_or(|v| {
        v.to_str().is_ok_and(|v| v.split(';').next().is_some_and(|v| v.trim().eq_ignore_ascii_case("application/json")))
    });
    if !json {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid content type, only application/json is supported")
            .into_response();
    }
    let Ok(body) = to_bytes(request.into_body(), MAX_BODY).await else {
        return too_large(&format!("content length too large (limit {MAX_BODY})"));
    };
    let answer = answer(&context, &body).await.unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], Body::from(answer)).into_response()
}

fn too_large(reason: &str) -> Response {
    (StatusCode::PAYLOAD_TOO_LARGE, reason.to_owned()).into_response()
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

/// Answers a body: one request or a batch. `None` if there is nothing to say (notifications only).
async fn answer(context: &Context, body: &[u8]) -> Option<String> {
    let body = match std::str::from_utf8(body) {
        Ok(body) => body,
        Err(_) => return Some(encode(None, Err(RpcError::parse()))),
    };
    if !body.trim_start().starts_with('[') {
        return single(context, body).await;
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
    for request in requests {
        answers.extend(single(context, request.get()).await);
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
    let deadline = Instant::now() + NONCE_PATIENCE;
    let waits = matches!(method, "eth_sendRawTransaction" | "eth_sendRawTransactionSync" | "eth_sendTransaction");
    let mut blocks = waits.then(|| context.chain.subscribe());
    loop {
        let (context, method, params) = (context.clone(), method.to_owned(), params.clone());
        let outcome = tokio::task::spawn_blocking(move || eth::dispatch(&context, &method, params))
            .await
            .map_err(|_| RpcError::internal("method handler crashed"))?;
        match outcome {
            Err(eth::Failure::NonceTooHigh(_)) if waits && Instant::now() < deadline => {
                let left = deadline.saturating_duration_since(Instant::now());
                if let Some(blocks) = &mut blocks {
                    // Whatever it brings, the transaction is tried again.
                    let _ = tokio::time::timeout(left, blocks.recv()).await;
                }
            }
            Err(failure) => return Err(failure.into()),
            Ok(result) => return Ok(result),
        }
    }
}

/// What a subscription delivers.
enum Subscription {
    NewHeads,
    Logs(Box<Filter>),
}

/// One WebSocket connection. Requests run beside each other; answers and notifications leave in one order, so that
/// the id of a subscription is known before its first notification.
async fn websocket(mut socket: WebSocket, context: Context) {
    let (out, mut outgoing) = mpsc::unbounded_channel::<String>();
    let mut blocks = context.chain.subscribe();
    let mut subscriptions: HashMap<U128, Subscription> = HashMap::new();
    loop {
        tokio::select! {
            message = socket.recv() => {
                let text = match message {
                    Some(Ok(Message::Text(text))) => text.as_str().to_owned(),
                    Some(Ok(Message::Binary(bytes))) => match String::from_utf8(bytes.to_vec()) {
                        Ok(text) => text,
                        Err(_) => {
                            let _ = out.send(encode(None, Err(RpcError::parse())));
                            continue;
                        }
                    },
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                };
                if let Some(answer) = subscription_request(&text, &mut subscriptions) {
                    let _ = out.send(answer);
                    continue;
                }
                let (context, out) = (context.clone(), out.clone());
                tokio::spawn(async move {
                    if let Some(answer) = answer(&context, text.as_bytes()).await {
                        // The connection may have gone meanwhile.
                        let _ = out.send(answer);
                    }
                });
            }
            Some(answer) = outgoing.recv() => {
                if socket.send(Message::Text(answer.into())).await.is_err() {
                    return;
                }
            }
            block = blocks.recv() => match block {
                Ok(block) => {
                    for (id, subscription) in &subscriptions {
                        notify(*id, subscription, &block, &out);
                    }
                }
                // A client too slow to follow would get holes; go-ethereum drops such a one too.
                Err(broadcast::error::RecvError::Lagged(_)) if !subscriptions.is_empty() => return,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            },
        }
    }
}

/// Handles `eth_subscribe` and `eth_unsubscribe`; `None` for everything else.
fn subscription_request(text: &str, subscriptions: &mut HashMap<U128, Subscription>) -> Option<String> {
    let (id, method, params) = read(text).ok()?;
    let result = match &*method {
        "eth_subscribe" => subscribe(params).map(|subscription| {
            let id = eth::random_id();
            subscriptions.insert(id, subscription);
            id
        }).and_then(|id| raw(&id)),
        "eth_unsubscribe" => Params::parse(params)
            .and_then(|mut params| params.required::<U128>())
            .and_then(|id| match subscriptions.remove(&id) {
                Some(_) => raw(&true),
                None => Err(RpcError::refused("subscription not found")),
            }),
        _ => return None,
    };
    Some(encode(id, result))
}

fn subscribe(params: Option<&RawValue>) -> Result<Subscription, RpcError> {
    let mut params = Params::parse(params)?;
    let kind: String = params.required()?;
    match kind.as_str() {
        "newHeads" => Ok(Subscription::NewHeads),
        "logs" => Ok(Subscription::Logs(Box::new(params.optional()?.unwrap_or_default()))),
        other => Err(RpcError::new(-32601, format!("no \"{other}\" subscription in eth namespace"))),
    }
}

/// Puts what a block means for a subscription into the connection's queue.
fn notify(id: U128, subscription: &Subscription, block: &MinedBlock, out: &mpsc::UnboundedSender<String>) {
    let send = |result: Result<Box<RawValue>, RpcError>| {
        if let Ok(result) = result {
            let _ = out.send(format!(
                r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":"{id:#x}","result":{}}}}}"#,
                result.get()
            ));
        }
    };
    match subscription {
        Subscription::NewHeads => send(raw(&types::head(block))),
        Subscription::Logs(filter) => {
            for log in block.logs().filter(|log| filter.matches(&log.inner)) {
                send(raw(&log));
            }
        }
    }
}

fn raw<T: Serialize>(value: &T) -> Result<Box<RawValue>, RpcError> {
    to_raw_value(value).map_err(RpcError::internal)
}
