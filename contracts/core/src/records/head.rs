packed! {
    /// Counters that nearly every transaction reads and most write.
    ///
    /// ```text
    /// | max_vram | validator_draws_tail | validator_draws_head | max_stake | parked_due | queued | joined | issued | pending_tail | pending_head | tasks |
    ///      16           8            8           48          32         24       24       24          16             16          40
    /// ```
    pub struct Head {
        /// Tasks created so far; the last task's id.
        tasks: u64 = "uint40" 40,
        /// First Pending task in the ring.
        pending_head: u16 = "uint16" 16,
        /// Where the next Pending task goes; equal to the head while none is Pending.
        pending_tail: u16 = "uint16" 16,
        /// Node numbers given out. They start at 1 and stay with their operator for good.
        issued: u32 = "uint24" 24,
        /// Nodes joined now.
        joined: u32 = "uint24" 24,
        /// Tasks queued now.
        queued: u32 = "uint24" 24,
        /// Earliest time at which an excluded node can return, in seconds since 1970; 0 when none is parked.
        parked_due: u32 = "uint32" 32,
        /// Largest stake of all joined nodes, in stake units.
        max_stake: u64 = "uint48" 48,
        /// The first draw of validators that waits.
        validator_draws_head: u8 = "uint8" 8,
        /// Where the next draw of validators goes; equal to the first while none waits.
        validator_draws_tail: u8 = "uint8" 8,
        /// Largest VRAM of all joined nodes, in GiB; 0 when there are none.
        max_vram: u16 = "uint16" 16,
    }
}
