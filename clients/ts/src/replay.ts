/**
 * Repeats transactions: all of Muster's rules, compiled to WASM, on the contract's storage words of the block before. Compares the
 * outcome (draws, payments, every event) with the chain's. For `verifyTask(client, { ..., replay })`.
 *
 * The node must have the storage of that block: an archive node, or one whose history goes that far back. The user trusts it for words,
 * blocks and transactions, but for none of the contract's results.
 */
import {
  type Address,
  type Hash,
  type Hex,
  type RpcLog,
  bytesToHex,
  concatHex,
  hexToBytes,
  keccak256,
  numberToHex,
  pad,
  zeroHash,
} from "viem";
import type { MusterClient, MusterParameters } from "./client.js";
import { replayer } from "./generated/replayer.js";

/** The outcome of a repeated transaction. */
export interface Replayed {
  /** Whether all its events equal the chain's; undefined if it cannot be repeated. */
  same: boolean | undefined;
  /** The comparison, or why there is none. */
  because: string;
}

/** Parameters of {@link replayTransaction}. */
export type ReplayParameters = MusterParameters & {
  /** The transaction, and the block that it is in. */
  hash: Hash;
  blockNumber: bigint;
};

interface Exports {
  memory: WebAssembly.Memory;
  room(length: number): number;
  run(call: number, length: number, now: bigint, block: bigint, signed: number): number;
}

interface Transaction {
  hash: Hash;
  from: Address;
  to: Address | null;
  value: Hex;
  input: Hex;
}

interface Block {
  timestamp: Hex;
  transactions: Transaction[];
}

/** `createTask`, the only call that asks whether its sender has code, as an account has that delegates to some (EIP-7702). */
const CREATE_TASK = "0xaa051b75";
/** The results for refused calls, and for calls that change nothing. */
const [REFUSED, UNKNOWN] = [0, 2];
/** The most rounds of a call: words whose addresses do not depend on each other are asked for together. */
const ROUNDS = 2_000;

let compiling: Promise<WebAssembly.Module> | undefined;
/** Compiled on first use. */
const load = (): Promise<WebAssembly.Module> =>
  (compiling ??= (async () => {
    const bytes = Uint8Array.from(atob(replayer), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(stream).arrayBuffer());
  })());

/** The known part of the chain's state before a block. */
class Past {
  readonly words = new Map<Hex, Hex>();
  readonly hashes = new Map<bigint, Hex>();
  /** The requested and unknown words and hashes. */
  readonly missing = new Map<Hex | bigint, Promise<void>>();

  constructor(
    private readonly client: MusterClient,
    private readonly address: Address,
    private readonly before: bigint,
  ) {}

  /** A word; zero until it is known. */
  word(slot: Hex): Hex {
    return this.#get(this.words, slot, async () =>
      pad((await this.client.request({ method: "eth_getStorageAt", params: [this.address, slot, numberToHex(this.before)] })) ?? "0x"),
    );
  }

  /** A block's hash; zero until it is known, or where there is none. */
  hash(number: bigint): Hex {
    return this.#get(this.hashes, number, async () => {
      const block = await this.client.request({ method: "eth_getBlockByNumber", params: [numberToHex(number), false] });
      return block?.hash ?? zeroHash;
    });
  }

  #get<key extends Hex | bigint>(known: Map<key, Hex>, key: key, ask: () => Promise<Hex>): Hex {
    const value = known.get(key);
    if (value === undefined && !this.missing.has(key)) this.missing.set(key, ask().then((value) => void known.set(key, value)));
    return value ?? zeroHash;
  }
}

/** A log as it is compared: topics, then data. */
const plain = ({ topics, data }: { topics: readonly Hex[]; data: Hex }): string => [...topics, data].join();

/** The transactions of a block, one after the other, on the state before it. */
class Round {
  readonly #written: [Hex, Hex][] = [];
  #logs: string[] = [];
  #exports!: Exports;

  private constructor(private readonly past: Past) {}

  static async start(past: Past): Promise<Round> {
    const round = new Round(past);
    const { exports } = await WebAssembly.instantiate(await load(), { chain: round.#imports() });
    round.#exports = exports as unknown as Exports;
    return round;
  }

  #bytes(at: number, length = 32): Uint8Array {
    return new Uint8Array(this.#exports.memory.buffer, at, length);
  }

  #imports() {
    const hex = (at: number, length?: number) => bytesToHex(this.#bytes(at, length));
    const put = (at: number, value: Hex) => this.#bytes(at).set(hexToBytes(value));
    return {
      load: (slot: number, word: number) => {
        const key = hex(slot);
        put(word, this.#written.findLast(([at]) => at === key)?.[1] ?? this.past.word(key));
      },
      store: (slot: number, word: number) => void this.#written.push([hex(slot), hex(word)]),
      keccak: (at: number, length: number, hash: number) => put(hash, keccak256(this.#bytes(at, length))),
      block_hash: (number: bigint, hash: number) => {
        const found = this.past.hash(number);
        put(hash, found);
        return Number(found !== zeroHash);
      },
      log: (count: number, at: number, length: number) => {
        const topics = Array.from({ length: count }, (_, i) => hex(at + 32 * i));
        this.#logs.push(plain({ topics, data: length > 32 * count ? hex(at + 32 * count, length - 32 * count) : "0x" }));
      },
      // A mark combines the number of writes with that of logs; there are never a million writes.
      mark: () => this.#written.length + 2 ** 20 * this.#logs.length,
      undo: (mark: number) => {
        this.#written.length = mark % 2 ** 20;
        this.#logs.length = Math.floor(mark / 2 ** 20);
      },
    };
  }

  /** Repeats a transaction; returns whether it is accepted, and its logs. */
  run(address: Address, { from, value, input }: Transaction, signed: boolean, now: bigint, block: bigint): { taken: number; logs: string[] } {
    const call = hexToBytes(concatHex([from, address, pad(value), input]));
    const at = this.#exports.room(call.length);
    this.#bytes(at, call.length).set(call);
    this.#logs = [];
    return { taken: this.#exports.run(at, call.length, now, block, Number(signed)), logs: this.#logs };
  }
}

/** Repeats a transaction, after those of the same block that called Muster before it. */
export async function replayTransaction(client: MusterClient, { address, hash, blockNumber }: ReplayParameters): Promise<Replayed> {
  const cannot = (because: string): Replayed => ({ same: undefined, because });
  const at = numberToHex(blockNumber);
  const [block, logs] = (await Promise.all([
    client.request({ method: "eth_getBlockByNumber", params: [at, true] }),
    client.request({ method: "eth_getLogs", params: [{ address, fromBlock: at, toBlock: at }] }),
  ])) as [Block | null, RpcLog[]];
  const last = block?.transactions.findIndex((transaction) => transaction.hash === hash) ?? -1;
  if (!block || last < 0) return cannot(`The node does not have block ${blockNumber} with this transaction.`);
  // Every call that changes Muster leaves an event.
  const logsOf = (transaction: Transaction) => logs.filter((log) => log.transactionHash === transaction.hash).map((log) => plain(log));
  const before = block.transactions.slice(0, last + 1).filter((transaction) => logsOf(transaction).length);
  if (before.at(-1)?.hash !== hash) return cannot("The transaction has no events of Muster: it was reverted, or the node does not give them.");
  if (before.some(({ to }) => to?.toLowerCase() !== address.toLowerCase())) {
    return cannot("A contract made the call, or one before it in its block; a contract's calls are in no block.");
  }
  const untold = (what: string, error: unknown) =>
    cannot(`The node does not tell ${what} in block ${blockNumber - 1n}: ${(error as Error).message.split("\n")[0]}`);
  const creators = [...new Set(before.filter(({ input }) => input.startsWith(CREATE_TASK)).map(({ from }) => from))];
  // Before the block and after it: an account may get code, or lose it, somewhere within.
  const codes = creators.map(async (from) => {
    const at = [blockNumber - 1n, blockNumber].map((number) => client.request({ method: "eth_getCode", params: [from, numberToHex(number)] }));
    const [had, has] = (await Promise.all(at)).map((code) => (code ?? "0x") !== "0x");
    return { from, had, has };
  });
  const delegates = new Set<Address>();
  try {
    for (const { from, had, has } of await Promise.all(codes)) {
      if (had !== has) return cannot(`The account ${from} has code only before or after block ${blockNumber}, in which it created a task.`);
      if (had) delegates.add(from);
    }
  } catch (error) {
    return untold("whether an account had code", error);
  }
  const past = new Past(client, address, blockNumber - 1n);
  for (let i = 0; i < ROUNDS; i++) {
    let found: Replayed;
    try {
      found = compare(await Round.start(past), before, logsOf, delegates, address, BigInt(block.timestamp), blockNumber);
    } catch (error) {
      // With words unknown, the result means nothing, and the call may stop anywhere.
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      found = { same: false, because: `Done again it stops: ${error.message}.` };
    }
    const missing = [...past.missing.values()];
    if (!missing.length) return found;
    past.missing.clear();
    try {
      await Promise.all(missing);
    } catch (error) {
      return untold("Muster's storage", error);
    }
  }
  return cannot("It takes more words of storage than any call does.");
}

/** Repeats the transactions until one differs. */
function compare(
  round: Round,
  transactions: Transaction[],
  logsOf: (transaction: Transaction) => string[],
  delegates: ReadonlySet<Address>,
  address: Address,
  now: bigint,
  block: bigint,
): Replayed {
  let count = 0;
  for (const transaction of transactions) {
    const { taken, logs } = round.run(address, transaction, !delegates.has(transaction.from), now, block);
    const told = logsOf(transaction);
    if (taken === UNKNOWN) return { same: undefined, because: `This version does not know the function ${transaction.input.slice(0, 10)}.` };
    const differs = taken === REFUSED ? 0 : Array.from({ length: Math.max(told.length, logs.length) }, (_, i) => i).find((i) => told[i] !== logs[i]);
    if (differs !== undefined) {
      const what = taken === REFUSED ? "is refused" : `differs from its event ${differs + 1} on`;
      return { same: false, because: `Done again on the words of block ${block - 1n}, transaction ${transaction.hash} ${what}.` };
    }
    count = told.length;
  }
  return { same: true, because: `Done again on the words of block ${block - 1n}, the transaction comes to the same ${count} events.` };
}
