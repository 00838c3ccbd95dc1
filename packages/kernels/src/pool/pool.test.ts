import type { HalfDType, Hardware, KernelView } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
  type Launches,
  programsOf,
  runOnCpu,
  runOnGpu,
  someGpu,
  testValues,
  tiersInLanes,
  withHardware,
  withoutMemory,
} from "../../test/harness.js";
import { avgPool2d, avgPool2dBackward } from "./avg-pool.js";
import { maxPool2d, maxPool2dBackward, maxPool2dSelect } from "./max-pool.js";
import { type PoolAttributes, poolOutputSize } from "./shape.js";

interface Case extends PoolAttributes {
  readonly storage?: "float32" | HalfDType;
}

const pairs = { window: [2, 2], stride: [2, 2], padding: [0, 0] } as const;

/** Pairs with odd edges; overlapping, padded and skipping windows; channels in quads and not; one and none of everything. */
const cases: readonly Case[] = [
  { batch: 3, height: 7, width: 9, channels: 8, ...pairs },
  { batch: 2, height: 6, width: 4, channels: 4, ...pairs, stride: [1, 1] },
  { batch: 2, height: 7, width: 5, channels: 3, ...pairs },
  { batch: 2, height: 8, width: 7, channels: 8, window: [3, 3], stride: [2, 2], padding: [1, 1] },
  { batch: 1, height: 9, width: 6, channels: 5, window: [3, 2], stride: [1, 2], padding: [1, 0] },
  { batch: 2, height: 8, width: 8, channels: 4, window: [1, 2], stride: [3, 4], padding: [0, 1] },
  { batch: 2, height: 7, width: 7, channels: 4, window: [7, 7], stride: [7, 7], padding: [0, 0] },
  { batch: 1, height: 1, width: 1, channels: 1, window: [1, 1], stride: [1, 1], padding: [0, 0] },
  { batch: 2, height: 5, width: 7, channels: 4, ...pairs, ceilMode: true },
  ...([3, 4].map((channels) => ({
    ...{ batch: 1, height: 6, width: 7, channels, window: [3, 3], stride: [2, 4], padding: [1, 1] },
    ...{ ceilMode: true, countIncludePad: channels === 4 },
  })) as Case[]),
  // Sums in parts.
  ...([3, 4].map((channels) => ({
    ...{ batch: 1, height: 24, width: 25, channels },
    ...{ window: [20, 18], stride: [1, 1], padding: [2, 3] },
  })) as Case[]),
  {
    batch: 1,
    height: 2,
    width: 700,
    channels: 4,
    window: [1, 600],
    stride: [1, 50],
    padding: [0, 0],
  },
  { batch: 0, height: 4, width: 4, channels: 4, ...pairs },
  { batch: 2, height: 6, width: 6, channels: 4, ...pairs, storage: "float16" },
  { batch: 2, height: 5, width: 5, channels: 3, ...pairs, storage: "bfloat16" },
];

/** Channels in pairs of quads, stored in 16 bits. */
const casesOfPairs: readonly Case[] = [
  { batch: 3, height: 7, width: 9, channels: 8, ...pairs, storage: "float16" },
  { batch: 2, height: 6, width: 4, channels: 24, ...pairs, stride: [1, 1], storage: "bfloat16" },
  { ...(cases[3] as Case), storage: "bfloat16" },
  { ...(cases[3] as Case), channels: 16, storage: "float16" },
  { ...(cases[3] as Case), ceilMode: true, countIncludePad: false, storage: "float16" },
];

const resultSize = (attributes: Case): number => {
  const [height, width] = poolOutputSize(attributes);
  return attributes.batch * height * width * attributes.channels;
};

function operandsOf(attributes: Case) {
  const { batch, height, width, channels, storage: dtype = "float32" } = attributes;
  const [size, results] = [batch * height * width * channels, resultSize(attributes)];
  return {
    // A quarter of the values only, so that windows have equal maxima.
    input: { values: testValues(size).map((v) => Math.round(v * 4)), dtype },
    outGradient: { values: testValues(results, 2), dtype },
    values: { values: testValues(size, 3), dtype },
    max: { values: results, dtype },
    maxGradient: { values: size, dtype },
    selected: { values: results, dtype },
    mean: { values: results, dtype },
    meanGradient: { values: size, dtype },
  } as const;
}

type Operands = ReturnType<typeof operandsOf>;

const launchesOf =
  (attributes: Case): Launches<Operands> =>
  (target, { input, outGradient, values, max, maxGradient, selected, mean, meanGradient }) => {
    target.launch(maxPool2d({ input, out: max }, attributes));
    target.launch(
      maxPool2dBackward({ input, outGradient, inputGradient: maxGradient }, attributes),
    );
    target.launch(maxPool2dSelect({ input, values, out: selected }, attributes));
    target.launch(avgPool2d({ input, out: mean }, attributes));
    target.launch(avgPool2dBackward({ outGradient, inputGradient: meanGradient }, attributes));
  };

/** Every window's elements looked up one by one, padding being undefined. */
function expected(
  attributes: Case,
  input: ArrayLike<number>,
  outGradient: ArrayLike<number>,
  given: ArrayLike<number>,
) {
  const { batch, height, width, channels, window, stride, padding } = attributes;
  const { countIncludePad = true } = attributes;
  const [outHeight, outWidth] = poolOutputSize(attributes);
  const max: number[] = [];
  const selected: number[] = [];
  const mean: number[] = [];
  const maxGradient = Array<number>(input.length).fill(0);
  const meanGradient = Array<number>(input.length).fill(0);
  for (let o = 0; o < outGradient.length; o++) {
    const c = o % channels;
    const ow = Math.floor(o / channels) % outWidth;
    const oh = Math.floor(o / channels / outWidth) % outHeight;
    const b = Math.floor(o / channels / outWidth / outHeight);
    const cells: number[] = [];
    for (let i = 0; i < window[0]; i++)
      for (let j = 0; j < window[1]; j++) {
        const h = oh * stride[0] - padding[0] + i;
        const w = ow * stride[1] - padding[1] + j;
        const isInside = b < batch && h >= 0 && h < height && w >= 0 && w < width;
        if (isInside) cells.push(((b * height + h) * width + w) * channels + c);
      }
    const values = cells.map((cell) => input[cell] as number);
    max.push(Math.max(...values));
    // The padded image ends after the padding; cells beyond never count.
    const countedAlong = (place: number, d: 0 | 1, size: number): number => {
      const border = countIncludePad ? padding[d] : 0;
      return Array.from({ length: window[d] }, (_, i) => place * stride[d] - padding[d] + i).filter(
        (at) => at >= -border && at < size + border,
      ).length;
    };
    const size = countedAlong(oh, 0, height) * countedAlong(ow, 1, width);
    mean.push(values.reduce((x, y) => x + y, 0) / size);
    const winner = cells[values.indexOf(Math.max(...values))] as number;
    selected.push(given[winner] as number);
    const dy = outGradient[o] as number;
    maxGradient[winner] = (maxGradient[winner] as number) + dy;
    for (const cell of cells) meanGradient[cell] = (meanGradient[cell] as number) + dy / size;
  }
  return { max, maxGradient, selected, mean, meanGradient };
}

const title = ({ batch, height, width, channels, window, stride, padding, storage }: Case) =>
  `[${[batch, height, width, channels]}] ${storage ?? ""} window ${window} stride ${stride} padding ${padding}`;

describe("pooling on the CPU", () => {
  it("equals a window-by-window computation in float64", () => {
    const found = cases.flatMap((attributes) => {
      const results = runOnCpu(operandsOf(attributes), launchesOf(attributes), {
        arithmetic: "float64",
      });
      const want = expected(attributes, results.input, results.outGradient, results.values);
      return Object.entries(want).flatMap(([name, values]) => {
        const got = results[name as keyof typeof want];
        const wrong = values.findIndex((v, i) => Math.abs(v - (got[i] as number)) > 1e-12);
        return wrong < 0 && got.length === values.length
          ? []
          : [`${title(attributes)}: ${name}[${wrong}] ${got[wrong]} instead of ${values[wrong]}`];
      });
    });
    expect(found).toEqual([]);
  });

  it("refuses windows that do not fit and padding of more than half a window", () => {
    const shape = { height: 3, width: 3 };
    expect(() => poolOutputSize({ ...shape, ...pairs, padding: [0, 2] })).toThrow("at most half");
    expect(() => poolOutputSize({ ...shape, ...pairs, window: [4, 2] })).toThrow("does not fit");
    expect(poolOutputSize({ ...shape, ...pairs, window: [4, 2], ceilMode: true })).toEqual([1, 2]);
    expect(() => poolOutputSize({ ...shape, ...pairs, stride: [0, 1] })).toThrow("at least 1");
  });
});

const exact = { relative: 0, absolute: 0 };
const close = { relative: 2 ** -7, absolute: 2 ** -20 };
const toleranceOf = ({ storage }: Case) =>
  storage ? close : { relative: 2 ** -21, absolute: 2 ** -22 };

const lanes = await tiersInLanes();

describe.each(lanes)("pooling by the programs of GPUs, %s tier", (tier) => {
  it("equals the reference", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const attributes of casesOfPairs) {
      const launches = launchesOf(attributes);
      const sums = toleranceOf(attributes);
      const texts = await deviceMismatches(
        device,
        operandsOf(attributes),
        (target, bindings) => launches(withHardware(target, someGpu), bindings),
        {
          ...{ max: exact, selected: exact },
          ...{ maxGradient: sums, mean: sums, meanGradient: sums },
        },
      );
      found.push(...texts.map((text) => `${title(attributes)}: ${text}`));
    }
    expect(found).toEqual([]);
  });
});

describe.each(await testTiers())("pooling on the GPU, %s tier", (tier) => {
  it("equals the reference", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const attributes of [...cases, ...casesOfPairs]) {
      const sums = toleranceOf(attributes);
      const texts = await deviceMismatches(device, operandsOf(attributes), launchesOf(attributes), {
        ...{ max: exact, selected: exact },
        maxGradient: sums,
        mean: sums,
        meanGradient: sums,
      });
      found.push(...texts.map((text) => `${title(attributes)}: ${text}`));
    }
    expect(found).toEqual([]);
  });

  it("lets NaN win and infinities count", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    const some = [cases[0], cases[2], cases[3]] as Case[];
    for (const [isGpu, attributes] of [
      ...some.map((each) => [false, each] as const),
      ...(lanes.includes(tier) ? casesOfPairs : []).map((each) => [true, each] as const),
    ]) {
      const launches = launchesOf(attributes);
      const operands = operandsOf(attributes);
      const values: KernelView = operands.input.values;
      for (let i = 5; i < values.length; i += 11)
        values[i] = [Number.NaN, Infinity, -Infinity][i % 3] as number;
      const texts = await deviceMismatches(
        device,
        operands,
        (target, bindings) => launches(isGpu ? withHardware(target, someGpu) : target, bindings),
        {
          max: { relative: 0, absolute: 0 },
          maxGradient: toleranceOf(attributes),
          mean: toleranceOf(attributes),
        },
      );
      found.push(...texts.map((text) => `${title(attributes)}: ${text}`));
    }
    expect(found).toEqual([]);
  });
});

it("the mean of a whole image of equal numbers is right to five millionths", async () => {
  const [height, width] = [512, 500];
  const whole: Case = {
    ...{ batch: 1, height, width, channels: 1, padding: [0, 0] },
    ...{ window: [height, width], stride: [height, width] },
  };
  const operands = {
    input: { values: new Float32Array(height * width).fill(0.1) },
    out: { values: 1 },
  };
  const device = await requestTestDevice();
  const { out } = await runOnGpu(device, operands, (target, o) =>
    target.launch(avgPool2d(o, whole)),
  );
  expect(Math.abs((out[0] as number) / Math.fround(0.1) - 1)).toBeLessThan(5e-6);
});

describe("the WGSL of pooling", () => {
  /** How many bindings of each kernel move pairs of quads. */
  function pairsOf(attributes: Case, hardware: Hardware): Readonly<Record<string, number>> {
    const { batch, height, width, channels, storage = "float32" } = attributes;
    const all = withoutMemory(batch * height * width * channels, storage);
    const result = withoutMemory(resultSize(attributes), storage);
    const operands = {
      ...{ input: all, values: all, maxGradient: all, meanGradient: all },
      ...{ outGradient: result, max: result, selected: result, mean: result },
    };
    const codes = programsOf({ tier: "native", subgroupSize: 32, hardware }, (target) =>
      launchesOf(attributes)(target as never, operands as never),
    );
    return Object.fromEntries(
      Object.entries(codes).map(([name, code]) => [name, code.split("array<vec4u>").length - 1]),
    );
  }

  it("moves 16 bytes at a time on GPUs where its storage has 16 bits", () => {
    const moved = {
      ...{ maxPool2d: 2, maxPool2dBackward: 3, maxPool2dSelect: 3 },
      ...{ avgPool2d: 2, avgPool2dBackward: 2 },
    };
    const none = Object.fromEntries(Object.keys(moved).map((name) => [name, 0]));
    for (const each of casesOfPairs) {
      expect(pairsOf(each, someGpu)).toEqual(moved);
      expect(pairsOf({ ...each, channels: 12 }, someGpu)).toEqual(none);
      expect(pairsOf({ ...each, storage: "float32" }, someGpu)).toEqual(none);
      expect(pairsOf(each, { ...someGpu, class: "software" })).toEqual(none);
    }
  });
});
