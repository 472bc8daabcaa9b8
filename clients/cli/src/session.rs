//! Shared by all commands: the contract, the account, and sending or only trying a call.

use std::sync::{LazyLock, OnceLock};

use alloy::dyn_abi::{DynSolValue, EventExt};
use alloy::json_abi::{JsonAbi, Param};
use alloy::primitives::{keccak256, Address, Bytes, FixedBytes, U256};
use alloy::rpc::types::Log;
use alloy::signers::local::PrivateKeySigner;
use alloy::sol_types::SolCall;
use anyhow::{anyhow, bail, ensure, Result};
use muster_client::observe::print;
use muster_client::{
    abi, key, show_amount, Account, Done, Endpoints, Entry, Error, Fate, Muster, Private, Sender, Sending, Settings, Wallet,
};
use serde_json::{json, Value};
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::OnceCell;

use crate::options::Options;

/// A command's output.
pub struct Report {
    /// To programs.
    pub json: Value,
    /// To people.
    pub text: String,
}

/// A contract, and the means to call it.
pub struct Session {
    pub options: Options,
    pub muster: Muster,
    wallet: OnceCell<Wallet>,
    key: OnceLock<PrivateKeySigner>,
}

/// A command that lacks something it cannot do without.
#[derive(Debug)]
pub struct Usage(&'static str);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Usage {}

/// The environment variable of a key without a file.
pub const KEY: &str = "PRIVATE_KEY";

impl Session {
    pub async fn open(options: &Options) -> Result<Self> {
        let address = options.muster.ok_or(Usage("which contract? --muster ADDRESS, or MUSTER in the environment"))?;
        let muster = Muster::connect(endpoints(options)?, address).await?;
        Ok(Self { options: options.clone(), muster, wallet: OnceCell::new(), key: OnceLock::new() })
    }

    pub fn endpoints(&self) -> &Endpoints {
        self.muster.endpoints()
    }

    /// Has nodes announce blocks and the contract's events, for commands that wait for them.
    pub fn listen(&self) -> Result<()> {
        let urls = &self.options.ws_url;
        Ok(self.endpoints().listen((!urls.is_empty()).then_some(urls), self.muster.address())?)
    }

    /// The signer; asks for a password once.
    pub async fn wallet(&self) -> Result<&Wallet> {
        let open = async || match &self.options.signer {
            Some(place) => anyhow::Ok(place.open(self.endpoints().chain().await?).await?),
            None => Ok(self.key()?.into()),
        };
        self.wallet.get_or_try_init(open).await
    }

    /// The account.
    pub async fn address(&self) -> Result<Address> {
        Ok(self.wallet().await?.address())
    }

    /// The key that opens results sealed to the account.
    pub fn private(&self) -> Result<Private> {
        ensure!(self.options.signer.is_none(), "--private needs the key itself, and that of --signer stays where it is");
        Ok(Private::of(&self.key()?))
    }

    /// The key, if it is here.
    fn key(&self) -> Result<PrivateKeySigner> {
        if let Some(key) = self.key.get() {
            return Ok(key.clone());
        }
        let key = here(&self.options)?;
        Ok(self.key.get_or_init(|| key).clone())
    }

    /// The account that calls.
    pub async fn account(&self) -> Result<Account> {
        let sending = Sending {
            fee_ceiling: self.options.max_gas_price.map(|price| price.saturating_to()),
            patience: self.options.patience(),
            ..Sending::default()
        };
        let place = self.options.home().join("transactions");
        let sender = Sender::open(self.endpoints().clone(), self.wallet().await?.clone(), &place, sending).await?;
        Ok(Account::new(self.muster.clone(), sender))
    }

    /// Prints progress, a line each.
    pub fn say(&self, report: &Report) {
        if self.options.json {
            print(&report.json);
        } else {
            print(&report.text);
        }
    }

    /// Calls, or in a dry run only prints the call's result.
    pub async fn call<C: SolCall + Clone>(&self, call: C, value: U256, what: &str) -> Result<Report> {
        if self.options.dry_run {
            return self.tried(self.address().await?, call, value, what).await;
        }
        let account = self.account().await?;
        self.call_by(&account, call, value, what).await
    }

    /// Calls by an account that is open.
    pub async fn call_by<C: SolCall + Clone>(&self, account: &Account, call: C, value: U256, what: &str) -> Result<Report> {
        let input = Bytes::from(call.abi_encode());
        let Some(open) = self.open_already(account, &input, value).await else {
            account.sender().tick().await?;
            return Ok(self.reported(&account.call(call, value).await?, what));
        };
        Ok(self.reported(&account.finish(open.nonce).await?, what))
    }

    /// A transaction that an earlier run left open. It comes first, and if it is this very call, waits for it instead.
    async fn open_already(&self, account: &Account, input: &Bytes, value: U256) -> Option<Entry> {
        let same = |entry: &Entry| {
            entry.fate == Fate::Open && (entry.to, entry.value, &entry.input) == (self.muster.address().into(), value, input)
        };
        account.sender().unfinished().await.into_iter().find(same)
    }

    async fn tried<C: SolCall + Clone>(&self, from: Address, call: C, value: U256, what: &str) -> Result<Report> {
        self.muster.try_as(from, call.clone(), value).await?;
        let gas = self.muster.gas(from, &call, value).await?;
        let price = self.endpoints().head().await?.base_fee_per_gas.unwrap_or_default();
        let cost = U256::from(gas) * U256::from(price);
        let text = format!(
            "would send: {what} ({} with {}), at most {gas} gas, which cost {} now",
            C::SIGNATURE,
            show_amount(value),
            show_amount(cost)
        );
        let json = json!({
            "dryRun": true, "call": C::SIGNATURE, "from": from, "to": self.muster.address(), "value": value.to_string(),
            "data": Bytes::from(call.abi_encode()), "gas": gas, "cost": cost.to_string(),
        });
        Ok(Report { json, text })
    }

    /// A call's result.
    pub fn reported(&self, done: &Done, what: &str) -> Report {
        let receipt = &done.receipt;
        let block = receipt.block_number.unwrap_or_default();
        let mut text =
            format!("{what}: transaction {} in block {block}, {} of gas", receipt.transaction_hash, show_amount(done.cost()));
        for event in &done.events {
            text += &format!("\n  {}", abi::describe(event));
        }
        let logs = receipt.logs().iter().filter(|log| log.address() == self.muster.address());
        let json = json!({
            "transaction": receipt.transaction_hash, "block": block, "gas": receipt.gas_used, "cost": done.cost().to_string(),
            "events": logs.map(event_json).collect::<Vec<_>>(),
        });
        Report { json, text }
    }
}

/// A command's payments, which the contract accepts as often as they are sent. Until the command has reported all of them, the same
/// command resumes those of an earlier run, in any state.
pub struct Payments<'a> {
    session: &'a Session,
    /// `None` in a dry run.
    account: Option<Account>,
    /// The command's request.
    asked: Vec<u8>,
    /// The calls' names in the account's journal.
    names: Vec<String>,
}

impl<'a> Payments<'a> {
    /// For a command with this request: only the given arguments, without computed values like a fee, which may change.
    pub async fn open(session: &'a Session, asked: Vec<u8>) -> Result<Self> {
        let account = if session.options.dry_run { None } else { Some(session.account().await?) };
        Ok(Self { session, account, asked, names: Vec::new() })
    }

    /// Calls, or reports the call of an earlier run; `what` describes it by the paid amount in wei.
    pub async fn call<C: SolCall + Clone>(&mut self, call: C, value: U256, what: impl Fn(U256) -> String) -> Result<Report> {
        let session = self.session;
        let Some(account) = &self.account else {
            return session.tried(session.address().await?, call, value, &what(value)).await;
        };
        let name = format!("{} {:#x} {}", self.names.len(), keccak256(&self.asked), session.muster.address());
        self.names.push(name.clone());
        let input = Bytes::from(call.abi_encode());
        let before = match account.sender().standing(&name).await? {
            None => session.open_already(account, &input, value).await,
            before => before,
        };
        let mut report = if let Some(Entry { nonce, value, .. }) = &before {
            let done = account.finish(*nonce).await?;
            session.reported(&done, &format!("{}, sent by an earlier run", what(*value)))
        } else {
            account.sender().tick().await?;
            session.reported(&account.call_once(&name, call, value).await?, &what(value))
        };
        report.json["earlier"] = json!(before.is_some());
        Ok(report)
    }

    /// All is reported: the same command pays again. Returns the account, unless it is a dry run.
    pub async fn told(self) -> Result<Option<Account>> {
        if let Some(account) = &self.account {
            for name in &self.names {
                account.sender().free(name).await?;
            }
        }
        Ok(self.account)
    }
}

/// The nodes of the flags.
pub fn endpoints(options: &Options) -> Result<Endpoints> {
    let mut urls = options.rpc_url.clone();
    if urls.is_empty() {
        urls = std::env::var("RPC_URL").map(|list| list.split(',').map(str::to_string).collect()).unwrap_or_default();
    }
    urls.retain(|url| !url.is_empty());
    if urls.is_empty() {
        bail!(Usage("which node? --rpc-url URL, or ETH_RPC_URL in the environment"));
    }
    let settings = Settings { chain: options.chain, ..Settings::default() };
    Ok(Endpoints::new(&urls, settings)?)
}

/// The signer, by the flags or the environment.
pub async fn wallet(options: &Options, endpoints: &Endpoints) -> Result<Wallet> {
    match &options.signer {
        Some(place) => Ok(place.open(endpoints.chain().await?).await?),
        None => Ok(here(options)?.into()),
    }
}

/// The key that the flags or the environment name, if no signer keeps it.
fn here(options: &Options) -> Result<PrivateKeySigner> {
    let file = match (&options.keystore, &options.account) {
        (Some(file), _) => Some(file.clone()),
        (None, Some(name)) => Some(options.home().join("keystore").join(name)),
        (None, None) => None,
    };
    if let Some(file) = file {
        // Before its password is asked for.
        std::fs::metadata(&file).map_err(|error| {
            Error::Key(format!("{}: {error}: `muster account list` has the names that there are", file.display()))
        })?;
        return Ok(key::from_keystore(&file, &password(options, false)?)?);
    }
    let none = || {
        anyhow!(Error::Key(format!("which key? --account NAME, --keystore FILE, --signer PLACE, or {KEY} in the environment")))
    };
    key::from_environment(KEY)?.ok_or_else(none)
}

/// The password of the key's file, asked for where no file gives it; twice for a new one.
pub fn password(options: &Options, new: bool) -> Result<key::Password> {
    let no_terminal = |_| anyhow!(Error::Key("no terminal to ask for the password: --password-file FILE".into()));
    let asked = |text: &str| -> Result<_> { Ok(key::Password::new(rpassword::prompt_password(text).map_err(no_terminal)?)) };
    let given = match &options.password_file {
        Some(file) => key::password_from(file)?,
        None => asked("password: ")?,
    };
    if new {
        ensure!(!given.is_empty(), Error::Key("the password is empty, and whoever has the file would have the key".into()));
        ensure!(options.password_file.is_some() || given == asked("again: ")?, Error::Key("the two differ".into()));
    }
    Ok(given)
}

fn interface() -> &'static JsonAbi {
    static ABI: LazyLock<JsonAbi> =
        LazyLock::new(|| serde_json::from_str(include_str!("IMuster.json")).expect("abi/IMuster.json is an ABI"));
    &ABI
}

/// A function of the interface as its signature; its selector, if there is none.
pub fn function_name(selector: FixedBytes<4>) -> String {
    let function = interface().functions().find(|function| function.selector() == selector);
    function.map_or_else(|| selector.to_string(), |function| function.signature())
}

/// The selectors of the interface's functions of this name.
pub fn functions_named(name: &str) -> Vec<FixedBytes<4>> {
    interface().functions().filter(|function| function.name == name).map(|function| function.selector()).collect()
}

/// Ends when the process is asked to end.
pub fn asked_to_end() -> Result<impl std::future::Future<Output = ()>> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}

/// A log as an event with its values by name; raw, if the interface has no such event.
pub fn event_json(log: &Log) -> Value {
    let place = json!({
        "block": log.block_number, "transaction": log.transaction_hash, "index": log.log_index,
    });
    let event = log.topic0().and_then(|topic| interface().events().find(|event| event.selector() == *topic));
    let decoded = event.and_then(|event| Some((event, event.decode_log(log.data()).ok()?)));
    let Some((event, decoded)) = decoded else {
        return json!({ "event": null, "topics": log.topics(), "data": log.data().data, "at": place });
    };
    let (mut indexed, mut body) = (decoded.indexed.into_iter(), decoded.body.into_iter());
    let values = event.inputs.iter().map(|input| {
        let value = if input.indexed { indexed.next() } else { body.next() };
        (input.name.clone(), value.map_or(Value::Null, |value| value_json(&value, &input.components)))
    });
    json!({ "event": event.name, "values": values.collect::<serde_json::Map<_, _>>(), "at": place })
}

/// A value; a record becomes an object of its named parts. Numbers are JSON numbers if JSON's readers keep them exact, else strings.
fn value_json(value: &DynSolValue, parts: &[Param]) -> Value {
    match value {
        DynSolValue::Bool(yes) => json!(yes),
        DynSolValue::Uint(number, bits) if *bits <= 32 => json!(number.to::<u64>()),
        DynSolValue::Uint(number, _) => json!(number.to_string()),
        DynSolValue::Address(address) => json!(address),
        DynSolValue::FixedBytes(word, size) => json!(Bytes::copy_from_slice(&word[..*size])),
        DynSolValue::Bytes(bytes) => json!(Bytes::copy_from_slice(bytes)),
        DynSolValue::String(text) => json!(text),
        DynSolValue::Array(values) | DynSolValue::FixedArray(values) => {
            values.iter().map(|value| value_json(value, parts)).collect()
        }
        // A tuple, or a named type where those are compiled in.
        other => {
            let values = other.as_fixed_seq().unwrap_or_default().iter().zip(parts);
            values.map(|(value, part)| (part.name.clone(), value_json(value, &part.components))).collect()
        }
    }
}
