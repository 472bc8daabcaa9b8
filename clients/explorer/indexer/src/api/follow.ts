/**
 * Followed questions: each is answered once for each state of the tables, for all its followers, who get the changes since the answer before.
 * An open page sends no requests, so a thousand of them cost hardly more than one.
 */
import { type Answer, type Question, answerOf, restsUntil } from "./cache";
import { type Patch, patchOf } from "./patch";
import { type State, listen } from "./state";
import { askers, asking } from "./turns";

/** The most questions of one listener, and of all of them; the most characters of each. */
export const [MOST, MOST_IN_ALL, LONGEST] = [8, 500, 4_000];
/** The most bytes of a followed answer, and of all of them. One that is larger is not followed on: whoever wants it asks. */
const [LARGEST, LARGEST_IN_ALL] = [2 * 2 ** 20, 64 * 2 ** 20];
/** So many milliseconds a state waits for the answers that belong to it. */
const PATIENCE = 500;

/** The followers of the same questions. They get the same messages. */
interface Audience {
  asked: readonly string[];
  /** The last answers sent. */
  answers: Map<string, Answer>;
  /** With the client of each. */
  tell: Map<(message: string) => void, string | undefined>;
  /** Of the state that was told last. */
  told: object | undefined;
  waits: ReturnType<typeof setTimeout> | undefined;
}
interface Followed {
  question: Question;
  audiences: Set<Audience>;
  answer: Answer | undefined;
  busy: boolean;
  isTooLarge: boolean;
}

/** One state and the answers since: from which ETag to which, and how. Without `by` it is the same answer still, of this state. */
export type Message = State & { answers: Record<string, { from: string; to: string; by?: Patch }> };

const followed = new Map<string, Followed>();
const audiences = new Map<string, Audience>();
let state: State | undefined;

let bytes = 0;
const sizeOf = (answer: Answer | undefined): number => answer?.body.length ?? 0;
/** Holds the newest answer, or none. */
function hold(one: Followed, answer: Answer | undefined): void {
  bytes += sizeOf(answer) - sizeOf(one.answer);
  one.answer = answer;
}

/** The same two answers are compared for every audience that follows the question. */
const values = new WeakMap<Answer, unknown>();
const valueOf = (answer: Answer): unknown => {
  if (!values.has(answer)) values.set(answer, JSON.parse(answer.body.toString()));
  return values.get(answer);
};
const patches = new WeakMap<Answer, { from: Answer; patch: Patch | undefined }>();
function between(from: Answer, to: Answer): Patch | undefined {
  const known = patches.get(to);
  if (known?.from === from) return known.patch;
  const patch = patchOf(valueOf(from), valueOf(to));
  patches.set(to, { from, patch });
  return patch;
}

function flush(audience: Audience): void {
  clearTimeout(audience.waits);
  audience.waits = undefined;
  if (!state) return;
  const answers: Message["answers"] = {};
  for (const asked of audience.asked) {
    const { answer } = followed.get(asked)!;
    const before = audience.answers.get(asked);
    if (!answer || answer === before) continue;
    audience.answers.set(asked, answer);
    if (before === undefined || before.etag === answer.etag) answers[asked] = { from: answer.etag, to: answer.etag };
    else answers[asked] = { from: before.etag, to: answer.etag, by: between(before, answer)! };
  }
  if (audience.told === state && !Object.keys(answers).length) return;
  audience.told = state;
  const message = JSON.stringify({ ...state, answers } satisfies Message);
  for (const tell of audience.tell.keys()) tell(message);
}

const isFresh = (asked: string) => {
  const { answer, isTooLarge } = followed.get(asked)!;
  return isTooLarge || (answer?.version ?? -1) >= state!.version;
};
const flushIfFresh = (audience: Audience) => audience.asked.every(isFresh) && flush(audience);

/** Answers it until the answer is of the newest state. */
async function refresh(one: Followed): Promise<void> {
  if (one.busy) return;
  one.busy = true;
  try {
    while (one.audiences.size && !one.isTooLarge && state && (one.answer?.version ?? -1) < state.version) {
      // Not for the client who happened to wake the server, but for all that follow.
      const clients = new Set([...one.audiences].flatMap(({ tell }) => [...tell.values()]));
      const { version } = state;
      const answer = await asking(clients, () => answerOf(one.question, version));
      // Nobody follows it any more.
      if (!one.audiences.size || !state) break;
      const isNew = answer !== one.answer;
      one.isTooLarge = sizeOf(answer) > LARGEST || bytes - sizeOf(one.answer) + sizeOf(answer) > LARGEST_IN_ALL;
      hold(one, one.isTooLarge ? undefined : answer);
      // Late answers are sent at once; the rest together with the others of the state.
      if (isNew) for (const audience of one.audiences) (audience.told === state ? flush : flushIfFresh)(audience);
      if (answer.version < state.version) await new Promise((resolve) => setTimeout(resolve, Math.max(10, restsUntil(answer) - Date.now())));
    }
  } catch {
    // The database does not answer: the next state asks again, and a page that waits asks by itself.
  }
  one.busy = false;
}

let stop: (() => void) | undefined;
function hear(next: State): void {
  state = next;
  for (const audience of audiences.values()) {
    if (audience.asked.every(isFresh)) flush(audience);
    else audience.waits ??= setTimeout(() => flush(audience), PATIENCE);
  }
  for (const one of followed.values()) void refresh(one);
}

/** Sends every state from now on, with the changes in the answers to these questions; returns a function that ends it. */
export function follow(questions: ReadonlyMap<string, Question>, now: State, tell: (message: string) => void): () => void {
  const asked = [...questions.keys()].sort();
  // A question may have any character in it.
  const key = JSON.stringify(asked);
  let audience = audiences.get(key);
  if (!audience) {
    audience = { asked, answers: new Map(), tell: new Map(), told: undefined, waits: undefined };
    audiences.set(key, audience);
    for (const [name, question] of questions) {
      let one = followed.get(name);
      if (!one) followed.set(name, (one = { question, audiences: new Set(), answer: undefined, busy: false, isTooLarge: false }));
      one.audiences.add(audience);
    }
  }
  audience.tell.set(tell, [...askers()][0]);
  state ??= now;
  stop ??= listen(hear);
  for (const name of asked) void refresh(followed.get(name)!);
  const own = audience;
  return () => {
    own.tell.delete(tell);
    if (own.tell.size || audiences.get(key) !== own) return;
    audiences.delete(key);
    clearTimeout(own.waits);
    for (const name of asked) {
      const one = followed.get(name)!;
      one.audiences.delete(own);
      if (one.audiences.size) continue;
      hold(one, undefined);
      followed.delete(name);
    }
    if (audiences.size) return;
    stop?.();
    stop = state = undefined;
  };
}

/** Whether there is room for these questions. */
export const hasRoomFor = (asked: Iterable<string>): boolean => followed.size + [...asked].filter((one) => !followed.has(one)).length <= MOST_IN_ALL;
