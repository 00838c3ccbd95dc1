import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DataError } from "@halfstep/data";
import type { StateDict } from "@halfstep/nn";
import { writeSafetensors } from "@halfstep/safetensors";
import { cpuRuntime, noGrad } from "@halfstep/tensor";
import { recipeFor, safetensorsOf } from "@halfstep/trainer";
import { readWeights } from "@halfstep/trainer/node";
import { runApp } from "@halfstep/vitest/run-app";
import { afterAll, beforeAll, expect, it } from "vitest";
import { fileView, mnistDirectory } from "../src/data.js";
import { exportFolder } from "../src/export-folder.js";
import type { Prediction } from "../src/predict.js";
import { networkOfWeights, openPretrained } from "../src/pretrained.js";
import { openNetwork } from "../src/saved-network.js";

const golden = (name: string): string =>
  fileURLToPath(new URL(`./golden/${name}`, import.meta.url));
const file = golden("cifar.th");
const root = mkdtempSync(join(tmpdir(), "halfstep-images-"));
const digits = join(root, "digits");
beforeAll(() => exportFolder(mnistDirectory(), digits, { train: 10, test: 20 }));
afterAll(() => rmSync(root, { recursive: true }));

const ten = Array.from({ length: 10 }, (_, i) => `class ${i}`);
const open = (classes = ten) =>
  openPretrained(cpuRuntime(), {
    ...{ path: file, recipe: recipeFor("float32") },
    viewFor: async () => fileView("images", classes, 8, {}),
  });

it("a checkpoint of torch has torch's logits", async () => {
  const { images, logits } = JSON.parse(readFileSync(golden("cifar.json"), "utf8"));
  const { model, network } = await open();
  expect(network).toEqual({
    ...{ layers: [1, 1, 1], width: 4, channels: 3, classes: 10 },
    ...{ block: "basic", stem: "cifar", shortcut: "padding" },
  });
  const x = model.conv1.weight.runtime.tensor(images, [2, 3, 8, 8]).permute([0, 2, 3, 1]);
  const found = await noGrad(() => model.forward(x)).toArray();
  for (const [i, value] of found.entries()) expect(value).toBeCloseTo(logits[i], 5);
});

it("classes and weights of other networks are refused", async () => {
  await expect(open(ten.slice(1))).rejects.toThrow(
    `${file}: is a network for 10 classes, and these are 9`,
  );
  const { "conv1.weight": _, ...rest } = await readWeights(file);
  expect(() => networkOfWeights(rest, file)).toThrow(DataError);
  expect(() => networkOfWeights(rest, file)).toThrow("is of no ResNet: there is no conv1.weight");
});

it("weights that lack a name, or have another shape, are named with the nearest ones", async () => {
  const { "layer2.0.conv1.weight": moved, ...rest } = await readWeights(file);
  const { "conv1.weight": first, ...others } = await readWeights(file);
  if (!moved || !first) throw new Error("the fixture has no convolutions");
  const folder = mkdtempSync(join(root, "weights-"));
  const refusal = async (weights: StateDict): Promise<string> => {
    const path = join(folder, "changed.safetensors");
    writeFileSync(path, writeSafetensors(safetensorsOf(weights)));
    const options = {
      ...{ path, recipe: recipeFor("float32") },
      viewFor: async () => fileView("images", ten, 8, {}),
    };
    return openPretrained(cpuRuntime(), options).then(
      () => "",
      (error: Error) => error.message,
    );
  };
  expect(await refusal({ ...rest, "layer2.0.convX.weight": moved })).toMatch(
    /has weights of another model: missing: layer2\.0\.conv1\.weight \(nearest: layer2\.0\.convX\.weight\); unexpected: layer2\.0\.convX\.weight$/,
  );
  const wide = { shape: [4, 3, 5, 5], dtype: "float32", data: new Float32Array(300) } as const;
  expect(await refusal({ ...others, "conv1.weight": wide })).toMatch(
    /of another shape: conv1\.weight is \[4,3,5,5\], and the model's \[4,3,3,3\]$/,
  );
});

it("is evaluated and asked by flags alone", async () => {
  const flags = ["--pretrained", file, "--image-size", "28", "--no-zoom", "--device", "cpu"];
  const normalization = ["--mean", "0.5,0.5,0.5", "--std", "0.25,0.25,0.25"];
  const evaluated = await runApp("images", [
    "evaluate",
    digits,
    ...flags,
    ...normalization,
    "--json",
  ]);
  expect([evaluated.code, JSON.parse(evaluated.stdout)]).toMatchObject([
    0,
    { model: file, precision: "float32", samples: 20 },
  ]);
  const threes = join(digits, "val", "3");
  const image = join(threes, readdirSync(threes)[0] as string);
  const predicted = await runApp("images", [
    "predict",
    image,
    ...flags,
    "--classes",
    ten.join(),
    "--json",
  ]);
  const { predictions } = JSON.parse(predicted.stdout) as { predictions: Prediction[] };
  expect(predictions[0]?.classes.map(({ name }) => name)).toHaveLength(5);
  expect(predictions[0]?.classes[0]?.name).toMatch(/^class \d$/);
});

it("is trained on images of the size that its network usually sees", async () => {
  const out = join(root, "tuned");
  const flags = ["--pretrained", file, "-b", "2", "--max-steps", "1", "--limit", "4"];
  const { code, stderr } = await runApp("images", [
    digits,
    ...flags,
    "--device",
    "cpu",
    "--out",
    out,
  ]);
  const { view } = await openNetwork(cpuRuntime(), out, undefined);
  expect([code, view.size]).toEqual([0, 32]);
  expect(stderr).toContain(`weights of ${file}\n`);
});
