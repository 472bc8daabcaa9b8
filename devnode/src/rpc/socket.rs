//! WebSocket: requests beside each other, and subscriptions.

use std::collections::HashMap;

use alloy_primitives::U128;
use alloy_rpc_types_eth::Filter;
use axum::extract::ws::{Message, WebSocket};
use serde_json::value::RawValue;
use tokio::sync::{broadcast, mpsc};

use super::error::RpcError;
use super::filters::{covers, random_id};
use super::params::Params;
use super::{encode, eth, raw, read, types, Context};
use crate::chain::MinedBlock;

/// Most requests of one connection in progress, or with answers that have not left yet.
const MAX_IN_FLIGHT: usize = 16;
/// Most subscriptions of one connection.
const MAX_SUBSCRIPTIONS: usize = 1_000;

/// The messages that a subscription delivers.
pub(super) enum Subscription {
    NewHeads,
    Logs(Box<Filter>),
    /// Hashes, or whole transactions.
    Pending {
        whole: bool,
    },
    /// The node never syncs, so it never says anything.
    Syncing,
}

/// Those of one connection.
pub(super) type Subscriptions = HashMap<U128, Subscription>;

/// Serves one connection. Answers and notifications leave in one order, so that the id of a subscription is known
/// before its first notification.
pub(super) async fn serve(mut socket: WebSocket, context: Context) {
    let (out, mut outgoing) = mpsc::unbounded_channel::<Option<String>>();
    let (mut blocks, mut arrivals) = (context.chain.subscribe(), context.chain.subscribe_arrivals());
    let mut subscriptions = Subscriptions::new();
    let mut in_flight = 0;
    loop {
        tokio::select! {
            // A client that does not read answers is not read from either.
            message = socket.recv(), if in_flight < MAX_IN_FLIGHT => {
                let bytes = match message {
                    Some(Ok(Message::Text(text))) => text.as_bytes().to_vec(),
                    Some(Ok(Message::Binary(bytes))) => bytes.to_vec(),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                };
                in_flight += 1;
                if subscribes(&bytes) {
                    let _ = out.send(super::answer(&context, &bytes, Some(&mut subscriptions)).await);
                    continue;
                }
                let (context, out) = (context.clone(), out.clone());
                tokio::spawn(async move {
                    // The connection may have gone meanwhile.
                    let _ = out.send(super::answer(&context, &bytes, None).await);
                });
            }
            Some(answer) = outgoing.recv() => {
                in_flight -= 1;
                if let Some(answer) = answer {
                    if socket.send(Message::Text(answer.into())).await.is_err() {
                        return;
                    }
                }
            }
            block = blocks.recv() => match block {
                Ok(block) => {
                    for text in subscriptions.iter().flat_map(|(id, subscription)| of_block(*id, subscription, &block)) {
                        if socket.send(Message::Text(text.into())).await.is_err() {
                            return;
                        }
                    }
                }
                // A client too slow to follow would get holes; go-ethereum drops such a one too.
                Err(broadcast::error::RecvError::Lagged(_)) if !subscriptions.is_empty() => return,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            },
            arrival = arrivals.recv() => match arrival {
                Ok(tx) => {
                    for (id, subscription) in &subscriptions {
                        let Subscription::Pending { whole } = subscription else { continue };
                        let shown = if *whole { raw(&types::waiting(&tx)) } else { raw(tx.tx_hash()) };
                        let Some(text) = notification(*id, shown) else { continue };
                        if socket.send(Message::Text(text.into())).await.is_err() {
                            return;
                        }
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) if !subscriptions.is_empty() => return,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            },
        }
    }
}

/// Whether a message may concern subscriptions. It is then worked on before anything else is sent.
fn subscribes(message: &[u8]) -> bool {
    let (first, second) = (b"eth_subscribe".as_slice(), b"eth_unsubscribe".as_slice());
    message.windows(first.len()).any(|w| w == first) || message.windows(second.len()).any(|w| w == second)
}

/// Answers `eth_subscribe` and `eth_unsubscribe`; `None` for everything else, and where there is no connection that
/// notifications could go to.
pub(super) fn answer(request: &str, subscriptions: Option<&mut Subscriptions>) -> Option<String> {
    let subscriptions = subscriptions?;
    let (id, method, params) = read(request).ok()?;
    let result = match &*method {
        "eth_subscribe" => subscribe(params, subscriptions).and_then(|id| raw(&id)),
        "eth_unsubscribe" => Params::parse(params)
            .and_then(|mut params| {
                let id = params.required::<U128>()?;
                params.end()?;
                Ok(id)
            })
            .and_then(|id| match subscriptions.remove(&id) {
                Some(_) => raw(&true),
                None => Err(RpcError::refused("subscription not found")),
            }),
        _ => return None,
    };
    Some(encode(id, result))
}

fn subscribe(params: Option<&RawValue>, subscriptions: &mut Subscriptions) -> Result<U128, RpcError> {
    let mut params = Params::parse(params)?;
    let kind: String = params.required()?;
    let subscription = match kind.as_str() {
        "newHeads" => Subscription::NewHeads,
        "logs" => Subscription::Logs(Box::new(eth::checked(params.optional()?.unwrap_or_default())?)),
        "newPendingTransactions" => Subscription::Pending { whole: params.optional()?.unwrap_or(false) },
        "syncing" => Subscription::Syncing,
        other => return Err(RpcError::new(-32601, format!("no \"{other}\" subscription in eth namespace"))),
    };
    params.end()?;
    if subscriptions.len() >= MAX_SUBSCRIPTIONS {
        return Err(RpcError::refused(format!("at most {MAX_SUBSCRIPTIONS} subscriptions on one connection")));
    }
    let id = random_id();
    subscriptions.insert(id, subscription);
    Ok(id)
}

/// The messages of a block for a subscription.
fn of_block(id: U128, subscription: &Subscription, block: &MinedBlock) -> Vec<String> {
    match subscription {
        Subscription::NewHeads => notification(id, raw(&types::head(block))).into_iter().collect(),
        Subscription::Logs(filter) if !covers(filter, block) => Vec::new(),
        Subscription::Logs(filter) => {
            block.logs().filter(|log| filter.matches(&log.inner)).filter_map(|log| notification(id, raw(log))).collect()
        }
        Subscription::Pending { .. } | Subscription::Syncing => Vec::new(),
    }
}

fn notification(id: U128, result: Result<Box<RawValue>, RpcError>) -> Option<String> {
    Some(format!(
        r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":"{id:#x}","result":{}}}}}"#,
        result.ok()?.get()
    ))
}
