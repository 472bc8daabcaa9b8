// Compiles Solidity: Probe.sol, or what is beside it in test/solidity. Run by itself it also renews the artefact that the Rust
// tests read.
import { readFileSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import solc from "solc";

const root = fileURLToPath(new URL("../../", import.meta.url));
const target = "devnode/tests/Probe.json";

/** A contract's interface and initcode. `file` is its source's path in the project, named like the contract; `source` is the text there. */
export function compile(file = "test/clients/Probe.sol", source = readFileSync(root + file, "utf8")) {
  const read = (path) => readFileSync(root + path, "utf8");
  const name = posix.basename(file, ".sol");
  const input = {
    language: "Solidity",
    sources: { [file]: { content: source } },
    settings: {
      optimizer: { enabled: true, runs: 200 },
      metadata: { appendCBOR: false },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
    },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: (path) => ({ contents: read(path) }) }));
  const errors = (output.errors ?? []).filter((e) => e.severity === "error");
  if (errors.length > 0) throw new Error(errors.map((e) => e.formattedMessage).join("\n"));
  const { abi, evm } = output.contracts[file][name];
  return { abi, bytecode: `0x${evm.bytecode.object}` };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(root + target, `${JSON.stringify({ compiler: solc.version(), ...compile() }, null, 1)}\n`);
  console.log(`wrote ${root}${target}`);
}
