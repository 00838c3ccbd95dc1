import { open, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SafetensorsTensor } from "@halfstep/safetensors";
import { openSafetensors, readShardIndex } from "@halfstep/safetensors/node";
import { TorchFileError } from "./error.js";
import { type FileKind, fileKindOf, kindPrefixBytes, wrongKind } from "./file-kind.js";
import { requireKnown } from "./known-options.js";
import { openTorch, type TorchInfo } from "./open.js";

/** Weights in one file or several, which are read when asked for. */
export interface WeightsFile extends AsyncDisposable {
  /** What there is, by name. No prototype. */
  readonly tensors: Readonly<Record<string, TorchInfo>>;
  /** Of torch checkpoints: dotted keys of what has tensors, too, and is not among `tensors`: `["optimizer"]`. */
  readonly skipped?: readonly string[];
  /** Reads one tensor into memory of its own. */
  read(name: string): Promise<SafetensorsTensor>;
  /** Reads these tensors, or all, one after the other. */
  readAll(names?: Iterable<string>): Promise<Record<string, SafetensorsTensor>>;
  close(): Promise<void>;
}

/** Options of opening weights. */
export interface WeightsOptions {
  /** Of torch checkpoints: the dict that has the tensors, as a dotted path of keys; `""` for the outermost. */
  readonly key?: string | undefined;
}

/** Names that Hugging Face gives to weights, the preferred ones first. */
const usualNames = [
  "model.safetensors",
  "model.safetensors.index.json",
  "pytorch_model.bin",
  "pytorch_model.bin.index.json",
];
const weightsName = /\.(safetensors|pt|pth|th|bin|ckpt)$/;

/**
 * Opens weights as people have them: a safetensors file, a checkpoint of torch, an index of several of these (`*.index.json`), or a folder
 * with one of them. The kind of a file is that of its contents, whatever its name.
 * @throws TorchFileError or SafetensorsError for malformed files and files of other kinds, with the remedy
 * @throws the system's error (with `code`) when a file cannot be read
 *
 * @example
 * await using weights = await openWeights("gpt2");
 * Object.keys(weights.tensors);
 */
export async function openWeights(
  path: string,
  options: WeightsOptions = {},
): Promise<WeightsFile> {
  requireKnown("openWeights", options, ["key"]);
  const file = (await stat(path)).isDirectory() ? await weightsIn(path) : path;
  return file.endsWith(".index.json") ? openShards(file, options) : openOne(file, options);
}

/** The file in a folder that has its weights, or their index. */
async function weightsIn(folder: string): Promise<string> {
  const names = (await readdir(folder)).sort();
  const usual = usualNames.find((name) => names.includes(name));
  const others = names.filter((name) => weightsName.test(name));
  const [only] = others;
  if (usual ?? (others.length === 1 && only)) return join(folder, usual ?? (only as string));
  throw new TorchFileError(
    "kind",
    others.length === 0
      ? `is a folder without weights: neither ${usualNames.join(", ")} nor another file of weights`
      : `is a folder with several files of weights: name one of ${others.slice(0, 8).join(", ")}`,
    { source: folder },
  );
}

async function openOne(path: string, { key }: WeightsOptions): Promise<WeightsFile> {
  const kind = await kindOf(path);
  // What calls itself safetensors and is cut off is told so by its own reader.
  const isSafetensors =
    kind === "safetensors" || (kind === "unknown" && path.endsWith(".safetensors"));
  if (isSafetensors) return openSafetensors(path);
  if (kind === "zip" || kind === "pickle") return openTorch(path, key === undefined ? {} : { key });
  throw wrongKind(kind, path);
}

async function kindOf(path: string): Promise<FileKind> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const { bytesRead, buffer } = await file.read(
      Buffer.alloc(kindPrefixBytes),
      0,
      kindPrefixBytes,
      0,
    );
    return fileKindOf(buffer.subarray(0, bytesRead), size);
  } finally {
    await file.close();
  }
}

/** Several files as one. */
async function openShards(path: string, options: WeightsOptions): Promise<WeightsFile> {
  const index = await readShardIndex(path);
  const files: WeightsFile[] = [];
  const holders = new Map<string, { readonly file: WeightsFile; readonly name: string }>();
  const close = async (): Promise<void> => {
    await Promise.all(files.map((file) => file.close()));
  };
  try {
    for (const [shard, names] of index) {
      const shardPath = join(dirname(path), shard);
      const file = await openOne(shardPath, options);
      files.push(file);
      // The index has the names as they are in the files.
      const prefix = "prefix" in file ? String(file.prefix) : "";
      for (const name of Object.keys(file.tensors)) holders.set(prefix + name, { file, name });
      const lost = names.find((name) => holders.get(name)?.file !== file);
      if (lost !== undefined)
        throw new TorchFileError("unknown-tensor", `is not in ${shardPath}, as the index says`, {
          source: path,
          tensor: lost,
        });
    }
  } catch (error) {
    await close();
    throw error;
  }
  const tensors: Record<string, TorchInfo> = Object.create(null);
  for (const [name, { file, name: inner }] of holders)
    tensors[name] = file.tensors[inner] as TorchInfo;
  const read = async (name: string): Promise<SafetensorsTensor> => {
    const holder = holders.get(name);
    if (holder === undefined)
      throw new TorchFileError("unknown-tensor", "the files have none of that name", {
        source: path,
        tensor: name,
      });
    return holder.file.read(holder.name);
  };
  return {
    ...{ tensors, skipped: [...new Set(files.flatMap((file) => file.skipped ?? []))], read, close },
    readAll: async (names = holders.keys()) => {
      const all: Record<string, SafetensorsTensor> = Object.create(null);
      for (const name of names) all[name] = await read(name);
      return all;
    },
    [Symbol.asyncDispose]: close,
  };
}
