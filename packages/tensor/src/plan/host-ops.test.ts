import type { Binding } from "@halfstep/device";
import { expect, test } from "vitest";
import {
  cpuRuntime,
  defineHostOp,
  type HostFunction,
  type HostOp,
  type HostPart,
  hostLaunch,
  type Runtime,
  type Variable,
} from "../index.js";
import type { Storage } from "../record/storage.js";

// Where a plan calls functions of the host, for which parts, and what it commits behind them.

const segment = 128;
const segments = 4;

const elementwise = (parts: number, leastBytes: number): HostOp =>
  defineHostOp({
    name: "double",
    bindings: [{ name: "x", access: "readwrite" }],
    division: {
      ...{ parts, leastBytes },
      carry: (binding) => ({
        before: [],
        operands: [{ binding, role: { name: "x", access: "readwrite" } }],
        after: [],
      }),
    },
  });

/** Writes the segments of one buffer, the last first, as backward passes do; then doubles them on the host, and reads them. */
function opened(
  op: HostOp,
  runtime: Runtime = cpuRuntime(),
  afterPart: (part: Variable) => void = () => {},
  sizes: readonly number[] = Array(segments).fill(1),
) {
  const lengths = sizes.map((size) => size * segment);
  const offsetOf = (i: number): number => lengths.slice(0, i).reduce((sum, each) => sum + each, 0);
  const buffer = runtime.target.allocateResident(offsetOf(sizes.length) * 4);
  const whole: Binding<Storage> = {
    ...{ buffer, offset: 0, length: offsetOf(sizes.length) },
    dtype: "float32",
  };
  const parts = lengths.map((length, i) =>
    runtime.variableAt(
      { storage: buffer, offset: offsetOf(i) * 4 },
      [length],
      "float32",
      `part ${i}`,
    ),
  );
  const state = runtime.variable([1], [1]);
  const called: HostPart[] = [];
  const double: HostFunction = async ([bytes], part) => {
    called.push(part);
    const values = new Float32Array(bytes?.buffer ?? new ArrayBuffer(0));
    for (const [i, value] of values.entries()) values[i] = value * 2;
  };
  const step = (number: number) => () => {
    state.assign(state.add(number));
    for (const part of [...parts].reverse()) {
      const x = runtime.tensor(new Float32Array(part.size).fill(number));
      part.assign(x.mul(state));
      afterPart(part);
    }
    runtime.target.launch(hostLaunch(op, [whole], double));
    return parts.map((part) => part.sum());
  };
  return { runtime, state, called, step };
}

const offsets = (parts: readonly { readonly offset: number }[]): number[] =>
  parts.map(({ offset }) => offset / segment);

test("an op on elements is divided, and each part is called where it is ready", async () => {
  const { runtime, called, step } = opened(elementwise(4, segment * 4));
  const plan = runtime.plan(step(1));
  expect(offsets(plan.hostOps.map(({ part }) => part))).toEqual([3, 2, 1, 0]);
  // Behind each writer, and all are awaited by the last segment.
  const [first = 0] = plan.hostOps.map(({ position }) => position);
  const last = plan.hostOps.at(-1)?.position as number;
  expect(plan.hostOps.map(({ position }) => position - first)).toEqual([0, 2, 4, 6]);
  expect(plan.hostOps.map(({ awaitedAt }) => awaitedAt)).toEqual(Array(4).fill(last + 1));
  const sums = await runtime.step(step(2));
  expect(await Promise.all(sums.map((each) => each.item()))).toEqual(
    Array(4).fill(2 * 2 * 3 * segment),
  );
  expect(offsets(called)).toEqual([3, 2, 1, 0]);
  expect(called.map(({ index, count }) => [index, count])).toEqual([0, 1, 2, 3].map((i) => [i, 4]));
});

test("parts are contiguous, about equal and no smaller than asked for", () => {
  const placesOf = (parts: number, leastBytes: number): (readonly [number, number])[] => {
    const { runtime, step } = opened(elementwise(parts, leastBytes));
    return runtime
      .plan(step(1))
      .hostOps.map(({ part }) => [part.offset / segment, part.length / segment] as const);
  };
  expect(placesOf(2, segment * 4)).toEqual([
    [2, 2],
    [0, 2],
  ]);
  expect(placesOf(4, segment * 8)).toEqual([
    [2, 2],
    [0, 2],
  ]);
  expect(placesOf(3, segment * 4)).toEqual([
    [2, 2],
    [0, 2],
  ]);
  // A small group waits for the end.
  expect(placesOf(4, segment * 16)).toEqual([[0, 4]]);
});

test.each([
  // It joins the part before a large gradient.
  {
    sizes: [4, 1, 2, 2],
    parts: 3,
    least: 2,
    expected: [
      [4, 5],
      [0, 4],
    ],
  },
  // It joins the last part, which gives what it does not need to the part before.
  {
    sizes: Array(7).fill(1),
    parts: 4,
    least: 1.5,
    expected: [
      [5, 2],
      [2, 3],
      [0, 2],
    ],
  },
  // Where there is no third part, the first one does not wait.
  {
    sizes: Array(5).fill(1),
    parts: 3,
    least: 1.5,
    expected: [
      [3, 2],
      [0, 3],
    ],
  },
])("what is too small for a part of its own delays no other: $sizes", (given) => {
  const op = elementwise(given.parts, given.least * segment * 4);
  const { runtime, step } = opened(op, cpuRuntime(), () => {}, given.sizes);
  const { hostOps } = runtime.plan(step(1));
  const places = hostOps.map(({ part }) => [part.offset / segment, part.length / segment]);
  expect(places).toEqual(given.expected);
});

test("parts come behind all ops that are not divided, whatever plan they are in", () => {
  const whole = defineHostOp({ name: "whole", bindings: [{ name: "x", access: "readwrite" }] });
  const runtime = cpuRuntime();
  const { step } = opened(elementwise(4, segment * 4), runtime, (part) => {
    // Between the writers of the parts, as a batch norm across processes is.
    const other = part.mul(2);
    runtime.target.launch(hostLaunch(whole, [other.operand()], async () => {}));
  });
  const { hostOps, launches } = runtime.plan(step(1));
  const names = hostOps.map(({ position }) => launches[position]?.launch.kernel.name);
  expect(names).toEqual([...Array(segments).fill("whole"), ...Array(segments).fill("double")]);
});

test("without the pass an op is called once, at its place", async () => {
  const divided = opened(elementwise(4, 4));
  const whole = opened(elementwise(4, 4), cpuRuntime({ passes: [] }));
  const { hostOps, launches } = whole.runtime.plan(whole.step(1));
  expect(hostOps.map(({ part }) => part)).toEqual([
    { index: 0, count: 1, offset: 0, length: segments * segment },
  ]);
  expect(launches.slice(hostOps[0]?.position).map(({ launch }) => launch.kernel.name)).toContain(
    "double",
  );
  const results = [divided, whole].map(async ({ runtime, step }) => {
    const sums = await runtime.step(step(3));
    return Promise.all(sums.map((each) => each.item()));
  });
  const [one, other] = await Promise.all(results);
  expect(one).toEqual(other);
});

test("state that is written before the last op is committed behind it", async () => {
  const { runtime, state, step } = opened(elementwise(2, 4));
  const plan = runtime.plan(step(1));
  const last = plan.hostOps.at(-1)?.position as number;
  const writesState = plan.launches.flatMap(({ launch }, position) =>
    launch.bindings.some(
      ({ buffer, length }, b) =>
        buffer.kind === "resident" && length === 4 && launch.kernel.bindings[b]?.access !== "read",
    )
      ? [position]
      : [],
  );
  expect(writesState).toEqual([last + 1]);
  await runtime.step(step(1));
  await runtime.step(step(2));
  expect([...(await state.toArray())]).toEqual([4]);
});

test.each([true, false])(
  "an op that is final: %s, comes behind the state, or before",
  (isFinal) => {
    const { runtime, state } = opened(elementwise(1, segment));
    const bindings = [{ name: "report", access: "read" }] as const;
    const op = defineHostOp({ name: "pass on", bindings, isFinal });
    const buffer = runtime.target.allocateResident(16);
    const plan = runtime.plan(() => {
      state.assign(state.add(1));
      const report = { buffer, offset: 0, length: 4, dtype: "float32" } as const;
      runtime.target.launch(hostLaunch(op, [report], async () => {}));
    });
    const last = plan.launches.length - 1;
    expect(plan.hostOps[0]?.position).toBe(isFinal ? last : last - 1);
  },
);
