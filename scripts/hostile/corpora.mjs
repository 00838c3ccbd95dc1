// The hostile files that tests make, by class, and the readers that must refuse them. Bundled by scripts/hostile.mjs.
import { openParquet } from "../../apps/text/src/parquet/read-parquet.ts";
import { parquetCorpus } from "../../apps/text/test/parquet-corpus.ts";
import { openOnnx } from "../../packages/onnx/src/node.ts";
import { refused as onnx } from "../../packages/onnx/test/corpus.ts";
import { readSafetensors } from "../../packages/safetensors/src/index.ts";
import { corpus as safetensors } from "../../packages/safetensors/test/corpus.ts";
import { cpuRuntime } from "../../packages/tensor/src/index.ts";
import { readTorch } from "../../packages/torch-files/src/index.ts";
import { corpus as torch } from "../../packages/torch-files/test/corpus.ts";
import { checkpoints } from "./checkpoints.mjs";
import { dataFiles } from "./data-files.mjs";
import { modelFolders } from "./model-folders.mjs";

const runtime = cpuRuntime();
const hostile = (corpus) => corpus.filter(({ problem }) => problem !== undefined);

/**
 * Files by class. A reader takes the path of a file and its bytes, and throws where it refuses them. A file with a name of its own may be one
 * of a folder that `make` writes; then `files` are made of the file there.
 */
export const corpora = {
  safetensors: {
    files: hostile(safetensors),
    read: (path, bytes) => readSafetensors(bytes, { source: path }),
  },
  "torch checkpoints and pickles": {
    files: hostile(torch),
    read: async (path, bytes) => (await readTorch(bytes, { source: path })).readAll(),
  },
  Parquet: {
    files: [...parquetCorpus].map(([name, bytes]) => ({ name, bytes })),
    read: async (path) => (await openParquet(path)).rows(["text", "label"]),
  },
  ...Object.fromEntries(
    Object.entries(dataFiles).map(([kind, [file, files, read]]) => [kind, { file, files, read }]),
  ),
  "ONNX, with files beside it": {
    file: "model.onnx",
    files: Object.entries(onnx).map(([name, [, bytes]]) => ({ name, bytes })),
    read: (path) => openOnnx(runtime, path),
  },
  ...Object.fromEntries(
    Object.entries({ ...modelFolders, ...checkpoints }).map(([kind, [file, files, make, read]]) => [
      kind,
      { file, files, make, read },
    ]),
  ),
};
