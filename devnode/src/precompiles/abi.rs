//! The interfaces.

use alloy_sol_types::sol;

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
