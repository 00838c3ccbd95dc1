import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { cpuTarget } from "../cpu.js";
import { deviceTarget, type ResidentTarget } from "../resident-target.js";
import { packHalves, packHeaderWords, packScratchWords, unpackHalves } from "./pack.js";

type Half = "float16" | "bfloat16";

/** Normal numbers of many magnitudes, zeros among them. */
const numbersOf = (length: number, largest: number): number[] =>
  Array.from({ length }, (_, i) =>
    i % 7 === 3 ? 0 : Math.fround(Math.sin(i * 12.9898) * largest * 2 ** -(i % 23)),
  );

/** The codes and the header of packed numbers, and the numbers after unpacking into a longer range. */
async function packed<B>(target: ResidentTarget<B>, numbers: readonly number[], dtype: Half) {
  const { length } = numbers;
  const x = {
    ...{ buffer: target.allocate((length + 4) * 4), offset: 0, length },
    dtype: "float32" as const,
  };
  const codes = { ...{ buffer: target.allocate((length + 4) * 2), offset: 0, length }, dtype };
  const header = target.allocate(packHeaderWords * 4);
  const scratch = target.allocate(packScratchWords * 4);
  target.write({ ...x, length: length + 4 }, [...numbers, 5, 6, 7, 8]);
  for (const launch of packHalves({ x, codes, header, scratch })) target.launch(launch);
  const values = [...(await target.read(codes))];
  const [shift = 0, isBad] = await target.read({
    ...{ buffer: header, offset: 0, length: 2 },
    dtype: "uint32",
  });
  target.write(x, new Float32Array(length));
  target.launch(unpackHalves({ codes, header, x }));
  return {
    ...{ values, shift: shift | 0, isBad },
    unpacked: [...(await target.read({ ...x, length: length + 4 }))],
  };
}

const targets: readonly [string, () => Promise<ResidentTarget<never>>][] = [
  ["CPU", async () => cpuTarget() as unknown as ResidentTarget<never>],
  ...(await testTiers()).map((tier): [string, () => Promise<ResidentTarget<never>>] => [
    tier,
    async () => deviceTarget(await requestTestDevice({ tier })) as unknown as ResidentTarget<never>,
  ]),
];

test.each(["float16", "bfloat16"] as const)(
  "numbers packed in %s: equal bits on all tiers",
  async (dtype) => {
    const cases = [
      // The last one has more workgroups on GPUs than a workgroup has invocations.
      ...[1, 3, 64, 1001, 140_003].map((length) => numbersOf(length, 1000)),
      [1e6, -3e38, 1],
      [2 ** -120, 2 ** -126],
      [0, 0, 0],
      [Number.POSITIVE_INFINITY, 2, Number.NaN],
    ];
    const found = [];
    for (const [, open] of targets) {
      const target = await open();
      const results = [];
      for (const numbers of cases) results.push(await packed(target, numbers, dtype));
      found.push(results);
    }
    const [expected = []] = found;
    for (const results of found) expect(results).toEqual(expected);
    for (const [i, { values, shift, isBad, unpacked }] of expected.entries()) {
      const numbers = cases[i] as readonly number[];
      expect(isBad).toBe(Number(numbers.some((each) => !Number.isFinite(each))));
      expect(unpacked.slice(-4)).toEqual([5, 6, 7, 8]);
      if (isBad) {
        expect(values[0]).toBe(Number.POSITIVE_INFINITY);
        expect(unpacked.slice(0, 2)).toEqual([Number.NaN, 2]);
        continue;
      }
      const largest = numbers.reduce((most, number) => Math.max(most, Math.abs(number)), 0);
      if (largest > 0 && shift < 126)
        expect(Math.log2(largest * 2 ** shift)).toBeGreaterThanOrEqual(14);
      const step = dtype === "float16" ? 2 ** -11 : 2 ** -8;
      const isFar = (number: number, e: number): boolean =>
        Math.abs((unpacked[e] as number) - number) >
        Math.max(Math.abs(number) * step, largest * 2 ** -38);
      expect(numbers.filter(isFar)).toEqual([]);
    }
  },
);
