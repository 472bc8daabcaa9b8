/** The interface of Muster as the indexer uses it. */
import { type AbiFunction, type ContractEventArgsFromTopics, type ContractEventName, type Hex, toFunctionSelector } from "viem";
import { musterAbi } from "../../../../abi/muster";
import { musterParameters } from "../../../../abi/parameters";

export { musterAbi };

export type EventName = ContractEventName<typeof musterAbi>;
/** The values of an event. */
export type Args<name extends EventName> = ContractEventArgsFromTopics<typeof musterAbi, name>;

/** Every event of the interface. */
export const EVENTS = musterAbi.flatMap((item) => (item.type === "event" ? [item.name] : []));

/** Names of functions by their selectors. */
export const FUNCTIONS = new Map<Hex, string>(
  (musterAbi as readonly { type: string }[]).flatMap((item) =>
    item.type === "function" ? [[toFunctionSelector(item as AbiFunction), (item as AbiFunction).name] as const] : [],
  ),
);

/** Parameters by their numbers. */
export const PARAMETERS = new Map<number, { name: string; unit: string }>(musterParameters.map((of) => [of.number, of]));

type ParameterName = (typeof musterParameters)[number]["name"];
/** A parameter's number. */
export const parameterNumber = (name: ParameterName): number => musterParameters.find((of) => of.name === name)!.number;
