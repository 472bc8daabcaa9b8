/** Actions on a task or a node: each call is tried first, showing its gas or the contract's refusal, and sent by the reader's wallet. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Hash, TransactionReceipt } from "viem";
import type { Row } from "../api";
import { config } from "../config";
import { count, money } from "../format";
import { useNow } from "../live";
import { TxLink } from "../parts";
import { address } from "../router";
import { type Call, type Price, isElsewhere, prepare, send, useWallet } from "../wallet";

type Stage = { price?: Price; error?: string; hash?: Hash; done?: boolean; busy?: string };

/** A call in two steps: its price, then the sending. */
export function Act({ label, call, explains, onDone, disabled }: { label: string; call: () => Call | Promise<Call>; explains?: ComponentChildren; onDone?: (receipt: TransactionReceipt) => void; disabled?: boolean }) {
  const wallet = useWallet();
  const [stage, setStage] = useState<Stage | undefined>(undefined);
  const [asked, setAsked] = useState<Call | undefined>(undefined);
  // Another account has other rights.
  useEffect(() => setStage(undefined), [wallet.account, wallet.chainId]);
  const look = async () => {
    setStage({ busy: "Trying …" });
    try {
      const wanted = await call();
      setAsked(wanted);
      setStage({ price: await prepare(wanted) });
    } catch (error) {
      setStage({ error: (error as Error).message });
    }
  };
  const hand = async (price: Price) => {
    setStage({ price, busy: "Your wallet asks you …" });
    try {
      const receipt = await send(asked!, price, (hash) => setStage({ price, hash, busy: "Sent; waiting for its block …" }));
      setStage({ price, hash: receipt.transactionHash, done: true });
      onDone?.(receipt);
    } catch (error) {
      setStage({ price, error: (error as Error).message });
    }
  };
  const value = asked?.value ?? 0n;
  return (
    <div class="act">
      <p>
        <button type="button" class="button" disabled={disabled || Boolean(stage?.busy)} onClick={() => void look()}>
          {label}
        </button>{" "}
        {explains && <small>{explains}</small>}
      </p>
      {stage && (
        <p role="status" class={stage.error ? "notice bad" : "notice"}>
          {stage.error && <>Refused: {stage.error}</>}
          {stage.price && !stage.error && (
            <>
              Gas about {count(stage.price.gas)}, {money(stage.price.cost)}
              {value > 0n && `, and ${money(value)} with it`}.{" "}
            </>
          )}
          {stage.busy}
          {stage.hash && (
            <>
              {" "}
              <TxLink of={stage.hash} />{" "}
            </>
          )}
          {stage.done && "It is mined."}
          {stage.price && !stage.busy && !stage.done && !stage.error && (
            <>
              {wallet.account ? (
                isElsewhere(wallet) ? (
                  <>Your wallet is on another chain. </>
                ) : (
                  <button type="button" class="button" onClick={() => void hand(stage.price!)}>
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
  const isLate = task.status === 3 && Number(task.deadline) < now;
  const isCreator = account?.toLowerCase() === task.creator;
  const acts = [
    task.status === 1 && <Act key="dispatch" label="Have it drawn" call={() => ({ functionName: "dispatch", args: [16] })} explains={`Anybody may, once block ${count(task.drawBlock)} is there: it draws the tasks that are due, this one among them.`} />,
    task.status === 3 && <Act key="expire" label="End it as too late" call={() => ({ functionName: "expire", args: [task.node, task.id] })} explains={isLate ? "Its node is silent beyond the deadline. Anybody may, and earns the start fee." : "Anybody may, once its deadline has passed."} />,
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

