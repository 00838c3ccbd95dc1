import { expect, test } from "vitest";
import { readTorch, TorchFileError } from "../src/index.js";
import { corpus } from "./corpus.js";

/** The problem of a file; undefined where it can be read whole, "other" for an error that is not typed. */
async function problemOf(bytes: Uint8Array): Promise<string | undefined> {
  try {
    await (await readTorch(bytes, { source: "model.pt" })).readAll();
    return undefined;
  } catch (error) {
    if (!(error instanceof TorchFileError)) return `other: ${error}`;
    return error.message.startsWith("model.pt: ") ? error.problem : `no file: ${error.message}`;
  }
}

test("the corpus is large, and its names differ", () => {
  expect(corpus.filter(({ problem }) => problem !== undefined).length).toBeGreaterThan(500);
  expect(new Set(corpus.map(({ name }) => name)).size).toBe(corpus.length);
});

test("each file is read, or refused for its reason, with the file's name", async () => {
  const wrong: string[] = [];
  for (const { name, bytes, problem } of corpus) {
    const found = await problemOf(bytes);
    if (found !== problem) wrong.push(`${name}: ${found} instead of ${problem}`);
  }
  expect(wrong).toEqual([]);
});

test("no file makes the reader allocate more than some times its length", async () => {
  const greedy: string[] = [];
  for (const { name, bytes } of corpus) {
    const before = process.memoryUsage().arrayBuffers;
    const file = await readTorch(bytes).catch(() => undefined);
    const allocated = process.memoryUsage().arrayBuffers - before;
    // Each of: the first bytes, the directory's window, the pickle; and what yauzl allocates for the directory's end.
    if (allocated > 4 * bytes.length + 2 ** 17) greedy.push(`${name}: ${allocated} bytes`);
    await file?.close();
  }
  expect(greedy).toEqual([]);
});
