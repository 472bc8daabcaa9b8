//! Initialisation, parameters, ownership, treasury, and which program answers which selector.

pub mod parameters;
pub mod stores;
pub mod worker;

use crate::abi::{emit, IMuster::*};
use crate::admin::parameters::{bounded, put_defaults, put_parameter, remember, within, Change, BASE_MAX};
use crate::host::Host;
use crate::store::layout::*;
use crate::store::owner::ownership;
pub use crate::store::owner::{NOTICE, UPGRADE_DELAY_MIN};
use crate::store::ring::Ring;
pub use crate::store::routes::{program_of, selectors};
use crate::store::routes::{selector_at, write_selector};
use crate::store::{accounts, registry};
use crate::{IMuster, Result};

use alloc::vec::Vec;
use alloy_primitives::FixedBytes;
use alloy_sol_types::SolCall;
use muster_core::id::GpuGroup;
use muster_core::record::*;
use muster_core::weight;
use muster_core::word::{Address, Word};

/// Seconds before a proposed treasury can take effect.
pub const TREASURY_DELAY: u64 = 2 * 86_400;
/// Longest delay of upgrades.
pub const UPGRADE_DELAY_MAX: u32 = 180 * 86_400;
/// Most selectors in one change of programs.
const SELECTORS_MAX: usize = 64;
/// A node's largest stake stays below this many wei; with it all that a new GPU name can cost.
const STAKE_END: u128 = 1 << 88;

fn only_owner<H: Host>(host: &H) -> Result<Ownership> {
    let o = ownership(host)?;
    let caller = host.sender();
    ensure!(caller == o.owner, NotOwner(caller));
    Ok(o)
}

/// Settings that are fixed for good when a network is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Genesis {
    /// May change parameters and propose programs.
    pub owner: Address,
    /// Gets protocol income.
    pub treasury: Address,
    /// Wei in a stake unit.
    pub stake_unit: u64,
    /// In wei; the base of the stake classes.
    pub minimum_stake: u128,
    /// Seconds before a proposed program, or parameter that reaches into stakes, can take effect.
    pub upgrade_delay: u32,
}

/// Refuses anyone but the deployer that the router's init code wrote down, and anything after initialisation.
pub fn only_deployer<H: Host>(host: &H) -> Result<()> {
    let o: Ownership = host.get(slot(OWNERSHIP));
    ensure!(o.stake_unit == 0, AlreadyInitialised);
    let caller = host.sender();
    ensure!(caller == o.owner, NotOwner(caller));
    Ok(())
}

/// See `IMuster.initialise`. Parameters begin with the defaults of [`crate::admin::parameters`].
pub fn initialise<H: Host>(host: &mut H, genesis: &Genesis, programs: &[IMuster::Facet]) -> Result<()> {
    only_deployer(host)?;
    let Genesis { owner, treasury, stake_unit, minimum_stake, upgrade_delay } = *genesis;
    ensure!(owner != [0; 20] && treasury != [0; 20], ZeroAddress);
    ensure!(stake_unit >= 1_000 && minimum_stake % stake_unit as u128 == 0, BadInitialisation);
    let base = minimum_stake / stake_unit as u128;
    ensure!((1..=BASE_MAX as u128).contains(&base), BadInitialisation);
    ensure!((weight::stake_limit(base as u64) as u128) < STAKE_END / stake_unit as u128, BadInitialisation);
    ensure!((UPGRADE_DELAY_MIN..=UPGRADE_DELAY_MAX).contains(&upgrade_delay), BadInitialisation);
    for f in programs {
        let program = f.facetAddress.into_array();
        ensure!(host.has_code(program), NoCode(program));
    }
    host.put(slot(OWNERSHIP), &Ownership { owner, stake_unit, upgrade_delay, renounced: false });
    host.store(slot(TREASURY), Word::from(treasury));
    emit::<Initialised>(host, (), (owner, treasury, stake_unit, minimum_stake, upgrade_delay));
    put_defaults(host, base as u64)?;
    let own =
        FacetCut { facetAddress: host.here().into(), action: ADDED, functionSelectors: [installCall::SELECTOR.into()].to_vec() };
    let mut cuts = [own].to_vec();
    for f in programs {
        assign_programs(host, f.facetAddress.into_array(), &f.functionSelectors, &mut cuts);
    }
    tell_cuts(host, cuts);
    Ok(())
}

/// See `IMuster.setParameter`.
pub fn set_parameter<H: Host>(host: &mut H, number: u8, value: Word) -> Result<()> {
    only_owner(host)?;
    let (p, v) = within(host, number, value)?;
    ensure!(p.change != Change::Proposed, ParameterDelayed(number));
    if p.change == Change::LoweredWhileIdle {
        // A new task's block is never before that of one already Pending: those behind would be known before their turn.
        let head = host.get(slot(HEAD));
        let pending = Ring::of_tasks(&head).len() + Ring::of_validator_draws(&head).len();
        ensure!(v >= p.get(host) || pending == 0, TasksPending(pending));
    }
    put_parameter(host, number, p, v);
    Ok(())
}

/// See `IMuster.proposeParameter`.
pub fn propose_parameter<H: Host>(host: &mut H, number: u8, value: Word) -> Result<()> {
    let o = only_owner(host)?;
    let (p, value) = within(host, number, value)?;
    ensure!(p.change == Change::Proposed, ParameterNotDelayed(number));
    let at = host.now() + o.upgrade_delay as u64;
    let place = entry(host, NEXT_PARAMETERS, number as u64);
    host.put(place, &NextParameter { value, at });
    remember(host, p, value);
    emit::<ParameterProposed>(host, (number,), (value, at));
    Ok(())
}

/// See `IMuster.acceptParameter`.
pub fn accept_parameter<H: Host>(host: &mut H, number: u8) -> Result<()> {
    let (p, ..) = bounded(host, number)?;
    let place = entry(host, NEXT_PARAMETERS, number as u64);
    let next: NextParameter = host.get(place);
    ensure!(next.at > 0, NotProposed);
    ensure!(host.now() >= next.at, TooEarly(next.at));
    host.put(place, &NextParameter::default());
    put_parameter(host, number, p, next.value);
    Ok(())
}

/// See `IMuster.proposedParameter`: value, and when it can take effect.
pub fn proposed_parameter<H: Host>(host: &H, number: u8) -> Result<(Word, u64)> {
    bounded(host, number)?;
    let next: NextParameter = host.get(entry(host, NEXT_PARAMETERS, number as u64));
    Ok((Word::from(next.value), next.at))
}

/// See `IMuster.parameter`: value, least, most.
pub fn parameter<H: Host>(host: &H, number: u8) -> Result<(Word, u64, u64)> {
    let (p, least, most) = bounded(host, number)?;
    Ok((Word::from(p.get(host)), least, most))
}

/// See `IMuster.listGpuGroup`.
pub fn list_gpu_group<H: Host>(host: &mut H, group: GpuGroup, on: bool) -> Result<()> {
    only_owner(host)?;
    ensure!(registry::joined(host, group).is_some(), GpuUnknown(group));
    registry::set_listed(host, group, on);
    Ok(())
}

/// See `IMuster.setPaused`.
pub fn set_paused<H: Host>(host: &mut H, on: bool) -> Result<()> {
    only_owner(host)?;
    let terms: Terms = host.get(slot(TERMS));
    host.put(slot(TERMS), &Terms { paused: on, ..terms });
    emit::<PausedChanged>(host, (), (on,));
    Ok(())
}

/// See `IMuster.transferOwnership`.
pub fn transfer_ownership<H: Host>(host: &mut H, next: Address) -> Result<()> {
    let o = only_owner(host)?;
    host.put(slot(NEXT_OWNER), &Proposal { account: next, at: 0 });
    emit::<OwnershipTransferStarted>(host, (o.owner, next), ());
    Ok(())
}

/// See `IMuster.acceptOwnership`.
pub fn accept_ownership<H: Host>(host: &mut H) -> Result<()> {
    let o = ownership(host)?;
    let (next, caller): (Proposal, Address) = (host.get(slot(NEXT_OWNER)), host.sender());
    ensure!(caller == next.account && caller != [0; 20], NotPendingOwner(caller));
    host.put(slot(NEXT_OWNER), &Proposal::default());
    host.put(slot(OWNERSHIP), &Ownership { owner: caller, ..o });
    emit::<OwnershipTransferred>(host, (o.owner, caller), ());
    Ok(())
}

/// See `IMuster.pendingOwner`.
pub fn pending_owner<H: Host>(host: &H) -> Address {
    host.get::<Proposal>(slot(NEXT_OWNER)).account
}

/// See `IMuster.pendingTreasury`: the account, and when it can take effect.
pub fn pending_treasury<H: Host>(host: &H) -> (Address, u64) {
    let next: Proposal = host.get(slot(NEXT_TREASURY));
    (next.account, next.at)
}

/// See `IMuster.proposeTreasury`.
pub fn propose_treasury<H: Host>(host: &mut H, account: Address) -> Result<()> {
    only_owner(host)?;
    let at = if account == [0; 20] { 0 } else { host.now() + TREASURY_DELAY };
    host.put(slot(NEXT_TREASURY), &Proposal { account, at });
    emit::<TreasuryProposed>(host, (account,), (at,));
    Ok(())
}

/// See `IMuster.acceptTreasury`.
pub fn accept_treasury<H: Host>(host: &mut H) -> Result<()> {
    ownership(host)?;
    let next: Proposal = host.get(slot(NEXT_TREASURY));
    ensure!(next.account != [0; 20], NotProposed);
    ensure!(host.now() >= next.at, TooEarly(next.at));
    let before = accounts::treasury(host);
    host.put(slot(NEXT_TREASURY), &Proposal::default());
    host.store(slot(TREASURY), Word::from(next.account));
    emit::<TreasuryChanged>(host, (before, next.account), ());
    Ok(())
}

/// `supportsInterface` itself.
const ERC165: [u8; 4] = [0x01, 0xff, 0xc9, 0xa7];
/// The four functions of ERC-2535's loupe.
const ERC2535_LOUPE: [u8; 4] = [0x48, 0xe2, 0xb0, 0x93];

/// See `IMuster.supportsInterface`.
pub fn supports_interface(id: [u8; 4], own: [u8; 4]) -> bool {
    id == own || matches!(id, ERC165 | ERC2535_LOUPE)
}

// ---------------------------------------------------------------- programs

/// Sets the program that answers some selectors, the zero address for none, and emits the event of ERC-2535. Does not check the caller.
fn assign_programs<H: Host>(host: &mut H, program: Address, list: &[FixedBytes<4>], cuts: &mut Vec<FacetCut>) {
    // Added, replaced, removed.
    let mut changed: [Vec<FixedBytes<4>>; 3] = Default::default();
    for selector in list.iter().map(|s| s.0) {
        let before = program_of(host, selector);
        let at = host.mapping(PROGRAMS, selector_key(selector));
        host.store(at, Word::from(program));
        let place = host.mapping(SELECTOR_PLACES, selector_key(selector));
        let n = host.load(slot(SELECTORS)).0[0];
        let action = match (before == [0; 20], program == [0; 20]) {
            (true, true) => continue,
            (true, false) => {
                write_selector(host, n, selector);
                host.store(place, Word::from(n + 1));
                host.store(slot(SELECTORS), Word::from(n + 1));
                ADDED
            }
            (false, false) => REPLACED,
            (false, true) => {
                let gap = host.load(place).0[0] - 1;
                let (last_at, lane) = selector_at(host, n - 1);
                let last = host.load(last_at).lane32(lane).to_be_bytes();
                write_selector(host, gap, last);
                let moved = host.mapping(SELECTOR_PLACES, selector_key(last));
                host.store(moved, Word::from(gap + 1));
                host.store(place, Word::ZERO);
                write_selector(host, n - 1, [0; 4]);
                host.store(slot(SELECTORS), Word::from(n - 1));
                REMOVED
            }
        };
        changed[action as usize].push(selector.into());
    }
    for (action, selectors) in changed.into_iter().enumerate() {
        if !selectors.is_empty() {
            cuts.push(FacetCut { facetAddress: program.into(), action: action as u8, functionSelectors: selectors });
        }
    }
}

/// Actions of `IMuster.FacetCut`.
const ADDED: u8 = 0;
const REPLACED: u8 = 1;
const REMOVED: u8 = 2;

fn tell_cuts<H: Host>(host: &mut H, cuts: Vec<FacetCut>) {
    emit::<DiamondCut>(host, (), (cuts, [0; 20], &[][..]));
}

/// The key of a proposed change of programs: keccak256(abi.encodePacked(program, selectors)).
fn next_programs<H: Host>(host: &H, program: Address, list: &[FixedBytes<4>]) -> Word {
    let mut bytes = Vec::with_capacity(20 + list.len() * 32);
    bytes.extend_from_slice(&program);
    list.iter().for_each(|s| bytes.extend_from_slice(&selector_key(s.0).to_be_bytes()));
    let key = Word::from_be_bytes(host.keccak(&bytes));
    host.mapping(NEXT_PROGRAMS, key)
}

/// See `IMuster.proposePrograms`.
pub fn propose_programs<H: Host>(host: &mut H, program: Address, list: &[FixedBytes<4>]) -> Result<()> {
    let o = only_owner(host)?;
    ensure!(!o.renounced, UpgradesRenounced);
    ensure!(list.len() <= SELECTORS_MAX, TooManyAtOnce(list.len(), SELECTORS_MAX));
    ensure!(program == [0; 20] || host.has_code(program), NoCode(program));
    let at = host.now() + o.upgrade_delay as u64;
    let place = next_programs(host, program, list);
    host.store(place, Word::from(at));
    emit::<ProgramsProposed>(host, (program,), (list, at));
    Ok(())
}

/// See `IMuster.withdrawPrograms`.
pub fn withdraw_programs<H: Host>(host: &mut H, program: Address, list: &[FixedBytes<4>]) -> Result<()> {
    only_owner(host)?;
    take_proposal(host, program, list)?;
    emit::<ProgramsProposed>(host, (program,), (list, 0u64));
    Ok(())
}

/// Forgets a proposed change of programs; gives when it could have taken effect.
fn take_proposal<H: Host>(host: &mut H, program: Address, list: &[FixedBytes<4>]) -> Result<u64> {
    ensure!(list.len() <= SELECTORS_MAX, TooManyAtOnce(list.len(), SELECTORS_MAX));
    let place = next_programs(host, program, list);
    let at = host.load(place).0[0];
    ensure!(at > 0, NotProposed);
    host.store(place, Word::ZERO);
    Ok(at)
}

/// See `IMuster.acceptPrograms`.
pub fn accept_programs<H: Host>(host: &mut H, program: Address, list: &[FixedBytes<4>]) -> Result<()> {
    ensure!(!ownership(host)?.renounced, UpgradesRenounced);
    let at = take_proposal(host, program, list)?;
    ensure!(host.now() >= at, TooEarly(at));
    ensure!(program == [0; 20] || host.has_code(program), NoCode(program));
    let mut cuts = Vec::new();
    assign_programs(host, program, list, &mut cuts);
    tell_cuts(host, cuts);
    Ok(())
}

/// See `IMuster.proposedPrograms`: when the change can take effect; 0 if it is not proposed.
pub fn proposed_programs<H: Host>(host: &H, program: Address, list: &[FixedBytes<4>]) -> u64 {
    host.load(next_programs(host, program, list)).0[0]
}

/// See `IMuster.renounceUpgrades`.
pub fn renounce_upgrades<H: Host>(host: &mut H) -> Result<()> {
    let o = only_owner(host)?;
    ensure!(!o.renounced, UpgradesRenounced);
    host.put(slot(OWNERSHIP), &Ownership { renounced: true, ..o });
    emit::<UpgradesRenouncedForGood>(host, (), ());
    Ok(())
}

/// See `IMuster.upgrades`: the delay, and whether programs can never be changed again.
pub fn upgrades<H: Host>(host: &H) -> Result<(u32, bool)> {
    let o = ownership(host)?;
    Ok((o.upgrade_delay, o.renounced))
}
