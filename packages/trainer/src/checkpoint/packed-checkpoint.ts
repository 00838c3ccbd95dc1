import {
  readSafetensors,
  SafetensorsError,
  type SafetensorsTensor,
  writeSafetensors,
} from "@halfstep/safetensors";
import type { Checkpoint, CheckpointContent } from "./checkpoint.js";
import { CheckpointError } from "./checkpoint-error.js";
import { joinTree, splitParts } from "./state-tree.js";

// A checkpoint as one safetensors file, for stores without folders. What is not an array is JSON in its metadata, and a tensor has the
// name of its part before its own.

const format = "halfstep-checkpoint-file";
const version = 1;

/**
 * The bytes of a checkpoint.
 * @throws TypeError where a state cannot be saved
 */
export function packCheckpoint(content: CheckpointContent): Uint8Array<ArrayBuffer> {
  const { step, microStep, best, tables } = content;
  const trees = splitParts(content.parts);
  const parts = Object.fromEntries(trees.map(([name, { json }]) => [name, json]));
  const tensors = Object.fromEntries(
    trees.flatMap(([part, tree]) =>
      Object.entries(tree.tensors).map(([name, tensor]) => [`${part}/${name}`, tensor]),
    ),
  );
  const state = JSON.stringify({ version, step, microStep, best, tables, parts });
  return writeSafetensors(tensors, { metadata: { format, state } });
}

/**
 * The checkpoint of bytes that were checked by a hash.
 * @param path for messages
 * @throws CheckpointError
 */
export function unpackCheckpoint(bytes: Uint8Array, path: string): Checkpoint {
  const malformed = (cause: unknown): CheckpointError =>
    new CheckpointError("malformed", path, `is malformed (${(cause as Error).message})`, cause);
  try {
    const { metadata, tensors } = readSafetensors(bytes);
    if (metadata?.format !== format) throw new TypeError("it is no checkpoint");
    const state = JSON.parse(metadata.state ?? "");
    if (state.version !== version)
      throw new CheckpointError(
        "version",
        path,
        `has version ${state.version} of the format, and this program knows ${version}: update @halfstep/trainer`,
      );
    const { step, microStep, best, tables, parts } = state;
    const joined = Object.entries(parts).map(([name, json]) => [
      name,
      joinTree({ json, tensors: tensorsOf(name, tensors) }),
    ]);
    return { path, step, microStep, best, tables, parts: Object.fromEntries(joined) };
  } catch (error) {
    if (error instanceof TypeError || error instanceof SyntaxError) throw malformed(error);
    if (error instanceof SafetensorsError) throw malformed(error);
    throw error;
  }
}

function tensorsOf(
  part: string,
  tensors: Readonly<Record<string, SafetensorsTensor>>,
): Readonly<Record<string, SafetensorsTensor>> {
  const start = `${part}/`;
  const own = Object.entries(tensors).filter(([name]) => name.startsWith(start));
  return Object.fromEntries(own.map(([name, tensor]) => [name.slice(start.length), tensor]));
}
