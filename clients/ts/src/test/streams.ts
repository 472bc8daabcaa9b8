/** Answers of slow nodes while they are made, as agents show them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { sha256 } from "viem";

interface Show {
  bytes: Uint8Array;
  /** The end of each piece. */
  ends: number[];
  over: boolean;
  readers: Map<ServerResponse, number>;
}

/** The streams by task. */
export class Streams {
  readonly #shows = new Map<string, Show>();

  /** Streams a part of a result, from 0 to 1, up to the end of a word; with all of it the stream ends. */
  show(id: bigint, bytes: Uint8Array, part: number): void {
    const key = String(id);
    const show: Show = this.#shows.get(key) ?? { bytes, ends: [], over: false, readers: new Map() };
    this.#shows.set(key, show);
    const end = part < 1 ? bytes.lastIndexOf(32, Math.floor(part * bytes.length)) : bytes.length;
    if (end > (show.ends.at(-1) ?? 0)) show.ends.push(end);
    show.over ||= part >= 1;
    for (const reader of show.readers.keys()) this.#write(show, reader);
  }

  /** Whether a task has a stream. */
  has(id: bigint): boolean {
    return this.#shows.has(String(id));
  }

  /** Answers a request for `/stream/ID`. */
  serve(request: IncomingMessage, response: ServerResponse, headers: Record<string, string>): void {
    const show = this.#shows.get(request.url!.slice("/stream/".length));
    if (!show) return void response.writeHead(404, headers).end();
    response.writeHead(200, { ...headers, "content-type": "text/event-stream" }).flushHeaders();
    show.readers.set(response, Number(request.headers["last-event-id"] ?? 0));
    response.on("close", () => show.readers.delete(response));
    this.#write(show, response);
  }

  #write(show: Show, reader: ServerResponse): void {
    const event = (name: string, data: unknown) => reader.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n`);
    for (const end of show.ends) {
      const from = show.readers.get(reader)!;
      if (end <= from) continue;
      const text = new TextDecoder().decode(show.bytes.subarray(from, end));
      event("piece", { from, text, after: sha256(show.bytes.subarray(0, end)) });
      reader.write(`id: ${end}\n\n`);
      show.readers.set(reader, end);
    }
    if (!show.over) return;
    event("end", { bytes: show.bytes.length, digest: sha256(show.bytes) });
    reader.end("\n");
  }
}
