import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import type { IntegerDType } from "@halfstep/formats/dtypes";
import { requireWhole, shown } from "./attributes.js";
import { quadType } from "./domain.js";
import { wrapped } from "./expressions/integer-forms.js";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";
import {
  drawWords,
  type RandomSource,
  sourceScalars,
  sourceWords,
  wordsOf,
} from "./random-bits.js";

/** Whole numbers to draw from. */
export interface IntegerRange {
  readonly low: number;
  /** How many there are from `low` on: 1 to 2^32. */
  readonly count: number;
}

/**
 * out (int32 or uint32) = whole numbers of a range, each the floor of a product of 64 random bits: no number is more than 1 + 2^-32 times
 * as probable as another. A quad takes two blocks of words.
 *
 * @throws TypeError for another dtype. RangeError for a range without numbers, or with some that 32 bits do not hold.
 */
export function randomIntegers<B>(
  out: Binding<B> & { readonly dtype: IntegerDType },
  source: RandomSource,
  { low, count }: IntegerRange,
): Launch<B> {
  if (!Object.hasOwn(kernels, out.dtype))
    throw new TypeError(`randomIntegers draws int32 and uint32, not ${shown(out.dtype)}`);
  requireWhole("randomIntegers", "low", low, -(2 ** 31), 2 ** 32 - 1);
  requireWhole("randomIntegers", "count", count, 1, 2 ** 32);
  return {
    kernel: kernels[out.dtype],
    bindings: [out],
    // A range of 2^32 numbers is 0 here.
    scalars: { length: out.length, ...sourceWords(source), low: low >>> 0, range: count >>> 0 },
  };
}

const makeKernel = (dtype: IntegerDType): Kernel =>
  defineKernel({
    name: "randomIntegers",
    variant: dtype,
    bindings: [{ name: "out", access: "write", dtypes: [dtype] }],
    scalars: [
      { name: "length", type: "u32" },
      ...sourceScalars,
      { name: "low", type: "u32", runtime: true },
      { name: "range", type: "u32", runtime: true },
    ],
    body: () => `${drawWords}
fn high_half(a: vec4u, b: u32) -> vec4u {
  let low = a & vec4u(0xffffu);
  let high = a >> vec4u(16u);
  let middle = high * (b & 0xffffu) + ((low * (b & 0xffffu)) >> vec4u(16u));
  let cross = low * (b >> 16u) + (middle & vec4u(0xffffu));
  return high * (b >> 16u) + (middle >> vec4u(16u)) + (cross >> vec4u(16u));
}
${linearMain()}
  if (index * 4u >= s.length) { return; }
  let block = vec2u(s.block0, s.block1);
  let seed = vec2u(s.seed0, s.seed1);
  let high = draw_words(2u * index, block, s.stream, seed);
  let low = draw_words(2u * index + 1u, block, s.stream, seed);
  let product = high * s.range;
  let carry = select(vec4u(), vec4u(1u), product + high_half(low, s.range) < product);
  let drawn = select(high_half(high, s.range) + carry, high, vec4<bool>(s.range == 0u));
  store_out(index, bitcast<${quadType(dtype)}>(drawn + s.low));
}
`,
    workgroups: ({ length }) => linearWorkgroups(Math.ceil((length as number) / 4)),
    reference([out], scalars) {
      const y = out as KernelView;
      const wordsOfBlock = wordsOf(scalars);
      const { low, range } = scalars as { low: number; range: number };
      const count = BigInt(range === 0 ? 2 ** 32 : range);
      for (let q = 0; q * 4 < y.length; q++) {
        const [high, rest] = [wordsOfBlock(2 * q), wordsOfBlock(2 * q + 1)];
        for (let l = 0; l < 4 && q * 4 + l < y.length; l++) {
          const bits = (BigInt(high[l] as number) << 32n) | BigInt(rest[l] as number);
          y[q * 4 + l] = wrapped(dtype, low + Number((bits * count) >> 64n));
        }
      }
    },
  });

const kernels: Readonly<Record<IntegerDType, Kernel>> = {
  int32: makeKernel("int32"),
  uint32: makeKernel("uint32"),
};
