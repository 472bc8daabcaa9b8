// The hooks in React, in a document of happy-dom, on a network of the package's own on the development node.
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { GlobalWindow } from "happy-dom";
import typescript from "typescript";
import { createClient, custom } from "viem";

const window = new GlobalWindow({ url: "http://localhost/" });
Object.assign(globalThis, { window, document: window.document, navigator: window.navigator, IS_REACT_ACT_ENVIRONMENT: false });
const { Fragment, StrictMode, createElement } = await import("react");
const { createRoot } = await import("react-dom/client");
const { QueryClient, QueryClientProvider, useQuery } = await import("@tanstack/react-query");
const { startNetwork } = await import("muster-client/test");
const muster = await import("../dist/index.js");

let network;
before(async () => void (network = await startNetwork({ nodes: [{}, {}] })));
after(() => network?.stop());

/** Renders a component that uses hooks; returns their last values, and a function that ends it. */
function draw(use, config = {}) {
  const { strict, ...more } = config ?? {};
  const seen = { now: undefined, error: undefined };
  const Shown = () => {
    seen.now = use();
    return null;
  };
  const root = createRoot(document.createElement("div"), { onUncaughtError: (error) => (seen.error = error) });
  const { client, address, storeUrl } = network;
  const provided = () => {
    const inner = createElement(Shown);
    return config === null ? inner : createElement(muster.MusterProvider, { client, address, stores: [storeUrl], ...more }, inner);
  };
  // Unused queries are dropped at once: a timer for them would keep the process alive.
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false, gcTime: 0 }, mutations: { gcTime: 0, retry: 3, retryDelay: 0 } } });
  const render = () => root.render(createElement(strict ? StrictMode : Fragment, null, createElement(QueryClientProvider, { client: queries }, provided())));
  render();
  return { seen, draw: render, end: () => root.unmount() };
}

async function until(what, is) {
  for (const end = Date.now() + 120_000; !(await is()); await new Promise((resolve) => setTimeout(resolve, 50))) {
    if (Date.now() > end) throw new Error(`it did not happen: ${what}`);
  }
}

test("frameworks that render on a server take it for the browser's", () => {
  assert.match(readFileSync(new URL("../dist/index.js", import.meta.url), "utf8"), /^"use client";/);
});

test("a task: what it costs, created, followed to its end, its result, and the network asked again", async () => {
  const request = { kind: 1, input: "from a component" };
  const { seen, end } = draw(() => {
    const create = muster.useCreateTask();
    const id = create.data?.id;
    const task = muster.useTask(id);
    return {
      create,
      network: muster.useNetwork(),
      estimate: muster.useTaskEstimate(request),
      task,
      result: muster.useTaskResult(task.data?.status === "succeeded" ? id : undefined),
    };
  });
  await until("the network is there", () => seen.now?.network.data && seen.now.estimate.data);
  assert.equal(seen.now.network.data.nodesJoined, 2);
  assert.equal(seen.now.network.data.tasks, 0n);
  // Without a number nothing is asked.
  assert.deepEqual([seen.now.task.fetchStatus, seen.now.result.fetchStatus], ["idle", "idle"]);
  seen.now.create.mutate({ ...request, value: 10n ** 15n, dispatch: true });
  await until("it is created", () => seen.now.create.data ?? seen.now.create.error);
  assert.equal(seen.now.create.error, null);
  await until("the network's row was asked for again", () => seen.now.network.data.tasks === 1n);
  await until("it has ended, and its result is there", () => seen.now.result.data);
  assert.equal(seen.now.task.data.status, "succeeded");
  assert.match(Buffer.from(seen.now.result.data.bytes).toString(), /^result of 0x/);
  end();
});

test("without an argument nothing is asked, whatever `enabled` says; with one it decides", async () => {
  const hooks = (argument, enabled) => [
    muster.useNode(argument, { enabled }),
    muster.useTask(argument && BigInt(argument), { enabled }),
    muster.useTaskResult(argument && BigInt(argument), { enabled }),
    muster.useTaskEstimate(argument && { kind: 1 }, { enabled }),
  ];
  const { seen, end } = draw(() => [...hooks(undefined, true), ...hooks(undefined, () => true), ...hooks(1, false), ...hooks(1, () => false), muster.useNode(2, { enabled: () => true })]);
  await until("the last one is there", () => seen.now?.at(-1).data);
  assert.deepEqual(new Set(seen.now.slice(0, -1).map(({ fetchStatus, status }) => `${fetchStatus} ${status}`)), new Set(["idle pending"]));
  end();
});

test("who creates a task has it before the questions are answered anew, and results are not fetched again", async () => {
  const { address, client, store } = network;
  let [fetched, asked] = [0, 0];
  const counted = { name: "counted", get: (...object) => (fetched++, store.get(...object)) };
  const { id } = await client.createTask({ kind: 1, input: "once", value: 10n ** 15n });
  await client.waitForTask({ id });
  const { seen, end } = draw(
    () => ({
      create: muster.useCreateTask(),
      result: muster.useTaskResult(id),
      slow: useQuery({ queryKey: ["muster", "slow"], queryFn: () => (asked++ ? new Promise(() => {}) : address) }),
    }),
    { stores: [counted] },
  );
  await until("the result is there", () => seen.now?.result.data && seen.now.slow.data);
  const once = fetched;
  seen.now.create.mutate({ kind: 1, input: "twice", value: 10n ** 15n });
  await until("it is created", () => seen.now.create.data);
  await until("the slow question was asked again", () => asked > 1);
  await client.waitForTask({ id: seen.now.create.data.id });
  assert.deepEqual([fetched, seen.now.result.isFetching], [once, false]);
  end();
});

test("a private result opens by its key, under StrictMode too, and another task takes the place of the first", async () => {
  const { client, storeUrl } = network;
  const request = { kind: 1, input: "between us", value: 10n ** 15n, store: storeUrl };
  const [hidden, plain] = [await client.createTask({ ...request, private: true }), await client.createTask(request)];
  for (const { id } of [hidden, plain]) await client.waitForTask({ id });
  let which = { id: hidden.id };
  const { seen, draw: again, end } = draw(
    () => ({
      task: muster.useTask(which.id, { created: which.task, fromBlock: hidden.task.createdIn }),
      result: muster.useTaskResult(which.id, { identity: which.identity, created: which.task, fromBlock: hidden.task.createdIn }),
    }),
    { strict: true },
  );
  await until("it stays closed", () => seen.now?.result.error);
  which = hidden;
  again();
  await until("it opens", () => seen.now.result.data);
  assert.match(Buffer.from(seen.now.result.data.bytes).toString(), /^result of 0x/);
  // As if a reorganisation had given its id to the other one.
  which = { id: plain.id, task: hidden.task };
  again();
  await until("it is gone", () => seen.now.task.error && seen.now.result.error);
  assert.deepEqual([seen.now.task.error.name, seen.now.result.error.name], ["TaskGoneError", "TaskGoneError"]);
  which = { id: plain.id };
  again();
  await until("the other one is there", () => seen.now.result.data?.task.id === plain.id && seen.now.task.data?.id === plain.id);
  end();
});

test("a refusal comes in the contract's words; what is not below a provider says so", async () => {
  const { seen, end } = draw(() => ({ create: muster.useCreateTask(), withdraw: muster.useWithdraw(), node: muster.useNode(1) }));
  await until("it is drawn", () => seen.now?.node.data);
  assert.equal(seen.now.node.data.node, 1);
  seen.now.create.mutate({ kind: 1, input: "for nothing", value: 1n });
  await until("it is refused", () => seen.now.create.error);
  assert.match(seen.now.create.error.message, /fee/i);
  end();
  const alone = draw(() => muster.useNetwork(), null);
  await until("it says so", () => alone.seen.error);
  assert.match(alone.seen.error.message, /no MusterProvider above/);
});

test("the README's component pays once, and shows a task whose draw was declined", async () => {
  const own = await startNetwork({ nodes: [{}, {}], drive: false });
  // Beside the package, so that it finds the package by its name.
  const file = new URL("readme.mjs", import.meta.url);
  try {
    const [, block] = /```jsx\n([^]*?)```/.exec(readFileSync(new URL("../README.md", import.meta.url), "utf8"));
    const { outputText } = typescript.transpileModule(`${block}export { App, queries };`.replace("https://store.example", own.storeUrl), { compilerOptions: { jsx: typescript.JsxEmit.ReactJSX, module: typescript.ModuleKind.ESNext, target: typescript.ScriptTarget.ES2022 } });
    writeFileSync(file, outputText);
    const { App, queries } = await import(file.href);
    // As in `draw`: its timers would keep the process alive.
    queries.setDefaultOptions({ queries: { retry: false, gcTime: 0 }, mutations: { gcTime: 0, retry: 3, retryDelay: 0 } });
    let sent = 0;
    const request = async ({ method, params }) => {
      if (method === "eth_sendRawTransaction" && ++sent > 1) throw { code: 4001, message: "no" };
      return own.client.request({ method, params });
    };
    const client = createClient({ account: own.client.account, chain: own.chain, pollingInterval: 50, transport: custom({ request }, { retryCount: 0 }) });
    const place = document.createElement("div");
    const root = createRoot(place);
    root.render(createElement(App, { client, address: own.address }));
    await until("the network is there", () => /Ask 2 nodes/.test(place.textContent));
    const button = place.querySelector("button");
    button.click();
    await until("it can't be pressed again", () => button.disabled);
    button.click();
    await until("the draw is declined", () => /waiting for its draw failed/.test(place.textContent) && /pending/.test(place.textContent));
    assert.deepEqual([button.disabled, (await own.client.getOverview()).tasks], [false, 1n]);
    await own.client.waitForTask({ id: 1n, dispatch: true, until: "placed" });
    await until("its result is there", () => /succeeded.*result of 0x/.test(place.textContent));
    root.unmount();
    // Its creation is news, though the mutation fails.
    sent = 0;
    const { seen, end } = draw(() => ({ create: muster.useCreateTask(), network: muster.useNetwork() }), { client, address: own.address });
    await until("the network is there", () => seen.now?.network.data);
    seen.now.create.mutate({ kind: 1, input: "twice", value: 10n ** 15n, dispatch: true });
    await until("the draw is declined", () => seen.now.create.error);
    await until("the network was asked again", () => seen.now.network.data.tasks === 2n);
    end();
  } finally {
    rmSync(file, { force: true });
    await own.stop();
  }
});
