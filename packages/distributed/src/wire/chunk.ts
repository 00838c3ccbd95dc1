import type { Carrier, Hosts } from "../carrier.js";
import { membersOf } from "../hosts.js";
import { chunkLength } from "./scatter-mean.js";
import type { Level } from "./wire.js";

/** A range of numbers, in elements. */
export interface Range {
  readonly offset: number;
  readonly length: number;
}

/** Elements: chunks that ranks keep begin at multiples of it, so that devices can bind them in 16 bits, too. */
export const keptUnit = 128;

/** The chunk of a range of which a rank gets the mean; of length 0 where the range has too few elements. */
export function chunkOf(range: Range, rank: number, levels: readonly Level[], hosts: Hosts): Range {
  let { offset, length } = range;
  for (const { scope } of levels) {
    const members = membersOf(hosts, scope, rank);
    const chunk = chunkLength(length, members.length, keptUnit);
    const start = Math.min(members.indexOf(rank) * chunk, length);
    offset += start;
    length = Math.min(chunk, length - start);
  }
  return { offset, length };
}

/** What two ranges have in common; undefined where that is nothing. */
export function common(a: Range, b: Range): Range | undefined {
  const offset = Math.max(a.offset, b.offset);
  const length = Math.min(a.offset + a.length, b.offset + b.length) - offset;
  return length > 0 ? { offset, length } : undefined;
}

/** The places of ranks in what they collect level by level, the last level first. */
export function placesOf(
  levels: readonly Level[],
  { hosts, size }: Carrier,
): ReadonlyMap<number, number> {
  const placeOf = (rank: number): number => {
    let place = 0;
    for (const { scope } of levels) {
      const members = membersOf(hosts, scope, rank);
      place = place * members.length + members.indexOf(rank);
    }
    return place;
  };
  return new Map(Array.from({ length: size }, (_, rank) => [rank, placeOf(rank)]));
}
