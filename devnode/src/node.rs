//! A chain and its JSON-RPC server, in the process that starts it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::chain::{self, Chain, StateError};
use crate::rpc::{self, Patience};

/// The port of the Nitro development node.
pub const DEFAULT_PORT: u16 = 8547;

/// The answer of `web3_clientVersion`. Hardhat's network helpers refuse every node whose answer does not begin with `anvil` or
/// `HardhatNetwork`; this node has the methods they then call.
pub const CLIENT_VERSION: &str = concat!("anvil/muster-devnode/v", env!("CARGO_PKG_VERSION"));

/// The address to listen on, and the chain's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address to listen on.
    pub host: IpAddr,
    /// Port to listen on; 0 takes any free one.
    pub port: u16,
    /// The configuration the chain starts with.
    pub chain: chain::Config,
    /// The chain's file, so that it outlives the node. A chain that is already there is continued.
    pub state: Option<PathBuf>,
    /// The answer of `web3_clientVersion`.
    pub client_version: String,
    /// How long a client is waited for.
    pub patience: Patience,
}

impl Default for Config {
    /// Any free port of the local machine.
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            chain: chain::Config::default(),
            state: None,
            client_version: CLIENT_VERSION.into(),
            patience: Patience::default(),
        }
    }
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Somebody else listens there.
    #[error("port {port} on {host} is in use: stop what is listening there, or choose another with --port")]
    PortInUse {
        /// Where.
        host: IpAddr,
        /// Which.
        port: u16,
    },
    /// The address can't be listened on.
    #[error("can't listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The chain can't be made.
    #[error("{0}")]
    Chain(String),
    /// The state can't be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// The machine gave no thread or runtime.
    #[error("can't start the server: {0}")]
    Runtime(#[source] io::Error),
}

/// A running node. It stops when dropped.
#[derive(Debug)]
pub struct Devnode {
    chain: Chain,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Devnode {
    /// Starts a node on threads of its own; works from synchronous and asynchronous code alike.
    ///
    /// # Errors
    /// The port is taken, the address can't be used, or the chain can't be made.
    pub fn start(config: Config) -> Result<Self, StartError> {
        let chain = Chain::new(config.chain.clone()).map_err(StartError::Chain)?;
        if let Some(path) = &config.state {
            chain.keep_in(path)?;
        }
        Self::serve(chain, &config)
    }

    /// Serves a chain that exists already.
    ///
    /// # Errors
    /// As for [`Devnode::start`].
    pub fn serve(chain: Chain, config: &Config) -> Result<Self, StartError> {
        let (host, port) = (config.host, config.port);
        let wanted = SocketAddr::new(host, port);
        let listen = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => StartError::PortInUse { host, port },
            _ => StartError::Listen { address: wanted, source },
        };
        let listener = std::net::TcpListener::bind(wanted).map_err(listen)?;
        listener.set_nonblocking(true).map_err(StartError::Runtime)?;
        let address = listener.local_addr().map_err(StartError::Runtime)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("devnode-rpc")
            .enable_all()
            .build()
            .map_err(StartError::Runtime)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let context = rpc::Context::new(chain.clone(), &config.client_version, config.patience);
        let thread = std::thread::Builder::new()
            .name("devnode".into())
            .spawn(move || {
                runtime.block_on(async {
                    let Ok(listener) = TcpListener::from_std(listener) else { return };
                    // Connections may stay open for ever, so they are cut rather than waited for.
                    tokio::select! {
                        () = rpc::serve(listener, context) => {}
                        _ = stopped => {}
                    }
                });
                runtime.shutdown_background();
            })
            .map_err(StartError::Runtime)?;
        Ok(Self { chain, address, stop: Some(stop), thread: Some(thread) })
    }

    /// The HTTP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The WebSocket endpoint, on the same port.
    pub fn ws_url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The chain behind it, to be used beside the server.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Stops the server and waits until the port is free.
    pub fn stop(mut self) {
        self.shut_down();
    }

    fn shut_down(&mut self) {
        // The receiver is gone only if the server has ended already.
        self.stop.take().map(|s| s.send(()));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
            if let Err(error) = self.chain.save_state() {
                // The log still has all of it.
                eprintln!("muster-devnode: {error}");
            }
        }
    }
}

impl Drop for Devnode {
    fn drop(&mut self) {
        self.shut_down();
    }
}
