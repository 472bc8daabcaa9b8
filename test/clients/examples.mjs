// The examples of docs/examples.md, as printed. Their blocks are copied into an empty project with viem, ethers, tsx and the package
// installed, and the operator is started. The applications must see their tasks succeed, and send nothing where they should not.
// RPC_URL=http://... CHAIN_ID=... MUSTER=0x... MUSTER_PACKAGE=muster-client-....tgz node examples.mjs
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Contract, Fragment, Interface, JsonRpcProvider, Wallet, parseEther } from "ethers";
import { compile } from "./compile.mjs";
import { Endpoint } from "./endpoint.mjs";
import { DEV_KEY, MUSTER, RPC_URL, until } from "./node.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const modules = fileURLToPath(new URL("node_modules", import.meta.url));
const example = readFileSync(join(root, "docs/examples.md"), "utf8");
const blocks = [...example.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language, text]) => ({ language, text }));

// The shell block's setup, from the packages installed here instead of from the network.
const shell = blocks.find(({ language }) => language === "sh").text;
for (const step of ["npm init -y", "npm pkg set type=module", "npm install viem ethers tsx", `npm install ../muster/clients/ts/muster-client-${JSON.parse(readFileSync(join(root, "clients/ts/package.json"), "utf8")).version}.tgz`, "cp -r ../muster/abi ."]) {
  assert.ok(shell.includes(step), `the page's shell block has no "${step}"`);
}
const project = mkdtempSync(join(tmpdir(), "muster-examples-"));
const npm = (...words) => execFileSync("npm", words, { cwd: project, stdio: "ignore" });
npm("init", "-y");
npm("pkg", "set", "type=module");
mkdirSync(join(project, "node_modules/muster-client"), { recursive: true });
for (const name of readdirSync(modules)) symlinkSync(join(modules, name), join(project, "node_modules", name));
execFileSync("tar", ["xzf", process.env.MUSTER_PACKAGE, "--strip-components=1", "-C", join(project, "node_modules/muster-client")]);
// The package's dependencies, in its own versions, as npm would install it.
const own = join(project, "node_modules/muster-client");
for (const name of Object.keys(JSON.parse(readFileSync(join(own, "package.json"), "utf8")).dependencies)) {
  mkdirSync(dirname(join(own, "node_modules", name)), { recursive: true });
  symlinkSync(join(root, "clients/ts/node_modules", name), join(own, "node_modules", name));
}
cpSync(join(root, "abi"), join(project, "abi"), { recursive: true });
const files = [];
for (const { language, text } of blocks.filter(({ language }) => ["ts", "js"].includes(language))) {
  const [, file] = text.match(/^\/\/ (\S+)\n/) ?? assert.fail(`a block of ${language} does not begin with its file's name`);
  writeFileSync(join(project, file), text);
  files.push(file);
}
assert.deepEqual(files, ["application.ts", "plain.ts", "operator.mjs"]);
assert.ok(shell.includes("node operator.mjs") && shell.includes("npx tsx application.ts"));

// A contract's lines compile within one.
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
const compiler = { target: "ES2022", lib: ["ES2023", "DOM"], module: "ESNext", moduleResolution: "Bundler", strict: true, noEmit: true, skipLibCheck: true, types: ["node"] };
writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: compiler, files: ["application.ts", "plain.ts"] }));
execFileSync(join(modules, ".bin/tsc"), ["--project", project], { cwd: project, stdio: "inherit" });

const provider = new JsonRpcProvider(RPC_URL, undefined, { cacheTimeout: -1 });
provider.pollingInterval = 20;
const boss = new Wallet(DEV_KEY, provider);
const funded = async (ether) => {
  const { address, privateKey } = Wallet.createRandom();
  await (await boss.sendTransaction({ to: address, value: parseEther(ether) })).wait();
  return privateKey;
};
const start = (command, words, PRIVATE_KEY, settings = {}) => {
  const child = spawn(command, words, { cwd: project, env: { ...process.env, RPC_URL, PRIVATE_KEY, ...settings } });
  const said = { out: "", ended: new Promise((resolve) => child.on("close", resolve)), child };
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (said.out += data));
  return said;
};
const programs = { application: ["application.ts"], plain: ["plain.ts"], operator: ["operator.mjs"] };
/** Starts one of them. */
const launch = (name, key, settings) => start(name === "operator" ? process.execPath : join(modules, ".bin/tsx"), programs[name], key, settings);
/** Runs one to its end; gives its exit status and what it said. */
const ran = async (name, key, settings) => {
  const running = launch(name, key, settings);
  const late = setTimeout(() => running.child.kill(), 300_000);
  const code = await running.ended;
  clearTimeout(late);
  return { code, out: running.out };
};

// Every line for cast in any page is as the interface has it: a wrong type of the answer shows wrong values, and says nothing.
const face = new Interface(JSON.parse(readFileSync(join(root, "abi/IMuster.json"), "utf8")));
const pages = ["README.md", ...readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`)];
const plainly = (fragment) => fragment.format("sighash") + (fragment.outputs ?? []).map((output) => output.format("sighash")).join();
let lines = 0;
for (const page of pages) {
  // Precompiles have interfaces of their own.
  for (const [line, call, signature] of readFileSync(join(root, page), "utf8").matchAll(/cast (call|send|estimate|calldata|logs)\b(?![^\n]*0x0{30,})[^'\n]*'([^']+)'.*/g)) {
    const event = call === "logs";
    const [, name, , outputs] = /^(\w+)(\(.*?\))(\(.*\))?$/.exec(signature);
    const declared = event ? face.getEvent(name) : face.getFunction(signature.slice(0, outputs ? -outputs.length : undefined));
    assert.ok(declared, `${page}: the interface has no ${signature}`);
    const meant = Fragment.from(`${event ? "event" : "function"} ${signature.slice(0, outputs ? -outputs.length : undefined)}${outputs ? ` view returns ${outputs}` : ""}`);
    const [as, by] = [meant, declared].map((fragment) => (outputs || event ? plainly(fragment) : fragment.format("sighash")));
    assert.equal(as, by, `${page}: ${line}`);
    if (event) assert.deepEqual(meant.inputs.map(({ indexed }) => !!indexed), declared.inputs.map(({ indexed }) => !!indexed), `${page}: ${line}`);
    lines++;
  }
}
assert.ok(lines >= 5, `${lines} lines for cast`);

// Nothing is sent where it would be lost: an address at which there is nothing, another chain, a call that is refused.
const none = `0x${"d1".repeat(20)}`;
const key = await funded("502");
const { address: loser } = new Wallet(key);
const otherChain = { CHAIN_ID: "421614" };
const has = await provider.getBalance(loser);
/** A program that must fail, say why, and send nothing. */
const fails = async (name, says, settings) => {
  const { code, out } = await ran(name, key, settings);
  assert.ok(code !== 0 && says.test(out), `${name} with ${JSON.stringify(settings)}: ${code}\n${out}`);
  assert.deepEqual([await provider.getBalance(loser), await provider.getTransactionCount(loser)], [has, 0]);
};
await fails("application", new RegExp(`There is no Muster at ${none} on chain 412346`), { MUSTER: none });
await fails("plain", /returned no data/, { MUSTER: none });
await fails("operator", /could not decode result data/, { MUSTER: none });
await fails("operator", /network changed: 421614 => 412346/, otherChain);
// Nobody has joined yet.
for (const name of ["application", "plain"]) await fails(name, /NoNodes/, {});

// From here on by an endpoint as providers run them, on a chain that is not young; only a development node makes blocks on demand.
await provider.send("anvil_mine", ["0x7530"]).catch(() => undefined);
const endpoint = await Endpoint.start(RPC_URL, { logsRangeMax: 10_000, requestsPerSecond: 10, retryAfter: 1 });
const byEndpoint = { RPC_URL: endpoint.url };
const operator = launch("operator", await funded("501"), byEndpoint);
try {
  await until("the node's joining", () => operator.out.includes("is joined") || operator.child.exitCode !== null);
  await fails("application", /id: 412346\)[^]*id: 421614/, otherChain);
  await fails("plain", /what answers is not chain 421614/, otherChain);
  const packaged = await ran("application", await funded("1"), byEndpoint);
  const kinds = ["task 1 is ", "status: 'succeeded'"].every((words) => packaged.out.includes(words));
  assert.ok(packaged.code === 0 && kinds, `application.ts did not end as it should, with ${packaged.code}:\n${packaged.out}\noperator:\n${operator.out}`);
  const application = await ran("plain", await funded("1"), byEndpoint);
  const { code } = application;
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
  // Succeeded, by node 1, with the digest that it gave; nothing came back.
  const digest = packaged.out.match(/value: '(0x[0-9a-f]{64})'/)[1];
  assert.match(outcome, new RegExp(`^\\(2, 1, 0, \\d+[^,]*, 0, ${digest}\\)`));
  assert.equal(logs.match(/transactionHash/g).length, 1, logs);

  // A failed transaction is no success: mined without gas enough, as an estimate of another block may be.
  const short = await Endpoint.start(RPC_URL);
  const asked = short.answer.bind(short);
  // viem asks a node to fill a transaction in, where it can.
  const known = { eth_estimateGas: { result: "0x9c40" }, eth_fillTransaction: { error: { code: -32601, message: "the method eth_fillTransaction is not available" } } };
  short.answer = async (call, lag) => known[call.method] ?? asked(call, lag);
  const { code: failed, out } = await ran("plain", await funded("1"), { RPC_URL: short.url });
  assert.ok(failed !== 0 && /0x[0-9a-f]{64} failed/.test(out) && !/^task/m.test(out), `${failed}\n${out}`);
  await short.stop();

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
  await endpoint.stop();
  rmSync(project, { recursive: true });
}
console.log("examples: ok: the task was created, drawn, answered and paid for");
process.exit(0);
