// Writes src/generated from abi/: the interface, its parameters, and a sentence for each refusal, from the interface's own
// comments. Not committed: `npm run build` writes it.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const abi = new URL("../../abi/", import.meta.url);
const out = new URL("src/generated/", import.meta.url);
const read = (name) => readFileSync(new URL(name, abi), "utf8");
const write = (name, text) => writeFileSync(new URL(name, out), text);
mkdirSync(out, { recursive: true });

// The whole interface, for `muster-client/abi` and for types. `internalType` names Solidity's structs, which viem does not ask for.
const items = JSON.parse(read("IMuster.json"));
const lines = items.map((item) => `  ${JSON.stringify(item, (key, value) => (key === "internalType" ? undefined : value))},\n`).join("");
write("abi.ts", `/** The interface of Muster, from abi/IMuster.sol. */\nexport const musterAbi = [\n${lines}] as const;\n`);

const parameters = read("parameters.ts").replace(/^.*\n/, "");
write("parameters.ts", `/** Every parameter: number, name, unit, default and bounds. */\n${parameters}`);

// The part that the actions use, as text from which src/interface.ts makes the same items: JSON would be twice the bytes.
const CALLS = ["createTask", "createTasks", "dispatch", "cancel", "expireQueued", "expire", "validate", "settle", "withdraw", "setStores"];
// Views left to `muster-client/abi`: those about an owner's proposals are for explorers. An application sets its profile once, and
// workers are their operators' affair.
const UPKEEP = ["profile", "workerOf", "pendingOwner", "pendingTreasury", "proposedParameter", "proposedPrograms", "upgrades", "supportsInterface"];
const isUsed = ({ name, stateMutability }) =>
  CALLS.includes(name) || (stateMutability === "view" && !UPKEEP.includes(name) && !name.startsWith("facet"));
const functions = items.filter((item) => item.type === "function" && isUsed(item));
// For each error its causes and calls, as `script/abi` reads them from the interface and the contracts' sources.
const refusals = new Map(JSON.parse(read("refusals.json")).map((refusal) => [refusal.name, refusal]));
// Events about the choice of groups of redundancy 3 and their effect on ratings are for explorers, too.
const UNTOLD = ["GroupChosen", "NodeRated", "WorkerNamed", "WorkAccepted"];
const WHOSE = ["id", "node", "creator"];
// Errors that only calls of `reveal`, `submit` and `reportError` give, though the table lists more functions; and errors that viem's
// encoding and the absence of a value exclude. createTasks gives each task its fee and sends their sum.
const UNMET = ["BadBatch", "BadImages", "NotWhatWasCommitted", "CommitFirst", "MalformedCalldata", "ValueNotAccepted"];
const isMet = ({ name }) => {
  if (UNMET.includes(name)) return false;
  const { by } = refusals.get(name);
  return !by || functions.some((item) => by.includes(item.name));
};
const used = [
  ...functions,
  ...items.filter((item) => item.type === "error" && isMet(item)),
  ...items.filter(
    (item) =>
      item.type === "event" &&
      !UNTOLD.includes(item.name) &&
      (item.name === "GpuGroupCreated" || item.inputs.some((input) => input.indexed && WHOSE.includes(input.name))),
  ),
];
// The interface's sentence for each refusal.
const sentences = Object.fromEntries([...refusals.values()].map(({ name, notice }) => [name, notice.replace(/\{(\w+)\}/g, "$1")]));
// A type is written where it differs from the one before for this name, `uint` left out. In events, an exclamation mark replaces the comma after indexed values.
const known = new Map();
const typeOf = ({ type, internalType, components }) =>
  components ? internalType.replace(/^struct (\w+\.)?|(\[\])+$/g, "") + type.slice("tuple".length) : type.replace("uint", "");
const list = (values) =>
  values
    .map((value) => {
      const type = typeOf(value);
      const isKnown = value.name && known.get(value.name) === type;
      if (!isKnown && known.has(type)) throw new Error(`${type} is a name and a type`);
      known.set(value.name, type);
      return isKnown ? value.name : `${type}${value.name && ` ${value.name}`}`;
    })
    .join();
const inputsOf = ({ type, inputs }) => {
  if (type !== "event") return list(inputs);
  const indexed = inputs.filter((input) => input.indexed);
  return `${list(indexed)}!${list(inputs.slice(indexed.length))}`;
};
const text = (kind) =>
  used
    .filter((item) => item.type === kind || item.stateMutability === kind)
    .map((item) =>
      [
        item.name,
        inputsOf(item),
        ...(item.outputs?.length ? [list(item.outputs)] : []),
        ...(kind === "error" ? [sentences[item.name].replace(/\.$/, "")] : []),
      ].join("|"),
    )
    .join("\n");
// Structs, in the order of their dependencies.
const structs = new Map();
const collect = (values) => {
  for (const value of values) {
    if (!value.components) continue;
    collect(value.components);
    structs.set(typeOf({ ...value, type: "tuple" }), value.components);
  }
};
for (const { inputs, outputs = [] } of used) collect([...inputs, ...outputs]);
const struct = [...structs].map(([name, components]) => `${name}|${list(components)}`).join("\n");
const compact = [struct, ...["event", "error", "view", "nonpayable", "payable"].map(text)].join("\n\n");
const named = (list) => list.map(({ name }) => `"${name}"`).join(" | ");
write(
  "compact.ts",
  `/** What the actions use of the interface, in paragraphs: structs, events, refusals, then views and calls. A line each: name, inputs, outputs; of a refusal what it means. */\nexport const compact = \`${compact.replaceAll("`", "")}\`;\n\n` +
    `/** The views among it. */\nexport type UsedView = ${named(functions.filter((item) => item.stateMutability === "view"))};\n\n` +
    `/** The calls among it. */\nexport type UsedCall = ${named(functions.filter((item) => item.stateMutability !== "view"))};\n\n` +
    `/** The refusals among it. */\nexport type UsedError = ${named(used.filter((item) => item.type === "error"))};\n`,
);

const numbers = JSON.parse(read("parameters.json"))
  .map(({ name, number, doc }) => `/** ${doc}. */\nexport const ${name} = ${number};\n`)
  .join("");
write("numbers.ts", `/** The parameters' numbers: what \`getParameter\` takes. */\n\n${numbers}`);
