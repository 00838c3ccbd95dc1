import { keptUnit, type Range } from "../wire/chunk.js";

/** A range that a rank owns, and its place among all that the rank owns. */
export interface OwnPart extends Range {
  readonly at: number;
}

/** Cuts flat parameters into stripes of about equal length, each of which is divided among all ranks. */
export function stripesOf(length: number, count: number, ranks: number): readonly Range[] {
  const unit = keptUnit * ranks;
  const each = Math.ceil(length / count / unit) * unit;
  const stripes: Range[] = [];
  for (let offset = 0; offset < length; offset += each)
    stripes.push({ offset, length: Math.min(each, length - offset) });
  return stripes;
}

/** What a rank owns of all stripes, one after another. */
export function partsOf(chunks: readonly Range[]): readonly OwnPart[] {
  let at = 0;
  const parts: OwnPart[] = [];
  for (const { offset, length } of chunks) {
    if (length > 0) parts.push({ offset, length, at });
    at += length;
  }
  return parts;
}
