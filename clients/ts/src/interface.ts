/** The part of the interface that the actions use: all views, the calls of applications, the events of tasks and nodes, and every refusal. */
import type { Abi, AbiParameter } from "viem";
import type { musterAbi } from "./generated/abi.js";
import { compact } from "./generated/compact.js";

type Items = (typeof musterAbi)[number];

type Value = AbiParameter & { indexed?: boolean };

const [structs = [], told = [], refused = [], ...calls] = compact.split("\n\n").map((text) => text.split("\n").map((row) => row.split("|")));
/** The last type of each name. */
const types = new Map<string, string>();
const components = new Map<string, Value[]>();

/** Values of the compact form: `type name` (`64` is `uint64`), or the name alone if its type is the last one of this name, or a type without a name. */
const values = (text = "", more?: object): Value[] =>
  (text ? text.split(",") : []).map((value) => {
    const [first, second] = value.split(" ") as [string, string?];
    const known = second ? undefined : types.get(first);
    const [type, name] = known ? [known, first] : [first, second ?? ""];
    types.set(name, type);
    const [, base, lists] = /^(\w+)(.*)/.exec(type) as unknown as [string, string, string];
    const inner = components.get(base);
    return { ...more, name, ...(inner ? { type: `tuple${lists}`, components: inner } : { type: type.replace(/^\d/, "uint$&") }) } as Value;
  });
for (const [name, text] of structs) components.set(name!, values(text));

/** The events; indexed values stand before an exclamation mark. */
export const events = told.map(([name, inputs]) => {
  const [indexed, rest] = inputs!.split("!");
  return { type: "event", name: name!, inputs: [...values(indexed, { indexed: true }), ...values(rest, { indexed: false })] };
});

/** The refusals, each with a sentence for its meaning. */
export const errors = refused.map(([name, inputs, sentence]) => ({
  type: "error",
  name: name!,
  inputs: values(inputs),
  sentence: `${sentence}.`,
}));

/** The functions. */
export const functions = calls.flatMap((rows, i) =>
  rows.map(([name, inputs, outputs]) => ({
    type: "function",
    name: name!,
    stateMutability: ["view", "nonpayable", "payable"][i],
    inputs: values(inputs),
    outputs: values(outputs),
  })),
);

/** A function by its name. */
export const functionOf = (name: string) => functions.find((item) => item.name === name)!;

/** All of it, with the types of `muster-client/abi`. */
export const used = [...functions, ...events, ...errors] as unknown as Abi & readonly Items[] as typeof musterAbi;
