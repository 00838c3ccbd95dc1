import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { crc32 } from "node:zlib";
import { DataError, type ImageSet, imagenetNormalization } from "@halfstep/data";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { randomOf } from "../src/augment.js";
import { describeClasses } from "../src/classes.js";
import {
  type DataOptions,
  mnistDirectory,
  openTest,
  openTraining,
  type Zoom,
  zoomOf,
} from "../src/data.js";
import { exportFolder } from "../src/export-folder.js";
import { batchesOf, type Images, pixelImages, sampleOf } from "../src/images.js";

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
  it("are written where nothing is, and nowhere else", async () => {
    const full = at("full");
    mkdirSync(full);
    writeFileSync(join(full, "notes.txt"), "mine");
    const limits = { train: 10, test: 10 };
    const refused = exportFolder(mnistDirectory(), full, limits);
    await expect(refused).rejects.toThrow(
      `${full}: is not empty: name a new folder, or remove what is in it`,
    );
    await expect(refused).rejects.toBeInstanceOf(DataError);
    expect(readdirSync(full)).toEqual(["notes.txt"]);
    await expect(exportFolder(mnistDirectory(), join(full, "notes.txt"), limits)).rejects.toThrow(
      `${join(full, "notes.txt")}: `,
    );
    mkdirSync(at("vacant"));
    expect(await exportFolder(mnistDirectory(), at("vacant"), limits)).toBe(20);
    expect(readdirSync(at("vacant")).sort()).toEqual(["train", "val"]);
  });

  it("give the very bytes of MNIST that were written, by class", async () => {
    const idx = await openTraining(mnistDirectory(), asTheyAre);
    const folder = await openTraining(at("digits"), { ...asTheyAre, imageSize: 28 });
    expect([folder.train.count, folder.test.count]).toEqual([60, 20]);
    expect(folder.view.classes).toEqual(idx.view.classes);
    const { mean, std } = imagenetNormalization as { mean: number[]; std: number[] };
    const [center = 0] = idx.view.mean;
    const [spread = 0] = idx.view.std;
    // Files are called by their numbers.
    const number = Number(basename(folder.train.nameOf(0), ".png"));
    expect(idx.train.labels[number]).toBe(0);
    const expected = await loaded(idx.train, number);
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

  it("that have the right size are tested on as they are, unless a zoom is asked for", async () => {
    const pixels = Uint8Array.from({ length: 28 * 28 }, (_, i) => (i * 37) % 251);
    mkdirSync(at("sized", "val", "a"), { recursive: true });
    await sharp(pixels, { raw: { width: 28, height: 28, channels: 1 } }).toFile(
      at("sized", "val", "a", "1.png"),
    );
    const see = async (zoom: Zoom | undefined, size = 28) => {
      const view = { classes: ["a"], size, channels: 1, mean: [0], std: [1 / 255] };
      return loaded(await openTest(at("sized"), { ...view, ...zoomOf(size, zoom) }), 0);
    };
    const whole = Float32Array.from(pixels);
    const furthest = (seen: Float32Array, expected: Float32Array): number =>
      seen.reduce((most, value, i) => Math.max(most, Math.abs(value - (expected[i] ?? 0))), 0);
    expect(furthest(await see(undefined), whole)).toBeLessThan(0.01);
    expect(furthest(await see(false), whole)).toBeLessThan(0.01);
    expect(furthest(await see(1.25), whole)).toBeGreaterThan(50);
    // Without a zoom a larger image is seen whole, at the size of the network.
    const half = await sharp(pixels, { raw: { width: 28, height: 28, channels: 1 } })
      .resize(14, 14)
      .toColourspace("b-w")
      .raw()
      .toBuffer();
    expect(furthest(await see(false, 14), Float32Array.from(half))).toBeLessThan(0.01);
    expect(furthest(await see(undefined, 14), Float32Array.from(half))).toBeGreaterThan(5);
  });

  it("lose their transparency, at every size, and keep the colours that the file has", async () => {
    const [width, height] = [40, 30];
    const given = { width, height };
    const opaque = Uint8Array.from({ length: 3 * width * height }, (_, i) => (i * 37) % 251);
    // The left half is transparent.
    const seen = Uint8Array.from({ length: 4 * width * height }, (_, i) =>
      i % 4 < 3
        ? (opaque[3 * Math.floor(i / 4) + (i % 4)] as number)
        : 255 * Number(Math.floor(i / 4) % width >= width / 2),
    );
    for (const part of ["train", "val"]) {
      for (const each of ["opaque", "seen"])
        mkdirSync(at("clear", part, each), { recursive: true });
      await sharp(opaque, { raw: { ...given, channels: 3 } }).toFile(
        at("clear", part, "opaque", "1.png"),
      );
      await sharp(seen, { raw: { ...given, channels: 4 } }).toFile(
        at("clear", part, "seen", "1.png"),
      );
    }
    for (const channels of [1, 3])
      for (const size of [20, 30]) {
        const scale = { mean: new Array(channels).fill(0), std: new Array(channels).fill(1) };
        const view = { classes: ["opaque", "seen"], size, channels, ...scale };
        const test = await openTest(at("clear"), { ...view, ...zoomOf(size, false) });
        expect(await loaded(test, 1)).toEqual(await loaded(test, 0));
      }
    const { train } = await openTraining(at("clear"), { ...asTheyAre, imageSize: 16 });
    const [first, second] = [0, 1].map((index) => loaded(train, index, () => 0.5));
    expect(await second).toEqual(await first);
  });

  it("are seen as their pixels lie, whatever orientation the file notes", async () => {
    const pixels = Uint8Array.from({ length: 28 * 28 }, (_, i) => (i * 37) % 251);
    mkdirSync(at("turned", "val", "a"), { recursive: true });
    await sharp(pixels, { raw: { width: 28, height: 28, channels: 1 } })
      .withMetadata({ orientation: 6 })
      .toFile(at("turned", "val", "a", "1.png"));
    const view = { classes: ["a"], size: 28, resize: 32, channels: 1, mean: [0], std: [1 / 255] };
    const seen = await loaded(await openTest(at("turned"), view), 0);
    expect([...seen].map(Math.round)).toEqual([...pixels]);
  });

  it.each(["valid", "validation", "test"])("are found in %s, too", async (part) => {
    const png = readFileSync(someDigit());
    for (const each of ["cat", "dog"])
      for (const folder of ["train", part]) {
        mkdirSync(at(`with ${part}`, folder, each), { recursive: true });
        writeFileSync(at(`with ${part}`, folder, each, "1.png"), png);
      }
    const { test, view } = await openTraining(at(`with ${part}`), asTheyAre);
    expect([test.count, view.classes]).toEqual([2, ["cat", "dog"]]);
  });

  it("of one class, or with a class for each file, are refused; and those trained on are said", async () => {
    const png = readFileSync(someDigit());
    const folderOf = (name: string, classes: readonly string[]): string => {
      for (const part of ["train", "val"])
        for (const each of classes) {
          mkdirSync(at(name, part, each), { recursive: true });
          writeFileSync(at(name, part, each, "1.png"), png);
        }
      return at(name);
    };
    await expect(openTraining(folderOf("alone", ["cat"]), asTheyAre)).rejects.toThrow(
      `${at("alone", "train")}: has images of one class only (cat): put each class in a folder of its own`,
    );
    const many = Array.from({ length: 60 }, (_, i) => `file-${i}`);
    await expect(openTraining(folderOf("many", many), asTheyAre)).rejects.toThrow(
      "has 60 classes, and 60 images: is each image in a folder of its own?",
    );
    const { train, view } = await openTraining(folderOf("two", ["cat", "dog"]), asTheyAre);
    expect(describeClasses(train, view.classes)).toEqual([
      "classes, with training images: cat (1), dog (1)",
      `for example, ${["cat", "dog", "dog"].map((name) => `${at("two", "train", name, "1.png")} is ${name}`).join("; ")}`,
    ]);
  });

  it("are limited to a sample of all classes, not to the first files", async () => {
    const { train, view } = await openTraining(at("digits"), { ...asTheyAre, imageSize: 28 });
    const sample = sampleOf(train, 20, 3);
    expect(sample.count).toBe(20);
    expect(new Set(Array.from(sample.labels)).size).toBe(10);
    for (const i of [0, 7, 19]) {
      const name = view.classes[sample.labels[i] as number] as string;
      expect(sample.nameOf(i)).toContain(at("digits", "train", name));
    }
    const place = Array.from({ length: 60 }, (_, i) => train.nameOf(i)).indexOf(sample.nameOf(7));
    expect(await loaded(sample, 7)).toEqual(await loaded(train, place));
    expect(sampleOf(train, 60, 3)).toBe(train);
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

  it("name the file that cannot be decoded, in one line", async () => {
    for (const folder of ["train/a", "train/b", "val/a"])
      mkdirSync(at("broken", folder), { recursive: true });
    const whole = readFileSync(someDigit());
    const path = at("broken", "train", "a", "1.png");
    writeFileSync(path, whole);
    writeFileSync(at("broken", "train", "b", "1.png"), whole);
    writeFileSync(at("broken", "val", "a", "1.png"), whole);
    const { train, test } = await openTraining(at("broken"), asTheyAre);
    expect((await loaded(train, 0)).length).toBe(224 * 224 * 3);
    const hostile: readonly (readonly [what: string, bytes: Buffer, reason: RegExp])[] = [
      ["empty", Buffer.alloc(0), /: is empty: remove it, or replace it$/],
      [
        "text",
        Buffer.from("no image at all"),
        /: cannot be decoded \(.+\): remove it, or replace it$/,
      ],
      // A header of 33 bytes, 41 of the first chunk of data, and 12 of the end.
      ...Array.from({ length: 8 }, (_, i) => {
        const length = Math.floor(((i + 1) * (whole.length - 12)) / 9);
        return [
          `cut after ${length}`,
          whole.subarray(0, length),
          /: cannot be decoded \(/,
        ] as const;
      }),
      [
        "of billions of pixels",
        announcing(whole, 100_000, 100_000),
        /: has 100000×100000 pixels, and/,
      ],
      ["of a long side", announcing(whole, 2 ** 30, 1), /: cannot be decoded \(/],
      ["larger than it is", announcing(whole, 28, 4000), /: cannot be decoded \(/],
    ];
    for (const [what, bytes, reason] of hostile) {
      writeFileSync(path, bytes);
      for (const random of [undefined, () => 0.5]) {
        const error = await loaded(train, 0, random).catch((thrown) => thrown);
        expect(error, what).toBeInstanceOf(DataError);
        expect(error.message, what).toMatch(reason);
        expect(error.message.startsWith(path), what).toBe(true);
        expect(error.message).not.toContain("\n");
      }
    }
    expect(test.count).toBe(1);
  });
});

/** A file of the digits. */
function someDigit(): string {
  const [name = ""] = readdirSync(at("digits", "val", "7"));
  return at("digits", "val", "7", name);
}

/** A PNG whose header tells another size, with a checksum that is right. */
function announcing(png: Buffer, width: number, height: number): Buffer {
  const changed = Buffer.from(png);
  changed.writeUInt32BE(width, 16);
  changed.writeUInt32BE(height, 20);
  changed.writeUInt32BE(crc32(changed.subarray(12, 29)), 29);
  return changed;
}

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
    await expect(openTraining(at("cifar"), asTheyAre)).rejects.toThrow(
      "has images of one class only (truck): put each class in a folder of its own",
    );
    writeFileSync(at("cifar", "cifar-10-batches-bin", "data_batch_1.bin"), Buffer.alloc(2 * 3073));
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
    for await (const batch of batchesOf(sampleOf(images, 5, 0), places, 2))
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
