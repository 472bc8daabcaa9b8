/** The network at a glance, summed up in the database: nodes, running tasks, queues, prices. */
import { db } from "ponder:api";
import schema from "ponder:schema";
import { type SQL, and, asc, desc, eq, gt, gte, isNotNull, ne, sql } from "drizzle-orm";
import { timeLeft } from "../settings";
import { json } from "./json";
import { lookNow } from "./state";

const { node, task, hour, minute, transaction, gpuGroup, program, queue } = schema;

/** Ended tasks whose price is looked at, and transactions whose gas is. */
const [PRICED, CALLS] = [200, 1_000];
const [HOURS, MINUTES] = [25n, 60n];
const RUNNING = 12;
const many = sql<number>`count(*)::int`;
const counted = (condition: SQL) => sql<number>`(count(*) filter (where ${condition}))::int`;

/** All that the first view shows but its tables of nodes. */
export async function network(): Promise<string> {
  // The progress first: rows read afterwards include at least that block.
  const { block, at } = await lookNow();
  const now = BigInt(Math.max(at ?? 0, Math.floor(Date.now() / 1_000)));
  const priced = db
    .select({ fee: task.fee, estimate: task.estimate })
    .from(task)
    .where(and(isNotNull(task.endedAt), gt(task.estimate, 0)))
    .orderBy(desc(task.endedAt))
    .limit(PRICED)
    .as("priced");
  const sent = db
    .select({ call: transaction.call, gasUsed: transaction.gasUsed, cost: sql`${transaction.gasUsed} * ${transaction.gasPrice}`.as("cost") })
    .from(transaction)
    .where(isNotNull(transaction.call))
    .orderBy(desc(transaction.at))
    .limit(CALLS)
    .as("sent");
  const median = (value: unknown) => sql<string>`(percentile_disc(0.5) within group (order by ${value}))::text`;
  const [groups, own, queues, hours, minutes, prices, calls, running] = await Promise.all([
    db.select().from(gpuGroup).orderBy(desc(gpuGroup.joined)).limit(1_000),
    db
      .select({
        gpuGroup: node.gpuGroup,
        own: many,
        idle: counted(sql`${node.status} = 1 and ${node.parked} = 0`),
        busy: counted(sql`${node.status} in (2, 3, 4, 6)`),
        apart: counted(sql`${node.status} = 1 and ${node.parked} > 0`),
        paused: counted(sql`${node.status} = 5`),
      })
      .from(node)
      .where(ne(node.status, 0))
      .groupBy(node.gpuGroup),
    db
      .select({
        queue: task.queue,
        tasks: many,
        oldest: sql<string>`min(${task.queuedAt})::text`,
        fees: sql<string>`sum(${task.fee})::text`,
        seconds: sql<string>`sum(${task.estimate})::text`,
      })
      .from(task)
      .innerJoin(queue, eq(queue.id, task.queue))
      .where(and(eq(task.status, 2), gt(queue.queued, 0)))
      .groupBy(task.queue),
    db.select().from(hour).where(gte(hour.start, now - HOURS * 3_600n)).orderBy(asc(hour.start)),
    db.select().from(minute).where(gte(minute.start, now - MINUTES * 60n)).orderBy(asc(minute.start)),
    db.select({ tasks: many, price: median(sql`div(${priced.fee}, ${priced.estimate})`) }).from(priced),
    db.select({ call: sent.call, sent: many, gas: median(sent.gasUsed), cost: median(sent.cost) }).from(sent).groupBy(sent.call),
    db
      .select({ id: task.id, kind: task.kind, units: task.units, node: task.node, status: task.status, deadline: task.deadline, startedAt: task.startedAt, fee: task.fee, creator: task.creator })
      .from(task)
      // As the index on deadlines has it.
      .where(sql`${task.status} >= 3`)
      .orderBy(asc(task.deadline))
      .limit(RUNNING),
  ]);
  return json({ block, at, groups, own, queues, hours, minutes, prices: prices[0], calls, running });
}

/** Nodes that are weighed one by one: of more, a sample for the others. */
const RIVALS = 5_000;

/** The competitors of a new node: all of them, or a sample that does not depend on their properties, with the number it stands for and the largest stake of all. */
export async function rivals(): Promise<string> {
  const { block, at } = await lookNow();
  // Paused, leaving and excluded nodes get no tasks.
  const takes = sql`((${node.status} = 1 and ${node.parked} <> 1) or ${node.status} = 2)`;
  const [[sums], items] = await Promise.all([
    db.select({ total: many, largest: sql<string>`coalesce(max(${node.stake}), 0)::text` }).from(node).where(takes),
    db
      .select({ number: node.number, gpuGroup: node.gpuGroup, stake: node.stake, longTerm: node.longTerm, reliability: node.reliability, reliabilityAt: node.reliabilityAt, models: node.models, inUse: node.inUse })
      .from(node)
      .where(takes)
      .orderBy(sql`md5(${node.number}::text)`)
      .limit(RIVALS),
  ]);
  return json({ block, at, ...sums, items });
}

/** The programs behind the contract, their functions, and until when they run: the chain is asked now and then. */
const EVERY = 600_000;
let told: { moment: number; body: Promise<string> } | undefined;
export function programs(): Promise<string> {
  if (!told || Date.now() - told.moment > EVERY) {
    told = { moment: Date.now(), body: ask() };
    told.body.catch(() => (told = undefined));
  }
  return told.body;
}

async function ask(): Promise<string> {
  const { block, at } = await lookNow();
  const rows = await db
    .select({ address: program.address, selectors: many, since: sql<string>`max(${program.at})::text` })
    .from(program)
    .where(ne(program.address, `0x${"00".repeat(20)}`))
    .groupBy(program.address);
  const asked = Math.floor(Date.now() / 1_000);
  const programs = [];
  // One after the other: an endpoint may bear few requests a second.
  for (const row of rows) programs.push({ ...row, left: await timeLeft(row.address), asked });
  return json({ block, at, programs });
}
