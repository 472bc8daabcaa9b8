//! Keeps a node to its operator's terms. The contract does not ask nodes before it gives them tasks, so a node is paused while a task
//! waits that it would refuse. It is paused before its present task ends, if that one would be its next. Any call that changes the candidates of a
//! due draw makes the draw first, a pause too: so the first such task may still come.

use std::time::{Duration, Instant};

use anyhow::Result;
use muster_client::{pause, IMuster};

use crate::answers::Answers;
use crate::terms::Terms;

/// A node's care for its terms.
#[derive(Default)]
pub struct Heed {
    /// When a task outside the terms was last seen.
    seen: Option<Instant>,
}

/// The most tasks waiting for a draw that are read.
const PAGE: u32 = 64;

impl Heed {
    /// Pauses the node while it could get a task outside its terms: one that waits for its draw or for validators, or its next from the
    /// queue.
    pub async fn look(&mut self, answers: &Answers, terms: &Terms, view: &IMuster::NodeView) -> Result<()> {
        if terms.is_empty() || !matches!(view.status, 1 | 2 | 3 | 5) {
            return Ok(());
        }
        let muster = &answers.shared.chain.muster;
        let (pending, calls, best) = tokio::join!(
            muster.read(IMuster::pendingTasksCall { from: 0, count: PAGE }),
            muster.read(IMuster::validatorDrawsCall { from: 0, count: PAGE }),
            muster.read(IMuster::bestQueuedCall { number: view.node }),
        );
        let tasks = pending?.into_iter().chain(calls?).chain([best?]);
        let could =
            |task: &IMuster::TaskView| task.id > 0 && if task.gpu == 0 { task.vram <= view.vram } else { task.gpu == view.gpu };
        match tasks.filter(could).find_map(|task| terms.refuse(&task)) {
            Some(why) => {
                self.seen = Some(Instant::now());
                answers.begin(pause::PRICE, &why)
            }
            None if self.seen.is_none_or(|seen| seen.elapsed() >= Duration::from_secs(terms.calm)) => answers.end(pause::PRICE),
            None => Ok(()),
        }
    }
}
