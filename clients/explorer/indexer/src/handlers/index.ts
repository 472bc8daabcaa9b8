/** The handlers of the interface's events: one for each, or it does not compile. */
import { admin } from "./admin";
import { groups } from "./groups";
import { nodes } from "./nodes";
import { tasks } from "./tasks";
import type { Handlers } from "./types";

export const handlers: Handlers = { ...admin, ...nodes, ...tasks, ...groups };
