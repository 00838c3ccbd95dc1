import type { DType, Hardware, LaunchTarget, SubgroupMatrix } from "@halfstep/device";
import { requestNullDevice } from "@halfstep/device/node";
import { requestTestDevice, type TestTier, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  type Launches,
  mismatches,
  packedInLanes,
  runOnCpu,
  runOnGpu,
  testValues,
  tiersInLanes,
  unitRoundoff,
  withHardware,
  withoutSubgroups,
  withSubgroups,
} from "../../test/harness.js";
import { defineKernel } from "../kernel.js";
import { matmul } from "../matmul.js";
import { blockRowSums, rowSumStore } from "./row-sums.js";
import { matmulWithRowSums } from "./with-row-sums.js";

interface Case {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly transB?: boolean;
  readonly storage?: DType;
  readonly rounding?: "float16" | "bfloat16";
  /** Of the sums; default as `storage`. */
  readonly stored?: "float32" | "float16" | "bfloat16";
}

/** Tiles of each height and width, whole and with edges; nothing and one; k divided and not; blocks of both sizes. */
const cases: readonly Case[] = [
  { m: 64, n: 64, k: 96 },
  { m: 1, n: 1, k: 1 },
  { m: 33, n: 17, k: 5 },
  { m: 16, n: 40, k: 30, transB: true },
  { m: 7, n: 9, k: 1100 },
  { m: 10, n: 68, k: 1028 },
  { m: 128, n: 128, k: 2048 },
  { m: 300, n: 40, k: 514, transB: true },
  { m: 5, n: 6, k: 0 },
  { m: 5, n: 0, k: 3 },
  { m: 0, n: 5, k: 3 },
  { m: 1500, n: 4, k: 33 },
  { m: 40, n: 36, k: 64, storage: "float16" },
  { m: 70, n: 33, k: 1031, storage: "bfloat16", stored: "float32" },
  { m: 36, n: 8, k: 20, rounding: "float16", stored: "float16" },
  { m: 34, n: 36, k: 18, storage: "float8e5m2", stored: "bfloat16" },
];

const large: Case = { m: 1025, n: 1500, k: 18, storage: "float16" };

/** Cases with different programs on different tiers. */
const isHalf = ({ storage, rounding }: Case): boolean => Boolean(storage || rounding);
const halves = cases.filter(isHalf);

/** The cases by tiles. Those of 32 rows take a GPU's compiler five times as long as those of 8: they are in float32 alone. */
const tiled = cases.map((shape) => (isHalf(shape) ? { ...shape, m: shape.m >> 3 } : shape));

const title = ({ m, n, k, transB, storage = "float32", rounding, stored }: Case): string =>
  `[${k},${m}]ᵀ·[${k},${n}]${transB ? "ᵀ" : ""} ${storage} ${rounding ?? ""} ${stored ?? ""}`;

const dtypeOfSums = ({ storage, stored }: Case) =>
  stored ?? (storage === "float16" || storage === "bfloat16" ? storage : "float32");

const operandsOf = (shape: Case) => {
  const { m, n, k, storage = "float32", rounding } = shape;
  const round = rounding ? { rounding } : {};
  return {
    a: { values: testValues(k * m, 1), dtype: storage, ...round },
    b: { values: testValues(k * n, 2), dtype: storage, ...round },
    out: { values: m * n },
    rowSums: { values: m, dtype: dtypeOfSums(shape) },
  } as const;
};

const launchesOf =
  ({ m, n, k, transB = false }: Case): Launches<ReturnType<typeof operandsOf>> =>
  (target, operands) =>
    matmulWithRowSums(target, operands, { m, n, k, transB });

/** The mistakes in the sums and in the product. Values are multiples of 2^-7: only stores round. */
function wrongIn(
  shape: Case,
  got: Record<"a" | "out" | "rowSums", ArrayLike<number>>,
): readonly string[] {
  const { m, n, k, transB = false } = shape;
  const { a } = got;
  const sums = Array.from({ length: m }, (_, i) => {
    let sum = 0;
    for (let p = 0; p < k; p++) sum += a[p * m + i] as number;
    return sum;
  });
  const { a: left, b: right, out } = operandsOf(shape);
  const alone = runOnCpu({ left, right, out }, (target, operands) =>
    matmul(
      target,
      { a: operands.left, b: operands.right, out: operands.out },
      { m, n, k, transA: true, transB },
    ),
  );
  const relative = unitRoundoff[dtypeOfSums(shape)];
  return [
    ...mismatches(got.rowSums, sums, {
      relative: dtypeOfSums(shape) === "float32" ? 0 : relative,
      absolute: 0,
    }).map((text) => `sums${text}`),
    ...mismatches(got.out, alone.out, { relative: 0, absolute: 0 }),
  ];
}

async function wrongOnGpu(
  tier: TestTier | undefined,
  shapes: readonly Case[],
  pretend: <B>(target: LaunchTarget<B>) => LaunchTarget<B> = (target) => target,
): Promise<Record<string, readonly string[]>> {
  const device = await requestTestDevice(tier && { tier });
  const wrong: Record<string, readonly string[]> = {};
  for (const shape of shapes) {
    const got = await runOnGpu(device, operandsOf(shape), (target, operands) =>
      launchesOf(shape)(pretend(target), operands),
    );
    const found = wrongIn(shape, got);
    if (found.length > 0) wrong[title(shape)] = found;
  }
  return wrong;
}

const blocks: Hardware = {
  class: "a real one",
  workgroupBytes: 32_768,
  workgroupInvocations: 256,
  matrixSubgroupSize: 32,
  subgroupMatrices: [],
};

describe("sums of rows beside a product", () => {
  it("equal their definition on the CPU", () => {
    const wrong = cases.flatMap((shape) =>
      wrongIn(shape, runOnCpu(operandsOf(shape), launchesOf(shape))).map(
        (text) => `${title(shape)}: ${text}`,
      ),
    );
    expect(wrong).toEqual([]);
  });

  it("take no launch of their own", () => {
    const launched = (shape: Case, hasSums: boolean): string[] => {
      const names: string[] = [];
      const recorder: LaunchTarget<undefined> = {
        allocate: () => undefined,
        launch: ({ kernel }) => names.push(kernel.name),
      };
      const { m, n, k } = shape;
      const bind = (length: number) =>
        ({ buffer: undefined, offset: 0, length, dtype: "float16" }) as const;
      const operands = { a: bind(m * k), b: bind(k * n), out: bind(m * n), rowSums: bind(m) };
      if (hasSums) matmulWithRowSums(recorder, operands, { m, n, k });
      else matmul(recorder, operands, { m, n, k, transA: true });
      return names;
    };
    const some = cases.filter(({ n }) => n > 0);
    expect(some.map((shape) => launched(shape, true))).toEqual(
      some.map((shape) => launched(shape, false)),
    );
  });

  it("are refused where they have another length", () => {
    const shape: Case = { m: 4, n: 4, k: 4 };
    const run = () =>
      runOnCpu({ ...operandsOf(shape), rowSums: { values: 5 } }, (target, operands) =>
        matmulWithRowSums(target, operands, shape),
      );
    expect(run).toThrow("matmul: rowSums has 5 elements");
  });
});

describe.each(await testTiers())("sums of rows beside a product, on the GPU (%s)", (tier) => {
  it("equal their definition", async () => {
    expect(await wrongOnGpu(tier, tier !== "packed" ? tiled : tiled.filter(isHalf))).toEqual({});
  });
});

describe.each(await tiersInLanes())("sums of rows in programs for GPUs, %s tier", (tier) => {
  it("equal their definition by blocks in workgroup memory", async () => {
    const some = halves.filter(({ m, n, k }) => m >= 32 && n >= 32 && k >= 16);
    const pretend = <B>(target: LaunchTarget<B>) => withHardware(target, blocks);
    expect(await wrongOnGpu(tier, [...some, large], pretend)).toEqual({});
  });
});

const withoutAny = await packedInLanes();

describe("sums of rows on other GPUs", () => {
  it.each(withoutAny)("equal their definition without subgroups (%s)", async (tier) => {
    expect(await wrongOnGpu(tier, tiled, withoutSubgroups)).toEqual({});
  });

  it("equal it with 4 lanes", async () => {
    const device = await requestTestDevice();
    // A part of a larger subgroup behaves as a smaller one.
    const lanes = device.capabilities.features.has("subgroups") ? 4 : 0;
    const some = cases.filter(({ m }) => m === 64 || m === 7);
    expect(await wrongOnGpu(undefined, some, (target) => withSubgroups(target, lanes))).toEqual({});
  });

  const reported: readonly SubgroupMatrix[] = [
    { m: 16, n: 16, k: 16, component: "f16" },
    { m: 16, n: 8, k: 8, component: "f16" },
    { m: 8, n: 8, k: 8, component: "f32" },
  ];
  const contexts = [
    ...[16, 32, 64].map((subgroupSize) => ({ subgroupSize })),
    ...reported.map((matrix) => ({
      subgroupSize: 32,
      hardware: { ...blocks, workgroupBytes: 65_536, subgroupMatrices: [matrix] },
    })),
  ];

  it("compile for other lanes and for hardware matrices", async () => {
    const device = await requestNullDevice();
    const complaints: unknown[] = [];
    let matrices = 0;
    for (const context of contexts)
      for (const { m, n, k } of [cases[0], cases[2], { m: 2048, n: 2048, k: 32 }] as Case[]) {
        const codes: string[] = [];
        const recorder: LaunchTarget<undefined> = {
          allocate: () => undefined,
          launch: ({ kernel, bindings }) =>
            codes.push(kernel.program({ tier: "native", ...context, bindings }).code),
        };
        const bind = (length: number) =>
          ({ buffer: undefined, offset: 0, length, dtype: "float16" }) as const;
        const operands = { a: bind(m * k), b: bind(k * n), out: bind(m * n), rowSums: bind(m) };
        matmulWithRowSums(recorder, operands, { m, n, k });
        const [code] = codes as [string];
        expect(code).toContain("store_row_sum(slice");
        if (code.includes("subgroupMatrixMultiplyAccumulate")) matrices++;
        const { messages } = await device.createShaderModule({ code }).getCompilationInfo();
        complaints.push(...messages.map(({ message }) => message));
      }
    device.destroy();
    expect(complaints).toEqual([]);
    expect(matrices).toBe(6);
  });

  it.each([64, 128, 512])("meet in workgroup memory of %i places", async (capacity) => {
    const invocations = 256;
    const rows = 64;
    const sums = blockRowSums({ rows, invocations }, [["vec4f(f32(local + 1u))"]], {
      capacity,
      get: (place) => `meeting[${place}]`,
      put: (place, value) => `meeting[${place}] = ${value};`,
    });
    const kernel = defineKernel({
      name: "meet",
      variant: `${capacity}`,
      bindings: [{ name: "row_sums", access: "write" }],
      scalars: [{ name: "m", type: "u32" }],
      body: () => `${rowSumStore}
var<workgroup> meeting: array<vec4f, ${capacity}>;
@compute @workgroup_size(${invocations})
fn main(@builtin(local_invocation_index) local: u32) {
  let slice = 0u; let row0 = 0u; let column0 = 0u;
${sums.before}${sums.each}${sums.after}}
`,
      workgroups: () => [1, 1, 1],
      reference: ([out]) => out?.set(expected),
    });
    // Quad q meets what invocations q, q + 16, … have loaded; the last row is one of none.
    const expected = Array.from({ length: rows - 1 }, (_, row) => {
      let sum = 0;
      for (let i = row >> 2; i < invocations; i += rows / 4) sum += i + 1;
      return sum;
    });
    const device = await requestTestDevice();
    const { out } = await runOnGpu(device, { out: { values: rows - 1 } }, (target, { out }) =>
      target.launch({ kernel, bindings: [out], scalars: { m: rows - 1 } }),
    );
    expect([...out]).toEqual(expected);
  });
});
