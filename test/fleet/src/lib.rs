//! A contract on a node in this process, and agents as processes that answer for nodes of it. The tests of the suite, the command line and
//! the agent share it with the demonstration with agents.
//!
//! | module | contents |
//! | --- | --- |
//! | [`world`] | a contract on a node in this process, and accounts that call it |
//! | [`site`] | agents that answer for nodes of it, and stores |
//! | [`stores`] | a server of S3, and one that speaks like a node of IPFS |
//! | [`play`] | a network of agents that compute embeddings while things go wrong |
//! | [`wire`] | the way to the node, which can be cut, takes its time, and counts |
//! | [`latency`] | the waits of a task, and of a card: measured by the clock |
//! | [`ledger`] | the fates of the tasks, the nodes and the money |

#![warn(missing_docs)]

pub mod latency;
pub mod ledger;
pub mod play;
pub mod site;
pub mod stores;
pub mod wire;
pub mod world;
