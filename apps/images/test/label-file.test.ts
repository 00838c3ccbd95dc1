import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Summary } from "@halfstep/trainer";
import { type Ended, runApp } from "@halfstep/vitest/run-app";
import sharp from "sharp";
import { afterAll, beforeAll, expect, it } from "vitest";
import { labelledSplits, labelledTest } from "../src/label-file.js";
import type { Prediction } from "../src/predict.js";

const root = mkdtempSync(join(tmpdir(), "halfstep-labels-"));
const folder = join(root, "pictures");
const at = (name: string): string => join(root, name);
const images = (...flags: readonly string[]): Promise<Ended> => runApp("images", flags);
const colours = ["blue", "green", "red"];
const labelsFor = (image: number): readonly string[] =>
  colours.filter((_, i) => (image >> i) % 2 === 1);

/** Pictures of 16 pixels whose channels are bright where they have the label. */
beforeAll(async () => {
  mkdirSync(folder);
  const lines = ["image_name,tags"];
  for (let image = 0; image < 160; image++) {
    const bright = labelsFor(image);
    const pixels = Buffer.alloc(16 * 16 * 3);
    for (let i = 0; i < pixels.length; i++) {
      const colour = ["red", "green", "blue"][i % 3] as string;
      pixels[i] = (bright.includes(colour) ? 180 : 20) + ((7 * i + 13 * image) % 50);
    }
    const raw = { width: 16, height: 16, channels: 3 } as const;
    await sharp(pixels, { raw })
      .png()
      .toFile(join(folder, `p${image}.png`));
    lines.push(`p${image},${bright.join(" ")}`);
  }
  writeFileSync(at("labels.csv"), lines.join("\n"));
});
afterAll(() => rmSync(root, { recursive: true }));

it("images with any number of labels are learnt, tested and predicted by flags alone", async () => {
  const out = at("run");
  const data = ["--labels", at("labels.csv"), "--multi-label"];
  const trained = await images(
    ...[
      folder,
      ...data,
      "--arch",
      "resnet20",
      "--width",
      "8",
      "--image-size",
      "16",
      "--no-augment",
    ],
    ...["--epochs", "6", "-b", "16", "--lr", "0.8", "--warm-up", "1", "--milestones", "5"],
    ...["--class-weights", "balanced", "--label-smoothing", "0.1", "--eval-every", "6"],
    ...["--out", out, "--json"],
  );
  expect(trained.code, trained.stderr).toBe(0);
  const [run] = (JSON.parse(readFileSync(join(out, "summary.json"), "utf8")) as Summary).runs;
  expect(run?.test.microF1).toBeGreaterThan(0.95);
  const evaluated = await images(folder, ...data, "--evaluate", "--out", out, "--json");
  const { microF1, macroF1, samples, labels } = JSON.parse(evaluated.stdout);
  expect({ microF1, macroF1, samples }).toEqual({
    ...{ microF1: run?.test.microF1, macroF1: run?.test.macroF1, samples: 32 },
  });
  expect(labels.map(({ label }: { label: string }) => label)).toEqual(colours);
  const files = [0, 5].map((image) => join(folder, `p${image}.png`));
  const predicted = await images("predict", ...files, "--model", out, "--json");
  const { predictions } = JSON.parse(predicted.stdout) as { predictions: Prediction[] };
  expect(predictions.map(({ classes }) => classes.map(({ name }) => name).sort())).toEqual([
    [],
    ["blue", "red"],
  ]);
});

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
