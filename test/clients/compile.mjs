// Compiles Probe.sol. Run by itself it also renews the artefact that the Rust tests read.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import solc from "solc";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

export function compile() {
  const input = {
    language: "Solidity",
    sources: { "Probe.sol": { content: readFileSync(here("Probe.sol"), "utf8") } },
    settings: {
      optimizer: { enabled: true, runs: 200 },
      metadata: { appendCBOR: false },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
    },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  const errors = (output.errors ?? []).filter((e) => e.severity === "error");
  if (errors.length > 0) throw new Error(errors.map((e) => e.formattedMessage).join("\n"));
  const { abi, evm } = output.contracts["Probe.sol"].Probe;
  return { abi, bytecode: `0x${evm.bytecode.object}` };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = here("../devnode/tests/Probe.json");
  writeFileSync(target, `${JSON.stringify({ compiler: solc.version(), ...compile() }, null, 1)}\n`);
  console.log(`wrote ${target}`);
}
