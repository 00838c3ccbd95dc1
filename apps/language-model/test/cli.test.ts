import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StateDict } from "@halfstep/nn";
import { cpuRuntime } from "@halfstep/tensor";
import { readCheckpoint } from "@halfstep/trainer/node";
import type { Ended } from "@halfstep/vitest/run-app";
import { afterAll, describe, expect, it } from "vitest";
import { openLanguageModel } from "../src/saved-model.js";
import { languageModel, linesOf } from "./running.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-language-model-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("a GPU trains a small GPT in float16, and writes with it", async () => {
  const out = join(folder, "gpu");
  const size = "--layers 1 --heads 2 --width 16 --context 8 --batch-size 4";
  const training = "--max-steps 20 --warm-up 2 --eval-characters 200 --json";
  const trained = await languageModel("train", ...`${size} ${training} --out ${out}`.split(" "));
  expect(trained, trained.stderr).toMatchObject({ code: 0 });
  const [run] = JSON.parse(trained.stdout).runs;
  expect(run).toMatchObject({ precision: "float16", steps: 20 });
  expect(run.perStep).toMatchObject({ hostWaits: 0, buffersCreated: 0, castDispatches: 0 });
  const flags = ["--model", out, "--prompt", "The state of", "--length", "10"];
  const written = await languageModel("predict", ...flags);
  expect(written, written.stderr).toMatchObject({ code: 0 });
  expect(written.stdout).toMatch(/^The state of.{10}\n$/s);
}, 300_000);

describe("training that goes on", { timeout: 600_000 }, () => {
  const text = join(folder, "verse.txt");
  writeFileSync(text, "Tyger Tyger, burning bright, in the forests of the night; ".repeat(20));
  const flags = [
    ...`--text ${text} --device cpu --tokenizer bpe --vocab-size 280 --layers 1 --heads 2`.split(
      " ",
    ),
    ..."--width 8 --context 8 --batch-size 4 --accumulate 2 --dropout 0.1 --ema 0.9".split(" "),
    ..."--max-steps 6 --warm-up 2 --eval-every 2 --save-every 3 --eval-characters 200".split(" "),
    ..."--tensorboard --json".split(" "),
  ];
  const train = (out: string, ...more: readonly string[]) =>
    languageModel("train", ...flags, "--out", join(folder, out), ...more);
  const hashOf = ({ stdout }: Ended): string => JSON.parse(stdout).runs[0].parameterSha256;

  it("ends with the bits of training that was never stopped, averages and dropout included", async () => {
    const whole = await train("whole");
    expect(whole).toMatchObject({ code: 0 });
    expect(whole.stderr).toMatch(/epoch (\d+)\/\1 · step 6\/6/);
    const checkpoints = join(folder, "whole", "checkpoints");
    const log = linesOf(join(folder, "whole"));
    rmSync(join(checkpoints, "step-00000006"), { recursive: true });
    rmSync(join(checkpoints, "step-00000004"), { recursive: true, force: true });
    const resumed = await train("whole", "--resume", "auto");
    expect(resumed.stderr).toContain("after step 3");
    expect(hashOf(resumed)).toBe(hashOf(whole));
    expect(linesOf(join(folder, "whole"))).toEqual(log);
  });

  it("writes what TensorBoard shows, as --tensorboard asks: every step and evaluation, by each process", () => {
    const events = join(folder, "whole", "tensorboard", "float16");
    const [first = "", second = "", ...more] = readdirSync(events).sort();
    expect(more).toEqual([]);
    const scalars = (file: string, tag: string): number =>
      readFileSync(join(events, file), "latin1").split(tag).length - 1;
    const tags = ["train/loss", "train/lr", "evaluation/bitsPerCharacter"];
    const counts = [first, second].map((file) => tags.map((tag) => scalars(file, tag)));
    expect(counts).toEqual([
      [12, 6, 3],
      [6, 3, 2],
    ]);
  });

  it("is used with the averages of its parameters", async () => {
    const opened = await openLanguageModel(cpuRuntime(), join(folder, "whole"));
    const { parts } = await readCheckpoint(opened.path);
    const name = "transformer.wte.weight";
    const { groups } = parts.ema as {
      groups: readonly { parameters: Record<string, { average: Float32Array }> }[];
    };
    const average = groups.flatMap(({ parameters }) => parameters[name] ?? [])[0]?.average;
    const state = await opened.model.stateDict();
    expect(state[name]?.data).toEqual(average);
    expect(state["lmHead.weight"]?.data).toEqual(average);
    expect((parts.model as StateDict)[name]?.data).not.toEqual(average);
  });

  it("is tested on a text that is named: that of the app is another", async () => {
    const model = join(folder, "whole");
    const unnamed = await languageModel("evaluate", "--model", model, "--device", "cpu");
    expect(unnamed).toMatchObject({
      ...{ code: 2, stdout: "" },
      stderr: `error: ${model} was trained on ${text}: name the text that it is to be tested on by --text\n`,
    });
  });

  it("needs the same flags", async () => {
    const other = await train("whole", "--resume", "auto", "--beta2", "0.95");
    expect(other).toMatchObject({ code: 2 });
    expect(other.stderr).toMatch(/--beta2 0\.99, not 0\.95: go on with the same flags/);
  });
});
