//! A deployed Muster: typed questions, and an account's typed calls.

use std::collections::BTreeSet;
use std::time::Duration;

use alloy::primitives::{keccak256, Address, Bytes, B256, U256};
use alloy::rpc::types::TransactionReceipt;
use alloy::sol_types::{SolCall, SolInterface};
use futures_util::{stream, StreamExt, TryStreamExt};

use crate::abi::{self, Advice, Event, IMuster, Reason, Refusal};
use crate::endpoints::Endpoints;
use crate::request::Request;
use crate::sender::Sender;
use crate::shown::show_amount;
use crate::Error;

/// The words of [`Muster::fatal_slash`], where `minStake` is `least` stake units and can be `most`, which is 4^9 times its first value.
fn fatal(stake: U256, least: U256, most: U256, stake_unit: U256) -> String {
    let least = least.min(most >> 18);
    let kept = (least - least / U256::from(16)) * stake_unit;
    if stake < kept {
        "its next slash, however small,".into()
    } else {
        format!("a slash that leaves less than {}", show_amount(kept))
    }
}

/// A deployed Muster, to ask.
#[derive(Clone)]
pub struct Muster {
    endpoints: Endpoints,
    address: Address,
}

/// The most tasks that one call of `dispatch` draws.
pub const DISPATCH: u8 = 16;
/// How long to wait before a group is judged in which an answer is not revealed, once its time is over. A late reveal counts until then,
/// and an honest node may come back late: with the chain, its programs, or an endpoint.
pub const LATE_REVEALS: Duration = Duration::from_mins(10);
/// The most tasks that one call creates.
pub const BATCH: usize = 16;
/// Numbers of parameters.
pub mod parameter {
    /// The least price of an estimated second of a task, in wei.
    pub const MIN_PRICE: u8 = 1;
    /// The least stake, in stake units.
    pub const MIN_STAKE: u8 = 16;
    /// The seconds after which anyone can end a queued task.
    pub const QUEUE_TIME: u8 = 22;
    /// The fee for a new GPU name, in stake units.
    pub const GROUP_FEE: u8 = 23;
}

/// The slot of the map from selectors to programs: `programs` of `abi/MusterStorage.sol`.
const PROGRAMS: u64 = 9;
/// The most concurrent requests.
const AT_ONCE: usize = 16;

/// The most rounds of draws made before a call that requires them.
const CLEARINGS: usize = 8;

impl Muster {
    /// The contract at an address; checks that there is one.
    pub async fn connect(endpoints: Endpoints, address: Address) -> Result<Self, Error> {
        if endpoints.code(address).await?.is_empty() {
            return Err(Error::NoContract(address));
        }
        Ok(Self::at(endpoints, address))
    }

    /// As [`Muster::connect`], without the check: for a contract just created.
    pub fn at(endpoints: Endpoints, address: Address) -> Self {
        Self { endpoints, address }
    }

    /// Its address.
    pub fn address(&self) -> Address {
        self.address
    }

    /// The nodes that are asked.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Alloy's own provider over the same nodes, for requests that do not concern Muster.
    pub fn provider(&self) -> alloy::providers::RootProvider {
        self.endpoints.provider()
    }

    /// Calls a view: `muster.read(IMuster::overviewCall {})`.
    ///
    /// # Errors
    /// [`Error::Refused`] with the contract's reason, or the nodes' failure.
    pub async fn read<C: SolCall>(&self, call: C) -> Result<C::Return, Error> {
        self.answer(None, call, U256::ZERO).await
    }

    /// The answer, or the refusal, that a call by an account would get in the next block; nothing is sent.
    pub async fn try_as<C: SolCall>(&self, from: Address, call: C, value: U256) -> Result<C::Return, Error> {
        self.answer(Some(from), call, value).await
    }

    async fn answer<C: SolCall>(&self, from: Option<Address>, call: C, value: U256) -> Result<C::Return, Error> {
        let answer = self.endpoints.call(from, &self.request(&call, value)).await?;
        C::abi_decode_returns(&answer).map_err(|error| {
            // As an address without code answers: the nodes are of another chain, or of one that began anew.
            if answer.is_empty() {
                return Error::NoContract(self.address);
            }
            Error::Answer { what: C::SIGNATURE.into(), why: error.to_string() }
        })
    }

    /// A parameter by its number: those of [`parameter`], or of `docs/parameters.md`.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is none of this number, or the nodes' failure.
    pub async fn parameter(&self, which: u8) -> Result<U256, Error> {
        Ok(self.read(IMuster::parameterCall { which }).await?.value)
    }

    /// The programs behind the contract: those behind the functions of the interface, and those that the contract lists. Reads the former
    /// from storage, because the program that lists them may not run any more.
    ///
    /// # Errors
    /// The nodes' failure.
    pub async fn programs(&self) -> Result<BTreeSet<Address>, Error> {
        let words = IMuster::IMusterCalls::selectors().map(|selector| {
            let key = [&B256::right_padding_from(&selector)[..], &U256::from(PROGRAMS).to_be_bytes::<32>()].concat();
            self.endpoints.word(self.address, keccak256(key))
        });
        let words: Vec<B256> = stream::iter(words).buffered(AT_ONCE).try_collect().await?;
        let mut programs: BTreeSet<Address> = words.into_iter().map(Address::from_word).collect();
        // Functions of a later version than this client's.
        if let Ok(facets) = self.read(IMuster::facetsCall {}).await {
            programs.extend(facets.into_iter().map(|facet| facet.facetAddress).filter(|program| *program != self.address));
        }
        programs.remove(&Address::ZERO);
        Ok(programs)
    }

    /// The cost of joining with a GPU beside the stake, in wei: the fee for its name if nobody has used it with this much memory (in GiB),
    /// else 0.
    ///
    /// # Errors
    /// The nodes' failure.
    pub async fn name_fee(&self, gpu: &str, vram: u16) -> Result<U256, Error> {
        match self.read(IMuster::gpuGroupCall { name: gpu.into(), vram }).await {
            Ok(_) => Ok(U256::ZERO),
            Err(error) if matches!(error.refusal(), Some(Refusal::Known(Reason::GpuNameUnknown(_)))) => {
                let stake_unit = self.read(IMuster::overviewCall {}).await?.stakeUnit;
                Ok(self.parameter(parameter::GROUP_FEE).await? * U256::from(stake_unit))
            }
            Err(error) => Err(error),
        }
    }

    /// The least stake that joining takes now, beside the fee for a new name.
    ///
    /// # Errors
    /// The nodes' failure.
    pub async fn least_stake(&self) -> Result<U256, Error> {
        let stake_unit = self.read(IMuster::overviewCall {}).await?.stakeUnit;
        Ok(self.parameter(parameter::MIN_STAKE).await? * U256::from(stake_unit))
    }

    /// Which slash puts a node of this stake out for good, as words that a verb follows. It must leave less than 15/16 of the least stake,
    /// or of the first one if that is lower, rounded up to stake units.
    ///
    /// # Errors
    /// The nodes' failure.
    pub async fn fatal_slash(&self, stake: U256) -> Result<String, Error> {
        let stake_unit = U256::from(self.read(IMuster::overviewCall {}).await?.stakeUnit);
        let of = self.read(IMuster::parameterCall { which: parameter::MIN_STAKE }).await?;
        Ok(fatal(stake, of.value, of.most, stake_unit))
    }

    /// The gas that a call by an account would take in the next block, including that of its data on L1.
    pub async fn gas<C: SolCall>(&self, from: Address, call: &C, value: U256) -> Result<u64, Error> {
        self.endpoints.gas(from, &self.request(call, value)).await
    }

    /// A call with a value in wei, as a [`Sender`] takes it.
    pub fn request<C: SolCall>(&self, call: &C, value: U256) -> Request {
        Request { to: self.address.into(), value, input: call.abi_encode().into(), ..Request::default() }
    }

    /// The events of a receipt.
    pub fn events(&self, receipt: &TransactionReceipt) -> Vec<Event> {
        receipt.logs().iter().filter(|log| log.address() == self.address).filter_map(|log| abi::event(&log.inner)).collect()
    }
}

/// The result of a call.
#[derive(Clone, Debug)]
pub struct Done {
    /// The transaction's receipt.
    pub receipt: TransactionReceipt,
    /// The contract's events in it.
    pub events: Vec<Event>,
}

impl Done {
    /// Its gas cost in wei, without the value sent.
    pub fn cost(&self) -> U256 {
        U256::from(self.receipt.gas_used) * U256::from(self.receipt.effective_gas_price)
    }
}

/// An account that calls a Muster.
pub struct Account {
    muster: Muster,
    sender: Sender,
}

impl Account {
    /// An account's calls, by its sender.
    pub fn new(muster: Muster, sender: Sender) -> Self {
        Self { muster, sender }
    }

    /// The contract.
    pub fn muster(&self) -> &Muster {
        &self.muster
    }

    /// The sender of its transactions.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The account.
    pub fn address(&self) -> Address {
        self.sender.address()
    }

    /// Calls with a value in wei, and waits until it is mined. Makes required draws ([`Advice::DispatchFirst`]) first, at this account's cost.
    ///
    /// # Errors
    /// [`Error::Refused`] before anything is sent; [`Error::Undone`] if it was mined and reverted; [`Error::NotMined`] if neither
    /// is known yet.
    pub async fn call<C: SolCall>(&self, call: C, value: U256) -> Result<Done, Error> {
        self.call_as(None, call, value).await
    }

    /// Creates tasks for their fees in wei, at most [`BATCH`] in one call, which costs less than one by one. Returns for each its id, or
    /// why it was left out; the fee of one left out becomes credit of this account. A single task is never left out, nor are tasks
    /// created all or none (`atomic`): a refusal then reverts the call.
    ///
    /// # Errors
    /// As [`Account::call`]: [`Reason::RefusedInBatch`] names the refused task and its error.
    pub async fn create_tasks(
        &self,
        tasks: &[(IMuster::TaskSpec, u128)],
        atomic: bool,
    ) -> Result<(Done, Vec<Result<u64, Refusal>>), Error> {
        let done = if let [(spec, fee)] = tasks {
            self.call(IMuster::createTaskCall { spec: spec.clone() }, U256::from(*fee)).await?
        } else {
            let (specs, fees): (Vec<_>, Vec<u128>) = tasks.iter().cloned().unzip();
            let value = fees.iter().copied().map(U256::from).sum();
            self.call(IMuster::createTasksCall { specs, fees, atomic }, value).await?
        };
        // The draws that the call made first concern other tasks, never one that it creates.
        let became = done.events.iter().filter_map(|event| match event {
            Event::TaskCreated(e) => Some(Ok(e.id)),
            Event::TaskRefused(e) => Some(Err(Refusal::decode(&e.reason))),
            _ => None,
        });
        let became = became.collect();
        Ok((done, became))
    }

    /// As `call`, under a name: happens once even after restarts, see [`Request::name`].
    pub async fn call_once<C: SolCall>(&self, name: &str, call: C, value: U256) -> Result<Done, Error> {
        self.call_as(Some(name), call, value).await
    }

    /// As `call_once`, with raw calldata: for arguments followed by more data.
    pub async fn send_once(&self, name: &str, input: Bytes, value: U256) -> Result<Done, Error> {
        self.send_as(Some(name), input, value).await
    }

    async fn call_as<C: SolCall>(&self, name: Option<&str>, call: C, value: U256) -> Result<Done, Error> {
        self.send_as(name, call.abi_encode().into(), value).await
    }

    async fn send_as(&self, name: Option<&str>, input: Bytes, value: U256) -> Result<Done, Error> {
        let mut clearings = CLEARINGS;
        loop {
            match self.once(name, &input, value).await {
                Err(error) if clearings > 0 && advice(&error) == Some(Advice::DispatchFirst) => {
                    clearings -= 1;
                    let draw = Bytes::from(IMuster::dispatchCall { count: DISPATCH }.abi_encode());
                    match self.once(None, &draw, U256::ZERO).await {
                        Err(error) if advice(&error).is_none() => return Err(error),
                        _ => {}
                    }
                }
                other => return other,
            }
        }
    }

    async fn once(&self, name: Option<&str>, input: &Bytes, value: U256) -> Result<Done, Error> {
        let name = name.map(str::to_string);
        let request = Request { to: self.muster.address.into(), value, input: input.clone(), gas: None, name };
        let nonce = self.sender.submit(request).await?;
        self.finish(nonce).await
    }

    /// Waits for a call that was sent, by its nonce; an earlier process may have sent it.
    ///
    /// # Errors
    /// As [`Sender::finish`].
    pub async fn finish(&self, nonce: u64) -> Result<Done, Error> {
        let receipt = self.sender.finish(nonce).await?;
        Ok(Done { events: self.muster.events(&receipt), receipt })
    }
}

fn advice(error: &Error) -> Option<Advice> {
    error.refusal().map(Refusal::advice)
}

#[cfg(test)]
mod tests {
    use super::parameter::*;
    use super::{fatal, U256};

    #[test]
    fn parameters_have_the_numbers_that_the_interface_says() {
        let all: serde_json::Value = serde_json::from_str(include_str!("../../../abi/parameters.json")).unwrap();
        for (number, name) in
            [(MIN_PRICE, "minPrice"), (MIN_STAKE, "minStake"), (QUEUE_TIME, "queueTime"), (GROUP_FEE, "groupFee")]
        {
            let known = all.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
            assert_eq!(known["number"], number, "{name}");
        }
    }

    #[test]
    fn a_fatal_slash_leaves_less_than_15_16_of_the_first_least_stake_or_of_todays() {
        let ether = |n: u64| U256::from(n) * U256::from(10).pow(U256::from(18));
        let all: serde_json::Value = serde_json::from_str(include_str!("../../../abi/parameters.json")).unwrap();
        let times =
            all[usize::from(MIN_STAKE)]["most"]["minimumStake"]["times"].to_string().trim_matches('"').parse::<u64>().unwrap();
        let says = |stake, least| fatal(ether(stake), U256::from(least), U256::from(400 * times), ether(1));
        assert_eq!(says(375, 400), "a slash that leaves less than 375 ether");
        assert_eq!(says(374, 400), "its next slash, however small,");
        assert_eq!(says(400, 800), "a slash that leaves less than 375 ether");
        assert_eq!(says(40, 33), "a slash that leaves less than 31 ether");
    }
}
