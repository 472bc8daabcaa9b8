/** All actions at once, bound to one Muster: `client.extend(musterActions({ address, deployedIn }))`. */
import type { MusterClient, MusterParameters } from "./client.js";
import { type ViewName, readMuster } from "./contract.js";
import { dispatchTasks } from "./dispatch.js";
import { getEvents } from "./events.js";
import { functions } from "./interface.js";
import { type ReadActions, getQueuePlace } from "./reads.js";
import { putInput } from "./inputs.js";
import { setStores } from "./published.js";
import { type Until, type WaitForTaskParameters, type WaitForTaskReturnType, getResult, waitForTask } from "./results.js";
import type { Stores } from "./stores.js";
import {
  cancelTask,
  createTask,
  createTasks,
  estimateTask,
  expireQueuedTask,
  expireTask,
  getTask,
  settleTask,
  validateTask,
  withdrawCredit,
} from "./tasks.js";
import { watchEvents, watchNode, watchTasks } from "./wait.js";

const actions = {
  cancelTask,
  createTask,
  createTasks,
  dispatchTasks,
  estimateTask,
  expireQueuedTask,
  expireTask,
  getEvents,
  getQueuePlace,
  getResult,
  getTask,
  putInput,
  setStores,
  settleTask,
  validateTask,
  waitForTask,
  watchEvents,
  watchNode,
  watchTasks,
  withdrawCredit,
};

type Actions = ReadActions & typeof actions;
type Without<parameters> = parameters extends unknown ? Omit<parameters, keyof MusterParameters | "configured"> : never;

/** An action without the parameters that the decorator has: the client, and the Muster. */
type Bound<action> = action extends (client: MusterClient, parameters: infer parameters) => infer result
  ? (
      ...parameters: Record<never, never> extends Without<parameters>
        ? [parameters?: Without<parameters>]
        : [parameters: Without<parameters>]
    ) => result
  : never;

/** Actions of this package on a client. */
export type MusterActions = { [name in Exclude<keyof Actions, "waitForTask">]: Bound<Actions[name]> } & {
  /** See the action of this name. */
  waitForTask: <until extends Until = "ended">(parameters: Without<WaitForTaskParameters<until>>) => Promise<WaitForTaskReturnType<until>>;
};

/** Actions that look for results. */
const FETCHING = ["getResult", "waitForTask"];

type Action = (client: MusterClient, parameters: never) => unknown;

/** Every action of this package, bound to the Muster at an address; results are also looked for in `stores`. */
export const musterActions =
  ({ stores: configured, ...muster }: MusterParameters & { stores?: Stores | undefined }) =>
  (client: MusterClient): MusterActions => {
    const bind = ([name, action]: [string, Action]) => [name, (parameters: object) => action(client, { ...(FETCHING.includes(name) && { configured }), ...parameters, ...muster } as never)];
    const views = functions
      .filter(({ stateMutability }) => stateMutability === "view")
      .map(({ name }): [string, Action] => [
        `get${name[0]!.toUpperCase()}${name.slice(1)}`,
        (client, parameters) => readMuster(client, name as ViewName, parameters),
      ]);
    return Object.fromEntries([...views, ...Object.entries<Action>(actions)].map(bind)) as MusterActions;
  };
