//! The redundancy policies: their checks at creation, their draws, judgements and pay.

pub mod commitments;
pub mod group;
pub mod judgement;
pub mod rated;
pub mod replicated;
pub mod ruling;
pub mod sampled;
pub mod single;
