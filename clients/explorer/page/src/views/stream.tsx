/** Events as they come, the newest first; old ones are dropped. */
import { useState } from "preact/hooks";
import { type Row, ask, list } from "../api";
import { useAsked } from "../live";
import { count } from "../format";
import { groupsWanted, modelNames } from "../names";
import { Ago, Answer, NodeLink, TaskLink, TxLink } from "../parts";
import { choose, useHere } from "../router";
import { type Column, csv, save } from "../table";
import { told } from "../words";

const KEPT = 300;
const GROUPS: Record<string, string[] | undefined> = {
  all: undefined,
  tasks: ["TaskCreated", "TaskQueued", "TaskStarted", "TaskSucceeded", "TaskErrorReported", "TaskAborted", "TaskRefused", "TaskRedrawn"],
  nodes: ["NodeJoined", "NodeQuit", "NodePaused", "NodeResumed", "NodeExcluded", "NodeReadmitted", "NodeWaits", "NodeKickedOut", "StakeRaised", "WorkerNamed", "WorkAccepted", "StoresSet"],
  validation: ["AnswerCommitted", "AnswerRevealed", "TaskSampled", "GroupFormed", "GroupChosen", "MemberCalled", "MemberStarted", "MemberTimedOut", "MemberJudged", "GroupSettled", "ScoreRecorded", "NodeRated", "NodeSlashed"],
  money: ["Withdrawn", "StakeReleased", "TreasurySwept", "NodeSlashed", "TaskSucceeded", "TaskRefused", "MemberJudged"],
};
const TONES: Record<string, string> = { TaskSucceeded: "good", TaskAborted: "bad", TaskErrorReported: "bad", TaskRefused: "bad", NodeSlashed: "bad", NodeExcluded: "bad", MemberTimedOut: "bad", TaskQueued: "wait", TaskStarted: "busy", MemberStarted: "busy" };
const words = (name: string) => name.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/ [A-Z]/g, (two) => two.toLowerCase());

const question = (names: string[] | undefined) => async (signal: AbortSignal) => {
  const { events, ...known } = await ask(
    { groups: groupsWanted, events: list("events", { ...(names ? { where: { name_in: names } } : {}), order: "-id", limit: KEPT }), parameters: list("parameters", { order: "number" }, ["number", "name", "unit"]) },
    signal,
  );
  return { events, ...known, models: await modelNames(events.flatMap(({ model }) => (model === null ? [] : [model])), signal) };
};

export function Stream() {
  const { query } = useHere();
  const only = query.get("only") ?? "all";
  const names = GROUPS[only];
  const [held, setHeld] = useState<Row<"events">[] | undefined>(undefined);
  const asked = useAsked(`stream ${only}`, question(names));
  return (
    <>
      <h1>Live</h1>
      <div class="actions" role="group" aria-label="Which events">
        {Object.keys(GROUPS).map((name) => (
          <button key={name} type="button" class="button" aria-pressed={name === only} onClick={() => choose({ only: name === "all" ? undefined : name })}>
            {name}
          </button>
        ))}
        <button type="button" class="button" aria-pressed={held !== undefined} onClick={() => setHeld(held ? undefined : asked.data?.events)}>
          {held ? "go on" : "hold"}
        </button>
      </div>
      <Answer asked={asked}>
        {({ events, ...known }) => {
          const shown = held ?? events;
          return (
            <section class="card" aria-label="Events, newest first">
              <header>
                <h2>
                  Events <span class="quiet">the newest {count(shown.length)}</span>
                </h2>
                <button type="button" class="plain csv" onClick={() => save("events.csv", csv(COLUMNS, shown))} aria-label="Events: save as CSV">
                  CSV
                </button>
              </header>
              <ol class="stream">
                {shown.map((event) => (
                  <li key={String(event.id)}>
                    <span class="quiet numeric" title={`block ${count(event.block)}`}>
                      <Ago at={event.at} />
                    </span>
                    <b class={`ink-${TONES[event.name] ?? "plain"}`}>{words(event.name)}</b>
                    <span>
                      {event.task !== null && <TaskLink id={event.task} />} {event.node !== null && event.node > 0 && <>node <NodeLink number={event.node} /></>}
                    </span>
                    <small class="quiet">
                      {told(event, known)} · <TxLink of={event.tx} ends={3} />
                    </small>
                  </li>
                ))}
              </ol>
              {!shown.length && <p class="empty">No such event yet.</p>}
            </section>
          );
        }}
      </Answer>
    </>
  );
}

const COLUMNS: Pick<Column<Row<"events">>, "label" | "value">[] = [
  { label: "Time", value: ({ at }) => at },
  { label: "Block", value: ({ block }) => block },
  { label: "Event", value: ({ name }) => name },
  { label: "Task", value: ({ task }) => task },
  { label: "Node", value: ({ node }) => node },
  { label: "Transaction", value: ({ tx }) => tx },
  { label: "Values", value: ({ args }) => JSON.stringify(args) },
];
