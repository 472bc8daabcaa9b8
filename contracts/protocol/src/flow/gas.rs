//! Gas that calls demand at their start, so that an estimate of gas finds a limit that suffices.

use crate::host::Host;
use crate::Result;

/// Gas that no call exceeds, however much others have left to be done. `dispatch` and `createTasks` are exempt: their callers choose how
/// much they do. Calls that make others' draws, or free a node that may then find work of any kind, demand it. docs/generated/gas.md has
/// the measurements.
pub const CALL_GAS: u64 = 1_000_000;
/// Demanded by a commitment, and by the reveal of a task that was not sampled: it makes no draw, and frees one node at most, which may be
/// called up with eight that wait.
pub const FREEING_GAS: u64 = 500_000;
/// Left before each further draw of one node that `dispatch` makes. Such a draw frees nobody.
pub const CHEAP_DRAW_GAS: u64 = 300_000;
/// Demanded by a call that queues a task, ends a queued one, or calls validators.
pub const QUEUEING_GAS: u64 = 200_000;
/// Demanded by `dispatch` for each draw after the first. These are seldom expensive, and `dispatch` stops before one that could be.
pub const MORE_DRAW_GAS: u64 = 100_000;

/// Refuses a call that could run out of gas by work that others leave until it is included. An estimator searches for a limit at which the
/// call succeeds, so it finds one that suffices for any due work. Unused gas is not paid for.
#[inline(never)]
pub fn demand_gas<H: Host>(host: &H, needed: u64) -> Result<()> {
    let left = host.gas();
    ensure!(left >= needed, GasTooLow(left, needed));
    Ok(())
}
