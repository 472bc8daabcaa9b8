//! The experiments on validation: tasks under policy 1, on the contract's own code.

use super::{Results, Scale, Setup};
use crate::network::workload::{Kind, Profile};

/// Sampling rates that are compared, in ten-thousandths.
pub const RATES: [u64; 5] = [0, 200, 500, 1_000, 2_000];
/// The contract's own rate, at which everything else is compared.
pub const RATE: u64 = 1_000;
/// Load of these runs, in thousandths.
const LOAD: u32 = 500;
/// Load of those in which nodes are never out of work.
const FULL: u32 = 1_200;
/// The factor of fees in the runs with high ones: the highest is then seven tenths of the highest that a validated task may have.
pub const DEAR: u32 = 10_000;
/// Kinds that take part, as the tables show them.
pub const KINDS: [Kind; 6] = [Kind::Steady, Kind::Slow, Kind::Flaky, Kind::Cheat, Kind::Sly, Kind::Withholding];
/// Of a thousand nodes, how many are slow, flaky, dead, broken, cheats, sly and withholding.
pub const MIX: [usize; 7] = [100, 50, 0, 0, 40, 40, 40];
/// The same without any that cheat.
const HONEST: [usize; 7] = [100, 50, 0, 0, 0, 0, 0];

/// Another value of a parameter, compared with its default at some rate.
#[derive(Clone, Copy, Debug)]
pub struct Other {
    pub parameter: &'static str,
    pub value: u64,
    pub rate: u64,
}

/// A lower limit of kickout, at the rate at which the default one takes out most.
pub const KICKOUT: Other = Other { parameter: "kickoutMilli", value: 1_500, rate: 2_000 };
/// The shortest time for reveals that the contract takes.
pub const WINDOW: Other = Other { parameter: "revealWindow", value: 3_600, rate: RATE };
/// More open commitments.
pub const OPEN: Other = Other { parameter: "openMost", value: 4, rate: RATE };

impl Other {
    /// Its name among the results.
    pub fn name(&self) -> String {
        other(self.rate, self.parameter)
    }
}

/// The name among the results of a rate; none where tasks run under policy 0.
pub fn at(rate: Option<u64>) -> String {
    rate.map_or("validation/single".into(), |rate| format!("validation/{rate}"))
}

/// The same where nobody cheats.
pub fn honest(rate: Option<u64>) -> String {
    rate.map_or("validation/honest/single".into(), |rate| format!("validation/honest/{rate}"))
}

/// The same with more work than nodes can do.
pub fn full(rate: Option<u64>) -> String {
    rate.map_or("validation/full/single".into(), |rate| format!("validation/full/{rate}"))
}

/// The name of an arrangement that differs from that of a rate in something.
fn other(rate: u64, what: &str) -> String {
    format!("validation/{rate}/{what}")
}

/// The name of that with high fees.
pub fn dear() -> String {
    other(RATE, "dear")
}

/// Everything with and without validation, one run each.
fn setups(scale: &Scale) -> Vec<Setup> {
    let usual = Profile {
        nodes: scale.nodes / 2,
        tasks: scale.validation_tasks,
        load: LOAD,
        grouped: 0,
        sampled: 1_000,
        named: true,
        mix: MIX,
        even: true,
        churn: false,
        ..Profile::default()
    };
    let with = |rate: u64, more: &[(&'static str, u64)]| {
        let mut parameters = vec![("sampleBps", rate), ("slashImages", 1)];
        parameters.extend(more);
        parameters
    };
    let setup = |name: String, profile: &Profile, parameters| Setup { name, profile: profile.clone(), merit: None, parameters };
    let mut setups = Vec::new();
    type Name = fn(Option<u64>) -> String;
    let few = scale.validation_tasks / 2;
    for (name, mix, load, tasks) in [(at as Name, MIX, LOAD, usual.tasks), (honest, HONEST, LOAD, few), (full, HONEST, FULL, few)]
    {
        let profile = Profile { tasks, load, mix, ..usual.clone() };
        setups.push(setup(name(None), &Profile { sampled: 0, ..profile.clone() }, vec![]));
        setups.extend(RATES.map(|rate| setup(name(Some(rate)), &profile, with(rate, &[]))));
    }
    setups.extend([KICKOUT, WINDOW, OPEN].map(|o| setup(o.name(), &usual, with(o.rate, &[(o.parameter, o.value)]))));
    setups.push(setup(dear(), &Profile { price: DEAR, ..usual.clone() }, with(RATE, &[])));
    setups
}

/// Runs them.
///
/// # Errors
/// See [`super::simulate`].
pub(super) fn play(results: &mut Results, scale: &Scale, seed: u64) -> Result<(), String> {
    results.play("Validation", &setups(scale), seed, scale.seeds)
}
