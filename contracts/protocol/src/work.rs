//! Work for a node that becomes available while tasks are queued that take several (the earlier dispatch documents, "Select the
//! Best Task"): it starts what it can do alone, or is kept for a draw of several, or waits for others.

use crate::abi::{emit, IMuster::NodeWaits};
use crate::host::{offset, Host};
use crate::layout::{entry, slot, LIMITS, WAITING};
use crate::network::Network;
use crate::queue::{self, Best};
use crate::registry;
use crate::roster::Seat;
use crate::sampler::{self, Among, Counts, Field};
use alloc::vec::Vec;
use muster_core::id::{GpuGroup, Grade, NodeId};
use muster_core::record::*;

/// Nodes that a task for three takes beside one.
const OTHERS: u32 = MEMBERS as u32 - 1;
/// A node waits, or is reserved, in vain at most one part in so many of its time.
const PATIENCE: u64 = 10;
/// What a reservation in vain is taken to have lasted, in seconds.
const RESERVED_FOR: u64 = 60;

impl<H: Host> Network<'_, H> {
    /// Finds queued work for a node that stands nowhere. What it could do alone it begins. If a task for several is worth more, that goes
    /// to the ring of Pending tasks, to be drawn by a later hash, with the node among its candidates; or the node waits for others, if it
    /// `may_wait`. Gives whether there was anything, else nothing has changed.
    pub fn find_work(&mut self, node: NodeId, may_wait: bool) -> bool {
        let seat = Seat::load(self.host, node);
        let own = seat.node.group;
        let alike = registry::listed(self.host, own);
        let single = queue::best_single(self.host, own);
        let room = !self.ring.is_full();
        let worth = |best: &Best| room && best.above(single);
        let several = queue::best_replicated(self.host, own, alike, true, Some(own.vram()));
        let rated = queue::best_rated(self.host, own);
        if let Some(best) = queue::better(several, rated).filter(worth) {
            let others = self.others_of(&best);
            let together = best.queue.grade() == Grade::Alike as u8 && best.queue.group().is_any();
            // Nodes that have to be of one GPU group wait for each other, and not in the way of others'.
            let scope = if together { own } else { best.queue.group() };
            let list = entry(self.host, WAITING, (scope.0 as u64) << 32 | best.queue.0 as u64);
            let listed: Reserved = self.host.get(list);
            let there = |seat: &Seat| {
                let waits = seat.node.parked == Node::WAITS && seat.duty(self.host).queue == best.queue;
                // One that has left since can have come back with another GPU.
                waits && (!together || seat.node.group == own)
            };
            let seats = listed.all().into_iter().filter(|other| other.0 > 0).map(|other| Seat::load(self.host, other));
            let waiting: Vec<Seat> = seats.filter(there).collect();
            let idle = |net: &Self, scope: GpuGroup, most| Field::new(net.host, Among::Idle, scope.into()).count(net.host, most);
            let short = others.saturating_sub(waiting.len() as u32);
            let hold = self.host.get::<Limits>(slot(LIMITS)).hold_time as u64;
            let duty = seat.duty(self.host);
            // Whoever keeps a task there that nobody can run takes no more than a tenth of their time from those who are reserved for it
            // with nodes that are gone at the draw, or who wait for it.
            let since = |moment: u32, lasted: u64| moment == 0 || self.now >= moment as u64 + (PATIENCE - 1) * lasted;
            let ready = since(duty.vain, RESERVED_FOR);
            let rested = ready && since(duty.until, hold);
            if short == 0 || ready && idle(self, scope, short) >= short {
                self.call_up(&best, waiting, seat);
                return true;
            }
            if may_wait && hold > 0 && rested {
                let nodes: Vec<NodeId> = waiting.iter().map(|seat| seat.id).chain([seat.id]).collect();
                self.host.put(list, &Reserved::of(&nodes));
                self.wait(&best, seat, duty, self.now + hold);
                return true;
            }
            let mates = Counts::load(self.host, Among::Idle, own).members() >= OTHERS;
            let vram = sampler::vram_of_idle(self.host, OTHERS).map(|vram| vram.min(own.vram()));
            let several = queue::best_replicated(self.host, own, alike, mates, vram);
            let there = |rated: &Best| {
                let others = self.others_of(rated);
                idle(self, rated.queue.group(), others) >= others
            };
            let rated = rated.filter(|rated| *rated != best && there(rated));
            if let Some(best) = queue::better(several, rated).filter(worth).filter(|_| ready) {
                self.call_up(&best, Vec::new(), seat);
                return true;
            }
        }
        single.is_some() && self.take_queued(node)
    }

    /// Nodes that the first task of a queue takes beside one.
    fn others_of(&self, best: &Best) -> u32 {
        if best.queue.grade() == Grade::Rated as u8 {
            self.first_of(best).nodes() - 1
        } else {
            OTHERS
        }
    }

    /// The first task of a queue.
    fn first_of(&self, best: &Best) -> Order {
        self.host.get(offset(queue::entry_slot(self.host, best.ticket(self.host)), 1))
    }

    /// Moves a queue's head to the ring of Pending tasks, these nodes reserved for it.
    fn call_up(&mut self, best: &Best, mut mates: Vec<Seat>, seat: Seat) {
        let task = self.dequeue(best.ticket(self.host));
        self.redraw(&task);
        mates.push(seat);
        for seat in &mut mates {
            if seat.node.parked == Node::WAITS {
                self.parking.take(self.host, seat.node.pos);
            }
            seat.node.parked = Node::RESERVED;
            seat.node.status = Status::Busy as u8;
            seat.put(self.host);
            let duty = seat.duty(self.host);
            seat.set_duty(self.host, &Duty { task: task.order.id, ..duty });
            emit::<NodeWaits>(self.host, (seat.id, task.order.id), (0u64,));
        }
        let nodes: Vec<NodeId> = mates.iter().map(|seat| seat.id).collect();
        self.ring.reserve(self.host, &Reserved::of(&nodes));
    }

    /// Lets a node wait with a queue's head until `until`.
    fn wait(&mut self, best: &Best, seat: Seat, duty: Duty, until: u64) {
        let id = self.first_of(best).id;
        seat.set_duty(self.host, &Duty { queue: best.queue, until: until as u32, ..duty });
        self.set_apart(seat, until, Node::WAITS);
        emit::<NodeWaits>(self.host, (seat.id, id), (until,));
    }
}
