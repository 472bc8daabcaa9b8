/** The network at a glance: what is there, what runs, what waits, what it costs. */
import { ask, askAll, isCut, list } from "../api";
import { Chart } from "../chart";
import { KIND, compact, count, duration, money, percent } from "../format";
import { type Live, chainNow, useAsked, useLive } from "../live";
import { groupsWanted, gpuName, queueName, tauWanted } from "../names";
import { AccountLink, Answer, Figure, Figures, Left, NodeLink, Pill, TaskLink } from "../parts";
import { DataTable } from "../table";
import { NODE, NodeTable } from "./nodes";

const MINUTES = 60;
/** Tasks whose price is looked at, and transactions whose gas is. */
const [PRICED, CALLS] = [200, 1_000];
const bigMin = (at: number) => BigInt(Math.floor(at));

const question = async (signal: AbortSignal) => {
  const now = chainNow();
  const wanted = {
    groups: groupsWanted,
    tau: tauWanted,
    running: list("tasks", { where: { status_in: [3, 4, 5, 6] }, order: "deadline", limit: 200 }, ["id", "kind", "units", "node", "status", "deadline", "startedAt", "fee", "creator"]),
    minutes: list("minutes", { where: { start_gte: bigMin(now - MINUTES * 60) }, order: "start" }),
    ended: list("tasks", { where: { status: 0 }, order: "-endedAt", limit: PRICED }, ["fee", "estimate"]),
    hours: list("hours", { where: { start_gte: bigMin(now - 86_400 - 3_600) }, order: "start" }),
    calls: list("transactions", { where: { call_not: null }, order: "-at", limit: CALLS }, ["call", "gasUsed", "gasPrice"]),
  };
  const [nodes, queued, data] = await Promise.all([
    askAll(list("nodes", { where: { status_not: 0 }, order: "number" }, NODE), signal),
    askAll(list("tasks", { where: { status: 2 }, order: "id" }, ["queue", "queuedAt", "fee", "estimate"]), signal),
    ask(wanted, signal),
  ]);
  return { nodes, queued, ...data };
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
  const prices = data.ended.filter(({ estimate }) => estimate).map(({ fee, estimate }) => Number(fee) / estimate);
  const price = median(prices);
  return (
    <>
      <Figures label="The network now">
        <Figure label="Nodes" note={`${count(nodes.filter(({ status, parked }) => status === 1 && !parked).length)} idle`}>
          {count(nodes.length)}
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
        <Figure label="Price" note={`of an estimated second, median of the last ${count(prices.length)}`}>
          {price === undefined ? "–" : money(BigInt(Math.round(price)))}
        </Figure>
        <Figure label="Staked" note={`${money(network?.burnt ?? 0n)} burnt`}>
          {money(network?.stakes ?? 0n)}
        </Figure>
      </Figures>
      <Minutes minutes={data.minutes} />
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
        part={isCut(running) && `of ${count(network?.running ?? 0)} whose time is up first`}
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
      <NodeTable nodes={nodes} groups={groups} tau={data.tau[0]?.value} />
      <div class="columns">
        <Ends sums={[["Succeeded", sum("succeeded"), "good"], ["Timed out", sum("timedOut"), "bad"], ["Error reported", sum("failed"), "bad"], ["No two answers alike", sum("undecided"), "bad"], ["Node slashed out", sum("slashedOut"), "bad"], ["Evicted", sum("evicted"), "wait"], ["Cancelled", sum("cancelled"), "wait"], ["Queued too long", sum("expired"), "wait"]]} ended={ended} />
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
    const own = nodes.filter(({ gpuGroup }) => gpuGroup === group.id);
    const by = (want: (node: Data["nodes"][number]) => boolean) => own.filter(want).length;
    return { ...group, own: own.length, idle: by(({ status, parked }) => status === 1 && !parked), busy: by(({ status }) => [2, 3, 4, 6].includes(status)), apart: by(({ status, parked }) => status === 1 && parked > 0), paused: by(({ status }) => status === 5) };
  });
  return (
    <DataTable
      id="gpus"
      caption="Nodes by GPU"
      sort="-own"
      part={isCut(groups) && "with most nodes"}
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
      caption={`Gas by call, the last ${count(calls.length)}`}
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
