// Reads the comments of sources as rules/ reads the pages: no sentence of more than 35 words, none of the constructions in drop.js.
//   node comments.js [FILES]           prints each finding with its line, and fails if there are any
//   node comments.js --count [FILES]   counts them by folder and construction
// Without FILES it reads all sources of FOLDERS that git knows.
const { execFileSync } = require("node:child_process");
const { readFileSync } = require("node:fs");
const { split } = require("sentence-splitter");
const { wordsOf } = require("./sentences.js");
const DROP = require("./drop.js");

const FOLDERS = ["abi", "clients", "contracts", "devnode", "script", "sim", "test", ".github", "Cargo.toml", "deny.toml"];
const MOST = 35;

/** Comments of `//` and of C; comments of `#`. A script may have no extension. */
const SLASHES = /\.(?:rs|ts|tsx|m?js|sol)$/;
const HASHES = /\.(?:sh|py|toml|ya?ml)$/;
const SHEBANG = /^#!.*\b(?:bash|sh|python3?)\b/;

/** The place of a comment behind code, outside of strings; -1 if there is none. */
function trailing(line, marker) {
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const char = line[at];
    if (quote) {
      if (char === "\\") at++;
      else if (char === quote) quote = "";
    } else if (char === '"' || char === "`") quote = char;
    // In Rust it may also begin a lifetime.
    else if (char === "'" && line.indexOf("'", at + 1) > 0 && !/^'\w+\b(?!')/.test(line.slice(at))) quote = char;
    else if (line.startsWith(marker, at) && /\s/.test(line[at - 1] ?? " ") && /\s/.test(line[at + marker.length] ?? " ")) return at;
  }
  return -1;
}

/** A file's comments as paragraphs, each of lines with their numbers. Code, tables, drawings and usages are left out. */
function paragraphs(text, hash) {
  const whole = hash ? /^\s*(#)(?!!)\s?(.*)$/ : /^\s*(\/\/[/!]?|\/\*\*?|\*)(?:\s(.*)|\/?)$/;
  const found = [];
  let open = null;
  let former = "";
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
      if (from > 0) found.push([{ number: at + 1, text: line.slice(from).replace(/^[/#]+\s*/, "") }]);
      return;
    }
    const [, marker, behind = ""] = comment;
    if (marker !== former && marker !== "*") close();
    former = marker;
    const said = behind.replace(/\s*\*\/\s*$/, "");
    if (/^\s*(```|~~~)/.test(said)) fenced = !fenced;
    // Settings that are commented out are code, too.
    if (fenced || /^\w+ = /.test(said) || /^(?:\s{4}|\s*[|#]|\s*```|\s*~~~|\s*$)|[─│┌└]|\+--/.test(said)) return close();
    const item = /^\s*(?:[-*]|\d+\.)\s/.test(said) || /^\s{2,}\S.*\s{2,}\S/.test(said) || /^@\w+/.test(said);
    if (item) close();
    open ??= [];
    open.push({ number: at + 1, text: said.trim() });
  });
  close();
  return found;
}

/** The sentences of a paragraph, each with the number of its first line. Code and addresses are one word each. */
function sentences(lines) {
  // Replacements keep the length, so that places are those of the comment.
  const plain = lines
    .map(({ text }) => text)
    .join(" ")
    .replace(/^(?:[-*]|\d+\.|@\w+)\s+/, (item) => " ".repeat(item.length))
    .replace(/`[^`]*`|https?:\/\/\S+/g, (code) => "x".padEnd(code.length))
    .replace(/\[([^\]]*)\]\([^)]*\)/g, (link, name) => ` ${name}`.padEnd(link.length));
  const numbers = lines.flatMap(({ number, text }) => Array(text.length + 1).fill(number));
  return split(plain)
    .filter(({ type }) => type === "Sentence")
    .map(({ raw, range }) => ({ line: numbers[range[0] + raw.search(/\S/)], text: raw.replace(/\s+/g, " ").trim() }));
}

/** The findings in a file of this text; none if it is no source. */
function findings(file, text) {
  const hash = HASHES.test(file) || SHEBANG.test(text.slice(0, 100));
  if (!hash && !SLASHES.test(file)) return [];
  const of = (line, sentence) => {
    const start = `"${sentence.slice(0, 60)}..."`;
    const words = wordsOf(sentence).length;
    const long = words > MOST ? [{ file, line, kind: "long", says: `${words} words in one sentence, and ${MOST} are the most: ${start}` }] : [];
    const dropped = DROP.map(([pattern, instead]) => [pattern.exec(sentence), instead]).filter(([match]) => match);
    return [...long, ...dropped.map(([[word], kind]) => ({ file, line, kind, says: `"${word}": ${kind} (${start})` }))];
  };
  return paragraphs(text, hash).flatMap((lines) => sentences(lines).flatMap(({ line, text }) => of(line, text)));
}

/** Reads the files, and says what it finds. */
function main(count, files) {
  const all = files.filter((file) => !file.includes("/corpus/")).flatMap((file) => findings(file, readFileSync(file, "utf8")));
  if (count) {
    const folders = {};
    for (const { file, kind } of all) {
      const row = (folders[file.split("/").slice(0, 2).join("/")] ??= {});
      row[kind] = (row[kind] ?? 0) + 1;
    }
    console.table(folders);
    console.log(`${all.length} in ${files.length} files`);
    return;
  }
  for (const { file, line, says } of all) console.log(`${file}:${line}: ${says}`);
  if (all.length) process.exitCode = 1;
}

module.exports = { findings };
if (require.main === module) {
  const count = process.argv[2] === "--count";
  const named = process.argv.slice(count ? 3 : 2);
  const known = () => execFileSync("git", ["ls-files", "-z", "--", ...FOLDERS], { encoding: "utf8" }).split("\0").filter(Boolean);
  main(count, named.length ? named : known());
}
