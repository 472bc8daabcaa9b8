//! Answers of programs to calls of other programs ([`crate::inner`]): each answer is the number of words read, with any other value above
//! its 32 bits.

use crate::dispatch::Function;
use crate::flow::freed::find_work;
use crate::flow::queueing::queue_first;
use crate::flow::release::begin_membership;
use crate::flow::serve::form_next_rated;
use crate::flow::standing::leave_network;
use crate::flow::start::start_queued;
use crate::host::Host;
use crate::inner::*;
use crate::programs::{is_of, Run};
use crate::store::node::{NodeHandle, Unplaced};
use crate::{programs, Result};
use alloc::vec::Vec;
use muster_core::id::NodeId;

program! { ASKED;
    /// Calls of other programs that the program of nodes answers.
    nodes_inner NODES_INNER {
        acting(net) {
            #[payable] departCall(node: NodeId, kicked: u8) -> u64 {
                let handle = Unplaced::of(NodeHandle::load(net.host, node));
                leave_network(&mut net, handle, kicked != 0);
                Ok(net.host.reads() as u64)
            }
        }
    }

    /// Calls of other programs that the program of work answers.
    work_inner WORK_INNER {
        acting(net) {
            #[payable] serveCall(most: u32, served: u32, read: u32) -> u64 {
                let served = net.serve_for(most, served, read);
                Ok((served as u64) << 32 | net.host.reads() as u64)
            }
            #[payable] takeQueuedCall(node: NodeId) -> u64 {
                let found = start_queued(&mut net, node);
                Ok((found as u64) << 32 | net.host.reads() as u64)
            }
            #[payable] placeFreedCall(node: NodeId, wait: u8) -> u64 {
                let found = find_work(&mut net, node, wait != 0);
                Ok((found as u64) << 32 | net.host.reads() as u64)
            }
            #[payable] queueFirstCall() -> u64 {
                queue_first(&mut net);
                Ok(net.host.reads() as u64)
            }
        }
    }

    /// Calls of other programs that the program of multi-node draws answers.
    draws_inner DRAWS_INNER {
        acting(net) {
            #[payable] formNextCall() -> u64 {
                let place = net.form_next();
                Ok((place as u64) << 32 | net.host.reads() as u64)
            }
            #[payable] beginAssignmentCall(node: NodeId) -> u64 {
                begin_membership(&mut net, node);
                Ok(net.host.reads() as u64)
            }
        }
    }

    /// Calls of other programs that the program of reputation answers.
    reputation_inner REPUTATION_INNER {
        acting(net) {
            #[payable] formRatedCall() -> u64 {
                let place = form_next_rated(&mut net);
                Ok((place as u64) << 32 | net.host.reads() as u64)
            }
        }
    }
}

/// A program's answers to others beside its own.
#[inline(always)]
fn beside<H: Host>(host: &mut H, calldata: &[u8], functions: &[Function], inner: Run<H>, own: Run<H>) -> Result<Vec<u8>> {
    if is_of(functions, calldata) {
        inner(host, calldata)
    } else {
        own(host, calldata)
    }
}

/// The program of nodes, with the calls of other programs.
pub fn nodes<H: Host>(host: &mut H, calldata: &[u8]) -> Result<Vec<u8>> {
    beside(host, calldata, NODES_INNER, nodes_inner, programs::nodes)
}

/// The program of work, with the calls of other programs.
pub fn work<H: Host>(host: &mut H, calldata: &[u8]) -> Result<Vec<u8>> {
    beside(host, calldata, WORK_INNER, work_inner, programs::work)
}

/// The program that draws several nodes, with the calls of other programs.
pub fn draws<H: Host>(host: &mut H, calldata: &[u8]) -> Result<Vec<u8>> {
    beside(host, calldata, DRAWS_INNER, draws_inner, programs::draws)
}

/// The program that chooses nodes by their ratings, with the calls of other programs.
pub fn reputation<H: Host>(host: &mut H, calldata: &[u8]) -> Result<Vec<u8>> {
    beside(host, calldata, REPUTATION_INNER, reputation_inner, programs::reputation)
}

/// Answers any call between programs, on a host that runs them all.
pub fn any<H: Host>(host: &mut H, calldata: &[u8]) -> Result<Vec<u8>> {
    let all: [(&[Function], Run<H>); 3] =
        [(WORK_INNER, work_inner), (NODES_INNER, nodes_inner), (REPUTATION_INNER, reputation_inner)];
    let found = all.into_iter().find(|(functions, _)| is_of(functions, calldata));
    found.map_or(draws_inner as Run<H>, |(_, run)| run)(host, calldata)
}
