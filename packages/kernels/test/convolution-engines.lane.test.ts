import type { Hardware, Kernel, Launch, LaunchTarget } from "@halfstep/device";
import { requestNullDevice } from "@halfstep/device/node";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { flagBits } from "../src/found-flag.js";
import {
  type ConvolutionCase,
  checkedLaunches,
  convolutionCases,
  convolutionLaunches,
  convolutionOperands,
  type Direction,
  directions,
} from "./convolution-cases.js";
import { mismatches, runOnCpu, runOnGpu, unitRoundoff, withHardware } from "./harness.js";

// Engines of convolutions that the software adapter does not choose for itself: blocks in workgroup memory run on it all the
// same, blocks of hardware matrices compile on Dawn's null backend.

const gpu: Hardware = {
  class: "a real one",
  workgroupBytes: 65_536,
  workgroupInvocations: 1024,
  matrixSubgroupSize: 32,
  subgroupMatrices: [],
};

const bitForBit = { relative: 0, absolute: 0 };

describe.each(await testTiers())("convolutions by blocks in workgroup memory (%s)", (tier) => {
  it.each(
    directions.flatMap((direction) =>
      (["float16", "float32"] as const).map((dtype) => [direction, dtype] as const),
    ),
  )("equal the reference: %s of %s", async (direction, dtype) => {
    const device = await requestTestDevice({ tier });
    const wrong: Record<string, readonly string[]> = {};
    for (const tested of convolutionCases) {
      // Rows have tests of their own.
      if (tested.byRows?.includes(direction)) continue;
      const operands = convolutionOperands(tested, direction, { dtype });
      const launches = convolutionLaunches(tested, direction);
      const { result } = await runOnGpu(device, operands, (target, bindings) =>
        launches(withHardware(target, gpu), bindings),
      );
      const want = runOnCpu(operands, launches);
      // Sums of these values are exact in float32, in any order.
      const exactly = { relative: unitRoundoff.float32, absolute: 0 };
      const found = mismatches(result, want.result, exactly);
      if (found.length > 0) wrong[tested.name] = found;
    }
    expect(wrong).toEqual({});
  });

  it.each(directions)("check and repeat their stores: %s", async (direction) => {
    const device = await requestTestDevice({ tier });
    const tested = convolutionCases.find(({ hasEpilogue }) => hasEpilogue) as ConvolutionCase;
    const launches = checkedLaunches(tested, direction);
    for (const last of [1, Number.POSITIVE_INFINITY]) {
      const operands = convolutionOperands(tested, direction, { last });
      const got = await runOnGpu(device, operands, (target, bindings) =>
        launches(withHardware(target, gpu), bindings),
      );
      expect(got.foundInf[0]).toBe(last === 1 ? 0 : flagBits);
      expect(mismatches(got.twin, runOnCpu(operands, launches).twin, bitForBit)).toEqual([]);
    }
  });
});

/** The programs of a direction on hardware: each launch's text. */
function programsOf(tested: ConvolutionCase, direction: Direction, hardware: Hardware): string[] {
  const programs: string[] = [];
  const recorder: LaunchTarget<undefined> = {
    allocate: () => undefined,
    launch: ({ kernel, bindings }: Launch<undefined>) => {
      const context = { tier: "native", subgroupSize: 32, hardware, bindings } as const;
      programs.push((kernel as Kernel).program(context).code);
    },
  };
  const operands = convolutionOperands(tested, direction);
  const bindings = Object.fromEntries(
    Object.entries(operands).map(([name, { values, dtype }]) => [
      name,
      {
        buffer: undefined,
        offset: 0,
        length: typeof values === "number" ? values : values.length,
        dtype,
      },
    ]),
  ) as Parameters<ReturnType<typeof convolutionLaunches>>[1];
  convolutionLaunches(tested, direction)(recorder, bindings as never);
  return programs;
}

const engineOf = (code: string): "matrix" | "shared" | "rows" => {
  if (code.includes("subgroupMatrixMultiplyAccumulate")) return "matrix";
  return code.includes("workgroupBarrier") ? "shared" : "rows";
};

/** What vendors report, and the invocations by which they multiply it. */
const byLanes = [
  ...[
    [16, 16, 16],
    [16, 8, 16],
    [16, 8, 8],
    [8, 16, 16],
    [8, 8, 8],
  ].map((shape) => ({ shape, lanes: 32 })),
  { shape: [8, 16, 16], lanes: 16 },
  { shape: [8, 8, 8], lanes: 8 },
  { shape: [16, 16, 16], lanes: 64 },
].map(({ shape: [m = 0, n = 0, k = 0], lanes }) => ({
  name: `${m}×${n}×${k} by ${lanes} lanes`,
  hardware: {
    ...gpu,
    matrixSubgroupSize: lanes,
    subgroupMatrices: [{ m, n, k, component: "f16" }],
  } satisfies Hardware,
}));

describe("convolutions by hardware matrices", () => {
  it.each(byLanes)("compile in every shape: $name", async ({ hardware }) => {
    const device = await requestNullDevice();
    const complaints: Record<string, unknown> = {};
    const engines: Record<string, string> = {};
    const wanted: Record<string, string> = {};
    for (const tested of convolutionCases)
      for (const direction of directions) {
        const [code = ""] = programsOf(tested, direction, hardware);
        const name = `${tested.name}, ${direction}`;
        engines[name] = engineOf(code);
        wanted[name] = tested.byRows?.includes(direction) ? "rows" : "matrix";
        device.pushErrorScope("validation");
        const module = device.createShaderModule({ code });
        const { messages } = await module.getCompilationInfo();
        const error = await device.popErrorScope();
        if (messages.length > 0 || error)
          complaints[name] = error?.message ?? messages.map((m) => m.message);
      }
    device.destroy();
    expect(complaints).toEqual({});
    expect(engines).toEqual(wanted);
  });

  it("copy whole groups of channels as they are stored", () => {
    const { hardware } = byLanes[0] as (typeof byLanes)[number];
    const [whole, odd] = ["groups", "odd channels"].map((name) =>
      convolutionCases.find((tested) => tested.name === name),
    ) as [ConvolutionCase, ConvolutionCase];
    for (const direction of directions) {
      const [copying = ""] = programsOf(whole, direction, hardware);
      expect(copying).toContain("var<workgroup> memory: array<vec4u");
      expect(copying).not.toContain("vec4<f16>(");
      const [decoding = ""] = programsOf(odd, direction, hardware);
      expect(decoding).toContain("vec4<f16>(");
    }
  });

  it("divide nothing in their loops", () => {
    const { hardware } = byLanes[0] as (typeof byLanes)[number];
    for (const tested of convolutionCases)
      for (const direction of directions) {
        const [code = ""] = programsOf(tested, direction, hardware);
        if (engineOf(code) !== "matrix") continue;
        const loop = code.slice(code.indexOf("for (var step"), code.indexOf("subgroupMatrixStore"));
        // Divisions and remainders by numbers that the text names are shifts and masks.
        const divisors = [...loop.matchAll(/[/%] ([^ ;,)\]]+)/g)].map(([, divisor]) => divisor);
        expect(divisors.filter((divisor) => !/^\d+u$/.test(divisor ?? ""))).toEqual([]);
      }
  });
});
