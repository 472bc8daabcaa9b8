//! The state of the network in the view of a reader of nothing but logs and the times of their blocks. It is compared with storage, word by
//! word where a view does not show it.

use crate::model::rated;
use crate::world::parameter;
use crate::world::stage::*;
use alloy_primitives::B256;
use alloy_sol_types::SolCall;
use muster_core::id::{GpuGroup, ModelId, NodeId, QueueId, TaskId, Ticket};
use muster_core::record::{Head, NextParameter, Proposal, Rules, Scores};
use muster_core::word::{Address, Word};
use muster_protocol::abi::IMuster::{self, IMusterEvents as E, Outcome, Profile, TaskCreated};
use muster_protocol::admin::stores::stores_of;
use muster_protocol::admin::worker::worker_of;
use muster_protocol::layout::{entry, node_slot, slot, HEAD, NEXT_OWNER, NEXT_PARAMETERS, NEXT_TREASURY, RULES};
use muster_protocol::parameters::PARAMETERS;
use muster_protocol::store::registry;
use muster_protocol::store::sampler::Among;
use muster_protocol::{admin, Host, Network};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// H is followed in f64.
const EPS: f64 = 1e-10;

#[derive(Clone, Default, Debug)]
struct Node {
    operator: Address,
    status: u8,
    group: u32,
    stake: u128,
    h: f64,
    h_at: u64,
    joined_at: u64,
    /// All scores ever; the pool is the last fifty.
    scores: Vec<u8>,
    /// Judgements that its rating counts, and those of them that held it right.
    judged: (u64, u64),
    held: BTreeSet<u64>,
    in_use: Vec<u64>,
    /// The running task or the last one, and its deadline.
    task: (u64, u64),
    /// Whether it runs that.
    runs: bool,
    /// Until when it waits apart, and whether it waits for two others then.
    parked: Option<u64>,
    waits: bool,
    /// The Pending task that it is reserved for; 0 for none.
    reserved: u64,
    /// Commitments that are not settled, and whether they keep it from work.
    open: u64,
    halted: bool,
    /// The place of the group that it was called to; 0 for none.
    called: u32,
    /// Whether it is paused and not among the active ones any more.
    aside: bool,
    /// The account that its operator named as its worker, and whether that account works for it.
    worker: (Address, bool),
}

#[derive(Clone, Default, Debug)]
struct Account {
    credit: u128,
    unbonding: u128,
    release: u64,
    node: u32,
    kicked: bool,
}

/// How an application's groups are chosen, and their results since its target was last set.
#[derive(Clone, Debug)]
struct Application {
    profile: Profile,
    groups: u32,
    successes: u32,
    members: u32,
}

impl Default for Application {
    fn default() -> Application {
        Application { profile: crate::validated::USUAL, groups: 0, successes: 0, members: 0 }
    }
}

/// A task that has not ended.
#[derive(Clone, Debug)]
struct Task {
    created: TaskCreated,
    /// Nodes that its fee is for.
    nodes: u8,
    /// Block of the draw, ticket, or deadline.
    at: u64,
    node: u32,
    boosts: bool,
    /// Since when it is queued.
    since: u64,
    /// As in `IMuster.TaskView`, while its node runs it or has committed.
    status: u8,
    began: u64,
    /// The commitment of its node, and its time.
    committed: (B256, u64),
}

/// A validation group.
#[derive(Clone, Debug)]
struct Team {
    id: u64,
    formed: u64,
    scored: bool,
    members: Vec<Member>,
}

#[derive(Clone, Default, Debug)]
struct Member {
    node: u32,
    stage: u8,
    moment: u64,
    began: u64,
    elapsed: u64,
    answer: B256,
    right: bool,
}

impl Member {
    /// Whether its commitment is open, where it can be slashed for it: an error that it has revealed is not.
    fn open(&self) -> bool {
        matches!(self.stage, COMMITTED | ANSWERED)
    }
}

/// The receipt of a task that has none.
const NO_RECEIPT: Outcome =
    Outcome { state: 0, node: 0, code: 0, ended: 0, refund: 0, resultDigest: alloy_primitives::FixedBytes::ZERO };

/// The state from the logs.
#[derive(Default, Debug)]
pub struct Explorer {
    owner: Address,
    next_owner: Address,
    treasury: (Address, u128),
    next_treasury: (Address, u64),
    stake_unit: u64,
    base: u128,
    parameters: BTreeMap<u8, u64>,
    /// Proposed values, and when they can take effect.
    next_parameters: BTreeMap<u8, (u64, u64)>,
    upgrades: (u32, bool),
    /// Proposed changes of programs, and when they can take effect.
    next_programs: BTreeMap<(Address, Vec<alloy_primitives::FixedBytes<4>>), u64>,
    paused: bool,
    programs: BTreeMap<[u8; 4], Address>,
    groups: BTreeMap<u32, (String, u16)>,
    nodes: BTreeMap<u32, Node>,
    accounts: BTreeMap<Address, Account>,
    /// The applications that have set a profile or had a group chosen.
    applications: BTreeMap<Address, Application>,
    created: u64,
    tasks: BTreeMap<u64, Task>,
    pending: VecDeque<u64>,
    queued: BTreeSet<u64>,
    /// Queues ever used, in order of first use.
    queues: Vec<u32>,
    /// Sampled tasks whose validators are to be drawn.
    calls: VecDeque<u64>,
    teams: BTreeMap<u32, Team>,
    /// Places of groups there are.
    places: u32,
    listed: BTreeSet<u32>,
    reserve: u128,
    burnt: u128,
    holders: BTreeMap<u64, Vec<u32>>,
    /// Models by their names.
    names: BTreeMap<u64, String>,
    /// Where accounts' bytes can be had.
    stores: BTreeMap<Address, String>,
    /// The node that the event before slashed, if its consequences are due.
    slashed: Option<u32>,
    /// The outcomes of the tasks that asked for a receipt.
    outcomes: BTreeMap<u64, Outcome>,
}

impl Explorer {
    fn parameter(&self, name: &str) -> u64 {
        self.parameters[&parameter(name)]
    }

    fn node(&mut self, node: u32) -> &mut Node {
        self.nodes.get_mut(&node).expect("it joined")
    }

    fn account(&mut self, who: impl Into<Address>) -> &mut Account {
        self.accounts.entry(who.into()).or_default()
    }

    fn h(&self, n: &Node, now: u64) -> f64 {
        1.0 - (1.0 - n.h) * (-((now - n.h_at) as f64) / self.parameter("tau") as f64).exp()
    }

    fn set_h(&mut self, node: u32, now: u64, change: impl Fn(f64) -> f64) {
        let h = change(self.h(&self.nodes[&node], now));
        let n = self.node(node);
        (n.h, n.h_at) = (h, now);
    }

    /// A task has ended; gives it.
    fn end(&mut self, id: u64) -> Task {
        let task = self.tasks.remove(&id).expect("it was there");
        self.pending.retain(|&p| p != id);
        self.queued.remove(&id);
        self.calls.retain(|&c| c != id);
        if task.node > 0 {
            self.free(task.node);
        }
        task
    }

    /// A node's task is over for it. If it was called to a group it begins there, now or after draws that are due.
    fn free(&mut self, node: u32) {
        let n = self.node(node);
        (n.runs, n.halted) = (false, false);
        if n.status == 2 && n.called == 0 {
            n.status = 1;
        }
    }

    /// Whether commitments in a group can be slashed, and are open until it is settled.
    fn liable(&self, group: u32) -> bool {
        let team = &self.teams[&group];
        team.scored && self.tasks[&team.id].created.spec.redundancy != 3
    }

    /// A node has committed in a group, and has no task.
    fn count_open(&mut self, node: u32, group: u32) {
        let (most, liable) = (self.parameter("openMost"), self.liable(group));
        let n = self.node(node);
        n.open += u64::from(liable);
        if n.open < most || n.called > 0 {
            self.free(node);
        } else {
            (n.runs, n.halted) = (false, true);
        }
    }

    /// A node's commitment in a group cannot be slashed any more.
    fn count_closed(&mut self, node: u32, group: u32) {
        if self.liable(group) {
            let n = self.node(node);
            n.open -= 1;
            if n.halted {
                self.free(node);
            }
        }
    }

    fn member(&mut self, place: u32, node: u32) -> &mut Member {
        let team = self.teams.get_mut(&place).expect("it was formed");
        team.members.iter_mut().find(|m| m.node == node).expect("a member")
    }

    fn penalise(&mut self, node: u32, now: u64) {
        let penalty = self.parameter("penaltyPpm") as f64 / 1e6;
        self.set_h(node, now, |h| h * penalty);
    }

    /// Raises H for a success, but not twice within half of the task's estimate.
    fn boost(&mut self, node: u32, now: u64, estimate: u32) {
        if 2 * (now - self.nodes[&node].h_at) >= estimate as u64 {
            let boost = self.parameter("boostPpm") as f64 / 1e6;
            self.set_h(node, now, |h| (h + boost).min(1.0));
        }
    }

    fn enter(&mut self, node: u32, model: u64) {
        let list = self.holders.entry(model).or_default();
        if !list.contains(&node) {
            list.push(node);
        }
        self.node(node).held.insert(model);
    }

    /// Reads the next event, logged in a block of time `now`.
    pub fn read(&mut self, e: &E, now: u64) {
        match e {
            E::Initialised(i) => {
                self.owner = i.owner.into_array();
                self.treasury = (i.treasury.into_array(), 0);
                (self.stake_unit, self.base) = (i.stakeUnit, i.minimumStake);
                self.upgrades = (i.upgradeDelay, false);
            }
            E::ParameterChanged(p) => {
                let before = self.parameters.insert(p.parameter, p.value.to());
                assert_eq!(before.unwrap_or(0), p.before.to::<u64>(), "the value before");
                // Only proposed values change, where proposals are demanded.
                if PARAMETERS[p.parameter as usize].delayed() && before.is_some() {
                    let (value, at) = self.next_parameters.remove(&p.parameter).expect("proposed");
                    assert!(value == p.value.to::<u64>() && at <= now);
                }
            }
            E::ParameterProposed(p) => {
                self.next_parameters.insert(p.parameter, (p.value.to(), p.effective));
            }
            E::ProgramsProposed(p) => {
                let change = (p.program.into_array(), p.selectors.clone());
                if p.effective == 0 {
                    self.next_programs.remove(&change)
                } else {
                    self.next_programs.insert(change, p.effective)
                };
            }
            E::UpgradesRenouncedForGood(_) => self.upgrades.1 = true,
            E::PausedChanged(p) => self.paused = p.on,
            E::OwnershipTransferStarted(o) => self.next_owner = o.newOwner.into_array(),
            E::OwnershipTransferred(o) => (self.owner, self.next_owner) = (o.newOwner.into_array(), [0; 20]),
            E::TreasuryProposed(t) => self.next_treasury = (t.treasury.into_array(), t.effective),
            E::TreasuryChanged(t) => {
                self.treasury.0 = t.treasury.into_array();
                self.next_treasury = ([0; 20], 0);
            }
            E::TreasurySwept(s) => self.treasury.1 -= s.amount,
            E::DiamondCut(d) => {
                assert!(d.init.is_zero() && d.initCalldata.is_empty(), "nothing is run");
                for cut in &d.cuts {
                    for selector in &cut.functionSelectors {
                        let before = match cut.action {
                            2 => self.programs.remove(&selector.0),
                            _ => self.programs.insert(selector.0, cut.facetAddress.into_array()),
                        };
                        assert_eq!(before.is_none(), cut.action == 0, "added exactly if nothing answered it");
                        assert_eq!(cut.facetAddress.is_zero(), cut.action == 2, "removed exactly if nothing answers it");
                    }
                }
            }
            E::ModelNamed(m) => {
                assert!(self.names.insert(m.model, m.name.clone()).is_none(), "once for each id");
            }
            E::GpuGroupCreated(g) => {
                self.groups.insert(g.group, (g.name.clone(), g.vram));
                self.treasury.1 += g.fee;
            }
            E::NodeJoined(j) => {
                let n = self.nodes.entry(j.node).or_default();
                (n.operator, n.status, n.stake, n.group) = (j.operator.into_array(), 1, j.stake, j.group);
                (n.h, n.h_at, n.joined_at) = (1.0, now, now);
                n.held.clear();
                n.in_use.clear();
                j.models.iter().for_each(|&m| self.enter(j.node, m));
                self.account(j.operator).node = j.node;
            }
            E::StakeRaised(s) => self.node(s.node).stake = s.stake,
            E::NodePausing(p) => self.node(p.node).status = 3,
            E::NodePaused(p) => {
                let n = self.node(p.node);
                (n.status, n.parked, n.waits) = (5, None, false);
            }
            E::NodeResumed(p) => {
                let n = self.node(p.node);
                (n.status, n.aside) = (1, false);
            }
            E::WorkerNamed(w) => {
                let former = std::mem::replace(&mut self.node(w.node).worker, (w.worker.into_array(), false));
                if former.1 {
                    self.account(former.0).node = 0;
                }
            }
            E::WorkAccepted(w) => {
                self.node(w.node).worker.1 = true;
                self.account(w.worker).node = w.node;
            }
            E::StoresSet(s) => {
                self.stores.insert(s.account.into_array(), s.uris.clone());
            }
            E::NodeSetAside(p) => self.node(p.node).aside = true,
            E::NodeQuitting(p) => self.node(p.node).status = 4,
            E::NodeQuit(q) => {
                let n = self.node(q.node);
                (n.status, n.stake) = (0, 0);
                (n.parked, n.waits, n.reserved) = (None, false, 0);
                (n.runs, n.halted, n.called, n.aside) = (false, false, 0, false);
                let a = self.account(q.operator);
                a.unbonding += q.stake;
                a.release = q.release;
            }
            E::NodeKickedOut(k) => self.account(k.operator).kicked = true,
            E::NodeExcluded(x) => {
                let n = self.node(x.node);
                n.parked = Some(x.until);
                // One that was reserved and is let go.
                if std::mem::take(&mut n.reserved) > 0 && n.status == 2 && n.called == 0 {
                    n.status = 1;
                }
            }
            E::NodeWaits(w) => {
                let n = self.node(w.node);
                assert_eq!(n.waits, n.parked.is_some(), "it was free, or waited already");
                if w.until > 0 {
                    assert_eq!(n.status, 1, "it is free");
                    (n.parked, n.waits) = (Some(w.until), true);
                } else {
                    (n.status, n.parked, n.waits, n.reserved) = (2, None, false, w.id);
                    assert_eq!(self.pending.back(), Some(&w.id), "it is Pending again");
                }
            }
            E::NodeReadmitted(x) => {
                let n = self.node(x.node);
                assert_eq!(n.reserved, 0, "it is let go before");
                (n.parked, n.waits) = (None, false);
            }
            E::NodeRated(r) => {
                let n = self.node(r.node);
                n.judged = rated(n.judged, r.right);
            }
            E::GroupChosen(g) => {
                let app = self.applications.entry(g.creator.into_array()).or_default();
                let due = app.groups >= app.profile.period && app.profile.targeting < 2;
                if due {
                    (app.groups, app.successes, app.members) = (0, 0, 0);
                }
                assert!(due || g.target == app.profile.target, "the target changes once a period");
                app.profile.target = g.target;
            }
            E::ProfileSet(p) => {
                let app = Application { profile: p.profile.clone(), ..Application::default() };
                self.applications.insert(p.application.into_array(), app);
            }
            E::ScoreRecorded(s) => {
                let least = self.parameter("kickoutMilli");
                let n = self.node(s.node);
                n.scores.push(s.score);
                n.judged = rated(n.judged, s.score > 0);
                let pool = &n.scores[n.scores.len().saturating_sub(50)..];
                let sum: u64 = pool.iter().map(|&s| s as u64).sum();
                if pool.len() == 50 && sum * 1_000 < least * 50 && matches!(n.status, 2..=4) {
                    n.status = 6;
                }
            }
            E::ModelAdded(m) => self.enter(m.node, m.model),
            E::ModelRemoved(m) => {
                self.node(m.node).held.remove(&m.model);
            }
            E::HolderPurged(m) => {
                self.node(m.node).held.remove(&m.model);
                let list = self.holders.get_mut(&m.model).expect("someone held it");
                let at = list.iter().position(|&n| n == m.node).expect("entered");
                list.swap_remove(at);
            }
            E::DownloadRequested(_) => {}
            E::StakeReleased(r) => {
                let a = self.account(r.account);
                a.credit += r.amount;
                a.unbonding -= r.amount;
            }
            E::Withdrawn(w) => {
                let a = self.account(w.account);
                a.credit -= w.credit;
                a.unbonding -= w.stake;
            }
            E::TaskRefused(r) => self.account(r.creator).credit += r.fee,
            E::TaskCreated(c) => {
                self.created = c.id;
                let committed = (B256::ZERO, 0);
                let nodes = match c.spec.redundancy {
                    2 => 3,
                    3 => self.applications.entry(c.creator.into_array()).or_default().profile.most,
                    _ => 1,
                };
                let task = Task {
                    created: c.clone(),
                    nodes,
                    at: c.drawBlock,
                    since: 0,
                    node: 0,
                    boosts: false,
                    status: 1,
                    began: 0,
                    committed,
                };
                self.tasks.insert(c.id, task);
                self.pending.push_back(c.id);
                if c.spec.flags == 1 {
                    self.outcomes.insert(c.id, Outcome { state: 1, ..NO_RECEIPT });
                }
            }
            E::TaskRedrawn(r) => {
                let task = self.tasks.get_mut(&r.id).expect("created");
                task.at = r.drawBlock;
                if self.queued.remove(&r.id) {
                    assert!(task.created.spec.redundancy >= 2, "others leave the queue to start or to end");
                }
                let ring = if task.status == 5 { &mut self.calls } else { &mut self.pending };
                ring.retain(|&p| p != r.id);
                ring.push_back(r.id);
            }
            E::TaskQueued(q) => {
                self.pending.retain(|&p| p != q.id);
                self.queued.insert(q.id);
                let task = self.tasks.get_mut(&q.id).expect("created");
                (task.at, task.since) = (q.ticket, now);
                assert_eq!((q.creator, q.group), (task.created.creator, task.group()));
                let queue = task.queue();
                if !self.queues.contains(&queue) {
                    self.queues.push(queue);
                }
            }
            E::TaskStarted(s) => {
                self.pending.retain(|&p| p != s.id);
                self.queued.remove(&s.id);
                let task = self.tasks.get_mut(&s.id).expect("created");
                assert_eq!(s.creator, task.created.creator);
                (task.at, task.node, task.boosts) = (s.deadline, s.node, s.boosts);
                (task.status, task.began) = (3, now);
                let models = task.created.spec.models.clone();
                let n = self.node(s.node);
                (n.status, n.task, n.in_use, n.runs) = (2, (s.id, s.deadline), models, true);
            }
            E::TaskSucceeded(s) => {
                let task = &self.tasks[&s.id];
                assert_eq!((s.creator, s.node), (task.created.creator, task.node));
                // For a task that could have been sampled, the unpaid part is saved; for all others nothing is left.
                self.reserve += task.created.fee - s.paid;
                assert!(task.created.spec.redundancy == 1 || s.paid == task.created.fee);
                if task.boosts {
                    self.boost(s.node, now, task.created.estimate);
                }
                let operator = self.nodes[&s.node].operator;
                self.account(operator).credit += s.paid;
                self.end(s.id);
                self.conclude(s.id, Outcome { state: 2, node: s.node, ended: now, resultDigest: s.resultDigest, ..NO_RECEIPT });
            }
            E::TaskErrorReported(x) => {
                let task = self.end(x.id);
                assert_eq!((x.creator, x.node), (task.created.creator, task.node));
                self.account(task.created.creator).credit += x.refund;
                self.treasury.1 += task.created.fee - x.refund;
                let end = Outcome { state: 3, node: x.node, ended: now, code: x.code, refund: x.refund, ..NO_RECEIPT };
                self.conclude(x.id, end);
            }
            E::TaskAborted(a) => {
                let task = self.end(a.id);
                assert_eq!((a.creator, a.node), (task.created.creator, task.node));
                self.conclude(a.id, Outcome { state: 4 + a.reason, node: a.node, ended: now, refund: a.refund, ..NO_RECEIPT });
                self.account(a.creator).credit += a.refund;
                self.reserve += task.created.fee - a.refund - a.startFee;
                if a.reason == 0 {
                    self.penalise(task.node, now);
                }
                if a.beneficiary.is_zero() {
                    self.treasury.1 += a.startFee;
                } else {
                    self.account(a.beneficiary).credit += a.startFee;
                }
            }
            E::AnswerCommitted(c) => {
                let mut kept = B256::ZERO;
                kept[..24].copy_from_slice(&c.commitment[..]);
                if c.group == 0 {
                    let task = self.tasks.get_mut(&c.id).expect("created");
                    assert_eq!((task.node, c.block > 0), (c.node, true));
                    (task.status, task.committed) = (4, (kept, now));
                } else {
                    let m = self.member(c.group, c.node);
                    (m.stage, m.moment, m.elapsed, m.answer) = (COMMITTED, now, now - m.began, kept);
                    self.count_open(c.node, c.group);
                }
            }
            E::AnswerRevealed(r) => {
                if r.group > 0 {
                    let m = self.member(r.group, r.node);
                    (m.stage, m.answer) = (if r.kind == 0 { ANSWERED } else { FAILED }, r.value);
                    if r.kind == 1 {
                        self.count_closed(r.node, r.group);
                    }
                }
            }
            E::TaskSampled(s) => {
                let task = self.tasks.get_mut(&s.id).expect("created");
                assert_eq!((s.node, s.creator), (task.node, task.created.creator));
                // Its deadline stays beside its node.
                (task.status, task.at) = (5, s.drawBlock);
                task.created.fee -= s.paid;
                self.calls.push_back(s.id);
                if s.beneficiary.is_zero() {
                    self.reserve += s.paid;
                } else {
                    self.account(s.beneficiary).credit += s.paid;
                }
            }
            E::GroupFormed(g) => {
                self.calls.retain(|&c| c != g.id);
                self.pending.retain(|&p| p != g.id);
                let task = self.tasks.get_mut(&g.id).expect("created");
                assert_eq!(g.creator, task.created.creator);
                let mut members: Vec<Member> =
                    g.nodes.iter().map(|&node| Member { node, stage: CALLED, ..Member::default() }).collect();
                let sampled = task.created.spec.redundancy == 1;
                if sampled {
                    let first = &mut members[0];
                    assert_eq!((first.node, task.status), (task.node, 5));
                    let (answer, moment) = task.committed;
                    (first.stage, first.moment, first.elapsed, first.answer) = (COMMITTED, moment, moment - task.began, answer);
                }
                (task.status, task.node, task.boosts) = (6, 0, false);
                assert!(
                    self.teams.insert(g.group, Team { id: g.id, formed: now, scored: g.scored, members }).is_none(),
                    "the place was free"
                );
                self.places = self.places.max(g.group);
                if sampled {
                    self.count_open(g.nodes[0], g.group);
                }
            }
            E::MemberCalled(m) => self.node(m.node).called = m.group,
            E::MemberStarted(m) => {
                let member = self.member(m.group, m.node);
                (member.stage, member.moment, member.began) = (RUNNING, m.deadline, now);
                let models = self.tasks[&m.id].created.spec.models.clone();
                let n = self.node(m.node);
                if n.status == 1 {
                    n.status = 2;
                }
                // One that waits apart is taken from there.
                (n.parked, n.waits, n.reserved) = (None, false, 0);
                if n.called == m.group {
                    n.called = 0;
                }
                (n.task, n.in_use, n.runs) = ((m.id, m.deadline), models, true);
            }
            E::MemberTimedOut(m) => {
                // Right after a slash it is thrown out of the network, whatever it did. The group goes on without one that has not begun,
                // which still runs its own task. Otherwise its deadline was over.
                let slashed = self.slashed == Some(m.node);
                let member = self.member(m.group, m.node);
                assert!(matches!(member.stage, CALLED | RUNNING));
                if member.stage == CALLED && !slashed {
                    (member.stage, member.moment) = (GONE, now);
                    self.node(m.node).called = 0;
                } else if slashed {
                    let late = member.stage == RUNNING && member.moment < now;
                    member.moment = if late { member.moment } else { now };
                    member.stage = GONE;
                    self.free(m.node);
                } else {
                    member.stage = TIMED_OUT;
                    self.penalise(m.node, now);
                    self.free(m.node);
                }
            }
            E::MemberJudged(j) => {
                let id = self.teams[&j.group].id;
                let (scored, estimate) = (self.teams[&j.group].scored, self.tasks[&id].created.estimate);
                let member = self.member(j.group, j.node);
                member.right = j.verdict == 1;
                let open = member.open();
                assert_eq!(member.stage > FAILED || member.stage == RUNNING, j.verdict == 5);
                let operator = self.nodes[&j.node].operator;
                self.account(operator).credit += j.paid;
                if j.verdict == 1 && scored {
                    self.boost(j.node, now, estimate);
                }
                if j.verdict == 3 {
                    self.penalise(j.node, now);
                }
                if open {
                    self.count_closed(j.node, j.group);
                }
            }
            E::GroupSettled(g) => {
                let team = self.teams.remove(&g.group).expect("it was formed");
                let right: Vec<u32> = team.members.iter().filter(|m| m.right).map(|m| m.node).collect();
                if !team.scored && right.len() as u64 >= self.parameter("boostPool") {
                    // Only now is it known how many agreed.
                    let estimate = self.tasks[&g.id].created.estimate;
                    right.iter().for_each(|&node| self.boost(node, now, estimate));
                }
                let rated = self.tasks[&g.id].created.spec.redundancy == 3;
                let app = self.applications.entry(g.creator.into_array()).or_default();
                if rated && app.profile.targeting < 2 {
                    app.groups += 1;
                    app.successes += (g.outcome == 0) as u32;
                    app.members += team.members.len() as u32;
                }
                if g.outcome == 4 {
                    // It is Pending again, as an event before told.
                    let task = self.tasks.get_mut(&g.id).expect("created");
                    assert_eq!((g.creator, team.id, g.reserve), (task.created.creator, g.id, self.reserve));
                    task.status = 1;
                    task.created.fee -= g.startFee;
                    self.treasury.1 += g.startFee;
                } else {
                    let task = self.end(g.id);
                    assert_eq!((g.creator, team.id), (task.created.creator, g.id));
                    self.reserve = g.reserve;
                    self.account(g.creator).credit += g.refund;
                    self.treasury.1 += g.startFee;
                    let mut right = team.members.iter().filter(|m| m.right);
                    let right =
                        if rated { right.find(|m| m.answer == g.answer) } else { right.min_by_key(|m| (m.elapsed, m.moment)) };
                    let end = match (g.outcome, right) {
                        (0, Some(m)) => Outcome { state: 2, node: m.node, resultDigest: g.answer, ..NO_RECEIPT },
                        (1, _) => Outcome { state: 2, node: team.members[0].node, resultDigest: g.answer, ..NO_RECEIPT },
                        _ => Outcome { state: 9, refund: g.refund, ..NO_RECEIPT },
                    };
                    self.conclude(g.id, Outcome { ended: now, ..end });
                }
            }
            E::NodeSlashed(s) => {
                self.node(s.node).stake -= s.stake;
                let a = self.account(s.operator);
                a.unbonding -= s.unbonding;
                a.credit -= s.credit;
                a.kicked = true;
                self.burnt += s.stake + s.unbonding + s.credit;
            }
            E::GpuGroupListed(g) => {
                if g.listed {
                    self.listed.insert(g.group);
                } else {
                    self.listed.remove(&g.group);
                }
            }
        }
        self.slashed = match e {
            E::NodeSlashed(s) => Some(s.node),
            E::MemberTimedOut(m) => self.slashed.filter(|&node| node == m.node),
            _ => None,
        };
    }

    /// Notes how a task ended that asked for a receipt.
    fn conclude(&mut self, id: u64, outcome: Outcome) {
        if let Some(receipt) = self.outcomes.get_mut(&id) {
            *receipt = outcome;
        }
    }

    /// Compares all of it with storage.
    pub fn compare<H: Host>(&self, net: &Network<H>) {
        let host = &*net.host;
        let joined: Vec<&Node> = self.nodes.values().filter(|n| n.status != 0).collect();
        let o = net.overview();
        assert_eq!(
            (o.owner.into_array(), o.treasury.into_array(), o.treasuryBalance, o.stakeUnit, o.paused, o.tasks),
            (self.owner, self.treasury.0, self.treasury.1, self.stake_unit, self.paused, self.created)
        );
        assert_eq!(
            (o.nodesIssued as usize, o.nodesJoined as usize, o.pending as usize, o.queued as usize, o.largestStake),
            (
                self.nodes.len(),
                joined.len(),
                self.pending.len(),
                self.queued.len(),
                joined.iter().map(|n| n.stake).max().unwrap_or(0)
            )
        );
        assert_eq!(
            (o.reserve, o.burnt, o.groups as usize, o.groupPlaces),
            (self.reserve, self.burnt, self.teams.len(), self.places)
        );
        assert_eq!(o.queueCapacity as u64, self.parameter("alphaMilli") * joined.len() as u64 / 1_000);
        let proposal = |at: u8| host.get::<Proposal>(slot(at));
        assert_eq!(proposal(NEXT_OWNER).account, self.next_owner);
        assert_eq!((proposal(NEXT_TREASURY).account, proposal(NEXT_TREASURY).at), self.next_treasury);
        assert_eq!(host.get::<Rules>(slot(RULES)).base as u128 * self.stake_unit as u128, self.base);
        for i in 0..PARAMETERS.len() as u8 {
            let (value, ..) = admin::parameter(host, i).expect("known");
            assert_eq!(self.parameters.get(&i).map(|&v| Word::from(v)), Some(value), "{}", PARAMETERS[i as usize].name);
        }
        for i in 0..PARAMETERS.len() as u8 {
            let next: NextParameter = host.get(entry(host, NEXT_PARAMETERS, i as u64));
            assert_eq!((next.value, next.at), self.next_parameters.get(&i).copied().unwrap_or_default());
        }
        assert_eq!(admin::upgrades(host).expect("initialised"), self.upgrades);
        for ((program, selectors), &at) in &self.next_programs {
            let change = (*program, &selectors[..]);
            // One that has been carried out is not proposed any more.
            let done = selectors.iter().all(|s| self.programs.get(&s.0).copied().unwrap_or_default() == *program);
            let stored = admin::proposed_programs(host, change.0, change.1);
            assert!(stored == at || done && stored == 0, "{change:?}");
        }
        let answered: BTreeMap<[u8; 4], Address> =
            admin::selectors(host).into_iter().map(|s| (s, admin::program_of(host, s))).collect();
        let mut known = self.programs.clone();
        assert_eq!(known.remove(&IMuster::installCall::SELECTOR), Some(host.here()), "the router's own");
        assert_eq!(answered, known);
        for id in 0..=self.created + 1 {
            assert_eq!(net.outcome(TaskId(id)), self.outcomes.get(&id).cloned().unwrap_or(NO_RECEIPT), "outcome of {id}");
        }

        for (&group, (name, vram)) in &self.groups {
            let there = joined.iter().filter(|n| n.group == group).count();
            assert_eq!(registry::joined(host, GpuGroup(group)).map(|n| n as usize), Some(there), "joined in {group}");
            assert_eq!(registry::gpu_group(host, name.as_bytes(), *vram), Some(GpuGroup(group)));
            assert_eq!(&registry::gpu_name(host, GpuGroup(group)), name);
            assert_eq!(registry::listed(host, GpuGroup(group)), self.listed.contains(&group));
            let of_size = self.groups.values().filter(|g| g.1 == *vram).count();
            assert_eq!(registry::gpu_count(host, *vram) as usize, of_size);
        }
        for (&number, n) in &self.nodes {
            self.compare_node(net, number, n);
        }
        for (&who, a) in &self.accounts {
            let v = net.account_view(who);
            assert_eq!(
                (v.credit, v.unbonding, v.release, v.node, v.kickedOut),
                (a.credit, a.unbonding, a.release, a.node, a.kicked)
            );
        }
        for (&who, uris) in &self.stores {
            assert_eq!(&stores_of(host, who), uris, "stores of {who:?}");
        }
        for (&model, list) in &self.holders {
            let mut all = Vec::new();
            while all.len() < list.len() {
                let (total, more) = net.holders_view(ModelId(model), all.len() as u32, 256).expect("a model");
                assert!(total as usize == list.len() && !more.is_empty(), "holders of {model}");
                all.extend(more.iter().map(|n| n.0));
            }
            assert_eq!(&all, list, "holders of {model}");
        }
        self.compare_tasks(net);
        self.compare_groups(net);
        for (&who, app) in &self.applications {
            let known = (app.profile.clone(), app.groups, app.successes, app.members);
            assert_eq!(net.profile(who), known, "profile of {who:?}");
        }
        self.compare_lists(net);
    }

    fn compare_node<H: Host>(&self, net: &Network<H>, number: u32, n: &Node) {
        let v = net.node_view(NodeId(number)).expect("known");
        assert_eq!(worker_of(net.host, NodeId(number)), n.worker, "worker of {number}");
        assert_eq!(
            (v.operator.into_array(), v.status, v.gpu, v.vram, v.stake, v.joinedAt, (v.task, v.deadline)),
            (n.operator, n.status, n.group, n.group as u16, n.stake, n.joined_at, n.task),
            "node {number}"
        );
        let h = self.h(n, net.now);
        assert!((v.reliability as f64 / 1e18 - h).abs() < EPS, "H of {number}: {} and {h}", v.reliability);
        let threshold = self.parameter("exclusionPpm") as f64 / 1e6;
        assert!(v.excluded == (h < threshold) || (h - threshold).abs() < EPS);
        assert_eq!(v.models.iter().copied().collect::<BTreeSet<_>>(), n.held);
        assert_eq!((v.models.len(), &v.inUse), (n.held.len(), &n.in_use));
        let pool = &n.scores[n.scores.len().saturating_sub(50)..];
        let mean = if pool.is_empty() { 5.0 } else { pool.iter().map(|&s| s as f64).sum::<f64>() / pool.len() as f64 };
        assert_eq!(v.scores as usize, pool.len());
        assert!((v.longTerm as f64 / 1e17 - mean).abs() < 1e-9);
        let mut ring = [0u8; 50];
        n.scores.iter().enumerate().for_each(|(i, &s)| ring[i % 50] = s);
        let at = muster_protocol::host::offset(node_slot(&*net.host, NodeId(number)), muster_protocol::layout::node::SCORES);
        let s: Scores = net.host.get(at);
        let word = Word([s.low, s.mid, s.high, s.last as u64]);
        let stored: Vec<u8> = (0..50).map(|i| word.bits(i * 4, 4) as u8).collect();
        assert_eq!((&stored[..], s.next as usize), (&ring[..], n.scores.len() % 50), "scores of {number}");
        assert_eq!((v.judged as u64, v.right as u64), n.judged, "judgements of {number}");
        assert_eq!((v.openCommitments as u64, v.held, v.calledTo), (n.open, n.halted, n.called), "duties of {number}");
        if n.runs {
            let view = net.running_task(NodeId(number)).expect("known");
            assert_eq!(net.locate(TaskId(n.task.0), NodeId(number), Ticket(0)), view);
            let task = &self.tasks[&n.task.0];
            Self::same(&view, &Task { node: number, at: n.task.1, ..task.clone() }, task.status);
            let place = self.teams.iter().find(|(_, team)| team.id == n.task.0).map_or(0, |(&place, _)| place);
            assert_eq!(view.group, place);
        } else {
            assert_eq!(net.running_task(NodeId(number)).expect("known").status, 0, "{number} runs nothing");
        }
        let parked = match (n.parked, n.waits, n.reserved) {
            (_, _, 1..) => 3,
            (Some(_), true, _) => 2,
            (Some(_), false, _) => 1,
            (None, ..) => 0,
        };
        assert_eq!((v.parked, v.parkedUntil), (parked, n.parked.unwrap_or(0)), "node {number} waits");
    }

    fn compare_tasks<H: Host>(&self, net: &Network<H>) {
        let mut pending = Vec::new();
        while pending.len() < self.pending.len() {
            let more = net.pending_tasks(pending.len() as u32, 256).expect("a page");
            assert!(!more.is_empty());
            pending.extend(more);
        }
        for (view, id) in pending.iter().zip(&self.pending) {
            Self::same(view, &self.tasks[id], 1);
            assert_eq!(&net.locate(TaskId(*id), NodeId(0), Ticket(0)), view);
        }
        let (used, views) = net.queues(0, 256).expect("a page");
        assert_eq!(used as usize, self.queues.len(), "queues ever used");
        for (v, &queue) in views.iter().zip(&self.queues) {
            let there = self.queued.iter().filter(|id| self.tasks[id].queue() == queue).count();
            assert_eq!(
                (v.queue, v.queued as usize, v.best > 0, v.worst > 0),
                (queue, there, there > 0, there > 0),
                "queue {queue}"
            );
        }
        for id in &self.queued {
            let task = &self.tasks[id];
            let (queue, place) = ((task.at >> 32) as u32, task.at as u32);
            assert_eq!(queue, task.queue(), "{id} stands in its queue");
            let (places, found) = net.queued_tasks(QueueId(queue), place, 1).expect("a page");
            let view = found.first().expect("queued at its ticket");
            Self::same(view, task, 2);
            assert_eq!(&net.locate(TaskId(*id), NodeId(0), Ticket(task.at)), view);
            let ahead = |other: &&u64| {
                let other = &self.tasks[other];
                let rank = |t: &Task| (t.value(), std::cmp::Reverse(t.created.id));
                (other.at >> 32) as u32 == queue && rank(other) > rank(task)
            };
            let counted = net.queued_before(Ticket(task.at), 0, 256).expect("a page");
            if places <= 256 {
                assert_eq!(counted, (places, self.queued.iter().filter(ahead).count() as u32), "before {id}");
            }
        }
    }

    fn compare_groups<H: Host>(&self, net: &Network<H>) {
        let window = self.parameter("revealWindow");
        let (places, views) = net.groups_view(1, 256).expect("a page");
        assert_eq!(places, self.places);
        if places <= 256 {
            assert_eq!(views.iter().map(|v| v.group).collect::<Vec<_>>(), self.teams.keys().copied().collect::<Vec<_>>());
        }
        for (&place, team) in &self.teams {
            let (v, c) = (net.group_view(place), &self.tasks[&team.id].created);
            let images = if c.spec.kind == 0 { c.spec.units as u8 } else { 0 };
            assert_eq!(
                (v.group, v.id, v.creator, v.fee, v.kind, v.images, v.estimate, v.redundancy, v.scored),
                (place, c.id, c.creator, c.fee, c.spec.kind, images, c.estimate, c.spec.redundancy, team.scored)
            );
            let waits = |m: &Member| m.stage == CALLED || m.stage == RUNNING && net.now <= m.moment;
            let last = team.members.iter().map(|m| m.moment).max().expect("members").max(team.formed);
            let opens = if team.members.iter().any(waits) { (0, 0) } else { (last, last + window) };
            assert_eq!((v.opens, v.closes), opens, "reveals at {place}");
            assert!(v.members.len() >= team.members.len(), "members at {place}");
            for (i, v) in v.members.iter().enumerate() {
                let none = Member::default();
                let m = team.members.get(i).unwrap_or(&none);
                assert_eq!(
                    (v.node, v.stage, v.moment, v.elapsed as u64, v.answer),
                    (m.node, m.stage, m.moment, m.elapsed, m.answer)
                );
            }
        }
        // A call whose task is gone leaves the ring without an event, when its turn has come.
        let calls: Vec<(u64, u64)> =
            net.validator_draws_view(0, 256).expect("a page").iter().filter(|v| v.id > 0).map(|v| (v.id, v.drawBlock)).collect();
        assert_eq!(calls, self.calls.iter().map(|id| (*id, self.tasks[id].at)).collect::<Vec<_>>());
    }

    fn compare_lists<H: Host>(&self, net: &Network<H>) {
        let mut parked: Vec<u32> = net.excluded_nodes(0, 256).expect("a page").1.iter().map(|n| n.0).collect();
        parked.sort_unstable();
        let expected: Vec<u32> = self.nodes.iter().filter(|(_, n)| n.parked.is_some()).map(|(&i, _)| i).collect();
        assert_eq!(parked, expected);
        let due = self.nodes.values().filter_map(|n| n.parked).min().unwrap_or(0);
        let head: Head = net.host.get(slot(HEAD));
        assert_eq!(head.parked_due as u64, due);
        let largest = self.nodes.values().filter(|n| n.status != 0).map(|n| n.group as u16).max();
        assert_eq!(head.max_vram, largest.unwrap_or(0));
        // A class holds four times the stake of the one below it.
        let class = |stake: u128| (0..10).find(|&c| stake <= self.base << (2 * c)).unwrap_or(9) as u8;
        for &group in self.groups.keys() {
            for (c, among) in (0..10).flat_map(|c| [(c, Among::Idle), (c, Among::Active)]) {
                let mut there: Vec<u32> =
                    net.listed_nodes(among, GpuGroup(group), c, 0, 256).expect("a page").1.iter().map(|n| n.0).collect();
                there.sort_unstable();
                let stands = |n: &Node| match among {
                    Among::Idle => n.status == 1 && n.parked.is_none(),
                    Among::Active => n.status != 0 && !n.aside,
                };
                let here = |n: &Node| stands(n) && (n.group, class(n.stake)) == (group, c);
                let expected: Vec<u32> = self.nodes.iter().filter(|(_, n)| here(n)).map(|(&i, _)| i).collect();
                assert_eq!(there, expected, "{among:?} in group {group}, class {c}");
            }
        }
    }

    fn same(v: &IMuster::TaskView, t: &Task, status: u8) {
        let (c, s) = (&t.created, &t.created.spec);
        let vram = if s.gpu == 0 { s.vram } else { s.gpu as u16 };
        assert_eq!(
            (v.id, v.creator, v.fee, v.kind, v.estimate, v.timeLimit, v.startFeeBps, v.vram, v.gpu, v.flags, &v.models),
            (c.id, c.creator, c.fee, s.kind, c.estimate, c.timeLimit, c.startFeeBps, vram, s.gpu, s.flags, &s.models)
        );
        let at = |wanted| if status.min(3) == wanted { t.at } else { 0 };
        let since = if status == 2 { t.since } else { 0 };
        let node = if status >= 3 { t.node } else { 0 };
        assert_eq!(
            (v.status, v.drawBlock, v.ticket, v.queuedAt, v.deadline, v.node, v.boosts),
            (status, at(1), at(2), since, at(3), node, t.boosts)
        );
        assert_eq!(v.redundancy, s.redundancy);
    }
}

impl Task {
    /// The GPU group that it requires, or VRAM.
    fn group(&self) -> u32 {
        let spec = &self.created.spec;
        if spec.gpu > 0 {
            spec.gpu
        } else {
            spec.vram as u32
        }
    }
    /// The number of the queue it belongs into: each grade begins 4,096 further.
    fn queue(&self) -> u32 {
        let spec = &self.created.spec;
        let grade = match spec.redundancy {
            2 => 1 + (spec.kind > 0) as u32,
            3 => 3,
            _ => 0,
        };
        self.group() + 4_096 * grade
    }
    /// Its pay for one node's work by the estimate, to 32 significant bits: exponent and mantissa.
    fn value(&self) -> (i32, u128) {
        let (mut n, mut d, mut e) = (self.created.fee / self.nodes as u128, self.created.estimate as u128, 0);
        while n >= d << 32 {
            d <<= 1;
            e += 1;
        }
        while n < d << 31 {
            n <<= 1;
            e -= 1;
        }
        (e, n / d)
    }
}
