import { readFile, stat } from "node:fs/promises";
import { SafetensorsError } from "./error.js";

/** The most bytes that are read as an index: a hundred thousand names. */
const indexLimit = 2 ** 24;

/**
 * Reads an index of weights in several files, as Hugging Face writes it: `model.safetensors.index.json`, or
 * `pytorch_model.bin.index.json`.
 *
 * @returns the names of the tensors by the file that has them. All files are in the folder of the index.
 * @throws SafetensorsError for another file, and for names of files in other folders
 * @throws the system's error (with `code`) when it cannot be read
 */
export async function readShardIndex(
  path: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
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
  const files = new Map<string, string[]>();
  for (const [name, file] of Object.entries(map)) {
    if (typeof file !== "string" || !/^[\w.-]+\.(safetensors|bin|pt|pth)$/.test(file))
      return malformed(
        `the index names ${JSON.stringify(file)}, which is no file of weights in its folder`,
      );
    const names = files.get(file) ?? [];
    names.push(name);
    files.set(file, names);
  }
  return files;
}
