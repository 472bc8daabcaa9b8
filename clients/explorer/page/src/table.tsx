/** Tables: sorted by a click, page by page, and as CSV. The reader's choices are in the address. */
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { type Table, askList } from "./api";
import { count, things as counted } from "./format";
import { useAsked } from "./live";
import { AsOf, Loading, Tip } from "./parts";
import { choose, useHere } from "./router";

export type Value = string | number | bigint | null | undefined;

export interface Column<T> {
  key: string;
  label: string;
  /** An explanation of the column, in a sentence. */
  help: string;
  /** The value for sorting and the CSV. */
  value: (row: T) => Value;
  /** The displayed content, if different. */
  cell?: (row: T) => ComponentChildren;
  numeric?: boolean;
}

/** The name of the rows: of one, and of several. */
export type Things = readonly [one: string, many: string];

interface Frame<T> {
  /** Names it in the address and in the file. */
  id: string;
  caption: string;
  columns: readonly Column<T>[];
  name: (row: T) => string | number | bigint;
  /** The column that it is sorted by at first, with a minus for the greatest first. */
  sort?: string;
  /** Said where there is nothing. */
  empty?: string;
  /** Said below. */
  note?: ComponentChildren;
}

interface Properties<T> extends Frame<T> {
  rows: readonly T[];
  things: Things;
  /** Rows shown at first. */
  page?: number;
  /** The part of all rows that is shown, such as "newest", if there are more. */
  part?: string | false;
}

const compare = (a: Value, b: Value): number => {
  if (a === b) return 0;
  if (a === null || a === undefined) return -1;
  if (b === null || b === undefined) return 1;
  return typeof a === "string" && typeof b === "string" ? a.localeCompare(b, "en", { numeric: true }) : a < b ? -1 : 1;
};

const quoted = (value: Value): string => {
  const said = value === null || value === undefined ? "" : String(value);
  // Keeps spreadsheets from reading a text as a formula.
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(said) ? `'${said}` : said;
  return /[",;\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

/** Rows as CSV, amounts in wei and times in seconds. */
export const csv = <T,>(columns: readonly Pick<Column<T>, "label" | "value">[], rows: readonly T[]): string =>
  [columns.map(({ label }) => quoted(label)), ...rows.map((row) => columns.map(({ value }) => quoted(value(row))))].map((line) => `${line.join()}\r\n`).join("");

/** Hands the reader a file. */
export function save(name: string, content: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

interface Shown<T> extends Frame<T> {
  /** Beside the caption: how many. */
  told: string;
  rows: readonly T[];
  by: string;
  /** Columns that it can be sorted by; all where left out. */
  sortable?: readonly string[];
  save: () => void;
  busy?: boolean;
  children?: ComponentChildren;
}

/** A table as it is shown. */
function Sheet<T>({ id, caption, columns, rows, name, empty = "Nothing yet.", note, told, by, sortable, save: hand, busy, children }: Shown<T>) {
  const [key, isUp] = by.startsWith("-") ? [by.slice(1), false] : [by, true];
  const turn = ({ key: next, numeric }: Column<T>) => choose({ [`${id}.sort`]: next === key ? (isUp ? `-${next}` : next) : numeric ? `-${next}` : next, [`${id}.from`]: undefined });
  return (
    <section class="card table" aria-labelledby={`${id}-caption`} aria-busy={busy}>
      <header>
        <h2 id={`${id}-caption`}>
          {caption} <span class="quiet">{told}</span>
        </h2>
        <button type="button" class="plain csv" disabled={!rows.length} onClick={hand} aria-label={`${caption}: save as CSV`}>
          CSV
        </button>
      </header>
      {rows.length ? (
        <div class="scroll" role="region" aria-labelledby={`${id}-caption`} tabIndex={0}>
          <table data-table={id}>
            <thead>
              <tr>
                {columns.map((one) => (
                  <th key={one.key} scope="col" class={one.numeric ? "numeric" : ""} aria-sort={one.key === key ? (isUp ? "ascending" : "descending") : undefined}>
                    {!sortable || sortable.includes(one.key) ? (
                      <button type="button" class="sort" onClick={() => turn(one)}>
                        {one.label}
                        <span aria-hidden="true">{one.key === key ? (isUp ? " ↑" : " ↓") : ""}</span>
                      </button>
                    ) : (
                      <span class="sort">{one.label}</span>
                    )}
                    <Tip about={one.label} text={one.help} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={String(name(row))}>
                  {columns.map((one) => (
                    <td key={one.key} class={one.numeric ? "numeric" : ""}>
                      {one.cell ? one.cell(row) : (one.value(row)?.toString() ?? "–")}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <p class="empty">{empty}</p>
      )}
      {note && <div class="note">{note}</div>}
      {children}
    </section>
  );
}

/** A table of rows that are all here. */
export function DataTable<T>({ rows, things, page = 50, part, sort = "", ...frame }: Properties<T>) {
  const { id, columns } = frame;
  const { query } = useHere();
  const by = query.get(`${id}.sort`) ?? sort;
  const shown = Number(query.get(`${id}.rows`) ?? page);
  const [key, sign] = by.startsWith("-") ? [by.slice(1), -1] : [by, 1];
  const column = columns.find((one) => one.key === key);
  const sorted = column ? rows.toSorted((a, b) => sign * compare(column.value(a), column.value(b))) : rows;
  const told = part ? `the ${part} ${counted(rows.length, things)}` : counted(rows.length, things);
  return (
    <Sheet {...frame} told={told} rows={sorted.slice(0, shown)} by={by} save={() => save(`${id}.csv`, csv(columns, sorted))}>
      {sorted.length > shown && (
        <button type="button" class="more" onClick={() => choose({ [`${id}.rows`]: String(shown + page) })}>
          {sorted.length - shown > page ? `${page} more of ${count(sorted.length - shown)}` : `The other ${sorted.length - shown}`}
        </button>
      )}
    </Sheet>
  );
}

interface Pages<T> extends Frame<T> {
  /** The indexer's list, and its query. */
  list: Table;
  filters?: Record<string, string>;
  things: Things;
  page?: number;
  /** How many there are where nothing is filtered, if that is known without counting. */
  total?: number | undefined;
  /** Columns that the indexer sorts by. */
  sortable: readonly string[];
}

/** Rows of a CSV at most, and of a question for them. */
const [CSV_MOST, CSV_PAGE] = [10_000, 1_000];

/** A table whose rows the indexer sorts, filters and gives page by page: of a million it shows the first as fast as of ten. */
export function PagedTable<T>({ list, filters = {}, things, page = 25, sort = "", total: all, sortable, ...frame }: Pages<T>) {
  const { id, columns } = frame;
  const { query } = useHere();
  const by = query.get(`${id}.sort`) ?? sort;
  const from = Math.max(0, Number(query.get(`${id}.from`) ?? 0) || 0);
  const asking = { ...filters, sort: by };
  const [saving, setSaving] = useState<string | undefined>(undefined);
  const asked = useAsked(`list ${list} ${from} ${page} ${new URLSearchParams(asking)}`, (signal) => askList(list, { query: asking, limit: page, offset: from }, signal));
  // The former rows stay, and with them the reader's focus, until the next page is there.
  const kept = useRef<typeof asked | undefined>(undefined);
  if (asked.data) kept.current = asked;
  const { data, head } = asked.data ? asked : (kept.current ?? asked);
  const { error } = asked;
  const hand = async () => {
    setSaving("Reading …");
    try {
      const rows: T[] = [];
      for (let more = true; more && rows.length < CSV_MOST; ) {
        const { items } = await askList(list, { query: asking, limit: CSV_PAGE, offset: rows.length });
        rows.push(...(items as T[]));
        more = items.length === CSV_PAGE;
      }
      save(`${id}.csv`, csv(columns, rows));
      setSaving(rows.length < CSV_MOST ? undefined : `The file has the first ${count(CSV_MOST)} rows.`);
    } catch (error) {
      setSaving((error as Error).message);
    }
  };
  const found = data && (data.more && all !== undefined ? all : data.total);
  const told = data ? (data.more && all === undefined ? `more than ${counted(data.total, things)}` : counted(found!, things)) : "";
  const step = (to: number) => choose({ [`${id}.from`]: to > 0 ? String(to) : undefined });
  if (!data) return error ? <p class="notice bad" role="alert">{error}</p> : <Loading />;
  const last = from + data.items.length;
  return (
    <Sheet {...frame} told={told} rows={data.items as T[]} by={by} sortable={sortable} save={() => void hand()} busy={saving === "Reading …" || !asked.data}>
      <AsOf head={head} />
      {(saving || error) && (
        <p class="note" role="status">
          {saving ?? error}
        </p>
      )}
      {(from > 0 || last < found! || data.more) && (
        <nav class="pages" aria-label={`Pages of ${frame.caption}`}>
          <button type="button" class="more" disabled={from === 0} onClick={() => step(from - page)}>
            ← Before
          </button>
          <span>
            {count(from + 1)} to {count(last)}
          </span>
          <button type="button" class="more" disabled={data.items.length < page} onClick={() => step(from + page)}>
            After →
          </button>
        </nav>
      )}
    </Sheet>
  );
}
