//! The program behind reading; see `muster_protocol::lens`.
#![cfg_attr(not(any(test, feature = "export-abi")), no_main)]
#![cfg_attr(not(any(test, feature = "export-abi")), no_std)]

extern crate alloc;

use alloc::vec::Vec;
use alloy_sol_types::SolCall;
use muster_protocol::chain::{arguments, run, Chain};
use muster_protocol::IMuster::*;
use muster_protocol::{refusal, registry, Network, Result};
use stylus_sdk::prelude::*;
use stylus_sdk::{host::VM, ArbResult};

/// Answers a call.
#[entrypoint]
pub fn main(input: Vec<u8>, vm: VM) -> ArbResult {
    run(input, vm, route)
}

fn route(chain: &mut Chain, selector: [u8; 4], data: &[u8]) -> Result<Option<Vec<u8>>> {
    // A transaction that reads could leave ether behind that belongs to nobody.
    chain.no_value()?;
    Ok(Some(match selector {
        overviewCall::SELECTOR => {
            let _ = arguments::<overviewCall>(data)?;
            let net = Network::open(chain)?;
            overviewCall::abi_encode_returns(&net.overview())
        }
        ownerCall::SELECTOR => {
            let _ = arguments::<ownerCall>(data)?;
            let net = Network::open(chain)?;
            ownerCall::abi_encode_returns(&net.overview().owner)
        }
        accountCall::SELECTOR => {
            let c = arguments::<accountCall>(data)?;
            let net = Network::open(chain)?;
            accountCall::abi_encode_returns(&net.account_view(c.who.into_array()))
        }
        nodeCall::SELECTOR => {
            let c = arguments::<nodeCall>(data)?;
            let net = Network::open(chain)?;
            nodeCall::abi_encode_returns(&net.node_view(c.number)?)
        }
        nodeOfCall::SELECTOR => {
            let c = arguments::<nodeOfCall>(data)?;
            let net = Network::open(chain)?;
            nodeOfCall::abi_encode_returns(&net.account_view(c.operator.into_array()).node)
        }
        nodesCall::SELECTOR => {
            let c = arguments::<nodesCall>(data)?;
            let net = Network::open(chain)?;
            nodesCall::abi_encode_returns(&net.node_views(c.from, c.count))
        }
        weightOfCall::SELECTOR => {
            let c = arguments::<weightOfCall>(data)?;
            let net = Network::open(chain)?;
            weightOfCall::abi_encode_returns(&net.weight_of(c.number, &c.spec)?)
        }
        estimateCall::SELECTOR => {
            let c = arguments::<estimateCall>(data)?;
            let net = Network::open(chain)?;
            estimateCall::abi_encode_returns(&net.estimate_view(c.kind, c.units)?)
        }
        idleNodesCall::SELECTOR => {
            let c = arguments::<idleNodesCall>(data)?;
            let net = Network::open(chain)?;
            idleNodesCall::abi_encode_returns(&{
                let (total, numbers) = net.idle_nodes(c.group, c.class, c.from, c.count);
                idleNodesReturn { total, numbers }
            })
        }
        holdersCall::SELECTOR => {
            let c = arguments::<holdersCall>(data)?;
            let net = Network::open(chain)?;
            holdersCall::abi_encode_returns(&{
                let (total, numbers) = net.holders_view(c.model, c.from, c.count)?;
                holdersReturn { total, numbers }
            })
        }
        runningTaskCall::SELECTOR => {
            let c = arguments::<runningTaskCall>(data)?;
            let net = Network::open(chain)?;
            runningTaskCall::abi_encode_returns(&net.running_task(c.number)?)
        }
        pendingTasksCall::SELECTOR => {
            let c = arguments::<pendingTasksCall>(data)?;
            let net = Network::open(chain)?;
            pendingTasksCall::abi_encode_returns(&net.pending_tasks(c.from, c.count))
        }
        queuedTasksCall::SELECTOR => {
            let c = arguments::<queuedTasksCall>(data)?;
            let net = Network::open(chain)?;
            queuedTasksCall::abi_encode_returns(&{
                let (places, _1) = net.queued_tasks(c.group, c.from, c.count);
                queuedTasksReturn { places, _1 }
            })
        }
        bestQueuedCall::SELECTOR => {
            let c = arguments::<bestQueuedCall>(data)?;
            let net = Network::open(chain)?;
            bestQueuedCall::abi_encode_returns(&net.best_queued(c.number)?)
        }
        excludedNodesCall::SELECTOR => {
            let c = arguments::<excludedNodesCall>(data)?;
            let net = Network::open(chain)?;
            excludedNodesCall::abi_encode_returns(&{
                let (places, numbers) = net.excluded_nodes(c.from, c.count);
                excludedNodesReturn { places, numbers }
            })
        }
        gpuGroupCall::SELECTOR => {
            let c = arguments::<gpuGroupCall>(data)?;
            gpuGroupCall::abi_encode_returns(&match registry::gpu_group(chain, c.name.as_bytes(), c.vram) {
                Some(group) => group,
                None => return Err(refusal!(GpuUnknown(c.vram as u32))),
            })
        }
        gpuNameCall::SELECTOR => {
            let c = arguments::<gpuNameCall>(data)?;
            gpuNameCall::abi_encode_returns(&registry::gpu_name(chain, c.group))
        }
        gpuGroupsCall::SELECTOR => {
            let c = arguments::<gpuGroupsCall>(data)?;
            gpuGroupsCall::abi_encode_returns(&registry::gpu_count(chain, c.vram))
        }
        _ => return Ok(None),
    }))
}
