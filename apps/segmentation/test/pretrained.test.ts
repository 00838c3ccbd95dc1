import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { UNet } from "@halfstep/models";
import { InferenceSession, Tensor } from "@halfstep/onnxruntime";
import { cpuRuntime, noGrad, type Runtime } from "@halfstep/tensor";
import { readWeights } from "@halfstep/trainer/node";
import { runApp } from "@halfstep/vitest/run-app";
import { afterAll, expect, it } from "vitest";
import { exportNetwork, onnxOf } from "../src/commands/export.js";
import { readPicture, writePng } from "../src/pictures.js";
import { openPretrained } from "../src/pretrained.js";
import { makeUNet, openSegmenter } from "../src/saved-model.js";
import { encoded } from "../src/tiles.js";

const golden = (name: string): string =>
  fileURLToPath(new URL(`./golden/${name}`, import.meta.url));
const path = golden("unet.pth");
const key = "averaged.weights";
const { height, width, pixels, logits, logitsOfThree } = JSON.parse(
  readFileSync(golden("unet.json"), "utf8"),
);
const scratch = mkdtempSync(join(tmpdir(), "halfstep-unet-"));
afterAll(() => rmSync(scratch, { recursive: true }));

/** The scores of the golden picture, [height, width, classes]. */
const scoresOf = (runtime: Runtime, model: UNet): Promise<ArrayLike<number>> => {
  const numbers = Float32Array.from(pixels, (byte: number) => encoded.linear[byte] as number);
  const x = runtime.tensor(numbers, [1, 3, height, width]).permute([0, 2, 3, 1]);
  return noGrad(() => model.forward(x)).toArray();
};

it("a checkpoint of milesial's form has torch's scores, and its sigmoid is a softmax of two", async () => {
  const runtime = cpuRuntime();
  const { model, ...opened } = await openPretrained(runtime, { path, key });
  expect(opened).toMatchObject({
    ...{ channels: 3, width: 2, bilinear: true, classes: ["0", "1"], maskValues: [0, 255] },
    ...{ path, step: 0, scale: 0.5, encoding: "linear" },
  });
  const found = await scoresOf(runtime, model);
  for (const [i, logit] of (logits as number[]).entries()) {
    expect(found[2 * i]).toBe(0);
    expect(found[2 * i + 1]).toBeCloseTo(logit, 4);
  }
});

it("another key of the file has torch's scores of three classes, different in each pixel", async () => {
  const runtime = cpuRuntime();
  const opened = await openPretrained(runtime, { path, key: "last.weights" });
  expect(opened).toMatchObject({ classes: ["0", "1", "2"], maskValues: [0, 1, 2] });
  const found = await scoresOf(runtime, opened.model);
  const count = height * width;
  for (let i = 0; i < 3 * count; i++)
    expect(found[3 * (i % count) + Math.floor(i / count)]).toBeCloseTo(logitsOfThree[i], 4);
  expect(new Set(logitsOfThree).size).toBeGreaterThan(2.5 * count);
});

it("ONNX Runtime computes its scores from the exported file", async () => {
  const file = join(scratch, "unet.onnx");
  await exportNetwork({ command: "export", file, model: "", pretrained: path, key });
  expect(readFileSync(file, "latin1")).toContain("outc.conv.weight");
  const runtime = cpuRuntime();
  const classes = ["a", "b", "c"];
  const sizes = { channels: 1, classes, maskValues: [0, 1, 2], scale: 1, width: 4, tile: 16 };
  const model = makeUNet(runtime, { ...sizes, bilinear: false }, 5).eval();
  const numbers = Float32Array.from({ length: 2 * 16 * 32 }, (_, i) => Math.sin(i));
  const x = runtime.tensor(numbers, [2, 16, 32, 1]);
  const wanted = await noGrad(() => model.forward(x).permute([0, 3, 1, 2])).toArray();
  const largest = Math.max(...wanted.map(Math.abs));
  expect(new Set(wanted).size).toBeGreaterThan(1000);
  const bytes = await onnxOf({ model, channels: 1 }, { onnx: "float16" });
  const session = await InferenceSession.create(bytes, { intraOpNumThreads: 1 });
  const images = new Tensor("float32", numbers, [2, 1, 16, 32]);
  const { logits: found } = await session.run({ images });
  await session.release();
  expect(found?.dims).toEqual([2, 3, 16, 32]);
  const scores = Array.from(found?.data as Float32Array);
  const errors = scores.map((score, i) => Math.abs(score - (wanted[i] as number)) / largest);
  expect(Math.max(...errors)).toBeLessThan(0.01);
});

it("weights of other networks and other classes are refused by the file's name", async () => {
  const open = (more: object) => openPretrained(cpuRuntime(), { path, key, ...more });
  await expect(open({ key: undefined })).rejects.toThrow(/unet\.pth/);
  const three = { maskKind: "grey", classes: ["a", "b", "c"], maskValues: [0, 1, 2] } as const;
  await expect(open({ classes: three })).rejects.toThrow(
    `${path}: is a network for 2 classes, and these are 3`,
  );
  expect(Object.keys(await readWeights(path, { key }))).not.toContain("mask_values");
  const other = golden("../../../images/test/golden/cifar.th");
  await expect(open({ path: other, key: undefined })).rejects.toThrow(
    `${other}: is of no U-Net: there is no inc.double_conv.0.weight among conv1.weight`,
  );
});

it("is asked by flags alone, with masks in the colours of a table", {
  timeout: 300_000,
}, async () => {
  const picture = join(scratch, "picture.png");
  const bytes = Uint8Array.from({ length: 3 * height * width }, (_, i) => {
    const [pixel, channel] = [Math.floor(i / 3), i % 3];
    return pixels[channel * height * width + pixel];
  });
  await writePng(picture, { height, width, channels: 3, pixels: bytes });
  const table = join(scratch, "classes.csv");
  writeFileSync(table, "name,r,g,b\nground,10,20,30\ncar,200,100,0\n");
  const mask = join(scratch, "mask.png");
  const flags = ["--pretrained", path, "--key", key, "--classes", table, "--scale", "1"];
  const ended = await runApp("segmentation", [
    ...["predict", picture, "-o", mask, ...flags, "--palette", "--device", "cpu", "--json"],
  ]);
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  const [{ shares }] = JSON.parse(ended.stdout).predictions;
  expect(shares.ground + shares.car).toBeCloseTo(1);
  const { pixels: colours } = await readPicture(mask, { channels: 3 });
  const cars = [...colours].filter((red, i) => i % 3 === 0 && red === 200).length;
  expect(cars).toBe(Math.round(shares.car * height * width));
});

it("is trained further by flags, on bytes over 255, with a new last layer for other classes", {
  timeout: 300_000,
}, async () => {
  const data = join(scratch, "scenes");
  for (const part of ["imgs", "masks"]) mkdirSync(join(data, part), { recursive: true });
  for (const name of ["a", "b"]) {
    const size = { height: 32, width: 32 };
    const colours = Uint8Array.from({ length: 3 * 1024 }, (_, i) => (i * 7) % 256);
    await writePng(join(data, "imgs", `${name}.png`), { ...size, channels: 3, pixels: colours });
    const grey = Uint8Array.from({ length: 1024 }, (_, i) => i % 3);
    await writePng(join(data, "masks", `${name}.png`), { ...size, channels: 1, pixels: grey });
  }
  const flags = ["--data", data, "--scale", "1", "--tile", "16", "--device", "cpu"];
  const steps = ["--max-steps", "1", "--batch-size", "2", "--lr", "1e-9"];
  const train = (name: string, from: string) =>
    runApp("segmentation", [
      ...["train", ...flags, ...steps, "--pretrained", path, "--key", from],
      ...["--out", join(scratch, name)],
    ]);
  const weightsIn = async (name: string) => {
    const opened = await openSegmenter(cpuRuntime(), join(scratch, name));
    expect(opened).toMatchObject({ encoding: "linear", width: 2, bilinear: true });
    const { conv } = opened.model.outc;
    const [first] = opened.model.parameters();
    return [await first?.toArray(), await conv.weight.toArray()];
  };
  const close = (found: ArrayLike<number> | undefined, wanted: ArrayLike<number>): boolean =>
    Array.from(wanted).every((value, i) => Math.abs(value - (found?.[i] ?? 0)) < 1e-5);
  const of = async (from: string) => {
    const { model } = await openPretrained(cpuRuntime(), { path, key: from });
    const [first] = model.parameters();
    return [await first?.toArray(), await model.outc.conv.weight.toArray()] as const;
  };
  const same = await train("same", "last.weights");
  expect(same, same.stderr).toMatchObject({ code: 0 });
  expect(same.stderr).toContain(`weights of ${path}\n`);
  const [body, last] = await weightsIn("same");
  const [wantedBody, wantedLast] = await of("last.weights");
  expect([close(body, wantedBody ?? []), close(last, wantedLast)]).toEqual([true, true]);

  const other = await train("other", key);
  expect(other.stderr).toContain(
    `weights of ${path}, but for the head, where outc.conv.weight is [2, 2, 1, 1]: outc.conv.weight, outc.conv.bias begin anew`,
  );
  const [otherBody] = await weightsIn("other");
  expect(close(otherBody, (await of(key))[0] ?? [])).toBe(true);
  const grey = await runApp("segmentation", [
    ...["train", "--data", "digits", "--canvases", "1", "--pretrained", path, "--key", key],
  ]);
  expect([grey.code, grey.stderr]).toEqual([
    2,
    expect.stringContaining("is a network for pictures of 3 channels, and these have 1"),
  ]);
});
