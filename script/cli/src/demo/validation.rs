//! Transactions of nodes and drivers for tasks that can be validated: commitments, reveals, `validate`, `settle`.
//!
//! Answers are perceptual hashes of images. Those of honest nodes differ from the right ones in a few bits, as from one GPU to
//! another; a cheat's are made up.

use alloy::primitives::{keccak256, B256, U256};
use anyhow::Result;
use muster_client::{
    IMuster::{commitCall, dispatchCall, expireCall, revealCall, settleCall, validateCall},
    Opening, Reason, DISPATCH,
};
use muster_trace::Outcome;

use super::{
    agenda::Action,
    state::{Demo, Who},
};
use crate::chain::reason;

/// Kinds of values in commitments.
const ANSWER: u8 = 0;
const ERROR: u8 = 1;
/// The code of every error.
const CODE: u8 = 1;
/// Bits in which an honest node's hash of an image differs from the right one at most.
const NOISE: u8 = 3;

/// Perceptual hashes of a task's images as a node has them: the right ones but for a few bits, or made up.
fn hashes(id: u64, images: u32, node: u64, cheats: bool) -> B256 {
    let mut value = B256::ZERO;
    for (image, place) in value.chunks_mut(8).enumerate().take(images as usize) {
        let own = keccak256(format!("image {image} of {id} on {node}"));
        let mut hash = if cheats { own } else { keccak256(format!("image {image} of {id}")) };
        if !cheats {
            for bit in &own[..usize::from(own[31] % (NOISE + 1))] {
                hash[usize::from(bit % 64 / 8)] ^= 1 << (bit % 8);
            }
        }
        // A hash of zero stands for no image.
        hash[7] |= u8::from(hash[..8] == [0; 8]);
        place.copy_from_slice(&hash[..8]);
    }
    value
}

impl Demo {
    /// Seconds that a node takes for a task that can be validated: a cheat looks at nothing.
    pub(super) fn takes(&self, request: usize, node: u64) -> u64 {
        match self.nodes.get(&node) {
            Some(node) if node.cheats => 1,
            Some(node) => (self.requests[request].seconds * 100 / node.speed).max(1),
            None => self.requests[request].seconds,
        }
    }

    /// A node's answer to a task, the same whenever it is asked. A request that failed with an error does so on every node, but a cheat
    /// does not know.
    fn opening(&self, id: u64, node: u64) -> Option<(usize, Opening)> {
        let (task, own) = (self.tasks.get(&id)?, self.nodes.get(&node)?);
        let request = &self.requests[task.request];
        let salt = keccak256(format!("muster demo {} salt {id} {node}", self.options.seed));
        let (kind, value) = if request.outcome == Outcome::Reports && !own.cheats {
            (ERROR, B256::with_last_byte(CODE))
        } else {
            (ANSWER, hashes(id, request.units, node, own.cheats))
        };
        Some((own.place, Opening { kind, value, salt }))
    }

    /// A node, the first or a validator, commits to its answer.
    pub(super) async fn commit(&mut self, id: u64, node: u64) -> Result<()> {
        let runs = match self.tasks.get(&id) {
            Some(task) if !task.ended => task.runs_on(node),
            _ => false,
        };
        let Some((place, opening)) = self.opening(id, node).filter(|_| runs) else { return Ok(()) };
        let commitment = opening.commitment(id, node as u32);
        self.tell(Who::Operator(place), &commitCall { id, commitment }).await
    }

    fn revealing(id: u64, group: u32, node: u64, opening: &Opening) -> revealCall {
        let Opening { kind, value, salt } = opening;
        revealCall { id, group, node: node as u32, kind: *kind, value: *value, salt: *salt }
    }

    /// Once the lot is drawn the node reveals, or an account that wants the start fee has its validators called.
    pub(super) async fn lot(&mut self, id: u64) -> Result<()> {
        let Some(task) = self.tasks.get(&id).filter(|task| !task.ended) else { return Ok(()) };
        let (Some(node), Some(block)) = (task.node, task.lot) else { return Ok(()) };
        let Some((place, opening)) = self.opening(id, node) else { return Ok(()) };
        if self.chain.endpoints.head().await?.number <= block {
            self.clock.pass(&self.chain).await?;
            self.agenda.plan(self.clock.now, Action::Lot(id));
            return Ok(());
        }
        let reveal = Self::revealing(id, 0, node, &opening);
        match self.check(self.operators[place].address(), &reveal, U256::ZERO).await {
            Ok(()) => self.tell(Who::Operator(place), &reveal).await,
            Err(error) if matches!(reason(&error), Some(Reason::Sampled(_))) => {
                self.tell(Who::Keeper, &validateCall { id, node: node as u32 }).await
            }
            Err(error) => Err(error),
        }
    }

    /// A member reveals its commitment.
    pub(super) async fn reveal(&mut self, id: u64, node: u64) -> Result<()> {
        let group = self.tasks.get(&id).filter(|task| !task.ended).and_then(|task| task.group);
        if let (Some(group), Some((place, opening))) = (group, self.opening(id, node)) {
            self.tell(Who::Operator(place), &Self::revealing(id, group, node, &opening)).await?;
        }
        Ok(())
    }

    /// Has a group judged that the last reveal did not judge, because draws were due, or some of whose members never reveal.
    pub(super) async fn settle(&mut self, id: u64) -> Result<()> {
        let Some(group) = self.tasks.get(&id).filter(|task| !task.ended).and_then(|task| task.group) else { return Ok(()) };
        let settle = settleCall { id, group };
        match self.check(self.keeper.address(), &settle, U256::ZERO).await {
            Ok(()) => {
                if self.tell_unless_draws_are_due(&settle).await? {
                    self.agenda.plan(self.clock.now, Action::Settle(id));
                }
            }
            Err(error) => match reason(&error) {
                Some(Reason::RevealsOpen(open)) => self.agenda.plan(open.closes + 1, Action::Settle(id)),
                Some(Reason::DrawsDue(_)) => {
                    self.tell(Who::Keeper, &dispatchCall { count: DISPATCH }).await?;
                    self.agenda.plan(self.clock.now, Action::Settle(id));
                }
                _ => return Err(error),
            },
        }
        Ok(())
    }

    /// Frees a member of a group that stayed silent.
    pub(super) async fn expire_member(&mut self, id: u64, node: u64) -> Result<()> {
        if !self.tasks.get(&id).is_some_and(|task| !task.ended && task.runs_on(node)) {
            return Ok(());
        }
        if !self.clock.has_chain_caught_up(&self.chain).await? {
            self.agenda.plan(self.clock.now + 1, Action::ExpireMember(id, node));
            return Ok(());
        }
        self.tell(Who::Keeper, &expireCall { node: node as u32, id }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::validation::{has_images, same_images, Images};

    fn images(value: B256) -> Images {
        std::array::from_fn(|at| u64::from_be_bytes(value[8 * at..8 * at + 8].try_into().unwrap()))
    }

    #[test]
    fn honest_images_are_alike_and_made_up_ones_are_not() {
        for id in 1..200 {
            for count in 1..=4 {
                let [a, b] = [1, 2].map(|node| images(hashes(id, count, node, false)));
                assert!(has_images(&a, count as u8) && has_images(&b, count as u8));
                assert!(same_images(&a, &b, 2 * NOISE), "{a:x?} {b:x?}");
                assert!(!same_images(&a, &images(hashes(id, count, 3, true)), 8));
                let [x, y] = [3, 4].map(|node| images(hashes(id, count, node, true)));
                assert!(!same_images(&x, &y, 8));
            }
        }
    }
}
