//! The fleet: which GPUs, what stakes and models, and how the nodes join.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashSet},
};

use anyhow::{ensure, Context, Result};
use ethers::{
    abi::Token,
    providers::Middleware,
    types::{Address, U256},
    utils::format_ether,
};
use muster_core::record::{CALL_MODELS, NODE_MODELS};
use muster_sim::trace::{Gpu, Request};
use rand::{seq::SliceRandom, Rng};

use super::{account, creator_of, model_id, random, specification, Demo, Options, Sender, CREATORS, GAS_LIMIT};
use crate::{
    chain::Outgoing,
    contract::{field, Event, Refusal},
};

/// Gas that an account is funded for with each transaction it may send.
const GAS_EXPECTED: u64 = 400_000;

/// A node of ours that has joined.
pub struct Node {
    /// Its operator's place among ours.
    pub place: usize,
    pub gpu: String,
    /// As it was after joining.
    pub weight: f64,
}

/// What joining costs, in wei.
struct Terms {
    granule: U256,
    least: U256,
    /// For a GPU that nobody had before.
    group_fee: U256,
}

/// How a node is to join.
struct Join<'g> {
    gpu: &'g Gpu,
    stake: U256,
    models: Vec<Token>,
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
    /// Gives every account what it will need, lets the fleet join, and reads the weights.
    pub(super) async fn fund_and_join(&mut self, fleet: &[Gpu]) -> Result<()> {
        let granule = field(&self.muster.view(&self.chain, "overview", &[]).await?, 7)?;
        let terms = Terms {
            granule,
            least: self.parameter("minStake").await? * granule,
            group_fee: self.parameter("groupFee").await? * granule,
        };
        let joins = self.joins(fleet, &terms);
        for number in 0..fleet.len() {
            self.operators.push(account(&self.chain, self.options.seed, "operator", number)?);
        }
        let payments = self.payments(&joins, &terms).await?;
        self.begin_bar("joining", fleet.len() as u64);
        for (to, value) in payments {
            self.keeper.send(&self.chain, Outgoing { to: Some(to), value, ..Default::default() }).await?;
        }
        for (place, join) in joins.into_iter().enumerate() {
            let gpu = format!("{}, {} GiB", join.gpu.name, join.gpu.vram);
            let number = match self.joined(place).await? {
                Some(number) => number,
                None => self.join(place, join, &terms).await?,
            };
            self.nodes.insert(number, Node { place, gpu, weight: 0.0 });
            self.bar.inc(1);
        }
        for (number, node) in &mut self.nodes {
            let arguments = [Token::Uint((*number).into()), specification(1, 1, &[], [0; 32])];
            let weight = self.muster.view(&self.chain, "weightOf", &arguments).await?;
            node.weight = field(&weight, 5)?.as_u128() as f64;
        }
        self.bar.finish_and_clear();
        Ok(())
    }

    /// What every node stakes and holds.
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
                .map(|(name, _)| Token::Uint(model_id(name).into()));
            Join { gpu, stake: (terms.least / terms.granule * times / 1_000) * terms.granule, models: models.collect() }
        };
        fleet.iter().map(join).collect()
    }

    /// What each account gets; refused if there is not enough for all.
    async fn payments(&mut self, joins: &[Join<'_>], terms: &Terms) -> Result<Vec<(Address, U256)>> {
        let mut fees = vec![U256::zero(); CREATORS];
        for at in 0..self.requests.len() {
            fees[creator_of(&self.requests[at])] += self.fee(at).await?;
        }
        let requests = self.requests.len() as u64;
        let gas = |transactions: u64| self.chain.gas_price * (GAS_LIMIT + GAS_EXPECTED * transactions);
        // A node in ten may get most of the work; what is left over stays with the account for another run.
        let per_node = gas(20 + requests.min(10 * requests / joins.len() as u64));
        // Who is the first to join with a GPU pays for its name.
        let mut named = HashSet::new();
        let mut payments: Vec<(Address, U256)> = Vec::new();
        for (account, Join { gpu, stake, .. }) in self.operators.iter().zip(joins) {
            let first = named.insert((&gpu.name, gpu.vram));
            payments.push((account.address(), *stake + per_node + if first { terms.group_fee } else { U256::zero() }));
        }
        for (account, fee) in self.creators.iter().zip(&fees) {
            payments.push((account.address(), *fee + gas(2 * requests)));
        }
        let total = payments.iter().fold(U256::zero(), |sum, (_, amount)| sum + amount);
        let keeper = self.keeper.address();
        let have = self.chain.provider.get_balance(keeper, None).await.map_err(|error| self.chain.trouble(&error))?;
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
        let operator = Token::Address(self.operators[place].address());
        let node = field(&self.muster.call(&self.chain, "nodeOf", &[operator]).await?, 0)?;
        if node.is_zero() {
            return Ok(None);
        }
        let status = field(&self.muster.view(&self.chain, "node", &[Token::Uint(node)]).await?, 2)?;
        Ok((!status.is_zero()).then(|| node.as_u64()))
    }

    /// Lets a node join. Gives its number.
    async fn join(&mut self, place: usize, join: Join<'_>, terms: &Terms) -> Result<u64> {
        // A call takes only so many models; the others are declared afterwards.
        let mut parts = join.models.chunks(CALL_MODELS).map(|part| Token::Array(part.to_vec()));
        let first = parts.next().unwrap_or(Token::Array(Vec::new()));
        let (name, vram) = (Token::String(join.gpu.name.clone()), Token::Uint(join.gpu.vram.into()));
        let known = match self.muster.call(&self.chain, "gpuGroup", &[name.clone(), vram.clone()]).await {
            Ok(_) => true,
            Err(error) if Refusal::behind(&error).is_some_and(|refusal| refusal.name == "GpuNameUnknown") => false,
            Err(error) => return Err(error),
        };
        let value = if known { join.stake } else { join.stake + terms.group_fee };
        let receipt = self.send(Sender::Operator(place), "join", &[name, vram, first], value).await?;
        for part in parts {
            self.send(Sender::Operator(place), "reportDownloaded", &[part], U256::zero()).await?;
        }
        let joined = receipt.logs.iter().filter_map(Event::of).find(|event| event.name == "NodeJoined");
        Ok(joined.context("join left no NodeJoined event")?.number("node"))
    }
}
