import type { Binding } from "@halfstep/device";
import { requireLengths } from "../operands.js";

/**
 * Linear-chain conditional random fields (Lafferty et al. 2001). A workgroup processes one sequence place by place. Its lanes share
 * the tags, and workgroup memory passes the numbers of a place to the next one. Everything is in log space and in float32.
 */
export interface CrfShape {
  readonly batch: number;
  /** Places of a sequence, at least 1. */
  readonly length: number;
  /** At most {@link maxCrfTags}. */
  readonly numTags: number;
}

/** Operands that every CRF kernel reads. */
export interface CrfOperands<B> {
  /** [batch, length, tags] */
  readonly emissions: Binding<B>;
  /** [tags] */
  readonly start: Binding<B>;
  /** [tags] */
  readonly end: Binding<B>;
  /** [from, to] */
  readonly transitions: Binding<B>;
  /** uint32 [batch, length], not 0 for the places that count; nothing is read of the others. Default: all count. */
  readonly mask?: Binding<B> | undefined;
}

/** Largest number of tags: the numbers of two places fit into the workgroup memory of every device. */
export const maxCrfTags = 512;

export function requireCrf<B>(
  op: string,
  { emissions, start, end, transitions, mask }: CrfOperands<B>,
  { batch, length, numTags }: CrfShape,
): void {
  if (length < 1) throw new RangeError(`${op}: sequences of 0 places have no tags`);
  if (numTags < 1 || numTags > maxCrfTags)
    throw new RangeError(`${op} takes 1 to ${maxCrfTags} tags, not ${numTags}`);
  requireLengths(
    op,
    { emissions, start, end, transitions, mask },
    {
      emissions: batch * length * numTags,
      start: numTags,
      end: numTags,
      transitions: numTags ** 2,
      mask: batch * length,
    },
  );
}

/** The optional operands that are given. */
export const given = <T>(...operands: readonly (T | undefined)[]): readonly T[] =>
  operands.filter((operand) => operand !== undefined);

/** The scalars that every CRF kernel has. */
export interface CrfScalars {
  readonly batch: number;
  readonly length: number;
  readonly tags: number;
}

export const scalarsOf = ({
  batch,
  length,
  numTags,
}: CrfShape): CrfScalars & Readonly<Record<string, number>> => ({
  batch,
  length,
  tags: numTags,
});
