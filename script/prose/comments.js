// Reads the comments of sources as rules/ reads the pages: no sentence of more than 35 words, none of the constructions in drop.js.
//   node comments.js FILES           what it finds, each with its line
//   node comments.js --count FILES   how many of each kind, folder by folder
const { readFileSync } = require("node:fs");
const { split } = require("sentence-splitter");
const { wordsOf } = require("./sentences.js");
const DROP = require("./drop.js");

const MOST = 35;

/** Where a comment begins in a line of code: after its strings. -1 if there is none. */
function trailing(line, marker) {
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const char = line[at];
    if (quote) {
      if (char === "\\") at++;
      else if (char === quote) quote = "";
    } else if (char === '"' || char === "`") quote = char;
    // In Rust it may also begin a lifetime; a string of one line ends on it.
    else if (char === "'" && line.indexOf("'", at + 1) > 0 && !/^'\w+\b(?!')/.test(line.slice(at))) quote = char;
    else if (line.startsWith(marker, at) && /\s/.test(line[at - 1] ?? " ") && /\s/.test(line[at + marker.length] ?? " ")) return at;
  }
  return -1;
}

/** A file's comments as paragraphs: their text, and the line where each begins. */
function paragraphs(file, text) {
  const hash = /\.(?:sh|py|toml|ya?ml)$/.test(file) || /^#!.*\b(?:bash|sh|python3?)\b/.test(text);
  const whole = hash ? /^\s*#(?!!)\s?(.*)$/ : /^\s*(?:\/\/[/!]?|\/\*\*?|\*)(?:\s(.*)|\/?)$/;
  const found = [];
  let open = null;
  let fenced = false;
  const close = () => {
    if (open) found.push(open);
    open = null;
  };
  text.split("\n").forEach((line, at) => {
    const comment = whole.exec(line);
    if (!comment) {
      close();
      fenced = false;
      const from = trailing(line, hash ? "#" : "//");
      if (from > 0) found.push({ line: at + 1, text: line.slice(from).replace(/^[/#]+\s*/, "") });
      return;
    }
    const said = (comment[1] ?? "").replace(/\s*\*\/\s*$/, "");
    if (/^\s*(```|~~~)/.test(said)) {
      close();
      fenced = !fenced;
      return;
    }
    // Code, tables, drawings and usages are not sentences.
    if (fenced || /^(?:\s{4}|\s*[|#]|\s*$)|[─│┌└]|\+--/.test(said)) return close();
    if (/^\s*(?:[-*]|\d+\.)\s/.test(said) || /^\s{2,}\S.*\s{3,}\S/.test(said) || /^@\w+/.test(said)) close();
    if (open) open.text += ` ${said.trim()}`;
    else open = { line: at + 1, text: said.trim() };
  });
  close();
  return found;
}

/** The sentences of a paragraph, in which code and addresses are one word each. */
function sentences(text) {
  const plain = text
    .replace(/^(?:[-*]|\d+\.)\s+/, "")
    .replace(/`[^`]*`/g, "x")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/https?:\/\/\S+/g, "x");
  return split(plain).filter(({ type }) => type === "Sentence").map(({ raw }) => raw.trim());
}

function findings(file) {
  return paragraphs(file, readFileSync(file, "utf8")).flatMap(({ line, text }) =>
    sentences(text).flatMap((sentence) => {
      const start = `"${sentence.slice(0, 60)}..."`;
      const words = wordsOf(sentence).length;
      const long = words > MOST ? [{ file, line, kind: "long", says: `${words} words in one sentence, and ${MOST} are the most: ${start}` }] : [];
      const drop = DROP.filter(([pattern]) => pattern.test(sentence));
      return [...long, ...drop.map(([pattern, instead]) => ({ file, line, kind: instead, says: `"${pattern.exec(sentence)[0]}": ${instead} (${start})` }))];
    }),
  );
}

const count = process.argv[2] === "--count";
const all = process.argv.slice(count ? 3 : 2).flatMap(findings);
if (count) {
  const folders = {};
  for (const { file, kind } of all) {
    const folder = file.split("/").slice(0, 2).join("/");
    folders[folder] ??= {};
    folders[folder][kind] = (folders[folder][kind] ?? 0) + 1;
  }
  console.table(folders);
  console.log(all.length);
} else {
  for (const { file, line, says } of all) console.log(`${file}:${line}: ${says}`);
  if (all.length) process.exitCode = 1;
}
