//! Bytes as the agent's configuration, by the agent's own reader.

use crate::config::Config;
use std::collections::BTreeSet;

/// Panics where the agent would take settings that cannot work.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(config) = Config::parse(text) else { return };
    assert!(!config.nodes.is_empty() && !config.rpc.is_empty() && !config.store.get.is_empty() && !config.store.put.is_empty());
    assert!(config.look_every() > std::time::Duration::ZERO);
    let names: BTreeSet<_> = config.nodes.iter().map(|node| &node.name).collect();
    assert_eq!(names.len(), config.nodes.len());
    for node in &config.nodes {
        // The folder of a node's work is below the agent's, whatever its name.
        assert!(config.work(node).starts_with(&config.home) && !node.name.contains(['/', '.']), "{}", node.name);
        let ids = node.model_ids().expect("it was checked");
        assert_eq!(ids.len(), node.models.len());
        assert!(!node.executor.command.is_empty() && !node.card().is_empty());
    }
    config.names();
    config.seed();
}
