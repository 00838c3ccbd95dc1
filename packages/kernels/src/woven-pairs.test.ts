import type { Binding, HalfDType, Kernel, Launch, LaunchTarget } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import {
  casesOf,
  type Launches,
  mismatches,
  runOnCpu,
  runOnGpu,
  someGpu,
  testValues,
  tiersInLanes,
  withHardware,
  withoutMemory,
} from "../test/harness.js";
import { type Family, familiesOfPairs } from "../test/quad-stores.js";
import { accumulating, canAccumulate } from "./accumulating.js";
import { accumulate } from "./copies/assign.js";
import { elementwise, elementwiseKernel } from "./elementwise.js";
import { takesEpilogue, withEpilogue } from "./epilogue.js";
import { add, mul, relu } from "./expressions.js";
import { gather } from "./gather-scatter/gather.js";
import { canObserveStores, observingStores } from "./observers/observing-stores.js";
import { storedRange, storedRangeIn, storedRangeWords } from "./observers/stored-range.js";
import { reduce } from "./reductions/reduce.js";
import { canStoreTwice, storingTwice } from "./twin.js";

/** What is woven into the stores of a launch whose last binding is its result. */
const weaves = {
  observer<B>(launch: Launch<B>, words: Binding<B>): Launch<B> {
    const { kernel } = launch;
    if (!canObserveStores(kernel)) throw new TypeError(`${kernel.name} cannot be observed`);
    const result = launch.bindings.length - 1;
    return observingStores({ ...launch, kernel }, [result], { observer: storedRange, words });
  },
  twin<B>(launch: Launch<B>, twin: Binding<B>): Launch<B> {
    const { kernel } = launch;
    if (!canStoreTwice(kernel)) throw new TypeError(`${kernel.name} cannot store twice`);
    return storingTwice({ ...launch, kernel }, launch.bindings.length - 1, twin);
  },
  sum<B>(launch: Launch<B>, sum: Binding<B>, rounding?: HalfDType): Launch<B> {
    const { kernel, bindings } = launch;
    const result = bindings.length - 1;
    if (!canAccumulate(kernel, result)) throw new TypeError(`${kernel.name} cannot accumulate`);
    return accumulating({ ...launch, kernel }, result, sum, rounding);
  },
};

type Stores = Readonly<
  Record<"plain" | "observed" | "words" | "again" | "twin" | "sum" | "wanted", unknown>
>;

/** The launches of a family, the last of which stores the result: as it is, observed, twice, and added to a sum. */
function launchesOf<B>(
  target: LaunchTarget<B>,
  run: (target: LaunchTarget<B>, out: Binding<B>) => void,
  o: Readonly<Record<keyof Stores, Binding<B>>>,
  dtype?: HalfDType,
): void {
  const weaving = (out: Binding<B>, weave: (launch: Launch<B>) => Launch<B>): void =>
    run(
      {
        allocate: (bytes) => target.allocate(bytes),
        launch: (launch) =>
          target.launch(launch.bindings.at(-1)?.buffer === out.buffer ? weave(launch) : launch),
      },
      out,
    );
  run(target, o.plain);
  weaving(o.observed, (launch) => weaves.observer(launch, o.words));
  weaving(o.again, (launch) => weaves.twin(launch, o.twin));
  weaving(o.plain, (launch) => weaves.sum(launch, o.sum, dtype));
  target.launch(accumulate({ input: o.plain, out: o.wanted }));
}

function storesOf(length: number, dtype: HalfDType) {
  const stored = { values: length, dtype };
  const before = { values: testValues(length, 20), dtype };
  return {
    ...{ plain: stored, observed: stored, again: stored, twin: stored },
    ...{ sum: before, wanted: before },
    words: { values: storedRangeWords, dtype: "uint32" },
  } as const;
}

function readsOf({ operands, statistics = "" }: Family, dtype: HalfDType) {
  const read = (name: "a" | "b" | "c" | "d" | "e" | "f" | "g", seed: number) => {
    const isStatistic = statistics.includes(name);
    return {
      // Sums of these depend on their order.
      values: testValues(operands[name] ?? 0, seed).map((v) =>
        isStatistic ? Math.abs(v) + 0.5 : v * (1 + Math.abs(v) / 3),
      ),
      dtype: isStatistic ? ("float32" as const) : dtype,
    };
  };
  return {
    ...{ a: read("a", 1), b: read("b", 2), c: read("c", 3), d: read("d", 4), e: read("e", 5) },
    ...{ f: read("f", 6), g: read("g", 7) },
    labels: {
      values: Uint32Array.from({ length: operands.labels ?? 0 }, (_, i) => (i * 5) % 6),
      dtype: "uint32",
    },
  } as const;
}

const halfDTypes = ["float16", "bfloat16"] as const;
const cases = Object.entries(familiesOfPairs).map(
  ([name, family], i) => [name, family, halfDTypes[i % 2] as HalfDType] as const,
);
/** Each way in which programs store pairs: a program costs a quarter of a second. */
const storing =
  /^(batchNormInput|norm \[70|maxPool2dBack|softmaxBack|reduce columns|gather|addRows|permute|resample )/;
const runCases = cases.filter(([name]) => storing.test(name));
const reluOfSum = elementwiseKernel({
  inputs: ["same", "same"],
  steps: [
    { expression: add, operands: [0, 1] },
    { expression: relu, operands: [2] },
  ],
  outputs: [1],
});

const exact = { relative: 0, absolute: 0 };
const tiers = await tiersInLanes();

describe.each(tiers)("stores of GPUs in 16 bits, %s tier", (tier) => {
  it("have the same bits with an observer, a twin, or where they add", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const [name, family, dtype] of casesOf(runCases, tier, tiers)) {
      const operands = { ...readsOf(family, dtype), ...storesOf(family.length, dtype) };
      const launches: Launches<typeof operands> = (target, o) =>
        launchesOf(withHardware(target, someGpu), (to, out) => family.run(to, o, out), o, dtype);
      const got = await runOnGpu(device, operands, launches);
      for (const [stored, wanted] of [
        ["observed", "plain"],
        ["again", "plain"],
        ["twin", "plain"],
        ["sum", "wanted"],
      ] as const)
        found.push(
          ...mismatches(got[stored], got[wanted], exact).map((text) => `${name} ${stored}${text}`),
        );
      const { elements } = storedRangeIn(got.words, 0);
      if (elements !== family.length) found.push(`${name}: ${elements} elements were observed`);
    }
    expect(found).toEqual([]);
    expect(runCases).toHaveLength(9);
  });

  it("keep the order of sums of 16 bits, stored in 32, with an observer or where they add", async () => {
    const device = await requestTestDevice({ tier });
    const [outer, size] = [40, 512];
    const sums = { values: outer };
    const operands = {
      // So different that each order of their sum has other bits.
      input: {
        values: testValues(outer * size).map((v, i) => v * 2 ** ((i % 23) - 12)),
        dtype: "bfloat16",
      },
      ...{ plain: sums, observed: sums, again: sums, sum: sums, wanted: sums },
      twin: { values: outer, dtype: "float16" },
      words: { values: storedRangeWords, dtype: "uint32" },
    } as const;
    const got = await runOnGpu(device, operands, (target, o) =>
      launchesOf(
        withHardware(target, someGpu),
        (to, out) => reduce(to, { input: o.input, out }, { op: "sum", outer, size, inner: 1 }),
        o,
      ),
    );
    for (const name of ["observed", "again", "sum", "wanted"] as const)
      expect([name, mismatches(got[name], got.plain, exact)]).toEqual([name, []]);
  });

  it("add what an epilogue finished, and observe it", async () => {
    const device = await requestTestDevice({ tier });
    const [size, inner, count] = [6, 24, 7];
    const length = count * inner;
    const operands = {
      input: { values: testValues(size * inner, 1), dtype: "float16" },
      residual: { values: testValues(length, 2), dtype: "float16" },
      index: { values: Uint32Array.from({ length: count }, (_, i) => i % size), dtype: "uint32" },
      ...storesOf(length, "float16"),
    } as const;
    const launches: Launches<typeof operands> = (target, { input, residual, index, ...o }) =>
      launchesOf(
        withHardware(target, someGpu),
        (to, out) => {
          const shape = { outer: 1, size, inner, count, indexing: "rows" } as const;
          const gathered = gather({ input, index, out }, shape);
          const { kernel } = gathered;
          if (!takesEpilogue(kernel)) throw new TypeError("gather takes no epilogue");
          const finish = {
            kernel: reluOfSum,
            bindings: [out, residual, out],
            scalars: { count: length, one: 1 },
          };
          to.launch(withEpilogue({ ...gathered, kernel }, finish, { results: [0] }));
        },
        o,
        "float16",
      );
    const want = runOnCpu(operands, launches);
    const got = await runOnGpu(device, operands, launches);
    for (const name of ["observed", "again", "twin", "sum", "words"] as const)
      expect([name, mismatches(got[name], want[name], exact)]).toEqual([name, []]);
  });

  it("move tails of elementwise programs as the CPU does, and nothing behind them", async () => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const [i, length] of [0, 1, 4, 5, 8, 11, 12, 13, 2049, 4101].entries()) {
      const dtype = halfDTypes[i % 2] as HalfDType;
      const before = { values: new Float32Array(length + 16).fill(3), dtype };
      const operands = {
        ...storesOf(length, dtype),
        ...{ plain: before, observed: before, again: before, twin: before },
        ...{ sum: before, wanted: before },
        x: { values: testValues(length, 1), dtype },
        // Half of the products round to zero in float16.
        y: { values: testValues(length, 2).map((v) => v * 2 ** -17), dtype },
      };
      const launches: Launches<typeof operands> = (target, { x, y, ...o }) => {
        const exactly = <B>(binding: Binding<B>) => ({ ...binding, length, shape: [length] });
        launchesOf(
          withHardware(target, someGpu),
          (to, out) => to.launch(elementwise(mul, [exactly(x), exactly(y)], exactly(out))),
          {
            ...{ plain: exactly(o.plain), observed: exactly(o.observed), again: exactly(o.again) },
            ...{ twin: exactly(o.twin), sum: exactly(o.sum), wanted: exactly(o.wanted) },
            words: o.words,
          },
          dtype,
        );
      };
      const want = runOnCpu(operands, launches);
      const got = await runOnGpu(device, operands, launches);
      const end = Math.ceil(length / 4) * 4;
      for (const name of ["observed", "again", "twin", "sum"] as const) {
        const isBehind = (at: number): boolean => at >= length && at < end;
        const stored = (values: ArrayLike<number>) =>
          Array.from(values, (value, at) => (isBehind(at) ? 0 : value));
        found.push(
          ...mismatches(stored(got[name]), stored(want[name]), exact).map(
            (text) => `${length} ${name}${text}`,
          ),
        );
      }
      found.push(
        ...mismatches(got.words, want.words, exact).map((text) => `${length} words${text}`),
      );
    }
    expect(found).toEqual([]);
  });
});

describe("the WGSL of stores with code woven into them", () => {
  const pairsIn = (kernel: Kernel, bindings: readonly Binding<object>[]): number =>
    kernel
      .program({ tier: "native", subgroupSize: 32, hardware: someGpu, bindings })
      .code.split("array<vec4u>").length - 1;

  it.each(cases)("moves as many bytes at a time in %s", (_, family, dtype) => {
    const bindings = Object.fromEntries(
      Object.entries({ ...readsOf(family, dtype), ...storesOf(family.length, dtype) }).map(
        ([name, { values, dtype: stored }]) => [
          name,
          withoutMemory(typeof values === "number" ? values : values.length, stored),
        ],
      ),
    ) as Record<keyof ReturnType<typeof readsOf> | keyof Stores, Binding<object>>;
    let plain = 0;
    const counts: Record<string, number> = {};
    const { plain: out, words, twin, sum } = bindings;
    const target: LaunchTarget<object> = {
      allocate: () => ({}),
      launch(launch) {
        if (launch.bindings.at(-1)?.buffer !== out.buffer) return;
        plain = pairsIn(launch.kernel, launch.bindings);
        const woven = {
          observer: weaves.observer(launch, words),
          twin: weaves.twin(launch, twin),
          sum: weaves.sum(launch, sum, dtype),
        };
        for (const [name, { kernel, bindings: all }] of Object.entries(woven))
          counts[name] = pairsIn(kernel, all);
      },
    };
    family.run(target, bindings, out);
    // Results that are not moved in pairs are sums of what is.
    expect([plain, plain + 1]).toContain(counts.twin);
    expect(counts).toEqual({ observer: plain, sum: plain, twin: counts.twin });
  });
});
