//! The deployed contract as the tools see it: encoding by `abi/IMuster.json`, refusals in words.

use std::sync::OnceLock;

use alloy_sol_types::SolCall;
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
        encode(function, arguments)
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

    /// Calls a function of the interface's Rust types without a transaction, as `from` or as nobody: what it returns is read by names.
    ///
    /// # Errors
    /// A refusal in words, or the node's.
    pub async fn ask<C: SolCall>(&self, chain: &Chain, from: Option<Address>, call: &C) -> Result<C::Return> {
        let name = name_of::<C>();
        let answer =
            chain.call(from, self.address, U256::zero(), call.abi_encode()).await.map_err(|error| explain(error, name))?;
        C::abi_decode_returns(&answer).with_context(|| format!("cannot read what {name} returned: {answer}"))
    }

    /// Whether a call with so many wei would be taken now; nothing is changed.
    ///
    /// # Errors
    /// A refusal in words, or the node's.
    pub async fn check<C: SolCall>(&self, chain: &Chain, from: Address, call: &C, value: U256) -> Result<()> {
        let answer = chain.call(Some(from), self.address, value, call.abi_encode()).await;
        answer.map(drop).map_err(|error| explain(error, name_of::<C>()))
    }

    /// A call to [`Self::ask`] as a transaction, which it waits for.
    ///
    /// # Errors
    /// As for [`Self::send`].
    pub async fn tell<C: SolCall>(
        &self,
        chain: &Chain,
        account: &mut Account,
        call: &C,
        value: U256,
        gas: Option<u64>,
    ) -> Result<TransactionReceipt> {
        let what = Outgoing { to: Some(self.address), value, data: call.abi_encode().into(), gas };
        account.send(chain, what).await.map_err(|error| explain(error, name_of::<C>()))
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

/// Calldata.
///
/// # Errors
/// As for [`Muster::encode`].
pub(crate) fn encode(function: &str, arguments: &[Token]) -> Result<Bytes> {
    Ok(find(function)?.encode_input(arguments).with_context(|| format!("arguments of {function}"))?.into())
}

/// A function's name in the interface.
pub fn name_of<C: SolCall>() -> &'static str {
    C::SIGNATURE.split('(').next().unwrap_or(C::SIGNATURE)
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

    /// An amount, or 0.
    pub fn amount(&self, name: &str) -> U256 {
        self.get(name).and_then(|value| value.clone().into_uint()).unwrap_or_default()
    }

    /// A list of numbers that fit, or none.
    pub fn numbers(&self, name: &str) -> Vec<u64> {
        let list = self.get(name).and_then(|value| value.clone().into_array()).unwrap_or_default();
        list.into_iter().filter_map(Token::into_uint).filter(|value| value.bits() <= 64).map(|value| value.as_u64()).collect()
    }

    /// Whether something holds.
    pub fn holds(&self, name: &str) -> bool {
        self.get(name).and_then(|value| value.clone().into_bool()).unwrap_or_default()
    }
}
