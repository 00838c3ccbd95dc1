import type { Binding, Launch } from "@halfstep/device";
import { elementwise, identity } from "@halfstep/kernels";
import { canObserveStores, observingStores, type StoreObserver } from "@halfstep/kernels/planner";
import { accepts, hasConflict, maxBindings } from "./bindings.js";
import type { Recording } from "./recording.js";
import type { Storage } from "./storage.js";

/** Who looks, and where it leaves its words. */
export interface SlotOfObserver {
  readonly observer: StoreObserver;
  readonly words: Binding<Storage>;
  readonly slot: number;
  /** True where somebody else will observe the same result: its store is left to them. */
  readonly leavesStore?: boolean;
}

/**
 * Launches that do what one does, bit for bit, and tell an observer what it stores in one of its results: the launch itself, with the
 * observer in its store. Where that cannot be, it stores float32, which rounds nothing, and an observed copy rounds. Of what is
 * changed in place a copy is observed, which does not tell what was rounded before.
 *
 * @param allocate memory of the recording.
 */
export function observedLaunches(
  launch: Launch<Storage>,
  result: number,
  { observer, words, slot, leavesStore = false }: SlotOfObserver,
  allocate: (bytes: number) => Storage,
): readonly Launch<Storage>[] {
  const { kernel, bindings } = launch;
  const parameter = kernel.bindings[result];
  const binding = bindings[result] as Binding<Storage>;
  const observation = { observer, words, slots: [slot] };
  const isWritten = parameter?.access === "write";
  if (!leavesStore && isWritten && canObserveStores(kernel) && bindings.length < maxBindings) {
    const observed = observingStores({ ...launch, kernel }, [result], observation);
    if (!hasConflict(observed)) return [observed];
  }
  const { length } = binding;
  const exact = { buffer: allocate(length * 4), offset: 0, length, dtype: "float32" } as const;
  const copy = (from: Binding<Storage>, to: Binding<Storage>): Launch<Storage> =>
    elementwise(identity, [{ ...from, shape: [length] }], { ...to, shape: [length] });
  const observedCopy = (from: Binding<Storage>, to: Binding<Storage>): Launch<Storage> => {
    const plain = copy(from, to);
    const { kernel: copying } = plain;
    if (!canObserveStores(copying)) throw new TypeError("copies can be observed");
    return observingStores({ ...plain, kernel: copying }, [1], observation);
  };
  if (!isWritten || !accepts(parameter, "float32")) {
    const { rounding: _, ...stored } = binding;
    return [launch, observedCopy(stored, exact)];
  }
  const stored = bindings.map((other, b) => (b === result ? exact : other));
  const exactly = { ...launch, bindings: stored };
  if (!leavesStore) return [exactly, observedCopy(exact, binding)];
  const beside = { ...binding, buffer: allocate(length * 4), offset: 0 };
  return [exactly, copy(exact, binding), observedCopy(exact, beside)];
}

/** Replaces each launch of a recording by others that do the same, and their notes with them. */
export function replaceLaunches(
  recording: Recording,
  replace: (launch: Launch<Storage>) => readonly Launch<Storage>[],
): void {
  const { backwardStart, launches, notes } = recording;
  const recorded = launches.splice(0);
  for (const [i, launch] of recorded.entries()) {
    if (i === backwardStart) recording.backwardStart = launches.length;
    const note = notes?.get(launch);
    for (const other of replace(launch)) {
      if (note) notes?.set(other, note);
      launches.push(other);
    }
  }
}
