/** Events as they come, the newest first; what is no longer shown is forgotten. */
import { useState } from "preact/hooks";
import { type Row, ask, list } from "../api";
import { useAsked } from "../live";
import { Ago, Answer, NodeLink, TaskLink } from "../parts";
import { choose, useHere } from "../router";
import { csv, save } from "../table";

const KEPT = 300;
const GROUPS: Record<string, string[] | undefined> = {
  all: undefined,
  tasks: ["TaskCreated", "TaskQueued", "TaskStarted", "TaskSucceeded", "TaskErrorReported", "TaskAborted", "TaskRefused", "TaskRedrawn"],
  nodes: ["NodeJoined", "NodeQuit", "NodePaused", "NodeResumed", "NodeExcluded", "NodeReadmitted", "NodeWaits", "NodeKickedOut", "StakeRaised", "WorkerNamed", "WorkAccepted"],
  validation: ["AnswerCommitted", "AnswerRevealed", "TaskSampled", "GroupFormed", "GroupChosen", "MemberCalled", "MemberStarted", "MemberTimedOut", "MemberJudged", "GroupSettled", "ScoreRecorded", "NodeRated", "NodeSlashed"],
  money: ["Withdrawn", "StakeReleased", "TreasurySwept", "NodeSlashed", "TaskSucceeded", "TaskRefused", "MemberJudged"],
};
const TONES: Record<string, string> = { TaskSucceeded: "good", TaskAborted: "bad", TaskErrorReported: "bad", TaskRefused: "bad", NodeSlashed: "bad", NodeExcluded: "bad", MemberTimedOut: "bad", TaskQueued: "wait", TaskStarted: "busy", MemberStarted: "busy" };
const words = (name: string) => name.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/ [A-Z]/g, (two) => two.toLowerCase());

const plain = (args: Row<"events">["args"]): string =>
  Object.entries(args)
    .filter(([name]) => !["id", "node", "creator", "spec"].includes(name))
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : String(value).replace(/^(0x.{8}).*$/, "$1…")}`)
    .join(", ");

export function Stream() {
  const { query } = useHere();
  const only = query.get("only") ?? "all";
  const names = GROUPS[only];
  const [held, setHeld] = useState<Row<"events">[] | undefined>(undefined);
  const asked = useAsked(`stream ${only}`, (signal) => ask({ events: list("events", { ...(names ? { where: { name_in: names } } : {}), order: "-id", limit: KEPT }) }, signal));
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
        {({ events }) => {
          const shown = held ?? events;
          return (
            <section class="card" aria-label="Events, newest first">
              <header>
                <h2>
                  Events <span class="quiet">the last {shown.length}</span>
                </h2>
                <button type="button" class="plain" onClick={() => save("events.csv", csv(COLUMNS, shown))} aria-label="Events: save as CSV">
                  CSV
                </button>
              </header>
              <ol class="stream">
                {shown.map((event) => (
                  <li key={String(event.id)}>
                    <span class="quiet numeric" title={`block ${event.block}`}>
                      <Ago at={event.at} />
                    </span>
                    <b class={`ink-${TONES[event.name] ?? "plain"}`}>{words(event.name)}</b>
                    <span>
                      {event.task !== null && <TaskLink id={event.task} />} {event.node !== null && event.node > 0 && <>node <NodeLink number={event.node} /></>}
                    </span>
                    <small class="quiet">{plain(event.args)}</small>
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

const COLUMNS = [
  { key: "at", label: "Time", value: ({ at }: Row<"events">) => at },
  { key: "block", label: "Block", value: ({ block }: Row<"events">) => block },
  { key: "name", label: "Event", value: ({ name }: Row<"events">) => name },
  { key: "task", label: "Task", value: ({ task }: Row<"events">) => task },
  { key: "node", label: "Node", value: ({ node }: Row<"events">) => node },
  { key: "tx", label: "Transaction", value: ({ tx }: Row<"events">) => tx },
  { key: "args", label: "Values", value: ({ args }: Row<"events">) => JSON.stringify(args) },
];
