import type { Binding, Launch } from "@halfstep/device";
import { fill } from "@halfstep/kernels";
import {
  type StoredRange,
  storedRange,
  storedRangeIn,
  storedRangeWords,
} from "@halfstep/kernels/planner";
import { isFloating } from "../dtypes.js";
import { observedLaunches, replaceLaunches, type SlotOfObserver } from "./observed-stores.js";
import type { OpNote } from "./op-notes.js";
import { type OpSite, siteOf } from "./op-sites.js";
import type { Recording } from "./recording.js";
import type { Search } from "./searched-steps.js";
import type { Storage } from "./storage.js";

/**
 * When a runtime counts, op by op, what stores round to zero: never, in steps after a scaler has reported one whose gradients were all
 * 0, or in every step. Launches that are counted are fused with none.
 */
export type UnderflowMode = "off" | "afterZeros" | "always";

/** What the store of an op's result did to its numbers. */
export interface UnderflowSite extends OpSite, StoredRange {
  readonly isBackward: boolean;
}

/** The first result in which rounding left nothing but zeros of numbers that were not 0. */
export interface UnderflowOrigin extends OpSite {
  readonly kind: "underflow";
  readonly elements: number;
  readonly roundedToZero: number;
  readonly exactZeros: number;
}

/** What each store of a counted step did, in program order. */
export const sitesIn = ({ sites }: Search, words: ArrayLike<number>): readonly UnderflowSite[] =>
  sites.map((site, slot) => ({ ...site, ...storedRangeIn(words, slot) }));

/** Where a backward pass was rounded to zero: the first of its results of which nothing else was left, or else nothing. */
export function underflowIn(search: Search, words: ArrayLike<number>): UnderflowOrigin | undefined {
  const first = sitesIn(search, words).find(
    ({ isBackward, elements, roundedToZero, exactZeros }) =>
      isBackward && roundedToZero > 0 && roundedToZero + exactZeros === elements,
  );
  if (!first) return undefined;
  const { isBackward: _, largest: __, ...site } = first;
  return { ...site, kind: "underflow" };
}

/**
 * Makes the launches of a recording that is counted tell what they store in results of its ops. Whatever the step computes stays the
 * same bits.
 *
 * @param allocate memory of the recording.
 */
export function insertCounts(
  recording: Recording,
  allocate: (bytes: number) => Storage,
): Search | undefined {
  const stores = recording.isCounted ? storesOf(recording) : [];
  if (stores.length === 0) return undefined;
  const length = stores.length * storedRangeWords;
  const found: Binding<Storage> = {
    ...{ buffer: allocate(length * 4), offset: 0, length, dtype: "uint32" },
  };
  recording.kept.add(found.buffer);
  const slots = new Map<Launch<Storage>, (SlotOfObserver & { readonly result: number })[]>();
  for (const [slot, { launch, result }] of stores.entries()) {
    const known = slots.get(launch) ?? [];
    slots.set(launch, known);
    known.push({ observer: storedRange, words: found, slot, result });
  }
  const { backwardStart } = recording;
  const zeroed = fill({ ...found, length: length * 2, dtype: "float16" }, 0);
  recording.launches.unshift(zeroed);
  if (backwardStart !== undefined) recording.backwardStart = backwardStart + 1;
  replaceLaunches(recording, (launch) => observedAll(launch, slots.get(launch) ?? [], allocate));
  return { found, sites: stores.map(({ site }) => site) };
}

/** A launch of which several results are observed is observed in the first; of the others copies are. */
function observedAll(
  launch: Launch<Storage>,
  results: readonly (SlotOfObserver & { readonly result: number })[],
  allocate: (bytes: number) => Storage,
): readonly Launch<Storage>[] {
  let launches: readonly Launch<Storage>[] = [launch];
  for (const observed of results) {
    const [first, ...rest] = launches as [Launch<Storage>, ...Launch<Storage>[]];
    launches = [...observedLaunches(first, observed.result, observed, allocate), ...rest];
  }
  return launches;
}

interface OpStore {
  readonly launch: Launch<Storage>;
  readonly result: number;
  readonly site: Search["sites"][number];
}

/** The last store of each part of each result of an op, in program order. */
function storesOf({ launches, notes, backwardStart }: Recording): readonly OpStore[] {
  const last = new Map<string, OpStore>();
  for (const [i, launch] of launches.entries()) {
    const note = notes?.get(launch);
    if (!note) continue;
    for (const [result, { buffer, offset, dtype }] of launch.bindings.entries()) {
      const output = outputAt(note, buffer);
      if (!output || !isFloating(dtype) || launch.kernel.bindings[result]?.access === "read")
        continue;
      const isBackward = !!note.scope?.backwardOf || (backwardStart ?? Infinity) <= i;
      const key = `${idOf(note)} ${buffer.id} ${offset}`;
      last.delete(key);
      last.set(key, {
        ...{ launch, result },
        site: { ...siteOf(note, "result", output), isBackward },
      });
    }
  }
  return [...last.values()];
}

const outputAt = ({ outputs }: OpNote, buffer: Storage) =>
  outputs.find(({ storage, size }) => storage === buffer && size > 0);

const ids = new WeakMap<OpNote, number>();
let lastId = 0;

function idOf(note: OpNote): number {
  const id = ids.get(note) ?? ++lastId;
  ids.set(note, id);
  return id;
}
