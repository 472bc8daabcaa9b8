//! `docs/generated/storage.md`: the contents of each slot, from solc's layout, the comments of `abi/MusterStorage.sol`, and for the fields
//! that are parameters from their table.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::markdown::{documented, row};
use muster_protocol::parameters::PARAMETERS;

/// `abi/MusterStorage.json`, as solc writes it.
#[derive(Deserialize)]
struct Layout {
    storage: Vec<Place>,
    types: BTreeMap<String, Kind>,
}

/// A variable, or a member of a struct.
#[derive(Deserialize)]
struct Place {
    label: String,
    /// Bytes from the right end of the word.
    offset: usize,
    slot: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Kind {
    label: String,
    #[serde(rename = "numberOfBytes")]
    bytes: String,
    #[serde(default)]
    members: Vec<Place>,
}

impl Kind {
    /// The type as the declaration writes it.
    fn name(&self) -> String {
        self.label.replace("struct MusterStorage.", "")
    }

    fn bytes(&self) -> Result<usize> {
        self.bytes.parse().with_context(|| self.label.clone())
    }
}

impl Layout {
    fn kind(&self, place: &Place) -> Result<&Kind> {
        self.types.get(&place.kind).with_context(|| format!("solc describes no {}", place.kind))
    }

    fn record(&self, name: &str) -> Result<&Kind> {
        self.types.get(&format!("t_struct({name})_storage")).with_context(|| format!("solc describes no struct {name}"))
    }

    /// Shell that cuts a member of a record out of a word in hexadecimal.
    fn cut(&self, record: &str, member: &str) -> Result<String> {
        let found = self.record(record)?.members.iter().find(|place| place.label == member);
        let place = found.with_context(|| format!("{record} has no {member}"))?;
        let bytes = self.kind(place)?.bytes()?;
        Ok(format!("${{word:{}:{}}}", 2 + 64 - 2 * (place.offset + bytes), 2 * bytes))
    }
}

/// Comments by the names of structs, `Struct.member` and variables.
fn comments(solidity: &str) -> (Vec<&str>, HashMap<String, String>) {
    let (mut structs, mut found, mut inside) = (Vec::new(), HashMap::new(), None);
    for (comment, line) in documented(solidity) {
        if let Some(name) = line.strip_prefix("struct ").and_then(|rest| rest.strip_suffix(" {")) {
            structs.push(name);
            inside = Some(name);
            found.insert(name.to_string(), comment);
        } else if line == "}" {
            inside = None;
        } else if let Some(name) = line.strip_suffix(';').and_then(|rest| rest.split(' ').next_back()) {
            found.insert(inside.map_or(name.to_string(), |record| format!("{record}.{name}")), comment);
        }
    }
    (structs, found)
}

/// The text of the page.
///
/// # Errors
/// When a file under `abi/` cannot be read, or something declared has no comment.
pub fn page(root: &Path) -> Result<String> {
    let solidity = fs::read_to_string(root.join("abi/MusterStorage.sol"))?;
    let layout: Layout = serde_json::from_str(&fs::read_to_string(root.join("abi/MusterStorage.json"))?)?;
    let (structs, comments) = comments(&solidity);
    // A field without a comment of its own has that of its struct.
    let meaning = |name: &str, kind: &Kind| {
        let own = comments.get(name).filter(|text| !text.is_empty());
        let text = own
            .or_else(|| comments.get(&kind.name()))
            .with_context(|| format!("abi/MusterStorage.sol does not say what {name} is"))?;
        Ok::<_, anyhow::Error>(text.replace('|', "\\|"))
    };
    // A field that is a parameter has no comment: its table has the description.
    let parameter = |record: &str, member: &str| {
        let number = PARAMETERS.iter().position(|p| (p.record, p.name) == (record, member))?;
        let p = &PARAMETERS[number];
        Some(format!("{} ({}; [parameter {number}](../parameters.md)).", p.doc, p.unit))
    };
    let node_records = layout.storage.iter().find(|variable| variable.label == "nodes").context("there is no variable nodes")?;
    let mut page = HEAD
        .replace("NODES", &node_records.slot)
        .replace("STATUS", &layout.cut("Node", "status")?)
        .replace("STAKE", &layout.cut("Node", "stake")?)
        .replace("ACCOUNT", &layout.cut("Operator", "account")?);
    for variable in &layout.storage {
        let kind = layout.kind(variable)?;
        let text = meaning(&variable.label, kind)?;
        let (text, key) = match text.split_once(" Key: ") {
            Some((text, key)) => (text, key.trim_end_matches('.')),
            None => (text.as_str(), ""),
        };
        anyhow::ensure!(
            kind.label.starts_with("mapping") != key.is_empty(),
            "the comment of {} must end with its key",
            variable.label
        );
        page += &row(&[&variable.slot, &format!("`{}`", variable.label), &format!("`{}`", kind.name()), text, key]);
    }
    page += "\n## Structs\n\nPictures show a word from its left end, with bits; `-` is unused.\n";
    for name in structs {
        let record = layout.record(name)?;
        page += &format!("\n### {name}\n\n{}\n\n", comments[name]);
        if record.bytes()? == 32 {
            page += &picture(&layout, record)?;
            page += "| bits | byte offset | type | member | what it is |\n| ---: | ---: | --- | --- | --- |\n";
        } else {
            page += "| words | type | member | what it is |\n| ---: | --- | --- | --- |\n";
        }
        for member in &record.members {
            let kind = layout.kind(member)?;
            let text = match parameter(name, &member.label) {
                Some(text) => text,
                None => meaning(&format!("{name}.{}", member.label), kind)?,
            };
            let range = |first: usize, count: usize| {
                if count == 1 {
                    first.to_string()
                } else {
                    format!("{first} to {}", first + count - 1)
                }
            };
            let (kind_name, label) = (format!("`{}`", kind.name()), format!("`{}`", member.label));
            page += &if record.bytes()? == 32 {
                row(&[&range(8 * member.offset, 8 * kind.bytes()?), &member.offset.to_string(), &kind_name, &label, &text])
            } else {
                row(&[&range(member.slot.parse()?, kind.bytes()?.div_ceil(32)), &kind_name, &label, &text])
            };
        }
    }
    Ok(page)
}

/// A word from its most significant end, with the members' names and bits.
fn picture(layout: &Layout, record: &Kind) -> Result<String> {
    let mut cells = Vec::new();
    for member in &record.members {
        cells.push((member.label.as_str(), 8 * layout.kind(member)?.bytes()?));
    }
    let used: usize = cells.iter().map(|(_, bits)| bits).sum();
    if used < 256 {
        cells.push(("-", 256 - used));
    }
    let (mut names, mut sizes) = (String::from("|"), String::from(" "));
    for (name, bits) in cells.iter().rev() {
        let width = name.len().max(3) + 2;
        names += &format!("{name:^width$}|");
        sizes += &format!("{bits:^width$} ");
    }
    Ok(format!("```text\n{names}\n{}\n```\n\n", sizes.trim_end()))
}

const HEAD: &str = "\
# Storage layout

[All pages](../README.md)

Written by `script/abi` from [`abi/MusterStorage.sol`](../../abi/MusterStorage.sol) and what solc makes of it,
[`abi/MusterStorage.json`](../../abi/MusterStorage.json); `script/abi --check` fails when it differs. That the contracts put
things there, and nothing anywhere else, is tested (`test/suite/tests/network/storage.rs`).

Callers of Muster do not need this page: the lens functions of the interface give everything. It is for explorers and
tools that read `eth_getStorageAt`, or proofs of it.

The router delegate-calls the programs, so all of them work on the storage of one account: **everything lies at Muster's
one public address**, and the programs' own addresses hold nothing. Stakes are in stake units (`ownership.stakeUnit` says how
many wei that is), fees and credits in wei, times in seconds since 1970.

## Reading it

* A variable lies at the slot of its number. Members of a struct share a word from its right (least significant) end on: a
  member of `n` bytes at byte offset `o` is `(word >> 8 o) & (2^(8 n) - 1)`.
* An entry of a mapping lies at `keccak256(key . slot)`: the key and the mapping's slot, each as 32 bytes. Numbers and
  addresses are padded on the left, a `bytes4` on the right. Word `i` of a struct of several words is at that slot `+ i`.
* Elements of `uint32[8]` and `uint64[4]` fill one word from the right. `bytes4[]` has its length at its slot and its
  elements from `keccak256(slot)` on, eight to a word. A `string` below 32 bytes stands in its word from the left, with
  twice its length in the last byte; a longer one has `2 length + 1` there and its bytes from `keccak256(slot)` on.

For example, node number `$NODE` of the Muster at `$MUSTER` with cast (`ETH_RPC_URL` names the chain's node). `nodes` is at
slot NODES; word 0 of an entry is a `Node`, word 1 an `Operator`:

```sh
slot=$(cast index uint256 \"$NODE\" NODES)
word=$(cast storage \"$MUSTER\" \"$slot\")
echo \"status $((16#STATUS)), stake $((16#STAKE)) stake units\"
next=$(node -p '\"0x\" + (BigInt(process.argv[1]) + 1n).toString(16).padStart(64, \"0\")' \"$slot\")
word=$(cast storage \"$MUSTER\" \"$next\")
echo \"operator 0xACCOUNT\"
```

`test/clients/cast.sh` runs these lines.

## Variables

| slot | name | type | what it is | its keys |
| ---: | --- | --- | --- | --- |
";
