import {
  either,
  generator,
  type Kind,
  number,
  object,
  optional,
  options,
  tensor,
} from "./kinds.js";

// Kinds that the library's own functions alone take; those that are for every author of ops are in kinds.ts.

/** Checked by the function itself. */
export const anything: Kind = { what: "given", accepts: (value) => value !== undefined };

/** The same, though all its members are optional. */
export const required = ({ isOptional: _, ...kind }: Kind): Kind => kind;

/** Options of dropout. */
export const dropout: Kind = options({ p: optional(number), generator });
/** What a launch binds. */
export const operand: Kind = object("a range of memory", "buffer", "length");
/** A flag that lies in device memory: a tensor of one float32, or what a loss scaler has. */
export const flagInMemory: Kind = either(tensor, object("memory of a flag", "byteLength"));
