import type { Binding, LaunchTarget } from "@halfstep/device";
import { permute } from "../src/copies/permute.js";
import { type ElementwiseKernel, elementwise } from "../src/elementwise.js";
import { takesEpilogue, withEpilogue } from "../src/epilogue.js";
import { identity, relu } from "../src/expressions.js";
import type { EpilogueKernel } from "../src/kernel.js";
import { matmul } from "../src/matmul.js";
import { reduce } from "../src/reductions/reduce.js";
import { testValues } from "./harness.js";

/** Numbers that formats treat each in a way of its own: ties, what overflows and underflows, zeros, no numbers. */
const specials: readonly number[] = [
  0,
  -0,
  1,
  1 + 2 ** -11,
  1 + 3 * 2 ** -11,
  65519.9,
  65520,
  1e5,
  2 ** -24,
  2 ** -25,
  3e-8,
  -6e-5,
].concat([1e-40, 3.4e38, Infinity, -Infinity, NaN, 1 / 3, -2 / 3, 1 + 2 ** -8, 1 + 3 * 2 ** -9]);

/** Launches that fill `out` of a length from `a` and perhaps `b`. */
export interface Producer {
  readonly a: Float32Array;
  readonly b?: Float32Array;
  readonly length: number;
  run<B>(target: LaunchTarget<B>, a: Binding<B>, b: Binding<B>, out: Binding<B>): void;
}

const values = (length: number, seed = 1): Float32Array =>
  testValues(length, seed).map((v, i) => v * 1.37 ** (i % 9));

/** Two products with tails, one of them added up from parts, with and without something woven into its store; and others. */
export const producers: Readonly<Record<string, Producer>> = {
  "elementwise launch": {
    a: Float32Array.from({ length: 1031 }, (_, i) => specials[i % specials.length] as number),
    length: 1031,
    run: (target, a, _, out) =>
      target.launch(elementwise(identity, [{ ...a, shape: [1031] }], { ...out, shape: [1031] })),
  },
  product: product(37, 20, 24),
  "product with an odd number of columns": product(9, 7, 5),
  "product in parts": product(8, 12, 8192),
  "product with an epilogue": {
    ...product(33, 36, 16),
    run(target, a, b, out) {
      const shaped = { ...out, shape: [33, 36] };
      const scratch = { ...shaped, buffer: target.allocate(4 * 33 * 36) };
      product(33, 36, 16).run(
        {
          allocate: (bytes) => target.allocate(bytes),
          launch(launch) {
            const { kernel } = launch;
            if (!takesEpilogue(kernel)) throw new TypeError(`${kernel.name} takes no epilogue`);
            const after = elementwise(relu, [scratch], shaped);
            target.launch(
              withEpilogue(
                launch as typeof launch & { kernel: EpilogueKernel },
                after as typeof after & { kernel: ElementwiseKernel },
                { results: [0] },
              ),
            );
          },
        },
        a,
        b,
        scratch,
      );
    },
  },
  "permutation that moves rows": {
    a: values(6 * 5 * 8),
    length: 6 * 5 * 8,
    run: (target, a, _, out) =>
      target.launch(permute({ input: a, out }, { shape: [6, 5, 8], order: [1, 0, 2] })),
  },
  reduction: {
    a: values(33 * 70),
    length: 33,
    run: (target, a, _, out) =>
      reduce(target, { input: a, out }, { op: "sum", outer: 33, size: 70, inner: 1 }),
  },
};

function product(m: number, n: number, k: number): Producer {
  return {
    a: values(m * k, 2),
    b: values(k * n, 3),
    length: m * n,
    run: (target, a, b, out) => matmul(target, { a, b, out }, { m, n, k }),
  };
}
