//! A search for attacks on validation and their results. An adversary with some of the nodes and an application tries moves and
//! combinations of moves against honest operators and applications, by real calls, and the money of everybody is followed to the wei.
//!
//! | module | contents |
//! | --- | --- |
//! | [`parties`] | the sides of people and tasks, and right answers |
//! | [`arena`] | the network, its people and its blocks; the invariants after every call |
//! | [`book`] | everybody's spending, earnings and losses, from the logs |
//! | [`plan`] | the strategies, as plans of one life |
//! | [`agents`] | the acts of nodes, honest ones and the adversary's, and of drivers |
//! | [`moves`] | the adversary's moves besides answering |
//! | [`life`] | lives and seasons |
//! | `leaving` | all honest nodes leave, on a copy |
//! | [`harm`] | the aims of an attack |
//! | [`hunt`] | the best plans, bred |
//! | [`hold`] | a node kept from work by reservations that come to nothing: a small search of its own |
//! | [`rules`] | old rules, put back to see the search's findings then |
//! | [`price`] | single prices: the lone sender, a majority, fifty tens |
//!
//! A *life* is played under one plan until a validation group was formed and everything has ended. A *season* is several lives in one
//! network. Everything follows from the season's seed.

pub mod agents;
pub mod arena;
pub mod book;
pub mod harm;
pub mod hold;
pub mod hunt;
mod leaving;
pub mod life;
pub mod moves;
pub mod parties;
pub mod plan;
pub mod price;
mod put_back;
pub mod rules;

pub use life::{season, season_of, season_under, LIVES};
pub use plan::Strategy;

/// The share of blocks in which the adversary of [`Strategy::Grind`] is the only sender.
pub const ALONE: f64 = 0.1;
/// An honest node deviates once in so many answers.
pub const DEVIATES: u64 = 10_000;
