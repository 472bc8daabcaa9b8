//! What others may do as well, and this node gains by: draws that could bring it work, the end of a task that it is late for, a
//! judgement that pays it, a block that it waits for. After a random time, so that of many who wait one does it, and the others see that it is done.

use std::time::{Duration, Instant};

use alloy::primitives::{Bytes, U256};
use alloy::sol_types::SolCall;
use anyhow::Result;
use muster_client::{Account, Error, Head, IMuster, Muster, DISPATCH};
use rand::Rng;

use crate::say;

/// As in `IMuster.NodeView.status`.
const PENDING_PAUSE: u8 = 3;
/// As in `IMuster.NodeView.parked`: the draw that such a node waits for is often made by nobody else.
const RESERVED: u8 = 3;

/// Something to do, and what shows that it is the same still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Draw the tasks that wait, of which this is the first.
    Draw(u64),
    /// Draw the validators of the sampled tasks that wait, of which this is the first.
    Form(u64),
    /// Bring the node back, or offer it what is queued.
    Poke(u32),
    /// End the node's own task, whose time is over: before somebody does, nobody gives it another.
    Expire(u32, u64),
    /// Have a group judged.
    Settle(u64, u32),
    /// End the rest of a node that is to be paused then. Any call does it, and on a quiet chain there is no other.
    Pause(u32),
    /// Make a block after this one: what decides something is the hash of a block that has not come, on a chain where nobody
    /// makes one.
    Block(u64),
}

/// What is to be done, and when.
#[derive(Default)]
pub struct Drive(Option<(What, Instant)>);

impl Drive {
    /// Notes what could be done now; gives it when its time has come and it could be done all the while.
    pub fn consider(&mut self, what: Option<What>, within: Duration) -> Option<What> {
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
                let rest = within.mul_f64(rand::thread_rng().gen());
                self.0 = Some((what, now + rest));
                None
            }
        }
    }

    /// How long until something is to be done, if something is.
    pub fn rest(&self) -> Option<Duration> {
        self.0.map(|(_, at)| at.saturating_duration_since(Instant::now()))
    }
}

/// What a node needs whose pause waits for the end of its rest.
pub fn for_the_resting(head: &Head, view: &IMuster::NodeView) -> Option<What> {
    let over = view.parkedUntil > 0 && view.parkedUntil <= head.timestamp;
    (view.status == PENDING_PAUSE && view.parked > 0 && over).then_some(What::Pause(view.node))
}

/// What an idle node gains by.
pub async fn for_the_idle(muster: &Muster, head: &Head, view: &IMuster::NodeView) -> Result<Option<What>> {
    if view.status != 1 || view.excluded && view.parked == 0 {
        return Ok(None);
    }
    if view.parked > 0 && view.parked != RESERVED {
        let back = view.parkedUntil > 0 && view.parkedUntil <= head.timestamp;
        return Ok(back.then_some(What::Poke(view.node)));
    }
    let overview = muster.read(IMuster::overviewCall {}).await?;
    if overview.pending > 0 {
        let first = muster.read(IMuster::pendingTasksCall { from: 0, count: 1 }).await?;
        return Ok(first.first().map(|task| What::Draw(task.id)));
    }
    if overview.queued > 0 && view.parked == 0 && !view.held {
        let best = muster.read(IMuster::bestQueuedCall { number: view.node }).await?;
        return Ok((best.id > 0).then_some(What::Poke(view.node)));
    }
    Ok(None)
}

/// Does it, unless it would be refused: then another was quicker.
pub async fn carry_out(account: &Account, node: &str, what: What) -> Result<()> {
    let input: Bytes = match what {
        // Draws come in order: what waits before the validators is drawn by the same call.
        What::Draw(_) | What::Form(_) => IMuster::dispatchCall { count: DISPATCH }.abi_encode(),
        What::Block(_) | What::Pause(_) => IMuster::dispatchCall { count: 1 }.abi_encode(),
        What::Poke(node) => IMuster::pokeCall { node }.abi_encode(),
        What::Expire(node, id) => IMuster::expireCall { node, id }.abi_encode(),
        What::Settle(id, group) => IMuster::settleCall { id, group }.abi_encode(),
    }
    .into();
    let stamp = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
    match account.send_once(&format!("drive {stamp}"), input, U256::ZERO).await {
        Ok(done) => {
            say!("{node}: {what:?}, because nobody else did, in transaction {}", done.receipt.transaction_hash);
            Ok(())
        }
        Err(Error::Refused(_) | Error::Undone { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_is_waited_for_anew() {
        let mut drive = Drive::default();
        assert_eq!(drive.consider(Some(What::Draw(1)), Duration::ZERO), None);
        assert_eq!(drive.consider(Some(What::Draw(2)), Duration::ZERO), None);
        assert_eq!(drive.consider(Some(What::Draw(2)), Duration::ZERO), Some(What::Draw(2)));
        assert_eq!(drive.consider(Some(What::Draw(2)), Duration::from_hours(1)), None);
        assert!(drive.rest().is_some_and(|rest| rest <= Duration::from_hours(1)));
        assert_eq!(drive.consider(None, Duration::ZERO), None);
        assert_eq!(drive.rest(), None);
    }
}
