//! The task queue (the dispatch document): groups by VRAM ("Any") and by GPU group, each a pool; a bracket over
//! the heads of the "Any" groups, so that a freed node finds its best task in a few words; a
//! bracket over the worst of every group, so that the lowest value of all is found as quickly.

use crate::bracket::{height, Bracket, NONE};
use crate::host::{Host, Task};
use crate::layout::{entry, slot, ENTRIES, QUEUE, QUEUE_GROUPS};
use crate::pool::{self, PARKING};
use muster_core::id::{GpuGroup, Ticket};
use muster_core::record::{Pool, Queue};
use muster_core::value::value_of_key;
use muster_core::word::Word;

/// Levels of the bracket over VRAM sizes: 4^5 = 1,024 sizes.
const SIZE_LEVELS: u32 = 5;

/// The slot of a queued task.
pub fn entry_slot<H: Host>(host: &H, ticket: Ticket) -> Word {
    entry(host, ENTRIES, ticket.0)
}

/// Queues a task under its key.
pub fn insert<H: Host>(host: &mut H, task: &Task, key: u64) -> Ticket {
    let group = task.order.group;
    let mut p = pool::load(host, group);
    let before = p;
    if p.index == 0 {
        let mut q: Queue = host.get(slot(QUEUE));
        let old = height(q.groups);
        q.groups += 1;
        p.index = q.groups;
        if q.groups > 1 && height(q.groups) > old {
            Bracket::GROUPS.grow(host, old, q.worst);
        }
        host.put(slot(QUEUE), &q);
        let names = entry(host, QUEUE_GROUPS, (q.groups - 1) as u64 / 8);
        let mut w = host.load(names);
        w.set_lane32((q.groups - 1) & 7, group.0);
        host.store(names, w);
    }
    let place = pool::insert(host, group, &mut p, key);
    let ticket = Ticket::new(group, place);
    let at = entry_slot(host, ticket);
    task.store(host, at);
    settle(host, group, &before, &p);
    ticket
}

/// The task queued under a ticket, if there is one.
pub fn task_at<H: Host>(host: &H, ticket: Ticket) -> Option<Task> {
    let (group, place) = (ticket.group(), ticket.place());
    let queued = group != PARKING && pool::key_at(host, group, &pool::load(host, group), place) > NONE;
    queued.then(|| Task::load(host, entry_slot(host, ticket)))
}

/// Takes a queued task out.
pub fn remove<H: Host>(host: &mut H, ticket: Ticket) -> Task {
    let group = ticket.group();
    let task = Task::load(host, entry_slot(host, ticket));
    let mut p = pool::load(host, group);
    let before = p;
    pool::remove(host, group, &mut p, ticket.place());
    settle(host, group, &before, &p);
    task
}

/// The best queued task for a node of a GPU group: the better head of its own GPU
/// group and of all "Any" groups up to its VRAM; the GPU group's on a tie.
pub fn best_for<H: Host>(host: &H, own: GpuGroup) -> Option<Ticket> {
    let mine = pool::load(host, own);
    let any = Bracket::SIZES.best_up_to(host, SIZE_LEVELS, own.vram() as u32);
    match any {
        Some((key, vram)) if mine.live == 0 || value_of_key(key) > value_of_key(mine.best) => {
            let group = GpuGroup::any(vram as u16);
            Some(Ticket::new(group, pool::best_place(host, group, &pool::load(host, group))))
        }
        _ if mine.live > 0 => Some(Ticket::new(own, pool::best_place(host, own, &mine))),
        _ => None,
    }
}

/// The lowest key of all queued tasks; none if nothing is queued.
pub fn worst<H: Host>(host: &H) -> Option<u64> {
    let q: Queue = host.get(slot(QUEUE));
    (q.worst > NONE).then_some(!q.worst)
}

/// The task with the lowest key; only while something is queued.
pub fn worst_ticket<H: Host>(host: &H) -> Ticket {
    let q: Queue = host.get(slot(QUEUE));
    let index = Bracket::GROUPS.descend(host, height(q.groups), 0, 0);
    let group = group_at(host, index);
    Ticket::new(group, pool::worst_place(host, group, &pool::load(host, group)))
}

/// Queues ever used.
pub fn groups<H: Host>(host: &H) -> u32 {
    host.get::<Queue>(slot(QUEUE)).groups
}

/// What the tasks of the `i`-th queue, in order of first use, require.
pub fn group_at<H: Host>(host: &H, i: u32) -> GpuGroup {
    GpuGroup(host.load(entry(host, QUEUE_GROUPS, i as u64 / 8)).lane32(i & 7))
}

/// Stores a pool and carries a changed head or tail up.
fn settle<H: Host>(host: &mut H, group: GpuGroup, before: &Pool, after: &Pool) {
    pool::store(host, group, after);
    if group.is_any() && before.best != after.best {
        Bracket::SIZES.set(host, 0, SIZE_LEVELS, group.0, after.best.max(NONE));
    }
    if before.worst != after.worst {
        let key = if after.live == 0 { NONE } else { !after.worst };
        let mut q: Queue = host.get(slot(QUEUE));
        if let Some(worst) = Bracket::GROUPS.set(host, 0, height(q.groups), after.index - 1, key) {
            q.worst = worst;
            host.put(slot(QUEUE), &q);
        }
    }
}
