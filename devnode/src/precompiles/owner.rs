//! The settings that the chain's owners may change, the ones that anybody may read, and becoming an owner.

use revm::context::JournalTr;
use revm::primitives::{Address, U256};
use revm::state::Bytecode;

use super::abi::{ArbDebug, ArbOwner, ArbOwnerPublic};
use super::{missing, uint, uints, value, Call, Done, Fail, ARB_DEBUG, ARB_OWNER, ARB_OWNER_PUBLIC, NETWORK_FEE_ACCOUNT, READ};
use crate::arbos::{Number, Set, Slot};

pub(super) fn arb_owner(c: &mut Call<'_>) -> Done {
    macro_rules! set {
        (|$params:ident| $change:expr) => {{
            let mut $params = c.params()?;
            $change;
            c.save_params(&$params)
        }};
    }
    macro_rules! remember {
        ($number:ident, $value:expr) => {{
            c.store(Slot::Number(Number::$number), U256::from($value))?;
            Ok(vec![])
        }};
    }
    methods! { c,
        ArbOwner::addChainOwnerCall, Write, 0 => |args| c.add(Set::ChainOwners, args.owner);
        ArbOwner::removeChainOwnerCall, Write, 0 => |args| c.remove(Set::ChainOwners, args.owner);
        ArbOwner::isChainOwnerCall, View, 0 => |args| value(c.is_member(Set::ChainOwners, args.owner)?);
        ArbOwner::getAllChainOwnersCall, View, 0 => |_| value(c.members(Set::ChainOwners)?);
        ArbOwner::getNetworkFeeAccountCall, View, 0 => |_| value(NETWORK_FEE_ACCOUNT);
        ArbOwner::getInfraFeeAccountCall, View, 5 => |_| value(NETWORK_FEE_ACCOUNT);
        ArbOwner::setL1PricePerUnitCall, Write, 0 => |args| remember!(L1PricePerUnit, args.pricePerUnit);
        ArbOwner::setMinimumL2BaseFeeCall, Write, 0 => |args| remember!(MinBaseFee, args.priceInWei);
        ArbOwner::setSpeedLimitCall, Write, 0 => |args| {
            if args.limit == 0 {
                return Err(Fail::Revert("speed limit must be nonzero".into()));
            }
            remember!(SpeedLimit, args.limit)
        };
        ArbOwner::setBrotliCompressionLevelCall, Write, 20 => |args| remember!(BrotliLevel, args.level);
        ArbOwner::scheduleArbOSUpgradeCall, Write, 0 => |args| {
            // The version is chosen when the node starts; a scheduled one is kept, and shown by ArbOwnerPublic.
            c.store(Slot::Number(Number::UpgradeVersion), U256::from(args.newVersion))?;
            remember!(UpgradeTime, args.timestamp)
        };
        ArbOwner::setCalldataPriceIncreaseCall, Write, 40 => |args| remember!(CalldataFloor, u8::from(args.enable));
        ArbOwner::setInkPriceCall, Write, 30 => |args| {
            if args.price == 0 || args.price > 0xff_ffff {
                return Err(Fail::Revert("ink price must be a positive uint24".into()));
            }
            set!(|p| p.ink_price = args.price)
        };
        ArbOwner::setWasmMaxStackDepthCall, Write, 30 => |args| set!(|p| p.max_stack_depth = args.depth);
        ArbOwner::setWasmFreePagesCall, Write, 30 => |args| set!(|p| p.free_pages = args.pages);
        ArbOwner::setWasmPageGasCall, Write, 30 => |args| set!(|p| p.page_gas = args.gas);
        ArbOwner::setWasmPageLimitCall, Write, 30 => |args| set!(|p| p.page_limit = args.limit);
        ArbOwner::setWasmMinInitGasCall, Write, 30 => |args| set!(|p| {
            p.min_init_gas = u8::try_from(args.gas.div_ceil(128)).unwrap_or(u8::MAX);
            p.min_cached_init_gas = u8::try_from(args.cached.div_ceil(32)).unwrap_or(u8::MAX);
        });
        ArbOwner::setWasmInitCostScalarCall, Write, 30 => |args| set!(|p| {
            p.init_cost_scalar = u8::try_from(args.percent.div_ceil(2)).unwrap_or(u8::MAX);
        });
        ArbOwner::setWasmExpiryDaysCall, Write, 30 => |args| set!(|p| p.expiry_days = args.number);
        ArbOwner::setWasmKeepaliveDaysCall, Write, 30 => |args| set!(|p| p.keepalive_days = args.number);
        ArbOwner::setWasmBlockCacheSizeCall, Write, 30 => |args| set!(|p| p.block_cache_size = args.count);
        ArbOwner::setWasmMaxSizeCall, Write, 40 => |args| set!(|p| p.max_wasm_size = args.size);
        ArbOwner::setMaxStylusContractFragmentsCall, Write, 60 => |args| set!(|p| p.max_fragment_count = args.count);
        ArbOwner::setWasmActivationGasCall, Write, 59 => |args| {
            c.store(Slot::ActivationGas, U256::from(args.gas))?;
            Ok(vec![])
        };
        ArbOwner::addWasmCacheManagerCall, Write, 30 => |args| c.add(Set::CacheManagers, args.manager);
        ArbOwner::removeWasmCacheManagerCall, Write, 30 => |args| c.remove(Set::CacheManagers, args.manager);
    };
    missing(c, ARB_OWNER)
}

pub(super) fn arb_owner_public(c: &mut Call<'_>) -> Done {
    methods! { c,
        ArbOwnerPublic::isChainOwnerCall, View, 0 => |args| value(c.is_member(Set::ChainOwners, args.addr)?);
        ArbOwnerPublic::getAllChainOwnersCall, View, 0 => |_| value(c.members(Set::ChainOwners)?);
        ArbOwnerPublic::getNetworkFeeAccountCall, View, 0 => |_| { c.burn(READ)?; value(NETWORK_FEE_ACCOUNT) };
        ArbOwnerPublic::getInfraFeeAccountCall, View, 0 => |_| { c.burn(READ)?; value(NETWORK_FEE_ACCOUNT) };
        ArbOwnerPublic::getBrotliCompressionLevelCall, View, 20 => |_| value(c.number(Number::BrotliLevel)?);
        ArbOwnerPublic::getScheduledUpgradeCall, View, 20 => |_| {
            let (version, time) = (c.number(Number::UpgradeVersion)?, c.number(Number::UpgradeTime)?);
            if version <= U256::from(c.exec.config.arbos) {
                return uints([U256::ZERO; 2]);
            }
            uints([version, time])
        };
        ArbOwnerPublic::isCalldataPriceIncreaseEnabledCall, View, 40 => |_| value(c.number(Number::CalldataFloor)?.bit(0));
        ArbOwnerPublic::isNativeTokenOwnerCall, View, 41 => |_| { c.burn(READ)?; value(false) };
        ArbOwnerPublic::getAllNativeTokenOwnersCall, View, 41 => |_| { c.burn(READ)?; value(Vec::<Address>::new()) };
        ArbOwnerPublic::getParentGasFloorPerTokenCall, View, 50 => |_| { c.burn(READ)?; uint(0u64) };
        ArbOwnerPublic::getCollectTipsCall, View, 60 => |_| { c.burn(READ)?; value(false) };
        ArbOwnerPublic::getMaxStylusContractFragmentsCall, View, 60 => |_| uint(c.params()?.max_fragment_count);
    };
    missing(c, ARB_OWNER_PUBLIC)
}

pub(super) fn arb_debug(c: &mut Call<'_>) -> Done {
    methods! { c,
        ArbDebug::becomeChainOwnerCall, Write, 0 => |_| c.add(Set::ChainOwners, c.inputs.caller);
        ArbDebug::overwriteContractCodeCall, Write, 0 => |args| {
            let Ok(old) = c.exec.ctx.journaled_state.code(args.addr);
            c.exec.ctx.journaled_state.set_code(args.addr, Bytecode::new_legacy(args.code));
            c.exec.ctx.journaled_state.touch_account(args.addr);
            value(old.data)
        };
        ArbDebug::eventsCall, Payable, 0 => |args| {
            let caller = c.inputs.caller;
            c.emit(&ArbDebug::Basic { flag: !args.flag, value: args.value })?;
            c.emit(&ArbDebug::Mixed { flag: args.flag, not: !args.flag, value: args.value, conn: ARB_DEBUG, caller })?;
            value((caller, c.inputs.call_value()))
        };
        ArbDebug::customRevertCall, Pure, 0 => |args| Err(ArbDebug::Custom {
            number: args.number,
            text: "This spider family wards off bugs: /\\oo/\\ //\\(oo)//\\ /\\oo/\\".into(),
            flag: true,
        }.into());
        ArbDebug::legacyErrorCall, Pure, 0 => |_| Err(Fail::Revert("example legacy error".into()));
    };
    missing(c, ARB_DEBUG)
}
