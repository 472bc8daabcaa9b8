#!/usr/bin/env node
// The demonstration, with the node and the programs that were released with it.
import { path as devnode } from "muster-devnode";
import { programs } from "muster-programs";
import { attempt, find, run } from "./program.mjs";

attempt(() => {
  const args = process.argv.slice(2);
  if (args.some((argument) => /^--agents\b/.test(argument))) {
    throw new Error("--agents starts agents with executors in Python, which are in the repository alone: script/demo --agents there");
  }
  run(find("muster-dev"), ["demo", ...args], { MUSTER_DEVNODE: process.env.MUSTER_DEVNODE || devnode(), MUSTER_PROGRAMS: programs });
});
