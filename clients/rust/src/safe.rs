//! Files for the transaction builder of a Safe, which it takes by drag and drop.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use alloy::primitives::{keccak256, Address, Bytes};
use serde_json::{json, Value};

use crate::Error;

/// Adds a call to a file, which is created if missing; returns the number of calls in it. `safe` is the sender.
///
/// # Errors
/// [`Error::File`] if it cannot be read or written, [`Error::Answer`] if it is for another chain, or no such file.
pub fn add(path: &Path, chain: u64, safe: Address, to: Address, data: &Bytes, what: &str) -> Result<usize, Error> {
    let failed = |source| Error::File { path: path.into(), source };
    let wrong = |why: String| Error::Answer { what: path.display().to_string(), why };
    let mut batch: Value = match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => empty(chain, safe),
        Err(error) => return Err(failed(error)),
    };
    if batch["chainId"].as_str().and_then(|id| id.parse().ok()) != Some(chain) {
        return Err(wrong(format!("it is for chain {}, and this is {chain}", batch["chainId"])));
    }
    let transactions = batch["transactions"].as_array_mut().ok_or_else(|| wrong("it holds no transactions".into()))?;
    transactions.push(json!({ "to": to, "value": "0", "data": data, "contractMethod": null, "contractInputsValues": null }));
    let count = transactions.len();
    let meta = batch["meta"].as_object_mut().ok_or_else(|| wrong("it has no `meta`".into()))?;
    let before = meta.get("description").and_then(Value::as_str).unwrap_or_default();
    let described = if before.is_empty() { what.to_string() } else { format!("{before}; {what}") };
    meta.insert("description".into(), described.into());
    meta.remove("checksum");
    let sum = checksum(&batch);
    batch["meta"]["checksum"] = sum.into();
    let draft = path.with_extension("part");
    fs::write(&draft, format!("{batch:#}\n")).and_then(|()| fs::rename(&draft, path)).map_err(failed)?;
    Ok(count)
}

fn empty(chain: u64, safe: Address) -> Value {
    json!({
        "version": "1.0", "chainId": chain.to_string(), "createdAt": SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis() as u64,
        "meta": {
            "name": "Transactions Batch", "description": "", "txBuilderVersion": "1.18.2",
            "createdFromSafeAddress": safe, "createdFromOwnerAddress": "",
        },
        "transactions": [],
    })
}

/// The checksum that the builder compares to warn of changed files: the hash of all values in the order of their names, without the
/// batch's own name.
fn checksum(batch: &Value) -> String {
    let mut batch = batch.clone();
    batch["meta"]["name"] = Value::Null;
    keccak256(serialised(&batch)).to_string()
}

fn serialised(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(serialised).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            let mut names: Vec<_> = fields.keys().collect();
            names.sort();
            let values: String = names.iter().map(|name| serialised(&fields[*name]) + ",").collect();
            format!("{{{}{values}}}", json!(names))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_the_builders_own() {
        // Written by Safe's transaction builder 1.18.2.
        let batch = json!({
            "version": "1.0", "chainId": "1", "createdAt": 1_761_326_849_944_u64,
            "meta": {
                "name": "Transactions Batch", "description": "", "txBuilderVersion": "1.18.2",
                "createdFromSafeAddress": "0xA77DE01e157f9f57C7c4A326eeE9C4874D0598b6", "createdFromOwnerAddress": "",
            },
            "transactions": [{
                "to": "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "value": "0", "data": null,
                "contractMethod": {
                    "inputs": [
                        { "internalType": "address", "name": "spender", "type": "address" },
                        { "internalType": "uint256", "name": "value", "type": "uint256" },
                    ],
                    "name": "approve", "payable": false,
                },
                "contractInputsValues": { "spender": "0x474e5Ded6b5D078163BFB8F6dBa355C3aA5478C8", "value": "100000000000" },
            }],
        });
        assert_eq!(checksum(&batch), "0x8b5032f716845c8b08bab3d63dbd9ba92e056f3557793cd041e59b84e16aa989");
    }

    #[test]
    fn calls_are_added_to_a_file_of_the_same_chain() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("batch.json");
        let (safe, to) = (Address::repeat_byte(1), Address::repeat_byte(2));
        assert_eq!(add(&path, 7, safe, to, &Bytes::from([1]), "setPaused(bool)").unwrap(), 1);
        assert_eq!(add(&path, 7, safe, to, &Bytes::from([2]), "acceptOwnership()").unwrap(), 2);
        let batch: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(batch["transactions"][1]["data"], "0x02");
        assert_eq!(batch["meta"]["description"], "setPaused(bool); acceptOwnership()");
        let mut without = batch.clone();
        without["meta"].as_object_mut().unwrap().remove("checksum");
        assert_eq!(batch["meta"]["checksum"], checksum(&without));
        assert!(add(&path, 8, safe, to, &Bytes::new(), "x").is_err());
        fs::write(&path, "{}").unwrap();
        assert!(add(&path, 7, safe, to, &Bytes::new(), "x").is_err());
    }
}
