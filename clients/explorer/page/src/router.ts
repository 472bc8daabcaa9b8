/** The reader's place: `#/view/what?name=value`. All of their choices are in the address, so that Back and a copied link restore them. */
import { useLayoutEffect, useReducer } from "preact/hooks";

export interface Place {
  view: string;
  /** Its subject, such as a task's id. */
  what: string;
  query: URLSearchParams;
}

/** Anybody can write an address, also one with signs that decode to nothing. */
const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

export function here(): Place {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view = "", what = ""] = path.split("/").map(decoded);
  return { view: view || "network", what, query: new URLSearchParams(query) };
}

/** The place's address. */
export function address(view: string, what: string | number | bigint = "", query: Record<string, string> = {}): string {
  const asked = new URLSearchParams(query).toString();
  return `#/${view}${what === "" ? "" : `/${encodeURIComponent(String(what))}`}${asked && `?${asked}`}`;
}

/** Changes choices at this place, without a step of its own in the history. */
export function choose(changes: Record<string, string | undefined>): void {
  const { view, what, query } = here();
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  }
  history.replaceState(history.state, "", address(view, what, Object.fromEntries(query)));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useHere(): Place {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  // Before it is painted: no step is taken that nobody hears of.
  useLayoutEffect(() => {
    const listener = () => redraw(undefined as never);
    addEventListener("hashchange", listener);
    return () => removeEventListener("hashchange", listener);
  }, []);
  return here();
}
