import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Summary } from "@halfstep/trainer";
import { type Ended, runApp } from "@halfstep/vitest/run-app";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Prediction } from "../src/predict.js";
import { colours, coloursOf, makePictures } from "./pictures.js";

const root = mkdtempSync(join(tmpdir(), "halfstep-labels-"));
const folder = join(root, "pictures");
const at = (name: string): string => join(root, name);
const images = (...flags: readonly string[]): Promise<Ended> => runApp("images", flags);

beforeAll(async () => {
  await makePictures(folder, 160);
  const lines = Array.from({ length: 160 }, (_, i) => `p${i},${coloursOf(i).join(" ")}`);
  writeFileSync(at("labels.csv"), ["image_name,tags", ...lines].join("\n"));
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
