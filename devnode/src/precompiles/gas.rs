//! The price of gas.

use revm::primitives::{I256, U256};

use super::abi::ArbGasInfo;
use super::{missing, uint, uints, value, Call, Done, ARB_GAS_INFO, NETWORK_FEE_ACCOUNT, READ};
use crate::arbos::Number;
use crate::exec::MAX_TX_GAS;

/// A simple transaction's size on L1.
const SIMPLE_TX_BYTES: u64 = 140;
/// Gas for a new word of storage.
const STORAGE_GAS: u64 = 20_000;

fn prices_in_wei(c: &mut Call<'_>) -> Done {
    let l1 = c.number(Number::L1PricePerUnit)?;
    let min = c.number(Number::MinBaseFee)?;
    let l2 = U256::from(c.exec.block.base_fee_in_block);
    let calldata = l1.saturating_mul(U256::from(16));
    let base = min.min(l2);
    uints([calldata.saturating_mul(U256::from(SIMPLE_TX_BYTES)), calldata, l2 * U256::from(STORAGE_GAS), base, l2 - base, l2])
}

fn prices_in_gas(c: &mut Call<'_>) -> Done {
    let l2 = U256::from(c.exec.block.base_fee_in_block);
    let calldata = c.number(Number::L1PricePerUnit)?.saturating_mul(U256::from(16));
    let gas = |wei: U256| wei.checked_div(l2).unwrap_or_default();
    let tx = gas(calldata.saturating_mul(U256::from(SIMPLE_TX_BYTES)));
    uints([tx, gas(calldata), U256::from(STORAGE_GAS)])
}

pub(super) fn arb_gas_info(c: &mut Call<'_>) -> Done {
    methods! { c,
        ArbGasInfo::getPricesInWeiWithAggregatorCall, View, 0 => |_| prices_in_wei(c);
        ArbGasInfo::getPricesInWeiCall, View, 0 => |_| prices_in_wei(c);
        ArbGasInfo::getPricesInArbGasWithAggregatorCall, View, 0 => |_| prices_in_gas(c);
        ArbGasInfo::getPricesInArbGasCall, View, 0 => |_| prices_in_gas(c);
        ArbGasInfo::getGasAccountingParamsCall, View, 0 => |_| {
            let speed = c.number(Number::SpeedLimit)?;
            c.burn(READ)?;
            uints([speed, U256::from(MAX_TX_GAS), U256::from(MAX_TX_GAS)])
        };
        ArbGasInfo::getMaxTxGasLimitCall, View, 50 => |_| { c.burn(READ)?; uint(MAX_TX_GAS) };
        ArbGasInfo::getMaxBlockGasLimitCall, View, 50 => |_| { c.burn(READ)?; uint(MAX_TX_GAS) };
        ArbGasInfo::getMinimumGasPriceCall, View, 0 => |_| value(c.number(Number::MinBaseFee)?);
        ArbGasInfo::getL1BaseFeeEstimateCall, View, 0 => |_| value(c.number(Number::L1PricePerUnit)?);
        ArbGasInfo::getL1GasPriceEstimateCall, View, 0 => |_| value(c.number(Number::L1PricePerUnit)?);
        ArbGasInfo::getL1BaseFeeEstimateInertiaCall, View, 0 => |_| { c.burn(READ)?; uint(10u64) };
        ArbGasInfo::getL1RewardRateCall, View, 11 => |_| { c.burn(READ)?; uint(0u64) };
        ArbGasInfo::getL1RewardRecipientCall, View, 11 => |_| { c.burn(READ)?; value(NETWORK_FEE_ACCOUNT) };
        // L1 data costs nothing here.
        ArbGasInfo::getCurrentTxL1GasFeesCall, View, 0 => |_| uint(0u64);
        ArbGasInfo::getGasBacklogCall, View, 0 => |_| { c.burn(READ)?; uint(0u64) };
        ArbGasInfo::getPricingInertiaCall, View, 0 => |_| { c.burn(READ)?; uint(102u64) };
        ArbGasInfo::getGasBacklogToleranceCall, View, 0 => |_| { c.burn(READ)?; uint(10u64) };
        ArbGasInfo::getL1PricingSurplusCall, View, 0 => |_| { c.burn(READ)?; value(I256::ZERO) };
        ArbGasInfo::getPerBatchGasChargeCall, View, 0 => |_| { c.burn(READ)?; value(I256::ZERO) };
        ArbGasInfo::getAmortizedCostCapBipsCall, View, 0 => |_| { c.burn(READ)?; uint(0u64) };
        ArbGasInfo::getL1FeesAvailableCall, View, 10 => |_| { c.burn(READ)?; uint(0u64) };
        ArbGasInfo::getL1PricingEquilibrationUnitsCall, View, 20 => |_| { c.burn(READ)?; uint(0u64) };
        ArbGasInfo::getLastL1PricingUpdateTimeCall, View, 20 => |_| { c.burn(READ)?; uint(0u64) };
        ArbGasInfo::getL1PricingFundsDueForRewardsCall, View, 20 => |_| { c.burn(READ)?; uint(0u64) };
        ArbGasInfo::getL1PricingUnitsSinceUpdateCall, View, 20 => |_| { c.burn(READ)?; uint(0u64) };
        ArbGasInfo::getLastL1PricingSurplusCall, View, 20 => |_| { c.burn(READ)?; value(I256::ZERO) };
    };
    missing(c, ARB_GAS_INFO)
}
