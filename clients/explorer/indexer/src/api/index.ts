/** What is served: GraphQL, SQL, sums and lists for the page, what is new, feeds of nodes, and the page. */
import { db } from "ponder:api";
import schema from "ponder:schema";
import { serveStatic } from "@hono/node-server/serve-static";
import { Hono } from "hono";
import { etag } from "hono/etag";
import { client, graphql } from "ponder";
import { address, chainId, startBlock } from "../settings";
import { cached } from "./cache";
import { feed } from "./feed";
import { BadQuestion, page as pageOf } from "./lists";
import { live } from "./live";
import { bounded } from "./sql";
import { stateNow } from "./state";
import { network, programs, rivals } from "./sums";

/** Where the page's build is, seen from the working directory. */
const page = process.env.PAGE || "../page/dist";

const app = new Hono();

app.use("/graphql", graphql({ db, schema }));
app.use("/sql/*", bounded, client({ db, schema }));
/** The same questions by GET, so that answers can be kept: many ask the same. */
const DATA_MOST = 20_000;
app.get("/api/data", (c) => {
  const query = c.req.query("query") ?? "";
  if (!query || query.length > DATA_MOST) return c.text(`"query" has to be a question of GraphQL of at most ${DATA_MOST} characters`, 400);
  return cached(c, `data ${query}`, async () => {
    const headers = { "content-type": "application/json" };
    const answer = await app.request("/graphql", { method: "POST", headers, body: JSON.stringify({ query }) });
    return answer.text();
  });
});
app.get("/api/network", (c) => cached(c, "network", network));
app.get("/api/rivals", (c) => cached(c, "rivals", rivals));
app.get("/api/programs", async (c) => c.body(await programs(), 200, { "content-type": "application/json", "cache-control": "public, max-age=60" }));
app.get("/api/list/:list", async (c) => {
  const asked = Object.entries(c.req.query()).filter(([name]) => name !== "v").sort(([a], [b]) => (a < b ? -1 : 1));
  try {
    return await cached(c, `list ${c.req.param("list")} ${new URLSearchParams(asked)}`, () => pageOf(c));
  } catch (error) {
    if (error instanceof BadQuestion) return c.text(error.message, 400);
    throw error;
  }
});
app.get("/api/live", live);
app.get("/api/state", async (c) => c.json(await stateNow()));

app.get("/feeds/nodes/:file{[0-9]+\\.rss}", feed);

/** What the page has to know: the chain's endpoint is for checks made in the browser. The indexer's own may hold a key, and is not told. */
app.get("/config.json", (c) =>
  c.json({
    name: process.env.NETWORK_NAME || "Muster",
    indexer: "",
    rpc: process.env.PUBLIC_RPC_URL ?? "",
    muster: address,
    fromBlock: startBlock,
    symbol: process.env.SYMBOL || "ETH",
    chainId,
    chain: process.env.CHAIN_NAME ?? "",
    blockExplorer: (process.env.BLOCK_EXPLORER ?? "").replace(/\/$/, ""),
    stores: (process.env.STORES ?? "").split(",").filter(Boolean),
    upload: (process.env.UPLOAD ?? "").replace(/\/$/, ""),
    docs: process.env.DOCS ?? "",
    source: process.env.SOURCE ?? "",
  }),
);
/** What the build names by its content never changes; the page itself is asked for each time, and mostly not sent again. */
app.use("/assets/*", async (c, next) => {
  await next();
  if (c.res.ok) c.res.headers.set("cache-control", "public, max-age=31536000, immutable");
});
app.use("/", etag(), async (c, next) => {
  await next();
  c.res.headers.set("cache-control", "no-cache");
});
app.use("/*", serveStatic({ root: page, precompressed: true }));

export default app;
