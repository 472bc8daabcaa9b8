/**
 * Compares the indexer's whole state with the contract's views at the same block, and prints the differences.
 *
 * RPC_URL=http://... MUSTER=0x... INDEXER=http://... npx tsx test/compare.ts
 */
import { pathToFileURL } from "node:url";
import { type Address, type ContractFunctionArgs, type ContractFunctionName, createPublicClient, getAddress, http, multicall3Abi, zeroAddress } from "viem";
import { recover } from "../src/formulas";
import { PARAMETERS, musterAbi } from "../src/interface";
import { Indexer, type Row, head } from "./indexer";

/** There on every chain, the development node included. */
const MULTICALL: Address = "0xcA11bde05977b3631167028862bE2a173976CA11";
const PAGE = 200;
const NOBODY = `0x${"00".repeat(20)}`;
const EMPTY = `0x${"00".repeat(32)}`;

type View = ContractFunctionName<typeof musterAbi, "view">;
type Call<name extends View> = { functionName: name; args?: ContractFunctionArgs<typeof musterAbi, "view", name> };

const big = (value: unknown) => BigInt(value as string | number);
const num = (value: unknown) => Number(value);
/** Arrays come as PostgreSQL writes them where the driver knows no better. */
const list = (values: unknown): unknown[] =>
  typeof values === "string" ? values.slice(1, -1).split(",").filter(Boolean) : (values as unknown[]);
const bigs = (values: unknown) => list(values).map(big);
const plain = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? String(each) : typeof each === "string" ? each.toLowerCase() : each));

/** The number of comparisons, and the differences. */
export class Report {
  compared = 0;
  readonly differences: string[] = [];

  same(what: string, indexed: unknown, viewed: unknown) {
    this.compared++;
    const [a, b] = [plain(indexed), plain(viewed)];
    if (a !== b) this.differences.push(`${what}: indexed ${a}, the contract says ${b}`);
  }

  /** Field by field. */
  fields(what: string, indexed: Record<string, unknown>, viewed: Record<string, unknown>) {
    for (const name of Object.keys(viewed)) {
      if (name in indexed) this.same(`${what}, ${name}`, indexed[name], viewed[name]);
      else this.differences.push(`${what}: nothing is compared with ${name}`);
    }
  }
}

export async function compare(rpcUrl: string, address: Address, indexer: Indexer, log: (line: string) => void = () => {}): Promise<Report> {
  const client = createPublicClient({ transport: http(rpcUrl, { timeout: 60_000 }) });
  const block = await head(rpcUrl);
  await indexer.reach(block);
  const blockNumber = BigInt(block);
  const contract = { address, abi: musterAbi } as const;
  const report = new Report();

  /** Answers at that block, many in one question. */
  async function views<name extends View>(calls: Call<name>[]): Promise<never[]> {
    const answers: unknown[] = [];
    for (let at = 0; at < calls.length; at += PAGE) {
      const contracts = calls.slice(at, at + PAGE).map((call) => ({ ...contract, ...call }));
      const more = await client.multicall({ contracts: contracts as never, blockNumber, multicallAddress: MULTICALL, allowFailure: false, batchSize: 0 });
      answers.push(...(more as unknown[]));
    }
    return answers as never[];
  }
  const view = async <name extends View>(functionName: name, ...args: unknown[]) =>
    client.readContract({ ...contract, functionName, args, blockNumber } as never) as Promise<any>;
  const now = await client.readContract({ address: MULTICALL, abi: multicall3Abi, functionName: "getCurrentBlockTimestamp", blockNumber });

  const [network] = (await indexer.sql("select * from network")) as [Row];
  const parameters = await indexer.all("parameter", "number");
  const valueOf = (name: string) => big(parameters.find((row) => row.name === name)!.value);
  const nodes = await indexer.all("node", "number");
  const accounts = await indexer.all("account", "address");
  const tasks = await indexer.all("task", "id");
  const validations = await indexer.sql(`select * from validation where open order by place limit 10000`);
  const members = await indexer.sql(`select m.* from member m join validation v on v.id = m.validation where v.open order by m.position limit 10000`);

  // The network.
  const [sums] = (await indexer.sql("select coalesce(max(stake), 0) as largest, count(*) as joined from node where status <> 0")) as [Row];
  report.fields(
    "overview",
    {
      owner: network.owner,
      treasury: network.treasury,
      treasuryBalance: big(network.treasury_balance),
      reserve: big(network.reserve),
      burnt: big(network.burnt),
      groups: network.groups,
      groupPlaces: num(network.group_places),
      stakeUnit: big(network.stake_unit),
      paused: network.paused,
      tasks: big(network.tasks),
      nodesIssued: network.nodes_issued,
      nodesJoined: num(sums.joined),
      pending: network.pending,
      queued: network.queued,
      queueCapacity: num((valueOf("alphaMilli") * big(sums.joined)) / 1_000n),
      largestStake: big(sums.largest),
    },
    await view("overview"),
  );
  report.same("nodes joined", network.nodes_joined, num(sums.joined));
  report.same("owner", network.owner, await view("owner"));
  report.same("pending owner", network.next_owner, await view("pendingOwner"));
  report.same("pending treasury", [network.next_treasury, big(network.next_treasury_at)], await view("pendingTreasury"));
  report.same("upgrades", [num(network.upgrade_delay), network.upgrades_renounced], await view("upgrades"));
  report.same("parameters", parameters.map((row) => num(row.number)), [...PARAMETERS.keys()]);
  for (const row of parameters) {
    const [value] = await view("parameter", num(row.number));
    report.same(`parameter ${row.name}`, big(row.value), value);
    const proposed = await view("proposedParameter", num(row.number));
    report.same(`proposed ${row.name}`, [big(row.proposed ?? 0), big(row.effective ?? 0)], proposed);
  }
  const programs = (await indexer.all("program", "selector")).filter((row) => row.address !== NOBODY);
  const facets = (await view("facets")) as { facetAddress: Address; functionSelectors: string[] }[];
  const answered = facets.flatMap((facet) => facet.functionSelectors.map((selector) => `${selector} ${facet.facetAddress}`));
  report.same("programs", programs.map((row) => `${row.selector} ${row.address}`).map((text) => text.toLowerCase()).sort(), answered.map((text) => text.toLowerCase()).sort());
  for (const proposal of await indexer.all("program_proposal", "id")) {
    const effective = await view("proposedPrograms", proposal.program, list(proposal.selectors));
    report.same(`proposal ${proposal.id}`, big(proposal.effective ?? 0), effective);
  }
  log(`${report.compared} figures of the network, its parameters and programs`);

  // Groups of GPUs, and models.
  for (const group of await indexer.all("gpu_group", "id")) {
    report.same(`name of ${group.id}`, group.name, await view("gpuName", num(group.id)));
    report.same(`group ${group.name}`, num(group.id), await view("gpuGroup", group.name, group.vram));
    report.same(`listed ${group.id}`, group.listed, await view("gpuListed", num(group.id)));
    const there = nodes.filter((node) => node.status !== 0 && node.gpu_group === group.id);
    report.same(`joined in ${group.id}`, [group.joined, big(group.stakes)], [there.length, there.reduce((sum, node) => sum + big(node.stake), 0n)]);
  }
  const holdings = await indexer.all("holding", "model", "node");
  for (const model of await indexer.all("model", "id")) {
    const entered = holdings.filter((row) => row.model === model.id && row.entered).map((row) => num(row.node));
    const held = nodes.filter((node) => node.status !== 0 && bigs(node.models).includes(big(model.id)));
    const numbers: number[] = [];
    for (let total = 1; numbers.length < total; ) {
      const [all, page] = (await view("holders", big(model.id), numbers.length, 256)) as [number, number[]];
      if (page.length === 0) break;
      numbers.push(...page);
      total = all;
    }
    report.same(`holders of ${model.id}`, entered.sort((a, b) => a - b), [...numbers].sort((a, b) => a - b));
    report.same(`counts of ${model.id}`, [model.entries, model.held], [numbers.length, held.length]);
  }

  // Nodes.
  const before = report.compared;
  const views_ = (await views(nodes.map((node) => ({ functionName: "node", args: [num(node.number)] })))) as { task: bigint }[];
  const exclusion = valueOf("exclusionPpm") * 10n ** 12n;
  for (const [i, node] of nodes.entries()) {
    const h = recover(big(node.reliability), now - big(node.reliability_at), num(valueOf("tau")));
    const { models, ...viewed } = views_[i] as unknown as Record<string, unknown>;
    report.fields(
      `node ${node.number}`,
      {
        node: num(node.number),
        operator: node.operator,
        status: node.status,
        gpu: num(node.gpu_group),
        vram: node.vram,
        stake: big(node.stake),
        reliability: h,
        longTerm: big(node.long_term),
        scores: list(node.pool).length,
        excluded: h < exclusion,
        parked: node.parked,
        parkedUntil: big(node.parked_until),
        joinedAt: big(node.joined_at),
        task: big(node.task),
        deadline: big(node.deadline),
        inUse: bigs(node.in_use),
        openCommitments: node.open_commitments,
        held: node.held,
        calledTo: num(node.called_to),
        right: node.judged_right,
        judged: node.judged,
        rating: big(node.rating),
      },
      viewed,
    );
    report.same(`node ${node.number}, models`, bigs(node.models), [...(models as bigint[])].sort((a, b) => (a < b ? -1 : 1)));
  }
  const running = (await views(nodes.map((node) => ({ functionName: "runningTask", args: [num(node.number)] })))) as { id: bigint }[];
  for (const [i, node] of nodes.entries()) report.same(`node ${node.number} runs`, node.runs ? big(node.task) : 0n, running[i]!.id);
  const hands = (await views(nodes.map((node) => ({ functionName: "workerOf", args: [num(node.number)] })))) as [string, boolean][];
  for (const [i, node] of nodes.entries())
    report.same(`worker of node ${node.number}`, [node.worker ?? zeroAddress, node.works], [hands[i]![0].toLowerCase(), hands[i]![1]]);
  log(`${report.compared - before} figures of ${nodes.length} nodes`);

  // Accounts, and all the money there is.
  const known = (await views(accounts.map((row) => ({ functionName: "account", args: [getAddress(row.address as string)] })))) as Record<string, unknown>[];
  for (const [i, row] of accounts.entries()) {
    const { release, ...viewed } = known[i]!;
    const indexed = { credit: big(row.credit), unbonding: big(row.unbonding), node: num(row.node), kickedOut: row.kicked_out };
    report.fields(`account ${row.address}`, indexed, viewed);
    if (big(row.unbonding) > 0n) report.same(`account ${row.address}, release`, big(row.release), release);
  }
  const stores = (await views(accounts.map((row) => ({ functionName: "storesOf", args: [getAddress(row.address as string)] })))) as string[];
  for (const [i, row] of accounts.entries()) report.same(`stores of ${row.address}`, row.stores, stores[i]);
  const pots = new Map((await indexer.sql("select pot, sum(amount) as amount from payment group by pot")).map((row) => [row.pot, big(row.amount)]));
  const add = (rows: Row[], column: string) => rows.reduce((sum, row) => sum + big(row[column]), 0n);
  const open = tasks.filter((task) => task.status !== 0);
  const told: [string, bigint, unknown][] = [
    ["stake", add(nodes, "stake"), network.stakes],
    ["credit", add(accounts, "credit"), network.credit],
    ["unbonding", add(accounts, "unbonding"), network.unbonding],
    ["escrow", add(open, "fee") - add(open, "spent"), network.escrow],
    ["treasury", big(network.treasury_balance), network.treasury_balance],
    ["reserve", big(network.reserve), network.reserve],
    ["burnt", big(network.burnt), network.burnt],
  ];
  for (const [pot, rows, total] of told) report.same(`the payments of ${pot}, its rows and its total`, [pots.get(pot) ?? 0n, rows], [big(total), big(total)]);
  const balance = await client.getBalance({ address, blockNumber });
  report.same("all pots together", [...pots.values()].reduce((sum, amount) => sum + amount, 0n), balance);
  for (const row of await indexer.all("profile", "application")) {
    const { target, ...profile } = (await view("profile", row.application))[0] as Record<string, unknown>;
    const indexed = { algorithm: row.algorithm, least: row.least, most: row.most, reschedules: row.reschedules, targeting: row.targeting, alpha: big(row.alpha), period: row.period };
    report.fields(`profile of ${row.application}`, indexed, profile);
    // A target that was not given changes with the judgements, which no event says but the next group's.
    if (row.targeting === 2) report.same(`target of ${row.application}`, big(row.target), target);
  }
  for (const [pot, table, key, column] of [["credit", "account", "address", "account"], ["unbonding", "account", "address", "account"], ["stake", "node", "number", "node"]] as const) {
    const differing = await indexer.sql(
      `select t.${key} as whose, t.${pot} as has, coalesce(sum(p.amount), 0) as paid from ${table} t left join payment p on p.${column} = t.${key} and p.pot = '${pot}' group by t.${key}, t.${pot} having t.${pot} <> coalesce(sum(p.amount), 0) limit 10`,
    );
    report.same(`whose ${pot} is not what was paid`, differing, []);
  }
  log(`${accounts.length} accounts, and ${pots.size} pots with ${balance} wei together`);

  // Tasks.
  const places = new Map(validations.map((row) => [row.id, num(row.place)]));
  const places_ = (id: unknown) => places.get(id as string) ?? 0;
  const located = (await views(
    tasks.map((task) => ({ functionName: "locate", args: [big(task.id), task.status === 6 ? 0 : num(task.node), task.status === 2 ? big(task.ticket) : 0n] })),
  )) as Record<string, unknown>[];
  for (const [i, task] of tasks.entries()) {
    const { queueKey, ...viewed } = located[i]!;
    // Nobody can find the task of a group by a node that does not run it.
    if (task.status === 0 || task.status === 6) {
      report.same(`task ${task.id} is over, or in a group`, 0, viewed.status);
      continue;
    }
    const [isPending, isQueued, hasNode] = [task.status === 1, task.status === 2, num(task.status) >= 3];
    const draws = isPending || task.status === 5;
    report.fields(
      `task ${task.id}`,
      {
        id: big(task.id),
        status: task.status,
        creator: task.creator,
        fee: big(task.fee) - big(task.spent),
        kind: task.kind,
        estimate: task.estimate,
        timeLimit: task.time_limit,
        startFeeBps: task.start_fee_bps,
        vram: num(task.gpu) > 0 ? num(task.gpu) & 0xffff : task.vram,
        gpu: num(task.gpu),
        flags: num(task.flags),
        models: bigs(task.models),
        drawBlock: draws ? big(task.draw_block) : 0n,
        ticket: isQueued ? big(task.ticket) : 0n,
        queuedAt: isQueued ? big(task.queued_at) : 0n,
        node: hasNode ? num(task.node) : 0,
        deadline: hasNode ? big(task.deadline) : 0n,
        boosts: hasNode ? task.boosts : false,
        redundancy: task.redundancy,
        sampleBps: task.sample_bps,
        group: 0,
      },
      viewed,
    );
    report.same(`task ${task.id} has a key in its queue`, isQueued, (queueKey as bigint) > 0n);
  }
  const receipts = tasks.filter((task) => (num(task.flags) & 1) === 1);
  const outcomes = (await views(receipts.map((task) => ({ functionName: "outcome", args: [big(task.id)] })))) as Record<string, unknown>[];
  for (const [i, task] of receipts.entries()) {
    report.fields(
      `outcome of ${task.id}`,
      {
        state: task.outcome,
        node: task.status === 0 ? num(task.node) : 0,
        code: task.code,
        ended: big(task.ended_at ?? 0),
        refund: big(task.refund),
        resultDigest: task.result_digest ?? EMPTY,
      },
      outcomes[i]!,
    );
  }
  const line = (status: number) => open.filter((task) => task.status === status).sort((a, b) => Number(big(a.draw_since) - big(b.draw_since)));
  const ids = (rows: Row[]) => rows.slice(0, 256).map((row) => big(row.id));
  report.same("Pending, in order", ids(line(1)), (await view("pendingTasks", 0, 256)).map((task: { id: bigint }) => task.id));
  const calls = (await view("validatorDraws", 0, 256)).filter((task: { id: bigint }) => task.id > 0n);
  report.same("sampled, in order", ids(line(5)), calls.map((task: { id: bigint }) => task.id));
  log(`${tasks.length} tasks, ${open.length} of them not ended, ${receipts.length} with a receipt`);

  // Queues, and groups.
  const queues = await indexer.all("queue", "first");
  const [used, viewedQueues] = await view("queues", 0, 256);
  report.same("queues ever used", [queues.length, queues.slice(0, 256).map((row) => num(row.id))], [used, viewedQueues.map((of: { queue: number }) => of.queue)]);
  for (const { queue, queued } of viewedQueues as { queue: number; queued: number }[]) {
    const rows = open.filter((task) => task.status === 2 && num(task.queue) === queue);
    report.same(`in queue ${queue}`, [queues.find((row) => num(row.id) === queue)?.queued, rows.length], [queued, queued]);
  }
  const groups = ((await view("groups", 1, 256))[1] as { group: number; id: bigint; members: Record<string, unknown>[] }[]).filter((group) => group.id > 0n);
  report.same("open groups", validations.slice(0, groups.length).map((row) => num(row.place)), groups.map(({ group }) => group));
  for (const { members: seats, ...group } of groups) {
    const row = validations.find((of) => num(of.place) === group.group);
    const task = tasks.find((of) => of.id === row?.task);
    if (!row || !task) continue;
    report.same(`group ${group.group}, task`, [big(row.task), row.creator, row.scored], [group.id, (group as never as Row).creator, (group as never as Row).scored]);
    const own = members.filter((member) => member.validation === row.id);
    for (const [i, member] of own.entries()) {
      const answer = member.answer ?? (member.commitment ? `${member.commitment}${"00".repeat(8)}` : EMPTY);
      const indexed = { node: num(member.node), stage: member.stage, moment: big(member.moment), elapsed: member.elapsed, answer };
      report.fields(`group ${group.group}, member ${i}`, indexed, seats[i]!);
    }
    report.same(`place of task ${task.id}`, places_(task.validation), group.group);
  }

  // Sums equal the total of their parts.
  for (const table of ["hour", "day"]) {
    const [row] = (await indexer.sql(
      `select sum(created) created, sum(succeeded) succeeded, sum(failed) failed, sum(timed_out) timed_out, sum(cancelled) cancelled, sum(evicted) evicted, sum(expired) expired, sum(undecided) undecided, sum(fees) fees, sum(refunded) refunded, sum(burnt) burnt, sum(income) income, sum(events) events, sum(transactions) transactions, sum(gas) gas from "${table}"`,
    )) as [Row];
    const ended = (outcome: number) => tasks.filter((task) => task.outcome === outcome).length;
    const [of] = (await indexer.sql("select count(*) transactions, sum(gas_used) gas from transaction")) as [Row];
    const [income] = (await indexer.sql("select coalesce(sum(amount), 0) income from payment where pot = 'treasury' and amount > 0")) as [Row];
    const [counted] = (await indexer.sql("select count(*) events from event")) as [Row];
    const expected = {
      ...{ created: tasks.length, succeeded: ended(2), failed: ended(3), timed_out: ended(4), cancelled: ended(5), evicted: ended(6), expired: ended(7), undecided: ended(9) },
      ...{ fees: add(tasks, "fee"), refunded: add(tasks, "refund"), burnt: big(network.burnt), income: income.income, events: counted.events, transactions: of.transactions, gas: of.gas },
    };
    for (const [name, value] of Object.entries(expected)) report.same(`sum of ${name} by ${table}`, big(row[name]), big(value));
  }
  const [minutes] = (await indexer.sql("select coalesce(sum(created), 0) created, coalesce(sum(ended), 0) ended from minute")) as [Row];
  report.same("sums by minute", [num(minutes.created), num(minutes.ended)], [tasks.length, tasks.length - open.length]);
  const days = await indexer.sql("select n.number, n.earned, coalesce(sum(d.earned), 0) as by_day from node n left join node_day d on d.node = n.number group by n.number, n.earned having n.earned <> coalesce(sum(d.earned), 0) limit 10");
  report.same("nodes whose days do not add up", days, []);

  if ((await head(rpcUrl)) !== block) throw new Error("the chain went on while it was compared: compare again");
  return report;
}

if (import.meta.url === pathToFileURL(process.argv[1]!).href) {
  const { RPC_URL, MUSTER, INDEXER } = process.env;
  if (!RPC_URL || !MUSTER || !INDEXER) throw new Error("RPC_URL, MUSTER and INDEXER have to be set");
  const { compared, differences } = await compare(RPC_URL, getAddress(MUSTER), new Indexer(INDEXER), (line) => console.log(`compare: ${line}`));
  for (const difference of differences.slice(0, 50)) console.log(`differs: ${difference}`);
  console.log(`compare: ${compared} comparisons at block ${await head(RPC_URL)}, ${differences.length} differ`);
  process.exit(differences.length === 0 ? 0 : 1);
}
