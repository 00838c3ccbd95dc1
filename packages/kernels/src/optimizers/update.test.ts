import type { Binding, DType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  type Launches,
  mismatches,
  runOnCpu,
  runOnGpu,
  testValues,
  unitRoundoff,
} from "../../test/harness.js";
import { adafactorRule } from "./adafactor.js";
import { adamRule } from "./adam.js";
import { blockLength, blockWords } from "./blockwise.js";
import { copyValues, withCopy } from "./copy-values.js";
import { factoredLayout, factoredMoments } from "./factored-moments.js";
import { lambRule } from "./lamb.js";
import { launchUpdate, type UpdateRange } from "./launch-update.js";
import type { ParameterKind } from "./parameter-storage.js";
import { type UpdateRule, updateRule } from "./rule.js";
import { type SegmentPlace, segmentTable } from "./segment-table.js";
import { sgdRule } from "./sgd.js";
import { canCopy } from "./weave.js";

type Floating = "float32" | "float16" | "bfloat16";

/** Lengths that end in a quad, in a block, in a chunk, and in the middle of each; one is longer than a grid row of chunks. */
const places: readonly SegmentPlace[] = [
  { offset: 0, shape: [1] },
  { offset: 128, shape: [256] },
  { offset: 384, shape: [7, 43] },
  { offset: 768, shape: [1024] },
  { offset: 1792, shape: [2, 13, 40] },
  { offset: 2944, shape: [70_006] },
];
const length = 2944 + 70_006;

const table = segmentTable(places);

interface Case {
  readonly rule: UpdateRule;
  readonly values: Floating;
  readonly gradients?: Floating;
  readonly parameters?: ParameterKind;
  readonly moments?: "float32" | "bfloat16" | "uint32";
  /** Segments that have gradients; all where absent. */
  readonly segments?: readonly [number, number];
}

const adam = adamRule({ amsgrad: false, decoupled: true });
const amsgrad = adamRule({ amsgrad: true, decoupled: false });
const sgd = sgdRule({ momentum: true });
const lamb = lambRule({ decoupled: true });

const cases: readonly Case[] = [
  { rule: adam, values: "float32" },
  { rule: amsgrad, values: "float32", gradients: "float16", segments: [1, 3] },
  { rule: amsgrad, values: "bfloat16", moments: "uint32", parameters: "remainder" },
  { rule: adam, values: "bfloat16", parameters: "remainder", segments: [2, 5] },
  { rule: adam, values: "float16", parameters: "kahanFloat16", moments: "bfloat16" },
  {
    rule: adam,
    values: "bfloat16",
    parameters: "kahanBfloat16",
    moments: "uint32",
    segments: [3, 6],
  },
  { rule: sgd, values: "bfloat16", parameters: "stochastic" },
  { rule: sgd, values: "float16", gradients: "bfloat16", parameters: "inPlace" },
  { rule: sgd, values: "float16", parameters: "master" },
  { rule: lamb, values: "float32" },
  { rule: lamb, values: "bfloat16", parameters: "remainder", moments: "uint32", segments: [0, 4] },
  { rule: adafactorRule, values: "float32" },
  { rule: adafactorRule, values: "bfloat16", parameters: "kahanBfloat16", segments: [2, 5] },
];

const title = ({ rule, ...rest }: Case): string => `${rule.name} ${JSON.stringify(rest)}`;

const values: Readonly<Record<string, number>> = {
  oneMinusBeta1: 0.1,
  beta1: 0.9,
  beta2: 0.99,
  beta3: 0.1,
  oneMinusBeta2: 0.01,
  eps: 2 ** -10,
  weightDecay: 0.1,
  momentum: 0.9,
  oneMinusDampening: 0.5,
  nesterov: 1,
  adapts: 1,
  eps1Squared: 2 ** -20,
  eps2: 2 ** -10,
  d: 1,
  seedLow: 7,
  seedHigh: 9,
  stream: 3,
};

/** The scalars that a rule declares, and where its random numbers begin. */
const scalarsOf = (rule: UpdateRule): Record<string, number> =>
  Object.fromEntries(
    [...rule.scalars, "seedLow", "seedHigh", "stream"].map((name) => [
      name,
      values[name] as number,
    ]),
  );

const layout = factoredLayout(places);

function rangeOf([firstSegment, endSegment]: readonly [number, number]): UpdateRange {
  const { segments } = table;
  const offset = places[firstSegment]?.offset as number;
  const last = places[endSegment - 1] as SegmentPlace;
  return {
    offset,
    length: last.offset + last.shape.reduce((n, size) => n * size, 1) - offset,
    firstSegment,
    endSegment,
    firstChunk: segments[firstSegment * 4] as number,
    endChunk: segments[(endSegment - 1) * 4 + 1] as number,
  };
}

function operandsOf(c: Case, applies = 1) {
  const of = (values: ArrayLike<number> | number, dtype: DType = "float32") => ({ values, dtype });
  const state = Object.fromEntries(
    Object.keys(c.rule.state).map((name, i) => {
      const start = testValues(length, 3 + i).map((v) => (i === 0 ? v : v * v));
      return [
        name,
        c.moments === "uint32"
          ? of(new Uint32Array(table.blocks * blockWords).fill(0x3f3f3f3f), "uint32")
          : of(start, c.moments),
      ];
    }),
  );
  const gradients = testValues(length, 2);
  return {
    values: of(testValues(length, 1), c.values),
    gradients: of(applies ? gradients : gradients.fill(Number.NaN), c.gradients),
    // Skip flag, factor of gradients, rate, first step; row of the table; norm, its factor, steps applied before.
    control: of([applies, 2 ** -3, 2 ** -6, 0, 1, 1.5, 3.25, 0, 0, 1, 41, 7]),
    master: of(testValues(length, 1)),
    remainder: of(new Uint32Array(Math.ceil(length / 4) * 2), "uint32"),
    compensation: of(
      new Float32Array(length),
      c.parameters === "kahanFloat16" ? "float16" : "bfloat16",
    ),
    ...state,
    chunks: of(table.chunks, "uint32"),
    segments: of(table.segments, "uint32"),
    partials: of(table.chunks.length),
    factors: of(table.segments.length),
    tasks: of(layout.tasks, "uint32"),
    matrices: of(layout.matrices, "uint32"),
    places: of(layout.places, "uint32"),
    rowVar: of(testValues(layout.rowCount, 5).map((v) => v * v + 2 ** -6)),
    colVar: of(testValues(layout.columnCount, 6).map((v) => v * v + 2 ** -6)),
    factored: of(layout.rowCount + layout.columnCount),
  };
}

const isElement = (i: number): boolean =>
  places.some(
    ({ offset, shape }) => i >= offset && i < offset + shape.reduce((n, size) => n * size, 1),
  );

type Operands = ReturnType<typeof operandsOf>;

const launchesOf =
  (c: Case): Launches<Operands> =>
  (target, named) => {
    const range = rangeOf(c.segments ?? [0, places.length]);
    if (c.rule === adafactorRule) {
      const { gradients, control, tasks, matrices, rowVar, colVar, factored } = named;
      const buffers = { gradients, control, tasks, matrices, rowVar, colVar, factored };
      factoredMoments(target, buffers, layout, [range], { eps1: 2 ** -10 });
    }
    const all = named as Readonly<Record<string, Binding<typeof named.values.buffer>>>;
    const state = Object.keys(c.rule.state).map((name) => [name, all[name]] as const);
    launchUpdate(
      target,
      c.rule,
      {
        values: named.values,
        gradients: named.gradients,
        control: named.control,
        parameters: c.parameters ?? "inPlace",
        storage: named,
        state: Object.fromEntries(state) as typeof all,
        inputs: named,
        table: () => named,
      },
      [range],
      { scalars: scalarsOf(c.rule), maximize: true },
    );
  };

/** Buffers that a step may change. */
const changing = (c: Case): readonly string[] => [
  ...["values", "master", "remainder", "compensation", "rowVar", "colVar"],
  ...Object.keys(c.rule.state),
];

describe("updates on the CPU", () => {
  it("touch no parameter but those of the range", () => {
    const found: string[] = [];
    for (const c of cases.filter(({ segments }) => segments)) {
      const operands = operandsOf(c);
      const results = runOnCpu(operands, launchesOf(c));
      const range = rangeOf(c.segments as [number, number]);
      const before = Float32Array.from(operands.values.values as Float32Array);
      const after = Float32Array.from(results.values);
      const isInside = (i: number): boolean =>
        i >= range.offset && i < Math.ceil((range.offset + range.length) / 4) * 4;
      const outside = after.filter((v, i) => !isInside(i) && v !== before[i]).length;
      const inside = after.filter((v, i) => isInside(i) && v !== before[i]).length;
      if (outside > 0 || inside < range.length / 4)
        found.push(`${title(c)}: ${outside} outside, ${inside} inside`);
    }
    expect(found).toEqual([]);
  });

  it("say what is not bound", () => {
    const c = cases[0] as Case;
    expect(() =>
      runOnCpu(operandsOf(c), (target, named) =>
        launchUpdate(
          target,
          lamb,
          {
            ...{ values: named.values, gradients: named.gradients, control: named.control },
            ...{ parameters: "inPlace", storage: {}, state: {} },
            table: () => ({
              chunks: named.chunks,
              segments: named.segments,
              partials: named.partials,
              factors: named.factors,
            }),
          },
          [rangeOf([0, 1])],
          { scalars: scalarsOf(lamb), maximize: false },
        ),
      ),
    ).toThrow("lamb: nothing is bound to expAvg");
  });
});

describe.each(await testTiers())("updates on the GPU, %s tier", (tier) => {
  it("equal the reference", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const c of cases) {
      const operands = operandsOf(c);
      const want = runOnCpu(operands, launchesOf(c));
      const got = await runOnGpu(device, operands, launchesOf(c));
      const isStochastic = c.parameters === "stochastic";
      for (const name of ["values", "master", "rowVar", "colVar"] as const) {
        const dtype = operands[name].dtype as Floating;
        // Numbers that differ by a float32 rounding may be rounded to neighbours.
        const relative = dtype === "float32" ? 2 ** -19 : 2.1 * unitRoundoff[dtype];
        const absolute = c.moments === "uint32" ? 2 ** -9 : 2 ** -20;
        // The lanes between parameters are unspecified.
        const inside = (x: ArrayLike<number>): number[] =>
          Array.from(x, (v, i) => (x.length < length || isElement(i) ? v : 0));
        const [mine, theirs] = [inside(got[name]), inside(want[name])];
        const texts = mismatches(mine, theirs, { relative, absolute });
        found.push(...texts.map((text) => `${title(c)} ${name}${text}`));
      }
      const differing = got.values.filter((v, i) => v !== want.values[i]).length;
      // Nearly all 16-bit values are equal, because the random bits are.
      if (isStochastic && differing > length / 1000) found.push(`${title(c)}: ${differing}`);
    }
    expect(found).toEqual([]);
  });

  it("change no bit of a skipped step, whatever the gradients are", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const c of cases) {
      const operands = operandsOf(c, 0);
      const before = runOnCpu(operands, () => undefined);
      const after = await runOnGpu(device, operands, launchesOf(c));
      for (const key of changing(c)) {
        const name = key as "values";
        const texts = mismatches(after[name], before[name], { relative: 0, absolute: 0 });
        found.push(...texts.map((text) => `${title(c)} ${name}${text}`));
      }
    }
    expect(found).toEqual([]);
  });

  it("with a copy store what rounding all values afterwards stores", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const [rule, dtype] of [
      [adam, "float16"],
      [lamb, "bfloat16"],
    ] as const)
      for (const applies of [1, 0]) {
        const c: Case = { rule, values: "float32", segments: [1, 4] };
        const values = testValues(length, 1);
        const operands = { ...operandsOf(c, applies), copy: { values, dtype } };
        const together: Launches<typeof operands> = (target, named) =>
          launchesOf(c)(
            {
              ...target,
              launch({ kernel, ...launch }) {
                const copy = { ...named.copy, dtype };
                target.launch(
                  canCopy(kernel) ? withCopy({ ...launch, kernel }, copy) : { ...launch, kernel },
                );
              },
            },
            named,
          );
        const apart: Launches<typeof operands> = (target, named) => {
          launchesOf(c)(target, named);
          target.launch(copyValues({ values: named.values, copy: { ...named.copy, dtype } }));
        };
        const results = [
          [await runOnGpu(device, operands, together), await runOnGpu(device, operands, apart)],
          [runOnCpu(operands, together), runOnCpu(operands, apart)],
        ] as const;
        for (const [got, want] of results)
          for (const name of ["values", "copy"] as const) {
            const texts = mismatches(got[name], want[name], { relative: 0, absolute: 0 });
            found.push(...texts.map((text) => `${title(c)} ${name}${text}`));
          }
      }
    expect(found).toEqual([]);
  });

  it("keep 8-bit moments bit for bit as the CPU does", async () => {
    const device = await requestTestDevice({ tier });
    const copy = updateRule({
      name: "test copy",
      state: { signed: "signed", unsigned: "unsigned" },
      scalars: [],
      passes: [{ update: ({ g }) => ({ signed: g, unsigned: g.abs(), p: g }) }],
    });
    const [{ offset }] = [places[5] as SegmentPlace];
    // Peaks are powers of two, so that ratios to them are exact: ties, the smallest codes, zeros and subnormal blocks.
    const gradients = new Float32Array(length);
    for (let i = 0; i < 70_006; i++) {
      const block = Math.floor(i / blockLength);
      const scale = 2 ** ((block % 40) * 7 - 140);
      const x = (1 + ((i * 37) % 64) / 64) * 2 ** -((i % 34) + 1);
      gradients[offset + i] = i % blockLength === 0 ? scale : scale * x * (i % 2 ? 1 : -1);
    }
    const words = new Uint32Array(table.blocks * blockWords);
    const operands = {
      ...operandsOf({ rule: copy, values: "float32", moments: "uint32" }),
      gradients: { values: gradients, dtype: "float32" as const },
      control: { values: [1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0], dtype: "float32" as const },
      signed: { values: words, dtype: "uint32" as const },
      unsigned: { values: words, dtype: "uint32" as const },
    };
    const launches: Launches<typeof operands> = (target, named) => {
      const { values, control, signed, unsigned } = named;
      launchUpdate(
        target,
        copy,
        {
          ...{ values, control, gradients: named.gradients, parameters: "inPlace", storage: {} },
          state: { signed, unsigned },
          table: () => named,
        },
        [rangeOf([5, 6])],
        { scalars: scalarsOf(copy), maximize: false },
      );
    };
    const want = runOnCpu(operands, launches);
    const got = await runOnGpu(device, operands, launches);
    const codes = new Set(new Uint8Array(Uint32Array.from(want.unsigned).buffer));
    expect(codes.size).toBeGreaterThan(200);
    for (const name of ["signed", "unsigned"] as const)
      expect(mismatches(got[name], want[name], { relative: 0, absolute: 0 })).toEqual([]);
  });
});
