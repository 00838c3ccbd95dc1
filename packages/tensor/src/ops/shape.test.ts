import { expect, test } from "vitest";
import {
  type ForwardCase,
  forwardMismatches,
  places,
  scattered,
} from "../../test/forward-check.js";
import { cpuRuntime, ShapeError, type Tensor } from "../index.js";
import * as ops from "./index.js";

const cases: readonly ForwardCase[] = [
  {
    name: "transpose",
    inputs: [scattered([2, 3])],
    apply: ([x]) => ops.permute(x as Tensor, [1, 0]),
    expected: ([x]) => [0, 3, 1, 4, 2, 5].map((i) => x?.[i] as number),
    shape: [3, 2],
  },
  {
    name: "channels first",
    inputs: [scattered([2, 3, 5, 4])],
    apply: ([x]) => ops.permute(x as Tensor, [0, 3, 1, 2]),
    expected: ([x]) =>
      Array.from({ length: 120 }, (_, i) => {
        const [w, h, c, n] = [i % 5, Math.floor(i / 5) % 3, Math.floor(i / 15) % 4, i >= 60];
        return x?.[((Number(n) * 3 + h) * 5 + w) * 4 + c] as number;
      }),
    shape: [2, 4, 3, 5],
  },
  {
    name: "expand a row",
    inputs: [scattered([3])],
    apply: ([x]) => ops.expand(x as Tensor, [2, 3]),
    expected: ([x]) => [...(x as number[]), ...(x as number[])],
    shape: [2, 3],
  },
  {
    name: "expand a column",
    inputs: [scattered([2, 1])],
    apply: ([x]) => ops.expand(x as Tensor, [2, 3]),
    expected: ([x]) => [0, 0, 0, 1, 1, 1].map((i) => x?.[i] as number),
    shape: [2, 3],
  },
  {
    name: "reshape",
    inputs: [scattered([2, 6])],
    apply: ([x]) => ops.reshape(x as Tensor, [3, -1]),
    expected: ([x]) => x as number[],
    shape: [3, 4],
  },
  {
    name: "sumTo a column",
    inputs: [scattered([2, 3])],
    apply: ([x]) => ops.sumTo(x as Tensor, [2, 1]),
    expected: ([x]) =>
      [0, 3].map((at) => (x as number[]).slice(at, at + 3).reduce((a, b) => a + b)),
    shape: [2, 1],
  },
  {
    name: "sumTo a row",
    inputs: [scattered([4, 1, 2])],
    apply: ([x]) => ops.sumTo(x as Tensor, [2]),
    expected: ([x]) =>
      [0, 1].map((at) => [0, 2, 4, 6].reduce((s, i) => s + (x?.[i + at] as number), 0)),
    shape: [2],
  },
];

test.each(places)("shapes change as asked: %s, %s", async (_, dtype, open) => {
  expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
});

test("a reshape shares memory: a variable's view sees what is assigned", async () => {
  const runtime = cpuRuntime();
  const variable = runtime.variable([1, 2, 3, 4], [4]);
  const view = variable.reshape([2, 2]);
  variable.assign(runtime.tensor([5, 6, 7, 8]));
  expect([...(await view.toArray())]).toEqual([5, 6, 7, 8]);
});

test("shapes that do not fit are refused", () => {
  const x = cpuRuntime().zeros([2, 3]);
  const refused: readonly [() => unknown, string][] = [
    [() => x.reshape([4]), "reshape: [2,3] has 6 elements, which do not fill [4]"],
    [() => x.reshape([-1, 4]), "reshape: [2,3] has 6 elements, which do not fill [-1,4]"],
    [() => x.reshape([-1, -1]), "reshape"],
    [() => x.permute([0]), "permute: [0] is no order of the 2 dimensions of [2,3]"],
    [() => x.permute([0, 0]), "permute: [0,0] is no order"],
    [() => x.expand([2, 4]), "expand: [2,3] does not expand to [2,4]"],
    [() => x.expand([3]), "expand: [2,3] does not expand to [3]"],
  ];
  for (const [call, message] of refused) {
    expect(call).toThrow(ShapeError);
    expect(call).toThrow(message);
  }
});
