/** What each event of the interface means: one handler for each, or it does not compile. */
import type { Args, EventName } from "../interface";
import type { Scene } from "../scene";
import { admin } from "./admin";
import { groups } from "./groups";
import { nodes } from "./nodes";
import { tasks } from "./tasks";

export type Handlers = { [name in EventName]: (scene: Scene, args: Args<name>) => Promise<void> };

export const handlers: Handlers = { ...admin, ...nodes, ...tasks, ...groups };
