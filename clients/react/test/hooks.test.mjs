// The hooks in React, in a document of happy-dom, on a network of the package's own on the development node.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { GlobalWindow } from "happy-dom";

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
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false, gcTime: 0 }, mutations: { gcTime: 0 } } });
  const render = () => root.render(createElement(strict ? StrictMode : Fragment, null, createElement(QueryClientProvider, { client: queries }, provided())));
  render();
  return { seen, draw: render, end: () => root.unmount() };
}

async function until(what, is) {
  for (const end = Date.now() + 120_000; !(await is()); await new Promise((resolve) => setTimeout(resolve, 50))) {
    if (Date.now() > end) throw new Error(`it did not happen: ${what}`);
  }
}

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
