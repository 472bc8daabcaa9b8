// The knowledge of an explorer that has read nothing but events, each by a filter, and the comparison of all of it with the views.
import assert from "node:assert/strict";
import { type Address, type GetContractEventsReturnType, type Hex, type PublicClient, encodeEventTopics, keccak256, numberToHex, pad, toHex } from "viem";
import { musterAbi } from "../../abi/muster";

type Log = GetContractEventsReturnType<typeof musterAbi, undefined, true>[number];
type EventName = Log["eventName"];
const EVENTS = musterAbi.flatMap((item) => (item.type === "event" ? [item.name] : []));
const NOBODY: Address = `0x${"00".repeat(20)}`;
const NO_RECEIPT = { state: 0, node: 0, code: 0, ended: 0n, refund: 0n, resultDigest: pad("0x") };
/** Everything that ends a task. */
const ENDS = ["TaskSucceeded", "TaskErrorReported", "TaskAborted"] as const;

interface Node {
  operator: Address;
  status: number;
  group: number;
  stake: bigint;
  joinedAt: bigint;
  models: Set<bigint>;
  inUse: readonly bigint[];
  task: bigint;
  deadline: bigint;
  parkedUntil?: bigint;
  worker: { worker: Address; works: boolean };
}

interface Task {
  created: Extract<Log, { eventName: "TaskCreated" }>["args"];
  drawBlock: bigint;
  ticket?: bigint;
  queuedAt: bigint;
  node: number;
  deadline: bigint;
  boosts: boolean;
}

/** The state of a Muster, as its events tell it. */
class State {
  owner = NOBODY;
  nextOwner = NOBODY;
  treasury = { account: NOBODY, income: 0n };
  nextTreasury = { account: NOBODY, effective: 0n };
  stakeUnit = 0n;
  paused = false;
  programs = new Map<Hex, Address>();
  parameters = new Map<number, bigint>();
  groups = new Map<number, { name: string; vram: number }>();
  models = new Map<bigint, string>();
  nodes = new Map<number, Node>();
  stores = new Map<Address, string>();
  accounts = new Map<Address, { credit: bigint; unbonding: bigint; release: bigint; node: number; kickedOut: boolean }>();
  created = 0n;
  /** Those that have not ended, by id. */
  tasks = new Map<bigint, Task>();
  pending: bigint[] = [];
  outcomes = new Map<bigint, typeof NO_RECEIPT>();

  account(who: Address) {
    const known = this.accounts.get(who) ?? { credit: 0n, unbonding: 0n, release: 0n, node: 0, kickedOut: false };
    this.accounts.set(who, known);
    return known;
  }

  private end(id: bigint, outcome: Partial<typeof NO_RECEIPT>) {
    const task = this.tasks.get(id)!;
    this.tasks.delete(id);
    this.leavePending(id);
    const node = this.nodes.get(task.node);
    if (node?.status === 2) node.status = 1;
    if (this.outcomes.has(id)) this.outcomes.set(id, { ...NO_RECEIPT, ...outcome });
    return task;
  }

  private leavePending(id: bigint) {
    this.pending = this.pending.filter((other) => other !== id);
  }

  read({ eventName, args }: Log, now: bigint) {
    // An event without values has none.
    const node = args && "node" in args ? this.nodes.get(args.node) : undefined;
    switch (eventName) {
      case "Initialised":
        this.owner = args.owner;
        this.treasury.account = args.treasury;
        this.stakeUnit = args.stakeUnit;
        break;
      case "ParameterChanged":
        assert.equal(args.before, this.parameters.get(args.parameter) ?? 0n);
        this.parameters.set(args.parameter, args.value);
        break;
      case "PausedChanged":
        this.paused = args.on;
        break;
      case "OwnershipTransferStarted":
        this.nextOwner = args.newOwner;
        break;
      case "OwnershipTransferred":
        [this.owner, this.nextOwner] = [args.newOwner, NOBODY];
        break;
      case "TreasuryProposed":
        this.nextTreasury = { account: args.treasury, effective: args.effective };
        break;
      case "TreasuryChanged":
        this.treasury.account = args.treasury;
        this.nextTreasury = { account: NOBODY, effective: 0n };
        break;
      case "TreasurySwept":
        this.treasury.income -= args.amount;
        break;
      case "DiamondCut":
        for (const { facetAddress, action, functionSelectors } of args.cuts) {
          for (const selector of functionSelectors) {
            assert.equal(this.programs.has(selector), action !== 0, selector);
            if (action === 2) this.programs.delete(selector);
            else this.programs.set(selector, facetAddress);
          }
        }
        break;
      case "ModelNamed":
        assert.equal(args.model, BigInt(keccak256(toHex(args.name)).slice(0, 12)));
        this.models.set(args.model, args.name);
        break;
      case "GpuGroupCreated":
        this.groups.set(args.group, { name: args.name, vram: args.vram });
        this.treasury.income += args.fee;
        break;
      case "NodeJoined":
        this.nodes.set(args.node, {
          ...(node ?? { task: 0n, deadline: 0n, worker: { worker: NOBODY, works: false } }),
          operator: args.operator,
          status: 1,
          group: args.group,
          stake: args.stake,
          joinedAt: now,
          models: new Set(args.models),
          inUse: [],
        });
        this.account(args.operator).node = args.node;
        break;
      case "StakeRaised":
        node!.stake = args.stake;
        break;
      case "NodePausing":
        node!.status = 3;
        break;
      case "NodePaused":
        [node!.status, node!.parkedUntil] = [5, undefined];
        break;
      case "NodeResumed":
        node!.status = 1;
        break;
      case "WorkerNamed":
        if (node!.worker.works) this.account(node!.worker.worker).node = 0;
        node!.worker = { worker: args.worker, works: false };
        break;
      case "WorkAccepted":
        node!.worker.works = true;
        this.account(args.worker).node = args.node;
        break;
      case "StoresSet":
        this.stores.set(args.account, args.uris);
        break;
      case "NodeQuitting":
        node!.status = 4;
        break;
      case "NodeQuit": {
        [node!.status, node!.stake, node!.parkedUntil] = [0, 0n, undefined];
        const account = this.account(args.operator);
        account.unbonding += args.stake;
        account.release = args.release;
        break;
      }
      case "NodeKickedOut":
        this.account(args.operator).kickedOut = true;
        break;
      case "NodeExcluded":
        node!.parkedUntil = args.until;
        break;
      case "NodeReadmitted":
        node!.parkedUntil = undefined;
        break;
      case "ModelAdded":
        node!.models.add(args.model);
        break;
      case "ModelRemoved":
      case "HolderPurged":
        node!.models.delete(args.model);
        break;
      case "StakeReleased": {
        const account = this.account(args.account);
        account.credit += args.amount;
        account.unbonding -= args.amount;
        break;
      }
      case "Withdrawn": {
        const account = this.account(args.account);
        account.credit -= args.credit;
        account.unbonding -= args.stake;
        break;
      }
      case "TaskCreated":
        this.created = args.id;
        this.tasks.set(args.id, { created: args, drawBlock: args.drawBlock, queuedAt: 0n, node: 0, deadline: 0n, boosts: false });
        this.pending.push(args.id);
        if (args.spec.flags === 1) this.outcomes.set(args.id, { ...NO_RECEIPT, state: 1 });
        break;
      case "TaskRefused":
        this.account(args.creator).credit += args.fee;
        break;
      case "TaskRedrawn":
        this.leavePending(args.id);
        this.pending.push(args.id);
        this.tasks.get(args.id)!.drawBlock = args.drawBlock;
        break;
      case "TaskQueued": {
        this.leavePending(args.id);
        const task = this.tasks.get(args.id)!;
        assert.deepEqual([args.creator, args.group], [task.created.creator, task.created.spec.gpu || task.created.spec.vram]);
        [task.ticket, task.queuedAt] = [args.ticket, now];
        break;
      }
      case "TaskStarted": {
        this.leavePending(args.id);
        const task = this.tasks.get(args.id)!;
        [task.ticket, task.node, task.deadline, task.boosts] = [undefined, args.node, args.deadline, args.boosts];
        [node!.status, node!.task, node!.deadline] = [2, args.id, args.deadline];
        node!.inUse = task.created.spec.models;
        break;
      }
      case "TaskSucceeded":
        this.account(node!.operator).credit += args.paid;
        this.end(args.id, { state: 2, node: args.node, ended: now, resultDigest: args.resultDigest });
        break;
      case "TaskErrorReported":
        this.account(args.creator).credit += args.refund;
        this.treasury.income += this.tasks.get(args.id)!.created.fee - args.refund;
        this.end(args.id, { state: 3, node: args.node, ended: now, code: args.code, refund: args.refund });
        break;
      case "TaskAborted": {
        const { node: ran } = this.end(args.id, { state: 4 + args.reason, node: args.node, ended: now, refund: args.refund });
        assert.equal(args.node, ran);
        this.account(args.creator).credit += args.refund;
        if (args.beneficiary === NOBODY) this.treasury.income += args.startFee;
        else this.account(args.beneficiary).credit += args.startFee;
        break;
      }
    }
  }
}

/** Reads events of a Muster by filters, and compares the resulting state with its views. */
export class Index {
  private times = new Map<bigint, bigint>();

  constructor(
    private client: PublicClient,
    private address: Address,
  ) {}

  private contract() {
    return { address: this.address, abi: musterAbi } as const;
  }

  /** The time of a block. */
  private async time(blockNumber: bigint) {
    const known = this.times.get(blockNumber) ?? (await this.client.getBlock({ blockNumber })).timestamp;
    this.times.set(blockNumber, known);
    return known;
  }

  /** Every event, each by a filter of its own, in order. */
  private async logs(): Promise<Log[]> {
    const asked = EVENTS.map((eventName) =>
      this.client.getContractEvents({ ...this.contract(), eventName, fromBlock: 0n, strict: true } as never),
    );
    const logs = (await Promise.all(asked)).flat() as unknown as Log[];
    return logs.sort((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);
  }

  /** The state from events equals that of the views, to the wei. */
  async compare() {
    const state = new State();
    const logs = await this.logs();
    for (const log of logs) state.read(log, await this.time(log.blockNumber));
    const muster = this.contract();
    const read = this.client;

    const overview = await read.readContract({ ...muster, functionName: "overview" });
    const joined = [...state.nodes.values()].filter(({ status }) => status !== 0);
    const { queueCapacity, reserve, burnt, groups, groupPlaces, ...rest } = overview;
    // Nothing is validated in this story; the explorer of the model follows that.
    assert.deepEqual([reserve, burnt, groups, groupPlaces], [0n, 0n, 0, 0]);
    const queued = [...state.tasks.values()].filter(({ ticket }) => ticket !== undefined);
    assert.deepEqual(rest, {
      owner: state.owner,
      treasury: state.treasury.account,
      treasuryBalance: state.treasury.income,
      stakeUnit: state.stakeUnit,
      paused: state.paused,
      tasks: state.created,
      nodesIssued: state.nodes.size,
      nodesJoined: joined.length,
      pending: state.pending.length,
      queued: queued.length,
      largestStake: joined.reduce((most, { stake }) => (stake > most ? stake : most), 0n),
    });
    assert.equal(await read.readContract({ ...muster, functionName: "owner" }), state.owner);
    assert.equal(await read.readContract({ ...muster, functionName: "pendingOwner" }), state.nextOwner);
    const next = await read.readContract({ ...muster, functionName: "pendingTreasury" });
    assert.deepEqual(next, [state.nextTreasury.account, state.nextTreasury.effective]);
    for (const [number, value] of state.parameters) {
      const [now] = await read.readContract({ ...muster, functionName: "parameter", args: [number] });
      assert.equal(now, value, `parameter ${number}`);
    }

    // The programs, from DiamondCut alone, are those of the loupe.
    const facets = await read.readContract({ ...muster, functionName: "facets" });
    const answered = facets.flatMap(({ facetAddress, functionSelectors }) => functionSelectors.map((s) => [s, facetAddress] as const));
    assert.deepEqual(new Map(answered), state.programs);

    for (const [group, { name, vram }] of state.groups) {
      assert.equal(await read.readContract({ ...muster, functionName: "gpuName", args: [group] }), name);
      assert.equal(await read.readContract({ ...muster, functionName: "gpuGroup", args: [name, vram] }), group);
      assert.ok(group >> 16 >= 1 && group >> 16 <= (await read.readContract({ ...muster, functionName: "gpuGroups", args: [vram] })));
    }

    for (const [account, uris] of state.stores)
      assert.equal(await read.readContract({ ...muster, functionName: "storesOf", args: [account] }), uris);

    // Nodes.
    let owed = state.treasury.income;
    for (const [number, node] of state.nodes) {
      const { reliability, longTerm, scores, excluded, ...view } = await read.readContract({ ...muster, functionName: "node", args: [number] });
      const { parkedUntil, models, group, worker, ...own } = node;
      const [named, works] = await read.readContract({ ...muster, functionName: "workerOf", args: [number] });
      assert.deepEqual({ worker: named, works }, worker, `worker of ${number}`);
      owed += node.stake;
      assert.deepEqual(
        { ...view, models: view.models.toSorted(), inUse: [...view.inUse] },
        {
          ...own,
          node: number,
          gpu: group,
          vram: group & 0xffff,
          parked: parkedUntil === undefined ? 0 : 1,
          parkedUntil: parkedUntil ?? 0n,
          models: [...models].sort(),
          inUse: [...own.inUse],
          openCommitments: 0,
          held: false,
          calledTo: 0,
          right: 0,
          judged: 0,
          rating: 5n * 10n ** 17n,
        },
        `node ${number}`,
      );
      const running = await read.readContract({ ...muster, functionName: "runningTask", args: [number] });
      assert.deepEqual(running.id, [...state.tasks].find(([, task]) => task.node === number)?.[0] ?? 0n);
    }

    // Accounts, and with them all of the contract's balance.
    for (const [who, { credit, unbonding, release, node, kickedOut }] of state.accounts) {
      const view = await read.readContract({ ...muster, functionName: "account", args: [who] });
      assert.deepEqual([view.credit, view.unbonding, view.node, view.kickedOut], [credit, unbonding, node, kickedOut], who);
      if (unbonding > 0n) assert.equal(view.release, release);
      owed += credit + unbonding;
    }
    for (const { created } of state.tasks.values()) owed += created.fee;
    assert.equal(await read.getBalance({ address: this.address }), owed);

    // Tasks that have not ended, found by what the events say of them.
    for (const [id, task] of state.tasks) {
      const view = await read.readContract({ ...muster, functionName: "locate", args: [id, task.node, task.ticket ?? 0n] });
      const { spec, creator, fee, estimate, timeLimit, startFeeBps } = task.created;
      const status = task.node ? 3 : task.ticket !== undefined ? 2 : 1;
      const { queueKey, ...seen } = view;
      assert.deepEqual(
        { ...seen, models: [...seen.models] },
        {
          id,
          status,
          creator,
          fee,
          kind: spec.kind,
          estimate,
          timeLimit,
          startFeeBps,
          vram: spec.gpu ? spec.gpu & 0xffff : spec.vram,
          gpu: spec.gpu,
          flags: spec.flags,
          models: [...spec.models],
          drawBlock: status === 1 ? task.drawBlock : 0n,
          ticket: status === 2 ? task.ticket : 0n,
          queuedAt: status === 2 ? task.queuedAt : 0n,
          node: task.node,
          deadline: task.deadline,
          boosts: task.boosts,
          redundancy: spec.redundancy,
          sampleBps: 0,
          group: 0,
        },
        `task ${id}`,
      );
      assert.equal(queueKey > 0n, status === 2);
    }
    const pending = await read.readContract({ ...muster, functionName: "pendingTasks", args: [0, 256] });
    assert.deepEqual(pending.map(({ id }) => id), state.pending.slice(0, 256));
    for (const [id, outcome] of state.outcomes) {
      assert.deepEqual(await read.readContract({ ...muster, functionName: "outcome", args: [id] }), outcome, `outcome of ${id}`);
    }

    // Queues: every one that was ever used, what is in it, and in which order it is served.
    const [total, queues] = await read.readContract({ ...muster, functionName: "queues", args: [0, 256] });
    const used = logs.flatMap((log) => (log.eventName === "TaskQueued" ? [Number(log.args.ticket >> 32n)] : []));
    assert.deepEqual([queues.map(({ queue }) => queue), total], [[...new Set(used)], queues.length]);
    for (const { queue, queued: count, places, best, worst } of queues) {
      const [far, tasks] = await read.readContract({ ...muster, functionName: "queuedTasks", args: [queue, 0, 256] });
      const own = queued.filter(({ ticket }) => Number(ticket! >> 32n) === queue);
      assert.deepEqual([tasks.map(({ id }) => id).toSorted(), far, count], [own.map(({ created }) => created.id).sort(), places, own.length]);
      const served = tasks.toSorted((a, b) => (a.queueKey > b.queueKey ? -1 : 1));
      assert.deepEqual([best, worst], [served.at(0)?.queueKey ?? 0n, served.at(-1)?.queueKey ?? 0n]);
      for (const [place, { ticket }] of served.entries()) {
        const before = await read.readContract({ ...muster, functionName: "queuedBefore", args: [ticket, 0, 256] });
        assert.deepEqual(before, [places, place]);
      }
    }
  }

  /** All of an application's tasks, and all that a node did, by one question each. */
  async histories() {
    const logs = await this.logs();
    const topic = (...names: EventName[]) => names.map((eventName) => encodeEventTopics({ abi: musterAbi, eventName } as never)[0]);
    const ask = async (topics: (Hex | Hex[] | null)[]) => {
      const found = await this.client.request({ method: "eth_getLogs", params: [{ address: this.address, fromBlock: "0x0", topics }] } as never);
      return (found as unknown as { blockNumber: Hex; logIndex: Hex }[]).map((log) => `${BigInt(log.blockNumber)} ${Number(log.logIndex)}`);
    };
    const where = (choose: (log: Log) => boolean) => logs.filter(choose).map((log) => `${log.blockNumber} ${log.logIndex}`);
    const creators = new Set(logs.flatMap((log) => (log.eventName === "TaskCreated" ? [log.args.creator] : [])));
    const later: EventName[] = ["TaskQueued", "TaskStarted", ...ENDS];
    for (const creator of creators) {
      const created = await this.client.getContractEvents({ ...this.contract(), eventName: "TaskCreated", args: { creator }, fromBlock: 0n, strict: true });
      const ids = new Set(created.map(({ args }) => args.id));
      assert.ok(ids.size > 0);
      const all = where((log) => later.includes(log.eventName) && ids.has((log.args as { id: bigint }).id));
      // One filter for each event, and one question for all of them.
      const each = await Promise.all(later.map((name) => ask([topic(name), null, null, pad(creator)])));
      assert.deepEqual(each.flat().toSorted(), all.toSorted());
      assert.deepEqual(await ask([topic(...later), null, null, pad(creator)]), all);
    }
    const nodes = new Set(logs.flatMap((log) => (log.eventName === "NodeJoined" ? [log.args.node] : [])));
    const works: EventName[] = ["TaskStarted", ...ENDS];
    for (const node of nodes) {
      const all = where((log) => works.includes(log.eventName) && (log.args as { node: number }).node === node);
      assert.deepEqual(await ask([topic(...works), null, pad(numberToHex(node))]), all);
    }
    const groups = new Set(logs.flatMap((log) => (log.eventName === "TaskQueued" ? [log.args.group] : [])));
    for (const group of groups) {
      const all = where((log) => log.eventName === "TaskQueued" && log.args.group === group);
      assert.deepEqual(await ask([topic("TaskQueued"), null, pad(numberToHex(group))]), all);
    }
    assert.ok(creators.size > 1 && nodes.size > 2 && groups.size > 0);
  }
}
