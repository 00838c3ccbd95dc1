import * as zlib from "node:zlib";
import type { Compressors } from "hyparquet";

/** Since Node 22.15. */
const { zstdDecompressSync } = zlib as { zstdDecompressSync?: typeof zlib.brotliDecompressSync };

/** Compressions that Node knows, each up to the length that is announced; the library has Snappy itself. */
export const compressors: Compressors = {
  GZIP: (input, length) => zlib.gunzipSync(input, { maxOutputLength: Math.max(1, length) }),
  BROTLI: (input, length) =>
    zlib.brotliDecompressSync(input, { maxOutputLength: Math.max(1, length) }),
  ZSTD: (input, length) => {
    if (!zstdDecompressSync)
      throw new RangeError(
        "it is compressed by Zstandard, which Node reads from version 22.15 on: take a later Node, or write the file again with Snappy",
      );
    return zstdDecompressSync(input, { maxOutputLength: Math.max(1, length) });
  },
};
