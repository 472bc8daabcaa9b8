//! The contract's logs as the simulator's events.

use alloy_sol_types::{SolEvent, SolEventInterface};
use muster_core::record::MEMBERS;
use muster_protocol::native::Log;
use muster_protocol::IMuster::{IMusterEvents as E, TaskCreated};

/// The events that the engine needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    Joined {
        node: u32,
    },
    Paused {
        node: u32,
    },
    Quit {
        node: u32,
    },
    KickedOut {
        node: u32,
    },
    Excluded {
        node: u32,
        until: u64,
    },
    Readmitted {
        node: u32,
    },
    /// 0 where it is reserved for a draw.
    Waits {
        node: u32,
        until: u64,
    },
    Download {
        node: u32,
        model: u64,
        task: u64,
    },
    Redrawn {
        task: u64,
    },
    Queued {
        task: u64,
        ticket: u64,
    },
    Started {
        task: u64,
        node: u32,
        deadline: u64,
    },
    Succeeded {
        task: u64,
        node: u32,
        paid: u128,
    },
    ErrorReported {
        task: u64,
        node: u32,
        refund: u128,
    },
    Aborted {
        task: u64,
        reason: u8,
        refund: u128,
    },
    Committed {
        task: u64,
        node: u32,
        group: u32,
        block: u64,
    },
    Sampled {
        task: u64,
        paid: u128,
    },
    /// 0 where there is no such member.
    Formed {
        task: u64,
        group: u32,
        nodes: [u32; MEMBERS],
        scored: bool,
    },
    MemberStarted {
        task: u64,
        node: u32,
        deadline: u64,
    },
    MemberTimedOut {
        task: u64,
        node: u32,
    },
    Judged {
        task: u64,
        node: u32,
        paid: u128,
    },
    Settled {
        task: u64,
        outcome: u8,
    },
    Slashed {
        node: u32,
        wei: u128,
    },
    Scored {
        node: u32,
        score: u8,
    },
}

impl Event {
    /// The event of a log; none for those that the engine has no use for.
    pub fn of(log: &Log) -> Option<Self> {
        if log.topics.first() == Some(&TaskCreated::SIGNATURE_HASH) {
            // The longest, and of no use.
            return None;
        }
        Some(match E::decode_raw_log(&log.topics, &log.data).ok()? {
            E::TaskStarted(e) => Self::Started { task: e.id, node: e.node, deadline: e.deadline },
            E::TaskSucceeded(e) => Self::Succeeded { task: e.id, node: e.node, paid: e.paid },
            E::TaskQueued(e) => Self::Queued { task: e.id, ticket: e.ticket },
            E::TaskRedrawn(e) => Self::Redrawn { task: e.id },
            E::TaskAborted(e) => Self::Aborted { task: e.id, reason: e.reason, refund: e.refund },
            E::TaskErrorReported(e) => Self::ErrorReported { task: e.id, node: e.node, refund: e.refund },
            E::DownloadRequested(e) => Self::Download { node: e.node, model: e.model, task: e.task },
            E::NodeExcluded(e) => Self::Excluded { node: e.node, until: e.until },
            E::NodeReadmitted(e) => Self::Readmitted { node: e.node },
            E::NodeWaits(e) => Self::Waits { node: e.node, until: e.until },
            E::NodeJoined(e) => Self::Joined { node: e.node },
            E::NodePaused(e) => Self::Paused { node: e.node },
            E::NodeQuit(e) => Self::Quit { node: e.node },
            E::AnswerCommitted(e) => Self::Committed { task: e.id, node: e.node, group: e.group, block: e.block },
            E::TaskSampled(e) => Self::Sampled { task: e.id, paid: e.paid },
            E::GroupFormed(e) => {
                let node = |i| e.nodes.get(i).copied().unwrap_or(0);
                Self::Formed { task: e.id, group: e.group, nodes: std::array::from_fn(node), scored: e.scored }
            }
            E::MemberStarted(e) => Self::MemberStarted { task: e.id, node: e.node, deadline: e.deadline },
            E::MemberTimedOut(e) => Self::MemberTimedOut { task: e.id, node: e.node },
            E::MemberJudged(e) => Self::Judged { task: e.id, node: e.node, paid: e.paid },
            E::GroupSettled(e) => Self::Settled { task: e.id, outcome: e.outcome },
            E::NodeSlashed(e) => Self::Slashed { node: e.node, wei: e.stake + e.unbonding + e.credit },
            E::ScoreRecorded(e) => Self::Scored { node: e.node, score: e.score },
            E::NodeKickedOut(e) => Self::KickedOut { node: e.node },
            _ => return None,
        })
    }
}
