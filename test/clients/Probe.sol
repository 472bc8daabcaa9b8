// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.20;

/// Cases that Muster cannot show a client: constructor arguments, payments in passing, reasons, panics, a frame that fails
/// below one that survives. The Rust clients' tests use its typed error and its events as well.
contract Probe {
    struct Job {
        uint64 id;
        address owner;
        string model;
    }

    error TooSmall(uint256 given, uint256 least);

    event Created(address indexed owner, uint256 start);
    event Counted(address indexed by, uint256 indexed number, bytes32 note);
    event Filed(uint64 indexed id, Job job);

    uint256 public number;
    address public owner;

    constructor(address owner_, uint256 start) payable {
        owner = owner_;
        number = start;
        emit Created(owner_, start);
    }

    receive() external payable {}

    function count(uint256 by) external returns (uint256) {
        if (by < 1) revert TooSmall(by, 1);
        number += by;
        emit Counted(msg.sender, number, keccak256(abi.encode(by)));
        return number;
    }

    function file(uint64 id, string calldata model) external {
        emit Filed(id, Job(id, msg.sender, model));
    }

    function say(string calldata text) external pure {
        revert(text);
    }

    function divide(uint256 by) external view returns (uint256) {
        return number / by;
    }

    /// Fails below, survives here.
    function attempt(uint256 by) external returns (bool ok, bytes memory data) {
        (ok, data) = address(this).call(abi.encodeCall(this.count, (by)));
    }
}
