/** Rows as JSON, which has no numbers as large as amounts are: these are text. */
export const json = (value: unknown): string => JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? String(each) : each));
