//! What the demonstration sets as the owner of its Muster, so that a short run shows what validation does; and which tasks can be
//! validated.

use anyhow::Result;
use ethers::types::U256;
use muster_core::weight;
use muster_protocol::{
    parameters::{Amount, PARAMETERS},
    tasks::{IMAGES_MAX, SAMPLED},
    IMuster::{acceptParameterCall, overviewCall, parameterCall, proposedParameterCall},
};
use rand::Rng;

use super::{random, Demo, Options, Sender, Setting};
use crate::{
    chain::date,
    deploy::{self, number_of},
};

/// Of ten thousand committed answers, how many are validated: half, where a network would take a tenth.
const SAMPLE_BPS: u64 = 5_000;
/// Active nodes that a scope needs for scores and slashes: the demonstration has eight nodes, not hundreds.
const SCORE_POOL: u64 = 3;
/// Requests are for images, and a wrong one is to be slashed.
const SLASH_IMAGES: u64 = 1;
/// The parameters that it sets.
const SET: [(&str, u64); 3] = [("sampleBps", SAMPLE_BPS), ("scorePool", SCORE_POOL), ("slashImages", SLASH_IMAGES)];

/// What a task keeps to that can be validated.
#[derive(Clone, Copy, Default)]
pub(super) struct Bounds {
    /// The highest fee, in wei: what the least stake covers.
    pub fee: U256,
}

/// Has the parameters set with the deployment, but for those that PARAMETERS names. Those that reach into stakes are proposed only.
pub(super) fn add(config: &mut deploy::Config, options: &Options) {
    if options.sampled == 0 {
        return;
    }
    for (name, value) in SET {
        if !config.parameters.iter().any(|(named, _)| named == name) {
            config.parameters.push((name.into(), value.into()));
        }
    }
}

impl Demo {
    /// Lets the time pass that proposed parameters need, where time can be set, and puts them into effect. Reads what tasks keep to.
    pub(super) async fn await_parameters(&mut self) -> Result<()> {
        if self.options.sampled == 0 {
            return Ok(());
        }
        for (name, _) in SET {
            let parameter = number_of(name)?;
            let proposed = self.muster.ask(&self.chain, None, &proposedParameterCall { which: parameter }).await?;
            if proposed.effective == 0 {
                continue;
            }
            if self.clock.travels || self.clock.now >= proposed.effective {
                self.clock.wait_until(proposed.effective).await?;
                self.tell(Sender::Keeper, &acceptParameterCall { parameter }).await?;
            } else {
                eprintln!(
                    "demo: {name} stays {} until {}, because here time passes by itself",
                    self.parameter(name).await?,
                    date(proposed.effective)
                );
            }
        }
        self.bounds = self.read_bounds().await?;
        // What it cost to get ready is nothing that an operation costs.
        self.tally.gas.clear();
        Ok(())
    }

    /// The least stake of all over what a node can lose by the tasks that it has open at once: one more than those that hold it.
    async fn read_bounds(&self) -> Result<Bounds> {
        let call = parameterCall { which: number_of("minStake")? };
        let stake = self.muster.ask(&self.chain, None, &call).await?;
        let (stake, most) = (U256(stake.value.into_limbs()), U256(stake.most.into_limbs()));
        let least = stake.min(most / weight::stake_limit(1));
        let granule = self.muster.ask(&self.chain, None, &overviewCall {}).await?.granule;
        let times = self.parameter("slashTimes").await? * (self.parameter("openMost").await? + 1);
        Ok(Bounds { fee: least * granule / times.max(1.into()) })
    }

    /// The redundancy policy of a request's task. What the seed picks and cannot be validated runs on a single node.
    pub(super) fn policy(&mut self, at: usize, fee: U256) -> u8 {
        if random(self.options.seed, &format!("sampled {at}")).gen_range(0..100) >= self.options.sampled {
            return 0;
        }
        if fee > self.bounds.fee {
            self.tally.judged.too_dear += 1;
            return 0;
        }
        if self.requests[at].units > IMAGES_MAX {
            self.tally.judged.too_many_images += 1;
            return 0;
        }
        SAMPLED
    }

    /// The parameters that decide what validation comes to, as they are.
    pub(super) async fn settings(&self) -> Result<Vec<Setting>> {
        let mut settings = Vec::new();
        for name in ["sampleBps", "scorePool", "slashImages", "slashTimes"] {
            let value = self.parameter(name).await?.as_u64();
            let default = match PARAMETERS[usize::from(number_of(name)?)].setting.default {
                Amount::Fixed(default) => default,
                _ => value,
            };
            settings.push(Setting { name: name.into(), value, default });
        }
        Ok(settings)
    }
}
