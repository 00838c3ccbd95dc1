import type { Binding } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { type AmpPrimitivesHarness, ampPrimitivesContract } from "@halfstep/grad-scaler/testing";
import { cpuTarget, deviceTarget, type ResidentTarget } from "@halfstep/kernels";
import { ampPrimitives } from "@halfstep/kernels/amp";
import { describe, test } from "vitest";

/** The contract of grad-scaler, on the kernels. It is tested here because kernels does not know grad-scaler. */
const harnessOf = <B extends object>(
  target: ResidentTarget<B>,
): AmpPrimitivesHarness<B, Binding<B>> => {
  const lengths = new WeakMap<B, number>();
  const whole = (buffer: B): Binding<B> => ({
    buffer,
    offset: 0,
    length: lengths.get(buffer) as number,
    dtype: "float32",
  });
  const upload = (values: Float32Array): B => {
    const buffer = target.allocate(values.byteLength);
    lengths.set(buffer, values.length);
    // NaNs keep their payload as bits only.
    const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
    target.write({ ...whole(buffer), dtype: "uint32" }, bits);
    return buffer;
  };
  const read = async (binding: Binding<B>): Promise<Float32Array> => {
    const bits = Uint32Array.from(await target.read({ ...binding, dtype: "uint32" }));
    return new Float32Array(bits.buffer);
  };
  return {
    primitives: ampPrimitives(target),
    upload,
    download: (buffer) => read(whole(buffer)),
    losses: { upload: (values) => whole(upload(values)), download: read },
  };
};

describe("CPU", () => {
  for (const { name, run } of ampPrimitivesContract("kernels", () => harnessOf(cpuTarget())))
    test(name, run);
});

describe.each(await testTiers())("GPU, %s tier", (tier) => {
  const make = async () => harnessOf(deviceTarget(await requestTestDevice({ tier })));
  for (const { name, run } of ampPrimitivesContract("kernels", make)) test(name, run);
});
