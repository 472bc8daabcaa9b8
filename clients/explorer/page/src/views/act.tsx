/** Actions: connect a wallet, create a task, make due draws, and withdraw credit. The rest of the page works without a wallet. */
import { digestOf, modelId } from "muster-client";
import { musterAbi } from "muster-client/abi";
import { useEffect, useMemo, useState } from "preact/hooks";
import { type Address, formatEther, parseEther } from "viem";
import { ask, list } from "../api";
import { config } from "../config";
import { createdBy } from "../created";
import { KIND, POLICY, count, duration, money } from "../format";
import { useAsked } from "../live";
import { groupsWanted, gpuName } from "../names";
import { paymentsOf } from "../payments";
import { AccountLink, Answer, Figure, Figures, Hex, NodeLink, TaskLink, Typed } from "../parts";
import { chainClient, connect, disconnect, isElsewhere, refusal, switchChain, useWallet } from "../wallet";
import { type Deed, Act as Doing, Withdraw } from "./acts";

export function Act(_: { what: string }) {
  return (
    <>
      <h1>Do</h1>
      <p class="lead">Create a task, drive others' tasks on, be paid out. Each call is tried first: you see its gas, or why the contract refuses it, before your wallet is asked.</p>
      {config.muster ? (
        <>
          <WalletCard />
          <Create />
          <section class="card">
            <header>
              <h2>Drive tasks on</h2>
            </header>
            <Doing label="Make due draws" call={() => ({ functionName: "dispatch", args: [16] })} explains="Up to 16 tasks whose block has come are given to nodes. Anybody may. A task's own page has the actions for it." />
          </section>
        </>
      ) : (
        <p class="notice">This page is not configured with the contract's address, so nothing can be done here.</p>
      )}
    </>
  );
}

function WalletCard() {
  const wallet = useWallet();
  const { found, used, account, error } = wallet;
  return (
    <section class="card" data-test="wallet">
      <header>
        <h2>Wallet</h2>
      </header>
      {used && account ? (
        <>
          <p>
            {used.info.name}: <AccountLink of={account.toLowerCase()} />{" "}
            <button type="button" class="button" onClick={disconnect}>
              Forget it here
            </button>
          </p>
          {isElsewhere(wallet) && (
            <p class="notice bad" role="alert">
              It is on chain {wallet.chainId}, and the contract on chain {wallet.network}.{" "}
              <button type="button" class="button" onClick={() => void switchChain()}>
                Switch
              </button>
            </p>
          )}
          <Owed account={account} />
        </>
      ) : found.length ? (
        <p class="actions">
          {found.map((one) => (
            <button key={one.info.uuid} type="button" class="button" onClick={() => void connect(one)}>
              Connect {one.info.name}
            </button>
          ))}
        </p>
      ) : (
        <p class="empty">No wallet has announced itself in this browser (EIP-6963). Everything can be seen without one, including the price of a call.</p>
      )}
      {error && (
        <p class="notice bad" role="alert">
          {error}
        </p>
      )}
    </section>
  );
}

function Owed({ account }: { account: Address }) {
  const who = account.toLowerCase();
  const asked = useAsked(`owed ${who}`, (signal) => ask({ accounts: list("accounts", { where: { address: who } }), tasks: list("tasks", { where: { creator: who }, order: "-id", limit: 5 }, ["id"]) }, signal));
  return (
    <Answer asked={asked}>
      {({ accounts: [known], tasks }) =>
        known ? (
          <>
            <Figures label="Your account">
              <Figure label="Owed to you">{money(known.credit)}</Figure>
              <Figure label="Your node">
                <NodeLink number={known.node} />
              </Figure>
              <Figure label="Your newest tasks">{tasks.length ? tasks.map(({ id }, i) => [i ? " " : "", <TaskLink id={id} />]) : "–"}</Figure>
            </Figures>
            <Withdraw />
          </>
        ) : (
          <p class="empty">Muster owes this account nothing, and it has created nothing.</p>
        )
      }
    </Answer>
  );
}

/** The contract's terms for a task. */
interface Terms {
  estimated: number;
  timeLimit: number;
  least: bigint;
}

function Create() {
  const [kind, setKind] = useState(1);
  const [units, setUnits] = useState(1);
  const [policy, setPolicy] = useState(0);
  const [gpu, setGpu] = useState(0);
  const [vram, setVram] = useState(0);
  const [models, setModels] = useState("");
  const [file, setFile] = useState<{ name: string; bytes: Uint8Array } | undefined>(undefined);
  const [fee, setFee] = useState("");
  const [terms, setTerms] = useState<Terms | string | undefined>(undefined);
  const [created, setCreated] = useState<{ id: bigint; stored: string } | undefined>(undefined);
  const { account } = useWallet();
  const asked = useAsked("create", (signal) => ask({ groups: groupsWanted }, signal));
  useEffect(() => {
    let gone = false;
    setTerms(undefined);
    const client = chainClient();
    if (!client) return setTerms("Connect a wallet to see the least fee.");
    const muster = config.muster as Address;
    const asked = [client.readContract({ address: muster, abi: musterAbi, functionName: "estimate", args: [kind, units] }), paymentsOf(client, muster, policy, account)] as const;
    void Promise.all(asked).then(
      ([[estimated, timeLimit, least], payments]) => gone || setTerms({ estimated, timeLimit, least: least * payments }),
      (error: unknown) => gone || setTerms(refusal(error)),
    );
    return () => void (gone = true);
  }, [kind, units, policy, account]);
  const known = typeof terms === "object" ? terms : undefined;
  const value = fee ? safely(() => parseEther(fee)) : known?.least;
  const names = models.split(",").map((name) => name.trim()).filter(Boolean);
  const digest = useMemo(() => file && digestOf(file.bytes), [file]);
  // One file is both stored and paid for, though another may be chosen meanwhile.
  const call = (): Deed => {
    if (!file) throw new Error("Choose a file: it is the task's input.");
    if (value === undefined) throw new Error("The fee is no amount.");
    const spec = { kind, units, vram: gpu ? 0 : vram, gpu, redundancy: policy, flags: 0, inputDigest: digest!, models: names.map(modelId) };
    return {
      functionName: "createTask",
      args: [spec],
      value,
      before: () => store(file.bytes, digest!),
      onDone: ({ logs }, sender) => {
        const id = createdBy(sender, config.muster as Address, logs);
        if (id !== undefined) setCreated({ id, stored: config.upload ? "Its input is stored." : `Nodes look for the input under the name ${digest!.slice(2)}.` });
      },
    };
  };
  return (
    <section class="card" data-test="create">
      <header>
        <h2>Create a task</h2>
      </header>
      <Answer asked={asked}>
        {({ groups }) => (
          <form class="controls" onSubmit={(event) => event.preventDefault()} aria-label="A task">
            <label>
              Kind
              <select value={kind} onChange={({ currentTarget }) => setKind(Number(currentTarget.value))}>
                {KIND.map((name, i) => (
                  <option key={name} value={i}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
            <label>
              {["Images", "Requests", "Seconds"][kind]}
              <Typed type="number" min={1} value={units} onTaken={(text) => setUnits(Math.max(1, Math.floor(Number(text)) || 1))} />
            </label>
            <label>
              Policy
              <select value={policy} onChange={({ currentTarget }) => setPolicy(Number(currentTarget.value))}>
                {["single: nobody compares the answer", "sampled: checked now and then", "replicated: three nodes answer", "rated: a group chosen by ratings"].map((said, i) => (
                  <option key={POLICY[i]} value={i}>
                    {said}
                  </option>
                ))}
              </select>
            </label>
            <label>
              GPU
              <select value={gpu} onChange={({ currentTarget }) => setGpu(Number(currentTarget.value))}>
                <option value={0}>any</option>
                {groups.map(({ id, joined }) => (
                  <option key={id} value={id}>
                    {gpuName(id, groups)} ({joined} joined)
                  </option>
                ))}
              </select>
            </label>
            {!gpu && (
              <label>
                Least memory of the GPU, GiB
                <Typed type="number" min={0} value={vram} onTaken={(text) => setVram(Math.max(0, Math.floor(Number(text)) || 0))} />
              </label>
            )}
            <label>
              Models, with commas between
              <Typed value={models} onTaken={setModels} placeholder="none" />
              <small>One that nobody holds does not keep the task from running: its node fetches it first.</small>
            </label>
            <label>
              Input
              <input
                type="file"
                onChange={({ currentTarget }) => {
                  const [chosen] = currentTarget.files ?? [];
                  setFile(undefined);
                  void chosen?.arrayBuffer().then((bytes) => chosen === currentTarget.files?.[0] && setFile({ name: chosen.name, bytes: new Uint8Array(bytes) }));
                }}
              />
              {file && digest && (
                <small>
                  {count(file.bytes.length)} bytes; digest <Hex of={digest} />
                </small>
              )}
            </label>
            <label>
              Fee, {config.symbol}
              <Typed inputMode="decimal" value={fee} placeholder={known ? formatEther(known.least) : ""} onTaken={setFee} />
              <small>{known ? `at least ${money(known.least)}; it should take ${duration(known.estimated)}, and at most ${duration(known.timeLimit)}` : (terms as string | undefined)}</small>
            </label>
          </form>
        )}
      </Answer>
      <Doing
        label="Estimate it"
        call={call}
        explains={config.upload ? "The file is stored where nodes find it, then the task is created." : "Put the file under its digest into a store that nodes read: the chain is only told the digest."}
      />
      {created && (
        <p class="notice" role="status" data-test="created">
          Task <TaskLink id={created.id} /> is created. {created.stored} Its page shows how it goes on, and has its result when it has ended.
        </p>
      )}
    </section>
  );
}

function safely<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Puts the input where nodes find it; throws where it cannot, so that nobody pays for a task whose input is nowhere. */
async function store(bytes: Uint8Array, digest: string): Promise<void> {
  if (!config.upload) return;
  try {
    const answer = await fetch(`${config.upload}/${digest.slice(2)}`, { method: "PUT", body: bytes as BodyInit });
    if (!answer.ok) throw new Error(`the store answered ${answer.status}`);
  } catch (error) {
    throw new Error(`The input could not be stored (${(error as Error).message}), so nothing is sent.`);
  }
}
