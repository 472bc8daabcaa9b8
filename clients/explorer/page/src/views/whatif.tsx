/** The income of a hypothetical node. */
import { useMemo, useState } from "preact/hooks";
import { ask, askRivals, isCut, list } from "../api";
import { WAD, loadCore } from "../core";
import { count, duration, money, percent } from "../format";
import { income } from "../income";
import { chainNow, useAsked } from "../live";
import { groupsWanted, gpuName, modelNames, requirement } from "../names";
import { Answer, Figure, Figures, modelName } from "../parts";
import { choose, useHere } from "../router";
import { DataTable } from "../table";

const TASKS = 1_000;
/** Models to choose from. */
const MODELS = 24;

const question = async (signal: AbortSignal) => {
  const wanted = {
    groups: groupsWanted,
    models: list("models", { order: "-tasks", limit: MODELS }, ["id"]),
    networks: list("networks", {}, ["stakeUnit"]),
    parameters: list("parameters", { where: { name_in: ["minStake", "tau", "unbonding"] } }, ["name", "value"]),
    tasks: list("tasks", { order: "-id", limit: TASKS }, ["vram", "gpu", "models", "paid", "redundancy", "createdAt"]),
  };
  const [core, others, data] = await Promise.all([loadCore(), askRivals(signal), ask(wanted, signal)]);
  const names = await modelNames([...data.models.map(({ id }) => id), ...data.tasks.flatMap(({ models }) => models)], signal);
  return { core, others, ...data, names, asked: chainNow() };
};
type Data = Awaited<ReturnType<typeof question>>;

export function WhatIf() {
  const asked = useAsked("whatif", question);
  return (
    <>
      <h1>What if</h1>
      <p class="lead">What a node with this card, stake and these models would have been given of the last {count(TASKS)} tasks, had it been there.</p>
      <Answer asked={asked}>{(data) => <Shown data={data} />}</Answer>
    </>
  );
}

function Shown({ data: { core, groups, models, names, networks, parameters, others, tasks, asked } }: { data: Data }) {
  const { query } = useHere();
  const parameter = (name: string) => parameters.find((one) => one.name === name)?.value ?? 0n;
  const stakeUnit = networks[0]?.stakeUnit ?? 1n;
  const least = parameter("minStake");
  const group = Number(query.get("gpu")) || groups.toSorted((a, b) => b.joined - a.joined)[0]?.id || 0;
  const [times, setTimes] = useState(Number(query.get("stake")) || 1);
  const held = new Set((query.get("models") ?? String(models[0]?.id ?? "")).split(",").filter((one) => /^\d+$/.test(one)).map(BigInt));
  const stake = (least * BigInt(Math.round(times * 100))) / 100n;
  const tau = Number(parameter("tau"));
  const rivals = useMemo(
    () =>
      others.items.map(({ number, gpuGroup, stake, longTerm, reliability, reliabilityAt, models, inUse }) => ({
        node: number,
        group: gpuGroup,
        stake: stake / stakeUnit,
        longTerm,
        h: core.recover(reliability, BigInt(Math.max(0, Math.floor(asked) - Number(reliabilityAt))), tau),
        models: new Set(models),
        inUse,
      })),
    [others],
  );
  const own = { group, stake, longTerm: WAD / 2n, h: WAD, models: held, inUse: [] };
  const found = useMemo(() => income(core, rivals, own, tasks, { total: others.total, largest: others.largest / stakeUnit }), [rivals, tasks, group, times, [...held].join()]);
  const span = tasks.length ? Math.max(1, asked - Number(tasks.at(-1)!.createdAt)) : 1;
  const perDay = (found.earned * 86_400n) / BigInt(Math.ceil(span));
  const turn = (model: bigint) => {
    const next = new Set(held);
    if (!next.delete(model)) next.add(model);
    choose({ models: [...next].join() || "none" });
  };
  return (
    <>
      <form class="card controls" onSubmit={(event) => event.preventDefault()}>
        <label>
          GPU
          <select value={group} onChange={({ currentTarget }) => choose({ gpu: currentTarget.value })}>
            {groups.map(({ id, joined }) => (
              <option key={id} value={id}>
                {gpuName(id, groups)} ({joined} joined)
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>
            Stake: <output>{money(stake * stakeUnit)}</output>
          </span>
          <input
            type="range"
            min={1}
            max={50}
            step={0.25}
            value={times}
            aria-valuetext={money(stake * stakeUnit)}
            onInput={({ currentTarget }) => setTimes(Number(currentTarget.value))}
            onChange={({ currentTarget }) => choose({ stake: currentTarget.value })}
          />
          <small>{times === 1 ? "the least stake" : `${times} times the least stake`}</small>
        </label>
        <fieldset>
          <legend>Models it holds</legend>
          <div class="choices">
            {models.map(({ id }) => (
              <label key={String(id)}>
                <input type="checkbox" checked={held.has(id)} onChange={() => turn(id)} /> {modelName(id, names)}
              </label>
            ))}
            {!models.length && <span class="quiet">No task has required any.</span>}
          </div>
          {isCut(models) && <small>The {MODELS} that most tasks required. There are more.</small>}
        </fieldset>
      </form>
      <Figures label="The result">
        <Figure label="Share of all tasks" note={`${count(found.runnable)} of ${count(tasks.length)} fit its card`}>
          <span data-test="share">{percent(found.share, 2)}</span>
        </Figure>
        <Figure label="Income" note={`of tasks created in ${duration(span)}`}>
          <span data-test="earned">{money(found.earned)}</span>
        </Figure>
        <Figure label="A day at this pace" note="before gas and electricity">
          {money(perDay)}
        </Figure>
        <Figure label="Of its stake, a day" note={`stake returns ${duration(Number(parameter("unbonding")))} after quitting`}>
          {stake ? percent(Number(perDay) / Number(stake * stakeUnit), 4) : "–"}
        </Figure>
      </Figures>
      <DataTable
        id="kinds"
        caption="By tasks' requirements"
        things={["kind", "kinds"]}
        rows={found.kinds}
        name={({ models, vram, gpu }) => `${gpu} ${vram} ${models.join()}`}
        sort="-tasks"
        page={15}
        empty="No task yet."
        columns={[
          { key: "card", label: "Card", help: "Its requirement on a node's GPU.", value: (kind) => requirement(kind, groups) },
          { key: "models", label: "Models", help: "Models that it asks for. Nodes that hold one come first; holding one is not required.", value: ({ models }) => models.map((model) => modelName(model, names)).join(" + ") || "none" },
          { key: "tasks", label: "Tasks", help: "Tasks of this kind among the last ones.", value: ({ tasks }) => tasks, numeric: true },
          { key: "share", label: "Its share", help: "The part of them that this node would have been given.", value: ({ share }) => share, cell: ({ share }) => percent(share, 2), numeric: true },
        ]}
      />
      <section class="card prose">
        <h2>Assumptions</h2>
        <p>
          The formula is the contract's, compiled from the same source: W = M · S · QoS / (S + QoS), and the share is W over that of all candidates, itself included. A stake above the largest lowers everybody else's S, as it would. It begins as every node does: H 1, Q_long 5 of 10, no model in use. The other nodes are taken as they are weighed now, and all of them as
          idle: on a busy network a task goes to whoever is free, and the share of a node that answers fast is larger. Payments are what those tasks paid.
          {others.total > others.items.length && ` Of ${count(others.total)} nodes ${count(others.items.length)} were looked at, picked independently of their properties, and stand for all.`}
        </p>
      </section>
    </>
  );
}
