import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StorageError } from "@halfstep/trainer";
import { type Ended, runApp } from "@halfstep/vitest/run-app";
import sharp from "sharp";
import { afterAll, describe, expect, it } from "vitest";
import { readPicture, writePicture } from "../src/images.js";
import { golden, photograph } from "../src/pretrained.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-super-resolution-"));
afterAll(() => rmSync(folder, { recursive: true }));

const superResolution = (...args: readonly string[]): Promise<Ended> =>
  runApp("super-resolution", args);

describe("the pretrained network", { timeout: 600_000 }, () => {
  it("makes what its authors made, in halves with half of the memory", async () => {
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

  it("doubles an image file in tiles", async () => {
    const result = join(folder, "doubled.png");
    const ended = await superResolution("predict", await photograph(), result, "--tile", "80");
    expect(ended).toMatchObject({ code: 0, stdout: "" });
    expect(ended.stderr).toContain("256×256 pixels");
    const [ours, theirs] = [await readPicture(result), await readPicture(await golden())];
    const different = ours.pixels.filter((value, i) => value !== theirs.pixels[i]).length;
    expect(different).toBeLessThan(20);
  });
});

describe("training it further", { timeout: 600_000 }, () => {
  const out = join(folder, "run");

  it("makes it better at images that lost every second pixel, and resumes", async () => {
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
});

describe("what cannot be done is refused in a line", { timeout: 600_000 }, () => {
  const last = (stderr: string): string | undefined => stderr.trimEnd().split("\n").at(-1);

  it("a file that is no image", async () => {
    const path = join(folder, "text.png");
    writeFileSync(path, "no image");
    const ended = await superResolution("predict", path, join(folder, "out.png"));
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(last(ended.stderr)).toMatch(/^error: .*text\.png: is no image that can be read/);
  });

  it("a result that cannot be written", async () => {
    const ended = await superResolution("predict", await photograph(), join(folder, "out.gif"));
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(last(ended.stderr)).toMatch(/out\.gif: cannot be written: let it end in \.png/);
    const nowhere = join(folder, "no", "where.png");
    await expect(
      writePicture(nowhere, { width: 1, height: 1, pixels: new Uint8Array(3) }),
    ).rejects.toBeInstanceOf(StorageError);
  });

  it("a folder of one image", async () => {
    const images = mkdtempSync(join(folder, "images-"));
    await sharp({ create: { width: 8, height: 8, channels: 3, background: "red" } })
      .png()
      .toFile(join(images, "red.png"));
    const ended = await superResolution("train", "--images", images, "--out", join(folder, "none"));
    expect(ended).toMatchObject({ code: 2 });
    expect(last(ended.stderr)).toMatch(/has 1 images .* one to learn from and one to judge by$/);
  });

  it("flags that are wrong", async () => {
    const ended = await superResolution("train", "--crop", "47", "--kernel", "best");
    expect(ended).toMatchObject({ code: 2 });
    expect(last(ended.stderr)).toMatch(/--kernel.*none of nearest, cubic/);
  });
});
