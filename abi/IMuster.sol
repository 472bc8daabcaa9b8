// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// @title Muster: task dispatch and quality of service for decentralised GPU networks
/// @notice One address, one storage. Amounts are wei, times seconds, fixed-point numbers wads (1e18),
/// VRAM GiB. A model id is the first five bytes of the keccak256 of the model's name, as a number.
/// A GPU group is one GPU model with one VRAM size, numbered `model << 16 | vram`.
interface IMuster {
    // ------------------------------------------------------------------ types

    /// @notice What an application asks for.
    struct TaskSpec {
        /// 0 Stable Diffusion, 1 GPT, 2 fine-tuning.
        uint8 kind;
        /// Images, text requests, or for fine-tuning the seconds the creator states.
        uint32 units;
        /// Least VRAM of the node; ignored where `gpu` is set.
        uint16 vram;
        /// Required GPU group, or 0 for any; see `gpuGroup`.
        uint32 gpu;
        /// Redundancy policy: 0 runs the task on a single node.
        uint8 redundancy;
        /// Digest of the input, which travels off chain.
        bytes32 inputDigest;
        /// Required models, at most 8, no duplicates.
        uint64[] models;
    }

    struct NodeView {
        uint32 node;
        address operator;
        /// 0 Quit, 1 Available, 2 Busy, 3 PendingPause, 4 PendingQuit, 5 Paused, 6 PendingKickout.
        uint8 status;
        uint32 gpu;
        uint16 vram;
        uint128 stake;
        /// H now.
        uint64 reliability;
        /// Q_long / Q_max, not floored.
        uint64 longTerm;
        uint8 scores;
        /// Whether H keeps it from being selected.
        bool excluded;
        uint64 joinedAt;
        /// The running task, or the last one.
        uint64 task;
        uint64 deadline;
        uint64[] models;
        uint64[] inUse;
    }

    /// @notice The factors of a node's selection weight for a task, now.
    struct WeightView {
        bool eligible;
        uint64 staking;
        uint64 reliability;
        uint64 qos;
        uint64 locality;
        uint64 weight;
    }

    struct TaskView {
        uint64 id;
        address creator;
        uint128 fee;
        uint8 kind;
        uint32 estimate;
        uint32 timeLimit;
        uint16 startFeeBps;
        uint16 vram;
        uint32 gpu;
        uint64[] models;
        /// Pending: block of the draw. Queued: the ticket for `cancel`. Running: the deadline.
        uint64 at;
        /// Running: whether its success raises its node's H, because its draw had candidates enough.
        bool boosts;
    }

    struct AccountView {
        uint128 credit;
        uint128 unbonding;
        uint64 release;
        uint32 node;
        bool kickedOut;
    }

    struct Overview {
        address owner;
        address treasury;
        uint128 treasuryBalance;
        uint64 granule;
        bool paused;
        uint64 tasks;
        uint32 nodesIssued;
        uint32 nodesJoined;
        uint32 pending;
        uint32 queued;
        uint32 queueCapacity;
        uint128 largestStake;
    }

    /// @notice ERC-2535: a program and the selectors it answers.
    struct Facet {
        address facetAddress;
        bytes4[] functionSelectors;
    }

    // ------------------------------------------------------------------ nodes

    /// @notice Joins the caller's node with the value sent as its stake. H starts at 1. With a GPU that no node ever joined
    /// with ({gpuGroup} refuses it) the parameter groupFee is taken from the value first, as protocol income.
    /// @param gpuName 1 to 64 characters of printable ASCII.
    /// @param vram 1 to 960.
    /// @param models What the node holds, at most 12, no duplicates; {reportDownloaded} adds up to 32 in all.
    /// @return node The node's number, the caller's for good.
    function join(string calldata gpuName, uint16 vram, uint64[] calldata models) external payable returns (uint32 node);

    /// @notice Adds the value sent to the stake of the caller's node.
    function raiseStake() external payable;

    /// @notice Stops the caller's node from taking tasks; while busy, when its task ends.
    function pause() external;

    /// @notice Makes the caller's paused node available again; it takes the best queued task it can run.
    function resume() external;

    /// @notice Takes the caller's node out of the network and its stake back after the unbonding period; while busy, when its task ends.
    function quit() external;

    /// @notice Says that the caller's node now holds these models too, at most 12 in one call and 32 in all.
    function reportDownloaded(uint64[] calldata models) external;

    /// @notice Says that the caller's node no longer holds these models.
    function reportRemoved(uint64[] calldata models) external;

    /// @notice Removes a stale entry (model no longer held, or node gone) from a model's holders. Anyone may call.
    function purge(uint64 model, uint32 position) external;

    /// @notice Re-admits an excluded node whose time has come, or offers an idle node the best queued task. Anyone may call.
    function poke(uint32 node) external;

    /// @notice Pays out the caller's credit, and its returned stake once unbonded. It draws nothing, so that nothing can keep it from paying.
    function withdraw(address payable to) external;

    // ------------------------------------------------------------------ tasks

    /// @notice Creates a task; the value sent is its fee, held in escrow.
    function createTask(TaskSpec calldata spec) external payable returns (uint64 id);

    /// @notice Cancels a queued task of the caller. The fee is refunded less the start fee.
    /// @param ticket As in the task's latest TaskQueued event.
    function cancel(uint64 id, uint64 ticket) external;

    /// @notice Ends a task that has been queued for longer than the parameter queueTime. Anyone may call. The fee is refunded less the
    /// start fee, which the caller earns, unless he created the task.
    /// @param ticket As in the task's latest TaskQueued event.
    function expireQueued(uint64 id, uint64 ticket) external;

    /// @notice The node's answer: ends the task as a success and pays the fee, whatever the answer is. H rises if the task's draw
    /// had at least boostPool candidates (the parameter), and if half the task's estimate has passed since H was last set.
    function submit(uint64 id, bytes32 resultDigest) external;

    /// @notice The node says it cannot run the task: ends it, refunds the fee in full.
    function reportError(uint64 id, uint8 code) external;

    /// @notice Ends a task whose deadline has passed without an answer. Anyone may call, and earns the start fee; the node's own
    /// operator does not.
    function expire(uint32 node, uint64 id) external;

    /// @notice Draws up to `count` (at most 16) Pending tasks whose block has come. Anyone may call; every other call
    /// of nodes and applications but {withdraw} draws two. On a quiet network nobody else does: whoever wants his task started calls this in a later block.
    /// @return drawn How many it served.
    function dispatch(uint8 count) external returns (uint8 drawn);

    // ------------------------------------------------------------------ administration

    /// @notice Runs `call` (that is, `initialise`) of `program` on the router's storage. Only for the account that the router was
    /// created for, which its init code wrote down, and only until it is initialised.
    function install(address program, bytes calldata call) external;

    /// @notice Sets what never changes, the default parameters, and which program answers what. Only through `install`.
    /// @param owner May change parameters and programs.
    /// @param treasury Receives protocol income.
    /// @param granule Stakes are whole multiples of this many wei; at least 1e3.
    /// @param minimumStake In wei, a multiple of `granule`; also the base of the stake classes.
    /// @param upgradeDelay Seconds between the proposal of a program, or of a parameter that reaches into stakes, and its effect; 2 to
    /// 180 days.
    function initialise(address owner, address treasury, uint64 granule, uint128 minimumStake, uint32 upgradeDelay, Facet[] calldata programs) external;

    /// @notice Changes a parameter, within its bounds, at once; one that reaches into stakes has to be proposed.
    function setParameter(uint8 parameter, uint256 value) external;

    /// @notice Proposes a value for a parameter that reaches into stakes (unbonding, kickoutMilli); it can take effect after the
    /// upgrade delay. Another proposal for the same parameter takes its place.
    function proposeParameter(uint8 parameter, uint256 value) external;

    /// @notice Puts a proposed parameter into effect. Anyone may call.
    function acceptParameter(uint8 parameter) external;

    /// @notice Stops (or again allows) new tasks and joins; exits, payments and withdrawals always work.
    function setPaused(bool on) external;

    /// @notice First step of a change of owner.
    function transferOwnership(address newOwner) external;

    /// @notice Second step, by the new owner.
    function acceptOwnership() external;

    /// @notice Proposes another treasury; takes effect two days later at the earliest. The zero address withdraws the proposal.
    function proposeTreasury(address treasury) external;

    /// @notice Puts a proposed treasury into effect. Anyone may call.
    function acceptTreasury() external;

    /// @notice Pays protocol income out to the treasury. Anyone may call.
    function sweepTreasury() external;

    /// @notice Proposes that `program` answer `selectors`, or for the zero address that nothing does; it can take effect after the
    /// upgrade delay, which is longer than any unbonding: whoever disagrees can leave first.
    function proposePrograms(address program, bytes4[] calldata selectors) external;

    /// @notice Withdraws a proposed change of programs.
    function withdrawPrograms(address program, bytes4[] calldata selectors) external;

    /// @notice Puts a proposed change of programs into effect. Anyone may call.
    function acceptPrograms(address program, bytes4[] calldata selectors) external;

    /// @notice Fixes the programs for good: no change can be proposed or take effect any more.
    function renounceUpgrades() external;

    // ------------------------------------------------------------------ reading

    function overview() external view returns (Overview memory);
    function owner() external view returns (address);
    function parameter(uint8 which) external view returns (uint256 value, uint256 least, uint256 most);
    /// @notice A proposed parameter and when it can take effect; `effective` is 0 where nothing is proposed.
    function proposedParameter(uint8 which) external view returns (uint256 value, uint64 effective);
    /// @notice When a proposed change of programs can take effect; 0 where it is not proposed.
    function proposedPrograms(address program, bytes4[] calldata selectors) external view returns (uint64 effective);
    /// @notice Seconds between proposal and effect, and whether programs can never be changed again.
    function upgrades() external view returns (uint32 delay, bool renounced);
    function account(address who) external view returns (AccountView memory);
    function node(uint32 number) external view returns (NodeView memory);
    function nodeOf(address operator) external view returns (uint32);
    function nodes(uint32 from, uint32 count) external view returns (NodeView[] memory);
    function weightOf(uint32 number, TaskSpec calldata spec) external view returns (WeightView memory);
    function estimate(uint8 kind, uint32 units) external view returns (uint32 estimated, uint32 timeLimit, uint128 leastFee);
    function gpuGroup(string calldata name, uint16 vram) external view returns (uint32);
    function gpuName(uint32 group) external view returns (string memory);
    function gpuGroups(uint16 vram) external view returns (uint32 count);
    function idleNodes(uint32 group, uint8 class, uint32 from, uint32 count) external view returns (uint32 total, uint32[] memory numbers);
    function holders(uint64 model, uint32 from, uint32 count) external view returns (uint32 total, uint32[] memory numbers);
    function runningTask(uint32 number) external view returns (TaskView memory);
    function pendingTasks(uint32 from, uint32 count) external view returns (TaskView[] memory);
    /// @param group 0x0000vvvv for the "Any" group of VRAM v, or a GPU group + 0x10000.
    function queuedTasks(uint32 group, uint32 from, uint32 count) external view returns (uint32 places, TaskView[] memory);
    function bestQueued(uint32 number) external view returns (TaskView memory);
    function excludedNodes(uint32 from, uint32 count) external view returns (uint32 places, uint32[] memory numbers);

    function facets() external view returns (Facet[] memory);
    function facetFunctionSelectors(address facet) external view returns (bytes4[] memory);
    function facetAddresses() external view returns (address[] memory);
    function facetAddress(bytes4 selector) external view returns (address);
    function supportsInterface(bytes4 interfaceId) external view returns (bool);

    // ------------------------------------------------------------------ events

    /// @param fee What the new name cost, in wei: protocol income.
    event GpuGroupCreated(uint32 indexed group, string name, uint16 vram, uint128 fee);
    event NodeJoined(uint32 indexed node, address indexed operator, uint32 indexed group, uint128 stake, uint64[] models);
    event StakeRaised(uint32 indexed node, uint128 added, uint128 stake);
    event NodePausing(uint32 indexed node);
    event NodePaused(uint32 indexed node);
    event NodeResumed(uint32 indexed node);
    event NodeQuitting(uint32 indexed node);
    event NodeQuit(uint32 indexed node, address indexed operator, uint128 stake, uint64 release);
    event NodeKickedOut(uint32 indexed node, address indexed operator);
    /// @notice The node gets no task before `until`: its reliability is too low, or (until now) draws are due that it must not change.
    event NodeExcluded(uint32 indexed node, uint64 until);
    event NodeReadmitted(uint32 indexed node);
    event ScoreRecorded(uint32 indexed node, uint8 score);
    event ModelAdded(uint32 indexed node, uint64 indexed model);
    event ModelRemoved(uint32 indexed node, uint64 indexed model);
    event HolderPurged(uint32 indexed node, uint64 indexed model);
    /// @notice The node is asked to download a model: it runs a task that needs it, or the model is scarce.
    event DownloadRequested(uint32 indexed node, uint64 indexed model, uint64 indexed task);
    /// @notice Stake whose unbonding was over has become credit, so that the operator's next exit does not lock it again.
    event StakeReleased(address indexed account, uint128 amount);
    event Withdrawn(address indexed account, address indexed to, uint128 credit, uint128 stake);

    event TaskCreated(uint64 indexed id, address indexed creator, uint128 fee, uint32 estimate, uint32 timeLimit, uint16 startFeeBps, uint64 drawBlock, TaskSpec spec);
    /// @notice The draw stayed undecided, or its block's hash has aged out: it is drawn again from a later block.
    event TaskRedrawn(uint64 indexed id, uint64 drawBlock);
    event TaskQueued(uint64 indexed id, uint64 ticket);
    /// @param boosts Whether the draw had candidates enough for the task's success to raise the node's H.
    event TaskStarted(uint64 indexed id, uint32 indexed node, uint64 deadline, bool boosts);
    event TaskSucceeded(uint64 indexed id, uint32 indexed node, bytes32 resultDigest, uint128 paid);
    event TaskErrorReported(uint64 indexed id, uint32 indexed node, uint8 code, uint128 refund);
    /// @param reason 0 timeout, 1 cancelled, 2 evicted, 3 queued for too long.
    /// @param startFee Credited to `beneficiary`; if that is zero, protocol income.
    event TaskAborted(uint64 indexed id, address indexed creator, uint8 indexed reason, uint128 refund, uint128 startFee, address beneficiary);

    event Initialised(address owner, address treasury, uint64 granule, uint128 minimumStake, uint32 upgradeDelay);
    event ParameterChanged(uint8 indexed parameter, uint256 before, uint256 value);
    event ParameterProposed(uint8 indexed parameter, uint256 value, uint64 effective);
    event PausedChanged(bool on);
    event OwnershipTransferStarted(address indexed previousOwner, address indexed newOwner);
    event OwnershipTransferred(address indexed previousOwner, address indexed newOwner);
    event TreasuryProposed(address indexed treasury, uint64 effective);
    event TreasuryChanged(address indexed before, address indexed treasury);
    event TreasurySwept(address indexed treasury, uint128 amount);
    /// @param effective When it can take effect; 0 where it was withdrawn.
    event ProgramsProposed(address indexed program, bytes4[] selectors, uint64 effective);
    /// @notice Programs can never be changed again.
    event UpgradesRenouncedForGood();
    event ProgramChanged(bytes4 indexed selector, address indexed before, address indexed program);

    // ------------------------------------------------------------------ errors

    /// @notice No program answers this selector.
    error UnknownFunction(bytes4 selector);
    /// @notice The calldata is not what the function's types demand.
    error MalformedCalldata(bytes4 selector);
    /// @notice The program behind the selector stopped without a reason: a trap, or too little gas.
    error ProgramFailed(bytes4 selector, address program);
    /// @notice This function takes no value.
    error ValueNotAccepted(uint256 value);
    /// @notice The contract has not been initialised, or a program is called at its own address instead of the router's.
    error NotInitialised();
    /// @notice The contract is initialised, which happens once.
    error AlreadyInitialised();
    /// @notice The owner has stopped new tasks and joins.
    error PausedByOwner();
    /// @notice Only the owner may call this; before initialisation only the account that the router was created for.
    error NotOwner(address caller);
    /// @notice Only the account that ownership was offered to can accept it.
    error NotPendingOwner(address caller);
    /// @notice The zero address was given where an account is needed.
    error ZeroAddress();
    /// @notice There is no parameter of this number.
    error ParameterUnknown(uint8 parameter);
    /// @notice The value is not between `least` and `most`.
    error ParameterOutOfBounds(uint8 parameter, uint256 value, uint256 least, uint256 most);
    /// @notice The parameter reaches into stakes: a change has to be proposed.
    error ParameterDelayed(uint8 parameter);
    /// @notice The parameter can be set at once and need not be proposed.
    error ParameterNotDelayed(uint8 parameter);
    /// @notice The draw's delay is lowered only while no task is Pending; stop new tasks and dispatch those first.
    error TasksPending(uint32 pending);
    /// @notice Nothing of the kind is proposed.
    error NotProposed();
    /// @notice What is proposed can take effect only at `effective`.
    error TooEarly(uint64 effective);
    /// @notice Programs can never be changed again.
    error UpgradesRenounced();
    /// @notice There is no code at the address.
    error NoCode(address program);
    /// @notice The account is owed nothing that can be paid out now.
    error NothingToWithdraw(address account);
    /// @notice The receiver did not take the money; it stays owed.
    error TransferFailed(address to, uint256 amount);
    /// @notice The granule is below 1,000 wei, the minimum stake is not 1 to 2^30 - 1 whole granules or 2^18 times it is 2^88 wei or more,
    /// or the upgrade delay is not 2 to 180 days.
    error BadInitialisation();

    /// @notice No node has this number.
    error NodeUnknown(uint32 node);
    /// @notice The caller has no node.
    error NotAnOperator(address caller);
    /// @notice The node's status does not allow this; statuses as in NodeView.
    error WrongStatus(uint32 node, uint8 status);
    /// @notice The operator's node was kicked out; the address can never join again.
    error KickedOut(address operator);
    /// @notice The value sent is below the least stake, or below one granule where stake is added.
    error StakeTooLow(uint256 sent, uint256 least);
    /// @notice The stake would be above what a node can have, or what its account can have waiting to be returned.
    error StakeTooHigh(uint256 stake, uint256 most);
    /// @notice The value sent is not a whole number of granules.
    error StakeNotWhole(uint256 sent, uint256 granule);
    /// @notice The name is empty, longer than `most` bytes, or not printable ASCII.
    error BadGpuName(uint256 length, uint256 most);
    /// @notice The VRAM is 0 where a node declares it, or above `most`.
    error BadVram(uint16 vram, uint16 most);
    /// @notice There are as many GPU models with this VRAM as can be.
    error TooManyGpuModels(uint16 vram);
    /// @notice There are as many nodes as can be.
    error NetworkFull(uint32 joined);
    /// @notice More models than a task can require, a call can add, or a node can have.
    error TooManyModels(uint256 given, uint256 most);
    /// @notice Model ids are 1 to 2^40 - 1.
    error BadModel(uint64 model);
    /// @notice The list names the model twice.
    error DuplicateModel(uint64 model);
    /// @notice The node holds the model already.
    error ModelHeld(uint64 model);
    /// @notice The node does not hold the model.
    error ModelNotHeld(uint64 model);
    /// @notice There is no entry at this position, or it is not stale.
    error HolderNotStale(uint64 model, uint32 position);
    /// @notice The node is excluded and its time has not come, or it is idle and nothing waits that it could run.
    error NothingToPoke(uint32 node);

    /// @notice No node is joined, so the queue has no capacity.
    error NoNodes();
    /// @notice There is no task kind of this number.
    error BadKind(uint8 kind);
    /// @notice The units are 0 or more than `most`.
    error BadUnits(uint32 units, uint256 most);
    /// @notice No node ever joined with this GPU group.
    error GpuUnknown(uint32 group);
    /// @notice No joined node has the VRAM, or is of the GPU group, that the task requires.
    error NobodyCanRun(uint16 vram, uint32 gpu);
    /// @notice Only policy 0, a single node, is there yet.
    error RedundancyUnsupported(uint8 policy);
    /// @notice The value sent is less than the least fee for the estimated time.
    error FeeTooLow(uint256 sent, uint256 least);
    /// @notice The value sent is more than a fee can be.
    error FeeTooHigh(uint256 sent, uint256 most);
    /// @notice As many tasks wait for their draw as can.
    error TooManyPending(uint32 pending);
    /// @notice Tasks wait whose draw is decided already, more than this call makes, and it could change what they come to. Call
    /// `dispatch` first.
    error DrawsDue(uint32 pending);
    /// @notice The task is not queued under this ticket.
    error TaskNotQueued(uint64 id, uint64 ticket);
    /// @notice The task may stay queued until then.
    error QueueTimeNotOver(uint64 id, uint64 until);
    /// @notice Only the task's creator may call this.
    error NotTheCreator(uint64 id, address caller);
    /// @notice The node does not run this task.
    error TaskNotRunning(uint64 id, uint32 node);
    /// @notice The task's deadline was before now.
    error DeadlinePassed(uint64 id, uint64 deadline);
    /// @notice The task can still be answered until its deadline.
    error DeadlineNotPassed(uint64 id, uint64 deadline);
    /// @notice More than one call takes.
    error TooManyAtOnce(uint256 given, uint256 most);
}
