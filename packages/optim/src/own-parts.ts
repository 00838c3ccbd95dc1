import type { Binding } from "@halfstep/device";
import type { UpdateRange } from "@halfstep/kernels/optimizers";
import {
  type FlatTensors,
  flatLength,
  gradientsOf,
  partOf,
  presentRanges,
  type Range,
  valuesOf,
} from "./flat-tensors.js";
import type { ShardPart, ShardWords } from "./shard.js";

/** The parts of flat parameters that an optimizer steps: those of its shard, or all as one. */
export const ownParts = <B>({ shard, segments }: FlatTensors<B>): readonly ShardPart[] =>
  shard?.parts ?? [{ offset: 0, length: flatLength(segments), at: 0 }];

/** The elements of buffers that have one for each parameter element that the optimizer steps. */
export const ownLength = <B>(params: FlatTensors<B>): number =>
  endOf(ownParts(params).map(({ at, length }) => ({ offset: at, length })));

/** A range of a buffer of gradients. */
export interface GradientRange<B> extends Range {
  /** The whole buffer. */
  readonly x: Binding<B>;
}

/** The gradients that a step reads: those that are present and, in a shard, its own with what stands for all others. */
export function ownGradients<B>(params: FlatTensors<B>): readonly GradientRange<B>[] {
  const x = gradientsOf(params);
  const present = presentRanges(params);
  const { shard } = params;
  if (!shard) return present.map(({ offset, length }) => ({ x, offset, length }));
  if (present.length === 0) return [];
  const own = shard.parts.flatMap((part) =>
    common(present, part).map((range) => ({ x, ...range })),
  );
  return [...own, { x: shard.others, offset: 0, length: shard.others.length }];
}

/** The operands of the launches that update one part of a shard. */
export interface PartUpdate<B> {
  /** Both begin where elements have the same numbers as in buffers that only the shard has. */
  readonly values: Binding<B>;
  readonly gradients: Binding<B>;
  readonly ranges: readonly UpdateRange[];
}

/** The updates of the parts of a shard whose gradients are present. */
export const partUpdates = <B>(params: FlatTensors<B>): readonly PartUpdate<B>[] =>
  ownParts(params).map((part) => {
    const shift = part.offset - part.at;
    const from = (binding: Binding<B>): Binding<B> =>
      partOf(binding, { offset: shift, length: binding.length - shift });
    return {
      values: from(valuesOf(params)),
      gradients: from(gradientsOf(params)),
      ranges: common(presentRanges(params), part).map(({ offset, length }) => ({
        ...{ offset: offset - shift, length },
        ...{ firstSegment: 0, endSegment: 0, firstChunk: 0, endChunk: 0 },
      })),
    };
  });

/** The elements of the shard's parts in a buffer that has those of all parameters. */
export function ownWords<B>(
  params: FlatTensors<B>,
  whole: ShardWords,
  perElement: number,
): ShardWords {
  if (!params.shard) return whole;
  const own = whole.slice(0, Math.ceil(ownLength(params) * perElement));
  for (const { offset, length, at } of params.shard.parts) {
    const start = offset * perElement;
    own.set(whole.subarray(start, start + Math.ceil(length * perElement)), at * perElement);
  }
  return own;
}

/** What some ranges have in common with another. */
function common(ranges: readonly Range[], other: Range): readonly Range[] {
  return ranges.flatMap(({ offset, length }) => {
    const start = Math.max(offset, other.offset);
    const end = Math.min(offset + length, other.offset + other.length);
    return start < end ? [{ offset: start, length: end - start }] : [];
  });
}

const endOf = (ranges: readonly Range[]): number =>
  ranges.reduce((most, { offset, length }) => Math.max(most, offset + length), 0);
