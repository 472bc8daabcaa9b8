//! The methods of development nodes: time, mining, snapshots, edits. Names are Hardhat's and anvil's.

use alloy_primitives::{Address, Bytes, B256, U64};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::error::RpcError;
use super::failure::{args, Failure};
use super::params::Params;
use super::types::Quantity;
use super::{raw, Context};

/// Parameter of `evm_mine`: nothing, a timestamp, or an object.
#[derive(Deserialize)]
#[serde(untagged)]
enum MineParam {
    Options { timestamp: Option<Quantity>, blocks: Option<Quantity> },
    Timestamp(Quantity),
}

/// Parameter of `evm_setIntervalMining`: an interval, or a range of which Hardhat takes any.
#[derive(Deserialize)]
#[serde(untagged)]
enum IntervalParam {
    Exactly(Quantity),
    Between([Quantity; 2]),
}

/// Runs one method.
pub(super) fn dispatch(context: &Context, method: &str, params: Params) -> Result<Box<RawValue>, Failure> {
    let chain = &context.chain;
    let mut p = params;
    let answer = match method {
        // ---- time ----
        "evm_increaseTime" | "anvil_increaseTime" => {
            args!(p, seconds: req Quantity);
            raw(&chain.increase_time(seconds.to_u64())?)
        }
        "evm_setNextBlockTimestamp" | "anvil_setNextBlockTimestamp" => {
            args!(p, timestamp: req Quantity);
            chain.set_next_timestamp(timestamp.to_u64())?;
            raw(&())
        }

        // ---- mining ----
        "evm_mine" => {
            args!(p, option: opt MineParam);
            let (timestamp, blocks) = match option {
                None => (None, None),
                Some(MineParam::Timestamp(timestamp)) => (Some(timestamp), None),
                Some(MineParam::Options { timestamp, blocks }) => (timestamp, blocks),
            };
            if let Some(timestamp) = timestamp {
                chain.set_next_timestamp(timestamp.to_u64())?;
            }
            chain.mine(blocks.map_or(1, Quantity::to_u64), 1)?;
            raw(&"0x0")
        }
        "anvil_mine" | "hardhat_mine" => {
            args!(p, blocks: opt Quantity, interval: opt Quantity);
            chain.mine(blocks.map_or(1, Quantity::to_u64), interval.map_or(1, Quantity::to_u64))?;
            raw(&())
        }
        "evm_setAutomine" | "anvil_setAutomine" | "anvil_setAutoMine" => {
            args!(p, on: req bool);
            chain.set_automine(on);
            raw(&true)
        }
        "anvil_getAutomine" | "hardhat_getAutomine" => {
            args!(p);
            raw(&chain.automine())
        }
        // Hardhat counts milliseconds, anvil seconds.
        "evm_setIntervalMining" => {
            args!(p, interval: req IntervalParam);
            chain.set_interval(match interval {
                IntervalParam::Exactly(milliseconds) | IntervalParam::Between([milliseconds, _]) => milliseconds.to_u64(),
            })?;
            raw(&true)
        }
        "anvil_setIntervalMining" => {
            args!(p, seconds: req Quantity);
            chain.set_interval(seconds.to_u64().saturating_mul(1_000))?;
            raw(&())
        }
        "anvil_getIntervalMining" => {
            args!(p);
            let milliseconds = chain.interval();
            raw(&(milliseconds > 0).then_some(milliseconds / 1_000))
        }
        "anvil_setNextBlockBaseFeePerGas" | "hardhat_setNextBlockBaseFeePerGas" => {
            args!(p, fee: req Quantity);
            let fee = u64::try_from(fee.0).map_err(|_| RpcError::invalid_params("a base fee has at most 64 bits"))?;
            chain.set_base_fee(fee);
            raw(&true)
        }
        "anvil_setCoinbase" | "hardhat_setCoinbase" => {
            args!(p, address: req Address);
            chain.set_coinbase(address);
            raw(&true)
        }
        "anvil_setPrevRandao" | "hardhat_setPrevRandao" => {
            args!(p, value: req Quantity);
            chain.set_prevrandao(B256::from(value.0));
            raw(&true)
        }
        "evm_setBlockGasLimit" | "anvil_setBlockGasLimit" | "hardhat_setBlockGasLimit" => {
            args!(p, limit: req Quantity);
            if limit.to_u64() == 0 {
                return Err(RpcError::invalid_params("a block's gas limit can't be 0").into());
            }
            chain.set_gas_limit(limit.to_u64());
            raw(&true)
        }
        "anvil_dropTransaction" | "hardhat_dropTransaction" => {
            args!(p, hash: req B256);
            if chain.transaction(hash).is_some() {
                return Err(RpcError::refused(format!("transaction {hash} is mined and can't be dropped")).into());
            }
            let dropped = chain.drop_transaction(hash);
            if method.starts_with("anvil") {
                raw(&dropped.then_some(hash))
            } else {
                raw(&dropped)
            }
        }

        // ---- snapshots ----
        "evm_snapshot" | "anvil_snapshot" => {
            args!(p);
            raw(&U64::from(chain.snapshot()))
        }
        "evm_revert" | "anvil_revert" => {
            args!(p, id: req Quantity);
            raw(&chain.revert(id.to_u64()))
        }
        "anvil_reset" | "hardhat_reset" => {
            args!(p, options: opt serde_json::Value);
            let forking = options.and_then(|mut options| Some(options.get_mut("forking")?.take())).unwrap_or_default();
            let same = chain.fork().is_some_and(|fork| {
                let (url, block) = (&forking["jsonRpcUrl"], &forking["blockNumber"]);
                let number = serde_json::from_value::<Quantity>(block.clone()).map(Quantity::to_u64);
                (url.is_null() || url == fork.endpoint().settings().url.as_str())
                    && (block.is_null() || number.ok() == Some(fork.block_number()))
            });
            if !forking.is_null() && !same {
                return Err(RpcError::refused(
                    "what a node copies is settled when it starts: start one with --fork-url and --fork-block-number",
                )
                .into());
            }
            chain.reset();
            raw(&true)
        }

        "anvil_dumpState" => {
            args!(p);
            raw(&Bytes::from(chain.dump().map_err(RpcError::internal)?))
        }
        "anvil_loadState" => {
            args!(p, dump: req Bytes);
            chain.load(&dump).map_err(|e| RpcError::invalid_params(e.to_string()))?;
            raw(&true)
        }

        // ---- edits ----
        "anvil_setBalance" | "hardhat_setBalance" => {
            args!(p, address: req Address, balance: req Quantity);
            chain.set_balance(address, balance.0);
            raw(&true)
        }
        "anvil_setNonce" | "hardhat_setNonce" => {
            args!(p, address: req Address, nonce: req Quantity);
            chain.set_nonce(address, nonce.to_u64());
            raw(&true)
        }
        "anvil_setCode" | "hardhat_setCode" => {
            args!(p, address: req Address, code: req Bytes);
            chain.set_code(address, code);
            raw(&true)
        }
        "anvil_setStorageAt" | "hardhat_setStorageAt" => {
            args!(p, address: req Address, slot: req Quantity, value: req Quantity);
            chain.set_storage(address, slot.0, value.0);
            raw(&true)
        }
        "anvil_impersonateAccount" | "hardhat_impersonateAccount" => {
            args!(p, address: req Address);
            chain.impersonate(address, true);
            raw(&true)
        }
        "anvil_stopImpersonatingAccount" | "hardhat_stopImpersonatingAccount" => {
            args!(p, address: req Address);
            chain.impersonate(address, false);
            raw(&true)
        }
        "anvil_autoImpersonateAccount" => {
            args!(p, on: req bool);
            chain.impersonate_all(on);
            raw(&())
        }

        // ---- about the node ----
        "hardhat_metadata" | "anvil_metadata" => {
            args!(p);
            let head = chain.head();
            raw(&json!({
                "clientVersion": &*context.version,
                "chainId": chain.config().chain_id,
                "instanceId": chain.instance(),
                "latestBlockNumber": head.header.number,
                "latestBlockHash": head.hash,
                "forkedNetwork": chain.fork().map(|fork| json!({
                    "chainId": fork.chain_id(),
                    "forkBlockNumber": fork.block_number(),
                    "forkBlockHash": fork.block_hash(),
                })),
            }))
        }
        "anvil_nodeInfo" => {
            args!(p);
            let (head, fork) = (chain.head(), chain.fork());
            raw(&json!({
                "currentBlockNumber": U64::from(head.header.number),
                "currentBlockTimestamp": head.header.timestamp,
                "currentBlockHash": head.hash,
                "hardFork": match chain.config().arbos_version {
                    50.. => "osaka",
                    40.. => "prague",
                    _ => "cancun",
                },
                "transactionOrder": "fees",
                "environment": {
                    "baseFee": U64::from(chain.base_fee()),
                    "chainId": chain.config().chain_id,
                    "gasLimit": U64::from(chain.gas_limit()),
                    "gasPrice": U64::from(chain.base_fee()),
                },
                "forkConfig": {
                    "forkUrl": fork.map(|fork| fork.url()),
                    "forkBlockNumber": fork.map(|fork| fork.block_number()),
                    "forkRetryBackoff": fork.map(|fork| fork.endpoint().settings().backoff.as_millis()),
                },
            }))
        }
        other => Err(RpcError::method_not_found(other)),
    };
    Ok(answer?)
}
