//! The choice of a task's node: as the contract chooses, or, for comparison, by other weights.
//!
//! The others are not in the contract. They choose exactly in proportion to their weight among the same candidates: idle and
//! eligible nodes, with the VRAM or the GPU, and only those that hold a required model if there are any. They choose by rejection,
//! and if that takes too long by adding up all candidates. The contract draws validators, and the nodes of a task that takes three.

use muster_core::qos;
use muster_core::wad::{mul_div_u64, mul_wad, WAD};
use muster_core::weight;
use muster_protocol::flow::draw::{Candidates, Draw};
use muster_protocol::flow::weigh::in_scope;
use muster_protocol::host::Host;
use muster_protocol::id::GpuGroup;
use muster_protocol::store::node::NodeHandle;
use muster_protocol::store::registry::{self, Holders};
use muster_protocol::store::sampler::{self, Among, Counts, VRAM_MAX};
use muster_protocol::store::task::Task;
use muster_protocol::{Network, Result};

use crate::random::Random;

/// Tries before all candidates are added up.
const TRIES: u32 = 400;
/// Holders of a task's models up to which they are looked at one by one.
const FEW: u32 = 48;

/// The quantity that a candidate's chance is proportional to, apart from the locality boost M, which all have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Merit {
    /// S QoS / (S + QoS), as the contract has it: the same choice by another way.
    Weight,
    /// The same for all.
    Uniform,
    /// S = sqrt(stake / largest stake).
    Stake,
    /// QoS.
    Qos,
    /// stake / largest stake.
    LinearStake,
    /// S QoS / (S + QoS) with S = stake / largest stake.
    LinearWeight,
    /// S QoS: zero as soon as one of them is, but not capped by the smaller one.
    Product,
    /// stake / largest stake times QoS.
    LinearProduct,
}

/// The chooser.
#[derive(Debug)]
pub enum Policy {
    /// The contract.
    Contract,
    /// The simulator, by this merit, with this luck.
    Exact(Merit, Random),
}

impl Policy {
    /// The policy with its luck named after a seed.
    pub fn exact(merit: Merit, seed: u64) -> Self {
        Self::Exact(merit, Random::named(&[seed, 0x706f_6c69_6379]))
    }

    /// Whether the contract itself chooses.
    pub fn is_contract(&self) -> bool {
        matches!(self, Self::Contract)
    }

    /// Draws every Pending task whose block has come, those that take three nodes by the contract, so that none is left for it to draw. Nothing
    /// where the contract chooses.
    ///
    /// # Errors
    /// Before initialisation.
    pub fn serve<H: Host>(&mut self, host: &mut H) -> Result<()> {
        let Self::Exact(merit, random) = self else { return Ok(()) };
        let mut net = Network::open(host)?;
        while !net.ring().is_empty() {
            let (_, order) = net.ring().first(net.host);
            if order.moment >= net.block() {
                break;
            }
            if order.several() {
                // Or the validators that are due before it.
                net.serve(1);
                continue;
            }
            let Some(task) = net.take_due() else { break };
            let draw = match choose(&net, &task, *merit, random) {
                Some(handle) => Draw::Node(handle, Candidates::AtLeast(candidates(&net, &task, &handle))),
                None => Draw::Nobody,
            };
            net.place(&task, draw, None);
        }
        net.close();
        Ok(())
    }
}

fn merit_of<H: Host>(net: &Network<H>, handle: &NodeHandle, merit: Merit) -> u64 {
    let f = net.factors(&handle.node);
    if !qos::eligible(f.reliability, net.rules().exclusion_ppm) {
        return 0;
    }
    let linear = || mul_div_u64(handle.node.stake, WAD, net.node_store().max_stake().max(1)).unwrap_or(WAD);
    match merit {
        Merit::Weight => weight::harmonic(f.staking, f.qos),
        Merit::Uniform => WAD,
        Merit::Stake => f.staking,
        Merit::Qos => f.qos,
        Merit::LinearStake => linear(),
        Merit::LinearWeight => weight::harmonic(linear(), f.qos),
        Merit::Product => mul_wad(f.staking, f.qos),
        Merit::LinearProduct => mul_wad(linear(), f.qos),
    }
}

/// Groups in a task's scope, with their idle nodes by class.
fn field<H: Host>(net: &Network<H>, task: &Task) -> Vec<(GpuGroup, Counts)> {
    let wanted = task.order.group;
    let groups: Vec<GpuGroup> = if wanted.is_any() {
        let sizes = (wanted.vram()..=VRAM_MAX).take_while(|vram| u32::from(*vram) <= LARGEST_VRAM);
        let models = |vram| 1..=registry::gpu_count(net.host, vram) as u16;
        sizes.flat_map(|vram| models(vram).map(move |gpu| GpuGroup::of(gpu, vram))).collect()
    } else {
        vec![wanted]
    };
    groups.into_iter().map(|group| (group, Counts::load(net.host, Among::Idle, group))).collect()
}

/// The largest GPU of the simulator's fleets, in GiB.
pub const LARGEST_VRAM: u32 = 96;

/// How many nodes the task of a chosen node could have gone to.
fn candidates<H: Host>(net: &Network<H>, task: &Task, chosen: &NodeHandle) -> u32 {
    let local = |handle: &NodeHandle| net.locality(handle, &task.models).1 > 0;
    if local(chosen) {
        return holders(net, task).filter(|handle| in_scope(handle, task) && local(handle)).count() as u32;
    }
    field(net, task).iter().map(|(_, counts)| counts.members()).sum()
}

/// The `n`-th idle node of a field.
fn nth<H: Host>(net: &Network<H>, field: &[(GpuGroup, Counts)], mut n: u64) -> Option<NodeHandle> {
    for (group, counts) in field {
        for class in 0..weight::CLASSES {
            let count = u64::from(counts.get(class));
            if n < count {
                let number = sampler::member(net.host, Among::Idle, *group, class, n as u32);
                return Some(NodeHandle::load(net.host, number));
            }
            n -= count;
        }
    }
    None
}

/// Chooses a node for a task; none if there is no candidate.
fn choose<H: Host>(net: &Network<H>, task: &Task, merit: Merit, random: &mut Random) -> Option<NodeHandle> {
    let field = field(net, task);
    let total: u64 = field.iter().map(|(_, counts)| u64::from(counts.members())).sum();
    if total == 0 {
        return None;
    }
    let entries: u32 = task.models.as_slice().iter().map(|&m| Holders::load(net.host, m).len()).sum();
    if entries > FEW {
        if let Some(handle) = by_rejection(net, &field, total, task, merit, true, random) {
            return Some(handle);
        }
    }
    if entries > 0 {
        if let Some(handle) = among(net, holders(net, task), task, merit, true, random) {
            return Some(handle);
        }
    }
    by_rejection(net, &field, total, task, merit, false, random).or_else(|| {
        let all = (0..total).filter_map(|n| nth(net, &field, n));
        among(net, all, task, merit, false, random)
    })
}

fn by_rejection<H: Host>(
    net: &Network<H>,
    field: &[(GpuGroup, Counts)],
    total: u64,
    task: &Task,
    merit: Merit,
    local_only: bool,
    random: &mut Random,
) -> Option<NodeHandle> {
    // M is at most 2; without a holder, at most 1.3.
    let largest = weight::largest_boost(task.models.len.into(), local_only);
    let most = u128::from(mul_wad(largest, WAD));
    for _ in 0..TRIES {
        let handle = nth(net, field, random.below(total as usize) as u64)?;
        let height = ((u128::from(random.bits()) * most) >> 64) as u64;
        let base = merit_of(net, &handle, merit);
        if height >= mul_wad(base, largest) {
            continue;
        }
        let (boost, local) = net.locality(&handle, &task.models);
        if !(local_only && local == 0) && height < mul_wad(base, boost) {
            return Some(handle);
        }
    }
    None
}

/// All nodes entered as holders of a required model, each once.
fn holders<H: Host>(net: &Network<H>, task: &Task) -> impl Iterator<Item = NodeHandle> {
    let mut numbers = Vec::new();
    for &model in task.models.as_slice() {
        let list = Holders::load(net.host, model);
        numbers.extend((0..list.len()).map(|i| list.get(net.host, i)));
    }
    numbers.sort_unstable();
    numbers.dedup();
    let handles: Vec<NodeHandle> = numbers.into_iter().map(|n| NodeHandle::load(net.host, n)).collect();
    handles.into_iter().filter(|handle| handle.node.idle())
}

fn among<H: Host>(
    net: &Network<H>,
    handles: impl Iterator<Item = NodeHandle>,
    task: &Task,
    merit: Merit,
    local_only: bool,
    random: &mut Random,
) -> Option<NodeHandle> {
    let mut found = Vec::new();
    let mut sum = 0u128;
    for handle in handles.filter(|handle| in_scope(handle, task)) {
        let (boost, local) = net.locality(&handle, &task.models);
        let weight = mul_wad(merit_of(net, &handle, merit), boost);
        if weight > 0 && !(local_only && local == 0) {
            sum += u128::from(weight);
            found.push((handle, sum));
        }
    }
    if sum == 0 {
        return None;
    }
    let wide = u128::from(random.bits()) << 64 | u128::from(random.bits());
    let u = wide % sum;
    let at = found.partition_point(|(_, above)| *above <= u);
    found.get(at).map(|(handle, _)| *handle)
}
