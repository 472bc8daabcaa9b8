//! The agent's health: for Prometheus, and for supervisors that restart a hanging process.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::extract::State;
use axum::http::{header, HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::get;
use axum::Router;
use muster_client::observe;
use tokio::net::TcpListener;

use crate::metrics::{Metrics, OfNode};
use crate::shared::Shared;
use crate::stream::Doors;

/// Connections at a time: each takes a file of those that the agent may open.
const MOST: usize = 32;

/// Opens the address to serve at, or returns the reason why it cannot.
pub async fn listen(at: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(at).await.with_context(|| format!("cannot serve metrics at {at} (`listen`)"))
}

/// Serves `/metrics`, `/health` (every node has looked at the chain recently) and `/ready` (every node can take tasks).
pub async fn serve(shared: Arc<Shared>, listener: TcpListener) -> Result<()> {
    let app = Router::new()
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .layer(map_response(once))
        .with_state(shared);
    Ok(axum::serve(Doors::of(listener, MOST), app).await?)
}

/// Leaves room for the next one who asks.
async fn once(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn metrics(State(shared): State<Arc<Shared>>) -> ([(header::HeaderName, &'static str); 1], String) {
    let Metrics(metrics) = &*shared.metrics;
    let (chain, contract) = (shared.chain_id.to_string(), shared.config.muster.to_string());
    metrics.set("info", &[("chain", &chain), ("contract", &contract), ("version", env!("CARGO_PKG_VERSION"))], 1.0);
    if let Some(streams) = &shared.streams {
        let (open, readers) = streams.seen();
        metrics.set("streams_open", &[], open as f64);
        metrics.set("stream_readers", &[], readers as f64);
    }
    for endpoint in shared.chain.muster.endpoints().standing() {
        metrics.set("endpoint_up", &[("endpoint", &endpoint.node)], f64::from(u8::from(endpoint.fault.is_none())));
    }
    ([(header::CONTENT_TYPE, observe::CONTENT_TYPE)], metrics.text())
}

/// Lists each node's problem.
fn say_of_all(shared: &Shared, wrong: impl Fn(&str) -> Option<String>) -> (StatusCode, String) {
    let all: Vec<String> =
        shared.config.nodes.iter().filter_map(|node| wrong(&node.name).map(|what| format!("{}: {what}", node.name))).collect();
    if all.is_empty() {
        (StatusCode::OK, "ok\n".into())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, all.join("\n") + "\n")
    }
}

async fn health(State(shared): State<Arc<Shared>>) -> (StatusCode, String) {
    // Transactions are waited for, and golden tasks at the start.
    let most = 300 + 5 * shared.config.look_every;
    say_of_all(&shared, |node| {
        let ago = OfNode(&shared.metrics, node).last_looked().map_or(u64::MAX, |ago| ago.as_secs());
        (ago > most).then(|| format!("has not looked at the chain for {ago} s"))
    })
}

async fn ready(State(shared): State<Arc<Shared>>) -> (StatusCode, String) {
    say_of_all(&shared, |node| (OfNode(&shared.metrics, node).get("ready") != Some(1.0)).then(|| "cannot take tasks".into()))
}
