//! Settings out of the environment.

use anyhow::{anyhow, Result};

/// A variable that is set to something.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|text| text.trim().to_string()).filter(|text| !text.is_empty())
}

/// A variable that is a whole number of something.
pub fn number<N: std::str::FromStr>(name: &str, of: &str) -> Result<Option<N>> {
    variable(name).map(|text| text.parse().map_err(|_| anyhow!("{name} is {text}, which is not a number of {of}"))).transpose()
}
