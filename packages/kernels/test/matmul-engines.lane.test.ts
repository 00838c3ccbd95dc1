import type { DType, Hardware, Launch, LaunchTarget, SubgroupMatrix } from "@halfstep/device";
import { requestNullDevice } from "@halfstep/device/node";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { elementwiseKernel } from "../src/elementwise.js";
import { takesEpilogue, withEpilogue } from "../src/epilogue.js";
import { kernelTable } from "../src/matmul/block-table.js";
import { type MatmulAttributes, matmul } from "../src/matmul.js";
import { biasReluAndResidual } from "./bias-relu-residual.js";
import {
  mismatches,
  runOnCpu,
  runOnGpu,
  testValues,
  unitRoundoff,
  withHardware,
} from "./harness.js";

// The engines that the software adapter does not choose for itself: blocks in workgroup memory run on it all the same, blocks
// of hardware matrices compile on Dawn's null backend.

const gpu: Hardware = {
  class: "a real one",
  workgroupBytes: 32_768,
  workgroupInvocations: 256,
  matrixSubgroupSize: 32,
  subgroupMatrices: [],
};

interface Case extends MatmulAttributes {
  readonly storage?: DType;
}

/** Every transposition, alignment, edge, batch, division of k and both sizes of blocks. */
const cases: readonly Case[] = [
  { m: 70, n: 68, k: 40 },
  { m: 64, n: 66, k: 37, transB: true, storage: "float16" },
  { m: 65, n: 64, k: 18, transA: true, batch: 2 },
  { m: 36, n: 35, k: 16, transA: true, transB: true, storage: "bfloat16" },
  { m: 32, n: 32, k: 1029, storage: "float16" },
  { m: 129, n: 132, k: 20, batch: 24 },
  { m: 130, n: 130, k: 33, transA: true, transB: true, batch: 24, storage: "float16" },
];

const title = ({ m, n, k, batch = 1, transA, transB, storage = "float32" }: Case): string =>
  `${batch}×[${m},${k}]${transA ? "ᵀ" : ""}·[${k},${n}]${transB ? "ᵀ" : ""} ${storage}`;

const operandsOf = ({ m, n, k, batch = 1, storage = "float32" }: Case) =>
  ({
    a: { values: testValues(batch * m * k, 1), dtype: storage },
    b: { values: testValues(batch * k * n, 2), dtype: storage },
    out: { values: batch * m * n, dtype: "float32" },
  }) as const;

describe.each(await testTiers())("blocks in workgroup memory (%s)", (tier) => {
  it("equal the reference in every shape", async () => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    for (const shape of cases) {
      const { out } = await runOnGpu(device, operandsOf(shape), (target, operands) =>
        matmul(withHardware(target, gpu), operands, shape),
      );
      const want = runOnCpu(operandsOf(shape), (target, operands) =>
        matmul(target, operands, shape),
      );
      const found = mismatches(out, want.out, { relative: unitRoundoff.float32, absolute: 0 });
      if (found.length > 0) wrong[title(shape)] = found;
    }
    expect(wrong).toEqual({});
  });
});

const bind = (length: number, dtype: DType) => ({ buffer: undefined, offset: 0, length, dtype });

/** The launches of a product, the last with bias and relu. */
function launchesOf(shape: Case, storage: DType, isWoven: boolean): Launch<undefined>[] {
  const { m, n, k, batch = 1 } = shape;
  const launches: Launch<undefined>[] = [];
  const recorder: LaunchTarget<undefined> = {
    allocate: () => undefined,
    launch: (launch) => launches.push(launch),
  };
  const out = bind(batch * m * n, storage);
  matmul(
    recorder,
    { a: bind(batch * m * k, storage), b: bind(batch * k * n, storage), out },
    shape,
  );
  const product = launches.at(-1);
  if (!isWoven || !product || !takesEpilogue(product.kernel)) return launches;
  launches[launches.length - 1] = withEpilogue(
    { ...product, kernel: product.kernel },
    {
      kernel: elementwiseKernel(biasReluAndResidual),
      bindings: [out, bind(n, storage), out, out],
      scalars: { count: out.length, one: 1, x1_size0: n },
    },
    { results: [0] },
  );
  return launches;
}

const matrix = (m: number, n: number, k: number, component: "f16" | "f32"): SubgroupMatrix => ({
  m,
  n,
  k,
  component,
});

describe("blocks of hardware matrices", () => {
  /** What vendors report: NVIDIA three, AMD the first, Intel, Apple. */
  const reported = [
    matrix(16, 16, 16, "f16"),
    matrix(16, 8, 16, "f16"),
    matrix(16, 8, 8, "f16"),
    matrix(8, 16, 16, "f16"),
    matrix(8, 8, 8, "f16"),
    matrix(8, 8, 8, "f32"),
  ];
  const shapes: readonly Case[] = [false, true].flatMap((transA) =>
    [false, true].flatMap((transB) => [
      { m: 128, n: 128, k: 64, batch: 96, transA, transB },
      { m: 64, n: 64, k: 64, transA, transB },
      { m: 66, n: 66, k: 33, transA, transB },
      { m: 65, n: 65, k: 33, transA, transB },
    ]),
  );

  /** The invocations by which vendors multiply them: NVIDIA, AMD and Apple by 32, Intel by 16 or 8, AMD's servers by 64. */
  const byLanes = [
    ...reported.map((shape) => ({ shape, lanes: 32 })),
    { shape: matrix(8, 16, 16, "f16"), lanes: 16 },
    { shape: matrix(8, 8, 8, "f16"), lanes: 8 },
    { shape: matrix(16, 16, 16, "f16"), lanes: 64 },
  ];

  const workgroupKiB = [16, 32, 48, 64];

  /** Bytes of the array in workgroup memory. */
  const memoryOf = (code: string): number => {
    const [, type = "", length] = /var<workgroup> memory: array<(\w+), (\d+)>/.exec(code) ?? [];
    return (type === "vec2u" ? 8 : 16) * Number(length);
  };

  it.each(byLanes.map((each) => ({ ...each, name: Object.values(each.shape).join("×") })))(
    "compile in every shape class: $name by $lanes lanes",
    async ({ shape, lanes }) => {
      const device = await requestNullDevice();
      const complaints: Record<string, unknown> = {};
      const compiled = new Set<string>();
      for (const kibibytes of workgroupKiB)
        for (const product of shapes)
          for (const isWoven of [false, true]) {
            const storage = shape.component === "f32" ? "float32" : "float16";
            const [{ kernel, bindings }] = launchesOf(product, storage, isWoven) as [
              Launch<undefined>,
            ];
            const hardware = {
              ...{ ...gpu, workgroupBytes: kibibytes * 1024, workgroupInvocations: 1024 },
              ...{ subgroupMatrices: [shape], matrixSubgroupSize: lanes },
            };
            const context = { tier: "native", subgroupSize: 32, hardware, bindings } as const;
            const { code } = kernel.program(context);
            if (compiled.has(code)) continue;
            compiled.add(code);
            expect(code).toContain("subgroupMatrixMultiplyAccumulate");
            expect(code).toContain(`@subgroup_size(${lanes})`);
            // The compiler checks that matrices are used in uniform control flow, unless it is told otherwise.
            expect(code).not.toContain("diagnostic(");
            expect(memoryOf(code)).toBeLessThanOrEqual(hardware.workgroupBytes);
            device.pushErrorScope("validation");
            const module = device.createShaderModule({ code });
            const { messages } = await module.getCompilationInfo();
            const error = await device.popErrorScope();
            if (messages.length > 0 || error)
              complaints[`${kibibytes} KiB ${title(product)}${isWoven ? " woven" : ""}`] =
                error?.message ?? messages.map((m) => m.message);
          }
      device.destroy();
      expect(complaints).toEqual({});
      expect(compiled.size).toBeGreaterThanOrEqual(4 * shapes.length);
    },
  );

  it("make a pipeline where they fit into the smallest workgroups", async () => {
    const device = await requestNullDevice();
    const { maxComputeWorkgroupStorageSize: workgroupBytes } = device.limits;
    const hardware = { ...gpu, workgroupBytes, subgroupMatrices: reported };
    const [{ kernel, bindings }] = launchesOf(shapes[1] as Case, "float16", true) as [
      Launch<undefined>,
    ];
    const { code } = kernel.program({ tier: "native", subgroupSize: 32, hardware, bindings });
    expect(code).toContain("subgroupMatrixMultiplyAccumulate");
    device.pushErrorScope("validation");
    await device.createComputePipelineAsync({
      layout: "auto",
      compute: { module: device.createShaderModule({ code }) },
    });
    expect(await device.popErrorScope()).toBeNull();
    device.destroy();
  });
});

describe("the engine is chosen by shape, storage and hardware alone", () => {
  const engineOf = (shape: Case, storage: DType, hardware?: Hardware): string => {
    const [{ kernel, bindings }] = launchesOf(shape, storage, false) as [Launch<undefined>];
    const { code } = kernel.program({
      tier: "native",
      subgroupSize: 32,
      bindings,
      ...(hardware && { hardware }),
    });
    if (code.includes("subgroupMatrixMultiplyAccumulate")) return "matrix";
    return code.includes("workgroupBarrier") ? "shared" : "rows";
  };
  const half = { ...gpu, subgroupMatrices: [matrix(16, 16, 16, "f16")] };
  const medium: Case = { m: 64, n: 64, k: 64 };

  it("takes hardware matrices for factors that they hold exactly", () => {
    expect(engineOf(medium, "float16", half)).toBe("matrix");
    expect(engineOf(medium, "bfloat16", half)).toBe("shared");
    expect(engineOf(medium, "float32", half)).toBe("shared");
    const single = { ...gpu, subgroupMatrices: [matrix(8, 8, 8, "f32")] };
    expect(engineOf(medium, "float32", { ...single, workgroupBytes: 65_536 })).toBe("matrix");
  });

  it("by a table that a checkpoint can remember", () => {
    const software = { ...gpu, class: "software" };
    expect(kernelTable(software)).toBe(kernelTable({ ...software, workgroupBytes: 0 }));
    expect(kernelTable(software)).not.toBe(kernelTable(gpu));
    expect(kernelTable(gpu)).toContain('"rows":128');
  });

  it("stays within the workgroup", () => {
    expect(engineOf(medium, "float16", { ...half, workgroupBytes: 8192 })).toBe("rows");
    expect(engineOf(medium, "float16", { ...half, workgroupBytes: 12_288 })).toBe("matrix");
    expect(engineOf(medium, "bfloat16", { ...half, workgroupBytes: 12_288 })).toBe("shared");
    expect(engineOf(medium, "float32", { ...gpu, workgroupInvocations: 128 })).toBe("rows");
  });

  it("takes medium blocks where large ones have no room", () => {
    const large: Case = { m: 1280, n: 1280, k: 64 };
    const floats = { ...gpu, subgroupMatrices: [matrix(8, 8, 8, "f32")] };
    // Apple's workgroups have 32 KiB: room for medium blocks of float32.
    expect(engineOf(large, "float32", floats)).toBe("matrix");
    const least = { ...half, workgroupBytes: 16_384 };
    expect(engineOf(large, "float16", least)).toBe("matrix");
    expect(engineOf(large, "float32", { ...least, subgroupMatrices: [] })).toBe("shared");
    expect(engineOf(large, "float32", { ...gpu, workgroupInvocations: 128 })).toBe("rows");
  });

  it("cuts no blocks of small products, of software adapters, and of unknown hardware", () => {
    expect(engineOf({ m: 16, n: 64, k: 64 }, "float16", half)).toBe("rows");
    expect(engineOf(medium, "float16", { ...half, class: "software" })).toBe("rows");
    expect(engineOf(medium, "float16")).toBe("rows");
  });
});
