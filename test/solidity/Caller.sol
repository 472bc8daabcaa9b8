// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// @title An account with code that calls Muster as it is told
/// @notice For the tests of plain estimates: it creates tasks and runs a node like any other account.
contract Caller {
    address private immutable muster;

    constructor(address muster_) {
        muster = muster_;
    }

    receive() external payable {}

    /// @notice Calls with what is sent; a refusal comes back as it is.
    function run(bytes calldata data) external payable returns (bytes memory answer) {
        bool done;
        (done, answer) = muster.call{value: msg.value}(data);
        if (!done) {
            assembly {
                revert(add(answer, 32), mload(answer))
            }
        }
    }
}
