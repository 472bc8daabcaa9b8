//! A small search of its own: the nodes and tasks that keep a node from work that it would do, for calls alone. One node works for others,
//! whose tasks wait; the adversary has some nodes of another GPU and a task for several, which takes them and that node.

use super::arena::CARD;
use crate::meter;
use crate::world::{spec, who, Dice, World, TOKEN};
use muster_core::id::NodeId;
use muster_core::record::{Assignment, Node};
use muster_core::wad::WAD;
use muster_protocol::abi::IMuster::*;
use muster_protocol::store::node::NodeHandle;
use muster_protocol::IMuster;

/// The node that works.
const NODE: u32 = 1;
/// The creator of the tasks that it works on.
const OTHERS: u64 = 90;
/// The adversary, as an application.
const ADVERSARY: u64 = 70;
/// Seconds of a block.
const BLOCK: u64 = 2;

/// When some of the adversary's nodes pause, at the end of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pauses {
    /// Never.
    Never,
    /// Each time.
    Always,
    /// Where its task is about to be drawn.
    Drawn,
    /// One time in so many.
    Some(u64),
}

/// How the adversary goes about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hold {
    /// Its nodes.
    pub own: u64,
    /// Their VRAM in GiB: 8, or the other's.
    pub vram: u16,
    /// The policy of its task, 2 or 3.
    pub policy: u8,
    /// Its offer for each node and second, in hundredths of the others' offer.
    pub offer: u128,
    /// Whether paused nodes resume at the beginning of a block.
    pub resumes: bool,
    /// When they pause.
    pub pauses: Pauses,
    /// Whether all of them do, or one.
    pub all: bool,
    /// Calls of `dispatch` in a block, at most.
    pub drives: u32,
}

impl Hold {
    /// One by chance.
    pub fn some(dice: &mut Dice) -> Hold {
        let pauses = [Pauses::Never, Pauses::Always, Pauses::Drawn, Pauses::Some(2), Pauses::Some(5)];
        Hold {
            own: 1 + dice.below(3),
            vram: [8, 24][dice.below(2) as usize],
            policy: 2 + dice.below(2) as u8,
            offer: [50, 101, 200][dice.below(3) as usize],
            resumes: dice.below(4) > 0,
            pauses: pauses[dice.below(5) as usize],
            all: dice.below(2) == 0,
            drives: 5 * dice.below(2) as u32,
        }
    }

    /// The plan in words.
    pub fn words(&self) -> String {
        let nodes = match self.own {
            1 => "a node".into(),
            own => format!("{own} nodes"),
        };
        let pause = if self.all { "all of them pause" } else { "one of them pauses" };
        let pauses = match self.pauses {
            Pauses::Never => "nobody pauses".into(),
            Pauses::Always => format!("{pause} in each block"),
            Pauses::Drawn => format!("{pause} where the task is about to be drawn"),
            Pauses::Some(blocks) => format!("{pause} in one block of {blocks}"),
        };
        let mut words = format!(
            "{nodes} of {} GiB, a task of policy {} for {}.{:02} times the others' offer, {pauses}",
            self.vram,
            self.policy,
            self.offer / 100,
            self.offer % 100
        );
        if self.resumes {
            words.push_str(", resumes");
        }
        if self.drives > 0 {
            words.push_str(", drives");
        }
        words
    }
}

/// The results.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Held {
    /// Tasks that the node did for others.
    pub done: u64,
    /// Seconds for which it was reserved.
    pub reserved: u64,
    /// The adversary's calls.
    pub calls: u64,
    /// Their gas: storage, logs and their start.
    pub gas: u64,
    /// Seconds until its task began, which ends it, or all of them.
    pub lasted: u64,
}

impl Held {
    /// The share of its work that the node could not do, of its undisturbed work; once the adversary's task has begun it is undisturbed.
    pub fn lost(&self, undisturbed: &Held) -> f64 {
        1.0 - self.done as f64 / (undisturbed.done as f64 * self.lasted as f64 / undisturbed.lasted as f64).max(1.0)
    }

    /// That, as hours of the node's time.
    pub fn hours(&self, undisturbed: &Held) -> f64 {
        self.lost(undisturbed).max(0.0) * self.lasted as f64 / 3_600.0
    }
}

struct Stage {
    w: World,
    /// Whether reservations in vain are forgotten, as once.
    forgets: bool,
}

impl Stage {
    /// After a call.
    fn forget(&mut self) {
        if self.forgets {
            let seat = NodeHandle::load(&self.w.mem, NodeId(NODE));
            let assignment = seat.assignment(&self.w.mem);
            seat.set_assignment(&mut self.w.mem, &Assignment { vain: 0, ..assignment });
        }
    }

    fn call<C: alloy_sol_types::SolCall>(&mut self, from: u64, call: C) -> bool {
        let said = self.w.send(who(from), 0, call).is_ok();
        self.forget();
        said
    }

    /// A call of the adversary's, which counts.
    fn counted<C: alloy_sol_types::SolCall>(&mut self, found: &mut Held, from: u64, call: C) {
        let mut gas = 0;
        let done = self.w.raw(who(from), 0, |m| meter::answer(m, &call.abi_encode(), &mut gas));
        self.forget();
        found.calls += u64::from(done.is_ok());
        found.gas += gas;
    }

    fn parked(&self, node: u64) -> u8 {
        NodeHandle::load(&self.w.mem, NodeId(node as u32)).node.parked
    }

    fn status(&self, node: u64) -> u8 {
        NodeHandle::load(&self.w.mem, NodeId(node as u32)).node.status
    }
}

/// Tries so many plans by chance, under the old rule or today's; gives the one that kept the node from work for longest, and its result.
pub fn search(seed: u64, plans: u64, forgets: bool, seconds: u64) -> (Hold, Held) {
    let (mut dice, undisturbed) = (Dice(seed), hold(None, false, seconds));
    let played = (0..plans).map(|_| Hold::some(&mut dice)).map(|plan| (plan, hold(Some(&plan), forgets, seconds)));
    let best = played.max_by(|(_, a), (_, b)| a.hours(&undisturbed).total_cmp(&b.hours(&undisturbed)));
    best.expect("one was played")
}

/// Plays so many seconds; without a plan nobody disturbs the node. `forgets` puts the rule of old back, by which a reservation in vain counted
/// for nothing.
pub fn hold(plan: Option<&Hold>, forgets: bool, seconds: u64) -> Held {
    const AVAILABLE: u8 = 1;
    const PAUSED: u8 = 5;
    let mut w = World::new();
    w.set("alphaMilli", 10_000);
    w.join(u64::from(NODE), "RTX 4090", 24, &[], 400).expect("joins");
    let own: Vec<u64> = (2..2 + plan.map_or(0, |plan| plan.own)).collect();
    for &n in &own {
        w.join(n, "another", plan.map_or(8, |plan| plan.vram), &[], 400).expect("joins");
    }
    let profile =
        Profile { algorithm: 0, least: 3, most: 3, reschedules: 0, targeting: 2, target: WAD, alpha: WAD / 2, period: 300 };
    w.send(who(ADVERSARY), 0, setProfileCall { profile }).expect("no draw is due");
    let work = || IMuster::TaskSpec { gpu: CARD, ..spec(0, &[]) };
    w.create(OTHERS, TOKEN, work()).expect("created");
    w.pass(2, 2);
    w.dispatch(16).expect("drawn");
    let mut s = Stage { w, forgets };
    let (start, mut dice, mut found) = (s.w.mem.now, Dice(5), Held::default());
    let task = plan.and_then(|plan| {
        let fee = 3 * (TOKEN * plan.offer / 100) * 50 / 60;
        let wanted = IMuster::TaskSpec { kind: 0, vram: 8, redundancy: plan.policy, ..spec(0, &[]) };
        s.w.create(ADVERSARY, fee, wanted).ok()
    });
    while s.w.mem.now < start + seconds {
        s.w.pass(1, BLOCK);
        if let (Some(plan), Some(_)) = (plan, task) {
            for &n in &own {
                if plan.resumes && s.status(n) == PAUSED {
                    s.counted(&mut found, n, resumeCall {});
                }
            }
            for _ in 0..plan.drives {
                if own.iter().all(|&n| s.parked(n) != Node::SET_BACK) {
                    break;
                }
                s.counted(&mut found, ADVERSARY, dispatchCall { count: 1 });
            }
        }
        // Its operator wants it back, and others have work for it.
        s.call(NODE.into(), pokeCall { node: NODE });
        while s.w.ask(overviewCall {}).queued < 4 && s.w.ask(overviewCall {}).pending == 0 {
            if s.w.create(OTHERS, TOKEN, work()).is_err() {
                break;
            }
            s.forget();
        }
        let view = s.w.ask(runningTaskCall { number: NODE });
        if Some(view.id) == task && view.status != 0 {
            // It has begun, and is paid for.
            break;
        }
        if view.status == 3 && s.w.mem.now + 60 >= view.deadline {
            found.done += u64::from(s.call(NODE.into(), submitCall { id: view.id, resultDigest: crate::validated::value(1) }));
        }
        if let (Some(plan), Some(id)) = (plan, task) {
            let pause = match plan.pauses {
                Pauses::Never => false,
                Pauses::Always => true,
                Pauses::Drawn => s.w.ask(locateCall { id, nodeHint: 0, ticketHint: 0 }).status == 1,
                Pauses::Some(n) => dice.below(n) == 0,
            };
            let idle: Vec<u64> = own.iter().copied().filter(|&n| s.status(n) == AVAILABLE && s.parked(n) == 0).collect();
            for &n in idle.iter().take(if !pause {
                0
            } else if plan.all {
                own.len()
            } else {
                1
            }) {
                s.counted(&mut found, n, pauseCall {});
            }
        }
        found.reserved += BLOCK * u64::from(s.parked(NODE.into()) == Node::RESERVED);
        s.w.events();
    }
    found.lasted = s.w.mem.now - start;
    found
}
