import { blockLength } from "./blockwise.js";

/** The place of one parameter in a flat buffer. */
export interface SegmentPlace {
  /** Elements, a multiple of 4. */
  readonly offset: number;
  readonly shape: readonly number[];
}

/** Elements of one chunk, which a workgroup processes in rounds of one 8-bit block each. */
export const chunkLength = 1024;
/** Words of a chunk in the table: its first quad, its elements, its segment, its first block. */
export const chunkWords = 4;
/** Words of a segment in the table: its first chunk, the one after its last, rows, columns. */
export const segmentWords = 4;

/**
 * Segments divided into chunks, as tables for kernels that need the parameter of an element. Chunk and segment numbers
 * follow the order of the segments.
 */
export interface SegmentTable {
  readonly chunks: Uint32Array;
  readonly segments: Uint32Array;
  /** 8-bit blocks in all. */
  readonly blocks: number;
}

/** Makes the table of the segments of flat parameters. Throws a RangeError for an offset that is no multiple of 4. */
export function segmentTable(places: readonly SegmentPlace[]): SegmentTable {
  const chunks: number[] = [];
  const segments: number[] = [];
  let blocks = 0;
  for (const [index, { offset, shape }] of places.entries()) {
    if (!(Number.isSafeInteger(offset) && offset >= 0 && offset % 4 === 0))
      throw new RangeError(
        `segmentTable: segment ${index} starts at element ${offset}: an offset must be a multiple of 4`,
      );
    const length = shape.reduce((n, size) => n * size, 1);
    const columns = shape.at(-1) ?? 1;
    const first = chunks.length / chunkWords;
    for (let at = 0; at < length; at += chunkLength)
      chunks.push(
        (offset + at) / 4,
        Math.min(chunkLength, length - at),
        index,
        blocks + at / blockLength,
      );
    segments.push(first, chunks.length / chunkWords, columns === 0 ? 0 : length / columns, columns);
    blocks += Math.ceil(length / blockLength);
  }
  return {
    chunks: Uint32Array.from(chunks),
    segments: Uint32Array.from(segments),
    blocks,
  };
}
