/** The words for ending a task whose node is late. */
import type { Row } from "./api";

/** How `expire` is offered for a task; undefined where it ends nothing. */
export function expiryOf({ status, deadline }: Pick<Row<"tasks">, "status" | "deadline">, now: number): { label: string; explains: string } | undefined {
  if (status === 3) {
    const isLate = Number(deadline) < now;
    return { label: "End it as too late", explains: isLate ? "Its node is silent beyond the deadline. Anybody may, and earns the start fee." : "Anybody may, once its deadline has passed." };
  }
  if (status !== 4) return undefined;
  return { label: "End it as not revealed", explains: "Anybody may, if it was not sampled and its node has not revealed its answer in the time that the parameter sampleWindow says, and earns the start fee." };
}
