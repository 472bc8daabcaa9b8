/** An indexer that runs: asks it by SQL and GraphQL over HTTP, and knows how far it is. */
import type { Hex } from "viem";

export type Value = string | number | boolean | null | Value[] | { [name: string]: Value };
export type Row = Record<string, Value>;

export const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export class Indexer {
  constructor(readonly url: string) {}

  /** Rows, by SQL over HTTP. */
  async sql(sql: string, params: Value[] = []): Promise<Row[]> {
    const asked = new URL("/sql/db", this.url);
    asked.searchParams.set("sql", JSON.stringify({ json: { sql, params } }));
    for (let tries = 0; ; tries++) {
      const response = await fetch(asked);
      const text = await response.text();
      if (response.ok) return JSON.parse(text).rows;
      // While a reorganisation's rows are undone they are locked, and Ponder lets a reader wait for half a second.
      if (tries >= 60 || !text.includes("lock timeout")) throw new Error(`${sql}: ${response.status} ${text}`);
      await sleep(500);
    }
  }

  /** All rows of a table, page by page in the order of its key. */
  async all(table: string, ...key: string[]): Promise<Row[]> {
    const rows: Row[] = [];
    for (let page = 1_000; page === 1_000; ) {
      const more = await this.sql(`select * from "${table}" order by ${key.join(", ")} limit 1000 offset ${rows.length}`);
      rows.push(...more);
      page = more.length;
    }
    return rows;
  }

  async graphql(query: string): Promise<Record<string, { items: Row[] }>> {
    const headers = { "content-type": "application/json" };
    const response = await fetch(new URL("/graphql", this.url), { method: "POST", headers, body: JSON.stringify({ query }) });
    const { data, errors } = (await response.json()) as { data: Record<string, { items: Row[] }>; errors?: unknown };
    if (errors) throw new Error(`${query}: ${JSON.stringify(errors)}`);
    return data;
  }

  /** The newest indexed block; -1 if it does not answer. */
  async block(): Promise<number> {
    try {
      const status = (await (await fetch(new URL("/status", this.url))).json()) as Record<string, { block: { number: number } }>;
      return Object.values(status)[0]?.block.number ?? -1;
    } catch {
      return -1;
    }
  }

  /** Waits until it has indexed a block. */
  async reach(block: number, milliseconds = 600_000) {
    for (const until = Date.now() + milliseconds; (await this.block()) < block; ) {
      if (Date.now() > until) throw new Error(`the indexer is at ${await this.block()}, not at block ${block}, after ${milliseconds / 1_000} s`);
      await sleep(200);
    }
  }
}

/** A call by JSON-RPC. */
export async function rpc<result>(url: string, method: string, params: unknown[] = []): Promise<result> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
  const { result, error } = (await response.json()) as { result: result; error?: { message: string } };
  if (error) throw new Error(`${method}: ${error.message}`);
  return result;
}

/** The newest block. */
export const head = async (url: string) => Number(await rpc<Hex>(url, "eth_blockNumber"));
