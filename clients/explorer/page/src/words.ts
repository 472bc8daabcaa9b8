/** Events and checks in words: amounts with their unit, times as times, numbers of the interface by their names. */
import type { Check } from "muster-client/verify";
import type { Row } from "./api";
import { gpuName } from "./names";
import { GROUP, KIND, POLICY, VERDICT, clip, count, duration, moment, money, wad } from "./format";

type Event = Pick<Row<"events">, "name" | "args" | "node" | "task" | "account" | "model" | "at">;
/** Other data that sentences need: the names and units of parameters, and models. */
export interface Known {
  parameters?: readonly { number: number; name: string; unit: string }[];
  models?: ReadonlyMap<bigint, string>;
  groups?: Parameters<typeof gpuName>[1];
}

const ABORTED = ["Timed out", "Cancelled", "Evicted from the queue", "Queued for too long", "Its node was slashed out of the network"];
const ALGORITHM = ["a fixed size", "the first that fits", "the tightest that fits", "at random"];
const plural = (n: number, one: string, many: string): string => `${count(n)} ${n === 1 ? one : many}`;

/** An event's text. */
export function told({ name, args, node, model, at }: Event, { parameters = [], models = new Map(), groups = [] }: Known = {}): string {
  const said = args as Record<string, string | number | boolean | string[] | Record<string, unknown>>;
  const wei = (value: unknown) => money(BigInt((value ?? 0) as string));
  const number = (value: unknown) => Number(value as string);
  const who = (value: unknown) => clip(String(value));
  const block = (value: unknown) => `block ${count(number(value))}`;
  const modelName = model === null ? "" : (models.get(model) ?? `model 0x${model.toString(16).padStart(10, "0")}`);
  const parameter = parameters.find((one) => one.number === number(said.parameter));
  const valued = (value: unknown) => (parameter?.unit === "yes or no" ? (number(value) ? "yes" : "no") : `${count(BigInt((value ?? 0) as string))}${parameter ? ` ${parameter.unit}` : ""}`);
  const called = parameter?.name ?? `Parameter ${said.parameter}`;
  const effect = (value: unknown) => (number(value) ? `can take effect from ${moment(number(value))}` : "is withdrawn");
  switch (name) {
    case "TaskCreated": {
      const spec = said.spec as { kind: number; units: number; redundancy: number } | undefined;
      const what = spec ? `: ${KIND[spec.kind]!.toLowerCase()}${spec.kind < 2 ? ` × ${spec.units}` : ""}, ${POLICY[spec.redundancy]}` : "";
      return `Created with a fee of ${wei(said.fee)}${what}${number(said.drawBlock) ? `; the hash of ${block(said.drawBlock)} draws its node` : ""}`;
    }
    case "TaskRefused":
      return `Left out of its batch, at place ${said.place}: its fee of ${wei(said.fee)} is owed to ${who(said.creator)}`;
    case "TaskRedrawn":
      return `Drawn anew, by ${block(said.drawBlock)}`;
    case "TaskQueued":
      return "No idle node could take it: queued";
    case "TaskStarted":
      return `Started on node ${node}, until ${moment(number(said.deadline))} at the latest`;
    case "TaskSucceeded":
      return `Node ${node} answered and was paid ${wei(said.paid)}`;
    case "TaskErrorReported":
      return `Node ${node} cannot run it: error ${said.code}, ${wei(said.refund)} given back`;
    case "TaskAborted":
      return `${ABORTED[number(said.reason)] ?? "Ended"}: ${wei(said.refund)} given back${number(said.startFee) ? `, ${wei(said.startFee)} kept as the start fee` : ""}`;
    case "AnswerCommitted":
      return number(said.group) ? `Node ${node} committed to its answer` : `Node ${node} committed to its answer; the hash of ${block(said.block)} decides whether it is checked`;
    case "AnswerRevealed":
      return `Node ${node} revealed ${number(said.kind) ? "that it could not run it" : `its answer ${clip(String(said.value))}`}`;
    case "TaskSampled":
      return `Chosen to be checked: two more nodes are drawn by ${block(said.drawBlock)}`;
    case "GroupFormed":
      return `Given to the nodes ${(said.nodes as string[]).join(", ")}${said.scored ? "" : "; too few nodes are there for scores and slashes"}`;
    case "GroupChosen":
      return number(said.group) === 0 ? "Nodes are chosen by ratings; the next draw gives it to them" : `Chosen by ratings, which make them right with a likelihood of ${wad(BigInt(said.likelihood as string))} (${ALGORITHM[number(said.algorithm)]})`;
    case "MemberCalled":
      return `Node ${node} is called, and still busy`;
    case "MemberStarted":
      return `Node ${node} began, until ${moment(number(said.deadline))} at the latest`;
    case "MemberTimedOut":
      return `Node ${node} let its deadline pass`;
    case "MemberJudged":
      return `Node ${node}: ${VERDICT[number(said.verdict)]}, paid ${wei(said.paid)}`;
    case "GroupSettled":
      return `Judged: ${GROUP[number(said.outcome)]?.toLowerCase()}${number(said.refund) ? `; ${wei(said.refund)} given back` : ""}`;
    case "ScoreRecorded":
      return `Node ${node} scored ${said.score} of 10`;
    case "NodeRated":
      return `Node ${node} was ${said.right ? "right" : "wrong"}, for its rating`;
    case "NodeSlashed":
      return `Node ${node} was slashed: ${wei(BigInt(said.stake as string) + BigInt(said.unbonding as string) + BigInt(said.credit as string))}`;
    case "DownloadRequested":
      return `Node ${node} is asked to download ${modelName}`;
    case "NodeJoined":
      return `Node ${node} joined with a stake of ${wei(said.stake)}`;
    case "StakeRaised":
      return `Node ${node} raised its stake by ${wei(said.added)} to ${wei(said.stake)}`;
    case "NodePausing":
      return `Node ${node} pauses after its task`;
    case "NodePaused":
      return `Node ${node} paused`;
    case "NodeSetAside":
      return `Node ${node}, paused, was set aside`;
    case "NodeResumed":
      return `Node ${node} resumed`;
    case "NodeQuitting":
      return `Node ${node} leaves after its task`;
    case "NodeQuit":
      return `Node ${node} left; its stake of ${wei(said.stake)} can be withdrawn from ${moment(number(said.release))}`;
    case "NodeKickedOut":
      return `Node ${node} was kicked out for good, for its scores or by a slash`;
    case "NodeExcluded":
      return number(said.until) > at ? `Node ${node} gets no task until ${moment(number(said.until))}` : `Node ${node} is held back while draws are due`;
    case "NodeWaits":
      return number(said.until) ? `Node ${node} waits for others, for task ${said.id}, until ${moment(number(said.until))}` : `Node ${node} is reserved for the draw of task ${said.id}`;
    case "NodeReadmitted":
      return `Node ${node} is back among the idle nodes`;
    case "WorkerNamed":
      return number(said.worker) ? `${who(said.worker)} may work for node ${node}, once it accepts` : `Nobody works for node ${node} any more`;
    case "WorkAccepted":
      return `${who(said.worker)} works for node ${node}`;
    case "StoresSet":
      return said.uris ? `${who(said.account)} has its bytes at ${said.uris}` : `${who(said.account)} says no more where its bytes are`;
    case "ModelAdded":
      return `Node ${node} holds ${modelName}`;
    case "ModelRemoved":
      return `Node ${node} no longer holds ${modelName}`;
    case "HolderPurged":
      return `Node ${node} was taken off the holders of ${modelName}`;
    case "ModelNamed":
      return `A model was named ${said.name}`;
    case "GpuGroupCreated":
      return `A GPU group was created for ${wei(said.fee)}: ${said.name}, ${said.vram} GiB`;
    case "GpuGroupListed":
      return `${gpuName(number(said.group), groups)} ${said.listed ? "is listed: its nodes give equal answers" : "is no longer listed"}`;
    case "StakeReleased":
      return `${wei(said.amount)} of stake became free for ${who(said.account)}`;
    case "Withdrawn":
      return `${wei(BigInt(said.credit as string) + BigInt(said.stake as string))} paid out to ${who(said.to)}`;
    case "ProfileSet":
      return `${who(said.application)} set how its groups are chosen by ratings`;
    case "Initialised":
      return `Deployed, with a least stake of ${wei(said.minimumStake)}; a change of programs waits ${duration(number(said.upgradeDelay))}`;
    case "ParameterChanged":
      return `${called} changed from ${valued(said.before)} to ${valued(said.value)}`;
    case "ParameterProposed":
      return `${called} was proposed to be ${valued(said.value)}: it ${effect(said.effective)}`;
    case "PausedChanged":
      return said.on ? "New tasks and joins were stopped" : "New tasks and joins are let in again";
    case "OwnershipTransferStarted":
      return `Ownership was offered to ${who(said.newOwner)}`;
    case "OwnershipTransferred":
      return `Ownership went to ${who(said.newOwner)}`;
    case "TreasuryProposed":
      return `${who(said.treasury)} was proposed as the treasury: it ${effect(said.effective)}`;
    case "TreasuryChanged":
      return `The treasury is ${who(said.treasury)} now`;
    case "TreasurySwept":
      return `${wei(said.amount)} of protocol income went to the treasury ${who(said.treasury)}`;
    case "ProgramsProposed":
      return `Program ${who(said.program)} was proposed for ${plural((said.selectors as string[]).length, "function", "functions")}: it ${effect(said.effective)}`;
    case "UpgradesRenouncedForGood":
      return "Changes of programs were renounced for good";
    case "DiamondCut": {
      const cuts = said.cuts as unknown as { functionSelectors: string[] }[];
      return `Programs took over ${plural(cuts.reduce((sum, { functionSelectors }) => sum + functionSelectors.length, 0), "function", "functions")}`;
    }
    default:
      return name.replace(/([a-z])([A-Z])/g, "$1 $2");
  }
}

/** A check's reason in words: the package names amounts in wei, and outcomes by their numbers. */
export function because({ subject, because }: Pick<Check, "subject" | "because">): string {
  if (subject === "payout" || subject === "slashes") return because.replace(/(?<!policy )\b\d+\b(?! s\b)/g, (wei) => money(BigInt(wei)));
  if (subject === "judgement") return because.replace(/(?<=outcome |where )\d\b/g, (outcome) => `“${GROUP[Number(outcome)]}”`);
  if (subject === "deadline") return because.replace(/\b\d+ s\b/g, (seconds) => duration(Number.parseInt(seconds, 10))).replace(/(?<=where )[\d or]+(?= are given)/, (all) => all.replace(/\d+/g, (seconds) => duration(Number(seconds))));
  return because;
}
