/** The page's questions, by their paths under /api: answered on request, and sent anew to followers. */
import type { Question } from "./cache";
import { fairNodes, fairness, isOfAll } from "./fairness";
import { page } from "./lists";
import { BadQuestion } from "./refusal";
import { network, rivals } from "./sums";

/** Characters of a question of GraphQL at most. */
const DATA_MOST = 20_000;

/** Answers a question of GraphQL. */
type Ask = (query: string) => Promise<string>;

/** The question at a path, such as "list/tasks"; undefined where there is none. Throws {@link BadQuestion} where it cannot be understood. */
export function questionAt(path: string, query: URLSearchParams, graphql: Ask): Question | undefined {
  // The number of events that the asker knows of is no part of the question.
  const said = [...query].filter(([name]) => name !== "v").sort(([a], [b]) => (a < b ? -1 : 1));
  const key = `${path} ${new URLSearchParams(said)}`;
  if (path === "network") return { key: path, compute: network };
  if (path === "rivals") return { key: path, compute: rivals };
  if (path === "data") {
    const asked = query.get("query") ?? "";
    if (!asked || asked.length > DATA_MOST) throw new BadQuestion(`"query" must be a question of GraphQL of at most ${DATA_MOST} characters`);
    return { key: `data ${asked}`, compute: () => graphql(asked) };
  }
  if (path === "fairness") return { key: path, compute: fairness, holds: isOfAll };
  if (path === "list/fairness") return { key, compute: fairNodes(Object.fromEntries(said)), holds: isOfAll };
  if (path.startsWith("list/")) return { key, compute: page(path.slice("list/".length), Object.fromEntries(said)) };
  return undefined;
}
