/** A created task's id. */
import { musterAbi } from "muster-client/abi";
import { type Address, type Log, isAddressEqual, parseEventLogs } from "viem";

/** The id of the first task that an account has created, by a transaction's logs: a smart account's bundle has others' tasks, too. */
export function createdBy(account: Address, muster: Address, logs: Log[]): bigint | undefined {
  const own = logs.filter(({ address }) => isAddressEqual(address, muster));
  return parseEventLogs({ abi: musterAbi, eventName: "TaskCreated", args: { creator: account }, logs: own })[0]?.args.id;
}
