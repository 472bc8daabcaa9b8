//! Why an agent pauses its node: named reasons, appended to the calldata of `pause`, where the contract does not look.
//! So anyone who sees a pause, on any machine, knows its author and how it ends.

use alloy::primitives::Bytes;
use alloy::sol_types::SolCall;

use crate::IMuster;

/// The prefix of an agent's reasons in the calldata of `pause`.
const SIGN: &str = "muster-agent: ";
/// Longer calldata is not read as reasons.
const LONGEST: usize = 256;

/// The key's balance is too low for the open tasks.
pub const BALANCE: &str = "balance";
/// The disk is nearly full.
pub const DISK: &str = "disk";
/// The GPU does not answer.
pub const GPU: &str = "gpu";
/// The golden tasks' answers have changed.
pub const SELF_TEST: &str = "self-test";
/// Two tasks in a row failed by the node's fault, and there are no golden tasks for a better test.
pub const FAILURES: &str = "failures";
/// A group has judged the node's answer wrong, or the node withheld it.
pub const JUDGED: &str = "judged";
/// The node could get a task that pays less than its operator asks for, or has a policy that they do not accept.
pub const PRICE: &str = "price";
/// The agent ended.
pub const DRAIN: &str = "drain";

/// The meaning of a reason, and how the pause ends; the reason itself, if it is no agent's.
#[must_use]
pub fn explain(reason: &str) -> &str {
    match reason {
        BALANCE => "its key has too little ether for its open tasks: send it some, and the agent resumes the node",
        DISK => "its disk is nearly full: make room, and the agent resumes the node",
        GPU => "its GPU does not answer: the agent resumes the node when it does",
        SELF_TEST => {
            "its golden tasks are not answered as its name promises (`muster-agent doctor` says how): the agent resumes the node \
             when they are"
        }
        FAILURES => "two tasks in a row failed, and it has no golden tasks that would tell whose fault it was: the agent tries again by itself",
        JUDGED => {
            "it was judged to have answered wrong, or not to have revealed: the agent's log says in which task. Where nothing was \
             slashed the agent resumes the node when its golden tasks pass; where something was, `muster node resume` does when \
             you know why"
        }
        PRICE => {
            "a task waits that pays less than its operator asks for, or is of a policy that they do not take (`terms`): the agent \
             resumes the node when none does"
        }
        DRAIN => "its agent was ended: the agent resumes the node when it is started",
        other => other,
    }
}

/// The calldata of a `pause` for these reasons.
#[must_use]
pub fn calldata(reasons: &[String]) -> Bytes {
    let mut input = IMuster::pauseCall {}.abi_encode();
    input.extend_from_slice(format!("{SIGN}{}", reasons.join(", ")).as_bytes());
    input.into()
}

/// The reasons in the calldata of a `pause`; `None` if it is not an agent's.
#[must_use]
pub fn reasons(input: &[u8]) -> Option<Vec<String>> {
    let note = input.strip_prefix(&IMuster::pauseCall::SELECTOR).filter(|note| note.len() <= LONGEST)?;
    let text = std::str::from_utf8(note).ok()?.strip_prefix(SIGN)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-, ".contains(c);
    text.chars().all(plain).then(|| text.split(", ").map(str::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_read_as_they_were_written_and_nothing_else_is() {
        let both = [DISK.to_string(), SELF_TEST.to_string()];
        assert_eq!(reasons(&calldata(&both)).unwrap(), both);
        assert!(both.iter().all(|reason| explain(reason) != reason));
        assert_eq!(reasons(&IMuster::pauseCall {}.abi_encode()), None, "an operator's own");
        assert_eq!(reasons(&[&IMuster::resumeCall::SELECTOR[..], b"muster-agent: disk"].concat()), None);
        for note in ["muster-agent:", "another: disk", "muster-agent: \u{1b}[2J"] {
            assert_eq!(reasons(&[&IMuster::pauseCall::SELECTOR[..], note.as_bytes()].concat()), None, "{note:?}");
        }
        let long = format!("muster-agent: {}", "x".repeat(300));
        assert_eq!(reasons(&[&IMuster::pauseCall::SELECTOR[..], long.as_bytes()].concat()), None);
    }
}
