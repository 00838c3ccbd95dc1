import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Ended, runApp } from "@halfstep/vitest/run-app";
import { afterAll, expect, it } from "vitest";
import { readPicture } from "../src/images.js";
import { golden, photograph } from "../src/pretrained.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-super-resolution-"));
afterAll(() => rmSync(folder, { recursive: true }));

const superResolution = (...args: readonly string[]): Promise<Ended> =>
  runApp("super-resolution", args);

it("the pretrained network makes what its authors made, in halves with half of the memory", {
  timeout: 600_000,
}, async () => {
  const ended = await superResolution("evaluate", "--json");
  expect(ended).toMatchObject({ code: 0 });
  const [single, half, brain] = JSON.parse(ended.stdout);
  expect(single).toMatchObject({ precision: "float32" });
  expect(single.golden).toBeGreaterThan(90);
  expect(half.golden).toBeGreaterThan(60);
  expect(half.float32).toBeGreaterThan(75);
  expect(brain.float32).toBeGreaterThan(58);
  for (const { parameterBytes, peakBytes } of [half, brain]) {
    expect(parameterBytes / single.parameterBytes).toBeCloseTo(0.5, 2);
    expect(peakBytes / single.peakBytes).toBeLessThan(0.6);
  }
});

it("the pretrained network doubles an image file in tiles", { timeout: 600_000 }, async () => {
  const result = join(folder, "doubled.png");
  const ended = await superResolution("predict", await photograph(), result, "--tile", "80");
  expect(ended).toMatchObject({ code: 0, stdout: "" });
  expect(ended.stderr).toContain("256×256 pixels");
  const [ours, theirs] = [await readPicture(result), await readPicture(await golden())];
  const different = ours.pixels.filter((value, i) => value !== theirs.pixels[i]).length;
  expect(different).toBeLessThan(20);
});

it("training makes it better at images that lost every second pixel, and resumes", {
  timeout: 600_000,
}, async () => {
  const out = join(folder, "run");
  const flags = ["--max-steps", "15", "--lr", "5e-4", "--eval-every", "15", "--save-every", "10"];
  const ended = await superResolution("train", ...flags, "--out", out, "--json");
  expect(ended).toMatchObject({ code: 0 });
  const [run] = JSON.parse(ended.stdout).runs;
  expect(run).toMatchObject({ precision: "float16", steps: 15 });
  // Seen: 0.45 dB, and more than 1 dB after 30 steps.
  expect(run.test.psnr).toBeGreaterThan(run.test.before + 0.3);
  rmSync(join(out, "checkpoints", "step-00000015"), { recursive: true });
  const resumed = await superResolution(
    "train",
    ...flags,
    "--out",
    out,
    "--json",
    "--resume",
    "auto",
  );
  expect(resumed.stderr).toContain("after step 10");
  expect(JSON.parse(resumed.stdout).runs[0].parameterSha256).toBe(run.parameterSha256);
});
