/** All tasks, an account, a model, and what a search finds. */
import { ask, askAll, isCut, list } from "../api";
import { count, moment, money } from "../format";
import { useAsked } from "../live";
import { groupsWanted, nameMap, tauWanted } from "../names";
import { AccountLink, Answer, Figure, Figures, ModelLink, NodeLink, TaskLink, modelName } from "../parts";
import { useHere } from "../router";
import { NODE, NodeTable, TASK, TaskTable } from "./nodes";

const NEWEST = 1_000;

export function Tasks() {
  const asked = useAsked("tasks", (signal) => ask({ tasks: list("tasks", { order: "-id", limit: NEWEST }, TASK) }, signal));
  return (
    <>
      <h1>Tasks</h1>
      <Answer asked={asked}>{({ tasks }) => <TaskTable tasks={tasks} caption="Tasks" />}</Answer>
    </>
  );
}

export function Account({ what }: { what: string }) {
  const who = what.toLowerCase();
  const asked = useAsked(`account ${who}`, (signal) =>
    ask(
      {
        groups: groupsWanted,
        tau: tauWanted,
        accounts: list("accounts", { where: { address: who } }),
        tasks: list("tasks", { where: { creator: who }, order: "-id", limit: NEWEST }, TASK),
        nodes: list("nodes", { where: { operator: who } }, NODE),
      },
      signal,
    ),
  );
  return (
    <>
      <h1>Account</h1>
      <p class="mono wide">{what}</p>
      <Answer asked={asked}>
        {({ accounts: [account], tasks, nodes, groups, tau }) =>
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
                <Figure label="Node" note={account.kickedOut ? "can never join again" : undefined}>
                  <NodeLink number={account.node} />
                </Figure>
              </Figures>
              {nodes.length > 0 && <NodeTable nodes={nodes} groups={groups} caption="Its node" tau={tau[0]?.value} />}
              <TaskTable tasks={tasks} caption="Tasks it created" />
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
  const asked = useAsked(`model ${id}`, async (signal) => {
    const wanted = {
      groups: groupsWanted,
      tau: tauWanted,
      models: list("models", { where: { id } }),
      tasks: list("tasks", { where: { models_has: id }, order: "-id", limit: 200 }, TASK),
    };
    const [nodes, data] = await Promise.all([askAll(list("nodes", { where: { models_has: id, status_not: 0 }, order: "number" }, NODE), signal), ask(wanted, signal)]);
    return { ...data, nodes };
  });
  return (
    <>
      <h1>Model</h1>
      <Answer asked={asked}>
        {({ models: [model], nodes, tasks, groups, tau }) =>
          model ? (
            <>
              <p class="lead">{modelName(model.id, nameMap([model]))}</p>
              <Figures label="The model">
                <Figure label="Nodes that hold it" note={`${model.entries} entries among its holders`}>
                  {count(model.held)}
                </Figure>
                <Figure label="Tasks that required it">{count(model.tasks)}</Figure>
                <Figure label="Downloads asked for">{count(model.downloads)}</Figure>
              </Figures>
              <NodeTable nodes={nodes} groups={groups} caption="Nodes that hold it" tau={tau[0]?.value} />
              <TaskTable tasks={tasks} caption="Tasks that required it" />
            </>
          ) : (
            <p class="empty card">No node ever held this model, and no task required it.</p>
          )
        }
      </Answer>
    </>
  );
}

/** What the words could mean: a number a task or a node, hex an account or a transaction, else a model or a GPU. */
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
          const found = tasks.length + nodes.length + accounts.length + models.length + byId.length + gpus.length + sent.length;
          return (
            <section class="card">
              <ul class="hits">
                {[...tasks.map(({ id }) => id), ...sent].map((id) => (
                  <li key={`t${id}`}>
                    Task <TaskLink id={id} />
                  </li>
                ))}
                {nodes.map(({ number }) => (
                  <li key={`n${number}`}>
                    Node <NodeLink number={number} />
                  </li>
                ))}
                {accounts.map(({ address }) => (
                  <li key={address}>
                    Account <AccountLink of={address} />
                  </li>
                ))}
                {[...models, ...byId].map((model) => (
                  <li key={`m${model.id}`}>
                    Model <ModelLink id={model.id} names={nameMap([model])} />
                  </li>
                ))}
                {gpus.map(({ id, name, vram, joined }) => (
                  <li key={`g${id}`}>
                    GPU {name}, {vram} GiB: {joined} nodes
                  </li>
                ))}
              </ul>
              {[accounts, events, models].some(isCut) && <p class="note">There are more: say more of it.</p>}
              {!found && <p class="empty">Nothing is called so. Try a task's or node's number, an address, a transaction's hash, or a part of a model's name.</p>}
            </section>
          );
        }}
      </Answer>
    </>
  );
}
