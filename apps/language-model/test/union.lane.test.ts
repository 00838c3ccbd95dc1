import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requestTestDevice } from "@halfstep/device/testing";
import { gpuRuntime, type Runtime } from "@halfstep/tensor";
import { isEvaluation } from "@halfstep/trainer";
import type { Ended } from "@halfstep/vitest/run-app";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { wittenBell } from "../src/baseline.js";
import { scoreText } from "../src/evaluate.js";
import { sampleText } from "../src/sample.js";
import { openLanguageModel } from "../src/saved-model.js";
import { excerpt, readCorpus } from "../src/text.js";
import { languageModel, linesOf } from "./running.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-union-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("a GPT on the State of the Union", { timeout: 300_000 }, () => {
  const out = join(folder, "union");
  let trained: Ended;
  let runtime: Runtime;
  beforeAll(async () => {
    const size = "--layers 2 --heads 4 --width 96 --context 32 --batch-size 16";
    const training = "--lr 4e-3 --warm-up 50 --max-steps 150 --eval-every 75 --save-every 1000";
    trained = await languageModel("train", ...`${size} ${training} --out ${out} --json`.split(" "));
    runtime = gpuRuntime(await requestTestDevice());
  }, 300_000);

  it("beats the bigram on years that it has not seen, in float16", async () => {
    expect(trained).toMatchObject({ code: 0 });
    const [run] = JSON.parse(trained.stdout).runs;
    expect(run).toMatchObject({ precision: "float16", steps: 150 });
    // What the bigram reaches on all of them: see baseline.test.ts.
    expect(run.test.bitsPerCharacter).toBeLessThan(3.36);
    expect(run.skippedSteps).toBeLessThan(5);
    expect(run.perStep).toMatchObject({ hostWaits: 0, buffersCreated: 0, castDispatches: 0 });
  });

  it("shows what it writes before training and after it, in the report", () => {
    const report = readFileSync(join(out, "report.html"), "utf8");
    const texts = [...report.matchAll(/<pre>([^<]*)<\/pre>/g)].map(([, text = ""]) => text);
    expect(texts).toHaveLength(2);
    const [before = "", after = ""] = texts;
    expect(before.slice(0, 20)).toBe(after.slice(0, 20));
    // Words, where there were characters of any kind.
    const letters = (text: string): number => text.replace(/[^a-z ]/g, "").length / text.length;
    expect(letters(after)).toBeGreaterThan(letters(before) + 0.2);
  });

  it("leaves a log of every step and evaluation", () => {
    const lines = linesOf(out);
    const steps = lines.filter((line) => !isEvaluation(line));
    expect(steps.map(({ step }) => step)).toEqual(Array.from({ length: 150 }, (_, i) => i + 1));
    expect(lines.filter(isEvaluation).map(({ step }) => step)).toEqual([75, 150]);
  });

  it("goes on with a text, and the same seed goes on with the same", async () => {
    const flags = ["--prompt", "The state of", "--length", "30", "--seed", "5"];
    const ended = await languageModel("predict", "--model", out, ...flags);
    expect(ended).toMatchObject({ code: 0 });
    expect(ended.stdout).toMatch(/^The state of/);
    const opened = await openLanguageModel(runtime, out);
    const sample = async (seed: number): Promise<string> => {
      const options = { prompt: "The state of", length: 30, temperature: 0.8, seed };
      return opened.tokenizer.decode(await sampleText(runtime, opened, options));
    };
    expect(`${await sample(5)}\n`).toBe(ended.stdout);
    expect(await sample(6)).not.toBe(await sample(5));
  });

  it("is as good in halves, and there too better than counting pairs of characters", async () => {
    const { train, heldOut } = await readCorpus();
    const text = excerpt(heldOut, 4000);
    const score = async (precision: string, half: boolean): Promise<number> => {
      const opened = await openLanguageModel(runtime, out, precision);
      if (half) opened.model.half();
      const scored = await scoreText({ ...opened, runtime, text, batchSize: 32 });
      return scored.bitsPerCharacter;
    };
    const [single, halved] = [await score("float32", false), await score("float16", true)];
    expect(halved).toBeCloseTo(single, 2);
    expect(halved).toBeLessThan(wittenBell({ train, heldOut: text }, 2)[1]?.bitsPerCharacter ?? 0);
  });

  it("refuses a prompt that it cannot read in one line", async () => {
    const ended = await languageModel("predict", "--model", out, "--prompt", "€");
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr.trimEnd().split("\n").at(-1)).toMatch(/^error: "€" is none of the 98/);
  });
});
