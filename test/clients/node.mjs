// The addresses of the node and the contract, and the values that every script needs.
export const RPC_URL = process.env.RPC_URL ?? "http://127.0.0.1:8547";
export const WS_URL = process.env.WS_URL ?? RPC_URL.replace(/^http/, "ws");
// The Nitro development node's public key.
export const DEV_KEY = process.env.PRIVATE_KEY ?? "0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659";
// A Muster with nobody in it, which that key owns; run.sh deploys one for each script.
export const MUSTER = process.env.MUSTER ?? "";
if (!/^0x[0-9a-fA-F]{40}$/.test(MUSTER)) throw new Error("MUSTER names no contract; run.sh deploys one and names it");
// Another, where answers are checked, for scripts that play validated.mjs.
export const CHECKED = process.env.CHECKED ?? "";

export async function until(what, condition, seconds = 300) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`${what} did not happen within ${seconds} s`);
}

/** Whether the node's clock can be moved. */
export async function timeTravel() {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "evm_increaseTime", params: [0] });
  const answer = await fetch(RPC_URL, { method: "POST", headers: { "content-type": "application/json" }, body });
  return (await answer.json()).error === undefined;
}
