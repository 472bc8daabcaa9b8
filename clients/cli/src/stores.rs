//! Where inputs go and results come from, and what accounts say of it on the chain.

use alloy::primitives::{Address, B256, U256};
use anyhow::{ensure, Context, Result};
use clap::{Args, Subcommand};
use muster_client::{digest_of, Bounds, IMuster, Lookup, Store, Stores};
use serde_json::json;

use crate::session::{Report, Session};

/// More bytes than these are not read.
const LONGEST: usize = 1 << 30;
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
    /// Look also into published stores on this machine or a network of one's own
    #[arg(long)]
    inside: bool,
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

    /// How results are looked for.
    pub fn lookup(&self) -> Result<Lookup> {
        Ok(Lookup { named: self.open()?, bounds: Self::bounds(), inside: self.inside, ..Lookup::default() })
    }

    /// Puts an input where nodes find it, and gives its digest. Nothing is put by a dry run, or where there is no store: whoever names none
    /// has put it somewhere else.
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

#[derive(Subcommand)]
pub enum Command {
    /// What an account says
    Show {
        /// Whose [default: the key's]
        account: Option<Address>,
    },
    /// Say where this account's results or inputs can be read: up to 256 bytes, `https://...` or `ipfs+https://gateway`; none takes all back
    Set {
        /// Where
        uris: Vec<String>,
    },
}

impl Command {
    pub async fn run(&self, session: &Session) -> Result<Report> {
        match self {
            Self::Show { account } => {
                let account = match account {
                    Some(account) => *account,
                    None => session.address().await?,
                };
                let uris = session.muster.stores_of(account).await?;
                let text = if uris.is_empty() { format!("{account} publishes no store") } else { uris.replace(' ', "\n") };
                Ok(Report { json: json!({ "account": account, "stores": uris.split_whitespace().collect::<Vec<_>>() }), text })
            }
            Self::Set { uris } => {
                for uri in uris {
                    let known = Stores::published(uri, Bounds::default(), true);
                    ensure!(
                        !known.is_empty() && !uri.contains(' '),
                        "{uri} is nothing that others read from: https://... or ipfs+https://gateway"
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
