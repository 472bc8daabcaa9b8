/** One's own nodes: a watchlist that stands in the address. */
import { ask, list } from "../api";
import { config } from "../config";
import { count, money, percent, times } from "../format";
import { chainNow, useAsked } from "../live";
import { groupsWanted, tauWanted } from "../names";
import { Answer, Figure, Figures, Typed } from "../parts";
import { choose, useHere } from "../router";
import { NODE, NodeTable } from "./nodes";

const STORE = "muster-fleet";
const numbers = (said: string | null): number[] => [...new Set((said ?? "").split(/[\s,]+/).filter((one) => /^\d{1,8}$/.test(one)).map(Number))].filter((one) => one > 0);

/** The last fleet viewed; only a default, the address decides. */
export function fleet(): number[] {
  try {
    return numbers(localStorage.getItem(STORE));
  } catch {
    return [];
  }
}
/** The fleet with another node, as it stands in the address. */
export const withNode = (number: number): string => [...new Set([...fleet(), number])].join();
/** The feed of a node's events on the indexer's server. */
export const feed = (number: number): string => `${config.indexer}/feeds/nodes/${number}.rss`;

export function FleetView() {
  const { query } = useHere();
  const own = query.has("nodes") ? numbers(query.get("nodes")) : fleet();
  try {
    localStorage.setItem(STORE, own.join());
  } catch {
    // If nothing may be stored, the address still has it.
  }
  const asked = useAsked(`fleet ${own.join()}`, (signal) => {
    const today = BigInt(Math.floor(chainNow() / 86_400) * 86_400);
    return ask(
      {
        groups: groupsWanted,
        tau: tauWanted,
        nodes: list("nodes", { where: { number_in: own.length ? own : [0] }, order: "number" }, [...NODE, "slashed", "exclusions"]),
        days: list("nodeDays", { where: { node_in: own.length ? own : [0], start_gte: today - 6n * 86_400n } }, ["start", "earned"]),
      },
      signal,
    );
  });
  return (
    <>
      <h1>Your fleet</h1>
      <form class="card controls" onSubmit={(event) => event.preventDefault()}>
        <label>
          Node numbers, kept in this page's address: bookmark or share it
          <Typed inputMode="numeric" value={own.join(", ")} placeholder="1, 2, 3" onTaken={(text) => choose({ nodes: numbers(text).join() })} />
        </label>
      </form>
      <Answer asked={asked}>
        {({ nodes, groups, days, tau }) => {
          const today = BigInt(Math.floor(chainNow() / 86_400) * 86_400);
          const total = (key: "stake" | "earned" | "slashed") => nodes.reduce((all, node) => all + node[key], 0n);
          const sum = (key: "started" | "succeeded" | "wrong" | "failed" | "timedOut" | "exclusions") => nodes.reduce((all, node) => all + node[key], 0);
          const ended = sum("succeeded") + sum("wrong") + sum("failed") + sum("timedOut");
          return (
            <>
              <Figures label="Totals">
                <Figure label="Nodes" note={`${nodes.filter(({ status }) => status === 2).length} busy, ${nodes.filter(({ parked, status }) => status === 1 && parked).length} excluded or waiting`}>
                  {count(nodes.length)}
                </Figure>
                <Figure label="Stake" note={total("slashed") ? <span class="bad">{money(total("slashed"))} slashed</span> : "nothing slashed"}>
                  {money(total("stake"))}
                </Figure>
                <Figure label="Earned today" note={`${money(days.reduce((all, { earned }) => all + earned, 0n))} in seven days`}>
                  {money(days.filter(({ start }) => start === today).reduce((all, { earned }) => all + earned, 0n))}
                </Figure>
                <Figure label="Earned ever">{money(total("earned"))}</Figure>
                <Figure label="Success" note={`${count(sum("started"))} started, excluded ${times(sum("exclusions"))}`}>
                  {ended ? percent(sum("succeeded") / ended) : "–"}
                </Figure>
              </Figures>
              <NodeTable nodes={nodes} groups={groups} caption="Your nodes" id="fleet" tau={tau[0]?.value} />
            </>
          );
        }}
      </Answer>
    </>
  );
}
