import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DataError } from "@halfstep/data";
import { encode } from "fast-png";
import sharp from "sharp";
import { afterAll, describe, expect, it } from "vitest";
import { baselinesOf } from "../src/baseline.js";
import { classLines } from "../src/class-scores.js";
import { coloursOf } from "../src/colours.js";
import { type FolderOptions, readFolder } from "../src/folder.js";
import { ignored, readMask, writeMask } from "../src/masks.js";
import { type Colour, readPalettePng, writePalettePng } from "../src/palette-png.js";
import { describeClasses } from "../src/scene.js";
import { Confusion } from "../src/scores.js";

const scratch = mkdtempSync(join(tmpdir(), "halfstep-folders-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const size = { width: 8, height: 4 };
const pixels = size.width * size.height;
const picture = await sharp({ create: { ...size, channels: 3, background: "teal" } })
  .png()
  .toBuffer();
/** Columns of classes 0, 1, 2 and of what does not count. */
const columns = Uint8Array.from({ length: pixels }, (_, i) => [0, 1, 2, 255][i % 4] as number);
const greys = encode({ ...size, channels: 1, data: columns });
/** As VOC's: 255 is the edge of things. */
const palette: readonly Colour[] = Array.from({ length: 256 }, (_, i): Colour => {
  return i === 255 ? [224, 224, 192] : [(i * 60) % 256, i, 7];
});
const indexed = writePalettePng({ ...size, indices: columns, palette });
const colours: Readonly<Record<number, Colour>> = {
  ...{ 0: [128, 128, 128], 1: [128, 0, 0], 2: [192, 192, 128], 255: [0, 0, 0] },
};
const coloured = encode({
  ...{ ...size, channels: 3 },
  data: Uint8Array.from(
    [...columns].flatMap((value) => colours[value] as Colour),
    (byte) => byte,
  ),
});

let folders = 0;

/** A folder of these files: masks where the name says so, else pictures or text. */
function folderOf(
  mask: Uint8Array,
  files: readonly (string | readonly [string, string])[],
): string {
  const directory = join(scratch, String(folders++));
  for (const file of files) {
    const [name, content] = typeof file === "string" ? [file, undefined] : file;
    const path = join(directory, name);
    mkdirSync(dirname(path), { recursive: true });
    const isMask = /mask|label|annot|Class/.test(name);
    writeFileSync(path, content ?? (isMask ? mask : picture));
  }
  return directory;
}

const read = (directory: string, options: Partial<FolderOptions> = {}) =>
  readFolder(directory, { scale: 1, validation: 0.5, seed: 0, ...options });

const table = (text: string): string => {
  const path = join(scratch, `table-${folders++}.txt`);
  writeFileSync(path, text);
  return path;
};

describe("folders that their authors have divided", () => {
  const layouts: Readonly<Record<string, readonly (string | readonly [string, string])[]>> = {
    "VOC: lists of names": [
      ...["a", "b", "c", "d"].flatMap((name) => [
        `JPEGImages/${name}.jpg`,
        `SegmentationClass/${name}.png`,
      ]),
      ["ImageSets/Segmentation/train.txt", "a\nb\n"],
      ["ImageSets/Segmentation/val.txt", "c\r\n"],
    ],
    "CamVid: folders beside one another, and _L": [
      ...["train/a.png", "train/b.png", "val/c.png", "test/d.png"],
      ...["train_labels/a_L.png", "train_labels/b_L.png", "val_labels/c_L.png"],
      "test_labels/d_L.png",
    ],
    "SegNet: folders beside one another": [
      ...["train/a.png", "train/b.png", "val/c.png", "trainannot/a.png", "trainannot/b.png"],
      "valannot/c.png",
    ],
    "ADE20K: folders below": [
      ...["images/training/a.jpg", "images/training/b.jpg", "images/validation/c.jpg"],
      ...["annotations/training/a.png", "annotations/training/b.png"],
      "annotations/validation/c.png",
    ],
    "parts of their own": [
      ...["train/imgs/a.png", "train/imgs/b.png", "train/masks/a_mask.png", "train/masks/b.png"],
      ...["valid/imgs/c.png", "valid/masks/c.png"],
    ],
    "paths in lists, with masks behind": [
      ...["imgs/a.png", "imgs/b.png", "imgs/c.png", "masks/a.png", "masks/b.png", "masks/c.png"],
      ["train.txt", "/data/imgs/a.png /data/masks/a.png\nimgs/b.png masks/b.png"],
      ["val.txt", "c"],
    ],
  };
  it.each(Object.entries(layouts))("%s", async (_, files) => {
    const set = await read(folderOf(greys, files), { ignoreLabel: "255" });
    expect(set.train.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(set.heldOut.map(({ name }) => name)).toEqual(["c"]);
    expect(set.classes).toEqual(["grey 0", "grey 1", "grey 2"]);
  });

  it("give the part that is asked for, and name what is missing", async () => {
    const camVid = folderOf(greys, layouts["CamVid: folders beside one another, and _L"] ?? []);
    const test = await read(camVid, { split: "test" });
    expect(test.heldOut.map(({ name }) => name)).toEqual(["d"]);
    const segNet = folderOf(greys, layouts["SegNet: folders beside one another"] ?? []);
    await expect(read(segNet, { split: "test" })).rejects.toThrow(
      `${segNet}: has no part test: there are train and val`,
    );
    const lost = folderOf(greys, ["imgs/a.png", "masks/a.png", ["train.txt", "a\nz"]]);
    await expect(read(lost)).rejects.toThrow(
      `${join(lost, "train.txt")}: names z, and ${join(lost, "imgs")} has no such picture`,
    );
    const whole = folderOf(greys, ["imgs/a.png", "imgs/b.png", "masks/a.png", "masks/b.png"]);
    await expect(read(whole, { split: "val" })).rejects.toThrow("is not divided into parts");
  });
});

describe("pixels that do not count", () => {
  const two = ["imgs/a.png", "imgs/b.png", "masks/a.png", "masks/b.png"];

  it("are no class, in greys, indices and colours", async () => {
    for (const [mask, label, classes] of [
      [greys, "255", ["grey 0", "grey 1", "grey 2"]],
      [indexed, "255", ["index 0", "index 1", "index 2"]],
      [coloured, "#000000", ["#800000", "#808080", "#c0c080"]],
    ] as const) {
      const set = await read(folderOf(mask, two), { ignoreLabel: label });
      expect(set.classes).toEqual(classes);
      const [scene] = set.train;
      expect([...(scene?.labels ?? [])].filter((each) => each === ignored)).toHaveLength(8);
      expect(describeClasses(set)[0]).toContain("(33.3 %)");
    }
  });

  it("are left out of scores", () => {
    const confusion = new Confusion(["a", "b"]);
    confusion.add([0, 1, ignored], [0, 0, 1]);
    expect(confusion.scores()).toMatchObject({ accuracy: 0.5, pixels: [1, 1] });
    expect(classLines(["a", "b"], confusion.scores())).toEqual([
      "class     IoU  of the pixels",
      "a      0.5000        50.00 %",
      "b      0.0000        50.00 %",
    ]);
  });

  it("may be a class of a table, and do not disturb rules of colour", async () => {
    const names = table("128 128 128\tSky\n128 0 0\tBuilding\n192 192 128\tPole\n0 0 0\tVoid\n");
    const set = await read(folderOf(coloured, two), { classes: names, ignoreLabel: "Void" });
    expect(set).toMatchObject({ classes: ["Sky", "Building", "Pole"], ignoredValue: 0 });
    expect(coloursOf(set)).toEqual([colours[0], colours[1], colours[2]]);
    const pair = await read(folderOf(greys, two), {
      ...{ classes: table("ground 0\nroad 1\nwall 2\n"), ignoreLabel: "wall" },
      known: undefined,
    }).catch((error: unknown) => error);
    // 255 is no class of the table.
    expect(pair).toBeInstanceOf(DataError);
    const both = encode({ ...size, channels: 1, data: columns.map((value) => value % 3) });
    const scenes = await read(folderOf(both, two), { ignoreLabel: "2" });
    expect(baselinesOf(scenes)).toHaveLength(4);
  });

  it("have a label that masks can have, or are refused", async () => {
    const folder = folderOf(greys, two);
    await expect(read(folder, { ignoreLabel: "Void" })).rejects.toThrow(
      `${folder}: --ignore-label: "Void" is neither the name of a class nor a number`,
    );
    await expect(read(folderOf(coloured, two), { ignoreLabel: "255" })).rejects.toThrow(
      "a colour such as #000000",
    );
  });
});

describe("masks with a palette", () => {
  const two = ["imgs/a.png", "imgs/b.png", "masks/a.png", "masks/b.png"];

  it("keep it where a table of names, or of values, names their classes", async () => {
    for (const text of ["ground\ncar\ntree\n", "name,value\nground,0\ncar,1\ntree,2\n"]) {
      const options = { classes: table(text), ignoreLabel: "255" };
      const set = await read(folderOf(indexed, two), options);
      expect(set).toMatchObject({ maskKind: "palette", classes: ["ground", "car", "tree"] });
      expect(coloursOf(set)).toEqual(palette.slice(0, 3));
      const path = join(scratch, "written.png");
      const [scene] = set.train;
      if (!scene) throw new Error("there is no scene");
      const labels = scene.labels.map((label) => (label === ignored ? 0 : label));
      await writeMask(path, labels, scene, set);
      expect(readPalettePng(readFileSync(path))).toMatchObject({ indices: labels, palette });
      expect((await readMask(path, 1)).kind).toBe("palette");
    }
  });
});
