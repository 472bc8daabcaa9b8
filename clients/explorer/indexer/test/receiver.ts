/** A receiver of webhooks: checks each message's signature, and keeps the contents. */
import assert from "node:assert/strict";
import { type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createHmac } from "node:crypto";

export const SECRET = "a secret of the tests";

export interface Told {
  id: string;
  tx: string;
  blockHash: string;
  takenBack?: boolean;
  name: string;
  node: number;
}

export class Receiver {
  /** The received messages, by path. */
  readonly told = new Map<string, Told[]>();
  /** Answers at a path in place of 200; without a response the request waits for ever. */
  readonly answers = new Map<string, (response: ServerResponse) => void>();
  /** Requests, by path, for any answer. */
  readonly asked = new Map<string, number>();
  readonly problems: string[] = [];
  #server = createServer(async (request, response) => {
    const path = request.url!;
    this.asked.set(path, (this.asked.get(path) ?? 0) + 1);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    // As a receiver would: by the header's own time, which must be of now.
    const [, time, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(request.headers["muster-signature"])) ?? [];
    const right = createHmac("sha256", SECRET).update(`${time}.${body}`).digest("hex");
    if (mac !== right || Math.abs(Date.now() / 1_000 - Number(time)) > 60) this.problems.push(`${path}: a wrong signature, ${request.headers["muster-signature"]}`);
    const answer = this.answers.get(path);
    if (answer) return answer(response);
    this.told.set(path, [...(this.told.get(path) ?? []), ...(JSON.parse(body) as { events: Told[] }).events]);
    response.end();
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop() {
    this.#server.close();
    this.#server.closeAllConnections();
    assert.deepEqual(this.problems, []);
  }

  /** The events of a receiver that removes those taken back and counts repeated ones once: "id blockHash", in order. */
  known(path: string): string[] {
    const known = new Map<string, string>();
    for (const { id, blockHash, takenBack } of this.told.get(path) ?? []) {
      if (!takenBack) known.set(id, blockHash);
      else if (known.get(id) === blockHash) known.delete(id);
    }
    return [...known].map(([id, blockHash]) => `${id} ${blockHash}`).sort();
  }
}
