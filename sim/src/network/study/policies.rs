//! The same tasks on one node, on one that may be checked, and on three at once, side by side.

use super::validation::{MIX, RATE};
use super::{Results, Scale, Setup};
use crate::network::workload::Profile;

/// How every task runs that the contract takes under the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Policy 0.
    Single,
    /// Policy 1, at the contract's own rate.
    Sampled,
    /// Policy 2.
    Replicated,
}

impl Way {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 3] = [Self::Single, Self::Sampled, Self::Replicated];

    /// As tables show it.
    pub fn name(self) -> String {
        match self {
            Self::Single => "single".into(),
            Self::Sampled => format!("sampled {} %", RATE as f64 / 100.0),
            Self::Replicated => "three at once".into(),
        }
    }

    /// Its name among the results at a load of single tasks, in thousandths.
    pub fn at(self, load: u32) -> String {
        format!("policies/{load}/{}", self.name())
    }

    fn profile(self, usual: &Profile) -> Profile {
        match self {
            Self::Single => usual.clone(),
            Self::Sampled => Profile { sampled: 1_000, ..usual.clone() },
            Self::Replicated => Profile { grouped: 1_000, ..usual.clone() },
        }
    }
}

/// Loads in thousandths, as the tasks are if one node does each: three do them in three times the work, so at the second there is more of it
/// than nodes can do.
pub const LOADS: [u32; 2] = [200, 500];

/// Runs them. Nodes, tasks and when these come are the same under every policy.
///
/// # Errors
/// See [`super::simulate`].
pub(super) fn play(results: &mut Results, scale: &Scale, seed: u64) -> Result<(), String> {
    let mut setups = Vec::new();
    for load in LOADS {
        let usual = Profile {
            nodes: scale.nodes / 2,
            tasks: scale.validation_tasks,
            load,
            grouped: 0,
            counted_once: true,
            named: true,
            mix: MIX,
            even: true,
            churn: false,
            ..Profile::default()
        };
        setups.extend(Way::ALL.map(|way| Setup {
            name: way.at(load),
            profile: way.profile(&usual),
            merit: None,
            parameters: vec![("slashImages", 1)],
        }));
    }
    results.play("Policies side by side", &setups, seed, scale.seeds)
}
