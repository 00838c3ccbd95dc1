import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { GPT } from "@halfstep/models";
import type { Runtime } from "@halfstep/tensor";
import { noteRange, recipeFor } from "@halfstep/trainer";
import {
  noteUnusedScale,
  openRun,
  openRuntime,
  print,
  program,
  type Settings,
  savedSetting,
  say,
  settingsOf,
  UsageError,
} from "@halfstep/trainer/cli";
import { checkpointIn, writePeftAdapter } from "@halfstep/trainer/node";
import type { Sample } from "@halfstep/trainer/report";
import { wittenBell } from "./baseline.js";
import { scoreText } from "./evaluate.js";
import { openHubModel, readHubFolder, saveHubModel } from "./hub.js";
import {
  type EvaluateCommand,
  type ExportCommand,
  type PredictCommand,
  parseOptions,
  type TrainCommand,
} from "./options.js";
import { sampleText } from "./sample.js";
import { type LanguageModel, openAdapters, openLanguageModel } from "./saved-model.js";
import { excerpt, readCorpus } from "./text.js";
import { trainTokenizer } from "./tokenizers/tokenizer.js";
import { epochsOf, samplesPerStep, trainLanguageModel } from "./train.js";

await program(async (args) => {
  const options = parseOptions(args);
  switch (options.command) {
    case "train":
      return await train(options);
    case "evaluate":
      return await evaluate(options);
    case "predict":
      return await predict(options);
    case "export":
      return await exportModel(options);
  }
});

async function train(options: TrainCommand): Promise<number> {
  const corpus = await readCorpus(options);
  const { pretrained } = options;
  const init = pretrained === undefined ? undefined : await readHubFolder(pretrained, options);
  if (init && options.context > init.config.blockSize)
    throw new UsageError(
      `--context ${options.context} is more than the ${init.config.blockSize} tokens that ${pretrained} sees`,
    );
  if (init) {
    say(`weights of ${pretrained}`);
    noteRange(init.weights, recipeFor(options.precision), say);
  }
  const tokenizer = init?.tokenizer ?? trainTokenizer(options.tokenizer, corpus, options.vocabSize);
  noteUnusedScale([options.precision], { staticLossScale: options.staticLossScale }, say);
  using run = await openRun({
    ...options,
    task: "language-model",
    settings: settings(options),
    dataFacts: {
      "the vocabulary with hash": createHash("sha256")
        .update(JSON.stringify(tokenizer.state()))
        .digest("hex")
        .slice(0, 12),
      "training characters": corpus.train.length,
    },
  });
  say(
    `${corpus.name}: ${corpus.train.length} characters and ${corpus.heldOut.length} held out · ${tokenizer.vocabSize} tokens · ${run.described.adapter} · writing to ${options.out}`,
  );
  const tokens = tokenizer.encode(corpus.train);
  const sizes = { ...options, tokens, job: run.job };
  const context = run.follow({
    label: options.precision,
    epochs: epochsOf(sizes),
    steps: options.maxSteps,
    batchSize: samplesPerStep(sizes),
  });
  const samples: Sample[] = [];
  const summary = await trainLanguageModel({
    ...options,
    ...context,
    onSample: (title, text) => samples.push({ title, text }),
    minLr: options.minLr ?? options.lr / 10,
    init,
    tokenizer,
    tokens,
    heldOut: excerpt(corpus.heldOut, options.evalCharacters),
  });
  const lines = samples.map(({ title, text = "" }) => `${title}: ${JSON.stringify(text)}`);
  return run.finish(summary, { lossUnit: "nats", samples, lines: lines.join("\n") });
}

/** Settings that must be the same in a resumed run, by flag. */
function settings(options: TrainCommand): Settings {
  return settingsOf(options, [
    "text",
    "encoding",
    "arch",
    "pretrained",
    "key",
    "lora",
    "loraAlpha",
    "loraTargets",
    "tokenizer",
    "vocabSize",
    "layers",
    "heads",
    "width",
    "context",
    "dropout",
    "bias",
    "precision",
    "maxSteps",
    "batchSize",
    "accumulate",
    "lr",
    "minLr",
    "warmUp",
    "weightDecay",
    "beta2",
    "clip",
    "ema",
    "seed",
    "staticLossScale",
    "initScale",
  ]);
}

async function evaluate(options: EvaluateCommand): Promise<number> {
  if (options.text === undefined) await requireOwnCorpus(options.model);
  const corpus = await readCorpus(options);
  const text = excerpt(corpus.heldOut, options.characters);
  const { runtime, close } = await openRuntime({ ...options, onNote: say });
  const opened = await open(runtime, options);
  const { blockSize } = opened.model.config;
  if (options.stride !== undefined && options.stride > blockSize)
    throw new UsageError(
      `--stride ${options.stride} leaves tokens out: the model sees ${blockSize} at once`,
    );
  const score = await scoreText({ ...options, ...opened, runtime, text });
  close();
  const nGrams =
    options.baseline === 0 ? [] : wittenBell({ ...corpus, heldOut: text }, options.baseline);
  const rows = [
    ...nGrams.map(({ order, bitsPerCharacter }) => ({
      name: `Witten–Bell ${order}-gram`,
      bitsPerCharacter,
    })),
    {
      name: `${opened.model instanceof GPT ? "GPT" : "LSTM"}${opened.step === undefined ? "" : ` after ${opened.step} steps`}, ${opened.precision}`,
      bitsPerCharacter: score.bitsPerCharacter,
    },
  ];
  print(
    options.json
      ? JSON.stringify({ corpus: corpus.name, ...score, model: opened.path, nGrams }, undefined, 2)
      : rows
          .map(({ name, bitsPerCharacter }) => `${bitsPerCharacter.toFixed(3)}  ${name}`)
          .join("\n"),
  );
  return 0;
}

/** @throws UsageError for a model that was trained on another text than the app's, which the app's says nothing about */
async function requireOwnCorpus(model: string): Promise<void> {
  if (existsSync(join(model, "config.json"))) return;
  const trainedOn = savedSetting(await checkpointIn(model), "text");
  if (trainedOn !== undefined)
    throw new UsageError(
      `${model} was trained on ${trainedOn}: name the text that it is to be tested on by --text`,
    );
}

async function predict(options: PredictCommand): Promise<number> {
  if (options.prompt === "") throw new DataError("--prompt", "is empty: give it a character");
  const { runtime, close } = await openRuntime({ ...options, onNote: say });
  const opened = await open(runtime, options);
  const { model, tokenizer, precision } = opened;
  if (options.half) model.store(precision === "bfloat16" ? "bfloat16" : "float16");
  const tokens = await sampleText(runtime, opened, options);
  close();
  const text = tokenizer.decode(tokens);
  print(options.json ? JSON.stringify({ text, tokens, model: opened.path }, undefined, 2) : text);
  return 0;
}

async function exportModel(options: ExportCommand): Promise<number> {
  const { runtime, close } = await openRuntime({ device: "cpu" });
  if (options.adapters) {
    const { lora, base } = await openAdapters(runtime, options.model);
    await writePeftAdapter(options.directory, lora, { taskType: "CAUSAL_LM", base });
    close();
    say(`${options.directory}: adapter_config.json, adapter_model.safetensors`);
    return 0;
  }
  // Weights are float32 in files; `--onnx` names the precision of the ONNX file.
  const opened = await open(runtime, { ...options, precision: "float32" });
  const files = await saveHubModel(options.directory, opened, options);
  close();
  say(`${options.directory}: ${files.join(", ")}`);
  return 0;
}

/** A model of this program's, or one of the hub's GPT-2. */
function open(
  runtime: Runtime,
  { model, precision, peft, key }: Pick<PredictCommand, "model" | "precision" | "peft" | "key">,
): Promise<LanguageModel> {
  if (existsSync(join(model, "config.json")))
    return openHubModel(runtime, model, { precision, peft, key, onNote: say });
  if (peft !== undefined)
    throw new UsageError(
      "--peft is added to a GPT-2 of Hugging Face: name its folder by --pretrained",
    );
  return openLanguageModel(runtime, model, precision);
}
