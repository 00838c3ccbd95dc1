import type { Binding, Launch } from "@halfstep/device";
import { elementwise, identity } from "@halfstep/kernels";
import { canObserveStores, observingStores, type StoreObserver } from "@halfstep/kernels/planner";
import { accepts, hasConflict, maxBindings } from "./bindings.js";
import type { Recording } from "./recording.js";
import type { Storage } from "./storage.js";

/** An observer, and the place of its words. */
export interface SlotOfObserver {
  readonly observer: StoreObserver;
  readonly words: Binding<Storage>;
  readonly slot: number;
  /** True where another observer gets the store of the same result: this one then observes a copy. */
  readonly leavesStore?: boolean;
}

/**
 * Launches that store the same bits as one launch and call an observer with the numbers stored in one of its results: the launch
 * itself, with the observer in its store. Where that is not possible, the launch stores float32, which does not round, and an
 * observed copy rounds. A result that is changed in place is observed through a copy, which misses the rounding before it.
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

/** Replaces launches of a recording by equivalent ones, together with their notes. */
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
