// Integers on both tiers, over the range of 32 bits.
import { requestTestDevice } from "@halfstep/device/testing";
import { cpuRuntime, gpuRuntime, type Runtime, type Tensor } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { quotient, unsigned, wrapped } from "../src/import/integers.js";

/** Numbers of all magnitudes, and those around powers of two. */
const numbers = Array.from({ length: 256 }, (_, i) => {
  const power = 2 ** (i % 32);
  const near = [power - 1, power, power + 1, Math.floor(1.7 * power)][(i >> 6) & 3] as number;
  return Math.min(2 ** 32 - 1, Math.max(1, near));
});
const others = numbers.map((_, i) => numbers[(i * 37 + 11) % 256] as number);
const below = 2 ** 31 - 1;
const signed = (x: readonly number[], period: number): Int32Array =>
  Int32Array.from(x, (n, i) => Math.min(n, below) * (i % period === 0 ? -1 : 1));
const listOf = async (x: Tensor): Promise<number[]> => Array.from(await x.toArray(), Number);

describe.each([
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
] as const)("%s", (_, make) => {
  const of = (runtime: Runtime, x: Int32Array | Uint32Array): Tensor =>
    runtime.tensor(x, [x.length]);

  test("quotients are rounded toward zero", async () => {
    const runtime = await make();
    const [a, b] = [Uint32Array.from(numbers), Uint32Array.from(others)];
    const [c, d] = [signed(numbers, 2), signed(others, 3)];
    const whole = (x: ArrayLike<number>, y: ArrayLike<number>): number[] =>
      Array.from(x, (n, i) => Math.trunc(n / (y[i] as number)) + 0);
    expect(await listOf(quotient(of(runtime, a), of(runtime, b)))).toEqual(whole(a, b));
    expect(await listOf(quotient(of(runtime, c), of(runtime, d)))).toEqual(whole(c, d));
    const small = Uint32Array.from(others, (n) => Math.min(n, below));
    expect(await listOf(quotient(of(runtime, c), of(runtime, small)))).toEqual(whole(c, small));
  });

  test("casts keep the lowest bits", async () => {
    const runtime = await make();
    for (const x of [Uint32Array.from(numbers), signed(numbers, 2), Int32Array.of(-(2 ** 31))]) {
      const given = of(runtime, x);
      expect(await listOf(wrapped(given, 8, false))).toEqual([...Uint8Array.from(x)]);
      expect(await listOf(wrapped(given, 8, true))).toEqual([...Int8Array.from(x)]);
      expect(await listOf(wrapped(given, 16, false))).toEqual([...Uint16Array.from(x)]);
      expect(await listOf(wrapped(given, 16, true))).toEqual([...Int16Array.from(x)]);
      expect(await listOf(unsigned(given))).toEqual([...Uint32Array.from(x)]);
    }
  });
});
