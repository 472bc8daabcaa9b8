// Where the node is, and what every script needs.
export const RPC_URL = process.env.RPC_URL ?? "http://127.0.0.1:8547";
export const WS_URL = process.env.WS_URL ?? RPC_URL.replace(/^http/, "ws");
// The Nitro development node's public key.
export const DEV_KEY = process.env.PRIVATE_KEY ?? "0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659";

export async function until(what, condition, seconds = 10) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`${what} did not happen within ${seconds} s`);
}
