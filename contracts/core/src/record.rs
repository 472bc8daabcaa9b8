//! Every packed record, one storage word each. `abi/MusterStorage.sol` declares them to Solidity.
//!
//! Stakes are in granules (a whole number of wei fixed at initialisation), fees and credits in wei,
//! times in seconds since 1970 unless said otherwise.

use crate::word::{Address, Word};

/// A node's status. Kicked out and slashed nodes are [`Status::Quit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
    /// Not in the network.
    Quit = 0,
    /// Joined and without a task.
    Available = 1,
    /// Running a task.
    Busy = 2,
    /// Running a task, to be paused when it ends.
    PendingPause = 3,
    /// Running a task, to quit when it ends.
    PendingQuit = 4,
    /// Joined, takes no task.
    Paused = 5,
    /// Running a task, to be kicked out when it ends.
    PendingKickout = 6,
}

impl Status {
    /// The status with this number; numbers that stand for none read as [`Status::Quit`].
    pub fn new(n: u8) -> Status {
        match n {
            1 => Status::Available,
            2 => Status::Busy,
            3 => Status::PendingPause,
            4 => Status::PendingQuit,
            5 => Status::Paused,
            6 => Status::PendingKickout,
            _ => Status::Quit,
        }
    }

    /// Whether a node with this status has a task, or is held back after its end; see [`Node::running`].
    pub fn running(self) -> bool {
        matches!(self, Status::Busy | Status::PendingPause | Status::PendingQuit | Status::PendingKickout)
    }
}

packed! {
    /// What nearly every transaction reads and most write.
    ///
    /// ```text
    ///     | best | max vram | lowest | max stake | parked due | queued | joined | issued | tail | head | tasks |
    ///        8       16         8         48          32          24       24       24      16     16     40
    /// ```
    pub struct Head {
        /// Tasks created so far; the last task's id.
        tasks: u64 = "uint40" 40,
        /// First Pending task in the ring.
        pending_head: u16 = "uint16" 16,
        /// Where the next Pending task goes; equal to the head when there is none.
        pending_tail: u16 = "uint16" 16,
        /// Node numbers given out; numbers start at 1 and stay with their operator for good.
        issued: u32 = "uint24" 24,
        /// Nodes joined now.
        joined: u32 = "uint24" 24,
        /// Tasks queued now.
        queued: u32 = "uint24" 24,
        /// Earliest time at which an excluded node can return; 0 when none is parked.
        parked_due: u32 = "uint32" 32,
        /// Largest stake of all joined nodes, in granules.
        max_stake: u64 = "uint48" 48,
        /// Lowest stake class that has a joined node.
        lowest: u8 = "uint8" 8,
        /// Largest VRAM of all joined nodes, in GiB; 0 when there are none.
        max_vram: u16 = "uint16" 16,
        /// What no node's Q_long / Q_max ever was above, in 200ths; below 100 it stands for 100, as without scores.
        best: u8 = "uint8" 8,
    }
}

packed! {
    /// Parameters that dispatching needs.
    pub struct Rules {
        /// Base of the stake classes, in granules: the minimum stake at initialisation. Never changes.
        base: u64 = "uint32" 32,
        /// Queue capacity per joined node, in thousandths.
        alpha_milli: u32 = "uint32" 32,
        /// Start fee in ten-thousandths of the fee.
        start_fee_bps: u16 = "uint16" 16,
        /// Blocks between creation and draw; 0 draws at creation.
        draw_delay: u8 = "uint8" 8,
        /// Eligible candidates that a draw needs for the task's success to raise H.
        boost_pool: u8 = "uint8" 8,
        /// Fewer available holders of a model than this start a pre-download.
        scarce: u8 = "uint8" 8,
        /// Holders a pre-download aims at.
        spread: u8 = "uint8" 8,
        /// Factor on H at a timeout, in millionths.
        penalty_ppm: u32 = "uint24" 24,
        /// Added to H at a success, in millionths.
        boost_ppm: u32 = "uint24" 24,
        /// H below this excludes, in millionths.
        exclusion_ppm: u32 = "uint24" 24,
        /// Time constant of H's recovery, in seconds.
        tau: u32 = "uint24" 24,
    }
}

packed! {
    /// Parameters that creating tasks and joining need.
    pub struct Terms {
        /// Stable Diffusion: seconds a task takes before the first image.
        sd_overhead: u16 = "uint16" 16,
        /// Stable Diffusion: seconds per image.
        sd_unit: u16 = "uint16" 16,
        /// GPT: seconds a task takes.
        gpt_overhead: u16 = "uint16" 16,
        /// GPT: seconds per unit.
        gpt_unit: u16 = "uint16" 16,
        /// Most seconds a creator may state for fine-tuning.
        fine_tune_max: u32 = "uint24" 24,
        /// Shortest time limit of a running task, in seconds.
        limit_min: u16 = "uint16" 16,
        /// Longest time limit of a running task, in seconds.
        limit_max: u16 = "uint16" 16,
        /// Seconds added to every time limit, for outages of the sequencer.
        grace: u16 = "uint16" 16,
        /// Minimum stake, in granules.
        min_stake: u64 = "uint48" 48,
        /// Least price of an estimated second, in wei.
        min_price: u64 = "uint64" 64,
        /// Whether new tasks and joins are stopped.
        paused: bool = "bool" 8,
    }
}

packed! {
    /// Parameters that only rare calls need.
    pub struct Limits {
        /// Seconds before a returned stake can be withdrawn.
        unbonding: u32 = "uint32" 32,
        /// Q_long below this, in thousandths, kicks out.
        kickout_milli: u16 = "uint16" 16,
        /// Seconds a task may stay queued before anyone can end it.
        queue_time: u32 = "uint32" 32,
        /// Price of a new GPU name, in granules.
        group_fee: u64 = "uint48" 48,
    }
}

packed! {
    /// An account: what Muster owes it, and its node.
    pub struct Account {
        /// Can be withdrawn now, in wei.
        credit: u128 = "uint128" 128,
        /// Returned stake waiting for `release`, in granules.
        unbonding: u64 = "uint48" 48,
        /// When `unbonding` can be withdrawn.
        release: u64 = "uint40" 40,
        /// Number of the account's node; 0 if it never joined.
        node: u32 = "uint24" 24,
        /// Whether the account's node was kicked out; it can never join again.
        kicked: bool = "bool" 8,
    }
}

packed! {
    /// What a draw reads of a candidate.
    pub struct Node {
        /// [`Status`] as a number.
        status: u8 = "uint8" 8,
        /// Stake in granules; 0 when quit.
        stake: u64 = "uint48" 48,
        /// Reliability factor at `h_at`, a wad.
        h: u64 = "uint64" 64,
        /// When `h` held.
        h_at: u32 = "uint32" 32,
        /// Sum of the score pool.
        score_sum: u16 = "uint16" 16,
        /// Scores in the pool.
        score_count: u8 = "uint8" 8,
        /// Place among the idle nodes of its group and class, or in the parking pool.
        pos: u32 = "uint24" 24,
        /// VRAM in GiB.
        vram: u16 = "uint16" 16,
        /// Number of its GPU model among those of its VRAM size.
        gpu: u16 = "uint16" 16,
        /// Stake class.
        class: u8 = "uint8" 8,
        /// Entries of its model list, removed ones included.
        models: u8 = "uint8" 8,
        /// Whether it is excluded, or held back by due draws, and waits in the parking pool.
        parked: bool = "bool" 8,
    }
}

impl Node {
    /// Whether it has a task. One that is held back on its way out still has the status of a running one.
    pub fn running(&self) -> bool {
        Status::new(self.status).running() && !self.parked
    }
}

packed! {
    /// Who runs a node.
    pub struct Operator {
        /// The account that joined it.
        account: Address = "address" 160,
        /// When it last joined.
        joined_at: u64 = "uint40" 40,
    }
}

packed! {
    /// The last 50 task scores, four bits each, and the place of the oldest.
    pub struct Scores {
        /// Scores 0..15, four bits each.
        low: u64 = "uint64" 64,
        /// Scores 16..31.
        mid: u64 = "uint64" 64,
        /// Scores 32..47.
        high: u64 = "uint64" 64,
        /// Scores 48 and 49.
        last: u8 = "uint8" 8,
        /// Where the next score goes.
        next: u8 = "uint8" 8,
    }
}

impl Scores {
    /// Puts `score` in the place of the oldest and returns what was there (0 while the pool fills).
    pub fn push(&mut self, score: u8) -> u8 {
        let i = self.next as u32;
        let mut w = Word([self.low, self.mid, self.high, self.last as u64]);
        let old = w.bits(i * 4, 4) as u8;
        w.set_bits(i * 4, 4, score as u64);
        let [low, mid, high, last] = w.0;
        *self = Scores { low, mid, high, last: last as u8, next: if i + 1 == crate::qos::POOL as u32 { 0 } else { i as u8 + 1 } };
        old
    }
}

packed! {
    /// Who pays for a task, and how much.
    pub struct Ticket {
        /// The application.
        creator: Address = "address" 160,
        /// The escrowed fee, in wei.
        fee: u128 = "uint96" 96,
    }
}

packed! {
    /// A Pending, queued or running task: everything that was frozen at its creation.
    pub struct Order {
        /// Task id, from 1.
        id: u64 = "uint40" 40,
        /// Estimated time in seconds.
        estimate: u32 = "uint24" 24,
        /// Seconds from start to deadline, grace included.
        limit: u32 = "uint24" 24,
        /// Start fee in ten-thousandths of the fee.
        start_fee_bps: u16 = "uint16" 16,
        /// Least VRAM in GiB, or with `gpu` the exact VRAM.
        vram: u16 = "uint16" 16,
        /// 0 for any GPU, else 1 + the required GPU model's number among those of its VRAM size.
        gpu: u32 = "uint24" 24,
        /// [`crate::value::Kind`] as a number.
        kind: u8 = "uint8" 8,
        /// Required models.
        models: u8 = "uint8" 8,
        /// The first required model; 0 if there is none.
        model: u64 = "uint40" 40,
        /// Pending: the L2 block whose hash decides the draw. Queued: since when. Running: the deadline.
        at: u64 = "uint40" 40,
        /// Running: whether its draw had candidates enough for its success to raise H.
        boosts: bool = "bool" 8,
    }
}

/// Model ids in one word.
pub const MODELS_PER_WORD: u32 = 6;
/// Most models a task can require.
pub const TASK_MODELS: usize = 8;
/// Most models a node can hold, counting removed ones not yet purged.
pub const NODE_MODELS: u32 = 32;
/// Most models that one call can add to a node's: 32 of which it is the first holder would cost more than a million gas.
pub const CALL_MODELS: usize = 12;

packed! {
    /// Six model ids (40 bits each, 0 for none) and a flag for each.
    ///
    /// Among a node's models the flag says "removed": the node is still in the model's holder array, but no longer has it.
    pub struct Models {
        /// First model.
        m0: u64 = "uint40" 40,
        /// Second model.
        m1: u64 = "uint40" 40,
        /// Third model.
        m2: u64 = "uint40" 40,
        /// Fourth model.
        m3: u64 = "uint40" 40,
        /// Fifth model.
        m4: u64 = "uint40" 40,
        /// Sixth model.
        m5: u64 = "uint40" 40,
        /// Bit i is the flag of model i.
        flags: u8 = "uint8" 8,
        /// Always 1 once written, so that the word never falls back to zero.
        used: u8 = "uint8" 8,
    }
}

packed! {
    /// Idle nodes of a GPU group by stake class. Also: joined nodes by stake class.
    pub struct Classes {
        /// Nodes in class 0.
        c0: u32 = "uint24" 24,
        /// Nodes in class 1.
        c1: u32 = "uint24" 24,
        /// Nodes in class 2.
        c2: u32 = "uint24" 24,
        /// Nodes in class 3.
        c3: u32 = "uint24" 24,
        /// Nodes in class 4.
        c4: u32 = "uint24" 24,
        /// Nodes in class 5.
        c5: u32 = "uint24" 24,
        /// Nodes in class 6.
        c6: u32 = "uint24" 24,
        /// Nodes in class 7.
        c7: u32 = "uint24" 24,
        /// Nodes in class 8.
        c8: u32 = "uint24" 24,
        /// Nodes in class 9.
        c9: u32 = "uint24" 24,
        /// Always 1 once written, so that the word never falls back to zero.
        used: u16 = "uint16" 16,
    }
}

packed! {
    /// A priority pool: the queue of one group, or the excluded nodes.
    pub struct Pool {
        /// Greatest key; 0 when empty.
        best: u64 = "uint64" 64,
        /// Least key; 0 when empty.
        worst: u64 = "uint64" 64,
        /// Entries in it.
        live: u32 = "uint24" 24,
        /// Places ever used at once since it was last empty.
        slots: u32 = "uint24" 24,
        /// Places below `slots` that are free.
        free: u32 = "uint24" 24,
        /// 1 + the pool's place among all queue groups; 0 for a pool never used.
        index: u32 = "uint24" 24,
        /// Always 1 once written, so that the word never falls back to zero.
        used: u8 = "uint8" 8,
    }
}

packed! {
    /// The task queue as a whole.
    pub struct Queue {
        /// Queue groups ever used.
        groups: u32 = "uint24" 24,
        /// `!key` of the worst queued task of all groups, 0 or 1 if there is none.
        worst: u64 = "uint64" 64,
    }
}

packed! {
    /// The GPU models of one VRAM size.
    pub struct Size {
        /// How many there ever were.
        models: u32 = "uint32" 32,
        /// Those with a joined node now.
        manned: u32 = "uint32" 32,
    }
}

packed! {
    /// The owner, and what was fixed at initialisation.
    pub struct Ownership {
        /// Before initialisation the deployer, who alone may install; then who may change parameters and propose programs.
        owner: Address = "address" 160,
        /// Wei in a granule of stake; not 0 once initialised.
        granule: u64 = "uint64" 64,
        /// Seconds between the proposal and the effect of another program, or of a parameter that reaches into stakes.
        upgrade_delay: u32 = "uint24" 24,
        /// Whether programs can never be changed again.
        renounced: bool = "bool" 8,
    }
}

packed! {
    /// A proposed value of a parameter.
    pub struct NextParameter {
        /// The value.
        value: u64 = "uint64" 64,
        /// Earliest time it can take effect; 0 where nothing is proposed.
        at: u64 = "uint40" 40,
    }
}

packed! {
    /// A proposed owner, or a proposed treasury and when it can take effect.
    pub struct Proposal {
        /// The proposed account; 0 for none.
        account: Address = "address" 160,
        /// Earliest time it can take effect.
        at: u64 = "uint40" 40,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_pool_keeps_the_last_fifty() {
        let mut s = Scores::default();
        let scores: [u8; 123] = core::array::from_fn(|i| [10, 5, 2, 0][i * 7 % 4]);
        for (i, &x) in scores.iter().enumerate() {
            let old = s.push(x);
            assert_eq!(old, if i < 50 { 0 } else { scores[i - 50] });
        }
    }
}
