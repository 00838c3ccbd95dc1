// Folders of models in the format of Hugging Face, with a hostile file in place of one.
import { readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openHubModel, saveHubModel } from "../../apps/language-model/src/hub.ts";
import { learnBytePairs } from "../../apps/language-model/src/tokenizers/byte-pairs.ts";
import { Subwords } from "../../apps/language-model/src/tokenizers/subwords.ts";
import { openModel, saveModel } from "../../apps/text/src/model-folder.ts";
import { smallShape } from "../../apps/text/src/model-shape.ts";
import { BertTokenizer } from "../../apps/text/src/tokenizer.ts";
import { specialTokens } from "../../apps/text/src/vocabulary.ts";
import { BertForSequenceClassification, GPT } from "../../packages/models/src/index.ts";
import { cpuRuntime } from "../../packages/tensor/src/index.ts";
import { hostileFields, hostileJson, hostileValues } from "../../tooling/vitest/hostile.js";
import { writeWhole } from "../whole-file.mjs";
import { contents, texts } from "./contents.mjs";

const runtime = cpuRuntime();
const subwords = new Subwords(learnBytePairs("the cat sat on the mat; the cat", 260));
const wordPieces = new BertTokenizer([...specialTokens, "good", "bad"]);

async function saveGpt(folder) {
  const size = { vocabSize: subwords.vocabSize, blockSize: 4, nLayer: 1, nHead: 2, nEmbd: 4 };
  await saveHubModel(folder, {
    model: new GPT(runtime, { seed: 1, ...size }),
    tokenizer: subwords,
  });
}

/** With the two files of a tokenizer that GPT-2 was published with. */
async function saveOlderGpt(folder) {
  await saveGpt(folder);
  const at = (name) => join(folder, name);
  const { model } = JSON.parse(readFileSync(at("tokenizer.json"), "utf8"));
  writeWhole(at("vocab.json"), JSON.stringify(model.vocab));
  const lines = model.merges.map((pair) => pair.join(" "));
  writeWhole(at("merges.txt"), ["#version: 0.2", ...lines, ""].join("\n"));
  rmSync(at("tokenizer.json"));
  renameSync(at("model.safetensors"), at("pytorch_model.bin"));
}

async function saveBert(folder) {
  const shape = smallShape({
    ...{ vocabulary: wordPieces.vocabulary, hiddenSize: 4, layers: 1, heads: 2 },
    ...{ maxLength: 8, dropout: 0 },
  });
  const model = new BertForSequenceClassification(runtime, { ...shape, seed: 1 });
  const purpose = {
    ...{ task: "spam", labels: ["ham", "spam"], maxLength: 8, bag: false, crf: false },
    ...{ mailPart: "body", words: 60, corpus: "brown", fold: 0 },
  };
  await saveModel(folder, model, shape, { tokenizer: wordPieces }, purpose);
}

const readGpt = (path) => openHubModel(runtime, join(path, ".."), { onNote: () => {} });
const readBert = (path) => openModel(join(path, ".."));

const jsonOf = (value) => new TextEncoder().encode(hostileJson(value));

/** A JSON file with each of its fields wrong in each way, and other contents. */
const fieldsOf = (fields) => (original) => {
  const json = JSON.parse(new TextDecoder().decode(original));
  const changed = [...hostileFields(json, fields)].map(({ field, kind, config }) => ({
    name: `${field} ${kind}`,
    bytes: jsonOf(config),
  }));
  return [...contents, ...changed];
};

/** The JSON of a tokenizer. An object stands for the vocabulary, and one without merges is of bytes. */
function tokenizerFiles(original) {
  const json = JSON.parse(new TextDecoder().decode(original));
  const files = [...contents];
  const add = (name, model) => files.push({ name, bytes: jsonOf({ ...json, model }) });
  for (const { field, kind, config } of hostileFields(json.model, ["type", "vocab", "merges"]))
    if (field !== "merges" || kind !== "an empty list") add(`${field} ${kind}`, config);
  for (const [kind, id] of Object.entries(hostileValues))
    if (kind !== "zero")
      add(`an id ${kind}`, { ...json.model, vocab: { ...json.model.vocab, a: id } });
  return files;
}

const vocabFiles = (original) => {
  const vocab = JSON.parse(new TextDecoder().decode(original));
  const ids = Object.entries(hostileValues).filter(([kind]) => kind !== "zero");
  return [
    ...contents,
    ...ids.map(([kind, id]) => ({ name: `an id ${kind}`, bytes: jsonOf({ ...vocab, a: id }) })),
  ];
};

// Without merges it is a tokenizer of bytes.
const mergesFiles = () => [
  ...contents.filter(({ name }) => name !== "no bytes"),
  ...texts({ "an unknown token": "t zz\n", "a token alone": "the\n", "three tokens": "t h e\n" }),
];

const vocabularyFiles = () => [
  ...contents,
  ...texts({
    "no special tokens": "good\nbad\n",
  }),
];

const gptSizes = ["vocab_size", "n_positions", "n_embd", "n_layer", "n_head"];
const bertSizes = ["vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"];
const weights = () => contents;

/** Each with the file, its hostile contents by the original, what makes the folder, and the reader. */
export const modelFolders = {
  "config.json of GPT-2s": ["config.json", fieldsOf(gptSizes), saveGpt, readGpt],
  "tokenizer.json": ["tokenizer.json", tokenizerFiles, saveGpt, readGpt],
  "vocab.json": ["vocab.json", vocabFiles, saveOlderGpt, readGpt],
  "merges.txt": ["merges.txt", mergesFiles, saveOlderGpt, readGpt],
  "weights of GPT-2s": ["model.safetensors", weights, saveGpt, readGpt],
  "config.json of BERTs": ["config.json", fieldsOf(bertSizes), saveBert, readBert],
  "vocab.txt": ["vocab.txt", vocabularyFiles, saveBert, readBert],
};
