// A GPT-2 of Hugging Face's files, trained further, as a file that ONNX Runtime continues texts with.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GPT } from "@halfstep/models";
import { InferenceSession, Tensor } from "@halfstep/onnxruntime";
import { cpuRuntime } from "@halfstep/tensor";
import { onnxFile } from "@halfstep/trainer/cli";
import {
  addAdapter,
  CheckpointFolder,
  readPeftAdapter,
  writePeftAdapter,
} from "@halfstep/trainer/node";
import { afterAll, expect, it } from "vitest";
import { openHubModel, readHubFolder, saveHubModel } from "../src/hub.js";
import { LstmModel } from "../src/lstm-model.js";
import { sampleText } from "../src/sample.js";
import { openAdapters, openLanguageModel } from "../src/saved-model.js";
import { learnBytePairs } from "../src/tokenizers/byte-pairs.js";
import { Characters } from "../src/tokenizers/characters.js";
import { Subwords } from "../src/tokenizers/subwords.js";
import { type LanguageRun, trainLanguageModel } from "../src/train.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-onnx-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The likeliest tokens after some, by a file; the whole text so far is its input. */
async function continued(file: string, start: readonly number[], count: number): Promise<number[]> {
  const session = await InferenceSession.create(file, { intraOpNumThreads: 1 });
  const tokens = [...start];
  for (let i = 0; i < count; i++) {
    const ids = new Tensor("int64", BigInt64Array.from(tokens, BigInt), [1, tokens.length]);
    const { logits } = await session.run({ input_ids: ids });
    const [, length = 0, words = 0] = logits?.dims ?? [];
    const scores = Array.from(logits?.data as ArrayLike<number>).slice((length - 1) * words);
    tokens.push(scores.indexOf(Math.max(...scores)));
  }
  await session.release();
  return tokens;
}

const runtime = cpuRuntime();
const text = "the cat sat on the mat; the rat sat on the cat. ".repeat(12);
const tokenizer = new Subwords(learnBytePairs(text, 264));
const prompt = "the rat";
const greedy = { prompt, length: 12, temperature: 0, seed: 1 };

/** Trains a GPT-2 of Hugging Face's files further, whole or by adapters, into a folder of runs. */
async function trained(name: string, lora: Partial<LanguageRun> = {}): Promise<string> {
  const model = new GPT(runtime, {
    ...{ seed: 4, vocabSize: tokenizer.vocabSize, blockSize: 24 },
    ...{ nLayer: 2, nHead: 2, nEmbd: 8, initializerRange: 0.3 },
  });
  const start = join(folder, "start");
  if (!existsSync(start)) await saveHubModel(start, { model, tokenizer });
  const init = await readHubFolder(start);
  const store = new CheckpointFolder(join(folder, name, "checkpoints"));
  await trainLanguageModel({
    ...{ runtime, device: undefined, precision: "float16", tokenizer: init.tokenizer, init },
    tokens: init.tokenizer.encode(text),
    ...{ heldOut: text, layers: 9, heads: 9, width: 9, context: 8, dropout: 0, bias: true },
    ...{ batchSize: 2, accumulate: 1, maxSteps: 20, lr: 2e-2, minLr: 1e-3, warmUp: 0, seed: 1 },
    ...{ weightDecay: 0, beta2: 0.99, clip: 1, evalEvery: 100, ...lora },
    checkpoints: { store, parts: {} },
  });
  return join(folder, name);
}

it.each([
  ["whole", {}],
  ["by adapters, which are merged", { lora: 2, loraTargets: ["c_attn", "c_fc"] }],
] as const)(
  "a GPT-2 trained %s gives the same text in ONNX Runtime, in float32 and with halves",
  async (name, lora) => {
    const run = await trained(name, lora);
    const files = { float32: join(run, "float32"), float16: join(run, "float16") };
    for (const onnx of ["float32", "float16"] as const) {
      const opened = await openLanguageModel(runtime, run, "float32");
      await saveHubModel(files[onnx], opened, { onnx });
      const wanted = await sampleText(runtime, { ...opened, precision: onnx }, greedy);
      const file = join(files[onnx], "model.onnx");
      const found = await continued(file, [...tokenizer.encode(prompt)], 12);
      expect(tokenizer.decode(found)).toBe(tokenizer.decode(wanted));
      expect(new Set(found).size).toBeGreaterThan(3);
    }
    const sizes = [files.float32, files.float16].map((each) =>
      readFileSync(join(each, "model.onnx")),
    );
    expect(sizes[1]?.length).toBeLessThan(sizes[0]?.length ?? 0);
  },
);

it("adapters that are not merged are written beside the frozen weights", async () => {
  const run = await trained("adapters apart", { lora: 3, lr: 0.3 });
  const peft = join(folder, "peft");
  const { lora } = await openAdapters(runtime, run);
  await writePeftAdapter(peft, lora, { taskType: "CAUSAL_LM" });
  const base = await openHubModel(runtime, join(folder, "start"), { onNote: () => {} });
  const plain = await sampleText(runtime, base, greedy);
  addAdapter(base.model, await readPeftAdapter(peft));
  for (const precision of ["float32", "float16"] as const) {
    const bytes = await onnxFile(
      base.model,
      base.model.exampleInputs(),
      { onnx: precision },
      {
        axes: { input_ids: { 0: "batch", 1: "length" } },
        inputNames: ["input_ids"],
        outputNames: ["logits"],
      },
    );
    expect(Buffer.from(bytes).includes("transformer.h.1.attn.cAttn.loraA")).toBe(true);
    const file = join(folder, `${precision}.onnx`);
    writeFileSync(file, bytes);
    const wanted = await sampleText(runtime, { ...base, precision }, greedy);
    const found = await continued(file, [...tokenizer.encode(prompt)], 12);
    expect(tokenizer.decode(found)).toBe(tokenizer.decode(wanted));
    expect(wanted).not.toEqual(plain);
  }
});

it("an LSTM of characters gives the same text in ONNX Runtime", async () => {
  const tokenizer = Characters.of("the cat sat on the mat");
  const sizes = { blockSize: 8, layers: 2, width: 6, dropout: 0, seed: 3 };
  const model = new LstmModel(runtime, { arch: "lstm", vocabSize: tokenizer.vocabSize, ...sizes });
  const directory = join(folder, "lstm");
  await expect(saveHubModel(directory, { model, tokenizer })).rejects.toThrow("--onnx");
  const files = await saveHubModel(directory, { model, tokenizer }, { onnx: "float16" });
  expect(files).toEqual(["tokenizer.json", "tokenizer_config.json", "model.onnx"]);
  const prompt = "the";
  const opened = { model: model.eval(), tokenizer, precision: "float16" };
  const options = { prompt, length: 5, temperature: 0, seed: 1 };
  const wanted = await sampleText(runtime, opened, options);
  const found = await continued(join(directory, "model.onnx"), [...tokenizer.encode(prompt)], 5);
  expect(found).toEqual([...wanted]);
});
