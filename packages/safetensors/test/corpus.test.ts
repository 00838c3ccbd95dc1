import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readSafetensors, SafetensorsError } from "../src/index.js";
import { corpus } from "./corpus.js";

/** What the reference said of a file: see golden/verdicts.py. */
const verdicts: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(new URL("golden/verdicts.json", import.meta.url), "utf8"),
);
const sha256 = (bytes: Uint8Array): string =>
  createHash("sha256").update(bytes).digest("hex").slice(0, 16);

/** The error that reading raises; undefined where there is none. */
function refusal(bytes: Uint8Array): unknown {
  try {
    readSafetensors(bytes, { source: "model.safetensors" });
  } catch (error) {
    return error;
  }
  return undefined;
}

const malformed = corpus.filter(({ problem }) => problem !== undefined);

test("the corpus has more than a hundred malformed files, each with a name and content of its own", () => {
  expect(malformed.length).toBeGreaterThan(150);
  expect(new Set(corpus.map(({ name }) => name)).size).toBe(corpus.length);
  expect(new Set(corpus.map(({ bytes }) => sha256(bytes))).size).toBe(corpus.length);
});

test("every malformed file is refused for what is wrong with it, and good ones are read", () => {
  const expected = corpus.map(({ name, problem, tensor }) => ({ name, problem, tensor }));
  const found = corpus.map(({ name, bytes, tensor }) => {
    const error = refusal(bytes);
    if (error === undefined) return { name, problem: undefined, tensor: undefined };
    if (!(error instanceof SafetensorsError)) return { name, problem: String(error), tensor };
    return { name, problem: error.problem, tensor: tensor === undefined ? tensor : error.tensor };
  });
  expect(found).toEqual(expected);
});

test("errors name the file, the tensor, the byte and a remedy, and stay short", () => {
  const flaws = malformed.flatMap(({ name, bytes, tensor }) => {
    const error = refusal(bytes) as SafetensorsError;
    const { message, offset } = error;
    const fine =
      message.startsWith("model.safetensors: ") &&
      (tensor === undefined || message.includes(`tensor ${JSON.stringify(tensor)}: `)) &&
      offset !== undefined &&
      offset <= bytes.length &&
      message.endsWith(
        error.problem === "dtype"
          ? `(at byte ${offset}): save the tensor in another dtype, such as F32`
          : `(at byte ${offset}): download the file again, or save it again`,
      ) &&
      message.length < 3000;
    return fine ? [] : [`${name}: ${message}`];
  });
  expect(flaws).toEqual([]);
});

/** As `content` of golden/verdicts.py. */
function content(bytes: Uint8Array): string {
  const { metadata, tensors } = readSafetensors(bytes);
  const digest = createHash("sha256");
  const byCodePoint = ([a]: [string, unknown], [b]: [string, unknown]): number =>
    Buffer.compare(Buffer.from(a), Buffer.from(b));
  for (const [key, value] of Object.entries(metadata).sort(byCodePoint))
    digest.update(`${key}\n${value}\n`);
  for (const [name, { dtype, shape, data }] of Object.entries(tensors).sort(byCodePoint)) {
    digest.update(`${name}\n${dtype}\n${shape}\n`);
    digest.update(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }
  return digest.digest("hex").slice(0, 16);
}

test("there is a verdict of the reference on every file", () => {
  const unknown = corpus.filter(({ bytes }) => verdicts[sha256(bytes)] === undefined);
  expect(
    unknown.map(({ name }) => name),
    "run golden/verdicts.py",
  ).toEqual([]);
});

test("what is read is what the reference reads", () => {
  const good = corpus.filter(({ problem }) => problem === undefined);
  const found = good.map(({ name, bytes }) => [name, content(bytes)]);
  expect(found).toEqual(good.map(({ name, bytes }) => [name, verdicts[sha256(bytes)]]));
});

test("what the reference refuses is refused, and these files besides", () => {
  const stricter = malformed.filter(({ bytes }) => verdicts[sha256(bytes)] !== "refused");
  // Each of them has its row in README.md.
  expect(stricter.map(({ name }) => name)).toMatchInlineSnapshot(`
    [
      "leading space",
      "leading newline",
      "a trailing newline",
      "a trailing tab",
      "a trailing carriage return",
      "a tensor twice",
      "a tensor twice, once escaped",
      "__proto__ twice",
      "constructor twice",
      "a metadata key twice",
      "the metadata key __proto__ twice",
      "an unknown field",
      "a field called __proto__",
      "an array for a tensor",
      "metadata: null",
      "dtype object",
      "shape: a thousand dimensions",
      "shape: 2^53 in an empty tensor",
      "shape: 2^60 elements before a zero",
    ]
  `);
});
