/** What the interface's declarations come to as types. */
import type { AbiParameter, AbiParameterToPrimitiveType, GetContractEventsReturnType, Prettify } from "viem";
import type { musterAbi } from "./generated/abi.js";
import type { UsedError } from "./generated/compact.js";

type Item = (typeof musterAbi)[number];

/** A list of named values as an object of them; one without a name, which is always a list, is called `list`. */
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

/** What the contract is told to do: see `IMuster.TaskSpec`. */
export type TaskSpec = ArgumentsOf<"createTask">["spec"];

/** An event of the contract as viem decodes it, told apart by `eventName`. */
export type MusterEvent = GetContractEventsReturnType<typeof musterAbi, undefined, true>[number];
