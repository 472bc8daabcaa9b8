//! The task queue (the dispatch documents). Each [`Grade`] has a queue for each VRAM size (any GPU) and each GPU group; each queue is a
//! pool. For each grade, a tree over the heads of the queues for any GPU finds a freed node's best task in a few words. A tree over the
//! worst of every queue finds the lowest value of all as quickly.

use crate::host::Host;
use crate::store::layout::{entry, slot, ENTRIES, QUEUE, QUEUE_GROUPS};
use crate::store::pool::{self, SUSPENDED};
use crate::store::task::Task;
use crate::store::tournament::{greatest, height, TournamentTree, NONE};
use muster_core::id::{GpuGroup, Grade, QueueId, Ticket};
use muster_core::record::{Pool, Queue};
use muster_core::value::value_of_key;
use muster_core::word::Word;

/// Levels that the tree over VRAM sizes has from the start: 4^3 = 64 sizes. It grows to 5 at most, as larger ones are asked for.
const SIZE_LEVELS: u32 = 3;

/// The slot of a queued task.
pub fn entry_slot<H: Host>(host: &H, ticket: Ticket) -> Word {
    entry(host, ENTRIES, ticket.0)
}

/// Queues a task under its key.
pub fn insert<H: Host>(host: &mut H, task: &Task, key: u64) -> Ticket {
    let id = task.order.queue();
    let mut p = pool::load(host, id);
    let before = p;
    if p.index == 0 {
        let mut q: Queue = host.get(slot(QUEUE));
        let old = height(q.groups);
        q.groups += 1;
        p.index = q.groups;
        if q.groups > 1 && height(q.groups) > old {
            TournamentTree::GROUPS.grow(host, old, q.worst);
        }
        host.put(slot(QUEUE), &q);
        let names = entry(host, QUEUE_GROUPS, (q.groups - 1) as u64 / 8);
        let mut w = host.load(names);
        w.set_lane32((q.groups - 1) & 7, id.0);
        host.store(names, w);
    }
    let place = pool::insert(host, id, &mut p, key);
    let ticket = Ticket::new(id, place);
    let at = entry_slot(host, ticket);
    task.store(host, at);
    settle(host, id, &before, &p);
    ticket
}

/// The task queued under a ticket, if there is one.
pub fn task_at<H: Host>(host: &H, ticket: Ticket) -> Option<Task> {
    let (id, place) = (ticket.queue(), ticket.place());
    let queued = id != SUSPENDED && pool::key_at(host, id, &pool::load(host, id), place) > NONE;
    queued.then(|| Task::load(host, entry_slot(host, ticket)))
}

/// Takes a queued task out.
pub fn remove<H: Host>(host: &mut H, ticket: Ticket) -> Task {
    let id = ticket.queue();
    let task = Task::load(host, entry_slot(host, ticket));
    let mut p = pool::load(host, id);
    let before = p;
    pool::remove(host, id, &mut p, ticket.place());
    settle(host, id, &before, &p);
    task
}

/// Puts a task into the place of the one with the lowest key, while something is queued; gives that one and the newcomer's ticket.
pub fn replace_worst<H: Host>(host: &mut H, task: &Task, key: u64) -> (Task, Ticket) {
    let worst = worst_ticket(host);
    let id = worst.queue();
    if id != task.order.queue() {
        return (remove(host, worst), insert(host, task, key));
    }
    let at = entry_slot(host, worst);
    let former = Task::load(host, at);
    task.store(host, at);
    let mut p = pool::load(host, id);
    let before = p;
    pool::replace(host, id, &mut p, worst.place(), key);
    settle(host, id, &before, &p);
    (former, worst)
}

/// Whether tasks are queued that take several nodes.
pub fn graded<H: Host>(host: &H) -> bool {
    host.get::<Queue>(slot(QUEUE)).graded > 0
}

/// The head of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Best {
    /// The queue.
    pub queue: QueueId,
    key: u64,
}

impl Best {
    /// Its ticket.
    pub fn ticket<H: Host>(&self, host: &H) -> Ticket {
        Ticket::new(self.queue, pool::best_place(host, self.queue, &pool::load(host, self.queue)))
    }

    /// Whether its value is above another's.
    pub fn above(&self, other: Option<Best>) -> bool {
        other.is_none_or(|other| value_of_key(self.key) > value_of_key(other.key))
    }
}

/// The one of the higher value; of equal ones the first.
pub fn better(first: Option<Best>, second: Option<Best>) -> Option<Best> {
    second.filter(|second| second.above(first)).or(first)
}

/// The head of a grade's queue of a GPU group.
pub fn best_of_group<H: Host>(host: &H, grade: Grade, group: GpuGroup) -> Option<Best> {
    let queue = QueueId::new(group, grade);
    let p = pool::load(host, queue);
    (p.live > 0).then_some(Best { queue, key: p.best })
}

/// Levels of a grade's tree over VRAM sizes.
fn size_levels(q: &Queue, grade: u8) -> u32 {
    SIZE_LEVELS + (q.grown as u32 >> (2 * grade) & 3)
}

/// The best key of a grade's queues for any GPU up to a VRAM size, and the size.
fn best_up_to<H: Host>(host: &H, grade: Grade, vram: u16) -> Option<(u64, u32)> {
    let levels = size_levels(&host.get(slot(QUEUE)), grade as u8);
    TournamentTree::sizes(grade as u8).best_up_to(host, levels, (vram as u32).min((1 << (2 * levels)) - 1))
}

/// The best head of a grade's queues for any GPU up to a VRAM size.
pub fn best_of_sizes<H: Host>(host: &H, grade: Grade, vram: u16) -> Option<Best> {
    let best = best_up_to(host, grade, vram);
    best.map(|(key, vram)| Best { queue: QueueId::new(GpuGroup::any(vram as u16), grade), key })
}

/// The best queued task for a single node of a GPU group: the better of two heads, that of its own GPU group and that of all queues for any
/// GPU up to its VRAM. On a tie, the GPU group's.
pub fn best_single<H: Host>(host: &H, own: GpuGroup) -> Option<Best> {
    // `better` of the two, shorter: the largest program carries it.
    let queue = QueueId::new(own, Grade::Single);
    let mine = pool::load(host, queue);
    match best_up_to(host, Grade::Single, own.vram()) {
        Some((key, vram)) if mine.live == 0 || value_of_key(key) > value_of_key(mine.best) => {
            Some(Best { queue: QueueId(vram), key })
        }
        _ if mine.live > 0 => Some(Best { queue, key: mine.best }),
        _ => None,
    }
}

/// The best queued task for three nodes, one of them of this GPU group, whose nodes answer `alike` or not. `mates` says whether the others
/// can be of the same group. `vram` is how much VRAM they have otherwise, at most as much as the first; none if there are none. Where
/// values are equal, images come before answers that must be equal, and tasks that require the GPU group before those that require none.
pub fn best_replicated<H: Host>(host: &H, own: GpuGroup, alike: bool, mates: bool, vram: Option<u16>) -> Option<Best> {
    let of_group = |grade| if mates { best_of_group(host, grade, own) } else { None };
    let of_sizes = |grade, vram: Option<u16>| best_of_sizes(host, grade, vram?);
    let mixed = better(of_group(Grade::Mixed), of_sizes(Grade::Mixed, vram));
    let any = of_sizes(Grade::Alike, Some(own.vram()).filter(|_| alike && mates));
    better(better(mixed, of_group(Grade::Alike)), any)
}

/// The best queued task for several nodes chosen by their ratings, one of which is of this GPU group. On a tie, a task that requires the
/// group.
pub fn best_rated<H: Host>(host: &H, own: GpuGroup) -> Option<Best> {
    if host.get::<Queue>(slot(QUEUE)).rated == 0 {
        return None;
    }
    better(best_of_group(host, Grade::Rated, own), best_of_sizes(host, Grade::Rated, own.vram()))
}

/// The lowest key of all queued tasks; none if nothing is queued.
pub fn worst<H: Host>(host: &H) -> Option<u64> {
    let q: Queue = host.get(slot(QUEUE));
    (q.worst > NONE).then_some(!q.worst)
}

/// The task with the lowest key; only while something is queued.
pub fn worst_ticket<H: Host>(host: &H) -> Ticket {
    let q: Queue = host.get(slot(QUEUE));
    let index = TournamentTree::GROUPS.descend(host, height(q.groups), 0, 0);
    let id = queue_at(host, index);
    Ticket::new(id, pool::worst_place(host, id, &pool::load(host, id)))
}

/// Queues ever used.
pub fn queues<H: Host>(host: &H) -> u32 {
    host.get::<Queue>(slot(QUEUE)).groups
}

/// The `i`-th queue, in order of first use.
pub fn queue_at<H: Host>(host: &H, i: u32) -> QueueId {
    QueueId(host.load(entry(host, QUEUE_GROUPS, i as u64 / 8)).lane32(i & 7))
}

/// Stores a pool, counts tasks for several nodes, and carries a changed head or tail up.
fn settle<H: Host>(host: &mut H, id: QueueId, before: &Pool, after: &Pool) {
    pool::store(host, id, after);
    let (head, tail) = (id.group().is_any() && before.best != after.best, before.worst != after.worst);
    if !head && !tail && id.grade() == 0 {
        return;
    }
    let mut q: Queue = host.get(slot(QUEUE));
    if head {
        let (sizes, vram, levels) = (TournamentTree::sizes(id.grade()), id.group().0, size_levels(&q, id.grade()));
        let wanted = height(vram + 1);
        if wanted > levels {
            let top = greatest(sizes.word(host, levels - 1, 0)).max(NONE);
            sizes.set(host, levels, wanted, 0, top);
            q.grown += ((wanted - levels) as u8) << (2 * id.grade());
        }
        sizes.set(host, 0, wanted.max(levels), vram, after.best.max(NONE));
    }
    if id.grade() > 0 {
        q.graded = q.graded + after.live - before.live;
        if id.grade() == Grade::Rated as u8 {
            q.rated = q.rated + after.live - before.live;
        }
    }
    if tail {
        let key = if after.live == 0 { NONE } else { !after.worst };
        if let Some(worst) = TournamentTree::GROUPS.set(host, 0, height(q.groups), after.index - 1, key) {
            q.worst = worst;
        }
    }
    host.put(slot(QUEUE), &q);
}
