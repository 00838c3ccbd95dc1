import type { HalfDType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
  mismatches,
  runOnCpu,
  runOnGpu,
  testValues,
  unitRoundoff,
} from "../../test/harness.js";
import { type ReduceAttributes, type ReduceOp, reduce } from "./reduce.js";

interface Case extends ReduceAttributes {
  readonly storage?: "float32" | HalfDType;
}

/** Quads, whole rows and gathering, each in one stage and in several; nothing, one, odd tails. */
const shapes: readonly Omit<Case, "op">[] = [
  { outer: 1, size: 5000, inner: 16 },
  { outer: 3, size: 7, inner: 8 },
  { outer: 1, size: 128, inner: 10 },
  { outer: 1, size: 3001, inner: 3 },
  { outer: 5, size: 12, inner: 1 },
  { outer: 130, size: 10, inner: 1 },
  { outer: 1, size: 40_000, inner: 1 },
  { outer: 2, size: 9001, inner: 1 },
  { outer: 1, size: 1, inner: 1 },
  { outer: 0, size: 4, inner: 4 },
  { outer: 3, size: 50, inner: 6, storage: "float16" },
  { outer: 1, size: 900, inner: 32, storage: "bfloat16" },
  { outer: 9, size: 64, inner: 1, storage: "float16" },
  { outer: 1, size: 6000, inner: 1, storage: "bfloat16" },
];

const cases = (op: ReduceOp): readonly Case[] => shapes.map((shape) => ({ op, ...shape }));

function operandsOf({ op, outer, size, inner, storage = "float32" }: Case, seed = 1) {
  const values = testValues(outer * size * inner, seed);
  // Products are exact, and neither vanish nor explode.
  const factor = (i: number): number => (i % 97 === 5 ? 2 : i % 89 === 3 ? 0.5 : 1);
  const input = op === "prod" ? values.map((v, i) => (v < 0 ? -1 : 1) * factor(i)) : values;
  return {
    input: { values: input, dtype: storage },
    out: { values: outer * inner, dtype: storage },
  } as const;
}

/** Each sum in float64, in the plainest way. */
function expected({ op, outer, size, inner }: Case, input: ArrayLike<number>): number[] {
  return Array.from({ length: outer * inner }, (_, at) => {
    const first = Math.floor(at / inner) * size * inner + (at % inner);
    const axis = Array.from({ length: size }, (_, r) => input[first + r * inner] as number);
    if (op === "min") return axis.reduce((a, b) => Math.min(a, b), Infinity);
    if (op === "prod") return axis.reduce((a, b) => a * b, 1);
    if (op === "max") return axis.reduce((a, b) => Math.max(a, b), -Infinity);
    const sum = axis.reduce((a, b) => a + (op === "sumOfSquares" ? b * b : b), 0);
    return op === "mean" ? sum / size : sum;
  });
}

const title = ({ op, outer, size, inner, storage }: Case): string =>
  `${op} of [${outer},${size},${inner}]${storage ? ` ${storage}` : ""}`;

const ops = ["sum", "mean", "max", "min", "prod", "sumOfSquares"] as const;

describe("reduce on the CPU", () => {
  it.each(ops)("equals a float64 computation: %s", (op) => {
    const found = cases(op).flatMap((attributes) => {
      const operands = operandsOf(attributes);
      const { out } = runOnCpu(operands, (target, bindings) =>
        reduce(target, bindings, attributes),
      );
      const round = unitRoundoff[attributes.storage ?? "float32"];
      return mismatches(out, expected(attributes, operands.input.values), {
        relative: 1.01 * round,
        absolute: 2 ** -25,
      }).map((text) => `${title(attributes)}: ${text}`);
    });
    expect(found).toEqual([]);
  });

  it("refuses lengths that do not match and the maximum of nothing", () => {
    const operands = { input: { values: 12 }, out: { values: 4 } };
    const run = (op: ReduceOp, size: number, inner: number) => () =>
      runOnCpu(operands, (target, bindings) =>
        reduce(target, bindings, { op, outer: 1, size, inner }),
      );
    expect(run("sum", 3, 5)).toThrow("reduce: input has 12 elements, but the attributes need 15");
    expect(() =>
      runOnCpu({ input: { values: 0 }, out: { values: 4 } }, (target, bindings) =>
        reduce(target, bindings, { op: "max", outer: 1, size: 0, inner: 4 }),
      ),
    ).toThrow("maximum over an axis of size 0");
  });
});

/** Integers whose sums and products pass 2^32. */
const integersOf = ({ outer, size, inner }: Case, dtype: "int32" | "uint32"): number[] =>
  [...testValues(outer * size * inner)].map((v, i) => {
    const word = Math.imul(Math.round(v * 128) + i, 0x9e3779b9) | 1;
    return dtype === "uint32" ? word >>> 0 : word;
  });

const exactly = (op: ReduceOp, values: readonly number[], dtype: "int32" | "uint32"): number => {
  const exact = values.map(BigInt).reduce((a, b) => {
    if (op === "max") return a > b ? a : b;
    if (op === "min") return a < b ? a : b;
    return op === "sum" ? a + b : BigInt.asUintN(64, a * b);
  });
  return Number(dtype === "int32" ? BigInt.asIntN(32, exact) : BigInt.asUintN(32, exact));
};

describe("reduce of integers", () => {
  const integers = ["int32", "uint32"] as const;
  const folds = ["sum", "prod", "max", "min"] as const;
  // Each way to walk, in one stage and in several.
  const cases = folds.flatMap((op) =>
    integers.flatMap((dtype) =>
      [3, 4, 0, 6, 1].map((which) => ({ ...(shapes[which] as Case), op, dtype })),
    ),
  );

  it("is exact modulo 2^32 on the CPU", () => {
    for (const { dtype, ...attributes } of cases) {
      const { op, outer, size, inner } = attributes;
      const values = integersOf(attributes, dtype);
      const { out } = runOnCpu(
        { input: { values, dtype }, out: { values: outer * inner, dtype } },
        (target, bindings) => reduce(target, bindings, attributes),
      );
      const line = values.filter((_, i) => i < size * inner && i % inner === 0);
      expect(out[0], `${op} of ${dtype}`).toBe(exactly(op, line, dtype));
    }
  });

  it("is the same on the GPU", async () => {
    const device = await requestTestDevice();
    const exact = { out: { relative: 0, absolute: 0 } };
    for (const { dtype, ...attributes } of cases.filter((_, i) => i % 4 < 3)) {
      const operands = {
        input: { values: integersOf(attributes, dtype), dtype },
        out: { values: attributes.outer * attributes.inner, dtype },
      };
      const found = await deviceMismatches(
        device,
        operands,
        (target, bindings) => reduce(target, bindings, attributes),
        exact,
      );
      expect(found, title(attributes)).toEqual([]);
    }
  });

  it("refuses means and sums of squares", () => {
    const operands = { input: { values: 4, dtype: "int32" }, out: { values: 1, dtype: "int32" } };
    for (const op of ["mean", "sumOfSquares"] as const)
      expect(() =>
        runOnCpu(operands as never, (target, bindings) =>
          reduce(target, bindings as never, { op, outer: 1, size: 4, inner: 1 }),
        ),
      ).toThrow("needs floats, not int32");
  });
});

describe.each(await testTiers())("reduce on the GPU, %s tier", (tier) => {
  it.each(ops)("equals the reference: %s", async (op) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    // Half storage goes through the same program text whatever is computed: one op shows it.
    for (const attributes of cases(op).filter(({ storage }) => op === "sum" || !storage)) {
      const tolerance = {
        relative: 2 ** -21 + (attributes.storage ? 2 * unitRoundoff[attributes.storage] : 0),
        absolute: 2 ** -20,
      };
      const texts = await deviceMismatches(
        device,
        operandsOf(attributes),
        (target, bindings) => reduce(target, bindings, attributes),
        { out: tolerance },
      );
      found.push(...texts.map((text) => `${title(attributes)}: ${text}`));
    }
    expect(found).toEqual([]);
  });

  it("leaves zeros behind the last result, whatever is behind the input", async () => {
    const device = await requestTestDevice({ tier });
    const target = device.encoder();
    const [outer, size, inner] = [1, 20, 3];
    const values = new Float32Array(64).fill(Number.NaN).fill(1, 0, size * inner);
    const input = { offset: 0, length: size * inner, dtype: "float32" } as const;
    const out = { offset: 0, length: outer * inner, dtype: "float32" } as const;
    const [from, to] = [target.allocate(values.byteLength), target.allocate(16)];
    device.write(from, 0, values);
    const operands = { input: { ...input, buffer: from }, out: { ...out, buffer: to } };
    reduce(target, operands, { op: "sum", outer, size, inner });
    target.submit();
    expect([...new Float32Array(await device.read(to, 0, 16))]).toEqual([20, 20, 20, 0]);
    for (const buffer of [from, to]) device.release(buffer);
  });

  it("lets NaN and infinities through, wherever they are", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const op of ["sum", "max", "min"] as const)
      for (const shape of [shapes[0], shapes[3], shapes[4], shapes[6]] as Case[]) {
        const attributes = { ...shape, op };
        const { input, out } = operandsOf(attributes);
        const values = input.values;
        for (const [i, special] of [Number.NaN, Infinity, -Infinity, Number.NaN].entries())
          values[Math.floor(((i + 0.7) / 4) * values.length)] = special;
        const texts = await deviceMismatches(
          device,
          { input: { values }, out },
          (target, bindings) => reduce(target, bindings, attributes),
          { out: { relative: 2 ** -21, absolute: 2 ** -20 } },
        );
        found.push(...texts.map((text) => `${title(attributes)}: ${text}`));
      }
    expect(found).toEqual([]);
  });

  it("gives the same bits each time", async () => {
    const device = await requestTestDevice({ tier });
    const attributes = { op: "sum", outer: 1, size: 20_001, inner: 2 } as const;
    const values = testValues(40_002).map((v, i) => Math.fround(v * Math.sin(i)));
    const sums = new Set<string>();
    for (let i = 0; i < 3; i++) {
      const { out } = await runOnGpu(
        device,
        { input: { values }, out: { values: 2 } },
        (target, bindings) => reduce(target, bindings, attributes),
      );
      sums.add(out.join());
    }
    expect(sums.size).toBe(1);
  });
});
