//! Actions that any account may do, and that help this node: draws that could bring it work, ending its overdue task, a
//! judgement that pays it, a block that it waits for. Each waits for a random time, so that one of many nodes acts and the others see it.

use std::ops::Range;
use std::time::{Duration, Instant};

use alloy::primitives::{Bytes, U256};
use alloy::sol_types::SolCall;
use anyhow::Result;
use muster_client::{Error, Head, IMuster, Muster, DISPATCH};
use rand::Rng;

use crate::answers::{stamp, Answers, What};
use crate::say;

/// As in `IMuster.NodeView.status`.
const AVAILABLE: u8 = 1;
const BUSY: u8 = 2;
/// As in `IMuster.NodeView.parked`.
pub const APART: u8 = 1;
/// As in `IMuster.NodeView.parked`: often nobody else makes the draw that such a node waits for.
pub const RESERVED: u8 = 3;

/// The action to do, and when.
#[derive(Default)]
pub struct Drive(Option<(What, Instant)>);

impl Drive {
    /// Notes the action that is possible now. Returns it once it was possible without a break for a random time within this range.
    pub fn consider(&mut self, what: Option<What>, within: Range<Duration>) -> Option<What> {
        let now = Instant::now();
        let Some(what) = what else {
            self.0 = None;
            return None;
        };
        match self.0 {
            Some((waiting, at)) if waiting == what => {
                if now < at {
                    return None;
                }
                self.0 = None;
                Some(what)
            }
            _ => {
                let rest = within.start + within.end.saturating_sub(within.start).mul_f64(rand::thread_rng().gen());
                self.0 = Some((what, now + rest));
                None
            }
        }
    }

    /// The time until the action, if there is one.
    pub fn rest(&self) -> Option<Duration> {
        self.0.map(|(_, at)| at.saturating_duration_since(Instant::now()))
    }
}

/// Whether a node's rest is over at a time.
fn rested(view: &IMuster::NodeView, time: u64) -> bool {
    view.parked > 0 && view.parkedUntil > 0 && view.parkedUntil <= time
}

/// The action for a node whose time apart is over, and that no poke brings back. It pauses, leaves, or begins in a group then. `now` is the
/// expected time of the next block.
pub fn for_the_resting(now: u64, view: &IMuster::NodeView) -> Option<What> {
    (view.status != AVAILABLE && view.parked == APART && rested(view, now)).then_some(What::Return(view.node))
}

/// How long to leave an action to others, in blocks. The account that asked for a draw makes it first; of many nodes that could, one
/// or two act in each block from then on. An action that helps this node alone is done at once.
pub fn leaves(what: What, block: Duration, nodes: u32, reserved: bool, most: Duration) -> Range<Duration> {
    let within = match what {
        What::Poke(_) => Duration::ZERO..Duration::ZERO,
        What::Expire(..) | What::Return(_) => Duration::ZERO..block,
        // Three of them, and nobody else waits for it.
        What::Draw(_) if reserved => Duration::ZERO..block,
        What::Draw(_) => block * 2..block * 2 + block * nodes.clamp(4, 10_000),
        What::Form(_) | What::Settle(..) => Duration::ZERO..block * 3,
        // Its own operator does it as soon as the lot is known.
        What::Free(..) => (block * 8).max(OWN)..(block * 16).max(OWN * 2),
        // A chain that makes blocks has made one by then.
        What::Block(_) => (block * 4).max(QUIET)..(block * 8).max(QUIET * 2),
    };
    within.start.min(most)..within.end.min(most)
}

/// The time in which a node acts for itself before others do, however quick the chain.
const OWN: Duration = Duration::from_secs(4);
/// After this time without a block, nobody is expected to make one.
const QUIET: Duration = Duration::from_secs(1);

/// The action that helps an idle node, and the number of nodes; `now` is the expected time of the next block.
pub async fn for_the_idle(
    answers: &Answers,
    muster: &Muster,
    head: &Head,
    now: u64,
    view: &IMuster::NodeView,
) -> Result<(Option<What>, u32)> {
    // A reserved node counts as busy, and waits for this very draw.
    let reserved = view.parked == RESERVED && view.status == BUSY;
    if !reserved && (view.status != AVAILABLE || view.excluded && view.parked == 0) {
        return Ok((None, 1));
    }
    if rested(view, head.timestamp) {
        return Ok((Some(What::Poke(view.node)), 1));
    }
    if view.parked > 0 && !reserved && !rested(view, now) {
        return Ok((None, 1));
    }
    let overview = muster.read(IMuster::overviewCall {}).await?;
    let nodes = overview.nodesJoined;
    if view.parked > 0 && !reserved {
        // No block has shown the end of its rest yet. On a quiet chain none comes; without queued tasks it can wait for whoever creates one.
        return Ok(((overview.queued > 0).then_some(What::Block(head.number)), nodes));
    }
    if overview.pending > 0 {
        let first = muster.read(IMuster::pendingTasksCall { from: 0, count: 1 }).await?;
        return Ok(match first.first() {
            Some(task) if task.drawBlock > head.number => {
                answers.awaits(task.drawBlock);
                (Some(What::Block(head.number)), nodes)
            }
            first => (first.map(|task| What::Draw(task.id)), nodes),
        });
    }
    if view.parked > 0 {
        return Ok((None, nodes));
    }
    if overview.queued > 0 && view.parked == 0 && !view.held {
        let best = muster.read(IMuster::bestQueuedCall { number: view.node }).await?;
        return Ok(((best.id > 0).then_some(What::Poke(view.node)), nodes));
    }
    Ok((None, nodes))
}

/// An action in the log's words.
fn said(what: What) -> String {
    match what {
        What::Poke(_) => "asked for a queued task, or for its return to work,".into(),
        What::Expire(_, id) => format!("ended its overdue task {id}"),
        What::Return(_) => "ended the time for which it was set back".into(),
        What::Draw(id) => format!("made the draws from task {id} on, as nobody else did,"),
        What::Form(id) => format!("drew the validators from task {id} on, as nobody else did,"),
        What::Settle(id, _) => format!("had task {id} judged, as nobody else did,"),
        What::Free(node, id) => format!("had task {id} of node {node} validated or ended, as nobody else did,"),
        What::Block(number) => format!("made the block after {number}, as nobody else did,"),
    }
}

/// Acts, unless the call would be refused because another was quicker.
pub async fn carry_out(answers: &Answers, what: What) -> Result<()> {
    let calls: Vec<Vec<u8>> = match what {
        // Draws come in order: the same call makes the earlier ones before those of validators.
        What::Draw(_) | What::Form(_) => vec![IMuster::dispatchCall { count: DISPATCH }.abi_encode()],
        What::Block(_) | What::Return(_) => vec![IMuster::dispatchCall { count: 1 }.abi_encode()],
        What::Poke(node) => vec![IMuster::pokeCall { node }.abi_encode()],
        What::Expire(node, id) => vec![IMuster::expireCall { node, id }.abi_encode()],
        What::Settle(id, group) => vec![IMuster::settleCall { id, group }.abi_encode()],
        // The contract refuses one of them, or both while the node itself can still act.
        What::Free(node, id) => {
            vec![IMuster::validateCall { id, node }.abi_encode(), IMuster::expireCall { node, id }.abi_encode()]
        }
    };
    if answers.waits_for_one("drive ").await {
        return Ok(());
    }
    for (at, input) in calls.into_iter().enumerate() {
        match answers.account.send_once(&format!("drive {}-{at}", stamp()), Bytes::from(input), U256::ZERO).await {
            Ok(done) => {
                say!("{}: {} in transaction {}", answers.name, said(what), done.receipt.transaction_hash);
                answers.record(&done);
                return Ok(());
            }
            Err(Error::Refused(_) | Error::Undone { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_is_waited_for_anew() {
        let mut drive = Drive::default();
        assert_eq!(drive.consider(Some(What::Draw(1)), Duration::ZERO..Duration::ZERO), None);
        assert_eq!(drive.consider(Some(What::Draw(2)), Duration::ZERO..Duration::ZERO), None);
        assert_eq!(drive.consider(Some(What::Draw(2)), Duration::ZERO..Duration::ZERO), Some(What::Draw(2)));
        assert_eq!(drive.consider(Some(What::Draw(2)), Duration::ZERO..Duration::from_hours(1)), None);
        assert!(drive.rest().is_some_and(|rest| rest <= Duration::from_hours(1)));
        assert_eq!(drive.consider(None, Duration::ZERO..Duration::ZERO), None);
        assert_eq!(drive.rest(), None);
    }

    #[test]
    fn the_log_says_actions_in_words() {
        for (what, text) in [
            (What::Poke(1), "asked for a queued task, or for its return to work,"),
            (What::Expire(1, 7), "ended its overdue task 7"),
            (What::Draw(7), "made the draws from task 7 on, as nobody else did,"),
            (What::Free(3, 7), "had task 7 of node 3 validated or ended, as nobody else did,"),
        ] {
            assert_eq!(said(what), text);
        }
    }

    #[test]
    fn a_node_that_no_poke_brings_back_is_brought_back_otherwise() {
        let view = |status, parked, until| IMuster::NodeView {
            node: 7,
            status,
            parked,
            parkedUntil: until,
            ..IMuster::NodeView::default()
        };
        let [paused_soon, leaves_soon, kicked_out_soon] = [3, 4, 6];
        for status in [BUSY, paused_soon, leaves_soon, kicked_out_soon] {
            assert_eq!(for_the_resting(100, &view(status, APART, 100)), Some(What::Return(7)), "{status}");
            assert_eq!(for_the_resting(100, &view(status, APART, 101)), None, "its time is not over");
        }
        assert_eq!(for_the_resting(100, &view(AVAILABLE, APART, 100)), None, "a poke does it");
        assert_eq!(for_the_resting(100, &view(BUSY, RESERVED, 0)), None, "it waits for a draw");
        assert_eq!(for_the_resting(100, &view(BUSY, 0, 0)), None, "it works");
    }

    #[test]
    fn what_others_may_do_is_left_to_them_by_blocks() {
        let (block, most) = (Duration::from_millis(250), Duration::from_secs(20));
        let leaves = |what, nodes, reserved| leaves(what, block, nodes, reserved, most);
        // Nobody else pokes a node that was set back.
        assert_eq!(leaves(What::Poke(1), 1_000, false), Duration::ZERO..Duration::ZERO);
        // The account that asked for a task draws it first; of many nodes few act in one block.
        assert_eq!(leaves(What::Draw(1), 1, false), block * 2..block * 6);
        assert_eq!(leaves(What::Draw(1), 40, false), block * 2..block * 42);
        assert_eq!(leaves(What::Draw(1), 1_000_000, false).end, most);
        assert_eq!(leaves(What::Draw(1), 1_000, true), Duration::ZERO..block);
        // A block is made only where none comes.
        assert!(leaves(What::Block(7), 1, false).start >= block * 4);
        assert!(super::leaves(What::Block(7), block * 60, 1, false, most).end <= most);
    }
}
