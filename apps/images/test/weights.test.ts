import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ResNet } from "@halfstep/models";
import { InferenceSession, Tensor } from "@halfstep/onnxruntime";
import { readSafetensors } from "@halfstep/safetensors";
import { cpuRuntime, noGrad } from "@halfstep/tensor";
import { loadWeights } from "@halfstep/trainer";
import { readWeights } from "@halfstep/trainer/node";
import { afterAll, expect, it } from "vitest";
import { exportOnnx, exportWeights } from "../src/weights.js";

const runtime = cpuRuntime();
const root = mkdtempSync(join(tmpdir(), "halfstep-images-"));
afterAll(() => rmSync(root, { recursive: true }));
const options = { layers: [1, 1, 1], width: 2, classes: 4, stem: "cifar" } as const;
const network = (seed: number): ResNet => new ResNet(runtime, { ...options, seed });
const valuesOf = async (model: ResNet): Promise<Record<string, number[]>> =>
  Object.fromEntries(
    Object.entries(await model.stateDict()).map(([name, { data }]) => [name, [...data]]),
  );

const source = network(1);
it("comes back from the file that it was written to", async () => {
  const written = join(root, "written.safetensors");
  const view = { classes: [..."abcd"], size: 32, channels: 3, resize: 37, mean: [0], std: [1] };
  await exportWeights({ model: source, view }, written);
  const { metadata } = readSafetensors(readFileSync(written));
  expect(JSON.parse(metadata.view as string)).toEqual(view);
  const model = network(2);
  loadWeights(model, await readWeights(written), written);
  expect(await valuesOf(model)).toEqual(await valuesOf(source));
});

it("computes the same in ONNX Runtime, from images with channels first", async () => {
  const view = { classes: [..."abcd"], size: 8, channels: 3, resize: 9, mean: [0], std: [1] };
  const numbers = Float32Array.from({ length: 2 * 192 }, (_, i) => Math.sin(i));
  const images = runtime.tensor(numbers, [2, 3, 8, 8]).permute([0, 2, 3, 1]);
  const wanted = await noGrad(() => source.eval().forward(images)).toArray();
  const feeds = { images: new Tensor("float32", numbers, [2, 3, 8, 8]) };
  for (const [onnx, tolerance] of [
    ["float32", 1e-5],
    ["float16", 2e-2],
  ] as const) {
    const path = join(root, `${onnx}.onnx`);
    await exportOnnx({ model: source, view }, path, { onnx });
    const session = await InferenceSession.create(path, { intraOpNumThreads: 1 });
    const { logits } = await session.run(feeds);
    await session.release();
    const worst = Math.max(
      ...Array.from(logits?.data as Float32Array, (x, i) => Math.abs(x - (wanted[i] ?? 0))),
    );
    expect(worst).toBeLessThan(tolerance);
    expect(logits?.dims).toEqual([2, 4]);
  }
});
