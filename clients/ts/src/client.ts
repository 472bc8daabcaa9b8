/** A Muster, and the viem client to reach it. */
import type { Account, Address, Chain, Client, Transport } from "viem";

/** Any client of viem; actions that send transactions need an account in it, or given with the call. */
export type MusterClient = Client<Transport, Chain | undefined, Account | undefined>;

/** A Muster. */
export interface MusterParameters {
  /** The router's address. */
  address: Address;
  /** The block in which it was created, from which its events are looked for. If left out, it is searched for once. */
  deployedIn?: bigint | undefined;
}
