/** Whom to ask: a client of viem, and which Muster. */
import type { Account, Address, Chain, Client, Transport } from "viem";

/** Any client of viem; what sends transactions needs an account in it, or given with the call. */
export type MusterClient = Client<Transport, Chain | undefined, Account | undefined>;

/** Which Muster is meant. */
export interface MusterParameters {
  /** The router's address. */
  address: Address;
  /** The block in which it was created, from which its events are looked for. If left out it is looked for itself, once. */
  deployedIn?: bigint | undefined;
}
