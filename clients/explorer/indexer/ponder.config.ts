import { createConfig } from "ponder";
import { musterAbi } from "../../../abi/muster";
import { address, chainId, ethGetLogsBlockRange, pollingInterval, rpc, startBlock } from "./src/settings";

export default createConfig({
  database: process.env.DATABASE_URL
    ? { kind: "postgres", connectionString: process.env.DATABASE_URL }
    : { kind: "pglite", directory: process.env.PGLITE_DIRECTORY || ".ponder/pglite" },
  chains: { muster: { id: chainId, rpc, pollingInterval, ethGetLogsBlockRange } },
  contracts: {
    Muster: { chain: "muster", abi: musterAbi, address, startBlock, includeTransactionReceipts: true },
  },
});
