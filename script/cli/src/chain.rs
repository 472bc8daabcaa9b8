//! Talking to a node: connecting, sending signed transactions one after another, and putting what goes wrong
//! into words.

use std::{sync::Arc, time::Duration};

use anyhow::{anyhow, bail, Context, Result};
use ethers::{
    abi::Abi,
    providers::{Http, Middleware, Provider, ProviderError},
    signers::{LocalWallet, Signer},
    types::{
        transaction::eip2718::TypedTransaction, Address, BlockNumber, Bytes, Eip1559TransactionRequest, NameOrAddress,
        TransactionReceipt, H256, U256,
    },
};

/// How long a transaction may take to be included before we give up on the node.
const PATIENCE: Duration = Duration::from_mins(2);

/// A node that answered, and what stays the same about it.
#[derive(Clone)]
pub struct Chain {
    /// The client.
    pub provider: Arc<Provider<Http>>,
    /// Chain id.
    pub id: u64,
    /// Where the node is.
    pub url: String,
    /// What one gas may cost at most, in wei.
    pub gas_price: U256,
}

impl Chain {
    /// Connects, and finds out which chain it is.
    ///
    /// # Errors
    /// When the URL cannot be read or no node answers there.
    pub async fn connect(url: &str) -> Result<Self> {
        let provider = Provider::<Http>::try_from(url).with_context(|| format!("RPC_URL is {url}, which is not a URL"))?;
        Self::with(provider, url).await
    }

    /// The same for a client that is there already.
    ///
    /// # Errors
    /// When no node answers.
    pub async fn with(provider: Provider<Http>, url: &str) -> Result<Self> {
        let id = provider.get_chainid().await.map_err(|error| {
            anyhow!("no node answers at {url} ({}): start one with script/devnode, or set RPC_URL", brief(&error))
        })?;
        let mut chain = Self { provider: Arc::new(provider), id: id.as_u64(), url: url.into(), gas_price: U256::zero() };
        // The base fee can rise between the question and the transaction.
        chain.gas_price = chain.provider.get_gas_price().await.map_err(|error| chain.trouble(&error))? * 2;
        Ok(chain)
    }

    /// An error of the node or the way to it, as a sentence.
    pub fn trouble(&self, error: &ProviderError) -> anyhow::Error {
        match error {
            ProviderError::JsonRpcClientError(inner) if inner.as_error_response().is_none() => {
                anyhow!("the node at {} no longer answers: {}", self.url, brief(error))
            }
            _ => anyhow!("the node at {} refused: {}", self.url, brief(error)),
        }
    }

    /// Calls without a transaction. From an account it is tried as a transaction sent now would run, in the next block; from nobody it reads,
    /// and sees the newest.
    ///
    /// # Errors
    /// A revert comes back as [`Reverted`], the rest as a sentence.
    pub async fn call(&self, from: Option<Address>, to: Address, value: U256, data: impl Into<Bytes>) -> Result<Bytes> {
        let request = Eip1559TransactionRequest {
            from,
            to: Some(NameOrAddress::Address(to)),
            value: Some(value),
            data: Some(data.into()),
            ..Default::default()
        };
        let at = from.map(|_| BlockNumber::Pending.into());
        self.provider.call(&request.into(), at).await.map_err(|error| self.reverted_or_trouble(error))
    }

    fn reverted_or_trouble(&self, error: ProviderError) -> anyhow::Error {
        match revert_data(&error) {
            Some(data) => Reverted { data }.into(),
            None => self.trouble(&error),
        }
    }

    /// Time of the newest block.
    ///
    /// # Errors
    /// The node's.
    pub async fn now(&self) -> Result<u64> {
        let block = self.provider.get_block(BlockNumber::Latest).await.map_err(|error| self.trouble(&error))?;
        Ok(block.context("the node has no latest block")?.timestamp.as_u64())
    }

    /// One of the node's own methods, such as `evm_mine`.
    ///
    /// # Errors
    /// When the node has no such method or refuses.
    pub async fn request<P, R>(&self, method: &str, parameters: P) -> Result<R>
    where
        P: std::fmt::Debug + serde::Serialize + Send + Sync,
        R: serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug + Send,
    {
        self.provider.request(method, parameters).await.map_err(|error| self.trouble(&error))
    }
}

/// A call or transaction that the contract refused.
#[derive(Debug, Clone)]
pub struct Reverted {
    /// What it gave as the reason: an error's selector and values, or nothing.
    pub data: Bytes,
}

impl std::fmt::Display for Reverted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.data.len() {
            0 => write!(f, "reverted without a reason"),
            _ => write!(f, "reverted with {}", self.data),
        }
    }
}

impl std::error::Error for Reverted {}

impl Reverted {
    /// The reason in words, if `abi` knows the error.
    pub fn explain(&self, abi: &Abi) -> String {
        let known = self.data.get(..4).and_then(|selector| abi.errors().find(|error| error.signature()[..4] == *selector));
        let values = known.and_then(|error| error.decode(&self.data[4..]).ok().map(|values| (error, values)));
        match values {
            Some((error, values)) => {
                let values: Vec<_> =
                    error.inputs.iter().zip(&values).map(|(input, value)| format!("{}: {}", input.name, plain(value))).collect();
                format!("{}({})", error.name, values.join(", "))
            }
            None => self.to_string(),
        }
    }
}

/// A value as a person writes it: numbers in decimal, addresses with 0x.
fn plain(token: &ethers::abi::Token) -> String {
    use ethers::abi::Token::*;
    match token {
        Address(address) => format!("{address:?}"),
        Uint(number) | Int(number) => number.to_string(),
        Bool(yes) => yes.to_string(),
        String(text) => text.clone(),
        FixedBytes(bytes) | Bytes(bytes) => ethers::types::Bytes::from(bytes.clone()).to_string(),
        Array(list) | FixedArray(list) | Tuple(list) => {
            format!("[{}]", list.iter().map(plain).collect::<Vec<_>>().join(", "))
        }
    }
}

/// The revert data in a node's answer. Nodes disagree on where it stands, hence ethers' own search.
fn revert_data(error: &ProviderError) -> Option<Bytes> {
    let ProviderError::JsonRpcClientError(inner) = error else { return None };
    let response = inner.as_error_response()?;
    response.as_revert_data().or_else(|| response.message.contains("revert").then(Bytes::default))
}

fn brief(error: &ProviderError) -> String {
    match error {
        ProviderError::JsonRpcClientError(inner) => match inner.as_error_response() {
            Some(response) => response.message.clone(),
            None => {
                let mut source: &dyn std::error::Error = inner.as_ref();
                while let Some(deeper) = source.source() {
                    source = deeper;
                }
                source.to_string()
            }
        },
        other => other.to_string(),
    }
}

/// The key that PRIVATE_KEY holds.
///
/// # Errors
/// When it is none.
pub fn wallet(key: &str) -> Result<LocalWallet> {
    key.parse().map_err(|_| anyhow!("PRIVATE_KEY is not a private key of 32 bytes in hexadecimal"))
}

/// An account that sends its transactions one after another and counts its nonce itself.
pub struct Account {
    /// Its key.
    pub wallet: LocalWallet,
    nonce: Option<U256>,
}

/// What to send.
#[derive(Clone, Default)]
pub struct Outgoing {
    /// Nothing: a contract is created.
    pub to: Option<Address>,
    /// In wei.
    pub value: U256,
    /// Calldata or initcode.
    pub data: Bytes,
    /// Gas limit; without one the node is asked, which also finds a revert before it costs anything.
    pub gas: Option<u64>,
}

/// A transaction failed whose call on the block before it does not: its own block's number or time made the difference, or somebody was faster.
#[derive(Debug)]
pub struct Overtaken(pub H256);

impl std::fmt::Display for Overtaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "transaction {:?} failed, but the same call on the block before it does not: its reason is not known", self.0)
    }
}

impl std::error::Error for Overtaken {}

impl Account {
    /// An account with this key on this chain.
    pub fn new(chain: &Chain, wallet: LocalWallet) -> Self {
        Self { wallet: wallet.with_chain_id(chain.id), nonce: None }
    }

    /// Its address.
    pub fn address(&self) -> Address {
        self.wallet.address()
    }

    /// Signs, sends and waits until the transaction is in a block.
    ///
    /// # Errors
    /// [`Reverted`] if the contract refuses; a sentence if the node does, funds do not suffice, or it takes more
    /// than two minutes.
    pub async fn send(&mut self, chain: &Chain, what: Outgoing) -> Result<TransactionReceipt> {
        let hash = self.submit(chain, what.clone()).await?;
        let receipt = wait(chain, hash).await?;
        if receipt.status == Some(1.into()) {
            return Ok(receipt);
        }
        if receipt.gas_used.is_some_and(|used| what.gas.is_some_and(|limit| used >= limit.into())) {
            bail!("transaction {hash:?} ran out of its {} gas", what.gas.unwrap_or_default());
        }
        // The receipt does not say why. The same call on the state before it does, as a rule.
        let to = what.to.with_context(|| format!("transaction {hash:?} failed to create a contract"))?;
        let request: TypedTransaction = Eip1559TransactionRequest {
            from: Some(self.address()),
            to: Some(to.into()),
            value: Some(what.value),
            data: Some(what.data),
            ..Default::default()
        }
        .into();
        let before = receipt.block_number.map(|number| (number - 1).into());
        match chain.provider.call(&request, before).await {
            Err(error) => Err(chain.reverted_or_trouble(error).context(format!("transaction {hash:?}"))),
            Ok(_) => Err(Overtaken(hash).into()),
        }
    }

    /// Signs and sends, without waiting.
    ///
    /// # Errors
    /// As for [`Self::send`].
    pub async fn submit(&mut self, chain: &Chain, what: Outgoing) -> Result<H256> {
        let trouble = |error: ProviderError| chain.reverted_or_trouble(error);
        let nonce = match self.nonce {
            Some(nonce) => nonce,
            None => chain.provider.get_transaction_count(self.address(), None).await.map_err(trouble)?,
        };
        let mut request = Eip1559TransactionRequest {
            from: Some(self.address()),
            to: what.to.map(NameOrAddress::Address),
            value: Some(what.value),
            data: Some(what.data),
            chain_id: Some(chain.id.into()),
            nonce: Some(nonce),
            max_fee_per_gas: Some(chain.gas_price),
            max_priority_fee_per_gas: Some(U256::zero()),
            ..Default::default()
        };
        request.gas = Some(match what.gas {
            Some(gas) => gas.into(),
            None => {
                let estimate = chain
                    .provider
                    .estimate_gas(&request.clone().into(), None)
                    .await
                    .map_err(|error| self.explain(chain, error))?;
                estimate + estimate / 5
            }
        });
        let transaction = TypedTransaction::Eip1559(request);
        let signature = self.wallet.sign_transaction_sync(&transaction)?;
        let sent = chain
            .provider
            .send_raw_transaction(transaction.rlp_signed(&signature))
            .await
            .map_err(|error| self.explain(chain, error))?;
        self.nonce = Some(nonce + 1);
        Ok(sent.tx_hash())
    }

    fn explain(&self, chain: &Chain, error: ProviderError) -> anyhow::Error {
        let words = brief(&error).to_lowercase();
        if words.contains("insufficient funds") || words.contains("insufficient balance") {
            return anyhow!(
                "account {:?} has not enough ether on chain {} for this: {}",
                self.address(),
                chain.id,
                brief(&error)
            );
        }
        chain.reverted_or_trouble(error)
    }
}

/// A time of a chain as people read it.
pub fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0));
    time.map_or_else(|| format!("second {seconds}"), |time| time.format("%Y-%m-%d %H:%M UTC").to_string())
}

/// Waits until a transaction is in a block.
///
/// # Errors
/// When that takes more than two minutes.
pub async fn wait(chain: &Chain, hash: H256) -> Result<TransactionReceipt> {
    let asked = std::time::Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(receipt) = chain.provider.get_transaction_receipt(hash).await.map_err(|error| chain.trouble(&error))? {
            return Ok(receipt);
        }
        if asked.elapsed() > PATIENCE {
            bail!("transaction {hash:?} is in no block after {} seconds", PATIENCE.as_secs());
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}
