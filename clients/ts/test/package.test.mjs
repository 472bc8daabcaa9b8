// The package as others get it: packed, installed into an empty project, and used there by Node.js, TypeScript, Vite and a worker.
// MUSTER_PACKAGE names the packed file, MUSTER_DEVNODE the development node.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { inflateSync } from "node:zlib";
import { build } from "vite";
import { startIpfs } from "./servers/ipfs.mjs";
import { credentials, startS3 } from "./servers/s3.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const { version } = JSON.parse(readFileSync(here("../package.json"), "utf8"));
const project = mkdtempSync(join(tmpdir(), "muster-"));
after(() => rmSync(project, { recursive: true }));
const run = async (command, args, env = {}) => {
  const options = { cwd: project, env: { ...process.env, ...env } };
  // A variable of the test runner, which must not reach the tests inside.
  delete options.env.NODE_TEST_CONTEXT;
  return (await promisify(execFile)(command, args, options)).stdout;
};
const write = (name, text) => writeFileSync(join(project, name), text);
const pages = ["applications", "streams"].map((name) => readFileSync(here(`../../../docs/${name}.md`), "utf8")).join("");
/** The blocks of two pages that begin by naming a file. */
const blocks = Object.fromEntries(
  [...pages.matchAll(/```js\n(\/\/ (\S+\.mjs)\b[\s\S]*?)```/g)].map(([, text, name]) => [
    name,
    text,
  ]),
);

let network;
/** The network's address for an example. */
let settings;
before(async () => {
  await run("npm", ["init", "-y"]);
  await run("npm", ["pkg", "set", "type=module"]);
  // The package is unpacked there; the others are linked, since copying their ten thousand files takes longer than all the rest.
  const others = ["viem", "ethers", "@types/node", "vitest", "@noble/hashes", "age-encryption", "aws4fetch", "multiformats"].map((name) => here(`../node_modules/${name}`));
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", process.env.MUSTER_PACKAGE, ...others]);
  const { startNetwork } = await import(pathToFileURL(join(project, "node_modules/muster-client/dist/test/index.js")));
  const result = ({ inputDigest }) => new TextEncoder().encode(`result of ${inputDigest}`);
  network = await startNetwork({ nodes: [{ models: ["stabilityai/sdxl-turbo"] }, {}], drive: false, run: result });
  const { url, address, storeUrl } = network;
  // The network's owner: the public key of every nitro development chain.
  settings = {
    RPC_URL: url,
    CHAIN_ID: String(network.chain.id),
    MUSTER: address,
    STORE: storeUrl,
    PRIVATE_KEY: "0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659",
  };
});
after(() => network?.stop());

test("what is packed", () => {
  const root = join(project, "node_modules/muster-client");
  assert.deepEqual(readdirSync(root).sort(), ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "THIRD-PARTY.txt", "dist", "package.json", "src", "state"]);
  const installed = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  assert.equal(installed.version, version);
  // viem, and the dependencies of single entries; for tests the node, in exactly this version.
  assert.deepEqual(Object.keys(installed.dependencies), ["@noble/hashes", "age-encryption", "aws4fetch", "multiformats"]);
  assert.deepEqual(Object.keys(installed.peerDependencies), ["muster-devnode", "viem"]);
  assert.equal(installed.peerDependencies["muster-devnode"], version);
  assert.deepEqual(installed.peerDependenciesMeta, { "muster-devnode": { optional: true } });
});

test("the programs of docs/applications.md and docs/streams.md run as they stand", async () => {
  assert.deepEqual(Object.keys(blocks), ["first.mjs", "stores.mjs", "cheat.test.mjs", "nodes.spec.mjs", "policies.mjs", "storage.mjs", "words.mjs"]);
  for (const [name, text] of Object.entries(blocks)) write(name, text);
  const isPicture = (name) => {
    const bytes = readFileSync(join(project, name));
    assert.deepEqual([bytes.toString("latin1", 1, 4), bytes.readUInt32BE(16), bytes.readUInt32BE(20)], ["PNG", 64, 64]);
    // Its rows, of 64 pixels and a filter each.
    const length = bytes.readUInt32BE(33);
    assert.equal(inflateSync(bytes.subarray(41, 41 + length)).length, 64 * (3 * 64 + 1));
    return bytes.length;
  };
  const said = (await run("node", ["first.mjs"])).trim().split("\n");
  assert.deepEqual(said, ["3 nodes, at least 50 wei", "pending", "running", "succeeded", `picture.png: ${isPicture("picture.png")} bytes`]);
  const [s3, ipfs] = await Promise.all([startS3({ read: true }), startIpfs()]);
  try {
    const { accessKeyId, secretAccessKey } = credentials;
    const keys = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };
    await run("node", ["stores.mjs"], { S3: s3.url, KUBO: ipfs.url, GATEWAY: ipfs.url, ...keys });
    isPicture("private.png");
    assert.equal(ipfs.blocks.size, 1);
    // One of both is enough for the nodes; without either nobody runs it.
    await run("node", ["stores.mjs"], { S3: "http://127.0.0.1:9", KUBO: ipfs.url, GATEWAY: ipfs.url, ...keys });
    await run("node", ["stores.mjs"], { S3: s3.url, KUBO: "http://127.0.0.1:9", GATEWAY: "http://127.0.0.1:9", ...keys });
    const none = { S3: "http://127.0.0.1:9", KUBO: "http://127.0.0.1:9", GATEWAY: "http://127.0.0.1:9", ...keys };
    await assert.rejects(run("node", ["stores.mjs"], none), /No store took the input, so no task was created/);
  } finally {
    ipfs.stop();
    await s3.stop();
  }
  assert.match(await run("node", ["--test", "--test-reporter", "tap", "cheat.test.mjs"]), /^# pass 1$/m);
  const { numPassedTests, numTotalTests } = JSON.parse(
    // A busy machine may need longer than vitest's five seconds.
    await run("npx", ["vitest", "run", "nodes.spec", "--reporter", "json", "--testTimeout", "60000", "--hookTimeout", "60000"], { NO_COLOR: "1" }),
  );
  assert.deepEqual([numPassedTests, numTotalTests], [2, 2]);
  assert.equal(await run("node", ["words.mjs"]), "Once upon a time there was a muster.\n101 bytes, as the chain has them\n");
  // The prices on the page: the same, three times and seven times that of a single task.
  assert.match(
    await run("node", ["policies.mjs"]),
    /^0: at least 60 wei, succeeded by 1\n1: at least 60 wei, succeeded by [13]\n2: at least 180 wei, succeeded by 3\n3: at least 420 wei, succeeded by [3-7]\n$/,
  );
  assert.match(await run("node", ["storage.mjs"]), new RegExp(`^state 2, node [123], digest 0x[0-9a-f]{64}\\n$`));
});

test("a task is checked, by the WASM that is in the package", async () => {
  write(
    "check.mjs",
    `import { createPublicClient, http } from 'viem'
    import { replayTransaction as replay } from 'muster-client/replay'
    import { verifyTask } from 'muster-client/verify'
    const checks = await verifyTask(createPublicClient({ transport: http(process.env.RPC_URL) }), { address: process.env.MUSTER, id: 1n, replay })
    for (const { subject, result } of checks) console.log(subject, result)`,
  );
  const { client } = network;
  await client.createTask({ kind: 1, value: 1_000n, dispatch: true });
  await client.waitForTask({ id: 1n });
  const said = await run("node", ["check.mjs"], settings);
  assert.deepEqual(said.trim().split("\n"), ["draw ok", "deadline ok", "end ok", "answer not checkable here", "payout ok"]);
});

for (const example of ["viem", "ethers"]) {
  test(`examples/${example}.mjs`, async () => {
    copyFileSync(here(`../examples/${example}.mjs`), join(project, `${example}.mjs`));
    const said = await run("node", [`${example}.mjs`], settings);
    assert.match(said, /^node \d+: result of 0x[0-9a-f]{64}$/m);
  });
}

// attw checks that bundlers resolve them too.
test("types", async () => {
  copyFileSync(here("types.ts"), join(project, "types.ts"));
  const tsc = here("../node_modules/typescript/bin/tsc");
  const common = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--lib", "es2023,dom", "--types", "node", "types.ts"];
  await run("node", [tsc, "--module", "nodenext", ...common]).catch((error) => assert.fail(error.stdout));
});

test("Vite bundles it for a page and for a worker, and the bundles run", async () => {
  const program = `
    import { createPublicClient, http } from 'viem'
    import { musterActions } from 'muster-client'
    export const ask = async ({ url, address }) => {
      const client = createPublicClient({ transport: http(url) }).extend(musterActions({ address }))
      return (await client.getOverview()).nodesJoined
    }`;
  mkdirSync(join(project, "page"));
  write("page/ask.js", program);
  write("page/worker.js", `import { ask } from './ask.js'\nself.onmessage = async ({ data }) => self.postMessage(await ask(data))`);
  write(
    "page/main.js",
    `import { ask } from './ask.js'
    globalThis.ask = ask
    globalThis.startWorker = () => new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })`,
  );
  write("page/index.html", `<script type="module" src="./main.js"></script>`);
  // Of modules that a browser does not have, for instance. viem's own import each other in circles, and a comment of @scure/base is in the wrong place.
  const warnings = [];
  const onwarn = ({ code, message }) => {
    if (!["CIRCULAR_DEPENDENCY", "INVALID_ANNOTATION"].includes(code) || message.includes("muster-client")) warnings.push(message);
  };
  const options = {
    root: join(project, "page"),
    configFile: false,
    logLevel: "error",
    worker: { format: "es" },
    build: { rollupOptions: { onwarn }, modulePreload: { polyfill: false } },
  };
  await build(options);
  assert.deepEqual(warnings, []);
  const assets = join(project, "page/dist/assets");
  const [main, worker] = ["index", "worker"].map((name) =>
    join(
      assets,
      readdirSync(assets).find((file) => file.startsWith(name) && file.endsWith(".js")),
    ),
  );
  for (const file of [main, worker]) {
    const [asked] = /\b(?:from|import)\s*["'][^.,"'][^"']*["']|\brequire\(|["']node:/.exec(readFileSync(file, "utf8")) ?? [];
    assert.equal(asked, undefined, `${file} asks for other modules`);
  }
  // The example page.
  mkdirSync(join(project, "words"));
  copyFileSync(here("../examples/stream.html"), join(project, "words/index.html"));
  await build({ ...options, root: join(project, "words") });
  assert.deepEqual(warnings, []);
  assert.match(readFileSync(join(project, "words/dist/index.html"), "utf8"), /<script type="module"/);
  const where = { url: network.url, address: network.address };
  await import(pathToFileURL(main));
  assert.equal(await globalThis.ask(where), 2);
  // A worker has a global scope of its own, whose messages come as events.
  const scope = `const { parentPort, workerData } = require("node:worker_threads");
    globalThis.self = globalThis;
    self.postMessage = (data) => parentPort.postMessage(data);
    parentPort.on("message", (data) => self.onmessage({ data }));
    import(workerData.file).then(() => parentPort.postMessage("ready"));`;
  const thread = new Worker(scope, { eval: true, workerData: { file: pathToFileURL(worker).href } });
  const heard = () => new Promise((resolve, reject) => thread.once("message", resolve).once("error", reject));
  assert.equal(await heard(), "ready");
  thread.postMessage(where);
  assert.equal(await heard(), 2);
  await thread.terminate();
});
