// node --test test/changed.test.mjs
import assert from "node:assert/strict";
import { test } from "node:test";
import { ask } from "./changed.mjs";

const packages = [
  { name: "core", dir: "contracts/core", needs: [], tests: ["model"] },
  { name: "protocol", dir: "contracts/protocol", needs: ["core"], tests: ["model"] },
  { name: "model", dir: "test/model", needs: ["protocol"], tests: [] },
  { name: "hashes", dir: "clients/hashes", needs: [], tests: [] },
  { name: "agent", dir: "clients/agent", needs: ["core", "hashes"], tests: ["suite"] },
  { name: "suite", dir: "test/suite", needs: ["model"], tests: [] },
  { name: "muster-bench", dir: "test/bench", needs: ["protocol"], tests: [] },
  { name: "muster-cli", dir: "script/cli", needs: [], tests: [] },
];
const mentioned = { "test/suite": { "Application.sol": "named" }, "test/model": { "table.json": "compiled" }, "contracts/core": { "gas.md": "named", run: "named" }, "script/cli": { "script/demo": "named" } };
const of = (...files) => ask(files, packages, (dir, name) => mentioned[dir]?.[name]);

test("a package is tested with all that are made of it", () => {
  assert.deepEqual(of("clients/hashes/src/lib.rs").packages, ["agent", "hashes"]);
  assert.deepEqual(of("contracts/protocol/src/lib.rs").packages, ["agent", "core", "model", "muster-bench", "protocol", "suite"]);
  assert.equal(of("contracts/protocol/src/lib.rs").gas, true);
});

test("what only tests use changes no library", () => {
  // The suite is used by the agent's tests; the agent is part of nothing else.
  assert.deepEqual(of("test/suite/src/lib.rs").packages, ["agent", "suite"]);
  // The model's change reaches the tests of the core, and nothing that is made of the core.
  assert.ok(!of("test/model/src/lib.rs").packages.includes("muster-bench"));
  assert.equal(of("test/model/src/lib.rs").gas, false);
});

test("a file in no package asks for the tests of those that name it, a page for the links", () => {
  assert.deepEqual(of("test/solidity/Application.sol").packages, ["suite"]);
  // Compiled into a library, it changes what is made of that.
  assert.deepEqual(of("test/table.json").packages, ["agent", "core", "model", "protocol", "suite"]);
  assert.deepEqual(of("docs/generated/gas.md").packages, ["muster-cli"]);
  assert.deepEqual(of("docs/explorer.md").clients, ["indexer", "site"]);
  assert.deepEqual(of("test/solidity/Unknown.sol").packages, []);
  // Names without an ending are words of many sources.
  assert.deepEqual(of(".ci/run").packages, []);
  assert.deepEqual(of("script/demo").packages, ["muster-cli"]);
});

test("any change asks for the tests of the sources", () => {
  for (const file of [".ci/run", "docs/generated/gas.md", "contracts/core/src/lib.rs"]) assert.equal(of(file).sources, true, file);
  assert.equal(of().sources, false);
});

test("clients are tested by what they are made of", () => {
  const asked = of("clients/explorer/indexer/src/index.ts", "clients/agent/executors/hash.py");
  assert.deepEqual(asked.clients, ["indexer", "page", "executors"]);
  assert.deepEqual(asked.packages, ["agent"]);
  for (const file of ["script/npm/release.mjs", ".github/workflows/ci.yml", ".dockerignore", "CHANGELOG.md", "README.md", "script/crates", "clients/cli/deploy/muster.env"]) assert.deepEqual(of(file).clients, ["release"], file);
});

test("what everything depends on asks for everything", () => {
  for (const file of ["Cargo.lock", "Cargo.toml", "abi/IMuster.sol", "script/env"]) assert.equal(of("docs/generated/gas.md", file).all, true, file);
  assert.equal(of("clients/hashes/Cargo.toml").all, false);
});
