//! Where ArbOS's precompiles are, and where fees go.

use revm::primitives::{address, Address};

macro_rules! addresses {
    ($($name:ident = $value:literal, $what:literal;)*) => {
        $(#[doc = $what] pub(crate) const $name: Address = address!($value);)*
        /// All of them.
        pub(crate) const ADDRESSES: &[Address] = &[$($name),*];
        pub(super) fn name(address: Address) -> &'static str {
            $(if address == $name { return $what; })*
            "precompile"
        }
    };
}
addresses! {
    ARB_SYS = "0000000000000000000000000000000000000064", "ArbSys";
    ARB_INFO = "0000000000000000000000000000000000000065", "ArbInfo";
    ARB_ADDRESS_TABLE = "0000000000000000000000000000000000000066", "ArbAddressTable";
    ARB_BLS = "0000000000000000000000000000000000000067", "ArbBLS";
    ARB_FUNCTION_TABLE = "0000000000000000000000000000000000000068", "ArbFunctionTable";
    ARBOS_TEST = "0000000000000000000000000000000000000069", "ArbosTest";
    ARB_OWNER_PUBLIC = "000000000000000000000000000000000000006b", "ArbOwnerPublic";
    ARB_GAS_INFO = "000000000000000000000000000000000000006c", "ArbGasInfo";
    ARB_AGGREGATOR = "000000000000000000000000000000000000006d", "ArbAggregator";
    ARB_RETRYABLE_TX = "000000000000000000000000000000000000006e", "ArbRetryableTx";
    ARB_STATISTICS = "000000000000000000000000000000000000006f", "ArbStatistics";
    ARB_OWNER = "0000000000000000000000000000000000000070", "ArbOwner";
    ARB_WASM = "0000000000000000000000000000000000000071", "ArbWasm";
    ARB_WASM_CACHE = "0000000000000000000000000000000000000072", "ArbWasmCache";
    ARB_NATIVE_TOKEN_MANAGER = "0000000000000000000000000000000000000073", "ArbNativeTokenManager";
    ARB_FILTERED_TRANSACTIONS = "0000000000000000000000000000000000000074", "ArbFilteredTransactionsManager";
    ARB_DEBUG = "00000000000000000000000000000000000000ff", "ArbDebug";
}

/// Where gas fees and activation fees go.
pub(crate) const NETWORK_FEE_ACCOUNT: Address = address!("a4b000000000000000000000000000000000fee5");
