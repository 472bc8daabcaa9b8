#!/usr/bin/env node
// muster-dev with the programs that were released with it: `deploy`, `keepalive` and `demo` need no sources.
import { path as devnode } from "muster-devnode";
import { programs } from "muster-programs";
import { attempt, find, run } from "./program.mjs";

attempt(() =>
  run(find("muster-dev"), process.argv.slice(2), { MUSTER_DEVNODE: process.env.MUSTER_DEVNODE || devnode(), MUSTER_PROGRAMS: programs }),
);
