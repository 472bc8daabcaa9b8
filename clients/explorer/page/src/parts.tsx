/** Small things that several views show. */
import type { ComponentChildren } from "preact";
import { type Asked, useClock, useNow } from "./live";
import { clip, duration, moment } from "./format";
import { address } from "./router";

export const TaskLink = ({ id }: { id: bigint }) => <a href={address("task", id)}>#{String(id)}</a>;
export const NodeLink = ({ number }: { number: number }) => (number ? <a href={address("node", number)}>{number}</a> : <>–</>);
export const AccountLink = ({ of }: { of: string }) => (
  <a class="mono" href={address("account", of)} title={of}>
    {clip(of)}
  </a>
);
export const Hex = ({ of, ends = 8 }: { of: string; ends?: number }) => (
  <span class="mono" title={of}>
    {clip(of, ends)}
  </span>
);

/** A model by its name, or its number where nobody named it. */
export const modelName = (id: bigint, names: ReadonlyMap<bigint, string>): string => names.get(id) ?? `0x${id.toString(16).padStart(10, "0")}`;
export const ModelLink = ({ id, names }: { id: bigint; names: ReadonlyMap<bigint, string> }) => <a href={address("model", id)}>{modelName(id, names)}</a>;

export const Pill = ({ tone, children }: { tone: string; children: ComponentChildren }) => <span class={`pill ${tone}`}>{children}</span>;

/** How long ago, by the chain's clock. */
export function Ago({ at }: { at: bigint }) {
  return <time title={moment(at)}>{useClock((now) => duration(now - Number(at)))} ago</time>;
}

/** What is left until then, and how much of the whole that is. */
export function Left({ until, from }: { until: bigint; from?: bigint | null }) {
  const now = useNow();
  const left = Number(until) - now;
  const share = from && until > from ? Math.min(1, Math.max(0, left / Number(until - from))) : undefined;
  return (
    <span class="left">
      {share !== undefined && <meter aria-label="time left" min={0} max={1} low={0.2} optimum={1} value={share} />}
      {left >= 0 ? duration(left) : <span class="bad">{duration(-left)} over</span>}
    </span>
  );
}

export const Figure = ({ label, children, note }: { label: string; children: ComponentChildren; note?: ComponentChildren }) => (
  <div class="figure">
    <dt>{label}</dt>
    <dd>
      {children}
      {note && <small>{note}</small>}
    </dd>
  </div>
);

export const Figures = ({ label, children }: { label: string; children: ComponentChildren }) => (
  <dl class="figures card" aria-label={label}>
    {children}
  </dl>
);

/** Shows what was asked for, or that it is on its way, or why it is not there; what was there before stays beside an error. */
export function Answer<T>({ asked: { data, error }, children }: { asked: Asked<T>; children: (data: T) => ComponentChildren }) {
  return (
    <>
      {error && (
        <p class="notice bad" role="alert">
          {error} {data !== undefined && "What is shown may be old."} It is tried again with the next event.
        </p>
      )}
      {data !== undefined ? children(data) : !error && <Loading />}
    </>
  );
}

export const Loading = () => (
  <p class="loading" role="status">
    Loading …
  </p>
);
