// The README's example, as printed: its blocks are copied into an empty project with viem, ethers and tsx installed, the
// operator is started, and the application has to see its task succeed. RPC_URL=http://... MUSTER=0x... node readme.mjs
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Contract, JsonRpcProvider, Wallet, parseEther } from "ethers";
import { compile } from "./compile.mjs";
import { DEV_KEY, MUSTER, RPC_URL, until } from "./node.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const modules = fileURLToPath(new URL("node_modules", import.meta.url));
const example = readFileSync(join(root, "README.md"), "utf8").split(/^## /m).find((section) => section.startsWith("Using it\n"));
const blocks = [...example.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language, text]) => ({ language, text }));

// What the shell block sets up, from what is installed here instead of from the network.
const shell = blocks.find(({ language }) => language === "sh").text;
for (const step of ["npm init -y", "npm pkg set type=module", "npm install viem ethers tsx", "cp -r ../muster/abi ."]) {
  assert.ok(shell.includes(step), `the README's shell block has no "${step}"`);
}
const project = mkdtempSync(join(tmpdir(), "muster-readme-"));
const npm = (...words) => execFileSync("npm", words, { cwd: project, stdio: "ignore" });
npm("init", "-y");
npm("pkg", "set", "type=module");
symlinkSync(modules, join(project, "node_modules"));
cpSync(join(root, "abi"), join(project, "abi"), { recursive: true });
const files = [];
for (const { language, text } of blocks.filter(({ language }) => ["ts", "js"].includes(language))) {
  const [, file] = text.match(/^\/\/ (\S+)\n/) ?? assert.fail(`a block of ${language} does not begin with its file's name`);
  writeFileSync(join(project, file), text);
  files.push(file);
}
assert.deepEqual(files, ["application.ts", "operator.mjs"]);
assert.ok(shell.includes("node operator.mjs") && shell.includes("npx tsx application.ts"));

// What a contract does compiles within one.
const { text: solidity } = blocks.find(({ language }) => language === "solidity");
compile("test/solidity/Example.sol", `pragma solidity ^0.8.24;
import {IMuster} from "../../abi/IMuster.sol";
contract Example {
  IMuster muster;
  mapping(uint64 => bytes32) results;
  function refund(uint64) private {}
  function example(bytes32 inputDigest, uint64[] calldata models) external payable { ${solidity} }
}`);

// Its types are right, too.
const compiler = { target: "ES2022", module: "ESNext", moduleResolution: "Bundler", strict: true, noEmit: true, skipLibCheck: true, types: ["node"] };
writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: compiler, files: ["application.ts"] }));
execFileSync(join(modules, ".bin/tsc"), ["--project", project], { cwd: project, stdio: "inherit" });

const provider = new JsonRpcProvider(RPC_URL, undefined, { cacheTimeout: -1 });
provider.pollingInterval = 20;
const boss = new Wallet(DEV_KEY, provider);
const funded = async (ether) => {
  const { address, privateKey } = Wallet.createRandom();
  await (await boss.sendTransaction({ to: address, value: parseEther(ether) })).wait();
  return privateKey;
};
const start = (command, words, PRIVATE_KEY) => {
  const child = spawn(command, words, { cwd: project, env: { ...process.env, RPC_URL, PRIVATE_KEY } });
  const said = { out: "", ended: new Promise((resolve) => child.on("close", resolve)), child };
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (said.out += data));
  return said;
};
const operator = start(process.execPath, ["operator.mjs"], await funded("501"));
try {
  await until("the node's joining", () => operator.out.includes("is joined") || operator.child.exitCode !== null);
  const application = start(join(modules, ".bin/tsx"), ["application.ts"], await funded("1"));
  const late = setTimeout(() => application.child.kill(), 300_000);
  const code = await application.ended;
  clearTimeout(late);
  const order = ["TaskCreated", "TaskStarted", "TaskSucceeded"].map((event) => application.out.indexOf(event));
  const right = code === 0 && order.every((at, i) => at > (order[i - 1] ?? -1));
  assert.ok(right, `the example did not end as it should, with ${code}:\n${application.out}\noperator:\n${operator.out}`);
  const answer = application.out.match(/resultDigest: '(0x[0-9a-f]{64})'/)[1];
  await until("the operator's line", () => operator.out.includes(answer));

  // The lines for cast, the application's address filled in, and the numbers that they print.
  const { text: session } = blocks.find(({ language }) => language === "console");
  const scope = join(modules, "@foundry-rs");
  const [platform] = readdirSync(scope).filter((name) => name.startsWith("cast-"));
  const [, creator] = application.out.match(/creator: '(0x[0-9a-fA-F]{40})'/);
  const env = { ...process.env, MUSTER, ETH_RPC_URL: RPC_URL, NO_COLOR: "1", PATH: `${join(scope, platform, "bin")}:${process.env.PATH}` };
  const cast = (line) => execFileSync("sh", ["-c", line.slice(2).replace("0x...", creator)], { env, encoding: "utf8" });
  const [group, outcome, logs] = session.split("\n").filter((line) => line.startsWith("$ ")).map(cast);
  assert.ok(session.includes(group), group);
  assert.match(outcome, /^\(0, 0, 0, 0, 0x0{64}\)/);
  assert.equal(logs.match(/transactionHash/g).length, 1, logs);

  // A task that is checked it cannot answer, and it says so, and goes on.
  const muster = new Contract(MUSTER, JSON.parse(readFileSync(join(root, "abi/IMuster.json"), "utf8")), boss);
  const sampled = { kind: 0, units: 1, vram: 0, gpu: 0, redundancy: 1, flags: 0, inputDigest: `0x${"05".repeat(32)}`, models: [] };
  const { logs: created } = await (await muster.createTask(sampled, { value: 10_000n })).wait();
  const { id } = created.map((log) => muster.interface.parseLog(log)).find((event) => event?.name === "TaskCreated").args;
  await until("the draw", async () => {
    await (await muster.dispatch(1)).wait();
    return (await muster.locate(id, 1, 0)).status === 3n;
  });
  const refused = `task ${id}: CommitFirst`;
  await until("the refusal", () => operator.out.includes(refused) || operator.child.exitCode !== null).catch(() => assert.fail(operator.out));
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  assert.deepEqual([operator.out.split(refused).length - 1, operator.child.exitCode], [1, null], operator.out);
} finally {
  operator.child.kill();
  await operator.ended;
  rmSync(project, { recursive: true });
}
console.log("readme: ok: the task was created, drawn, answered and paid for");
process.exit(0);
