//! One network divided into instances, each with a contract of its own, nodes of its own and tasks of its own.

use muster_protocol::native::Memory;
use rayon::prelude::*;

use super::engine::Engine;
use super::ledger::Ledger;
use super::policy::Policy;
use super::report::{quantile, Report};
use super::workload::{fleet, model_span, NodeSpec, Profile, Source, TaskSpec, TICKS};
use crate::random::Random;

/// Points into which the demand for models is divided.
const POINTS: u64 = 1 << 32;

/// How nodes and tasks are given to instances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Division {
    /// Not at all.
    None,
    /// By location: each region has as many nodes, and, except for chance, as many tasks.
    Region,
    /// The same, but each region's share of tasks deviates from its nodes' share, uniformly by up to this many per cent.
    Uneven(u32),
    /// By base model: an instance serves a share of the demand. A node goes to an instance that serves one of its models, the one with the
    /// fewest nodes.
    Model,
}

/// The results of a division.
#[derive(Clone, Debug)]
pub struct Divided {
    pub division: Division,
    pub instances: u32,
    /// Of all instances together.
    pub nodes: u32,
    /// Work asked of an instance's nodes, relative to that of the whole network's: the least and the most.
    pub demand: (f64, f64),
    /// Starts on nodes that held every model, as a share of all.
    pub local: f64,
    /// Mean seconds from creation to start, and those that 95 and 99 % of the starts did not exceed.
    pub wait: (f64, f64, f64),
    /// The 95th percentile of the instance where it was longest.
    pub worst: f64,
    /// Tasks driven out of a queue, refused or never started, as a share of all.
    pub away: f64,
    /// Tasks asked for.
    pub tasks: u64,
}

/// Runs a network of this profile, divided into this many instances.
///
/// # Errors
/// A contract that can't be made.
pub fn run(profile: &Profile, division: Division, instances: u32, seed: u64) -> Result<Divided, String> {
    let nodes = fleet(profile, seed);
    let tasks: Vec<TaskSpec> = Source::made_up(profile, &nodes, seed).collect();
    let split = split(nodes, tasks, division, instances, seed);
    let offered = |(nodes, tasks): &(Vec<NodeSpec>, Vec<TaskSpec>)| {
        let work: u64 = tasks.iter().map(|task| task.work).sum();
        let speed: u64 = nodes.iter().map(|node| u64::from(node.speed)).sum();
        (work as f64, speed as f64)
    };
    let all = split.iter().map(offered).fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    let relative = split.iter().map(offered).map(|(work, speed)| work / speed.max(1.0) / (all.0 / all.1.max(1.0)));
    let demand = relative.fold((f64::INFINITY, 0.0f64), |(least, most), demand| (least.min(demand), most.max(demand)));
    let reports: Vec<Report> = split
        .into_par_iter()
        .enumerate()
        .map(|(i, (nodes, tasks))| {
            let seed = seed << 16 | i as u64;
            let ledger = Ledger::new(Memory::quick(seed), Policy::Contract, &[])?;
            Ok(Engine::new(ledger, nodes, Source::given(tasks), seed, None).run().0)
        })
        .collect::<Result<_, String>>()?;
    Ok(summary(division, profile.nodes, demand, &reports))
}

fn summary(division: Division, nodes: u32, demand: (f64, f64), reports: &[Report]) -> Divided {
    let sum = |part: fn(&Report) -> u64| reports.iter().map(part).sum::<u64>();
    let mut waits: Vec<u32> = reports.iter().flat_map(|report| report.waits.iter().copied()).collect();
    waits.sort_unstable();
    let seconds = |ticks: f64| ticks / TICKS as f64;
    let mean = waits.iter().map(|wait| f64::from(*wait)).sum::<f64>() / waits.len().max(1) as f64;
    let tasks = sum(|r| r.asked + r.refused);
    Divided {
        division,
        instances: reports.len() as u32,
        nodes,
        demand,
        local: sum(|r| r.local) as f64 / sum(|r| r.started).max(1) as f64,
        wait: (seconds(mean), seconds(quantile(&waits, 0.95)), seconds(quantile(&waits, 0.99))),
        worst: reports.iter().map(|report| report.wait(0.95)).fold(0.0, f64::max),
        away: sum(|r| r.evicted + r.refused + r.open) as f64 / tasks.max(1) as f64,
        tasks,
    }
}

/// Nodes and tasks of each instance.
fn split(
    nodes: Vec<NodeSpec>,
    tasks: Vec<TaskSpec>,
    division: Division,
    instances: u32,
    seed: u64,
) -> Vec<(Vec<NodeSpec>, Vec<TaskSpec>)> {
    let count = if division == Division::None { 1 } else { instances.max(1) as usize };
    let mut parts: Vec<(Vec<NodeSpec>, Vec<TaskSpec>)> = vec![(vec![], vec![]); count];
    let random = &mut Random::named(&[seed, 7]);
    // The end of each region's demand, as a part of all demand.
    let mut sum = 0;
    let ends: Vec<usize> = (0..count)
        .map(|_| {
            sum += match division {
                Division::Uneven(percent) => (100 - percent) as usize * 1_000 + random.below(2_000 * percent as usize + 1),
                _ => 100_000,
            };
            sum
        })
        .collect();
    // Nodes in an order that nothing else depends on, so that the first ones have no other choice than the last.
    let mut order: Vec<NodeSpec> = nodes;
    let all = order.len();
    random.bring(&mut order, all);
    for (i, node) in order.into_iter().enumerate() {
        let to = match division {
            Division::Model => fewest(&node, &parts),
            _ => i % count,
        };
        parts[to].0.push(node);
    }
    for task in tasks {
        let to = match division {
            Division::Model => {
                let (from, end) = model_span(base_model(&task), POINTS);
                served_by(from + random.below((end - from).max(1) as usize) as u64, count)
            }
            _ => {
                let at = random.below(sum);
                ends.partition_point(|end| *end <= at)
            }
        };
        parts[to].1.push(task);
    }
    parts
}

fn base_model(task: &TaskSpec) -> u64 {
    task.models.first().copied().unwrap_or(1)
}

/// The instance that serves a point of the demand.
fn served_by(point: u64, count: usize) -> usize {
    (u128::from(point) * count as u128 / u128::from(POINTS)) as usize
}

/// Of the instances that serve a node's models, the one with the fewest nodes.
fn fewest(node: &NodeSpec, parts: &[(Vec<NodeSpec>, Vec<TaskSpec>)]) -> usize {
    let served = node.models.iter().flat_map(|model| {
        let (from, end) = model_span(*model, POINTS);
        served_by(from, parts.len())..=served_by(end.max(from + 1) - 1, parts.len())
    });
    served.min_by_key(|i| (parts[*i].0.len(), *i)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> (Vec<NodeSpec>, Vec<TaskSpec>) {
        let profile = Profile { nodes: 320, tasks: 6_400, ..Profile::default() };
        let nodes = fleet(&profile, 1);
        let tasks = Source::made_up(&profile, &nodes, 1).collect();
        (nodes, tasks)
    }

    #[test]
    fn every_node_and_task_is_in_one_instance() {
        for division in [Division::None, Division::Region, Division::Uneven(30), Division::Model] {
            let (nodes, tasks) = network();
            let parts = split(nodes, tasks, division, 16, 1);
            assert_eq!(parts.iter().map(|part| part.0.len()).sum::<usize>(), 320);
            assert_eq!(parts.iter().map(|part| part.1.len()).sum::<usize>(), 6_400);
            assert_eq!(parts.len(), if division == Division::None { 1 } else { 16 });
            assert!(parts.iter().all(|part| part.1.windows(2).all(|two| two[0].at <= two[1].at)), "tasks come in order");
        }
    }

    #[test]
    fn a_model_is_served_where_nodes_hold_it() {
        let (nodes, tasks) = network();
        let parts = split(nodes, tasks, Division::Model, 8, 1);
        for (nodes, tasks) in &parts {
            // Every instance serves its share of the demand.
            assert!((640..=960).contains(&tasks.len()), "{} tasks", tasks.len());
            assert!((30..=50).contains(&nodes.len()), "{} nodes", nodes.len());
            for node in nodes {
                assert!(node.models.iter().any(|model| tasks.iter().any(|task| base_model(task) == *model)), "{:?}", node.models);
            }
        }
    }

    #[test]
    fn uneven_regions_are_uneven() {
        let (nodes, tasks) = network();
        let parts = split(nodes, tasks, Division::Uneven(50), 4, 1);
        let counts: Vec<usize> = parts.iter().map(|part| part.1.len()).collect();
        assert!(counts.iter().max().unwrap() * 10 > counts.iter().min().unwrap() * 12, "{counts:?}");
    }
}
