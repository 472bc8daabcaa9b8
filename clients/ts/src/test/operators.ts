/** Operators' handling of their nodes' tasks, and the calls that somebody must make on a quiet chain. */
import { type Account, type Address, type Hex, bytesToHex, concatHex, formatLog, numberToHex, sha256, sliceHex, stringToBytes } from "viem";
import { decode } from "../events.js";
import { sampleWindow } from "../generated/numbers.js";
import { openInput, sealTo } from "../private.js";
import { commitmentOf, saltOf, sealResult } from "../seal.js";
import { isSealed } from "../seals.js";
import { firstOf, objectName, publishedStores } from "../stores.js";
import type { MusterEvent, TaskSpec } from "../types.js";
import { type DevelopmentChain, TICK } from "./chain.js";
import type { Streams } from "./streams.js";

/** A node's behaviour. */
export type Behaviour =
  /** It answers at once. */
  | "answers"
  /** It answers after its `delay`, and streams a growing text until then. */
  | "slow"
  /** It answers with another result than it should. */
  | "cheats"
  /** It lets every deadline pass. */
  | "silent"
  /** It reports that it cannot run the task. */
  | "fails"
  /** It commits, and never reveals. */
  | "withholds";

/** The right result of a task; its input is undefined if no store has it. */
export type Run = (spec: TaskSpec, input: Uint8Array | undefined) => Uint8Array | Promise<Uint8Array>;

interface Job {
  id: bigint;
  /** The place of its validation group; 0 while it has none. */
  group: number;
  /** When it began, by the machine's clock. */
  since: number;
  /** A slow node's stream; null if nobody may see it. */
  shows?: Uint8Array | null;
}

interface Commitment {
  id: bigint;
  group: number;
  kind: number;
  value: Hex;
  salt: Hex;
  /** The block whose hash decides whether it is validated; 0 in a group, and while it is not mined. */
  lotBlock: bigint;
}

/** A node and its work. */
class Operator {
  job: Job | undefined;
  open: Commitment[] = [];
  /** All that it ever made, by the bytes that the event has: a user can go back to a snapshot in which one is open again. */
  readonly made = new Map<Hex, Commitment>();

  constructor(
    readonly number: number,
    readonly account: Account,
    readonly group: number,
    readonly identity: string,
    private behaviour: Behaviour,
    private delay: number,
  ) {}

  behave(behaviour: Behaviour, delay = this.delay): void {
    this.behaviour = behaviour;
    this.delay = delay;
  }

  does(behaviour: Behaviour): boolean {
    return this.behaviour === behaviour;
  }

  /** A slow node's progress with its job, from 0 to 1. */
  part(job: Job): number {
    return this.does("slow") ? (Date.now() - job.since) / this.delay : 0;
  }

  /** Whether it works on its job now. */
  ready(job: Job): boolean {
    return !this.does("silent") && Date.now() >= job.since + (this.does("slow") ? this.delay : 0);
  }
}

/** Milliseconds after which the chain is asked for its newest block although it told of none: of going back to a snapshot it tells nothing. */
const UNTOLD = 250;

/** Refusals that only mean that another call came first. */
const OVERTAKEN = [
  "DeadlinePassed",
  "DeadlineNotPassed",
  "DrawsDue",
  "GroupUnknown",
  "HashUnknown",
  "NotCommitted",
  "NothingToCommit",
  "NotOpen",
  "NotSampled",
  "RevealsOpen",
  "Sampled",
  "TaskNotRunning",
];

/** All nodes of a network, one step after the other. */
export class Operators {
  readonly nodes: Operator[] = [];
  /** The tasks' requests. */
  readonly #specs = new Map<bigint, { spec: TaskSpec; creator: Address }>();
  /** The deadlines of nodes with tasks of their own. */
  readonly #due = new Map<bigint, { node: number; deadline: bigint }>();
  /** The places of validation groups. */
  readonly #groups = new Map<bigint, number>();
  #cursor = 0n;
  /** The newest block whose events are known. */
  #heard: { number: bigint; hash: Hex } | undefined;

  constructor(
    private readonly chain: DevelopmentChain,
    private readonly run: Run,
    private readonly objects: Map<string, Uint8Array>,
    private readonly needsInputs: boolean,
    private readonly streams: Streams,
  ) {}

  /** Another node. */
  add(number: number, account: Account, group: number, identity: string, behaviour: Behaviour, delay: number): void {
    this.nodes.push(new Operator(number, account, group, identity, behaviour, delay));
  }

  /** Begins to look at the chain; returns a function that ends it. */
  async start(drive: boolean, onError: (error: unknown) => void): Promise<() => Promise<void>> {
    let stopped = false;
    // Whether there may be a block that is not known, and when that was asked last.
    let [fresh, asked] = [true, 0];
    // The block at which nobody had to make a call; time passes in blocks only.
    let quiet: Hex | undefined;
    const close = await this.chain.onBlock(() => (fresh = true));
    const loop = async () => {
      while (!stopped) {
        try {
          if (fresh || Date.now() >= asked + UNTOLD) {
            [fresh, asked] = [false, Date.now()];
            await this.#hear();
          }
          const { number: head, hash } = this.#heard!;
          for (const node of this.nodes) await this.#work(node);
          for (const node of this.nodes) await this.#reveal(node, head);
          if (drive && hash !== quiet) {
            if (await this.#keep(head)) await this.chain.mine();
            else quiet = hash;
          }
        } catch (error) {
          fresh = true;
          if (!stopped) onError(error);
        }
        await new Promise((resolve) => setTimeout(resolve, TICK));
      }
    };
    const looping = loop();
    return async () => {
      stopped = true;
      await looping;
      close();
    };
  }

  #attempt(account: Account, name: string, args: unknown[]): Promise<string | undefined> {
    return this.chain.attempt(account, name, args, OVERTAKEN);
  }

  #commitments(id: bigint): Commitment[] {
    return this.nodes.flatMap(({ open }) => open.filter((commitment) => commitment.id === id));
  }

  /** Learns the events of new blocks, of all if known ones are gone. */
  async #hear(): Promise<void> {
    const { address, owner } = this.chain;
    const { number, hash } = await owner.getBlock();
    if (hash === this.#heard?.hash) return;
    const { number: last, hash: known } = this.#heard ?? {};
    if (last !== undefined && (await owner.request({ method: "eth_getBlockByNumber", params: [numberToHex(last), false] }))?.hash !== known) this.#forget();
    const blocks = { fromBlock: numberToHex(this.#cursor), toBlock: numberToHex(number) };
    const logs = await owner.request({ method: "eth_getLogs", params: [{ address, ...blocks }] });
    for (const event of decode(logs.map((log) => formatLog(log)))) await this.#learn(event);
    this.#cursor = number + 1n;
    this.#heard = { number, hash };
  }

  /** Forgets what it has learned: somebody went back to a snapshot. */
  #forget(): void {
    for (const node of this.nodes) {
      node.job = undefined;
      node.open = [];
    }
    for (const known of [this.#specs, this.#due, this.#groups]) known.clear();
    this.#cursor = 0n;
    this.#heard = undefined;
  }

  async #learn({ eventName, args, blockNumber }: MusterEvent): Promise<void> {
    const { owner } = this.chain;
    const node = "node" in args ? this.nodes.find(({ number }) => number === args.node) : undefined;
    switch (eventName) {
      case "TaskCreated":
        this.#specs.set(args.id, args);
        break;
      case "TaskStarted":
        if (node) node.job = { id: args.id, group: 0, since: Date.now() };
        this.#due.set(args.id, { node: args.node, deadline: args.deadline });
        break;
      case "MemberStarted":
        if (node) node.job = { id: args.id, group: args.group, since: Date.now() };
        break;
      case "AnswerCommitted": {
        if (node?.job?.id === args.id) node.job = undefined;
        const own = node?.made.get(args.commitment);
        if (own && !node!.open.includes(own)) node!.open.push(Object.assign(own, { group: args.group }));
        for (const commitment of node?.open ?? []) if (commitment.id === args.id) commitment.lotBlock = args.block;
        if (!args.group) {
          // Until then it must be revealed, if it is not sampled.
          const { timestamp } = await owner.getBlock({ blockNumber });
          const { value } = await owner.getParameter({ which: sampleWindow });
          this.#due.set(args.id, { node: args.node, deadline: timestamp + value });
        }
        break;
      }
      case "AnswerRevealed":
        if (node) node.open = node.open.filter(({ id }) => id !== args.id);
        break;
      case "TaskSampled":
        this.#due.delete(args.id);
        break;
      case "GroupFormed":
        this.#groups.set(args.id, args.group);
        for (const commitment of this.#commitments(args.id)) commitment.group = args.group;
        break;
      case "TaskSucceeded":
      case "TaskErrorReported":
      case "TaskAborted":
      case "GroupSettled":
        this.#due.delete(args.id);
        this.#groups.delete(args.id);
        for (const node of this.nodes) {
          if (node.job?.id === args.id) node.job = undefined;
          node.open = node.open.filter(({ id }) => id !== args.id);
        }
    }
  }

  /** Answers a node's task, according to its behaviour. */
  async #work(node: Operator): Promise<void> {
    const { job, number, account } = node;
    if (!job) return;
    if (!node.ready(job)) return this.#show(node, job);
    node.job = undefined;
    const { id, group } = job;
    const { spec, creator } = this.#specs.get(id)!;
    const { input, reply } = await this.#inputOf(spec, creator, node);
    const isGone = this.needsInputs && !input && BigInt(spec.inputDigest) > 0n;
    // The codes of the agent: the task cannot be run, and no store has its input.
    const code = isGone ? 4 : 1;
    const fails = isGone || node.does("fails");
    const result = node.does("cheats") ? stringToBytes(`not a result, by node ${number}`) : await this.run(spec, input);
    const digest = sha256(result);
    const kept = reply ? await sealTo(result, [reply]) : result;
    if (spec.redundancy === 0) {
      if (!fails && this.streams.has(id)) this.streams.show(id, job.shows!, 1);
      if (!fails) this.objects.set(objectName({ digest }), kept);
      await this.#attempt(account, fails ? "reportError" : "submit", fails ? [id, code] : [id, digest]);
      return;
    }
    const salt = bytesToHex(saltOf(crypto.getRandomValues(new Uint8Array(16)), result));
    const sealed = await sealResult(kept, { id, node: number, salt });
    if (!fails) this.objects.set(sealed.name, sealed.bytes);
    const kind = Number(fails);
    const value = fails ? numberToHex(code, { size: 32 }) : spec.kind === 0 ? hashesOf(digest, spec.units) : digest;
    const [commitment, made] = [commitmentOf({ id, node: number, kind, value, salt }), { id, group, kind, value, salt, lotBlock: 0n }];
    node.made.set(sliceHex(commitment, 0, 24), made);
    node.open.push(made);
    await this.#attempt(account, "commit", [id, commitment]);
  }

  /** Streams a slow node's part of a text, if nobody checks it and it is not private. */
  async #show(node: Operator, job: Job): Promise<void> {
    const part = node.part(job);
    if (part <= 0) return;
    if (job.shows === undefined) {
      const { spec, creator } = this.#specs.get(job.id)!;
      const { input, isSecret } = await this.#inputOf(spec, creator, node);
      job.shows = spec.redundancy || !spec.kind || isSecret ? null : await this.run(spec, input);
    }
    if (job.shows) this.streams.show(job.id, job.shows, Math.min(part, 0.99));
  }

  /** A task's input, out of the network's store or those of its creator, opened if it is sealed to the node; and the key to seal the result to. */
  async #inputOf(spec: TaskSpec, creator: Address, node: Operator): Promise<{ input?: Uint8Array; reply?: string | undefined; isSecret?: boolean }> {
    const digest = spec.inputDigest;
    if (BigInt(digest) === 0n) return {};
    let input = this.objects.get(objectName({ digest }));
    if (!input) {
      const stores = publishedStores(await this.chain.owner.getStoresOf({ account: creator }));
      const check = (bytes: Uint8Array, found: Hex) => {
        if (found !== digest) throw new Error(`its digest is ${found}`);
        return bytes;
      };
      const places = async function* () {
        for (const store of stores) yield { store, object: { digest }, check };
      };
      const end = await firstOf(places(), { storeTimeout: 5_000 });
      input = "found" in end ? end.found : undefined;
    }
    return input && isSealed(input) ? { ...(await openInput(input, node.identity)), isSecret: true } : input ? { input } : {};
  }

  /** Reveals a node's commitments whose time has come. */
  async #reveal(node: Operator, head: bigint): Promise<void> {
    if (node.does("withholds")) return;
    for (const commitment of [...node.open]) {
      const { id, group, kind, value, salt, lotBlock } = commitment;
      if (!group && (lotBlock === 0n || head <= lotBlock)) continue;
      const refusal = await this.#attempt(node.account, "reveal", [id, group, node.number, kind, value, salt]);
      if (!refusal) node.open = node.open.filter((other) => other !== commitment);
    }
  }

  /** Makes the calls that somebody must make; returns whether anything waits for another block. */
  async #keep(head: bigint): Promise<boolean> {
    const { owner } = this.chain;
    const { account } = owner;
    const page = { from: 0, count: 16 };
    const [pending, calls] = await Promise.all([owner.getPendingTasks(page), owner.getValidatorDraws(page)]);
    const due = (draws: readonly { drawBlock: bigint }[]) => draws.filter(({ drawBlock }) => drawBlock <= head).length;
    const drawn = due(pending);
    // Draws come in order: a call for one kind alone does nothing while one of the other kind is due before.
    const count = Math.min(drawn + due(calls), page.count);
    if (count) await this.chain.send(account, "dispatch", [count]);
    let waits = pending.length > drawn || calls.length > 0;
    for (const { number, open } of this.nodes) {
      for (const { id, group, lotBlock } of open) {
        if (group || lotBlock === 0n || calls.some((call) => call.id === id)) continue;
        if (head > lotBlock) await this.#attempt(account, "validate", [id, number]);
        else waits = true;
      }
    }
    const { timestamp } = await owner.getBlock();
    for (const [id, { node, deadline }] of this.#due) {
      if (timestamp <= deadline) continue;
      // A lot must be known for some blocks before anybody can end the task for not having revealed.
      if ((await this.#attempt(account, "expire", [node, id])) === "HashUnknown") waits = true;
    }
    for (const [id, place] of this.#groups) {
      const { opens, closes, members } = await owner.getGroup({ place });
      for (const { node, stage, moment } of members) {
        if (stage === 2 && timestamp > moment) await this.#attempt(account, "expire", [node, id]);
      }
      const revealed = members.every(({ stage }) => stage !== 3);
      if (opens > 0n && (revealed || timestamp > closes)) await this.#attempt(account, "settle", [id, place]);
    }
    return waits;
  }
}

/** Perceptual hashes without images: parts of the digest, one for each image, and none of them 0. */
function hashesOf(digest: Hex, images: number): Hex {
  const parts = Array.from({ length: 4 }, (_, i): Hex => {
    const part = sliceHex(digest, 8 * i, 8 * i + 8);
    return i >= images ? numberToHex(0, { size: 8 }) : BigInt(part) === 0n ? numberToHex(1, { size: 8 }) : part;
  });
  return concatHex(parts);
}
