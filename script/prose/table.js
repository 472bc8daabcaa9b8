// Words, sentences and how easily each page is read, as a table: node table.js PAGES
// The same of all pages of a commit, beside what they are now: node table.js --since COMMIT
const { execFileSync } = require("node:child_process");
const { readFileSync } = require("node:fs");
const { parse } = require("@textlint/markdown-to-ast");
const { default: readability } = require("text-readability");
const { sentencesOf, wordsOf } = require("./sentences.js");

/** All sentences of a page, in a table's cell the parts of a list too, as rules/long-sentence.js counts them. */
function sentences(node) {
  if (node.type === "Paragraph") return sentencesOf(node).map(({ text }) => text);
  if (node.type === "TableCell") return sentencesOf(node).flatMap(({ text }) => text.split(";"));
  return (node.children ?? []).flatMap(sentences);
}

/** Figures of pages together: words, sentences, the longest, those above 35 words, and Flesch's reading ease. */
function figures(pages) {
  const found = pages.flatMap((page) => sentences(parse(page)));
  const lengths = found.map((text) => wordsOf(text).length);
  const words = lengths.reduce((all, length) => all + length, 0);
  const longest = lengths.reduce((most, length) => Math.max(most, length), 0);
  const long = lengths.filter((length) => length > 35).length;
  // Of sentences alone: cells of figures are none.
  const text = found.filter((_, at) => lengths[at] > 4).join(" ");
  return [words, found.length, longest, long, text ? readability.fleschReadingEase(text).toFixed(0) : ""];
}

const HEADINGS = ["words", "sentences", "longest", "above 35 words", "Flesch reading ease"];
const row = (cells) => console.log(`| ${cells.join(" | ")} |`);
const head = (cells) => (row(cells), row(cells.map((_, at) => (at ? "---:" : "---"))));
const git = (...args) => execFileSync("git", args, { encoding: "utf8", maxBuffer: 1 << 26 });

const [first, commit] = process.argv.slice(2);
if (first === "--since") {
  // Pages that commands write are counted apart: their length is that of their figures.
  const kinds = { "docs, by people": /^docs\/(?!generated|research)/, "docs/research": /^docs\/research/, "docs/generated": /^docs\/generated/, "all others": /^(?!docs\/)/ };
  const then = git("ls-tree", "-r", "--name-only", commit).split("\n").filter((file) => file.endsWith(".md"));
  const now = git("ls-files", "*.md").split("\n").filter(Boolean);
  head(["pages", "when", "number", ...HEADINGS]);
  for (const [kind, pattern] of Object.entries({ ...kinds, all: /^/ })) {
    const before = then.filter((file) => pattern.test(file)).map((file) => git("show", `${commit}:${file}`));
    const after = now.filter((file) => pattern.test(file)).map((file) => readFileSync(file, "utf8"));
    row([kind, commit, before.length, ...figures(before)]);
    row([kind, "now", after.length, ...figures(after)]);
  }
} else {
  const pages = process.argv.slice(2);
  const texts = pages.map((page) => readFileSync(page, "utf8"));
  head(["page", ...HEADINGS]);
  texts.forEach((text, at) => row([pages[at], ...figures([text])]));
  row(["all", ...figures(texts)]);
}
