//! The cost that strangers can add to innocent calls while tasks of all grades are queued. They have tasks queued for 256 sizes of VRAM and
//! for every GPU they named, up to the queue's capacity. Others are due, for the next caller to draw.

use crate::answer::{commitment, revealing};
use crate::measure::{spec, Bench, GPU, VRAM};
use crate::world::{Done, TOKEN};
use anyhow::{bail, ensure, Context, Result};
use muster_core::record::CALL_MODELS;
use muster_protocol::IMuster::*;
use serde::{Deserialize, Serialize};

/// An innocent call among strangers.
#[derive(Clone, Serialize, Deserialize, PartialEq, Eq, Debug)]
pub struct Innocent {
    /// Which.
    pub operation: String,
    /// Whether it is one of validation.
    pub validating: bool,
    /// Its gas, programs not cached, with nothing due.
    pub alone: u64,
    /// The most it cost, with any backlog.
    pub most: u64,
    /// The draws that were due then.
    pub due: String,
}

/// Sizes of VRAM that tasks are queued for, and the least of them.
const SIZES: (u16, u16) = (256, VRAM + 1);
/// VRAM of the innocent nodes: any of the tasks can run there.
const LARGE: u16 = 300;
/// Innocent nodes, and those of them that are paused.
const INNOCENT: (usize, usize) = (24, 2);
/// Strangers' paused nodes, each of a GPU of its own, and their idle ones.
const STRANGERS: (u32, u64) = (10_000, 384);
/// The pay of each node in a validated task.
const PART: u128 = 6 * TOKEN;

/// Eight models that no node holds any more, of those that strangers had.
fn dropped(set: u64) -> Vec<u64> {
    (1..=8).map(|k| set % 3 * 8 + k).collect()
}

/// Tasks that are due when the innocent call comes.
struct Backlog {
    name: &'static str,
    tasks: Vec<TaskSpec>,
    /// Whether validators are due to be drawn for a stranger's task.
    call: bool,
}

fn backlogs() -> Vec<Backlog> {
    let of = |kind, redundancy, vram| TaskSpec { kind, redundancy, vram, ..spec(&dropped(0)) };
    let (near, far) = (VRAM, SIZES.1);
    let due = |name, tasks| Backlog { name, tasks, call: false };
    vec![
        due("nothing", vec![]),
        due("two tasks of 8 models", vec![of(0, 0, near); 2]),
        due("one for three nodes", vec![of(0, 2, near)]),
        due("one for three nodes, one of 8 models", vec![of(0, 2, near), of(0, 0, near)]),
        due("two for three nodes", vec![of(0, 2, near); 2]),
        due("two that are queued, evicting two", vec![of(0, 0, far); 2]),
        due("eight that are queued, evicting eight", vec![of(0, 0, far); 8]),
        due("eight for three nodes that are queued, evicting eight", vec![of(1, 2, far); 8]),
        Backlog { name: "validators of an image", tasks: vec![], call: true },
        Backlog { name: "validators of an image, one task of 8 models", tasks: vec![of(0, 0, near)], call: true },
    ]
}

/// The network, and its people.
pub struct Crowd {
    b: Bench,
    /// The innocent nodes' single tasks.
    running: Vec<TaskStarted>,
    paused: Vec<u32>,
    /// A sampled task of theirs that is sampled, and one that is not.
    sampled: TaskStarted,
    unsampled: TaskStarted,
    /// A stranger's that is sampled.
    strange: TaskStarted,
    /// The first of two groups of the same three nodes, which both hold.
    held: [GroupFormed; 2],
    seen: Vec<Innocent>,
    /// Hashes that each backlog is drawn from.
    hashes: u64,
}

impl Crowd {
    fn gather(hashes: u64) -> Result<Crowd> {
        let mut b = Bench::new()?;
        // As many tasks as nodes fill the queue.
        b.world.set("alphaMilli", 1_000)?;
        b.world.leave_chain();
        let mut group = 0;
        for _ in 0..INNOCENT.0 {
            group = b.join("Innocent", LARGE, &[], 400)?.0.group;
        }
        b.world.owner_calls(listGpuGroupCall { group, listed: true })?;
        let held = held(&mut b)?;
        let paused = (1..=INNOCENT.1 as u32).collect::<Vec<_>>();
        paused.iter().try_for_each(|&node| b.operator(node, pauseCall {}).map(drop))?;
        let compared = TaskSpec { kind: 1, redundancy: 1, gpu: group, ..spec(&dropped(0)) };
        let sampled = sampled_at(&b, 10_000, &compared)?;
        let unsampled = sampled_at(&b, 1, &compared)?;
        // The call that ends a task writes the receipt that its creator asked for.
        let single = TaskSpec { gpu: group, flags: 1, ..spec(&[]) };
        let left = 0..INNOCENT.0 - INNOCENT.1 - 2;
        let running = left.map(|_| Ok(b.run(TOKEN, single.clone())?.0)).collect::<Result<_>>()?;
        let named = strangers(&mut b)?;
        let strange = sampled_at(&b, 10_000, &TaskSpec { redundancy: 1, ..spec(&dropped(0)) })?;
        fill(&b, group, &named)?;
        b.world.return_to_chain()?;
        let crowd = Crowd { b, running, paused, sampled, unsampled, strange, held, seen: Vec::new(), hashes };
        crowd.commit(&crowd.strange)?;
        crowd.b.world.blocks(3)?;
        Ok(crowd)
    }
}

/// Runs a task that can be validated, sampled with this probability.
fn sampled_at(b: &Bench, bps: u64, spec: &TaskSpec) -> Result<TaskStarted> {
    b.world.set("sampleBps", bps)?;
    Ok(b.run(PART, spec.clone())?.0)
}

/// Has nodes commit to the answers of scored groups until all three of two are held; gives a group of which two answer the same, and one
/// of which all differ.
fn held(b: &mut Bench) -> Result<[GroupFormed; 2]> {
    let mut group = 0;
    // While fewer than two thirds are held, as many are idle as a group needs to be scored.
    for _ in 0..30 {
        group = b.join("Held", LARGE, &[], 400)?.0.group;
    }
    b.world.owner_calls(listGpuGroupCall { group, listed: true })?;
    let wanted = TaskSpec { kind: 1, redundancy: 2, gpu: group, ..spec(&[]) };
    let mut groups: Vec<GroupFormed> = Vec::new();
    for answers in [[1, 1, 2], [1, 2, 3]].into_iter().cycle().take(20) {
        b.create(3 * PART, wanted.clone())?;
        let formed = loop {
            if let Some(formed) = b.dispatch(1)?.events::<GroupFormed>().pop() {
                break formed;
            }
        };
        for (&node, answer) in formed.nodes.iter().zip(answers) {
            b.operator(node, commitCall { id: formed.id, commitment: commitment(formed.id, node, answer) })?;
        }
        groups.push(formed);
        let is_held = |&node: &u32| b.world.view(nodeCall { number: node }).is_ok_and(|node| node.held);
        let found = |from: usize| groups.iter().skip(from).step_by(2).find(|group| group.nodes.iter().all(is_held));
        if let (Some(two), Some(none)) = (found(0), found(1)) {
            return Ok([two.clone(), none.clone()]);
        }
    }
    bail!("no two groups of which all are held")
}

/// Lets strangers join. One node for each of ten thousand GPU names is paused, so that nobody takes the tasks queued for it. Idle ones held
/// the models which tasks ask for and dropped them, with the entry in the last of six words. Gives the groups.
fn strangers(b: &mut Bench) -> Result<Vec<u32>> {
    let mut named = Vec::new();
    for i in 0..STRANGERS.0 {
        let (joined, _) = b.join(&format!("{i:064}"), SIZES.1 + (i % u32::from(SIZES.0)) as u16, &[], 400)?;
        b.operator(joined.node, pauseCall {})?;
        named.push(joined.group);
    }
    for i in 0..STRANGERS.1 {
        let own: Vec<u64> = (1..32).map(|k| 1 << 33 | i << 8 | k).chain([1 + i % 24]).collect();
        let (joined, _) = b.join(GPU, VRAM, &own[..CALL_MODELS], 400)?;
        for models in own[CALL_MODELS..].chunks(CALL_MODELS) {
            b.operator(joined.node, reportDownloadedCall { models: models.to_vec() })?;
        }
        b.operator(joined.node, reportRemovedCall { models: vec![1 + i % 24] })?;
    }
    Ok(named)
}

/// Fills the queue: tasks of all grades for every size and for the innocent nodes' group, those for three worth more than single ones, and
/// single ones for the GPUs that strangers named, worth least.
fn fill(b: &Bench, group: u32, named: &[u32]) -> Result<()> {
    let sizes = (0..SIZES.0).map(|i| (SIZES.1 + i, 0));
    for (i, (vram, gpu)) in sizes.chain([(LARGE, group)]).enumerate() {
        for (kind, redundancy) in [(0, 0), (0, 2), (1, 2)] {
            let fee = (TOKEN + i as u128) * if redundancy > 0 { 6 } else { 1 };
            b.create(fee, TaskSpec { kind, redundancy, vram, gpu, ..spec(&dropped(i as u64)) })?;
        }
    }
    for (i, &gpu) in named.iter().cycle().enumerate() {
        let view = b.world.view(overviewCall {})?;
        if view.queued + view.pending >= view.queueCapacity {
            break;
        }
        b.create(TOKEN / 2 + i as u128, TaskSpec { gpu, ..spec(&[]) })?;
    }
    while b.world.view(overviewCall {})?.pending > 0 {
        b.dispatch(16)?;
    }
    let view = b.world.view(overviewCall {})?;
    ensure!(view.queued == view.queueCapacity, "{} tasks are queued where {} can be", view.queued, view.queueCapacity);
    Ok(())
}

fn any(_: &Done) -> bool {
    true
}

/// Whether a call lets a node wait for others.
fn waits(done: &Done) -> bool {
    done.events::<NodeWaits>().iter().any(|event| event.until > 0)
}

/// Whether a call reserves three nodes.
fn reserves(done: &Done) -> bool {
    reserved(done) == 3
}

/// Whether a call reserves nine nodes.
fn reserves_nine(done: &Done) -> bool {
    reserved(done) == 9
}

fn reserved(done: &Done) -> usize {
    done.events::<NodeWaits>().iter().filter(|event| event.until == 0).count()
}

/// Whether a call judges a group, and slashes so many.
fn judges(done: &Done, slashed: usize) -> bool {
    done.events::<MemberJudged>().len() == 3 && done.events::<NodeSlashed>().len() == slashed
}

impl Crowd {
    /// Ends an innocent node's single task.
    fn free(&self, i: usize) -> Result<Done> {
        let task = &self.running[i];
        self.b.submit(task.node, task.id)
    }

    /// Lets nodes wait for others.
    fn wait(&self, which: std::ops::Range<usize>) -> Result<()> {
        for i in which {
            ensure!(self.free(i)?.events::<NodeWaits>().len() == 1, "a freed node does not wait");
        }
        Ok(())
    }

    /// Has a task for nine of the innocent nodes queued, worth more than all others, and lets eight wait for the ninth.
    fn wait_for_nine(&self, which: std::ops::Range<usize>) -> Result<()> {
        let wad = 1_000_000_000_000_000_000;
        let profile = Profile {
            algorithm: 0,
            least: 9,
            most: 9,
            reschedules: 0,
            targeting: 2,
            target: wad / 2,
            alpha: wad / 2,
            period: 300,
        };
        self.b.world.call(self.b.creator, 0, setProfileCall { profile })?;
        let gpu = self.b.world.view(nodeCall { number: self.sampled.node })?.gpu;
        self.b.create(9 * PART, TaskSpec { kind: 1, redundancy: 3, vram: LARGE, gpu, ..spec(&dropped(1)[..6]) })?;
        while self.b.world.view(overviewCall {})?.pending > 0 {
            self.b.dispatch(1)?;
        }
        self.wait(which)
    }

    fn commit(&self, task: &TaskStarted) -> Result<Done> {
        self.b.operator(task.node, commitCall { id: task.id, commitment: commitment(task.id, task.node, 1) })
    }

    fn reveal(&self, group: &GroupFormed, member: usize, answer: u8) -> Result<Done> {
        let node = group.nodes[member];
        self.b.operator(node, revealing(group.id, group.group, node, answer))
    }

    /// Reveals the same answer of all members but the last.
    fn reveal_all_but_the_last(&self, group: &GroupFormed) -> Result<()> {
        for member in 0..group.nodes.len() - 1 {
            self.reveal(group, member, 1)?;
        }
        Ok(())
    }

    /// Has validators called for a sampled task whose node has committed.
    fn call(&self, task: &TaskStarted) -> Result<Done> {
        self.b.world.call(self.b.creator, 0, validateCall { id: task.id, node: task.node })
    }

    /// Forms a group around the innocent sampled task, whose validators have single tasks.
    fn form(&self) -> Result<GroupFormed> {
        self.commit(&self.sampled)?;
        self.b.world.blocks(3)?;
        for later in 0..100 {
            let before = self.b.world.snapshot();
            self.b.world.blocks(later)?;
            self.call(&self.sampled)?;
            self.b.world.blocks(3)?;
            let done = self.b.world.call(self.b.creator, 0, formGroupCall {})?;
            if let Some(formed) = done.events::<GroupFormed>().pop() {
                let busy = |node: &u32| self.running.iter().any(|task| task.node == *node);
                if formed.scored && formed.nodes.len() == 3 && formed.nodes[1..].iter().all(busy) {
                    return Ok(formed);
                }
            }
            // Another block, another hash.
            self.b.world.revert(before);
        }
        anyhow::bail!("no group of nodes with single tasks was formed")
    }

    /// Ends the single task of a node that was called to a group, which begins there.
    fn begin(&self, group: &GroupFormed, member: usize) -> Result<Done> {
        let task = self.running.iter().find(|task| task.node == group.nodes[member]).context("its task")?;
        self.b.submit(task.node, task.id)
    }

    /// Lets a member commit.
    fn answer(&self, group: &GroupFormed, member: usize, answer: u8) -> Result<Done> {
        let node = group.nodes[member];
        self.b.operator(node, commitCall { id: group.id, commitment: commitment(group.id, node, answer) })
    }

    /// Lets another node wait beside a group's first, which has waited since the group was formed.
    fn wait_beside(&self, group: &GroupFormed) -> Result<()> {
        let beside = (0..self.running.len()).find(|&i| !group.nodes.contains(&self.running[i].node));
        let i = beside.context("all nodes are in the group")?;
        self.wait(i..i + 1)
    }

    /// Lets strangers' tasks become due.
    fn lay(&self, backlog: &Backlog) -> Result<()> {
        if backlog.call {
            self.call(&self.strange)?;
            // In the next block it is not due yet, so that a creation there serves nothing.
            self.b.world.blocks(1)?;
        }
        if backlog.tasks.is_empty() {
            return self.b.world.blocks(1);
        }
        let pending = || Ok::<_, anyhow::Error>(self.b.world.view(overviewCall {})?.pending as usize);
        let before = pending()?;
        // In one call, so that those wait for their draws too that nobody idle could run.
        let fees = vec![2 * PART; backlog.tasks.len()];
        let tasks = createTasksCall { specs: backlog.tasks.clone(), fees: fees.clone(), atomic: true };
        self.b.world.call(self.b.creator, fees.iter().sum(), tasks)?;
        ensure!(pending()? == before + fees.len(), "not all tasks became Pending");
        self.b.world.blocks(1)
    }

    /// Makes a call with each backlog and notes the most expensive; `shows` says whether it did what its name says, where nothing is due.
    fn act<T>(
        &mut self,
        operation: &str,
        validating: bool,
        shows: fn(&Done) -> bool,
        prepare: impl Fn(&mut Crowd) -> Result<T>,
        call: impl Fn(&mut Crowd, &T) -> Result<Done>,
    ) -> Result<()> {
        self.act_among(&backlogs(), operation, validating, shows, prepare, call)
    }

    fn act_among<T>(
        &mut self,
        backlogs: &[Backlog],
        operation: &str,
        validating: bool,
        shows: fn(&Done) -> bool,
        prepare: impl Fn(&mut Crowd) -> Result<T>,
        call: impl Fn(&mut Crowd, &T) -> Result<Done>,
    ) -> Result<()> {
        let before = self.b.world.snapshot();
        let ready = prepare(self).context(operation.to_string())?;
        let mut seen = Innocent { operation: operation.into(), validating, alone: 0, most: 0, due: String::new() };
        let hashes = self.hashes;
        for (backlog, hash) in backlogs.iter().flat_map(|backlog| (0..hashes).map(move |hash| (backlog, hash))) {
            let laid = self.b.world.snapshot();
            // Another block, another hash.
            self.b.world.blocks(hash)?;
            self.lay(backlog).with_context(|| format!("{operation}: {}", backlog.name))?;
            let operators = self.b.joined;
            match call(self, &ready) {
                Ok(done) => {
                    if seen.alone == 0 {
                        ensure!(shows(&done), "{operation}: it did something else");
                        seen.alone = done.gas();
                    }
                    if done.gas() > seen.most {
                        (seen.most, seen.due) = (done.gas(), backlog.name.into());
                    }
                }
                // More draws are due than a call must make; another call goes on.
                Err(refusal) if seen.alone > 0 && refusal.to_string().contains("DrawsDue") => {}
                Err(other) => return Err(other.context(format!("{operation}: {}", backlog.name))),
            }
            self.b.joined = operators;
            self.b.world.revert(laid);
        }
        self.seen.push(seen);
        self.b.world.revert(before);
        Ok(())
    }

    /// The calls of applications and nodes.
    fn ordinary(&mut self) -> Result<()> {
        let none = |_: &mut Crowd| Ok(());
        self.act("dispatch one", false, any, none, |c, ()| c.b.dispatch(1))?;
        let large = TaskSpec { vram: LARGE, ..spec(&dropped(1)) };
        self.act(
            "create a task of 8 models",
            false,
            |done| done.events::<TaskCreated>().len() == 1,
            none,
            |c, ()| c.b.create(PART, large.clone()),
        )?;
        let (specs, fees) = (vec![TaskSpec { models: vec![1], ..large.clone() }; 16], vec![PART; 16]);
        self.act(
            "create 16 tasks",
            false,
            |done| done.events::<TaskCreated>().len() == 16,
            none,
            |c, ()| {
                c.b.world.call(c.b.creator, 16 * PART, createTasksCall { specs: specs.clone(), fees: fees.clone(), atomic: true })
            },
        )?;
        self.act("submit, and wait for others", false, waits, none, |c, ()| c.free(0))?;
        self.act("submit, and be reserved with two who wait", false, reserves, |c| c.wait(1..3), |c, ()| c.free(0))?;
        let nine = |c: &mut Crowd| c.wait_for_nine(1..9);
        self.act("submit, and be reserved with eight who wait", false, reserves_nine, nine, |c, ()| c.free(0))?;
        let dear = |c: &mut Crowd| {
            c.b.create(4 * PART, large.clone())?;
            while c.b.world.view(overviewCall {})?.pending > 0 {
                c.b.dispatch(1)?;
            }
            Ok(())
        };
        self.act("submit, and start a single task of 8 models", false, |done| done.started().is_some(), dear, |c, ()| c.free(0))?;
        self.act("report an error", false, any, none, |c, ()| {
            let task = &c.running[0];
            c.b.operator(task.node, reportErrorCall { id: task.id, code: 3 })
        })?;
        self.act(
            "expire",
            false,
            waits,
            |c| c.b.world.pass(101),
            |c, ()| {
                let task = &c.running[0];
                // An account that has never had a credit has a word written for the first time.
                c.b.world.call(c.b.world.account(b'o', 0), 0, expireCall { node: task.node, id: task.id })
            },
        )?;
        self.act(
            "poke a node that waited in vain",
            false,
            |done| done.started().is_some(),
            |c| c.wait(0..1),
            |c, ()| {
                c.b.world.pass(61)?;
                c.b.world.call(c.b.creator, 0, pokeCall { node: c.running[0].node })
            },
        )?;
        let resume = |c: &mut Crowd, (): &()| c.b.operator(c.paused[0], resumeCall {});
        self.act("resume, and wait for others", false, waits, none, resume)?;
        self.act("resume, and be reserved with two who wait", false, reserves, |c| c.wait(0..2), resume)?;
        self.act(
            "join with 10 models, and be reserved with two who wait",
            false,
            reserves,
            |c| c.wait(0..2),
            |c, ()| Ok(c.b.join("Innocent", LARGE, &(1..=10).collect::<Vec<_>>(), 400)?.1),
        )
    }

    /// The calls of validation.
    fn validating(&mut self) -> Result<()> {
        self.act("commit, a task that may be sampled", true, any, |_| Ok(()), |c, ()| c.commit(&c.sampled))?;
        let unsampled = |c: &mut Crowd| {
            c.wait(0..2)?;
            c.commit(&c.unsampled)?;
            c.b.world.blocks(3)
        };
        self.act("reveal, not sampled: paid, released, and reserved with two who wait", true, reserves, unsampled, |c, ()| {
            let task = &c.unsampled;
            c.b.operator(task.node, revealing(task.id, 0, task.node, 1))
        })?;
        let unsampled = |c: &mut Crowd| {
            c.wait_for_nine(0..8)?;
            c.commit(&c.unsampled)?;
            c.b.world.blocks(3)
        };
        self.act(
            "reveal, not sampled: paid, released, and reserved with eight who wait",
            true,
            reserves_nine,
            unsampled,
            |c, ()| {
                let task = &c.unsampled;
                c.b.operator(task.node, revealing(task.id, 0, task.node, 1))
            },
        )?;
        let committed = |c: &mut Crowd| {
            c.commit(&c.sampled)?;
            c.b.world.blocks(3)
        };
        self.act("validate, a sampled task", true, any, committed, |c, ()| {
            c.b.operator(c.sampled.node, validateCall { id: c.sampled.id, node: c.sampled.node })
        })?;
        let called = |c: &mut Crowd| {
            c.wait(0..2)?;
            committed(c)?;
            c.call(&c.sampled)?;
            c.b.world.blocks(3)
        };
        // It draws nothing else, and does nothing where another draw comes first.
        self.act_among(&backlogs()[..1], "form a group, while two others wait", true, any, called, |c, ()| {
            c.b.operator(c.sampled.node, formGroupCall {})
        })?;
        let strange = |c: &mut Crowd| {
            c.call(&c.strange)?;
            c.b.world.blocks(3)
        };
        self.act_among(&backlogs()[..1], "form a stranger's group, for an image", true, any, strange, |c, ()| {
            c.b.world.call(c.b.creator, 0, formGroupCall {})
        })?;
        self.act(
            "submit, and begin in a group",
            true,
            |done| done.events::<MemberStarted>().len() == 1,
            |c| c.form(),
            |c, group| c.begin(group, 1),
        )?;
        let running = |c: &mut Crowd| -> Result<GroupFormed> {
            let group = c.form()?;
            c.begin(&group, 1)?;
            c.begin(&group, 2)?;
            Ok(group)
        };
        let last = |c: &mut Crowd| {
            let group = running(c)?;
            c.wait_beside(&group)?;
            Ok(group)
        };
        self.act("commit, a member: released, and reserved with two who wait", true, reserves, last, |c, group| {
            c.answer(group, 1, 1)
        })?;
        let last = |c: &mut Crowd| {
            let group = running(c)?;
            c.wait_for_nine(0..0)?;
            let others: Vec<usize> =
                (0..c.running.len()).filter(|&i| !group.nodes.contains(&c.running[i].node)).take(8).collect();
            others.into_iter().try_for_each(|i| c.wait(i..i + 1))?;
            Ok(group)
        };
        self.act("commit, a member: released, and reserved with eight who wait", true, reserves_nine, last, |c, group| {
            c.answer(group, 1, 1)
        })?;
        let revealed = |c: &mut Crowd| {
            let group = running(c)?;
            for member in [1, 2] {
                c.answer(&group, member, member as u8)?;
            }
            // The three that were free then are reserved for a draw, and while it is due nothing is judged.
            while c.b.world.view(overviewCall {})?.pending > 0 {
                c.b.dispatch(1)?;
            }
            c.reveal_all_but_the_last(&group)?;
            Ok(group)
        };
        self.act(
            "reveal in a group, the last: three judged, one slashed out",
            true,
            |done| judges(done, 1),
            revealed,
            |c, group| c.reveal(group, 2, 2),
        )?;
        let one_revealed = |c: &mut Crowd| {
            let group = c.held[0].clone();
            c.reveal(&group, 0, 1)?;
            Ok(group)
        };
        self.act(
            "reveal in a group, the second of two equal, who were held, and wait for others",
            true,
            waits,
            one_revealed,
            |c, group| c.reveal(group, 1, 1),
        )?;
        let two_revealed = |c: &mut Crowd| {
            let group = c.held[0].clone();
            c.reveal(&group, 2, 2)?;
            c.reveal(&group, 0, 1)?;
            Ok(group)
        };
        self.act(
            "reveal in a group, the last: three judged, who were held; two wait for others, one is slashed out",
            true,
            |done| judges(done, 1) && waits(done),
            two_revealed,
            |c, group| c.reveal(group, 1, 1),
        )?;
        let all_differ = |c: &mut Crowd| {
            let group = c.held[1].clone();
            c.reveal(&group, 0, 1)?;
            c.reveal(&group, 1, 2)?;
            Ok(group)
        };
        self.act(
            "reveal in a group, the last: three judged, who were held, and find work",
            true,
            |done| judges(done, 0) && reserves(done),
            all_differ,
            |c, group| c.reveal(group, 2, 3),
        )?;
        let late = |c: &mut Crowd| {
            let group = running(c)?;
            c.b.world.pass(10_000)?;
            Ok(group)
        };
        self.act(
            "settle: one withheld and is slashed, two are late, and find work",
            true,
            |done| judges(done, 1) && waits(done),
            late,
            |c, group| c.b.world.call(c.b.creator, 0, settleCall { id: group.id, group: group.group }),
        )
    }

    /// Makes all calls, each backlog drawn from so many hashes; gives how many GPU names strangers made known, and the calls.
    pub fn calls(hashes: u64, step: impl Fn(&str)) -> Result<(u32, Vec<Innocent>)> {
        step("gathering a crowd");
        let mut crowd = Crowd::gather(hashes)?;
        step("innocent calls in a crowd");
        crowd.ordinary()?;
        crowd.validating()?;
        Ok((STRANGERS.0, crowd.seen))
    }
}
