import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { ResNet } from "@halfstep/models";
import { torchStateDict } from "@halfstep/nn";
import { InferenceSession, Tensor } from "@halfstep/onnxruntime";
import { readSafetensors } from "@halfstep/safetensors";
import { writeSafetensorsFile } from "@halfstep/safetensors/node";
import { cpuRuntime, noGrad } from "@halfstep/tensor";
import { recipeFor, safetensorsOf } from "@halfstep/trainer";
import { afterAll, beforeAll, expect, it } from "vitest";
import { exportOnnx, exportWeights, loadPretrained } from "../src/weights.js";

const runtime = cpuRuntime();
const root = mkdtempSync(join(tmpdir(), "halfstep-images-"));
afterAll(() => rmSync(root, { recursive: true }));
const file = join(root, "weights.safetensors");
const options = { layers: [1, 1, 1], width: 2, classes: 4, stem: "cifar" } as const;
const network = (seed: number, changed: object = {}): ResNet =>
  new ResNet(runtime, { ...options, seed, ...changed });
const valuesOf = async (model: ResNet): Promise<Record<string, number[]>> =>
  Object.fromEntries(
    Object.entries(await model.stateDict()).map(([name, { data }]) => [name, [...data]]),
  );

const source = network(1);
beforeAll(async () => {
  const { "fc.bias": bias, ...state } = await torchStateDict(source);
  if (!bias) throw new Error("the network has no last layer");
  const data = Float32Array.of(70_000, 1e-9, 1, 2);
  const large = { ...bias, dtype: "float32" as const, data };
  await writeSafetensorsFile(file, safetensorsOf({ ...state, "fc.bias": large }));
});

it("takes every parameter of a file with torch's names, and says what float16 cannot hold", async () => {
  const model = network(2);
  const said: string[] = [];
  await loadPretrained(model, { pretrained: file }, recipeFor("O2"), (line) => said.push(line));
  const { "fc.bias": bias, ...others } = await valuesOf(model);
  const { "fc.bias": _, ...expected } = await valuesOf(source);
  expect(others).toEqual(expected);
  expect(bias?.[0]).toBe(70_000);
  expect(said.join("\n")).toContain("fc.bias");
  expect(said.at(-1)).toBe(`weights of ${file}`);
});

it("leaves the last layer as it was drawn where there are other classes", async () => {
  const model = network(2, { classes: 7 });
  const said: string[] = [];
  await loadPretrained(model, { pretrained: file }, recipeFor("float32"), (line) =>
    said.push(line),
  );
  const loaded = await valuesOf(model);
  const drawn = await valuesOf(network(2, { classes: 7 }));
  expect(loaded["fc.weight"]).toEqual(drawn["fc.weight"]);
  expect(loaded["layer2.0.conv1.weight"]).toEqual(
    (await valuesOf(source))["layer2.0.conv1.weight"],
  );
  expect(said).toEqual([`weights of ${file}, but for the last layer, which has 4 classes there`]);
});

it.each([{ layers: [1, 2, 1] }, { width: 4 }, { layers: [2, 1, 1], classes: 7 }])(
  "refuses the weights of another network: %o",
  async (changed) => {
    const loading = loadPretrained(
      network(2, changed),
      { pretrained: file },
      recipeFor("float32"),
      () => {},
    );
    await expect(loading).rejects.toThrow(DataError);
    await expect(loading).rejects.toThrow(file);
  },
);

it("comes back from the file that it was written to", async () => {
  const written = join(root, "written.safetensors");
  const view = { classes: [..."abcd"], size: 32, channels: 3, resize: 37, mean: [0], std: [1] };
  await exportWeights({ model: source, view }, written);
  const { metadata } = readSafetensors(readFileSync(written));
  expect(JSON.parse(metadata.view as string)).toEqual(view);
  const model = network(2);
  await loadPretrained(model, { pretrained: written }, recipeFor("float32"), () => {});
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
