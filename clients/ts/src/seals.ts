/** How bytes say that they are sealed to somebody's key: what opens them is loaded only then. */
import { stringToBytes } from "viem";

/** What sealed bytes begin with; an age file follows. */
export const SEALED = /*#__PURE__*/ stringToBytes("muster sealed 1\n");

/** Whether bytes say so. */
export const isSealed = (bytes: Uint8Array): boolean => SEALED.every((byte, i) => bytes[i] === byte);
