/** The server's routes: GraphQL, SQL, sums and lists for the page, live changes, feeds of nodes, and the page. */
import { db } from "ponder:api";
import schema from "ponder:schema";
import { serveStatic } from "@hono/node-server/serve-static";
import { Hono } from "hono";
import { compress } from "hono/compress";
import { etag } from "hono/etag";
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { client, graphql } from "ponder";
import { address, chainId, startBlock } from "../settings";
import { cached } from "./cache";
import { boundedData } from "./data";
import { feed } from "./feed";
import { limited } from "./limit";
import { live } from "./live";
import { questionAt } from "./questions";
import { BadQuestion } from "./refusal";
import { bounded } from "./sql";
import { stateNow } from "./state";
import { programs } from "./sums";

/** The folder of the page's build, relative to the working directory. */
const page = process.env.PAGE || "../page/dist";

const app = new Hono();

app.use("*", limited);
// Ponder would show browsers a page whose scripts are of another host, where wallets are connected to the explorer.
app.get("/graphql", (c) => c.text("GraphQL is asked by POST", 405, { allow: "POST" }));
app.use("/graphql", compress(), boundedData, graphql({ db, schema }));
app.use("/sql/*", bounded, client({ db, schema }));
const ask = async (query: string): Promise<string> => {
  const headers = { "content-type": "application/json" };
  const response = await app.request("/graphql", { method: "POST", headers, body: JSON.stringify({ query }) });
  if (!response.ok) throw new HTTPException(response.status as ContentfulStatusCode, { message: await response.text() });
  return response.text();
};
const questionOf = (path: string, query: URLSearchParams) => questionAt(path, query, ask);
app.get("/api/programs", async (c) => c.body(await programs(), 200, { "content-type": "application/json", "cache-control": "public, max-age=60" }));
app.get("/api/live", live(questionOf));
app.get("/api/state", async (c) => c.json(await stateNow()));
app.get("/api/*", async (c) => {
  try {
    const url = new URL(c.req.url);
    const question = questionOf(url.pathname.slice("/api/".length), url.searchParams);
    return question ? await cached(c, question) : c.notFound();
  } catch (error) {
    if (error instanceof BadQuestion) return c.text(error.message, 400);
    // Ponder would say 500.
    if (error instanceof HTTPException) return c.text(error.message, error.status);
    throw error;
  }
});

app.get("/feeds/nodes/:file{[0-9]+\\.rss}", feed);

/** The page's configuration: the chain's endpoint is for checks made in the browser. The indexer's own may hold a key, and is not included. */
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
/** Files named by their content never change; the page itself is revalidated each time, and mostly not sent again. */
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
