//! Policy 2: three nodes run a task at once.

use crate::flow::draw::{draw_several, Members, Rng, SEVERAL_READS};
use crate::flow::network::Network;
use crate::host::Host;
use crate::policy::group::{handle_drawn, reserved_fit};
use crate::policy::ruling::{Case, Ruling};
use crate::store::node::NodeHandle;
use crate::store::registry;
use crate::store::sampler::{Among, Counts, Field};
use crate::store::task::Task;
use alloc::vec::Vec;
use muster_core::id::GpuGroup;
use muster_core::record::{Order, MEMBERS};
use muster_core::validation::Pot;
use muster_core::word::Word;

/// The part of a draw's reads that is kept for the other two nodes where the first is drawn apart.
const OTHERS_READS: u32 = 64;
/// The part of these that is kept for all three nodes where the tries have met none, and listed groups were looked through.
const FOUND_READS: u32 = 24;

/// Whether its nodes can be found in any listed GPU group: where it requires none, and as they are drawn together.
pub(crate) fn finds_its_group(group: GpuGroup) -> bool {
    group.is_any()
}

/// Words that forming a group may have read if others are still to be asked for its models. With more, asking would make this draw more
/// expensive than any other that reads many words.
const SPREAD_ROOM: u32 = 96;

/// Draws the three nodes of the first Pending task, which takes so many, and forms their group; gives its place if there is room to ask others
/// for its models.
pub(crate) fn form_replicated<H: Host>(net: &mut Network<'_, H>, at: Word, order: &Order) -> u32 {
    let began = net.host.reads();
    let reserved = net.ring.reserved(net.host, at);
    let beside = reserved_fit(net, order, &reserved);
    let task = Task::load(net.host, at);
    let drawn = match net.host.block_hash(order.moment) {
        Some(hash) => net.draw_members(&task, &beside, &mut Rng::new(net.host, hash, order.id)),
        None => Members::Late,
    };
    let place = handle_drawn(net, at, &task, drawn, beside, &reserved);
    let room = task.models.len > 0 && net.host.reads().wrapping_sub(began) <= SPREAD_ROOM;
    place.filter(|_| room).unwrap_or(0)
}

impl<H: Host> Network<'_, H> {
    /// Draws the three nodes of a task, among the idle ones in its scope and those reserved for it. Where nodes must produce identical
    /// bytes and no GPU is required, the first is drawn among all listed GPU groups that have three of them, the others from its own group.
    pub fn draw_members(&self, task: &Task, reserved: &[NodeHandle], rng: &mut Rng) -> Members {
        let (order, mut nodes) = (&task.order, Vec::new());
        let (mut field, mut beside) = (Field::new(self.host, Among::Idle, order.group.into()), Vec::from(reserved));
        if field.count(self.host, MEMBERS as u32) + (beside.len() as u32) < MEMBERS as u32 {
            return Members::Nobody;
        }
        let anywhere = order.images() == 0 && order.group.is_any();
        let listed = |handle: &NodeHandle| !anywhere || registry::listed(self.host, handle.node.group);
        if field.total() == 0 && beside.iter().all(listed) {
            return Members::Nodes(beside.iter().map(|handle| handle.id).collect());
        }
        let began = self.host.reads();
        if anywhere {
            let complete = |group: GpuGroup| {
                let idle = Counts::load(self.host, Among::Idle, group).members() as usize;
                let there = idle + reserved.iter().filter(|other| other.node.group == group).count();
                there >= MEMBERS && registry::listed(self.host, group)
            };
            let mut met = false;
            let mut fits = |handle: &NodeHandle| {
                let fits = complete(handle.node.group);
                met |= fits;
                fits
            };
            let first = (&mut nodes, 1);
            draw_several(self, field, reserved, &task.models, first, (&mut fits, began.wrapping_sub(OTHERS_READS)), rng);
            // Those that are kept for it need not be met.
            let own = reserved.first().map(|handle| handle.node.group).filter(|&group| complete(group));
            let group = match nodes.first() {
                Some(&first) => NodeHandle::load(self.host, first).node.group,
                None if met && own.is_none() => return Members::Undecided,
                None => match own.or_else(|| find_trio(self.host, order.group.vram(), began, complete, rng)) {
                    Some(group) => group,
                    None => return Members::Nobody,
                },
            };
            field = Field::new(self.host, Among::Idle, group.into());
            beside.retain(|handle| handle.node.group == group);
        }
        draw_several(self, field, &beside, &task.models, (&mut nodes, MEMBERS), (&mut |_| true, began), rng);
        if nodes.len() == MEMBERS {
            Members::Nodes(nodes)
        } else {
            Members::Undecided
        }
    }
}

/// Looks for `complete` groups among the listed GPU groups from a VRAM size on, within the reads of a draw that `began` so. Gives one of
/// them, each as likely.
fn find_trio<H: Host>(
    host: &H,
    mut vram: u16,
    began: u32,
    complete: impl Fn(GpuGroup) -> bool,
    rng: &mut Rng,
) -> Option<GpuGroup> {
    let (mut found, mut count) = (None, 0);
    while let Some(size) = registry::size_of_trios(host, vram) {
        for gpu in 1..=registry::gpu_count(host, size) {
            if host.reads().wrapping_sub(began) > SEVERAL_READS - FOUND_READS {
                return found;
            }
            let group = GpuGroup::of(gpu as u16, size);
            if complete(group) {
                count += 1;
                found = if rng.below(host, count) == 0 { Some(group) } else { found };
            }
        }
        vram = size + 1;
    }
    found
}

/// Rules on a group of three that began at once: none of them was there first, so one answer alone is none.
pub(crate) fn rule<H: Host>(net: &mut Network<'_, H>, case: &Case<'_>) -> Ruling {
    let judgement = case.compare();
    let mut ruling = Ruling::compared(net, case, &judgement, Pot::of_fee(case.escrow.fee, case.count, case.failed));
    if ruling.answerer.is_none() {
        ruling.start_fee = case.start_fee();
    }
    ruling
}
