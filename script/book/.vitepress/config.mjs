// The site of the documentation: the pages of docs/, as they are, in the order of docs/README.md.
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, posix, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");
const docs = join(root, "docs");
const text = (file) => readFileSync(join(root, file), "utf8");
const repository = JSON.parse(text("package.json")).repository.url.replace(/^git\+|\.git$/g, "");

/** The headings of docs/README.md, and below each the pages that its table lists. */
function sidebar() {
  const groups = [];
  for (const line of text("docs/README.md").split("\n")) {
    if (line.startsWith("## ")) groups.push({ text: line.slice(3), items: [], collapsed: groups.length > 3 });
    const page = /^\| \[[^\]]+\]\(([\w/-]+\.md)(#[\w-]+)?\)/.exec(line);
    if (page && !page[2] && groups.length) groups.at(-1).items.push({ text: title(page[1]), link: `/${page[1].replace(/\.md$/, "")}` });
  }
  return groups.filter((group) => group.items.length);
}

function title(page) {
  return /^# (.+)$/m.exec(text(`docs/${page}`))[1].replaceAll("`", "");
}

/** Leads links to files outside the site to the repository. Keeps links to pages, and leaves dead links for the build to refuse. */
function outward(markdown) {
  const render = markdown.renderer.rules.link_open ?? ((tokens, i, options, env, self) => self.renderToken(tokens, i, options));
  markdown.core.ruler.push("outward", (state) => {
    for (const token of state.tokens.flatMap((t) => t.children ?? [])) {
      const href = token.type === "link_open" && token.attrGet("href");
      if (!href || /^([a-z]+:|#)/.test(href)) continue;
      const [path, anchor] = href.split("#");
      const file = resolve(dirname(join(docs, state.env.relativePath)), decodeURI(path));
      if (!existsSync(file)) throw new Error(`${state.env.relativePath}: ${href} leads nowhere`);
      if (file === join(docs, "README.md")) token.attrSet("href", href.replace(/README\.md/, "index.md"));
      if (file.startsWith(`${docs}/`) && file.endsWith(".md")) continue;
      const kind = statSync(file).isDirectory() ? "tree" : "blob";
      token.attrSet("href", `${repository}/${kind}/main/${relative(root, file).split("\\").join(posix.sep)}${anchor ? `#${anchor}` : ""}`);
    }
  });
  markdown.renderer.rules.link_open = render;
}

/** Diagrams are drawn where they are read, in the colours of the page. */
function diagrams(markdown) {
  const fence = markdown.renderer.rules.fence;
  markdown.renderer.rules.fence = (tokens, i, ...rest) =>
    tokens[i].info.trim() === "mermaid" ? `<Diagram text="${encodeURIComponent(tokens[i].content)}" />` : fence(tokens, i, ...rest);
}

/** Headings have the anchors that GitHub gives them, which the pages' links name. */
const slugify = (heading) =>
  [...heading.trim().toLowerCase()].map((c) => (c === " " ? "-" : /[\p{L}\p{N}_-]/u.test(c) ? c : "")).join("");

export default defineConfig({
  title: "Muster",
  description: "Task dispatch and quality of service for decentralised GPU networks, on chain",
  srcDir: docs,
  outDir: join(root, "build/site"),
  cacheDir: join(root, "build/site-cache"),
  base: process.env.BASE ?? "/",
  cleanUrls: true,
  lastUpdated: false,
  rewrites: { "README.md": "index.md" },
  markdown: {
    anchor: { slugify },
    config(markdown) {
      outward(markdown);
      diagrams(markdown);
    },
  },
  vite: {
    server: { fs: { allow: [root] } },
    build: { chunkSizeWarningLimit: 4_000 },
  },
  themeConfig: {
    search: { provider: "local" },
    sidebar: sidebar(),
    outline: [2, 3],
    nav: [
      { text: "Applications", link: "/applications" },
      { text: "Operators", link: "/operators" },
      { text: "Explorer", link: "/explorer" },
      { text: "How it works", link: "/dispatching" },
      { text: "Security", link: "/security" },
    ],
    socialLinks: [{ icon: "github", link: repository }],
  },
});
