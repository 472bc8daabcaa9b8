//! ArbOS's precompiles.
//!
//! What they read and write is ArbOS's own storage, at its prices: 800 gas a word read, 20,000 a word written (5,000
//! if it becomes zero), beside 3 gas per word of arguments and results. Methods that need what isn't here (an L1)
//! fail and say so.

use alloy_rlp::{Encodable, Header};
use alloy_sol_types::{sol, SolCall, SolError, SolEvent, SolValue};
use revm::context::JournalTr;
use revm::interpreter::{CallInputs, Gas, InstructionResult, InterpreterResult};
use revm::primitives::{address, Address, Bytes, Log, B256, I256, U256};
use revm::state::Bytecode;

use crate::arbos::{hours_since_start, DataPricer, Inactive, Number, Params, Set, Slot};
use crate::evm::{ARBOS_STATE, BATCH_POSTER};
use crate::exec::{finish, Exec, MAX_CODE_SIZE, MAX_TX_GAS};
use crate::stylus::activate::{self, Source};
use crate::stylus::transform::Rules;

macro_rules! addresses {
    ($($name:ident = $value:literal, $what:literal;)*) => {
        $(#[doc = $what] pub(crate) const $name: Address = address!($value);)*
        /// All of them.
        pub(crate) const ADDRESSES: &[Address] = &[$($name),*];
        fn name(address: Address) -> &'static str {
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

/// Wei per gas below which the base fee doesn't fall on a fresh chain: 0.1 gwei.
const MIN_BASE_FEE: u64 = 100_000_000;

sol! {
    interface ArbSys {
        function arbBlockNumber() external view returns (uint256);
        function arbBlockHash(uint256 arbBlockNum) external view returns (bytes32);
        function arbChainID() external view returns (uint256);
        function arbOSVersion() external view returns (uint256);
        function getStorageGasAvailable() external view returns (uint256);
        function isTopLevelCall() external view returns (bool);
        function mapL1SenderContractAddressToL2Alias(address sender, address unused) external pure returns (address);
        function wasMyCallersAddressAliased() external view returns (bool);
        function myCallersAddressWithoutAliasing() external view returns (address);
        function sendMerkleTreeState() external view returns (uint256 size, bytes32 root, bytes32[] memory partials);
        error InvalidBlockNumber(uint256 requested, uint256 current);
    }
    interface ArbAddressTable {
        function addressExists(address addr) external view returns (bool);
        function compress(address addr) external view returns (bytes memory);
        function decompress(bytes calldata buf, uint256 offset) external view returns (address, uint256);
        function lookup(address addr) external view returns (uint256);
        function lookupIndex(uint256 index) external view returns (address);
        function register(address addr) external returns (uint256);
        function size() external view returns (uint256);
    }
    interface ArbAggregator {
        function getPreferredAggregator(address addr) external view returns (address, bool);
        function getDefaultAggregator() external view returns (address);
        function getBatchPosters() external view returns (address[] memory);
        function getFeeCollector(address batchPoster) external view returns (address);
        function getTxBaseFee(address aggregator) external view returns (uint256);
    }
    interface ArbRetryableTx {
        function redeem(bytes32 ticketId) external returns (bytes32);
        function getLifetime() external view returns (uint256);
        function getTimeout(bytes32 ticketId) external view returns (uint256);
        function keepalive(bytes32 ticketId) external returns (uint256);
        function getBeneficiary(bytes32 ticketId) external view returns (address);
        function cancel(bytes32 ticketId) external;
        function getCurrentRedeemer() external view returns (address);
        error NoTicketWithID();
    }
    interface ArbosTest {
        function burnArbGas(uint256 gasAmount) external pure;
    }
    interface ArbInfo {
        function getBalance(address account) external view returns (uint256);
        function getCode(address account) external view returns (bytes memory);
    }
    interface ArbWasm {
        function activateProgram(address program) external payable returns (uint16 version, uint256 dataFee);
        function stylusVersion() external view returns (uint16 version);
        function codehashVersion(bytes32 codehash) external view returns (uint16 version);
        function codehashKeepalive(bytes32 codehash) external payable;
        function codehashAsmSize(bytes32 codehash) external view returns (uint32 size);
        function programVersion(address program) external view returns (uint16 version);
        function programInitGas(address program) external view returns (uint64 gas, uint64 gasWhenCached);
        function programMemoryFootprint(address program) external view returns (uint16 footprint);
        function programTimeLeft(address program) external view returns (uint64 secs);
        function inkPrice() external view returns (uint32 price);
        function maxStackDepth() external view returns (uint32 depth);
        function freePages() external view returns (uint16 pages);
        function pageGas() external view returns (uint16 gas);
        function pageRamp() external view returns (uint64 ramp);
        function pageLimit() external view returns (uint16 limit);
        function minInitGas() external view returns (uint64 gas, uint64 cached);
        function initCostScalar() external view returns (uint64 percent);
        function expiryDays() external view returns (uint16 number);
        function keepaliveDays() external view returns (uint16 number);
        function blockCacheSize() external view returns (uint16 count);
        function activationGas() external view returns (uint64 gas);
        event ProgramActivated(bytes32 indexed codehash, bytes32 moduleHash, address program, uint256 dataFee, uint16 version);
        event ProgramLifetimeExtended(bytes32 indexed codehash, uint256 dataFee);
        error ProgramNotWasm();
        error ProgramNotActivated();
        error ProgramNeedsUpgrade(uint16 version, uint16 stylusVersion);
        error ProgramExpired(uint64 ageInSeconds);
        error ProgramUpToDate();
        error ProgramKeepaliveTooSoon(uint64 ageInSeconds);
        error ProgramInsufficientValue(uint256 have, uint256 want);
    }
    interface ArbWasmCache {
        function isCacheManager(address manager) external view returns (bool);
        function allCacheManagers() external view returns (address[] memory managers);
        function cacheProgram(address addr) external;
        function evictCodehash(bytes32 codehash) external;
        function codehashIsCached(bytes32 codehash) external view returns (bool);
        event UpdateProgramCache(address indexed manager, bytes32 indexed codehash, bool cached);
    }
    interface ArbOwnerPublic {
        function isChainOwner(address addr) external view returns (bool);
        function getAllChainOwners() external view returns (address[] memory);
        function getNetworkFeeAccount() external view returns (address);
        function getInfraFeeAccount() external view returns (address);
        function getBrotliCompressionLevel() external view returns (uint64);
        function getScheduledUpgrade() external view returns (uint64 arbosVersion, uint64 scheduledForTimestamp);
        function isCalldataPriceIncreaseEnabled() external view returns (bool);
        function isNativeTokenOwner(address addr) external view returns (bool);
        function getAllNativeTokenOwners() external view returns (address[] memory);
        function getParentGasFloorPerToken() external view returns (uint64);
        function getCollectTips() external view returns (bool);
        function getMaxStylusContractFragments() external view returns (uint8);
    }
    interface ArbGasInfo {
        function getPricesInWeiWithAggregator(address aggregator) external view returns (uint256, uint256, uint256, uint256, uint256, uint256);
        function getPricesInWei() external view returns (uint256, uint256, uint256, uint256, uint256, uint256);
        function getPricesInArbGasWithAggregator(address aggregator) external view returns (uint256, uint256, uint256);
        function getPricesInArbGas() external view returns (uint256, uint256, uint256);
        function getGasAccountingParams() external view returns (uint256, uint256, uint256);
        function getMaxTxGasLimit() external view returns (uint256);
        function getMaxBlockGasLimit() external view returns (uint64);
        function getMinimumGasPrice() external view returns (uint256);
        function getL1BaseFeeEstimate() external view returns (uint256);
        function getL1BaseFeeEstimateInertia() external view returns (uint64);
        function getL1RewardRate() external view returns (uint64);
        function getL1RewardRecipient() external view returns (address);
        function getL1GasPriceEstimate() external view returns (uint256);
        function getCurrentTxL1GasFees() external view returns (uint256);
        function getGasBacklog() external view returns (uint64);
        function getPricingInertia() external view returns (uint64);
        function getGasBacklogTolerance() external view returns (uint64);
        function getL1PricingSurplus() external view returns (int256);
        function getPerBatchGasCharge() external view returns (int64);
        function getAmortizedCostCapBips() external view returns (uint64);
        function getL1FeesAvailable() external view returns (uint256);
        function getL1PricingEquilibrationUnits() external view returns (uint256);
        function getLastL1PricingUpdateTime() external view returns (uint64);
        function getL1PricingFundsDueForRewards() external view returns (uint256);
        function getL1PricingUnitsSinceUpdate() external view returns (uint64);
        function getLastL1PricingSurplus() external view returns (int256);
    }
    interface ArbDebug {
        function becomeChainOwner() external;
        function overwriteContractCode(address addr, bytes calldata code) external returns (bytes memory);
        function events(bool flag, bytes32 value) external payable returns (address, uint256);
        function customRevert(uint64 number) external pure;
        function legacyError() external pure;
        event Basic(bool flag, bytes32 indexed value);
        event Mixed(bool indexed flag, bool not, bytes32 indexed value, address conn, address indexed caller);
        error Custom(uint64 number, string text, bool flag);
    }
    interface ArbOwner {
        function addChainOwner(address owner) external;
        function removeChainOwner(address owner) external;
        function isChainOwner(address owner) external view returns (bool);
        function getAllChainOwners() external view returns (address[] memory);
        function getNetworkFeeAccount() external view returns (address);
        function getInfraFeeAccount() external view returns (address);
        function setL1PricePerUnit(uint256 pricePerUnit) external;
        function setMinimumL2BaseFee(uint256 priceInWei) external;
        function setSpeedLimit(uint64 limit) external;
        function setBrotliCompressionLevel(uint64 level) external;
        function scheduleArbOSUpgrade(uint64 newVersion, uint64 timestamp) external;
        function setInkPrice(uint32 price) external;
        function setWasmMaxStackDepth(uint32 depth) external;
        function setWasmFreePages(uint16 pages) external;
        function setWasmPageGas(uint16 gas) external;
        function setWasmPageLimit(uint16 limit) external;
        function setWasmMinInitGas(uint64 gas, uint64 cached) external;
        function setWasmInitCostScalar(uint64 percent) external;
        function setWasmExpiryDays(uint16 number) external;
        function setWasmKeepaliveDays(uint16 number) external;
        function setWasmBlockCacheSize(uint16 count) external;
        function setWasmMaxSize(uint32 size) external;
        function setWasmActivationGas(uint64 gas) external;
        function setMaxStylusContractFragments(uint8 count) external;
        function setCalldataPriceIncrease(bool enable) external;
        function addWasmCacheManager(address manager) external;
        function removeWasmCacheManager(address manager) external;
        event OwnerActs(bytes4 indexed method, address indexed owner, bytes data);
    }
}

/// How a call to a precompile failed.
enum Fail {
    /// Reverts with the data of a Solidity error, keeping the gas.
    Error(Vec<u8>),
    /// Reverts without data, keeping the gas. The reason reaches the trace only.
    Revert(String),
    /// Reverts without data, taking all gas.
    Burnt,
    /// Fails, taking all gas; the reason is the transaction's.
    Halt(String),
}

impl<E: SolError> From<E> for Fail {
    fn from(error: E) -> Self {
        Self::Error(error.abi_encode())
    }
}

impl From<Inactive> for Fail {
    fn from(inactive: Inactive) -> Self {
        match inactive {
            Inactive::NotActivated => ArbWasm::ProgramNotActivated {}.into(),
            Inactive::NeedsUpgrade { version, current } => {
                ArbWasm::ProgramNeedsUpgrade { version, stylusVersion: current }.into()
            }
            Inactive::Expired { age } => ArbWasm::ProgramExpired { ageInSeconds: age }.into(),
        }
    }
}

type Done = Result<Vec<u8>, Fail>;

/// What a method may do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Purity {
    Pure,
    View,
    Write,
    Payable,
}

/// One call.
struct Call<'a> {
    exec: &'a mut Exec,
    inputs: &'a CallInputs,
    input: &'a [u8],
    /// geth's call depth inside the precompile: 1 if a transaction calls it directly.
    depth: usize,
    left: u64,
    /// ArbOwner's methods cost nothing.
    free: bool,
}

const READ: u64 = 800;
const CODE_HASH: u64 = 2600;
const COPY: u64 = 3;

fn words(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(32)
}

impl Call<'_> {
    fn burn(&mut self, gas: u64) -> Result<(), Fail> {
        if self.free {
            return Ok(());
        }
        if self.left < gas {
            self.left = 0;
            return Err(Fail::Burnt);
        }
        self.left -= gas;
        Ok(())
    }

    fn load(&mut self, slot: Slot) -> Result<U256, Fail> {
        self.burn(READ)?;
        Ok(self.exec.arbos_load(slot.key()))
    }

    fn store(&mut self, slot: Slot, value: U256) -> Result<(), Fail> {
        self.burn(if value.is_zero() { 5000 } else { 20_000 })?;
        self.exec.arbos_store(slot.key(), value);
        Ok(())
    }

    fn number(&mut self, number: Number) -> Result<U256, Fail> {
        self.load(Slot::Number(number))
    }

    fn params(&mut self) -> Result<Params, Fail> {
        self.burn(100)?;
        Ok(self.exec.params())
    }

    fn save_params(&mut self, params: &Params) -> Done {
        self.store(Slot::Params, params.pack())?;
        Ok(vec![])
    }

    fn time(&self) -> u64 {
        self.exec.block.timestamp
    }

    fn emit(&mut self, event: &impl SolEvent) -> Result<(), Fail> {
        let data = event.encode_log_data();
        let topics = data.topics().len() as u64;
        self.burn(375 + 375 * topics + 8 * data.data.len() as u64)?;
        let address = self.inputs.target_address;
        self.exec.ctx.journaled_state.log(Log { address, data });
        Ok(())
    }

    fn code_hash(&mut self, address: Address) -> Result<B256, Fail> {
        self.burn(CODE_HASH)?;
        Ok(self.free_code_hash(address))
    }

    /// ArbOS looks at accounts without a trace in the access list.
    fn free_code_hash(&mut self, address: Address) -> B256 {
        self.exec.peek(address).code_hash
    }

    /// An active program.
    fn active(&mut self, code_hash: B256) -> Result<(crate::arbos::Program, Params), Fail> {
        let params = self.params()?;
        self.burn(READ)?;
        let program = self.exec.program(code_hash);
        program.check_active(&params, self.time())?;
        Ok((program, params))
    }

    fn is_member(&mut self, set: Set, address: Address) -> Result<bool, Fail> {
        Ok(!self.load(Slot::SetPosition(set, address))?.is_zero())
    }

    fn members(&mut self, set: Set) -> Result<Vec<Address>, Fail> {
        let size: u64 = self.load(Slot::SetSize(set))?.saturating_to();
        (1..=size.min(65_536)).map(|n| Ok(Address::from_word(B256::from(self.load(Slot::SetMember(set, n))?)))).collect()
    }

    fn add(&mut self, set: Set, address: Address) -> Done {
        if !self.is_member(set, address)? {
            let size = self.load(Slot::SetSize(set))? + U256::ONE;
            self.store(Slot::SetPosition(set, address), size)?;
            self.store(Slot::SetMember(set, size.saturating_to()), U256::from_be_bytes(address.into_word().0))?;
            self.burn(READ)?;
            self.store(Slot::SetSize(set), size)?;
        }
        Ok(vec![])
    }

    /// Takes a member out; the last one moves into its place.
    fn remove(&mut self, set: Set, address: Address) -> Done {
        let position: u64 = self.load(Slot::SetPosition(set, address))?.saturating_to();
        if position == 0 {
            return Err(Fail::Revert(format!("tried to remove {address}, which isn't a member")));
        }
        let size: u64 = self.load(Slot::SetSize(set))?.saturating_to();
        self.store(Slot::SetPosition(set, address), U256::ZERO)?;
        if position < size {
            let last = self.load(Slot::SetMember(set, size))?;
            self.store(Slot::SetMember(set, position), last)?;
            self.store(Slot::SetPosition(set, Address::from_word(B256::from(last))), U256::from(position))?;
        }
        self.store(Slot::SetMember(set, size), U256::ZERO)?;
        self.store(Slot::SetSize(set), U256::from(size - 1))?;
        Ok(vec![])
    }

    fn transfer(&mut self, from: Address, to: Address, value: U256) -> Result<(), Fail> {
        match self.exec.ctx.journaled_state.transfer(from, to, value) {
            Ok(None) => Ok(()),
            _ => Err(Fail::Revert("insufficient balance for transfer".into())),
        }
    }

    fn begin(&mut self, purity: Purity) -> Result<(), Fail> {
        if purity >= Purity::View && self.inputs.target_address != self.inputs.bytecode_address {
            return Err(Fail::Burnt);
        }
        if purity >= Purity::Write && self.inputs.is_static {
            return Err(Fail::Burnt);
        }
        if purity < Purity::Payable && !self.inputs.call_value().is_zero() {
            return Err(Fail::Burnt);
        }
        if purity != Purity::Pure {
            self.burn(READ)?;
        }
        self.burn(COPY * words(self.input.len() - 4))
    }

    fn args<C: SolCall>(&self) -> Result<C, Fail> {
        C::abi_decode_validate(self.input).map_err(|_| Fail::Burnt)
    }
}

/// Runs a precompile, known by its usual address, in the frame of depth `depth` (0 for a transaction's own).
pub(crate) fn run(exec: &mut Exec, depth: usize, address: Address, inputs: &CallInputs, input: &[u8]) -> InterpreterResult {
    let limit = inputs.gas_limit;
    let arbos = exec.config.arbos;
    if address == ARB_DEBUG && !exec.config.debug {
        exec.reason = Some("debug precompiles are disabled".into());
        return finish(InstructionResult::PrecompileError, Gas::new(limit));
    }
    // A precompile of a later version is an account without code.
    if (address == ARB_NATIVE_TOKEN_MANAGER && arbos < 41) || (address == ARB_FILTERED_TRANSACTIONS && arbos < 60) {
        return finish(InstructionResult::Stop, Gas::new(limit));
    }
    let mut call = Call { exec, inputs, input, depth: depth + 1, left: limit, free: address == ARB_OWNER };
    let result = if input.len() < 4 { Err(Fail::Burnt) } else { dispatch(&mut call, address) };
    let result = result.and_then(|output| {
        call.burn(COPY * words(output.len()))?;
        Ok(output)
    });
    let mut left = call.left;
    let (kind, output) = match result {
        Ok(output) => (InstructionResult::Return, output),
        Err(Fail::Error(data)) => match call.burn(COPY * words(data.len())) {
            Ok(()) => {
                left = call.left;
                (InstructionResult::Revert, data)
            }
            Err(_) => {
                left = 0;
                (InstructionResult::Revert, vec![])
            }
        },
        Err(Fail::Revert(reason)) => {
            if let Some(tracer) = &mut call.exec.tracer {
                tracer.note(reason);
            }
            (InstructionResult::Revert, vec![])
        }
        Err(Fail::Burnt) => {
            left = 0;
            (InstructionResult::Revert, vec![])
        }
        Err(Fail::Halt(reason)) => {
            call.exec.reason = Some(reason);
            left = 0;
            (InstructionResult::PrecompileError, vec![])
        }
    };
    let mut gas = Gas::new(limit);
    gas.set_remaining(left);
    InterpreterResult { result: kind, output: Bytes::from(output), gas }
}

/// A table of methods: purity, first ArbOS version, what it does.
macro_rules! methods {
    ($call:ident, $($contract:ident :: $method:ident, $purity:ident, $since:literal => |$args:pat_param| $body:expr;)*) => {{
        let selector: [u8; 4] = $call.input[..4].try_into().unwrap_or_default();
        $(
            if selector == $contract::$method::SELECTOR && since($call, $since) {
                $call.begin(Purity::$purity)?;
                let $args = $call.args::<$contract::$method>()?;
                return $body;
            }
        )*
        None::<()>
    }};
}

fn since(c: &Call<'_>, version: u64) -> bool {
    c.exec.config.arbos >= version
}

fn value(value: impl SolValue) -> Done {
    Ok(value.abi_encode())
}

fn uint(number: impl TryInto<u64>) -> Done {
    Ok(U256::from(number.try_into().unwrap_or(u64::MAX)).abi_encode())
}

fn uints<const N: usize>(numbers: [U256; N]) -> Done {
    Ok(numbers.iter().flat_map(|n| n.to_be_bytes::<32>()).collect())
}

fn dispatch(c: &mut Call<'_>, address: Address) -> Done {
    match address {
        ARB_SYS => arb_sys(c),
        ARB_INFO => arb_info(c),
        ARB_ADDRESS_TABLE => arb_address_table(c),
        ARB_AGGREGATOR => arb_aggregator(c),
        ARB_RETRYABLE_TX => arb_retryable_tx(c),
        ARBOS_TEST => arbos_test(c),
        ARB_WASM => arb_wasm(c),
        ARB_WASM_CACHE => arb_wasm_cache(c),
        ARB_OWNER_PUBLIC => arb_owner_public(c),
        ARB_GAS_INFO => arb_gas_info(c),
        ARB_DEBUG => arb_debug(c),
        ARB_OWNER => {
            let caller = c.inputs.caller;
            if !c.is_member(Set::ChainOwners, caller)? {
                return Err(Fail::Halt("unauthorized caller to access-controlled method".into()));
            }
            let output = arb_owner(c)?;
            if !c.inputs.is_static {
                let method = c.input[..4].try_into().unwrap_or_default();
                c.emit(&ArbOwner::OwnerActs { method, owner: caller, data: c.input.to_vec().into() })?;
            }
            Ok(output)
        }
        _ => missing(c, address),
    }
}

/// A method that doesn't exist, or exists on a network but not here.
fn missing(c: &Call<'_>, address: Address) -> Done {
    let selector: [u8; 4] = c.input[..4].try_into().unwrap_or_default();
    Err(Fail::Halt(format!("{} has no method 0x{} on this node", name(address), revm::primitives::hex::encode(selector))))
}

fn arb_sys(c: &mut Call<'_>) -> Done {
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

fn arb_address_table(c: &mut Call<'_>) -> Done {
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
fn arb_aggregator(c: &mut Call<'_>) -> Done {
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
fn arb_retryable_tx(c: &mut Call<'_>) -> Done {
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

fn arb_info(c: &mut Call<'_>) -> Done {
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

fn arbos_test(c: &mut Call<'_>) -> Done {
    methods! { c,
        ArbosTest::burnArbGasCall, Pure, 0 => |args| {
            let gas = u64::try_from(args.gasAmount).map_err(|_| Fail::Revert("not a uint64".into()))?;
            c.burn(gas)?;
            Ok(vec![])
        };
    };
    missing(c, ARBOS_TEST)
}

fn arb_wasm(c: &mut Call<'_>) -> Done {
    methods! { c,
        ArbWasm::activateProgramCall, Payable, 30 => |args| activate_program(c, args.program);
        ArbWasm::codehashKeepaliveCall, Payable, 30 => |args| keepalive(c, args.codehash);
        ArbWasm::stylusVersionCall, View, 30 => |_| uint(c.params()?.version);
        ArbWasm::inkPriceCall, View, 30 => |_| uint(c.params()?.ink_price);
        ArbWasm::maxStackDepthCall, View, 30 => |_| uint(c.params()?.max_stack_depth);
        ArbWasm::freePagesCall, View, 30 => |_| uint(c.params()?.free_pages);
        ArbWasm::pageGasCall, View, 30 => |_| uint(c.params()?.page_gas);
        ArbWasm::pageRampCall, View, 30 => |_| { c.params()?; uint(620_674_314u64) };
        ArbWasm::pageLimitCall, View, 30 => |_| uint(c.params()?.page_limit);
        ArbWasm::minInitGasCall, View, 30 => |_| {
            let params = c.params()?;
            uints([
                U256::from(u64::from(params.min_init_gas) * 128),
                U256::from(u64::from(params.min_cached_init_gas) * 32),
            ])
        };
        ArbWasm::initCostScalarCall, View, 30 => |_| uint(u64::from(c.params()?.init_cost_scalar) * 2);
        ArbWasm::expiryDaysCall, View, 30 => |_| uint(c.params()?.expiry_days);
        ArbWasm::keepaliveDaysCall, View, 30 => |_| uint(c.params()?.keepalive_days);
        ArbWasm::blockCacheSizeCall, View, 30 => |_| uint(c.params()?.block_cache_size);
        ArbWasm::activationGasCall, View, 59 => |_| value(c.load(Slot::ActivationGas)?);
        ArbWasm::codehashVersionCall, View, 30 => |args| uint(c.active(args.codehash)?.0.version);
        ArbWasm::codehashAsmSizeCall, View, 30 => |args| uint(c.active(args.codehash)?.0.asm_size());
        ArbWasm::programVersionCall, View, 30 => |args| {
            let hash = c.code_hash(args.program)?;
            uint(c.active(hash)?.0.version)
        };
        ArbWasm::programInitGasCall, View, 30 => |args| {
            let hash = c.code_hash(args.program)?;
            let (program, params) = c.active(hash)?;
            let cached = program.cached_gas(&params);
            let init = program.init_gas(&params) + if params.version > 1 { cached } else { 0 };
            uints([U256::from(init), U256::from(cached)])
        };
        ArbWasm::programMemoryFootprintCall, View, 30 => |args| {
            let hash = c.code_hash(args.program)?;
            uint(c.active(hash)?.0.footprint)
        };
        ArbWasm::programTimeLeftCall, View, 30 => |args| {
            let hash = c.code_hash(args.program)?;
            let (program, params) = c.active(hash)?;
            uint(params.expiry_seconds().saturating_sub(program.age(c.time())))
        };
    };
    missing(c, ARB_WASM)
}

/// Reads a program's WASM for activation, charging for pieces that lie elsewhere.
fn read_wasm(c: &mut Call<'_>, program: Address, params: &Params) -> Result<Vec<u8>, Fail> {
    let code = c.exec.peek_code(program).1.original_bytes();
    let arbos = c.exec.config.arbos;
    if code.is_empty() || arbos >= 60 && !crate::stylus::is_component(&code, arbos) {
        return Err(ArbWasm::ProgramNotWasm {}.into());
    }
    if arbos < 60 && !crate::stylus::is_program(&code, arbos) {
        return Err(Fail::Revert("specified bytecode is not a Stylus program".into()));
    }
    match activate::source(&code).map_err(Fail::Revert)? {
        Source::Classic(data) => activate::decompress(&data, params.max_wasm_size).map_err(Fail::Revert),
        Source::Root { decompressed, fragments } => {
            if decompressed > params.max_wasm_size {
                return Err(Fail::Revert(format!(
                    "invalid wasm: decompressedLength {decompressed} is greater than MaxWasmSize {}",
                    params.max_wasm_size
                )));
            }
            if fragments.len() > usize::from(params.max_fragment_count) {
                return Err(Fail::Revert(format!("invalid wasm: fragment count exceeds limit of {}", params.max_fragment_count)));
            }
            if fragments.is_empty() {
                return Err(Fail::Revert("invalid wasm: fragment count cannot be zero".into()));
            }
            let mut data = vec![];
            for address in fragments {
                let Ok(account) = c.exec.ctx.journaled_state.load_account_with_code(address);
                let access = if account.is_cold { 2600 } else { 100 };
                let code = account.data.info.code.as_ref().map(Bytecode::original_bytes).unwrap_or_default();
                if c.left < access + COPY * words(MAX_CODE_SIZE) {
                    c.left = 0;
                    return Err(Fail::Burnt);
                }
                c.burn(access + COPY * words(code.len()))?;
                data.extend_from_slice(activate::fragment(&code).map_err(Fail::Revert)?);
            }
            let wasm = activate::decompress(&data, decompressed).map_err(Fail::Revert)?;
            if wasm.len() != decompressed as usize {
                return Err(Fail::Revert(format!(
                    "invalid wasm: decompressed length {} does not match expected length {decompressed}",
                    wasm.len()
                )));
            }
            Ok(wasm)
        }
    }
}

/// Gas charged at the start of each activation.
const ACTIVATION_GAS: u64 = 1_659_168;

fn activate_program(c: &mut Call<'_>, address: Address) -> Done {
    if c.exec.config.arbos >= 59 {
        let gas = c.load(Slot::ActivationGas)?.saturating_to();
        c.burn(gas)?;
    }
    c.burn(ACTIVATION_GAS)?;
    let code_hash = c.free_code_hash(address);
    let params = c.params()?;
    c.burn(READ)?;
    let known = c.exec.program(code_hash);
    let expired = known.activated_at == 0 || known.age(c.time()) > params.expiry_seconds();
    if known.version == params.version && !expired {
        return Err(ArbWasm::ProgramUpToDate {}.into());
    }
    let wasm = read_wasm(c, address, &params)?;

    let rules = Rules {
        stylus_version: params.version,
        arbos: c.exec.config.arbos,
        page_limit: params.page_limit.saturating_sub(c.exec.pages_open),
        debug: c.exec.config.debug,
    };
    let refused = |reason: String| Fail::Halt(format!("program activation failed: {reason}"));
    let activated = activate::activate(&wasm, rules, &mut c.left).map_err(refused)?;
    let metered = &activated.metered;
    c.exec.modules.insert(code_hash, params.version, &metered.wasm).map_err(refused)?;

    // From here on a failure takes all gas as well.
    let all = |_| Fail::Burnt;
    if known.cached {
        c.burn(READ).map_err(all)?;
    }
    c.store(Slot::ModuleHash(code_hash), activated.module_hash.into()).map_err(all)?;
    let time = c.time();
    let data_fee = charge_data(c, metered.figures.asm_estimate)?;
    let program = crate::arbos::Program {
        version: params.version,
        init_cost: metered.figures.init_gas,
        cached_cost: metered.figures.cached_init_gas,
        footprint: metered.figures.footprint,
        activated_at: hours_since_start(time),
        asm_estimate_kb: metered.figures.asm_estimate.div_ceil(1024),
        cached: known.cached,
    };
    c.store(Slot::Program(code_hash), program.pack())?;
    pay_data_fee(c, data_fee)?;
    c.emit(&ArbWasm::ProgramActivated {
        codehash: code_hash,
        moduleHash: activated.module_hash,
        program: address,
        dataFee: data_fee,
        version: params.version,
    })?;
    uints([U256::from(params.version), data_fee])
}

/// Takes machine code into the data pricer; returns its price in wei.
fn charge_data(c: &mut Call<'_>, bytes: u32) -> Result<U256, Fail> {
    // Five words read and two written.
    c.burn(5 * READ)?;
    let mut pricer = DataPricer::unpack(c.exec.arbos_load(Slot::DataPricer.key()));
    let time = c.time();
    let fee = pricer.charge(bytes, time);
    c.burn(if pricer.demand == 0 { 5000 } else { 20_000 })?;
    c.burn(20_000)?;
    c.exec.arbos_store(Slot::DataPricer.key(), pricer.pack());
    Ok(U256::from(fee))
}

fn pay_data_fee(c: &mut Call<'_>, fee: U256) -> Result<(), Fail> {
    let have = c.inputs.call_value();
    if have < fee {
        return Err(ArbWasm::ProgramInsufficientValue { have, want: fee }.into());
    }
    c.burn(READ)?;
    c.transfer(ARB_WASM, NETWORK_FEE_ACCOUNT, fee)?;
    c.transfer(ARB_WASM, c.inputs.caller, have - fee)
}

fn keepalive(c: &mut Call<'_>, code_hash: B256) -> Done {
    let (mut program, params) = c.active(code_hash)?;
    let age = program.age(c.time());
    if age < params.keepalive_seconds() {
        return Err(ArbWasm::ProgramKeepaliveTooSoon { ageInSeconds: age }.into());
    }
    let fee = charge_data(c, program.asm_size())?;
    program.activated_at = hours_since_start(c.time());
    c.store(Slot::Program(code_hash), program.pack())?;
    pay_data_fee(c, fee)?;
    c.emit(&ArbWasm::ProgramLifetimeExtended { codehash: code_hash, dataFee: fee })?;
    Ok(vec![])
}

fn arb_wasm_cache(c: &mut Call<'_>) -> Done {
    methods! { c,
        ArbWasmCache::isCacheManagerCall, View, 30 => |args| value(c.is_member(Set::CacheManagers, args.manager)?);
        ArbWasmCache::allCacheManagersCall, View, 30 => |_| value(c.members(Set::CacheManagers)?);
        ArbWasmCache::cacheProgramCall, Write, 31 => |args| {
            let hash = c.code_hash(args.addr)?;
            set_cached(c, hash, true)
        };
        ArbWasmCache::evictCodehashCall, Write, 30 => |args| set_cached(c, args.codehash, false);
        ArbWasmCache::codehashIsCachedCall, View, 30 => |args| {
            c.burn(READ)?;
            value(c.exec.program(args.codehash).cached)
        };
    };
    missing(c, ARB_WASM_CACHE)
}

fn set_cached(c: &mut Call<'_>, code_hash: B256, cached: bool) -> Done {
    let caller = c.inputs.caller;
    if !c.is_member(Set::CacheManagers, caller)? && !c.is_member(Set::ChainOwners, caller)? {
        return Err(Fail::Burnt);
    }
    let params = c.params()?;
    c.burn(READ)?;
    let mut program = c.exec.program(code_hash);
    if cached && program.version != params.version {
        return Err(ArbWasm::ProgramNeedsUpgrade { version: program.version, stylusVersion: params.version }.into());
    }
    let age = program.age(c.time());
    if cached && age > params.expiry_seconds() {
        return Err(ArbWasm::ProgramExpired { ageInSeconds: age }.into());
    }
    if program.cached == cached {
        return Ok(vec![]);
    }
    c.emit(&ArbWasmCache::UpdateProgramCache { manager: caller, codehash: code_hash, cached })?;
    c.burn(program.init_cost.into())?;
    c.burn(READ)?;
    program.cached = cached;
    c.store(Slot::Program(code_hash), program.pack())?;
    Ok(vec![])
}

fn arb_owner_public(c: &mut Call<'_>) -> Done {
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
        ArbOwnerPublic::isCalldataPriceIncreaseEnabledCall, View, 40 => |_| value(!c.number(Number::CalldataFloor)?.is_zero());
        ArbOwnerPublic::isNativeTokenOwnerCall, View, 41 => |_| { c.burn(READ)?; value(false) };
        ArbOwnerPublic::getAllNativeTokenOwnersCall, View, 41 => |_| { c.burn(READ)?; value(Vec::<Address>::new()) };
        ArbOwnerPublic::getParentGasFloorPerTokenCall, View, 50 => |_| { c.burn(READ)?; uint(0u64) };
        ArbOwnerPublic::getCollectTipsCall, View, 60 => |_| { c.burn(READ)?; value(false) };
        ArbOwnerPublic::getMaxStylusContractFragmentsCall, View, 60 => |_| uint(c.params()?.max_fragment_count);
    };
    missing(c, ARB_OWNER_PUBLIC)
}

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

fn arb_gas_info(c: &mut Call<'_>) -> Done {
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

fn arb_debug(c: &mut Call<'_>) -> Done {
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

fn arb_owner(c: &mut Call<'_>) -> Done {
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
            // The version is chosen when the node starts; what is scheduled is kept, and shown by ArbOwnerPublic.
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

/// Writes what ArbOS's storage begins with.
pub(crate) fn genesis(state: &mut crate::state::State, arbos: u64, owner: Address, cache_manager: Address) {
    let mut set = |slot: Slot, value: U256| state.set_storage(ARBOS_STATE, slot.key(), value);
    set(Slot::Params, Params::of_version(arbos).pack());
    set(Slot::DataPricer, DataPricer::default().pack());
    set(Slot::Number(Number::MinBaseFee), U256::from(MIN_BASE_FEE));
    set(Slot::Number(Number::SpeedLimit), U256::from(7_000_000));
    set(Slot::Number(Number::BrotliLevel), U256::from(1));
    for (members, address) in [(Set::ChainOwners, owner), (Set::CacheManagers, cache_manager)] {
        set(Slot::SetSize(members), U256::from(1));
        set(Slot::SetMember(members, 1), U256::from_be_bytes(address.into_word().0));
        set(Slot::SetPosition(members, address), U256::from(1));
    }
    state.set_nonce(ARBOS_STATE, 1);
    for address in ADDRESSES {
        state.set_code(*address, Bytes::from_static(&[0xfe]));
    }
}
