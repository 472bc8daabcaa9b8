//! Parameters that the demonstration sets as the owner of its Muster, so that a short run shows validation at work; and the policy of each
//! request's task.

use alloy::primitives::U256;
use anyhow::Result;
use muster_client::IMuster::{acceptParameterCall, proposedParameterCall};
use muster_protocol::{
    flow::create::{REPLICATED, SAMPLED},
    parameters::{Amount, PARAMETERS},
};
use rand::Rng;

use super::{
    judged::Setting,
    state::{random, Demo, Options, Who},
};
use crate::{
    chain::date,
    deploy::{self, number_of},
};

/// Of ten thousand committed answers, how many are validated: half, where a network would take a tenth.
const SAMPLE_BPS: u64 = 5_000;
/// Nodes that a scope needs for scores and slashes: the demonstration has eight nodes, not hundreds.
const SCORE_POOL: u64 = 3;
/// Requests are for images, and a wrong one is to be slashed.
const SLASH_IMAGES: u64 = 1;
/// The parameters that it sets.
const SET: [(&str, u64); 3] = [("sampleBps", SAMPLE_BPS), ("scorePool", SCORE_POOL), ("slashImages", SLASH_IMAGES)];
/// Per cent of the tasks that three nodes run at once, if nobody says how many.
const GROUPS: u8 = 10;

impl Options {
    /// Per cent of the tasks that three nodes run at once.
    pub(super) fn groups(&self) -> u8 {
        self.groups.unwrap_or(GROUPS.min(100 - self.sampled))
    }

    /// Whether any task can be validated.
    pub(super) fn validates(&self) -> bool {
        self.sampled > 0 || self.groups() > 0
    }

    /// The policy that a request's task is to run under, by the seed.
    pub(super) fn policy(&self, at: usize) -> u8 {
        match random(self.seed, &format!("sampled {at}")).gen_range(0..100) {
            lot if lot < self.sampled => SAMPLED,
            lot if lot < self.sampled + self.groups() => REPLICATED,
            _ => 0,
        }
    }
}

/// Has the parameters set with the deployment, but for those that PARAMETERS names. Those that reach into stakes are proposed only.
pub(super) fn add(config: &mut deploy::Config, options: &Options) {
    if !options.validates() {
        return;
    }
    for (name, value) in SET {
        if !config.parameters.iter().any(|(named, _)| named == name) {
            config.parameters.push((name.into(), U256::from(value)));
        }
    }
}

impl Demo {
    /// Lets the time pass that proposed parameters need, where time can be set, and puts them into effect.
    pub(super) async fn await_parameters(&mut self) -> Result<()> {
        if !self.options.validates() {
            return Ok(());
        }
        for (name, _) in SET {
            let parameter = number_of(name)?;
            let proposed = self.ask(proposedParameterCall { which: parameter }).await?;
            if proposed.effective == 0 {
                continue;
            }
            if self.clock.travels || self.clock.now >= proposed.effective {
                self.clock.wait_until(proposed.effective).await?;
                self.tell(Who::Keeper, &acceptParameterCall { parameter }).await?;
            } else {
                eprintln!(
                    "demo: {name} stays {} until {}, because here time passes by itself",
                    self.parameter(name).await?,
                    date(proposed.effective)
                );
            }
        }
        // The cost of getting ready is no operation's cost.
        self.tally.gas.clear();
        Ok(())
    }

    /// The parameters that decide the outcome of validation, as they are.
    pub(super) async fn settings(&self) -> Result<Vec<Setting>> {
        let mut settings = Vec::new();
        for name in ["sampleBps", "scorePool", "slashImages", "slashTimes", "holdTime"] {
            let value = self.parameter(name).await?.saturating_to();
            let default = match PARAMETERS[usize::from(number_of(name)?)].setting.default {
                Amount::Fixed(default) => default,
                _ => value,
            };
            settings.push(Setting { name: name.into(), value, default });
        }
        Ok(settings)
    }
}
