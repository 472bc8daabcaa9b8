//! The stores of inputs and results, and accounts' entries about them on the chain.

use std::collections::BTreeSet;
use std::sync::Arc;

use alloy::primitives::{Address, B256, U256};
use anyhow::{ensure, Context, Result};
use clap::{Args, Subcommand};
use muster_client::{digest_of, published_key, seal_input, Bounds, IMuster, Lookup, Store, Stores};
use serde_json::json;

use crate::options::address;
use crate::session::{Report, Session};

/// The most bytes that are read.
const LONGEST: usize = 1 << 30;
/// The most nodes that an input is sealed to: some hundred bytes each.
const KEYS: usize = 1_000;
/// Nodes that are asked for at once.
const PAGE: u32 = 64;
/// The most bytes that the contract keeps of an account's stores.
const PUBLISHED: usize = 256;

#[derive(Args)]
#[command(next_help_heading = "Stores")]
pub struct At {
    /// A store: a directory, `https://...`, `s3://bucket/path`, `gs://`, `az://`, `ipfs+https://gateway` or `kubo+http://127.0.0.1:5001`;
    /// repeat for more
    #[arg(long = "store", env = "MUSTER_STORES", value_name = "URI", value_delimiter = ' ', hide_env_values = true)]
    stores: Vec<String>,
    /// A header for stores over HTTP, as `Authorization: Bearer ...`; repeat for more
    #[arg(long = "store-header", env = "MUSTER_STORE_HEADER", value_name = "NAME: VALUE", hide_env_values = true)]
    headers: Vec<String>,
    /// Also use published stores on this machine or in a private network
    #[arg(long)]
    inside: bool,
    /// Seal the input to the nodes that may run it, and have the result sealed to this account; where a result is fetched: it is sealed so
    #[arg(long)]
    private: bool,
}

impl At {
    fn bounds() -> Bounds {
        Bounds { bytes: LONGEST, ..Bounds::default() }
    }

    fn open(&self) -> Result<Stores> {
        let split = |header: &String| {
            let (name, value) = header.split_once(':').context("a header is NAME: VALUE")?;
            Ok((name.trim().to_string(), value.trim().to_string()))
        };
        let headers: Vec<_> = self.headers.iter().map(split).collect::<Result<_>>()?;
        let stores = self.stores.iter().filter(|store| !store.is_empty());
        let open = stores.map(|store| Store::open_with(store, &headers, Self::bounds()));
        Ok(open.collect::<Result<Vec<_>, _>>()?.into())
    }

    /// Whether published places may be on this machine or in a private network.
    pub fn inside(&self) -> bool {
        self.inside
    }

    /// How results are looked for.
    pub fn lookup(&self, session: &Session) -> Result<Lookup> {
        let private = if self.private { Some(Arc::new(session.private()?)) } else { None };
        Ok(Lookup { named: self.open()?, bounds: Self::bounds(), inside: self.inside, private, ..Lookup::default() })
    }

    /// Seals an input, if requested, to all nodes that could be drawn: of a GPU group, or with enough memory.
    pub async fn sealed(&self, session: &Session, input: Vec<u8>, gpu: u32, vram: u16) -> Result<Vec<u8>> {
        if !self.private {
            return Ok(input);
        }
        let (mut keys, mut without, mut from) = (BTreeSet::new(), 0, 1);
        loop {
            let page = session.muster.read(IMuster::nodesCall { from, count: PAGE }).await?;
            let Some(last) = page.last() else { break };
            from = last.node + 1;
            let able = |node: &&IMuster::NodeView| node.status != 0 && if gpu == 0 { node.vram >= vram } else { node.gpu == gpu };
            for node in page.iter().filter(able) {
                match published_key(&session.muster.stores_of(node.operator).await?) {
                    Some(key) => drop(keys.insert(key.to_string())),
                    None => without += 1,
                }
                ensure!(keys.len() <= KEYS, "more than {KEYS} nodes could be drawn: name a smaller GPU group by --gpu");
            }
        }
        ensure!(without == 0, "nothing was paid: {without} nodes that could be drawn publish no key to seal the input to");
        let reply = session.private()?.recipient();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        seal_input(&input, &keys, Some(&reply)).context("nothing was paid: the input cannot be sealed")
    }

    /// Puts an input where nodes find it, and returns its digest. Puts nothing in a dry run, or without stores: the user has then
    /// put it somewhere else.
    pub async fn keep(&self, session: &Session, bytes: &[u8]) -> Result<B256> {
        let stores = self.open()?;
        if session.options.dry_run || stores.is_empty() {
            return Ok(digest_of(bytes));
        }
        let (digest, attempts) = stores.put(bytes).await.context("nothing was paid: no store takes the input")?;
        for attempt in attempts {
            eprintln!("muster: {} does not take the input: {}", attempt.store, attempt.trouble);
        }
        Ok(digest)
    }
}

/// Whether an entry says where answers are streamed.
fn shows(uri: &str) -> bool {
    uri.strip_prefix("stream+").is_some_and(|url| url.starts_with("https://") || url.starts_with("http://"))
}

#[derive(Subcommand)]
pub enum Command {
    /// An account's entries
    Show {
        /// The account [default: the key's]
        #[arg(value_name = "ACCOUNT", value_parser = address)]
        whose: Option<Address>,
    },
    /// Publish where this account's results or inputs can be read: up to 256 bytes, `https://...`, `http://...` or `ipfs+https://gateway`; none removes all
    Set {
        /// The places
        uris: Vec<String>,
    },
}

impl Command {
    pub async fn run(&self, session: &Session) -> Result<Report> {
        match self {
            Self::Show { whose } => {
                let account = match whose {
                    Some(account) => *account,
                    None => session.address().await?,
                };
                let uris = session.muster.stores_of(account).await?;
                let text = if uris.is_empty() { format!("{account} publishes no store") } else { uris.replace(' ', "\n") };
                Ok(Report { json: json!({ "account": account, "stores": uris.split_whitespace().collect::<Vec<_>>() }), text })
            }
            Self::Set { uris } => {
                for uri in uris {
                    let known =
                        !Stores::published(uri, Bounds::default(), true).is_empty() || published_key(uri).is_some() || shows(uri);
                    ensure!(
                        known && !uri.contains(' '),
                        "{uri} is nothing that others read: https://..., http://..., ipfs+https://gateway, stream+https://... or age:age1..."
                    );
                }
                let uris = uris.join(" ");
                ensure!(uris.len() <= PUBLISHED, "that is {} bytes, and the contract keeps {PUBLISHED}", uris.len());
                let what = if uris.is_empty() { "no store is published any more".into() } else { format!("published {uris}") };
                session.call(IMuster::setStoresCall { uris }, U256::ZERO, &what).await
            }
        }
    }
}
