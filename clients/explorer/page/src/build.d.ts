/** The interface's sentence for each refusal: vite.config.ts inserts it. */
declare const SENTENCES: Record<string, string>;
