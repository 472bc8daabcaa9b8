/** The frame around all views: the navigation, the age of the data, and the obstacles to newer data. */
import { render } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { config, enclose, readConfig, setConfig } from "./config";
import { count, duration, moment, percent } from "./format";
import { lazy } from "./lazy";
import { type Live, useLive, useNow, watch } from "./live";
import { Copy, Outside } from "./parts";
import { address, useHere } from "./router";
import "./style.css";
import { FleetView } from "./views/fleet";
import { Account, Accounts, Model, Models, Nodes, Search, Tasks } from "./views/lists";
import { Network } from "./views/network";
import { Stream } from "./views/stream";

const VIEWS = [
  ["network", "Network"],
  ["tasks", "Tasks"],
  ["nodes", "Nodes"],
  ["fairness", "Fairness"],
  ["history", "History"],
  ["live", "Live"],
  ["whatif", "What if"],
  ["fleet", "Your fleet"],
  ["act", "Do"],
] as const;

const FairnessView = lazy(() => import("./views/fairness").then(({ FairnessView }) => FairnessView));
const WhatIf = lazy(() => import("./views/whatif").then(({ WhatIf }) => WhatIf));
const TaskView = lazy(() => import("./views/task").then(({ TaskView }) => TaskView));
const NodeView = lazy(() => import("./views/node").then(({ NodeView }) => NodeView));
const History = lazy(() => import("./views/history").then(({ History }) => History));
const Act = lazy(() => import("./views/act").then(({ Act }) => Act));

function View({ view, what }: { view: string; what: string }) {
  switch (view) {
    case "network":
      return <Network />;
    case "fairness":
      return <FairnessView />;
    case "whatif":
      return <WhatIf />;
    case "tasks":
      return <Tasks />;
    case "nodes":
      return <Nodes />;
    case "accounts":
      return <Accounts />;
    case "models":
      return <Models />;
    case "history":
      return <History />;
    case "act":
      return <Act what={what} />;
    case "task":
      return <TaskView what={what} />;
    case "node":
      return <NodeView what={what} />;
    case "account":
      return <Account what={what} />;
    case "model":
      return <Model what={what} />;
    case "live":
      return <Stream />;
    case "fleet":
      return <FleetView />;
    case "search":
      return <Search />;
    default:
      return <p class="empty card">There is no such page.</p>;
  }
}

/** So many seconds without a block are worth a banner, where the chain does not answer; chains with Stylus have several a second while anything happens. */
const OLD = 60;
/** So many blocks behind the chain are. */
const BEHIND = 20n;

const isBehind = ({ head, chain }: Pick<Live, "head" | "chain">) => head !== undefined && chain !== undefined && chain - head.block > BEHIND;

function Status() {
  const live = useLive();
  const { head, error, ready, chain } = live;
  const now = useNow();
  if (!head) return <span class="status">{error ? "not connected" : live.from || live.chain ? "no block yet" : "connecting …"}</span>;
  const age = Math.max(0, now - Number(head.timestamp));
  return (
    <span class="status" data-test="status">
      <i class={error ? "bad" : !ready || isBehind(live) ? "wait" : "good"} aria-hidden="true" />
      Block {count(head.block)}
      {!error && !ready ? (chain === undefined ? ", still reading" : ` of ${count(chain)}`) : `, ${duration(age)} old`}
    </span>
  );
}

/** How far the indexer is on its way to the newest block, and how long that takes. */
function Progress({ live: { head, chain, from, left } }: { live: Live }) {
  const at = head?.block ?? from;
  const share = chain !== undefined && chain > from ? Number(at - from) / Number(chain - from) : undefined;
  return (
    <>
      The indexer is still reading the chain: {head ? <>block {count(at)}</> : "no block yet"}
      {chain !== undefined && (
        <>
          {" "}
          of {count(chain)}
          {share !== undefined && ` (${percent(share, share > 0.99 ? 2 : 0)})`}
        </>
      )}
      . {left === undefined ? "How long it will take is not known yet." : `At the pace of the last minute it will take ${duration(left)} more.`}{" "}
      {head && <>Every figure is of the block that stands beside it; what came after {moment(head.timestamp)} is missing.</>}
      {share !== undefined && <progress aria-label="blocks read" max={1} value={share} />}
    </>
  );
}

function Banner() {
  const live = useLive();
  const { head, chain, error, network, ready } = live;
  const now = useNow();
  if (error) {
    return (
      <p class="banner bad" role="alert">
        {error} {head ? `The data are of block ${count(head.block)}, ${duration(now - Number(head.timestamp))} old.` : ""} It is tried again every two seconds.
      </p>
    );
  }
  if (!head && !live.chainId) return null;
  if (!ready || isBehind(live)) {
    return (
      <p class="banner wait" data-test="progress">
        <Progress live={live} />
      </p>
    );
  }
  if (network?.paused) return <p class="banner wait" role="status">The owner has stopped new tasks and joins.</p>;
  const age = head ? now - Number(head.timestamp) : 0;
  return chain === undefined && age > OLD ? (
    <p class="banner wait" role="status">
      The newest block is {duration(age)} old: the chain is quiet, or the indexer is behind it. The chain does not answer the indexer, so it cannot tell which.
    </p>
  ) : null;
}

/** The contract, its chain, and links for more about it. */
function Footer() {
  const { chainId } = useLive();
  const chain = config.chainId || chainId;
  return (
    <footer>
      {config.muster && (
        <p>
          Contract{" "}
          <Outside kind="address" of={config.muster}>
            <code>{config.muster}</code>
          </Outside>{" "}
          <Copy text={config.muster} what="the contract's address" />
          {chain > 0 && (
            <>
              {" "}
              on {config.chain || "the chain"} {config.chain ? `(chain ${chain})` : `with the id ${chain}`}
            </>
          )}
          {config.fromBlock > 0 && <>, since block {count(config.fromBlock)}</>}
        </p>
      )}
      <p>
        {[
          ["Accounts", address("accounts")],
          ["Models", address("models")],
          ["Documentation", config.docs],
          ["Source", config.source],
        ]
          .filter(([, href]) => href)
          .map(([label, href], i) => (
            <>
              {i > 0 && " · "}
              <a href={href}>{label}</a>
            </>
          ))}
      </p>
    </footer>
  );
}

function Theme() {
  const [scheme, setScheme] = useState(document.documentElement.dataset.theme ?? "");
  const dark = scheme === "dark" || (scheme === "" && matchMedia("(prefers-color-scheme: dark)").matches);
  const turn = () => {
    const next = dark ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("muster-theme", next);
    } catch {
      // Then it is the system's again next time.
    }
    setScheme(next);
    dispatchEvent(new Event("themechange"));
  };
  return (
    <button type="button" class="plain" onClick={turn} aria-label={dark ? "Light colours" : "Dark colours"}>
      {dark ? "☀" : "☾"}
    </button>
  );
}

/** The views' names, the one that is open always in sight. */
function Tabs({ view }: { view: string }) {
  const nav = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const current = nav.current?.querySelector<HTMLElement>("[aria-current]");
    if (current && nav.current) nav.current.scrollLeft = current.offsetLeft - (nav.current.clientWidth - current.offsetWidth) / 2;
  }, [view]);
  return (
    <nav aria-label="Views" ref={nav}>
      {VIEWS.map(([name, label]) => (
        <a key={name} href={address(name)} aria-current={view === name ? "page" : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}

function App() {
  const live = useLive();
  const place = useHere();
  const { view, what } = place;
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  // Before painting, so that the new view has the focus when it appears.
  useLayoutEffect(() => {
    const known = VIEWS.find(([name]) => name === view)?.[1] ?? view[0]!.toUpperCase() + view.slice(1);
    document.title = `${known}${what ? ` ${what}` : ""} – ${config.name}`;
    // A keyboard user goes on in the new view; the first view leaves the focus alone.
    if (!first.current) main.current?.focus({ preventScroll: true });
    first.current = false;
  }, [view, what]);
  const search = (event: SubmitEvent) => {
    event.preventDefault();
    const words = new FormData(event.currentTarget as HTMLFormElement).get("q") as string;
    if (words.trim()) location.hash = address("search", "", { q: words.trim() });
  };
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="#/">
          <span aria-hidden="true">⣿</span> {config.name}
        </a>
        <Tabs view={view} />
        <form role="search" onSubmit={search as never}>
          <input name="q" type="search" aria-label="Task, node, address, model" placeholder="Task, node, address, model" autoComplete="off" />
        </form>
        <Status />
        <Theme />
      </header>
      <Banner />
      <main ref={main} tabIndex={-1}>
        {/* Before there is a block there are no figures. */}
        {live.head || live.error || !live.chainId ? (
          <View view={view} what={what} />
        ) : (
          <section class="card prose">
            <h1>Not read yet</h1>
            <p>
              <Progress live={live} />
            </p>
          </section>
        )}
      </main>
      <Footer />
      <div id="tip" popover="auto" role="status" />
    </>
  );
}

/** A page that one comes back to is as far down as one left it, once it is as long again. */
function keepScroll(): void {
  const places = new Map<string, number>();
  let current = location.hash;
  let isBack = false;
  addEventListener("popstate", () => (isBack = true));
  addEventListener("scroll", () => places.set(current, scrollY), { passive: true });
  addEventListener("hashchange", () => {
    if (location.hash === current) return;
    const [before, now] = [current, location.hash].map((hash) => hash.split("?")[0]);
    current = location.hash;
    const top = isBack && before !== now ? (places.get(current) ?? 0) : undefined;
    isBack = false;
    if (before === now) return;
    const until = performance.now() + 2_000;
    const settle = () => {
      scrollTo(0, top ?? 0);
      if (top && scrollY < top - 1 && performance.now() < until) requestAnimationFrame(settle);
    };
    requestAnimationFrame(settle);
  });
}

async function start(): Promise<void> {
  try {
    const kept = localStorage.getItem("muster-theme");
    if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
  } catch {
    // The system's colours.
  }
  try {
    setConfig(await readConfig());
    enclose(config);
  } catch (error) {
    document.getElementById("app")!.innerHTML = '<main><section class="card prose"><h1>Not configured</h1><p class="notice bad" role="alert"></p></section></main>';
    document.querySelector("[role=alert]")!.textContent = (error as Error).message;
    return;
  }
  history.scrollRestoration = "manual";
  keepScroll();
  render(<App />, document.getElementById("app")!);
  void watch();
}

void start();
