/** Tables of nodes and of tasks, as several views show them. */
import { type Row, isCut } from "../api";
import { useCore } from "../core";
import { KIND, POLICY, duration, money, percent, stateOf, statusName, statusTone, toneOf, wad } from "../format";
import { chainNow } from "../live";
import { gpuName } from "../names";
import { AccountLink, Ago, NodeLink, Pill, TaskLink } from "../parts";
import { DataTable } from "../table";

/** What the table of nodes shows of each. */
export const NODE = ["number", "status", "parked", "gpuGroup", "stake", "reliability", "reliabilityAt", "longTerm", "pool", "started", "succeeded", "failed", "timedOut", "earned", "operator"] as const;
type Node = Pick<Row<"nodes">, (typeof NODE)[number]>;
/** What the table of tasks shows of each. */
export const TASK = ["id", "status", "outcome", "kind", "redundancy", "node", "createdAt", "startedAt", "fee", "paid", "creator"] as const;
type Task = Pick<Row<"tasks">, (typeof TASK)[number]>;

interface Nodes {
  tau: bigint | undefined;
  nodes: readonly Node[];
  groups: readonly Row<"gpuGroups">[];
  caption?: string;
  id?: string;
}

export function NodeTable({ nodes, groups, caption = "Nodes", id = "nodes", tau }: Nodes) {
  const core = useCore();
  const now = Math.floor(chainNow());
  // As it was last set, until the formula is loaded.
  const h = ({ reliability, reliabilityAt }: Node) => (core && tau ? core.recover(reliability, BigInt(Math.max(0, now - Number(reliabilityAt))), Number(tau)) : reliability);
  return (
    <DataTable
      id={id}
      caption={caption}
      rows={nodes}
      name={({ number }) => number}
      sort="-earned"
      page={25}
      empty="No node has joined."
      columns={[
        { key: "number", label: "Node", value: ({ number }) => number, cell: ({ number }) => <NodeLink number={number} /> },
        { key: "status", label: "Status", value: statusName, cell: (node) => <Pill tone={statusTone(node)}>{statusName(node)}</Pill> },
        { key: "gpu", label: "GPU", value: ({ gpuGroup }) => gpuName(gpuGroup, groups) },
        { key: "stake", label: "Stake", value: ({ stake }) => stake, cell: ({ stake }) => money(stake), numeric: true },
        { key: "h", label: "H", value: h, cell: (node) => wad(h(node)), numeric: true },
        { key: "q", label: "Q_long", value: ({ longTerm }) => longTerm, cell: ({ longTerm, pool }) => <span title={`${pool.length} scores`}>{(Number(longTerm) / 1e17).toFixed(1)}</span>, numeric: true },
        { key: "started", label: "Started", value: ({ started }) => started, numeric: true },
        { key: "success", label: "Success", value: ({ succeeded, failed, timedOut }) => (succeeded + failed + timedOut ? succeeded / (succeeded + failed + timedOut) : null), cell: ({ succeeded, failed, timedOut }) => percent(succeeded / (succeeded + failed + timedOut), 0), numeric: true },
        { key: "earned", label: "Earned", value: ({ earned }) => earned, cell: ({ earned }) => money(earned), numeric: true },
        { key: "operator", label: "Operator", value: ({ operator }) => operator, cell: ({ operator }) => <AccountLink of={operator} /> },
      ]}
    />
  );
}

export function TaskTable({ tasks, caption, id = "tasks" }: { tasks: readonly Task[]; caption: string; id?: string }) {
  return (
    <DataTable
      id={id}
      caption={caption}
      rows={tasks}
      name={({ id }) => id}
      sort="-id"
      part={isCut(tasks) && "newest"}
      columns={[
        { key: "id", label: "Task", value: ({ id }) => id, cell: ({ id }) => <TaskLink id={id} /> },
        { key: "state", label: "State", value: stateOf, cell: (task) => <Pill tone={toneOf(task)}>{stateOf(task)}</Pill> },
        { key: "kind", label: "Kind", value: ({ kind }) => KIND[kind] },
        { key: "policy", label: "Policy", value: ({ redundancy }) => POLICY[redundancy] },
        { key: "node", label: "Node", value: ({ node }) => node || null, cell: ({ node }) => <NodeLink number={node} /> },
        { key: "created", label: "Created", value: ({ createdAt }) => createdAt, cell: ({ createdAt }) => <Ago at={createdAt} />, numeric: true },
        { key: "waited", label: "Waited", value: ({ startedAt, createdAt }) => startedAt && startedAt - createdAt, cell: ({ startedAt, createdAt }) => (startedAt ? duration(Number(startedAt - createdAt)) : "–"), numeric: true },
        { key: "fee", label: "Fee", value: ({ fee }) => fee, cell: ({ fee }) => money(fee), numeric: true },
        { key: "paid", label: "Paid", value: ({ paid }) => paid, cell: ({ paid }) => money(paid), numeric: true },
        { key: "creator", label: "Creator", value: ({ creator }) => creator, cell: ({ creator }) => <AccountLink of={creator} /> },
      ]}
    />
  );
}
