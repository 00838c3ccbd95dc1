// Folders that others made: every field of config.json and tokenizer.json, missing, null, of the wrong type, negative, huge. All are
// refused in one line that names the file, and none makes a model beyond its weights.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GPT } from "@halfstep/models";
import { cpuRuntime } from "@halfstep/tensor";
import type { Checkpoint } from "@halfstep/trainer";
import { exitCodeOf } from "@halfstep/trainer/cli";
import {
  hostileFields,
  hostileJson,
  hostileTrees,
  hostileValues,
  opening,
  withContent,
} from "@halfstep/vitest/hostile";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openHubModel, saveHubModel } from "../src/hub.js";
import { languageModelOf, savedLanguageModel } from "../src/saved-model.js";
import { learnBytePairs } from "../src/tokenizers/byte-pairs.js";
import { Characters } from "../src/tokenizers/characters.js";
import { Subwords } from "../src/tokenizers/subwords.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-hostile-gpt-"));
afterAll(() => rmSync(folder, { recursive: true }));
const runtime = cpuRuntime();
const tokenizer = new Subwords(learnBytePairs("the cat sat on the mat; the cat", 260));

type Json = Readonly<Record<string, unknown>>;
const readJson = (name: string): Json => JSON.parse(readFileSync(join(folder, name), "utf8"));
let config: Json;
let tokens: Json & { readonly model: Json };

beforeAll(async () => {
  const size = { vocabSize: tokenizer.vocabSize, blockSize: 4, nLayer: 1, nHead: 2, nEmbd: 4 };
  await saveHubModel(folder, { model: new GPT(runtime, { seed: 1, ...size }), tokenizer });
  config = readJson("config.json");
  tokens = readJson("tokenizer.json") as typeof tokens;
});

/** What opening says with another file in place of one: "opened", or the line of a refusal. */
async function openingWith(name: string, content: string): Promise<string> {
  const open = () => openHubModel(runtime, folder, { onNote: () => {} });
  const said = await withContent(join(folder, name), content, () => opening(open, exitCodeOf));
  return said.replaceAll(`${folder}/`, "").replaceAll(folder, "the folder");
}

it("with a field of config.json that nobody meant names the file, or opens where it changes nothing", async () => {
  const kinds = new Set(["missing", "null", "minus five", "a billion", "of a wrong type"]);
  const sizes = ["vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner"];
  for (const { field, kind, config: changed } of hostileFields(config)) {
    if (!kinds.has(kind)) continue;
    const said = await openingWith("config.json", hostileJson(changed));
    if (kind === "a billion" && sizes.includes(field))
      expect(said, `${field} ${kind}`).toMatch(
        /^(config\.json: (describes|has)|tokenizer\.json: )/,
      );
    if (said !== "opened") expect(said, `${field} ${kind}`).toMatch(/^config\.json: /);
  }
});

it("with a field of tokenizer.json that nobody meant does so, too", async () => {
  const read = async (value: unknown, about: string): Promise<string> => {
    const said = await openingWith("tokenizer.json", hostileJson(value));
    if (said !== "opened") expect(said, about).toMatch(/^tokenizer\.json: /);
    return said;
  };
  const deep = new Set(["a long string", "deeply nested"]);
  for (const field of ["model", "added_tokens", "normalizer", "pre_tokenizer", "decoder"])
    for (const { kind, config: changed } of hostileFields(tokens, [field]))
      if (!deep.has(kind)) await read(changed, `${field} ${kind}`);
  for (const field of ["type", "vocab", "merges"])
    for (const { kind, config: model } of hostileFields(tokens.model, [field])) {
      const said = await read({ ...tokens, model }, `${field} ${kind}`);
      // Without merges it is a tokenizer of bytes.
      const isMeant = field === "merges" && kind === "an empty list";
      expect(said === "opened", `${field} ${kind}`).toBe(isMeant);
    }
  for (const [kind, id] of Object.entries(hostileValues)) {
    if (kind === "zero") continue;
    const vocab = { ...(tokens.model.vocab as Json), a: id };
    const said = await read({ ...tokens, model: { ...tokens.model, vocab } }, kind);
    expect(said, kind).toMatch(/^tokenizer\.json: gives "a" no id from 0 to 259, /);
  }
});

const deep = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;

it.each([
  ["nothing", ""],
  ["null", "null"],
  ["a list", "[]"],
  ["a string", '"x"'],
  ["a part of an object", "{"],
  ["an empty object", "{}"],
  ["a zero byte", "\u0000"],
  ["lists in lists", deep(100_000)],
  ["lists without end", "[".repeat(100_000)],
])("with %s in place of a file is refused by the file's name", async (_, content) => {
  expect(await openingWith("config.json", content)).toMatch(/^config\.json: /);
  expect(await openingWith("tokenizer.json", content)).toMatch(/^tokenizer\.json: /);
  expect(await openingWith("model.safetensors", content)).toMatch(/^model\.safetensors: /);
});

it("with weights of another model is refused by its name", async () => {
  const deeper = await openingWith("config.json", JSON.stringify({ ...config, n_layer: 2 }));
  expect(deeper).toMatch(
    /^the folder: has weights of another model .* missing: transformer\.h\.1\..*, and 6 more$/,
  );
  const said = await openingWith("config.json", JSON.stringify({ ...config, n_layer: 40 }));
  expect(said).toMatch(/^config\.json: describes a GPT-2 of \d+ parameters, and its weights have/);
  const fewer = await openingWith("config.json", JSON.stringify({ ...config, n_positions: 3 }));
  expect(fewer).toMatch(
    /^the folder: has weights of another model than its config\.json says: of another shape: transformer\.wpe\.weight/,
  );
});

/** What a checkpoint of the model says, with something else in place of its part `language`. */
const languageOpening = (checkpoint: Checkpoint, language: unknown): Promise<string> => {
  const parts = { ...checkpoint.parts, language };
  return opening(() => languageModelOf(runtime, { ...checkpoint, parts }), exitCodeOf);
};

it.each([
  ["characters", Characters.of("the cat sat on the mat")],
  ["byte pairs", tokenizer],
])("a checkpoint of %s with a field that nobody meant is refused by its name", async (_, each) => {
  const size = { vocabSize: each.vocabSize, blockSize: 4, nLayer: 1, nHead: 2, nEmbd: 4 };
  const model = new GPT(runtime, { seed: 1, ...size });
  const language = (await savedLanguageModel(model, each, "float32").stateDict()) as Json;
  const parts = { model: await model.stateDict(), language };
  const checkpoint = { path: "step-1", step: 1, microStep: 0, best: false, parts };
  expect(await languageOpening(checkpoint, language)).toBe("opened");
  const sizes = /vocabSize|blockSize|nLayer|nHead|nEmbd|nInner|type|json|characters|precision/;
  for (const { field, kind, config: changed } of hostileTrees(language)) {
    const said = await languageOpening(checkpoint, changed);
    if (said !== "opened") expect(said, `${field} ${kind}`).toMatch(/^step-1[ ,]/);
    else expect(field, kind).not.toMatch(sizes);
  }
  for (const value of Object.values(hostileValues))
    expect(await languageOpening(checkpoint, value)).toMatch(/^step-1[ ,]/);
});

it("a checkpoint whose averages or weights are none is refused by its name", async () => {
  const size = { vocabSize: tokenizer.vocabSize, blockSize: 4, nLayer: 1, nHead: 2, nEmbd: 4 };
  const model = new GPT(runtime, { seed: 1, ...size });
  const language = await savedLanguageModel(model, tokenizer, "float32").stateDict();
  const state = await model.stateDict();
  const name = "transformer.wte.weight";
  const average = new Float32Array(4 * tokenizer.vocabSize);
  const ema = { groups: [{ parameters: { [name]: { average } } }] };
  const opens = (parts: Json): Promise<string> =>
    opening(
      () => languageModelOf(runtime, { path: "step-1", step: 1, microStep: 0, best: false, parts }),
      exitCodeOf,
    );
  expect(await opens({ language, model: state, ema })).toBe("opened");
  const averaged = (value: unknown) => ({ groups: [{ parameters: { [name]: value } }] });
  for (const value of Object.values(hostileValues)) {
    expect(await opens({ language, model: state, ema: averaged({ average: value }) })).toMatch(
      /^step-1 has no average of transformer\.wte\.weight/,
    );
    expect(await opens({ language, model: { ...state, [name]: value } })).toMatch(
      /^step-1 has a m/,
    );
    expect(await opens({ language, model: value })).toMatch(/^step-1[ ,]/);
  }
});
