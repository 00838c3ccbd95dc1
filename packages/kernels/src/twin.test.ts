import type { Binding, HalfDType, KernelView, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { roundArray } from "@halfstep/formats";
import { describe, expect, it } from "vitest";
import { runOnCpu, runOnGpu, testValues } from "../test/harness.js";
import { permute } from "./copies/permute.js";
import { formatOf } from "./cpu.js";
import { type ElementwiseKernel, elementwise } from "./elementwise.js";
import { takesEpilogue, withEpilogue } from "./epilogue.js";
import { identity, relu } from "./expressions.js";
import { defineKernel, type EpilogueKernel } from "./kernel.js";
import { matmul } from "./matmul.js";
import { reduce } from "./reductions/reduce.js";
import { canStoreTwice, storingTwice } from "./twin.js";

/** Numbers that formats treat each in a way of its own: ties, what overflows and underflows, zeros, no numbers. */
const specials = [
  0,
  -0,
  1,
  1 + 2 ** -11,
  1 + 3 * 2 ** -11,
  65519.9,
  65520,
  1e5,
  2 ** -24,
  2 ** -25,
  3e-8,
  -6e-5,
].concat([1e-40, 3.4e38, Infinity, -Infinity, NaN, 1 / 3, -2 / 3, 1 + 2 ** -8, 1 + 3 * 2 ** -9]);

interface Producer {
  readonly a: Float32Array;
  readonly b?: Float32Array;
  readonly length: number;
  run<B>(target: LaunchTarget<B>, a: Binding<B>, b: Binding<B>, out: Binding<B>): void;
}

const values = (length: number, seed = 1): Float32Array =>
  testValues(length, seed).map((v, i) => v * 1.37 ** (i % 9));

/** Two products with tails, one of them added up from parts, with and without something woven into its store; and others. */
const producers: Readonly<Record<string, Producer>> = {
  "elementwise launch": {
    a: Float32Array.from({ length: 1031 }, (_, i) => specials[i % specials.length] as number),
    length: 1031,
    run: (target, a, _, out) =>
      target.launch(elementwise(identity, [{ ...a, shape: [1031] }], { ...out, shape: [1031] })),
  },
  product: product(37, 20, 24),
  "product with an odd number of columns": product(9, 7, 5),
  "product in parts": product(8, 12, 8192),
  "product with an epilogue": {
    ...product(33, 36, 16),
    run(target, a, b, out) {
      const shaped = { ...out, shape: [33, 36] };
      const scratch = { ...shaped, buffer: target.allocate(4 * 33 * 36) };
      product(33, 36, 16).run(
        {
          allocate: (bytes) => target.allocate(bytes),
          launch(launch) {
            const { kernel } = launch;
            if (!takesEpilogue(kernel)) throw new TypeError(`${kernel.name} takes no epilogue`);
            const after = elementwise(relu, [scratch], shaped);
            target.launch(
              withEpilogue(
                launch as typeof launch & { kernel: EpilogueKernel },
                after as typeof after & { kernel: ElementwiseKernel },
                { results: [0] },
              ),
            );
          },
        },
        a,
        b,
        scratch,
      );
    },
  },
  "permutation that moves rows": {
    a: values(6 * 5 * 8),
    length: 6 * 5 * 8,
    run: (target, a, _, out) =>
      target.launch(permute({ input: a, out }, { shape: [6, 5, 8], order: [1, 0, 2] })),
  },
  reduction: {
    a: values(33 * 70),
    length: 33,
    run: (target, a, _, out) =>
      reduce(target, { input: a, out }, { op: "sum", outer: 33, size: 70, inner: 1 }),
  },
};

function product(m: number, n: number, k: number): Producer {
  return {
    a: values(m * k, 2),
    b: values(k * n, 3),
    length: m * n,
    run: (target, a, b, out) => matmul(target, { a, b, out }, { m, n, k }),
  };
}

/** The same target, on which whoever writes `out` writes `twin` too. */
const twinning = <B>(
  target: LaunchTarget<B>,
  out: Binding<B>,
  twin: Binding<B>,
): LaunchTarget<B> => ({
  allocate: (bytes) => target.allocate(bytes),
  launch(launch) {
    const { kernel, bindings } = launch;
    const result = bindings.findIndex(({ buffer }) => buffer === out.buffer);
    if (result < 0) return target.launch(launch);
    if (!canStoreTwice(kernel)) throw new TypeError(`${kernel.name} stores once only`);
    target.launch(storingTwice({ ...launch, kernel }, result, twin));
  },
});

const operandsOf = ({ a, b, length }: Producer, dtype: HalfDType) => ({
  a: { values: a },
  b: { values: b ?? 4 },
  once: { values: length },
  out: { values: length },
  twin: { values: length, dtype },
});

type Bound<B> = Readonly<Record<"a" | "b" | "once" | "out" | "twin", Binding<B>>>;

const launchesOf =
  (producer: Producer) =>
  <B>(target: LaunchTarget<B>, { a, b, once, out, twin }: Bound<B>): void => {
    producer.run(target, a, b, once);
    producer.run(twinning(target, out, twin), a, b, out);
  };

/** What is wrong with results: the whole one has the bits that it has alone, and the twin those of its rounding. */
function mistakes(
  name: string,
  { once, out, twin }: Readonly<Record<"once" | "out" | "twin", KernelView>>,
  dtype: HalfDType,
): string[] {
  const rounded = roundArray(Float32Array.from(out), formatOf(dtype));
  return [...out.keys()]
    .filter((i) => !Object.is(out[i], once[i]) || !Object.is(twin[i], rounded[i]))
    .map((i) => `${name}[${i}] ${once[i]} → ${out[i]}, ${twin[i]} instead of ${rounded[i]}`)
    .slice(0, 4);
}

const dtypes = ["float16", "bfloat16"] as const;

describe("a result is stored whole and rounded by one launch", async () => {
  it("on the CPU", () => {
    const found = dtypes.flatMap((dtype) =>
      Object.entries(producers).flatMap(([name, producer]) =>
        mistakes(name, runOnCpu(operandsOf(producer, dtype), launchesOf(producer)), dtype),
      ),
    );
    expect(found).toEqual([]);
  });

  it.each(await testTiers())("on the %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    const found: string[] = [];
    for (const dtype of dtypes)
      for (const [name, producer] of Object.entries(producers)) {
        const results = await runOnGpu(device, operandsOf(producer, dtype), launchesOf(producer));
        found.push(...mistakes(name, results, dtype));
      }
    expect(found).toEqual([]);
  });
});

it("needs a result that is only written, once", () => {
  const kernel = defineKernel({
    name: "example",
    bindings: [
      { name: "x", access: "read" },
      { name: "total", access: "readwrite" },
      { name: "out", access: "write" },
    ],
    body: () => "",
    workgroups: () => [1, 1, 1],
    reference() {},
  });
  for (const name of ["x", "total", "nowhere"])
    expect(() => kernel.withTwin(name)).toThrow(`example cannot store ${name} twice`);
  const twice = kernel.withTwin("out");
  expect(twice.bindings.map(({ name }) => name)).toEqual(["x", "total", "out", "out_twin"]);
  expect(kernel.withTwin("out")).toBe(twice);
});
