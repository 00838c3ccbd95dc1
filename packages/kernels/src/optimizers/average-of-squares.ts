import { leaf, type Term } from "../formula/term.js";

/**
 * share · x². WGSL computes the square first, and JavaScript multiplies from the left. With one order for both, the last bits of existing
 * trainings would change on GPUs or on the CPU.
 */
const shareOfSquare = leaf({
  name: "share",
  arity: 2,
  scalars: 1,
  functions: (name) => `fn ${name}(x: vec4f, share: f32) -> vec4f { return share * (x * x); }\n`,
  evaluate: (x, share) => share * x * x,
});

/** The next moving average of squares: average · keep + share · x². */
export const averageOfSquares = (
  average: Term,
  x: Term,
  { keep, share }: { readonly keep: Term; readonly share: Term },
): Term => average.mul(keep).add(shareOfSquare(x, share));
