import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DataError } from "./error.js";
import { imageFolder } from "./image-folder.js";
import { cifar10 } from "./node.js";

let root: string;
const at = (...parts: string[]): string => join(root, ...parts);
const touch = async (...parts: string[]): Promise<void> => {
  await mkdir(at(...parts.slice(0, -1)), { recursive: true });
  await writeFile(at(...parts), "");
};
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "halfstep-folder-"));
  await touch("train", "dog", "2.JPG");
  await touch("train", "dog", "10.png");
  await touch("train", "cat", "deep", "a.webp");
  await touch("train", "cat", "notes.txt");
  await touch("train", "Zebra", "z.jpeg");
  await touch("train", ".hidden", "x.png");
  await touch("train", "readme.md");
  await touch("val", "dog", "1.png");
  await touch("strange", "wolf", "1.png");
  await touch("bare", "dog", "1.txt");
});
afterAll(() => rm(root, { recursive: true }));

describe("an image folder", () => {
  it("lists classes and files by name, and passes over what is no image", async () => {
    const { classes, files, labels } = await imageFolder(at("train"));
    expect(classes).toEqual(["Zebra", "cat", "dog"]);
    expect(files.map((file) => file.slice(at("train").length + 1))).toEqual([
      join("Zebra", "z.jpeg"),
      join("cat", "deep", "a.webp"),
      join("dog", "10.png"),
      join("dog", "2.JPG"),
    ]);
    expect(labels).toEqual(Uint32Array.of(0, 1, 2, 2));
  });

  it("follows links, and takes the labels of classes that are known", async () => {
    await symlink(at("train", "dog"), at("val", "linked"));
    const { labels, files } = await imageFolder(at("val"), { classes: ["cat", "linked", "dog"] });
    expect([...labels]).toEqual([2, 1, 1]);
    expect(files).toHaveLength(3);
  });

  it.each([
    ["missing", "is not there: check the path"],
    [join("train", "Zebra"), "has no folders"],
    ["bare", "has no images (.jpg, .jpeg"],
  ])("%s is refused", async (name, message) => {
    await expect(imageFolder(at(name))).rejects.toThrow(message);
    await expect(imageFolder(at(name))).rejects.toBeInstanceOf(DataError);
  });

  it("of classes that are known some may have no images, but not all", async () => {
    await touch("some", "cat", "1.png");
    await mkdir(at("some", "dog"));
    const { files, labels } = await imageFolder(at("some"), { classes: ["cat", "dog"] });
    expect([files.length, ...labels]).toEqual([1, 0]);
    await expect(imageFolder(at("bare"), { classes: ["dog"] })).rejects.toThrow(
      "bare: has no images",
    );
  });

  it("refuses a class that training has not seen", async () => {
    await expect(imageFolder(at("strange"), { classes: ["cat", "dog"] })).rejects.toThrow(
      `${at("strange", "wolf")}: is a folder of none of the 2 classes`,
    );
  });
});

describe("a folder of CIFAR-10", () => {
  const batch = (label: number, count: number): Uint8Array => {
    const bytes = new Uint8Array(3073 * count);
    for (let i = 0; i < count; i++) bytes[3073 * i] = label;
    return bytes;
  };

  it("has five training batches and a test batch", async () => {
    const folder = at("cifar-10-batches-bin");
    await mkdir(folder);
    for (const i of [1, 2, 3, 4, 5])
      await writeFile(join(folder, `data_batch_${i}.bin`), batch(i, 2));
    await expect(cifar10(folder)).rejects.toThrow("test_batch.bin: is not there");
    await writeFile(join(folder, "test_batch.bin"), batch(6, 1));
    const { train, test } = await cifar10(folder);
    expect([...train.labels]).toEqual([1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    expect([test.count, test.height, test.width, test.channels]).toEqual([1, 32, 32, 3]);
  });
});
