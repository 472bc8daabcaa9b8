//! The contract's interface as Rust types, made from `abi/IMuster.sol` by the compiler: it cannot drift from the contract's.
//!
//! Every function is a struct of its arguments ([`IMuster::joinCall`]), every event and error one of its values.
#![allow(missing_docs, clippy::too_many_arguments, clippy::pub_underscore_fields)]

use std::fmt;

use alloy::primitives::{keccak256, Bytes, Log, B256, U256};
use alloy::sol_types::{SolEventInterface, SolInterface, SolValue};

alloy::sol!(
    #[sol(all_derives)]
    "src/IMuster.sol"
);

/// An event of the contract.
pub use IMuster::IMusterEvents as Event;

/// An error of the contract, with its arguments.
pub use IMuster::IMusterErrors as Reason;

const SOURCE: &str = include_str!("IMuster.sol");

/// The reason why a call was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// One of the contract's own errors.
    Known(Reason),
    /// An error that the interface does not have: of a newer contract, of a payment's receiver, or no data at all.
    Other(Bytes),
}

/// The recommended reaction to a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Make the draws that are due, by `dispatch`; then call again.
    DispatchFirst,
    /// Call again when the chain's clock is past this, in seconds since 1970.
    At(u64),
    /// Call again after this block.
    Block(u64),
    /// Call again soon: acceptance depends on other accounts.
    Later,
    /// The same call stays refused.
    Never,
}

impl Refusal {
    /// Decodes the data that a reverted call returned.
    pub fn decode(data: &[u8]) -> Self {
        Reason::abi_decode(data).map_or_else(|_| Refusal::Other(data.to_vec().into()), Refusal::Known)
    }

    /// The error's name in the interface.
    pub fn name(&self) -> Option<&'static str> {
        let Refusal::Known(reason) = self else { return None };
        Reason::name_by_selector(reason.selector())
    }

    /// The interface's description of the error, and possible causes.
    pub fn notice(&self) -> Option<String> {
        let text = notice("error", self.name()?)?;
        Some(match self {
            Refusal::Known(Reason::NothingToWithdraw(_)) => text
                + " Stake on its way back is not: it stays locked until its unbonding is over, and while commitments are open.",
            Refusal::Known(Reason::ProgramFailed(_)) => text + " Or it has expired, which `muster keepalive` tells.",
            _ => text,
        })
    }

    /// Whether, when and after which step the same call may be accepted.
    pub fn advice(&self) -> Advice {
        let Refusal::Known(reason) = self else { return Advice::Never };
        match reason {
            Reason::DrawsDue(_) => Advice::DispatchFirst,
            Reason::RefusedInBatch(e) => Refusal::decode(&e.reason).advice(),
            Reason::DeadlineNotPassed(e) => Advice::At(e.deadline),
            Reason::QueueTimeNotOver(e) => Advice::At(e.until),
            Reason::RevealsOpen(e) => Advice::At(e.closes),
            Reason::TooEarly(e) => Advice::At(e.effective),
            Reason::HashUnknown(e) => Advice::Block(e.block),
            Reason::TooManyPending(_)
            | Reason::TooManyValidatorDraws(_)
            | Reason::PausedByOwner(_)
            | Reason::NoNodes(_)
            | Reason::NotOpen(_) => Advice::Later,
            _ => Advice::Never,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Known(Reason::RefusedInBatch(e)) => {
                write!(f, "RefusedInBatch {{ place: {}, reason: {} }}", e.place, Refusal::decode(&e.reason))
            }
            Refusal::Known(reason) => f.write_str(&plain(&format!("{reason:?}"))),
            Refusal::Other(data) if data.is_empty() => f.write_str("without a reason"),
            Refusal::Other(data) => match alloy::sol_types::decode_revert_reason(data) {
                Some(reason) => f.write_str(&reason),
                None => write!(f, "with {data}"),
            },
        }
    }
}

/// An event as text: its name and its values by theirs.
pub fn describe(event: &Event) -> String {
    plain(&format!("{event:?}"))
}

/// `Name(Name { .. })`, as enums of the interface are written for debugging, without the repetition.
fn plain(text: &str) -> String {
    let inner = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(text).to_string()
}

/// The interface's comment on an error, an event or a function.
fn notice(kind: &str, name: &str) -> Option<String> {
    let at = SOURCE.find(&format!("\n    {kind} {name}("))?;
    let mut lines: Vec<_> = SOURCE[..at].lines().rev().map_while(|line| line.trim().strip_prefix("///")).collect();
    lines.reverse();
    let text =
        lines.iter().map(|line| line.trim()).take_while(|line| !line.starts_with("@param") && !line.starts_with("@return"));
    Some(text.collect::<Vec<_>>().join(" ").trim_start_matches("@notice ").to_string())
}

/// Reads a log as an event; `None` if no event of the interface has its first topic, or its data do not match.
pub fn event(log: &Log) -> Option<Event> {
    Event::decode_log(log).ok().map(|log| log.data)
}

/// The id of a model: the first five bytes of the hash of its name.
pub fn model_id(name: &str) -> u64 {
    let hash = keccak256(name);
    hash[..5].iter().fold(0, |id, byte| id << 8 | u64::from(*byte))
}

/// The commitment of a node before its reveal: kind 0 for an answer, 1 for an error's code. Keep the salt secret until then.
pub fn commitment(id: u64, node: u32, kind: u8, value: B256, salt: B256) -> B256 {
    // abi.encode pads each value to a word.
    keccak256((id, node, U256::from(kind), value, salt).abi_encode())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy::primitives::{Address, FixedBytes};

    #[test]
    fn refusals_say_what_to_do() {
        let due = Refusal::Known(Reason::DrawsDue(IMuster::DrawsDue { pending: 7 }));
        assert_eq!(due.advice(), Advice::DispatchFirst);
        assert_eq!(due.to_string(), "DrawsDue { pending: 7 }");
        let within = IMuster::RefusedInBatch {
            place: U256::from(2),
            reason: alloy::sol_types::SolError::abi_encode(&IMuster::TooManyPending { pending: 4095 }).into(),
        };
        let within = Refusal::Known(Reason::RefusedInBatch(within));
        assert_eq!(within.to_string(), "RefusedInBatch { place: 2, reason: TooManyPending { pending: 4095 } }");
        assert_eq!(within.advice(), Advice::Later);
        assert!(due.notice().unwrap().starts_with("This call could change draws that are due"));
        let nothing = Refusal::Known(Reason::NothingToWithdraw(IMuster::NothingToWithdraw { account: Address::ZERO }));
        assert!(nothing.notice().unwrap().contains("locked until its unbonding is over"), "{:?}", nothing.notice());
        let failed = IMuster::ProgramFailed { selector: FixedBytes::ZERO, program: Address::ZERO };
        assert!(Refusal::Known(Reason::ProgramFailed(failed)).notice().unwrap().contains("expired"));
        let early = Refusal::Known(Reason::DeadlineNotPassed(IMuster::DeadlineNotPassed { id: 1, deadline: 99 }));
        assert_eq!(early.advice(), Advice::At(99));
        assert_eq!(Refusal::decode(&[1, 2, 3]).advice(), Advice::Never);
        assert_eq!(Refusal::decode(&[]).to_string(), "without a reason");
    }

    #[test]
    fn a_model_has_the_id_that_the_readme_gives_it() {
        // cast keccak 'stabilityai/sdxl-turbo' | cut -c1-12
        assert_eq!(
            model_id("stabilityai/sdxl-turbo"),
            u64::from_str_radix(&keccak256("stabilityai/sdxl-turbo").to_string()[2..12], 16).unwrap()
        );
        assert!(model_id("x") < 1 << 40);
    }
}
