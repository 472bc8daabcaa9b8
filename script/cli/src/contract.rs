//! The deployed contract as the tools see it: encoding by `abi/IMuster.json`, refusals in words.

use std::sync::OnceLock;

use anyhow::{anyhow, Context, Result};
use ethers::{
    abi::{Abi, Function, RawLog, Token},
    types::{Address, Bytes, Log, TransactionReceipt, U256},
};

use crate::chain::{Account, Chain, Outgoing, Reverted};

/// The public interface.
pub fn interface() -> &'static Abi {
    static ABI: OnceLock<Abi> = OnceLock::new();
    ABI.get_or_init(|| serde_json::from_str(include_str!("../../../abi/IMuster.json")).expect("abi/IMuster.json is an ABI"))
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
    /// A refusal in words, or the node's.
    pub async fn call(&self, chain: &Chain, function: &str, arguments: &[Token]) -> Result<Vec<Token>> {
        let answer = chain
            .call(None, self.address, U256::zero(), self.encode(function, arguments)?)
            .await
            .map_err(|error| explain(error, function))?;
        find(function)?.decode_output(&answer).with_context(|| format!("cannot read what {function} returned: {answer}"))
    }

    /// Calls a function that returns one struct, and gives its fields.
    ///
    /// # Errors
    /// A refusal in words, or the node's.
    pub async fn view(&self, chain: &Chain, function: &str, arguments: &[Token]) -> Result<Vec<Token>> {
        let values = self.call(chain, function, arguments).await?;
        values.into_iter().next().and_then(Token::into_tuple).with_context(|| format!("{function}() returned no struct"))
    }

    /// Sends a transaction and waits for it.
    ///
    /// # Errors
    /// A refusal in words, or the node's.
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
        account.send(chain, Outgoing { to: Some(self.address), value, data, gas }).await.map_err(|error| explain(error, function))
    }
}

/// A number among the values that a function returned.
///
/// # Errors
/// When there is none at that place.
pub fn field(values: &[Token], at: usize) -> Result<U256> {
    values
        .get(at)
        .cloned()
        .and_then(Token::into_uint)
        .with_context(|| format!("field {at} of the contract's answer is no number"))
}

fn find(function: &str) -> Result<&'static Function> {
    interface().function(function).map_err(|_| anyhow!("the interface has no function {function}"))
}

/// A failed call's error, with the contract's reason in words.
pub(crate) fn explain(error: anyhow::Error, function: &str) -> anyhow::Error {
    match error.downcast_ref::<Reverted>() {
        Some(reverted) => {
            let reason = reverted.explain(interface());
            error.context(format!("{function} was refused: {reason}"))
        }
        None => error.context(function.to_string()),
    }
}

/// An error of the interface, as a refused call came back with it.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Its name.
    pub name: &'static str,
    values: Vec<(&'static str, Token)>,
}

impl Refusal {
    /// What is behind a failed call; none if it failed for another reason.
    pub fn behind(error: &anyhow::Error) -> Option<Self> {
        let data = &error.downcast_ref::<Reverted>()?.data;
        let selector = data.get(..4)?;
        let error = interface().errors().find(|error| error.signature()[..4] == *selector)?;
        let values = error.decode(&data[4..]).ok()?;
        let names = error.inputs.iter().map(|input| input.name.as_str());
        Some(Self { name: &error.name, values: names.zip(values).collect() })
    }

    /// A number by its name.
    pub fn number(&self, name: &str) -> Option<u64> {
        let (_, value) = self.values.iter().find(|(each, _)| *each == name)?;
        value.clone().into_uint().filter(|value| value.bits() <= 64).map(|value| value.as_u64())
    }
}

/// One of the contract's events.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its name.
    pub name: &'static str,
    values: Vec<(String, Token)>,
}

impl Event {
    /// Reads a log; none if it is no event of the interface.
    pub fn of(log: &Log) -> Option<Self> {
        let topic = log.topics.first()?;
        let event = interface().events().find(|event| event.signature() == *topic)?;
        let decoded = event.parse_log(RawLog { topics: log.topics.clone(), data: log.data.to_vec() }).ok()?;
        Some(Self { name: &event.name, values: decoded.params.into_iter().map(|value| (value.name, value.value)).collect() })
    }

    /// A value by its name.
    pub fn get(&self, name: &str) -> Option<&Token> {
        self.values.iter().find(|(each, _)| each == name).map(|(_, value)| value)
    }

    /// A number that fits, or 0.
    pub fn number(&self, name: &str) -> u64 {
        self.get(name)
            .and_then(|value| value.clone().into_uint())
            .filter(|value| value.bits() <= 64)
            .map_or(0, |value| value.as_u64())
    }
}
