//! An operator's terms: the least pay of a second, and the policies.

use alloy::primitives::U256;
use muster_client::{parse_amount, show_amount, IMuster};
use serde::{Deserialize, Deserializer};

/// A node's terms.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The least pay of an estimated second, by the kind of task.
    #[serde(default)]
    pub least: Least,
    /// The accepted policies; all, if left out.
    pub policies: Option<Vec<Policy>>,
    /// Seconds without a refused task after which a node paused for one is resumed.
    #[serde(default = "minute")]
    pub calm: u64,
}

/// Amounts for an estimated second.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Least {
    #[serde(default, deserialize_with = "amount")]
    images: U256,
    #[serde(default, deserialize_with = "amount")]
    gpt: U256,
    #[serde(default, deserialize_with = "amount")]
    fine_tuning: U256,
}

/// Redundancy policies by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    Single,
    Sampled,
    Replicated,
    Rated,
}

fn minute() -> u64 {
    60
}

fn amount<'de, D: Deserializer<'de>>(from: D) -> Result<U256, D::Error> {
    parse_amount(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// The assumed members of a group that share a fee, where the task does not tell.
const MEMBERS: u64 = 3;

/// The pay of an estimated second for a right answer, in wei. For a group it is the node's share, as if all were equally quick.
fn second_of(task: &IMuster::TaskView) -> U256 {
    let fee = U256::from(task.fee);
    let part = match task.redundancy {
        0 => fee,
        // The pay without a check; a check pays no less, as long as the reserve lasts.
        1 => fee * U256::from(10_000) / U256::from(10_000 + 2 * u64::from(task.sampleBps)),
        _ => fee / U256::from(MEMBERS),
    };
    part / U256::from(task.estimate.max(1))
}

impl Terms {
    /// The least pay of a second of a kind.
    pub fn least(&self, kind: u8) -> U256 {
        let Least { images, gpt, fine_tuning } = self.least;
        [images, gpt, fine_tuning].get(usize::from(kind)).copied().unwrap_or_default()
    }

    /// Whether every task is accepted.
    pub fn is_empty(&self) -> bool {
        self.policies.is_none() && (0..3).all(|kind| self.least(kind).is_zero())
    }

    /// The reason why a task is refused, if it is.
    pub fn refuse(&self, task: &IMuster::TaskView) -> Option<String> {
        let policy = [Policy::Single, Policy::Sampled, Policy::Replicated, Policy::Rated].get(usize::from(task.redundancy))?;
        if self.policies.as_ref().is_some_and(|taken| !taken.contains(policy)) {
            return Some(format!("task {} is {policy:?}, which `terms` leaves out", task.id).to_lowercase());
        }
        let (brings, least) = (second_of(task), self.least(task.kind));
        (brings < least).then(|| {
            format!("task {} brings {} a second, and `terms` asks for {}", task.id, show_amount(brings), show_amount(least))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Terms {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_task_is_taken_for_what_its_node_gets() {
        let task = |redundancy, fee| IMuster::TaskView {
            id: 1,
            kind: 1,
            fee,
            estimate: 60,
            redundancy,
            sampleBps: 1_000,
            ..Default::default()
        };
        let asks = terms("least = { gpt = \"100\" }");
        for (redundancy, least) in [(0, 6_000), (1, 7_200), (2, 18_000), (3, 18_000)] {
            assert_eq!(asks.refuse(&task(redundancy, least)), None, "{redundancy}");
            assert!(asks.refuse(&task(redundancy, least - 1)).is_some(), "{redundancy}");
        }
        assert_eq!(asks.refuse(&IMuster::TaskView { kind: 0, ..task(0, 1) }), None, "another kind");
        let some = terms("policies = [\"single\", \"sampled\"]");
        assert!(some.refuse(&task(0, 0)).is_none() && some.refuse(&task(2, 1 << 60)).is_some());
        assert!(!some.is_empty() && !asks.is_empty() && terms("").is_empty());
        for wrong in ["least = { text = \"1\" }", "least = { gpt = 1 }", "policies = [\"twice\"]", "most = 1"] {
            assert!(toml::from_str::<Terms>(wrong).is_err(), "{wrong}");
        }
    }
}
