import type { DType, Hardware } from "@halfstep/device";
import { describe, expect, it } from "vitest";
import { programsOf, someGpu, withoutMemory } from "../../test/harness.js";
import { normBackward } from "./backward.js";
import { norm } from "./norm.js";

/** The WGSL of the norm of 100 rows and of its input's gradient. */
function codesOf(
  dtype: DType,
  { width = 512, weight = "float32" as DType, hardware = someGpu as Hardware } = {},
): readonly [norm: string, gradient: string] {
  const shape = { batch: 100, pixels: 1, groups: 1, width };
  const row = withoutMemory(width, weight);
  const all = (name: DType) => withoutMemory(100 * width, name);
  const operands = {
    ...{ input: all(dtype), out: all(dtype), outGradient: all(dtype), inputGradient: all(dtype) },
    ...{ mean: withoutMemory(100, "float32"), rstd: withoutMemory(100, "float32") },
    ...{ weight: row, bias: row },
  };
  const codes = programsOf({ tier: "native", subgroupSize: 32, hardware }, (target) => {
    norm(target, operands, { ...shape, eps: 1e-5 });
    normBackward(target, operands, shape);
  });
  return [codes.norm as string, codes.normInputGradient as string];
}

const count = (code: string, part: string): number => code.split(part).length - 1;

/** The part of a program that has a row in registers. */
const keptPart = (code: string, most: number): string =>
  code.slice(code.indexOf(`if (steps <= ${most}u) {`), code.indexOf("} else {"));

describe("rows that the registers of a team hold", () => {
  it("are loaded once: each operand in eight quads, or in four pairs of 16-bit quads", () => {
    for (const [dtype, loads, most] of [
      ["float32", 8, 256],
      ["float16", 4, 128],
      ["bfloat16", 4, 128],
    ] as const) {
      const [whole, gradient] = codesOf(dtype).map((code) => keptPart(code, most)) as [
        string,
        string,
      ];
      expect(count(whole, "load_input(")).toBe(loads);
      expect(count(whole, "store_out(")).toBe(loads);
      for (const parameter of ["load_weight(", "load_bias("])
        expect(count(whole, parameter)).toBe(8);
      for (const operand of ["load_input(", "load_outGradient(", "store_inputGradient("])
        expect(count(gradient, operand)).toBe(loads);
      expect(count(gradient, "load_weight(")).toBe(8);
    }
  });

  it("move in pairs of quads where their operands have 16 bits, whatever parameters have", () => {
    for (const weight of ["float32", "bfloat16"] as const) {
      const [whole, gradient] = codesOf("float16", { weight });
      expect(count(whole, "array<vec4u>")).toBe(2);
      expect(count(gradient, "array<vec4u>")).toBe(3);
    }
  });

  it("move in quads where a row is no pairs, and where operands have 32 bits", () => {
    for (const code of [...codesOf("float16", { width: 516 }), ...codesOf("float32")])
      expect(code).not.toContain("array<vec4u>");
  });

  it("are loaded again on CPUs", () => {
    for (const code of codesOf("float16", { hardware: { ...someGpu, class: "software" } })) {
      expect(code).not.toContain("array<vec4u>");
      expect(code).not.toContain("inside0");
    }
  });
});
