//! A search for what attacks on validation come to: an adversary with some of the nodes and an application tries moves and combinations
//! of moves against honest operators and applications, by real calls, and the money of everybody is followed to the wei.
//!
//! | module | what |
//! | --- | --- |
//! | [`parties`] | whose people and tasks are, and what is right |
//! | [`arena`] | the network, its people and its blocks; what has to hold after every call |
//! | [`book`] | who spent, earned and lost what, from the logs |
//! | [`plan`] | the strategies, as plans of one life |
//! | [`agents`] | what nodes do, honest ones and the adversary's, and those who drive |
//! | [`moves`] | what the adversary does besides answering |
//! | [`life`] | lives and seasons |
//! | [`harm`] | what an attack can be after |
//! | [`hunt`] | the best plans, bred |
//! | [`hold`] | a node kept from work by reservations that come to nothing: a small search of its own |
//! | [`rules`] | rules of old, put back to see what the search finds then |
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
