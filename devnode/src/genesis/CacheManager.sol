// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

interface IArbWasm {
    function codehashAsmSize(bytes32 codehash) external view returns (uint32 size);
}

interface IArbWasmCache {
    function cacheProgram(address program) external;
    function codehashIsCached(bytes32 codehash) external view returns (bool);
}

/// The development node's cache manager: what `cargo stylus cache` asks of one, without an auction. There is room
/// for every program, so the least bid is 0 and nothing is ever evicted.
contract CacheManager {
    event InsertBid(bytes32 indexed codehash, address program, uint192 bid, uint64 size);

    error AlreadyCached(bytes32 codehash);
    error ProgramNotActivated();

    IArbWasm private constant ARB_WASM = IArbWasm(address(0x71));
    IArbWasmCache private constant ARB_WASM_CACHE = IArbWasmCache(address(0x72));

    uint64 public constant cacheSize = type(uint64).max;
    uint64 public constant decay = 0;
    bool public constant isPaused = false;
    /// Bytes of the programs cached so far.
    uint64 public queueSize;

    function getMinBid(uint64) external pure returns (uint192) {
        return 0;
    }

    function getMinBid(address program) external view returns (uint192) {
        size(program.codehash);
        return 0;
    }

    function placeBid(address program) external payable {
        bytes32 codehash = program.codehash;
        if (ARB_WASM_CACHE.codehashIsCached(codehash)) revert AlreadyCached(codehash);
        uint64 bytes_ = size(codehash);
        ARB_WASM_CACHE.cacheProgram(program);
        queueSize += bytes_;
        emit InsertBid(codehash, program, uint192(msg.value), bytes_);
    }

    function size(bytes32 codehash) private view returns (uint64) {
        try ARB_WASM.codehashAsmSize(codehash) returns (uint32 bytes_) {
            return bytes_;
        } catch {
            revert ProgramNotActivated();
        }
    }
}
