import type { DType, HalfDType, KernelView, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  casesOf,
  type Launches,
  mismatches,
  packedInLanes,
  runOnCpu,
  runOnGpu,
  testValues,
  unitRoundoff,
  withoutSubgroups,
} from "../test/harness.js";
import {
  type Conv2dAttributes,
  conv2d,
  conv2dInputGradient,
  conv2dOutputSize,
  conv2dWeightGradient,
} from "./conv2d.js";

type FloatDType = "float32" | HalfDType;

interface Case {
  readonly attributes: Conv2dAttributes;
  /** Storage of the two operands and of the result, in each direction. */
  readonly storage: readonly [left: FloatDType, right: FloatDType, result: FloatDType];
  readonly rounding?: HalfDType;
}

const square = (
  [batch, size, inChannels, outChannels, kernel]: readonly [number, number, number, number, number],
  more: Partial<Conv2dAttributes> = {},
): Conv2dAttributes => ({
  batch,
  height: size,
  width: size,
  inChannels,
  outChannels,
  kernelHeight: kernel,
  kernelWidth: kernel,
  stride: [1, 1],
  padding: [1, 1],
  dilation: [1, 1],
  ...more,
});

const single = ["float32", "float32", "float32"] as const;
const brain = ["bfloat16", "bfloat16", "bfloat16"] as const;

const cases: readonly Case[] = [
  {
    attributes: square([3, 28, 1, 16, 3]),
    storage: ["float32", "float16", "float16"],
    rounding: "float16",
  },
  {
    attributes: square([2, 17, 3, 10, 3], { width: 12, padding: [0, 2] }),
    storage: ["bfloat16", "float32", "float32"],
    rounding: "bfloat16",
  },
  { attributes: square([2, 14, 16, 32, 3]), storage: ["float16", "float16", "float16"] },
  { attributes: square([2, 9, 16, 16, 3]), storage: ["float16", "float16", "float16"] },
  { attributes: square([1, 8, 10, 12, 3], { width: 16, padding: [0, 0] }), storage: single },
  { attributes: square([1, 7, 12, 10, 3], { width: 14, padding: [2, 2] }), storage: single },
  {
    attributes: square([2, 14, 10, 12, 3]),
    storage: ["float16", "float32", "float16"],
    rounding: "float16",
  },
  {
    attributes: square([2, 7, 32, 64, 3]),
    storage: ["bfloat16", "float32", "float32"],
    rounding: "bfloat16",
  },
  { attributes: square([2, 9, 8, 20, 3], { stride: [2, 2] }), storage: single },
  {
    attributes: square([1, 11, 3, 5, 3], {
      stride: [2, 1],
      padding: [0, 2],
      dilation: [1, 2],
      width: 6,
    }),
    storage: brain,
  },
  {
    attributes: square([2, 10, 4, 7, 2], {
      kernelWidth: 4,
      stride: [3, 2],
      padding: [1, 0],
      dilation: [2, 1],
    }),
    storage: single,
  },
  { attributes: square([5, 3, 6, 4, 1], { padding: [0, 0] }), storage: single },
  { attributes: square([3, 2, 4, 8, 5], { padding: [2, 2] }), storage: single },
  { attributes: square([2, 9, 6, 9, 3], { groups: 3, stride: [2, 1] }), storage: single },
  {
    attributes: square([2, 12, 8, 8, 3], { groups: 8, dilation: [1, 2], padding: [1, 2] }),
    storage: ["float16", "float32", "float16"],
    rounding: "float16",
  },
  { attributes: square([1, 7, 4, 8, 3], { groups: 4, stride: [2, 2] }), storage: single },
  {
    attributes: square([2, 9, 8, 16, 3], { groups: 2, stride: [2, 1], width: 5 }),
    storage: ["float16", "float32", "float16"],
    rounding: "float16",
  },
  { attributes: square([1, 6, 12, 15, 3], { groups: 3, stride: [1, 2] }), storage: single },
  { attributes: square([1, 5, 8, 8, 1], { stride: [2, 3], padding: [0, 0] }), storage: single },
  {
    attributes: square([2, 5, 8, 8, 3], { groups: 8, width: 35, padding: [3, 0] }),
    storage: ["bfloat16", "float32", "float32"],
    rounding: "bfloat16",
  },
  {
    attributes: square([2, 7, 8, 8, 3], { groups: 8, width: 21, stride: [2, 2] }),
    storage: ["float16", "float32", "float16"],
    rounding: "float16",
  },
  {
    attributes: square([2, 7, 12, 12, 3], {
      groups: 12,
      width: 38,
      stride: [3, 2],
      padding: [1, 2],
    }),
    storage: single,
  },
];

/** Nothing to add up: every gradient is zero. */
const empty: readonly Case[] = [
  { attributes: square([0, 5, 4, 8, 3]), storage: single },
  { attributes: square([2, 2, 3, 5, 5], { padding: [0, 0] }), storage: single },
];

const title = ({ attributes: a, storage }: Case): string =>
  `${a.batch}×${a.height}×${a.width}×${a.inChannels} → ${a.outChannels}, ${a.kernelHeight}×${a.kernelWidth}, stride ${a.stride}, padding ${a.padding}, dilation ${a.dilation}, groups ${a.groups ?? 1}, ${storage.join("·")}`;

/** Every product of the definition: visit(input, weight, output) with element indices. */
function eachProduct(
  a: Conv2dAttributes,
  visit: (input: number, weight: number, output: number) => void,
): void {
  const [outHeight, outWidth] = conv2dOutputSize(a);
  for (let b = 0; b < a.batch; b++)
    for (let oy = 0; oy < outHeight; oy++)
      for (let ox = 0; ox < outWidth; ox++)
        for (let i = 0; i < a.kernelHeight; i++)
          for (let j = 0; j < a.kernelWidth; j++) {
            const y = oy * a.stride[0] + i * a.dilation[0] - a.padding[0];
            const x = ox * a.stride[1] + j * a.dilation[1] - a.padding[1];
            if (y < 0 || y >= a.height || x < 0 || x >= a.width) continue;
            for (let c = 0; c < a.inChannels; c++)
              for (let o = 0; o < a.outChannels; o++) {
                const { groups = 1 } = a;
                const [ins, outs] = [a.inChannels / groups, a.outChannels / groups];
                if (Math.floor(c / ins) !== Math.floor(o / outs)) continue;
                visit(
                  ((b * a.height + y) * a.width + x) * a.inChannels + c,
                  ((i * a.kernelWidth + j) * ins + (c % ins)) * a.outChannels + o,
                  ((b * outHeight + oy) * outWidth + ox) * a.outChannels + o,
                );
              }
          }
}

const sizesOf = (a: Conv2dAttributes) => {
  const [outHeight, outWidth] = conv2dOutputSize(a);
  return {
    input: a.batch * a.height * a.width * a.inChannels,
    weight: (a.kernelHeight * a.kernelWidth * a.inChannels * a.outChannels) / (a.groups ?? 1),
    output: a.batch * outHeight * outWidth * a.outChannels,
  };
};

const directions = ["forward", "input", "weight"] as const;
type Direction = (typeof directions)[number];

const operandsOf = ({ attributes, storage, rounding }: Case, direction: Direction) => {
  const size = sizesOf(attributes);
  const [left, right, result] = {
    forward: [size.input, size.weight, size.output] as const,
    input: [size.output, size.weight, size.input] as const,
    weight: [size.input, size.output, size.weight] as const,
  }[direction];
  const rounded = rounding ? { rounding } : {};
  const dtypes: readonly DType[] = storage;
  return {
    left: { values: testValues(left, 1), dtype: dtypes[0] as DType, ...rounded },
    right: { values: testValues(right, 2), dtype: dtypes[1] as DType, ...rounded },
    result: { values: result, dtype: dtypes[2] as DType },
  };
};

const launchesOf =
  ({ attributes }: Case, direction: Direction): Launches<ReturnType<typeof operandsOf>> =>
  (target, { left, right, result }) => {
    if (direction === "forward")
      conv2d(target, { input: left, weight: right, out: result }, attributes);
    else if (direction === "input")
      conv2dInputGradient(
        target,
        { outGradient: left, weight: right, inputGradient: result },
        attributes,
      );
    else
      conv2dWeightGradient(
        target,
        { input: left, outGradient: right, weightGradient: result },
        attributes,
      );
  };

function naive(tested: Case, direction: Direction): Float64Array {
  const { left, right, result } = operandsOf(tested, direction);
  const sums = new Float64Array(result.values);
  const add = (at: number, x: number, y: number): void => {
    sums[at] = (sums[at] as number) + (left.values[x] as number) * (right.values[y] as number);
  };
  eachProduct(tested.attributes, (input, weight, output) => {
    if (direction === "forward") add(output, input, weight);
    else if (direction === "input") add(input, output, weight);
    else add(weight, input, output);
  });
  return sums;
}

const upTo = (most: number, least = 1) => fc.integer({ min: least, max: most });

/** With so many groups that `groups` times the channels drawn are divided evenly. */
const grouped = (groups: number, a: Conv2dAttributes): Conv2dAttributes => ({
  ...a,
  groups,
  inChannels: groups * a.inChannels,
  outChannels: groups * a.outChannels,
});

const geometry: fc.Arbitrary<Conv2dAttributes> = fc.record({
  batch: upTo(3),
  height: upTo(9),
  width: upTo(9),
  inChannels: upTo(5),
  outChannels: upTo(5),
  kernelHeight: upTo(4),
  kernelWidth: upTo(4),
  stride: fc.tuple(upTo(3), upTo(3)),
  padding: fc.tuple(upTo(3, 0), upTo(3, 0)),
  dilation: fc.tuple(upTo(3), upTo(3)),
});

/** Test values are multiples of 2^-7, so that float32 sums are exact and only the store rounds. */
const tolerance = ({ storage: [, , result] }: Case) => ({
  relative: result === "float32" ? 0 : unitRoundoff[result] * 1.001,
  absolute: 0,
});

describe("conv2d", () => {
  it("has torch's output size", () => {
    const size = (
      size: number,
      kernel: number,
      stride: number,
      padding: number,
      dilation: number,
    ) =>
      conv2dOutputSize({
        height: size,
        width: size,
        kernelHeight: kernel,
        kernelWidth: kernel,
        stride: [stride, stride],
        padding: [padding, padding],
        dilation: [dilation, dilation],
      })[0];
    // torch.nn.Conv2d(…)(torch.zeros(1, 1, size, size)).shape[2]
    expect([size(28, 3, 1, 1, 1), size(224, 7, 2, 3, 1), size(10, 3, 3, 0, 2)]).toEqual([
      28, 112, 2,
    ]);
    expect(size(2, 5, 1, 0, 1)).toBe(0);
  });

  it("names the operand whose length does not fit", () => {
    const attributes = square([1, 4, 2, 3, 3]);
    const wrong = {
      ...operandsOf({ attributes, storage: single }, "forward"),
      right: { values: 53 },
    };
    expect(() =>
      runOnCpu(wrong, (target, { left, right, result }) =>
        conv2d(target, { input: left, weight: right, out: result }, attributes),
      ),
    ).toThrow("conv2d: weight has 53 elements, but the attributes need 54");
  });

  it("refuses groups that do not divide the channels", () => {
    const attributes = square([1, 4, 4, 6, 3], { groups: 4 });
    const tested = { attributes: square([1, 4, 4, 6, 3]), storage: single };
    expect(() =>
      runOnCpu(operandsOf(tested, "forward"), launchesOf({ ...tested, attributes }, "forward")),
    ).toThrow("conv2d: 4 input and 6 output channels cannot be divided into 4 groups");
  });

  it("refuses a stride of zero", () => {
    const attributes = square([1, 4, 2, 3, 3], { stride: [0, 1] });
    const tested = { attributes: square([1, 4, 2, 3, 3]), storage: single };
    expect(() =>
      runOnCpu(operandsOf(tested, "forward"), launchesOf({ ...tested, attributes }, "forward")),
    ).toThrow("conv2d: stride [0,1]");
  });
});

describe.each(directions)("conv2d on the CPU: %s", (direction) => {
  it.each([...cases, ...empty].map((tested) => ({ tested, name: title(tested) })))(
    "$name",
    ({ tested }) => {
      const { result } = runOnCpu(operandsOf(tested, direction), launchesOf(tested, direction));
      expect(mismatches(result, naive(tested, direction), tolerance(tested))).toEqual([]);
    },
  );

  it("takes any geometry", () => {
    fc.assert(
      fc.property(geometry, upTo(4), (a, groups) => {
        const attributes = grouped(groups, a);
        const tested = { attributes, storage: single };
        const { result } = runOnCpu(operandsOf(tested, direction), launchesOf(tested, direction));
        expect(mismatches(result, naive(tested, direction), tolerance(tested))).toEqual([]);
      }),
    );
  });

  it("rounds nothing with float64 arithmetic", () => {
    const tested = cases[1] as Case;
    const { result } = runOnCpu(operandsOf(tested, direction), launchesOf(tested, direction), {
      arithmetic: "float64",
    });
    const exact = { relative: 1e-15, absolute: 0 };
    expect(mismatches(result, naive(tested, direction), exact)).toEqual([]);
  });
});

const exactly = { relative: 0, absolute: 0 };

const computed = new Map<Case, Map<string, KernelView>>();

/** The CPU result of a case, computed once for all tiers. */
function onCpu(tested: Case, direction: (typeof directions)[number]): KernelView {
  const known = computed.get(tested) ?? new Map<string, KernelView>();
  computed.set(tested, known);
  const result =
    known.get(direction) ??
    runOnCpu(operandsOf(tested, direction), launchesOf(tested, direction)).result;
  known.set(direction, result);
  return result;
}

/** The kernels that a case launches, and their variants. */
function variantsOf(tested: Case, direction: Direction): string {
  const names: string[] = [];
  const target: LaunchTarget<undefined> = {
    allocate: () => undefined,
    launch: ({ kernel }) => names.push(`${kernel.name} ${kernel.variant}`),
  };
  const bind = ({ values, ...stored }: { values: ArrayLike<number> | number; dtype: DType }) => ({
    ...{ buffer: undefined, offset: 0, ...stored },
    length: typeof values === "number" ? values : values.length,
  });
  const { left, right, result } = operandsOf(tested, direction);
  const bound = { left: bind(left), right: bind(right), result: bind(result) };
  launchesOf(tested, direction)(target, bound);
  return names.join();
}

/** The cases as GPUs run them. A program takes the compiler half a second: cases of one variant have the storage of the first. */
function casesOnGpu(direction: Direction): readonly Case[] {
  const first = new Map<string, Omit<Case, "attributes">>();
  return cases.map(({ attributes, ...own }) => {
    const variants = variantsOf({ attributes, ...own }, direction);
    const stored = first.get(variants) ?? own;
    first.set(variants, stored);
    return { attributes, ...stored };
  });
}

const tiers = await testTiers();

describe.each(tiers)("conv2d on the GPU (%s)", (tier) => {
  it.each(directions)("equals the reference: %s", async (direction) => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    for (const tested of [...casesOf(casesOnGpu(direction), tier, tiers), ...empty]) {
      const gpu = await runOnGpu(
        device,
        operandsOf(tested, direction),
        launchesOf(tested, direction),
      );
      const found = mismatches(gpu.result, onCpu(tested, direction), exactly);
      if (found.length > 0) wrong[title(tested)] = found;
    }
    expect(wrong).toEqual({});
  });

  it.each(directions)("takes any geometry: %s", async (direction) => {
    const device = await requestTestDevice({ tier });
    // No new programs: every shape has the odd channels and the storage of a case above, and more than 16 rows.
    const shapes = fc.sample(
      geometry.map((a) => ({ ...a, batch: 9 * a.batch, inChannels: 3, outChannels: 5 })),
      { numRuns: 12 },
    );
    const wrong: Record<string, readonly string[]> = {};
    for (const attributes of shapes) {
      const tested = { attributes, storage: brain };
      const gpu = await runOnGpu(
        device,
        operandsOf(tested, direction),
        launchesOf(tested, direction),
      );
      const found = mismatches(gpu.result, naive(tested, direction), tolerance(tested));
      if (found.length > 0) wrong[title(tested)] = found;
    }
    expect(wrong).toEqual({});
  });
});

const hasTwoGroups = ({ attributes }: Case): boolean => attributes.groups === 2;

describe.each(await packedInLanes())("conv2d on a GPU without subgroups, %s tier", (tier) => {
  it.each(directions)("equals the reference: %s", async (direction) => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    for (const tested of [...cases.slice(0, 4), ...cases.filter(hasTwoGroups)]) {
      const launches = launchesOf(tested, direction);
      const gpu = await runOnGpu(device, operandsOf(tested, direction), (target, operands) =>
        launches(withoutSubgroups(target), operands),
      );
      const found = mismatches(gpu.result, onCpu(tested, direction), exactly);
      if (found.length > 0) wrong[title(tested)] = found;
    }
    expect(wrong).toEqual({});
  });
});
