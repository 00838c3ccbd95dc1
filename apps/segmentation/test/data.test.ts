import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { StorageError } from "@halfstep/trainer";
import sharp from "sharp";
import { afterAll, describe, expect, it } from "vitest";
import { baselinesOf } from "../src/baseline.js";
import { readDigits } from "../src/digits.js";
import { readEarth } from "../src/earth.js";
import { readFolder } from "../src/folder.js";
import { readPicture, writePng } from "../src/pictures.js";
import { readScenes } from "../src/scenes.js";
import { headline } from "../src/scores.js";

const scratch = mkdtempSync(join(tmpdir(), "halfstep-segmentation-"));
afterAll(() => rmSync(scratch, { recursive: true }));

/** What is wrong, by its message. */
const failure = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(DataError);
  return (error as DataError).message;
};

describe("the Earth", () => {
  it("is split by longitude, and rules of colour do as well as is known", async () => {
    const earth = await readEarth();
    const sizes = (scenes: typeof earth.train) =>
      scenes.map(({ height, width }) => [height, width]);
    expect(sizes(earth.train)).toEqual(Array(4).fill([512, 192]));
    expect(sizes(earth.heldOut)).toEqual(Array(4).fill([512, 64]));
    expect(earth.heldOut.map(({ name }) => name)).toEqual([
      ...["112.5° W to 90° W", "22.5° W to 0° E", "67.5° E to 90° E", "157.5° E to 180° E"],
    ]);
    const whole = { ...earth, heldOut: [...earth.train, ...earth.heldOut] };
    const [simple, ...fitted] = baselinesOf(whole).map(({ scores }) => scores);
    expect(simple?.ious[1]).toBeCloseTo(0.906, 2);
    expect(simple?.accuracy).toBeCloseTo(0.966, 2);
    expect(fitted.map(({ ious }) => (ious[1] as number) > 0.93)).toEqual([true, true, true]);
  });
});

describe("canvases of digits", () => {
  it("follow from the seed, and know the class of each pixel of ink", async () => {
    const digits = await readDigits({ count: 64, seed: 3 });
    const again = await readDigits({ count: 64, seed: 3 });
    const other = await readDigits({ count: 64, seed: 4 });
    expect(digits.train).toHaveLength(64);
    expect(digits.heldOut).toHaveLength(16);
    const bytes = ({ train, heldOut }: typeof digits): Buffer =>
      Buffer.concat([...train, ...heldOut].flatMap(({ pixels, labels }) => [pixels, labels]));
    expect(bytes(again).equals(bytes(digits))).toBe(true);
    expect(bytes(other).equals(bytes(digits))).toBe(false);
    const seen = new Set(digits.train.flatMap(({ labels }) => [...labels]));
    expect([...seen].sort((a, b) => a - b)).toEqual(Array.from({ length: 11 }, (_, i) => i));
    const wrong = digits.train.flatMap(({ pixels, labels }) =>
      [...pixels].filter((grey, i) => grey >= 96 !== (labels[i] as number) > 0),
    );
    expect(wrong).toEqual([]);
    const [frequent, nearest] = baselinesOf(digits).map(
      ({ scores }) => headline(digits.classes, scores).value,
    );
    expect(frequent).toBeLessThan(0.2);
    expect(nearest).toBeGreaterThan(1.5 * (frequent as number));
  });
});

describe("a folder of pictures and masks", () => {
  const options = { scale: 0.5, validation: 0.34, seed: 1 };

  /** A folder with pictures and masks of these sizes and greys. */
  const folderOf = async (
    name: string,
    files: Readonly<Record<string, readonly [height: number, width: number, grey: number]>>,
  ): Promise<string> => {
    for (const each of ["imgs", "masks"]) mkdirSync(join(scratch, name, each), { recursive: true });
    for (const [file, [height, width, grey]] of Object.entries(files)) {
      const channels = file.startsWith("imgs") ? 3 : 1;
      const pixels = new Uint8Array(height * width * channels).fill(grey);
      // The left half is darker.
      for (let i = 0; i < pixels.length; i++)
        if (Math.floor(i / channels) % width < width / 2) pixels[i] = 0;
      await writePng(join(scratch, name, file), { height, width, channels, pixels });
    }
    return join(scratch, name);
  };

  it("has a class for each grey of the masks, and holds some pictures out", async () => {
    const directory = await folderOf("good", {
      ...{ "imgs/a.png": [20, 40, 200], "masks/a.png": [20, 40, 128] },
      ...{ "imgs/b.png": [24, 40, 200], "masks/b_mask.png": [24, 40, 255] },
      ...{ "imgs/c.png": [28, 40, 200], "masks/c.png": [28, 40, 255] },
    });
    const set = await readFolder(directory, options);
    expect(set).toMatchObject({ channels: 3, maskValues: [0, 128, 255], scale: 0.5, flips: true });
    expect([set.train.length, set.heldOut.length]).toEqual([2, 1]);
    const all = [...set.train, ...set.heldOut].sort((a, b) => a.height - b.height);
    expect(all.map(({ name, height, width }) => [name, height, width])).toEqual([
      ["a", 10, 20],
      ["b", 12, 20],
      ["c", 14, 20],
    ]);
    expect(all.map(({ labels }) => [labels[9], labels[10]])).toEqual([
      [0, 1],
      [0, 2],
      [0, 2],
    ]);
  });

  it("says in a line what is missing or does not fit", async () => {
    const one = { "imgs/a.png": [20, 40, 200], "masks/a.png": [20, 40, 255] } as const;
    const folders = {
      none: join(scratch, "none"),
      few: await folderOf("few", one),
      maskless: await folderOf("maskless", { ...one, "imgs/b.png": [20, 40, 9] }),
      sizes: await folderOf("sizes", {
        ...{ ...one, "imgs/b.png": [20, 40, 9], "masks/b.png": [10, 40, 9] },
      }),
      grey: await folderOf("grey", {
        ...{ "imgs/a.png": [20, 40, 9], "masks/a.png": [20, 40, 0] },
        ...{ "imgs/b.png": [20, 40, 9], "masks/b.png": [20, 40, 0] },
      }),
    };
    const said: string[] = [];
    for (const folder of Object.values(folders))
      said.push((await failure(readFolder(folder, options))).replaceAll(scratch, ""));
    expect(said).toEqual([
      "/none/imgs: is not there: check the path",
      "/few: has 1 pictures: at least one to learn from and one to hold out are needed",
      "/maskless/imgs/b.png: has no mask b.png in /maskless/masks",
      "/sizes/masks/b.png: has 40×10 pixels, and /sizes/imgs/b.png has 40×20: save the mask in the size of its picture",
      "/grey: has masks of one grey: there is nothing to learn",
    ]);
  });
});

describe("pictures", () => {
  it("that are none are refused by name", async () => {
    const path = join(scratch, "noise.png");
    writeFileSync(path, "no image");
    expect(await failure(readPicture(path, { channels: 3 }))).toMatch(
      /noise\.png: cannot be read as an image \(.*unsupported image format/,
    );
    expect(await failure(readPicture(join(scratch, "absent.png"), { channels: 3 }))).toMatch(
      /absent\.png: is not there: check the path/,
    );
  });

  it("that cannot be written are a fault of storage", async () => {
    const path = join(scratch, "nowhere", "mask.png");
    const mask = { height: 1, width: 1, channels: 1, pixels: Uint8Array.of(255) };
    await expect(writePng(path, mask)).rejects.toSatisfy(
      (error) =>
        error instanceof StorageError && error.message.startsWith(`${path} cannot be written`),
    );
  });

  it("are grey or coloured as asked", async () => {
    const path = join(scratch, "tiny.png");
    await writePng(path, { height: 1, width: 2, channels: 1, pixels: Uint8Array.of(7, 200) });
    expect([...(await readPicture(path, { channels: 3 })).pixels]).toEqual([
      7, 7, 7, 200, 200, 200,
    ]);
    expect([...(await readPicture(path, { channels: 1 })).pixels]).toEqual([7, 200]);
  });

  it("lose their transparency, and keep the colours that the file has, in another size too", async () => {
    const opaque = Uint8Array.from({ length: 3 * 64 }, (_, i) => (i * 37) % 251);
    const clear = Uint8Array.from({ length: 4 * 64 }, (_, i) =>
      i % 4 < 3 ? (opaque[3 * Math.floor(i / 4) + (i % 4)] as number) : 0,
    );
    const given = { width: 8, height: 8 };
    const paths = [join(scratch, "opaque.png"), join(scratch, "clear.png")] as const;
    await sharp(opaque, { raw: { ...given, channels: 3 } }).toFile(paths[0]);
    await sharp(clear, { raw: { ...given, channels: 4 } }).toFile(paths[1]);
    for (const scale of [1, 0.5])
      for (const channels of [1, 3]) {
        const [expected, seen] = await Promise.all(
          paths.map((path) => readPicture(path, { channels, scale })),
        );
        expect(seen).toEqual(expected);
      }
  });
});

it("flags of other data are refused", async () => {
  const flags = { seed: 0, data: "earth" };
  await expect(readScenes({ ...flags, canvases: 3 })).rejects.toThrow(
    /--canvases is for --data digits/,
  );
  await expect(readScenes({ ...flags, validation: 3 })).rejects.toThrow(
    /--validation is for folders/,
  );
  await expect(readScenes({ ...flags, data: "digits", scale: 2 })).rejects.toThrow(
    /--scale is for/,
  );
});
