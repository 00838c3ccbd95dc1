import type { Binding, Launch } from "@halfstep/device";
import { isFloating } from "@halfstep/formats/dtypes";
import { fill } from "@halfstep/kernels";
import {
  type StoredRange,
  storedRange,
  storedRangeIn,
  storedRangeWords,
} from "@halfstep/kernels/planner";
import { observedLaunches, replaceLaunches, type SlotOfObserver } from "./observed-stores.js";
import type { OpNote } from "./op-notes.js";
import { type OpSite, siteOf } from "./op-sites.js";
import type { Recording } from "./recording.js";
import type { Search } from "./searched-steps.js";
import type { Storage } from "./storage.js";

/**
 * The steps in which a runtime counts, for each op, the numbers that stores round to zero: none, those after a scaler has reported a
 * step with gradients that were all 0, or all. Counted launches are not fused.
 */
export type UnderflowMode = "off" | "afterZeros" | "always";

/** The effect of the store of an op's result on its numbers. */
export interface UnderflowSite extends OpSite, StoredRange {
  readonly isBackward: boolean;
}

/** The first result in which rounding turned all nonzero numbers into zeros. */
export interface UnderflowOrigin extends OpSite {
  readonly kind: "underflow";
  readonly elements: number;
  readonly roundedToZero: number;
  readonly exactZeros: number;
}

/** The effect of each store of a counted step, in program order. */
export const sitesIn = ({ sites }: Search, words: ArrayLike<number>): readonly UnderflowSite[] =>
  sites.map((site, slot) => ({ ...site, ...storedRangeIn(words, slot) }));

/**
 * The origin of underflow in a backward pass: the first of its results that rounding turned into zeros; undefined where there is
 * none.
 */
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
 * Observes the stores of ops' results in a counted recording. The results of the step keep their bits.
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

/** Of a launch with several observed results, the first is observed in its store and the others through copies. */
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
