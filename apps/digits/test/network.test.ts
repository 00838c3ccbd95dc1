import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeSafetensorsFile } from "@halfstep/safetensors/node";
import { cpuRuntime, noGrad } from "@halfstep/tensor";
import { runApp } from "@halfstep/vitest/run-app";
import sharp from "sharp";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readDigits } from "../src/data.js";
import { openNetwork } from "../src/network.js";
import { readDigit } from "../src/read-digit.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-network-"));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, "digits.safetensors");
const golden: { shapes: Record<string, number[]>; logits: number[] } = JSON.parse(
  readFileSync(new URL("./golden/digits-cnn.json", import.meta.url), "utf8"),
);

/** The weights of the recipe of the golden values. */
beforeAll(() =>
  writeSafetensorsFile(
    path,
    Object.fromEntries(
      Object.entries(golden.shapes).flatMap(([name, shape], place) => {
        if (shape.length === 0) return [];
        const size = shape.reduce((a, b) => a * b, 1);
        const data = Float32Array.from({ length: size }, (_, i) => {
          const value = ((i * 7 + 13 * place) % 61) - 30;
          return name.endsWith("var") ? Math.abs(value) / 32 + 0.5 : value / 128;
        });
        return [[name, { dtype: "F32" as const, shape, data }]];
      }),
    ),
  ),
);

it("weights of torch have torch's scores, though it flattens in another order", async () => {
  const runtime = cpuRuntime();
  const { model } = await openNetwork(runtime, { model: "", pretrained: path });
  const images = Float32Array.from({ length: 2 * 784 }, (_, i) => (((i * 7) % 61) - 30) / 32);
  const found = await noGrad(() => model.forward(runtime.tensor(images, [2, 28, 28, 1]))).toArray();
  for (const [i, value] of golden.logits.entries()) expect(found[i]).toBeCloseTo(value, 5);
});

it("are tested, asked and trained further by flags alone, and so are those of a run", {
  timeout: 300_000,
}, async () => {
  const digits = (...args: readonly string[]) => runApp("digits", [...args, "--device", "cpu"]);
  const tested = await digits("evaluate", "--pretrained", path, "--limit", "20", "--json");
  expect(tested, tested.stderr).toMatchObject({ code: 0 });
  const found = JSON.parse(tested.stdout) as { accuracy: number; confusion: number[][] };
  expect(found).toMatchObject({ model: path, samples: 20 });
  // Two test images of each digit: a row of the matrix has both.
  const images = found.confusion.map((row) => row.reduce((a, b) => a + b));
  expect(images).toEqual(new Array(10).fill(2));
  const right = found.confusion.reduce((sum, row, i) => sum + (row[i] as number), 0);
  expect(found.accuracy).toBe(right / 20);

  const out = join(folder, "run");
  const flags = ["--precision", "float16", "--limit", "64", "--batch-size", "32", "--out", out];
  flags.push("--class-weights", "balanced", "--label-smoothing", "0.1");
  const trained = await digits(...flags, "--json");
  const { accuracy, loss } = JSON.parse(trained.stdout).runs[0].test;
  const again = await digits("evaluate", "--model", out, "--limit", "64", "--json");
  expect(JSON.parse(again.stdout)).toMatchObject({ precision: "float16", accuracy, loss });

  const tuning = ["--pretrained", path, "--lr", "1e-9", "--precision", "float32"];
  tuning.push("--limit", "20", "--batch-size", "20", "--out", join(folder, "tuned"));
  const tuned = await digits(...tuning, "--json");
  expect(tuned.stderr).toContain(`weights of ${path}\n`);
  // So small a rate changes nothing but the running means and variances.
  const kept = await digits("evaluate", "--model", join(folder, "tuned"), "--limit", "20");
  expect([tuned.code, kept.code]).toEqual([0, 0]);
  const [before, after] = await Promise.all(
    [{ pretrained: path }, { model: join(folder, "tuned") }].map(async (named) => {
      const { model: opened } = await openNetwork(cpuRuntime(), { model: "", ...named });
      return opened.fc.weight.toArray();
    }),
  );
  for (const [i, value] of before?.entries() ?? []) expect(after?.[i]).toBeCloseTo(value, 5);

  const { test } = await readDigits({});
  const picture = join(folder, "digit.png");
  const inverted = test.images.subarray(0, 784).map((grey) => 255 - grey);
  await sharp(inverted, { raw: { width: 28, height: 28, channels: 1 } }).toFile(picture);
  const asked = await digits("predict", picture, "--model", out);
  expect(asked.stdout).toMatch(/digit\.png: \d {2}\d+\.\d %\n$/);
  // A camera that was held upright notes how the picture is to be turned.
  const photo = join(folder, "photo.png");
  await sharp(inverted, { raw: { width: 28, height: 28, channels: 1 } })
    .rotate(270)
    .withMetadata({ orientation: 6 })
    .toFile(photo);
  expect(await readDigit(photo)).toEqual(await readDigit(picture));
  const none = await digits("predict", picture, "--model", join(folder, "none"));
  expect([none.code, none.stderr]).toEqual([
    2,
    expect.stringContaining("is not there: train first"),
  ]);
});
