import {
  dtype,
  either,
  generator,
  type Kind,
  number,
  object,
  optional,
  options,
  tensor,
} from "./kinds.js";

// Kinds for the library's own functions; kinds.ts has those for every author of ops.

/** Any value that is given; the function checks it itself. */
export const anything: Kind = { what: "given", accepts: (value) => value !== undefined };

/** A function. */
export const callback: Kind = {
  what: "a function",
  accepts: (value) => typeof value === "function",
};

/** The same options as a required argument, although all members are optional. */
export const required = ({ isOptional: _, ...kind }: Kind): Kind => kind;

/** A dtype, or "bool" for a mask. */
export const dtypeOrBool: Kind = {
  what: `${dtype.what} or "bool"`,
  accepts: (value) => value === "bool" || dtype.accepts(value),
};

/** Options of dropout. */
export const dropout: Kind = options({ p: optional(number), generator });
/** A range of memory that a launch can bind. */
export const operand: Kind = object("a range of memory", "buffer", "length");
/** A flag in device memory: a tensor of one float32, or the flag of a loss scaler. */
export const flagInMemory: Kind = either(tensor, object("memory of a flag", "byteLength"));
