/** Nodes, their models, and accounts' credit. */
import { NOBODY, type Scene } from "../scene";
import { income, mark, reliabilityOf } from "./tasks";
import type { Handlers } from "./types";

type Node = Awaited<ReturnType<Scene["node"]>>;

const QUIT = 0;

const sorted = (models: readonly bigint[]) => [...models].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));

/** A joined node holds a model from now on. */
async function hold(scene: Scene, node: Node, id: bigint) {
  const model = await scene.model(id);
  const key = { node: node.number, model: id };
  const holding = await scene.row("holding", key, () => ({ ...key, held: false, entered: false, at: scene.at }));
  if (!holding.entered) model.entries++;
  if (!holding.held) [holding.held, holding.at] = [true, scene.at];
  holding.entered = true;
  model.held++;
  node.models = sorted([...node.models, id]);
}

/** A node holds a model no longer. */
async function drop(scene: Scene, node: Node, id: bigint) {
  if (!node.models.includes(id)) return;
  node.models = node.models.filter((model) => model !== id);
  const holding = await scene.known("holding", { node: node.number, model: id });
  [holding.held, holding.at] = [false, scene.at];
  if (node.status !== QUIT) (await scene.model(id)).held--;
}

const unpark = (node: Node) => {
  [node.parked, node.parkedUntil, node.waitsFor] = [0, 0n, 0n];
};

export const nodes: Pick<
  Handlers,
  | "GpuGroupCreated"
  | "GpuGroupListed"
  | "NodeJoined"
  | "StakeRaised"
  | "WorkerNamed"
  | "WorkAccepted"
  | "StoresSet"
  | "NodePausing"
  | "NodePaused"
  | "NodeSetAside"
  | "NodeResumed"
  | "NodeQuitting"
  | "NodeQuit"
  | "NodeKickedOut"
  | "NodeExcluded"
  | "NodeWaits"
  | "NodeReadmitted"
  | "ModelAdded"
  | "ModelRemoved"
  | "HolderPurged"
  | "ModelNamed"
  | "DownloadRequested"
  | "StakeReleased"
  | "Withdrawn"
> = {
  async GpuGroupCreated(scene, { group: id, name, vram, fee }) {
    await scene.row("gpuGroup", { id }, () => ({ id, name, vram, fee, createdAt: scene.at, listed: false, joined: 0, stakes: 0n }));
    await income(scene, fee, "groupFee");
  },

  async GpuGroupListed(scene, { group: id, listed }) {
    (await scene.known("gpuGroup", { id })).listed = listed;
  },

  async NodeJoined(scene, { node: number, operator, group: id, stake, models }) {
    const [network, group] = [await scene.network(), await scene.known("gpuGroup", { id })];
    const node = await scene.row("node", { number }, () => ({ number, ...scene.newNode(operator, id) }));
    if (number > network.nodesIssued) network.nodesIssued = number;
    // One that had quit: its report of its models is void.
    for (const model of node.models) await drop(scene, node, model);
    [node.operator, node.gpuGroup, node.vram, node.joinedAt, node.leftAt] = [operator, id, id & 0xffff, scene.at, null];
    [node.reliability, node.reliabilityAt, node.status, node.inUse] = [10n ** 18n, scene.at, 1, []];
    await mark(scene, node, "joined", null);
    network.nodesJoined++;
    group.joined++;
    for (const model of models) await hold(scene, node, model);
    (await scene.account(operator)).node = number;
    await scene.pay({ pot: "stake", node: number }, stake, "stake");
    await scene.count({ joined: 1 });
  },

  async StakeRaised(scene, { node, added }) {
    await scene.pay({ pot: "stake", node }, added, "stake");
  },

  async WorkerNamed(scene, { node: number, worker }) {
    const node = await scene.node(number);
    if (node.works) (await scene.account(node.worker!)).node = 0;
    [node.worker, node.works] = [worker === NOBODY ? null : worker, false];
  },

  async WorkAccepted(scene, { node: number, worker }) {
    (await scene.node(number)).works = true;
    (await scene.account(worker)).node = number;
  },

  async StoresSet(scene, { account, uris }) {
    (await scene.account(account)).stores = uris;
  },

  async NodePausing(scene, { node }) {
    (await scene.node(node)).status = 3;
  },

  async NodePaused(scene, { node: number }) {
    const node = await scene.node(number);
    node.status = 5;
    unpark(node);
  },

  async NodeSetAside(scene, { node }) {
    (await scene.node(node)).setAside = true;
  },

  async NodeResumed(scene, { node: number }) {
    const node = await scene.node(number);
    [node.status, node.setAside] = [1, false];
  },

  async NodeQuitting(scene, { node }) {
    (await scene.node(node)).status = 4;
  },

  async NodeQuit(scene, { node: number, operator, stake, release }) {
    const [network, node] = [await scene.network(), await scene.node(number)];
    for (const model of node.models) (await scene.model(model)).held--;
    [node.status, node.leftAt, node.runs, node.held, node.calledTo, node.setAside] = [QUIT, scene.at, false, false, 0n, false];
    unpark(node);
    network.nodesJoined--;
    (await scene.known("gpuGroup", { id: node.gpuGroup })).joined--;
    (await scene.account(operator)).release = release;
    await scene.pay({ pot: "stake", node: number }, -stake, "return", { node: number });
    await scene.pay({ pot: "unbonding", account: operator }, stake, "return", { node: number });
    await scene.count({ quits: 1 });
  },

  async NodeKickedOut(scene, { node, operator }) {
    (await scene.node(node)).kickedOut = true;
    (await scene.account(operator)).kickedOut = true;
    await scene.count({ kickedOut: 1 });
  },

  async NodeExcluded(scene, { node: number, until }) {
    const node = await scene.node(number);
    // One that was reserved and is let go.
    if (node.parked === 3 && node.status === 2 && node.calledTo === 0n) node.status = 1;
    [node.parked, node.parkedUntil, node.waitsFor] = [1, until, 0n];
    // Until now: it is only held back, from draws that are due. With enough H it rests after an error; what lowers H is told before.
    if (until <= scene.at || (await reliabilityOf(scene, node)) >= BigInt(await scene.parameter("exclusionPpm")) * 10n ** 12n) return;
    node.exclusions++;
    await scene.count({ excluded: 1 });
  },

  async NodeWaits(scene, { node: number, id, until }) {
    const node = await scene.node(number);
    node.waitsFor = id;
    if (until > 0n) [node.parked, node.parkedUntil] = [2, until];
    else [node.parked, node.parkedUntil, node.status] = [3, 0n, 2];
  },

  async NodeReadmitted(scene, { node }) {
    unpark(await scene.node(node));
  },

  async ModelAdded(scene, { node, model }) {
    await hold(scene, await scene.node(node), model);
  },

  async ModelRemoved(scene, { node, model }) {
    await drop(scene, await scene.node(node), model);
  },

  async HolderPurged(scene, { node: number, model: id }) {
    await drop(scene, await scene.node(number), id);
    const holding = await scene.known("holding", { node: number, model: id });
    holding.entered = false;
    (await scene.model(id)).entries--;
  },

  async ModelNamed(scene, { model, name }) {
    (await scene.model(model)).name = name;
  },

  async DownloadRequested(scene, { model }) {
    (await scene.model(model)).downloads++;
    await scene.count({ downloads: 1 });
  },

  async StakeReleased(scene, { account, amount }) {
    await scene.pay({ pot: "unbonding", account }, -amount, "release");
    await scene.pay({ pot: "credit", account }, amount, "release");
  },

  async Withdrawn(scene, { account, credit, stake }) {
    (await scene.account(account)).withdrawn += credit + stake;
    (await scene.network()).paidOut += credit + stake;
    await scene.pay({ pot: "credit", account }, -credit, "withdrawal");
    await scene.pay({ pot: "unbonding", account }, -stake, "withdrawal");
    await scene.count({ withdrawn: credit + stake });
  },
};
