import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuRuntime } from "@halfstep/tensor";
import { runApp } from "@halfstep/vitest/run-app";
import { afterAll, expect, it } from "vitest";
import { saveHubModel } from "../src/hub.js";
import { LstmModel } from "../src/lstm-model.js";
import { openLanguageModel } from "../src/saved-model.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-lstm-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("an LSTM of characters learns, is evaluated and goes on with a text", async () => {
  const out = join(folder, "lstm");
  const size = "--arch lstm --layers 1 --width 64 --context 8 --batch-size 16";
  const training = "--lr 1e-2 --warm-up 10 --max-steps 60 --eval-every 60 --eval-characters 1000";
  const trained = await runApp("language-model", [
    "train",
    ...`${size} ${training} --save-every 1000 --out ${out} --json`.split(" "),
  ]);
  expect(trained).toMatchObject({ code: 0 });
  const [run] = JSON.parse(trained.stdout).runs;
  expect(run).toMatchObject({ precision: "float16", steps: 60 });
  // Below the 4.2 bits of single characters; a GPT of these steps and widths has about as many.
  expect(run.test.bitsPerCharacter).toBeLessThan(3.8);
  expect(run.perStep).toMatchObject({ hostWaits: 0, buffersCreated: 0 });

  const written = await runApp("language-model", ["predict", "--model", out, "--length", "5"]);
  expect(written).toMatchObject({ code: 0 });
  expect(written.stdout.trimEnd().length).toBeGreaterThanOrEqual("The ".length);

  const opened = await openLanguageModel(cpuRuntime(), out);
  const { model } = opened;
  expect(model).toBeInstanceOf(LstmModel);
  const parameters = [...model.parameters()].reduce((sum, { size }) => sum + size, 0);
  expect(parameters).toBe(LstmModel.parameterCount((model as LstmModel).config));
  const directory = join(folder, "hub");
  await expect(saveHubModel(directory, opened)).rejects.toThrow("cannot have an LSTM");
  expect(existsSync(directory)).toBe(false);
}, 300_000);
