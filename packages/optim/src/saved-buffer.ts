import type { Binding } from "@halfstep/device";
import { blockWords } from "@halfstep/kernels/optimizers";
import { OptimizerStateError } from "./errors.js";
import { flatLength, type Segment, segmentLength } from "./flat-tensors.js";

/** Saved numbers of one parameter, in the type of their storage; 16-bit floats are widened. */
export type SavedArray = Float32Array | Uint16Array | Uint8Array;

/** The arrays of one parameter in one buffer, by name. */
export type SavedArrays = Readonly<Record<string, SavedArray>>;

/** A saved array, possibly after JSON. */
type Loaded = Readonly<Record<string, ArrayLike<number>>>;

/** A resident buffer of the optimizer, and its division into parameters. */
export interface SavedBuffer<B> {
  readonly binding: Binding<B>;
  /** Elements of the buffer for all parameters, of which that of a shard has a part. */
  readonly length: number;
  /** Elements for each parameter element, where shards have parts of the buffer. */
  readonly perElement: number;
  /** The part of segment `index` of the buffer's elements. */
  split(values: ArrayLike<number>, index: number): SavedArrays;
  /** Writes saved numbers to their places. Throws an OptimizerStateError where they do not fit. */
  join(saved: Loaded, index: number, values: Float32Array | Uint32Array): void;
}

/** One number for each element of a parameter, at its offset. */
export const elementsAt = <B>(
  name: string,
  binding: Binding<B>,
  segments: readonly Segment[],
): SavedBuffer<B> => ({
  ...placesAt(
    name,
    binding,
    segments,
    segments.map((segment) => ({ offset: segment.offset, length: segmentLength(segment) })),
  ),
  length: flatLength(segments),
});

/** Numbers of each parameter at places of their own. */
export function placesAt<B>(
  name: string,
  binding: Binding<B>,
  segments: readonly Segment[],
  places: readonly { readonly offset: number; readonly length: number }[],
): SavedBuffer<B> {
  return {
    binding,
    length: binding.length,
    perElement: 1,
    split(values, index) {
      const { offset, length } = places[index] as (typeof places)[number];
      return {
        // Float32Array.from() takes three times as long, and checkpoints wait for this.
        [name]: new Float32Array(length).map((_, i) => values[offset + i] as number),
      };
    },
    join(saved, index, values) {
      const { offset, length } = places[index] as (typeof places)[number];
      values.set(required(saved, name, segments[index] as Segment, length), offset);
    },
  };
}

/** 16 bits for each element of a parameter, two to a word. Parameters start at even elements, as the layout of segments requires. */
export function halvesAt<B>(
  name: string,
  binding: Binding<B>,
  segments: readonly Segment[],
): SavedBuffer<B> {
  return {
    binding,
    length: Math.ceil(flatLength(segments) / 4) * 2,
    perElement: 1 / 2,
    split(values, index) {
      const segment = segments[index] as Segment;
      const word = (i: number): number => values[(segment.offset + i) >> 1] as number;
      return {
        [name]: Uint16Array.from(
          { length: segmentLength(segment) },
          (_, i) => (word(i) >>> ((i & 1) * 16)) & 0xffff,
        ),
      };
    },
    join(saved, index, values) {
      const segment = segments[index] as Segment;
      const halves = required(saved, name, segment, segmentLength(segment));
      for (let i = 0; i < halves.length; i++) {
        const at = (segment.offset + i) >> 1;
        values[at] = ((values[at] as number) | ((halves[i] as number) << ((i & 1) * 16))) >>> 0;
      }
    },
  };
}

/** 8-bit blocks, of which segment i has those from `firstBlocks[i]` on: a byte for each element, and a peak for each block. */
export function blocksAt<B>(
  name: string,
  binding: Binding<B>,
  segments: readonly Segment[],
  firstBlocks: readonly number[],
): SavedBuffer<B> {
  const peaks = `${name}.peaks`;
  const blocksOf = (segment: Segment): number => Math.ceil(segmentLength(segment) / 256);
  const wordOf = (index: number, i: number): number =>
    ((firstBlocks[index] as number) + (i >> 8)) * blockWords + 1 + ((i & 255) >> 2);
  return {
    binding,
    length: binding.length,
    perElement: 1,
    split(values, index) {
      const segment = segments[index] as Segment;
      const codes = Uint8Array.from(
        { length: segmentLength(segment) },
        (_, i) => ((values[wordOf(index, i)] as number) >>> ((i & 3) * 8)) & 0xff,
      );
      const bits = Uint32Array.from(
        { length: blocksOf(segment) },
        (_, block) => values[((firstBlocks[index] as number) + block) * blockWords] as number,
      );
      return { [name]: codes, [peaks]: new Float32Array(bits.buffer) };
    },
    join(saved, index, values) {
      const segment = segments[index] as Segment;
      const codes = required(saved, name, segment, segmentLength(segment));
      const blocks = blocksOf(segment);
      const bits = new Uint32Array(
        Float32Array.from(required(saved, peaks, segment, blocks)).buffer,
      );
      for (let i = 0; i < codes.length; i++) {
        const at = wordOf(index, i);
        values[at] = ((values[at] as number) | ((codes[i] as number) << ((i & 3) * 8))) >>> 0;
      }
      for (const [block, word] of bits.entries())
        values[((firstBlocks[index] as number) + block) * blockWords] = word;
    },
  };
}

function required(
  saved: Loaded,
  name: string,
  segment: Segment,
  length: number,
): ArrayLike<number> {
  const values = saved[name];
  if (!values)
    throw new OptimizerStateError(
      `the saved state has no ${name} for ${segment.name}: it comes from another model or from other options`,
    );
  if (typeof values.length !== "number")
    throw new OptimizerStateError(
      `${name} of ${segment.name} is no array: plain JSON makes objects of typed arrays, so save states with @halfstep/trainer or @halfstep/safetensors, or as arrays`,
    );
  if (values.length !== length)
    throw new OptimizerStateError(
      `${name} of ${segment.name} has ${values.length} elements, but the parameter is [${segment.shape}] and has ${length}: ` +
        "load the state into the model that it was saved with",
    );
  return values;
}
