//! Single prices, each measured on networks of equal nodes: the gain of a lone sender, that of a share of the nodes, and fifty tens.

use super::arena::CARD;
use crate::world::{commitment, foretell, spec, stage, who, word, Dice, World, OWNER, TOKEN};
use alloy_primitives::{keccak256, B256};
use alloy_sol_types::SolValue;
use muster_core::id::{NodeId, TaskId};
use muster_core::record::Order;
use muster_protocol::abi::IMuster::*;
use muster_protocol::flow::draw::Rng;
use muster_protocol::host::Host;
use muster_protocol::native::Hashes;
use muster_protocol::store::node::NodeHandle;
use muster_protocol::{programs, IMuster};
use std::collections::HashMap;

/// The creator of all tasks.
const CREATOR: u64 = 100_000;
/// The driver of everything.
const DRIVER: u64 = 100_001;
/// Tasks of one network, before another is made.
const SEVERAL: u64 = 10;
/// The same where groups are judged, whose scores change weights.
const FEW: u64 = 3;
/// Hashes that a lone sender tries at most.
const TRIES: u32 = 2_000;

/// Equal nodes of the listed card, 1 and on, the first of which are the adversary's.
struct Net {
    w: World,
    dice: Dice,
    own: u32,
    /// Whether the others lack the models that the tasks require.
    lacks: bool,
}

impl Net {
    fn new(seed: u64, nodes: u64, own: u32, settings: &[(&str, u64)]) -> Net {
        let mut w = World::new();
        w.mem.keep_logs = false;
        w.mem.hashes = Hashes::Given(HashMap::new());
        for &(name, value) in settings {
            w.set(name, value);
        }
        for n in 1..=nodes {
            w.join(n, "RTX 4090", 24, &[], 4_000).expect("joins");
        }
        w.send(OWNER, 0, listGpuGroupCall { group: CARD, listed: true }).expect("the owner may");
        Net { w, dice: Dice(seed), own, lacks: false }
    }

    fn hash(&mut self) -> B256 {
        keccak256((self.dice.bits(), self.dice.bits()).abi_encode())
    }

    /// Ends the block with this hash.
    fn end_block(&mut self, hash: B256, seconds: u64) {
        let block = self.w.mem.block;
        if let Hashes::Given(hashes) = &mut self.w.mem.hashes {
            hashes.insert(block, hash.0);
        }
        self.w.pass(1, seconds);
    }

    fn pass(&mut self, blocks: u64, seconds: u64) {
        for i in 0..blocks {
            let hash = self.hash();
            self.end_block(hash, if i == 0 { seconds } else { 0 });
        }
    }

    fn is_own(&self, node: u32) -> bool {
        node <= self.own
    }

    /// A sampled task on a node of the adversary's; gives its id and the node.
    fn first_of_own(&mut self, fee: u128) -> (u64, u32) {
        let wanted = IMuster::TaskSpec { gpu: CARD, redundancy: 1, ..spec(0, &[]) };
        let id = self.w.create(CREATOR, fee, wanted.clone()).expect("created");
        let hash = loop {
            let hash = self.hash();
            if foretell(&mut self.w, hash.0, id, &wanted).is_some_and(|node| self.is_own(node)) {
                break hash;
            }
        };
        self.end_block(hash, 1);
        self.w.dispatch(1).expect("drawn");
        let node = (1..=self.own).find(|n| self.w.node(*n).task == id && self.w.node(*n).status == 2).expect("started");
        (id, node)
    }

    /// Whether a hash would sample a node's task.
    fn samples(&mut self, node: u32, hash: B256) -> bool {
        let order: Order = NodeHandle::load(&self.w.mem, NodeId(node)).order(&self.w.mem);
        Rng::new(&self.w.mem, hash.0, order.id).below(&self.w.mem, 10_000) < u64::from(order.sample_bps)
    }

    /// The answer of a node to which a value is right: that, or an error.
    fn says(&self, node: u32, value: B256) -> (u8, B256) {
        if self.lacks && !self.is_own(node) {
            (1, B256::ZERO)
        } else {
            (0, value)
        }
    }

    fn commit(&mut self, id: u64, node: u32, value: B256) {
        let (kind, value) = self.says(node, value);
        let commitment = commitment(id, node, kind, value, salt(id, node));
        self.w.send(who(node.into()), 0, commitCall { id, commitment }).expect("committed");
    }

    fn reveal(&mut self, id: u64, group: u32, node: u32, value: B256) {
        let (kind, value) = self.says(node, value);
        let call = revealCall { id, group, node, kind, value, salt: salt(id, node) };
        self.w.send(who(DRIVER), 0, call).expect("revealed");
    }

    /// Makes due draws until a task has its group.
    fn grouped(&mut self, id: u64) -> IMuster::GroupView {
        for _ in 0..100 {
            self.pass(3, 1);
            self.w.dispatch(16).expect("drawn");
            if let Some(group) = self.group_of(id) {
                return group;
            }
        }
        panic!("task {id} has no group")
    }

    fn group_of(&mut self, id: u64) -> Option<IMuster::GroupView> {
        self.w.ask(groupsCall { from: 1, count: 256 })._1.into_iter().find(|g| g.id == id)
    }

    /// The members of a group answer, each with `says`, the adversary's at once and the others when they have worked; all reveal.
    fn play(&mut self, id: u64, says: impl Fn(bool) -> B256) {
        let group = self.group_of(id).expect("a group");
        let mut runs: Vec<u32> = group.members.iter().filter(|m| m.stage == stage::RUNNING).map(|m| m.node).collect();
        runs.sort_by_key(|node| !self.is_own(*node));
        let mut waited = false;
        for node in runs {
            if !self.is_own(node) && !waited {
                self.pass(1, 20);
                waited = true;
            }
            self.commit(id, node, says(self.is_own(node)));
        }
        for member in &group.members {
            self.reveal(id, group.group, member.node, says(self.is_own(member.node)));
        }
        assert!(self.group_of(id).is_none(), "judged");
    }

    fn wealth(&mut self) -> u128 {
        (1..=self.own).map(|n| self.w.account(n.into()).credit + self.w.node(n).stake).sum()
    }
}

fn salt(id: u64, node: u32) -> B256 {
    keccak256((id, node).abi_encode())
}

fn right(id: u64) -> B256 {
    keccak256((id, "right").abi_encode())
}

fn lie(id: u64) -> B256 {
    keccak256((id, "lie").abi_encode())
}

/// The gain of an adversary that is alone in a share of the blocks.
#[derive(Clone, Copy, Default, Debug)]
pub struct Lone {
    /// Answers committed to.
    pub answers: u64,
    /// Of these, sampled.
    pub sampled: u64,
    /// Groups of three formed.
    pub groups: u64,
    /// Of these, with two or three of the adversary's.
    pub majorities: u64,
}

/// Answers, and groups of three, of an adversary with two of twenty nodes that is alone in this many of a hundred of the blocks that
/// decide.
pub fn lone_sender(seed: u64, alone: u64, answers: u64, groups: u64) -> Lone {
    let mut found = Lone::default();
    while found.answers < answers {
        let mut net = Net::new(seed ^ (found.answers + 1) << 20, 20, 20, &[]);
        for _ in 0..SEVERAL {
            let (id, node) = net.first_of_own(TOKEN);
            net.commit(id, node, lie(id));
            net.pass(2, 1);
            // The block that decides: each call that the adversary sends in it gives another hash.
            let mut hash = net.hash();
            if net.dice.below(100) < alone {
                let mut tries = 0;
                while net.samples(node, hash) && tries < TRIES {
                    hash = net.hash();
                    tries += 1;
                }
            }
            net.end_block(hash, 1);
            found.answers += 1;
            found.sampled += u64::from(net.samples(node, hash));
        }
    }
    while found.groups < groups {
        let mut net = Net::new(seed ^ (found.groups + 1) << 20, 20, 2, &[]);
        let wanted = IMuster::TaskSpec { gpu: CARD, redundancy: 2, ..spec(0, &[]) };
        // Six groups of three are all that twenty nodes make at once.
        let id = net.w.create(CREATOR, 3 * TOKEN, wanted).expect("created");
        let grinds = net.dice.below(100) < alone;
        let mut own = 0;
        for _ in 0..if grinds { TRIES } else { 1 } {
            let hash = net.hash();
            net.end_block(hash, 1);
            own = net.foreseen(id);
            if own >= 2 {
                break;
            }
            // Not sent after all.
            net.w.mem.block -= 1;
            net.w.mem.now -= 1;
        }
        found.groups += 1;
        found.majorities += u64::from(own >= 2);
    }
    found
}

impl Net {
    /// How many members of the group that is due would be the adversary's.
    fn foreseen(&mut self, id: u64) -> u32 {
        let mut own = 0;
        let most = self.own;
        let _ = self.w.mem.call(|m| {
            (m.sender, m.value) = (who(DRIVER), word(0));
            let call = alloy_sol_types::SolCall::abi_encode(&dispatchCall { count: 1 });
            programs::answer(m, &call).map_err(drop)?;
            own = (1..=most)
                .filter(|n| {
                    let seat = NodeHandle::load(m, NodeId(*n));
                    seat.node.running() && seat.order(m).id == TaskId(id)
                })
                .count() as u32;
            Err::<(), ()>(())
        });
        own
    }
}

/// The gain of a share of the nodes.
#[derive(Clone, Copy, Default, Debug)]
pub struct Share {
    /// Replicated tasks' groups.
    pub groups: u64,
    /// Of these, with two of the adversary's and one to rob.
    pub twos: u64,
    /// Of these, with three.
    pub threes: u64,
    /// False answers of a first node.
    pub answers: u64,
    /// Of these, sampled.
    pub sampled: u64,
    /// Of these, with a validator of its own.
    pub backed: u64,
    /// Their earnings, in wei.
    pub earned: u128,
    /// Slashes.
    pub slashes: u64,
    /// Fees, in wei, of one.
    pub fee: u128,
}

/// The adversary owns so many of a hundred equal nodes, beside a first node those of a hundred others, and gives false answers at this rate of sampling.
pub fn share(seed: u64, own: u32, sample_bps: u64, groups: u64, answers: u64) -> Share {
    let fee = TOKEN;
    let mut found = Share { fee, ..Share::default() };
    let settings = [("sampleBps", sample_bps)];
    while found.groups < groups {
        let mut net = Net::new(seed ^ (found.groups + 1) << 20, 100, own, &settings);
        for _ in 0..SEVERAL {
            let wanted = IMuster::TaskSpec { gpu: CARD, redundancy: 2, ..spec(0, &[]) };
            let id = net.w.create(CREATOR, 3 * fee, wanted).expect("created");
            let group = net.grouped(id);
            let members = group.members.iter().filter(|m| net.is_own(m.node)).count();
            found.groups += 1;
            found.twos += u64::from(members == 2);
            found.threes += u64::from(members == 3);
        }
    }
    while found.answers < answers {
        // One more, the first node: the others' share decides.
        let mut net = Net::new(seed ^ (found.answers + 1) << 20, 101, own + 1, &settings);
        for _ in 0..FEW {
            let (id, node) = net.first_of_own(fee);
            let before = net.wealth();
            net.commit(id, node, lie(id));
            net.pass(3, 1);
            found.answers += 1;
            let hash = net.w.mem.block_hash(net.w.mem.block - 1).map(B256::from).expect("known");
            if net.samples(node, hash) {
                found.sampled += 1;
                net.w.send(who(node.into()), 0, validateCall { id, node }).expect("sampled");
                let group = net.grouped(id);
                let backed = group.members.iter().filter(|m| net.is_own(m.node)).count() > 1;
                found.backed += u64::from(backed);
                net.play(id, |own| if own { lie(id) } else { right(id) });
            } else {
                net.reveal(id, 0, node, lie(id));
            }
            let after = net.wealth();
            if after < before {
                found.slashes += 1;
            } else {
                found.earned += after - before;
            }
        }
    }
    found
}

/// The cost of fifty tens of one node.
#[derive(Clone, Copy, Default, Debug)]
pub struct Fifty {
    /// Tasks created.
    pub tasks: u64,
    /// Groups settled.
    pub groups: u64,
    /// The part of their fees that others kept, in hundredths of a single node's part.
    pub parts: u64,
    /// Seconds, one task after the other.
    pub seconds: u64,
    /// The node's weight by that of one without scores, in thousandths.
    pub weight: u64,
}

/// The holders of the model that tasks require.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Required {
    /// They require none.
    Nothing,
    /// The node that is to get tens; others fetch it.
    Alone,
    /// The adversary's nodes; nobody else can have it, so others report errors.
    Private,
}

/// The adversary's application creates tasks whose answer its nodes know, until one of them has a pool of fifty tens.
pub fn fifty_tens(seed: u64, nodes: u64, own: u32, policy: u8, required: Required) -> Fifty {
    let mut net = Net::new(seed, nodes, own, &[]);
    let part = TOKEN;
    let fee = if policy == 2 { 3 * part } else { part };
    let (models, holders) = match required {
        Required::Nothing => (vec![], 0),
        Required::Alone => (vec![0xdead], 1),
        Required::Private => (vec![0xdead], own),
    };
    for node in 1..=holders {
        net.w.send(who(node.into()), 0, reportDownloadedCall { models: models.clone() }).expect("reported");
    }
    net.lacks = required == Required::Private;
    let (began, before) = (net.w.mem.now, net.wealth());
    let mut found = Fifty::default();
    while net.w.node(1).scores < 50 || net.w.node(1).longTerm < 1_000_000_000_000_000_000 {
        let wanted = IMuster::TaskSpec { gpu: CARD, redundancy: policy, ..spec(0, &models) };
        let id = net.w.create(CREATOR, fee, wanted).expect("created");
        found.tasks += 1;
        if policy == 2 {
            net.grouped(id);
        } else if !net.alone(id) {
            continue;
        }
        found.groups += 1;
        net.play_first(id);
    }
    let kept = net.w.paid_in - nodes as u128 * 4_000 * TOKEN - refunds(&mut net) - (net.wealth() - before);
    found.parts = (kept * 100 / part) as u64;
    found.seconds = net.w.mem.now - began;
    let weight = |net: &mut Net, n: u32| net.w.ask(weightOfCall { number: n, spec: spec(0, &[]) }).weight;
    // A node that has just joined.
    net.w.join(nodes + 1, "RTX 4090", 24, &[], 4_000).expect("joins");
    let fresh = weight(&mut net, nodes as u32 + 1);
    found.weight = (u128::from(weight(&mut net, 1)) * 1_000 / u128::from(fresh)) as u64;
    found
}

/// The application's returned money, beside the cost of GPU names.
fn refunds(net: &mut Net) -> u128 {
    net.w.account(CREATOR).credit + net.w.ask(overviewCall {}).treasuryBalance
}

impl Net {
    /// A sampled task's first node answers; gives whether the task was sampled and has its group.
    fn alone(&mut self, id: u64) -> bool {
        let nodes = self.w.ask(overviewCall {}).nodesIssued;
        let node = loop {
            self.pass(1, 1);
            self.w.dispatch(1).expect("drawn");
            let runs = |net: &mut Net, n: u32| net.w.node(n).task == id && net.w.node(n).status == 2;
            if let Some(node) = (1..=nodes).find(|n| runs(self, *n)) {
                break node;
            }
        };
        if !self.is_own(node) {
            self.pass(1, 20);
        }
        self.commit(id, node, right(id));
        self.pass(3, 1);
        let hash = self.w.mem.block_hash(self.w.mem.block - 1).map(B256::from).expect("known");
        if !self.samples(node, hash) {
            self.reveal(id, 0, node, right(id));
            return false;
        }
        self.w.send(who(node.into()), 0, validateCall { id, node }).expect("sampled");
        self.grouped(id);
        true
    }

    /// A group answers rightly: node 1 at once, others of the adversary's a second later, all others when they have worked.
    fn play_first(&mut self, id: u64) {
        let group = self.group_of(id).expect("a group");
        let mut runs: Vec<u32> = group.members.iter().filter(|m| m.stage == stage::RUNNING).map(|m| m.node).collect();
        runs.sort_unstable();
        for node in runs {
            let seconds = match node {
                1 => 0,
                node if self.is_own(node) => 1,
                _ => 20,
            };
            if seconds > 0 {
                self.pass(1, seconds);
            }
            self.commit(id, node, right(id));
        }
        for member in &group.members {
            self.reveal(id, group.group, member.node, right(id));
        }
    }
}
