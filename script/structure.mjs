// Draws the imports between the files of contracts/protocol/src, at a commit and now, side by side: docs/generated/figures/structure.svg.
//   node script/structure.mjs COMMIT
// A row and a column for each file, those first that import nothing: a mark says that the row's file imports the column's. Marks right of
// the diagonal close circles, and each circle is framed.
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { at, circles, crate } from "./circles.mjs";

const ROOT = "contracts/protocol/src";
const OUT = join(dirname(fileURLToPath(import.meta.url)), "../docs/generated/figures/structure.svg");
const [CELL, NAMES, TOP, GAP] = [9, 150, 46, 50];
const COLOURS = { "": "#57606a", host: "#8250df", store: "#0969da", interface: "#bf3989", flow: "#1a7f37", policy: "#bc4c00", admin: "#9a6700", view: "#1b7c83" };

/** The files so that each comes after all that it imports, as far as that can be; those of a circle one after the other. */
function ordered(graph) {
  const parts = circles(graph);
  const partOf = new Map([...graph.keys()].map((file) => [file, parts.find((part) => part.includes(file)) ?? [file]]));
  const done = [];
  const visit = (part) => {
    if (done.includes(part)) return;
    const before = part.flatMap((file) => [...graph.get(file).keys()]).map((file) => partOf.get(file));
    done.push(part);
    for (const other of before) visit(other);
    done.push(done.splice(done.indexOf(part), 1)[0]);
  };
  for (const file of [...graph.keys()].sort()) visit(partOf.get(file));
  return { files: done.flat(), parts };
}

const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

function picture(title, graph, left) {
  const { files, parts } = ordered(graph);
  const place = new Map(files.map((file, i) => [file, i]));
  const x0 = left + NAMES;
  const side = files.length * CELL;
  const out = [`<text x="${left}" y="18" font-size="13" font-weight="600">${escape(title)}</text>`];
  out.push(`<rect x="${x0}" y="${TOP}" width="${side}" height="${side}" fill="none" stroke="#8c959f" stroke-width="0.5"/>`);
  out.push(`<path d="M${x0} ${TOP}L${x0 + side} ${TOP + side}" stroke="#8c959f" stroke-width="0.5"/>`);
  let marks = 0;
  let closing = 0;
  files.forEach((file, row) => {
    const name = file.slice(ROOT.length + 1);
    const colour = COLOURS[name.includes("/") ? name.split("/")[0] : ""];
    const y = TOP + row * CELL;
    out.push(`<text x="${x0 - 5}" y="${y + 7}" font-size="7" text-anchor="end" fill="${colour}">${escape(name)}</text>`);
    for (const other of graph.get(file).keys()) {
      const column = place.get(other);
      marks++;
      if (column > row) closing++;
      out.push(`<rect x="${x0 + column * CELL + 1}" y="${y + 1}" width="${CELL - 2}" height="${CELL - 2}" fill="${column > row ? "#cf222e" : colour}"/>`);
    }
  });
  for (const part of parts) {
    const from = Math.min(...part.map((file) => place.get(file))) * CELL;
    out.push(`<rect x="${x0 + from}" y="${TOP + from}" width="${part.length * CELL}" height="${part.length * CELL}" fill="none" stroke="#cf222e"/>`);
  }
  const inCircles = parts.reduce((sum, part) => sum + part.length, 0);
  out.push(`<text x="${left}" y="34" font-size="10">${files.length} files, ${marks} imports; ${inCircles} files in circles of ${parts.map((part) => part.length).join(", ") || "none"}; ${closing} imports against the order</text>`);
  return { text: out.join("\n"), width: NAMES + side, height: TOP + side };
}

const commit = process.argv[2];
if (!commit) throw new Error("usage: node script/structure.mjs COMMIT");
const before = picture(`Before (${commit})`, crate(ROOT, at(commit)), 10);
const after = picture("Now", crate(ROOT), 10 + before.width + GAP);
const [width, height] = [20 + before.width + GAP + after.width, 10 + Math.max(before.height, after.height)];
writeFileSync(
  OUT,
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" fill="#1f2328">\n` +
    `<rect width="${width}" height="${height}" fill="#ffffff"/>\n${before.text}\n${after.text}\n</svg>\n`,
);
