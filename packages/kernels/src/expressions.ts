import type { Expression } from "./elementwise.js";

/** y = x: what a cast or a copy computes. */
export const identity: Expression = {
  name: "identity",
  arity: 1,
  wgsl: ([x]) => `${x}`,
  evaluate: (x) => x[0] as number,
};

export const add: Expression = {
  name: "add",
  arity: 2,
  wgsl: ([a, b]) => `${a} + ${b}`,
  evaluate: (x) => (x[0] as number) + (x[1] as number),
};
