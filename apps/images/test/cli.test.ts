import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Summary } from "@halfstep/trainer";
import { type Ended, runApp } from "@halfstep/vitest/run-app";
import { afterAll, beforeAll, expect, it } from "vitest";
import { mnistDirectory } from "../src/data.js";
import type { Score } from "../src/evaluate.js";
import { exportFolder } from "../src/export-folder.js";
import type { Prediction } from "../src/predict.js";

const root = mkdtempSync(join(tmpdir(), "halfstep-images-"));
const digits = join(root, "digits");
const out = join(root, "run");
beforeAll(() => exportFolder(mnistDirectory(), digits, { train: 160, test: 50 }));
afterAll(() => rmSync(root, { recursive: true }));

const images = (...flags: readonly string[]): Promise<Ended> => runApp("images", flags);

it("a folder of PNG files: trained in --fp16, evaluated, and asked what images show", async () => {
  const network = ["--arch", "resnet20", "--stem", "imagenet", "--image-size", "28"];
  const schedule = ["--epochs", "2", "-b", "32", "--lr", "0.4", "--warm-up", "1"];
  const trained = await images(
    ...[digits, ...network, ...schedule, "--milestones", "1", "--crop-scale", "0.7", "--no-flip"],
    ...["--fp16", "--static-loss-scale", "128", "--dynamic-loss-scale", "--init-scale", "65536"],
    ...["--eval-every", "2", "--out", out, "--json"],
  );
  expect(trained.stderr).toContain(
    "--dynamic-loss-scale supersedes --static-loss-scale 128, which is ignored",
  );
  expect(trained.code).toBe(0);
  const [run] = (JSON.parse(trained.stdout) as Summary).runs;
  const { accuracy = 0, loss } = run?.test ?? expect.unreachable();
  expect([run?.precision, run?.steps]).toEqual(["O2", 10]);

  expect(readdirSync(out).sort()).toEqual(
    ["checkpoints", "metrics.jsonl", "report.html", "summary.json"].sort(),
  );

  const unnamed = await images("--evaluate", "--out", out);
  expect(unnamed).toMatchObject({ code: 2, stdout: "" });
  expect(unnamed.stderr).toContain(
    `error: ${out} was trained on ${digits}: name the folder that it is to be tested on`,
  );
  const evaluated = await images(digits, "--evaluate", "--out", out, "--json");
  const score = JSON.parse(evaluated.stdout) as Score & { confusion: number[][]; macroF1: number };
  expect(score).toMatchObject({ accuracy, loss, samples: 50 });
  expect(score.classes.reduce((sum, { correct }) => sum + correct, 0)).toBeCloseTo(50 * accuracy);
  expect(score.confusion.map((row, i) => row[i])).toEqual(
    score.classes.map(({ correct }) => correct),
  );
  expect(score.macroF1).toBeGreaterThan(0);

  const files = readdirSync(join(digits, "val", "3")).map((name) => join(digits, "val", "3", name));
  const predicted = await images("predict", ...files, "--model", out, "--half", "--json");
  const { predictions } = JSON.parse(predicted.stdout) as { predictions: Prediction[] };
  const right = predictions.filter(({ classes: [first] }) => first?.name === "3").length;
  expect(right).toBe(score.classes.find(({ name }) => name === "3")?.correct);
  expect(predictions.map(({ file }) => basename(file))).toEqual(
    files.map((file) => basename(file)),
  );
  const metrics = readFileSync(join(out, "metrics.jsonl"), "utf8").trimEnd().split("\n");
  expect(metrics.map((line) => JSON.parse(line)).filter(({ step }) => step === 10)).toHaveLength(2);
});

it("what is wrong is one line, and exit code 2", async () => {
  const [ignored, missing] = await Promise.all([
    images(join(root, "nowhere"), "--opt-level", "O0", "--static-loss-scale", "128"),
    images("predict", "x.png", "--model", join(root, "nowhere")),
  ]);
  expect([ignored.code, missing.code]).toEqual([2, 2]);
  expect(ignored.stderr.trimEnd().split("\n")).toEqual([
    "Warning: --static-loss-scale 128 is ignored, since nothing is float16: add --fp16",
    `error: ${join(root, "nowhere")}: is not there`,
  ]);
  expect(missing.stderr).toContain(`error: ${join(root, "nowhere")} is not there: train first`);
});
