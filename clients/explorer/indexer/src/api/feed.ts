/** A node's newest events as RSS. */
import { db } from "ponder:api";
import schema from "ponder:schema";
import { desc, eq } from "drizzle-orm";
import type { Context } from "hono";

const ITEMS = 50;
const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

export async function feed(c: Context) {
  const number = Number.parseInt(c.req.param("file")!, 10);
  const { event } = schema;
  const events = await db.select().from(event).where(eq(event.node, number)).orderBy(desc(event.id)).limit(ITEMS);
  const page = new URL(`/#/node/${number}`, c.req.url).href;
  const items = events.map(({ id, name, args, at, task }) =>
    [
      "<item>",
      `<title>${escaped(task === null ? name : `${name}, task ${task}`)}</title>`,
      `<description>${escaped(JSON.stringify(args))}</description>`,
      `<pubDate>${new Date(Number(at) * 1_000).toUTCString()}</pubDate>`,
      `<guid isPermaLink="false">${id}</guid>`,
      `<link>${escaped(page)}</link>`,
      "</item>",
    ].join(""),
  );
  c.header("content-type", "application/rss+xml; charset=utf-8");
  return c.body(
    `<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Muster: node ${number}</title><link>${escaped(page)}</link>` +
      `<description>What happens to node ${number}</description>${items.join("")}</channel></rss>`,
  );
}
