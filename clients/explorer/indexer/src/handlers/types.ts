import type { Args, EventName } from "../interface";
import type { Scene } from "../scene";

/** A handler for each event. */
export type Handlers = { [name in EventName]: (scene: Scene, args: Args<name>) => Promise<void> };
