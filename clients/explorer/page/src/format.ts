/** Numbers as people read them. */
import { config } from "./config";

const plain = new Intl.NumberFormat("en-GB");
const short = new Intl.NumberFormat("en-GB", { notation: "compact", maximumFractionDigits: 1 });

export const count = (value: number | bigint): string => plain.format(value);
export const compact = (value: number | bigint): string => short.format(value);
/** A share as per cent. */
export const percent = (share: number, digits = 1): string => (Number.isFinite(share) ? `${(share * 100).toFixed(digits)} %` : "–");
/** How often. */
export const times = (n: number): string => ["never", "once", "twice"][n] ?? `${n} times`;
/** A wad with this many digits. */
export const wad = (value: bigint, digits = 3): string => (Number(value) / 1e18).toFixed(digits);

/** Wei as tokens: whole numbers exactly, and smaller parts to four significant digits; in a smaller unit if all digits would be zeros. */
export function money(wei: bigint, symbol = config.symbol): string {
  if (wei === 0n) return `0 ${symbol}`;
  const size = wei < 0n ? -wei : wei;
  const [unit, name] = size >= 10n ** 14n ? [10n ** 18n, symbol] : size >= 10n ** 5n ? [10n ** 9n, "gwei"] : [1n, "wei"];
  const whole = (size + unit / 2n) / unit;
  if (whole >= 1_000n) return `${plain.format(wei < 0n ? -whole : whole)} ${name}`;
  return `${new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 4 }).format(Number(wei) / Number(unit))} ${name}`;
}

/** A number with its noun. */
export const things = (n: number | bigint, [one, many]: readonly [string, string]): string => `${count(n)} ${n === 1 || n === 1n ? one : many}`;

/** Seconds in the two largest units. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const [m, h, d] = [Math.floor(whole / 60), Math.floor(whole / 3_600), Math.floor(whole / 86_400)];
  if (m < 60) return whole % 60 ? `${m} min ${whole % 60} s` : `${m} min`;
  if (h < 48) return m % 60 ? `${h} h ${m % 60} min` : `${h} h`;
  return h % 24 ? `${d} d ${h % 24} h` : `${d} d`;
}

/** A time of the chain, in this reader's zone; the year where it is another one. */
export const moment = (at: bigint | number): string => {
  const date = new Date(Number(at) * 1_000);
  const year = date.getFullYear() === new Date().getFullYear() ? {} : ({ year: "numeric" } as const);
  return date.toLocaleString("en-GB", { day: "2-digit", month: "short", ...year, hour: "2-digit", minute: "2-digit", second: "2-digit" });
};
export const day = (at: bigint | number): string => new Date(Number(at) * 1_000).toISOString().slice(0, 10);

/** The beginning and the end of an address or a digest. */
export const clip = (hex: string, ends = 4): string => (hex.length > 2 * ends + 4 ? `${hex.slice(0, 2 + ends)}…${hex.slice(-ends)}` : hex);

// By their numbers in the interface.
export const STATUS = ["Quit", "Available", "Busy", "Pausing", "Quitting", "Paused", "Being kicked out"];
export const TASK = ["Ended", "Pending", "Queued", "Running", "Committed", "Sampled", "In a group"];
export const OUTCOME = ["–", "not ended", "Succeeded", "Error reported", "Timed out", "Cancelled", "Evicted", "Queued too long", "Node slashed out", "No two answers alike"];
export const KIND = ["Images", "Text", "Fine-tuning"];
export const POLICY = ["single", "sampled", "replicated", "rated"];
export const STAGE = ["–", "called, still busy", "running", "committed", "answered", "reported an error", "timed out", "slashed out"];
export const VERDICT = ["–", "right", "wrong", "withheld", "error reported", "timed out", "open: no two alike"];
export const GROUP = ["Agreed", "The first node alone answered", "All answers differ", "Nobody answered, or a validator alone", "Given to another group"];

/** The name of a task's state. */
export const stateOf = ({ status, outcome }: { status: number; outcome: number }): string => (status === 0 ? OUTCOME[outcome]! : TASK[status]!);
/** Good, bad or neither, for the colour. */
export const toneOf = ({ status, outcome }: { status: number; outcome: number }): string =>
  status ? (status === 3 || status > 3 ? "busy" : "wait") : outcome === 2 ? "good" : outcome === 5 || outcome === 6 ? "wait" : "bad";

/** A node's state, and its colour. */
export const statusTone = ({ status, parked }: { status: number; parked: number }): string => (status === 1 ? (parked ? "bad" : "good") : status === 0 ? "quiet" : status === 5 ? "wait" : "busy");
export const statusName = ({ status, parked }: { status: number; parked: number }): string => (status === 1 && parked ? ["", "Excluded", "Waits for others", "Reserved"][parked]! : STATUS[status]!);
