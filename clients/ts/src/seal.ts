/** For nodes: the salt of a commitment, and the sealed result that goes with it. docs/stores.md has the format. */
import { concatBytes, encodeAbiParameters, type Hex, keccak256, sha256 } from "viem";
import { GCM, type SealParameters, SECRET, derive, own } from "./results.js";

/** The salt of a node's commitment to a result: 16 secret bytes, then the first 16 of the SHA-256 of the result. */
export function saltOf(secret: Uint8Array, result: Uint8Array): Uint8Array {
  if (secret.length !== SECRET) throw new RangeError(`A salt's secret has ${SECRET} bytes, not ${secret.length}.`);
  return concatBytes([secret, sha256(result, "bytes").slice(0, SECRET)]);
}

/** Seals a result: a node uploads the bytes under `name` before it commits. The salt must be {@link saltOf} the result. */
export async function sealResult(result: Uint8Array, parameters: SealParameters): Promise<{ name: string; bytes: Uint8Array }> {
  const { key, name } = await derive(parameters);
  return { name, bytes: new Uint8Array(await crypto.subtle.encrypt(GCM, key, own(result))) };
}

/** A node's commitment: to an answer (kind 0) or an error's code (kind 1). */
export const commitmentOf = ({ id, node, kind, value, salt }: { id: bigint; node: number; kind: number; value: Hex; salt: Hex }): Hex =>
  keccak256(
    encodeAbiParameters(
      [{ type: "uint64" }, { type: "uint32" }, { type: "uint8" }, { type: "bytes32" }, { type: "bytes32" }],
      [id, node, kind, value, salt],
    ),
  );
