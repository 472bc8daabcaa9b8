//! Logs of the past, in pieces that nodes give.

use std::ops::RangeInclusive;

use alloy::rpc::types::Log;
use serde_json::{json, Value};

use crate::{Endpoints, Error};

/// Blocks of a search's first question; later ones cover more, up to `MOST`, or what a node gives.
const FIRST: u64 = 2_000;
/// See `FIRST`.
const MOST: u64 = 1 << 20;
/// After so many questions at a node's limit, and after twice, four times as many and so on, more is tried again.
const PATIENCE: u32 = 64;
/// The most waits in a row for nodes that limit requests. They double, and take a minute in all where the first is a second.
const WAITS: u32 = 6;

/// The number of blocks of the next question: it grows until a node refuses, and then stays near the most that it gives. Now and then it
/// tries more again: a node may have refused many logs, or have been busy, rather than so many blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub next: u64,
    most: u64,
    /// The most that was given, and the least that was refused since.
    given: u64,
    refused: u64,
    /// Questions at the limit.
    kept: u32,
    /// Waits in a row for nodes that limit requests.
    waited: u32,
}

impl Span {
    pub fn new(first: u64, most: u64) -> Self {
        let most = most.clamp(1, u64::MAX / 2);
        Self { next: first.clamp(1, most), most, given: 0, refused: most + 1, kept: 0, waited: 0 }
    }

    /// Notes that so many blocks were given. Where fewer than `next` were left to ask for, that shows nothing.
    pub fn give(&mut self, asked: u64) {
        self.waited = 0;
        if asked != self.next {
            return;
        }
        self.given = self.given.max(asked);
        let between = self.refused - self.given;
        if self.given == self.most {
            self.kept = 0;
        } else if self.refused <= self.most && between <= self.given / 8 + 1 {
            self.kept = self.kept.saturating_add(1);
            if self.kept >= PATIENCE && self.kept.is_power_of_two() {
                self.refused = self.most + 1;
            } else {
                self.next = self.given;
                return;
            }
        }
        self.next = if self.refused > self.most { (self.given * 2).min(self.most) } else { self.given + between / 2 };
    }

    /// Notes that so many blocks, at least two, were refused.
    pub fn refuse(&mut self, asked: u64) {
        if self.given < asked {
            self.refused = asked;
            self.next = if self.given > 0 { self.given } else { asked.div_ceil(8) };
        } else {
            // Also the most that was given before: there are more events here, or the node is away.
            *self = Self::new(asked.div_ceil(8), self.most);
        }
    }
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Searched {
    /// The questions asked.
    pub questions: u32,
    /// The first block that was searched.
    pub from: u64,
    /// The most blocks that a node gave at once.
    pub given: u64,
}

impl Endpoints {
    /// Hands the logs of a range of blocks to `take`, the oldest first. The filter has an address and topics, as for `eth_getLogs`. One
    /// question is about at most so many blocks, or about fewer where a node refuses it or cannot answer it: nodes differ in how many
    /// blocks, or bytes, they give at once.
    ///
    /// # Errors
    /// Those of `take`, or of the nodes about a single block.
    pub async fn past<E: From<Error>>(
        &self,
        mut filter: Value,
        blocks: RangeInclusive<u64>,
        most: u64,
        mut take: impl FnMut(Vec<Log>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut next, last) = blocks.into_inner();
        let mut span = Span::new(most, most);
        while next <= last {
            let to = last.min(next.saturating_add(span.next - 1));
            if let Some(logs) = self.piece(&mut filter, next..=to, &mut span).await? {
                take(logs)?;
                next = to + 1;
            }
        }
        Ok(())
    }

    /// The newest log of a range of blocks that the filter lets through, searched for backward as in [`Endpoints::past`]. After each
    /// question that did not find it, `goes_on` says whether another is asked.
    ///
    /// # Errors
    /// Those of the nodes about a single block.
    pub async fn newest(
        &self,
        mut filter: Value,
        blocks: RangeInclusive<u64>,
        mut goes_on: impl FnMut(Searched) -> bool,
    ) -> Result<Option<Log>, Error> {
        let (first, mut to) = blocks.into_inner();
        let mut span = Span::new(FIRST, MOST);
        let mut questions = 0;
        while first <= to {
            let from = to.saturating_sub(span.next - 1).max(first);
            questions += 1;
            if let Some(mut logs) = self.piece(&mut filter, from..=to, &mut span).await? {
                if let Some(log) = logs.pop() {
                    return Ok(Some(log));
                }
                if from == first {
                    break;
                }
                to = from - 1;
            }
            if !goes_on(Searched { questions, from: to + 1, given: span.given }) {
                break;
            }
        }
        Ok(None)
    }

    /// Whether another healthy node has a log, too. Where there is no other, the same one is asked again.
    ///
    /// # Errors
    /// As [`Endpoints::ask`].
    pub async fn confirms(&self, log: &Log) -> Result<bool, Error> {
        let block = json!(log.block_number.map(|block| format!("{block:#x}")));
        let filter = json!({ "address": log.inner.address, "topics": log.inner.topics(), "fromBlock": block, "toBlock": block });
        let others: Vec<Log> = self.ask_from(1, "eth_getLogs", [filter]).await?;
        Ok(others.iter().any(|other| other.inner == log.inner))
    }

    /// The logs of some blocks; `None` if a node refuses so many at once, or cannot answer.
    async fn piece(&self, filter: &mut Value, blocks: RangeInclusive<u64>, span: &mut Span) -> Result<Option<Vec<Log>>, Error> {
        let (from, to) = blocks.into_inner();
        (filter["fromBlock"], filter["toBlock"]) = (json!(format!("{from:#x}")), json!(format!("{to:#x}")));
        match self.ask::<Vec<Log>>("eth_getLogs", [filter]).await {
            Ok(logs) => {
                span.give(to - from + 1);
                Ok(Some(logs))
            }
            Err(Error::Unreachable(_)) if span.waited < WAITS && self.spared().await => {
                span.waited += 1;
                Ok(None)
            }
            // Also too long an answer, or too slow.
            Err(Error::Node(_) | Error::Unreachable(_)) if to > from => {
                span.refuse(to - from + 1);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The questions that a search of so many blocks takes where a node gives at most these at a time.
    fn questions(blocks: u64, most: u64) -> u64 {
        let (mut span, mut left, mut asked) = (Span::new(FIRST, MOST), blocks, 0);
        while left > 0 {
            asked += 1;
            if span.next <= most {
                left = left.saturating_sub(span.next);
                span.give(span.next);
            } else {
                span.refuse(span.next);
            }
        }
        asked
    }

    #[test]
    fn a_search_learns_how_many_blocks_a_node_gives() {
        // Six hours at four blocks a second.
        let blocks = 6 * 3_600 * 4;
        for (most, at_most) in [(1, 86_420), (2, 43_240), (10, 9_650), (500, 205), (2_000, 50), (10_000, 15), (u64::MAX, 7)] {
            let asked = questions(blocks, most);
            assert!(asked <= at_most, "{most} blocks at a time: {asked} questions");
        }
    }

    #[test]
    fn a_search_goes_on_where_a_node_gives_less_than_before() {
        let mut span = Span::new(FIRST, MOST);
        span.give(FIRST);
        assert_eq!(span.next, 2 * FIRST);
        while span.next > 1 {
            span.refuse(span.next);
        }
        span.give(1);
        assert_eq!(span, Span { next: 2, given: 1, refused: 4, ..Span::new(FIRST, MOST) });
    }

    /// A node that was busy, or blocks with many logs, must not slow a reader for good.
    #[test]
    fn more_is_tried_again_after_a_while() {
        let mut span = Span::new(10_000, 10_000);
        while span.next > 1 {
            span.refuse(span.next);
        }
        for _ in 0..2 * PATIENCE {
            span.give(span.next);
        }
        assert_eq!(span, Span { given: 10_000, ..Span::new(10_000, 10_000) });
    }

    #[test]
    fn what_was_too_short_a_question_shows_nothing() {
        let mut span = Span::new(100, 1_000);
        span.give(3);
        assert_eq!(span, Span::new(100, 1_000));
        // Another node refuses what the first one gave.
        span.refuse(100);
        span.give(100);
        assert_eq!((span.next, span.given), (13, 0));
    }
}
