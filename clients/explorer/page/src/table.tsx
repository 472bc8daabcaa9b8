/** Tables: sorted by a click, as far as wanted, and as CSV. What was chosen stands in the address. */
import type { ComponentChildren } from "preact";
import { count } from "./format";
import { choose, useHere } from "./router";

export type Value = string | number | bigint | null | undefined;

export interface Column<T> {
  key: string;
  label: string;
  /** What is sorted by, and written into the CSV. */
  value: (row: T) => Value;
  /** What is shown instead. */
  cell?: (row: T) => ComponentChildren;
  numeric?: boolean;
}

interface Properties<T> {
  /** Names it in the address and in the file. */
  id: string;
  caption: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  name: (row: T) => string | number | bigint;
  /** The column that it is sorted by at first, with a minus for the greatest first. */
  sort?: string;
  /** Said where there is nothing. */
  empty?: string;
  /** Rows shown at first. */
  page?: number;
  /** Said below. */
  note?: string;
  /** Which of them these are, such as "newest", where there are more than these. */
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
  // What a spreadsheet would take for a formula stays text.
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(said) ? `'${said}` : said;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

/** Rows as CSV, amounts in wei and times in seconds. */
export const csv = <T,>(columns: readonly Column<T>[], rows: readonly T[]): string =>
  [columns.map(({ label }) => quoted(label)), ...rows.map((row) => columns.map(({ value }) => quoted(value(row))))].map((line) => `${line.join()}\r\n`).join("");

/** Hands the reader a file. */
export function save(name: string, content: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function DataTable<T>({ id, caption, columns, rows, name, sort = "", empty = "Nothing yet.", page = 50, note, part }: Properties<T>) {
  const { query } = useHere();
  const by = query.get(`${id}.sort`) ?? sort;
  const shown = Number(query.get(`${id}.rows`) ?? page);
  const [key, sign] = by.startsWith("-") ? [by.slice(1), -1] : [by, 1];
  const column = columns.find((one) => one.key === key);
  const sorted = column ? rows.toSorted((a, b) => sign * compare(column.value(a), column.value(b))) : rows;
  const turn = ({ key: next, numeric }: Column<T>) => choose({ [`${id}.sort`]: next === key ? (sign > 0 ? `-${next}` : next) : numeric ? `-${next}` : next });
  return (
    <section class="card table" aria-labelledby={`${id}-caption`}>
      <header>
        <h2 id={`${id}-caption`}>
          {caption} <span class="quiet">{part ? `the ${count(rows.length)} ${part}` : count(rows.length)}</span>
        </h2>
        <button type="button" class="plain" disabled={!rows.length} onClick={() => save(`${id}.csv`, csv(columns, sorted))} aria-label={`${caption}: save as CSV`}>
          CSV
        </button>
      </header>
      {rows.length ? (
        <div class="scroll" role="region" aria-labelledby={`${id}-caption`} tabIndex={0}>
          <table data-table={id}>
            <thead>
              <tr>
                {columns.map((one) => (
                  <th key={one.key} scope="col" class={one.numeric ? "numeric" : ""} aria-sort={one.key === key ? (sign > 0 ? "ascending" : "descending") : undefined}>
                    <button type="button" onClick={() => turn(one)}>
                      {one.label}
                      <span aria-hidden="true">{one.key === key ? (sign > 0 ? " ↑" : " ↓") : ""}</span>
                    </button>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {sorted.slice(0, shown).map((row) => (
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
      {note && <p class="note">{note}</p>}
      {sorted.length > shown && (
        <button type="button" class="more" onClick={() => choose({ [`${id}.rows`]: String(shown + page) })}>
          {sorted.length - shown > page ? `${page} more of ${count(sorted.length - shown)}` : `The other ${sorted.length - shown}`}
        </button>
      )}
    </section>
  );
}
