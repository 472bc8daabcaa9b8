//! From a task to its bytes: the nodes that answered, the stores that they publish, and the objects in them.

use alloy::primitives::{Address, B256};

use crate::abi::Event;
use crate::muster::Muster;
use crate::seal::Seal;
use crate::store::{Attempt, Bounds, Found, Lost, Stores};
use crate::{Error, IMuster};

/// A right answer, from the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The node's number.
    pub node: u32,
    /// The digest of the result; of validated images, their hashes.
    pub value: B256,
    /// The salt, if it was committed to.
    pub salt: Option<B256>,
}

/// The outcome of a task, as far as its result is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The task's number.
    pub id: u64,
    /// The right answers, in the order of their reveals: each leads to the result.
    pub answers: Vec<Answer>,
    /// Whether answers are hashes of images, so that only a salt leads to the bytes.
    pub hashed: bool,
}

impl Outcome {
    /// The outcome of a task from all its events since its creation; `None` if it has not succeeded.
    pub fn of<'a>(id: u64, events: impl IntoIterator<Item = &'a Event>) -> Option<Self> {
        let (mut revealed, mut right) = (Vec::<Answer>::new(), Vec::new());
        let (mut hashed, mut paid, mut agreed) = (false, None, None);
        for event in events {
            match event {
                Event::TaskCreated(e) if e.id == id => hashed = e.spec.kind == 0 && e.spec.redundancy != 0,
                Event::AnswerRevealed(e) if e.id == id && e.kind == 0 => {
                    revealed.push(Answer { node: e.node, value: e.value, salt: Some(e.salt) });
                }
                Event::MemberJudged(e) if e.id == id && e.verdict == 1 => right.push(e.node),
                Event::TaskSucceeded(e) if e.id == id => paid = Some((e.node, e.resultDigest)),
                Event::GroupSettled(e) if e.id == id && e.outcome < 2 => agreed = Some(e.answer),
                _ => {}
            }
        }
        let answers = match (paid, agreed) {
            (Some((node, value)), _) => {
                let salt = revealed.iter().rev().find(|answer| answer.node == node).and_then(|answer| answer.salt);
                vec![Answer { node, value, salt }]
            }
            // Slightly different images are equally right.
            (None, Some(value)) => {
                revealed.into_iter().filter(|answer| answer.value == value || right.contains(&answer.node)).collect()
            }
            (None, None) => return None,
        };
        Some(Self { id, answers, hashed })
    }
}

/// Why the result of a successful task is unavailable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoResult {
    /// No store has it.
    #[error("{}", lost(*.id, .nodes, .attempts))]
    Lost {
        /// The task.
        id: u64,
        /// The nodes that answered.
        nodes: Vec<u32>,
        /// Each store's failure.
        attempts: Vec<Attempt>,
    },
    /// The chain gives no location.
    #[error(transparent)]
    Chain(#[from] Error),
}

fn lost(id: u64, nodes: &[u32], attempts: &[Attempt]) -> String {
    let nodes = nodes.iter().map(|node| format!("node {node}")).collect::<Vec<_>>().join(", ");
    if attempts.is_empty() {
        return format!("task {id} was answered by {nodes}, which publishes no store, and no other one was named");
    }
    let said: Vec<_> = attempts.iter().map(|attempt| format!("{}: {}", attempt.store, attempt.trouble)).collect();
    format!("task {id} was answered by {nodes}, and no store gives the result: {}", said.join("; "))
}

impl NoResult {
    /// Whether a retry may succeed later: a store was out of reach, or the chain's nodes were.
    pub fn passes(&self) -> bool {
        match self {
            Self::Lost { attempts, .. } => {
                attempts.iter().any(|attempt| matches!(attempt.trouble, crate::Trouble::Unreachable(_)))
            }
            Self::Chain(error) => error.passes(),
        }
    }
}

/// The stores to look for results in, and how.
#[derive(Clone, Default)]
pub struct Lookup {
    /// Asked first: stores named for this task.
    pub named: Stores,
    /// Asked last: stores for all tasks.
    pub configured: Stores,
    /// The limits for published stores.
    pub bounds: Bounds,
    /// Whether published stores may be in a private network.
    pub inside: bool,
    /// The key for results sealed to their creator.
    #[cfg(feature = "private")]
    pub private: Option<std::sync::Arc<crate::Private>>,
}

impl Lookup {
    async fn sealed(&self, stores: &Stores, seal: Seal) -> Result<Found, Lost> {
        #[cfg(feature = "private")]
        if let Some(own) = &self.private {
            return stores.open_private(crate::PrivateResult::Sealed(Box::new(seal)), own).await;
        }
        stores.open_sealed(&seal).await
    }

    async fn plain(&self, stores: &Stores, digest: B256) -> Result<Found, Lost> {
        #[cfg(feature = "private")]
        if let Some(own) = &self.private {
            return stores.open_private(crate::PrivateResult::Plain(digest), own).await;
        }
        stores.get(digest).await
    }
}

impl Muster {
    /// An account's published stores, as written; empty for a contract without such a list.
    pub async fn stores_of(&self, account: Address) -> Result<String, Error> {
        match self.read(IMuster::storesOfCall { account }).await {
            Err(Error::Refused(_) | Error::Answer { .. }) => Ok(String::new()),
            answered => answered,
        }
    }

    /// The stores of a node: its operator's entry, which also holds those that a worker publishes.
    pub async fn stores_of_node(&self, number: u32) -> Result<String, Error> {
        let operator = self.read(IMuster::nodeCall { number }).await?.operator;
        self.stores_of(operator).await
    }

    /// The result of a successful task, checked against its answer. Asks the stores named for the task, those that its nodes
    /// publish, and the configured ones.
    ///
    /// # Errors
    /// [`NoResult::Lost`] if no store has it.
    pub async fn result(&self, outcome: &Outcome, lookup: &Lookup) -> Result<Found, NoResult> {
        let mut attempts = Vec::new();
        for answer in &outcome.answers {
            let published = self.stores_of_node(answer.node).await?;
            let published = Stores::published(&published, lookup.bounds, lookup.inside);
            let stores = lookup.named.then(&published).then(&lookup.configured);
            if let Some(salt) = answer.salt {
                match lookup.sealed(&stores, Seal::new(outcome.id, answer.node, salt)).await {
                    Ok(found) => return Ok(found),
                    Err(lost) => attempts.extend(lost.attempts),
                }
            }
            if !outcome.hashed {
                match lookup.plain(&stores, answer.value).await {
                    Ok(found) => return Ok(found),
                    Err(lost) => attempts.extend(lost.attempts),
                }
            }
        }
        // Several answers, or both names of one, share the same stores.
        let mut told: Vec<Attempt> = Vec::new();
        attempts.retain(|attempt| {
            let new = !told.contains(attempt);
            told.push(attempt.clone());
            new
        });
        let nodes = outcome.answers.iter().map(|answer| answer.node).collect();
        Err(NoResult::Lost { id: outcome.id, nodes, attempts })
    }
}
