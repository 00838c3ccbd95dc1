import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError, GPT } from "@halfstep/models";
import { readSafetensors } from "@halfstep/safetensors";
import { cpuRuntime, noGrad, type Runtime } from "@halfstep/tensor";
import { CheckpointFolder, writePeftAdapter } from "@halfstep/trainer/node";
import { afterAll, describe, expect, it } from "vitest";
import { scoreText } from "../src/evaluate.js";
import { openHubModel, readHubFolder, saveHubModel } from "../src/hub.js";
import { sampleText } from "../src/sample.js";
import { type LanguageModel, openAdapters, openLanguageModel } from "../src/saved-model.js";
import { learnBytePairs } from "../src/tokenizers/byte-pairs.js";
import { Subwords } from "../src/tokenizers/subwords.js";
import { trainLanguageModel } from "../src/train.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-hub-"));
afterAll(() => rmSync(folder, { recursive: true }));

const tokenizer = new Subwords(
  learnBytePairs("the cat sat on the mat; the rat sat on the cat", 264),
);

const gptOf = (runtime: Runtime): GPT =>
  new GPT(runtime, {
    ...{ seed: 4, vocabSize: tokenizer.vocabSize, blockSize: 12 },
    ...{ nLayer: 2, nHead: 2, nEmbd: 8, initializerRange: 0.3 },
  });

async function saved(name: string): Promise<string> {
  const directory = join(folder, name);
  await saveHubModel(directory, { model: gptOf(cpuRuntime()), tokenizer });
  return directory;
}

const silent = { onNote: () => {} };

describe("a GPT-2 in Hugging Face's files", () => {
  it("is the model that was saved", async () => {
    const directory = await saved("same");
    const runtime = cpuRuntime();
    const ours = gptOf(runtime).eval();
    const opened = await openHubModel(runtime, directory, silent);
    const tokens = runtime.tensor(tokenizer.encode("the rat"), [1, 4]);
    const [expected, actual] = await Promise.all(
      [ours, opened.model].map((model) => noGrad(() => model.forward(tokens)).toArray()),
    );
    expect(actual).toEqual(expected);
    const options = { prompt: "the", length: 8, temperature: 1, seed: 2 };
    const text = opened.tokenizer.decode(await sampleText(runtime, opened, options));
    expect(text).toMatch(/^the/);
  });

  it("has transformers' names and layouts, the tied head once", async () => {
    const { tensors } = readSafetensors(
      readFileSync(join(await saved("names"), "model.safetensors")),
    );
    const shapes = Object.entries(tensors).map(([name, { shape }]) => `${name} [${shape}]`);
    expect(shapes).toContain("transformer.wte.weight [264,8]");
    expect(shapes).toContain("transformer.h.1.attn.c_attn.weight [8,24]");
    expect(shapes).toContain("transformer.h.0.mlp.c_proj.bias [8]");
    expect(shapes).toContain("transformer.ln_f.weight [8]");
    expect(shapes.some((line) => line.startsWith("lm_head"))).toBe(false);
  });

  it("is read in 16 bits with a warning where they do not hold it", async () => {
    const runtime = cpuRuntime();
    const model = gptOf(runtime);
    const norm = model.transformer.lnF.weight;
    norm?.assign(runtime.tensor(new Float32Array(8).fill(1e5)));
    const directory = join(folder, "large");
    await saveHubModel(directory, { model, tokenizer });
    const notes: string[] = [];
    const onNote = (line: string) => notes.push(line);
    await openHubModel(runtime, directory, { precision: "bfloat16", onNote });
    expect(notes).toEqual([]);
    await openHubModel(runtime, directory, { precision: "float16", onNote });
    expect(notes).toHaveLength(1);
    expect(notes[0]).toMatch(/^transformer\.ln_f\.weight: 8 of 8 elements are beyond float16/);
  });

  it("may have GPT-2's vocab.json and merges.txt for a tokenizer, and weights of torch's name", async () => {
    const directory = await saved("older");
    const at = (name: string): string => join(directory, name);
    const { model } = JSON.parse(readFileSync(at("tokenizer.json"), "utf8"));
    writeFileSync(at("vocab.json"), JSON.stringify(model.vocab));
    const lines = model.merges.map((pair: readonly string[]) => pair.join(" "));
    writeFileSync(at("merges.txt"), ["#version: 0.2", ...lines, ""].join("\n"));
    rmSync(at("tokenizer.json"));
    renameSync(at("model.safetensors"), at("pytorch_model.bin"));
    const opened = await openHubModel(cpuRuntime(), directory, silent);
    const text = "the cat sat on a hat";
    expect(opened.tokenizer.encode(text)).toEqual(tokenizer.encode(text));
    writeFileSync(at("merges.txt"), "t zz\n");
    await expect(openHubModel(cpuRuntime(), directory, silent)).rejects.toThrow(
      'merges.txt: merges "t zz", which is not in its vocab',
    );
  });

  it("is trained further, whole or by adapters, with its own tokenizer and sizes", async () => {
    const directory = await saved("further");
    const init = await readHubFolder(directory);
    const runtime = cpuRuntime();
    const text = "the cat sat on the mat; the rat sat on the cat. ".repeat(12);
    const scoreOf = ({ model }: Pick<LanguageModel, "model">) =>
      scoreText({ runtime, model, tokenizer, precision: "float32", text, batchSize: 2 });
    const before = await scoreOf(await openHubModel(runtime, directory, silent));
    const run = {
      ...{ runtime, device: undefined, precision: "float32", tokenizer: init.tokenizer, init },
      tokens: init.tokenizer.encode(text),
      ...{ heldOut: text, layers: 9, heads: 9, width: 9, context: 8, dropout: 0, bias: true },
      ...{ batchSize: 2, accumulate: 1, maxSteps: 15, lr: 1e-2, minLr: 1e-3, warmUp: 0, seed: 1 },
      ...{ weightDecay: 0, beta2: 0.99, clip: 1, evalEvery: 100 },
    };
    const kept = new CheckpointFolder(join(folder, "whole", "checkpoints"));
    const whole = await trainLanguageModel({ ...run, checkpoints: { store: kept, parts: {} } });
    expect(whole?.test.bitsPerCharacter).toBeLessThan(0.8 * before.bitsPerCharacter);

    const store = new CheckpointFolder(join(folder, "adapters", "checkpoints"));
    const adapters = { lora: 2, loraAlpha: 4, loraTargets: ["c_attn", "c_fc"] };
    const checkpoints = { store, parts: {} };
    const adapted = await trainLanguageModel({ ...run, ...adapters, lr: 0.05, checkpoints });
    const { bitsPerCharacter = 0 } = adapted?.test ?? {};
    expect(bitsPerCharacter).toBeLessThan(0.9 * before.bitsPerCharacter);
    expect(adapted?.parameterBytes).toBeLessThan((whole?.parameterBytes ?? 0) / 2);
    expect(adapted?.optimizerBytes).toBe(2 * (adapted?.parameterBytes ?? 0));
    // Merged into the weights.
    const opened = await openLanguageModel(runtime, join(folder, "adapters"));
    expect((await scoreOf(opened)).bitsPerCharacter).toBeCloseTo(bitsPerCharacter, 5);

    // Written for PEFT, and added to the model that they were trained on.
    const peft = join(folder, "peft");
    const { lora, base } = await openAdapters(runtime, join(folder, "adapters"));
    expect(base).toBe(directory);
    await writePeftAdapter(peft, lora, { taskType: "CAUSAL_LM", base });
    const again = await openHubModel(runtime, directory, { ...silent, peft });
    expect((await scoreOf(again)).bitsPerCharacter).toBeCloseTo(bitsPerCharacter, 5);
    await expect(openAdapters(runtime, join(folder, "whole"))).rejects.toThrow(
      "has no adapters: it was trained whole",
    );
  });

  it.each([
    [{ model_type: "llama" }, /"llama": only "gpt2" is supported/],
    [{ n_layer: 0 }, /has n_layer 0/],
    [{ activation_function: "mish" }, /has activation_function "mish"/],
  ])("with %o is refused in a line", async (changes, message) => {
    const directory = await saved("refused");
    const path = join(directory, "config.json");
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...changes }));
    const opening = openHubModel(cpuRuntime(), directory, silent);
    await expect(opening).rejects.toThrow(message);
    await expect(opening).rejects.toBeInstanceOf(ConfigError);
  });
});
