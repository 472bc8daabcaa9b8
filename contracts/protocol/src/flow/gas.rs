//! Gas that calls demand at their start, so that whatever estimates gas finds a limit that suffices.

use crate::host::Host;
use crate::Result;

/// Gas that no call goes beyond, whatever others have left to be done; those that choose how much they do, `dispatch` and `createTasks`,
/// apart. Calls that make others' draws, or free a node that may then find work of any kind, demand it. docs/generated/gas.md has the measurements.
pub const CALL_GAS: u64 = 1_000_000;
/// What a commitment, or the reveal of a task that was not sampled, demands: it makes no draw, and frees one node at most.
pub const FREEING_GAS: u64 = 300_000;
/// What the reveal in a group demands: the last one judges, and three nodes may find work.
pub const JUDGING_GAS: u64 = 600_000;
/// What a call demands that queues a task, ends a queued one, or calls validators.
pub const QUEUEING_GAS: u64 = 200_000;
/// What `dispatch` demands for each draw after the first, which are seldom dear; it stops before one that could be.
pub const MORE_DRAW_GAS: u64 = 100_000;

/// Refuses a call that could run out of gas by what others leave to be done until it is included. Whatever estimates gas looks for a
/// limit at which a call succeeds, and so finds one that suffices whatever is due by then. Gas that is not used is not paid for.
#[inline(never)]
pub fn demand_gas<H: Host>(host: &H, needed: u64) -> Result<()> {
    let left = host.gas();
    ensure!(left >= needed, GasTooLow(left, needed));
    Ok(())
}
