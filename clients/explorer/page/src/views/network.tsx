/** The network at a glance: nodes, running tasks, queues, prices. The indexer computes all sums. */
import { type Glance, ask, askGlance } from "../api";
import { Chart } from "../chart";
import { KIND, count, duration, money, percent } from "../format";
import { type Live, chainNow, useAsked, useLive } from "../live";
import { gpuName, queueName, tauWanted } from "../names";
import { AccountLink, Answer, Figure, Figures, Left, Legend, NodeLink, Pill, TaskLink } from "../parts";
import { address } from "../router";
import { DataTable } from "../table";
import { NodePages } from "./nodes";

const MINUTES = 60;

const question = async (signal: AbortSignal) => {
  const [glance, { tau }] = await Promise.all([askGlance(signal), ask({ tau: tauWanted }, signal)]);
  return { ...glance, tau: tau[0]?.value };
};
type Data = Awaited<ReturnType<typeof question>>;

export function Network() {
  const live = useLive();
  const asked = useAsked("network", question);
  return (
    <>
      <h1>Network</h1>
      <Answer asked={asked}>{(data) => <Shown data={data} live={live} />}</Answer>
    </>
  );
}

const ENDS = [
  ["Succeeded", "succeeded", "good"],
  ["Timed out", "timedOut", "bad"],
  ["Error reported", "failed", "bad"],
  ["No two answers alike", "undecided", "bad"],
  ["Node slashed out", "slashedOut", "bad"],
  ["Evicted", "evicted", "wait"],
  ["Cancelled", "cancelled", "wait"],
  ["Queued too long", "expired", "wait"],
] as const;

function Shown({ data, live: { network } }: { data: Data; live: Live }) {
  const { groups, own, running, queues } = data;
  // This hour and the 23 before it.
  const since = BigInt(Math.floor(chainNow() / 3_600) * 3_600 - 23 * 3_600);
  const hours = data.hours.filter(({ start }) => start >= since);
  const sum = (key: (typeof ENDS)[number][1] | "started") => hours.reduce((all, hour) => all + hour[key], 0);
  const total = (key: "fees" | "paid" | "waited" | "gas") => hours.reduce((all, hour) => all + hour[key], 0n);
  const ran = sum("succeeded") + sum("failed") + sum("timedOut") + sum("undecided") + sum("slashedOut");
  const ended = ran + sum("evicted") + sum("cancelled") + sum("expired");
  const { price, tasks: priced } = data.prices;
  const nodes = own.reduce((all, group) => all + group.own, 0);
  return (
    <>
      <Figures label="The network now">
        <Figure label="Nodes" note={`${count(own.reduce((all, { idle }) => all + idle, 0))} idle`} help="Nodes that have joined, paused ones too.">
          {count(nodes)}
        </Figure>
        <Figure label="Running" note={network?.groups ? `${network.groups} in validation groups` : undefined} help="Tasks that a node, or a group of them, works on now.">
          {count(network?.running ?? 0)}
        </Figure>
        <Figure label="Queued" note={`${count(network?.pending ?? 0)} wait for their draw`} help="Tasks that no idle node could take when they were drawn. A node that becomes free takes the one that pays best.">
          {count(network?.queued ?? 0)}
        </Figure>
        <Figure label="Success, 24 h" note={ran ? `${count(sum("succeeded"))} of ${count(ran)} that ran` : "nothing ended"} help="Tasks that ended with an answer, of all that a node worked on and that ended in this hour and the 23 before.">
          {ran ? percent(sum("succeeded") / ran) : "–"}
        </Figure>
        <Figure label="Waiting, 24 h" note="mean, creation to start">
          {sum("started") ? duration(Number(total("waited")) / sum("started")) : "–"}
        </Figure>
        <Figure label="Fees, 24 h" note={`${money(total("paid"))} paid to nodes`} help="Deposited for tasks in this hour and the 23 before.">
          {money(total("fees"))}
        </Figure>
        <Figure label="Price" note={`for a second of estimated time, median of the last ${count(priced)} tasks`} help="Creators' offers for each estimated second of a task.">
          {price === null ? "–" : money(price)}
        </Figure>
        <Figure label="Staked" note={`${money(network?.burnt ?? 0n)} burnt`} help="Deposited by the operators of joined nodes. Burnt: the part of slashes that nobody gets.">
          {money(network?.stakes ?? 0n)}
        </Figure>
      </Figures>
      <Minutes minutes={data.minutes} />
      <div class="columns">
        <Gpus groups={groups} own={own} />
        <Queues queues={queues} groups={groups} />
      </div>
      <DataTable
        id="running"
        caption="Running tasks"
        empty="No task runs now."
        sort="left"
        page={12}
        rows={running}
        things={["task", "tasks"]}
        part={running.length < (network?.running ?? 0) && `first due of ${count(network?.running ?? 0)}:`}
        note={
          running.length > 0 && (
            <a href={address("tasks", "", { state: "running" })}>All running tasks</a>
          )
        }
        name={({ id }) => id}
        columns={[
          { key: "id", label: "Task", help: "The task's number.", value: ({ id }) => id, cell: ({ id }) => <TaskLink id={id} /> },
          { key: "kind", label: "Kind", help: "The kind of work, and its units.", value: ({ kind, units }) => `${KIND[kind]}${kind < 2 ? ` × ${units}` : ""}` },
          { key: "node", label: "Node", help: "The node that works on it, or a group of several.", value: ({ node }) => node, cell: ({ node, status }) => (status === 6 ? "group" : <NodeLink number={node} />) },
          { key: "state", label: "State", help: "Running; committed: its node has promised an answer; sampled: its checkers are being drawn; validated: several nodes answer, and are compared.", value: ({ status }) => status, cell: ({ status }) => <Pill tone="busy">{["", "", "", "running", "committed", "sampled", "validated"][status]}</Pill> },
          { key: "left", label: "Time left", help: "Until its deadline; the bar is the share of its time that is left.", value: ({ deadline }) => deadline, cell: ({ deadline, startedAt, status }) => (status === 3 ? <Left until={deadline} from={startedAt} /> : "–") },
          { key: "fee", label: "Fee", help: "Its creator's deposit for it.", value: ({ fee }) => fee, cell: ({ fee }) => money(fee), numeric: true },
          { key: "creator", label: "Creator", help: "The account or contract that created it.", value: ({ creator }) => creator, cell: ({ creator }) => <AccountLink of={creator} /> },
        ]}
      />
      <NodePages groups={groups} tau={data.tau} page={10} total={nodes} note={<a href={address("nodes")}>All nodes, by state, GPU and model</a>} />
      <div class="columns">
        <Ends sums={ENDS.map(([label, key, tone]) => [label, sum(key), tone])} ended={ended} />
        <Gas calls={data.calls} />
      </div>
    </>
  );
}

function Minutes({ minutes }: Pick<Data, "minutes">) {
  const now = Math.floor(chainNow() / 60) * 60;
  const times = Array.from({ length: MINUTES }, (_, i) => now - (MINUTES - 1 - i) * 60);
  const known = new Map(minutes.map((minute) => [Number(minute.start), minute]));
  const created = times.map((at) => known.get(at)?.created ?? 0);
  const done = times.map((at) => known.get(at)?.ended ?? 0);
  const sum = (values: readonly number[]) => values.reduce((all, n) => all + n, 0);
  return (
    <section class="card">
      <header>
        <h2>
          Tasks per minute <span class="quiet">in the last hour</span>
        </h2>
      </header>
      <Chart
        label={`Tasks per minute in the last hour: ${sum(created)} created, ${sum(done)} ended`}
        times={times}
        series={[
          { label: "created", values: created, colour: "accent", bars: true },
          { label: "ended", values: done, colour: "good" },
        ]}
        height={180}
      />
    </section>
  );
}

function Gpus({ groups, own }: Pick<Glance, "groups" | "own">) {
  const rows = groups.map((group) => ({ ...group, ...(own.find(({ gpuGroup }) => gpuGroup === group.id) ?? { own: 0, idle: 0, busy: 0, apart: 0, paused: 0 }) }));
  return (
    <DataTable
      id="gpus"
      caption="Nodes by GPU"
      sort="-own"
      page={10}
      rows={rows}
      things={["GPU", "GPUs"]}
      name={({ id }) => id}
      note={<Legend of={[["good", "idle"], ["busy", "busy"], ["bad", "excluded or waiting"], ["wait", "paused"]]} />}
      columns={[
        { key: "gpu", label: "GPU", help: "Name and memory of the card, as operators stated them.", value: ({ id }) => gpuName(id, groups), cell: ({ id }) => <a href={address("nodes", "", { gpu: String(id) })}>{gpuName(id, groups)}</a> },
        {
          key: "bar",
          label: "Now",
          help: "Its nodes' states: idle, busy, excluded or waiting, paused, as parts of all of them.",
          value: ({ idle }) => idle,
          cell: ({ idle, busy, apart, paused, own }) => (
            <span class="stack" role="img" aria-label={`${idle} idle, ${busy} busy, ${apart} excluded or waiting, ${paused} paused`} title={`${idle} idle, ${busy} busy, ${apart} excluded or waiting, ${paused} paused`}>
              {([["good", idle], ["busy", busy], ["bad", apart], ["wait", paused]] as const).map(([tone, part]) => part > 0 && <i key={tone} class={tone} style={{ width: `${(part / own) * 100}%` }} />)}
            </span>
          ),
        },
        { key: "own", label: "Nodes", help: "Joined nodes with this card.", value: ({ own }) => own, cell: ({ own }) => count(own), numeric: true },
        { key: "idle", label: "Idle", help: "Nodes that could take a task now.", value: ({ idle }) => idle, cell: ({ idle }) => count(idle), numeric: true },
        { key: "busy", label: "Busy", help: "Nodes that work on a task.", value: ({ busy }) => busy, cell: ({ busy }) => count(busy), numeric: true },
        { key: "listed", label: "Validated", help: "Whether the owner has listed it: its nodes give equal answers, so texts and fine-tunings can be compared.", value: ({ listed }) => (listed ? "yes" : "no") },
      ]}
    />
  );
}

function Queues({ queues, groups }: Pick<Glance, "queues" | "groups">) {
  const now = chainNow();
  return (
    <DataTable
      id="queues"
      caption="Queues"
      sort="-tasks"
      empty="Nothing is queued."
      page={10}
      rows={queues}
      things={["queue", "queues"]}
      name={({ queue }) => queue}
      columns={[
        { key: "queue", label: "For", help: "Its tasks' requirements on a node.", value: ({ queue }) => queueName(queue, groups) },
        { key: "tasks", label: "Tasks", help: "Tasks in it.", value: ({ tasks }) => tasks, cell: ({ tasks }) => count(tasks), numeric: true },
        { key: "work", label: "Work", help: "How long they should take one node, one after the other.", value: ({ seconds }) => seconds, cell: ({ seconds }) => duration(Number(seconds)), numeric: true },
        { key: "oldest", label: "Oldest", help: "How long the one that waits longest has waited.", value: ({ oldest }) => -oldest, cell: ({ oldest }) => duration(now - Number(oldest)), numeric: true },
        { key: "fees", label: "Fees", help: "The deposits for them.", value: ({ fees }) => fees, cell: ({ fees }) => money(fees), numeric: true },
      ]}
    />
  );
}

function Ends({ sums, ended }: { sums: (readonly [string, number, string])[]; ended: number }) {
  return (
    <DataTable
      id="ends"
      caption="How tasks ended, 24 h"
      rows={sums.filter(([, n]) => n > 0)}
      things={["way", "ways"]}
      name={([label]) => label}
      sort="-tasks"
      empty="No task ended in the last 24 hours."
      columns={[
        { key: "how", label: "End", help: "Their outcomes. Evicted: others in the full queue paid better.", value: ([label]) => label, cell: ([label, , tone]) => <Pill tone={tone}>{label}</Pill> },
        { key: "tasks", label: "Tasks", help: "How many, in this hour and the 23 before.", value: ([, n]) => n, cell: ([, n]) => count(n), numeric: true },
        { key: "share", label: "Share", help: "Of all that ended in this time.", value: ([, n]) => n / ended, cell: ([, n]) => percent(n / ended), numeric: true },
      ]}
    />
  );
}

function Gas({ calls }: Pick<Glance, "calls">) {
  return (
    <DataTable
      id="gas"
      caption={`Gas of the last ${count(calls.reduce((all, { sent }) => all + sent, 0))} transactions`}
      rows={calls}
      things={["call", "calls"]}
      name={({ call }) => call}
      sort="-sent"
      page={12}
      empty="No transaction yet."
      columns={[
        { key: "call", label: "Call", help: "The contract's function that was called.", value: ({ call }) => call, cell: ({ call }) => <code>{call}</code> },
        { key: "sent", label: "Sent", help: "How often, among these transactions.", value: ({ sent }) => sent, cell: ({ sent }) => count(sent), numeric: true },
        { key: "gas", label: "Gas, median", help: "Half of them took less gas, half more.", value: ({ gas }) => gas, cell: ({ gas }) => count(gas), numeric: true },
        { key: "cost", label: "Cost, median", help: "Gas times its price: half of them cost less, half more.", value: ({ cost }) => cost, cell: ({ cost }) => money(cost), numeric: true },
      ]}
    />
  );
}
