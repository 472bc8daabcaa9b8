//! The chain that the tools work on: its node, and accounts that send there.

use std::{path::PathBuf, time::Duration};

use alloy::{
    primitives::{B256, U256, U64},
    rpc::types::TransactionReceipt,
    signers::local::PrivateKeySigner,
    sol_types::SolCall,
};
use anyhow::{anyhow, Context, Result};
use muster_client::{key, Endpoints, Error, Muster, Place, Reason, Refusal, Request, Sender, Sending, Settings, Wallet};
use serde::Deserialize;

use crate::environment::variable;

/// How long a transaction may take to be included, or a node to answer, before we give up.
const PATIENCE: Duration = Duration::from_mins(2);

/// A node that answered, and its fixed properties.
#[derive(Clone)]
pub struct Chain {
    /// The node.
    pub endpoints: Endpoints,
    /// Chain id.
    pub id: u64,
    /// Where the node is. It may hold a key: [`Self::place`] is for people.
    pub url: String,
}

impl Chain {
    /// Connects, and finds out which chain it is.
    ///
    /// # Errors
    /// When the URL cannot be read or no node answers there.
    pub async fn connect(url: &str) -> Result<Self> {
        let settings = Settings { timeout: PATIENCE, ..Settings::default() };
        let endpoints = Endpoints::new(&[url], settings).context("RPC_URL is not a URL")?;
        let id = endpoints.chain().await.map_err(|error| {
            let place = place(&endpoints);
            anyhow!("no node answers at {place} ({error}): start one with script/devnode, or set RPC_URL")
        })?;
        Ok(Self { endpoints, id, url: url.into() })
    }

    /// The node's scheme and host: the rest of its URL may hold a key.
    pub fn place(&self) -> String {
        place(&self.endpoints)
    }

    /// The price of one gas now, in wei. Transactions offer twice as much at most: it can rise between the question and the transaction.
    ///
    /// # Errors
    /// The node's.
    pub async fn gas_price(&self) -> Result<U256> {
        Ok(U256::from(self.endpoints.head().await?.base_fee_per_gas.unwrap_or_default()))
    }

    /// Time of the newest block.
    ///
    /// # Errors
    /// The node's.
    pub async fn now(&self) -> Result<u64> {
        Ok(self.endpoints.head().await?.timestamp)
    }

    /// A transaction's receipt; none if it is in no block.
    ///
    /// # Errors
    /// The node's.
    pub async fn receipt(&self, hash: B256) -> Result<Option<TransactionReceipt>> {
        Ok(self.endpoints.ask("eth_getTransactionReceipt", [hash]).await?)
    }

    /// The part of a transaction's gas that paid for its data on L1, as Nitro says in receipts; 0 elsewhere.
    ///
    /// # Errors
    /// The node's.
    pub async fn gas_for_l1(&self, hash: B256) -> Result<u64> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Part {
            gas_used_for_l1: Option<U64>,
        }
        let part: Option<Part> = self.endpoints.ask("eth_getTransactionReceipt", [hash]).await?;
        Ok(part.and_then(|part| part.gas_used_for_l1).unwrap_or_default().to())
    }

    /// An account that sends here. Nothing of it is kept: a later run reads its transactions from the chain.
    ///
    /// # Errors
    /// The node's.
    pub async fn account(&self, wallet: impl Into<Wallet>) -> Result<Sender> {
        let sending = Sending { look_every: Duration::from_millis(100), patience: PATIENCE, settled: 0, ..Sending::default() };
        Ok(Sender::in_memory(self.endpoints.clone(), wallet, sending).await?)
    }

    /// Sends, and waits until the transaction is in a block.
    ///
    /// # Errors
    /// [`Error::Refused`] or [`Error::Undone`] if a contract refuses; a sentence if the node does, funds do not suffice, or it
    /// takes more than two minutes.
    pub async fn send(&self, account: &Sender, request: Request) -> Result<TransactionReceipt> {
        let nonce = account.submit(request).await.map_err(|error| self.explain(account, error))?;
        Ok(account.finish(nonce).await?)
    }

    /// The same with a call of Muster's, whose name is put before an error.
    ///
    /// # Errors
    /// As for [`Self::send`].
    pub async fn tell<C: SolCall>(
        &self,
        account: &Sender,
        muster: &Muster,
        call: &C,
        value: U256,
        gas: Option<u64>,
    ) -> Result<TransactionReceipt> {
        self.send(account, Request { gas, ..muster.request(call, value) }).await.map_err(called::<C>)
    }

    fn explain(&self, account: &Sender, error: Error) -> anyhow::Error {
        let words = error.to_string().to_lowercase();
        if words.contains("insufficient funds") || words.contains("insufficient balance") {
            return anyhow!("account {:?} has not enough ether on chain {} for this: {error}", account.address(), self.id);
        }
        error.into()
    }
}

fn place(endpoints: &Endpoints) -> String {
    endpoints.standing().into_iter().map(|standing| standing.node).collect::<Vec<_>>().join(", ")
}

/// A failed call's error, after the name of its function.
pub(crate) fn called<C: SolCall>(error: impl Into<anyhow::Error>) -> anyhow::Error {
    error.into().context(name_of::<C>())
}

/// A function's name in the interface.
pub fn name_of<C: SolCall>() -> &'static str {
    C::SIGNATURE.split('(').next().unwrap_or(C::SIGNATURE)
}

/// The contract's refusal of a call; none if it failed for another reason.
pub fn refusal(error: &anyhow::Error) -> Option<&Refusal> {
    error.downcast_ref::<Error>()?.refusal()
}

/// The same if it is one of Muster's own errors.
pub fn reason(error: &anyhow::Error) -> Option<&Reason> {
    match refusal(error)? {
        Refusal::Known(reason) => Some(reason),
        Refusal::Other(_) => None,
    }
}

/// The key that PRIVATE_KEY holds.
///
/// # Errors
/// When it is none.
pub fn wallet(key: &str) -> Result<PrivateKeySigner> {
    key.parse().map_err(|_| anyhow!("PRIVATE_KEY is not a private key of 32 bytes in hexadecimal"))
}

/// The payer: the flags, or the variables of the same names in the environment or `.env`, or else PRIVATE_KEY.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Payer {
    /// A key in an encrypted file, as geth, cast and `muster account new` make them [or: ETH_KEYSTORE]
    #[arg(long, value_name = "FILE", conflicts_with = "signer")]
    pub keystore: Option<PathBuf>,
    /// The file with its password; without it the password is asked for [or: ETH_PASSWORD]
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// A key that does not come here: `ledger`, `ledger:PATH`, `aws:KEY`, `gcp:VERSION`, or the URL of a signer [or: MUSTER_SIGNER]
    #[arg(long, value_name = "PLACE")]
    pub signer: Option<Place>,
}

impl Payer {
    /// Their wallet at a node's chain. A key that is here is read before the node is asked.
    ///
    /// # Errors
    /// When there is none, it cannot be opened, or no node answers.
    pub async fn connect(&self, url: &str) -> Result<(Chain, Wallet)> {
        let flagged = self.signer.is_some() || self.keystore.is_some();
        let place = match (&self.signer, variable("MUSTER_SIGNER").filter(|_| !flagged)) {
            (Some(place), _) => Some(place.clone()),
            (None, named) => named.map(|text| text.parse()).transpose()?,
        };
        if let Some(place) = place {
            let chain = Chain::connect(url).await?;
            let wallet = place.open(chain.id).await?;
            return Ok((chain, wallet));
        }
        let wallet = self.here()?;
        Ok((Chain::connect(url).await?, wallet))
    }

    fn here(&self) -> Result<Wallet> {
        if let Some(file) = self.keystore.clone().or_else(|| variable("ETH_KEYSTORE").map(PathBuf::from)) {
            // Before its password is asked for.
            std::fs::metadata(&file).with_context(|| format!("the key's file {}", file.display()))?;
            let password = match self.password_file.clone().or_else(|| variable("ETH_PASSWORD").map(PathBuf::from)) {
                Some(file) => key::password_from(&file)?,
                None => rpassword::prompt_password("password: ")
                    .context("no terminal to ask for the password: --password-file")?
                    .into(),
            };
            return Ok(key::from_keystore(&file, &password)?.into());
        }
        let key = variable("PRIVATE_KEY").context(
            "PRIVATE_KEY is not set: put the payer's key in the environment or in .env (.env.example documents it), or use --keystore \
             or --signer",
        )?;
        Ok(wallet(&key)?.into())
    }
}

/// A time of a chain as people read it.
pub fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0));
    time.map_or_else(|| format!("second {seconds}"), |time| time.format("%Y-%m-%d %H:%M UTC").to_string())
}
