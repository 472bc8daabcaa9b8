//! What became of the tasks, by events alone; whom the money belongs to, by the contract's views.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use alloy::primitives::{B256, U256};
use alloy::signers::local::PrivateKeySigner;
use muster_client::{Account, Batch, Event, Events, IMuster, Seal, Stores};

use crate::site::Site;

/// What events say.
#[derive(Default)]
pub struct Ledger {
    /// How each task ended, and by whose answer, if it was one node's.
    pub ends: BTreeMap<u64, (String, u32)>,
    /// Tasks that a group judged.
    pub settled: BTreeSet<u64>,
    /// What was taken of nodes, in wei.
    pub slashed: BTreeMap<u32, u128>,
    answers: BTreeMap<u64, B256>,
    revealed: BTreeMap<u64, Vec<IMuster::AnswerRevealed>>,
    earned: BTreeMap<u32, u128>,
    open: BTreeSet<u64>,
}

impl Ledger {
    /// Takes up what has happened since.
    pub async fn follow(&mut self, events: &mut Events) {
        while let Some(batch) = events.poll().await.unwrap() {
            events.accept(&batch).unwrap();
            let Batch::Events { events, .. } = batch else { panic!("a chain without reorganisations") };
            for logged in events {
                self.note(logged.event.unwrap());
            }
        }
    }

    fn end(&mut self, id: u64, how: &str, node: u32) {
        let before = self.ends.insert(id, (how.into(), node));
        assert_eq!(before, None, "task {id} ended twice");
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::TaskSucceeded(e) => {
                self.answers.insert(e.id, e.resultDigest);
                *self.earned.entry(e.node).or_default() += e.paid;
                self.end(e.id, "succeeded", e.node);
            }
            Event::TaskErrorReported(e) => self.end(e.id, &format!("error {}", e.code), e.node),
            Event::TaskAborted(e) => {
                let how =
                    ["timeout", "cancelled", "evicted", "queued for too long", "its node was slashed out"][e.reason as usize];
                self.end(e.id, how, e.node);
            }
            Event::GroupFormed(e) => {
                self.open.insert(e.id);
            }
            Event::GroupSettled(e) => {
                self.open.remove(&e.id);
                // Given to another group, it goes on.
                if e.outcome == 4 {
                    return;
                }
                let how = ["agreed", "the first alone", "no majority", "no answer"][e.outcome as usize];
                if e.outcome == 0 {
                    self.answers.insert(e.id, e.answer);
                    self.settled.insert(e.id);
                }
                self.end(e.id, how, 0);
            }
            Event::MemberJudged(e) => *self.earned.entry(e.node).or_default() += e.paid,
            Event::AnswerRevealed(e) => self.revealed.entry(e.id).or_default().push(e),
            Event::NodeSlashed(e) => *self.slashed.entry(e.node).or_default() += e.stake + e.unbonding + e.credit,
            _ => {}
        }
    }

    /// Whether so many tasks have ended and no group is open.
    pub fn is_over(&self, tasks: u32) -> bool {
        self.ends.len() as u32 == tasks && self.open.is_empty()
    }

    /// Of each task that succeeded, a reveal of the answer that was right.
    pub fn right_answers(&self) -> BTreeMap<u64, &IMuster::AnswerRevealed> {
        let revealed = self.revealed.iter().filter_map(|(id, all)| {
            let answer = self.answers.get(id)?;
            Some((*id, all.iter().find(|revealed| revealed.kind == 0 && revealed.value == *answer)?))
        });
        revealed.collect()
    }

    /// Whose result a task has, and which; none if it has no answer.
    pub async fn result(&self, id: u64, revealed: Option<&IMuster::AnswerRevealed>, stores: &Stores) -> Option<(u32, Vec<u8>)> {
        let answer = *self.answers.get(&id)?;
        Some(match revealed {
            None => (self.ends[&id].1, stores.get(answer).await.unwrap().bytes),
            Some(by) => {
                let bytes = stores.open_sealed(&Seal::new(id, by.node, by.salt)).await.unwrap().bytes;
                assert_eq!(muster_client::digest_of(&bytes), answer);
                (by.node, bytes)
            }
        })
    }

    /// How the tasks of each policy ended.
    pub fn table(&self, asked: &BTreeMap<u64, (u32, u8)>) -> String {
        let mut counts: BTreeMap<(u8, &str), u32> = BTreeMap::new();
        for (id, (how, _)) in &self.ends {
            *counts.entry((asked[id].1, how)).or_default() += 1;
        }
        let mut text = String::from("policy  end                        tasks\n");
        for ((policy, how), count) in counts {
            let _ = writeln!(text, "{policy:<7} {how:<26} {count:>5}");
        }
        text
    }
}

/// Nodes side by side.
pub fn nodes(views: &[IMuster::NodeView], ledger: &Ledger) -> String {
    let mut text = String::from("node  score  H     rating   earned, wei  slashed, wei\n");
    for view in views {
        let share = |wad: u64| wad as f64 / 1e18;
        let (earned, slashed) = (ledger.earned.get(&view.node), ledger.slashed.get(&view.node));
        let _ = writeln!(
            text,
            "{:<5} {:<6.2} {:<5.2} {:>2} of {:<2} {:>12} {:>13}",
            view.node,
            share(view.longTerm) * 10.0,
            share(view.reliability),
            view.right,
            view.judged,
            earned.copied().unwrap_or_default(),
            slashed.copied().unwrap_or_default(),
        );
    }
    text
}

/// Whom what the contract holds belongs to, in wei, when no task is open.
pub async fn parts(site: &Site, nodes: &[(u32, B256)], application: &Account) -> Vec<(&'static str, U256)> {
    let (mut stakes, mut unbonding, mut credit) = (U256::ZERO, U256::ZERO, U256::ZERO);
    let mut people = vec![application.address(), alloy::primitives::Address::from(site.world.boss.address().0)];
    for (number, key) in nodes {
        let view = site.view(*number).await;
        // What a node that has left had is its operator's.
        if view.status != 0 {
            stakes += U256::from(view.stake);
        }
        people.push(PrivateKeySigner::from_bytes(key).unwrap().address());
    }
    for who in people {
        let account = site.muster.read(IMuster::accountCall { who }).await.unwrap();
        credit += U256::from(account.credit);
        unbonding += U256::from(account.unbonding);
    }
    let whole = site.muster.read(IMuster::overviewCall {}).await.unwrap();
    assert_eq!((whole.pending, whole.queued, whole.groups), (0, 0, 0));
    vec![
        ("stakes", stakes),
        ("unbonding", unbonding),
        ("credit", credit),
        ("treasury", U256::from(whole.treasuryBalance)),
        ("reserve", U256::from(whole.reserve)),
        ("burnt", U256::from(whole.burnt)),
    ]
}

/// What the contract holds, in wei.
pub async fn balance(site: &Site) -> U256 {
    let address = site.muster.address();
    site.muster.endpoints().ask("eth_getBalance", serde_json::json!([address, "latest"])).await.unwrap()
}

/// The parts and their sum.
pub fn money(parts: &[(&'static str, U256)], balance: U256) -> String {
    let mut text = String::new();
    for (name, wei) in parts {
        let _ = writeln!(text, "{name:<12} {wei:>16} wei");
    }
    let _ = write!(text, "{:<12} {balance:>16} wei", "balance");
    text
}
