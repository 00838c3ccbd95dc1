// Operators of graphs, one by one: shapes and numbers are those of ONNX Runtime.
import { expect, test } from "vitest";
import { waves } from "./cases.js";
import { type Constant, difference } from "./one-node.js";

test.each(["Max", "Min"])("%s takes any number of operands", async (operator) => {
  const [a, b, c] = [waves([2, 3]), waves([3]).neg(), waves([2, 1]).mul(0.5)];
  expect(await difference(operator, {}, { a })).toBe("");
  expect(await difference(operator, {}, { a, b })).toBe("");
  expect(await difference(operator, {}, { a, b, c })).toBe("");
  const bound: Constant = { shape: [], values: [0.25] };
  expect(await difference(operator, {}, { a, bound })).toBe("");
  expect(await difference(operator, {}, { bound, a, b })).toBe("");
});
