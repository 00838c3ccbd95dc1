import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { type Ended, runApp } from "@halfstep/vitest/run-app";
import { afterAll, beforeAll, expect, it } from "vitest";
import { labelledSplits, labelledTest } from "../src/label-file.js";
import { makePictures } from "./pictures.js";

const root = mkdtempSync(join(tmpdir(), "halfstep-labels-"));
const folder = join(root, "pictures");
const at = (name: string): string => join(root, name);
const images = (...flags: readonly string[]): Promise<Ended> => runApp("images", flags);

beforeAll(() => makePictures(folder, 3));
afterAll(() => rmSync(root, { recursive: true }));

it("labels stand between bars, commas or spaces, or in columns", async () => {
  const read = async (text: string, labelColumn?: string) => {
    writeFileSync(at("own.tsv"), text);
    const classes = ["a b", "c"];
    const { files, labels, sets } = await labelledTest(
      folder,
      { testLabels: at("own.tsv"), labelColumn },
      classes,
    );
    return files.map((_, i) => [...(sets[labels[i] as number] as Uint8Array)]);
  };
  const expected = [
    [1, 1],
    [0, 0],
    [1, 0],
  ];
  expect(await read("f\tl\np0.png\ta b|c\np1\t\np2\ta b")).toEqual(expected);
  expect(await read("f\tl\np0\tc, a b\np1\t\np2\ta b")).toEqual(expected);
  expect(await read("f\ta b\tx\tc\np0\t1\t9\t1\np1\t-1\t9\t0\np2\t1\t9\t-1", "a b,c")).toEqual(
    expected,
  );
});

it("names lack the endings of their files, in capitals too", async () => {
  const endings = [".jpg", ".JPEG", ".PNG", ".webp", ".avif", ".gif", ".tif", ".TIFF"];
  const directory = at("endings");
  mkdirSync(directory);
  for (const [i, ending] of endings.entries()) writeFileSync(join(directory, `i${i}${ending}`), "");
  const lines = endings.map((_, i) => `i${i},a`);
  writeFileSync(at("endings.csv"), ["f,l", ...lines].join("\n"));
  const { files } = await labelledTest(directory, { testLabels: at("endings.csv") }, ["a", "b"]);
  expect(files.map((file) => extname(file))).toEqual(endings);
});

it("files that are wrong are refused by line, and flags in a line with exit code 2", async () => {
  const refused = async (text: string, flags = {}): Promise<string> => {
    writeFileSync(at("wrong.csv"), text);
    const failure = labelledSplits(folder, { labels: at("wrong.csv"), ...flags });
    return failure.then(
      () => "taken",
      (error: Error) => error.message.replace(at("wrong.csv"), "FILE").replace(folder, "DIR"),
    );
  };
  expect(await refused("f,l\np0,a\nlost.png,b")).toMatch(
    /^FILE: line 3 has the image "lost.png", which is not in DIR/,
  );
  expect(await refused("f,l\np0,a", { labelColumn: "tags" })).toBe(
    'FILE: has no column "tags" for --label-column: it has 2 (f, l)',
  );
  expect(await refused("f,l\np0,\np1,")).toMatch(/^FILE: has 0 labels, and two or more are wanted/);
  expect(await refused("f,l\np0,a\np0,b")).toMatch(/^FILE: line 3 has p0 again/);
  expect(await refused("f,a,b\np0,1,2", { labelColumn: "a,b" })).toMatch(
    /^FILE: line 2 has "2" in the column b/,
  );
  const [lost, bare] = await Promise.all([
    images(folder, "--labels", at("lost.csv"), "--multi-label"),
    images(folder, "--label-column", "tags"),
  ]);
  expect([lost.code, bare.code]).toEqual([2, 2]);
  expect(bare.stderr.trimEnd().split("\n").at(-1)).toContain("name it by --labels");
});
