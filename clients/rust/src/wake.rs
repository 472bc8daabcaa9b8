//! WebSocket connections that say that something may have happened, and nothing more: what it was is asked for.

use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::Address;
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{connect_async_tls_with_config, Connector};
use url::Url;

use crate::{http, Error};

/// After so long without a word the other side is asked for one, and given as long again.
const SILENCE: Duration = Duration::from_secs(30);
/// The longest message that is read, in bytes.
const LONGEST: usize = 1 << 20;

/// Connections that are kept up until this is dropped.
pub(crate) struct Wake {
    bell: Arc<Notify>,
    _tasks: JoinSet<()>,
}

impl Wake {
    /// Connects to each of the URLs, now and whenever a connection is lost.
    pub fn start(urls: &[String], contract: Address) -> Result<Self, Error> {
        let bell = Arc::new(Notify::new());
        let mut tasks = JoinSet::new();
        for url in urls {
            let url = http::parse(url, &["ws", "wss"])?;
            let connector = connector()?;
            let bell = bell.clone();
            tasks.spawn(async move {
                let mut rest = Duration::from_secs(1);
                loop {
                    if listen(&url, connector.clone(), contract, &bell).await {
                        rest = Duration::from_secs(1);
                    }
                    sleep(rest).await;
                    rest = (rest * 2).min(Duration::from_mins(1));
                }
            });
        }
        Ok(Self { bell, _tasks: tasks })
    }

    /// Waits for the bell, so long at most.
    pub async fn wait(&self, most: Duration) {
        let _ = timeout(most, self.bell.notified()).await;
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

/// Rings at every message until the connection is lost; whether there was one.
async fn listen(url: &Url, connector: Connector, contract: Address, bell: &Notify) -> bool {
    let config = WebSocketConfig::default().max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST));
    let connecting = connect_async_tls_with_config(url.as_str(), Some(config), true, Some(connector));
    let Ok(Ok((mut socket, _))) = timeout(SILENCE, connecting).await else { return false };
    let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["logs", { "address": contract }] });
    if socket.send(Message::text(ask.to_string())).await.is_err() {
        return false;
    }
    // What happened while there was no connection.
    bell.notify_one();
    let mut asked = false;
    loop {
        match timeout(SILENCE, socket.next()).await {
            Ok(Some(Ok(message))) => {
                asked = false;
                match message {
                    Message::Text(_) | Message::Binary(_) => bell.notify_one(),
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
