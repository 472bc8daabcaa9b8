//! `muster-dev keepalive`: shows when a deployment's programs expire, renews those that will soon, and activates again those that have.
//! Anybody may pay for it. The programs are read from a deployment's record, from the router, or both.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use alloy::primitives::{keccak256, utils::format_ether, Address, B256};
use anyhow::{ensure, Context, Result};
use muster_client::Sender;

use crate::{
    arbwasm::{self, Rules, Status},
    chain::{date, Chain, Payer},
    deploy::{self, ROUTER},
    router::Router,
    wasm::PREFIX,
};

const DAY: u64 = 86_400;

/// The command's flags.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Renew programs that expire within so many days
    #[arg(long, value_name = "DAYS", default_value_t = 180)]
    pub within: u64,
    /// Send nothing, and print the planned steps
    #[arg(long)]
    pub dry_run: bool,
    /// The router, where there is no record of the deployment
    #[arg(long, value_name = "ADDRESS")]
    pub router: Option<Address>,
    /// The deployment's record [default: deployments/<chain id>.json]
    #[arg(long, value_name = "FILE", conflicts_with = "router")]
    pub record: Option<PathBuf>,
    /// The payer.
    #[command(flatten)]
    pub payer: Payer,
}

/// The state of one program, and the step taken for it.
#[derive(Clone, Debug)]
pub struct Row {
    /// By the record, or by the router's answer.
    pub name: String,
    /// Where it is.
    pub address: Address,
    /// How it stands now.
    pub status: Status,
    /// Time it expires; none if it does not run.
    pub expires: Option<u64>,
    /// Gas of its start, cached and not; none if it does not run.
    pub start_gas: Option<(u64, u64)>,
    /// The step taken, or to be taken.
    pub done: String,
    /// Whether somebody must do something.
    pub needs_attention: bool,
}

/// Names and addresses of a deployment's programs: those of its record, and those that the router leads to, which are
/// other ones while a change of programs waits for its day. The router itself does not expire.
///
/// # Errors
/// When the record cannot be read, or there is none and no router was named.
pub async fn programs(chain: &Chain, root: &Path, options: &Options) -> Result<BTreeMap<Address, String>> {
    let mut found = BTreeMap::new();
    let address = match options.router {
        Some(address) => address,
        None => {
            let file = options.record.clone().unwrap_or_else(|| deploy::record(root, chain.id));
            let record =
                deploy::read(&file)?.with_context(|| format!("there is no {}: name the router with --router", file.display()))?;
            ensure!(
                record.chain_id == chain.id,
                "{} is of chain {}, and the node is of chain {}",
                file.display(),
                record.chain_id,
                chain.id
            );
            found.extend(record.behind().map(|(name, program)| (program.address, name.clone())));
            record.address
        }
    };
    // One of an earlier version is a program itself, whatever dictionary it was compressed with.
    let code = chain.endpoints.code(address).await?;
    if code.starts_with(&PREFIX[..3]) {
        found.insert(address, ROUTER.into());
    }
    for program in (Router { chain, address }).programs().await? {
        found.entry(program).or_insert_with(|| "in use".into());
    }
    Ok(found)
}

/// Looks at every program and takes the due steps. With no account it sends nothing.
///
/// # Errors
/// The node's. That a program cannot be kept alive is said in its row.
pub async fn run(
    chain: &Chain,
    account: Option<&Sender>,
    programs: &BTreeMap<Address, String>,
    within: u64,
    say: impl Fn(&str),
) -> Result<Vec<Row>> {
    let rules = Rules::of(chain).await?;
    let mut rows = Vec::new();
    // Programs with the same code are renewed together.
    let mut renewed: BTreeMap<B256, &str> = BTreeMap::new();
    for (&address, name) in programs {
        let code = chain.endpoints.code(address).await?;
        let hash = keccak256(&code);
        let (done, needs_attention) = if let Some(other) = renewed.get(&hash) {
            (format!("together with {other}"), false)
        } else if code.is_empty() {
            ("there is no code".into(), true)
        } else {
            let what = due(&rules, Status::of(chain, address).await?, within);
            let paid = match (&what, account) {
                (Due::Renewal, Some(account)) => Some(arbwasm::keep_alive(chain, account, name, hash).await),
                (Due::Activation(_), Some(account)) => Some(arbwasm::activate(chain, account, name, address).await),
                _ => None,
            };
            match paid {
                Some(Ok(paid)) => {
                    say(&format!("{name}: {}, {paid}", what.done()));
                    renewed.insert(hash, name);
                    (format!("{} for {} ether and gas", what.done(), format_ether(paid.data_fee)), false)
                }
                Some(Err(error)) => {
                    say(&format!("{name}: {error:#}"));
                    (format!("failed: {error}"), true)
                }
                None => (what.to_do(&rules), what.needs_attention()),
            }
        };
        let status = Status::of(chain, address).await?;
        let (mut expires, mut start_gas) = (None, None);
        if let Status::Active { left } = status {
            expires = Some(chain.now().await?.saturating_add(left));
            start_gas = Some(arbwasm::start_gas(chain, address).await?);
        }
        rows.push(Row { name: name.clone(), address, status, expires, start_gas, done, needs_attention });
    }
    Ok(rows)
}

/// The step due for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Due {
    Nothing,
    /// It expires within the margin, but was activated too short a time ago; seconds until it can be renewed.
    Later(u64),
    Renewal,
    /// It does not run; why.
    Activation(&'static str),
    /// The same where activations are paused.
    Nowhere(&'static str),
}

fn due(rules: &Rules, status: Status, within: u64) -> Due {
    let activation = |why| if rules.paused() { Due::Nowhere(why) } else { Due::Activation(why) };
    match status {
        Status::Active { left } if left > within * DAY => Due::Nothing,
        Status::Active { left } => {
            // Its age is known to the hour.
            match rules.keepalive.saturating_sub(rules.expiry.saturating_sub(left)) {
                0 => Due::Renewal,
                wait => Due::Later(wait),
            }
        }
        Status::Outdated { .. } => activation("it belongs to another Stylus version"),
        Status::Expired { .. } => activation("it has expired"),
        Status::Inactive => activation("it was never activated"),
    }
}

impl Due {
    fn done(&self) -> &'static str {
        if *self == Self::Renewal {
            "renewed"
        } else {
            "activated again"
        }
    }

    fn to_do(&self, rules: &Rules) -> String {
        match self {
            Self::Nothing => "-".into(),
            Self::Later(wait) => format!("can be renewed in {} days", wait.div_ceil(DAY)),
            Self::Renewal => "to be renewed".into(),
            Self::Activation(why) => format!("to be activated: {why}"),
            Self::Nowhere(why) => {
                format!("{why}, and activations are paused here ({} gas)", rules.activation_gas)
            }
        }
    }

    fn needs_attention(&self) -> bool {
        !matches!(self, Self::Nothing | Self::Later(_))
    }
}

impl Row {
    /// Its cells: name, address, Stylus version or state, start gas, expiry, step taken.
    pub fn cells(&self, now: u64) -> [String; 6] {
        let state = match self.status {
            Status::Active { .. } => "active".into(),
            Status::Outdated { version } => format!("of version {version}"),
            Status::Expired { age } => format!("expired, {} days old", age / DAY),
            Status::Inactive => "not active".into(),
        };
        let gas = self.start_gas.map_or_else(|| "-".into(), |(cached, uncached)| format!("{cached} / {uncached}"));
        let expires =
            self.expires.map_or_else(|| "-".into(), |at| format!("{} ({} days)", date(at), at.saturating_sub(now) / DAY));
        [self.name.clone(), format!("{:?}", self.address), state, gas, expires, self.done.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_follows_from_age_margin_and_pause() {
        let rules = Rules { version: 3, expiry: 365 * DAY, keepalive: 31 * DAY, activation_gas: 0 };
        let paused = Rules { activation_gas: 1_000_000_000, ..rules };
        let active = |left| Status::Active { left };
        for (status, within, expected) in [
            (active(181 * DAY), 180, Due::Nothing),
            (active(180 * DAY + 1), 180, Due::Nothing),
            (active(180 * DAY), 180, Due::Renewal),
            (active(0), 180, Due::Renewal),
            (active(334 * DAY), 365, Due::Renewal),
            (active(334 * DAY + 1), 365, Due::Later(1)),
            (active(365 * DAY), 365, Due::Later(31 * DAY)),
        ] {
            assert_eq!(due(&rules, status, within), expected, "{status:?} within {within}");
            assert_eq!(due(&paused, status, within), expected, "a pause does not matter to programs that run");
        }
        for (status, why) in [
            (Status::Outdated { version: 2 }, "it belongs to another Stylus version"),
            (Status::Expired { age: 366 * DAY }, "it has expired"),
            (Status::Inactive, "it was never activated"),
        ] {
            assert_eq!(due(&rules, status, 180), Due::Activation(why));
            assert_eq!(due(&paused, status, 180), Due::Nowhere(why));
        }
    }
}
