import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataError, type ImageSet, imagenetNormalization } from "@halfstep/data";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { randomOf } from "../src/augment.js";
import { type DataOptions, mnistDirectory, openTest, openTraining } from "../src/data.js";
import { exportFolder } from "../src/export-folder.js";
import { batchesOf, firstOf, type Images, pixelImages } from "../src/images.js";

const root = mkdtempSync(join(tmpdir(), "halfstep-images-"));
const at = (...parts: string[]): string => join(root, ...parts);
const asTheyAre: DataOptions = { cropScale: 1, augment: false, flip: false };
beforeAll(async () => {
  expect(await exportFolder(mnistDirectory(), at("digits"), { train: 60, test: 20 })).toBe(80);
});
afterAll(() => rmSync(root, { recursive: true }));

const loaded = async (images: Images, index: number, random?: () => number) => {
  const into = new Float32Array(images.size ** 2 * images.channels);
  await images.load(index, into, random);
  return into;
};

describe("image folders", () => {
  it("give the very bytes of MNIST that were written, by class", async () => {
    const idx = await openTraining(mnistDirectory(), asTheyAre);
    const folder = await openTraining(at("digits"), { ...asTheyAre, imageSize: 28 });
    expect([folder.train.count, folder.test.count]).toEqual([60, 20]);
    expect(folder.view.classes).toEqual(idx.view.classes);
    const { mean, std } = imagenetNormalization as { mean: number[]; std: number[] };
    const [center = 0] = idx.view.mean;
    const [spread = 0] = idx.view.std;
    // The first of class 0 among MNIST's first 60 is number 1.
    const expected = await loaded(idx.train, 1);
    // A crop of the whole image at its own size is the image.
    const whole = await loaded(folder.train, 0, sequence(0, 0.5, 0, 0));
    let worst = 0;
    for (const [pixel, value] of expected.entries())
      for (const channel of [0, 1, 2]) {
        const grey = value * spread + center;
        const seen =
          (whole[3 * pixel + channel] as number) * (std[channel] as number) +
          (mean[channel] as number);
        worst = Math.max(worst, Math.abs(seen - grey));
      }
    expect(worst).toBeLessThan(1e-6);
  });

  it("test on the middle of an image, its shorter side at 256 / 224 of the size", async () => {
    mkdirSync(at("wide", "val", "a"), { recursive: true });
    const [width, height] = [96, 64];
    // A white square of half the height in the middle of black.
    const pixels = Buffer.alloc(width * height, 0);
    for (let y = 16; y < 48; y++) pixels.fill(255, y * width + 32, y * width + 64);
    await sharp(pixels, { raw: { width, height, channels: 1 } })
      .jpeg({ quality: 100 })
      .toFile(at("wide", "val", "a", "1.jpg"));
    const view = { classes: ["a"], size: 28, resize: 32, channels: 1, mean: [0], std: [1] };
    const seen = await loaded(await openTest(at("wide"), view), 0);
    expect(seen.reduce((sum, value) => sum + value) / 16 ** 2).toBeCloseTo(1, 1);
    const value = (y: number, x: number): number => seen[28 * y + x] as number;
    expect([value(2, 2), value(14, 14), value(25, 14)]).toEqual([0, 1, 0].map(near));
  });

  it("are augmented by seed, epoch and image: the same twice, whatever is decoded beside", async () => {
    const { train } = await openTraining(at("digits"), {
      ...asTheyAre,
      cropScale: 0.3,
      imageSize: 24,
    });
    const batch = async (places: number[], workers: number, epoch: number) => {
      const all = batchesOf(train, [Uint32Array.from(places)], workers, (i) =>
        randomOf(1, epoch, i),
      );
      for await (const { images } of all) return images;
      throw new Error("no batch");
    };
    const [first, again, next] = await Promise.all([
      batch([5, 9, 17, 3], 4, 0),
      batch([3, 5, 17, 9], 1, 0),
      batch([5, 9, 17, 3], 4, 1),
    ]);
    const length = 24 * 24 * 3;
    expect(again.subarray(length, 2 * length)).toEqual(first.subarray(0, length));
    expect(next).not.toEqual(first);
  });

  it.each([
    ["text", () => Buffer.from("no image at all")],
    ["a part of a PNG", () => readFileSync(at("digits", "val", "7", "00000.png")).subarray(0, 120)],
  ])("name the file that is %s in one line", async (_, content) => {
    mkdirSync(at("broken", "train", "a"), { recursive: true });
    mkdirSync(at("broken", "val", "a"), { recursive: true });
    const path = at("broken", "train", "a", "1.png");
    writeFileSync(path, content());
    writeFileSync(at("broken", "val", "a", "1.png"), content());
    const { train } = await openTraining(at("broken"), asTheyAre);
    const error = await loaded(train, 0, () => 0.5).catch((reason) => reason);
    expect(error).toBeInstanceOf(DataError);
    expect(error.message).toMatch(/^.*1\.png: cannot be decoded \(.+\): remove it, or replace it$/);
    expect(error.message).toContain(path);
  });
});

describe("folders of other kinds", () => {
  it.each([
    ["empty", "has neither train/CLASS/ and val/CLASS/"],
    ["missing", "is not there"],
  ])("%s ones are refused", async (name, message) => {
    if (name !== "missing") mkdirSync(at(name));
    await expect(openTraining(at(name), asTheyAre)).rejects.toThrow(`${at(name)}: ${message}`);
  });

  it("CIFAR-10 and cut-off IDX files", async () => {
    mkdirSync(at("cifar", "cifar-10-batches-bin"), { recursive: true });
    for (const name of [
      "data_batch_1",
      "data_batch_2",
      "data_batch_3",
      "data_batch_4",
      "data_batch_5",
      "test_batch",
    ])
      writeFileSync(at("cifar", "cifar-10-batches-bin", `${name}.bin`), Buffer.alloc(2 * 3073, 9));
    const { train, view, name } = await openTraining(at("cifar"), asTheyAre);
    expect([name, train.count, view.size, view.channels]).toEqual(["CIFAR-10", 10, 32, 3]);
    expect(view.classes[9]).toBe("truck");
    mkdirSync(at("idx"));
    for (const file of [
      "train-images-idx3-ubyte",
      "train-labels-idx1-ubyte",
      "t10k-images-idx3-ubyte",
    ])
      copyFileSync(join(mnistDirectory(), file), at("idx", file));
    writeFileSync(at("idx", "t10k-labels-idx1-ubyte"), Buffer.alloc(100));
    await expect(openTraining(at("idx"), asTheyAre)).rejects.toBeInstanceOf(DataError);
  });

  it("a network is not tested on images of another size", async () => {
    const { view } = await openTraining(at("cifar"), asTheyAre);
    await expect(openTest(mnistDirectory(), view)).rejects.toThrow(
      "has images of 28×28×1, and the network takes 32×32×3",
    );
  });
});

describe("images in memory", () => {
  const set: ImageSet = {
    ...{ images: Uint8Array.of(10, 20, 30, 40), labels: Uint8Array.of(1) },
    ...{ count: 1, height: 2, width: 2, channels: 1 },
  };
  const images = pixelImages(set, { mean: 0, std: 1 / 255 }, { pad: 1, flip: true });

  it("are moved and mirrored, and black comes in from the side", async () => {
    const see = async (...random: number[]) =>
      [...(await loaded(images, 0, sequence(...random)))].map(Math.round);
    expect([...(await loaded(images, 0))].map(Math.round)).toEqual([10, 20, 30, 40]);
    expect(await see(0.5, 0.5, 0.9)).toEqual([10, 20, 30, 40]);
    expect(await see(0.5, 0.5, 0.1)).toEqual([20, 10, 40, 30]);
    expect(await see(0.9, 0.5, 0.9)).toEqual([0, 0, 10, 20]);
    expect(await see(0.5, 0, 0.9)).toEqual([20, 0, 40, 0]);
  });

  it("come in batches with their labels", async () => {
    const places = [Uint32Array.of(0, 0), Uint32Array.of(0)];
    const shapes: number[][] = [];
    for await (const batch of batchesOf(firstOf(images, 5), places, 2))
      shapes.push([batch.images.length, ...batch.labels]);
    expect(shapes).toEqual([
      [8, 1, 1],
      [4, 1],
    ]);
  });
});

/** A source of random numbers that gives these, and then the last for ever. */
function sequence(...values: number[]): () => number {
  let i = 0;
  return () => values[Math.min(i++, values.length - 1)] as number;
}

const near = (value: number) => expect.closeTo(value, 1);
