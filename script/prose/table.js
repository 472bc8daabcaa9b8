// Words, sentences and how easily each page is read, as a table: node table.js PAGES
const { readFileSync } = require("node:fs");
const { parse } = require("@textlint/markdown-to-ast");
const { default: readability } = require("text-readability");
const { sentencesOf, wordsOf } = require("./sentences.js");

/** All sentences of a page. */
function sentences(node) {
  if (node.type === "Paragraph" || node.type === "TableCell") return sentencesOf(node);
  return (node.children ?? []).flatMap(sentences);
}

const row = (cells) => console.log(`| ${cells.join(" | ")} |`);
row(["page", "words", "sentences", "longest", "above 35 words", "Flesch reading ease"]);
row(["---", "---:", "---:", "---:", "---:", "---:"]);
const sum = { words: 0, count: 0, longest: 0, long: 0, text: "" };
for (const page of process.argv.slice(2)) {
  const found = sentences(parse(readFileSync(page, "utf8"))).map(({ text }) => text);
  const lengths = found.map((text) => wordsOf(text).length);
  const words = lengths.reduce((all, length) => all + length, 0);
  const long = lengths.filter((length) => length > 35).length;
  const longest = Math.max(0, ...lengths);
  // Of sentences alone: cells of figures are none.
  const text = found.filter((_, at) => lengths[at] > 4).join(" ");
  row([page, words, found.length, longest, long, text ? readability.fleschReadingEase(text).toFixed(0) : ""]);
  sum.words += words;
  sum.count += found.length;
  sum.longest = Math.max(sum.longest, longest);
  sum.long += long;
  sum.text += ` ${text}`;
}
row(["all", sum.words, sum.count, sum.longest, sum.long, readability.fleschReadingEase(sum.text).toFixed(0)]);
