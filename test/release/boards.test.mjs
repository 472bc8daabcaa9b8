// Boards and rules for operators of monitoring: dashboards by Grafana's own types, each expression by Prometheus' own grammar, and that
// they name the meanings of each other's fields.
// Neither Grafana nor Prometheus runs here. That the metrics are there is looked at where they are made: clients/agent, clients/cli.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parser } from "@prometheus-io/lezer-promql";
import { parse } from "yaml";

const here = dirname(fileURLToPath(import.meta.url));
const read = (path) => readFileSync(join(here, "../..", path), "utf8");
const WHO = ["agent", "cli"];
const boardOf = (who) => JSON.parse(read(`clients/${who}/deploy/dashboard.json`));
const rulesOf = (who) => parse(read(`clients/${who}/deploy/alerts.yaml`)).groups.flatMap(({ rules }) => rules);

/** Metrics that an expression names; throws on text that is no PromQL. */
function metricsOf(expression) {
  const found = [];
  parser.parse(expression).iterate({
    enter: ({ type, name, from, to }) => {
      assert.ok(!type.isError, `${expression}: not understood at ${from}`);
      if (name === "Identifier") found.push(expression.slice(from, to));
    },
  });
  return found;
}

test("the grammar refuses what Prometheus does", () => {
  for (const wrong of ["muster_agent_ready +", "nosuch(muster_agent_ready)", "sum by (node (muster_agent_ready)", "muster_agent_tasks[1h", ""]) assert.throws(() => metricsOf(wrong), wrong);
});

test("a low balance is told before the agent pauses the node, with as few open calls as there can be", () => {
  const { expr } = rulesOf("agent").find(({ alert }) => alert === "MusterBalanceLow");
  const [, times] = /^muster_agent_balance_wei < (\d+) \* muster_agent_balance_needed_wei$/.exec(expr);
  const [, more] = /balance < needed \+ call \* U256::from\((\d+)\)/.exec(read("clients/agent/src/pauses.rs"));
  assert.ok(Number(times) >= 3 * (1 + Number(more)), expr);
});

test("a keepalive that never succeeded is told", () => {
  const { expr } = rulesOf("cli").find(({ alert }) => alert === "MusterKeepaliveTrouble");
  assert.match(expr, / or absent\(muster_keepalive_looked_timestamp_seconds\)$/);
});

test("the page names the jobs of the rules, at the ports where the programs serve their metrics", () => {
  const jobs = new Map([...read("docs/operating.md").matchAll(/job_name: ([\w-]+), .*?:(\d+)"/g)].map(([, job, port]) => [job, port]));
  const asked = WHO.flatMap(rulesOf).flatMap(({ expr }) => [...expr.matchAll(/job="([^"]+)"/g)].map(([, job]) => job));
  assert.equal(asked.length, 3);
  for (const job of asked) {
    const served = job === "muster-agent" ? read("clients/agent/deploy/muster-agent.toml") : read(`clients/cli/deploy/${job}.service`);
    assert.ok(served.includes(`127.0.0.1:${jobs.get(job)}`), job);
  }
});

for (const who of WHO) {
  test(`${who}: every expression is PromQL, and counters alone are taken to grow`, () => {
    const expressions = [...boardOf(who).panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)), ...rulesOf(who).map(({ expr }) => expr)];
    assert.ok(expressions.length > 20);
    for (const expression of expressions) {
      const named = metricsOf(expression);
      assert.ok(named.length > 0, expression);
      for (const name of named) assert.match(name, /^(muster_[a-z_]+|up)$/, expression);
      for (const [, name] of expression.matchAll(/\b(?:rate|irate|increase)\((\w+)/g)) assert.match(name, /_total$/, expression);
      for (const [, name] of expression.matchAll(/\b(?:delta|deriv)\((\w+)/g)) assert.doesNotMatch(name, /_total$/, expression);
    }
  });

  test(`${who}: rules have a name of their own, how bad it is, a duration, and words whose templates are closed`, () => {
    const rules = rulesOf(who);
    assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
    for (const { alert, labels, annotations, for: lasts, ...rest } of rules) {
      assert.deepEqual(Object.keys(rest), ["expr"], alert);
      assert.match(labels.severity, /^(page|warn)$/, alert);
      assert.match(lasts ?? "1m", /^\d+[smhd]$/, alert);
      assert.match(annotations.summary.replace(/\{\{ \$(labels\.\w+|value( \| \w+)?) \}\}/g, ""), /^[^{}]{10,}$/, alert);
    }
  });

  test(`${who}: a duration that a rule shows is one, and no time since 1970`, () => {
    for (const { alert, expr, annotations } of rulesOf(who).filter(({ annotations }) => annotations.summary.includes("humanizeDuration"))) {
      // Of `a and b`, Prometheus shows a's value.
      const [shown] = expr.split(" and ");
      assert.ok(!shown.includes("_timestamp_seconds") || shown.includes("time()"), `${alert}: ${annotations.summary}`);
    }
  });

  test(`${who}: the dashboard is what Grafana's types say, and its panels do not lie on each other`, () => {
    const work = mkdtempSync(join(here, "board-"));
    try {
      const file = join(work, "board.ts");
      writeFileSync(file, `import type { Dashboard } from "@grafana/schema";\nexport const board = ${read(`clients/${who}/deploy/dashboard.json`).trim()} satisfies Partial<Dashboard>;\n`);
      execFileSync(join(here, "node_modules/.bin/tsc"), ["--noEmit", "--strict", "--skipLibCheck", "--moduleResolution", "bundler", "--module", "esnext", "--target", "es2022", file], { encoding: "utf8", cwd: here });
    } catch (error) {
      assert.fail(error.stdout);
    } finally {
      rmSync(work, { recursive: true });
    }
    const { panels } = boardOf(who);
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    const taken = new Set();
    for (const { title, targets, gridPos: { x, y, w, h } } of panels) {
      assert.ok(x >= 0 && x + w <= 24, title);
      assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
      for (let i = x; i < x + w; i++) for (let j = y; j < y + h; j++) assert.ok(!taken.has(`${i} ${j}`) && taken.add(`${i} ${j}`), `${title} lies on another`);
    }
  });
}
