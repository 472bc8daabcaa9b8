/** Which network the page shows, and whom it asks: `config.json` beside it, written by `configure.mjs` or served by the indexer. */

export interface Config {
  /** What people call the network. */
  name: string;
  /** The indexer's address without a path; empty where it serves the page itself. */
  indexer: string;
  /** A chain's RPC endpoint, for checks that are made in the browser; empty for none. */
  rpc: string;
  /** The contract, and the block in which it was created; both only for those checks. */
  muster: string;
  fromBlock: number;
  /** Whether the indexer's server has a feed for each node. */
  feeds: boolean;
  /** What the native token is called. */
  symbol: string;
}

const defaults: Config = { name: "Muster", indexer: "", rpc: "", muster: "", fromBlock: 0, feeds: false, symbol: "ETH" };

/** Reads it once. A network without a `config.json` is asked for at the page's own address. */
export async function readConfig(): Promise<Config> {
  const response = await fetch("./config.json", { cache: "no-cache" });
  if (!response.ok) return defaults;
  const given = (await response.json()) as Partial<Config>;
  // The indexer's own server has the feeds.
  return { ...defaults, feeds: !given.indexer, ...given };
}

/** From now on the page connects to its own address and these endpoints, and to nothing else, whatever happens in it. */
export function enclose({ indexer, rpc }: Config): void {
  const origins = [indexer, rpc].filter(Boolean).map((url) => new URL(url, location.href).origin);
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = `connect-src ${["'self'", ...origins].join(" ")}`;
  document.head.append(policy);
}

/** Set before anything is shown. */
export let config = defaults;
export const setConfig = (known: Config) => {
  config = known;
};
