import type { Binding, DType, HalfDType, KernelView, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { FLAG_WORDS } from "@halfstep/grad-scaler";
import { describe, expect, it } from "vitest";
import { accumulating, canAccumulate } from "../src/accumulating.js";
import { conv2dWeightGradient } from "../src/conv2d.js";
import { accumulate, isAccumulation } from "../src/copies/assign.js";
import { permute } from "../src/copies/permute.js";
import { flagBits } from "../src/found-flag.js";
import { defineKernel } from "../src/kernel.js";
import { matmulWithRowSums } from "../src/matmul/with-row-sums.js";
import { matmul } from "../src/matmul.js";
import { normBackward } from "../src/norms/backward.js";
import { gradientFlag } from "../src/observers/gradient-flag.js";
import { canObserveStores, observingStores } from "../src/observers/observing-stores.js";
import { canStoreTwice, storingTwice } from "../src/twin.js";
import { type Launches, runOnCpu, runOnGpu, testValues } from "./harness.js";
import { producers } from "./producers.js";
import { families, smallest } from "./quad-stores.js";

type Reads = Readonly<Record<"a" | "b" | "c" | "d" | "e" | "f" | "g", Binding<unknown>>>;

/** Launches that store one or two results, which are added to existing ones here. */
interface Case {
  readonly reads: Readonly<Partial<Record<keyof Reads, Float32Array>>>;
  readonly labels?: Uint32Array;
  /** How they are stored. Default float32. */
  readonly dtype?: DType;
  readonly lengths: readonly [result: number, other?: number];
  run<B>(
    target: LaunchTarget<B>,
    reads: Readonly<Record<keyof Reads | "labels", Binding<B>>>,
    out: Binding<B>,
    other: Binding<B>,
  ): void;
}

/** How results are stored, those that are added and the sums. */
interface Way {
  readonly dtype: DType;
  readonly rounding?: HalfDType;
  readonly sum: DType;
}

const ways: readonly Way[] = [
  { dtype: "float32", sum: "float32" },
  { dtype: "float32", rounding: "float16", sum: "float32" },
  { dtype: "bfloat16", sum: "float32" },
  { dtype: "float16", sum: "float16" },
  { dtype: "bfloat16", sum: "bfloat16" },
];

const product = (m: number, n: number, k: number): Case => ({
  reads: { a: testValues(k * m, 1), b: testValues(k * n, 2) },
  lengths: [m * n, m],
  run: (target, { a, b }, out, rowSums) =>
    matmulWithRowSums(target, { a, b, out, rowSums }, { m, n, k }),
});

function convolution(
  [height, width, inChannels]: readonly [number, number, number],
  outChannels: number,
  kernelSize: number,
  stride = 1,
  groups = 1,
): Case {
  const size = [height, width].map((n) => Math.floor((n - 1) / stride) + 1) as [number, number];
  const both = (n: number) => [n, n] as const;
  const shape = { batch: 2, height, width, inChannels, outChannels, groups };
  const window = { kernelHeight: kernelSize, kernelWidth: kernelSize, stride: both(stride) };
  const padding = both((kernelSize - 1) / 2);
  return {
    reads: {
      a: testValues(2 * height * width * inChannels, 3),
      b: testValues(2 * size[0] * size[1] * outChannels, 4),
    },
    lengths: [(kernelSize ** 2 * inChannels * outChannels) / groups],
    run: (target, { a, b }, weightGradient) =>
      conv2dWeightGradient(
        target,
        { input: a, outGradient: b, weightGradient },
        { ...shape, ...window, padding, dilation: both(1) },
      ),
  };
}

const norm = (batch: number, width: number): Case => ({
  reads: {
    ...{ a: testValues(batch * width, 5), b: testValues(batch, 6), d: testValues(width, 7) },
    ...{ c: testValues(batch, 8).map(Math.abs), e: testValues(batch * width, 9) },
    f: new Float32Array(batch * width),
  },
  lengths: [width, width],
  run: (target, { a, b, c, d, e, f }, weightGradient, biasGradient) =>
    normBackward(
      target,
      {
        ...{ input: a, mean: b, rstd: c, weight: d, outGradient: e },
        ...{ inputGradient: f, weightGradient, biasGradient },
      },
      { batch, pixels: 1, groups: 1, width },
    ),
});

const cases: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(
    Object.entries(producers).map(([name, { a, b, length, run }]): [string, Case] => [
      name,
      {
        reads: { a, ...(b && { b }) },
        lengths: [length],
        run: (target, reads, out) => run(target, reads.a, reads.b, out),
      },
    ]),
  ),
  "product and the sums of its rows": product(36, 40, 70),
  "both in parts": product(10, 9, 1100),
  "window of one": convolution([9, 7, 8], 12, 1),
  "window of 3 × 3 over three channels": convolution([8, 8, 3], 16, 3),
  "window of 3 × 3 over 16 channels": convolution([8, 9, 16], 18, 3),
  "window of 3 × 3 by two": convolution([9, 9, 5], 7, 3, 2),
  "window in groups": convolution([6, 6, 8], 12, 3, 1, 2),
  "window of single channels": convolution([6, 6, 8], 8, 3, 1, 8),
  "rows that are moved as they are": {
    reads: { a: testValues(6 * 5 * 8, 10) },
    dtype: "bfloat16",
    lengths: [6 * 5 * 8],
    run: (target, { a }, out) =>
      target.launch(permute({ input: a, out }, { shape: [6, 5, 8], order: [1, 0, 2] })),
  },
  "norm of few rows": norm(5, 12),
  "norm of many rows": norm(1200, 10),
};

/** Each kind of store that takes an epilogue. In operations of several launches it is the last launch. */
const stores: Readonly<Record<string, Case>> = Object.fromEntries(
  Object.entries({ ...families, ...smallest }).map(([name, family]): [string, Case] => [
    name,
    {
      reads: Object.fromEntries(
        Object.entries(family.operands)
          .filter(([operand]) => operand !== "labels")
          .map(([operand, length], i) => [
            operand,
            testValues(length, i + 1).map((v) =>
              family.statistics?.includes(operand) ? Math.abs(v) + 0.5 : v,
            ),
          ]),
      ),
      labels: Uint32Array.from({ length: family.operands.labels ?? 0 }, (_, i) => (i * 5) % 6),
      lengths: [family.length],
      run: (target, reads, out) => family.run(target, reads, out),
    },
  ]),
);

const operandsOf = (
  { reads, labels = new Uint32Array(), dtype: given = "float32", lengths }: Case,
  { dtype, rounding, sum }: Way,
) => {
  const [length, other = 4] = lengths;
  const read = (name: keyof Reads) => ({ values: reads[name] ?? 4, dtype: given });
  const alone = { dtype, ...(rounding && { rounding }) };
  const before = (count: number, seed: number) => ({ values: testValues(count, seed), dtype: sum });
  return {
    ...{ a: read("a"), b: read("b"), c: read("c"), d: read("d"), e: read("e") },
    ...{ f: read("f"), g: read("g") },
    labels: { values: labels.length > 0 ? labels : 4, dtype: "uint32" },
    result: { values: length, ...alone },
    otherResult: { values: other, ...alone },
    again: { values: length, ...alone },
    otherAgain: { values: other, ...alone },
    ...{ two: before(length, 20), otherTwo: before(other, 21) },
    ...{ one: before(length, 20), otherOne: before(other, 21) },
  } as const;
};

/** The same target, on which launches that store a result add it to a sum, instead of the store or in addition. */
const adding = <B>(
  target: LaunchTarget<B>,
  sums: readonly { readonly result: Binding<B>; readonly sum: Binding<B> }[],
  { rounding, isWanted }: { rounding: HalfDType | undefined; isWanted: boolean },
): LaunchTarget<B> => ({
  allocate: (bytes) => target.allocate(bytes),
  launch(launch) {
    let added = launch;
    for (const { result, sum } of sums) {
      let place = launch.bindings.findIndex(({ buffer }) => buffer === result.buffer);
      if (place < 0 || launch.kernel.bindings[place]?.access === "read") continue;
      if (isWanted) {
        const { kernel } = added;
        if (!canStoreTwice(kernel)) throw new TypeError(`${kernel.name} stores once only`);
        added = storingTwice({ ...added, kernel }, place, sum);
        place = added.bindings.length - 1;
      }
      const { kernel } = added;
      if (!canAccumulate(kernel, place)) throw new TypeError(`${kernel.name} cannot accumulate`);
      added = accumulating({ ...added, kernel }, place, sum, rounding);
    }
    target.launch(added);
  },
});

const halfOf = (dtype: DType): HalfDType | undefined =>
  dtype === "float16" || dtype === "bfloat16" ? dtype : undefined;

const launchesOf =
  (
    example: Case,
    { dtype, rounding }: Way,
    isWanted: boolean,
  ): Launches<ReturnType<typeof operandsOf>> =>
  (target, { result, otherResult, two, otherTwo, again, otherAgain, one, otherOne, ...reads }) => {
    example.run(target, reads, result, otherResult);
    target.launch(accumulate({ input: result, out: two }));
    if (example.lengths.length === 2)
      target.launch(accumulate({ input: otherResult, out: otherTwo }));
    const sums = [
      { result: again, sum: one },
      { result: otherAgain, sum: otherOne },
    ];
    const added = adding(target, sums, { rounding: rounding ?? halfOf(dtype), isWanted });
    example.run(added, reads, again, otherAgain);
  };

/** The cases where one launch and two launches differ in bits, or where nothing was added. */
function mistakes(
  { lengths }: Case,
  results: Readonly<Record<keyof ReturnType<typeof operandsOf>, KernelView>>,
  isWanted: boolean,
): string[] {
  const { one, otherOne, two, otherTwo, result, otherResult, again, otherAgain } = results;
  const differences = (sum: KernelView, expected: KernelView): string[] =>
    [...expected.keys()]
      .filter((i) => !Object.is(sum[i], expected[i]))
      .map((i) => `${i}: ${sum[i]} instead of ${expected[i]}`);
  const isEmpty = result.every((value) => value === 0);
  return [
    ...(isEmpty && result.length > 1 ? ["nothing was added"] : []),
    ...differences(one, two),
    ...(isWanted ? differences(again, result) : []),
    ...(lengths.length === 2 ? differences(otherOne, otherTwo) : []),
    ...(lengths.length === 2 && isWanted ? differences(otherAgain, otherResult) : []),
  ].slice(0, 4);
}

describe("a launch that adds to a sum leaves the bits of two", async () => {
  it("on the CPU", () => {
    const wrong: Record<string, readonly string[]> = {};
    for (const [name, example] of Object.entries({ ...cases, ...stores }))
      for (const way of ways)
        for (const isWanted of [false, true]) {
          const launches = launchesOf(example, way, isWanted);
          const found = mistakes(example, runOnCpu(operandsOf(example, way), launches), isWanted);
          if (found.length > 0) wrong[`${name}, ${Object.values(way)}`] = found;
        }
    expect(wrong).toEqual({});
  });

  it.each(await testTiers())("on the %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    // A program takes a quarter of a second to compile: each case has one way on a tier, and one of the two has half of the
    // cases alone.
    const all = Object.entries(tier !== "packed" ? { ...cases, ...stores } : cases);
    for (const [i, [name, example]] of all.entries()) {
      const { dtype } = example;
      if (tier === "packed" && i % 2 === 1) continue;
      const place = (i + (tier !== "packed" ? 0 : 2)) % ways.length;
      const way = dtype ? { dtype, sum: dtype } : (ways[place] as Way);
      const isWanted = !dtype && i % 3 === 1;
      const launches = launchesOf(example, way, isWanted);
      const results = await runOnGpu(device, operandsOf(example, way), launches);
      const found = mistakes(example, results, isWanted);
      if (found.length > 0) wrong[`${name}, ${Object.values(way)}`] = found;
    }
    expect(wrong).toEqual({});
  });
});

describe("who looks at what is stored sees the sum", async () => {
  const [m, n, k] = [4, 8, 4];
  const operands = {
    a: { values: new Float32Array(m * k).fill(3e38 / k) },
    b: { values: new Float32Array(k * n).fill(1) },
    // Each of the two is finite.
    sum: { values: new Float32Array(m * n).fill(3e38) },
    other: { values: new Float32Array(m * n).fill(-3e38) },
    flag: { values: FLAG_WORDS, dtype: "uint32" },
    otherFlag: { values: FLAG_WORDS, dtype: "uint32" },
  } as const;
  const launches: Launches<typeof operands> = (target, { a, b, ...bound }) => {
    const into = (sum: typeof a, words: typeof a): typeof target => ({
      allocate: (bytes) => target.allocate(bytes),
      launch({ kernel, ...launch }) {
        const place = launch.bindings.length - 1;
        if (!canAccumulate(kernel, place)) throw new TypeError(`${kernel.name} cannot accumulate`);
        const { kernel: adds, ...added } = accumulating({ ...launch, kernel }, place, sum);
        if (!canObserveStores(adds)) throw new TypeError(`${adds.name} cannot be observed`);
        const observation = { observer: gradientFlag, words };
        target.launch(observingStores({ ...added, kernel: adds }, [place], observation));
      },
    });
    matmul(into(bound.sum, bound.flag), { a, b, out: bound.sum }, { m, n, k });
    matmul(into(bound.other, bound.otherFlag), { a, b, out: bound.other }, { m, n, k });
  };
  const flags = ({ flag, otherFlag }: Readonly<Record<"flag" | "otherFlag", KernelView>>) => [
    flag[0],
    otherFlag[0],
  ];

  it("on the CPU", () => expect(flags(runOnCpu(operands, launches))).toEqual([flagBits, 0]));

  it.each(await testTiers())("on the %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    expect(flags(await runOnGpu(device, operands, launches))).toEqual([flagBits, 0]);
  });
});

describe("a kernel that adds to a result", () => {
  const example = defineKernel({
    name: "example",
    epilogue: "store",
    storedOnce: ["other"],
    bindings: [
      { name: "x", access: "read" },
      { name: "parts", access: "write" },
      { name: "other", access: "write" },
      { name: "out", access: "write" },
    ],
    body: () => "",
    workgroups: () => [1, 1, 1],
    reference() {},
  });

  it("stores it once, as it says", () => {
    expect([0, 1, 2, 3].map((place) => canAccumulate(example, place))).toEqual([
      ...[false, false, true, true],
    ]);
    const twice = example.withTwin?.("out");
    expect(twice && [2, 3, 4].map((place) => canAccumulate(twice, place))).toEqual([
      ...[true, false, true],
    ]);
  });

  it("is made once, reads that result too, and takes no epilogue any more", () => {
    const kernel = example.accumulating?.("out", "float16");
    expect(example.accumulating?.("out", "float16")).toBe(kernel);
    expect(example.accumulating?.("out")).not.toBe(kernel);
    expect(kernel?.name).toBe("example+accumulate");
    expect(kernel?.bindings.map(({ access }) => access)).toEqual([
      ...["read", "write", "write", "readwrite"],
    ]);
    expect(kernel && "withEpilogue" in kernel).toBe(false);
    expect(kernel && [2, 3].map((place) => canAccumulate(kernel, place))).toEqual([true, false]);
  });

  it("is not accumulate itself", () => {
    const binding = { buffer: {}, offset: 0, length: 4, dtype: "float32" } as const;
    expect(isAccumulation(accumulate({ input: binding, out: binding }).kernel)).toBe(true);
    expect(isAccumulation(example)).toBe(false);
  });
});
