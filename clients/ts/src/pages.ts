/** Lists that the contract returns page by page. */

/** The longest page that the contract returns. */
export const PAGE = 256;

/** All pages of a view that reports its progress. */
export async function allPages<page>(ask: (from: number, count: number) => Promise<page>, far: (page: page) => number): Promise<page[]> {
  const pages = [await ask(0, PAGE)];
  const rest = Math.ceil(far(pages[0]!) / PAGE);
  pages.push(...(await Promise.all(Array.from({ length: Math.max(0, rest - 1) }, (_, i) => ask((i + 1) * PAGE, PAGE)))));
  return pages;
}
