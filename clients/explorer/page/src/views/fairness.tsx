/** Whether nodes get the share of tasks that their weight gives them: the indexer keeps the sums. */
import { useEffect, useState } from "preact/hooks";
import { type Row, askDraws } from "../api";
import { count, percent } from "../format";
import { useAsked } from "../live";
import { Answer, Figure, Figures, Legend, NodeLink, Pill } from "../parts";
import { PagedTable } from "../table";

type Fair = Row<"fairness">;

/** Milliseconds after which it is asked again while the indexer still counts. */
const AGAIN = 3_000;

export function FairnessView() {
  const [turn, setTurn] = useState(0);
  const asked = useAsked(`fairness ${turn}`, askDraws);
  const behind = asked.data?.behind ?? 0;
  useEffect(() => {
    if (!behind) return;
    const again = setTimeout(() => setTurn(turn + 1), AGAIN);
    return () => clearTimeout(again);
  }, [behind, turn]);
  return (
    <>
      <h1>Fairness</h1>
      <p class="lead">Each node's share of the draws, against the share that its weight gives it. A bar is the range of chance; a dot outside of it is news.</p>
      <Answer asked={asked}>
        {({ draws, nodes, beyond, allowed, outside, top, leftOut: { queued, several, searched, missed, passed, rated } }) => (
          <>
            {behind > 0 && (
              <p class="notice" role="status">
                The indexer is still counting: {count(behind)} events are missing.
              </p>
            )}
            <Figures label="Draws">
              <Figure label="Draws compared" note="of one node, among at least two">
                {count(draws)}
              </Figure>
              <Figure label="Outside 95 %" note={`of ${count(nodes)} nodes; chance puts up to ${allowed < 1_000 ? allowed.toFixed(1) : count(Math.round(allowed))} there`}>
                {count(beyond)}
              </Figure>
              <Figure label="Unexplained" note="nodes outside the range for all together, 95 %">
                {count(outside)}
              </Figure>
              <Figure label="Not compared" note={`${count(queued)} from the queue, ${count(several)} seats drawn for groups, ${count(searched + missed)} searched${passed ? `, ${count(passed)} passed over` : ""}`}>
                {count(queued + several + searched + missed + passed)}
              </Figure>
              <Figure label="Chosen by ratings" note="seats of rated tasks: not a matter of weight">
                {count(rated)}
              </Figure>
            </Figures>
            <PagedTable
              id="fairness"
              caption="Draws won, and the range of chance"
              list="fairness"
              things={["node", "nodes"]}
              name={({ node }: Fair) => node}
              sort="p"
              sortable={["node", "won", "expected", "least", "most", "share", "weight", "draws", "p"]}
              page={100}
              empty="No node has been drawn yet."
              note={<Legend of={[["range", "range of chance, 95 %"], ["mean", "expected"], ["won", "won, as chance allows"], ["lost", "won, outside"]]} />}
              columns={[
                { key: "node", label: "Node", help: "The node's number.", value: ({ node }) => node, cell: ({ node }) => <NodeLink number={node} /> },
                { key: "bar", label: `0 to ${top} draws`, help: "The bar is the range of chance, the line the expectation, the dot the draws won; red where that is outside.", value: ({ won }) => won, cell: (fair) => <Bar fair={fair} top={top} /> },
                { key: "won", label: "Won", help: "Draws that it won.", value: ({ won }) => won, numeric: true },
                { key: "expected", label: "Expected", help: "The expected wins, by its weight in all these draws.", value: ({ expected }) => expected, cell: ({ expected }) => expected.toFixed(1), numeric: true },
                { key: "least", label: "At least", help: "A fair network gives it fewer in 2.5 of 100 cases at most.", value: ({ least }) => least, numeric: true },
                { key: "most", label: "At most", help: "A fair network gives it more in 2.5 of 100 cases at most.", value: ({ most }) => most, numeric: true },
                { key: "share", label: "Share won", help: "Of all draws.", value: ({ share }) => share, cell: ({ share }) => percent(share), numeric: true },
                { key: "weight", label: "Of weight", help: "Mean of its chances over all draws; its share should be near it.", value: ({ weight }) => weight, cell: ({ weight }) => percent(weight), numeric: true },
                { key: "draws", label: "Candidate in", help: "Draws in which it was idle and in scope.", value: ({ draws }) => draws, numeric: true },
                { key: "p", label: "By chance", help: "How often a fair network is at least as far out, by chance alone. Marked where chance hardly explains it.", value: ({ p }) => p, cell: ({ p, outside }) => (outside ? <Pill tone="bad">{percent(p, 2)}</Pill> : percent(p)), numeric: true },
              ]}
            />
            <Method />
          </>
        )}
      </Answer>
    </>
  );
}

function Bar({ fair: { won, least, most, expected }, top }: { fair: Fair; top: number }) {
  const at = (n: number) => `${(n / top) * 100}%`;
  const inside = won >= least && won <= most;
  return (
    <span class="interval" role="img" aria-label={`won ${won}; ${expected.toFixed(1)} expected; chance allows ${least} to ${most}`}>
      <i class="range" style={{ left: at(least), width: at(most - least) }} />
      <i class="mean" style={{ left: at(expected) }} />
      <i class={`dot ${inside ? "good" : "bad"}`} style={{ left: at(won) }} />
    </span>
  );
}

const Method = () => (
  <section class="card prose">
    <h2>How it is counted</h2>
    <p>
      The indexer follows all events: the idle nodes in scope at each draw, and the weight of each at the time, by the contract's own formula W = M · S · QoS / (S + QoS), compiled from the same source. A node's chance in a draw is its weight over that of all candidates. A task's page lists the candidates of its draw; there your browser replays the events itself, and asks the indexer for nothing but them.
    </p>
    <p>
      Draws are independent once the chances are given, so the number of a node's wins is a sum of draws with different chances (a Poisson-binomial number). <em>At least</em> and <em>at most</em> are the ends of its distribution that leave at most 2.5 % on each side; no bell curve stands in for it. It is exact for draws among at most 64 candidates. Of draws among more, each node's number and the sum of its chances are kept, and counted as if these chances were equal (a binomial number), which allows chance rather too much. Some nodes are outside by chance alone, at most one in twenty on average. <em>By chance</em> is
      twice the smaller tail: how often a fair network is at least as far out. It is marked where it is below 1 − 0.95<sup>1/n</sup> for n nodes (Šidák), which in 95 of 100 fair networks no node is.
    </p>
    <p>
      Not compared: tasks that a freed node took from the queue, since nobody drew them; nodes drawn several at once (replicated tasks, validators); draws for models with more than 16 holders that are less than a quarter of the network, of whom only 16 are looked at; and those in which no idle holder was met although one was there. Where a model has more than 2,000 holders, only every so-manyth draw among them is compared, whoever wins. Groups of rated tasks are left out too, and counted apart: who is in them follows from what nodes were right in before, and a node that they leave out is not unlucky.
    </p>
  </section>
);
