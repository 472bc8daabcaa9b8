//! The chain's progress: WebSocket connections that announce blocks and events, or an estimate of the time between blocks.
//! Announcements are only hints: the reader asks for the contents.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use alloy::primitives::{Address, B256, U64};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{connect_async_tls_with_config, Connector};
use url::Url;

use crate::abi::{self, Event};
use crate::{http, Error};

/// The time without a word after which a connection is pinged; it has as long again to answer.
const SILENCE: Duration = Duration::from_secs(30);
/// The time without a block after which a node is asked for its newest.
const STOPPED: Duration = Duration::from_secs(3);
/// The longest message that is read, in bytes.
const LONGEST: usize = 1 << 20;
/// Events buffered for each listener; a slower one misses some, and must ask for them itself.
const WAITING: usize = 1_024;
/// The assumed time of a block before one was measured: Arbitrum One's.
const USUAL: Duration = Duration::from_millis(250);
/// The bounds of the assumed time of a block, also for measured ones.
const BOUNDS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(15));
/// The window in which blocks are counted: long, so that a late block changes little.
const OVER: Duration = Duration::from_secs(2);

/// The newest block known, and the time between two.
#[derive(Default)]
struct Pace {
    /// The first block counted, and its time.
    since: Option<(u64, Instant)>,
    every: Option<Duration>,
}

impl Pace {
    fn note(&mut self, number: u64, at: Instant) {
        let Some((first, begun)) = self.since else {
            self.since = Some((number, at));
            return;
        };
        let (blocks, time) = (number.saturating_sub(first), at.saturating_duration_since(begun));
        if blocks == 0 || self.every.is_some() && time < OVER {
            return;
        }
        let seen = (time / u32::try_from(blocks).unwrap_or(u32::MAX)).clamp(BOUNDS.0, BOUNDS.1);
        self.every = Some(self.every.map_or(seen, |every| (every * 3 + seen) / 4));
        if time >= OVER {
            self.since = Some((number, at));
        }
    }
}

/// The fields of a block that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    #[serde(deserialize_with = "small")]
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
    #[serde(deserialize_with = "small")]
    /// Seconds since 1970.
    pub timestamp: u64,
    /// The base fee of a unit of gas, in wei.
    #[serde(default, deserialize_with = "maybe_small")]
    pub base_fee_per_gas: Option<u64>,
}

fn small<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    U64::deserialize(from).map(|number| number.to())
}

fn maybe_small<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Option::<U64>::deserialize(from).map(|number| number.map(|number| number.to()))
}

/// The knowledge about the chain's progress. Connections are kept up until the last copy is dropped.
#[derive(Clone)]
pub struct Pulse(Arc<Inner>);

struct Inner {
    pace: Mutex<Pace>,
    /// When a block was last noted.
    noted: Mutex<Option<Instant>>,
    head: watch::Sender<Option<Head>>,
    logs: watch::Sender<u64>,
    events: broadcast::Sender<Event>,
    /// Connections that announce every block.
    live: AtomicUsize,
    tasks: Mutex<JoinSet<()>>,
}

impl Default for Pulse {
    /// Without a connection.
    fn default() -> Self {
        Self(Arc::new(Inner {
            pace: Mutex::default(),
            noted: Mutex::default(),
            head: watch::Sender::new(None),
            logs: watch::Sender::new(0),
            events: broadcast::Sender::new(WAITING),
            live: AtomicUsize::new(0),
            tasks: Mutex::default(),
        }))
    }
}

/// The usual WebSocket address of an endpoint: the same address.
pub(crate) fn beside(url: &Url) -> Option<Url> {
    let mut url = url.clone();
    let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
    url.set_scheme(scheme).ok().map(|()| url)
}

impl Pulse {
    /// Connects to each of the URLs, now and whenever a connection is lost, to hear of blocks and of a contract's events.
    ///
    /// # Errors
    /// [`Error::Url`] if one cannot be read.
    pub fn listen(&self, urls: &[String], contract: Address) -> Result<(), Error> {
        let urls = urls.iter().map(|url| http::parse(url, &["ws", "wss"])).collect::<Result<Vec<_>, _>>()?;
        self.listen_at(urls, contract)
    }

    pub(crate) fn listen_at(&self, urls: Vec<Url>, contract: Address) -> Result<(), Error> {
        let mut tasks = self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for url in urls {
            let connector = connector()?;
            // The tasks end with the last copy, so they must not hold one.
            let inner = Arc::downgrade(&self.0);
            tasks.spawn(async move {
                let mut rest = Duration::from_secs(1);
                loop {
                    let mut heard = Heard { inner: inner.clone(), live: false };
                    if listen(&url, connector.clone(), contract, &mut heard).await {
                        rest = Duration::from_secs(1);
                    }
                    drop(heard);
                    sleep(rest).await;
                    rest = (rest * 2).min(Duration::from_mins(1));
                }
            });
        }
        Ok(())
    }

    /// Notes a block that somebody has seen.
    pub fn note(&self, head: &Head) {
        self.0.note(head, false);
    }

    /// Whether a connection announces every block.
    pub fn is_live(&self) -> bool {
        self.0.live.load(Ordering::Relaxed) > 0
    }

    /// The newest block seen.
    pub fn head(&self) -> Option<Head> {
        *self.0.head.borrow()
    }

    /// The time of a block.
    pub fn block_time(&self) -> Duration {
        self.0.pace.lock().unwrap_or_else(PoisonError::into_inner).every.unwrap_or(USUAL)
    }

    /// Waits until somebody has seen a block of this number or a later one.
    pub async fn reached(&self, number: u64) {
        let mut head = self.0.head.subscribe();
        // Cannot close: this struct holds the sender.
        let _ = head.wait_for(|head| head.is_some_and(|head| head.number >= number)).await;
    }

    /// The newest block if a connection announces all of them. None while an event of a later block is known, which some nodes announce
    /// before its block, and none when blocks have stopped, as they do on a connection to a node that has.
    pub(crate) fn recent(&self) -> Option<Head> {
        let noted = *self.0.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = noted.is_some_and(|at| at.elapsed() < STOPPED.max(self.block_time() * 4));
        self.head().filter(|head| fresh && self.is_live() && head.number >= *self.0.logs.borrow())
    }

    /// Changes whenever a connection announces an event of the contract: to that event's block.
    pub fn logs(&self) -> watch::Receiver<u64> {
        self.0.logs.subscribe()
    }

    /// The events as connections announce them: some may be missing, come twice, or be reorganised away.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    /// Passes on events of the contract that somebody has seen.
    pub(crate) fn tell(&self, events: impl IntoIterator<Item = Event>) {
        self.0.tell(None, events);
    }
}

impl Inner {
    /// Notes a block. An announced one replaces the known one, also on a chain that was set back. One from a request must be newer,
    /// because the node may be behind.
    fn note(&self, head: &Head, told: bool) {
        let now = Instant::now();
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).note(head.number, now);
        *self.noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        self.head.send_if_modified(|known| {
            let newer = told || known.is_none_or(|known| known.number < head.number);
            if newer {
                *known = Some(*head);
            }
            newer
        });
    }

    /// Passes on events of a block, if that is known.
    fn tell(&self, block: Option<u64>, events: impl IntoIterator<Item = Event>) {
        for event in events {
            // Fails if nobody listens.
            let _ = self.events.send(event);
        }
        self.logs.send_modify(|newest| *newest = block.unwrap_or(*newest));
    }
}

/// The state of a connection.
struct Heard {
    inner: std::sync::Weak<Inner>,
    /// Whether it announces blocks.
    live: bool,
}

impl Heard {
    /// A message: an answer, or news.
    fn hear(&mut self, text: &[u8]) {
        let Some(inner) = self.inner.upgrade() else { return };
        #[derive(Deserialize)]
        struct News<'a> {
            #[serde(borrow)]
            params: Option<Params<'a>>,
        }
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            result: &'a RawValue,
        }
        let Ok(News { params: Some(Params { result }) }) = serde_json::from_slice::<News>(text) else { return };
        if let Ok(head) = serde_json::from_str::<Head>(result.get()) {
            if !std::mem::replace(&mut self.live, true) {
                inner.live.fetch_add(1, Ordering::Relaxed);
            }
            inner.note(&head, true);
        } else if let Ok(log) = serde_json::from_str::<alloy::rpc::types::Log>(result.get()) {
            inner.tell(log.block_number, abi::event(&log.inner).filter(|_| !log.removed));
        }
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade().filter(|_| self.live) {
            inner.live.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(feature = "tls")]
fn connector() -> Result<Connector, Error> {
    Ok(Connector::Rustls(Arc::new(http::tls()?)))
}

#[cfg(not(feature = "tls"))]
#[allow(clippy::unnecessary_wraps)]
fn connector() -> Result<Connector, Error> {
    Ok(Connector::Plain)
}

/// Passes on announcements until the connection is lost; returns whether there was one.
async fn listen(url: &Url, connector: Connector, contract: Address, heard: &mut Heard) -> bool {
    let config = WebSocketConfig::default().max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST));
    let connecting = connect_async_tls_with_config(url.as_str(), Some(config), true, Some(connector));
    let Ok(Ok((mut socket, _))) = timeout(SILENCE, connecting).await else { return false };
    let logs = json!(["logs", { "address": contract }]);
    for (id, params) in [(1, logs), (2, json!(["newHeads"]))] {
        let ask = json!({ "jsonrpc": "2.0", "id": id, "method": "eth_subscribe", "params": params });
        if socket.send(Message::text(ask.to_string())).await.is_err() {
            return false;
        }
    }
    // Events during the gap went unannounced.
    if let Some(inner) = heard.inner.upgrade() {
        inner.tell(None, []);
    }
    let mut asked = false;
    loop {
        match timeout(SILENCE, socket.next()).await {
            Ok(Some(Ok(message))) => {
                asked = false;
                match message {
                    Message::Text(text) => heard.hear(text.as_bytes()),
                    Message::Binary(bytes) => heard.hear(&bytes),
                    Message::Close(_) => return true,
                    _ => {}
                }
            }
            Ok(_) => return true,
            Err(_) if asked => return true,
            Err(_) => {
                asked = true;
                if socket.send(Message::Ping(Vec::new().into())).await.is_err() {
                    return true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_block_follows_what_is_seen() {
        let (mut pace, begun) = (Pace::default(), Instant::now());
        let at = |milliseconds| begun + Duration::from_millis(milliseconds);
        pace.note(100, at(0));
        assert_eq!(pace.every, None);
        // The first two change the estimate at once, later ones once there are enough.
        pace.note(101, at(900));
        assert_eq!(pace.every, Some(Duration::from_millis(900)));
        pace.note(101, at(1_000));
        pace.note(102, at(1_100));
        assert_eq!(pace.every, Some(Duration::from_millis(900)));
        for block in 1..100 {
            pace.note(102 + block, at(1_100 + block * 250));
        }
        let every = pace.every.unwrap();
        assert!((Duration::from_millis(240)..Duration::from_millis(280)).contains(&every), "{every:?}");
        // A node that is behind changes nothing.
        pace.note(5, at(60_000));
        assert_eq!(pace.every, Some(every));
    }

    #[test]
    fn an_event_announced_before_its_block_makes_the_block_before_old() {
        let pulse = Pulse::default();
        let mut heard = Heard { inner: Arc::downgrade(&pulse.0), live: false };
        let hash = B256::ZERO;
        let mut hear = |result| heard.hear(json!({ "params": { "result": result } }).to_string().as_bytes());
        let head = |number| json!({ "number": format!("{number:#x}"), "hash": hash, "timestamp": "0x1" });
        let log = |block| {
            json!({
                "address": Address::ZERO, "topics": [hash], "data": "0x", "blockNumber": format!("{block:#x}"), "blockHash": hash,
                "transactionHash": hash, "transactionIndex": "0x0", "logIndex": "0x0", "removed": false,
            })
        };
        hear(head(7));
        hear(log(7));
        assert_eq!(pulse.recent().map(|head| head.number), Some(7));
        hear(log(8));
        assert_eq!(pulse.recent(), None);
        hear(head(8));
        assert_eq!(pulse.recent().map(|head| head.number), Some(8));
    }

    #[test]
    fn an_endpoint_is_listened_to_where_it_answers() {
        let beside = |url: &str| beside(&url.parse().unwrap()).unwrap().to_string();
        assert_eq!(beside("http://127.0.0.1:8547"), "ws://127.0.0.1:8547/");
        assert_eq!(beside("https://arb.example.com/v2/key?x=1"), "wss://arb.example.com/v2/key?x=1");
    }
}
