import type { Binding, DType, HalfDType, KernelView, Launch, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { float16, roundArray } from "@halfstep/formats";
import { describe, expect, it } from "vitest";
import { type Launches, mismatches, runOnCpu, runOnGpu, testValues } from "../test/harness.js";
import {
  attentionProbabilities,
  attentionProbabilitiesBackward,
} from "./attention/probabilities.js";
import { batchNormBackward } from "./batch-norm/backward.js";
import { batchNormNormalize } from "./batch-norm/normalize.js";
import { concatenate } from "./copies/concatenate.js";
import { permute } from "./copies/permute.js";
import { stridedCopy } from "./copies/strided-copy.js";
import { type ElementwiseProgram, elementwiseKernel } from "./elementwise.js";
import { takesEpilogue, withEpilogue } from "./epilogue.js";
import { add, mul, relu, scale } from "./expressions.js";
import { addRows } from "./gather-scatter/add-rows.js";
import { gather } from "./gather-scatter/gather.js";
import { scatter } from "./gather-scatter/scatter.js";
import { softmaxCrossEntropy, softmaxCrossEntropyBackward } from "./losses/cross-entropy.js";
import { nllLossBackward } from "./losses/nll.js";
import { normBackward } from "./norms/backward.js";
import { norm } from "./norms/norm.js";
import { normNormalize } from "./norms/normalize.js";
import { avgPool2d, avgPool2dBackward } from "./pool/avg-pool.js";
import { maxPool2d, maxPool2dBackward } from "./pool/max-pool.js";
import { type PoolAttributes, poolOutputSize } from "./pool/shape.js";
import { reduce } from "./reductions/reduce.js";
import { scan } from "./reductions/scan.js";
import { resample, resampleBackward } from "./resample.js";
import {
  logSoftmax,
  logSoftmaxBackward,
  type RowsAttributes,
  softmax,
  softmaxBackward,
} from "./softmax.js";
import { storingTwice } from "./twin.js";

type Operand = "a" | "b" | "c" | "d" | "e" | "f" | "g";

/** A launch whose result is stored by quads. */
interface Family {
  /** Elements of each operand; labels and indices are uint32. */
  readonly operands: Partial<Record<Operand | "labels", number>>;
  /** Those that are statistics: positive float32 numbers. */
  readonly statistics?: string;
  /** Elements of the result. */
  readonly length: number;
  run<B>(target: LaunchTarget<B>, o: Record<Operand | "labels", Binding<B>>, out: Binding<B>): void;
}

const batchNorm = (rows: number, channels: number): Record<string, Family> => {
  const [length, shape] = [rows * channels, { rows, channels, eps: 1e-5 }];
  const stats = { b: channels, c: channels, d: channels, e: channels };
  const of = `[${rows},${channels}]`;
  return {
    [`batchNormNormalize ${of}`]: {
      ...{ operands: { a: length, ...stats }, statistics: "bcde", length },
      run: (target, { a, b, c, d, e }, out) =>
        target.launch(
          batchNormNormalize({ input: a, mean: b, variance: c, weight: d, bias: e, out }, shape),
        ),
    },
    [`batchNormInputGradient ${of}`]: {
      ...{ operands: { a: length, ...stats, f: channels, g: length }, statistics: "bcdef", length },
      run: (target, { a, b, c, d, e, f, g }, out) =>
        batchNormBackward(
          target,
          {
            ...{ input: a, mean: b, variance: c, weight: d, outGradient: g, inputGradient: out },
            ...{ weightGradient: e, biasGradient: f },
          },
          shape,
        ),
    },
  };
};

const norms = (batch: number, pixels: number, groups: number, width: number) => {
  const [length, rows] = [batch * pixels * groups * width, batch * groups];
  const shape = { batch, pixels, groups, width };
  const stats = { a: length, b: rows, c: rows, d: groups * width };
  const of = `[${batch},${pixels},${groups},${width}]`;
  return {
    [`normNormalize ${of}`]: {
      ...{ operands: { ...stats, e: groups * width }, statistics: "bcde", length },
      run: (target, { a, b, c, d, e }, out) =>
        target.launch(
          normNormalize({ input: a, mean: b, rstd: c, weight: d, bias: e, out }, shape),
        ),
    },
    [`norm ${of}`]: {
      ...{ operands: { ...stats, e: groups * width }, statistics: "bcde", length },
      run: (target, { a, b, c, d, e }, out) =>
        norm(target, { input: a, mean: b, rstd: c, weight: d, bias: e, out }, { ...shape, eps: 1 }),
    },
    [`normInputGradient ${of}`]: {
      ...{ operands: { ...stats, g: length }, statistics: "bcd", length },
      run: (target, { a, b, c, d, g }, out) =>
        normBackward(
          target,
          { input: a, mean: b, rstd: c, weight: d, outGradient: g, inputGradient: out },
          shape,
        ),
    },
  } satisfies Record<string, Family>;
};

const pool = (attributes: PoolAttributes): Record<string, Family> => {
  const { batch, height, width, channels, window, stride } = attributes;
  const [outHeight, outWidth] = poolOutputSize(attributes);
  const [length, results] = [
    batch * height * width * channels,
    batch * outHeight * outWidth * channels,
  ];
  const of = `[${batch},${height},${width},${channels}] ${window} by ${stride}`;
  return {
    [`maxPool2d ${of}`]: {
      ...{ operands: { a: length }, length: results },
      run: (target, { a }, out) => target.launch(maxPool2d({ input: a, out }, attributes)),
    },
    [`maxPool2dBackward ${of}`]: {
      ...{ operands: { a: length, b: results }, length },
      run: (target, { a, b }, out) =>
        target.launch(
          maxPool2dBackward({ input: a, outGradient: b, inputGradient: out }, attributes),
        ),
    },
    [`avgPool2d ${of}`]: {
      ...{ operands: { a: length }, length: results },
      run: (target, { a }, out) => target.launch(avgPool2d({ input: a, out }, attributes)),
    },
    [`avgPool2dBackward ${of}`]: {
      ...{ operands: { a: results }, length },
      run: (target, { a }, out) =>
        target.launch(avgPool2dBackward({ outGradient: a, inputGradient: out }, attributes)),
    },
  };
};

const rowOps = (rows: number, columns: number): Record<string, Family> => {
  const [length, shape]: [number, RowsAttributes] = [rows * columns, { rows, columns }];
  const classes = { rows, classes: columns };
  const of = `[${rows},${columns}]`;
  const two = { operands: { a: length, b: length }, length };
  return {
    [`softmax ${of}`]: {
      ...{ operands: { a: length }, length },
      run: (target, { a }, out) => target.launch(softmax({ input: a, out }, shape)),
    },
    [`softmaxBackward ${of}`]: {
      ...two,
      run: (target, { a, b }, out) =>
        target.launch(softmaxBackward({ out: a, outGradient: b, inputGradient: out }, shape)),
    },
    [`logSoftmax ${of}`]: {
      ...{ operands: { a: length }, length },
      run: (target, { a }, out) => target.launch(logSoftmax({ input: a, out }, shape)),
    },
    [`logSoftmaxBackward ${of}`]: {
      ...two,
      run: (target, { a, b }, out) =>
        target.launch(logSoftmaxBackward({ out: a, outGradient: b, inputGradient: out }, shape)),
    },
    [`attentionProbabilities ${of}`]: {
      ...{ operands: { a: length }, length },
      run: (target, { a }, out) =>
        target.launch(
          attentionProbabilities({ scores: a, probabilities: out }, { ...shape, scale: 0.3 }),
        ),
    },
    [`attentionProbabilitiesBackward ${of}`]: {
      ...two,
      run: (target, { a, b }, out) =>
        target.launch(
          attentionProbabilitiesBackward(
            { probabilities: a, gradient: b, scoresGradient: out },
            { ...shape, scale: 0.3 },
          ),
        ),
    },
    [`softmaxCrossEntropy ${of}`]: {
      ...{ operands: { a: length, labels: rows }, length: rows },
      run: (target, { a, labels }, out) =>
        target.launch(softmaxCrossEntropy({ logits: a, labels, losses: out }, classes)),
    },
    [`softmaxCrossEntropyBackward ${of}`]: {
      ...{ operands: { a: length, b: 1, labels: rows }, length },
      run: (target, { a, b, labels }, out) =>
        target.launch(
          softmaxCrossEntropyBackward(
            { logits: a, labels, lossGradient: b, logitsGradient: out },
            { ...classes, reduction: "mean" },
          ),
        ),
    },
    [`nllLossBackward ${of}`]: {
      ...{ operands: { a: rows, labels: rows }, length },
      run: (target, { a, labels }, out) =>
        target.launch(nllLossBackward({ labels, lossGradient: a, inputGradient: out }, classes)),
    },
    [`scan ${of}`]: {
      ...{ operands: { a: length }, length },
      run: (target, { a }, out) =>
        target.launch(scan({ input: a, out }, { op: "sum", ...shape, reverse: true })),
    },
    [`reduce rows of ${of}`]: {
      ...{ operands: { a: length }, length: rows },
      run: (target, { a }, out) =>
        reduce(target, { input: a, out }, { op: "mean", outer: rows, size: columns, inner: 1 }),
    },
    [`reduce columns of ${of}`]: {
      ...{ operands: { a: length }, length: columns },
      run: (target, { a }, out) =>
        reduce(target, { input: a, out }, { op: "max", outer: 1, size: rows, inner: columns }),
    },
  };
};

const moves = (inner: number): Record<string, Family> => {
  const of = `[${inner}]`;
  const sizes = { outer: 2, size: 6, inner };
  const length = 12 * inner;
  return {
    [`gather ${of}`]: {
      ...{ operands: { a: length, labels: 3 }, length: 6 * inner },
      run: (target, { a, labels }, out) =>
        target.launch(
          gather({ input: a, index: labels, out }, { ...sizes, count: 3, indexing: "rows" }),
        ),
    },
    [`scatter ${of}`]: {
      ...{ operands: { a: length, b: 6 * inner, labels: 6 * inner }, length },
      run: (target, { a, b, labels }, out) =>
        scatter(
          target,
          { base: a, index: labels, source: b, out },
          { ...sizes, count: 3, op: "add" },
        ),
    },
    [`addRows ${of}`]: {
      ...{ operands: { a: 6 * inner, labels: 3 }, length },
      run: (target, { a, labels }, out) =>
        addRows(target, { index: labels, source: a, out }, { ...sizes, count: 3 }),
    },
    [`concatenate ${of}`]: {
      ...{ operands: { a: 6 * inner, b: 4 * inner }, length: 10 * inner },
      run: (target, { a, b }, out) =>
        target.launch(concatenate({ inputs: [a, b], out }, { outer: 2, sizes: [3, 2], inner })),
    },
    [`permute ${of}`]: {
      ...{ operands: { a: 15 * inner }, length: 15 * inner },
      run: (target, { a }, out) =>
        target.launch(permute({ input: a, out }, { shape: [3, 5, inner], order: [1, 0, 2] })),
    },
    [`transposition ${of}`]: {
      ...{ operands: { a: 8 * inner }, length: 8 * inner },
      run: (target, { a }, out) =>
        target.launch(permute({ input: a, out }, { shape: [8, inner], order: [1, 0] })),
    },
    [`padding ${of}`]: {
      ...{ operands: { a: 5 * inner }, length: 7 * inner },
      run: (target, { a }, out) =>
        target.launch(
          stridedCopy(
            { input: a, out },
            {
              dimensions: [
                { size: 7, stride: inner, from: 1, to: 6 },
                { size: inner, stride: 1 },
              ],
              offset: -inner,
              fill: 0.25,
            },
          ),
        ),
    },
    [`resample ${of}`]: {
      ...{ operands: { a: length }, length: 10 * inner * 2 },
      run: (target, { a }, out) =>
        target.launch(resample({ input: a, out }, { ...sizes, mode: "linear", newSize: 10 })),
    },
    [`resampleBackward ${of}`]: {
      ...{ operands: { a: 10 * inner * 2 }, length },
      run: (target, { a }, out) =>
        target.launch(
          resampleBackward(
            { outGradient: a, inputGradient: out },
            { ...sizes, mode: "cubic", newSize: 10 },
          ),
        ),
    },
  };
};

const pairs = { window: [2, 2], stride: [2, 2], padding: [0, 0] } as const;
const threes = { window: [3, 3], stride: [2, 2], padding: [1, 1] } as const;

/** By quads and by elements, with tails behind them. */
const families: Readonly<Record<string, Family>> = {
  ...batchNorm(150, 8),
  ...batchNorm(37, 5),
  ...norms(70, 1, 1, 12),
  ...norms(3, 9, 2, 4),
  ...norms(5, 1, 1, 7),
  ...norms(66, 1, 1, 516),
  ...norms(3, 1, 1, 72),
  ...pool({ batch: 2, height: 7, width: 5, channels: 4, ...pairs }),
  ...pool({ batch: 1, height: 5, width: 7, channels: 3, ...threes }),
  ...rowOps(9, 12),
  ...rowOps(5, 7),
  ...rowOps(3, 260),
  ...moves(4),
  ...moves(3),
};

/** One element, and none. */
const smallest: Readonly<Record<string, Family>> = {
  ...batchNorm(0, 4),
  ...norms(1, 1, 1, 1),
  ...norms(0, 1, 1, 8),
  ...pool({ batch: 1, height: 2, width: 2, channels: 1, ...pairs }),
  ...pool({ batch: 0, height: 2, width: 2, channels: 4, ...pairs }),
  ...rowOps(1, 1),
  ...moves(1),
};

/** A multiplication and an addition on either side of the seam: relu(y) + y of y = (result + x0) · x1, or of y = ½ · result. */
const programOf = (
  kind: "residual" | "alone",
  rounding: HalfDType | undefined,
): ElementwiseProgram => {
  const rounded = rounding && { rounding };
  return kind === "alone"
    ? {
        inputs: ["same"],
        steps: [
          { expression: scale, operands: [0], ...rounded },
          { expression: relu, operands: [1] },
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
  readonly kind: "residual" | "alone";
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
    const elementwise = {
      kernel: elementwiseKernel(programOf(kind, rounding)),
      bindings: kind === "alone" ? [result, out] : [result, named.residual, named.row, out],
      scalars: { count: family.length, one: 1, c0_0: 0.5, x2_size0: rowSize },
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

/** How one launch and two differ, and what is not as it should be behind the end and in the twin. */
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
const kindsOf = ({ operands }: Family): readonly Choice["kind"][] =>
  Object.keys(operands).length + 3 > 8 ? ["alone"] : ["residual", "alone"];

const opOf = (name: string): string => name.slice(0, name.lastIndexOf(" ["));

const tiers = await testTiers();

describe("a result that is stored by quads, with an epilogue, has the bits of two launches", () => {
  it("on the CPU", () => {
    const found: Record<string, readonly string[]> = {};
    let count = 0;
    for (const [name, family] of Object.entries({ ...families, ...smallest }))
      for (const dtype of dtypes)
        for (const kind of kindsOf(family)) {
          const choice: Choice = { dtype, kind, rowSize: 5, isTwice: dtype === "float32" };
          const run = (isWoven: boolean): Results =>
            runOnCpu(operandsOf(family, dtype, 5), launchesOf(family, choice, isWoven));
          // References write what is there, and nothing behind it.
          const wrong = differences(family, choice, [run(true), run(false)]).filter(
            (text) => !text.includes("behind"),
          );
          count++;
          if (wrong.length > 0) found[`${name} ${kind}`] = wrong;
        }
    expect(found).toEqual({});
    expect(count).toBeGreaterThan(300);
  });

  it.each(tiers)("on the %s tier", { timeout: 120_000 }, async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: Record<string, readonly string[]> = {};
    const all = Object.entries({ ...families, ...smallest });
    const ops = [...new Set(all.map(([name]) => opOf(name)))];
    for (const [i, [name, family]] of all.entries()) {
      // A program costs a quarter of a second, so that the tiers share the work. Sizes of an op share programs.
      const op = ops.indexOf(opOf(name));
      if (tier === "packed" && op % 4 > 0) continue;
      const dtype = dtypes[(op + (tier === "packed" ? 1 : 0)) % 3] as DType;
      const kinds = kindsOf(family);
      const kind = kinds[(op >> 1) % kinds.length] as Choice["kind"];
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
