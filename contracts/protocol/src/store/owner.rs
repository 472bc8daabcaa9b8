//! Who owns the network, and how long what they propose has to wait.

use crate::host::Host;
use crate::store::layout::{slot, OWNERSHIP};
use crate::Result;
use muster_core::record::Ownership;

/// By how many seconds the longest unbonding stays below the delay of upgrades, so that whoever disagrees can leave first.
pub const NOTICE: u32 = 86_400;
/// Shortest delay of upgrades: the default unbonding and [`NOTICE`].
pub const UPGRADE_DELAY_MIN: u32 = 2 * 86_400;

pub fn ownership<H: Host>(host: &H) -> Result<Ownership> {
    let o: Ownership = host.get(slot(OWNERSHIP));
    ensure!(o.stake_unit > 0, NotInitialised);
    Ok(o)
}
