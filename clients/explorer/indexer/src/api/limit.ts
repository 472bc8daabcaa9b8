/** How often an address may ask, where a proxy before the server says which address asks. Each server counts for itself, in its memory. */
import { createMiddleware } from "hono/factory";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { requestsPerMinute } from "../settings";

/** SQL, GraphQL and feeds are for programs, and cost more than the page's questions: the share of requests that may be of them. */
const COSTLY = 0.1;
const costly = /^\/(sql\/|graphql$|feeds\/)/;

const limits = requestsPerMinute && {
  all: new RateLimiterMemory({ points: requestsPerMinute, duration: 60 }),
  costly: new RateLimiterMemory({ points: Math.ceil(requestsPerMinute * COSTLY), duration: 60 }),
};

/** Answers 429 to an address that asked too often within a minute. Requests that bypass the proxy, as health checks do, are not counted. */
export const limited = createMiddleware(async (c, next) => {
  // The proxy writes the address that it sees as the last one; the client controls those before it.
  const address = c.req.header("x-forwarded-for")?.split(",").at(-1)?.trim();
  if (!limits || !address) return next();
  try {
    await limits.all.consume(address);
    if (costly.test(c.req.path)) await limits.costly.consume(address);
  } catch (refused) {
    if (!(refused instanceof RateLimiterRes)) throw refused;
    const seconds = Math.ceil(refused.msBeforeNext / 1_000);
    return c.text(`Too many requests: ask again in ${seconds} s`, 429, { "retry-after": String(seconds), "cache-control": "no-store" });
  }
  return next();
});
