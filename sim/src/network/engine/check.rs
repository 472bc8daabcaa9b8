//! How far the validation of a task is.

/// How far a member is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It runs the task, or will begin.
    Open,
    Committed,
    Revealed,
    /// It let its deadline pass, or left.
    Out,
}

/// A member of a group.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its operator.
    pub node: u32,
    pub started: u64,
    pub expires: u64,
    pub stage: Stage,
    /// Whether it commits to an error.
    pub error: bool,
    pub wrong: bool,
}

/// A task whose node has committed, or that three have.
#[derive(Debug)]
pub struct Check {
    /// Of a sampled task the first is the node that ran it; the others are there once its validators are drawn.
    pub parts: Vec<Part>,
    /// Its group's place; 0 before there is one.
    pub group: u32,
    /// Whether its validators were called.
    pub called: bool,
    /// When its node committed.
    pub committed: u64,
    /// Whether its expiry, should it not be revealed, is planned.
    pub expires: bool,
    /// Whether the reveals of its group have begun.
    pub opened: bool,
    /// The part of its fee spent on the call of its validators.
    pub spent: u128,
    /// The paid part of its pot.
    pub paid: u128,
}
