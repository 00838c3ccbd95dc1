import type { DType, HalfDType, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  type Launches,
  mismatches,
  packedInLanes,
  runOnCpu,
  runOnGpu,
  testValues,
  unitRoundoff,
  withoutSubgroups,
  withSubgroups,
} from "../test/harness.js";
import { cpuTarget } from "./cpu.js";
import { type MatmulAttributes, matmul } from "./matmul.js";

interface Case extends MatmulAttributes {
  readonly broadcast?: "a" | "b";
  readonly storage?: readonly [a: DType, b: DType, out: "float32" | HalfDType];
  readonly rounding?: HalfDType;
}

/** Each shape reaches another combination of tile, alignment and parts. */
const shapes: readonly Case[] = [
  { m: 70, n: 64, k: 96 },
  { m: 1, n: 1, k: 1 },
  { m: 33, n: 17, k: 5 },
  { m: 100, n: 10, k: 1040, transB: true },
  { m: 40, n: 60, k: 10 },
  { m: 10, n: 68, k: 1028, transA: true },
  { m: 7, n: 9, k: 1100, transA: true },
  { m: 40, n: 48, k: 1024, transA: true },
  // Rows far apart; a band of tiles that ends inside the matrix.
  { m: 20, n: 8, k: 16_384 },
  { m: 300, n: 40, k: 2048, transA: true },
  { m: 5, n: 7, k: 9, transB: true },
  { m: 20, n: 32, k: 24, transA: true, transB: true },
  { m: 6, n: 5, k: 3, transA: true, transB: true },
  { m: 12, n: 16, k: 20, batch: 3 },
  { m: 3, n: 5, k: 7, batch: 4, broadcast: "b" },
  { m: 9, n: 6, k: 1030, batch: 2, broadcast: "a", transB: true },
  { m: 5, n: 6, k: 0 },
  { m: 0, n: 6, k: 4 },
  // More tiles than one dimension of a dispatch holds.
  { m: 1, n: 2, k: 3, batch: 70_000 },
];

const halves: readonly Case[] = [
  { m: 40, n: 36, k: 64, storage: ["float16", "float16", "float16"] },
  { m: 40, n: 36, k: 64, storage: ["bfloat16", "bfloat16", "bfloat16"] },
  { m: 33, n: 10, k: 30, storage: ["float32", "float16", "float32"], rounding: "float16" },
  {
    m: 64,
    n: 10,
    k: 1152,
    transB: true,
    storage: ["float16", "float32", "float16"],
    rounding: "float16",
  },
  { m: 10, n: 75, k: 128, transA: true, storage: ["bfloat16", "bfloat16", "float32"] },
  { m: 9, n: 7, k: 11, storage: ["bfloat16", "float32", "bfloat16"], rounding: "bfloat16" },
];

const title = ({ m, n, k, batch, transA, transB, broadcast, storage }: Case): string =>
  `${batch ? `${batch} × ` : ""}[${m},${k}]${transA ? "ᵀ" : ""}·[${k},${n}]${transB ? "ᵀ" : ""}${
    broadcast ? ` broadcast ${broadcast}` : ""
  }${storage ? ` ${storage.join("·")}` : ""}`;

const operandsOf = ({ m, n, k, batch = 1, broadcast, storage, rounding }: Case) => {
  const [a, b, out] = storage ?? ["float32", "float32", "float32"];
  const rounded = rounding ? { rounding } : {};
  return {
    a: { values: testValues((broadcast === "a" ? 1 : batch) * m * k, 1), dtype: a, ...rounded },
    b: { values: testValues((broadcast === "b" ? 1 : batch) * k * n, 2), dtype: b, ...rounded },
    out: { values: batch * m * n, dtype: out },
  } as const;
};

const launchesOf =
  (shape: Case): Launches<ReturnType<typeof operandsOf>> =>
  (target, operands) =>
    matmul(target, operands, shape);

/** The definition, element by element. */
function naive({ m, n, k, batch = 1, transA, transB, broadcast }: Case): Float64Array {
  const a = testValues((broadcast === "a" ? 1 : batch) * m * k, 1);
  const b = testValues((broadcast === "b" ? 1 : batch) * k * n, 2);
  const out = new Float64Array(batch * m * n);
  for (let e = 0; e < batch; e++)
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++)
        for (let p = 0; p < k; p++) {
          const x = a[(broadcast === "a" ? 0 : e * m * k) + (transA ? p * m + i : i * k + p)];
          const y = b[(broadcast === "b" ? 0 : e * k * n) + (transB ? j * k + p : p * n + j)];
          out[(e * m + i) * n + j] =
            (out[(e * m + i) * n + j] as number) + (x as number) * (y as number);
        }
  return out;
}

/** Test values are multiples of 2^-7, so that float32 sums are exact and only the store rounds. */
const tolerance = ({ storage }: Case) => ({
  relative: storage ? unitRoundoff[storage[2]] * 1.001 : 0,
  absolute: 0,
});

describe("matmul on the CPU", () => {
  it.each([...shapes, ...halves].map((shape) => ({ shape, name: title(shape) })))(
    "computes $name",
    ({ shape }) => {
      const { out } = runOnCpu(operandsOf(shape), launchesOf(shape));
      expect(mismatches(out, naive(shape), tolerance(shape))).toEqual([]);
    },
  );

  it("rounds nothing with float64 arithmetic", () => {
    const shape = halves[0] as Case;
    const { out } = runOnCpu(operandsOf(shape), launchesOf(shape), { arithmetic: "float64" });
    expect(mismatches(out, naive(shape), { relative: 1e-15, absolute: 0 })).toEqual([]);
  });

  it("names the operand whose length does not fit", () => {
    const shape: Case = { m: 3, n: 4, k: 5 };
    const operands = { ...operandsOf(shape), b: { values: 19 } };
    expect(() => runOnCpu(operands, (target, bound) => matmul(target, bound, shape))).toThrow(
      "matmul: b has 19 elements, but its shape is [1,5,4]",
    );
  });

  it("takes scratch memory from its target only where it has to", () => {
    const scratchOf = (shape: Case): number => {
      const target = cpuTarget();
      let bytes = 0;
      const counting = {
        ...target,
        allocate: (size: number) => {
          bytes += size;
          return target.allocate(size);
        },
      };
      const zeros = (length: number) =>
        ({ buffer: target.allocate(length * 4), offset: 0, length, dtype: "float32" }) as const;
      const { m, n, k } = shape;
      matmul(counting, { a: zeros(m * k), b: zeros(k * n), out: zeros(m * n) }, shape);
      return bytes;
    };
    expect(scratchOf({ m: 64, n: 64, k: 64 })).toBe(0);
    expect(scratchOf({ m: 4, n: 5, k: 6 })).toBe(4 * 6 * 4);
    expect(scratchOf({ m: 32, n: 32, k: 1024, transA: true })).toBe(2 * 32 * 32 * 4);
    expect(scratchOf({ m: 128, n: 480, k: 2048 })).toBe(4 * 128 * 480 * 4);
    expect(scratchOf({ m: 128, n: 512, k: 2048 })).toBe(0);
  });
});

describe.each(await testTiers())("matmul on the GPU (%s)", (tier) => {
  it("equals the definition in every shape", async () => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    for (const shape of shapes) {
      const { out } = await runOnGpu(device, operandsOf(shape), launchesOf(shape));
      const found = mismatches(out, naive(shape), tolerance(shape));
      if (found.length > 0) wrong[title(shape)] = found;
    }
    expect(wrong).toEqual({});
  });

  it("rounds once into 16-bit storage, and takes every mix of storages", async () => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    for (const shape of halves) {
      const gpu = await runOnGpu(device, operandsOf(shape), launchesOf(shape));
      const cpu = runOnCpu(operandsOf(shape), launchesOf(shape));
      const found = mismatches(gpu.out, cpu.out, { relative: 0, absolute: 0 });
      if (found.length > 0) wrong[title(shape)] = found;
    }
    expect(wrong).toEqual({});
  });

  it("keeps infinities and NaN in their rows and columns", async () => {
    const device = await requestTestDevice({ tier });
    for (const k of [8, 9]) {
      const [m, n] = [5, 6];
      const operands = operandsOf({ m, n, k, storage: ["float32", "float16", "float16"] });
      operands.a.values[2 * k + k - 1] = Number.POSITIVE_INFINITY;
      operands.b.values[(k - 1) * n + 3] = Number.NaN;
      const launches: Launches<typeof operands> = (target, bindings) =>
        matmul(target, bindings, { m, n, k });
      const gpu = await runOnGpu(device, operands, launches);
      const cpu = runOnCpu(operands, launches);
      expect([...cpu.out].filter(Number.isNaN).length).toBeGreaterThanOrEqual(m);
      expect(mismatches(gpu.out, cpu.out, { relative: 0, absolute: 0 })).toEqual([]);
    }
  });
});

describe.each(await packedInLanes())("matmul on a GPU without subgroups, %s tier", (tier) => {
  it("equals the definition in every shape and storage", async () => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    for (const shape of [...shapes, ...halves]) {
      const { out } = await runOnGpu(device, operandsOf(shape), (target, operands) =>
        matmul(withoutSubgroups(target), operands, shape),
      );
      const found = mismatches(out, naive(shape), tolerance(shape));
      if (found.length > 0) wrong[title(shape)] = found;
    }
    expect(wrong).toEqual({});
  });
});

describe("matmul on a GPU with subgroups of another size", () => {
  const some: readonly Case[] = [
    { m: 13, n: 36, k: 20 },
    { m: 13, n: 36, k: 20, transA: true, transB: true },
  ];

  it("equals the definition with 4 lanes", async () => {
    const device = await requestTestDevice();
    // A part of a larger subgroup behaves as a smaller one.
    const lanes = device.capabilities.features.has("subgroups") ? 4 : 0;
    const wrong: Record<string, readonly string[]> = {};
    for (const shape of some) {
      const { out } = await runOnGpu(device, operandsOf(shape), (target, operands) =>
        matmul(withSubgroups(target, lanes), operands, shape),
      );
      const found = mismatches(out, naive(shape), tolerance(shape));
      if (found.length > 0) wrong[title(shape)] = found;
    }
    expect(wrong).toEqual({});
  });

  it.each([16, 32, 64])("compiles for %i lanes", async (lanes) => {
    const { gpu, capabilities } = await requestTestDevice();
    const subgroupSize = capabilities.features.has("subgroups") ? lanes : 0;
    const codes: string[] = [];
    const recorder: LaunchTarget<undefined> = {
      allocate: () => undefined,
      launch: ({ kernel, bindings }) =>
        codes.push(kernel.program({ tier: "packed", subgroupSize, bindings }).code),
    };
    const bind = (length: number) =>
      ({ buffer: undefined, offset: 0, length, dtype: "float16" }) as const;
    for (const shape of [...some, { m: 5, n: 6, k: 7, transA: true }]) {
      const { m, n, k } = shape;
      matmul(recorder, { a: bind(m * k), b: bind(k * n), out: bind(m * n) }, shape);
    }
    expect(codes).toHaveLength(3);
    for (const code of codes) {
      const { messages } = await gpu.createShaderModule({ code }).getCompilationInfo();
      expect(messages.map(({ message }) => message)).toEqual([]);
    }
  });
});
