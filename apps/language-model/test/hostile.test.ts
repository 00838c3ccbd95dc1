// Folders that others made: every field of config.json and tokenizer.json, missing, null, of the wrong type, negative, huge. All are
// refused in one line that names the file, and none makes a model beyond its weights.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GPT } from "@halfstep/models";
import { cpuRuntime } from "@halfstep/tensor";
import { exitCodeOf } from "@halfstep/trainer/cli";
import { hostileFields, hostileValues } from "@halfstep/vitest/hostile";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openHubModel, saveHubModel } from "../src/hub.js";
import { learnBytePairs } from "../src/tokenizers/byte-pairs.js";
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
async function opening(name: string, content: string): Promise<string> {
  const path = join(folder, name);
  const before = readFileSync(path);
  writeFileSync(path, content);
  try {
    await openHubModel(runtime, folder, { onNote: () => {} });
    return "opened";
  } catch (error) {
    const { message } = error as Error;
    expect(exitCodeOf(error), message).toBe(2);
    expect(message).not.toContain("\n");
    expect(message.length - folder.length).toBeLessThan(400);
    return message.replaceAll(`${folder}/`, "").replaceAll(folder, "the folder");
  } finally {
    writeFileSync(path, before);
  }
}

// What JSON makes of a value: numbers beyond all are written as they are, not as null.
const written = (value: unknown): string =>
  JSON.stringify(value, (_, each) => (each === Number.POSITIVE_INFINITY ? "∞" : each)).replaceAll(
    '"∞"',
    "1e999",
  );

it("with a field of config.json that nobody meant names the file, or opens where it changes nothing", async () => {
  const kinds = new Set(["missing", "null", "minus five", "a billion", "of a wrong type"]);
  const sizes = ["vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner"];
  for (const { field, kind, config: changed } of hostileFields(config)) {
    if (!kinds.has(kind)) continue;
    const said = await opening("config.json", written(changed));
    if (kind === "a billion" && sizes.includes(field))
      expect(said, `${field} ${kind}`).toMatch(
        /^(config\.json: (describes|has)|tokenizer\.json: )/,
      );
    if (said !== "opened") expect(said, `${field} ${kind}`).toMatch(/^config\.json: /);
  }
});

it("with a field of tokenizer.json that nobody meant does so, too", async () => {
  const read = async (value: unknown, about: string): Promise<string> => {
    const said = await opening("tokenizer.json", written(value));
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
  expect(await opening("config.json", content)).toMatch(/^config\.json: /);
  expect(await opening("tokenizer.json", content)).toMatch(/^tokenizer\.json: /);
  expect(await opening("model.safetensors", content)).toMatch(/^model\.safetensors: /);
});

it("with weights of another model is refused by its name", async () => {
  const said = await opening("config.json", JSON.stringify({ ...config, n_layer: 2 }));
  expect(said).toMatch(/^config\.json: describes a GPT-2 of \d+ parameters, and its weights have/);
  const fewer = await opening("config.json", JSON.stringify({ ...config, n_positions: 3 }));
  expect(fewer).toMatch(
    /^the folder: has weights of another model than its config\.json says: 1 are missing/,
  );
});
