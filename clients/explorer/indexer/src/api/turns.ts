/** Turns at the database for what strangers ask. Of those that wait, the client with the fewest turns is next, so that nobody waits for all of another's questions. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Socket } from "node:net";

/** Turns at a time, and how many of one client may wait. The page needs connections to the database, too: SQL and GraphQL leave it a third of them. */
const [AT_ONCE, SHARE, WAITING] = [8, 3, 64];
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

/** The clients that wait for the same answer, where a proxy names their addresses. Others may come to wait for it, too. */
type Clients = ReadonlySet<string | undefined>;
const NOBODY: Clients = new Set([undefined]);
const asked = new AsyncLocalStorage<Clients>();
/** The clients that wait for what is asked here. */
export const askers = (): Clients => asked.getStore() ?? NOBODY;
/** Asks for these. */
export const asking = <result>(clients: Clients, act: () => result): result => asked.run(clients, act);

export class Turns {
  readonly #atOnce: number;
  #running = 0;
  readonly #own = new Map<string | undefined, number>();
  #waiting: { clients: Clients; go: (client: string | undefined) => void }[] = [];

  /** Of a server with so many connections to its database. */
  constructor(connections = Infinity) {
    this.#atOnce = Math.max(1, Math.min(AT_ONCE, Math.floor(connections / SHARE)));
  }

  /** Whether each of these clients has so many waiting that it must ask later. */
  get isFull(): boolean {
    return [...askers()].every((client) => this.#waiting.filter(({ clients }) => clients.has(client)).length >= WAITING);
  }

  /** Acts when it is the turn of a client that waits for it. */
  async take<result>(act: () => Promise<result>): Promise<result> {
    const clients = askers();
    const client = this.#running < this.#atOnce ? this.#begin(clients) : await new Promise<string | undefined>((go) => this.#waiting.push({ clients, go }));
    try {
      return await act();
    } finally {
      this.#end(client);
    }
  }

  /** The one with the fewest turns, and how many these are. */
  #least(clients: Clients): [client: string | undefined, turns: number] {
    let least: [string | undefined, number] = [undefined, Infinity];
    for (const client of clients) {
      const turns = this.#own.get(client) ?? 0;
      if (turns < least[1]) least = [client, turns];
      if (!turns) break;
    }
    return least;
  }

  /** Begins a turn of the one with the fewest, and returns which that is. */
  #begin(clients: Clients): string | undefined {
    const [client, turns] = this.#least(clients);
    this.#running++;
    this.#own.set(client, turns + 1);
    return client;
  }

  #end(client: string | undefined) {
    this.#running--;
    const left = this.#own.get(client)! - 1;
    if (left) this.#own.set(client, left);
    else this.#own.delete(client);
    const turns = this.#waiting.map(({ clients }) => this.#least(clients)[1]);
    const [next] = this.#waiting.splice(turns.indexOf(Math.min(...turns)), 1);
    if (!next) return;
    const whose = this.#begin(next.clients);
    // Questions of that one alone come after all others, so that of clients with as many turns each is next once.
    const isOwn = ({ clients }: { clients: Clients }) => clients.size === 1 && clients.has(whose);
    this.#waiting = [...this.#waiting.filter((one) => !isOwn(one)), ...this.#waiting.filter(isOwn)];
    next.go(whose);
  }
}
