//! How far the validation of a task is.

/// How far a member is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It runs the task, or is to begin.
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
    /// Whether what it commits to is that it cannot run the task.
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
    /// Whether what becomes of it, should it not be revealed, is planned.
    pub expires: bool,
    /// Whether the reveals of its group have begun.
    pub opened: bool,
    /// What calling its validators took of its fee.
    pub spent: u128,
    /// Of its pot, what was paid.
    pub paid: u128,
}
