import type { DType } from "@halfstep/device";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { noGrad } from "../autograd/grad-mode.js";
import { castTo } from "../dispatch/cast.js";
import { ShapeError } from "../errors.js";
import type { Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import { le } from "./comparison.js";
import type { Generator } from "./generator.js";
import { rand } from "./random.js";
import { sum } from "./reduce.js";
import { cumsum } from "./scan.js";
import { argsort } from "./sorting.js";
import { topK } from "./top-k.js";

/** Options of {@link randint}. */
export interface RandintOptions {
  readonly generator: Generator;
  /** The smallest number. Default 0. */
  readonly low?: number;
  /** The first number that is not drawn: at most low + 2^24. */
  readonly high: number;
  /** Default int32. */
  readonly dtype?: DType;
}

/** Whole numbers from `low` up to `high`, without it, each as probable as 24 random bits allow. */
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
    const range = high - low;
    if (!(range >= 1 && range <= 2 ** 24))
      throw new RangeError(
        `randint: from ${low} to ${high} there are ${range} numbers; 1 to 2^24 are drawn`,
      );
    return castTo(whole(runtime, shape, generator, range).add(low), dtype);
  },
);

/** Numbers from 0 up to `range`, as int32. A product of a number just below 1 may be rounded up to the range. */
const whole = (
  runtime: Runtime,
  shape: readonly number[],
  generator: Generator,
  range: number,
): Tensor =>
  castTo(rand(runtime, shape, { generator }).mul(range), "int32").clamp({ max: range - 1 });

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
    const half = (): Tensor => whole(runtime, [n], generator, 2 ** 16);
    return argsort(
      half()
        .mul(2 ** 16)
        .add(half()),
    );
  },
);

/** Options of {@link multinomial}. */
export interface MultinomialOptions extends DrawOptions {
  /** Whether a class may be drawn more than once. Default false, as in torch. */
  readonly replacement?: boolean;
}

/**
 * Classes drawn by their probabilities [..., classes], which need not add up to 1, as uint32 [..., count]. A class of probability 0 is drawn
 * only where the others are used up. No gradient flows: for a policy gradient weight the log-probabilities of what was drawn.
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
    if (!classes || count < 1)
      throw new ShapeError(
        `multinomial: ${count} of the classes of [${probabilities.shape}] cannot be drawn`,
      );
    return noGrad(() => {
      const weights = castTo(probabilities, "float32");
      const { runtime } = weights;
      if (!replacement) {
        // The race of exponential clocks: the first to ring are a sample without replacement (Efraimidis and Spirakis 2006).
        const clocks = rand(runtime, weights.shape, { generator }).neg().add(1).log().neg();
        return topK(weights.div(clocks.clamp({ min: 2 ** -30 })), count).indices;
      }
      const upTo = cumsum(weights, -1);
      const total = upTo.slice(-1, { start: -1 });
      const drawn = rand(runtime, [...lead, count], { generator }).mul(total);
      const passed = le(upTo.unsqueeze(-2), drawn.unsqueeze(-1));
      return sum(passed, -1);
    });
  },
);
