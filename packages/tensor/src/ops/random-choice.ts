import type { DType } from "@halfstep/device";
import { dtypes, type IntegerDType, isInteger } from "@halfstep/formats/dtypes";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { noGrad } from "../autograd/grad-mode.js";
import { castTo } from "../dispatch/cast.js";
import { ShapeError } from "../errors.js";
import type { Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import { clamp } from "./activations.js";
import { gt, logicalNot, where } from "./comparison.js";
import type { Generator } from "./generator.js";
import { made, rand } from "./random.js";
import { cumsum } from "./scan.js";
import { unsqueeze } from "./shape.js";
import { argsort } from "./sorting.js";
import { sum } from "./sums.js";
import { topK } from "./top-k.js";
import { slice } from "./windows.js";

/** Options of {@link randint}. */
export interface RandintOptions {
  readonly generator: Generator;
  /** The smallest number. Default 0. */
  readonly low?: number;
  /** The first number that is not drawn. */
  readonly high: number;
  /** Default int32. Floats get the drawn integers rounded. */
  readonly dtype?: DType;
}

/**
 * Whole numbers from `low` up to `high`, without it, each as probable as 64 random bits allow.
 *
 * @throws RangeError where there are none, or where one of them is no int32 or, for the dtype uint32 and numbers from 2^31 on, no uint32
 */
export const randint: (
  runtime: Runtime,
  shape: readonly number[],
  options: RandintOptions,
) => Tensor = checked(
  "randint",
  {
    runtime: kinds.runtime,
    shape: kinds.integers,
    options: kinds.options({
      generator: kinds.generator,
      low: kinds.optional(kinds.integer),
      high: kinds.integer,
      dtype: kinds.optional(kinds.dtype),
    }),
  },
  (
    runtime: Runtime,
    shape: readonly number[],
    { generator, low = 0, high, dtype = "int32" }: RandintOptions,
  ): Tensor => {
    const drawn = isInteger(dtype) ? dtype : high > 2 ** 31 ? "uint32" : "int32";
    const [least, most] = dtypes[drawn].range;
    if (!(high > low && low >= least && high <= most + 1))
      throw new RangeError(
        `randint: from ${low} up to ${high} there are no numbers, or some that are no ${drawn}`,
      );
    const range = { low, count: high - low };
    return castTo(whole(runtime, shape, drawn, generator, range), dtype);
  },
);

/** Whole numbers of a range. A quad of them takes two blocks of words. */
const whole = (
  runtime: Runtime,
  shape: readonly number[],
  dtype: IntegerDType,
  generator: Generator,
  range: kernels.IntegerRange,
): Tensor =>
  made(runtime, shape, dtype, (out) =>
    kernels.randomIntegers(
      { ...out, dtype },
      generator.take(runtime, 8 * Math.ceil(out.length / 4)),
      range,
    ),
  );

/** Where random numbers come from. */
export interface DrawOptions {
  readonly generator: Generator;
}

/** The numbers 0 … n − 1 in random order, as uint32. They are sorted by 32 random bits each. */
export const randperm: (runtime: Runtime, n: number, options: DrawOptions) => Tensor = checked(
  "randperm",
  {
    runtime: kinds.runtime,
    n: kinds.integer,
    options: kinds.options({ generator: kinds.generator }),
  },
  (runtime: Runtime, n: number, { generator }: DrawOptions): Tensor => {
    if (n < 0) throw new ShapeError(`randperm: there are no ${n} numbers`);
    return argsort(whole(runtime, [n], "uint32", generator, { low: 0, count: 2 ** 32 }));
  },
);

/** Options of {@link multinomial}. */
export interface MultinomialOptions extends DrawOptions {
  /** Whether a class may be drawn more than once. Default false, as in torch. */
  readonly replacement?: boolean;
}

/**
 * Classes drawn by their probabilities [..., classes], which need not add up to 1, as uint32 [..., count]. No gradient flows: for a policy
 * gradient weight the log-probabilities of what was drawn.
 *
 * A class of probability 0 is never drawn, and a negative probability counts as 0. The host reads no number, so it cannot refuse what torch
 * refuses. Such a draw gives the number of classes instead, an index out of range, for which `gather` gives NaN. That happens where no class is
 * left, because all are 0 or the others are used up, for a class of probability NaN, and with replacement in the whole row of a NaN or an
 * infinite sum.
 */
export const multinomial: (
  probabilities: Tensor,
  count: number,
  options: MultinomialOptions,
) => Tensor = checked(
  "multinomial",
  {
    probabilities: kinds.tensor,
    count: kinds.integer,
    options: kinds.options({
      generator: kinds.generator,
      replacement: kinds.optional(kinds.flag),
    }),
  },
  (
    probabilities: Tensor,
    count: number,
    { generator, replacement = false }: MultinomialOptions,
  ): Tensor => {
    const lead = probabilities.shape.slice(0, -1);
    const classes = probabilities.shape.at(-1);
    if (!classes || count < 1 || (count > classes && !replacement))
      throw new ShapeError(
        `multinomial: ${count} of the classes of [${probabilities.shape}] cannot be drawn${classes ? " without replacement" : ""}`,
      );
    return noGrad(() => {
      const weights = castTo(probabilities, "float32");
      const { runtime } = weights;
      if (!replacement) {
        // The race of exponential clocks: the first to ring are a sample without replacement (Efraimidis and Spirakis 2006).
        const clocks = rand(runtime, weights.shape, { generator }).neg().add(1).log().neg();
        const { values, indices } = topK(weights.div(clamp(clocks, { min: 2 ** -30 })), count);
        return where(gt(values, 0), indices, classes);
      }
      const upTo = cumsum(clamp(weights, { min: 0 }), -1);
      const total = slice(upTo, -1, { start: -1 });
      const drawn = rand(runtime, [...lead, count], { generator }).mul(total);
      // Not the same as `le`: nothing is above NaN.
      const passed = logicalNot(gt(unsqueeze(upTo, -2), unsqueeze(drawn, -1)));
      return sum(passed, -1);
    });
  },
);
