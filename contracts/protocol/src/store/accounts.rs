//! Accounts: Muster's debts to accounts, and protocol income. Nothing else writes those words.

use crate::abi::{emit, IMuster::*};
use crate::host::Host;
use crate::store::layout::{account_slot, node_slot, slot, BURNT, INCOME, OWNERSHIP, RESERVE, TREASURY};
use crate::Result;
use muster_core::id::NodeId;
use muster_core::record::{Account, Node, Ownership};
use muster_core::word::{Address, Word};

/// Most stake units an account can have waiting for their release.
const UNBONDING_MAX: u64 = (1 << 48) - 1;

/// Wei in a stake unit.
pub fn stake_unit<H: Host>(host: &H) -> u64 {
    host.get::<Ownership>(slot(OWNERSHIP)).stake_unit
}

/// Stake units in wei.
pub fn wei<H: Host>(host: &H, stake_units: u64) -> u128 {
    stake_units as u128 * stake_unit(host) as u128
}

/// The account of an address.
pub fn account<H: Host>(host: &H, who: Address) -> Account {
    host.get(account_slot(host, who))
}

/// The node of an address, 0 for none, and whether it only works for it.
pub fn node_of<H: Host>(host: &H, who: Address) -> (NodeId, bool) {
    Account::node_in(host.load(account_slot(host, who)))
}

fn put<H: Host>(host: &mut H, who: Address, account: &Account) {
    let at = account_slot(host, who);
    host.put(at, account);
}

/// Gives an account its node's number, once and for good.
pub fn name_node<H: Host>(host: &mut H, who: Address, account: Account, node: NodeId) {
    put(host, who, &Account { node, ..account });
}

/// Has an account work for a node, or, where the node is 0, for none.
pub fn employ<H: Host>(host: &mut H, who: Address, node: NodeId) {
    let account = account(host, who);
    put(host, who, &Account { node, works: node.0 > 0, ..account });
}

/// Adds to the credit that an address can withdraw. Cannot overflow: see [`crate::flow::create::FEE_END`].
pub fn credit<H: Host>(host: &mut H, who: Address, wei: u128) {
    if wei > 0 {
        let at = account_slot(host, who);
        let word = host.load(at);
        host.store(at, Account::credited(word, wei));
    }
}

/// Refuses a stake, in stake units, whose return would not fit beside the returned stake that still waits to be withdrawn.
pub fn check_returnable<H: Host>(host: &H, account: &Account, stake: u64) -> Result<()> {
    let most = UNBONDING_MAX - account.unbonding;
    ensure!(stake <= most, StakeTooHigh(wei(host, stake), wei(host, most)));
    Ok(())
}

/// Whether an account's returned stake has waited long enough.
fn is_mature<H: Host>(host: &H, account: &Account) -> bool {
    account.unbonding > 0 && host.now() >= account.release
}

/// Takes an account's returned stake, in wei.
fn take_unbonding<H: Host>(host: &H, account: &mut Account) -> u128 {
    wei(host, core::mem::take(&mut account.unbonding))
}

/// Lets a returned stake wait until `release`. An earlier returned stake that waited long enough becomes credit, so that it does not wait
/// again, unless open commitments lock it.
pub fn unbond<H: Host>(host: &mut H, who: Address, stake: u64, release: u64, locked: bool, kicked: bool) {
    let mut account = account(host, who);
    if is_mature(host, &account) && !locked {
        let matured = take_unbonding(host, &mut account);
        account.credit += matured;
        emit::<StakeReleased>(host, (who,), (matured,));
    }
    // Cannot exceed its field: `check_returnable`.
    account.unbonding += stake;
    account.release = release;
    account.kicked |= kicked;
    put(host, who, &account);
}

/// See `IMuster.withdraw`. It draws nothing: money that is owed is paid, whatever waits.
pub fn withdraw<H: Host>(host: &mut H, to: Address) -> Result<()> {
    ensure!(stake_unit(host) > 0, NotInitialised);
    ensure!(to != [0; 20], ZeroAddress);
    let caller = host.sender();
    let mut account = account(host, caller);
    let credit = core::mem::take(&mut account.credit);
    let mut free = is_mature(host, &account);
    if free {
        let open = host.get::<Node>(node_slot(host, account.node)).open();
        ensure!(open == 0 || credit > 0, StakeLocked(account.node, open));
        free = open == 0;
    }
    let stake = if free { take_unbonding(host, &mut account) } else { 0 };
    ensure!(credit + stake > 0, NothingToWithdraw(caller));
    put(host, caller, &account);
    emit::<Withdrawn>(host, (caller, to), (credit, stake));
    pay(host, to, credit + stake)
}

fn pay<H: Host>(host: &mut H, to: Address, wei: u128) -> Result<()> {
    ensure!(host.pay(to, wei), TransferFailed(to, wei));
    Ok(())
}

/// Protocol income not yet taken, in wei: below 2^127 for all start fees ever, and 2^112 for each new GPU name.
pub fn income<H: Host>(host: &H) -> u128 {
    held(host, INCOME)
}

/// Adds to protocol income.
pub fn earn<H: Host>(host: &mut H, wei: u128) {
    add(host, INCOME, wei);
}

/// The reserve that pays for validations beside the fees, in wei: below 2^127, as all fees ever.
pub fn reserve<H: Host>(host: &H) -> u128 {
    held(host, RESERVE)
}

/// Adds to the reserve.
pub fn save<H: Host>(host: &mut H, wei: u128) {
    add(host, RESERVE, wei);
}

/// Takes up to this much out of the reserve, all but one wei; gives how much.
pub fn draw_reserve<H: Host>(host: &mut H, wei: u128) -> u128 {
    let there = reserve(host);
    // One wei stays, so that the word does not fall back to zero.
    let taken = wei.min(there.saturating_sub(1));
    set(host, RESERVE, there - taken);
    taken
}

/// The sum of all slashes, in wei: it stays here for good.
pub fn burnt<H: Host>(host: &H) -> u128 {
    held(host, BURNT)
}

/// Counts the amount of a slash.
pub fn burn<H: Host>(host: &mut H, wei: u128) {
    add(host, BURNT, wei);
}

/// Takes up to this much, in wei, of an account's returned stake (in whole stake units, rounded down), and then of its credit. If less than
/// `least` stake units of the returned stake are left, the account can never join again. Gives how much of each was taken, and whether the
/// account could have joined before.
pub fn seize<H: Host>(host: &mut H, who: Address, wei: u128, least: u64) -> (u128, u128, bool) {
    let mut account = account(host, who);
    let stake_unit = stake_unit(host) as u128;
    let stake_units = (wei / stake_unit).min(account.unbonding as u128);
    account.unbonding -= stake_units as u64;
    let unbonding = stake_units * stake_unit;
    let credit = (wei - unbonding).min(account.credit);
    account.credit -= credit;
    let barred = !account.kicked && account.unbonding < least;
    account.kicked |= barred;
    put(host, who, &account);
    (unbonding, credit, barred)
}

fn held<H: Host>(host: &H, variable: u8) -> u128 {
    let Word([low, high, ..]) = host.load(slot(variable));
    low as u128 | (high as u128) << 64
}

fn set<H: Host>(host: &mut H, variable: u8, wei: u128) {
    host.store(slot(variable), Word([wei as u64, (wei >> 64) as u64, 0, 0]));
}

fn add<H: Host>(host: &mut H, variable: u8, wei: u128) {
    if wei > 0 {
        let before = held(host, variable);
        set(host, variable, before + wei);
    }
}

/// The account that protocol income goes to.
pub fn treasury<H: Host>(host: &H) -> Address {
    host.get(slot(TREASURY))
}

/// See `IMuster.sweepTreasury`.
pub fn sweep_treasury<H: Host>(host: &mut H) -> Result<()> {
    ensure!(stake_unit(host) > 0, NotInitialised);
    let (account, amount) = (treasury(host), income(host));
    ensure!(amount > 0, NothingToWithdraw(account));
    host.store(slot(INCOME), Word::ZERO);
    emit::<TreasurySwept>(host, (account,), (amount,));
    pay(host, account, amount)
}
