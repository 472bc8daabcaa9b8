//! A chain and a Muster on it, driven by ethers-rs, as none of the project's own programs does it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, Context, Result};
use ethers::abi::{Abi, Function, Token};
use ethers::providers::{Http, Middleware, Provider, ProviderError};
use ethers::signers::{LocalWallet, Signer};
use ethers::types::transaction::eip2718::TypedTransaction;
use ethers::types::{Address, BlockNumber, Bytes, Eip1559TransactionRequest, NameOrAddress, TransactionReceipt, H256, U256};

/// How long a transaction may take to be included.
const PATIENCE: Duration = Duration::from_mins(2);

/// The public interface.
pub fn interface() -> &'static Abi {
    static ABI: OnceLock<Abi> = OnceLock::new();
    ABI.get_or_init(|| serde_json::from_str(include_str!("../../../abi/IMuster.json")).expect("abi/IMuster.json is an ABI"))
}

fn find(function: &str) -> Result<&'static Function> {
    interface().function(function).map_err(|_| anyhow!("the interface has no function {function}"))
}

/// An address as ethers has it.
pub fn account(address: alloy_primitives::Address) -> Address {
    address.into_array().into()
}

/// A node.
#[derive(Clone)]
pub struct Chain {
    /// The client.
    pub provider: Arc<Provider<Http>>,
    id: u64,
    gas_price: U256,
}

impl Chain {
    /// Connects.
    ///
    /// # Errors
    /// When no node answers there.
    pub async fn connect(url: &str) -> Result<Self> {
        let provider = Arc::new(Provider::<Http>::try_from(url)?);
        let (id, price) = (provider.get_chainid().await?, provider.get_gas_price().await?);
        // The base fee can rise between the question and the transaction.
        Ok(Self { provider, id: id.as_u64(), gas_price: price * 2 })
    }

    /// Calls without a transaction. From an account it is tried as a transaction sent now would run, in the next block; from nobody it reads,
    /// and sees the newest.
    ///
    /// # Errors
    /// A revert comes back as [`Reverted`].
    pub async fn call(&self, from: Option<Address>, to: Address, value: U256, data: impl Into<Bytes>) -> Result<Bytes> {
        let to = Some(NameOrAddress::Address(to));
        let request = Eip1559TransactionRequest { from, to, value: Some(value), data: Some(data.into()), ..Default::default() };
        let at = from.map(|_| BlockNumber::Pending.into());
        self.provider.call(&request.into(), at).await.map_err(reverted)
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
        Ok(self.provider.request(method, parameters).await?)
    }
}

/// A call or transaction that the contract refused.
#[derive(Debug, Clone)]
pub struct Reverted {
    /// Its reason: an error's selector and values, or nothing.
    pub data: Bytes,
}

impl std::fmt::Display for Reverted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known =
            self.data.get(..4).and_then(|selector| interface().errors().find(|error| error.signature()[..4] == *selector));
        match known.and_then(|error| error.decode(&self.data[4..]).ok().map(|values| (error, values))) {
            Some((error, values)) => write!(f, "refused: {} {values:?}", error.name),
            None => write!(f, "reverted with {}", self.data),
        }
    }
}

impl std::error::Error for Reverted {}

/// A node's answer as the revert that it tells of. Nodes disagree on where its data stand, hence ethers' own search.
fn reverted(error: ProviderError) -> anyhow::Error {
    let response = match &error {
        ProviderError::JsonRpcClientError(inner) => inner.as_error_response(),
        _ => None,
    };
    let data = response
        .and_then(|response| response.as_revert_data().or_else(|| response.message.contains("revert").then(Bytes::default)));
    data.map_or_else(|| error.into(), |data| Reverted { data }.into())
}

/// An account that sends its transactions one after another.
pub struct Account {
    /// Its key.
    pub wallet: LocalWallet,
    nonce: U256,
}

/// The transaction to send.
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

impl Account {
    /// An account with this key on this chain.
    ///
    /// # Errors
    /// When it is no key.
    pub fn new(chain: &Chain, key: &[u8]) -> Result<Self> {
        Ok(Self { wallet: LocalWallet::from_bytes(key)?.with_chain_id(chain.id), nonce: U256::zero() })
    }

    /// Its address.
    pub fn address(&self) -> Address {
        self.wallet.address()
    }

    /// Signs, sends and waits until the transaction is in a block.
    ///
    /// # Errors
    /// [`Reverted`] if the contract refuses; the node's error, also after more than two minutes.
    pub async fn send(&mut self, chain: &Chain, what: Outgoing) -> Result<TransactionReceipt> {
        let hash = self.submit(chain, what.clone()).await?;
        let receipt = wait(chain, hash).await?;
        if receipt.status == Some(1.into()) {
            return Ok(receipt);
        }
        // The receipt does not say why. The same call on the state before it does, as a rule.
        let before = receipt.block_number.map(|number| (number - 1).into());
        match chain.provider.call(&self.request(chain, what).into(), before).await {
            Err(error) => Err(reverted(error).context(format!("transaction {hash:?}"))),
            Ok(_) => bail!("transaction {hash:?} failed, but not on the block before it: {receipt:?}"),
        }
    }

    /// Signs and sends, without waiting.
    ///
    /// # Errors
    /// As for [`Self::send`].
    pub async fn submit(&mut self, chain: &Chain, what: Outgoing) -> Result<H256> {
        let gas = what.gas;
        let mut request = self.request(chain, what);
        request.gas = Some(match gas {
            Some(gas) => gas.into(),
            None => {
                let estimate = chain.provider.estimate_gas(&request.clone().into(), None).await.map_err(reverted)?;
                estimate + estimate / 5
            }
        });
        // The same key may have sent elsewhere, too.
        let nonce = self.nonce.max(chain.provider.get_transaction_count(self.address(), None).await?);
        request.nonce = Some(nonce);
        let transaction = TypedTransaction::Eip1559(request);
        let signature = self.wallet.sign_transaction_sync(&transaction)?;
        let sent = chain.provider.send_raw_transaction(transaction.rlp_signed(&signature)).await.map_err(reverted)?;
        self.nonce = nonce + 1;
        Ok(sent.tx_hash())
    }

    fn request(&self, chain: &Chain, what: Outgoing) -> Eip1559TransactionRequest {
        Eip1559TransactionRequest {
            from: Some(self.address()),
            to: what.to.map(NameOrAddress::Address),
            value: Some(what.value),
            data: Some(what.data),
            chain_id: Some(chain.id.into()),
            max_fee_per_gas: Some(chain.gas_price),
            max_priority_fee_per_gas: Some(U256::zero()),
            ..Default::default()
        }
    }
}

/// Waits until a transaction is in a block.
///
/// # Errors
/// When that takes more than two minutes.
pub async fn wait(chain: &Chain, hash: H256) -> Result<TransactionReceipt> {
    let asked = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(receipt) = chain.provider.get_transaction_receipt(hash).await? {
            return Ok(receipt);
        }
        if asked.elapsed() > PATIENCE {
            bail!("transaction {hash:?} is in no block after {} seconds", PATIENCE.as_secs());
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

/// Muster at an address.
#[derive(Clone, Copy, Debug)]
pub struct Muster {
    /// The router's.
    pub address: Address,
}

impl Muster {
    /// Calldata.
    ///
    /// # Errors
    /// When the interface has no such function or it takes other arguments.
    pub fn encode(&self, function: &str, arguments: &[Token]) -> Result<Bytes> {
        Ok(find(function)?.encode_input(arguments).with_context(|| format!("arguments of {function}"))?.into())
    }

    /// Calls a function without a transaction.
    ///
    /// # Errors
    /// [`Reverted`], or the node's error.
    pub async fn call(&self, chain: &Chain, function: &str, arguments: &[Token]) -> Result<Vec<Token>> {
        let data = self.encode(function, arguments)?;
        let answer = chain.call(None, self.address, U256::zero(), data).await.context(function.to_string())?;
        find(function)?.decode_output(&answer).with_context(|| format!("cannot read what {function} returned: {answer}"))
    }

    /// Sends a transaction and waits for it.
    ///
    /// # Errors
    /// [`Reverted`], or the node's error.
    pub async fn send(
        &self,
        chain: &Chain,
        account: &mut Account,
        function: &str,
        arguments: &[Token],
        value: U256,
        gas: Option<u64>,
    ) -> Result<TransactionReceipt> {
        let data = self.encode(function, arguments)?;
        account.send(chain, Outgoing { to: Some(self.address), value, data, gas }).await.context(function.to_string())
    }
}
