/** Shared by the checks. */
import type { MusterEvent } from "../types.js";

/** The subject of a check. */
export type Subject = "draw" | "deadline" | "commitment" | "lot" | "answer" | "judgement" | "scores" | "slashes" | "payout" | "end";

/** An event by its name. */
export type Named<name extends MusterEvent["eventName"]> = Extract<MusterEvent, { eventName: name }>;
/** Records a check: whether it holds, or undefined if unknown. */
export type Note = (subject: Subject, holds: boolean | undefined, because: string, node?: number) => void;

/** The events of a name. */
export const named = <name extends MusterEvent["eventName"]>(events: readonly MusterEvent[], name: name): Named<name>[] =>
  events.filter((event): event is Named<name> => event.eventName === name);
