/**
 * Answers while they are made: server-sent events of a task's node, each with the SHA-256 of all bytes so far, so that the last of them is the
 * digest on chain. docs/streams.md has the convention; clients/vectors.json has test vectors for both libraries.
 */
import { sha256 } from "@noble/hashes/sha2";
import { type Hex, bytesToHex, stringToBytes } from "viem";
import type { MusterClient } from "./client.js";
import { MusterError, NoResultError } from "./errors.js";
import type { Task } from "./life.js";
import { storesOfNodes } from "./published.js";
import { type Result, type RetrievalParameters, getResult, isOfImages } from "./results.js";
import { entriesOf } from "./stores.js";
import { objectUrl } from "./stores/http.js";
import { type WaitForTaskParameters, waitForTask } from "./wait.js";

/** The most bytes of an answer that are streamed. */
const SHOWN = 4 * 2 ** 20;
/** The longest line of a stream: a piece of 16 KiB of which every character is escaped, and a little. */
const LINE = 128 * 2 ** 10;
/** The most bytes of a connection: of 4 MiB of which every character is escaped, in the most pieces, twice; and a little. */
const WIRE = 80 * 2 ** 20;
/** Milliseconds of silence after which a stream is requested again, the first pause before that, which doubles, and the longest. */
const [SILENT, PAUSE, LONGEST] = [45_000, 250, 4_000];
/** The prefix of an entry that says where answers are streamed. */
const ENTRY = "stream+";

// ---------------------------------------------------------------- the text, and its hash

/**
 * A stream's defects:
 * - `hash`: a hash does not match the text so far, so it was changed on its way;
 * - `differs`: it contradicts itself;
 * - `gap`: a part is missing;
 * - `tooLong`: it has more than 4 MiB;
 * - `malformed`: it is no such stream.
 */
export type StreamProblem = "hash" | "differs" | "gap" | "tooLong" | "malformed";

const PROBLEMS: Record<StreamProblem, string> = {
  hash: "A piece does not match its hash: it was changed on its way.",
  differs: "The stream shows another text than it did before.",
  gap: "The stream leaves something out.",
  tooLong: `The stream shows more than ${SHOWN} bytes.`,
  malformed: "There is no stream of an answer.",
};

/** A stream is not credible. */
export class StreamProblemError extends MusterError {
  override name = "StreamProblemError";

  constructor(readonly problem: StreamProblem) {
    super(PROBLEMS[problem]);
  }
}

/** The text of whole characters, with every mark that it begins with. */
const decoded = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

/** Throws unless the condition holds. */
function demand(holds: boolean, problem: StreamProblem): asserts holds {
  if (!holds) throw new StreamProblemError(problem);
}

/** The text so far, which grows, and its hash. */
class Shown {
  // Twice as long each time, so that a text of many small pieces is not copied for each of them.
  #buffer = new Uint8Array(2 ** 14);
  #hash = sha256.create();
  length = 0;

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.length);
  }

  get digest(): Hex {
    return bytesToHex(this.#hash.clone().digest());
  }

  /** Takes a piece, and returns the new text in it. An interrupted stream may begin again: the known part must then be the same. */
  take({ from, text, after }: { from?: unknown; text?: unknown; after?: unknown }): string {
    demand(Number.isSafeInteger(from) && (from as number) >= 0 && typeof text === "string" && typeof after === "string", "malformed");
    const [at, piece] = [from as number, stringToBytes(text)];
    demand(at <= this.length, "gap");
    demand(at + piece.length <= SHOWN, "tooLong");
    const again = this.length - at;
    if (again) {
      const known = this.bytes;
      demand(
        piece.subarray(0, again).every((byte, i) => byte === known[at + i]),
        "differs",
      );
    }
    const rest = piece.subarray(again);
    if (!rest.length) return "";
    // A piece cannot end in the middle of a character.
    demand((rest[0]! & 0xc0) !== 0x80, "differs");
    const hash = this.#hash.clone().update(rest);
    demand(bytesToHex(hash.clone().digest()) === after.toLowerCase(), "hash");
    this.#hash = hash;
    const length = this.length + rest.length;
    if (length > this.#buffer.length) {
      const more = new Uint8Array(Math.max(2 * this.#buffer.length, length));
      more.set(this.bytes);
      this.#buffer = more;
    }
    this.#buffer.set(rest, this.length);
    this.length = length;
    return decoded(rest);
  }

  /** Throws unless an end matches the text. */
  end({ bytes, digest }: { bytes?: unknown; digest?: unknown }): void {
    demand(typeof bytes === "number" && typeof digest === "string", "malformed");
    demand(bytes <= this.length, "gap");
    demand(bytes === this.length, "differs");
    demand(digest.toLowerCase() === this.digest, "hash");
  }
}

// ---------------------------------------------------------------- the events

/** The reason why a node does not stream the rest of an answer. */
const WHYS = ["failed", "long", "whole", "changed"];

/** Reads a stream that the caller fetches, see {@link streamReader}. */
export interface StreamReader {
  /** Reads on. Returns the new text, and whether there was an end, after which nothing comes. Throws a {@link StreamProblemError}. */
  read: (bytes: Uint8Array) => { text: string; over: boolean };
  /** The text so far. */
  readonly bytes: Uint8Array;
  /** Its SHA-256: after the whole text, the digest on chain. */
  readonly digest: Hex;
}

/** Reads server-sent events as they come, within limits. */
export function streamReader(): StreamReader {
  const known = new Shown();
  let text = "";
  const read = eventsOf(known, (more) => (text += more));
  return {
    read: (bytes) => {
      text = "";
      const over = read(bytes);
      return { text, over };
    },
    get bytes() {
      return known.bytes;
    },
    get digest() {
      return known.digest;
    },
  };
}

/** Passes new text to `onText`; returns true once there is an end. */
function eventsOf(shown: Shown, onText: (text: string) => void): (bytes: Uint8Array) => boolean {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let [rest, returned, event, data, read] = ["", false, "", undefined as string | undefined, 0];

  const told = (): boolean => {
    const [name, said] = [event, data];
    [event, data] = ["", undefined];
    // Unknown events of later versions are ignored.
    if (said === undefined || !["piece", "end", "stopped"].includes(name)) return false;
    let value: Record<string, unknown> | null;
    try {
      value = JSON.parse(said);
    } catch {
      throw new StreamProblemError("malformed");
    }
    demand(!!value && typeof value === "object", "malformed");
    if (name === "piece") {
      const text = shown.take(value);
      if (text) onText(text);
    } else if (name === "end") shown.end(value);
    else demand(WHYS.includes(value.why as string), "malformed");
    return name !== "piece";
  };
  const line = (text: string): boolean => {
    if (!text) return told();
    const colon = text.indexOf(":");
    const [field, value] = colon < 0 ? [text, ""] : [text.slice(0, colon), text.slice(colon + 1).replace(/^ /, "")];
    if (field === "event") event = value;
    if (field === "data") data = data === undefined ? value : `${data}\n${value}`;
    demand((data?.length ?? 0) <= 2 * LINE, "malformed");
    return false;
  };
  return (bytes) => {
    demand((read += bytes.length) <= WIRE, "tooLong");
    let text: string;
    try {
      text = decoder.decode(bytes, { stream: true });
    } catch {
      throw new StreamProblemError("malformed");
    }
    if (!text) return false;
    // The second character of a line's end.
    if (returned && text.startsWith("\n")) text = text.slice(1);
    returned = text ? text.endsWith("\r") : false;
    // A line that comes byte by byte is looked through once.
    const lines = /[\r\n]/.test(text) ? (rest + text).split(/\r\n|\r|\n/) : [rest + text];
    rest = lines.pop()!;
    for (const one of lines) {
      demand(one.length <= LINE, "malformed");
      if (line(one)) return true;
    }
    demand(rest.length <= LINE, "malformed");
    return false;
  };
}

const rests = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const over = () => (clearTimeout(timer), signal.removeEventListener("abort", over), resolve());
    const timer = setTimeout(over, milliseconds);
    signal.addEventListener("abort", over);
  });

/** Reads until there is an end, or until `signal`: from one place after the other, and again after an interruption. */
async function follow(urls: string[], shown: Shown, onText: (text: string) => void, signal: AbortSignal): Promise<void> {
  let pause = PAUSE;
  for (let at = 0; urls.length && !signal.aborted; at = (at + 1) % (urls.length || 1)) {
    const own = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => own.abort(), SILENT);
    };
    alive();
    try {
      // An unnecessary header would make a page send a preflight request.
      const headers: Record<string, string> = { accept: "text/event-stream", ...(shown.length && { "last-event-id": String(shown.length) }) };
      const response = await fetch(urls[at]!, { headers, redirect: "error", signal: AbortSignal.any([own.signal, signal]) });
      if (response.status === 403) return;
      if (response.ok) {
        demand(!!response.headers.get("content-type")?.startsWith("text/event-stream") && !!response.body, "malformed");
        const read = eventsOf(shown, (text) => ((pause = PAUSE), onText(text)));
        const body = response.body.getReader();
        for (let next; !(next = await body.read()).done; alive()) if (read(next.value)) return;
      }
    } catch (error) {
      // A place that contradicted itself is not asked again; the chain has the rest.
      if (error instanceof StreamProblemError && error.problem !== "gap") urls.splice(at--, 1);
    } finally {
      clearTimeout(timer);
      own.abort();
    }
    await rests(pause, signal);
    pause = Math.min(2 * pause, LONGEST);
  }
}

// ---------------------------------------------------------------- a task

/** A node answered differently from its stream. The streamed text is void; `result` is the answer. */
export class StreamError extends MusterError {
  override name = "StreamError";

  constructor(
    readonly id: bigint,
    readonly result: Result,
  ) {
    super(`The answer to task ${id} differs from its node's stream: the result has the digest ${result.digest}. Do not rely on the streamed text.`);
  }
}

/** More of an answer. */
export interface StreamedPiece {
  /** The next part of the text. */
  text: string;
  /** Only in the last piece: the whole result, checked against the chain's answer. Before it the text is unproven. */
  result?: Result | undefined;
}

/** Parameters of {@link streamTask}: those of waiting for a task's result. */
export type StreamTaskParameters = Omit<WaitForTaskParameters, "until"> & RetrievalParameters;

/**
 * A task's answer while its node makes it, piece by piece, and in the end the proven result. The rest that the node does not stream comes from the
 * stores, so the pieces are always the whole text. Tasks of policies 1 to 3, private ones, and nodes without streams give one piece at the end.
 *
 * Throws a {@link StreamError} if the node's answer differs from its stream, and the errors of `waitForTask({ until: "result" })`.
 */
export async function* streamTask(
  client: MusterClient,
  { stores, published = true, configured, identity, maxBytes, storeTimeout, ...waiting }: StreamTaskParameters,
): AsyncGenerator<StreamedPiece, void, undefined> {
  const { address, id, signal } = waiting;
  const over = new AbortController();
  const both = AbortSignal.any(signal ? [over.signal, signal] : [over.signal]);
  const shown = new Shown();
  const texts: string[] = [];
  let [wake, reads] = [() => {}, false];
  let end: { task: Task } | { error: unknown } | undefined;

  const read = async (node: number) => {
    const [said = ""] = await storesOfNodes(client, address, [node]);
    const entries = entriesOf(said).filter((entry) => /^stream\+https?:\/\//.test(entry) && (published === true || (published && published(entry))));
    const urls = entries.map((entry) => objectUrl(entry.slice(ENTRY.length), `${id}`));
    await follow(urls, shown, (text) => (texts.push(text), wake()), both);
  };
  const onChange = (task: Task) => {
    waiting.onChange?.(task);
    if (task.status !== "running" || task.spec.redundancy || reads) return;
    reads = true;
    // Optional: the result comes anyway.
    read(task.node).catch(() => {});
  };
  waitForTask(client, { ...waiting, signal: both, onChange })
    .then(
      (task) => (end = { task }),
      (error: unknown) => (end = { error }),
    )
    .finally(() => wake());
  try {
    while (texts.length || !end) {
      if (!texts.length) await new Promise<void>((resolve) => (wake = resolve));
      for (const text of texts.splice(0)) yield { text };
    }
    over.abort();
    if ("error" in end) throw end.error;
    const { task } = end;
    if (task.status !== "succeeded") throw new NoResultError(task);
    const { digest } = shown;
    const answer = isOfImages(task) ? undefined : task.answers.find(({ value }) => value === digest);
    const result: Result = answer
      ? { bytes: shown.bytes, digest, answer, store: "the stream", task }
      : await getResult(client, { address, task, stores, published, configured, identity, maxBytes, storeTimeout, signal });
    const known = shown.bytes;
    if (result.bytes.length < known.length || !known.every((byte, i) => byte === result.bytes[i])) throw new StreamError(id, result);
    yield { text: decoded(result.bytes.subarray(known.length)), result };
  } finally {
    over.abort();
  }
}

// ---------------------------------------------------------------- the texts in it

/**
 * Finds the texts in a growing result of the executors `openai` and `transformers`, `{"answers":[{"text":"..."}]}`: call the returned function with
 * each piece, and show its result. Puts an empty line between several answers. Leaves anything that is no JSON object as it is.
 */
export function answerTexts(): (piece: string) => string {
  let mode: "begin" | "plain" | "json" = "begin";
  let [inString, escape, string, last, key, shows, shown] = [false, "", "", "", "", false, 0];

  const letter = (one: string): string => {
    if (!inString) {
      if (one === '"') {
        [inString, string, shows] = [true, "", last === ":" && key === "text"];
        return shows && shown++ ? "\n\n" : "";
      }
      if (!/\s/.test(one)) [key, last] = [one === ":" ? string : "", one];
      return "";
    }
    let said = one;
    if (escape) {
      escape += one;
      if (escape[1] === "u" && escape.length < 6) return "";
      try {
        said = JSON.parse(`"${escape}"`);
      } catch {
        said = "\ufffd";
      }
      escape = "";
    } else if (one === "\\") {
      escape = one;
      return "";
    } else if (one === '"') {
      inString = false;
      if (last === ":") [key, last] = ["", '"'];
      return "";
    }
    if (shows) return said;
    // A key is short.
    if (string.length < 16) string += said;
    return "";
  };
  return (piece) => {
    if (mode === "begin") {
      if (!piece.trim()) return "";
      mode = piece.trimStart().startsWith("{") ? "json" : "plain";
    }
    return mode === "plain" ? piece : Array.from(piece, letter).join("");
  };
}
