//! Initialisation, parameters, ownership, treasury, and which program answers which selector.

use crate::host::{offset, Host};
use crate::layout::*;
use crate::{IMuster, Result};
use alloc::vec::Vec;
use alloy_primitives::FixedBytes;
use muster_core::qos::PPM;
use muster_core::record::*;
use muster_core::word::{Address, Word};

/// Seconds before a proposed treasury can take effect.
pub const TREASURY_DELAY: u64 = 2 * 86_400;

/// A parameter: its name, its bounds, and how it is read and written.
pub struct Parameter {
    /// As in the documentation and in tools.
    pub name: &'static str,
    /// Least value allowed.
    pub least: u64,
    /// Greatest value allowed.
    pub most: u64,
    get: fn(&Rules, &Terms) -> u64,
    set: fn(&mut Rules, &mut Terms, u64),
}

macro_rules! parameters {
    ($($name:literal $at:ident.$field:ident: $ty:ty = $least:expr, $most:expr;)*) => {
        /// Every parameter, by its number. Stakes are in granules, shares in the unit their names say.
        pub const PARAMETERS: &[Parameter] = &[$(parameters!(@one $name $at.$field: $ty = $least, $most)),*];
    };
    (@one $name:literal rules.$field:ident: $ty:ty = $least:expr, $most:expr) => {
        Parameter { name: $name, least: $least, most: $most, get: |r, _| r.$field as u64, set: |r, _, v| r.$field = v as $ty }
    };
    (@one $name:literal terms.$field:ident: $ty:ty = $least:expr, $most:expr) => {
        Parameter { name: $name, least: $least, most: $most, get: |_, t| t.$field as u64, set: |_, t, v| t.$field = v as $ty }
    };
}

parameters! {
    "alphaMilli" rules.alpha_milli: u32 = 0, 1_000_000_000;
    "minPrice" rules.min_price: u64 = 0, u64::MAX;
    "startFeeBps" rules.start_fee_bps: u16 = 0, 5_000;
    "drawDelay" rules.draw_delay: u8 = 0, 64;
    "penaltyPpm" rules.penalty_ppm: u32 = 0, PPM;
    "boostPpm" rules.boost_ppm: u32 = 0, PPM;
    "exclusionPpm" rules.exclusion_ppm: u32 = 0, 900_000;
    "tau" rules.tau: u32 = 1, 604_800;
    "sdOverhead" terms.sd_overhead: u16 = 0, 3_600;
    "sdUnit" terms.sd_unit: u16 = 1, 3_600;
    "gptOverhead" terms.gpt_overhead: u16 = 1, 3_600;
    "gptUnit" terms.gpt_unit: u16 = 0, 3_600;
    "fineTuneMax" terms.fine_tune_max: u32 = 1, 1_000_000;
    "limitMin" terms.limit_min: u16 = 1, 3_600;
    "limitMax" terms.limit_max: u16 = 60, 65_535;
    "grace" terms.grace: u16 = 0, 7_200;
    "minStake" terms.min_stake: u64 = 1, (1 << 48) - 1;
    "unbonding" terms.unbonding: u32 = 0, 2_592_000;
    "kickoutMilli" terms.kickout_milli: u16 = 0, 10_000;
    "scarce" terms.scarce: u8 = 0, 8;
    "spread" terms.spread: u8 = 0, 16;
}

fn ownership<H: Host>(host: &H) -> Result<Ownership> {
    let o: Ownership = host.get(slot(OWNERSHIP));
    ensure!(o.granule > 0, NotInitialised);
    Ok(o)
}

fn only_owner<H: Host>(host: &H) -> Result<Ownership> {
    let o = ownership(host)?;
    let caller = host.sender();
    ensure!(caller == o.owner, NotOwner(caller));
    Ok(o)
}

/// See `IMuster.initialise`. The defaults are those of the seeds and of `docs/parameters.md`.
pub fn initialise<H: Host>(host: &mut H, owner: Address, treasury: Address, granule: u64, minimum_stake: u128, programs: &[IMuster::Facet]) -> Result<()> {
    let o: Ownership = host.get(slot(OWNERSHIP));
    ensure!(o.granule == 0, AlreadyInitialised);
    ensure!(owner != [0; 20] && treasury != [0; 20], ZeroAddress);
    ensure!(granule >= 1_000 && minimum_stake % granule as u128 == 0, BadInitialisation);
    let base = minimum_stake / granule as u128;
    ensure!((1..1 << 30).contains(&base), BadInitialisation);
    host.put(slot(OWNERSHIP), &Ownership { owner, granule });
    host.put(slot(TREASURY), &Treasury { account: treasury, balance: 0 });
    host.put(slot(RULES), &Rules {
        base: base as u64,
        alpha_milli: 2_000,
        min_price: 1,
        start_fee_bps: 200,
        draw_delay: 1,
        penalty_ppm: 300_000,
        boost_ppm: 150_000,
        exclusion_ppm: 100_000,
        tau: 1_800,
    });
    host.put(slot(TERMS), &Terms {
        sd_overhead: 30,
        sd_unit: 20,
        gpt_overhead: 60,
        gpt_unit: 0,
        fine_tune_max: 86_400,
        limit_min: 60,
        limit_max: 7_200,
        grace: 0,
        min_stake: base as u64,
        unbonding: 86_400,
        kickout_milli: 2_000,
        scarce: 3,
        spread: 10,
    });
    emit!(host, Initialised[](owner, treasury, granule, minimum_stake));
    // Who reads nothing but logs has to know the defaults too.
    let (rules, terms): (Rules, Terms) = (host.get(slot(RULES)), host.get(slot(TERMS)));
    for (number, p) in PARAMETERS.iter().enumerate() {
        emit!(host, ParameterChanged[number](0u64, (p.get)(&rules, &terms)));
    }
    for f in programs {
        assign_program(host, f.facetAddress.into_array(), &f.functionSelectors);
    }
    Ok(())
}

/// See `IMuster.setParameter`.
pub fn set_parameter<H: Host>(host: &mut H, number: u8, value: Word) -> Result<()> {
    only_owner(host)?;
    let p = PARAMETERS.get(number as usize).ok_or_else(|| refusal!(ParameterUnknown(number)))?;
    let (least, most) = bounds(host, p);
    let [v, rest @ ..] = value.0;
    ensure!(rest == [0; 3] && v >= least && v <= most,
        ParameterOutOfBounds(number, value, least, most));
    let (mut rules, mut terms): (Rules, Terms) = (host.get(slot(RULES)), host.get(slot(TERMS)));
    let before = (p.get)(&rules, &terms);
    (p.set)(&mut rules, &mut terms, v);
    host.put(slot(RULES), &rules);
    host.put(slot(TERMS), &terms);
    emit!(host, ParameterChanged[number](before, value));
    Ok(())
}

/// A parameter's bounds; the minimum stake cannot exceed what the stake classes hold.
fn bounds<H: Host>(host: &H, p: &Parameter) -> (u64, u64) {
    let rules: Rules = host.get(slot(RULES));
    let most = if p.name == "minStake" { muster_core::weight::stake_limit(rules.base).min(p.most) } else { p.most };
    (p.least, most)
}

/// See `IMuster.parameter`: value, least, most.
pub fn parameter<H: Host>(host: &H, number: u8) -> Result<(u64, u64, u64)> {
    let p = PARAMETERS.get(number as usize).ok_or_else(|| refusal!(ParameterUnknown(number)))?;
    let (least, most) = bounds(host, p);
    Ok(((p.get)(&host.get(slot(RULES)), &host.get(slot(TERMS))), least, most))
}

/// See `IMuster.setPaused`.
pub fn set_paused<H: Host>(host: &mut H, on: bool) -> Result<()> {
    only_owner(host)?;
    let mut head: Head = host.get(slot(HEAD));
    head.paused = on;
    host.put(slot(HEAD), &head);
    emit!(host, PausedChanged[](on));
    Ok(())
}

/// See `IMuster.transferOwnership`.
pub fn transfer_ownership<H: Host>(host: &mut H, next: Address) -> Result<()> {
    let o = only_owner(host)?;
    host.put(slot(NEXT_OWNER), &Proposal { account: next, at: 0 });
    emit!(host, OwnershipTransferStarted[o.owner, next]());
    Ok(())
}

/// See `IMuster.acceptOwnership`.
pub fn accept_ownership<H: Host>(host: &mut H) -> Result<()> {
    let o = ownership(host)?;
    let (next, caller): (Proposal, Address) = (host.get(slot(NEXT_OWNER)), host.sender());
    ensure!(caller == next.account && caller != [0; 20], NotPendingOwner(caller));
    host.put(slot(NEXT_OWNER), &Proposal::default());
    host.put(slot(OWNERSHIP), &Ownership { owner: caller, ..o });
    emit!(host, OwnershipTransferred[o.owner, caller]());
    Ok(())
}

/// See `IMuster.proposeTreasury`.
pub fn propose_treasury<H: Host>(host: &mut H, account: Address) -> Result<()> {
    only_owner(host)?;
    let at = if account == [0; 20] { 0 } else { host.now() + TREASURY_DELAY };
    host.put(slot(NEXT_TREASURY), &Proposal { account, at });
    emit!(host, TreasuryProposed[account](at));
    Ok(())
}

/// See `IMuster.acceptTreasury`.
pub fn accept_treasury<H: Host>(host: &mut H) -> Result<()> {
    ownership(host)?;
    let next: Proposal = host.get(slot(NEXT_TREASURY));
    ensure!(next.account != [0; 20], TreasuryNotProposed);
    ensure!(host.now() >= next.at, TreasuryTooEarly(next.at));
    let treasury: Treasury = host.get(slot(TREASURY));
    host.put(slot(NEXT_TREASURY), &Proposal::default());
    host.put(slot(TREASURY), &Treasury { account: next.account, ..treasury });
    emit!(host, TreasuryChanged[treasury.account, next.account]());
    Ok(())
}

/// See `IMuster.sweepTreasury`: whom to pay and how much, already taken off the books.
pub fn take_treasury<H: Host>(host: &mut H) -> Result<(Address, u128)> {
    ownership(host)?;
    let mut treasury: Treasury = host.get(slot(TREASURY));
    let amount = core::mem::take(&mut treasury.balance);
    ensure!(amount > 0, NothingToWithdraw(treasury.account));
    host.put(slot(TREASURY), &treasury);
    emit!(host, TreasurySwept[treasury.account](amount));
    Ok((treasury.account, amount))
}

// ---------------------------------------------------------------- programs

/// The slot of selector `i` in the list: eight to a word, as Solidity packs `bytes4[]`.
fn selector_at<H: Host>(host: &H, i: u64) -> (Word, u32) {
    let first = Word::from_be_bytes(host.keccak(&slot(SELECTORS).to_be_bytes()));
    (offset(first, i / 8), (i % 8) as u32)
}

/// The program that answers a selector; zero if none does.
pub fn program_of<H: Host>(host: &H, selector: [u8; 4]) -> Address {
    let w = host.load(host.mapping(PROGRAMS, selector_key(selector)));
    let mut a = [0; 20];
    a.copy_from_slice(&w.to_be_bytes()[12..]);
    a
}

/// All selectors answered.
pub fn selectors<H: Host>(host: &H) -> Vec<[u8; 4]> {
    let n = host.load(slot(SELECTORS)).0[0];
    (0..n).map(|i| {
        let (at, lane) = selector_at(host, i);
        host.load(at).lane32(lane).to_be_bytes()
    }).collect()
}

/// Sets which program answers some selectors, the zero address for none. No check of the caller.
pub fn assign_program<H: Host>(host: &mut H, program: Address, list: &[FixedBytes<4>]) {
    for selector in list.iter().map(|s| s.0) {
        let before = program_of(host, selector);
        let at = host.mapping(PROGRAMS, selector_key(selector));
        host.store(at, Word::from(program));
        let place = host.mapping(SELECTOR_PLACES, selector_key(selector));
        let n = host.load(slot(SELECTORS)).0[0];
        if before == [0; 20] && program != [0; 20] {
            write_selector(host, n, selector);
            host.store(place, Word::from(n + 1));
            host.store(slot(SELECTORS), Word::from(n + 1));
        } else if before != [0; 20] && program == [0; 20] {
            let gap = host.load(place).0[0] - 1;
            let (last_at, lane) = selector_at(host, n - 1);
            let last = host.load(last_at).lane32(lane).to_be_bytes();
            write_selector(host, gap, last);
            let moved = host.mapping(SELECTOR_PLACES, selector_key(last));
            host.store(moved, Word::from(gap + 1));
            host.store(place, Word::ZERO);
            write_selector(host, n - 1, [0; 4]);
            host.store(slot(SELECTORS), Word::from(n - 1));
        }
        emit!(host, ProgramChanged[selector, before, program]());
    }
}

fn write_selector<H: Host>(host: &mut H, i: u64, selector: [u8; 4]) {
    let (at, lane) = selector_at(host, i);
    let mut w = host.load(at);
    w.set_lane32(lane, u32::from_be_bytes(selector));
    host.store(at, w);
}

/// See `IMuster.setProgram`. At most 64 selectors a call.
pub fn set_program<H: Host>(host: &mut H, program: Address, list: &[FixedBytes<4>]) -> Result<()> {
    only_owner(host)?;
    ensure!(list.len() <= 64, TooManyAtOnce(list.len(), 64u8));
    assign_program(host, program, list);
    Ok(())
}
