import type { Binding, HalfDType, KernelView, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { formatOf, roundArray } from "@halfstep/formats";
import { describe, expect, it } from "vitest";
import { runOnCpu, runOnGpu } from "../test/harness.js";
import { type Producer, producers } from "../test/producers.js";
import { defineKernel } from "./kernel.js";
import { canStoreTwice, storingTwice } from "./twin.js";

/** The same target, on which launches that write `out` also write `twin`. */
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
    expect(() => kernel.withTwin?.(name)).toThrow(`example cannot store ${name} twice`);
  const twice = kernel.withTwin?.("out");
  expect(twice?.bindings.map(({ name }) => name)).toEqual(["x", "total", "out", "woven_out_twin"]);
  expect(kernel.withTwin?.("out")).toBe(twice);
});
