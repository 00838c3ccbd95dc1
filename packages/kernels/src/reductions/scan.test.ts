import type { HalfDType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  deviceMismatches,
  type Launches,
  mismatches,
  runOnCpu,
  runOnGpu,
  testValues,
  unitRoundoff,
} from "../../test/harness.js";
import { type ScanAttributes, type ScanOp, scan } from "./scan.js";

interface Case extends Pick<ScanAttributes, "rows" | "columns"> {
  readonly dtype: "float32" | HalfDType;
}

const cases: readonly Case[] = [
  { rows: 3, columns: 8, dtype: "float32" },
  { rows: 5, columns: 7, dtype: "float16" },
  { rows: 2, columns: 301, dtype: "float32" },
  { rows: 1, columns: 1, dtype: "float32" },
  { rows: 0, columns: 4, dtype: "float32" },
];
/** Rows whose sums are computed in chunks, which begin and end in other places than rows. */
const longRows: readonly Case[] = [
  { rows: 1, columns: 1025, dtype: "float32" },
  { rows: 3, columns: 1027, dtype: "float16" },
  { rows: 2, columns: 1536, dtype: "bfloat16" },
  { rows: 2, columns: 40_003, dtype: "float32" },
  { rows: 1, columns: 66_000, dtype: "float32" },
];
const ops: readonly ScanOp[] = ["sum", "product", "recurrence"];

const operandsOf = ({ rows, columns, dtype }: Case) => ({
  // Products neither vanish nor explode.
  input: { values: testValues(rows * columns).map((v) => Math.sign(v) * (1 + v / 128)), dtype },
  multiplier: { values: testValues(rows * columns, 2), dtype },
  out: { values: rows * columns, dtype },
});

const each = [...cases, ...longRows].flatMap((check) =>
  (longRows.includes(check) ? ops.slice(0, 1) : ops).flatMap((op) =>
    [false, true].map((reverse) => ({ ...check, op, reverse })),
  ),
);

const tiers = await testTiers();

describe("scan", () => {
  it("runs along rows", () => {
    const found = each.flatMap((check) => {
      const { rows, columns, op, reverse, dtype } = check;
      const { input, multiplier, out } = runOnCpu(operandsOf(check), (target, o) =>
        scan(target, op === "recurrence" ? o : { input: o.input, out: o.out }, check),
      );
      const expected = new Float64Array(rows * columns);
      for (let r = 0; r < rows; r++) {
        let h = op === "product" ? 1 : 0;
        for (let j = 0; j < columns; j++) {
          const e = r * columns + (reverse ? columns - 1 - j : j);
          const x = input[e] as number;
          const factor = op === "recurrence" ? (multiplier[e] as number) : 1;
          h = op === "product" ? h * x : factor * h + x;
          expected[e] = h;
        }
      }
      const relative = 4 * unitRoundoff[dtype];
      return mismatches(out, expected, { relative, absolute: relative });
    });
    expect(found).toEqual([]);
  });

  it("refuses a recurrence without multiplier, and a sum with one", () => {
    const run = (op: ScanOp, with_: boolean) =>
      runOnCpu(operandsOf(cases[0] as Case), (target, { input, multiplier, out }) =>
        scan(target, with_ ? { input, multiplier, out } : { input, out }, {
          ...{ op, rows: 3, columns: 8 },
        }),
      );
    expect(() => run("recurrence", false)).toThrow("a multiplier belongs to a recurrence");
    expect(() => run("sum", true)).toThrow("not to a sum");
  });

  it.each(tiers)("equals the reference on the GPU, %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const check of each) {
      const relative = check.dtype === "float32" ? 1e-5 : 2 * unitRoundoff[check.dtype];
      const texts = await deviceMismatches(
        device,
        operandsOf(check),
        (target, o) =>
          scan(target, check.op === "recurrence" ? o : { input: o.input, out: o.out }, check),
        { out: { relative, absolute: 1e-5 } },
      );
      found.push(...texts.map((text) => `${check.op} of ${check.columns}: ${text}`));
    }
    expect(found).toEqual([]);
  });
});

describe("sums of long rows", () => {
  it("of a million equal numbers are right to five millionths", async () => {
    const device = await requestTestDevice();
    const count = 2 ** 20;
    const input = { values: new Float32Array(count).fill(0.1) };
    const of = (reverse: boolean) =>
      runOnGpu(device, { input, out: { values: count } }, (target, o) =>
        scan(target, o, { op: "sum", rows: 1, columns: count, reverse }),
      );
    const exact = count * Math.fround(0.1);
    const { out: forward } = await of(false);
    expect(Math.abs((forward[count - 1] as number) / exact - 1)).toBeLessThan(5e-6);
    const { out: reverse } = await of(true);
    expect(Math.abs((reverse[0] as number) / exact - 1)).toBeLessThan(5e-6);
    expect(Math.abs((reverse[count / 2] as number) / exact - 0.5)).toBeLessThan(5e-6);
  });

  it.each(["int32", "uint32"] as const)("of %s wrap", async (dtype) => {
    const [rows, columns] = [3, 2501];
    const values = Array.from({ length: rows * columns }, (_, i) => Math.imul(i, 0x9e3779b9));
    const given = dtype === "int32" ? values : values.map((v) => v >>> 0);
    const expected: number[] = [];
    for (const [i, v] of values.entries()) {
      const before = i % columns === 0 ? 0 : (expected[i - 1] as number);
      expected.push(dtype === "int32" ? (before + v) | 0 : (before + v) >>> 0);
    }
    const operands = { input: { values: given, dtype }, out: { values: given.length, dtype } };
    const sums: Launches<typeof operands> = (target, o) =>
      scan(target, o, { op: "sum", rows, columns });
    expect(Array.from(runOnCpu(operands, sums).out)).toEqual(expected);
    const device = await requestTestDevice();
    expect(Array.from((await runOnGpu(device, operands, sums)).out)).toEqual(expected);
  });
});
