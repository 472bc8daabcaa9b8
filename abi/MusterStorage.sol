// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// @title Muster's storage, as Solidity declares it
/// @notice Every slot of the one public address lies where the Solidity compiler would put these variables. Nothing
/// here is deployed: explorers and tools decode `eth_getStorageAt` with it. Stakes are in stake units, fees and credits
/// in wei, times in seconds since 1970.
contract MusterStorage {
    /// Counters that nearly every transaction reads and most write.
    struct Head {
        /// Tasks created so far; the last task's id.
        uint40 tasks;
        /// First Pending task in the ring.
        uint16 pendingHead;
        /// Where the next Pending task goes; equal to the head while none is Pending.
        uint16 pendingTail;
        /// Node numbers given out. They start at 1 and stay with their operator for good.
        uint24 issued;
        /// Nodes joined now.
        uint24 joined;
        /// Tasks queued now.
        uint24 queued;
        /// Earliest time at which an excluded node can return; 0 when none is parked.
        uint32 parkedDue;
        /// Largest stake of all joined nodes, in stake units.
        uint48 maxStake;
        /// The first draw of validators that waits.
        uint8 validatorDrawsHead;
        /// Where the next draw of validators goes; equal to the first while none waits.
        uint8 validatorDrawsTail;
        /// Largest VRAM of all joined nodes, in GiB; 0 when there are none.
        uint16 maxVram;
    }

    /// Values that dispatching needs and few calls change: parameters (docs/parameters.md explains each, with its unit), the best score
    /// there ever was, and the lowest stake class.
    struct Rules {
        /// Base of the stake classes, in stake units: the minimum stake at initialisation. Never changes.
        uint32 base;
        uint32 alphaMilli;
        uint16 startFeeBps;
        uint8 drawDelay;
        uint8 boostPool;
        uint8 scarce;
        uint8 spread;
        uint24 penaltyPpm;
        uint24 boostPpm;
        uint24 exclusionPpm;
        uint24 tau;
        uint24 unbonding;
        /// Not a parameter: an upper bound of every node's Q_long / Q_max so far, in 200ths. Values below 100 mean 100, as without scores.
        uint8 best;
        /// Not a parameter: the lowest stake class that has an active node.
        uint8 lowest;
        /// Not a parameter: the highest value that openMost ever had.
        uint8 openMostEver;
    }

    /// Parameters that creating tasks and joining need; docs/parameters.md explains each, with its unit.
    struct Terms {
        uint16 sdOverhead;
        uint16 sdUnit;
        uint16 gptOverhead;
        uint16 gptUnit;
        uint24 fineTuneMax;
        uint16 limitMin;
        uint16 limitMax;
        uint16 grace;
        uint48 minStake;
        uint64 minPrice;
        /// Whether new tasks and joins are stopped.
        bool paused;
    }

    /// Parameters that only rare calls need; docs/parameters.md explains each, with its unit.
    struct Limits {
        uint16 kickoutMilli;
        uint32 queueTime;
        uint48 groupFee;
        uint16 sampleWindow;
        uint16 revealWindow;
        uint16 downloadTime;
        uint16 sampleBps;
        uint8 slashTimes;
        uint8 sampleDelay;
        uint8 openMost;
        uint8 scorePool;
        uint8 hammingMost;
        uint8 slashImages;
        uint8 holdTime;
        /// Not a parameter: the lowest value that minStake ever had, in stake units, and at most its value at initialisation.
        uint32 leastStakeEver;
    }

    /// An account: Muster's debt to it, and its node.
    struct Account {
        /// Credit that `withdraw` pays out now, in wei.
        uint128 credit;
        /// Returned stake waiting for `release`, in stake units.
        uint48 unbonding;
        /// When `unbonding` can be withdrawn.
        uint40 release;
        /// Number of the node that the account joined, or works for; 0 for none.
        uint24 node;
        /// Whether the account's node was kicked out; it can never join again.
        bool kicked;
        /// Whether it only works for the node: another account is the operator.
        bool works;
    }

    /// The part of a node that a draw reads.
    struct Node {
        /// 0 Quit, 1 Available, 2 Busy, 3 PendingPause, 4 PendingQuit, 5 Paused, 6 PendingKickout.
        uint8 status;
        /// Stake in stake units; 0 when quit.
        uint48 stake;
        /// Reliability factor at `hAt`, a wad: 10^18 is 1.
        uint64 h;
        /// When `h` held.
        uint32 hAt;
        /// Sum of the score pool.
        uint16 scoreSum;
        /// Scores in the pool.
        uint8 scoreCount;
        /// Idle: its place in the list of its group and class. Waiting apart: its place in the pool of such nodes. Running a task: 1 if it
        /// is known to hold all of the task's models, else 0.
        uint24 pos;
        /// Its GPU group.
        uint32 group;
        /// Entries in its model list, removed ones included.
        uint8 models;
        /// Why it waits apart: 1 excluded or held back by due draws, 2 waits for others, for a queue's first task, 3 reserved for a Pending
        /// task; 0 if it does not. With 1 and 2 it is in the pool of nodes that wait apart.
        uint8 parked;
        /// Its open commitments, plus 0x20 while it has joined and is not among the active nodes, 0x40 while open commitments keep it from
        /// work, 0x80 while a validation group waits for it to begin.
        uint8 duties;
    }

    /// The operator of a node.
    struct Operator {
        /// The account that joined the node.
        address account;
        /// When the node last joined.
        uint40 joinedAt;
        /// The node's place among the active nodes of its group and class.
        uint24 place;
    }

    /// A node's last 50 task scores, four bits each, the place of the oldest, and the two counts of its rating.
    struct Scores {
        /// Scores 0..15, four bits each.
        uint64 low;
        /// Scores 16..31.
        uint64 mid;
        /// Scores 32..47.
        uint64 high;
        /// Scores 48 and 49.
        uint8 last;
        /// Where the next score goes.
        uint8 next;
        /// Judgements in the rating that found the node right.
        uint8 right;
        /// All judgements in the rating: below 64, at which both counts are halved.
        uint8 judged;
    }

    /// The creator of a task, and the fee.
    struct Escrow {
        /// The application.
        address creator;
        /// The escrowed fee, in wei, less any start fee that was spent.
        uint88 fee;
        /// The parameter slashTimes at the task's creation; 0 for a task that slashes nobody.
        uint8 slashTimes;
    }

    /// A Pending, queued or running task: the terms frozen at its creation.
    struct Order {
        /// Task id, from 1.
        uint40 id;
        /// Estimated time in seconds.
        uint24 estimate;
        /// Seconds from start to deadline, grace included.
        uint24 limit;
        /// Start fee in ten-thousandths of the fee.
        uint16 startFeeBps;
        /// The GPUs that it may go to, and the queue that it waits in: a GPU group, or a VRAM size for any GPU with at least as much. On
        /// the node of a validation group's member: the group's place.
        uint32 group;
        /// 0 Stable Diffusion, 1 GPT, 2 fine-tuning; plus 16 times the number of images of a Stable Diffusion task that can be validated.
        uint8 kind;
        /// Number of required models.
        uint8 models;
        /// The first required model; 0 if there is none.
        uint40 model;
        /// Pending: the L2 block whose hash decides the draw. Queued: since when. Running: the deadline.
        uint40 moment;
        /// Bit 0, running: its draw had enough candidates for its success to raise H. Bit 1: it has a receipt. Bit 2: its answer is
        /// committed to and may be sampled. Running: bit 3, it is committed to; bit 4, it was sampled and its validators are being drawn;
        /// bit 5, a validation group runs it. In a group: bit 3, its members can be slashed; bit 6, it is scored. Bit 7: it takes several
        /// nodes at once.
        uint8 flags;
        /// Sampled: the probability of validation, in ten-thousandths. Rated: the most nodes that its fee is for, plus 16 for each group
        /// that ended without a majority, and 256 for each draw that stayed undecided.
        uint16 sampleBps;
    }

    /// The outcome of a task with a receipt.
    struct Receipt {
        /// As in IMuster.Outcome: 0 no receipt, 1 not ended, 2 succeeded, 3 error reported; timed out, cancelled, evicted, queued
        /// for too long, node slashed and validated without two equal answers are 4 to 9.
        uint8 state;
        /// The node that ran it; 0 if it never started or has not ended.
        uint24 node;
        /// When it ended; 0 before.
        uint40 ended;
        /// The code of a reported error.
        uint8 code;
        /// The refund to its creator, in wei.
        uint96 refund;
    }

    /// Six model ids (40 bits each, 0 for none) and a flag for each. Among a node's models a flag means "removed": the node is still in the
    /// model's holder array, but no longer has the model.
    struct Models {
        /// First model.
        uint40 m0;
        /// Second model.
        uint40 m1;
        /// Third model.
        uint40 m2;
        /// Fourth model.
        uint40 m3;
        /// Fifth model.
        uint40 m4;
        /// Sixth model.
        uint40 m5;
        /// A node's models: bit i is the flag of model i. A task's: the number of models in both its words, 0 in the second.
        uint8 flags;
        /// Always 1 once written, so that the word never falls back to zero.
        uint8 used;
    }

    /// Idle (or active) nodes of a GPU group by stake class. The same layout counts the GPU groups with active nodes of each class.
    struct Classes {
        /// Nodes in class 0.
        uint24 c0;
        /// Nodes in class 1.
        uint24 c1;
        /// Nodes in class 2.
        uint24 c2;
        /// Nodes in class 3.
        uint24 c3;
        /// Nodes in class 4.
        uint24 c4;
        /// Nodes in class 5.
        uint24 c5;
        /// Nodes in class 6.
        uint24 c6;
        /// Nodes in class 7.
        uint24 c7;
        /// Nodes in class 8.
        uint24 c8;
        /// Nodes in class 9.
        uint24 c9;
        /// 1 once written, so that the word never falls back to zero. Of idle nodes, 2 more once all have left the group, and 256 times
        /// the bound that stands for them in `branches`; of active nodes, 1 + the joined ones that are not among them.
        uint16 used;
    }

    /// Eight nodes of a list, and which of them are known to hold one model. That model was looked for among them before, or was used by a
    /// node's last task. Only idle nodes are marked; a node that reports the model removed loses its mark.
    struct Listed {
        /// The first node.
        uint24 n0;
        /// The second.
        uint24 n1;
        /// The third.
        uint24 n2;
        /// The fourth.
        uint24 n3;
        /// The fifth.
        uint24 n4;
        /// The sixth.
        uint24 n5;
        /// The seventh.
        uint24 n6;
        /// The eighth.
        uint24 n7;
        /// The model; 0 if there is none yet.
        uint40 model;
        /// Bit i: node i is known to hold it.
        uint8 held;
    }

    /// A priority pool: the queue of one group, or the excluded nodes. A queued task's key is its value (38 bits) and the complement of its
    /// id (26 bits). Let v be the fee's part for one node times 2^31, divided by the estimate and rounded down. The value is v's length in
    /// bits (7 bits), then the 31 bits after v's first, zeros where v has fewer. An excluded node's key is the complement of the time of its
    /// return (32 bits) and its number (32 bits).
    struct Pool {
        /// Greatest key; 0 when empty.
        uint64 best;
        /// Least key; 0 when empty.
        uint64 worst;
        /// Number of entries.
        uint24 live;
        /// Most places in use at once since the pool was last empty.
        uint24 slots;
        /// 1 + the free place that is used next; 0 if none of those below `slots` is free.
        uint24 free;
        /// 1 + the pool's place among all queue groups; 0 for a pool never used.
        uint24 index;
        /// Always 1 once written, so that the word never falls back to zero.
        uint8 used;
    }

    /// The task queue as a whole.
    struct Queue {
        /// Queue groups ever used.
        uint24 groups;
        /// `!key` of the worst queued task of all groups, 0 or 1 if there is none.
        uint64 worst;
        /// Queued tasks that take several nodes.
        uint24 graded;
        /// Of these, the tasks of policy 3.
        uint24 rated;
        /// Levels beyond three of each grade's tree over VRAM sizes: two bits for a grade, grade 0 lowest. A tree grows when tasks ask for
        /// 4^3 GiB or more.
        uint8 grown;
    }

    /// The GPU models of one VRAM size.
    struct Size {
        /// GPU models that ever joined with this size.
        uint32 models;
        /// Of these, the models with a joined node now.
        uint32 manned;
        /// Of these, the listed models with three joined nodes now.
        uint32 trios;
    }

    /// A node's commitment to its answer, for a task that may be sampled for validation.
    struct Commitment {
        /// The commitment's bytes 8 to 23, as a number.
        uint128 hashLow;
        /// The commitment's bytes 0 to 7, as a number.
        uint64 hashHigh;
        /// Seconds from the task's start to the commitment.
        uint24 elapsed;
        /// The L2 block whose hash decides whether the task is sampled.
        uint40 block;
    }

    /// The work that a node is called, waiting or reserved for.
    struct Assignment {
        /// Place of the validation group that called the node while it was busy. The node begins there when its task ends.
        uint32 group;
        /// While the node waits for others: the queue whose first task it waits for.
        uint32 queue;
        /// When that wait ends.
        uint32 until;
        /// While the node is reserved: the Pending task that it is reserved for.
        uint40 task;
        /// When the node was last reserved for a task that did not begin then, since its last group; 0 if that never happened.
        uint32 vain;
    }

    /// Nodes that wait for the first task of a queue, or are reserved for a Pending task. Some may have left since: the nodes' own records
    /// decide.
    struct Reserved {
        /// The first; 0 for none.
        uint24 n0;
        /// The second; 0 for none, as below.
        uint24 n1;
        /// The third.
        uint24 n2;
        /// Always 1 once written, so that the word never falls back to zero.
        uint8 used;
        /// The fourth.
        uint24 n3;
        /// The fifth.
        uint24 n4;
        /// The sixth.
        uint24 n5;
        /// The seventh.
        uint24 n6;
        /// The eighth.
        uint24 n7;
        /// The ninth.
        uint24 n8;
    }

    /// An application's profile: how the groups of its tasks of policy 3 are chosen, as in IMuster.Profile.
    struct Profile {
        /// The algorithm.
        uint8 algorithm;
        /// Least members of a group; 0 if the application has set nothing.
        uint8 least;
        /// Most members of a group.
        uint8 most;
        /// Most further groups that a task is given to after groups without a majority.
        uint8 reschedules;
        /// Where the target comes from.
        uint8 targeting;
        /// The target likelihood of correctness now, a wad.
        uint64 target;
        /// Weight of throughput in the gain, a wad.
        uint64 alpha;
        /// Settled groups after which the target is set anew.
        uint32 period;
    }

    /// The results of an application's groups since its target was last set, and the state of an adaptive target's search.
    struct TargetSearch {
        /// Climbing: the gain to exceed. At rest: the smoothed gain. A wad.
        uint64 gain;
        /// The best target so far, a wad.
        uint64 at;
        /// 0 before the first period, 1 climbing, 2 at rest.
        uint8 phase;
        /// Periods without a rise.
        uint16 stationary;
        /// Adaptive: targets tried around the best one since it became the best. Predictive: how often the target was set, up to 255.
        uint8 tried;
        /// Whether it climbs upwards.
        bool upwards;
        /// Groups that reached a majority.
        uint24 successes;
        /// Groups settled.
        uint24 groups;
        /// Members of the settled groups.
        uint32 members;
    }

    /// A draw of validators that waits.
    struct ValidatorDraw {
        /// The node whose task was sampled.
        uint24 node;
        /// Draws made so far that stayed undecided.
        uint8 tries;
    }

    /// A validation group's members, or three of a group chosen by ratings.
    struct Members {
        /// First member; in a sampled task's group the node that ran the task.
        uint24 n0;
        /// Second member.
        uint24 n1;
        /// Third member.
        uint24 n2;
        /// The first member's deadline while it runs, then the time of its commitment. In a free place: the next free one.
        uint32 t0;
        /// The second's.
        uint32 t1;
        /// The third's.
        uint32 t2;
        /// Seconds from the first's start to its commitment.
        uint24 e0;
        /// The second's.
        uint24 e1;
        /// The third's.
        uint24 e2;
        /// Stages as in IMuster.MemberView, four bits each, the first member's lowest. The upper four bits count the group's words of
        /// members: 0 if there is no group, 15 in a place that is free again.
        uint16 states;
    }

    /// The places of validation groups.
    struct Places {
        /// Number of places; they are numbered from 1.
        uint32 issued;
        /// The free place that is used next; it names the one after it. 0 for none.
        uint32 free;
        /// Places in use.
        uint32 live;
    }

    /// The owner, and the settings fixed at initialisation.
    struct Ownership {
        /// Before initialisation the deployer, the only account that may install. Then the account that may set parameters and propose
        /// programs.
        address owner;
        /// Wei in a stake unit; not 0 once initialised.
        uint64 stakeUnit;
        /// Seconds between a proposal and its effect, for programs and for parameters that affect stakes.
        uint24 upgradeDelay;
        /// Whether changes of programs have ended for good.
        bool renounced;
    }

    /// A proposed owner, or a proposed treasury and when it can take effect.
    struct Proposal {
        /// The proposed account; 0 for none.
        address account;
        /// Earliest time it can take effect.
        uint40 at;
    }

    /// A proposed value of a parameter.
    struct NextParameter {
        /// The proposed value, in the parameter's unit.
        uint64 value;
        /// Earliest time it can take effect; 0 where nothing is proposed.
        uint40 at;
    }

    /// A node: 16 words.
    struct NodeRecord {
        Node node;
        Operator operator;
        /// Of the running (or last) task. Before the first task this has no meaning.
        Escrow escrow;
        /// Of the running (or last) task. Before the first task its id is 0, and the rest has no meaning.
        Order order;
        /// The last started task's, written only where it requires more than one model; a single one stands in `order`.
        Models[2] inUse;
        Scores scores;
        /// The models that the node holds, six to a word.
        Models[6] models;
        /// To the answer of the running (or an earlier) task.
        Commitment commitment;
        Assignment assignment;
        /// The worker that its operator named; zero for none.
        address worker;
    }

    /// A sampled task whose validators wait to be drawn: 2 words. The task is beside its node.
    struct ValidatorDrawRecord {
        ValidatorDraw draw;
        /// As on the node, but `moment` is the block whose hash draws.
        Order order;
    }

    /// A group that runs one task: 8 words, and 8 more if it was chosen by ratings and has more than three members.
    struct GroupRecord {
        /// The fee is the task's; the group is paid from it.
        Escrow escrow;
        Order order;
        /// Written only where the task requires more than one model; a single one stands in `order`.
        Models[2] models;
        Members members;
        /// A member's: the first 24 bytes of its commitment, then what it revealed.
        bytes32[3] answers;
        /// The fourth to the ninth member.
        Members[2] moreMembers;
        /// Theirs.
        bytes32[6] moreAnswers;
    }

    /// An application's profile: 2 words.
    struct ProfileRecord {
        Profile profile;
        TargetSearch targetSearch;
    }

    /// A Pending task: 6 words.
    struct PendingRecord {
        TaskRecord task;
        /// Nodes that wait for the task; written only for one that takes several nodes and comes from the queue.
        Reserved reserved;
        /// The chosen nodes; written only for a task of policy 3 whose nodes are chosen by one draw and whose group is formed by another.
        Reserved chosen;
    }

    /// A Pending or queued task: 4 words.
    struct TaskRecord {
        Escrow escrow;
        Order order;
        /// Written only where it requires more than one model; a single one stands in `order`.
        Models[2] models;
    }

    /// A receipt: 2 words, both written when the task is created.
    struct ReceiptRecord {
        Receipt receipt;
        /// Digest of the result; 1 until the task succeeds.
        bytes32 resultDigest;
    }

    Head internal head;
    Rules internal rules;
    Terms internal terms;
    /// The account that protocol income goes to.
    address internal treasury;
    Ownership internal ownership;
    /// The proposed owner.
    Proposal internal nextOwner;
    /// The proposed treasury.
    Proposal internal nextTreasury;
    Queue internal queue;
    /// GPU groups with active nodes, by those nodes' stake class.
    Classes internal groupsByClass;
    /// Which program answers a selector. Key: the selector.
    mapping(bytes4 => address) internal programs;
    /// The selectors answered.
    bytes4[] internal selectors;
    /// 1 + a selector's place in `selectors`. Key: the selector.
    mapping(bytes4 => uint256) internal selectorPlaces;
    /// Accounts: credit, stake on its way out, node. Key: the account.
    mapping(address => Account) internal accounts;
    /// Nodes and their tasks. Key: the node's number, from 1.
    mapping(uint256 => NodeRecord) internal nodes;
    /// The sampler's tree of idle nodes, and with 2^58 added to the key that of active ones: those that have joined, paused ones
    /// only until a draw of validators meets them. Bytes 0 to 30 of a word, from the right, bound what is below: the sum of 2^class
    /// of the nodes. With m its lower three bits and e the others, a byte stands for m where e is 0, else for (8 + m) 2^(e - 1). Byte 31 is
    /// not 0 once written; in a VRAM size's word it is 1 + the levels of words below. Key:
    /// `1 << 57` for the root; `1 << 56 | i` for the sizes from 31 i on; `vram << 32 | 0xff << 24` for a VRAM size;
    /// `vram << 32 | level << 24 | i` for the words below it.
    mapping(uint256 => bytes32) internal branches;
    /// Idle nodes of a GPU group by stake class. Key: the group, `model << 16 | vram`, models numbered from 1; active ones: 2^32 more.
    mapping(uint256 => Classes) internal classes;
    /// Idle nodes of a GPU group, eight to a word. Key: `group << 32 | class << 24 | place / 8`; active ones: 2^23 more.
    mapping(uint256 => Listed) internal members;
    /// A GPU model's number among those of its VRAM size, from 1. Key: `keccak256(name . uint16 vram)`.
    mapping(bytes32 => uint256) internal gpuNumbers;
    /// The name of a GPU group. Key: the group.
    mapping(uint256 => string) internal gpuNames;
    /// GPU models per VRAM size. Key: the VRAM in GiB.
    mapping(uint256 => Size) internal gpuCounts;
    /// Holders of a model, removed ones included until they are purged. In word 0, element 0 is their number and the
    /// others are the last one to seven of them; word 1 holds the first seven, word 2 the next, and so on. Key:
    /// `model << 24 | word`.
    mapping(uint256 => uint32[8]) internal holders;
    /// The ring of Pending tasks; `head` says from where to where. Key: the place, 0 to 4,095.
    mapping(uint256 => PendingRecord) internal pending;
    /// Queued tasks. Key: the ticket, `queue << 32 | place`. A queue's number is the GPU group required, or the VRAM where any GPU with at
    /// least as much suffices, plus 4096 times the grade. Grades: 0 tasks for one node, 1 for three with images, 2 for three that answer
    /// alike, 3 for several chosen by their ratings.
    mapping(uint256 => TaskRecord) internal entries;
    /// Queues, and the pool of nodes that wait apart. Key: the queue's number, or 2^32 - 1.
    mapping(uint256 => Pool) internal pools;
    /// Words of all tournament trees: at level 0 the keys, above it the greatest key of each word below. A value below 2^32 in a pool's is
    /// no key: 1 for none, else 1 + the free place that is used after this free one, counted from one. A pool of one place
    /// (`slots`) has its key in its own record alone. Key: `tree << 29 | level << 24 | place >> (2 level + 2)`. Trees of a pool: its number
    /// for its keys, `2^32 + number` for the complements (from level 1 up). Trees of the network: `(2 << 32) + grade` for the best key by
    /// VRAM, `3 << 32` for the complement of the worst by queue, `4 << 32` for stake + 1 by node number - 1.
    mapping(uint256 => uint64[4]) internal tournamentTrees;
    /// How applications' groups are chosen by ratings. Key: the application.
    mapping(address => ProfileRecord) internal profiles;
    /// Queues in order of first use. Key: `i / 8`.
    mapping(uint256 => uint32[8]) internal queueGroups;
    Limits internal limits;
    /// Protocol income not yet taken, in wei.
    uint256 internal income;
    /// The ring of sampled tasks whose validators wait to be drawn; `head` says from where to where. Key: the place, 0 to 255.
    mapping(uint256 => ValidatorDrawRecord) internal validatorDraws;
    /// VRAM sizes with a joined node: bit `vram % 256` of the word `vram / 256`. Key: the word.
    mapping(uint256 => uint256) internal sizesJoined;
    /// When a proposed change of programs can take effect. Key: `keccak256(abi.encodePacked(program, selectors))`.
    mapping(bytes32 => uint256) internal nextPrograms;
    /// Proposed values of parameters that reach into stakes. Key: the parameter's number.
    mapping(uint256 => NextParameter) internal nextParameters;
    /// Receipts of tasks that asked for one. Key: the task's id.
    mapping(uint256 => ReceiptRecord) internal receipts;
    /// 1 for a model whose name was logged. Key: the model's id.
    mapping(uint256 => uint256) internal modelNamed;
    /// 1 for a GPU group whose tasks can be validated. Key: the group.
    mapping(uint256 => uint256) internal gpuListed;
    /// Validation groups. Key: the place, from 1.
    mapping(uint256 => GroupRecord) internal groups;
    Places internal groupPlaces;
    /// The reserve that pays for validations beside the fees, in wei; one wei stays for good.
    uint256 internal reserve;
    /// The sum of all slashes, in wei.
    uint256 internal burnt;
    /// Nodes that wait for the first task of a queue of tasks for several nodes. Key: `group << 32 | queue`. The group is the one that the
    /// queue's tasks require, or the nodes' own for tasks that need one group and name none.
    mapping(uint256 => Reserved) internal waiting;
    /// VRAM sizes with a listed GPU group of three joined nodes: bit `vram % 256` of the word `vram / 256`. Key: the word.
    mapping(uint256 => uint256) internal sizesOfTrios;
    /// The URIs at which an account's bytes can be read, with a space between two. Key: the account; a node's is its operator's.
    mapping(address => string) internal stores;
}
