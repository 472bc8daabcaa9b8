// The sentences of a paragraph, without code, addresses and tables.
const { StringSource } = require("textlint-util-to-string");
const { split } = require("sentence-splitter");

/** Code becomes one word: a name is one word. */
const replacer = ({ node, maskValue }) => (node.type === "Code" ? maskValue("x") : undefined);

/** Sentences of a paragraph's node: their text, and where each begins in the page. */
exports.sentencesOf = (node) => {
  const source = new StringSource(node, { replacer });
  return split(source.toString())
    .filter(({ type }) => type === "Sentence")
    .map(({ raw, range }) => ({ text: raw.replace(/\s+/g, " ").trim(), index: source.originalIndexFromIndex(range[0]) ?? 0 }));
};

/** Its words. */
exports.wordsOf = (text) => text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
