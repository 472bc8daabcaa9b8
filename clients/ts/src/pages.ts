/** Lists that the contract gives page by page. */

/** Longest page that the contract gives. */
export const PAGE = 256;

/** All pages of a view that says how far it goes. */
export async function allPages<page>(ask: (from: number, count: number) => Promise<page>, far: (page: page) => number): Promise<page[]> {
  const pages = [await ask(0, PAGE)];
  const rest = Math.ceil(far(pages[0]!) / PAGE);
  pages.push(...(await Promise.all(Array.from({ length: Math.max(0, rest - 1) }, (_, i) => ask((i + 1) * PAGE, PAGE)))));
  return pages;
}
