/** A node: its stake and scores, its work, its income, and its problems. */
import { type Row, ask, isCut, list } from "../api";
import { Chart } from "../chart";
import { config } from "../config";
import { WAD, useCore } from "../core";
import { VERDICT, clip, count, day, moment, money, percent, statusName, statusTone, things, times, wad } from "../format";
import { useConnected } from "../connected";
import { lazy } from "../lazy";
import { chainNow, useAsked, useNow } from "../live";
import { groupsWanted, gpuName, modelNames } from "../names";
import { AccountLink, Ago, Answer, Figure, Figures, Left, ModelLink, Pill, TaskLink } from "../parts";
import { address } from "../router";
import { DataTable } from "../table";
import { told } from "../words";
import { feed, fleet, withNode } from "./fleet";
import { TaskPages } from "./nodes";

/** Calls are loaded for the node's own operator. */
const NodeActs = lazy(() => import("./acts").then(({ NodeActs }) => NodeActs));

const question = (number: number) => async (signal: AbortSignal) => {
  const data = await ask(
    {
      groups: groupsWanted,
      marks: list("reliabilityMarks", { where: { node: number }, order: "-id", limit: 500 }),
      parameters: list("parameters", { where: { name_in: ["tau", "exclusionPpm"] } }, ["name", "value"]),
      nodes: list("nodes", { where: { number } }),
      parts: list("members", { where: { node: number }, order: "-validation", limit: 200 }, ["validation", "task", "answer", "distances", "verdict", "elapsed", "score", "paid"]),
      scores: list("scores", { where: { node: number }, order: "-id", limit: 50 }, ["id", "score", "task"]),
      days: list("nodeDays", { where: { node: number }, order: "-start" }),
      slashs: list("slashs", { where: { node: number }, order: "-id" }),
      apart: list("events", { where: { node: number, name_in: ["NodeExcluded", "NodeReadmitted", "NodeWaits", "NodePaused", "NodeResumed", "NodeQuit", "NodeKickedOut", "NodeJoined"] }, order: "-id", limit: 200 }, ["id", "at", "name", "args", "node", "task", "account", "model"]),
    },
    signal,
  );
  return { ...data, names: await modelNames(data.nodes[0]?.models ?? [], signal) };
};
type Data = Awaited<ReturnType<ReturnType<typeof question>>>;

export function NodeView({ what }: { what: string }) {
  const number = /^\d{1,8}$/.test(what) ? Number(what) : 0;
  const asked = useAsked(`node ${number}`, question(number));
  return (
    <>
      <h1>Node {number}</h1>
      <Answer asked={asked}>{(data) => (data.nodes[0] ? <Shown node={data.nodes[0]} data={data} /> : <p class="empty card">There is no such node.</p>)}</Answer>
    </>
  );
}

function Shown({ node, data }: { node: Row<"nodes">; data: Data }) {
  const { groups, names, days, slashs, parts, scores } = data;
  const account = useConnected();
  const answered = node.succeeded + node.wrong + node.failed + node.timedOut;
  const watched = fleet().includes(node.number);
  return (
    <>
      <div class="actions">
        <a class="button" href={address("fleet", "", { nodes: withNode(node.number) })}>
          {watched ? "In your fleet" : "Add to your fleet"}
        </a>
        {config.feeds && (
          <a class="button" href={feed(node.number)}>
            RSS
          </a>
        )}
      </div>
      <Wrong node={node} slashs={slashs} parts={parts} />
      {account && <NodeActs node={node} />}
      <Figures label="The node">
        <Figure label="Status" note={node.parkedUntil > chainNow() ? <>until {moment(node.parkedUntil)}</> : node.runs ? <TaskLink id={node.task} /> : undefined}>
          <Pill tone={statusTone(node)}>{statusName(node)}</Pill>
        </Figure>
        <Figure label="GPU" note={
          <>
            <AccountLink of={node.operator} />
            {node.works && (
              <>
                , worked by <AccountLink of={node.worker!} />
              </>
            )}
          </>
        }>
          {gpuName(node.gpuGroup, groups)}
        </Figure>
        <Figure label="Stake" note={node.slashed ? <span class="bad">{money(node.slashed)} slashed</span> : `joined ${day(node.joinedAt)}`}>
          {money(node.stake)}
        </Figure>
        <Reliability node={node} tau={Number(data.parameters.find(({ name }) => name === "tau")?.value ?? 1n)} />
        <Figure label="Q_long" help="Mean of its last scores, at most 50, from 0 to 10: 10 for the fastest right answer, 0 for a wrong one." note={node.pool.length ? `mean of ${things(node.pool.length, ["score", "scores"])}` : "5 until it is scored"}>
          {(Number(node.longTerm) / 1e17).toFixed(2)}
        </Figure>
        <Figure label="Judged right" help="How often its answers were compared with others', and how often they were right. A commitment is open until its group is judged." note={`${node.openCommitments} commitments open${node.held ? ", held" : ""}`}>
          {node.judged ? `${node.judgedRight} of ${node.judged}` : "–"}
        </Figure>
        <Figure label="Success" help="Tasks that it ended with an answer that was right or that nobody checked, of all that it ended. The others ended with a wrong or withheld answer, an error or a deadline that passed." note={`${node.started} started, ${node.exclusions ? `excluded ${times(node.exclusions)}` : "never excluded"}`}>
          {answered ? percent(node.succeeded / answered) : "–"}
        </Figure>
        <Figure label="Earned">{money(node.earned)}</Figure>
      </Figures>
      {node.runs && node.deadline > 0n && (
        <p class="notice">
          Runs <TaskLink id={node.task} />: <Left until={node.deadline} />
        </p>
      )}
      <History marks={data.marks} parameters={data.parameters} />
      <div class="columns uneven">
        <Earnings days={days} node={node.number} />
        <section class="card">
          <header>
            <h2>
              Scores <span class="quiet">newest first</span>
            </h2>
          </header>
          {scores.length ? (
            <ol class="scores" aria-label="Scores, newest first">
              {scores.map(({ id, score, task }) => (
                <li key={String(id)} class={score >= 10 ? "good" : score ? "wait" : "bad"} title={task ? `task ${task}` : undefined}>
                  {score}
                </li>
              ))}
            </ol>
          ) : (
            <p class="empty">Not scored yet.</p>
          )}
          <h3>Models</h3>
          <p>{node.models.length ? node.models.map((id, i) => [i ? ", " : "", <ModelLink id={id} names={names} />]) : "none"}</p>
        </section>
      </div>
      {slashs.length > 0 && <Slashes slashs={slashs} parts={parts} />}
      <TaskPages caption="Its tasks" filters={{ node: String(node.number) }} page={25} />
      <DataTable
        id="parts"
        caption="Its parts in groups"
        things={["part", "parts"]}
        rows={parts}
        part={isCut(parts) && "newest"}
        name={({ validation }) => validation}
        sort="-task"
        page={10}
        empty="No group has had it as a member."
        columns={[
          { key: "task", label: "Task", help: "The task that its group had.", value: ({ task }) => task, cell: ({ task }) => <TaskLink id={task} /> },
          { key: "verdict", label: "Judged", help: "Whether its answer was the one that more than half agreed on.", value: ({ verdict }) => (verdict === null ? null : VERDICT[verdict]), cell: ({ verdict }) => (verdict === null ? "–" : <Pill tone={verdict === 1 ? "good" : verdict === 6 ? "wait" : "bad"}>{VERDICT[verdict]}</Pill>) },
          { key: "elapsed", label: "Took, s", help: "From its start to its commitment, in seconds.", value: ({ elapsed }) => elapsed, numeric: true },
          { key: "score", label: "Score", help: "From 0 to 10: the fastest right answer scores 10, a wrong one 0.", value: ({ score }) => score, numeric: true },
          { key: "paid", label: "Paid", help: "Its pay.", value: ({ paid }) => paid, cell: ({ paid }) => money(paid), numeric: true },
        ]}
      />
      <DataTable
        id="apart"
        caption="Comings, goings and exclusions"
        things={["event", "events"]}
        rows={data.apart}
        part={isCut(data.apart) && "newest"}
        name={({ id }) => id}
        sort="-at"
        page={10}
        columns={[
          { key: "at", label: "When", help: "How long ago.", value: ({ at }) => at, cell: ({ at }) => <Ago at={at} /> },
          { key: "what", label: "What", help: "What happened.", value: toldOfIt },
        ]}
      />
    </>
  );
}

/** An event's text on the page of its own node. */
const toldOfIt = (event: Data["apart"][number]): string => told(event).replace(/^Node \d+ (.)/, (_, first: string) => first.toUpperCase());

/** Its present and past problems, the worst first. */
function Wrong({ node, slashs, parts }: { node: Row<"nodes">; slashs: Data["slashs"]; parts: Data["parts"] }) {
  const taken = (slash: Data["slashs"][number]) => slash.stake + slash.unbonding + slash.credit;
  const last = slashs[0];
  const wrong = parts.filter(({ verdict }) => verdict === 2).length;
  const withheld = parts.filter(({ verdict }) => verdict === 3).length;
  const unlucky = node.failed + node.timedOut;
  const found = [
    node.kickedOut && <>It was kicked out, for its scores or by a slash, and can never join again.</>,
    last && (
      <>
        It was slashed {times(slashs.length)}, {money(slashs.reduce((all, slash) => all + taken(slash), 0n))} in all, last for <TaskLink id={last.task} /> <Ago at={last.at} />.
      </>
    ),
    wrong > 0 && <>{parts.length === 1 ? "Its one answer in a group was" : `Of its last ${count(parts.length)} answers in groups ${wrong === 1 ? "one was" : `${wrong} were`}`} wrong: others agreed on another.</>,
    withheld > 0 && <>It committed to {things(withheld, ["answer", "answers"])} and never revealed {withheld === 1 ? "it" : "them"}.</>,
    node.parked === 1 && node.status === 1 && (node.parkedUntil > chainNow() ? <>It gets no task until {moment(node.parkedUntil)}: it let deadlines pass, or has just reported an error.</> : <>It waits to be re-admitted: the next call to the contract does so, once the draws that are due are made.</>),
    node.exclusions > 0 && node.parked !== 1 && <>It was excluded {times(node.exclusions)} for deadlines that it let pass or answers that it withheld.</>,
    unlucky > 0 && (
      <>
        {node.timedOut > 0 && <>It let {things(node.timedOut, ["deadline", "deadlines"])} pass</>}
        {node.timedOut > 0 && node.failed > 0 && " and "}
        {node.failed > 0 && <>{node.timedOut > 0 ? "" : "It "}reported {things(node.failed, ["error", "errors"])}</>}, of {things(node.started, ["start", "starts"])}.
      </>
    ),
    node.status === 0 && !node.kickedOut && <>It has left.</>,
  ].filter(Boolean);
  if (!found.length) return null;
  return (
    <ul class="wrong" data-test="wrong" aria-label="Problems">
      {found.map((said, i) => (
        <li key={i} class={i === 0 && (node.kickedOut || last || wrong) ? "bad" : "wait"}>
          <span>{said}</span>
        </li>
      ))}
    </ul>
  );
}

function Reliability({ node, tau }: { node: Row<"nodes">; tau: number }) {
  const core = useCore();
  const now = useNow();
  const h = core?.recover(node.reliability, BigInt(Math.max(0, Math.floor(now) - Number(node.reliabilityAt))), tau);
  return (
    <Figure label="H now" help="Reliability, from 0 to 1: falls to 0.3 of itself with a deadline that passed, rises with successes, and recovers with time. Below 0.1 a node is excluded." note={<>set {<Ago at={node.reliabilityAt} />}</>}>
      <span data-test="h">{h === undefined ? "…" : wad(h)}</span>
    </Figure>
  );
}

/** Points on the curve of H between two marks. */
const STEPS = 24;

function History({ marks: newest, parameters }: Pick<Data, "marks" | "parameters">) {
  const core = useCore();
  const parameter = (name: string) => Number(parameters.find((one) => one.name === name)?.value ?? 0n);
  if (!core || !newest.length) return null;
  const marks = newest.toReversed();
  const recovered = (h: bigint, seconds: number) => Number(core.recover(h, BigInt(seconds), parameter("tau"))) / 1e18;
  const now = Math.floor(chainNow());
  const [moments, values]: [number[], number[]] = [[], []];
  marks.forEach((mark, i) => {
    const begin = Number(mark.at);
    const end = Number(marks[i + 1]?.at ?? Math.max(now, begin + 1));
    const steps = mark.h >= WAD ? 1 : STEPS;
    for (let step = 0; step < steps; step++) {
      const seconds = Math.floor(((end - begin) * step) / steps);
      const at = begin + seconds;
      // Only ever later: uPlot wants times in order.
      if (moments.length && at <= moments.at(-1)!) moments.pop(), values.pop();
      moments.push(at);
      values.push(recovered(mark.h, seconds));
    }
    if (end - 1 > moments.at(-1)!) {
      moments.push(end - 1);
      values.push(recovered(mark.h, end - 1 - begin));
    }
  });
  const threshold = parameter("exclusionPpm") / 1e6;
  const fallen = marks.filter(({ why }) => why === "timeout").length;
  return (
    <section class="card">
      <header>
        <h2>
          Reliability H <span class="quiet">{fallen ? `lowered ${times(fallen)}` : "never lowered"}{isCut(newest) ? `, of its last ${count(newest.length)} changes` : ""}</span>
        </h2>
      </header>
      <Chart
        label={`H over time: now ${values.at(-1)?.toFixed(3)}, lowest ${Math.min(...values).toFixed(3)}; below ${threshold} it is excluded`}
        times={moments}
        top={1.05}
        format={(value) => value.toFixed(2)}
        series={[
          { label: "H", values, colour: "accent" },
          { label: "excluded below", values: moments.map(() => threshold), colour: "bad", dashed: true },
        ]}
        height={170}
      />
    </section>
  );
}

function Earnings({ days, node }: { days: readonly Row<"nodeDays">[]; node: number }) {
  return (
    <DataTable
      id={`earnings-${node}`}
      caption="Earnings per day"
      things={["day", "days"]}
      rows={days}
      part={isCut(days) && "newest"}
      name={({ start }) => start}
      sort="-day"
      page={14}
      columns={[
        { key: "day", label: "Day (UTC)", help: "From midnight to midnight, UTC.", value: ({ start }) => day(start) },
        { key: "earned", label: "Earned", help: "Fees that it was paid.", value: ({ earned }) => earned, cell: ({ earned }) => money(earned), numeric: true },
        { key: "slashed", label: "Slashed", help: "The amount taken from it.", value: ({ slashed }) => slashed, cell: ({ slashed }) => (slashed ? <span class="bad">{money(slashed)}</span> : "–"), numeric: true },
        { key: "started", label: "Started", help: "Tasks and parts in groups that it began.", value: ({ started }) => started, numeric: true },
        { key: "succeeded", label: "Succeeded", help: "Tasks that it ended with an answer that was not judged wrong.", value: ({ succeeded }) => succeeded, numeric: true },
        { key: "timedOut", label: "Timed out", help: "Deadlines that it let pass.", value: ({ timedOut }) => timedOut, numeric: true },
        { key: "score", label: "Mean score", help: "Mean of that day's scores, from 0 to 10.", value: ({ scores, scored }) => (scores ? scored / scores : null), cell: ({ scores, scored }) => (scores ? (scored / scores).toFixed(1) : "–"), numeric: true },
      ]}
    />
  );
}

/** Every slash with its evidence: the node's answer, and the others'. */
function Slashes({ slashs, parts }: Pick<Data, "slashs" | "parts">) {
  return (
    <DataTable
      id="slashes"
      caption="Slashes, and their evidence"
      things={["slash", "slashes"]}
      rows={slashs}
      part={isCut(slashs) && "newest"}
      name={({ id }) => id}
      sort="-at"
      columns={[
        { key: "at", label: "When", help: "How long ago.", value: ({ at }) => at, cell: ({ at }) => <Ago at={at} /> },
        { key: "task", label: "Task", help: "The task that it was slashed for.", value: ({ task }) => task, cell: ({ task }) => <TaskLink id={task} />, numeric: true },
        { key: "taken", label: "Taken", help: "Out of its stake, of unbonding stake, and of its credit.", value: ({ stake, unbonding, credit }) => stake + unbonding + credit, cell: ({ stake, unbonding, credit }) => <span class="bad">{money(stake + unbonding + credit)}</span>, numeric: true },
        {
          key: "evidence",
          label: "Evidence",
          help: "Its answer, beside the others' common answer.",
          value: (slash) => evidence(slash, parts),
          cell: (slash) => (
            <>
              {evidence(slash, parts)} <a href={address("task", slash.task)}>All answers side by side</a>
            </>
          ),
        },
      ]}
    />
  );
}

function evidence({ validation }: Row<"slashs">, parts: Data["parts"]): string {
  const part = parts.find((one) => one.validation === validation);
  if (!part) return "Its part is older than the last 200.";
  if (part.verdict === 3) return "It committed to an answer and never revealed it.";
  const far = part.distances ? `, ${part.distances.join(", ")} bits from the others'` : "";
  return `It revealed ${part.answer ? clip(part.answer, 6) : "another answer"}, and others agreed on another${far}.`;
}

