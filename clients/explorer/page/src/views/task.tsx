/** A task from creation to payment, and its checks. */
import { useEffect, useState } from "preact/hooks";
import type { Check } from "muster-client/verify";
import { type Row, ask, list } from "../api";
import { config } from "../config";
import { loadCore } from "../core";
import { GROUP, KIND, POLICY, STAGE, VERDICT, count, duration, moment, money, percent, stateOf, times, toneOf } from "../format";
import { lazy } from "../lazy";
import { useAsked } from "../live";
import { groupsWanted, modelNames, requirement } from "../names";
import { AccountLink, Ago, Answer, BlockLink, Copy, Figure, Figures, Hex, Left, Loading, ModelLink, NodeLink, Pill, TxLink } from "../parts";
import { MOST, type Draw, candidatesOf, drawsOf } from "../replay";
import { DataTable } from "../table";
import { because, told } from "../words";

/** Calls and wallets are loaded where something is left to be done. */
const TaskActs = lazy(() => import("./acts").then(({ TaskActs }) => TaskActs));

const question = (id: bigint) => async (signal: AbortSignal) => {
  const data = await ask(
    {
      groups: groupsWanted,
      networks: list("networks", {}, ["events"]),
      tasks: list("tasks", { where: { id } }),
      events: list("events", { where: { task: id }, order: "id" }),
      validations: list("validations", { where: { task: id }, order: "id" }),
      members: list("members", { where: { task: id }, order: "position" }),
      slashs: list("slashs", { where: { task: id } }),
    },
    signal,
  );
  const models = data.tasks[0]?.models ?? [];
  const [names, held] = await Promise.all([modelNames(models, signal), models.length ? ask({ models: list("models", { where: { id_in: models } }, ["id", "held"]) }, signal) : { models: [] }]);
  return { ...data, names, unheld: models.filter((id) => !held.models.find((one) => one.id === id)?.held) };
};
type Data = Awaited<ReturnType<ReturnType<typeof question>>>;

export function TaskView({ what }: { what: string }) {
  const id = /^\d+$/.test(what) ? BigInt(what) : 0n;
  const asked = useAsked(`task ${id}`, question(id));
  return (
    <>
      <h1>Task {String(id)}</h1>
      <Answer asked={asked}>{(data) => (data.tasks[0] ? <Shown task={data.tasks[0]} data={data} /> : <p class="empty card">There is no such task.</p>)}</Answer>
    </>
  );
}

function Shown({ task, data }: { task: Row<"tasks">; data: Data }) {
  const { groups, names, validations, members, events, networks } = data;
  // A reorganisation can replace the block of the start, and leave its number and its time.
  const branch = events.findLast(({ name }) => name === "TaskStarted")?.blockHash;
  return (
    <>
      {task.status !== 0 && <TaskActs task={task} validations={validations} />}
      <Figures label="The task">
        <Figure label="State" note={task.status === 3 ? <Left until={task.deadline} from={task.startedAt} /> : task.endedAt ? <Ago at={task.endedAt} /> : undefined}>
          <Pill tone={toneOf(task)}>{stateOf(task)}</Pill>
        </Figure>
        <Figure label="Asks for" note={`about ${duration(task.estimate)}, at most ${duration(task.timeLimit)}`}>
          {KIND[task.kind]}
          {task.kind < 2 ? ` × ${task.units}` : ""}
        </Figure>
        <Figure label="Policy" note={task.redundancy === 1 ? `checked with ${percent(task.sampleBps / 10_000)}` : undefined}>
          {POLICY[task.redundancy]}
        </Figure>
        <Figure label="Fee" note={`${money(task.fee / BigInt(task.estimate || 1))} a second`}>
          {money(task.fee)}
        </Figure>
        <Figure label="Paid to nodes" note={task.refund ? `${money(task.refund)} given back` : task.toReserve ? (task.toReserve > 0n ? `${money(task.toReserve)} to the reserve` : `${money(-task.toReserve)} of it from the reserve`) : undefined}>
          {money(task.paid)}
        </Figure>
        <Figure label="Node">{task.node ? <NodeLink number={task.node} /> : "–"}</Figure>
      </Figures>
      <div class="columns">
        <Timeline events={events} names={names} />
        <section class="card">
          <header>
            <h2>Terms</h2>
          </header>
          <dl class="terms">
            <dt>Creator</dt>
            <dd>
              <AccountLink of={task.creator} />
            </dd>
            <dt>Requires</dt>
            <dd>{requirement(task, groups)}</dd>
            <dt>Asks for models</dt>
            <dd>
              {task.models.length ? task.models.map((id, i) => [i ? ", " : "", <ModelLink id={id} names={names} />]) : "none"}
              {data.unheld.length > 0 && (
                <small>
                  {" "}
                  Nobody holds {data.unheld.length === task.models.length ? (data.unheld.length > 1 ? "any of them" : "it") : "all of them"}: that does not keep the task from running, on a node that fetches first.
                </small>
              )}
            </dd>
            <dt>Input</dt>
            <dd>
              <Hex of={task.inputDigest} /> <Copy text={task.inputDigest} what="the input's digest" />
            </dd>
            <dt>Result</dt>
            <dd>
              {task.resultDigest ? (
                <>
                  <Hex of={task.resultDigest} /> <Copy text={task.resultDigest} what="the result's digest" />
                  <Download task={task} />
                </>
              ) : (
                "–"
              )}
            </dd>
            <dt>Start fee</dt>
            <dd>{percent(task.startFeeBps / 10_000)}</dd>
            <dt>Drawn anew</dt>
            <dd>{times(task.redraws)}</dd>
            <dt>Created in</dt>
            <dd>
              <BlockLink of={task.createdBlock} />, <TxLink of={task.createdTx} /> <Copy text={task.createdTx} what="the transaction's hash" />
            </dd>
          </dl>
        </section>
      </div>
      {validations.map((group) => (
        <Group key={String(group.id)} group={group} members={members.filter(({ validation }) => validation === group.id)} images={task.kind === 0} slashes={data.slashs} />
      ))}
      <Drawn task={task} events={networks[0]?.events ?? 0n} newest={events.at(-1)?.id ?? 0n} branch={branch} />
      <Checks task={task} branch={branch} />
    </>
  );
}

function Timeline({ events, names }: { events: readonly Row<"events">[]; names: ReadonlyMap<bigint, string> }) {
  const [first] = events;
  return (
    <section class="card">
      <header>
        <h2>Timeline</h2>
      </header>
      <ol class="timeline">
        {events.map((event, i) => (
          <li key={String(event.id)} class={event.name}>
            <span class="quiet numeric" title={`block ${event.block}, ${moment(event.at)}`}>
              {i && first ? `+${duration(Number(event.at - first.at))}` : moment(event.at)}
            </span>
            <span>
              {told(event, { models: names })} <small><TxLink of={event.tx} ends={3} /></small>
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Group({ group, members, images, slashes }: { group: Row<"validations">; members: readonly Row<"members">[]; images: boolean; slashes: readonly Row<"slashs">[] }) {
  return (
    <DataTable
      id={`group-${group.id}`}
      caption={`Group: ${group.outcome === null ? "open" : GROUP[group.outcome]!.toLowerCase()}${group.scored ? "" : ", not scored"}`}
      rows={members}
      things={["member", "members"]}
      name={({ node }) => node}
      columns={[
        { key: "node", label: "Node", help: "The member's node.", value: ({ node }) => node, cell: ({ node }) => <NodeLink number={node} /> },
        { key: "stage", label: "Stage", help: "How far it came: called, running, committed to an answer, answered.", value: ({ stage }) => STAGE[stage] },
        { key: "elapsed", label: "Took", help: "From its start to its commitment.", value: ({ elapsed, committedAt }) => (committedAt ? elapsed : null), cell: ({ elapsed, committedAt }) => (committedAt ? duration(elapsed) : "–"), numeric: true },
        { key: "commitment", label: "Committed to", help: "A hash of its answer and a secret: its promise, made before it saw others' answers.", value: ({ commitment }) => commitment, cell: ({ commitment }) => (commitment ? <Hex of={commitment} ends={4} /> : "–") },
        { key: "answer", label: "Answer", help: "Its answer as it revealed it: a digest, perceptual hashes of images, or an error's code.", value: ({ answer }) => answer, cell: ({ answer, kind }) => (answer ? kind ? `error ${BigInt(answer)}` : <Hex of={answer} ends={6} /> : "–") },
        {
          key: "distance",
          label: images ? "Bits from the right one" : "Equal",
          help: images ? "In how many of 64 bits the hash of each of its images differs from the right one's. A few may differ: images are alike, not equal." : "Whether its answer is the right one, bit by bit.",
          value: ({ distances, equal }) => (distances ? distances.join(" ") : equal === null ? null : equal ? "yes" : "no"),
        },
        { key: "verdict", label: "Judged", help: "Whether its answer is the one that more than half agree on.", value: ({ verdict }) => (verdict === null ? null : VERDICT[verdict]), cell: ({ verdict }) => (verdict === null ? "–" : <Pill tone={verdict === 1 ? "good" : verdict === 6 ? "wait" : "bad"}>{VERDICT[verdict]}</Pill>) },
        { key: "score", label: "Score", help: "From 0 to 10: the fastest right answer scores 10, a wrong one 0.", value: ({ score }) => score, numeric: true },
        { key: "paid", label: "Paid", help: "Its pay.", value: ({ paid }) => paid, cell: ({ paid }) => money(paid), numeric: true },
        { key: "slashed", label: "Slashed", help: "The cost of a wrong or withheld answer.", value: ({ node, slashed }) => slashed || slashes.filter((one) => one.node === node && one.validation === group.id).reduce((all, { stake, unbonding, credit }) => all + stake + unbonding + credit, 0n), cell: ({ slashed }) => (slashed ? <span class="bad">{money(slashed)}</span> : "–"), numeric: true },
      ]}
    />
  );
}

/** Hands the reader the task's result. */
function Download({ task }: { task: Row<"tasks"> }) {
  const [said, setSaid] = useState<string | undefined>(undefined);
  if (task.outcome !== 2 || !config.muster) return null;
  const get = async () => {
    setSaid("Looking …");
    try {
      const { bytes, node, store } = await (await import("../result")).resultOf(task.id, task.createdBlock);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([bytes as BlobPart]));
      link.download = `task-${task.id}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      setSaid(`${count(bytes.length)} bytes, as node ${node} answered, from ${store}.`);
    } catch (error) {
      setSaid((error as Error).message.split("\n")[0]);
    }
  };
  return (
    <>
      {" "}
      <button type="button" class="button" onClick={() => void get()}>
        Download
      </button>{" "}
      {said && <small role="status">{said}</small>}
    </>
  );
}

/** Why this node: the other candidates, according to the events. */
function Drawn({ task, events, newest, branch }: { task: Row<"tasks">; events: bigint; newest: bigint; branch: string | undefined }) {
  const [draws, setDraws] = useState<Draw[] | string | undefined>(undefined);
  useEffect(() => {
    let gone = false;
    if (events > BigInt(MOST)) return setDraws(`Beyond ${count(MOST)} events nothing is replayed in a browser.`);
    void loadCore()
      .then((core) => drawsOf(core, task.id, newest))
      .then(
        (found) => gone || setDraws(found),
        (error: unknown) => gone || setDraws((error as Error).message),
      );
    return () => void (gone = true);
  }, [task.id, task.startedAt, branch]);
  const draw = Array.isArray(draws) ? draws.at(-1) : undefined;
  const candidates = draw ? candidatesOf(draw) : [];
  const own = candidates.find(({ node }) => node === draw?.winner);
  return (
    <>
      {draws === undefined && <Loading />}
      {(typeof draws === "string" || (Array.isArray(draws) && !draw)) && (
        <section class="card prose" data-test="draw">
          <h2>Why this node</h2>
          <p>{typeof draws === "string" ? draws : task.startedAt === null ? "No node has been drawn." : task.redundancy === 3 ? "Several nodes were chosen at once by their ratings, out of idle ones." : task.redundancy > 1 ? "Several nodes were drawn at once, one after the other by weight; single chances are not told." : task.queuedAt ? "It came out of the queue: a node that became free took it, and nobody was drawn." : "This draw cannot be replayed from events: only some of its candidates were looked at."}</p>
        </section>
      )}
      {draw && own && (
        <div data-test="draw">
          <DataTable
            id="candidates"
            caption={`Why node ${draw.winner}: its chance was ${percent(own.chance)}`}
            rows={candidates}
            things={["candidate", "candidates"]}
            name={({ node }) => node}
            sort="-chance"
            page={10}
            columns={[
              { key: "node", label: "Candidate", help: "A node that was idle and could take it.", value: ({ node }) => node, cell: ({ node }) => <NodeLink number={node} /> },
              {
                key: "bar",
                label: "Chance",
                help: "The same as a bar, beside the largest.",
                value: ({ chance }) => chance,
                cell: ({ chance, node }) => (
                  <span class="bar" role="img" aria-label={percent(chance)}>
                    <i class={node === draw.winner ? "accent" : "rest"} style={{ width: `${(chance / Math.max(...candidates.map((one) => one.chance))) * 100}%` }} />
                  </span>
                ),
              },
              { key: "chance", label: "Of all", help: "Its weight as a part of all candidates' weight.", value: ({ chance }) => chance, cell: ({ chance }) => percent(chance, 2), numeric: true },
              { key: "weight", label: "Weight", help: "By the contract's formula, of stake, scores, reliability and models at hand.", value: ({ weight }) => weight, cell: ({ weight }) => (Number(weight) / 1e18).toFixed(4), numeric: true },
              { key: "drawn", label: "Drawn", help: "The node that the block's hash picked.", value: ({ node }) => (node === draw.winner ? "drawn" : ""), cell: ({ node }) => node === draw.winner && <Pill tone="good">drawn</Pill> },
            ]}
            note="The coloured bar is of the node that the hash picked. Replayed in your browser from all events: the idle nodes in scope then, and the weight of each by the contract's formula. Which of them the block's hash picked is checked below, where the RPC endpoint keeps the contract's storage of that block."
          />
        </div>
      )}
    </>
  );
}

const SUBJECTS: Record<Check["subject"], string> = { draw: "Draw", deadline: "Deadline", commitment: "Commitment", lot: "Lot", answer: "Answer", judgement: "Judgement", scores: "Score", slashes: "Slash", payout: "Payment", end: "End" };

/** The contract's results, computed again by this browser from the chain's own events. */
function Checks({ task, branch }: { task: Row<"tasks">; branch: string | undefined }) {
  const [checks, setChecks] = useState<readonly Check[] | string | undefined>(undefined);
  const { rpc, muster, fromBlock } = config;
  const possible = Boolean(rpc && muster);
  useEffect(() => {
    if (!possible) return;
    let gone = false;
    void import("../verify")
      .then(({ checkTask }) => checkTask(task.id, BigInt(fromBlock)))
      .then(
        (done) => gone || setChecks(done),
        (error: unknown) => gone || setChecks((error as Error).message.split("\n")[0]!),
      );
    return () => void (gone = true);
  }, [task.id, task.status, branch]);
  const done = Array.isArray(checks) ? (checks as readonly Check[]) : [];
  const wrong = done.filter(({ result }) => result === "wrong").length;
  const ok = done.filter(({ result }) => result === "ok").length;
  return (
    <section class="card" data-test="checks">
      <header>
        <h2>
          Checked in this browser <span class="quiet">{done.length ? `${ok} right, ${wrong} wrong, ${done.length - ok - wrong} not checkable here` : ""}</span>
        </h2>
      </header>
      {!possible && <p class="empty">Not checkable here: this page is not configured with an RPC endpoint of the chain.</p>}
      {typeof checks === "string" && <p class="notice bad">Not checkable now: {checks}</p>}
      {possible && checks === undefined && <Loading />}
      <ul class="checks">
        {done.map(({ subject, node, result, because: why }, i) => (
          <li key={i}>
            <Pill tone={result === "ok" ? "good" : result === "wrong" ? "bad" : "wait"}>{result === "ok" ? "right" : result}</Pill>
            <span>
              <b>
                {SUBJECTS[subject]}
                {node === undefined ? "" : ` of node ${node}`}
              </b>{" "}
              {because({ subject, because: why })}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
