import type { DType, HalfDType, Launch, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  type Launches,
  mismatches,
  packedInLanes,
  runOnCpu,
  runOnGpu,
  scalarsOf,
  testValues,
  withoutSubgroups,
} from "../test/harness.js";
import { conv2d, conv2dInputGradient } from "./conv2d.js";
import { type ElementwiseProgram, elementwiseKernel } from "./elementwise.js";
import { epilogueFits, takesEpilogue, withEpilogue } from "./epilogue.js";
import { add, gelu, mul, relu, scale, silu } from "./expressions.js";
import { matmul } from "./matmul.js";
import { dropoutExpression as dropout } from "./random.js";

interface Case {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch?: number;
  readonly storage: "float32" | HalfDType;
  readonly program: ElementwiseProgram;
  /** A convolution of 2 × 4 images, of 4 channels with windows of 3 × 3, instead: m is 8, and k 36. */
  readonly convolution?: "forward" | "input gradient";
}

/** (result + bias · 0.5, relu) + residual, in which every step rounds as a launch of its own would. */
const program = (rounding?: HalfDType): ElementwiseProgram => ({
  inputs: ["same", "row", "same"],
  steps: [
    { expression: scale, operands: [1], ...(rounding && { rounding }) },
    { expression: add, operands: [0, 3], ...(rounding && { rounding }) },
    { expression: relu, operands: [4], ...(rounding && { rounding }) },
    { expression: add, operands: [5, 2] },
  ],
  outputs: [3],
});
/** result · result · each row's own number, then gelu or silu. */
const squared = (last: typeof gelu): ElementwiseProgram => ({
  inputs: ["same", "strided2", "scalar"],
  steps: [
    { expression: mul, operands: [0, 0] },
    { expression: mul, operands: [3, 1] },
    { expression: mul, operands: [4, 2] },
    { expression: last, operands: [5] },
  ],
  outputs: [3],
});
/** dropout(result + bias) + residual, and some of that dropped too. */
const dropped = (rounding?: HalfDType): ElementwiseProgram => ({
  inputs: ["same", "row", "same"],
  steps: [
    { expression: add, operands: [0, 1], ...(rounding && { rounding }) },
    { expression: dropout, operands: [3], ...(rounding && { rounding }) },
    { expression: add, operands: [4, 2] },
    { expression: dropout, operands: [5] },
  ],
  outputs: [3],
});
/** The scalars of both: other numbers for each. The first source's block crosses 2^32 within the draw. */
const drawn: Readonly<Record<string, number>> = {
  ...{ c1_0: 2, c1_1: 2 ** 23, c1_seed0: 7, c1_seed1: 9, c1_stream: 1 },
  ...{ c1_block0: 2 ** 32 - 5, c1_block1: 3 },
  ...{ c3_0: 1.25, c3_1: 0.8 * 2 ** 24, c3_seed0: 7, c3_seed1: 9, c3_stream: 2 },
  ...{ c3_block0: 11, c3_block1: 0 },
};

// Quads, pairs of rows, an odd number of rows of pairs, rows of a result that begin inside a store, and parts of k.
//
// Tiles of 32 rows take a GPU's compiler five times as long as those of 8: the first case has them.
const cases: readonly Case[] = [
  { m: 37, n: 36, k: 20, storage: "float32", program: program() },
  { m: 7, n: 36, k: 20, storage: "float16", program: program("float16") },
  { m: 7, n: 10, k: 12, storage: "bfloat16", program: program("bfloat16"), batch: 3 },
  { m: 5, n: 10, k: 12, storage: "float16", program: squared(silu) },
  { m: 6, n: 20, k: 8, storage: "float32", program: squared(gelu) },
  { m: 6, n: 7, k: 9, storage: "float16", program: program("float16") },
  { m: 8, n: 12, k: 1024, storage: "float32", program: program() },
  { m: 5, n: 6, k: 0, storage: "float16", program: program("float16") },
  { m: 8, n: 12, k: 36, storage: "float16", program: program("float16"), convolution: "forward" },
  { m: 8, n: 7, k: 36, storage: "float32", program: program(), convolution: "forward" },
  {
    m: 8,
    n: 10,
    k: 36,
    storage: "bfloat16",
    program: squared(silu),
    convolution: "input gradient",
  },
  { m: 7, n: 28, k: 20, storage: "float16", program: dropped("float16") },
  { m: 7, n: 20, k: 12, storage: "bfloat16", program: dropped("bfloat16"), batch: 3 },
  { m: 5, n: 7, k: 12, storage: "float32", program: dropped() },
  { m: 8, n: 12, k: 1024, storage: "float32", program: dropped() },
  { m: 8, n: 20, k: 36, storage: "float16", program: dropped("float16"), convolution: "forward" },
  { m: 8, n: 7, k: 36, storage: "float32", program: dropped(), convolution: "forward" },
];

const title = ({ m, n, k, storage, convolution, program: { steps } }: Case): string =>
  `${convolution ?? "product"} [${m},${k}]·[${k},${n}] ${storage} ${steps.map(({ expression }) => expression.name).join("+")}`;

const operandsOf = ({ m, n, k, batch = 1, storage, convolution, program: { inputs } }: Case) =>
  ({
    a: { values: testValues(convolution ? m * 4 : batch * m * k, 1), dtype: storage },
    b: { values: testValues(batch * k * n, 2), dtype: storage },
    x1: { values: testValues(inputs[1] === "row" ? n : batch * m, 3), dtype: storage },
    x2: { values: testValues(inputs[2] === "same" ? batch * m * n : 1, 4), dtype: "float32" },
    product: { values: batch * m * n, dtype: storage },
    out: { values: batch * m * n, dtype: storage as DType },
  }) as const;

function launchProduct<B>(
  target: LaunchTarget<B>,
  { a, b, out }: Record<"a" | "b" | "out", Launch<B>["bindings"][number]>,
  shape: Case,
): void {
  const { n, convolution } = shape;
  const attributes = {
    batch: 1,
    height: 2,
    width: 4,
    inChannels: 4,
    outChannels: n,
    kernelHeight: 3,
    kernelWidth: 3,
    stride: [1, 1],
    padding: [1, 1],
    dilation: [1, 1],
  } as const;
  if (!convolution) matmul(target, { a, b, out }, shape);
  else if (convolution === "forward") conv2d(target, { input: a, weight: b, out }, attributes);
  else
    conv2dInputGradient(
      target,
      { outGradient: a, weight: b, inputGradient: out },
      { ...attributes, inChannels: n, outChannels: 4 },
    );
}

/** The product and its epilogue, in one launch or in two. */
const launchesOf =
  (shape: Case, isWoven: boolean): Launches<ReturnType<typeof operandsOf>> =>
  <B>(
    target: LaunchTarget<B>,
    { a, b, x1, x2, product, out }: Record<string, Launch<B>["bindings"][number]>,
  ) => {
    if (!a || !b || !x1 || !x2 || !product || !out) return;
    const { m, n, batch = 1, storage } = shape;
    const kernel = elementwiseKernel(shape.program);
    const launch = {
      kernel,
      bindings: [product, x1, x2, out],
      scalars: scalarsOf(kernel, {
        count: out.length,
        one: 1,
        c0_0: 0.5,
        ...drawn,
        x1_size0: shape.program.inputs[1] === "row" ? n : batch * m,
        x1_size1: n,
        x1_stride0: 1,
        x1_stride1: 0,
      }),
    };
    const launches: Launch<B>[] = [];
    const recorder = {
      allocate: (bytes: number) => target.allocate(bytes),
      launch: (l: Launch<B>) => launches.push(l),
    };
    launchProduct(recorder, { a, b, out: product }, shape);
    const last = launches.pop() as Launch<B>;
    for (const earlier of launches) target.launch(earlier);
    if (!isWoven) {
      target.launch(last);
      target.launch(launch);
      return;
    }
    if (!takesEpilogue(last.kernel)) throw new TypeError(`${last.kernel.name} takes no epilogue`);
    const options = storage === "float32" ? {} : { rounding: storage };
    target.launch(
      withEpilogue({ ...last, kernel: last.kernel }, launch, { results: [0], ...options }),
    );
  };

const exactly = { relative: 0, absolute: 0 };

const tiers = await testTiers();
const withoutAny = await packedInLanes();

describe("a product with an epilogue", () => {
  it.each(cases.map((shape) => ({ name: title(shape), shape })))(
    "leaves the bits of two launches on the CPU: $name",
    ({ shape }) => {
      const [one, two] = [true, false].map((isWoven) =>
        runOnCpu(operandsOf(shape), launchesOf(shape, isWoven)),
      );
      expect(two?.out.some((x) => x !== 0)).toBe(true);
      expect(mismatches(one?.out ?? [], two?.out ?? [], exactly)).toEqual([]);
    },
  );

  it.each(tiers)("leaves the bits of two launches on the GPU (%s)", async (tier) => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    for (const shape of cases) {
      const one = await runOnGpu(device, operandsOf(shape), launchesOf(shape, true));
      const two = await runOnGpu(device, operandsOf(shape), launchesOf(shape, false));
      const found = mismatches(one.out, two.out, exactly);
      if (found.length > 0) wrong[title(shape)] = found;
    }
    expect(wrong).toEqual({});
  });

  it.each(withoutAny)(
    "leaves the bits of two launches on a GPU without subgroups (%s)",
    async (tier) => {
      const device = await requestTestDevice({ tier });
      const wrong: Record<string, readonly string[]> = {};
      // They store by the same functions, and take every other case: these have products whole and in parts, both convolutions, quads,
      // pairs and odd columns, and random numbers.
      for (const shape of cases.filter((_, i) => i % 2 === 0)) {
        const run = (isWoven: boolean) =>
          runOnGpu(device, operandsOf(shape), (target, operands) =>
            launchesOf(shape, isWoven)(withoutSubgroups(target), operands),
          );
        const found = mismatches((await run(true)).out, (await run(false)).out, exactly);
        if (found.length > 0) wrong[title(shape)] = found;
      }
      expect(wrong).toEqual({});
    },
  );

  it.each([
    [32, true],
    [10, false],
    [7, true],
  ])("draws random numbers where %i columns make whole quads: %s", (n, isWhole) => {
    const launches: Launch<undefined>[] = [];
    const bind = (length: number) =>
      ({ buffer: undefined, offset: 0, length, dtype: "float32" }) as const;
    matmul(
      { allocate: () => undefined, launch: (l: Launch<undefined>) => launches.push(l) },
      { a: bind(16), b: bind(4 * n), out: bind(4 * n) },
      { m: 4, n, k: 4 },
    );
    const product = launches.at(-1);
    if (!product || !takesEpilogue(product.kernel)) throw new TypeError("no product");
    const { kernel } = product;
    const drops = {
      kernel: elementwiseKernel(dropped()),
      bindings: [bind(4 * n), bind(n), bind(4 * n), bind(4 * n)],
      scalars: { count: 4 * n, one: 1, x1_size0: n, ...drawn },
    };
    const woven = { ...product, kernel };
    expect(epilogueFits(woven, drops, { results: [0] })).toBe(isWhole);
    const exact = { ...drops, kernel: elementwiseKernel(program()) };
    expect(epilogueFits(woven, exact, { results: [0] })).toBe(true);
    const weave = () => withEpilogue(woven, drops, { results: [0] });
    if (isWhole) expect(weave().kernel.name).toContain("+add+dropout+add+dropout");
    else expect(weave).toThrow("random numbers are drawn for quads, and this stores pairs");
  });

  it("does not take two results", () => {
    const launches: Launch<undefined>[] = [];
    const bind = (length: number) =>
      ({ buffer: undefined, offset: 0, length, dtype: "float32" }) as const;
    matmul(
      { allocate: () => undefined, launch: (l: Launch<undefined>) => launches.push(l) },
      { a: bind(16), b: bind(16), out: bind(16) },
      { m: 4, n: 4, k: 4 },
    );
    const [product] = launches;
    if (!product || !takesEpilogue(product.kernel)) throw new TypeError("no product");
    const { kernel } = product;
    const two: ElementwiseProgram = {
      inputs: ["same"],
      steps: [{ expression: relu, operands: [0] }],
      outputs: [0, 0],
    };
    const masks = {
      kernel: elementwiseKernel(two),
      bindings: [bind(16), bind(16), bind(16)],
      scalars: { count: 16, one: 1 },
    };
    expect(() => withEpilogue({ ...product, kernel }, masks, { results: [0] })).toThrow(
      "matmul+relu: an epilogue stores one result, not 2",
    );
  });
});
