/** All tasks, nodes, accounts and models; one account, one model; and the results of a search. */
import { useEffect } from "preact/hooks";
import { type Row, ask, isCut, list } from "../api";
import { KIND, POLICY, count, moment, money } from "../format";
import { useAsked, useLive } from "../live";
import { groupsWanted, gpuName, nameMap, tauWanted } from "../names";
import { AccountLink, Answer, Copy, Figure, Figures, ModelLink, NodeLink, Outside, TaskLink, Typed, modelName } from "../parts";
import { address, choose, useHere } from "../router";
import { PagedTable } from "../table";
import { NodePages, TaskPages } from "./nodes";

const STATES = [
  ["", "any"],
  ["pending", "Pending"],
  ["queued", "Queued"],
  ["running", "Running"],
  ["ended", "Ended"],
  ["succeeded", "Succeeded"],
  ["error", "Error reported"],
  ["late", "Timed out"],
  ["cancelled", "Cancelled"],
  ["evicted", "Evicted"],
  ["expired", "Queued too long"],
  ["slashed", "Node slashed out"],
  ["undecided", "No two answers alike"],
] as const;
const NODE_STATES = [
  ["joined", "joined"],
  ["idle", "Available"],
  ["busy", "Busy"],
  ["apart", "Excluded or waiting"],
  ["paused", "Paused"],
  ["left", "have left"],
  ["all", "all there ever were"],
] as const;

/** Filters that stand in the address by the names that the indexer knows them by. */
const TASK_FILTERS = ["state", "policy", "kind", "creator", "gpu", "model", "node", "from", "to"] as const;
/** A filter resets the list to its first page. */
const set = (list: string, name: string, value: string) => choose({ [name]: value || undefined, [`${list}.from`]: undefined });

function Select({ list, name, label, options, initial = "" }: { list: string; name: string; label: string; options: readonly (readonly [string, string])[]; initial?: string }) {
  const { query } = useHere();
  return (
    <label>
      {label}
      <select value={query.get(name) ?? initial} onChange={({ currentTarget }) => set(list, name, currentTarget.value === initial ? "" : currentTarget.value)}>
        {options.map(([value, said]) => (
          <option key={value} value={value}>
            {said}
          </option>
        ))}
      </select>
    </label>
  );
}

const DAY = 86_400;
/** A day in the reader's words as seconds, and back. */
const secondsOf = (day: string): number => Date.parse(`${day}T00:00:00Z`) / 1_000;
const dayOf = (seconds: number): string => (Number.isFinite(seconds) && seconds > 0 ? new Date(seconds * 1_000).toISOString().slice(0, 10) : "");

const known = {
  groups: groupsWanted,
  tau: tauWanted,
  models: list("models", { where: { name_not: null }, order: "-tasks", limit: 200 }, ["id", "name"]),
};
const anyGroup = (groups: readonly Row<"gpuGroups">[]) => [["", "any"], ...groups.map(({ id }) => [String(id), gpuName(id, groups)] as const)] as const;

export function Tasks() {
  const { query } = useHere();
  const { network } = useLive();
  const asked = useAsked("tasks", (signal) => ask(known, signal));
  const filters = Object.fromEntries(TASK_FILTERS.flatMap((name) => (query.get(name) ? [[name, query.get(name)!]] : [])));
  // One that is no address, or no number, is asked of nobody.
  const wrong = filters.creator && !/^0x[0-9a-fA-F]{40}$/.test(filters.creator) ? "The creator must be an address, 0x and 40 digits." : undefined;
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <>
      <h1>Tasks</h1>
      <Answer asked={asked}>
        {({ groups, models }) => (
          <>
            <form class="card controls filters" onSubmit={(event) => event.preventDefault()} aria-label="Which tasks">
              <Select list="tasks" name="state" label="State" options={STATES} />
              <Select list="tasks" name="policy" label="Policy" options={[["", "any"], ...POLICY.map((name, i) => [String(i), name] as const)]} />
              <Select list="tasks" name="kind" label="Kind" options={[["", "any"], ...KIND.map((name, i) => [String(i), name] as const)]} />
              <Select list="tasks" name="gpu" label="Requires the GPU" options={anyGroup(groups)} />
              <Select list="tasks" name="model" label="Model" options={[["", "any"], ...models.map(({ id, name }) => [String(id), name!] as const)]} />
              <label>
                Creator
                <Typed value={query.get("creator") ?? ""} placeholder="0x…" spellcheck={false} onTaken={(text) => set("tasks", "creator", text)} />
              </label>
              <label>
                Created from (UTC)
                <Typed type="date" value={dayOf(Number(query.get("from")))} onTaken={(day) => set("tasks", "from", day && String(secondsOf(day)))} />
              </label>
              <label>
                to, inclusive
                <Typed type="date" value={dayOf(Number(query.get("to")) - DAY)} onTaken={(day) => set("tasks", "to", day && String(secondsOf(day) + DAY))} />
              </label>
              {isFiltered && (
                <p>
                  <button type="button" class="button" onClick={() => choose(Object.fromEntries([...TASK_FILTERS, "tasks.from"].map((name) => [name, undefined])))}>
                    All tasks
                  </button>
                </p>
              )}
            </form>
            {wrong ? (
              <p class="notice bad" role="alert">
                {wrong}
              </p>
            ) : (
              <TaskPages caption="Tasks" filters={filters} total={isFiltered ? undefined : Number(network?.tasks ?? 0n)} />
            )}
          </>
        )}
      </Answer>
    </>
  );
}

export function Nodes() {
  const { query } = useHere();
  const { network } = useLive();
  const asked = useAsked("nodes", (signal) => ask(known, signal));
  const filters = { state: query.get("state") ?? "joined", ...Object.fromEntries(["gpu", "model", "slashed"].flatMap((name) => (query.get(name) ? [[name, query.get(name)!]] : []))) };
  const isAll = Object.keys(filters).length === 1 && filters.state === "joined";
  return (
    <>
      <h1>Nodes</h1>
      <Answer asked={asked}>
        {({ groups, models, tau }) => (
          <>
            <form class="card controls filters" onSubmit={(event) => event.preventDefault()} aria-label="Which nodes">
              <Select list="nodes" name="state" label="Which" options={NODE_STATES} initial="joined" />
              <Select list="nodes" name="gpu" label="GPU" options={anyGroup(groups)} />
              <Select list="nodes" name="model" label="Holds the model" options={[["", "any"], ...models.map(({ id, name }) => [String(id), name!] as const)]} />
              <Select list="nodes" name="slashed" label="Slashed" options={[["", "any"], ["yes", "only slashed ones"]]} />
            </form>
            <NodePages groups={groups} tau={tau[0]?.value} filters={filters} page={50} total={isAll ? network?.nodesJoined : undefined} />
          </>
        )}
      </Answer>
    </>
  );
}

type AccountRow = Row<"accounts">;
export function Accounts() {
  return (
    <>
      <h1>Accounts</h1>
      <PagedTable
        id="accounts"
        caption="Accounts"
        list="accounts"
        things={["account", "accounts"]}
        page={50}
        name={({ address }: AccountRow) => address}
        sort="-fees"
        sortable={["address", "tasks", "fees", "earned", "credit"]}
        columns={[
          { key: "address", label: "Account", help: "Its address.", value: ({ address }) => address, cell: ({ address }) => <AccountLink of={address} /> },
          { key: "node", label: "Node", help: "The node that it joined, or works for.", value: ({ node }) => node || null, cell: ({ node }) => <NodeLink number={node} />, numeric: true },
          { key: "tasks", label: "Tasks", help: "Tasks that it created.", value: ({ tasks }) => tasks, cell: ({ tasks }) => count(tasks), numeric: true },
          { key: "fees", label: "Fees", help: "Its deposits for all its tasks.", value: ({ fees }) => fees, cell: ({ fees }) => money(fees), numeric: true },
          { key: "refunds", label: "Given back", help: "The refunds of its fees.", value: ({ refunds }) => refunds, cell: ({ refunds }) => money(refunds), numeric: true },
          { key: "earned", label: "Earned", help: "Its credit for work, and for driving others' tasks.", value: ({ earned }) => earned, cell: ({ earned }) => money(earned), numeric: true },
          { key: "credit", label: "Owed to it", help: "The credit that it can withdraw now.", value: ({ credit }) => credit, cell: ({ credit }) => money(credit), numeric: true },
        ]}
      />
    </>
  );
}

type ModelRow = Row<"models">;
export function Models() {
  const { query } = useHere();
  const name = query.get("name") ?? "";
  return (
    <>
      <h1>Models</h1>
      <form class="card controls filters" onSubmit={(event) => event.preventDefault()} aria-label="Which models">
        <label>
          A part of the name
          <Typed value={name} onTaken={(text) => set("models", "name", text)} />
        </label>
      </form>
      <PagedTable
        id="models"
        caption="Models"
        list="models"
        filters={name ? { name } : {}}
        things={["model", "models"]}
        page={50}
        name={({ id }: ModelRow) => id}
        sort="-tasks"
        sortable={["tasks", "held", "downloads"]}
        empty="No model is called so."
        columns={[
          { key: "name", label: "Model", help: "Its name, or its number where nobody has named it.", value: ({ id, name }) => name ?? String(id), cell: (model) => <ModelLink id={model.id} names={nameMap([model])} /> },
          { key: "tasks", label: "Tasks", help: "Tasks that asked for it.", value: ({ tasks }) => tasks, cell: ({ tasks }) => count(tasks), numeric: true },
          { key: "held", label: "Held by", help: "Joined nodes that say they hold it. A task for a model that nobody holds runs all the same, on a node that fetches it first.", value: ({ held }) => held, cell: ({ held }) => (held ? count(held) : "nobody"), numeric: true },
          { key: "downloads", label: "Downloads asked for", help: "How often the contract asked a node to fetch it ahead of time.", value: ({ downloads }) => downloads, cell: ({ downloads }) => count(downloads), numeric: true },
        ]}
      />
    </>
  );
}

export function Account({ what }: { what: string }) {
  const who = what.toLowerCase();
  const asked = useAsked(`account ${who}`, (signal) =>
    ask({ groups: groupsWanted, tau: tauWanted, accounts: list("accounts", { where: { address: who } }), nodes: list("nodes", { where: { operator: who } }, ["number", "stake"]) }, signal),
  );
  return (
    <>
      <h1>Account</h1>
      <p class="mono wide">
        <Outside kind="address" of={what}>
          {what}
        </Outside>{" "}
        <Copy text={what} what="the address" />
      </p>
      <Answer asked={asked}>
        {({ accounts: [account], nodes }) =>
          account ? (
            <>
              <Figures label="The account">
                <Figure label="Owed to it" note={account.unbonding ? `and ${money(account.unbonding)} of stake from ${moment(account.release)}` : undefined}>
                  {money(account.credit)}
                </Figure>
                <Figure label="Tasks created">{count(account.tasks)}</Figure>
                <Figure label="Fees" note={`${money(account.refunds)} given back`}>
                  {money(account.fees)}
                </Figure>
                <Figure label="Earned" note={`${money(account.withdrawn)} withdrawn`}>
                  {money(account.earned)}
                </Figure>
                <Figure label="Node" note={account.kickedOut ? "can never join again" : nodes[0] ? `${money(nodes[0].stake)} staked` : undefined}>
                  <NodeLink number={account.node || (nodes[0]?.number ?? 0)} />
                </Figure>
              </Figures>
              <TaskPages caption="Tasks it created" filters={{ creator: who }} total={account.tasks} />
            </>
          ) : (
            <p class="empty card">Muster has never owed this account anything, nor did it ask for anything.</p>
          )
        }
      </Answer>
    </>
  );
}

export function Model({ what }: { what: string }) {
  const id = /^\d{1,13}$/.test(what) ? BigInt(what) : 0n;
  const asked = useAsked(`model ${id}`, (signal) => ask({ groups: groupsWanted, tau: tauWanted, models: list("models", { where: { id } }) }, signal));
  return (
    <>
      <h1>Model</h1>
      <Answer asked={asked}>
        {({ models: [model], groups, tau }) =>
          model ? (
            <>
              <p class="lead">{modelName(model.id, nameMap([model]))}</p>
              <Figures label="The model">
                <Figure label="Nodes that hold it" note={model.held ? `${model.entries} entries among its holders` : "a task for it runs all the same"}>
                  {count(model.held)}
                </Figure>
                <Figure label="Tasks that asked for it">{count(model.tasks)}</Figure>
                <Figure label="Downloads asked for">{count(model.downloads)}</Figure>
              </Figures>
              {!model.held && (
                <p class="notice" data-test="unheld">
                  No joined node holds this model. That does not keep a task from running: it then goes to any node that fits, which fetches the model first and so takes longer.
                </p>
              )}
              <NodePages groups={groups} tau={tau[0]?.value} caption="Nodes that hold it" filters={{ state: "joined", model: String(id) }} total={model.held} />
              <TaskPages caption="Tasks that asked for it" filters={{ model: String(id) }} total={model.tasks} />
            </>
          ) : (
            <p class="empty card">No node ever held this model, and no task asked for it. A task may: it then goes to any node that fits, which fetches the model first.</p>
          )
        }
      </Answer>
    </>
  );
}

/** Possible meanings of the words: a number is a task or a node, hex an account or a transaction, else a model or a GPU. A single match opens at once. */
export function Search() {
  const { query } = useHere();
  const words = (query.get("q") ?? "").trim().replace(/^#/, "");
  const number = /^\d{1,15}$/.test(words) ? words : "0";
  const hex = /^0x[0-9a-f]+$/i.test(words) ? words.toLowerCase() : "";
  const hits = { limit: 20 };
  const asked = useAsked(`search ${words}`, (signal) =>
    ask(
      {
        groups: groupsWanted,
        tasks: list("tasks", { where: { id: BigInt(number) } }, ["id"]),
        nodes: list("nodes", { where: { number: Number(number) > 2 ** 24 ? 0 : Number(number) } }, ["number"]),
        accounts: list("accounts", hex ? { where: { address_starts_with: hex }, ...hits } : { where: { address: "0x" } }, ["address"]),
        events: list("events", { where: { tx: hex.length === 66 ? hex : "0x" }, limit: 100 }, ["task"]),
        models: list("models", { where: words && !hex ? { name_contains: words } : { id: 0n }, ...hits }, ["id", "name"]),
        byId: list("models", { where: { id: hex && hex.length <= 12 ? BigInt(hex) : 0n } }, ["id", "name"]),
      },
      signal,
    ),
  );
  return (
    <>
      <h1>Search</h1>
      <p class="lead">For “{words}”</p>
      <Answer asked={asked}>
        {({ tasks, nodes, accounts, events, models, byId, groups }) => {
          const gpus = words && !hex ? groups.filter(({ name }) => name.toLowerCase().includes(words.toLowerCase())) : [];
          const sent = [...new Set(events.flatMap(({ task }) => (task === null ? [] : [task])))];
          const places = [
            ...[...tasks.map(({ id }) => id), ...sent].map((id) => ({ href: address("task", id), said: <>Task <TaskLink id={id} /></> })),
            ...nodes.map(({ number }) => ({ href: address("node", number), said: <>Node <NodeLink number={number} /></> })),
            ...accounts.map((one) => ({ href: address("account", one.address), said: <>Account <AccountLink of={one.address} /></> })),
            ...[...models, ...byId].map((model) => ({ href: address("model", model.id), said: <>Model <ModelLink id={model.id} names={nameMap([model])} /></> })),
            ...gpus.map(({ id, name, vram, joined }) => {
              const href = address("nodes", "", { gpu: String(id) });
              return { href, said: <>GPU <a href={href}>{name}, {vram} GiB</a>: {joined} nodes</> };
            }),
          ];
          const isCutOff = [accounts, events, models].some(isCut);
          const only = places.length === 1 && !isCutOff ? places[0]!.href : undefined;
          return (
            <section class="card">
              {only && <Open href={only} />}
              <ul class="hits">
                {places.map(({ href, said }) => (
                  <li key={href}>{said}</li>
                ))}
              </ul>
              {isCutOff && <p class="note">There are more: say more of it.</p>}
              {!places.length && <p class="empty">Nothing is called so. Try a task's or node's number, an address, a transaction's hash, or a part of a model's name.</p>}
            </section>
          );
        }}
      </Answer>
    </>
  );
}

/** Goes there in place of the search: Back leads to where the reader searched from. */
function Open({ href }: { href: string }) {
  useEffect(() => {
    history.replaceState(history.state, "", href);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }, [href]);
  return null;
}
