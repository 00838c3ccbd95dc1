import { createHash } from "node:crypto";
import { join } from "node:path";
import { type ByteSink, writeSafetensorsTo } from "@halfstep/safetensors";
import { storingAsync } from "../errors.js";
import { type FileSystem, filling, syncDirectory, writeNewFile } from "../files/file-system.js";
import type { CheckpointContent } from "./checkpoint.js";
import { type FileEntry, formatManifest, manifestName } from "./manifest.js";
import { splitParts } from "./state-tree.js";

/** The file of a checkpoint with all values that are not arrays. */
export const stateName = "state.json";

type Fill = (sink: ByteSink) => Promise<unknown>;

/**
 * Checks that a state can be saved, and returns a function that writes it into an empty folder: every file flushed to the
 * disk, the manifest last, then the folder itself.
 * @throws TypeError where a state cannot be saved
 */
export function prepareCheckpoint(
  content: CheckpointContent,
): (fs: FileSystem, folder: string) => Promise<void> {
  const files = filesOf(content);
  const { step, microStep, best, tables } = content;
  return async (fs, folder) => {
    const entries: FileEntry[] = [];
    for (const [name, fill] of files) entries.push(await writeEntry(fs, folder, name, fill));
    const manifest = formatManifest({
      ...{ step, microStep, best, files: entries },
      ...(typeof tables === "string" && { tables }),
    });
    await writeEntry(fs, folder, manifestName, textOf(manifest));
    await storingAsync(folder, () => syncDirectory(fs, folder));
  };
}

function filesOf({ parts }: CheckpointContent): readonly (readonly [name: string, fill: Fill])[] {
  const trees = splitParts(parts);
  const json = Object.fromEntries(trees.map(([name, tree]) => [name, tree.json]));
  return [
    [stateName, textOf(`${JSON.stringify(json, undefined, 1)}\n`)],
    ...trees
      .filter(([, { tensors }]) => Object.keys(tensors).length > 0)
      .map(([name, { tensors }]) => {
        const fill: Fill = (sink) => writeSafetensorsTo(sink, tensors);
        return [`${name}.safetensors`, fill] as const;
      }),
  ];
}

const textOf = (text: string): Fill => filling(text);

/** Writes a file of a checkpoint, and returns its entry in the manifest. */
const writeEntry = (
  fs: FileSystem,
  folder: string,
  name: string,
  fill: Fill,
): Promise<FileEntry> => {
  const path = join(folder, name);
  return storingAsync(path, () =>
    writeNewFile(fs, path, async (sink) => {
      const hash = createHash("sha256");
      let bytes = 0;
      await fill({
        async write(piece) {
          const { bytesWritten } = await sink.write(piece);
          hash.update(piece.subarray(0, bytesWritten));
          bytes += bytesWritten;
          return { bytesWritten };
        },
      });
      return { name, bytes, sha256: hash.digest("hex") };
    }),
  );
};
