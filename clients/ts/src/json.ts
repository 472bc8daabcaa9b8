/**
 * JSON with bigints. A bigint is written as `{"__type":"bigint","value":"123"}`, as wagmi's `serialize` writes it. So any object of
 * exactly this form is read as a bigint.
 */

/** `JSON.stringify`, bigints kept. */
export const stringify = (value: unknown, space?: string | number): string =>
  JSON.stringify(value, (_, item: unknown) => (typeof item === "bigint" ? { __type: "bigint", value: `${item}` } : item), space);

/** `JSON.parse` for the output of {@link stringify}. */
export const parse = <result = unknown>(text: string): result =>
  JSON.parse(text, (_, item: { __type?: unknown; value?: unknown } | null) =>
    item && typeof item === "object" && item.__type === "bigint" && typeof item.value === "string" && Object.keys(item).length === 2
      ? BigInt(item.value)
      : item,
  ) as result;
