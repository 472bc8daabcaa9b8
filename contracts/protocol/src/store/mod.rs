//! Storage: each word has one file that writes it. Nothing here knows a call.

pub mod accounts;
pub mod groups;
pub mod layout;
pub mod node;
pub mod nodes;
pub mod owner;
pub mod pool;
pub mod queue;
pub mod receipts;
pub mod registry;
pub mod ring;
pub mod routes;
pub mod sampler;
pub mod suspended;
pub mod task;
pub mod text;
pub mod tournament;
