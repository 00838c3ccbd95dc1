import { expect, test } from "vitest";
import { cpuRuntime, type Runtime, type Tensor } from "../index.js";
import { allPasses, type PassName } from "./pipeline.js";
import { areEqual, type Structure, structureOf } from "./structure.js";

/** The structure of the recording of `fn`. */
async function structure(
  fn: (runtime: Runtime) => unknown,
  passes: readonly PassName[] = allPasses,
): Promise<Structure> {
  const runtime = cpuRuntime();
  let found: Structure | undefined;
  await runtime.step(() => {
    fn(runtime);
    found = structureOf(runtime.recording, passes);
    return 0;
  });
  return found as Structure;
}

test("numbers and data are not part of it", async () => {
  const of = (x: number, c: number): Promise<Structure> =>
    structure((runtime) => runtime.tensor([x, x]).mul(c).add(c));
  expect(areEqual(await of(1, 2), await of(3, 4))).toBe(true);
});

test("it is the same whenever it is asked for, and whatever the array held to which it is written", async () => {
  const runtime = cpuRuntime();
  await runtime.step(() => {
    runtime
      .tensor([1, 2])
      .mul(2)
      .add(runtime.variable([3, 4], [2]));
    const [first, again] = [undefined, Array.from({ length: 1000 }, () => "old")].map((parts) =>
      structureOf(runtime.recording, allPasses, parts),
    );
    expect(again).toEqual(first);
    expect(again?.residents.length).toBe(1);
    return 0;
  });
});

test("each of these is part of it", async () => {
  const pair = (runtime: Runtime): readonly [Tensor, Tensor] => [
    runtime.tensor([1, 2]),
    runtime.tensor([3, 4]),
  ];
  const structures = await Promise.all([
    structure((r) => r.tensor([1, 2]).mul(2)),
    structure((r) => r.tensor([1, 2], [2], { dtype: "float16" }).mul(2)),
    structure((r) => r.tensor([1, 2, 3]).mul(2)),
    structure((r) => r.tensor([1, 2]).add(2)),
    structure((r) => r.tensor([1, 2]).mul(2).keep()),
    structure((r) => r.tensor([1, 2]).keep().mul(2)),
    structure((r) => r.tensor([1, 2]).mul(2), ["removeDeadLaunches"]),
    structure((r) => r.variable([1, 2], [2]).mul(2)),
    structure((r) => r.tensor([1, 2, 3, 4], [2, 2]).sum(0)),
    structure((r) => r.tensor([1, 2, 3, 4], [2, 2]).sum(1)),
    structure((r) => pair(r)[0].keep()),
    structure((r) => pair(r)[1].keep()),
    structure((r) => {
      const [a, b] = pair(r);
      return a.mul(b);
    }),
    structure((r) => {
      const [a] = pair(r);
      return a.mul(a);
    }),
  ]);
  for (const [i, one] of structures.entries())
    for (const [j, other] of structures.entries()) expect(areEqual(one, other)).toBe(i === j);
});
