//! A node keeps to its operator's terms. The contract asks no node what it would take, so a node is paused while a task waits that it
//! would not: before its present task ends, if that would be its next. A draw that is due is made before any call that changes its
//! candidates, a pause too: the first such task may come all the same.

use std::time::{Duration, Instant};

use anyhow::Result;
use muster_client::{pause, IMuster};

use crate::answers::Answers;
use crate::terms::Terms;

/// What a node does about its terms.
#[derive(Default)]
pub struct Heed {
    /// When a task was last seen that it would not take.
    seen: Option<Instant>,
}

/// So many of the tasks that wait for a draw are looked at.
const PAGE: u32 = 64;

impl Heed {
    /// Pauses the node while a task could reach it that it would not take: one that waits for its draw or for validators, or that it would
    /// be given from the queue.
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
