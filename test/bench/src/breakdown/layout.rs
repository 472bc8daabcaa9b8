//! Names of storage words: solc's layout, and for slots that are hashes the input that a call hashed to reach them.

use alloy_primitives::{keccak256, B256, U256};
use anyhow::{Context, Result};
use muster_devnode::trace::Hostio;
use muster_protocol::layout::{BRANCHES, CLASSES, HOLDERS, MEMBERS, POOLS, TOURNAMENT_TREES};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// Most words of a mapping's entry.
const ENTRY: u64 = 64;

/// `abi/MusterStorage.json`, as solc writes it.
#[derive(Deserialize)]
pub struct Layout {
    storage: Vec<Place>,
    types: BTreeMap<String, Kind>,
}

/// A variable, or a member of a struct.
#[derive(Deserialize)]
struct Place {
    label: String,
    slot: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "numberOfBytes")]
    bytes: String,
    #[serde(default)]
    members: Vec<Place>,
    /// Of a mapping: the type of its values.
    value: Option<String>,
}

impl Place {
    fn at(&self) -> u64 {
        self.slot.parse().unwrap_or(u64::MAX)
    }
}

/// The inputs that a call hashed: digests, each with the mapping's number and the key.
#[derive(Default)]
pub struct Hashed(HashMap<B256, (u64, U256)>);

impl Hashed {
    /// All that programs hashed in a call, frames within each other included.
    pub fn of(hostios: &[Hostio]) -> Hashed {
        let mut hashed = Hashed::default();
        hashed.add(hostios);
        hashed
    }

    fn add(&mut self, hostios: &[Hostio]) {
        for hostio in hostios {
            if hostio.name == "native_keccak256" && hostio.args.len() == 64 {
                let (key, map) = hostio.args.split_at(32);
                if let Ok(map) = U256::from_be_slice(map).try_into() {
                    self.0.insert(keccak256(&hostio.args), (map, U256::from_be_slice(key)));
                }
            }
            if let Some(inner) = &hostio.steps {
                self.add(inner);
            }
        }
    }

    /// Mapping, key and word of the entry that a slot belongs to.
    fn entry(&self, slot: U256) -> Option<(u64, U256, u64)> {
        let word = |digest: &B256| slot.checked_sub(U256::from_be_bytes(digest.0)).filter(|word| *word < U256::from(ENTRY));
        self.0.iter().find_map(|(digest, (map, key))| word(digest).map(|word| (*map, *key, word.to())))
    }
}

impl Layout {
    /// That of `abi/MusterStorage.json`.
    pub fn read() -> Result<Layout> {
        let path = "abi/MusterStorage.json";
        let text = std::fs::read_to_string(path).with_context(|| format!("{path} can't be read: run this in the project"))?;
        serde_json::from_str(&text).context(path)
    }

    /// The name of a word; several words of one kind share a name.
    pub fn name(&self, slot: B256, hashed: &Hashed) -> String {
        let slot = U256::from_be_bytes(slot.0);
        let (variable, key, word) = match hashed.entry(slot) {
            Some((map, key, word)) => (map, Some(key), word),
            None => match u64::try_from(slot) {
                Ok(slot) => (slot, None, 0),
                Err(_) => return "a word that no mapping of the layout leads to".into(),
            },
        };
        let Some(place) = self.storage.iter().find(|place| place.at() == variable) else {
            return format!("slot {variable}, which the layout does not name");
        };
        let mut name = place.label.clone();
        let Some(key) = key else { return name };
        if let Some(value) = self.types.get(&place.kind).and_then(|kind| kind.value.as_deref()) {
            self.member(&mut name, value, word);
        }
        if let Some(part) = part(variable, key) {
            name.push_str(", ");
            name.push_str(&part);
        }
        name
    }

    /// Adds the names of the members that a word of a record is in.
    fn member(&self, name: &mut String, kind: &str, word: u64) {
        let Some(kind) = self.types.get(kind) else { return };
        // Members of one word are not told apart: the word is the unit.
        if kind.bytes.parse().is_ok_and(|bytes: u64| bytes <= 32) {
            return;
        }
        if let Some(member) = kind.members.iter().rfind(|member| member.at() <= word) {
            name.push('.');
            name.push_str(&member.label);
            self.member(name, &member.kind, word - member.at());
        }
    }
}

/// Which part of a mapping a key leads to, where the layout gives keys parts of their own.
fn part(variable: u64, key: U256) -> Option<String> {
    let key: u64 = key.try_into().ok()?;
    let is = |map: u8| variable == u64::from(map);
    let of = |active: bool| if active { "active nodes" } else { "idle nodes" };
    if is(BRANCHES) {
        let active = key >> 58 & 1 == 1;
        let level = match key >> 56 & 3 {
            2 => "root".into(),
            1 => "sizes".into(),
            _ if key >> 24 & 0xff == 0xff => "a size".into(),
            _ => format!("level {}", key >> 24 & 0xff),
        };
        return Some(format!("{}: {level}", of(active)));
    }
    if is(TOURNAMENT_TREES) {
        let tree = match (key >> 29) >> 32 {
            0 => "keys",
            1 => "complements of the keys",
            2 => "best by VRAM",
            3 => "worst by queue",
            _ => "stakes",
        };
        return Some(format!("{tree}: level {}", key >> 24 & 0x1f));
    }
    if is(CLASSES) {
        return Some(of(key >> 32 != 0).into());
    }
    if is(MEMBERS) {
        return Some(of(key >> 23 & 1 == 1).into());
    }
    if is(HOLDERS) {
        return Some(if key.trailing_zeros() >= 24 { "first word".into() } else { "further words".into() });
    }
    (is(POOLS) && key == u64::from(u32::MAX)).then(|| "nodes that wait apart".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_protocol::layout::{node, NODES, PENDING};
    use muster_protocol::native::solidity_slot;

    #[test]
    fn words_have_the_names_of_the_layout() {
        std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
        let layout = Layout::read().unwrap();
        let mut hashed = Hashed::default();
        let mut at = |map: u8, key: u64, word: u64| {
            let slot = B256::from(solidity_slot(map, key.into()).to_be_bytes());
            hashed.0.insert(slot, (map.into(), U256::from(key)));
            let word = B256::from(U256::from_be_bytes(slot.0) + U256::from(word));
            layout.name(word, &hashed)
        };
        assert_eq!(at(NODES, 3, node::ORDER), "nodes.order");
        assert_eq!(at(NODES, 3, node::MODELS + 5), "nodes.models");
        assert_eq!(at(PENDING, 3, 1), "pending.task.order");
        assert_eq!(at(BRANCHES, 1 << 57, 0), "branches, idle nodes: root");
        assert_eq!(at(BRANCHES, 1 << 58 | 24 << 32 | 0xff << 24, 0), "branches, active nodes: a size");
        assert_eq!(at(TOURNAMENT_TREES, 4 << 61 | 2 << 24, 0), "tournamentTrees, stakes: level 2");
        assert_eq!(at(POOLS, u32::MAX.into(), 0), "pools, nodes that wait apart");
        assert_eq!(layout.name(B256::ZERO, &hashed), "head");
        assert_eq!(layout.name(B256::repeat_byte(7), &hashed), "a word that no mapping of the layout leads to");
    }
}
