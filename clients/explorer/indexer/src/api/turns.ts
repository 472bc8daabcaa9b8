/** Turns at the database for what strangers ask. Of those that wait, the client with the fewest turns is next, so that nobody waits for all of another's questions. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Socket } from "node:net";

/** Turns at a time: a server has 28 connections to its database, and the page needs them, too. Of one client that may wait, so many more. */
const [AT_ONCE, WAITING] = [8, 64];
/** Each may take so many milliseconds of one processor, and as much memory for each of its steps. Unless told so, Ponder would take half a gigabyte, and repeat it nine times. */
export const MOST_TIME = 10_000;
export const within = (milliseconds: number) => `set local statement_timeout = ${Math.max(1, Math.ceil(milliseconds))}; set local work_mem = '64MB'; set local max_parallel_workers_per_gather = 0`;

/** Acts, and gives up the connection to the database once it has sent more bytes than are left. */
export async function counted<result>(stream: Socket, question: { bytes: number }, act: () => Promise<result>): Promise<result> {
  const read = ({ length }: Buffer) => {
    question.bytes -= length;
    if (question.bytes < 0) stream.destroy();
  };
  stream.on("data", read);
  try {
    return await act();
  } finally {
    stream.off("data", read);
  }
}

/** The client that asks, where a proxy names its address. */
export const asker = new AsyncLocalStorage<string>();

export class Turns {
  #running = 0;
  readonly #own = new Map<string | undefined, number>();
  #waiting: { client: string | undefined; go: () => void }[] = [];

  /** Whether this client has so many waiting that it must ask later. */
  get isFull(): boolean {
    const client = asker.getStore();
    return this.#waiting.filter((one) => one.client === client).length >= WAITING;
  }

  /** Acts when it is its turn. */
  async take<result>(act: () => Promise<result>): Promise<result> {
    const client = asker.getStore();
    if (this.#running < AT_ONCE) this.#begin(client);
    else await new Promise<void>((go) => this.#waiting.push({ client, go }));
    try {
      return await act();
    } finally {
      this.#end(client);
    }
  }

  #begin(client: string | undefined) {
    this.#running++;
    this.#own.set(client, (this.#own.get(client) ?? 0) + 1);
  }

  #end(client: string | undefined) {
    this.#running--;
    const left = this.#own.get(client)! - 1;
    if (left) this.#own.set(client, left);
    else this.#own.delete(client);
    const turns = this.#waiting.map((one) => this.#own.get(one.client) ?? 0);
    const [next] = this.#waiting.splice(turns.indexOf(Math.min(...turns)), 1);
    if (!next) return;
    // Its others come after everybody's, so that of clients with as many turns each is next once.
    const isOwn = ({ client }: { client: string | undefined }) => client === next.client;
    this.#waiting = [...this.#waiting.filter((one) => !isOwn(one)), ...this.#waiting.filter(isOwn)];
    this.#begin(next.client);
    next.go();
  }
}
