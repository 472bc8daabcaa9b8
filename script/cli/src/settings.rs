//! The settings of a deployment against the contract's rules, before anything is sent: the contract itself only refuses, after the programs
//! and the router have been paid for, and names no setting.

use alloy::primitives::{utils::format_ether, Address, U256};
use muster_core::{weight, word::Word};
use muster_protocol::{
    admin::{
        self,
        parameters::{bounded, number_of, within, BASE_MAX},
        Genesis, UPGRADE_DELAY_MAX, UPGRADE_DELAY_MIN,
    },
    native::Memory,
};

use crate::router::Terms;

/// Least wei in a stake unit, and the wei that a node's largest stake stays below: the contract's, as the test below checks by its code.
const STAKE_UNIT_MIN: u64 = 1_000;
const STAKE_END: u128 = 1 << 88;

/// The settings that the contract would refuse, a sentence each: the setting, its value and the bound.
pub(crate) fn faults(terms: &Terms, parameters: &[(String, U256)]) -> Vec<String> {
    let faults = of_terms(terms);
    if !faults.is_empty() {
        // Bounds of parameters follow from the terms.
        return faults;
    }
    match initialised(terms) {
        Some(network) => parameters.iter().filter_map(|(name, value)| of_parameter(&network, name, *value)).collect(),
        None => vec!["the contract refuses to be initialised with these settings".into()],
    }
}

fn of_terms(terms: &Terms) -> Vec<String> {
    let Terms { owner, treasury, stake_unit, minimum_stake, upgrade_delay } = *terms;
    let mut faults = Vec::new();
    for (name, address) in [("OWNER", owner), ("TREASURY", treasury)] {
        if address == Address::ZERO {
            faults.push(format!("{name} is {address:?}, the zero address"));
        }
    }
    if stake_unit < STAKE_UNIT_MIN {
        faults.push(format!("STAKE_UNIT is {stake_unit} wei, and must be {STAKE_UNIT_MIN} wei at least"));
    } else {
        let unit = u128::from(stake_unit);
        let most = unit * u128::from(BASE_MAX).min((STAKE_END / unit - 1) / u128::from(weight::stake_limit(1)));
        if !minimum_stake.is_multiple_of(unit) || !(unit..=most).contains(&minimum_stake) {
            faults.push(format!(
                "MIN_STAKE is {} ether, and must be a whole multiple of STAKE_UNIT, which is {stake_unit} wei, from {} to {} ether",
                ether(minimum_stake),
                ether(unit),
                ether(most)
            ));
        }
    }
    if !(UPGRADE_DELAY_MIN..=UPGRADE_DELAY_MAX).contains(&upgrade_delay) {
        faults.push(format!(
            "UPGRADE_DELAY is {upgrade_delay} seconds, and must be from {UPGRADE_DELAY_MIN} to {UPGRADE_DELAY_MAX} seconds"
        ));
    }
    faults
}

fn of_parameter(network: &Memory, name: &str, value: U256) -> Option<String> {
    let number = number_of(name)?;
    if within(network, number, Word(value.into_limbs())).is_ok() {
        return None;
    }
    let (_, least, most) = bounded(network, number).ok()?;
    Some(format!("the parameter {name} is to be {value}, and must be from {least} to {most}"))
}

/// The contract's own code, initialised in memory; none if it refuses.
fn initialised(terms: &Terms) -> Option<Memory> {
    let deployer = Address::repeat_byte(1).into_array();
    let mut memory = Memory::created_by(deployer);
    memory.sender = deployer;
    let genesis = Genesis {
        owner: terms.owner.into_array(),
        treasury: terms.treasury.into_array(),
        stake_unit: terms.stake_unit,
        minimum_stake: terms.minimum_stake,
        upgrade_delay: terms.upgrade_delay,
    };
    admin::initialise(&mut memory, &genesis, &[]).ok()?;
    Some(memory)
}

/// Wei in ether, without the zeros at the end.
fn ether(wei: u128) -> String {
    format_ether(wei).trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        Terms {
            owner: Address::repeat_byte(2),
            treasury: Address::repeat_byte(3),
            stake_unit: 1_000_000_000_000,
            minimum_stake: 400_000_000_000_000_000_000,
            upgrade_delay: 604_800,
        }
    }

    #[test]
    fn settings_are_named_that_the_contract_refuses_and_no_others() {
        let mut refused = 0;
        let mut same = |terms: &Terms| {
            let taken = initialised(terms).is_some();
            assert_eq!(of_terms(terms).is_empty(), taken, "{terms:?}");
            refused += usize::from(!taken);
        };
        for delay in [0, 5, UPGRADE_DELAY_MIN - 1, UPGRADE_DELAY_MIN, UPGRADE_DELAY_MAX, UPGRADE_DELAY_MAX + 1, u32::MAX] {
            same(&Terms { upgrade_delay: delay, ..terms() });
        }
        for address in [Address::ZERO, Address::repeat_byte(4)] {
            same(&Terms { owner: address, ..terms() });
            same(&Terms { treasury: address, ..terms() });
        }
        for stake_unit in [0, 1, 999, 1_000, 1_001, 1 << 20, 1_000_000_000_000, 1 << 41, 1 << 50, u64::MAX] {
            let unit = u128::from(stake_unit.max(1));
            let edges = [1, u128::from(BASE_MAX), (STAKE_END / unit) >> 18, u128::from(u64::MAX)];
            for base in edges.into_iter().flat_map(|edge| [edge.saturating_sub(1), edge, edge + 1]) {
                let stake = unit.saturating_mul(base);
                for minimum_stake in [stake.saturating_sub(1), stake, stake.saturating_add(1)] {
                    same(&Terms { stake_unit, minimum_stake, ..terms() });
                }
            }
        }
        assert!(refused > 50, "{refused}");
    }

    #[test]
    fn a_fault_says_the_setting_its_value_and_the_bound() {
        let said = |terms: Terms, parameters: &[(&str, u64)]| {
            let parameters: Vec<_> = parameters.iter().map(|(name, value)| (name.to_string(), U256::from(*value))).collect();
            faults(&terms, &parameters).join("\n")
        };
        assert_eq!(said(terms(), &[("scorePool", 3)]), "");
        assert_eq!(
            said(Terms { upgrade_delay: 5, ..terms() }, &[]),
            "UPGRADE_DELAY is 5 seconds, and must be from 172800 to 15552000 seconds"
        );
        assert_eq!(
            said(Terms { minimum_stake: 100_000, ..terms() }, &[]),
            "MIN_STAKE is 0.0000000000001 ether, and must be a whole multiple of STAKE_UNIT, which is 1000000000000 wei, \
             from 0.000001 to 1073.741823 ether"
        );
        assert_eq!(
            said(Terms { stake_unit: 1, owner: Address::ZERO, ..terms() }, &[]),
            "OWNER is 0x0000000000000000000000000000000000000000, the zero address\nSTAKE_UNIT is 1 wei, and must be 1000 wei at least"
        );
        assert_eq!(
            said(terms(), &[("sampleBps", 10_001)]),
            "the parameter sampleBps is to be 10001, and must be from 0 to 10000"
        );
    }
}
