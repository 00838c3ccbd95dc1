import { promisify } from "node:util";
import { constants, gunzip } from "node:zlib";
import { DataError } from "./error.js";
import { type OpenFile, withFile } from "./file-bytes.js";
import { type IdxArray, idxLayout, longestIdxHeader, readIdx, requireIdxLength } from "./idx.js";

const inflate = promisify(gunzip);

/** Compressed bytes in which the header is. They become at most 1032 times as many. */
const startBytes = 2 ** 14;

/** Compressed data may expand to this many bytes at any ratio … … */
const harmlessBytes = 2 ** 26;
/** … and beyond only up to this ratio. That of MNIST's images is five. */
const mostGrowth = 100;

/**
 * Reads an IDX file; a name that ends in `.gz` is decompressed. The header is compared with the length of the file before the data
 * is read or decompressed.
 * @throws DataError when it cannot be read or is malformed, or when it would grow more than a hundredfold beyond 64 MiB
 */
export const readIdxFile = (path: string): Promise<IdxArray> =>
  withFile(path, (file) =>
    path.endsWith(".gz") ? compressedIdx(path, file) : plainIdx(path, file),
  );

async function plainIdx(path: string, file: OpenFile): Promise<IdxArray> {
  const layout = idxLayout(await file.read(longestIdxHeader), path);
  requireIdxLength(layout, file.size, path);
  return readIdx(await file.read(file.size), path);
}

async function compressedIdx(path: string, file: OpenFile): Promise<IdxArray> {
  const start = await inflated(path, await file.read(startBytes), { isWhole: false });
  const layout = idxLayout(start.subarray(0, longestIdxHeader), path);
  const most = Math.max(harmlessBytes, mostGrowth * file.size);
  if (layout.bytes > most)
    throw new DataError(
      path,
      `has ${file.size} bytes that would become ${layout.bytes}: if they are meant, decompress it first`,
    );
  const plain = await inflated(path, await file.read(file.size), {
    isWhole: true,
    most: layout.bytes,
  });
  return readIdx(plain, path);
}

/** @param most more bytes than these are refused as they come */
async function inflated(
  path: string,
  bytes: Uint8Array,
  { isWhole, most }: { readonly isWhole: boolean; readonly most?: number },
): Promise<Uint8Array> {
  const plain = await inflate(bytes, {
    finishFlush: isWhole ? constants.Z_FINISH : constants.Z_SYNC_FLUSH,
    ...(most !== undefined && { maxOutputLength: most }),
  }).catch((error: NodeJS.ErrnoException) => {
    throw new DataError(
      path,
      error.code === "ERR_BUFFER_TOO_LARGE"
        ? `has bytes after its data, of which its header says ${most}: download it again`
        : `cannot be decompressed (${error.message}): download it again`,
    );
  });
  return new Uint8Array(plain.buffer, plain.byteOffset, plain.length);
}
