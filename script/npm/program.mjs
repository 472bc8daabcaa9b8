// Part of each package with a program: finds the program in the package for this platform, and runs it.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { name, version, homepage, optionalDependencies } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));

/** The path of a program. Throws where there is none, and says why. */
export function find(program) {
  const platform = `${process.platform}-${process.arch}`;
  const holder = `${name}-${platform}`;
  if (!(holder in optionalDependencies)) {
    const there = Object.keys(optionalDependencies).map((other) => other.slice(name.length + 1));
    throw new Error(`${name} has no program for ${platform}, only for ${there.join(", ")}; it can be built from its sources: ${homepage}`);
  }
  if (process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime) {
    throw new Error(`${name} is for Linux with glibc, which this system (Alpine?) is without; it can be built from its sources: ${homepage}`);
  }
  try {
    return require.resolve(`${holder}/bin/${program}`);
  } catch {
    throw new Error(`${holder} is missing: install ${name} ${version} again, without --omit=optional, and on the kind of machine that it is to run on`);
  }
}

/** Runs a program in the place of this one: its streams, its arguments, its end. */
export function run(file, args = process.argv.slice(2), environment = {}) {
  const child = spawn(file, args, { stdio: "inherit", env: { ...process.env, ...environment } });
  const pass = (signal) => child.kill(signal);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    // A key typed at a terminal reaches both, and the program must not take it for a second one.
    process.on(signal, signal === "SIGINT" && process.stdin.isTTY ? () => {} : pass);
  }
  child.on("error", (error) => fail(error));
  child.on("exit", (code, signal) => {
    if (!signal) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

/** Does it, or says why it cannot be done. */
export function attempt(what) {
  try {
    what();
  } catch (error) {
    fail(error);
  }
}

function fail(error) {
  console.error(`${name}: ${error.message}`);
  process.exit(1);
}
