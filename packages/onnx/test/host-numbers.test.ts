import { expect, test } from "vitest";
import { type DataType, dataType } from "../src/data-type.js";
import { elementwiseOnHost } from "../src/import/host-ops.js";
import { HostTensor } from "../src/import/host-tensor.js";

// Numbers that a graph computes of shapes and constants are those of its types, as runtimes have them.

const { FLOAT, FLOAT16, INT32, INT64, UINT8, DOUBLE } = dataType;

const computed = (operator: string, type: DataType, ...operands: readonly number[]): number =>
  elementwiseOnHost(
    operator,
    operands.map((each) => new HostTensor(type, [], [each])),
    false,
  ).list[0] as number;

test("each operator rounds to its type", () => {
  const seven = computed("Mul", FLOAT, 10, Math.fround(0.7));
  expect(seven).toBe(7);
  expect(computed("Mul", DOUBLE, 10, Math.fround(0.7))).toBeLessThan(7);
  expect(computed("Add", FLOAT, 2 ** 24, 1)).toBe(2 ** 24);
  expect(computed("Add", FLOAT16, 2048, 1)).toBe(2048);
  // T5 finds the bucket of a distance of 16 so.
  const ratio = computed("Div", FLOAT, computed("Log", FLOAT, 2), computed("Log", FLOAT, 16));
  expect(computed("Mul", FLOAT, ratio, 8)).toBe(2);
});

test("integers have the bits of their type", () => {
  expect(computed("Mul", INT32, 2 ** 20, 2 ** 20)).toBe(0);
  expect(computed("Mul", INT64, 2 ** 20, 2 ** 20)).toBe(2 ** 40);
  expect(computed("Add", UINT8, 200, 100)).toBe(44);
  expect(computed("Div", INT64, -7, 2)).toBe(-3);
  expect(computed("Pow", INT64, 2, -1)).toBe(0);
});
