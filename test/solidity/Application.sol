// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

import {IMuster} from "../../abi/IMuster.sol";

/// @title A contract that has its users' requests run by a network of GPU nodes
/// @notice Creates tasks with what its users pay, learns from their receipts what became of them, and hands refunds on. It reads no
/// log and searches no list.
contract Application {
    /// TaskSpec.flags: what becomes of the task is to be kept for us.
    uint32 private constant RECEIPT = 1;

    /// TaskSpec.redundancy: how a result comes to be trusted.
    enum Policy {
        Single,
        Sampled,
        Replicated
    }

    /// IMuster.Outcome.state.
    enum State {
        None,
        Open,
        Succeeded,
        Error,
        TimedOut,
        Cancelled,
        Evicted,
        WaitedTooLong,
        NodeSlashed,
        Undecided
    }

    /// A user's request.
    struct Request {
        address user;
        bool settled;
    }

    IMuster public immutable muster;
    address public immutable publisher;
    uint64 public lastTask;
    mapping(uint64 id => Request) public requests;
    /// The result's digest; of images that were checked or could have been, their perceptual hashes, 64 bits each.
    mapping(uint64 id => bytes32) public results;
    mapping(address user => uint256) public owed;

    event Answered(uint64 indexed id, address indexed user, bytes32 resultDigest);
    event Failed(uint64 indexed id, address indexed user, State state, uint8 code, uint256 refund);

    error Refused(bytes4 reason);
    error NotYours(uint64 id);
    error NotAsked(uint64 id);
    error NotThePublisher(address caller);
    error NotEnded(uint64 id);
    error Settled(uint64 id);

    constructor(IMuster muster_) {
        muster = muster_;
        publisher = msg.sender;
    }

    receive() external payable {}

    /// @notice The least that `units` images cost: where three nodes run a task, three times what it costs on one.
    function quote(Policy policy, uint32 units) external view returns (uint128 leastFee) {
        (,, leastFee) = muster.estimate(0, units);
        if (policy == Policy.Replicated) leastFee *= 3;
    }

    /// @notice Asks for `units` images, paying what is sent. At most four of them can be checked.
    function request(Policy policy, uint32 units, uint16 vram, uint64[] calldata models, bytes32 digest)
        external
        payable
        returns (uint64 id)
    {
        id = muster.createTask{value: msg.value}(IMuster.TaskSpec(0, units, vram, 0, uint8(policy), RECEIPT, digest, models));
        requests[id] = Request(msg.sender, false);
        lastTask = id;
    }

    /// @notice Says where nodes find the inputs. They look where a task's creator publishes, which is this contract.
    function publish(string calldata uris) external {
        if (msg.sender != publisher) revert NotThePublisher(msg.sender);
        muster.setStores(uris);
    }

    /// @notice How a task stands, as its receipt has it.
    function state(uint64 id) external view returns (State) {
        return State(muster.outcome(id).state);
    }

    /// @notice Where a task is that has not ended: Pending (1), queued (2), or running (3) on a node until a deadline. `node` and `ticket`
    /// are what the events say, or 0; with wrong ones it is not found (0), and nothing worse.
    function where(uint64 id, uint32 node, uint64 ticket) external view returns (uint8 status, uint32 runner, uint64 deadline) {
        IMuster.TaskView memory task = muster.locate(id, node, ticket);
        return (task.status, task.node, task.deadline);
    }

    /// @notice Takes the result of a task that succeeded, whether or not it was checked. Otherwise its user is owed the returned part of
    /// their payment, also where nodes answered differently (Undecided). Anyone may call. Tasks of other creators have receipts too, and
    /// are refused.
    function settle(uint64 id) external {
        Request storage asked = requests[id];
        if (asked.user == address(0)) revert NotAsked(id);
        if (asked.settled) revert Settled(id);
        IMuster.Outcome memory outcome = muster.outcome(id);
        State how = State(outcome.state);
        if (how <= State.Open) revert NotEnded(id);
        asked.settled = true;
        if (how == State.Succeeded) {
            results[id] = outcome.resultDigest;
            emit Answered(id, asked.user, outcome.resultDigest);
            return;
        }
        owed[asked.user] += outcome.refund;
        emit Failed(id, asked.user, how, outcome.code, outcome.refund);
    }

    /// @notice Takes a task out of the queue; a refusal comes back as this contract's own error.
    function giveUp(uint64 id, uint64 ticket) external {
        if (requests[id].user != msg.sender) revert NotYours(id);
        try muster.cancel(id, ticket) {}
        catch (bytes memory reason) {
            revert Refused(bytes4(reason));
        }
    }

    /// @notice Takes what Muster owes this contract, for all of its users.
    function collect() public {
        muster.withdraw(payable(address(this)));
    }

    /// @notice Pays the caller their credit.
    function claim() external {
        uint256 amount = owed[msg.sender];
        owed[msg.sender] = 0;
        if (address(this).balance < amount) collect();
        (bool paid,) = msg.sender.call{value: amount}("");
        require(paid);
    }
}
