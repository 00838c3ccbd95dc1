import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { build } from "esbuild";
import { expect, test } from "vitest";
import { readSafetensors } from "../src/index.js";
import { openSafetensors } from "../src/node.js";
import { corpus, entry, file } from "./corpus.js";

const malformed = corpus.filter(({ problem }) => problem !== undefined);

/** What a header of this file may take: nothing where its length is a lie. */
function honestHeader(bytes: Uint8Array): number {
  if (bytes.length < 8) return 0;
  const length = new DataView(bytes.buffer).getBigUint64(0, true);
  return length <= bytes.length - 8 ? Number(length) : 0;
}

test("in memory, no malformed file makes the reader allocate more than its header and a string of it", () => {
  const greedy = malformed.flatMap(({ name, bytes }) => {
    const before = process.memoryUsage().arrayBuffers;
    try {
      readSafetensors(bytes);
    } catch {
      // corpus.test.ts looks at the errors.
    }
    const allocated = process.memoryUsage().arrayBuffers - before;
    // The file counts once: the first access to the buffer of a small array moves it out of the heap.
    const allowed = bytes.length + 2 * honestHeader(bytes);
    return allocated > allowed ? [`${name}: ${allocated} bytes`] : [];
  });
  expect(greedy).toEqual([]);
});

test("of a file, no malformed one makes the reader allocate or read more than its header", async () => {
  const greedy: string[] = [];
  for (const { name, bytes } of malformed) {
    let asked = 0;
    const handle = {
      stat: async () => ({ size: bytes.length }),
      read: async (into: Uint8Array, offset: number, length: number, position: number) => {
        asked += into.length;
        into.set(bytes.subarray(position, position + length), offset);
        return { bytesRead: length };
      },
    };
    await openSafetensors(handle).then(
      () => greedy.push(`${name}: was read`),
      () => undefined,
    );
    if (asked > 8 + honestHeader(bytes)) greedy.push(`${name}: ${asked} bytes`);
  }
  expect(greedy).toEqual([]);
});

const million = 1_000_000;
const repeat = (make: (key: string) => string): string => {
  const parts: string[] = [];
  for (let length = 0; length < million; length += (parts.at(-1) as string).length)
    parts.push(make(parts.length.toString(36)));
  return parts.join();
};

/** Headers of a megabyte that would cost many where each part of them cost more than it is long. */
const greedyHeaders: Readonly<Record<string, string>> = {
  tensors: `{${repeat((key) => `"${key}":${entry("[]", "[0,1]", "U8")}`)}}`,
  "empty tensors": `{${repeat((key) => `"${key}":${entry("[0]", "[0,0]", "U8")}`)}}`,
  metadata: `{"__metadata__":{${repeat((key) => `"${key}":""`)}}}x`,
  dimensions: `{"a":${entry(`[${"1,".repeat(million / 2)}1]`)}}`,
  digits: `{"a":${entry(`[${"9".repeat(million)}]`)}}`,
  name: `{"${"a".repeat(million)}":1}`,
  escapes: `{"${"\\u20ac".repeat(million / 6)}":1}`,
  brackets: `{"a":${"[".repeat(million)}`,
  spaces: `{}${" ".repeat(million)}x`,
};

test("the heap stays within a small multiple of the header", async () => {
  const { outputFiles } = await build({
    stdin: {
      contents: `
        import { parentPort, workerData } from "node:worker_threads";
        import { readSafetensors } from "./src/index.ts";
        const verdicts = Object.entries(workerData).map(([name, bytes]) => {
          try {
            return [name, "read", Object.keys(readSafetensors(bytes).tensors).length > 1];
          } catch (error) {
            return [name, error.problem, error.message.length < 1000];
          }
        });
        parentPort.postMessage(verdicts);`,
      resolveDir: fileURLToPath(new URL("..", import.meta.url)),
    },
    bundle: true,
    write: false,
    format: "cjs",
    platform: "node",
  });
  const files = Object.entries(greedyHeaders).map(([name, header]) => [name, file(header, 0)]);
  const worker = new Worker(outputFiles[0]?.text ?? "", {
    eval: true,
    workerData: Object.fromEntries(files),
    resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 },
  });
  // One that needs more memory ends with ERR_WORKER_OUT_OF_MEMORY.
  const verdicts = await new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  await worker.terminate();
  expect(verdicts).toEqual([
    ["tensors", "truncated", true],
    ["empty tensors", "read", true],
    ["metadata", "syntax", true],
    ["dimensions", "shape", true],
    ["digits", "shape", true],
    ["name", "field", true],
    ["escapes", "field", true],
    ["brackets", "field", true],
    ["spaces", "syntax", true],
  ]);
});
