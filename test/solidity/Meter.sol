// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {IMuster} from "../../abi/IMuster.sol";

/// @title The cost for a contract of asking Muster
/// @notice The gas of a call and of decoding its answer, where nothing it reads was read before in the transaction.
contract Meter {
    /// @notice The interface that Muster must confirm when it is asked for it.
    function interfaceId() external pure returns (bytes4) {
        return type(IMuster).interfaceId;
    }

    function outcome(IMuster muster, uint64 id) external view returns (uint256 gas, IMuster.Outcome memory answer) {
        gas = gasleft();
        answer = muster.outcome(id);
        gas -= gasleft();
    }

    function locate(IMuster muster, uint64 id, uint32 node, uint64 ticket)
        external
        view
        returns (uint256 gas, IMuster.TaskView memory answer)
    {
        gas = gasleft();
        answer = muster.locate(id, node, ticket);
        gas -= gasleft();
    }
}
