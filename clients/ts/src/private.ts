/** Inputs readable only by the nodes that may run them, and results readable only by the creator: files of age (age-encryption.org), by X25519 keys. */
import { Decrypter, Encrypter, generateX25519Identity, identityToRecipient } from "age-encryption";
import { concatBytes, stringToBytes } from "viem";
import { SEALED, isSealed } from "./seals.js";

/** A new key: its secret part, `AGE-SECRET-KEY-1...`, and its public one, `age1...`. */
export async function newIdentity(): Promise<{ identity: string; recipient: string }> {
  const identity = await generateX25519Identity();
  return { identity, recipient: await identityToRecipient(identity) };
}

/** Seals bytes for the owners of these keys. */
export async function sealTo(bytes: Uint8Array, recipients: readonly string[]): Promise<Uint8Array> {
  const age = new Encrypter();
  for (const recipient of recipients) age.addRecipient(recipient);
  return concatBytes([SEALED, await age.encrypt(bytes)]);
}

/** Opens bytes that were sealed to a key. */
export async function openWith(bytes: Uint8Array, identity: string): Promise<Uint8Array> {
  if (!isSealed(bytes)) throw new Error("it is not sealed");
  const age = new Decrypter();
  age.addIdentity(identity);
  return age.decrypt(bytes.subarray(SEALED.length));
}

/** Seals an input; the result is then sealed to `reply`, if given. */
export function sealInput(input: Uint8Array, recipients: readonly string[], reply?: string): Promise<Uint8Array> {
  return sealTo(concatBytes([stringToBytes(`${JSON.stringify({ reply })}\n`), input]), recipients);
}

/** For nodes: a sealed input, and the key to seal its result to. */
export async function openInput(bytes: Uint8Array, identity: string): Promise<{ input: Uint8Array; reply: string | undefined }> {
  const opened = await openWith(bytes, identity);
  const end = opened.indexOf(0x0a);
  const { reply } = JSON.parse(new TextDecoder().decode(opened.subarray(0, end))) as { reply?: string };
  return { input: opened.slice(end + 1), reply };
}
