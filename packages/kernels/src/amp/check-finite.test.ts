import type { Binding, DType } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { bytesFor } from "@halfstep/formats/dtypes";
import { describe, expect, it } from "vitest";
import { withHardware } from "../../test/harness.js";
import { cpuTarget } from "../cpu.js";
import { deviceTarget, type ResidentTarget } from "../resident-target.js";
import { checkFinite } from "./check-finite.js";
import { unscale } from "./unscale.js";

type Floating = "float32" | "float16" | "bfloat16";
const floating: readonly Floating[] = ["float32", "float16", "bfloat16"];

/** Bit patterns of one storage format: all that are not finite (a sample of float32's), and some that are. */
const patterns = (dtype: Floating): { nonFinite: number[]; finite: number[] } => {
  const sign = dtype === "float32" ? 2 ** 31 : 2 ** 15;
  const exponent = { float32: 0x7f800000, float16: 0x7c00, bfloat16: 0x7f80 }[dtype];
  const payloads =
    dtype === "float32"
      ? [
          0,
          1,
          2,
          0x400000,
          0x7fffff,
          ...Array.from({ length: 200 }, (_, i) => (i * 41_943) % 2 ** 23),
        ]
      : Array.from({ length: sign - exponent }, (_, i) => i);
  const nonFinite = payloads.flatMap((p) => [exponent + p, sign + exponent + p]);
  const positive =
    dtype === "float32"
      ? [0, 1, 0x7fffff, 0x800000, 0x477fe000, 0x47800000, 0x7f7fffff]
      : Array.from({ length: exponent }, (_, i) => i);
  return { nonFinite, finite: positive.flatMap((bits) => [bits, sign + bits]) };
};

/** A resident buffer of these bit patterns, and a binding of its first `length` elements. */
function upload<B>(
  target: ResidentTarget<B>,
  dtype: Floating,
  bits: readonly number[],
  length: number = bits.length,
): Binding<B> {
  const words = dtype === "float32" ? Uint32Array.from(bits) : Uint16Array.from([...bits, 0]);
  const bytes = Math.floor(words.byteLength / 4) * 4;
  const buffer = target.allocate(bytes);
  target.write(
    { buffer, offset: 0, length: bytes / 4, dtype: "uint32" },
    new Uint32Array(words.buffer, 0, bytes / 4),
  );
  return { buffer, offset: 0, length, dtype };
}

const bound = <B>(buffer: B, dtype: DType): Binding<B> => ({ buffer, offset: 0, length: 1, dtype });

async function flagsOf<B>(
  target: ResidentTarget<B>,
  inputs: readonly Binding<B>[],
  launch: (x: Binding<B>, foundInf: B) => void,
): Promise<number[]> {
  const flags = inputs.map((x) => {
    const foundInf = target.allocate(4);
    launch(x, foundInf);
    return foundInf;
  });
  const values = await Promise.all(flags.map((flag) => target.read(bound(flag, "float32"))));
  return values.map(([value]) => value as number);
}

async function behaves<B>(target: ResidentTarget<B>): Promise<void> {
  const wrong: string[] = [];
  const state = target.allocate(8);
  target.write({ ...bound(state, "float32"), length: 2 }, [4, 0.25]);
  const ways = {
    checkFinite: (x: Binding<B>, foundInf: B) => target.launch(checkFinite({ x, foundInf })),
    unscale: (x: Binding<B>, foundInf: B) => target.launch(unscale({ x, state, foundInf })),
  };
  for (const dtype of floating) {
    const { nonFinite, finite } = patterns(dtype);
    const lengths = [1, 2, 3, 4, 5, 7, 64, 127];
    // Non-finite elements beyond the end of a range must not count.
    const infinity = nonFinite[0] as number;
    const clean = [0, 1, 2, 3].map((extra) => {
      const length = finite.length - extra;
      return upload(target, dtype, [...finite.slice(0, length), infinity, infinity], length);
    });
    for (const [way, launch] of Object.entries(ways)) {
      const found = await flagsOf(
        target,
        nonFinite.map((bits, i) => {
          const length = lengths[i % lengths.length] as number;
          const codes = Array.from({ length }, (_, k) => finite[(i + k) % finite.length] as number);
          codes[i % length] = bits;
          return upload(target, dtype, codes);
        }),
        launch,
      );
      for (const [i, flag] of found.entries())
        if (flag !== 1) wrong.push(`${way} ${dtype} 0x${nonFinite[i]?.toString(16)}: ${flag}`);
      const none = await flagsOf(target, clean, launch);
      for (const [i, flag] of none.entries())
        if (flag !== 0) wrong.push(`${way} ${dtype}: clean buffer ${i} gives ${flag}`);
    }
    // Every part of a long buffer is looked at.
    const length = 70_001;
    const ones = Array.from({ length }, () => finite[5] as number);
    const positions = [0, 1, 255, 2047, 2048, 33_333, 65_535, 65_536, 69_999, 70_000];
    const long = await flagsOf(
      target,
      positions.map((at) => upload(target, dtype, ones.with(at, infinity))),
      ways.checkFinite,
    );
    for (const [i, flag] of long.entries())
      if (flag !== 1) wrong.push(`${dtype}: element ${positions[i]} of ${length}`);
  }
  expect(wrong).toEqual([]);
}

async function unscales<B>(target: ResidentTarget<B>): Promise<void> {
  const values = Array.from({ length: 13 }, (_, i) => (i - 6) / 8);
  const state = target.allocate(8);
  target.write({ ...bound(state, "float32"), length: 2 }, [4, 0.25]);
  const found: Record<string, number[]> = {};
  for (const dtype of floating) {
    const buffer = target.allocate(bytesFor(dtype, values.length));
    const whole: Binding<B> = { buffer, offset: 0, length: values.length, dtype };
    target.write(whole, values);
    const foundInf = target.allocate(4);
    // The tail belongs to another tensor.
    target.launch(unscale({ x: { ...whole, length: 10 }, state, foundInf }));
    found[dtype] = Array.from(await target.read(whole));
  }
  const expected = values.map((value, i) => (i < 10 ? value / 4 : value));
  expect(found).toEqual(Object.fromEntries(floating.map((dtype) => [dtype, expected])));
}

describe("checkFinite and unscale on the CPU", () => {
  it("flag exactly what is not finite", () => behaves(cpuTarget()));
  it("multiplies by the reciprocal, up to the end of the range", () => unscales(cpuTarget()));
});

describe.each(await testTiers())("checkFinite and unscale on the GPU, %s tier", (tier) => {
  it("flag exactly what is not finite", async () =>
    behaves(deviceTarget(await requestTestDevice({ tier }))));
  it("multiplies by the reciprocal, up to the end of the range", async () =>
    unscales(deviceTarget(await requestTestDevice({ tier }))));
});

it("unscale alike where a loop's quads are loaded at once, as on a GPU of its own", async () => {
  const target = deviceTarget(await requestTestDevice());
  const hardware = {
    class: "a real one",
    workgroupBytes: 16_384,
    workgroupInvocations: 256,
    matrixSubgroupSize: 0,
    subgroupMatrices: [],
  };
  const { launch } = withHardware(target, hardware);
  await unscales({ ...target, launch });
});
