import type { Binding, DType, HalfDType, KernelView, LaunchTarget } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { roundArray } from "@halfstep/formats";
import { dtypes } from "@halfstep/formats/dtypes";
import { describe, expect, it } from "vitest";
import { type Launches, runOnCpu, runOnGpu } from "../../test/harness.js";
import { type Producer, producers } from "../../test/producers.js";
import { permute } from "../copies/permute.js";
import { canObserveStores, observingStores } from "./observing-stores.js";
import { type StoredRange, storedRange, storedRangeIn, storedRangeWords } from "./stored-range.js";

interface Stored {
  readonly dtype: DType;
  readonly rounding?: HalfDType;
}

/** Values so small that float16 rounds only some results to zero; with rows of zeros. */
const small = ({ a, ...producer }: Producer): Producer => ({
  ...producer,
  a: a.map((value, i) => (i % 16 < 3 ? 0 : Math.fround(value * 2 ** -27))),
});

const operandsOf = ({ a, b, length }: Producer, stored: Stored) =>
  ({
    a: { values: a },
    b: { values: b ?? 4 },
    exact: { values: length },
    out: { values: length, ...stored },
    // Slot 0 belongs to another result.
    words: { values: 2 * storedRangeWords, dtype: "uint32" },
  }) as const;

type Operands = ReturnType<typeof operandsOf>;

const launchesOf =
  (producer: Producer): Launches<Operands> =>
  <B>(target: LaunchTarget<B>, { a, b, exact, out, words }: Record<keyof Operands, Binding<B>>) => {
    producer.run(target, a, b, exact);
    const observed: LaunchTarget<B> = {
      allocate: (bytes) => target.allocate(bytes),
      launch({ kernel, ...launch }) {
        const at = launch.bindings.findIndex(({ buffer }) => buffer === out.buffer);
        if (at < 0 || !canObserveStores(kernel)) return target.launch({ kernel, ...launch });
        const observation = { observer: storedRange, words, slots: [1] };
        target.launch(observingStores({ kernel, ...launch }, [at], observation));
      },
    };
    producer.run(observed, a, b, out);
  };

/** The expected counts, from numbers that were stored unrounded and then rounded on the host. */
function expected(exact: KernelView, { dtype, rounding }: Stored): [StoredRange, number[]] {
  const format = dtype === "float32" ? rounding : dtype;
  const rounded = new Float32Array(exact.length);
  if (format === undefined || format === "int32" || format === "uint32") rounded.set(exact);
  else roundArray(exact as Float32Array, dtypes[format].format, rounded);
  const zeros = exact.filter((value) => value === 0).length;
  const range = {
    elements: exact.length,
    exactZeros: zeros,
    roundedToZero: rounded.filter((value) => value === 0).length - zeros,
    largest: Math.max(...(exact as Float32Array).map(Math.abs)),
  };
  // Eight bits saturate.
  const { max } = format === "float8e5m2" ? dtypes[format].format.finfo : { max: Infinity };
  return [
    range,
    [...rounded].map((value) => (Math.abs(value) > max ? Math.sign(value) * max : value)),
  ];
}

const storages: readonly Stored[] = [
  { dtype: "float16" },
  { dtype: "bfloat16" },
  { dtype: "float8e5m2" },
  { dtype: "float32", rounding: "float16" },
  { dtype: "float32" },
];

async function behaves(
  names: readonly string[],
  stored: Stored,
  run: (
    producer: Producer,
  ) => Readonly<Record<string, KernelView>> | Promise<Readonly<Record<string, KernelView>>>,
): Promise<void> {
  const found: Record<string, unknown> = {};
  const wanted: Record<string, unknown> = {};
  for (const name of names) {
    const { exact, out, words } = await run(small(producers[name] as Producer));
    const [range, rounded] = expected(exact as KernelView, stored);
    wanted[name] = [range, [0, 0, 0, 0], rounded];
    found[name] = [storedRangeIn(words ?? [], 1), [...(words ?? [])].slice(0, 4), [...(out ?? [])]];
    if (stored.dtype === "float16") expect(range.roundedToZero).toBeGreaterThan(0);
  }
  expect(found).toEqual(wanted);
}

describe("a store tells what it rounds to zero, exact zeros and the largest magnitude", async () => {
  const all = Object.keys(producers);

  it.each(storages)("on the CPU: %o", (stored) =>
    behaves(all, stored, (producer) =>
      runOnCpu(operandsOf(producer, stored), launchesOf(producer)),
    ),
  );

  it.each(await testTiers())("on the %s tier", async (tier) => {
    const device = await requestTestDevice({ tier });
    for (const stored of storages)
      await behaves(stored.dtype === "float16" ? all : all.slice(0, 1), stored, (producer) =>
        runOnGpu(device, operandsOf(producer, stored), launchesOf(producer)),
      );
  });

  it.each(await testTiers())("of rows that are moved as they are, on the %s tier", async (tier) => {
    const values = Float32Array.from({ length: 240 }, (_, i) => (i < 10 ? 0 : -i));
    const operands = {
      a: { values, dtype: "float16" },
      out: { values: values.length, dtype: "float16" },
      words: { values: storedRangeWords, dtype: "uint32" },
    } as const;
    const launches: Launches<typeof operands> = (target, { a, out, words }) => {
      const { kernel, ...launch } = permute(
        { input: a, out },
        { shape: [6, 5, 8], order: [1, 0, 2] },
      );
      if (!canObserveStores(kernel)) throw new TypeError("copies can be observed");
      target.launch(observingStores({ kernel, ...launch }, [1], { observer: storedRange, words }));
    };
    const results = await runOnGpu(await requestTestDevice({ tier }), operands, launches);
    expect([...results.out]).toEqual([...runOnCpu(operands, launches).out]);
    const range = { elements: 240, exactZeros: 10, roundedToZero: 0, largest: 239 };
    expect(storedRangeIn(results.words, 0)).toEqual(range);
  });

  it("and nothing is rounded in float64", () => {
    const producer = small(producers["elementwise launch"] as Producer);
    const operands = operandsOf(producer, { dtype: "float16" });
    const { words } = runOnCpu(operands, launchesOf(producer), { arithmetic: "float64" });
    expect(storedRangeIn(words, 1).roundedToZero).toBe(0);
  });
});
