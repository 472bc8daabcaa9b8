//! Agents as processes on a chain of their own: what the agent's tests and the demonstration with agents have in common.
//!
//! | module | what |
//! | --- | --- |
//! | [`site`] | a contract on a node in this process, and agents that answer for nodes of it |
//! | [`play`] | a network of agents that compute embeddings while things go wrong |
//! | [`wire`] | the way to the node, which can be cut |
//! | [`ledger`] | what became of the tasks, the nodes and the money |

#![warn(missing_docs)]

pub mod ledger;
pub mod play;
pub mod site;
pub mod wire;
