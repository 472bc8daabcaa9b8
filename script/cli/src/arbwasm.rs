//! ArbWasm, the precompile that activates Stylus programs, lets them expire, and extends their lives.
//!
//! What it keeps it keeps by the hash of a program's code: accounts with equal code are activated, kept alive and
//! expire together, whoever pays.

use anyhow::{anyhow, ensure, Context, Result};
use ethers::{
    abi::{self, ParamType, Token},
    providers::Middleware,
    types::{Address, Bytes, TransactionReceipt, H160, H256, U256},
    utils::{format_ether, id},
};

use crate::chain::{Account, Chain, Outgoing, Reverted};

/// Where it is.
pub(crate) const ARB_WASM: Address = H160([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x71]);
/// Activation gas above this means that the chain's owner has paused activations: no transaction may use as much.
const PAUSED_ABOVE: u64 = 30_000_000;
/// Percent added to the data fee, which may rise before the transaction is included; ArbWasm returns the rest.
const FEE_MARGIN: u64 = 20;
const DAY: u64 = 86_400;
/// What activates a program.
pub(crate) const ACTIVATE: &str = "activateProgram(address)";
/// Gas of an activation after its data fee was found: an account is read, and an event of four words and two topics emitted.
pub(crate) const AFTER_FEE: u64 = 800 + 3 * 375 + 8 * 4 * 32;

/// A chain's rules for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Stylus version that programs have to be activated for.
    pub version: u64,
    /// Seconds after its activation that a program expires.
    pub expiry: u64,
    /// Seconds after its activation that a program can be kept alive.
    pub keepalive: u64,
    /// Gas that an activation costs beside its own.
    pub activation_gas: U256,
}

impl Rules {
    /// Reads them.
    ///
    /// # Errors
    /// When the chain has no Stylus.
    pub async fn of(chain: &Chain) -> Result<Self> {
        let version = read(chain, "stylusVersion()", &[])
            .await
            .map_err(|error| anyhow!("chain {} has no Stylus (ArbWasm does not answer: {error:#})", chain.id))?;
        ensure!(!version.is_zero(), "chain {} has no Stylus: there is nothing at ArbWasm's address", chain.id);
        Ok(Self {
            version: version.as_u64(),
            expiry: read(chain, "expiryDays()", &[]).await?.as_u64() * DAY,
            keepalive: read(chain, "keepaliveDays()", &[]).await?.as_u64() * DAY,
            // Not every chain has it; where it is missing nothing is paused.
            activation_gas: read(chain, "activationGas()", &[]).await.unwrap_or_default(),
        })
    }

    /// Whether the chain's owner has put activations out of reach.
    pub fn paused(&self) -> bool {
        self.activation_gas > PAUSED_ABOVE.into()
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
        let data = calldata("programTimeLeft(address)", &[Token::Address(program)]);
        let answer = chain.call(None, ARB_WASM, U256::zero(), data).await;
        status(answer).with_context(|| format!("ArbWasm does not say how it stands with {program:?}"))
    }
}

/// What `programTimeLeft` says.
pub(crate) fn status(answer: Result<Bytes>) -> Result<Status> {
    let error = match answer {
        Ok(answer) => return Ok(Status::Active { left: word(&answer).as_u64() }),
        Err(error) => error,
    };
    let found = error.downcast_ref::<Reverted>().and_then(|reverted| {
        if is(reverted, "ProgramNotActivated()") {
            Some(Status::Inactive)
        } else if is(reverted, "ProgramNeedsUpgrade(uint16,uint16)") {
            Some(Status::Outdated { version: value(reverted, 0).as_u64() })
        } else if is(reverted, "ProgramExpired(uint64)") {
            Some(Status::Expired { age: value(reverted, 0).as_u64() })
        } else {
            None
        }
    });
    found.ok_or(error)
}

/// What a call that costs a data fee says when it is tried without value.
pub(crate) enum Fee {
    /// So much, in wei.
    Demanded(U256),
    /// It costs none.
    Nothing,
}

/// The data fee, out of the answer to a call without value.
pub(crate) fn fee(answer: Result<Bytes>) -> Result<Fee> {
    match answer {
        Ok(_) => Ok(Fee::Nothing),
        Err(error) => match error.downcast_ref::<Reverted>() {
            Some(reverted) if is(reverted, INSUFFICIENT) => Ok(Fee::Demanded(value(reverted, 1))),
            _ => Err(error),
        },
    }
}

/// What is sent of a data fee.
pub(crate) fn with_margin(fee: U256) -> U256 {
    fee + fee * FEE_MARGIN / 100
}

/// ArbOS's least price of a byte that nodes keep, in wei, and the bytes by whose activation the price rises e-fold, if no time passes.
const LEAST_PRICE: f64 = 82_928_201.0;
const INERTIA: f64 = 21_360_419.0;

/// What a data fee rises to, at most, by activations before it whose fees come to `before` at the same price: those pay for no more bytes
/// than they would at the least price.
pub fn raised(fee: U256, before: U256) -> U256 {
    // Rounded in the last of sixteen digits, which the margin covers.
    let [fee, before] = [fee, before].map(|wei| wei.min(u64::MAX.into()).as_u64() as f64);
    ((fee * (before / (LEAST_PRICE * INERTIA)).exp()).ceil() as u128).into()
}

/// Calldata of an activation.
pub(crate) fn activation(program: Address) -> Bytes {
    calldata(ACTIVATE, &[Token::Address(program)])
}

/// Gas that the start of a program costs in a transaction's first frame, memory aside: cached, and not.
///
/// # Errors
/// When the program is not active.
pub async fn start_gas(chain: &Chain, program: Address) -> Result<(u64, u64)> {
    let answer =
        chain.call(None, ARB_WASM, U256::zero(), calldata("programInitGas(address)", &[Token::Address(program)])).await?;
    let values = abi::decode(&[ParamType::Uint(64), ParamType::Uint(64)], &answer)
        .with_context(|| format!("ArbWasm's answer on the start of {program:?} cannot be read: {answer}"))?;
    let [uncached, cached] = [0, 1].map(|at: usize| values[at].clone().into_uint().unwrap_or_default().as_u64());
    Ok((cached, uncached))
}

/// What was paid for an activation or for a longer life.
#[derive(Clone, Debug)]
pub struct Paid {
    /// For the machine code, in wei, beside gas.
    pub data_fee: U256,
    /// The transaction.
    pub receipt: TransactionReceipt,
}

impl std::fmt::Display for Paid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let gas = self.receipt.gas_used.unwrap_or_default();
        write!(f, "{gas} gas and {} ether of data fee", format_ether(self.data_fee))
    }
}

/// Activates a program, whether for the first time or again.
///
/// # Errors
/// When activations are paused, the account cannot pay, or ArbWasm refuses; [`Reverted`] stays in the chain of causes.
pub async fn activate(chain: &Chain, account: &mut Account, name: &str, program: Address) -> Result<Paid> {
    ensure!(!Rules::of(chain).await?.paused(), "{}", paused(chain.id));
    pay(chain, account, activation(program), "ProgramActivated(bytes32,bytes32,address,uint256,uint16)", 2)
        .await
        .map_err(|error| refused(chain, &format!("activate {name}"), error))
}

/// Lets a program's life begin anew. Only active programs can be kept alive, and only some time after their activation.
///
/// # Errors
/// As for [`activate`]; a pause of activations does not matter.
pub async fn keep_alive(chain: &Chain, account: &mut Account, name: &str, code_hash: H256) -> Result<Paid> {
    let data = calldata("codehashKeepalive(bytes32)", &[Token::FixedBytes(code_hash.0.to_vec())]);
    pay(chain, account, data, "ProgramLifetimeExtended(bytes32,uint256)", 0)
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

/// Sends a call that costs a data fee, and reads the fee where `event` has it: the word `at` of its data.
async fn pay(chain: &Chain, account: &mut Account, data: Bytes, event: &str, at: usize) -> Result<Paid> {
    // Asked without value: what ArbWasm then demands is the fee.
    let fee = match fee(chain.call(Some(account.address()), ARB_WASM, U256::zero(), data.clone()).await)? {
        Fee::Demanded(fee) => fee,
        Fee::Nothing => U256::zero(),
    };
    let balance = chain.provider.get_balance(account.address(), None).await.map_err(|error| chain.trouble(&error))?;
    ensure!(
        fee <= balance,
        "it costs {} ether of data fee, and account {:?} has {}",
        format_ether(fee),
        account.address(),
        format_ether(balance)
    );
    let receipt = account.send(chain, Outgoing { to: Some(ARB_WASM), value: with_margin(fee), data, gas: None }).await?;
    let topic = H256(ethers::utils::keccak256(event));
    let paid = receipt
        .logs
        .iter()
        .find(|log| log.address == ARB_WASM && log.topics.first() == Some(&topic))
        .and_then(|log| log.data.get(at * 32..at * 32 + 32))
        .map_or(fee, U256::from_big_endian);
    Ok(Paid { data_fee: paid, receipt })
}

const INSUFFICIENT: &str = "ProgramInsufficientValue(uint256,uint256)";

/// A refusal of ArbWasm's in words.
fn refused(chain: &Chain, what: &str, error: anyhow::Error) -> anyhow::Error {
    let Some(reverted) = error.downcast_ref::<Reverted>() else {
        return error.context(format!("cannot {what}"));
    };
    let words = if is(reverted, INSUFFICIENT) {
        let (have, want) = (format_ether(value(reverted, 0)), format_ether(value(reverted, 1)));
        format!("cannot {what}: the data fee has risen to {want} ether meanwhile, and {have} were sent; run this again")
    } else if is(reverted, "ProgramKeepaliveTooSoon(uint64)") {
        format!("cannot {what} yet: it was activated only {} days ago", value(reverted, 0).as_u64() / DAY)
    } else if is(reverted, "ProgramUpToDate()") {
        format!("cannot {what}: it is active already")
    } else if reverted.data.is_empty() && matches!(chain.id, 42161 | 42170) {
        paused(chain.id)
    } else {
        format!("ArbWasm refuses to {what}")
    };
    error.context(words)
}

async fn read(chain: &Chain, signature: &str, arguments: &[Token]) -> Result<U256> {
    let answer = chain.call(None, ARB_WASM, U256::zero(), calldata(signature, arguments)).await?;
    Ok(word(&answer))
}

fn word(answer: &Bytes) -> U256 {
    U256::from_big_endian(answer.get(..32).unwrap_or_default())
}

/// Calldata of a method with one static argument or none.
fn calldata(signature: &str, arguments: &[Token]) -> Bytes {
    [&id(signature)[..], &abi::encode(arguments)].concat().into()
}

fn is(reverted: &Reverted, signature: &str) -> bool {
    reverted.data.get(..4) == Some(&id(signature))
}

/// A value of a refusal, by its place.
fn value(reverted: &Reverted, at: usize) -> U256 {
    U256::from_big_endian(reverted.data.get(4 + at * 32..36 + at * 32).unwrap_or_default())
}
