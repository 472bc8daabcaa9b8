//! The way to the node or to a store, which can be cut, takes its time, and counts requests over it.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use alloy::rpc::types::Log;
use axum::routing::{self, MethodRouter};
use muster_client::fetcher;
use serde_json::{json, Value};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, sleep_until, Instant};

/// Bytes that every request of JSON-RPC has once; one over WebSocket is masked, and not counted.
const REQUEST: &[u8] = b"\"method\":";

/// A wire from a port of its own to an endpoint.
pub struct Wire {
    /// The URL for agents.
    pub url: String,
    whole: watch::Sender<bool>,
    requests: Arc<AtomicU64>,
}

impl Wire {
    /// To an endpoint of this machine.
    pub async fn start(to: &str) -> Self {
        Self::slow(to, Duration::ZERO).await
    }

    /// The same, on which everything takes so long, each way.
    pub async fn slow(to: &str, delay: Duration) -> Self {
        let to: SocketAddr = to.strip_prefix("http://").unwrap().trim_end_matches('/').parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (whole, state) = watch::channel(true);
        let requests = Arc::new(AtomicU64::new(0));
        let counted = requests.clone();
        tokio::spawn(async move {
            loop {
                let (from, _) = listener.accept().await.unwrap();
                let mut state = state.clone();
                // A connection that comes while it is cut is closed at once.
                if !*state.borrow_and_update() {
                    continue;
                }
                let counted = counted.clone();
                tokio::spawn(async move {
                    let Ok(onward) = TcpStream::connect(to).await else { return };
                    let _ = (from.set_nodelay(true), onward.set_nodelay(true));
                    let ((up, back), (down, forth)) = (from.into_split(), onward.into_split());
                    tokio::select! {
                        // Both, since either side may end its part first.
                        _ = async { tokio::join!(carry(up, forth, delay, Some(&counted)), carry(down, back, delay, None)) } => {}
                        _ = state.wait_for(|whole| !whole) => {}
                    }
                });
            }
        });
        Self { url, whole, requests }
    }

    /// How many requests have gone over it, by HTTP.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Breaks every connection, and lets no new ones through for so long.
    pub async fn cut_for(&mut self, time: Duration) {
        self.is_cut(true);
        sleep(time).await;
        self.is_cut(false);
    }

    /// The same until it is not cut any more.
    pub fn is_cut(&self, cut: bool) {
        self.whole.send_replace(!cut);
    }
}

/// The URL of an endpoint before another, by HTTP. It passes on a request as `change` leaves it, or gives an answer of its own in the error.
pub async fn before<Changed>(to: &str, change: impl Fn(Value) -> Changed + Clone + Send + Sync + 'static) -> String
where
    Changed: Future<Output = Result<Value, Value>> + Send,
{
    serve(passing(to, change)).await
}

/// An endpoint before another, whose WebSocket announces an event again and again, and no block.
pub async fn announcing(to: &str, log: watch::Receiver<Option<Log>>) -> String {
    use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
    let announce = move |upgrade: WebSocketUpgrade| async move {
        upgrade.on_upgrade(async move |mut socket: WebSocket| loop {
            let news = log.borrow().as_ref().map(|log| json!({ "params": { "subscription": "0x1", "result": log } }));
            if let Some(news) = news {
                if socket.send(Message::text(news.to_string())).await.is_err() {
                    return;
                }
            }
            sleep(Duration::from_millis(20)).await;
        })
    };
    serve(passing(to, |asked| async { Ok(asked) }).get(announce)).await
}

/// Passes a request on as `change` leaves it, or gives the answer in the error.
fn passing<Changed>(to: &str, change: impl Fn(Value) -> Changed + Clone + Send + Sync + 'static) -> MethodRouter
where
    Changed: Future<Output = Result<Value, Value>> + Send,
{
    let (client, to) = (fetcher().unwrap(), to.to_string());
    routing::post(move |body: String| {
        let changed = change(serde_json::from_str(&body).unwrap());
        async move {
            match changed.await {
                Ok(asked) => {
                    let asked = client.post(to).header("content-type", "application/json").body(asked.to_string());
                    asked.send().await.unwrap().text().await.unwrap()
                }
                Err(answer) => answer.to_string(),
            }
        }
    })
}

/// The URL of a server of its own.
async fn serve(routes: MethodRouter) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = axum::Router::new().route("/", routes);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    url
}

/// Passes bytes on, each part so much later, until one of the sides has enough.
async fn carry(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, delay: Duration, requests: Option<&AtomicU64>) {
    let (send, mut under_way) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let hear = async move {
        let (mut part, mut seen) = (vec![0; 1 << 16], Vec::new());
        while let Ok(length @ 1..) = from.read(&mut part).await {
            if let Some(requests) = requests {
                seen.extend_from_slice(&part[..length]);
                let found = seen.windows(REQUEST.len()).filter(|window| *window == REQUEST).count();
                requests.fetch_add(found as u64, Ordering::Relaxed);
                // Bytes that may be the beginning of one.
                seen.drain(..seen.len().saturating_sub(REQUEST.len() - 1));
            }
            if send.send((Instant::now() + delay, part[..length].to_vec())).is_err() {
                return;
            }
        }
    };
    let say = async move {
        while let Some((due, part)) = under_way.recv().await {
            sleep_until(due).await;
            if to.write_all(&part).await.is_err() {
                return;
            }
        }
        let _ = to.shutdown().await;
    };
    tokio::join!(hear, say);
}
