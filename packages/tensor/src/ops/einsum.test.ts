import { autocast } from "@halfstep/autocast";
import { describe, expect, test } from "vitest";
import {
  type ForwardCase,
  forwardMismatches,
  places,
  scattered,
} from "../../test/forward-check.js";
import { naiveEinsum } from "../../test/naive-einsum.js";
import { cpuRuntime, einsum, ShapeError } from "../index.js";

/** `spelled` is the equation without abbreviations, if it has some. */
function einsumCase(
  equation: string,
  shapes: readonly (readonly number[])[],
  shape: readonly number[],
  spelled = equation,
): ForwardCase {
  return {
    name: `${equation} of ${shapes.map((own) => `[${own}]`).join(", ")}`,
    inputs: shapes.map((own, i) => scattered(own, i + 1)),
    apply: (inputs) => einsum(equation, ...inputs),
    expected: (inputs) => naiveEinsum(spelled, inputs, shapes),
    shape,
  };
}

const cases: readonly ForwardCase[] = [
  einsumCase(
    "ij,jk->ik",
    [
      [3, 4],
      [4, 5],
    ],
    [3, 5],
  ),
  einsumCase(
    "ij, kj -> ik",
    [
      [3, 4],
      [5, 4],
    ],
    [3, 5],
    "ij,kj->ik",
  ),
  einsumCase(
    "bij,bjk->bik",
    [
      [2, 3, 4],
      [2, 4, 5],
    ],
    [2, 3, 5],
  ),
  einsumCase(
    "bhid,bhjd->bhij",
    [
      [2, 2, 3, 4],
      [2, 2, 5, 4],
    ],
    [2, 2, 3, 5],
  ),
  einsumCase(
    "bijk,bdk->jdib",
    [
      [2, 3, 4, 5],
      [2, 6, 5],
    ],
    [4, 6, 3, 2],
  ),
  einsumCase("i,j->ij", [[3], [4]], [3, 4]),
  einsumCase(
    "ij,ij->ij",
    [
      [3, 4],
      [3, 4],
    ],
    [3, 4],
  ),
  einsumCase("ij,j->ji", [[3, 4], [4]], [4, 3]),
  einsumCase("ij->ji", [[3, 4]], [4, 3]),
  einsumCase("ijk->j", [[2, 3, 4]], [3]),
  einsumCase(
    "ij,ij->",
    [
      [3, 4],
      [3, 4],
    ],
    [],
  ),
  einsumCase(
    "ik,jkl,il->ij",
    [
      [2, 3],
      [4, 3, 5],
      [2, 5],
    ],
    [2, 4],
  ),
  einsumCase(
    "bi,bij,bj->b",
    [
      [2, 3],
      [2, 3, 4],
      [2, 4],
    ],
    [2],
  ),
  einsumCase(
    "ij,jk",
    [
      [3, 4],
      [4, 5],
    ],
    [3, 5],
    "ij,jk->ik",
  ),
  einsumCase("ba", [[2, 3]], [3, 2], "ba->ab"),
  einsumCase(
    "...ij,...jk->...ik",
    [
      [2, 1, 3, 4],
      [3, 4, 2],
    ],
    [2, 3, 3, 2],
    "xyij,yjk->xyik",
  ),
  einsumCase(
    "i...,i...",
    [
      [3, 2],
      [3, 2],
    ],
    [2],
    "ia,ia->a",
  ),
  einsumCase("...i->...", [[2, 3, 4]], [2, 3], "abi->ab"),
  einsumCase(
    "ij,jk->ik",
    [
      [3, 1],
      [4, 5],
    ],
    [3, 5],
  ),
  einsumCase(
    "ij,ik->ijk",
    [
      [1, 3],
      [2, 4],
    ],
    [2, 3, 4],
  ),
  einsumCase("i,i->", [[1], [4]], []),
];

test.each(places)("einsum is the sum that its equation says: %s, %s", async (_, dtype, open) => {
  expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
});

test("nothing sums to zero", async () => {
  const runtime = cpuRuntime();
  const result = einsum("ij,jk->ik", runtime.zeros([2, 0]), runtime.zeros([0, 3]));
  expect(result.shape).toEqual([2, 3]);
  expect([...(await result.toArray())]).toEqual([0, 0, 0, 0, 0, 0]);
});

test("autocast treats it as one op", () => {
  const runtime = cpuRuntime();
  const run = () => einsum("ij->i", runtime.zeros([2, 3]));
  expect(run().dtype).toBe("float32");
  expect(autocast({ dtype: "bfloat16" }, run).dtype).toBe("bfloat16");
});

describe("refused", () => {
  const shapes = [
    [2, 3],
    [3, 4],
  ];
  test.each([
    ["ij", shapes, "it names 1 operands, but 2 were passed"],
    ["ij,jk->ik->", shapes, "there is more than one ->"],
    ["ij,j1->i", shapes, '"1" is no label: use letters, "...", "," and "->"'],
    [
      "i,jk->ik",
      shapes,
      'operand 0 of shape [2,3] has 2 dimensions, but "i" labels 1: put ... where the others are',
    ],
    ["ijk,jk->ik", shapes, 'operand 0 of shape [2,3] has 2 dimensions, but "ijk" labels 3'],
    [
      "ii,jk->k",
      shapes,
      'operand 0 of shape [2,3] has no diagonal along "i": sizes 2 and 3 differ',
    ],
    ["ij,jk->iz", shapes, 'the result has the label "z", which no operand has'],
    ["ij,jk->ii", shapes, 'the result has the label "i" twice'],
    ["ij,ik->jk", shapes, 'operand 1 of shape [3,4] has 3 along "i", an operand before it 2'],
    ["...i...,jk->k", shapes, '"...i..." has more than one ...'],
  ])("%s", (equation, own, message) => {
    const runtime = cpuRuntime();
    const call = () => einsum(equation, ...own.map((shape) => runtime.zeros(shape)));
    expect(call).toThrow(ShapeError);
    expect(call).toThrow(`einsum "${equation}": ${message}`);
  });
});
