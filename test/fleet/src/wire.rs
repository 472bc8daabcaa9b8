//! The way to the chain's endpoint, which can be cut.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// A wire from a port of its own to an endpoint.
pub struct Wire {
    /// What agents are told.
    pub url: String,
    whole: watch::Sender<bool>,
}

impl Wire {
    /// To an endpoint of this machine.
    pub async fn start(to: &str) -> Self {
        let to: SocketAddr = to.strip_prefix("http://").unwrap().trim_end_matches('/').parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (whole, state) = watch::channel(true);
        tokio::spawn(async move {
            loop {
                let (mut from, _) = listener.accept().await.unwrap();
                let mut state = state.clone();
                // What comes while it is cut is closed at once.
                if !*state.borrow_and_update() {
                    continue;
                }
                tokio::spawn(async move {
                    let Ok(mut onward) = TcpStream::connect(to).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut from, &mut onward) => {}
                        _ = state.wait_for(|whole| !whole) => {}
                    }
                });
            }
        });
        Self { url, whole }
    }

    /// Breaks every connection, and lets no new ones through for so long.
    pub async fn cut_for(&mut self, time: Duration) {
        self.whole.send_replace(false);
        sleep(time).await;
        self.whole.send_replace(true);
    }
}
