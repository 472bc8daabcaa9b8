/** The payments that a task's fee must cover. */
import { musterAbi } from "muster-client/abi";
import type { Address, PublicClient } from "viem";

const [RATED, DEFAULT] = [3, 7];
const BY_POLICY = [1, 1, 3];

/** How many payments a policy takes: of a rated task as many as the profile of its account allows in a group. */
export async function paymentsOf(client: PublicClient, muster: Address, policy: number, account: Address | undefined): Promise<bigint> {
  if (policy !== RATED) return BigInt(BY_POLICY[policy]!);
  if (!account) return BigInt(DEFAULT);
  const [{ most }] = await client.readContract({ address: muster, abi: musterAbi, functionName: "profile", args: [account] });
  return BigInt(most || DEFAULT);
}
