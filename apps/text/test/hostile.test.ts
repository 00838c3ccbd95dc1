// Folders of models that others made: every field of config.json, missing, null, of the wrong type, negative, huge; and other files
// in place of each. All are refused in one line that names the file, and none makes a model beyond its weights.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BertForSequenceClassification } from "@halfstep/models";
import { cpuRuntime } from "@halfstep/tensor";
import { exitCodeOf } from "@halfstep/trainer/cli";
import { hostileFields, hostileJson, opening, withContent } from "@halfstep/vitest/hostile";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadBody, openModel, saveModel } from "../src/model-folder.js";
import type { ModelPurpose } from "../src/model-purpose.js";
import { smallShape } from "../src/model-shape.js";
import { BertTokenizer } from "../src/tokenizer.js";
import { openTrained, useModel } from "../src/use-model.js";
import { specialTokens } from "../src/vocabulary.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-hostile-bert-"));
afterAll(() => rmSync(folder, { recursive: true }));
const runtime = cpuRuntime();
const tokenizer = new BertTokenizer([...specialTokens, "good", "bad"]);
const shape = smallShape({
  ...{ vocabulary: tokenizer.vocabulary, hiddenSize: 4, layers: 1, heads: 2 },
  ...{ maxLength: 8, dropout: 0 },
});
const purpose: ModelPurpose = {
  ...{ task: "spam" as const, labels: ["ham", "spam"], maxLength: 8, bag: false, crf: false },
  ...{ mailPart: "body" as const, words: 60, corpus: "brown" as const, fold: 0 },
};

type Json = Readonly<Record<string, unknown>>;
let config: Json & { readonly halfstep: Json };

beforeAll(async () => {
  const model = new BertForSequenceClassification(runtime, { ...shape, seed: 1 });
  await saveModel(folder, model, shape, { tokenizer }, purpose);
  config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
});

/** What using it says with another file in place of one: "opened", or the line of a refusal. */
async function openingWith(name: string, content: string | Uint8Array): Promise<string> {
  const open = async () => useModel(runtime, await openTrained(folder), false);
  const said = await withContent(join(folder, name), content, () => opening(open, exitCodeOf));
  return said.replaceAll(`${folder}/`, "").replaceAll(folder, "the folder");
}

const kinds = new Set(["missing", "null", "minus five", "a fraction", "a billion", "true"]);

it("with a field that nobody meant names the file, or opens where it changes nothing", async () => {
  const sizes =
    /^(vocab_size|hidden_size|num_hidden_layers|num_attention_heads|intermediate_size)$/;
  for (const { field, kind, config: changed } of hostileFields(config)) {
    if (!kinds.has(kind)) continue;
    const said = await openingWith("config.json", hostileJson(changed));
    if (sizes.test(field)) expect(said, `${field} ${kind}`).toMatch(/^config\.json: /);
    else
      expect(said, `${field} ${kind}`).toMatch(/^(opened$|config\.json: |the folder has a BERT)/);
  }
  for (const { field, kind, config: halfstep } of hostileFields(config.halfstep)) {
    const said = await openingWith("config.json", hostileJson({ ...config, halfstep }));
    expect(said, `${field} ${kind}`).toMatch(
      /^(opened$|config\.json: |the folder: has weights of)/,
    );
  }
});

const deep = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;

it.each([
  ["nothing", ""],
  ["null", "null"],
  ["a list", "[]"],
  ["a part of an object", "{"],
  ["an empty object", "{}"],
  ["a zero byte", "\u0000"],
  ["bytes that are no text", Uint8Array.of(0x63, 0xe9)],
  ["lists in lists", deep(100_000)],
])("with %s in place of a file is refused by the file's name", async (_, content) => {
  for (const name of ["config.json", "vocab.txt", "model.safetensors"])
    expect(await openingWith(name, content)).toMatch(new RegExp(`^${name}: `));
});

it("with files of two models is refused", async () => {
  const longer = [...tokenizer.vocabulary, "fine"].join("\n");
  expect(await openingWith("vocab.txt", longer)).toMatch(
    /has vocab_size 7, and vocab\.txt 8 tokens/,
  );
  const layers = hostileJson({ ...config, num_hidden_layers: 2 });
  expect(await openingWith("config.json", layers)).toMatch(
    /^the folder: has weights of another model .* missing: bert\.encoder\.layer\.1\..*, and 10 more$/,
  );
  const many = hostileJson({ ...config, num_hidden_layers: 40 });
  expect(await openingWith("config.json", many)).toMatch(
    /^config\.json: describes a BERT of \d+ par/,
  );
  const places = hostileJson({
    ...config,
    max_position_embeddings: 7,
    halfstep: { ...purpose, maxLength: 7 },
  });
  expect(await openingWith("config.json", places)).toMatch(
    /^the folder: has weights of another model/,
  );
});

it("is gone on from without its head where labels are others, and with all of its body", async () => {
  const saved = await openModel(folder);
  const of = (numLabels: number) =>
    new BertForSequenceClassification(runtime, { ...shape, seed: 2, numLabels });
  const head = ["classifier.weight", "classifier.bias"];
  const same = { fresh: [], isHeadDropped: false };
  const dropped = { fresh: head, isHeadDropped: true };
  expect(loadBody(of(2), saved, ["ham", "spam"])).toEqual(same);
  expect(loadBody(of(2), saved, ["no", "yes"])).toEqual(dropped);
  expect(loadBody(of(3), saved, ["a", "b", "c"])).toEqual(dropped);
  expect(loadBody(of(3), { ...saved, purpose: undefined }, ["a", "b", "c"])).toEqual(dropped);
  const deeper = new BertForSequenceClassification(runtime, {
    ...{ ...shape, numHiddenLayers: 2, seed: 2 },
  });
  expect(() => loadBody(deeper, saved, [])).toThrow(
    /has the body of another BERT than its config\.json says: missing: bert\.encoder\.layer\.1.*, and 10 more$/,
  );
});

it("takes hidden_act and do_lower_case over", async () => {
  const relu = { ...config, hidden_act: "relu" };
  writeFileSync(join(folder, "config.json"), hostileJson(relu));
  writeFileSync(join(folder, "tokenizer_config.json"), '{"do_lower_case":false}');
  const saved = await openModel(folder);
  expect(saved.shape.hiddenAct).toBe("relu");
  expect(saved.tokenizer.tokenize("good Good")).toEqual(["good", "[UNK]"]);
  writeFileSync(join(folder, "tokenizer_config.json"), '{"do_lower_case":1}');
  await expect(openModel(folder)).rejects.toThrow("tokenizer_config.json: has a do_lower_case");
});

it("is a folder: a file of weights alone is refused, and its folder asked for", async () => {
  const file = join(folder, "model.safetensors");
  await expect(openModel(file)).rejects.toThrow(
    "is a file: name its folder, which has config.json",
  );
});
