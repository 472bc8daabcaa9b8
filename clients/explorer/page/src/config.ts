/** The network that the page shows, and the servers that it asks: `config.json` beside it, written by `configure.mjs` or served by the indexer. */

export interface Config {
  /** The network's name. */
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
  /** The name of the native token. */
  symbol: string;
  /** The chain's number and name, and its block explorer without a slash at the end; 0 and empty where nobody said. A number must be `rpc`'s, which alone is enough. */
  chainId: number;
  chain: string;
  blockExplorer: string;
  /** Stores of inputs and results, by their URLs. */
  stores: string[];
  /** The store for inputs (PUT under the digest); empty for none. */
  upload: string;
  /** The addresses of the documentation and the sources; empty for none. */
  docs: string;
  source: string;
}

const defaults: Config = { name: "Muster", indexer: "", rpc: "", muster: "", fromBlock: 0, feeds: false, symbol: "ETH", chainId: 0, chain: "", blockExplorer: "", stores: [], upload: "", docs: "", source: "" };

/** Reads it once. A network without a `config.json` is asked for at the page's own address; one that is broken is an error, which says how. */
export async function readConfig(): Promise<Config> {
  const response = await fetch("./config.json", { cache: "no-cache" });
  if (response.status === 404) return defaults;
  if (!response.ok) throw new Error(`config.json could not be read: the server answered ${response.status}.`);
  return configOf(await response.text());
}

/** Parses a `config.json`. */
export function configOf(text: string): Config {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    throw new Error(`config.json is broken: ${(error as Error).message}.`);
  }
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw new Error("config.json is broken: it must be one object.");
  for (const [name, value] of Object.entries(given)) {
    const known = defaults[name as keyof Config];
    if (known === undefined) continue;
    const [is, should] = [value, known].map((one) => (Array.isArray(one) ? "list" : typeof one));
    if (is !== should) throw new Error(`config.json is broken: ${name} must be a ${should}, and is ${JSON.stringify(value)}.`);
  }
  const config = given as Partial<Config>;
  for (const url of [config.indexer, config.rpc, config.upload, ...(config.stores ?? [])]) {
    if (url && !URL.canParse(url, location.href)) throw new Error(`config.json is broken: ${url} is no URL.`);
  }
  // The indexer's own server has the feeds.
  return { ...defaults, feeds: !config.indexer, ...config };
}

/** From now on the page connects to its own address and these endpoints, and to nothing else. */
export function enclose({ indexer, rpc, stores, upload }: Config): void {
  const origins = [indexer, rpc, upload, ...stores].filter(Boolean).map((url) => new URL(url, location.href).origin);
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
