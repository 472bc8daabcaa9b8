//! The chain, accounts, the table of addresses, and the methods about an L1.

use alloy_rlp::{Encodable, Header};
use alloy_sol_types::SolValue;
use revm::primitives::{address, Address, Bytes, B256, U256};

use super::abi::{ArbAddressTable, ArbAggregator, ArbInfo, ArbRetryableTx, ArbSys, ArbosTest};
use super::{
    missing, uint, value, words, Call, Done, Fail, ARBOS_TEST, ARB_ADDRESS_TABLE, ARB_AGGREGATOR, ARB_INFO, ARB_RETRYABLE_TX,
    ARB_SYS, COPY, READ,
};
use crate::arbos::{Set, Slot};
use crate::transaction::BATCH_POSTER;

pub(super) fn arb_sys(c: &mut Call<'_>) -> Done {
    methods! { c,
        ArbSys::arbBlockNumberCall, View, 0 => |_| uint(c.exec.block.l2_number);
        ArbSys::arbBlockHashCall, View, 0 => |args| {
            let current = c.exec.block.l2_number;
            let hash = u64::try_from(args.arbBlockNum).ok()
                .filter(|n| *n < current && n + 256 >= current)
                .and_then(|n| c.exec.block.hashes.iter().rev().find(|(m, _)| *m == n));
            match hash {
                Some((_, hash)) => value(*hash),
                None => Err(ArbSys::InvalidBlockNumber {
                    requested: args.arbBlockNum,
                    current: U256::from(current),
                }.into()),
            }
        };
        ArbSys::arbChainIDCall, View, 0 => |_| uint(c.exec.config.chain_id);
        // Nitro's versions begin at 56.
        ArbSys::arbOSVersionCall, View, 0 => |_| uint(55 + c.exec.config.arbos);
        ArbSys::getStorageGasAvailableCall, View, 0 => |_| uint(0u64);
        ArbSys::isTopLevelCallCall, View, 0 => |_| value(c.depth <= 2);
        ArbSys::mapL1SenderContractAddressToL2AliasCall, Pure, 0 => |args| {
            let offset = U256::from_be_bytes(address!("1111000000000000000000000000000000001111").into_word().0);
            let sum = U256::from_be_bytes(args.sender.into_word().0).wrapping_add(offset);
            value(Address::from_word(B256::from(sum & (U256::MAX >> 96))))
        };
        // Aliases belong to messages from L1, which there are none of.
        ArbSys::wasMyCallersAddressAliasedCall, View, 0 => |_| value(false);
        ArbSys::myCallersAddressWithoutAliasingCall, View, 0 => |_| {
            let caller = c.depth.checked_sub(2).and_then(|n| c.exec.callers.get(n)).copied();
            value(caller.unwrap_or_default())
        };
        // Nothing was ever sent to L1.
        ArbSys::sendMerkleTreeStateCall, View, 0 => |_| {
            if !c.inputs.caller.is_zero() {
                return Err(Fail::Revert("method can only be called by address zero".into()));
            }
            c.burn(READ)?;
            Ok((U256::ZERO, B256::ZERO, Vec::<B256>::new()).abi_encode_params())
        };
    };
    missing(c, ARB_SYS)
}

pub(super) fn arb_address_table(c: &mut Call<'_>) -> Done {
    const TABLE: Set = Set::AddressTable;
    methods! { c,
        ArbAddressTable::addressExistsCall, View, 0 => |args| value(c.is_member(TABLE, args.addr)?);
        ArbAddressTable::sizeCall, View, 0 => |_| value(c.load(Slot::SetSize(TABLE))?);
        ArbAddressTable::lookupCall, View, 0 => |args| match c.load(Slot::SetPosition(TABLE, args.addr))? {
            U256::ZERO => Err(Fail::Revert("address does not exist in AddressTable".into())),
            position => value(position - U256::ONE),
        };
        ArbAddressTable::lookupIndexCall, View, 0 => |args| value(table_entry(c, args.index)?);
        ArbAddressTable::compressCall, View, 0 => |args| {
            // An index if there is one, else the address, either as RLP.
            let mut out = vec![];
            match c.load(Slot::SetPosition(TABLE, args.addr))? {
                U256::ZERO => args.addr.encode(&mut out),
                position => (position - U256::ONE).encode(&mut out),
            }
            value(Bytes::from(out))
        };
        ArbAddressTable::decompressCall, View, 0 => |args| {
            let invalid = || Fail::Revert("invalid offset in ArbAddressTable.Decompress".into());
            let rest = usize::try_from(args.offset).ok().and_then(|at| args.buf.get(at..)).ok_or_else(invalid)?;
            let mut left = rest;
            let decoded = Header::decode_bytes(&mut left, false).map_err(|e| Fail::Revert(e.to_string()))?;
            let address = match decoded.len() {
                20 => Address::from_slice(decoded),
                0..=8 => table_entry(c, U256::from_be_slice(decoded))?,
                _ => return Err(Fail::Revert("invalid index in ArbAddressTable".into())),
            };
            Ok((address, U256::from(rest.len() - left.len())).abi_encode_params())
        };
        ArbAddressTable::registerCall, Write, 0 => |args| {
            c.add(TABLE, args.addr)?;
            value(c.load(Slot::SetPosition(TABLE, args.addr))? - U256::ONE)
        };
    };
    missing(c, ARB_ADDRESS_TABLE)
}

fn table_entry(c: &mut Call<'_>, index: U256) -> Result<Address, Fail> {
    let size = c.load(Slot::SetSize(Set::AddressTable))?;
    if index >= size {
        return Err(Fail::Revert("index does not exist in AddressTable".into()));
    }
    let position = index.saturating_to::<u64>() + 1;
    Ok(Address::from_word(B256::from(c.load(Slot::SetMember(Set::AddressTable, position))?)))
}

/// There is one batch poster, which is the sequencer.
pub(super) fn arb_aggregator(c: &mut Call<'_>) -> Done {
    methods! { c,
        ArbAggregator::getPreferredAggregatorCall, View, 0 => |_| Ok((BATCH_POSTER, true).abi_encode());
        ArbAggregator::getDefaultAggregatorCall, View, 0 => |_| value(BATCH_POSTER);
        ArbAggregator::getBatchPostersCall, View, 0 => |_| { c.burn(READ)?; value(vec![BATCH_POSTER]) };
        ArbAggregator::getFeeCollectorCall, View, 0 => |args| {
            c.burn(READ)?;
            if args.batchPoster != BATCH_POSTER {
                return Err(Fail::Revert("tried to open a batch poster that does not exist".into()));
            }
            c.burn(READ)?;
            value(BATCH_POSTER)
        };
        ArbAggregator::getTxBaseFeeCall, View, 0 => |_| uint(0u64);
    };
    missing(c, ARB_AGGREGATOR)
}

/// Tickets come from L1, so there are none.
pub(super) fn arb_retryable_tx(c: &mut Call<'_>) -> Done {
    const LIFETIME: u64 = 7 * 24 * 60 * 60;
    let no_ticket = |c: &mut Call<'_>| {
        c.burn(READ)?;
        Err(ArbRetryableTx::NoTicketWithID {}.into())
    };
    methods! { c,
        ArbRetryableTx::getLifetimeCall, View, 0 => |_| uint(LIFETIME);
        ArbRetryableTx::getCurrentRedeemerCall, View, 0 => |_| value(Address::ZERO);
        ArbRetryableTx::getTimeoutCall, View, 0 => |_| no_ticket(c);
        ArbRetryableTx::getBeneficiaryCall, View, 0 => |_| no_ticket(c);
        ArbRetryableTx::redeemCall, Write, 0 => |_| no_ticket(c);
        ArbRetryableTx::keepaliveCall, Write, 0 => |_| no_ticket(c);
        ArbRetryableTx::cancelCall, Write, 0 => |_| no_ticket(c);
    };
    missing(c, ARB_RETRYABLE_TX)
}

pub(super) fn arb_info(c: &mut Call<'_>) -> Done {
    methods! { c,
        ArbInfo::getBalanceCall, View, 0 => |args| {
            c.burn(700)?;
            value(c.exec.peek(args.account).balance)
        };
        ArbInfo::getCodeCall, View, 0 => |args| {
            c.burn(2100)?;
            let code = c.exec.peek_code(args.account).1.original_bytes();
            c.burn(COPY * words(code.len()))?;
            value(code)
        };
    };
    missing(c, ARB_INFO)
}

pub(super) fn arbos_test(c: &mut Call<'_>) -> Done {
    methods! { c,
        ArbosTest::burnArbGasCall, Pure, 0 => |args| {
            let gas = u64::try_from(args.gasAmount).map_err(|_| Fail::Revert("not a uint64".into()))?;
            c.burn(gas)?;
            Ok(vec![])
        };
    };
    missing(c, ARBOS_TEST)
}
