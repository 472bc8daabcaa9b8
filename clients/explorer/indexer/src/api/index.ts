/** What is served: GraphQL, SQL, feeds of nodes, and the page. */
import { db } from "ponder:api";
import schema from "ponder:schema";
import { serveStatic } from "@hono/node-server/serve-static";
import { Hono } from "hono";
import { client, graphql } from "ponder";
import { address, startBlock } from "../settings";
import { feed } from "./feed";
import { bounded } from "./sql";

/** Where the page's build is, seen from the working directory. */
const page = process.env.PAGE || "../page/dist";

const app = new Hono();

app.use("/graphql", graphql({ db, schema }));
app.use("/sql/*", bounded, client({ db, schema }));
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
  }),
);
app.use("/*", serveStatic({ root: page }));

export default app;
