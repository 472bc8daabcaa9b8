/**
 * Live updates: the indexer sends new events, with the changes in the answers of the open view. After each event every open view asks again; the sent
 * changes answer it, or else the indexer.
 */
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { ApiError, type Head, type State, askState, askingOf, change, follow, headOf, know, stateOf, versionOf } from "./api";
import { config } from "./config";

/** The state of the data, and the obstacles to newer data. */
export interface Live extends State {
  /** The reason why the indexer does not answer. */
  error: string | undefined;
  /** By how many seconds the chain's clock is ahead of this machine's; development chains are moved on by hand. */
  ahead: number;
}

/** Milliseconds between attempts where nothing comes by itself, and as long as the first news may take before it is asked for. */
const [PERIOD, PATIENCE] = [2_000, 5_000];
/** The shortest time between a view's requests, in milliseconds; and between its redraws from sent changes. */
const [REST, DRAW] = [1_000, 200];
/** The most followed questions, the most characters of all of them in an address, and the milliseconds after which a view has asked its questions. */
const [FOLLOWED, ADDRESS, SETTLED] = [8, 8_000, 300];
let live: Live = { head: undefined, network: undefined, chain: undefined, error: undefined, ahead: 0, ready: false, from: 0n, left: undefined, chainId: 0 };
const listeners = new Set<() => void>();
const wall = () => Date.now() / 1_000;
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function hear(state: State): void {
  const ahead = Math.max(0, state.head ? Number(state.head.timestamp) - wall() : 0, live.ahead);
  live = { ...state, error: undefined, ahead };
  know(state);
  for (const listener of listeners) listener();
}

function fail(error: unknown): void {
  live = { ...live, error: (error as Error).message };
  for (const listener of listeners) listener();
}

/** The open views' questions, by view. */
const open = new Map<object, readonly string[]>();
function wanted(): string[] {
  const asked = new Set([...open.values()].flat().filter((one) => !one.startsWith("programs")));
  let room = ADDRESS;
  return [...asked].sort().slice(0, FOLLOWED).filter((one) => (room -= encodeURIComponent(one).length) > 0);
}
let turn = () => {};
let turning: ReturnType<typeof setTimeout> | undefined;
/** Other questions are followed when the view that asks them has settled. */
function use(who: object, asked: readonly string[] | undefined): void {
  const before = open.get(who);
  if (before?.join("\n") === asked?.join("\n")) return;
  if (asked) open.set(who, asked);
  else open.delete(who);
  clearTimeout(turning);
  turning = setTimeout(() => turn(), SETTLED);
}

/** Listens until the connection is lost, the page is hidden, or the followed questions change; returns the reason. */
function listen(): Promise<"lost" | "heard" | "turned"> {
  return new Promise((resolve) => {
    const asked = wanted();
    const source = new EventSource(`${config.indexer}/api/live${asked.length ? `?${asked.map((one) => `ask=${encodeURIComponent(one)}`).join("&")}` : ""}`);
    let heard = false;
    const end = (why: "lost" | "heard" | "turned") => {
      source.close();
      follow([]);
      clearTimeout(late);
      document.removeEventListener("visibilitychange", seen);
      turn = () => {};
      resolve(why);
    };
    const over = () => end(heard ? "heard" : "lost");
    const seen = () => document.hidden && over();
    const late = setTimeout(over, PATIENCE);
    turn = () => wanted().join("\n") !== asked.join("\n") && end("turned");
    document.addEventListener("visibilitychange", seen);
    source.onmessage = ({ data }) => {
      heard = true;
      clearTimeout(late);
      const told = JSON.parse(data as string) as { follows?: string[]; answers?: Parameters<typeof change>[0] };
      const state = stateOf(told);
      know(state);
      if (told.answers) change(told.answers);
      if (told.follows) follow(told.follows);
      hear(state);
    };
    source.onerror = over;
  });
}

const visible = () =>
  new Promise<void>((resolve) => {
    if (!document.hidden) return resolve();
    document.addEventListener("visibilitychange", () => resolve(), { once: true });
  });

/** Begins to listen; if a proxy holds events back, asks now and then. */
export async function watch(): Promise<void> {
  for (;;) {
    if (live.head) await visible();
    const came = await listen();
    if (came !== "turned" && (came === "lost" || !document.hidden)) {
      await askState().then(hear, fail);
      await sleep(PERIOD);
    }
  }
}

/** The chain's time now, in seconds since 1970. */
export const chainNow = (): number => wall() + live.ahead;

function useRedraw(): () => void {
  return useReducer((count: number) => count + 1, 0)[1] as () => void;
}

/** The newest state, drawn anew whenever it changes. */
export function useLive(): Live {
  const redraw = useRedraw();
  useEffect(() => {
    listeners.add(redraw);
    return () => void listeners.delete(redraw);
  }, []);
  return live;
}

/** The users of the clock: one clock for all of them, which runs while there is one. */
const watchers = new Set<() => void>();
let ticking: ReturnType<typeof setInterval> | undefined;

/** A value derived from the chain's time, in seconds since 1970; redrawn when a second has changed it. */
export function useClock<T extends string | number>(told: (now: number) => T): T {
  const redraw = useRedraw();
  const value = told(chainNow());
  const shown = useRef({ told, value });
  shown.current = { told, value };
  useEffect(() => {
    const tick = () => {
      if (shown.current.told(chainNow()) !== shown.current.value) redraw();
    };
    watchers.add(tick);
    ticking ??= setInterval(() => watchers.forEach((one) => one()), 1_000);
    return () => {
      watchers.delete(tick);
      if (watchers.size) return;
      clearInterval(ticking);
      ticking = undefined;
    };
  }, []);
  return value;
}

/** The chain's time, drawn anew every second. */
export const useNow = (): number => useClock(Math.floor);

/** A question's state so far. */
export interface Asked<T> {
  data: T | undefined;
  error: string | undefined;
  /** Of which block the data is. */
  head: Head | undefined;
}

/**
 * Asks, and asks again after each event since the last answer; the former answer stays until the new one is there.
 *
 * @param key Names the question: another key is another question, whose predecessor's answer is dropped.
 */
export function useAsked<T>(key: string, question: (signal: AbortSignal) => Promise<T>): Asked<T> {
  const { network, head } = useLive();
  // Before the first event there is a block without one, and before that nothing is known: it is asked all the same.
  const version = network || head ? versionOf(network) : undefined;
  const [asked, setAsked] = useState<Asked<T> & { key: string }>({ key, data: undefined, error: undefined, head: undefined });
  const busy = useRef<{ key: string; again: boolean; stop: AbortController } | undefined>(undefined);
  const answered = useRef<{ key: string; block: bigint; version: string } | undefined>(undefined);
  const who = useRef({}).current;
  // Nobody waits any more for the answer under another key, or for a closed view.
  useEffect(
    () => () => {
      busy.current?.stop.abort();
      busy.current = undefined;
      use(who, undefined);
    },
    [key],
  );
  useEffect(() => {
    // One at a time: a request while an answer is on its way causes one more afterwards.
    if (busy.current?.key === key) {
      busy.current.again = true;
      return;
    }
    /** Whether the last answer holds every event that is known, and none that a reorganisation has taken back since it was asked for. */
    const hasAll = () => answered.current?.key === key && live.network !== undefined && answered.current.block >= live.network.block && answered.current.version === versionOf(live.network);
    if (hasAll()) return;
    const own = { key, again: false, stop: new AbortController() };
    busy.current = own;
    const run = async () => {
      do {
        own.again = false;
        const before = live.network;
        let later: number | undefined;
        const begun = performance.now();
        // Each answer is of a block of its own.
        const { signal, stop } = child(own.stop.signal);
        try {
          const data = await question(signal);
          const head = headOf(signal);
          if (busy.current === own) {
            answered.current = head && { key, block: head.block, version: versionOf(before ?? live.network) };
            setAsked({ key, data, error: undefined, head });
          }
        } catch (error) {
          answered.current = undefined;
          if (error instanceof ApiError) later = error.seconds;
          if (busy.current === own) setAsked((before) => ({ key, data: before.key === key ? before.data : undefined, head: before.head, error: (error as Error).message }));
        }
        stop();
        const { asked: questions, requests, waited } = askingOf(signal);
        if (busy.current === own) use(who, [...questions]);
        // Slow questions are asked less often: they rest three quarters of the time.
        const took = performance.now() - begun - waited;
        await sleep(later ? 1_000 * later : requests ? Math.max(REST - took, 3 * took) : DRAW);
        own.again ||= later !== undefined;
        own.again = answered.current ? !hasAll() && live.network !== undefined : own.again;
      } while (own.again && busy.current === own);
      if (busy.current === own) busy.current = undefined;
    };
    void run();
  }, [key, version]);
  return asked.key === key ? asked : { data: undefined, error: undefined, head: undefined };
}

/** A signal that is aborted with another one. */
function child(other: AbortSignal): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController();
  const abort = () => controller.abort();
  other.addEventListener("abort", abort);
  return { signal: controller.signal, stop: () => other.removeEventListener("abort", abort) };
}
