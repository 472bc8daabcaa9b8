// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// @title Muster: task dispatch and quality of service for decentralised GPU networks
/// @notice One address, one storage. Amounts are wei, times seconds, fixed-point numbers wads (1e18),
/// VRAM GiB. A model id is the first five bytes of the keccak256 of the model's name, as a number.
/// A GPU group is one GPU model with one VRAM size, numbered `model << 16 | vram`, models counted from 1 in order of first join. With 0
/// for the model it is every GPU with at least that VRAM. Lists are read page by page. `from` is the first position looked at,
/// counted from 0, `count` at most 256 ({nodes}: 64), and asking for more is refused ({PageTooLong}).
interface IMuster {
    // ------------------------------------------------------------------ types

    /// @notice A task's requirements, as its application states them.
    struct TaskSpec {
        /// 0 Stable Diffusion, 1 GPT, 2 fine-tuning.
        uint8 kind;
        /// Images, text requests, or for fine-tuning the seconds the creator states.
        uint32 units;
        /// Least VRAM of the node; ignored where `gpu` is set.
        uint16 vram;
        /// Required GPU group, or 0 for any; see `gpuGroup`.
        uint32 gpu;
        /// Redundancy policy.
        /// 0, single: one node runs the task, and any answer is paid.
        /// 1, sampled: one node commits to its answer. With the probability of the parameter sampleBps two more nodes get the same task, and
        /// all three are judged. The node cannot know it before.
        /// 2, replicated: three nodes get the task at once and are judged; the fee is for all three together. They are scored and slashed only
        /// if as many nodes as the parameter scorePool says are idle in its scope at the draw. In a busy network they are not, but nodes of
        /// policy 1 are. See GroupFormed.
        /// 3, rated: several nodes are chosen by their ratings, as its creator's {Profile} says. More than half of them must agree. The fee is
        /// for as many nodes as the profile's `most` says now.
        uint8 redundancy;
        /// Bit 0 asks for a receipt, so that {outcome} can tell how the task ended. Other bits are refused.
        uint32 flags;
        /// Digest of the input, which travels off chain.
        bytes32 inputDigest;
        /// Required models, at most 8, no duplicates.
        uint64[] models;
    }

    /// @notice How the groups of an application's tasks of redundancy 3 are chosen.
    struct Profile {
        /// 0 Fixed-size: `most` at random. 1 First-fit: the best rated, until their likelihood of correctness reaches the target. 2
        /// Tight-fit: the smallest group that reaches it, and of those the least likely. 3 Random-fit: at random, until it is reached.
        uint8 algorithm;
        /// Least members of a group, 3 or more.
        uint8 least;
        /// Most members of a group, up to 9.
        uint8 most;
        /// Most further groups that a task is given to after groups without a majority, up to 8.
        uint8 reschedules;
        /// Where the target comes from. 0 predictive: every period the one with the largest expected gain. 1 adaptive: every period a step of hill
        /// climbing. 2: it stays as it is given.
        uint8 targeting;
        /// The target likelihood of correctness now, a wad.
        uint64 target;
        /// Weight of throughput against success in the gain, a wad.
        uint64 alpha;
        /// Settled groups after which the target is set anew, from 300 to 1,000,000.
        uint32 period;
    }

    /// @notice A node, joined or not.
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
        /// Why it waits apart; 0 if it does not. 1 excluded by its H or held back by due draws, 2 waits for others, for a queued task
        /// that takes several nodes, 3 reserved for the draw of such a task.
        uint8 parked;
        /// When it can return to work: 1 and 2; else 0.
        uint64 parkedUntil;
        uint64 joinedAt;
        /// The running task, or the last one.
        uint64 task;
        uint64 deadline;
        uint64[] models;
        uint64[] inUse;
        /// Its commitments in groups for which it can still be slashed. While there are some, returned stake stays locked.
        uint8 openCommitments;
        /// Whether it has the most of them that it may have (the parameter openMost), and gets no task until one is closed.
        bool held;
        /// The place of the validation group that it was called to while busy and joins when its task ends; 0 for none.
        uint32 calledTo;
        /// Judgements in its rating that found it right.
        uint8 right;
        /// All judgements in its rating. At 64 both counts are halved, rounded down.
        uint8 judged;
        /// Its rating: (right + 1) / (judged + 2), a wad, rounded down. It is kept when the node quits and joins again.
        uint64 rating;
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

    /// @notice A task that has not ended. All zero where there is none.
    struct TaskView {
        uint64 id;
        /// 0 there is none, 1 Pending, 2 queued, 3 running, 4 its node has committed to its answer, 5 it was sampled and its validators are
        /// being drawn, 6 a validation group runs it.
        uint8 status;
        address creator;
        uint128 fee;
        uint8 kind;
        uint32 estimate;
        uint32 timeLimit;
        uint16 startFeeBps;
        uint16 vram;
        /// Required GPU group, or 0 for any.
        uint32 gpu;
        /// As in its specification.
        uint32 flags;
        uint64[] models;
        /// Pending: number of the L2 block whose hash decides the draw.
        uint64 drawBlock;
        /// Queued: what `cancel` and `expireQueued` take.
        uint64 ticket;
        /// Queued: since when.
        uint64 queuedAt;
        /// Queued: the greatest key is served first, the least is evicted first.
        uint64 queueKey;
        /// Running: on which node.
        uint32 node;
        /// Running: until when an answer counts.
        uint64 deadline;
        /// Running: whether its success can raise its node's H. H was below 1 at the start, and the draw had enough candidates, or the task waited
        /// in the queue while enough nodes were active.
        bool boosts;
        /// As in its specification.
        uint8 redundancy;
        /// Redundancy 1: probability of its validation, in ten-thousandths.
        uint16 sampleBps;
        /// Status 6: the place of its validation group, see {group}.
        uint32 group;
    }

    /// @notice A member of a validation group.
    struct MemberView {
        /// 0 if there is no such member.
        uint32 node;
        /// 1 called and still busy, 2 running, 3 committed, 4 its answer is revealed, 5 its error is revealed, 6 it let its deadline pass,
        /// 7 it was slashed out of the network before. Also 7: the group goes on without it, since its own sampled task keeps it.
        uint8 stage;
        /// Running, or past its deadline: that deadline. From the commitment on: when that was made. 7: when that was known, or its deadline
        /// if that came first.
        uint64 moment;
        /// Seconds from its start to its commitment.
        uint32 elapsed;
        /// Committed: the commitment's first 24 bytes, then zeros. Revealed: the answer, or the error's code.
        bytes32 answer;
    }

    /// @notice A validation group: several nodes run one task, and their answers judge each other. All zero where there is none.
    struct GroupView {
        uint32 group;
        uint64 id;
        address creator;
        uint128 fee;
        uint8 kind;
        /// Images of an answer; 0 where answers must be equal.
        uint8 images;
        uint32 estimate;
        /// 1 for a sampled task's group, 2 for a replicated one's, 3 for a rated one's.
        uint8 redundancy;
        uint16 sampleBps;
        /// Whether its scope had enough nodes (the parameter scorePool) for scores and slashes: for a sampled task at its creation, for others when
        /// the group was formed. A rated group's members are then rated, and never scored or slashed.
        bool scored;
        /// From when answers can be revealed, and from when anyone can have the group judged without the missing ones; 0 while a member has neither
        /// committed nor timed out.
        uint64 opens;
        uint64 closes;
        /// In a sampled task's group the first member ran the task before it was sampled.
        MemberView[] members;
    }

    /// @notice The outcome of a task that asked for a receipt.
    struct Outcome {
        /// 0 no receipt: there is no such task, or it asked for none. 1 not ended, 2 succeeded, 3 the node reported an error, 4 timed
        /// out, 5 cancelled, 6 evicted, 7 queued for too long, 8 its node was slashed out, 9 validated without two equal answers.
        uint8 state;
        /// The node that ran it; 0 if it never started or has not ended.
        uint32 node;
        /// The error's code as the node gave it.
        uint8 code;
        /// When it ended; 0 before.
        uint64 ended;
        /// The returned part of the fee, in wei.
        uint128 refund;
        /// Digest of the result; 0 unless it succeeded.
        bytes32 resultDigest;
    }

    /// @notice A queue: the tasks of a grade that require the same GPU group, or the same VRAM of any GPU.
    struct QueueView {
        /// Its number, see {queuedTasks}.
        uint32 queue;
        /// Tasks in it.
        uint32 queued;
        /// Its places, free ones included: {queuedTasks} goes as far.
        uint32 places;
        /// Greatest key; 0 when empty.
        uint64 best;
        /// Least key; 0 when empty.
        uint64 worst;
    }

    /// @notice Muster's debts to an account, and its node.
    struct AccountView {
        uint128 credit;
        uint128 unbonding;
        uint64 release;
        /// The node that it is the operator of, or works for; 0 for none.
        uint32 node;
        bool kickedOut;
    }

    /// @notice The network as a whole.
    struct Overview {
        address owner;
        address treasury;
        uint128 treasuryBalance;
        /// The reserve that pays for validations beside the fees, in wei.
        uint128 reserve;
        /// The sum slashed from nodes that answered wrong or withheld, in wei. It stays in the contract for good.
        uint128 burnt;
        /// Unsettled validation groups, and the number of places for them.
        uint32 groups;
        uint32 groupPlaces;
        uint64 stakeUnit;
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

    /// @notice ERC-2535: a change of what a program answers.
    struct FacetCut {
        address facetAddress;
        /// 0 added, 1 another program's until now, 2 no longer answered (with the zero address).
        uint8 action;
        bytes4[] functionSelectors;
    }

    // ------------------------------------------------------------------ nodes

    /// @notice Joins the caller's node with the value sent as its stake. H starts at 1. With a GPU that no node ever joined
    /// with ({gpuGroup} refuses it) the parameter groupFee is taken from the value first, as protocol income.
    /// @param gpuName 1 to 64 characters of printable ASCII.
    /// @param vram 1 to 960.
    /// @param models The models that the node holds, at most 10, no duplicates; {reportDownloaded} adds up to 32 in all.
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

    /// @notice Names the account that may work for the caller's node beside its operator, zero for none, and ends the work of the one named before.
    /// The worker begins with {acceptWork}. It answers, commits, reports, pauses, resumes and says which models the node holds. It cannot raise the
    /// stake, quit, name a worker, or take any of the operator's money. The earnings are the operator's, and the node's stake answers for the
    /// worker's answers.
    function setWorker(address worker) external;

    /// @notice Accepts the work that the operator of this node offers the caller. The caller must have no node, and work for no other.
    function acceptWork(uint32 node) external;

    /// @notice Ends the caller's work for its node.
    function leaveWork() external;

    /// @notice Publishes the URIs at which bytes can be read: a node's results, an application's inputs. They are the operator's if the caller
    /// works for a node, else the caller's own. Digests tell whether the bytes are right, so these URIs need no trust.
    /// @param uris URIs in the order of preference, in printable ASCII, with a single space between two; at most 256 bytes. An empty list
    /// deletes the earlier one.
    function setStores(string calldata uris) external;

    /// @notice Says that the caller's node now holds these models too, at most 10 in one call and 32 in all.
    function reportDownloaded(uint64[] calldata models) external;

    /// @notice Says that the caller's node no longer holds these models.
    function reportRemoved(uint64[] calldata models) external;

    /// @notice Removes a stale entry (model no longer held, or node gone) from a model's holders. Anyone may call.
    function purge(uint64 model, uint32 position) external;

    /// @notice Re-admits a node that waits apart and whose time has come, or offers an idle node the best queued task. Anyone may call. It only
    /// draws if a draw of several nodes is due.
    function poke(uint32 node) external;

    /// @notice Writes a model's name into a log, so that explorers can show it: once for each id, anyone may call.
    /// @param name 1 to 128 characters of printable ASCII.
    /// @return model The id that follows from it.
    function nameModel(string calldata name) external returns (uint64 model);

    /// @notice Pays out the caller's credit, and its returned stake once unbonded. It makes no draws, so nothing can keep it from paying.
    function withdraw(address payable to) external;

    // ------------------------------------------------------------------ tasks

    /// @notice Creates a task; the value sent is its fee, held in escrow.
    function createTask(TaskSpec calldata spec) external payable returns (uint64 id);

    /// @notice Creates up to 16 tasks, at less gas than one by one. The value sent is the sum of their fees. No task is drawn in this call,
    /// whatever the draw delay. The call makes a few cheap draws that are due. While others are due it is refused: call {dispatch} first.
    /// @param fees Each task's, in wei, all below 2^87.
    /// @param atomic All or none: the first task that is refused refuses the call. Otherwise such a task is left out, and its fee becomes credit,
    /// which {withdraw} pays out.
    /// @return ids In the order of the specifications; 0 for a task that was left out.
    function createTasks(TaskSpec[] calldata specs, uint128[] calldata fees, bool atomic) external payable returns (uint64[] memory ids);

    /// @notice Cancels a queued task of the caller. The fee is refunded less the start fee.
    /// @param ticket As in the task's latest TaskQueued event.
    function cancel(uint64 id, uint64 ticket) external;

    /// @notice Ends a task that has been queued for longer than the parameter queueTime. Anyone may call. The fee is refunded less the
    /// start fee. The caller earns the start fee, unless they created the task.
    /// @param ticket As in the task's latest TaskQueued event.
    function expireQueued(uint64 id, uint64 ticket) external;

    /// @notice The node's answer: ends the task as a success and pays the fee, whatever the answer is. H can rise where it was
    /// below 1 at the start, and half the task's estimate has passed since H was last set. It rises if the task's draw had at least boostPool
    /// candidates (the parameter), or if the task was queued for half its estimate where so many nodes are active.
    function submit(uint64 id, bytes32 resultDigest) external;

    /// @notice The node says it cannot run the task: ends it. The creator gets the fee back less the start fee, which is protocol income.
    /// The node keeps its H, its scores and its rating. It rests until the task's estimate is over, at most a minute from its start.
    function reportError(uint64 id, uint8 code) external;

    /// @notice Ends a task whose deadline has passed without an answer, or whose answer was committed to and neither sampled nor revealed within
    /// the parameter sampleWindow. In the latter case the reserve keeps the part that it would have got. Anyone may call. The caller earns the
    /// start fee; if they are the node's operator or worker, it is protocol income. It also releases a late member of a validation group; nobody
    /// earns by that.
    function expire(uint32 node, uint64 id) external;

    /// @notice Makes up to `count` (at most 16) draws whose block has come, of Pending tasks and of validators. Anyone may call. Some calls make up
    /// to two before their own work: {createTask}, {submit}, {reportError}, {expire}, {pause}, {resume}, {quit}, {reportRemoved}, {purge}, {poke}
    /// and {setProfile}. {join}, {raiseStake}, {reportDownloaded}, {createTasks} and {settle} make up to eight of one node. {formGroup} draws
    /// validators alone, and all others draw nothing. A quiet network has few such calls, so creators that want their task started call this in a
    /// later block.
    /// @return drawn The number of draws made.
    function dispatch(uint8 count) external returns (uint8 drawn);

    // ------------------------------------------------------------------ validation

    /// @notice The node commits to its answer of a task that can be validated, instead of {submit} and {reportError}.
    /// @param commitment keccak256(abi.encode(id, node, kind, value, salt)), of which 24 bytes are kept. Of these, id is a uint64, node a uint32,
    /// kind (uint8) 0 for an answer and 1 for an error, value (bytes32) the answer or the error's code, salt (bytes32) secret. An answer
    /// is the result's digest; of a Stable Diffusion task four perceptual hashes of 64 bits, the first image's first, 0 where there is none.
    function commit(uint64 id, bytes32 commitment) external;

    /// @notice Reveals what a node has committed to. Anyone may call. A task that was not sampled ends with it: the node is paid fee / (1 + 2
    /// sampleBps / 10000) and the rest goes to the reserve. It is paid the whole fee if the task is not scored. That is so if at its creation
    /// fewer nodes than the parameter scorePool had joined in its scope, or fewer than two thirds as many were active there. A task whose answers
    /// must be equal is not scored either if its GPU group was not listed at the commitment. An error ends the task as {reportError} does.
    ///
    /// In a validation group reveals begin when every member has committed or timed out, and end when the group is judged. The last of them judges
    /// it, unless draws are due, or {settle} does after the parameter revealWindow. Commitments are no longer open that can no longer be slashed:
    /// to errors, to two equal answers, and to an answer that no two others can outvote.
    /// @param group The group's place, as in {GroupFormed}; 0 for a task that was not sampled.
    function reveal(uint64 id, uint32 group, uint32 node, uint8 kind, bytes32 value, bytes32 salt) external;

    /// @notice Calls validators for a task whose node has committed and which the hash of a later block has sampled. Anyone may call. The call
    /// spends the task's start fee. The caller earns it; if the caller is the node's operator or worker, the reserve gets it.
    function validate(uint64 id, uint32 node) external;

    /// @notice Draws the validators of the next sampled task whose block has come, if its draw is the next. Anyone may call; every call
    /// that draws Pending tasks does the same.
    function formGroup() external returns (bool formed);

    /// @notice Sets how the groups of the caller's tasks of redundancy 3 are chosen. Without it First-fit takes 3 to 7 nodes, the target is
    /// predictive at an `alpha` of 0.5, and there are at most two more groups. The count of settled groups begins anew. Refused while draws are due.
    function setProfile(Profile calldata profile) external;
    /// @notice An application's profile, and since its target was last set: groups settled, those with a majority, their members.
    function profile(address application) external view returns (Profile memory, uint32 groups, uint32 successes, uint32 members);

    /// @notice Judges a validation group whose members have all revealed, or whose time for it is over. Anyone may call. While it waits for
    /// a called member whose own committed task is older than the parameter sampleWindow, the group goes on without that member instead.
    /// Refused while draws are due.
    function settle(uint64 id, uint32 group) external;

    /// @notice Lists a GPU group, or takes it off the list. The nodes of a listed group answer bit by bit alike, so that tasks on it can be
    /// validated. Only the owner may call.
    function listGpuGroup(uint32 group, bool listed) external;

    // ------------------------------------------------------------------ administration

    /// @notice Runs `call` (that is, `initialise`) of `program` on the router's storage. Only for the account that the router was
    /// created for, which its init code wrote down, and only until it is initialised.
    function install(address program, bytes calldata call) external;

    /// @notice Sets the values that never change, the default parameters, and the program that answers each function. Only through `install`.
    /// @param owner May change parameters and programs.
    /// @param treasury Receives protocol income.
    /// @param stakeUnit Stakes are whole multiples of this many wei; at least 1e3.
    /// @param minimumStake In wei, a multiple of `stakeUnit`; also the base of the stake classes.
    /// @param upgradeDelay Seconds between the proposal of a program, or of a parameter that reaches into stakes, and its effect; 2 to
    /// 180 days.
    function initialise(address owner, address treasury, uint64 stakeUnit, uint128 minimumStake, uint32 upgradeDelay, Facet[] calldata programs) external;

    /// @notice Changes a parameter, within its bounds, at once. A parameter that affects stakes must be proposed instead.
    function setParameter(uint8 parameter, uint256 value) external;

    /// @notice Proposes a value for a parameter that affects stakes; it can take effect after the upgrade delay. Another proposal for the same
    /// parameter takes its place. These parameters are startFeeBps, minStake, unbonding, kickoutMilli, queueTime, groupFee, sampleWindow,
    /// revealWindow, openMost, slashTimes, scorePool, hammingMost and slashImages.
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

    /// @notice Proposes that `program` answer `selectors`, or with the zero address that no program does. It can take effect after the upgrade
    /// delay. The delay is longer than any unbonding, so nodes that disagree can leave first.
    function proposePrograms(address program, bytes4[] calldata selectors) external;

    /// @notice Withdraws a proposed change of programs.
    function withdrawPrograms(address program, bytes4[] calldata selectors) external;

    /// @notice Puts a proposed change of programs into effect. Anyone may call.
    function acceptPrograms(address program, bytes4[] calldata selectors) external;

    /// @notice Fixes the programs for good: no change can be proposed or take effect any more.
    function renounceUpgrades() external;

    // ------------------------------------------------------------------ reading

    /// @notice The network as a whole.
    function overview() external view returns (Overview memory);
    /// @notice The owner, who may change parameters and propose programs.
    function owner() external view returns (address);
    /// @notice The pending owner, who must accept ownership; zero for none.
    function pendingOwner() external view returns (address);
    /// @notice The proposed treasury, zero for none, and when it can take effect.
    function pendingTreasury() external view returns (address treasury, uint64 effective);
    /// @notice A parameter and its bounds, by its number.
    function parameter(uint8 which) external view returns (uint256 value, uint256 least, uint256 most);
    /// @notice A proposed parameter and when it can take effect; `effective` is 0 where nothing is proposed.
    function proposedParameter(uint8 which) external view returns (uint256 value, uint64 effective);
    /// @notice When a proposed change of programs can take effect; 0 where it is not proposed.
    function proposedPrograms(address program, bytes4[] calldata selectors) external view returns (uint64 effective);
    /// @notice Seconds between proposal and effect, and whether programs can never be changed again.
    function upgrades() external view returns (uint32 delay, bool renounced);

    /// @notice The amounts owed to an account, and its node.
    function account(address who) external view returns (AccountView memory);
    /// @notice A node by its number.
    function node(uint32 number) external view returns (NodeView memory);
    /// @notice The number of the node that an account is the operator of, or works for; 0 for none.
    function nodeOf(address who) external view returns (uint32);
    /// @notice The worker that a node's operator named, zero for none (or no such node), and whether that account accepted.
    function workerOf(uint32 number) external view returns (address worker, bool works);
    /// @notice The URIs that {setStores} published for an account; a node's are under its operator's account. Empty if there are none.
    function storesOf(address account) external view returns (string memory uris);
    /// @notice Nodes by number, those that quit included.
    /// @param from The first number, from 1 on (0 stands for 1).
    /// @param count At most 64.
    function nodes(uint32 from, uint32 count) external view returns (NodeView[] memory);
    /// @notice The factors of a node's weight for a task that would be drawn now.
    function weightOf(uint32 number, TaskSpec calldata spec) external view returns (WeightView memory);
    /// @notice The terms for a task's kind and units: estimated seconds, seconds from start to deadline, and the least fee.
    function estimate(uint8 kind, uint32 units) external view returns (uint32 estimated, uint32 timeLimit, uint128 leastFee);
    /// @notice The GPU group of a name and VRAM size, once a node has joined with them.
    function gpuGroup(string calldata name, uint16 vram) external view returns (uint32);
    /// @notice The name of a GPU group; empty if there is no such group.
    function gpuName(uint32 group) external view returns (string memory);
    /// @notice How many GPU models of a VRAM size there ever were: they have the numbers 1 to `count`.
    function gpuGroups(uint16 vram) external view returns (uint32 count);
    /// @notice The idle nodes of a GPU group and stake class, none of them stale, and how many there are.
    function idleNodes(uint32 group, uint8 class, uint32 from, uint32 count) external view returns (uint32 total, uint32[] memory numbers);
    /// @notice The nodes entered as holders of a model, and how many entries there are. Stale entries are in it: nodes that quit, or that reported
    /// the model removed; {node} gives the models that a node holds, {purge} removes a stale entry.
    function holders(uint64 model, uint32 from, uint32 count) external view returns (uint32 total, uint32[] memory numbers);
    /// @notice Nodes that wait apart (see NodeView.parked), by place; free places are left out. `places` is how far places go.
    function excludedNodes(uint32 from, uint32 count) external view returns (uint32 places, uint32[] memory numbers);

    /// @notice The outcome of a task that asked for a receipt, for contracts.
    function outcome(uint64 id) external view returns (Outcome memory);
    /// @notice A task that has not ended, by its id: running on the node `nodeHint`, queued under the ticket `ticketHint`, or Pending.
    /// {TaskStarted} and {TaskQueued} give the hints; 0 stands for none. Without the right hint a running or queued task is not found.
    function locate(uint64 id, uint32 nodeHint, uint64 ticketHint) external view returns (TaskView memory);
    /// @notice The task that a node runs now.
    function runningTask(uint32 number) external view returns (TaskView memory);
    /// @notice Tasks that wait for their draw, in the order in which they are drawn.
    function pendingTasks(uint32 from, uint32 count) external view returns (TaskView[] memory);
    /// @notice Queues ever used, in order of first use, and how many there are.
    function queues(uint32 from, uint32 count) external view returns (uint32 total, QueueView[] memory);
    /// @notice The tasks at some places of a queue; free places are left out. `places` is how far places go.
    /// @param queue A GPU group, or a VRAM size for the queue of tasks that any GPU with at least as much can run. Plus 4096 for tasks that take
    /// three nodes and answer with images, 8192 for those that take three nodes whose answers must be equal, 12288 for tasks of redundancy 3.
    function queuedTasks(uint32 queue, uint32 from, uint32 count) external view returns (uint32 places, TaskView[] memory);
    /// @notice How many of the tasks at some places of a ticket's queue are served before it: over all places it is the task's place in the
    /// queue. `places` is how far places go.
    function queuedBefore(uint64 ticket, uint32 from, uint32 count) external view returns (uint32 places, uint32 before);
    /// @notice The validation groups at some places; free places are left out. Places begin with 1.
    function groups(uint32 from, uint32 count) external view returns (uint32 places, GroupView[] memory);
    /// @notice The validation group at a place.
    function group(uint32 place) external view returns (GroupView memory);
    /// @notice Sampled tasks whose validators wait to be drawn, in the order in which they are.
    function validatorDraws(uint32 from, uint32 count) external view returns (TaskView[] memory);
    /// @notice Whether tasks whose answers must be equal can be validated on a GPU group.
    function gpuListed(uint32 group) external view returns (bool);
    /// @notice The active nodes of a GPU group and stake class, and how many there are: those that have joined, paused ones only until a
    /// draw of validators meets them.
    function activeNodes(uint32 group, uint8 class, uint32 from, uint32 count) external view returns (uint32 total, uint32[] memory numbers);
    /// @notice The queued task that is worth most to a node if it became available now; it may take others, which may not be there.
    function bestQueued(uint32 number) external view returns (TaskView memory);

    /// @notice ERC-2535: all programs and the selectors they answer; the router itself answers {install}.
    function facets() external view returns (Facet[] memory);
    /// @notice ERC-2535: the selectors that a program answers.
    function facetFunctionSelectors(address facet) external view returns (bytes4[] memory);
    /// @notice ERC-2535: all programs.
    function facetAddresses() external view returns (address[] memory);
    /// @notice ERC-2535: the program that answers a selector; zero if none does.
    function facetAddress(bytes4 selector) external view returns (address);
    /// @notice ERC-165: whether this interface, ERC-165 or ERC-2535's loupe is meant.
    function supportsInterface(bytes4 interfaceId) external view returns (bool);

    // ------------------------------------------------------------------ events of nodes

    /// @notice A node joined with a GPU that nobody had joined with before.
    /// @param fee The price of the new name, in wei: protocol income.
    event GpuGroupCreated(uint32 indexed group, string name, uint16 vram, uint128 fee);
    /// @notice A node joined. Its H is 1.
    event NodeJoined(uint32 indexed node, address indexed operator, uint32 indexed group, uint128 stake, uint64[] models);
    /// @notice A node's stake was raised.
    event StakeRaised(uint32 indexed node, uint128 added, uint128 stake);
    /// @notice The node will be paused when its task ends.
    event NodePausing(uint32 indexed node);
    /// @notice The node takes no tasks until it is resumed.
    event NodePaused(uint32 indexed node);
    /// @notice A draw of validators met the paused node, which is not among the active ones from now on until it resumes.
    event NodeSetAside(uint32 indexed node);
    /// @notice The node is available again.
    event NodeResumed(uint32 indexed node);
    /// @notice The operator named the account that may work for the node, zero for none, or its worker left. Nobody but the operator works for it now.
    event WorkerNamed(uint32 indexed node, address indexed worker);
    /// @notice The account named works for the node from now on.
    event WorkAccepted(uint32 indexed node, address indexed worker);
    /// @notice From now on an account's bytes can be read at these URIs. A node's are published for its operator's account.
    event StoresSet(address indexed account, string uris);
    /// @notice The node will quit when its task ends.
    event NodeQuitting(uint32 indexed node);
    /// @notice The node left. Its stake can be withdrawn from `release` on.
    event NodeQuit(uint32 indexed node, address indexed operator, uint128 stake, uint64 release);
    /// @notice The node was kicked out for its scores, or slashed below fifteen sixteenths of the least stake; its operator can never join
    /// again. A NodeQuit follows, unless the node had left before.
    event NodeKickedOut(uint32 indexed node, address indexed operator);
    /// @notice The node gets no task before `until`: its reliability is too low, or it rests after an error that it reported. If `until` is now,
    /// draws are due that the node must not change.
    event NodeExcluded(uint32 indexed node, uint64 until);
    /// @notice The node waits for others, for this queued task, which takes several: it gets no other task before `until`. If that is 0, the task
    /// is Pending, and the node is reserved for its draw.
    event NodeWaits(uint32 indexed node, uint64 indexed id, uint64 until);
    /// @notice A node no longer waits apart: its time has come, or the draws that held it back or reserved it are made.
    event NodeReadmitted(uint32 indexed node);
    /// @notice A node's answer was scored. For its rating, a score above 0 counts as right, 0 as wrong.
    event ScoreRecorded(uint32 indexed node, uint8 score);
    /// @notice The node says that it now holds a model.
    event ModelAdded(uint32 indexed node, uint64 indexed model);
    /// @notice The node says that it no longer holds a model; its entry among the holders is stale now.
    event ModelRemoved(uint32 indexed node, uint64 indexed model);
    /// @notice A stale entry was taken out of a model's holders.
    event HolderPurged(uint32 indexed node, uint64 indexed model);
    /// @notice A model's name: its id is the first five bytes of the name's keccak256.
    event ModelNamed(uint64 indexed model, string name);
    /// @notice The node is asked to download a model: it runs a task that needs it, or the model is scarce.
    event DownloadRequested(uint32 indexed node, uint64 indexed model, uint64 indexed task);
    /// @notice Stake whose unbonding was over has become credit, so that the operator's next exit does not lock it again.
    event StakeReleased(address indexed account, uint128 amount);
    /// @notice An account was paid the amount owed to it.
    event Withdrawn(address indexed account, address indexed to, uint128 credit, uint128 stake);

    // ------------------------------------------------------------------ events of tasks

    /// @notice A task was created, its fee is in escrow, and its terms are fixed. The hash of `drawBlock` draws its node;
    /// 0 if it is queued at once, for want of idle nodes.
    event TaskCreated(uint64 indexed id, address indexed creator, uint128 fee, uint32 estimate, uint32 timeLimit, uint16 startFeeBps, uint64 drawBlock, TaskSpec spec);
    /// @notice A task of a batch was left out; its fee is the caller's credit.
    /// @param place Its place among the specifications, from 0.
    /// @param reason The error that would have refused it alone, encoded.
    event TaskRefused(address indexed creator, uint8 place, uint128 fee, bytes reason);
    /// @notice The draw stayed undecided, or its block's hash has aged out: it is drawn again from a later block. Or enough nodes may be there now
    /// for a queued task that takes several: it is Pending again, and its ticket is no longer valid.
    event TaskRedrawn(uint64 indexed id, uint64 drawBlock);
    /// @notice No node could take the task, or too many draws by ratings have found too few: it waits in the queue of its GPU group, or of its
    /// VRAM.
    event TaskQueued(uint64 indexed id, uint32 indexed group, address indexed creator, uint64 ticket);
    /// @notice A node was chosen and has until the deadline.
    /// @param boosts Whether the task's success can raise the node's H: H is below 1, and the draw had enough candidates, or the task waited in the
    /// queue while enough nodes were active.
    event TaskStarted(uint64 indexed id, uint32 indexed node, address indexed creator, uint64 deadline, bool boosts);
    /// @notice The node answered and was paid. Of a task that could have been sampled, the unpaid rest went to the reserve.
    event TaskSucceeded(uint64 indexed id, uint32 indexed node, address indexed creator, bytes32 resultDigest, uint128 paid);
    /// @notice The node said that it cannot run the task. The rest of the fee is the start fee, protocol income.
    event TaskErrorReported(uint64 indexed id, uint32 indexed node, address indexed creator, uint8 code, uint128 refund);
    /// @notice The task ended without an answer.
    /// @param node The node that let it time out; 0 if it never started.
    /// @param reason 0 timeout, 1 cancelled, 2 evicted, 3 queued for too long, 4 the node was slashed out of the network.
    /// @param startFee Credited to `beneficiary`; if that is zero, protocol income. Any other rest of the fee went to the reserve.
    event TaskAborted(uint64 indexed id, uint32 indexed node, address indexed creator, uint8 reason, uint128 refund, uint128 startFee, address beneficiary);

    // ------------------------------------------------------------------ events of validation

    /// @notice A node has committed to its answer.
    /// @param group The place of its validation group; 0 for a task that may still be sampled.
    /// @param commitment Its first 24 bytes.
    /// @param block The L2 block whose hash decides whether the task is sampled; 0 in a group.
    event AnswerCommitted(uint64 indexed id, uint32 indexed node, uint32 group, bytes24 commitment, uint64 block);
    /// @notice The answer that a node had committed to, and the salt. The salt opens anything encrypted with it.
    event AnswerRevealed(uint64 indexed id, uint32 indexed node, uint32 group, uint8 kind, bytes32 value, bytes32 salt);
    /// @notice A task was sampled: its validators are drawn by a later block's hash.
    /// @param beneficiary The account that got `paid`, the task's start fee; if zero, the reserve got it.
    event TaskSampled(uint64 indexed id, uint32 indexed node, address indexed creator, uint64 drawBlock, address beneficiary, uint128 paid);
    /// @notice A validation group was formed. The first member of a sampled task's group has committed already; of all others, MemberStarted says
    /// when they begin.
    /// @param scored Whether its judgement is scored, slashes, and is paid out of the reserve too.
    event GroupFormed(uint64 indexed id, uint32 indexed group, address indexed creator, uint32[] nodes, bool scored);
    /// @notice A group's members were chosen by their ratings. Where that cost much gas, `group` is 0: another draw, due already, forms the group. The event
    /// is then emitted again with the group's place.
    /// @param target The target likelihood of correctness, a wad.
    /// @param likelihood That of this group, a wad.
    event GroupChosen(uint64 indexed id, uint32 indexed group, address indexed creator, uint8 algorithm, uint8 size, uint64 target, uint64 likelihood);
    /// @notice A node was judged in a group chosen by ratings, and its rating counts it.
    event NodeRated(uint32 indexed node, bool right);
    /// @notice An application has said how its groups are chosen.
    event ProfileSet(address indexed application, Profile profile);
    /// @notice A member of a validation group was busy when it was called; it begins when its task ends.
    event MemberCalled(uint64 indexed id, uint32 indexed node, uint32 group);
    /// @notice A member of a validation group has begun, and has until the deadline.
    event MemberStarted(uint64 indexed id, uint32 indexed node, uint32 group, uint64 deadline);
    /// @notice A member of a validation group has let its deadline pass, or left before.
    event MemberTimedOut(uint64 indexed id, uint32 indexed node, uint32 group);
    /// @notice The verdict on a member, and its pay.
    /// @param verdict 1 right, 2 wrong, 3 withheld, 4 error reported, 5 timed out, 6 no two answers were the same, or in a rated group no
    /// majority of them.
    event MemberJudged(uint64 indexed id, uint32 indexed node, uint32 group, uint8 verdict, uint128 paid);
    /// @notice A validation group was judged; its place is free.
    /// @param outcome 0 two or more answers were the same, 1 the first node alone answered and is paid as if not sampled, 2 no equal
    /// answers or no majority. 3 nobody answered, or a validator alone, 4 there is no majority and the task goes to another group.
    /// @param answer The right answer.
    /// @param startFee Protocol income.
    /// @param reserve The reserve's balance now.
    event GroupSettled(uint64 indexed id, uint32 indexed group, address indexed creator, uint8 outcome, bytes32 answer, uint128 refund, uint128 startFee, uint128 reserve);
    /// @notice A node answered wrong, or withheld its answer: this much was taken of its stake, of its returned stake and of its credit.
    event NodeSlashed(uint32 indexed node, address indexed operator, uint64 indexed id, uint128 stake, uint128 unbonding, uint128 credit);
    /// @notice Tasks whose answers must be equal can be validated on a GPU group, or no longer.
    event GpuGroupListed(uint32 indexed group, bool listed);

    // ------------------------------------------------------------------ events of administration

    /// @notice The network was set up.
    event Initialised(address owner, address treasury, uint64 stakeUnit, uint128 minimumStake, uint32 upgradeDelay);
    /// @notice A parameter has another value; at initialisation, its first.
    event ParameterChanged(uint8 indexed parameter, uint256 before, uint256 value);
    /// @notice A parameter can take this value from `effective` on.
    event ParameterProposed(uint8 indexed parameter, uint256 value, uint64 effective);
    /// @notice New tasks and joins were stopped, or are allowed again.
    event PausedChanged(bool on);
    /// @notice Ownership was offered to an account, or to nobody.
    event OwnershipTransferStarted(address indexed previousOwner, address indexed newOwner);
    /// @notice The new owner has accepted.
    event OwnershipTransferred(address indexed previousOwner, address indexed newOwner);
    /// @notice Another treasury can take effect from `effective` on; with the zero address the proposal was withdrawn.
    event TreasuryProposed(address indexed treasury, uint64 effective);
    /// @notice Protocol income goes to another account.
    event TreasuryChanged(address indexed before, address indexed treasury);
    /// @notice Protocol income was paid out.
    event TreasurySwept(address indexed treasury, uint128 amount);
    /// @notice A change of programs can take effect from `effective` on.
    /// @param effective 0 where the proposal was withdrawn.
    event ProgramsProposed(address indexed program, bytes4[] selectors, uint64 effective);
    /// @notice Programs can never be changed again.
    event UpgradesRenouncedForGood();
    /// @notice ERC-2535: other programs answer some selectors. `init` and `initCalldata` are always empty: nothing is run.
    event DiamondCut(FacetCut[] cuts, address init, bytes initCalldata);

    // ------------------------------------------------------------------ errors

    /// @notice No program answers this selector.
    error UnknownFunction(bytes4 selector);
    /// @notice The calldata does not match the function's types.
    error MalformedCalldata(bytes4 selector);
    /// @notice The program stopped without a reason: a trap, too little gas, or a call back while Muster pays the caller.
    error ProgramFailed(bytes4 selector, address program);
    /// @notice This function takes no value.
    error ValueNotAccepted(uint256 value);
    /// @notice The call may do work that others left due, and demands gas for it at its start. Add the difference of `needed` and `left`.
    /// Gas estimates include it already, and unused gas is not paid for.
    error GasTooLow(uint64 left, uint64 needed);
    /// @notice The contract is not initialised, or this is a program's own address.
    error NotInitialised();
    /// @notice The contract is initialised already.
    error AlreadyInitialised();
    /// @notice The owner has stopped new tasks and joins.
    error PausedByOwner();
    /// @notice Only the owner may call this. Before initialisation, only the account that the router was created for may.
    error NotOwner(address caller);
    /// @notice Only the pending owner can accept ownership.
    error NotPendingOwner(address caller);
    /// @notice The zero address was given where an account is needed.
    error ZeroAddress();
    /// @notice There is no parameter of this number.
    error ParameterUnknown(uint8 parameter);
    /// @notice The value is not between `least` and `most`.
    error ParameterOutOfBounds(uint8 parameter, uint256 value, uint256 least, uint256 most);
    /// @notice The parameter affects stakes, so a change must be proposed first.
    error ParameterDelayed(uint8 parameter);
    /// @notice The parameter can be set at once and need not be proposed.
    error ParameterNotDelayed(uint8 parameter);
    /// @notice The parameters drawDelay and sampleDelay can be lowered only while no draw waits, of a Pending task or of validators. `pending` counts
    /// both. Stop new tasks and dispatch the waiting ones first.
    error TasksPending(uint32 pending);
    /// @notice Nothing of the kind is proposed.
    error NotProposed();
    /// @notice The proposal can take effect only at `effective`.
    error TooEarly(uint64 effective);
    /// @notice Programs can never be changed again.
    error UpgradesRenounced();
    /// @notice There is no code at the address.
    error NoCode(address program);
    /// @notice The account has nothing to withdraw now.
    error NothingToWithdraw(address account);
    /// @notice The receiver did not accept the payment, and it stays owed.
    error TransferFailed(address to, uint256 amount);
    /// @notice A value is out of its bounds. The stake unit is at least 1,000 wei. The minimum stake is 1 to 2^30 - 1 whole stake units, and 2^18
    /// times it is below 2^88 wei. The upgrade delay is 2 to 180 days.
    error BadInitialisation();

    /// @notice No node has this number.
    error NodeUnknown(uint32 node);
    /// @notice The caller has no node.
    error NotAnOperator(address caller);
    /// @notice Only the operator of the node may do this, and the caller is its worker.
    error NotTheOperator(uint32 node, address caller);
    /// @notice The operator of this node did not name the caller as its worker.
    error NotNamed(uint32 node, address caller);
    /// @notice The account is the operator of this node, or its worker.
    error HasNode(address account, uint32 node);
    /// @notice The list of URIs has more bytes than `most`.
    error StoresTooLong(uint256 length, uint256 most);
    /// @notice The byte at this position is neither printable ASCII nor a single space between two URIs.
    error BadStores(uint256 position);
    /// @notice The node's status does not allow this. NodeView lists the statuses.
    error WrongStatus(uint32 node, uint8 status);
    /// @notice The operator's node was kicked out, so the address can never join again.
    error KickedOut(address operator);
    /// @notice The value sent is below the least stake, or below one stake unit where stake is added.
    error StakeTooLow(uint256 sent, uint256 least);
    /// @notice The stake would exceed the most that a node can have, or the most that can wait to be returned to its account.
    error StakeTooHigh(uint256 stake, uint256 most);
    /// @notice The value sent is not a whole number of stake units.
    error StakeNotWhole(uint256 sent, uint256 stakeUnit);
    /// @notice The name is empty, longer than `most` bytes, or not printable ASCII.
    error BadGpuName(uint256 length, uint256 most);
    /// @notice The VRAM is 0 where a node declares it, or above `most`.
    error BadVram(uint16 vram, uint16 most);
    /// @notice The number of GPU models with this VRAM is at its limit.
    error TooManyGpuModels(uint16 vram);
    /// @notice The number of joined nodes is at its limit.
    error NetworkFull(uint32 joined);
    /// @notice More models than a task, a call or a node can have.
    error TooManyModels(uint256 given, uint256 most);
    /// @notice Model ids are 1 to 2^40 - 1.
    error BadModel(uint64 model);
    /// @notice The model has its name already.
    error ModelHasName(uint64 model);
    /// @notice The name is empty, longer than `most` bytes, or not printable ASCII.
    error BadModelName(uint256 length, uint256 most);
    /// @notice The list names the model twice.
    error DuplicateModel(uint64 model);
    /// @notice The node holds the model already.
    error ModelHeld(uint64 model);
    /// @notice The node does not hold the model.
    error ModelNotHeld(uint64 model);
    /// @notice There is no entry at this position, or it is not stale.
    error HolderNotStale(uint64 model, uint32 position);
    /// @notice The node is excluded and its exclusion is not over, or it is idle and no waiting task suits it.
    error NothingToPoke(uint32 node);

    /// @notice No node is joined, so the queue has no capacity.
    error NoNodes();
    /// @notice There is no task kind of this number.
    error BadKind(uint8 kind);
    /// @notice The units are 0 or more than `most`.
    error BadUnits(uint32 units, uint256 most);
    /// @notice A number of the profile is out of its bounds.
    error BadProfile();
    /// @notice No node ever joined with this GPU group.
    error GpuUnknown(uint32 group);
    /// @notice No node ever joined with a GPU of this name and VRAM size.
    error GpuNameUnknown(string name, uint16 vram);
    /// @notice The VRAM or the GPU group that the task requires is that of no joined node, or of fewer than the task takes.
    error NobodyCanRun(uint16 vram, uint32 gpu);
    /// @notice There is no redundancy policy of this number yet.
    error RedundancyUnsupported(uint8 policy);
    /// @notice Some of the flags are not defined yet.
    error FlagsUnsupported(uint32 flags);
    /// @notice The value sent is less than the least fee.
    error FeeTooLow(uint256 sent, uint256 least);
    /// @notice The value sent is more than the highest fee.
    error FeeTooHigh(uint256 sent, uint256 most);
    /// @notice A batch needs a fee for each task, each below 2^87 wei, and their sum as the value sent.
    error BadBatch(uint256 tasks, uint256 fees, uint256 sent);
    /// @notice One task of a batch was refused, and the batch must be created whole. `reason` is that task's own error.
    error RefusedInBatch(uint256 place, bytes reason);
    /// @notice The number of tasks waiting for their draw is at its limit.
    error TooManyPending(uint32 pending);
    /// @notice This call could change draws that are due. Call `dispatch` first.
    error DrawsDue(uint32 pending);
    /// @notice The task is not queued under this ticket.
    error TaskNotQueued(uint64 id, uint64 ticket);
    /// @notice The task may stay queued until `until`.
    error QueueTimeNotOver(uint64 id, uint64 until);
    /// @notice Only the task's creator may call this.
    error NotTheCreator(uint64 id, address caller);
    /// @notice The task can be validated: its node commits to the answer first.
    error CommitFirst(uint64 id);
    /// @notice The node has committed already, or the task cannot be validated.
    error NothingToCommit(uint64 id, uint32 node);
    /// @notice The node has committed to nothing that is open.
    error NotCommitted(uint64 id, uint32 node);
    /// @notice The block whose hash decides has not come, or is too long ago.
    error HashUnknown(uint64 id, uint64 block);
    /// @notice The task was sampled, so it must be validated.
    error Sampled(uint64 id);
    /// @notice The task was not sampled.
    error NotSampled(uint64 id);
    /// @notice The number of sampled tasks waiting for validators is at its limit.
    error TooManyValidatorDraws(uint32 waiting);
    /// @notice No group of this task is at this place.
    error GroupUnknown(uint64 id, uint32 group);
    /// @notice The node is no member of the group.
    error NotAMember(uint64 id, uint32 node);
    /// @notice A member has neither committed nor timed out.
    error NotOpen(uint64 id, uint32 group);
    /// @notice Some members have not revealed, and they have time until `closes`.
    error RevealsOpen(uint64 id, uint64 closes);
    /// @notice The revealed answer does not match the node's commitment.
    error NotWhatWasCommitted(uint64 id, uint32 node);
    /// @notice An answer is of kind 0, an error of kind 1 with a code below 256.
    error BadAnswerKind(uint8 kind, bytes32 value);
    /// @notice The answer must be exactly one perceptual hash for each image.
    error BadImages(uint64 id, uint8 images);
    /// @notice The task's answers must be equal, so it must require a GPU group that the owner has listed.
    error GpuNotListed(uint32 group);
    /// @notice Stake stays locked while the node has open commitments.
    error StakeLocked(uint32 node, uint8 open);
    /// @notice The node does not run this task.
    error TaskNotRunning(uint64 id, uint32 node);
    /// @notice The task's deadline has passed.
    error DeadlinePassed(uint64 id, uint64 deadline);
    /// @notice The task can be answered until its deadline.
    error DeadlineNotPassed(uint64 id, uint64 deadline);
    /// @notice A page is at most `most` long.
    error PageTooLong(uint32 count, uint32 most);
    /// @notice The list is longer than one call takes.
    error TooManyAtOnce(uint256 given, uint256 most);
}
