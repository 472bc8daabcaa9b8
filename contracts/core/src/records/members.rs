use crate::id::NodeId;

/// Members of a validation group of three, and of each word of a larger group.
pub const MEMBERS: usize = 3;
/// Most members of a group that is chosen by ratings.
pub const MEMBERS_MOST: usize = 9;

packed! {
    /// A validation group's members, or three of a group chosen by ratings.
    ///
    /// ```text
    /// | states | e2 | e1 | e0 | t2 | t1 | t0 | n2 | n1 | n0 |
    ///     16     24   24   24   32   32   32   24   24   24
    /// ```
    pub struct Members {
        /// First member; in a sampled task's group the node that ran the task.
        n0: NodeId = "uint24" 24,
        /// Second member.
        n1: NodeId = "uint24" 24,
        /// Third member.
        n2: NodeId = "uint24" 24,
        /// The first member's deadline while it runs, then the time of its commitment; seconds since 1970. In a free place: the next free one.
        t0: u32 = "uint32" 32,
        /// The second's.
        t1: u32 = "uint32" 32,
        /// The third's.
        t2: u32 = "uint32" 32,
        /// Seconds from the first's start to its commitment.
        e0: u32 = "uint24" 24,
        /// The second's.
        e1: u32 = "uint24" 24,
        /// The third's.
        e2: u32 = "uint24" 24,
        /// [`Stage`]s, four bits each, the first member's lowest. The upper four bits count the group's words of members: 0 if there is
        /// no group, 15 in a place that is free again.
        states: u16 = "uint16" 16,
    }
}

/// Progress of a member of a validation group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Stage {
    /// There is no such member.
    #[default]
    None = 0,
    /// Called while busy; it has not begun.
    Called = 1,
    /// Running the task.
    Running = 2,
    /// Committed to an answer or to an error.
    Committed = 3,
    /// Answer revealed.
    Answered = 4,
    /// Error revealed: it could not run the task.
    Failed = 5,
    /// Deadline missed.
    TimedOut = 6,
    /// Slashed out of the network before it committed.
    Gone = 7,
}

impl Stage {
    fn new(n: u16) -> Stage {
        match n & 15 {
            1 => Stage::Called,
            2 => Stage::Running,
            3 => Stage::Committed,
            4 => Stage::Answered,
            5 => Stage::Failed,
            6 => Stage::TimedOut,
            7 => Stage::Gone,
            _ => Stage::None,
        }
    }
}

/// A member of a validation group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Membership {
    /// The node's number.
    pub node: NodeId,
    /// Its progress.
    pub stage: Stage,
    /// See [`Members::t0`].
    pub moment: u32,
    /// See [`Members::e0`].
    pub elapsed: u32,
}

impl Members {
    /// Marks a free place that was used before: its word never falls back to zero.
    const FREE: u16 = 0xf000;

    /// A word of these members, in a group of `words` words.
    pub fn of(members: &[Membership; MEMBERS], words: u8) -> Members {
        let [a, b, c] = members;
        let states = a.stage as u16 | (b.stage as u16) << 4 | (c.stage as u16) << 8 | (words as u16) << 12;
        Members {
            n0: a.node,
            n1: b.node,
            n2: c.node,
            t0: a.moment,
            t1: b.moment,
            t2: c.moment,
            e0: a.elapsed,
            e1: b.elapsed,
            e2: c.elapsed,
            states,
        }
    }

    /// The members in this word.
    pub fn all(&self) -> [Membership; MEMBERS] {
        let stage = |i: u16| Stage::new(self.states >> (4 * i));
        [
            Membership { node: self.n0, stage: stage(0), moment: self.t0, elapsed: self.e0 },
            Membership { node: self.n1, stage: stage(1), moment: self.t1, elapsed: self.e1 },
            Membership { node: self.n2, stage: stage(2), moment: self.t2, elapsed: self.e2 },
        ]
    }

    /// Words of members that the group has; 0 if there is none.
    pub fn words(&self) -> u8 {
        match self.states & Members::FREE {
            Members::FREE => 0,
            words => (words >> 12) as u8,
        }
    }

    /// The word of a free place; `next` is the next free place.
    pub fn vacant(next: u32) -> Members {
        Members { t0: next, states: Members::FREE, ..Members::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_back_as_they_were() {
        use Stage::*;
        for (i, stages) in
            [[Called, Running, Committed], [Answered, Failed, TimedOut], [Gone, None, Answered]].into_iter().enumerate()
        {
            let member = |n: usize| Membership {
                node: NodeId((1 << 24) - 1 - (i * 3 + n) as u32),
                stage: stages[n],
                moment: u32::MAX - n as u32,
                elapsed: (1 << 24) - 2 - n as u32,
            };
            let group = core::array::from_fn(member);
            let members = Members::of(&group, 1 + i as u8);
            assert_eq!(members.words(), 1 + i as u8);
            assert_eq!(members.all(), group);
        }
        assert_eq!(Members::vacant(7).words(), 0);
        assert_eq!(Members::vacant(7).t0, 7);
    }
}
