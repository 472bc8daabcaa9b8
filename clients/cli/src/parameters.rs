//! The contract's parameters as the interface lists them.

use std::sync::LazyLock;

use serde_json::Value;

/// abi/parameters.json.
pub static PARAMETERS: LazyLock<Vec<Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("parameters.json")).expect("abi/parameters.json is JSON"));
