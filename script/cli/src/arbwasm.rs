//! ArbWasm, the precompile that activates Stylus programs, lets them expire, and extends their lives.
//!
//! It keeps its records by the hash of a program's code: accounts with equal code are activated, kept alive and expire together, whoever
//! pays.

use alloy::{
    primitives::{address, utils::format_ether, Address, Bytes, B256, U256},
    rpc::types::TransactionReceipt,
    sol_types::{SolCall, SolEvent, SolInterface},
};
use anyhow::{anyhow, ensure, Context, Result};
use muster_client::{Error, Refusal, Request, Sender};

use self::ArbWasm::*;
use crate::chain::{refusal, Chain};

alloy::sol! {
    /// The part of it that is used here.
    #[allow(missing_docs)]
    interface ArbWasm {
        function stylusVersion() external view returns (uint16 version);
        function expiryDays() external view returns (uint16 days_);
        function keepaliveDays() external view returns (uint16 days_);
        function activationGas() external view returns (uint64 gas);
        function programTimeLeft(address program) external view returns (uint64 left);
        function programInitGas(address program) external view returns (uint64 gas, uint64 cached);
        function activateProgram(address program) external payable returns (uint16 version, uint256 dataFee);
        function codehashKeepalive(bytes32 codehash) external payable;

        event ProgramActivated(bytes32 indexed codehash, bytes32 moduleHash, address program, uint256 dataFee, uint16 version);
        event ProgramLifetimeExtended(bytes32 indexed codehash, uint256 dataFee);

        error ProgramNotActivated();
        error ProgramNeedsUpgrade(uint16 version, uint16 stylusVersion);
        error ProgramExpired(uint64 ageInSeconds);
        error ProgramUpToDate();
        error ProgramKeepaliveTooSoon(uint64 ageInSeconds);
        error ProgramInsufficientValue(uint256 have, uint256 want);
    }
}

/// Where it is.
pub(crate) const ARB_WASM: Address = address!("0000000000000000000000000000000000000071");
/// Activation gas above this means that the chain's owner has paused activations: no transaction may use as much.
const PAUSED_ABOVE: u64 = 30_000_000;
/// Percent added to the data fee, which may rise before the transaction is included; ArbWasm returns the rest.
const FEE_MARGIN: u64 = 20;
const DAY: u64 = 86_400;
/// Gas of an activation after its data fee was found: an account is read, and an event of four words and two topics emitted.
pub(crate) const AFTER_FEE: u64 = 800 + 3 * 375 + 8 * 4 * 32;

/// A chain's rules for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Stylus version that programs must be activated for.
    pub version: u64,
    /// Seconds after its activation that a program expires.
    pub expiry: u64,
    /// Seconds after its activation that a program can be kept alive.
    pub keepalive: u64,
    /// Gas that an activation costs beside its own.
    pub activation_gas: u64,
}

impl Rules {
    /// Reads them.
    ///
    /// # Errors
    /// When the chain has no Stylus.
    pub async fn of(chain: &Chain) -> Result<Self> {
        let version = chain
            .endpoints
            .call(None, &request(&stylusVersionCall {}, U256::ZERO))
            .await
            .map_err(|error| anyhow!("chain {} has no Stylus (ArbWasm does not answer: {error})", chain.id))?;
        ensure!(!version.is_empty(), "chain {} has no Stylus: there is nothing at ArbWasm's address", chain.id);
        Ok(Self {
            version: decoded::<stylusVersionCall>(&version)?.into(),
            expiry: u64::from(read(chain, &expiryDaysCall {}).await?) * DAY,
            keepalive: u64::from(read(chain, &keepaliveDaysCall {}).await?) * DAY,
            // Not every chain has it; where it is missing nothing is paused.
            activation_gas: read(chain, &activationGasCall {}).await.unwrap_or_default(),
        })
    }

    /// Whether the chain's owner has put activations out of reach.
    pub fn paused(&self) -> bool {
        self.activation_gas > PAUSED_ABOVE
    }
}

/// How it stands with a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It runs, for so many seconds yet.
    Active {
        /// Seconds.
        left: u64,
    },
    /// It was activated for another Stylus version, and no longer runs.
    Outdated {
        /// That version.
        version: u64,
    },
    /// It has expired, and no longer runs.
    Expired {
        /// Seconds since its activation.
        age: u64,
    },
    /// It has never been activated.
    Inactive,
}

impl Status {
    /// Of the program at an address.
    ///
    /// # Errors
    /// The node's.
    pub async fn of(chain: &Chain, program: Address) -> Result<Self> {
        let answer = chain.endpoints.call(None, &request(&programTimeLeftCall { program }, U256::ZERO)).await;
        status(answer).with_context(|| format!("ArbWasm does not say how it stands with {program:?}"))
    }
}

/// The answer of `programTimeLeft`.
pub(crate) fn status(answer: Result<Bytes, Error>) -> Result<Status> {
    let error = match answer {
        Ok(answer) => return Ok(Status::Active { left: decoded::<programTimeLeftCall>(&answer)? }),
        Err(error) => error,
    };
    match error.refusal().and_then(own) {
        Some(ArbWasmErrors::ProgramNotActivated(_)) => Ok(Status::Inactive),
        Some(ArbWasmErrors::ProgramNeedsUpgrade(e)) => Ok(Status::Outdated { version: e.version.into() }),
        Some(ArbWasmErrors::ProgramExpired(e)) => Ok(Status::Expired { age: e.ageInSeconds }),
        _ => Err(error.into()),
    }
}

/// The answer of a call that costs a data fee, tried without value.
pub(crate) enum Fee {
    /// So much, in wei.
    Demanded(U256),
    /// It costs none.
    Nothing,
}

/// The data fee, out of the answer to a call without value.
pub(crate) fn fee(answer: Result<Bytes, Error>) -> Result<Fee> {
    match answer {
        Ok(_) => Ok(Fee::Nothing),
        Err(error) => match error.refusal().and_then(own) {
            Some(ArbWasmErrors::ProgramInsufficientValue(e)) => Ok(Fee::Demanded(e.want)),
            _ => Err(error.into()),
        },
    }
}

/// The value sent for a data fee.
pub(crate) fn with_margin(fee: U256) -> U256 {
    fee + fee * U256::from(FEE_MARGIN) / U256::from(100)
}

/// ArbOS's least price of a stored byte, in wei, and the bytes by whose activation the price rises e-fold, if no time passes.
const LEAST_PRICE: f64 = 82_928_201.0;
const INERTIA: f64 = 21_360_419.0;

/// The most that a data fee rises to by activations before it whose fees come to `before` at the same price: those pay for no more bytes
/// than they would at the least price.
pub fn raised(fee: U256, before: U256) -> U256 {
    // Rounded in the last of sixteen digits, which the margin covers.
    let [fee, before] = [fee, before].map(|wei| wei.saturating_to::<u64>() as f64);
    U256::from((fee * (before / (LEAST_PRICE * INERTIA)).exp()).ceil() as u128)
}

/// An activation, without its data fee.
pub(crate) fn activation(program: Address) -> Request {
    request(&activateProgramCall { program }, U256::ZERO)
}

/// Gas that the start of a program costs in a transaction's first frame, memory aside: cached, and not.
///
/// # Errors
/// When the program is not active.
pub async fn start_gas(chain: &Chain, program: Address) -> Result<(u64, u64)> {
    let answer = read(chain, &programInitGasCall { program }).await?;
    Ok((answer.cached, answer.gas))
}

/// The payment for an activation or for a longer life.
#[derive(Clone, Debug)]
pub struct Paid {
    /// For the machine code, in wei, beside gas.
    pub data_fee: U256,
    /// The transaction.
    pub receipt: TransactionReceipt,
}

impl std::fmt::Display for Paid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let gas = self.receipt.gas_used;
        write!(f, "{gas} gas and {} ether of data fee", format_ether(self.data_fee))
    }
}

/// Activates a program, whether for the first time or again.
///
/// # Errors
/// When activations are paused, the account cannot pay, or ArbWasm refuses; the refusal stays in the chain of causes.
pub async fn activate(chain: &Chain, account: &Sender, name: &str, program: Address) -> Result<Paid> {
    ensure!(!Rules::of(chain).await?.paused(), "{}", paused(chain.id));
    pay(chain, account, activation(program)).await.map_err(|error| refused(chain, &format!("activate {name}"), error))
}

/// Lets a program's life begin anew. Only active programs can be kept alive, and only some time after their activation.
///
/// # Errors
/// As for [`activate`]; a pause of activations does not matter.
pub async fn keep_alive(chain: &Chain, account: &Sender, name: &str, code_hash: B256) -> Result<Paid> {
    pay(chain, account, request(&codehashKeepaliveCall { codehash: code_hash }, U256::ZERO))
        .await
        .map_err(|error| refused(chain, &format!("keep {name} alive"), error))
}

/// Why an activation fails where they are paused.
pub fn paused(chain_id: u64) -> String {
    format!(
        "activations are paused on chain {chain_id}. On Arbitrum One and Nova new Stylus programs have been refused since \
         2 October 2026; Arbitrum Sepolia and chains of one's own accept them"
    )
}

/// Sends a call that costs a data fee, and reads the fee where the event has it.
async fn pay(chain: &Chain, account: &Sender, request: Request) -> Result<Paid> {
    // Asked without value: ArbWasm then demands the fee.
    let fee = match fee(chain.endpoints.call(Some(account.address()), &request).await)? {
        Fee::Demanded(fee) => fee,
        Fee::Nothing => U256::ZERO,
    };
    let balance = chain.endpoints.balance(account.address()).await?;
    ensure!(
        fee <= balance,
        "it costs {} ether of data fee, and account {:?} has {}",
        format_ether(fee),
        account.address(),
        format_ether(balance)
    );
    let receipt = chain.send(account, Request { value: with_margin(fee), ..request }).await?;
    let own = receipt.logs().iter().filter(|log| log.address() == ARB_WASM);
    let paid = own.map(|log| &log.inner).find_map(|log| {
        let activated = ProgramActivated::decode_log(log).map(|event| event.dataFee);
        activated.or_else(|_| ProgramLifetimeExtended::decode_log(log).map(|event| event.dataFee)).ok()
    });
    Ok(Paid { data_fee: paid.unwrap_or(fee), receipt })
}

/// A refusal of ArbWasm's in words.
fn refused(chain: &Chain, what: &str, error: anyhow::Error) -> anyhow::Error {
    let Some(refusal) = refusal(&error) else {
        return error.context(format!("cannot {what}"));
    };
    let words = match (own(refusal), refusal) {
        (Some(ArbWasmErrors::ProgramInsufficientValue(e)), _) => format!(
            "cannot {what}: the data fee has risen to {} ether meanwhile, and {} were sent; run this again",
            format_ether(e.want),
            format_ether(e.have)
        ),
        (Some(ArbWasmErrors::ProgramKeepaliveTooSoon(e)), _) => {
            format!("cannot {what} yet: it was activated only {} days ago", e.ageInSeconds / DAY)
        }
        (Some(ArbWasmErrors::ProgramUpToDate(_)), _) => format!("cannot {what}: it is active already"),
        (_, Refusal::Other(data)) if data.is_empty() && matches!(chain.id, 42161 | 42170) => paused(chain.id),
        _ => format!("ArbWasm refuses to {what}"),
    };
    error.context(words)
}

/// A refusal as one of ArbWasm's own errors.
fn own(refusal: &Refusal) -> Option<ArbWasmErrors> {
    let Refusal::Other(data) = refusal else { return None };
    ArbWasmErrors::abi_decode(data).ok()
}

/// A call of it, with a value in wei.
fn request(call: &impl SolCall, value: U256) -> Request {
    Request { to: ARB_WASM.into(), value, input: call.abi_encode().into(), ..Request::default() }
}

async fn read<C: SolCall>(chain: &Chain, call: &C) -> Result<C::Return> {
    decoded::<C>(&chain.endpoints.call(None, &request(call, U256::ZERO)).await?)
}

fn decoded<C: SolCall>(answer: &Bytes) -> Result<C::Return> {
    C::abi_decode_returns(answer).with_context(|| format!("ArbWasm's answer to {} cannot be read: {answer}", C::SIGNATURE))
}
