import type { Binding, DType, HalfDType, Launch, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  isLane,
  type Launches,
  mismatches,
  runOnCpu,
  runOnGpu,
  testValues,
  withHardware,
  withoutSubgroups,
} from "../../test/harness.js";
import { fill } from "../copies/fill.js";
import { type MatmulAttributes, matmul } from "../matmul.js";
import { factorRows, withFactorRows } from "./factor-rows.js";
import { matmulWithRowSums } from "./with-row-sums.js";

interface Case extends MatmulAttributes {
  readonly broadcast?: "a" | "b";
  readonly dtype?: DType;
  readonly rounding?: HalfDType;
  readonly hasRowSums?: boolean;
}

const transposed = [false, true].flatMap((transA) =>
  [false, true].map((transB) => ({ transA, transB })),
);

/** Every way to load a factor: aligned or not, along k or across it, of a batch, in parts of k. */
const cases: readonly Case[] = [
  ...transposed.flatMap((layout) => [
    { m: 8, n: 64, k: 36, ...layout },
    { m: 7, n: 17, k: 5, ...layout },
  ]),
  { m: 6, n: 38, k: 24, dtype: "float16" },
  { m: 8, n: 48, k: 40, dtype: "bfloat16", transA: true },
  { m: 8, n: 48, k: 40, dtype: "float8e4m3fn", transB: true },
  { m: 8, n: 40, k: 44, rounding: "float16" },
  { m: 4, n: 16, k: 20, batch: 3 },
  { m: 5, n: 7, k: 11, batch: 3, broadcast: "a", transB: true },
  { m: 5, n: 8, k: 12, batch: 2, broadcast: "b", transA: true },
  { m: 8, n: 24, k: 1040, transA: true, hasRowSums: true },
];

/** Large enough for blocks in workgroup memory. */
const blocks: readonly Case[] = [
  { m: 40, n: 38, k: 36 },
  { m: 33, n: 36, k: 22, transA: true, transB: true },
];

const title = ({ m, n, k, transA, transB, ...more }: Case): string =>
  `[${m},${k}]${transA ? "ᵀ" : ""}·[${k},${n}]${transB ? "ᵀ" : ""} ${JSON.stringify(more)}`;

function factorsOf({ m, n, k, batch = 1, transA, transB, broadcast, dtype, rounding }: Case) {
  const factor = (rows: number, length: number, isShared: boolean, seed: number) => {
    const count = rows * (isShared ? 1 : batch);
    return { rows: count, length, values: testValues(count * length, seed) };
  };
  return {
    a: factor(transA ? k : m, transA ? m : k, broadcast === "a", 1),
    b: factor(transB ? n : k, transB ? k : n, broadcast === "b", 2),
    as: { dtype: dtype ?? "float32", ...(rounding && { rounding }) },
  };
}

type Factor = ReturnType<typeof factorsOf>["a"];

/** The rows with values between them that must not affect results. */
function apart({ rows, length, values }: Factor, stride: number): Float32Array {
  const spread = new Float32Array(rows * stride).fill(Number.NaN);
  for (let row = 0; row < rows; row++)
    spread.set(values.subarray(row * length, (row + 1) * length), row * stride);
  return spread;
}

const strideOf = ({ length }: Factor): number => Math.ceil(length / 4) * 4 + 8;

function operandsOf(check: Case) {
  const { m, n, batch = 1, hasRowSums } = check;
  const { a, b, as } = factorsOf(check);
  return {
    a: { values: a.values, ...as },
    b: { values: b.values, ...as },
    wideA: { values: apart(a, strideOf(a)), ...as },
    wideB: { values: apart(b, strideOf(b)), ...as },
    out: { values: batch * m * n },
    outOfWide: { values: batch * m * n },
    rowSums: { values: hasRowSums ? m : 1 },
    rowSumsOfWide: { values: hasRowSums ? m : 1 },
  } as const;
}

/** The product of factors as they are, and of the same with their rows further apart. */
const launchesOf =
  (check: Case): Launches<ReturnType<typeof operandsOf>> =>
  (target, { a, b, wideA, wideB, out, outOfWide, rowSums, rowSumsOfWide }) => {
    const { hasRowSums } = check;
    const wide = moving(target, { a: wideA, b: wideB }, check);
    if (!hasRowSums) for (const sums of [rowSums, rowSumsOfWide]) target.launch(fill(sums, 0));
    if (hasRowSums) {
      matmulWithRowSums(target, { a, b, out, rowSums }, check);
      matmulWithRowSums(wide, { a, b, out: outOfWide, rowSums: rowSumsOfWide }, check);
    } else {
      matmul(target, { a, b, out }, check);
      matmul(wide, { a, b, out: outOfWide }, check);
    }
  };

/** A target where products read these factors instead of their own. */
const moving = <B>(
  target: LaunchTarget<B>,
  wide: Readonly<Record<"a" | "b", Binding<B>>>,
  check: Case,
): LaunchTarget<B> => ({
  allocate: (bytes) => target.allocate(bytes),
  launch: (launch) => {
    let moved: Launch<B> = launch;
    const factors = factorsOf(check);
    for (const rows of factorRows(launch)) {
      const { factor } = rows;
      moved = withFactorRows(moved, rows, wide[factor], strideOf(factors[factor]));
    }
    target.launch(moved);
  },
});

const exact = { relative: 0, absolute: 0 };

const tiers = await testTiers();

const here = <B>(target: LaunchTarget<B>): LaunchTarget<B> => target;
const withBlocks = <B>(target: LaunchTarget<B>): LaunchTarget<B> =>
  withHardware(target, {
    ...{ class: "nvidia", workgroupBytes: 32_768, workgroupInvocations: 1024 },
    ...{ matrixSubgroupSize: 0, subgroupMatrices: [] },
  });

const engines = isLane ? [here, withoutSubgroups, withBlocks] : [here];

describe("rows of factors that lie apart", () => {
  it("are those of matrix products only", () => {
    const launches: Launch<undefined>[] = [];
    const bind = (length: number): Binding<undefined> => ({
      ...{ buffer: undefined, offset: 0, length },
      dtype: "float32",
    });
    matmul(
      { allocate: () => undefined, launch: (launch) => launches.push(launch) },
      { a: bind(3 * 2000 * 8), b: bind(2000 * 6), out: bind(3 * 8 * 6) },
      { m: 8, n: 6, k: 2000, batch: 3, transA: true },
    );
    const found = launches.map((launch) =>
      factorRows(launch).map(({ binding, ...found }) => ({ ...found, length: binding.length })),
    );
    expect(found).toEqual([
      [
        { factor: "a", rows: 6000, stride: 8, uses: 6, depth: 2000, length: 48_000 },
        { factor: "b", rows: 2000, stride: 6, uses: 8, depth: 2000, length: 12_000 },
      ],
      [],
    ]);
  });

  it("give the same results on the CPU", () => {
    const wrong: Record<string, readonly string[]> = {};
    for (const check of [...cases, ...blocks]) {
      const { out, outOfWide, rowSums, rowSumsOfWide } = runOnCpu(
        operandsOf(check),
        launchesOf(check),
      );
      const found = [
        ...mismatches(outOfWide, out, exact),
        ...mismatches(rowSumsOfWide, rowSums, exact),
      ];
      if (found.length > 0 || out.some(Number.isNaN)) wrong[title(check)] = found;
    }
    expect(wrong).toEqual({});
  });

  it.each(tiers)("give the same bits on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    for (const check of tier === "packed" || tiers.length === 1 ? [...cases, ...blocks] : blocks)
      for (const engine of blocks.includes(check) ? engines : [here]) {
        const { out, outOfWide, rowSums, rowSumsOfWide } = await runOnGpu(
          device,
          operandsOf(check),
          (target, operands) => launchesOf(check)(engine(target), operands),
        );
        const found = [
          ...mismatches(outOfWide, out, exact),
          ...mismatches(rowSumsOfWide, rowSums, exact),
        ];
        if (found.length > 0 || out.some(Number.isNaN))
          wrong[`${engine.name}: ${title(check)}`] = found;
      }
    expect(wrong).toEqual({});
  });
});
