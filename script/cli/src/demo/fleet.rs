//! The fleet: its GPUs, stakes and models, and how the nodes join.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashSet},
};

use alloy::primitives::{utils::format_ether, Address, B256, U256};
use anyhow::{ensure, Context, Result};
use muster_client::{
    abi::model_id,
    Event,
    IMuster::{accountCall, joinCall, nodeCall, nodeOfCall, overviewCall, reportDownloadedCall, weightOfCall},
    Request as Transaction, Sender,
};
use muster_core::record::{Status, CALL_MODELS, NODE_MODELS};
use muster_trace::{Gpu, Request};
use rand::{seq::SliceRandom, Rng};

use super::{
    records::Node,
    state::{account, creator_of, nodes_of, random, specification, Demo, Options, Who, CREATORS, GAS_LIMIT},
};

/// Gas that an account is funded for with each transaction it may send.
const GAS_EXPECTED: u64 = 400_000;

/// The cost of joining, in wei.
struct Terms {
    stake_unit: U256,
    least: U256,
    /// For a GPU that nobody had before.
    group_fee: U256,
}

/// How a node is to join.
struct Join<'g> {
    gpu: &'g Gpu,
    stake: U256,
    models: Vec<u64>,
}

/// The nodes of the network, in the order in which they join.
pub fn choose(fleet: &[Gpu], options: &Options) -> Result<Vec<Gpu>> {
    let wanted = options.gpus.unwrap_or(fleet.len().min(200));
    ensure!(wanted <= fleet.len(), "--gpus is {wanted}, but the fleet has {} GPUs", fleet.len());
    let mut order: Vec<usize> = (0..fleet.len()).collect();
    if wanted < fleet.len() {
        order.shuffle(&mut random(options.seed, "fleet"));
    }
    Ok(order[..wanted].iter().map(|at| fleet[*at].clone()).collect())
}

/// Models by how many requests need them, the most wanted first.
fn popularity(requests: &[Request]) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for model in requests.iter().flat_map(|request| &request.models) {
        *counts.entry(model).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().map(|(name, count)| (name.to_string(), count)).collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts
}

impl Demo {
    /// Gives every account the ether it will need, lets the fleet join, and reads the weights.
    pub(super) async fn fund_and_join(&mut self, fleet: &[Gpu]) -> Result<()> {
        let stake_unit = U256::from(self.ask(overviewCall {}).await?.stakeUnit);
        let terms = Terms {
            stake_unit,
            least: self.parameter("minStake").await? * stake_unit,
            group_fee: self.parameter("groupFee").await? * stake_unit,
        };
        let joins = self.joins(fleet, &terms);
        for place in 0..fleet.len() {
            let operator = self.operator(place).await?;
            self.operators.push(operator);
        }
        let payments = self.payments(&joins, &terms).await?;
        self.begin_bar("joining", fleet.len() as u64);
        for (to, value) in payments {
            let payment = Transaction { to: to.into(), value, ..Transaction::default() };
            self.chain.send(&self.keeper, payment).await?;
        }
        let (speeds, cheats) = (speeds(fleet.len(), &self.options), cheats(fleet.len(), &self.options));
        for (place, join) in joins.into_iter().enumerate() {
            let gpu = format!("{}, {} GiB", join.gpu.name, join.gpu.vram);
            let number = match self.joined(place).await? {
                Some(number) => number,
                None => self.join(place, join).await?,
            };
            let node = Node { place, gpu, speed: speeds[place], cheats: cheats.contains(&place), weight: 0.0 };
            self.nodes.insert(number, node);
            self.bar.inc(1);
        }
        for (number, node) in &mut self.nodes {
            let call = weightOfCall { number: *number as u32, spec: specification(0, 1, 1, &[], B256::ZERO) };
            node.weight = self.muster.read(call).await?.weight as f64;
        }
        self.bar.finish_and_clear();
        Ok(())
    }

    /// The account that runs a node. One whose node was kicked out in an earlier run on the same chain, also by a slash, can never join
    /// again: then another.
    async fn operator(&self, place: usize) -> Result<Sender> {
        let mut attempt = 0;
        loop {
            let kind = if attempt == 0 { "operator".into() } else { format!("operator after {attempt}") };
            let operator = account(&self.chain, self.options.seed, &kind, place).await?;
            let owed = self.ask(accountCall { who: operator.address() }).await?;
            if !owed.kickedOut || self.status(owed.node).await? != Status::Quit {
                return Ok(operator);
            }
            attempt += 1;
        }
    }

    /// A node's status.
    async fn status(&self, number: u32) -> Result<Status> {
        Ok(Status::new(self.ask(nodeCall { number }).await?.status))
    }

    /// The stake and models of every node.
    fn joins<'g>(&self, fleet: &'g [Gpu], terms: &Terms) -> Vec<Join<'g>> {
        let mut stakes = random(self.options.seed, "stakes");
        let mut held = random(self.options.seed, "models");
        let popularity = popularity(&self.requests);
        let most = popularity.first().map_or(1, |(_, count)| *count) as f64;
        let join = |gpu: &'g Gpu| {
            // Evenly in the logarithm: many small stakes, few large ones.
            let times = U256::from((1_000.0 * 10f64.powf(stakes.gen::<f64>())) as u64);
            let models = popularity
                .iter()
                .filter(|(_, count)| held.gen_bool(0.15 + 0.6 * *count as f64 / most))
                .take(NODE_MODELS as usize)
                .map(|(name, _)| model_id(name));
            Join {
                gpu,
                stake: (terms.least / terms.stake_unit * times / U256::from(1_000)) * terms.stake_unit,
                models: models.collect(),
            }
        };
        fleet.iter().map(join).collect()
    }

    /// The payment to each account; refused if there is not enough for all.
    async fn payments(&mut self, joins: &[Join<'_>], terms: &Terms) -> Result<Vec<(Address, U256)>> {
        let mut fees = vec![U256::ZERO; CREATORS];
        for at in 0..self.requests.len() {
            let Request { line, units, .. } = self.requests[at];
            let asks = || format!("the request in line {line} asks for {units} units, images per prompt x inference steps / 30");
            let fee = self.fee(at).await.with_context(asks)?;
            fees[creator_of(&self.requests[at])] += fee * nodes_of(self.options.policy(at));
        }
        let requests = self.requests.len() as u64;
        let price = self.chain.gas_price().await? * U256::from(2);
        let gas = |transactions: u64| price * U256::from(GAS_LIMIT + GAS_EXPECTED * transactions);
        // A node in ten may get most of the work; the rest stays with the account for another run.
        let work = requests.min(10 * requests / joins.len() as u64);
        // Where a task can be validated its node commits and reveals, and of some there are three.
        let others = 4 * u64::from(self.options.groups());
        let per_node = gas(20 + if self.options.validates() { work * (200 + others) / 100 } else { work });
        // The first to join with a GPU pays for its name.
        let mut named = HashSet::new();
        let mut payments: Vec<(Address, U256)> = Vec::new();
        for (account, Join { gpu, stake, .. }) in self.operators.iter().zip(joins) {
            let first = named.insert((&gpu.name, gpu.vram));
            payments.push((account.address(), *stake + per_node + if first { terms.group_fee } else { U256::ZERO }));
        }
        for (account, fee) in self.creators.iter().zip(&fees) {
            payments.push((account.address(), *fee + gas(2 * requests)));
        }
        let total: U256 = payments.iter().map(|(_, amount)| *amount).sum();
        let keeper = self.keeper.address();
        let have = self.chain.endpoints.balance(keeper).await?;
        ensure!(
            total < have,
            "this needs {} ether for stakes, fees and gas, and account {keeper:?} has {}: fewer --gpus or a lower --limit need less",
            format_ether(total),
            format_ether(have)
        );
        Ok(payments)
    }

    /// The node of an operator, if an earlier run with the same seed on the same chain has let it join already.
    async fn joined(&self, place: usize) -> Result<Option<u64>> {
        let number = self.ask(nodeOfCall { who: self.operators[place].address() }).await?;
        if number == 0 {
            return Ok(None);
        }
        Ok((self.status(number).await? != Status::Quit).then_some(number.into()))
    }

    /// Lets a node join. Gives its number.
    async fn join(&mut self, place: usize, join: Join<'_>) -> Result<u64> {
        // A call takes only so many models; the others are declared afterwards.
        let mut parts = join.models.chunks(CALL_MODELS).map(<[u64]>::to_vec);
        let models = parts.next().unwrap_or_default();
        let (name, vram) = (join.gpu.name.clone(), join.gpu.vram);
        let value = join.stake + self.muster.name_fee(&name, vram).await?;
        let events = self.send(Who::Operator(place), &joinCall { gpuName: name, vram, models }, value).await?;
        for models in parts {
            self.tell(Who::Operator(place), &reportDownloadedCall { models }).await?;
        }
        let joined = events.into_iter().find_map(|event| match event {
            Event::NodeJoined(joined) => Some(joined.node),
            _ => None,
        });
        Ok(joined.context("join left no NodeJoined event")?.into())
    }
}

/// How fast the nodes are: between half and twice as fast as the trace, as the seed has it.
fn speeds(nodes: usize, options: &Options) -> Vec<u64> {
    let mut speeds = random(options.seed, "speeds");
    (0..nodes).map(|_| speeds.gen_range(50..=200)).collect()
}

/// Which nodes cheat.
fn cheats(nodes: usize, options: &Options) -> HashSet<usize> {
    let mut order: Vec<usize> = (0..nodes).collect();
    order.shuffle(&mut random(options.seed, "cheats"));
    order.into_iter().take(if options.validates() { options.cheats } else { 0 }).collect()
}
