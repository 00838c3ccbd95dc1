import type { Hardware, Launch, LaunchTarget, SubgroupMatrix } from "@halfstep/device";
import { requestNullDevice } from "@halfstep/device/node";
import { describe, expect, it } from "vitest";
import { maxAttentionSize } from "../src/attention/shape.js";
import { attributesOf, type Case, launchesOf, operandsOf } from "./attention-cases.js";

// Attention by hardware matrices of every shape that vendors report, which the software adapter does not have: its programs compile on
// Dawn's null backend. A lane runs those of one shape.

const matrix = (m: number, n: number, k: number): SubgroupMatrix => ({ m, n, k, component: "f16" });

/** The invocations by which vendors multiply them: NVIDIA, AMD and Apple by 32, Intel by 16 or 8, AMD's servers by 64. */
const reported = [
  { shape: matrix(16, 16, 16), lanes: 32 },
  { shape: matrix(16, 8, 16), lanes: 32 },
  { shape: matrix(16, 8, 8), lanes: 32 },
  { shape: matrix(8, 8, 8), lanes: 32 },
  { shape: matrix(8, 16, 16), lanes: 16 },
  { shape: matrix(8, 8, 8), lanes: 8 },
  { shape: matrix(16, 16, 16), lanes: 64 },
];

const hardwareOf = (shape: SubgroupMatrix, lanes: number, workgroupBytes: number): Hardware => ({
  ...{ class: "a real one", workgroupBytes, workgroupInvocations: 256 },
  ...{ matrixSubgroupSize: lanes, subgroupMatrices: [shape] },
});

const passes = ["attention", "attentionQueryGradient", "attentionKeyValueGradient"];

/** The launches of the forward pass and of both backward passes. */
function passesOf(test: Case): readonly Launch<undefined>[] {
  const launches: Launch<undefined>[] = [];
  const recorder: LaunchTarget<undefined> = {
    allocate: () => undefined,
    launch: (launch) => launches.push(launch),
  };
  const operands = operandsOf(test);
  const bound = Object.entries(operands).map(([name, { values, dtype = "float32" }]) => {
    const length = typeof values === "number" ? values : values.length;
    return [name, { buffer: undefined, offset: 0, length, dtype }];
  });
  launchesOf(test)(recorder, Object.fromEntries(bound));
  return launches.filter(({ kernel }) => passes.includes(kernel.name));
}

const plain = { lead: [1], queries: 2, keys: 2, storage: "float16" } as const;

const isMatrices = (code: string): boolean => code.includes("subgroupMatrixMultiplyAccumulate");

const programOf = ({ kernel, bindings }: Launch<undefined>, hardware: Hardware): string =>
  kernel.program({ tier: "native", subgroupSize: 32, hardware, bindings }).code;

const bytesOf: Readonly<Record<string, number>> = { f32: 4, vec2u: 8, vec4f: 16 };

/** Bytes of the arrays in workgroup memory, and of a flag. */
const workgroupBytes = (code: string): number =>
  [...code.matchAll(/var<workgroup> \w+: array<(\w+), (\d+)>/g)].reduce(
    (sum, [, type, count]) => sum + (bytesOf[type as string] as number) * Number(count),
    4,
  );

describe("attention by hardware matrices", () => {
  it.each(reported.map((each) => ({ ...each, name: Object.values(each.shape).join("×") })))(
    "compiles: $name by $lanes lanes",
    async ({ shape, lanes }) => {
      const device = await requestNullDevice();
      const tests: readonly Case[] = [
        ...[16, 64, maxAttentionSize].map((size) => ({ ...plain, size })),
        { ...plain, size: 40, width: 80, mask: ["flags", [2, 2]], p: 0.5 },
        { ...plain, size: 17, width: 64, mask: ["lengths", [1]], isCausal: true },
        { ...plain, lead: [2], group: 2, size: 64, window: 1 },
      ];
      const complaints: string[] = [];
      const wrong: string[] = [];
      for (const test of tests)
        for (const bytes of [16_384, 32_768, 49_152])
          for (const launch of passesOf(test)) {
            const code = programOf(launch, hardwareOf(shape, lanes, bytes));
            const name = `${launch.kernel.name} of ${attributesOf(test).size} in ${bytes} bytes`;
            const enough = test.size < 128 ? 32_768 : 49_152;
            if (bytes >= enough && !isMatrices(code)) wrong.push(`${name}: rows`);
            if (!isMatrices(code)) continue;
            if (!code.includes(`@subgroup_size(${lanes})`)) wrong.push(`${name}: no pinned size`);
            if (workgroupBytes(code) > bytes) wrong.push(`${name}: ${workgroupBytes(code)} bytes`);
            device.pushErrorScope("validation");
            const { messages } = await device.createShaderModule({ code }).getCompilationInfo();
            const error = await device.popErrorScope();
            if (messages.length > 0 || error)
              complaints.push(`${name}: ${error?.message ?? messages[0]?.message}`);
          }
      device.destroy();
      expect({ complaints, wrong }).toEqual({ complaints: [], wrong: [] });
    },
  );

  it("is for factors that float16 holds, on adapters that are no CPUs", () => {
    const hardware = hardwareOf(matrix(16, 16, 16), 32, 32_768);
    const engines = (test: Case, changed: Partial<Hardware> = {}): readonly boolean[] =>
      passesOf(test).map((launch) => isMatrices(programOf(launch, { ...hardware, ...changed })));
    const heads = { ...plain, size: 64 };
    expect(engines(heads)).toEqual([true, true, true]);
    expect(engines({ ...heads, storage: "bfloat16" })).toEqual([false, false, false]);
    expect(engines({ ...heads, storage: "float32" })).toEqual([false, false, false]);
    expect(engines({ ...heads, size: 8 })).toEqual([false, false, false]);
    expect(engines(heads, { class: "software" })).toEqual([false, false, false]);
    expect(engines(heads, { workgroupBytes: 4096 })).toEqual([false, false, false]);
    const [forward] = passesOf({ ...heads, storage: "float32" });
    const { kernel, bindings } = forward as Launch<undefined>;
    const rounded = bindings.map((each) => ({ ...each, rounding: "float16" as const }));
    expect(isMatrices(programOf({ kernel, bindings: rounded, scalars: {} }, hardware))).toBe(true);
  });
});
