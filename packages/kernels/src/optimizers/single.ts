import { leaf, type Term } from "../formula/term.js";

/** Rounds to float32 on the CPU, before a sign is taken: a number that is 0 in float32 has none. */
export const single: (x: Term) => Term = leaf({
  name: "single",
  functions: (name) => `fn ${name}(x: vec4f) -> vec4f { return x; }\n`,
  evaluate: Math.fround,
});
