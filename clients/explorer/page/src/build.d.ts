/** What the interface says of each refusal: vite.config.ts puts it in. */
declare const SENTENCES: Record<string, string>;
