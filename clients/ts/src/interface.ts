/** What the actions use of the interface: all views, the calls of applications, the events of tasks and nodes, and every refusal. */
import type { Abi, AbiParameter } from "viem";
import type { musterAbi } from "./generated/abi.js";
import { compact } from "./generated/compact.js";

type Items = (typeof musterAbi)[number];

const rows = (text: string) => text.split("\n").map((row) => row.split("|"));
const structs = new Map(rows(compact.struct) as [string, string][]);

/** Values as the compact form lists them: `type name`, an indexed one's type with an exclamation mark. */
const values = (text?: string): (AbiParameter & { indexed?: boolean })[] =>
  (text ? text.split(",") : []).map((value) => {
    const [, base, lists, mark, name] = /^(\w+)([^! ]*)(!?) ?(.*)$/.exec(value) as unknown as [string, string, string, string, string];
    const components = structs.get(base);
    return {
      ...(mark && { indexed: true }),
      name,
      type: (components ? "tuple" : base) + lists,
      ...(components && { components: values(components) }),
    } as AbiParameter;
  });

/** The events. */
export const events = rows(compact.event).map(([name, inputs]) => ({
  type: "event",
  name: name!,
  inputs: values(inputs).map((value) => ({ indexed: false, ...value })),
}));

/** The refusals, each with a sentence that says what it means. */
export const errors = rows(compact.error).map(([name, inputs, sentence]) => ({
  type: "error",
  name: name!,
  inputs: values(inputs),
  sentence,
}));

/** The functions. */
export const functions = (["view", "nonpayable", "payable"] as const).flatMap((stateMutability) =>
  rows(compact[stateMutability]).map(([name, inputs, outputs]) => ({
    type: "function",
    name: name!,
    stateMutability,
    inputs: values(inputs),
    outputs: values(outputs),
  })),
);

/** A function by its name. */
export const functionOf = (name: string) => functions.find((item) => item.name === name)!;

/** All of it, typed as `muster-client/abi` is. */
export const used = [...functions, ...events, ...errors] as unknown as Abi & readonly Items[] as typeof musterAbi;
