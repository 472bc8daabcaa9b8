//! Helpers that tests of several actors share: for all tasks, and by their policy.

use alloy_primitives::B256;
use muster_core::record::CALL_MODELS;
use muster_model::validated::*;
use muster_model::world::*;
use muster_protocol::IMuster::*;

/// A node with so many models that it reports some of them after it has joined.
pub fn holder(w: &mut World, n: u64, card: &str, vram: u16, models: &[u64]) -> u32 {
    let number = w.join(n, card, vram, &models[..CALL_MODELS], 400).unwrap();
    for part in models[CALL_MODELS..].chunks(CALL_MODELS) {
        w.send(who(n), 0, reportDownloadedCall { models: part.to_vec() }).unwrap();
    }
    number
}

/// A node that has held a model, in the last of six words of its list, behind those above `own`. It has removed that, and draws for the
/// model look through its list in vain.
pub fn forgetful(w: &mut World, n: u64, card: &str, vram: u16, own: u64, model: u64) {
    let models: Vec<u64> = (own + 1..=own + 31).chain([model]).collect();
    holder(w, n, card, vram, &models);
    w.send(who(n), 0, reportRemovedCall { models: vec![model] }).unwrap();
}

/// An answer of one image.
pub fn picture(n: u8) -> B256 {
    let mut bytes = [0; 32];
    bytes[..8].fill(n);
    bytes.into()
}

/// The node that runs a task, once it is drawn.
pub fn runner(w: &mut World, id: u64) -> u32 {
    let issued = w.ask(overviewCall {}).nodesIssued;
    for _ in 0..100 {
        if let Some(node) = (1..=issued).find(|&n| task_of(w, n) == id) {
            return node;
        }
        w.pass(1, 0);
        w.dispatch(16).unwrap();
    }
    panic!("task {id} is not drawn")
}

/// A task's group, once it is drawn.
pub fn grouped(w: &mut World, id: u64) -> (u32, Vec<u32>) {
    for _ in 0..100 {
        if let Some(group) = group_of(w, id) {
            return group;
        }
        w.pass(3, 1);
        w.dispatch(16).unwrap();
    }
    panic!("task {id} has no group")
}

/// Has the validators of a task called by somebody, and drawn.
pub fn called(w: &mut World, id: u64, node: u32, caller: u64) -> (u32, Vec<u32>) {
    w.send(who(caller), 0, validateCall { id, node }).unwrap();
    grouped(w, id)
}

pub mod single {
    pub use super::forgetful;
    use muster_core::id::TaskId;
    use muster_model::world::*;
    use muster_protocol::IMuster::IMusterCalls;

    pub const FEE: u128 = TOKEN;

    pub fn submit(w: &mut World, n: u64, id: u64) {
        w.call(who(n), 0, |net| net.submit(TaskId(id), [1; 32])).unwrap();
    }

    /// Asserts that no public function's signature has any of these words in it.
    pub fn nothing_called(words: &[&str]) {
        for signature in IMusterCalls::SIGNATURES {
            let name = signature.to_lowercase();
            assert!(!words.iter().any(|w| name.contains(w)), "{signature}");
        }
    }
}

pub mod errors {
    pub use super::{called, grouped, picture, runner};
    use alloy_primitives::B256;
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::host::Host;
    use muster_protocol::layout::{slot, RESERVE};
    use muster_protocol::IMuster::{self, *};

    pub const FEE: u128 = 6 * TOKEN;
    pub const START_FEE: u128 = FEE / 50;
    /// A model that exists nowhere: only nodes that claim to hold it can answer, for nobody can disprove the claim.
    pub const PRIVATE: u64 = 777;
    /// The attacker.
    pub const ATTACKER: u64 = 150;

    /// A GPT task whose node commits to its answer, with these models.
    pub fn sampled(models: &[u64]) -> IMuster::TaskSpec {
        IMuster::TaskSpec { gpu: CARD, redundancy: 1, ..spec(0, models) }
    }

    /// The same for three nodes.
    pub fn for_three(models: &[u64]) -> IMuster::TaskSpec {
        IMuster::TaskSpec { gpu: CARD, ..IMuster::TaskSpec { models: models.to_vec(), ..alike(0) } }
    }

    /// A network whose last `own` nodes are the attacker's, which alone hold the private model.
    pub fn beside(honest: u64, own: u64) -> World {
        let mut w = network(honest);
        (honest + 1..=honest + own).for_each(|n| assert!(w.join(n, "RTX 4090", 24, &[PRIVATE], 400).is_ok()));
        w.events();
        w
    }

    /// Gives the reserve so many fees, as honest tasks would have.
    pub fn fund(w: &mut World, fees: u128) {
        w.mem.store(slot(RESERVE), word(fees * FEE));
        w.paid_in += fees * FEE;
    }

    pub fn reserve(w: &mut World) -> i128 {
        w.ask(overviewCall {}).reserve as i128
    }

    /// Muster's debt to people, in wei.
    pub fn owed(w: &mut World, people: impl IntoIterator<Item = u64>) -> u128 {
        people.into_iter().map(|n| w.account(n).credit).sum()
    }

    /// Ten-thousandths of a fee, as a share of it in hundredths.
    pub fn percent(wei: i128, of: u128) -> String {
        format!("{:.2} %", wei as f64 * 100.0 / of as f64)
    }

    /// Has these members commit to an answer each, and reveal it; a node belongs to the operator of its number, or to the given one.
    pub fn judged(w: &mut World, id: u64, place: u32, members: &[u32], says: impl Fn(u32) -> (u8, B256)) {
        for &n in members {
            if task_of(w, n) != id || w.ask(runningTaskCall { number: n }).status != 6 {
                continue;
            }
            let (kind, value) = says(n);
            let operator = w.node(n).operator.into_array();
            w.send(operator, 0, commitCall { id, commitment: commitment(id, n, kind, value, salt(id, n)) }).unwrap();
        }
        for &n in members {
            let (kind, value) = says(n);
            reveal(w, id, place, n, kind, value).unwrap();
        }
    }

    /// The share of the attacker's nodes in all weight.
    pub fn share(w: &mut World, honest: u32, own: u32) -> f64 {
        let wanted = IMuster::TaskSpec { gpu: CARD, ..spec(0, &[]) };
        let weight = |w: &mut World, n: u32| w.ask(weightOfCall { number: n, spec: wanted.clone() }).weight as f64;
        let all: Vec<f64> = (1..=honest + own).map(|n| weight(w, n)).collect();
        all[honest as usize..].iter().sum::<f64>() / all.iter().sum::<f64>()
    }
}

pub mod sampled {
    pub use super::{forgetful, grouped, picture, runner};
    use alloy_sol_types::SolInterface;

    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::IMuster::{self, *};

    pub const FEE: u128 = 6 * TOKEN;
    /// The rest of the fee once the validators were called.
    pub const LEFT: u128 = FEE / 50 * 49;
    /// The stake of every node.
    pub const STAKE: u128 = 400 * TOKEN;
    /// The cost of a wrong answer, in fees.
    pub const SLASH_TIMES: u128 = 20;
    /// The attacker, with tasks of its own.
    pub const ATTACKER: u64 = 150;

    /// Equal nodes of a listed GPU group, every answer of theirs sampled.
    pub fn all_sampled(nodes: u64) -> World {
        let mut w = network(nodes);
        w.set("sampleBps", 10_000);
        w
    }

    pub fn wanted(models: &[u64]) -> IMuster::TaskSpec {
        IMuster::TaskSpec { gpu: CARD, redundancy: 1, ..spec(0, models) }
    }

    /// Has the validators of a task called and drawn, once the lot is known; gives the group.
    pub fn called(w: &mut World, id: u64, node: u32) -> (u32, Vec<u32>) {
        w.pass(3, 1);
        super::called(w, id, node, DRIVER)
    }

    /// Has a member commit, whoever its operator is.
    pub fn commit_as(w: &mut World, id: u64, node: u32, answer: u8) {
        let operator = w.node(node).operator.into_array();
        let commitment = commitment(id, node, ANSWER, value(answer), salt(id, node));
        w.send(operator, 0, commitCall { id, commitment }).unwrap();
    }

    /// Has the validators of a group say 1, its first reveal its commitment; gives the burnt amount.
    pub fn judged(w: &mut World, id: u64, (place, members): &(u32, Vec<u32>), first: u8) -> u128 {
        let before = w.ask(overviewCall {}).burnt;
        for &n in &members[1..] {
            commit_as(w, id, n, 1);
        }
        for (i, &n) in members.iter().enumerate() {
            reveal(w, id, *place, n, ANSWER, value(if i == 0 { first } else { 1 })).unwrap();
        }
        assert_eq!(group_of(w, id), None, "judged");
        w.ask(overviewCall {}).burnt - before
    }

    /// A node's sampled task from its commitment to the judgement, others saying 1; gives the burnt amount.
    pub fn answered(w: &mut World, id: u64, node: u32, answer: u8) -> u128 {
        commit_as(w, id, node, answer);
        let group = called(w, id, node);
        judged(w, id, &group, answer)
    }

    /// Creates sampled tasks until this node has one; all others are answered rightly.
    pub fn task_on(w: &mut World, wanted_node: u32, fee: u128) -> u64 {
        for _ in 0..200 {
            let id = created(w, fee, wanted(&[]));
            let node = runner(w, id);
            if node == wanted_node {
                return id;
            }
            assert_eq!(answered(w, id, node, 1), 0);
            w.pass(1, 1);
            w.dispatch(16).unwrap();
        }
        panic!("{wanted_node} is never drawn")
    }

    /// The highest fee that is accepted.
    pub fn most(w: &mut World) -> u128 {
        let refusal = w.create(CREATOR, STAKE, wanted(&[])).expect_err("more than a stake covers").into_bytes();
        match IMuster::IMusterErrors::abi_decode_validate(&refusal) {
            Ok(IMuster::IMusterErrors::FeeTooHigh(refused)) => refused.most.to(),
            other => panic!("{other:?}"),
        }
    }
}

pub mod replicated {
    pub use super::{holder, picture};

    use muster_model::world::*;

    pub const FEE: u128 = 12 * TOKEN;
}

pub mod rated {
    pub use super::{holder, picture};
    use alloy_primitives::B256;
    use muster_core::id::NodeId;
    use muster_core::wad::WAD;
    use muster_model::validated::*;
    use muster_model::world::*;
    use muster_protocol::store::node::NodeHandle;
    use muster_protocol::IMuster::{self, IMusterEvents as E, *};
    use muster_protocol::Network;

    pub const FEE: u128 = 18 * TOKEN;
    /// The attacker, with tasks of its own.
    pub const ATTACKER: u64 = 70;

    /// Groups of so many, whatever their ratings.
    pub fn of_size(size: u8) -> Profile {
        Profile { least: size, most: size, targeting: 2, target: WAD, ..USUAL }
    }

    /// One image by nodes chosen by their ratings.
    pub fn rated_image(gpu: u32, vram: u16) -> IMuster::TaskSpec {
        IMuster::TaskSpec { kind: 0, gpu, vram, redundancy: 3, ..spec(0, &[]) }
    }

    /// The rest of a fee after so many groups without a majority, each of which cost it a start fee.
    pub fn left_after(groups: u32) -> u128 {
        (0..groups).fold(FEE, |fee, _| fee - fee / 50)
    }

    pub fn settled(w: &mut World) -> GroupSettled {
        w.events().into_iter().rev().find_map(|e| if let E::GroupSettled(s) = e { Some(s) } else { None }).expect("settled")
    }

    /// Honest nodes that have worked well.
    pub fn seasoned(nodes: u64) -> World {
        let mut w = network(nodes);
        set_profile(&mut w, CREATOR, Profile { algorithm: 0, ..of_size(9) });
        for _ in 0..nodes * 4 {
            let id = created_by(&mut w, CREATOR, FEE, rated());
            let (place, members) = group_of(&mut w, id).expect("formed");
            play(&mut w, id, place, &members, |_| value(1));
            w.pass(1, 1);
        }
        w.events();
        w
    }

    /// An answer of one image, far from that of any other number.
    pub fn noise(n: u64) -> B256 {
        B256::right_padding_from(&Dice(n).bits().to_be_bytes())
    }

    /// A task of the attacker's to which no answer is right: all others each say something different, the attacker's own nodes the same.
    /// Gives its groups and its cost.
    pub fn without_right_answer(w: &mut World, own: impl Fn(u32) -> bool, number: u64) -> (u32, u128) {
        let id = created_by(w, ATTACKER, FEE, rated_image(0, 8));
        let (mut groups, mut refund) = (0, 0);
        while let Some((place, members)) = group_of(w, id) {
            groups += 1;
            let of_group = (number * 10 + u64::from(groups)) * 100;
            play(w, id, place, &members, |n| if own(n) { noise(of_group) } else { noise(of_group + u64::from(n)) });
            refund = settled(w).refund;
            w.pass(1, 1);
            w.dispatch(16).unwrap();
        }
        (groups, FEE - refund)
    }

    /// Ratings in thousandths, and how many judgements they count.
    pub fn ratings(w: &mut World, nodes: impl Iterator<Item = u32>) -> Vec<(u64, u8)> {
        nodes.map(|n| w.node(n)).map(|view| (view.rating / (WAD / 1_000), view.judged)).collect()
    }

    /// Makes a node one of the best rated.
    pub fn rate(w: &mut World, number: u32) {
        for _ in 0..10 {
            w.raw([0; 20], 0, |m| {
                NodeHandle::load(m, NodeId(number)).rate(m, true);
                Ok(())
            })
            .unwrap();
        }
    }

    /// Makes a node's weight as small as its stake lets it be: the worst scores, and H just above exclusion.
    pub fn wear(w: &mut World, number: u32) {
        w.raw([0; 20], 0, |m| {
            Network::open(m)?.record_score(NodeId(number), 0);
            let mut handle = NodeHandle::load(m, NodeId(number));
            (handle.node.h, handle.node.h_at) = (WAD / 1_000 * 101, m.now as u32);
            handle.put(m);
            Ok(())
        })
        .unwrap();
    }

    /// Thirty-two models of its own that a node holds, and eight that a task wants and nobody has.
    pub fn hoard(w: &mut World, n: u64, card: &str, vram: u16) -> u32 {
        let list: Vec<u64> = (1..=32).map(|m| n * 100 + m).collect();
        holder(w, n, card, vram, &list)
    }

    /// Equal nodes at eight VRAM sizes, each of which hoards.
    pub fn scattered(nodes: u64) -> World {
        let mut w = world(0, 1);
        w.set("groupFee", 0);
        for n in 1..=nodes {
            hoard(&mut w, n, "card", (900 - (n % 8) * 31) as u16);
        }
        w
    }

    pub fn wanted(from: u64) -> Vec<u64> {
        (from..from + 8).collect()
    }

    /// As many as a task for nine may require.
    pub fn six(from: u64) -> Vec<u64> {
        (from..from + 6).collect()
    }
}
