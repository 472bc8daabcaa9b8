/** The network at a glance: what is there, what runs, what waits, what it costs. */
import { type Row, ask, list } from "../api";
import { Chart } from "../chart";
import { KIND, compact, count, duration, money, percent } from "../format";
import { type Live, chainNow, useAsked, useLive } from "../live";
import { groupsWanted, gpuName, queueName, tauWanted } from "../names";
import { AccountLink, Answer, Figure, Figures, Left, NodeLink, Pill, TaskLink } from "../parts";
import { DataTable } from "../table";
import { NodeTable } from "./nodes";

const MINUTES = 60;
const bigMin = (at: number) => BigInt(Math.floor(at));

const question = (signal: AbortSignal) => {
  const now = chainNow();
  return ask(
    {
      groups: groupsWanted,
      tau: tauWanted,
      nodes: list("nodes", { order: "number" }),
      running: list("tasks", { where: { status_in: [3, 4, 5, 6] }, order: "deadline", limit: 200 }),
      queued: list("tasks", { where: { status: 2 }, order: "queuedAt" }, ["id", "queue", "queuedAt", "fee", "estimate"]),
      recent: list("tasks", { where: { createdAt_gte: bigMin(now - MINUTES * 60) }, order: "-id" }, ["createdAt", "startedAt"]),
      ended: list("tasks", { where: { endedAt_gte: bigMin(now - MINUTES * 60) }, order: "-endedAt" }, ["endedAt", "outcome", "startedAt", "createdAt", "fee", "paid", "estimate"]),
      hours: list("hours", { where: { start_gte: bigMin(now - 86_400 - 3_600) }, order: "start" }),
      calls: list("transactions", { where: { call_not: null }, order: "-at", limit: 1_000 }, ["call", "gasUsed", "gasPrice"]),
    },
    signal,
  );
};
type Data = Awaited<ReturnType<typeof question>>;

const median = (values: readonly number[]): number | undefined => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

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

function Shown({ data, live: { network } }: { data: Data; live: Live }) {
  const { groups, nodes, running, queued, hours } = data;
  const sum = (key: "created" | "started" | "succeeded" | "failed" | "timedOut" | "undecided" | "evicted" | "cancelled" | "expired" | "slashedOut") =>
    hours.reduce((all, hour) => all + hour[key], 0);
  const total = (key: "fees" | "paid" | "waited" | "gas") => hours.reduce((all, hour) => all + hour[key], 0n);
  const ran = sum("succeeded") + sum("failed") + sum("timedOut") + sum("undecided") + sum("slashedOut");
  const ended = ran + sum("evicted") + sum("cancelled") + sum("expired");
  const joined = nodes.filter(({ status }) => status);
  const prices = data.ended.filter(({ estimate }) => estimate).map(({ fee, estimate }) => Number(fee) / estimate);
  const price = median(prices);
  return (
    <>
      <Figures label="The network now">
        <Figure label="Nodes" note={`${count(joined.filter(({ status, parked }) => status === 1 && !parked).length)} idle`}>
          {count(joined.length)}
        </Figure>
        <Figure label="Running" note={network?.groups ? `${network.groups} in validation groups` : undefined}>
          {count(network?.running ?? 0)}
        </Figure>
        <Figure label="Queued" note={`${count(network?.pending ?? 0)} wait for their draw`}>
          {count(network?.queued ?? 0)}
        </Figure>
        <Figure label="Success, a day" note={ran ? `${count(sum("succeeded"))} of ${count(ran)} that ran` : "nothing ended"}>
          {ran ? percent(sum("succeeded") / ran) : "–"}
        </Figure>
        <Figure label="Waiting, a day" note="mean, creation to start">
          {sum("started") ? duration(Number(total("waited")) / sum("started")) : "–"}
        </Figure>
        <Figure label="Fees, a day" note={`${money(total("paid"))} paid to nodes`}>
          {money(total("fees"))}
        </Figure>
        <Figure label="Price" note="median, of an estimated second">
          {price === undefined ? "–" : money(BigInt(Math.round(price)))}
        </Figure>
        <Figure label="Staked" note={`${money(network?.burnt ?? 0n)} burnt`}>
          {money(network?.stakes ?? 0n)}
        </Figure>
      </Figures>
      <Minutes recent={data.recent} ended={data.ended} />
      <div class="columns">
        <Gpus groups={groups} nodes={nodes} />
        <Queues queued={queued} groups={groups} />
      </div>
      <DataTable
        id="running"
        caption="Running tasks"
        empty="No task runs now."
        sort="left"
        page={12}
        rows={running}
        name={({ id }) => id}
        columns={[
          { key: "id", label: "Task", value: ({ id }) => id, cell: ({ id }) => <TaskLink id={id} /> },
          { key: "kind", label: "Kind", value: ({ kind, units }) => `${KIND[kind]}${kind < 2 ? ` × ${units}` : ""}` },
          { key: "node", label: "Node", value: ({ node }) => node, cell: ({ node, status }) => (status === 6 ? "group" : <NodeLink number={node} />) },
          { key: "state", label: "State", value: ({ status }) => status, cell: ({ status }) => <Pill tone="busy">{["", "", "", "running", "committed", "sampled", "validated"][status]}</Pill> },
          { key: "left", label: "Time left", value: ({ deadline }) => deadline, cell: ({ deadline, startedAt, status }) => (status === 3 ? <Left until={deadline} from={startedAt} /> : "–") },
          { key: "fee", label: "Fee", value: ({ fee }) => fee, cell: ({ fee }) => money(fee), numeric: true },
          { key: "creator", label: "Creator", value: ({ creator }) => creator, cell: ({ creator }) => <AccountLink of={creator} /> },
        ]}
      />
      <NodeTable nodes={joined} groups={groups} tau={data.tau[0]?.value} />
      <div class="columns">
        <Ends sums={[["Succeeded", sum("succeeded"), "good"], ["Timed out", sum("timedOut"), "bad"], ["Error reported", sum("failed"), "bad"], ["No two answers alike", sum("undecided"), "bad"], ["Node slashed out", sum("slashedOut"), "bad"], ["Evicted", sum("evicted"), "wait"], ["Cancelled", sum("cancelled"), "wait"], ["Queued too long", sum("expired"), "wait"]]} ended={ended} />
        <Gas calls={data.calls} />
      </div>
    </>
  );
}

function Minutes({ recent, ended }: Pick<Data, "recent" | "ended">) {
  const now = Math.floor(chainNow() / 60) * 60;
  const times = Array.from({ length: MINUTES }, (_, i) => now - (MINUTES - 1 - i) * 60);
  const of = (moments: (bigint | null)[]) => {
    const bins = times.map(() => 0);
    for (const at of moments) {
      const i = at === null ? -1 : MINUTES - 1 - Math.floor((now + 60 - 1 - Number(at)) / 60);
      if (i >= 0 && i < MINUTES) bins[i]!++;
    }
    return bins;
  };
  const created = of(recent.map(({ createdAt }) => createdAt));
  const done = of(ended.map(({ endedAt }) => endedAt));
  const all = created.reduce((sum, n) => sum + n, 0);
  return (
    <section class="card">
      <header>
        <h2>
          Tasks per minute <span class="quiet">in the last hour</span>
        </h2>
      </header>
      <Chart
        label={`Tasks per minute in the last hour: ${all} created, ${done.reduce((sum, n) => sum + n, 0)} ended`}
        times={times}
        format={(value) => compact(value)}
        series={[
          { label: "created", values: created, colour: "accent", bars: true },
          { label: "ended", values: done, colour: "good" },
        ]}
        height={180}
      />
    </section>
  );
}

function Gpus({ groups, nodes }: Pick<Data, "groups" | "nodes">) {
  const rows = groups.map((group) => {
    const own = nodes.filter(({ gpuGroup, status }) => gpuGroup === group.id && status);
    const by = (want: (node: Row<"nodes">) => boolean) => own.filter(want).length;
    return { ...group, own: own.length, idle: by(({ status, parked }) => status === 1 && !parked), busy: by(({ status }) => [2, 3, 4, 6].includes(status)), apart: by(({ status, parked }) => status === 1 && parked > 0), paused: by(({ status }) => status === 5) };
  });
  return (
    <DataTable
      id="gpus"
      caption="Nodes by GPU"
      sort="-own"
      page={10}
      rows={rows}
      name={({ id }) => id}
      columns={[
        { key: "gpu", label: "GPU", value: ({ id }) => gpuName(id, groups) },
        {
          key: "bar",
          label: "Now",
          value: ({ idle }) => idle,
          cell: ({ idle, busy, apart, paused, own }) => (
            <span class="stack" role="img" aria-label={`${idle} idle, ${busy} busy, ${apart} apart, ${paused} paused`} title={`${idle} idle, ${busy} busy, ${apart} apart, ${paused} paused`}>
              {([["good", idle], ["busy", busy], ["bad", apart], ["wait", paused]] as const).map(([tone, part]) => part > 0 && <i key={tone} class={tone} style={{ width: `${(part / own) * 100}%` }} />)}
            </span>
          ),
        },
        { key: "own", label: "Nodes", value: ({ own }) => own, numeric: true },
        { key: "idle", label: "Idle", value: ({ idle }) => idle, numeric: true },
        { key: "busy", label: "Busy", value: ({ busy }) => busy, numeric: true },
        { key: "listed", label: "Validated", value: ({ listed }) => (listed ? "yes" : "no") },
      ]}
    />
  );
}

function Queues({ queued, groups }: Pick<Data, "queued" | "groups">) {
  const rows = [...new Set(queued.map(({ queue }) => queue))].map((queue) => {
    const own = queued.filter((task) => task.queue === queue);
    const oldest = own.reduce((least, { queuedAt }) => (queuedAt < least ? queuedAt : least), own[0]!.queuedAt);
    return { queue, tasks: own.length, oldest, fees: own.reduce((all, { fee }) => all + fee, 0n), seconds: own.reduce((all, { estimate }) => all + estimate, 0) };
  });
  const now = chainNow();
  return (
    <DataTable
      id="queues"
      caption="Queues"
      sort="-tasks"
      empty="Nothing is queued."
      page={10}
      rows={rows}
      name={({ queue }) => queue}
      columns={[
        { key: "queue", label: "For", value: ({ queue }) => queueName(queue, groups) },
        { key: "tasks", label: "Tasks", value: ({ tasks }) => tasks, numeric: true },
        { key: "work", label: "Work", value: ({ seconds }) => seconds, cell: ({ seconds }) => duration(seconds), numeric: true },
        { key: "oldest", label: "Oldest", value: ({ oldest }) => -oldest, cell: ({ oldest }) => duration(now - Number(oldest)), numeric: true },
        { key: "fees", label: "Fees", value: ({ fees }) => fees, cell: ({ fees }) => money(fees), numeric: true },
      ]}
    />
  );
}

function Ends({ sums, ended }: { sums: [string, number, string][]; ended: number }) {
  return (
    <DataTable
      id="ends"
      caption="How tasks ended, a day"
      rows={sums.filter(([, n]) => n > 0)}
      name={([label]) => label}
      sort="-tasks"
      empty="No task ended in the last day."
      columns={[
        { key: "how", label: "End", value: ([label]) => label, cell: ([label, , tone]) => <Pill tone={tone}>{label}</Pill> },
        { key: "tasks", label: "Tasks", value: ([, n]) => n, cell: ([, n]) => count(n), numeric: true },
        { key: "share", label: "Share", value: ([, n]) => n / ended, cell: ([, n]) => percent(n / ended), numeric: true },
      ]}
    />
  );
}

function Gas({ calls }: Pick<Data, "calls">) {
  const rows = [...new Set(calls.map(({ call }) => call!))].map((call) => {
    const own = calls.filter((one) => one.call === call);
    const gas = median(own.map(({ gasUsed }) => Number(gasUsed)))!;
    return { call, sent: own.length, gas, cost: BigInt(Math.round(median(own.map(({ gasUsed, gasPrice }) => Number(gasUsed * gasPrice)))!)) };
  });
  return (
    <DataTable
      id="gas"
      caption="Gas by call, the last 1,000"
      rows={rows}
      name={({ call }) => call}
      sort="-sent"
      page={12}
      empty="No transaction yet."
      columns={[
        { key: "call", label: "Call", value: ({ call }) => call, cell: ({ call }) => <code>{call}</code> },
        { key: "sent", label: "Sent", value: ({ sent }) => sent, numeric: true },
        { key: "gas", label: "Gas, median", value: ({ gas }) => gas, cell: ({ gas }) => count(gas), numeric: true },
        { key: "cost", label: "Cost, median", value: ({ cost }) => cost, cell: ({ cost }) => money(cost), numeric: true },
      ]}
    />
  );
}
