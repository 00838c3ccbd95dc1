import type { Binding, DType, HalfDType, KernelView, Launch, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { float16, roundArray } from "@halfstep/formats";
import { describe, expect, it } from "vitest";
import {
  type Launches,
  mismatches,
  runOnCpu,
  runOnGpu,
  scalarsOf,
  shareOf,
  testValues,
} from "../test/harness.js";
import { type Family, families, type Operand, smallest } from "../test/quad-stores.js";
import { type ElementwiseProgram, elementwiseKernel } from "./elementwise.js";
import { takesEpilogue, withEpilogue } from "./epilogue.js";
import { add, mul, relu, scale } from "./expressions.js";
import { dropoutExpression } from "./random.js";
import { storingTwice } from "./twin.js";

type Kind = "residual" | "drawn" | "alone";

/**
 * A multiplication and an addition on either side of the seam: relu(y) + y of y = (result + x0) · x1, or of y = ½ · result, or with
 * dropout in the place of ReLU.
 */
const programOf = (kind: Kind, rounding: HalfDType | undefined): ElementwiseProgram => {
  const rounded = rounding && { rounding };
  return kind !== "residual"
    ? {
        inputs: ["same"],
        steps: [
          { expression: scale, operands: [0], ...rounded },
          { expression: kind === "drawn" ? dropoutExpression : relu, operands: [1] },
          { expression: add, operands: [2, 1] },
        ],
        outputs: [2],
      }
    : {
        inputs: ["same", "same", "row"],
        steps: [
          { expression: add, operands: [0, 1], ...rounded },
          { expression: mul, operands: [3, 2], ...rounded },
          { expression: relu, operands: [4] },
          { expression: add, operands: [5, 4] },
        ],
        outputs: [3],
      };
};

/** Half of the elements, from blocks that cross 2^32 within the draw. */
const drawn: Readonly<Record<string, number>> = {
  ...{ c1_0: 2, c1_1: 2 ** 23, c1_seed0: 7, c1_seed1: 9, c1_stream: 1 },
  ...{ c1_block0: 2 ** 32 - 5, c1_block1: 3 },
};

const rowSizes = [4, 5];
const halfOf = (dtype: DType): HalfDType | undefined =>
  dtype === "float16" || dtype === "bfloat16" ? dtype : undefined;

function operandsOf({ operands, statistics = "", length }: Family, dtype: DType, rowSize: number) {
  const read = (name: Operand, seed: number) => {
    const count = operands[name] ?? 0;
    const isStatistic = statistics.includes(name);
    const values = testValues(count, seed).map((v) => (isStatistic ? Math.abs(v) + 0.5 : v));
    return { values, dtype: isStatistic ? ("float32" as const) : dtype };
  };
  // Whole quads, whose last must hold zeros behind the end of a result.
  const whole = Math.ceil(length / 4) * 4;
  return {
    a: read("a", 1),
    b: read("b", 2),
    c: read("c", 3),
    d: read("d", 4),
    e: read("e", 5),
    f: read("f", 6),
    g: read("g", 7),
    labels: {
      values: Uint32Array.from({ length: operands.labels ?? 0 }, (_, i) => (i * 5) % 6),
      dtype: "uint32",
    },
    residual: { values: testValues(length, 8), dtype },
    row: { values: testValues(rowSize, 9), dtype: "float32" },
    result: { values: whole, dtype },
    // Not zeros, so that those behind the end can be told.
    out: { values: testValues(whole, 10), dtype },
    twin: { values: whole, dtype: halfOf(dtype) ?? "float16" },
  } as const;
}

interface Choice {
  readonly dtype: DType;
  readonly kind: Kind;
  readonly rowSize: number;
  readonly isTwice?: boolean;
}

/** The launch and its epilogue, in one or in two; undefined where operands are too many. */
function launchesOf(
  family: Family,
  choice: Choice,
  isWoven: boolean,
): Launches<ReturnType<typeof operandsOf>> {
  const { dtype, kind, rowSize, isTwice } = choice;
  return <B>(target: LaunchTarget<B>, o: Record<string, Binding<B>>): void => {
    const named = o as Record<
      Operand | "labels" | "residual" | "row" | "result" | "out" | "twin",
      Binding<B>
    >;
    const exact = (binding: Binding<B>): Binding<B> => ({ ...binding, length: family.length });
    const [result, out] = [exact(named.result), exact(named.out)];
    const rounding = halfOf(dtype);
    const kernel = elementwiseKernel(programOf(kind, rounding));
    const elementwise = {
      kernel,
      bindings: kind !== "residual" ? [result, out] : [result, named.residual, named.row, out],
      scalars: scalarsOf(kernel, {
        ...{ count: family.length, one: 1, c0_0: 0.5, x2_size0: rowSize },
        ...drawn,
      }),
    };
    const launches: Launch<B>[] = [];
    family.run(
      { allocate: (bytes) => target.allocate(bytes), launch: (l) => launches.push(l) },
      named,
      result,
    );
    // Of a backward pass, not always the last is the one.
    const isOurs = ({ bindings }: Launch<B>): boolean => bindings.at(-1)?.buffer === result.buffer;
    for (const launch of launches) {
      if (!isOurs(launch) || !isWoven) {
        target.launch(launch);
        if (isOurs(launch)) target.launch(elementwise);
        continue;
      }
      const { kernel } = launch;
      if (!takesEpilogue(kernel)) throw new TypeError(`${kernel.name} takes no epilogue`);
      const woven = withEpilogue({ ...launch, kernel }, elementwise, {
        results: [0],
        ...(rounding && { rounding }),
      });
      const last = woven.bindings.length - 1;
      target.launch(
        isTwice
          ? storingTwice(woven as Parameters<typeof storingTwice<B>>[0], last, exact(named.twin))
          : woven,
      );
    }
  };
}

/** The differences between one launch and two, and the mistakes behind the end and in the twin. */
function differences(
  family: Family,
  { dtype, isTwice }: Choice,
  [one, two]: readonly [Results, Results],
): readonly string[] {
  const end = family.length;
  const exactly = { relative: 0, absolute: 0 };
  const found = mismatches(one.out.subarray(0, end), two.out.subarray(0, end), exactly);
  const behind = mismatches(
    one.out.subarray(end),
    new Array(one.out.length - end).fill(0),
    exactly,
  );
  const rounded = roundArray(two.out.subarray(0, end), float16, new Float32Array(end));
  const twins = isTwice ? mismatches(one.twin.subarray(0, end), rounded, exactly) : [];
  const isEmpty = end > 1 && !two.out.subarray(0, end).some((x) => x !== 0);
  return [
    ...found,
    ...behind.map((text) => `behind the end ${text}`),
    ...twins.map((text) => `twin ${text}`),
    ...(isEmpty ? ["nothing but zeros"] : []),
  ].map((text) => `${dtype} ${text}`);
}

type Results = Readonly<Record<"out" | "twin", KernelView>>;

const dtypes: readonly DType[] = ["float32", "float16", "bfloat16"];

/** Results of seven reads have no binding left for operands. */
const kindsOf = ({ operands }: Family): readonly Kind[] =>
  Object.keys(operands).length + 3 > 8 ? ["drawn", "alone"] : ["residual", "drawn", "alone"];

const opOf = (name: string): string => name.slice(0, name.lastIndexOf(" ["));

/** Ops by the program of rows in wgsl/row-program.ts, which stores for all of them, and its three walks over rows. */
const opsOfRows = ["softmax", "softmaxBackward", "logSoftmax", "logSoftmaxBackward"].concat([
  "attentionProbabilities",
  "attentionProbabilitiesBackward",
]);
const walks = [/\[9,12\]$/, /\[(5,7|1,1)\]$/, /\[3,260\]$/];

/** Whether a GPU takes the case: a program takes its compiler a tenth of a second, so that two ops of rows have each walk. */
function isOnGpu(name: string): boolean {
  const i = opsOfRows.indexOf(opOf(name));
  return i < 0 || (walks[i >> 1] as RegExp).test(name);
}

const tiers = await testTiers();

describe("a result that is stored by quads, with an epilogue, has the bits of two launches", () => {
  it("on the CPU", () => {
    const found: Record<string, readonly string[]> = {};
    let count = 0;
    for (const [name, family] of Object.entries({ ...families, ...smallest }))
      for (const dtype of dtypes) {
        const operands = operandsOf(family, dtype, 5);
        for (const kind of kindsOf(family)) {
          const choice: Choice = { dtype, kind, rowSize: 5, isTwice: dtype === "float32" };
          const run = (isWoven: boolean): Results =>
            runOnCpu(operands, launchesOf(family, choice, isWoven));
          // References write what is there, and nothing behind it.
          const wrong = differences(family, choice, [run(true), run(false)]).filter(
            (text) => !text.includes("behind"),
          );
          count++;
          if (wrong.length > 0) found[`${name} ${kind}`] = wrong;
        }
      }
    expect(found).toEqual({});
    expect(count).toBeGreaterThan(500);
  });

  it.each(tiers)("on the %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: Record<string, readonly string[]> = {};
    const all = Object.entries({ ...families, ...smallest });
    const ops = [...new Set(all.map(([name]) => opOf(name)))];
    // A program costs a quarter of a second, so that tiers share the work. Sizes of an op share programs.
    const chosen = shareOf(ops, tier, tiers);
    for (const [i, [name, family]] of all.entries()) {
      const op = ops.indexOf(opOf(name));
      if (!isOnGpu(name) || !chosen.includes(opOf(name))) continue;
      const dtype = dtypes[(op + (tier === "packed" ? 1 : 0)) % 3] as DType;
      const kinds = kindsOf(family);
      const kind = kinds[(op >> 1) % kinds.length] as Kind;
      const rowSize = rowSizes[i % 2] as number;
      const isTwice = dtype === "float32" && kind === "alone";
      const choice: Choice = { dtype, kind, rowSize, isTwice };
      const operands = operandsOf(family, dtype, rowSize);
      const one = await runOnGpu(device, operands, launchesOf(family, choice, true));
      const two = await runOnGpu(device, operands, launchesOf(family, choice, false));
      const wrong = differences(family, choice, [one, two]);
      if (wrong.length > 0) found[`${name} ${kind}`] = wrong;
    }
    expect(found).toEqual({});
  });
});
