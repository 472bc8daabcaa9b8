/** The difference between an answer and the next, sent in place of the whole to holders of the former. Values are JSON's. */

/** Another value, `is`; or for an object its changed members and the removed ones; or an array, made of the old one's elements and of new ones. */
export type Patch = { is: unknown } | { of: Record<string, Patch>; gone?: string[] } | { rows: (readonly [from: number, count: number] | { is: unknown })[] };

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

/** Undefined where nothing changed. */
export function patchOf(before: unknown, after: unknown): Patch | undefined {
  if (Array.isArray(before) && Array.isArray(after)) return rowsOf(before, after);
  if (!isObject(before) || !isObject(after)) return Object.is(before, after) ? undefined : { is: after };
  const of: Record<string, Patch> = {};
  for (const [name, value] of Object.entries(after)) {
    const patch = Object.hasOwn(before, name) ? patchOf(before[name], value) : { is: value };
    if (patch) of[name] = patch;
  }
  const gone = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  if (!Object.keys(of).length && !gone.length) return undefined;
  return { of, ...(gone.length ? { gone } : {}) };
}

/** Rows move when others come or go before them: each is looked for among the old ones, by all that it says. */
function rowsOf(before: unknown[], after: unknown[]): Patch | undefined {
  const places = new Map<string, number>();
  // Of equal ones the first.
  before.forEach((row, i) => {
    const said = JSON.stringify(row);
    if (!places.has(said)) places.set(said, i);
  });
  const rows: ([number, number] | { is: unknown })[] = [];
  for (const row of after) {
    const place = places.get(JSON.stringify(row));
    const last = rows.at(-1);
    if (place === undefined) rows.push({ is: row });
    else if (Array.isArray(last) && last[0] + last[1] === place) last[1]++;
    else rows.push([place, 1]);
  }
  const isSame = before.length === after.length && (rows.length === 0 || (rows.length === 1 && Array.isArray(rows[0]) && rows[0][0] === 0));
  return isSame ? undefined : { rows };
}

/** The later value. The former stays as it is, and unchanged parts are shared. */
export function patched(before: unknown, patch: Patch): unknown {
  if ("is" in patch) return patch.is;
  if ("rows" in patch) return patch.rows.flatMap((row) => ("is" in row ? [row.is] : (before as unknown[]).slice(row[0], row[0] + row[1])));
  const after = { ...(before as Record<string, unknown>) };
  for (const name of patch.gone ?? []) delete after[name];
  for (const [name, of] of Object.entries(patch.of)) after[name] = patched(after[name], of);
  return after;
}
