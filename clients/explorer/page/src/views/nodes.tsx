/** Tables of nodes and of tasks, as several views show them. */
import { type Row, isCut } from "../api";
import { useCore } from "../core";
import { KIND, POLICY, duration, money, percent, stateOf, statusName, statusTone, toneOf, wad } from "../format";
import { chainNow } from "../live";
import { gpuName } from "../names";
import { AccountLink, Ago, NodeLink, Pill, TaskLink } from "../parts";
import { type Column, DataTable, PagedTable } from "../table";

/** The columns of the table of nodes. */
export const NODE = ["number", "status", "parked", "gpuGroup", "stake", "reliability", "reliabilityAt", "longTerm", "pool", "judged", "judgedRight", "slashed", "kickedOut", "started", "succeeded", "wrong", "failed", "timedOut", "earned", "operator"] as const;
type Node = Pick<Row<"nodes">, (typeof NODE)[number]>;
/** The columns of the table of tasks. */
export const TASK = ["id", "status", "outcome", "kind", "redundancy", "node", "createdAt", "startedAt", "fee", "paid", "creator"] as const;
type Task = Pick<Row<"tasks">, (typeof TASK)[number]>;

interface Groups {
  groups: readonly Row<"gpuGroups">[];
  tau: bigint | undefined;
}

const NODES = ["node", "nodes"] as const;
const TASKS = ["task", "tasks"] as const;

/** A node's problem, in a word; nothing if there is none. */
export const mark = ({ kickedOut, slashed, judged, judgedRight }: Pick<Node, "kickedOut" | "slashed" | "judged" | "judgedRight">): string | undefined =>
  kickedOut ? "kicked out" : slashed ? "slashed" : judgedRight < judged ? "was wrong" : undefined;

function useColumns({ groups, tau }: Groups): Column<Node>[] {
  const core = useCore();
  const now = Math.floor(chainNow());
  // As it was last set, until the formula is loaded.
  const h = ({ reliability, reliabilityAt }: Node) => (core && tau ? core.recover(reliability, BigInt(Math.max(0, now - Number(reliabilityAt))), Number(tau)) : reliability);
  const ended = ({ succeeded, wrong, failed, timedOut }: Node) => succeeded + wrong + failed + timedOut;
  return [
    { key: "number", label: "Node", help: "The node's number, given when it first joined.", value: ({ number }) => number, cell: ({ number }) => <NodeLink number={number} /> },
    {
      key: "status",
      label: "Status",
      help: "Its present state, and a mark where it was kicked out, slashed or judged wrong. Excluded: it let deadlines pass or reported an error, and gets no task for a while.",
      value: (node) => [statusName(node), mark(node)].filter(Boolean).join(", "),
      cell: (node) => (
        <>
          <Pill tone={statusTone(node)}>{statusName(node)}</Pill>
          {mark(node) && (
            <>
              {" "}
              <Pill tone="bad">⚠ {mark(node)}</Pill>
            </>
          )}
        </>
      ),
    },
    { key: "gpu", label: "GPU", help: "The name and memory of its card, as its operator stated them.", value: ({ gpuGroup }) => gpuName(gpuGroup, groups) },
    { key: "stake", label: "Stake", help: "Its operator's deposit, of which wrong answers cost a part. A larger stake raises its chance in draws.", value: ({ stake }) => stake, cell: ({ stake }) => money(stake), numeric: true },
    { key: "h", label: "H", help: "Reliability, from 0 to 1: falls to 0.3 of itself with a deadline that passed, rises with successes, and recovers with time. Below 0.1 a node is excluded.", value: h, cell: (node) => wad(h(node)), numeric: true },
    { key: "longTerm", label: "Q_long", help: "Mean of its last scores, at most 50, from 0 to 10: 10 for the fastest right answer, 0 for a wrong one. 5 until it is scored.", value: ({ longTerm }) => longTerm, cell: ({ longTerm, pool }) => <span title={`${pool.length} scores`}>{(Number(longTerm) / 1e17).toFixed(1)}</span>, numeric: true },
    {
      key: "judged",
      label: "Judged right",
      help: "How often its answers were compared with others', and how often they were right.",
      value: ({ judged, judgedRight }) => (judged ? judgedRight / judged : null),
      cell: ({ judged, judgedRight }) => (judged ? <span class={judgedRight < judged ? "bad" : undefined}>{`${judgedRight} of ${judged}`}</span> : "–"),
      numeric: true,
    },
    { key: "slashed", label: "Slashed", help: "All that was ever taken from it for wrong or withheld answers.", value: ({ slashed }) => slashed, cell: ({ slashed }) => (slashed ? <span class="bad">{money(slashed)}</span> : "–"), numeric: true },
    { key: "success", label: "Success", help: "Tasks that it ended with an answer that was right or that nobody checked, of all that it ended. The others ended with a wrong or withheld answer, an error or a deadline that passed.", value: (node) => (ended(node) ? node.succeeded / ended(node) : null), cell: (node) => percent(node.succeeded / ended(node), 0), numeric: true },
    { key: "earned", label: "Earned", help: "Fees that it was ever paid.", value: ({ earned }) => earned, cell: ({ earned }) => money(earned), numeric: true },
    { key: "operator", label: "Operator", help: "The account that joined the node.", value: ({ operator }) => operator, cell: ({ operator }) => <AccountLink of={operator} /> },
  ];
}

/** Nodes that are all here. */
export function NodeTable({ nodes, caption = "Nodes", id = "nodes", ...groups }: Groups & { nodes: readonly Node[]; caption?: string; id?: string }) {
  return <DataTable id={id} caption={caption} rows={nodes} things={NODES} name={({ number }) => number} sort="-earned" page={25} part={isCut(nodes) && "first"} empty="No node has joined." columns={useColumns(groups)} />;
}

/** Nodes as the indexer has them, page by page. */
export function NodePages({ caption = "Nodes", page = 25, filters = { state: "joined" }, total, note, ...groups }: Groups & { caption?: string; page?: number; filters?: Record<string, string>; total?: number | undefined; note?: Parameters<typeof PagedTable>[0]["note"] }) {
  return (
    <PagedTable
      id="nodes"
      caption={caption}
      list="nodes"
      filters={filters}
      things={NODES}
      total={total}
      page={page}
      name={({ number }: Node) => number}
      sort="-earned"
      sortable={["number", "status", "gpu", "stake", "h", "longTerm", "judged", "slashed", "success", "earned", "operator"]}
      empty="No node is so."
      note={note}
      columns={useColumns(groups)}
    />
  );
}

const TASK_COLUMNS: Column<Task>[] = [
  { key: "id", label: "Task", help: "The task's number: they are counted up.", value: ({ id }) => id, cell: ({ id }) => <TaskLink id={id} /> },
  { key: "state", label: "State", help: "Where it is on its way, or how it ended.", value: stateOf, cell: (task) => <Pill tone={toneOf(task)}>{stateOf(task)}</Pill> },
  { key: "kind", label: "Kind", help: "The kind of work: images (Stable Diffusion), text (GPT) or fine-tuning.", value: ({ kind }) => KIND[kind] },
  { key: "policy", label: "Policy", help: "How its answer is checked. Single: not at all. Sampled: now and then. Replicated: by three nodes. Rated: by a group chosen by ratings.", value: ({ redundancy }) => POLICY[redundancy] },
  { key: "node", label: "Node", help: "The node it started on; of a group, the one that the judgement names.", value: ({ node }) => node || null, cell: ({ node }) => <NodeLink number={node} /> },
  { key: "created", label: "Created", help: "How long ago it was created.", value: ({ createdAt }) => createdAt, cell: ({ createdAt }) => <Ago at={createdAt} />, numeric: true },
  { key: "waited", label: "Waited", help: "From its creation to its start on a node.", value: ({ startedAt, createdAt }) => startedAt && startedAt - createdAt, cell: ({ startedAt, createdAt }) => (startedAt ? duration(Number(startedAt - createdAt)) : "–"), numeric: true },
  { key: "fee", label: "Fee", help: "Its creator's deposit for it.", value: ({ fee }) => fee, cell: ({ fee }) => money(fee), numeric: true },
  { key: "paid", label: "Paid", help: "The part of it that was paid to nodes.", value: ({ paid }) => paid, cell: ({ paid }) => money(paid), numeric: true },
  { key: "creator", label: "Creator", help: "The account or contract that created it.", value: ({ creator }) => creator, cell: ({ creator }) => <AccountLink of={creator} /> },
];

/** Tasks that are all here. */
export function TaskTable({ tasks, caption, id = "tasks" }: { tasks: readonly Task[]; caption: string; id?: string }) {
  return <DataTable id={id} caption={caption} rows={tasks} things={TASKS} name={({ id }) => id} sort="-id" part={isCut(tasks) && "newest"} columns={TASK_COLUMNS} />;
}

/** Tasks as the indexer has them, page by page. */
export function TaskPages({ caption, filters, total, page = 50 }: { caption: string; filters: Record<string, string>; total?: number | undefined; page?: number }) {
  return (
    <PagedTable id="tasks" caption={caption} list="tasks" filters={filters} things={TASKS} total={total} page={page} name={({ id }: Task) => id} sort="-id" sortable={["id", "fee"]} empty="No task is so." columns={TASK_COLUMNS} />
  );
}
