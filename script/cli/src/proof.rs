//! `docs/generated/proof.md`: the figures of the tests that draw, drive and try the 21 weaknesses.
//!
//! The tests print them as `proof WHAT: name = value; name = value` (`muster_model::proof`). Seeds are fixed, so the page
//! comes out the same as long as what it tests does.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{bail, ensure, Context, Result};
use muster_trace::figures::thousands;
use syn::visit::Visit;

use crate::{build, coverage, markdown::row, mutants, runs, wasm::MAX_CODE};

/// The tests by attacker, of which those of single tasks try the weaknesses and play the attacks.
const SECURITY: &str = "contracts/protocol/tests/security";

/// A weakness and its test.
pub struct Weakness {
    /// 1 to 21.
    pub number: u32,
    /// The flaw of earlier implementations.
    pub was: String,
    /// The property that holds here.
    pub holds: String,
    /// The test's name.
    pub test: String,
}

impl Weakness {
    fn row(&self) -> String {
        row(&[&self.number.to_string(), &self.was, &self.holds, &format!("`{}`", self.test), "passed"])
    }
}

/// The weaknesses, from the comments of their tests.
///
/// # Errors
/// When a file cannot be read, or the comment of a test `wNN_…` does not read `NN: what was. Here what holds.`
pub fn weaknesses(root: &Path) -> Result<Vec<Weakness>> {
    let mut functions = Functions::default();
    for file in fs::read_dir(root.join(SECURITY))? {
        functions.visit_file(&syn::parse_file(&fs::read_to_string(file?.path())?)?);
    }
    let mut found = Vec::new();
    for function in functions.0 {
        let test = function.sig.ident.to_string();
        let digits = test.strip_prefix('w').and_then(|rest| rest.split('_').next());
        let Some(number) = digits.and_then(|digits| digits.parse().ok()) else { continue };
        let comment = comment(&function.attrs);
        let parts = comment.strip_prefix(&format!("{number}: ")).and_then(|text| text.split_once(" Here "));
        let (was, holds) =
            parts.with_context(|| format!("the comment of {test} in {SECURITY} does not read `{number}: … Here …`"))?;
        let holds = holds.chars().enumerate().map(|(i, c)| if i == 0 { c.to_ascii_uppercase() } else { c }).collect();
        found.push(Weakness { number, was: was.into(), holds, test });
    }
    found.sort_by_key(|weakness: &Weakness| weakness.number);
    Ok(found)
}

/// All functions of a file, whatever modules they are in.
#[derive(Default)]
struct Functions(Vec<syn::ItemFn>);

impl Visit<'_> for Functions {
    fn visit_item_fn(&mut self, function: &syn::ItemFn) {
        self.0.push(function.clone());
    }
}

/// A test's name without its modules.
fn name(test: &str) -> &str {
    test.rsplit("::").next().unwrap_or(test)
}

fn comment(attributes: &[syn::Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value().trim().to_string()),
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// `name = value; name = value` by name. A part without a name belongs to the value before it.
fn read(values: &str) -> Result<BTreeMap<String, String>> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for part in values.split("; ") {
        match (part.split_once(" = "), pairs.last_mut()) {
            (Some((name, value)), _) => pairs.push((name, value.into())),
            (None, Some((_, value))) => *value = format!("{value}; {part}"),
            (None, None) => bail!("no name before {part}"),
        }
    }
    Ok(pairs.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

/// The output of the tests.
#[derive(Default)]
struct Heard {
    /// Tests that passed.
    passed: BTreeSet<String>,
    figures: Vec<Figure>,
}

/// A printed line, and the test that printed it.
struct Figure {
    test: String,
    what: String,
    values: BTreeMap<String, String>,
}

impl Figure {
    fn get(&self, name: &str) -> Result<&str> {
        let value = self.values.get(name).map(String::as_str);
        value.with_context(|| format!("{} prints no {name} in `proof {}`", self.test, self.what))
    }

    /// A row of its values under these names.
    fn row(&self, names: &[&str]) -> Result<String> {
        let shown = |name: &&str| self.get(name).map(|value| value.parse().map_or(value.to_string(), thousands));
        let cells = names.iter().map(shown).collect::<Result<Vec<_>>>()?;
        Ok(row(&cells.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    fn number(&self, name: &str) -> Result<f64> {
        self.get(name)?.parse().with_context(|| format!("{}: {name} is not a number", self.test))
    }
}

impl Heard {
    /// Runs tests, showing which are done; fails if one does.
    fn listen(&mut self, root: &Path, arguments: &[&str]) -> Result<()> {
        // The same packages as in every script, so that their compiled crates are found.
        let tests = "source script/env && exec cargo test --locked \"${host[@]}\" \"$@\"";
        let mut command = Command::new("bash");
        command.current_dir(root).args(["-c", tests, "proof"]).args(arguments);
        // Outside the embedded node the tests that are wanted skip themselves.
        let mut child = command.env_remove("RPC_URL").stdout(Stdio::piped()).spawn().context("bash does not start")?;
        let (mut test, mut lines, before) = (String::new(), Vec::new(), self.figures.len());
        for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
            let line = line?;
            if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... ok")) {
                eprintln!("proof: {name} passed");
                self.passed.insert(name.into());
            } else if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
                test = name.into();
            } else if let Some((what, values)) = line.strip_prefix("proof ").and_then(|rest| rest.split_once(": ")) {
                let values = read(values).with_context(|| line.clone())?;
                self.figures.push(Figure { test: test.clone(), what: what.into(), values });
            }
            lines.push(line);
        }
        // Tests run side by side and are shown as they end.
        self.figures[before..].sort_by(|a, b| a.test.cmp(&b.test));
        let status = child.wait()?;
        ensure!(status.success(), "{}\ncargo test {}: {status}", lines.join("\n"), arguments.join(" "));
        Ok(())
    }

    /// Figures of a kind, with or without a certain value; at least one.
    fn of(&self, what: &str, has: &str) -> Result<Vec<&Figure>> {
        let fits = |figure: &&Figure| figure.what == what && figure.values.contains_key(has);
        let found: Vec<_> = self.figures.iter().filter(fits).collect();
        ensure!(!found.is_empty(), "no test prints `proof {what}` with a {has}");
        Ok(found)
    }
}

/// Runs the tests and writes the page. The programs must be built, those for tests too. `coverage` is a folder with what
/// llvm-cov exports of each test executable.
///
/// # Errors
/// When a test fails or does not print its figures, or less was driven or drawn than is promised.
pub fn run(root: &Path, coverage: &Path) -> Result<()> {
    let executed = coverage::rows(root, coverage)?;
    let mut heard = Heard::default();
    eprintln!("proof: in memory");
    let native = ["draw", "native", "life", "outcomes", "words", "intervals"].map(|test| ["--test", test]).concat();
    heard.listen(root, &[&native[..], &["--", "--show-output"]].concat())?;
    heard.listen(root, &["--test", "security", "--", "--show-output", "single::"])?;
    heard.listen(root, &["--test", "search", "--", "--show-output", "four_hundred_lives"])?;
    eprintln!("proof: through compiled WASM, on the embedded node");
    heard.listen(root, &["--test", "network", "--", "--show-output", "model::", "outcomes::", "weight::"])?;
    let file = root.join("docs/generated/proof.md");
    fs::write(&file, page(root, &heard, &executed)?).with_context(|| file.display().to_string())?;
    eprintln!("proof: wrote docs/generated/proof.md");
    Ok(())
}

fn page(root: &Path, heard: &Heard, executed: &str) -> Result<String> {
    let (manifest, _) = build::load(root)?;
    let mut page = format!("{HEAD}\n{} tests ran and passed, compiled by {}.\n\n{CHOICE}", heard.passed.len(), manifest.rustc);
    for figure in heard.of("choice", "state")? {
        ensure!(figure.number("draws")? >= 200_000.0, "{} draws too little", figure.test);
        page += &figure.row(&["state", "draws", "chi-square", "degrees", "limit", "biased"])?;
    }
    page += CHOICE_WASM;
    for figure in heard.of("choice", "rule")? {
        let verdict = if figure.number("chi-square")? < figure.number("limit")? { "agrees" } else { "refuted" };
        let cells = figure.row(&["rule", "tasks", "draws", "chi-square", "degrees", "limit"])?;
        page += &cells.replace(" |\n", &format!(" | {verdict} |\n"));
    }
    page += SEARCH;
    for figure in heard.of("search", "distance")? {
        page += &figure.row(&["holders", "draws", "distance", "limit", "again"])?;
    }

    page += BUSY;
    for figure in heard.of("busy", "missed")? {
        page += &figure.row(&["holders", "idle", "others idle", "missed"])?;
    }

    page += DRIVEN;
    let runs = heard.of("driven", "happened")?;
    // The events of each test; figures of one test stand together.
    let (mut driven, mut columns) = ([0u64; 2], Vec::<(&str, BTreeMap<&str, u64>)>::new());
    for run in &runs {
        // Tests in memory stand at the top of their files, those of the network suite in modules.
        let wasm = run.test.contains("::");
        let operations: u64 = run.get("operations")?.parse()?;
        driven[usize::from(wasm)] += operations;
        let (place, rest) = (if wasm { "WASM" } else { "memory" }, run.row(&["seeds", "each", "operators", "operations"])?);
        if columns.last().is_none_or(|(test, _)| *test != run.test) {
            columns.push((&run.test, BTreeMap::new()));
        }
        page += &format!("| {} | `{}` | {place} {rest}", columns.len(), run.test);
        let (_, events) = columns.last_mut().context("no test")?;
        for pair in run.get("happened")?.split(", ") {
            let (event, times) = pair.rsplit_once(' ').context("no number")?;
            *events.entry(event).or_default() += times.parse::<u64>()?;
        }
    }
    ensure!(driven[0] >= 100_000 && driven[1] >= 5_000, "only {driven:?} operations were driven");
    page += &format!("\nTogether {} in memory and {} through WASM.\n{FAULTS}", thousands(driven[0]), thousands(driven[1]));
    for figure in heard.of("fault", "left")? {
        page += &figure.row(&["fault", "of", "left"])?;
    }
    page += HAPPENED;
    page += &format!("| event | {} |\n", (1..=columns.len()).map(|test| format!("test {test}")).collect::<Vec<_>>().join(" | "));
    page += &format!("| ---{} |\n", " | ---:".repeat(columns.len()));
    let events: BTreeSet<&str> = columns.iter().flat_map(|(_, events)| events.keys().copied()).collect();
    for event in events {
        let counts: Vec<String> =
            columns.iter().map(|(_, events)| thousands(events.get(event).copied().unwrap_or_default())).collect();
        page += &format!("| `{event}` | {} |\n", counts.join(" | "));
    }

    let times = |event: &str| columns.iter().filter_map(|(_, events)| events.get(event)).sum::<u64>();
    let lives = heard.of("searched", "lives")?[0];
    page += &properties(driven[0] + driven[1], times, lives)?;

    let runs = fs::read_to_string(root.join("test/runs.jsonl")).context("test/runs.jsonl")?;
    let now = runs::has_contracts(root);
    page += &format!("{FRESH}{}{FUZZED}{}", runs::fresh(&runs, &now)?, runs::fuzzed(&runs, &now)?);
    page += &format!("{FOUND}{}", runs::found(&root.join("test/fuzz/corpus"))?);
    page += &format!("{LOADED}{}{COVERAGE}{}", runs::loaded(&runs)?, executed);

    page += RECORDS;
    for figure in heard.of("record", "records")? {
        page += &figure.row(&["records", "fields", "bits"])?;
    }
    page += INTERVALS;
    for figure in heard.of("interval", "function")? {
        page += &figure.row(&["function", "domain", "stated", "found"])?;
    }

    page += OUTCOMES;
    for figure in heard.of("outcomes", "groups")? {
        let place = if figure.test.contains("::") { "WASM" } else { "memory" };
        let numbers =
            ["groups", "agreed", "alone", "differing", "unanswered", "slashes", "left", "filled", "unfilled", "not sampled"];
        page += &format!("| {place} {}", figure.row(&[&["what", "scope"][..], &numbers].concat())?);
    }

    page += WEAK;
    for weakness in weaknesses(root)? {
        ensure!(heard.passed.iter().any(|test| name(test) == weakness.test), "{} did not run", weakness.test);
        page += &weakness.row();
    }
    page += WORDS;
    for figure in heard.of("words", "large")? {
        page += &figure.row(&["call", "small", "large"])?;
    }
    page += FAST;
    for figure in heard.of("fast caller", "won")? {
        page += &figure.row(&["delay", "trick", "tasks", "won", "z", "blocks"])?;
    }
    page += BACKLOG;
    for figure in heard.of("backlog", "refused")? {
        page += &figure.row(&["call", "tried", "refused"])?;
    }
    page += ATTACKS;
    let mut attacks = heard.of("attack", "comes to")?;
    attacks.sort_by_key(|figure| name(&figure.test));
    for figure in attacks {
        page += &format!(
            "| {} | {} | {} | `{}` |\n",
            figure.get("attack")?,
            figure.get("with")?,
            figure.get("comes to")?,
            name(&figure.test)
        );
    }
    page += &mutants::section(root)?;
    page += SIZES;
    for (name, program) in &manifest.programs {
        let share = format!("{:.1} %", 100.0 * program.deployed_bytes as f64 / MAX_CODE as f64);
        page += &row(&[name, &thousands(program.wasm_bytes as u64), &thousands(program.deployed_bytes as u64), &share]);
    }
    Ok(page)
}

const HEAD: &str = "\
# Proof

[All pages](../README.md)

Written by `script/proof`, which runs the tests named here and collects the figures that they print. It fails, and
writes nothing, if one of them does. Seeds and hashes are fixed: on the same sources the page comes out the same.
";

const CHOICE: &str = "\
## The choice follows the weights

Probabilities are worked out beside the contracts, in floating point, from the formulas. Chi-square compares them with
the draws; a right sampler exceeds the limit once in a thousand times. The last column compares the same draws with weights of which every other one (by rank) is 5 % higher, as if the sampler had this bias. That must exceed the limit, or the test fails.

The contracts' code in memory (`contracts/protocol/tests/draw.rs`): stakes from 400 to 4,000,000, mixed scores, H and
models, nodes that go busy and come back.

| state of the network | draws | chi-square | degrees of freedom | limit at 0.1 % | with the bias of 5 % |
| --- | ---: | ---: | ---: | ---: | ---: |
";

const CHOICE_WASM: &str = "
Through the compiled programs, one task per draw (`test/suite/tests/network/weight.rs`): 24 nodes of such stakes and
mixed H, scores and models go busy and come back. Their tasks come with and without models, VRAM and a required GPU.
The probabilities differ from draw to draw, so the statistic is the sum of the differences, weighed by the inverse of
their covariance. So few draws cannot show a bias of 5 %; instead the same draws must refute four rules with a
mistake.

| rule | tasks | draws | statistic | degrees of freedom | limit at 0.1 % | |
| --- | --- | ---: | ---: | ---: | ---: | --- |
";

const SEARCH: &str = "
Where a model has more than 16 holders, a draw cannot look at all of them, and the choice among them is not exact. The distance (total variation: half the sum of all differences in probability) says how far it is off; chance alone gives about 0.01. The last column is the share of draws that found no node and are made again with another hash.

| holders | draws | distance | limit | drawn again |
| --- | ---: | ---: | ---: | ---: |
";

const BUSY: &str = "
### Busy networks

A thousand equal nodes, of which some hold the required model; most of the holders are busy, all others idle. The last column is the
share of draws that go to a node without the model although one that holds it is idle.

| holders | idle holders | idle nodes without the model | holders missed |
| ---: | ---: | ---: | ---: |
";

const ATTACKS: &str = "
## What attacks cost

Attacks that an audit found, each played as it was made (`contracts/protocol/tests/security`). A gas figure of these is that of
storage and logs, worked out natively; [gas.md](gas.md) has those of compiled programs.

| attack | with | comes to | test |
| --- | --- | --- | --- |
";

/// The properties of every state, and how often each was checked: after so many operations, in which an event came so many `times`, and in
/// the adversary's lives.
fn properties(operations: u64, times: impl Fn(&str) -> u64, lives: &Figure) -> Result<String> {
    let searched = |what| Ok::<_, anyhow::Error>(thousands(lives.get(what)?.parse()?));
    let [lives, calls, departures] = [searched("lives")?, searched("calls")?, searched("departures")?];
    let operations = thousands(operations);
    let [metered, ended, all, half] = ["calls metered", "everything ended", "everybody left", "half left against the others"]
        .map(|event| thousands(times(event)));
    Ok(format!(
        "
### Properties

These must hold in every state, whatever others do, and the owner within the bounds of parameters (`test/model/src/properties.rs`). The operations above check them, and so does
a [search for attacks](attacks.md), here in {lives} lives of an adversary with an application and up to two fifths of the nodes.

| property | what is checked | by the operations | in the adversary's lives |
| --- | --- | --- | --- |
| money | Stakes, credit, returned stakes, fees, reserve, what was burnt and the treasury's income add up to all that came in and did not go out. | after {operations} operations | after {calls} calls |
| gas | Storage, logs and start of a call cost 1,000,000 at most, unless its caller chose how much it does. | {metered} calls in memory | {calls} calls |
| progress | While anything is left to do, tasks end or go to another group, by calls that anybody can make. | {ended} times until nothing was left | until nothing was left, after all new tasks of every life |
| nobody stuck | Nodes leave within two days, by a bounded number of calls, and get everything they are owed once stakes are returned. | {all} times all nodes on a copy, {half} times half of them against the rest: silent, pausing and resuming, committing and not revealing | {departures} times all honest nodes on a copy, against the adversary's |
| no honest loss | Nodes that keep to the rules lose neither stake nor credit nor their place. | each time they leave; not where answers from before are still to be judged | each slash, kick-out and departure; not a node that an adversary's majority or an ambiguous task contradicts, or whose answer was wrong |
"
    ))
}

const DRIVEN: &str = "
## Operations against the reference model

Random calls of every kind, by callers with and without the right to, with ether forced in and time passing. After
every operation state, events and money are compared with a plain model (`test/model`), and every 16 everything that
takes long to compare. After every 100, nodes leave on a copy. In memory alone can a copy be made, and calls metered. A run that fails is cut down to
a short one before it is shown.

| | test | where | seeds | operations of each | accounts with nodes | operations |
| ---: | --- | --- | --- | ---: | ---: | ---: |
";

const FAULTS: &str = "
Three built-in faults test that the driver finds faults and cuts the run down. They are a wei too much for the creator
that cancels (generous), a pause whose event gets lost (silent), and forced ether taken for income (gullible).

| fault | operations | cut down to |
| --- | ---: | ---: |
";

const HAPPENED: &str = "
How often each event happened in which of these tests; names in lower case are situations that the driver notes. A task is aborted by timeout (TaskAborted0), its creator
(TaskAborted1), eviction from the queue (TaskAborted2), or because it was queued for too long (TaskAborted3).

";

const FRESH: &str = "
### Seeds that nobody had run

`script/fresh` drives the same streams from seeds that it takes from the clock. All its runs since 27 November, from
`test/runs.jsonl`. A stream that fails is found once for each process; its seed is then among the tests above. Hours are those of all processes, beside other work. The third
column counts those of commits whose programs, as deployed, are byte for byte those of today.

| stream | operations | on these contracts | seeds | hours | found | last run |
| --- | ---: | ---: | ---: | ---: | ---: | --- |
";

const FUZZED: &str = "
## Fuzzing by coverage

`script/fuzz` lets libFuzzer look for inputs that reach new code ([what each target does](../../CONTRIBUTING.md)). All its runs, from
`test/runs.jsonl`. Edges are the jumps between blocks of code that the inputs of one run have taken, those kept from earlier runs included.

| target | inputs | on these contracts | edges | hours | found | last run |
| --- | ---: | ---: | ---: | ---: | ---: | --- |
";

const FOUND: &str = "
Inputs that failed, which every test run plays again.

| target | found |
| --- | --- |
";

const LOADED: &str = "
## Tests beside busy loops

`script/test --under-load` runs the tests that wait for a node, an agent or a store beside four busy loops, and two clients beside them. All its runs, from
`test/runs.jsonl`.

| what | runs | minutes of one | hours | failed | last run |
| --- | ---: | ---: | ---: | ---: | --- |
";

const COVERAGE: &str = "
## Code that tests execute

LLVM counts what the tests of `contracts/core` and `contracts/protocol` execute, natively. A region is an expression or a branch that
can be left out by itself; the last column names the lines where one begins that no test executes. `chain.rs` calls the chain, and so
runs in programs only. `native.rs`, the host of tests, is left out.

| file | regions | executed | not executed |
| --- | ---: | ---: | --- |
";

const RECORDS: &str = "
## Packed words

Every record comes back from the words that it is packed into. `contracts/core/tests/words.rs` shows it for all values, without a solver.

| records | fields | bits of the words that belong to a field |
| ---: | ---: | ---: |
";

const INTERVALS: &str = "
## Errors of the fixed-point functions

In units of the result's last digit, unless a row says otherwise. The bounds hold on the whole domain
(`contracts/core/tests/intervals.rs`): interval arithmetic, or every case, shows them of the steps that the source
takes. Samples compare those steps with the source.

| function | domain | stated | proven |
| --- | --- | --- | --- |
";

const OUTCOMES: &str = "
## Every outcome of a validation group

Each member of a group does one of nine things. It gives the first answer fast or slowly, the second fast or slowly, or a third; reports an error; withholds; lets its deadline pass; or is not
there. Over plain values all 729 combinations are judged (`contracts/core/tests/validation.rs`). Each combination that can occur is played on a real group of its own.
They are 512 of a replicated task, 448 of a sampled one, whose first node has committed, and 63 more where the scope has one node or two. The other 154 cannot occur: in them the first is not there or
has not committed though others are missing, or the second is missing and the third is there. Every event of a judgement, every payment, score, slash and receipt
and all the money are compared with what [validation.md](../validation.md) says (`test/model/src/outcomes`), in which the contracts' own judgement has no part. In memory each combination is
played in the twelve ways in which members can follow each other, and be timed out by `expire` or by the judgement. The compiled programs play each combination in one of these ways, in turn. Beside every call the same code
runs natively on the same storage. A small scope has too few nodes for scores. Pots are those of groups that agreed, with more than the fee to share; the start fee is a tenth of a fee here, so callers
of validations use up the reserve. Tasks that were not sampled are compared too.

| where | what is judged | scope | groups | agreed | first alone | differing | unanswered | slashes | nodes that left by them | pots that the reserve filled | that it could not | tasks not sampled |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

const WEAK: &str = "
## The 21 weaknesses of earlier implementations

Tests in `contracts/protocol/tests/security`, by number.

| | what it was | what holds here | test | |
| ---: | --- | --- | --- | --- |
";

const WORDS: &str = "
The table shows how often a call reads words of storage at most, measured for number 12. One network has 40 nodes of one
VRAM size with 3 queued tasks and 4 models each. The other has 3,000 nodes of 256 sizes with 2,000 queued tasks and 32
models each.

| call | 40 nodes | 3,000 nodes |
| --- | ---: | ---: |
";

const FAST: &str = "
## The fast caller

A creator owns two of eight equal nodes, and wants the first one: an eighth of the tasks is fair. They
look at the last hash before they create, cancel when it looks bad, withhold the draw, or reshuffle the candidates
before it. z is how many standard deviations they are above fair; with `drawDelay` 1 it must stay below 3.09. With
`drawDelay` 0 looking gets them every task, if they wait for as many blocks as it takes.

| drawDelay | trick | tasks | got the wanted node | z | blocks |
| ---: | --- | ---: | ---: | ---: | ---: |
";

const BACKLOG: &str = "
## A backlog of due draws

With more due draws than a call makes, the first caller of a block knows the hashes of those it leaves. Eleven tasks
are due, and each of these calls comes first; then they are drawn. Calls that could move a draw are refused (`DrawsDue`).
An accepted call must leave every drawn task with the node that it gets without the call, or the test fails.

| call | tried | refused |
| --- | ---: | ---: |
";

const SIZES: &str = "
## Sizes of the programs

From `build/manifest.json`; the limit of a program on chain is 24,576 bytes.

| program | WASM bytes | bytes on chain | share of the limit |
| --- | ---: | ---: | ---: |
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_what_follows_them() {
        let read = |text| read(text).map(|pairs| pairs.into_iter().collect::<Vec<_>>());
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(read("a = 1; b = two; three; c = 4").unwrap(), [pair("a", "1"), pair("b", "two; three"), pair("c", "4")]);
        assert!(read("one; a = 1").is_err());
    }

    #[test]
    fn the_page_lists_the_21_weaknesses_as_their_tests_state_them() {
        let root = build::root().unwrap();
        let (found, page) = (weaknesses(&root).unwrap(), fs::read_to_string(root.join("docs/generated/proof.md")).unwrap());
        assert_eq!(found.iter().map(|weakness| weakness.number).collect::<Vec<_>>(), (1..=21).collect::<Vec<_>>());
        for weakness in found {
            assert!(page.contains(&weakness.row()), "{}: docs/generated/proof.md is old, run script/proof", weakness.test);
        }
    }
}
