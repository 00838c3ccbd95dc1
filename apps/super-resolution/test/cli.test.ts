import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StorageError } from "@halfstep/trainer";
import { UsageError } from "@halfstep/trainer/cli";
import { type Ended, runApp } from "@halfstep/vitest/run-app";
import sharp from "sharp";
import { afterAll, describe, expect, it } from "vitest";
import { requireWritten, writePicture } from "../src/images.js";
import { photograph } from "../src/pretrained.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-super-resolution-"));
afterAll(() => rmSync(folder, { recursive: true }));

const superResolution = (...args: readonly string[]): Promise<Ended> =>
  runApp("super-resolution", args);

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

  it("a result that would replace the image", async () => {
    const [path, link] = [join(folder, "photo.png"), join(folder, "link.png")];
    writeFileSync(path, "a photo");
    symlinkSync(path, link);
    const ended = await superResolution("predict", path, path);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(last(ended.stderr)).toBe(
      `error: the result would replace the image ${path}: name another file`,
    );
    expect(readFileSync(path, "utf8")).toBe("a photo");
    expect(() => requireWritten(link, path)).toThrow(UsageError);
    expect(() => requireWritten(join(folder, "other.png"), path)).not.toThrow();
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
