// A GPT-2 of Hugging Face's files, trained further, as a file that ONNX Runtime continues texts with.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GPT } from "@halfstep/models";
import { InferenceSession, Tensor } from "@halfstep/onnxruntime";
import { cpuRuntime } from "@halfstep/tensor";
import { CheckpointFolder } from "@halfstep/trainer/node";
import { afterAll, expect, it } from "vitest";
import { readHubFolder, saveHubModel } from "../src/hub.js";
import { LstmModel } from "../src/lstm-model.js";
import { sampleText } from "../src/sample.js";
import { openLanguageModel } from "../src/saved-model.js";
import { learnBytePairs } from "../src/tokenizers/byte-pairs.js";
import { Characters } from "../src/tokenizers/characters.js";
import { Subwords } from "../src/tokenizers/subwords.js";
import { trainLanguageModel } from "../src/train.js";

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

it("a trained GPT-2 gives the same text in ONNX Runtime, in float32 and with halves", async () => {
  const runtime = cpuRuntime();
  const text = "the cat sat on the mat; the rat sat on the cat. ".repeat(12);
  const tokenizer = new Subwords(learnBytePairs(text, 264));
  const model = new GPT(runtime, {
    ...{ seed: 4, vocabSize: tokenizer.vocabSize, blockSize: 24 },
    ...{ nLayer: 2, nHead: 2, nEmbd: 8, initializerRange: 0.3 },
  });
  const start = join(folder, "start");
  await saveHubModel(start, { model, tokenizer });
  const init = await readHubFolder(start);
  const store = new CheckpointFolder(join(folder, "run", "checkpoints"));
  await trainLanguageModel({
    ...{ runtime, device: undefined, precision: "float16", tokenizer: init.tokenizer, init },
    ...{ text, heldOut: text, layers: 9, heads: 9, width: 9, context: 8, dropout: 0, bias: true },
    ...{ batchSize: 2, accumulate: 1, maxSteps: 20, lr: 2e-2, minLr: 1e-3, warmUp: 0, seed: 1 },
    ...{ weightDecay: 0, beta2: 0.99, clip: 1, evalEvery: 100 },
    checkpoints: { store, parts: {} },
  });
  for (const onnx of ["float32", "float16"] as const) {
    const opened = await openLanguageModel(runtime, join(folder, "run"), "float32");
    const directory = join(folder, onnx);
    await saveHubModel(directory, opened, { onnx });
    const prompt = "the rat";
    const options = { prompt, length: 12, temperature: 0, seed: 1 };
    const wanted = await sampleText(runtime, { ...opened, precision: onnx }, options);
    const file = join(directory, "model.onnx");
    const found = await continued(file, [...tokenizer.encode(prompt)], 12);
    expect(tokenizer.decode(found)).toBe(tokenizer.decode(wanted));
    expect(new Set(found).size).toBeGreaterThan(3);
  }
  const sizes = ["float32", "float16"].map((each) =>
    readFileSync(join(folder, each, "model.onnx")),
  );
  expect(sizes[1]?.length).toBeLessThan(sizes[0]?.length ?? 0);
});

it("an LSTM of characters gives the same text in ONNX Runtime", async () => {
  const runtime = cpuRuntime();
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
