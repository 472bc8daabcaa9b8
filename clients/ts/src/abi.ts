/** The whole interface and all parameters, as `abi/` has them. */
export { musterAbi } from "./generated/abi.js";
export * as parameterNumbers from "./generated/numbers.js";
export { musterParameters } from "./generated/parameters.js";
