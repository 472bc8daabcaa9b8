//! The redundancy policies: what each checks at creation, how it is drawn, judged and paid.

pub mod commitments;
pub mod group;
pub mod judgement;
pub mod rated;
pub mod replicated;
pub mod ruling;
pub mod sampled;
pub mod single;
