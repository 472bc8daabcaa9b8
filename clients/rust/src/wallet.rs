//! Signers: a key of this process, or one that never leaves its device or service, behind alloy's traits.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use alloy::consensus::{SignableTransaction, TxEip1559, TxEnvelope};
use alloy::network::TxSigner;
use alloy::primitives::{Address, Bytes, Signature, B256, U256, U64};
use alloy::signers::Error as SignerError;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{json, Value};
use url::Url;

use crate::address::parse_address;
use crate::error::Complaint;
use crate::http::{self, redacted, Poster};
use crate::Error;

/// The signer of an account's transactions. Made of any of alloy's signers by `into`, or from a [`Place`].
#[derive(Clone)]
pub struct Wallet(Arc<dyn TxSigner<Signature> + Send + Sync>);

impl<S: TxSigner<Signature> + Send + Sync + 'static> From<S> for Wallet {
    fn from(signer: S) -> Self {
        Self(Arc::new(signer))
    }
}

impl fmt::Debug for Wallet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wallet({})", self.address())
    }
}

impl Wallet {
    /// The account.
    pub fn address(&self) -> Address {
        self.0.address()
    }

    /// Signs a transaction; a Ledger asks its owner.
    pub(crate) async fn sign(&self, mut transaction: TxEip1559) -> Result<TxEnvelope, Error> {
        let signed = self.0.sign_transaction(&mut transaction).await;
        let signature = signed.map_err(|error| Error::Key(format!("{} does not sign: {error}", self.address())))?;
        // Do not trust the signer: send only a signature of the requested transaction.
        let hash = transaction.signature_hash();
        if signature.recover_address_from_prehash(&hash).ok() != Some(self.address()) {
            return Err(Error::Key(format!(
                "the signature is not for the transaction that {} was asked to sign",
                self.address()
            )));
        }
        Ok(TxEnvelope::from(transaction.into_signed(signature)))
    }
}

/// The location of a key outside this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a Ledger on this machine, under this path: `ledger`, or `ledger:m/44'/60'/1'/0/0`.
    Ledger(String),
    /// In AWS KMS, by its id or ARN: `aws:...`. Region and credentials come from AWS's own configuration.
    Aws(String),
    /// In Google Cloud KMS, by its version: `gcp:projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/1`.
    Gcp(String),
    /// With a signer that answers `eth_signTransaction`, such as Web3Signer or Clef: its URL, and behind a `#` the account, if it has several.
    Remote(Url, Option<Address>),
}

impl FromStr for Place {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Key(format!("a signer is ledger, ledger:PATH, aws:KEY, gcp:VERSION or a URL: {why}"));
        match text.split_once(':') {
            None if text == "ledger" => Ok(Self::Ledger("m/44'/60'/0'/0/0".into())),
            Some(("ledger", path)) if path.starts_with("m/") => Ok(Self::Ledger(path.into())),
            Some(("aws", key)) if !key.is_empty() => Ok(Self::Aws(key.into())),
            Some(("gcp", version)) if parts(version).is_some() => Ok(Self::Gcp(version.into())),
            Some(("http" | "https", _)) => {
                let mut url = http::parse(text, &["http", "https"])?;
                let account = url.fragment().map(parse_address).transpose().map_err(|error| wrong(&error.to_string()))?;
                url.set_fragment(None);
                Ok(Self::Remote(url, account))
            }
            _ => Err(wrong("this is none")),
        }
    }
}

/// Project, location, ring, key and version of a key in Google's cloud.
fn parts(version: &str) -> Option<[&str; 5]> {
    let mut parts = version.split('/');
    let mut after = |name: &str| (parts.next() == Some(name)).then(|| parts.next()).flatten().filter(|part| !part.is_empty());
    let found = [after("projects")?, after("locations")?, after("keyRings")?, after("cryptoKeys")?, after("cryptoKeyVersions")?];
    found[4].parse::<u64>().ok()?;
    parts.next().is_none().then_some(found)
}

impl Place {
    /// The wallet there, for transactions of a chain.
    ///
    /// # Errors
    /// [`Error::Key`] if there is none, or this is built without the feature for it.
    pub async fn open(&self, chain: u64) -> Result<Wallet, Error> {
        match self {
            Self::Ledger(path) => ledger(path, chain).await,
            Self::Aws(key) => aws(key, chain).await,
            Self::Gcp(version) => gcp(version, chain).await,
            Self::Remote(url, account) => Ok(Remote::open(url.clone(), *account).await?.into()),
        }
    }
}

#[cfg(feature = "ledger")]
async fn ledger(path: &str, chain: u64) -> Result<Wallet, Error> {
    use alloy::signers::ledger::{HDPath, LedgerSigner};
    let signer = LedgerSigner::new(HDPath::Other(path.into()), Some(chain)).await;
    let signer = signer
        .map_err(|error| Error::Key(format!("the Ledger does not answer: {error}. Is it unlocked, its Ethereum app open?")))?;
    Ok(signer.into())
}

#[cfg(feature = "aws")]
async fn aws(key: &str, chain: u64) -> Result<Wallet, Error> {
    use alloy::signers::aws::{aws_sdk_kms::Client, AwsSigner};
    let config = aws_config::load_defaults(aws_config::BehaviorVersion::latest()).await;
    let signer = AwsSigner::new(Client::new(&config), key.into(), Some(chain)).await;
    Ok(signer.map_err(|error| Error::Key(format!("AWS KMS gives no key {key}: {error}")))?.into())
}

#[cfg(feature = "gcp")]
async fn gcp(version: &str, chain: u64) -> Result<Wallet, Error> {
    use alloy::signers::gcp::gcloud_sdk::{
        google::cloud::kms::v1::key_management_service_client::KeyManagementServiceClient, GoogleApi,
    };
    use alloy::signers::gcp::{GcpKeyRingRef, GcpSigner, KeySpecifier};
    let none = |error: String| Error::Key(format!("Google Cloud KMS gives no key {version}: {error}"));
    let [project, location, ring, key, number] = parts(version).ok_or_else(|| none("it is no version of a key".into()))?;
    let client = GoogleApi::from_function(KeyManagementServiceClient::new, "https://cloudkms.googleapis.com", None).await;
    let client = client.map_err(|error| none(error.to_string()))?;
    let ring = GcpKeyRingRef::new(project, location, ring);
    let specifier = KeySpecifier::new(ring, key, number.parse().expect("it was read"));
    Ok(GcpSigner::new(client, specifier, Some(chain)).await.map_err(|error| none(error.to_string()))?.into())
}

#[cfg(not(feature = "ledger"))]
#[expect(clippy::unused_async, reason = "as with the feature")]
async fn ledger(_: &str, _: u64) -> Result<Wallet, Error> {
    without("ledger")
}

#[cfg(not(feature = "aws"))]
#[expect(clippy::unused_async, reason = "as with the feature")]
async fn aws(_: &str, _: u64) -> Result<Wallet, Error> {
    without("aws")
}

#[cfg(not(feature = "gcp"))]
#[expect(clippy::unused_async, reason = "as with the feature")]
async fn gcp(_: &str, _: u64) -> Result<Wallet, Error> {
    without("gcp")
}

#[cfg(not(all(feature = "ledger", feature = "aws", feature = "gcp")))]
fn without(feature: &str) -> Result<Wallet, Error> {
    Err(Error::Key(format!("this is built without the feature `{feature}`: cargo install --features {feature}")))
}

/// The patience for a remote signer: a person may need to approve.
const PATIENCE: Duration = Duration::from_mins(2);
/// The most bytes read of its answer.
const LONGEST: usize = 1 << 20;

/// A remote signer, asked by `eth_signTransaction`.
struct Remote {
    url: Url,
    poster: Poster,
    account: Address,
}

impl Remote {
    async fn open(url: Url, account: Option<Address>) -> Result<Self, Error> {
        let poster = Poster::new(PATIENCE, LONGEST)?;
        let all: Vec<Address> = ask(&poster, &url, "eth_accounts", json!([])).await?;
        let of = redacted(&url);
        let account = match (account, &all[..]) {
            (Some(account), all) if all.contains(&account) => account,
            (Some(account), _) => return Err(Error::Key(format!("{of} does not sign for {account}"))),
            (None, [only]) => *only,
            (None, []) => return Err(Error::Key(format!("{of} signs for no account"))),
            (None, all) => return Err(Error::Key(format!("{of} signs for {} accounts: say which, {of}#0x...", all.len()))),
        };
        Ok(Self { url, poster, account })
    }
}

/// Asks a signer. Errors omit its URL.
async fn ask<R: serde::de::DeserializeOwned>(poster: &Poster, url: &Url, method: &str, params: Value) -> Result<R, Error> {
    #[derive(Deserialize)]
    struct Answer<R> {
        result: Option<R>,
        error: Option<Complaint>,
    }
    let of = |why: String| Error::Key(format!("the signer {}: {why}", redacted(url)));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let text = poster.post(url, body.into()).await.map_err(|fault| of(fault.to_string()))?;
    let answer: Answer<R> = serde_json::from_slice(&text).map_err(|error| of(format!("a malformed answer: {error}")))?;
    match answer {
        Answer { error: Some(complaint), .. } => Err(of(complaint.message)),
        Answer { result: Some(result), .. } => Ok(result),
        Answer { .. } => Err(of("no answer".into())),
    }
}

/// geth and Clef return the transaction beside its bytes, Web3Signer the bytes alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Raw {
    Beside { raw: Bytes },
    Alone(Bytes),
}

#[async_trait]
impl TxSigner<Signature> for Remote {
    fn address(&self) -> Address {
        self.account
    }

    async fn sign_transaction(&self, tx: &mut dyn SignableTransaction<Signature>) -> Result<Signature, SignerError> {
        let number = U64::from;
        let fields = json!({
            "from": self.account, "to": tx.to(), "value": tx.value(), "data": tx.input(), "input": tx.input(),
            "gas": number(tx.gas_limit()), "nonce": number(tx.nonce()), "chainId": tx.chain_id().map(number), "type": "0x2",
            "maxFeePerGas": U256::from(tx.max_fee_per_gas()),
            "maxPriorityFeePerGas": U256::from(tx.max_priority_fee_per_gas().unwrap_or_default()),
        });
        let answer: Raw =
            ask(&self.poster, &self.url, "eth_signTransaction", json!([fields])).await.map_err(SignerError::other)?;
        let (Raw::Beside { raw } | Raw::Alone(raw)) = answer;
        let envelope = <TxEnvelope as alloy::eips::Decodable2718>::decode_2718(&mut &raw[..]).map_err(SignerError::other)?;
        let wanted: B256 = tx.signature_hash();
        if envelope.signature_hash() != wanted {
            return Err(SignerError::message("the signer has changed the transaction"));
        }
        Ok(*envelope.signature())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let key = "gcp:projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/7";
        assert!(matches!(key.parse(), Ok(Place::Gcp(version)) if parts(&version) == Some(["p", "l", "r", "k", "7"])));
        assert_eq!("ledger".parse::<Place>().unwrap(), Place::Ledger("m/44'/60'/0'/0/0".into()));
        assert_eq!("ledger:m/44'/60'/1'/0/0".parse::<Place>().unwrap(), Place::Ledger("m/44'/60'/1'/0/0".into()));
        let arn = "arn:aws:kms:eu-central-1:1:key/2";
        assert_eq!(format!("aws:{arn}").parse::<Place>().unwrap(), Place::Aws(arn.into()));
        let Ok(Place::Remote(url, Some(account))) = format!("http://127.0.0.1:9000/x#{}", Address::repeat_byte(7)).parse() else {
            panic!()
        };
        assert_eq!((url.as_str(), account), ("http://127.0.0.1:9000/x", Address::repeat_byte(7)));
        let mistyped = "http://127.0.0.1:9000#0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD";
        for wrong in [
            "",
            "ledger:",
            "aws:",
            "trezor",
            "gcp:projects/p",
            &format!("{key}/8"),
            "http://127.0.0.1:9000#7",
            "ftp://x",
            mistyped,
        ] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }

    /// A signer that answers as Web3Signer does, after `change` has altered the transaction.
    async fn signer(key: alloy::signers::local::PrivateKeySigner, change: fn(&mut TxEip1559)) -> String {
        use alloy::signers::SignerSync;
        use axum::{routing::post, Json, Router};
        let answer = move |Json(asked): Json<Value>| {
            let key = key.clone();
            async move {
                let result = if asked["method"] == "eth_accounts" {
                    json!([key.address()])
                } else {
                    let fields = &asked["params"][0];
                    let number = |name: &str| u128::from_str_radix(&fields[name].as_str().unwrap()[2..], 16).unwrap();
                    let mut tx = TxEip1559 {
                        chain_id: number("chainId") as u64,
                        nonce: number("nonce") as u64,
                        gas_limit: number("gas") as u64,
                        max_fee_per_gas: number("maxFeePerGas"),
                        max_priority_fee_per_gas: number("maxPriorityFeePerGas"),
                        to: fields["to"].as_str().unwrap().parse::<Address>().unwrap().into(),
                        value: fields["value"].as_str().unwrap().parse().unwrap(),
                        input: fields["data"].as_str().unwrap().parse().unwrap(),
                        ..Default::default()
                    };
                    change(&mut tx);
                    let signature = key.sign_hash_sync(&tx.signature_hash()).unwrap();
                    let envelope = TxEnvelope::from(tx.into_signed(signature));
                    json!(Bytes::from(alloy::eips::eip2718::Encodable2718::encoded_2718(&envelope)))
                };
                Json(json!({ "jsonrpc": "2.0", "id": 1, "result": result }))
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().route("/", post(answer))).await });
        format!("http://{at}")
    }

    #[tokio::test]
    async fn a_signer_elsewhere_signs_what_was_asked_for_and_nothing_else() {
        let key = alloy::signers::local::PrivateKeySigner::random();
        let asked = TxEip1559 {
            chain_id: 7,
            nonce: 0,
            gas_limit: 21_000,
            max_fee_per_gas: 5,
            to: Address::repeat_byte(1).into(),
            value: U256::from(9),
            input: vec![1, 2].into(),
            ..Default::default()
        };
        let open = |url: String| async move { url.parse::<Place>().unwrap().open(7).await.unwrap() };
        let wallet = open(signer(key.clone(), |_| ()).await).await;
        assert_eq!(wallet.address(), key.address());
        let signed = wallet.sign(asked.clone()).await.unwrap();
        let recovered = alloy::consensus::transaction::SignerRecoverable::recover_signer(&signed);
        assert_eq!(recovered.unwrap(), key.address());
        let changes: [fn(&mut TxEip1559); 3] = [|tx| tx.value += U256::ONE, |tx| tx.to = Address::ZERO.into(), |tx| tx.nonce = 1];
        for change in changes {
            let wallet = open(signer(key.clone(), change).await).await;
            assert!(wallet.sign(asked.clone()).await.unwrap_err().to_string().contains("has changed the transaction"));
        }
        // A signer for another account.
        let url = signer(key, |_| ()).await;
        assert!(format!("{url}#{}", Address::ZERO).parse::<Place>().unwrap().open(7).await.is_err());
    }
}
