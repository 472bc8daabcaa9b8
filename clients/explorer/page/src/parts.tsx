/** Small things that several views show. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Head } from "./api";
import { config } from "./config";
import { clip, count, duration, moment } from "./format";
import { type Asked, useClock, useNow } from "./live";
import { address } from "./router";

export const TaskLink = ({ id }: { id: bigint }) => <a href={address("task", id)}>#{String(id)}</a>;
export const NodeLink = ({ number }: { number: number }) => (number ? <a href={address("node", number)}>{number}</a> : <>–</>);
export const AccountLink = ({ of }: { of: string }) => (
  <a class="mono" href={address("account", of)} title={of}>
    {clip(of)}
  </a>
);

/** A text field that is taken when it is left. Until then a live update, which draws the view anew, leaves what was typed alone. */
export function Typed({ value, type = "text", onTaken, ...rest }: { value: string | number; type?: "text" | "number" | "date"; onTaken: (text: string) => void; min?: number; placeholder?: string; inputMode?: "decimal" | "numeric"; spellcheck?: boolean }) {
  const [typed, setTyped] = useState<string | undefined>(undefined);
  return (
    <input
      {...rest}
      // Preact's types know one kind of field at a time.
      type={type as "number"}
      value={typed ?? value}
      onInput={({ currentTarget }) => setTyped(currentTarget.value)}
      onChange={({ currentTarget }) => {
        setTyped(undefined);
        onTaken(currentTarget.value.trim());
      }}
    />
  );
}

/** Puts a text where it can be pasted. */
export function Copy({ text, what }: { text: string; what: string }) {
  const [done, setDone] = useState<boolean | undefined>(undefined);
  const copy = () =>
    void navigator.clipboard.writeText(text).then(
      () => setDone(true),
      () => setDone(false),
    );
  return (
    <button type="button" class="copy" onClick={copy} onBlur={() => setDone(undefined)} aria-label={`Copy ${what}`} title={`Copy ${what}`}>
      {done === undefined ? (
        <svg viewBox="0 0 16 16" width="14" height="14" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true">
          <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
          <path d="M10.5 3.5a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1" />
        </svg>
      ) : <span role="status">{done ? "copied" : "not allowed"}</span>}
    </button>
  );
}

/** A link to the chain's block explorer, if configured. */
export const Outside = ({ kind, of, children }: { kind: "tx" | "block" | "address"; of: string | bigint; children: ComponentChildren }) =>
  config.blockExplorer ? (
    <a href={`${config.blockExplorer}/${kind}/${of}`} rel="noreferrer external" target="_blank">
      {children} <span aria-label="in the chain's block explorer">↗</span>
    </a>
  ) : (
    <>{children}</>
  );
export const TxLink = ({ of, ends = 8 }: { of: string; ends?: number }) => (
  <Outside kind="tx" of={of}>
    <span class="mono" title={of}>
      {clip(of, ends)}
    </span>
  </Outside>
);
export const BlockLink = ({ of }: { of: bigint }) => (
  <Outside kind="block" of={of}>
    block {count(of)}
  </Outside>
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

/** An explanation of a word, on demand: one bubble for all of them, closed by Escape or by a touch elsewhere. */
export function Tip({ about, text }: { about: string; text: string }) {
  const show = ({ currentTarget }: { currentTarget: HTMLButtonElement }) => {
    const bubble = document.getElementById("tip")!;
    bubble.hidePopover();
    bubble.textContent = text;
    bubble.showPopover();
    const [at, own] = [currentTarget.getBoundingClientRect(), bubble.getBoundingClientRect()];
    bubble.style.left = `${Math.max(8, Math.min(at.left, innerWidth - own.width - 8))}px`;
    bubble.style.top = `${at.bottom + own.height + 8 > innerHeight ? Math.max(8, at.top - own.height - 6) : at.bottom + 6}px`;
  };
  return (
    <button type="button" class="tip" onClick={show} aria-label={`What “${about}” means`}>
      ?
    </button>
  );
}

/** The meaning of colours. */
export const Legend = ({ of }: { of: readonly (readonly [tone: string, means: string])[] }) => (
  <ul class="legend">
    {of.map(([tone, means]) => (
      <li key={tone}>
        <i class={tone} aria-hidden="true" /> {means}
      </li>
    ))}
  </ul>
);

/** How long ago, by the chain's clock. */
export function Ago({ at }: { at: bigint }) {
  return <time title={moment(at)}>{useClock((now) => duration(now - Number(at)))} ago</time>;
}

/** The time left, and its share of the whole. */
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

export const Figure = ({ label, children, note, help }: { label: string; children: ComponentChildren; note?: ComponentChildren; help?: string }) => (
  <div class="figure">
    <dt>
      {label}
      {help && <Tip about={label} text={help} />}
    </dt>
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

/** Of which block the figures are. */
export const AsOf = ({ head }: { head: Head | undefined }) =>
  head ? (
    <p class="asof" data-test="asof">
      As of <BlockLink of={head.block} />, {moment(head.timestamp)}
    </p>
  ) : null;

/** Shows an answer with its block, or that it is on its way, or the error; the former answer stays beside an error. */
export function Answer<T>({ asked: { data, error, head }, children }: { asked: Asked<T>; children: (data: T) => ComponentChildren }) {
  return (
    <>
      {error && (
        <p class="notice bad" role="alert">
          {error} {data !== undefined && "The data may be old."} The page asks again.
        </p>
      )}
      {data !== undefined && <AsOf head={head} />}
      {data !== undefined ? children(data) : !error && <Loading />}
    </>
  );
}

export const Loading = () => (
  <p class="loading" role="status">
    Loading …
  </p>
);
