/** The mark of sealed bytes: code to open them is loaded only when they appear. */
import { stringToBytes } from "viem";

/** The prefix of sealed bytes; an age file follows. */
export const SEALED = /*#__PURE__*/ stringToBytes("muster sealed 1\n");

/** Whether bytes have the prefix. */
export const isSealed = (bytes: Uint8Array): boolean => SEALED.every((byte, i) => bytes[i] === byte);
