/**
 * The tables. One database column is the snake_case of its name here: `task.createdAt` is `task.created_at`.
 *
 * Amounts are wei, times seconds since 1970, fixed-point numbers wads (1e18), all of them `bigint`, in SQL NUMERIC(78, 0), so that nothing is ever
 * rounded. Numbers of statuses, kinds and verdicts are the interface's own (abi/IMuster.sol). Numbers of nodes, GPU groups and queues are NUMERIC too,
 * and plain numbers in GraphQL and TypeScript.
 *
 * `event` rows are named by their place on the chain, `block * 1,000,000 + log index`; an event's effects name that event.
 * Names are stable: later additions are new columns or tables.
 */
import { sql } from "drizzle-orm";
import { index, onchainTable, primaryKey } from "ponder";

// Numbers of nodes, parameters, groups and queues: exact up to 2^53, and never too large for the column. Ponder guesses from an event's values which rows
// it will be asked for, and a guess may be any of them.
const NUMBER = { mode: "number" } as const;

type Columns = Parameters<Extract<Parameters<typeof onchainTable>[1], (types: never) => unknown>>[0];

/** The network as a whole: one row, "muster". */
export const network = onchainTable("network", (t) => ({
  id: t.text().primaryKey(),
  owner: t.hex().notNull(),
  /** The account that ownership was offered to; the zero address for none. */
  nextOwner: t.hex().notNull(),
  treasury: t.hex().notNull(),
  nextTreasury: t.hex().notNull(),
  nextTreasuryAt: t.bigint().notNull(),
  /** Protocol income not swept yet. */
  treasuryBalance: t.bigint().notNull(),
  reserve: t.bigint().notNull(),
  burnt: t.bigint().notNull(),
  /** Of joined nodes. */
  stakes: t.bigint().notNull(),
  /** Fees of tasks that have not ended. */
  escrow: t.bigint().notNull(),
  /** Owed to accounts, and stake that is on its way back to them. */
  credit: t.bigint().notNull(),
  unbonding: t.bigint().notNull(),
  /** Ever paid out, to accounts and to the treasury. */
  paidOut: t.bigint().notNull(),
  stakeUnit: t.bigint().notNull(),
  minimumStake: t.bigint().notNull(),
  upgradeDelay: t.bigint().notNull(),
  upgradesRenounced: t.boolean().notNull(),
  paused: t.boolean().notNull(),
  /** Tasks ever created, and of them those that wait for their draw, are queued, run (committed ones and groups included), ended. */
  tasks: t.bigint().notNull(),
  pending: t.integer().notNull(),
  queued: t.integer().notNull(),
  running: t.integer().notNull(),
  ended: t.bigint().notNull(),
  nodesIssued: t.integer().notNull(),
  nodesJoined: t.integer().notNull(),
  /** Validation groups not settled, and places there are for them. */
  groups: t.integer().notNull(),
  groupPlaces: t.bigint().notNull(),
  /** The node that the event before slashed; null for none. */
  slashing: t.integer(),
  /** Ever read. */
  events: t.bigint().notNull(),
  transactions: t.bigint().notNull(),
  /** The newest event. */
  block: t.bigint().notNull(),
  blockHash: t.hex(),
  at: t.bigint().notNull(),
}));

/** Nodes, joined or not. */
export const node = onchainTable(
  "node",
  (t) => ({
    number: t.numeric(NUMBER).primaryKey(),
    operator: t.hex().notNull(),
    /** The account that the operator named as the node's worker, and whether it accepted. */
    worker: t.hex(),
    works: t.boolean().notNull(),
    /** 0 Quit, 1 Available, 2 Busy, 3 PendingPause, 4 PendingQuit, 5 Paused, 6 PendingKickout. */
    status: t.integer().notNull(),
    /** GPU group: `gpuGroup.id`. */
    gpuGroup: t.numeric(NUMBER).notNull(),
    vram: t.integer().notNull(),
    stake: t.bigint().notNull(),
    joinedAt: t.bigint().notNull(),
    /** When it quit or was thrown out; null while it is joined. */
    leftAt: t.bigint(),
    kickedOut: t.boolean().notNull(),
    /** H as it was last set, a wad, and when: now it is 1 - (1 - H) e^(-(now - reliabilityAt) / tau). */
    reliability: t.bigint().notNull(),
    reliabilityAt: t.bigint().notNull(),
    /** The score pool: the last scores, at most 50, the oldest first. */
    pool: t.integer().array().notNull(),
    /** Q_long / Q_max, a wad, not floored: half while the pool is empty. */
    longTerm: t.bigint().notNull(),
    /** Judgements that its rating counts, those that held it right, and the rating (right + 1) / (judged + 2), a wad. */
    judgedRight: t.integer().notNull(),
    judged: t.integer().notNull(),
    rating: t.bigint().notNull(),
    /** The running task, or the last one, and its deadline; whether it runs. */
    task: t.bigint().notNull(),
    deadline: t.bigint().notNull(),
    runs: t.boolean().notNull(),
    /** Models it holds, sorted, and those of its last task. */
    models: t.bigint().array().notNull(),
    inUse: t.bigint().array().notNull(),
    /** Waits apart: 0 no, 1 excluded, held back or at rest after an error, 2 for others, for a queued task that takes several nodes, 3 reserved for its draw. */
    parked: t.integer().notNull(),
    parkedUntil: t.bigint().notNull(),
    /** The task it waits or is reserved for. */
    waitsFor: t.bigint().notNull(),
    /** Commitments not settled, and whether they keep it from work. */
    openCommitments: t.integer().notNull(),
    held: t.boolean().notNull(),
    /** The place of the group that it was called to while busy; 0 for none. */
    calledTo: t.bigint().notNull(),
    /** Paused, and not among the active ones any more. */
    setAside: t.boolean().notNull(),
    /** The validation group that judged it last. */
    judgedIn: t.bigint(),
    /** Since it first joined: tasks and members' parts begun; ended well, by a wrong or withheld answer, by an error, by a deadline; times excluded for a low H. */
    started: t.integer().notNull(),
    succeeded: t.integer().notNull(),
    wrong: t.integer().notNull(),
    failed: t.integer().notNull(),
    timedOut: t.integer().notNull(),
    exclusions: t.integer().notNull(),
    /** Fees earned and all that slashes took. */
    earned: t.bigint().notNull(),
    slashed: t.bigint().notNull(),
    /** The newest event that names it. */
    seenAt: t.bigint().notNull(),
  }),
  (t) => ({
    operator: index().on(t.operator),
    status: index().on(t.status),
    gpuGroup: index().on(t.gpuGroup, t.status, t.parked),
    stake: index().on(t.stake),
    earned: index().on(t.earned),
    slashed: index().on(t.slashed),
    started: index().on(t.started),
    task: index().on(t.task),
    models: index().using("gin", t.models),
  }),
);

/** Every account that Muster ever owed something, or that asked something of it. */
export const account = onchainTable(
  "account",
  (t) => ({
    address: t.hex().primaryKey(),
    credit: t.bigint().notNull(),
    unbonding: t.bigint().notNull(),
    /** When the returned stake is free. */
    release: t.bigint().notNull(),
    /** The number of the node that it joined, or works for; 0 for none. */
    node: t.numeric(NUMBER).notNull(),
    kickedOut: t.boolean().notNull(),
    /** URIs of where its bytes can be had, as it said itself. */
    stores: t.text().notNull(),
    /** Tasks it created, their fees, and their refunds. */
    tasks: t.integer().notNull(),
    fees: t.bigint().notNull(),
    refunds: t.bigint().notNull(),
    /** Ever credited for work and for driving others' tasks; ever paid out. */
    earned: t.bigint().notNull(),
    withdrawn: t.bigint().notNull(),
    firstAt: t.bigint().notNull(),
  }),
  (t) => ({ node: index().on(t.node), fees: index().on(t.fees), earned: index().on(t.earned) }),
);

/** Tasks. Their timeline are the rows of `event` that name them. */
export const task = onchainTable(
  "task",
  (t) => ({
    id: t.bigint().primaryKey(),
    creator: t.hex().notNull(),
    /** 1 Pending, 2 queued, 3 running, 4 committed, 5 sampled and its validators are being drawn, 6 in a group, 0 ended. */
    status: t.integer().notNull(),
    /** 1 not ended, 2 succeeded, 3 error, 4 timed out, 5 cancelled, 6 evicted, 7 queued too long, 8 node slashed out, 9 no two answers the same. */
    outcome: t.integer().notNull(),
    fee: t.bigint().notNull(),
    /** 0 Stable Diffusion, 1 GPT, 2 fine-tuning. */
    kind: t.integer().notNull(),
    units: t.integer().notNull(),
    /** Its requirements: the stated VRAM, and GPU group, 0 for any. */
    vram: t.integer().notNull(),
    gpu: t.numeric(NUMBER).notNull(),
    /** 0 single, 1 sampled, 2 replicated, 3 rated. */
    redundancy: t.integer().notNull(),
    flags: t.numeric(NUMBER).notNull(),
    inputDigest: t.hex().notNull(),
    models: t.bigint().array().notNull(),
    estimate: t.integer().notNull(),
    timeLimit: t.integer().notNull(),
    startFeeBps: t.integer().notNull(),
    /** The parameter sampleBps at its creation; 0 unless it can be sampled. */
    sampleBps: t.integer().notNull(),
    createdAt: t.bigint().notNull(),
    createdBlock: t.bigint().notNull(),
    createdTx: t.hex().notNull(),
    /** The block whose hash decides its draw, or its validators'; and how often it was drawn anew. */
    drawBlock: t.bigint().notNull(),
    redraws: t.integer().notNull(),
    /** The event that put it in line for its draw: those of one status are drawn in this order. */
    drawSince: t.bigint().notNull(),
    /** Queued: its ticket, the queue (`queue.id`) and since when; otherwise their last values, 0 if it was never queued. */
    ticket: t.bigint().notNull(),
    queue: t.numeric(NUMBER).notNull(),
    queuedAt: t.bigint().notNull(),
    /** The node it started on, 0 for none yet; of a group the one that the settlement named. */
    node: t.numeric(NUMBER).notNull(),
    /** When a node, or a group's first member, began; null before. */
    startedAt: t.bigint(),
    deadline: t.bigint().notNull(),
    boosts: t.boolean().notNull(),
    /** Sampled or not: its node's commitment (24 bytes), when, and the block that draws the lot. */
    commitment: t.hex(),
    committedAt: t.bigint(),
    lotBlock: t.bigint(),
    wasSampled: t.boolean().notNull(),
    /** Its validation group, the newest: `validation.id`. */
    validation: t.bigint(),
    endedAt: t.bigint(),
    endedBlock: t.bigint(),
    endedTx: t.hex(),
    /** The error's code. */
    code: t.integer().notNull(),
    /** The part of the fee that was spent before its end: on the call of its validators, and on groups without a majority. */
    spent: t.bigint().notNull(),
    /**
     * Paid to nodes, returned to the creator, kept as start fees (for the treasury, or the account that called its validators or ended it), and the
     * change of the reserve (below 0: paid by it).
     */
    paid: t.bigint().notNull(),
    refund: t.bigint().notNull(),
    startFee: t.bigint().notNull(),
    toReserve: t.bigint().notNull(),
    resultDigest: t.hex(),
  }),
  (t) => ({
    creator: index().on(t.creator, t.id),
    node: index().on(t.node, t.id),
    status: index().on(t.status, t.id),
    outcome: index().on(t.outcome, t.id),
    queue: index().on(t.queue, t.status),
    createdAt: index().on(t.createdAt),
    endedAt: index().on(t.endedAt),
    fee: index().on(t.fee),
    // For running tasks, the first view shows the earliest deadlines.
    deadline: index().on(t.deadline).where(sql`status >= 3`),
    gpu: index().on(t.gpu, t.id),
    redundancy: index().on(t.redundancy, t.id),
    kind: index().on(t.kind, t.id),
    models: index().using("gin", t.models),
  }),
);

/** Every event of the contract, its values as JSON, numbers above 2^53 as strings. */
export const event = onchainTable(
  "event",
  (t) => ({
    /** block * 1,000,000 + log index. */
    id: t.bigint().primaryKey(),
    name: t.text().notNull(),
    args: t.json().notNull(),
    block: t.bigint().notNull(),
    /** With `id` it names the event on one branch of the chain: another branch can have the same transaction at the same place. */
    blockHash: t.hex().notNull(),
    at: t.bigint().notNull(),
    tx: t.hex().notNull(),
    /** The task, node, account and model in it; of several accounts the main one. */
    task: t.bigint(),
    node: t.numeric(NUMBER),
    account: t.hex(),
    model: t.bigint(),
  }),
  (t) => ({
    name: index().on(t.name, t.id),
    task: index().on(t.task, t.id),
    node: index().on(t.node, t.id),
    account: index().on(t.account, t.id),
    model: index().on(t.model, t.id),
    at: index().on(t.at),
    tx: index().on(t.tx),
  }),
);

/** Transactions with events of the contract. */
export const transaction = onchainTable(
  "transaction",
  (t) => ({
    hash: t.hex().primaryKey(),
    block: t.bigint().notNull(),
    at: t.bigint().notNull(),
    sender: t.hex().notNull(),
    /** The first four bytes of its calldata, and the interface's function, if it was sent to the contract itself. */
    selector: t.hex(),
    call: t.text(),
    gasUsed: t.bigint().notNull(),
    gasPrice: t.bigint().notNull(),
  }),
  (t) => ({ at: index().on(t.at), sender: index().on(t.sender, t.at), call: index().on(t.call, t.at) }),
);

/** Validation groups, settled ones too. */
export const validation = onchainTable(
  "validation",
  (t) => ({
    /** The event that formed it. */
    id: t.bigint().primaryKey(),
    /** Its place; another group's after its settlement. */
    place: t.bigint().notNull(),
    open: t.boolean().notNull(),
    task: t.bigint().notNull(),
    creator: t.hex().notNull(),
    /** 1 sampled, 2 replicated, 3 rated. */
    redundancy: t.integer().notNull(),
    size: t.integer().notNull(),
    /** Its members' nodes, in their order. */
    nodes: t.integer().array().notNull(),
    scored: t.boolean().notNull(),
    /** Whether its members can be slashed; a commitment that can is open. */
    liable: t.boolean().notNull(),
    /** Of one chosen by ratings: the algorithm (0 Fixed-size, 1 First-fit, 2 Tight-fit, 3 Random-fit), its target and likelihood, wads. */
    algorithm: t.integer(),
    target: t.bigint(),
    likelihood: t.bigint(),
    formedAt: t.bigint().notNull(),
    /** 0 agreed, 1 the first alone answered, 2 all differ, 3 nobody or a validator alone, 4 given to another group; null while it is open. */
    outcome: t.integer(),
    settledAt: t.bigint(),
    answer: t.hex(),
    refund: t.bigint().notNull(),
    startFee: t.bigint().notNull(),
    paid: t.bigint().notNull(),
  }),
  (t) => ({
    place: index().on(t.open, t.place),
    task: index().on(t.task),
    creator: index().on(t.creator, t.id),
    settledAt: index().on(t.settledAt),
  }),
);

/** Members of validation groups. */
export const member = onchainTable(
  "member",
  (t) => ({
    validation: t.bigint().notNull(),
    node: t.numeric(NUMBER).notNull(),
    position: t.integer().notNull(),
    task: t.bigint().notNull(),
    /** 1 called and still busy, 2 running, 3 committed, 4 answered, 5 could not run it, 6 let its deadline pass, 7 slashed out before. */
    stage: t.integer().notNull(),
    /** Running: its deadline. From the commitment on: when that was made. */
    moment: t.bigint().notNull(),
    startedAt: t.bigint(),
    deadline: t.bigint(),
    committedAt: t.bigint(),
    /** Seconds from its start to its commitment. */
    elapsed: t.integer().notNull(),
    commitment: t.hex(),
    revealedAt: t.bigint(),
    /** 0 an answer, 1 an error, whose code `answer` is then. */
    kind: t.integer(),
    answer: t.hex(),
    salt: t.hex(),
    /** Of images: the bits in which each one's hash differs from the right answer's; known with the settlement. */
    distances: t.integer().array(),
    /** Whether the answer equals the right one, bit by bit. */
    equal: t.boolean(),
    /** 1 right, 2 wrong, 3 withheld, 4 error reported, 5 timed out, 6 no two the same. */
    verdict: t.integer(),
    score: t.integer(),
    paid: t.bigint().notNull(),
    slashed: t.bigint().notNull(),
  }),
  (t) => ({
    pk: primaryKey({ columns: [t.validation, t.node] }),
    node: index().on(t.node, t.validation),
    task: index().on(t.task),
    verdict: index().on(t.verdict),
  }),
);

/** How applications' groups are chosen by ratings, as they last set it. */
export const profile = onchainTable("profile", (t) => ({
  application: t.hex().primaryKey(),
  algorithm: t.integer().notNull(),
  least: t.integer().notNull(),
  most: t.integer().notNull(),
  reschedules: t.integer().notNull(),
  /** 0 predictive, 1 adaptive, 2 given. */
  targeting: t.integer().notNull(),
  /** The initial target; later ones are in `validation`. */
  target: t.bigint().notNull(),
  alpha: t.bigint().notNull(),
  period: t.integer().notNull(),
  at: t.bigint().notNull(),
}));

/** Task scores, each by the event that told it. */
export const score = onchainTable(
  "score",
  (t) => ({
    id: t.bigint().primaryKey(),
    node: t.numeric(NUMBER).notNull(),
    score: t.integer().notNull(),
    task: t.bigint(),
    validation: t.bigint(),
    at: t.bigint().notNull(),
  }),
  (t) => ({ node: index().on(t.node, t.id), task: index().on(t.task) }),
);

/**
 * Every movement of money: a pot's rows add up to its balance. Pots: "stake" (of a node), "credit" and "unbonding" (of an account), "escrow" (of a
 * task), "treasury", "reserve", "burnt".
 */
export const payment = onchainTable(
  "payment",
  (t) => ({
    /** The event, and which of its movements. */
    event: t.bigint().notNull(),
    part: t.numeric(NUMBER).notNull(),
    pot: t.text().notNull(),
    /** The owner of stakes, credit and unbonding stake. */
    account: t.hex(),
    node: t.numeric(NUMBER),
    task: t.bigint(),
    /** Less than 0 where it leaves the pot. */
    amount: t.bigint().notNull(),
    /**
     * The reason: "fee", "pay", "refund", "startFee", "rest", "stake", "return", "release", "withdrawal", "slash", "groupFee", "sweep",
     * "leftOut" (of a batch).
     */
    reason: t.text().notNull(),
    at: t.bigint().notNull(),
  }),
  (t) => ({
    pk: primaryKey({ columns: [t.event, t.part] }),
    account: index().on(t.account, t.event),
    node: index().on(t.node, t.event),
    task: index().on(t.task),
    pot: index().on(t.pot, t.event),
    at: index().on(t.at),
  }),
);

/** Every change of a node's H but its recovery, which goes on from here: each by the event that brought it. */
export const reliabilityMark = onchainTable(
  "reliability_mark",
  (t) => ({
    id: t.bigint().primaryKey(),
    node: t.numeric(NUMBER).notNull(),
    at: t.bigint().notNull(),
    /** H after it, a wad. */
    h: t.bigint().notNull(),
    /** "joined", "timeout", "success". */
    why: t.text().notNull(),
    task: t.bigint(),
  }),
  (t) => ({ node: index().on(t.node, t.id) }),
);

/** Slashes. The evidence is the row of `member` with the same validation and node. */
export const slash = onchainTable(
  "slash",
  (t) => ({
    id: t.bigint().primaryKey(),
    node: t.numeric(NUMBER).notNull(),
    operator: t.hex().notNull(),
    task: t.bigint().notNull(),
    validation: t.bigint(),
    stake: t.bigint().notNull(),
    unbonding: t.bigint().notNull(),
    credit: t.bigint().notNull(),
    at: t.bigint().notNull(),
  }),
  (t) => ({ node: index().on(t.node, t.id), operator: index().on(t.operator), task: index().on(t.task) }),
);

/** GPU groups: one GPU model with one VRAM size. */
export const gpuGroup = onchainTable(
  "gpu_group",
  (t) => ({
    /** model << 16 | vram. */
    id: t.numeric(NUMBER).primaryKey(),
    name: t.text().notNull(),
    vram: t.integer().notNull(),
    fee: t.bigint().notNull(),
    createdAt: t.bigint().notNull(),
    /** Whether tasks whose answers must be equal can be validated here. */
    listed: t.boolean().notNull(),
    joined: t.integer().notNull(),
    stakes: t.bigint().notNull(),
  }),
  (t) => ({ vram: index().on(t.vram), name: index().on(t.name) }),
);

/** Models that were ever named, held or required. */
export const model = onchainTable(
  "model",
  (t) => ({
    id: t.bigint().primaryKey(),
    /** Null while nobody has named it. */
    name: t.text(),
    /** Joined nodes that hold it, and entries among its holders: stale ones too. */
    held: t.integer().notNull(),
    entries: t.integer().notNull(),
    /** Tasks that required it, and downloads asked for. */
    tasks: t.integer().notNull(),
    downloads: t.integer().notNull(),
    firstAt: t.bigint().notNull(),
  }),
  (t) => ({ name: index().on(t.name), held: index().on(t.held), tasks: index().on(t.tasks) }),
);

/** The models that nodes hold. A row stays when it is stale. */
export const holding = onchainTable(
  "holding",
  (t) => ({
    node: t.numeric(NUMBER).notNull(),
    model: t.bigint().notNull(),
    /** Whether the node says that it holds it; and whether it is entered among the model's holders. */
    held: t.boolean().notNull(),
    entered: t.boolean().notNull(),
    at: t.bigint().notNull(),
  }),
  (t) => ({ pk: primaryKey({ columns: [t.node, t.model] }), model: index().on(t.model, t.held) }),
);

/** Queues ever used. A queue's contents are the tasks of status 2 with its number. */
export const queue = onchainTable("queue", (t) => ({
  /** As in `queuedTasks`: a GPU group or VRAM size, plus 4,096 for each grade. */
  id: t.numeric(NUMBER).primaryKey(),
  /** GPU group, or VRAM. */
  gpuGroup: t.numeric(NUMBER).notNull(),
  grade: t.integer().notNull(),
  /** The event that first used it: their order. */
  first: t.bigint().notNull(),
  queued: t.integer().notNull(),
  /** Ever queued here. */
  total: t.integer().notNull(),
}));

/** Parameters. */
export const parameter = onchainTable("parameter", (t) => ({
  number: t.numeric(NUMBER).primaryKey(),
  name: t.text().notNull(),
  unit: t.text().notNull(),
  value: t.bigint().notNull(),
  changedAt: t.bigint().notNull(),
  /** Proposed, and when it can take effect; null for nothing. */
  proposed: t.bigint(),
  effective: t.bigint(),
}));

/** The program that answers a selector now. */
export const program = onchainTable(
  "program",
  (t) => ({ selector: t.hex().primaryKey(), address: t.hex().notNull(), at: t.bigint().notNull() }),
  (t) => ({ address: index().on(t.address) }),
);

/** Proposed changes of programs. */
export const programProposal = onchainTable("program_proposal", (t) => ({
  /** The program, and the selectors, joined. */
  id: t.text().primaryKey(),
  program: t.hex().notNull(),
  selectors: t.hex().array().notNull(),
  /** When it can take effect; null where it was withdrawn or carried out. */
  effective: t.bigint(),
}));

/** Sums of one hour (`hour`), day (`day`) or month (`month`), in UTC, by their first second. */
const sums = (t: Columns) => ({
  start: t.bigint().primaryKey(),
  /** The state after its last event: joined nodes, queued tasks, all stakes, the reserve, the treasury, and all that was ever burnt. */
  nodes: t.integer().notNull(),
  waiting: t.integer().notNull(),
  stakes: t.bigint().notNull(),
  reserve: t.bigint().notNull(),
  treasury: t.bigint().notNull(),
  burntEver: t.bigint().notNull(),
  /** Tasks by their outcomes in this time. */
  created: t.integer().notNull(),
  started: t.integer().notNull(),
  queued: t.integer().notNull(),
  succeeded: t.integer().notNull(),
  failed: t.integer().notNull(),
  timedOut: t.integer().notNull(),
  cancelled: t.integer().notNull(),
  evicted: t.integer().notNull(),
  expired: t.integer().notNull(),
  slashedOut: t.integer().notNull(),
  undecided: t.integer().notNull(),
  redrawn: t.integer().notNull(),
  committed: t.integer().notNull(),
  sampled: t.integer().notNull(),
  /** Validation groups. */
  formed: t.integer().notNull(),
  settled: t.integer().notNull(),
  /** Seconds, added up, from creation to start of those that started, and from start to end of those that ended. */
  waited: t.bigint().notNull(),
  ran: t.bigint().notNull(),
  /** Wei. */
  fees: t.bigint().notNull(),
  paid: t.bigint().notNull(),
  refunded: t.bigint().notNull(),
  income: t.bigint().notNull(),
  burnt: t.bigint().notNull(),
  withdrawn: t.bigint().notNull(),
  /** Nodes. */
  joined: t.integer().notNull(),
  quits: t.integer().notNull(),
  kickedOut: t.integer().notNull(),
  excluded: t.integer().notNull(),
  slashes: t.integer().notNull(),
  downloads: t.integer().notNull(),
  /** Transactions with events of the contract, and their gas. */
  transactions: t.integer().notNull(),
  gas: t.bigint().notNull(),
  events: t.integer().notNull(),
});
/** Tasks of one minute, by its first second. */
export const minute = onchainTable("minute", (t) => ({ start: t.bigint().primaryKey(), created: t.integer().notNull(), ended: t.integer().notNull() }));

export const hour = onchainTable("hour", sums);
export const day = onchainTable("day", sums);
export const month = onchainTable("month", sums);

/** A node's day, by its first second. */
export const nodeDay = onchainTable(
  "node_day",
  (t) => ({
    node: t.numeric(NUMBER).notNull(),
    start: t.bigint().notNull(),
    started: t.integer().notNull(),
    succeeded: t.integer().notNull(),
    wrong: t.integer().notNull(),
    failed: t.integer().notNull(),
    timedOut: t.integer().notNull(),
    /** Wei. */
    earned: t.bigint().notNull(),
    slashed: t.bigint().notNull(),
    /** Task scores: how many, and their sum. */
    scores: t.integer().notNull(),
    scored: t.integer().notNull(),
  }),
  (t) => ({ pk: primaryKey({ columns: [t.node, t.start] }), start: index().on(t.start) }),
);
