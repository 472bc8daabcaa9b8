// The packed package under Next: a page rendered on the server and a component for the browser, built and asked. Not part of test.sh,
// because it downloads 200 MB: MUSTER_PACKAGE=... MUSTER_DEVNODE=... node test/next.mjs
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNetwork } from "../dist/test/index.js";

const { devDependencies } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const project = mkdtempSync(join(tmpdir(), "muster-"));
const write = (name, text) => writeFileSync(join(project, name), text);
const run = (command, ...args) =>
  execFileSync(command, args, {
    cwd: project,
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" },
  });
let network;
let server;
try {
  run("npm", "init", "-y");
  run("npm", "pkg", "set", "type=module");
  const others = [`viem@${devDependencies.viem}`, "next@16.4.6", "react@19.2.0", "react-dom@19.2.0"];
  run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", process.env.MUSTER_PACKAGE, ...others);
  mkdirSync(join(project, "app"));
  write("app/layout.jsx", "export default ({ children }) => <html><body>{children}</body></html>");
  write(
    "app/page.jsx",
    `import { createPublicClient, http } from 'viem'
    import { musterActions } from 'muster-client'
    import { Asked } from './asked.jsx'
    export const dynamic = 'force-dynamic'
    export default async function Page() {
      const { RPC_URL: url, MUSTER: address } = process.env
      const client = createPublicClient({ transport: http(url) }).extend(musterActions({ address }))
      const { nodesJoined } = await client.getOverview()
      return <main>{'joined: ' + nodesJoined}<Asked url={url} address={address} /></main>
    }`,
  );
  write(
    "app/asked.jsx",
    `'use client'
    import { useState } from 'react'
    import { createPublicClient, http } from 'viem'
    import { getOverview, modelId, stringify } from 'muster-client'
    export function Asked({ url, address }) {
      const [told, tell] = useState(String(modelId('stabilityai/sdxl-turbo')))
      const ask = async () => tell(stringify(await getOverview(createPublicClient({ transport: http(url) }), { address })))
      return <button onClick={ask}>{told}</button>
    }`,
  );
  run("npx", "next", "build");
  network = await startNetwork({ nodes: [{}, {}] });
  const env = { ...process.env, RPC_URL: network.url, MUSTER: network.address };
  server = spawn("node", ["node_modules/next/dist/bin/next", "start", "-p", "0"], {
    cwd: project,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await new Promise((resolve, reject) => {
    let said = "";
    server.stdout.on("data", (data) => {
      const found = /http:\/\/localhost:(\d+)/.exec((said += data));
      if (found) resolve(`http://127.0.0.1:${found[1]}`);
    });
    server.on("exit", (code) => reject(new Error(`next ended with ${code}: ${said}`)));
  });
  const page = await (await fetch(url)).text();
  assert.match(page, /joined: 2/);
  assert.match(page, /<button>171786393229<\/button>/);
  console.log("next: ok: built, and a page rendered on the server from the contract");
} finally {
  server?.removeAllListeners("exit");
  server?.kill();
  await network?.stop();
  rmSync(project, { recursive: true, maxRetries: 5 });
}
