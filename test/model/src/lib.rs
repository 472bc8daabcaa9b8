//! What the tests of the contracts share.
//!
//! | module | what |
//! | --- | --- |
//! | [`world`] | a Muster in memory that plays calls as the programs do |
//! | [`model`] | a plain model of the network, and random operations that compare it with the real thing |

pub mod model;
#[macro_use]
pub mod world;
