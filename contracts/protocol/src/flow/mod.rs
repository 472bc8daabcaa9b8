//! The way of nodes and tasks, from a call to its end.

pub mod answers;
pub mod create;
pub mod draw;
pub mod due;
pub mod freed;
pub mod gas;
pub mod models;
pub mod network;
pub mod nodes;
pub mod profiles;
pub mod queueing;
pub mod release;
pub mod reliability;
pub mod scores;
pub mod serve;
pub mod standing;
pub mod start;
pub mod weigh;
