import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { StateDict } from "@halfstep/nn";
import { SafetensorsError } from "@halfstep/safetensors";
import { openSafetensors } from "@halfstep/safetensors/node";
import { stateDictOf } from "./state-dict.js";

/** The most bytes that are read as an index: a hundred thousand names. */
const indexLimit = 2 ** 24;

/**
 * Reads the weights of a checkpoint as downloaded from Hugging Face: a safetensors file, an index of several
 * (`model.safetensors.index.json`), or a folder with one of these.
 *
 * @throws SafetensorsError for a malformed file; errors of the system as they are; TypeError as `stateDictOf` throws it
 * @example
 * const weights = await readWeights("bert-base-uncased");
 * for (const line of auditRange(weights, "float16").advice) console.warn(line);
 * const { missing, unexpected, misshapen } = loadTorchStateDict(model, weights, { strict: false });
 */
export async function readWeights(path: string): Promise<StateDict> {
  if (!(await stat(path)).isDirectory()) return readFileOrIndex(path);
  const [single, index] = ["model.safetensors", "model.safetensors.index.json"].map((name) =>
    join(path, name),
  ) as [string, string];
  return readFileOrIndex((await isFile(single)) || !(await isFile(index)) ? single : index);
}

async function readFileOrIndex(path: string): Promise<StateDict> {
  if (!path.endsWith(".json")) return readOne(path);
  const files = await filesOf(path);
  const tensors: [name: string, tensor: StateDict[string]][] = [];
  for (const file of files)
    tensors.push(...Object.entries(await readOne(join(dirname(path), file))));
  return Object.fromEntries(tensors);
}

async function readOne(path: string): Promise<StateDict> {
  const file = await openSafetensors(path);
  try {
    return stateDictOf(await file.readAll());
  } finally {
    await file.close();
  }
}

/** The files that an index names, all of which must be in its own folder. */
async function filesOf(path: string): Promise<readonly string[]> {
  const malformed = (what: string): never => {
    throw new SafetensorsError("metadata", what, { source: path });
  };
  const { size } = await stat(path);
  if (size > indexLimit) malformed(`an index of ${size} bytes is too long`);
  let index: unknown;
  try {
    index = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    malformed("the index is no JSON");
  }
  const map = (index as { readonly weight_map?: unknown } | null)?.weight_map;
  if (typeof map !== "object" || map === null) return malformed("the index has no weight_map");
  const files = [...new Set(Object.values(map))];
  const strange = files.find(
    (name) => typeof name !== "string" || !/^[\w.-]+\.safetensors$/.test(name),
  );
  if (strange !== undefined)
    malformed(
      `the index names ${JSON.stringify(strange)}, which is no safetensors file of its folder`,
    );
  return files;
}

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (stats) => stats.isFile(),
    () => false,
  );
