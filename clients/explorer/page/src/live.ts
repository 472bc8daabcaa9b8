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

/** The chain's time, drawn anew every second. */
export function useNow(): number {
  const redraw = useRedraw();
  useEffect(() => {
    const timer = setInterval(redraw, 1_000);
    return () => clearInterval(timer);
  }, []);
  return chainNow();
}

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
  const busy = useRef<{ key: string; again: boolean } | undefined>(undefined);
  useEffect(() => {
    if (version === undefined) return;
    // One at a time: who asks while an answer is on its way asks once more afterwards.
    if (busy.current?.key === key) {
      busy.current.again = true;
      return;
    }
    const own = { key, again: false };
    busy.current = own;
    const stop = new AbortController();
    const run = async () => {
      do {
        own.again = false;
        try {
          const data = await question(stop.signal);
          if (busy.current === own) setAsked({ key, data, error: undefined });
        } catch (error) {
          if (busy.current === own) setAsked((before) => ({ key, data: before.key === key ? before.data : undefined, error: (error as Error).message }));
        }
      } while (own.again && busy.current === own);
      if (busy.current === own) busy.current = undefined;
    };
    void run();
  }, [key, version]);
  useEffect(() => () => void (busy.current = undefined), []);
  return asked.key === key ? asked : { data: undefined, error: undefined };
}
