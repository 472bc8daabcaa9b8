//! The last sections of `clients/vectors.json`: numbers of the contract that others compute too. With NEW set they are written.

use std::{env, fs};

use alloy_primitives::keccak256;
use muster_core::id::TaskId;
use muster_core::value::key;
use muster_protocol::flow::draw::Rng;
use muster_protocol::native::Memory;
use muster_tests::root;

/// Where these sections begin.
const FROM: &str = ",\n  \"lots\": ";

/// A fee, the nodes that it is for, the estimate in seconds, and the task's id.
const QUEUED: [(u128, u128, u32, u64); 8] = [
    (50, 1, 50, 1),
    (1, 1, 16_777_215, 2),
    (200_000_000_000_000_000, 1, 110, 12),
    (200_000_000_000_000_001, 1, 110, 12),
    (200_000_000_000_000_000, 3, 110, 13),
    (7_000_000_000_000_000_006, 7, 60, 67_108_863),
    (7_000_000_000_000_000_006, 7, 60, 67_108_864),
    ((1 << 87) - 1, 1, 30, (1 << 40) - 1),
];

#[test]
fn vectors_are_what_the_contract_computes() {
    let memory = Memory::new();
    let lots = [1, 2, 12, 300, 70_000, (1 << 40) - 1].map(|id: u64| {
        let hash = keccak256(id.to_be_bytes());
        let lot = Rng::new(&memory, hash.0, TaskId(id)).below(&memory, 10_000);
        format!("    {{ \"hash\": \"{hash}\", \"id\": \"{id}\", \"lot\": {lot} }}")
    });
    let keys = QUEUED.map(|(fee, nodes, estimate, id)| {
        let key = key(fee / nodes, estimate, TaskId(id));
        format!(
            "    {{ \"fee\": \"{fee}\", \"nodes\": {nodes}, \"estimate\": {estimate}, \"id\": \"{id}\", \"key\": \"{key}\" }}"
        )
    });
    let path = root().join("clients/vectors.json");
    let text = fs::read_to_string(&path).unwrap();
    // Other tests read the sections before them.
    let (before, _) = text.split_once(FROM).expect("the sections are there");
    let written = format!("{before}{FROM}[\n{}\n  ],\n  \"keys\": [\n{}\n  ]\n}}\n", lots.join(",\n"), keys.join(",\n"));
    if env::var_os("NEW").is_some() {
        fs::write(&path, written).unwrap();
    } else {
        assert!(text == written, "set NEW to write them");
    }
}
