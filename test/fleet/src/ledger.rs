//! The fates of the tasks, by events alone; the owners of the money, by the contract's views.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use alloy::primitives::{B256, U256};
use alloy::signers::local::PrivateKeySigner;
use muster_cli::table::table;
use muster_client::{Account, Batch, Event, Events, IMuster};

/// The names of the policies of tasks, by their numbers.
const POLICIES: [&str; 4] = ["single", "sampled", "replicated", "rated"];

use crate::site::Site;

/// The state from events.
#[derive(Default)]
pub struct Ledger {
    /// How each task ended, and by whose answer, if it was one node's.
    pub ends: BTreeMap<u64, (String, u32)>,
    /// Tasks that a group judged.
    pub settled: BTreeSet<u64>,
    /// The sum slashed from each node, in wei.
    pub slashed: BTreeMap<u32, u128>,
    earned: BTreeMap<u32, u128>,
    /// The sum that each task paid to nodes, in wei.
    paid: BTreeMap<u64, u128>,
    open: BTreeSet<u64>,
}

impl Ledger {
    /// Takes up the events since.
    pub async fn follow(&mut self, events: &mut Events) {
        while let Some(batch) = events.poll().await.unwrap() {
            events.accept(&batch).unwrap();
            let Batch::Events { events, .. } = batch else { panic!("a chain without reorganisations") };
            for logged in events {
                self.note(logged.event.unwrap());
            }
        }
    }

    fn pay(&mut self, task: u64, node: u32, wei: u128) {
        *self.earned.entry(node).or_default() += wei;
        *self.paid.entry(task).or_default() += wei;
    }

    fn end(&mut self, id: u64, how: &str, node: u32) {
        let before = self.ends.insert(id, (how.into(), node));
        assert_eq!(before, None, "task {id} ended twice");
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::TaskSucceeded(e) => {
                self.pay(e.id, e.node, e.paid);
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
                    self.settled.insert(e.id);
                }
                self.end(e.id, how, 0);
            }
            Event::MemberJudged(e) => self.pay(e.id, e.node, e.paid),
            Event::NodeSlashed(e) => *self.slashed.entry(e.node).or_default() += e.stake + e.unbonding + e.credit,
            _ => {}
        }
    }

    /// Whether so many tasks have ended and no group is open.
    pub fn is_over(&self, tasks: u32) -> bool {
        self.ends.len() as u32 == tasks && self.open.is_empty()
    }

    /// How the tasks of each policy ended, and the sum that they paid; the policies are those of the tasks.
    pub fn table(&self, policies: &BTreeMap<u64, u8>) -> String {
        let mut counts: BTreeMap<(u8, &str), (u32, u128)> = BTreeMap::new();
        for (id, (how, _)) in &self.ends {
            let count = counts.entry((policies[id], how)).or_default();
            count.0 += 1;
            count.1 += self.paid.get(id).copied().unwrap_or_default();
        }
        let mut shown = table(2, &["policy", "ended", "tasks", "paid to nodes, wei"]);
        for ((policy, how), (tasks, paid)) in counts {
            let policy = POLICIES.get(usize::from(policy)).copied().unwrap_or("another");
            shown.add_row([policy.to_string(), how.to_string(), tasks.to_string(), paid.to_string()]);
        }
        shown.to_string()
    }
}

/// Nodes side by side; the cheat and the slow one are marked.
pub fn nodes(views: &[IMuster::NodeView], ledger: &Ledger, (cheat, slow): (u32, u32)) -> String {
    let mut shown = table(2, &["node", "", "mean score", "H", "right of judged", "earned, wei", "slashed, wei"]);
    for view in views {
        let share = |wad: u64| wad as f64 / 1e18;
        let (earned, slashed) = (ledger.earned.get(&view.node), ledger.slashed.get(&view.node));
        let mark = match view.node {
            node if node == cheat => "cheats",
            node if node == slow => "slow",
            _ => "",
        };
        shown.add_row([
            view.node.to_string(),
            mark.into(),
            format!("{:.2}", share(view.longTerm) * 10.0),
            format!("{:.2}", share(view.reliability)),
            format!("{} of {}", view.right, view.judged),
            earned.copied().unwrap_or_default().to_string(),
            slashed.copied().unwrap_or_default().to_string(),
        ]);
    }
    shown.to_string()
}

/// The owners of the contract's balance, in wei, when no task is open.
pub async fn parts(site: &Site, nodes: &[(u32, B256)], application: &Account) -> Vec<(&'static str, U256)> {
    let (mut stakes, mut unbonding, mut credit) = (U256::ZERO, U256::ZERO, U256::ZERO);
    let mut people = vec![application.address(), site.world.boss.address()];
    for (number, key) in nodes {
        let view = site.view(*number).await;
        // The stake of a node that has left is its operator's.
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

/// The contract's balance, in wei.
pub async fn balance(site: &Site) -> U256 {
    site.muster.endpoints().balance(site.muster.address()).await.unwrap()
}

/// The parts, and the contract's balance, which must be their sum.
pub fn money(parts: &[(&'static str, U256)], balance: U256) -> String {
    let mut shown = table(1, &["of the contract's balance", "wei"]);
    for (name, wei) in parts {
        shown.add_row([(*name).to_string(), wei.to_string()]);
    }
    shown.add_row(["together", &parts.iter().map(|(_, wei)| *wei).sum::<U256>().to_string()]);
    shown.add_row(["balance", &balance.to_string()]);
    shown.to_string()
}

/// How much an agent's process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vitals {
    /// Its memory that is in RAM, in KiB.
    memory: u64,
    /// Files and sockets that are open.
    descriptors: usize,
    /// Its journal, with the part that is not merged into it yet, in bytes.
    journal: u64,
}

impl Vitals {
    /// Of a process, by its number, and the home of its agent; none where there is no /proc, or no such process.
    pub fn of(process: u32, home: &Path) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?.parse().ok()?;
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok()?.count();
        let size = |name: &str| fs::metadata(home.join(name)).map_or(0, |file| file.len());
        Some(Self { memory, descriptors, journal: size("journal.sqlite") + size("journal.sqlite-wal") })
    }
}

/// The memory and files of the agents that were never away, the first two, at the beginning and at the end; and the most that any used.
pub fn processes(vitals: &[(Option<Vitals>, Option<Vitals>)]) -> Option<String> {
    let mut shown = table(1, &["process", "memory, KiB", "descriptors", "journal, KiB"]);
    let mut add = |name: String, of: Vitals| {
        shown.add_row([name, of.memory.to_string(), of.descriptors.to_string(), (of.journal / 1024).to_string()]);
    };
    for (at, (first, last)) in vitals.iter().enumerate().take(2) {
        add(format!("agent {at}, at first"), (*first)?);
        add(format!("agent {at}, at the end"), (*last)?);
    }
    for (name, of) in [
        ("at first", vitals.iter().filter_map(|one| one.0).collect::<Vec<_>>()),
        ("at the end", vitals.iter().filter_map(|one| one.1).collect()),
    ] {
        let most = Vitals {
            memory: of.iter().map(|one| one.memory).max()?,
            descriptors: of.iter().map(|one| one.descriptors).max()?,
            journal: of.iter().map(|one| one.journal).max()?,
        };
        add(format!("most of any, {name}"), most);
    }
    Some(shown.to_string())
}
