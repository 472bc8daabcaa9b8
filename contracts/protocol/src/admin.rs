//! Initialisation, parameters, ownership, treasury, and which program answers which selector.

use crate::host::{log_words, offset, Host};
use crate::layout::*;
use crate::network::pending;
use crate::{IMuster, Result};
use alloc::vec::Vec;
use alloy_primitives::FixedBytes;
use alloy_sol_types::SolEvent;
use muster_core::qos::PPM;
use muster_core::record::*;
use muster_core::weight;
use muster_core::word::{Address, Word};

/// Seconds before a proposed treasury can take effect.
pub const TREASURY_DELAY: u64 = 2 * 86_400;
/// By how many seconds the longest unbonding stays below the delay of upgrades, so that whoever disagrees can leave first.
pub const NOTICE: u32 = 86_400;
/// Shortest delay of upgrades: the default unbonding and [`NOTICE`].
pub const UPGRADE_DELAY_MIN: u32 = 2 * 86_400;
/// Longest delay of upgrades.
pub const UPGRADE_DELAY_MAX: u32 = 180 * 86_400;
/// Most selectors in one change of programs.
const SELECTORS_MAX: usize = 64;
/// A node's largest stake stays below this many wei; with it all that a new GPU name can cost.
const STAKE_END: u128 = 1 << 88;

/// The words that parameters lie in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Read by every call.
    pub rules: Rules,
    /// Read by calls that create and join.
    pub terms: Terms,
    /// Read by rare calls.
    pub limits: Limits,
}

impl Settings {
    fn load<H: Host>(host: &H) -> Settings {
        Settings { rules: host.get(slot(RULES)), terms: host.get(slot(TERMS)), limits: host.get(slot(LIMITS)) }
    }

    fn store<H: Host>(&self, host: &mut H) {
        host.put(slot(RULES), &self.rules);
        host.put(slot(TERMS), &self.terms);
        host.put(slot(LIMITS), &self.limits);
    }
}

/// A parameter: its name, its bounds, and how it is read and written.
pub struct Parameter {
    /// As in the documentation and in tools.
    pub name: &'static str,
    /// Least value allowed.
    pub least: u64,
    /// Greatest value allowed.
    pub most: u64,
    /// Whether it reaches into stakes, so that a change has to be proposed.
    pub delayed: bool,
    get: fn(&Settings) -> u64,
    set: fn(&mut Settings, u64),
}

macro_rules! parameters {
    ($($name:literal $word:ident.$field:ident: $ty:ty = $least:expr, $most:expr $(, $delayed:ident)?;)*) => {
        /// Every parameter, by its number. Stakes are in granules, shares in the unit their names say.
        pub const PARAMETERS: &[Parameter] = &[$(Parameter {
            name: $name,
            least: $least,
            most: $most,
            delayed: <[&str]>::len(&[$(stringify!($delayed))?]) > 0,
            get: |s| s.$word.$field as u64,
            set: |s, v| s.$word.$field = v as $ty,
        }),*];
    };
}

parameters! {
    "alphaMilli" rules.alpha_milli: u32 = 0, 1_000_000_000;
    "minPrice" terms.min_price: u64 = 0, u64::MAX;
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
    "unbonding" limits.unbonding: u32 = 0, 2_592_000, delayed;
    "kickoutMilli" limits.kickout_milli: u16 = 0, 10_000, delayed;
    "scarce" rules.scarce: u8 = 0, 8;
    "spread" rules.spread: u8 = 0, 16;
    "boostPool" rules.boost_pool: u8 = 0, 8;
    "queueTime" limits.queue_time: u32 = 60, 2_592_000;
    "groupFee" limits.group_fee: u64 = 0, (1 << 48) - 1;
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

/// What is fixed for good when a network is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Genesis {
    /// May change parameters and propose programs.
    pub owner: Address,
    /// Gets protocol income.
    pub treasury: Address,
    /// Wei in a granule of stake.
    pub granule: u64,
    /// In wei; the base of the stake classes.
    pub minimum_stake: u128,
    /// Seconds before a proposed program, or parameter that reaches into stakes, can take effect.
    pub upgrade_delay: u32,
}

/// Refuses anyone but the deployer that the router's init code wrote down, and anything after initialisation.
pub fn only_deployer<H: Host>(host: &H) -> Result<()> {
    let o: Ownership = host.get(slot(OWNERSHIP));
    ensure!(o.granule == 0, AlreadyInitialised);
    let caller = host.sender();
    ensure!(caller == o.owner, NotOwner(caller));
    Ok(())
}

/// See `IMuster.initialise`. The defaults are those of the source documents (`docs/sources.md`) and of `docs/parameters.md`.
pub fn initialise<H: Host>(host: &mut H, genesis: &Genesis, programs: &[IMuster::Facet]) -> Result<()> {
    only_deployer(host)?;
    let Genesis { owner, treasury, granule, minimum_stake, upgrade_delay } = *genesis;
    ensure!(owner != [0; 20] && treasury != [0; 20], ZeroAddress);
    ensure!(granule >= 1_000 && minimum_stake % granule as u128 == 0, BadInitialisation);
    let base = minimum_stake / granule as u128;
    ensure!((1..1 << 30).contains(&base), BadInitialisation);
    ensure!((weight::stake_limit(base as u64) as u128) < STAKE_END / granule as u128, BadInitialisation);
    ensure!((UPGRADE_DELAY_MIN..=UPGRADE_DELAY_MAX).contains(&upgrade_delay), BadInitialisation);
    for f in programs {
        let program = f.facetAddress.into_array();
        ensure!(host.has_code(program), NoCode(program));
    }
    host.put(slot(OWNERSHIP), &Ownership { owner, granule, upgrade_delay, renounced: false });
    host.store(slot(TREASURY), Word::from(treasury));
    let rules = Rules {
        base: base as u64,
        alpha_milli: 2_000,
        start_fee_bps: 200,
        draw_delay: 1,
        penalty_ppm: 300_000,
        boost_ppm: 150_000,
        exclusion_ppm: 100_000,
        tau: 1_800,
        boost_pool: 3,
        scarce: 3,
        spread: 10,
    };
    let terms = Terms {
        sd_overhead: 30,
        sd_unit: 20,
        gpt_overhead: 60,
        gpt_unit: 0,
        fine_tune_max: 86_400,
        limit_min: 60,
        limit_max: 7_200,
        grace: 0,
        min_stake: base as u64,
        min_price: 1,
        paused: false,
    };
    // A hundredth of the minimum stake for a GPU name.
    let limits = Limits { unbonding: 86_400, kickout_milli: 2_000, queue_time: 21_600, group_fee: base as u64 / 100 };
    let settings = Settings { rules, terms, limits };
    settings.store(host);
    emit!(host, Initialised[](owner, treasury, granule, minimum_stake, upgrade_delay));
    // Who reads nothing but logs has to know the defaults too.
    for (number, p) in PARAMETERS.iter().enumerate() {
        emit!(host, ParameterChanged[number](0u64, (p.get)(&settings)));
    }
    for f in programs {
        assign_program(host, f.facetAddress.into_array(), &f.functionSelectors);
    }
    Ok(())
}

/// The parameter of a number, and its bounds: the minimum stake cannot exceed what the stake classes hold, nor the
/// unbonding reach the delay of upgrades.
fn bounded<H: Host>(host: &H, number: u8) -> Result<(&'static Parameter, u64, u64)> {
    let p = PARAMETERS.get(number as usize).ok_or_else(|| refusal!(ParameterUnknown(number)))?;
    let most = match p.name {
        "minStake" | "groupFee" => weight::stake_limit(host.get::<Rules>(slot(RULES)).base),
        "unbonding" => ownership(host)?.upgrade_delay.saturating_sub(NOTICE) as u64,
        _ => p.most,
    };
    Ok((p, p.least, most.min(p.most)))
}

/// Refuses a value outside of a parameter's bounds.
fn within<H: Host>(host: &H, number: u8, value: Word) -> Result<(&'static Parameter, u64)> {
    let (p, least, most) = bounded(host, number)?;
    let [v, rest @ ..] = value.0;
    ensure!(rest == [0; 3] && v >= least && v <= most, ParameterOutOfBounds(number, value, least, most));
    Ok((p, v))
}

fn put_parameter<H: Host>(host: &mut H, number: u8, p: &Parameter, value: u64) {
    let mut settings = Settings::load(host);
    let before = (p.get)(&settings);
    (p.set)(&mut settings, value);
    settings.store(host);
    emit!(host, ParameterChanged[number](before, value));
}

/// See `IMuster.setParameter`.
pub fn set_parameter<H: Host>(host: &mut H, number: u8, value: Word) -> Result<()> {
    only_owner(host)?;
    let (p, v) = within(host, number, value)?;
    ensure!(!p.delayed, ParameterDelayed(number));
    if p.name == "drawDelay" {
        // A new task's block is never before that of one already Pending: those behind would be known before their turn.
        let (rules, head): (Rules, Head) = (host.get(slot(RULES)), host.get(slot(HEAD)));
        let pending = pending(&head);
        ensure!(v >= rules.draw_delay as u64 || pending == 0, TasksPending(pending));
    }
    put_parameter(host, number, p, v);
    Ok(())
}

/// See `IMuster.proposeParameter`.
pub fn propose_parameter<H: Host>(host: &mut H, number: u8, value: Word) -> Result<()> {
    let o = only_owner(host)?;
    let (p, value) = within(host, number, value)?;
    ensure!(p.delayed, ParameterNotDelayed(number));
    let at = host.now() + o.upgrade_delay as u64;
    let place = entry(host, NEXT_PARAMETERS, number as u64);
    host.put(place, &NextParameter { value, at });
    emit!(host, ParameterProposed[number](value, at));
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
pub fn proposed_parameter<H: Host>(host: &H, number: u8) -> Result<(u64, u64)> {
    bounded(host, number)?;
    let next: NextParameter = host.get(entry(host, NEXT_PARAMETERS, number as u64));
    Ok((next.value, next.at))
}

/// See `IMuster.parameter`: value, least, most.
pub fn parameter<H: Host>(host: &H, number: u8) -> Result<(u64, u64, u64)> {
    let (p, least, most) = bounded(host, number)?;
    Ok(((p.get)(&Settings::load(host)), least, most))
}

/// See `IMuster.setPaused`.
pub fn set_paused<H: Host>(host: &mut H, on: bool) -> Result<()> {
    only_owner(host)?;
    let terms: Terms = host.get(slot(TERMS));
    host.put(slot(TERMS), &Terms { paused: on, ..terms });
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
    ensure!(next.account != [0; 20], NotProposed);
    ensure!(host.now() >= next.at, TooEarly(next.at));
    let before = treasury(host);
    host.put(slot(NEXT_TREASURY), &Proposal::default());
    host.store(slot(TREASURY), Word::from(next.account));
    emit!(host, TreasuryChanged[before, next.account]());
    Ok(())
}

/// The account that protocol income goes to.
pub fn treasury<H: Host>(host: &H) -> Address {
    host.get(slot(TREASURY))
}

/// Protocol income not yet taken, in wei.
pub fn income<H: Host>(host: &H) -> u128 {
    host.load(slot(INCOME)).to_u128().unwrap_or(u128::MAX)
}

/// See `IMuster.sweepTreasury`: whom to pay and how much, already taken off the books.
pub fn take_treasury<H: Host>(host: &mut H) -> Result<(Address, u128)> {
    ownership(host)?;
    let (account, amount) = (treasury(host), income(host));
    ensure!(amount > 0, NothingToWithdraw(account));
    host.store(slot(INCOME), Word::ZERO);
    emit!(host, TreasurySwept[account](amount));
    Ok((account, amount))
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
    (0..n)
        .map(|i| {
            let (at, lane) = selector_at(host, i);
            host.load(at).lane32(lane).to_be_bytes()
        })
        .collect()
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

/// Where a change of programs waits: keccak256(abi.encodePacked(program, selectors)).
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
    log_programs(host, IMuster::ProgramsProposed::SIGNATURE_HASH.0, program, list, at);
    Ok(())
}

/// See `IMuster.withdrawPrograms`.
pub fn withdraw_programs<H: Host>(host: &mut H, program: Address, list: &[FixedBytes<4>]) -> Result<()> {
    only_owner(host)?;
    take_proposal(host, program, list)?;
    log_programs(host, IMuster::ProgramsProposed::SIGNATURE_HASH.0, program, list, 0);
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

fn log_programs<H: Host>(host: &mut H, event: [u8; 32], program: Address, list: &[FixedBytes<4>], at: u64) {
    let mut data: Vec<Word> = [Word::from(64), Word::from(at), Word::from(list.len() as u64)].into();
    data.extend(list.iter().map(|s| selector_key(s.0)));
    log_words(host, &[Word::from_be_bytes(event), Word::from(program)], &data);
}

/// See `IMuster.acceptPrograms`.
pub fn accept_programs<H: Host>(host: &mut H, program: Address, list: &[FixedBytes<4>]) -> Result<()> {
    ensure!(!ownership(host)?.renounced, UpgradesRenounced);
    let at = take_proposal(host, program, list)?;
    ensure!(host.now() >= at, TooEarly(at));
    ensure!(program == [0; 20] || host.has_code(program), NoCode(program));
    assign_program(host, program, list);
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
    emit!(host, UpgradesRenouncedForGood[]());
    Ok(())
}

/// See `IMuster.upgrades`: the delay, and whether programs can never be changed again.
pub fn upgrades<H: Host>(host: &H) -> Result<(u32, bool)> {
    let o = ownership(host)?;
    Ok((o.upgrade_delay, o.renounced))
}
