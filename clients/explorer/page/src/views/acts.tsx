/** Actions on a task or a node: each call is tried first, showing its gas or the contract's refusal, and sent by the reader's wallet. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Address, Hash, TransactionReceipt } from "viem";
import type { Row } from "../api";
import { config } from "../config";
import { expiryOf } from "../expiry";
import { count, money } from "../format";
import { useNow } from "../live";
import { TxLink } from "../parts";
import { address } from "../router";
import { type Call, type Price, isElsewhere, outcome, prepare, send, useWallet } from "../wallet";

/** A call, and what belongs to it: to be done before it is sent, and when it is mined. */
export interface Deed extends Call {
  before?: () => Promise<void>;
  onDone?: (receipt: TransactionReceipt, account: Address) => void;
}

/** A call that is tried; `of` says which one, of which account, on which chain. */
type Tried = { of: string; deed?: Deed; price?: Price; error?: string; busy?: string };
/** A call that was handed to the wallet, which no change of the form touches; `open` while its outcome is not known. */
type Sent = { id: object; said: string; bad?: boolean; busy?: boolean; open?: boolean; hash?: Hash };

const keyOf = (call: () => Deed): string => {
  try {
    return JSON.stringify(call(), (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value));
  } catch (error) {
    return (error as Error).message;
  }
};

/** A call in two steps: its price, then the sending. */
export function Act({ label, call, explains, disabled }: { label: string; call: () => Deed; explains?: ComponentChildren; disabled?: boolean }) {
  const wallet = useWallet();
  const [tried, setTried] = useState<Tried | undefined>(undefined);
  const [sent, setSent] = useState<Sent[]>([]);
  const [gone] = useState(() => new AbortController());
  useEffect(() => () => gone.abort(), []);
  // Another account has other rights, and another call another price: what was tried is then no longer offered.
  const of = [wallet.account, wallet.chainId, keyOf(call)].join();
  const stage = tried?.of === of ? tried : undefined;
  const look = async () => {
    const trial: Tried = { of, busy: "Trying …" };
    setTried(trial);
    setSent((all) => all.filter(({ open }) => open));
    let next: Tried;
    try {
      const deed = call();
      next = { of, deed, price: await prepare(deed) };
    } catch (error) {
      next = { of, error: (error as Error).message };
    }
    setTried((now) => (now === trial ? next : now));
  };
  const hand = async (deed: Deed, price: Price, account: Address) => {
    const id = {};
    const say = (next: Omit<Sent, "id">) => setSent((all) => [...all.filter((one) => one.id !== id), { id, ...next }]);
    let transaction: Awaited<ReturnType<typeof send>>;
    try {
      say({ said: "Preparing …", busy: true });
      await deed.before?.();
      say({ said: "Your wallet asks you …", busy: true });
      transaction = await send(deed, price, account);
    } catch (error) {
      return say({ said: `Refused: ${(error as Error).message}`, bad: true });
    } finally {
      setTried(undefined);
    }
    // Nothing is refused from here on, and the hash stays.
    const { hash } = transaction;
    say({ said: "Sent; waiting for its block …", busy: true, hash });
    try {
      const unknown = () => say({ said: "Sent, and its outcome is not known yet: look at the transaction before you send again.", bad: true, open: true, hash });
      const receipt = await outcome(transaction, unknown, gone.signal);
      say({ said: "It is mined.", hash: receipt.transactionHash });
      deed.onDone?.(receipt, account);
    } catch (error) {
      say({ said: (error as Error).message, bad: true, hash });
    }
  };
  const isSending = sent.some(({ busy }) => busy);
  const value = stage?.deed?.value ?? 0n;
  return (
    <div class="act">
      <p>
        <button type="button" class="button" disabled={disabled || Boolean(stage?.busy) || isSending} onClick={() => void look()}>
          {label}
        </button>{" "}
        {explains && <small>{explains}</small>}
      </p>
      {sent.map(({ said, bad, hash }) => (
        <p role="status" class={bad ? "notice bad" : "notice"} data-test="sent">
          {said} {hash && <TxLink of={hash} />}
        </p>
      ))}
      {stage && (
        <p role="status" class={stage.error ? "notice bad" : "notice"}>
          {stage.error && <>Refused: {stage.error}</>}
          {stage.price && (
            <>
              Gas about {count(stage.price.gas)}, {money(stage.price.cost)}
              {value > 0n && `, and ${money(value)} with it`}.{" "}
            </>
          )}
          {stage.busy}
          {stage.deed && stage.price && !isSending && (
            <>
              {wallet.account ? (
                isElsewhere(wallet) ? (
                  <>Your wallet is on another chain. </>
                ) : (
                  <button type="button" class="button" onClick={() => void hand(stage.deed!, stage.price!, wallet.account!)}>
                    Send it
                  </button>
                )
              ) : (
                <a href={address("act")}>Connect a wallet to send it</a>
              )}
            </>
          )}
        </p>
      )}
    </div>
  );
}

const isPossible = () => Boolean(config.muster);

/** Actions that anybody, or its creator, can do for a stuck task. */
export function TaskActs({ task, validations }: { task: Row<"tasks">; validations: Row<"validations">[] }) {
  const { account } = useWallet();
  const now = useNow();
  if (!isPossible()) return null;
  const group = validations.find(({ open }) => open);
  const expiry = expiryOf(task, now);
  const isCreator = account?.toLowerCase() === task.creator;
  const acts = [
    task.status === 1 && <Act key="dispatch" label="Have it drawn" call={() => ({ functionName: "dispatch", args: [16] })} explains={`Anybody may, once block ${count(task.drawBlock)} is there: it draws the tasks that are due, this one among them.`} />,
    expiry && <Act key="expire" label={expiry.label} call={() => ({ functionName: "expire", args: [task.node, task.id] })} explains={expiry.explains} />,
    task.status === 2 && isCreator && <Act key="cancel" label="Take it out of the queue" call={() => ({ functionName: "cancel", args: [task.id, task.ticket] })} explains="Only its creator may; the start fee is kept." />,
    task.status === 2 && <Act key="expireQueued" label="End it as queued too long" call={() => ({ functionName: "expireQueued", args: [task.id, task.ticket] })} explains="Anybody may, when its time in the queue is over." />,
    task.status === 4 && <Act key="validate" label="Have it checked" call={() => ({ functionName: "validate", args: [task.id, task.node] })} explains="Anybody may, if the hash has chosen it, and earns the start fee." />,
    task.status === 6 && group && <Act key="settle" label="Have it judged" call={() => ({ functionName: "settle", args: [task.id, Number(group.place)] })} explains="Anybody may, when all have revealed or the time for it is over." />,
  ].filter(Boolean);
  return acts.length ? (
    <section class="card" data-test="acts-of-task">
      <header>
        <h2>Your options</h2>
      </header>
      {acts}
    </section>
  ) : null;
}

/** Actions of a node's operator or worker. */
export function NodeActs({ node }: { node: Row<"nodes"> }) {
  const { account } = useWallet();
  const own = account?.toLowerCase();
  if (!isPossible() || !own || ![node.operator, node.works ? node.worker : ""].includes(own)) return null;
  const isOperator = own === node.operator;
  return (
    <section class="card" data-test="acts-of-node">
      <header>
        <h2>Your node</h2>
      </header>
      {node.status === 5 ? (
        <Act label="Resume" call={() => ({ functionName: "resume", args: [] })} explains="It gets tasks again." />
      ) : (
        <Act label="Pause" call={() => ({ functionName: "pause", args: [] })} explains="It gets no new task; one that it has is ended first." />
      )}
      {isOperator && node.status !== 0 && <Act label="Leave" call={() => ({ functionName: "quit", args: [] })} explains="Its stake comes back, after the time that the parameter unbonding says. It can join again." />}
      {isOperator && <Withdraw />}
    </section>
  );
}

/** Pays out the connected account's credit. */
export function Withdraw() {
  const { account } = useWallet();
  return account ? <Act label="Withdraw" call={() => ({ functionName: "withdraw", args: [account] })} explains="All that is owed to your account, and stake that is free, goes to it." /> : null;
}

