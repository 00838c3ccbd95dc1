import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { DataError } from "@halfstep/data";
import { encode } from "fast-png";
import sharp from "sharp";
import { afterAll, describe, expect, it } from "vitest";
import { readClassTable } from "../src/class-table.js";
import { readFolder } from "../src/folder.js";
import { readMask, writeMask } from "../src/masks.js";
import { type Colour, readPalettePng, writePalettePng } from "../src/palette-png.js";
import { describeClasses } from "../src/scene.js";

const scratch = mkdtempSync(join(tmpdir(), "halfstep-masks-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const size = { width: 32, height: 20 };
const pixels = size.width * size.height;
/** 32 colours, two of which have the same luminance: what CamVid's masks are like. */
const colours: readonly Colour[] = Array.from({ length: 32 }, (_, i): Colour => {
  if (i === 31) return [76, 76, 76];
  return i === 30 ? [255, 0, 0] : [(i * 53) % 256, (i * 97) % 256, (i * 151) % 256];
});
/** The class of each pixel: all 32, in columns. */
const labels = Uint8Array.from({ length: pixels }, (_, i) => i % 32);
const coloured = encode({
  ...{ ...size, channels: 3 },
  data: Uint8Array.from({ length: 3 * pixels }, (_, i) => {
    return (colours[labels[Math.floor(i / 3)] as number] as Colour)[i % 3] as number;
  }),
});

/** A folder of two pictures, and these masks. */
async function folderOf(name: string, ...masks: readonly Uint8Array[]): Promise<string> {
  const directory = join(scratch, name);
  for (const each of ["imgs", "masks"]) mkdirSync(join(directory, each), { recursive: true });
  for (const i of [0, 1]) {
    await sharp({ create: { ...size, channels: 3, background: "teal" } }).toFile(
      join(directory, "imgs", `${i}.png`),
    );
    writeFileSync(join(directory, "masks", `${i}.png`), masks[i % masks.length] as Uint8Array);
  }
  return directory;
}

const read = (directory: string, classes?: string) =>
  readFolder(directory, { scale: 1, validation: 0.5, seed: 0, classes });

/** The masks of a set, written and read again. */
async function written(set: Awaited<ReturnType<typeof read>>) {
  const path = join(scratch, "written.png");
  const [scene] = set.train;
  if (!scene) throw new Error("there is no scene");
  await writeMask(path, scene.labels, scene, set);
  return { bytes: readFileSync(path), ...(await readMask(path, 1)) };
}

describe("masks of colours", () => {
  it("have a class for each colour, also where their greys are the same, and are written as they were", async () => {
    const set = await read(await folderOf("colours", coloured));
    expect([set.maskKind, set.classes.length]).toEqual(["colour", 32]);
    expect(set.classes).toContain("#ff0000");
    expect(set.classes).toContain("#4c4c4c");
    expect((await written(set)).values).toEqual(
      (await readMask(join(scratch, "colours/masks/0.png"), 1)).values,
    );
    expect(describeClasses(set)[0]).toContain("#000000 (3.1 %)");
    expect(describeClasses(set)[0]).toContain("… 20 more");
  });

  it("take names and order from a table, which every colour must be in", async () => {
    const folder = await folderOf("table", coloured);
    const table = join(scratch, "class_dict.csv");
    const rows = colours.map(
      (colour, i) => `Thing ${String.fromCharCode(65 + i)},${colour.join()}`,
    );
    writeFileSync(table, ["name,r,g,b", ...rows, ""].join("\r\n"));
    const set = await read(folder, table);
    expect(set.classes[0]).toBe("Thing A");
    expect(set.train[0]?.labels).toEqual(labels);
    writeFileSync(table, rows.slice(0, -1).join("\n"));
    await expect(read(folder, table)).rejects.toThrow(
      /masks\/[01]\.png: has #4c4c4c at column 31 of row 0, which is none of the 31 classes$/,
    );
  });
});

describe("masks with a palette", () => {
  const palette: readonly Colour[] = [
    [0, 0, 0],
    [200, 0, 0],
    [200, 0, 0],
    [0, 9, 0],
  ];
  const indices = Uint8Array.from({ length: pixels }, (_, i) => i % 3);
  const indexed = writePalettePng({ ...size, indices, palette });

  it("are read by index, also where colours are the same, and written with that palette", async () => {
    const set = await read(await folderOf("palette", indexed));
    expect(set).toMatchObject({ maskKind: "palette", classes: ["index 0", "index 1", "index 2"] });
    expect(set.train[0]?.labels).toEqual(indices);
    const { bytes } = await written(set);
    expect(readPalettePng(bytes)).toEqual({ ...size, indices, palette });
  });

  it("of 1, 2 and 4 bits are unpacked", async () => {
    for (const depth of [1, 2, 4]) {
      const few = Uint8Array.from({ length: 5 * 3 }, (_, i) => (i * 7) % 2 ** depth);
      const bytes = packed(few, { width: 5, height: 3 }, depth);
      expect(readPalettePng(bytes)?.indices, `${depth} bits`).toEqual(few);
    }
  });

  it("that name other colours by the same index are read by colour", async () => {
    const swapped = writePalettePng({
      ...size,
      indices: indices.map((i) => 2 - i),
      palette: [
        [200, 0, 0],
        [200, 0, 0],
        [0, 0, 0],
      ],
    });
    const set = await read(await folderOf("swapped", indexed, swapped));
    expect(set).toMatchObject({ maskKind: "colour", classes: ["#000000", "#c80000"] });
    expect(set.train[0]?.labels).toEqual(set.heldOut[0]?.labels);
  });

  it("are refused beside grey ones, unless a table says what their values mean", async () => {
    const grey = encode({ ...size, channels: 1, data: indices });
    const folder = await folderOf("mixed", indexed, grey);
    const [first, second] = [0, 1].map((i) => join(folder, "masks", `${i}.png`));
    await expect(read(folder)).rejects.toThrow(
      `${folder}: has masks with a palette (${first}) and grey masks (${second}), whose values mean different things: save all in one way, or name the classes with --classes FILE`,
    );
    const table = join(scratch, "mixed.txt");
    writeFileSync(table, "ground 0\nroad 1\ncar 2\n");
    const set = await read(folder, table);
    expect(set.train[0]?.labels).toEqual(indices);
    expect(set.heldOut[0]?.labels).toEqual(indices);
    // A mask of nothing but black is no grey one among colours.
    const black = encode({ ...size, channels: 3, data: new Uint8Array(3 * pixels) });
    expect((await read(await folderOf("black", coloured, black))).maskKind).toBe("colour");
  });
});

describe("scaled masks", () => {
  const odd = { width: 70, height: 53 };
  const scaledFolder = async (name: string, mask: typeof odd, at: readonly [number, number]) => {
    const data = new Uint8Array(mask.width * mask.height);
    for (let i = 0; i < data.length; i++) data[i] = (i >> 2) % 2;
    data[at[1] * mask.width + at[0]] = 9;
    const folder = await folderOf(name, encode({ ...mask, channels: 1, data }));
    for (const i of [0, 1])
      await sharp({ create: { ...odd, channels: 3, background: "teal" } }).toFile(
        join(folder, "imgs", `${i}.png`),
      );
    const table = join(scratch, `${name}.txt`);
    writeFileSync(table, "a 0\nb 1\n");
    return { folder, options: { scale: 0.5, validation: 0.5, seed: 0, classes: table } };
  };

  it("have what is wrong at its place in the file", async () => {
    // Half of 70×53 is 35×27, which takes columns 1, 3, 5 … and rows 0, 2, 4 …
    for (const at of [
      [1, 0],
      [41, 26],
      [69, 52],
    ] as const) {
      const { folder, options } = await scaledFolder(`place-${at.join("-")}`, odd, at);
      await expect(readFolder(folder, options)).rejects.toThrow(
        `has 9 at column ${at[0]} of row ${at[1]}, which is none of the 2 classes`,
      );
    }
  });

  it("have the size of their pictures before scaling", async () => {
    const { folder, options } = await scaledFolder("larger", { width: 70, height: 54 }, [0, 0]);
    await expect(readFolder(folder, options)).rejects.toThrow(
      /masks\/[01]\.png: has 70×54 pixels, and .*imgs\/[01]\.png has 70×53: save the mask in the size/,
    );
  });

  it("are of scenes that know their files", async () => {
    const { folder, options } = await scaledFolder("known", odd, [0, 1]);
    const { train } = await readFolder(folder, options);
    const file = { path: expect.stringMatching(/imgs\/[01]\.png$/), scale: 0.5, ...odd };
    expect(train[0]).toMatchObject({ width: 35, height: 27, file });
  });
});

describe("masks of greys", () => {
  it("of 16 bits keep classes apart that differ in the last", async () => {
    const deep = encode({
      ...{ ...size, channels: 1, depth: 16 },
      data: Uint16Array.from({ length: pixels }, (_, i) => 1000 + (i % 3)),
    });
    const set = await read(await folderOf("deep", deep));
    expect(set).toMatchObject({ maskKind: "grey", maskValues: [1000, 1001, 1002] });
    expect([...(await written(set)).values.subarray(0, 3)]).toEqual([1000, 1001, 1002]);
  });

  it("that smooth edges or JPEG have made are refused, and tables that say nothing", async () => {
    const smooth = encode({
      ...{ ...size, channels: 1 },
      data: Uint8Array.from({ length: pixels }, (_, i) => i % 200),
    });
    await expect(read(await folderOf("smooth", smooth))).rejects.toThrow(
      /smooth: has masks of 200 greys, where at most 64 are taken for classes: .* --classes FILE$/,
    );
    const jpeg = await sharp(coloured).jpeg().toBuffer();
    await expect(read(await folderOf("jpeg", jpeg))).rejects.toThrow("is a JPEG, whose noise");
    const folder = await folderOf("grey", encode({ ...size, channels: 1, data: labels }));
    const table = join(scratch, "table.txt");
    for (const [content, message] of [
      ["", "has 0 classes"],
      ["a,1", "has 1 classes"],
      ["a,1\nb,1", "line 2: 1 is there already"],
      ["a,1\na,2", "line 2: a is there already"],
      ["a,1\nb,1,2,3", "line 2: is neither"],
      ["a,1,2\nb,1,2", "line 1: is neither"],
      ["a,0,0,0\nb,0,0,256", "line 2: numbers are whole and from 0 to 255"],
      ["a,0\nb,-1", "line 2: numbers are whole"],
      ["\0\0\0", "has 0 classes"],
    ] as const) {
      writeFileSync(table, content);
      const error = await readClassTable(table).catch((thrown: unknown) => thrown);
      expect(error, content).toBeInstanceOf(DataError);
      expect((error as Error).message).toContain(`${table}: ${message}`);
    }
    writeFileSync(
      table,
      Array.from(labels.subarray(0, 32), (value) => `${value}\tc${"x".repeat(value)}`).join("\n"),
    );
    expect((await read(folder, table)).train[0]?.labels).toEqual(labels);
  });
});

it("masks that are none, cut off, or bombs are refused by name in a line", async () => {
  const good = writePalettePng({ ...size, indices: labels, palette: colours });
  const path = join(scratch, "hostile.png");
  const bomb = chunk("IDAT", deflateSync(Buffer.alloc(2 ** 24)));
  const profile = chunk(
    "iCCP",
    Buffer.concat([Buffer.from("x\0\0"), deflateSync(Buffer.alloc(2 ** 24))]),
  );
  const announced = Buffer.from(good);
  announced.writeUInt32BE(2 ** 20, 16);
  announced.writeUInt32BE(2 ** 20, 20);
  announced.writeUInt32BE(crc32(announced.subarray(12, 29)), 29);
  const shortPalette = writePalettePng({ ...size, indices: labels, palette: colours.slice(0, 9) });
  const hostile: readonly Uint8Array[] = [
    ...Array.from({ length: 12 }, (_, i) =>
      good.subarray(0, Math.floor((i * (good.length - 12)) / 12)),
    ),
    Buffer.concat([good.subarray(0, 33), bomb, good.subarray(33)]),
    ...[announced, shortPalette],
    Buffer.concat([good.subarray(0, 20), Buffer.from("junk"), good.subarray(24)]),
  ];
  for (const [i, bytes] of hostile.entries()) {
    writeFileSync(path, bytes);
    const error = await readMask(path, 1).catch((thrown: unknown) => thrown);
    expect(error, `${i}`).toBeInstanceOf(DataError);
    expect((error as Error).message.startsWith(path), `${i}`).toBe(true);
    expect((error as Error).message).not.toContain("\n");
  }
  // What is no part of the picture is not inflated.
  expect(
    readPalettePng(Buffer.concat([good.subarray(0, 33), profile, good.subarray(33)]))?.indices,
  ).toEqual(labels);
});

function chunk(type: string, data: Uint8Array): Buffer {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length);
  bytes.write(type, 4, "latin1");
  bytes.set(data, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length);
  return bytes;
}

/** A PNG of few bits a pixel, its rows unfiltered. */
function packed(indices: Uint8Array, { width, height }: typeof size, depth: number): Buffer {
  const row = Math.ceil((width * depth) / 8) + 1;
  const data = Buffer.alloc(row * height);
  for (const [i, index] of indices.entries()) {
    const bit = (i % width) * depth;
    const at = Math.floor(i / width) * row + 1 + (bit >> 3);
    data[at] = (data[at] as number) | (index << (8 - depth - (bit & 7)));
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width);
  header.writeUInt32BE(height, 4);
  header.set([depth, 3], 8);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", header),
    chunk("PLTE", Buffer.alloc(3 * 2 ** depth, 7)),
    chunk("IDAT", deflateSync(data)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}
