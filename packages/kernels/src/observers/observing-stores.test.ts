import type { Binding, HalfDType, KernelView } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { FLAG_WORDS } from "@halfstep/grad-scaler";
import { describe, expect, it } from "vitest";
import { checking, flagging } from "../../test/checking.js";
import { isLane, type Launches, runOnCpu, runOnGpu } from "../../test/harness.js";
import { type Producer, producers } from "../../test/producers.js";
import { checkFinite } from "../amp/check-finite.js";
import { copyRowsApart } from "../copies/copy-rows-apart.js";
import { flagBits } from "../found-flag.js";
import { defineKernel } from "../kernel.js";
import { matmulWithRowSums } from "../matmul/with-row-sums.js";
import { gradientFlag } from "./gradient-flag.js";
import { canObserveStores, observingStores } from "./observing-stores.js";
import { weaveObserver } from "./weave-observer.js";

const operandsOf = ({ a, b, length }: Producer, rounding?: HalfDType) =>
  ({
    a: { values: a },
    b: { values: b ?? 4 },
    once: { values: length, ...(rounding && { rounding }) },
    out: { values: length, ...(rounding && { rounding }) },
    twice: { values: length, ...(rounding && { rounding }) },
    twin: { values: length, dtype: "float16" },
    searched: { values: FLAG_WORDS, dtype: "uint32" },
    foundInf: { values: FLAG_WORDS, dtype: "uint32" },
    foundTwice: { values: FLAG_WORDS, dtype: "uint32" },
  }) as const;

const launchesOf =
  (producer: Producer): Launches<ReturnType<typeof operandsOf>> =>
  (target, { a, b, once, out, twice, twin, searched, foundInf, foundTwice }) => {
    producer.run(target, a, b, once);
    target.launch(checkFinite({ x: once, foundInf: searched.buffer }));
    producer.run(checking(target, { out, foundInf }), a, b, out);
    producer.run(checking(target, { out: twice, foundInf: foundTwice, twin }), a, b, twice);
  };

/** Numbers that are not finite, or not once they are added, multiplied or rounded, and one that always is. */
const oddOnes = [Infinity, -Infinity, NaN, 3.4e38, -65_520, 65_519, 0];

/** The producer with one odd number among its operands, in different places. */
function cases({ a, ...producer }: Producer): readonly Producer[] {
  const places = [0, a.length >> 1, a.length - 1];
  const finite = a.map((value) => (Number.isFinite(value) ? value % 64 : 0));
  return oddOnes.flatMap((odd) => places.map((at) => ({ ...producer, a: finite.with(at, odd) })));
}

type Results = Readonly<Record<keyof ReturnType<typeof operandsOf>, KernelView>>;

/** The mistakes in results: all must have the bits of separate launches, and both flags must agree with a search. */
function mistakes(name: string, results: Results): string[] {
  const { once, out, twice, searched, foundInf, foundTwice } = results;
  const flags = [searched, foundInf, foundTwice].map((flag) => flag[0]);
  const isSame = once.every((value, i) => Object.is(value, out[i]) && Object.is(value, twice[i]));
  const isFlagged = new Set(flags).size === 1;
  return isSame && isFlagged ? [] : [`${name}: ${isSame ? flags.join(" ") : "other bits"}`];
}

const roundings = [undefined, "float16", "bfloat16"] as const;

async function behaves(
  run: (producer: Producer, rounding?: HalfDType) => Results | Promise<Results>,
  roundingsOf = (_producer: string): readonly (HalfDType | undefined)[] => roundings,
): Promise<void> {
  const wrong: string[] = [];
  for (const [name, producer] of Object.entries(producers))
    for (const rounding of roundingsOf(name)) {
      const flags = new Set<unknown>();
      for (const each of cases(producer)) {
        const results = await run(each, rounding);
        flags.add(results.searched[0]);
        wrong.push(...mistakes(`${name}, ${rounding ?? "float32"}`, results));
      }
      if (flags.size < 2) wrong.push(`${name}: every case gives ${[...flags].join()}`);
    }
  expect(wrong).toEqual([]);
}

describe("kernels that store find what a search of the result finds", async () => {
  const tiers = await testTiers();

  it("on the CPU", () =>
    behaves((producer, rounding) =>
      runOnCpu(operandsOf(producer, rounding), launchesOf(producer)),
    ));

  it.each(tiers)("on the %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    // Rounding is integer arithmetic on every tier: in `npm test`, and on the second tier of a lane, each producer has one rounding. So have
    // products of wide tiles everywhere, three programs that take the compiler half a second each: the product with an odd number of columns
    // has all.
    const takesOne = !isLane || (tier === "packed" && tiers.length > 1);
    const names = Object.keys(producers);
    const isWide = (name: string): boolean => name === "product" || name.endsWith("epilogue");
    await behaves(
      (producer, rounding) =>
        runOnGpu(device, operandsOf(producer, rounding), launchesOf(producer)),
      (name) =>
        takesOne || isWide(name) ? [roundings[names.indexOf(name) % roundings.length]] : roundings,
    );
  });
});

describe("a launch with two results", async () => {
  const [m, n, k] = [5, 4, 8];
  // A sum overflows where the products, with zeros, do not.
  const a = new Float32Array(k * m);
  a[1] = a[m + 1] = 3e38;
  const operands = {
    a: { values: a },
    b: { values: k * n },
    out: { values: m * n },
    rowSums: { values: m },
    ofBoth: { values: FLAG_WORDS, dtype: "uint32" },
    ofProduct: { values: FLAG_WORDS, dtype: "uint32" },
  } as const;
  const launches: Launches<typeof operands> = (target, { a, b, out, rowSums, ...flags }) => {
    const search = (results: readonly Binding<unknown>[], foundInf: typeof out): typeof target => ({
      allocate: (bytes) => target.allocate(bytes),
      launch({ kernel, ...launch }) {
        if (!canObserveStores(kernel)) throw new TypeError(`${kernel.name} cannot check`);
        const places = results.map(({ buffer }) =>
          launch.bindings.findIndex((binding) => binding.buffer === buffer),
        );
        target.launch(observingStores({ ...launch, kernel }, places, flagging(foundInf)));
      },
    });
    const shape = { m, n, k };
    matmulWithRowSums(search([rowSums, out], flags.ofBoth), { a, b, out, rowSums }, shape);
    matmulWithRowSums(search([out], flags.ofProduct), { a, b, out, rowSums }, shape);
  };
  const found = ({ ofBoth, ofProduct }: Readonly<Record<"ofBoth" | "ofProduct", KernelView>>) => [
    ofBoth[0],
    ofProduct[0],
  ];

  it("checks those that are named, on the CPU", () =>
    expect(found(runOnCpu(operands, launches))).toEqual([flagBits, 0]));

  it.each(await testTiers())("and on the %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    expect(found(await runOnGpu(device, operands, launches))).toEqual([flagBits, 0]);
  });
});

describe("a kernel that checks", () => {
  const example = defineKernel({
    name: "example",
    bindings: [
      { name: "x", access: "read" },
      { name: "y", access: "write" },
      { name: "z", access: "write" },
    ],
    body: () => "@compute @workgroup_size(1) fn main() { store_y(0u, load_x(0u)); }",
    workgroups: () => [1, 1, 1],
    reference() {},
  });
  if (!canObserveStores(example)) throw new TypeError("example cannot check");

  it("has a flag behind its bindings, and is made once", () => {
    const checked = example.withObserver(gradientFlag, ["y", "z"], weaveObserver);
    expect(checked.name).toBe("example+check-finite");
    expect(checked.bindings.map(({ name }) => name)).toEqual(["x", "y", "z", "woven_foundInf"]);
    expect(example.withObserver(gradientFlag, ["y", "z"], weaveObserver)).toBe(checked);
    expect(example.withObserver(gradientFlag, ["y"], weaveObserver)).not.toBe(checked);
    expect(canObserveStores(checked)).toBe(false);
  });

  it("stores float32", () => {
    const dtypes = ["float32", "float16", "float32", "uint32"] as const;
    const bindings = dtypes.map((dtype) => ({ dtype }));
    const compile = () =>
      example
        .withObserver(gradientFlag, ["y"], weaveObserver)
        .program({ tier: "packed", subgroupSize: 0, bindings });
    expect(compile).toThrow("binding y is checked as float32, not float16");
  });

  it("stores by functions that can remember what they store", () => {
    const direct = defineKernel({
      name: "direct",
      bindings: [{ name: "y", access: "write" }],
      body: () => "@compute @workgroup_size(1) fn main() { y_data[0] = vec4f(); }",
      workgroups: () => [1, 1, 1],
      reference() {},
    });
    if (!canObserveStores(direct)) throw new TypeError("direct cannot check");
    const bindings = [{ dtype: "float32" }, { dtype: "uint32" }] as const;
    const compile = () =>
      direct
        .withObserver(gradientFlag, ["y"], weaveObserver)
        .program({ tier: "packed", subgroupSize: 0, bindings });
    expect(compile).toThrow("the program stores y without store_y");

    const binding = { buffer: {}, offset: 0, length: 16, dtype: "float32" } as const;
    const shape = { rows: 2, length: 8, stride: 8 };
    const { kernel } = copyRowsApart({ input: binding, out: binding }, shape);
    expect(canObserveStores(kernel)).toBe(false);
  });
});
