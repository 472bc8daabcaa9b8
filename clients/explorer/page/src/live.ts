/** What is new: one question every two seconds, and every view that is open asks again when there was an event since. */
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { type Head, type Row, askChain, askHead } from "./api";

/** The state of the data, and of what keeps it from being newer. */
export interface Live {
  head: Head | undefined;
  network: Row<"networks"> | undefined;
  /** The chain's own newest block, where an RPC endpoint is configured. */
  chain: bigint | undefined;
  /** Why the last question failed. */
  error: string | undefined;
  /** By how many seconds the chain's clock is ahead of this machine's; development chains are moved on by hand. */
  ahead: number;
}

const PERIOD = 2_000;
let live: Live = { head: undefined, network: undefined, chain: undefined, error: undefined, ahead: 0 };
const listeners = new Set<() => void>();
const wall = () => Date.now() / 1_000;

async function look(): Promise<void> {
  if (document.hidden && live.head) return;
  try {
    const [{ head, network }, chain] = await Promise.all([askHead(), askChain()]);
    const ahead = Math.max(0, Number(head.timestamp) - wall(), live.ahead);
    live = { head, network, chain, error: undefined, ahead };
  } catch (error) {
    live = { ...live, error: (error as Error).message };
  }
  for (const listener of listeners) listener();
}

/** Begins to look. */
export async function watch(): Promise<void> {
  document.addEventListener("visibilitychange", () => void look());
  for (;;) {
    await look();
    await new Promise((resolve) => setTimeout(resolve, PERIOD));
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

/** Whoever shows a time: one clock for all of them, which runs while there is one. */
const watchers = new Set<() => void>();
let ticking: ReturnType<typeof setInterval> | undefined;

/** What the chain's time, in seconds since 1970, comes to; drawn anew when a second has changed that. */
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

/** What a question came to so far. */
export interface Asked<T> {
  data: T | undefined;
  error: string | undefined;
}

/**
 * Asks, and asks again whenever there was an event since the last answer; what was there stays until the new is.
 *
 * @param key Names the question: another key is another question, whose predecessor's answer is dropped.
 */
export function useAsked<T>(key: string, question: (signal: AbortSignal) => Promise<T>): Asked<T> {
  const { network } = useLive();
  const version = network?.events;
  const [asked, setAsked] = useState<Asked<T> & { key: string }>({ key, data: undefined, error: undefined });
  const busy = useRef<{ key: string; again: boolean; stop: AbortController } | undefined>(undefined);
  // Nobody waits any more for what was asked under another name, or by a view that is left.
  useEffect(
    () => () => {
      busy.current?.stop.abort();
      busy.current = undefined;
    },
    [key],
  );
  useEffect(() => {
    if (version === undefined) return;
    // One at a time: who asks while an answer is on its way asks once more afterwards.
    if (busy.current?.key === key) {
      busy.current.again = true;
      return;
    }
    const own = { key, again: false, stop: new AbortController() };
    busy.current = own;
    const run = async () => {
      do {
        own.again = false;
        const begun = performance.now();
        try {
          const data = await question(own.stop.signal);
          if (busy.current === own) setAsked({ key, data, error: undefined });
        } catch (error) {
          if (busy.current === own) setAsked((before) => ({ key, data: before.key === key ? before.data : undefined, error: (error as Error).message }));
        }
        // What takes long is asked less often: three quarters of the time there is rest.
        if (own.again) await new Promise((resolve) => setTimeout(resolve, 3 * (performance.now() - begun)));
      } while (own.again && busy.current === own);
      if (busy.current === own) busy.current = undefined;
    };
    void run();
  }, [key, version]);
  return asked.key === key ? asked : { data: undefined, error: undefined };
}
