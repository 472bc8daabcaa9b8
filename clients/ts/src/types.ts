/** Types derived from the interface's declarations. */
import type { AbiParameter, AbiParameterToPrimitiveType, GetContractEventsReturnType, Prettify } from "viem";
import type { musterAbi } from "./generated/abi.js";
import type { UsedError } from "./generated/compact.js";

type Item = (typeof musterAbi)[number];

/** An object of named values; a value without a name, which is always a list, is called `list`. */
export type Named<parameters extends readonly AbiParameter[]> = {
  [
    parameter in parameters[number] as parameter extends { name: infer name extends string } ? (name extends "" ? "list" : name) : never
  ]: AbiParameterToPrimitiveType<parameter>;
};

/** The declaration of a function. */
export type FunctionOf<name extends string> = Extract<Item, { type: "function"; name: name }>;

/** A function's arguments by their names. */
export type ArgumentsOf<name extends string> = Prettify<Named<FunctionOf<name>["inputs"]>>;

/** A refusal of the contract: its name, and its values by their names. */
export type Refusal = {
  [name in UsedError]: { name: name; args: Prettify<Named<Extract<Item, { type: "error"; name: name }>["inputs"]>> };
}[UsedError];

/** A task as the contract gets it: see `IMuster.TaskSpec`. */
export type TaskSpec = ArgumentsOf<"createTask">["spec"];

/** An event of the contract as viem decodes it, discriminated by `eventName`. */
export type MusterEvent = GetContractEventsReturnType<typeof musterAbi, undefined, true>[number];
