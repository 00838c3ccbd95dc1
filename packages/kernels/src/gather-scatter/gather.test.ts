import type { Binding, DType, HalfDType, Launch } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
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
import { addRows, putRows, rowSumOf, segmentedIndex } from "./add-rows.js";
import { gather } from "./gather.js";
import { scatter } from "./scatter.js";

const { NaN: nan } = Number;

interface Rows {
  readonly outer: number;
  readonly inner: number;
  readonly dtype: DType;
  readonly count?: number;
}

interface Case {
  readonly outer: number;
  readonly size: number;
  readonly inner: number;
  readonly count: number;
  readonly dtype: "float32" | HalfDType;
}

const cases: readonly Case[] = [
  { outer: 1, size: 5, inner: 8, count: 7, dtype: "float32" },
  { outer: 3, size: 4, inner: 3, count: 5, dtype: "float16" },
  { outer: 2, size: 300, inner: 4, count: 129, dtype: "float32" },
  { outer: 2, size: 40, inner: 11, count: 150, dtype: "bfloat16" },
  { outer: 7, size: 10, inner: 1, count: 1, dtype: "float32" },
  { outer: 1, size: 3, inner: 1, count: 0, dtype: "float32" },
];

/** Rows of one and of several pairs of quads, and of three quads; more of them than are stored at a time; and none. */
const casesOfPairs: readonly Case[] = [
  { outer: 3, size: 4, inner: 8, count: 5, dtype: "float16" },
  { outer: 2, size: 40, inner: 24, count: 33, dtype: "bfloat16" },
  { outer: 1, size: 40, inner: 264, count: 150, dtype: "float16" },
  { outer: 2, size: 5, inner: 12, count: 7, dtype: "float16" },
  { outer: 1, size: 3, inner: 16, count: 0, dtype: "bfloat16" },
];

/** So many places that blocks of them are added up first: whole rows of quads, of pairs of quads and of odd lengths. */
const casesOfBlocks: readonly Case[] = [
  { outer: 1, size: 9, inner: 4, count: 5000, dtype: "float32" },
  { outer: 2, size: 3, inner: 8, count: 4097, dtype: "float16" },
  { outer: 2, size: 4, inner: 3, count: 4480, dtype: "bfloat16" },
  { outer: 1, size: 2, inner: 1, count: 9001, dtype: "float32" },
];

/** Indices with many repetitions, and one out of range. */
const indices = (length: number, size: number) => ({
  values: Uint32Array.from({ length }, (_, i) =>
    i === 2 ? size : (i * i + 1) % Math.max(1, size - 1),
  ),
  dtype: "uint32" as const,
});

const placeOf = ({ size, inner, count }: Case, e: number) => {
  const o = Math.floor(e / (count * inner));
  return {
    k: Math.floor(e / inner) % count,
    at: (row: number) => (o * size + row) * inner + (e % inner),
  };
};

function operandsOf(check: Case) {
  const { outer, size, inner, count, dtype } = check;
  const given = outer * count * inner;
  return {
    input: { values: testValues(outer * size * inner, 1), dtype },
    source: { values: testValues(given, 2), dtype },
    row: indices(count, size),
    each: indices(given, size),
    byRow: { values: given, dtype },
    byEach: { values: given, dtype },
    added: { values: outer * size * inner, dtype },
    assigned: { values: outer * size * inner, dtype },
    sums: { values: outer * size * inner, dtype },
    put: { values: outer * size * inner, dtype },
  };
}

type Operands = ReturnType<typeof operandsOf>;

/** Those of whole rows. */
const rowLaunches =
  (check: Case): Launches<Operands> =>
  (target, { input, source, row, byRow, sums, put }) => {
    target.launch(gather({ input, index: row, out: byRow }, { ...check, indexing: "rows" }));
    addRows(target, { index: row, source, out: sums }, check);
    putRows(target, { index: row, base: input, source, out: put }, check);
  };

const launches =
  (check: Case): Launches<Operands> =>
  (target, o) => {
    const { input, source, each } = o;
    rowLaunches(check)(target, o);
    target.launch(gather({ input, index: each, out: o.byEach }, { ...check, indexing: "each" }));
    const places = { base: input, index: each, source };
    scatter(target, { ...places, out: o.added }, { ...check, op: "add" });
    scatter(target, { ...places, out: o.assigned }, { ...check, op: "assign" });
  };

const exact = { relative: 0, absolute: 0 };

const tiers = await testTiers();
const lanes = await tiersInLanes();

describe("gather, scatter, addRows and putRows", () => {
  it("move each element to or from the place that its index names", () => {
    const found: string[] = [];
    for (const check of [...cases, ...casesOfPairs, ...casesOfBlocks]) {
      const { size, dtype } = check;
      const got = runOnCpu(operandsOf(check), launches(check));
      const { input, source, row, each } = got;
      const added = Float64Array.from(input);
      const assigned = Float64Array.from(input);
      const sums = new Float64Array(input.length);
      const put = Float64Array.from(input);
      const byRow: number[] = [];
      const byEach: number[] = [];
      for (const [e, value] of [...source].entries()) {
        const { k, at } = placeOf(check, e);
        const [r, own] = [row[k] as number, each[e] as number];
        byRow.push(r < size ? (input[at(r)] as number) : nan);
        byEach.push(own < size ? (input[at(own)] as number) : nan);
        if (r < size) {
          sums[at(r)] = (sums[at(r)] as number) + value;
          put[at(r)] = value;
        }
        if (own >= size) continue;
        added[at(own)] = (added[at(own)] as number) + value;
        assigned[at(own)] = value;
      }
      const rounded = { relative: unitRoundoff[dtype], absolute: 0 };
      found.push(
        ...mismatches(got.byRow, byRow, exact),
        ...mismatches(got.byEach, byEach, exact),
        ...mismatches(got.assigned, assigned, exact),
        ...mismatches(got.added, added, rounded),
        ...mismatches(got.sums, sums, rounded),
        ...mismatches(got.put, put, exact),
      );
    }
    expect(found).toEqual([]);
  });

  it.each([
    ["float32 rows", { outer: 1, inner: 4, dtype: "float32" }, true],
    ["many float32 rows", { outer: 1, inner: 4, dtype: "float32", count: 5000 }, true],
    ["float16 rows of pairs of quads", { outer: 1, inner: 8, dtype: "float16" }, true],
    ["float16 rows of odd lengths", { outer: 1, inner: 3, dtype: "float16" }, true],
    ["several blocks of rows", { outer: 2, inner: 4, dtype: "float32" }, false],
    ["integers", { outer: 1, inner: 4, dtype: "uint32" }, false],
  ] as const)(
    "of %s are recognised as sums of rows or not",
    (_, { outer, inner, dtype, count = 5 }: Rows, isSum) => {
      const launched: Launch<object>[] = [];
      const target = {
        allocate: () => ({}),
        launch: (launch: Launch<object>) => void launched.push(launch),
      };
      const binding = (length: number, of: Binding<object>["dtype"]): Binding<object> => ({
        ...{ buffer: {}, offset: 0, length, dtype: of },
      });
      const operands = {
        index: binding(count, "uint32"),
        source: binding(outer * count * inner, dtype),
        out: binding(outer * 7 * inner, dtype),
      };
      addRows(target, operands, { outer, count, inner, size: 7 });
      const [sum] = launched.flatMap((launch) => rowSumOf(launch) ?? []);
      const [segments] = launched.filter((launch) => segmentedIndex(launch) === operands.index);
      expect(sum?.rows).toBe(isSum ? operands.source : undefined);
      if (isSum) expect(segments?.bindings).toContain(sum?.starts);
      const base = { ...operands.out, buffer: {} };
      putRows(target, { ...operands, base }, { outer, count, inner, size: 7 });
      expect(launched.filter((launch) => rowSumOf(launch))).toHaveLength(isSum ? 1 : 0);
    },
  );

  it.each(tiers)("equal their references on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const check of cases) {
      // All sums are of multiples of 2^-7: exact in float32, and rounded once.
      const texts = await deviceMismatches(device, operandsOf(check), launches(check), {
        byRow: exact,
        byEach: exact,
        added: exact,
        assigned: exact,
        sums: exact,
        put: exact,
      });
      found.push(...texts.map((text) => `${JSON.stringify(check)}: ${text}`));
    }
    expect(found).toEqual([]);
  });

  it.each(tiers)("of many places equal their references on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const hardware of lanes.includes(tier) ? [undefined, someGpu] : [undefined])
      for (const check of casesOfBlocks) {
        const texts = await deviceMismatches(
          device,
          operandsOf(check),
          (target, operands) =>
            launches(check)(hardware ? withHardware(target, hardware) : target, operands),
          { byRow: exact, added: exact, assigned: exact, sums: exact, put: exact },
        );
        found.push(...texts.map((text) => `${JSON.stringify(check)}: ${text}`));
      }
    expect(found).toEqual([]);
  });

  it.each(["int32", "uint32"] as const)("of many places of %s wrap", async (dtype) => {
    const [count, size] = [6000, 5];
    const values = Array.from({ length: count }, (_, i) => Math.imul(i, 0x9e3779b9));
    const expected = Array(size).fill(0) as number[];
    for (const [i, v] of values.entries()) expected[i % 2] = ((expected[i % 2] as number) + v) | 0;
    const operands = {
      index: { values: values.map((_, i) => i % 2), dtype: "uint32" as const },
      source: { values: dtype === "int32" ? values : values.map((v) => v >>> 0), dtype },
      out: { values: size, dtype },
    };
    const sum: Launches<typeof operands> = (target, o) =>
      addRows(target, o, { outer: 1, count, inner: 1, size });
    const sums = dtype === "int32" ? expected : expected.map((v) => v >>> 0);
    expect(Array.from(runOnCpu(operands, sum).out)).toEqual(sums);
    const device = await requestTestDevice();
    expect(Array.from((await runOnGpu(device, operands, sum)).out)).toEqual(sums);
  });

  it("of one index many times lose no terms", async () => {
    const count = 2 ** 18;
    const operands = {
      index: { values: new Uint32Array(count), dtype: "uint32" as const },
      source: { values: new Float32Array(count).fill(0.1) },
      base: { values: new Float32Array(2) },
      sums: { values: 2 },
      added: { values: 2 },
    };
    const device = await requestTestDevice();
    const { sums, added } = await runOnGpu(device, operands, (target, o) => {
      const { index, source, base } = o;
      addRows(target, { index, source, out: o.sums }, { outer: 1, count, inner: 1, size: 2 });
      const shape = { outer: 1, size: 2, inner: 1, count };
      scatter(target, { base, index, source, out: o.added }, { ...shape, op: "add" });
    });
    const exactSum = count * Math.fround(0.1);
    expect(Math.abs((sums[0] as number) / exactSum - 1)).toBeLessThan(1e-5);
    expect(Math.abs((added[0] as number) / exactSum - 1)).toBeLessThan(1e-5);
    expect([sums[1], added[1]]).toEqual([0, 0]);
  });

  it.each(lanes)(
    "of rows equal their references by the programs of GPUs, %s tier",
    async (tier) => {
      const device = await requestTestDevice({ tier });
      const found: string[] = [];
      for (const check of casesOfPairs) {
        const texts = await deviceMismatches(
          device,
          operandsOf(check),
          (target, operands) => rowLaunches(check)(withHardware(target, someGpu), operands),
          { byRow: exact, sums: exact, put: exact },
        );
        found.push(...texts.map((text) => `${JSON.stringify(check)}: ${text}`));
      }
      expect(found).toEqual([]);
    },
  );

  it("of rows move 16 bytes at a time on GPUs where their storage has 16 bits", () => {
    const pairs = (
      inner: number,
      from: DType,
      to: DType,
      hardware = someGpu,
    ): readonly number[] => {
      const [index, source, out] = [
        withoutMemory(5, "uint32"),
        withoutMemory(5 * inner, from),
        withoutMemory(7 * inner, to),
      ];
      const codes = programsOf({ tier: "native", subgroupSize: 32, hardware }, (target) => {
        const gathered = { input: out, index, out: source };
        target.launch(gather(gathered, { outer: 1, size: 7, inner, count: 5, indexing: "rows" }));
        const shape = { outer: 1, count: 5, inner, size: 7 };
        addRows(target, { index, source, out }, shape);
        putRows(target, { index, base: out, source, out }, shape);
      });
      return ["gather", "addSegments", "putSegments"].map(
        (name) => (codes[name]?.split("array<vec4u>").length ?? 0) - 1,
      );
    };
    expect(pairs(8, "float16", "float16")).toEqual([2, 2, 3]);
    expect(pairs(24, "bfloat16", "float16")).toEqual([2, 2, 3]);
    expect(pairs(12, "float16", "float16")).toEqual([0, 0, 0]);
    expect(pairs(8, "float16", "float32")).toEqual([0, 0, 0]);
    expect(pairs(8, "uint32", "uint32")).toEqual([0, 0, 0]);
    expect(pairs(8, "float16", "float16", { ...someGpu, class: "software" })).toEqual([0, 0, 0]);
  });
});
