/** How the network came to be as it is: sums by hour, day and month, the owner's acts, and until when its programs run. */
import { type Row, ask, askPrograms, isCut, list } from "../api";
import { Chart, type Series } from "../chart";
import { config } from "../config";
import { day, duration, moment, money, percent, count } from "../format";
import { chainNow, useAsked } from "../live";
import { groupsWanted } from "../names";
import { Ago, Answer, Figures, Figure, Outside, Pill, TxLink } from "../parts";
import { choose, useHere } from "../router";
import { DataTable } from "../table";
import { told } from "../words";

const PERIODS = { hour: ["hours", 168], day: ["days", 366], month: ["months", 240] } as const;
type Period = keyof typeof PERIODS;
/** Events of the owner's and the deployer's actions; see abi/IMuster.sol. */
const ACTS = [
  "Initialised", "ParameterProposed", "ParameterChanged", "PausedChanged", "OwnershipTransferStarted", "OwnershipTransferred", "TreasuryProposed", "TreasuryChanged", "TreasurySwept", "ProgramsProposed",
  "UpgradesRenouncedForGood", "DiamondCut", "GpuGroupListed",
];

const question = (period: Period) => async (signal: AbortSignal) => {
  const [table, limit] = PERIODS[period];
  const { sums, acts, parameters, groups } = await ask(
    {
      groups: groupsWanted,
      sums: list(table, { order: "-start", limit }),
      acts: list("events", { where: { name_in: ACTS }, order: "-id", limit: 500 }),
      parameters: list("parameters", { order: "number" }, ["number", "name", "unit", "value", "proposed", "effective"]),
    },
    signal,
  );
  return { sums: sums as Row<"hours">[], acts, parameters, groups };
};

const started = (start: bigint, period: Period): string => (period === "hour" ? moment(start) : period === "day" ? day(start) : day(start).slice(0, 7));
/** Wei as a number of tokens, for curves. */
const tokens = (wei: bigint): number => Number(wei) / 1e18;

export function History() {
  const { query } = useHere();
  const said = query.get("by") ?? "hour";
  const period: Period = said in PERIODS ? (said as Period) : "hour";
  const asked = useAsked(`history ${period}`, question(period));
  return (
    <>
      <h1>History</h1>
      <div class="actions" role="group" aria-label="By">
        {(Object.keys(PERIODS) as Period[]).map((one) => (
          <button key={one} type="button" class="button" aria-pressed={one === period} onClick={() => choose({ by: one === "hour" ? undefined : one, "sums.rows": undefined })}>
            by {one}
          </button>
        ))}
      </div>
      <Answer asked={asked}>
        {({ sums, acts, parameters, groups }) => (
          <>
            <Curves sums={sums} period={period} />
            <Sums sums={sums} period={period} />
            <Acts acts={acts} parameters={parameters} groups={groups} />
          </>
        )}
      </Answer>
      <Programs />
    </>
  );
}

const ended = (row: Row<"hours">): number => row.succeeded + row.failed + row.timedOut + row.undecided + row.slashedOut;

/** The times of which there is no row: nothing happened, and all stands as it stood. */
function filled(sums: Row<"hours">[], period: Period): Row<"hours">[] {
  const [, most] = PERIODS[period];
  const next = (start: bigint): bigint => {
    if (period !== "month") return start + (period === "hour" ? 3_600n : 86_400n);
    const date = new Date(Number(start) * 1_000);
    return BigInt(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) / 1_000);
  };
  const rows: Row<"hours">[] = [];
  const levels = ["nodes", "waiting", "stakes", "reserve", "treasury", "burntEver"];
  for (const row of sums.toReversed()) {
    for (let before = rows.at(-1); before && next(before.start) < row.start; before = rows.at(-1)) {
      const empty = Object.fromEntries(Object.entries(before).map(([name, value]) => [name, levels.includes(name) ? value : typeof value === "bigint" ? 0n : 0]));
      const length = next(before.start) - before.start;
      if ((row.start - before.start) / length > BigInt(most)) {
        // Of a time far back only how it ended is shown.
        rows.splice(0, rows.length, { ...empty, start: row.start - length } as Row<"hours">);
        break;
      }
      rows.push({ ...empty, start: next(before.start) } as Row<"hours">);
    }
    rows.push(row);
  }
  return rows.slice(-most);
}

function Curves({ sums, period }: { sums: Row<"hours">[]; period: Period }) {
  const rows = filled(sums, period);
  if (!rows.length) return <p class="empty card">Nothing has happened yet.</p>;
  const times = rows.map(({ start }) => Number(start));
  const one = (title: string, series: readonly (Omit<Series, "values"> & { of: (row: Row<"hours">) => number | null })[], format?: (value: number) => string) => (
    <section class="card" key={title}>
      <header>
        <h2>
          {title} <span class="quiet">by {period}</span>
        </h2>
      </header>
      <Chart
        label={`${title} by ${period}, ${rows.length} of them: ${series.map(({ label, of }) => `${label} last ${format ? format(of(rows.at(-1)!) ?? 0) : of(rows.at(-1)!)}`).join(", ")}`}
        times={times}
        series={series.map(({ of, ...rest }) => ({ ...rest, values: rows.map(of) }))}
        height={160}
        {...(format ? { format } : {})}
      />
    </section>
  );
  const inTokens = (value: number) => value.toLocaleString("en-GB", { maximumSignificantDigits: 3 });
  return (
    <div class="columns">
      {one("Tasks", [{ label: "created", of: ({ created }) => created, colour: "accent", bars: true }, { label: "succeeded", of: ({ succeeded }) => succeeded, colour: "good" }, { label: "failed", of: (row) => ended(row) - row.succeeded, colour: "bad" }])}
      {one(`Fees, ${config.symbol}`, [{ label: "deposited", of: ({ fees }) => tokens(fees), colour: "accent", bars: true }, { label: "paid to nodes", of: ({ paid }) => tokens(paid), colour: "good" }], inTokens)}
      {one("Waiting", [{ label: "mean, creation to start", of: ({ waited, started }) => (started ? Number(waited) / started : null), colour: "accent" }], (value) => duration(value))}
      {one("Nodes", [{ label: "joined", of: ({ nodes }) => nodes, colour: "accent", stepped: true }, { label: "slashes", of: ({ slashes }) => slashes, colour: "bad", bars: true }])}
      {one(`Reserve and treasury, ${config.symbol}`, [{ label: "reserve", of: ({ reserve }) => tokens(reserve), colour: "accent", stepped: true }, { label: "treasury", of: ({ treasury }) => tokens(treasury), colour: "good", stepped: true }], inTokens)}
      {one(`Burnt, ${config.symbol}`, [{ label: "ever", of: ({ burntEver }) => tokens(burntEver), colour: "bad", stepped: true }], inTokens)}
    </div>
  );
}

function Sums({ sums, period }: { sums: Row<"hours">[]; period: Period }) {
  const amount = (key: "fees" | "paid" | "refunded" | "reserve" | "treasury" | "burntEver" | "stakes", label: string, help: string) => ({
    key,
    label,
    help,
    value: (row: Row<"hours">) => row[key],
    cell: (row: Row<"hours">) => money(row[key]),
    numeric: true,
  });
  return (
    <DataTable
      id="sums"
      caption={`By ${period}`}
      rows={sums}
      things={[period, `${period}s`]}
      part={isCut(sums) && "newest"}
      name={({ start }) => start}
      sort="-start"
      page={24}
      columns={[
        { key: "start", label: period === "hour" ? "Hour from" : period === "day" ? "Day (UTC)" : "Month (UTC)", help: `When the ${period} begins. One without any event is left out.`, value: ({ start }) => start, cell: ({ start }) => started(start, period) },
        { key: "created", label: "Tasks", help: "Created in this time.", value: ({ created }) => created, cell: ({ created }) => count(created), numeric: true },
        { key: "success", label: "Success", help: "With an answer, of all that a node worked on and that ended in this time.", value: (row) => (ended(row) ? row.succeeded / ended(row) : null), cell: (row) => (ended(row) ? percent(row.succeeded / ended(row), 0) : "–"), numeric: true },
        { key: "waited", label: "Waited, mean", help: "From creation to start, of those that started in this time.", value: ({ waited, started }) => (started ? Number(waited) / started : null), cell: ({ waited, started }) => (started ? duration(Number(waited) / started) : "–"), numeric: true },
        amount("fees", "Fees", "Deposited for tasks."),
        amount("paid", "Paid", "To nodes."),
        amount("refunded", "Given back", "To creators."),
        { key: "joined", label: "Nodes joined, left", help: "Joined in this time, and left or were thrown out.", value: ({ joined }) => joined, cell: ({ joined, quits }) => `${count(joined)}, ${count(quits)}`, numeric: true },
        { key: "nodes", label: "Nodes at its end", help: "Joined nodes after the last event of this time.", value: ({ nodes }) => nodes, cell: ({ nodes }) => count(nodes), numeric: true },
        { key: "slashes", label: "Slashes", help: "Nodes slashed in this time.", value: ({ slashes }) => slashes, cell: ({ slashes }) => (slashes ? <span class="bad">{count(slashes)}</span> : "0"), numeric: true },
        amount("stakes", "Staked", "As it was at the end of this time."),
        amount("reserve", "Reserve", "The reserve, which pays for checks, at the end of this time."),
        amount("treasury", "Treasury", "Protocol income that was not swept, at the end of this time."),
        amount("burntEver", "Burnt", "By slashes, ever, up to the end of this time."),
        { key: "gas", label: "Gas", help: "Of all transactions with events of the contract.", value: ({ gas }) => gas, cell: ({ gas }) => count(gas), numeric: true },
      ]}
    />
  );
}

type Data = Awaited<ReturnType<ReturnType<typeof question>>>;

function Acts({ acts, parameters, groups }: Pick<Data, "acts" | "parameters" | "groups">) {
  // The deployment sets every parameter in one transaction: one line.
  const first = acts.find(({ name }) => name === "Initialised");
  const set = first ? acts.filter(({ name, tx }) => tx === first.tx && name === "ParameterChanged").length : 0;
  const shown = acts.filter(({ name, tx }) => !(first && tx === first.tx && (name === "ParameterChanged" || name === "DiamondCut" || name.startsWith("Ownership") || name === "TreasuryChanged")));
  const waiting = parameters.filter(({ effective }) => effective !== null && effective > 0n);
  return (
    <section class="card" data-test="acts">
      <header>
        <h2>
          The owner's actions <span class="quiet">newest first</span>
        </h2>
      </header>
      {waiting.length > 0 && (
        <ul class="wrong">
          {waiting.map(({ number, name, unit, proposed, effective }) => (
            <li key={number} class="wait">
              <span>
                {name} is to become {count(proposed!)} {unit}, from {moment(effective!)} on.
              </span>
            </li>
          ))}
        </ul>
      )}
      <ol class="timeline">
        {shown.map((event) => (
          <li key={String(event.id)} class={event.name}>
            <span class="quiet numeric" title={moment(event.at)}>
              <Ago at={event.at} />
            </span>
            <span>
              {told(event, { parameters, groups })}
              {event === first && set > 0 && `; ${count(set)} parameters were set`} <small><TxLink of={event.tx} ends={3} /></small>
            </span>
          </li>
        ))}
      </ol>
      {!shown.length && <p class="empty">Nothing yet.</p>}
      {isCut(acts) && <p class="note">The newest 500.</p>}
    </section>
  );
}

/** Programs that run for less than this many seconds need attention. */
const SOON = 180 * 86_400;

function Programs() {
  const asked = useAsked("programs", askPrograms);
  return (
    <Answer asked={asked}>
      {({ at, programs }) => {
        const running = programs.filter(({ left }) => left !== null);
        const least = Math.min(...running.map(({ left }) => left!));
        const gone = Math.max(0, Math.floor(chainNow()) - at);
        return (
          <>
            {running.length > 0 && (
              <Figures label="Programs">
                <Figure label="Programs run until" help="A Stylus program stops a year after it was activated or kept alive. Anybody can keep it alive. Without it the calls that it answers fail." note={least - gone < SOON ? <span class="bad">somebody must keep them alive</span> : `${duration(least - gone)} from now`}>
                  {least ? day(at + least) : <Pill tone="bad">expired</Pill>}
                </Figure>
                <Figure label="Programs" note={`${count(programs.reduce((all, { selectors }) => all + selectors, 0))} functions`}>
                  {count(programs.length)}
                </Figure>
              </Figures>
            )}
            <DataTable
              id="programs"
              caption="Programs behind the contract"
              rows={programs}
              things={["program", "programs"]}
              name={({ address }) => address}
              sort="until"
              columns={[
                { key: "address", label: "Program", help: "Its address: the contract hands calls on to it.", value: ({ address }) => address, cell: ({ address }) => <><code>{address}</code> <Outside kind="address" of={address}>{""}</Outside></> },
                { key: "selectors", label: "Functions", help: "Functions of the contract that it answers.", value: ({ selectors }) => selectors, numeric: true },
                { key: "since", label: "Since", help: "When it took over the last of them.", value: ({ since }) => since, cell: ({ since }) => moment(since) },
                {
                  key: "until",
                  label: "Runs until",
                  help: "When it stops unless somebody keeps it alive. Code of the EVM does not expire.",
                  value: ({ left }) => (left === null ? null : at + left),
                  cell: ({ left }) => (left === null ? "does not expire" : left ? <span class={left - gone < SOON ? "bad" : undefined}>{moment(at + left)}, in {duration(left - gone)}</span> : <Pill tone="bad">does not run</Pill>),
                },
              ]}
            />
          </>
        );
      }}
    </Answer>
  );
}
