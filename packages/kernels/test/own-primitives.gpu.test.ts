import { readFile } from "node:fs/promises";
import { requestTestDevice } from "@halfstep/device/testing";
import { type AmpPrimitives, GradScaler, scaledValue } from "@halfstep/grad-scaler";
import { ampPrimitivesContract } from "@halfstep/grad-scaler/testing";
import { describe, expect, it } from "vitest";
import { ownPrimitives } from "./own-primitives.js";

// Every operation is a submit of its own: right for an example, and slow. So the longest cases are left to the primitives of
// this package, which run all of them; what is left here has every operation and both kinds of arithmetic of the rule.
const isLong =
  /any index of (255|256|257|1000)|nextScaleState: (?!default|fairseq|odd factors down to zero)|last 256/;

const upload = (
  device: GPUDevice,
  primitives: AmpPrimitives<GPUBuffer>,
  values: Float32Array,
): GPUBuffer => {
  const buffer = primitives.allocate(values.length);
  device.queue.writeBuffer(buffer, 0, Float32Array.from(values));
  return buffer;
};

describe("primitives over raw GPUBuffers, as the README of grad-scaler shows them", () => {
  const make = async () => {
    const { gpu } = await requestTestDevice();
    const primitives = ownPrimitives(gpu);
    return {
      primitives,
      upload: (values: Float32Array) => upload(gpu, primitives, values),
      download: (buffer: GPUBuffer) => primitives.read(buffer),
    };
  };
  for (const { name, run } of ampPrimitivesContract("raw", make))
    if (!isLong.test(name)) it(name, run);

  it("train", async () => {
    const { gpu: device } = await requestTestDevice();
    const primitives = ownPrimitives(device);
    const scaler = new GradScaler(primitives, { growthInterval: 3, outcomeSchedule: false });
    const weights = upload(device, primitives, Float32Array.of(1, 1));
    const gradients = primitives.allocate(2);
    const sgd = device.createComputePipeline({
      layout: "auto",
      compute: {
        module: device.createShaderModule({
          code: `
@group(0) @binding(0) var<storage, read_write> weights: array<f32>;
@group(0) @binding(1) var<storage, read> gradients: array<f32>;
@group(0) @binding(2) var<storage, read> foundInf: array<f32>;
@compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) {
  if (foundInf[0] == 0.0) { weights[i] -= 0.5 * gradients[i]; }
}`,
        }),
      },
    });
    const optimizer = {
      gradients: () => [{ buffer: gradients, dtype: "float32" as const, name: "weights" }],
      step({ foundInf }: { foundInf?: GPUBuffer } = {}) {
        const encoder = device.createCommandEncoder();
        const pass = encoder.beginComputePass();
        pass.setPipeline(sgd);
        const entries = [weights, gradients, foundInf as GPUBuffer].map((buffer, binding) => ({
          ...{ binding, resource: { buffer } },
        }));
        const layout = sgd.getBindGroupLayout(0);
        pass.setBindGroup(0, device.createBindGroup({ layout, entries }));
        pass.dispatchWorkgroups(1);
        pass.end();
        device.queue.submit([encoder.finish()]);
      },
    };
    const loss = upload(device, primitives, Float32Array.of(0.25));
    for (let step = 1; step <= 5; step++) {
      const scaled = scaledValue(scaler.scale(loss));
      // The "backward pass": both gradients are the scaled loss, and in step 2 one overflows.
      const encoder = device.createCommandEncoder();
      for (const at of [0, 4]) encoder.copyBufferToBuffer(scaled, 0, gradients, at, 4);
      device.queue.submit([encoder.finish()]);
      if (step === 2)
        device.queue.writeBuffer(gradients, 4, Float32Array.of(Number.POSITIVE_INFINITY));
      scaler.step(optimizer);
      scaler.update();
    }
    const outcomes = await scaler.drain();
    expect(outcomes.map(({ status, scaleAfter }) => `${status} ${scaleAfter}`)).toEqual([
      ...["applied 65536", "skipped 32768", "applied 32768", "applied 32768", "applied 65536"],
    ]);
    expect([...(await primitives.read(weights))]).toEqual([0.5, 0.5]);
  });
});

it("the README shows these primitives", async () => {
  const source = await readFile(new URL("own-primitives.ts", import.meta.url), "utf8");
  const readme = await readFile(new URL("../../grad-scaler/README.md", import.meta.url), "utf8");
  expect(readme).toContain(`\`\`\`ts\n${source}\`\`\``);
});
