import type { Binding, DType, HalfDType, Hardware, LaunchTarget } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  type Launches,
  mismatches,
  programsOf,
  runOnCpu,
  runOnGpu,
  someGpu,
  testValues,
  tiersInLanes,
  unitRoundoff,
  withHardware,
  withoutMemory,
} from "../../test/harness.js";
import { type ElementwiseKernel, elementwiseKernel } from "../elementwise.js";
import { takesEpilogue, withEpilogue } from "../epilogue.js";
import { add, relu } from "../expressions.js";
import { normParameterGradients } from "../norms/parameter-gradients.js";
import { batchNormBackward } from "./backward.js";
import { batchNormNormalize } from "./normalize.js";
import { batchNormStatistics } from "./statistics.js";

interface Case {
  readonly rows: number;
  readonly channels: number;
  readonly storage: "float32" | HalfDType;
}

/** Pairs of quads, one and many; one chunk of rows, and so many that workgroups merge them; quads, and storage of 32 bits. */
const cases: readonly Case[] = [
  { rows: 70, channels: 8, storage: "float16" },
  { rows: 2050, channels: 24, storage: "bfloat16" },
  { rows: 33, channels: 264, storage: "float16" },
  { rows: 70, channels: 12, storage: "float16" },
  { rows: 40, channels: 16, storage: "float32" },
];

const title = ({ rows, channels, storage }: Case): string => `[${rows},${channels}] ${storage}`;

const operandsOf = ({ rows, channels, storage }: Case) => {
  const all = { values: rows * channels, dtype: storage };
  const each = { values: channels };
  return {
    input: { values: testValues(rows * channels, 1).map((v) => v + 2), dtype: storage },
    weight: { values: testValues(channels, 2) },
    bias: { values: testValues(channels, 3) },
    outGradient: { values: testValues(rows * channels, 4), dtype: storage },
    residual: { values: testValues(rows * channels, 5), dtype: storage },
    ...{ mean: each, variance: each, weightGradient: each, biasGradient: each },
    ...{ out: all, inputGradient: all, finished: all },
  } as const;
};

/** relu(result + residual), as in the blocks of a ResNet. */
const residualBlock = elementwiseKernel({
  inputs: ["same", "same"],
  steps: [
    { expression: add, operands: [0, 1] },
    { expression: relu, operands: [2] },
  ],
  outputs: [1],
});

const launchesOf =
  (shape: Case): Launches<ReturnType<typeof operandsOf>> =>
  (target, bindings) => {
    const attributes = { ...shape, eps: 1e-5 };
    batchNormStatistics(target, bindings, shape);
    target.launch(batchNormNormalize(bindings, attributes));
    target.launch(finishedLaunch(bindings, attributes));
    batchNormBackward(target, bindings, attributes);
  };

/** The normalisation, finished by the block of a residual net. */
function finishedLaunch<B>(
  bindings: Readonly<
    Record<"input" | "mean" | "variance" | "weight" | "bias" | "residual" | "finished", Binding<B>>
  >,
  attributes: Case & { readonly eps: number },
) {
  const { residual, finished } = bindings;
  const producer = batchNormNormalize({ ...bindings, out: finished }, attributes);
  const { kernel } = producer;
  if (!takesEpilogue(kernel)) throw new Error("the normalisation takes no epilogue");
  const block = {
    kernel: residualBlock as ElementwiseKernel,
    bindings: [finished, residual, finished],
    scalars: { count: finished.length, one: 1 },
  };
  return withEpilogue({ ...producer, kernel }, block, { results: [0] });
}

const onGpu = <B>(target: LaunchTarget<B>) => withHardware(target, someGpu);

describe.each(await tiersInLanes())("channels in pairs of quads, %s tier", (tier) => {
  it("have the batch norm of the CPU, finished by an epilogue or not", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const shape of cases) {
      const operands = operandsOf(shape);
      const want = runOnCpu(operands, launchesOf(shape));
      const got = await runOnGpu(device, operands, (target, bindings) =>
        launchesOf(shape)(onGpu(target), bindings),
      );
      const stored = shape.storage === "float32" ? 0 : 2 * unitRoundoff[shape.storage];
      const elements = { relative: 2 ** -17 + stored, absolute: 2 ** -17 + stored / 8 };
      const sums = { relative: 2 ** -19, absolute: shape.rows * 2 ** -22 };
      const tolerances = {
        ...{ mean: sums, variance: sums, weightGradient: sums, biasGradient: sums },
        ...{ out: elements, finished: elements, inputGradient: elements },
      };
      for (const [name, tolerance] of Object.entries(tolerances))
        found.push(
          ...mismatches(got[name as "out"], want[name as "out"], tolerance).map(
            (text) => `${title(shape)} ${name}${text}`,
          ),
        );
    }
    expect(found).toEqual([]);
  });

  it.each([
    { batch: 70, pixels: 1, groups: 1, width: 136 },
    { batch: 3, pixels: 50, groups: 4, width: 4 },
    { batch: 3, pixels: 50, groups: 3, width: 4 },
  ])("have the parameter gradients of norms, $groups groups of $width", async (shape) => {
    const { batch, pixels, groups, width } = shape;
    const [size, channels] = [batch * pixels * groups * width, groups * width];
    const operands = {
      input: { values: testValues(size, 1), dtype: "float16" },
      outGradient: { values: testValues(size, 2), dtype: "float16" },
      mean: { values: testValues(batch * groups, 3) },
      rstd: { values: testValues(batch * groups, 4) },
      ...{ weightGradient: { values: channels }, biasGradient: { values: channels } },
    } as const;
    const want = runOnCpu(operands, (target, all) => normParameterGradients(target, all, shape));
    const device = await requestTestDevice({ tier });
    const got = await runOnGpu(device, operands, (target, all) =>
      normParameterGradients(onGpu(target), all, shape),
    );
    const tolerance = { relative: 2 ** -19, absolute: batch * pixels * 2 ** -22 };
    for (const name of ["weightGradient", "biasGradient"] as const)
      expect(mismatches(got[name], want[name], tolerance)).toEqual([]);
  });
});

describe("the WGSL of batch norm", () => {
  function codesOf(channels: number, dtype: DType, hardware: Hardware = someGpu) {
    const rows = 100;
    const all = () => withoutMemory(rows * channels, dtype);
    const each = () => withoutMemory(channels, "float32");
    const operands = {
      ...{ input: all(), out: all(), outGradient: all(), inputGradient: all() },
      ...{ residual: all(), finished: all(), weight: each(), bias: each() },
      ...{ mean: each(), variance: each(), weightGradient: each(), biasGradient: each() },
    };
    const shape = { rows, channels, storage: "float32" as const, eps: 1e-5 };
    return programsOf({ tier: "native", subgroupSize: 32, hardware }, (target) => {
      batchNormStatistics(target, operands, shape);
      target.launch(batchNormNormalize(operands, shape));
      target.launch(finishedLaunch(operands, shape));
      batchNormBackward(target, operands, shape);
    });
  }
  const count = (code: string | undefined, part: string): number =>
    (code?.split(part).length ?? 0) - 1;

  it("moves 16 bytes at a time where its storage has 16 bits", () => {
    for (const dtype of ["float16", "bfloat16"] as const) {
      const codes = codesOf(24, dtype);
      const moved = {
        ...{ batchNormPartials: 1, batchNormNormalize: 2, batchNormGradientSums: 2 },
        ...{ batchNormInputGradient: 3, "batchNormNormalize+add+relu": 3 },
      };
      for (const [name, bindings] of Object.entries(moved))
        expect([name, count(codes[name], "array<vec4u>")]).toEqual([name, bindings]);
      expect(count(codes.batchNormGradientSums, "= load_outGradient(")).toBe(1);
      expect(count(codes["batchNormNormalize+add+relu"], "= load_woven_x1(")).toBe(1);
    }
  });

  it("moves quads where channels are no pairs, where storage has 32 bits, and on CPUs", () => {
    const software = { ...someGpu, class: "software" };
    for (const codes of [
      codesOf(12, "float16"),
      codesOf(24, "float32"),
      codesOf(24, "float16", software),
    ])
      for (const code of Object.values(codes)) expect(code).not.toContain("array<vec4u>");
  });
});
