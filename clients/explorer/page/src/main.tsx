/** The frame around all views: where one can go, how old the data is, and what keeps it from being newer. */
import { render } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { config, enclose, readConfig, setConfig } from "./config";
import { count, duration } from "./format";
import { useLive, useNow, watch } from "./live";
import { address, useHere } from "./router";
import "./style.css";
import { FairnessView } from "./views/fairness";
import { FleetView } from "./views/fleet";
import { Account, Model, Search, Tasks } from "./views/lists";
import { Network } from "./views/network";
import { NodeView } from "./views/node";
import { Stream } from "./views/stream";
import { TaskView } from "./views/task";
import { WhatIf } from "./views/whatif";

const VIEWS = [
  ["network", "Network"],
  ["fairness", "Fairness"],
  ["whatif", "What if"],
  ["tasks", "Tasks"],
  ["live", "Live"],
  ["fleet", "Your fleet"],
] as const;

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

/** So many seconds without a block are worth a banner; chains with Stylus have several a second while anything happens. */
const OLD = 60;
/** So many blocks behind the chain are. */
const BEHIND = 20n;

function Status() {
  const { head, chain, error } = useLive();
  const now = useNow();
  if (!head) return <span class="status">{error ? "not connected" : "connecting …"}</span>;
  const age = Math.max(0, now - Number(head.timestamp));
  return (
    <span class="status" data-test="status">
      <i class={error ? "bad" : chain !== undefined && chain - head.block > BEHIND ? "wait" : "good"} aria-hidden="true" />
      Block {count(head.block)}, {duration(age)} old
    </span>
  );
}

function Banner() {
  const { head, chain, error, network } = useLive();
  const now = useNow();
  if (error) {
    return (
      <p class="banner bad" role="alert">
        {error} {head ? `What is shown is of block ${count(head.block)}, ${duration(now - Number(head.timestamp))} old.` : ""} It is tried again every two seconds.
      </p>
    );
  }
  if (!head) return null;
  const age = now - Number(head.timestamp);
  if (chain !== undefined) {
    return chain - head.block > BEHIND ? (
      <p class="banner wait" role="status">
        The indexer is {count(chain - head.block)} blocks behind the chain ({duration(age)}).
      </p>
    ) : null;
  }
  if (network?.paused) return <p class="banner wait" role="status">The owner has stopped new tasks and joins.</p>;
  return age > OLD ? (
    <p class="banner wait" role="status">
      The newest block is {duration(age)} old: the chain is quiet, or the indexer is behind it. Without an RPC endpoint this page cannot tell which.
    </p>
  ) : null;
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

function App() {
  const place = useHere();
  const { view, what } = place;
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  // Before it is painted: who sees the new view has the focus in it.
  useLayoutEffect(() => {
    const known = VIEWS.find(([name]) => name === view)?.[1] ?? view[0]!.toUpperCase() + view.slice(1);
    document.title = `${known}${what ? ` ${what}` : ""} – ${config.name}`;
    // A reader who came by keyboard goes on in the new view, but is not thrown about at the first.
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
        <nav aria-label="Views">
          {VIEWS.map(([name, label]) => (
            <a key={name} href={address(name)} aria-current={view === name ? "page" : undefined}>
              {label}
            </a>
          ))}
        </nav>
        <form role="search" onSubmit={search as never}>
          <input name="q" type="search" aria-label="Task, node, address, model" placeholder="Task, node, address, model" autoComplete="off" />
        </form>
        <Status />
        <Theme />
      </header>
      <Banner />
      <main ref={main} tabIndex={-1}>
        <View view={view} what={what} />
      </main>
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
  setConfig(await readConfig());
  enclose(config);
  history.scrollRestoration = "manual";
  keepScroll();
  render(<App />, document.getElementById("app")!);
  void watch();
}

void start();
