// Common parts of the plays of test/clients: actors with money, transactions whose events are kept, time.
import assert from "node:assert/strict";
import { compile } from "./compile.mjs";
import { DEV_KEY } from "./node.mjs";
import { declaredAs, newKey, numberOf } from "./story.mjs";

/** A Muster and its players; `client` is as the story's. */
export function stage(muster, client) {
  const events = [];
  /** The names of events and of refusals so far. */
  const seen = { event: new Set(), error: new Set() };
  const decode = ({ logs }) => {
    const own = logs
      .filter((log) => log.address.toLowerCase() === muster.toLowerCase())
      .map((log) => declaredAs("event", client.event(log)));
    for (const { name } of own) seen.event.add(name);
    events.push(...own);
    return own;
  };
  const send = async (key, name, args = [], value = 0n) =>
    decode(await client.send(key, { to: muster, data: client.encode(name, args), value }));
  const actor = async (wei) => {
    const key = newKey();
    const address = client.address(key);
    await client.send(DEV_KEY, { to: address, value: 20_000_000_000_000_000n + wei });
    return { key, address };
  };
  const last = (name, id) => events.findLast((event) => event.name === name && event.args.id === id)?.args;
  const travel = async (seconds) => {
    await client.rpc("evm_increaseTime", [Number(seconds)]);
    await client.rpc("evm_mine", []);
  };
  const parameter = async (name) => BigInt((await client.call("parameter", [numberOf(name)]))[0]);
  /** A call of Muster's is refused with this error. */
  const refused = async (from, name, args, error) => {
    const got = declaredAs("error", await client.refused(from, name, args, 0n));
    seen.error.add(got.name);
    assert.equal(got.name, error, name);
  };
  /** The same for a call of any contract. */
  const fails = async (from, encoded, to, decoder, error) => assert.equal((await client.refusal({ from, to, data: encoded }, decoder)).name, error);
  /** A contract of test/solidity. */
  const deployed = async (name, ...args) => {
    const { abi, bytecode } = compile(`test/solidity/${name}.sol`);
    const word = (address) => address.slice(2).toLowerCase().padStart(64, "0");
    const { contractAddress } = await client.send(DEV_KEY, { data: bytecode + args.map(word).join("") });
    const contract = client.at(contractAddress, abi);
    /** A transaction to it; gives Muster's events. */
    const tell = async (key, name, args = [], value = 0n) =>
      decode(await client.send(key, { to: contract.address, data: contract.encode(name, args), value }));
    return { ...contract, tell };
  };
  return { events, seen, send, actor, last, travel, parameter, refused, fails, deployed };
}
