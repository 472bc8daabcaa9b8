// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {IMuster} from "../../abi/IMuster.sol";

/// @title A contract that has its users' requests run by a network of GPU nodes
/// @notice Creates tasks with ether of its own, follows them through the views, and takes refunds back.
contract Application {
    IMuster public immutable muster;
    uint64 public lastTask;

    error Refused(bytes4 reason);

    constructor(IMuster muster_) {
        muster = muster_;
    }

    receive() external payable {}

    /// @notice Asks for `units` images, paying what is sent.
    function request(uint32 units, uint16 vram, uint64[] calldata models, bytes32 digest) external payable returns (uint64) {
        lastTask = muster.createTask{value: msg.value}(spec(units, vram, models, digest));
        return lastTask;
    }

    /// @notice The least that `units` images cost.
    function quote(uint32 units) external view returns (uint128 leastFee) {
        (,, leastFee) = muster.estimate(0, units);
    }

    /// @notice The node that runs the last task, or 0.
    function runner() external view returns (uint32) {
        IMuster.NodeView[] memory all = muster.nodes(1, 64);
        for (uint256 i; i < all.length; ++i) {
            bool running = all[i].status == 2 || all[i].status == 3 || all[i].status == 4 || all[i].status == 6;
            if (running && all[i].task == lastTask) return all[i].node;
        }
        return 0;
    }

    /// @notice Where the last task waits for a node: its ticket, or 0.
    function ticket(uint16 vram) public view returns (uint64) {
        (, IMuster.TaskView[] memory tasks) = muster.queuedTasks(vram, 0, 64);
        for (uint256 i; i < tasks.length; ++i) {
            if (tasks[i].id == lastTask) return tasks[i].at;
        }
        return 0;
    }

    /// @notice Takes the last task out of the queue; a refusal comes back as this contract's own error.
    function giveUp(uint64 ticket_) external {
        try muster.cancel(lastTask, ticket_) {}
        catch (bytes memory reason) {
            revert Refused(bytes4(reason));
        }
    }

    /// @notice Takes what Muster owes this contract.
    function collect() external {
        muster.withdraw(payable(address(this)));
    }

    function spec(uint32 units, uint16 vram, uint64[] calldata models, bytes32 digest)
        private
        pure
        returns (IMuster.TaskSpec memory)
    {
        return IMuster.TaskSpec(0, units, vram, 0, 0, digest, models);
    }
}
