import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { requireFinite, requireWithin } from "./attributes.js";
import { type Expression, elementwise } from "./elementwise.js";
import { cosOf } from "./expressions/trigonometric.js";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";
import { requireLengths } from "./operands.js";
import {
  bitsOfQuad,
  quadsOf,
  type RandomSource,
  sourceScalars,
  sourceWords,
} from "./random-bits.js";

/**
 * out = uniform numbers from [low, high), on a grid of 2^-24 of the range.
 *
 * @throws RangeError for limits that are not finite, or in the wrong order, and for a source out of range.
 */
export function uniform<B>(
  out: Binding<B>,
  source: RandomSource,
  { low, high }: { readonly low: number; readonly high: number },
): Launch<B> {
  requireFinite("uniform", "low", low);
  requireWithin("uniform", "high", high, low);
  return draw("uniform", out, source, high - low, low);
}

/**
 * out = numbers of the normal distribution, by the method of Box and Muller.
 *
 * @throws RangeError for a mean that is not finite, a negative deviation, and a source out of range.
 */
export function normal<B>(
  out: Binding<B>,
  source: RandomSource,
  { mean, deviation }: { readonly mean: number; readonly deviation: number },
): Launch<B> {
  requireFinite("normal", "mean", mean);
  requireWithin("normal", "deviation", deviation, 0);
  return draw("normal", out, source, deviation, mean);
}

/** out = 1 with probability p, else 0; p counts in steps of 2^-24. Throws a RangeError for a p that is not from 0 to 1. */
export function bernoulli<B>(out: Binding<B>, source: RandomSource, p: number): Launch<B> {
  requireWithin("bernoulli", "p", p, 0, 1);
  return draw("bernoulli", out, source, thresholdOf(p), 0);
}

/**
 * out = input / (1 − p) with probability 1 − p, else 0; everything 0 where p is 1.
 *
 * @throws RangeError for a p that is not from 0 to 1, a source out of range, and lengths that do not fit.
 */
export function dropout<B>(
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  source: RandomSource,
  p: number,
): Launch<B> {
  const { input, out } = operands;
  requireWithin("dropout", "p", p, 0, 1);
  requireLengths("dropout", { input }, { input: out.length });
  const shape = [out.length];
  // The CPU uses the same rounded factor as a GPU.
  const factor = p === 1 ? 0 : Math.fround(1 / (1 - p));
  return elementwise(
    dropoutExpression,
    [{ ...input, shape }],
    { ...out, shape },
    [factor, thresholdOf(1 - p)],
    source,
  );
}

/**
 * The scalars are the factor of kept elements, and the threshold of their bits: whole numbers up to 2^24, which are exact
 * floats.
 */
export const dropoutExpression: Expression = {
  name: "dropout",
  arity: 1,
  scalars: 2,
  isRandom: true,
  wgsl: ([x], [factor, threshold], bits) =>
    `select(vec4f(), ${x} * ${factor}, ${bits} < vec4u(u32(${threshold})))`,
  evaluate: (x, c, bits) => (bits < (c[1] as number) ? (x[0] as number) * (c[0] as number) : 0),
};

/** The threshold below which a random integer below 2^24 lies with probability p. */
export const thresholdOf = (p: number): number => Math.round(p * 2 ** 24);

interface Distribution {
  readonly functions?: string;
  /** vec4f of `bits` (vec4u, below 2^24) and the scalars `s.factor` and `s.term`. */
  readonly wgsl: string;
  evaluate(bits: readonly number[], lane: number, factor: number, term: number): number;
}

const grid = 2 ** -24;

const distributions: Record<"uniform" | "normal" | "bernoulli", Distribution> = {
  uniform: {
    wgsl: "vec4f(bits) * 0x1p-24 * s.factor + s.term",
    evaluate: (bits, lane, factor, term) => (bits[lane] as number) * grid * factor + term,
  },
  bernoulli: {
    wgsl: "select(vec4f(0.0), vec4f(1.0), bits < vec4u(u32(s.factor)))",
    evaluate: (bits, lane, factor) => ((bits[lane] as number) < factor ? 1 : 0),
  },
  normal: {
    functions: `${cosOf("normal_cos")}
fn normal_of(bits: vec4u) -> vec4f {
  // Two numbers, and of each pair a radius and an angle; the sine is a cosine a quarter turn on.
  let radius = sqrt(-2.0 * log((vec2f(bits.xz) + 0.5) * 0x1p-24));
  let turn = vec2f(bits.yw) * 0x1p-24;
  let quarter = vec4f(turn.x, turn.x - 0.25, turn.y, turn.y - 0.25);
  return vec4f(radius.xx, radius.yy) * normal_cos(6.283185307179586 * quarter);
}
`,
    wgsl: "normal_of(bits) * s.factor + s.term",
    evaluate(bits, lane, factor, term) {
      const [first, second] = lane < 2 ? [bits[0], bits[1]] : [bits[2], bits[3]];
      const radius = Math.sqrt(-2 * Math.log(((first as number) + 0.5) * grid));
      const angle = 2 * Math.PI * (second as number) * grid;
      return radius * (lane % 2 === 0 ? Math.cos(angle) : Math.sin(angle)) * factor + term;
    },
  },
};

function draw<B>(
  name: keyof typeof distributions,
  out: Binding<B>,
  source: RandomSource,
  factor: number,
  term: number,
): Launch<B> {
  return {
    kernel: kernels[name],
    bindings: [out],
    scalars: { count: out.length, ...sourceWords(source), factor, term },
  };
}

function makeKernel(name: keyof typeof distributions): Kernel {
  const { functions = "", wgsl, evaluate } = distributions[name];
  return defineKernel({
    name: "random",
    variant: name,
    bindings: [{ name: "out", access: "write" }],
    scalars: [
      { name: "count", type: "u32" },
      ...sourceScalars,
      { name: "factor", type: "f32", runtime: true },
      { name: "term", type: "f32", runtime: true },
    ],
    body: () => `${bitsOfQuad}${functions}
${linearMain()}
  if (index * 4u >= s.count) { return; }
  let bits = bits_of_quad(index);
  store_out(index, ${wgsl});
}
`,
    workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
    reference([out], scalars) {
      const y = out as KernelView;
      const bitsOf = quadsOf(scalars);
      const { factor, term } = scalars as { factor: number; term: number };
      for (let q = 0; q * 4 < y.length; q++) {
        const bits = bitsOf(q);
        for (let l = 0; l < 4 && q * 4 + l < y.length; l++)
          y[q * 4 + l] = evaluate(bits, l, factor, term);
      }
    },
  });
}

const kernels = {
  uniform: makeKernel("uniform"),
  normal: makeKernel("normal"),
  bernoulli: makeKernel("bernoulli"),
};
