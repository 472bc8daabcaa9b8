/** What is new, sent as it comes: server-sent events with how far the indexer is and the network's row. */
import type { Context } from "hono";
import { streamSSE } from "hono/streaming";
import { listen, stateNow } from "./state";

/** A sign of life for proxies, in milliseconds. */
const ALIVE = 15_000;

export const live = (c: Context): Response => {
  // No proxy is to keep it back.
  c.header("x-accel-buffering", "no");
  return streamSSE(c, async (stream) => {
    let wake = () => {};
    let newest: string | undefined = JSON.stringify(await stateNow());
    let isOpen = true;
    const stop = listen((state) => {
      newest = told(state);
      wake();
    });
    stream.onAbort(() => {
      isOpen = false;
      wake();
    });
    try {
      while (isOpen) {
        // Only the newest state counts: who reads slowly misses what is over.
        const data = newest;
        newest = undefined;
        await (data === undefined ? stream.write(": \n\n") : stream.writeSSE({ data }));
        if (newest !== undefined || !isOpen) continue;
        await new Promise<void>((resolve) => {
          const late = setTimeout(resolve, ALIVE);
          wake = () => {
            clearTimeout(late);
            resolve();
          };
        });
      }
    } finally {
      stop();
    }
  });
};

/** One state is put into words once, for all who listen. */
let last: { state: object; text: string } | undefined;
const told = (state: object): string => {
  if (last?.state !== state) last = { state, text: JSON.stringify(state) };
  return last.text;
};
