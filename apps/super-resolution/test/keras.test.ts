import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { torchStateDict } from "@halfstep/nn";
import { InferenceSession, Tensor } from "@halfstep/onnxruntime";
import { writeSafetensorsFile } from "@halfstep/safetensors/node";
import { cpuRuntime } from "@halfstep/tensor";
import { safetensorsOf } from "@halfstep/trainer";
import { runApp } from "@halfstep/vitest/run-app";
import sharp from "sharp";
import { afterAll, describe, expect, it } from "vitest";
import { exportNetwork } from "../src/export.js";
import { loadLayersModel } from "../src/keras/layers-model.js";
import { openModel } from "../src/saved-model.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-keras-"));
afterAll(() => rmSync(folder, { recursive: true }));

type Settings = Record<string, unknown>;

const layer = (type: string, name: string, inputs: readonly string[], config: Settings = {}) => ({
  class_name: type,
  name,
  config: { name, ...config },
  inbound_nodes: inputs.length === 0 ? [] : [inputs.map((input) => [input, 0, 0, {}])],
});

const input = layer("InputLayer", "image", [], { batch_input_shape: [null, null, null, 2] });
const convolution = (name: string, from: string, config: Settings = {}) =>
  layer("Conv2D", name, [from], {
    filters: 1,
    kernel_size: [1, 1],
    strides: [1, 1],
    padding: "same",
    data_format: "channels_last",
    dilation_rate: [1, 1],
    groups: 1,
    activation: "linear",
    use_bias: true,
    ...config,
  });
const doubled = layer("UpSampling2D", "up", ["mix"], {
  size: [2, 2],
  data_format: "channels_last",
  interpolation: "nearest",
});

const weights = [
  { name: "mix/kernel", shape: [1, 1, 2, 1], dtype: "float32" },
  { name: "mix/bias", shape: [1], dtype: "float32" },
];

interface Parts {
  readonly layers?: readonly object[];
  readonly output?: string;
  readonly listed?: readonly object[];
  readonly paths?: readonly string[];
  readonly values?: readonly number[];
}

let models = 0;

/** A model in files: one convolution, doubled, unless parts are others. */
function modelOf({
  layers = [input, convolution("mix", "image"), doubled],
  output = "up",
  listed = weights,
  paths = ["w.bin"],
  values = [2, -1, 0.5],
}: Parts = {}): string {
  const path = join(folder, `model-${models++}.json`);
  const config = { layers, input_layers: [["image", 0, 0]], output_layers: [[output, 0, 0]] };
  writeFileSync(
    path,
    JSON.stringify({
      modelTopology: { model_config: { class_name: "Functional", config } },
      weightsManifest: [{ paths, weights: listed }],
    }),
  );
  writeFileSync(join(folder, "w.bin"), new Uint8Array(Float32Array.from(values).buffer));
  return path;
}

describe("a layers model", () => {
  it("computes what its layers say", async () => {
    const runtime = cpuRuntime();
    const model = await loadLayersModel(runtime, modelOf());
    expect(model.scale).toBe(2);
    expect([...model.namedParameters()].map(([name]) => name)).toEqual(["mix.weight", "mix.bias"]);
    const y = model.forward(runtime.tensor([1, 2, 3, 4], [1, 1, 2, 2]));
    expect(y.shape).toEqual([1, 2, 4, 1]);
    expect([...(await y.toArray())]).toEqual([0.5, 0.5, 2.5, 2.5, 0.5, 0.5, 2.5, 2.5]);
  });

  it("is written as an ONNX file that computes the same", async () => {
    const file = join(folder, "doubled.onnx");
    await exportNetwork({ command: "export", file, pretrained: modelOf() });
    const session = await InferenceSession.create(file, { intraOpNumThreads: 1 });
    const images = new Tensor("float32", Float32Array.of(1, 3, 2, 4), [1, 2, 1, 2]);
    const { enlarged } = await session.run({ images });
    await session.release();
    expect(enlarged?.dims).toEqual([1, 1, 2, 4]);
    const values = Array.from(enlarged?.data as Float32Array);
    expect(values).toEqual([0.5, 0.5, 2.5, 2.5, 0.5, 0.5, 2.5, 2.5]);
  });

  it("adds, joins and cuts off what is negative", async () => {
    const runtime = cpuRuntime();
    const path = modelOf({
      layers: [
        input,
        layer("Activation", "cut", ["image"], { activation: "relu" }),
        layer("Concatenate", "both", ["image", "cut"], { axis: -1 }),
        layer("Add", "sum", ["both", "both"]),
      ],
      output: "sum",
      listed: [],
      values: [],
    });
    const model = await loadLayersModel(runtime, path);
    const y = model.forward(runtime.tensor([-1, 3], [1, 1, 1, 2]));
    expect([...(await y.toArray())]).toEqual([-2, 6, 0, 6]);
  });

  it("knows how far it looks around", async () => {
    const wide = (name: string, from: string, side: number) =>
      convolution(name, from, { kernel_size: [side, side], use_bias: false });
    const path = modelOf({
      layers: [
        input,
        wide("mix", "image", 5),
        doubled,
        convolution("last", "up", { kernel_size: [3, 3], use_bias: false }),
      ],
      output: "last",
      listed: [
        { name: "mix/kernel", shape: [5, 5, 2, 1], dtype: "float32" },
        { name: "last/kernel", shape: [3, 3, 1, 1], dtype: "float32" },
      ],
      values: new Array(59).fill(0),
    });
    // Two pixels, and half a one after doubling.
    expect((await loadLayersModel(cpuRuntime(), path)).radius).toBe(3);
  });
});

const refused: readonly [string, () => Parts, RegExp][] = [
  [
    "an unknown layer",
    () => ({ layers: [input, layer("Dense", "up", ["image"])] }),
    /up is a Dense/,
  ],
  [
    "strides",
    () => ({ layers: [input, convolution("up", "image", { strides: [2, 2] })] }),
    /up \(Conv2D\) has strides \[2,2\], which is not supported/,
  ],
  [
    "an even kernel with padding",
    () => ({ layers: [input, convolution("up", "image", { kernel_size: [2, 2] })] }),
    /kernel_size \[2,2\]/,
  ],
  [
    "another activation",
    () => ({ layers: [input, convolution("up", "image", { activation: "tanh" })] }),
    /activation "tanh"/,
  ],
  [
    "bilinear upsampling",
    () => ({
      layers: [
        input,
        layer("UpSampling2D", "up", ["image"], {
          size: [2, 2],
          data_format: "channels_last",
          interpolation: "bilinear",
        }),
      ],
    }),
    /interpolation "bilinear"/,
  ],
  ["a layer before its inputs", () => ({ layers: [input, doubled] }), /up needs mix/],
  ["no such output", () => ({ output: "end" }), /needs output_layers/],
  ["two layers of a name", () => ({ layers: [input, input] }), /two layers called image/],
  [
    "a missing weight",
    () => ({ listed: weights.slice(0, 1), values: [2, -1] }),
    /missing: mix\.bias/,
  ],
  ["too few bytes", () => ({ values: [2, -1] }), /end at byte 8, inside of mix\/bias/],
  ["too many bytes", () => ({ values: [2, -1, 0.5, 9] }), /4 bytes more/],
  ["a path that leads away", () => ({ paths: ["../w.bin"] }), /must be beside it/],
  ["a file that is not there", () => ({ paths: ["none.bin"] }), /none\.bin: is not there/],
  [
    "quantized weights",
    () => ({ listed: [{ ...weights[0], quantization: { dtype: "uint8" } }] }),
    /mix\/kernel as quantized/,
  ],
  [
    "sums of unequal channels",
    () => ({
      layers: [input, convolution("mix", "image"), layer("Add", "up", ["mix", "image"])],
    }),
    /adds layers of 1 and 2 channels/,
  ],
];

describe("a layers model that is not supported, or damaged, is refused in a line", () => {
  it.each(refused)("%s", async (_, parts, message) => {
    const loading = loadLayersModel(cpuRuntime(), modelOf(parts()));
    await expect(loading).rejects.toThrow(message);
    await expect(loading).rejects.toBeInstanceOf(DataError);
  });

  it("no model at all", async () => {
    const path = join(folder, "none.json");
    await expect(loadLayersModel(cpuRuntime(), path)).rejects.toThrow(/none\.json: is not there/);
    writeFileSync(path, "{");
    await expect(loadLayersModel(cpuRuntime(), path)).rejects.toThrow(/is no JSON/);
    writeFileSync(path, "[]");
    await expect(loadLayersModel(cpuRuntime(), path)).rejects.toThrow(/is no Keras layers model/);
  });
});

describe("openModel", () => {
  it("takes a layers model of others by its file or folder, and weights by the package's names", async () => {
    const path = modelOf();
    const runtime = cpuRuntime();
    expect((await openModel(runtime, { pretrained: path })).scale).toBe(2);
    copyFileSync(path, join(folder, "model.json"));
    const named = async (flags: object): Promise<readonly string[]> =>
      [...(await openModel(runtime, flags)).namedParameters()].map(([name]) => name);
    expect(await named({ pretrained: folder })).toEqual(["mix.weight", "mix.bias"]);
    const own = await openModel(runtime, {});
    const weights = join(folder, "weights.safetensors");
    await writeSafetensorsFile(weights, safetensorsOf(await torchStateDict(own)));
    expect(await named({ pretrained: weights })).toEqual(await named({}));
    const other = join(folder, "other.safetensors");
    await writeSafetensorsFile(other, {
      a: { dtype: "F32", shape: [1], data: new Float32Array(1) },
    });
    await expect(openModel(runtime, { pretrained: other })).rejects.toThrow(
      `${other} has weights of another model: missing: `,
    );
  });
});

it("a layers model of others is trained further by flags, and its checkpoint has its layers", {
  timeout: 300_000,
}, async () => {
  const colours = layer("InputLayer", "image", [], { batch_input_shape: [null, null, null, 3] });
  const path = modelOf({
    layers: [colours, convolution("mix", "image", { filters: 3 }), doubled],
    listed: [
      { name: "mix/kernel", shape: [1, 1, 3, 3], dtype: "float32" },
      { name: "mix/bias", shape: [3], dtype: "float32" },
    ],
    values: [1, 0, 0, 0, 1, 0, 0, 0, 1e-9, 0, 0, 0],
  });
  const images = join(folder, "images");
  mkdirSync(images);
  for (const name of ["a", "b"])
    await sharp({ create: { width: 16, height: 16, channels: 3, background: "teal" } })
      .png()
      .toFile(join(images, `${name}.png`));
  const out = join(folder, "tuned");
  const steps = ["--max-steps", "1", "--batch-size", "1", "--crop", "8", "--lr", "1e-9"];
  const train = (...more: readonly string[]) =>
    runApp("super-resolution", [
      ...["train", "--images", images, "--out", out, "--device", "cpu", ...steps, ...more],
    ]);
  const ended = await train("--pretrained", path);
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  expect(ended.stderr).toContain(`weights of ${path}\n`);
  expect(ended.stderr).toMatch(/mix\.weight: 1 of 9 elements become 0 in float16/);
  const model = await openModel(cpuRuntime(), { model: out });
  const [first, , , , fifth] = await model.parameters().next().value.toArray();
  expect([first, fifth]).toEqual([expect.closeTo(1), expect.closeTo(1)]);
  const other = await train("--resume", "auto");
  expect([other.code, other.stderr]).toEqual([
    2,
    expect.stringContaining(`was saved with --pretrained ${path}, not left out`),
  ]);
});
