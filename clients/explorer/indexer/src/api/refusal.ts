/** A question that cannot be answered as it is asked. */
export class BadQuestion extends Error {}
