/** How often a client may ask, and how many streams it may have open, where a proxy before the server names its address. Each server counts for itself, in its memory. */
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { requestsPerMinute, streamsAtOnce } from "../settings";
import { clientOf } from "./client";
import { asking } from "./turns";

/** SQL, GraphQL and feeds are for programs, and cost more than the page's questions: the share of requests that may be of them. */
const COSTLY = 0.1;
const costly = /^\/(sql\/|graphql$|feeds\/)/;
/** Streams go on for as long as the client listens. */
const endless = /^\/(api|sql)\/live$/;

const limits = requestsPerMinute && {
  all: new RateLimiterMemory({ points: requestsPerMinute, duration: 60 }),
  costly: new RateLimiterMemory({ points: Math.ceil(requestsPerMinute * COSTLY), duration: 60 }),
};

/** The number of streams that each client has open. */
const streams = new Map<string, number>();

/** A refusal for programs: its name, the limit, and the seconds until the client may ask again, if they are known. */
interface Refusal {
  error: "TooManyRequests" | "TooManyStreams";
  limit: number;
  seconds?: number;
  message: string;
}
const refuse = (c: Context, refusal: Refusal): Response =>
  c.json(refusal, 429, { "cache-control": "no-store", ...(refusal.seconds && { "retry-after": String(refusal.seconds) }) });

/** Answers 429 to a client that asked too often within a minute, or has too many streams open. Requests that bypass the proxy, as health checks do, are not counted. */
export const limited = createMiddleware<{ Bindings: HttpBindings }>(async (c, next) => {
  // The proxy writes the address that it sees as the last one; the client controls those before it.
  const address = c.req.header("x-forwarded-for")?.split(",").at(-1)?.trim();
  if (!address) return next();
  const client = clientOf(address);
  if (limits) {
    const asked = [limits.all, ...(costly.test(c.req.path) ? [limits.costly] : [])];
    for (const limit of asked) {
      try {
        await limit.consume(client);
      } catch (refused) {
        if (!(refused instanceof RateLimiterRes)) throw refused;
        const seconds = Math.ceil(refused.msBeforeNext / 1_000);
        return refuse(c, { error: "TooManyRequests", limit: limit.points, seconds, message: `Too many requests: ask again in ${seconds} s` });
      }
    }
  }
  const { outgoing } = c.env;
  if (streamsAtOnce && endless.test(c.req.path) && !outgoing.closed) {
    const open = streams.get(client) ?? 0;
    if (open >= streamsAtOnce) return refuse(c, { error: "TooManyStreams", limit: streamsAtOnce, message: `Too many streams: ${open} are open, and one must end first` });
    streams.set(client, open + 1);
    outgoing.once("close", () => {
      const left = streams.get(client)! - 1;
      if (left) streams.set(client, left);
      else streams.delete(client);
    });
  }
  return asking(new Set([client]), next);
});
