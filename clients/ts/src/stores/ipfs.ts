/**
 * IPFS: objects by the CID derived from their digest. A CID is of one block, so this is for at most 1 MiB, as much as Kubo keeps in one; and a
 * sealed result has none, since its name is not its digest.
 */
import { type Hex, hexToBytes } from "viem";
import { CID } from "multiformats/cid";
import * as raw from "multiformats/codecs/raw";
import { create } from "multiformats/hashes/digest";
import { type Store, TooLongError, entryName } from "./store.js";
import { ask, headersOf, objectUrl } from "./http.js";

/** The multihash of SHA-256. */
const SHA_256 = 0x12;
/** Bytes of a block. */
const MOST = 2 ** 20;

/** The CID (version 1, raw) of the bytes with this digest. */
export const cidOf = (digest: Hex): string => CID.createV1(raw.code, create(SHA_256, hexToBytes(digest, { size: 32 }))).toString();

/** Options of requests to an IPFS server. */
export interface IpfsStoreOptions {
  /** Headers of every request, for instance an authorisation. */
  headers?: Record<string, string> | undefined;
  /** Whether a gateway's redirections are followed, as `fetch` takes it; they are if left out. */
  redirect?: "follow" | "error" | undefined;
}

/** A gateway, for reading. */
export const ipfsStore = (gateway: string, { headers, redirect }: IpfsStoreOptions = {}): Store => ({
  name: `ipfs+${entryName(gateway)}`,
  get: async (object, { signal }) => {
    if ("sealed" in object) return null;
    const url = objectUrl(gateway, `ipfs/${cidOf(object.digest)}?format=raw`);
    return (await ask(url, { headers: headersOf(gateway, { accept: "application/vnd.ipld.raw", ...headers }), redirect, signal } as RequestInit))?.body ?? null;
  },
});

/** Options of a Kubo node. */
export interface KuboStoreOptions extends Pick<IpfsStoreOptions, "headers"> {
  /** A pinning service, by its name in the node's configuration, that must pin each object too. */
  pin?: string | undefined;
}

/** A Kubo node, by its RPC API (`http://127.0.0.1:5001`), which pins the objects put there. */
export function kuboStore(api: string, { headers, pin }: KuboStoreOptions = {}): Store {
  const call = async (path: string, query: Record<string, string>, signal: AbortSignal | undefined, body?: FormData) => {
    const url = objectUrl(api, `api/v0/${path}?${new URLSearchParams(query)}`);
    const response = await fetch(url, { method: "POST", headers: headersOf(api, headers), body: body ?? null, signal: signal ?? null });
    if (response.ok) return response;
    const { Message: said = `HTTP ${response.status}` } = (await response.json().catch(() => ({}))) as { Message?: string };
    throw new Error(said);
  };
  return {
    name: `kubo+${entryName(api)}`,
    get: async (object, { signal }) => {
      if ("sealed" in object) return null;
      return call("block/get", { arg: cidOf(object.digest) }, signal).then(
        ({ body }) => body,
        (error: Error) => {
          if (/not found/i.test(error.message)) return null;
          throw error;
        },
      );
    },
    put: async (object, bytes, { signal }) => {
      if ("sealed" in object) throw new Error("IPFS has no name for a sealed result");
      if (bytes.length > MOST) throw new TooLongError(MOST);
      const form = new FormData();
      form.append("data", new Blob([bytes as BlobPart]));
      const arg = cidOf(object.digest);
      const { Key } = (await (await call("block/put", { "cid-codec": "raw", mhtype: "sha2-256", pin: "true" }, signal, form)).json()) as { Key: string };
      if (Key !== arg) throw new Error(`kept it as ${Key}, not ${arg}`);
      if (pin) await call("pin/remote/add", { arg, service: pin, background: "true" }, signal);
    },
  };
}
